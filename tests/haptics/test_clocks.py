"""Clocks of devices: one that runs 100 ppm fast or slow, and one that steps, is neither felt nor taken for a fault."""

import numpy as np
import pytest
from haptics_rig import MS, REST, Rig

from haptics.states import EngagementState, Reason

SPEED = 0.1


class Clocked(Rig):
    """A rig whose client reads time from a clock of its own; the servo's ages come from arrival, as they do there."""

    def __init__(self, **options) -> None:
        self.rate, self.offset_ns = 1.0, 10**15
        super().__init__(**options)

    def send(self, position=None, orientation=None, *, tick=True, **options):
        super().send(position, orientation, tick=False, **options)
        self.sample["t_sample"] = round(self.now_ms * self.rate * MS) + self.offset_ns
        if tick:
            self.tick()


@pytest.mark.parametrize("rate", [1.0 + 1e-4, 1.0 - 1e-4])
def test_a_clock_100_ppm_off_changes_velocity_by_as_much_and_nothing_else(rate):
    """A minute of it is 6 ms: far more than a tick, and nobody compares the two clocks."""
    rig = Clocked(ramp_up_ms=20.0)
    rig.rate = rate
    rig.activate()
    rig.now_ms += 60_000.0
    rig.sent_ms = rig.now_ms
    rig.run(30)
    begin = np.array(rig.sample["position"])
    for k in range(200):
        rig.send(begin + (1e-3 * SPEED * (k + 1), 0.0, 0.0))
        assert rig.status == EngagementState.ACTIVE and np.linalg.norm(rig.wrench) <= 1e-9
    assert rig.row["velocity"][0] == pytest.approx(SPEED / rate, rel=1e-5)
    assert rig.row["age_ns"] == 0


@pytest.mark.parametrize("step_ms", [-1e7, -10_000.0, -15.0, -0.4, 0.4, 15.0, 10_000.0, 1e7])
@pytest.mark.parametrize("pressing", [False, True])
def test_a_clock_that_steps_is_no_jump_and_no_kick(step_ms, pressing):
    """Speed, and with it the damper, starts over or stays bounded; the wrench keeps its steps, and forces stay on.

    That a sample of a clock put back looks old is the servo's to judge: see the ages of bridge.servo_loop.
    """
    rig = Clocked(ramp_up_ms=20.0, stiffness=1000.0, damping=10.0, start=(0.0, 0.0, REST + 0.02))
    rig.activate()
    rig.glide((0.0, 0.0, REST + (-0.003 if pressing else 0.02)), step=1e-4)
    begin = np.array(rig.sample["position"])
    last, steps = rig.wrench, []
    for k in range(80):
        if k == 30:
            rig.offset_ns += round(step_ms * MS)
        rig.send(begin + (1e-3 * SPEED * (k + 1), 0.0, 0.0))
        steps.append(float(np.linalg.norm(rig.wrench - last)))
        last = rig.wrench
        assert np.linalg.norm(rig.row["velocity"]) <= rig.chosen["speed_max"]
        assert rig.status == EngagementState.ACTIVE and rig.reason == Reason.RAMP_DONE
    assert max(steps) <= rig.chosen["force_slew"]
    assert rig.row["velocity"][0] == pytest.approx(SPEED, rel=1e-6)
    if not pressing:
        assert max(steps) <= 1e-9


@pytest.mark.parametrize("step_ms", [-15.0, 0.0, 10_000.0])
def test_a_clock_that_steps_hides_no_jump(step_ms):
    """However much time a client claims, no more of it counts than the stale horizon."""
    rig = Clocked(ramp_up_ms=20.0)
    rig.activate()
    rig.offset_ns += round(step_ms * MS)
    most = rig.chosen["speed_max"] * 1e-9 * rig.chosen["stale_after_ns"] + rig.chosen["jump_margin"]
    rig.send(np.array(rig.sample["position"]) + (1.01 * most, 0.0, 0.0))
    rig.run(20)
    assert (rig.status, rig.reason) == (EngagementState.FAULT, Reason.DEVICE_JUMP)


@pytest.mark.parametrize(
    ("lost", "way", "state"), [(3, 0.008, EngagementState.ACTIVE), (0, 0.02, EngagementState.RELEASING)]
)
def test_samples_lost_beside_a_clock_put_back_are_time_to_move(lost, way, state):
    """2 m/s over four ticks is no jump for want of a clock; 20 m/s in one is a jump as ever."""
    rig = Clocked(ramp_up_ms=20.0, start=(0.0, 0.0, 0.1))
    rig.activate((0.0, 0.0, 0.1))
    rig.silence(lost)
    rig.offset_ns -= 10 * MS
    rig.send((way, 0.0, 0.1))
    assert rig.status == state
