"""A device and its scene in this process: the tick without sockets, for figures about what is felt."""

from pathlib import Path

import numpy as np

from bridge.assemble import assemble
from bridge.config import Config
from haptics.states import CommandKind, EngagementState
from haptics.tables import RECORD
from haptics.tick import tick
from haptics.touch import make_touch
from rtcore.state import make_state

OWNER = 1


class Session:
    """Runs one tick per pose, as triggered clocking does."""

    def __init__(self, config: Config) -> None:
        self.assembly = assemble(config, Path.cwd())
        self.model, self.settings = self.assembly.model, self.assembly.settings
        self.touch = make_touch(self.settings)
        self.state = make_state(self.model, self.assembly.start)
        self.record = np.zeros(1, RECORD)
        self.record["input"]["sample"]["orientation"] = (0.0, 0.0, 0.0, 1.0)
        self.dt_ns = round(float(self.settings["dt"][0]) * 1e9)

    def tick(self, position: np.ndarray | None, command: CommandKind = CommandKind.NONE, *values: float) -> np.void:
        """One tick with the device at position (3,), device frame, m; returns the record's row."""
        row = self.record[0]
        row["tick"] += 1
        entry = row["input"]
        entry["fresh"] = position is not None
        if position is not None:
            sample = entry["sample"]
            sample["session"], sample["valid"] = OWNER, 1
            sample["seq"] += 1
            sample["t_sample"] += self.dt_ns
            sample["position"] = position
            entry["has_sample"] = 1
        request = entry["command"]
        request["kind"] = command
        request["id"] = 0 if command == CommandKind.NONE else row["tick"]
        request["session"] = OWNER
        request["values"] = 0.0
        request["values"][: len(values)] = values
        row["budget"] = self.assembly.budget[0]
        tick(self.model, self.state, self.settings, self.touch, self.record)
        return row

    def engage(self, position: np.ndarray) -> None:
        """Lease, arm and wait for full gains with the device at rest; raises RuntimeError when that is refused."""
        self.tick(position, CommandKind.LEASE)
        self.tick(position, CommandKind.ARM, 0.0)
        for _ in range(10 * int(self.settings["ramp_up_ticks"][0]) + 10):
            row = self.tick(position)
            if row["output"]["state"] == EngagementState.ACTIVE:
                return
        raise RuntimeError(f"not engaged: state {EngagementState(int(row['output']['state'])).name}")

    def run(self, positions: np.ndarray) -> np.ndarray:
        """A tick per row of positions (n, 3); returns the records (n,)."""
        records = np.zeros(len(positions), RECORD)
        for i, position in enumerate(positions):
            records[i] = self.tick(position)
        return records
