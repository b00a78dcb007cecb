"""A robot's process at a link, with the daemon's end in this process: what it adopts, commands, tells, and gives up."""

import math
import time

import numpy as np
import pytest
import zmq
from command_line import called, one_sentence

from bridge import follower as module
from bridge.client import HapticdError
from bridge.exit_codes import ExitCode
from bridge.follower import FollowLoop, FollowOptions, check_reading, find_peer
from bridge.follower_robots import Robot, RobotError, RobotReading, SimulatedRobot, find_robot, make_robot
from bridge.peer_socket import Peer, open_peer
from haptics.link_codes import LAWS, LINKED, METHODS, LinkReason, LinkState
from haptics.tables import LINK_SETTINGS, RECORD

MS = 1_000_000
QUICK = FollowOptions(stale_after_ms=100.0, ramp_up_ms=10.0, ramp_down_ms=20.0, robot_timeout_ms=20.0)


class Stub:
    """A robot that is where it was asked to be, and does what a test wants."""

    stiffness, damping = 2000.0, 50.0

    def __init__(self):
        self.position = [0.1, 0.2, 0.3]
        self.twist = [0.0] * 6
        self.wrench = [0.0, 0.0, 2.5, 0.0, 0.0, 0.0]
        self.calls = []
        self.answers = lambda reading: reading
        self.takes = lambda: None

    def read(self):
        return self.answers(RobotReading(list(self.position), twist=self.twist, wrench=self.wrench))

    def command(self, position, orientation, twist):
        self.takes()
        self.calls.append("command")
        self.position, self.twist = position, twist

    def stop(self):
        self.calls.append("stop")
        self.twist = [0.0] * 6


class Bench:
    """A loop without a clock, and the daemon's end that it talks with."""

    def __init__(self, base, options=QUICK, method="tank", impedance=(4.0, 0.02)):
        self.context = zmq.Context()
        address = f"ipc://{base}/peer"
        settings = np.zeros(1, LINK_SETTINGS)
        settings["stale_after_ns"] = 100 * MS
        self.record = np.zeros(1, RECORD)
        self.said = self.record[0]["output"]["link"]["message"]
        self.said["orientation"][3] = self.said["offset_orientation"][3] = 1.0
        self.said["method"], self.said["active"], self.said["impedance"] = METHODS[method], 1, impedance
        self.said["law"], self.said["scale"] = LAWS["position-force"], 1.0 / options.scale
        self.leader = Peer(open_peer(self.context, address), self.record, settings)
        self.leader.own_session = 1
        """The smaller one: the robot decides where the two count as together."""
        self.robot = Stub()
        self.told = []
        socket = open_peer(self.context, "", connect=address)
        self.loop = FollowLoop(self.robot, socket, options, self.told.append)
        self.loop.rehearse()

    @property
    def heard(self):
        """What the daemon has got last."""
        return self.record[0]["input"]["peer"]["message"]

    @property
    def link(self):
        return self.loop.follower.output

    def go(self, seconds=0.001, speaks=True, until=None):
        """Both ends' ticks for so long, or until something holds; returns whether it did."""
        end = time.monotonic() + (20.0 if until else seconds)
        while time.monotonic() < end and self.loop.ended is None:
            self.leader.take(time.monotonic_ns())
            if speaks:
                self.said["seq"] += 1
                self.leader.send()
            self.loop.cycle(time.monotonic_ns())
            if until and until():
                return True
            time.sleep(0.0005)
        return until is None

    def come_up(self):
        assert self.go(
            until=lambda: self.loop.follower and self.link["state"] == LinkState.UP and self.link["gain"] == 1
        )

    def close(self):
        self.loop.close()
        self.leader.close()
        self.context.term()


@pytest.fixture
def bench(short_base):
    made = []

    def make(**how):
        made.append(Bench(short_base, **how))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("scale", 2.0, "scale 1 here and 2 there, whose product is not 1"),
        ("mirror", 1, "mirror '' here and 'x' there"),
        ("share", 0.5, "share 0 here and 0.5 there, which do not add up to 1"),
        ("law", 3, "a robot follows, and so does the hand of a daemon with role 'follower'"),
    ],
)
def test_a_daemon_whose_link_does_not_fit_is_not_followed(bench, field, value, said):
    both = bench()
    both.said[field] = value
    both.go(until=lambda: both.loop.ended)
    assert both.loop.ended == (ExitCode.REFUSED, f"the daemon's link does not fit (here is the robot): {said}")
    assert "command" not in both.robot.calls


@pytest.mark.parametrize(("method", "scale"), [("tank", 1.0), ("waves", 2.0), ("none", 1.0)])
def test_what_the_link_is_comes_from_the_daemon(bench, method, scale):
    both = bench(method=method, options=FollowOptions(scale=scale, ramp_up_ms=10.0))
    both.come_up()
    assert both.loop.report.method == method
    assert METHODS[method] == both.heard["method"]
    if method == "waves":
        # The same line in the robot's metres.
        assert both.heard["impedance"].tolist() == [4.0 / scale**2, 0.02]
    assert both.robot.calls[0] == "stop"
    assert np.allclose(both.robot.position, (0.1, 0.2, 0.3), atol=1e-9)


def test_the_robot_goes_where_the_hand_goes_and_its_wrench_is_told(bench):
    both = bench()
    both.come_up()
    both.said["position"] = (0.01, 0.0, -0.02)
    assert both.go(until=lambda: np.allclose(both.robot.position, (0.11, 0.2, 0.28), atol=1e-6))
    both.go(0.02)
    assert both.heard["wrench"].tolist() == [0.0, 0.0, 2.5, 0.0, 0.0, 0.0]
    assert both.heard["active"] == LINKED
    assert 0.0 < both.loop.report.speed_peak <= 0.25 + 1e-9
    assert both.loop.report.force_peak == 2.5
    assert "UP  set-point 110.0 200.0 280.0 mm  force 2.50 N" in both.loop.line(time.monotonic_ns())
    assert both.loop.report.transitions[-1] == "UP: NONE"


def test_another_method_than_asked_for_is_refused(bench):
    both = bench(options=FollowOptions(method="waves"))
    both.go(until=lambda: False)
    code, text = both.loop.ended
    assert code == ExitCode.REFUSED
    assert text == "the daemon's link has method 'tank', not 'waves'; without --method it is adopted"
    assert "command" not in both.robot.calls


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("position", [math.nan, 0.0, 0.0]),
        ("position", [0.0, 0.0]),
        ("orientation", [0.0, 0.0, 0.0, 0.5]),
        ("twist", [0.0, math.inf, 0.0, 0.0, 0.0, 0.0]),
        ("wrench", [2e4, 0.0, 0.0, 0.0, 0.0, 0.0]),
        ("wrench", None),
        ("wrench", ["x"] * 6),
    ],
)
def test_a_robot_that_says_nonsense_is_stopped_with_one_sentence(bench, field, value):
    both = bench()
    both.come_up()
    commands = both.robot.calls.count("command")
    both.robot.answers = lambda reading: reading._replace(**{field: value})
    both.go(until=lambda: False)
    code, text = both.loop.ended
    assert code == ExitCode.DEVICE and text.startswith(f"the robot says {field} = ") and "\n" not in text
    assert both.robot.calls[-1] == "stop" and both.robot.calls.count("command") == commands
    wait = time.monotonic() + 5.0
    while both.heard["active"] and time.monotonic() < wait:
        both.leader.take(time.monotonic_ns())
    assert both.heard["active"] == 0
    assert np.isfinite(both.heard["position"]).all() and np.isfinite(both.heard["wrench"]).all()


@pytest.mark.parametrize("where", ["read", "command"])
def test_a_robot_whose_code_fails_is_stopped_with_one_sentence(bench, where):
    both = bench()
    both.come_up()

    def fail(*_):
        raise OSError("the cable is out")

    setattr(both.robot, "answers" if where == "read" else "takes", fail)
    both.go(until=lambda: False)
    assert both.loop.ended == (ExitCode.DEVICE, f"the robot failed in `{where}`: OSError: the cable is out")
    assert both.robot.calls[-1] == "stop"


def test_a_robot_that_stops_answering_is_heard_no_more_until_it_does(bench):
    both = bench()
    both.come_up()
    both.robot.answers = lambda reading: None
    both.go(until=lambda: both.robot.calls[-1] == "stop")
    both.go(0.02)
    received = both.leader.received
    calls = len(both.robot.calls)
    both.go(0.15)
    assert both.leader.received == received
    assert "command" not in both.robot.calls[calls:]
    assert "the robot has not answered for 20 ms" in both.told
    both.robot.answers = lambda reading: reading
    both.come_up()
    both.go(0.02)
    assert both.leader.received > received and both.robot.calls[-1] == "command"
    assert both.told.count("the robot answers again") == 1


def test_a_reading_that_is_a_little_late_changes_nothing(bench):
    both = bench()
    both.come_up()
    late = iter(range(1000))
    both.robot.answers = lambda reading: reading if next(late) % 4 == 0 else None
    both.go(0.1)
    assert both.link["state"] == LinkState.UP and both.robot.calls[-1] == "command"


def test_a_daemon_that_falls_silent_stops_the_robot_and_may_come_back(bench):
    both = bench()
    both.come_up()
    both.go(speaks=False, until=lambda: both.robot.calls[-1] == "stop")
    assert (both.link["state"], both.link["reason"]) == (LinkState.LOST, LinkReason.SILENT)
    calls = len(both.robot.calls)
    both.go(0.05, speaks=False)
    assert both.robot.calls[calls:] == []
    # It comes back elsewhere, and the robot begins where it is.
    both.said["position"] = (0.3, 0.0, 0.0)
    before = list(both.robot.position)
    both.come_up()
    both.go(0.05)
    assert np.allclose(both.robot.position, before, atol=1e-9)


def test_a_daemon_that_began_anew_may_have_another_method(bench):
    both = bench()
    both.come_up()
    both.go(speaks=False, until=lambda: both.robot.calls[-1] == "stop")
    both.leader.own_session += 1
    both.said["method"] = METHODS["waves"]
    both.come_up()
    assert both.loop.report.method == "waves"
    assert both.go(until=lambda: both.heard["begun"] == 2), "this end's session goes on, and so do its numbers"
    assert both.leader.rejected == 0


def test_a_robot_that_may_not_be_led_is_not_commanded(bench):
    both = bench()
    both.come_up()
    both.robot.answers = lambda reading: reading._replace(engaged=False)
    both.go(until=lambda: both.robot.calls[-1] == "stop")
    both.go(0.02)
    assert both.heard["active"] == 0
    assert both.link["reason"] == LinkReason.NOT_ENGAGED


def test_a_process_that_was_held_up_begins_anew(bench):
    both = bench()
    both.come_up()
    for k in range(12):
        both.said["seq"] += 1
        both.said["position"] = (0.01 * k, 0.0, 0.0)
        both.leader.send()
    time.sleep(0.15)
    before = list(both.robot.position)
    both.loop.cycle(time.monotonic_ns())
    assert "this process was held up: the link begins anew" in both.told
    assert both.link["state"] != LinkState.UP and both.link["reason"] == LinkReason.NOT_ENGAGED
    both.come_up()
    both.go(0.03)
    assert np.allclose(both.robot.position, before, atol=2e-3)


def test_leaving_brings_the_robot_to_rest_and_tells_the_daemon(bench):
    both = bench()
    both.come_up()
    both.said["twist"][0] = 0.1
    both.loop.leave()
    both.go(until=lambda: False)
    assert both.loop.ended == (ExitCode.OK, "left")
    assert both.robot.calls[-1] == "stop"
    both.leader.take(time.monotonic_ns())
    assert both.heard["active"] == 0


# ------------------------------------------------------------------------------------------------------- robots


def test_a_simulated_robot_holds_when_nothing_is_commanded():
    robot = SimulatedRobot(start="0,0,0.1", noise="0")
    assert isinstance(robot, Robot)
    assert robot.stiffness == pytest.approx(2.0 * (2.0 * math.pi * 6.0) ** 2)
    robot.command((0.05, 0.0, 0.1), (0.0, 0.0, 0.0, 1.0), (0.0,) * 6)
    end = time.monotonic() + 0.3
    while time.monotonic() < end:
        reading = robot.read()
        check_reading(reading)
        time.sleep(0.001)
    # It set out, and its watchdog stopped it on the way.
    assert 1e-4 < reading.position[0] < 0.049
    assert abs(reading.twist[0]) < 0.01


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("arm", {}, "no robot 'arm'; there is simulated, or give MODULE:CLASS"),
        ("no.such.module", {}, "no.such.module cannot be loaded: No module named"),
        ("bridge.follower:Nobody", {}, "bridge.follower has no class 'Nobody'"),
        ("bridge.follower:FollowLoop", {}, r"lacks `read\(\)`, `command\(\)`, `stop\(\)`"),
        ("simulated", {"colour": "red"}, "has no option 'colour'; it has wall, wall_stiffness"),
        ("simulated", {"mass": "heavy"}, "mass = 'heavy' must be a finite number"),
        ("simulated", {"mass": "-1"}, "mass = -1.0 must be a finite number above 0"),
        ("simulated", {"start": "1,2"}, "start = '1,2' must be three numbers"),
    ],
)
def test_robots_that_cannot_be_are_one_sentence(name, options, said):
    with pytest.raises(RobotError, match=said):
        make_robot(name, options)


def test_a_robot_may_be_in_a_file_of_its_own(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "class Mine:\n    def read(self): return None\n    def command(self, *a): pass\n    def stop(self): pass\n"
    )
    assert find_robot(str(path)).__name__ == find_robot(f"{path}:Mine").__name__ == "Mine"
    path.write_text("1 / 0")
    with pytest.raises(RobotError, match=r"mine.py cannot be loaded: division by zero"):
        find_robot(str(path))


# --------------------------------------------------------------------------------------------------- command line


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 8, "no daemon named 'default' is running"),
        (["elsewhere"], 8, "no daemon named 'elsewhere' is running"),
        (["udp://127.0.0.1:5"], 4, "is no address of a peer socket"),
        (["tcp://127.0.0.1:" + "9" * 500], 4, "is no address of a peer socket"),
        (["tcp://192.168.1.7:5554"], 9, "is on another machine: HAPTICD_SERVER_KEY"),
        (["ipc:///tmp/none", "--robot", "arm"], 11, "no robot 'arm'"),
        (["ipc:///tmp/none", "--set", "wall"], 2, "is not KEY=VALUE"),
        (["ipc:///tmp/none", "--box", "1,2"], 2, "--box '1,2' is not six numbers"),
        (["ipc:///tmp/none", "--box", "1,0,0,0,1,1"], 4, "must be below upper"),
        (["ipc:///tmp/none", "--speed-max", "0"], 4, "speed_max = 0.0 must be above 0"),
        (["ipc:///tmp/none", "--scale", "0"], 4, "scale = 0.0 must be from 0.001"),
        (["ipc:///tmp/none", "--robot-timeout-ms", "0"], 4, "robot_timeout_ms = 0 must be from 1 to 10000"),
    ],
)
def test_what_is_wrong_is_one_sentence_and_a_code(short_base, arguments, code, said):
    done = called(short_base, "follow", *arguments)
    assert done.returncode == code, done.stderr
    assert said in one_sentence(done)


def test_a_daemon_without_a_link_is_named(monkeypatch):
    monkeypatch.setattr(module, "find_endpoints", lambda name: (f"`{name}`", {"control": "ipc:///x"}))
    with pytest.raises(HapticdError, match="the daemon 'left' has no peer socket: its configuration needs"):
        find_peer("left")


def test_the_options_of_a_robot_can_be_listed(short_base):
    done = called(short_base, "follow", "--list")
    assert done.returncode == 0 and "--set wall_stiffness=2000\n" in done.stdout
