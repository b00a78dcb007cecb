"""Independent distances to shapes, and dense points on them: closed forms in numpy, none of the code under test."""

import numpy as np

from rtcore.geometry import shapes
from rtcore.motion import between, relative_pose, still
from rtcore.tables import RELATIVE

REST = (0.0, 0.0, 0.0, 1.0)


def turned(q: np.ndarray) -> np.ndarray:
    """The rotation matrix of a quaternion xyzw."""
    x, y, z, w = q
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


def _across(p: np.ndarray) -> np.ndarray:
    return np.hypot(p[:, 0], p[:, 1])


def _to_segment(p: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Distance from points (n, 2) to a segment in the plane."""
    share = np.clip((p - a) @ (b - a) / ((b - a) @ (b - a)), 0, 1)
    return np.linalg.norm(p - a - share[:, None] * (b - a), axis=1)


def distance(record: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Distance from points (n, 3), body frame, to a solid shape; 0 inside."""
    shape = record[0]
    p = (points - shape["position"]) @ turned(shape["orientation"])
    s = shape["size"]
    kind = shape["kind"]
    if kind == shapes.SHAPE_SPHERE:
        return np.maximum(np.linalg.norm(p, axis=1) - s[0], 0)
    if kind == shapes.SHAPE_CAPSULE:
        q = p.copy()
        q[:, 2] -= np.clip(q[:, 2], -s[1], s[1])
        return np.maximum(np.linalg.norm(q, axis=1) - s[0], 0)
    if kind == shapes.SHAPE_BOX:
        return np.linalg.norm(np.maximum(np.abs(p) - s[:3], 0), axis=1)
    if kind == shapes.SHAPE_CYLINDER:
        return np.hypot(np.maximum(_across(p) - s[0], 0), np.maximum(np.abs(p[:, 2]) - s[1], 0))
    if kind == shapes.SHAPE_CONE:
        profile = np.stack((_across(p), p[:, 2]), axis=1)
        inside = (profile[:, 1] >= -s[1]) & (profile[:, 0] * 2 * s[1] <= s[0] * (s[1] - profile[:, 1]))
        base = _to_segment(profile, np.array([0.0, -s[1]]), np.array([s[0], -s[1]]))
        side = _to_segment(profile, np.array([s[0], -s[1]]), np.array([0.0, s[1]]))
        return np.where(inside, 0.0, np.minimum(base, side))
    if kind == shapes.SHAPE_PLANE:
        return np.maximum(p[:, 2], 0)
    if kind == shapes.SHAPE_TORUS:
        return np.maximum(np.hypot(_across(p) - s[0], p[:, 2]) - s[1], 0)
    raise ValueError(f"no closed form for kind {kind}")


def gyroid_value(record: np.ndarray, p: np.ndarray) -> np.ndarray:
    """|function| minus level of a gyroid in its own frame."""
    x, y, z = (p * record[0]["size"][3]).T
    value = np.sin(x) * np.cos(y) + np.sin(y) * np.cos(z) + np.sin(z) * np.cos(x)
    return np.abs(value) - record[0]["size"][4]


def bezier(net: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Points (n, 3) of a bicubic patch by its Bernstein polynomials."""

    def basis(t: np.ndarray) -> np.ndarray:
        return np.stack(((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3), axis=1)

    return np.einsum("ni,nj,ijk->nk", basis(u), basis(v), net)


def points_on(made: tuple, rng: np.random.Generator, count: int = 4000, net: np.ndarray | None = None) -> np.ndarray:
    """Points (n, 3), body frame, of a shape: on its surface mostly, its corners and rims among them."""
    record, values = made
    shape = record[0]
    s = shape["size"]
    kind = shape["kind"]
    unit = rng.normal(size=(count, 3))
    unit /= np.linalg.norm(unit, axis=1)[:, None]
    angle = rng.uniform(0, 2 * np.pi, count)
    ring = np.stack((np.cos(angle), np.sin(angle), 0 * angle), axis=1)
    up = np.array([0.0, 0.0, 1.0])
    if kind == shapes.SHAPE_SPHERE:
        p = s[0] * unit
    elif kind == shapes.SHAPE_CAPSULE:
        p = s[0] * unit
        p[:, 2] *= rng.integers(0, 2, count)  # half of them on the side, the others on the round ends
        side = p[:, 2] == 0
        p[side] *= (s[0] / np.linalg.norm(p[side], axis=1))[:, None]
        p[:, 2] += np.where(side, rng.uniform(-1, 1, count), np.sign(p[:, 2])) * s[1]
    elif kind == shapes.SHAPE_BOX:
        p = np.clip(rng.uniform(-1.8, 1.8, (count, 3)), -1, 1) * s[:3]
    elif kind == shapes.SHAPE_CYLINDER:
        p = ring * (s[0] * np.minimum(1.4 * rng.random(count), 1))[:, None]
        p += np.outer(np.clip(rng.uniform(-2, 2, count), -1, 1) * s[1], up)
    elif kind == shapes.SHAPE_CONE:
        share = np.clip(1.3 * rng.random(count) - 0.2, 0, 1)
        p = ring * (s[0] * (1 - share))[:, None] + np.outer((2 * share - 1) * s[1], up)
    elif kind == shapes.SHAPE_TORUS:
        side = rng.uniform(0, 2 * np.pi, count)
        p = ring * (s[0] + s[1] * np.cos(side))[:, None] + np.outer(s[1] * np.sin(side), up)
    elif kind == shapes.SHAPE_HEIGHT_FIELD:
        rows, columns = int(shape["rows"]), int(shape["columns"])
        z = values[: rows * columns].reshape(rows, columns)
        i, j = rng.integers(0, rows - 1, count), rng.integers(0, columns - 1, count)
        a, b = np.clip(rng.uniform(-0.2, 1.2, (2, count)), 0, 1)
        lower = z[i, j] + a * (z[i + 1, j] - z[i, j]) + b * (z[i + 1, j + 1] - z[i + 1, j])
        upper = z[i, j] + b * (z[i, j + 1] - z[i, j]) + a * (z[i + 1, j + 1] - z[i, j + 1])
        x, y = (i + a - (rows - 1) / 2) * s[0], (j + b - (columns - 1) / 2) * s[1]
        p = np.stack((x, y, np.where(a >= b, lower, upper)), axis=1)
    elif kind == shapes.SHAPE_GYROID:
        p = np.clip(rng.uniform(-1.2, 1.2, (8 * count, 3)), -1, 1) * s[:3]
        p = p[gyroid_value(record, p) <= 0]
    elif kind == shapes.SHAPE_PATCH:
        p = bezier(net, *np.clip(rng.uniform(-0.1, 1.1, (2, count)), 0, 1))
    else:
        raise ValueError(f"no points for kind {kind}")
    return shape["position"] + p @ turned(shape["orientation"]).T


def relative_motion(first: tuple | None, second: tuple, kind: int = 1) -> np.ndarray:
    """A (1,) RELATIVE: each of the two is (position, orientation, position, orientation), or None for one at rest."""
    relative = np.zeros(1, RELATIVE)
    for name, poses in (("first", first), ("second", second)):
        motion = relative[name][0]
        if poses is None:
            still(motion, (0.0, 0.0, 0.0), REST)
        else:
            p0, q0, p1, q1 = (tuple(float(x) for x in v) for v in poses)
            between(motion, kind, p0, q0, p1, q1, p0)
    return relative


def carried(relative: np.ndarray, u: float, points: np.ndarray) -> np.ndarray:
    """Points (n, 3) of the second body at time u, in the frame of the first."""
    place, q = relative_pose(relative[0], u)
    return np.array(place) + points @ turned(np.array(q)).T
