"""Scripted motions: poses at 1 kHz through way points, with smooth starts and stops."""

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np

RATE = 1000.0
"""Poses per second."""

MOST_SHIFT = 0.3e-3
"""m per tick"""

MOST_TURN = 1.0e-3
"""rad per tick"""


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Products (…, 4) of quaternions xyzw: the turn b, then the turn a."""
    ax, ay, az, aw = np.moveaxis(np.asarray(a, dtype=float), -1, 0)
    bx, by, bz, bw = np.moveaxis(np.asarray(b, dtype=float), -1, 0)
    return np.stack(
        [
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
            aw * bw - ax * bx - ay * by - az * bz,
        ],
        axis=-1,
    )


def quaternion(vector) -> np.ndarray:
    """Quaternions (…, 4) xyzw of rotation vectors (…, 3), rad."""
    vector = np.asarray(vector, dtype=float)
    angle = np.linalg.norm(vector, axis=-1, keepdims=True)
    return np.concatenate([0.5 * np.sinc(0.5 * angle / math.pi) * vector, np.cos(0.5 * angle)], axis=-1)


def matrix(q: np.ndarray) -> np.ndarray:
    """(3, 3) of a unit quaternion xyzw."""
    x, y, z, w = np.asarray(q, dtype=float)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


def minimum_jerk(t: np.ndarray) -> np.ndarray:
    """0..1 over t = 0..1 with no velocity and no acceleration at either end (Flash and Hogan 1985)."""
    t = np.clip(t, 0.0, 1.0)
    return t**3 * (10.0 - 15.0 * t + 6.0 * t**2)


def poses(positions, turns=None, base=(0.0, 0.0, 0.0, 1.0)) -> np.ndarray:
    """(k, 7) poses of positions (k, 3) and rotation vectors (k, 3) in the scene, applied after the turn ``base``."""
    positions = np.asarray(positions, dtype=float)
    turns = np.zeros_like(positions) if turns is None else np.broadcast_to(turns, positions.shape)
    q = product(quaternion(turns), np.broadcast_to(np.asarray(base, dtype=float), (len(positions), 4)))
    return np.concatenate([positions, q / np.linalg.norm(q, axis=1)[:, None]], axis=1)


def through(
    way: list[tuple[tuple[float, float, float], tuple[float, float, float]]],
    base=(0.0, 0.0, 0.0, 1.0),
    speed: float = 0.9,
    least: float = 0.2,
) -> np.ndarray:
    """(k, 7) poses that stop at each way point (position m, rotation vector rad), minimum jerk between them.

    ``speed``: share of the most that a tick may bring, reached in the middle of each piece; ``least``: shortest piece,
    s. Rotation vectors are interpolated as they are, which is a constant axis only from or to zero or along one line.
    """
    places = np.array([np.concatenate([np.asarray(p, dtype=float), np.asarray(r, dtype=float)]) for p, r in way])
    pieces = [places[:1]]
    for a, b in pairwise(places):
        # the peak of minimum jerk is 1.875 times the mean; a rotation vector moves at most 1.1 times as the turn does
        shift = np.linalg.norm(b[:3] - a[:3]) / MOST_SHIFT
        turn = 1.1 * np.linalg.norm(b[3:] - a[3:]) / MOST_TURN
        ticks = max(math.ceil(1.875 * max(shift, turn) / speed), round(least * RATE))
        s = minimum_jerk(np.arange(1, ticks + 1) / ticks)[:, None]
        pieces.append(a + s * (b - a))
    row = np.concatenate(pieces)
    return poses(row[:, :3], row[:, 3:], base)


def _worst(row: np.ndarray) -> float:
    """Largest step of poses (k, 7) as a share of what one tick may bring."""
    shift = np.linalg.norm(np.diff(row[:, :3], axis=0), axis=1).max() / MOST_SHIFT
    chord = np.linalg.norm(np.diff(row[:, 3:], axis=0), axis=1).max()
    return max(float(shift), 2.0 * float(chord) / MOST_TURN)


def ramp(seconds: float, law: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]], base) -> np.ndarray:
    """(k, 7) poses of ``law(t, window)`` -> positions and rotation vectors, slowed down as far as the limits need.

    ``t`` (k,): 0..``seconds``; ``window`` (k,): 0 at both ends and 1 in between, minimum jerk over a fifth of the time
    each.
    """

    def sampled(ticks: int) -> np.ndarray:
        t = seconds * np.arange(ticks + 1) / ticks
        edge = 0.2 * seconds
        window = minimum_jerk(t / edge) * minimum_jerk((seconds - t) / edge)
        return poses(*law(t, window), base)

    ticks = round(seconds * RATE)
    row = sampled(ticks)
    worst = _worst(row)
    return row if worst <= 0.97 else sampled(math.ceil(ticks * worst / 0.95))
