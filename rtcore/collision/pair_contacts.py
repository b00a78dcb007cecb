"""Contacts of pairs of bodies: listed anew where bodies move along one another, carried along where they rest.

A contact is a point of each body in its own frame, and a normal in that of the first. While no point of the second body
can have moved against the first by more than RIDING eps_safety since the pair was listed, the points are only looked at
where their bodies are now: what rests costs next to nothing. Listing goes on in turns where the units of a tick do not
suffice for all; a pair that waits for its turn keeps its contacts, and DEGRADED_CONTACTS is set.
"""

from typing import Any

import numpy as np

from rtcore.collision.contact_set import choose_contacts
from rtcore.collision.features import along
from rtcore.collision.near_features import list_near, round_off
from rtcore.collision.overlap import place_pair
from rtcore.collision.pair_slots import drop_contacts, rounding_of
from rtcore.kernels import inlined, inner
from rtcore.motion import still, velocity_field
from rtcore.spatial import (
    Quaternion,
    conjugate,
    dot,
    length,
    put_vector,
    quaternion,
    rotate,
    scaled,
    subtract,
    to_body,
    to_scene,
    vector,
)
from rtcore.tables import DEGRADED_CONTACTS, MAX_PAIR_CONTACTS

RIDING = 1e-3
"""Share of eps_safety by which bodies may move against one another while their contacts are but carried along."""
LEAST_PAIR_LISTING = 8
"""Units that the listing of a pair begins with at least."""


@inlined
def update_pair_contacts(model: tuple, state: tuple, units: int, report: np.void) -> int:
    """Bring the contacts of all pairs of bodies up to date with where the bodies are; return the units left.

    model: Model; state: State, its table of pairs as of this step; units: of work allowed, of which the last pair may
    take some more; report: STEP_REPORT record, DEGRADED_CONTACTS set where a pair had to wait.
    """
    pairs = state.pairs
    table = pairs.table[0]
    riding = RIDING * model.world[0].eps_safety
    left = units
    at = table.turn if table.turn < table.count else 0
    table.turn = 0
    waiting = False
    for _ in range(table.count):
        row = pairs.order[at]
        pair = pairs.rows[row]
        moved = pair.front.travelled + pair.front.ahead - pair.listed
        before = pair.count
        pair.fresh = 0
        if pair.complete == 0 or not moved <= riding:
            pair.fresh = 1
            if left > 0:
                left = _list(model, state, row, left)
            else:
                pair.complete = 0
            if pair.complete == 0:
                report.degraded |= DEGRADED_CONTACTS
                if not waiting:
                    waiting = True
                    table.turn = at
                _carry(model, state, pair)
        else:
            _carry(model, state, pair)
        if pair.count != before:
            pair.fresh = 1
        at = at + 1 if at + 1 < table.count else 0
    return max(left, 0)


@inner
def _carry(model: tuple, state: tuple, pair: Any) -> None:
    """Look at the contacts of a pair where its bodies are now; what has gone beyond eps_break is dropped.

    A ball that turns in place does not take its normals along: they point from its centre.
    """
    first = state.poses[pair.first]
    second = state.poses[pair.second]
    turn = quaternion(first.orientation)
    rounding = rounding_of(model, pair.first, pair.second)
    ball = model.bodies[pair.first].ball != 0
    kept = 0
    for i in range(pair.count):
        contact = pair.contacts[i]
        normal = rotate(turn, vector(contact.normal))
        way = subtract(to_scene(second, vector(contact.point_second)), to_scene(first, vector(contact.point_first)))
        size = length(way)
        if ball and size > 0.0:
            normal = scaled(way, 1.0 / size)
            put_vector(contact.normal, rotate(conjugate(turn), normal))
        contact.gap = dot(way, normal) - rounding
        if contact.gap < model.world[0].eps_break:
            if kept < i:
                pair.contacts[kept] = pair.contacts[i]
            pair.contacts[kept].age = min(pair.contacts[kept].age, 2**31 - 2) + 1
            kept += 1
    drop_contacts(pair, kept)


@inlined
def _list(model: tuple, state: tuple, row: int, units: int) -> int:
    """List the contacts of a pair anew where its bodies are now: units left. Unfinished lists change nothing."""
    pairs = state.pairs
    pair = pairs.rows[row]
    front = pair.front
    work = state.query_work[0]
    world = model.world[0]
    mine = model.bodies[pair.first].rounding
    other = model.bodies[pair.second].rounding
    relative = state.scratch[0].relative
    first = state.poses[pair.first]
    second = state.poses[pair.second]
    still(relative.first, vector(first.position), quaternion(first.orientation))
    still(relative.second, vector(second.position), quaternion(second.orientation))
    root = model.nodes[front.second_root]
    place_pair(relative, vector(root.centre), root.radius, 0.0, 0.0, work.start)
    work.proximities.count = 0
    work.proximities.incomplete = 0
    front.walk = 0
    front.walk_top = 0
    # fmt: off
    left, complete = list_near(
        model.nodes, model.triangles, front, pairs.entries[row], work.start, world.eps_break + mine + other,
        state.scratch[0].counters, work.proximities, max(units, LEAST_PAIR_LISTING),
    )
    # fmt: on
    if not complete or work.proximities.incomplete != 0:
        pair.complete = 0
        if pair.count > 0 or work.proximities.count == 0:
            return left
    round_off(work.proximities, 0, pair.first, mine, other)
    memory = pairs.memory[0]
    _recall_pair(pair, quaternion(first.orientation), memory)
    chosen = state.contact_work[0]
    turn = quaternion(second.orientation)
    _write_motion(state, pair, chosen)
    # fmt: off
    count, _ = choose_contacts(
        world, model.triangles, state.poses, turn, work.proximities, memory, chosen, MAX_PAIR_CONTACTS,
    )
    # fmt: on
    back = conjugate(quaternion(first.orientation))
    for i in range(count):
        candidate = chosen.candidates[chosen.chosen[i]]
        contact = pair.contacts[i]
        normal = vector(candidate.normal)
        point = vector(candidate.point)
        put_vector(contact.point_first, to_body(first, along(point, normal, -mine)))
        put_vector(contact.point_second, to_body(second, along(point, normal, candidate.gap + other)))
        put_vector(contact.normal, rotate(back, normal))
        put_vector(contact.push, vector(candidate.push))
        put_vector(contact.moment, vector(candidate.moment))
        contact.gap = candidate.gap
        contact.first_triangle = candidate.first_triangle
        contact.second_triangle = candidate.second_triangle
        contact.first_feature = candidate.first_feature
        contact.second_feature = candidate.second_feature
        contact.age = candidate.age
        contact.slipped = candidate.slipped
    pair.count = max(pair.count, count)
    drop_contacts(pair, count)
    pair.complete = 1 if complete and work.proximities.incomplete == 0 else 0
    pair.listed = front.travelled + front.ahead
    return left


@inner
def _write_motion(state: tuple, pair: Any, chosen: Any) -> None:
    """Write to the CONTACT_WORK how the second body of a pair would move against the first if nothing stopped it."""
    one = state.motions[pair.first]
    two = state.motions[pair.second]
    slow, _ = velocity_field(one, 0.0, (0.0, 0.0, 0.0))
    fast, _ = velocity_field(two, 0.0, (0.0, 0.0, 0.0))
    put_vector(chosen.shift, subtract(fast, slow))
    put_vector(chosen.turn, subtract(scaled(vector(two.axis), two.angle), scaled(vector(one.axis), one.angle)))


@inner
def _recall_pair(pair: Any, turn: Quaternion, memory: Any) -> None:
    """Write the contacts of a pair to a memory of contacts; turn: orientation of its first body."""
    for i in range(pair.count):
        contact = pair.contacts[i]
        key = memory.rows[i]
        put_vector(key.normal, rotate(turn, vector(contact.normal)))
        put_vector(key.push, vector(contact.push))
        put_vector(key.moment, vector(contact.moment))
        key.body_id = pair.first
        key.first_triangle = contact.first_triangle
        key.second_triangle = contact.second_triangle
        key.first_feature = contact.first_feature
        key.second_feature = contact.second_feature
        key.age = contact.age
        key.slipped = contact.slipped
    memory.count = pair.count
    memory.known = pair.count
