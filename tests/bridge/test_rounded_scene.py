"""Balls and capsules in a configuration: their tables, their inertias, and starts that are free or not, by formulas."""

import math
import re

import numpy as np
import pytest

from bridge.assemble import assemble
from bridge.config import parse_config
from bridge.scene.errors import SceneError
from rtcore.tables import FREE, KINEMATIC, STATIC

EPS = {"eps_alert": 1e-3, "eps_safety": 2e-3, "eps_break": 4e-3}
SCENE = "[scene]\n" + "".join(f"{key} = {value}\n" for key, value in EPS.items())
FREELY = 'motion = "free"\n'
TOOL = '[tool]\nprimitive = "box"\nsize = [0.1, 0.1, 0.1]\nstart = [0, 0, 5]\n'


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HAPTICD_CACHE_DIR", str(tmp_path / "cache"))


def body(kind: str, name: str, size: list[float], at=(0.0, 0.0, 0.0), more="") -> str:
    return f'[[scene.body]]\nname = "{name}"\nprimitive = "{kind}"\nsize = {size}\npose.position = {list(at)}\n{more}\n'


def made(text: str, **options):
    return assemble(parse_config(text), ".", **options)


def refused(text: str) -> str:
    with pytest.raises(SceneError) as caught:
        made(text)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def way_out(said: str) -> np.ndarray:
    return np.array([float(x) for x in re.search(r"such as \[(.*)\]", said)[1].split(", ")])


def test_tables_hold_the_core_and_the_radius():
    text = (
        SCENE
        + body("box", "floor", [1, 1, 0.1])
        + body("ball", "a", [0.1], (0, 0, 1), FREELY + "density = 500\n")
        + body("capsule", "b", [0.1, 0.4], (1, 0, 1), FREELY + "mass = 3\n")
        + body("ball", "c", [0.2], (0, 2, 1), 'motion = "kinematic"\n')
        + body("capsule", "d", [0.05, 0.4], (0, 4, 1))
        + TOOL
    )
    assembly = made(text)
    model = assembly.model
    assert model.bodies["rounding"].tolist() == [0.0, 0.1, 0.1, 0.2, 0.05]
    assert model.bodies["kind"].tolist() == [STATIC, FREE, FREE, KINEMATIC, STATIC]
    assert model.bodies["ball"].tolist() == [0, 1, 0, 1, 0]
    ids = model.bodies["mesh_id"]
    assert ids[1] == ids[3] and ids[2] == ids[4], "one core for all that share it"
    for mesh_id, half in ((ids[1], 0.0), (ids[2], 0.2)):
        mesh = model.meshes[mesh_id]
        assert mesh["triangle_count"] == 1
        corners = model.triangles["vertices"][mesh["triangle_first"]]
        assert corners.min(axis=0).tolist() == [0, 0, -half] and corners.max(axis=0).tolist() == [0, 0, half]
    assert model.inertias["mass"][1] == pytest.approx(500.0 * 4.0 / 3.0 * math.pi * 1e-3, rel=1e-14)
    np.testing.assert_allclose(model.inertias["moments"][1], 0.4 * model.inertias["mass"][1] * 0.01, rtol=1e-14)
    assert model.inertias["mass"][2] == pytest.approx(3.0, rel=1e-15)
    assert not model.inertias["centre"].any()
    assert assembly.triangle_count == 12


def test_a_capsule_too_thin_to_have_moments_is_refused():
    said = refused(body("capsule", "a", [1e-9, 1.0], more=FREELY) + TOOL)
    assert said.startswith("body 'a' has no inertia to move freely with: principal moments of inertia must be positive")


def test_the_box_of_a_scene_is_that_of_its_surfaces():
    """Which the default distances are shares of: a capsule that lies along x, 0.2 x 0.1 x 0.1 m."""
    turned = f"pose.orientation = [0, {math.sqrt(0.5)!r}, 0, {math.sqrt(0.5)!r}]\n"
    assembly = made(body("capsule", "a", [0.05, 0.1], more=turned) + TOOL)
    assert assembly.eps["eps_safety"] == pytest.approx(2e-4 * math.sqrt(0.06), rel=1e-12)


@pytest.mark.parametrize("gap", [0.99e-3, 1e-7])
def test_a_ball_starts_at_least_eps_alert_from_a_plate(gap):
    floor = body("box", "floor", [1, 1, 0.1], (0, 0, -0.05))
    said = refused(SCENE + floor + body("ball", "a", [0.1], (0.02, 0.01, 0.1 + gap), FREELY) + TOOL)
    assert f"'a' is {gap:.4g} m from 'floor'" in said
    np.testing.assert_allclose(way_out(said), (0.0, 0.0, EPS["eps_safety"] - gap), atol=2e-5)
    assert made(SCENE + floor + body("ball", "a", [0.1], (0.02, 0.01, 0.1 + 1.01e-3), FREELY) + TOOL).body_names


def test_balls_start_apart_from_balls():
    """Their distance is that of their centres less the radii; the way out leads along the line of centres."""
    at = 0.3 * np.array((2.0, 3.0, 6.0)) / 7.0
    other = body("ball", "b", [0.2], at.tolist())
    said = refused(SCENE + body("ball", "a", [0.1], more=FREELY) + other.replace("0.2]", "0.1995]") + TOOL)
    assert "'a' is 0.0005 m from 'b'" in said
    np.testing.assert_allclose(way_out(said), -1.5e-3 * at / 0.3, atol=6e-5)  # told in tenths of a millimetre
    said = refused(SCENE + body("ball", "a", [0.1], more=FREELY) + other.replace("0.2]", "0.21]") + TOOL)
    assert "'a' penetrates 'b'" in said
    np.testing.assert_allclose(way_out(said), -12e-3 * at / 0.3, atol=2e-4)
    assert made(SCENE + body("ball", "a", [0.1], more=FREELY) + other.replace("0.2]", "0.198]") + TOOL).body_names


def test_capsules_that_cross_are_told_by_their_segments():
    """Two at right angles, the middles of their segments one above the other."""
    lying = f"pose.orientation = [0, {math.sqrt(0.5)!r}, 0, {math.sqrt(0.5)!r}]\n"
    across = f"pose.orientation = [{math.sqrt(0.5)!r}, 0, 0, {math.sqrt(0.5)!r}]\n"
    lower = body("capsule", "a", [0.1, 1.0], more=lying + FREELY)
    said = refused(SCENE + lower + body("capsule", "b", [0.05, 1.0], (0, 0, 0.15 + 7e-4), across) + TOOL)
    assert "'a' is 0.0007 m from 'b'" in said
    np.testing.assert_allclose(way_out(said), (0, 0, -1.3e-3), atol=2e-5)
    said = refused(SCENE + lower + body("capsule", "b", [0.05, 1.0], (0, 0, 0.13), across) + TOOL)
    assert "'a' penetrates 'b'" in said
    np.testing.assert_allclose(way_out(said), (0, 0, -0.022), atol=1e-3)
    assert made(SCENE + lower + body("capsule", "b", [0.05, 1.0], (0, 0, 0.152), across) + TOOL).body_names


@pytest.mark.parametrize("moving", ["ball", "box"])
def test_what_is_inside_another_is_found_whichever_moves(moving):
    """A ball deep in a box, its surface nowhere near that of the box; and a box in a ball, of which no face is near the
    surface, but nearer to the middle than the radius."""
    motion = {kind: FREELY if kind == moving else "" for kind in ("ball", "box")}
    small = body("ball", "ball", [0.01], more=motion["ball"]) + body("box", "box", [1, 1, 1], more=motion["box"])
    said = refused(SCENE + small + TOOL)
    name = "'ball'" if moving == "ball" else "'box'"
    assert "'ball' is wholly inside 'box'" in said and f"move {name} by 0.51" in said
    large = body("ball", "ball", [1.0], more=motion["ball"]) + body("box", "box", [0.1] * 3, more=motion["box"])
    said = refused(SCENE + large + TOOL)
    assert "penetrates" in said and float(re.search(r"by ([0-9.e-]+) m", said)[1]) == pytest.approx(1.052, rel=5e-3)


def test_bodies_at_rest_may_overlap_and_are_named():
    text = (
        SCENE + body("ball", "a", [0.1]) + body("ball", "b", [0.1], (0.199, 0, 0)) + body("ball", "c", [0.1], (1, 0, 0))
    )
    notes = made(text + TOOL).notes
    assert any("1 pair(s)" in note and "'a' and 'b'" in note for note in notes)


def test_a_tool_starts_free_of_a_ball_or_is_moved_out_of_it():
    """The tool is a cube of edge 0.1 above a ball: straight up is the shortest way."""
    ball = SCENE + body("ball", "ball", [0.2])
    tool = TOOL.replace("[0, 0, 5]", "[0, 0, {0!r}]")
    assert made(ball + tool.format(0.25 + 3e-3)).clearance == pytest.approx(3e-3, rel=1e-9)
    said = refused(ball + tool.format(0.25 + 1e-3))
    assert "it is 0.001 m from 'ball', nearer than eps_safety 0.002 m" in said
    said = refused(ball + tool.format(0.23))
    assert "it penetrates 'ball'" in said and "inside" not in said
    assert float(re.search(r"\(([0-9.e-]+) m deep\)", said)[1]) == pytest.approx(0.02, rel=5e-3)
    moved = made(ball + tool.format(0.23), resolve=True)
    np.testing.assert_allclose(moved.start, (0.0, 0.0, 0.252), atol=1e-3)
    assert moved.clearance >= 2e-3
