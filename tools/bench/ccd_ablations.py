"""The thesis' comparisons on generated scenes: the same motions for every variant, counters and time ratios."""

import argparse
from collections.abc import Callable

import numpy as np

from bridge.separation import triangles_distance
from rtcore.collision.elementary import interval
from rtcore.motion import pose
from tools.ablation import back_faces, box_tests, sphere_trees, traversal
from tools.ablation.replay import POSITION_SHARE, TIME_TOLERANCE, Answers, MeshPair, Moves, pair_of, together, walk
from tools.bench.common import Figure, Progress, Result
from tools.bench.mesh_ride import distances
from tools.exact.intersect import posed
from tools.scenes import scene

LONG = 15
"""Ticks of the thesis' step: 2604 actions in 39.1 s."""
SAMPLED = 16
"""Of the motions of one tick every so many'th is asked about."""
SLIDING = ("approach", "slide")
"""Phases of the two doors that are replayed."""
MEASURED = 4
"""Motions per comparison whose distance is measured."""
COUNTED = (
    "box_tests",
    "box_discrete",
    "box_continuous",
    "sphere_tests",
    "receding_tests",
    "receding",
    "edge_edge",
    "vertex_face",
    "face_vertex",
    "iterations",
    "reused",
)


class Times:
    """Do all variants say the same? Where their times differ by more than the tolerances, is the latest still free?

    Along a surface times differ a lot with a hair's breadth of distance; what counts is that none is late.
    """

    def __init__(self) -> None:
        self.differing = 0
        self.nearest = np.inf
        self.truncated = 0

    def compare(self, pair: MeshPair, moves: Moves, rows: dict[str, Answers]) -> None:
        """Measure the distance at the latest time of the motions that the variants differ most about."""
        self.truncated += sum(row.truncated for row in rows.values())
        times = np.array([row.times for row in rows.values()])
        way = (times.max(axis=0) - times.min(axis=0)) * moves.paths
        over = way / (POSITION_SHARE * moves.separation + TIME_TOLERANCE * moves.paths)
        self.differing += int((over > 1.0).sum())
        second = pair.triangles["vertices"][(pair.second_root + 1) // 2 :]
        first = pair.triangles["vertices"][: (pair.second_root + 1) // 2]
        for i in np.argsort(-over, kind="stable")[:MEASURED]:
            if over[i] > 1.0:
                position, turn = pose(moves.relatives[i]["second"], times[:, i].max())
                there = posed(second, np.array(position), np.array(turn))
                gap = triangles_distance(first, there, 4.0 * moves.separation)
                self.nearest = min(self.nearest, gap / moves.separation)


def shown(rows: dict[str, Answers], base: str) -> dict[str, dict[str, float]]:
    """Rows of a table: counters that are not 0, time, and time as a share of that of the row `base`."""
    table = {}
    for name, row in rows.items():
        counts = {key: row.counters[key] for key in COUNTED if row.counters[key]}
        table[name] = counts | {
            "ms": round(1e3 * row.seconds, 1),
            "time_ratio": round(row.seconds / rows[base].seconds, 3),
        }
    return table


def _ratio(rows: dict[str, Answers], one: str, other: str, counter: str | None = None) -> float:
    if counter is None:
        return round(rows[one].seconds / rows[other].seconds, 3)
    return round(rows[one].counters[counter] / max(rows[other].counters[counter], 1), 3)


def _elementary(answers: Answers) -> int:
    return sum(answers.counters[key] for key in ("edge_edge", "vertex_face", "face_vertex"))


class Directions:
    """What the thesis found, and whether it is so here."""

    def __init__(self) -> None:
        self.rows: list[dict] = []

    def claim(self, table: str, thesis: str, here: dict[str, float], agrees: bool, otherwise: str) -> None:
        row = {"table": table, "thesis": thesis, "here": here, "agrees": bool(agrees)}
        self.rows.append(row if agrees else row | {"why_not": otherwise})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--triangles", type=int, help="of both scenes; their usual numbers when absent")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=3, help="replays of each variant; the fastest counts")
    parser.add_argument("--share", type=float, default=1.0, help="share of each phase's motions that is replayed")


def _shortened(moves: Moves, share: float) -> Moves:
    return moves if share >= 1.0 else moves.every(max(1, round(1.0 / share)))


def run(arguments: argparse.Namespace, progress: Progress) -> Result:
    figures: dict = {}
    times, directions = Times(), Directions()
    rounds = arguments.rounds

    progress("trees of balls: table 2.1")
    labels = sphere_trees.label_tables()
    figures["T2.1"] = labels
    totals = {name: labels[name]["total"] / labels["no tables"]["total"] for name in sphere_trees.VARIANTS}
    directions.claim(
        "T2.1",
        "remembering pairs of balls saves 17 % of all tests, all four tables 20 %",
        {name: round(value, 3) for name, value in totals.items()},
        totals["all four tables"] < totals["S/S table only"] < 1.0,
        "the leaves of these blocks share few lists",
    )

    progress("motor in door: scene, trees, motions")
    lifter = scene("motor_in_door", arguments.triangles, arguments.seed)
    eps = distances(lifter)
    pair = pair_of(lifter)
    phases = {phase.name: phase for phase in lifter.phases}
    ticks = {name: walk(pair, phase, eps) for name, phase in phases.items()}
    sets = {
        "15ms": _shortened(together([walk(pair, phase, eps, LONG) for phase in phases.values()]), arguments.share),
        "1ms": _shortened(together([moves.every(SAMPLED) for moves in ticks.values()]), arguments.share),
    }
    figures["motor_in_door"] = {
        "triangles": lifter.triangles,
        "separation_mm": round(1e3 * eps["eps_alert"], 4),
        "motions": {name: len(moves.limits) for name, moves in sets.items()},
    }
    progress("compiling a query that obeys the choice of box test")
    kernel = box_tests.make_kernel()
    box_tests.discrete_first(pair, sets["15ms"].every(200), kernel)
    all_tables: dict[str, dict[str, dict[str, Answers]]] = {}
    studies: dict[str, tuple[Callable[[Moves], dict[str, Answers]], str]] = {
        "T3.2-3.3 end poses first": (lambda m: box_tests.discrete_first(pair, m, kernel, rounds), "none"),
        "T3.5-3.6 fewer axes": (lambda m: box_tests.partial_axes(pair, m, kernel, rounds), "complete both"),
        "k of the subdivision": (lambda m: box_tests.subdivision_constant(pair, m, kernel, rounds), "k = 0.15"),
        "T3.4 passing the time on": (lambda m: traversal.passing_time(pair, m, rounds), "without"),
        "owner masks": (lambda m: traversal.owner_masks(pair, m, rounds), "without"),
    }
    for study, (ask, base) in studies.items():
        for steps, moves in sets.items():
            progress(f"motor in door, {steps}: {study}")
            rows = ask(moves)
            times.compare(pair, moves, rows)
            all_tables.setdefault(study, {})[steps] = rows
            figures.setdefault(study, {})[steps] = shown(rows, base)
    progress("motor in door, 1ms: coherence")
    paths = list(ticks.values())
    fronts = traversal.coherence(pair, paths, rounds)
    figures["coherence"] = {
        "motions": sum(len(path.limits) for path in paths),
        **{
            phase: {
                "us_without": round(1e6 * a.seconds / len(path.limits), 1),
                "us_with": round(1e6 * b.seconds / len(path.limits), 1),
                "time_ratio": round(b.seconds / a.seconds, 3),
                "box_tests_ratio": round(b.counters["box_tests"] / max(a.counters["box_tests"], 1), 3),
            }
            for phase, path, a, b in zip(ticks, paths, fronts["without"], fronts["with"], strict=True)
        },
    }
    progress("compiling the query with bisection in interval arithmetic")
    bisecting = box_tests.make_kernel(interval)
    for steps, moves in sets.items():
        progress(f"motor in door, {steps}: elementary tests")
        rows = box_tests.elementary_tests(pair, moves, kernel, bisecting, rounds)
        times.compare(pair, moves, rows)
        figures.setdefault("elementary tests", {})[steps] = shown(rows, "bisection")

    progress("two doors: scene, trees, motions")
    doors = scene("two_doors", arguments.triangles, arguments.seed)
    eps = distances(doors)
    pair = pair_of(doors)
    sliding = [phase for phase in doors.phases if phase.name in SLIDING]
    sets = {
        "15ms": _shortened(together([walk(pair, phase, eps, LONG) for phase in sliding]), arguments.share),
        "1ms": _shortened(together([walk(pair, phase, eps).every(SAMPLED) for phase in sliding]), arguments.share),
    }
    figures["two_doors"] = {
        "triangles": doors.triangles,
        "depth": int(pair.nodes["depth"].max()),
        "separation_mm": round(1e3 * eps["eps_alert"], 4),
        "motions": {name: len(moves.limits) for name, moves in sets.items()},
    }
    progress("compiling a query that culls by recoil vectors")
    culling = back_faces.make_kernel()
    cones = back_faces.with_recoil(pair)
    back_faces.methods(cones, sets["1ms"].every(200), culling)
    for steps, moves in sets.items():
        progress(f"two doors, {steps}: table 4.1")
        rows = back_faces.methods(cones, moves, culling, rounds)
        times.compare(pair, moves, rows)
        all_tables.setdefault("T4.1", {})[steps] = rows
        figures.setdefault("T4.1 back faces", {})[steps] = shown(rows, "none")
    figures["T4.2-4.3 recoil vectors"] = {
        "cones_of_axis_and_angle": {
            "build_s_top_down": round(back_faces.cone_seconds(pair, False), 3),
            "build_s_bottom_up": round(back_faces.cone_seconds(pair, True), 3),
        }
    }
    strategies: dict[tuple[str, int], tuple[back_faces.Cones, Answers]] = {}
    none = all_tables["T4.1"]["15ms"]["none"]
    for strategy, bottom_up in (("top-down", False), ("bottom-up", True)):
        for most in range(3, 10):
            progress(f"two doors, 15ms: tables 4.2 and 4.3, {strategy}, at most {most}")
            cones = back_faces.with_recoil(pair, most, bottom_up)
            answers = back_faces.by_vectors(cones, sets["15ms"], culling, rounds)
            times.compare(pair, sets["15ms"], {"none": none, "here": answers})
            strategies[strategy, most] = cones, answers
            figures["T4.2-4.3 recoil vectors"][f"{strategy} {most}"] = {
                "ms": round(1e3 * answers.seconds, 1),
                "time_ratio": round(answers.seconds / none.seconds, 3),
                "box_tests": answers.counters["box_tests"],
                "elementary": _elementary(answers),
                "receding_tests": answers.counters["receding_tests"],
                "receding": answers.counters["receding"],
                "inner_nodes_with_any": round(cones.inner_share(), 3),
                "build_s": round(cones.seconds, 3),
                "memory_kB": round(cones.memory / 1024),
                "sizes_0_to_9": " ".join(map(str, cones.sizes())),
            }
    _judge(directions, all_tables, strategies)
    figures["directions"] = {f"{row['table']}: {row['thesis']}": _said(row) for row in directions.rows}
    figures["agreeing"] = f"{sum(row['agrees'] for row in directions.rows)} of {len(directions.rows)}"
    figures["differing"] = times.differing
    figures["least_distance_over_separation"] = round(times.nearest, 9) if times.differing else 1.0
    figures["truncated"] = times.truncated
    notes = [
        "Times are processor time of the thread, the fastest of the rounds, without display or dynamics.",
        "15ms: every 15th scripted pose, the thesis' step; 1ms: motions of one tick.",
    ]
    return Result(figures, times.nearest >= 1.0 - 1e-6 and times.truncated == 0, notes=notes)


def _said(row: dict) -> str:
    numbers = ", ".join(f"{name} {value:g}" for name, value in row["here"].items())
    return f"{'agrees' if row['agrees'] else 'does not agree'} ({numbers})" + (
        "" if row["agrees"] else f": {row['why_not']}"
    )


def _judge(
    directions: Directions,
    tables: dict[str, dict[str, dict[str, Answers]]],
    strategies: dict[tuple[str, int], tuple[back_faces.Cones, Answers]],
) -> None:
    """Compare with what the thesis found, at its own step."""
    rows = tables["T3.2-3.3 end poses first"]["15ms"]
    here = {name: _ratio(rows, name, "none") for name in list(box_tests.DISCRETE_FIRST)[1:]}
    directions.claim(
        "T3.2",
        "a test of an end pose first saves a fourth of the time (T 55.99 to 41.83 and 41.21 s)",
        here,
        max(here["final only"], here["initial only"]) < 1.0,
        "boxes that overlap at an end are few here: most pairs are apart and pay for the test in vain",
    )
    here = {
        "time, both / final": _ratio(rows, "both, final first", "final only"),
        "continuous, both / final": _ratio(rows, "both, final first", "final only", "box_continuous"),
    }
    directions.claim(
        "T3.3",
        "the initial test after the final one saves 6 % of the continuous tests and 7 % of the time",
        here,
        max(here.values()) < 1.0,
        "it saves continuous tests as there, but one of those costs only a few tests of one pose here, not thirty",
    )
    rows = tables["T3.4 passing the time on"]["15ms"]
    here = {"time": _ratio(rows, "with", "without"), "boxes": _ratio(rows, "with", "without", "box_tests")}
    here["elementary"] = round(_elementary(rows["with"]) / _elementary(rows["without"]), 3)
    directions.claim(
        "T3.4",
        "passing the time of contact on halves the time (T 79.59 to 38.93 s, boxes x 0.76, elementary x 0.44)",
        here,
        max(here.values()) < 1.0,
        "no phase of this run is blocked for long",
    )
    rows = tables["T3.5-3.6 fewer axes"]["15ms"]
    names = list(box_tests.PARTIAL)
    times = {name: _ratio(rows, name, "complete both") for name in names}
    boxes = {name: _ratio(rows, name, "complete both", "box_tests") for name in names}
    directions.claim(
        "T3.5, tests",
        "six axes only mean more tests of boxes (N x 1.28 to 1.31)",
        boxes,
        min(boxes[name] for name in names[:3]) > 1.0,
        "what only edges separate is rare here",
    )
    directions.claim(
        "T3.5, time",
        "and more time (T x 1.13 to 1.19)",
        times,
        times[names[0]] > 1.0 and times[names[2]] > 1.0,
        "the nine axes of pairs of edges cost more here than the boxes that they alone separate",
    )
    directions.claim(
        "T3.6",
        "all axes for one pose but six over the interval is by far the worst (T x 6): where they disagree it is halved",
        {"time": times[names[1]], "continuous": _ratio(rows, names[1], "complete both", "box_continuous")},
        times[names[1]] >= max(times[names[0]], times[names[2]], 1.0),
        "halving is bounded in depth here, so that boxes which only edges separate are given up after six halvings",
    )
    directions.claim(
        "T3.6, text",
        "without halving there are more tests of boxes and more time (N x 1.52, T x 1.48)",
        {"time": times[names[4]], "boxes": boxes[names[4]], "time, all axes": times[names[5]]},
        min(times[names[4]], boxes[names[4]]) > 1.0,
        "at a step in which nothing goes farther than a few millimetres halving removes hardly any pair",
    )
    rows = tables["T4.1"]["15ms"]
    culling = list(back_faces.VARIANTS)[1:]
    here = {name: round(_elementary(rows[name]) / _elementary(rows["none"]), 3) for name in culling}
    directions.claim(
        "T4.1, tests",
        "culling halves the elementary tests, at the leaves as on the way down",
        here,
        max(here.values()) < 1.0,
        "the two sides look at one another across a gap and slide: few of their faces recede",
    )
    here = {name: _ratio(rows, name, "none") for name in culling} | {
        "boxes, hierarchical vectors": _ratio(rows, culling[3], "none", "box_tests"),
        "inner nodes with a cone": round(strategies["top-down", 6][0].inner_share(), 3),
    }
    directions.claim(
        "T4.1, time",
        "at the leaves it saves a fifth of the time, on the way down a third (T 49.81, 39.31, 32.69 s; boxes x 0.65)",
        here,
        here[culling[2]] < here[culling[0]] < 1.0,
        "the time goes into tests of boxes, of which culling saves few: a node of a thin sheet has both sides of it in "
        "it and no cone until far down, and what recedes is mostly found at the leaves",
    )
    here = {
        f"{strategy} {most} / 3": round(strategies[strategy, most][1].seconds / strategies[strategy, 3][1].seconds, 3)
        for strategy in ("top-down", "bottom-up")
        for most in (6, 9)
    } | {
        "receding, top-down 9 / 3": round(
            strategies["top-down", 9][1].counters["receding"]
            / max(strategies["top-down", 3][1].counters["receding"], 1),
            3,
        )
    }
    directions.claim(
        "T4.2",
        "more recoil vectors are slightly faster (r_max 3 to 9: T 33.83 to 31.88 s top-down, 35.03 to 33.69 bottom-up)",
        here,
        max(here["top-down 9 / 3"], here["bottom-up 9 / 3"]) < 1.0,
        "more nodes recede, but above six no more of them do, and each vector is one more product per corner",
    )
    here = {
        str(most): round(
            strategies["top-down", most][1].counters["receding"]
            / max(strategies["bottom-up", most][1].counters["receding"], 1),
            3,
        )
        for most in (3, 6, 9)
    }
    directions.claim(
        "T4.2, strategies",
        "top-down cones are the tighter ones: gains of 47 to 56 % against 42 to 48 %",
        here,
        min(here.values()) > 1.01,
        "cones of single triangles, which both strategies make alike, do nearly all of the culling",
    )
    here = {
        str(most): round(strategies["top-down", most][0].seconds / strategies["bottom-up", most][0].seconds, 2)
        for most in (3, 6, 9)
    }
    directions.claim(
        "T4.3",
        "building top-down takes 12 to 24 times as long as bottom-up (137 to 231 s against 6 to 15 s)",
        here,
        min(here.values()) > 1.0,
        "a hull in a plane replaces the annealing there: it takes hardly longer for many normals than for few",
    )


FIGURE = Figure(
    "ccd_ablations",
    "The thesis' tables 2.1, 3.2-3.6 and 4.1-4.3 on generated scenes: counters, time ratios, directions of effect.",
    add_arguments,
    run,
    among_others=("--rounds", "1", "--share", "0.3"),
)
