"""Bodies that move: the inertia is that of the solid, and a start from which they could not move is refused."""

import math
import re

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from bridge.assemble import assemble
from bridge.config import ConfigError, parse_config
from bridge.movers import rest_speed
from bridge.scene.errors import SceneError
from bridge.supervisor import facts_of
from rtcore.dynamics.inertia import REST_SPEED
from rtcore.tables import FREE, KINEMATIC, STATIC


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HAPTICD_CACHE_DIR", str(tmp_path / "cache"))


def made(text: str, base="."):
    return assemble(parse_config(text), base)


def box(name: str, size="[1, 1, 1]", more="") -> str:
    return f'[[scene.body]]\nname = "{name}"\nprimitive = "box"\nsize = {size}\n{more}\n'


def tool(more="") -> str:
    return f'[tool]\nprimitive = "sphere"\nsize = [0.1]\nstart = [0, 0, 5]\n{more}\n'


def at(x: float, y: float, z: float, motion="free") -> str:
    return f'motion = "{motion}"\npose.position = [{x!r}, {y!r}, {z!r}]\n'


FREELY = 'motion = "free"\n'


def tensor_of(row: np.void) -> np.ndarray:
    """(3, 3) about the centre of mass, axes of the mesh."""
    axes = Rotation.from_quat(row["axes"]).as_matrix()
    return axes @ np.diag(row["moments"]) @ axes.T


def box_moments(mass: float, x: float, y: float, z: float) -> np.ndarray:
    return mass / 12.0 * np.array([y * y + z * z, x * x + z * z, x * x + y * y])


def test_a_free_body_has_the_inertia_of_its_solid():
    text = box("a", "[0.1, 0.2, 0.3]", FREELY + "density = 500\nlinear_drag = 0.25\nangular_drag = 0.125\n") + tool()
    assembly = made("[rates]\ntick_hz = 500\n" + text)
    row, world = assembly.model.inertias[0], assembly.model.world[0]
    assert row["mass"] == pytest.approx(3.0, rel=1e-12)
    np.testing.assert_allclose(tensor_of(row), np.diag(box_moments(3.0, 0.1, 0.2, 0.3)), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(row["centre"], 0.0, atol=1e-15)
    assert (row["linear_drag"], row["angular_drag"]) == (0.25, 0.125)
    assert assembly.model.bodies["kind"][0] == FREE
    assert world["dt"] == 0.002 and world["gravity"].tolist() == [0, 0, -9.81]
    assert assembly.model.inertias[-1]["mass"] == 0.0


def test_a_given_mass_scales_the_solid():
    row = made(box("a", "[0.1, 0.2, 0.3]", FREELY + "mass = 7\n") + tool()).model.inertias[0]
    assert row["mass"] == pytest.approx(7.0, rel=1e-15)
    np.testing.assert_allclose(tensor_of(row), np.diag(box_moments(7.0, 0.1, 0.2, 0.3)), rtol=1e-12, atol=1e-15)


def test_scale_and_pose_leave_the_inertia_in_the_axes_of_the_mesh(tmp_path):
    """A tetrahedron of mm with a corner at the origin: mass and moments by formulas of the right-angled corner."""
    (tmp_path / "t.obj").write_text("v 0 0 0\nv 100 0 0\nv 0 100 0\nv 0 0 100\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n")
    text = '[[scene.body]]\nname = "t"\nmesh = "t.obj"\nscale = 0.001\npose.position = [1, 2, 3]\n'
    row = made(
        text + "pose.orientation = [0, 0, 0.6, 0.8]\n" + FREELY + "mass = 2\n" + tool(), tmp_path
    ).model.inertias[0]
    np.testing.assert_allclose(row["centre"], 0.025, rtol=1e-9)
    # int x^2 dm = m a^2 / 10 and int x y dm = m a^2 / 20 about the corner; 1/16 of m a^2 goes with the centre of mass.
    square, product = 2 * 0.01 * (1 / 10 - 1 / 16), 2 * 0.01 * (1 / 20 - 1 / 16)
    expected = 2 * square * np.eye(3) - product * (np.ones((3, 3)) - np.eye(3))
    np.testing.assert_allclose(tensor_of(row), expected, rtol=1e-9)


def test_an_explicit_inertia_is_taken_as_it_is():
    given = "mass = 2\ncentre_of_mass = [0.01, 0, 0.02]\ninertia = [[2, 0.5, 0], [0.5, 2, 0], [0, 0, 3]]\n"
    text = '[[scene.body]]\nname = "sheet"\nprimitive = "plane"\nsize = [1, 1]\n' + FREELY
    row = made(text + given + tool()).model.inertias[0]
    assert row["mass"] == 2.0 and row["centre"].tolist() == [0.01, 0, 0.02]
    np.testing.assert_allclose(tensor_of(row), [[2, 0.5, 0], [0.5, 2, 0], [0, 0, 3]], atol=1e-14)
    with pytest.raises(SceneError, match=r"^body 'sheet' has no inertia .*; close the mesh, or give `mass`, `centre"):
        made(text + "mass = 2\n" + tool())


def test_a_density_that_gives_no_mass_is_refused():
    with pytest.raises(SceneError, match=r"^body 'a' has no inertia .*: its mass would be 1e\+200 kg"):
        made(box("a", more=FREELY + "density = 1e200\n") + tool())


def test_kinds_velocities_friction_and_restitution_go_to_the_tables():
    text = (
        box("floor", more="restitution = 0.25\ntorsional_friction = 0.001\nrolling_friction = 0.002\n")
        + box("a", more=FREELY + "pose.position = [0, 0, 2]\nrestitution = 0.5\nvelocity = [1, 2, 3]\n")
        + box(
            "b",
            more=at(9, 0, 2, "kinematic") + "velocity = [1, 0, 0]\nangular_velocity = [0, 0, 4]\n",
        )
        + tool()
    )
    model = made("[scene]\ngravity = [1, 0, 0]\n" + text).model
    assert model.bodies["kind"].tolist() == [STATIC, FREE, KINEMATIC]
    assert model.bodies["velocity"].tolist() == [[0] * 6, [1, 2, 3, 0, 0, 0], [1, 0, 0, 0, 0, 4]]
    assert model.inertias["restitution"].tolist() == [0.25, 0.5, 0.0, 0.0]
    assert model.bodies["torsional"].tolist() == [0.001, 0.0, 0.0]
    assert model.bodies["rolling"].tolist() == [0.002, 0.0, 0.0]
    assert model.inertias["mass"].tolist() == [0.0, pytest.approx(1000.0), 0.0, 0.0]
    assert model.world["gravity"][0].tolist() == [1, 0, 0]


def test_what_bounces_is_faster_than_a_tick_of_gravity():
    assert rest_speed((0.0, 0.0, -9.81), 1e-3) == REST_SPEED
    assert rest_speed((0.0, 0.0, -9.81), 0.02) == pytest.approx(0.3924)
    times = "[safety]\nhold_after_ms = 50\nstale_after_ms = 100\n[coupling]\nvalid_for_ms = 50\n"
    model = made(f"[rates]\ntick_hz = 50\n{times}" + box("a", more=FREELY) + tool()).model
    assert model.inertias["rest_speed"][0] == pytest.approx(0.3924)


def test_a_tool_with_mass_turns_about_its_tip_centre():
    """A rod along z with its lower end as tip centre: m l^2 / 4 more about it, and nothing more about its own axis."""
    text = box("a") + '[tool]\nprimitive = "box"\nsize = [0.02, 0.04, 0.3]\nstart = [0, 0, 2]\nmass = 0.5\n'
    assembly = made(text + "tip_offset = [0, 0, -0.1]\npose.position = [0, 0, 0.05]\n")
    row = assembly.model.inertias[-1]
    expected = box_moments(0.5, 0.02, 0.04, 0.3) + 0.5 * 0.15**2 * np.array([1, 1, 0])
    np.testing.assert_allclose(tensor_of(row), np.diag(expected), rtol=1e-9, atol=1e-15)
    assert row["mass"] == 0.5 and row["centre"].tolist() == [0, 0, 0]
    with pytest.raises(SceneError, match=r"^tool: has no inertia that its mass could have: .*; close the mesh, or set"):
        made(box("a") + '[tool]\nprimitive = "plane"\nsize = [0.1, 0.1]\nstart = [0, 0, 2]\nmass = 0.5\n')


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("velocity = [1e9, 0, 0]", r"scene\.body\[0\] \('a'\)\.velocity: is 1e\+06 m in a tick of 0\.001 s"),
        ("velocity = [1e200, 1e200, 0]", r"velocity: is 1\.414e\+197 m in a tick"),
        ("angular_velocity = [0, 0, 3500]", r"angular_velocity: is 3\.5 rad in a tick of 0\.001 s, .* half a turn"),
    ],
)
@pytest.mark.parametrize("motion", ["free", "kinematic"])
def test_a_velocity_that_no_tick_can_show_is_refused(motion, more, said):
    with pytest.raises(ConfigError, match=said):
        made(box("a", more=f'motion = "{motion}"\n{more}\n') + tool())


def test_a_gravity_that_no_tick_can_show_is_refused():
    with pytest.raises(ConfigError, match=r"scene\.gravity: moves a body by 1e\+06 m in its first tick of 0\.001 s"):
        made("[scene]\ngravity = [0, 0, 1e12]\n" + box("a", more=FREELY) + tool())


def refused(text: str) -> str:
    with pytest.raises(SceneError) as caught:
        made(text)
    assert "\n" not in str(caught.value) and "bodies that move must start at least eps_alert" in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("motion", ["free", "kinematic"])
@pytest.mark.parametrize("other", ["static", "held", "free", "kinematic"])
def test_bodies_that_move_may_not_start_in_others(motion, other):
    """The way out that is named is the shortest, and leads to a start that is taken."""
    first, second = box("a", more=at(0, 0, 0, other)), "b"
    said = refused(first + box(second, more=at(0.1, 0.2, 0.9, motion)) + tool())
    one, two = ("a", "b") if other in ("free", "kinematic") else ("b", "a")
    assert f"'{one}' penetrates '{two}'" in said
    found = re.search(rf"move '{one}' by ([0-9.e-]+) m, such as \[(.*)\]", said)
    way = [float(x) for x in found.group(2).split(", ")]
    assert float(found.group(1)) == pytest.approx(0.1, rel=0.01)
    places = {"a": np.zeros(3), "b": np.array([0.1, 0.2, 0.9])}
    places[one] = places[one] + way
    moved = made(
        box("a", more=at(*places["a"].tolist(), other)) + box("b", more=at(*places["b"].tolist(), motion)) + tool()
    )
    assert moved.model.bodies["kind"].max() >= FREE


def test_bodies_that_do_not_move_may_overlap():
    assembly = made(box("a") + box("b", more=at(0.1, 0.2, 0.3, "held")) + box("c", more=at(3, 0, 0)) + tool())
    assert any("'a' and 'b'" in note and "as they do not move" in note for note in assembly.notes)


def test_the_tick_opens_a_gap_from_eps_alert_on():
    text = "[scene]\neps_alert = 1e-3\neps_safety = 2e-3\neps_break = 4e-3\n" + box("a")
    for gap in (0.99e-3, 1e-9):
        said = refused(text + box("b", more=at(0, 0, 1.0 + gap)) + tool())
        assert f"'b' is {gap:.4g} m from 'a'" in said
    found = re.search(r"such as \[(.*)\]", refused(text + box("b", more=at(0, 0, 1.0005)) + tool()))
    way = [float(x) for x in found.group(1).split(", ")]
    np.testing.assert_allclose(way, [0, 0, 0.0015], atol=2e-5)
    assert made(text + box("b", more=at(0, 0, 1.0 + 1.01e-3)) + tool()).body_names == ["a", "b"]


def test_a_body_within_another_is_told_from_one_in_a_room(tmp_path):
    said = refused(box("a", more=FREELY) + box("b", "[0.1, 0.1, 0.1]", FREELY) + tool())
    assert "'b' is wholly inside 'a'" in said and "move 'a' by 0.55" in said
    said = refused(box("a", "[0.1, 0.1, 0.1]", FREELY) + box("b") + tool())
    assert "'a' is wholly inside 'b'" in said
    # A room: the faces of a box look inwards.
    corners = [(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    lines = ["v {} {} {}".format(*c) for c in corners]
    lines += ["f " + " ".join(str(i + 1) for i in reversed(quad)) for quad in quads]
    (tmp_path / "room.obj").write_text("\n".join(lines) + "\n")
    room = '[[scene.body]]\nname = "room"\nmesh = "room.obj"\n'
    assert made(room + box("b", "[0.1, 0.1, 0.1]", FREELY) + tool(), tmp_path).body_names == ["room", "b"]


def test_every_pair_is_found_and_a_few_are_named():
    """Ten boxes in a row, each into the next one by a tenth."""
    row = "".join(box(f"b{k}", more=at(0.9 * k, 0, 0)) for k in range(10))
    said = refused(row + tool())
    assert said.count("penetrates") == 3 and said.endswith("; and 6 more pair(s)")
    assert "'b0' penetrates 'b1'" in said and math.isclose(
        float(re.search(r"by ([0-9.e-]+) m", said)[1]), 0.1, rel_tol=0.03
    )


def test_clients_are_told_how_each_body_moves():
    """One that moves by itself is not one that may be posed."""
    words = ("static", "held", "free", "kinematic")
    scene = "".join(box(word, more=at(3 * i, 0, 2, word)) for i, word in enumerate(words))
    facts = facts_of(made(scene + tool()), "test", {})
    assert {body["name"]: body["motion"] for body in facts.scene["bodies"]} == {word: word for word in words}
