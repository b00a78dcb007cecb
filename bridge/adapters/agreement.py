"""Whether samples say what the device did: compared with a journal that knows the truth, by the times of the samples.

And whether they say that the handle gives way to a push, which a journal is not needed for.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

from bridge.adapters.journal import READ, WRITTEN
from bridge.adapters.relay import Seen
from haptics.cards import DeviceCard

LATE_S = 0.02
"""As much older than it says may a pose be; and by `LATE_CYCLES` of the loop, for whom the answer to a request comes in
the next cycle, or later where a busy machine holds it up."""
LATE_CYCLES = 5
EARLY_S = 0.1
"""As much younger than it says: times that are too early make nothing fresh that is old."""
RESOLUTION = 1e-5
"""m, of a device whose card states none."""
TURN_OFF = 2e-3
"""rad"""
SPEED_OFF = 0.01
"""m/s that a twist may say of a handle at rest; rad/s, ten times as much."""
TWIST_OFF = 0.3
"""Share of the true velocity by which a twist may differ from it."""
MOVED = 5e-4
"""m: less is no motion; a hand that holds the handle yields by more to a third of the largest force."""
TURNED = 5e-3
"""rad: likewise."""
ASTRAY = 0.5
"""Cosine of the angle between push and motion, at least: stops and weight lead a free handle aside too."""


class Course(NamedTuple):
    """Where a handle was, row by row."""

    t: np.ndarray
    """(n,) ns"""
    position: np.ndarray
    """(n, 3) m"""
    orientation: np.ndarray
    """(n, 4) xyzw"""
    twist: np.ndarray
    """(n, 6) m/s, rad/s; NaN where it was not told"""


def told(samples: Sequence[Seen]) -> Course:
    """What samples say; those that are not valid are left out."""
    good = [one for one in samples if one.valid]
    return Course(
        np.array([int(one["t_sample"]) for one in good], dtype=np.int64),
        np.array([one["position"] for one in good], dtype=float).reshape(-1, 3),
        np.array([one["orientation"] for one in good], dtype=float).reshape(-1, 4),
        np.array([(np.nan,) * 6 if one.twist is None else one.twist for one in good], dtype=float).reshape(-1, 6),
    )


def done(rows: np.ndarray) -> Course:
    """What a journal's rows of reading say."""
    return Course(rows["t"], rows["position"], rows["orientation"], rows["twist"])


def findings(said: Course, truth: Course, card: DeviceCard) -> list[tuple[bool, str]]:
    """What samples of a handle that moved and came to rest say of it: each time whether that is right, and in words.

    The rest begins where the truth is still until its end, and a tenth of a second of samples of it are wanted.
    """
    begun = int(truth.t[_rest(truth)])
    inside = (said.t >= truth.t[0]) & (said.t <= truth.t[-1])
    said = Course(*(column[inside] for column in said))
    moving = _moving(said, truth)
    if moving.sum() < 5 or not (said.t > begun).any():
        return [(False, f"{int(moving.sum())} samples while it moved, {int((said.t > begun).sum())} while it rested")]
    found = [_late(said, truth, moving), _place(said, truth, card)]
    if card.sensed > 3:
        found.append(_turn(said, truth))
    if np.isfinite(said.twist).all(axis=1).any():
        found += _twist(said, truth, card, moving, said.t > begun)
    return found


def _rest(truth: Course) -> int:
    """The first row of the rest at the end."""
    still = np.linalg.norm(truth.twist, axis=1) < 1e-3
    return len(still) - 1 if still.all() else min(int(np.flatnonzero(~still)[-1]) + 1, len(still) - 1)


def _at(truth: Course, t: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Columns of values (n, k) at times (m,), in between on a straight line."""
    since = truth.t[0]
    return np.column_stack([np.interp(t - since, truth.t - since, column) for column in values.T])


def _moving(said: Course, truth: Course) -> np.ndarray:
    """Which samples are of a handle that went at half of its largest speed, at least."""
    speeds = np.linalg.norm(_at(truth, said.t, truth.twist)[:, :3], axis=1)
    return speeds > 0.5 * speeds.max(initial=1e-3)


def _late(said: Course, truth: Course, moving: np.ndarray) -> tuple[bool, str]:
    """By how much poses are older than they say, told by how far they stay behind along the way."""
    velocity = _at(truth, said.t, truth.twist)[moving, :3]
    behind = (_at(truth, said.t, truth.position) - said.position)[moving]
    late = float(np.median((behind * velocity).sum(axis=1) / (velocity * velocity).sum(axis=1)))
    cycle = float(np.median(np.diff(said.t))) * 1e-9
    most = LATE_S + LATE_CYCLES * cycle
    text = f"poses are {late * 1e3:.1f} ms older than they say, {most * 1e3:.0f} ms at most"
    if late < 0.0:
        text = f"poses are {-late * 1e3:.1f} ms younger than they say, {EARLY_S * 1e3:.0f} ms at most"
    return -EARLY_S <= late <= most, text


def _place(said: Course, truth: Course, card: DeviceCard) -> tuple[bool, str]:
    off = said.position[-1] - truth.position[-1]
    most = 1.5 * (card.resolution or RESOLUTION)
    good = bool((np.abs(off) <= most).all())
    text = f"positions right to {np.abs(off).max() * 1e3:.3f} mm"
    if not good:
        text = f"at {(truth.position[-1] * 1e3).round(2).tolist()} mm samples say "
        text += f"{(said.position[-1] * 1e3).round(2).tolist()} mm"
    return good, text


def _turn(said: Course, truth: Course) -> tuple[bool, str]:
    if abs(float(np.linalg.norm(said.orientation[-1])) - 1.0) > 1e-3:
        return False, f"turned to {said.orientation[-1].round(3).tolist()}, which is no rotation"
    off = float(np.linalg.norm(turn_between(truth.orientation[-1], said.orientation[-1])))
    text = f"turns right to {off:.4f} rad"
    if off > TURN_OFF:
        text = f"turned to {truth.orientation[-1].round(3).tolist()} (x, y, z, w) samples say "
        text += f"{said.orientation[-1].round(3).tolist()}"
    return off <= TURN_OFF, text


def _twist(
    said: Course, truth: Course, card: DeviceCard, moving: np.ndarray, resting: np.ndarray
) -> list[tuple[bool, str]]:
    parts = [("velocity", "m/s", slice(0, 3), SPEED_OFF)]
    if card.sensed == 6:
        parts.append(("angular velocity", "rad/s", slice(3, 6), 10.0 * SPEED_OFF))
    found = []
    for name, unit, part, rest in parts:
        true = _at(truth, said.t, truth.twist)[:, part]
        speeds = np.linalg.norm(true, axis=1)
        off = np.linalg.norm(said.twist[:, part] - true, axis=1)
        fast = moving if name == "velocity" else speeds > 0.5 * speeds.max(initial=1e-3)
        in_rest = float(np.nanmedian(np.linalg.norm(said.twist[resting, part], axis=1)))
        share = float(np.nanmedian(off[fast] / speeds[fast])) if fast.any() else 0.0
        good = in_rest <= rest and share <= TWIST_OFF
        text = f"{name} right to {share * 100:.0f} % in motion, {in_rest:.3f} {unit} at rest"
        if not good:
            text = f"the twist's {name} is {share * 100:.0f} % off in motion, and {in_rest:.3f} {unit} at rest"
        found.append((good, text))
    return found


def gives_way(ways: Sequence[np.ndarray], axis: np.ndarray, least: float) -> str:
    """What is wrong with the ways (3,) that samples went under a push along a unit axis, and then under one against it.

    ``least``: m or rad, what counts as a way. Empty if nothing is: at least one of them was one, and none went astray.
    """
    sizes = [float(np.linalg.norm(way)) for way in ways]
    for sign, way, size in zip((1.0, -1.0), ways, sizes, strict=False):
        if size >= least and float(way @ axis) * sign < ASTRAY * size:
            against = " when reversed" if sign < 0.0 else ""
            return f"moves the samples along {(way / size).round(2).tolist()}{against}"
    if max(sizes, default=0.0) < least:
        return "does not move the samples: was the handle held, or is its pose frozen?"
    return ""


def turn_between(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """(3,) rad, device frame: the rotation vector from one orientation (4,) xyzw to another."""
    return (Rotation.from_quat(after) * Rotation.from_quat(before).inv()).as_rotvec()


def ramp_s(rows: np.ndarray, largest: float, cycles: bool) -> tuple[float, float]:
    """How long a journal's forces took from 5 to 95 % of the largest (N), at most, and how much they rose (N).

    With ``cycles`` the rows of reading and writing are of one process that reads, looks at its clock, limits and writes
    in turn: what a cycle counts from lies between its reading and its writing, wherever it is held up. So the time is
    that from the last reading before the one writing to the other writing. Else it is that between both writings.
    """
    written = np.flatnonzero(rows["kind"] == WRITTEN)
    sizes = np.linalg.norm(rows["wrench"][written, :3], axis=1)
    above = int(np.argmax(sizes > 0.95 * largest))
    below = int(np.flatnonzero(sizes[: above + 1] < 0.05 * largest)[-1])
    first, last = int(rows["t"][written[below]]), int(rows["t"][written[above]])
    if cycles:
        read = np.flatnonzero(rows["kind"][: written[below]] == READ)
        first = int(rows["t"][read[-1]]) if len(read) else first
    return (last - first) * 1e-9, float(sizes[above] - sizes[below])
