"""A meshed part carried through a meshed assembly at 1 kHz by the daemon's step, beside python-fcl and coal."""

import argparse
import math
import time
from dataclasses import replace

import numpy as np

from tools.ablation import traversal
from tools.ablation.replay import Moves, make_query, pair_of, replay_with_front, together, walk
from tools.bench import ccd_peers
from tools.bench.common import Figure, Progress, Result, percentiles
from tools.bench.mesh_ride import Carrier, Loaded, Ride, load, ride
from tools.exact.intersect import judge, posed
from tools.scenes import MOST, NAMES, Scene, scene
from tools.scenes.clearance import placed

MAIN, LARGE = "door_in_body", "pylon_part"
MORE = 64_800
"""Triangles of the scene in which 29 k do not move."""
SIZES = (1_000, 5_000, 29_000, 80_000, MOST)
"""Numbers of triangles of the sweep."""
P50_US, P99_US, LARGE_P99_US = 150.0, 500.0, 800.0
TRUNCATED = 0.01
TREE_SECONDS, TREE_TRIANGLES = 10.0, 45_000
FCL_RATIO = 10.0
ABLATED = 16
"""Of the motions every so many'th is replayed to see what a switch is worth."""
NEAREST = 20
"""Ticks with the least gaps that are checked in any case."""
JUDGED = 2
"""Ticks per phase that are judged exactly."""


def among_more(seed: int) -> Scene:
    """The part of the usual scene in an assembly of finer triangles: 16 k move among 29 k that do not."""
    usual, finer = scene(MAIN, None, seed), scene(MAIN, MORE, seed)
    parts = [usual.moving, *(part for part in finer.parts if not part.moving)]
    return replace(usual, name=f"{MAIN}, finer", parts=parts)


def phase_figure(ran: Ride) -> dict:
    """Numbers of one phase."""
    n = len(ran.wall_us)
    tests = sum(ran.counters[name] for name in ("box_tests", "edge_edge", "vertex_face", "face_vertex"))
    return {
        "ccd_us": percentiles(ran.wall_us, 1),
        "cpu_us": percentiles(ran.cpu_us, 1) | {"mean": round(float(ran.cpu_us.mean()), 1)},
        "ticks": n,
        "truncated": int(ran.truncated.sum()),
        "contacts_left_out": int(ran.incomplete.sum()),
        "tests_per_tick": round(tests / n, 1),
        "units": percentiles(ran.units, 0),
        "per_tick": {name: round(count / n, 2) for name, count in ran.counters.items() if count},
        "least_gap_mm": round(1e3 * float(ran.gaps[ran.gaps >= 0].min()), 6) if (ran.gaps >= 0).any() else -1.0,
        "ticks_to_settle": ran.settled,
    }


class Checker:
    """Off-line judge of the poses at the ends of ticks: python-fcl where it is installed, and exact arithmetic."""

    def __init__(self, loaded: Loaded, every: int) -> None:
        moving = loaded.scene.moving
        others = [part for part in loaded.scene.parts if not part.moving]
        self.every = every
        self.floor = loaded.eps["eps_alert"] * (1.0 - 1e-6)
        self.fcl = None if ccd_peers.fcl is None else ccd_peers.FclScene(moving, others)
        self.moving = np.asarray(moving.vertices, dtype=float)[moving.faces]
        self.others = np.concatenate([placed(part) for part in others])
        self.counted = {"ticks_collided": 0, "ticks_measured": 0, "ticks_judged": 0, "below_alert": 0}
        self.penetrations = 0
        self.least = math.inf

    def check(self, ran: Ride) -> None:
        """Look at the sampled ticks of a ride and at those with the least gaps."""
        near = np.flatnonzero(ran.gaps >= 0.0)
        worst = near[np.argsort(ran.gaps[near], kind="stable")[:NEAREST]]
        sampled = np.arange(self.every - 1, len(ran.after), self.every)
        ticks = np.unique(np.concatenate([worst, sampled]))
        bad: set[int] = set()
        gaps = {}
        if self.fcl is not None:
            for i in ticks:
                self.counted["ticks_collided"] += 1
                if self.fcl.collides(ran.after[i]):
                    bad.add(int(i))
            for i in np.unique(np.concatenate([worst[: NEAREST // 2], sampled[:: max(1, len(sampled) // 20)]])):
                self.counted["ticks_measured"] += 1
                gaps[int(i)] = self.fcl.distance(ran.after[i])
        # Without a library every tick looked at is judged; else those that it finds nearest.
        chosen = sorted(gaps, key=lambda i: gaps[i])[:JUDGED] if gaps else ticks[:: max(1, len(ticks) // 10)].tolist()
        for i in chosen:
            self.counted["ticks_judged"] += 1
            pose = ran.after[i]
            verdict = judge(self.others, posed(self.moving, pose[:3], pose[3:]))
            gaps[i] = verdict.upper
            if verdict.meeting:
                bad.add(i)
        self.penetrations += len(bad)
        self.counted["below_alert"] += sum(gap < self.floor for gap in gaps.values())
        self.least = min([self.least, *gaps.values()])


class Peers:
    """Other libraries asked about pose pairs that the step was asked about, right after the phase."""

    def __init__(self, loaded: Loaded, samples: int) -> None:
        moving = loaded.scene.moving
        self.timed, self.absent = ccd_peers.peers(moving, [part for part in loaded.scene.parts if not part.moving])
        self.samples = samples
        self.phases: dict[str, dict] = {name: {} for name in self.timed}
        self.spent = {name: [0.0, 0.0] for name in self.timed}

    def ask(self, phase: str, ran: Ride) -> None:
        """Time of each peer on pose pairs spread over a phase."""
        n = len(ran.goals)
        k = min(self.samples, n)
        chosen = ((np.arange(k) + 0.5) * n / k).astype(int)
        ours = ran.wall_us[chosen]
        for name, timed in self.timed.items():
            theirs = np.array([timed(ran.before[i], ran.goals[i]) for i in chosen])
            self.phases[name][phase] = {
                "samples": len(chosen),
                "us": round(float(np.median(theirs)), 1),
                "ours_us": round(float(np.median(ours)), 1),
                "times_ours": round(float(np.median(theirs / ours)), 2),
            }
            self.spent[name][0] += float(theirs.sum())
            self.spent[name][1] += float(ours.sum())

    def figures(self) -> dict[str, dict]:
        """By peer: median us by phase, and how many times the sum of ours the sum of its times is."""
        return {
            name: {"phases": self.phases[name], "times_ours_in_all": round(theirs / ours, 2)}
            for name, (theirs, ours) in self.spent.items()
        }


def ablations(made: Scene, eps: dict[str, float], progress: Progress) -> tuple[dict[str, float], dict[str, dict]]:
    """Time without each optimisation as a multiple of that with it, in all and by phase."""
    pair = pair_of(made)
    ratios: dict[str, float] = {}
    detail: dict[str, dict] = {}
    paths: dict[str, Moves] = {}
    for phase in made.phases:
        progress(f"{made.name}, {phase.name}: motions for the ablations")
        paths[phase.name] = walk(pair, phase, eps)
    sampled = {name: path.every(ABLATED) for name, path in paths.items()}
    traversal.switches(pair, together([moves.every(50) for moves in sampled.values()]))
    spent: dict[str, list[float]] = {}
    for phase_name, moves in sampled.items():
        progress(f"{made.name}, {phase_name}: ablations")
        rows = traversal.switches(pair, moves)
        for name, (on, off) in rows.items():
            _note(spent, detail, name, phase_name, on.seconds, off.seconds)
    roots = {name: moves.every(1) for name, moves in sampled.items()}
    replay_with_front(pair, paths[made.phases[0].name].every(1000), make_query(eps["eps_alert"]))
    for phase_name, path in paths.items():
        front = replay_with_front(pair, path, make_query(path.separation))
        usual = traversal.replay(pair, roots[phase_name], make_query(path.separation))
        _note(
            spent,
            detail,
            "coherence",
            phase_name,
            front.seconds / len(path.limits),
            usual.seconds / len(roots[phase_name].limits),
        )
    for name, (on, off) in spent.items():
        ratios[name] = round(off / on, 3)
    return ratios, detail


def _note(spent: dict, detail: dict, name: str, phase: str, on: float, off: float) -> None:
    total = spent.setdefault(name, [0.0, 0.0])
    total[0] += on
    total[1] += off
    detail.setdefault(name, {})[phase] = round(off / on, 3)


def growth(rows: dict[int, dict[str, dict]], key: str) -> dict[str, float]:
    """Exponent of the growth of the time with the number of triangles, by phase: slope in logarithms."""
    sizes = np.log(sorted(rows))
    exponents = {}
    for name in next(iter(rows.values())):
        values = np.log([max(rows[size][name][key], 1e-3) for size in sorted(rows)])
        exponents[name] = round(float(np.polyfit(sizes, values, 1)[0]), 3)
    return exponents


def sweep(known: dict[int, dict], name: str, seed: int, units: int | None, progress: Progress) -> dict:
    """Ride through a scene at several numbers of triangles; known: phases of those ridden through already."""
    rows = dict(known)
    for size in SIZES:
        if any(0.8 * size <= done <= 1.2 * size for done in known):
            continue
        progress(f"{name} of {size:,} triangles")
        loaded = load(scene(name, size, seed))
        rows[loaded.scene.triangles] = {
            phase.name: phase_figure(ride(loaded, phase, units)) for phase in loaded.scene.phases
        }
    times = {
        size: {phase: {**row["cpu_us"], "truncated": row["truncated"]} for phase, row in rows[size].items()}
        for size in sorted(rows)
    }
    exponents = {key: growth(times, key) for key in ("p50", "p99", "mean")}
    cut = max(row["truncated"] / row["ticks"] for phases in rows.values() for row in phases.values())
    sizes = {f"{size}": phases for size, phases in times.items()}
    return {**sizes, "growth_exponent": exponents, "truncated": round(cut, 4)}


def ride_through(
    loaded: Loaded, units: int | None, every: int, peers: Peers | None, progress: Progress
) -> tuple[dict, dict, Checker]:
    """All phases of a scene, each checked off-line: (figures by phase, the scene's own figures, the checker)."""
    checker = Checker(loaded, every)
    phases = {}
    for phase in loaded.scene.phases:
        progress(f"{loaded.scene.name}, {phase.name}: {len(phase.poses) - 1} ticks")
        ran = ride(loaded, phase, units)
        phases[phase.name] = phase_figure(ran)
        if peers is not None and peers.timed:
            progress(f"{loaded.scene.name}, {phase.name}: beside {', '.join(peers.timed)}")
            peers.ask(phase.name, ran)
        progress(f"{loaded.scene.name}, {phase.name}: off-line check")
        checker.check(ran)
    about = {
        "scene": loaded.scene.name,
        "moving_triangles": len(loaded.scene.moving.faces),
        "triangles": loaded.scene.triangles,
        "eps_mm": {name: round(1e3 * value, 4) for name, value in loaded.eps.items()},
        "tree_seconds": {
            name: f"{count} triangles {seconds} s" for name, (count, seconds) in loaded.tree_seconds.items()
        },
        "penetrations": checker.penetrations,
        "checked": dict(checker.counted),
        "least_distance_mm": round(1e3 * checker.least, 6),
    }
    return phases, about, checker


def within(phases: dict, p50: float, p99: float) -> list[str]:
    """Which bars the phases of a scene miss, one sentence each."""
    missed = []
    for name, phase in phases.items():
        for key, bar in (("p50", p50), ("p99", p99)):
            if phase["ccd_us"][key] > bar:
                missed.append(f"{name}: {key} {phase['ccd_us'][key]} us is above {bar:g}")
        if phase["truncated"] > TRUNCATED * phase["ticks"]:
            missed.append(f"{name}: {phase['truncated']} of {phase['ticks']} ticks were truncated")
    return missed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--scene", choices=NAMES, help=f"only this one (default: {MAIN}, and {LARGE} for the 80 k bar)")
    parser.add_argument("--triangles", type=int, help="of the scene; its usual number when absent")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--units", type=int, help="of work per tick; the configuration's default when absent")
    parser.add_argument("--sweep", action="store_true", help="with a scene or a number of triangles given: sweep too")
    parser.add_argument("--check-every", type=int, default=25, help="check every so many'th tick off-line")
    parser.add_argument("--samples", type=int, default=50, help="pose pairs per phase that the peers are asked about")
    parser.add_argument("--no-peers", action="store_true", help="leave the other libraries out")
    parser.add_argument("--no-ablations", action="store_true", help="leave the optimisations on")


def run(arguments: argparse.Namespace, progress: Progress) -> Result:
    began = time.perf_counter()
    whole = arguments.scene is None and arguments.triangles is None
    name = arguments.scene or MAIN
    progress(f"{name}: scene and trees")
    loaded = load(scene(name, arguments.triangles, arguments.seed))
    overhead = Carrier(loaded, loaded.scene.phases[0]).overhead_us()
    peers = None if arguments.no_peers else Peers(loaded, arguments.samples)
    phases, about, checker = ride_through(loaded, arguments.units, arguments.check_every, peers, progress)
    missed = within(phases, P50_US, P99_US if loaded.scene.name != LARGE else LARGE_P99_US)
    penetrations, below = checker.penetrations, checker.counted["below_alert"]
    figures: dict = {
        "phases": phases,
        "penetrations": penetrations,
        "ablations": {},
        **{key: value for key, value in about.items() if key != "penetrations"},
        "call_overhead_us": {"clock": overhead[0], "cpu": overhead[1]},
    }
    notes = []
    peer_rows: dict = {}
    if peers is not None:
        peer_rows = peers.figures()
        notes += peers.absent
        for peer, bar in (("fcl_continuous", FCL_RATIO), ("coal_distance", 1.0)):
            if peer in peer_rows and not peer_rows[peer]["times_ours_in_all"] > bar:
                missed.append(f"{peer} takes {peer_rows[peer]['times_ours_in_all']} times as long, {bar:g} wanted")
    if not arguments.no_ablations:
        figures["ablations"], figures["ablations_by_phase"] = ablations(loaded.scene, loaded.eps, progress)
    trees = dict(loaded.tree_seconds)
    if whole:
        for title, p50, p99 in (("among_more", P50_US, P99_US), (LARGE, math.inf, LARGE_P99_US)):
            progress(f"{title}: scene and trees")
            made = scene(LARGE, None, arguments.seed) if title == LARGE else among_more(arguments.seed)
            other = load(made)
            rows, other_about, other_checker = ride_through(
                other, arguments.units, arguments.check_every, None, progress
            )
            figures[title] = {"phases": rows, **other_about}
            missed += [f"{title}, {text}" for text in within(rows, p50, p99)]
            penetrations += other_checker.penetrations
            below += other_checker.counted["below_alert"]
            trees |= other.tree_seconds
        figures["penetrations"] = penetrations
    if whole or arguments.sweep:
        figures["sweep"] = sweep({loaded.scene.triangles: phases}, name, arguments.seed, arguments.units, progress)
        for phase, exponent in figures["sweep"]["growth_exponent"]["mean"].items():
            if exponent >= 1.0:
                missed.append(f"{phase}: the time grows with the number of triangles to the power {exponent}")
        cut = figures["sweep"]["truncated"]
        if cut > TRUNCATED:
            # A tick that the budget ends costs what the budget allows: such growth says nothing.
            missed.append(f"sweep: in one of the phases {100 * cut:.0f} % of the ticks were truncated")
    slow = max(seconds * min(TREE_TRIANGLES / count, 1.0) for count, seconds in trees.values())
    if slow > TREE_SECONDS:
        missed.append(f"trees and cones of {TREE_TRIANGLES:,} triangles take {slow:.1f} s")
    if penetrations or below:
        missed.append(f"{penetrations} ticks in penetration, {below} nearer than eps_alert")
    figures["missed"] = missed
    figures["seconds"] = round(time.perf_counter() - began, 1)
    notes.append(
        "ccd_us: the call of rtcore.step from Python by the clock, call_overhead_us of it for the call; cpu_us: the "
        "same in processor time of the thread, which is what the sweep shows. The generated door has "
        f"{about['moving_triangles']} of {about['triangles']} triangles: the part counts in the assembly; in "
        "among_more it moves among 29 k others."
        if name == MAIN
        else "ccd_us: the call of rtcore.step from Python by the clock; cpu_us: in processor time of the thread."
    )
    notes.append(
        "ablations: time without / with the switch, queries from the roots; coherence: from the roots / front."
    )
    notes.append(
        "fcl_continuous: continuousCollide along a screw, its default solver (conservative advancement); "
        "naive: ten discrete tests, which miss what lies between. coal_distance: at the pose before the tick only."
    )
    return Result(figures, not missed, peer_rows, notes)


FIGURE = Figure(
    "ccd_scene",
    "A 16 k part moved through a 29 k assembly at 1 kHz: time, tests, penetrations; peers python-fcl and coal.",
    add_arguments,
    run,
)
