"""What may wait for a daemon, done beside the loop, which goes on meanwhile and collects what came of it."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Aside(Generic[T]):
    """One call in a thread of its own, which does not keep the process from ending."""

    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call
        self._found: T | None = None
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def done(self) -> bool:
        """Whether the call is over."""
        return not self._thread.is_alive()

    def wait(self, seconds: float) -> bool:
        """Wait for the end of the call for so long at most; returns :attr:`done`."""
        self._thread.join(seconds)
        return self.done

    def result(self) -> T:
        """What a call that is done returned; raises what it raised."""
        if self._error is not None:
            raise self._error
        return self._found  # type: ignore[return-value]

    def _run(self) -> None:
        try:
            self._found = self._call()
        except Exception as error:
            self._error = error
