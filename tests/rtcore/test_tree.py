"""Bounding trees hold every triangle in every box above it, and stay within the depth that the stacks allow."""

import numpy as np
import pytest
from probe_scenes import box, grid

from rtcore.geometry.tree import LEAF_TRIANGLES, build_tree
from rtcore.tables import MAX_TREE_DEPTH


def check(nodes, triangles, corners):
    """Walk the tree: leaves partition the triangles in order, boxes contain what is below them, depth counts."""
    np.testing.assert_array_equal(np.sort(triangles["face_id"]), np.arange(len(corners)))
    np.testing.assert_array_equal(triangles["vertices"], corners[triangles["face_id"]])
    done = 0

    def walk(i, depth):
        nonlocal done
        node = nodes[i]
        assert node["depth"] == depth <= MAX_TREE_DEPTH - 2
        if node["count"] == 0:
            after = walk(i + 1, depth + 1)
            assert node["right"] == after
            after = walk(after, depth + 1)
            below = triangles["vertices"][start[i + 1] : done]
        else:
            assert node["first"] == done and 0 < node["count"] <= LEAF_TRIANGLES
            start[i] = done
            done += node["count"]
            after = i + 1
            below = triangles["vertices"][node["first"] : done]
        start.setdefault(i, start.get(i + 1))  # of its left child
        assert (below.min(axis=(0, 1)) >= node["lower"]).all() and (below.max(axis=(0, 1)) <= node["upper"]).all()
        return after

    start = {}
    assert walk(0, 0) == len(nodes)
    assert done == len(triangles)


@pytest.mark.parametrize(
    "mesh", [box(1, 2, 3), grid(30, 1.0, lambda x, y: np.sin(7 * x) * y)], ids=["box", "wavy grid"]
)
def test_every_triangle_is_in_every_box_above_it(mesh):
    vertices, faces = mesh
    check(*build_tree(vertices, faces), vertices[faces])


def test_equal_triangles_are_split_all_the_same():
    vertices, faces = np.eye(3), np.tile([0, 1, 2], (5000, 1))
    nodes, triangles = build_tree(vertices, faces)
    check(nodes, triangles, vertices[faces])
    assert nodes["depth"].max() <= 12  # 5000 / 4 leaves, halved


def test_clusters_at_every_scale_do_not_make_the_tree_too_deep():
    # Splits by area would peel off one triangle per level: 1000 levels.
    vertices = np.array([[2.0**-k, 0, 0] for k in range(1000)] + [[0, 1, 0], [0, 0, 1]])
    faces = np.array([(k, 1000, 1001) for k in range(1000)])
    check(*build_tree(vertices, faces), vertices[faces])


@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e-160, 1e150])
def test_scales_at_the_ends_of_the_number_range_are_split_too(scale):
    vertices, faces = grid(12, 10.0)
    vertices = np.round(vertices) * scale
    check(*build_tree(vertices, faces), vertices[faces])


def test_normals_are_unit_and_by_the_right_hand_rule():
    vertices, faces = grid(4, 1.0, lambda x, y: x * y)
    _, triangles = build_tree(vertices, faces)
    corner = triangles["vertices"]
    expected = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    expected /= np.linalg.norm(expected, axis=1)[:, None]
    np.testing.assert_allclose(triangles["normal"], expected, atol=1e-14)
    assert not triangles["degenerate"].any()


def test_triangles_without_area_are_kept_with_some_unit_normal():
    corners = np.array(
        [
            [[0, 0, 0], [1, 0, 0], [0, 1, 0]],
            [[0, 0, 0], [0, 0, 2], [0, 0, 1]],  # a segment
            [[1, 1, 1], [1, 1, 1], [3, 1, 1]],  # two corners in one
            [[5, 5, 5], [5, 5, 5], [5, 5, 5]],  # a point
        ],
        dtype=float,
    )
    _, triangles = build_tree(corners.reshape(-1, 3), np.arange(12).reshape(4, 3))
    flat = triangles["degenerate"][np.argsort(triangles["face_id"])]
    np.testing.assert_array_equal(flat, [0, 1, 1, 1])
    np.testing.assert_allclose(np.linalg.norm(triangles["normal"], axis=1), 1.0, atol=1e-15)


def test_the_normal_of_a_needle_is_square_to_it():
    # A plain cross product is off by 1e-16 / 1e-9 along the needle, which over its length shifts the plane by 1e-7 m.
    rng = np.random.default_rng(0)
    for _ in range(200):
        a, along, across = rng.normal(size=(3, 3))
        corners = np.array([a, a + along, a + 0.4 * along + 1e-9 * across])
        _, triangles = build_tree(corners, np.array([[0, 1, 2]]))
        edge = corners[1] - corners[0]
        assert abs(triangles["normal"][0] @ edge) <= 4e-16 * np.linalg.norm(edge)


@pytest.mark.parametrize("scale", [1e-120, 1e-6, 1.0, 1e120])
def test_size_does_not_matter_for_normals(scale):
    _, triangles = build_tree(scale * np.eye(3), np.array([[0, 1, 2]]))
    np.testing.assert_allclose(triangles["normal"][0], np.full(3, 3**-0.5), atol=1e-15)
    assert triangles["degenerate"][0] == 0


@pytest.mark.parametrize(
    ("vertices", "faces", "word"),
    [
        (np.eye(3), np.zeros((0, 3), int), "at least one triangle"),
        (np.eye(3), np.array([[0, 1, 3]]), "face indices"),
        (np.eye(3), np.array([[0, 1, -1]]), "face indices"),
        (np.array([[0, 0, 0], [1, 0, 0], [0, np.nan, 0]]), np.array([[0, 1, 2]]), "finite"),
        (np.eye(4), np.array([[0, 1, 2]]), "shape"),
        (np.eye(3), np.array([[0, 1, 2, 0]]), "shape"),
    ],
)
def test_bad_meshes_are_refused_with_a_reason(vertices, faces, word):
    with pytest.raises(ValueError, match=word):
        build_tree(vertices, faces)
