"""The thesis' comparison of solvers again: motion space against contact space, rows sparse and dense, and one body."""

import argparse
import time
from typing import Any

import numpy as np
from numba import njit

from rtcore.solvers.dantzig import DantzigWork, make_dantzig_work, pivot
from rtcore.solvers.motion_space import ROW, MotionWork, make_motion_work, project_rows
from rtcore.tables import MOVER
from tools.bench.common import Figure, Progress, Result, percentiles

BODIES = (2, 7, 12, 17, 22)
CONTACTS_PER_BODY = (5, 15, 25, 35, 45)
TOLERANCE = 1e-5
"""Of the thesis, for both."""
WRONG = 1e-4
"""Largest min(impulse, excess velocity) allowed of an answer, by the largest b, for a tolerance of the thesis."""
ONE_BODY = (4, 12, 24, 48)
ROUNDS = 3
REPEATS = 50
PRINTED = {
    "dense": (
        (0.60, 0.50, 0.51, 0.54, 0.52),
        (0.85, 1.08, 1.23, 1.47, 1.63),
        (0.85, 0.90, 1.07, 1.21, 1.05),
        (0.94, 0.93, 1.31, 1.15, 1.01),
        (1.01, 1.08, 1.50, 1.08, 1.03),
    ),
    "sparse": (
        (0.51, 0.62, 0.80, 0.91, 0.93),
        (0.71, 1.19, 1.52, 1.95, 2.19),
        (0.70, 1.04, 1.60, 1.98, 1.90),
        (0.76, 1.11, 2.08, 2.20, 2.05),
        (0.78, 1.34, 2.44, 2.43, 2.20),
    ),
}
"""Tables 5.1 and 5.2: time in contact space by time in motion space; rows: contacts per body, columns: bodies."""


@njit(cache=True, nogil=True, error_model="numpy")
def make_matrix(rows: np.ndarray, whole: np.ndarray, work: DantzigWork) -> None:
    """Make A = J J^T of a table of ROW (bodies of unit inertia); whole: (rows, 6 bodies) J, or (0, 0)."""
    for i in range(len(rows)):
        work.free[i] = -rows[i].bound
        for j in range(i + 1):
            total = 0.0
            if len(whole) > 0:
                for k in range(whole.shape[1]):
                    total += whole[i, k] * whole[j, k]
            else:
                if rows[i].first == rows[j].first:
                    for k in range(6):
                        total += rows[i].jacobian_first[k] * rows[j].jacobian_first[k]
                if rows[i].second >= 0 and rows[i].second == rows[j].second:
                    for k in range(6):
                        total += rows[i].jacobian_second[k] * rows[j].jacobian_second[k]
                if rows[i].first == rows[j].second:
                    for k in range(6):
                        total += rows[i].jacobian_first[k] * rows[j].jacobian_second[k]
                if rows[i].second >= 0 and rows[i].second == rows[j].first:
                    for k in range(6):
                        total += rows[i].jacobian_second[k] * rows[j].jacobian_first[k]
            work.matrix[i, j] = total
            work.matrix[j, i] = total


@njit(cache=True, nogil=True, error_model="numpy")
def one_body(movers: np.ndarray, rows: np.ndarray, work: MotionWork, repeats: int, warm: bool, tolerance: float) -> int:
    """Project the motion of one body several times over, from no impulses or from the answer; returns the passes."""
    passes = 0
    for _ in range(repeats):
        if not warm:
            for i in range(len(rows)):
                rows[i].impulse = 0.0
        passes = project_rows(movers, 1, rows, len(rows), work, 10 * len(rows), tolerance).passes
    return passes


def unit_movers(count: int) -> np.ndarray:
    """Bodies of unit mass and inertia, as in the thesis."""
    movers = np.zeros(count, MOVER)
    movers["inverse_mass"] = 1.0
    movers["inverse_inertia"] = np.eye(3)
    return movers


def draw(rng: np.random.Generator, bodies: int, contacts: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows as the thesis does, J and c = J k at random: (table of ROW, J (contacts, 6 bodies))."""
    rows = np.zeros(contacts, ROW)
    pairs = rng.integers(bodies, size=(contacts, 2))
    rows["first"] = pairs[:, 0]
    rows["second"] = np.where(pairs[:, 0] == pairs[:, 1], -1, pairs[:, 1])
    rows["jacobian_first"] = rng.standard_normal((contacts, 6))
    rows["jacobian_second"] = rng.standard_normal((contacts, 6)) * (rows["second"] >= 0)[:, None]
    jacobian = np.zeros((contacts, 6 * bodies))
    for row, line in zip(rows, jacobian, strict=True):
        line[6 * row["first"] : 6 * row["first"] + 6] = row["jacobian_first"]
        if row["second"] >= 0:
            line[6 * row["second"] : 6 * row["second"] + 6] = row["jacobian_second"]
    rows["bound"] = jacobian @ rng.standard_normal(6 * bodies)
    return rows, jacobian


def draw_one_body(rng: np.random.Generator, contacts: int) -> tuple[np.ndarray, np.ndarray]:
    """A body of 250 g and hand size that is pressed on contacts about its lower side: (mover, table of ROW)."""
    mover = np.zeros(1, MOVER)
    mover["inverse_mass"] = 4.0
    mover["inverse_inertia"] = np.diag([2400.0, 3000.0, 4000.0])
    arms = rng.uniform(-0.05, 0.05, (contacts, 3))
    normals = rng.standard_normal((contacts, 3)) + [0.0, 0.0, 1.5]
    normals /= np.linalg.norm(normals, axis=1)[:, None]
    rows = np.zeros(contacts, ROW)
    rows["jacobian_first"] = np.hstack([normals, np.cross(arms, normals)])
    rows["second"] = -1
    free = np.concatenate([[0.0, 0.0, -0.2], rng.standard_normal(3)])
    rows["bound"] = -rows["jacobian_first"] @ free
    return mover, rows


def wrongness(jacobian: np.ndarray, bound: np.ndarray, impulse: np.ndarray) -> float:
    """Largest of min(impulse, excess velocity), by the largest b: 0 for the answer alone."""
    excess = jacobian @ (jacobian.T @ impulse) - bound
    return float(np.abs(np.minimum(impulse, excess)).max() / np.abs(bound).max())


def _least(run: Any) -> float:
    """The least time of ROUNDS, us."""
    spent = []
    for _ in range(ROUNDS):
        began = time.perf_counter_ns()
        run()
        spent.append((time.perf_counter_ns() - began) / 1e3)
    return min(spent)


def compare(rng: np.random.Generator, bodies: int, contacts: int, instances: int) -> tuple[dict[str, float], float]:
    """Times summed over instances, us, of both solvers with sparse and dense rows, and the worst answer among them.

    In contact space the matrix is made of either rows, then there is one way to pivot.
    """
    movers = unit_movers(bodies)
    contact_work = make_dantzig_work(contacts)
    times = dict.fromkeys(("motion sparse", "motion dense", "matrix sparse", "matrix dense", "pivots"), 0.0)
    worst = 0.0
    nothing = np.zeros((0, 0))
    for _ in range(instances):
        rows, jacobian = draw(rng, bodies, contacts)
        for way in ("sparse", "dense"):
            work = make_motion_work(bodies, contacts, whole=way == "dense")
            table = rows.copy()

            def in_motion_space(table: np.ndarray = table, work: MotionWork = work) -> None:
                table["impulse"] = 0.0
                project_rows(movers, bodies, table, contacts, work, 10 * contacts, TOLERANCE)

            whole = jacobian if way == "dense" else nothing

            def matrix(rows: np.ndarray = rows, whole: np.ndarray = whole) -> None:
                make_matrix(rows, whole, contact_work)

            times[f"motion {way}"] += _least(in_motion_space)
            worst = max(worst, wrongness(jacobian, rows["bound"], table["impulse"]))
            times[f"matrix {way}"] += _least(matrix)
            if way == "sparse":  # its pivots are the same for both
                times["pivots"] += _least(lambda: pivot(contact_work, contacts, 10 * contacts, TOLERANCE))
                worst = max(worst, wrongness(jacobian, rows["bound"], contact_work.impulse))
    return times, worst


def directions(ratios: dict[str, np.ndarray], given: dict[str, np.ndarray]) -> dict[str, bool]:
    """The effects that the thesis reads from its tables, asked of ours; tables: rows p, columns n, as PRINTED."""
    sparse = ratios["sparse"]
    return {
        "sparse: motion space wins with many bodies and contacts": bool((sparse[1:, 2:] > 1.0).all()),
        "sparse: contact space wins with 5 contacts per body": bool(sparse[0].mean() < 1.0),
        "sparse: the ratio grows with contacts per body": bool(sparse[-1].mean() > sparse[0].mean()),
        "sparse: the ratio grows with bodies": bool(sparse[:, -1].mean() > sparse[:, 0].mean()),
        "sparse favours motion space more than dense": bool((sparse > ratios["dense"])[1:, 1:].mean() > 0.5),
        "the same with the matrix given": bool((given["sparse"] > given["dense"])[1:, 1:].mean() > 0.5),
    }


def _named(tables: dict[str, np.ndarray], names: list[str]) -> dict[str, Any]:
    """Tables of ratios with names on their rows and columns, as far as there are columns."""
    return {
        way: {
            f"p {share}": dict(zip(names, np.round(line[: len(names)], 2).tolist(), strict=True))
            for share, line in zip(CONTACTS_PER_BODY, table, strict=True)
        }
        for way, table in tables.items()
    }


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--instances", type=int, default=5, help="problems per cell of the tables (the thesis: 50)")
    parser.add_argument("--bodies", type=int, default=max(BODIES), help="most bodies")
    parser.add_argument("--seed", type=int, default=5)


def run(arguments: argparse.Namespace, progress: Progress) -> Result:
    rng = np.random.default_rng(arguments.seed)
    counts = [n for n in BODIES if n <= arguments.bodies]
    compare(rng, 2, 6, 1)  # compiled before anything is timed
    ratios = {way: np.zeros((len(CONTACTS_PER_BODY), len(counts))) for way in PRINTED}
    given = {way: np.zeros_like(table) for way, table in ratios.items()}
    per_solve: dict[str, dict[str, float]] = {}
    worst = 0.0
    for i, share in enumerate(CONTACTS_PER_BODY):
        for k, bodies in enumerate(counts):
            times, wrong = compare(rng, bodies, bodies * share, arguments.instances)
            worst = max(worst, wrong)
            for way, table in ratios.items():
                table[i, k] = (times[f"matrix {way}"] + times["pivots"]) / times[f"motion {way}"]
                given[way][i, k] = times["pivots"] / times[f"motion {way}"]
            if bodies == counts[-1]:
                per_solve[f"{share} contacts per body"] = {
                    name: round(value / arguments.instances, 1) for name, value in times.items()
                }
        progress(f"{share} contacts per body done")
    single: dict[str, Any] = {}
    for contacts in ONE_BODY:
        cold, warm, passes = [], [], []
        for _ in range(30):
            mover, rows = draw_one_body(rng, contacts)
            work = make_motion_work(1, contacts)
            passes.append(one_body(mover, rows, work, 1, False, TOLERANCE))
            cold.append(_least(lambda a=(mover, rows, work): one_body(*a, REPEATS, False, TOLERANCE)) / REPEATS)
            warm.append(_least(lambda a=(mover, rows, work): one_body(*a, REPEATS, True, TOLERANCE)) / REPEATS)
        single[f"{contacts} contacts"] = {
            "cold_us": percentiles(np.array(cold), 2)["p50"],
            "cold_max_us": percentiles(np.array(cold), 2)["max"],
            "warm_us": percentiles(np.array(warm), 2)["p50"],
            "passes": round(float(np.mean(passes)), 1),
        }
    progress("one body done")
    seen = directions(ratios, given) if len(counts) == len(BODIES) else {}
    names = [f"n {n}" for n in counts]
    return Result(
        figures={
            "ratio": _named(ratios, names),
            "ratio_matrix_given": _named(given, names),
            "us_per_solve": {f"{counts[-1]} bodies": per_solve},
            "one_body": single,
            "directions": seen,
            "worst_answer": float(f"{worst:.1e}"),
        },
        peers={"thesis": _named({way: np.array(table) for way, table in PRINTED.items()}, names)},
        ok=worst <= WRONG,
        notes=[
            "ratio: time in contact space by time in motion space; above 1 motion space is faster. Both start from the "
            "rows; ratio_matrix_given leaves out making A = J J^T of them, which takes most of the time for dense rows."
            f" Tolerance {TOLERANCE:g}; {arguments.instances} instances per cell.",
            "With 2 bodies calls from Python are a good part of either time.",
            "Both keep up one factor of the rows held, row by row; the thesis factors anew in both.",
            "ok asks that every answer is right; directions say whether each effect of the thesis was seen.",
        ],
    )


FIGURE = Figure(
    name="motion_space",
    summary="Exact frictionless contacts: motion space against contact space, as in the thesis, and one body.",
    add_arguments=_arguments,
    run=run,
    among_others=("--instances", "2"),
)
