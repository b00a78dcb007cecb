"""Whatever is wrong with a mesh, no tool passes the surface that is there, as a probe or as a mesh itself."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from rtcore.geometry.tree import build_tree
from rtcore.model import ModelBuilder
from rtcore.state import make_input, make_state
from rtcore.step import step
from rtcore.tables import BUDGET, STEP_REPORT
from tools.exact.intersect import judge, posed

EPS = (5e-5, 1e-4, 2.5e-4)
STEP = 0.002
"""m per tick of a millisecond: 2 m/s."""
BALL = 0.003


def box(x, y, z, inward=False):
    corners = np.array([[i, j, k] for i in (-0.5, 0.5) for j in (-0.5, 0.5) for k in (-0.5, 0.5)]) * (x, y, z)
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    faces = np.array([t for a, b, c, d in quads for t in ((a, b, c), (a, c, d))])
    return corners, faces[:, ::-1] if inward else faces


def opened():
    """A flat box without its bottom: from below one sees the inside of its top."""
    corners, faces = box(0.06, 0.06, 0.01)
    return corners, faces[~(corners[faces][:, :, 2] < 0).all(axis=1)]


def non_manifold():
    """A sheet with two fins along one of its edges, which has four faces then."""
    corners = np.array(
        [[-0.03, -0.03, 0], [0.03, -0.03, 0], [0.03, 0.03, 0], [-0.03, 0.03, 0], [0, 0, 0.01], [0, 0, -0.01]], float
    )
    return corners, np.array([[0, 1, 2], [0, 2, 3], [0, 2, 4], [2, 0, 5]])


def inconsistent():
    """A closed box, every other face turned round."""
    corners, faces = box(0.06, 0.06, 0.01)
    faces = faces.copy()
    faces[::2] = faces[::2, ::-1]
    return corners, faces


def self_crossing():
    """Two flat boxes through each other, as one mesh."""
    corners, faces = box(0.06, 0.03, 0.01)
    turned = Rotation.from_euler("zx", (70, 12), degrees=True).apply(corners)
    return np.concatenate((corners, turned)), np.concatenate((faces, faces + 8))


def duplicated():
    """A box whose faces have corners of their own, each face twice, once each way round."""
    corners, faces = box(0.06, 0.06, 0.01)
    soup = corners[np.concatenate((faces, faces[:, ::-1]))].reshape(-1, 3)
    return soup, np.arange(len(soup)).reshape(-1, 3)


def needles():
    """A square plate cut into 60 strips, two needles each, and some without area."""
    y = np.linspace(-0.03, 0.03, 61)
    left, right = np.c_[0 * y - 0.03, y, 0 * y], np.c_[0 * y + 0.03, y, 0 * y]
    n = len(y)
    i = np.arange(n - 1)
    faces = np.concatenate((np.c_[i, n + i, i + 1], np.c_[n + i, n + i + 1, i + 1], np.c_[i[::9], n + i[::9], i[::9]]))
    return np.concatenate((left, right)), faces


KINDS = {
    "open": opened,
    "non-manifold": non_manifold,
    "inverted": lambda: box(0.06, 0.06, 0.01, inward=True),
    "inconsistent": inconsistent,
    "self-crossing": self_crossing,
    "duplicate vertices": duplicated,
    "needles": needles,
}


def drive(body, tool, start, seed=0, ticks=45):
    """Push a tool through a body at 2 m/s from above and back from below, turning; the judged gap of every tick."""
    builder = ModelBuilder()
    builder.add_body(builder.add_mesh(*build_tree(*body)))
    tool_mesh = -1 if tool is None else builder.add_mesh(*build_tree(*tool))
    model = builder.build(BALL if tool is None else 0.0, (0.0, 0.0, 0.0), *EPS, tool_mesh_id=tool_mesh)
    state = make_state(model, start)
    wanted, budget, report = make_input(), np.zeros(1, BUDGET), np.zeros(1, STEP_REPORT)
    budget[0] = (20000, 8, 50, 0)
    wanted["goal_orientation"][0, 3] = 1.0
    goal = np.array(start, float)
    random = np.random.default_rng(seed)
    turn = Rotation.identity()
    gaps, sides = [], []
    surface = body[0][body[1]]
    for _ in range(ticks):
        goal[2] -= np.sign(start[2]) * STEP
        turn = Rotation.from_rotvec(random.normal(scale=0.05, size=3)) * turn
        wanted["goal_position"][0] = goal
        wanted["goal_orientation"][0] = turn.as_quat()
        step(model, state, wanted[0], budget[0], report[0])
        proxy = state.proxy[0]
        if tool is None:
            point = np.tile(proxy["position"], (1, 3, 1))
            gaps.append(judge(surface, point).upper - BALL)
        else:
            gaps.append(judge(surface, posed(tool[0][tool[1]], proxy["position"], proxy["orientation"])).upper)
        sides.append(float(proxy["position"][2]))
    return np.array(gaps), np.array(sides)


@pytest.mark.parametrize("side", [1.0, -1.0], ids=["from above", "from below"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_mesh_as_tool_does_not_pass_it(kind, side):
    tool = box(0.012, 0.01, 0.008)
    gaps, heights = drive(KINDS[kind](), tool, (0.004, 0.003, 0.04 * side))
    assert gaps.min() >= EPS[0] * (1 - 1e-6)
    # It was held there: the goal is 5 cm beyond the other side by now.
    assert gaps.min() < EPS[2] and (heights * side > -0.005).all()


@pytest.mark.parametrize("side", [1.0, -1.0], ids=["from above", "from below"])
@pytest.mark.parametrize("kind", KINDS)
def test_as_a_tool_it_does_not_pass_a_plate(kind, side):
    gaps, heights = drive(box(0.2, 0.2, 0.001), KINDS[kind](), (0.004, 0.003, 0.06 * side), seed=1)
    assert gaps.min() >= EPS[0] * (1 - 1e-6)
    assert gaps.min() < EPS[2] and (heights * side > 0.0).all()


@pytest.mark.parametrize("side", [1.0, -1.0], ids=["from above", "from below"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_sphere_tip_does_not_pass_it(kind, side):
    """The tip slides, so it may come round an edge; never through."""
    gaps, _ = drive(KINDS[kind](), None, (0.004, 0.003, 0.04 * side), ticks=25)
    assert gaps.min() >= EPS[0] * (1 - 1e-6)
    assert gaps.min() < EPS[2]
