"""A link between two hands: what each feels of the other, and that it comes and goes without a step."""

from __future__ import annotations

import numpy as np
import pytest
from link_rig import BareEnd, bare_pair
from scipy.spatial.transform import Rotation

from haptics.fixtures import HALF_SPACE, make_fixture, set_fixtures
from haptics.hands import HANDS_OFF, HELD, LIGHT, WayPoints
from haptics.link import render
from haptics.link_codes import LinkReason, LinkState
from haptics.link_settings import misfit
from haptics.states import CommandKind, EngagementState
from haptics.tables import LINK, LINK_OUTPUT, LINK_SETTINGS, PORT
from tools.two_ends import REST, Channel, End, Pair, floor, hand_on

UP, LOST, WAITING = LinkState.UP, LinkState.LOST, LinkState.WAITING
HERE = np.zeros(3)
KEEP_ALIVE = 20
"""Ticks of a millisecond."""


LEADS, FOLLOWS = ({"law": "position-force", "role": role} for role in ("leader", "follower"))
WAVES = {"method": "waves"}


def still(place=HERE) -> WayPoints:
    return WayPoints([0.0, 1.0], [place, place])


def reach(to, place=HERE, begin=1.2, end=2.2) -> WayPoints:
    return WayPoints([begin, end], [place, np.add(place, to)])


def pair(first=None, second=None, ways=None, grips=(HELD, HELD), models=(None, None), roles=("", ""), **link) -> Pair:
    link = {"stiffness": 400.0, "damping": 2.0, "distance_max": 0.5, **link}
    paths = (first or still(), second or still())
    ends = [
        End(hand_on(paths[k], grips[k]), 11 + k, model=models[k], **(link | ({"role": roles[k]} if roles[k] else {})))
        for k in range(2)
    ]
    return Pair(*ends, ways)


def steps(course) -> np.ndarray:
    """(2,) largest change of the rendered force from tick to tick, N."""
    return np.linalg.norm(np.diff(course.wrench, axis=0), axis=2).max(axis=0)


# ---------------------------------------------------------------------------------------------- what is felt


@pytest.mark.parametrize("method", ["none", "tank", "waves"])
def test_two_hands_that_rest_apart_feel_the_spring_between_them(method):
    """The two-port at rest: arm, link and arm in series, f = d / (1 / k1 + 1 / K + 1 / k2)."""
    both = pair(reach((0.03, 0.0, 0.0)), method=method)
    course = both.run(6000)
    way = 0.03
    arms = 2.0 / HELD.stiffness
    # A line's spring is its filter's and that of one tick's delay.
    link = 1.0 / 400.0 + (0.001 / 10.0 if method == "waves" else 0.0)
    force = way / (arms + link)
    apart = course.position[-1, 0, 0] - course.position[-1, 1, 0]
    # Dry friction of the devices, 0.1 N, may hold them anywhere within what it bears.
    assert abs(apart - force * link) < 0.1 / 400.0 + 1e-4
    assert np.abs(course.force[-1, :, 0] - np.array([-force, force])).max() < 0.15
    assert np.all(steps(course) <= both.ends[0].limit * (1 + 1e-9))


def test_the_leader_of_position_force_feels_what_the_follower_touches():
    """Free motion is free for the leader; a floor under the follower's tool is felt, force for force."""
    down = reach((0.0, 0.0, -0.03), (0.0, 0.0, 0.05), 1.2, 2.0)
    both = pair(
        down,
        still((0.0, 0.0, 0.05)),
        grips=(HELD, LIGHT),
        models=(None, floor(0.05 - REST - 0.01)),
        law="position-force",
        roles=("leader", "follower"),
        method="none",
    )
    course = both.run(1500)
    assert np.abs(course.force[:1500, 0]).max() == 0.0
    course = both.run(4000)
    touched = both.ends[1].output["coupling_wrench"][2] - both.ends[1].output["link"]["wrench"][2]
    assert touched > 1.0
    assert course.force[-1, 0, 2] == pytest.approx(touched, rel=1e-3)


def test_four_channels_carry_the_place_and_the_force():
    both = pair(
        reach((0.0, 0.0, -0.03), (0.0, 0.0, 0.05)),
        still((0.0, 0.0, 0.05)),
        models=(None, floor(0.05 - REST - 0.001)),
        law="four-channel",
        method="none",
        force_gain=0.5,
    )
    course = both.run(6000)
    first, second = (end.output for end in both.ends)
    touched = second["coupling_wrench"][2] - second["link"]["wrench"][2]
    spring = 400.0 * (course.position[-1, 1, 2] - course.position[-1, 0, 2])
    assert touched > 0.5
    assert first["link"]["wrench"][2] == pytest.approx(spring + 0.5 * touched, abs=0.05)


def test_ends_that_came_up_apart_come_together_at_their_speed():
    both = pair(still((0.0, 0.0, 0.0)), still((0.02, 0.0, 0.0)), method="none", align_speed=0.02, stiffness=100.0)
    course = both.run(700)
    came = int(np.argmax(course.state[:, 0] == UP))
    assert np.linalg.norm(course.wrench[came, 0]) < 1e-6
    both.run(2500)
    pull = both.ends[0].output["link"]["wrench"][0]
    wanted = 0.02 / (2.0 / HELD.stiffness + 1.0 / 100.0)
    assert pull == pytest.approx(wanted, abs=0.12)


def test_a_link_turns_the_hands_as_well():
    axis = np.array([0.0, 1.0, 0.0])
    turns = [(0.0, 0.0, 0.0, 1.0), tuple(np.append(np.sin(0.2) * axis, np.cos(0.2)))]
    turning = WayPoints([1.2, 2.2], [HERE, HERE], turns)
    both = pair(turning, method="none", rotational_stiffness=0.3)
    both.run(5000)
    first, second = (end.output["link"]["wrench"] for end in both.ends)
    arms = 2.0 / HELD.rotational_stiffness
    wanted = 0.4 / (arms + 1.0 / 0.3)
    assert first[4] == pytest.approx(-wanted, abs=2e-3)
    assert second[4] == pytest.approx(wanted, abs=2e-3)


@pytest.mark.parametrize("mirror", ["", "x"])
def test_a_turn_is_felt_about_its_own_axis_however_differently_the_hands_came_up(mirror):
    """What the other hand turns about z pulls about z (about -z, reflected), as its twist and its torque count here."""
    both = bare_pair(rotational_stiffness=0.3, mirror=mirror)
    first, second = both.ends
    second.port["orientation"] = Rotation.from_rotvec((np.pi / 2, 0.0, 0.0)).as_quat()
    both.run(600)
    assert both.states == [UP, UP]
    assert np.all(np.abs(second.output["wrench"]) < 1e-12)
    first.port["orientation"] = Rotation.from_rotvec((0.0, 0.0, 0.2)).as_quat()
    first.port["twist"][5] = 0.1
    both.run(3)
    about = -1.0 if mirror else 1.0
    assert np.allclose(second.link["other_twist"][3:], (0.0, 0.0, 0.1 * about), atol=1e-12)
    assert np.allclose(second.output["wrench"][3:], (0.0, 0.0, 0.3 * 0.2 * about), atol=1e-12)
    assert np.allclose(first.output["wrench"][3:], (0.0, 0.0, -0.3 * 0.2), atol=1e-12)


def test_hands_that_came_up_turned_come_together_the_straight_way():
    both = bare_pair(rotational_stiffness=0.3, align_speed=0.01)
    both.ends[1].port["orientation"] = Rotation.from_rotvec((0.4, 0.0, 0.0)).as_quat()
    both.run(503)
    assert both.states == [UP, UP]
    # 0.01 m/s on an arm of a tenth of a metre: 0.1 rad/s.
    left = both.ends[1].output["wrench"][3:] / 0.3
    assert np.allclose(left, (-0.05, 0.0, 0.0), atol=5e-4)
    both.run(5000)
    assert np.allclose(both.ends[1].output["wrench"][3:], (-0.3 * 0.4, 0.0, 0.0), atol=1e-9)


@pytest.mark.parametrize("share", [0.5, 0.25])
def test_two_operators_hold_one_tool(share):
    """The tool is between the hands, at one place in both scenes; each feels its part of what the floor does."""
    start, stiffness = (0.0, 0.0, 0.05), 400.0
    both = pair(
        reach((0.0, 0.0, -0.03), start),
        still(start),
        models=(floor(0.045 - REST), floor(0.045 - REST)),
        method="none",
    )
    for k, end in enumerate(both.ends):
        end.settings["link"]["share"] = share if k == 0 else 1.0 - share
    course = both.run(6000)
    first, second = (end.output for end in both.ends)
    hands = course.position[-1, :, 2]
    between = (1.0 - share) * hands[0] + share * hands[1]
    tools = [end.state.proxy[0]["position"][2] for end in both.ends]
    assert tools == pytest.approx([0.045 + 2.5e-4 - 2.5e-4] * 2, abs=2e-5)
    assert first["device_position"][2] == pytest.approx(between, abs=3e-5)
    assert second["device_position"][2] == pytest.approx(between, abs=3e-5)
    pushed = stiffness * (tools[0] - between)
    assert pushed > 1.0
    parts = [(out["coupling_wrench"] - out["link"]["wrench"])[2] for out in (first, second)]
    assert parts == pytest.approx([(1.0 - share) * pushed, share * pushed], abs=0.02)
    # The floor holds both arms and nothing else does: what they feel adds up to what it does.
    assert course.wrench[-1, :, 2].sum() == pytest.approx(pushed, abs=0.02)
    assert np.all(first["stiffness"] == 0.0)


@pytest.mark.parametrize("law", ["spring", "constraint"])
@pytest.mark.parametrize("held_by", ["floor", "fixture"])
def test_a_shared_tool_is_held_by_floors_and_fixtures_under_either_law(law, held_by):
    """A hand that pulls it 25 mm down: the tool stays on what holds it, and both feel their part without a step."""
    start, stiffness, place = (0.0, 0.0, 0.05), 400.0, 0.045
    ground = floor(place - REST) if held_by == "floor" else floor()
    both = pair(
        reach((0.0, 0.0, -0.03), start),
        still(start),
        models=(ground, ground),
        method="none",
        share=0.5,
        coupling={"law": law},
    )
    if held_by == "fixture":
        for end in both.ends:
            set_fixtures(end.settings, [make_fixture(HALF_SPACE, (0.0, 0.0, place))])
    course = both.run(6000)
    assert np.all(steps(course) <= both.ends[0].limit * (1 + 1e-9))
    between = course.position[-1, :, 2].mean()
    for end in both.ends:
        tool = end.state.proxy[0]["position"][2]
        assert tool == pytest.approx(place, abs=2e-5 if held_by == "floor" else 1e-9)
        assert end.output["device_position"][2] == pytest.approx(between, abs=3e-5)
        assert (end.output["link"]["shared"], end.output["pinned"]) == (0.5, 1)
        felt = (end.output["coupling_wrench"] - end.output["link"]["wrench"])[:3]
        assert felt[2] > 0.5
        assert felt == pytest.approx((0.0, 0.0, 0.5 * stiffness * (tool - between)), abs=0.02)


# ------------------------------------------------------------------------------------------------- up and down


def test_a_link_that_is_cut_lets_go_by_its_ramp_and_comes_back_without_a_step():
    ways = (Channel(5), Channel(5))
    both = pair(reach((0.04, 0.0, 0.0)), ways=ways, method="none", stale_after_ms=50.0, ramp_down_ms=100.0)
    course = both.run(3500)
    assert course.state[-1].tolist() == [UP, UP]
    assert abs(course.force[-1, 0, 0]) > 2.0
    for way in ways:
        way.cut = True
    course = both.run(400)
    assert course.state[-1].tolist() == [LOST, LOST]
    assert {int(end.output["link"]["reason"]) for end in both.ends} == {LinkReason.SILENT}
    silent = int(np.argmax(course.state[:, 0] == LOST))
    assert silent <= 60
    assert np.abs(course.force[silent + 101 :]).max() == 0.0
    assert course.engaged[-1].tolist() == [EngagementState.ACTIVE] * 2
    assert np.all(steps(course) <= both.ends[0].limit * (1 + 1e-9))
    for way in ways:
        way.cut = False
    back = both.run(1500)
    assert back.state[-1].tolist() == [UP, UP]
    # A new beginning: nothing is pulled until somebody moves.
    assert np.linalg.norm(back.force, axis=2).max() < 0.3
    assert np.all(steps(back) <= both.ends[0].limit * (1 + 1e-9))


def test_what_a_leader_feels_goes_by_the_ramp_when_the_follower_falls_silent():
    ways = (Channel(), Channel())
    both = pair(
        reach((0.0, 0.0, -0.03), (0.0, 0.0, 0.05), 1.2, 2.0),
        still((0.0, 0.0, 0.05)),
        ways=ways,
        grips=(HELD, LIGHT),
        models=(None, floor(0.05 - REST - 0.01)),
        law="position-force",
        roles=("leader", "follower"),
        method="none",
        stale_after_ms=50.0,
        ramp_down_ms=100.0,
    )
    both.run(4000)
    ways[1].cut = True
    link = both.ends[0].output["link"]
    while link["state"] == UP:
        felt = float(link["wrench"][2])
        both.run(1)
    assert felt > 1.0
    for k in range(1, 102):
        assert link["wrench"][2] == pytest.approx(felt * max(1.0 - k / 100.0, 0.0), abs=1e-9)
        both.run(1)
    assert link["wrench"][2] == 0.0


def test_who_lets_go_of_the_forces_lets_go_of_the_link():
    both = pair(method="none")
    both.run(1200)
    assert both.ends[0].output["link"]["state"] == UP
    both.ends[0].command(CommandKind.DISARM)
    course = both.run(300)
    assert course.state[-1].tolist() == [WAITING, LOST]
    assert both.ends[0].output["link"]["reason"] == LinkReason.NOT_ENGAGED
    assert both.ends[1].output["link"]["reason"] == LinkReason.OTHER_NOT_ENGAGED


def test_a_velocity_of_the_other_end_fades_when_nothing_comes_and_goes_by_the_ramp_when_it_lets_go():
    """The damper follows no hand that is not heard any more, and there is no step when the link is let go."""
    both = bare_pair(damping=10.0, stale_after_ms=100.0, rotational_stiffness=0.3, rotational_damping=0.01)
    both.run(700)
    first, second = both.ends
    second.port["twist"] = (0.3, 0.0, 0.0, 0.0, 0.0, 2.0)
    both.run(2)
    assert np.allclose(first.output["wrench"], (3.0, 0.0, 0.0, 0.0, 0.0, 0.02), atol=1e-12)
    for way in both.ways:
        way.cut = True
    # What is on its way comes yet.
    both.run(1)
    for k in range(1, 2 * KEEP_ALIVE):
        both.run(1)
        left = max(1.0 - k / KEEP_ALIVE, 0.0)
        assert np.allclose(first.output["wrench"], (3.0 * left, 0.0, 0.0, 0.0, 0.0, 0.02 * left), atol=1e-12)
    for way in both.ways:
        way.cut = False
    both.run(2)
    assert first.output["wrench"][0] == pytest.approx(3.0)
    second.port["engaged"] = 0
    both.run(1)
    for k in range(1, 101):
        both.run(1)
        assert first.output["wrench"][0] == pytest.approx(3.0 * (1.0 - k / 100), abs=1e-9)
    assert first.reason == LinkReason.OTHER_NOT_ENGAGED


def test_ends_that_are_too_far_apart_are_let_go():
    both = pair(reach((0.06, 0.0, 0.0)), grips=(HELD, HELD), method="none", stiffness=20.0, distance_max=0.03)
    course = both.run(4000)
    assert course.state[-1].tolist() == [LOST, LOST]
    assert LinkReason.APART in {int(end.output["link"]["reason"]) for end in both.ends}
    assert np.all(steps(course) <= both.ends[0].limit * (1 + 1e-9))


def apart(both, first=-0.05, second=0.05) -> None:
    """Bring up two bare ends and draw them apart to x = first and second, m, beyond what they bear."""
    both.run(1000)
    assert both.states == [UP, UP]
    both.ends[0].port["position"][0], both.ends[1].port["position"][0] = first, second
    both.run(100)


@pytest.mark.parametrize("delay", [0, 20])
@pytest.mark.parametrize("who", ["both", "one"])
def test_ends_that_were_too_far_apart_stay_so_until_one_lets_go_of_its_forces(delay, who):
    """Whatever happens meanwhile: both see it, silence, the other end begins anew; then a hand lets go."""
    both = bare_pair(delay, first={"distance_max": 0.08}, second={"distance_max": 0.08 if who == "both" else 1.0})
    apart(both)
    assert both.reasons == [LinkReason.APART] * 2 and both.states == [LOST, LOST]
    both.run(2000)
    assert both.reasons == [LinkReason.APART] * 2
    for way in both.ways:
        way.cut = True
    both.run(800)
    assert both.reasons == [LinkReason.SILENT] * 2
    for way in both.ways:
        way.cut = False
    both.run(500)
    assert both.reasons == [LinkReason.APART] * 2
    # One that is not heard is kept back, and has not let go.
    both.ways[0].cut = True
    both.run(800)
    both.ways[0].cut = False
    both.ends[1].session = 13
    both.run(500)
    assert both.reasons == [LinkReason.APART] * 2


@pytest.mark.parametrize("who", [0, 1])
@pytest.mark.parametrize("delay", [0, 20, 300])
def test_ends_that_were_too_far_apart_come_up_when_either_has_let_go(delay, who):
    both = bare_pair(delay, distance_max=0.08, stale_after_ms=1000.0)
    apart(both)
    both.run(2000)
    assert both.reasons == [LinkReason.APART] * 2
    both.ends[who].port["engaged"] = 0
    both.run(50)
    both.ends[who].port["engaged"] = 1
    both.run(1500)
    assert both.states == [UP, UP]
    assert both.ends[0].output["distance"] < 1e-12


def test_an_end_that_would_begin_too_far_away_waits_until_it_does_not():
    both = bare_pair(100, first={"distance_max": 0.05}, second={"distance_max": 1.0})
    follows = both.ends[0]
    both.run(150)
    for way, ticks in ((0.5e-3, 400), (-0.5e-3, 340)):
        for _ in range(ticks):
            follows.port["position"][0] += way
            both.run(1)
        assert both.states == ([WAITING, UP] if way > 0.0 else [UP, UP])
    assert follows.output["distance"] == pytest.approx(0.03, abs=1e-12)


def test_waves_leave_hands_as_they_came_up_and_never_count_them_apart():
    both = bare_pair(method="waves", align_speed=0.2, distance_max=0.1, impedance=10.0)
    both.ends[1].port["position"][0] = 0.3
    both.run(3000)
    assert both.states == [UP, UP]
    assert [end.output["distance"] for end in both.ends] == pytest.approx([0.0, 0.0], abs=1e-12)


@pytest.mark.parametrize(
    ("first", "second"),
    [({"method": "tank"}, {"method": "waves"}), ({"impedance": 5.0}, {"impedance": 10.0}), ({}, {"scale": 2.0})],
)
def test_ends_that_mean_different_things_do_not_come_up(first, second):
    common = {"stiffness": 400.0, "damping": 2.0}
    ends = [End(hand_on(still(), HELD), 11 + k, **(common | each)) for k, each in enumerate((first, second))]
    course = Pair(*ends).run(1500)
    assert np.all(course.state == WAITING)
    assert np.all(course.wrench == 0.0)
    reasons = {int(end.output["link"]["reason"]) for end in ends}
    assert LinkReason.MISMATCH in reasons
    assert reasons <= {LinkReason.MISMATCH, LinkReason.OTHER_NOT_ENGAGED}


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ({"method": "tank"}, {}, "method 'tank' here and 'none' there"),
        ({"scale": 2.0}, {}, "scale 2 here and 1 there, whose product is not 1"),
        ({"mirror": "x"}, {}, "mirror 'x' here and '' there"),
        ({"mirror": "x"}, {"mirror": "z"}, "mirror 'x' here and 'z' there"),
        ({"share": 0.5}, {}, "share 0.5 here and 0 there, which do not add up to 1"),
        ({"law": "four-channel"}, {}, "law 'four-channel' here and law 'position-position' there"),
        (LEADS, LEADS, "law 'position-force' as leader here and law 'position-force' as leader there"),
        (FOLLOWS, FOLLOWS, "law 'position-force' as follower here and law 'position-force' as follower there"),
        (
            WAVES | {"impedance": 5.0},
            WAVES,
            "waves of 5 N·s/m, scale counted, and 0.01 N·m·s/rad here, of 10 and 0.01 there",
        ),
    ],
)
def test_whatever_does_not_fit_is_told_and_keeps_the_link_down(first, second, said):
    both = bare_pair(first=first, second=second)
    both.run(700)
    assert UP not in both.states
    assert LinkReason.MISMATCH in both.reasons
    assert misfit(both.ends[0].settings, both.ends[1].output["message"]) == said
    assert misfit(both.ends[1].settings, both.ends[0].output["message"])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"scale": 3.0}, {"scale": 0.3333}),
        ({"mirror": "y"}, {"mirror": "y"}),
        ({"share": 0.25}, {"share": 0.75}),
        ({"share": 1.0}, {}),
        (LEADS, FOLLOWS),
        (WAVES | {"scale": 2.0}, WAVES | {"scale": 0.5}),
    ],
)
def test_whatever_fits_comes_up(first, second):
    both = bare_pair(first=first, second=second)
    both.run(700)
    assert both.states == [UP, UP]
    assert misfit(both.ends[0].settings, both.ends[1].output["message"]) == ""


def test_numbers_that_are_none_move_nothing():
    both = pair(method="none")
    both.run(1200)
    end = both.ends[0]
    message = end.record[0]["input"]["peer"]["message"].copy()
    spoilt = np.array([message])
    spoilt["position"][0, 1] = np.nan
    end.go(both.now + 1, spoilt)
    assert end.output["link"]["reason"] == LinkReason.NOT_FINITE
    assert np.isfinite(end.output["wrench"]).all()


# --------------------------------------------------------------------------------------------------- dead-band


@pytest.mark.parametrize("method", ["none", "tank", "waves"])
def test_a_dead_band_saves_messages_and_is_hardly_felt(method):
    ways = lambda: (Channel(20), Channel(20))  # noqa: E731
    whole = pair(reach((0.03, 0.0, 0.0)), ways=ways(), method=method).run(5000)
    fewer = pair(reach((0.03, 0.0, 0.0)), ways=ways(), method=method, dead_band=0.1).run(5000)
    assert whole.messages == [5000, 5000]
    assert max(fewer.messages) < 0.25 * 5000
    assert min(fewer.messages) >= 5000 // KEEP_ALIVE
    # Waves wait for the next message, KEEP_ALIVE ticks at most, and the line is softer by so much delay.
    later = KEEP_ALIVE * 1e-3 / 10.0 * np.abs(whole.force[-1, 0, 0]) if method == "waves" else 1e-3
    assert abs(fewer.position[-1, 0, 0] - whole.position[-1, 0, 0]) < later


@pytest.mark.parametrize("tick_hz", [500.0, 1000.0, 2000.0])
def test_an_end_at_rest_says_something_every_20_ms_whatever_its_rate(tick_hz):
    end = BareEnd(1, tick_hz, dead_band=0.1)
    said = [k for k in range(1, round(tick_hz) + 1) if end.go(round(k * 1e9 / tick_hz), None) is not None]
    assert set(np.diff(said)) == {round(0.02 * tick_hz)}


# ----------------------------------------------------------------------------------------------------- passive


WAYS = [(0, 0, 0.0), (50, 10, 0.1), (200, 20, 0.2)]


@pytest.mark.parametrize("method", ["waves", "tank"])
@pytest.mark.parametrize(("delay", "jitter", "loss"), WAYS)
def test_passive_methods_give_no_more_than_their_tanks(method, delay, jitter, loss):
    """At every moment: what both hands have got is at most what both ends began with; and they come to rest."""
    ways = (Channel(delay, jitter, loss, 1), Channel(delay, jitter, loss, 2))
    there_and_back = WayPoints([1.2, 1.7, 2.2], [HERE, (0.05, 0.0, 0.0), (-0.02, 0.0, 0.0)])
    both = pair(there_and_back, ways=ways, grips=(HELD, LIGHT), method=method, dead_band=0.05 if jitter else 0.0)
    course = both.run(8000)
    begun = 2 * 0.1
    assert course.energy.sum(axis=1).max() <= begun + 1e-9
    assert np.ptp(course.position[-300:], axis=0).max() < 2e-3
    assert np.all(steps(course) <= both.ends[0].limit * (1 + 1e-9))


@pytest.mark.parametrize("method", ["waves", "tank"])
def test_a_link_that_comes_and_goes_gives_no_more_than_one_that_stays(method):
    """Cut and restored over and over while one hand shakes the other: what its ends begin with is given once."""
    ways = (Channel(0), Channel(0))
    shaking = WayPoints(np.linspace(0.6, 9.0, 60), [(0.03 * (-1.0) ** k, 0.0, 0.0) for k in range(60)])
    link = {"stale_after_ms": 20.0, "ramp_up_ms": 20.0, "ramp_down_ms": 20.0, "stiffness": 1000.0, "impedance": 10.0}
    both = pair(shaking, ways=ways, grips=(HELD, HANDS_OFF), method=method, **link)
    credits = []
    for _ in range(40):
        for way in ways:
            way.cut = False
        both.run(150)
        for way in ways:
            way.cut = True
        course = both.run(75)
        assert course.energy[-1].sum() <= 2 * 0.1 + 1e-9
        for way in ways:
            way.cut = False
        before = [float(end.touch[0]["link"]["credit"]) for end in both.ends]
        if course.state[-1].tolist() == [LOST, LOST]:
            while not all(end.output["link"]["state"] == UP for end in both.ends):
                both.run(1)
            after = [float(end.touch[0]["link"]["credit"]) for end in both.ends]
            credits.append(max(np.subtract(after, before)))
    assert len(credits) > 10
    assert max(credits) < 0.01


def test_without_a_method_delay_shakes_the_hands():
    """What the methods are for: the same two hands through 50 ms each way, with nothing that keeps them passive."""
    ways = (Channel(50), Channel(50))
    course = pair(reach((0.05, 0.0, 0.0)), ways=ways, grips=(HELD, LIGHT), method="none").run(8000)
    assert course.energy.sum(axis=1)[-1] > 5.0
    assert np.ptp(course.position[-300:], axis=0).max() > 0.02


def test_a_link_is_the_same_to_the_bit():
    courses = [
        pair(reach((0.05, 0.0, 0.0)), ways=(Channel(30, 5, 0.1, 1), Channel(30, 5, 0.1, 2)), method=method).run(2500)
        for method in ("tank", "tank")
    ]
    assert courses[0].position.tobytes() == courses[1].position.tobytes()
    assert courses[0].wrench.tobytes() == courses[1].wrench.tobytes()


def test_no_link_says_nothing():
    settings, link, port, output = (np.zeros(1, t) for t in (LINK_SETTINGS, LINK, PORT, LINK_OUTPUT))
    settings[0]["dt"] = 1e-3
    render(settings[0], link[0], port[0], output[0])
    assert np.all(output[0]["wrench"] == 0.0)
