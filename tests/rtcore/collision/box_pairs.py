"""Pairs of boxes in motion whose truth is known: by construction, or by bounded least squares."""

import numpy as np
from scipy.optimize import lsq_linear
from scipy.spatial.transform import Rotation

from rtcore import motion
from rtcore.tables import BOX_NODE, COUNTERS, PLACEMENT, QUERY, RELATIVE

STEPS = {"fine": (0.002, 0.005), "medium": (0.03, 0.08), "coarse": (0.3, 1.0)}
"""Turn (rad) and path (in sizes of a box) of a step: as at 1 kHz, as at 66 Hz, and a fast one."""


def record(dtype):
    return np.zeros(1, dtype)[0]


def random_box(rng, centre, spread=0.5):
    """A BOX_NODE record around a point; half lengths about 1, the ball around its corners."""
    node = record(BOX_NODE)
    node["half"] = np.exp(rng.normal(size=3) * spread)
    node["axes"] = Rotation.random(random_state=rng).as_matrix()
    node["centre"] = centre
    node["radius"] = np.linalg.norm(node["half"]) * (1 + 1e-15)
    return node


def random_motion(rng, out, kind, turn, path):
    """Fill a MOTION record: normally distributed turn and path, pivot several box sizes away from the body's origin."""
    position = tuple(rng.normal(size=3))
    orientation = tuple(Rotation.random(random_state=rng).as_quat())
    axis = rng.normal(size=3)
    axis /= np.linalg.norm(axis)
    angle = min(abs(turn * rng.normal()), 1.5)
    shift = tuple(rng.normal(size=3) * path)
    pivot = tuple(np.array(position) + 5 * rng.normal(size=3))
    motion.from_twist(out, kind, position, orientation, shift, tuple(axis * angle), pivot)


def random_relative(rng, kind, turn, path, both=False):
    """A RELATIVE record; the first moves as well if `both`, else it rests at a random pose."""
    relative = record(RELATIVE)
    random_motion(rng, relative["first"], kind if both else motion.STILL, turn, path)
    random_motion(rng, relative["second"], kind, turn, path)
    return relative


def relative_matrix(relative, u):
    """(rotation (3, 3), translation (3,)) of the second in the frame of the first at u."""
    position, turn = motion.relative_pose(relative, u)
    return Rotation.from_quat(turn).as_matrix(), np.array(position)


def touching_box(rng, first, relative, u, separation):
    """A box of the second body that is exactly `separation` away from the first's box at u, along one of the 15 axes.

    The axis n separates, so the distance is no smaller; the supporting points lie on n, so it is no larger.
    """
    second = random_box(rng, np.zeros(3))
    e, f = first["axes"], second["axes"]
    axes = [*e, *f, *(np.cross(a, b) for a in e for b in f)]
    n = axes[rng.integers(15)]
    n = n / np.linalg.norm(n) * rng.choice([-1, 1])

    def support(axes, half, direction):
        along = axes @ direction
        free = np.abs(along) < 1e-12  # anywhere on the edge or face
        share = np.where(free, 0.0, np.sign(along))
        return (share * half) @ axes

    at = first["centre"] + support(e, first["half"], n) + separation * n
    centre = at - support(f, second["half"], -n)
    turn, shift = relative_matrix(relative, u)
    second["centre"] = turn.T @ (centre - shift)
    second["axes"] = f @ turn
    return second


def distance(first, second, relative, u):
    """The distance of two boxes at u."""
    turn, shift = relative_matrix(relative, u)
    basis = np.hstack([first["axes"].T, -(turn @ second["axes"].T)])
    target = turn @ second["centre"] + shift - first["centre"]
    half = np.concatenate([first["half"], second["half"]])
    return np.sqrt(2 * lsq_linear(basis, target, (-half, half), method="bvls", tol=1e-14).cost)


def second_ball(second):
    """A ball of the second body that holds the box, a larger one than the node's, as of a tree's root."""
    return tuple(second["centre"] * 0.5), float(second["radius"] + 0.5 * np.linalg.norm(second["centre"]))


def bench_pair(rng, turn, path):
    """(first, second, RELATIVE): two boxes of random sizes 0.2 to 1.3 of their radii apart and a random screw."""
    first = random_box(rng, np.zeros(3))
    second = random_box(rng, np.zeros(3))
    direction = rng.normal(size=3)
    reach = np.linalg.norm(first["half"]) + np.linalg.norm(second["half"])
    centre = direction / np.linalg.norm(direction) * reach * rng.uniform(0.2, 1.3)
    relative = record(RELATIVE)
    still = (0.0, 0.0, 0.0)
    motion.still(relative["first"], still, (0.0, 0.0, 0.0, 1.0))
    axis = rng.normal(size=3)
    axis /= np.linalg.norm(axis)
    angle = abs(turn * rng.normal()) + 1e-9
    shift = tuple(rng.normal(size=3) * path)
    pivot = tuple(centre + rng.normal(size=3) * 5)
    motion.from_twist(
        relative["second"], motion.SCREW, tuple(centre), (0.0, 0.0, 0.0, 1.0), shift, tuple(axis * angle), pivot
    )
    return first, second, relative


def new_query(overlap=0, subdivision=0.15):
    query = record(QUERY)
    query["overlap"] = overlap
    query["subdivision"] = subdivision
    return query


def new_placement():
    return record(PLACEMENT)


def new_counters():
    return record(COUNTERS)
