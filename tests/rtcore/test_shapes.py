"""Makers of shapes: the records say what was asked for, trees over a grid and a patch hold what is below them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shape_truth import bezier, distance, points_on, turned

from rtcore.geometry import shapes
from rtcore.geometry.shapes import PATCH_BOX, PATCH_LEVEL, block

TURN = (0.1, -0.2, 0.3, 0.9)


def net(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    grid = np.stack(np.meshgrid(np.linspace(0, 1, 4), np.linspace(0, 1, 4), [0.0], indexing="ij"), axis=-1)[:, :, 0]
    return grid + rng.normal(0, 0.3, (4, 4, 3))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: shapes.sphere(0.0), "a sphere needs a radius"),
        (lambda: shapes.sphere(float("nan")), "a sphere needs a radius"),
        (lambda: shapes.sphere(1.0, (0, 0, float("inf"))), "position of a shape"),
        (lambda: shapes.capsule(0.1, -1.0), "a capsule needs a half_length"),
        (lambda: shapes.capsule(1e-9, 1.0), "radius of at least 1e-06"),
        (lambda: shapes.box((1.0, 0.0, 1.0)), "a box needs a half_length_y"),
        (lambda: shapes.box((1.0, 1.0)), "three finite numbers"),
        (lambda: shapes.box((1.0, 1.0, 1.0), (0, 0, 0), (0, 0, 0, 0)), "quaternion"),
        (lambda: shapes.cylinder(float("inf"), 1.0), "a cylinder needs a radius"),
        (lambda: shapes.cone(1.0, 0.0), "a cone needs a height"),
        (lambda: shapes.plane((0, 0, 0), 1.0), "must have a direction"),
        (lambda: shapes.plane((0, 0, 1), float("nan")), "offset of a plane"),
        (lambda: shapes.torus(0.1, 0.1), "tube_radius below its ring_radius"),
        (lambda: shapes.height_field(np.zeros((1, 5)), (1, 1)), "2 .. 1025 heights a side"),
        (lambda: shapes.height_field(np.full((3, 3), np.nan), (1, 1)), "must be finite"),
        (lambda: shapes.height_field(np.zeros((3, 3)), (1, 0)), "a height field needs a spacing_y"),
        (lambda: shapes.height_field(np.zeros((3, 3)), (1, 1, 1)), "two numbers"),
        (lambda: shapes.gyroid((1, 1, 1), 0.5, 1.5), "between 0 and 1.5"),
        (lambda: shapes.gyroid((1, 1, 1), 0.01, 0.5), "100 periods"),
        (lambda: shapes.patch(np.zeros((4, 4, 2))), r"shape \(4, 4, 3\)"),
        (lambda: shapes.patch(np.zeros((4, 4, 3))), "span a surface"),
        (lambda: shapes.patch(np.arange(16.0)[:, None].repeat(3, 1).reshape(4, 4, 3)), "span a surface"),
    ],
)
def test_degenerate_shapes_are_refused_with_one_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence) as refusal:
        make()
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    "made",
    [
        shapes.sphere(0.2, (1, 2, 3)),
        shapes.capsule(0.1, 0.3, (1, 2, 3), TURN),
        shapes.box((0.1, 0.2, 0.3), (1, 2, 3), TURN),
        shapes.cylinder(0.2, 0.3, (1, 2, 3), TURN),
        shapes.cone(0.2, 0.5, (1, 2, 3), TURN),
        shapes.torus(0.3, 0.1, (1, 2, 3), TURN),
        shapes.height_field(np.random.default_rng(0).normal(size=(4, 6)), (0.3, 0.2), (1, 2, 3), TURN),
        shapes.gyroid((0.1, 0.2, 0.3), 0.4, 0.3, (1, 2, 3), TURN),
    ],
    ids=lambda made: str(made[0]["kind"][0]),
)
def test_no_point_is_beyond_the_reach_and_some_are_near_it(made):
    far = np.linalg.norm(points_on(made, np.random.default_rng(1)) - made[0]["position"], axis=1).max()
    assert 0.7 * made[0]["reach"][0] < far <= made[0]["reach"][0] * (1 + 1e-15)


@given(st.tuples(*[st.floats(-1, 1)] * 3).filter(lambda n: np.linalg.norm(n) > 1e-3), st.floats(-5, 5))
def test_a_plane_is_where_its_normal_and_offset_say(normal, offset):
    record, _ = shapes.plane(normal, offset)
    unit = np.array(normal) / np.linalg.norm(normal)
    assert np.allclose(turned(record["orientation"][0])[:, 2], unit, rtol=0, atol=1e-7)
    points = np.random.default_rng(0).normal(size=(20, 3))
    assert np.allclose(distance(record, points), np.maximum(points @ unit - offset, 0), rtol=0, atol=1e-6)


def test_collecting_keeps_order_and_every_shape_finds_its_values():
    heights = np.arange(12.0).reshape(3, 4)
    table, values = shapes.collect([shapes.sphere(1.0), shapes.height_field(heights, (1, 1)), shapes.patch(net(1))])
    assert list(table["kind"]) == [shapes.SHAPE_SPHERE, shapes.SHAPE_HEIGHT_FIELD, shapes.SHAPE_PATCH]
    first = table["value_first"][1]
    assert (values[first : first + 12] == heights.ravel()).all()
    assert table["value_first"][2] + table["value_count"][2] == len(values)
    assert len(shapes.collect([shapes.sphere(1.0)])[1]) == 1


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 40), st.integers(2, 40), st.integers(0, 1000))
def test_the_blocks_of_a_height_field_split_it_into_cells_and_know_their_heights(rows, columns, seed):
    z = np.random.default_rng(seed).normal(size=(rows, columns))
    _, values = shapes.height_field(z, (0.1, 0.2))
    limits = values[rows * columns :].reshape(-1, 2)
    covered = np.zeros((rows - 1, columns - 1), dtype=int)
    paths = [1]
    while paths:
        path = paths.pop()
        i0, i1, j0, j1, left = block(rows - 1, columns - 1, path)
        assert left == 1 and path < len(limits)
        part = z[i0 : i1 + 1, j0 : j1 + 1]
        assert tuple(limits[path]) == (part.min(), part.max())
        if (i1 - i0, j1 - j0) == (1, 1):
            covered[i0, j0] += 1
            assert [block(rows - 1, columns - 1, 2 * path + k)[4] for k in (0, 1)] == [2, 3]
        else:
            paths += [2 * path, 2 * path + 1]
    assert (covered == 1).all()


def test_the_boxes_of_a_patch_hold_their_part_of_it_and_shrink():
    for seed in range(5):
        points = net(seed)
        _, values = shapes.patch(points)
        boxes = values[: PATCH_BOX * (2 << PATCH_LEVEL)].reshape(-1, PATCH_BOX)
        rng = np.random.default_rng(seed)
        for path in (1, 2, 3, 5, 11, 40, 63, 64, 100, 127):
            low, high = np.zeros(2), np.ones(2)
            for depth, bit in enumerate(bin(path)[3:]):
                middle = 0.5 * (low + high)
                (low if bit == "1" else high)[depth % 2] = middle[depth % 2]
            u, v = (low[:, None] + rng.random((2, 200)) * (high - low)[:, None]).clip(0, 1)
            offset = (bezier(points, u, v) - boxes[path, :3]) @ boxes[path, 3:12].reshape(3, 3).T
            assert (np.abs(offset) <= boxes[path, 12:] + 1e-15).all()
        size = np.linalg.norm(boxes[:, 12:], axis=1)
        assert size[64:].max() < 0.35 * size[1]
