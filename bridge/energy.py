"""Whether free bodies and the spring of the hand gained energy during a run, told from what is logged alone.

While the hand stands still, bodies and spring together only lose. What its motion puts in is the work of the spring's
force on the way of the goal. So in each tick the change of

    kinetic + potential energy of all free bodies + energy of the spring between tool and goal - that work

is at most zero, for a tool without mass, whatever the contacts do (implicit Euler). The one exception is a gap that is
opened without a force, by the position pass: it lifts what lies there, and the tool against the hand.
"""

import numpy as np
from scipy.spatial.transform import Rotation

from rtcore.model import Model
from rtcore.tables import FREE


def energy_of_bodies(model: Model, states: np.ndarray, ids: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """(n,) kinetic and potential energy of the free ones of bodies ids (m) with (n, m) BODY_SAMPLE, J, and (n,) the sum
    of the sizes of what it is made of, which its rounding goes by.
    """
    total = np.zeros(len(states))
    size = np.zeros(len(states))
    for column, body in enumerate(ids):
        if model.bodies["kind"][body] != FREE:
            continue
        inertia, state = model.inertias[body], states[:, column]
        turned = Rotation.from_quat(state["orientation"])
        spin = (turned * Rotation.from_quat(inertia["axes"])).inv().apply(state["angular"])
        centre = state["position"] + turned.apply(inertia["centre"])
        kinetic = 0.5 * inertia["mass"] * (state["linear"] ** 2).sum(axis=1)
        kinetic += 0.5 * (inertia["moments"] * spin**2).sum(axis=1)
        gravity = model.world[0]["gravity"]
        total += kinetic - inertia["mass"] * (centre @ gravity)
        size += kinetic + inertia["mass"] * (np.abs(centre) @ np.abs(gravity))
    return total, size


def spring_change(model: Model, settings: np.void, output: np.ndarray) -> np.ndarray:
    """(n - 1,) change of the energy of the spring from tick to tick, less what the way of the goal put in, J.

    settings: SETTINGS row; output: (n,) OUTPUT. The force does its work on the goal's way with its value at the end of
    the tick. Of what turns the goal goes first, the tool after it.
    """
    stiffness = settings["world_stiffness"] if settings["world_stiffness"] > 0.0 else settings["stiffness"]
    pull = float(stiffness / settings["scale"])
    twist = max(float(settings["rotational_stiffness"] * settings["scale"]), float(model.world[0]["turning"]) * pull)
    goal = output["goal_position"]
    stretch = goal - output["proxy_position"]
    pulled = 0.5 * np.diff((stretch**2).sum(axis=1)) - (stretch[1:] * np.diff(goal, axis=0)).sum(axis=1)
    to = Rotation.from_quat(output["goal_orientation"][1:])
    tool = Rotation.from_quat(output["proxy_orientation"])
    turned = 0.5 * ((to * tool[1:].inv()).magnitude() ** 2 - (to * tool[:-1].inv()).magnitude() ** 2)
    return pull * pulled + twist * turned


def energy_gain(model: Model, settings: np.void, records: np.ndarray, states: np.ndarray, ids: list[int]) -> float:
    """Largest rise (J, 0 or more) within a run of what bodies and spring hold, less what the hand's way put in.

    settings: SETTINGS row; records: (n,) RECORD; states: (n, m) BODY_SAMPLE after them, of bodies ids. Only ticks that
    follow one another count. The tool has no mass, and no body is kinematic.
    """
    change = np.diff(energy_of_bodies(model, states, ids)[0]) + spring_change(model, settings, records["output"])
    known = np.diff(records["tick"].astype(np.int64)) == 1
    account = np.concatenate([[0.0], np.cumsum(np.where(known, change, 0.0))])
    return float((account - np.minimum.accumulate(account)).max())
