"""Planes of contacts: the tool that an adapter moves between two ticks goes where the next tick would have moved it."""

import copy

import numpy as np
import pytest
from haptics_rig import (
    BLOCK,
    CORNERS,
    EPS_ALERT,
    EPS_BREAK,
    EPS_SAFETY,
    FACES,
    REACH,
    REST,
    TIP_RADIUS,
    Rig,
    block_model,
    plane_model,
    square,
)
from scipy.spatial.transform import Rotation

from bridge.adapters.spring import local_proxy, local_wrench
from bridge.wire import Render, decode_render, encode_render
from haptics.contact_planes import describe
from haptics.fixtures import LINE, make_fixture, set_fixtures
from haptics.states import CommandKind, Reason
from haptics.tables import MAX_PLANES
from rtcore.dynamics.inertia import body_inertia
from rtcore.geometry.tree import build_tree
from rtcore.model import Model, ModelBuilder

K = 400.0
NO_SPEED = (0.0, 0.0, 0.0)
SWAY = 3e-4
"""How far a hand goes between two ticks at 0.3 m/s, m."""


def walls(*normals: tuple[float, float, float]) -> Model:
    """Plates of 2 m through the origin, each facing along a normal."""
    builder = ModelBuilder()
    plate = builder.add_mesh(*build_tree(*square(1.0)))
    for normal in normals:
        turn = Rotation.align_vectors([normal], [(0.0, 0.0, 1.0)])[0]
        builder.add_body(plate, (0.0, 0.0, 0.0), turn.as_quat(), friction_static=0.0, friction_kinetic=0.0)
    return builder.build(TIP_RADIUS, (0.0, 0.0, 0.0), EPS_ALERT, EPS_SAFETY, EPS_BREAK)


def edge() -> Model:
    """A cube of 40 mm, its upper edge along y through the origin."""
    builder = ModelBuilder()
    cube = builder.add_mesh(*build_tree(0.02 * CORNERS, FACES))
    builder.add_body(cube, (-0.02, 0.0, -0.02), friction_static=0.0, friction_kinetic=0.0)
    return builder.build(TIP_RADIUS, (0.0, 0.0, 0.0), EPS_ALERT, EPS_SAFETY, EPS_BREAK)


def told(rig: Rig) -> Render:
    """The render of the last tick, by the codec."""
    return decode_render(encode_render(rig.record, 0))


def next_place(rig: Rig, device) -> np.ndarray:
    """Where the tool would be after one more tick with the device there (device frame, m)."""
    other = copy.deepcopy(rig)
    other.send(device)
    return other.output["render_position"].copy()


def foretold(rig: Rig, seed: int = 0, sway: float = SWAY, count: int = 40) -> float:
    """Largest error (m) of the place that an adapter finds, over small ways of the hand."""
    render, random, worst = told(rig), np.random.default_rng(seed), 0.0
    here = np.array(rig.sample["position"])
    for _ in range(count):
        device = here + random.uniform(-sway, sway, 3)
        worst = max(worst, float(np.linalg.norm(local_proxy(render, device) - next_place(rig, device))))
    return worst


def standing(rig: Rig, seed: int = 0, sway: float = SWAY, count: int = 40) -> float:
    """The same error of an adapter that leaves the tool where it was."""
    random, worst = np.random.default_rng(seed), 0.0
    here = np.array(rig.sample["position"])
    for _ in range(count):
        device = here + random.uniform(-sway, sway, 3)
        worst = max(worst, float(np.linalg.norm(rig.output["render_position"] - next_place(rig, device))))
    return worst


def pressed(model: Model, place, **options) -> Rig:
    """A hand that has gone from above the walls to a place behind them."""
    rig = Rig(model, start=(0.02, 0.02, 0.02), ramp_up_ms=20.0, **options)
    rig.activate((0.02, 0.02, 0.02))
    rig.glide(place)
    rig.run(20)
    return rig


Z, X, Y = (0.0, 0.0, 1.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)
WEDGE = (0.6, 0.0, 0.8)


@pytest.mark.parametrize("law", ["spring", "constraint"])
@pytest.mark.parametrize(
    ("normals", "place", "planes"),
    [
        ((Z,), (0.02, 0.02, -0.002), 1),
        ((Z, X), (-0.002, 0.02, -0.001), 2),
        ((Z, X, Y), (-0.002, -0.001, -0.003), 3),
        ((Z, WEDGE), (-0.001, 0.02, -0.002), 2),
    ],
)
def test_pressed_on_walls_the_next_tick_is_foretold(normals, place, planes, law):
    """One to three flat walls: to a nanometre, also for ways that let go of some; a tool that stands is far off."""
    rig = pressed(walls(*normals), place, law=law)
    render = told(rig)
    assert (render.plane_count, render.pinned) == (planes, 0)
    assert np.abs(render.slack).max() <= 1e-9
    assert foretold(rig) <= 2e-9
    if planes < 3:
        assert standing(rig) > 0.5 * SWAY


def test_the_planes_are_in_the_device_frame():
    """A workspace that is turned and scaled changes nothing but the numbers."""
    turn, scale = Rotation.from_rotvec((0.3, -1.2, 0.4)), 2.0
    rig = Rig(
        walls(Z, X),
        start=(0.02, 0.02, 0.02),
        ramp_up_ms=20.0,
        scale=scale,
        workspace_orientation=turn.as_quat(),
    )
    rig.activate(turn.inv().apply((0.02, 0.02, 0.02)) / scale)
    rig.glide(turn.inv().apply((-0.002, 0.02, -0.001)) / scale)
    rig.run(20)
    render = told(rig)
    found = {tuple(np.round(turn.apply(render.planes[4 * k : 4 * k + 3]), 9) + 0.0) for k in range(render.plane_count)}
    assert found == {Z, X}
    assert foretold(rig) <= 2e-9


def test_round_an_edge_the_planes_are_tangents():
    """The tip's centre is on a cylinder of radius R about the edge, the hand at r: a way s along it takes the tool
    s R / r; by the tangent s, by a tool that stands nothing."""
    for deep in (0.0005, 0.001, 0.003):
        r = REST - deep
        rig = pressed(edge(), (r * 0.5**0.5, 0.0, r * 0.5**0.5))
        assert told(rig).plane_count >= 1 and told(rig).pinned == 0
        furthest = SWAY * 3.0**0.5
        assert foretold(rig) <= furthest * (REST / (r - furthest) - 1.0)
        assert foretold(rig) < standing(rig) * deep / REST * 2.0


def test_a_wall_that_is_near_is_felt_before_the_next_tick():
    """In free space nothing drags, and 0.2 mm over its resting place the wall already holds."""
    rig = Rig(walls(Z), start=(0.02, 0.02, 0.02), ramp_up_ms=20.0)
    rig.activate((0.02, 0.02, 0.02))
    rig.glide((0.02, 0.02, REST + 2e-4))
    rig.run(5)
    render = told(rig)
    assert (render.plane_count, render.pinned) == (1, 0)
    assert not any(local_wrench(render, (0.021, 0.019, REST + 1e-9), (1.0, -1.0, 0.0)))
    assert local_wrench(render, (0.021, 0.019, REST - 1e-3), NO_SPEED)[:3] == pytest.approx((0.0, 0.0, K * 1e-3))
    assert foretold(rig, sway=1e-3) <= 2e-9
    rig.glide((0.02, 0.02, 0.05))
    assert told(rig).plane_count == 0


def test_a_hand_that_slides_feels_no_drag_between_ticks():
    """0.5 m/s along a floor, 2 mm deep, read at 4 kHz: the analytic force is K 2 mm upwards and nothing else. A spring
    to where the tool was drags by K times the way since, 0.15 N at the end of a period."""
    rig = pressed(walls(Z), (0.02, 0.02, REST - 0.002))
    error, dragged = 0.0, 0.0
    for tick in range(40):
        at = np.array((0.02 + 0.0005 * tick, 0.02, REST - 0.002))
        rig.send(at)
        render = told(rig)
        for quarter in range(4):
            device = at + (0.000125 * quarter, 0.0, 0.0)
            force = np.array(local_wrench(render, device, NO_SPEED)[:3])
            error = max(error, float(np.linalg.norm(force - (0.0, 0.0, K * 0.002))))
            dragged = max(dragged, float(abs(K * (render.proxy_position[0] - device[0]))))
    assert error <= 1e-6
    assert dragged > 0.14


def test_friction_that_holds_pins_and_friction_that_slides_goes_along():
    model = plane_model(friction=0.5)
    rig = Rig(model, start=(0.0, 0.0, 0.02), ramp_up_ms=20.0)
    rig.activate((0.0, 0.0, 0.02))
    rig.press(0.004)
    rig.glide((0.0005, 0.0, REST - 0.004))
    assert told(rig).pinned == 1
    assert foretold(rig, sway=1e-4) <= 1e-9
    begun = rig.sample["position"][0]
    for k in range(60):
        rig.send((begun + 0.0004 * (k + 1), 0.0, REST - 0.004))
    render = told(rig)
    assert render.pinned == 0
    # The kinetic coefficient is three quarters of the static one; what friction holds goes along with the hand.
    assert render.slack[0] == pytest.approx(-0.375 * 0.004, rel=1e-6)
    ahead = np.array(rig.sample["position"]) + (2e-4, 0.0, 0.0)
    force = local_wrench(render, ahead, (0.4, 0.0, 0.0))[:3]
    assert force == pytest.approx((-K * 0.375 * 0.004, 0.0, K * 0.004), rel=1e-6)
    assert next_place(rig, ahead) == pytest.approx(local_proxy(render, ahead), abs=1e-9)


def test_in_the_tick_itself_the_place_is_the_tools():
    """Whatever happens: friction, edges, corners, several surfaces, work cut short."""
    random = np.random.default_rng(7)
    for model in (walls(Z, X, Y), walls(Z, WEDGE), edge(), plane_model(friction=0.4)):
        for budget in ((20000, 8, 50, 0), (60, 1, 1, 0)):
            rig = Rig(model, start=(0.02, 0.02, 0.02), ramp_up_ms=20.0)
            rig.activate((0.02, 0.02, 0.02))
            rig.record["budget"] = budget
            device = np.array((0.02, 0.02, 0.02))
            for _ in range(300):
                device = np.clip(device + random.uniform(-6e-4, 6e-4, 3) - 1e-4, -0.004, 0.02)
                rig.send(device)
                render = told(rig)
                assert np.linalg.norm(np.array(local_proxy(render, device)) - render.proxy_position) <= 3e-9
                rows = np.array(render.planes).reshape(MAX_PLANES, 4)
                used = rows[: render.plane_count]
                assert np.abs(np.linalg.norm(used[:, :3], axis=1) - 1.0).max(initial=0.0) <= 1e-12
                assert (used[:, :3] @ render.proxy_position >= used[:, 3] - 1e-12).all()
                assert not rows[render.plane_count :].any()


def led(rig: Rig) -> None:
    set_fixtures(rig.settings, [make_fixture(LINE, (0.0, 0.0, 0.05), direction=(1.0, 0.0, 0.0))])


def clutched(rig: Rig) -> None:
    rig.put(CommandKind.CLUTCH, 1.0)


def hasty(rig: Rig) -> None:
    """Too little work for the contacts that are near."""
    rig.record["budget"] = (1, 1, 1, 0)


@pytest.mark.parametrize("why", [led, clutched, hasty])
def test_what_leads_the_tool_otherwise_pins_it(why):
    rig = pressed(walls(Z), (0.02, 0.02, REST - 0.001))
    assert told(rig).pinned == 0
    why(rig)
    rig.run(5, (0.0205, 0.02, REST - 0.001))
    assert told(rig).pinned == 1


def test_a_damped_coupling_and_a_tool_with_mass_are_pinned():
    rig = pressed(walls(Z), (0.02, 0.02, REST - 0.001), law="damped")
    assert told(rig).pinned == 1
    inertia = body_inertia(0.05, np.diag([5e-6] * 3), (0.0, 0.0, 0.0))
    rig = Rig(block_model(turning=REACH**2, inertia=inertia), tool_reach=REACH, ramp_up_ms=20.0)
    rig.activate((0.0, 0.0, 0.1))
    assert told(rig).pinned == 1


@pytest.mark.parametrize("turning", [0.0, 1e-3])
def test_a_cube_that_lies_flat_is_held_by_one_plane(turning):
    """Its four corners have one normal; the friction of the ground pins it."""
    rig = Rig(block_model(turning=turning), tool_reach=REACH, start=(0.0, 0.0, 0.02), ramp_up_ms=20.0)
    rig.activate((0.0, 0.0, 0.02))
    rig.glide((0.0, 0.0, 0.009))
    rig.run(20)
    render = told(rig)
    assert (render.plane_count, render.pinned) == (1, 1)
    assert render.planes[:3] == pytest.approx((0.0, 0.0, 1.0), abs=1e-9)
    assert foretold(rig, sway=1e-4) <= 1e-9


def test_in_a_pit_the_walls_that_push_are_told_first():
    """Six sides, three of which hold the tip in the bottom: those, and one more."""
    angles = np.arange(6) * np.pi / 3.0 + 0.1
    normals = [(0.8 * np.cos(a), 0.8 * np.sin(a), 0.6) for a in angles]
    rig = Rig(walls(*normals), start=(0.0, 0.0, 0.03), ramp_up_ms=20.0)
    rig.activate((0.0, 0.0, 0.03))
    rig.glide((0.0, 0.0, 0.002))
    rig.run(20)
    render = told(rig)
    assert (render.plane_count, render.pinned) == (MAX_PLANES, 0)
    contacts = rig.output["report"]["contacts"][: rig.output["report"]["contact_count"]]
    pushing = contacts["normal"][contacts["displacement"].any(axis=1)]
    assert len(pushing) == 3
    assert np.array(render.planes).reshape(MAX_PLANES, 4)[:3, :3] == pytest.approx(pushing, abs=1e-12)
    rig.glide((0.0, 0.0, 0.03))
    assert told(rig).plane_count == 0


@pytest.mark.parametrize("sides", [MAX_PLANES, MAX_PLANES + 1])
def test_more_walls_that_push_than_there_is_room_for_pin_the_tool(sides):
    """By a report that is made up: a tip never needs more than three to hold it, a mesh may."""
    rig = pressed(walls(Z), (0.02, 0.02, REST - 0.001))
    report = rig.output["report"]
    report["contact_count"] = sides
    for k in range(sides):
        angle = 2.0 * np.pi * k / sides
        contact = report["contacts"][k]
        contact["normal"] = (0.8 * np.cos(angle), 0.8 * np.sin(angle), 0.6)
        contact["displacement"] = 1e-4 * contact["normal"]
    describe(rig.model, rig.settings[0], rig.touch[0], rig.output)
    assert rig.output["plane_count"] == MAX_PLANES
    assert rig.output["pinned"] == (sides > MAX_PLANES)


OFFSET = (0.0, 0.0, -0.1)
"""m: a handle above the cube, so that a turn moves the coupling point by far more than the stretch."""


def offset_block(turning: float, friction: float) -> Model:
    """The cube of the bench over its plane, held by a handle above it."""
    builder = ModelBuilder()
    ground = builder.add_mesh(*build_tree(*square(1.0)))
    builder.add_body(ground, friction_static=friction, friction_kinetic=friction)
    tool = builder.add_mesh(*build_tree(BLOCK * CORNERS, FACES))
    return builder.build(0.0, OFFSET, EPS_ALERT, EPS_SAFETY, EPS_BREAK, tool_mesh_id=tool, turning=turning)


@pytest.mark.parametrize("law", ["spring", "constraint"])
@pytest.mark.parametrize(("turning", "friction"), [(0.0, 0.5), (REACH**2, 0.5), (REACH**2, 0.0)])
def test_of_a_tool_turned_off_its_image_the_local_force_is_the_couplings(turning, friction, law):
    """Pressed 2 mm and turned by 0.3 rad about the tip, also half way up the ramp: at the device's pose the spring that
    an adapter closes is the coupling's, ramped."""
    rest = np.array((0.0, 0.0, BLOCK + EPS_SAFETY + 0.002))
    start = rest - OFFSET
    rig = Rig(
        offset_block(turning, friction), tool_reach=REACH, start=rest, law=law,
        stiffness=1000.0, damping=0.0, rotational_stiffness=1.0, ramp_up_ms=80.0, passivity=False,
    )  # fmt: skip
    rig.sample["position"] = start
    assert rig.command(CommandKind.LEASE) == Reason.NONE
    rig.send(start)
    assert rig.command(CommandKind.ARM, 1) == Reason.NONE
    ramped = 0
    for k in range(90):
        turn = Rotation.from_rotvec((0.0, 0.3 * min(1.0, max(0.0, (k - 20) / 50)), 0.0))
        tip = rest - (0.0, 0.0, 2e-4 * min(k, 20))
        rig.send(tip - turn.apply(OFFSET), turn.as_quat())
        render = told(rig)
        wanted = rig.output["gain"] * rig.output["coupling_wrench"][:3]
        force = local_wrench(render, rig.sample["position"], NO_SPEED)[:3]
        assert force == pytest.approx(wanted, abs=1e-6)
        ramped += 0.0 < rig.output["gain"] < 1.0 and np.linalg.norm(wanted) > 0.1
    assert ramped > 10 and rig.output["gain"] == 1.0 and np.linalg.norm(wanted) > 1.0
    slipped = Rotation.from_quat(rig.output["proxy_orientation"]).inv() * turn
    assert slipped.magnitude() > 0.02
