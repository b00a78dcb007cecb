"""A sweep of stiffness goes on while a device is pressed and quiet, and back at once when it shakes or gives energy."""

import numpy as np
import pytest

from haptics.certify_sweep import REVERSALS, SEAT_S, SEAT_WITHIN_S, SLOW_WITHIN_S, SWING, StiffnessSweep, SweepPlan

MS = 1e-3
PRESS = np.array([0.0, 0.0, 1.2])


def run(sweep, seconds, height=lambda t: 0.0, force=lambda t: PRESS, begin=0.0):
    """Feed it every ms; returns the times at which it asked for another stiffness."""
    asked = []
    for k in range(round(seconds / MS)):
        t = begin + k * MS
        if sweep.watch(t, (0.0, 0.0, height(t)), force(t)):
            asked.append(t)
    return asked


def test_a_quiet_device_goes_up_stage_by_stage_to_the_end():
    sweep = StiffnessSweep(SweepPlan(100.0, 150.0, ratio=1.2, stage_s=0.2), MS)
    asked = run(sweep, 1.2)
    assert asked == pytest.approx([SEAT_S + 0.2 * k for k in (1, 2, 3)], abs=3e-3)
    assert (sweep.ended, sweep.quiet, sweep.stiffness) == ("reached", 150.0, 150.0)


def test_a_stage_counts_while_the_device_is_pressed():
    sweep = StiffnessSweep(SweepPlan(100.0, 200.0, stage_s=0.2), MS)
    assert run(sweep, 1.0, force=lambda t: np.zeros(3)) == [] and sweep.quiet == 0.0


def test_shaking_ends_it_at_the_beginning_s_stiffness():
    """20 Hz by 0.5 mm: five turns take an eighth of a second and a bit."""
    sweep = StiffnessSweep(SweepPlan(100.0, 1000.0, stage_s=0.35), MS)
    run(sweep, 0.7)
    asked = run(sweep, 0.5, height=lambda t: 2.5e-4 * np.sin(40.0 * np.pi * t), begin=0.7)
    assert sweep.ended == "oscillation" and sweep.stiffness == 100.0 and sweep.quiet == 100.0
    assert 0.7 < asked[-1] <= 0.7 + (REVERSALS + 1) / 40.0
    assert run(sweep, 0.5, begin=1.2) == []


@pytest.mark.parametrize(
    ("frequency", "swing"), [(3.0, 20.0 * SWING), (30.0, 0.4 * SWING)], ids=["on purpose", "trembling"]
)
def test_what_a_hand_does_goes_on(frequency, swing):
    """Pressed in, then moved, against a spring that gives back what it takes, so that energy says nothing."""
    sweep = StiffnessSweep(SweepPlan(1000.0, 1000.5, ratio=1.001, stage_s=0.5), MS)

    def height(t):
        return -3e-3 * min(t / 0.2, 1.0) + swing * np.sin(2.0 * np.pi * frequency * max(t - 0.2, 0.0))

    def force(t):
        return np.array([0.0, 0.0, -1000.0 * (0.5 * (height(t) + height(t + MS)))])

    run(sweep, 1.6, height, force)
    assert sweep.ended == "reached"


def test_bounces_of_the_first_touch_do_not_count_unless_they_go_on():
    """10 bounces a second, off the wall each time: pressed afterwards, or never."""

    def force(t):
        return PRESS * (t > 1.0 or np.sin(20.0 * np.pi * t) > 0.0)

    sweep = StiffnessSweep(SweepPlan(100.0, 112.0), MS)
    run(sweep, 2.5, height=lambda t: 1e-3 * np.sin(20.0 * np.pi * min(t, 1.0)), force=lambda t: 1e-9 * force(t))
    assert sweep.ended == "reached"
    sweep = StiffnessSweep(SweepPlan(100.0, 112.0), MS)
    run(sweep, SEAT_WITHIN_S + 0.1, force=lambda t: force(t % 1.0))
    assert sweep.ended == "oscillation"


def test_an_oscillation_that_dies_out_goes_on():
    """15 Hz after a step of stiffness: 1 mm that halves in every period."""
    sweep = StiffnessSweep(SweepPlan(100.0, 112.0), MS)
    run(sweep, 0.3)
    ringing = lambda t: 1e-3 * 0.5 ** (15.0 * (t - 0.3)) * np.sin(30.0 * np.pi * (t - 0.3))  # noqa: E731
    run(sweep, 1.5, height=ringing, force=lambda t: 1e-3 * PRESS, begin=0.3)
    assert sweep.ended == "reached"


def test_given_energy_ends_it():
    """A force that pushes out with more than it took on the way in: 1 N out over 1 mm, 0.5 N in."""
    sweep = StiffnessSweep(SweepPlan(100.0, 1000.0), MS)

    def height(t):
        return -1e-3 * np.sin(2.0 * np.pi * 2.0 * t) ** 2

    def force(t):
        return (1.0 if height(t + MS) > height(t) else 0.5) * PRESS

    run(sweep, 0.6, height, force)
    assert sweep.ended == "energy" and sweep.stiffness == 100.0


def test_a_stage_begins_anew_after_slow_samples():
    """The spring that passed was softer than the one asked for."""
    sweep = StiffnessSweep(SweepPlan(100.0, 110.0, ratio=1.1, stage_s=0.2), MS)
    for k in range(1000):
        sweep.watch(k * MS, np.zeros(3), PRESS, slowed=300 <= k < 900)
    assert (sweep.quiet, sweep.ended) == (0.0, "")
    run(sweep, 0.35, begin=1.0)
    assert (sweep.quiet, sweep.ended) == (110.0, "reached")


def test_what_shakes_in_the_shadow_of_slow_samples_is_no_finding():
    """It backs off all the same."""
    sweep = StiffnessSweep(SweepPlan(100.0, 1000.0, stage_s=0.35), MS)
    run(sweep, 0.7)
    for k in range(700, 1200):
        t = k * MS
        sweep.watch(t, (0.0, 0.0, 2.5e-4 * np.sin(40.0 * np.pi * t)), PRESS, slowed=k < 720)
    assert (sweep.ended, sweep.quiet, sweep.stiffness) == ("slow samples", 100.0, 100.0)


def test_samples_that_go_on_being_slow_end_it():
    sweep = StiffnessSweep(SweepPlan(100.0, 1000.0), MS)
    for k in range(round((SLOW_WITHIN_S + 0.1) / MS)):
        sweep.watch(k * MS, np.zeros(3), PRESS, slowed=True)
    assert (sweep.ended, sweep.quiet) == ("slow samples", 0.0)


def test_energy_that_a_spring_gave_while_it_came_back_is_not_held_against_it():
    """1.2 N over 2 mm, given as the share rises; the same without slow samples ends it."""
    for slowed, ended in ((True, ""), (False, "energy")):
        sweep = StiffnessSweep(SweepPlan(100.0, 1000.0, stage_s=5.0), MS)
        run(sweep, 0.5)
        for k in range(500, 700):
            sweep.watch(k * MS, (0.0, 0.0, 1e-5 * (k - 500)), PRESS, slowed=slowed)
        run(sweep, 0.5, height=lambda t: 2e-3, begin=0.7)
        assert sweep.ended == ended


@pytest.mark.parametrize(
    ("plan", "sentence"),
    [
        ({"first": 200.0, "last": 100.0}, "a sweep goes up from above 0, not from 200 to 100 N/m"),
        ({"first": 0.0, "last": 100.0}, "from above 0, not from 0"),
        ({"first": 1.0, "last": float("inf")}, "not from 1 to inf"),
        ({"first": 1.0, "last": 2.0, "ratio": 1.0}, "above 1 to 1.5 are possible"),
        ({"first": 1.0, "last": 2.0, "stage_s": 0.0}, "stages of 0 s"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(plan, sentence):
    with pytest.raises(ValueError, match=sentence):
        SweepPlan(**plan)
