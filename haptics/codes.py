"""The vocabulary of :mod:`haptics.states` as the plain numbers that kernels compare and store."""

import numpy as np

from haptics.states import EngagementState, Reason

IDLE = int(EngagementState.IDLE)
ARMED = int(EngagementState.ARMED)
ENGAGING = int(EngagementState.ENGAGING)
ACTIVE = int(EngagementState.ACTIVE)
HOLD = int(EngagementState.HOLD)
RELEASING = int(EngagementState.RELEASING)
FAULT = int(EngagementState.FAULT)

OK = int(Reason.NONE)
"""What a command handler returns when it has done what was asked; any other reason is a refusal."""
COMMAND = int(Reason.COMMAND)
STOPPED = int(Reason.STOP)
DEADMAN_RELEASED = int(Reason.DEADMAN_RELEASED)
SAMPLE_LATE = int(Reason.SAMPLE_LATE)
SAMPLE_STALE = int(Reason.SAMPLE_STALE)
SAMPLE_FRESH = int(Reason.SAMPLE_FRESH)
SAMPLE_REJECTED = int(Reason.SAMPLE_REJECTED)
SAMPLE_INVALID = int(Reason.SAMPLE_INVALID)
DEVICE_JUMP = int(Reason.DEVICE_JUMP)
RAMP_DONE = int(Reason.RAMP_DONE)
CLUTCHED = int(Reason.CLUTCH)
LEASE_RELEASED = int(Reason.LEASE_RELEASED)
LEASE_EXPIRED = int(Reason.LEASE_EXPIRED)
SHUT_DOWN = int(Reason.SHUTDOWN)
WAS_RESET = int(Reason.RESET)
TOO_FAR = int(Reason.TOO_FAR)
NOT_OWNER = int(Reason.NOT_OWNER)
LEASE_TAKEN = int(Reason.LEASE_TAKEN)
WRONG_STATE = int(Reason.WRONG_STATE)
BAD_VALUE = int(Reason.BAD_VALUE)
NOT_FINITE = int(Reason.NOT_FINITE)
SUPERVISOR_LOST = int(Reason.SUPERVISOR_LOST)
HANDED_OVER = int(Reason.HANDED_OVER)
OUTSIDE_WORKSPACE = int(Reason.OUTSIDE_WORKSPACE)

# What ARM and a hand-over allow (TOUCH.reanchor).
NEAR_ONLY = 0
IF_FAR = 1
AT_ONCE = 2

# Laws of the coupling (SETTINGS.law).
SPRING = 0
DAMPED = 1
CONSTRAINT = 2

# Kinds of sample, as the tick judges them (TOUCH.sample_kind).
NOTHING_NEW = 0
GOOD = 1
UNUSABLE = 2
JUMPED = 3

NOBODY = np.uint64(0)
"""Owner of a device that is free; also the id of no command and the number of no sample."""
