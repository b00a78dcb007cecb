"""Trees of balls cover the surface, know all features that their leaves reach, and hold what is below each node."""

import numpy as np
import pytest
import trimesh

from rtcore.geometry.sphere_tree import build_sphere_tree, list_entries

MESHES = {
    "block": (trimesh.creation.box((1.0, 0.8, 0.3)), 0.1),
    "pebble": (trimesh.creation.icosphere(subdivisions=1, radius=0.5), 0.08),
    "coarse leaves": (trimesh.creation.icosphere(subdivisions=1, radius=0.5), 0.7),
    "without area": (
        trimesh.Trimesh(
            [[0.0, 0, 0], [1, 0, 0], [2, 0, 0], [0, 1, 0], [0.3, 0, 1]], [[0, 1, 2], [0, 3, 4]], process=False
        ),
        0.1,
    ),
}


@pytest.fixture(scope="module", params=MESHES)
def tree(request):
    mesh, radius = MESHES[request.param]
    return build_sphere_tree(np.array(mesh.vertices), np.array(mesh.faces), radius)


def leaves(tree):
    return tree.nodes[tree.nodes["right"] == 0]


def features(tree, label):
    row = tree.lists[label]
    return (
        set(tree.items[row["vertices"] : row["edges"]]),
        set(tree.items[row["edges"] : row["faces"]]),
        set(tree.items[row["faces"] : row["end"]]),
    )


def distance_to_hull(points, corners):
    """Distance of points (k, 3) from the hull of a vertex, edge or face, by subdividing it finely: an upper bound."""
    n = 30
    weights = np.array([[i, j, n - i - j] for i in range(n + 1) for j in range(n + 1 - i)]) / n
    corners = np.concatenate([corners, np.repeat(corners[-1:], 3 - len(corners), axis=0)])
    samples = weights @ corners
    return np.linalg.norm(points[:, None] - samples[None], axis=2).min(axis=1)


def test_every_point_of_a_feature_is_in_a_leaf_that_knows_the_feature(tree):
    """Random points of each face, edge and vertex: otherwise a contact there could be missed."""
    rng = np.random.default_rng(1)
    balls = leaves(tree)
    kinds = (
        (0, tree.vertices[:, None]),
        (1, tree.vertices[tree.edges]),
        (2, tree.vertices[tree.faces]),
    )
    known = [features(tree, label) for label in range(len(tree.lists))]
    for kind, all_corners in kinds:
        for number, corners in enumerate(all_corners):
            weights = rng.dirichlet(np.full(len(corners), 0.4), size=20)
            for point in np.concatenate([weights @ corners, corners]):
                inside = np.linalg.norm(balls["centre"] - point, axis=1) <= balls["radius"]
                assert any(number in known[label][kind] for label in balls["label"][inside])


def test_leaves_know_all_they_reach_and_no_more(tree):
    """Against distances to fine samples of each feature, which are a little too large."""
    balls = leaves(tree)
    counts = len(tree.vertices), len(tree.edges), len(tree.faces)
    known = [features(tree, label) for label in range(len(tree.lists))]
    for kind, all_corners in enumerate((tree.vertices[:, None], tree.vertices[tree.edges], tree.vertices[tree.faces])):
        for number in range(0, counts[kind], 1 + counts[kind] // 8):
            corners = all_corners[number]
            near = distance_to_hull(balls["centre"], corners)
            grain = np.linalg.norm(corners - corners[0], axis=1).max() / 30
            has = np.array([number in known[label][kind] for label in balls["label"]])
            assert has[near <= tree.leaf_radius].all()
            assert not has[near > tree.leaf_radius + grain + 1e-9].any()


def test_nodes_hold_the_balls_below_and_share_a_label_only_with_the_same_features(tree):
    """Bottom up over the depth-first table, in which each node but the root has one parent."""
    nodes = tree.nodes
    below = [None] * len(nodes)
    parents = np.zeros(len(nodes), dtype=int)
    for k in range(len(nodes) - 1, -1, -1):
        if nodes[k]["right"] == 0:
            below[k] = [k]
            assert nodes[k]["label"] < len(tree.lists)
            continue
        children = k + 1, nodes[k]["right"]
        parents[list(children)] += 1
        below[k] = below[children[0]] + below[children[1]]
        held = nodes[below[k]]
        reach = np.linalg.norm(held["centre"] - nodes[k]["centre"], axis=1) + held["radius"]
        assert reach.max() <= nodes[k]["radius"]
        labels = set(held["label"])
        assert (nodes[k]["label"] in labels) == (len(labels) == 1)
    assert parents.tolist() == [0] + [1] * (len(nodes) - 1)
    inner = nodes["label"][nodes["label"] >= len(tree.lists)]
    assert len(set(inner)) == len(inner)


def test_coplanar_triangles_share_leaves_and_lists():
    """Two halves of a rectangle have as many leaves as a lattice over it, and its inside few different lists."""
    vertices = np.array([[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]])
    both = build_sphere_tree(vertices, np.array([[0, 1, 2], [0, 2, 3]]), 0.05)
    cells = 1.0 / (np.sqrt(2) * 0.05) ** 2
    assert len(leaves(both)) < 1.35 * cells  # the rim of a square of 14 x 14 cells
    shared, own = list_entries(both)
    assert shared < own / 5


def test_what_cannot_be_built_is_refused():
    vertices, faces = np.eye(3), np.array([[0, 1, 2]])
    with pytest.raises(ValueError, match="radius"):
        build_sphere_tree(vertices, faces, 0.0)
    with pytest.raises(ValueError, match="triangle"):
        build_sphere_tree(vertices, faces[:0], 0.1)
