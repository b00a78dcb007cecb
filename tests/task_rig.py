"""A task without processes: hand and tick in one loop, one tick of delay between them, as fast as they go."""

from pathlib import Path

import numpy as np

from bridge.assemble import Assembly, assemble
from bridge.config import load_config
from bridge.motions import SceneView, scripted_motion
from haptics.bodies import sample_bodies
from haptics.hands import DeviceDynamics, HandPose
from haptics.states import CommandKind, EngagementState
from haptics.tables import BODY_SAMPLE, RECORD
from haptics.tick import tick
from haptics.touch import make_touch
from rtcore.model import moving_bodies
from rtcore.state import State, make_state

SESSION = 7


class States(np.ndarray):
    """(ticks, n) BODY_SAMPLE of the bodies ``ids`` (n), as a log has them."""

    ids: tuple[int, ...]

    def __new__(cls, states: np.ndarray, ids: tuple[int, ...]) -> "States":
        made = states.view(cls)
        made.ids = ids
        return made


def start_of(assembly: Assembly) -> State:
    """The state before the first tick."""
    return make_state(assembly.model, assembly.start, assembly.start_orientation)


def do_task(config: Path, script: Path) -> tuple[Assembly, np.ndarray, States | None]:
    """Run a hand at a scene until it is done: what was assembled, the (n,) RECORD of the ticks, and the states after
    them of bodies that move."""
    assembly = assemble(load_config(config), config.parent)
    pose, tool = assembly.config.workspace.pose, assembly.config.tool
    view = SceneView(
        position=np.array(pose.position),
        orientation=np.array(pose.orientation),
        scale=assembly.config.workspace.scale,
        tip_offset=np.array(tool.tip_offset),
        tip_radius=0.0,
        tip=np.array(assembly.start),
        turn=np.array(assembly.start_orientation),
        whole=True,
        stiffness=float(assembly.settings[0]["stiffness"]),
    )
    motion = scripted_motion(view, script, device=DeviceDynamics.from_card(assembly.card))
    state, touch = start_of(assembly), make_touch(assembly.settings)
    record = np.zeros(1, RECORD)
    record["budget"] = assembly.budget
    rows: list[np.ndarray] = []
    ids = moving_bodies(assembly.model.bodies)
    states: list[np.ndarray] = []

    def feel(device: HandPose, command: CommandKind | None = None) -> None:
        number = len(rows) + 1
        taken = record[0]["input"]
        taken["sample"] = np.zeros(1, taken["sample"].dtype)[0]
        sample = taken["sample"]
        sample["session"], sample["seq"], sample["t_sample"] = SESSION, number, number * 1_000_000
        sample["position"], sample["orientation"] = device
        sample["valid"] = sample["deadman"] = taken["fresh"] = taken["has_sample"] = 1
        taken["command"]["id"] = 0
        if command is not None:
            taken["command"]["id"], taken["command"]["session"] = number, SESSION
            taken["command"]["kind"] = command
        record["tick"] = number
        tick(assembly.model, state, assembly.settings, touch, record)
        record["timing"]["started_ns"] = number * 1_000_000
        rows.append(record[0].copy())
        moving = np.zeros(len(ids), BODY_SAMPLE)
        sample_bodies(state.poses, state.velocities, state.pairs.movers, moving)
        states.append(moving)

    feel(motion.first, CommandKind.LEASE)
    feel(motion.first, CommandKind.ARM)
    while touch[0]["state"] != EngagementState.ACTIVE:
        assert len(rows) < 2000, "forces did not come"
        feel(motion.first)
    seconds = 0.0
    while motion.duration_s is not None and seconds < motion.duration_s:
        seconds += 1e-3
        feel(motion.step(1e-3, rows[-1]["output"]["wrench"]))
    return assembly, np.array(rows), States(np.array(states), tuple(ids)) if ids else None


def repeat(assembly: Assembly, records: np.ndarray) -> int:
    """Execute recorded inputs again; how many ticks came out otherwise."""
    state, touch = start_of(assembly), make_touch(assembly.settings)
    record = np.zeros(1, RECORD)
    differing = 0
    for row in records:
        record["tick"], record["input"], record["budget"] = row["tick"], row["input"], row["budget"]
        tick(assembly.model, state, assembly.settings, touch, record)
        differing += record[0]["output"].tobytes() != row["output"].tobytes()
    return differing
