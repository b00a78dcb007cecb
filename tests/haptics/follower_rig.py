"""A robot's end of a link in simulated time, and a hand that leads it through a channel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from haptics.follower import Follower, make_follower_link, make_limits
from haptics.robot_models import RobotModel
from haptics.tables import PEER
from tools.two_ends import Channel, End

DT = 1e-3


class RobotEnd:
    """A simulated robot after its follower, tick by tick."""

    def __init__(self, robot: RobotModel, session: int = 99, limits: dict | None = None, **link) -> None:
        self.robot, self.session = robot, session
        turning = {
            "rotational_stiffness": robot.rotational_stiffness,
            "rotational_damping": robot.rotational_damping,
        }
        gains = {"stiffness": robot.stiffness, "damping": robot.damping, **turning}
        self.follower = Follower(make_follower_link(**(gains | link)), make_limits(**(limits or {})))
        self.heard_at = 0
        self.message = np.zeros(1, PEER)

    def go(self, now: int, heard: np.ndarray | None) -> np.ndarray | None:
        """One tick at number ``now``; returns what is said, (1,) PEER."""
        self.robot.step(DT)
        measured = self.follower.robot
        pose = self.robot.read()
        measured["position"], measured["orientation"], measured["twist"], measured["wrench"] = pose
        measured["engaged"] = measured["valid"] = 1
        return self.hear(now, heard)

    def hear(self, now: int, heard: np.ndarray | None) -> np.ndarray | None:
        """The rest of a tick, with ``follower.robot`` filled in."""
        peer = self.follower.peer
        peer["fresh"] = heard is not None
        if heard is not None:
            peer["message"] = heard[0]
            peer["decides"] = self.session > heard["session"][0]
            self.heard_at = now
        peer["age_ns"] = round((now - self.heard_at) * DT * 1e9)
        setpoint = self.follower.go()
        if setpoint["following"]:
            self.robot.command(setpoint["position"], setpoint["orientation"], setpoint["twist"])
        else:
            self.robot.hold()
        if not self.follower.output["send"]:
            return None
        self.message[0] = self.follower.output["message"]
        self.message["session"] = self.session
        self.message["t_sent"] = round(now * DT * 1e9)
        return self.message


@dataclass
class Ride:
    """What happened, per tick."""

    hand: np.ndarray
    """(n, 3) of the leader's handle, m."""
    robot: np.ndarray
    """(n, 3) m"""
    setpoint: np.ndarray
    """(n, 3) m"""
    felt: np.ndarray
    """(n, 3) the link's force at the leader's motors, N."""
    wall: np.ndarray
    """(n,) N"""
    energy: np.ndarray
    """(n, 2) J handed out by the link: to the hand, and to the robot's spring."""
    state: np.ndarray
    """(n, 2) LinkState of both ends."""
    limited: np.ndarray
    """(n,)"""


class Team:
    """A leader's end and a robot's, with the ways there and back between them."""

    def __init__(self, leader: End, robot: RobotEnd, ways: tuple[Channel, Channel] | None = None) -> None:
        self.leader, self.robot = leader, robot
        self.ways = ways if ways is not None else (Channel(), Channel())
        self.now = 0

    def run(self, ticks: int) -> Ride:
        shapes = ((3,), (3,), (3,), (3,), (), (2,), (2,), ())
        ride = Ride(*(np.zeros((ticks, *shape)) for shape in shapes))
        for k in range(ticks):
            self.now += 1
            for i, end in enumerate((self.leader, self.robot)):
                said = end.go(self.now, self.ways[1 - i].take(self.now - 1))
                if said is not None:
                    self.ways[i].put(self.now, said)
            follower = self.robot.follower
            ride.hand[k] = self.leader.hand.position
            ride.robot[k] = self.robot.robot.position
            ride.setpoint[k] = follower.setpoint["position"]
            ride.felt[k] = self.leader.touch[0]["link_sent"][:3]
            ride.wall[k] = self.robot.robot.push()
            ride.energy[k] = self.leader.output["link"]["energy"], follower.output["energy"]
            ride.state[k] = self.leader.output["link"]["state"], follower.output["state"]
            ride.limited[k] = follower.setpoint["limited"]
        return ride
