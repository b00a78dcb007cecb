"""Executing a log again: recorded inputs and budgets through the same tick, every output compared to the bit."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from bridge.log.fields import Difference, describe_value, differing_bytes, first_difference
from bridge.log.reader import LogError, LogReader
from haptics.tables import BODY_SAMPLE, RECORD
from rtcore.model import moving_bodies
from rtcore.state import State


@dataclass(frozen=True)
class TickDifference:
    """The first tick and field that came out otherwise."""

    tick: int
    field: str
    """Path in RECORD, such as ``output.wrench[2]``; or ``bodies[7].position[0]``, of the body 7."""
    logged: Any
    executed: Any

    def __str__(self) -> str:
        return (
            f"tick {self.tick}, {self.field}: logged {describe_value(self.logged)}, "
            f"executed {describe_value(self.executed)}"
        )


@dataclass(frozen=True)
class Reexecution:
    """Result of :func:`reexecute`."""

    ticks: int
    """Executed and compared."""
    ticks_differing: int
    bytes_differing: int
    ticks_skipped: int
    """In the log, but after a gap (or a start) with no snapshot to go on from."""
    body_states: int
    """Logged states of bodies that were compared, besides the digest of all in every tick."""
    first: TickDifference | None
    explanation: str
    """Where a damaged log was left; empty for a complete one."""

    @property
    def same(self) -> bool:
        """True when every executed tick came out the same to the bit."""
        return self.ticks_differing == 0

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return asdict(self)

    def __str__(self) -> str:
        text = f"{self.ticks} ticks executed again: {self.ticks_differing} differ, in {self.bytes_differing} bytes"
        if self.body_states:
            text += f", {self.body_states} states of bodies compared"
        if self.first is not None:
            text += f"; first {self.first}"
        if self.ticks_skipped:
            text += f"; {self.ticks_skipped} ticks without a snapshot before them were left out"
        return text + (f"; {self.explanation}" if self.explanation else "")


def reexecute(log: LogReader | str | os.PathLike[str], progress: Callable[[float], None] | None = None) -> Reexecution:
    """Run the tick over the recorded inputs and budgets, and compare each output field to the bit, padding excluded.

    Of bodies that move the digest in the output is compared in every tick, their states where the log holds them.
    Everything comes from the log itself: model, settings, the snapshot of the state before the first tick. Where ticks
    are missing from the log, execution goes on at the next snapshot. ``progress`` gets the part done, 0 to 1. Raises
    LogError when the log cannot be read, lacks an attachment, or holds no snapshot that fits.
    """
    from haptics.bodies import sample_bodies
    from haptics.snapshot import unpack_snapshot
    from haptics.tick import tick as run_tick

    reader = log if isinstance(log, LogReader) else LogReader(log)
    model, settings = reader.model, reader.settings.copy()
    if reader.body_ids and list(reader.body_ids) != moving_bodies(model.bodies):
        raise LogError(f"{reader.path} holds states of other bodies than those that move in its model")
    snapshots = {snapshot.tick: snapshot.data for snapshot in reader.snapshots}
    start_ns, end_ns = reader.span_ns
    record = np.zeros(1, dtype=RECORD)
    resumed: tuple[State, np.ndarray] | None = None
    expected = -1
    ticks = ticks_differing = bytes_differing = skipped = body_states = 0
    first: TickDifference | None = None
    for logged in reader.batches():
        executed = np.zeros(len(logged), RECORD["output"])
        bodies = np.zeros((len(logged), len(reader.body_ids)), BODY_SAMPLE)
        ran = np.zeros(len(logged), dtype=bool)
        for row, number in enumerate(logged["tick"].tolist()):
            if resumed is None or number != expected:
                data = snapshots.get(number - 1)
                if data is None:
                    resumed = None
                    skipped += 1
                    continue
                try:
                    resumed = unpack_snapshot(data, model)
                except ValueError as error:
                    raise LogError(
                        f"the snapshot of tick {number - 1} in {reader.path} is not usable: {error}"
                    ) from None
            record["tick"] = number
            record["input"] = logged["input"][row]
            record["budget"] = logged["budget"][row]
            state, touch = resumed
            run_tick(model, state, settings, touch, record)
            executed[row] = record["output"][0]
            if reader.body_ids:
                sample_bodies(state.poses, state.velocities, state.pairs.movers, bodies[row])
            ran[row] = True
            expected = number + 1
        rows = np.flatnonzero(ran)
        per_tick = differing_bytes(logged["output"], executed).sum(axis=1)
        if reader.body_ids:
            known = ran & (logged["tick"] % np.uint64(reader.bodies_every) == 0)
            bodies[~known] = logged["bodies"][~known]
            moved = differing_bytes(logged["bodies"].reshape(-1), bodies.reshape(-1))
            per_tick += moved.reshape(len(logged), -1).sum(axis=1)
            body_states += int(np.count_nonzero(known)) * len(reader.body_ids)
        per_tick = per_tick[ran]
        ticks += len(rows)
        ticks_differing += int(np.count_nonzero(per_tick))
        bytes_differing += int(per_tick.sum())
        if first is None and per_tick.any():
            row = int(rows[np.flatnonzero(per_tick)[0]])
            found = _first_body(reader.body_ids, logged["bodies"][row], bodies[row]) if reader.body_ids else None
            found = found or first_difference(logged["output"][row : row + 1], executed[row : row + 1], "output")
            assert found is not None
            first = TickDifference(int(logged["tick"][row]), found.field, found.first, found.second)
        if progress is not None and end_ns > start_ns:
            now = int(logged["timing"]["started_ns"][-1]) + reader.wall_offset_ns
            progress(min(max((now - start_ns) / (end_ns - start_ns), 0.0), 1.0))
    if ticks == 0:
        if skipped:
            raise LogError(f"{reader.path} holds no snapshot from which one of its {skipped} ticks could be executed")
        raise LogError(reader.explanation or f"{reader.path} holds no ticks")
    return Reexecution(ticks, ticks_differing, bytes_differing, skipped, body_states, first, reader.explanation)


def _first_body(body_ids: tuple[int, ...], logged: np.ndarray, executed: np.ndarray) -> Difference | None:
    """The first difference between (n,) BODY_SAMPLE; in a tick it is what the differences of its output come from."""
    for column, body_id in enumerate(body_ids):
        one = slice(column, column + 1)
        found = first_difference(logged[one], executed[one], f"bodies[{body_id}]")
        if found is not None:
            return found
    return None
