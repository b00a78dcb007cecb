"""A loop that is asked to end by a signal, and ends as it should."""

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any


@contextmanager
def asked_to_end(stop: threading.Event, *, again_ends: bool = True) -> Iterator[None]:
    """SIGINT, SIGTERM and SIGHUP set ``stop``; see :func:`ending_signals`."""
    with ending_signals(lambda number: stop.set(), again_ends=again_ends):
        yield


@contextmanager
def ending_signals(asked: Callable[[signal.Signals], None], *, again_ends: bool) -> Iterator[None]:
    """Call ``asked`` at SIGINT and SIGTERM, and at SIGHUP, which is what a terminal that is closed sends.

    SIGHUP stays ignored where it is, as `nohup` has it. With ``again_ends`` another SIGINT or SIGTERM does what it did
    before; SIGHUP does not, as a shell often passes on what came from the terminal too. Elsewhere than in the main
    thread nothing is changed: only that one may handle signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    terminals = [output for output in (1, 2) if os.isatty(output)]
    before: dict[signal.Signals, Any] = {
        number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    if before[signal.SIGHUP] == signal.SIG_IGN:
        del before[signal.SIGHUP]

    def restore(*numbers: signal.Signals) -> None:
        for number in numbers:
            signal.signal(number, before[number])

    def handle(number: int, frame: Any) -> None:
        if number == signal.SIGHUP:
            _hush(terminals)
        elif again_ends:
            restore(signal.SIGINT, signal.SIGTERM)
        asked(signal.Signals(number))

    for number in before:
        signal.signal(number, handle)
    try:
        yield
    finally:
        restore(*before)


def _hush(terminals: Sequence[int]) -> None:
    """A terminal is gone: what is said to it from now on would be an error in the middle of the end."""
    with suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for output in terminals:
            os.dup2(nowhere, output)
        os.close(nowhere)
