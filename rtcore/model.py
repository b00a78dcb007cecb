"""Model: everything that does not change while ticking, and the builder that checks it."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rtcore.tables import BODY, BOX_NODE, HELD, MAX_TREE_DEPTH, MESH, STATIC, TRIANGLE, WORLD

ALERT_RESOLUTION = 1e-7
"""Least eps_alert as a share of the largest coordinate: below it, rounding would eat into the distance kept."""
AXES_RESOLUTION = 1e-14
"""Largest departure of a box's axes from unit and square: rounding."""


class Model(NamedTuple):
    """Immutable tables (see :mod:`rtcore.tables` for the record types)."""

    world: np.ndarray
    """(1,) WORLD."""
    bodies: np.ndarray
    """(n_bodies,) BODY."""
    meshes: np.ndarray
    """(n_meshes,) MESH."""
    nodes: np.ndarray
    """(n_nodes,) BOX_NODE, all trees one after the other; indices count over the whole table."""
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


def _check_tree(nodes: np.ndarray, triangle_count: int) -> None:
    """ValueError unless the nodes are a depth-first tree of proper boxes over that many triangles, one per leaf."""
    leaf = nodes["count"] != 0
    if (nodes["count"][leaf] != 1).any() or not np.array_equal(nodes["first"][leaf], np.arange(triangle_count)):
        raise ValueError("the leaves of the bounding tree do not cover the triangle table, one triangle each")
    own = np.arange(len(nodes))
    inner = own[~leaf]
    right = nodes["right"][inner]
    parent = np.full(len(nodes), -2)
    if len(nodes) != 2 * triangle_count - 1 or ((right <= inner + 1) | (right >= len(nodes))).any():
        raise ValueError("the bounding tree is not stored depth first")
    parent[0] = -1
    parent[inner + 1] = inner
    parent[right] = inner
    if not np.array_equal(nodes["parent"], parent):
        raise ValueError("the bounding tree names wrong parents")
    below = own[1:]
    if nodes["depth"][0] != 0 or (nodes["depth"][below] != nodes["depth"][parent[below]] + 1).any():
        raise ValueError("the bounding tree counts its depth wrongly")
    if (nodes["size"][leaf] != 0.0).any() or (nodes["size"][below] > nodes["size"][parent[below]]).any():
        raise ValueError("the bounding tree has a node of greater size than its parent, or a leaf of any size")
    if (nodes["half"] < 0.0).any() or (nodes["radius"] < 0.0).any():
        raise ValueError("the bounding tree has a box or a ball of negative size")
    axes = nodes["axes"]
    skew = np.abs(axes @ axes.transpose(0, 2, 1) - np.eye(3)).max()
    if skew > AXES_RESOLUTION or (np.einsum("ij,ij->i", np.cross(axes[:, 0], axes[:, 1]), axes[:, 2]) < 0.0).any():
        raise ValueError("the bounding tree has boxes whose axes are not unit, square and right-handed")
    if (np.abs(np.linalg.norm(nodes["cone_axis"], axis=1) - 1.0) > AXES_RESOLUTION).any():
        raise ValueError("the bounding tree has a cone whose axis is not unit")
    if ((nodes["cone_angle"] < 0.0) | (nodes["cone_angle"] > np.pi)).any():
        raise ValueError("the bounding tree has a cone whose angle is not in 0 .. pi")


def _check_features(triangles: np.ndarray) -> None:
    """ValueError unless vertices and edges are numbered from 0 and have their owners, and neighbours share an edge."""
    for what, field, shift in (("vertices", "vertex_ids", 0), ("edges", "edge_ids", 3)):
        ids = triangles[field]
        if ids.min() < 0:
            raise ValueError(f"the {what} of the mesh are not numbered from 0")
        needed = np.ones(int(ids.max()) + 1, dtype=bool)
        if shift == 3:  # an edge inside a plane has no owner
            needed[ids[(triangles["flat"][:, None] >> np.arange(3) & 1).astype(bool)]] = False
        owned = (triangles["owned"][:, None] >> (shift + np.arange(3)) & 1).astype(bool)
        owners = np.bincount(ids[owned], minlength=len(needed))
        if (owners > 1).any() or (owners[needed] == 0).any():
            raise ValueError(f"the {what} of the mesh do not each have one triangle that stands for them")
    edges = triangles["edge_ids"]
    other = np.arange(len(triangles))[:, None] + triangles["across"]
    if (other < 0).any() or (other >= len(triangles)).any():
        raise ValueError("a triangle of the mesh names a neighbour that is not there")
    shared = (edges[other] == edges[:, :, None]).any(axis=2)
    if not shared.all():
        raise ValueError("a triangle of the mesh names a neighbour that does not share its edge")


class ModelBuilder:
    """Collects meshes and bodies, checks every precondition of the kernels, and makes a :class:`Model`."""

    def __init__(self) -> None:
        self._nodes: list[np.ndarray] = []
        self._triangles: list[np.ndarray] = []
        self._bodies: list[tuple] = []

    def add_mesh(self, nodes: np.ndarray, triangles: np.ndarray) -> int:
        """Add one mesh as made by :func:`rtcore.geometry.tree.build_tree` and return its mesh_id.

        nodes: (n,) BOX_NODE and triangles: (m,) TRIANGLE with indices that count from 0 within this mesh.
        Raises ValueError for tables of another type, without triangles, too deep, with numbers that are not finite, or
        that break what the record types promise.
        """
        if nodes.dtype != BOX_NODE or triangles.dtype != TRIANGLE:
            raise ValueError("a mesh is a BOX_NODE table and a TRIANGLE table, as made by build_tree")
        if len(triangles) == 0 or len(nodes) == 0:
            raise ValueError("a mesh needs at least one triangle")
        if int(nodes["depth"].max()) > MAX_TREE_DEPTH - 2:
            raise ValueError(f"the bounding tree is deeper than {MAX_TREE_DEPTH - 2}")
        for table in (nodes, triangles):
            for field in table.dtype.names or ():
                if not np.isfinite(table[field]).all():
                    raise ValueError(f"the mesh holds numbers that are not finite ({field})")
        _check_tree(nodes, len(triangles))
        _check_features(triangles)
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
        tool_mesh_id: int = -1,
        turning: float = 0.0,
    ) -> Model:
        """Make the model of a tool among the bodies.

        The tool is a sphere tip (radius >= 0, m; centre in tool coordinates) or, with tool_mesh_id, a mesh whose
        coordinates count from the tip centre; tip_radius is then 0. The three distances (m) are the least one ever,
        the one kept at rest and the one at which a contact is forgotten. With turning > 0 (m^2), the stiffness of the
        spring that turns a tool mesh by that of the one that pulls it, the tool yields to what it touches and slides
        along it; with 0 it is carried as far as the way is free. Raises ValueError unless
        0 < eps_alert < eps_safety < eps_break, or when eps_alert is too small for double precision at the size of the
        scene.
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
        if tool_mesh_id != -1 and not 0 <= tool_mesh_id < len(self._nodes):
            raise ValueError(f"there is no mesh {tool_mesh_id} to be the tool")
        if tool_mesh_id == -1 and turning != 0.0:
            raise ValueError("a sphere tip turns freely: turning belongs to a tool that is a mesh")
        if tool_mesh_id != -1 and radius != 0.0:
            raise ValueError("a tool that is a mesh has no tip radius")
        meshes = np.zeros(len(self._nodes), MESH)
        nodes = np.concatenate(self._nodes) if self._nodes else np.zeros(0, BOX_NODE)
        triangles = np.concatenate(self._triangles) if self._triangles else np.zeros(0, TRIANGLE)
        node_first = triangle_first = 0
        for mesh_id, (mesh_nodes, mesh_triangles) in enumerate(zip(self._nodes, self._triangles, strict=True)):
            meshes[mesh_id] = (node_first, len(mesh_nodes), triangle_first, len(mesh_triangles))
            part = nodes[node_first : node_first + len(mesh_nodes)]
            part["first"][part["count"] > 0] += triangle_first
            part["right"][part["count"] == 0] += node_first
            part["parent"][1:] += node_first
            node_first += len(mesh_nodes)
            triangle_first += len(mesh_triangles)
        bodies = np.zeros(len(self._bodies), BODY)
        reach = radius if tool_mesh_id == -1 else self._farthest(tool_mesh_id)
        for body_id, (position, orientation, static, kinetic, mesh_id, kind) in enumerate(self._bodies):
            bodies[body_id] = (position, orientation, static, kinetic, mesh_id, kind)
            reach = max(reach, self._farthest(mesh_id) + float(np.abs(position).max()))
        if alert < ALERT_RESOLUTION * reach:
            raise ValueError(
                f"eps_alert {alert:g} is too small for coordinates up to {reach:g} m: at least "
                f"{ALERT_RESOLUTION * reach:g} is needed"
            )
        world = np.zeros(1, WORLD)
        ratio = _number(turning, "turning", 0.0)
        world[0] = (radius, _vector(tip_offset, "tip offset"), alert, safety, forget, ratio, tool_mesh_id, 0)
        return Model(world=world, bodies=bodies, meshes=meshes, nodes=nodes, triangles=triangles)

    def _farthest(self, mesh_id: int) -> float:
        """A distance from the mesh's origin beyond which it has no point, m."""
        root = self._nodes[mesh_id][0]
        return float(np.linalg.norm(root["centre"]) + root["radius"])
