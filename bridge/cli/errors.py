"""What goes wrong becomes one sentence on stderr and an exit code."""

import functools
import os
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import typer
from typer.core import TyperCommand

from bridge.exit_codes import ExitCode

CODES = {
    "bridge.config.load.ConfigError": ExitCode.CONFIG,
    "haptics.cards.CardError": ExitCode.CONFIG,
    "bridge.access.AccessError": ExitCode.CONFIG,
    "bridge.keys.KeysError": ExitCode.INPUT,
    "bridge.scene.errors.SceneError": ExitCode.INPUT,
    "bridge.log.reader.LogError": ExitCode.INPUT,
    "bridge.recordings.RecordingError": ExitCode.INPUT,
    "builtins.FileNotFoundError": ExitCode.INPUT,
    "builtins.IsADirectoryError": ExitCode.INPUT,
    "builtins.PermissionError": ExitCode.INPUT,
    "bridge.runtime.AlreadyRunning": ExitCode.ALREADY_RUNNING,
    "bridge.client.errors.NoDaemonError": ExitCode.NOT_RUNNING,
    "bridge.client.errors.HapticdError": ExitCode.REFUSED,
    "bridge.view.NoDisplay": ExitCode.FAILURE,
    "bridge.runtime.RuntimeDirectoryError": ExitCode.FAILURE,
    "bridge.adapters.device.DeviceError": ExitCode.DEVICE,
    "bridge.follower_robots.RobotError": ExitCode.DEVICE,
    "bridge.demo.DemoError": ExitCode.FAILURE,
    "builtins.ValueError": ExitCode.INPUT,
    "builtins.OSError": ExitCode.FAILURE,
}
"""Exit code by the error's class or its nearest base; by name, because importing the classes here would cost time."""


def fail(text: str, code: ExitCode) -> NoReturn:
    """Print one sentence on stderr and leave with a code."""
    print(f"hapticd: {text}", file=sys.stderr)
    raise typer.Exit(int(code))


class Command(TyperCommand):
    """A command whose complaints about options do not begin with how they were found."""

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        """Read the command line."""
        try:
            return super().make_context(*args, **kwargs)
        except Exception as error:
            message = getattr(error, "message", None)
            if isinstance(message, str):
                error.message = message.removeprefix("Value error, ")  # type: ignore[attr-defined]
            raise


def guarded(function: Callable[..., int]) -> Callable[..., None]:
    """A command for typer: what ``function`` returns is its exit code, what it raises becomes a sentence and a code."""

    @functools.wraps(function)
    def command(*args: Any, **kwargs: Any) -> None:
        try:
            code = function(*args, **kwargs)
        except typer.Exit:
            raise
        except KeyboardInterrupt:
            raise typer.Exit(130) from None
        except BrokenPipeError:  # whoever read the output has gone: nothing to say to anybody
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            raise typer.Exit(int(ExitCode.OK)) from None
        except Exception as error:
            if os.environ.get("HAPTICD_DEBUG"):
                raise
            known = _code_of(error)
            if known is None:
                what = f"{type(error).__name__}: {error}"
                fail(f"internal error: {what}; HAPTICD_DEBUG=1 shows where", ExitCode.FAILURE)
            fail(getattr(error, "text", None) or _sentence(error), known)
        raise typer.Exit(int(code))

    return command


def _code_of(error: BaseException) -> ExitCode | None:
    names = (f"{kind.__module__}.{kind.__qualname__}" for kind in type(error).__mro__)
    return next((CODES[name] for name in names if name in CODES), None)


def _sentence(error: BaseException) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror or error}"
    return str(error) or type(error).__name__
