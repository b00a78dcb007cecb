"""What triangles of a mesh share: numbers of vertices and edges, who stands for them, and where the surface is open."""

import numpy as np
from numba import njit

FLAT_SHARE = 1e-9
"""A closed part whose volume is below this share of the sum of its faces' parts has none: it is no solid."""

FLAT_BEND = 1e-6
"""Bend (rad) of the surface at an edge below which the edge is only where two triangles of one plane meet."""

PLANE_ROUNDING = 8.0 * 2.0**-52
"""Times the largest coordinate: height over the plane of its neighbour up to which a triangle lies in that plane. The
distances kept are wrong by no more when such an edge is looked at by nobody."""


def label(triangles: np.ndarray) -> None:
    """Fill vertex_ids, edge_ids, owned, open, across and flat of the triangles of one mesh.

    triangles: (m,) TRIANGLE with vertices, normal and degenerate. Vertices with equal coordinates are one vertex, edges
    between the same two vertices one edge, whichever way round. Each vertex and each edge is owned by one of its
    triangles, so chosen that each triangle owns few; an edge inside a plane (PLANE_ROUNDING) by none, since what comes
    near it comes as near to the border of the plane, or with a vertex to one of the faces. A triangle is open where the
    side that its normal points to need not be the outside: every triangle without area, at an edge that more than two
    faces share, or of a part (faces that hang together by edges of two) that is no solid with its normals outwards.
    Source: representative triangles (Curtis, Tamstorf and Manocha 2008), handed out greedily by fewest so far.
    """
    count = len(triangles)
    vertex_ids = _weld(triangles["vertices"].reshape(-1, 3)).reshape(count, 3)
    ends = np.stack((vertex_ids, np.roll(vertex_ids, -1, axis=1)), axis=2).reshape(-1, 2)
    edge_ids = _number(ends.min(axis=1) * (int(vertex_ids.max()) + 1) + ends.max(axis=1)).reshape(count, 3)
    triangles["vertex_ids"] = vertex_ids
    triangles["edge_ids"] = edge_ids
    owned = np.zeros(count, dtype=np.int64)
    load = np.zeros(count, dtype=np.int64)
    for ids, bit in ((edge_ids, 3), (vertex_ids, 0)):
        slots = np.argsort(ids.ravel(), kind="stable")
        _hand_out(slots, ids.ravel(), bit, owned, load)
    triangles["open"] = _open(triangles, ends[:, 0] < ends[:, 1])
    triangles["across"] = _across(triangles)
    triangles["flat"] = _flat(triangles)
    triangles["owned"] = owned & ~((_in_plane(triangles) << np.arange(3, 6)).sum(axis=1))


def _weld(points: np.ndarray) -> np.ndarray:
    """Number (k,) of each point (k, 3), the same for equal coordinates, in the order of first appearance."""
    points = points + 0.0  # -0 to 0
    order = np.lexsort(points.T)
    ordered = points[order]
    new = np.concatenate(([False], (ordered[1:] != ordered[:-1]).any(axis=1)))
    groups = np.empty(len(points), dtype=np.int64)
    groups[order] = np.cumsum(new)
    return _number(groups)


def _number(keys: np.ndarray) -> np.ndarray:
    """Number (k,) of each key (k,), the same for equal keys, in the order of first appearance."""
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    return rank[inverse.ravel()]


@njit(cache=True, nogil=True, error_model="numpy")
def _hand_out(slots: np.ndarray, ids: np.ndarray, bit: int, owned: np.ndarray, load: np.ndarray) -> None:
    """Give each feature to the least loaded of its triangles, the first one of several.

    slots: numbers 3 triangle + k of all features k of all triangles, those of one feature side by side; ids: the
    feature's number by slot.
    """
    i = 0
    while i < len(slots):
        best = slots[i]
        i += 1
        while i < len(slots) and ids[slots[i]] == ids[best]:
            if load[slots[i] // 3] < load[best // 3]:
                best = slots[i]
            i += 1
        load[best // 3] += 1
        owned[best // 3] |= 1 << (bit + best % 3)


def _across(triangles: np.ndarray) -> np.ndarray:
    """(m, 3) rows from each triangle to the one at the other side of each edge, 0 where there is not just one."""
    edges = triangles["edge_ids"].ravel()
    slots = np.flatnonzero(np.bincount(edges)[edges] == 2)
    left, right = slots[np.argsort(edges[slots], kind="stable")].reshape(-1, 2).T
    solid = np.repeat(triangles["degenerate"] == 0, 3)
    rows = np.where(solid[left] & solid[right], right // 3 - left // 3, 0)
    across = np.zeros(len(edges), dtype=np.int64)
    across[left] = rows
    across[right] = -rows
    return across.reshape(-1, 3)


def _flat(triangles: np.ndarray) -> np.ndarray:
    """(m,) bits of the edges across which the surface bends by less than FLAT_BEND."""
    edges = np.roll(triangles["vertices"], -1, axis=1) - triangles["vertices"]
    inwards = np.cross(triangles["normal"][:, None], edges)
    with np.errstate(invalid="ignore", divide="ignore"):
        inwards /= np.linalg.norm(inwards, axis=2)[:, :, None]
    other = np.arange(len(triangles))[:, None] + triangles["across"]
    slot = (triangles["edge_ids"][other] == triangles["edge_ids"][:, :, None]).argmax(axis=2)
    with np.errstate(invalid="ignore"):
        flat = np.linalg.norm(inwards + inwards[other, slot], axis=2) < FLAT_BEND
    return ((flat & (triangles["across"] != 0)) << np.arange(3)).sum(axis=1)


def _in_plane(triangles: np.ndarray) -> np.ndarray:
    """(m, 3) edges between two triangles of one plane, as far as rounding can tell."""
    vertices = triangles["vertices"]
    rows = np.arange(len(triangles))[:, None] + triangles["across"]
    slot = (triangles["edge_ids"][rows] == triangles["edge_ids"][:, :, None]).argmax(axis=2)
    opposite = vertices[rows, (slot + 2) % 3]
    height = np.abs(np.einsum("mek,mk->me", opposite - vertices[:, :1], triangles["normal"]))
    low = height <= PLANE_ROUNDING * np.abs(vertices).max(axis=(1, 2))[:, None]
    low &= (triangles["flat"][:, None] >> np.arange(3) & 1).astype(bool)  # which a fold is not
    return low & low[rows, slot]  # seen from both sides


def _open(triangles: np.ndarray, forward: np.ndarray) -> np.ndarray:
    """Flag (m,) of each triangle; forward (3 m,): runs the edge from the lower to the higher vertex."""
    solid = np.flatnonzero(triangles["degenerate"] == 0)
    if len(solid) == 0:
        return np.ones(len(triangles), dtype=np.int64)
    edges = triangles["edge_ids"][solid].ravel()
    owner = np.repeat(np.arange(len(solid)), 3)
    uses = np.bincount(edges)[edges]
    slots = np.flatnonzero(uses == 2)
    slots = slots[np.argsort(edges[slots], kind="stable")]
    labels = components(len(solid), owner[slots[0::2]], owner[slots[1::2]])
    count = int(labels.max()) + 1
    _, inverse = np.unique(edges * count + labels[owner], return_inverse=True)
    way = np.where(forward.reshape(-1, 3)[solid].ravel(), 1, -1)
    balance = np.zeros(int(inverse.max()) + 1, dtype=np.int64)
    np.add.at(balance, inverse.ravel(), way)
    closed = np.ones(count, dtype=bool)
    closed[labels[owner[balance[inverse.ravel()] != 0]]] = False
    is_open = np.ones(len(triangles), dtype=np.int64)
    is_open[solid] = ~(closed & _encloses(triangles["vertices"][solid], labels, count))[labels]
    is_open[solid[owner[uses > 2]]] = 1
    return is_open


def _encloses(corners: np.ndarray, labels: np.ndarray, count: int) -> np.ndarray:
    """Which of the parts (count,) have a volume and their faces outwards, if they are closed."""
    corners = np.ldexp(corners, -int(np.frexp(np.abs(corners).max())[1]))  # exact; cubes stay in the number range
    faces = np.bincount(labels, minlength=count)
    middle = np.stack([np.bincount(labels, corners[:, :, k].sum(axis=1), count) for k in range(3)], axis=1)
    a, b, c = np.moveaxis(corners - (middle / (3 * faces)[:, None])[labels][:, None], 1, 0)
    volumes = np.einsum("ij,ij->i", a, np.cross(b, c))
    whole = np.bincount(labels, volumes, count)
    return whole > FLAT_SHARE * np.bincount(labels, np.abs(volumes), count)


@njit(cache=True, nogil=True, error_model="numpy")
def components(count: int, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Number (count,) of the part that each of `count` items is in, when left[i] and right[i] hang together for all i.

    Parts are numbered from 0 in the order of their first items. Source: union-find with path halving (Tarjan 1975).
    """
    root = np.arange(count)
    for i in range(len(left)):
        a = left[i]
        b = right[i]
        while root[a] != a:
            root[a] = root[root[a]]
            a = root[a]
        while root[b] != b:
            root[b] = root[root[b]]
            b = root[b]
        root[max(a, b)] = min(a, b)
    number = 0
    labels = np.empty(count, dtype=np.int64)
    for i in range(count):  # a root is the first of its part
        if root[i] == i:
            labels[i] = number
            number += 1
        else:
            labels[i] = labels[root[i]]
    return labels
