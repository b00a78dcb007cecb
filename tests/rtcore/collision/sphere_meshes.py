"""Meshes and motions for the tests of trees of balls."""

import numpy as np
import trimesh
from scipy.spatial.transform import Rotation

from rtcore import motion
from rtcore.tables import QUERY, RELATIVE


def pebble(seed=1):
    """80 triangles, irregular, about 1 m across."""
    mesh = trimesh.creation.icosphere(subdivisions=1)
    rng = np.random.default_rng(seed)
    vertices = 0.5 * mesh.vertices * rng.uniform(0.6, 1.0, size=(len(mesh.vertices), 1))
    return vertices, np.array(mesh.faces)


def block():
    """Twelve large triangles."""
    mesh = trimesh.creation.box((1.0, 0.8, 0.3))
    return np.array(mesh.vertices), np.array(mesh.faces)


def sliver():
    """A triangle without area beside one with."""
    vertices = np.array([[0.0, 0, 0], [1, 0, 0], [2, 0, 0], [0, 1, 0], [0.3, 0, 1]])
    return vertices, np.array([[0, 1, 2], [0, 3, 4]])


def approach(rng, turn, path):
    """A RELATIVE record: the first rests somewhere, the second flies roughly towards it on a TAN_HALF motion."""
    relative = np.zeros(1, RELATIVE)[0]
    rest = tuple(rng.normal(size=3))
    motion.still(relative["first"], rest, tuple(Rotation.random(random_state=rng).as_quat()))
    way = rng.normal(size=3)
    way /= np.linalg.norm(way)
    start = np.array(rest) + way * rng.uniform(0.9, 1.3)
    shift = -way * path + 0.2 * path * rng.normal(size=3)
    axis = rng.normal(size=3)
    axis *= turn / np.linalg.norm(axis)
    orientation = tuple(Rotation.random(random_state=rng).as_quat())
    motion.from_twist(
        relative["second"],
        motion.TAN_HALF,
        tuple(start),
        orientation,
        tuple(shift),
        tuple(axis),
        tuple(start + 0.1 * rng.normal(size=3)),
    )
    return relative


def new_query(separation=0.0, limit=1.0):
    query = np.zeros(1, QUERY)[0]
    query["separation"] = separation
    query["limit"] = limit
    query["time_tolerance"] = 1e-10
    query["position_tolerance"] = 1e-9
    return query
