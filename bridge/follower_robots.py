"""The robot at the end of a link: what it has to do, how one is found, and a simulated one to try things out with."""

import importlib
import importlib.util
import inspect
import math
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

from haptics.robot_models import RobotModel

SIMULATED = "simulated"
METHODS = ("read", "command", "stop")

WATCHDOG_S = 0.05
"""A simulated robot holds when nothing has been commanded for so long."""

CAUGHT_UP_S = 0.05
"""A simulated robot whose process was held up goes on for at most so long."""


class RobotError(RuntimeError):
    """The robot is missing, says what cannot be, or does not do what it is told: one sentence."""


class RobotReading(NamedTuple):
    """What a robot measures."""

    position: Sequence[float]
    """(3,) m, of the point that is led, in a right-handed frame with the axes of the leader's scene."""
    orientation: Sequence[float] = (0.0, 0.0, 0.0, 1.0)
    """(4,) xyzw, tool to that frame."""
    twist: Sequence[float] = (0.0,) * 6
    """(6,) m/s and rad/s of that point, in that frame."""
    wrench: Sequence[float] = (0.0,) * 6
    """(6,) N and N·m: what its surroundings do to it, without the weight of its tool; about that point."""
    engaged: bool = True
    """False while it may not be led: brakes, enabling switch, an operator at its own panel."""


@runtime_checkable
class Robot(Protocol):
    """A robot with a position controller of its own. The loop calls these each millisecond, and none may wait.

    A class with these three methods will do; it need not be derived from this one. Options of ``--set key=value`` are
    texts, and arguments of the constructor, which connects. Raise RobotError with one sentence when the robot is gone.

    The robot's own controller has to hold when commands cease, by a watchdog of its own: a process may be killed.
    """

    stiffness: float = 1000.0
    """K of the position controller, N/m: force per metre between set-point and robot. Where you do not know it, give
    m (2 pi f)^2 of the moving mass and the bandwidth."""
    damping: float = 50.0
    """B, N·s/m."""
    rotational_stiffness: float = 0.0
    """N·m/rad; 0: the robot keeps its orientation."""
    rotational_damping: float = 0.0
    """N·m·s/rad."""

    def read(self) -> RobotReading | None:
        """Its newest state, at once; None while there is nothing newer than what was read last."""
        ...

    def command(self, position: Sequence[float], orientation: Sequence[float], twist: Sequence[float]) -> None:
        """Take a set-point: position (3,) m, orientation (4,) xyzw, twist (6,) m/s and rad/s, in the frame of `read`.

        It has passed the limits of speed and box, and begins where the robot is.
        """
        ...

    def stop(self) -> None:
        """Hold where you are. Called before the first command, when the link is down, and at the end; often twice."""
        ...


class SimulatedRobot:
    """2 kg with friction, a controller of 6 Hz that gets commands 2 ms late, and a force sensor with noise; a wall."""

    def __init__(
        self,
        wall: str = "",
        wall_stiffness: str = "2000",
        start: str = "0,0,0",
        mass: str = "2",
        viscous: str = "2",
        coulomb: str = "0.3",
        bandwidth: str = "6",
        delay_ms: str = "2",
        noise: str = "0.05",
        quantum: str = "0.02",
        force_max: str = "100",
        seed: str = "0",
    ) -> None:
        """Options are texts: ``wall`` its height (m), "" without; ``start`` X,Y,Z (m); N/m, kg, N·s/m, N, Hz, ms, N.
        Raises RobotError.
        """
        place = [_number("start", part) for part in start.split(",")]
        if len(place) != 3:
            raise RobotError(f"start = {start!r} must be three numbers with commas between them")
        try:
            self.model = RobotModel(
                place,
                mass=_number("mass", mass),
                viscous=_number("viscous", viscous),
                coulomb=_number("coulomb", coulomb),
                bandwidth=_number("bandwidth", bandwidth),
                delay=1e-3 * _number("delay_ms", delay_ms),
                wall=_number("wall", wall) if wall else None,
                wall_stiffness=_number("wall_stiffness", wall_stiffness),
                force_max=_number("force_max", force_max),
                noise=_number("noise", noise),
                quantum=_number("quantum", quantum),
                seed=int(_number("seed", seed)),
            )
        except ValueError as error:
            raise RobotError(f"the simulated robot: {error}") from None
        model = self.model
        self.stiffness, self.damping = model.stiffness, model.damping
        self.rotational_stiffness, self.rotational_damping = model.rotational_stiffness, model.rotational_damping
        self._now = self._commanded = time.monotonic()

    def read(self) -> RobotReading:
        """Go on to the present, and measure."""
        now = time.monotonic()
        if now - self._commanded > WATCHDOG_S:
            self.model.hold()
        self.model.step(min(now - self._now, CAUGHT_UP_S))
        self._now = now
        pose = self.model.read()
        return RobotReading(
            pose.position.tolist(), pose.orientation.tolist(), pose.twist.tolist(), pose.wrench.tolist()
        )

    def command(self, position: Sequence[float], orientation: Sequence[float], twist: Sequence[float]) -> None:
        """Take a set-point."""
        self._commanded = time.monotonic()
        self.model.command(position, orientation, twist)

    def stop(self) -> None:
        """Hold."""
        self.model.hold()


def _number(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise RobotError(f"{name} = {text!r} must be a finite number")
    return value


def find_robot(name: str) -> type:
    """The class of a robot: ``simulated``, ``package.module:Class`` or ``file.py:Class``; the class may be left out
    where the module has one with the methods of :class:`Robot`. Raises RobotError.
    """
    if name == SIMULATED:
        return SimulatedRobot
    module_name, _, class_name = name.partition(":")
    if not (class_name or "." in name or "/" in name):
        raise RobotError(f"no robot {name!r}; there is {SIMULATED}, or give MODULE:CLASS")
    module = _module(module_name)
    if class_name:
        found = getattr(module, class_name, None)
        if not inspect.isclass(found):
            raise RobotError(f"{module_name} has no class {class_name!r}")
        missing = [method for method in METHODS if not callable(getattr(found, method, None))]
        if missing:
            raise RobotError(f"{module_name}:{class_name} lacks {', '.join(f'`{method}()`' for method in missing)}")
        return found
    own = [
        value
        for value in vars(module).values()
        if inspect.isclass(value)
        and value.__module__ == module.__name__
        and all(callable(getattr(value, method, None)) for method in METHODS)
    ]
    if len(own) != 1:
        raise RobotError(f"{module_name} has {len(own)} classes with read, command and stop: say which, MODULE:CLASS")
    return own[0]


def make_robot(name: str, options: Mapping[str, str]) -> Robot:
    """A robot with its options. Raises RobotError."""
    kind = find_robot(name)
    known = list(inspect.signature(kind).parameters)
    for key in options:
        if key not in known:
            raise RobotError(f"the robot {name} has no option {key!r}; it has {', '.join(known) or 'none'}")
    try:
        return kind(**options)
    except RobotError:
        raise
    except Exception as error:
        raise RobotError(f"the robot {name} cannot be made: {type(error).__name__}: {error}") from error


def _module(name: str):
    try:
        if not name.endswith(".py"):
            return importlib.import_module(name)
        path = Path(name).resolve()
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        spec.loader.exec_module(module)
        return module
    except Exception as error:  # whatever a user's file does when it is loaded
        raise RobotError(f"{name} cannot be loaded: {error}") from None
