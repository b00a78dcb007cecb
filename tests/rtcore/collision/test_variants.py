"""Other box tests and elementary tests in the same search find the same first contact."""

import mesh_pairs
import numpy as np
import pytest
from mesh_pairs import Pair, check_first_time

from rtcore.collision.elementary import interval
from rtcore.collision.overlap import OVERLAP_INFLATED, OVERLAP_INTERVAL, OVERLAP_SPHERE
from rtcore.collision.pair_state import make_query_work
from rtcore.collision.variants import first_contact_by


@pytest.mark.slow
def test_every_box_test_and_the_interval_elementary_tests_give_the_first_time():
    kernel = first_contact_by(interval)
    work = make_query_work()
    generator = np.random.default_rng(4)
    for _ in range(8):
        pair = Pair(mesh_pairs.random_mesh(generator), mesh_pairs.random_mesh(generator))
        relative = mesh_pairs.random_relative(generator)
        times = []
        for overlap in (OVERLAP_INFLATED, OVERLAP_INTERVAL, OVERLAP_SPHERE):
            q = mesh_pairs.query()
            q["overlap"] = overlap
            q["subdivision"] = 0.15
            answer, counted = mesh_pairs.hit(), mesh_pairs.counters()
            roots = pair.first_root, pair.second_root
            kernel(pair.nodes, pair.triangles, *roots, relative, q, work[0], counted, answer)
            check_first_time(pair, relative, q, answer, samples=15)
            assert (counted["sphere_tests"] > 0) == (overlap == OVERLAP_SPHERE)
            assert (counted["box_continuous"] > 0) == (overlap == OVERLAP_INTERVAL)
            times.append(answer["time"])
        np.testing.assert_allclose(times, times[0], atol=2e-3)
