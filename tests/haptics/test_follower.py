"""A robot that follows a hand: set-points that never jump, a wall that is felt, and no energy from the line."""

from __future__ import annotations

import numpy as np
import pytest
from follower_rig import DT, RobotEnd, Team
from scipy.spatial.transform import Rotation

from haptics.follower import SETTLE, SPEED_MAX, Follower, Limited, make_follower_link, make_limits
from haptics.hands import HELD, LIGHT, WayPoints
from haptics.link import hear, render
from haptics.link_codes import KEPT_BACK, POSITION_FORCE_LEADER, LinkReason, LinkState
from haptics.robot_models import RobotModel
from haptics.tables import LINK, LINK_OUTPUT, PEER, PEER_INPUT, PORT
from haptics.waves import FILTER_LEAST, OVERDRAWN
from tools.two_ends import Channel, End, hand_on

UP, LOST, WAITING = LinkState.UP, LinkState.LOST, LinkState.WAITING
HERE = np.zeros(3)
LEADERS_SPRING = 400.0
IMPEDANCE = 10.0
TANK = 0.1
METHODS = ["none", "tank", "waves"]


def reach(to, begin=1.2, end=2.2, turn=None) -> WayPoints:
    turns = None if turn is None else [(0.0, 0.0, 0.0, 1.0), tuple(Rotation.from_rotvec(turn).as_quat())]
    return WayPoints([begin, end], [HERE, np.asarray(to, float)], turns)


def team(method, path, robot=None, ways=None, grip=HELD, limits=None, leader=None, **link) -> Team:
    common = {"method": method, "distance_max": 0.5}
    led = {"law": "position-force", "role": "leader", "stiffness": LEADERS_SPRING, "damping": 2.0}
    end = End(hand_on(path, grip), 11, **(led | common | (leader or {})))
    return Team(end, RobotEnd(robot or RobotModel(), limits=limits, **(common | link)), ways)


# ----------------------------------------------------------------------------------------------------- statics


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("delay", [0, 20])
def test_a_leader_feels_the_wall_that_its_robot_is_pressed_against(method, delay):
    """At rest arm, line, robot and wall are springs in series: f = d / (1 / k_h + 1 / K_line + 1 / K + 1 / k_e)."""
    wall_stiffness, deep = 300.0, 0.02
    robot = RobotModel(wall=-0.01, wall_stiffness=wall_stiffness, coulomb=0.0)
    both = team(method, reach((0.0, 0.0, -0.01 - deep)), robot, (Channel(delay), Channel(delay)))
    ride = both.run(5000)
    line = 0.0
    if method == "waves":
        filters = (IMPEDANCE / LEADERS_SPRING, max(IMPEDANCE / robot.stiffness, FILTER_LEAST))
        line = (0.5 * sum(filters) + (delay + 1) * DT) / IMPEDANCE
    softness = 1.0 / HELD.stiffness + line + 1.0 / robot.stiffness + 1.0 / wall_stiffness
    # Dry friction of the device, 0.1 N, may hold the hand anywhere within what it bears.
    assert ride.wall[-1] == pytest.approx(deep / softness, abs=0.1 / HELD.stiffness / softness + 0.01)
    assert ride.felt[-1, 2] == pytest.approx(ride.wall[-1], abs=0.005)
    assert np.ptp(ride.hand[-300:], axis=0).max() < 1e-5


@pytest.mark.parametrize("method", METHODS)
def test_free_motion_is_followed(method):
    both = team(method, reach((0.04, -0.02, 0.03)), RobotModel(coulomb=0.0))
    ride = both.run(4000)
    # Of waves the force is what has to vanish; what lies between the places then is only what friction holds.
    assert np.allclose(ride.robot[-1], ride.hand[-1], atol=2e-4 if method != "waves" else 1e-3)
    assert np.all(ride.felt[-1] == pytest.approx(0.0, abs=0.1))


def test_a_leader_feels_a_share_of_the_force_in_its_own_measures():
    """Robot's metres are half of the hand's, its x is reflected, and half of the force is felt."""
    robot = RobotModel(wall=-0.005, wall_stiffness=500.0, coulomb=0.0)
    mine = {"scale": 2.0, "mirror": "x", "force_gain": 0.5}
    both = team("none", reach((0.02, 0.01, -0.03)), robot, leader=mine, scale=0.5, mirror="x", distance_max=1.0)
    ride = both.run(5000)
    assert ride.wall[-1] > 2.0
    assert ride.felt[-1, 2] == pytest.approx(0.5 * ride.wall[-1] / 2.0, rel=1e-3)
    # Both began at their origins; what the encoders say is what is told.
    assert np.allclose(ride.setpoint[-1], 0.5 * np.array([-1, 1, 1]) * both.leader.sample["position"], atol=1e-6)


@pytest.mark.parametrize("method", ["none", "tank"])
def test_a_robot_turns_as_the_hand_does(method):
    robot = RobotModel(coulomb=0.0)
    both = team(method, reach(HERE, turn=(0.0, 0.3, 0.1)), robot)
    both.run(4000)
    hand = Rotation.from_quat(both.leader.sample["orientation"])
    assert (robot.orientation * hand.inv()).magnitude() < 2e-3
    assert hand.magnitude() > 0.25


def test_a_robot_that_stood_turned_turns_about_the_axis_that_the_hand_turns_about():
    robot = RobotModel(coulomb=0.0)
    robot.orientation = stood = Rotation.from_rotvec((np.pi / 2, 0.0, 0.0))
    robot.hold()
    both = team("none", reach(HERE, turn=(0.0, 0.0, 0.3)), robot)
    both.run(4000)
    hand = Rotation.from_quat(both.leader.sample["orientation"])
    assert hand.magnitude() > 0.25
    assert (robot.orientation * stood.inv() * hand.inv()).magnitude() < 2e-3


def test_without_a_spring_that_turns_the_orientation_stays():
    robot = RobotModel()
    both = team("none", reach((0.02, 0.0, 0.0), turn=(0.0, 0.3, 0.0)), robot, rotational_stiffness=0.0)
    ride = both.run(3000)
    assert robot.orientation.magnitude() == 0.0
    assert ride.robot[-1, 0] == pytest.approx(0.02, abs=1e-3)


# ------------------------------------------------------------------------------------------------ set-points


class Told:
    """A follower that is told where the leader is, and a robot that is wherever it is asked to be."""

    def __init__(self, method="none", limits=None, **link):
        gains = {"stiffness": 2000.0, "damping": 20.0, "rotational_stiffness": 10.0, "distance_max": 10.0}
        self.follower = Follower(
            make_follower_link(**(gains | {"method": method} | link)), make_limits(**(limits or {}))
        )
        self.said = np.zeros(1, PEER)[0]
        self.said["session"], self.said["active"], self.said["law"] = 5, 1, POSITION_FORCE_LEADER
        self.said["scale"] = 1.0
        self.said["orientation"][3] = 1.0
        self.said["method"], self.said["impedance"] = self.follower.settings["method"], (IMPEDANCE, 0.01)
        self.follower.robot["valid"] = self.follower.robot["engaged"] = 1
        self.follows = True

    def go(self, position=None, twist=(0.0,) * 6, age_ms=0.0):
        peer = self.follower.peer
        peer["fresh"] = position is not None
        if position is not None:
            self.said["position"], self.said["twist"] = position, twist
            self.said["t_sent"] += round(DT * 1e9)
            peer["message"], peer["decides"] = self.said, 1
        peer["age_ns"] = round(1e6 * age_ms)
        setpoint = self.follower.go()
        if self.follows:
            self.follower.robot["position"] = setpoint["position"]
        return setpoint


def test_a_set_point_begins_at_the_robot_and_never_jumps():
    told = Told(ramp_up_ms=50.0)
    told.follower.robot["position"] = (0.5, -0.2, 0.3)
    random = np.random.default_rng(4)
    last = told.follower.robot["position"].copy()
    place = np.zeros(3)
    most = 0.0
    for k in range(2000):
        if k % 100 == 0:
            place = random.normal(size=3) * 0.3
        setpoint = told.go(place if random.random() < 0.7 else None, random.normal(size=6))
        assert setpoint["following"] == 1
        step = np.linalg.norm(setpoint["position"] - last)
        assert step <= SPEED_MAX * DT * min((k + 1) / 50.0, 1.0) * (1.0 + 1e-9)
        most = max(most, step)
        last = setpoint["position"].copy()
    assert most > 0.999 * SPEED_MAX * DT
    assert told.follower.setpoint["limited"] == Limited.SPEED


def test_a_set_point_settles_without_lag_and_without_steps():
    """Of an even motion nothing lags; a step is followed with the time constant SETTLE."""
    told = Told(limits={"speed_max": 1.0}, ramp_up_ms=1.0)
    for k in range(200):
        setpoint = told.go((0.1 * k * DT, 0.0, 0.0), (0.1, 0.0, 0.0, 0.0, 0.0, 0.0))
    assert setpoint["position"][0] == pytest.approx(0.1 * 200 * DT, abs=0.1 * DT + 1e-6)
    assert setpoint["twist"][0] == pytest.approx(0.1, rel=1e-6)
    told = Told(limits={"speed_max": 10.0}, ramp_up_ms=1.0)
    told.go(HERE)
    for _ in range(round(SETTLE / DT)):
        setpoint = told.go((0.001, 0.0, 0.0))
    assert setpoint["position"][0] == pytest.approx(0.001 * (1.0 - (1.0 - DT / SETTLE) ** 5), rel=1e-9)


def test_a_box_is_not_left_and_may_be_come_back_into():
    told = Told(limits={"lower": (-0.01, -0.01, -0.01), "upper": (0.01, 0.01, 0.01), "speed_max": 1.0}, ramp_up_ms=1.0)
    for _ in range(100):
        setpoint = told.go((0.05, 0.0, -0.05))
    assert setpoint["limited"] & Limited.BOX == 0, "the link came up there: that is its origin"
    for _ in range(300):
        setpoint = told.go((0.1, 0.005, -0.1))
    assert setpoint["limited"] == Limited.BOX
    assert np.allclose(setpoint["position"], (0.01, 0.005, -0.01), atol=1e-9)
    outside = Told(limits={"upper": (0.01, 0.01, 0.01), "lower": (-0.01, -0.01, -0.01)}, ramp_up_ms=1.0)
    outside.follower.robot["position"] = (0.05, 0.0, 0.0)
    for k in range(400):
        setpoint = outside.go((0.0, 0.0, 0.0) if k < 5 else (0.02, 0.0, 0.0) if k < 100 else (-0.045, 0.0, 0.0))
        assert setpoint["position"][0] <= 0.05 + 1e-12
    assert setpoint["position"][0] == pytest.approx(0.005, abs=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_silence_brings_the_set_point_to_rest_by_the_ramp_and_then_the_robot_is_its_own(method):
    ways = (Channel(2), Channel(2))
    quick = {"stale_after_ms": 50.0, "ramp_down_ms": 100.0}
    both = team(method, WayPoints([1.2, 3.0], [HERE, (0.15, 0.0, 0.0)]), RobotModel(), ways, **quick)
    both.run(2000)
    assert both.robot.follower.setpoint["following"] == 1
    ways[0].cut = True
    steps, still = [], 0
    follower = both.robot.follower
    for k in range(400):
        before = follower.setpoint["position"].copy()
        both.run(1)
        if follower.setpoint["following"]:
            steps.append(np.linalg.norm(follower.setpoint["position"] - before))
        still = still or (k if not follower.setpoint["following"] else 0)
    assert max(steps) <= SPEED_MAX * DT * (1.0 + 1e-9)
    assert steps[-1] <= SPEED_MAX * DT * 0.02
    assert 100 <= still <= 50 + 100 + 5
    assert (follower.output["state"], follower.output["reason"]) == (LOST, LinkReason.SILENT)
    assert follower.output["message"]["active"] == KEPT_BACK
    ways[0].cut = False
    ride = both.run(1500)
    assert ride.state[-1].tolist() == [UP, UP]
    assert np.linalg.norm(np.diff(ride.setpoint, axis=0), axis=1).max() <= SPEED_MAX * DT * 1.5


@pytest.mark.parametrize("field", ["position", "orientation", "twist", "wrench"])
def test_a_robot_that_says_nonsense_is_not_commanded_and_its_leader_let_go(field):
    both = team("tank", reach((0.03, 0.0, 0.0)))
    both.run(1700)
    follower = both.robot.follower
    assert follower.setpoint["following"] == 1
    follower.robot[field][1] = np.nan
    said = both.robot.hear(both.now + 1, None)
    assert follower.setpoint["following"] == 0
    assert said is not None and said["active"][0] == 0
    for name in ("position", "orientation", "twist", "wrench", "energy"):
        assert np.isfinite(said[name]).all()
    # It is not followed again before a new beginning, even while the old one still ramps down.
    both.run(5)
    assert follower.output["gain"] > 0.0 and follower.setpoint["following"] == 0
    ride = both.run(1500)
    assert ride.state[-1].tolist() == [UP, UP]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"speed_max": 0.0}, "speed_max = 0.0 must be above 0"),
        ({"turn_max": float("nan")}, "turn_max = nan must be above 0"),
        ({"lower": (0.0, 0.0)}, "lower = .* must be three finite numbers"),
        ({"lower": (0.0, 0.0, 1.0), "upper": (1.0, 1.0, 1.0)}, "must be below upper"),
    ],
)
def test_limits_that_are_none_are_refused(wrong, said):
    with pytest.raises(ValueError, match=said):
        make_limits(**wrong)


# ----------------------------------------------------------------------------------------------------- passive


class Tyrant:
    """A leader's end whose hand goes where it likes, whatever it feels."""

    def __init__(self, settings):
        self.settings = settings
        self.link, self.peer, self.port, self.output = (
            np.zeros(1, t)[0] for t in (LINK, PEER_INPUT, PORT, LINK_OUTPUT)
        )
        self.port["orientation"][3] = self.link["other_orientation"][3] = 1.0
        self.port["fresh"] = self.port["engaged"] = 1
        self.heard_at = 0
        self.given = self.largest = 0.0

    def go(self, now, heard, moved):
        """One tick in which the hand went ``moved`` (3,); returns what is said."""
        self.peer["fresh"] = heard is not None
        if heard is not None:
            self.peer["message"] = heard[0]
            self.peer["decides"] = heard["session"][0] < 7
            self.heard_at = now
        self.peer["age_ns"] = (now - self.heard_at) * 1_000_000
        self.port["moved"][:3] = moved
        self.port["position"] += moved
        self.port["twist"][:3] = moved / DT
        self.port["applied"] = self.output["wrench"]
        work = float(self.port["applied"][:3] @ moved)
        self.given += work
        self.largest = max(self.largest, abs(work))
        hear(self.settings, self.link, self.peer, self.port)
        render(self.settings, self.link, self.port, self.output)
        said = np.zeros(1, PEER)
        said[0] = self.output["message"]
        said["session"], said["t_sent"] = 7, round(now * DT * 1e9)
        return said


def torment(method, delay, jitter, loss, seed, ticks=2500):
    """A tyrant leads a random robot in a random place; returns J given to hand and port, J of the motors, slack."""
    random = np.random.default_rng(seed)
    robot = RobotModel(
        mass=float(random.uniform(0.3, 4.0)),
        viscous=float(random.uniform(0.0, 5.0)),
        coulomb=float(random.choice([0.0, 1.0])),
        bandwidth=float(random.uniform(2.0, 12.0)),
        delay=0.0,
        wall=float(random.uniform(-0.02, 0.005)),
        wall_stiffness=float(random.uniform(100.0, 4000.0)),
        wall_damping=float(random.uniform(0.0, 10.0)),
    )
    box = {"lower": (-0.05,) * 3, "upper": (0.05,) * 3} if seed % 2 else {}
    common = {"method": method, "tank": TANK, "distance_max": 100.0, "ramp_up_ms": 100.0}
    end = RobotEnd(robot, limits={"speed_max": float(random.choice([0.05, 0.25, 5.0])), **box}, **common)
    leads = make_follower_link(LEADERS_SPRING, 2.0, **common)
    leads["law"], leads["force_gain"], leads["tank_damping"] = 2, 1.0, 5.0
    hand = Tyrant(leads[0])
    ways = (Channel(delay, jitter, loss, seed), Channel(delay, jitter, loss, seed + 50))
    speed = np.zeros(3)
    given = np.zeros((ticks, 3))
    for now in range(1, ticks + 1):
        if now % int(random.integers(1, 80)) == 0:
            speed = random.normal(size=3) * random.choice([0.0, 0.05, 0.3])
            # It comes back, so that the wall is met again and again.
            speed -= 2.0 * hand.port["position"]
        ways[0].put(now, hand.go(now, ways[1].take(now - 1), speed * DT))
        said = end.go(now, ways[0].take(now - 1))
        if said is not None:
            ways[1].put(now, said)
        given[now - 1] = hand.given, end.follower.output["energy"], robot.worked
    assert end.follower.output["state"] == UP
    return given, hand, end


WAYS = [(0, 0, 0.0), (30, 0, 0.0), (40, 15, 0.2)]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("method", ["waves", "tank"])
@pytest.mark.parametrize(("delay", "jitter", "loss"), WAYS)
def test_hand_and_robot_get_no_more_than_both_ends_began_with(method, delay, jitter, loss, seed):
    given, hand, end = torment(method, delay, jitter, loss, seed)
    # The leader's ledger notices at the next sample what its hand has overdrawn; the robot's is never overdrawn.
    most = 2 * TANK + OVERDRAWN * TANK + 2 * hand.largest
    assert (given[:, 0] + given[:, 1]).max() <= most
    assert (given[:, 0] + given[:, 2]).max() <= most, "the motors' own work on the robot"
    assert end.follower.link["credit"] >= -1e-12
    assert np.ptp(given[:, 1]) > 1e-3, "something was done"


@pytest.mark.parametrize("method", ["waves", "tank"])
def test_the_force_that_is_booked_is_the_springs_and_solves_the_lines_equation(method):
    """F = K (x_d - x) + B (v_d - v) where the set-point has gone to, and b v_d + sqrt(2 b) u_in = -F, per axis."""
    random = np.random.default_rng(6)
    told = Told(method, limits={"speed_max": 1e5, "turn_max": 1e5}, ramp_up_ms=1.0, impedance=IMPEDANCE, tank=5.0)
    told.follows = False
    follower, settings = told.follower, told.follower.settings
    for _ in range(200):
        told.said["wave"] = told.said["wave"] + random.normal(size=6) * 1e-4
        told.said["wave_energy"] = told.said["wave_energy"] + 0.1
        follower.robot["position"] = random.normal(size=3) * 1e-3
        follower.robot["twist"] = random.normal(size=6) * 0.1
        setpoint = told.go(random.normal(size=3) * 1e-3)
        assert setpoint["following"] == 1
        way = setpoint["position"] - follower.robot["position"]
        rate = setpoint["twist"] - follower.robot["twist"]
        assert setpoint["wrench"][:3] == pytest.approx(settings["stiffness"] * way + settings["damping"] * rate[:3])
        turn = Rotation.from_quat(setpoint["orientation"]).as_rotvec()
        assert setpoint["wrench"][3:] == pytest.approx(settings["rotational_stiffness"] * turn, rel=1e-3, abs=1e-6)
        assert np.allclose(setpoint["moved"], setpoint["twist"] * DT, rtol=1e-12)
        if method == "waves":
            b = np.repeat(settings["impedance"], 3)
            pushed = b * setpoint["twist"] + np.sqrt(2.0 * b) * follower.link["wave_in"]
            assert pushed == pytest.approx(-setpoint["wrench"], rel=1e-9, abs=1e-9)
    assert np.abs(follower.link["wave_in"]).max() > 0.01 or method == "tank"


def test_without_a_method_a_tyrant_gets_energy_out_of_delay():
    given, hand, _ = torment("none", 40, 15, 0.2, 1)
    assert (given[:, 0] + given[:, 1]).max() > 2 * TANK + OVERDRAWN * TANK + 2 * hand.largest


HARD = {"wall": -0.01, "wall_stiffness": 600.0, "wall_damping": 0.0, "coulomb": 0.3, "noise": 0.05, "quantum": 0.02}


@pytest.mark.parametrize("method", ["waves", "tank"])
@pytest.mark.parametrize(("delay", "jitter", "loss"), [(50, 0, 0.0), (100, 20, 0.2)])
def test_passive_methods_bring_hand_and_robot_to_rest_through_delay(method, delay, jitter, loss):
    """A robot with delay, noise and steps of its own, at a wall, led by a hand that yields."""
    ways = (Channel(delay, jitter, loss, 1), Channel(delay, jitter, loss, 2))
    both = team(method, reach((0.01, 0.0, -0.02)), RobotModel(**HARD), ways)
    ride = both.run(9000)
    assert ride.state[-1].tolist() == [UP, UP]
    assert ride.energy.sum(axis=1).max() <= 2 * TANK + 1e-3
    assert np.ptp(ride.hand[-300:], axis=0).max() < 3e-3
    assert ride.wall[-300:].mean() > 0.3


def test_without_a_method_delay_shakes_hand_and_robot():
    ways = (Channel(50), Channel(50))
    ride = team("none", reach((0.01, 0.0, -0.02)), RobotModel(**HARD), ways, grip=LIGHT).run(6000)
    assert np.ptp(ride.hand[-300:], axis=0).max() > 0.01
    assert ride.energy.sum(axis=1)[-1] > 1.0


def test_a_ride_is_the_same_to_the_bit():
    rides = [
        team("tank", reach((0.0, 0.0, -0.02)), RobotModel(**HARD), (Channel(9, 3, 0.1, 1), Channel(9, 3, 0.1, 2))).run(
            1800
        )
        for _ in range(2)
    ]
    assert rides[0].setpoint.tobytes() == rides[1].setpoint.tobytes()
    assert rides[0].felt.tobytes() == rides[1].felt.tobytes()
