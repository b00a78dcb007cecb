"""Trees of balls: what the labels save, what unequal leaves cost, and how the leaf radius matters.

Scene: two L-shaped blocks of few large faces, legs 100 mm long. The one that moves comes near the resting one, slides
along it and leaves, on TAN_HALF motions between poses that are given in advance; they never touch, so that every
variant does its work over the whole path. Source: Redon 2002, table 2.1 and section 2.5; the object there is not known.
"""

import time

import numpy as np

from rtcore import motion
from rtcore.collision.sphere_query import REMEMBER_BALLS, REMEMBER_FEATURES, PairMemory, first_contact
from rtcore.geometry.sphere_tree import SphereTree, build_sphere_tree, list_entries
from rtcore.spatial import from_rotation_vector, multiply
from rtcore.tables import COUNTERS, QUERY, RELATIVE

LEG = 0.1
"""Length of the legs of a block, m."""
LEAF_RADIUS = LEG / 20.0
STEPS = 60

VARIANTS = {
    "no tables": 0,
    "S/S table only": REMEMBER_BALLS,
    "AA+PF+FP tables only": REMEMBER_FEATURES,
    "all four tables": REMEMBER_BALLS | REMEMBER_FEATURES,
}


def l_block(leg: float = LEG) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (12, 3) m and faces (20, 3) of an L-shaped block: legs of `leg` length, 0.4 of it wide and thick."""
    outline = leg * np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 0.4], [0.4, 0.4], [0.4, 1.0], [0.0, 1.0]])
    low = np.column_stack([outline, np.zeros(6)])
    vertices = np.concatenate([low, low + [0.0, 0.0, 0.4 * leg]])
    top = [(0, 1, 2), (0, 2, 3), (0, 3, 4), (0, 4, 5)]
    faces = [(a, c, b) for a, b, c in top] + [(a + 6, b + 6, c + 6) for a, b, c in top]
    for k in range(6):
        j = (k + 1) % 6
        faces += [(k, j, j + 6), (k, j + 6, k + 6)]
    return vertices, np.array(faces)


def approach_and_leave(steps: int = STEPS, nearest: float = 0.3 * LEAF_RADIUS) -> np.ndarray:
    """(steps,) RELATIVE records: down to `nearest` (m) above the resting block, along it with a slow turn, and off."""
    up = 0.4 * LEG
    x = np.linspace(0.0, 1.0, steps + 1)
    height = up + nearest + 0.5 * LEG * np.clip(np.abs(2.0 * x - 1.0) - 0.4, 0.0, None)
    places = np.column_stack([0.3 * LEG * (x - 0.2), 0.1 * LEG * np.sin(3.0 * x), height])
    # The turn is about the vertical: the lower face of the moving block stays level.
    angles = 0.5 * x
    out = np.zeros(steps, RELATIVE)
    rest = (0.0, 0.0, 0.0)
    level = (0.0, 0.0, 0.0, 1.0)
    for k in range(steps):
        motion.still(out[k]["first"], rest, level)
        turns = [multiply(from_rotation_vector((0.0, 0.0, float(angles[k + i]))), level) for i in (0, 1)]
        start, end = tuple(places[k]), tuple(places[k + 1])
        motion.between(out[k]["second"], motion.TAN_HALF, start, turns[0], end, turns[1], start)
    return out


def run(first: SphereTree, second: SphereTree, moves: np.ndarray, remember: int) -> dict[str, float]:
    """Tests of each kind, contacts found and seconds for a path: moves are (n,) RELATIVE records."""
    query = np.zeros(1, QUERY)[0]
    query["limit"] = 1.0
    query["time_tolerance"] = 1e-9
    query["position_tolerance"] = 1e-9
    counters = np.zeros(1, COUNTERS)[0]
    memory = PairMemory()
    first_contact(first, second, moves[0], query, np.zeros(1, COUNTERS)[0], memory, remember)  # compiled by now
    begin = time.perf_counter()
    found = sum(first_contact(first, second, move, query, counters, memory, remember).found for move in moves)
    seconds = time.perf_counter() - begin
    tests = {
        "S/S": int(counters["sphere_tests"]),
        "A/A": int(counters["edge_edge"]),
        "P/F": int(counters["vertex_face"]),
        "F/P": int(counters["face_vertex"]),
    }
    return tests | {"total": sum(tests.values()), "contacts": found, "seconds": seconds}


def label_tables(steps: int = STEPS, leaf_radius: float = LEAF_RADIUS) -> dict[str, dict[str, float]]:
    """Tests by kind with none, some and all of the tables of pairs tested (table 2.1), and what shared lists save.

    Keys: those of VARIANTS, each with the counts of `run`; and "memory" with the leaves, the lists, the entries of all
    lists as they are, and as they would be with a list for each leaf.
    """
    tree = build_sphere_tree(*l_block(), leaf_radius)
    moves = approach_and_leave(steps)
    result = {name: run(tree, tree, moves, remember) for name, remember in VARIANTS.items()}
    shared, own = list_entries(tree)
    result["memory"] = {
        "leaves": (len(tree.nodes) + 1) // 2,
        "lists": len(tree.lists),
        "entries shared": shared,
        "entries of own lists": own,
    }
    return result


def leaf_mismatch(
    ratios: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0, 16.0), steps: int = STEPS, remember: int = 0
) -> list[dict[str, float]]:
    """Tests by kind as the leaves of the resting block grow against those of the moving one, without tables.

    Rows: the ratio of the leaf radii, the leaves of the resting block, and the counts of `run`.
    """
    moving = build_sphere_tree(*l_block(), LEAF_RADIUS)
    moves = approach_and_leave(steps)
    rows = []
    for ratio in ratios:
        resting = build_sphere_tree(*l_block(), ratio * LEAF_RADIUS)
        counts = run(resting, moving, moves, remember)
        rows.append({"ratio": ratio, "leaves": (len(resting.nodes) + 1) // 2} | counts)
    return rows


def leaf_radius_sweep(
    shares: tuple[float, ...] = (0.2, 0.1, 0.05, 0.025), steps: int = STEPS
) -> list[dict[str, float]]:
    """Leaves, building time, tests and query time by leaf radius (shares of a leg), the same for both, all tables on.

    Rows: the radius (m), leaves, lists, seconds to build one tree, and the counts of `run`.
    """
    moves = approach_and_leave(steps)
    build_sphere_tree(*l_block(), 0.5 * LEG)  # compiled by now
    rows = []
    for share in shares:
        begin = time.perf_counter()
        tree = build_sphere_tree(*l_block(), share * LEG)
        built = time.perf_counter() - begin
        counts = run(tree, tree, moves, REMEMBER_BALLS | REMEMBER_FEATURES)
        rows.append(
            {
                "leaf radius": share * LEG,
                "leaves": (len(tree.nodes) + 1) // 2,
                "lists": len(tree.lists),
                "seconds to build": built,
            }
            | counts
        )
    return rows
