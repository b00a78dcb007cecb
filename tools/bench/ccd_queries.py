"""Continuous tests on public queries with exact truth: what is missed, what is said in vain, and how long it takes."""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from numba import njit

from rtcore.collision.elementary.linear import edge_edge, vertex_face
from rtcore.spatial import vector
from tools.bench.common import Figure, Progress, Result, percentiles

DATA = Path(__file__).parents[2] / "../shared/data/ccd"
KINDS = {"vertex-face": True, "edge-edge": False}
BARS = {"vertex-face": (198, 3085), "edge-edge": (273, 4194)}
"""False positives allowed, of so many queries: what Tight-Inclusion says in vain."""
CAP = 64
REPEATS = 50
ROUNDS = 5


@dataclass
class Queries:
    """Queries of one kind: vertices (n, 8, 3) at t = 0 then 1, truth (n,), scene of each, and how many were rounded."""

    vertices: np.ndarray
    truth: np.ndarray
    scenes: list[str]
    inexact: int


def read_queries(directory: Path, kind: str) -> Queries:
    """Read all queries of a kind (a folder name) below a directory: rows of x, y, z as fractions, and the truth."""
    numbers: list[float] = []
    truth: list[bool] = []
    scenes: list[str] = []
    inexact = 0
    for path in sorted(directory.rglob("*.csv")):
        parts = path.relative_to(directory).parts
        if kind not in parts:
            continue
        rows = [[int(x) for x in line.split(",")] for line in path.read_text().splitlines() if line.strip()]
        if len(rows) % 8 or any(len(row) != 7 for row in rows):
            raise ValueError(f"{path}: a query is 8 rows of 7 whole numbers")
        for row in rows:
            for k in (0, 2, 4):
                value = row[k] / row[k + 1]
                inexact += Fraction(value) != Fraction(row[k], row[k + 1])
                numbers.append(value)
        truth += [bool(row[6]) for row in rows[::8]]
        scenes += [parts[0]] * (len(rows) // 8)
    return Queries(np.reshape(numbers, (-1, 8, 3)), np.array(truth, dtype=bool), scenes, inexact)


@njit(cache=True, nogil=True, error_model="numpy")
def ask(
    face: bool, query: np.ndarray, separation: float, tolerance: float, cap: int, repeats: int
) -> tuple[float, bool, int]:
    """Answer one query (8, 3), several times over; see `rtcore.collision.elementary.linear`."""
    answer = 0.0, False, 0
    for _ in range(repeats):
        a0, b0, c0, d0 = vector(query[0]), vector(query[1]), vector(query[2]), vector(query[3])
        a1, b1, c1, d1 = vector(query[4]), vector(query[5]), vector(query[6]), vector(query[7])
        if face:
            answer = vertex_face(a0, b0, c0, d0, a1, b1, c1, d1, separation, 1.0, tolerance, cap)
        else:
            answer = edge_edge(a0, b0, c0, d0, a1, b1, c1, d1, separation, 1.0, tolerance, cap)
    return answer


def time_kernel(face: bool, vertices: np.ndarray, tolerance: float, cap: int) -> np.ndarray:
    """Time per query (n,) in us, in a compiled loop of REPEATS; the least of ROUNDS, spread over the whole set."""
    spent = np.zeros((ROUNDS, len(vertices)))
    for spent_in_round in spent:
        for i, query in enumerate(vertices):
            began = time.perf_counter_ns()
            ask(face, query, 0.0, tolerance, cap, REPEATS)
            spent_in_round[i] = (time.perf_counter_ns() - began) * 1e-3 / REPEATS
    return spent.min(axis=0)


def _peers(iterations: int) -> dict[str, tuple[Callable, Callable]]:
    """The peers' vertex-face and edge-edge tests by name; empty where ipctk is not installed."""
    try:
        import ipctk
    except ImportError:
        return {}
    inclusion = ipctk.TightInclusionCCD(tolerance=1e-6, max_iterations=iterations)
    additive = ipctk.AdditiveCCD(max_iterations=iterations)
    return {
        "tight_inclusion": (inclusion.point_triangle_ccd, inclusion.edge_edge_ccd),
        "additive": (additive.point_triangle_ccd, additive.edge_edge_ccd),
    }


def peer_figure(test: Callable, queries: Queries) -> dict:
    """A peer's answers and times on the same queries, and what the call from Python alone costs."""
    said = np.zeros(len(queries.truth), dtype=bool)
    spent = np.zeros(len(queries.truth))
    for i, query in enumerate(queries.vertices):
        rows = list(query)
        began = time.perf_counter_ns()
        said[i] = test(*rows)[0]
        spent[i] = (time.perf_counter_ns() - began) * 1e-3
    # Features far apart that do not move are answered by the first look: what remains is the way through Python.
    rows = list(np.tile(np.array([[0.0, 0, 0], [1, 0, 0], [5, 5, 5], [6, 5, 5]]), (2, 1)))
    empty = np.zeros(200)
    for i in range(len(empty)):
        began = time.perf_counter_ns()
        test(*rows)
        empty[i] = (time.perf_counter_ns() - began) * 1e-3
    return {
        "false_negatives": int(np.sum(queries.truth & ~said)),
        "false_positives": int(np.sum(said & ~queries.truth)),
        "us": percentiles(spent),
        "call_overhead_us": round(float(np.median(empty)), 3),
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data", type=Path, default=DATA, help="folder of scenes with vertex-face/*.csv and edge-edge/*.csv"
    )
    parser.add_argument(
        "--tolerance", type=float, default=0.0, help="distance (m) at which a contact may be said; 0: rounding decides"
    )
    parser.add_argument("--cap", type=int, default=CAP, help="iterations allowed per query")
    parser.add_argument("--no-peers", action="store_true", help="leave ipctk out")
    parser.add_argument("--peer-iterations", type=int, default=1_000_000, help="iterations allowed to the peers")


def run(arguments: argparse.Namespace, progress: Progress) -> Result:
    peers = {} if arguments.no_peers else _peers(arguments.peer_iterations)
    notes = []
    if not peers and not arguments.no_peers:
        notes.append("ipctk is not installed (pip install ipctk): no peers.")
    figures: dict = {"queries": 0, "false_negatives": 0, "false_positives": 0}
    peer_figures: dict = {}
    times = []
    in_bars = True
    for kind, face in KINDS.items():
        queries = read_queries(arguments.data, kind) if arguments.data.is_dir() else None
        if queries is None or len(queries.truth) == 0:
            notes.append(f"No {kind} queries in {arguments.data}: skipped (--data DIR names another folder).")
            continue
        progress(f"{len(queries.truth)} {kind} queries")
        answers = [ask(face, query, 0.0, arguments.tolerance, arguments.cap, 1) for query in queries.vertices]
        found = np.array([answer[1] for answer in answers])
        iterations = np.array([answer[2] for answer in answers])
        spent = time_kernel(face, queries.vertices, arguments.tolerance, arguments.cap)
        false_positives = int(np.sum(found & ~queries.truth))
        allowed = BARS[kind][0] * len(found) / BARS[kind][1]
        in_bars = in_bars and false_positives <= allowed
        scenes = np.array(queries.scenes)
        figures[kind] = {
            "queries": len(found),
            "true": int(queries.truth.sum()),
            "false_negatives": int(np.sum(queries.truth & ~found)),
            "false_positives": false_positives,
            "false_positives_allowed": round(allowed, 1),
            "us": percentiles(spent),
            "iterations": percentiles(iterations, 0),
            "capped": int(np.sum(found & (iterations >= arguments.cap))),
            "false_positives_by_scene": {
                str(scene): int(np.sum((found & ~queries.truth)[scenes == scene])) for scene in np.unique(scenes)
            },
        }
        times.append(spent)
        for key in ("queries", "false_negatives", "false_positives"):
            figures[key] += figures[kind][key]
        if queries.inexact:
            notes.append(f"{queries.inexact} coordinates of {kind} are not doubles and were rounded.")
        for name, tests in peers.items():
            progress(f"{kind} by {name}")
            peer_figures.setdefault(name, {})[kind] = peer_figure(tests[0] if face else tests[1], queries)
    if times:
        figures["us"] = percentiles(np.concatenate(times))
        notes.append(
            f"us: one query in a compiled loop of {REPEATS}, least of {ROUNDS} rounds. Peers: one call each from "
            "Python, call_overhead_us of it for the call; their own rescaling (0.8, 0.9) is on, tolerance 1e-6."
        )
    ok = figures["false_negatives"] == 0 and in_bars
    if times:
        ok = ok and figures["us"]["p50"] < 1.0 and figures["us"]["max"] < 50.0
    return Result(figures, ok, peer_figures, notes)


FIGURE = Figure(
    "ccd_queries",
    "Vertex-face and edge-edge tests of linear paths on public queries with exact truth, beside ipctk.",
    add_arguments,
    run,
)
