"""Pairs of small meshes for queries, and what is true of them by looking at every pair of features at many times."""

import math

import numpy as np
import trimesh
from numba import njit
from numba.core.runtime import _nrt_python as _nrt
from numba.core.runtime import rtsys

from rtcore import motion
from rtcore.collision.features import point_triangle, segment_segment
from rtcore.geometry.cones import fill_cones
from rtcore.geometry.tree import build_tree
from rtcore.spatial import add, rotate, vector
from rtcore.tables import (
    COUNTERS,
    HIT,
    QUERY,
    QUERY_ORDER,
    QUERY_OWNED,
    QUERY_PASS_TIME,
    RELATIVE,
)

ALL_FLAGS = QUERY_PASS_TIME | QUERY_ORDER | QUERY_OWNED


class Pair:
    """Two meshes in common tables, the second body's nodes and triangles after those of the first."""

    def __init__(self, first, second):
        nodes1, triangles1 = build_tree(*first)
        nodes2, triangles2 = build_tree(*second)
        fill_cones(nodes1, triangles1)
        fill_cones(nodes2, triangles2)
        inner = nodes2["count"] == 0
        nodes2["right"][inner] += len(nodes1)
        nodes2["first"][~inner] += len(triangles1)
        nodes2["parent"][1:] += len(nodes1)
        self.nodes = np.concatenate([nodes1, nodes2])
        self.triangles = np.concatenate([triangles1, triangles2])
        self.first_root, self.second_root = 0, len(nodes1)
        self.first, self.second = triangles1, triangles2

    def distance(self, relative, u):
        """Least distance of any two features at u, m."""
        return least_distance(self.first, self.second, *motion.relative_pose(relative, u))


def query(separation=0.01, units=10**6, flags=ALL_FLAGS, limit=1.0):
    q = np.zeros(1, QUERY)[0]
    q["separation"] = separation
    q["position_tolerance"] = 1e-5
    q["time_tolerance"] = 1e-7
    q["limit"] = limit
    q["units"] = units
    q["flags"] = flags
    return q


def counters():
    return np.zeros(1, COUNTERS)[0]


def hit():
    return np.zeros(1, HIT)[0]


@njit(cache=True)
def least_distance(first, second, position, turn):
    best = math.inf
    for j in range(len(second)):
        b = (
            add(rotate(turn, vector(second[j].vertices[0])), position),
            add(rotate(turn, vector(second[j].vertices[1])), position),
            add(rotate(turn, vector(second[j].vertices[2])), position),
        )
        for i in range(len(first)):
            v = first[i].vertices
            a = (vector(v[0]), vector(v[1]), vector(v[2]))
            for k in range(3):
                for m in range(3):
                    best = min(best, segment_segment(a[k], a[(k + 1) % 3], b[m], b[(m + 1) % 3])[2])
                best = min(best, point_triangle(a[k], b[0], b[1], b[2])[2])
                best = min(best, point_triangle(b[k], a[0], a[1], a[2])[2])
    return math.sqrt(best)


def box(size=(1.0, 1.0, 1.0)):
    mesh = trimesh.creation.box(size)
    return np.array(mesh.vertices), np.array(mesh.faces)


def bumpy(generator, subdivisions=1, size=0.5, least=0.6):
    mesh = trimesh.creation.icosphere(subdivisions=subdivisions, radius=size)
    bumps = generator.uniform(least, 1.2, len(mesh.vertices))
    return np.array(mesh.vertices) * bumps[:, None], np.array(mesh.faces)


def soup(generator, count=24):
    """Single triangles of all shapes about the origin: open, unconnected, some of them needles."""
    corners = generator.uniform(-0.5, 0.5, (count, 1, 3)) + generator.uniform(-0.2, 0.2, (count, 3, 3))
    corners[::5, 2] = corners[::5, 1] + 1e-7
    return corners.reshape(-1, 3), np.arange(3 * count).reshape(-1, 3)


def sheet(size=1.0, parts=4):
    """A flat square across z, of two triangles per cell."""
    ticks = np.linspace(-size / 2, size / 2, parts + 1)
    x, y = np.meshgrid(ticks, ticks, indexing="ij")
    points = np.stack([x.ravel(), y.ravel(), np.zeros(x.size)], axis=1)
    n = parts + 1
    cells = [
        (i * n + j, (i + 1) * n + j, i * n + j + 1, (i + 1) * n + j + 1) for i in range(parts) for j in range(parts)
    ]
    return points, np.array([t for a, b, c, d in cells for t in ((a, b, c), (b, d, c))])


def unit(generator):
    q = generator.normal(size=4)
    return tuple(q / np.linalg.norm(q))


def random_mesh(generator):
    kind = generator.integers(4)
    if kind == 0:
        return box(generator.uniform(0.3, 1.0, 3))
    if kind == 1:
        return soup(generator)
    if kind == 2:
        return sheet(generator.uniform(0.5, 1.4), 3)
    return bumpy(generator)


def random_relative(generator, apart=2.6, path=4.0, turn=1.0):
    """Two bodies `apart` from each other; the second comes near the first, which moves as well in half of the cases."""
    relative = np.zeros(1, RELATIVE)[0]
    origin = tuple(generator.uniform(-1, 1, 3))
    if generator.random() < 0.5:
        motion.still(relative["first"], origin, unit(generator))
    else:
        shift, turning = (tuple(generator.uniform(-0.3, 0.3, 3)) for _ in range(2))
        motion.from_twist(relative["first"], motion.SCREW, origin, unit(generator), shift, turning, origin)
    way = np.array(unit(generator)[:3])
    way /= np.linalg.norm(way)
    start = np.array(origin) + apart * way
    shift = tuple(-path * way + generator.uniform(-0.3, 0.3, 3))
    turning = generator.normal(size=3)
    turning = tuple(turning / np.linalg.norm(turning) * turn)
    start = tuple(start)
    motion.from_twist(relative["second"], motion.SCREW, start, unit(generator), shift, turning, start)
    return relative


def allocations(kernel, *arguments):
    """How often numba's run time takes memory for a call of a kernel, wrapping its arguments included."""
    _nrt.memsys_enable_stats()
    try:
        kernel(*arguments)
        before = rtsys.get_allocation_stats().alloc
        kernel(*arguments)
        return rtsys.get_allocation_stats().alloc - before
    finally:
        _nrt.memsys_disable_stats()


def check_first_time(pair, relative, q, answer, samples=60):
    """Up to answer.time the separation is kept; where a contact was found, it is there to the tolerance."""
    kept = min(q["separation"], pair.distance(relative, 0.0))
    for u in np.linspace(0.0, answer["time"], samples):
        assert pair.distance(relative, u) >= kept - 1e-12
    if answer["found"]:
        root = pair.nodes[pair.second_root]
        centre = tuple(root["centre"])
        speed, _ = motion.relative_bounds(relative, centre, root["radius"], 0.0, 1.0)
        excess = pair.distance(relative, answer["time"]) - kept
        assert excess <= q["position_tolerance"] + speed * q["time_tolerance"] + 1e-12
        assert answer["truncated"] == 0
    elif not answer["truncated"]:
        assert answer["time"] == q["limit"]
