"""``hapticd demo``: the whole program at work in ten seconds, with a simulated hand in the place of a device.

The hand is a process of its own and an ordinary client: ``python -m bridge.demo NAME SECONDS``, or, for a task scene
(:mod:`bridge.tasks`), ``python -m bridge.demo NAME TASK``.
"""

import contextlib
import math
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from bridge.exit_codes import ExitCode
from bridge.progress import Progress
from bridge.scripts import read_script
from bridge.tasks import TASKS, YAWS_DEG, config_of, script_of

ROOT = str(Path(__file__).resolve().parent.parent)
CONFIG = Path(ROOT) / "configs" / "demo.toml"
NAME = "demo"

DEPTH = 0.008
"""How far under the surface the hand would like to be, m."""
SPEED = 0.07
"""Of the drag, m/s."""

LIMIT_S = 60.0
"""The daemon ends with the hand, or so long after it should have."""

CHECKED_MOMENTS = 250
"""Moments of the run at which the distance from tip to mesh is measured again, independently of the daemon."""


class DemoError(RuntimeError):
    """The demonstration could not be done; the text is one sentence."""


# ---- the hand's process ----------------------------------------------------------------------------------------------


def feel(name: str, seconds: float) -> None:
    """Be the hand of daemon ``name``: follow a way over the surface for so many s, yielding to the force.

    Prints how often it had to take hold again.

    Raises HapticdError when the daemon does not give forces or takes them away.
    """
    from bridge.demo_path import SurfacePath, surface_way
    from bridge.moment import body_triangles
    from bridge.runtime import RuntimeDirectory, read_assembly

    stored = read_assembly(RuntimeDirectory(name))
    way = surface_way(np.concatenate(body_triangles(stored.model)))
    path = SurfacePath(way, np.array(stored.start), depth=DEPTH, speed=SPEED)
    _be_hand(name, "sim", stored.card, path=path, duration_s=seconds)


def do_task(name: str, task: str) -> None:
    """Be the hand of daemon ``name`` at a task, as :func:`feel`."""
    from bridge.runtime import RuntimeDirectory, read_assembly

    _be_hand(name, "scripted", read_assembly(RuntimeDirectory(name)).card, script=script_of(task))


def _be_hand(name: str, kind: str, card: dict[str, Any], **options: Any) -> None:
    from bridge.client import HapticdError
    from bridge.hands import run_hand
    from haptics.cards import card_from_dict
    from haptics.hands import DeviceDynamics

    known = card_from_dict({key: value for key, value in card.items() if value is not None})
    device = DeviceDynamics.from_card(known)
    report = run_hand(kind, daemon=name, client_name="demo hand", device=device, **options)
    print(report.holds - 1, flush=True)
    if not report.ok:
        raise HapticdError("hand", report.ended)


# ---- the demonstration -----------------------------------------------------------------------------------------------


class _Watch(threading.Thread):
    """Prints a line about the present while the daemon runs, and ends the daemon when the hand has ended."""

    def __init__(self, ring: Path, hand: subprocess.Popen[bytes], dt: float, force_max: float, quiet: bool) -> None:
        super().__init__(daemon=True)
        self._ring, self._hand, self._dt, self._full, self._quiet = ring, hand, dt, force_max, quiet
        self.over = threading.Event()

    def run(self) -> None:
        from bridge.moment import moment
        from bridge.ring import RingError, RingReader

        reader = None
        with contextlib.suppress(RingError):  # without it there are no lines, and nothing else is lost
            reader = RingReader(self._ring, register=False)
        terminal = sys.stdout.isatty()
        looks = 0
        while not self.over.wait(0.1):
            looks += 1
            due = terminal or looks % 20 == 0
            record = None if reader is None or not due else reader.newest()
            if record is not None and not self._quiet:
                now = moment(record, self._dt)
                strength = float(np.linalg.norm(now.force))
                bar = "#" * min(24, round(24 * strength / (0.4 * self._full)))
                line = f"  {now.seconds:5.1f} s  {now.state.name:<9}  {strength:5.2f} N  {bar:<24}"
                print("\r" + line if terminal else line.rstrip(), end="" if terminal else "\n", flush=True)
            if self._hand.poll() is not None:
                os.kill(os.getpid(), signal.SIGINT)  # ends the daemon by its ordinary way
                break
        if terminal and not self._quiet:
            print("\r" + " " * 60 + "\r", end="", flush=True)


def run_demo(
    *,
    task: str | None = None,
    seconds: float = 10.0,
    out: Path = Path("out"),
    window: bool = True,
    as_json: bool = False,
) -> int:
    """Run the demonstration, or a task scene by its name, and return an exit code.

    Leaves ``demo.mcap``, ``demo-scene.png`` and ``demo-plot.png`` in ``out``, or the same with the task's name; a task
    takes as long as its script does, and the exit code is 0 only if all that :mod:`bridge.task_check` looks at is as it
    should be. Raises DemoError and what reading and assembling the configuration raise.
    """
    from bridge.children import python_module
    from bridge.daemon import prepare, viewer_command
    from bridge.runtime import RuntimeDirectory
    from bridge.supervisor import run_daemon
    from bridge.view import NoDisplay, check_display

    def say(text: str = "") -> None:
        if not as_json:
            print(text, flush=True)

    try:
        out.mkdir(parents=True, exist_ok=True)
        probe = out / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise DemoError(f"cannot write into {out}: {error.strerror}; choose another folder with --out") from None
    if task is not None and task not in TASKS:
        raise DemoError(f"there is no scene {task!r}; there are: {', '.join(TASKS)}")
    stem = task or "demo"
    log = out / f"{stem}.mcap"
    began = time.monotonic()
    say("hapticd demo: " + (TASKS[task] if task else "a simulated hand feels a mesh at 1 kHz"))
    if task:
        seconds = sum(step.seconds for step in read_script(script_of(task)).steps)
    viewer = None
    if window:
        try:
            check_display()
            viewer = viewer_command(NAME)
        except NoDisplay as error:
            say(f"  {error}")
    hand: subprocess.Popen[bytes] | None = None
    watch: _Watch | None = None
    words: list[str] = []
    first_tick = 0.0
    with Progress(quiet=as_json) as progress:
        assembly = prepare(config_of(task) if task else CONFIG, clocking="free", progress=progress)
        row = assembly.settings[0]
        runtime = RuntimeDirectory(NAME)
        if not runtime.is_running():
            log.unlink(missing_ok=True)

        def ready(_: dict[str, Any]) -> None:
            nonlocal hand, watch, first_tick
            progress.close()
            first_tick = time.monotonic() - began
            say(
                f"  scene: {assembly.config.scene.name}, {assembly.triangle_count} triangles;"
                f" first tick after {first_tick:.1f} s; feeling it for {'at most ' if task else ''}{seconds:g} s ..."
            )
            hand = subprocess.Popen(
                python_module("bridge.demo", NAME, task or str(seconds)),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (ROOT, os.environ.get("PYTHONPATH"))))},
                start_new_session=True,
            )
            watch = _Watch(runtime.ring_path, hand, float(row["dt"]), float(row["force_max"]), as_json)
            watch.start()

        totals: dict[str, Any] = {}
        try:
            code = run_daemon(
                assembly,
                name=NAME,
                duration=seconds + LIMIT_S,
                log=log,
                viewer=viewer,
                on_progress=progress.kernels,
                on_ready=ready,
                on_end=totals.update,
                on_message=words.append,
            )
        finally:
            if watch is not None:
                watch.over.set()
                watch.join(2.0)
            regrips, complaint = _end(hand)
    if complaint:
        raise DemoError(f"the simulated hand failed: {complaint}")
    if code != ExitCode.OK or not log.exists():
        print("hapticd: " + ("; ".join(words) or "the daemon did not run"), file=sys.stderr)
        return int(code) or int(ExitCode.FAILURE)
    if regrips:
        say(f"  samples came late (a busy machine), so forces were dropped and the hand took hold again: {regrips} x")
    if task:
        return _report_task(task, log, out, as_json)
    return _report(log, out, first_tick, totals, as_json)


def _end(hand: subprocess.Popen[bytes] | None) -> tuple[int, str]:
    """End the hand's process: how often it took hold again, and its last line when it failed by itself."""
    if hand is None:
        return 0, ""
    try:
        told, complained = hand.communicate(timeout=3.0)
    except subprocess.TimeoutExpired:
        hand.terminate()
        told, _ = hand.communicate()
        return _count(told), ""
    lines = complained.decode(errors="replace").strip().splitlines()
    complaint = "" if hand.returncode == 0 else (lines[-1] if lines else f"exit code {hand.returncode}")
    return _count(told), complaint


def _count(told: bytes) -> int:
    return int(told) if told.strip().isdigit() else 0


def measure(records: np.ndarray, dt: float) -> dict[str, Any]:
    """Figures of a run from its (n,) RECORD: tick time and lateness (us), misses, forces (N), depth and gap (mm)."""
    timing, output = records["timing"], records["output"]
    report = output["report"]
    force = np.linalg.norm(output["wrench"][:, :3], axis=1)
    touching = report["contact_count"] > 0
    gaps = report["smallest_gap"][touching]
    away = np.linalg.norm(output["device_position"] - output["proxy_position"], axis=1)
    felt = force[touching & (force > 0.0)]
    return {
        "ticks": len(records),
        "seconds": len(records) * dt,
        "tick_us": _percentiles((timing["computed_ns"] - timing["started_ns"]) * 1e-3),
        "lateness_us": _percentiles((timing["started_ns"] - timing["planned_ns"]) * 1e-3),
        "missed": int(timing["missed"].sum()),
        "contact_fraction": float(touching.mean()),
        "force_mean_N": float(felt.mean()) if len(felt) else 0.0,
        "force_max_N": float(force.max()),
        "device_depth_max_mm": 1e3 * float(away[touching].max()) if touching.any() else 0.0,
        "gap_min_mm": 1e3 * float(gaps.min()) if len(gaps) else None,
        "degraded_ticks": int(np.count_nonzero(report["degraded"])),
    }


def _percentiles(values: np.ndarray) -> dict[str, float]:
    p50, p99, p999 = np.percentile(values, (50.0, 99.0, 99.9))
    return {"p50": float(p50), "p99": float(p99), "p999": float(p999), "max": float(values.max())}


def distance_by_trimesh(model: Any, points: np.ndarray) -> np.ndarray:
    """(n,) distance (m) from points (n, 3) to the surfaces, by trimesh: code that shares nothing with the daemon."""
    from trimesh.triangles import closest_point

    from bridge.moment import body_triangles

    triangles = np.concatenate(body_triangles(model))
    distances = np.zeros(len(points))
    for i, point in enumerate(points):
        nearest = closest_point(triangles, np.broadcast_to(point, (len(triangles), 3)))
        distances[i] = np.linalg.norm(nearest - point, axis=1).min()
    return distances


def picture_moment(records: np.ndarray) -> float:
    """Seconds from the first tick of a moment worth a picture: a strong, typical force in the last third of contact."""
    force = np.linalg.norm(records["output"]["wrench"][:, :3], axis=1)
    seconds = (records["timing"]["started_ns"] - records["timing"]["started_ns"][0]) * 1e-9
    felt = np.flatnonzero(force > 0.25 * force.max()) if force.max() > 0.0 else np.arange(len(records))
    late = felt[2 * len(felt) // 3 :]
    return float(seconds[late[np.argsort(force[late])[int(0.9 * (len(late) - 1))]]])


def _report(log_path: Path, out: Path, first_tick: float, totals: dict[str, Any], as_json: bool) -> int:
    from bridge.log.plot import plot_log
    from bridge.log.reader import read_log
    from bridge.log.reexec import reexecute
    from bridge.picture import draw_log

    with Progress(quiet=as_json) as progress:
        progress("reading the log", 0, 4)
        log = read_log(log_path)
        records = log.records
        dt = float(log.settings[0]["dt"])
        figures = measure(records, dt)
        touched = np.flatnonzero(records["output"]["report"]["contact_count"] > 0)
        if not len(touched):
            raise DemoError("the hand never touched the mesh; is configs/demo.toml changed?")
        progress("measuring the distance again", 1, 4)
        some = touched[np.linspace(0, len(touched) - 1, min(CHECKED_MOMENTS, len(touched))).astype(int)]
        tip = float(log.model.world[0]["tip_radius"])
        distance = distance_by_trimesh(log.model, records["output"]["proxy_position"][some])
        figures["independent_gap_min_mm"] = 1e3 * float(distance.min() - tip)
        progress("drawing", 2, 4)
        scene = draw_log(
            log_path,
            out / "demo-scene.png",
            at=picture_moment(records),
            title="hapticd demo: a probe dragged over a mesh by a simulated hand",
        )
        plot = plot_log(log, out / "demo-plot.png", title="hapticd demo")
        progress("executing the log again", 3, 4)
        again = reexecute(log)
    figures["ticks_differing"] = again.ticks_differing
    figures["ticks_executed_again"] = again.ticks
    files = {"log": str(log_path), "scene": str(scene), "plot": str(plot)}
    passed = figures["independent_gap_min_mm"] > 0.0
    if as_json:
        import json

        print(json.dumps({**figures, "first_tick_s": first_tick, "servo": totals, "files": files, "ok": again.same}))
    else:
        print(_text(figures, files, again, len(some)), flush=True)
    if not passed:
        raise DemoError("the tip was inside the mesh: that is a bug, please report it with out/demo.mcap")
    return int(ExitCode.OK if again.same else ExitCode.DIFFERENT)


def _report_task(task: str, log_path: Path, out: Path, as_json: bool) -> int:
    from bridge.log.plot import plot_log
    from bridge.log.reader import read_log
    from bridge.picture import draw_log
    from bridge.task_check import judge

    with Progress(quiet=as_json) as progress:
        progress("reading the log", 0, 1)
        log = read_log(log_path)
        records = log.records
        judged, again = judge(task, log, progress)
        figures = {**measure(records, float(log.settings[0]["dt"])), **judged}
        progress("drawing", 2, 3)
        title = f"{task}: {TASKS[task]}"
        yaw = math.radians(YAWS_DEG[task]) if task in YAWS_DEG else None
        scene = draw_log(log_path, out / f"{task}-scene.png", at=picture_moment(records), title=title, yaw=yaw)
        plot = plot_log(log, out / f"{task}-plot.png", title=f"hapticd demo, scene {task}")
    files = {"log": str(log_path), "scene": str(scene), "plot": str(plot)}
    if as_json:
        import json

        print(json.dumps({**figures, "files": files, "ok": not figures["failures"]}))
    else:
        print(_task_text(figures, files), flush=True)
    if not again.same:
        return int(ExitCode.DIFFERENT)
    return int(ExitCode.FAILURE if figures["failures"] else ExitCode.OK)


def _task_text(figures: dict[str, Any], files: dict[str, str]) -> str:
    tick, gap = figures["tick_us"], figures["independent_gap_min_mm"]
    goals = figures["goals"]
    longest = max(len(what) for what in (*(goal["what"] for goal in goals), *figures["play_deg"]))
    lines = ["", "The task"]
    for goal in goals:
        off = ", ".join(f"{c:+.3f}" for c in goal["off_mm"]) + " mm"
        off += "" if goal["off_deg"] is None else f", {goal['off_deg']:.2f} degrees"
        when = "NOT REACHED" if goal["seconds"] is None else f"after {goal['seconds']:.1f} s"
        lines.append(f"  {goal['what']:<{longest}}  {when}, {off} off")
    energy = []
    if figures["energy_gain_J"] is not None:
        energy.append(
            f"  energy       {1e6 * figures['energy_gain_J']:.1f} uJ gained by bodies beyond what the hand put in, of"
            f" {1e6 * figures['energy_gain_allowed_J']:.0f} uJ allowed"
        )
    lines += [f"  {what:<{longest}}  within {angle:.2f} degrees" for what, angle in figures["play_deg"].items()]
    lines += [
        "",
        "What was measured",
        f"  no touching  {figures['penetrations']} penetrations at {figures['independent_moments']} moments, measured"
        " without the engine; smallest gap " + ("none within reach" if gap is None else f"{gap:.4f} mm"),
        f"  force        largest {figures['force_max_N']:.2f} N; largest step {figures['force_step_N']:.3f} N per tick,"
        f" of {figures['force_slew_N']:g} allowed (the spring itself: {figures['wanted_force_step_N']:.3f} N)",
        *energy,
        f"  repeats      {figures['ticks_executed_again']} ticks executed again, {figures['ticks_differing']} differ",
        f"  tick time    p50 {tick['p50']:.0f} us, p99 {tick['p99']:.0f} us, longest {tick['max']:.0f} us (of 1000 us);"
        f" {figures['missed']} of {figures['ticks']} periods missed",
        "",
        "What it left",
        *(f"  {file}" for file in files.values()),
        "",
    ]
    failures = figures["failures"]
    lines.append("Done: all of it holds." if not failures else "FAILED: " + "; ".join(failures))
    return "\n".join(lines)


def _text(figures: dict[str, Any], files: dict[str, str], again: Any, checked: int) -> str:
    tick, late = figures["tick_us"], figures["lateness_us"]
    command = _command()
    longest = max(len(file) for file in files.values())
    lines = [
        "",
        "What was measured",
        f"  tick time   p50 {tick['p50']:.0f} us, p99 {tick['p99']:.0f} us, longest {tick['max']:.0f} us (of 1000 us)",
        f"  lateness    p50 {late['p50']:.0f} us, p99 {late['p99']:.0f} us, largest {late['max']:.0f} us;"
        f" {figures['missed']} of {figures['ticks']} periods missed",
        f"  force       mean {figures['force_mean_N']:.2f} N in contact, largest {figures['force_max_N']:.2f} N;"
        f" in contact {100 * figures['contact_fraction']:.0f} % of the time",
        f"  no passing  the device was up to {figures['device_depth_max_mm']:.1f} mm beyond the surface, the tip never:"
        f" smallest gap {figures['gap_min_mm']:.3f} mm",
        f"              (measured again with trimesh at {checked} moments: {figures['independent_gap_min_mm']:.3f} mm)",
        f"  repeats     {again.ticks} ticks executed again from the log alone: "
        + ("all the same to the bit" if again.same else f"{again.ticks_differing} DIFFER; first {again.first}"),
        "",
        "What it left",
        f"  {files['log']:<{longest}}  every tick: inputs, contacts, forces, timing",
        f"  {files['scene']:<{longest}}  the way of the tip over the mesh, coloured by force",
        f"  {files['plot']:<{longest}}  force, penetration and tick time over the run",
        "",
        "What to try next",
    ]
    tips = (
        (f"{command} snapshot {files['log']} --at 4 --yaw 200", "the scene at another moment"),
        (f"{command} view --log {files['log']} --speed 0.3", "the run in slow motion (needs a display)"),
        (f"{command} run configs/demo.toml", "a daemon of your own; then, in another terminal:"),
        (f"{command} hand mouse", "feel your way with the mouse (needs a display), or"),
        (f"{command} hand sim --path tap", "let a simulated hand do it"),
        (f"{command} doctor", "what this machine could do better"),
        ("README.md", "a client in ten lines; how to attach a device"),
    )
    width = max(len(what) for what, _ in tips)
    return "\n".join([*lines, *(f"  {what:<{width}}  {why}" for what, why in tips)])


def _command() -> str:
    """How this user would call hapticd."""
    if shutil.which("hapticd"):
        return "hapticd"
    beside = Path(sys.executable).parent / "hapticd"
    if beside.exists():
        try:
            return str(beside.relative_to(Path.cwd()))
        except ValueError:
            return str(beside)
    return f"{Path(sys.executable).name} -m bridge"


if __name__ == "__main__":
    try:
        if sys.argv[2] in TASKS:
            do_task(sys.argv[1], sys.argv[2])
        else:
            feel(sys.argv[1], float(sys.argv[2]))
    except Exception as failure:
        print(f"{type(failure).__name__}: {failure}", file=sys.stderr)
        sys.exit(1)
