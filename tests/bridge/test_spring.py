"""The spring of a render: the nearest place in front of planes, and what the force is there."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from bridge.adapters.spring import local_proxy, local_wrench, nearest_place
from bridge.wire import decode_render, encode_render
from haptics.tables import RECORD

unit = st.tuples(*[st.floats(-1.0, 1.0)] * 3).filter(lambda v: np.linalg.norm(v) > 0.1)
place = st.tuples(*[st.floats(-0.01, 0.01)] * 3)
FLOOR = (0.0, 0.0, 1.0)


def render(planes=(), *, at=(0.0, 0.0, 0.0), slack=(0.0, 0.0, 0.0), pinned=0, stiffness=500.0, damping=0.0):
    """A render through the codec: planes are (normal, offset)."""
    records = np.zeros(1, RECORD)
    output = records[0]["output"]
    output["render_orientation"] = (0.0, 0.0, 0.0, 1.0)
    output["render_position"] = at
    output["slack"] = slack
    output["stiffness"][:3] = stiffness
    output["damping"][:3] = damping
    output["pinned"] = pinned
    output["plane_count"] = len(planes)
    for k, (normal, offset) in enumerate(planes):
        output["planes"][k] = (*normal, offset)
    return decode_render(encode_render(records, 0))


@settings(deadline=None, max_examples=400)
@given(st.lists(st.tuples(unit, st.floats(0.0, 0.005)), max_size=4), place, place)
def test_the_nearest_place_is_in_front_of_all_planes_and_held_by_those_it_is_on(given_planes, stood, goal):
    """The conditions of Karush, Kuhn and Tucker, by the non-negative least squares of scipy."""
    planes = []
    for rough, room in given_planes:
        normal = np.array(rough) / np.linalg.norm(rough)
        planes.append((*normal, float(normal @ stood) - room))
    found = np.array(nearest_place(planes, goal, stood))
    rows = np.array(planes).reshape(-1, 4)
    sines = [np.linalg.norm(np.cross(a, b)) for a, b in itertools.combinations(rows[:, :3], 2)]
    # The daemon counts nearer ones as one plane (haptics/contact_planes.py).
    assume(all(sine > 1.4e-3 for sine in sines))
    ahead = rows[:, :3] @ found - rows[:, 3]
    assert (ahead >= -2e-9).all()
    on = rows[ahead <= 1e-7, :3]
    pulled = found - np.array(goal)
    held = on.T @ nnls(on.T, pulled)[0] if len(on) else np.zeros(3)
    assert held == pytest.approx(pulled, abs=2e-6)


def test_one_two_and_three_planes_have_their_closed_forms():
    x, y, z = np.eye(3)
    goal, stood = (-0.001, -0.002, -0.003), (0.0, 0.0, 0.0)
    assert nearest_place([(*z, 0.0)], goal, stood) == pytest.approx((-0.001, -0.002, 0.0))
    assert nearest_place([(*z, 0.0), (*y, 0.0)], goal, stood) == pytest.approx((-0.001, 0.0, 0.0))
    assert nearest_place([(*z, 0.0), (*y, 0.0), (*x, 0.0)], goal, stood) == pytest.approx((0.0, 0.0, 0.0))
    assert nearest_place([(*z, -0.01)], goal, stood) == goal
    # Two walls with no room between them: nothing is in front of both.
    assert nearest_place([(*z, 0.001), (*-z, 0.001)], goal, stood) == stood


def test_a_pinned_tool_stands_where_it_was():
    told = render([(FLOOR, 0.0)], at=(0.1, 0.2, 0.0), slack=(1.0, 0.0, 0.0), pinned=1)
    assert local_proxy(told, (0.3, 0.0, -0.002)) == (0.1, 0.2, 0.0)
    assert local_wrench(told, (0.1, 0.199, -0.002), (0.0,) * 3)[:3] == pytest.approx((0.0, 0.5, 1.0))


def test_a_floor_holds_across_itself_only():
    told = render([(FLOOR, 0.0)])
    assert local_wrench(told, (0.004, 0.0, -0.002), (0.0,) * 3)[:3] == pytest.approx((0.0, 0.0, 1.0))
    assert local_wrench(told, (0.004, 0.0, 0.002), (0.0,) * 3) == (0.0,) * 6


def test_slack_keeps_what_friction_held():
    told = render([(FLOOR, 0.0)], slack=(-0.001, 0.0, 0.0))
    for x in (0.0, 0.003):
        assert local_wrench(told, (x, 0.0, -0.002), (0.0,) * 3)[:3] == pytest.approx((-0.5, 0.0, 1.0))


def test_the_damper_acts_along_what_is_left_of_the_stretch():
    """Sliding at any speed is free; going in is damped, within the spring's force."""
    told = render([(FLOOR, 0.0)], damping=2.0)
    assert local_wrench(told, (0.0, 0.0, -0.002), (0.5, 0.0, 0.0))[:3] == pytest.approx((0.0, 0.0, 1.0))
    assert local_wrench(told, (0.0, 0.0, -0.002), (0.5, 0.0, -0.1))[:3] == pytest.approx((0.0, 0.0, 1.2))
    assert local_wrench(told, (0.0, 0.0, -0.002), (0.5, 0.0, 5.0))[2] == pytest.approx(0.0)
