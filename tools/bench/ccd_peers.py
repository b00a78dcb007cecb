"""Other libraries' answers about two placed meshes: python-fcl and coal, where they are installed."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tools.scenes import Part
from tools.scenes.path import matrix

try:
    import fcl
except ImportError:
    fcl = None
try:
    import coal
except ImportError:
    coal = None

Timed = Callable[[np.ndarray, np.ndarray], float]
"""(pose before (7,), wanted pose (7,)) -> us"""


class FclScene:
    """The moving part and the others in python-fcl. Raises ImportError where it is not installed."""

    def __init__(self, moving: Part, others: list[Part]) -> None:
        if fcl is None:
            raise ImportError("python-fcl is not installed")
        self.moving = fcl.CollisionObject(_fcl_mesh(moving), fcl.Transform())
        self.others = [fcl.CollisionObject(_fcl_mesh(part), _fcl_pose(_pose_of(part))) for part in others]
        self.places = [_fcl_pose(_pose_of(part)) for part in others]

    def _place(self, pose: np.ndarray) -> None:
        self.moving.setTransform(_fcl_pose(pose))

    def collides(self, pose: np.ndarray) -> bool:
        """Does the moving part at a pose (7,) meet any other?"""
        self._place(pose)
        request = fcl.CollisionRequest(num_max_contacts=1)
        return any(fcl.collide(other, self.moving, request, fcl.CollisionResult()) > 0 for other in self.others)

    def distance(self, pose: np.ndarray) -> float:
        """Distance of the moving part at a pose (7,) to the nearest other, m; below 0 where they meet."""
        self._place(pose)
        request = fcl.DistanceRequest()
        return min(fcl.distance(other, self.moving, request, fcl.DistanceResult()) for other in self.others)

    def continuous(self, solver: Any = None) -> Timed:
        """Time of continuousCollide from one pose to another along a screw, by its default solver or another one."""
        request = fcl.ContinuousCollisionRequest()
        request.ccd_motion_type = fcl.CCDMotionType.CCDM_SCREW
        if solver is not None:
            request.ccd_solver_type = solver

        def timed(before: np.ndarray, wanted: np.ndarray) -> float:
            goal = _fcl_pose(wanted)
            spent = 0
            for other, place in zip(self.others, self.places, strict=True):
                self._place(before)
                result = fcl.ContinuousCollisionResult()
                began = time.perf_counter_ns()
                fcl.continuousCollide(self.moving, goal, other, place, request, result)
                spent += time.perf_counter_ns() - began
            return spent * 1e-3

        return timed


def coal_distance(moving: Part, others: list[Part]) -> Timed:
    """Time of coal's distance (trees of OBBRSS) at the pose before. Raises ImportError where it is not installed."""
    if coal is None:
        raise ImportError("coal is not installed")
    own = _coal_mesh(moving)
    meshes = [(_coal_mesh(part), _coal_pose(_pose_of(part))) for part in others]
    request = coal.DistanceRequest()

    def timed(before: np.ndarray, wanted: np.ndarray) -> float:
        here = _coal_pose(before)
        spent = 0
        for mesh, place in meshes:
            result = coal.DistanceResult()
            began = time.perf_counter_ns()
            coal.distance(mesh, place, own, here, request, result)
            spent += time.perf_counter_ns() - began
        return spent * 1e-3

    return timed


def peers(moving: Part, others: list[Part]) -> tuple[dict[str, Timed], list[str]]:
    """The peers by name, and a sentence for each that is absent."""
    found: dict[str, Timed] = {}
    absent = []
    if fcl is None:
        absent.append("python-fcl is not installed (pip install python-fcl): not compared.")
    else:
        scene = FclScene(moving, others)
        found["fcl_continuous"] = scene.continuous()
        found["fcl_continuous_naive"] = scene.continuous(fcl.CCDSolverType.CCDC_NAIVE)
    if coal is None:
        absent.append("coal is not installed (pip install coal): not compared.")
    else:
        found["coal_distance"] = coal_distance(moving, others)
    return found, absent


def _pose_of(part: Part) -> np.ndarray:
    return np.concatenate([part.position, part.orientation])


def _fcl_pose(pose: np.ndarray) -> Any:
    return fcl.Transform(matrix(pose[3:]), pose[:3])


def _fcl_mesh(part: Part) -> Any:
    mesh = fcl.BVHModel()
    mesh.beginModel(len(part.vertices), len(part.faces))
    mesh.addSubModel(part.vertices, part.faces)
    mesh.endModel()
    return mesh


def _coal_pose(pose: np.ndarray) -> Any:
    return coal.Transform3s(matrix(pose[3:]), np.array(pose[:3]))


def _coal_mesh(part: Part) -> Any:
    mesh = coal.BVHModelOBBRSS()
    mesh.beginModel(len(part.faces), len(part.vertices))
    vertices, faces = coal.StdVec_Vec3s(), coal.StdVec_Triangle()
    vertices.extend([np.array(vertex) for vertex in part.vertices])
    faces.extend([coal.Triangle(*map(int, face)) for face in part.faces])
    mesh.addSubModel(vertices, faces)
    mesh.endModel()
    return mesh
