"""Compile, or load from the cache, every kernel that a tick of the mechanics can reach."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types

from rtcore import mesh_tool, probe, spatial
from rtcore.collision.broad_phase import find_pairs
from rtcore.collision.contact_set import update_contacts
from rtcore.collision.front import coherent_contact
from rtcore.collision.mesh_distance import mesh_distance
from rtcore.collision.near_features import list_near
from rtcore.collision.nearest import clearance
from rtcore.dynamics.constrained import constrain, load_movers
from rtcore.dynamics.inertia import BODY_INERTIA
from rtcore.dynamics.moving import account, move_by_velocity
from rtcore.dynamics.position_pass import bend_ways, open_contacts
from rtcore.dynamics.stalls import shorten_ways
from rtcore.geometry.tree import build_tree
from rtcore.model import Model
from rtcore.motion import between
from rtcore.solvers import newton
from rtcore.state import State, make_state
from rtcore.step import step
from rtcore.tables import (
    BODY,
    BOX_NODE,
    BUDGET,
    COUNTERS,
    FRONT,
    FRONT_ENTRY,
    HIT,
    MESH,
    MOTION,
    PLACEMENT,
    POSE,
    PROXIMITIES,
    QUERY,
    QUERY_WORK,
    RELATIVE,
    SOLVER_REPORT,
    SOLVER_SETTINGS,
    STEP_INPUT,
    STEP_REPORT,
    TRIANGLE,
    WORLD,
)

Progress = Callable[[str, int, int], None]
"""Called with what is compiled next, how many parts are done, and how many there are."""

FIRST, SECOND = 0, 1
"""Two compilers can work side by side, one on the parts of each."""


class Part(NamedTuple):
    """Some kernels that are compiled together."""

    what: str
    side: int
    """FIRST or SECOND"""
    compile: Callable[[], Any]
    last: bool = False
    """Does it need what the other side compiles?"""


def warm_up(progress: Progress | None = None) -> None:
    """Have every kernel of the mechanics ready; `progress` gets (what, done, of)."""
    run(parts(), "mechanics", progress)


def run(chosen: Iterable[Part], whole: str, progress: Progress | None) -> None:
    """Compile some parts in order; at the end `progress` hears of the whole."""
    chosen = tuple(chosen)
    for done, part in enumerate(chosen):
        if progress is not None:
            progress(part.what, done, len(chosen))
        part.compile()
    if progress is not None:
        progress(whole, len(chosen), len(chosen))


def parts() -> tuple[Part, ...]:
    """All kernels of the mechanics, callees before their callers so that no part takes long.

    What the mesh tool does is a part of each kernel that takes a step: compiled here is what it calls.
    """
    tables = empty_tables()
    model, state, broad = numba.typeof(tables[0]), numba.typeof(tables[1]), numba.typeof(tables[1].broad)
    nodes, triangles = _table(BOX_NODE), _table(TRIANGLE)
    relative, query, front, work, counters, hit, motion, goal, budget, report = (
        numba.from_dtype(dtype)
        for dtype in (RELATIVE, QUERY, FRONT, QUERY_WORK, COUNTERS, HIT, MOTION, STEP_INPUT, BUDGET, STEP_REPORT)
    )
    number, count, index = types.float64, types.int64, types.int32
    place, turn = types.UniTuple(number, 3), types.UniTuple(number, 4)
    placement = numba.from_dtype(PLACEMENT)
    entries = types.Array(numba.from_dtype(FRONT_ENTRY), 2, "C")
    list_of_motions = _table(MOTION)

    def compiler(kernel: Any, *signature: Any) -> Callable[[], None]:
        return lambda: kernel.compile(signature)

    pair = (nodes, triangles, index, index, placement, number, work, hit)
    contact = (nodes, triangles, relative, query, front, entries, work, counters, hit)
    near = (nodes, triangles, front, entries, placement, number, counters, numba.from_dtype(PROXIMITIES), count)
    settings, result = numba.from_dtype(SOLVER_SETTINGS), numba.from_dtype(SOLVER_REPORT)
    work_of_newton = numba.typeof(tables[1].newton_work)
    solver = (numba.typeof(tables[1].problem), count, count, settings, work_of_newton, result)
    tip = (model, state, budget, report)

    def mesh_parts() -> None:
        """Callees first, as everywhere."""
        load_movers.compile((model, state, goal, place, place))
        move_by_velocity.compile((model, state))
        mesh_tool.look.compile((model, state, count, report))
        shorten_ways.compile((model, state))
        bend_ways.compile((model, state, report))
        open_contacts.compile((model, state, budget, report))
        mesh_tool.sweep_pairs.compile((model, state, number, count, report))
        mesh_tool.place.compile((model, state, number, report))
        account.compile((model, state, report))

    return (
        Part("quaternions", FIRST, _spatial),
        Part("motions", FIRST, compiler(between, motion, count, place, turn, place, turn, place)),
        Part("bodies that may meet", FIRST, compiler(find_pairs, broad, list_of_motions, number, count)),
        Part("distance of meshes", FIRST, compiler(mesh_distance, *pair)),
        Part("meshes in motion", FIRST, compiler(coherent_contact, *contact)),
        Part("near features", FIRST, compiler(list_near, *near)),
        Part("mesh tool", FIRST, mesh_parts),
        Part("sphere tip", FIRST, compiler(probe.follow, *tip)),
        Part("bounding trees", FIRST, _trees),
        Part("contacts of meshes", SECOND, compiler(update_contacts, model, state, report)),
        Part("contact solver", SECOND, compiler(newton.solve, *solver)),
        Part("contact equations", SECOND, compiler(constrain, model, state, goal, budget, report)),
        Part("clearance", SECOND, compiler(clearance, model, state, types.Array(number, 1, "C"))),
        Part("step", FIRST, compiler(step, model, state, goal, budget, report), last=True),
    )


def empty_tables() -> tuple[Model, State]:
    """A model and a state without content, of the very types that kernels are compiled for."""
    bodies, meshes, nodes, triangles = (np.zeros(0, dtype) for dtype in (BODY, MESH, BOX_NODE, TRIANGLE))
    model = Model(np.zeros(1, WORLD), bodies, meshes, nodes, triangles, np.zeros(1, BODY_INERTIA))
    model.world["tool_mesh_id"] = -1
    return model, make_state(model, (0.0, 0.0, 0.0))


def _table(dtype: np.dtype) -> types.Array:
    return types.Array(numba.from_dtype(dtype), 1, "C")


def _trees() -> None:
    build_tree(np.array([[-1.0, -1, 0], [1, -1, 0], [0, 1, 0]]), np.array([[0, 1, 2]]))


def _spatial() -> None:
    pose = np.zeros(1, POSE)[0]
    pose["orientation"][3] = 1.0
    q = spatial.quaternion(pose["orientation"])
    v = spatial.vector(pose["position"])
    spatial.put_vector(pose["position"], spatial.cross(v, spatial.subtract(spatial.add(v, v), spatial.scaled(v, 2.0))))
    spatial.put_quaternion(pose["orientation"], spatial.normalise(spatial.multiply(q, spatial.conjugate(q))))
    spatial.length(spatial.rotate(spatial.from_rotation_vector(v), spatial.rotation_vector(q)))
    spatial.to_scene(pose, spatial.to_body(pose, v))
