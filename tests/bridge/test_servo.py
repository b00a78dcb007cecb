"""The servo's loop, with a stand-in for the tick: what is read, what is answered, when, and what an error leads to.

The stand-in is a plain function on the same tables, so the loop is judged apart from the mechanics.
"""

import time

import numpy as np
import pytest
import zmq
from governed import budgets, recorded
from hypothesis import given
from hypothesis import strategies as st
from numba import njit
from servo_rig import SESSION, Bench
from waiting import wait_until

from bridge.exit_codes import ExitCode
from bridge.governor import SHARE, Governor
from bridge.schema import MAX_MESSAGE_BYTES, Reject
from bridge.servo import CompileCounter, count_kernels
from bridge.servo_loop import DRIFT, MAX_FRAMES, MAX_MESSAGES, OWN_COMMAND_ID, SNAPSHOT_EVERY, Sessions, next_due
from haptics.snapshot import unpack_snapshot
from haptics.states import CommandKind
from haptics.tables import RECORD
from rtcore.tables import MAX_CONTACTS

MS = 1_000_000


@given(
    due=st.integers(0, 10**12),
    late=st.integers(0, 10**8),
    busy=st.integers(0, 10**8),
    period=st.integers(250_000, 20_000_000),
)
def test_next_due_keeps_the_grid_skips_whole_periods_and_always_rests(due, late, busy, period):
    started, now = due + late, due + late + busy
    following, skipped, earliest = next_due(due, started, now, period)
    assert following == due + (1 + skipped) * period, "the grid of deadlines is never left"
    assert skipped >= 0
    assert earliest - now >= period // 20, "some sleep in every tick"
    assert earliest - now >= busy // 10, "a long tick is followed by a longer rest"
    assert earliest - following <= period // 2 + 1, "never later than half a period: no burst can build up"
    if skipped:
        assert following - earliest <= period // 2 + 1, "no period is skipped that could have been kept"


def test_on_time_ticks_skip_nothing():
    assert next_due(10 * MS, 10 * MS, 10 * MS + 200_000, MS)[:2] == (11 * MS, 0)


def test_only_the_owner_and_only_forward():
    sessions = Sessions()
    assert sessions.judge(SESSION, 1) == Reject.NOT_OWNER
    assert sessions.judge(0, 1) == Reject.NOT_OWNER
    sessions.begin(SESSION)
    assert sessions.judge(SESSION, 5) == Reject.NONE
    sessions.accept(b"a", 5, 0, 0, True)
    assert sessions.judge(SESSION, 5) == Reject.SEQUENCE
    assert sessions.judge(SESSION, 4) == Reject.SEQUENCE
    assert sessions.judge(SESSION + 1, 6) == Reject.NOT_OWNER
    sessions.begin(SESSION)
    assert sessions.judge(SESSION, 1) == Reject.NONE
    assert not sessions.has_sample


def test_time_in_queues_counts_as_age():
    """The quickest arrival of the lease is the yardstick; what came 3 ms slower is 3 ms old when it arrives."""
    sessions = Sessions()
    sessions.begin(SESSION)
    sessions.accept(b"a", 1, 1000 * MS, 5000 * MS, True)
    assert sessions.age_ns(5000 * MS) == 0
    assert sessions.age_ns(5002 * MS) == 2 * MS
    sessions.accept(b"a", 2, 1001 * MS, 5004 * MS, True)
    drift = 4 * MS // DRIFT  # what the clocks may have drifted apart in the 4 ms between
    assert sessions.age_ns(5004 * MS) == 3 * MS - drift
    sessions.accept(b"a", 3, 1010 * MS, 5009 * MS, True)
    assert sessions.age_ns(5009 * MS) == 0
    # A client clock that jumps ahead by an hour makes later samples old: safe.
    sessions.accept(b"a", 4, 3_600_000 * MS, 5010 * MS, True)
    sessions.accept(b"a", 5, 1012 * MS, 5011 * MS, True)
    assert sessions.age_ns(5011 * MS) > 3_000_000 * MS


@pytest.mark.parametrize("ppm", [-150, 0, 150])
def test_a_drifting_clock_does_not_make_samples_old(ppm):
    """Half an hour with a client clock that is off by a cheap crystal's worth, one sample per second."""
    sessions = Sessions()
    sessions.begin(SESSION)
    for second in range(1800):
        received = second * 1000 * MS
        sessions.accept(b"a", second + 1, received - received * ppm // 1_000_000, received, True)
        assert sessions.age_ns(received) == 0
        assert sessions.age_ns(received + 3 * MS) == 3 * MS
    # A queue still shows: the same clock, 10 ms late.
    received += 1000 * MS
    sampled = received - 10 * MS
    sessions.accept(b"a", 1801, sampled - sampled * ppm // 1_000_000, received, True)
    assert 9 * MS < sessions.age_ns(received) <= 10.5 * MS


def test_compiles_are_counted():
    counter = CompileCounter()

    @njit
    def fresh(x):
        return x + 1

    fresh(1)
    assert counter.count == 1
    fresh(2)
    assert counter.count == 1
    fresh(1.5)
    assert counter.count == 2
    from bridge import wire

    before = count_kernels()
    wire.warm_up()
    assert count_kernels() >= max(before, 3)


@pytest.fixture
def free(short_base):
    bench = Bench(short_base, "free")
    yield bench
    bench.close()


@pytest.fixture(params=["free", "triggered"])
def governed(short_base, request):
    bench = Bench(short_base, request.param, governor=True)
    yield bench
    bench.close()


@pytest.fixture
def triggered(short_base):
    bench = Bench(short_base, "triggered")
    yield bench
    bench.close()


@pytest.fixture
def briefly_leased(short_base):
    """Triggered, with a lease of 200 ms."""
    bench = Bench(short_base, "triggered", lease_ms=200.0)
    yield bench
    bench.close()


def test_free_running_answers_every_tick_with_the_newest_sample(free):
    free.start()
    for _ in range(5):
        number = free.send()
        time.sleep(0.003)
    wait_until(lambda: free.servo.sessions.last_seq == number)
    later = free.ring.count + 20
    wait_until(lambda: free.ring.count > later)
    free.stop()
    records = free.records()
    answered = records[records["input"]["has_sample"] == 1]
    renders = [free.render() for _ in answered]
    assert [render["tick"] for render in renders] == answered["tick"].tolist(), "one render per tick, none twice"
    assert [render["seq"] for render in renders] == answered["input"]["sample"]["seq"].tolist()
    assert renders[-1]["seq"] == number
    assert [render["seq"] for render in renders] == sorted(render["seq"] for render in renders)
    assert free.render(20) is None


def test_records_follow_one_another_and_know_what_was_fresh(free):
    free.start()
    for _ in range(4):
        number = free.send()
        while free.render()["seq"] != number:  # or a servo that has to wait meets two samples in one tick
            pass
    free.stop()
    records = free.records()
    assert records["tick"].tolist() == list(range(1, len(records) + 1))
    entered = records["input"]
    assert entered["fresh"].sum() == 4
    assert (np.diff(entered["has_sample"].astype(int)) >= 0).all()
    stale = entered[(entered["has_sample"] == 1) & (entered["fresh"] == 0)]
    assert (stale["age_ns"] > 0).all()
    assert (records["budget"] == free.stored.budget[0]).all()
    timing = records["timing"]
    assert (timing["started_ns"] >= timing["planned_ns"]).all()
    assert (timing["computed_ns"] >= timing["started_ns"]).all()
    assert (timing["sent_ns"] >= timing["computed_ns"]).all()


def test_a_long_tick_is_followed_by_skipped_periods_not_by_a_burst(free):
    free.spend_s = {30: 0.0105}
    asked_at = []
    wait = free.servo.waiter.wait_until

    def watched(due, earliest):
        asked_at.append(time.monotonic_ns())
        return wait(due, earliest)

    free.servo.waiter.wait_until = watched
    free.start(lease=False)
    wait_until(lambda: free.ring.count > 80)
    free.stop()
    records = free.records()
    timing = records["timing"]
    after = int(np.flatnonzero(records["tick"] == 31)[0])
    assert timing["missed"][after] >= 10
    gaps = np.diff(timing["planned_ns"])
    assert (gaps == MS * (1 + timing["missed"][1:].astype(np.int64))).all(), "planned times stay on one grid"
    # No more is skipped than went by, also where the machine itself stood still: after the rest, half a period at most.
    now = np.array(asked_at[1 : len(records)])
    rested = now + np.maximum(MS // 20, (now - timing["started_ns"][:-1]) // 10)
    skipped = timing["missed"][1:] > 0
    assert (timing["planned_ns"][1:] <= rested + MS // 2 + 1)[skipped].all()
    # A tick that wakes late and the next one, on time, may be close; more than that would be catching up.
    in_three_ms = [
        np.sum((timing["started_ns"] >= t) & (timing["started_ns"] < t + 3 * MS)) for t in timing["started_ns"]
    ]
    assert max(in_three_ms) <= 3 + 2
    assert free.ring.header.missed == timing["missed"].sum()


def spent_ns(records):
    """What each tick took, however late it began."""
    return records["timing"]["sent_ns"] - records["timing"]["started_ns"]


def test_a_tick_too_long_for_its_work_is_followed_by_one_that_does_less(governed):
    """4 ms of work in each tick at the configured budget; the record says what was allowed, and that it was less."""
    governed.demand, governed.unit_s = 10**6, 0.2e-6
    governed.start()
    for _ in range(200):
        governed.send()
        assert governed.render() is not None
    assert governed.stop() == ExitCode.OK
    records = governed.records()
    units = records["budget"]["units"]
    first = int(np.argmax(units < 20000))
    assert spent_ns(records)[first - 1] > 4 * MS and units[first] < 10000
    # What is left of the work fits into the share of a period, beside what this machine takes for all else.
    assert np.median(units[first + 5 :]) * governed.unit_s * 1e9 < SHARE * MS
    assert np.median(spent_ns(records)[first + 5 :]) < 0.5 * spent_ns(records)[first - 1]
    judge = Governor(20000, 50, 0, period_ns=MS, bodies=1, contacts=MAX_CONTACTS)
    assert (recorded(records) == budgets(judge, records)).all()
    assert (records["budget"]["passes"] == 8).all()
    assert (records["timing"]["governed_total"] == np.cumsum(units < 20000)).all()


def test_ticks_that_only_begin_late_keep_their_budget(short_base):
    bench = Bench(short_base, governor=True)
    wait = bench.servo.waiter.wait_until
    bench.servo.waiter.wait_until = lambda due, earliest: wait(due + 3 * MS, earliest)
    bench.start(lease=False)
    wait_until(lambda: bench.ring.count > 60)
    bench.stop()
    records = bench.records()
    bench.close()
    assert (records["timing"]["started_ns"] - records["timing"]["planned_ns"] >= 2 * MS).all()
    slow = spent_ns(records) > SHARE * MS
    in_a_row = slow[2:] & slow[1:-1] & slow[:-2]
    quiet = len(records) if not in_a_row.any() else int(np.argmax(in_a_row)) + 3  # a machine that was not there
    assert (records["budget"][:quiet] == bench.stored.budget[0]).all()
    judge = Governor(20000, 50, 0, period_ns=MS, bodies=1, contacts=MAX_CONTACTS)
    assert (recorded(records) == budgets(judge, records)).all(), "what a tick took decides, not when it began"


def test_at_most_so_many_messages_per_tick(free):
    """Three times as many arrive while a tick lasts; repeated until enough of them were in time for the next one."""
    free.spend_s = dict.fromkeys(range(1, 4000), 0.01)
    free.start(lease=False)
    sent = most = 0
    while most < MAX_MESSAGES and sent < 100 * MAX_MESSAGES:
        for _ in range(3 * MAX_MESSAGES):
            free.send(session=SESSION + 1)
        sent += 3 * MAX_MESSAGES
        wait_until(lambda sent=sent: free.ring.header.rejected == sent)
        most = max(most, free.records()["input"]["rejected"].max())
    assert most == MAX_MESSAGES


@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (b"", Reject.MALFORMED),
        (b"\xc1", Reject.MALFORMED),
        (b"x" * (MAX_MESSAGE_BYTES + 1), Reject.TOO_LONG),
        ({"session": SESSION + 1}, Reject.NOT_OWNER),
        ({"seq": 0}, Reject.OUT_OF_RANGE),
        ({"position": [0.0, float("nan"), 0.0]}, Reject.NOT_FINITE),
        ({"orientation": [0.0, 0.0, 0.0, 1.1]}, Reject.NOT_UNIT),
        ({"v": 2}, Reject.VERSION),
        ([b"a", b"b"], Reject.MALFORMED),
        ([b"f"] * (3 * MAX_FRAMES), Reject.MALFORMED),
    ],
)
def test_bad_messages_are_counted_with_their_code_and_change_nothing(free, bad, code):
    free.start()
    good = free.send()
    wait_until(lambda: free.servo.sessions.last_seq == good)
    before = free.servo.record["input"]["sample"].copy()
    if isinstance(bad, dict):
        free.send(**bad)
    elif isinstance(bad, list):
        free.client.send_multipart(bad)
    else:
        free.client.send(bad)
    wait_until(lambda: free.ring.header.rejected == 1)
    after = free.send()
    wait_until(lambda: free.servo.sessions.last_seq == after)
    free.stop()
    assert before["seq"] == good
    records = free.records()
    hits = records["input"][records["input"]["rejected"] > 0]
    assert hits["rejected"].tolist() == [1]
    assert hits["reject_code"].tolist() == [code]
    assert hits["sample"]["seq"].tolist() == [good]


def test_sequence_going_back_is_refused_until_a_new_lease(free):
    free.start()
    free.send(seq=10)
    wait_until(lambda: free.servo.sessions.last_seq == 10)
    free.send(seq=9)
    wait_until(lambda: free.ring.header.rejected == 1)
    free.post(CommandKind.RELEASE, SESSION)
    free.post(CommandKind.LEASE, SESSION)
    wait_until(lambda: free.servo.sessions.owner == SESSION and not free.servo.sessions.has_sample)
    free.send(seq=1)
    wait_until(lambda: free.servo.sessions.last_seq == 1)
    free.stop()
    assert (free.records()["input"]["reject_code"] == Reject.SEQUENCE).sum() == 1


def test_client_that_stops_reading_costs_itself_only(free):
    """Renders that cannot be queued are counted; ticks go on, in time, and nothing is raised."""
    free.client.set(zmq.RCVHWM, 1)
    deaf = free.context.socket(zmq.DEALER)
    deaf.set(zmq.LINGER, 0)
    deaf.set(zmq.RCVHWM, 1)
    deaf.set(zmq.RCVBUF, 4096)
    deaf.connect(free.endpoint)
    free.start()
    free.send(deaf)
    wait_until(lambda: free.ring.header.dropped > 50)
    assert free.stop() == ExitCode.OK
    records = free.records()
    assert records["timing"]["dropped_renders"][-1] == free.ring.header.dropped
    assert (np.diff(records["timing"]["dropped_renders"].astype(int)) <= 1).all()


def test_renders_to_a_client_that_is_gone_are_dropped(free):
    free.start()
    free.send()
    assert free.render() is not None
    free.client.close()
    wait_until(lambda: free.ring.header.dropped > 5)
    assert free.stop() == ExitCode.OK


def test_triggered_runs_exactly_one_tick_per_sample(triggered):
    triggered.start()
    for _ in range(50):
        number = triggered.send()
        render = triggered.render()
        assert render["seq"] == number
    triggered.stop()
    records = triggered.records()
    fresh = records[records["input"]["fresh"] == 1]
    assert len(fresh) == 50
    assert (fresh["input"]["age_ns"] == 0).all()
    assert (fresh["input"]["command"]["id"] == 0).all()
    assert len(records) == 52, "50 samples, the lease, the end"


def test_triggered_samples_that_wait_each_get_their_tick_and_render(triggered):
    triggered.start()
    sent = [triggered.send() for _ in range(20)]
    assert [triggered.render()["seq"] for _ in sent] == sent
    assert triggered.render(20) is None
    triggered.stop()
    records = triggered.records()
    assert records["input"]["sample"]["seq"][records["input"]["fresh"] == 1].tolist() == sent


def test_triggered_commands_run_a_tick_of_their_own_without_a_render(triggered):
    triggered.start()
    triggered.send()
    triggered.render()
    triggered.post(CommandKind.RENEW, SESSION)
    wait_until(lambda: triggered.ring.count == 3)
    assert triggered.render(20) is None
    row = triggered.records()[-1]
    assert (row["input"]["fresh"], row["input"]["age_ns"], row["output"]["command_id"]) == (0, 0, 2)
    assert row["input"]["has_sample"] == 1


def test_triggered_refused_samples_run_no_tick(triggered):
    triggered.start()
    triggered.send(position=[float("nan")] * 3)
    wait_until(lambda: triggered.servo._rejected == 1 or triggered.ring.count > 1)
    number = triggered.send()
    triggered.render()
    triggered.stop()
    records = triggered.records()
    assert records["input"]["rejected"].tolist() == [0, 1, 0], "the lease, the good sample, the end"
    assert records["input"]["sample"]["seq"][1] == number


def test_triggered_silence_lets_time_pass_after_the_lease(briefly_leased):
    """Nothing for lease_ms (200): ticks run by themselves with the true age, until the owner is gone."""
    bench = briefly_leased
    bench.start()
    bench.send()
    bench.render()
    later = bench.ring.count + 20
    wait_until(lambda: bench.ring.count > later)
    rows = bench.records()
    heard = int(rows["timing"]["t_received"][-1])
    rows = rows[rows["timing"]["started_ns"] > heard]
    assert len(rows) > 19 and (rows["input"]["fresh"] == 0).all()
    assert (rows["input"]["age_ns"] >= 200 * MS).all()
    assert (rows["input"]["age_ns"] == rows["timing"]["started_ns"] - heard).all()
    assert (np.diff(rows["input"]["age_ns"]) > 0).all()
    bench.post(CommandKind.RELEASE, SESSION)
    wait_until(lambda: bench.servo.sessions.owner == 0)
    resting = bench.ring.count
    time.sleep(0.3)
    assert bench.ring.count == resting


def test_triggered_commands_do_not_hide_that_the_owner_is_silent(briefly_leased):
    """Refused commands of anybody, one every few ms: the lost owner's time passes all the same."""
    bench = briefly_leased
    bench.start()
    bench.send()
    bench.render()
    found = []

    def silent_ones():
        """Ticks since the sample that began when the lease was long over; those by a command, and the others."""
        found.append(bench.records())
        rows = np.concatenate(found)
        heard = rows["timing"]["t_received"][-1]
        rows = rows[rows["timing"]["started_ns"] > heard + 250 * MS]
        by_command = rows["input"]["command"]["id"] != 0
        return rows[by_command], rows[~by_command]

    def post():
        bench.post(CommandKind.RENEW, SESSION + 1)
        time.sleep(0.005)

    wait_until(lambda: len(silent_ones()[0]) > 5 and len(silent_ones()[1]) > 20, "no time passes", meanwhile=post)
    assert (silent_ones()[0]["input"]["age_ns"] >= 200 * MS).all()


@pytest.mark.parametrize("clocking", ["free", "triggered"])
def test_end_is_a_recorded_command(short_base, clocking):
    bench = Bench(short_base, clocking)
    bench.start(lease=False)
    assert bench.stop() == ExitCode.OK
    row = bench.records()[-1]
    assert (row["input"]["command"]["kind"], row["input"]["command"]["id"]) == (CommandKind.SHUTDOWN, OWN_COMMAND_ID)
    assert row["output"]["stopped"] == 1
    bench.close()


def test_silent_supervisor_is_noticed(free):
    free.ring.header.supervisor_heartbeat_ns = time.monotonic_ns() - 10**10
    free.start()
    wait_until(lambda: free.servo.supervisor_lost)
    free.stop()
    lost = free.records()["input"]["supervisor_lost"]
    assert lost.any()
    assert (np.diff(lost.astype(int)) >= 0).all(), "once lost, lost in every later tick"


@pytest.mark.parametrize("clocking", ["free", "triggered"])
def test_tick_that_raises_ramps_down_and_says_so(short_base, clocking, capfd):
    bench = Bench(short_base, clocking)
    bench.start()
    bench.fail_at = 10
    steps = int(bench.stored.settings["ramp_fault_ticks"][0])
    for _ in range(12):
        bench.send()
        bench.render(50)
    bench.thread.join(10)
    assert bench.code == ExitCode.TICK_RAISED
    assert bench.ring.header.failed_tick == 10
    assert "stand-in for a kernel that raises" in capfd.readouterr().err
    tail = bench.records()[9:]
    assert len(tail) == steps + 1
    force = tail["output"]["wrench"][:, 0]
    assert force[0] == pytest.approx(3.0)
    assert np.allclose(np.diff(force), -3.0 / steps), "an even ramp"
    last = tail[-1]["output"]
    assert not last["wrench"].any()
    assert not last["stiffness"].any()
    assert (last["state"], last["event_from"], last["event_to"]) == (6, 3, 6)
    assert tail["tick"].tolist() == list(range(10, 10 + len(tail)))
    bench.close()


def test_snapshots_come_at_their_ticks_and_can_be_unpacked(triggered):
    triggered.servo.put_snapshot()
    assert triggered.reader.snapshot()[0] == 0
    triggered.start()
    for _ in range(SNAPSHOT_EVERY):
        triggered.send()
        triggered.render()
    tick, data = triggered.reader.snapshot()
    assert tick == SNAPSHOT_EVERY
    _, touch = unpack_snapshot(data, triggered.stored.model)
    assert touch["owner"][0] == SESSION


def test_record_views_address_the_right_fields():
    from bridge import servo_loop

    record = np.zeros(1, RECORD)
    words = memoryview(record.view(np.uint8))
    words.cast("q")[servo_loop._AGE] = 11
    words.cast("I")[servo_loop._MISSED] = 12
    words[servo_loop._FRESH] = 1
    words.cast("q")[servo_loop._SENT] = 13
    assert record["input"]["age_ns"][0] == 11
    assert record["timing"]["missed"][0] == 12
    assert record["input"]["fresh"][0] == 1
    assert record["timing"]["sent_ns"][0] == 13
