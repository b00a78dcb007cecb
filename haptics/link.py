"""A link between two hands, or a hand and a robot: what one end feels of the other.

Each end says, tick by tick, where it is, how it moves and what its surroundings do to it (PEER), and hears the same of
the other, some time ago. What is heard is put into this end's axes and scale: with the reflection M and the scale s

    x = s M x_other      v = s M v_other      f = M f_other / s      rotation vectors and torques by det(M) M

so power is the same at both ends, and the place of the other is offset to where this end was when the link came up
(:mod:`haptics.link_place`). Then, with x_o, v_o, f_o of the other end,

    position-position    f = K (x_o - x) + B (v_o - v)
    position-force       leader: f = c f_o        follower: as position-position
    four-channel         f = K (x_o - x) + B (v_o - v) + c f_o        (Lawrence 1993: positions and forces both ways)

at this device, and the like for turning. Delay makes each of them produce energy. Two methods keep them passive: waves
(:mod:`haptics.waves`), a law of their own, and tanks (:mod:`haptics.tank`), with any law.

The link's force comes and goes by a ramp; a silent, distant or contradicting other end is let go by it, with a reason.
It comes up again with a new offset, and only while each end says that it could be up. What follows a velocity fades
with the age of the sample, as elsewhere.

With a dead-band d an end says nothing while its signals are within the share d of what it said last (Weber's law;
Hinterseer and others 2008), but every 20 ms (``keep_alive_ticks``).
"""

import math

from haptics.coupling import turning_torque
from haptics.link_codes import (
    APART,
    COUNTERPART,
    FELT,
    FOUR_CHANNEL,
    KEPT_APART,
    KEPT_BACK,
    LET_GO,
    LINKED,
    LOST,
    MISFIT,
    MISMATCH,
    NO_REASON,
    NOT_ENGAGED,
    NOT_FINITE,
    OFF,
    OTHER_NOT_ENGAGED,
    POSITION_FORCE_LEADER,
    SILENT,
    TANK,
    UP,
    WAITING,
    WAVES,
)
from haptics.link_place import mirror_axis, place_other
from haptics.tables import Record
from haptics.tank import filling, hear_tank, level_share, pass_energy
from haptics.waves import begin_waves, hear_wave, pass_waves, wave_wrench
from rtcore.kernels import inner, kernel
from rtcore.spatial import (
    Vector,
    add,
    conjugate,
    length,
    multiply,
    put_quaternion,
    put_vector,
    quaternion,
    rotation_vector,
    scaled,
    subtract,
    vector,
)

FLOORS = (1e-3, 1e-2, 0.02, 1e-3)
"""m/s, rad/s, N, N·m (of a wave: sqrt(W)): changes below this are never felt, however small the signal."""

TURN_MOST = 1.0
"""rad: the spring that turns pulls no harder beyond."""


@inner
def fits(settings: Record, message: Record) -> bool:
    """Whether the other end means the same by what it says, and the two make no energy by what they mean.

    In words: :func:`haptics.link_settings.misfit`.
    """
    if message.method != settings.method or message.law != COUNTERPART[settings.law]:
        return False
    if message.mirror != mirror_axis(settings) or not abs(message.scale * settings.scale - 1.0) <= MISFIT:
        return False
    shared = settings.share + message.share
    if shared != 0.0 and not abs(shared - 1.0) <= MISFIT:
        return False
    if settings.method != WAVES:
        return True
    here, there = settings.impedance[0] * settings.scale * settings.scale, message.impedance[0]
    turning = settings.impedance[1] - message.impedance[1]
    return abs(here - there) <= 1e-6 * here and abs(turning) <= 1e-6 * settings.impedance[1]


@inner
def finite(message: Record) -> bool:
    """Whether the message holds numbers only; decoders see to it, and nothing rests on that."""
    total = message.energy + message.wave_energy
    total += message.scale + message.share + message.align_speed
    for k in range(6):
        total += abs(message.twist[k]) + abs(message.wrench[k]) + abs(message.wave[k])
    for k in range(3):
        total += abs(message.position[k]) + abs(message.offset_position[k])
    for k in range(4):
        total += abs(message.orientation[k]) + abs(message.offset_orientation[k])
    return math.isfinite(total)


@inner
def come_up(settings: Record, link: Record, message: Record) -> None:
    """The link comes up: what was said before does not count."""
    if link.session != message.session:
        # Who begins gets something to spend; who goes on with the same end has what is left.
        link.credit = settings.tank if settings.method == TANK else 0.5 * settings.tank
        link.wave_in_credit = 0.5 * settings.tank
    link.session = message.session
    link.begun += 1
    link.begun_seen = message.begun
    link.energy_seen = message.energy
    if settings.method == WAVES:
        begin_waves(settings, link, message.wave_energy, message.t_sent)
    link.state, link.reason = UP, NO_REASON


@inner
def leads_on(link: Record, message: Record) -> bool:
    """Whether the end that decides is up, and has been since this one followed it."""
    return message.active == LINKED and (link.state != UP or message.begun == link.begun_seen)


@inner
def judge(settings: Record, link: Record, peer: Record, port: Record) -> int:
    """Why the link cannot be up in this tick, or NO_REASON."""
    message = peer.message
    if port.engaged == 0:
        link.apart = 0
        return NOT_ENGAGED
    if message.session == 0 or peer.age_ns > settings.stale_after_ns:
        return SILENT
    if not finite(message):
        return NOT_FINITE
    if not fits(settings, message):
        return MISMATCH
    if message.active == LET_GO:
        link.apart = 0
        return OTHER_NOT_ENGAGED
    if message.active == KEPT_BACK:
        return OTHER_NOT_ENGAGED
    # Who was too far is not drawn near by a new offset: one of the two lets go of the forces first.
    if link.apart != 0 or message.active == KEPT_APART:
        return APART
    if link.state == UP and message.session != link.session:
        return SILENT
    if peer.decides == 0 and not leads_on(link, message):
        return OTHER_NOT_ENGAGED
    return NO_REASON


@inner
def put_down(link: Record, reason: int) -> None:
    """The link is not up, or no longer."""
    if link.state == UP:
        link.state = LOST
    elif link.state == OFF or reason == NOT_ENGAGED:
        link.state = WAITING
    # Wrench and twist stay as they were last, so that what is felt of them goes by the ramp.
    link.reason = reason


@kernel
def hear(settings: Record, link: Record, peer: Record, port: Record) -> None:
    """What came from the other end: whether the link is up, and where the other is (``link.other_*``).

    ``settings`` LINK_SETTINGS, ``link`` LINK, ``peer`` PEER_INPUT, ``port`` PORT with pose and ``engaged``.
    """
    message = peer.message
    link.silent_ticks = min(link.silent_ticks + 1, 1 << 30)
    link.clock += 1
    fresh = peer.fresh != 0
    if fresh:
        link.silent_ticks = 0
    reason = judge(settings, link, peer, port)
    up = link.state == UP
    if reason == NO_REASON and (up or link.gain == 0.0):
        place_other(settings, link, peer, port)
        if up and fresh:
            if settings.method == WAVES:
                hear_wave(settings, link, message.wave_energy, message.t_sent)
            elif settings.method == TANK:
                hear_tank(link, message.energy)
        if length(subtract(vector(link.other_position), vector(port.position))) > settings.distance_max:
            reason = APART
            link.apart = 1 if up else 0
        elif not up:
            come_up(settings, link, message)
    elif reason == NO_REASON:
        # What was lost comes back by a new beginning, once its force has gone.
        reason = link.reason
    if reason != NO_REASON:
        put_down(link, reason)
        link.gain = max(link.gain - 1.0 / settings.ramp_down_ticks, 0.0)
    else:
        link.gain = min(link.gain + 1.0 / settings.ramp_up_ticks, 1.0)


@inner
def say_nothing(output: Record) -> None:
    """Write every field of LINK_OUTPUT: there is no link, or nothing has been said yet."""
    message = output.message
    message.session = message.seq = message.begun = 0
    message.t_sent = message.t_echo = message.t_held = 0
    for k in range(6):
        output.wrench[k] = message.twist[k] = message.wrench[k] = message.wave[k] = 0.0
    for k in range(4):
        message.padding[k] = 0
    for k in range(3):
        message.position[k] = message.offset_position[k] = 0.0
    for k in range(4):
        message.orientation[k] = message.offset_orientation[k] = 0.0
    message.impedance[0] = message.impedance[1] = 0.0
    message.wave_energy = message.energy = 0.0
    message.scale = message.share = message.align_speed = 0.0
    message.method = message.active = message.law = message.mirror = 0
    output.energy = output.credit = output.distance = output.gain = output.shared = 0.0
    output.state = output.reason = output.send = output.padding = 0


@inner
def other_freshness(settings: Record, link: Record) -> float:
    """Share of the other end's velocity that counts still: it fades within ``keep_alive_ticks`` of silence."""
    return max(1.0 - link.silent_ticks / max(settings.keep_alive_ticks, 1), 0.0)


@inner
def law_force(settings: Record, link: Record, port: Record) -> Vector:
    """Force (N, scene axes) that the law wants on the hand."""
    force = (0.0, 0.0, 0.0)
    if settings.law != POSITION_FORCE_LEADER:
        way = subtract(vector(link.other_position), vector(port.position))
        closing = subtract(
            scaled(vector(link.other_twist[:3]), other_freshness(settings, link)), vector(port.twist[:3])
        )
        force = add(scaled(way, settings.stiffness), scaled(closing, port.fresh * settings.damping))
    if settings.law == POSITION_FORCE_LEADER or settings.law == FOUR_CHANNEL:
        force = add(force, scaled(vector(link.other_wrench[:3]), settings.force_gain))
    return force


@inner
def law_torque(settings: Record, link: Record, port: Record) -> Vector:
    """Torque (N·m, scene axes) that the law wants on the hand."""
    torque = (0.0, 0.0, 0.0)
    if settings.rotational_stiffness == 0.0:
        return torque
    if settings.law != POSITION_FORCE_LEADER:
        turn = multiply(quaternion(link.other_orientation), conjugate(quaternion(port.orientation)))
        way = rotation_vector(turn)
        angle = length(way)
        if angle > 0.0:
            stiffness = settings.rotational_stiffness
            way = scaled(way, turning_torque(stiffness, stiffness * TURN_MOST, angle) / angle)
        closing = subtract(
            scaled(vector(link.other_twist[3:]), other_freshness(settings, link)), vector(port.twist[3:])
        )
        torque = add(way, scaled(closing, port.fresh * settings.rotational_damping))
    if settings.law == POSITION_FORCE_LEADER or settings.law == FOUR_CHANNEL:
        torque = add(torque, scaled(vector(link.other_wrench[3:]), settings.force_gain))
    return torque


@inner
def differs(now: Vector, then: Vector, dead_band: float, floor: float) -> bool:
    """Whether a signal has left the dead-band about what was told."""
    return length(subtract(now, then)) > max(dead_band * length(then), floor)


@inner
def worth_telling(settings: Record, link: Record, signals: Record) -> bool:
    """Whether any of the signals, (12,) by threes, is not what it was when they were told; keeps them if so."""
    if settings.dead_band > 0.0 and link.quiet_ticks < settings.keep_alive_ticks:
        changed = False
        for k in range(0, 12, 3):
            floor = FLOORS[0] if k == 0 else FLOORS[1] if k == 3 else FLOORS[2] if k == 6 else FLOORS[3]
            now, then = vector(signals[k : k + 3]), vector(link.told[k : k + 3])
            changed = changed or differs(now, then, settings.dead_band, floor)
        if not changed:
            return False
    for k in range(12):
        link.told[k] = signals[k]
    return True


@inner
def own_activity(link: Record, port: Record) -> int:
    """What this end says of itself. Who only hears that the other one is kept apart could be up itself."""
    if port.engaged == 0 or link.reason == NOT_ENGAGED:
        return LET_GO
    if link.apart != 0:
        return KEPT_APART
    if link.state == UP:
        return LINKED
    able = link.reason == NO_REASON or link.reason == OTHER_NOT_ENGAGED or link.reason == APART
    return FELT if able else KEPT_BACK


@inner
def tell(settings: Record, link: Record, port: Record, output: Record) -> None:
    """The message of this tick (``output.message``), and whether it is to go out (``output.send``)."""
    message = output.message
    for k in range(3):
        message.position[k] = port.position[k]
    for k in range(4):
        message.orientation[k] = port.orientation[k]
    for k in range(6):
        message.twist[k] = port.twist[k]
        message.wrench[k] = port.wrench[k]
        message.wave[k] = link.wave_sent[k]
    message.wave_energy = link.wave_energy_sent
    message.energy = link.energy_sent
    message.impedance[0] = settings.impedance[0]
    message.impedance[1] = settings.impedance[1]
    message.method = settings.method
    message.law = settings.law
    message.mirror = mirror_axis(settings)
    message.scale = settings.scale
    message.share = settings.share
    message.align_speed = settings.align_speed
    message.begun = link.begun
    message.offset_orientation[3] = 1.0
    if link.state == UP:
        put_vector(message.offset_position, vector(link.offset_position))
        put_quaternion(message.offset_orientation, quaternion(link.offset_orientation))
    message.active = own_activity(link, port)
    link.quiet_ticks += 1
    output.send = 1 if worth_telling(settings, link, link.signals) or message.active != link.told_active else 0
    if output.send != 0:
        link.told_active = message.active
        link.quiet_ticks = 0
        link.sent += 1
    message.seq = link.sent


@inner
def report(link: Record, port: Record, output: Record, on: bool) -> None:
    """What a tick says of the link besides its message; ``on``: up, or ramping down."""
    output.energy = link.port_energy
    output.credit = link.credit
    output.distance = length(subtract(vector(link.other_position), vector(port.position))) if on else 0.0
    output.gain = link.gain
    output.state = link.state
    output.reason = link.reason


@kernel
def render(settings: Record, link: Record, port: Record, output: Record) -> None:
    """What the hand feels of the other end (``output.wrench``, scene axes), and what the other end is told.

    ``settings`` LINK_SETTINGS, ``link`` LINK after :func:`hear`, ``port`` PORT, ``output`` LINK_OUTPUT.
    """
    say_nothing(output)
    for k in range(6):
        link.port_energy += port.applied[k] * port.moved[k]
        link.signals[k] = port.twist[k]
        link.signals[6 + k] = port.wrench[k]
    on = link.state == UP or link.gain > 0.0
    if on and settings.method == WAVES:
        pass_waves(settings, link, port, link.signals)
        wave_wrench(settings, link, port, output.wrench)
        for k in range(6):
            output.wrench[k] *= link.gain
            link.signals[6 + k] = 0.0
    elif on:
        share, drag = 1.0, 0.0
        if settings.method == TANK:
            pass_energy(settings, link, port)
            share, drag = level_share(settings, link), port.fresh * filling(settings, link)
        force, torque = law_force(settings, link, port), law_torque(settings, link, port)
        for k in range(3):
            output.wrench[k] = link.gain * (share * force[k] - drag * port.twist[k])
            output.wrench[3 + k] = link.gain * share * torque[k]
    tell(settings, link, port, output)
    report(link, port, output, on)
