"""The tip among real meshes: never through them, few passes, and the work per step stays small."""

from pathlib import Path

import numpy as np
import probe_truth as truth
import pybullet_data
import pytest
import trimesh
from probe_scenes import Probe

from rtcore.tables import DEGRADED_PASSES


def load(name: str, subdivisions: int = 0, size: float = 0.2) -> tuple[np.ndarray, np.ndarray]:
    """A mesh shipped with pybullet, centred and scaled to `size` m, each triangle split into four several times."""
    mesh = trimesh.load(Path(pybullet_data.getDataPath()) / name, force="mesh", process=False)
    vertices, faces = np.array(mesh.vertices), np.array(mesh.faces)
    for _ in range(subdivisions):
        vertices, faces = trimesh.remesh.subdivide(vertices, faces)
    vertices = vertices - vertices.mean(axis=0)
    return vertices * (size / np.ptp(vertices, axis=0).max()), faces


class Surroundings:
    """Triangles whose boxes come within `reach` of the box of a path: all that could matter to it."""

    def __init__(self, corners: np.ndarray, reach: float):
        self.corners = corners
        self.low, self.high = corners.min(axis=1).T - reach, corners.max(axis=1).T + reach

    def of(self, path: np.ndarray) -> np.ndarray:
        low, high = path.min(axis=0), path.max(axis=0)
        rows = np.flatnonzero((self.low[0] <= high[0]) & (self.high[0] >= low[0]))
        for k in (1, 2):
            rows = rows[(self.low[k, rows] <= high[k]) & (self.high[k, rows] >= low[k])]
        return self.corners[rows]


@pytest.mark.parametrize("radius", [0.005, 0.0])
@pytest.mark.parametrize(
    ("name", "subdivisions"), [("duck.obj", 0), ("duck.obj", 2), ("bunny.obj", 0), ("teddy2_VHACD_CHs.obj", 2)]
)
def test_pressing_and_dragging_never_goes_through(name, subdivisions, radius):
    vertices, faces = load(name, subdivisions)
    diagonal = np.linalg.norm(np.ptp(vertices, axis=0))
    eps = (8.8e-5 * diagonal, 2e-4 * diagonal, 4.6e-4 * diagonal)
    probe = Probe([(vertices, faces)], (0, 0, 0.25), radius=radius, eps=eps, friction=(0.3, 0.2))
    surroundings = Surroundings(probe.corners, probe.radius + probe.alert)
    rng = np.random.default_rng(1)
    centres = vertices[faces].mean(axis=1)
    goal, target = np.array([0, 0, 0.25]), 0.97 * centres[0]
    speed, pressed, short, units = 5e-4, 0, 0, []
    for k in range(1500):
        if np.linalg.norm(target - goal) < speed:
            target = (0.8 if k % 2 else 0.97) * centres[rng.integers(len(centres))]
        goal = goal + speed * (target - goal) / np.linalg.norm(target - goal)
        if k % 400 == 399:  # a jump through the whole body
            goal = -goal
        probe.go(*goal)
        around = surroundings.of(probe.path)
        if len(around):
            assert truth.path_distance(probe.path, around) >= probe.least
        pressed += probe.report["contact_count"] > 0
        short += probe.report["degraded"] != 0
        assert probe.report["degraded"] & ~DEGRADED_PASSES == 0
        units.append(probe.report["units_used"])
    assert pressed > 500
    assert short <= 0.06 * 1500  # passes run out only where the tip rolls far around an edge in one step
    assert np.median(units) < 400 and max(units) <= 20000


@pytest.mark.parametrize("friction", [(0.4, 0.3), (0.0, 0.0)], ids=["rough", "smooth"])
@pytest.mark.parametrize("radius", [0.005, 0.0])
@pytest.mark.parametrize("name", ["duck.obj", "bunny.obj"])
def test_a_held_goal_brings_the_tip_to_rest_to_the_bit(name, radius, friction):
    vertices, faces = load(name)
    diagonal = np.linalg.norm(np.ptp(vertices, axis=0))
    eps = (8.8e-5 * diagonal, 2e-4 * diagonal, 4.6e-4 * diagonal)
    probe = Probe([(vertices, faces)], (0, 0, 0.3), radius=radius, eps=eps, friction=friction)
    rng = np.random.default_rng(5)
    centres = vertices[faces].mean(axis=1)
    for _ in range(150):
        centre = centres[rng.integers(len(centres))]
        probe.state.proxy["position"][0] = 0.3 * centre / np.linalg.norm(centre)
        probe.state.proxy["sliding"][0] = 0
        goal = rng.uniform(0.85, 0.99) * centre
        for _ in range(10):
            rest = probe.go(*goal)
        for _ in range(5):
            np.testing.assert_array_equal(probe.go(*goal), rest)
            assert probe.report["degraded"] == 0 and probe.report["passes_used"] == 0
