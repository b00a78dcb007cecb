"""Warm-up: afterwards a tick compiles nothing and allocates nothing, whatever happens in it."""

import gc
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
from haptics_rig import BLOCK, REACH, REST, Rig, block_model, plane_model
from numba.core import event
from numba.core.runtime import _nrt_python as _nrt
from numba.core.runtime import rtsys
from scipy.spatial.transform import Rotation

from haptics import coupling, engagement, limits, velocity, workspace
from haptics.states import CommandKind
from haptics.tick import tick
from haptics.warm_up import warm_up
from rtcore import mesh_tool, probe
from rtcore.collision.broad_phase import find_pairs
from rtcore.collision.contact_set import update_contacts
from rtcore.collision.front import coherent_contact
from rtcore.collision.mesh_distance import mesh_distance
from rtcore.collision.nearest import clearance
from rtcore.motion import between


@pytest.fixture(scope="module", autouse=True)
def warm():
    said: list[tuple[str, int, int]] = []
    warm_up(lambda what, done, of: said.append((what, done, of)))
    return said


def test_progress_counts_up_to_its_total(warm):
    ours = [row for row in warm if row[0].startswith("haptics")]
    assert [row[1] for row in ours] == list(range(len(ours)))
    assert ours[-1][1] == ours[-1][2]


def sphere_tip() -> Rig:
    """A tip that has been pressed onto a plane, beside a body that may be posed."""
    rig = Rig(plane_model(friction=0.3, tip_offset=(0.01, 0.0, 0.0), held_at=(0.3, 0.3, 0.3)))
    rig.activate((0.0, 0.0, REST + 0.001))
    rig.press(0.003)
    return rig


def tool_mesh(turning: float = 0.0) -> Rig:
    """A cube that has been turned and pressed onto a plane, beside a body that may be posed."""
    start = (0.0, 0.0, BLOCK + 0.001)
    rig = Rig(block_model(held_at=(0.3, 0.3, 0.3), turning=turning), tool_reach=REACH, start=start, ramp_up_ms=50.0)
    rig.activate(start)
    for k in range(40):
        rig.send((0.0, 0.0, start[2] - 1e-4 * k), orientation=Rotation.from_rotvec((0.01 * k, 0.0, 0.0)).as_quat())
    report = rig.output["report"]
    assert report["fraction"] < 1.0 if turning == 0.0 else report["contacts"]["displacement"].any()
    return rig


def yielding_tool() -> Rig:
    """The same cube, giving way to the plane."""
    return tool_mesh(turning=1e-3)


def everything(rig: Rig) -> None:
    """A session through all commands and states, from ACTIVE."""
    for kind in CommandKind:
        rig.put(kind, 1.0, 1.0)
        rig.send()
        rig.silence(3)
    rig.silence(50)
    rig.put(CommandKind.LEASE)
    rig.send((0.0, 0.0, REST - 0.001), twist=(0.0,) * 6)
    rig.send(valid=0)


@pytest.mark.parametrize("tool", [sphere_tip, tool_mesh, yielding_tool])
def test_a_warm_tick_compiles_nothing(tool):
    class Listener(event.Listener):
        compiled = 0

        def on_start(self, event):
            self.compiled += 1

        def on_end(self, event):
            pass

    listener = Listener()
    event.register("numba:compile", listener)
    try:
        everything(tool())
    finally:
        event.unregister("numba:compile", listener)
    assert listener.compiled == 0


STAGES = (
    engagement.decide,
    workspace.map_device,
    velocity.observe,
    coupling.couple,
    limits.limit,
    tick,
    probe.follow,
    mesh_tool.look,
    mesh_tool.sweep_pairs,
    mesh_tool.place,
    coherent_contact,
    find_pairs,
    mesh_distance,
    update_contacts,
    clearance,
    between,
)


def test_the_stages_that_warm_up_compiles_are_those_that_tick_calls():
    """One signature each, in a process in which nobody else has called them."""
    code = (
        "import test_warm_tick as t; t.warm_up(); "
        "[t.everything(tool()) for tool in (t.sphere_tip, t.tool_mesh, t.yielding_tool)]; "
        "print([stage.__name__ for stage in t.STAGES if len(stage.signatures) != 1])"
    )
    here = Path(__file__).resolve().parent
    paths = [str(here), str(here.parent), str(here.parent.parent)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stdout + done.stderr


TICKS = 3000


@pytest.mark.parametrize("tool", [sphere_tip, tool_mesh, yielding_tool])
def test_a_warm_tick_allocates_nothing(tool):
    rig = tool()
    arguments = rig.model, rig.state, rig.settings, rig.touch, rig.record
    rig.input["fresh"] = 1

    _nrt.memsys_enable_stats()
    try:
        tick(*arguments)
        before = rtsys.get_allocation_stats().alloc
        for _ in range(1000):
            tick(*arguments)
        assert rtsys.get_allocation_stats().alloc == before
    finally:
        _nrt.memsys_disable_stats()

    gc.collect()
    tracemalloc.start()
    try:
        kept = []
        while len(kept) < 5 and not quiet(kept):
            before = tracemalloc.get_traced_memory()[0]
            for _ in range(TICKS):
                tick(*arguments)
            kept.append(tracemalloc.get_traced_memory()[0] - before)
    finally:
        tracemalloc.stop()
    assert quiet(kept), kept


def quiet(kept: list[int]) -> bool:
    """Whether a stretch of TICKS ticks kept nothing, of the bytes that each kept.

    One byte per tick would make TICKS in every stretch. The interpreter's own tables grow now and then, so one quiet
    stretch is enough; the loop's own list takes some bytes.
    """
    return min(kept, default=TICKS) < TICKS // 3
