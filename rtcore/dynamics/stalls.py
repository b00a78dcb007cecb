"""A group of bodies that hardly comes forward takes shorter steps until it does.

Contacts are solved for at the start of a step, to first order, and mended to second. Where screws of fast turns still
close what is as near as can be, a group would stop at once, and in every step again. What a screw bends falls with the
square of its length, what the position pass opens does not: some halvings on, contacts open. Time passes more slowly
for such a group, as it does for one that is stopped early; what it has had too much of its kick is taken back.
"""

from typing import Any

from rtcore.dynamics.groups import group_of, join_near
from rtcore.kernels import inner, kernel
from rtcore.spatial import put_vector, scaled, vector

HARDLY = 1.0 / 16.0
"""Share of its motion below which a body has hardly come forward."""
MOST = 10
"""Halvings of a step at most."""


@kernel
def note_stall(velocity: Any, share: float) -> None:
    """Count a step of which a body (BODY_VELOCITY) executed a share, 0..1."""
    velocity.stalls = min(velocity.stalls + 1, MOST + 1) if share < HARDLY else max(velocity.stalls - 1, 0)


@inner
def shorten_ways(model: tuple, state: tuple) -> None:
    """Shorten the velocities of the movers of groups that have stalled more than once, and write state.pairs.strides.

    model: Model; state: State with the velocities of this step's motions in the movers. Bodies that may meet take steps
    of the same length, the shortest that one of them asks for, the tool among them if it is near.
    """
    pairs = state.pairs
    n = len(model.bodies)
    stalled = False
    for body_id in range(n):
        stalled |= state.velocities[body_id].stalls > 1
    if not stalled:
        return
    join_near(pairs, state.broad)
    for body_id in range(n):
        group = group_of(pairs.groups, body_id)
        pairs.strides[group] = min(pairs.strides[group], 0.5 ** max(state.velocities[body_id].stalls - 1, 0))
    for body_id in range(n + 1):
        pairs.strides[body_id] = pairs.strides[group_of(pairs.groups, body_id)]
        if pairs.movers[body_id] >= 0:
            velocity = state.problem.movers[pairs.movers[body_id]].velocity
            put_vector(velocity[:3], scaled(vector(velocity[:3]), pairs.strides[body_id]))
            put_vector(velocity[3:], scaled(vector(velocity[3:]), pairs.strides[body_id]))
