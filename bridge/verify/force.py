"""Certificates of the force path: the coupling's wrench and what was sent of it, recomputed from what the log says.

All rows at once, by :mod:`haptics.coupling`'s and :mod:`haptics.limits`' formulas in numpy.
"""

from typing import Any

import numpy as np
from scipy.optimize import nnls
from scipy.spatial.transform import Rotation

from bridge.verify.certificate import Certificate
from bridge.verify.history import History
from haptics.codes import CONSTRAINT, DAMPED
from haptics.states import CommandKind, EngagementState

ROUNDING = 1e-9
"""Share of the numbers that a force is made of."""
ON_CONE = 1e-7
"""The same by the law "constraint": normals that are less than 1e-8 apart are one to it."""
TAPER = np.radians(20.0)
"""rad before half a turn: where the rotational spring lets go."""
ENGAGED = (EngagementState.ENGAGING, EngagementState.ACTIVE, EngagementState.HOLD)
SENT = (*ENGAGED, EngagementState.RELEASING)


def certificates(history: History) -> list[Certificate]:
    """Of all ticks."""
    first = [_coupling(history), _effects(history), _passivity(history)]
    return [*first, _sent(history), _steps(history), _silence(history)]


def _norm(rows: np.ndarray) -> np.ndarray:
    return np.linalg.norm(rows, axis=-1)


def turns(quaternions: np.ndarray) -> Rotation:
    """Of (n, 4), where those that are none are taken for no turn."""
    some = np.array(quaternions, dtype=float)
    some[~(_norm(some) > 0.5)] = (0.0, 0.0, 0.0, 1.0)
    return Rotation.from_quat(some)


def _coupling(history: History) -> Certificate:
    """The wrench that spring and damper want, from the poses and velocities beside it."""
    found = Certificate("coupling", "the coupling's wrench follows from the logged poses and gains", "N, N·m")
    output, settings = history.output, history.settings
    rows = np.flatnonzero(np.isin(output["state"], ENGAGED))
    found.leave("not engaged", len(history) - len(rows))
    if len(rows) == 0:
        return found
    out, taken = output[rows], history.records["input"][rows]
    # A shared tool is felt in part; its effects are told as they are felt.
    part = 1.0 - out["link"]["shared"][:, None]
    own = out["coupling_wrench"] - out["link"]["wrench"] - out["effects"]
    own = own / np.where(part > 0.0, part, 1.0)
    scale = history.scale[rows][:, None]
    workspace = Rotation.from_quat(settings["workspace_orientation"])
    apart = out["proxy_position"] - out["device_position"]
    rounding = ROUNDING
    if settings["law"] == CONSTRAINT:
        rounding = ON_CONE
        apart = np.array([held_by_constraints(each, history.has_mesh) for each in out])
    stretch = workspace.inv().apply(apart) / scale
    size = _norm(stretch)
    stiffness = history.stiffness[rows] * out["rate_share"]
    spring = stiffness * size
    relative = out["render_twist"][:, :3] * scale - workspace.inv().apply(out["device_velocity"])
    rate = np.sum(relative * stretch, axis=1) / np.where(size > 0.0, size * scale[:, 0], 1.0)
    damped = np.clip(history.damping[rows] * rate, -spring, spring)
    unit = stretch / np.where(size > 0.0, size, 1.0)[:, None]
    # How old the newest good sample is stands in the log where it came in time; else the damper may have faded.
    fresh = (taken["fresh"] != 0) & (taken["sample"]["valid"] != 0) & (taken["age_ns"] <= settings["hold_after_ns"])
    fresh &= taken["sample"]["session"] == out["owner"]
    drag = unit * damped[:, None]
    if settings["law"] == DAMPED:
        drag = -history.damping[rows][:, None] * workspace.inv().apply(out["device_velocity"]) / scale
    ends = [unit * spring[:, None] + share * drag for share in (1.0, 0.0)]
    sphere, actuated = float(settings["sphere"]), int(settings["actuated"])
    if sphere > 0.0:
        # The force that stands for a torque fades with it, and then follows no line between two ends.
        found.leave("faded, with a virtual sphere", int(np.sum(~fresh)))
    # What makes the torque on its lever: without a sphere that is all of the force.
    pulled = ends[0] if sphere > 0.0 else own[:, :3]
    lever = turns(out["device_orientation"]).apply(np.array(history.world["tip_offset"], dtype=float)) / scale
    proxy, image = turns(out["proxy_orientation"]), turns(out["device_orientation"])
    back = _turning_back((proxy * image.inv()).as_rotvec(), settings, out["rate_share"]) * history.has_mesh
    to_device = turns(out["render_orientation"]) * proxy.inv()
    torque = to_device.apply(np.cross(lever, workspace.apply(pulled)) + back)
    axis = (to_device * image).apply(np.array(settings["axis"], dtype=float))
    if sphere > 0.0:
        ends = [end + sphere * scale * np.cross(torque, axis) for end in ends]
    if settings["torque_free"] != 0:
        torque = np.zeros_like(torque)
    elif actuated == 5:
        torque = torque - axis * np.sum(axis * torque, axis=1)[:, None]
    if actuated == 0:
        ends = [np.zeros_like(end) for end in ends]
    wanted, given = [ends, [torque, 0.0 * torque]], [own[:, :3], own[:, 3:]]
    grown = 1.0 + _norm(np.abs(out["proxy_position"]) + np.abs(out["device_position"])) / scale[:, 0]
    sizes = [
        (stiffness * 1e-6 * grown + spring + history.damping[rows] * _norm(relative))
        * (1.0 + sphere * (1.0 + _norm(lever)) * scale[:, 0]),
        float(settings["rotational_stiffness"]) * 1e-6 + _norm(lever) * _norm(given[0]) + _norm(back),
    ]
    for what, (full, faded), logged, much in zip(("force", "torque"), wanted, given, sizes, strict=True):
        off = np.where(fresh, _norm(logged - full), _beside(logged, full, faded))
        sure = fresh if sphere > 0.0 else np.ones(len(rows), dtype=bool)
        sure &= part[:, 0] > 0.0
        found.judge_all(history.ticks[rows][sure], off[sure], rounding * much[sure] + 1e-300, what)
    return found


def held_by_constraints(out: Any, has_mesh: bool) -> np.ndarray:
    """(3,) what the constraints of an OUTPUT row hold of the way from image to tool, as the law "constraint" has it."""
    contacts = out["report"]["contacts"][: int(out["report"]["contact_count"])]
    stopped = has_mesh and out["report"]["fraction"] < 1.0
    contacts = contacts if stopped else contacts[contacts["displacement"].any(axis=1)]
    apart = out["proxy_position"] - out["device_position"]
    if stopped and len(contacts) == 0:
        return apart
    push, normal = contacts["displacement"], contacts["normal"]
    known = out["goal_position"] - out["device_position"]
    known = known + (push - np.sum(push * normal, axis=1)[:, None] * normal).sum(axis=0)
    if len(contacts) == 0:
        return known
    return known + normal.T @ nnls(normal.T, apart - known)[0]


def _effects(history: History) -> Certificate:
    """Nothing beside spring and damper but by a surface, a region, a soft fixture or a burst."""
    found = Certificate("effects", "no force of surfaces, regions, fixtures, bursts where there are none", "N, N·m")
    settings, taken = history.settings, history.records["input"]["command"]
    soft = settings["fixtures"]["stiffness"][: int(settings["fixture_count"])] > 0.0
    idle = int(settings["surface_count"]) == 0 and int(settings["region_count"]) == 0 and not soft.any()
    quiet = np.full(len(history), idle) & ~np.logical_or.accumulate(taken["kind"] == CommandKind.VIBRATE)
    # What sounds when a log begins late was set off before it.
    quiet &= np.arange(len(history)) >= np.flatnonzero(np.append(~history.output["effects"].any(axis=1), True))[0]
    found.judge_all(history.ticks[quiet], _norm(history.output["effects"][quiet]), 0.0)
    found.leave("surfaces, regions, fixtures or bursts are felt", int(np.sum(~quiet)))
    return found


def _turning_back(way: np.ndarray, settings: np.void, share: np.ndarray) -> np.ndarray:
    """(n, 3) torques of the rotational spring along rotation vectors (n, 3), with (n,) shares of its stiffness."""
    angle = _norm(way)
    stiffness, largest = float(settings["rotational_stiffness"]) * share, float(settings["torque_max"])
    top = stiffness * (np.pi - TAPER)
    if largest > 0.0:
        top = np.minimum(top, largest)
    size = np.minimum(np.minimum(stiffness * angle, top), top * (np.pi - angle) / TAPER)
    return way * (size / np.where(angle > 0.0, angle, 1.0))[:, None]


def _passivity(history: History) -> Certificate:
    """The passivity controller only ever takes: against the way of the device, within its damping, never to a pull."""
    found = Certificate("passivity", "the controller's wrench damps, within its limit, and makes no pull", "N, N·m")
    output, settings = history.output, history.settings
    added = output["passivity_wrench"]
    taken = history.records["input"]
    good = (taken["fresh"] != 0) & (taken["sample"]["valid"] != 0) & (taken["age_ns"] <= settings["hold_after_ns"])
    good &= taken["sample"]["session"] == output["owner"]
    # The way of the device is that of two good samples in ticks one after the other.
    engaged = np.isin(output["state"], ENGAGED)
    rows = np.flatnonzero(history.follows & engaged & good & np.concatenate(([False], good[:-1])))
    found.leave("the way of the device is not that between two ticks", len(history) - len(rows))
    moved = taken["sample"]["position"][rows] - taken["sample"]["position"][rows - 1]
    force, pulled = added[rows, :3], output["coupling_wrench"][rows, :3]
    size = _norm(force)
    gives = np.sum(force * moved, axis=1) / np.where(_norm(moved) > 0.0, _norm(moved), 1.0)
    found.judge_all(history.ticks[rows], np.maximum(gives, 0.0), ROUNDING * size + 1e-300, "force, along the way")
    most = float(settings["passivity_damping"][0]) * _norm(moved) / float(settings["dt"])
    found.judge_all(history.ticks[rows], size, most * (1.0 + ROUNDING) + 1e-12, "force, its damping")
    if settings["sphere"] > 0.0:
        # The force that stands for a torque is not along the spring, and neither is what pulls.
        return found
    total = np.sum((force + pulled) * pulled, axis=1) / np.where(_norm(pulled) > 0.0, _norm(pulled), 1.0)
    # Where the damper takes the whole spring, what is left is rounding and has no direction.
    total[_norm(pulled) <= ROUNDING * size] = 0.0
    found.judge_all(history.ticks[rows], np.maximum(-total, 0.0), ROUNDING * (size + _norm(pulled)) + 1e-300, "pull")
    return found


def _beside(points: np.ndarray, ends: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Distances of points (n, 3) from the segments between two ends."""
    way = others - ends
    square = np.sum(way * way, axis=1)
    share = np.clip(np.sum((points - ends) * way, axis=1) / np.where(square > 0.0, square, 1.0), 0.0, 1.0)
    return _norm(points - ends - share[:, None] * way)


def _sent(history: History) -> Certificate:
    """What ramp, slew limit and saturation leave of the coupling's wrench and the damping added to it."""
    found = Certificate(
        "wrench sent", "the wrench sent is the coupling's and its damping, ramped, slew-limited and saturated", "N, N·m"
    )
    output, settings = history.output, history.settings
    rows = np.flatnonzero(history.follows)
    found.leave("the tick before is not in the log", len(history) - len(rows))
    out, before = output[rows], output[rows - 1]
    on = np.isin(out["state"], SENT)
    for what, columns, limit, slew in (
        ("force", slice(0, 3), "force_max", "force_slew"),
        ("torque", slice(3, 6), "torque_max", "torque_slew"),
    ):
        last, gain = before["wrench"][:, columns], out["gain"]
        largest = float(settings[limit]) * gain
        largest = np.where(out["state"] == EngagementState.RELEASING, np.minimum(largest, _norm(last)), largest)
        whole = out["coupling_wrench"][:, columns] + out["passivity_wrench"][:, columns]
        wanted = _toward(last, whole * gain[:, None], largest, float(settings[slew]))
        wanted[~on] = 0.0
        off = _norm(out["wrench"][:, columns] - wanted)
        size = _norm(last) + _norm(wanted) + float(settings[slew])
        # A root of what is left under it: where it ends on a border its digits are half as many.
        found.judge_all(history.ticks[rows], off, np.where(on, ROUNDING * size + 1e-300, 0.0), what)
    return found


def _toward(last: np.ndarray, wanted: np.ndarray, largest: np.ndarray, slew: float) -> np.ndarray:
    """(n, 3) the farthest towards what is wanted of norm at most ``largest`` and at most ``slew`` from the last one."""
    goal, start = _cut(wanted, largest), _cut(last, largest)
    way, behind = goal - start, start - last
    a = np.sum(way * way, axis=1)
    b = np.sum(way * behind, axis=1)
    c = np.sum(behind * behind, axis=1) - slew * slew
    root = np.sqrt(np.maximum(b * b - a * c, 0.0))
    share = np.clip((root - b) / np.where(a > 0.0, a, 1.0), 0.0, 1.0)
    reached = start + share[:, None] * way
    return np.where((_norm(goal - last) <= slew)[:, None], goal, reached)


def _cut(rows: np.ndarray, largest: np.ndarray) -> np.ndarray:
    size = _norm(rows)
    return rows * np.where(size > largest, largest / np.where(size > 0.0, size, 1.0), 1.0)[:, None]


def _steps(history: History) -> Certificate:
    """Norm and change per tick, whatever was wanted."""
    found = Certificate("limits", "norm and change per tick within the configured limits, as shares of them", "")
    output, settings = history.output, history.settings
    following = np.flatnonzero(history.follows)
    for what, columns, limit, slew in (
        ("force", slice(0, 3), float(settings["force_max"]), float(settings["force_slew"])),
        ("torque", slice(3, 6), float(settings["torque_max"]), float(settings["torque_slew"])),
    ):
        wrench = output["wrench"][:, columns]
        size = _norm(wrench)
        shares = size / limit if limit > 0.0 else np.where(size > 0.0, np.inf, 0.0)
        found.judge_all(history.ticks, shares, 1.0 + ROUNDING, f"{what}, norm")
        steps = _norm(wrench[following] - wrench[following - 1])
        shares = steps / slew if slew > 0.0 else np.where(steps > 0.0, np.inf, 0.0)
        found.judge_all(history.ticks[following], shares, 1.0 + ROUNDING, f"{what}, change")
    gain = output["gain"]
    rise = (gain[following] - gain[following - 1]) * float(settings["ramp_up_ticks"])
    found.judge_all(history.ticks[following], rise, 1.5 + ROUNDING, "gain, rise by the ramp's")
    return found


def _silence(history: History) -> Certificate:
    """Forces are off where there has been no sample for longer than the watchdog and its ramp take."""
    found = Certificate("silence", "no force without samples, beyond the stale horizon and its ramp", "N, N·m")
    settings = history.settings
    ramp = 1e9 * float(settings["dt"]) * (int(settings["ramp_fault_ticks"]) + 2)
    taken = history.records["input"]
    mute = (taken["has_sample"] == 0) | (taken["age_ns"] > float(settings["stale_after_ns"]) + ramp)
    rows = np.flatnonzero(mute)
    size = _norm(history.output["wrench"][rows])
    found.judge_all(history.ticks[rows], size, 0.0)
    found.leave("samples came", len(history) - len(rows))
    return found
