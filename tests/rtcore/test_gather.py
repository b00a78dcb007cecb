"""The contact set is the set of local minima of the distance to the surface: no ghosts, no repeats, nothing lost."""

import numpy as np
import probe_truth as truth
import pytest
from probe_scenes import EPS, Probe, box, grid, sheets

from rtcore.collision.gather import gather
from rtcore.tables import DEGRADED_CONTACTS, MAX_CONTACTS


def contacts(probe, position, units=10**6):
    probe.report["degraded"] = 0
    left = gather(probe.model, probe.state, *position, units, probe.report)
    assert 0 <= left <= units
    return probe.contacts


def test_a_flat_region_is_one_contact_wherever_the_tip_is():
    # 2 mm cells under a 5 mm tip: some 20 triangles are within reach, all but one only by their inner edges.
    probe = Probe([grid(50, 0.1)], (0, 0, 1))
    rng = np.random.default_rng(1)
    places = [*rng.uniform(-0.04, 0.04, (200, 2)), (0.0, 0.0), (0.001, 0.0), (0.001, 0.001), (0.002, 0.0005)]
    for x, y in places:  # the last ones are above vertices, edges and diagonals
        found = contacts(probe, (x, y, 0.00505))
        assert len(found) == 1
        np.testing.assert_allclose(found["normal"][0], [0, 0, 1], atol=1e-12)
        np.testing.assert_allclose(found["point"][0], [x, y, 0], atol=1e-15)
        assert abs(found["gap"][0] - 5e-5) <= 1e-15
        assert probe.report["degraded"] == 0


def test_a_flat_floor_of_two_bodies_side_by_side_is_one_contact():
    vertices, faces = box(0.02, 0.02, 0.02)
    probe = Probe([(vertices, faces)] * 2, (0, 0, 1), poses=[((s, 0, -0.01), (0, 0, 0, 1)) for s in (-0.01, 0.01)])
    for x in np.linspace(-0.004, 0.004, 41):
        found = contacts(probe, (x, 0.0003, 0.00505))
        assert len(found) == 1 and found["body_id"][0] == (x > 0)  # the tie at the seam goes to the first body
        np.testing.assert_allclose(found["normal"][0], [0, 0, 1], atol=1e-12)


def test_a_small_crack_in_a_mesh_is_no_edge():
    crack = 0.05 * EPS[0]
    mesh = sheets(
        [(-0.02, -0.02, 0), (0, -0.02, 0), (0, 0.02, 0), (-0.02, 0.02, 0)],
        [(crack, -0.02, 0), (0.02, -0.02, 0), (0.02, 0.02, 0), (crack, 0.02, 0)],
    )
    probe = Probe([mesh], (0, 0, 1))
    for x in np.linspace(-5e-4, 5e-4, 21):
        assert len(contacts(probe, (x, 0, 0.00505))) == 1


def test_walls_of_a_corner_are_separate_contacts_and_ties_go_by_body_and_face():
    walls = [
        sheets([(0, 0, 0), (0.1, 0, 0), (0.1, 0.1, 0), (0, 0.1, 0)]),
        sheets([(0, 0, 0), (0, 0, 0.1), (0.1, 0, 0.1), (0.1, 0, 0)]),
        sheets([(0, 0, 0), (0, 0.1, 0), (0, 0.1, 0.1), (0, 0, 0.1)]),
    ]
    probe = Probe(walls[::-1], (1, 1, 1))
    d = 0.0050625  # equal to the bit on all three
    found = contacts(probe, (d, d, d))
    np.testing.assert_array_equal(found["body_id"], [0, 1, 2])
    np.testing.assert_allclose(found["normal"], np.eye(3), atol=1e-15)
    # above the diagonal of each quad: both triangles are as near, the one with the lower face_id is named
    np.testing.assert_array_equal(found["face_id"], [0, 0, 0])


def test_a_convex_edge_and_a_vertex_are_one_contact_each():
    probe = Probe([box(0.02, 0.02, 0.02)], (0, 0, 1))
    e = 0.01 + 0.0050 / np.sqrt(2)
    found = contacts(probe, (e, e, 0.001))
    assert len(found) == 1 and 3 <= found["feature"][0] < 6
    np.testing.assert_allclose(found["normal"][0], [np.sqrt(0.5), np.sqrt(0.5), 0], atol=1e-12)
    v = 0.01 + 0.0050 / np.sqrt(3)
    found = contacts(probe, (v, v, v))
    assert len(found) == 1 and found["feature"][0] < 3
    np.testing.assert_allclose(found["normal"][0], np.full(3, 3**-0.5), atol=1e-12)


def test_coincident_triangles_and_layers_behind_are_one_contact():
    layers = [grid(4, 0.1), grid(4, 0.1), grid(4, 0.1, lambda x, y: 0 * x - 3e-5)]
    probe = Probe(layers, (0, 0, 1))
    found = contacts(probe, (0.003, 0.001, 0.00502))
    assert len(found) == 1 and found["body_id"][0] == 0


def test_contacts_are_the_local_minima_of_the_distance():
    # Truth: a triangle counts when nothing that touches its nearest point (found by sampling) is nearer than it.
    mesh = grid(24, 0.06, lambda x, y: 0.0015 * np.sin(600 * x) * np.cos(500 * y))
    probe = Probe([mesh], (0, 0, 1), radius=0.006, eps=(2e-5, 5e-5, 1e-3))
    rng = np.random.default_rng(3)
    counts = []
    for x, y in rng.uniform(-0.015, 0.015, (15, 2)):
        centre = np.array([x, y, 0.012])
        for _ in range(30):  # down to about 0.1 mm above the surface
            centre[2] -= max(0.0, truth.point_triangles(centre, probe.corners).min() - 0.0061)
        distance = truth.point_triangles(centre, probe.corners)
        found = contacts(probe, centre)
        counts.append(len(found))
        near = probe.corners[distance <= 0.006 + 1e-3]
        distance = distance[distance <= 0.006 + 1e-3]
        minima = [
            gap
            for q, gap in zip(_nearest_by_sampling(centre, near), distance, strict=True)
            if gap <= distance[truth.point_triangles(q, near) <= 2e-6].min() + 1e-9
        ]
        expected = np.unique(np.round(np.array(minima) - 0.006, 9))
        np.testing.assert_allclose(np.unique(np.round(found["gap"], 9)), expected, atol=2e-9)
    assert max(counts) >= 3


def _nearest_by_sampling(p, corners):
    """Nearest point of each triangle (m, 3, 3) by a barycentric grid, refined 14 times around its best sample."""
    a, u, v = corners[:, None, 0], corners[:, None, 1] - corners[:, None, 0], corners[:, None, 2] - corners[:, None, 0]
    rows = np.arange(len(corners))
    best, width = np.full((len(corners), 2), 0.5), 0.5
    for _ in range(14):
        line = np.linspace(-width, width, 9)
        s, t = (w.reshape(1, -1) for w in np.meshgrid(line, line))
        s, t = np.clip(best[:, :1] + s, 0, 1), np.clip(best[:, 1:] + t, 0, 1)
        over = np.maximum(s + t, 1.0)
        s, t = s / over, t / over
        points = a + s[..., None] * u + t[..., None] * v
        k = np.argmin(np.linalg.norm(points - p, axis=2), axis=1)
        best = np.c_[s[rows, k], t[rows, k]]
        width /= 2
    return points[rows, k]


def test_more_contacts_than_the_table_holds_keeps_the_nearest_and_says_so():
    # The inside of a faceted cone that the tip touches all around, at slightly different distances.
    quads, n = [], 20
    for k in range(n):
        a, b = 2 * np.pi * (k - 0.4) / n, 2 * np.pi * (k + 0.4) / n
        r = 0.00505 + 1e-6 * k
        quads.append([(r * np.cos(t), r * np.sin(t), z) for t, z in ((a, -0.01), (b, -0.01), (b, 0.01), (a, 0.01))])
    probe = Probe([sheets(*quads)], (0, 0, 1))
    found = contacts(probe, (0, 0, 0))
    assert len(found) == MAX_CONTACTS and probe.report["degraded"] == DEGRADED_CONTACTS
    gaps = np.sort(truth.point_triangles(np.zeros(3), probe.corners).reshape(-1, 2).min(axis=1)) - 0.005
    np.testing.assert_allclose(found["gap"], gaps[:MAX_CONTACTS], atol=1e-15)


@pytest.mark.parametrize("units", [0, 3, 10, 30])
def test_gathering_that_runs_out_of_units_says_so(units):
    probe = Probe([grid(100, 0.1)], (0, 0, 1))
    contacts(probe, (0.0003, 0.0004, 0.00505), units)
    assert probe.report["degraded"] == DEGRADED_CONTACTS
