"""Certificates of the tool: its contacts are where they are said to be, and push as Coulomb's law and springs have it.

What each contact pushes stands in the log as the displacement that it gives the tip, push = stiffness x displacement.
So the balance of a tool without mass can be looked at in lengths: it goes by

    way* = way to the goal + sum of displacements,     turn* = turn to the goal + k / k_r sum of arm x displacement + m,

and less far where it is stopped, or beside it by what the position pass opens; the moments m are those of
:mod:`bridge.verify.moments`. Of a tool with mass the log does not hold the velocity; only its contacts are judged.
"""

from typing import Any

import numpy as np

from bridge.separation import pair_distances
from bridge.verify.body import Body
from bridge.verify.certificate import Certificate
from bridge.verify.fit import tangents
from bridge.verify.history import History
from bridge.verify.moments import pushed_turn, resisted, spring_ratio, tool_limits, within
from bridge.verify.motions import Pose, cross, pose_of
from bridge.verify.opening import Opening
from rtcore.tables import DEADBAND, DEGRADED_CONTACTS, DEGRADED_PASSES, DEGRADED_SOLVER, DEGRADED_SWEEP

PLACED = 1e-12
"""m per m: rounding of points of contacts."""
CONE = 1e-9
"""Share of the largest push by which one may be outside its cone."""
STRIDE = 8.0
"""Times eps_break that the tool may go in one stride; what is longer is gone in part."""
LEAST_STRIDE = 2.0**-12
"""Smallest share of it after ticks in which it was blocked."""
SHORT = 4.0
"""Times its bound by which a way must be below a stride to be gone whole."""
STANDSTILL = 1e-4
"""Share of eps_alert below which a motion of the tool is none."""
RESIDUAL = 1.01e-8
"""Natural-map residual: the tolerance of the tick's solver, and rounding."""
MOVING = 1e-5
"""The same beside bodies that move: the mean velocities that a tick is solved for are known to second order only. Where
there are moments, too: those that belong to pushes that the solver left undone by its tolerance are farther off."""


class ToolCertificates:
    """Judges the tool of a log row by row."""

    def __init__(self, history: History):
        self._history = history
        self.contacts = Certificate(
            "tool contacts", "each contact joins points of two surfaces, gap and normal right", "m"
        )
        self.cone = Certificate("tool cone", "each push lies in its friction cone, as a share of the largest", "")
        self.residual = Certificate("tool residual", "natural-map residual of Coulomb's law, relative", "")
        self.balance = Certificate("tool balance", "the tool goes where springs and contacts balance, or less far", "m")
        inertia: Any = history.model.inertias[history.tool]
        self._massless = float(inertia["mass"]) == 0.0
        self._yields = float(history.world["turning"]) > 0.0 or bool(history.moving)
        self._bounds: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self._strides = _strides(history)
        shape = history.shapes[history.tool]
        self._reach = shape.radius + float(np.linalg.norm(shape.centre))

    def certificates(self) -> list[Certificate]:
        """In the order of the table."""
        return [self.contacts, self.cone, self.residual, self.balance]

    def judge(self, row: int, bounces: bool) -> None:
        """The tick of a row that follows the one before; ``bounces``: bodies bounced in it."""
        history = self._history
        report: Any = history.report[row]
        contacts = report["contacts"][: int(report["contact_count"])]
        tick = history.ticks[row]
        if len(contacts):
            self._judge_cones(tick, contacts)
        if not history.has_mesh:
            self._judge_tip(row, contacts)
            return
        start = history.pose(history.tool, row - 1)
        for contact in contacts:
            self._judge_place(row, contact, start)
        if not self._yields:
            self.balance.leave("the tool is carried")
        elif not self._massless:
            self.balance.leave("the tool has mass, and its velocity is not logged")
        elif history.pull[row] <= 0.0:
            self.balance.leave("nobody holds the tool")
        elif len(contacts) == 0:
            self.balance.leave("no contacts")
        else:
            self._judge_balance(row, contacts, start, bounces)

    def _judge_cones(self, tick: int, contacts: np.ndarray) -> None:
        """Static friction bounds any push."""
        bodies = self._history.model.bodies
        push, normal = contacts["displacement"], contacts["normal"]
        along = np.sum(push * normal, axis=1)
        across = np.linalg.norm(push - along[:, None] * normal, axis=1)
        friction = np.maximum(bodies["friction_static"], bodies["friction_kinetic"])[contacts["body_id"]]
        off = np.maximum(across - friction * along, -along)
        largest = float(np.linalg.norm(push, axis=1).max())
        if largest > 0.0:
            self.cone.judge(tick, float(off.max()) / largest, CONE)

    def _off_triangles(self, body: int, point: np.ndarray, pose: Pose) -> float:
        """Distance of a point of the scene from the triangles of a body, m; inf where it is far from them."""
        triangles = self._history.shapes[body].triangles
        local = (point - pose.position) @ pose.rotation
        if body not in self._bounds:
            self._bounds[body] = (triangles.min(axis=1), triangles.max(axis=1))
        low, high = self._bounds[body]
        margin = float(self._history.world["eps_safety"])
        near = np.flatnonzero(np.all((local >= low - margin) & (local <= high + margin), axis=1))
        if len(near) == 0:
            return np.inf
        return float(pair_distances(np.broadcast_to(local, (len(near), 3, 3)).copy(), triangles[near]).min())

    def _judge_place(self, row: int, contact: Any, start: Pose) -> None:
        history = self._history
        body = int(contact["body_id"])
        stands = history.pose(body, row - 1 if body in history.moving else row)
        point, normal = np.array(contact["point"]), np.array(contact["normal"])
        # of a round body a contact is as far from its core as its radius, along the normal
        off = self._off_triangles(body, point - history.shapes[body].rounding * normal, stands)
        off = max(off, self._off_triangles(history.tool, point + contact["gap"] * normal, start))
        off = max(off, abs(float(np.linalg.norm(normal)) - 1.0) * float(contact["gap"]))
        size = float(np.abs(point).max()) + history.shapes[body].radius + history.shapes[history.tool].radius
        self.contacts.judge(history.ticks[row], off, PLACED * size, history.names[body])

    def _resisted(
        self, row: int, contacts: np.ndarray, turn: np.ndarray, ratio: float, bounces: bool
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """(turn (3,) with the moments of its contacts, these (k, 3)); None: the log does not tell what they oppose."""
        limits = tool_limits(self._history, contacts)
        free = np.isin(contacts["body_id"], self._history.free) & limits.any(axis=1)
        if free.any() and (bounces or self._history.report["stopped"][row] > 0):
            return None
        turns = self._history.dt * np.array([self._spin(row, int(body)) for body in contacts["body_id"]])
        return resisted(turn, ratio, np.array(contacts["normal"]), limits, turns)

    def _judge_balance(self, row: int, contacts: np.ndarray, start: Pose, bounces: bool) -> None:
        history = self._history
        report: Any = history.report[row]
        output: Any = history.output[row]
        goal = pose_of(output["goal_position"], output["goal_orientation"])
        push = contacts["displacement"]
        arms = contacts["point"] + contacts["gap"][:, None] * contacts["normal"] - start.position
        ratio = spring_ratio(history, row)
        way = goal.position - start.position + push.sum(axis=0)
        turn = pushed_turn(history, row)
        with_moments = self._resisted(row, contacts, turn, ratio, bounces)
        if with_moments is None:
            for certificate in (self.balance, self.residual):
                certificate.leave("moments beside what was stopped or bounces are not told")
            return
        turn, moments = with_moments
        whole = SHORT * float(np.linalg.norm(way) + self._reach * np.linalg.norm(turn))
        whole = whole <= STRIDE * self._strides[row] * float(history.world["eps_break"])
        if report["degraded"] & DEGRADED_SOLVER:  # what the solve leaves undone the position pass makes good
            self.balance.leave("work was cut short")
            self.residual.leave("work was cut short")
            return
        opening = Opening(history, row, contacts, self._reach, ratio)
        off = opening.off(way, turn, float(report["fraction"]) if whole else None)
        size = float(np.abs(start.position).max()) + self._reach + float(np.linalg.norm(push, axis=1).sum())
        bar = PLACED * size + opening.stands * STANDSTILL * float(history.world["eps_alert"])
        bar += MOVING * self._reach * ratio * float(np.linalg.norm(moments, axis=1).sum())  # known from pushes
        self.balance.judge(history.ticks[row], off, bar)
        if report["stopped"] > 0:
            self.residual.leave("bodies were stopped")
        elif bounces:
            self.residual.leave("something bounces")
        else:
            self._judge_residual(row, contacts, arms, way, turn, moments)

    def _judge_residual(
        self,
        row: int,
        contacts: np.ndarray,
        arms: np.ndarray,
        way: np.ndarray,
        turn: np.ndarray,
        moments: np.ndarray,
    ) -> None:
        """|r - P(r - rho (u + mu |u_t| n))| over the tool's contacts, in lengths, by the largest of the terms.

        rho is 1 / mean of the diagonal of W, as the solvers have it. Whether friction is static or kinetic in a tick is
        not logged; the better of the two counts. Moments count likewise, |m - P(m - rho l^2 w)| / l with the length l
        that makes their part of the diagonal of W that of their contact.
        """
        history = self._history
        world, dt = history.world, history.dt
        pull = float(history.pull[row]) * dt * dt
        ratio = spring_ratio(history, row)
        motions, pushes, unpushed, mobility, frictions = [], [], [], [], []
        levers = []
        free, freely = self._free_way(contacts, arms, way, turn - ratio * moments.sum(axis=0), ratio)
        for contact, arm in zip(contacts, arms, strict=True):
            body, point, normal = int(contact["body_id"]), np.array(contact["point"]), np.array(contact["normal"])
            axes = np.stack([normal, *tangents(normal)])
            velocity, mobile, turnable = self._other_side(row, body, point, axes)
            u = axes @ (way + cross(turn, arm) - dt * velocity)
            room = float(contact["gap"] - world["eps_safety"])
            room = room if room > DEADBAND * world["eps_safety"] else 0.0
            q = axes @ (free + cross(freely, arm) - dt * velocity)
            u[0] += room
            q[0] += room
            motions.append(u)
            unpushed.append(q)
            pushes.append(axes @ np.array(contact["displacement"]))
            mobility += [
                1.0 + ratio * float(np.sum(cross(arm, axis) ** 2)) + pull * m
                for axis, m in zip(axes, mobile, strict=True)
            ]
            levers.append(np.sqrt(sum(mobility[-3:]) / (3.0 * ratio + pull * turnable)) if ratio > 0.0 else 0.0)
            properties = history.model.bodies[body]
            frictions.append([float(properties[name]) for name in ("friction_static", "friction_kinetic")])
        rho = 1.0 / float(np.mean(mobility))
        rests = [
            min(_natural_map(r, rho * u, mu) for mu in each)
            for r, u, each in zip(pushes, motions, frictions, strict=True)
        ]
        limits = tool_limits(history, contacts)
        for k, limit in enumerate(limits):
            lever = levers[k]
            spin = dt * self._spin(row, int(contacts["body_id"][k]))
            if limit.any() and lever > 0.0:
                w, moment = turn - spin, moments[k]
                moved = within(moment - rho * lever**2 * w, np.array(contacts["normal"][k]), limit)
                rests.append(float(np.linalg.norm(moment - moved)) / lever)
                pushes.append(moment / lever)
                motions.append(lever * w)
                unpushed.append(lever * (freely - spin))
        most = max(float(np.linalg.norm(motions)), float(np.linalg.norm(unpushed)))
        size = max(float(np.linalg.norm(pushes)), rho * most)
        if size > 0.0:
            bar = MOVING if history.moving or limits.any() else RESIDUAL
            self.residual.judge(history.ticks[row], float(np.linalg.norm(rests)) / size, bar)

    @staticmethod
    def _free_way(
        contacts: np.ndarray, arms: np.ndarray, way: np.ndarray, turn: np.ndarray, ratio: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Way and turn of the tool without its contacts: those to the goal."""
        push = contacts["displacement"]
        return way - push.sum(axis=0), turn - ratio * np.cross(arms, push).sum(axis=0)

    def _other_side(
        self, row: int, body: int, point: np.ndarray, axes: np.ndarray
    ) -> tuple[np.ndarray, list[float], float]:
        """Velocity of a point of a body by the solve, m/s, how much impulses along three axes move it, 1/kg, and how
        much impulsive moments about all three turn it, 1/(kg m^2)."""
        history = self._history
        if body in history.free:
            one = Body(history, body, row)
            arm = point - one.centre
            mobile = [float(np.sum(one.weighted(axis, cross(arm, axis)) ** 2)) for axis in axes]
            return one.v1 + cross(one.turning, arm), mobile, float(np.sum(1.0 / one.moments))
        if body in history.kinematic:
            state = history.state(body, row)
            velocity = state["linear"] + cross(state["angular"], point - history.pose(body, row - 1).position)
            return velocity, [0.0] * 3, 0.0
        return np.zeros(3), [0.0] * 3, 0.0

    def _spin(self, row: int, body: int) -> np.ndarray:
        """Angular velocity of a body by the solve, rad/s."""
        history = self._history
        if body in history.free:
            return Body(history, body, row).turning
        return np.array(history.state(body, row)["angular"]) if body in history.kinematic else np.zeros(3)

    def _judge_tip(self, row: int, contacts: np.ndarray) -> None:
        """A sphere tip: it stands, or slips, at goal + displacements."""
        history = self._history
        report: Any = history.report[row]
        cut = DEGRADED_SOLVER | DEGRADED_CONTACTS | DEGRADED_PASSES | DEGRADED_SWEEP
        if len(contacts) == 0:
            self.balance.leave("no contacts")
        elif report["degraded"] & cut:
            self.balance.leave("work was cut short")
        elif report["fraction"] < 1.0:
            self.balance.leave("stopped on its way")
        else:
            output: Any = history.output[row]
            rests = output["goal_position"] + contacts["displacement"].sum(axis=0)
            off = float(np.linalg.norm(rests - output["proxy_position"]))
            self.balance.judge(history.ticks[row], off, float(history.world["eps_safety"]))


def _strides(history: History) -> np.ndarray:
    """(n,) how much of the longest stride a tick may take: half after one that was blocked, else twice as much."""
    found = np.full(len(history), LEAST_STRIDE)
    stride = 1.0 if history.ticks[0] == 1 else LEAST_STRIDE
    for row in range(len(history)):
        if row > 0 and not history.follows[row]:
            stride = LEAST_STRIDE
        found[row] = stride
        blocked = bool(history.report["fraction"][row] < 1.0)
        free = int(history.report["passes_used"][row]) - blocked
        stride = min(stride * 2.0 ** min(free, 12), 1.0)
        if blocked:
            stride = max(0.5 * stride, LEAST_STRIDE)
    return found


def _natural_map(r: np.ndarray, u: np.ndarray, friction: float) -> float:
    """Residual of Coulomb's law in de Saxce's form, of an impulse and a relative velocity (normal first)."""
    moved = r - u
    moved[0] -= friction * float(np.linalg.norm(u[1:]))
    return float(np.linalg.norm(r - _project(moved, friction)))


def _project(x: np.ndarray, friction: float) -> np.ndarray:
    """The nearest point of the cone |t| <= friction n."""
    side = float(np.linalg.norm(x[1:]))
    if side <= friction * x[0]:
        return x
    if friction * side <= -x[0]:
        return np.zeros(3)
    along = (x[0] + friction * side) / (1.0 + friction * friction)
    return np.array([along, *(friction * along / side * x[1:])])
