"""Model: everything that does not change while ticking, and the builder that checks it."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rtcore.tables import BODY, HELD, MAX_TREE_DEPTH, MESH, NODE, STATIC, TRIANGLE, WORLD

ALERT_RESOLUTION = 1e-7
"""Least eps_alert as a share of the largest coordinate: below it, rounding would eat into the distance kept."""


class Model(NamedTuple):
    """Immutable tables (see :mod:`rtcore.tables` for the record types)."""

    world: np.ndarray
    """(1,) WORLD."""
    bodies: np.ndarray
    """(n_bodies,) BODY."""
    meshes: np.ndarray
    """(n_meshes,) MESH."""
    nodes: np.ndarray
    """(n_nodes,) NODE, all trees one after the other; indices count over the whole table."""
    triangles: np.ndarray
    """(n_triangles,) TRIANGLE, in leaf order."""


def unit_quaternion(values: Sequence[float], what: str) -> np.ndarray:
    """Return the quaternion xyzw normalised; ValueError naming `what` unless it is finite and has a length."""
    quaternion = np.asarray(values, dtype=np.float64)
    if quaternion.shape != (4,) or not np.isfinite(quaternion).all():
        raise ValueError(f"{what} must be four finite numbers [x, y, z, w], not {values!r}")
    norm = float(np.linalg.norm(quaternion))
    if norm < 1e-12:
        raise ValueError(f"{what} must be a quaternion of norm 1, not {values!r}")
    return quaternion / norm


def _number(value: float, what: str, least: float) -> float:
    number = float(value)
    if not np.isfinite(number) or number < least:
        raise ValueError(f"{what} must be a finite number >= {least:g}, not {value!r}")
    return number


def _vector(values: Sequence[float], what: str) -> np.ndarray:
    vector = np.asarray(values, dtype=np.float64)
    if vector.shape != (3,) or not np.isfinite(vector).all():
        raise ValueError(f"{what} must be three finite numbers, not {values!r}")
    return vector


class ModelBuilder:
    """Collects meshes and bodies, checks every precondition of the kernels, and makes a :class:`Model`."""

    def __init__(self) -> None:
        self._nodes: list[np.ndarray] = []
        self._triangles: list[np.ndarray] = []
        self._bodies: list[tuple] = []

    def add_mesh(self, nodes: np.ndarray, triangles: np.ndarray) -> int:
        """Add one mesh as made by :func:`rtcore.geometry.tree.build_tree` and return its mesh_id.

        nodes: (n,) NODE and triangles: (m,) TRIANGLE with indices that count from 0 within this mesh.
        Raises ValueError for tables of another type, without triangles, too deep or with numbers that are not finite.
        """
        if nodes.dtype != NODE or triangles.dtype != TRIANGLE:
            raise ValueError("a mesh is a NODE table and a TRIANGLE table, as made by build_tree")
        if len(triangles) == 0 or len(nodes) == 0:
            raise ValueError("a mesh needs at least one triangle")
        if int(nodes["depth"].max()) > MAX_TREE_DEPTH - 2:
            raise ValueError(f"the bounding tree is deeper than {MAX_TREE_DEPTH - 2}")
        for table, field in ((nodes, "lower"), (nodes, "upper"), (triangles, "vertices"), (triangles, "normal")):
            if not np.isfinite(table[field]).all():
                raise ValueError(f"the mesh holds numbers that are not finite ({field})")
        leaf = nodes["count"] > 0
        if int(nodes["count"].sum()) != len(triangles) or (nodes["first"][leaf] + nodes["count"][leaf]).max() > len(
            triangles
        ):
            raise ValueError("the leaves of the bounding tree do not cover the triangle table")
        own = np.arange(len(nodes))
        if ((nodes["right"] <= own + 1) | (nodes["right"] >= len(nodes)))[~leaf].any():
            raise ValueError("the bounding tree is not stored depth first")
        self._nodes.append(nodes)
        self._triangles.append(triangles)
        return len(self._nodes) - 1

    def add_body(
        self,
        mesh_id: int,
        position: Sequence[float] = (0.0, 0.0, 0.0),
        orientation: Sequence[float] = (0.0, 0.0, 0.0, 1.0),
        friction_static: float = 0.4,
        friction_kinetic: float = 0.3,
        kind: int = STATIC,
    ) -> int:
        """Add a body that shows a mesh at a pose (mesh frame to scene; m, xyzw) and return its body_id.

        Friction coefficients are Coulomb's, 0 <= kinetic <= static. kind is STATIC or HELD.
        Raises ValueError that names the wrong value.
        """
        if not 0 <= mesh_id < len(self._nodes):
            raise ValueError(f"there is no mesh {mesh_id}")
        static = _number(friction_static, "static friction", 0.0)
        kinetic = _number(friction_kinetic, "kinetic friction", 0.0)
        if kinetic > static:
            raise ValueError(f"kinetic friction {kinetic:g} must not be above static friction {static:g}")
        if kind not in (STATIC, HELD):
            raise ValueError(f"a body is STATIC ({STATIC}) or HELD ({HELD}), not {kind!r}")
        place = _vector(position, "body position")
        turn = unit_quaternion(orientation, "body orientation")
        self._bodies.append((place, turn, static, kinetic, mesh_id, kind))
        return len(self._bodies) - 1

    def build(
        self,
        tip_radius: float,
        tip_offset: Sequence[float],
        eps_alert: float,
        eps_safety: float,
        eps_break: float,
    ) -> Model:
        """Make the model of a tool with a sphere tip (radius >= 0, m; centre in tool coordinates) among the bodies.

        The three distances (m) are the least one ever, the one kept at rest and the one at which a contact is
        forgotten. Raises ValueError unless 0 < eps_alert < eps_safety < eps_break, or when eps_alert is too small for
        double precision at the size of the scene.
        """
        radius = _number(tip_radius, "tip radius", 0.0)
        alert = _number(eps_alert, "eps_alert", 0.0)
        safety = _number(eps_safety, "eps_safety", 0.0)
        forget = _number(eps_break, "eps_break", 0.0)
        if not 0.0 < alert < safety < forget:
            raise ValueError(
                "the distances must satisfy 0 < eps_alert < eps_safety < eps_break, "
                f"not {alert:g}, {safety:g}, {forget:g}"
            )
        meshes = np.zeros(len(self._nodes), MESH)
        nodes = np.concatenate(self._nodes) if self._nodes else np.zeros(0, NODE)
        triangles = np.concatenate(self._triangles) if self._triangles else np.zeros(0, TRIANGLE)
        node_first = triangle_first = 0
        for mesh_id, (mesh_nodes, mesh_triangles) in enumerate(zip(self._nodes, self._triangles, strict=True)):
            meshes[mesh_id] = (node_first, len(mesh_nodes), triangle_first, len(mesh_triangles))
            part = nodes[node_first : node_first + len(mesh_nodes)]
            part["first"][part["count"] > 0] += triangle_first
            part["right"][part["count"] == 0] += node_first
            node_first += len(mesh_nodes)
            triangle_first += len(mesh_triangles)
        bodies = np.zeros(len(self._bodies), BODY)
        reach = radius
        for body_id, (position, orientation, static, kinetic, mesh_id, kind) in enumerate(self._bodies):
            bodies[body_id] = (position, orientation, static, kinetic, mesh_id, kind)
            root = self._nodes[mesh_id][0]
            corner = np.maximum(np.abs(root["lower"]), np.abs(root["upper"]))
            reach = max(reach, float(np.linalg.norm(corner)), float(np.linalg.norm(corner) + np.abs(position).max()))
        if alert < ALERT_RESOLUTION * reach:
            raise ValueError(
                f"eps_alert {alert:g} is too small for coordinates up to {reach:g} m: at least "
                f"{ALERT_RESOLUTION * reach:g} is needed"
            )
        world = np.zeros(1, WORLD)
        world[0] = (radius, _vector(tip_offset, "tip offset"), alert, safety, forget)
        return Model(world=world, bodies=bodies, meshes=meshes, nodes=nodes, triangles=triangles)
