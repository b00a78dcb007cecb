"""Compile every kernel that a tick reaches, once, into the cache on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import types

from haptics import (
    bodies,
    commands,
    contact_planes,
    coupling,
    engagement,
    fixtures,
    limits,
    passivity,
    posing,
    rate,
    samples,
    velocity,
    workspace,
)
from haptics.tables import BODY_SAMPLE, INPUT, OUTPUT, RECORD, SAMPLE, SETTINGS, TOUCH
from haptics.tick import tick
from rtcore import warm_up as mechanics
from rtcore.dynamics.rigid_body import BODY_VELOCITY
from rtcore.tables import POSE, PROXY, WORLD
from rtcore.warm_up import SECOND, Part, Progress


def warm_up(progress: Progress | None = None) -> None:
    """Compile the kernels of rtcore, then those of haptics, or load them from the cache.

    Afterwards a tick with tables of the project's own record types compiles nothing, whatever the tool.
    """
    mechanics.warm_up(progress)
    mechanics.run(parts(), "haptics: ready", progress)


def warm_up_side(side: int, progress: Progress | None = None, wait: Callable[[], Any] | None = None) -> None:
    """Compile one side's parts (FIRST or SECOND) of what :func:`warm_up` needs; another process does the other's.

    `wait` is called when what is left needs what the other side compiles.
    """
    chosen = [part for part in (*mechanics.parts(), *parts()) if part.side == side]
    chosen.sort(key=lambda part: part.last)
    if wait is not None:
        first = next(number for number, part in enumerate(chosen) if part.last)
        chosen[first] = chosen[first]._replace(compile=_after(wait, chosen[first].compile))
    mechanics.run(chosen, "ready", progress)


def _after(wait: Callable[[], Any], build: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: (wait(), build())


def parts() -> tuple[Part, ...]:
    """All kernels of the touch layer; callees first: they would be compiled on the way anyhow, and so it shows."""
    tables = tuple(numba.typeof(table) for table in mechanics.empty_tables())
    world, proxy, settings, touch, sample, taken, output = (
        numba.from_dtype(dtype) for dtype in (WORLD, PROXY, SETTINGS, TOUCH, SAMPLE, INPUT, OUTPUT)
    )
    rows = tuple(numba.typeof(np.zeros(1, dtype)) for dtype in (SETTINGS, TOUCH, RECORD))
    states = tuple(numba.typeof(np.zeros(0, dtype)) for dtype in (POSE, BODY_VELOCITY, np.int32, BODY_SAMPLE))

    def part(what: str, kernel: Any, signature: tuple, last: bool = False) -> Part:
        def build() -> None:
            kernel.compile(signature)

        return Part(f"haptics: {what}", SECOND, build, last)

    return (
        part("samples", samples.take_sample, (world, settings, touch, taken)),
        part("workspace", workspace.map_device, (world, proxy, settings, touch)),
        part("fixtures", fixtures.lead, (proxy, settings, touch, output)),
        part("velocity", velocity.observe, (world, proxy, settings, touch, sample)),
        part("rate", rate.observe, (settings, touch, output)),
        part("coupling", coupling.couple, (world, proxy, settings, touch, output)),
        part("planes of contacts", contact_planes.describe, (tables[0], settings, touch, output)),
        part("passivity", passivity.control, (settings, touch, output)),
        part("limits", limits.limit, (settings, touch, output)),
        part("transitions", engagement.move_on, (world, proxy, settings, touch, taken, output)),
        part("posing of bodies", posing.pose_body, (*tables, types.Array(types.float64, 1, "C"))),
        part("commands", commands.carry_out, (*tables, settings, touch, taken, output)),
        part("engagement", engagement.decide, (*tables, settings, touch, taken, output)),
        part("states of bodies", bodies.sample_bodies, states),
        part("tick", tick, (*tables, *rows), last=True),
    )
