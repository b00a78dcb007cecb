"""Truths of a tool in a hand: a box pressed on a free box takes no energy from nowhere."""

import numpy as np

from tools.scenes.bodies import EPS, Solid, World, block, floor
from tools.truths.truth import Truth, books

G = 9.81
GAP = EPS[1]
STIFFNESS = 2000.0
TURNING = 20.0


def box_on_box(seconds: float = 3.0, tool_mass: float = 0.0, depth: float = 0.01, aside: float = 0.02) -> Truth:
    """A box in a hand is pressed on a free box on the ground, off its middle, and held: energy only ever falls.

    A Drake developer's haptic scene that gained energy at 0.5 ms and exploded at 1 ms (drake #18241). The hand stands
    still, so that spring, tool and body together get no energy after the first step. tool_mass: kg; 0: without mass.

    The bar: the tool may be stopped at eps_alert and is then led back to the gap at rest by the position pass, against
    the whole pull of the spring.
    """
    edge = 0.1
    under = Solid(block(edge, edge, edge), (0.0, 0.0, 0.5 * edge + GAP), mass=0.5, friction=0.5)
    start = np.array([aside, 0.01, 1.5 * edge + 2.0 * GAP + 1e-3])
    goal = start - [0.0, 0.0, depth + 1e-3]
    world = World([floor(0.5, 2.0), under], tool=block(edge, edge, edge), tool_at=start, tool_mass=tool_mass)
    world.hold(STIFFNESS, TURNING, goal, 2.0 * np.sqrt(STIFFNESS * tool_mass))
    energies = [world.energy + 0.5 * STIFFNESS * float((goal - start) @ (goal - start))]

    def look(tick: int) -> None:
        proxy = world.state.proxy[0]
        way = goal - proxy["position"]
        turn = 2.0 * np.arcsin(min(1.0, float(np.linalg.norm(proxy["orientation"][:3]))))
        energy = world.energy + 0.5 * STIFFNESS * way @ way + 0.5 * TURNING * turn**2
        if tool_mass > 0.0:
            own = world.state.velocities[-1]
            energy += 0.5 * tool_mass * own["linear"] @ own["linear"] + 0.5 * own["angular"] @ own["momentum"]
        energies.append(float(energy))

    ledger = world.keep_books(round(seconds / world.dt), look)
    rises = np.array(energies) - np.minimum.accumulate(energies)
    late = world.velocities[1]
    more = {
        "speed_at_end_m_s": float(f"{np.linalg.norm(late):.2g}"),
        "start_J": float(f"{energies[0]:.6g}"),
        "end_J": float(f"{energies[-1]:.6g}"),
        "at_s": float(np.argmax(rises) * world.dt),
        **books(ledger),
    }
    bar = STIFFNESS * depth * (EPS[1] - EPS[0])
    return Truth(float(rises.max()), 0.0, float(rises.max()), float(f"{bar:.3g}"), "largest gain of energy, J", more)
