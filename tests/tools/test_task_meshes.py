"""The meshes shipped with the task scenes are those that their generator makes."""

import numpy as np
import pytest

from bridge.scene.mesh import read_mesh
from bridge.separation import is_closed
from tools.task_meshes import FOLDER, PARTS, part, ply


@pytest.mark.parametrize("name", PARTS)
def test_the_shipped_meshes_are_what_is_generated(name):
    shipped, made = read_mesh(FOLDER / f"{name}.ply"), part(name)
    assert (len(shipped.faces), len(shipped.vertices)) == (len(made.faces), len(made.vertices))
    # Corners, whatever their numbers: a float of a metre is kept to 6e-8 m.
    np.testing.assert_allclose(shipped.vertices[shipped.faces], made.vertices[made.faces], atol=1.2e-7)
    assert is_closed(shipped.vertices[shipped.faces])


def test_no_file_is_left_over_or_missing():
    assert {path.stem for path in FOLDER.glob("*.ply")} == set(PARTS)


def test_a_written_file_is_read_again(tmp_path):
    corners = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    faces = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
    path = tmp_path / "a.ply"
    path.write_bytes(ply(corners, faces))
    mesh = read_mesh(path)
    np.testing.assert_array_equal(mesh.vertices[mesh.faces], corners[faces])
