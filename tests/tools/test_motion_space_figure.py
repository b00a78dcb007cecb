"""The figure that compares motion space and contact space: its problems are the thesis', its answers are right."""

import argparse

import numpy as np

from tools.bench.motion_space import FIGURE, WRONG, draw, wrongness


def test_problems_have_one_motion_at_which_every_row_is_tight():
    rows, jacobian = draw(np.random.default_rng(1), 3, 40)
    through = np.linalg.lstsq(jacobian, rows["bound"], rcond=None)[0]
    np.testing.assert_allclose(jacobian @ through, rows["bound"], atol=1e-12)
    alone = rows["second"] < 0
    assert 5 < alone.sum() < 25  # one in three
    blocks = (jacobian.reshape(40, 3, 6) != 0.0).any(axis=2).sum(axis=1)
    np.testing.assert_array_equal(blocks, np.where(alone, 1, 2))


def test_wrong_answers_are_told():
    rows, jacobian = draw(np.random.default_rng(2), 2, 20)
    assert wrongness(jacobian, rows["bound"], np.zeros(20)) > 0.01 > WRONG


def test_a_small_run_is_right_and_gives_every_number():
    parser = argparse.ArgumentParser()
    FIGURE.add_arguments(parser)
    result = FIGURE.run(parser.parse_args(["--bodies", "2", "--instances", "1"]), lambda _: None)
    assert result.ok
    assert set(result.figures["one_body"]) == {"4 contacts", "12 contacts", "24 contacts", "48 contacts"}
    assert result.figures["ratio"]["sparse"]["p 45"]["n 2"] > 0.0
    assert result.figures["directions"] == {}  # of the whole table only
