"""What a device felt and was told, in a file that two processes share: the witness of the conformance test.

The device's side writes one row per read and write; the test's side reads them, and writes the few words of the header
by which it holds the handle, pulls the plug or makes the clock lie. Each word has one writer.
"""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bridge.adapters.device import IDENTITY
from haptics.last_line import NO_WRENCH, Wrench

READ, WRITTEN = 1, 2

HEADER = np.dtype(
    [
        ("count", "<u8"),  # rows so far
        ("unplugged", "<u8"),
        ("clock_step", "<i8"),  # ns, added to the device's own clock
        ("lift", "<f8", 3),  # m, where the hand wants the handle, from where it began
        ("speed", "<f8"),  # m/s, as fast as the hand goes there
        ("turn", "<f8", 3),  # rad, rotation vector: how the hand wants the handle turned, from how it began
        ("turn_speed", "<f8"),  # rad/s, as fast as the hand turns it there
    ]
)
ROW = np.dtype(
    [
        ("t", "<i8"),
        ("kind", "<u8"),
        ("position", "<f8", 3),
        ("wrench", "<f8", 6),
        ("orientation", "<f8", 4),
        ("twist", "<f8", 6),
    ]
)
ROWS = 1 << 17
"""Later rows take the place of the first ones."""


class Journal:
    """One such file. ``make`` it once, then open it by its path from either side."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._header = np.memmap(self.path, HEADER, "r+", shape=(1,))
        self._rows = np.memmap(self.path, ROW, "r+", offset=HEADER.itemsize, shape=(ROWS,))
        self.words = self._header[0]
        """The header, by name."""

    @classmethod
    def make(cls, path: str | os.PathLike[str]) -> "Journal":
        """A new, empty one; its file has holes where nothing was written."""
        with open(path, "wb") as file:
            file.truncate(HEADER.itemsize + ROWS * ROW.itemsize)
        journal = cls(path)
        journal.words["speed"] = 0.1
        journal.words["turn_speed"] = 1.0
        return journal

    def note(
        self,
        kind: int,
        t_ns: int,
        position: np.ndarray,
        wrench: Wrench,
        orientation: Sequence[float] | np.ndarray = IDENTITY,
        twist: Sequence[float] | np.ndarray = NO_WRENCH,
    ) -> None:
        """Add a row: the device's side. ``orientation`` (4,) xyzw, ``twist`` (6,) m/s, rad/s."""
        count = int(self._header["count"][0])
        self._rows[count % ROWS] = (t_ns, kind, position, wrench, orientation, twist)
        self._header["count"][0] = count + 1

    @property
    def count(self) -> int:
        """Rows so far."""
        return int(self._header["count"][0])

    def rows(self, first: int = 0, kind: int | None = None) -> np.ndarray:
        """Rows from a count on, oldest first, of one kind if asked; those that were overwritten are missing."""
        count = self.count
        begin = max(first, count - ROWS + 1)
        found = self._rows[np.arange(begin, max(count, begin)) % ROWS]
        return found if kind is None else found[found["kind"] == kind]
