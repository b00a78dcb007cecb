"""Motions for hands: made from simulated arms, recordings or scripts, and laid into a daemon's scene.

A motion is laid out in scene coordinates of the tip centre (where surfaces are) and turned into the device frame here,
by the daemon's own map. It begins where the tool is, so nothing jumps and no re-anchoring is needed. Running one at a
daemon is :mod:`bridge.hands`.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any, Protocol

import numpy as np
from scipy.spatial.transform import Rotation

from bridge.client import Client
from bridge.recordings import Placement, Recording, RecordingError, fit, fit_to_box, read_recording
from bridge.scripts import Script, read_script
from bridge.wire import Vector
from haptics.guided import GuidedPath, Step
from haptics.hands import (
    HANDS_OFF,
    HELD,
    LIGHT,
    CircleDrag,
    DeviceDynamics,
    HandPose,
    Path,
    PathPoint,
    RandomMotion,
    ScriptedHand,
    SimulatedHand,
    Tapping,
    WayPoints,
)
from rtcore.spatial import conjugate, multiply, quaternion, rotate, vector

KINDS = ("sim", "recorded", "scripted")
PATHS = ("circle", "tap", "random")
GRIPS = {"held": HELD, "light": LIGHT, "off": HANDS_OFF}

NO_WRENCH = (0.0,) * 6

APPROACH_SPEED = 0.05
"""m/s in the scene, mean, of the way from the tool to where a motion begins."""

# ---------------------------------------------------------------------------------------------------------------------
# Scene and device frame
# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SceneView:
    """What a hand has to know of the daemon's scene: the map between scene and device, the tool, the surfaces."""

    position: np.ndarray
    """(3,) of the workspace map, scene m."""
    orientation: np.ndarray
    """(4,) xyzw."""
    scale: float
    """Scene metres per device metre."""
    tip_offset: np.ndarray
    """(3,) tool coordinates, m."""
    tip_radius: float
    """Of a sphere tip; of a whole tool how far its farthest point is from the tip centre, m."""
    tip: np.ndarray
    """(3,) where the tip centre is now, scene m."""
    turn: np.ndarray = field(default_factory=lambda: np.array((0.0, 0.0, 0.0, 1.0)))
    """(4,) xyzw, how the tool is turned now, tool to scene."""
    whole: bool = False
    """The tool is a mesh rather than a sphere tip."""
    tool: np.ndarray | None = None
    """(n, 3) corners of a whole tool from the tip centre, tool axes, m; None when the daemon runs elsewhere."""
    stiffness: float = 400.0
    """Of the spring that is felt, N/m at the device."""
    span: float = math.inf
    """Across the workspace of the device, scene m; infinite when its card does not tell."""
    bodies: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Triangles (n, 3, 3) of each body in the scene, m; empty when the daemon runs elsewhere."""

    @classmethod
    def of(cls, client: Client, daemon: str | Mapping[str, str] = "default") -> "SceneView":
        """The scene of the daemon that ``client`` speaks with; surfaces come from the files of a local daemon."""
        description = client.describe()
        config = description["config"]
        newest = client.status().get("newest")
        scene = description["scene"]
        tip = newest["proxy_position"] if newest else scene["start"]
        turn = newest["proxy_orientation"] if newest else scene["start_orientation"]
        pose = config["workspace"]["pose"]
        known = isinstance(daemon, str) and "://" not in daemon
        bodies, tool = _local_surfaces(str(daemon)) if known else ({}, None)
        return cls(
            position=np.array(pose["position"], dtype=float),
            orientation=np.array(pose["orientation"], dtype=float) / np.linalg.norm(pose["orientation"]),
            scale=float(config["workspace"]["scale"]),
            tip_offset=np.array(config["tool"]["tip_offset"], dtype=float),
            tip_radius=float(scene["tool"]["reach"]),
            tip=np.array(tip, dtype=float),
            turn=np.array(turn, dtype=float) / np.linalg.norm(turn),
            whole=scene["tool"]["kind"] == "mesh",
            tool=tool,
            stiffness=float(description["limits"]["stiffness"]),
            span=float(config["workspace"]["scale"]) * _across(description["card"]),
            bodies=bodies,
        )

    def reach(self, normal: Vector) -> float:
        """How far the tool, turned as it is now, goes from the tip centre against ``normal`` (3,), m."""
        if self.tool is None:
            return self.tip_radius
        down = -np.asarray(normal, dtype=float) / np.linalg.norm(normal)
        return float((Rotation.from_quat(self.turn).apply(self.tool) @ down).max())

    def as_held(self, orientations: np.ndarray) -> np.ndarray:
        """Tool orientations (n, 4) for a whole tool that is held as it is turned now when the first one is reached."""
        turns = Rotation.from_quat(orientations)
        return (turns * turns[0].inv() * Rotation.from_quat(self.turn)).as_quat()

    def to_device(self, tips: np.ndarray, orientations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Device poses that put the tip centre there: tips (n, 3) scene m and tool orientations (n, 4) xyzw.

        Returns positions (n, 3) m and orientations (n, 4) of the coupling point in the device frame.
        """
        back = Rotation.from_quat(self.orientation).inv()
        tools = Rotation.from_quat(orientations)
        origins = np.asarray(tips) - tools.apply(self.tip_offset)
        return back.apply(origins - self.position) / self.scale, (back * tools).as_quat()

    def surface_below(self, start: Vector, normal: Vector) -> np.ndarray | None:
        """First point of any body on the ray from ``start`` against ``normal`` (3,), scene m; None when there is none.

        Möller and Trumbore 1997, over all triangles at once; both sides count.
        """
        if not self.bodies:
            return None
        triangles = np.concatenate(list(self.bodies.values()))
        origin = np.asarray(start, dtype=float)
        direction = -np.asarray(normal, dtype=float) / np.linalg.norm(normal)
        first, second = triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0]
        across = np.cross(direction, second)
        determinant = np.sum(first * across, axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            away = origin - triangles[:, 0]
            u = np.sum(away * across, axis=1) / determinant
            over = np.cross(away, first)
            v = over @ direction / determinant
            t = np.sum(second * over, axis=1) / determinant
            hit = (determinant != 0) & (u >= 0) & (v >= 0) & (u + v <= 1) & (t >= 0)
        return origin + t[hit].min() * direction if hit.any() else None

    def check_depth(self, depth: float) -> None:
        """Raise ValueError when a hand cannot press so deep, scene m."""
        if depth > self.span:
            text = f"depth = {depth:g} m is more than the {self.span:.3g} m that the device's workspace is across"
            raise ValueError(text)

    def box(self, body: str) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper corner (3,) of a body, scene m. Raises ValueError when there is no such body here."""
        if body not in self.bodies:
            known = ", ".join(sorted(self.bodies)[:20]) or "none (the daemon is not a local one)"
            raise ValueError(f"the scene has no body named `{body}`; there are: {known}")
        corners = self.bodies[body].reshape(-1, 3)
        return corners.min(axis=0), corners.max(axis=0)


def _local_surfaces(name: str) -> tuple[dict[str, np.ndarray], np.ndarray | None]:
    """Triangles of the bodies in the scene, and corners of a whole tool in its own frame."""
    from bridge.moment import body_triangles, tool_triangles
    from bridge.runtime import RuntimeDirectory, read_assembly

    try:
        stored = read_assembly(RuntimeDirectory(name))
    except (OSError, ValueError, KeyError):
        return (
            {},
            None,
        )  # the files of a daemon of another version or user: the scene is then only known through the wire
    bodies = dict(zip(stored.body_names, body_triangles(stored.model), strict=True))
    tool = tool_triangles(stored.model)
    return bodies, None if tool is None else np.unique(tool.reshape(-1, 3), axis=0)


# ---------------------------------------------------------------------------------------------------------------------
# Motions
# ---------------------------------------------------------------------------------------------------------------------


class Motion(Protocol):
    """What :func:`run_hand` plays: device poses, step by step."""

    first: HandPose
    """Where it begins; held until forces are on."""

    @property
    def duration_s(self) -> float | None:
        """s; None: without end. It may become shorter while the motion goes on."""
        ...

    def step(self, dt: float, wrench: Sequence[float]) -> HandPose:
        """Go on by ``dt`` (s) while feeling ``wrench`` (6,), device frame; return the device pose at the end."""
        ...


class HandMotion:
    """A hand of :mod:`haptics.hands` that begins at ``first``, device frame."""

    def __init__(self, hand: Any, first: HandPose, duration_s: float | None = None) -> None:
        self._hand = hand
        self.first = first
        self.duration_s = duration_s

    def step(self, dt: float, wrench: Sequence[float]) -> HandPose:
        """See :class:`Motion`."""
        return self._hand.step(dt, wrench)


class PathMotion:
    """A path that is followed exactly, whatever is felt; with ``loop`` it goes there and back for ever."""

    def __init__(self, at: Callable[[float], Any], begin_s: float, duration_s: float, *, loop: bool = False) -> None:
        """``at(t)`` gives position and orientation; the part from ``begin_s`` to ``duration_s`` is what loops."""
        self._at = at
        self._begin_s = begin_s
        self._end_s = duration_s
        self._loop = loop
        self._time = 0.0
        self.duration_s = None if loop else duration_s
        self.first = self._pose(0.0)

    def _pose(self, time_s: float) -> HandPose:
        point = self._at(time_s)
        return HandPose(point.position, point.orientation)

    def step(self, dt: float, wrench: Sequence[float]) -> HandPose:
        """See :class:`Motion`."""
        self._time += dt
        span = self._end_s - self._begin_s
        place = self._time
        if self._loop and place > self._end_s and span > 0:
            there = (place - self._begin_s) % (2 * span)
            place = self._begin_s + (there if there <= span else 2 * span - there)
        return self._pose(place)


class GuidedMotion:
    """A simulated hand that feels its way along the steps of a script (:mod:`haptics.guided`)."""

    def __init__(self, view: "SceneView", script: Script, device: DeviceDynamics | None = None) -> None:
        """``script`` with ``hand``. The device is the reference one when absent."""
        traits = script.hand
        if traits is None:
            raise ValueError("a script needs a table [hand] for a hand that feels")
        self._view = view
        self._path = GuidedPath(script.steps, view.tip, view.turn, traits.misjudgement)
        in_device = _InDevice(self._path, view, held=False)
        grip = GRIPS[traits.grip]
        # a throw-away one first: it loads the kernel, which must not happen while moving
        SimulatedHand(in_device, grip, device).step(1e-3, NO_WRENCH)
        self._hand = SimulatedHand(in_device, grip, device, delay_ticks=traits.delay_ticks)
        begin = in_device.at(0.0)
        self._pose = self.first = HandPose(begin.position, begin.orientation)
        self._to_scene = Rotation.from_quat(view.orientation).as_matrix()

    @property
    def duration_s(self) -> float:
        """The latest end as it is known now: steps may end early."""
        return self._path.longest_s

    @property
    def step_number(self) -> int:
        """Which step of the script is being made, from 0 on."""
        return self._path.step_number

    def step(self, dt: float, wrench: Sequence[float]) -> HandPose:
        """See :class:`Motion`."""
        force = np.array(wrench[:3], dtype=float)
        view = self._view
        # the tool is at the other end of the spring that is felt
        place = self._pose.position + force / view.stiffness
        x, y, z, w = (float(c) for c in self._pose.orientation)
        turn = multiply(quaternion(view.orientation), (x, y, z, w))
        tool = view.position + view.scale * (self._to_scene @ place) + np.array(rotate(turn, vector(view.tip_offset)))
        self._path.feel(self._hand.time, tool, self._to_scene @ force)
        self._pose = self._hand.step(dt, wrench)
        return self._pose


class _Then:
    """A way to the beginning of a path, then the path."""

    def __init__(self, way: Path, way_s: float, path: Path) -> None:
        self._way, self._way_s, self._path = way, way_s, path

    def at(self, time: float) -> PathPoint:
        """See :class:`haptics.hands.Path`."""
        return self._way.at(time) if time < self._way_s else self._path.at(time - self._way_s)


class _InDevice:
    """A path of the tip centre in the scene, as a path of the device.

    ``held``: its orientations are turns of the tool from how it is turned now.
    """

    def __init__(self, path: Path, view: SceneView, *, held: bool) -> None:
        self._path = path
        self._position = view.position
        self._tip_offset = vector(view.tip_offset)
        self._back = conjugate(quaternion(view.orientation))
        self._held = quaternion(view.turn) if held else None
        self._turn = Rotation.from_quat(view.orientation).as_matrix().T / view.scale
        self._tool: list[float] = []

    def at(self, time: float) -> PathPoint:
        """See :class:`haptics.hands.Path`."""
        point = self._path.at(time)
        tool = point.orientation.tolist()
        if tool != self._tool:  # most paths never turn it
            self._tool = tool
            x, y, z, w = tool if self._held is None else multiply((tool[0], tool[1], tool[2], tool[3]), self._held)
            # kernels, not Rotation: this runs a thousand times a second
            self._orientation = np.array(multiply(self._back, (x, y, z, w)))
            self._origin = self._position + rotate((x, y, z, w), self._tip_offset)
        return PathPoint(self._turn @ (point.position - self._origin), self._turn @ point.velocity, self._orientation)


def _way(view: SceneView, goal: np.ndarray, orientation: np.ndarray) -> tuple[WayPoints, float]:
    """Minimum-jerk way of the tip from where the tool is to ``goal`` (3,), scene, without turning, and its duration."""
    seconds = max(0.2, float(np.linalg.norm(goal - view.tip)) / APPROACH_SPEED)
    return WayPoints([0.0, seconds], np.stack((view.tip, goal)), np.stack((orientation, orientation))), seconds


def _across(card: Mapping[str, Any]) -> float:
    """The longest way within the workspace of a device, m, from its card."""
    radius, size = card.get("workspace_radius"), card.get("workspace_size")
    if size is not None:
        return math.hypot(*size)
    return math.inf if radius is None else 2.0 * radius


def _target(view: SceneView, point: Vector | None, normal: Vector) -> np.ndarray:
    """The point of a surface to work on: the one given, else the first one under the tool."""
    if point is not None:
        return np.asarray(point, dtype=float)
    found = view.surface_below(view.tip, normal)
    if found is None:
        raise ValueError("no surface lies under the tool; say which point to work on (`point`, scene metres)")
    return found


def simulated_motion(
    view: SceneView,
    *,
    path: str | Path = "circle",
    point: Vector | None = None,
    normal: Vector = (0.0, 0.0, 1.0),
    depth: float = 0.005,
    height: float = 0.01,
    radius: float = 0.01,
    period: float = 4.0,
    rate: float = 2.0,
    seed: int = 0,
    grip: str = "held",
    device: DeviceDynamics | None = None,
) -> HandMotion:
    """A simulated arm that works on a surface; lengths and points in scene metres, of the tip.

    ``path``: ``circle`` (press ``depth`` deep, drag round ``radius`` in ``period`` s), ``tap`` (``rate`` per second
    between ``height`` and ``depth``), ``random`` (wander within ``radius``), or a path of one's own. ``point`` with
    outward ``normal``: where on the surface; by default the first one under the tool. ``grip``: ``held``, ``light`` or
    ``off``. Raises ValueError.
    """
    view.check_depth(depth)
    if grip not in GRIPS:
        raise ValueError(f"the grip is one of {', '.join(GRIPS)}, not {grip!r}")
    up = np.asarray(normal, dtype=float) / np.linalg.norm(normal)
    if isinstance(path, str):
        if path not in PATHS:
            raise ValueError(f"the path is one of {', '.join(PATHS)}, not {path!r}")
        # the tip centre of a tool that touches the surface is as far above it as the tool goes down
        touch = _target(view, point, normal) + view.reach(up) * up
        if path == "circle":
            path = CircleDrag(touch, up, radius=radius, period=period, depth=depth, height=height)
        elif path == "tap":
            path = Tapping(touch, up, height=height, depth=depth, rate=rate)
        else:
            path = RandomMotion(seed, touch, radius=radius)
    begin = path.at(0.0)
    way, seconds = _way(view, begin.position, begin.orientation)
    whole = _InDevice(_Then(way, seconds, path), view, held=view.whole)
    first = whole.at(0.0)
    # a throw-away one first: it loads the kernel, which must not happen while moving
    SimulatedHand(whole, GRIPS[grip], device).step(1e-3, NO_WRENCH)
    hand = SimulatedHand(whole, GRIPS[grip], device)
    return HandMotion(hand, HandPose(first.position, first.orientation))


def recorded_motion(
    view: SceneView,
    recording: str | FilePath | Recording,
    *,
    topic: str | None = None,
    placement: Placement | None = None,
    body: str | None = None,
    point: Vector | None = None,
    normal: Vector = (0.0, 0.0, 1.0),
    depth: float = 0.005,
    extent: float | None = None,
    flat: bool = False,
    speed: float = 1.0,
    loop: bool = False,
    device_frame: bool = False,
) -> PathMotion:
    """A recorded motion laid into the scene; it is followed exactly, as one hand cannot feel what another one did.

    With ``placement`` it goes where that says. Else it is fitted (:func:`bridge.recordings.fit`): over ``body`` (name)
    or over ``point`` with outward ``normal`` (by default the surface under the tool), its deepest sample ``depth``
    below the surface, within ``extent`` m (a body's width by default), laid ``flat`` when asked. A whole tool is turned
    by as much as the hand turned since it began; a sphere tip is turned as the hand was. ``device_frame``: the
    recording already is in the device frame and is taken as it stands. ``loop``: there and back. Raises RecordingError
    or ValueError.
    """
    view.check_depth(depth)
    motion = recording if isinstance(recording, Recording) else read_recording(recording, topic=topic)
    if placement is None and not device_frame:
        if body is not None:
            lower, upper = view.box(body)
            upper[2] += view.reach((0.0, 0.0, 1.0))
            placement = fit_to_box(motion, lower, upper, press_depth=depth, flat=flat, speed=speed)
            if extent is not None:
                centre = ((lower[0] + upper[0]) / 2, (lower[1] + upper[1]) / 2, upper[2])
                placement = fit(motion, centre, press_depth=depth, extent=extent, flat=flat, speed=speed)
        else:
            up = np.asarray(normal, dtype=float) / np.linalg.norm(normal)
            touch = _target(view, point, normal) + view.reach(up) * up
            placement = fit(motion, touch, normal=normal, press_depth=depth, extent=extent, flat=flat, speed=speed)
    elif placement is None:
        placement = Placement(speed=speed)
    placed = placement.apply(motion)
    seconds = (placed.times_ns - placed.times_ns[0]) * 1e-9
    if device_frame:
        table = ScriptedHand(seconds.tolist(), placed.positions, placed.orientations)
        return PathMotion(table.at, 0.0, float(seconds[-1]), loop=loop)
    orientations = view.as_held(placed.orientations) if view.whole else placed.orientations
    way, way_s = _way(view, placed.positions[0], orientations[0])
    grid = np.arange(0.0, way_s, 0.005)
    points = [way.at(float(t)).position for t in grid]
    tips = np.concatenate((points, placed.positions))
    tools = np.concatenate((np.tile(orientations[0], (len(grid), 1)), orientations))
    table = ScriptedHand(np.concatenate((grid, way_s + seconds)).tolist(), *view.to_device(tips, tools))
    return PathMotion(table.at, way_s, float(way_s + seconds[-1]), loop=loop)


def scripted_motion(
    view: SceneView,
    script: str | FilePath,
    *,
    loop: bool = False,
    device_frame: bool = False,
    device: DeviceDynamics | None = None,
) -> Motion:
    """Way points from a file, joined by minimum-jerk reaches; tip centre in the scene, m (or poses of the device).

    TOML: see :mod:`bridge.scripts`; with a table ``[hand]`` a simulated hand, moving ``device``, feels its way along
    the steps. CSV: the columns of :mod:`bridge.recordings`. Raises RecordingError or ValueError.
    """
    path = FilePath(script)
    if not path.exists():
        raise RecordingError(f"{path}: no such file; a script is a TOML or CSV file")
    if path.suffix.lower() == ".csv":
        rows = read_recording(path)
        times = ((rows.times_ns - rows.times_ns[0]) * 1e-9).tolist()
        positions, orientations = rows.positions, rows.orientations
        begin = 0.0
        if not device_frame and np.linalg.norm(positions[0] - view.tip) > 1e-6:
            begin = _way(view, positions[0], orientations[0])[1]
            times = [0.0, *(begin + t for t in times)]
            positions = np.concatenate(([view.tip], positions))
            first = view.turn[None] if view.whole else orientations[:1]
            orientations = np.concatenate((first, orientations))
    else:
        here = np.zeros(3) if device_frame else view.tip
        turn = np.array((0.0, 0.0, 0.0, 1.0)) if device_frame else view.turn
        told = read_script(path)
        if told.hand is not None:
            if loop or device_frame:
                raise ValueError(
                    f"{path}: a hand that feels its way makes it once, in the scene: no loop, no device frame"
                )
            return GuidedMotion(view, told, device)
        times, positions, orientations = _table(told.steps, here, turn)
        begin = 0.0
    points = WayPoints(times, positions, orientations)
    whole: Path = points if device_frame else _InDevice(points, view, held=False)
    return PathMotion(whole.at, begin, times[-1], loop=loop)


def _table(steps: Sequence[Step], start: np.ndarray, turn: np.ndarray) -> tuple[list[float], np.ndarray, np.ndarray]:
    """Times (s) and poses of steps that are followed exactly, with the beginning before them."""
    times, positions, orientations = [0.0], [start], [turn]
    for step in steps:
        times.append(times[-1] + step.seconds)
        positions.append(positions[-1] if step.to is None else step.to)
        orientations.append(orientations[-1] if step.orientation is None else step.orientation)
    return times, np.array(positions), np.array(orientations)


def make_motion(kind: str, view: SceneView, **options: Any) -> Motion:
    """A motion by its kind: ``sim``, ``recorded`` or ``scripted``, with the options of the functions of those names."""
    makers: dict[str, Callable[..., Motion]] = {
        "sim": simulated_motion,
        "recorded": recorded_motion,
        "scripted": scripted_motion,
    }
    if kind not in makers:
        raise ValueError(f"a hand is one of {', '.join(KINDS)}, not {kind!r}")
    return makers[kind](view, **options)
