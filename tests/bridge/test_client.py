"""The client library against a stand-in daemon: what it sends, what it makes of answers, and that it never hangs."""

import threading
import time

import pytest
from stand_in import CLOCK_AHEAD_NS, SESSION, STIFFNESS, StandIn
from waiting import wait_until

import bridge
from bridge.client import Client, HapticdError, NoDaemonError, NoReplyError, Observer
from haptics.states import EngagementState


@pytest.fixture
def triggered(tmp_path):
    with StandIn(tmp_path) as stand_in:
        yield stand_in


@pytest.fixture
def free(tmp_path):
    with StandIn(tmp_path, clocking="free") as stand_in:
        yield stand_in


def test_the_package_offers_the_library_lazily():
    assert bridge.Client is Client and bridge.Observer is Observer and bridge.HapticdError is HapticdError
    with pytest.raises(AttributeError, match="nothing_such"):
        _ = bridge.nothing_such


def test_without_a_daemon_the_sentence_says_how_to_start_one(tmp_path, monkeypatch):
    monkeypatch.setenv("HAPTICD_RUNTIME_DIR", str(tmp_path))
    with pytest.raises(
        NoDaemonError, match=r"no daemon named 'nobody' is running; start one with `hapticd run CONFIG`"
    ):
        Client("nobody")
    with pytest.raises(NoDaemonError, match="no daemon named 'nobody'"):
        Observer("nobody")


def test_nobody_at_an_address_is_told_in_time(tmp_path):
    began = time.monotonic()
    with pytest.raises(NoDaemonError, match=r"no daemon answers at ipc://.*did not answer `hello` within 100 ms"):
        Client(f"ipc://{tmp_path}/none", timeout_ms=100)
    assert time.monotonic() - began < 2.0


def test_a_name_is_resolved_through_the_runtime_directory(tmp_path, monkeypatch):
    from bridge.runtime import RuntimeDirectory

    monkeypatch.setenv("HAPTICD_RUNTIME_DIR", str(tmp_path / "base"))
    runtime = RuntimeDirectory("left").create()
    (tmp_path / "sockets").mkdir()
    with StandIn(tmp_path / "sockets") as stand_in, runtime.lock():
        runtime.write_endpoints(stand_in.endpoints)
        with Client("left") as client:
            assert client.session == SESSION
        with pytest.raises(NoDaemonError, match=r"no daemon named 'right' is running.*\(running: left\)"):
            Client("right")


def test_hello_says_who_asks_and_measures_the_clock_offset(triggered):
    began = time.monotonic_ns()
    with Client(triggered.endpoints["control"], "tester") as client:
        took = time.monotonic_ns() - began
        request = triggered.requests[0]
        assert request["op"] == "hello" and request["client"] == "tester" and request["versions"] == [1]
        assert abs(client.clock_offset_ns - CLOCK_AHEAD_NS) <= client.clock_uncertainty_ns
        assert client.clock_uncertainty_ns <= took // 2 + 1, "no wider than the exchange was long"
        assert client.endpoints == triggered.endpoints
        assert client.triggered and client.tick_s == 0.001


@pytest.mark.parametrize("missing", ["session", "tick_ns", "clocking", "endpoints"])
def test_an_incomplete_hello_is_told(triggered, missing):
    triggered.answers["hello"] = lambda request: {k: v for k, v in triggered.hello().items() if k != missing}
    with pytest.raises(HapticdError, match="hello reply") as caught:
        Client(triggered.endpoints["control"])
    assert caught.value.code == "malformed"


@pytest.mark.parametrize("encoding", ["struct", "msgpack"])
def test_triggered_exchange_returns_the_render_of_its_own_sample(triggered, encoding):
    with Client(triggered.endpoints, encoding=encoding) as client:
        client.lease()
        client.arm(reanchor=True)
        for step in range(1, 50):
            before = time.monotonic_ns()
            render = client.exchange((0.0, 0.0, -0.001 * step), deadman=True, buttons=3)
            assert render.seq == client.seq == step
            assert render.force[2] == STIFFNESS * (0.001 * step)
            assert render.state is EngagementState.ACTIVE and render.state_name == "ACTIVE"
            sample = triggered.samples[-1]
            assert sample["session"] == SESSION and sample["buttons"] == 3 and sample["deadman"] == 1
            assert before <= sample["t_sample"] <= time.monotonic_ns()
    assert triggered.encodings == [encoding == "struct"] * 49


def test_renders_of_earlier_samples_are_passed_over_in_triggered_mode(triggered):
    with Client(triggered.endpoints) as client:
        client.lease()
        client.send((0.0, 0.0, 0.0))
        client.send((0.0, 0.0, 0.0))
        assert client.exchange((0.0, 0.0, 0.0)).seq == 3


def test_free_exchange_returns_the_newest_render_and_drains_the_rest(free):
    """Of 30 renders that wait. They travel while nobody looks, so it is repeated: one exchange that gives the last one
    and leaves none has passed over 29."""
    free.last_rendered = 1
    with Client(free.endpoints) as client:
        client.lease()
        assert client.exchange((0.0, 0.0, 0.0)).tick == 1
        for _ in range(50):
            free.last_rendered = last = free.tick + 30
            wait_until(lambda last=last: free.tick > last, "the stand-in does not tick")
            time.sleep(0.01)
            render = client.exchange((0.0, 0.0, 0.0))
            if render.tick == last and client.receive() is None:
                break
            wait_until(lambda last=last: client.exchange((0.0, 0.0, 0.0)).tick == last, "the last render is lost")
        else:
            raise AssertionError("older renders were left in the queue each time")


def test_a_free_exchange_without_anything_new_gives_the_last_render_again(free):
    free.last_rendered = 1
    with Client(free.endpoints, render_timeout_ms=20_000) as client:
        client.lease()
        first = client.exchange((0.0, 0.0, 0.0))
        wait_until(lambda: free.tick > 20)
        assert client.exchange((0.0, 0.0, 0.0)) == first and first.tick == 1


@pytest.mark.parametrize("clocking", ["free", "triggered"])
def test_silence_of_the_daemon_is_an_error_in_time(tmp_path, clocking):
    with StandIn(tmp_path, clocking=clocking) as stand_in, Client(stand_in.endpoints, render_timeout_ms=400) as client:
        client.lease()
        client.exchange((0.0, 0.0, 0.0))
        stand_in.silent = True
        began = time.monotonic()
        with pytest.raises(NoReplyError, match="no render came within 400 ms"):
            while time.monotonic() - began < 5.0:
                client.exchange((0.0, 0.0, 0.0))
                time.sleep(0.001)
        assert time.monotonic() - began < 2.5


def test_samples_need_the_lease(triggered):
    with Client(triggered.endpoints) as client:
        with pytest.raises(HapticdError, match=r"client\.lease\(\)") as caught:
            client.exchange((0.0, 0.0, 0.0))
        assert caught.value.code == "not_owner"


def test_a_refusal_becomes_an_error_with_its_code_and_sentence(triggered):
    triggered.answers["lease"] = lambda request: ("lease_taken", "another session holds the lease")
    with Client(triggered.endpoints) as client, pytest.raises(HapticdError, match="another session") as caught:
        client.lease()
    assert caught.value.code == "lease_taken" and caught.value.text == "another session holds the lease"


def test_a_request_without_answer_is_told_and_its_late_answer_does_not_confuse_the_next(triggered):
    late = threading.Event()

    def slow(request):
        late.wait(30.0)
        return {"which": "slow"}

    triggered.answers["status"] = slow
    with Client(triggered.endpoints, timeout_ms=500) as client:
        with pytest.raises(NoReplyError, match="did not answer `status` within 500 ms"):
            client.status()
        triggered.answers["status"] = lambda request: {"which": "quick"}
        late.set()  # the late answer is on its way before the next one
        assert client.status()["which"] == "quick"


def test_a_question_is_answered_between_samples(triggered):
    with Client(triggered.endpoints) as client:
        client.lease()
        first = client.ask("status")
        second = client.ask("describe")
        reply = wait_until(second.reply, "no reply", meanwhile=lambda: client.exchange((0.0, 0.0, 0.0)))
        assert reply["id"] > 1
        assert first.wait()["id"] == reply["id"] - 1, "an answer that came first is kept for whoever asked"


def test_every_operation_sends_its_fields(triggered):
    with Client(triggered.endpoints) as client:
        client.lease()
        client.renew()
        client.arm()
        client.arm(reanchor=True)
        client.clutch(True)
        client.set_gains(300, 2)
        client.set_scale(2)
        client.vibrate(1, 150, 0.1, decay=0.02)
        client.pose_body("box", (1, 2, 3))
        client.disarm()
        client.hand_over("her")
        client.stop()
        client.reset()
        client.describe()
        client.shutdown()
        client.release()
    sent = [{k: v for k, v in r.items() if k not in ("v", "id", "session")} for r in triggered.requests[1:]]
    assert all(r["session"] == SESSION for r in triggered.requests[1:])
    assert sent == [
        {"op": "lease"},
        {"op": "renew"},
        {"op": "arm", "reanchor": False},
        {"op": "arm", "reanchor": True},
        {"op": "clutch", "pressed": True},
        {"op": "set", "stiffness": 300.0, "damping": 2.0},
        {"op": "set", "scale": 2.0},
        {
            "op": "vibrate",
            "amplitude": 1.0,
            "frequency": 150.0,
            "duration": 0.1,
            "decay": 0.02,
            "direction": [0.0, 0.0, 1.0],
        },
        {"op": "pose_body", "body": "box", "position": [1.0, 2.0, 3.0], "orientation": [0.0, 0.0, 0.0, 1.0]},
        {"op": "disarm"},
        {"op": "hand_over", "to": "her"},
        {"op": "stop"},
        {"op": "reset"},
        {"op": "describe"},
        {"op": "shutdown"},
        {"op": "release"},
    ]


def test_who_expects_a_hand_over_sends_samples_before_it_has_the_device(free):
    with Client(free.endpoints) as client:
        with pytest.raises(HapticdError, match="take the lease first"):
            client.send((0.0, 0.0, 0.0))
        client.expect_hand_over()
        free.silent = True
        assert client.send((0.0, 0.0, 0.0)) == 1
        assert client.receive(20) is None
        free.silent = False
        assert client.receive(5000).seq == 1
    assert [r["op"] for r in free.requests] == ["hello", "release"]


def test_leaving_gives_the_lease_back_once(triggered):
    with Client(triggered.endpoints) as client:
        client.lease()
    client.close()
    assert [r["op"] for r in triggered.requests] == ["hello", "lease", "release"]


def test_leaving_a_dead_daemon_does_not_wait_long(tmp_path):
    with StandIn(tmp_path) as stand_in:
        client = Client(stand_in.endpoints)
        client.lease()
    began = time.monotonic()
    client.close()
    assert time.monotonic() - began < 1.5


def test_a_second_lease_goes_on_counting(triggered):
    """seq increases within a session, whatever happens to the lease."""
    with Client(triggered.endpoints) as client:
        client.lease()
        client.exchange((0.0, 0.0, 0.0))
        client.lease()
        assert client.exchange((0.0, 0.0, 0.0)).seq == 2


def test_a_pose_that_cannot_be_sent_is_told(triggered):
    with Client(triggered.endpoints) as client:
        client.lease()
        with pytest.raises(ValueError, match="3 position"):
            client.exchange((0.0, 0.0))
        with pytest.raises(ValueError, match="encoding"):
            Client(triggered.endpoints, encoding="json")
        assert client.seq == 0, "what was not sent does not use up a number"
