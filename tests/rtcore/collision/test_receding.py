"""Culling of what recedes: conservative, and without effect on the first time at which two solids come near.

The truth of the last part knows nothing of the kernels' searches: distances of all pairs of features by closed formulas
at given poses, and bisection in time.
"""

import math

import numpy as np
import pytest
from closed_meshes import box, channel, hull, star, torus
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from rtcore import motion as m
from rtcore.collision import receding
from rtcore.geometry import cones
from rtcore.geometry.recoil import recoil_vectors
from rtcore.geometry.tree import build_tree
from rtcore.tables import BOX_NODE, RELATIVE

ZERO, IDENTITY = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0)
KINDS = [m.STILL, m.SCREW, m.TAN_HALF]
seeds = st.integers(0, 10**6)


def triple(values):
    return tuple(float(x) for x in values)


def random_motion(rng, kind, size=1.0):
    motion = np.zeros(1, RELATIVE)[0]["first"].copy()
    turn = rng.normal(size=3)
    turn *= rng.uniform(0.0, 1.5) * size / np.linalg.norm(turn)
    place, shift, pivot = rng.normal(size=(3, 3))
    start = Rotation.random(random_state=rng).as_quat()
    m.from_twist(motion, kind, triple(place), triple(start), triple(shift * size), triple(turn), triple(pivot))
    return motion


def fields_of(tree_nodes, own, other, limit=1.0):
    root = tree_nodes[0]
    return receding.approach(own, other, triple(root["centre"]), float(root["radius"]), limit)


# The velocities. --------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(seeds, st.sampled_from(KINDS), st.sampled_from(KINDS), st.floats(0.05, 1.0))
def test_velocities_stay_within_the_slack_of_those_at_half_time(seed, kind, other_kind, limit):
    """Against differences of the body's points as seen from the other, turned back into the body's own frame."""
    rng = np.random.default_rng(seed)
    relative = np.zeros(1, RELATIVE)[0]
    relative["first"] = random_motion(rng, other_kind)
    relative["second"] = random_motion(rng, kind)
    centre, radius = rng.normal(size=3), rng.uniform(0.0, 1.0)
    velocity, angular, slack = receding.approach(
        relative["second"], relative["first"], triple(centre), float(radius), float(limit)
    )
    if m.STILL in (kind, other_kind) and m.TAN_HALF not in (kind, other_kind):
        assert slack < 1e-12
    for u in np.linspace(0.0, limit, 9):
        orientation = Rotation.from_quat(m.relative_pose(relative, u)[1])
        for _ in range(6):
            x = rng.normal(size=3)
            x = centre + radius * rng.uniform() * x / np.linalg.norm(x)
            seen = orientation.apply(x) + m.relative_pose(relative, u)[0]
            truth = orientation.inv().apply(m.relative_velocity(relative, u, triple(seen)))
            assert np.linalg.norm(velocity + np.cross(angular, x) - truth) <= slack + 1e-13


def test_nothing_recedes_where_the_velocity_has_no_bound():
    nodes, triangles = build_tree(*box((1.0, 1.0, 1.0)))
    cones.fill_cones(nodes, triangles)
    rng = np.random.default_rng(1)
    own, other = random_motion(rng, m.ALGEBRAIC), random_motion(rng, m.STILL)
    velocity, angular, slack = fields_of(nodes, own, other)
    recoil = recoil_vectors(nodes, triangles, 6)
    assert own["kind"] == m.ALGEBRAIC and slack == math.inf
    assert not any(receding.recedes(node, velocity, angular, slack) for node in nodes)
    assert not any(
        receding.recedes_by_vectors(node, row, velocity, angular, slack)
        for node, row in zip(nodes, recoil, strict=True)
    )
    assert not any(receding.triangle_recedes(triangle, velocity, angular, slack) for triangle in triangles)


# The tests of one node. -------------------------------------------------------------------------------------------


def random_node(rng):
    node = np.zeros(1, BOX_NODE)[0]
    node["centre"] = rng.normal(size=3)
    node["radius"] = rng.uniform(0.0, 0.5)
    axis = rng.normal(size=3)
    node["cone_axis"] = axis / np.linalg.norm(axis)
    node["cone_angle"] = rng.uniform(0.0, 0.5 * math.pi)
    return node


def test_no_point_of_a_receding_node_moves_forwards_along_any_normal():
    """Random normals of the cone, its rim and the worst one among them, at random points of the ball."""
    rng = np.random.default_rng(2)
    receded = 0
    for _ in range(2000):
        node = random_node(rng)
        velocity, angular = rng.normal(size=3), rng.normal(size=3) * rng.choice([0.0, 0.1, 1.0])
        slack = float(rng.choice([0.0, 0.1]))
        if not receding.recedes(node, triple(velocity), triple(angular), slack):
            continue
        receded += 1
        axis = node["cone_axis"]
        across = np.cross(axis, rng.normal(size=(40, 3)))
        at_centre = velocity + np.cross(angular, node["centre"])
        across[0] = at_centre - (at_centre @ axis) * axis
        across /= np.linalg.norm(across, axis=1)[:, None]
        angles = np.where(rng.uniform(size=40) < 0.5, 1.0, rng.uniform(size=40)) * node["cone_angle"]
        angles[0] = node["cone_angle"]
        normals = np.cos(angles)[:, None] * axis + np.sin(angles)[:, None] * across
        points = rng.normal(size=(40, 3))
        points = node["centre"] + node["radius"] * points / np.linalg.norm(points, axis=1)[:, None]
        assert (normals @ (velocity + np.cross(angular, points)).T + slack < 0.0).all()
    assert receded > 100


def test_without_rotation_the_cone_test_is_exact():
    """Nodes whose worst normal moves forwards by nothing but a millionth of the speed are told apart."""
    rng = np.random.default_rng(3)
    for _ in range(300):
        node = random_node(rng)
        axis, angle = node["cone_axis"], node["cone_angle"]
        side = np.cross(axis, rng.normal(size=3))
        side /= np.linalg.norm(side)
        worst = math.cos(angle) * axis + math.sin(angle) * side
        in_plane = math.sin(angle) * axis - math.cos(angle) * side  # at right angles to the worst normal, backwards
        for share, expected in ((-1e-6, True), (1e-6, False)):
            velocity = -in_plane + share * worst
            assert receding.recedes(node, triple(velocity), ZERO, 0.0) == expected


@pytest.fixture(scope="module", params=["hull", "star", "torus", "channel"])
def tree(request):
    rng = np.random.default_rng(5)
    mesh = {"hull": hull(rng.normal(size=(60, 3))), "star": star(rng, 0.1, 2), "torus": torus(20, 12)}
    nodes, triangles = build_tree(*mesh.get(request.param, channel()))
    cones.fill_cones(nodes, triangles)
    return nodes, triangles


@pytest.mark.parametrize("most", [3, 6, 9])
def test_by_vectors_too_all_triangles_below_recede(tree, most):
    """Each test of a node is only true where the elementary test is so for all of the triangles below."""
    nodes, triangles = tree
    recoil = recoil_vectors(nodes, triangles, most)
    rng = np.random.default_rng(most)
    by_cone = by_vectors = elementary = 0
    for _ in range(12):
        velocity, angular = triple(rng.normal(size=3)), triple(rng.normal(size=3) * rng.choice([0.0, 0.3]))
        alone = np.array([receding.triangle_recedes(t, velocity, angular, 0.0) for t in triangles])
        elementary += alone.sum()
        for i in range(len(nodes)):
            cone = receding.recedes(nodes[i], velocity, angular, 0.0)
            vectors = receding.recedes_by_vectors(nodes[i], recoil[i], velocity, angular, 0.0)
            if nodes["count"][i]:
                by_cone += cone
                by_vectors += vectors
                if cone or vectors:
                    assert alone[nodes["first"][i]]
    assert 0 < by_cone <= elementary
    assert 0 < by_vectors <= elementary


def test_of_single_triangles_the_velocities_of_the_vertices_decide(tree):
    _, triangles = tree
    rng = np.random.default_rng(8)
    for _ in range(10):
        velocity, angular = rng.normal(size=3), rng.normal(size=3)
        for triangle in triangles:
            speeds = (velocity + np.cross(angular, triangle["vertices"])) @ triangle["normal"]
            if np.abs(speeds).min() > 1e-10:
                truth = bool((speeds < 0.0).all())
                assert receding.triangle_recedes(triangle, triple(velocity), triple(angular), 0.0) == truth


def test_open_triangles_never_recede():
    nodes, triangles = build_tree(np.eye(3), np.array([(0, 1, 2)]))
    cones.fill_cones(nodes, triangles)
    backwards = triple(-triangles["normal"][0])
    assert not receding.triangle_recedes(triangles[0], backwards, ZERO, 0.0)
    assert not receding.recedes(nodes[0], backwards, ZERO, 0.0)


def test_an_edge_with_one_side_that_approaches_is_kept():
    """A box that moves along x, a little backwards along y and z: its leading edges belong to receding sides as well.

    Were a leaf culled for its own side alone, the owner's turn could fall on the receding one, and the edges that hit
    first would be lost.
    """
    nodes, triangles = build_tree(*box((1.0, 1.0, 1.0)))
    cones.fill_cones(nodes, triangles)
    velocity = (1.0, -0.1, -0.05)
    culled = {int(node["first"]) for node in nodes if node["count"] and receding.recedes(node, velocity, ZERO, 0.0)}
    lost_by_own_side_alone = 0
    for t in range(len(triangles)):
        for k in range(3):
            if not triangles["owned"][t] >> (3 + k) & 1:
                continue
            sides = np.flatnonzero((triangles["edge_ids"] == triangles["edge_ids"][t, k]).any(axis=1))
            if any(triangles["normal"][s] @ velocity > 0.0 for s in sides):
                assert t not in culled
                lost_by_own_side_alone += triangles["normal"][t] @ velocity < 0.0
    assert lost_by_own_side_alone > 0


# The first time of contact with and without culling. --------------------------------------------------------------


class Solid:
    """Features of one tree, each with the triangle that owns it."""

    def __init__(self, mesh, most=6):
        self.vertices, self.faces = mesh
        self.nodes, self.triangles = build_tree(*mesh)
        cones.fill_cones(self.nodes, self.triangles)
        self.recoil = recoil_vectors(self.nodes, self.triangles, most)
        t, k = np.nonzero(self.triangles["owned"][:, None] >> np.arange(3) & 1)
        self.points, self.point_owner = self.triangles["vertices"][t, k], t
        self.point_ids = self.triangles["vertex_ids"][t, k]
        t, k = np.nonzero(self.triangles["owned"][:, None] >> np.arange(3, 6) & 1)
        self.edges = np.stack((self.triangles["vertices"][t, k], self.triangles["vertices"][t, (k + 1) % 3]), axis=1)
        self.edge_owner, self.edge_ids = t, self.triangles["edge_ids"][t, k]
        self.corners = self.triangles["vertices"]
        self.features = (self.points, self.edges, self.corners)

    def kept(self, own, other, limit, test):
        """Which points, edges and faces are kept: (k,), (l,) and (m,) bool."""
        keep = self.triangles_kept(own, other, limit, test)
        if test != "features":
            return keep[self.point_owner], keep[self.edge_owner], keep
        points, edges = np.zeros(1 + self.triangles["vertex_ids"].max(), bool), np.zeros(3 * len(keep), bool)
        points[self.triangles["vertex_ids"][keep]] = True
        edges[self.triangles["edge_ids"][keep]] = True
        return points[self.point_ids], edges[self.edge_ids], keep

    def triangles_kept(self, own, other, limit, test):
        """Which triangles (m,) do not recede, or are not below a node that does."""
        velocity, angular, slack = fields_of(self.nodes, own, other, limit)
        if test == "features":
            return np.array([not receding.triangle_recedes(t, velocity, angular, slack) for t in self.triangles])
        keep = np.ones(len(self.triangles), bool)
        gone = np.zeros(len(self.nodes), bool)
        for i, node in enumerate(self.nodes):
            if test == "vectors":
                recedes = receding.recedes_by_vectors(node, self.recoil[i], velocity, angular, slack)
            else:
                recedes = receding.recedes(node, velocity, angular, slack)
            gone[i] = recedes or (node["parent"] >= 0 and gone[node["parent"]])
            if node["count"] and gone[i]:
                keep[node["first"]] = False
        return keep


def dot(a, b):
    return np.einsum("...i,...i->...", a, b)


def segments_apart(p, q):
    """Distances (n, k) of segments (n, 2, 3) and (k, 2, 3): the interior pair, or the best of the ends."""
    a, b = p[:, None, 0], q[None, :, 0]
    u, v = p[:, None, 1] - a, q[None, :, 1] - b
    r = a - b
    uu, uv, vv, ur, vr = dot(u, u), dot(u, v), dot(v, v), dot(u, r), dot(v, r)
    det = uu * vv - uv * uv
    with np.errstate(divide="ignore", invalid="ignore"):
        s, t = (uv * vr - vv * ur) / det, (uu * vr - uv * ur) / det
    inside = (det > 1e-12 * uu * vv) & (s >= 0.0) & (s <= 1.0) & (t >= 0.0) & (t <= 1.0)
    s, t = np.where(inside, s, 0.0), np.where(inside, t, 0.0)
    best = np.where(inside, np.linalg.norm(r + s[..., None] * u - t[..., None] * v, axis=-1), np.inf)
    for end in (0.0, 1.0):
        t = np.clip((vr + end * uv) / vv, 0.0, 1.0)
        best = np.minimum(best, np.linalg.norm(r + end * u - t[..., None] * v, axis=-1))
        s = np.clip((end * uv - ur) / uu, 0.0, 1.0)
        best = np.minimum(best, np.linalg.norm(r + s[..., None] * u - end * v, axis=-1))
    return best


def points_and_faces_apart(x, corners):
    """Distances (n, k) of points (n, 3) from the insides of triangles (k, 3, 3); inf where the foot lies outside."""
    a, u, v = corners[None, :, 0], corners[None, :, 1] - corners[None, :, 0], corners[None, :, 2] - corners[None, :, 0]
    r = x[:, None] - a
    uu, uv, vv, ur, vr = dot(u, u), dot(u, v), dot(v, v), dot(u, r), dot(v, r)
    det = uu * vv - uv * uv
    s, t = (vv * ur - uv * vr) / det, (uu * vr - uv * ur) / det
    inside = (s >= 0.0) & (t >= 0.0) & (s + t <= 1.0)
    return np.where(inside, np.abs(dot(r, np.cross(u, v))) / np.sqrt(det), np.inf)


class Pair:
    """Distances of all features, or of those that are kept, over time."""

    def __init__(self, first, second, relative):
        self.first, self.second, self.relative = first, second, relative

    def distance(self, u, keep_first=(slice(None),) * 3, keep_second=(slice(None),) * 3):
        """Least distance over all pairs of features that are both kept."""
        position, orientation = m.relative_pose(self.relative, u)
        rotation = Rotation.from_quat(orientation).as_matrix().T
        x, p, f = (every[keep] for every, keep in zip(self.first.features, keep_first, strict=True))
        y, q, g = (every[keep] @ rotation for every, keep in zip(self.second.features, keep_second, strict=True))
        parts = (
            segments_apart(p, q + position),
            points_and_faces_apart(x, g + position),
            points_and_faces_apart(y + position, f),
        )
        return min((float(part.min()) for part in parts if part.size), default=math.inf)

    def overlap(self, u):
        """Does a face of one solid meet an edge of the other, or is a vertex of one inside the other?"""
        position, orientation = m.relative_pose(self.relative, u)
        rotation = Rotation.from_quat(orientation)
        first, second = self.first, self.second
        edges, corners = (rotation.apply(x.reshape(-1, 3)).reshape(x.shape) + position for x in second.features[1:])
        return (
            pierces(first.edges, corners)
            or pierces(edges, first.corners)
            or any(is_inside(x, first) for x in edges[:, 0])
            or any(is_inside(rotation.inv().apply(x - position), second) for x in first.points)
        )

    def first_time(self, level):
        """When the distance first comes down to a level; 1 or more if it does not.

        A step is as long as none can be at the level earlier, but long enough to get on: half the level is far too
        little to go through a surface, from more than the level before it to more than the level behind it.
        """
        centre = self.second.points.mean(axis=0)
        radius = np.linalg.norm(self.second.points - centre, axis=1).max()
        speed = m.relative_bounds(self.relative, triple(centre), float(radius), 0.0, 1.0)[0]
        free = met = 0.0
        while self.distance(met) > level:
            free = met
            met = free + max(self.distance(free) - level, 0.5 * level) / speed
            if free >= 1.0:
                return free
        while met - free > 1e-12:
            middle = 0.5 * (free + met)
            if self.distance(middle) <= level:
                met = middle
            else:
                free = middle
        return met


def pierces(edges, corners):
    """Does any segment (n, 2, 3) go through any triangle (k, 3, 3)? Signs of volumes, nothing on the boundary."""

    def volume(a, b, c, d):
        return dot(np.cross(b - a, c - a), d - a)

    p, q = edges[:, None, 0], edges[:, None, 1]
    a, b, c = (corners[None, :, k] for k in range(3))
    opposite = volume(a, b, c, p) * volume(a, b, c, q) < 0.0
    around = [volume(p, q, x, y) > 0.0 for x, y in ((a, b), (b, c), (c, a))]
    return bool((opposite & (around[0] == around[1]) & (around[1] == around[2])).any())


def is_inside(x, solid):
    """Winding number of a closed surface about a point, from solid angles (Van Oosterom and Strackee 1983)."""
    a, b, c = np.moveaxis(solid.corners - x, 1, 0)
    la, lb, lc = (np.linalg.norm(v, axis=1) for v in (a, b, c))
    angles = 2.0 * np.arctan2(dot(a, np.cross(b, c)), la * lb * lc + dot(a, b) * lc + dot(b, c) * la + dot(c, a) * lb)
    return abs(angles.sum()) > 2.0 * math.pi


def random_mesh(rng):
    choice = rng.integers(5)
    if choice == 0:
        return hull(rng.normal(size=(rng.integers(5, 24), 3)))
    if choice == 1:
        return star(rng, 0.6, 0)
    if choice == 2:
        return torus(rng.integers(3, 8), rng.integers(3, 5))
    if choice == 3:
        return channel(rng.uniform(0.2, 1.0))
    return box(rng.uniform(0.1, 0.8, 3))


def scene(rng, kinds):
    """Two solids apart at u = 0 that mostly come near each other: (pair, motions in `relative`)."""
    first, second = Solid(random_mesh(rng), int(rng.integers(3, 10))), Solid(random_mesh(rng), int(rng.integers(3, 10)))
    relative = np.zeros(1, RELATIVE)[0]
    pair = Pair(first, second, relative)
    while True:
        place = rng.normal(size=3)
        place *= rng.uniform(0.2, 3.0) / np.linalg.norm(place)
        aim = -place * rng.uniform(0.2, 1.5) + rng.normal(size=3) * 0.4
        for name, kind, at, shift in (("first", kinds[0], np.zeros(3), -0.3 * aim), ("second", kinds[1], place, aim)):
            turn = rng.normal(size=3)
            turn *= rng.choice([0.0, 0.1, 1.2]) * rng.uniform() / np.linalg.norm(turn)
            start = Rotation.random(random_state=rng).as_quat() if name == "second" else IDENTITY
            m.from_twist(relative[name], kind, triple(at), triple(start), triple(shift), triple(turn), triple(at))
        if pair.distance(0.0) > 1e-3 and not pair.overlap(0.0):
            return pair


TESTS = ["cones", "vectors", "features"]
"""Nodes by either test; and each feature by the triangles at it alone, which culls most: the rule of the argument."""


@settings(max_examples=40, deadline=None)
@given(
    seeds,
    st.sampled_from([(m.STILL, m.SCREW), (m.SCREW, m.STILL), (m.SCREW, m.SCREW), (m.STILL, m.TAN_HALF)]),
    st.lists(st.floats(0.01, 0.99), min_size=2, max_size=2),
)
def test_culling_never_hides_the_pair_that_comes_near_first(seed, kinds, shares):
    """When the distance of two solids first comes down to a value, the kept features are the ones at that distance."""
    pair = scene(np.random.default_rng(seed), kinds)
    first, second = pair.relative["first"], pair.relative["second"]
    kept = [(pair.first.kept(first, second, 1.0, test), pair.second.kept(second, first, 1.0, test)) for test in TESTS]
    for share in shares:
        met = pair.first_time(share * pair.distance(0.0))
        if met < 1.0:
            for keep_first, keep_second in kept:
                # No feature moves farther than this in the 1e-12 to which `met` is known.
                assert pair.distance(met, keep_first, keep_second) == pytest.approx(pair.distance(met), abs=1e-10)


@pytest.mark.parametrize(("test", "least"), [("cones", 0.05), ("vectors", 0.05), ("features", 0.1)])
def test_culling_leaves_out_some_of_it_in_these_scenes(test, least):
    """The last test is not about nothing. (Faces are coarse here: of fine meshes nearly half goes, see below.)"""
    kept = total = 0
    for seed in range(30):
        pair = scene(np.random.default_rng(seed), (m.STILL, m.SCREW))
        first, second = pair.relative["first"], pair.relative["second"]
        for solid, own, other in ((pair.first, first, second), (pair.second, second, first)):
            for keep in solid.kept(own, other, 1.0, test):
                kept += keep.sum()
                total += len(keep)
    assert kept < (1.0 - least) * total


@pytest.mark.parametrize("test", TESTS)
def test_nearly_half_of_a_fine_sphere_recedes(test):
    """A ball of 1280 faces that flies straight ahead: half of it looks back, but for the faces along the rim."""
    solid = Solid(star(np.random.default_rng(0), 0.0, 3))
    relative = np.zeros(1, RELATIVE)[0]
    m.from_twist(relative["first"], m.SCREW, ZERO, IDENTITY, (0.1, 0.2, 0.3), ZERO, ZERO)
    m.still(relative["second"], ZERO, IDENTITY)
    kept = solid.triangles_kept(relative["first"], relative["second"], 1.0, test).mean()
    assert 0.5 < kept < 0.65
