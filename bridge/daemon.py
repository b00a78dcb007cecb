"""From a configuration file to a running daemon, for the command line and the demonstration."""

import json
import sys
import time
from pathlib import Path
from typing import Any

from bridge.exit_codes import ExitCode
from bridge.progress import Progress


def warm_kernels(*, quiet: bool = False) -> None:
    """Compile or load every kernel, with a progress bar."""
    from bridge.compilation import compile_side_by_side
    from haptics.warm_up import warm_up

    with Progress(quiet=quiet) as progress:
        compile_side_by_side(progress.kernels)
        warm_up(progress.kernels)


def prepare(
    path: str | Path, *, clocking: str | None = None, resolve: bool = False, progress: Progress | None = None
) -> Any:
    """Read a configuration, compile what kernels are missing, and assemble what it describes (an ``Assembly``).

    ``clocking`` overrides the file's; ``resolve`` moves a start that is not free. Raises ConfigError, AccessError,
    SceneError and CardError.
    """
    from bridge.access import load_access, load_link_keys
    from bridge.config import load_config

    config = load_config(path)
    load_access(config.access, Path(path).resolve().parent)
    load_link_keys(config.link, config.access, Path(path).resolve().parent)
    from bridge.assemble import assemble
    from bridge.compilation import compile_side_by_side

    compile_side_by_side(lambda what, done, of: None if progress is None else progress.kernels(what, done, of))

    if clocking is not None:
        config = config.model_copy(update={"rates": config.rates.model_copy(update={"clocking": clocking})})
    return assemble(config, Path(path).resolve().parent, progress, resolve=resolve)


def log_path(config: Any, asked: str | Path | None) -> Path | None:
    """Where to record: what was asked for, else a new file in the log directory if the configuration says so."""
    if asked is not None:
        return Path(asked)
    if not config.log.record:
        return None
    return Path(config.log.directory) / f"{config.scene.name}-{time.strftime('%Y%m%d-%H%M%S')}.mcap"


def viewer_command(name: str) -> list[str]:
    """Command line of a window on the daemon of this name."""
    from bridge.children import python_module

    return python_module("bridge.view", "--name", name)


def run_config(
    path: str | Path,
    *,
    name: str = "default",
    duration: float | None = None,
    log: str | Path | None = None,
    view: bool = False,
    clocking: str | None = None,
    resolve: bool = False,
    as_json: bool = False,
) -> int:
    """Run the daemon of a configuration until it ends; returns its exit code.

    ``resolve``: where the tool's start is not free, it is moved by the shortest way found, and that is said.
    Prints what a person needs to know, or with ``as_json`` one object each for ``ready``, ``message`` and ``end``.
    Raises ConfigError, SceneError, CardError before anything has started, and NoDisplay when a window is asked for in
    vain.
    """
    from bridge.supervisor import run_daemon
    from bridge.view import check_display

    if view:
        check_display()

    def say(event: str, line: str, /, **data: Any) -> None:
        if as_json:
            print(json.dumps({"event": event, **data}, default=str), flush=True)
        elif line:
            print(line, flush=True)

    with Progress(quiet=as_json) as progress:
        assembly = prepare(path, clocking=clocking, resolve=resolve, progress=progress)
        for note in assembly.notes:
            say("note", f"note: {note}", text=note)
        target = log_path(assembly.config, log)
        if target is not None:
            target.parent.mkdir(parents=True, exist_ok=True)

        def ready(facts: dict[str, Any]) -> None:
            progress.close()
            say("ready", _greeting(assembly, facts, duration), **facts)

        def message(text: str) -> None:
            progress.close()
            if as_json:
                say("message", text, text=text)
            else:
                print(f"hapticd: {text}", file=sys.stderr, flush=True)

        totals: dict[str, Any] = {}
        code = run_daemon(
            assembly,
            name=name,
            duration=duration,
            log=target,
            viewer=viewer_command(name) if view else None,
            on_progress=progress.kernels,
            on_ready=ready,
            on_end=totals.update,
            on_message=message,
        )
    say("end", _farewell(totals, target), code=int(code), reason=ExitCode(code).name.lower(), servo=totals)
    return int(code)


def _greeting(assembly: Any, facts: dict[str, Any], duration: float | None) -> str:
    rates = assembly.config.rates
    clock = f"{rates.tick_hz:g} Hz" if rates.clocking == "free" else "one tick per sample"
    bodies = "1 body" if len(assembly.body_names) == 1 else f"{len(assembly.body_names)} bodies"
    scene = f"{assembly.config.scene.name}: {bodies}, {assembly.triangle_count} triangles"
    lines = [f"{scene}; {clock}; daemon {facts['name']!r}, pid {facts['pid']}"]
    for statement in facts.get("statements", []):
        if not statement.get("granted", True):
            lines.append(f"  not granted: {statement.get('text', statement.get('name'))}")
    if facts.get("log"):
        lines.append(f"  recording to {facts['log']}")
    named = "" if facts["name"] == "default" else f" --name {facts['name']}"
    until = "" if duration is None else f" Ends by itself after {duration:g} s."
    lines.append(f"  Feel it with `hapticd hand sim{named}`; stop with Ctrl-C or `hapticd stop{named}`.{until}")
    return "\n".join(lines)


def _farewell(totals: dict[str, Any], log: Path | None) -> str:
    if not totals:
        return ""
    text = f"{totals.get('ticks', 0)} ticks, {totals.get('missed', 0)} periods missed"
    if "tick_ns_max" in totals:
        text += f", longest tick {totals['tick_ns_max'] / 1000:.0f} us"
    return text + (f"; log in {log}" if log else "")
