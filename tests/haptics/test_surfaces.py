"""Surfaces: soft, damped, dragging and patterned, within what springs allow; a relief is a potential."""

import numpy as np
import pytest
from haptics_rig import BLOCK, CORNERS, EPS_SAFETY, FACES, REACH, REST, TIP_RADIUS, Rig, block_model, square
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from bridge.adapters.spring import nearest_place
from haptics.fixtures import PLANE, make_fixture, set_fixtures
from haptics.pattern import BUMPS, CURVATURE, GRATING, NOISE
from haptics.regions import MAGNET, make_region, set_regions
from haptics.states import CommandKind, EngagementState, Reason
from haptics.surfaces import SHARE, make_surface, onset, put_surface
from haptics.touch import make_touch
from rtcore.geometry.tree import build_tree
from rtcore.model import Model, ModelBuilder

STIFFNESS = 500.0
LENGTH = 2e-3


def plane(friction: float = 0.0, turn: Rotation | None = None) -> Model:
    builder = ModelBuilder()
    mesh = builder.add_mesh(*build_tree(*square(1.0)))
    orientation = (0.0, 0.0, 0.0, 1.0) if turn is None else turn.as_quat()
    builder.add_body(mesh, orientation=orientation, friction_static=friction, friction_kinetic=friction, surface_id=1)
    return builder.build(TIP_RADIUS, (0.0, 0.0, 0.0), 1e-4, 2.5e-4, 6e-4)


def rig_on(
    model: Model | None = None,
    *,
    card: str = "omega6",
    scale: float = 1.0,
    start=(0.0, 0.0, 0.02),
    law: str = "spring",
    **surface,
) -> Rig:
    options = {"stiffness": STIFFNESS, "damping": 0.0, "ramp_up_ms": 5.0, "scale": scale, "law": law}
    rig = Rig(model if model is not None else plane(), card, start=start, **options)
    put_surface(rig.settings, make_surface(**surface))
    rig.touch = make_touch(rig.settings)
    rig.activate([c / scale for c in start])
    return rig


def test_a_soft_surface_is_a_spring_in_series():
    rig = rig_on(stiffness=250.0)
    rig.press(0.003)
    rig.run(30)
    assert rig.wrench[:3] == pytest.approx((0.0, 0.0, 0.003 / (1 / STIFFNESS + 1 / 250.0)), rel=1e-6)


def closed(output, position, velocity=(0.0, 0.0, 0.0)) -> np.ndarray:
    """Force of an adapter that closes the spring of an OUTPUT itself, as docs/protocol.md says it."""
    place, position = np.array(output["render_position"]), np.array(position)
    if not output["pinned"]:
        planes = [tuple(each) for each in output["planes"][: output["plane_count"]]]
        place = np.array(nearest_place(planes, tuple(position + output["slack"]), tuple(place)))
    way = place - position
    size = np.linalg.norm(way)
    pull = output["stiffness"][0] * size
    if size > 0.0:
        rate = np.dot(output["render_twist"][:3] - velocity, way) / size
        way, pull = way / size, pull + np.clip(output["damping"][0] * rate, -pull, pull)
    return pull * way + output["feed_forward"][:3]


@pytest.mark.parametrize("law", ["spring", "constraint"])
def test_an_adapter_that_closes_the_spring_feels_a_soft_surface_as_soft(law):
    """Pressed 3 mm and sent on, in or out, between two ticks: the spring in series, nothing from the surface on."""
    rig = rig_on(stiffness=50.0, law=law)
    rig.press(0.003)
    rig.run(30)
    assert rig.output["stiffness"][:3] == pytest.approx(1.0 / (1.0 / STIFFNESS + 1.0 / 50.0))
    assert rig.output["feed_forward"][:3] == pytest.approx((0.0, 0.0, 0.0), abs=1e-9)
    for depth in (0.004, 0.003, 0.002, 0.001, 1e-5, 0.0, -0.001):
        expected = max(depth, 0.0) / (1.0 / STIFFNESS + 1.0 / 50.0)
        assert closed(rig.output, (0.0, 0.0, REST - depth)) == pytest.approx((0.0, 0.0, expected), abs=1e-9)


def on_two_halves(left: float, right: float) -> Rig:
    """A block on two boards that lie beside each other, of these stiffnesses, pressed 3 mm and a little askew."""
    builder = ModelBuilder()
    board = builder.add_mesh(*build_tree(*square(0.5)))
    for surface_id, x in ((1, -0.5), (2, 0.5)):
        builder.add_body(board, (x, 0.0, 0.0), surface_id=surface_id, friction_static=0.0, friction_kinetic=0.0)
    tool = builder.add_mesh(*build_tree(BLOCK * CORNERS, FACES))
    model = builder.build(0.0, (0.0, 0.0, 0.0), 1e-4, EPS_SAFETY, 6e-4, tool_mesh_id=tool, turning=1e-4)
    high = BLOCK + EPS_SAFETY + 0.001
    options = {"stiffness": 1000.0, "damping": 0.0, "ramp_up_ms": 5.0, "tool_reach": REACH}
    rig = Rig(model, start=(0.0, 0.0, high), **options)
    for stiffness in (left, right):
        put_surface(rig.settings, make_surface(stiffness=stiffness))
    rig.touch = make_touch(rig.settings)
    rig.activate((0.0, 0.0, high))
    rig.glide((0.0, 0.0, high - 0.004), step=1e-4)
    rig.run(30)
    return rig


@pytest.mark.parametrize("right", [50.0, 300.0, 0.0])
def test_the_softest_surface_is_told_and_a_harder_one_beside_it_pushes(right):
    rig = on_two_halves(50.0, right)
    here = np.array(rig.sample["position"])
    assert rig.output["stiffness"][:3] == pytest.approx(1.0 / (1.0 / 1000.0 + 1.0 / 50.0))
    assert closed(rig.output, here) == pytest.approx(rig.wrench[:3], abs=1e-6)
    rest = rig.output["feed_forward"][2]
    assert rest == pytest.approx(0.0, abs=1e-6) if right == 50.0 else rest > 0.01
    for out in np.linspace(0.0, 0.005, 11):
        assert closed(rig.output, here + (0.0, 0.0, out))[2] >= -1e-6


@pytest.mark.parametrize("surface_damping", [0.0, 10.0])
def test_a_hand_that_leaves_a_soft_surface_is_not_held(surface_damping):
    """The coupling's damper and the surface's stay together within the soft spring; so does what an adapter makes."""
    options = {"stiffness": STIFFNESS, "damping": 10.0, "ramp_up_ms": 5.0, "passivity": False}
    rig = Rig(plane(), start=(0.0, 0.0, 0.02), **options)
    put_surface(rig.settings, make_surface(stiffness=50.0, damping=surface_damping))
    rig.touch = make_touch(rig.settings)
    rig.activate((0.0, 0.0, 0.02))
    rig.press(0.006)
    for k in range(40):
        rig.send((0.0, 0.0, REST - 0.006 + 2e-4 * (k + 1)))
        assert rig.output["coupling_wrench"][2] >= -1e-9
        if surface_damping == 0.0:
            assert closed(rig.output, rig.sample["position"], (0.0, 0.0, 0.2))[2] >= -1e-9


def test_friction_of_a_soft_surface_keeps_its_ratio():
    """Dragged far, the tip slides: the force along the surface is mu times that along the normal, soft or hard."""
    ratios = []
    for stiffness in (0.0, 250.0):
        rig = rig_on(plane(friction=0.4), stiffness=stiffness)
        rig.press(0.003)
        rig.glide((0.02, 0.0, REST - 0.003), step=1e-4)
        ratios.append(rig.wrench[0] / rig.wrench[2])
    assert ratios == pytest.approx([-0.4, -0.4], rel=1e-3)


@pytest.mark.parametrize("pattern", [GRATING, BUMPS, NOISE])
@pytest.mark.parametrize("scale", [1.0, 4.0])
def test_a_round_trip_over_a_relief_does_no_work(pattern, scale):
    """No friction: sum of F dx (trapezoid) over a closed way of the device through and over the surface vanishes."""
    rig = rig_on(pattern=pattern, height=2e-4 * scale, wavelength=LENGTH * scale, seed=3, scale=scale)
    rig.press(0.0)
    angles = np.linspace(0.0, 2.0 * np.pi, 4001)
    way = np.stack(
        [
            0.004 * np.sin(angles),
            0.003 * np.sin(2 * angles),
            (REST / scale) - 0.0015 * (1.0 - np.cos(angles)),
        ],
        axis=1,
    )
    begin = np.array(rig.sample["position"])
    for k in range(40):
        rig.send(begin + (k + 1) / 40 * (way[0] - begin))
    forces = []
    for place in way:
        rig.send(place)
        forces.append(rig.output["effects"][:3].copy())
    forces = np.array(forces)
    steps = np.diff(way, axis=0)
    work = 0.5 * (forces[1:] + forces[:-1]) * steps
    assert np.abs(work).sum() > 1e-5
    # The fade of what slides fast is no potential: here a wavelength takes over 200 ticks, so that nothing fades.
    assert abs(work.sum()) < 2e-3 * np.abs(work).sum()


def test_ridges_push_aside_and_up_by_their_potential():
    """On the flank of a ridge at depth d: up K H h s'(d), aside -K H s(d) h', against the gradient by finite steps."""
    rig = rig_on(pattern=GRATING, height=3e-4, wavelength=LENGTH, direction=(1.0, 0.0, 0.0))
    depth, x = 0.002, 0.125 * LENGTH
    rig.press(depth)
    rig.glide((x, 0.0, REST - depth), step=5e-5)
    rig.run(60)
    stiffness = rig.row["stiffness"]
    s, rate = onset(3e-4, CURVATURE[GRATING] / LENGTH**2, depth)
    height, slope = 0.5 + 0.5 * np.cos(np.pi / 4), -np.pi / LENGTH * np.sin(np.pi / 4)
    expected = (-stiffness * 3e-4 * s * slope, 0.0, stiffness * 3e-4 * height * rate)
    assert expected[0] > 0.01 and expected[2] > 0.0005
    assert rig.output["effects"][:3] == pytest.approx(expected, rel=1e-3, abs=1e-6)


def test_a_pattern_turns_with_its_body():
    turned = Rotation.from_euler("z", 40, degrees=True)
    options = {"pattern": GRATING, "height": 3e-4, "wavelength": LENGTH, "direction": (1.0, 0.0, 0.0)}
    here, there = rig_on(**options), rig_on(plane(turn=turned), **options)
    place = np.array((0.2 * LENGTH, 0.0, REST - 0.002))
    for rig, goal in ((here, place), (there, turned.apply(place))):
        rig.press(0.002)
        rig.glide(goal, step=5e-5)
        rig.run(60)
    assert turned.apply(here.wrench[:3]) == pytest.approx(there.wrench[:3], abs=1e-6)
    assert abs(here.wrench[0]) > 0.01


@settings(deadline=None, max_examples=200)
@given(st.floats(1e-6, 5e-3), st.floats(1e-4, 5e-2), st.floats(0.0, 0.05))
def test_a_relief_adds_no_more_than_its_share_of_stiffness(height, wavelength, depth):
    """Second derivatives of H h s: across H k s and along the normal H s'' are within SHARE, and s' within 1."""
    curvature = CURVATURE[GRATING] / wavelength**2
    s, rate = onset(height, curvature, depth)
    h = 1e-4 * max(depth, 1e-4)
    second = (onset(height, curvature, depth + h)[1] - rate) / h
    assert 0.0 <= rate <= 1.0 + 1e-9
    assert height * curvature * s <= SHARE * (1 + 1e-9)
    assert height * abs(second) <= SHARE * (1 + 1e-3)
    assert onset(height, curvature, 0.0) == (0.0, 0.0)


def test_friction_follows_the_pattern():
    """Dragged across ridges the felt coefficient goes between mu (1 - a) and mu."""
    rig = rig_on(plane(friction=0.3), pattern=GRATING, wavelength=LENGTH, friction_variation=0.5)
    rig.press(0.004)
    ratios = []
    for k in range(1200):
        rig.send((2e-5 * k, 0.0, REST - 0.004))
        ratios.append(-rig.wrench[0] / rig.wrench[2])
    slid = np.array(ratios[600:])
    assert slid.min() == pytest.approx(0.15, abs=2e-3)
    assert slid.max() == pytest.approx(0.3, abs=2e-3)


def test_friction_that_follows_a_pattern_is_no_stiffer_than_the_coupling():
    """On a ridge that holds it the tip is a spring of K along the surface, whatever the pattern takes elsewhere."""
    rig = rig_on(plane(friction=5.0), pattern=GRATING, wavelength=0.01, friction_variation=1.0)
    rig.press(0.001)
    before = rig.output["coupling_wrench"][:3].copy()
    rig.run(10, (1e-4, 0.0, REST - 0.001))
    stiffness = (before - rig.output["coupling_wrench"][:3])[0] / 1e-4
    assert stiffness == pytest.approx(rig.chosen["stiffness"], rel=1e-3)


def test_a_damper_never_pulls_and_drag_never_exceeds_the_push():
    rig = rig_on(damping=20.0, drag=20.0)
    rig.press(0.004)
    for k in range(300):
        swing = 0.004 * (1.0 - np.cos(0.06 * k))
        rig.send((0.002 * np.sin(0.11 * k), 0.0, REST - 0.004 + swing))
        force = rig.output["coupling_wrench"]
        assert force[2] >= -1e-12
        assert np.hypot(force[0], force[1]) <= STIFFNESS * 0.004 + 1e-9
    # Held still, what follows velocity is gone.
    rig.run(40, (0.0, 0.0, REST - 0.004))
    assert rig.wrench[:3] == pytest.approx((0.0, 0.0, STIFFNESS * 0.004), abs=1e-6)


def test_damping_and_drag_are_what_they_say():
    """Moved evenly along and into the surface: b v, each way, beside the spring."""
    rig = rig_on(damping=3.0, drag=2.0)
    rig.press(0.004)
    velocity = np.array((0.02, 0.0, -0.01))
    start = np.array(rig.sample["position"])
    for k in range(60):
        rig.send(start + velocity * 1e-3 * (k + 1))
    assert rig.output["effects"][:3] == pytest.approx((-2.0 * 0.02, 0.0, 3.0 * 0.01), rel=1e-3)


@pytest.mark.parametrize(("what", "way"), [("damping", (0.0, 0.0, -1.0)), ("drag", (1.0, 0.0, 0.0))])
def test_a_block_that_lies_on_all_its_corners_is_damped_as_one_that_touches_once(what, way):
    """Evenly at 0.05 m/s: b v, not b v for each contact."""
    model = block_model(turning=1e-4)
    model.bodies[0]["surface_id"] = 1
    options = {"stiffness": 2000.0, "damping": 0.0, "passivity": False, "ramp_up_ms": 10.0, "tool_reach": REACH}
    high = BLOCK + EPS_SAFETY + 0.001
    rig = Rig(model, start=(0.0, 0.0, high), **options)
    put_surface(rig.settings, make_surface(**{what: 10.0}))
    rig.touch = make_touch(rig.settings)
    rig.activate((0.0, 0.0, high))
    rig.glide((0.0, 0.0, high - 0.004), step=1e-4)
    for _ in range(25):
        rig.send(np.array(rig.sample["position"]) + 5e-5 * np.array(way))
    assert rig.output["report"]["contact_count"] > 1
    assert rig.output["effects"][:3] == pytest.approx(-0.5 * np.array(way), abs=2e-3)


def test_what_is_faster_than_ticks_can_show_fades():
    rig = rig_on(pattern=GRATING, height=3e-4, wavelength=LENGTH)
    rig.press(0.003)
    forces = []
    for k in range(200):
        # 1.3 m/s: more than half a wavelength in a tick
        rig.send((1.3e-3 * k, 0.0, REST - 0.003))
        forces.append(rig.output["effects"][0])
    assert np.abs(forces[60:]).max() == 0.0
    assert np.abs(forces[:20]).max() > 0.0


def test_the_torque_of_a_mesh_tool_comes_from_where_it_touches():
    """A cube on its edge over a soft plane: less push at the edge is less torque about its middle, in proportion."""

    def turned(surface_id: int) -> Rig:
        model = block_model(turning=1e-6)
        model.bodies[0]["surface_id"] = surface_id
        options = {"stiffness": 1000.0, "rotational_stiffness": 0.5, "damping": 0.0, "ramp_up_ms": 5.0}
        low = (0.0, 0.0, BLOCK + 0.002)
        rig = Rig(model, "sigma7", start=low, tool_reach=BLOCK * 3**0.5, **options)
        put_surface(rig.settings, make_surface(stiffness=500.0))
        rig.touch = make_touch(rig.settings)
        rig.activate(low)
        for k in range(60):
            rig.send((0.0, 0.0, low[2] - 5e-5 * k), orientation=Rotation.from_rotvec((0.008 * k, 0.0, 0.0)).as_quat())
        rig.run(60)
        return rig

    soft, hard = turned(1), turned(0)
    share = 500.0 / (500.0 + 1000.0)
    assert not hard.output["effects"].any()
    # Contacts add up to the stretch as exactly as they are solved: some nanometres of the spring.
    assert soft.output["coupling_wrench"][:3] == pytest.approx(share * hard.output["coupling_wrench"][:3], abs=5e-6)
    report = hard.output["report"]
    middle = np.array(hard.proxy)
    moment = sum(
        np.cross(contact["point"] - middle, 1000.0 * contact["displacement"])
        for contact in report["contacts"][: report["contact_count"]]
    )
    assert np.linalg.norm(moment) > 1e-3
    assert soft.output["effects"][3:] == pytest.approx((share - 1.0) * moment, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("what", ["soft", "soft and rough"])
def test_in_the_tick_the_adapter_makes_the_daemons_force(what):
    """With friction, with a relief, at a scale: what is told and the wrench are one force where the device is."""
    rough = {"pattern": GRATING, "height": 3e-4, "wavelength": LENGTH} if what == "soft and rough" else {}
    rig = rig_on(plane(friction=0.3), scale=2.0, stiffness=100.0, **rough)
    rig.settings["passivity"] = 0
    for k in range(120):
        rig.send((2e-5 * k, 0.0, (REST - 0.002 + 0.01675 * 0.97**k) / 2.0))
        assert closed(rig.output, rig.sample["position"]) == pytest.approx(rig.output["coupling_wrench"][:3], abs=1e-9)
    assert rig.status == EngagementState.ACTIVE and rig.wrench[2] > 0.05


def test_without_samples_the_feed_forward_fades_and_a_soft_surface_stays_soft():
    """A magnet, a soft fixture, a burst, a relief on a soft surface: faded as the age of the sample says, all of it."""

    def rig_with_all(*, silent: int) -> Rig:
        rig = rig_on(stiffness=100.0, pattern=GRATING, height=3e-4, wavelength=LENGTH)
        set_regions(rig.settings, [make_region(MAGNET, (0.01, 0.0, 0.0), 0.05, 1.0)])
        set_fixtures(rig.settings, [make_fixture(PLANE, (0.0, 0.0, 0.02), stiffness=100.0)])
        rig.press(0.002)
        rig.run(5)
        assert rig.command(CommandKind.VIBRATE, 1.0, 250.0, 5.0, 0.0, 0.0, 1.0, 0.0) == Reason.NONE
        for k in range(20):
            if k < 20 - silent:
                rig.send()
            else:
                rig.silence()
        return rig

    series = 1.0 / (1.0 / STIFFNESS + 1.0 / 100.0)
    for silent in (10, 15, 19):
        rig, known = rig_with_all(silent=silent), rig_with_all(silent=0)
        assert rig.status == EngagementState.HOLD and known.status == EngagementState.ACTIVE
        row = rig.chosen
        fresh = (row["stale_after_ns"] - rig.row["age_ns"]) / (row["stale_after_ns"] - row["hold_after_ns"])
        assert 0.0 < fresh < 1.0
        assert np.linalg.norm(known.output["feed_forward"][:3]) > 1.0
        assert rig.output["feed_forward"][:3] == pytest.approx(fresh * known.output["feed_forward"][:3], abs=1e-9)
        assert rig.output["stiffness"][0] == pytest.approx(series)
        told = series * (rig.output["render_position"] - rig.sample["position"])
        assert rig.output["coupling_wrench"][:3] == pytest.approx(told + rig.output["feed_forward"][:3], abs=1e-9)


def test_a_relief_leaves_room_under_the_card_and_nothing_else_does():
    rig = Rig(plane(), "touch", stiffness=400.0)
    assert put_surface(rig.settings, make_surface(stiffness=100.0, damping=2.0)) == 1
    assert rig.chosen["stiffness"] == 400.0
    relief = make_surface(pattern=NOISE, height=1e-4)
    assert put_surface(rig.settings, relief) == 2
    assert put_surface(rig.settings, relief) == 3
    assert rig.chosen["stiffness"] == rig.chosen["stiffness_max"] == 400.0 / (1.0 + SHARE)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"stiffness": -1.0}, "stiffness = -1"),
        ({"height": 1e-4}, "need a pattern"),
        ({"friction_variation": 0.5}, "need a pattern"),
        ({"pattern": GRATING, "direction": (1.0, 1.0, 0.0)}, "norm 1"),
        ({"pattern": 9}, "pattern = 9"),
        ({"wavelength": 0.0}, "wavelength"),
        ({"burst": float("nan")}, "burst = nan"),
        ({"friction_variation": 2.0, "pattern": NOISE}, "from 0 to 1"),
    ],
)
def test_what_makes_no_surface_is_refused(wrong, text):
    with pytest.raises(ValueError, match=text):
        make_surface(**wrong)


def test_more_than_the_device_allows_is_refused():
    rig = Rig(plane(), "touch")
    with pytest.raises(ValueError, match=r"drag = 9 N·s/m must be at most 4"):
        put_surface(rig.settings, make_surface(drag=9.0))
    for _ in range(16):
        put_surface(rig.settings, make_surface(drag=1.0))
    with pytest.raises(ValueError, match="16 different surfaces"):
        put_surface(rig.settings, make_surface(drag=1.0))


@pytest.mark.parametrize("surface", [{"stiffness": 100.0}, {"pattern": GRATING, "height": 3e-4, "wavelength": LENGTH}])
def test_what_a_surface_springs_is_not_owed_as_if_sampling_had_made_it(surface):
    """Pressed and dragged in steps of 5e-5 m, nothing is owed beyond 1/2 K dx^2 of each step up a flank, K with SHARE.

    The work of the surface's own spring would be 3e-3 J, that of climbing a ridge 5e-5 J.
    """
    most = (0.5 * LENGTH / 5e-5) * 0.5 * (1.0 + SHARE) * STIFFNESS * 5e-5**2
    assert most < 2e-5
    rig = rig_on(**surface)
    for place in ((0.0, 0.0, REST - 0.004), (0.006, 0.0, REST - 0.004), (0.006, 0.0, REST + 0.002)):
        begin = np.array(rig.sample["position"])
        ticks = int(np.ceil(np.linalg.norm(np.array(place) - begin) / 5e-5))
        for k in range(ticks):
            rig.send(begin + (k + 1) / ticks * (np.array(place) - begin))
            assert rig.output["owed_linear"] <= most
