"""What samples must say of a handle whose journal is known: made ones, so that nothing depends on time."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from bridge.adapters.agreement import MOVED, Course, findings, gives_way, ramp_s, turn_between
from bridge.adapters.journal import READ, ROW, WRITTEN
from haptics.cards import load_card

MS = 1_000_000
CARD = load_card("simulated")
LIFT = np.array((0.02, -0.015, 0.03))
TURN = np.array((0.2, -0.15, 0.3))


def truth() -> Course:
    """Half a second to `LIFT` and `TURN` at an even speed, and half a second of rest, every ms."""
    t = np.arange(0, 1001) * MS
    share = np.clip(t / (500 * MS), 0.0, 1.0)[:, None]
    twist = np.where(share < 1.0, 2.0 * np.concatenate((LIFT, TURN)), 0.0)
    return Course(t, share * LIFT, Rotation.from_rotvec(share * TURN).as_quat(), twist)


def said(late: int = 0, **changes) -> Course:
    """Samples of it every 2 ms, the poses ``late`` ms old; without a twist unless one is given."""
    true = truth()
    rows = np.arange(0, 1001, 2)
    old = np.maximum(rows - late, 0)
    whole = Course(true.t[rows], true.position[old], true.orientation[old], np.full((len(rows), 6), np.nan))
    return whole._replace(**changes)


def wrong(samples: Course) -> list[str]:
    return [text for good, text in findings(samples, truth(), CARD) if not good]


def test_samples_that_say_what_the_device_did_agree():
    assert wrong(said()) == []
    assert wrong(said(twist=truth().twist[::2])) == []
    assert len(findings(said(), truth(), CARD)) == 3
    assert len(findings(said(), truth(), load_card("inverse3"))) == 2, "nothing is said of turns that are not sensed"


def test_poses_of_long_ago_are_told():
    assert wrong(said(late=15)) == []
    assert [text[:26] for text in wrong(said(late=100))] == ["poses are 100.0 ms older t"]


@pytest.mark.parametrize("order", [(1, 0, 2), (0, 2, 1), (2, 1, 0), (2, 0, 1)])
def test_axes_in_another_order_are_told(order):
    assert any("mm samples say" in text for text in wrong(said(position=said().position[:, order])))


@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("factor", [-1.0, 1.01, 1000.0])
def test_signs_and_units_are_told(axis, factor):
    position = said().position.copy()
    position[:, axis] *= factor
    assert any("mm samples say" in text for text in wrong(said(position=position)))


@pytest.mark.parametrize(
    "change",
    [
        lambda q: q[:, [3, 0, 1, 2]],
        lambda q: q * (-1.0, -1.0, -1.0, 1.0),
        lambda q: q * (1.0, -1.0, 1.0, 1.0),
        lambda q: np.tile((0.0, 0.0, 0.0, 1.0), (len(q), 1)),
    ],
    ids=["scalar first", "inverse", "one sign", "never"],
)
def test_turns_that_are_others_are_told(change):
    found = wrong(said(orientation=change(said().orientation)))
    assert len(found) == 1 and "(x, y, z, w) samples say" in found[0]


def test_the_other_sign_of_a_quaternion_is_the_same_turn():
    assert wrong(said(orientation=-said().orientation)) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda twist, position: -twist,
        lambda twist, position: 1000.0 * twist,
        lambda twist, position: np.concatenate((position, twist[:, 3:]), axis=1),
        lambda twist, position: twist[:, [3, 4, 5, 0, 1, 2]],
        lambda twist, position: twist * (1.0, 1.0, 1.0, 57.3, 57.3, 57.3),
        lambda twist, position: 0.0 * twist,
    ],
    ids=["sign", "millimetres", "position", "order", "degrees", "none"],
)
def test_a_twist_that_is_another_is_told(change):
    found = wrong(said(twist=change(truth().twist[::2], said().position)))
    assert found and all("the twist's" in text for text in found)


def test_too_few_samples_are_told():
    few = Course(*(column[:3] for column in said()))
    assert "samples while it moved" in wrong(few)[0]


X = np.eye(3)[0]


def test_a_handle_that_gives_way_goes_where_it_is_pushed():
    assert gives_way([X * 5e-3, -X * 5e-3], X, MOVED) == ""
    assert gives_way([X * 1e-5, -X * 5e-3], X, MOVED) == "", "one that lay at its stop moves only back"
    assert gives_way([np.array((4e-3, 0.0, -2e-3)), -X * 5e-3], X, MOVED) == "", "stops and weight lead aside"
    assert "along [-1.0, " in gives_way([-X * 5e-3, X * 5e-3], X, MOVED)
    assert "when reversed" in gives_way([X * 1e-5, X * 5e-3], X, MOVED)
    assert "along [0.0, 1.0, 0.0]" in gives_way([np.eye(3)[1] * 5e-3], X, MOVED)
    assert "was the handle held" in gives_way([X * 1e-5, -X * 1e-5], X, MOVED)


def test_a_turn_is_told_in_the_device_frame():
    before = Rotation.from_rotvec((0.5, 0.0, 0.0))
    after = Rotation.from_rotvec((0.0, 0.1, 0.0)) * before
    assert turn_between(before.as_quat(), after.as_quat()) == pytest.approx((0.0, 0.1, 0.0))


def journal_of_a_ramp(slew: float, periods: list[float], read: float, write: float) -> np.ndarray:
    """Cycles that look at their clock ``periods`` (s) apart, in a share of them after reading and before writing."""
    rows = np.zeros(2 * len(periods), ROW)
    now = force = 0.0
    rest = (np.zeros(3), (0.0,) * 6, (0.0, 0.0, 0.0, 1.0), (0.0,) * 6)
    for k, period in enumerate(periods):
        now += period
        force = min(force + slew * period, 10.0) if k > 1 else 0.0
        following = periods[k + 1] if k + 1 < len(periods) else 1e-3
        rows[2 * k] = (round((now - read * period) * 1e9), READ, *rest)
        rows[2 * k + 1] = (
            round((now + write * following) * 1e9),
            WRITTEN,
            np.zeros(3),
            (0.0, force, *(0.0,) * 4),
            *rest[2:],
        )
    return rows


@pytest.mark.parametrize("periods", [[1e-3] * 40, [4e-3] * 20, [1e-3, 1e-3, 4e-3, 1e-3, 2e-3, 5e-3, *([1e-3] * 20)]])
@pytest.mark.parametrize(("read", "write"), [(0.01, 0.01), (0.9, 0.01), (0.01, 0.9), (0.5, 0.4)])
def test_a_slew_at_its_limit_is_never_too_fast_wherever_a_cycle_is_held_up(periods, read, write):
    took, rise = ramp_s(journal_of_a_ramp(1500.0, periods, read, write), 10.0, cycles=True)
    assert took >= rise / 1500.0


@pytest.mark.parametrize(("read", "write"), [(0.01, 0.01), (0.5, 0.4)])
def test_a_slew_of_twice_the_limit_is_too_fast(read, write):
    took, rise = ramp_s(journal_of_a_ramp(3000.0, [1e-3] * 40, read, write), 10.0, cycles=True)
    assert took < 0.98 * rise / 1500.0
