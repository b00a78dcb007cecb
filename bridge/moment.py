"""What there is to see at one tick, in the scene frame: the common ground of window and picture."""

from dataclasses import dataclass

import numpy as np

from bridge.scene.rounded import surface
from haptics.states import CommandKind, CommandResult, EngagementState, Reason
from rtcore.model import Model, moving_bodies
from rtcore.tables import POSE


@dataclass(frozen=True)
class Moment:
    """One tick, ready to be drawn. Positions in m and forces in N, scene frame."""

    tick: int
    seconds: float
    """tick times tick period"""
    proxy: np.ndarray
    """(3,) tip centre"""
    device: np.ndarray
    """(3,) image of the device: where it wants the tip centre"""
    proxy_turn: np.ndarray
    """(4,) xyzw, tool -> scene"""
    device_turn: np.ndarray
    """(4,) xyzw: how the device wants the tool to be turned"""
    force: np.ndarray
    """(3,) what the hand feels"""
    contacts: tuple[tuple[np.ndarray, np.ndarray, float, bool], ...]
    """point (3,), normal (3,), gap (m), sliding; of each contact"""
    touched: tuple[int, ...]
    """ids of the bodies in contact"""
    state: EngagementState
    reason: Reason
    gap: float | None
    """smallest, m"""
    degraded: int

    @property
    def text(self) -> str:
        """One line for a person."""
        gap = "" if self.gap is None else f"   gap {1e3 * self.gap:.2f} mm"
        cut = "   work cut short" if self.degraded else ""
        why = "" if self.reason is Reason.NONE else f" ({self.reason.name.lower().replace('_', ' ')})"
        return (
            f"{self.seconds:7.2f} s   {self.state.name}{why}   force {np.linalg.norm(self.force):5.2f} N"
            f"   {len(self.contacts)} contact{'' if len(self.contacts) == 1 else 's'}{gap}{cut}"
        )


def rotation_matrix(quaternion: np.ndarray) -> np.ndarray:
    """(3, 3) of a unit quaternion [x, y, z, w]."""
    x, y, z, w = (float(c) for c in quaternion)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


def rotate(quaternions: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Vectors (n, 3) turned by unit quaternions (n, 4) or (4,) [x, y, z, w]."""
    q = np.broadcast_to(np.asarray(quaternions, dtype=float), (len(vectors), 4))
    twice = 2.0 * np.cross(q[:, :3], vectors)
    return vectors + q[:, 3:] * twice + np.cross(q[:, :3], twice)


def scene_forces(records: np.ndarray) -> np.ndarray:
    """(n, 3) what the hand feels in each of (n,) RECORD, turned from the device frame into the scene, N.

    The turn is read from the record itself (orientation of the device in the scene and in its own frame), so that it
    holds after re-anchoring too.
    """
    given = np.array(records["input"]["sample"]["orientation"], dtype=float)
    given[np.linalg.norm(given, axis=1) < 0.5] = (0.0, 0.0, 0.0, 1.0)  # no sample yet: no force to turn either
    conjugate = given * np.array([-1.0, -1.0, -1.0, 1.0])
    in_device = rotate(conjugate, records["output"]["wrench"][:, :3])
    return rotate(records["output"]["device_orientation"], in_device)


def moment(record: np.ndarray | np.void, dt: float) -> Moment:
    """Read one RECORD; ``dt`` is the tick period in s."""
    output = record["output"]
    report = output["report"]
    count = int(report["contact_count"])
    contacts = report["contacts"][:count]
    one = np.asarray(record).reshape(1)
    return Moment(
        tick=int(record["tick"]),
        seconds=float(record["tick"]) * dt,
        proxy=np.array(output["proxy_position"]),
        device=np.array(output["device_position"]),
        proxy_turn=np.array(output["proxy_orientation"]),
        device_turn=np.array(output["device_orientation"]),
        force=scene_forces(one)[0],
        contacts=tuple(
            (np.array(c["point"]), np.array(c["normal"]), float(c["gap"]), bool(c["sliding"])) for c in contacts
        ),
        touched=tuple(int(c["body_id"]) for c in contacts),
        state=EngagementState(int(output["state"])),
        reason=Reason(int(output["reason"])),
        gap=float(report["smallest_gap"]) if count else None,
        degraded=int(report["degraded"]),
    )


def moved_poses(model: Model, records: np.ndarray, poses: np.ndarray | None = None) -> np.ndarray:
    """(n_bodies,) POSE after (n,) records: bodies that a command posed anew or that move by themselves, others as they
    were."""
    if poses is None:
        poses = np.zeros(len(model.bodies), POSE)
        poses["position"] = model.bodies["position"]
        poses["orientation"] = model.bodies["orientation"]
    command = records["input"]["command"]
    done = records["output"]["command_result"] == CommandResult.DONE
    for values in command["values"][(command["kind"] == CommandKind.POSE_BODY) & done]:
        poses[int(values[0])] = (values[1:4], values[4:8])
    if len(records) and "bodies" in (records.dtype.names or ()):
        moving = moving_bodies(model.bodies)
        for name in ("position", "orientation"):
            poses[name][moving] = records["bodies"][name][-1]
    return poses


def poses_changed(records: np.ndarray) -> bool:
    """May bodies be elsewhere after (n,) records than before?"""
    return "bodies" in (records.dtype.names or ()) or bool(np.any(records["output"]["command_id"]))


def tool_triangles(model: Model) -> np.ndarray | None:
    """(n, 3, 3) triangles of a tool mesh, m, from the tip centre in tool axes; None for a sphere tip."""
    mesh_id = int(model.world[0]["tool_mesh_id"])
    return None if mesh_id < 0 else _own_triangles(model, mesh_id)


def placed_triangles(triangles: np.ndarray, position: np.ndarray, orientation: np.ndarray) -> np.ndarray:
    """(n, 3, 3) triangles in the scene of something that stands at position (3,), orientation (4,) xyzw."""
    return triangles @ rotation_matrix(orientation).T + np.asarray(position)


def surface_triangles(model: Model, body_id: int) -> np.ndarray:
    """(n, 3, 3) triangles of a body, m, its own frame; of a ball or capsule such as are made for pictures."""
    body = model.bodies[body_id]
    return surface(_own_triangles(model, int(body["mesh_id"])), float(body["rounding"]))


def body_triangles(model: Model, poses: np.ndarray | None = None) -> list[np.ndarray]:
    """Per body, its (n, 3, 3) triangles in the scene frame, at ``poses`` ((n_bodies,) POSE) or where it was loaded.

    Those of balls and capsules are made for pictures.
    """
    surfaces = []
    for body_id, body in enumerate(model.bodies):
        pose = body if poses is None else poses[body_id]
        local = surface_triangles(model, body_id)
        surfaces.append(placed_triangles(local, pose["position"], pose["orientation"]))
    return surfaces


def _own_triangles(model: Model, mesh_id: int) -> np.ndarray:
    mesh = model.meshes[mesh_id]
    first, count = int(mesh["triangle_first"]), int(mesh["triangle_count"])
    return model.triangles["vertices"][first : first + count]
