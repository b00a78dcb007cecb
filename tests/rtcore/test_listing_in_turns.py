"""The listing of what is near a tool goes round: a body with more than a tick can list keeps no other one waiting."""

import numpy as np
from bodies_rig import Bodies
from closed_meshes import box
from mesh_tool_rig import EPS

CELLS = 24


def dense(half: tuple[float, float, float]) -> tuple[np.ndarray, np.ndarray]:
    """A box whose top and bottom are grids of CELLS x CELLS squares."""
    x, y, z = half
    ticks = np.linspace(-1.0, 1.0, CELLS + 1)
    grid = np.array([(x * a, y * b) for b in ticks for a in ticks])
    layers = [np.column_stack([grid, np.full(len(grid), side * z)]) for side in (-1.0, 1.0)]
    faces = []
    n = CELLS + 1
    for layer in range(2):
        for row in range(CELLS):
            for k in range(CELLS):
                a = layer * n * n + row * n + k
                quad = (a, a + 1, a + n + 1, a + n)
                if layer == 0:
                    quad = quad[::-1]
                faces += [(quad[0], quad[1], quad[2]), (quad[0], quad[2], quad[3])]
    rim = [*range(n), *range(2 * n - 1, n * n, n), *range(n * n - 2, n * n - n - 1, -1), *range(n * (n - 2), 0, -n)]
    for a, b in zip(rim, [*rim[1:], rim[0]], strict=True):
        faces += [(a, b, b + n * n), (a, b + n * n, a + n * n)]
    return np.vstack(layers), np.array(faces)


def test_a_large_body_does_not_starve_the_others():
    gap = 0.5 * (EPS[1] + EPS[2])
    rig = Bodies(tool=dense((0.1, 0.05, 0.01)), start=(0.0, 0.0, 0.01 + gap), budget=(3200, 8, 50, 5000))
    rig.add(dense((0.05, 0.05, 0.01)), (-0.051, 0.0, -0.01))
    rig.add(box((0.05, 0.05, 0.01)), (0.051, 0.0, -0.01))
    rig.build().hold(1000.0)
    rig.aim((0.0, 0.0, 0.01 + gap))
    seen = set()
    for _ in range(400):
        rig.go()
        contacts = rig.report["contacts"][: rig.report["contact_count"]]
        seen |= set(contacts["body_id"].tolist())
    assert seen == {0, 1}
