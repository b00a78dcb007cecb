"""Queries against the certified brackets of the independent judge: never late, early by the tolerance at most."""

import math

import mesh_pairs
import numpy as np
import pytest
import trimesh

from rtcore import motion
from rtcore.collision.first_contact import first_contact
from rtcore.collision.pair_state import make_query_work
from rtcore.tables import RELATIVE
from tools.exact import rigid
from tools.exact.intersect import judge, posed

WORK = make_query_work()
ROUNDING = 1e-12
"""m: the two sides round the same poses differently."""

Mesh = tuple[np.ndarray, np.ndarray]


def tetrahedron(generator: np.random.Generator) -> Mesh:
    return generator.normal(size=(4, 3)) * 0.5, np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]])


def needle(generator: np.random.Generator) -> Mesh:
    """A double tetrahedron, a hundred to ten million times longer than thick."""
    points, faces = tetrahedron(generator)
    return points * [1.0, *(10.0 ** -generator.uniform(2, 7, 2))], faces


def cube(generator: np.random.Generator) -> Mesh:
    return mesh_pairs.box(generator.choice([0.5, 1.0], 3))


def flake(generator: np.random.Generator) -> Mesh:
    """One triangle: coplanar or edge-on to another flake in many scenes."""
    return np.append(generator.uniform(-0.7, 0.7, (3, 2)), np.zeros((3, 1)), axis=1), np.array([[0, 1, 2]])


def ring(generator: np.random.Generator) -> Mesh:
    mesh = trimesh.creation.torus(0.5, 0.12, major_sections=6, minor_sections=3)
    return np.array(mesh.vertices), np.array(mesh.faces)


def triangles(mesh: Mesh) -> np.ndarray:
    return mesh[0][mesh[1]]


def screw(record: np.void) -> rigid.Screw:
    """The motion of a MOTION record as the judge takes it: from its definition, not its code."""
    if record["kind"] == motion.STILL:
        return rigid.STILL
    assert record["kind"] == motion.SCREW
    return rigid.Screw(record["pivot"].copy(), record["shift"].copy(), record["axis"].copy(), float(record["angle"]))


def relative_of(poses, shifts, turns) -> np.void:
    """RELATIVE record of two screws from poses (position, orientation) with the pivots at the body frames' origins."""
    relative = np.zeros(1, RELATIVE)[0]
    for name, (position, orientation), shift, turn in zip(("first", "second"), poses, shifts, turns, strict=True):
        position, orientation = tuple(map(float, position)), tuple(map(float, orientation))
        motion.from_twist(
            relative[name],
            motion.SCREW,
            position,
            orientation,
            tuple(map(float, shift)),
            tuple(map(float, turn)),
            position,
        )
    return relative


def check(first: Mesh, second: Mesh, relative: np.void, separation: float) -> str:
    """Compare one query with the judge and tell what was there: 'contact', 'free', or 'near' (it cannot be told)."""
    placed = [
        posed(triangles(mesh), relative[name]["position"], relative[name]["orientation"])
        for name, mesh in (("first", first), ("second", second))
    ]
    start = judge(*placed)
    if start.lower <= separation + 1e-9:
        return "near"
    screws = [screw(relative[name]) for name in ("first", "second")]
    query = mesh_pairs.query(separation=separation)
    answer = mesh_pairs.hit()
    pair = mesh_pairs.Pair(first, second)
    first_contact(
        pair.nodes,
        pair.triangles,
        pair.first_root,
        pair.second_root,
        relative,
        query,
        WORK[0],
        mesh_pairs.counters(),
        answer,
    )
    assert not answer["truncated"]

    def bracket(distance: float) -> rigid.Bracket:
        return rigid.first_contact(placed[0], screws[0], placed[1], screws[1], distance)

    latest = bracket(separation - ROUNDING)
    assert answer["time"] <= latest.high
    assert answer["found"] or latest.high == math.inf
    if answer["found"]:
        speed = sum(one.rates(where)[0].max() for one, where in zip(screws, placed, strict=True))
        early = query["position_tolerance"] + speed * query["time_tolerance"] + ROUNDING
        assert answer["time"] >= bracket(separation + early).low - ROUNDING
        return "contact" if latest.high < math.inf else "near"
    assert answer["time"] == 1.0
    return "free"


def random_scene(generator: np.random.Generator, turn: float) -> np.void:
    """Both move; the second goes through where the first is, turning by `turn` at most."""
    way = generator.normal(size=3)
    way /= np.linalg.norm(way)
    poses = [(generator.uniform(-1, 1, 3), mesh_pairs.unit(generator)) for _ in range(2)]
    poses[1] = (poses[0][0] + 1.6 * way, poses[1][1])
    shifts = [0.5 * generator.normal(size=3), -2.5 * way + 0.5 * generator.normal(size=3)]
    turns = [generator.uniform(-1, 1, 3) * turn / math.sqrt(3) for _ in range(2)]
    return relative_of(poses, shifts, turns)


def tally(results: list[str]) -> dict[str, int]:
    return {word: results.count(word) for word in ("contact", "free", "near")}


@pytest.mark.parametrize("turn", [1e-9, 0.5, math.pi])
@pytest.mark.parametrize("makers", [(tetrahedron, tetrahedron), (needle, cube), (needle, needle), (flake, tetrahedron)])
def test_random_scenes(makers, turn):
    generator = np.random.default_rng(len(makers[0].__name__) + int(turn * 100))
    results = [
        check(
            makers[0](generator),
            makers[1](generator),
            random_scene(generator, turn),
            generator.choice([1e-6, 1e-3, 0.05]),
        )
        for _ in range(10)
    ]
    counts = tally(results)
    assert counts["contact"] + counts["free"] >= 5


def test_faces_edges_and_corners_that_meet_squarely():
    """Cubes aligned or turned by a quarter or an eighth: faces in one plane, edges edge-on, parallel, crossed."""
    generator = np.random.default_rng(21)
    upright = (0.0, 0.0, 0.0, 1.0)
    half = math.sqrt(0.5)
    turned = [upright, (half, 0, 0, half), (0, 0, math.sin(math.pi / 8), math.cos(math.pi / 8))]
    results = []
    for _ in range(30):
        offset = generator.choice([0.0, 0.25, 0.5, 1.0, 1.01], 3)
        offset[2] = 1.5
        shift = np.array([*generator.choice([0.0, 0.0, 0.5], 2), -1.0])
        turn = generator.choice([0.0, math.pi / 2], 3) * [0, 0, 1]
        relative = relative_of(
            [(np.zeros(3), upright), (offset, turned[generator.integers(3)])], [np.zeros(3), shift], [np.zeros(3), turn]
        )
        results.append(check(mesh_pairs.box(), cube(generator), relative, 0.01))
    counts = tally(results)
    assert counts["contact"] >= 10
    assert counts["free"] >= 3


def test_a_cube_slides_a_hair_above_another():
    """Parallel faces a tenth of the separation too far apart, for the whole motion: never a contact."""
    upright = (0.0, 0.0, 0.0, 1.0)
    for gap, turn in ((1.5e-3, 0.0), (1.5e-3, math.pi), (1.1e-3, 0.8), (1.05e-3, 0.4)):
        relative = relative_of(
            [(np.zeros(3), upright), (np.array([0.2, 0.1, 1.0 + gap]), upright)],
            [np.zeros(3), np.array([0.3, -0.2, 0.0])],
            [np.zeros(3), np.array([0.0, 0.0, turn])],
        )
        assert check(mesh_pairs.box(), mesh_pairs.box(), relative, 1e-3) == "free"


def test_flakes_in_one_plane():
    """Triangles that move in one common plane meet edge against corner, with every normal the same."""
    generator = np.random.default_rng(22)
    upright = (0.0, 0.0, 0.0, 1.0)
    results = []
    for _ in range(16):
        relative = relative_of(
            [(np.zeros(3), upright), (np.array([1.6, *generator.uniform(-1, 1, 1), 0.0]), upright)],
            [np.zeros(3), np.array([-1.5, *generator.uniform(-0.5, 0.5, 1), 0.0])],
            [np.array([0.0, 0.0, generator.uniform(-1, 1)]), np.array([0.0, 0.0, generator.uniform(-3, 3)])],
        )
        results.append(check(flake(generator), flake(generator), relative, 1e-3))
    assert tally(results)["contact"] >= 5


@pytest.mark.slow
def test_interlocked_rings():
    """Two links of a chain, pulled and turned inside each other: contact whatever they do, unless they do little."""
    generator = np.random.default_rng(23)
    upright = (0.0, 0.0, 0.0, 1.0)
    half = math.sqrt(0.5)
    results = []
    for scale in (0.02, 0.5, 0.5, 1.0, 1.0):
        relative = relative_of(
            [(np.zeros(3), upright), (np.array([0.5, 0.0, 0.0]), (half, 0.0, 0.0, half))],
            [scale * generator.normal(size=3) for _ in range(2)],
            [scale * generator.normal(size=3) for _ in range(2)],
        )
        results.append(check(ring(generator), ring(generator), relative, 1e-3))
    assert results[0] == "free"
    assert results.count("contact") >= 2
