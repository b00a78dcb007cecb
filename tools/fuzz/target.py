"""What is fuzzed: how its messages are spoilt, how they are read, and what may come of it."""

import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tools.fuzz.mutations import Made

SLOW_S = 20
"""A message that takes longer to read counts as one that raised."""

KEPT = 5
"""Examples kept of each kind of trouble."""


class Refused(Exception):
    """The decoder refused by a return value instead of an exception."""


class TooSlow(BaseException):
    """Reading took longer than SLOW_S."""


@dataclass(frozen=True)
class Target:
    """One decoder."""

    name: str
    share: float
    """Of all messages, relative to the others."""
    make: Callable[[random.Random], Made]
    read: Callable[[bytes], Any]
    refusals: tuple[type[Exception], ...]
    """How it is documented to refuse."""
    unsound: Callable[[Any], str]
    """What is wrong with something that was read; empty when it may be used."""


@dataclass
class Outcome:
    """What came of the messages of one target."""

    messages: int = 0
    refused: int = 0
    accepted: int = 0
    accepted_malformed: int = 0
    raised: int = 0
    largest_us: float = 0.0
    """Of the processor's time, so that what else the machine does is not counted."""
    kinds: Counter = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    def note(self, kind: str, message: bytes) -> None:
        """Keep an example of some trouble."""
        self.kinds[kind] += 1
        if self.kinds[kind] <= KEPT:
            self.examples.append(f"{kind}: {message[:200].hex()}")


def try_messages(target: Target, count: int, seed: int, tell: Callable[[int], None] = lambda done: None) -> Outcome:
    """Spoil and read so many messages; the same seed makes the same ones."""
    rng = random.Random(f"{target.name} {seed}")
    outcome = Outcome()

    def too_slow(*_: object) -> None:
        raise TooSlow

    previous = signal.signal(signal.SIGALRM, too_slow)
    told = time.monotonic()
    try:
        for number in range(count):
            message, bad = target.make(rng)
            signal.setitimer(signal.ITIMER_REAL, SLOW_S)
            began = time.thread_time_ns()
            try:
                value = target.read(message)
            except target.refusals:
                outcome.refused += 1
            except (Exception, TooSlow) as error:
                outcome.raised += 1
                outcome.note(f"{type(error).__name__}: {error}"[:160], message)
            else:
                outcome.accepted += 1
                wrong = target.unsound(value) or ("accepted what must be refused" if bad else "")
                if wrong:
                    outcome.accepted_malformed += 1
                    outcome.note(wrong, message)
            spent = (time.thread_time_ns() - began) * 1e-3
            signal.setitimer(signal.ITIMER_REAL, 0)
            outcome.largest_us = max(outcome.largest_us, spent)
            outcome.messages += 1
            if time.monotonic() - told > 2.0:
                told = time.monotonic()
                tell(number + 1)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    return outcome
