"""A loop that is asked to end by a signal, and ends as it should."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def asked_to_end(stop: threading.Event, *, again_ends: bool = True) -> Iterator[None]:
    """SIGINT and SIGTERM set ``stop``; with ``again_ends`` another one does what it did before. Elsewhere than in the
    main thread nothing is changed: only that one may handle signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def asked(number: int, frame: Any) -> None:
        stop.set()
        if again_ends:
            restore()

    for number in before:
        signal.signal(number, asked)
    try:
        yield
    finally:
        restore()
