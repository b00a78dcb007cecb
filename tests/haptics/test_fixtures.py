"""Fixtures: hard ones hold the tool at the nearest allowed place to the image, soft ones are springs."""

import itertools
import math

import numpy as np
import pytest
from haptics_rig import REACH, REST, TIP_RADIUS, Rig, block_model, plane_model
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from haptics.cards import load_card
from haptics.fixtures import (
    BALL,
    BOX,
    CONE,
    FIXTURE_SHARE,
    HALF_SPACE,
    LINE,
    PLANE,
    TUBE,
    ball_entry,
    box_entry,
    fixture_force,
    make_fixture,
    nearest_convex,
    set_fixtures,
)
from haptics.limits import SLEW_LIMITED
from haptics.states import CommandKind, Reason
from haptics.tables import FIXTURE
from haptics.touch import make_touch
from rtcore.dynamics.inertia import body_inertia

AT = (0.01, -0.02, 0.03)
ASLANT = (1.0, -2.0, 2.0)
UNIT = np.array(ASLANT) / 3.0
TURN = Rotation.from_rotvec((0.4, -0.7, 1.1))
SHAPES = {
    PLANE: {"direction": ASLANT},
    LINE: {"direction": ASLANT},
    TUBE: {"direction": ASLANT, "radius": 0.012},
    CONE: {"direction": ASLANT, "angle": 0.6},
    HALF_SPACE: {"direction": ASLANT},
    BALL: {"radius": 0.02},
    BOX: {"half": (0.01, 0.02, 0.015), "orientation": TURN.as_quat()},
}
AIR = plane_model(height=-1.0)
"""Nothing near."""
CONVEX = (PLANE, LINE, TUBE, CONE, HALF_SPACE)
places = st.tuples(*[st.floats(-0.06, 0.06)] * 3)


def record(fixture: np.ndarray):
    """A row as kernels take it."""
    table = np.zeros(1, FIXTURE)
    table[0] = fixture[0]
    return table[0]


def made(kind: int, at=AT, **more) -> np.ndarray:
    return make_fixture(kind, at, **(SHAPES[kind] | more))


def outside(kind: int, place, at=AT) -> float:
    """How far (m) a place is from what a fixture allows; for BALL and BOX how deep it is in what is forbidden."""
    offset = np.array(place) - at
    along = float(offset @ UNIT)
    away = float(np.linalg.norm(offset - along * UNIT))
    if kind == PLANE:
        return abs(along)
    if kind == LINE:
        return away
    if kind == TUBE:
        return max(away - 0.012, 0.0)
    if kind == HALF_SPACE:
        return max(-along, 0.0)
    if kind == CONE:
        # Distance in the half plane (along, away) from the ray at the angle, or from the apex.
        side = along * math.cos(0.6) + away * math.sin(0.6)
        if away * math.cos(0.6) <= along * math.sin(0.6):
            return 0.0
        return math.hypot(along, away) if side <= 0.0 else away * math.cos(0.6) - along * math.sin(0.6)
    if kind == BALL:
        return max(0.02 - float(np.linalg.norm(offset)), 0.0)
    over = np.array(SHAPES[BOX]["half"]) - np.abs(TURN.inv().apply(offset))
    return max(float(over.min()), 0.0)


def held(kinds, model=None, *, card="omega6", start=(0.0, 0.0, 0.1), at=AT, more=None, **options) -> Rig:
    """A rig with hard fixtures of these kinds."""
    options = {"stiffness": 500.0, "damping": 0.0, "ramp_up_ms": 5.0} | options
    rig = Rig(AIR if model is None else model, card, start=start, **options)
    set_fixtures(rig.settings, [made(kind, at, **(more or {})) for kind in kinds])
    rig.touch = make_touch(rig.settings)
    return rig


def walk(rig: Rig, steps: int, seed: int, reach: float = 0.06, look=None) -> None:
    """The device walks about AT at hand speeds, smoothly, and something is looked at after each tick."""
    random = np.random.default_rng(seed)
    place, speed = np.array(rig.sample["position"]), np.zeros(3)
    for _ in range(steps):
        speed = 0.98 * speed + 2e-4 * random.normal(size=3) - 1e-3 * (place - AT)
        place = AT + np.clip(place + speed - AT, -reach, reach)
        rig.send(place)
        look()


# Nearest places. ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", CONVEX)
@settings(deadline=None, max_examples=60)
@given(place=places, others=st.lists(places, min_size=5, max_size=5))
def test_the_place_it_is_led_to_is_allowed_and_the_nearest(kind, place, others):
    """Allowed, as far away as the closed form says, and every other allowed place is behind it (a convex set)."""
    fixture = record(made(kind))
    nearest = np.array(nearest_convex(fixture, place))
    assert outside(kind, nearest) <= 1e-15
    assert np.linalg.norm(nearest - place) == pytest.approx(outside(kind, place), abs=1e-15)
    for other in others:
        allowed = np.array(nearest_convex(fixture, other))
        assert (np.array(place) - nearest) @ (allowed - nearest) <= 1e-16


def first_inside(kind: int, start, end) -> float | None:
    """Share of a way after which it is in a ball or box, from 20001 places on it."""
    shares = np.linspace(0.0, 1.0, 20001)
    way = np.array(start) + shares[:, None] * (np.array(end) - start)
    offset = way - AT
    if kind == BALL:
        depth = 0.02 - np.linalg.norm(offset, axis=1)
    else:
        depth = (np.array(SHAPES[BOX]["half"]) - np.abs(TURN.inv().apply(offset))).min(axis=1)
    deep = np.flatnonzero(depth > 0.0)
    return float(shares[deep[0]]) if len(deep) else None


faces = st.tuples(*[st.sampled_from((-1.0, -0.5, 0.0, 0.5, 1.0))] * 3)
short = st.tuples(*[st.floats(-0.005, 0.005)] * 3)


@pytest.mark.parametrize(("kind", "entry"), [(BALL, ball_entry), (BOX, box_entry)])
@settings(deadline=None, max_examples=100)
@given(start=places, end=places, face=faces, near=short, step=short)
def test_the_first_touch_of_a_way_is_found(kind, entry, start, end, face, near, step):
    """Against places on the way; the plane there has the start before it and the forbidden shape behind it.

    Ways from anywhere, and short ones that begin near faces, edges and corners: some go away from the shape.
    """
    first_touch(kind, entry, start, end)
    half = np.array(SHAPES[BOX]["half"]) if kind == BOX else np.full(3, 0.02 / math.sqrt(3.0))
    beside = AT + TURN.apply(half * face) + near
    first_touch(kind, entry, tuple(beside), tuple(beside + step))


def first_touch(kind, entry, start, end) -> None:
    """Judge what is said of one way."""
    if outside(kind, start) > 0.0:
        return
    enters, point, normal = entry(record(made(kind)), start, end)
    found = first_inside(kind, start, end)
    if not enters:
        # A corner may be cut between two of the places.
        assert found is None
        return
    normal = np.array(normal)
    assert np.linalg.norm(normal) == pytest.approx(1.0, abs=1e-12)
    assert (np.array(start) - point) @ normal >= -1e-12 and (np.array(end) - point) @ normal <= 1e-12
    if found is not None:
        way = np.array(end) - start
        at = np.array(start) + found * way
        assert (at - point) @ normal <= 1e-12
        assert abs((at - point) @ normal) <= np.linalg.norm(way) / 20000 + 1e-12
    if kind == BALL:
        assert np.linalg.norm(np.array(point) - AT) == pytest.approx(0.02, abs=1e-12)
    else:
        corners = TURN.apply(
            np.array(SHAPES[BOX]["half"]) * [[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]
        )
        assert np.max((corners + AT - point) @ normal) <= 1e-12


def test_a_thin_plate_that_lies_behind_is_not_entered():
    """Beside a face a way leads away, along and in; what lies behind its beginning is no entry."""
    plate = record(make_fixture(BOX, (0.0, 0.0, 0.0), half=(0.05, 0.05, 0.001)))
    above = (0.0, 0.0, 0.0015)
    for end in ((0.0, 0.0, 0.0019), (0.0, 0.0, 0.0025), (0.0, 0.0, 0.0055), (0.02, 0.0, 0.0015), above):
        assert not box_entry(plate, above, end)[0]
    cube = record(make_fixture(BOX, (0.0, 0.0, 0.0), half=(0.01, 0.01, 0.01)))
    assert not box_entry(cube, (0.01001, 0.0, 0.0), (0.0101, 0.05, 0.0))[0]
    assert box_entry(plate, above, (0.0, 0.0, 0.0)) == (True, (0.0, 0.0, 0.001), (0.0, 0.0, 1.0))
    on_it = (0.01, 0.0, 0.001)
    assert box_entry(plate, on_it, (0.01, 0.0, 0.0)) == (True, (0.0, 0.0, 0.001), (0.0, 0.0, 1.0))
    assert not box_entry(plate, on_it, (0.01, 0.0, 0.005))[0]
    # By far a rounding outside, and on into it.
    nearly = (0.01, 0.0, math.nextafter(0.001, 1.0))
    assert box_entry(plate, nearly, (0.01, 0.0, -0.05)) == (True, (0.0, 0.0, 0.001), (0.0, 0.0, 1.0))


def test_a_hand_that_leaves_a_thin_forbidden_plate_takes_the_tool_along():
    """Pressed against a plate of 2 mm and lifted off it within a tick: the goal is where the hand is."""
    rig = Rig(AIR, "omega6", start=(0.0, 0.0, 0.03), stiffness=500.0, damping=0.0, ramp_up_ms=5.0)
    set_fixtures(rig.settings, [make_fixture(BOX, (0.0, 0.0, 0.0), half=(0.05, 0.05, 0.001))])
    rig.touch = make_touch(rig.settings)
    rig.command(CommandKind.LEASE)
    rig.glide((0.0, 0.0, 0.0015), step=2e-3)
    for height in (0.0055, 0.0015, 0.0036):
        rig.send((0.0, 0.0, height))
        assert rig.output["goal_position"][2] == pytest.approx(height, abs=1e-12)


# Hard ones. -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SHAPES)
def test_the_tool_never_leaves_one(kind):
    """A random walk through the whole tick: the tool is in it, and where it is convex at the nearest place of all."""
    rig = held([kind], start=tuple(np.array(AT) + (0.0, 0.0, 0.04)))
    rig.put(CommandKind.LEASE)
    rig.send()
    worst, off, led = 0.0, 0.0, 0

    def look():
        nonlocal worst, off, led
        worst = max(worst, outside(kind, rig.proxy))
        image = np.array(rig.output["device_position"])
        assert image == pytest.approx(np.array(rig.sample["position"]), abs=1e-15)
        led += outside(kind, image) > 1e-6
        if kind in CONVEX:
            off = max(off, abs(np.linalg.norm(image - rig.proxy) - outside(kind, image)))

    walk(rig, 3000, seed=kind, look=look)
    assert led > 50
    assert worst <= 1e-12
    # The mechanics leave the tip where it is when it has less than 1e-4 eps_alert to go.
    assert off <= 1e-8 + 1e-12


def test_a_line_in_a_plane_and_a_tube_hold_together():
    """Square to each other, they hold at once; with a ball on the way, on the side of it where the tool is."""
    rig = held([], start=(0.0, 0.0, 0.1))
    fixtures = [
        make_fixture(PLANE, (0.0, 0.0, 0.1)),
        make_fixture(TUBE, (0.0, 0.0, 0.1), radius=0.02),
        make_fixture(BALL, (0.0, 0.0, 0.1), radius=0.005),
    ]
    set_fixtures(rig.settings, fixtures)
    rig.command(CommandKind.LEASE)
    rig.run(2, (0.01, 0.0, 0.1))

    def look():
        x, y, z = rig.proxy
        assert abs(z - 0.1) <= 1e-12 and math.hypot(x, y) <= 0.02 + 1e-12 and math.hypot(x, y) >= 0.005 - 1e-12

    random = np.random.default_rng(2)
    place, speed = np.array((0.01, 0.0, 0.1)), np.zeros(3)
    for _ in range(3000):
        speed = 0.98 * speed + 2e-4 * random.normal(size=3) - 1e-3 * (place - (0.0, 0.0, 0.1))
        place = place + speed
        rig.send(place)
        look()


@pytest.mark.parametrize("degrees", [40.0, 60.0, 90.0, 120.0])
def test_a_wedge_of_two_half_spaces_leads_to_the_nearest_place_of_both(degrees):
    """Their normals are so many degrees apart: the edge where the image is within the cone of both, else one face."""
    rig = held([], start=(0.0, 0.0, 0.1))
    half = math.radians(degrees) / 2.0
    normals = np.array([(math.sin(half), 0.0, math.cos(half)), (-math.sin(half), 0.0, math.cos(half))])
    set_fixtures(rig.settings, [make_fixture(HALF_SPACE, (0.0, 0.0, 0.05), direction=n) for n in normals])
    rig.command(CommandKind.LEASE)
    rig.send()
    for shares in ((1.0, 1.0), (0.2, 1.0), (3.0, 0.1)):
        rig.glide(np.array((0.0, 0.01, 0.05)) - 0.01 * (np.array(shares) @ normals), step=2e-3)
        rig.send()
        assert rig.proxy == pytest.approx((0.0, 0.01, 0.05), abs=1e-8)
    image = np.array((0.0, 0.0, 0.05)) - 0.02 * normals[0] + 0.05 * np.array((math.cos(half), 0.0, -math.sin(half)))
    if (image - (0.0, 0.0, 0.05)) @ normals[1] > 0.0:
        return
    # Seen from here only the second one is in the way, or the edge.
    rig.glide(image, step=2e-3)
    rig.send()
    offset = image - (0.0, 0.0, 0.05)
    weights = np.linalg.solve(normals @ normals.T, -normals @ offset)
    if (weights >= 0.0).all():
        assert rig.proxy == pytest.approx((0.0, 0.0, 0.05), abs=1e-8)
    else:
        k = int(np.argmin(normals @ offset))
        assert rig.proxy == pytest.approx(image - (offset @ normals[k]) * normals[k], abs=1e-8)


def test_of_two_that_contradict_each_other_the_last_one_holds():
    """Two planes a centimetre apart: nothing grows, and where the image is beside them counts."""
    rig = held([], start=(0.0, 0.0, 0.1))
    set_fixtures(rig.settings, [make_fixture(PLANE, (0.0, 0.0, z)) for z in (0.05, 0.06)])
    rig.command(CommandKind.LEASE)
    for x in np.linspace(0.0, 0.05, 60):
        rig.send((x, 0.0, 0.1 - x))
        assert rig.proxy == pytest.approx((x, 0.0, 0.06), abs=1e-12)


@pytest.mark.parametrize("kind", [BALL, BOX])
def test_a_hand_that_presses_through_the_middle_leaves_the_tool_on_its_side(kind):
    """In at the top, through the middle, out at the bottom: the tool stays, and the force is the spring to there."""
    more = {"half": (0.02, 0.02, 0.02), "orientation": (0.0, 0.0, 0.0, 1.0)} if kind == BOX else {}
    # Beside the middle, where a projection to the nearest surface would pop to a side; from there a ball is slid round.
    aside = 1e-3 if kind == BOX else 0.0
    middle = np.array((0.0, 0.0, 0.2))
    rig = held([kind], start=(0.0, 0.0, 0.225), at=middle, more=more, passivity=False)
    rig.activate((0.0, 0.0, 0.225))
    last = rig.wrench
    for z in np.arange(0.225, 0.16, -2e-4):
        rig.send((aside, 0.0, z))
        assert np.linalg.norm(rig.wrench - last) <= rig.chosen["force_slew"] * (1.0 + 1e-12)
        last = rig.wrench
        assert rig.proxy == pytest.approx((aside, 0.0, max(z, 0.22)), abs=1e-8)
    stretch = rig.proxy - rig.output["device_position"]
    assert rig.output["coupling_wrench"][:3] == pytest.approx(500.0 * stretch, rel=1e-12)


def test_a_hand_that_passes_beside_the_middle_of_a_ball_makes_the_tool_slide_round():
    """On the ball all the way, never through, in a tick by as much as the image is away from the middle: along the
    plane that touches, r at most, and back to the ball from the height r^2 / 2 R over it where that led before."""
    middle = np.array((0.0, 0.0, 0.2))
    rig = held([BALL], start=(0.0, 0.0, 0.225), at=middle, passivity=False)
    rig.activate((0.0, 0.0, 0.225))
    rig.glide((1e-3, 0.0, 0.221))
    last, wrench = np.array(rig.proxy), rig.wrench
    for z in np.arange(0.22, 0.185, -2e-4):
        rig.send((1e-3, 0.0, z))
        image = np.array((1e-3, 0.0, z))
        r = np.linalg.norm(image - middle)
        assert 0.02 - 1e-12 <= np.linalg.norm(rig.proxy - middle) <= 0.02 + r**2 / 0.04
        assert np.linalg.norm(rig.proxy - last) <= r + r**2 / 0.04
        assert np.linalg.norm(rig.wrench - wrench) <= rig.chosen["force_slew"] * (1.0 + 1e-12)
        last, wrench = np.array(rig.proxy), rig.wrench
    rig.run(200)
    assert rig.proxy == pytest.approx(middle + 0.02 * (image - middle) / np.linalg.norm(image - middle), abs=1e-7)


def test_the_tool_slides_round_a_ball_to_the_side_where_the_image_is():
    """Slowly, on a circle within it: the tool is where the radius through the image meets the ball."""
    middle = np.array((0.0, 0.0, 0.2))
    rig = held([BALL], start=(0.0, 0.0, 0.225), at=middle)
    rig.activate((0.0, 0.0, 0.225))
    rig.glide((0.0, 0.0, 0.215))
    last = np.array(rig.proxy)
    for angle in np.linspace(0.0, 2.0 * math.pi, 2000):
        out = np.array((math.sin(angle), 0.0, math.cos(angle)))
        rig.send(middle + 0.015 * out)
        assert np.linalg.norm(rig.proxy - middle - 0.02 * out) <= 3e-5
        assert np.linalg.norm(rig.proxy - last) <= 1.2e-4
        last = np.array(rig.proxy)
    rig.run(400)
    assert rig.proxy == pytest.approx((0.0, 0.0, 0.22), abs=2e-8)


def test_a_wall_and_a_line_together():
    """A line that goes into a wall: the tool is where both hold, and the force is the spring to there."""
    rig = held([], plane_model(), stiffness=500.0)
    set_fixtures(rig.settings, [make_fixture(LINE, (0.03, 0.0, 0.0))])
    rig.activate((0.03, 0.0, 0.1))
    rig.glide((0.033, 0.002, 0.003), step=1e-3)
    rig.run(20)
    assert rig.proxy == pytest.approx((0.03, 0.0, REST), abs=1e-6)
    stretch = rig.proxy - np.array((0.033, 0.002, 0.003))
    assert rig.output["goal_position"] == pytest.approx((0.03, 0.0, 0.003), abs=1e-12)
    assert rig.output["device_position"] == pytest.approx((0.033, 0.002, 0.003), abs=1e-12)
    assert rig.wrench[:3] == pytest.approx(500.0 * stretch, rel=1e-9)


def test_a_wall_wins_over_a_line_that_it_slopes_against():
    """A line aslant into the wall: the tool rests on the wall below which its goal lies, and passes nothing."""
    rig = held([], plane_model())
    set_fixtures(rig.settings, [make_fixture(LINE, (0.0, 0.0, 0.02), direction=(1.0, 0.0, -1.0))])
    rig.activate((-0.08, 0.0, 0.1))
    rig.glide((0.03, 0.0, -0.01), step=1e-3)
    rig.run(20)
    assert rig.output["goal_position"] == pytest.approx((0.03, 0.0, -0.01), abs=1e-12)
    assert rig.proxy == pytest.approx((0.03, 0.0, REST), abs=1e-6)
    assert rig.proxy[2] >= TIP_RADIUS


def test_a_mesh_tool_is_led_by_its_tip_centre_and_turns_freely():
    rig = held([], block_model(turning=REACH**2), start=(0.0, 0.0, 0.1), card="virtuose6d", rotational_stiffness=2.0)
    set_fixtures(rig.settings, [make_fixture(PLANE, (0.0, 0.0, 0.1))])
    rig.command(CommandKind.LEASE)
    rig.send()
    for k in range(200):
        rig.send((1e-4 * k, 0.0, 0.1 + 0.01 * math.sin(0.05 * k)), Rotation.from_rotvec((0.0, 2e-3 * k, 0.0)).as_quat())
        assert abs(rig.proxy[2] - 0.1) <= 1e-12
    assert rig.output["proxy_orientation"] == pytest.approx(rig.output["device_orientation"], abs=1e-9)
    assert rig.proxy[0] == pytest.approx(1e-4 * 199, abs=1e-9)


def test_a_tool_with_mass_comes_to_rest_on_one():
    """Its spring and damper lead to the goal, which is on the line, as the velocity of that goal is."""
    inertia = body_inertia(0.05, np.diag([5e-6] * 3), (0.0, 0.0, 0.0))
    rig = held([], block_model(turning=REACH**2, inertia=inertia), card="virtuose6d", damping=10.0)
    set_fixtures(rig.settings, [make_fixture(LINE, (0.0, 0.0, 0.1), direction=(1.0, 0.0, 0.0))])
    rig.activate((0.0, 0.0, 0.1))
    rig.glide((0.02, 0.003, 0.104))
    assert abs(rig.row["goal"]["goal_velocity"][1:]).max() <= 1e-12
    rig.run(1500)
    assert rig.output["goal_position"] == pytest.approx((0.02, 0.0, 0.1), abs=1e-12)
    assert rig.proxy == pytest.approx((0.02, 0.0, 0.1), abs=1e-6)
    assert rig.wrench[:3] == pytest.approx(500.0 * (rig.proxy - np.array((0.02, 0.003, 0.104))), abs=1e-6)


def test_forces_begin_only_near_one_and_without_a_kick():
    """A device beside a line is not engaged; re-anchored it is, with no force at all."""
    rig = held([])
    set_fixtures(rig.settings, [make_fixture(LINE, (0.0, 0.0, 0.1), direction=(1.0, 0.0, 0.0))])
    rig.command(CommandKind.LEASE)
    rig.send((0.0, 0.0, 0.12))
    assert rig.proxy == pytest.approx((0.0, 0.0, 0.1), abs=1e-12)
    assert rig.command(CommandKind.ARM, 0) == Reason.TOO_FAR
    rig.glide((0.0, 0.0, 0.104))
    assert rig.command(CommandKind.ARM, 0) == Reason.NONE
    last = rig.wrench
    for _ in range(20):
        rig.send()
        assert np.linalg.norm(rig.wrench - last) <= 500.0 * 0.004 / 5.0 + 1e-9
        last = rig.wrench
    assert last[:3] == pytest.approx((0.0, 0.0, -500.0 * 0.004))
    again = held([])
    set_fixtures(again.settings, [make_fixture(LINE, (0.0, 0.0, 0.1), direction=(1.0, 0.0, 0.0))])
    again.activate((0.0, 0.0, 0.12))
    again.run(50)
    assert not again.wrench.any()
    assert again.output["device_position"] == pytest.approx((0.0, 0.0, 0.1), abs=1e-12)


def test_without_a_device_pose_the_tool_stays_where_it_is():
    rig = held([LINE], start=(0.0, 0.0, 0.1))
    rig.silence(5)
    assert rig.proxy == pytest.approx((0.0, 0.0, 0.1), abs=0.0)
    assert rig.output["goal_position"] == pytest.approx((0.0, 0.0, 0.1), abs=0.0)


def test_the_goal_goes_on_as_fixtures_let_it():
    """Its velocity, for a tool with mass: along the line only; an adapter gets the damper while the tool is held."""
    rig = held([], damping=2.0)
    set_fixtures(rig.settings, [make_fixture(LINE, (0.0, 0.0, 0.1), direction=(1.0, 1.0, 0.0))])
    rig.activate((0.0, 0.0, 0.1))
    rig.glide((0.0, 0.0, 0.11))
    rig.send(twist=(0.2, 0.0, 0.1, 0.0, 0.0, 0.0))
    # The velocity of a sample counts from the tick after it.
    rig.send(twist=(0.2, 0.0, 0.1, 0.0, 0.0, 0.0))
    assert rig.row["goal"]["goal_velocity"] == pytest.approx((0.1, 0.1, 0.0), abs=1e-12)
    assert rig.output["damping"][:3] == pytest.approx((2.0, 2.0, 2.0))


def test_without_fixtures_the_goal_is_the_image():
    rig = held([], plane_model())
    rig.activate((0.0, 0.0, 0.1))
    rig.press(0.003)
    assert np.array_equal(rig.output["goal_position"], rig.output["device_position"])
    assert np.array_equal(rig.output["goal_orientation"], rig.output["device_orientation"])


# Soft ones. -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SHAPES)
@settings(deadline=None, max_examples=15)
@given(place=places, other=places, seed=st.integers(0, 1000))
def test_a_round_trip_does_no_work(kind, place, other, seed):
    """Trapezoids round a triangle; the force's slope is at most about K, so their error is below K h^2 per step."""
    fixture = record(made(kind, stiffness=300.0, strength=2.0))
    third = np.random.default_rng(seed).uniform(-0.06, 0.06, 3)
    corners = np.array([place, other, third, place])
    steps = 4000
    way = np.concatenate([np.linspace(a, b, steps, endpoint=False) for a, b in itertools.pairwise(corners)])
    way = np.concatenate([way, corners[:1]])
    felt = np.array([fixture_force(fixture, tuple(at), 1.0) for at in way])
    assert np.linalg.norm(felt, axis=1).max() <= 2.0 + 1e-12
    work = np.sum(0.5 * (felt[1:] + felt[:-1]) * np.diff(way, axis=0))
    longest = np.linalg.norm(np.diff(way, axis=0), axis=1).max()
    # Kinks of the slope, at most some per side, have an error of K h^2 each.
    assert abs(work) <= 40 * 300.0 * longest**2


@pytest.mark.parametrize("kind", SHAPES)
def test_it_is_a_spring_near_what_it_allows_and_grows_to_its_strength_and_not_beyond(kind):
    fixture = record(made(kind, stiffness=300.0, strength=2.0))
    random = np.random.default_rng(kind)
    near = 0
    for place in random.uniform(-0.05, 0.05, (20000, 3)):
        force = np.array(fixture_force(fixture, tuple(place), 1.0))
        away = outside(kind, place)
        assert np.linalg.norm(force) <= 2.0
        if away == 0.0:
            assert not force.any()
        elif kind in CONVEX:
            back = np.array(nearest_convex(fixture, tuple(place))) - place
            spring = 300.0 * away
            wanted = spring / math.sqrt(1.0 + (spring / 2.0) ** 2)
            assert force == pytest.approx(back / away * wanted, abs=1e-12)
        elif away < 2e-4:
            near += 1
            assert np.linalg.norm(force) == pytest.approx(300.0 * away, rel=0.12)
    far = np.array(AT) - 1.0 * UNIT + 0.5 * np.array((0.8, 0.4, 0.0))
    if kind in CONVEX:
        assert np.linalg.norm(fixture_force(fixture, tuple(far), 1.0)) == pytest.approx(2.0, rel=1e-3)
    else:
        assert near > 5
    # A scene ten times as large makes the same force ten times as far away.
    large = record(
        made(kind, stiffness=300.0, strength=2.0)
        if kind in (PLANE, LINE, HALF_SPACE, CONE)
        else made(
            kind,
            stiffness=300.0,
            strength=2.0,
            **{
                k: 10 * np.array(v) if k in ("half",) else 10 * v
                for k, v in SHAPES[kind].items()
                if k in ("half", "radius")
            },
        )
    )
    offset = np.array((0.004, -0.003, -0.0065))
    force = fixture_force(fixture, tuple(AT + offset), 1.0)
    assert fixture_force(large, tuple(AT + 10 * offset), 10.0) == pytest.approx(force, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("kind", SHAPES)
def test_its_force_goes_smoothly_along_with_a_fast_hand(kind):
    """The whole tick: no step beyond the slew limit, which never has to act, at 0.3 m/s right through everything."""
    rig = Rig(AIR, "omega6", stiffness=500.0, damping=0.0, ramp_up_ms=5.0, start=(0.01, -0.02, 0.1), passivity=False)
    allowed = FIXTURE_SHARE * rig.chosen["stiffness_max"]
    set_fixtures(rig.settings, [made(kind, stiffness=allowed, strength=3.0)])
    rig.activate((0.01, -0.02, 0.1))
    last = rig.wrench
    felt = 0.0
    for place in (np.array(AT) + (0.001, 0.002, -0.015), np.array(AT) + (0.03, -0.03, 0.02), np.array(AT)):
        begin = np.array(rig.sample["position"])
        ticks = math.ceil(np.linalg.norm(place - begin) / 3e-4)
        for k in range(ticks):
            rig.send(begin + (k + 1) / ticks * (place - begin))
            assert np.linalg.norm(rig.wrench - last) <= allowed * 3e-4 * 1.05 + 1e-9
            assert not rig.output["limited"] & SLEW_LIMITED
            felt = max(felt, float(np.linalg.norm(rig.wrench)))
            last = rig.wrench
            assert np.array_equal(rig.wrench, rig.output["effects"])
            assert np.array_equal(rig.output["goal_position"], rig.output["device_position"])
    assert felt > 0.5


def test_it_is_felt_through_the_whole_tick_and_counts_as_a_spring():
    """At the device, along its axes, in a scene scaled by two; the conservative part is all of it."""
    rig = Rig(AIR, "omega6", stiffness=500.0, damping=0.0, ramp_up_ms=5.0, scale=2.0, start=(0.0, 0.0, 0.1))
    set_fixtures(rig.settings, [make_fixture(PLANE, (0.0, 0.0, 0.1), stiffness=200.0, strength=4.0)])
    rig.activate((0.0, 0.0, 0.05))
    rig.glide((0.0, 0.0, 0.055))
    rig.run(20)
    wanted = -200.0 * 0.005 / math.sqrt(1.0 + (200.0 * 0.005 / 4.0) ** 2)
    assert rig.wrench[:3] == pytest.approx((0.0, 0.0, wanted), rel=1e-9)
    assert rig.output["feed_forward"][:3] == pytest.approx((0.0, 0.0, wanted), rel=1e-9)
    assert rig.row["conservative"][:3] == pytest.approx((0.0, 0.0, wanted), rel=1e-9)
    assert rig.proxy == pytest.approx((0.0, 0.0, 0.11), abs=1e-8)


# What is refused. -----------------------------------------------------------------------------------------------------


def test_only_what_the_device_can_render_is_taken():
    rig = Rig(None, "touch", stiffness=300.0)
    card = load_card("touch")
    set_fixtures(rig.settings, [made(PLANE, stiffness=FIXTURE_SHARE * 400.0)])
    assert rig.chosen["fixture_count"] == 1
    assert rig.chosen["fixtures"][0]["strength"] == pytest.approx(FIXTURE_SHARE * card.force_max)
    with pytest.raises(ValueError, match=r"\[1\].stiffness = 201 N/m must be at most 200 N/m"):
        set_fixtures(rig.settings, [made(PLANE), made(PLANE, stiffness=201.0)])
    with pytest.raises(ValueError, match=r"\[0\].strength = 99 N must be at most"):
        set_fixtures(rig.settings, [made(PLANE, stiffness=100.0, strength=99.0)])
    with pytest.raises(ValueError, match="8 fixtures, not 9"):
        set_fixtures(rig.settings, [made(PLANE)] * 9)


@pytest.mark.parametrize(
    ("arguments", "more", "text"),
    [
        ((9, AT), {}, "kind = 9"),
        ((PLANE, (0.0, float("nan"), 0.0)), {}, "position"),
        ((PLANE, AT), {"direction": (0.0, 0.0, 0.0)}, "direction = .* must not be zero"),
        ((TUBE, AT), {}, "radius = 0"),
        ((BALL, AT), {"radius": -1.0}, "radius = -1"),
        ((CONE, AT), {"angle": 1.6}, "angle = 1.6"),
        ((BOX, AT), {"half": (1.0, 0.0, 1.0)}, "half"),
        ((BOX, AT), {"half": (1.0, 1.0, 1.0), "orientation": (0.0, 0.0, 0.0, 2.0)}, "unit quaternion"),
        ((PLANE, AT), {"stiffness": -1.0}, "stiffness = -1"),
        ((PLANE, AT), {"strength": 1.0}, "strength = 1 belongs to a soft fixture"),
    ],
)
def test_what_makes_no_fixture_is_refused(arguments, more, text):
    with pytest.raises(ValueError, match=text):
        make_fixture(*arguments, **more)


def test_a_refused_list_says_why_before_any_lease():
    """The rig's commands still work with fixtures in the settings."""
    rig = held([PLANE, BALL])
    assert rig.command(CommandKind.LEASE) == Reason.NONE
