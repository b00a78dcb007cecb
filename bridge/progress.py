"""Progress of long work, as a bar on a terminal and as plain lines elsewhere; always on stderr."""

import sys
import time
from types import TracebackType
from typing import Any, Self

PLAIN_AFTER_S = 1.5
PLAIN_EVERY_S = 4.0
"""Without a terminal: when the first line is printed, and seconds between two lines."""


class Progress:
    """Shows steps of work: ``with Progress() as progress: progress("compiling: sweep", 3, 40)``.

    On a terminal the bar disappears when it is closed; elsewhere quick work prints nothing.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._bars: Any = None
        self._task: Any = None
        self._began: float | None = None
        self._printed = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __call__(self, what: str, done: int, total: int) -> None:
        """Next comes ``what``; ``done`` of ``total`` steps are behind (total 0: unknown)."""
        if self._quiet:
            return
        if sys.stderr.isatty():
            self._draw(what, done, total)
            return
        now = time.monotonic()
        if self._began is None:
            self._began = now
            self._printed = now - PLAIN_EVERY_S
        if now - self._began >= PLAIN_AFTER_S and now - self._printed >= PLAIN_EVERY_S:
            self._printed = now
            print(f"  {what}" + (f" ({done} of {total})" if total else ""), file=sys.stderr, flush=True)

    def kernels(self, what: str, done: int, total: int) -> None:
        """As a call, for the compilation of kernels."""
        self(f"kernels: {what}", done, total)

    def fraction(self, what: str, part: float) -> None:
        """``what`` is done to ``part``, 0 to 1."""
        self(what, round(100 * part), 100)

    def _draw(self, what: str, done: int, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bars

        if self._bars is None:
            self._bars = Bars(
                TextColumn("  {task.description:<32}"),
                BarColumn(bar_width=32),
                TaskProgressColumn(),
                TimeElapsedColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._task = self._bars.add_task(what, total=total or None)
            self._bars.start()
        self._bars.update(self._task, description=what, completed=done, total=total or None, refresh=True)

    def close(self) -> None:
        """Take the bar away; the next step would bring a new one."""
        if self._bars is not None:
            self._bars.stop()
            self._bars = None
