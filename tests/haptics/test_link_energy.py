"""What a link gives to hands, by the force that was rendered and the way of the handle, whatever its ledger says."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from haptics.cards import load_card
from haptics.codes import ACTIVE, GOOD
from haptics.hands import HandPose
from haptics.limits import limit
from haptics.link_codes import LinkState
from haptics.settings import make_settings
from haptics.tables import OUTPUT
from haptics.touch import make_touch
from tools.two_ends import Channel, End, Pair

DT = 1e-3
TANK = 0.1
"""J that each end begins with."""


class Driven:
    """A hand that swings along x, amplitude (m) and frequency (Hz), and feels nothing; its handle may turn as well."""

    def __init__(self, amplitude: float, frequency: float, phase: float = 0.0, turning: float = 0.0) -> None:
        self.amplitude, self.rate, self.phase, self.speed = amplitude, 2.0 * np.pi * frequency, phase, turning
        self.ticks = 0
        self.position, self.turned = self.place()

    def place(self) -> tuple[np.ndarray, np.ndarray]:
        """Position (m), and rotation vector (rad) of a handle that swings with ``turning`` rad/s once a second."""
        time = self.ticks * DT
        x = self.amplitude * (np.sin(self.rate * time + self.phase) - np.sin(self.phase))
        angle = self.speed / (2.0 * np.pi) * np.sin(2.0 * np.pi * time)
        return np.array([x, 0.0, 0.0]), np.array([angle, 0.0, 0.0])

    def step(self, dt: float, wrench: np.ndarray) -> HandPose:
        self.ticks += 1
        self.position, self.turned = self.place()
        return HandPose(self.position, Rotation.from_rotvec(self.turned).as_quat())


def pair(hands, ways=None, card="simulated", **link) -> Pair:
    """Ends whose passivity controller is off: a method's promise does not rest on it."""
    link = {"stiffness": 1000.0, "damping": 0.0, "distance_max": 1.0, "tank": TANK, **link}
    link["coupling"] = {"passivity": False}
    return Pair(*(End(hand, 11 + k, card=card, **link) for k, hand in enumerate(hands)), ways)


def shaken(seconds, amplitude, frequency, every=1, burst=0, **more) -> tuple[float, float]:
    """Two hands in antiphase, samples ``every`` few ticks by turns, ``burst`` ticks lost and as many that come.

    Returns J given to both at most, and by how much the ledgers were ever off.
    """
    ways = (Channel(), Channel())
    both = pair([Driven(amplitude, frequency), Driven(amplitude, frequency, np.pi)], ways, **more)
    for i, end in enumerate(both.ends):
        end.every, end.late = every, i * (every // 2)
    given, booked = [], []
    for tick in range(0, round(seconds / DT), 150):
        for way in ways:
            way.cut = burst > 0 and tick // burst % 2 == 0
        course = both.run(150)
        given.append(course.energy.sum(axis=1))
        booked.append(course.booked.sum(axis=1))
    total, told = np.concatenate(given), np.concatenate(booked)
    return float(total.max()), float(np.abs(total - told).max())


# ------------------------------------------------------------------------------------------- whose force it is


def rendered(random: np.random.Generator, scene: float, link: float, ticks: int = 400):
    """Per tick: wrench, scene's part and link's part (ticks, 6), of random wrenches that jump about (N, N·m)."""
    settings = make_settings(load_card("virtuose6d"))
    touch, output = make_touch(settings), np.zeros(1, OUTPUT)
    touch["state"], touch["sample_kind"] = ACTIVE, GOOD
    out = np.zeros((3, ticks, 6))
    pulled = pushed = np.zeros(6)
    for k in range(ticks):
        if k % 7 == 0:
            pulled, pushed = random.normal(size=6), random.normal(size=6)
        touch["gain"] = min(1.0, 0.01 * k)
        output["link"]["wrench"] = link * pulled
        output["coupling_wrench"] = link * pulled + scene * pushed
        limit(settings[0], touch[0], output[0])
        out[:, k] = output["wrench"][0], touch["scene_sent"][0], touch["link_sent"][0]
    return out


def test_in_free_space_the_link_is_all_that_is_rendered():
    """However the slew limit lags behind a force that falls or turns round, and whatever is saturated."""
    wrench, scene, link = rendered(np.random.default_rng(1), 0.0, 20.0)
    assert np.abs(wrench[:, :3]).max() > 1.0 and np.abs(wrench[:, 3:]).max() > 0.1
    assert np.array_equal(link, wrench) and not scene.any()


def test_the_scene_counts_as_if_there_were_no_link():
    wrench, scene, link = rendered(np.random.default_rng(2), 10.0, 20.0)
    alone, _, nothing = rendered(np.random.default_rng(2), 10.0, 0.0)
    assert np.allclose(scene, alone, atol=1e-12) and not nothing.any()
    assert np.allclose(scene + link, wrench, atol=1e-12) and np.abs(link).max() > 1.0


# ------------------------------------------------------------------------------------------------ what is given


@pytest.mark.parametrize("method", ["tank", "waves"])
def test_bursts_of_losses_give_no_more_than_the_tanks(method):
    """The other hand jumps by centimetres when messages come again, and the slew limit holds the old force."""
    most, apart = shaken(10.0, 0.03, 3.3, burst=150, method=method)
    assert most <= 2 * TANK + 1e-9
    assert apart < 1e-9


@pytest.mark.parametrize("every", [2, 4])
@pytest.mark.parametrize("method", ["tank", "waves"])
def test_samples_every_few_ticks_give_no_more_than_the_tanks(method, every):
    """Forces change from tick to tick while the way is told at 500 or 250 Hz: what is booked is their mean.

    What an end overdraws between two samples is noticed at the second one.
    """
    amplitude, frequency = 0.01, 6.0
    most, _ = shaken(6.0, amplitude, frequency, every=every, method=method)
    fastest = amplitude * 2.0 * np.pi * frequency
    assert most <= 2 * (TANK + load_card("simulated").force_max * fastest * every * DT)


def test_the_observer_counts_what_was_held_between_samples():
    """The port's energy with samples every 4 ticks is the work on the handle."""
    both = pair([Driven(0.01, 6.0), Driven(0.01, 6.0, np.pi)], method="none", stiffness=400.0)
    for end in both.ends:
        end.every = 4
    both.run(3000)
    for end in both.ends:
        assert end.given != 0.0
        assert end.output["energy"] == pytest.approx(end.given, abs=0.02 * max(abs(end.given), 1.0))


@pytest.mark.parametrize("method", ["tank", "waves"])
def test_the_end_of_a_ramp_is_booked(method):
    """What the last tick of the link's ramp, and the slew limit after it, still hold is taken from the ledger."""
    ways = (Channel(), Channel())
    both = pair([Driven(0.01, 2.0), Driven(0.01, 2.0, 1.0)], ways, method=method, stale_after_ms=20.0, ramp_down_ms=2.0)
    both.run(1620)
    for way in ways:
        way.cut = True
    before = []
    while all(end.touch[0]["link"]["gain"] > 0.0 for end in both.ends):
        before = [(float(end.output["link"]["credit"]), float(end.output["link"]["energy"])) for end in both.ends]
        both.run(1)
    course = both.run(60)
    assert np.all(course.state == LinkState.LOST) and not course.wrench[-1].any()
    for end, (credit, energy) in zip(both.ends, before, strict=True):
        worked = float(end.output["link"]["energy"]) - energy
        assert worked != 0.0
        assert float(end.output["link"]["credit"]) - credit == pytest.approx(-worked, rel=1e-9)


def test_a_handle_without_a_torque_motor_takes_nothing_from_the_wave_of_the_way():
    """Six degrees are sensed and three driven: how the handle turns is no work, and changes no force."""
    courses = []
    for turning in (0.0, 5.0):
        both = pair([Driven(0.03, 0.7, 0.0, turning), Driven(0.0, 1.0)], card="touch", method="waves")
        courses.append(both.run(3000))
        assert both.ends[0].touch[0]["moved"][3:].any() == (turning > 0.0)
    assert np.abs(courses[0].force).max() > 0.5
    assert np.allclose(courses[0].force, courses[1].force, atol=1e-9)
