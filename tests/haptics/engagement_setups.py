"""Rigs that have been brought into each engagement state by the shortest honest way."""

import numpy as np
from haptics_rig import Rig

from haptics.states import CommandKind as Command
from haptics.states import EngagementState as State
from haptics.states import Reason

OTHER = 99
ASIDE = np.array([1.0, 0.0, 0.0])
LEAP = 0.1 * ASIDE


def idle(**options) -> Rig:
    rig = Rig(**options)
    assert rig.command(Command.LEASE) == Reason.NONE
    rig.run(3)
    return rig


def armed(**options) -> Rig:
    rig = idle(**options)
    assert rig.command(Command.ARM, 1, fresh=False) == Reason.NONE
    assert rig.status == State.ARMED
    return rig


def engaging(**options) -> Rig:
    rig = armed(**options)
    rig.run(10)
    assert rig.status == State.ENGAGING
    return rig


def active(**options) -> Rig:
    rig = armed(ramp_up_ms=20.0, **options)
    rig.run(30)
    assert rig.status == State.ACTIVE
    return rig


def hold(**options) -> Rig:
    rig = active(**options)
    rig.silence(7)
    assert rig.status == State.HOLD
    return rig


def releasing(**options) -> Rig:
    rig = active(**options)
    assert rig.command(Command.DISARM) == Reason.NONE
    assert rig.status == State.RELEASING
    return rig


def fault(**options) -> Rig:
    rig = idle(**options)
    assert rig.command(Command.STOP) == Reason.NONE
    assert rig.status == State.FAULT
    return rig


def clutched(**options) -> Rig:
    rig = active(**options)
    assert rig.command(Command.CLUTCH, 1) == Reason.NONE
    rig.run(110)
    assert (rig.status, rig.row["clutched"]) == (State.IDLE, 2)
    return rig


SETUPS = {
    "idle": idle,
    "armed": armed,
    "engaging": engaging,
    "active": active,
    "hold": hold,
    "releasing": releasing,
    "fault": fault,
    "clutched": clutched,
}
