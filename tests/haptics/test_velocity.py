"""Velocity: exact for constant velocity whatever the clock does, with a delay that is what it says it is."""

import numpy as np
import pytest
from haptics_rig import MS, REST, Rig, plane_model
from hypothesis import given, settings
from hypothesis import strategies as st

from haptics.states import CommandKind


def leased(**options) -> Rig:
    rig = Rig(**options)
    rig.command(CommandKind.LEASE)
    return rig


def feed(rig: Rig, times_ms, positions) -> None:
    """Samples with these time stamps, one tick each."""
    for time, position in zip(times_ms, positions, strict=True):
        rig.send(position, tick=False)
        rig.sample["t_sample"] = round(time * MS)
        rig.tick()


velocities = st.tuples(*[st.floats(-1.5, 1.5)] * 3)


@given(
    velocity=velocities,
    steps=st.lists(st.floats(0.3, 3.0), min_size=3, max_size=60),
    window=st.sampled_from([3.0, 12.0, 40.0]),
)
@settings(max_examples=100, deadline=None)
def test_constant_velocity_is_exact_with_any_jitter(velocity, steps, window):
    rig = leased(velocity_window_ms=window)
    times = np.round(np.cumsum(steps) * MS) / MS
    feed(rig, times, np.array([0.0, 0.0, 0.5]) + 1e-3 * times[:, None] * np.array(velocity))
    # Positions near 1 m carry 1e-16; over the shortest span of 0.3 ms that is 1e-12 m/s.
    assert np.allclose(rig.row["velocity"], velocity, rtol=0, atol=1e-11)
    # The delay is the mean age of the samples in the window, the two newest included.
    ages = np.rint((times[-1] - times[::-1]) * MS)
    used = ages[: max(2, np.count_nonzero(ages <= window * MS))]
    assert rig.output["velocity_delay_s"] == pytest.approx(1e-9 * used.mean(), abs=1e-12)


@given(jitter=st.lists(st.floats(-0.4, 0.4), min_size=60, max_size=60))
@settings(max_examples=50, deadline=None)
def test_published_delay_is_bounded_by_the_window(jitter):
    rig = leased()
    times = np.arange(60) + np.array(jitter)
    feed(rig, times, np.tile([0.0, 0.0, 0.1], (60, 1)))
    # Mean age of samples within 12 ms of the newest: no more than the window, and half of it but for jitter.
    assert 0.0 < rig.output["velocity_delay_s"] <= 7e-3


def test_delay_is_the_true_one_for_constant_acceleration():
    """A line fitted to a parabola over evenly spaced samples has the slope at their mean time."""
    rig = leased()
    acceleration = 3.0
    times = np.arange(1.0, 41.0)
    positions = np.zeros((40, 3))
    positions[:, 0] = 0.5 * acceleration * (1e-3 * times) ** 2
    feed(rig, times, positions)
    delay = rig.output["velocity_delay_s"]
    assert delay == pytest.approx(6e-3, abs=1e-12)
    assert rig.row["velocity"][0] == pytest.approx(acceleration * (0.040 - delay), abs=1e-10)


def test_noise_of_one_encoder_step_stays_small():
    """Least squares over n + 1 samples: errors of +-q/2 give the slope a spread of q / (dt sqrt(n (n+1) (n+2)))."""
    rig = leased()
    random = np.random.default_rng(3)
    quantum, velocity = 1e-5, 0.1
    errors = []
    for k in range(2000):
        x = velocity * 1e-3 * k + random.uniform(-0.5, 0.5) * quantum
        feed(rig, [float(k)], [(x, 0.0, 0.1)])
        if k > 20:
            errors.append(rig.row["velocity"][0] - velocity)
    expected = quantum / 1e-3 * np.sqrt(1.0 / (12 * 13 * 14))
    assert np.std(errors) == pytest.approx(expected, rel=0.15)


def test_a_repeated_time_stamp_replaces_the_sample():
    rig = leased()
    feed(rig, [1, 2, 3, 4, 4, 4], [(1e-4 * k, 0, 0.1) for k in (1, 2, 3, 9, 9, 4)])
    assert rig.row["velocity"][0] == pytest.approx(0.1, abs=1e-12)
    assert rig.row["velocity_count"] == 4


def test_all_time_stamps_equal_gives_no_velocity():
    rig = leased()
    feed(rig, [5] * 30, [(1e-3 * k, 0, 0.1) for k in range(30)])
    assert np.all(rig.row["velocity"] == 0.0)


@pytest.mark.parametrize("second", [-3.0, 1e4, -1e9, 8e9])
def test_time_that_goes_back_or_leaps_starts_over(second):
    rig = leased()
    feed(rig, range(1, 30), [(1e-4 * k, 0, 0.1) for k in range(29)])
    feed(rig, [second], [(0.0029, 0, 0.1)])
    assert np.all(rig.row["velocity"] == 0.0) and rig.row["velocity_count"] == 1
    feed(rig, second + np.arange(1, 30), [(0.0029 + 2e-4 * k, 0, 0.1) for k in range(1, 30)])
    assert rig.row["velocity"][0] == pytest.approx(0.2, abs=1e-9)


def test_a_gap_longer_than_the_window_uses_the_two_newest():
    rig = leased()
    feed(rig, [0, 15, 30, 45], [(1e-4 * t, 0, 0.1) for t in (0, 15, 30, 45)])
    assert rig.row["velocity"][0] == pytest.approx(0.1, abs=1e-12)
    assert rig.output["velocity_delay_s"] == pytest.approx(7.5e-3)


def test_samples_a_nanosecond_apart_do_not_explode():
    rig = leased()
    feed(rig, [1.0, 1.000001, 1.000002], [(0, 0, 0.1), (0.01, 0, 0.1), (-0.01, 0, 0.1)])
    assert np.linalg.norm(rig.row["velocity"]) <= rig.chosen["speed_max"]


@given(
    rows=st.lists(
        st.tuples(st.integers(-(2**63), 2**63 - 1), st.floats(-1.0, 1.0)),
        min_size=2,
        max_size=40,
    )
)
@settings(max_examples=100, deadline=None)
def test_no_time_stamps_break_the_bound(rows):
    rig = leased()
    for time, x in rows:
        rig.send((x, 0.0, 0.1), tick=False)
        rig.sample["t_sample"] = time
        rig.tick()
        assert np.linalg.norm(rig.row["velocity"]) <= rig.chosen["speed_max"] * (1 + 1e-12)
        assert np.all(np.isfinite(rig.row["velocity"])) and np.isfinite(rig.output["velocity_delay_s"])


def test_the_clients_twist_is_taken_with_no_delay():
    rig = leased()
    rig.run(20, (0.0, 0.0, 0.1), twist=(0.1, -0.2, 0.3, 1.0, 2.0, 3.0))
    assert np.array_equal(rig.row["velocity"], (0.1, -0.2, 0.3))
    assert rig.output["velocity_delay_s"] == 0.0
    assert np.array_equal(rig.output["render_twist"][3:], (1.0, 2.0, 3.0))
    rig.run(20)
    assert np.allclose(rig.row["velocity"], 0.0) and np.all(rig.output["render_twist"][3:] == 0.0)


def test_velocity_in_the_scene_is_turned_and_scaled():
    half = np.sqrt(0.5)
    rig = leased(scale=2.0, workspace_orientation=(0.0, 0.0, half, half))
    times = np.arange(1.0, 30.0)
    feed(rig, times, np.array([0.0, 0.0, 0.05]) + 1e-4 * times[:, None] * np.array([1.0, 0.0, 0.0]))
    assert np.allclose(rig.output["device_velocity"], (0.0, 0.2, 0.0), atol=1e-11)


def test_tool_and_device_are_seen_with_the_same_delay():
    """Pressed and dragged without friction, the tool moves sideways as the device does, with no lag between them."""
    rig = leased(model=plane_model(friction=0.0))
    for k in range(200):
        rig.send((1e-4 * k + 2e-7 * k * k, 0.0, REST - 0.002), tick=True)
    assert rig.row["proxy_velocity"][0] == pytest.approx(rig.row["velocity"][0], abs=1e-6)
    assert rig.row["proxy_velocity"][2] == pytest.approx(0.0, abs=1e-6)


def test_an_adaptive_window_is_late_by_less_in_fast_motion_and_as_quiet_in_slow():
    """A reach that starts: the window shrinks to what is straight. A slow drift: all of it, and as little noise."""
    random = np.random.default_rng(4)
    quantum = 1e-5
    errors = {"window": [], "adaptive": []}
    delays = {"window": [], "adaptive": []}
    quiet = {"window": [], "adaptive": []}
    for method in errors:
        rig = leased(velocity_window_ms=30.0, velocity=method)
        for k in range(400):
            time = 1e-3 * k
            x = 0.05 * (1.0 - np.cos(2.0 * np.pi * 4.0 * time))
            feed(rig, [float(k)], [(np.round(x / quantum) * quantum, 0.0, 0.1)])
            if k > 60:
                true = 0.05 * 2.0 * np.pi * 4.0 * np.sin(2.0 * np.pi * 4.0 * time)
                errors[method].append(rig.row["velocity"][0] - true)
                delays[method].append(rig.output["velocity_delay_s"])
        rig = leased(velocity_window_ms=30.0, velocity=method)
        shift = random.uniform(0.0, quantum)
        for k in range(600):
            x = shift + 0.002e-3 * k
            feed(rig, [float(k)], [(np.round(x / quantum) * quantum, 0.0, 0.1)])
            if k > 60:
                quiet[method].append(rig.row["velocity"][0] - 0.002)
    assert np.sqrt(np.mean(np.square(errors["adaptive"]))) < 0.4 * np.sqrt(np.mean(np.square(errors["window"])))
    assert np.mean(delays["adaptive"]) < 0.5 * np.mean(delays["window"])
    assert np.std(quiet["adaptive"]) < 1.05 * np.std(quiet["window"]) + 1e-12


def test_an_adaptive_window_holds_only_what_is_straight_within_a_step():
    """The longest run back from the newest sample that the definition allows, by brute force."""
    random = np.random.default_rng(8)
    rig = leased(velocity_window_ms=40.0, velocity="adaptive")
    step = rig.chosen["velocity_step"]
    assert step == 1e-5
    path = 0.1 + np.cumsum(random.normal(scale=3e-6, size=(200, 3)), axis=0)
    for k in range(200):
        feed(rig, [float(k)], [path[k]])
        used = 1
        while used < min(k, 40):
            ages = np.arange(used + 2)
            rows = path[k - ages]
            line = rows[0] + (ages / ages[-1])[:, None] * (rows[-1] - rows[0])
            if np.abs(rows - line).max() > step:
                break
            used += 1
        if k >= 1:
            assert rig.output["velocity_delay_s"] == pytest.approx(1e-3 * used / 2.0, abs=1e-9)


def test_an_unknown_estimator_is_refused():
    with pytest.raises(ValueError, match="velocity = 'kalman' must be one of window, adaptive"):
        leased(velocity="kalman")
