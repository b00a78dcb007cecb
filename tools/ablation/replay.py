"""Wanted motions of a scene's moving part, written down once, and queries that are asked about them again and again.

Every variant of a query gets the same motions: those from where the part was left to the next pose of the script, with
the part placed at the time proven free by the usual query. All other parts are taken together as one mesh, so that
there is one pair. Source of the protocol: Redon 2002, section 3.6 (a recorded path replayed for each variant).
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from rtcore.collision.first_contact import first_contact
from rtcore.collision.front import coherent_contact
from rtcore.collision.pair_state import make_front, make_query_work, move_front
from rtcore.geometry.tree import build_tree
from rtcore.motion import SCREW, between, path_bound, pose, still
from rtcore.spatial import normalise, put_quaternion, put_vector, quaternion, vector
from rtcore.tables import COUNTERS, HIT, POSE, QUERY, QUERY_ORDER, QUERY_OWNED, QUERY_PASS_TIME, RELATIVE
from tools.scenes import Phase, Scene
from tools.scenes.clearance import placed

UNITS = 4_000_000
"""Work allowed per query: the comparisons are of queries that end by themselves."""
POSITION_SHARE = 1e-3
"""Share of the separation by which a contact may be reported early."""
TIME_TOLERANCE = 1e-6
USUAL = QUERY_PASS_TIME | QUERY_ORDER | QUERY_OWNED
LONGEST = 8.0
"""Path of a motion at most, in eps_break: what a blocked part is asked to do beyond is cut off, as the daemon does."""


@dataclass(frozen=True)
class MeshPair:
    """The moving part (second) and all others together (first) in one table each."""

    nodes: np.ndarray
    triangles: np.ndarray
    first_root: int
    second_root: int


@dataclass(frozen=True)
class Moves:
    """Motions to ask about."""

    relatives: np.ndarray
    """(n,) RELATIVE"""
    limits: np.ndarray
    """(n,) u up to which each is asked about"""
    paths: np.ndarray
    """(n,) bound on the path of any point during the whole motion, m"""
    separation: float
    """m"""

    def every(self, step: int) -> "Moves":
        """Every so many'th of them."""
        rows = slice(None, None, step)
        return Moves(self.relatives[rows].copy(), self.limits[rows].copy(), self.paths[rows].copy(), self.separation)


@dataclass(frozen=True)
class Answers:
    """What a variant said and did over all motions."""

    times: np.ndarray
    counters: dict[str, int]
    truncated: int
    seconds: float
    """Of processor time."""


def pair_of(scene: Scene, min_max: bool = False) -> MeshPair:
    """Build both trees of a scene; min_max: with the splits of the thesis."""
    others = np.concatenate([placed(part) for part in scene.parts if not part.moving])
    numbers = np.arange(3 * len(others)).reshape(-1, 3)
    return join(
        build_tree(others.reshape(-1, 3), numbers, min_max),
        build_tree(scene.moving.vertices, scene.moving.faces, min_max),
    )


def join(first: tuple[np.ndarray, np.ndarray], second: tuple[np.ndarray, np.ndarray]) -> MeshPair:
    """Put the tables (nodes, triangles) of two meshes behind each other."""
    nodes, triangles = np.concatenate([first[0], second[0]]), np.concatenate([first[1], second[1]])
    own = nodes[len(first[0]) :]
    own["first"][own["count"] > 0] += len(first[1])
    own["right"][own["count"] == 0] += len(first[0])
    own["parent"][1:] += len(first[0])
    return MeshPair(nodes, triangles, 0, len(first[0]))


def make_query(separation: float, flags: int = USUAL, overlap: int = 0, subdivision: float = 0.15) -> np.ndarray:
    """(1,) QUERY with tolerances as the daemon's."""
    query = np.zeros(1, QUERY)
    query["separation"] = separation
    query["position_tolerance"] = POSITION_SHARE * separation
    query["time_tolerance"] = TIME_TOLERANCE
    query["units"] = UNITS
    query["flags"] = flags
    query["overlap"] = overlap
    query["subdivision"] = subdivision
    return query


@njit(cache=True, nogil=True, error_model="numpy")
def _walk(
    nodes: Any,
    triangles: Any,
    first_root: int,
    second_root: int,
    goals: Any,
    place: Any,
    longest: float,
    query: Any,
    work: Any,
    counters: Any,
    hit: Any,
    relatives: Any,
    limits: Any,
    paths: Any,
) -> None:
    # place: POSE of the second, moved on from goal to goal.
    root = nodes[second_root]
    for i in range(len(goals)):
        position, turn = vector(place.position), quaternion(place.orientation)
        goal = goals[i]
        relative = relatives[i]
        still(relative.first, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))
        wanted = normalise((goal[3], goal[4], goal[5], goal[6]))
        between(relative.second, SCREW, position, turn, (goal[0], goal[1], goal[2]), wanted, position)
        paths[i] = path_bound(relative.second, vector(root.centre), root.radius, 0.0, 1.0)
        limits[i] = 1.0 if paths[i] <= longest else longest / paths[i]
        query.limit = limits[i]
        first_contact(nodes, triangles, first_root, second_root, relative, query, work, counters, hit)
        if hit.time > 0.0:
            position, turn = pose(relative.second, hit.time)
            put_vector(place.position, position)
            put_quaternion(place.orientation, normalise(turn))


def walk(pair: MeshPair, phase: Phase, eps: dict[str, float], every: int = 1) -> Moves:
    """Follow every so many'th pose of a phase: the motions that were wanted."""
    goals = np.ascontiguousarray(phase.poses[every::every])
    place = np.zeros(1, POSE)
    place["position"], place["orientation"] = phase.poses[0, :3], phase.poses[0, 3:]
    relatives, limits, paths = np.zeros(len(goals), RELATIVE), np.zeros(len(goals)), np.zeros(len(goals))
    # fmt: off
    _walk(
        pair.nodes, pair.triangles, pair.first_root, pair.second_root, goals, place[0], LONGEST * eps["eps_break"],
        make_query(eps["eps_alert"])[0], make_query_work()[0], np.zeros(1, COUNTERS)[0], np.zeros(1, HIT)[0],
        relatives, limits, paths,
    )
    # fmt: on
    return Moves(relatives, limits, paths, eps["eps_alert"])


def together(parts: list[Moves]) -> Moves:
    """Motions of several phases one after the other."""
    return Moves(
        np.concatenate([part.relatives for part in parts]),
        np.concatenate([part.limits for part in parts]),
        np.concatenate([part.paths for part in parts]),
        parts[0].separation,
    )


@njit(cache=True, nogil=True, error_model="numpy")
def ask_from_roots(
    nodes: Any,
    triangles: Any,
    first_root: int,
    second_root: int,
    relatives: Any,
    limits: Any,
    query: Any,
    work: Any,
    counters: Any,
    hit: Any,
    times: Any,
) -> int:
    """Ask about each motion from the roots; the times go into `times` (n,). Returns how many were truncated."""
    truncated = 0
    for i in range(len(relatives)):
        query.limit = limits[i]
        first_contact(nodes, triangles, first_root, second_root, relatives[i], query, work, counters, hit)
        times[i] = hit.time
        truncated += hit.truncated
    return truncated


@njit(cache=True, nogil=True, error_model="numpy")
def _ask_with_front(
    nodes: Any,
    triangles: Any,
    front: Any,
    entries: Any,
    relatives: Any,
    limits: Any,
    query: Any,
    work: Any,
    counters: Any,
    hit: Any,
    times: Any,
) -> int:
    truncated = 0
    for i in range(len(relatives)):
        query.limit = limits[i]
        coherent_contact(nodes, triangles, relatives[i], query, front, entries, work, counters, hit)
        move_front(front, hit.time)
        times[i] = hit.time
        truncated += hit.truncated
    return truncated


def replay(
    pair: MeshPair, moves: Moves, query: np.ndarray, kernel: Callable = ask_from_roots, rounds: int = 1
) -> Answers:
    """Ask about all motions with a query (1,) QUERY, by `ask_from_roots` or one rebuilt from it; the fastest round."""
    work, hit, times = make_query_work(), np.zeros(1, HIT), np.zeros(len(moves.limits))
    best = np.inf
    for _ in range(rounds):
        counters = np.zeros(1, COUNTERS)
        began = time.thread_time()
        # fmt: off
        truncated = kernel(
            pair.nodes, pair.triangles, pair.first_root, pair.second_root, moves.relatives, moves.limits,
            query[0], work[0], counters[0], hit[0], times,
        )
        # fmt: on
        best = min(best, time.thread_time() - began)
    return Answers(times, _counted(counters), int(truncated), best)


def replay_with_front(pair: MeshPair, moves: Moves, query: np.ndarray, rounds: int = 1) -> Answers:
    """The same with a front kept between the motions, each of which has to begin where the last one ended."""
    work, hit, times = make_query_work(), np.zeros(1, HIT), np.zeros(len(moves.limits))
    best = np.inf
    for _ in range(rounds):
        front, entries = make_front(pair.first_root, pair.second_root)
        counters = np.zeros(1, COUNTERS)
        began = time.thread_time()
        # fmt: off
        truncated = _ask_with_front(
            pair.nodes, pair.triangles, front[0], entries, moves.relatives, moves.limits, query[0], work[0],
            counters[0], hit[0], times,
        )
        # fmt: on
        best = min(best, time.thread_time() - began)
    return Answers(times, _counted(counters), int(truncated), best)


def _counted(counters: np.ndarray) -> dict[str, int]:
    return {name: int(counters[name][0]) for name in COUNTERS.names or ()}
