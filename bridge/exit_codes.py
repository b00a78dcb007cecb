"""Exit codes of the processes and of the command line, documented here and nowhere else."""

from enum import IntEnum


class ExitCode(IntEnum):
    """What a process of hapticd says when it ends."""

    OK = 0
    """Ended as asked; forces were ramped down."""
    FAILURE = 1
    """Something failed that has no code of its own; the sentence on stderr says what."""
    USAGE = 2
    """The command line was not understood."""
    CONFIG = 3
    """The configuration file is wrong."""
    INPUT = 4
    """A file (mesh, scene, log, recording) is missing or cannot be read."""
    ALREADY_RUNNING = 5
    """A daemon of that name runs; it was left alone."""
    ADDRESS_IN_USE = 6
    """A TCP port of the daemon belongs to another program."""
    NO_SPACE = 7
    """Neither /dev/shm nor the runtime directory has room for the shared ring."""
    NOT_RUNNING = 8
    """No daemon of that name runs."""
    REFUSED = 9
    """The daemon answered, and refused the request."""
    DIFFERENT = 10
    """A comparison (re-execution, diff) found a difference."""
    DEVICE = 11
    """An adapter's device is missing, was unplugged or cannot be used."""
    SERVO_DIED = 20
    """The servo process was killed or crashed; everything else was stopped."""
    SERVO_START = 21
    """The servo could not start: its reason is on stderr."""
    TICK_RAISED = 22
    """The tick itself raised an error; forces were ramped down, the error is on stderr."""
    SERVO_STUCK = 23
    """The servo did not end in time after it was asked to and was killed."""
    CHILD_START = 24
    """Recorder or publisher could not start."""
