"""However many queries: bodies pressed together, slid and turned come no nearer than their separation by rounding."""

import mesh_pairs
import numpy as np
import pytest
from mesh_pairs import Pair
from numba import njit
from scipy.spatial.transform import Rotation

from rtcore import motion
from rtcore.collision.front import coherent_contact
from rtcore.collision.pair_state import make_front, make_query_work
from rtcore.spatial import add, cross, normalise, quaternion, rotate, scaled, vector
from rtcore.tables import COUNTERS, HIT, POSE, RELATIVE

WORK = make_query_work()
SEPARATION = 1e-3
TOLERANCE = 1e-6
QUERIES = 20_000
ROUNDING = 1e-12
"""m: some 20 pads. What the query may lose once, for features of a metre, by the rounding of its own distances."""

PRESS, SLIDE, SPIN, ROCK, ALL = 1, 2, 4, 8, 15


@njit(cache=True)
def drive(nodes, triangles, root, relative, pose, query, front, entries, work, counters, hit, moves, modes, normal):
    """Ask and move once per row of moves (numbers in -1..1); returns how many of the ways were free in part at least.

    What is asked in one tick out of two is to go into the first body (PRESS); else to go along it and turn, about the
    normal (SPIN), or about a line through a point on the normal below the nearest one, so that this one starts to move
    along the surface and then bends into it (ROCK).
    """
    free = 0
    for n in range(len(moves)):
        place = vector(pose.position)
        x = moves[n]
        tangent = cross(normal, (x[0], x[1], x[2]))
        shift = (0.0, 0.0, 0.0)
        turn = (0.0, 0.0, 0.0)
        pivot = place
        if modes & 1 and n % 2 == 0:
            shift = scaled(normal, -1e-4)
            if x[3] > 0.0:
                shift = add(shift, scaled(tangent, 1e-4))
                turn = scaled(normal, 1e-3 * x[4])
        else:
            if modes & 2:
                shift = scaled(tangent, 1e-4)
            if modes & 4:
                turn = scaled(normal, 1e-3 * x[3])
            if modes & 8:
                turn = add(turn, scaled(tangent, 1e-4 * x[4]))
                pivot = add(add(place, rotate(quaternion(pose.orientation), (0.5, 0.5, 0.5))), scaled(normal, -0.3))
        motion.from_twist(relative.second, motion.SCREW, place, quaternion(pose.orientation), shift, turn, pivot)
        coherent_contact(nodes, triangles, relative, query, front, entries, work, counters, hit)
        if hit.time > 0.0:
            free += 1
            position, orientation = motion.pose(relative.second, hit.time)
            orientation = normalise(orientation)
            for k in range(3):
                pose.position[k] = position[k]
            for k in range(4):
                pose.orientation[k] = orientation[k]
    return free


def long_matrix(orientation):
    x, y, z, w = np.asarray(orientation, dtype=np.longdouble)
    rows = np.array(
        [
            [w * w + x * x - y * y - z * z, 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), w * w - x * x + y * y - z * z, 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), w * w - x * x - y * y + z * z],
        ]
    )
    return rows / (x * x + y * y + z * z + w * w)


def placed(mesh, position, orientation):
    """(m, 3, 3) corners in the scene, in long double."""
    corners = np.asarray(mesh[0], dtype=np.longdouble)[mesh[1]]
    return corners @ long_matrix(orientation).T + np.asarray(position, dtype=np.longdouble)


def least_distance(a, b):
    """Least distance of two sets of triangles that do not meet, in long double: all features against all."""
    best = np.longdouble(np.inf)
    for one, two in ((a, b), (b, a)):
        p = one.reshape(-1, 1, 3)
        u, v = two[:, 1] - two[:, 0], two[:, 2] - two[:, 0]
        n = np.cross(u, v)
        r = p - two[:, 0]
        square = (n * n).sum(-1)
        s = (np.cross(r, v) * n).sum(-1) / square
        t = (np.cross(u, r) * n).sum(-1) / square
        height = np.abs((r * n).sum(-1)) / np.sqrt(square)
        inside = (s >= 0) & (t >= 0) & (s + t <= 1)
        best = min(best, height[inside].min(initial=np.inf))
        for k in range(3):
            start, way = two[:, k], two[:, (k + 1) % 3] - two[:, k]
            share = np.clip(((p - start) * way).sum(-1) / (way * way).sum(-1), 0, 1)
            best = min(best, np.sqrt(((p - start - share[..., None] * way) ** 2).sum(-1)).min())
    edges = [np.concatenate([x, np.roll(x, -1, axis=1)], axis=2).reshape(-1, 2, 3) for x in (a, b)]
    p, q = edges[0][:, None, 0], edges[1][None, :, 0]
    u, v = edges[0][:, None, 1] - p, edges[1][None, :, 1] - q
    n = np.cross(u, v)
    square = (n * n).sum(-1)
    crossed = square > 1e-12
    square = np.where(crossed, square, 1)
    s = (np.cross(q - p, v) * n).sum(-1) / square
    t = (np.cross(q - p, u) * n).sum(-1) / square
    inside = crossed & (s > 0) & (s < 1) & (t > 0) & (t < 1)
    height = np.abs(((q - p) * n).sum(-1)) / np.sqrt(square)
    return float(min(best, height[inside].min(initial=np.inf)))


CORNER = Rotation.align_vectors([[0, 0, -1]], [[1, 1, 1]])[0]
"""Turns a cube so that its corner (0.5, 0.5, 0.5) is below."""
EDGE = Rotation.from_euler("x", 135, degrees=True) * Rotation.from_euler("z", 17, degrees=True)


@pytest.mark.parametrize("modes", [PRESS, PRESS | SLIDE, PRESS | SPIN, PRESS | ROCK, SLIDE | ROCK, ALL])
@pytest.mark.parametrize("how", ["corner", "face", "edge"])
def test_twenty_thousand_queries(how, modes):
    generator = np.random.default_rng(modes)
    cube, table = mesh_pairs.box(), mesh_pairs.box((2.0, 2.0, 0.5))
    frame = Rotation.random(random_state=modes)
    turned = {"corner": CORNER, "face": Rotation.identity(), "edge": EDGE}[how]
    height = -(turned.apply(cube[0])[:, 2].min())
    pair = Pair(table, cube)
    query = mesh_pairs.query(separation=SEPARATION)
    query["position_tolerance"] = TOLERANCE
    moves = generator.uniform(-1, 1, (QUERIES // 10, 5))
    moved = 0
    for gap in (1.5e-3, 1e-3 + 1e-9, 1e-3, 1e-3 - 1e-13, 1e-3 - 3e-10, 0.4e-3):
        relative = np.zeros(1, RELATIVE)[0]
        origin = (0.3, -0.2, 0.1)
        motion.still(relative["first"], origin, tuple(frame.as_quat()))
        pose = np.zeros(1, POSE)[0]
        pose["position"] = origin + frame.apply([0.02, 0.03, 0.25 + height + gap])
        pose["orientation"] = (frame * turned).as_quat()
        front, entries = make_front(pair.first_root, pair.second_root, 4096)
        still = placed(table, origin, relative["first"]["orientation"])
        start = least_distance(still, placed(cube, pose["position"], pose["orientation"]))
        assert start == pytest.approx(gap, abs=1e-12)
        bound = ROUNDING if gap > SEPARATION - 1e-12 else TOLERANCE
        normal = tuple(frame.apply([0.0, 0.0, 1.0]))
        state = pair.nodes, pair.triangles, pair.second_root, relative, pose, query, front[0], entries, WORK[0]
        for _ in range(10):
            moved += drive(*state, np.zeros(1, COUNTERS)[0], np.zeros(1, HIT)[0], moves, modes, normal)
            distance = least_distance(still, placed(cube, pose["position"], pose["orientation"]))
            assert distance >= min(start, SEPARATION) - bound, (gap, distance - min(start, SEPARATION))
    if modes & (SLIDE | SPIN):
        assert moved > QUERIES
