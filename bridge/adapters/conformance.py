"""The conformance test of adapters: what every one must do, seen from outside.

Each part asks one thing of the processes of a trial (`trial.py`), by what the relay passed on and what the device felt.
Nothing here asks the adapter what it has done.
"""

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bridge.adapters.agreement import MOVED, TURNED, done, findings, gives_way, ramp_s, told, turn_between
from bridge.adapters.benches import Bench, bench_for
from bridge.adapters.device import DeviceError
from bridge.adapters.journal import READ
from bridge.adapters.relay import Seen
from bridge.adapters.trial import FADE_S, PUSH, REACH_S, START_S, VALID_MS, Missed, Trial
from bridge.client import Client, HapticdError
from bridge.ending import asked_to_end
from bridge.exit_codes import ExitCode
from bridge.progress import Progress
from haptics.last_line import LONGEST_CYCLE_S, NO_WRENCH
from haptics.states import EngagementState

REST = 0.02
"""Share of the largest force that may be felt in free space."""
LIFT = np.array((0.02, -0.015, 0.03))
"""m: no two axes alike, and within every workspace."""
TURN = np.array((0.2, -0.15, 0.3))
"""rad, rotation vector: likewise."""
LOOKS = 10
"""At the rate, until it is as it should be: a machine that is busy now may not be so later."""
STILL_NS = 150_000_000
LEG_S = 1.5
"""How long a push may be felt before it moves the handle."""
REST_S = 5.0
"""How long is waited for a handle that is not pushed to lie still; a free one may not."""
FAR = 4.0
"""Of the least way that counts: far enough, also for one that is held."""
STEERING_S = 30.0
"""How long a person is waited for."""
STEERED = 0.005
"""m: what a full deflection moves the pose by, at least."""


@dataclass
class Check:
    """One line of the report."""

    name: str
    passed: bool | None
    """None: does not apply."""
    text: str
    """The measured value, or why not."""

    def __str__(self) -> str:
        mark = {True: "pass", False: "FAIL", None: "n/a "}[self.passed]
        return f"{mark}  {self.name}: {self.text}"


@dataclass
class Report:
    """What came of an adapter."""

    adapter: str
    tested_at: str
    """What stood in for the device, if anything."""
    checks: list[Check] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether something was checked and nothing failed."""
        judged = [check.passed for check in self.checks if check.passed is not None]
        return bool(judged) and all(judged)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "adapter": self.adapter,
            "tested_at": self.tested_at,
            "passed": self.passed,
            "checks": [{"name": c.name, "passed": c.passed, "text": c.text} for c in self.checks],
        }


def run_conformance(
    what: str,
    settings: Mapping[str, str] | None = None,
    *,
    hardware: bool = False,
    seconds: float = 1.0,
    short: bool = False,
    only: Sequence[str] = (),
    on_line: Callable[[str], None] | None = None,
) -> Report:
    """Test an adapter by its name or place (see :func:`bridge.adapters.registry.find`).

    ``hardware``: at the device itself, although there is an emulator. ``short``: one start of daemon and adapter.
    ``only``: names of parts to run after the first ones. SIGINT and SIGTERM end it in order, as KeyboardInterrupt.
    Raises DeviceError when there is no such adapter, CardError when its device has no card.
    """
    bench = bench_for(what, dict(settings or {}), hardware=hardware)
    report = Report(what, bench.text)

    def tell(check: Check) -> None:
        report.checks.append(check)
        if on_line is not None:
            on_line(str(check))

    if on_line is not None:
        on_line(f"{what}, {bench.text}")
    stop = threading.Event()
    try:
        with (
            asked_to_end(stop, again_ends=False),
            Conformance(what, bench, tell, seconds, stop=stop, person=sys.stderr.isatty()) as trial,
        ):
            trial.run(short, only)
    except Missed as error:
        tell(Check("daemon", False, str(error)))
    return report


class Conformance(Trial):
    """The parts of the test."""

    def __init__(
        self,
        what: str,
        bench: Bench,
        tell: Callable[[Check], None],
        seconds: float,
        *,
        stop: threading.Event | None = None,
        person: bool = False,
    ) -> None:
        """``person``: somebody reads what is asked on stderr, and can steer. Raises CardError."""
        super().__init__(what, bench, stop=stop)
        self._tell, self._seconds, self.person = tell, seconds, person
        self._failed = False
        self._name = ""

    def run(self, short: bool, only: Sequence[str]) -> None:
        """All parts, or some."""
        with self._check("hello, lease, card"):
            self._engaged()
            status = self._status()
            assert status["owner"] is not None, "nobody owns the device"
            self._pass(f"{status['owner']} owns a device of card `{self.card.name}`")
        if self._failed:
            return
        parts = ["samples", "pose"]
        if self.card.input_only:
            parts += ["steers"]
        else:
            parts += ["free", "truth", "push", "moves", "slew", "norm", "torque", "nan", "late renders"]
        parts += ["clock", "second", "terminated"] if not short else ["clock", "terminated"]
        if not short:
            parts += ["unplugged", "daemon killed", "daemon again", "stop"]
        for part in parts:
            if only and part not in only:
                continue
            if self._over() and part not in ("terminated",):
                self._engaged()
            getattr(self, "part_" + part.replace(" ", "_"))()
        if self.card.input_only:
            reason = "an input device, which renders nothing"
            for name in ("engage", "pose at the device", "push", "gives way", "slew", "norm", "NaN", "late renders"):
                self._tell(Check(name, None, reason))

    def change(self, what: str, bench: Bench) -> None:
        """Go on with another adapter of the same card, at the daemon that runs."""
        assert bench.card == self._bench.card and (self._adapter is None or self._over())
        self._bench.stop()
        self._what, self._bench, self._failed = what, bench, False
        self.relay.push, self.relay.state = None, -1
        self._go_back()
        with contextlib.suppress(HapticdError), Client(self._endpoints(), "conformance", timeout_ms=20_000) as client:
            client.reset()  # out of a fault that the one before left
        bench.start(self._base, self.journal)

    @contextlib.contextmanager
    def _check(self, name: str):
        """Whatever goes wrong inside makes a failed check of this name."""
        self._name = name
        try:
            yield
        except (AssertionError, HapticdError, DeviceError) as error:
            self._failed = True
            self._tell(Check(name, False, str(error) or type(error).__name__))

    def _pass(self, text: str) -> None:
        self._tell(Check(self._name, True, text))

    def _judge(self, passed: bool, text: str) -> None:
        self._failed |= not passed
        self._tell(Check(self._name, bool(passed), text))

    def part_samples(self) -> None:
        """Rate, numbers and times of samples."""
        with self._check("samples"):
            for _ in range(LOOKS):
                good, text = self._rate()
                if good:
                    break
            self._judge(good, text)

    def _rate(self) -> tuple[bool, str]:
        """Whether samples of some time come often and soon enough, and what was seen."""
        begun = time.monotonic_ns()
        self._pause(self._seconds)
        seen = [one for one in list(self.relay.samples) if one.arrived > begun]
        if len(seen) <= 10:
            return False, f"{len(seen)} samples in {self._seconds:g} s; {self._last_said()}"
        numbers = np.array([int(one["seq"]) for one in seen])
        times = np.array([int(one["t_sample"]) for one in seen])
        late = np.array([one.arrived for one in seen]) - times
        median = float(np.median(np.diff([one.arrived for one in seen]))) * 1e-9
        again = f"numbers do not increase within a session; {self._last_said()}"
        same = np.diff([int(one["session"]) for one in seen]) == 0
        assert (np.diff(numbers)[same] > 0).all(), again
        assert (np.diff(times) >= 0).all(), "times of samples run backwards"
        assert late.min() >= 0, f"a sample comes {-late.min() * 1e-6:.2f} ms from the future"
        text = f"{1.0 / median:.0f} a second (median), for a tick rate of {1.0 / self.tick_s:.0f}; "
        text += f"median age at arrival {np.median(late) * 1e-6:.2f} ms"
        return median < 2.0 * self.tick_s and bool(np.median(late) < 20e6), text

    def part_pose(self) -> None:
        """Units and frame, as far as numbers tell."""
        with self._check("units and frame"):
            seen = list(self.relay.samples)[-200:]
            positions = np.array([one["position"] for one in seen], dtype=float)
            turns = np.array([one["orientation"] for one in seen], dtype=float)
            reach = 2.0 * (self.card.workspace_radius or 0.5)
            if self.card.workspace_size is not None:
                reach = float(np.linalg.norm(self.card.workspace_size))
            farthest = float(np.linalg.norm(positions, axis=1).max())
            off = float(np.abs(np.linalg.norm(turns, axis=1) - 1.0).max())
            text = f"farthest {farthest:.4f} m from the origin (workspace {reach:.2f} m), quaternions unit to {off:.0e}"
            self._judge(farthest <= reach and off < 1e-3 and bool(np.isfinite(positions).all()), text)

    def part_free(self) -> None:
        """Nothing is felt in free space."""
        with self._check("clean engagement"):
            first = self._started
            self._pause(self._seconds)
            rows = self._written(first)
            assert len(rows), "nothing is written to the device, or it does not keep the journal that it is given"
            felt = float(np.linalg.norm(rows["wrench"][:, :3], axis=1).max())
            bound = REST * self.limits["force_max"]
            self._judge(felt <= bound, f"at most {felt:.3f} N since it was opened, in free space (bound {bound:.2f} N)")

    def part_truth(self) -> None:
        """Samples say where the handle is, how it is turned, how fast it goes, and when."""
        with self._check("pose at the device"):
            if not self._bench.journals:
                self._tell(Check(self._name, None, "nothing but the adapter knows where a real device is"))
                return
            first, begun = max(self.journal.count - 1, 0), time.monotonic_ns()
            rows = self.journal.rows(max(first - 100, 0), READ)
            assert len(rows), "nothing is read from the device, or it does not keep the journal that it is given"
            before = rows["position"][-1].copy()
            self.journal.words["lift"] = LIFT
            if self.card.sensed > 3:
                self.journal.words["turn"] = TURN
            try:
                self._wait(lambda: self._rests(before), "the hand does not move the handle and rest")
                self._pause(0.1)  # samples of the rest are on their way
                seen = [one for one in list(self.relay.samples) if one.arrived > begun]
                found = findings(told(seen), done(self.journal.rows(first, READ)), self.card)
            finally:
                self._go_back()
            wrong = [text for good, text in found if not good]
            self._judge(not wrong, "; ".join(wrong or [text for _, text in found]))

    def _rests(self, before: np.ndarray) -> bool:
        """Whether the handle has gone from a position (3,) where the journal wants it, and lies still since."""
        rows = self.journal.rows(max(self.journal.count - 2000, 0), READ)
        lately = rows[rows["t"] > rows["t"][-1] - STILL_NS]
        gone = float(np.linalg.norm(rows["position"][-1] - before)) > 0.9 * float(np.linalg.norm(LIFT))
        return gone and len(lately) > 3 and float(np.linalg.norm(lately["twist"], axis=1).max()) < 1e-3

    def _go_back(self) -> None:
        """The hand wants the handle where it began."""
        self.journal.words["lift"] = self.journal.words["turn"] = 0.0

    def part_push(self) -> None:
        """A force that is asked for is felt, where it points."""
        with self._check("push"):
            largest = self.limits["force_max"]
            for axis, name in enumerate("xyz"):
                wanted = np.zeros(6)
                wanted[axis] = PUSH * largest
                self._push(wanted)
                with contextlib.suppress(Missed):
                    self._reaches(wanted[:3], 0.02 * largest)
                felt = self._force()
                text = f"{PUSH * largest:.2f} N along {name} are felt as {felt.round(2).tolist()} N"
                assert np.linalg.norm(felt - wanted[:3]) < 0.02 * largest, text
            self._pass(f"{PUSH * largest:.2f} N along x, y and z are felt along x, y and z")

    def part_moves(self) -> None:
        """A push moves the samples the way it pushes, along each axis; a torque turns them."""
        with self._check("gives way"):
            most = []
            for axis, name in zip(np.eye(3), "xyz", strict=True):
                push = np.concatenate((PUSH * self.limits["force_max"] * axis, np.zeros(3)))
                ways = self._legs(push, lambda a, b: _array(b, "position") - _array(a, "position"), MOVED)
                wrong = gives_way(ways, axis, MOVED)
                assert not wrong, f"{PUSH * self.limits['force_max']:.2f} N along {name} {wrong}"
                most.append(max(float(np.linalg.norm(way)) for way in ways))
            text = f"pushes along x, y and z move the samples that way, by {np.round(most, 4).tolist()} m"
            if self.card.renders_torque and self.limits.get("torque_max"):
                for axis, name in self._driven_axes():
                    push = np.concatenate((np.zeros(3), PUSH * self.limits["torque_max"] * axis))
                    ways = self._legs(
                        push, lambda a, b: turn_between(_array(a, "orientation"), _array(b, "orientation")), TURNED
                    )
                    wrong = gives_way(ways, axis, TURNED)
                    assert not wrong, f"{PUSH * self.limits['torque_max']:.3f} N·m about {name} {wrong}"
                text += ", and torques turn them that way"
            self._pass(text)

    def _driven_axes(self) -> list[tuple[np.ndarray, str]]:
        """Axes to turn about, and their names: all, or those across the handle where nothing drives its roll."""
        axes = list(zip(np.eye(3), "xyz", strict=True))
        return [one for one in axes if self.card.actuated == 6 or abs(float(one[0] @ self.card.axis)) < 0.1]

    def _legs(self, push: np.ndarray, way: Callable[[Seen, Seen], np.ndarray], least: float) -> list[np.ndarray]:
        """Push (6,), and then the other way: how far samples went each time (3,).

        It begins from rest, and ends as soon as the handle has gone `FAR` times the least the way it is pushed, for a
        free one would run away, or after `LEG_S`.
        """
        self._push(NO_WRENCH)
        self._comes_to_rest(way, least)
        ways: list[np.ndarray] = []
        axis = (push[:3] + push[3:]) / np.linalg.norm(push)
        for sign in (1.0, -1.0):
            before, begun = self._sample(), time.monotonic_ns()
            far: list[np.ndarray] = []

            def gone(before: Seen = before, along: np.ndarray = sign * axis, far: list[np.ndarray] = far) -> bool:
                now = way(before, self._sample())
                if now @ along > FAR * least:
                    far.append(now)
                return bool(far)

            def moved_or_not(gone: Callable[[], bool] = gone, wanted: np.ndarray = sign * push) -> bool:
                return gone() or self._felt_for(wanted) > LEG_S

            self._push(sign * push)
            self._wait(moved_or_not, "the push is not felt")
            if not far:  # then wherever it went: a handle that is late to turn round has not come to this
                seen = [one for one in list(self.relay.samples) if one.valid and one.arrived > begun]
                far = [way(before, one) for one in seen[:: max(len(seen) // 200, 1)]]
            ways.append(max(far, key=np.linalg.norm, default=np.zeros(3)))
        self._push(NO_WRENCH)
        return ways

    def _felt_for(self, wanted: np.ndarray) -> float:
        """How long the device has been given a wrench (6,) to a tenth, s; other ones begin it anew."""
        rows = self._written(max(self.journal.count - 6000, 0))
        others = np.flatnonzero(np.linalg.norm(rows["wrench"] - wanted, axis=1) > 0.1 * np.linalg.norm(wanted))
        rows = rows[others[-1] + 1 :] if len(others) else rows
        return float(rows["t"][-1] - rows["t"][0]) * 1e-9 if len(rows) else 0.0

    def _comes_to_rest(self, way: Callable[[Seen, Seen], np.ndarray], least: float) -> None:
        """Wait, some seconds at most, until samples that are a tenth of a second apart differ by little."""
        before, deadline = self._sample(), time.monotonic() + REST_S
        while time.monotonic() < deadline:
            self._pause(0.01)
            after = self._sample()
            if int(after["t_sample"]) - int(before["t_sample"]) >= 100_000_000:
                if float(np.linalg.norm(way(before, after))) < 0.1 * least:
                    return
                before = after

    def _sample(self) -> Seen:
        """The newest one with a pose to use."""
        newest = list(self.relay.samples)[-200:]
        return next((one for one in reversed(newest) if one.valid), newest[-1])

    def part_slew(self) -> None:
        """A step of the wanted force is no step at the device."""
        with self._check("slew"):
            largest = self.limits["force_max"]
            self._push(NO_WRENCH)
            self._wait(lambda: not self._force().any(), "forces do not end")
            first = max(self.journal.count - 40, 0)
            self._push((0.0, largest, 0.0, 0.0, 0.0, 0.0))
            self._wait(lambda: np.linalg.norm(self._force()) > 0.96 * largest, "the largest force is not reached")
            # Where messages come in bunches, their times are not those that count: half of it.
            share = 0.5 if self._bench.apart else 0.98
            took, rise = ramp_s(self.journal.rows(first), largest, cycles=not self._bench.apart)
            least = share * rise * self.tick_s / self.limits["force_slew"]
            text = f"{rise:.2f} N of {largest:g} N in {took * 1e3:.1f} ms, {least * 1e3:.1f} ms at least"
            self._judge(took >= least, text)

    def part_norm(self) -> None:
        """Too large a force is shortened, and keeps its direction."""
        with self._check("norm of forces"):
            largest = self.limits["force_max"]
            wanted = largest * np.array((2.0, 1.4, -0.7))
            along = wanted / np.linalg.norm(wanted)
            self._push((*wanted, 0.0, 0.0, 0.0))
            # Shortened, and pointing there, or where it stays otherwise.
            with contextlib.suppress(Missed):
                self._reaches(largest * along, 1e-3 * largest)
            felt = self._force()
            size = float(np.linalg.norm(felt))
            turned = float(np.degrees(np.arccos(np.clip(felt @ along / max(size, 1e-12), -1.0, 1.0))))
            most = float(np.linalg.norm(self._written(self._started)["wrench"][:, :3], axis=1).max())
            passed = most <= largest * (1.0 + 1e-6) and size >= 0.98 * largest and turned < 0.5
            text = f"{np.linalg.norm(wanted):.1f} N asked for: {size:.3f} N felt, {turned:.2f} degrees off; "
            self._judge(passed, text + f"most ever {most:.3f} N, at most {largest:g} N")

    def part_torque(self) -> None:
        """The same for torques."""
        with self._check("norm of torques"):
            largest = self.limits.get("torque_max") or 0.0
            if not self.card.renders_torque or not largest:
                self._tell(Check(self._name, None, "a device without torque"))
                return
            wanted = largest * np.array((2.0, -1.4, 0.7))
            self._push((0.0, 0.0, 0.0, *wanted))
            goal = largest * wanted / np.linalg.norm(wanted)
            with contextlib.suppress(Missed):
                self._wait(lambda: np.linalg.norm(self._wrench()[3:] - goal) < 1e-3 * largest, "", REACH_S)
            off = float(np.linalg.norm(self._wrench()[3:] - goal))
            self._judge(off < 0.01 * largest, f"{largest:g} N·m felt along what was asked for, to {off:.4f} N·m")

    def part_nan(self) -> None:
        """A render of NaN is no force, and no end."""
        with self._check("NaN"):
            self._pushed()
            first = self.journal.count - 2
            since = time.monotonic_ns()
            self.relay.broken = True
            passed, text = self._ramp(first, since, FADE_S + VALID_MS * 1e-3 + 2 * LONGEST_CYCLE_S)
            finite = bool(np.isfinite(self._written(first)["wrench"]).all())
            self.relay.broken = False
            self._pushed()
            self._judge(passed and finite, f"{text}; forces come back")

    def part_late_renders(self) -> None:
        """A render that is too old is no force."""
        with self._check("late renders"):
            self._pushed()
            first = self.journal.count - 2
            self.relay.held = True
            passed, text = self._stale(first)
            self.relay.held = False
            self._pushed()
            self._judge(passed, f"{text}; forces come back")

    def _stale(self, first: int) -> tuple[bool, str]:
        """Forces have ended once the last render that was passed on may no longer be used."""
        time.sleep(0.005)  # one that was on its way has come
        since = self.relay.last_passed + self.relay.valid_for
        passed, text = self._ramp(first, since, FADE_S + 2 * LONGEST_CYCLE_S)
        return passed, f"after the last render had lasted {self.relay.valid_for * 1e-6:.0f} ms: {text}"

    def part_steers(self) -> None:
        """An input device moves the tool."""
        with self._check("steers"):
            before = _array(self.relay.samples[-1], "position")

            def moved() -> np.ndarray:
                return _array(self.relay.samples[-1], "position") - before

            wanted = self._bench.steers_along
            if wanted is None:
                self._steered_by_hand(moved)
                return
            self._bench.steer(True)
            try:
                self._wait(lambda: np.linalg.norm(moved()) > STEERED, "a full deflection does not move the pose")
            finally:
                self._bench.steer(False)
            way = moved() / np.linalg.norm(moved())
            right = float(way @ np.array(wanted))
            self._judge(right > 0.99, f"a deflection along {wanted} moves the pose along {way.round(2)}")

    def _steered_by_hand(self, moved: Callable[[], np.ndarray]) -> None:
        """A person deflects it, if there is one; ``moved`` says how far (3,) the pose went, m."""
        if not self.person:
            self._tell(Check(self._name, None, "nobody can deflect it: run this in a terminal, and be asked to"))
            return
        print("Deflect the device fully now, along one of its axes, and hold it there.", file=sys.stderr, flush=True)
        begun = time.monotonic()
        with Progress() as progress:
            while np.linalg.norm(moved()) <= STEERED and time.monotonic() < begun + STEERING_S:
                progress("waiting for a deflection", int(time.monotonic() - begun), int(STEERING_S))
                self._pause(0.05)
        size = float(np.linalg.norm(moved()))
        if size <= STEERED:
            reason = f"the pose did not move by {STEERED * 1e3:g} mm in {STEERING_S:g} s: was it deflected at all?"
            self._tell(Check(self._name, None, reason))
            return
        self._pass(f"moves the pose along {(moved() / size).round(2).tolist()}: was that the way it was deflected?")

    def part_clock(self) -> None:
        """A clock that lies makes no old pose fresh, and no fresh one old."""
        with self._check("lying clock"):
            if not self._bench.own_clock:
                self._tell(Check(self._name, None, "the device gives no times of its own"))
                return
            for step in (-1_000_000_000, 3_000_000_000):
                self.journal.words["clock_step"] = step
                self._pause(0.1)
            begun = time.monotonic_ns()
            self._wait(lambda: self.relay.samples[-1].arrived > begun + 100_000_000, "no samples come")
            seen = [one for one in list(self.relay.samples) if one.arrived > begun]
            ages = np.array([one.arrived - int(one["t_sample"]) for one in seen])
            said = "clock" in self._said()
            self.journal.words["clock_step"] = 0
            text = f"after steps of -1 and +4 s samples are {np.median(ages) * 1e-6:.2f} ms old (median), "
            text += f"{int((ages < 0).sum())} from the future" + ("" if said else "; nothing was said")
            self._judge(said and ages.min() >= 0 and np.median(ages) < 20e6, text)

    def part_second(self) -> None:
        """A second adapter is refused, and the first one goes on."""
        with self._check("second adapter"):
            self._second = self._start_adapter()
            code = self._code(self._second, "a second one is not refused", START_S)
            lines = [line for line in self._said().splitlines() if line.startswith("hapticd: ")]
            assert code in (ExitCode.REFUSED, ExitCode.DEVICE), f"a second one ends with code {code}"
            assert lines, "a second one is refused without a sentence"
            assert not self._over(), "the first one ended"
            self._pass(f"refused with code {code}: {lines[-1].removeprefix('hapticd: ')}")

    def part_terminated(self) -> None:
        """SIGTERM ramps forces down and gives the device back."""
        with self._check("SIGTERM"):
            adapter = self._adapter
            assert adapter is not None
            self._forces_on()
            first, since = self.journal.count - 2, time.monotonic_ns()
            adapter.send_signal(signal.SIGTERM)
            passed, text = self._ramp(first, since, 0.1) if not self.card.input_only else (True, "")
            code = self._code(adapter, "it does not end")
            self._wait(lambda: self._status()["owner"] is None, "the lease is not given back")
            text += f"{'; ' if text else ''}exit code {int(code)}, lease given back"
            self._judge(passed and code == ExitCode.OK, text)
        self.relay.push = None

    def _forces_on(self) -> None:
        """As much as there can be, so that something has to be taken away."""
        if not self.card.input_only:
            self._pushed()

    def part_stop(self) -> None:
        """`stop` from anybody ends forces."""
        with self._check("stop"):
            self._forces_on()
            first, since = self.journal.count - 2, time.monotonic_ns()
            with Client(self._endpoints(), "conformance", timeout_ms=20_000) as client:
                client.stop()
            passed, text = self._ramp(first, since, 0.5) if not self.card.input_only else (True, "")
            self._wait(lambda: self.relay.state == EngagementState.FAULT, "the daemon is not in FAULT")
            assert not self._over(), "the adapter ended"
            self._judge(passed, f"{text}{'; ' if text else ''}FAULT, and the adapter goes on")
        self.relay.push = None

    def part_unplugged(self) -> None:
        """A device that goes away ends the adapter with a sentence, and the lease."""
        with self._check("unplugged"):
            adapter = self._adapter
            assert adapter is not None
            self._forces_on()
            begun = time.monotonic_ns()
            self._bench.unplug()
            code = self._code(adapter, "it does not end")
            after = [one for one in list(self.relay.samples) if one.arrived > begun + 20_000_000]
            lines = [line for line in self._said().splitlines() if line.startswith("hapticd: ")]
            self._wait(lambda: self._status()["owner"] is None, "the lease is not given back")
            good = all(not one.valid for one in after)
            text = f"exit code {code}: {lines[-1].removeprefix('hapticd: ') if lines else 'nothing was said'}"
            text += f"; {len(after)} samples after it, none with a pose to use" if good else "; old poses are sent on"
            self._judge(code == ExitCode.DEVICE and bool(lines) and good, text)
        self._bench.plug_in()
        self.relay.push = None

    def part_daemon_killed(self) -> None:
        """A daemon that dies while forces are on: zero at the device within the horizon."""
        with self._check("daemon killed"):
            if self._over():
                self._engaged()
            self._forces_on()
            daemon = self._daemon
            assert daemon is not None
            servo = int(self._status()["processes"]["servo"]["pid"])
            first = self.journal.count - 2
            os.kill(servo, signal.SIGKILL)
            os.killpg(daemon.pid, signal.SIGKILL)
            daemon.wait()
            passed, text = self._stale(first) if not self.card.input_only else (True, "no forces to end")
            self._pause(1.0)
            assert not self._over(), "the adapter ended with the daemon"
            self._judge(passed, text)
        self.relay.push = None

    def part_daemon_again(self) -> None:
        """A new daemon is found, and forces come back."""
        with self._check("daemon again"):
            self._end(self._daemon)
            self._start_daemon()
            self._engaged(running=True)
            self._forces_on()
            self._pass("a new daemon is found, and forces are on again")


def _array(seen: Seen, name: str) -> np.ndarray:
    return np.array(seen[name], dtype=float)
