"""Certificate of free flight: what touches nothing moves by gravity and drag alone, or as it is led.

A body that is stopped early went a part of its way, along the screw of the whole tick, and keeps the energy of the
height where it is.
"""

import numpy as np
from scipy.spatial.transform import Rotation

from bridge.verify.body import ROUNDING, TINY, Body
from bridge.verify.certificate import Certificate
from bridge.verify.history import History
from bridge.verify.motions import Pose, angle_between, turned_freely
from bridge.verify.motions import way as screw

HALVINGS = 12
"""How often the step of a body may be halved."""


class FreeFlight:
    """Judges bodies that touch nothing, and kinematic ones, which nothing stops for good."""

    def __init__(self, history: History):
        self._history = history
        claim = "a body that touches nothing moves by gravity and drag alone"
        self.certificate = Certificate("free flight", claim, "m")

    def judge_kinematic(self, body: int, row: int) -> None:
        """A kinematic body keeps its velocity and goes along it, or a part of it where it is blocked."""
        history = self._history
        state, before = history.state(body, row), history.state(body, row - 1)
        change = np.linalg.norm(state["linear"] - before["linear"])
        change += self._reach(body) * np.linalg.norm(state["angular"] - before["angular"])
        start, end = history.pose(body, row - 1), history.pose(body, row)
        origin = start.position
        shift, turn = history.dt * np.array(state["linear"]), history.dt * np.array(state["angular"])
        went, turned = end.position - origin, Rotation.from_matrix(end.rotation @ start.rotation.T).as_rotvec()
        share = _share(np.concatenate([went, turned]), np.concatenate([shift, turn]))
        stopped = history.report["stopped"][row] > 0
        if not stopped:
            share = 1.0
        # a screw that begins with the velocity ends beside the chord of one that ends at it
        bow = 0.5 * float(np.linalg.norm(shift) * np.linalg.norm(turn))
        off = max(float(np.linalg.norm(went - share * shift)) - bow, 0.0)
        off += self._reach(body) * float(np.linalg.norm(turned - share * turn))
        size = float(np.abs(origin).max()) + self._reach(body)
        self.certificate.judge(history.ticks[row], off, ROUNDING * size, f"{history.names[body]}, place")
        where = f"{history.names[body]}, velocity x tick"
        self.certificate.judge(history.ticks[row], history.dt * float(change), 0.0, where)

    def _reach(self, body: int) -> float:
        shape = self._history.shapes[body]
        return shape.radius + float(np.linalg.norm(shape.centre))

    def judge(self, body: Body, row: int) -> None:
        """What touches nothing moves by gravity and drag, or a part of that way where it is stopped."""
        history = self._history
        tick, name, dt = history.ticks[row], history.names[body.id], history.dt
        share = 1.0
        way = dt * (body.kicked - 0.5 * body.kick)
        went = body.centre_end - body.centre
        turned = turned_freely(body.frame, body.moments, body.spin_kicked, dt)
        if turned is None:
            self.certificate.leave("turns too fast to tell")
            return
        spin, kicked = body.spin_kicked, body.kicked
        if history.report["stopped"][row] > 0:
            share = self._stopped_at(body, way, went, turned)
        off = min(self._off_way(body, way, turned, share, stride) for stride in _strides(share))
        size = float(np.abs(body.centre).max()) + body.radius + dt * float(np.linalg.norm(kicked))
        self.certificate.judge(tick, off, ROUNDING * size, f"{name}, place")
        off = float(np.linalg.norm(body.v1 - kicked)) if share == 1.0 else off_parabola(body, went, dt)
        off += body.radius * body.speed_of(body.spin1 - spin)
        size = float(np.linalg.norm(body.v0) + np.linalg.norm(dt * history.gravity)) + body.radius * body.speed_of(spin)
        self.certificate.judge(tick, dt * off, ROUNDING * dt * size + TINY * dt * TINY, f"{name}, velocity x tick")

    @staticmethod
    def _off_way(body: Body, way: np.ndarray, turned: np.ndarray, share: float, stride: float) -> float:
        """How far a body is from a share of its way, m, in a step of a stride of it (as a share, too)."""
        middle, frame = body.centre + way, turned
        if share < 1.0:
            turn = Rotation.from_matrix(turned @ body.frame.T).as_rotvec()
            ends = Rotation.from_rotvec(stride * turn).as_matrix() @ body.frame if stride < 1.0 else turned
            middle, frame = _screw(body, stride * way, ends, share / stride)
        return float(np.linalg.norm(body.centre_end - middle)) + body.radius * angle_between(body.frame_end, frame)

    @staticmethod
    def _stopped_at(body: Body, way: np.ndarray, went: np.ndarray, turned: np.ndarray) -> float:
        """The share of its way that it executed, from where it is."""
        turn = Rotation.from_matrix(turned @ body.frame.T).as_rotvec()
        done = Rotation.from_matrix(body.frame_end @ body.frame.T).as_rotvec()
        if np.linalg.norm(turn) > 1e-9:
            return _share(done, turn)
        return _share(went, way)


def _share(went: np.ndarray, way: np.ndarray) -> float:
    """How much of a way was gone, 0..1."""
    square = float(way @ way)
    return min(max(float(went @ way) / square, 0.0), 1.0) if square > 0.0 else 1.0


def off_parabola(body: Body, went: np.ndarray, dt: float) -> float:
    """By how much (m/s) a body that was stopped in flight, after a way (3,), has another velocity than it may have.

    It has a part of its kick, by which its energy is what gravity made it on the way that it went: below 0 or above 1
    where its screw, which begins beside its straight way where it turns, has led it farther than that would.
    """
    square = float(body.kick @ body.kick)
    missing = body.kicked - body.v1
    if square == 0.0:
        return float(np.linalg.norm(missing))
    part = float(missing @ body.kick) / square
    off = float(np.linalg.norm(missing - part * body.kick))
    # energy leaves two velocities along the kick: of a body that a screw took beyond its parabola the nearer one counts
    other = 2.0 * float(body.kicked @ body.kick) / square - part
    if abs(part) > abs(other) * (1.0 + 1e-9) + 1e-12:
        off += max(-part, part - 1.0, 0.0) * float(np.sqrt(square))
    unfallen = float(body.kick @ (body.kicked - 0.5 * body.kick)) - float(body.kick @ went) / dt
    gained = 0.5 * float(body.v1 @ body.v1 - body.kicked @ body.kicked) + unfallen
    # The straight way cuts off the summit: what has not the energy for where it is there neither rises nor falls.
    gained -= max(unfallen - 0.5 * float(body.kick @ body.kicked) ** 2 / square, 0.0)
    speed = float(np.linalg.norm(body.kicked) + np.linalg.norm(body.kick))
    # a place is known to an ulp of its coordinates
    known = 4e-16 * float(np.abs(body.centre).max()) * float(np.sqrt(square)) / dt
    return off + max(abs(gained) - known, 0.0) / speed


def _strides(share: float) -> list[float]:
    """Steps that a share of a way may have been gone in: the whole, or what is left when that is halved a few times,
    as it is for bodies that come forward hardly at all."""
    return [2.0**-k for k in range(HALVINGS) if k == 0 or 2.0**-k >= share * (1.0 - 1e-9)]


def _screw(body: Body, way: np.ndarray, turned: np.ndarray, u: float) -> tuple[np.ndarray, np.ndarray]:
    """(centre of mass, principal axes) part of the way along the screw of the whole tick; a ball goes straight."""
    if body.is_ball:
        turn = Rotation.from_matrix(turned @ body.frame.T).as_rotvec()
        return body.centre + u * way, Rotation.from_rotvec(u * turn).as_matrix() @ body.frame
    start, end = Pose(body.centre, body.frame), Pose(body.centre + way, turned)
    there = screw(start, end, np.zeros(3), body.radius).pose(u)
    return there.position, there.rotation
