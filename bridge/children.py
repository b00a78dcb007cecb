"""The processes of a daemon as its supervisor sees them: started, listened to, started again, stopped."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bridge import realtime
from bridge.exit_codes import ExitCode
from bridge.runtime import RuntimeDirectory

FIRST_BACK_OFF_S = 0.25
LONGEST_BACK_OFF_S = 10.0
STEADY_S = 30.0
"""A child that has lived so long is restarted at once when it dies."""

ERROR_LINES = 12
"""Lines of its stderr that are told when a child has died."""


def python_module(module: str, *arguments: str) -> list[str]:
    """Command line that runs a module of this project in a process of its own."""
    # -P: the directory that the user happens to be in must not shadow modules.
    return [sys.executable, "-P", "-m", module, *arguments]


class Child:
    """One process of the daemon: its JSON lines on stdout, the end of its stderr in a file of the runtime directory."""

    def __init__(self, name: str, command: Sequence[str], runtime: RuntimeDirectory) -> None:
        # None of them outlives the supervisor, even when that is killed. The recorder is interrupted instead of ended:
        # it then goes on until the servo has ramped down and the ring is quiet.
        last_signal = signal.SIGINT if name == "recorder" else signal.SIGTERM
        self.name = name
        self.command = list(command)
        self.started = time.monotonic()
        self.messages: deque[dict[str, Any]] = deque(maxlen=1000)
        self._log = runtime.path / f"{name}.log"
        self._partial = b""
        environment = dict(os.environ)
        root = str(Path(__file__).resolve().parent.parent)
        known = environment.get("PYTHONPATH")
        environment["PYTHONPATH"] = root if not known else root + os.pathsep + known
        with open(self._log, "ab") as log:
            # Own session: Ctrl-C in the terminal reaches the supervisor alone, which ends the others in order.
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                start_new_session=True,
                preexec_fn=(lambda: realtime.die_with_parent(last_signal)) if realtime.LINUX else None,
            )
        assert self.process.stdout is not None
        self.descriptor = self.process.stdout.fileno()
        os.set_blocking(self.descriptor, False)

    @property
    def pid(self) -> int:
        return self.process.pid

    def read_messages(self) -> None:
        """Take what the child has said so far."""
        while True:
            try:
                data = os.read(self.descriptor, 65536)
            except BlockingIOError:
                break
            except OSError:
                data = b""
            if not data:
                break
            *lines, self._partial = (self._partial + data).split(b"\n")
            self._partial = self._partial[-65536:]
            for line in lines:
                with contextlib.suppress(ValueError):
                    message = json.loads(line)
                    if isinstance(message, dict):
                        self.messages.append(message)

    def poll(self) -> int | None:
        """Exit status, None while it runs."""
        return self.process.poll()

    def last_words(self) -> str:
        """The last lines it wrote to stderr."""
        try:
            data = self._log.read_bytes()[-4096:]
        except OSError:
            return ""
        return "\n".join(data.decode(errors="replace").splitlines()[-ERROR_LINES:])

    def send(self, number: int) -> None:
        """Send a signal; harmless when the process has ended."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number)

    def wait(self, seconds: float) -> bool:
        """Wait for its end; False when it did not come. Its messages are read meanwhile so that it cannot block."""
        deadline = time.monotonic() + seconds
        while self.process.poll() is None:
            self.read_messages()
            if time.monotonic() > deadline:
                return False
            time.sleep(0.005)
        self.read_messages()
        return True

    def close(self) -> None:
        """Close the pipe."""
        assert self.process.stdout is not None
        self.process.stdout.close()


class Helper:
    """A child that is started again when it dies."""

    def __init__(
        self, name: str, command: Callable[[int], list[str]], runtime: RuntimeDirectory, once_done: bool
    ) -> None:
        """Start it. ``command(restarts)`` is its command line; ``once_done``: when it ends well it stays ended."""
        self.name = name
        self.restarts = 0
        self._command = command
        self._runtime = runtime
        self._once_done = once_done
        self._again_at = 0.0
        self._back_off = FIRST_BACK_OFF_S
        self.child: Child | None = Child(name, command(0), runtime)

    def tend(self, now: float, tell: Callable[..., None]) -> None:
        """Notice its end, and start it again when its time has come."""
        if self.child is not None:
            self.child.read_messages()
            status = self.child.poll()
            if status is None:
                return
            lived = now - self.child.started
            words = self.child.last_words()
            self.child.close()
            self.child = None
            if self._once_done and status == 0:
                self._again_at = float("inf")
                tell(f"{self.name}_ended", f"the {self.name} was closed", status=status)
                return
            if lived > STEADY_S:
                self._back_off = FIRST_BACK_OFF_S
            self._again_at = now + self._back_off
            text = f"the {self.name} ended ({describe_status(status)}) and is started again in {self._back_off:g} s"
            tell(f"{self.name}_died", text, status=status, stderr=words[-500:])
            self._back_off = min(2 * self._back_off, LONGEST_BACK_OFF_S)
        elif now >= self._again_at:
            self.restarts += 1
            self.child = Child(self.name, self._command(self.restarts), self._runtime)
            tell(
                f"{self.name}_restarted",
                f"the {self.name} was started again",
                pid=self.child.pid,
                restarts=self.restarts,
            )

    def stop(self, seconds: float) -> bool:
        """SIGTERM, then SIGKILL after `seconds`; False when it had to be killed."""
        self._again_at = float("inf")
        if self.child is None:
            return True
        self.child.send(signal.SIGTERM)
        orderly = self.child.wait(seconds)
        if not orderly:
            self.child.send(signal.SIGKILL)
            self.child.wait(5.0)
        self.child.close()
        self.child = None
        return orderly


def describe_status(status: int) -> str:
    """Exit status of a process in words."""
    if status < 0:
        with contextlib.suppress(ValueError):
            return f"killed by {signal.Signals(-status).name}"
        return f"killed by signal {-status}"
    try:
        return f"exit code {status}, {ExitCode(status).name}"
    except ValueError:
        return f"exit code {status}"
