"""``hapticd demo --scene teleop``: two daemons, two simulated hands, and a link between them that delays and loses.

Each hand is a process of its own, ``python -m bridge.demo_link NAME SIDE SECONDS``, and an ordinary client of its
daemon; the daemons and the relay run as anybody would start them.
"""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bridge.children import python_module
from bridge.demo import DemoError
from bridge.exit_codes import ExitCode
from bridge.progress import Progress

CONFIGS = Path(__file__).resolve().parent.parent / "configs"
SIDES = ("left", "right")
NAMES = {side: f"demo-{side}" for side in SIDES}
DELAY_MS, JITTER_MS, LOSS = 50.0, 5.0, 2.0
"""One way, and per cent."""

SECONDS = 12.0
HANDS: dict[str, tuple[str, Sequence[float], Sequence[Sequence[float]]]] = {
    "left": (
        "held",
        (0.0, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 12.0),
        [
            *([0, 0, 0], [0, 0, 0], [40, 0, 0], [-30, 20, 0], [0, 0, 0]),
            *([0, 0, -50], [30, 0, -50], [0, 0, 0], [0, 0, 0]),
        ],
    ),
    "right": ("light", (0.0, 12.0), [[0, 0, 0], [0, 0, 0]]),
}
"""Grip, seconds, and where the hand wants to be then, mm from where it starts. The left one moves, presses through the
other hand onto the table there, drags along it and comes back; the right one rests."""

AT_REST_S = 1.0
AT_REST_MM = 1.0
"""In the last second, in which nobody moves, neither hand goes farther than that."""


def be_hand(name: str, side: str, seconds: float) -> None:
    """Be the hand of one side for so many s, yielding to the force. Raises HapticdError when forces go."""
    from bridge.client import HapticdError
    from bridge.hands import run_hand
    from bridge.runtime import RuntimeDirectory, read_assembly
    from haptics.hands import WayPoints

    start = np.array(read_assembly(RuntimeDirectory(name)).start)
    grip, times, places = HANDS[side]
    path = WayPoints(times, start + 1e-3 * np.array(places))
    report = run_hand("sim", daemon=name, client_name=f"{side} hand", path=path, grip=grip, duration_s=seconds)
    if not report.ok:
        raise HapticdError("hand", report.ended)


class _Processes:
    """What the demonstration starts, so that it ends with it."""

    def __init__(self) -> None:
        self._started: list[subprocess.Popen[str]] = []

    def start(self, *command: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            python_module(*command),  # type: ignore[arg-type]
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._started.append(process)
        return process

    def end(self, process: subprocess.Popen[str], number: int = signal.SIGINT) -> str:
        """Ask a process to end; what it has printed."""
        if process.poll() is None:
            process.send_signal(number)
        try:
            told, complained = process.communicate(timeout=20.0)
        except subprocess.TimeoutExpired:
            process.kill()
            told, complained = process.communicate()
        if process.returncode != 0 and not told.strip():
            lines = complained.strip().splitlines()
            raise DemoError(lines[-1] if lines else f"a process of the demonstration failed with {process.returncode}")
        return told

    def kill(self) -> None:
        for process in self._started:
            if process.poll() is None:
                process.kill()
                process.wait()


def _wait_for(daemon: subprocess.Popen[str], side: str) -> None:
    """Wait for the line that says that a daemon ticks; kernels that are not compiled yet take a minute or two."""
    assert daemon.stdout is not None and daemon.stderr is not None
    line = daemon.stdout.readline()
    if '"ready"' not in line:
        lines = daemon.stderr.read().strip().splitlines()
        raise DemoError(f"the {side} daemon did not start: {lines[-1] if lines else line.strip()}")


def run_link_demo(*, seconds: float = SECONDS, out: Path = Path("out"), as_json: bool = False) -> int:
    """Run the demonstration and return an exit code: 0 when both hands came to rest, the link gave no energy, no period
    of it was lost, and both logs are executed again to the bit.

    Leaves ``teleop-left.mcap``, ``teleop-right.mcap`` and ``teleop.png`` in ``out``. Raises DemoError.
    """
    from bridge.log.reader import read_log
    from bridge.runtime import RuntimeDirectory

    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DemoError(f"cannot write into {out}: {error.strerror}; choose another folder with --out") from None
    if not as_json:
        print("hapticd demo: two hands feel each other through a link of "
              f"{DELAY_MS:g} ms each way, {LOSS:g} % of its messages lost", flush=True)  # fmt: skip
    logs = {side: out / f"teleop-{side}.mcap" for side in SIDES}
    processes = _Processes()
    try:
        with Progress(quiet=as_json) as progress:
            daemons = {}
            for k, side in enumerate(SIDES):
                progress(f"starting the {side} daemon", k, 3)
                if RuntimeDirectory(NAMES[side]).is_running():
                    raise DemoError(
                        f"a daemon named {NAMES[side]} runs already; end it with: hapticd stop {NAMES[side]}"
                    )
                logs[side].unlink(missing_ok=True)
                config = CONFIGS / f"teleop_{side}.toml"
                daemons[side] = processes.start(
                    "bridge.cli", "run", str(config), "--name", NAMES[side], "--log", str(logs[side]), "--json"
                )  # fmt: skip
                _wait_for(daemons[side], side)
            progress("starting the link", 2, 3)
            relay = processes.start(
                "bridge.cli", "link", NAMES["left"], NAMES["right"], "--delay", str(DELAY_MS), "--jitter",
                str(JITTER_MS), "--loss", str(LOSS), "--seed", "1", "--json",
            )  # fmt: skip
        hands = {
            side: processes.start("bridge.demo_link", NAMES[side], side, str(seconds + 0.5 * (side == "right")))
            for side in SIDES
        }
        _watch(hands["left"], seconds, as_json)
        for side in SIDES:
            hands[side].wait(timeout=seconds + 30.0)
            processes.end(hands[side])
            if hands[side].returncode != 0:
                raise DemoError(f"the {side} hand failed")
        passed = json.loads(processes.end(relay) or "{}")
        for side in SIDES:
            processes.end(daemons[side])
    finally:
        processes.kill()
    with Progress(quiet=as_json) as progress:
        progress("reading the logs", 0, 4)
        read = {side: read_log(logs[side]) for side in SIDES}
        return _report(read, logs, passed, out, as_json, progress)


def _watch(hand: subprocess.Popen[str], seconds: float, quiet: bool) -> None:
    """Print where the two hands are and what the link does, while the left one moves."""
    from bridge.ring import RingReader
    from bridge.runtime import RuntimeDirectory
    from haptics.link_codes import LinkState

    rings = [RingReader(RuntimeDirectory(NAMES[side]).ring_path, register=False) for side in SIDES]
    terminal = sys.stdout.isatty()
    began = 0.0
    end = time.monotonic() + seconds + 30.0
    looks = 0
    while hand.poll() is None and time.monotonic() < end:
        time.sleep(0.1)
        looks += 1
        if quiet or not (terminal or looks % 20 == 0):
            continue
        records = [ring.newest() for ring in rings]
        if any(record is None for record in records):
            continue
        outputs = [record["output"] for record in records]  # type: ignore[index]
        places = [1e3 * output["device_position"] for output in outputs]
        if began == 0.0 and int(outputs[0]["link"]["state"]) == LinkState.WAITING:
            continue
        began = began or time.monotonic()
        state = LinkState(int(outputs[0]["link"]["state"])).name.lower()
        pull = float(np.linalg.norm(outputs[0]["link"]["wrench"][:3]))
        where = "   ".join(
            f"{side} {place[0]:6.1f} {place[2]:6.1f} mm" for side, place in zip(SIDES, places, strict=True)
        )
        line = f"  {time.monotonic() - began:5.1f} s   link {state:<8} {where}   {pull:5.2f} N"
        print("\r" + line if terminal else line, end="" if terminal else "\n", flush=True)
    if terminal and not quiet:
        print("\r" + " " * 90 + "\r", end="", flush=True)


def measure(logs: dict[str, Any]) -> dict[str, Any]:
    """Figures of a run from the two logs: energies (J), distance (mm), rest (mm), ways (ms), messages."""
    from bridge.log.link_plot import together
    from haptics.link_codes import METHODS, LinkState

    run = together([logs[side].records for side in SIDES])
    settings = [logs[side].settings[0]["link"] for side in SIDES]
    method = next(name for name, code in METHODS.items() if code == int(settings[0]["method"]))
    begun = sum(float(each["tank"]) for each in settings) if method != "none" else 0.0
    rest = run.seconds > run.seconds[-1] - AT_REST_S
    ways = np.concatenate([logs[side].records["input"]["peer"]["way_ns"] for side in SIDES])
    last = [logs[side].records["input"]["peer"][-1] for side in SIDES]
    up = run.up
    apart = np.linalg.norm(run.place[0] - run.place[1], axis=1)
    return {
        "seconds_up": round(float(np.count_nonzero(up)) * float(logs["left"].settings[0]["dt"]), 3),
        "ends": [LinkState(int(run.state[k, -1])).name for k in range(2)],
        "energy_given_max_J": round(float(run.energy.sum(axis=0).max()), 6),
        "energy_begun_J": begun,
        "at_rest_mm": round(1e3 * max(float(np.ptp(run.place[k, rest], axis=0).max()) for k in range(2)), 3),
        "apart_max_mm": round(1e3 * float(apart[up].max()) if up.any() else 0.0, 2),
        "force_max_N": round(float(np.linalg.norm(run.force, axis=2).max()), 2),
        "way_ms": round(1e-6 * float(np.median(ways[ways > 0])) if (ways > 0).any() else 0.0, 2),
        "received": [int(each["received"]) for each in last],
        "lost": [int(each["lost"]) for each in last],
        "method": method,
    }


def _report(read: dict[str, Any], files: dict[str, Path], passed: dict, out: Path, as_json: bool, progress: Any) -> int:
    from bridge.log.link_plot import plot_link
    from bridge.log.reexec import reexecute

    figures = measure(read)
    progress("drawing", 1, 4)
    title = f"hapticd demo: two hands, {DELAY_MS:g} ms and {LOSS:g} % of loss each way"
    picture = plot_link([read[side] for side in SIDES], out / "teleop.png", names=SIDES, title=title)
    again = []
    for k, side in enumerate(SIDES):
        progress(f"executing the {side} log again", 2 + k, 4)
        again.append(reexecute(read[side]))
    failures = []
    if figures["seconds_up"] < 0.8 * SECONDS:
        failures.append(f"the link was up for {figures['seconds_up']:g} s only")
    if figures["energy_given_max_J"] > figures["energy_begun_J"]:
        failures.append("the link gave more energy than its ends began with")
    if figures["at_rest_mm"] > AT_REST_MM:
        failures.append(f"the hands did not come to rest: {figures['at_rest_mm']:g} mm in the last second")
    if not all(each.same for each in again):
        failures.append("a log executed again differs")
    figures["ticks_executed_again"] = sum(each.ticks for each in again)
    figures["ticks_differing"] = sum(each.ticks_differing for each in again)
    figures["files"] = {**{side: str(path) for side, path in files.items()}, "picture": str(picture)}
    progress.close()
    if as_json:
        print(json.dumps({**figures, "relay": passed, "failures": failures, "ok": not failures}))
    else:
        print(_text(figures, failures), flush=True)
    if figures["ticks_differing"]:
        return int(ExitCode.DIFFERENT)
    return int(ExitCode.FAILURE if failures else ExitCode.OK)


def _text(figures: dict[str, Any], failures: list[str]) -> str:
    received, lost = sum(figures["received"]), sum(figures["lost"])
    return "\n".join(
        [
            "",
            "What was measured",
            f"  link         up for {figures['seconds_up']:.1f} s, {figures['way_ms']:.1f} ms there and back;"
            f" {received} messages came, {lost} were lost or overtaken",
            f"  stable       in the last second the hands went {figures['at_rest_mm']:.2f} mm",
            f"  passive      both hands got {figures['energy_given_max_J']:.4f} J at most beyond what they put in,"
            f" of the {figures['energy_begun_J']:g} J that the ends begin with",
            f"  felt         up to {figures['force_max_N']:.2f} N;"
            f" the hands were up to {figures['apart_max_mm']:.0f} mm apart",
            f"  repeats      {figures['ticks_executed_again']} ticks of both logs executed again,"
            f" {figures['ticks_differing']} differ",
            "",
            "What it left",
            *(f"  {path}" for path in figures["files"].values()),
            "",
            "Done: all of it holds." if not failures else "FAILED: " + "; ".join(failures),
            'Feel what it is for: set method = "none" in both configs/teleop_*.toml, and run it again.',
        ]
    )


if __name__ == "__main__":
    try:
        be_hand(sys.argv[1], sys.argv[2], float(sys.argv[3]))
    except Exception as failure:
        print(f"{type(failure).__name__}: {failure}", file=sys.stderr)
        sys.exit(1)
