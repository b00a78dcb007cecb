"""Public contact problems with friction: how near each solver comes with how little work, beside pinocchio's.

Solvers that know normal rows alone (motion space, Dantzig's pivots, imposed contacts) are not asked: all have friction.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rtcore.solvers import gauss_seidel, gradient, newton, projected
from rtcore.solvers.problem import ContactProblem, load_matrix, relative_velocity, residual, scale
from rtcore.tables import SOLVER_REPORT, SOLVER_SETTINGS
from tools.bench import contact_peers
from tools.bench.common import Figure, Progress, Result
from tools.friction_problems import FrictionProblem, problem_files, read_problem

DATA = Path(__file__).parents[2] / "../shared/data/friction_contact"
BUDGETS = (10, 20, 50, 100)
THRESHOLDS = (1e-2, 1e-3, 1e-4, 1e-6)
LARGER = 9
"""Contacts from which a problem counts as one of the larger."""
LARGER_SHARE = 16 / 18
"""Share of the larger that is to be below 1e-3 by 20 units of work."""
SETTLED = 1e-12
"""Residual, with the scale of the problem, at which a solve may stop before its budget."""
OFFLINE = 1e-8
OFFLINE_BUDGETS = (1_000, 10_000, 100_000)
NEWTON_BUDGET = 200
DISTURBED = 0.01
"""Norm of what is added to q for a warm start, as a share of that of q."""
ROUNDS = 3
UNLIMITED = 10**9
LONG_US = 1e5
"""Time of a solve that is not measured ROUNDS times."""


@dataclass(frozen=True)
class Member:
    """One solver of the family."""

    solve: Callable
    make_work: Callable
    most: int = UNLIMITED
    """Units of work beyond which more is not tried off-line."""
    largest: int = UNLIMITED
    """Contacts of the largest problem that it is asked about."""


MEMBERS = {
    "gauss_seidel": Member(gauss_seidel.solve, gauss_seidel.make_work),
    "nncg": Member(gauss_seidel.solve_nncg, gauss_seidel.make_work),
    "anderson": Member(gauss_seidel.solve_anderson, gauss_seidel.make_work),
    # A problem given by its matrix has no movers: Newton's Hessian is dense, its time grows with the cube of the size.
    "newton": Member(newton.solve, newton.make_work, NEWTON_BUDGET, 300),
    "engine_pgs": Member(projected.solve, projected.make_work),
    "split_pgs": Member(projected.solve_split, projected.make_work),
    "projected_de_saxce": Member(projected.solve_de_saxce, projected.make_work),
    "gradient": Member(gradient.solve, gradient.make_work),
    "gradient_relaxed": Member(gradient.solve_relaxed, gradient.make_work),
}
ENGINE = "engine_pgs"
"""The member that stands beside the others as a peer: what game engines do."""
OFFLINE_ORDER = ("anderson", "nncg", "gauss_seidel", "split_pgs", "gradient", "newton")
"""Whom to ask off-line, in this order at each budget."""


@dataclass
class Answer:
    """What a solver makes of a problem: r (3n,), its residuals (see `judge`), units of work used, and time."""

    impulse: np.ndarray
    residual: float
    scaled: float
    used: int
    us: float


@dataclass
class Case:
    """A problem, how to start it cold and warm, and what became of it."""

    problem: FrictionProblem
    tables: ContactProblem
    starts: dict[str, np.ndarray] = field(default_factory=dict)
    offline: dict[str, Any] = field(default_factory=dict)
    residuals: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    """By solver and start, after each of BUDGETS."""
    scaled: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    us: dict[str, float] = field(default_factory=dict)
    """Per unit of work and contact, by solver."""

    @property
    def larger(self) -> bool:
        return self.problem.contacts >= LARGER


def judge(tables: ContactProblem, impulse: np.ndarray) -> tuple[float, float]:
    """Natural-map residuals of r (3n,), with rho 1 as in Siconos and with the problem's scale."""
    contacts = int(tables.size["contacts"][0])
    tables.equations["impulse"] = impulse.reshape(-1, 3)
    relative_velocity(tables, 0, contacts)
    return residual(tables, 0, contacts, 1.0), residual(tables, 0, contacts, scale(tables, 0, contacts))


def answer(
    member: Member,
    tables: ContactProblem,
    start: np.ndarray,
    budget: int,
    tolerance: float = SETTLED,
    work: Any = None,
) -> Answer:
    """Solve the whole problem from r = start (3n,) with so many units of work at most; work: memory made before."""
    contacts = int(tables.size["contacts"][0])
    settings, report = np.zeros(1, SOLVER_SETTINGS), np.zeros(1, SOLVER_REPORT)
    settings["sweeps"], settings["tolerance"] = budget, tolerance
    work = member.make_work(tables) if work is None else work
    tables.equations["impulse"] = start.reshape(-1, 3)
    began = time.perf_counter()
    member.solve(tables, 0, contacts, settings[0], work, report[0])
    us = (time.perf_counter() - began) * 1e6
    impulse = tables.equations["impulse"].ravel().copy()
    return Answer(impulse, *judge(tables, impulse), int(report["sweeps_used"][0]), us)


def solve_offline(tables: ContactProblem, most: int) -> tuple[str, Answer]:
    """Ask one solver after the other with growing budgets until a residual is below OFFLINE with either rho.

    Returns (name, answer); the best where none gets there.
    """
    best: tuple[str, Answer] | None = None
    asked: dict[str, int] = {}
    for budget in [budget for budget in OFFLINE_BUDGETS if budget < most] + [most]:
        for name in OFFLINE_ORDER:
            member = MEMBERS[name]
            if asked.get(name) == min(budget, member.most) or len(tables.equations) > member.largest:
                continue
            asked[name] = min(budget, member.most)
            found = answer(member, tables, np.zeros(len(tables.equations) * 3), asked[name], 1e-15)
            if best is None or max(found.residual, found.scaled) < max(best[1].residual, best[1].scaled):
                best = name, found
            if max(found.residual, found.scaled) < OFFLINE:
                return name, found
    assert best is not None
    return best


def disturbed(problem: FrictionProblem, seed: int) -> np.ndarray:
    """q (3n,) that differs by DISTURBED: the bodies have slightly other velocities, as from random impulses.

    What is added lies in the range of W, so that contacts that cannot move independently do not start to.
    """
    change = problem.matrix @ np.random.default_rng(seed).standard_normal(len(problem.free))
    return problem.free + DISTURBED * np.linalg.norm(problem.free) / np.linalg.norm(change) * change


def prepare(problem: FrictionProblem, seed: int, most: int) -> Case:
    """Solve a problem off-line, and one with a disturbed q from whose answer it is to be started warm."""
    tables = load_matrix(problem.matrix, problem.free, problem.friction)
    case = Case(problem, tables)
    name, found = solve_offline(tables, most)
    case.offline = {
        "method": name,
        "units": found.used,
        "residual": _short(found.residual),
        "scaled": _short(found.scaled),
        "below": max(found.residual, found.scaled) < OFFLINE,
    }
    tables.equations["free"] = disturbed(problem, seed).reshape(-1, 3)
    _, before = solve_offline(tables, min(most, 10_000))
    tables.equations["free"] = problem.free.reshape(-1, 3)
    case.starts = {"cold": np.zeros(len(problem.free)), "warm": before.impulse}
    return case


def _short(value: float) -> float:
    return float(f"{value:.2g}")


def ask(case: Case, name: str) -> None:
    """Let a member of the family solve a case from either start with each budget."""
    member = MEMBERS[name]
    if case.problem.contacts > member.largest:
        return
    work = member.make_work(case.tables)
    for kind, start in case.starts.items():
        found = [answer(member, case.tables, start, budget, work=work) for budget in BUDGETS]
        case.residuals[name, kind] = [one.residual for one in found]
        case.scaled[name, kind] = [one.scaled for one in found]
        if kind == "cold" and found[-1].used >= BUDGETS[0]:
            spent = [found[-1].us]
            while len(spent) < ROUNDS and spent[0] < LONG_US:
                spent.append(answer(member, case.tables, start, BUDGETS[-1], work=work).us)
            case.us[name] = min(spent) / found[-1].used / case.problem.contacts


def ask_peer(case: Case, name: str) -> None:
    """Let one of pinocchio's solvers do the same.

    It answers with its last iterate; the start and what it had after fewer units of work count where they are better,
    as the family keeps its best iterates.
    """
    peer = contact_peers.PinocchioProblem(case.problem)
    for kind, start in case.starts.items():
        found = [peer.solve(name, case.problem.free, budget, start) for budget in BUDGETS]
        judged = np.array([judge(case.tables, impulse) for impulse in (start, *(one.impulse for one in found))])
        kept = np.minimum.accumulate(judged)[1:]
        case.residuals[name, kind], case.scaled[name, kind] = kept.T.tolist()
        if kind == "cold" and found[-1].iterations:
            case.us[name] = found[-1].us / found[-1].iterations / case.problem.contacts


def counts(residuals: list[list[float]]) -> dict[str, Any]:
    """How many of the rows are below each threshold, column by column."""
    below = {f"{limit:.0e}": (np.array(residuals) < limit).sum(axis=0) for limit in THRESHOLDS} if residuals else {}
    return {"of": len(residuals), **{limit: "/".join(map(str, many)) for limit, many in below.items()}}


def table(cases: list[Case], name: str) -> dict[str, Any]:
    """How many of the cases a solver brings below each threshold after each of BUDGETS, and its time."""
    asked = [case for case in cases if (name, "cold") in case.residuals]
    rows: dict[str, Any] = {}
    for title, chosen in (
        ("larger", [case for case in asked if case.larger]),
        ("smaller", [case for case in asked if not case.larger]),
    ):
        for kind in ("cold", "warm"):
            rows[f"{title}_{kind}"] = counts([case.residuals[name, kind] for case in chosen])
        rows[f"{title}_cold_scaled"] = counts([case.scaled[name, "cold"] for case in chosen])
    spent = [case.us[name] for case in asked if case.larger and name in case.us]
    if spent:
        rows["us_per_unit_and_contact"] = round(float(np.median(spent)), 4)
    return rows


def share(cases: list[Case], name: str, kind: str, limit: float, budget: int) -> float:
    """Share of the cases that a solver brings below a limit with a budget."""
    at = BUDGETS.index(budget)
    return sum(case.residuals[name, kind][at] < limit for case in cases) / len(cases)


def shortfalls(cases: list[Case], name: str) -> list[str]:
    """Which bars a solver misses, one sentence each."""
    missed = []
    late = [case for case in cases if not case.residuals[name, "cold"][BUDGETS.index(100)] < 1e-3]
    missed += [f"{case.problem.name}: {case.residuals[name, 'cold'][-1]:.1e} after 100 by {name}" for case in late]
    larger = [case for case in cases if case.larger]
    if larger:
        early = sum(case.residuals[name, "cold"][BUDGETS.index(20)] < 1e-3 for case in larger)
        if early < LARGER_SHARE * len(larger):
            missed.append(f"{early} of {len(larger)} larger ones below 1e-3 by 20, 16 of 18 wanted")
    missed += [
        f"{case.problem.name}: {case.offline['residual']:.1e} (scaled {case.offline['scaled']:.1e}) off-line, "
        f"by {case.offline['method']}"
        for case in cases
        if not case.offline["below"]
    ]
    return missed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, default=DATA, help="folder of .dat, .hdf5, .h5 and .npz files")
    methods = [name for name, member in MEMBERS.items() if member.largest == UNLIMITED]
    parser.add_argument("--method", choices=methods, default="anderson", help="whose shares the bars judge")
    parser.add_argument("--solvers", nargs="+", choices=tuple(MEMBERS), default=tuple(MEMBERS), help="whom to ask")
    parser.add_argument("--offline", type=int, default=OFFLINE_BUDGETS[-1], help="units of work allowed off-line")
    parser.add_argument("--seed", type=int, default=0, help="of what disturbs q for the warm start")
    parser.add_argument("--no-peers", action="store_true", help="leave pinocchio out")
    parser.add_argument("--peer-contacts", type=int, default=300, help="largest problem that pinocchio is asked about")


def run(arguments: argparse.Namespace, progress: Progress) -> Result:
    notes = []
    cases = []
    left_out = 0
    for path in problem_files(arguments.data) if arguments.data.is_dir() else []:
        try:
            problem = read_problem(path)
        except (ValueError, ImportError) as error:
            notes.append(f"Left out: {error}.")
            left_out += 1
            continue
        progress(f"{problem.name}: {problem.contacts} contacts, off-line")
        cases.append(prepare(problem, arguments.seed, arguments.offline))
    if not cases:
        notes.append(f"No contact problems in {arguments.data}: skipped (--data DIR names another folder).")
        return Result({"problems": 0, "left_out": left_out}, not left_out, {}, notes)
    method = arguments.method
    names = [name for name in MEMBERS if name in arguments.solvers or name == method]
    for name in names:
        progress(f"{len(cases)} problems by {name}")
        for case in cases:
            ask(case, name)
    peers: dict[str, Any] = {ENGINE: table(cases, ENGINE)} if ENGINE in names else {}
    if not arguments.no_peers and contact_peers.pinocchio is None:
        notes.append("pinocchio is not installed (pip install pin): absent among the peers.")
    elif not arguments.no_peers:
        for name in contact_peers.NAMES:
            progress(f"problems of at most {arguments.peer_contacts} contacts by {name}")
            for case in cases:
                if case.problem.contacts <= arguments.peer_contacts:
                    ask_peer(case, name)
            peers[name] = table(cases, name)
    missed = shortfalls(cases, method)
    figures: dict[str, Any] = {
        "problems": len(cases),
        "larger": sum(case.larger for case in cases),
        "method": method,
        "share_below_1e2_at_20": round(share(cases, method, "cold", 1e-2, 20), 3),
        "share_below_1e3_at_100": round(share(cases, method, "cold", 1e-3, 100), 3),
        "share_below_1e8_offline": round(sum(case.offline["below"] for case in cases) / len(cases), 3),
        "per_problem": [
            {
                "name": case.problem.name,
                "contacts": case.problem.contacts,
                "asymmetry": _short(case.problem.asymmetry),
                "cold": [_short(value) for value in case.residuals[method, "cold"]],
                "warm": [_short(value) for value in case.residuals[method, "warm"]],
                "offline": case.offline,
            }
            for case in cases
        ],
        "table": {name: table(cases, name) for name in names if name != ENGINE},
        "warm_start": {
            title: counts([[judge(case.tables, case.starts["warm"])[0]] for case in cases if case.larger == larger])
            for title, larger in (("larger", True), ("smaller", False))
        },
        "left_out": left_out,
        "missed": missed,
    }
    notes.append(
        "table: problems below each natural-map residual after " + "/".join(map(str, BUDGETS)) + " units of work (a "
        f"pass over all contacts; of newton an iteration and some passes); larger: from {LARGER} contacts. rho is 1 as "
        "in Siconos, scaled: 1 / mean of W's diagonal. warm: from the answer to a q that differs by 1 %. The shares "
        "are those of the method from cold; off-line both residuals are to be below 1e-8."
    )
    if set(peers) & set(contact_peers.NAMES):
        notes.append(
            f"pinocchio: problems of at most {arguments.peer_contacts} contacts, tolerances 1e-14, W dense; the best "
            "of the start and its answers after up to so many iterations; its time includes factorisations."
        )
    return Result(figures, not missed, peers, notes)


FIGURE = Figure(
    "contact_problems",
    "Frictional contact problems of other simulations: residual by work, cold, warm and off-line, beside pinocchio.",
    add_arguments,
    run,
)
