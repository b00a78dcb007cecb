"""Distances of many pairs of triangles at once, as bounds that hold whatever the rounding.

Lower bound: the gap of the corners along a direction, for the best of twelve directions (any direction gives a bound).
Upper bound: the distance of two points of the triangles, the best of all pairs of features. Both are padded by what
rounding may take; where they disagree, the truth lies between.
"""

import numpy as np

PAD = 64 * 2.0**-52
"""Times the largest coordinate difference: above the rounding of a distance (some 20 ulp)."""
_EDGES = ((0, 1), (1, 2), (2, 0))


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.einsum("...k,...k->...", a, b)


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """numpy's, without its overhead on short arrays."""
    x, y, z = a[..., 0], a[..., 1], a[..., 2]
    u, v, w = b[..., 0], b[..., 1], b[..., 2]
    return np.stack([y * w - z * v, z * u - x * w, x * v - y * u], axis=-1)


def _unit(v: np.ndarray) -> np.ndarray:
    """Unit vectors; zero where there is no direction."""
    size = np.abs(v).max(axis=-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        v = np.where(size > 1e-290, v / size, 0.0)
        norm = np.sqrt(_dot(v, v))[..., None]
        return np.where(norm > 0, v / norm, 0.0)


def _share(value: np.ndarray, square: np.ndarray) -> np.ndarray:
    """value / square within 0..1; 0 without a length."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.clip(np.where(square > 0, value / square, 0.0), 0.0, 1.0)


def nearest_features(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a point of each first triangle and one of each second (n, 3), nearest to each other up to rounding.

    first, second: corners (n, 3, 3), m.
    """
    best = np.full(len(first), np.inf)
    on_first, on_second = first[:, 0].copy(), second[:, 0].copy()

    def offer(p: np.ndarray, q: np.ndarray, allowed: np.ndarray | bool = True) -> None:
        with np.errstate(invalid="ignore", over="ignore"):
            square = _dot(q - p, q - p)
            better = (square < best) & allowed
        best[better] = square[better]
        on_first[better], on_second[better] = p[better], q[better]

    for ours, theirs, swapped in ((first, second, False), (second, first, True)):
        normal = _cross(theirs[:, 1] - theirs[:, 0], theirs[:, 2] - theirs[:, 0])
        square = _dot(normal, normal)
        for i in range(3):
            p = ours[:, i]
            for j, k in _EDGES:  # a corner and an edge
                edge = theirs[:, k] - theirs[:, j]
                q = theirs[:, j] + _share(_dot(p - theirs[:, j], edge), _dot(edge, edge))[:, None] * edge
                offer(*((q, p) if swapped else (p, q)))
            # A corner and the face below it, and where the edge from that corner pierces the face.
            height = _dot(p - theirs[:, 0], normal)
            other = _dot(ours[:, (i + 1) % 3] - theirs[:, 0], normal)
            with np.errstate(divide="ignore", invalid="ignore"):
                below = p - (height / square)[:, None] * normal
                at = p + (height / (height - other))[:, None] * (ours[:, (i + 1) % 3] - p)
            for q, r, allowed in ((below, p, square > 0), (at, at, height * other < 0)):
                for j, k in _EDGES:
                    edge = theirs[:, k] - theirs[:, j]
                    with np.errstate(invalid="ignore"):
                        allowed = allowed & (_dot(_cross(edge, q - theirs[:, j]), normal) >= 0)
                offer(*((q, r) if swapped else (r, q)), allowed)
    for i, j in _EDGES:
        for k, m in _EDGES:
            e, f, w = first[:, j] - first[:, i], second[:, m] - second[:, k], second[:, k] - first[:, i]
            normal = _cross(e, f)
            square = _dot(normal, normal)
            s = _share(_dot(_cross(w, f), normal), square)
            t = _share(_dot(_cross(w, e), normal), square)
            offer(first[:, i] + s[:, None] * e, second[:, k] + t[:, None] * f)
    return on_first, on_second


def gaps_along(first: np.ndarray, second: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """Least of direction . second - largest of direction . first, for directions (n, ..., 3) of pairs (n, 3, 3)."""
    extra = direction.ndim - 2
    shape = (len(first), *(1,) * extra, 3, 3)
    ours = _dot(first.reshape(shape), direction[..., None, :])
    theirs = _dot(second.reshape(shape), direction[..., None, :])
    return theirs.min(axis=-1) - ours.max(axis=-1)


def bounds(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (lower, upper, direction) for pairs of triangles: bounds on the distance (n,), m, and the lower one's unit
    direction (n, 3), from the first to the second.

    first, second: corners (n, 3, 3), m, taken as exact. A lower bound of 0 or less proves nothing.
    """
    origin = first[:, :1]
    first, second = first - origin, second - origin
    pad = PAD * np.maximum(np.abs(first).max(axis=(1, 2)), np.abs(second).max(axis=(1, 2)))
    p, q = nearest_features(first, second)
    upper = np.sqrt(_dot(q - p, q - p)) + pad
    candidates = [q - p]
    sides_first = [first[:, j] - first[:, i] for i, j in _EDGES]
    sides_second = [second[:, j] - second[:, i] for i, j in _EDGES]
    candidates += [_cross(sides_first[0], sides_first[1]), _cross(sides_second[0], sides_second[1])]
    candidates += [_cross(e, f) for e in sides_first for f in sides_second]
    axes = _unit(np.stack(candidates, axis=1))
    axes = np.concatenate([axes, -axes], axis=1)
    gaps = gaps_along(first, second, axes)
    choice = gaps.argmax(axis=1)
    rows = np.arange(len(first))
    return gaps[rows, choice] - pad, upper, axes[rows, choice]
