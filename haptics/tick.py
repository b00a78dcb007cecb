"""One tick: a function of the state before it, its recorded input and its recorded budget. No clock is read."""

import numpy as np

from haptics import (
    contact_planes,
    coupling,
    effects,
    engagement,
    fixtures,
    limits,
    passivity,
    rate,
    teleoperation,
    velocity,
    workspace,
)
from rtcore.kernels import kernel
from rtcore.model import Model
from rtcore.state import State
from rtcore.step import take_step


@kernel
def tick(model: Model, state: State, settings: np.ndarray, touch: np.ndarray, record: np.ndarray) -> None:
    """Execute one tick.

    ``model`` and ``state`` are rtcore's; ``settings`` is (1,) SETTINGS, ``touch`` (1,) TOUCH and ``record`` (1,) RECORD
    with ``tick``, ``input`` and ``budget`` filled in. Changes state and touch, and writes every field of
    ``record.output``. The work is bounded by the budget and by the fixed sizes of the tables; nothing is allocated.
    """
    world = model.world[0]
    proxy = state.proxy[0]
    chosen = settings[0]
    memory = touch[0]
    now = record[0]
    memory.tick = now.tick
    engagement.decide(model, state, chosen, memory, now.input, now.output)
    workspace.map_device(world, proxy, chosen, memory)
    teleoperation.hear_other(world, chosen, memory, now.input)
    fixtures.lead(proxy, chosen, memory, now.output)
    workspace.stand(proxy, memory, now.output)
    take_step(model, state, memory.goal, now.budget, now.output.report)
    velocity.observe(world, proxy, chosen, memory, now.input.sample)
    rate.observe(chosen, memory, now.output)
    coupling.couple(world, proxy, chosen, memory, now.output)
    contact_planes.describe(model, chosen, memory, now.output)
    effects.add_effects(model, state, chosen, memory, now.output)
    teleoperation.feel_other(chosen, memory, now.output)
    passivity.control(chosen, memory, now.output)
    limits.limit(chosen, memory, now.output)
    now.output.valid_for_ns = chosen.valid_for_ns
