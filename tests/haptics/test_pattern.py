"""Patterns: heights within 0 and 1, gradients that are those of the heights, and the stated bounds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from haptics.pattern import BUMPS, CURVATURE, GRATING, NOISE, SLOPE, SMOOTH, relief

KINDS = [GRATING, BUMPS, NOISE]
LENGTH = 2e-3
places = st.tuples(*[st.floats(-0.5, 0.5)] * 3)


def direction(seed: int) -> tuple[float, float, float]:
    v = np.random.default_rng(seed).standard_normal(3)
    return tuple((v / np.linalg.norm(v)).tolist())


def at(kind: int, place, ahead=(1.0, 0.0, 0.0), seed: int = 5):
    height, gradient = relief(kind, LENGTH, ahead, seed, tuple(float(x) for x in place))
    return height, np.array(gradient)


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=100)
@given(places, st.integers(0, 100))
def test_the_gradient_is_that_of_the_height(kind, place, seed):
    """Central differences of 1e-4 wavelengths: their error is below a third of the curvature's change, 1e-5 here."""
    ahead, h = direction(seed), 1e-4 * LENGTH
    height, gradient = at(kind, place, ahead, seed)
    assert -1e-12 <= height <= 1.0 + 1e-12
    for axis in range(3):
        step = h * np.eye(3)[axis]
        rise = at(kind, place + step, ahead, seed)[0] - at(kind, place - step, ahead, seed)[0]
        assert rise / (2 * h) * LENGTH == pytest.approx(gradient[axis] * LENGTH, abs=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_slope_and_curvature_stay_within_the_stated_bounds(kind):
    """Of 3,000 places and directions; nor are the bounds idle: a fifth of each is reached, by regular ones more."""
    random = np.random.default_rng(3)
    steepest = most = 0.0
    for _ in range(3000):
        place, ahead = random.uniform(-0.02, 0.02, 3), random.standard_normal(3)
        ahead /= np.linalg.norm(ahead)
        h = 1e-4 * LENGTH
        _, before = at(kind, place - h * ahead)
        _, after = at(kind, place + h * ahead)
        steepest = max(steepest, float(np.linalg.norm(before)) * LENGTH)
        most = max(most, abs(float((after - before) @ ahead)) / (2 * h) * LENGTH**2)
    reached = 0.2 if kind == NOISE else 0.9
    assert reached * SLOPE[kind] < steepest <= SLOPE[kind] * (1 + 1e-9)
    assert reached * CURVATURE[kind] < most <= CURVATURE[kind] * (1 + 1e-6)


def test_ridges_stand_across_their_direction():
    ahead = np.array(direction(1))
    across = np.cross(ahead, (0.0, 0.0, 1.0))
    assert at(GRATING, np.zeros(3), tuple(ahead))[0] == 1.0
    assert at(GRATING, 0.5 * LENGTH * ahead, tuple(ahead))[0] == pytest.approx(0.0, abs=1e-12)
    assert at(GRATING, 7.3 * across, tuple(ahead))[0] == pytest.approx(1.0, abs=1e-9)


def test_noise_is_the_same_for_the_same_seed_and_evenly_spread():
    """Corners of 8,000 cells: mean and variance of an even spread over 0 to 1, within four standard errors."""
    corners = np.array([at(NOISE, LENGTH * np.array(c), seed=9)[0] for c in np.ndindex(20, 20, 20)])
    again = np.array([at(NOISE, LENGTH * np.array(c), seed=9)[0] for c in np.ndindex(20, 20, 20)])
    other = np.array([at(NOISE, LENGTH * np.array(c), seed=10)[0] for c in np.ndindex(20, 20, 20)])
    assert np.array_equal(corners, again)
    assert abs(np.corrcoef(corners, other)[0, 1]) < 4 / np.sqrt(corners.size)
    assert corners.mean() == pytest.approx(0.5, abs=4 * np.sqrt(1 / 12 / corners.size))
    assert corners.var() == pytest.approx(1 / 12, abs=4 * np.sqrt(1 / 180 / corners.size))
    assert at(NOISE, LENGTH * np.array([-3.0, 5.0, -7.0]))[0] == at(NOISE, LENGTH * np.array([-3.0, 5.0, -7.0]))[0]


def test_without_a_pattern_there_is_no_height():
    height, gradient = at(SMOOTH, np.ones(3))
    assert height == 0.0 and not gradient.any()
