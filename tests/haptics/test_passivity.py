"""Passivity: what holding the wrench between samples produces is counted to the digit and taken back by damping, so
that a device on a stiff wall comes to rest where it otherwise swings on; what the scene gives is nobody's debt."""

import dataclasses

import numpy as np
import pytest
from haptics_rig import BLOCK, REACH, REST, Rig, block_model, plane_model

from haptics import passivity
from haptics.cards import load_card
from haptics.codes import ACTIVE, GOOD
from haptics.hands import HANDS_OFF, HELD, LIGHT, DeviceDynamics, Grip, SimulatedHand, WayPoints
from haptics.limits import DAMPED
from haptics.settings import make_settings
from haptics.stability import energy_floor
from haptics.states import CommandKind, EngagementState
from haptics.tables import OUTPUT
from haptics.touch import make_touch

DT = 1e-3
"""s, of a tick."""
POINT_GRIP = Grip(1.0, 1e4, 200.0, inertia=0.0, rotational_stiffness=0.0, rotational_damping=0.0)
"""Holds the handle at its point and lets it turn."""


# ------------------------------------------------------------------------------------------------- the accounts


def cycle(rig: Rig, steps: int, depth: float) -> None:
    """From the surface to a depth and back, in steps of equal length, one per tick."""
    rig.activate((0.0, 0.0, REST))
    for k in (*range(1, steps + 1), *range(steps - 1, -1, -1)):
        rig.send((0.0, 0.0, REST - depth * k / steps))


@pytest.mark.parametrize("steps", [10, 100])
def test_what_is_owed_is_half_k_dx_squared_a_sample(steps):
    """Without the controller: a spring pressed and let go owes 1/2 K dx^2 for each step, and hands it all out."""
    stiffness, depth = 500.0, 0.005
    rig = Rig(stiffness=stiffness, damping=0.0, passivity=False)
    cycle(rig, steps, depth)
    produced = 2 * steps * 0.5 * stiffness * (depth / steps) ** 2
    assert rig.output["owed_linear"] == pytest.approx(produced, rel=1e-6)
    assert rig.output["energy_linear"] == pytest.approx(produced, rel=1e-6)
    assert not rig.output["passivity_wrench"].any() and rig.output["dissipated_linear"] == 0.0


def test_the_controller_damps_by_half_k_t_and_takes_back_what_was_produced():
    """At a constant speed v against a wall it adds K T / 2 of damping, the sampling term of Colgate and Schenkel, and
    after a cycle the port has given no more than two samples' worth."""
    stiffness, depth, steps = 500.0, 0.005, 100
    rig = Rig(stiffness=stiffness, damping=0.0)
    rig.activate((0.0, 0.0, REST))
    dx = depth / steps
    for k in range(1, steps + 1):
        rig.send((0.0, 0.0, REST - dx * k))
        if k > 2:
            assert rig.output["passivity_damping"][0] == pytest.approx(0.5 * stiffness * DT, rel=1e-4)
            assert rig.output["passivity_wrench"][2] == pytest.approx(0.5 * stiffness * dx, rel=1e-4)
            assert rig.wrench[2] == pytest.approx(stiffness * (dx * k + 0.5 * dx), rel=1e-4)
            assert rig.output["limited"] & DAMPED and rig.output["damping"][2] >= rig.output["passivity_damping"][0]
    for k in range(steps - 1, -1, -1):
        rig.send((0.0, 0.0, REST - dx * k))
        assert rig.wrench[2] >= 0.0
    assert rig.output["energy"] <= energy_floor(stiffness, DT, speed=dx / DT)
    produced = 2 * steps * 0.5 * stiffness * dx**2
    assert rig.output["dissipated_linear"] == pytest.approx(produced - rig.output["owed_linear"], rel=0.02)


def test_a_spring_at_rest_owes_nothing_and_is_not_changed():
    rig = Rig(stiffness=500.0, damping=0.0)
    rig.activate((0.0, 0.0, REST))
    rig.press(0.004)
    assert rig.wrench[2] == pytest.approx(2.0, rel=1e-4)
    assert np.abs(rig.output["passivity_wrench"]).max() == 0.0


def test_free_motion_and_sliding_are_not_damped_even_with_a_debt():
    """The debt of a fast, deep push waits: nothing is added in the air, nor along a wall."""
    rig = Rig(stiffness=2000.0, damping=0.0)
    rig.activate((0.0, 0.0, REST + 0.001))
    rig.glide((0.0, 0.0, REST - 0.002))
    rig.row["owed"][0] = 1e-3
    for k in range(20):
        rig.send((4e-4 * k, 0.0, REST - 0.002))
        assert np.abs(rig.wrench[:2]).max() < 1e-6 * rig.wrench[2]
    rig.glide((0.008, 0.0, REST + 0.004))
    rig.row["owed"][0] = 1e-3
    for k in range(20):
        rig.send((0.008 + 4e-4 * k, 0.0, REST + 0.004))
        assert not rig.output["passivity_wrench"].any() and np.abs(rig.wrench).max() < 1e-9
    assert rig.output["owed_linear"] == 1e-3


def bench(**options) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(1,) SETTINGS, TOUCH and OUTPUT in ACTIVE with a good sample every tick."""
    settings = make_settings(load_card("simulated"), **options)
    touch, output = make_touch(settings), np.zeros(1, OUTPUT)
    touch["state"], touch["gain"], touch["sample_kind"], touch["moved_s"] = ACTIVE, 1.0, GOOD, DT
    return settings, touch, output


def test_what_the_scene_gives_is_not_owed():
    """A door that pushes the hand for a metre with 3 N gives 3 J; the spring between them has made none of it."""
    settings, touch, output = bench()
    touch["conservative"][0, 1] = touch["ideal"][0, 1] = touch["held_ideal"][0, 1] = touch["held_wrench"][0, 1] = 3.0
    output["coupling_wrench"][0, 1] = 3.0
    touch["moved"][0, 1] = 1e-3
    for _ in range(1000):
        passivity.control(settings[0], touch[0], output[0])
    assert touch["owed"][0, 0] == 0.0 and not output["passivity_wrench"].any()


def test_dissipation_is_forgotten_but_no_debt_is():
    """A second of rubbing with 5 N buys nothing: the next joule that is produced is owed at once."""
    settings, touch, output = bench()
    touch["conservative"][0, 2] = touch["ideal"][0, 2] = output["coupling_wrench"][0, 2] = 1.0
    touch["held_ideal"][0, 2], touch["moved"][0, 2] = 1.0, 1e-3
    for held, owed in ((-5.0, 0.0), (1.5, 0.5e-3), (1.5, 1.0e-3), (0.9, 0.9e-3)):
        touch["held_wrench"][0, 2] = held
        passivity.control(settings[0], touch[0], output[0])
        assert touch["owed"][0, 0] == pytest.approx(owed, abs=1e-15)


@pytest.mark.parametrize("speed", [1e-4, 0.009, 0.02, 0.3])
def test_the_damping_is_within_the_cards_and_does_not_chatter(speed):
    """However much is owed: at most 0.9 of damping_max; and below one encoder step a tick force goes as the speed."""
    settings, touch, output = bench(damping=0.0)
    touch["conservative"][0, 2] = touch["ideal"][0, 2] = output["coupling_wrench"][0, 2] = 1.0
    touch["held_ideal"][0, 2] = touch["held_wrench"][0, 2] = 1.0
    touch["moved"][0, 2] = -speed * DT
    for owed in (1e-9, 1e-7, 1e-3, 10.0):
        touch["owed"][0, 0] = owed
        passivity.control(settings[0], touch[0], output[0])
        damping, force = output["passivity_damping"][0, 0], output["passivity_wrench"][0, 2]
        slowest = max(speed, 1e-5 / DT)
        assert damping == pytest.approx(min(0.9 * 10.0, owed / (slowest**2 * DT)), rel=1e-9)
        assert force == pytest.approx(damping * speed, rel=1e-9)


def test_a_tick_without_a_sample_keeps_the_damping_and_silence_lets_it_fade():
    rig = Rig(stiffness=2000.0, damping=0.0)
    rig.activate((0.0, 0.0, REST))
    for k in range(10):
        rig.send((0.0, 0.0, REST - 2e-4 * k))
    kept = rig.output["passivity_wrench"].copy()
    assert kept[2] > 0.1
    rig.silence(2)
    assert np.allclose(rig.output["passivity_wrench"], kept, rtol=1e-9)
    rig.silence(14)
    assert rig.status == EngagementState.HOLD
    assert 0.0 < rig.output["passivity_wrench"][2] < 0.5 * kept[2]
    rig.silence(60)
    assert rig.status == EngagementState.IDLE and not rig.output["passivity_wrench"].any()
    assert rig.output["owed_linear"] == 0.0


def test_a_lease_begins_with_clean_accounts():
    rig = Rig(stiffness=2000.0, damping=0.0)
    cycle(rig, 20, 0.004)
    assert rig.output["dissipated_linear"] > 0.0 and rig.output["energy_linear"] != 0.0
    rig.command(CommandKind.RELEASE)
    rig.run(120)
    rig.command(CommandKind.LEASE, session=8, fresh=False)
    assert not rig.row["energy"].any() and not rig.row["owed"].any() and not rig.row["dissipated"].any()


def test_a_card_without_damping_is_not_damped_beyond_what_was_asked_for():
    card = dataclasses.replace(load_card("simulated"), damping_max=None)
    row = make_settings(card, damping=2.0)[0]
    assert row["passivity_damping"][0] == pytest.approx(1.8)
    assert row["passivity_damping"][1] == pytest.approx(1.8 * (0.5 / 10.0) ** 2)
    assert make_settings(card, passivity=False)["passivity"][0] == 0


# --------------------------------------------------------------------------------------------- device on a wall


def pressed(stiffness: float, grip: Grip, delay_ticks: int, controlled: bool, ticks: int = 1500) -> dict:
    """A hand that presses 3 mm into a wall and stays, or nobody who throws the device at it: what came of it."""
    card = dataclasses.replace(load_card("simulated"), stiffness_max=stiffness)
    rig = Rig(card=card, stiffness=stiffness, damping=0.0, ramp_up_ms=1.0, passivity=controlled)
    path = WayPoints([0.0], [(0.0, 0.0, REST + 0.003)])
    if grip.stiffness > 0.0:
        path = WayPoints([0.0, 0.3], [(0.0, 0.0, REST + 0.002), (0.0, 0.0, REST - 0.003)])
    hand = SimulatedHand(path, grip, DeviceDynamics.from_card(card), delay_ticks=delay_ticks)
    if grip.stiffness == 0.0:
        hand.velocity[2] = -0.1
    rig.command(CommandKind.LEASE)
    rig.send(hand.position)
    rig.command(CommandKind.ARM, 1)
    rows = []
    for _ in range(ticks):
        pose = hand.step(DT, rig.wrench)
        rig.send(pose.position, pose.orientation)
        rows.append((hand.position[2], hand.velocity[2], rig.output["energy"]))
    assert rig.status == EngagementState.ACTIVE
    heights, speeds, energy = np.array(rows).T
    floor = energy_floor(stiffness, DT, speed=np.abs(speeds).max(), resolution=card.resolution)
    return {"heights": heights, "speeds": speeds, "energy": energy, "floor": floor}


@pytest.mark.parametrize(("grip", "delay_ticks", "stiffness"), [(HELD, 1, 10000.0), (LIGHT, 1, 14000.0)])
def test_on_a_stiff_wall_an_oscillation_dies_that_would_go_on_without(grip, delay_ticks, stiffness):
    """Five to seven times the device's own limit, with a tick of delay that the observer does not know: without the
    controller it swings by tenths of a millimetre for ever and gives many times the floor; with it, it stands still."""
    loose, tame = (pressed(stiffness, grip, delay_ticks, controlled) for controlled in (False, True))
    assert np.ptp(loose["heights"][1200:]) > 1.5e-4
    assert loose["energy"].max() > 10.0 * loose["floor"]
    assert np.ptp(tame["heights"][1200:]) < 1e-6
    assert tame["energy"].max() <= tame["floor"]


@pytest.mark.parametrize("delay_ticks", [0, 1])
def test_nobody_holding_it_the_device_leaves_the_wall_no_faster_than_it_came(delay_ticks):
    """The hands-off wall without any damper: at the card's K and far above it."""
    for stiffness in (2000.0, 10000.0):
        tame = pressed(stiffness, HANDS_OFF, delay_ticks, True, 300)
        assert tame["energy"].max() <= tame["floor"]
    loose = pressed(10000.0, HANDS_OFF, 1, False, 300)
    assert loose["speeds"].max() > 0.1 and loose["energy"].max() > loose["floor"]


@pytest.mark.parametrize("grip", [HELD, LIGHT, HANDS_OFF], ids=["held", "light", "hands off"])
def test_at_the_cards_limit_the_port_stays_passive_and_without_it_does_not(grip):
    """K = stiffness_max, B = 0, a tick of delay."""
    tame = pressed(2000.0, grip, 1, True)
    assert tame["energy"].max() <= tame["floor"] and np.ptp(tame["heights"][1200:]) <= 1e-5
    if grip.stiffness < 400.0:
        loose = pressed(2000.0, grip, 1, False)
        assert loose["energy"].max() > loose["floor"]


def test_a_turning_handle_comes_to_rest_between_its_stops():
    """A cube on a plate, turned by nobody, without dry friction: its rotational spring speeds it up from stop to stop
    by itself, and with the controller, which acts on torque likewise, lets it come to rest."""
    low = (0.0, 0.0, BLOCK + 0.0002)
    card = load_card("simulated")
    device = dataclasses.replace(DeviceDynamics.from_card(card), rotational_coulomb=0.0)
    last = {}
    for controlled in (False, True):
        rig = Rig(
            block_model(),
            stiffness=400.0,
            damping=0.0,
            rotational_stiffness=2.0,
            tool_reach=REACH,
            start=low,
            ramp_up_ms=1.0,
            passivity=controlled,
        )
        hand = SimulatedHand(WayPoints([0.0], [low]), POINT_GRIP, device, delay_ticks=1)
        rig.command(CommandKind.LEASE)
        rig.send(hand.position)
        rig.command(CommandKind.ARM, 1)
        hand.turning[0] = 1.0
        speeds, energy = [], []
        for _ in range(600):
            pose = hand.step(DT, rig.wrench)
            rig.send(pose.position, pose.orientation)
            speeds.append(abs(hand.turning[0]))
            energy.append(float(rig.output["energy_angular"]))
            assert np.array_equal(rig.output["feed_forward"][3:], rig.wrench[3:])
        assert rig.status == EngagementState.ACTIVE
        last[controlled] = max(speeds[-100:]), max(energy)
    assert last[False][0] > 2.0 and last[False][1] > 1e-4
    assert last[True][0] < 0.2 and last[True][1] < 1e-6


def test_the_controller_breaks_no_limit():
    """Owing a thousand joules, in a hand that shakes it: norm and slew as ever."""
    rig = Rig(plane_model(friction=0.5), stiffness=2000.0, damping=0.0)
    rig.activate((0.0, 0.0, REST))
    last = rig.wrench
    for k in range(200):
        rig.row["owed"][0] = 1e3
        rig.send((0.0, 1e-4 * k, REST - 0.002 - 0.0015 * np.sin(0.9 * k)))
        now = rig.wrench
        assert np.linalg.norm(now[:3]) <= rig.chosen["force_max"] * (1 + 1e-12)
        assert np.linalg.norm(now[:3] - last[:3]) <= rig.chosen["force_slew"] * (1 + 1e-12)
        last = now
