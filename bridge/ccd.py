"""When do two meshes first touch while one moves from one pose to another: the question behind `hapticd ccd`."""

import math
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from bridge.scene.cache import PreparedMesh, prepare
from bridge.scene.errors import SceneError
from bridge.scene.frames import Pose, place
from bridge.scene.mesh import read_bytes
from bridge.scene.paths import resolve
from bridge.scene.sources import Source

FACE = 6
"""Feature code of a face interior in HIT records."""
MOTIONS = ("screw", "tan-half", "algebraic")
OVERLAPS = ("inflated", "interval", "sphere", "start", "end")
ELEMENTARY = ("advance", "cubic", "interval")
PRIMITIVES = ("box", "plate", "sphere", "cylinder", "capsule", "plane")
UNIT_TOLERANCE = 1e-3
"""Farthest a given quaternion's norm may be from 1; nearer ones are normalised."""
SUBDIVISION = 0.15
"""Constant k of the interval box test (Redon 2002, 3.3.4)."""
TOUCHING = 1e-6
"""Share of the smaller mesh's size below which the two points of a contact are too near to give a direction."""
RESOLUTION = 1e-6
"""A contact may be reported early by this share of the smaller mesh's size, or a thousandth of the separation."""


@dataclass(frozen=True)
class Feature:
    """A vertex, an edge or the inside of a face of one of the meshes."""

    kind: str
    """`vertex`, `edge` or `face`"""
    face: int
    """Row in the imported mesh"""
    corners: list[int]
    """Corners 0..2 of that face that it consists of"""

    def __str__(self) -> str:
        if self.kind == "face":
            return f"face {self.face}"
        which = "-".join(map(str, self.corners))
        return f"{self.kind} {which} of face {self.face}"


@dataclass(frozen=True)
class Answer:
    """What a query found. Lengths in m, frame of the first mesh."""

    found: bool
    """The distance comes down to the separation at `time`"""
    truncated: bool
    """The work allowed ran out: the motion is free before `time`, and nothing is said of what follows"""
    time: float
    """The motion is free before it, 0..1"""
    position: list[float]
    """Pose of the second mesh then"""
    orientation: list[float]
    gap_at_start: float
    """Distance of the two surfaces where the motion begins"""
    gap: float | None
    """And at the contact"""
    point: list[float] | None
    """Of the contact, on the first mesh"""
    normal: list[float] | None
    """Unit, from the first mesh to the second"""
    first_feature: Feature | None
    second_feature: Feature | None
    motion: str
    """Law that was used: `still`, `screw`, `tan-half` or `algebraic`"""
    angle: float
    """By which it turns, rad"""
    units: int
    """Work done: box tests and elementary tests"""
    work: dict[str, int]
    """The same by kind"""
    microseconds: float
    """Time that the query took, when it ran a second time"""

    def to_dict(self) -> dict[str, Any]:
        """As plain values for JSON."""
        return asdict(self)


def load_shape(text: str, scale: float = 1.0) -> tuple[str, PreparedMesh]:
    """(name, mesh) of a mesh file, `pybullet_data:FILE`, or a primitive such as `box:0.1,0.1,0.1` with sizes in m.

    Raises:
        SceneError: the file or the sizes cannot be used.
    """
    if not (math.isfinite(scale) and scale > 0.0):
        raise SceneError(f"{text}: a scale must be a number above 0, not {scale:g}")
    kind, colon, sizes = text.partition(":")
    factors = (scale, scale, scale)
    if colon and kind in PRIMITIVES:
        try:
            size = tuple(float(part) for part in sizes.split(","))
        except ValueError:
            raise SceneError(f"{text}: sizes of a {kind} are numbers with commas between them, in m") from None
        return text, prepare([Source(kind, kind, size=size, scale=factors)])
    path = resolve(text)
    return path.name, prepare([Source(str(path), path.suffix.lower(), read_bytes(path), scale=factors)])


def parse_pose(text: str) -> Pose:
    """A pose from `x,y,z` (m), with a rotation vector `rx,ry,rz` (degrees) or a quaternion `qx,qy,qz,qw` behind.

    Raises ValueError that says what would be right.
    """
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = []
    if len(values) not in (3, 6, 7) or not all(map(math.isfinite, values)):
        raise ValueError(
            f"{text!r} is not a pose: give x,y,z in m, or x,y,z,rx,ry,rz with a rotation vector in degrees, or "
            "x,y,z,qx,qy,qz,qw"
        )
    position = np.array(values[:3])
    if len(values) == 7:
        norm = float(np.linalg.norm(values[3:]))
        if abs(norm - 1.0) > UNIT_TOLERANCE:
            raise ValueError(f"{text!r}: the norm of the quaternion is {norm:.6g}; it must be 1")
        return position, np.array(values[3:]) / norm
    return position, Rotation.from_rotvec(np.radians(values[3:] or [0.0, 0.0, 0.0])).as_quat()


def first_time(
    first: PreparedMesh,
    second: PreparedMesh,
    start: Pose,
    end: Pose,
    *,
    separation: float = 0.0,
    motion: str = "screw",
    overlap: str = "inflated",
    elementary: str = "advance",
    units: int = 10_000_000,
    cull: bool = False,
) -> Answer:
    """Find the first time that the second mesh, on its way from one pose to the other, comes near the first.

    Args:
        start, end: of the second mesh in the frame of the first, which stands still.
        separation: distance that counts as contact, m.
        motion: law of the screw between the poses, one of MOTIONS.
        overlap: box test, one of OVERLAPS. `start` and `end` look at one end of the motion only and miss contacts.
        elementary: test of two features, one of ELEMENTARY.
        units: work allowed.
        cull: leave out parts whose faces recede; needs bodies that do not overlap at the start.

    Raises:
        ValueError: a choice that is not known.
    """
    from rtcore import motion as motions
    from rtcore.collision import overlap as tests
    from rtcore.collision.elementary import advance, cubic, interval
    from rtcore.collision.first_contact import first_contact
    from rtcore.collision.pair_state import make_query_work
    from rtcore.tables import (
        COUNTERS,
        HIT,
        QUERY,
        QUERY_CULL,
        QUERY_ORDER,
        QUERY_OWNED,
        QUERY_PASS_TIME,
        RELATIVE,
    )

    laws = dict(zip(MOTIONS, (motions.SCREW, motions.TAN_HALF, motions.ALGEBRAIC), strict=True))
    box_tests = dict(
        zip(
            OVERLAPS,
            (
                tests.OVERLAP_INFLATED,
                tests.OVERLAP_INTERVAL,
                tests.OVERLAP_SPHERE,
                tests.OVERLAP_START,
                tests.OVERLAP_END,
            ),
            strict=True,
        )
    )
    modules = dict(zip(ELEMENTARY, (advance, cubic, interval), strict=True))
    for what, chosen, known in (
        ("motion", motion, MOTIONS),
        ("overlap", overlap, OVERLAPS),
        ("elementary", elementary, ELEMENTARY),
    ):
        if chosen not in known:
            raise ValueError(f"{what} {chosen!r} is not one of {', '.join(known)}")
    kernel = first_contact
    if overlap != "inflated" or elementary != "advance":
        from rtcore.collision.variants import first_contact_by

        kernel = first_contact_by(modules[elementary])

    nodes, triangles, root = _joined(first, second)
    relative = np.zeros(1, RELATIVE)[0]
    motions.still(relative["first"], (0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))
    centre = Rotation.from_quat(start[1]).apply(nodes["centre"][root]) + start[0]
    # fmt: off
    motions.between(
        relative["second"], laws[motion], _tuple(start[0]), _tuple(start[1]), _tuple(end[0]), _tuple(end[1]),
        _tuple(centre),
    )
    # fmt: on
    query = np.zeros(1, QUERY)[0]
    query["separation"] = separation
    size = 2.0 * min(float(nodes["radius"][0]), float(nodes["radius"][root]))
    query["position_tolerance"] = max(RESOLUTION * size, 1e-3 * separation)
    query["time_tolerance"] = 1e-9
    query["limit"] = 1.0
    query["subdivision"] = SUBDIVISION
    query["units"] = units
    query["overlap"] = box_tests[overlap]
    query["elementary"] = ELEMENTARY.index(elementary)
    query["flags"] = QUERY_PASS_TIME | QUERY_ORDER | QUERY_OWNED | (QUERY_CULL if cull else 0)
    work = make_query_work()
    hit = np.zeros(1, HIT)[0]
    for _ in range(2):  # once to load or compile, once for the time
        counters = np.zeros(1, COUNTERS)[0]
        began = time.perf_counter()
        kernel(nodes, triangles, 0, root, relative, query, work[0], counters, hit)
        took = time.perf_counter() - began
    position, orientation = motions.pose(relative["second"], float(hit["time"]))
    found = bool(hit["found"])
    normal = hit["normal"].copy()
    if found and hit["gap"] < TOUCHING * size:
        normal = _square_to_features(triangles, hit, (np.array(position), np.array(orientation)))
    names = {motions.STILL: "still", **{number: name for name, number in laws.items()}}
    return Answer(
        found=found,
        truncated=bool(hit["truncated"]),
        time=float(hit["time"]),
        position=list(position),
        orientation=list(orientation),
        gap_at_start=_gap(nodes, triangles, root, relative, work),
        gap=float(hit["gap"]) if found else None,
        point=hit["point"].tolist() if found else None,
        normal=normal.tolist() if found else None,
        first_feature=_feature(triangles, int(hit["first_triangle"]), int(hit["first_feature"])) if found else None,
        second_feature=_feature(triangles, int(hit["second_triangle"]), int(hit["second_feature"])) if found else None,
        motion=names[int(relative["second"]["kind"])],
        angle=float(relative["second"]["angle"]),
        units=int(hit["units_used"]),
        work={name: int(counters[name]) for name in COUNTERS.names or ()},
        microseconds=1e6 * took,
    )


def _square_to_features(triangles: np.ndarray, hit: np.void, pose: Pose) -> np.ndarray:
    """The normal (3,) of a contact from its face, or its two edges, in the sense of the one in the HIT record.

    The direction between two points that all but touch is rounding; that of the features is not.
    """
    first = triangles["vertices"][hit["first_triangle"]]
    second = place(pose, triangles["vertices"][hit["second_triangle"]])
    a, b = int(hit["first_feature"]), int(hit["second_feature"])
    if a == FACE or b == FACE:
        corners = first if a == FACE else second
        normal = np.cross(corners[1] - corners[0], corners[2] - corners[0])
    elif a > 2 and b > 2:
        one, other = first[(a - 2) % 3] - first[a - 3], second[(b - 2) % 3] - second[b - 3]
        normal = np.cross(one, other)
        if np.linalg.norm(normal) < 1e-6 * np.linalg.norm(one) * np.linalg.norm(other):
            return hit["normal"].copy()
    else:
        return hit["normal"].copy()
    length = np.linalg.norm(normal)
    if length == 0.0:
        return hit["normal"].copy()
    return normal / (length if normal @ hit["normal"] >= 0.0 else -length)


def _gap(nodes: np.ndarray, triangles: np.ndarray, root: int, relative: np.void, work: np.ndarray) -> float:
    """Distance of the two surfaces at the start, m."""
    from rtcore.collision.mesh_distance import mesh_distance
    from rtcore.collision.overlap import place_pair
    from rtcore.tables import HIT, PLACEMENT

    placement, hit = np.zeros(1, PLACEMENT)[0], np.zeros(1, HIT)[0]
    place_pair(relative, _tuple(nodes["centre"][root]), float(nodes["radius"][root]), 0.0, 0.0, placement)
    return float(mesh_distance(nodes, triangles, 0, root, placement, math.inf, work[0], hit))


def _tuple(values: np.ndarray) -> Any:
    return tuple(float(value) for value in values)


def _joined(first: PreparedMesh, second: PreparedMesh) -> tuple[np.ndarray, np.ndarray, int]:
    """Both trees in common tables, and the row of the second one's root."""
    nodes = second.nodes.copy()
    inner = nodes["count"] == 0
    nodes["right"][inner] += len(first.nodes)
    nodes["first"][~inner] += len(first.triangles)
    nodes["parent"][1:] += len(first.nodes)
    both = np.concatenate([first.nodes, nodes]), np.concatenate([first.triangles, second.triangles])
    return *both, len(first.nodes)


def _feature(triangles: np.ndarray, row: int, feature: int) -> Feature:
    face = int(triangles["face_id"][row])
    if feature < 3:
        return Feature("vertex", face, [feature])
    if feature < 6:
        return Feature("edge", face, [feature - 3, (feature - 2) % 3])
    return Feature("face", face, [])


def motion_poses(start: Pose, end: Pose, motion: str, centre: np.ndarray, times: np.ndarray) -> list[Pose]:
    """Where the second mesh is at some times; centre: of it at the start, (3,) m."""
    from rtcore import motion as motions
    from rtcore.tables import MOTION

    laws = dict(zip(MOTIONS, (motions.SCREW, motions.TAN_HALF, motions.ALGEBRAIC), strict=True))
    record = np.zeros(1, MOTION)[0]
    # fmt: off
    motions.between(
        record, laws[motion], _tuple(start[0]), _tuple(start[1]), _tuple(end[0]), _tuple(end[1]), _tuple(centre),
    )
    # fmt: on
    poses = (motions.pose(record, float(u)) for u in times)
    return [(np.array(position), np.array(orientation)) for position, orientation in poses]


def lines(first: str, second: str, separation: float, answer: Answer) -> list[str]:
    """The answer for people, one fact a line."""
    turn = f", turning by {math.degrees(answer.angle):.4g} degrees" if answer.angle else ""
    said = [f"{second} against {first}, motion: {answer.motion}{turn}"]
    said.append(f"  gap at the start  {answer.gap_at_start:.6g} m")
    counts = "touch" if separation == 0.0 else f"come within {separation:g} m of each other"
    if answer.truncated:
        said.append(f"  TRUNCATED         proven free before u = {answer.time:.9g}; then the work allowed ran out")
    elif answer.found:
        said.append(f"  first contact     u = {answer.time:.9g}")
    else:
        said.append(f"  free              they do not {counts} on the whole way")
    rotation = np.degrees(Rotation.from_quat(answer.orientation).as_rotvec())
    said.append(f"  pose then         {_numbers(answer.position)} m, rotation vector {_numbers(rotation)} degrees")
    if answer.found:
        said.append(f"  features          {answer.first_feature} of {first}, {answer.second_feature} of {second}")
        said.append(f"  point             {_numbers(answer.point)} m, on {first}")
        said.append(f"  normal            {_numbers(answer.normal)}, from {first} to {second}")
        said.append(f"  gap               {answer.gap:.6g} m")
    spent = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in answer.work.items() if count)
    said.append(f"  work              {answer.units} units: {spent}")
    said.append(f"  time              {answer.microseconds:.0f} us")
    return said


def _numbers(values: Any) -> str:
    return "(" + ", ".join(f"{float(value) + 0.0:.6g}" for value in values) + ")"


def save_picture(
    path: str | Path,
    names: tuple[str, str],
    meshes: tuple[PreparedMesh, PreparedMesh],
    start: Pose,
    end: Pose,
    motion: str,
    answer: Answer,
    **view: Any,
) -> Path:
    """Draw both meshes, the second at both poses and at the contact, and the contact, into a PNG; needs no display."""
    from bridge.contact_picture import draw_contact
    from bridge.picture import save

    first, second = (mesh.vertices[mesh.faces] for mesh in meshes)
    centre = second.reshape(-1, 3).min(axis=0) / 2 + second.reshape(-1, 3).max(axis=0) / 2
    placed = Rotation.from_quat(start[1]).apply(centre) + start[0]
    way = motion_poses(start, end, motion, placed, np.linspace(0.0, 1.0, 49))
    pixels = draw_contact(
        first,
        second,
        start,
        end,
        (np.array(answer.position), np.array(answer.orientation)),
        np.array([Rotation.from_quat(pose[1]).apply(centre) + pose[0] for pose in way]),
        None if answer.point is None else np.array(answer.point),
        None if answer.normal is None else np.array(answer.normal),
        names=names,
        title=_title(answer),
        note=_note(answer),
        **view,
    )
    return save(pixels, path)


def _title(answer: Answer) -> str:
    if answer.truncated:
        return f"Proven free before u = {answer.time:.4f}"
    return f"First contact at u = {answer.time:.4f}" if answer.found else "Free on the whole way"


def _note(answer: Answer) -> str:
    if not answer.found:
        return f"{answer.motion} · {answer.units} units of work"
    return f"{answer.first_feature} meets {answer.second_feature} · {answer.motion} · {answer.units} units of work"
