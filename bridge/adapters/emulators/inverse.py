"""A stand-in for Haply's Inverse service: a WebSocket on loopback, one Inverse3 in a hand.

    python -m bridge.adapters.emulators.inverse JOURNAL PORT_FILE

One state for each message, a full inventory at first, commands that are not kept: without a message for `HOLD_S` the
force is zero. It does what the documents say (docs.haply.co, Simulation Channel); it has never been compared with one.
"""

import json
import sys
from pathlib import Path
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection, serve

from bridge.adapters.journal import Journal
from bridge.adapters.plant import Plant
from haptics.cards import load_card
from haptics.last_line import NO_WRENCH

DEVICE_ID = "049D"
HOLD_S = 0.05
HOME = (0.0, -0.12, 0.15)
"""Where the handle rests, m, in the service's frame."""
GREATEST_N = 10.0


class Service:
    """The simulation channel of one device."""

    def __init__(self, plant: Plant) -> None:
        self._plant = plant
        self._sessions = 0

    def talk(self, connection: ServerConnection) -> None:
        """One client, until it goes."""
        self._sessions += 1
        connection.send(json.dumps({"session_id": self._sessions, **self._state(config=True)}))
        try:
            while True:
                try:
                    message = connection.recv(timeout=HOLD_S)
                except TimeoutError:
                    if self._plant.applied != NO_WRENCH:
                        self._plant.write(NO_WRENCH)
                    continue
                self._obey(json.loads(message))
                connection.send(json.dumps(self._state()))
        except ConnectionClosed:
            self._plant.write(NO_WRENCH)

    def _obey(self, message: dict[str, Any]) -> None:
        for device in message.get("inverse3", []):
            values = device.get("commands", {}).get("set_cursor_force", {}).get("values")
            if device.get("device_id") == DEVICE_ID and values is not None and not self._plant.unplugged:
                # A firmware that limits each axis by itself: what it is given must not rely on it.
                x, y, z = (min(max(float(values[axis]), -GREATEST_N), GREATEST_N) for axis in "xyz")
                self._plant.write((x, y, z, 0.0, 0.0, 0.0))

    def _state(self, config: bool = False) -> dict[str, Any]:
        if self._plant.unplugged:
            return {"inverse3": []}
        pose, _ = self._plant.read()
        state = {
            "cursor_position": _xyz(pose.position),
            "cursor_velocity": _xyz(self._plant.velocity),
            "current_cursor_force": _xyz(self._plant.applied),
            "control_domain": "cartesian",
            "control_mode": "force",
        }
        device = {
            "device_id": DEVICE_ID,
            "state": state,
            "status": {"calibrated": True, "in_use": True, "power_supply": True, "ready": True},
        }
        if config:
            device["config"] = {"type": "inverse3", "handedness": "right", "preset": "defaults"}
        return {"inverse3": [device]}


def _xyz(values: Any) -> dict[str, float]:
    return {axis: float(value) for axis, value in zip("xyz", values, strict=False)}


def main(journal: str, port_file: str) -> None:
    """Serve until killed; the port is written to a file once it listens."""
    plant = Plant(load_card("inverse3"), Journal(journal), start=HOME)
    with serve(Service(plant).talk, "127.0.0.1", 0, compression=None, ping_interval=None) as server:
        Path(port_file).write_text(str(server.socket.getsockname()[1]))
        server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
