"""Child processes: messages, signals, restarts, ends."""

import os
import signal
import sys
import time

import pytest
from waiting import wait_until

from bridge.children import FIRST_BACK_OFF_S, Child, Helper, describe_status, python_module
from bridge.exit_codes import ExitCode
from bridge.runtime import RuntimeDirectory


@pytest.fixture
def runtime(short_base):
    return RuntimeDirectory("s").create()


def script(text):
    return [sys.executable, "-c", text]


def tend(helper, condition, told, seconds=10.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, told
        helper.tend(time.monotonic(), lambda code, text, **data: told.append((code, text, data)))
        time.sleep(0.005)


def test_messages_and_last_words_of_a_child(runtime):
    text = 'import sys; print(\'{"event": "progress", "done": 1}\'); print(\'noise\'); print(\'{"event": "warm"}\');'
    child = Child("one", script(text + "print('what went wrong', file=sys.stderr)"), runtime)
    assert child.wait(10)
    assert [message["event"] for message in child.messages] == ["progress", "warm"]
    assert child.last_words() == "what went wrong"
    child.close()


def test_talkative_child_is_not_blocked_and_costs_bounded_memory(runtime):
    child = Child("one", script("for i in range(20000): print('{\"i\": %d}' % i)"), runtime)
    assert child.wait(20)
    assert child.poll() == 0
    assert len(child.messages) == 1000
    assert child.messages[-1] == {"i": 19999}
    child.close()


def test_child_does_not_get_the_terminals_interrupt(runtime):
    child = Child("one", script("import time; time.sleep(20)"), runtime)
    assert os.getpgid(child.pid) != os.getpgid(0)
    child.send(signal.SIGTERM)
    assert child.wait(10)
    assert child.poll() == -signal.SIGTERM
    child.send(signal.SIGTERM)
    child.close()


def test_a_helper_that_is_killed_comes_back_with_growing_pauses(runtime):
    """By a clock of the test: its end is noticed at a moment, and it comes back exactly one pause after that."""
    told = []
    numbers = []

    def command(restarts):
        numbers.append(restarts)
        return script("import time; time.sleep(60)")

    def tell(code, text, **data):
        told.append((code, text, data))

    helper = Helper("recorder", command, runtime, False)
    for death in range(3):
        helper.child.send(signal.SIGKILL)
        wait_until(lambda: helper.child.poll() is not None)
        noticed = time.monotonic()
        helper.tend(noticed, tell)
        assert helper.child is None
        pause = FIRST_BACK_OFF_S * 2**death
        assert f"in {pause:g} s" in told[-1][1]
        helper.tend(noticed + 0.99 * pause, tell)
        assert helper.child is None
        helper.tend(noticed + 1.01 * pause, tell)
        assert helper.child is not None
    assert helper.stop(20.0)
    assert numbers == [0, 1, 2, 3]
    assert [code for code, _, _ in told] == ["recorder_died", "recorder_restarted"] * 3
    assert "killed by SIGKILL" in told[0][1]


def test_a_closed_viewer_stays_closed_but_a_crashed_one_comes_back(runtime):
    told = []
    helper = Helper("viewer", lambda restarts: script(f"import sys; sys.exit({0 if restarts else 3})"), runtime, True)
    tend(helper, lambda: helper.child is None, told)
    tend(helper, lambda: helper.restarts == 1, told)
    tend(helper, lambda: helper.child is None, told)
    for _ in range(100):
        helper.tend(time.monotonic() + 3600, lambda *_, **__: None)
    assert helper.restarts == 1
    assert [code for code, _, _ in told] == ["viewer_died", "viewer_restarted", "viewer_ended"]


def test_a_helper_that_ignores_sigterm_is_killed(runtime):
    text = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('{}', flush=True); time.sleep(60)"
    helper = Helper("publisher", lambda _: script(text), runtime, False)
    deadline = time.monotonic() + 10
    while not helper.child.messages and time.monotonic() < deadline:
        helper.child.read_messages()
    assert not helper.stop(0.2)
    helper.tend(time.monotonic() + 3600, lambda *_, **__: None)
    assert helper.child is None


def test_status_in_words():
    assert describe_status(-9) == "killed by SIGKILL"
    assert describe_status(int(ExitCode.TICK_RAISED)) == "exit code 22, TICK_RAISED"
    assert describe_status(99) == "exit code 99"


def test_modules_run_whatever_the_current_directory_holds(runtime, tmp_path, monkeypatch):
    (tmp_path / "json.py").write_text("raise SystemExit(77)")
    monkeypatch.chdir(tmp_path)
    child = Child("publisher", python_module("bridge.publisher"), runtime)
    assert child.wait(20)
    assert child.poll() == ExitCode.USAGE
    assert "usage: python -m bridge.publisher" in child.last_words()
    child.close()
