"""Where the other end of a link is: reflected, scaled, and by an offset that one of the two decides."""

import numpy as np
import pytest
from link_rig import bare_pair
from scipy.spatial.transform import Rotation

from haptics.link import hear
from haptics.link_codes import LinkState
from haptics.tables import LINK, LINK_SETTINGS, PEER_INPUT, PORT

LOST, UP = LinkState.LOST, LinkState.UP


@pytest.mark.parametrize(("mirror", "axis"), [("", None), ("x", 0), ("y", 1), ("z", 2)])
def test_the_other_end_is_reflected_and_scaled(mirror, axis):
    """Against rotation matrices: x' = s M x, R' = M R M, and power is the same on both sides."""
    random = np.random.default_rng(3)
    reflection = np.eye(3)
    if axis is not None:
        reflection[axis, axis] = -1.0
    settings, link, peer, port = (np.zeros(1, t) for t in (LINK_SETTINGS, LINK, PEER_INPUT, PORT))
    row = settings[0]
    row["dt"], row["on"], row["law"], row["scale"], row["distance_max"] = 1e-3, 1, 1, 2.5, 100.0
    row["stale_after_ns"], row["ramp_up_ticks"], row["ramp_down_ticks"] = 10**9, 10, 10
    row["mirror"] = np.diag(reflection)
    said = peer[0]["message"]
    turn = Rotation.random(random_state=5)
    said["session"], said["active"], said["law"], said["scale"] = 9, 1, 1, 1.0 / 2.5
    said["mirror"] = 0 if axis is None else axis + 1
    said["position"], said["orientation"] = random.normal(size=3), turn.as_quat()
    said["twist"], said["wrench"] = random.normal(size=6), random.normal(size=6)
    peer[0]["fresh"] = peer[0]["decides"] = 1
    port[0]["engaged"], port[0]["orientation"] = 1, (0.0, 0.0, 0.0, 1.0)
    hear(row, link[0], peer[0], port[0])
    assert link[0]["state"] == UP
    over = np.linalg.det(reflection) * reflection
    heard = link[0]
    # It has come up here, so the place is that of this end; the offset is what lies between.
    assert np.allclose(heard["other_position"], 0.0, atol=1e-12)
    assert np.allclose(heard["offset_position"], -2.5 * reflection @ said["position"], atol=1e-12)
    unturned = Rotation.from_matrix(reflection @ turn.as_matrix() @ reflection).inv()
    assert (Rotation.from_quat(heard["offset_orientation"]) * unturned.inv()).magnitude() < 1e-12
    assert np.allclose(heard["other_twist"][:3], 2.5 * reflection @ said["twist"][:3])
    assert np.allclose(heard["other_twist"][3:], over @ said["twist"][3:])
    power = said["twist"] @ said["wrench"]
    assert heard["other_twist"] @ heard["other_wrench"] == pytest.approx(power, rel=1e-12)


@pytest.mark.parametrize("mover", [0, 1])
@pytest.mark.parametrize("other", [{}, {"scale": 2.0, "mirror": "y"}], ids=["alike", "scaled and mirrored"])
def test_hands_that_move_while_the_link_comes_up_agree_where_they_are(mover, other):
    """0.2 m/s and 0.5 rad/s at 50 ms: at rest the two pull each other alike, not both one way by the 20 mm between."""
    mine = {"scale": 1.0 / other.get("scale", 1.0), "mirror": other.get("mirror", "")}
    both = bare_pair(50, first=mine, second=other, method="none", rotational_stiffness=0.3, distance_max=10.0)
    port = both.ends[mover].port
    for k in range(1500):
        port["position"][:2] += 0.2e-3
        port["orientation"] = Rotation.from_rotvec((0.0, 0.3, 0.5e-3 * k)).as_quat()
        both.run(1)
    both.run(300)
    assert both.states == [UP, UP]
    first, second = (end.output["wrench"] for end in both.ends)
    reflection = np.diag([1.0, -1.0, 1.0]) if other else np.eye(3)
    scale = other.get("scale", 1.0)
    assert np.linalg.norm(first[:3]) > 1.0 and np.linalg.norm(first[3:]) > 0.01
    # Springs are this device's own, and each end's way is the other's in its own metres.
    assert np.allclose(second[:3], -scale * reflection @ first[:3], atol=1e-9)
    assert np.allclose(second[3:], -np.linalg.det(reflection) * reflection @ first[3:], atol=1e-9)


def test_an_end_that_decides_anew_is_followed_by_a_new_beginning():
    """It was lost and up again while nothing came: the other end ramps down to its new offset, and never jumps."""
    both = bare_pair(method="none", stale_after_ms=200.0)
    follows, decides = both.ends
    both.run(700)
    follows.settings["stale_after_ns"] = 10**10
    both.ways[1].cut = True
    both.ways[0].cut = True
    both.run(300)
    assert both.states == [UP, LOST]
    decides.port["position"][0] = 0.01
    both.ways[0].cut = False
    both.run(200)
    assert both.states == [UP, UP] and decides.output["distance"] < 1e-12
    both.ways[1].cut = False
    forces, states = [], []
    for _ in range(400):
        both.run(1)
        forces.append(follows.output["wrench"][0])
        states.append(follows.state)
    assert states[-1] == UP and LOST in states
    assert np.abs(np.diff([0.0, *forces])).max() < 0.1 and np.abs(forces[-1]) < 1e-9


def test_the_faster_of_two_align_speeds_draws_both_ends_together():
    for first, second in (({"align_speed": 0.05}, {}), ({}, {"align_speed": 0.05})):
        both = bare_pair(20, first=first, second=second, method="none")
        both.ends[0].port["position"][0] = 0.03
        both.run(2500)
        assert both.states == [UP, UP]
        for end, x in zip(both.ends, (0.0, 0.03), strict=True):
            assert end.link["other_position"][0] == pytest.approx(x, abs=1e-12)
