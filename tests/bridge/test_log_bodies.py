"""The states of bodies that move: written where they change, read back to the bit, executed again from anywhere."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import orjson
import pytest
from jsonschema import Draft202012Validator
from log_run import Run, log_of, run_moving
from log_samples import ListRing
from mcap.reader import make_reader
from moving_scene import MOVING

from bridge.log import recorder as recorder_module
from bridge.log.codec import BODIES_SCHEMA, ChannelError, decode_bodies, encode_bodies
from bridge.log.play import Player, print_columns
from bridge.log.reader import LogError, LogReader, read_log
from bridge.log.recorder import Recorder, ticks_per_state
from bridge.log.reexec import reexecute
from haptics.tables import BODY_SAMPLE, RECORD, record_type

TICKS = 700


@pytest.fixture(scope="module")
def run() -> Run:
    return run_moving(TICKS)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory, run: Run) -> Path:
    return log_of(tmp_path_factory.mktemp("bodies") / "run.mcap", run)


def random_states(ticks: int, bodies: int, seed: int) -> np.ndarray:
    """(ticks, bodies) BODY_SAMPLE of any bits, NaN and infinities among them; many the same as in the row before."""
    random = np.random.default_rng(seed)
    words = random.integers(0, 2**64, (ticks, bodies, BODY_SAMPLE.itemsize // 8), np.uint64)
    words[random.random(words.shape) < 0.05] = 0xFFF8000000000123
    words[random.random(words.shape) < 0.05] = 0x8000000000000000
    for row in range(1, ticks):
        same = random.random(bodies) < 0.6
        words[row, same] = words[row - 1, same]
    return words.view(np.float64).reshape(-1).view(BODY_SAMPLE).reshape(ticks, bodies)


def test_the_run_is_worth_executing_again(run: Run):
    report = run.records["output"]["report"]
    assert run.body_ids == list(MOVING)
    assert np.abs(run.records["output"]["wrench"][:, :3]).max() > 0.5
    assert report["body_contacts"].max() > 8 and report["contact_count"].max() > 2
    assert report["degraded"].any() and report["stopped"].any()
    assert len(np.unique(report["bodies_digest"])) > TICKS // 2


def test_any_states_come_back_to_the_bit_and_only_changes_are_written():
    states, ids = random_states(30, 7, 1), (2, 3, 5, 8, 13, 21, 34)
    ticks = np.arange(100, 130, dtype=np.uint64)
    messages = [orjson.loads(message) for message in encode_bodies(ticks, states, ids)]
    validator = Draft202012Validator(BODIES_SCHEMA)
    for message in messages:
        validator.validate(message)
    counts, rows = decode_bodies(messages)
    words = states.view(np.uint64).reshape(30, 7, -1)
    changed = np.concatenate(([7], (words[1:] != words[:-1]).any(axis=2).sum(axis=1)))
    assert counts.tolist() == changed.tolist() and changed[1:].max() < 7
    now = np.zeros(7, BODY_SAMPLE)
    end = 0
    for row, count in enumerate(counts.tolist()):
        for body in rows[end : end + count]:
            for name in BODY_SAMPLE.names:
                now[name][ids.index(body["body_id"])] = body[name]
        end += count
        assert now.tobytes() == states[row].tobytes()


@pytest.mark.parametrize(
    "message",
    [
        {"tick": 1},
        {"tick": 1, "bodies": 3},
        {"tick": 1, "bodies": [5]},
        {"tick": 1, "bodies": [{"body_id": 1}]},
        {"tick": 1, "bodies": [{"body_id": 1.5}]},
    ],
)
def test_a_message_of_another_form_is_refused(message: dict):
    with pytest.raises(ChannelError):
        decode_bodies([message])


def test_states_stand_behind_the_records_to_the_bit(path: Path, run: Run):
    reader = LogReader(path)
    assert reader.body_ids == MOVING and reader.bodies_every == 1
    pieces = list(reader.batches())
    assert all(piece.dtype is record_type(len(MOVING)) for piece in pieces)
    assert np.concatenate(pieces).tobytes() == run.records.tobytes()
    late = np.concatenate(list(reader.batches(from_ns=reader.span_ns[0] + 350_000_000)))
    assert late.tobytes() == run.records[-len(late) :].tobytes() and len(late) < 400


def test_a_log_read_whole_leaves_the_states_in_the_file(path: Path, run: Run):
    log = read_log(path)
    assert log.records.dtype == RECORD
    for name in RECORD.names:
        assert log.records[name].tobytes() == run.records[name].tobytes()
    assert (len(log.bodies), log.bodies.ids, log.bodies.every) == (TICKS, MOVING, 1)
    for rows in (slice(None), slice(100, 130), slice(650, 90, -7), slice(5, 5)):
        assert log.bodies[rows].tobytes() == run.records["bodies"][rows].tobytes()
    assert log.bodies[-1].tobytes() == run.records["bodies"][-1].tobytes()
    with pytest.raises(IndexError):
        log.bodies[TICKS]


def test_a_log_says_on_which_channels_bodies_are(path: Path, run: Run):
    seen: Counter[str] = Counter()
    every = poses = None
    validators = {}
    with open(path, "rb") as file:
        for schema, channel, message in make_reader(file).iter_messages():
            seen[channel.topic] += 1
            if channel.topic in ("/bodies", "/body_poses", "/tick"):
                validator = validators.setdefault(schema.id, Draft202012Validator(orjson.loads(schema.data)))
                validator.validate(orjson.loads(message.data))
            if channel.topic == "/bodies":
                every = channel.metadata
            if channel.topic == "/body_poses" and poses is None:
                poses = orjson.loads(message.data)
            if channel.topic == "/tick" and seen["/tick"] == 1:
                digest = orjson.loads(message.data)["report"]["bodies_digest"]
    assert seen["/bodies"] == TICKS and every == {"every": "1"}
    assert seen["/body_poses"] == -(-TICKS // 40)
    assert digest == str(int(run.records["output"]["report"]["bodies_digest"][0]))
    first = run.records["bodies"][0]
    assert [list(pose["position"].values()) for pose in poses["poses"]] == first["position"].tolist()
    assert [list(pose["orientation"].values()) for pose in poses["poses"]] == first["orientation"].tolist()


def test_no_tick_differs_from_the_start_or_later(tmp_path: Path, path: Path, run: Run):
    for log in (path, read_log(path)):
        result = reexecute(log)
        assert (result.ticks, result.ticks_differing, result.bytes_differing) == (TICKS, 0, 0)
        assert result.body_states == TICKS * len(MOVING)
    late = log_of(tmp_path / "late.mcap", run, [run.records[250:401], run.records[401:]], [200, 400])
    result = reexecute(late)
    assert (result.ticks, result.ticks_skipped, result.ticks_differing) == (TICKS - 400, 150, 0)
    items = [run.records[:210], 190, run.records[400:]]
    result = reexecute(log_of(tmp_path / "gap.mcap", run, items, [0, 400, 400]))
    assert (result.ticks, result.ticks_skipped, result.ticks_differing) == (TICKS - 190, 0, 0)


def test_one_wrong_bit_of_a_body_is_found_and_named(tmp_path: Path, run: Run):
    records = run.records.copy()
    records["bodies"].view(np.uint64).reshape(TICKS, len(MOVING), -1)[333, 2, 8] ^= 1
    result = reexecute(log_of(tmp_path / "a.mcap", Run(run.model, run.settings, records, run.snapshots)))
    assert (result.ticks, result.ticks_differing, result.bytes_differing) == (TICKS, 1, 1)
    assert result.first is not None
    assert (result.first.tick, result.first.field) == (334, f"bodies[{MOVING[2]}].linear[1]")
    assert f"tick 334, bodies[{MOVING[2]}].linear[1]" in str(result)
    digests = run.records.copy()
    digests["output"]["report"]["bodies_digest"][500] ^= np.uint64(1)
    result = reexecute(log_of(tmp_path / "b.mcap", Run(run.model, run.settings, digests, run.snapshots)))
    assert result.ticks_differing == 1 and result.first is not None
    assert result.first.field == "output.report.bodies_digest"


def test_many_bodies_are_written_in_some_ticks_only(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch):
    """Ticks between have the state before theirs; executing again compares what was written, and digests always."""
    assert [ticks_per_state(n) for n in (0, 1, 32, 33, 64, 100, 320)] == [1, 1, 1, 2, 2, 4, 10]
    monkeypatch.setattr(recorder_module, "BODY_STATES", 1)
    path = log_of(tmp_path / "a.mcap", run, chunk=30)
    log = read_log(path)
    assert log.bodies.every == 4
    ticks = np.arange(1, TICKS + 1)
    written = (ticks % 4 == 0) | (np.arange(TICKS) % 30 == 0)
    held = np.maximum.accumulate(np.where(written, np.arange(TICKS), 0))
    assert log.bodies[:].tobytes() == run.records["bodies"][held].tobytes()
    with open(path, "rb") as file:
        topics = [channel.topic for _, channel, _ in make_reader(file).iter_messages()]
    assert topics.count("/bodies") == np.count_nonzero(written)
    result = reexecute(path)
    assert result.same and result.body_states == TICKS // 4 * len(MOVING)
    records = run.records.copy()
    records["bodies"]["position"][399, 0, 0] += 1e-9  # tick 400
    result = reexecute(log_of(tmp_path / "b.mcap", Run(run.model, run.settings, records, run.snapshots)))
    assert result.ticks_differing == 1 and result.first is not None and result.first.tick == 400


def test_states_that_do_not_fit_the_log_are_refused(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch):
    other = Recorder(tmp_path / "other.mcap", run.attachments(), body_ids=[0, 1, 2, 3])
    other.attach(ListRing([run.records[:5]], (0, run.snapshots[0])))
    other.finish()
    with pytest.raises(LogError, match="states of other bodies than those that move"):
        reexecute(tmp_path / "other.mcap")
    for metadata in ({}, {"ids": "1", "every": "0"}, *({"ids": ids, "every": "1"} for ids in ("", "3,1", "-1,2", "x"))):
        monkeypatch.setattr(recorder_module.LogFile, "_bodies_metadata", lambda _, metadata=metadata: metadata)
        bad = Recorder(tmp_path / "bad.mcap", run.attachments(), body_ids=[1]).parts[0]
        with pytest.raises(LogError, match="does not tell which bodies move"):
            LogReader(bad)


def test_a_body_that_does_not_move_has_no_state(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(recorder_module.LogFile, "_bodies_metadata", lambda _: {"ids": "1,3,5", "every": "1"})
    path = log_of(tmp_path / "a.mcap", run, [run.records[:9]])
    with pytest.raises(LogError, match=r"/bodies in ticks 1 to 9 is not valid: a body_id is not of a body that moves"):
        list(LogReader(path).batches())


def test_columns_and_players_know_bodies(path: Path, run: Run):
    lines: list[str] = []
    print_columns(Player(path, speed=1e6), ["bodies[1].position", "output.report.energy"], lines.append)
    assert (
        lines[0] == "tick\tbodies[1].position[0]\tbodies[1].position[1]\tbodies[1].position[2]\toutput.report.energy\n"
    )
    assert len(lines) == TICKS + 1
    last = [float(value) for value in lines[-1].split("\t")]
    assert last[1:4] == run.records["bodies"]["position"][-1, 1].tolist()
