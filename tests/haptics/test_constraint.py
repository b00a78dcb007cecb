"""The constraint law: what contacts hold is felt as by the spring, and lag is not felt."""

import itertools
import math

import numpy as np
import pytest
from haptics_rig import (
    CORNERS,
    EPS_ALERT,
    EPS_BREAK,
    EPS_SAFETY,
    FACES,
    REACH,
    TIP_RADIUS,
    Rig,
    block_model,
    plane_model,
)
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from haptics.codes import CONSTRAINT
from haptics.constraint import on_cone
from haptics.fixtures import LINE, make_fixture, set_fixtures
from rtcore.geometry.tree import build_tree
from rtcore.model import ModelBuilder

REST = TIP_RADIUS + EPS_SAFETY
unit = st.tuples(*[st.floats(-1.0, 1.0)] * 3).filter(lambda v: np.linalg.norm(v) > 0.1)


def projected(normals, d) -> np.ndarray:
    """By the kernel, from a table with rows to spare."""
    table = np.full((16, 3), 7.0)
    table[: len(normals)] = normals
    return np.array(on_cone(table, len(normals), tuple(float(x) for x in d)))


@settings(deadline=None, max_examples=300)
@given(st.lists(unit, max_size=8), unit)
def test_the_projection_is_the_nearest_of_the_cone(rows, d):
    """Against the non-negative least squares of scipy, whatever the normals: in the cone, and no farther away."""
    normals = np.array([np.array(row) / np.linalg.norm(row) for row in rows]).reshape(-1, 3)
    found = projected(normals, d)
    if len(normals) == 0:
        assert not found.any()
        return
    sines = [np.linalg.norm(np.cross(a, b)) for a, b in itertools.combinations(normals, 2)]
    # Nearer ones have a test of their own: there scipy's multipliers are as large as one over the sine.
    assume(all(sine == 0.0 or sine > 1e-3 for sine in sines))
    wanted = normals.T @ nnls(normals.T, np.array(d))[0]
    # Candidates are told apart by the squares of their distances: to the root of rounding.
    assert found == pytest.approx(wanted, abs=5e-8)
    assert np.linalg.norm(normals.T @ nnls(normals.T, found)[0] - found) <= 1e-9


def test_one_two_and_three_normals_have_their_closed_forms():
    x, y, z = np.eye(3)
    assert projected([z], (1.0, 2.0, 3.0)).tolist() == [0.0, 0.0, 3.0]
    assert projected([z], (1.0, 2.0, -3.0)).tolist() == [0.0, 0.0, 0.0]
    assert projected([x, z], (1.0, 2.0, 3.0)).tolist() == [1.0, 0.0, 3.0]
    assert projected([x, z], (-1.0, 2.0, 3.0)).tolist() == [0.0, 0.0, 3.0]
    assert projected([x, y, z], (1.0, 2.0, 3.0)).tolist() == [1.0, 2.0, 3.0]
    assert projected([x, y, z], (1.0, -2.0, 3.0)).tolist() == [1.0, 0.0, 3.0]
    # Of a wedge of 60 degrees, the ray that is nearer; of an obtuse one the inside, though d is against one of them.
    tilted = np.array((math.sin(math.pi / 3.0), 0.0, math.cos(math.pi / 3.0)))
    assert projected([z, tilted], (-1.0, 0.0, 2.0)) == pytest.approx((0.0, 0.0, 2.0))
    wide = np.array((math.sin(2.5), 0.0, math.cos(2.5)))
    inside = z + 0.5 * wide
    assert inside @ wide < 0.0
    assert projected([z, wide], inside) == pytest.approx(inside)


@pytest.mark.parametrize("apart", 10.0 ** -np.arange(3.0, 16.0))
def test_normals_that_nearly_agree_span_the_face_that_they_do(apart):
    """Against the exact answer: in the plane of x and z, between the two if d is, else on the nearer one of them. From
    1e-8 on they count as one."""
    x, y, z = np.eye(3)
    a, b = z, z + apart * x
    for share in (-1.0, 0.25, 0.5, 2.0):
        d = z + share * apart * x + 0.3 * y
        wanted = z + np.clip(share, 0.0, 1.0) * apart * x
        assert projected([a, b / np.linalg.norm(b)], d) == pytest.approx(wanted, abs=1e-8 + 4.0 * apart**2)


def test_two_walls_of_a_gap_hold_nothing_along_it():
    """Opposite normals, to rounding."""
    x, _, z = np.eye(3)
    for off in (0.0, 1e-300, 1e-16, 1e-12):
        assert projected([z, off * x - z], (1.0, 0.5, 2.0)) == pytest.approx((0.0, 0.0, 2.0), abs=1e-9)
        assert projected([z, off * x - z], (1.0, 0.5, -2.0)) == pytest.approx((0.0, 0.0, -2.0), abs=1e-9)


def test_it_is_continuous_in_the_vector():
    """A projection on a convex set goes no farther than what is projected."""
    random = np.random.default_rng(4)
    for _ in range(200):
        normals = random.normal(size=(5, 3))
        normals /= np.linalg.norm(normals, axis=1)[:, None]
        a = random.normal(size=3)
        b = a + 1e-6 * random.normal(size=3)
        assert np.linalg.norm(projected(normals, a) - projected(normals, b)) <= np.linalg.norm(a - b) * (1.0 + 1e-9)


def test_what_is_not_finite_stays_so_and_is_found_by_the_limits():
    assert not np.isfinite(projected(np.eye(3), (math.nan, 0.0, 0.0))).all()


# Through the whole tick. ----------------------------------------------------------------------------------------------


def corner_model(friction: float = 0.0):
    """A room whose corner is the origin: walls x = 0, y = 0, z = 0, each facing to the inside of it."""
    builder = ModelBuilder()
    room = builder.add_mesh(*build_tree(0.5 * (CORNERS + 1.0), FACES[:, ::-1]))
    builder.add_body(room, friction_static=friction, friction_kinetic=friction)
    return builder.build(TIP_RADIUS, (0.0, 0.0, 0.0), EPS_ALERT, EPS_SAFETY, EPS_BREAK)


def both(model, **options) -> tuple[Rig, Rig]:
    """The same layer by the two laws."""
    options = {"stiffness": 800.0, "damping": 0.0, "passivity": False, "ramp_up_ms": 5.0} | options
    return Rig(model, law="constraint", **options), Rig(model, law="spring", **options)


@pytest.mark.parametrize("model", [plane_model(), plane_model(friction=0.5)])
def test_on_a_plane_it_is_the_spring(model):
    """At rest, dragged along it, with friction and without."""
    pair = both(model)
    for rig in pair:
        rig.activate((0.0, 0.0, 0.1))
        rig.press(0.004, 120)
    held, sprung = pair
    assert held.wrench == pytest.approx(sprung.wrench, abs=1e-9)
    assert held.wrench[2] == pytest.approx(800.0 * 0.004, rel=1e-6)
    assert held.row["conservative"][:3] == pytest.approx(held.wrench[:3], abs=1e-12)
    for _ in range(40):
        for rig in pair:
            rig.send(np.array(rig.sample["position"]) + (2e-4, 0.0, 0.0))
        assert held.wrench == pytest.approx(sprung.wrench, abs=1e-5)


@pytest.mark.parametrize(
    "depth", [(0.003, -0.1, 0.002), (0.003, 0.002, 0.001), (-0.1, -0.1, 0.003), (0.001, 0.004, -0.1)]
)
def test_in_an_edge_and_in_a_corner_it_is_the_spring_too(depth):
    """Depths under each of three walls, negative: away from it."""
    pair = both(corner_model(), start=(0.2, 0.2, 0.2))
    for rig in pair:
        rig.activate((0.2, 0.2, 0.2))
        rig.glide(REST - np.array(depth), step=1e-3)
        rig.run(30)
    held, sprung = pair
    wanted = 800.0 * np.maximum(depth, 0.0)
    assert held.wrench[:3] == pytest.approx(wanted, abs=1e-4)
    assert held.wrench == pytest.approx(sprung.wrench, abs=1e-9)


def test_it_steps_no_farther_than_the_slew_limit_where_walls_come_and_go():
    rig, _ = both(corner_model(0.3), start=(0.2, 0.2, 0.2))
    rig.activate((0.2, 0.2, 0.2))
    rig.glide((0.02, 0.02, 0.02), step=1e-3)
    random = np.random.default_rng(1)
    place, speed, last, most = np.array((0.02, 0.02, 0.02)), np.zeros(3), rig.wrench, 0.0
    for _ in range(3000):
        speed = 0.98 * speed + 3e-5 * random.normal(size=3) - 1e-4 * (place - 0.004)
        place = place + speed
        rig.send(place)
        step = float(np.linalg.norm(rig.wrench - last))
        assert step <= rig.chosen["force_slew"] * (1.0 + 1e-12)
        most = max(most, step / (800.0 * max(float(np.linalg.norm(speed)), 1e-5)))
        last = rig.wrench
    # Hardly more than the spring makes of the hand's own way, wherever contacts begin and end.
    assert most <= 3.0


def test_lag_is_not_felt_but_by_the_spring():
    """A tool that is held up by a lack of work in free motion: the spring drags, constraints do not."""
    for rig in both(plane_model(height=-1.0)):
        rig.activate((0.0, 0.0, 0.1))
        rig.record[0]["budget"]["passes"] = 0
        for k in range(40):
            rig.send((1e-3 * k, 0.0, 0.1))
        lag = float(np.linalg.norm(rig.proxy - rig.output["device_position"]))
        assert lag > 1e-3
        felt = float(np.linalg.norm(rig.output["coupling_wrench"][:3]))
        assert felt == (0.0 if rig.chosen["law"] == CONSTRAINT else pytest.approx(800.0 * lag, rel=1e-9))
        # Who closes the spring by himself is at rest too.
        if rig.chosen["law"] == CONSTRAINT:
            assert rig.output["render_position"] == pytest.approx(rig.sample["position"], abs=1e-12)


def test_lag_beside_a_wall_leaves_what_the_wall_holds():
    """Pressed, and dragged with too little work: the normal part as ever."""
    held, _ = both(plane_model())
    held.activate((0.0, 0.0, 0.1))
    held.press(0.003, 120)
    held.record[0]["budget"]["passes"] = 0
    lagged = 0.0
    for _ in range(10):
        held.send(np.array(held.sample["position"]) + (1e-3, 0.0, 0.0))
        lagged = max(lagged, float(held.output["device_position"][0] - held.proxy[0]))
        assert held.output["coupling_wrench"][:2] == pytest.approx((0.0, 0.0), abs=1e-9)
        assert held.output["coupling_wrench"][2] == pytest.approx(800.0 * 0.003, rel=1e-3)
    assert lagged == pytest.approx(0.01, rel=1e-3)


def test_a_hard_fixture_is_a_constraint():
    rig, _ = both(plane_model())
    set_fixtures(rig.settings, [make_fixture(LINE, (0.0, 0.0, 0.0))])
    rig.activate((0.0, 0.0, 0.1))
    rig.glide((0.003, -0.002, 0.003))
    rig.run(20)
    assert rig.wrench[:3] == pytest.approx(800.0 * (rig.proxy - np.array((0.003, -0.002, 0.003))), rel=1e-9)
    assert rig.wrench[0] == pytest.approx(-2.4, rel=1e-6) and rig.wrench[2] > 1.0


def test_a_mesh_tool_at_rest_feels_the_spring_and_its_rotation():
    pair = both(block_model(turning=REACH**2), card="virtuose6d", rotational_stiffness=5.0)
    for rig in pair:
        rig.activate((0.0, 0.0, 0.1))
        rig.glide((0.0, 0.0, 0.008))
        tilt = np.array((math.sin(0.02), 0.0, 0.0, math.cos(0.02)))
        for k in range(100):
            turn = np.array((math.sin(0.0002 * k), 0.0, 0.0, math.cos(0.0002 * k)))
            rig.send(None, turn)
        rig.run(200, None, orientation=tilt)
    held, sprung = pair
    assert held.wrench[:3] == pytest.approx(sprung.wrench[:3], abs=2e-3)
    assert held.wrench[3:] == pytest.approx(sprung.wrench[3:], abs=2e-4)
    assert held.wrench[2] > 1.0 and abs(held.wrench[3]) > 0.01


def test_a_carried_tool_that_waits_feels_what_is_in_its_way():
    """Its contacts do not push; where it is stopped all that are listed hold, and the way along them is not felt."""
    rig, _ = both(block_model(), card="virtuose6d")
    rig.activate((0.0, 0.0, 0.1))
    rig.glide((0.0, 0.0, 0.008))
    rig.run(100)
    apart = rig.proxy - rig.output["device_position"]
    assert rig.output["report"]["contact_count"] > 0
    assert rig.wrench[:3] == pytest.approx(800.0 * np.array((0.0, 0.0, apart[2])), abs=1e-9)
    assert apart[2] > 1e-3
