"""Waiting for what must come about, however long the machine stands still meanwhile."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE_S = 30.0
"""Far beyond what a busy machine takes: whoever waits as long has found a fault."""


def wait_until(
    condition: Callable[[], T],
    what: str = "it did not come about",
    *,
    meanwhile: Callable[[], object] | None = None,
    seconds: float = PATIENCE_S,
) -> T:
    """First value of ``condition`` that counts as true; AssertionError with ``what`` when none comes in time.

    ``meanwhile`` is done between two looks, in place of 2 ms of sleep.
    """
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, what
        if meanwhile is None:
            time.sleep(0.002)
        else:
            meanwhile()
