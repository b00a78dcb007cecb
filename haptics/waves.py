"""Wave variables with their integrals: a line between two ends that no delay and no loss makes produce energy.

At an end with velocity v (of the hand) and force f (by which the hand pushes into the line), per axis and with the
impedance b:

    u_out = (f + b v) / sqrt(2 b)       u_in = (f - b v) / sqrt(2 b)       f v = (u_out^2 - u_in^2) / 2

and what comes in at one end is what went out at the other, some time ago, with the sign turned: equal velocities and
opposite forces are told from end to end (Anderson and Spong 1989; Niemeyer and Slotine 1991). A hand is an impedance,
so each end computes

    f = b v + sqrt(2 b) u_in            u_out = u_in + sqrt(2 b) v

and the line of a delay T is a spring of b / T and a mass of b T between them. A wave that comes is spread over some
ticks, a first-order filter, which is a spring as well: with b / K seconds of it the line is no stiffer than K, and

    f = (x_1 - x_2) / (1 / K + T / b)        at rest.

Ends send integrals: of the wave, U, and of its power, E. So a message that is lost takes nothing with it, and positions
do not drift apart (Niemeyer and Slotine 2004). The receiver lets the wave in at an even age, that of the latest it has
lately had to wait for, told by when messages were sent, and at the mean rate of each; and releases no more power than
came of E. The square of a mean is at most the mean of the squares, so what is let in evenly is not shortened, and what
has to be waits.

The ledger of an end is exact in what samples can tell: at each sample it books the work f . dx of the force that was
really held, limits and ramps included, and sends out no more power than came in and was worked into the line. What
holding the force between samples produces is thereby taken off the outgoing wave. Both accounts begin with half a tank,
from which unevenness is paid: that is the most that the line ever gives of its own, however often it is let go and
comes up again with the same other end.
"""

import math

from haptics.tables import Record
from rtcore.kernels import inner, kernel

FILTER_LEAST = 0.01
"""s: a line stiffer than b / FILTER_LEAST shakes devices that are held lightly, by the delay of their velocities."""

SPREAD_MOST = 100
"""Ticks by which a wave waits at most."""

FORGET = 50
"""Ticks in which the age at which waves are let in is a tick less, where nothing comes later any more."""

FORGET_SHARE = 1.0 / 200.0
"""Of what waves wait, by which that age is less per tick, where it is more: ages that fall on and on, at an end that
misses some of its ticks, are followed to within 200 times what they fall per tick."""

CATCH_UP = 20
"""Ticks in which the wave that goes out makes up for what the estimated velocity differs from the way that was gone:
encoder steps, sent as they come, would be spikes that carry energy and tell nothing. Likewise for what comes in."""

OVERDRAWN = 0.1
"""Of what a tank holds, by which a ledger may be overdrawn before nothing more is rendered."""


@inner
def filter_time(settings: Record) -> float:
    """Time constant (s) of the filter by which the line is as stiff as is asked for."""
    return max(settings.impedance[0] / settings.stiffness, FILTER_LEAST)


@inner
def put_released(pending: Record, released: Record, dt: float, credit: float) -> float:
    """Release a wave (6, sqrt(W)) for a tick: no more of it than ``credit`` (J) allows.

    Shortens ``released`` to that, takes it off ``pending`` (6, sqrt(W) s), returns the energy (J) that it carries.
    """
    square = 0.0
    for k in range(6):
        square += released[k] * released[k]
    energy = 0.5 * square * dt
    share, allowed = 1.0, max(credit, 0.0)
    if energy > allowed:
        share = math.sqrt(allowed / energy)
        energy = allowed
    for k in range(6):
        released[k] *= share
        pending[k] -= released[k] * dt
    return energy


@inner
def message_age(settings: Record, link: Record) -> float:
    """Ticks since the newest message was sent, but for what the two clocks are apart."""
    return link.clock - 1e-9 * link.wave_sent_at / settings.dt


@inner
def hear_wave(settings: Record, link: Record, energy: float, sent_at: int) -> None:
    """Take in a message's integrals: ``link.wave_heard`` and ``energy`` (J), sent at ``sent_at`` (ns, their clock)."""
    ticks = round(1e-9 * (sent_at - link.wave_sent_at) / settings.dt)
    ticks = min(max(ticks, 1.0), SPREAD_MOST)
    for k in range(6):
        came = link.wave_seen[k] - link.wave_heard[k]
        link.wave_pending[k] += came
        link.wave_rate[k] = came / ticks
        link.wave_seen[k] = link.wave_heard[k]
    link.wave_in_credit += max(energy - link.wave_energy_seen, 0.0)
    link.wave_energy_seen = max(link.wave_energy_seen, energy)
    link.wave_sent_at = sent_at


@inner
def begin_waves(settings: Record, link: Record, energy: float, sent_at: int) -> None:
    """The line is at rest: what was said before does not count."""
    for k in range(6):
        link.wave_seen[k] = link.wave_heard[k]
        link.wave_pending[k] = link.wave_rate[k] = link.wave_filtered[k] = 0.0
        link.wave_out_pending[k] = 0.0
        link.wave_in[k] = 0.0
    link.wave_energy_seen = energy
    link.credit = min(link.credit, 0.5 * settings.tank)
    link.wave_in_credit = min(link.wave_in_credit, 0.5 * settings.tank)
    link.wave_sent_at = sent_at
    link.wave_age = message_age(settings, link)


@inner
def send_wave(settings: Record, link: Record, port: Record, out: Record) -> None:
    """The wave (6, sqrt(W)) that goes out, by how the hand has moved and what came in meanwhile."""
    dt = settings.dt
    worked = square = 0.0
    for k in range(6):
        root = math.sqrt(2.0 * (settings.impedance[0] if k < 3 else settings.impedance[1]))
        link.wave_out_pending[k] += link.wave_in[k] * dt + root * port.moved[k]
        square += link.wave_in[k] * link.wave_in[k]
        worked -= port.applied[k] * port.moved[k]
        estimate = link.wave_in[k] + root * port.fresh * port.twist[k]
        out[k] = estimate + (link.wave_out_pending[k] - estimate * dt) / (CATCH_UP * dt)
    link.credit = min(link.credit + 0.5 * square * dt + worked, settings.tank)
    energy = put_released(link.wave_out_pending, out, dt, link.credit)
    link.credit -= energy
    link.wave_energy_sent += energy
    for k in range(6):
        link.wave_sent[k] += out[k] * dt


@inner
def take_wave(settings: Record, link: Record) -> None:
    """The wave that comes in, of what has been heard (``link.wave_in``)."""
    dt = settings.dt
    age = message_age(settings, link)
    forgotten = max(1.0 / FORGET, FORGET_SHARE * (link.wave_age - age))
    link.wave_age = min(max(link.wave_age - forgotten, age), age + SPREAD_MOST)
    waits = link.wave_age - age
    time = filter_time(settings)
    for k in range(6):
        rate = link.wave_rate[k]
        part = rate + (link.wave_pending[k] - rate * (1.0 + waits)) / CATCH_UP
        if abs(part) > abs(link.wave_pending[k]) or part * link.wave_pending[k] < 0.0:
            part = link.wave_pending[k]
        link.wave_pending[k] -= part
        link.wave_filtered[k] += part
        link.wave_in[k] = link.wave_filtered[k] / time
    link.wave_in_credit = min(link.wave_in_credit, settings.tank)
    link.wave_in_credit -= put_released(link.wave_filtered, link.wave_in, dt, link.wave_in_credit)


@kernel
def pass_waves(settings: Record, link: Record, port: Record, out: Record) -> None:
    """One tick of an end: the wave that goes out, then the one that comes in.

    ``settings`` LINK_SETTINGS, ``link`` LINK, ``port`` PORT; ``out`` (6,) gets the wave that went out, sqrt(W).
    """
    send_wave(settings, link, port, out)
    take_wave(settings, link)


@kernel
def wave_wrench(settings: Record, link: Record, port: Record, wrench: Record) -> None:
    """Wrench (6,) on the hand: -(b v + sqrt(2 b) u_in), scene axes; less where the ledger is overdrawn."""
    share = min(max(1.0 + link.credit / (OVERDRAWN * settings.tank), 0.0), 1.0)
    for k in range(6):
        impedance = settings.impedance[0] if k < 3 else settings.impedance[1]
        wrench[k] = -share * (port.fresh * impedance * port.twist[k] + math.sqrt(2.0 * impedance) * link.wave_in[k])
