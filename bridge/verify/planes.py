"""Certificate of the planes that an adapter closes the spring against: those of the contacts in the log, and no others.

By :mod:`haptics.contact_planes`' definitions, in numpy; the slack by scipy's non-negative least squares.
"""

import numpy as np
from scipy.optimize import nnls
from scipy.spatial.transform import Rotation

from bridge.verify.certificate import Certificate
from bridge.verify.force import held_by_constraints
from bridge.verify.history import History
from haptics.codes import CONSTRAINT

ROUNDING = 1e-12
"""m per m."""
NORMAL = 1e-9
"""Two unit normals that are one."""
ALIKE = 2e-6
"""1 - cosine of normals that the daemon may take for one, with room for rounding."""
SLACK = 1e-7
"""Share of the stretch: normals that are less than 1e-8 apart are one to the daemon."""


def certificates(history: History) -> list[Certificate]:
    """Of all ticks."""
    found = Certificate("planes", "the planes of a render are the contacts', the slack is what they do not hold", "m")
    output, settings = history.output, history.settings
    to_device = Rotation.from_quat(settings["workspace_orientation"]).inv()
    stretches = _stretches(history, to_device)
    shared = output["link"]["shared"] > 0.0
    found.leave("a shared tool: the slack", int(shared.sum()))
    for row, tick in enumerate(history.ticks.tolist()):
        out, scale = output[row], float(history.scale[row])
        place, count = out["render_position"], int(out["plane_count"])
        size = float(np.abs(place).max()) + float(np.abs(out["report"]["path"]).max())
        bar = ROUNDING * (1.0 + size)
        contacts = out["report"]["contacts"][: int(out["report"]["contact_count"])]
        pushing = contacts["displacement"].any(axis=1)
        room = np.where(pushing, 0.0, np.maximum(contacts["gap"] - float(history.world["eps_safety"]), 0.0)) / scale
        normals = to_device.apply(contacts["normal"]) if len(contacts) else np.zeros((0, 3))
        held = np.zeros((3, 0))
        for k, plane in enumerate(out["planes"]):
            if k >= count:
                found.judge(tick, float(np.abs(plane).max()), 0.0, f"row {k} of {count}")
                continue
            same = np.linalg.norm(normals - plane[:3], axis=1) <= NORMAL
            off = np.abs(normals @ place - room - plane[3])[same]
            found.judge(tick, float(off.min(initial=np.inf)), bar, f"plane {k}")
            if pushing[same].any():
                held = np.column_stack([held, plane[:3]])
        if not out["pinned"]:
            told = normals[pushing] @ out["planes"][:count, :3].T > 1.0 - ALIKE
            found.judge(tick, float(np.sum(~told.any(axis=1))), 0.0, "contacts that push and are not told")
        if not shared[row]:
            stretch = stretches[row]
            push = held @ nnls(held, stretch)[0] if held.size else np.zeros(3)
            off = float(np.linalg.norm(out["slack"] - (stretch - push)))
            found.judge(tick, off, SLACK * float(np.linalg.norm(stretch)) + bar, "slack")
    return [found]


def _stretches(history: History, to_device: Rotation) -> np.ndarray:
    """(n, 3) from the device to where its spring pulls it, device frame, m."""
    output = history.output
    apart = output["proxy_position"] - output["device_position"]
    if history.settings["law"] == CONSTRAINT:
        apart = np.array([held_by_constraints(each, history.has_mesh) for each in output])
    return to_device.apply(apart) / history.scale[:, None]
