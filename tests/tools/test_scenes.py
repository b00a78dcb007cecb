"""Generated scenes: meshes without faults, motions that are what they say, and the same bits on every run."""

import time

import numpy as np
import pytest
import trimesh

from bridge.separation import pair_distances, triangles_distance
from tools.scenes import MOST, NAMES, least_triangles, scene, usual_triangles
from tools.scenes.__main__ import main
from tools.scenes.clearance import clearance, placed
from tools.scenes.path import MOST_SHIFT, MOST_TURN

USUAL_PHASES = ("free", "approach", "slide", "wedge")
CHEAP = {"screw_in_thread": 6_000, "two_doors": 8_000, "door_in_body": 8_000, "pylon_part": 60_000}
"""Sizes at which many poses are checked; the others are checked as they usually are."""


@pytest.fixture(scope="module")
def scenes():
    """Scenes by name, number and seed, each built once, and how long that took (s)."""
    made = {}

    def get(name, triangles=None, seed=0):
        key = (name, triangles or usual_triangles(name), seed)
        if key not in made:
            started = time.perf_counter()
            built = scene(*key)
            made[key] = (built, time.perf_counter() - started)
        get.seconds = made[key][1]
        return made[key][0]

    return get


def fault(vertices: np.ndarray, faces: np.ndarray) -> str:
    """What is wrong with a mesh whose vertices at one place are one vertex; empty when nothing is."""
    place, number = np.unique(vertices, axis=0, return_inverse=True)
    corner = number.reshape(-1)[faces]
    edges = np.concatenate([corner[:, [0, 1]], corner[:, [1, 2]], corner[:, [2, 0]]])
    code = edges[:, 0].astype(np.int64) * len(place) + edges[:, 1]
    back = edges[:, 1].astype(np.int64) * len(place) + edges[:, 0]
    if len(np.unique(code)) != len(code):
        return "an edge is used twice in one direction"
    if not np.array_equal(np.sort(code), np.sort(back)):
        return "an edge is used in one direction only"
    a, b, c = vertices[faces[:, 0]], vertices[faces[:, 1]], vertices[faces[:, 2]]
    if not np.all(np.linalg.norm(np.cross(b - a, c - a), axis=1) > 0.0):
        return "a triangle has no area"
    return ""


@pytest.mark.parametrize("name", NAMES)
def test_parts_are_closed_manifold_and_outward(scenes, name):
    """Each edge has two triangles in opposite directions, and each closed surface holds a positive volume."""
    made = scenes(name)
    for part in made.parts:
        assert part.vertices.dtype == np.float64 and part.faces.dtype == np.int32
        assert part.faces.min() == 0 and part.faces.max() == len(part.vertices) - 1
        if not part.closed:
            continue
        assert fault(part.vertices, part.faces) == "", part.name
        mesh = trimesh.Trimesh(part.vertices, part.faces, process=False)
        assert mesh.is_watertight and mesh.is_winding_consistent
        labels = trimesh.graph.connected_component_labels(mesh.face_adjacency, node_count=len(part.faces))
        corner = part.vertices[part.faces] - part.vertices[0]
        volumes = np.bincount(labels, np.einsum("nk,nk->n", np.cross(corner[:, 0], corner[:, 1]), corner[:, 2]) / 6.0)
        assert volumes.min() > 0.0, part.name


@pytest.mark.parametrize("name", NAMES)
def test_triangle_target_is_met(scenes, name):
    """Within 10 % from the smallest to the largest size; one part moves; other numbers are refused."""
    sizes = [least_triangles(name), usual_triangles(name)]
    if name not in ("motor_in_door", "two_doors", "pylon_part"):  # made of the same sheets as the door in the body
        sizes.append(MOST)
    for wanted in sizes:
        made = scenes(name, wanted)
        assert abs(made.triangles / wanted - 1.0) <= 0.10, wanted
        assert sum(part.moving for part in made.parts) == 1
        if wanted == least_triangles(name):
            for part in made.parts:
                assert not part.closed or fault(part.vertices, part.faces) == "", part.name
    for wrong in (least_triangles(name) - 1, MOST + 1):
        with pytest.raises(ValueError, match="triangles"):
            scene(name, wrong)


def test_door_is_sixteen_of_twenty_nine_triangles(scenes):
    made = scenes("door_in_body")
    assert abs(len(made.moving.faces) / 16_000 - 1.0) < 0.1
    assert abs(made.triangles / 29_000 - 1.0) < 0.1


@pytest.mark.parametrize("name", NAMES)
def test_equal_seeds_give_equal_bits(scenes, name):
    """The same seed gives the same bytes; another one gives another scene."""
    first, second = scenes(name), scene(name, None, 0)
    for a, b in zip(first.parts, second.parts, strict=True):
        assert (a.name, a.moving) == (b.name, b.moving)
        assert a.vertices.tobytes() == b.vertices.tobytes() and a.faces.tobytes() == b.faces.tobytes()
        assert a.position.tobytes() == b.position.tobytes() and a.orientation.tobytes() == b.orientation.tobytes()
    for p, q in zip(first.phases, second.phases, strict=True):
        assert p.name == q.name and p.poses.tobytes() == q.poses.tobytes()
    other = scenes(name, CHEAP.get(name), 1)
    assert any(not np.array_equal(p.poses, q.poses) for p, q in zip(first.phases, other.phases, strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_motions_are_unit_smooth_and_within_the_speed_limits(scenes, name):
    """At most 0.3 mm and 1 mrad in a tick, starting and ending at rest, with no jump of the velocity between ticks."""
    made = scenes(name)
    assert len(made.phases) == 4
    np.testing.assert_array_equal(made.phases[0].poses[0, :3], made.moving.position)
    np.testing.assert_array_equal(made.phases[0].poses[0, 3:], made.moving.orientation)
    for phase in made.phases:
        position, q = phase.poses[:, :3], phase.poses[:, 3:]
        np.testing.assert_allclose(np.linalg.norm(q, axis=1), 1.0, atol=1e-12)
        step = np.diff(position, axis=0)
        turn = 2.0 * np.diff(q, axis=0)  # its length is the angle's, to third order
        assert np.linalg.norm(step, axis=1).max() <= MOST_SHIFT * (1.0 + 1e-9), phase.name
        assert np.linalg.norm(turn, axis=1).max() <= MOST_TURN, phase.name
        # minimum jerk of a fifth of a second and the fastest oscillations stay below 2 % of the top speed in a tick
        assert np.linalg.norm(np.diff(step, axis=0), axis=1).max() < 0.03 * MOST_SHIFT, phase.name
        assert np.linalg.norm(np.diff(turn, axis=0), axis=1).max() < 0.03 * MOST_TURN, phase.name
        for end in (0, -1):
            assert np.linalg.norm(step[end]) < 0.03 * MOST_SHIFT and np.linalg.norm(turn[end]) < 0.03 * MOST_TURN


@pytest.mark.parametrize("name", NAMES)
def test_poses_are_free_where_promised(scenes, name):
    """The start is as clear as stated, first poses are free, free phases stay free, and gaps are held within bounds."""
    made = scenes(name, CHEAP.get(name), 1)
    assert clearance(made.parts, made.moving, reach=made.clearance) == np.inf
    for phase in made.phases:
        reach = 1.5 * phase.gap[1] if phase.gap else 0.2e-3
        count = 6 if phase.free else 1
        for row in np.linspace(0, len(phase.poses) - 1, count).round().astype(int):
            gap = clearance(made.parts, made.moving, phase.poses[row], reach)
            assert gap > 0.0, (phase.name, row)
            if phase.gap:
                assert phase.gap[0] <= gap <= phase.gap[1], (phase.name, row)


@pytest.mark.parametrize("name", NAMES)
def test_other_phases_press_into_an_obstacle(scenes, name):
    """Where a phase is not free, some of its targets cross another part's surface, so an engine has to stop there."""
    made = scenes(name, CHEAP.get(name), 1)
    pressing = [phase for phase in made.phases if not phase.free]
    assert pressing
    for phase in pressing:
        rows = (len(phase.poses) // 2, 2 * len(phase.poses) // 3, len(phase.poses) - 1)
        assert any(clearance(made.parts, made.moving, phase.poses[row], 1e-5) == 0.0 for row in rows), phase.name


def test_rings_are_linked_and_links_hang_together(scenes):
    """Each neighbour, and no other part, crosses the plane of the moving part inside its hole."""
    for name, neighbours in (("rings", ("left_ring", "right_ring")), ("chain", ("link_2", "link_4"))):
        made = scenes(name)
        flat = placed(made.moving)
        for other in made.parts:
            # the other's section with the plane z = 0 has two spots, of which one has to be inside the hole
            corners = placed(other).reshape(-1, 3)
            spots = corners[np.abs(corners[:, 2]) < 1.5e-3]
            inside = spots[(np.abs(spots[:, 1]) < 5e-3) & (np.abs(spots[:, 0]) < 0.9 * flat[:, :, 0].max())]
            if other is not made.moving:
                assert (len(inside) > 0) == (other.name in neighbours), other.name


def test_a_turning_bolt_keeps_its_clearance_and_a_pushed_one_does_not(scenes):
    """The bolt is in the nut by several turns: a shift of a third of the pitch without a turn makes threads cross."""
    made = scenes("screw_in_thread", CHEAP["screw_in_thread"], 1)
    pose = made.phases[2].poses[0].copy()
    assert clearance(made.parts, made.moving, pose, 0.2e-3) < 0.2e-3
    pose[2] += 1.75e-3 / 3.0
    assert clearance(made.parts, made.moving, pose, 1e-5) == 0.0


def test_generation_time(scenes):
    """29,000 triangles in 2 s and 200,000 in 15 s; measured again when it took longer, as machines are shared."""
    for name, triangles, limit in (("door_in_body", 29_000, 2.0), ("door_in_body", MOST, 15.0)):
        scenes(name, triangles)
        seconds = scenes.seconds
        if seconds >= limit:
            started = time.perf_counter()
            scene(name, triangles, 0)
            seconds = time.perf_counter() - started
        assert seconds < limit, (name, triangles)


def test_distance_of_triangles_is_the_sampled_one():
    """Against the least distance of dense samples of both triangles; zero where an edge goes through the other."""
    generator = np.random.default_rng(1)
    weight = generator.dirichlet(np.full(3, 0.5), 300)
    weight = np.concatenate([np.eye(3), weight])
    for _ in range(40):
        s, t = generator.normal(size=(2, 3, 3))
        found = float(pair_distances(s[None], t[None])[0])
        sampled = np.linalg.norm((weight @ s)[:, None] - (weight @ t)[None], axis=2).min()
        assert found <= sampled + 1e-12
        if found > 0.0:
            assert found >= sampled - 0.25  # how far samples may be from the nearest points
    flat = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0]])
    above = flat + (0.2, 0.2, 0.3)
    assert pair_distances(flat[None], above[None])[0] == pytest.approx(0.3, abs=1e-15)
    through = np.array([[0.2, 0.2, -1.0], [0.2, 0.2, 1.0], [0.3, 0.2, 1.0]])
    assert pair_distances(flat[None], through[None])[0] == 0.0
    assert triangles_distance(flat[None], above[None], 0.29) == np.inf


def test_command_line_writes_meshes_motions_and_a_picture(tmp_path, capsys):
    """The written meshes are the generated ones, the poses are readable, and the picture shows something."""
    arguments = ["--triangles", "1500", "--seed", "2", "--format", "stl", "--size", "320", "180", "--at", "slide:9"]
    assert main(["peg_in_hole", *arguments, "--out", str(tmp_path)]) == 0
    made = scene("peg_in_hole", 1500, 2)
    for part in made.parts:
        mesh = trimesh.load(tmp_path / f"{part.name}.stl")
        assert len(mesh.faces) == len(part.faces) and mesh.is_watertight
    for phase in made.phases:
        poses = np.loadtxt(tmp_path / f"{phase.name}.csv", delimiter=",", skiprows=1)
        np.testing.assert_array_equal(poses, phase.poses)
    from PIL import Image

    pixels = np.asarray(Image.open(tmp_path / "peg_in_hole.png"))
    assert pixels.shape == (180, 320, 3) and len(np.unique(pixels.reshape(-1, 3), axis=0)) > 100
    assert "moves" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["peg_in_hole", "--triangles", "10"])
    assert "1,000 to 200,000" in capsys.readouterr().err
