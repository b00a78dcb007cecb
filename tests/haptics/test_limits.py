"""Limits: whatever is asked for, the rendered vector is bounded, moves by bounded steps, and ends where a ramp ends."""

import numpy as np
import pytest
from haptics_rig import REST, Rig, plane_model
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.adapters.spring import local_wrench
from bridge.wire import decode_render, encode_render
from haptics.cards import load_card
from haptics.limits import NOT_FINITE, NOT_SENT, SATURATED, SLEW_LIMITED, approach
from haptics.settings import make_settings
from haptics.states import CommandKind, EngagementState, Reason

ROUNDING = 1e-12
"""Relative: a handful of roundings of numbers of the size of the limit."""

# Squares of smaller numbers underflow, in the test's own norm as well.
numbers = st.floats(-1e6, 1e6).map(lambda x: x if abs(x) > 1e-100 else 0.0)
vectors = st.tuples(numbers, numbers, numbers)


@given(last=vectors, wanted=vectors, largest=st.just(0.0) | st.floats(1e-9, 100.0), slew=st.floats(1e-3, 100.0))
@settings(max_examples=500, deadline=None)
def test_next_vector_is_within_norm_and_slew_at_once(last, wanted, largest, slew):
    # The precondition that every ramp keeps: the last vector is at most one slew outside the allowed norm.
    size = np.linalg.norm(last)
    last = np.array(last) * min(1.0, (largest + slew) / size if size > 0 else 1.0)
    got, limited = approach(tuple(last), wanted, largest, slew)
    assert np.linalg.norm(got) <= largest * (1 + ROUNDING)
    assert np.linalg.norm(np.array(got) - last) <= slew + ROUNDING * (largest + slew)
    if not limited:
        # Nothing but saturation happened: the direction is the wanted one.
        cross = np.cross(got, wanted)
        assert np.linalg.norm(cross) <= 1e-12 * np.linalg.norm(got) * np.linalg.norm(wanted) + 1e-300


@given(last=vectors, wanted=vectors)
@settings(max_examples=200, deadline=None)
def test_constant_limits_are_reached_in_the_fewest_steps(last, wanted):
    """With a constant norm, the way to the goal is straight: it takes ceil(distance / slew) steps."""
    largest, slew = 10.0, 0.7
    last = np.array(last)
    last *= min(1.0, largest / max(np.linalg.norm(last), 1e-30))
    goal = np.array(wanted) * min(1.0, largest / max(np.linalg.norm(wanted), 1e-30))
    steps = max(1, int(np.ceil(np.linalg.norm(goal - last) / slew - 1e-9)))
    for _ in range(steps):
        last = np.array(approach(tuple(last), wanted, largest, slew)[0])
    assert np.allclose(last, goal, atol=1e-9)


@given(
    start=st.floats(0.01, 1.0),
    ticks=st.integers(1, 40),
    wanted=st.lists(vectors, min_size=40, max_size=40),
)
@settings(max_examples=200, deadline=None)
def test_a_ramp_ends_at_zero_in_time_whatever_is_asked_for(start, ticks, wanted):
    """Gain to zero in n ticks, slew limit force_max / n: the vector is zero after n ticks, never stepping more."""
    largest = 10.0
    slew = largest / ticks
    last = np.array(approach((0.0, 0.0, 0.0), wanted[0], largest * start, 1e9)[0])
    for k in range(ticks):
        gain = start * (1.0 - (k + 1) / ticks) if k + 1 < ticks else 0.0
        goal = tuple(gain * c for c in wanted[k])
        following, _ = approach(tuple(last), goal, largest * gain, slew)
        assert np.linalg.norm(np.array(following) - last) <= slew + ROUNDING * largest
        last = np.array(following)
    assert np.all(last == 0.0)


def test_slew_limit_passes_honest_contact_and_lets_ramps_end():
    for name in ("simulated", "touch", "omega6", "virtuose6d"):
        card = load_card(name)
        row = make_settings(card, stiffness=400.0, ramp_fault_ms=15.0)[0]
        assert row["force_slew"] >= row["stiffness_max"] * 0.5 * row["dt"]
        assert row["force_slew"] >= row["force_max"] / row["ramp_fault_ticks"]
        assert row["torque_slew"] >= row["torque_max"] / row["ramp_fault_ticks"]


@given(
    moves=st.lists(
        st.tuples(st.floats(-0.02, 0.02), st.floats(-0.02, 0.02), st.floats(-0.02, 0.02), st.integers(0, 9)),
        min_size=30,
        max_size=30,
    )
)
@settings(max_examples=25, deadline=None)
def test_hostile_client_never_breaks_norm_or_slew(moves):
    """Wild motion, commands and silences: every tick's wrench is within force_max and one slew from the last."""
    rig = Rig(plane_model(friction=0.5, tip_offset=(0.0, 0.02, -0.05)), ramp_up_ms=5.0, ramp_down_ms=15.0)
    rig.activate()
    rig.command(CommandKind.SET_GAINS, 2000.0, 10.0)
    last = rig.wrench
    chosen = rig.chosen
    for x, y, z, what in moves:
        for _ in range(4):
            if what == 0:
                rig.silence()
            elif what == 1:
                rig.put(CommandKind.CLUTCH, 1)
                rig.send((x, y, z + 0.03))
            elif what == 2:
                rig.put(CommandKind.CLUTCH, 0)
                rig.send((x, y, z + 0.03))
            elif what == 3:
                rig.put(CommandKind.SET_GAINS, 2000.0 if x > 0 else 10.0, 5.0)
                rig.send((x, y, z + 0.03))
            elif what == 4 and rig.status == EngagementState.FAULT:
                rig.put(CommandKind.RESET)
                rig.send()
            elif what == 5:
                rig.put(CommandKind.ARM, 1)
                rig.send()
            else:
                rig.send((x, y, z + 0.03))
            now = rig.wrench
            assert np.linalg.norm(now[:3]) <= chosen["force_max"] * (1 + ROUNDING)
            assert np.linalg.norm(now[3:]) <= chosen["torque_max"] * (1 + ROUNDING)
            assert np.linalg.norm(now[:3] - last[:3]) <= chosen["force_slew"] * (1 + ROUNDING)
            assert np.linalg.norm(now[3:] - last[3:]) <= chosen["torque_slew"] * (1 + ROUNDING)
            last = now


def test_saturation_keeps_direction_and_says_so():
    rig = Rig(stiffness=2000.0, damping=0.0)
    rig.activate((0.0, 0.0, REST + 0.001))
    rig.press(0.02, ticks=80)
    force = rig.wrench[:3]
    assert rig.output["limited"] & SATURATED
    assert np.linalg.norm(force) == pytest.approx(rig.chosen["force_max"], rel=1e-12)
    wanted = rig.output["coupling_wrench"][:3]
    assert np.linalg.norm(wanted) > rig.chosen["force_max"]
    assert np.allclose(force / np.linalg.norm(force), wanted / np.linalg.norm(wanted), atol=1e-12)


@pytest.mark.parametrize("card", ["simulated", "touch", "falcon", "omega6", "virtuose6d"])
def test_silence_while_pressing_at_full_stiffness(card):
    """From pressing at the card's K, in saturation: exactly zero by stale_after + ramp_fault, monotone, in steps."""
    rig = Rig(card=card, stiffness=load_card(card).stiffness_max or 1000.0)
    rig.activate((0.0, 0.0, REST + 0.001))
    rig.press(3.0 * rig.chosen["force_max"] / rig.chosen["stiffness"], ticks=200)
    last = np.linalg.norm(rig.wrench[:3])
    assert last == pytest.approx(rig.chosen["force_max"], rel=1e-9)
    allowed_ms = 1e-6 * rig.chosen["stale_after_ns"] + rig.chosen["ramp_fault_ticks"] * 1e3 * rig.chosen["dt"]
    begin = rig.sent_ms
    reasons = []
    for _ in range(60):
        rig.silence()
        now = np.linalg.norm(rig.wrench[:3])
        assert now <= last * (1 + ROUNDING)
        assert last - now <= rig.chosen["force_slew"] * (1 + ROUNDING)
        last = now
        if rig.output["event_from"] != rig.output["event_to"]:
            reasons.append((rig.status, rig.reason))
        # The tick that just ran was at now_ms - 1 ms.
        if rig.now_ms - 1.0 - begin >= allowed_ms:
            assert now == 0.0
    assert reasons == [
        (EngagementState.HOLD, Reason.SAMPLE_LATE),
        (EngagementState.RELEASING, Reason.SAMPLE_STALE),
        (EngagementState.IDLE, Reason.SAMPLE_STALE),
    ]


def test_wrench_that_is_not_finite_becomes_zero_and_a_fault():
    rig = Rig(stiffness=1000.0)
    rig.activate((0.0, 0.0, REST + 0.001))
    rig.press(0.005)
    before = np.linalg.norm(rig.wrench)
    rig.row["stiffness"] = np.nan
    rig.send()
    assert rig.output["limited"] & NOT_FINITE
    assert np.all(np.isfinite(rig.wrench)) and np.all(rig.output["stiffness"] == 0.0)
    assert before - np.linalg.norm(rig.wrench) <= rig.chosen["force_slew"] * (1 + ROUNDING)
    rig.send()
    assert (rig.status, rig.reason) == (EngagementState.RELEASING, Reason.NOT_FINITE)
    rig.run(20)
    assert rig.status == EngagementState.FAULT and np.all(rig.wrench == 0.0)


def test_nothing_is_sent_while_not_engaged():
    rig = Rig()
    rig.command(CommandKind.LEASE)
    rig.run(30, (0.0, 0.0, -0.02))
    assert np.linalg.norm(rig.output["coupling_wrench"]) > 1.0
    assert rig.output["limited"] & NOT_SENT and np.all(rig.wrench == 0.0) and np.all(rig.output["stiffness"] == 0.0)


def test_slew_limit_is_reported():
    rig = Rig(stiffness=2000.0)
    rig.activate((0.0, 0.0, REST + 0.0005))
    rig.send((0.0, 0.0, REST - 0.003))
    assert rig.output["limited"] & SLEW_LIMITED


@pytest.mark.parametrize("steps", [10, 100, 1000])
def test_energy_of_a_lossless_spring_cycle(steps):
    """Press to 5 mm and back without damping or friction. The wrench is held between samples, so exactly 1/2 K dx^2 per
    step is generated (the difference of the rectangle sum to the integral), which goes to zero with the step; nothing
    else is."""
    stiffness, depth = 500.0, 0.005
    rig = Rig(stiffness=stiffness, damping=0.0, passivity=False)
    rig.activate((0.0, 0.0, REST))
    start = rig.output["energy"]
    for k in list(range(1, steps + 1)) + list(range(steps - 1, -1, -1)):
        rig.send((0.0, 0.0, REST - depth * k / steps))
        if k == steps:
            # Deepest: the hand has put the spring's energy in, which the observer counts as negative.
            stored = 0.5 * stiffness * depth**2
            assert rig.output["energy"] - start == pytest.approx(-stored * (1 - 1 / steps), rel=1e-6)
    generated = 2 * steps * 0.5 * stiffness * (depth / steps) ** 2
    assert rig.output["energy"] - start == pytest.approx(generated, rel=1e-6, abs=1e-12)


def test_the_torque_of_the_impedance_is_the_limited_one():
    """A tool of 100 mm in a scene scaled down to a thousandth would ask for kilonewton metres."""
    rig = Rig(plane_model(tip_offset=(0.1, 0.0, 0.0)), scale=1e-3, ramp_up_ms=3.0, ramp_down_ms=15.0)
    rig.activate()
    largest, slew = rig.chosen["torque_max"], rig.chosen["torque_slew"]
    begin, last, most = np.array(rig.sample["position"]), np.zeros(3), 0.0
    for k in range(200):
        rig.send(begin - (0.0, 0.0, 0.002 * k) if k < 120 else None)
        if k == 150:
            rig.command(CommandKind.DISARM)
        torque = rig.output["feed_forward"][3:].copy()
        assert np.array_equal(torque, rig.wrench[3:])
        assert np.linalg.norm(torque) <= largest * (1 + ROUNDING)
        if k != 150:
            assert np.linalg.norm(torque - last) <= slew * (1 + ROUNDING)
        last, most = torque, max(most, float(np.linalg.norm(rig.output["coupling_wrench"][3:])))
    assert most > largest and np.all(last == 0.0)


@pytest.mark.parametrize("kind", [CommandKind.DISARM, CommandKind.CLUTCH, CommandKind.STOP])
def test_what_an_adapter_makes_of_a_release_only_falls_too(kind):
    """Pressed 1 mm, then released while the hand presses on at 0.1 m/s: the force of the impedance that is told, at the
    pose of each tick, is the wrench."""
    rig = Rig(ramp_up_ms=5.0, start=(0.0, 0.0, 0.01), stiffness=2000.0, damping=5.0, passivity=False)
    rig.activate((0.0, 0.0, 0.01))
    rig.press(0.001)
    last = np.linalg.norm(rig.wrench[:3])
    assert last == pytest.approx(2.0, rel=1e-3)
    assert rig.command(kind, 1) == Reason.NONE
    while rig.status == EngagementState.RELEASING:
        rig.send(np.array(rig.sample["position"]) - (0.0, 0.0, 1e-4), twist=(0.0, 0.0, -0.1, 0.0, 0.0, 0.0))
        render = decode_render(encode_render(rig.record, 0))
        force = np.linalg.norm(local_wrench(render, rig.sample["position"], rig.sample["twist"][:3])[:3])
        size = np.linalg.norm(rig.wrench[:3])
        assert size <= last * (1.0 + ROUNDING)
        if kind != CommandKind.CLUTCH:
            assert force == pytest.approx(size, abs=1e-6)
        last = size
    assert last == 0.0
