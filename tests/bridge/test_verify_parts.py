"""What verifying is made of, each against an answer from elsewhere."""

from types import SimpleNamespace

import numpy as np
import pytest
import trimesh
from log_run import SESSION, wavy_model
from scipy.optimize import minimize
from scipy.spatial.transform import Rotation

from bridge.separation import triangles_distance
from bridge.verify.bodies import BodyCertificates, Contact, Problem
from bridge.verify.certificate import Certificate
from bridge.verify.fit import Cone, Limit, explain, tangents
from bridge.verify.flight import off_parabola
from bridge.verify.history import gains_in_force
from bridge.verify.moments import resisted
from bridge.verify.motions import Pose, relative_speed, turned_freely, way
from bridge.verify.near import contact_points
from haptics.cards import load_card
from haptics.settings import make_settings
from haptics.states import CommandKind, CommandResult
from haptics.tables import RECORD
from haptics.tick import tick
from haptics.touch import make_touch
from rtcore.state import make_state


def box_triangles(*size: float) -> np.ndarray:
    """(12, 3, 3) of a box about the origin."""
    return np.asarray(trimesh.creation.box(size).triangles)


def test_an_impulse_in_its_cone_is_explained_and_the_rest_is_the_distance_from_it():
    """One contact of a unit mass: what is left is the distance from the cone, which has a closed form."""
    cone = Cone(np.eye(3), [Limit(0.5)])
    rest, push = explain([cone], np.array([1.0, 0.3, 0.39]))
    assert np.linalg.norm(rest) < 1e-12 and push[0] == pytest.approx([1.0, 0.3, 0.39])
    outside = np.array([1.0, 0.0, 2.0])
    rest, _ = explain([cone], outside)
    assert np.linalg.norm(rest) == pytest.approx((2.0 - 0.5) / np.sqrt(1.25), rel=1e-9)
    rest, push = explain([cone], np.array([-1.0, 0.2, 0.0]))
    assert np.linalg.norm(rest) == pytest.approx(np.hypot(1.0, 0.2)) and not push.any()


@pytest.mark.parametrize("seed", range(6))
def test_what_is_left_is_the_least_for_several_contacts(seed: int):
    """Against a general minimiser over the round cones, which can only come from above."""
    random = np.random.default_rng(seed)
    cones = [Cone(random.normal(size=(6, 3)), [Limit(float(random.uniform(0.1, 1.0)))]) for _ in range(3)]
    right = random.normal(size=6)
    rest, pushes = explain(cones, right)
    least = float(rest @ rest)
    for cone, push in zip(cones, pushes, strict=True):
        assert np.linalg.norm(push[1:]) <= cone.limits[0].radius * push[0] * (1.0 + 1e-9) + 1e-12
    assert np.allclose(right - sum(c.columns @ p for c, p in zip(cones, pushes, strict=True)), rest, atol=1e-12)

    def size(x: np.ndarray) -> float:
        left = right - sum(c.columns @ p for c, p in zip(cones, x.reshape(-1, 3), strict=True))
        return float(left @ left)

    limits = [
        {
            "type": "ineq",
            "fun": lambda x, k=k: cones[k].limits[0].radius * x[3 * k] - np.hypot(x[3 * k + 1], x[3 * k + 2]),
        }
        for k in range(3)
    ]
    start = np.tile([1.0, 0.01, 0.01], 3)
    found = minimize(size, start, constraints=limits, method="SLSQP", options={"maxiter": 500, "ftol": 1e-14})
    assert least <= size(found.x) + 1e-7
    # No push that is allowed lessens it: the proof that it is the least.
    for cone in cones:
        pull = cone.columns.T @ rest
        assert pull[0] + cone.limits[0].radius * np.linalg.norm(pull[1:]) <= 1e-6


@pytest.mark.parametrize("seed", range(6))
def test_moments_share_the_normal_force_of_their_contact(seed: int):
    """Friction, spinning and rolling of two contacts, against a general minimiser and by the pulls that are left."""
    random = np.random.default_rng(seed)
    radii = random.uniform(0.1, 1.0, size=(2, 3))
    cones = [Cone(random.normal(size=(9, 6)), [Limit(float(x)) for x in each]) for each in radii]
    right = random.normal(size=9)
    rest, pushes = explain(cones, right)
    for (mu, spin, roll), push in zip(radii, pushes, strict=True):
        assert np.hypot(*push[1:3]) <= mu * push[0] * (1.0 + 1e-9) + 1e-12
        assert abs(push[3]) <= spin * push[0] * (1.0 + 1e-9) + 1e-12
        assert np.hypot(*push[4:6]) <= roll * push[0] * (1.0 + 1e-9) + 1e-12
    assert np.allclose(right - sum(c.columns @ p for c, p in zip(cones, pushes, strict=True)), rest, atol=1e-12)
    for (mu, spin, roll), cone in zip(radii, cones, strict=True):
        pull = cone.columns.T @ rest
        assert pull[0] + mu * np.hypot(*pull[1:3]) + spin * abs(pull[3]) + roll * np.hypot(*pull[4:6]) <= 1e-6

    def size(x: np.ndarray) -> float:
        left = right - sum(c.columns @ p for c, p in zip(cones, x.reshape(-1, 6), strict=True))
        return float(left @ left)

    def room(x: np.ndarray) -> np.ndarray:
        x = x.reshape(-1, 6)
        sizes = np.column_stack([np.hypot(x[:, 1], x[:, 2]), np.abs(x[:, 3]), np.hypot(x[:, 4], x[:, 5])])
        return (radii * x[:, :1] - sizes).ravel()

    start = np.tile([1.0, 0.01, 0.01, 0.01, 0.01, 0.01], 2)
    limits = [{"type": "ineq", "fun": room}]
    found = minimize(size, start, constraints=limits, method="SLSQP", options={"maxiter": 500, "ftol": 1e-14})
    assert float(rest @ rest) <= size(found.x) + 1e-7


def test_moments_of_a_known_force_are_bounded_by_it():
    """A force of 2 N allows moments of 2 x 0.3 and 2 x 0.1 N m, no more, and its own columns are not looked at."""
    columns = np.concatenate([np.zeros((3, 3)), np.eye(3)], axis=1)
    cone = Cone(columns, [Limit(0.0), Limit(0.3), Limit(0.1)], 2.0)
    rest, push = explain([cone], np.array([-0.5, 0.1, 0.1]))
    assert np.linalg.norm(rest) < 1e-12 and push[0] == pytest.approx([2.0, 0.0, 0.0, -0.5, 0.1, 0.1])
    rest, push = explain([cone], np.array([0.7, 0.3, 0.4]))
    assert rest == pytest.approx([0.1, 0.18, 0.24], rel=1e-3) and push[0][0] == pytest.approx(2.0, rel=1e-3)
    # Where it slides they are what they are.
    cone.limits[1] = Limit(0.3, np.array([[-0.3]]))
    rest, _ = explain([cone], np.array([0.6, 0.0, 0.0]))
    assert rest == pytest.approx([1.2, 0.0, 0.0], rel=1e-3, abs=1e-9)


def test_moments_of_the_tool_are_those_that_oppose_its_spin():
    """One contact by hand: it holds, it slides about the normal only, it slides as a whole."""
    normal, limit, ratio = np.array([[0.0, 0.0, 1.0]]), np.array([[2e-6, 3e-6]]), 1e3
    body = np.array([[1e-3, 0.0, 0.0]])
    turn, moments = resisted(np.array([2e-3, 0.0, 1e-3]), ratio, normal, limit, body)
    assert turn == pytest.approx(body[0], abs=1e-12) and moments[0] == pytest.approx([-1e-6, 0.0, -1e-6])
    turn, moments = resisted(np.array([2e-3, 0.0, 5e-3]), ratio, normal, limit, body)
    assert turn == pytest.approx([1e-3, 0.0, 3e-3], abs=1e-12) and moments[0] == pytest.approx([-1e-6, 0.0, -2e-6])
    turn, moments = resisted(np.array([5e-3, 3e-3, -5e-3]), ratio, normal, limit, body)
    assert moments[0] == pytest.approx(3e-6 * np.array([-0.8, -0.6, 0.0]) + [0.0, 0.0, 2e-6])
    assert turn == pytest.approx([5e-3, 3e-3, -5e-3] + 1e3 * moments[0])


@pytest.mark.parametrize("apart", [0.0, 1e-4, 1.0])
def test_one_turn_of_the_tool_belongs_to_several_resisting_contacts(apart: float):
    """By the condition of each contact, its moments the nearest to what would hold, however near axes are."""
    random = np.random.default_rng(3)
    for _ in range(20):
        normals = random.normal(size=3) + apart * random.normal(size=(4, 3))
        normals /= np.linalg.norm(normals, axis=1)[:, None]
        wanted, bodies, ratio = 1e-2 * random.normal(size=3), 1e-3 * random.normal(size=(4, 3)), 1e4
        limits = 1e-6 * np.abs(random.normal(size=(4, 2))) * random.choice([0.0, 1.0, 10.0], size=(4, 2))
        turn, moments = resisted(wanted, ratio, normals, limits, bodies)
        assert turn == pytest.approx(wanted + ratio * moments.sum(axis=0), abs=1e-15)
        for normal, limit, body, moment in zip(normals, limits, bodies, moments, strict=True):
            moved = moment - (turn - body) / ratio
            along, across = (moved @ normal) * normal, moved - (moved @ normal) * normal
            along *= min(1.0, limit[0] / np.linalg.norm(along))
            across *= min(1.0, limit[1] / np.linalg.norm(across))
            assert ratio * np.linalg.norm(moment - along - across) < 1e-8 * np.abs(wanted).max()


def test_edges_alone_may_push_where_a_contact_slides():
    sliding = Cone(np.eye(3), [Limit(0.5, np.array([[-0.5, 0.0]]))])
    rest, _ = explain([sliding], np.array([2.0, -1.0, 0.0]))
    assert np.linalg.norm(rest) < 1e-12
    rest, _ = explain([sliding], np.array([2.0, 0.0, 0.0]))
    assert np.linalg.norm(rest) == pytest.approx(2.0 * 0.5 / np.sqrt(1.25))


def test_tangents_make_a_frame():
    for normal in np.concatenate([np.eye(3), Rotation.random(20, random_state=1).as_matrix()[:, 0]]):
        one, two = tangents(normal)
        assert np.allclose(np.stack([normal, one, two]) @ np.stack([normal, one, two]).T, np.eye(3))
        assert np.linalg.det(np.stack([normal, one, two])) == pytest.approx(1.0)


def test_a_symmetric_top_precesses_as_it_should():
    """Its axis goes round the angular momentum at L / I1, while it spins by the rest: Landau and Lifshitz, 33."""
    moments = np.array([2.0, 2.0, 1.2])
    momentum = np.array([0.0, 0.0, 30.0])
    tilt = 0.4
    frame = Rotation.from_euler("x", tilt).as_matrix()
    dt = 0.05
    turned = turned_freely(frame, moments, momentum, dt)
    assert turned is not None
    around = Rotation.from_rotvec([0.0, 0.0, 30.0 / 2.0 * dt])
    own = 30.0 * np.cos(tilt) * (1.0 / 1.2 - 1.0 / 2.0) * dt
    expected = around.as_matrix() @ frame @ Rotation.from_rotvec([0.0, 0.0, own]).as_matrix()
    assert np.abs(turned - expected).max() < 1e-12


def test_a_way_ends_where_it_should_and_is_a_screw():
    start = Pose(np.array([0.3, -0.1, 0.2]), Rotation.random(random_state=3).as_matrix())
    axis, through = np.array([0.0, 0.0, 1.0]), np.array([0.1, 0.2, 0.0])

    def along(u: float) -> Pose:
        turn = Rotation.from_rotvec(0.7 * u * axis).as_matrix()
        return Pose(through + turn @ (start.position - through) + 0.05 * u * axis, turn @ start.rotation)

    screw = way(start, along(1.0), np.array([0.01, 0.02, -0.03]), 0.1)
    for u in (0.0, 0.25, 0.5, 1.0):
        assert np.allclose(screw.pose(u).position, along(u).position, atol=1e-14)
        assert np.allclose(screw.pose(u).rotation, along(u).rotation, atol=1e-14)


@pytest.mark.parametrize("seed", range(8))
def test_no_distance_changes_faster_than_its_bound(seed: int):
    random = np.random.default_rng(seed)
    triangles = box_triangles(0.1, 0.05, 0.02)
    radius = float(np.linalg.norm(triangles.reshape(-1, 3), axis=1).max())

    def pose(at: np.ndarray) -> Pose:
        return Pose(at + random.normal(0.0, 0.02, 3), Rotation.from_rotvec(random.normal(0.0, 0.3, 3)).as_matrix())

    ways = [way(pose(at), pose(at), np.zeros(3), radius) for at in (np.zeros(3), np.array([0.2, 0.05, 0.0]))]
    bound = relative_speed(*ways)
    steps = np.linspace(0.0, 1.0, 81)
    placed = [[each.pose(u).place(triangles) for u in steps] for each in ways]
    distances = np.array([triangles_distance(a, b, 1.0) for a, b in zip(*placed, strict=True)])
    assert (np.abs(np.diff(distances)) <= bound * np.diff(steps) + 1e-12).all()
    # Two that move as one do not come nearer at all.
    carried = Rotation.from_rotvec([0.0, 0.2, 0.1]).as_matrix()
    one, two = ways[0].start, ways[1].start
    rigid = [
        way(p, Pose(carried @ p.position + (0.01, 0.0, 0.0), carried @ p.rotation), np.zeros(3), radius)
        for p in (one, two)
    ]
    assert relative_speed(*rigid) < 1e-12


def test_near_points_of_a_box_on_a_table_are_its_corners():
    """And nothing else: the table's diagonal and the neighbours of its faces tell the same points again."""
    table, box = box_triangles(1.0, 1.0, 0.1), box_triangles(0.2, 0.2, 0.2)
    box = box + (0.013, 0.007, 0.15 + 5e-5)
    first, second = np.repeat(table, len(box), axis=0), np.tile(box, (len(table), 1, 1))
    points = contact_points(first, second, 1e-4)
    assert points is not None
    assert np.allclose(points.normal, (0.0, 0.0, 1.0), atol=1e-9) and np.allclose(points.gap, 5e-5)
    corners = {tuple(p) for p in np.round(points.second[:, :2] - (0.013, 0.007), 6)}
    assert {(0.1, 0.1), (0.1, -0.1), (-0.1, 0.1), (-0.1, -0.1)} <= corners
    # What else there is lies where its edges, and the diagonal of its face, cross the diagonal of the table.
    inner = [(x, y) for x, y in corners if max(abs(x), abs(y)) < 0.1 - 1e-6]
    assert len(inner) <= 1 and len(corners) <= 7
    assert contact_points(first, second + (0.0, 0.0, 1e-3), 1e-4) is None


def test_near_points_of_round_bodies_are_on_their_surfaces():
    """A ball above a table touches it below its middle, a capsule that lies on it at both ends, two balls between."""
    table = box_triangles(1.0, 1.0, 0.1)
    top, radius, gap = 0.05, 0.02, 5e-5
    middle = np.array([0.013, 0.007, top + radius + gap])
    ball = np.broadcast_to(middle, (len(table), 3, 3)).copy()
    points = contact_points(table, ball, 1e-4, (0.0, radius))
    assert points is not None and len(points.gap) == 1
    assert np.allclose(points.first, (0.013, 0.007, top)) and np.allclose(points.second, (0.013, 0.007, top + gap))
    assert np.allclose(points.normal, (0.0, 0.0, 1.0)) and np.allclose(points.gap, gap, atol=1e-15)
    assert contact_points(table, ball + (0.0, 0.0, 6e-5), 1e-4, (0.0, radius)) is None

    ends = middle + np.array([(-0.04, 0.0, 0.0), (0.04, 0.0, 0.0)])
    capsule = np.broadcast_to(ends[[0, 1, 1]], (len(table), 3, 3)).copy()
    points = contact_points(table, capsule, 1e-4, (0.0, radius))
    assert (
        points is not None and np.allclose(points.gap, gap, atol=1e-12) and np.allclose(points.second[:, 2], top + gap)
    )
    assert points.second[:, 0].min() == pytest.approx(-0.027) and points.second[:, 0].max() == pytest.approx(0.053)
    assert ((points.slope >= 0.0) & (points.slope < 1e-9)).all()

    other = middle + 0.05005 * np.array([2.0, 3.0, 6.0]) / 7.0
    one, two = np.broadcast_to(middle, (1, 3, 3)), np.broadcast_to(other, (1, 3, 3))
    points = contact_points(one, two, 1e-4, (radius, 0.03))
    assert points is not None and len(points.gap) == 1 and points.gap[0] == pytest.approx(5e-5, rel=1e-9)
    assert np.allclose(points.first[0], middle + radius * np.array([2.0, 3.0, 6.0]) / 7.0)
    assert np.allclose(points.second - points.first, 5e-5 * points.normal)


@pytest.mark.parametrize("tilt", [0.0, 1e-4])
def test_capsules_side_by_side_are_near_at_both_ends_of_where_they_overlap(tilt: float):
    """Along one another, and along the edge of a box, where no face lies below their ends."""
    radius, gap = 0.02, 5e-5
    turn = Rotation.from_rotvec([0.0, tilt, 0.0]).as_matrix()
    axis = np.array([(-0.04, 0.0, 0.0), (0.04, 0.0, 0.0), (0.04, 0.0, 0.0)])
    over = axis @ turn.T + (0.03, 0.0, 2.0 * radius + gap)
    points = contact_points(axis[None], over[None], 1e-4, (radius, radius))
    assert points is not None and points.first[:, 0].min() == pytest.approx(-0.01, abs=1e-5)
    assert points.first[:, 0].max() == pytest.approx(0.04, abs=1e-5) and np.allclose(
        points.normal[:, 2], 1.0, atol=1e-6
    )
    assert np.allclose(points.gap, gap - tilt * (points.first[:, 0] - 0.03), atol=1e-9)

    box = box_triangles(0.3, 0.1, 0.1)
    beside = axis @ turn.T + (0.0, 0.05 + (radius + gap) / np.sqrt(2.0), 0.05 + (radius + gap) / np.sqrt(2.0))
    points = contact_points(box, np.broadcast_to(beside, (len(box), 3, 3)).copy(), 1e-4, (0.0, radius))
    assert points is not None and np.allclose(points.first[:, 1:], 0.05, atol=1e-12)
    assert points.first[:, 0].min() == pytest.approx(-0.04, abs=1e-5)
    assert points.first[:, 0].max() == pytest.approx(0.04, abs=1e-5)
    turned = contact_points(np.broadcast_to(beside, (len(box), 3, 3)).copy(), box, 1e-4, (radius, 0.0))
    assert turned is not None and np.allclose(np.sort(turned.gap), np.sort(points.gap), atol=1e-15)


@pytest.mark.parametrize("up", [-0.5, 0.3, 0.0])
def test_what_is_stopped_in_flight_has_the_speed_of_its_height(up: float):
    """The speed of a stone thrown from where it was, by Torricelli; no other one, nor one aside."""
    dt, gravity = 1e-3, np.array([0.0, 0.0, -9.81])
    start = np.array([0.2, 0.1, up])
    kick = dt * gravity
    went = 0.4 * dt * (start + 0.5 * kick)
    rise = np.sqrt(up**2 + 2.0 * gravity[2] * went[2]) * (1.0 if up > 0.0 else -1.0)

    def off(velocity: np.ndarray) -> float:
        body = SimpleNamespace(kick=kick, kicked=start + kick, v1=velocity, centre=np.array([0.1, 0.0, 0.2]))
        return off_parabola(body, went, dt)  # type: ignore[arg-type]

    stopped = np.array([0.2, 0.1, rise])
    assert off(stopped) < 1e-15
    assert 0.99e-6 < off(stopped + (1e-6, 0.0, 0.0)) < 2.1e-6, "itself, and at most as much by its energy"
    assert off(stopped + (0.0, 0.0, 1e-4)) > 1e-7 and off(stopped - (0.0, 0.0, 1e-4)) > 1e-7
    assert off(start + kick) > 1e-5 and off(start) > 1e-5


def test_a_certificate_counts_and_keeps_the_worst():
    found = Certificate("x", "", "N")
    assert found.passed is None and found.verdict == "not judged"
    found.judge_all(np.array([1, 2, 2]), np.array([0.1, 0.9, 0.5]), 1.0)
    assert found.passed and (found.judged, found.ticks) == (3, 2) and found.worst["tick"] == 2
    found.judge(3, np.nan, 1.0, "there")
    assert found.verdict == "FAIL" and found.failed == 1 and found.worst["where"] == "there"
    assert found.to_dict()["worst"]["value"] is None
    least = Certificate("gap", "", "m", least=True)
    least.judge(1, 3.0, 1.0)
    least.judge(2, 2.0, 1.0)
    assert least.passed and least.worst["tick"] == 2
    least.judge(3, 0.5, 1.0)
    assert least.failed == 1


@pytest.mark.parametrize(
    ("rises", "went", "ends"),
    [
        (0.0012819, -4.932e-6, -np.sqrt(0.0012819**2 + 2 * 9.81 * 4.932e-6)),  # fell more than on its parabola
        (0.0101143, 5.381e-6, 0.0),  # is higher than it could rise
        (0.03, 1e-5, np.sqrt(0.03**2 - 2 * 9.81 * 1e-5)),  # stopped half way up
    ],
)
def test_what_is_stopped_in_flight_has_the_energy_of_its_height(rises: float, went: float, ends: float):
    """Ways that the parabola of a tick of 1 ms does not reach, and one that it does: v^2 = v0^2 - 2 g h."""
    kick = np.array([0.0, 0.0, -9.81e-3])

    def off(velocity: float) -> float:
        body = SimpleNamespace(
            kick=kick,
            kicked=np.array([0.4, 0.0, rises]) + kick,
            v1=np.array([0.4, 0.0, velocity]),
            centre=np.zeros(3),
        )
        return off_parabola(body, np.array([2e-4, 0.0, went]), 1e-3)

    assert off(ends) < 1e-12
    assert off(ends + 1e-3) > 1e-7 and off(ends - 1e-3) > 1e-7
    if ends:
        assert off(-ends) > 1e-3, "the same energy, the other way"


@pytest.mark.parametrize(("gap", "verdict"), [(8.6e-5, "FAIL"), (8.8e-5, "not judged")])
def test_only_what_must_be_a_contact_may_not_close(monkeypatch: pytest.MonkeyPatch, gap: float, verdict: str):
    """Contacts begin at 5e-5 + 0.75 (1e-4 - 5e-5) = 8.75e-5 m; both points would end at 1e-5 m, below eps_alert."""
    world = {"eps_alert": 2e-5, "eps_safety": 5e-5, "eps_break": 1e-4}
    judge = object.__new__(BodyCertificates)
    judge._history = SimpleNamespace(world=world, dt=1e-3)  # type: ignore[assignment]
    judge.velocities = Certificate("contact velocity", "", "m")
    up, ends = np.array([0.0, 0.0, 1.0]), 1e-5
    velocity = {0: np.zeros(3), 1: (ends - gap) / 1e-3 * up}
    monkeypatch.setattr(judge, "_moves", lambda body, *_: (velocity[body],) * 3)
    monkeypatch.setattr(judge, "_comes_fast", lambda *_: False)
    monkeypatch.setattr(judge, "_friction", lambda *_: 0.5)
    contact = Contact(0, 1, np.zeros(3), gap * up, up, gap, 0.0)
    problem = Problem(np.zeros(6), [Cone(np.eye(6)[:, :3], 0.5)], [contact], 1.0, 0.0, [])
    judge._restrict(1, 1, "", problem, {})
    assert judge.velocities.verdict == verdict
    assert bool(judge.velocities.left_out) == (verdict == "not judged")


OTHER = 42


def test_gains_in_force_are_those_that_the_ticks_had():
    """Set while idle, in force, in the ramp down and over a hand-over: by ramps, at once, and anew with each lease."""
    settings = make_settings(load_card("simulated"), ramp_up_ms=50.0, ramp_down_ms=30.0)
    model = wavy_model()
    state, touch, work = make_state(model, (0.0, 0.0, 0.02)), make_touch(settings), np.zeros(1, RECORD)
    commands = {
        3: (CommandKind.LEASE, SESSION),
        5: (CommandKind.SET_GAINS, SESSION, 700.0, 3.0),
        8: (CommandKind.ARM, SESSION, 1.0),
        70: (CommandKind.SET_GAINS, SESSION, 150.0, 0.0),
        75: (CommandKind.SET_GAINS, SESSION, 1e5, 1e5),
        150: (CommandKind.HAND_OVER, SESSION, 0.0, float(OTHER)),
        155: (CommandKind.SET_GAINS, SESSION, 50.0, 1.0),
        240: (CommandKind.SET_GAINS, OTHER, 900.0, 9.0),
        250: (CommandKind.CLUTCH, OTHER, 1.0),
        260: (CommandKind.SET_SCALE, OTHER, 3.0),
        300: (CommandKind.SET_GAINS, OTHER, 60.0, 0.5),
        320: (CommandKind.RELEASE, OTHER),
        330: (CommandKind.LEASE, SESSION),
    }
    records, truth, owner = np.zeros(340, RECORD), np.zeros((340, 3)), 0
    for n in range(340):
        work["tick"] = n + 1
        work["budget"] = (20000, 8, 50, 0)
        entered = work[0]["input"]
        entered["command"] = np.zeros(1, entered["command"].dtype)[0]
        if n in commands:
            kind, session, *values = commands[n]
            entered["command"]["id"], entered["command"]["kind"], entered["command"]["session"] = n, kind, session
            entered["command"]["values"][: len(values)] = values
        entered["fresh"] = entered["has_sample"] = owner != 0
        sample = entered["sample"]
        sample["session"], sample["seq"], sample["t_sample"], sample["valid"] = owner, n, n * 1_000_000, 1
        sample["position"], sample["orientation"] = (0.0, 0.0, 0.02), (0.0, 0.0, 0.0, 1.0)
        tick(model, state, settings, touch, work)
        owner = int(touch[0]["owner"])
        records[n] = work[0]
        truth[n] = touch[0]["stiffness"], touch[0]["damping"], touch[0]["scale"]
    assert (records["output"]["command_result"][list(commands)] == CommandResult.DONE).all()
    assert len(np.unique(records["output"]["owner"])) == 3 and len(np.unique(truth[:, 0])) > 50
    found = np.stack(gains_in_force(records, settings[0]), axis=1)
    np.testing.assert_allclose(found, truth, rtol=1e-12, atol=0.0)
