"""The device's own workspace: samples from outside of it move nothing, and drift leads the hand back unfelt."""

import numpy as np
import pytest
from haptics_rig import REST, Rig
from scipy.spatial.transform import Rotation

from haptics.cards import load_card
from haptics.settings import WORKSPACE_MARGIN, make_settings
from haptics.states import CommandKind, EngagementState, Reason

EDGES = (0.4, 0.2, 0.3)
CENTRE = (0.05, 0.0, 0.0)
EDGE = CENTRE[0] + 0.5 * EDGES[0] + WORKSPACE_MARGIN


def boxed(**options) -> Rig:
    return Rig(workspace_limits=EDGES, workspace_centre=CENTRE, **options)


def test_the_card_knows_the_box_and_the_configuration_may_know_better():
    card = load_card("spidar63")
    row = make_settings(card)[0]
    assert np.allclose(row["workspace_half"], np.array(card.workspace_size) / 2 + WORKSPACE_MARGIN)
    assert np.allclose(make_settings(card, workspace_limits=EDGES)[0]["workspace_half"], np.array(EDGES) / 2 + 0.01)
    # A sphere inside the workspace says nothing about where it ends.
    assert not make_settings(load_card("touch"))[0]["workspace_half"].any()


@pytest.mark.parametrize(
    "options, words",
    [
        ({"workspace_limits": (0.1, 0.0, 0.1)}, "three edges above 0"),
        ({"workspace_limits": (0.1, np.nan, 0.1)}, "3 finite numbers"),
        ({"workspace_centre": (0.1, 0.1)}, "3 finite numbers"),
        ({"drift": 0.31}, "0 to 0.3"),
        ({"drift": -0.1}, "0 to 0.3"),
        ({"drift": np.nan}, "drift = nan"),
    ],
)
def test_wrong_numbers_are_named(options, words):
    with pytest.raises(ValueError, match=words):
        make_settings(load_card("simulated"), **options)


def test_drift_needs_a_workspace():
    with pytest.raises(ValueError, match="'virtuose6d' says neither workspace_radius nor workspace_size"):
        make_settings(load_card("virtuose6d"), drift=0.1)
    assert make_settings(load_card("virtuose6d"), drift=0.1, workspace_limits=EDGES)[0]["workspace_reach"] == 0.1


def test_a_sample_outside_the_box_moves_nothing_and_takes_forces_away():
    rig = boxed()
    rig.activate()
    rig.glide((EDGE - 1e-6, 0.0, 0.1), step=2e-3)
    assert rig.status == EngagementState.ACTIVE
    tool = rig.proxy.copy()
    rig.run(7, (EDGE + 1e-4, 0.0, 0.1))
    assert (rig.status, rig.reason) == (EngagementState.HOLD, Reason.OUTSIDE_WORKSPACE)
    assert np.array_equal(rig.proxy, tool)
    rig.run(16)
    assert (rig.status, rig.reason) == (EngagementState.RELEASING, Reason.OUTSIDE_WORKSPACE)
    rig.run(16)
    assert (rig.status, rig.reason) == (EngagementState.IDLE, Reason.OUTSIDE_WORKSPACE)
    # Nor can it engage there; back inside it can.
    assert rig.command(CommandKind.ARM, 1) == Reason.OUTSIDE_WORKSPACE
    assert rig.command(CommandKind.ARM, 0) == Reason.OUTSIDE_WORKSPACE
    assert rig.status == EngagementState.IDLE and np.array_equal(rig.proxy, tool)
    rig.send((EDGE - 1e-6, 0.0, 0.1))
    assert rig.command(CommandKind.ARM, 1) == Reason.NONE


@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_the_box_has_six_sides(axis, side):
    rig = boxed()
    rig.command(CommandKind.LEASE)
    for beyond, kept in ((-1e-6, True), (1e-6, False)):
        position = np.array(CENTRE)
        position[axis] += side * (0.5 * EDGES[axis] + WORKSPACE_MARGIN + beyond)
        rig.send(position)
        assert np.array_equal(rig.row["device_position"], position) == kept


def test_a_device_that_leaves_by_a_jump_is_taken_for_a_jump():
    rig = boxed()
    rig.activate()
    rig.send((EDGE + 0.5, 0.0, 0.1))
    rig.run(20)
    assert (rig.status, rig.reason) == (EngagementState.FAULT, Reason.DEVICE_JUMP)


def free(drift: float, **options) -> Rig:
    rig = Rig(drift=drift, start=(0.0, 0.0, 0.5), ramp_up_ms=20.0, **options)
    rig.activate()
    return rig


def test_a_hand_that_follows_the_tool_is_led_back_to_the_centre():
    """To and fro about a place off centre that it sees: the hand ends nearer to the centre, the tool stays there.

    Each cycle of way w at distance r shifts by drift w r / R: r falls off as exp(-drift w / R per cycle).
    """
    drift, reach = 0.2, 0.2
    frame = Rotation.from_rotvec((0.4, -0.2, 1.0))
    rig = free(
        drift,
        scale=2.0,
        workspace_position=(0.0, 0.0, 0.3),
        workspace_orientation=frame.as_quat(),
    )
    rig.glide((0.1, 0.0, 0.0))
    place = rig.proxy.copy()
    swing, cycles, steps = 0.004, 40, 20
    aside = frame.apply((0.0, 2.0 * swing, 0.0))
    distances = []
    for k in range(cycles * steps):
        # The hand goes where it sees the tool get to its goal: an observer that knows the map's error at each moment.
        goal = place + np.sin(2.0 * np.pi * (k + 1) / steps) * aside
        correction = frame.inv().apply(goal - rig.proxy) / 2.0
        rig.send(np.array(rig.sample["position"]) + correction)
        assert np.linalg.norm(rig.wrench) <= 1e-9
        distances.append(float(np.linalg.norm(rig.sample["position"])))
    way = 4.0 * swing
    expected = distances[0] * np.exp(-drift * way / reach * cycles)
    assert distances[-1] == pytest.approx(expected, rel=0.15)
    assert np.abs(rig.proxy - place).max() <= drift * 2.0 * way


def test_drift_is_bounded_by_a_share_of_the_devices_way_and_grows_with_the_distance():
    rig = free(0.3, workspace_centre=(0.0, 0.0, 0.1))
    random = np.random.default_rng(8)
    for k in range(400):
        before, device = rig.row["anchor_position"].copy(), np.array(rig.sample["position"])
        rig.send(device + random.normal(0.0, 5e-4, 3) + ((2e-3 if k < 150 else 0.0), 0.0, 0.0))
        moved = np.linalg.norm(np.array(rig.sample["position"]) - device)
        away = np.array(rig.sample["position"]) - (0.0, 0.0, 0.1)
        shift = rig.row["anchor_position"] - before
        assert np.linalg.norm(shift) <= 0.3 * moved * (1 + 1e-9)
        wanted = 0.3 * moved * min(np.linalg.norm(away) / 0.2, 1.0) * away / max(np.linalg.norm(away), 1e-30)
        assert np.allclose(shift, wanted, atol=1e-15)
        assert np.linalg.norm(rig.wrench) <= 1e-9


def test_no_drift_at_rest_while_clutched_in_contact_or_when_off():
    rig = free(0.3)
    rig.glide((0.1, 0.0, 0.0), step=2e-3)
    anchor = rig.row["anchor_position"].copy()
    rig.run(50)
    rig.silence(3)
    assert np.array_equal(rig.row["anchor_position"], anchor)
    # Clutched: only the map follows the device, so that the image stands still.
    image = rig.row["image_position"].copy()
    rig.command(CommandKind.CLUTCH, 1)
    rig.glide((0.15, 0.0, 0.0), step=2e-3)
    assert rig.row["clutched"] == 2
    assert np.array_equal(rig.row["image_position"], image)
    rig = Rig(drift=0.3, start=(0.1, 0.0, REST + 0.01), stiffness=2000.0)
    rig.activate()
    rig.glide((0.1, 0.0, REST - 0.002), step=1e-4)
    anchor = rig.row["anchor_position"].copy()
    rig.glide((0.15, 0.0, REST - 0.002), step=1e-4)
    assert np.array_equal(rig.row["anchor_position"], anchor) and np.linalg.norm(rig.wrench) > 1.0
    rig = free(0.0)
    rig.glide((0.1, 0.0, 0.0), step=2e-3)
    assert not rig.row["anchor_position"].any()


def test_touching_down_with_drift_adds_no_more_force_per_tick_than_its_share():
    """In the tick in which the free tool meets the plane, the map may have moved by drift times the device's way."""
    steps = []
    for drift in (0.0, 0.3):
        rig = Rig(drift=drift, start=(0.0, 0.0, 0.15), stiffness=2000.0, damping=0.0)
        rig.activate()
        last, largest = 0.0, 0.0
        for _ in range(400):
            rig.send(np.array(rig.sample["position"]) - (0.0, 0.0, 5e-4))
            force = float(np.linalg.norm(rig.output["coupling_wrench"][:3]))
            largest = max(largest, abs(force - last))
            last = force
        steps.append(largest)
        assert last > 10.0
    assert steps[0] == pytest.approx(2000.0 * 5e-4, rel=1e-3)
    assert steps[1] <= 1.3 * steps[0] * (1 + 1e-9)
