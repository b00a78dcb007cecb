"""Energy tanks: any law of a link, passive at any delay, because it may only spend what was put in.

Each end has a tank. What the law's force does for the hand is taken out, what the hand does against it goes in, each by
the work f . dx of the force that was really held. A share of the level goes to the other end all the time, as a running
total in every message, so that what a lost one said the next one says: what one end puts in the other may spend, later.
The levels even out with the time constant HAND_OVER.

    force = level_share(H) * law - d v        d = d_max (1 - H / H_wanted) while H < H_wanted

An end whose tank falls below what is wanted fills it by a drag on its own hand; one whose tank is nearly empty fades
the law's force, to nothing when there is nothing left. All that ever comes out is what hands have put in and what both
tanks held in the beginning (the two layers of Franken, Stramigioli, Misra, Secchi and Macchelli 2011, a time-domain
passivity control that lets an end have back what it has itself stored in a spring).
"""

from haptics.tables import Record
from rtcore.kernels import inner, kernel

HAND_OVER = 0.1
"""s, time constant of levels that even out."""

FADES_BELOW = 0.25
"""Of the level that is wanted: from here down the law's force fades."""

MOST = 4.0
"""Of the level that is wanted, what a tank holds: more is let go."""


@kernel
def level_share(settings: Record, link: Record) -> float:
    """Share of the law's force that the level allows, 0 to 1."""
    return min(max(link.credit / (FADES_BELOW * settings.tank), 0.0), 1.0)


@inner
def hear_tank(link: Record, energy: float) -> None:
    """Take in what the other end's total (J) says that it has handed over."""
    link.credit += max(energy - link.energy_seen, 0.0)
    link.energy_seen = max(link.energy_seen, energy)


@kernel
def pass_energy(settings: Record, link: Record, port: Record) -> None:
    """One tick of a tank: book the work, let go what is too much, hand over."""
    for k in range(6):
        link.credit -= port.applied[k] * port.moved[k]
    link.credit = min(link.credit, MOST * settings.tank)
    if link.credit > 0.0:
        given = link.credit * settings.dt / HAND_OVER
        link.credit -= given
        link.energy_sent += given


@kernel
def filling(settings: Record, link: Record) -> float:
    """Damping (N·s/m) of the drag that fills the tank."""
    return settings.tank_damping * min(max(1.0 - link.credit / settings.tank, 0.0), 1.0)
