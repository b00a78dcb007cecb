"""Certificates of bodies that touch: contact impulses, velocities at contacts, energy.

What happens to a body in a tick follows from two logged states: the change of its momenta less what gravity and drag
give is what contacts gave. Contacts are looked for where the tick began, by :mod:`bridge.verify.near`.
"""

from dataclasses import dataclass

import numpy as np

from bridge.energy import energy_of_bodies
from bridge.verify.body import ROUNDING, TINY, Body
from bridge.verify.certificate import Certificate
from bridge.verify.fit import Cone, Limit, explain, tangents
from bridge.verify.flight import FreeFlight
from bridge.verify.gaps import CARRIED, ENTRY
from bridge.verify.history import History
from bridge.verify.moments import coefficients, pushed_turn, resisted, spring_ratio, tool_limits
from bridge.verify.motions import cross
from bridge.verify.near import Meeting, Points
from rtcore.tables import DEGRADED_CONTACTS, DEGRADED_SOLVER

EXPLAINED = 1e-5
"""Share of what contacts changed that may stay unexplained."""
RESTING = 1e-5
"""Share of eps_alert by which a body may move in a tick and be set to rest."""
CLOSED = 2e-3
"""Share of eps_safety: contacts are carried along while bodies move by half of that."""
SLIP = 1e-2
"""Share of that from which on a contact slides, and the direction of its slip is known."""
LEVEL = 0.02
"""Sine of the slope up to which near points count as a local minimum of the distance: bodies at rest are tilted."""
LEDGER = 1e-9
"""Share of the energies in a tick that rounding and a converged solve may leave."""


@dataclass
class Contact:
    """A pair of near points of two bodies in the tick looked at."""

    first: int
    second: int
    p: np.ndarray
    q: np.ndarray
    normal: np.ndarray
    gap: float
    slope: float


@dataclass
class Problem:
    """What the contacts of an island did in a tick."""

    right: np.ndarray
    """(6 bodies,) what is to be explained, in the norm of kinetic energy"""
    cones: list[Cone]
    contacts: list[Contact]
    bar: float
    """m/s"""
    work: float
    """J, of what the tool pushed, which has been taken off, and the most that its moments may have done"""
    resisting: list[tuple[Contact, Cone]]
    """The tool's contacts by which it also gave moments, as much as what they are known to push allows"""

    @property
    def all_cones(self) -> list[Cone]:
        """Of what is looked for."""
        return [*self.cones, *(cone for _, cone in self.resisting)]


class BodyCertificates:
    """Judges the bodies of a log row by row."""

    def __init__(self, history: History):
        self._history = history
        self.told = Certificate("energy told", "energy of the free bodies is as reported", "J")
        self._flight = FreeFlight(history)
        self.impulses = Certificate(
            "cone", "contact impulses within friction cones at near points explain what bodies do", "m/s"
        )
        self.velocities = Certificate("contact velocity", "no contact closes below eps_safety within the tick", "m")
        self.complementarity = Certificate(
            "complementarity", "closed contacts alone explain it, with friction against the slip", "m/s"
        )
        self.ledger = Certificate("energy", "no kinetic energy but from gravity and the tool", "J")
        self.total = Certificate(
            "total energy", "energy grows by no more than the tool's work and what the position pass may lift", "J"
        )
        self.bounced = False
        """Has something bounced in the last row judged?"""
        if history.free:
            self._judge_told()
            if history.every > 1:
                for certificate in self.certificates()[:-1]:  # all but what is told
                    certificate.leave(f"states of every {history.every}. tick only", len(history))

    def certificates(self) -> list[Certificate]:
        """In the order of the table."""
        of_contacts = (self.impulses, self.velocities, self.complementarity)
        return [self._flight.certificate, *of_contacts, *self._energies, self.told]

    @property
    def _energies(self) -> list[Certificate]:
        return [self.ledger, self.total]

    def _judge_told(self) -> None:
        history = self._history
        energy, size = energy_of_bodies(history.model, history.states, history.moving)
        off = np.abs(energy - history.report["energy"])
        rows = np.flatnonzero(history.known & np.isfinite(energy))
        self.told.judge_all(history.ticks[rows], off[rows], 1e-12 * size[rows] + 1e-300)
        self.told.leave("state not in the log", len(history) - len(rows))

    def judge(self, row: int, meetings: list[Meeting]) -> None:
        """The tick of a row that follows the one before."""
        history = self._history
        self.bounced = False
        if not history.moving or history.every > 1:
            return
        bodies = {body: Body(history, body, row) for body in history.free}
        contacts = [
            each for meeting in meetings if meeting.points is not None for each in _list(meeting, meeting.points)
        ]
        touching = {side for contact in contacts for side in (contact.first, contact.second)}
        for body in history.kinematic:
            self._flight.judge_kinematic(body, row)
        for body in history.free:
            if body not in touching:
                self._flight.judge(bodies[body], row)
        for island in _islands(bodies, contacts):
            for body in island[0]:
                bodies[body].flies = all(each.first in bodies and each.second in bodies for each in island[1])
            self._island(row, bodies, island)

    # Contacts

    def _island(self, row: int, bodies: dict[int, Body], island: tuple[list[int], list[Contact]]) -> None:
        history = self._history
        members, contacts = [bodies[body] for body in island[0]], island[1]
        tick, where = history.ticks[row], ", ".join(history.names[one.id] for one in members)
        degraded = int(history.report["degraded"][row])
        driven = any(contact.first in history.kinematic or contact.second in history.kinematic for contact in contacts)
        helped = driven or any(contact.second == history.tool for contact in contacts)
        stopped = history.report["stopped"][row] > 0 and not all(one.went_whole_way for one in members)
        cut = degraded & (DEGRADED_SOLVER | DEGRADED_CONTACTS) != 0
        work = 0.0
        if degraded & DEGRADED_CONTACTS:
            self.impulses.leave("contacts may be missing")
        else:
            problem = self._problem(row, members, contacts, bodies)
            work = problem.work
            brakes = _braking(members, history.gravity) if stopped else []
            rest, _ = explain([*problem.all_cones, *brakes], problem.right)
            self.impulses.judge(tick, _fastest(rest, members), problem.bar, where)
        if stopped or cut:
            why = "bodies were stopped" if stopped else "work was cut short"
            self.velocities.leave(why)
            self.complementarity.leave(why)
            if stopped or helped or any(self._comes_fast(row, contact, bodies) for contact in contacts):
                self.ledger.leave(why)
            else:
                self._bound(tick, where, members)
            if cut or helped:
                self.total.leave(why)
            else:
                self._sum_up(tick, where, members, 0.0)
            return
        bounces = self._restrict(row, tick, where, problem, bodies)
        self.bounced |= bounces
        if bounces:
            self.complementarity.leave("something bounces")
        else:
            rest, _ = explain(problem.all_cones, problem.right)
            self.complementarity.judge(tick, _fastest(rest, members), problem.bar, where)
        if driven:
            for certificate in self._energies:
                certificate.leave("a kinematic body does work that is not logged")
        else:
            self._account(tick, where, members, work, bounces)
            self._sum_up(tick, where, members, work)

    def _problem(self, row: int, members: list[Body], contacts: list[Contact], bodies: dict[int, Body]) -> "Problem":
        """What contacts have to explain, and by which cones."""
        history = self._history
        place = {one.id: k for k, one in enumerate(members)}
        right = np.array(
            [one.weighted(one.mass * (one.v1 - one.kicked), one.solved - one.spin_kicked) for one in members]
        )
        changes = max(one.speed(part) for one, part in zip(members, right, strict=True))
        work, known, resisting = self._pushed_by_tool(row, bodies, right, place)
        used = [contact for contact in contacts if not (known and contact.second == history.tool)]
        resting = any(not one.v1.any() and not one.w1.any() for one in members)
        bar = EXPLAINED * changes + resting * 3.0 * RESTING * float(history.world["eps_alert"]) / history.dt
        bar += ROUNDING * max(float(np.linalg.norm(one.v0)) for one in members) + TINY
        cones = [self._cone(contact, bodies, place) for contact in used]
        return Problem(right.ravel(), cones, used, bar, work, resisting)

    def _pushed_by_tool(
        self, row: int, bodies: dict[int, Body], right: np.ndarray, place: dict[int, int]
    ) -> tuple[float, bool, list[tuple[Contact, Cone]]]:
        """Take what the tool's logged contacts pushed off the right side: (the work of it, J, whether it is known, the
        contacts that gave moments). The work holds the most that moments can do."""
        history = self._history
        pull = float(history.pull[row])
        if pull <= 0.0 or not history.has_mesh:
            return 0.0, False, []
        work = 0.0
        resisting = []
        contacts = history.report["contacts"][row][: int(history.report["contact_count"][row])]
        for contact, limit in zip(contacts, tool_limits(history, contacts), strict=True):
            body = int(contact["body_id"])
            if body not in place:
                continue
            one = bodies[body]
            push = -pull * history.dt * np.array(contact["displacement"])
            arm = np.array(contact["point"]) - one.centre
            right[place[body]] -= one.weighted(push, cross(arm, push))
            work += float(push @ (one.v1 + cross(one.turning, arm)))
            if limit.any():
                point, normal, gap = np.array(contact["point"]), np.array(contact["normal"]), float(contact["gap"])
                touch = Contact(body, history.tool, point, point + gap * normal, normal, gap, 0.0)
                cone = self._cone(touch, bodies, place)
                cone.total = max(-float(push @ normal), 0.0)
                cone.columns[:, 0] = 0.0  # the push itself is taken off
                cone.limits[0].radius = 0.0
                resisting.append((touch, cone))
                along = float(one.turning @ normal)
                across = float(np.linalg.norm(one.turning - along * normal))
                work += pull * history.dt * float(limit @ (abs(along), across))
        return work, True, resisting

    def _friction(self, contact: Contact, name: str) -> float:
        one = float(self._history.model.bodies[name][contact.first])
        if contact.second == self._history.tool:
            return one
        return float(np.sqrt(one * self._history.model.bodies[name][contact.second]))

    def _cone(self, contact: Contact, bodies: dict[int, Body], place: dict[int, int]) -> Cone:
        axes = np.stack([contact.normal, *tangents(contact.normal)])
        torsional, rolling = coefficients(self._history, contact.first, contact.second)
        columns = np.zeros((len(place), 6, 6 if max(torsional, rolling) > 0.0 else 3))
        for body, point, sign in ((contact.first, contact.p, -1.0), (contact.second, contact.q, 1.0)):
            if body in place:
                one = bodies[body]
                for k in range(columns.shape[2]):
                    axis = sign * axes[k % 3]
                    if k < 3:
                        columns[place[body], :, k] = one.weighted(axis, cross(point - one.centre, axis))
                    else:
                        columns[place[body], :, k] = one.weighted(np.zeros(3), axis)
        friction = max(self._friction(contact, "friction_static"), self._friction(contact, "friction_kinetic"))
        limits = [Limit(friction), Limit(torsional), Limit(rolling)]
        return Cone(columns.reshape(-1, columns.shape[2]), limits[: columns.shape[2] // 2])

    def _moves(self, body: int, point: np.ndarray, row: int, bodies: dict[int, Body]) -> tuple[np.ndarray, ...]:
        """Velocity of a point of a body by its solve, before the tick with its kick, and as it would turn in it."""
        history = self._history
        if body in bodies:
            one = bodies[body]
            arm = point - one.centre
            before = one.kicked + cross(one.angular(one.spin_kicked), arm)
            return one.v1 + cross(one.turning, arm), before, one.kicked + cross(one.turning_freely, arm)
        if body in history.kinematic:
            state = history.state(body, row)
            velocity = state["linear"] + cross(state["angular"], point - history.pose(body, row - 1).position)
            return velocity, velocity, velocity
        return np.zeros(3), np.zeros(3), np.zeros(3)

    def _restrict(self, row: int, tick: int, where: str, problem: "Problem", bodies: dict[int, Body]) -> bool:
        """Judge the velocities at contacts; leave in the cones what may push by them. True: something bounces."""
        history = self._history
        safety, dt = float(history.world["eps_safety"]), history.dt
        allowed = CLOSED * safety
        entry = safety + ENTRY * (float(history.world["eps_break"]) - safety) - CARRIED * safety
        bounces = False
        keep = []
        for contact, cone in zip(problem.contacts, problem.cones, strict=True):
            u = self._moves(contact.second, contact.q, row, bodies)[0]
            u = u - self._moves(contact.first, contact.p, row, bodies)[0]
            bounces |= self._comes_fast(row, contact, bodies)
            room = max(contact.gap - safety, 0.0)
            ends = float(u @ contact.normal) * dt + room
            if contact.slope > LEVEL:
                pass
            elif contact.gap >= entry:  # a contact only if it was nearer before
                self.velocities.leave("near points that need not be contacts yet")
            else:
                self.velocities.judge(tick, -ends, float(safety - history.world["eps_alert"]), where)
            if ends > allowed:
                continue
            slip = u - (u @ contact.normal) * contact.normal
            speed = float(np.linalg.norm(slip))
            if speed * dt > SLIP * allowed:
                one, two = tangents(contact.normal)
                side = -np.array([slip @ one, slip @ two]) / speed
                names = ("friction_static", "friction_kinetic")
                cone.limits[0].points = np.array([self._friction(contact, name) * side for name in names])
            if cone.columns.shape[1] > 3:
                self._oppose(contact, cone, self._spins(row, contact, bodies))
            keep.append(cone)
        problem.cones = keep
        turn = self._tool_turn(row, bodies) if problem.resisting and not bounces else None
        for contact, cone in problem.resisting:
            if turn is not None:
                self._oppose(contact, cone, turn / dt + self._spins(row, contact, bodies))
        return bounces

    def _oppose(self, contact: Contact, cone: Cone, spin: np.ndarray) -> None:
        """Let moments act against a relative angular velocity (3,), rad/s, alone where there is some."""
        axes = np.stack([contact.normal, *tangents(contact.normal)])
        # the length by which they move things as friction does: nearly twice the radius of a ball
        lever = float(np.sqrt(1.5) * np.linalg.norm(cone.columns[:, 1:3]) / np.linalg.norm(cone.columns[:, 3:]))
        least = SLIP * CLOSED * float(self._history.world["eps_safety"]) / (self._history.dt * lever)
        w = axes @ spin
        for limit, part in zip(cone.limits[1:], (w[:1], w[1:]), strict=True):
            size = float(np.linalg.norm(part))
            if size > least:
                limit.points = -limit.radius / size * part[None]

    def _spins(self, row: int, contact: Contact, bodies: dict[int, Body]) -> np.ndarray:
        """Relative angular velocity at a contact by the solve, rad/s; a tool counts as at rest."""
        return self._turning(contact.second, row, bodies) - self._turning(contact.first, row, bodies)

    def _turning(self, body: int, row: int, bodies: dict[int, Body]) -> np.ndarray:
        if body in bodies:
            return bodies[body].turning
        if body in self._history.kinematic:
            return np.array(self._history.state(body, row)["angular"])
        return np.zeros(3)

    def _tool_turn(self, row: int, bodies: dict[int, Body]) -> np.ndarray | None:
        """By how much the solve turns the tool in the tick, rotation vector; None: a log does not tell."""
        history = self._history
        if float(history.model.inertias["mass"][history.tool]) > 0.0:
            return None
        contacts = history.report["contacts"][row][: int(history.report["contact_count"][row])]
        turns = history.dt * np.array([self._turning(int(body), row, bodies) for body in contacts["body_id"]])
        limits = tool_limits(history, contacts)
        ratio = spring_ratio(history, row)
        return resisted(pushed_turn(history, row), ratio, np.array(contacts["normal"]), limits, turns)[0]

    def _comes_fast(self, row: int, contact: Contact, bodies: dict[int, Body]) -> bool:
        """May a contact come together fast enough to bounce, at whatever instant of the tick?"""
        two = self._moves(contact.second, contact.q, row, bodies)
        one = self._moves(contact.first, contact.p, row, bodies)
        coming = max(-float((two[k] - one[k]) @ contact.normal) for k in (1, 2))
        kicks = [
            bodies[body].kick @ contact.normal if body in bodies else 0.0 for body in (contact.first, contact.second)
        ]
        coming = max(coming, coming + float(kicks[1] - kicks[0]))
        return coming >= self._rest_speed(contact) and self._restitution(contact) > 0.0

    def _restitution(self, contact: Contact) -> float:
        if contact.second == self._history.tool:
            return 0.0
        return max(float(self._history.model.inertias["restitution"][k]) for k in (contact.first, contact.second))

    def _rest_speed(self, contact: Contact) -> float:
        if contact.second == self._history.tool:
            return np.inf
        return max(float(self._history.model.inertias["rest_speed"][k]) for k in (contact.first, contact.second))

    # Energy

    def _account(self, tick: int, where: str, members: list[Body], work: float, bounces: bool) -> None:
        """What bounces falls before and rises after, within the tick: no more than the faster of both allows."""
        history = self._history
        dt = history.dt
        gained = paid = size = slack = 0.0
        for one in members:
            before, after = one.kinetic
            fall = one.mass * dt * float(history.gravity @ one.v1)
            if bounces:
                fall = max(fall, one.mass * dt * float(history.gravity @ one.kicked))
            gained += after - before
            paid += fall
            size += before + after + abs(fall)
            given = one.spin1 - one.spin_kicked
            bend = one.angular(cross(one.spin1, one.w1))
            slack += float(np.linalg.norm(given) * np.linalg.norm(bend)) * dt
            slack += one.mass * float(np.linalg.norm(history.gravity)) * RESTING * float(history.world["eps_alert"])
        self.ledger.judge(tick, gained - paid - work, LEDGER * (size + abs(work)) + slack, where)

    def _sum_up(self, tick: int, where: str, members: list[Body], work: float) -> None:
        """Kinetic and potential energy of an island. The position pass opens a contact by eps_safety at most, and so
        lifts the last of a stack by that times its bodies; bodies that were stopped have given back what they gained.
        """
        history = self._history
        grown = size = weight = 0.0
        for one in members:
            before, after = one.kinetic
            fall = one.mass * float(history.gravity @ (one.centre_end - one.centre))
            grown += after - before - fall
            size += after + before + abs(fall)
            weight += one.mass * float(np.linalg.norm(history.gravity))
        lift = len(members) * float(history.world["eps_safety"]) * weight
        self.total.judge(tick, grown - work, lift + LEDGER * (size + abs(work)), where)

    def _bound(self, tick: int, where: str, members: list[Body]) -> None:
        """Where a solve was cut short its answer still adds nothing to the energy that the kick leaves."""
        gained = size = 0.0
        for one in members:
            kicked = 0.5 * one.mass * float(one.kicked @ one.kicked)
            kicked += 0.5 * float(one.spin_kicked @ one.angular(one.spin_kicked))
            gained += one.kinetic[1] - kicked
            size += one.kinetic[1] + kicked
        self.ledger.judge(tick, gained, LEDGER * size + 1e-300, where)


def _fastest(rest: np.ndarray, members: list[Body]) -> float:
    """Largest speed of any point that an unexplained impulse makes, m/s."""
    return max(one.speed(part) for one, part in zip(members, rest.reshape(-1, 6), strict=True))


def _braking(members: list[Body], gravity: np.ndarray) -> list[Cone]:
    """What may happen to bodies that are stopped early: they lose speed, or the share of the kick that is left. Of one
    that has lost all of it nothing can be told."""
    found = []
    for k, one in enumerate(members):
        taken = [one.weighted(-one.mass * one.v1, -one.solved), one.weighted(-one.mass * gravity, np.zeros(3))]
        if not one.v1.any() and not one.w1.any():
            taken = [*np.eye(6), *-np.eye(6)]
        for push in taken:
            columns = np.zeros((len(members), 6, 1))
            columns[k, :, 0] = push
            found.append(Cone(columns.reshape(-1, 1)))
    return found


def _list(meeting: Meeting, points: Points) -> list[Contact]:
    return [
        Contact(meeting.first, meeting.second, p, q, n, float(gap), float(slope))
        for p, q, n, gap, slope in zip(
            points.first, points.second, points.normal, points.gap, points.slope, strict=True
        )
    ]


def _islands(bodies: dict[int, Body], contacts: list[Contact]) -> list[tuple[list[int], list[Contact]]]:
    """Free bodies that contacts join, and the contacts of each group."""
    group = {body: body for body in bodies}

    def root(body: int) -> int:
        while group[body] != body:
            body = group[body]
        return body

    for contact in contacts:
        if contact.first in group and contact.second in group:
            one, two = root(contact.first), root(contact.second)
            group[max(one, two)] = min(one, two)
    found: dict[int, tuple[list[int], list[Contact]]] = {}
    for contact in contacts:
        side = contact.first if contact.first in group else contact.second
        if side in group:
            found.setdefault(root(side), ([], []))[1].append(contact)
    for body in bodies:
        if root(body) in found:
            found[root(body)][0].append(body)
    return [found[key] for key in sorted(found)]
