"""The loop of an adapter, cycle by cycle: its force, its session with a daemon, and a device that fails."""

import math
import threading
import time

import numpy as np
import pytest
from adapter_rig import LIMITS, MS, Client, Daemon, Handle, Rig

from bridge.adapters import loop
from bridge.adapters.aside import Aside
from bridge.adapters.device import DeviceError, Reading
from bridge.adapters.loop import Adapter, limits_for
from bridge.client import HapticdError
from bridge.exit_codes import ExitCode
from haptics.cards import load_card
from haptics.last_line import NO_WRENCH, ForcesOff
from haptics.states import EngagementState, Reason


@pytest.fixture
def rig(monkeypatch):
    return Rig(monkeypatch)


def test_it_closes_the_spring_with_the_newest_position(rig):
    """K (proxy - x) at each cycle, also between two renders; the torque is the feed-forward's."""
    rig.daemon.fields = {
        "stiffness": (500.0,) * 3 + (0.0,) * 3,
        "feed_forward": (0.0, 0.0, 0.0, 0.1, 0.0, 0.0),
    }
    rig.device.reading = Reading((0.0, 0.0, -0.004))
    rig.run(150)
    assert rig.felt() == pytest.approx((0.0, 0.0, 2.0, 0.1, 0.0, 0.0))
    rig.daemon.silent = True
    rig.device.reading = Reading((0.0, 0.0, -0.005))
    rig.run(1)
    assert rig.felt()[2] == pytest.approx(2.5)
    assert rig.ops() == ["lease", "arm"] and rig.device.written[-1] == rig.felt()


def test_the_damper_is_held_within_the_spring(rig):
    """A handle pushed in fast gets at most twice the spring, one that flees at least nothing."""
    rig.daemon.fields = {"stiffness": (500.0,) * 3 + (0.0,) * 3, "damping": (20.0,) * 3 + (0.0,) * 3}
    rig.device.reading = Reading((0.0, 0.0, -0.002), twist=(0.0, 0.0, -0.5, 0.0, 0.0, 0.0))
    rig.run(150)
    assert rig.felt()[2] == pytest.approx(2.0)
    rig.device.reading = Reading((0.0, 0.0, -0.002), twist=(0.0, 0.0, 0.5, 0.0, 0.0, 0.0))
    rig.run(5)
    assert rig.felt()[2] == pytest.approx(0.0, abs=1e-12)


def test_the_plain_wrench_is_capped_at_half(monkeypatch):
    rig = Rig(monkeypatch, mode="wrench")
    rig.daemon.fields = {"wrench": (3.0, 0.0, 0.0, 0.0, 0.0, 0.0), "feed_forward": (9.0, 0.0, 0.0, 0.0, 0.0, 0.0)}
    rig.run(150)
    assert rig.felt()[0] == pytest.approx(3.0)
    rig.daemon.fields = {"wrench": (9.0, 0.0, 0.0, 0.4, 0.0, 0.0)}
    rig.run(50)
    assert rig.felt() == pytest.approx((5.0, 0.0, 0.0, 0.25, 0.0, 0.0))


def test_a_silent_daemon_ramps_down_and_is_looked_for_again(rig):
    """Zero after 10 ms of validity and 15 ms of ramp; the lease goes back only then; another session gets forces."""
    rig.push()
    rig.daemon.silent = True
    rig.run(10)
    assert rig.felt()[0] == pytest.approx(3.0)
    rig.run(8)
    assert 0.0 < rig.felt()[0] < 2.0 and rig.adapter.applied.off == ForcesOff.STALE
    assert "release" not in rig.ops()
    rig.run(8)
    assert rig.felt() == NO_WRENCH
    rig.run(600)
    assert rig.ops()[-2:] == ["release", "lease"] or rig.daemon.clients >= 2
    rig.daemon.silent, rig.daemon.state = False, EngagementState.IDLE
    rig.run(1500)
    assert rig.felt()[0] == pytest.approx(3.0) and rig.adapter.ended is None


@pytest.mark.parametrize("ms", [5, 15, 50, 300])
def test_a_cycle_that_was_held_up_costs_no_more_than_that(rig, ms):
    """The render that left while the device was read is as old as it is, and so are all that come after it."""
    rig.push()
    rig.hold_up(ms)
    rig.run(150)
    assert rig.felt()[0] == pytest.approx(3.0) and rig.adapter.applied.off == ForcesOff.NONE


@pytest.mark.parametrize("ms", [5, 50, 300])
def test_a_reading_that_took_long_makes_no_later_one_old(rig, ms):
    """Stamps of the device's own clock, before and after one reading that was held up."""
    rig.device.own_clock = True

    def stamp():
        rig.device.reading = Reading((0.0, 0.0, 0.0), t_ns=rig.now - 10**11)

    rig.device.meanwhile = stamp
    rig.run(150)

    def held_up():
        rig.now += ms * MS
        stamp()

    rig.device.meanwhile = held_up
    rig.run(1)
    rig.device.meanwhile = stamp
    rig.run(20)
    assert max(rig.now - k * MS - s["t_sample"] for k, s in enumerate(reversed(rig.daemon.samples[-20:]))) < MS
    assert not any("clock" in line for line in rig.said)


def test_a_render_that_grows_old_in_its_own_cycle_is_no_force(rig, monkeypatch):
    """Its age is that of the moment of writing: this process was held up since it was fetched."""
    rig.push()
    follow = rig.device.follow

    def slow(render):
        rig.now += 15 * MS
        follow(render)

    monkeypatch.setattr(rig.device, "follow", slow)
    rig.run(1)
    assert rig.adapter.applied.off == ForcesOff.STALE


@pytest.mark.parametrize(("address", "ahead"), [("tcp://far:1", 10**15), ("ipc:///tmp/near", 0)])
@pytest.mark.parametrize(("way", "fresh"), [(8 * MS, True), (12 * MS, False)])
def test_a_way_that_is_always_long_is_age(monkeypatch, address, ahead, way, fresh):
    """A render may be used for 10 ms after it left, also where none comes sooner: here and from another machine."""
    rig = Rig(monkeypatch)
    rig.daemon.address, rig.daemon.ahead, rig.daemon.way = address, ahead, way
    rig.daemon.fields = {"feed_forward": (3.0, 0.0, 0.0, 0.0, 0.0, 0.0)}
    rig.run(400)
    assert rig.felt()[0] == pytest.approx(3.0 if fresh else 0.0)
    assert rig.adapter.applied.off == (ForcesOff.NONE if fresh else ForcesOff.STALE)


def test_a_local_socket_to_another_machine_is_no_same_clock(monkeypatch):
    """What is forwarded looks near; by its own clock it answered at another time."""
    rig = Rig(monkeypatch)
    rig.daemon.address = "ipc:///tmp/forwarded"
    rig.push()
    assert rig.adapter.applied.off == ForcesOff.NONE


def test_no_daemon_is_waited_for(rig):
    """Looked for less and less often, with zero written in every cycle; then all is as if it had been there."""
    rig.daemon.running = False
    rig.run(3000)
    assert rig.daemon.clients == 0 and rig.device.written == [NO_WRENCH] * 3000
    assert rig.said == ["waiting for a daemon: no daemon runs"]
    rig.daemon.running = True
    rig.run(2100)
    assert rig.daemon.state == EngagementState.ACTIVE


def until(rig, condition):
    """Cycles, until something in a thread beside them has been done."""
    while not condition():
        rig.run(1)
        time.sleep(1e-4)


def test_a_daemon_that_does_not_answer_holds_up_no_cycle(monkeypatch):
    """A device with a watchdog needs its zero in every one of them. The daemon is taken up once it answers."""
    rig = Rig(monkeypatch, Aside)
    answers, asked = threading.Event(), threading.Event()

    def greet(daemon, name, **options):
        asked.set()
        answers.wait()
        return Client(rig.daemon)

    monkeypatch.setattr(loop, "Client", greet)
    rig.run(100)
    asked.wait()
    rig.run(100)
    assert rig.device.written == [NO_WRENCH] * 200 and rig.adapter.session is None
    answers.set()
    until(rig, lambda: rig.daemon.state == EngagementState.ACTIVE)


def test_a_daemon_that_takes_no_lease_back_holds_up_no_cycle(monkeypatch):
    """Nor is another one looked for before."""
    rig = Rig(monkeypatch, Aside)
    until(rig, lambda: rig.daemon.state == EngagementState.ACTIVE)
    answers, asked = threading.Event(), threading.Event()

    def close(client):
        asked.set()
        answers.wait()

    monkeypatch.setattr(Client, "close", close)
    rig.daemon.silent = True
    until(rig, asked.is_set)
    rig.run(300)
    assert rig.adapter.session is None and rig.daemon.clients == 1
    answers.set()
    until(rig, lambda: rig.daemon.clients == 2)


def test_an_end_while_a_daemon_is_greeted_gives_that_session_back(monkeypatch):
    rig = Rig(monkeypatch, Aside)
    closed = threading.Event()
    monkeypatch.setattr(Client, "close", lambda client: closed.set())
    rig.run(1)
    rig.adapter.leave()
    rig.run(1)
    assert rig.adapter.ended == (ExitCode.OK, "left")
    rig.adapter.hang_up()
    closed.wait()


def test_nothing_that_waits_happens_while_forces_are_on(rig):
    """A refusal in the middle of a push: the ramp first, then the way out of the session."""
    rig.push()
    rig.daemon.refuses["disarm"] = "bad_session"
    rig.adapter.memory = rig.adapter.memory._replace(tripped=False)
    rig.adapter._refusal = HapticdError("bad_session", "unknown session")
    before = len(rig.device.written)
    rig.run(40)
    steps = -np.diff([wrench[0] for wrench in rig.device.written[before - 1 :]])
    assert steps.max() == pytest.approx(3.0 / 15.0) and rig.device.written[-1] == NO_WRENCH
    assert "release" in rig.ops()


def test_a_device_that_goes_away_ends_it(rig):
    """Samples say that there is no pose until the daemon rests; the lease goes back; a sentence and a code."""
    rig.push()
    rig.device.gone = True
    before = len(rig.daemon.samples)
    rig.run(30)
    assert rig.adapter.ended == (ExitCode.DEVICE, "the handle was unplugged")
    assert all(sample["valid"] is False for sample in rig.daemon.samples[before:])
    assert "disarm" in rig.ops() and rig.felt() == NO_WRENCH


@pytest.mark.parametrize("silent", [False, True])
def test_a_device_that_cannot_be_read_is_given_the_ramp(rig, silent):
    """Its motors would hold the last force: what is written goes down to zero, whatever the daemon does."""
    rig.push()
    rig.device.gone, rig.daemon.silent = True, silent
    before = len(rig.device.written)
    rig.run(16)
    forces = [wrench[0] for wrench in rig.device.written[before - 1 :]]
    assert len(forces) == 17 and -np.diff(forces).max() <= 0.2 + 1e-9 and rig.device.written[-1] == NO_WRENCH
    rig.run(600)
    assert rig.adapter.ended == (ExitCode.DEVICE, "the handle was unplugged")


def test_a_device_that_takes_no_force_ends_it(rig):
    """One failed write is the end of writing; the way out of the session does not wait for a zero that never comes."""
    rig.push()
    rig.device.deaf = True
    before = len(rig.device.written)
    rig.run(1)
    rig.device.deaf = False
    rig.run(40)
    assert rig.adapter.ended == (ExitCode.DEVICE, "the handle takes no force")
    assert len(rig.device.written) == before and "disarm" in rig.ops()


def test_zero_is_written_before_the_brake_which_may_fail(rig, monkeypatch):
    rig.push()
    seen = []

    def brake():
        seen.append(rig.device.written[-1])
        raise DeviceError("no brake")

    monkeypatch.setattr(rig.device, "brake", brake)

    def fast(k):
        rig.device.reading = Reading((0.004 * (k + 1), 0.0, 0.0))

    rig.run(12, fast)
    assert seen == [NO_WRENCH] and rig.adapter.ended is None
    assert any(line.endswith("its brake does not hold: no brake") for line in rig.said)


def test_too_fast_a_device_is_let_go_and_taken_up_again_at_rest(rig):
    """4 m/s for a few cycles: zero at once, brake, disarm; forces again after a second at rest."""
    rig.push()

    def fast(k):
        rig.device.reading = Reading((0.004 * (k + 1), 0.0, 0.0))

    rig.run(9, fast)
    assert rig.felt() == NO_WRENCH and rig.adapter.applied.off == ForcesOff.VELOCITY
    assert rig.device.braked == 1 and any("faster than its 3 m/s" in line for line in rig.said)
    rig.run(900)
    assert rig.ops().count("disarm") == 1 and rig.felt() == NO_WRENCH
    rig.run(600)
    assert rig.ops().count("arm") == 2 and rig.felt()[0] == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (Reading((math.nan, 0.0, 0.0)), "its position is no number: [nan, 0.0, 0.0]"),
        (Reading((0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.01)), "its orientation has the norm 1.01, not 1"),
        (Reading((0.0, 0.0, 0.0), (0.0, 0.0, 1.0)), "its orientation has 3 numbers, not 4"),
        (Reading((0.0, 0.0, 0.0), twist=(math.inf,) * 6), f"its twist is no number: {[math.inf] * 6}"),
        (Reading((0.0, 0.0, 0.0), valid=False), "it says that its pose may not be used"),
        (Reading((0.0, 0.0)), "its position has 2 numbers, not 3"),
        (Reading((0.0, 0.0, 0.0), twist=(0.0, 0.0, 0.0)), "its twist has 3 numbers, not 6"),
    ],
)
def test_a_reading_of_no_use_is_not_sent_as_a_pose(rig, bad, why):
    """The last good pose, marked not valid; forces ramp down meanwhile, a sentence says why, and they come back."""
    rig.device.reading = Reading((0.01, 0.0, 0.0))
    rig.push()
    rig.device.reading = bad
    rig.run(20)
    last = rig.daemon.samples[-1]
    assert last["valid"] is False and all(map(math.isfinite, last["position"]))
    assert rig.felt() == NO_WRENCH and rig.adapter.applied.off == ForcesOff.DEVICE
    assert f"forces off: DEVICE ({why})" in rig.said
    rig.device.reading = Reading((0.01, 0.0, 0.0))
    rig.run(150)
    assert rig.felt()[0] == pytest.approx(3.0)


@pytest.mark.parametrize("held", [None, True, False])
def test_a_deadman_is_told_of_only_by_a_device_that_has_one(rig, held):
    """Absent in its samples otherwise; one sentence where the daemon requires it, however often it is greeted."""
    rig.device.reading = Reading((0.0, 0.0, 0.0), held=held)
    rig.daemon.requires_deadman = True
    rig.run(200)
    assert {sample["deadman"] for sample in rig.daemon.samples} == {held}
    rig.daemon.silent = True
    rig.run(1500)
    rig.daemon.silent = False
    rig.run(1500)
    assert rig.daemon.clients > 1
    assert sum("and this device has none" in line for line in rig.said) == (1 if held is None else 0)


def test_no_deadman_is_no_matter_where_none_is_required(rig):
    rig.run(200)
    assert rig.daemon.described == 1 and not any("deadman" in line for line in rig.said)


def test_a_render_that_is_no_number_ramps_down(rig, monkeypatch):
    """The client refuses to decode it: that counts as a wrench that is not finite."""
    rig.push()

    def refuse(self):
        raise HapticdError("not_finite", "a number of the render is NaN or infinite")

    good = Client.receive
    monkeypatch.setattr(Client, "receive", refuse)
    rig.run(4)
    assert rig.adapter.applied.off == ForcesOff.NOT_FINITE and rig.adapter.memory.not_finite == 4
    assert rig.felt()[0] == pytest.approx(3.0 * 11 / 15)
    monkeypatch.setattr(Client, "receive", good)
    rig.run(150)
    assert rig.felt()[0] == pytest.approx(3.0)


def test_a_lease_of_another_is_a_sentence_and_the_end(rig):
    rig.daemon.refuses["lease"] = "lease_taken"
    rig.run(5)
    code, text = rig.adapter.ended
    assert code == ExitCode.REFUSED and "one device, one adapter" in text


def test_a_lease_of_ones_own_lost_session_is_waited_for(rig):
    rig.push()
    rig.daemon.silent = True
    rig.daemon.refuses["lease"] = "lease_taken"
    rig.run(1500)
    assert rig.adapter.ended is None and rig.daemon.clients > 2
    rig.daemon.silent, rig.daemon.state = False, EngagementState.IDLE
    rig.daemon.refuses.clear()
    rig.run(1500)
    assert rig.felt()[0] == pytest.approx(3.0)


@pytest.mark.parametrize("code", ["timeout", "busy"])
def test_a_lease_that_comes_late_is_asked_for_again(rig, code):
    """The servo did not take it in time, and may do so later: who asks again renews. Said once."""
    rig.daemon.refuses["lease"] = code
    rig.run(1300)
    assert rig.adapter.ended is None and rig.daemon.clients == 1 and 2 <= rig.ops().count("lease") <= 10
    assert rig.said == ["no forces: `lease` is refused"]
    rig.daemon.refuses.clear()
    rig.run(400)
    assert rig.daemon.state == EngagementState.ACTIVE and rig.daemon.clients == 1


def test_a_lease_is_waited_for_longer_than_renders_are(rig):
    """A daemon that answers after 1.2 s is neither silent nor refusing."""
    rig.daemon.answers_at = rig.now + 1200 * MS
    rig.run(1500)
    assert rig.daemon.clients == 1 and rig.daemon.state == EngagementState.ACTIVE


@pytest.mark.parametrize("code", ["timeout", "no_reply"])
def test_a_lease_that_may_be_ones_own_is_waited_for(rig, code):
    """A session that had no answer may have been given it since: it gives it back, and `lease_taken` is no end."""
    rig.daemon.refuses["lease"] = code
    rig.run(300)
    rig.daemon.refuses["lease"] = "lease_taken"
    rig.run(600)
    assert rig.adapter.ended is None and "release" in rig.ops()
    assert sum("waiting, as it may be" in line for line in rig.said) == 1
    rig.daemon.refuses.clear()
    rig.run(600)
    assert rig.daemon.state == EngagementState.ACTIVE


def test_a_fault_is_left_by_the_button_only(rig):
    rig.push()
    rig.daemon.state, rig.daemon.reason = EngagementState.FAULT, Reason.STOP
    rig.run(500)
    assert rig.felt() == NO_WRENCH and rig.ops() == ["lease", "arm"] and "FAULT: STOP" in rig.said
    rig.device.reading = Reading((0.0, 0.0, 0.0), buttons=1)
    rig.run(500)
    assert rig.ops() == ["lease", "arm", "reset", "arm"] and rig.felt()[0] == pytest.approx(3.0)


@pytest.mark.parametrize("bad", [Reading((math.nan, 0.0, 0.0)), Reading((math.nan, 0.0, 0.0), buttons=1)])
def test_a_button_that_is_held_all_along_leaves_no_fault(rig, bad):
    """One reading of no use is no release: what follows it is no press either."""
    rig.device.reading = Reading((0.0, 0.0, 0.0), buttons=1)
    rig.push()
    rig.daemon.state, rig.daemon.reason = EngagementState.FAULT, Reason.STOP
    rig.run(300)
    rig.device.reading = bad
    rig.run(1)
    assert rig.daemon.samples[-1]["buttons"] == 1 and rig.daemon.samples[-1]["valid"] is False
    rig.device.reading = Reading((0.0, 0.0, 0.0), buttons=1)
    rig.run(300)
    assert rig.ops() == ["lease", "arm"]


def test_who_was_only_late_takes_hold_where_the_tool_was_left(rig):
    rig.push()
    rig.daemon.state, rig.daemon.reason = EngagementState.IDLE, Reason.SAMPLE_STALE
    rig.run(300)
    assert rig.daemon.asked[1:] == [("arm", {"reanchor": True}), ("arm", {"reanchor": False})]


def test_nobody_listens_any_more(monkeypatch):
    """What cannot be said, as the terminal is gone, changes nothing."""
    rig = Rig(monkeypatch)

    def broken(text):
        raise BrokenPipeError

    rig.adapter._tell = broken
    rig.push()
    rig.adapter.leave()
    rig.run(20)
    assert rig.adapter.ended == (ExitCode.OK, "left") and rig.felt() == NO_WRENCH


def test_leaving_ramps_down_and_ends(rig):
    rig.push()
    rig.adapter.leave()
    before = len(rig.device.written)
    rig.run(20)
    assert rig.adapter.ended == (ExitCode.OK, "left") and rig.ops() == ["lease", "arm", "disarm"]
    forces = [wrench[0] for wrench in rig.device.written[before - 1 :]]
    assert -np.diff(forces).max() <= 0.2 + 1e-9 and forces[-1] == 0.0


def test_a_daemon_for_another_device_is_refused(rig):
    rig.daemon.card = load_card("inverse3").to_dict()
    rig.run(2)
    code, text = rig.adapter.ended
    assert code == ExitCode.REFUSED and "configured for the card `inverse3`, this device is `simulated`" in text


def test_a_greeting_without_limits_is_a_sentence(rig, monkeypatch):
    monkeypatch.delitem(LIMITS, "force_slew")
    rig.run(2)
    code, text = rig.adapter.ended
    assert code == ExitCode.REFUSED and "no usable card, limits or horizon ('force_slew')" in text


def test_a_device_that_switched_itself_off_starts_anew(rig):
    rig.push()
    rig.device.why_off = "forces were taken away by its watchdog"
    rig.run(20)
    assert rig.felt() == NO_WRENCH and any("its watchdog" in line for line in rig.said)
    rig.device.why_off = ""
    rig.run(10)
    assert 0.0 < rig.felt()[0] < 0.5  # a tenth of the soft start


def test_stamps_of_a_lying_clock_are_replaced(rig):
    """Good stamps pass, with their age; after a step back it is the time of reading, and a sentence says so."""
    rig.device.own_clock = True

    def stamped(offset):
        def each(k):
            rig.device.reading = Reading((0.0, 0.0, 0.0), t_ns=rig.now - offset - k % 5 * MS // 2)

        return each

    rig.run(55, stamped(10**12))
    ages = [rig.now - (49 - k) * MS - s["t_sample"] for k, s in enumerate(rig.daemon.samples[-50:])]
    assert min(ages) >= 0 and max(ages) >= 1.9 * MS
    assert not any("clock" in line for line in rig.said)
    rig.run(50, stamped(10**12 + 10**9))
    assert any("ran backwards" in line for line in rig.said)
    assert rig.daemon.samples[-1]["t_sample"] == rig.now


@pytest.mark.parametrize(("horizon", "told"), [(20.0, True), (400.0, False)])
def test_stamps_behind_are_judged_by_the_daemons_horizon(rig, horizon, told):
    """30 ms behind for good: too old for one daemon, which is a lie; well within what another takes."""
    rig.device.own_clock = True
    rig.daemon.stale_after_ms = horizon

    def stamped(behind):
        def each(k):
            rig.device.reading = Reading((0.0, 0.0, 0.0), t_ns=rig.now - 10**11 - min(behind, k * MS // 2))

        return each

    rig.run(50, stamped(0))
    rig.run(1500, stamped(30 * MS))
    assert any("lags" in line for line in rig.said) is told


def test_limits_are_the_cards_and_the_daemons_where_those_are_less():
    card = load_card("simulated")
    daemons = {**LIMITS, "force_max": 6.0}
    limits = limits_for(card, daemons, "impedance", 4.0)
    assert (limits.force_peak, limits.force_continuous, limits.torque_peak) == (6.0, 4.0, 0.5)
    assert limits.torque_continuous == pytest.approx(0.5 * 4.0 / 6.0)
    assert limits.force_slew == pytest.approx(2000.0)
    assert limits_for(load_card("touch"), daemons, "impedance", None).torque_peak == 0.0
    for name in ("sigma7", "lambda7", "spacemouse"):  # figures that do not divide evenly
        other = {"force_max": 1e9, "torque_max": 1e9, "force_slew": 1.0, "torque_slew": 1.0}
        found = limits_for(load_card(name), other, "impedance", None)
        assert found.force_continuous == found.force_peak and found.torque_continuous == found.torque_peak


def test_motors_that_are_warm_are_told_once(monkeypatch):
    rig = Rig(monkeypatch, continuous=1.0)
    rig.push(3.0)
    rig.run(5000)
    assert rig.felt()[0] == pytest.approx(1.0, abs=1e-3)
    assert rig.said.count("the motors are warm: forces fall to 1 N, which they stand for ever") == 1


@pytest.mark.parametrize("closes", [True, False])
def test_a_fault_in_the_devices_own_code_leaves_it_with_no_force(monkeypatch, closes):
    """Whatever `read` raises that is no DeviceError: zero is written, the device closed, the lease goes back."""
    daemon, order = Daemon(), []
    daemon.fields = {"feed_forward": (3.0, 0.0, 0.0, 0.0, 0.0, 0.0)}

    class Faulty(Handle):
        def read(self):
            daemon.now = time.monotonic_ns()
            if self.written and self.written[-1][0] > 0.0:
                order.append("fault")
                raise ZeroDivisionError
            return super().read()

        def write(self, wrench):
            super().write(wrench)
            order.append(wrench)

        def close(self):
            order.append("closed")
            if not closes:
                raise OSError

    def close(self):
        order.append("left")

    monkeypatch.setattr(Client, "close", close)
    monkeypatch.setattr(loop, "Client", daemon)
    with pytest.raises(ZeroDivisionError if closes else OSError):
        loop.run_adapter(Faulty(), say=lambda line: None, stop=threading.Event())
    assert order[order.index("fault") + 1 :] == [NO_WRENCH, "closed", "left"]


@pytest.mark.parametrize("wrong", [{"mode": "both"}, {"continuous": 0.0}, {"continuous": math.nan}])
def test_options_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Adapter(Handle(), **wrong)
