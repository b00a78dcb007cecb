"""From a configuration to the tables of the servo: complete, in order, deterministic, and only with a free start."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from bridge.assemble import TOOL, assemble
from bridge.config import ConfigError, load_config, parse_config
from bridge.model_file import load_model, save_model
from bridge.scene.errors import MeshError, SceneError
from haptics.cards import CardError
from haptics.codes import CONSTRAINT, DAMPED, SPRING
from haptics.fixtures import BOX, CONE, HALF_SPACE
from haptics.pattern import PATTERNS
from haptics.surfaces import SHARE
from rtcore.collision.nearest import clearance
from rtcore.state import make_state
from rtcore.tables import BUDGET, HELD, STATIC

ROOT = Path(__file__).resolve().parents[2]
CONFIGS = sorted((ROOT / "configs").glob("*.toml"))


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HAPTICD_CACHE_DIR", str(tmp_path / "cache"))


def made(text: str, base="."):
    return assemble(parse_config(text), base)


def box(name="a", size="[1, 1, 1]", more="") -> str:
    return f'[[scene.body]]\nname = "{name}"\nprimitive = "box"\nsize = {size}\n{more}\n'


START = "[tool]\nstart = [0, 0, 2]\n"


@pytest.mark.parametrize("path", CONFIGS, ids=lambda p: p.stem)
def test_the_projects_scenes_can_be_run(path):
    assembly = assemble(load_config(path), path.parent)
    assert len(assembly.body_names) == len(assembly.model.bodies) == len(assembly.mesh_hashes.keys() - {TOOL})
    assert assembly.clearance > assembly.eps["eps_safety"]
    settings = assembly.settings[0]
    # The device can reach the place where the tool starts.
    reach = assembly.card.workspace_radius * settings["scale"]
    assert np.linalg.norm(settings["workspace_position"] - assembly.start) < reach
    # Objects of a hand's size: the default distances are shares of it.
    if assembly.config.scene.eps_safety is None:
        assert 0.05 < assembly.eps["eps_safety"] / (0.010 / 50.0) < 0.6


def test_bodies_poses_kinds_and_friction():
    assembly = made(
        box("table", more="friction_static = 0.9\nfriction_kinetic = 0.8\n")
        + box("lid", more='motion = "held"\npose.position = [0, 0, -3]\npose.orientation = [0, 0.6, 0, 0.8]\n')
        + START
    )
    assert assembly.body_names == ["table", "lid"]
    table, lid = assembly.model.bodies
    assert (table["kind"], lid["kind"]) == (STATIC, HELD)
    assert (table["friction_static"], table["friction_kinetic"]) == (0.9, 0.8)
    np.testing.assert_array_equal(lid["position"], [0, 0, -3])
    np.testing.assert_allclose(lid["orientation"], [0, 0.6, 0, 0.8], rtol=1e-15)
    # One mesh, shown twice.
    assert len(assembly.model.meshes) == 1 and table["mesh_id"] == lid["mesh_id"]
    assert assembly.mesh_hashes["table"] == assembly.mesh_hashes["lid"]
    assert assembly.triangle_count == 24


def test_surfaces_and_regions_get_into_the_settings_once_each():
    soft = "surface.stiffness = 300.0\n"
    rough = 'surface = { pattern = "noise", height = 1e-4, seed = 3 }\n'
    region = '[[scene.region]]\nkind = "viscous"\nposition = [0, 0, 1]\narm = [1, 0, 0]\nreach = 0.1\nstrength = 2\n'
    bodies = box("a", more=soft) + box("b") + box("c", more=rough) + box("d", more=soft)
    assembly = made(bodies + region + START + "[coupling]\nstiffness = 1900\n")
    assert assembly.model.bodies["surface_id"].tolist() == [1, 0, 2, 1]
    row = assembly.settings[0]
    assert (row["surface_count"], row["region_count"]) == (2, 1)
    assert row["surfaces"]["stiffness"][:2].tolist() == [300.0, 0.0]
    assert (row["surfaces"][1]["pattern"], row["surfaces"][1]["seed"]) == (PATTERNS["noise"], 3)
    assert row["regions"][0]["arm"].tolist() == [1.0, 0.0, 0.0]
    capped = assembly.card.stiffness_max / (1.0 + SHARE)
    assert row["stiffness"] == capped
    assert any(f"capped at {capped:g} to leave room for reliefs of surfaces" in note for note in assembly.notes)


@pytest.mark.parametrize(("law", "number"), [("spring", SPRING), ("damped", DAMPED), ("constraint", CONSTRAINT)])
def test_the_law_of_the_coupling_gets_into_the_settings(law, number):
    assert made(box() + START + f'[coupling]\nlaw = "{law}"\n').settings["law"][0] == number


def test_fixtures_get_into_the_settings_in_their_order():
    tables = """
[[scene.fixture]]
kind = "cone"
position = [0, 0, 1]
direction = [0, 0, 2]
angle_deg = 30

[[scene.fixture]]
kind = "forbidden"
shape = "box"
position = [0, 1, 0]
size = [0.2, 0.4, 0.6]
orientation = [0, 0.6, 0, 0.8]

[[scene.fixture]]
kind = "forbidden"
shape = "half-space"
position = [0, 0, 0.5]
direction = [1, 0, 0]
stiffness = 100
strength = 1.5
"""
    row = made(box() + tables + START).settings[0]
    assert row["fixture_count"] == 3
    cone, block, soft = row["fixtures"][:3]
    assert [each["kind"] for each in (cone, block, soft)] == [CONE, BOX, HALF_SPACE]
    assert cone["direction"].tolist() == [0.0, 0.0, 1.0] and cone["angle"] == pytest.approx(np.pi / 6.0)
    assert block["half"] == pytest.approx([0.1, 0.2, 0.3]) and block["orientation"] == pytest.approx([0, 0.6, 0, 0.8])
    assert (cone["stiffness"], soft["stiffness"], soft["strength"]) == (0.0, 100.0, 1.5)


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (
            box() + '[[scene.fixture]]\nkind = "plane"\nposition = [0, 0, 1]\ndirection = [0, 0, 1]\nstiffness = 1e5\n',
            r"scene\.fixture\[0\]\.stiffness = 100000 N/m must be at most 1000 N/m, 0\.5 of what the device renders",
        ),
        (box(more="surface.drag = 99.0\n"), r"scene\.body\[0\] \('a'\)\.surface\.drag = 99 N·s/m must be at most 10"),
        (
            box() + '[[scene.region]]\nkind = "magnet"\nposition = [0, 0, 1]\nreach = 0.01\nstrength = 5\n',
            r"scene\.region\[0\]\.strength = 5 N must be at most 1\.48 N",
        ),
    ],
)
def test_effects_beyond_the_device_are_refused(more, sentence):
    with pytest.raises(ConfigError, match=sentence):
        made(more + START)


def test_budget_settings_and_card():
    assembly = made(
        box() + START + "[budget]\nunits = 1234\npasses = 3\nsweeps = 7\nvisits = 99\n[coupling]\nstiffness = 9e9\n"
    )
    assert assembly.budget.dtype == BUDGET and assembly.budget[0].tolist() == (1234, 3, 7, 99)
    assert assembly.card.name == "simulated"
    assert assembly.settings["stiffness"][0] == assembly.card.stiffness_max
    assert any("was capped" in note for note in assembly.notes)


def test_gains_may_be_shares_of_what_the_card_allows():
    """Each by itself, the other in SI beside it; a share of a limit that the card does not tell is refused."""
    text = box() + START + '[device]\ncard = "sigma7"\n[coupling]\n'
    row = made(text + "stiffness_fraction = 0.25\ndamping = 2.0\nrotational_stiffness_fraction = 0.5\n").settings[0]
    assert (row["stiffness"], row["damping"], row["rotational_stiffness"]) == (1000.0, 2.0, 0.5)
    assembly = made(text + "damping_fraction = 0.1\n")
    assert (assembly.settings["stiffness"][0], assembly.settings["damping"][0]) == (400.0, 3.0)
    assert not any("capped" in note for note in assembly.notes)
    with pytest.raises(ConfigError, match=r"rotational_stiffness_fraction: .* no rotational_stiffness_max"):
        made(box() + START + "[coupling]\nrotational_stiffness_fraction = 0.5\n")
    with pytest.raises(ConfigError, match=r"coupling.damping_fraction: must be left out.*input only"):
        made(box() + START + '[device]\ncard = "mouse"\n[coupling]\ndamping_fraction = 0.5\n')


def test_default_distances_are_shares_of_the_diagonal():
    eps = made(box(size="[3, 4, 12]") + "[tool]\nstart = [0, 0, 9]\n").eps
    assert eps == pytest.approx({"eps_alert": 13 * 8.8e-5, "eps_safety": 13 * 2e-4, "eps_break": 13 * 4.6e-4})
    world = made("[scene]\neps_safety = 0.004\n" + box(size="[3, 4, 12]") + "[tool]\nstart = [0, 0, 9]\n").model.world[
        0
    ]
    assert world["eps_safety"] == 0.004 and world["eps_break"] == pytest.approx(13 * 4.6e-4)


def test_the_diagonal_is_that_of_the_triangles_in_the_scene():
    """Two 1 m boxes 10 m apart, one of them turned by 45 degrees."""
    half = np.sqrt(0.5)
    eps = made(
        box()
        + box("b", more="pose.position = [10, 0, 0]\npose.orientation = [0, 0, 0.3826834324, 0.9238795325]\n")
        + START
    ).eps
    expected = np.linalg.norm([0.5 + 10 + half, 2 * half, 1.0])
    assert eps["eps_safety"] / 2e-4 == pytest.approx(expected, rel=1e-9)


def test_distances_out_of_order_are_an_error():
    with pytest.raises(ConfigError, match=r"scene\.eps_break: must be greater than eps_safety, but .*\(default\)"):
        made("[scene]\neps_safety = 0.1\n" + box() + START)


def test_a_start_that_is_not_free_names_the_body_and_how_far():
    text = (
        box("far", more="pose.position = [0, 0, -9]\n")
        + box("near")
        + "[tool]\ntip_radius = 0.01\nstart = [0, 0, {}]\n"
    )
    with pytest.raises(SceneError) as caught:
        made(text.format(0.505))
    assert "tool.start [0.0, 0.0, 0.505] is not free" in str(caught.value)
    assert "0.005 m from the surface of 'near'" in str(caught.value)
    needed = 0.01 + made(text.format(0.6)).eps["eps_safety"]
    with pytest.raises(SceneError):
        made(text.format(0.5 + needed - 1e-9))
    made(text.format(0.5 + needed + 1e-9))


def test_a_start_inside_a_closed_body_is_said():
    assembly = made(box() + "[tool]\nstart = [0.1, 0, 0]\n")
    assert assembly.clearance == pytest.approx(0.4 - 0.005)
    assert any(note == "a: the tool starts inside it and will stay inside" for note in assembly.notes)


def test_a_robot_becomes_a_body_for_each_link():
    config = load_config(ROOT / "configs/franka.toml")
    assembly = assemble(config, ROOT / "configs")
    assert assembly.body_names[0] == "arm/panda_link0" and assembly.body_names[-1] == "arm/panda_rightfinger"
    assert len(assembly.body_names) == 11
    # Both fingers and no other links share a mesh.
    assert assembly.mesh_hashes["arm/panda_leftfinger"] != assembly.mesh_hashes["arm/panda_link0"]
    left, right = (assembly.model.bodies[assembly.body_names.index(f"arm/panda_{s}finger")] for s in ("left", "right"))
    # 4 cm open each, a quarter of the size; they slide along the hand's y axis.
    assert np.linalg.norm(left["position"] - right["position"]) == pytest.approx(2 * 0.04 * 0.25, rel=1e-6)
    assert any("panda_grasptarget" in note for note in assembly.notes)


def test_a_robots_pose_moves_all_its_links():
    text = '[[scene.body]]\nname = "arm"\nurdf = "pybullet_data:kuka_iiwa/model.urdf"\n{}\n[tool]\nstart = [3, 3, 3]\n'
    plain, moved = (
        made(text.format("")),
        made(text.format("pose.position = [0, 0, 1]\npose.orientation = [0, 0, 0.6, 0.8]")),
    )
    turn = Rotation.from_quat([0, 0, 0.6, 0.8])
    for a, b in zip(plain.model.bodies, moved.model.bodies, strict=True):
        np.testing.assert_allclose(b["position"], turn.apply(a["position"]) + [0, 0, 1], atol=1e-12)
        expected = turn * Rotation.from_quat(a["orientation"])
        assert (expected.inv() * Rotation.from_quat(b["orientation"])).magnitude() < 1e-12
    assert plain.mesh_hashes == moved.mesh_hashes


def test_the_same_configuration_gives_the_same_bytes(tmp_path):
    """With a cold and with a warm cache, and through the model file."""
    config = load_config(ROOT / "configs/duck.toml")
    files = []
    for number in range(2):
        assembly = assemble(config, ROOT / "configs")
        save_model(tmp_path / f"{number}.npz", assembly.model)
        files.append((tmp_path / f"{number}.npz").read_bytes())
    assert files[0] == files[1]
    loaded = load_model(tmp_path / "0.npz")
    start = np.array(assembly.start)
    assert clearance(loaded, make_state(loaded, start), start) == pytest.approx(assembly.clearance + 0.003, rel=1e-12)


def test_clearance_at_start_agrees_with_all_triangles():
    """Second way: nearest of a dense sampling of every triangle is never nearer, and nearly as near."""
    assembly = assemble(load_config(ROOT / "configs/bunny.toml"), ROOT / "configs")
    corners = assembly.model.triangles["vertices"]
    weights = np.array([(i, j, 4 - i - j) for i in range(5) for j in range(5 - i)]) / 4.0
    points = np.einsum("wk,nkd->nwd", weights, corners).reshape(-1, 3)
    sampled = np.linalg.norm(points - assembly.start, axis=1).min() - 0.003
    assert assembly.clearance <= sampled < assembly.clearance + 1e-5


def test_progress_is_told():
    told = []
    assemble(
        parse_config(box() + box("b", more="pose.position = [0, 0, -3]\n") + START), ".", lambda *a: told.append(a)
    )
    assert told == [("import a", 0, 2), ("import b", 1, 2), ("import", 2, 2)]


def test_paths_are_relative_to_the_configuration(tmp_path):
    (tmp_path / "meshes").mkdir()
    (tmp_path / "meshes/t.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    text = '[[scene.body]]\nname = "t"\nmesh = "meshes/t.obj"\n' + START
    assert made(text, tmp_path).triangle_count == 1
    with pytest.raises(MeshError, match=r"body 't': .*t\.obj: does not exist"):
        made(text, tmp_path / "meshes")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\x93\x01\x00garbage" * 50, "holds binary data"),
        (b"v 0 0 0\n", "holds no triangles"),
        (b"v nan 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n", "is not finite"),
        (b"v 0 0 0\nv 1 0 0\nv 0 1", "a vertex needs three numbers"),
    ],
)
def test_a_bad_mesh_names_body_and_file(tmp_path, content, said):
    (tmp_path / "m.obj").write_bytes(content)
    with pytest.raises(MeshError, match=r"^body 't': .*m\.obj: ") as caught:
        made('[[scene.body]]\nname = "t"\nmesh = "m.obj"\n' + START, tmp_path)
    assert said in str(caught.value)


def test_a_robot_with_a_missing_mesh_names_body_link_and_file(tmp_path):
    (tmp_path / "r.urdf").write_text(
        '<robot name="r"><link name="l"><collision><geometry><mesh filename="no.stl"/></geometry></collision></link>'
        "</robot>"
    )
    with pytest.raises(SceneError, match=r"^body 'r': .*r\.urdf: link 'l', collision: mesh 'no\.stl' does not exist"):
        made('[[scene.body]]\nname = "r"\nurdf = "r.urdf"\n' + START, tmp_path)


def test_an_unknown_card():
    with pytest.raises(CardError, match="simulated"):
        made(box() + START + '[device]\ncard = "simulatd"\n')


def test_other_units_are_noticed():
    assert any(
        "is it in metres" in note for note in made(box(size="[100, 100, 100]") + "[tool]\nstart = [0, 0, 90]\n").notes
    )


def mesh_tool(start: str, size="[0.2, 0.2, 0.2]", more="") -> str:
    return f'[tool]\nprimitive = "box"\nsize = {size}\nstart = {start}\n{more}\n'


def refused(text: str) -> str:
    with pytest.raises(SceneError) as caught:
        made(text)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def depths(sentence: str) -> list[float]:
    return [float(number) for number in re.findall(r"\(([0-9.e-]+) m deep\)", sentence)]


def test_a_tool_mesh_that_starts_too_near_is_refused_with_the_gap():
    eps = made(box() + mesh_tool("[0, 0, 2]")).eps["eps_safety"]
    said = refused(box() + mesh_tool(f"[0, 0, {0.6 + 0.9 * eps}]"))
    assert f"it is {0.9 * eps:.4g} m from 'a', nearer than eps_safety" in said
    assembly = made(box() + mesh_tool(f"[0, 0, {0.6 + 1.001 * eps}]"))
    assert assembly.clearance == pytest.approx(1.001 * eps, rel=1e-6)


def test_a_penetrating_start_names_every_body_and_how_deep():
    """Boxes face to face: the shortest way apart is along the axis with the least overlap."""
    bodies = box() + box("b", more="pose.position = [1.15, 0, 0]\n") + box("far", more="pose.position = [0, 0, -5]\n")
    said = refused(bodies + mesh_tool("[0.59, 0.1, 0.05]"))
    # The tool reaches from 0.49 to 0.69: 0.01 into a, which ends at 0.5; and 0.04 into b, which begins at 0.65.
    assert "it penetrates 'a' (" in said and "it penetrates 'b' (" in said and "far" not in said
    assert depths(said) == pytest.approx([0.01, 0.04], rel=5e-3)


def test_a_tool_wholly_inside_a_solid_is_a_penetration_and_in_a_room_it_is_not():
    said = refused(box() + mesh_tool("[0.1, 0, 0]"))
    assert "it is wholly inside 'a'" in said
    # 0.5 - 0.1 to the face, and 0.2 for the tool itself, less 0 for the place of its centre.
    assert depths(said) == pytest.approx([0.5], rel=5e-3)
    # Small body in a large hollow tool: as bad, seen from the other side.
    said = refused(box(size="[0.1, 0.1, 0.1]") + mesh_tool("[0, 0, 0]", "[1, 1, 1]"))
    assert "'a' is wholly inside it" in said and depths(said) == pytest.approx([0.55], rel=5e-3)


def test_resolve_moves_the_start_by_the_shortest_way():
    config = parse_config(box() + mesh_tool("[0, 0.1, 0.55]"))
    assembly = assemble(config, ".", resolve=True)
    eps = assembly.eps["eps_safety"]
    np.testing.assert_allclose(assembly.start, (0.0, 0.1, 0.6 + eps), atol=2e-3 * 0.05 + 0.03 * 0.05)
    assert assembly.clearance >= eps and assembly.config.tool.start == assembly.start
    assert any("tool.start was moved by 0.05" in note for note in assembly.notes)
    free = assemble(parse_config(box() + mesh_tool("[0, 0, 2]")), ".", resolve=True)
    assert free.start == (0, 0, 2) and any("free as it is" in note for note in free.notes)


def test_resolve_finds_the_way_out_of_several_bodies_at_once():
    """In a corner of three plates the tool has to leave along all three axes."""
    plates = "".join(
        box(name, size, f"pose.position = {at}\n")
        for name, size, at in (
            ("floor", "[1, 1, 0.02]", "[0.5, 0.5, -0.01]"),
            ("left", "[0.02, 1, 1]", "[-0.01, 0.5, 0.5]"),
            ("back", "[1, 0.02, 1]", "[0.5, -0.01, 0.5]"),
        )
    )
    assembly = assemble(parse_config(plates + mesh_tool("[0.09, 0.08, 0.09]")), ".", resolve=True)
    eps = assembly.eps["eps_safety"]
    least = np.linalg.norm([0.01 + eps, 0.02 + eps, 0.01 + eps])
    moved = float(np.linalg.norm(np.array(assembly.start) - (0.09, 0.08, 0.09)))
    assert min(assembly.start) >= 0.1 + eps - 1e-12 and least <= moved < 1.1 * least


def test_resolve_gives_up_where_no_short_way_is_free():
    text = box() + mesh_tool("[0, 0, 0]", "[3, 3, 3]")
    with pytest.raises(SceneError, match=r"no translation up to 0\.866 m .* was found"):
        assemble(parse_config(text), ".", resolve=True)


def test_resolve_moves_a_sphere_tip_out_and_not_in():
    assembly = assemble(parse_config(box() + "[tool]\ntip_radius = 0.01\nstart = [0, 0, 0.499]\n"), ".", resolve=True)
    assert assembly.start[2] == pytest.approx(0.51 + assembly.eps["eps_safety"], rel=1e-3)


def test_bodies_may_overlap_each_other_and_a_note_says_so():
    crossing = made(box() + box("b", more="pose.position = [0.9, 0.2, 0.3]\n") + START)
    assert any("'a' and 'b'" in note and "overlap each other, which is allowed" in note for note in crossing.notes)
    touching = made(box() + box("b", more="pose.position = [1, 0, 0]\n") + START)
    assert not any("overlap" in note for note in touching.notes)


def test_a_tool_that_yields_is_turned_by_a_pull_on_a_short_arm_at_least():
    """A hundredth of its reach, whatever the springs are; 0 for tools that yield to nothing."""

    def turning(tool: str, more: str = "") -> float:
        return float(made(box() + tool + more).model.world["turning"][0])

    tool = mesh_tool("[0, 0, 2]")
    least = pytest.approx((0.01 * 0.1 * 3.0**0.5) ** 2, rel=1e-12)
    assert turning(tool) == least
    assert turning(tool, "[coupling]\nrotational_stiffness = 0.0\n") == least
    assert turning(tool, "[coupling]\nstiffness = 200.0\nrotational_stiffness = 0.3\n") == least
    assert turning(mesh_tool("[0, 0, 2]", more='motion = "carried"')) == 0.0
    assert turning(START) == 0.0


def test_a_sphere_tip_is_never_carried():
    with pytest.raises(ConfigError, match="a sphere tip always slides"):
        made(box() + START + 'motion = "carried"\n')
