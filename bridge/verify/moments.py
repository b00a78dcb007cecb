"""Moments that resist spinning and rolling at the tool's contacts, which no log holds: those that Coulomb's law leaves.

A contact that pushes by r_n allows |m_n| <= torsional r_n about its normal and |m_t| <= rolling r_n about its tangents,
and they oppose the spin w that is left wherever there is any. The tool turns by T = T0 + k / k_r sum of m (lengths, as
in :mod:`bridge.verify.tool`). So T is the least of

    k_r / k |T - T0|^2 / 2 + sum of torsional r_n |w_n| + rolling r_n |w_t|,    w = T - turn of the body,

which is strictly convex: to pushes and turns of the bodies belongs one T. It is found by Newton's method on what is
rounded where w = 0, less and less, and at last contact by contact, which alone takes long where axes nearly agree.
"""

from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from bridge.verify.history import History
from bridge.verify.motions import pose_of

SMALL = 1e-9
"""Share of the turns by which the law is rounded at last: less than that of the digits of w is none of it."""
EXACT = 1e-10
"""Share of the turns to which a rounded law is solved."""
STEPS = 50
"""Most steps with one rounding; a few are usual."""
LEAST = 1e-6
"""Least share of a step."""
SWEEPS = 100
"""Contact by contact, each exactly, at the end."""


def coefficients(history: History, first: int, second: int) -> tuple[float, float]:
    """Largest moments of two bodies about normal and tangents per normal force, m; with the tool those of the body."""
    found = []
    for name in ("torsional", "rolling"):
        one = float(history.model.bodies[name][first])
        if second != history.tool:
            one = float(np.sqrt(one * history.model.bodies[name][second]))
        found.append(one)
    return found[0], found[1]


def tool_limits(history: History, contacts: np.ndarray) -> np.ndarray:
    """(k, 2) largest moments about normal and tangents of the tool's contacts (k,) CONTACT, in m^2 as pushes in m."""
    forces = np.maximum(np.sum(contacts["displacement"] * contacts["normal"], axis=1), 0.0)
    each = [coefficients(history, int(body), history.tool) for body in contacts["body_id"]]
    return forces[:, None] * np.array(each).reshape(-1, 2)


def spring_ratio(history: History, row: int) -> float:
    """k / k_r of the springs that pull and turn the tool, in the scene, 1/m^2."""
    pull = float(history.pull[row])
    twist = float(history.settings["rotational_stiffness"]) * float(history.scale[row])
    twist = max(twist, float(history.world["turning"]) * pull)
    return pull / twist if twist > 0.0 else 0.0


def pushed_turn(history: History, row: int) -> np.ndarray:
    """(3,) rotation vector by which goal and pushes turn the tool in a tick, without moments."""
    report: Any = history.report[row]
    output: Any = history.output[row]
    contacts = report["contacts"][: int(report["contact_count"])]
    start = history.pose(history.tool, row - 1)
    goal = pose_of(output["goal_position"], output["goal_orientation"])
    arms = contacts["point"] + contacts["gap"][:, None] * contacts["normal"] - start.position
    turn = Rotation.from_matrix(goal.rotation @ start.rotation.T).as_rotvec()
    return turn + spring_ratio(history, row) * np.cross(arms, contacts["displacement"]).sum(axis=0)


def within(moment: np.ndarray, normal: np.ndarray, limit: np.ndarray) -> np.ndarray:
    """The nearest moment (3,) with at most limit (2,) about the normal and about what is square to it."""
    along = float(moment @ normal)
    across = moment - along * normal
    size = float(np.linalg.norm(across))
    share = limit[1] / size if size > limit[1] else 1.0
    return float(np.clip(along, -limit[0], limit[0])) * normal + share * across


def resisted(
    turn: np.ndarray, ratio: float, normals: np.ndarray, limits: np.ndarray, turns: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(turn (3,) of the tool, moments on it (k, 3), m^2) where it would turn so far without moments.

    ratio: k / k_r, 1/m^2; normals, turns of the bodies: (k, 3); limits: (k, 2), see :func:`tool_limits`.
    """
    moments = np.zeros_like(turns)
    size = float(np.abs(turn).max(initial=0.0)) + float(np.abs(turns).max(initial=0.0))
    if not (ratio > 0.0 and size > 0.0 and limits.any()):
        return turn.copy(), moments
    some = np.flatnonzero(limits.any(axis=1))
    along = normals[some, :, None] * normals[some, None, :]
    parts = np.stack([along, np.eye(3) - along], axis=1).reshape(-1, 3, 3)  # what w_n and w_t are of w
    most, centres = ratio * limits[some].ravel(), np.repeat(turns[some], 2, axis=0)

    def slope(at: np.ndarray, small: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """ratio x gradient (3,) and second derivative where |w| is sqrt(w^2 + small^2); moments of the parts."""
        w = np.einsum("kij,kj->ki", parts, at - centres)
        length = np.sqrt(np.sum(w * w, axis=1) + small * small)
        unit = w / length[:, None]
        bend = (most / length)[:, None, None] * (parts - unit[:, :, None] * unit[:, None, :])
        return at - turn + most @ unit, np.eye(3) + bend.sum(axis=0), -(most / ratio)[:, None] * unit

    found = turn.copy()
    small = size
    while small > 1.5 * SMALL * size:
        small *= 0.1
        for _ in range(STEPS):
            gradient, bend, _ = slope(found, small)
            step = -np.linalg.solve(bend, gradient)
            falls = float(gradient @ step)
            if not falls < 0.0 or float(np.abs(gradient).max()) <= EXACT * size:
                break
            share = 1.0
            while share > LEAST and float(slope(found + share * step, small)[0] @ step) > -0.5 * falls:
                share *= 0.5
            found = found + share * step
    moments[some] = slope(found, small)[2].reshape(-1, 2, 3).sum(axis=1)
    found = turn + ratio * moments.sum(axis=0)
    for _ in range(SWEEPS):
        for k in some.tolist():
            after = within(moments[k] - (found - turns[k]) / ratio, normals[k], limits[k])
            found = found + ratio * (after - moments[k])
            moments[k] = after
    return found, moments
