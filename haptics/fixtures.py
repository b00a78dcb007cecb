"""Virtual fixtures: where the tool is led to or kept from by something that is not there to be touched.

Each has an allowed set A; n is the unit direction, x0 the position, r a distance from the line through x0 along n:

    PLANE       (x - x0) . n = 0
    LINE        r = 0
    TUBE        r <= radius
    CONE        r <= tan(angle) (x - x0) . n, from its apex x0
    HALF_SPACE  (x - x0) . n >= 0: what is behind the plane is forbidden
    BALL, BOX   outside of a ball, of a box about x0 with half edges along its own axes

What counts is the place of the tip centre, of a sphere tip and of a tool mesh alike; fixtures do not turn the tool.

**Hard** ones act on the mechanics' goal. The tool is asked to go to the nearest allowed place to the image, and the
hand feels the coupling's spring between the two, as against a wall without friction. All but BALL and BOX are convex,
so the goal is a continuous function of the image that never goes farther than it. The outside of a ball or box is not:
from its middle the nearest place is on any side. So the half-space outside of it that holds the tool takes its place in
each tick: where the straight way from the tool to its goal would enter, the plane that touches there bounds it. So the
tool never goes through, however deep the hand presses, even out at the other side: it stays before the face of a box,
and slides round a ball as on a smooth one, in a tick by about as much as the image is away from the middle.

Several hold together by Dykstra's method, that of alternating projections which ends at the nearest point of all and
not at any point: at most SWEEPS rounds over them in the order given, at once where their directions are square to each
other. Two at an angle of t close the distance between them by cos^2 t per round: what is left of 1 m is below 1e-12 m
down to t = 33 degrees, 1e-7 m at 25, and 9 cm at 10. The last one given holds exactly even then, as it does where
fixtures contradict each other and no place is allowed to all; the goal is then near the place of the last that is
nearest to the others. The work is at most SWEEPS (n + 1) n projections for n fixtures.

Surfaces win: a contact that pushes the tool off its goal pushes it off a fixture too, by its displacement. Else a tool
without mass does not leave an allowed set that it is in, but for a mesh that turns and is stopped on its way, whose tip
centre is on a screw between two allowed places; one with mass is pulled to its goal by a spring and may swing over.
Fixtures lead the tool whenever a device pose does, forces on or not; so engagement, which looks at how far the image is
from the tool, begins without a stretch beyond its bound.

**Soft** ones are felt only. With d the distance from A, at the device, the force towards A is

    f(d) = K d / sqrt(1 + (K d / F)^2)

a spring of stiffness K for small d that grows to the strength F and no farther. It is the gradient of a potential V, in
BALL and BOX too: in a ball d is the smaller one of the depth and the distance from the middle, where the force is zero;
in a box each pair of faces makes a potential V_i so, by its depth, and V is one over the sum of 1 / V_i.

Sources: virtual fixtures, Rosenberg 1993; god-object, Zilles and Salisbury 1995; Boyle and Dykstra 1986 for the nearest
point of an intersection. The potentials of ball and box are ours.
"""

import math
from collections.abc import Sequence

import numpy as np

from haptics.tables import FIXTURE, MAX_FIXTURES, Record
from rtcore.kernels import inner, kernel
from rtcore.spatial import (
    Vector,
    add,
    conjugate,
    dot,
    length,
    put_vector,
    quaternion,
    rotate,
    scaled,
    subtract,
    vector,
)

PLANE = 1
LINE = 2
TUBE = 3
CONE = 4
HALF_SPACE = 5
BALL = 6
BOX = 7
FIXTURES = {"plane": PLANE, "line": LINE, "tube": TUBE, "cone": CONE}
"""By what the configuration calls them."""
FORBIDDEN = {"half-space": HALF_SPACE, "ball": BALL, "box": BOX}
"""Shapes of what is forbidden, by what the configuration calls them."""

DIRECTED = (PLANE, LINE, TUBE, CONE, HALF_SPACE)
ROUND = (TUBE, BALL)

FIXTURE_SHARE = 0.5
"""Of what the device can render: the largest stiffness of a soft fixture, and its strength when none is given."""

SWEEPS = 80
"""Most rounds over all fixtures."""

STEADY = 1e-14
"""m: a round that changes less is the last."""


def make_fixture(
    kind: int,
    position: Sequence[float],
    *,
    direction: Sequence[float] = (0.0, 0.0, 1.0),
    radius: float = 0.0,
    angle: float = 0.0,
    half: Sequence[float] = (0.0, 0.0, 0.0),
    orientation: Sequence[float] = (0.0, 0.0, 0.0, 1.0),
    stiffness: float = 0.0,
    strength: float = 0.0,
) -> np.ndarray:
    """Make a (1,) FIXTURE; only what its kind has is looked at.

    position: scene, m; direction: scene, of any length; radius and half (edges): scene m; angle: rad, half the opening
    of a cone; orientation: of a box, its axes -> scene. stiffness: N/m at the device, 0 for a hard one; strength: N, 0
    for FIXTURE_SHARE of the device's force. Raises ValueError, naming the argument and what would be right.
    """
    if kind not in (*FIXTURES.values(), *FORBIDDEN.values()):
        raise ValueError(f"kind = {kind!r} must be a fixture's, 1 to 7")
    table = np.zeros(1, FIXTURE)
    row = table[0]
    row["position"] = _numbers("position", position, 3)
    row["direction"] = (0.0, 0.0, 1.0)
    row["orientation"] = (0.0, 0.0, 0.0, 1.0)
    if kind in DIRECTED:
        given = _numbers("direction", direction, 3)
        size = float(np.linalg.norm(given))
        if not (size > 1e-150 and math.isfinite(size)):
            raise ValueError(f"direction = {direction!r} must not be zero")
        row["direction"] = given / size
    if kind in ROUND:
        if not (radius > 0.0 and math.isfinite(radius)):
            raise ValueError(f"radius = {radius!r} must be a finite number above 0")
        row["radius"] = radius
    if kind == CONE:
        if not 0.0 < angle < 0.5 * math.pi:
            raise ValueError(f"angle = {angle!r} must be above 0 and below pi / 2")
        row["angle"] = angle
    if kind == BOX:
        row["half"] = _numbers("half", half, 3)
        if not row["half"].min() > 0.0:
            raise ValueError(f"half = {half!r} must be three numbers above 0")
        turn = _numbers("orientation", orientation, 4)
        size = float(np.linalg.norm(turn))
        if abs(size - 1.0) > 1e-3:
            raise ValueError(f"orientation = {orientation!r} must be a unit quaternion; its norm is {size:g}")
        row["orientation"] = turn / size
    for name, number in (("stiffness", stiffness), ("strength", strength)):
        if not (number >= 0.0 and math.isfinite(number)):
            raise ValueError(f"{name} = {number!r} must be a finite number, 0 or more")
        row[name] = number
    if strength > 0.0 and stiffness == 0.0:
        raise ValueError(f"strength = {strength:g} belongs to a soft fixture, one with a stiffness")
    row["kind"] = kind
    return table


def _numbers(name: str, value: Sequence[float], count: int) -> np.ndarray:
    numbers = np.asarray(value, dtype=np.float64)
    if numbers.shape != (count,) or not np.isfinite(numbers).all():
        raise ValueError(f"{name} = {value!r} must be {count} finite numbers")
    return numbers


def set_fixtures(settings: np.ndarray, fixtures: Sequence[np.ndarray]) -> None:
    """Put (1,) FIXTURE tables into (1,) SETTINGS, within what its card allows.

    Raises ValueError, naming the fixture by its place in the list, when they are too many, or when a soft one is
    stiffer than FIXTURE_SHARE of what the device may render or stronger than its force. A device without forces takes
    any.
    """
    row = settings[0]
    if len(fixtures) > MAX_FIXTURES:
        raise ValueError(f"there may be {MAX_FIXTURES} fixtures, not {len(fixtures)}")
    allowed = FIXTURE_SHARE * float(row["stiffness_max"])
    largest = float(row["force_max"])
    for k, fixture in enumerate(fixtures):
        each = fixture[0].copy()
        if each["stiffness"] > 0.0 and row["actuated"] > 0:
            if each["stiffness"] > allowed:
                raise ValueError(
                    f"[{k}].stiffness = {each['stiffness']:g} N/m must be at most {allowed:.4g} N/m, "
                    f"{FIXTURE_SHARE:g} of what the device renders; leave it out for a hard fixture"
                )
            if each["strength"] > largest:
                raise ValueError(
                    f"[{k}].strength = {each['strength']:g} N must be at most {largest:g}, the card's force_max"
                )
            if each["strength"] == 0.0:
                each["strength"] = FIXTURE_SHARE * largest
        row["fixtures"][k] = each
    row["fixture_count"] = len(fixtures)


# Nearest allowed places. ----------------------------------------------------------------------------------------


@kernel
def nearest_convex(fixture: Record, place: Vector) -> Vector:
    """Nearest place (scene, m) to ``place`` that a FIXTURE of a kind other than BALL and BOX allows."""
    origin, axis = vector(fixture.position), vector(fixture.direction)
    offset = subtract(place, origin)
    along = dot(offset, axis)
    if fixture.kind == PLANE or (fixture.kind == HALF_SPACE and along < 0.0):
        return subtract(place, scaled(axis, along))
    if fixture.kind == HALF_SPACE:
        return place
    away = subtract(offset, scaled(axis, along))
    far = length(away)
    if fixture.kind == LINE:
        return add(origin, scaled(axis, along))
    if fixture.kind == TUBE:
        if far <= fixture.radius:
            return place
        return add(origin, add(scaled(axis, along), scaled(away, fixture.radius / far)))
    sine, cosine = math.sin(fixture.angle), math.cos(fixture.angle)
    if far * cosine <= along * sine:
        return place
    # Along the side of the cone, in the half plane of the axis and the place; behind the apex's normals: the apex.
    side = along * cosine + far * sine
    if side <= 0.0:
        return origin
    return add(origin, add(scaled(axis, side * cosine), scaled(away, side * sine / far)))


@kernel
def to_box(fixture: Record, place: Vector) -> Vector:
    """A place (scene, m) in the axes of a BOX, from its middle."""
    return rotate(conjugate(quaternion(fixture.orientation)), subtract(place, vector(fixture.position)))


@kernel
def from_box(fixture: Record, place: Vector, normal: Vector) -> tuple[Vector, Vector]:
    """A place and a direction in the axes of a BOX, in the scene."""
    turn = quaternion(fixture.orientation)
    return add(vector(fixture.position), rotate(turn, place)), rotate(turn, normal)


@kernel
def unit_axis(k: int, sign: float) -> Vector:
    """The k-th unit vector or its opposite."""
    return sign if k == 0 else 0.0, sign if k == 1 else 0.0, sign if k == 2 else 0.0


@kernel
def ball_entry(fixture: Record, start: Vector, end: Vector) -> tuple[bool, Vector, Vector]:
    """Whether the way from start to end (scene, m) enters a BALL, and where: point and outward unit normal."""
    middle, radius = vector(fixture.position), fixture.radius
    offset = subtract(start, middle)
    far = length(offset)
    way = subtract(end, start)
    a, b = dot(way, way), dot(offset, way)
    c = (far - radius) * (far + radius)
    normal = (0.0, 0.0, 1.0)
    if c <= 0.0:
        if far > 0.0:
            normal = scaled(offset, 1.0 / far)
        point = add(middle, scaled(normal, radius))
        return dot(subtract(end, point), normal) < 0.0, point, normal
    root = b * b - a * c
    if b >= 0.0 or root <= 0.0:
        return False, start, normal
    time = c / (math.sqrt(root) - b)
    if time >= 1.0:
        return False, start, normal
    reached = add(offset, scaled(way, time))
    normal = scaled(reached, 1.0 / length(reached))
    return True, add(middle, scaled(normal, radius)), normal


@kernel
def box_entry(fixture: Record, start: Vector, end: Vector) -> tuple[bool, Vector, Vector]:
    """Whether the way from start to end (scene, m) enters a BOX, and where: point and outward unit normal."""
    first, last = to_box(fixture, start), to_box(fixture, end)
    half = vector(fixture.half)
    face, sign, height = 0, 1.0, -math.inf
    outside = False
    for k in range(3):
        over = abs(first[k]) - half[k]
        outside = outside or over > 0.0
        if over > height:
            face, height = k, over
            sign = 1.0 if first[k] >= 0.0 else -1.0
    if outside:
        enters, leaves = -1.0, 1.0
        for k in range(3):
            way = last[k] - first[k]
            if way == 0.0:
                if abs(first[k]) >= half[k]:
                    return False, start, (0.0, 0.0, 1.0)
                continue
            side = -1.0 if way > 0.0 else 1.0
            time = (side * half[k] - first[k]) / way
            if time > enters:
                enters, face, sign = time, k, side
            leaves = min(leaves, (-side * half[k] - first[k]) / way)
        # A box that lies behind on the line through the way is not entered; one from a face on inwards is.
        if enters >= leaves or leaves <= 0.0:
            return False, start, (0.0, 0.0, 1.0)
    elif sign * last[face] >= half[face]:
        return False, start, (0.0, 0.0, 1.0)
    normal = unit_axis(face, sign)
    point, normal = from_box(fixture, scaled(normal, half[face]), normal)
    return True, point, normal


@inner
def led_place(settings: Record, touch: Record, place: Vector) -> Vector:
    """Nearest place that all hard fixtures allow, those with a plane in ``touch.fixture_normals`` by that."""
    count = settings.fixture_count
    for k in range(count):
        put_vector(touch.fixture_pushes[k], (0.0, 0.0, 0.0))
    here = place
    for _ in range(SWEEPS):
        change = 0.0
        active = 0
        for k in range(count):
            fixture = settings.fixtures[k]
            if fixture.stiffness > 0.0:
                continue
            before = vector(touch.fixture_pushes[k])
            from_here = add(here, before)
            if fixture.kind == BALL or fixture.kind == BOX:
                normal = vector(touch.fixture_normals[k])
                under = touch.fixture_offsets[k] - dot(normal, from_here)
                to = add(from_here, scaled(normal, max(under, 0.0)))
            else:
                to = nearest_convex(fixture, from_here)
            after = subtract(from_here, to)
            put_vector(touch.fixture_pushes[k], after)
            change = max(change, length(subtract(after, before)), length(subtract(to, here)))
            here = to
            active += 1
        # Of a single one the first projection is the nearest place.
        if active <= 1 or change <= STEADY:
            break
    return here


@inner
def led_goal(settings: Record, touch: Record, tool: Vector, place: Vector) -> Vector:
    """Nearest allowed place to ``place`` on the side of each ball and box where the tool is."""
    for k in range(settings.fixture_count):
        put_vector(touch.fixture_normals[k], (0.0, 0.0, 0.0))
        touch.fixture_offsets[k] = 0.0
    goal = led_place(settings, touch, place)
    for _ in range(settings.fixture_count):
        found = False
        for k in range(settings.fixture_count):
            fixture = settings.fixtures[k]
            if fixture.stiffness > 0.0 or (fixture.kind != BALL and fixture.kind != BOX):
                continue
            normal = vector(touch.fixture_normals[k])
            if dot(normal, normal) > 0.0:
                continue
            if fixture.kind == BALL:
                enters, point, normal = ball_entry(fixture, tool, goal)
            else:
                enters, point, normal = box_entry(fixture, tool, goal)
            if enters:
                put_vector(touch.fixture_normals[k], normal)
                touch.fixture_offsets[k] = dot(normal, point)
                found = True
        if not found:
            break
        goal = led_place(settings, touch, place)
    return goal


@kernel
def lead(proxy: Record, settings: Record, touch: Record, output: Record) -> None:
    """The stage: put the goal of the mechanics where hard fixtures allow it, and write it down.

    Its velocity is that by which the goal goes on in the next tick if the hand does. Without a device pose the tool
    stays where it is, allowed or not.
    """
    hard = False
    for k in range(settings.fixture_count):
        hard = hard or settings.fixtures[k].stiffness == 0.0
    touch.led = 0
    if hard and touch.has_pose != 0:
        wanted = vector(touch.goal.goal_position)
        goal = led_goal(settings, touch, vector(proxy.position), wanted)
        put_vector(touch.goal.goal_position, goal)
        away = subtract(goal, wanted)
        touch.led = 1 if away[0] != 0.0 or away[1] != 0.0 or away[2] != 0.0 else 0
        way = scaled(vector(touch.goal.goal_velocity), settings.dt)
        if length(way) > 0.0:
            onwards = subtract(led_place(settings, touch, add(wanted, way)), goal)
            put_vector(touch.goal.goal_velocity, scaled(onwards, 1.0 / settings.dt))
    for k in range(3):
        output.goal_position[k] = touch.goal.goal_position[k]
    for k in range(4):
        output.goal_orientation[k] = touch.goal.goal_orientation[k]


# What soft ones pull. -------------------------------------------------------------------------------------------


@kernel
def pull_at(fixture: Record, distance: float) -> float:
    """Force (N) of a soft FIXTURE at a distance (m at the device) from what it allows."""
    spring = fixture.stiffness * distance
    return spring / math.sqrt(1.0 + (spring / fixture.strength) ** 2)


@kernel
def work_to(fixture: Record, distance: float) -> float:
    """Integral (J) of :func:`pull_at` from 0 to a distance (m at the device)."""
    strain = fixture.stiffness * distance / fixture.strength
    # sqrt(1 + s^2) - 1, without its cancellation
    return fixture.strength**2 / fixture.stiffness * strain * strain / (1.0 + math.sqrt(1.0 + strain * strain))


@kernel
def within_depth(fixture: Record, depth: float, half: float) -> tuple[float, float]:
    """(force, N; potential, J) of a pair of faces ``half`` from their middle, at a depth (m at the device) under one:
    the force grows to half of the way and falls to zero in the middle."""
    if 2.0 * depth <= half:
        return pull_at(fixture, depth), work_to(fixture, depth)
    return pull_at(fixture, half - depth), 2.0 * work_to(fixture, 0.5 * half) - work_to(fixture, half - depth)


@kernel
def fixture_force(fixture: Record, place: Vector, scale: float) -> Vector:
    """Force (scene axes, N) of a soft FIXTURE on a device whose tip's image is at a place (scene, m); scale: scene m
    per device m."""
    if fixture.kind == BALL:
        offset = subtract(place, vector(fixture.position))
        far = length(offset)
        if far >= fixture.radius or far == 0.0:
            return 0.0, 0.0, 0.0
        force, _ = within_depth(fixture, (fixture.radius - far) / scale, fixture.radius / scale)
        return scaled(offset, force / far)
    if fixture.kind == BOX:
        return box_force(fixture, place, scale)
    back = subtract(nearest_convex(fixture, place), place)
    size = length(back)
    if size == 0.0:
        return 0.0, 0.0, 0.0
    return scaled(back, pull_at(fixture, size / scale) / size)


@kernel
def box_force(fixture: Record, place: Vector, scale: float) -> Vector:
    """Of a soft BOX: minus the gradient of 1 / sum of 1 / V_i, each V_i that of a pair of faces."""
    at = to_box(fixture, place)
    total = 0.0
    for k in range(3):
        depth = (fixture.half[k] - abs(at[k])) / scale
        if depth <= 0.0:
            return 0.0, 0.0, 0.0
        _, potential = within_depth(fixture, depth, fixture.half[k] / scale)
        if potential == 0.0:
            return 0.0, 0.0, 0.0
        total += 1.0 / potential
    push = (0.0, 0.0, 0.0)
    for k in range(3):
        force, potential = within_depth(fixture, (fixture.half[k] - abs(at[k])) / scale, fixture.half[k] / scale)
        share = 1.0 / (total * potential)
        push = add(push, unit_axis(k, share * share * force * (1.0 if at[k] >= 0.0 else -1.0)))
    return rotate(quaternion(fixture.orientation), push)


@kernel
def fixtures_force(settings: Record, touch: Record, place: Vector) -> Vector:
    """Force (scene axes, N) of all soft fixtures; like the coupling's it falls with the rate of the samples."""
    force = (0.0, 0.0, 0.0)
    for k in range(settings.fixture_count):
        fixture = settings.fixtures[k]
        if fixture.stiffness > 0.0:
            force = add(force, fixture_force(fixture, place, touch.scale))
    return scaled(force, touch.rate_share)
