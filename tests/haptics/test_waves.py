"""The line of waves against hands that do anything: it never gives more than it began with."""

from __future__ import annotations

import numpy as np
import pytest

from haptics.tables import LINK, LINK_SETTINGS, PORT
from haptics.waves import OVERDRAWN, begin_waves, hear_wave, pass_waves, wave_wrench
from rtcore.kernels import kernel
from tools.two_ends import Channel

DT = 1e-3
IMPEDANCE = 10.0
STIFFNESS = 500.0


@kernel
def begin(settings, link):
    link.credit = link.wave_in_credit = 0.5 * settings.tank
    begin_waves(settings, link, 0.0, 0)


@kernel
def hear(settings, link, energy, sent_at):
    hear_wave(settings, link, energy, sent_at)


class Line:
    """Two ends of waves alone, moved along x as told."""

    def __init__(self, ways, tank=0.1):
        self.ways = ways
        self.settings = np.zeros(1, LINK_SETTINGS)
        row = self.settings[0]
        row["dt"], row["impedance"], row["stiffness"], row["tank"] = DT, (IMPEDANCE, 0.01), STIFFNESS, tank
        self.links = np.zeros(2, LINK)
        self.ports = np.zeros(2, PORT)
        self.ports["fresh"] = 1.0
        self.wrenches = np.zeros((2, 6))
        self.now = 0
        self.given = np.zeros(2)
        self.runs = np.ones(2)
        """Share of its ticks that each end runs."""
        for link in self.links:
            begin(row, link)

    def go(self, moved):
        """One tick, in which the hands go moved (2, 6); returns the forces (2, 6) that are held in the next."""
        self.now += 1
        out = np.zeros(6)
        for i in range(2):
            if int(self.now * self.runs[i]) == int((self.now - 1) * self.runs[i]):
                continue
            link, port = self.links[i], self.ports[i]
            link["clock"] += 1
            heard = self.ways[1 - i].take(self.now - 1)
            if heard is not None:
                link["wave_heard"] = heard[:6]
                hear(self.settings[0], link, heard[6], int(heard[7]))
            port["applied"] = self.wrenches[i]
            port["moved"] = moved[i]
            port["twist"] = moved[i] / DT
            self.given[i] += self.wrenches[i] @ moved[i]
            pass_waves(self.settings[0], link, port, out)
            wave_wrench(self.settings[0], link, port, self.wrenches[i])
            said = [link["wave_energy_sent"], round(self.now * DT * 1e9)]
            self.ways[i].put(self.now, np.append(link["wave_sent"], said))
        return self.wrenches


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("delay", "jitter", "loss"), [(0, 0, 0.0), (30, 0, 0.0), (30, 15, 0.0), (10, 5, 0.3)])
def test_whatever_hands_do_the_line_gives_no_more_than_it_began_with(seed, delay, jitter, loss):
    """Hands that move at random, not asking what they feel, with every frequency and some standstills."""
    random = np.random.default_rng(seed)
    line = Line((Channel(delay, jitter, loss, seed), Channel(delay, jitter, loss, seed + 100)))
    speed = np.zeros((2, 6))
    largest = most = 0.0
    for k in range(3000):
        if k % int(random.integers(1, 60)) == 0:
            speed = random.normal(size=(2, 6)) * random.choice([0.0, 0.05, 0.3])
        forces = line.wrenches.copy()
        moved = speed * DT
        largest = max(largest, np.abs(forces * moved).sum())
        line.go(moved)
        most = max(most, line.given.sum())
    # Two accounts each, of half a tank; an end that overdraws its own is noticed at the next sample.
    assert most <= 2 * 0.1 * (1.0 + OVERDRAWN) + 2 * largest


def test_an_end_alone_is_a_damper():
    """Nothing comes back from the other end, and an impedance is what is felt."""
    line = Line((Channel(10**6), Channel(10**6)))
    moved = np.zeros((2, 6))
    moved[0, 0] = 0.1 * DT
    for _ in range(300):
        forces = line.go(moved)
    assert forces[0, 0] == pytest.approx(-IMPEDANCE * 0.1, rel=1e-12)
    assert np.all(forces[1] == 0.0)


def test_an_end_that_is_overdrawn_and_at_rest_sends_nothing():
    """Nothing of no energy is no share of it."""
    line = Line((Channel(0), Channel(0)))
    line.links[0]["credit"] = line.links[0]["wave_in_credit"] = -1e-5
    assert np.all(line.go(np.zeros((2, 6))) == 0.0)
    assert np.all(line.links[0]["wave_sent"] == 0.0) and line.links[0]["credit"] == -1e-5


@pytest.mark.parametrize("loss", [0.0, 0.3])
def test_places_do_not_drift_apart(loss):
    """Two ends that go 20 mm and hold: f (1 / K + T / b) is what lies between them, lost messages or not."""
    delay = 20
    line = Line((Channel(delay, 0, loss, 1), Channel(delay, 0, loss, 2)), tank=1.0)
    moved = np.zeros((2, 6))
    for k in range(1500):
        moved[0, 0] = 0.02 / 500 if k < 500 else 0.0
        # The second hand gives way slowly, so that it ends 12 mm on.
        moved[1, 0] = 0.012 / 500 if 200 <= k < 700 else 0.0
        forces = line.go(moved)
    late = 1.0 / STIFFNESS + (delay + 1) * DT / IMPEDANCE
    assert forces[1, 0] == pytest.approx(0.008 / late, rel=0.02 if loss == 0.0 else 0.15)
    assert forces[0, 0] == pytest.approx(-forces[1, 0], rel=0.1)


@pytest.mark.parametrize(("runs", "most"), [(1.0, 1.0), (0.97, 10.0), (0.9, 25.0)])
def test_an_end_that_misses_ticks_lets_waves_in_almost_as_early(runs, most):
    """It counts its ticks and so takes messages for younger and younger; what it waits for follows, within ticks."""
    line = Line((Channel(), Channel()))
    line.runs[1] = runs
    moved = np.zeros((2, 6))
    for k in range(6000):
        moved[0, 0] = 0.02 * 2.0 * np.pi * np.cos(2.0 * np.pi * k * DT) * DT
        line.go(moved)
    link = line.links[1]
    age = link["clock"] - 1e-9 * link["wave_sent_at"] / DT
    assert link["wave_age"] - age < most
