"""Small models to draw, for tests."""

import numpy as np

from rtcore.dynamics.inertia import BODY_INERTIA
from rtcore.model import Model
from rtcore.tables import BODY, BOX_NODE, MESH, TRIANGLE, WORLD


def model_of(
    *meshes: np.ndarray, positions: list[tuple[float, float, float]] | None = None, tool: np.ndarray | None = None
) -> Model:
    """A model for drawing: one body per (n, 3, 3) mesh; the trees are left empty, nothing here descends them.

    ``tool``: (n, 3, 3) triangles of a tool mesh; a sphere tip when absent.
    """
    world = np.zeros(1, WORLD)
    world["tip_radius"] = 0.004 if tool is None else 0.0
    world["tool_mesh_id"] = -1 if tool is None else len(meshes)
    shown = meshes if tool is None else (*meshes, tool)
    table = np.zeros(len(shown), MESH)
    table["triangle_count"] = [len(m) for m in shown]
    table["triangle_first"] = np.concatenate([[0], np.cumsum(table["triangle_count"])[:-1]])
    bodies = np.zeros(len(meshes), BODY)
    bodies["orientation"][:, 3] = 1.0
    bodies["mesh_id"] = np.arange(len(meshes))
    if positions is not None:
        bodies["position"] = positions
    triangles = np.zeros(int(table["triangle_count"].sum()), TRIANGLE)
    triangles["vertices"] = np.concatenate(shown)
    return Model(world, bodies, table, np.zeros(1, BOX_NODE), triangles, np.zeros(len(bodies) + 1, BODY_INERTIA))


def ball_mesh(radius: float = 0.05, subdivisions: int = 3) -> np.ndarray:
    import trimesh

    return np.asarray(trimesh.creation.icosphere(subdivisions=subdivisions, radius=radius).triangles)


def box_mesh(size: float = 1.0) -> np.ndarray:
    import trimesh

    return np.asarray(trimesh.creation.box((size, size, size)).triangles)
