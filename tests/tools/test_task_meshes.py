"""The meshes shipped with the task scenes are those that their generator makes."""

import numpy as np
import pytest

from bridge.scene.mesh import read_mesh
from bridge.separation import is_closed, triangles_distance
from tools.scenes.gear_mesh import BACKLASH, MODULE
from tools.scenes.mesh import rotation
from tools.task_meshes import FOLDER, NAMES, PINION, WHEEL, part, ply


@pytest.mark.parametrize("name", NAMES)
def test_the_shipped_meshes_are_what_is_generated(name):
    shipped, made = read_mesh(FOLDER / f"{name}.ply"), part(name)
    assert (len(shipped.faces), len(shipped.vertices)) == (len(made.faces), len(made.vertices))
    # Corners, whatever their numbers: a float of a metre is kept to 6e-8 m.
    np.testing.assert_allclose(shipped.vertices[shipped.faces], made.vertices[made.faces], atol=1.2e-7)
    assert is_closed(shipped.vertices[shipped.faces])


def test_gears_stay_half_a_backlash_apart_while_they_turn_by_their_ratio():
    """That is what involutes are for. Strips lie inside of the flank by up to 0.04 mm, and below the base circle of the
    pinion there is no involute: 0.03 mm less."""
    (teeth, _), (others, _) = PINION, WHEEL
    pinion, wheel = (mesh.vertices[mesh.faces] for mesh in (part("pinion"), part("wheel")))
    away = 0.5 * MODULE * (teeth + others)
    for share in np.linspace(0.0, 1.0, 7):
        turn = share * 2.0 * np.pi / teeth
        one = pinion @ rotation("z", np.pi * (1.0 + 1.0 / teeth) + turn).T + (away, 0.0, 0.0)
        other = wheel @ rotation("z", -turn * teeth / others).T
        gap = triangles_distance(one, other, BACKLASH)
        assert -0.04e-3 < gap - 0.5 * BACKLASH * np.cos(np.radians(20.0)) < 0.05e-3, share
    for triangles in (pinion, wheel):
        assert np.einsum("ij,ij->i", triangles[:, 0], np.cross(triangles[:, 1], triangles[:, 2])).sum() > 0.0


def test_no_file_is_left_over_or_missing():
    assert {path.stem for path in FOLDER.glob("*.ply")} == set(NAMES)


def test_a_written_file_is_read_again(tmp_path):
    corners = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    faces = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
    path = tmp_path / "a.ply"
    path.write_bytes(ply(corners, faces))
    mesh = read_mesh(path)
    np.testing.assert_array_equal(mesh.vertices[mesh.faces], corners[faces])
