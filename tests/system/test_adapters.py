"""The conformance test passes for the reference adapter, and finds what broken ones do wrong.

All at one daemon. That it passes for the others too takes longer: `make adapters`.
"""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import wait_until

from bridge.adapters import conformance
from bridge.adapters.benches import bench_for
from bridge.adapters.conformance import Conformance

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

BROKEN = Path(__file__).resolve().parents[1] / "bridge" / "broken_adapters.py"
BROKEN_KINDS = (
    ("KeepsTheLast", "late renders", "are left for good"),
    ("EachAxisByItself", "norm", "degrees off"),
    ("LetsGoAtOnce", "slew", r"N in \d\.\d ms, \d\.\d ms at least"),
    ("LetsGoAtOnce", "late renders", "largest step"),
    ("WrongSignOfX", "moves", r"N along x moves the samples along \[-1"),
    ("WrongSignOfX", "truth", r"at \[.*\] mm samples say \[-"),
    ("SwapsXAndY", "moves", r"N along x moves the samples along \[.*1\.0, "),
    ("ScalarFirst", "moves", "N·m about x moves the samples"),
    ("ScalarFirst", "truth", r"\(x, y, z, w\) samples say"),
    ("TurnsTheOtherWay", "truth", r"\(x, y, z, w\) samples say"),
    ("HundredMillisecondsLate", "truth", r"poses are \d+\.\d ms older than they say"),
    ("Frozen", "moves", "is its pose frozen"),
    ("PositionForVelocity", "truth", "the twist's velocity is .* % off in motion, and 0.0[1-9]"),
)
"""The class, the part of the test that is meant for it, and what that says."""


def test_the_reference_passes_and_broken_adapters_do_not():
    checks = []
    with Conformance("simulated", bench_for("simulated", {}), checks.append, 0.3) as trial:
        trial.run(short=True, only=())
        assert [str(check) for check in checks if not check.passed] == []
        names = {check.name for check in checks}
        assert {"pose at the device", "gives way"} <= names
        assert {"slew", "norm of forces", "norm of torques", "NaN", "late renders", "lying clock", "SIGTERM"} <= names

        for broken, part, wrong in BROKEN_KINDS:
            checks.clear()
            what = f"{BROKEN}:{broken}"
            trial.change(what, bench_for(what, {}))
            trial.run(short=True, only=(part,))
            hello, found = checks
            assert hello.passed, str(hello)
            assert found.passed is False and re.search(wrong, found.text), f"{broken}: {found}"
            trial.end_adapter()


KNOB = """
import time

from bridge.adapters.device import Device, Reading


class Turned(Device):
    card = "spacemouse"

    def open(self):
        self._opened = time.monotonic()

    def read(self):
        return Reading((0.0, 0.01 * (time.monotonic() - self._opened), 0.0))


class Untouched(Turned):
    def read(self):
        return Reading((0.0, 0.0, 0.0))
"""


def test_an_input_device_of_ones_own_is_steered_by_a_person(tmp_path, monkeypatch):
    """Where nobody is there, or nobody does it, nothing is said of it; the rest of the test goes on."""
    file = tmp_path / "knob.py"
    file.write_text(KNOB)
    turned, untouched = f"{file}:Turned", f"{file}:Untouched"
    checks = []
    with Conformance(turned, bench_for(turned, {}), checks.append, 0.3) as trial:
        for what, person, passed, text in (
            (turned, False, None, "nobody can deflect it"),
            (untouched, True, None, "the pose did not move by 5 mm"),
            (turned, True, True, r"moves the pose along \[0.0, 1.0, 0.0\]"),
        ):
            monkeypatch.setattr(conformance, "STEERING_S", 60.0 if passed else 1.0)
            checks.clear()
            trial.change(what, bench_for(what, {}))
            trial.person = person
            trial.run(short=True, only=("steers",))
            assert checks[0].passed, str(checks[0])
            assert checks[1].passed is passed and re.search(text, checks[1].text), str(checks[1])
            trial.end_adapter()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks for processes in /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_test_that_is_ended_takes_its_processes_and_its_directory_with_it(number):
    command = [sys.executable, "-m", "bridge.cli", "adapter-test", "inverse", "--seconds", "60"]
    test = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert test.stdout is not None
        for line in test.stdout:
            if "hello" in line:
                assert line.startswith("pass"), line
                break
        own = descendants(test.pid)
        assert len(own) >= 4, "daemon, servo, adapter and the service's stand-in"
        directory = Path(re.search(r"/tmp/hda-\w+", " ".join(own.values()))[0])
        assert directory.is_dir()
        test.send_signal(number)
        assert test.wait(60.0) == 130
    finally:
        if test.poll() is None:
            test.kill()
            for pid in descendants(test.pid):
                os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not any(alive(pid, line) for pid, line in own.items()), f"some are left of {own}")
    assert not directory.exists()


def alive(pid: int, line: str) -> bool:
    """Whether a process still is, by its command line."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ") == line
    except OSError:
        return False


def descendants(pid: int) -> dict[int, str]:
    """Command lines of all processes that a process has started, directly or not."""
    found: dict[int, str] = {}
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, children.read_text().split()):
            found[child] = Path(f"/proc/{child}/cmdline").read_text().replace("\0", " ")
            found |= descendants(child)
    return found
