"""Disjoint sets against the components that scipy finds."""

import numpy as np
import pytest
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from rtcore.dynamics.groups import group_of, join, separate


@pytest.mark.parametrize("seed", range(20))
def test_groups_are_the_components_of_the_graph(seed):
    generator = np.random.default_rng(seed)
    n = int(generator.integers(1, 40))
    edges = generator.integers(0, n, (int(generator.integers(0, 2 * n)), 2))
    groups = np.full(n, -7, np.int32)
    separate(groups)
    for a, b in edges:
        join(groups, int(a), int(b))
    graph = coo_matrix((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), (n, n))
    _, labels = connected_components(graph, directed=False)
    for i in range(n):
        assert group_of(groups, i) == np.flatnonzero(labels == labels[i])[0]
