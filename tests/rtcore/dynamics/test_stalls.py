"""Groups that hardly come forward: how steps are counted, and what a shorter one is. See also the piles of
tests/rtcore/test_moving_bodies.py, some of which would stop in the air without.
"""

import math

import numpy as np
import pytest
from bodies_rig import GRAVITY, Bodies
from closed_meshes import box

from rtcore.dynamics.rigid_body import BODY_VELOCITY
from rtcore.dynamics.stalls import HARDLY, MOST, note_stall

DT = 1e-3
HALF = 0.02


def test_steps_that_come_forward_undo_those_that_do_not():
    velocity = np.zeros(1, BODY_VELOCITY)[0]
    counts = []
    for share in [0.0, 0.5 * HARDLY, 0.0, 1.0, HARDLY, 0.3, 0.9]:
        note_stall(velocity, share)
        counts.append(int(velocity["stalls"]))
    assert counts == [1, 2, 3, 2, 1, 0, 0]
    for _ in range(50):
        note_stall(velocity, 0.0)
    assert velocity["stalls"] == MOST + 1


def falling(apart: float) -> Bodies:
    """Two cubes in the air side by side."""
    rig = Bodies()
    for x in (0.0, 2.0 * HALF + apart):
        rig.add(box((HALF,) * 3), (x, 0.0, 1.0), mass=1.0)
    return rig.build()


def test_a_shorter_step_is_a_part_of_the_fall():
    """Half of the time, half of the height of the mean velocity; of the kick it keeps what that height pays for."""
    rig = falling(0.5)
    rig.state.velocities["stalls"][0] = 2
    rig.go()
    assert rig.report["body_fraction"] == 0.5 and rig.report["stopped"] == 1
    assert rig.speed(0)[2] == pytest.approx(-math.sqrt(0.5) * GRAVITY * DT, rel=1e-12)
    assert rig.place(0)[2] - 1.0 == pytest.approx(-0.25 * GRAVITY * DT**2, rel=1e-9)
    assert rig.speed(1)[2] == pytest.approx(-GRAVITY * DT, rel=1e-12)
    assert rig.state.velocities["stalls"][0] == 1
    rig.go()
    assert rig.report["body_fraction"] == 1.0


def test_bodies_that_may_meet_take_steps_of_one_length():
    rig = falling(1e-4)
    rig.state.velocities["stalls"][0] = 4
    rig.go()
    assert rig.report["body_fraction"] == 0.125 and rig.report["stopped"] == 2
    assert rig.place(0)[2] == rig.place(1)[2]


def test_a_hand_gives_a_group_no_more_than_its_work_on_the_way_that_is_left():
    """A cube that is kept from coming forward is pushed by up to 20 N: nothing may come of it but force times way."""
    rig = Bodies(tool=box((HALF,) * 3), start=(-2.0 * HALF - 1e-4, 0.0, 0.0), gravity=0.0)
    cube = rig.add(box((HALF,) * 3), (0.0, 0.0, 0.0), mass=0.5)
    rig.build().hold(2000.0)
    rig.aim((-2.0 * HALF + 0.01, 0.0, 0.0))
    work = 0.0
    for _ in range(50):
        rig.state.velocities["stalls"][cube] = MOST + 1
        before = rig.place(cube)[0]
        rig.go()
        assert rig.report["body_fraction"] <= 2.0**-MOST
        work += 20.0 * (rig.place(cube)[0] - before)
        assert rig.energy() <= work + 1e-12
    assert rig.energy() > 0.0
    rig.state.velocities["stalls"][cube] = 0
    rig.go(50)
    assert rig.speed(cube)[0] > 0.1, "it is free again"
