"""Boxes and balls hold every triangle below them, in exact arithmetic, and trees stay as deep as the stacks allow."""

from fractions import Fraction

import numpy as np
import pytest
from probe_scenes import box, grid

from rtcore.geometry.tree import build_tree
from rtcore.spatial import from_rotation_vector, rotate
from rtcore.tables import MAX_TREE_DEPTH


def exact(values):
    return [Fraction(float(value)) for value in values]


def inside(node, points):
    """Are the points in the box and in the ball of the node, by rational arithmetic?"""
    centre, half, square = exact(node["centre"]), exact(node["half"]), Fraction(float(node["radius"])) ** 2
    axes = [exact(axis) for axis in node["axes"]]
    for point in points:
        away = [p - c for p, c in zip(exact(point), centre, strict=True)]
        if sum(a * a for a in away) > square:
            return False
        if any(
            abs(sum(x * a for x, a in zip(axis, away, strict=True))) > h for axis, h in zip(axes, half, strict=True)
        ):
            return False
    return True


def check(nodes, triangles, corners):
    """Walk the tree: leaves hold the triangles in order, one each, boxes contain what is below them, depth counts."""
    np.testing.assert_array_equal(np.sort(triangles["face_id"]), np.arange(len(corners)))
    np.testing.assert_array_equal(triangles["vertices"], corners[triangles["face_id"]])
    done = 0

    def walk(i, depth, parent):
        nonlocal done
        node = nodes[i]
        first = done
        assert node["depth"] == depth <= MAX_TREE_DEPTH - 2
        assert node["parent"] == parent
        assert parent < 0 or node["size"] <= nodes[parent]["size"]
        if node["count"] == 0:
            after = walk(i + 1, depth + 1, i)
            assert node["right"] == after
            after = walk(after, depth + 1, i)
        else:
            assert node["first"] == done and node["count"] == 1 and node["size"] == 0.0
            done += 1
            after = i + 1
        assert inside(node, np.unique(triangles["vertices"][first:done].reshape(-1, 3), axis=0))
        return after

    np.testing.assert_allclose(
        nodes["axes"] @ nodes["axes"].transpose(0, 2, 1), np.tile(np.eye(3), (len(nodes), 1, 1)), atol=1e-15
    )
    assert (np.linalg.det(nodes["axes"]) > 0.0).all()
    assert walk(0, 0, -1) == len(nodes)
    assert done == len(triangles)


@pytest.mark.parametrize("min_max", [False, True])
@pytest.mark.parametrize(
    "mesh", [box(1, 2, 3), grid(20, 1.0, lambda x, y: np.sin(7 * x) * y)], ids=["box", "wavy grid"]
)
def test_every_triangle_is_in_every_box_above_it(mesh, min_max):
    vertices, faces = mesh
    check(*build_tree(vertices, faces, min_max), vertices[faces])


def test_equal_triangles_are_split_all_the_same():
    vertices, faces = np.eye(3), np.tile([0, 1, 2], (1500, 1))
    nodes, triangles = build_tree(vertices, faces)
    check(nodes, triangles, vertices[faces])
    assert nodes["depth"].max() <= 11  # 1500 leaves, halved


def test_clusters_at_every_scale_do_not_make_the_tree_too_deep():
    # Splits by area would peel off one triangle per level: 300 levels.
    vertices = np.array([[2.0**-k, 0, 0] for k in range(300)] + [[0, 1, 0], [0, 0, 1]])
    faces = np.array([(k, 300, 301) for k in range(300)])
    check(*build_tree(vertices, faces), vertices[faces])


@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e-160, 1e150])
def test_scales_at_the_ends_of_the_number_range_are_split_too(scale):
    vertices, faces = grid(12, 10.0)
    vertices = np.round(vertices) * scale
    check(*build_tree(vertices, faces), vertices[faces])


def turned(vertices):
    """The vertices in a frame turned by some angle and moved far away."""
    q = from_rotation_vector((0.3, -1.1, 0.7))
    return np.array([rotate(q, tuple(v)) for v in vertices]) + (3.0, -5.0, 2.0)


def test_boxes_are_exact_for_a_box_in_any_frame():
    # The covariance of the surface has the box's own axes, and the triangles of a box reach into all its corners.
    vertices, faces = box(1.0, 2.0, 3.0)
    for points in (vertices, turned(vertices)):
        nodes, _ = build_tree(points, faces)
        np.testing.assert_allclose(np.sort(nodes["half"][0]), [0.5, 1.0, 1.5], rtol=1e-13)
        assert nodes["radius"][0] == pytest.approx(np.sqrt(14.0) / 2.0, rel=1e-13)


def test_turning_a_mesh_does_not_make_its_boxes_larger():
    vertices, faces = grid(20, 1.0, lambda x, y: 0.05 * np.sin(9 * x + 3 * y))

    def volume(points):
        nodes, _ = build_tree(points, faces)
        return nodes["half"].prod(axis=1)[nodes["count"] == 0].sum()

    assert volume(turned(vertices)) < 1.2 * volume(vertices)


def test_leaf_boxes_are_flat_and_lie_along_the_longest_edge():
    vertices, faces = grid(9, 1.0, lambda x, y: np.sin(7 * x) * y)
    nodes, triangles = build_tree(turned(vertices), faces)
    leaves = nodes[nodes["count"] == 1]
    corner = triangles["vertices"]
    edges = np.roll(corner, -1, axis=1) - corner
    longest = np.linalg.norm(edges, axis=2).max(axis=1)
    doubled_area = np.linalg.norm(np.cross(edges[:, 0], edges[:, 1]), axis=1)
    np.testing.assert_allclose(leaves["half"][:, 0], longest / 2, atol=1e-13)
    np.testing.assert_allclose(leaves["half"][:, 1], doubled_area / longest / 2, atol=1e-13)
    assert (leaves["half"][:, 2] <= 1e-13).all()
    np.testing.assert_array_equal(leaves["axes"][:, 2], triangles["normal"])


def test_the_same_mesh_gives_the_same_bits():
    mesh = grid(15, 1.0, lambda x, y: np.sin(7 * x) * y)
    for first, second in zip(build_tree(*mesh), build_tree(*mesh), strict=True):
        assert first.tobytes() == second.tobytes()


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
