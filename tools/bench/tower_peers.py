"""Other engines on a tower of boxes: mujoco, pybullet and rapier3d, by default and tuned, where they are installed."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

try:
    import mujoco
except ImportError:
    mujoco = None
try:
    import pybullet
except ImportError:
    pybullet = None
try:
    import rapier3d
except ImportError:
    rapier3d = None

FALLEN = 0.05
"""Sink or shift of the top box from which a tower counts as fallen, m."""


@dataclass(frozen=True)
class Tower:
    """Boxes one on the other on the ground, the last one of another mass."""

    edge: float
    masses: tuple[float, ...]
    friction: float
    gravity: float

    @property
    def heights(self) -> np.ndarray:
        """(n,) of the centres, touching exactly, m."""
        return self.edge * (0.5 + np.arange(len(self.masses)))


@dataclass
class Course:
    """How a tower went: us of each step, and the centre (3,) of the top box before, and after each step."""

    us: np.ndarray
    top: np.ndarray
    """(steps + 1, 3) m"""

    def summary(self, dt: float) -> dict[str, Any]:
        """Median and largest us, sink, mm, and horizontal speed of the top box over the second half, m/s."""
        half = len(self.us) // 2
        moved = self.top[-1] - self.top[0]
        shift = float(np.linalg.norm(self.top[-1, :2] - self.top[half, :2]))
        fallen = -moved[2] > FALLEN or np.linalg.norm(moved[:2]) > FALLEN
        return {
            "step_us": round(float(np.median(self.us)), 1),
            "p99_us": round(float(np.percentile(self.us, 99)), 1),
            "sink_mm": float(f"{-1e3 * moved[2]:.3g}"),
            "creep_m_s": float(f"{shift / (dt * (len(self.us) - half)):.2g}"),
            **({"fell": True} if fallen or not np.isfinite(moved).all() else {}),
        }


def watch(step: Callable[[], object], top: Callable[[], Any], steps: int) -> Course:
    """Run so many steps; top: where the top box is, (3,)."""
    us = np.zeros(steps)
    places = np.zeros((steps + 1, 3))
    places[0] = top()
    for i in range(steps):
        began = time.perf_counter_ns()
        step()
        us[i] = (time.perf_counter_ns() - began) * 1e-3
        places[i + 1] = top()
    return Course(us, places)


def _mujoco(tower: Tower, steps: int, dt: float, tuned: bool) -> Course:
    soft = 'solref=".002 1" solimp=".9999 .9999 .001"' if tuned else ""
    half = 0.5 * tower.edge
    bodies = "".join(
        f'<body pos="0 0 {z}"><freejoint/><geom type="box" size="{half} {half} {half}" mass="{mass}"/></body>'
        for z, mass in zip(tower.heights, tower.masses, strict=True)
    )
    text = (
        f'<mujoco><option timestep="{dt}" gravity="0 0 {-tower.gravity}" cone="elliptic"/>'
        f'<default><geom friction="{tower.friction} 0 0" {soft}/></default>'
        f'<worldbody><geom type="plane" size="5 5 .1"/>{bodies}</worldbody></mujoco>'
    )
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    at = 7 * (len(tower.masses) - 1)
    return watch(lambda: mujoco.mj_step(model, data), lambda: data.qpos[at : at + 3], steps)


def _pybullet(tower: Tower, steps: int, dt: float, iterations: int) -> Course:
    client = pybullet.connect(pybullet.DIRECT)
    try:
        pybullet.setPhysicsEngineParameter(
            fixedTimeStep=dt, numSolverIterations=iterations, numSubSteps=1, physicsClientId=client
        )
        pybullet.setGravity(0.0, 0.0, -tower.gravity, physicsClientId=client)
        ground = pybullet.createCollisionShape(pybullet.GEOM_BOX, halfExtents=[5.0, 5.0, 0.5], physicsClientId=client)
        shape = pybullet.createCollisionShape(
            pybullet.GEOM_BOX, halfExtents=[0.5 * tower.edge] * 3, physicsClientId=client
        )
        bodies = [pybullet.createMultiBody(0.0, ground, basePosition=[0.0, 0.0, -0.5], physicsClientId=client)]
        for z, mass in zip(tower.heights, tower.masses, strict=True):
            bodies.append(pybullet.createMultiBody(mass, shape, basePosition=[0.0, 0.0, z], physicsClientId=client))
        for body in bodies:
            # Coefficients of two bodies are multiplied.
            pybullet.changeDynamics(
                body, -1, lateralFriction=tower.friction**0.5, linearDamping=0.0, angularDamping=0.0,
                physicsClientId=client,
            )  # fmt: skip
        return watch(
            lambda: pybullet.stepSimulation(physicsClientId=client),
            lambda: pybullet.getBasePositionAndOrientation(bodies[-1], physicsClientId=client)[0],
            steps,
        )
    finally:
        pybullet.disconnect(client)


def _rapier(tower: Tower, steps: int, dt: float, frequency: float) -> Course:
    world = rapier3d.PhysicsWorld(gravity=(0.0, 0.0, -tower.gravity))
    settings = world.integration_parameters
    settings.dt = dt
    if frequency > 0.0:
        spring = rapier3d.SpringCoefficients(natural_frequency=frequency, damping_ratio=10.0)
        settings.contact_softness = spring
        settings.static_contact_softness = spring
    ground = rapier3d.Collider.cuboid(5.0, 5.0, 0.5).translation((0.0, 0.0, -0.5)).friction(tower.friction)
    world.add_collider(ground)
    half = 0.5 * tower.edge
    top = None
    for z, mass in zip(tower.heights, tower.masses, strict=True):
        shape = rapier3d.Collider.cuboid(half, half, half).mass(mass).friction(tower.friction)
        top = world.add_body(
            rapier3d.RigidBody.dynamic().translation((0.0, 0.0, float(z))).can_sleep(False), colliders=[shape]
        )

    def place() -> tuple[float, float, float]:
        at = world.rigid_bodies[top].translation
        return at.x, at.y, at.z

    return watch(world.step, place, steps)


PEERS: dict[str, tuple[Any, Callable[[Tower, int, float], Course]]] = {
    "mujoco": (mujoco, lambda tower, steps, dt: _mujoco(tower, steps, dt, False)),
    "mujoco_tuned": (mujoco, lambda tower, steps, dt: _mujoco(tower, steps, dt, True)),
    "pybullet_50": (pybullet, lambda tower, steps, dt: _pybullet(tower, steps, dt, 50)),
    "pybullet_200": (pybullet, lambda tower, steps, dt: _pybullet(tower, steps, dt, 200)),
    "rapier3d_400_Hz": (rapier3d, lambda tower, steps, dt: _rapier(tower, steps, dt, 400.0)),
}
"""By name: its module, None where it is absent, and how a tower goes with it."""
