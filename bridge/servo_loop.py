"""The servo's loop: what is read before a tick, what is answered after it, and when the next one is due.

While ticking it reads at most `MAX_MESSAGES` samples and one command per tick, runs `haptics.tick.tick`, answers the
owner without ever waiting for it, and writes one record into the ring, with the states of the bodies that move behind
it. With a link, messages go to and fro as well (:mod:`bridge.peer_socket`). It opens no file, prints nothing, and keeps
no memory. The process around it is `bridge.servo`.
"""

import os
import time
import traceback

import numpy as np
import zmq

from bridge import realtime
from bridge.exit_codes import ExitCode
from bridge.governor import Governor
from bridge.mailbox import CommandReader
from bridge.peer_socket import Peer
from bridge.ring import RingWriter, offset_of
from bridge.runtime import StoredAssembly
from bridge.schema import Reject
from haptics.limits import NOT_FINITE, NOT_SENT
from haptics.link_codes import LinkReason, LinkState
from haptics.states import CommandKind, EngagementState, Reason
from haptics.tables import BODY_SAMPLE, COMMAND, RECORD, SAMPLE, TOUCH
from rtcore.model import moving_bodies
from rtcore.state import State
from rtcore.tables import MAX_CONTACTS

MAX_MESSAGES = 8
"""Samples read per tick; the rest waits, and its age tells."""

MAX_FRAMES = 32
"""Surplus frames of wrongly framed messages thrown away per tick."""

SNAPSHOT_EVERY = 1000
WATCH_EVERY = 16
"""Ticks between two looks at parent and heartbeat."""

SUPERVISOR_SILENT_NS = 2_000_000_000
STOP_LIMIT_NS = 5_000_000_000
"""A servo that was told to stop ends after this, wherever its forces are: its ramps are some ms long."""

REHEARSAL_TICKS = 64

OWN_COMMAND_ID = 1 << 62
"""Id of a SHUTDOWN that the servo gives itself on SIGTERM or stop request, far from what the mailbox counts."""

_REST_STATES = (int(EngagementState.IDLE), int(EngagementState.FAULT))
_MAX_AGE_NS = 1 << 62

DRIFT = 5000
"""A client's clock may be slower than the servo's by one part in so many (200 ppm, twice what a cheap crystal does):
without that, its samples would look older by the minute, until the watchdog took the forces away."""

# Plain numbers: arithmetic on pyzmq's flag classes takes microseconds.
_POLLIN = int(zmq.POLLIN)
_NOBLOCK = int(zmq.NOBLOCK)
_SNDMORE_NOBLOCK = int(zmq.SNDMORE) | int(zmq.NOBLOCK)


def next_due(due: int, started: int, now: int, period: int) -> tuple[int, int, int]:
    """When the next tick is due: (due, periods skipped, not to be started before), all ns of one clock.

    due, started: of the tick that ended at `now`. A tick that is late by less than half a period starts at once; when
    it would be later still, whole periods are skipped, so that there is never a burst. The servo sleeps at least a
    twentieth of a period and a tenth of the time it was busy: a FIFO thread that never sleeps is stopped by the kernel
    for 50 ms.
    """
    earliest = now + max(period // 20, (now - started) // 10)
    due += period
    skipped = max(0, (earliest - due + period // 2) // period)
    return due + skipped * period, skipped, earliest


class Sessions:
    """Which messages count: the owner's, in order; with the arrival times that ages are computed from."""

    __slots__ = ("as_struct", "has_sample", "identity", "last_seq", "offset", "owner", "t_received", "t_sample")

    def __init__(self) -> None:
        self.begin(0)

    def begin(self, owner: int) -> None:
        """A lease of `owner` begins (0: there is none)."""
        self.owner = owner
        self.last_seq = 0
        self.has_sample = False
        self.identity = b""
        self.as_struct = True
        self.t_received = 0
        self.t_sample = 0
        self.offset = 0

    def judge(self, session: int, seq: int) -> int:
        """Reject code for a sample of this session and number."""
        if session != self.owner or session == 0:
            return Reject.NOT_OWNER
        return Reject.SEQUENCE if seq <= self.last_seq else Reject.NONE

    def accept(self, identity: bytes, seq: int, t_sample: int, t_received: int, as_struct: bool) -> None:
        """The newest sample is this one."""
        offset = t_received - t_sample
        if self.has_sample:
            # The quickest way so far, plus what two clocks may have drifted apart since.
            self.offset = min(offset, self.offset + (t_received - self.t_received) // DRIFT)
        else:
            self.offset = offset
        self.has_sample = True
        self.last_seq = seq
        self.identity = identity
        self.as_struct = as_struct
        self.t_received = t_received
        self.t_sample = t_sample

    def age_ns(self, now: int) -> int:
        """Age of the newest sample; time that it spent in queues, beyond the quickest one of this lease, counts."""
        age = max(now - self.t_received, now - self.t_sample - self.offset)
        return min(max(age, 0), _MAX_AGE_NS)


class Servo:
    """State and loop of the process. `run` returns when forces are off and the servo was asked to end."""

    def __init__(
        self,
        stored: StoredAssembly,
        ring: RingWriter,
        commands: CommandReader,
        socket: zmq.Socket,
        peer_socket: zmq.Socket | None = None,
    ) -> None:
        """peer_socket: of a link, where there is one."""
        from bridge.wire import decode_sample, encode_render, sample_is_struct
        from haptics.bodies import sample_bodies
        from haptics.snapshot import pack_snapshot, snapshot_size
        from haptics.tick import tick
        from haptics.touch import make_touch
        from rtcore.state import make_state

        self._decode = decode_sample
        self._encode = encode_render
        self._is_struct = sample_is_struct
        self._tick_kernel = tick
        self._sample_kernel = sample_bodies
        self._pack_snapshot = pack_snapshot
        self.model = stored.model
        self.settings = stored.settings
        self.budget = stored.budget
        self._make_state = lambda: make_state(stored.model, stored.start, stored.start_orientation)
        self._make_touch = lambda: make_touch(stored.settings)
        self.state = self._make_state()
        self.touch = self._make_touch()
        self.period_ns = round(float(stored.settings["dt"][0]) * 1e9)
        self.lease_ns = int(stored.settings["lease_ticks"][0]) * self.period_ns
        self.triggered = stored.config["rates"]["clocking"] == "triggered"
        self.governor: Governor | None = None
        if stored.config["budget"]["governor"]:
            self.governor = Governor(
                *(int(stored.budget[key][0]) for key in ("units", "sweeps", "visits")),
                period_ns=self.period_ns,
                bodies=len(stored.model.bodies),
                contacts=max(self.state.pairs.places.shape[1], MAX_CONTACTS),
            )
        self.ring = ring
        self.header = ring.header
        self.lifeline = ring.lifeline
        self.commands = commands
        self.socket = socket
        self.waiter = realtime.Waiter()
        self.sessions = Sessions()
        self.stop_asked = False
        self.parent_died = False
        self.supervisor_lost = False
        self.code = ExitCode.OK

        self._whole = np.zeros(1, ring.record_type)
        raw = self._whole.view(np.uint8)
        self.record = raw[: RECORD.itemsize].view(RECORD)
        self._bodies = raw[RECORD.itemsize :].view(BODY_SAMPLE)
        moving = len(moving_bodies(self.model.bodies))
        if len(self._bodies) != moving:
            raise ValueError(f"the ring has room for {len(self._bodies)} bodies that move; the model has {moving}")
        self._moving = moving > 0
        self._sample_bodies(self.state)
        self.record["budget"] = stored.budget
        self.record["input"]["sample"]["orientation"][0, 3] = 1.0
        # Plain memory views instead of record["a"]["b"]: a tenth of the time, and nothing allocated.
        self._bytes = raw[: RECORD.itemsize].data
        self._u8 = self._bytes.cast("Q")
        self._i8 = self._bytes.cast("q")
        self._u4 = self._bytes.cast("I")
        self._i4 = self._bytes.cast("i")
        at = offset_of(RECORD, "input.sample")
        self._sample_place = slice(at, at + SAMPLE.itemsize)
        at = offset_of(RECORD, "input.command")
        self._command = self._bytes[at : at + COMMAND.itemsize]
        self._no_command = bytes(COMMAND.itemsize)
        self.peer = None if peer_socket is None else Peer(peer_socket, self.record, stored.settings["link"])
        self._arrived = np.zeros(1, SAMPLE)
        self._arrived_bytes = self._arrived.view(np.uint8).data
        self._arrived_words = self._arrived_bytes.cast("Q")
        self._touch_words = self.touch.view(np.uint8).data.cast("Q")
        self._snapshot = np.zeros(snapshot_size(self.model), np.uint8)
        self._tick_number = 0
        self._surplus = False
        self._rejected = 0
        self._rejected_total = 0
        self._dropped = 0
        self._missed_total = 0
        self._governed_total = 0
        self._has_command = False
        self._shutdown_given = False
        self._stop_since = 0
        self._watch_in = 0
        self.parent = os.getppid()

    # -- before the first tick ---------------------------------------------------------------------------------------

    def rehearse(self) -> None:
        """Run ticks on copies, so that every path is in memory and any kernel that is still missing shows itself."""
        record, state, touch = self.record.copy(), self._make_state(), self._make_touch()
        for number in range(REHEARSAL_TICKS):
            record["tick"] = number + 1
            self._tick_kernel(self.model, state, self.settings, touch, record)
            self._sample_bodies(state)
            self._encode(record, 0, number % 2 == 0)
            self._decode(b"\xc1", self._arrived)
            if self.peer is not None:
                self.peer.rehearse()
            self.waiter.wait_until(time.monotonic_ns() + 200_000)
        self._sample_bodies(self.state)

    def put_snapshot(self) -> None:
        """Copy the state after the present tick into the ring."""
        self.ring.put_snapshot(self._tick_number, self._pack_snapshot(self.state, self.touch, self._snapshot))

    # -- input -------------------------------------------------------------------------------------------------------

    def _drop_surplus(self) -> None:
        """Throw away frames that follow the payload; what is left after `MAX_FRAMES` waits for the next tick."""
        for _ in range(MAX_FRAMES):
            if not self.socket.get(zmq.RCVMORE):
                self._surplus = False
                return
            self.socket.recv(_NOBLOCK)
        self._surplus = bool(self.socket.get(zmq.RCVMORE))

    def _read(self, until_accepted: bool) -> bool:
        """Take what has arrived, at most `MAX_MESSAGES`; True when a sample was accepted (the newest one is kept)."""
        socket = self.socket
        sessions = self.sessions
        accepted = False
        if self._surplus:
            self._drop_surplus()
        for _ in range(MAX_MESSAGES):
            if self._surplus or not int(socket.get(zmq.EVENTS)) & _POLLIN:
                break
            identity = socket.recv(_NOBLOCK)
            message = socket.recv(_NOBLOCK)
            t_received = time.monotonic_ns()
            if socket.get(zmq.RCVMORE):
                self._surplus = True
                self._drop_surplus()
                code = Reject.MALFORMED
            else:
                code = self._decode(message, self._arrived)
                if code == Reject.NONE:
                    words = self._arrived_words
                    code = sessions.judge(words[0], words[1])
            if code != Reject.NONE:
                self._rejected += 1
                self._u4[_REJECT_CODE] = code
                continue
            words = self._arrived_words
            sessions.accept(identity, words[1], words[2], t_received, self._is_struct(message))
            self._bytes[self._sample_place] = self._arrived_bytes
            accepted = True
            if until_accepted:
                break
        return accepted

    def _take_command(self, now: int) -> bool:
        """Put the next command, if one waits, into the record; a request to end comes first."""
        if (self.stop_asked or self.header.stop_request) and not self._shutdown_given:
            self._shutdown_given = True
            self._stop_since = now
            command = np.zeros(1, COMMAND)
            command["id"] = OWN_COMMAND_ID
            command["kind"] = CommandKind.SHUTDOWN
            self._command[:] = command.view(np.uint8).data
            self._has_command = True
        elif self.commands.take(self._command):
            self._has_command = True
        return self._has_command

    def _watch(self, now: int) -> None:
        """Notice the end or the silence of the supervisor."""
        self.header.heartbeat_ns = now
        if self.supervisor_lost:
            return
        lost = self.parent_died or self.lifeline.cut()
        self._watch_in -= 1
        if self._watch_in <= 0:
            self._watch_in = WATCH_EVERY
            beat = self.header.supervisor_heartbeat_ns
            lost = lost or os.getppid() != self.parent or (beat > 0 and now - beat > SUPERVISOR_SILENT_NS)
        if lost:
            self.supervisor_lost = True
            self._stop_since = self._stop_since or now
            self._bytes[_SUPERVISOR_LOST] = 1

    # -- one tick ----------------------------------------------------------------------------------------------------

    def _tick(self, due: int, started: int, missed: int, fresh: bool, age: int, reply: bool) -> None:
        sessions = self.sessions
        number = self._tick_number + 1
        self._tick_number = number
        self._u8[_TICK] = number
        self._i8[_AGE] = age
        self._bytes[_FRESH] = fresh
        self._bytes[_HAS_SAMPLE] = sessions.has_sample
        self._u4[_REJECTED] = self._rejected
        self._rejected_total += self._rejected
        self._i8[_PLANNED] = due
        self._i8[_STARTED] = started
        self._i8[_T_RECEIVED] = sessions.t_received
        self._u4[_MISSED] = missed
        self._u4[_REJECTED_TOTAL] = self._rejected_total & 0xFFFFFFFF

        peer = self.peer
        if peer is not None:
            peer.take(started)
        self._tick_kernel(self.model, self.state, self.settings, self.touch, self.record)
        self._i8[_COMPUTED] = time.monotonic_ns()
        if reply and sessions.has_sample:
            self._reply()
        if peer is not None and self._i4[_LINK_SEND]:
            peer.send()
        sent = time.monotonic_ns()
        self._i8[_SENT] = sent
        self._u4[_DROPPED] = self._dropped & 0xFFFFFFFF
        self._sample_bodies(self.state)
        self.ring.write(self._whole)
        self._account(due, started, sent, missed)
        if self.governor is not None:
            self._govern(self.governor, sent - started)

        if self._rejected:
            self._rejected = 0
            self._u4[_REJECT_CODE] = 0
        if self._has_command:
            self._has_command = False
            self._command[:] = self._no_command
        owner = self._touch_words[_OWNER]
        if owner != sessions.owner:
            sessions.begin(owner)
        if number % SNAPSHOT_EVERY == 0:
            self.put_snapshot()

    def _sample_bodies(self, state: State) -> None:
        """Copy the states of the bodies that move into the record."""
        if self._moving:
            self._sample_kernel(state.poses, state.velocities, state.pairs.movers, self._bodies)

    def _reply(self) -> None:
        """Send the render to where the owner's last sample came from; never waits."""
        socket = self.socket
        message = self._encode(self.record, time.monotonic_ns(), self.sessions.as_struct)
        try:
            socket.send(self.sessions.identity, _SNDMORE_NOBLOCK)
            socket.send(message, _NOBLOCK)
        except zmq.ZMQError:
            # Its queue is full or it is gone (ROUTER_MANDATORY says so on the first frame). The watchdog deals with it.
            self._dropped += 1

    def _account(self, due: int, started: int, sent: int, missed: int) -> None:
        header = self.header
        if missed:
            self._missed_total += missed
            header.missed = self._missed_total
        if self._rejected:
            header.rejected = self._rejected_total
        if self._dropped != header.dropped:
            header.dropped = self._dropped
        if sent - started > header.tick_ns_max:
            header.tick_ns_max = sent - started
        if started - due > header.lateness_ns_max:
            header.lateness_ns_max = started - due

    def _govern(self, governor: Governor, spent: int) -> None:
        """Write the budget of the next tick into the record, by what this one took."""
        i4 = self._i4
        contacts = i4[_CONTACTS] + i4[_BODY_CONTACTS] - i4[_ASLEEP]
        if governor.learn(spent, i4[_UNITS_USED], i4[_SWEEPS_USED], contacts, i4[_ISLANDS]):
            i4[_UNITS] = governor.units
            i4[_SWEEPS] = governor.sweeps
            i4[_VISITS] = governor.visits
            if governor.limiting:
                self._governed_total += 1
                self._u4[_GOVERNED_TOTAL] = self._governed_total & 0xFFFFFFFF

    def _ended(self, now: int) -> bool:
        """True when the servo may end: it was asked to, and forces are off."""
        if self._i4[_STOPPED]:
            return True
        if self._stop_since == 0:
            return False
        if self.supervisor_lost and self._i4[_STATE] in _REST_STATES:
            return True
        if now - self._stop_since > STOP_LIMIT_NS:
            self.code = ExitCode.SERVO_STUCK
            return True
        return False

    # -- loops -------------------------------------------------------------------------------------------------------

    def run(self) -> ExitCode:
        """Tick until the end; returns the exit code."""
        try:
            if self.triggered:
                self._run_triggered()
            else:
                self._run_free()
        except Exception:
            self._ramp_out()
            traceback.print_exc()
            return ExitCode.TICK_RAISED
        return self.code

    def _run_free(self) -> None:
        period = self.period_ns
        sessions = self.sessions
        wait = self.waiter.wait_until
        due = time.monotonic_ns() + period
        earliest = missed = 0
        while True:
            started = wait(due, earliest)
            self._watch(started)
            fresh = self._read(False)
            self._take_command(started)
            self._tick(due, started, missed, fresh, sessions.age_ns(started) if sessions.has_sample else 0, True)
            now = time.monotonic_ns()
            if self._ended(now):
                return
            due, missed, earliest = next_due(due, started, now, period)

    def _run_triggered(self) -> None:
        sessions = self.sessions
        poller = zmq.Poller()
        poller.register(self.socket, zmq.POLLIN)
        heard = time.monotonic_ns()
        quiet_due = 0
        while True:
            # Commands come through memory, which cannot wake a poll: one millisecond is how long one may wait.
            arrived = bool(poller.poll(1))
            now = time.monotonic_ns()
            self._watch(now)
            if self._take_command(now):
                # No sign of life: anybody may send commands. Only a new owner begins a silence of its own.
                owner = sessions.owner
                silent = sessions.has_sample and now - heard > self.lease_ns
                self._tick(now, now, 0, False, sessions.age_ns(now) if silent else 0, False)
                if sessions.owner != owner:
                    heard = now
            elif arrived and self._read(True):
                heard = sessions.t_received  # by which ages count too
                self._tick(heard, now, 0, True, 0, True)
            elif self._must_run(now, heard) and now >= quiet_due:
                quiet_due = max(quiet_due + self.period_ns, now - self.period_ns)
                age = sessions.age_ns(now) if sessions.has_sample else 0
                self._tick(now, now, 0, False, age, False)
            if self._ended(now):
                return

    def _must_run(self, now: int, heard: int) -> bool:
        """Triggered mode: whether time must pass although nobody sends a sample (a lost owner, the end)."""
        if self._stop_since:
            return True
        if now - heard <= self.lease_ns:
            return False
        return self._touch_words[_OWNER] != 0 or self._i4[_STATE] not in _REST_STATES

    def _ramp_out(self) -> None:
        """The tick raised: what it left in the record is worthless. Ramp the last good output down and say FAULT."""
        steps = max(1, int(self.settings["ramp_fault_ticks"][0]))
        self.header.failed_tick = self._tick_number
        good = self.ring.last()
        record = self.record
        if good is None:
            record["output"] = np.zeros(1, RECORD)["output"]
        else:
            record["output"] = good["output"]
            record["timing"] = good["timing"]
        output = record["output"]
        state = int(output["state"][0])
        fading = (
            *("wrench", "coupling_wrench", "effects", "passivity_wrench"),
            *("stiffness", "damping", "feed_forward"),
        )
        forces = {name: output[name].copy() for name in fading}
        self._let_go(output)
        output["render_twist"] = output["event_from"] = output["event_to"] = output["command_id"] = 0
        output["reason"] = Reason.NOT_FINITE
        for step in range(steps + 1):
            left = 1.0 - step / steps
            for name, value in forces.items():
                output[name] = value * left
            if step == steps:
                output["limited"] = NOT_FINITE | NOT_SENT
                output["event_from"], output["event_to"] = state, EngagementState.FAULT
                output["state"] = EngagementState.FAULT
                output["event_seq"] += 1
                output["stopped"] = 1
            self._u8[_TICK] = self._tick_number
            now = time.monotonic_ns()
            self._i8[_PLANNED] = self._i8[_STARTED] = self._i8[_COMPUTED] = self._i8[_SENT] = now
            if self.sessions.has_sample:
                self._reply()
            self.ring.write(self._whole)
            self._tick_number += 1
            self.waiter.sleep_until(now + self.period_ns)

    def _let_go(self, output: np.ndarray) -> None:
        """The link ends with the tick that failed: its other end is told once that nobody is felt here any more."""
        link = output["link"]
        link["wrench"] = link["gain"] = link["send"] = 0
        if self.peer is None:
            return
        link["state"], link["reason"] = LinkState.LOST, LinkReason.NOT_FINITE
        if link["message"]["seq"][0] == 0:
            return
        link["message"]["active"] = 0
        link["message"]["seq"] += 1
        self.peer.send()


_TICK = offset_of(RECORD, "tick") // 8
_AGE = offset_of(RECORD, "input.age_ns") // 8
_REJECTED = offset_of(RECORD, "input.rejected") // 4
_REJECT_CODE = offset_of(RECORD, "input.reject_code") // 4
_FRESH = offset_of(RECORD, "input.fresh")
_HAS_SAMPLE = offset_of(RECORD, "input.has_sample")
_SUPERVISOR_LOST = offset_of(RECORD, "input.supervisor_lost")
_STATE = offset_of(RECORD, "output.state") // 4
_STOPPED = offset_of(RECORD, "output.stopped") // 4
_LINK_SEND = offset_of(RECORD, "output.link.send") // 4
_UNITS = offset_of(RECORD, "budget.units") // 4
_SWEEPS = offset_of(RECORD, "budget.sweeps") // 4
_VISITS = offset_of(RECORD, "budget.visits") // 4
_UNITS_USED = offset_of(RECORD, "output.report.units_used") // 4
_SWEEPS_USED = offset_of(RECORD, "output.report.sweeps_used") // 4
_CONTACTS = offset_of(RECORD, "output.report.contact_count") // 4
_BODY_CONTACTS = offset_of(RECORD, "output.report.body_contacts") // 4
_ASLEEP = offset_of(RECORD, "output.report.asleep") // 4
_ISLANDS = offset_of(RECORD, "output.report.islands") // 4
_PLANNED = offset_of(RECORD, "timing.planned_ns") // 8
_STARTED = offset_of(RECORD, "timing.started_ns") // 8
_COMPUTED = offset_of(RECORD, "timing.computed_ns") // 8
_SENT = offset_of(RECORD, "timing.sent_ns") // 8
_T_RECEIVED = offset_of(RECORD, "timing.t_received") // 8
_MISSED = offset_of(RECORD, "timing.missed") // 4
_DROPPED = offset_of(RECORD, "timing.dropped_renders") // 4
_REJECTED_TOTAL = offset_of(RECORD, "timing.rejected_total") // 4
_GOVERNED_TOTAL = offset_of(RECORD, "timing.governed_total") // 4
_OWNER = offset_of(TOUCH, "owner") // 8
