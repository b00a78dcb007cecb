"""Record types of the touch layer, among them RECORD: everything about one tick.

RECORD is the unit of the shared ring, of the log and of re-execution. ``input`` and ``budget`` go in, the tick fills
``output`` as a function of them and of the state before; ``timing`` is what the servo measured and is not compared.
Where bodies move, ring and log hold their states as well, behind RECORD: see :func:`record_type`.
"""

from functools import cache
from typing import Any

import numpy as np

from rtcore.tables import BUDGET, MAX_CONTACTS, STEP_INPUT, STEP_REPORT

Record = Any
"""One row of a table, as kernels take it; the docstrings say of which type."""

COMMAND_VALUES = 8

COMMAND = np.dtype(
    [
        ("id", "u8"),  # counts up from 1 in the order of arrival; 0 means no command
        ("session", "u8"),
        ("values", "f8", COMMAND_VALUES),
        ("kind", "i4"),  # CommandKind
        ("padding", "i4"),
    ],
    align=True,
)

SAMPLE = np.dtype(
    [
        ("session", "u8"),
        ("seq", "u8"),
        ("t_sample", "i8"),  # client's monotonic clock, ns
        ("position", "f8", 3),  # device frame, m
        ("orientation", "f8", 4),  # xyzw, normalised on receipt
        ("twist", "f8", 6),  # device frame, [linear m/s, angular rad/s]; zero when has_twist is 0
        ("buttons", "u4"),
        ("has_twist", "u1"),
        ("deadman", "u1"),
        ("valid", "u1"),
        ("padding", "u1"),
    ],
    align=True,
)
"""One accepted device sample, as the client sent it."""

PEER = np.dtype(
    [
        ("session", "u8"),  # random, of the sender's start; 0: no message
        ("seq", "u8"),  # counts what was sent, from 1
        ("t_sent", "i8"),  # sender's monotonic clock, ns
        (
            "t_echo",
            "i8",
        ),  # t_sent of the newest message that the sender had got, 0 for none: tells the way there and back
        ("t_held", "i8"),  # ns that it had it for by then
        ("begun", "u8"),  # how often the link has come up at the sender
        ("position", "f8", 3),  # of the sender's hand: its image in scene axes, device m
        ("orientation", "f8", 4),
        ("twist", "f8", 6),  # scene axes, device m/s, rad/s
        ("wrench", "f8", 6),  # what the sender's surroundings do to it: scene axes, N, N·m
        ("wave", "f8", 6),  # integral of the wave that it sends, sqrt(W) s
        ("wave_energy", "f8"),  # J that the wave has carried since the session began
        ("energy", "f8"),  # J that its tank has handed over since the session began
        ("impedance", "f8", 2),  # of its waves, N·s/m and N·m·s/rad
        ("scale", "f8"),  # metres at the sender per metre at the receiver
        ("share", "f8"),  # of the receiver's hand in where the sender's tool is to go
        ("offset_position", "f8", 3),  # what the sender adds to the receiver's place, in the sender's axes, device m
        ("offset_orientation", "f8", 4),  # the same of its orientation, from the right
        ("align_speed", "f8"),  # m/s at which the sender would have the two come together
        ("method", "u1"),  # see haptics/link.py
        ("active", "u1"),  # LET_GO, FELT, KEPT_APART, KEPT_BACK or LINKED, see haptics/link_codes.py
        ("law", "u1"),  # see haptics/link_codes.py
        ("mirror", "u1"),  # axis of the reflection: 1 x, 2 y, 3 z; 0: none
        ("padding", "u1", 4),
    ],
    align=True,
)
"""What one end of a link tells the other."""

PEER_INPUT = np.dtype(
    [
        ("message", PEER),  # newest one that counts; kept from before when fresh is 0
        ("age_ns", "i8"),  # since it arrived; meaningless while there is none
        ("way_ns", "i8"),  # there and back, as the newest message tells; 0: not known
        ("received", "u8"),  # in total
        ("lost", "u8"),  # in total, by the gaps in their numbers
        ("fresh", "u1"),
        ("decides", "u1"),  # 1: the offset is this end's to choose, 0: the other's; by the larger session
        ("padding", "u1", 6),
    ],
    align=True,
)
"""What came from the other end of the link until this tick."""

INPUT = np.dtype(
    [
        ("sample", SAMPLE),  # newest accepted one of the owner; kept from before when fresh is 0
        ("command", COMMAND),
        ("age_ns", "i8"),  # age of that sample at this tick; meaningless while has_sample is 0
        ("rejected", "u4"),  # messages refused since the last tick
        ("reject_code", "u4"),  # bridge.wire code of the last of them
        ("fresh", "u1"),  # a new sample arrived for this tick
        ("has_sample", "u1"),  # the owner has sent at least one since its lease began
        ("supervisor_lost", "u1"),
        ("padding", "u1", 5),
        ("peer", PEER_INPUT),
    ],
    align=True,
)
"""All that enters a tick from outside, besides the budget."""

MAX_SURFACES = 16
MAX_REGIONS = 8
MAX_FIXTURES = 8

LINK_SETTINGS = np.dtype(
    [
        ("dt", "f8"),  # s
        ("stiffness", "f8"),  # of the spring between the two hands, N/m at this device
        ("damping", "f8"),  # N·s/m
        ("rotational_stiffness", "f8"),  # N·m/rad; 0: no torque
        ("rotational_damping", "f8"),  # N·m·s/rad
        ("force_gain", "f8"),  # share of the other end's wrench that is felt here
        ("impedance", "f8", 2),  # of the waves, N·s/m and N·m·s/rad
        ("scale", "f8"),  # metres here per metre there
        ("mirror", "f8", 3),  # diagonal of the reflection: each 1 or -1
        (
            "align_speed",
            "f8",
        ),  # m/s (and rad/s by metre of a tenth) at which the ends come together; 0: they stay apart
        ("distance_max", "f8"),  # m: ends farther apart are let go
        ("tank", "f8"),  # J wanted in the tank
        ("tank_damping", "f8"),  # most that fills it, N·s/m
        ("dead_band", "f8"),  # share by which a signal must change to be sent; 0: every tick
        ("share", "f8"),  # of the other hand in where the tool is to go, 0 to 1 (shared tool); 0: the tool is mine
        ("stale_after_ns", "i8"),  # silence after which the link is lost
        ("ramp_up_ticks", "i4"),
        ("ramp_down_ticks", "i4"),
        ("on", "i4"),  # 0: no link
        ("law", "i4"),  # see haptics/link.py
        ("method", "i4"),
        ("keep_alive_ticks", "i4"),  # between two messages within the dead-band, at most
    ],
    align=True,
)
"""How this end of a link behaves."""

LINK = np.dtype(
    [
        ("state", "i4"),  # LinkState
        ("reason", "i4"),  # why it is not up
        ("gain", "f8"),  # ramp, 0..1
        ("session", "u8"),  # of the other end
        ("seq", "u8"),  # of its newest message that was used
        ("sent", "u8"),  # messages
        ("begun", "u8"),  # how often it has come up
        ("begun_seen", "u8"),  # the same of the other end, of the coming up that this one has followed
        ("offset_position", "f8", 3),  # own minus mapped other's position where the two count as together, device m
        ("offset_orientation", "f8", 4),  # inverse of the mapped other's times own: from the right, in its axes
        ("other_position", "f8", 3),  # mapped, as it counts now
        ("other_orientation", "f8", 4),
        ("other_twist", "f8", 6),
        ("other_wrench", "f8", 6),
        ("wave_in", "f8", 6),  # in force, sqrt(W)
        ("wave_heard", "f8", 6),  # integral of the other's wave in the newest message, in this end's axes, sqrt(W) s
        ("wave_seen", "f8", 6),  # the same, as far as it is taken in
        ("wave_pending", "f8", 6),  # of that, not released yet, sqrt(W) s
        ("wave_rate", "f8", 6),  # that is released per tick, sqrt(W) s
        ("wave_filtered", "f8", 6),  # released, but still in the filter, sqrt(W) s
        ("wave_age", "f8"),  # ticks, of the wave that is let in
        ("wave_sent_at", "i8"),  # when the newest message was sent, the other's clock, ns
        ("clock", "i8"),  # ticks of this end
        ("wave_in_credit", "f8"),  # J that may be released with it
        ("wave_energy_seen", "f8"),
        ("wave_out_pending", "f8", 6),
        ("wave_sent", "f8", 6),  # integral of the own wave
        ("wave_energy_sent", "f8"),
        ("credit", "f8"),  # J that the port may hand out: tank, or what waves have brought and not taken away
        ("energy_seen", "f8"),  # handed over by the other's tank at the newest message
        ("energy_sent", "f8"),
        ("port_energy", "f8"),  # J handed to the hand by the link since the session began
        ("silent_ticks", "i4"),  # since the newest message
        ("quiet_ticks", "i4"),  # since the last one that was sent
        ("told_active", "i4"),
        ("apart", "i4"),  # 1: the ends were too far apart, and neither has let go of its forces since
        ("told", "f8", 12),  # twist and wrench, or wave, of the last message that was sent: what the dead-band compares
        ("signals", "f8", 12),  # the same of this tick
    ],
    align=True,
)
"""State of one end of a link between ticks."""

PORT = np.dtype(
    [
        ("position", "f8", 3),  # of the hand: its image in scene axes, device m
        ("orientation", "f8", 4),
        ("twist", "f8", 6),  # scene axes, device m/s, rad/s, as estimated
        ("moved", "f8", 6),  # since the sample before, scene axes, device m and rotation vector
        ("applied", "f8", 6),  # mean of the link's part of the wrench that was held meanwhile, scene axes, N, N·m
        ("wrench", "f8", 6),  # what the surroundings do to the hand, without the link: scene axes
        ("fresh", "f8"),  # 1, less where the sample is late: what follows a velocity fades with it
        ("engaged", "i4"),  # 1: the hand is there to be felt
        ("padding", "i4"),
    ],
    align=True,
)
"""Where a link ends: a hand, or what a robot is asked for."""

LINK_OUTPUT = np.dtype(
    [
        ("wrench", "f8", 6),  # of the link, device frame, part of coupling_wrench
        ("message", PEER),  # for the other end; t_sent, t_echo and t_held are filled in when it goes out
        ("energy", "f8"),  # J handed to the hand by the link
        ("credit", "f8"),  # J left in its tank, or of its waves
        ("distance", "f8"),  # between the own hand and the other as it counts, device m
        ("gain", "f8"),
        ("shared", "f8"),  # share of the other hand in where the tool is wanted; it feels as much of what is touched
        ("state", "i4"),  # LinkState
        ("reason", "i4"),
        ("send", "i4"),  # 1: the message is to go out
        ("padding", "i4"),
    ],
    align=True,
)
"""What a tick says of the link."""

FIXTURE = np.dtype(
    [
        ("position", "f8", 3),  # point of the plane, line or axis; a cone's apex; middle of ball and box; scene, m
        ("direction", "f8", 3),  # unit: a plane's normal, the axis of the others
        ("orientation", "f8", 4),  # of a forbidden box: its axes -> scene
        ("half", "f8", 3),  # half edges of a forbidden box, scene m
        ("radius", "f8"),  # of tube and forbidden ball, scene m
        ("angle", "f8"),  # half opening of a cone, rad
        ("stiffness", "f8"),  # of a soft one, N/m at the device; 0: hard
        ("strength", "f8"),  # of a soft one: the force that it grows to, N
        ("kind", "i4"),  # see haptics/fixtures.py; 0: the row is not in use
        ("padding", "i4"),
    ],
    align=True,
)
"""A virtual fixture: where the tool may be led to, or is kept from."""

SURFACE = np.dtype(
    [
        ("stiffness", "f8"),  # of its own, in series with the coupling, N/m at the device; 0: as hard as that
        ("damping", "f8"),  # along the normal, N·s/m at the device
        ("drag", "f8"),  # along the surface, N·s/m at the device
        ("height", "f8"),  # of its pattern, scene m
        ("wavelength", "f8"),  # scene m
        ("direction", "f8", 3),  # of a grating, unit, mesh frame
        ("friction_variation", "f8"),  # share of the felt friction that the pattern takes where it is lowest, 0 to 1
        ("burst", "f8"),  # of a touch-down, N per m/s
        ("burst_frequency", "f8"),  # Hz
        ("burst_decay_s", "f8"),
        ("pattern", "i4"),  # see haptics/pattern.py
        ("seed", "i4"),
    ],
    align=True,
)
"""How a surface feels besides its friction; bodies name it by BODY.surface_id, counted from 1."""

REGION = np.dtype(
    [
        ("position", "f8", 3),  # middle of its core, scene, m
        ("arm", "f8", 3),  # from there to the end of the core, a segment; zero: a point
        ("reach", "f8"),  # from the core, scene m: beyond it nothing is felt
        ("strength", "f8"),  # magnet: largest pull, N; viscous: N·s/m at the device
        ("kind", "i4"),  # see haptics/regions.py; 0: the row is not in use
        ("padding", "i4"),
    ],
    align=True,
)
"""A part of space in which the device is pulled or slowed down."""

SETTINGS = np.dtype(
    [
        ("dt", "f8"),  # tick period, s
        ("stiffness", "f8"),  # coupling at the device, N/m (already capped by the card)
        ("damping", "f8"),  # N·s/m at the device (already capped)
        ("rotational_stiffness", "f8"),  # N·m/rad at the device (already capped); felt with a tool mesh only
        ("tool_reach", "f8"),  # farthest point of a tool mesh from the tip centre, scene m; 0 for a sphere tip
        ("stiffness_max", "f8"),  # caps of the card
        ("damping_max", "f8"),
        ("force_max", "f8"),  # saturation by norm, N; 0 for an input device
        ("torque_max", "f8"),  # N·m; 0 for a device without torque
        ("force_slew", "f8"),  # largest change of the force vector per tick, N
        ("torque_slew", "f8"),  # N·m per tick
        ("scale", "f8"),  # scene metres per device metre
        ("workspace_position", "f8", 3),  # device frame -> scene: x = p + R (scale * x_device)
        ("workspace_orientation", "f8", 4),
        ("engage_distance", "f8"),  # farthest image from the tool at which forces may start, m, scene and device
        ("speed_max", "f8"),  # fastest the device can move, m/s at the device
        ("jump_margin", "f8"),  # on top of speed_max * elapsed, device m
        ("velocity_window_s", "f8"),  # of the velocity estimator, its longest one
        ("velocity_step", "f8"),  # m by which positions may be off a line within the window; 0: the window is fixed
        ("hold_after_ns", "i8"),
        ("stale_after_ns", "i8"),
        ("valid_for_ns", "i8"),  # of the rendered impedance
        ("lease_ticks", "i8"),  # a lease without samples or renewal lives so many ticks
        ("ramp_up_ticks", "i4"),
        ("ramp_down_ticks", "i4"),  # asked for: disarm, clutch, deadman
        ("ramp_fault_ticks", "i4"),  # forced: stale, jump, stop
        ("require_deadman", "i4"),
        ("torque_free", "i4"),  # 1: the device renders no torque
        ("sensed", "i4"),  # degrees of freedom: 3, 5 or 6, see haptics/degrees.py
        ("actuated", "i4"),  # 0 (input only), 3, 5 or 6
        ("padding", "i4"),
        ("axis", "f8", 3),  # unit, handle coordinates, from hand to tip: of five degrees, and of the virtual sphere
        ("sphere", "f8"),  # gain over radius of the virtual sphere, 1/m in the scene; 0: off
        ("surfaces", SURFACE, (MAX_SURFACES,)),
        ("regions", REGION, (MAX_REGIONS,)),
        ("surface_count", "i4"),
        ("region_count", "i4"),
        ("passivity", "i4"),  # 1: the passivity controller is on, see haptics/passivity.py
        ("rate_adaptation", "i4"),  # 1: stiffness falls with the rate of the samples, see haptics/rate.py
        ("passivity_damping", "f8", 2),  # most that it may add: N·s/m, N·m·s/rad
        ("passivity_speed", "f8", 2),  # below these, m/s and rad/s, a speed is taken for theirs in its damping
        ("workspace_centre", "f8", 3),  # of the device's own workspace, device frame, m
        ("workspace_half", "f8", 3),  # half the edges of the box that no sample may leave, margin included, m; 0: none
        ("workspace_reach", "f8"),  # radius of the workspace: at this distance from its centre drift is full, m
        ("drift", "f8"),  # of the map, as a share of the device's own speed; 0: off
        ("world_stiffness", "f8"),  # of the spring that pulls the tool, N/m at the device; 0: the one that is felt
        ("world_damping", "f8"),  # N·s/m at the device; below 0: the one that is felt
        ("law", "i4"),  # of the coupling: SPRING, DAMPED or CONSTRAINT of haptics/codes.py
        ("fixture_count", "i4"),
        ("fixtures", FIXTURE, (MAX_FIXTURES,)),
        ("link", LINK_SETTINGS),
    ],
    align=True,
)
"""Everything of the touch layer that is fixed by configuration and device card: one row."""

VELOCITY_SAMPLES = 64

TOUCH = np.dtype(
    [
        ("owner", "u8"),  # session that holds the lease; 0 for none
        ("event_seq", "u8"),  # number of the last event
        ("last_seq", "u8"),  # of the last accepted sample
        ("tick", "u8"),
        ("lease_left", "i8"),  # ticks
        ("last_t_sample", "i8"),
        ("state_ticks", "i8"),  # ticks since the present state began
        ("stiffness", "f8"),  # in force now (SET_GAINS changes it)
        ("damping", "f8"),
        ("scale", "f8"),
        ("anchor_position", "f8", 3),  # clutch offset added to the workspace map, scene m
        ("anchor_orientation", "f8", 4),  # applied on the left of the mapped orientation
        ("device_position", "f8", 3),  # last good device pose, device frame
        ("device_orientation", "f8", 4),
        ("gain", "f8"),  # ramp, 0..1
        ("gain_step", "f8"),  # its change per tick while releasing
        ("wrench", "f8", 6),  # of the last tick, device frame: what the slew limit starts from
        ("energy", "f8", 2),  # observer: handed to the hand by force and by torque, J (positive: the port has produced)
        ("velocity_positions", "f8", (VELOCITY_SAMPLES, 3)),  # ring of the estimator
        ("velocity_times", "i8", VELOCITY_SAMPLES),
        ("velocity", "f8", 3),  # estimate or client's, device frame
        ("velocity_count", "i4"),
        ("velocity_head", "i4"),
        ("state", "i4"),
        ("reason", "i4"),  # of the last transition
        ("after_release", "i4"),  # state that RELEASING leads to
        ("clutched", "i4"),  # 0 no; 1 pressed without forces, 2 while engaged; 3 let go before the ramp ended
        ("has_pose", "i4"),
        ("stopping", "i4"),  # SHUTDOWN was asked for
        ("image_position", "f8", 3),  # image of the coupling point in the last tick, scene, m
        ("image_orientation", "f8", 4),
        ("proxy_positions", "f8", (VELOCITY_SAMPLES, 3)),  # tool's coupling point at the estimator's times, scene, m
        ("proxy_velocity", "f8", 3),  # estimate, coupling point, scene, m/s
        ("angular_velocity", "f8", 3),  # client's, device frame, rad/s; zero when it gives none
        ("velocity_delay_s", "f8"),
        ("image_tip", "f8", 3),  # where the tip centre is wanted: that of the image, or of a shared tool, scene, m
        ("tip_orientation", "f8", 4),  # and how the tool is wanted to be turned
        ("goal", STEP_INPUT),  # what the mechanics were asked for in the last tick
        (
            "fixture_normals",
            "f8",
            (MAX_FIXTURES, 3),
        ),  # of the planes that keep the goal out of balls and boxes; or zero
        ("fixture_offsets", "f8", MAX_FIXTURES),  # of these, scene, m
        ("held_normals", "f8", (MAX_CONTACTS, 3)),  # of the contacts that the law "constraint" has felt in this tick
        ("fixture_pushes", "f8", (MAX_FIXTURES, 3)),  # what each hard fixture adds to the goal, with its sign turned, m
        ("rejected", "u8"),  # messages refused since the last good sample
        ("unusable_ticks", "i8"),  # ticks for which the newest sample has been marked or found unusable
        ("release_reason", "i4"),  # why RELEASING began; also the reason of the transition that ends it
        ("drop_owner", "i4"),  # the lease ends when RELEASING does
        ("frozen", "i4"),  # the device jumped: the last good pose stays until the forces are off
        ("reanchor", "i4"),  # 1: ARM allowed to re-anchor a device that is far from the tool; 2: any, when it comes
        ("not_finite", "i4"),  # the last coupling wrench was not finite
        ("sample_kind", "i4"),  # of this tick: 0 nothing new, 1 good, 2 unusable, 3 jumped
        ("age_ns", "i8"),  # age of the newest good sample in this tick, as the watchdog takes it
        ("burst", "f8", 3),  # amplitude of the burst that sounds, device frame, N
        ("burst_turn", "f8"),  # of its phase per tick, rad
        ("burst_decay", "f8"),  # what a tick leaves of it
        ("burst_size", "f8"),  # what all its ticks have left of it
        ("burst_tick", "i8"),  # ticks since it began
        ("burst_ticks", "i8"),  # that it lasts; 0: none sounds
        ("untouched", "i4", MAX_SURFACES),  # ticks since each surface was last touched
        ("moved", "f8", 6),  # by the last good sample: device frame, m and rotation vector, rad
        ("moved_s", "f8"),  # the time that it took by the client's clock, a tick at least
        ("conservative", "f8", 6),  # the coupling's wrench without its damper, before ramp and saturation, device frame
        ("ideal", "f8", 6),  # the same ramped and saturated, in the last tick: what a spring without time would render
        ("owed", "f8", 2),  # J that holding force and torque has produced and damping has not taken back
        ("dissipated", "f8", 2),  # J taken back by the passivity controller since the lease began
        ("damped", "f8", 6),  # the controller's part of the wrench of the last tick
        ("heir", "u8"),  # session that gets the lease when RELEASING ends; 0 for none
        ("stiffness_goal", "f8"),  # where SET_GAINS leads the stiffness in force
        ("damping_goal", "f8"),
        ("unusable_reason", "i4"),  # why the newest sample is not used, while unusable_ticks counts
        ("led", "i4"),  # 1: a hard fixture has put the goal elsewhere than it was wanted
        ("rate_share", "f8"),  # of the stiffness, for the rate of the samples: 1 at the tick's
        ("link", LINK),
        ("port", PORT),
        ("scene_sent", "f8", 6),  # what the last tick would have rendered without the link, device frame
        ("link_sent", "f8", 6),  # the link's part of the wrench of the last tick, device frame: the rest of it
        ("held_ticks", "i8"),  # in which wrenches have been held since the last good sample, its own tick counted
        ("held_wrench", "f8", 6),  # mean of wrench over these
        ("held_ideal", "f8", 6),  # of ideal
        ("held_damped", "f8", 6),  # of damped
        ("held_link", "f8", 6),  # of link_sent
        ("shared", "f8"),  # share of the other hand in where the tool is wanted, ramp included
    ],
    align=True,
)
"""State of the touch layer that survives between ticks: one row."""

MAX_PLANES = 4
"""Of contacts, told with a render: three hold a point, one more may come near."""

OUTPUT = np.dtype(
    [
        ("device_position", "f8", 3),  # image of the device: where it wants the tip centre, scene, m
        ("device_orientation", "f8", 4),
        ("device_velocity", "f8", 3),  # of the coupling point's image, scene, m/s
        ("velocity_delay_s", "f8"),  # of the estimator; 0 when the client gave the twist
        ("proxy_position", "f8", 3),  # tip centre, scene, m
        ("proxy_orientation", "f8", 4),
        ("wrench", "f8", 6),  # what a plain client applies, device frame, about the coupling point
        ("coupling_wrench", "f8", 6),  # before ramp, slew limit and saturation
        ("render_position", "f8", 3),  # impedance: where the spring pulls the coupling point, device frame, m
        ("render_orientation", "f8", 4),
        ("render_twist", "f8", 6),
        ("stiffness", "f8", 6),  # diagonal, device frame [N/m x3, N·m/rad x3], ramp included
        ("damping", "f8", 6),
        ("feed_forward", "f8", 6),
        ("effects", "f8", 6),  # part of coupling_wrench: surfaces, regions, soft fixtures, bursts; device frame
        ("energy", "f8"),  # J handed to the hand since the lease began; positive: the port has produced
        ("gain", "f8"),
        ("owner", "u8"),
        ("event_seq", "u8"),  # number of the last event; an event happened in this tick when event_from != event_to
        ("command_id", "u8"),  # command taken in this tick, 0 for none
        ("valid_for_ns", "i8"),
        ("seq", "u8"),  # of the sample this tick used
        ("state", "i4"),
        ("reason", "i4"),
        ("event_from", "i4"),
        ("event_to", "i4"),
        ("command_result", "i4"),  # CommandResult
        ("command_reason", "i4"),  # Reason, when refused
        (
            "limited",
            "i4",
        ),  # bits: 1 saturated, 2 slew-limited, 4 not finite, 8 not sent (not engaged), 16 DAMPED, 32 SLOWED
        ("stopped", "i4"),  # SHUTDOWN was asked for and forces are off: the servo may exit
        ("report", STEP_REPORT),
        ("energy_linear", "f8"),  # J, the part of force in energy
        ("energy_angular", "f8"),  # J, the part of torque
        ("passivity_wrench", "f8", 6),  # what the passivity controller adds, device frame, before ramp and limits
        ("passivity_damping", "f8", 2),  # its damping, ramp included: N·s/m, N·m·s/rad
        ("owed_linear", "f8"),  # J that holding the force from sample to sample has produced, not yet taken back
        ("owed_angular", "f8"),
        ("dissipated_linear", "f8"),  # J that the controller has taken back since the lease began
        ("dissipated_angular", "f8"),
        ("rate_share", "f8"),  # of the stiffness that the rate of the samples leaves, 1 at the tick's rate
        ("sample_period_s", "f8"),  # of the samples that were used; 0 while there are too few
        ("goal_position", "f8", 3),  # what the mechanics were asked for: where the tip centre is to go, scene, m
        ("goal_orientation", "f8", 4),
        ("slack", "f8", 3),  # part of the stretch that no plane holds, device frame, m: see haptics/contact_planes.py
        ("planes", "f8", (MAX_PLANES, 4)),  # [n, c]: a tool at y is held to n . y >= c; device frame, m; rest zero
        ("plane_count", "i4"),
        ("pinned", "i4"),  # 1: until the next tick the tool is better taken to stand than to follow
        ("link", LINK_OUTPUT),
    ],
    align=True,
)

TIMING = np.dtype(
    [
        ("planned_ns", "i8"),  # when the tick was due (CLOCK_MONOTONIC)
        ("started_ns", "i8"),
        ("computed_ns", "i8"),  # after the kernels
        ("sent_ns", "i8"),  # after the reply; started of the next minus this is idle
        ("t_received", "i8"),  # arrival of the sample, servo clock
        ("missed", "u4"),  # periods skipped before this tick because the last one was late
        ("dropped_renders", "u4"),  # in total: the client did not read
        ("rejected_total", "u4"),
        ("governed_total", "u4"),  # ticks whose budget was below the configured one, to keep the period
        ("peer_rejected", "u4"),  # messages on the peer socket that were refused, in total
        ("peer_reject_code", "u4"),  # bridge.wire code of the last of them
        ("peer_dropped", "u4"),  # messages for the other end that could not be sent, in total
        ("padding", "u4"),
    ],
    align=True,
)
"""Measured by the servo; not part of what re-execution compares."""

RECORD = np.dtype(
    [
        ("tick", "u8"),
        ("input", INPUT),
        ("budget", BUDGET),
        ("output", OUTPUT),
        ("timing", TIMING),
    ],
    align=True,
)
RECORD_VERSION = 10

BODY_SAMPLE = np.dtype(
    [
        ("position", "f8", 3),  # mesh frame -> scene, m
        ("orientation", "f8", 4),
        ("linear", "f8", 3),  # velocity of the centre of mass, scene, m/s; a KINEMATIC body's: of its mesh's origin
        ("angular", "f8", 3),  # scene, rad/s
    ],
    align=True,
)
"""Where a body that moves is after a tick, and how it moves."""


@cache
def record_type(bodies: int) -> np.dtype:
    """What the shared ring and a log hold per tick, where so many bodies are FREE or KINEMATIC.

    RECORD itself without any; else a record with the fields of RECORD where they are there, and behind them ``bodies``,
    (bodies,) BODY_SAMPLE by rising body id. Made once per number: equal ones are the same object.
    """
    if bodies == 0:
        return RECORD
    fields = [(name, RECORD[name]) for name in RECORD.names or ()]
    return np.dtype([*fields, ("bodies", BODY_SAMPLE, (bodies,))], align=True)
