"""Back-face culling: at the leaves only or on the way down, by cones of axis and angle or by recoil vectors.

Scene: two equal car doors that slide on each other. Source: Redon 2002, tables 4.1 (B16), 4.2 and 4.3, memory
by (4.14). Cones here hold the normals of all triangles at a feature, of which the thesis says nothing; a node is asked
each time that it comes up, where the thesis remembers the answer within a query (its N_TR without that is four times
as large).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numba import njit

from rtcore.collision import first_contact
from rtcore.collision.receding import recedes, recedes_by_vectors
from rtcore.collision.variants import rebuilt
from rtcore.geometry.cones import fill_cones
from rtcore.geometry.recoil import RECOIL, RECOIL_MAX, recoil_memory, recoil_vectors
from rtcore.spatial import vector
from rtcore.tables import BOX_NODE, QUERY_CULL
from tools.ablation.replay import USUAL, Answers, MeshPair, Moves, ask_from_roots, make_query, replay

RECOIL_NODE = np.dtype(
    [*((name, BOX_NODE[name]) for name in BOX_NODE.names or ()), ("recoil", RECOIL), ("cull", "i4"), ("blank", "i4")],
    align=True,
)
"""A BOX_NODE that carries its recoil vectors, and how it is to be culled."""

BY_CONE = 0
BY_VECTORS = 1
LEAVES_ONLY = 2
"""Bits of RECOIL_NODE.cull."""

VARIANTS = {
    "none": None,
    "elementary, cones": LEAVES_ONLY | BY_CONE,
    "elementary, recoil vectors": LEAVES_ONLY | BY_VECTORS,
    "hierarchical, cones": BY_CONE,
    "hierarchical, recoil vectors": BY_VECTORS,
}
"""Table 4.1."""

MOST = 6
"""r_max of table 4.1."""


@njit(nogil=True, error_model="numpy")
def culled(node: Any, record: Any, counters: Any) -> bool:
    """May a RECOIL_NODE be left out? In the form of `rtcore.collision.first_contact.culled`."""
    if node.cull & LEAVES_ONLY != 0 and node.count == 0:
        return False
    counters.receding_tests += 1
    velocity, spin = vector(record.velocity), vector(record.spin)
    if node.cull & BY_VECTORS != 0:
        recede = recedes_by_vectors(node, node.recoil, velocity, spin, record.slack)
    else:
        recede = recedes(node, velocity, spin, record.slack)
    if recede:
        counters.receding += 1
    return recede


@dataclass(frozen=True)
class Cones:
    """Recoil vectors of both trees."""

    pair: MeshPair
    """With RECOIL_NODE for nodes."""
    counts: np.ndarray
    """(k,) vectors by node"""
    seconds: float
    """to build them"""
    memory: int
    """bytes by (4.14)"""

    def inner_share(self) -> float:
        """Share of the inner nodes that have any."""
        inner = self.pair.nodes["count"] == 0
        return float((self.counts[inner] > 0).mean())

    def sizes(self) -> list[int]:
        """How many nodes have 0 .. 9 vectors."""
        return np.bincount(self.counts, minlength=RECOIL_MAX + 1).tolist()


def with_recoil(pair: MeshPair, most: int = MOST, bottom_up: bool = False) -> Cones:
    """Give every node of both trees its recoil vectors, at most so many."""
    tables = []
    seconds = 0.0
    for nodes, triangles in _trees(pair):
        began = time.thread_time()
        tables.append(recoil_vectors(nodes, triangles, most, bottom_up))
        seconds += time.thread_time() - began
    nodes = np.zeros(len(pair.nodes), RECOIL_NODE)
    for name in BOX_NODE.names or ():
        nodes[name] = pair.nodes[name]
    nodes["recoil"] = np.concatenate(tables)
    counts = nodes["recoil"]["count"].copy()
    return Cones(replace(pair, nodes=nodes), counts, seconds, recoil_memory(counts))


def cone_seconds(pair: MeshPair, bottom_up: bool) -> float:
    """Processor time to build the cones of axis and angle of both trees."""
    seconds = 0.0
    for nodes, triangles in _trees(pair):
        copy = nodes.copy()
        began = time.thread_time()
        fill_cones(copy, triangles, bottom_up)
        seconds += time.thread_time() - began
    return seconds


def make_kernel() -> Callable:
    """`replay.ask_from_roots` on a query that asks `culled`; it takes nodes of RECOIL_NODE only."""
    return rebuilt(ask_from_roots, first_contact=rebuilt(first_contact.first_contact, culled=culled))


def methods(cones: Cones, moves: Moves, kernel: Callable, rounds: int = 1) -> dict[str, Answers]:
    """Table 4.1; kernel: of `make_kernel`."""
    rows = {}
    for name, cull in VARIANTS.items():
        cones.pair.nodes["cull"] = 0 if cull is None else cull
        flags = USUAL if cull is None else USUAL | QUERY_CULL
        rows[name] = replay(cones.pair, moves, make_query(moves.separation, flags), kernel, rounds)
    return rows


def by_vectors(cones: Cones, moves: Moves, kernel: Callable, rounds: int = 1) -> Answers:
    """One row of table 4.2: culling by the recoil vectors there are."""
    cones.pair.nodes["cull"] = BY_VECTORS
    return replay(cones.pair, moves, make_query(moves.separation, USUAL | QUERY_CULL), kernel, rounds)


def _trees(pair: MeshPair) -> list[tuple[np.ndarray, np.ndarray]]:
    """The two trees by themselves, indices from 0."""
    nodes, triangles = pair.nodes, pair.triangles
    root = pair.second_root
    count = (root + 1) // 2
    second = nodes[root:].copy()
    second["first"][second["count"] > 0] -= count
    second["right"][second["count"] == 0] -= root
    second["parent"][1:] -= root
    return [(nodes[:root], triangles[:count]), (second, triangles[count:])]
