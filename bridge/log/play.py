"""Playing a log at the speed at which it happened, or another: to a callback, or as a state socket to follow."""

from __future__ import annotations

import math
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from bridge.log.fields import column
from bridge.log.reader import LogError, LogReader
from haptics.tables import RECORD

OnRecords = Callable[[np.ndarray], object]
"""Gets the (n,) records that became due since the last call, n >= 1; the last one is the present."""


class Player:
    """Plays a log: position, speed and pause can be changed while it plays, from the callback or another thread."""

    def __init__(
        self,
        log: LogReader | str | os.PathLike[str],
        *,
        speed: float = 1.0,
        start_s: float = 0.0,
        end_s: float | None = None,
        rate_hz: float = 60.0,
    ):
        """Open a log.

        ``speed`` 1 is real time, 0.1 slow motion, 0 paused. ``start_s`` and ``end_s`` count from the first tick. The
        callback runs ``rate_hz`` times a second. Raises LogError when the log cannot be read or holds no tick,
        ValueError for a negative speed or a rate that is not positive.
        """
        self.log = log if isinstance(log, LogReader) else LogReader(log)
        if not rate_hz > 0 or not math.isfinite(rate_hz):
            raise ValueError(f"rate_hz must be positive, not {rate_hz}")
        self._rate_hz = rate_hz
        self._end_s = end_s
        first = next(self.log.batches(), None)
        if first is None:
            raise LogError(self.log.explanation or f"{self.log.path} holds no ticks")
        self._origin_ns = int(first["timing"]["started_ns"][0])
        self._position_s = start_s
        self._seek_to: float | None = start_s
        self._speed = 1.0
        self.speed = speed

    @property
    def speed(self) -> float:
        """Log seconds per second of the wall; 0 is paused."""
        return self._speed

    @speed.setter
    def speed(self, value: float) -> None:
        if not math.isfinite(value) or value < 0:
            raise ValueError(f"speed must be 0 or more, not {value}")
        self._speed = float(value)

    @property
    def position_s(self) -> float:
        """Present position, seconds from the first tick."""
        return self._position_s

    @property
    def duration_s(self) -> float:
        """Length of the log, seconds."""
        start, end = self.log.span_ns
        return (end - start) * 1e-9

    def seek(self, position_s: float) -> None:
        """Go on from ``position_s``, seconds from the first tick; takes effect at the next frame."""
        self._seek_to = max(position_s, 0.0)

    def play(self, callback: OnRecords, stop: Callable[[], bool] = lambda: False) -> None:
        """Call ``callback`` with what became due, until the end of the log or of the span, or until ``stop()``.

        After a seek the first call gets the record at the new position alone, so that a viewer jumps there at once.
        """
        waiting: deque[np.ndarray] = deque()
        source: Iterator[np.ndarray] = iter(())
        more = True
        frame = 1.0 / self._rate_hz
        due = wall = time.monotonic()
        while not stop():
            target, self._seek_to = self._seek_to, None
            if target is not None:
                self._position_s = target
                waiting.clear()
                source, more = self._from(target), True
            limit = self._position_s if self._end_s is None else min(self._position_s, self._end_s)
            while more and (not waiting or self._seconds(waiting[-1][-1:])[0] <= limit):
                batch = next(source, None)
                more = batch is not None
                if batch is not None:
                    waiting.append(batch)
            records = self._due(waiting, limit)
            if target is not None and not len(records) and waiting:
                records = waiting[0][:1]
                waiting[0] = waiting[0][1:]
                if not len(waiting[0]):
                    waiting.popleft()
            if len(records):
                callback(records)
            if self._seek_to is None and (not (more or waiting) or (self._end_s is not None and limit >= self._end_s)):
                return
            # A slow callback makes frames fewer, not the playback slower.
            due = max(due + frame, time.monotonic())
            time.sleep(max(due - time.monotonic(), 0.0))
            now = time.monotonic()
            self._position_s += (now - wall) * self._speed
            wall = now

    def _seconds(self, records: np.ndarray) -> np.ndarray:
        return (records["timing"]["started_ns"] - self._origin_ns) * 1e-9

    def _from(self, position_s: float) -> Iterator[np.ndarray]:
        from_ns = self._origin_ns + self.log.wall_offset_ns + round(position_s * 1e9)
        for batch in self.log.batches(from_ns=from_ns if position_s > 0 else None):
            rest = batch[self._seconds(batch) >= position_s] if position_s > 0 else batch
            if len(rest):
                yield rest

    def _due(self, waiting: deque[np.ndarray], limit: float) -> np.ndarray:
        """Take the records up to ``limit`` seconds out of ``waiting``."""
        taken = []
        while waiting:
            count = int(np.searchsorted(self._seconds(waiting[0]), limit, side="right"))
            taken.append(waiting[0][:count])
            if count < len(waiting[0]):
                waiting[0] = waiting[0][count:]
                break
            waiting.popleft()
        return np.concatenate(taken) if taken else np.zeros(0, dtype=RECORD)


def print_columns(
    player: Player, columns: Sequence[str], write: Callable[[str], object], stop: Callable[[], bool] = lambda: False
) -> None:
    """Play and write the chosen columns (paths as in :func:`bridge.log.fields.column`) as tab-separated lines.

    Columns with several items become several; the first line names them. Raises LogError for an unknown column.
    """
    names: list[str] = []
    probe = np.zeros(1, dtype=player.log.record_type)
    for path in columns:
        try:
            value = column(probe, path)
        except KeyError as error:
            raise LogError(str(error.args[0])) from None
        if value.dtype.names is not None:
            raise LogError(f"{path} is a group of fields; name one of them: {', '.join(value.dtype.names)}")
        names += [path + "".join(f"[{i}]" for i in index) for index in np.ndindex(value.shape[1:])]
    write("\t".join(["tick", *names]) + "\n")

    def show(records: np.ndarray) -> None:
        values = [column(records, path).reshape(len(records), -1).tolist() for path in columns]
        for row, tick in enumerate(records["tick"].tolist()):
            write("\t".join([str(tick), *(repr(item) for value in values for item in value[row])]) + "\n")

    player.play(show, stop)


def publish(player: Player, endpoint: str, stop: Callable[[], bool] = lambda: False) -> None:
    """Play as a state socket: what follows a daemon's state socket can follow a log.

    ``endpoint`` is bound as a PUB socket (ipc, or tcp on loopback only); each frame sends its newest record in the form
    of the daemon's own state messages. Raises AddressRefused for any other address, zmq.ZMQError when it is taken.
    """
    import msgpack
    import zmq

    from bridge.publisher import state_message
    from bridge.runtime import check_address

    context: Any = zmq.Context.instance()
    socket: Any = context.socket(zmq.PUB)
    socket.set(zmq.LINGER, 200)
    try:
        socket.bind(check_address(endpoint))
        ids = player.log.body_ids
        player.play(lambda records: socket.send(msgpack.packb(state_message(records[-1], ids))), stop)
    finally:
        socket.close()
