"""Compile every kernel that a tick reaches, once, into the cache on disk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import types

from haptics import commands, coupling, engagement, limits, posing, samples, velocity, workspace
from haptics.tables import INPUT, OUTPUT, RECORD, SAMPLE, SETTINGS, TOUCH
from haptics.tick import tick
from rtcore.geometry.tree import build_tree
from rtcore.model import Model, ModelBuilder
from rtcore.state import State, make_state
from rtcore.tables import PROXY, WORLD
from rtcore.warm_up import warm_up as warm_up_mechanics

Progress = Callable[[str, int, int], None]
"""Called with what is compiled next, how many parts are done, and how many there are."""


def warm_up(progress: Progress | None = None) -> None:
    """Compile the kernels of rtcore, then those of haptics, or load them from the cache.

    Afterwards a tick with tables of the project's own record types compiles nothing.
    """
    warm_up_mechanics(progress)
    model, state = _smallest()
    tables = numba.typeof(model), numba.typeof(state)
    world, proxy, settings, touch, sample, taken, output = (
        numba.from_dtype(dtype) for dtype in (WORLD, PROXY, SETTINGS, TOUCH, SAMPLE, INPUT, OUTPUT)
    )
    rows = tuple(numba.typeof(np.zeros(1, dtype)) for dtype in (SETTINGS, TOUCH, RECORD))
    # Callees first: they would be compiled on the way anyhow, and so the progress keeps moving.
    parts: tuple[tuple[str, Any, tuple], ...] = (
        ("samples", samples.take_sample, (world, settings, touch, taken)),
        ("posing of bodies", posing.pose_body, (*tables, types.Array(types.float64, 1, "C"))),
        ("commands", commands.carry_out, (*tables, settings, touch, taken, output)),
        ("transitions", engagement.move_on, (world, proxy, settings, touch, taken, output)),
        ("engagement", engagement.decide, (*tables, settings, touch, taken, output)),
        ("workspace", workspace.map_device, (world, proxy, settings, touch)),
        ("velocity", velocity.observe, (world, proxy, settings, touch, sample)),
        ("coupling", coupling.couple, (world, proxy, settings, touch, output)),
        ("limits", limits.limit, (settings, touch, output)),
        ("tick", tick, (*tables, *rows)),
    )
    for done, (name, kernel, signature) in enumerate(parts):
        if progress is not None:
            progress(f"haptics: {name}", done, len(parts))
        kernel.compile(signature)
    if progress is not None:
        progress("haptics: ready", len(parts), len(parts))


def _smallest() -> tuple[Model, State]:
    """A model with tables of the real types: one triangle."""
    builder = ModelBuilder()
    corners = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    builder.add_body(builder.add_mesh(*build_tree(corners, np.array([[0, 1, 2]]))))
    model = builder.build(0.01, (0.0, 0.0, 0.0), 1e-4, 2e-4, 4e-4)
    return model, make_state(model, (0.0, 0.0, 1.0))
