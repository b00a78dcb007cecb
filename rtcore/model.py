"""Model: everything that does not change while ticking, and the builder that checks it."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rtcore.by_reference import by_reference
from rtcore.dynamics.inertia import BODY_INERTIA, REST_SPEED
from rtcore.tables import (
    BODY,
    BOX_NODE,
    FREE,
    HELD,
    KINEMATIC,
    MAX_TREE_DEPTH,
    MESH,
    STATIC,
    TRIANGLE,
    WORLD,
)

ALERT_RESOLUTION = 1e-7
"""Least eps_alert as a share of the largest coordinate: below it, rounding would eat into the distance kept."""
AXES_RESOLUTION = 1e-14
"""Largest departure of a box's axes from unit and square: rounding."""


@by_reference
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
    inertias: np.ndarray
    """(n_bodies + 1,) BODY_INERTIA, the tool's last; mass 0 of what has none."""


def moving_bodies(bodies: np.ndarray) -> list[int]:
    """Rows of a BODY table that move by themselves, FREE or KINEMATIC, rising."""
    return np.flatnonzero((bodies["kind"] == FREE) | (bodies["kind"] == KINEMATIC)).tolist()


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
        self._inertias: list[np.void] = []

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
        *,
        inertia: np.void | None = None,
        restitution: float = 0.0,
        rest_speed: float = REST_SPEED,
        torsional_friction: float = 0.0,
        rolling_friction: float = 0.0,
        velocity: Sequence[float] = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
        rounding: float = 0.0,
        surface_id: int = 0,
    ) -> int:
        """Add a body that shows a mesh at a pose (mesh frame to scene; m, xyzw) and return its body_id.

        Friction coefficients are Coulomb's, 0 <= kinetic <= static; torsional and rolling ones are moments per normal
        force, m. A FREE body needs an inertia (BODY_INERTIA, see rtcore.dynamics.inertia), which holds its restitution
        and rest speed too; of other kinds those are given here. velocity: (6,) of the centre of mass (a KINEMATIC
        body: of the mesh's origin) in m/s and angular in rad/s, scene axes, at load. rounding: radius (m) of a sphere
        whose centre goes everywhere in the mesh; what it covers is the body: of a point a ball, of a segment a capsule.
        surface_id: a number for the layer above, which the mechanics only keep.
        Raises ValueError that names the wrong value.
        """
        if not 0 <= mesh_id < len(self._nodes):
            raise ValueError(f"there is no mesh {mesh_id}")
        static = _number(friction_static, "static friction", 0.0)
        kinetic = _number(friction_kinetic, "kinetic friction", 0.0)
        if kinetic > static:
            raise ValueError(f"kinetic friction {kinetic:g} must not be above static friction {static:g}")
        if kind not in (STATIC, HELD, FREE, KINEMATIC):
            raise ValueError(f"a body is STATIC (0), HELD (1), FREE (2) or KINEMATIC (3), not {kind!r}")
        moves = np.asarray(velocity, dtype=np.float64)
        if moves.shape != (6,) or not np.isfinite(moves).all():
            raise ValueError(f"body velocity must be six finite numbers, not {velocity!r}")
        if kind in (STATIC, HELD) and moves.any():
            raise ValueError("a body that has a velocity must be FREE or KINEMATIC")
        if (kind == FREE) != (inertia is not None):
            raise ValueError("a FREE body needs an inertia, and no other one has any")
        torsional = _number(torsional_friction, "torsional friction", 0.0)
        rolling = _number(rolling_friction, "rolling friction", 0.0)
        radius = _number(rounding, "rounding", 0.0)
        ball = radius > 0.0 and not self._triangles[mesh_id]["vertices"].any()
        if inertia is not None:
            ball = ball and not inertia["centre"].any()
        bounce = np.zeros(1, BODY_INERTIA)[0]
        bounce["axes"][3] = 1.0
        bounce["restitution"] = _number(restitution, "restitution", 0.0)
        bounce["rest_speed"] = _number(rest_speed, "rest speed", 0.0)
        if bounce["restitution"] > 1.0:
            raise ValueError(f"restitution must be between 0 and 1, given {restitution!r}")
        place = _vector(position, "body position")
        turn = unit_quaternion(orientation, "body orientation")
        friction = (static, kinetic, torsional, rolling)
        self._bodies.append((place, turn, moves, *friction, radius, mesh_id, kind, ball, surface_id))
        self._inertias.append(bounce if inertia is None else inertia)
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
        *,
        dt: float = 1e-3,
        gravity: Sequence[float] = (0.0, 0.0, 0.0),
        tool_inertia: np.void | None = None,
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
        if tool_mesh_id == -1 and tool_inertia is not None:
            raise ValueError("a sphere tip has no mass: a tool_inertia belongs to a tool that is a mesh")
        if tool_inertia is not None and turning == 0.0:
            raise ValueError("a tool with mass must yield to what it touches: turning must be above 0")
        if not dt > 0.0 or not np.isfinite(dt):
            raise ValueError(f"dt must be a positive number of seconds, not {dt!r}")
        pull = _vector(gravity, "gravity")
        bodies = np.array(self._bodies, BODY)
        if np.isin(bodies["kind"], (FREE, KINEMATIC)).any() and turning == 0.0:
            raise ValueError("bodies that move need a tool that is a mesh and yields (turning above 0)")
        if bodies["rounding"].any() and tool_mesh_id == -1:
            raise ValueError("a body with a rounding needs a tool that is a mesh")
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
        reach = radius if tool_mesh_id == -1 else self._farthest(tool_mesh_id)
        for body in bodies:
            farthest = self._farthest(body["mesh_id"]) + float(body["rounding"])
            reach = max(reach, farthest + float(np.abs(body["position"]).max()))
        if alert < ALERT_RESOLUTION * reach:
            raise ValueError(
                f"eps_alert {alert:g} is too small for coordinates up to {reach:g} m: at least "
                f"{ALERT_RESOLUTION * reach:g} is needed"
            )
        world = np.zeros(1, WORLD)
        ratio = _number(turning, "turning", 0.0)
        offset = _vector(tip_offset, "tip offset")
        world[0] = (radius, offset, alert, safety, forget, ratio, dt, pull, tool_mesh_id, 0)
        inertias = np.zeros(len(self._bodies) + 1, BODY_INERTIA)
        inertias["axes"][:, 3] = 1.0
        for body_id, inertia in enumerate(self._inertias):
            inertias[body_id] = inertia
        if tool_inertia is not None:
            inertias[-1] = tool_inertia
        return Model(world, bodies, meshes, nodes, triangles, inertias)

    def _farthest(self, mesh_id: int) -> float:
        """A distance from the mesh's origin beyond which it has no point, m."""
        root = self._nodes[mesh_id][0]
        return float(np.linalg.norm(root["centre"]) + root["radius"])
