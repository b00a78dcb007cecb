"""`inspect` says what is so about a configuration: its bodies, its tool, what they move with, how stiff it may be."""

import json

import numpy as np
import pytest

from bridge.scene.errors import SceneError
from bridge.scene.inspect import inspect_path


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HAPTICD_CACHE_DIR", str(tmp_path / "cache"))


def test_a_configuration(tmp_path):
    path = tmp_path / "scene.toml"
    path.write_text(
        '[[scene.body]]\nname = "sheet"\nprimitive = "plate"\nsize = [0.2, 0.2, 0.0005]\ndensity = 7800\n'
        "[tool]\nstart = [0, 0, 0.05]\ntip_radius = 0.01\n[workspace]\nscale = 2\n[coupling]\nstiffness = 1e6\n"
    )
    report = inspect_path(path)
    assert report.kind == "configuration"
    assert report.meshes[0].mass == pytest.approx(7800 * 0.2 * 0.2 * 0.0005)
    assert report.meshes[0].travel_per_tick == pytest.approx(0.006)
    assert report.facts["clearance_at_start"] == pytest.approx(0.05 - 0.00025 - 0.01, rel=1e-9)
    assert any("capped" in note for note in report.notes)
    json.dumps(report.to_dict(), allow_nan=False)


def test_how_stiff_the_device_may_be_is_told(tmp_path):
    """By the formulas, for each hand; the configured damping counts, and an input device has no spring to speak of."""
    path = tmp_path / "scene.toml"
    scene = (
        '[[scene.body]]\nname = "sheet"\nprimitive = "plate"\nsize = [0.2, 0.2, 0.001]\n[tool]\nstart = [0, 0, 0.05]\n'
    )
    path.write_text(scene + "[coupling]\ndamping = 0.0\n")
    report = inspect_path(path)
    assert [row.hand for row in report.stability] == ["held", "held lightly", "hands off"]
    # b = 0.1 N·s/m of the device, 8 of a firm hand; T = 1 ms.
    assert report.facts["passive_in_any_hand_below"] == pytest.approx(2 * 0.1 / 1e-3)
    assert report.facts["controller_takes_back_below"] == pytest.approx(2 * (0.1 + 0.9 * 10.0) / 1e-3)
    assert report.stability[0].bound_late == pytest.approx((0.1 + 8.0) / 1.5e-3)
    assert report.stability[2].stable == pytest.approx(200.0, rel=1e-3)
    assert sum(line.startswith("  stable ") for line in report.lines()) == 3
    path.write_text(scene + "[coupling]\ndamping = 0.0\npassivity = false\n")
    assert inspect_path(path).facts["controller_takes_back_below"] == pytest.approx(200.0)
    path.write_text(scene + '[device]\ncard = "mouse"\n')
    report = inspect_path(path)
    assert report.stability == [] and "passive_in_any_hand_below" not in report.facts


def test_the_tool_of_a_configuration_is_inspected_too(tmp_path):
    """A sphere tip is told in a line; a mesh or primitive is counted and looked at like a body."""
    path = tmp_path / "scene.toml"
    body = '[[scene.body]]\nname = "sheet"\nprimitive = "plate"\nsize = [0.2, 0.2, 0.002]\n'
    path.write_text(body + "[tool]\ntip_radius = 0.01\nstart = [0, 0, 0.05]\n")
    report = inspect_path(path)
    assert (report.facts["tool"], report.facts["tip_radius"]) == ("sphere tip", 0.01)
    assert [mesh.name for mesh in report.meshes] == ["sheet"]
    path.write_text(
        body + '[tool]\nprimitive = "box"\nsize = [0.01, 0.02, 0.03]\nstart = [0, 0, 0.05]\ntip_offset = [0, 0, -0.1]\n'
        "pose.position = [0, 0, -0.085]\n"
    )
    report = inspect_path(path)
    assert (report.facts["tool"], report.facts["tool_triangles"]) == ("box", 12)
    # the lower end is the tip centre: the farthest corners are those of the upper end
    assert report.facts["tool_reach"] == pytest.approx(np.linalg.norm((0.005, 0.01, 0.03)), rel=1e-12)
    assert "tip_radius" not in report.facts
    assert report.meshes[1].name == "[tool]" and report.meshes[1].triangles == 12
    assert report.meshes[1].lower[2] == pytest.approx(0.0, abs=1e-15)


def test_what_bodies_and_tool_move_with_is_told(tmp_path):
    """Each free body and a tool with mass, as the daemon uses it; the mass given, not that of the density."""
    path = tmp_path / "scene.toml"
    path.write_text(
        '[[scene.body]]\nname = "floor"\nprimitive = "plate"\nsize = [1, 1, 0.01]\n'
        '[[scene.body]]\nname = "brick"\nprimitive = "box"\nsize = [0.1, 0.2, 0.3]\npose.position = [0, 0, 0.3]\n'
        'motion = "free"\nmass = 3\n'
        '[[scene.body]]\nname = "ball"\nprimitive = "box"\nsize = [0.1, 0.1, 0.1]\npose.position = [0.3, 0, 0.3]\n'
        'motion = "free"\ndensity = 2000\n'
        '[[scene.body]]\nname = "pusher"\nprimitive = "box"\nsize = [0.1, 0.1, 0.1]\npose.position = [-0.3, 0, 0.3]\n'
        'motion = "kinematic"\n'
        '[tool]\nprimitive = "box"\nsize = [0.1, 0.1, 0.1]\nstart = [0, 0, 1]\nmass = 0.6\n'
    )
    report = inspect_path(path)
    assert [inertia.name for inertia in report.inertias] == ["brick", "ball", "[tool]"]
    brick, ball, tool = report.inertias
    assert brick.mass == pytest.approx(3.0) and ball.mass == pytest.approx(2.0) and tool.mass == 0.6
    np.testing.assert_allclose(sorted(brick.moments), (0.0125, 0.025, 0.0325), rtol=1e-12)
    np.testing.assert_allclose(tool.moments, 0.001, rtol=1e-12)
    np.testing.assert_allclose(brick.centre, 0.0, atol=1e-15)
    masses = {mesh.name: mesh.mass for mesh in report.meshes}
    assert masses["brick"] == pytest.approx(3.0) and masses["[tool]"] == pytest.approx(0.6)
    assert report.facts["free_mass_kg"] == pytest.approx(5.0)
    assert (report.facts["free_bodies"], report.facts["kinematic_bodies"]) == (2, 1)
    assert report.facts["gravity"] == [0.0, 0.0, -9.81]
    line = next(line for line in report.lines() if "brick moves with 3 kg" in line)
    assert all(moment in line for moment in ("principal moments (", "0.0325", "0.025", "0.0125"))
    assert json.loads(json.dumps(report.to_dict(), allow_nan=False))["inertias"][0]["name"] == "brick"


def test_balls_and_capsules_are_told_exactly(tmp_path):
    path = tmp_path / "scene.toml"
    path.write_text(
        '[[scene.body]]\nname = "ball"\nprimitive = "ball"\nsize = [0.1]\ndensity = 500\n'
        '[[scene.body]]\nname = "pill"\nprimitive = "capsule"\nsize = [0.1, 0.4]\npose.position = [1, 0, 0]\n'
        'motion = "free"\nmass = 3\n'
        '[tool]\nprimitive = "box"\nsize = [0.1, 0.1, 0.1]\nstart = [0, 0, 1]\n'
    )
    report = inspect_path(path)
    ball, pill, _ = report.meshes
    assert (ball.triangles, ball.rounding, ball.upper, ball.lower) == (0, 0.1, [0.1] * 3, [-0.1] * 3)
    assert ball.mass == pytest.approx(500 * 4 / 3 * np.pi * 1e-3, rel=1e-12)
    np.testing.assert_allclose(ball.inertia, 0.4 * ball.mass * 0.01 * np.eye(3), rtol=1e-12)
    assert pill.size == pytest.approx([0.2, 0.2, 0.6]) and pill.mass == pytest.approx(3.0, rel=1e-12)
    assert pill.density == pytest.approx(3.0 / (np.pi * 0.01 * 0.4 + 4 / 3 * np.pi * 1e-3), rel=1e-12)
    np.testing.assert_allclose(np.diag(pill.inertia), sorted(report.inertias[0].moments, reverse=True), rtol=1e-12)
    assert (ball.thinnest_wall, ball.closed, ball.orientation) == (0.2, True, "outward") and not report.warnings
    assert report.facts["triangles"] == 12 - 12 and report.facts["box_upper"] == pytest.approx([1.1, 0.1, 0.3])
    lines = report.lines()
    assert "ball: exactly round, 0.2 x 0.2 x 0.2 m" in lines
    assert any("a segment of 0.4 m, with a radius of 0.1 m round it" in line for line in lines)
    json.dumps(report.to_dict(), allow_nan=False)


def test_inspect_resolves_a_start_when_asked_to(tmp_path):
    path = tmp_path / "scene.toml"
    path.write_text(
        '[[scene.body]]\nname = "block"\nprimitive = "box"\nsize = [0.1, 0.1, 0.1]\n'
        '[tool]\nprimitive = "box"\nsize = [0.02, 0.02, 0.02]\nstart = [0, 0, 0.055]\n'
    )
    with pytest.raises(SceneError, match="it penetrates 'block'"):
        inspect_path(path)
    report = inspect_path(path, resolve=True)
    assert report.facts["tool_start"][2] == pytest.approx(0.06, rel=0.01)
    assert any("was moved by" in note for note in report.notes)
