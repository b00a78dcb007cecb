"""Haply Inverse3 through its maker's service (version 3.1 and later): JSON over a WebSocket, three forces.

The service answers each message with one state of all devices, and holds no command: a force lasts until the next
message, or until its own watchdog. So each cycle sends one message and takes the answer to an earlier one. The first
message of the service is its inventory of devices (docs.haply.co, WebSocket Protocol and Simulation Channel).

Positions are in the frame that the service is configured for; by default x to the right, y away, z up, origin at the
base. The service has no times: a sample bears the time at which the message was sent that its state answers. The state
is no older than that, also where it was kept waiting on its way or here.
"""

import contextlib
import functools
import json
import math
import operator
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from bridge.adapters.device import IDENTITY, Device, DeviceError, Reading
from haptics.last_line import NO_WRENCH, Wrench

URL = "ws://localhost:10001"
OPEN_S = 5.0
WAIT_S = 0.002
"""For the answer to an earlier message; after that the last state is told again, as old as it is."""
SILENCE_S = 0.5
MOST_UNANSWERED = 4
"""Messages; a service that lags behind is not given more."""
PROFILE = "hapticd"

CARDS = {"inverse3": "inverse3"}
"""`config.type` in the inventory, which always tells it -> card. Other devices are in the same list (the Minverse, with
less than half the workspace, and the Inverse3x): those have none, and other limits."""
FIGURES = "force_max, stiffness_max, damping_max and workspace_radius"
"""What a card of one's own should state, from its maker's data sheet."""


class Inverse(Device):
    """The first Inverse3 of the service, or the one of an id. Buttons of a VerseGrip beside it are passed on."""

    card = "inverse3"

    def __init__(self, url: str = URL, device: str = "", card: str = "") -> None:
        """``url``: of the service's simulation channel; ``device``: its device id, the first one with a card if empty;
        ``card``: if not the one that its type says."""
        self._url, self._wanted, self._named = url, device, card
        if card:
            self.card = card
        self._socket: Any = None
        self._opened = contextlib.ExitStack()
        self._id = ""
        self._sent: deque[int] = deque()
        """When the messages that are not answered yet were sent, monotonic ns."""
        self._state_at = 0
        """The newest state is of no earlier time."""
        self._heard = 0
        """When something came last."""
        self._position = (0.0, 0.0, 0.0)
        self._velocity = (0.0, 0.0, 0.0)
        self._orientation = IDENTITY
        self._buttons = 0
        self._valid = False

    def open(self) -> None:
        """Connect, find the device in the inventory, and greet with no force."""
        try:
            from websockets.exceptions import WebSocketException
            from websockets.sync.client import connect
        except ImportError:
            raise DeviceError("the package websockets is missing: pip install 'hapticd[inverse]'") from None
        try:
            self._socket = self._opened.enter_context(
                connect(self._url, open_timeout=OPEN_S, compression=None, ping_interval=None, max_size=1 << 20)
            )
            inventory = self._parse(self._socket.recv(timeout=OPEN_S))
        except (OSError, TimeoutError, WebSocketException) as error:
            what = str(error) or type(error).__name__
            raise DeviceError(f"the Haply Inverse service does not answer at {self._url}: {what}") from None
        self._choose(_list(inventory, "inverse3"))
        self._state_at = time.monotonic_ns()
        self._take(inventory)
        self._send(NO_WRENCH, {"session": {"configure": {"profile": {"name": PROFILE}}}})

    def read(self) -> Reading:
        """The newest state that has arrived."""
        wait = WAIT_S
        while self._sent:
            try:
                message = self._socket.recv(timeout=wait)
            except TimeoutError:
                break
            except Exception as error:  # of the socket, whatever its library calls it
                raise DeviceError(f"the Haply Inverse service is gone: {error}") from None
            self._take(self._parse(message))
            self._state_at = self._sent.popleft()
            wait = 0.0
        if time.monotonic_ns() - self._heard > SILENCE_S * 1e9:
            raise DeviceError(f"the Haply Inverse service has said nothing for {SILENCE_S:g} s")
        # A twist is told as a whole or not at all. The service measures no turning, and none is what a daemon takes an
        # angular velocity for that it is not told: so the velocity, which is measured, need not be left out.
        twist = (*self._velocity, 0.0, 0.0, 0.0)
        return Reading(self._position, self._orientation, twist, self._buttons, t_ns=self._state_at, valid=self._valid)

    def write(self, wrench: Wrench) -> None:
        """Send the force: the service forgets it with the next message."""
        if len(self._sent) < MOST_UNANSWERED:
            self._send(wrench, {})

    def close(self) -> None:
        """Send no force, and go."""
        socket, self._socket = self._socket, None
        if socket is not None:
            with contextlib.suppress(Exception):
                socket.send(json.dumps(self._command(NO_WRENCH)))
            with contextlib.suppress(Exception):
                self._opened.close()

    def _choose(self, found: list[dict[str, Any]]) -> None:
        """Which device of the inventory, and its card. Raises DeviceError."""
        types = {str(one.get("device_id")): str(_map(one, "config").get("type", "not told")) for one in found}
        if self._wanted and self._wanted not in types:
            raise DeviceError(f"the service has no Inverse3 {self._wanted!r}; it has {', '.join(types) or 'none'}")
        if not types:
            raise DeviceError(f"the Haply Inverse service at {self._url} has no Inverse3: is it plugged in?")
        able = [one for one, kind in types.items() if self._named or kind in CARDS]
        self._id = self._wanted or next(iter(able or types))
        if self._id not in able:
            raise DeviceError(
                f"no card is known for the device {self._id} of type {types[self._id]}: write one with its maker's "
                f"figures ({FIGURES}; see Keys of a card in docs/devices.md), and name it with --set card=FILE.toml"
            )
        self.card = self._named or CARDS[types[self._id]]

    def _send(self, wrench: Wrench, more: Mapping[str, Any]) -> None:
        sent = time.monotonic_ns()
        try:
            self._socket.send(json.dumps({**more, **self._command(wrench)}))
        except Exception as error:
            raise DeviceError(f"the Haply Inverse service is gone: {error}") from None
        self._sent.append(sent)

    def _command(self, wrench: Wrench) -> dict[str, Any]:
        force = {"x": wrench[0], "y": wrench[1], "z": wrench[2]}
        return {"inverse3": [{"device_id": self._id, "commands": {"set_cursor_force": {"values": force}}}]}

    @staticmethod
    def _parse(message: Any) -> dict[str, Any]:
        try:
            found = json.loads(message)
        except ValueError as error:
            raise DeviceError(f"the Haply Inverse service sent what is no JSON: {error}") from None
        if not isinstance(found, dict):
            raise DeviceError("the Haply Inverse service sent no object")
        return found

    def _take(self, message: Mapping[str, Any]) -> None:
        """Keep what a state says of the device; what it leaves out stays."""
        own = next((one for one in _list(message, "inverse3") if str(one.get("device_id")) == self._id), None)
        if own is None:
            raise DeviceError(f"the Inverse3 {self._id} is no longer in the service's list: it was unplugged")
        state, status = _map(own, "state"), _map(own, "status")
        self._heard = time.monotonic_ns()
        position = _vector(state.get("cursor_position"))
        velocity = _vector(state.get("cursor_velocity"))
        self._valid = status.get("calibrated", True) is not False
        if position is not None:
            self._position = position
        if velocity is not None:
            self._velocity = velocity
        pressed = [
            self._take_grip(_map(grip, "state"))
            for kind in ("verse_grip", "wireless_verse_grip")
            for grip in _list(message, kind)
        ]
        told = [mask for mask in pressed if mask is not None]
        if told:
            self._buttons = functools.reduce(operator.or_, told)

    def _take_grip(self, state: Mapping[str, Any]) -> int | None:
        """Keep its turn; its buttons as a mask, None where they are not told."""
        turn = state.get("orientation")
        if isinstance(turn, dict) and all(_number(turn.get(axis)) for axis in "xyzw"):
            norm = math.hypot(*(turn[axis] for axis in "xyzw"))
            if norm > 0.5:
                x, y, z, w = (turn[axis] / norm for axis in "xyzw")
                self._orientation = (x, y, z, w)
        buttons = state.get("buttons")
        if isinstance(buttons, dict):  # of a wireless one
            return sum(1 << bit for bit, name in enumerate("abc") if buttons.get(name) is True)
        if "button" in state:  # of one with a wire
            return int(state["button"] is True)
        return None


def _number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _vector(value: Any) -> tuple[float, float, float] | None:
    """Three numbers of {"x", "y", "z"}; None where they are not there, NaN in place of what is no number."""
    if not isinstance(value, dict):
        return None
    x, y, z = (float(value[axis]) if _number(value.get(axis)) else math.nan for axis in "xyz")
    return (x, y, z)


def _map(message: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = message.get(name)
    return found if isinstance(found, dict) else {}


def _list(message: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    found = message.get(name)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
