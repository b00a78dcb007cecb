"""The PyBullet window: follows a running daemon, or plays a log.

It runs in a process of its own and can never slow a tick:

    python -m bridge.view --name default
    python -m bridge.view --log out/demo.mcap --speed 0.25
"""

import argparse
import os
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bridge.exit_codes import ExitCode
from bridge.moment import (
    Moment,
    body_triangles,
    moment,
    moved_poses,
    poses_changed,
    surface_triangles,
    tool_triangles,
)
from haptics.tables import RECORD
from rtcore.model import Model

CHUNK_TRIANGLES = 20_000
"""PyBullet takes at most 131072 vertices per shape; larger meshes are shown in pieces."""

TRAIL_POINTS = 500
TIP_COLOUR = (0.93, 0.30, 0.16, 1.0)
TOOL_COLOUR = (0.95, 0.55, 0.30, 1.0)
GHOST_COLOUR = (0.16, 0.55, 0.86, 0.45)
BODY_COLOURS = ((0.87, 0.85, 0.81, 1), (0.62, 0.71, 0.79, 1), (0.78, 0.70, 0.62, 1), (0.66, 0.74, 0.66, 1))


class NoDisplay(RuntimeError):
    """There is no display to open a window on; the text says what to do."""


class WindowClosed(RuntimeError):
    """The user closed the window."""


def check_display() -> None:
    """Raise NoDisplay when a window cannot be opened (PyBullet would end the process without a word)."""
    if sys.platform != "linux":
        return
    display = os.environ.get("DISPLAY", "")
    advice = "pictures work without one: `hapticd snapshot LOG`, `hapticd plot LOG`"
    if not display:
        raise NoDisplay(f"there is no display (DISPLAY is not set), so no window can be opened; {advice}")
    host, _, number = display.rpartition(":")
    screen = number.split(".")[0]
    if not screen.isdigit():
        raise NoDisplay(f"DISPLAY={display!r} does not name a display, so no window can be opened; {advice}")
    try:
        if host in ("", "unix"):
            path = f"/tmp/.X11-unix/X{screen}"
            with socket.socket(socket.AF_UNIX) as probe:
                probe.settimeout(2.0)
                try:
                    probe.connect(path)
                except OSError:
                    probe.connect("\0" + path)
        else:
            socket.create_connection((host, 6000 + int(screen)), timeout=2.0).close()
    except OSError:
        raise NoDisplay(f"the display {display!r} does not answer, so no window can be opened; {advice}") from None


@dataclass(frozen=True)
class WindowCamera:
    """Where the window looks from."""

    width: float
    height: float
    """pixels"""
    up: np.ndarray
    forward: np.ndarray
    yaw_deg: float
    pitch_deg: float
    distance: float
    target: np.ndarray
    """m"""


class Window:
    """A PyBullet window with the scene of a model. Use as a context manager."""

    def __init__(self, model: Model, title: str = "hapticd", *, gui: bool = True) -> None:
        """``gui`` False builds the same scene without a window (PyBullet DIRECT). Raises NoDisplay."""
        if gui:
            check_display()
        from bridge.quiet import import_pybullet

        self._bullet = import_pybullet()
        b = self._bullet
        self._model = model
        self._client = b.connect(
            b.GUI if gui else b.DIRECT,
            options=f'--window_title="{title}" --background_color_red=0.93 --background_color_green=0.945 '
            "--background_color_blue=0.96 --width=1280 --height=800"
            if gui
            else "",
        )
        if self._client < 0:
            raise NoDisplay("PyBullet could not open its window (is OpenGL 3 there?)")
        self.gui = gui
        if gui:
            for flag in (
                b.COV_ENABLE_GUI,
                b.COV_ENABLE_MOUSE_PICKING,
                b.COV_ENABLE_RGB_BUFFER_PREVIEW,
                b.COV_ENABLE_DEPTH_BUFFER_PREVIEW,
                b.COV_ENABLE_SEGMENTATION_MARK_PREVIEW,
                b.COV_ENABLE_KEYBOARD_SHORTCUTS,
                b.COV_ENABLE_RENDERING,
            ):
                b.configureDebugVisualizer(flag, 0, physicsClientId=self._client)
            b.configureDebugVisualizer(b.COV_ENABLE_SHADOWS, 1, physicsClientId=self._client)
        corners = np.concatenate([t.reshape(-1, 3) for t in body_triangles(model)])
        self.centre = 0.5 * (corners.min(axis=0) + corners.max(axis=0))
        self.radius = float(np.linalg.norm(corners - self.centre, axis=1).max())
        self.distance = 2.1 * self.radius
        self.pieces: list[list[int]] = [self._add_body(i) for i in range(len(model.bodies))]
        tip = float(model.world[0]["tip_radius"])
        tool = tool_triangles(model)
        if tool is None:
            size = max(tip, 0.012 * self.radius)
            self._tool = [self._add_ball(size, TIP_COLOUR)]
            self._ghost = [self._add_ball(size, GHOST_COLOUR)]
        else:
            self._tool = self._add_mesh(tool, TOOL_COLOUR)
            self._ghost = self._add_mesh(tool, GHOST_COLOUR)
        self._trail: list[np.ndarray] = []
        self._items: dict[str, int] = {}
        self._shown_contacts = 0
        if gui:
            b.configureDebugVisualizer(b.COV_ENABLE_RENDERING, 1, physicsClientId=self._client)
            b.configureDebugVisualizer(
                lightPosition=[float(c) for c in self.centre + self.radius * np.array([1.5, -3.0, 4.0])],
                shadowMapWorldSize=max(1, round(3.0 * self.radius)),
                shadowMapResolution=4096,
                shadowMapIntensity=0.35,
                physicsClientId=self._client,
            )
            self.look_at(self.centre, self.distance, 40.0, -28.0)

    def __enter__(self) -> "Window":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the window; harmless when the user has closed it already."""
        if self._client >= 0 and self.is_open():
            self._bullet.disconnect(physicsClientId=self._client)
        self._client = -1

    def is_open(self) -> bool:
        """Whether the window is still there."""
        return bool(self._bullet.getConnectionInfo(physicsClientId=self._client)["isConnected"])

    def look_at(self, target: np.ndarray, distance: float, yaw_deg: float, pitch_deg: float) -> None:
        """Place the camera (PyBullet's yaw and pitch, degrees)."""
        self._bullet.resetDebugVisualizerCamera(
            distance, yaw_deg, pitch_deg, [float(c) for c in target], physicsClientId=self._client
        )

    def _add_body(self, body_id: int) -> list[int]:
        body = self._model.bodies[body_id]
        pieces = self._add_mesh(surface_triangles(self._model, body_id), BODY_COLOURS[body_id % len(BODY_COLOURS)])
        for piece in pieces:
            self._move(piece, body["position"], body["orientation"])
        return pieces

    def _add_mesh(self, triangles: np.ndarray, colour: tuple[float, float, float, float]) -> list[int]:
        """Show (n, 3, 3) triangles of a frame of their own, in as many pieces as it takes."""
        from bridge.raster import smooth_normals

        b = self._bullet
        normals = smooth_normals(np.ascontiguousarray(triangles))
        pieces = []
        for start in range(0, len(triangles), CHUNK_TRIANGLES):
            part = triangles[start : start + CHUNK_TRIANGLES].reshape(-1, 3)
            shape = b.createVisualShape(
                b.GEOM_MESH,
                vertices=part.tolist(),
                indices=list(range(len(part))),
                normals=normals[start : start + CHUNK_TRIANGLES].reshape(-1, 3).tolist(),
                rgbaColor=colour,
                specularColor=[0.15, 0.15, 0.15],
                physicsClientId=self._client,
            )
            pieces.append(b.createMultiBody(baseVisualShapeIndex=shape, physicsClientId=self._client))
        return pieces

    def _add_ball(self, radius: float, colour: tuple[float, float, float, float]) -> int:
        b = self._bullet
        shape = b.createVisualShape(b.GEOM_SPHERE, radius=radius, rgbaColor=colour, physicsClientId=self._client)
        return b.createMultiBody(baseVisualShapeIndex=shape, physicsClientId=self._client)

    def place_bodies(self, poses: np.ndarray) -> None:
        """Put the bodies at (n_bodies,) POSE."""
        for pieces, pose in zip(self.pieces, poses, strict=True):
            for piece in pieces:
                self._move(piece, pose["position"], pose["orientation"])

    def _move(self, body: int, position: np.ndarray, orientation: np.ndarray | None = None) -> None:
        turn = (0.0, 0.0, 0.0, 1.0) if orientation is None else [float(c) for c in orientation]
        self._bullet.resetBasePositionAndOrientation(
            body, [float(c) for c in position], turn, physicsClientId=self._client
        )

    def show(self, now: Moment, force_full: float, passed: np.ndarray) -> None:
        """Draw a moment; a force of ``force_full`` N is an arrow of half the scene's radius.

        ``passed``: (n, 3) where the tip has been since the last call, scene, m. Raises WindowClosed.
        """
        b = self._bullet
        if not self.is_open():
            raise WindowClosed
        try:
            for piece in self._tool:
                self._move(piece, now.proxy, now.proxy_turn)
            for piece in self._ghost:
                self._move(piece, now.device, now.device_turn)
            if not self.gui:
                return
            arrow = now.proxy + 0.5 * self.radius / max(force_full, 1e-9) * now.force
            self._line("force", now.proxy, arrow, (0.05, 0.50, 0.36), 6.0)
            self._line("spring", now.proxy, now.device, (0.16, 0.55, 0.86), 2.0)
            for i, (point, normal, _, _) in enumerate(now.contacts):
                self._line(f"contact{i}", point, point + 0.12 * self.radius * normal, (0.2, 0.22, 0.25), 2.0)
            for i in range(len(now.contacts), self._shown_contacts):
                self._line(f"contact{i}", now.proxy, now.proxy, (0.2, 0.22, 0.25), 1.0)
            self._shown_contacts = len(now.contacts)
            self._extend_trail(passed)
            self._items["text"] = b.addUserDebugText(
                now.text,
                self._text_place(),
                textColorRGB=(0.15, 0.17, 0.20),
                textSize=1.2,
                replaceItemUniqueId=self._items.get("text", -1),
                physicsClientId=self._client,
            )
        except b.error:
            if self.is_open():
                raise
            raise WindowClosed from None

    def _text_place(self) -> list[float]:
        """Upper left of the picture, wherever the camera is now."""
        camera = self.camera()
        right = np.cross(camera.forward, camera.up)
        right /= max(float(np.linalg.norm(right)), 1e-9)
        corner = camera.target + camera.distance * (0.52 * np.cross(right, camera.forward) - 0.88 * right)
        return [float(c) for c in corner]

    def camera(self) -> WindowCamera:
        """Where the window looks from now. Raises WindowClosed."""
        if not self.is_open():
            raise WindowClosed
        try:
            c = self._bullet.getDebugVisualizerCamera(physicsClientId=self._client)
        except self._bullet.error:
            raise WindowClosed from None
        return WindowCamera(c[0], c[1], np.array(c[4]), np.array(c[5]), c[8], c[9], c[10], np.array(c[11]))

    def mouse_events(self) -> list[tuple[int, float, float, int, int]]:
        """PyBullet's mouse events since the last call: kind, x, y, button, state."""
        return list(self._bullet.getMouseEvents(physicsClientId=self._client))

    def control_held(self) -> bool:
        """Whether a Ctrl key is down (the mouse then turns the camera)."""
        b = self._bullet
        return bool(b.getKeyboardEvents(physicsClientId=self._client).get(b.B3G_CONTROL, 0) & b.KEY_IS_DOWN)

    def _line(
        self, name: str, start: np.ndarray, end: np.ndarray, colour: tuple[float, float, float], width: float
    ) -> None:
        self._items[name] = self._bullet.addUserDebugLine(
            [float(c) for c in start],
            [float(c) for c in end],
            lineColorRGB=colour,
            lineWidth=width,
            replaceItemUniqueId=self._items.get(name, -1),
            physicsClientId=self._client,
        )

    def _extend_trail(self, passed: np.ndarray) -> None:
        before = len(self._trail)
        for point in passed:
            if not self._trail or np.linalg.norm(self._trail[-1] - point) >= 0.006 * self.radius:
                self._trail.append(point)
        if len(self._trail) == before:
            return
        self._trail = self._trail[-TRAIL_POINTS:]
        self._items["trail"] = self._bullet.addUserDebugPoints(
            [p.tolist() for p in self._trail],
            [[0.55, 0.20, 0.60]] * len(self._trail),
            pointSize=4.0,
            replaceItemUniqueId=self._items.get("trail", -1),
            physicsClientId=self._client,
        )

    def keys(self) -> set[str]:
        """Keys that went down since the last call: ``space``, ``left``, ``right`` and letters."""
        b = self._bullet
        names = {32: "space", b.B3G_LEFT_ARROW: "left", b.B3G_RIGHT_ARROW: "right"}
        events = b.getKeyboardEvents(physicsClientId=self._client)
        return {names.get(k, chr(k) if k < 128 else "") for k, v in events.items() if v & b.KEY_WAS_TRIGGERED}


def follow_daemon(name: str, stop: Callable[[], bool] = lambda: False) -> None:
    """Show a running daemon until it ends, the window is closed or ``stop`` says so.

    Raises NoDisplay, and RuntimeDirectoryError when no daemon of that name runs.
    """
    from bridge.ring import RingReader
    from bridge.runtime import RuntimeDirectory, read_assembly

    runtime = RuntimeDirectory(name)
    runtime.read_endpoints()
    check_display()
    stored = read_assembly(runtime)
    dt, force_full = float(stored.settings[0]["dt"]), float(stored.settings[0]["force_max"])
    reader = RingReader(runtime.ring_path)
    poses = moved_poses(stored.model, np.zeros(0, RECORD))
    try:
        with Window(stored.model, f"hapticd: {stored.config['scene']['name']} ({name})") as window:
            looked = time.monotonic()
            while not stop():
                records, _ = reader.read(4096)
                if len(records):
                    if poses_changed(records):
                        poses = moved_poses(stored.model, records, poses)
                        window.place_bodies(poses)
                    window.show(moment(records[-1], dt), force_full, records["output"]["proxy_position"])
                if not window.is_open():
                    return
                if time.monotonic() - looked > 1.0:
                    looked = time.monotonic()
                    if not runtime.is_running():
                        return
                time.sleep(1.0 / 60.0)
    except WindowClosed:
        return


def follow_log(path: str | Path, speed: float = 1.0) -> None:
    """Play a log in the window again and again until it is closed; space pauses, arrows go back and on by a second.

    Bodies that were posed anew during the run do so when their command is played, not when it is jumped over.
    Raises NoDisplay, and LogError when the log cannot be read or holds no tick.
    """
    from bridge.log.play import Player
    from bridge.log.reader import LogReader

    check_display()
    log = LogReader(path)
    model, row = log.model, log.settings[0]
    dt, force_full = float(row["dt"]), float(row["force_max"])
    player = Player(log, speed=speed)
    poses = moved_poses(model, np.zeros(0, RECORD))
    with Window(model, f"hapticd: {Path(path).name}") as window:
        closed = False

        def stop() -> bool:
            nonlocal closed
            closed = closed or not window.is_open()
            keys = set() if closed else window.keys()
            if "space" in keys:
                player.speed = 0.0 if player.speed else speed
            if "left" in keys or "right" in keys:
                player.seek(player.position_s + ("right" in keys) - float("left" in keys))
            return closed

        def show(records: np.ndarray) -> None:
            nonlocal poses, closed
            if poses_changed(records):
                poses = moved_poses(model, records, poses)
                window.place_bodies(poses)
            try:
                window.show(moment(records[-1], dt), force_full, records["output"]["proxy_position"])
            except WindowClosed:
                closed = True

        while not closed:
            player.seek(0.0)
            poses = moved_poses(model, np.zeros(0, RECORD))
            window.place_bodies(poses)
            player.play(show, stop)
            time.sleep(0.0 if closed else 0.7)


def main(arguments: list[str] | None = None) -> int:
    """Process entry: show until the window is closed; returns an exit code."""
    parser = argparse.ArgumentParser(prog="python -m bridge.view", description=__doc__)
    parser.add_argument("--name", default="default", help="daemon to follow")
    parser.add_argument("--log", help="log to play instead")
    parser.add_argument("--speed", type=float, default=1.0, help="of a log, 1 is real time")
    chosen = parser.parse_args(arguments)
    from bridge.log.reader import LogError
    from bridge.runtime import RuntimeDirectoryError

    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # PyBullet's window talks to stdout all the time

    try:
        if chosen.log:
            follow_log(chosen.log, chosen.speed)
        else:
            follow_daemon(chosen.name)
    except NoDisplay as error:
        print(f"hapticd view: {error}", file=sys.stderr)
        return ExitCode.FAILURE
    except RuntimeDirectoryError as error:
        print(f"hapticd view: {error}", file=sys.stderr)
        return ExitCode.NOT_RUNNING
    except (OSError, ValueError, LogError) as error:
        print(f"hapticd view: {error}", file=sys.stderr)
        return ExitCode.INPUT
    except KeyboardInterrupt:
        pass
    return ExitCode.OK


if __name__ == "__main__":
    sys.exit(main())
