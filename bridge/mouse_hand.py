"""A mouse in the PyBullet window as a hand with three degrees of freedom.

Drag with the left button: the device moves in the plane that faces the camera. Wheel, or drag with the right button:
towards and away from the camera. Ctrl and drag turns the camera. Nobody feels anything: the mouse has no motor, but the
tip, the force arrow and the log are those of any other client.

The window has a process of its own, because drawing takes longer than a sample may be late.
"""

import math
import multiprocessing
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bridge.moment import Moment, moment, moved_poses, rotate, rotation_matrix
from bridge.view import Window, WindowClosed, check_display
from haptics.pointing import bounded
from haptics.states import EngagementState
from rtcore.spatial import conjugate, multiply, quaternion

SAMPLE_HZ = 500.0
INPUT_REACH = 0.02
"""m, device: farthest that a device image goes from the tool when the card knows no force."""
SMOOTHING_S = 0.025
"""Time constant between mouse and device: a mouse moves in steps, a hand does not."""

OPEN, CLOSED = 0.0, 1.0


@dataclass
class Pointer:
    """What the mouse asks for: turns events into a displacement of the device image in the scene."""

    width: float
    height: float
    """of the window, pixels"""
    field_of_view: float = math.radians(60.0)
    """vertical, of PyBullet's window"""
    left: bool = False
    right: bool = False
    x: float | None = None
    y: float | None = None

    def displacement(
        self, events: list[tuple[Any, ...]], forward: np.ndarray, up: np.ndarray, distance: float, wheel: float
    ) -> np.ndarray:
        """(3,) m by which the events move the device image.

        ``events``: PyBullet's mouse events (kind, x, y, button, state). ``forward`` and ``up``: unit, of the camera;
        ``distance``: from camera to what it looks at, m; ``wheel``: by how much the wheel asked to come nearer, m.
        """
        right = np.cross(forward, up)
        right /= max(float(np.linalg.norm(right)), 1e-12)
        true_up = np.cross(right, forward)
        per_pixel = 2.0 * distance * math.tan(0.5 * self.field_of_view) / self.height
        total = wheel * forward
        for kind, x, y, button, state in events:
            if kind == 2:
                if button == 0:
                    self.left = bool(state & 3)
                elif button == 2:
                    self.right = bool(state & 3)
                self.x, self.y = x, y
            elif kind == 1:
                if self.x is not None and self.y is not None:
                    if self.left:
                        total = total + per_pixel * ((x - self.x) * right - (y - self.y) * true_up)
                    elif self.right:
                        total = total - per_pixel * (y - self.y) * forward
                self.x, self.y = x, y
        return total


def pull_back(image: np.ndarray, proxy: np.ndarray, farthest: float) -> np.ndarray:
    """(3,) correction that keeps a device image within ``farthest`` (m) of the proxy: nothing pushes a mouse back."""
    away = image - proxy
    return bounded(away, farthest) - away


def follow(position: np.ndarray, goal: np.ndarray, dt: float, speed_max: float) -> np.ndarray:
    """One step (s) of the smoothed device position towards its goal, never faster than ``speed_max`` m/s."""
    return position + bounded((goal - position) * (1.0 - math.exp(-dt / SMOOTHING_S)), speed_max * dt)


def run_mouse(name: str = "default", duration: float | None = None, report: Callable[[str], None] = print) -> None:
    """Be the owner of daemon ``name`` with the mouse until the window closes or ``duration`` (s) is over.

    Raises NoDisplay, NoDaemonError, and HapticdError when another client holds the lease or somebody stops the forces.
    """
    from bridge.client import Client, HapticdError
    from bridge.ring import RingReader
    from bridge.runtime import RuntimeDirectory, read_assembly

    with Client(name, "mouse") as client:
        check_display()
        runtime = RuntimeDirectory(name)
        stored = read_assembly(runtime)
        row = stored.settings[0]
        scale, speed_max = float(row["scale"]), 0.5 * float(row["speed_max"])
        turn = rotation_matrix(row["workspace_orientation"])
        record = RingReader(runtime.ring_path).newest()
        tip = np.array(stored.start if record is None else record["output"]["proxy_position"], dtype=float)
        held = np.array(stored.start_orientation if record is None else record["output"]["proxy_orientation"])
        # A mouse cannot turn anything: the tool stays turned as it is found.
        orientation = multiply(conjugate(quaternion(row["workspace_orientation"])), quaternion(held))
        offset = rotate(held, stored.model.world["tip_offset"][:1])[0]
        position = turn.T @ (tip - offset - np.array(row["workspace_position"])) / scale

        context = multiprocessing.get_context("spawn")
        shared = context.Array("d", 5, lock=False)  # displacement x y z (scene, m), button held, window closed
        window = context.Process(target=_window, args=(name, shared), daemon=True)
        window.start()
        start, goal = position.copy(), position.copy()
        try:
            client.lease()
            client.arm(reanchor=True)
            report("Drag with the left button, wheel for depth, Ctrl and drag to look around; close the window to end.")
            began = due = asked = time.monotonic()
            while shared[4] == OPEN and window.is_alive():
                goal = start + turn.T @ np.array(shared[0:3]) / scale
                position = follow(position, goal, 1.0 / SAMPLE_HZ, speed_max)
                render = client.exchange(position.tolist(), orientation, deadman=shared[3] > 0.0)
                if render.state == EngagementState.FAULT:
                    raise HapticdError("fault", "forces were stopped; `hapticd reset` allows them again")
                if render.state == EngagementState.IDLE and time.monotonic() - asked > 1.0:
                    # this process was held up for longer than a sample may be late: ask for forces again
                    asked = time.monotonic()
                    client.arm(reanchor=True)
                if duration is not None and time.monotonic() - began > duration:
                    break
                due = max(due + 1.0 / SAMPLE_HZ, time.monotonic() - 0.01)
                time.sleep(max(0.0, due - time.monotonic()))
        finally:
            shared[4] = CLOSED
            window.join(3.0)
            if window.is_alive():
                window.terminate()


def _window(name: str, shared: Any) -> None:
    """Process of the window: shows the daemon and writes what the mouse asks for into ``shared``."""
    import os

    from bridge.ring import RingReader
    from bridge.runtime import RuntimeDirectory, read_assembly

    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    runtime = RuntimeDirectory(name)
    stored = read_assembly(runtime)
    row = stored.settings[0]
    dt, force_full = float(row["dt"]), float(row["force_max"])
    farthest = 1.2 * force_full / float(row["stiffness"]) * float(row["scale"])
    if force_full == 0.0:
        # An input device's card: there is no force at which the spring would saturate.
        farthest = INPUT_REACH * float(row["scale"])
    reader = RingReader(runtime.ring_path)
    try:
        with Window(stored.model, f"hapticd mouse ({name})") as window:
            camera = window.camera()
            pointer = Pointer(camera.width, camera.height)
            distance, restoring = window.distance, True
            poses = None
            while shared[4] == OPEN:
                records, _ = reader.read(4096)
                now: Moment | None = None
                if len(records):
                    poses = moved_poses(stored.model, records, poses)
                    window.place_bodies(poses)
                    now = moment(records[-1], dt)
                    window.show(now, force_full, records["output"]["proxy_position"])
                camera = window.camera()
                # PyBullet reports no wheel: it moves the camera, which is put back here. It takes a frame or two until
                # the camera is where it was put; meanwhile its distance says nothing about the wheel.
                wheel = 0.0
                turned = abs(camera.distance - distance) > 1e-3 * distance
                if turned and not restoring:
                    wheel = 0.25 * (distance - camera.distance)
                    window.look_at(camera.target, distance, camera.yaw_deg, camera.pitch_deg)
                restoring = turned
                pointer.width, pointer.height = camera.width, camera.height
                events = [] if window.control_held() else window.mouse_events()
                moved = pointer.displacement(events, camera.forward, camera.up, distance, wheel)
                if now is not None:
                    moved = moved + pull_back(now.device, now.proxy, farthest)
                for axis in range(3):
                    shared[axis] += float(moved[axis])
                shared[3] = float(pointer.left or pointer.right)
                time.sleep(1.0 / 90.0)
    except WindowClosed:
        pass
    finally:
        shared[4] = CLOSED
