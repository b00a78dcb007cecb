"""Cones of normals hold every normal that counts, are as small as they can be, and are never there where unsafe."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from closed_meshes import box, channel, hull, star, torus
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from rtcore.geometry import cones
from rtcore.geometry.recoil import RECOIL, recoil_memory, recoil_vectors
from rtcore.geometry.tree import build_tree
from rtcore.tables import BOX_NODE, TRIANGLE

RNG = np.random.default_rng(11)
MESHES = {
    "box": box((1.0, 2.0, 0.5)),
    "channel": channel(),
    "hull": hull(RNG.normal(size=(40, 3))),
    "star": star(RNG, 0.15, 2),
    "torus": torus(16, 12),
    "open sheet": ((np.array([(0, 0, 0), (1, 0, 0), (1, 1, 0.1), (0, 1, 0)], float)), np.array([(0, 1, 2), (0, 2, 3)])),
}


def below(nodes, i):
    """Triangles below a node, by following the children."""
    if nodes["count"][i]:
        return list(range(nodes["first"][i], nodes["first"][i] + nodes["count"][i]))
    return below(nodes, i + 1) + below(nodes, nodes["right"][i])


def counting(triangles, rows):
    """Triangles at any feature that one of `rows` owns, and those themselves: the rule of the module, word by word."""
    found = set(rows)
    for t in rows:
        for k in range(3):
            if triangles["owned"][t] >> k & 1:
                found |= set(np.flatnonzero((triangles["vertex_ids"] == triangles["vertex_ids"][t, k]).any(axis=1)))
            if triangles["owned"][t] >> (3 + k) & 1:
                found |= set(np.flatnonzero((triangles["edge_ids"] == triangles["edge_ids"][t, k]).any(axis=1)))
    return sorted(found)


def angle_between(a, b):
    return 2.0 * np.arctan2(np.linalg.norm(a - b, axis=-1), np.linalg.norm(a + b, axis=-1))


@pytest.fixture(scope="module", params=list(MESHES))
def tree(request):
    nodes, triangles = build_tree(*MESHES[request.param])
    return nodes, triangles, [counting(triangles, below(nodes, i)) for i in range(len(nodes))]


@pytest.mark.parametrize("bottom_up", [False, True])
def test_every_normal_that_counts_is_in_the_cone(tree, bottom_up):
    nodes, triangles, counts = tree
    cones.fill_cones(nodes, triangles, bottom_up)
    np.testing.assert_allclose(np.linalg.norm(nodes["cone_axis"], axis=1), 1.0, rtol=0.0, atol=1e-15)
    for node, rows in zip(nodes, counts, strict=True):
        angle = node["cone_angle"]
        assert angle == math.pi or 0.0 < angle < 0.5 * math.pi
        if triangles["open"][rows].any() or triangles["degenerate"][rows].any():
            assert angle == math.pi
        assert (angle_between(triangles["normal"][rows], node["cone_axis"]) <= angle).all()


def smallest_cap(normals):
    """Angle of the smallest cap by trying every pair and every triple of normals; pi where none is below pi / 2."""
    unique = np.unique(normals.round(12), axis=0)
    axes = [unique[0]]
    for a, b in itertools.combinations(unique, 2):
        axes.append(a + b)
    for a, b, c in itertools.combinations(unique, 3):
        across = np.cross(b - a, c - a)
        axes.append(across if across @ a > 0.0 else -across)
    axes = np.array([x / np.linalg.norm(x) for x in axes if np.linalg.norm(x) > 1e-9])
    widest = angle_between(axes[:, None], unique[None]).max(axis=1)
    return min(float(widest.min()), math.pi)


def test_top_down_cones_are_the_smallest(tree):
    nodes, triangles, counts = tree
    cones.fill_cones(nodes, triangles)
    compared = 0
    for node, rows in zip(nodes, counts, strict=True):
        normals = triangles["normal"][rows]
        if len(np.unique(normals.round(12), axis=0)) > 10 or triangles["open"][rows].any():
            continue
        truth = smallest_cap(normals)
        if truth < 0.5 * math.pi - 1e-9:
            # The angle adds rounding of normals and of its own, far below the normals' rounding to 1e-12 here.
            assert node["cone_angle"] == pytest.approx(truth, abs=1e-8)
        else:
            assert node["cone_angle"] == math.pi
        compared += 1
    assert compared >= len(nodes) // 4 or triangles["open"].any()


def test_bottom_up_cones_hold_their_children_and_are_no_smaller(tree):
    nodes, triangles, _ = tree
    cones.fill_cones(nodes, triangles)
    smallest = nodes["cone_angle"].copy()
    cones.fill_cones(nodes, triangles, bottom_up=True)
    assert (nodes["cone_angle"] >= smallest - 1e-9).all()
    for i in np.flatnonzero((nodes["count"] == 0) & (nodes["cone_angle"] < math.pi)):
        for child in (i + 1, nodes["right"][i]):
            apart = angle_between(nodes["cone_axis"][i], nodes["cone_axis"][child])
            assert apart + nodes["cone_angle"][child] <= nodes["cone_angle"][i] + 1e-15


def test_an_edge_brings_both_its_sides_into_the_cone():
    """On a box every leaf that owns an edge between two sides has a cone of at least 45 degrees."""
    nodes, triangles = build_tree(*MESHES["box"])
    cones.fill_cones(nodes, triangles)
    sharp = 0
    for node in nodes[nodes["count"] > 0]:
        t = node["first"]
        for k in range(3):
            if triangles["owned"][t] >> (3 + k) & 1:
                sides = triangles["normal"][(triangles["edge_ids"] == triangles["edge_ids"][t, k]).any(axis=1)]
                if abs(sides[0] @ sides[1]) < 0.5:
                    assert node["cone_angle"] >= 0.25 * math.pi
                    sharp += 1
    assert sharp == 12


def test_normals_all_around_have_no_cone():
    for name in ("box", "hull", "star", "torus"):
        nodes, triangles = build_tree(*MESHES[name])
        cones.fill_cones(nodes, triangles)
        assert nodes["cone_angle"][0] == math.pi


def needle(rng):
    """A thin triangle whose corners are numbers of few bits, so that its exact normal is cheap."""
    along = rng.integers(-1000, 1000, 3)
    off = rng.integers(-3, 4, 3)
    corners = np.array([rng.integers(-1000, 1000, 3), along, 2 * along + off], dtype=float)
    corners[1:] += corners[0]
    return corners / 2.0 ** rng.integers(0, 12) + rng.integers(-3, 4) * 1000.0


def test_rounding_of_normals_stays_within_the_tilt():
    """The stored normal against the exact cross product in rational numbers, on needles."""
    rng = np.random.default_rng(3)
    tested = 0
    for _ in range(300):
        corners = needle(rng) + rng.normal(size=(3, 3)) * 1e-3
        _, triangles = build_tree(corners, np.array([(0, 1, 2)]))
        if triangles["degenerate"][0]:
            continue
        a, b, c = ([Fraction(x) for x in row] for row in triangles["vertices"][0])
        u, v = [x - y for x, y in zip(b, a, strict=True)], [x - y for x, y in zip(c, a, strict=True)]
        exact = [u[(k + 1) % 3] * v[(k + 2) % 3] - u[(k + 2) % 3] * v[(k + 1) % 3] for k in range(3)]
        largest = max(abs(x) for x in exact)
        exact = np.array([float(x / largest) for x in exact])
        exact /= np.linalg.norm(exact)
        triangles["open"] = 0  # a single triangle is, and its tilt would be infinite
        tilt = cones.touching_triangles(triangles)[3][0]
        assert angle_between(triangles["normal"][0], exact) <= tilt + 4e-16  # and the rounding of `exact`
        tested += 1
    assert tested > 200


@pytest.mark.parametrize("bottom_up", [False, True])
@pytest.mark.parametrize("most", [3, 4, 6, 9])
def test_every_normal_is_in_the_positive_cone_of_the_recoil_vectors(tree, most, bottom_up):
    """Lemma 2, by non-negative least squares: the rest that no sum of recoil vectors can make is within the margin."""
    nodes, triangles, counts = tree
    cones.fill_cones(nodes, triangles)
    table = recoil_vectors(nodes, triangles, most, bottom_up)
    assert table.dtype == RECOIL
    for node, recoil, rows in zip(nodes, table, counts, strict=True):
        count = recoil["count"]
        assert 0 <= count <= most
        assert (recoil["vectors"][count:] == 0.0).all()
        if node["cone_angle"] == math.pi:
            assert count == 0
        if count == 0:
            continue
        vectors = recoil["vectors"][:count]
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, rtol=0.0, atol=1e-15)
        assert recoil["margin"] < 1e-8
        for normal in triangles["normal"][rows]:
            assert nnls(vectors.T, normal)[1] <= recoil["margin"] + 1e-15


def test_recoil_vectors_are_normals_where_few_enough_hold_the_cone():
    nodes, triangles = build_tree(*MESHES["hull"])
    cones.fill_cones(nodes, triangles)
    table = recoil_vectors(nodes, triangles, 9)
    seen = 0
    for i in np.flatnonzero((table["count"] > 0) & (table["count"] < 9)):
        normals = triangles["normal"][counting(triangles, below(nodes, i))]
        for vector in table["vectors"][i, : table["count"][i]]:
            assert angle_between(normals, vector).min() < 1e-12
        seen += 1
    assert seen > 10


def test_four_sides_of_a_roof_need_four_vectors_and_can_do_with_three():
    """The top of a square pyramid: the normals' rectangle has parallel sides, which three lines must go round."""
    vertices = np.array([(-1, -1, 0), (1, -1, 0), (1, 1, 0), (-1, 1, 0), (0, 0, 1)], float)
    faces = np.array([(0, 1, 4), (1, 2, 4), (2, 3, 4), (3, 0, 4), (0, 2, 1), (0, 3, 2)])
    nodes, triangles = build_tree(vertices, faces)
    top = np.flatnonzero(triangles["vertices"][:, :, 2].max(axis=1) > 0.5)
    owner = next(t for t in top for k in range(3) if triangles["owned"][t] >> k & 1 and triangles["vertices"][t, k, 2])
    # That leaf shall own the apex only, so that just the four sides of the roof count for it.
    k = int(np.argmax(triangles["vertices"][owner, :, 2]))
    triangles["owned"][owner] = 1 << k
    leaf = int(np.flatnonzero((nodes["count"] > 0) & (nodes["first"] == owner))[0])
    cones.fill_cones(nodes, triangles)
    assert nodes["cone_angle"][leaf] == pytest.approx(math.pi / 4, abs=1e-12)
    assert recoil_vectors(nodes, triangles, 4)["count"][leaf] == 4
    three = recoil_vectors(nodes, triangles, 3)[leaf]
    assert three["count"] == 3
    for normal in triangles["normal"][top]:
        assert nnls(three["vectors"][:3].T, normal)[1] <= three["margin"]


def random_leaf(normals):
    """A tree of one leaf for each normal, all below one root, none sharing a feature."""
    count = len(normals)
    triangles = np.zeros(count, TRIANGLE)
    across = np.cross(normals, np.roll(normals, 1, axis=1) + 0.1)
    across /= np.linalg.norm(across, axis=1)[:, None]
    triangles["vertices"][:, 1] = across
    triangles["vertices"][:, 2] = np.cross(normals, across)
    triangles["normal"] = normals
    triangles["vertex_ids"] = np.arange(3 * count).reshape(-1, 3)
    triangles["edge_ids"] = np.arange(3 * count).reshape(-1, 3)
    triangles["owned"] = 63
    nodes = np.zeros(2 * count - 1, BOX_NODE)
    for k in range(count - 1):  # a chain: leaf k to the left, all others to the right
        nodes["right"][2 * k] = 2 * k + 2
    leaves = [2 * k + 1 for k in range(count - 1)] + [2 * count - 2]
    nodes["first"][leaves] = np.arange(count)
    nodes["count"][leaves] = 1
    return nodes, triangles


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(1, 60),
    st.sampled_from([1e-15, 1e-9, 1e-4, 0.1, 0.5, 1.0]),
    st.sampled_from(["round", "flat", "repeated"]),
    st.integers(3, 9),
    st.booleans(),
)
def test_any_set_of_normals(seed, count, spread, form, most, bottom_up):
    """Wide and tiny sets, sets along one great circle, and the same normals many times."""
    rng = np.random.default_rng(seed)
    directions = rng.normal(size=(count, 3)) * spread * ((1.0, 1e-12, 1.0) if form == "flat" else (1.0, 1.0, 1.0))
    normals = directions + rng.permutation([0.0, 0.6, 0.8]) * (1.0 if form != "flat" else np.array([1.0, 0.0, 1.0]))
    if form == "repeated":
        normals = normals[rng.integers(0, min(count, 4), count)]
    normals /= np.linalg.norm(normals, axis=1)[:, None]
    nodes, triangles = random_leaf(normals)
    cones.fill_cones(nodes, triangles)
    angle = nodes["cone_angle"][0]
    assert (angle_between(normals, nodes["cone_axis"][0]) <= angle).all()
    table = recoil_vectors(nodes, triangles, most, bottom_up)
    recoil = table[0]
    if angle < 0.5 * math.pi - 0.01 and not bottom_up:
        assert recoil["count"] > 0
    if recoil["count"]:
        vectors = recoil["vectors"][: recoil["count"]]
        assert recoil["margin"] < 1e-7
        for normal in normals:
            assert nnls(vectors.T, normal)[1] <= recoil["margin"] + 2e-15


def test_bytes_by_hand():
    """(4.14): vectors, one record for each cone that is not empty, one pointer for each node."""
    counts = np.array([0, 3, 3, 6, 0])
    assert recoil_memory(counts) == 24 * 12 + 12 * 3 + 8 * 5
    assert recoil_memory(counts, 12, 12, 192, 4) == 12 * 12 + (12 + 192) * 3 + 4 * 5
    assert recoil_memory(np.zeros(7, int)) == 56


@pytest.mark.parametrize("most", [2, 10])
def test_a_number_of_vectors_out_of_range_is_refused(most):
    nodes, triangles = build_tree(*MESHES["box"])
    with pytest.raises(ValueError, match="3 to 9"):
        recoil_vectors(nodes, triangles, most)
