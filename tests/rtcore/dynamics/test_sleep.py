"""Bodies that sleep: nothing is different for it, and everything that matters wakes them."""

import numpy as np
import pytest
from bodies_rig import GRAVITY, Bodies
from closed_meshes import box
from mesh_tool_rig import EPS

from haptics.posing import pose_body
from rtcore.dynamics.sleep import QUIET
from rtcore.tables import HELD, KINEMATIC

HALF = 0.02
SAFETY = EPS[1]
DT = 1e-3


def stack(count: int = 3, falling: bool = False) -> Bodies:
    """Cubes on each other on the floor; one more in the air beside their middle."""
    rig = Bodies()
    rig.floor()
    for k in range(count):
        rig.add(box((HALF,) * 3), (0.0, 0.0, HALF + SAFETY + k * (2.0 * HALF + SAFETY)), mass=1.0 + k)
    if falling:
        rig.add(box((HALF,) * 3), (0.01, 0.005, 2.0 * HALF * (count + 2)), mass=0.7, turn=(0.1, 0.2, 0.0, 0.97))
    return rig.build()


def movement(rig: Bodies) -> bytes:
    """Where the bodies are and how they move, to the bit."""
    velocities = rig.state.velocities
    parts = [rig.state.poses, *(velocities[key] for key in ("linear", "angular", "momentum"))]
    return b"".join(part.tobytes() for part in parts)


def test_what_rests_falls_asleep_and_is_reported_as_before():
    rig = stack().go(QUIET)
    awake = rig.report.copy()
    assert awake["asleep"] == 0 and awake["islands"] == 1
    rig.go()
    asleep = rig.report
    assert asleep["asleep"] == asleep["body_contacts"] == awake["body_contacts"] == 12
    assert asleep["islands"] == asleep["sweeps_used"] == 0
    assert asleep["body_residual"] == awake["body_residual"] > 0.0
    assert asleep["body_gap"] == awake["body_gap"]
    assert asleep["energy"] == awake["energy"]


def test_a_run_with_sleep_is_that_without():
    """A cube falls on a stack that sleeps and wakes it: the same to the bit until it lands, then to what a solve leaves
    undone; the pushes of an answer that is found anew in every step wander in their last digits.
    """
    one, other = stack(falling=True), stack(falling=True)
    slept = 0
    for _ in range(500):
        one.go()
        other.state.velocities["quiet"] = 0
        other.go()
        assert other.report["asleep"] == 0
        if slept > 0 and one.report["asleep"] == 0:
            break
        assert movement(one) == movement(other)
        slept += one.report["asleep"] > 0
    assert slept > 50
    for key in ("linear", "angular"):
        assert one.state.velocities[key] == pytest.approx(other.state.velocities[key], abs=1e-9)
    assert np.linalg.norm(one.state.velocities["linear"][3]) > 0.01, "it was hit"
    one.go(1500)
    assert one.report["asleep"] == one.report["body_contacts"] > 12


def test_a_body_that_is_given_a_velocity_wakes_all_that_it_lies_on():
    rig = stack().go(QUIET + 5)
    assert rig.report["asleep"] == 12
    rig.state.velocities["linear"][3] = (0.0, 0.0, 0.3)
    rig.go()
    assert rig.report["asleep"] == 0
    assert rig.speed(3)[2] == pytest.approx(0.3 - GRAVITY * DT, abs=1e-9)


def test_a_plate_that_starts_takes_what_sleeps_on_it_along():
    rig = Bodies()
    plate = rig.add(box((0.1, 0.1, 0.01)), (0.0, 0.0, 0.0), kind=KINEMATIC, friction=0.6)
    cube = rig.add(box((HALF,) * 3), (0.0, 0.0, 0.01 + HALF + SAFETY), mass=1.0, friction=0.6)
    rig.build().go(QUIET + 5)
    assert rig.report["asleep"] == 4
    rig.state.velocities["linear"][plate] = (0.1, 0.0, 0.0)
    rig.go(200)
    assert rig.speed(cube) == pytest.approx([0.1, 0.0, 0.0], abs=1e-6)


def test_what_loses_its_support_falls():
    rig = Bodies()
    block = rig.add(box((0.1, 0.1, 0.01)), (0.0, 0.0, 0.0), kind=HELD)
    cube = rig.add(box((HALF,) * 3), (0.0, 0.0, 0.01 + HALF + SAFETY), mass=1.0)
    rig.build().go(QUIET + 5)
    assert rig.report["asleep"] == 4
    assert pose_body(rig.model, rig.state, np.array([block, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])) == 0
    rig.go(10)
    assert rig.report["asleep"] == 0
    assert rig.speed(cube)[2] == pytest.approx(-10.0 * GRAVITY * DT, abs=1e-12)


def test_the_tool_pushes_what_sleeps():
    rig = Bodies(tool=box((HALF,) * 3), start=(-0.1, 0.0, HALF + 0.01))
    rig.floor()
    cube = rig.add(box((HALF,) * 3), (0.0, 0.0, HALF + SAFETY), mass=0.2)
    rig.build().hold(2000.0)
    rig.aim((-0.1, 0.0, HALF + 0.01))
    rig.go(QUIET + 5)
    assert rig.report["asleep"] == 4
    for k in range(300):
        rig.aim((-0.1 + 3e-4 * k, 0.0, HALF + 0.01))
        rig.go()
    pushed = -0.1 + 3e-4 * 299 + 2.0 * HALF
    slides = 0.3**2 / (2.0 * 0.5 * GRAVITY)
    assert pushed - 2e-3 < rig.place(cube)[0] < pushed + slides
    assert not rig.faults()
