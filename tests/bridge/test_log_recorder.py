"""The recorder: what it writes is readable by anybody, and a disk that is full stops neither it nor anything else."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from jsonschema import Draft202012Validator
from log_samples import ListRing, attachments, plausible_records, random_records, write_log
from mcap.reader import make_reader

from bridge.log import recorder as recorder_module
from bridge.log.reader import read_log
from bridge.log.recorder import Recorder, collect_attachments


class Told:
    """Collects notices."""

    def __init__(self) -> None:
        self.notices: list[tuple[str, str, dict[str, Any]]] = []

    def __call__(self, code: str, text: str, data: dict[str, Any]) -> None:
        self.notices.append((code, text, data))

    @property
    def codes(self) -> list[str]:
        return [code for code, _, _ in self.notices]


class Disk:
    """Stands before ``os.write``: refuses with an error once so many bytes are written, until room is made."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, room: int, number: int = errno.ENOSPC):
        self.room = room
        self.number = number
        self._write = os.write
        monkeypatch.setattr(recorder_module.os, "write", self.write)

    def write(self, descriptor: int, data: Any) -> int:
        if self.room <= 0:
            raise OSError(self.number, os.strerror(self.number))
        done = self._write(descriptor, data[: self.room])  # a full disk takes a part first
        self.room -= done
        return done


def test_any_mcap_reader_understands_it_from_its_schemas_alone(tmp_path: Path):
    """mcap's own reader; every message obeys the schema that its channel carries."""
    records = np.concatenate([plausible_records(200), random_records(20, 0, special=True, first_tick=201)])
    records["timing"]["started_ns"][200:] = records["timing"]["started_ns"][199] + np.arange(1, 21) * 1_000_000
    path = write_log(tmp_path / "a.mcap", records)
    validators: dict[int, Draft202012Validator] = {}
    seen: dict[str, int] = {}
    with open(path, "rb") as file:
        reader = make_reader(file, validate_crcs=True)
        assert reader.get_header().profile == "hapticd"
        for schema, channel, message in reader.iter_messages():
            assert schema is not None and schema.encoding == "jsonschema" and channel.message_encoding == "json"
            if schema.id not in validators:
                validators[schema.id] = Draft202012Validator(orjson.loads(schema.data))
            validators[schema.id].validate(orjson.loads(message.data))
            seen[channel.topic] = seen.get(channel.topic, 0) + 1
        summary = reader.get_summary()
        names = [attachment.name for attachment in reader.iter_attachments()]
    for topic in ("/input", "/tick", "/contacts", "/render"):
        assert seen.pop(topic) == 220
    assert 197 <= seen.pop("/device_pose") < 220  # none before there is one, none that is not finite
    assert 200 <= seen.pop("/proxy_pose") <= 220
    assert seen.pop("/events") >= 4
    assert not seen
    assert summary is not None and summary.statistics is not None
    assert summary.statistics.channel_message_counts[1] == 220
    assert {schema.name for schema in summary.schemas.values()} >= {"foxglove.PoseInFrame", "hapticd.Tick"}
    assert set(attachments()) | {"snapshot-0.bin"} == set(names)


def test_time_of_a_message_is_the_start_of_its_tick_on_the_wall_clock(tmp_path: Path):
    records = plausible_records(10)
    path = write_log(tmp_path / "a.mcap", records)
    offset = read_log(path).wall_offset_ns
    assert offset == pytest.approx(recorder_module.wall_offset_ns(), abs=5e6)
    with open(path, "rb") as file:
        times = [message.log_time for _, _, message in make_reader(file).iter_messages(topics=["/tick"])]
    assert times == (records["timing"]["started_ns"] + offset).tolist()


def test_after_every_step_the_file_is_readable_up_to_the_newest_tick(tmp_path: Path):
    """What a kill -9 between two steps leaves."""
    records = plausible_records(120)
    recorder = Recorder(tmp_path / "a.mcap", attachments())
    ring = ListRing([])
    recorder.attach(ring)
    for start in range(0, 120, 40):
        ring.items.append(records[start : start + 40])
        recorder.step()
        log = read_log(tmp_path / "a.mcap")
        assert log.truncated
        assert log.records.tobytes() == records[: start + 40].tobytes()


def test_an_older_log_is_never_overwritten(tmp_path: Path):
    first = write_log(tmp_path / "a.mcap", plausible_records(3))
    before = first.read_bytes()
    write_log(tmp_path / "a.mcap", plausible_records(5))
    assert first.read_bytes() == before
    assert len(read_log(tmp_path / "a-2.mcap").records) == 5


def test_a_full_disk_keeps_what_was_written_tells_and_goes_on_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    records = plausible_records(400)
    told = Told()
    recorder = Recorder(tmp_path / "a.mcap", attachments(), told)
    ring = ListRing([], (0, b"s"))
    recorder.attach(ring)
    ring.items.append(records[:100])
    recorder.step()
    disk = Disk(monkeypatch, room=500)
    ring.items.append(records[100:200])
    recorder.step()
    assert told.codes == ["log_started", "disk_full"]
    assert "ends before tick 101" in told.notices[-1][1]
    ring.items.append(records[200:250])
    assert recorder.step() == 50  # it goes on reading, so that it is not the ring that loses
    monkeypatch.setattr(recorder, "_retry_at", 0.0)
    recorder.step()  # tries, and the disk is still full: no second event
    assert told.codes == ["log_started", "disk_full"]
    assert list(tmp_path.iterdir()) == [tmp_path / "a.mcap"]
    disk.room = 1 << 30
    monkeypatch.setattr(recorder, "_retry_at", 0.0)
    ring.kept = (250, b"later")
    ring.items.append(records[250:])
    recorder.step()
    assert told.codes == ["log_started", "disk_full", "log_resumed"]
    assert not recorder.finish()  # not everything is in the log, and the exit code will say so
    assert (recorder.logged, recorder.unlogged) == (250, 150)
    first, second = read_log(tmp_path / "a.mcap"), read_log(tmp_path / "a-2.mcap")
    assert first.truncated
    assert first.records.tobytes() == records[:100].tobytes()
    assert not second.truncated
    assert second.records.tobytes() == records[250:].tobytes()
    assert [snapshot.tick for snapshot in second.snapshots] == [250]
    events = [event for event in second.events if event["source"] == "recorder"]
    assert [event["code"] for event in events] == ["disk_full", "log_resumed"]
    assert [event["seq"] for event in events] == [2, 3]
    assert events[1]["unlogged"] == 150


def test_a_disk_that_fills_at_the_very_end_leaves_a_readable_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    records = plausible_records(50)
    told = Told()
    recorder = Recorder(tmp_path / "a.mcap", attachments(), told)
    recorder.attach(ListRing([records]))
    recorder.step()
    Disk(monkeypatch, room=100)
    assert not recorder.finish()
    assert told.codes[-1] == "log_failed"
    log = read_log(tmp_path / "a.mcap")
    assert log.truncated
    assert log.records.tobytes() == records.tobytes()


def test_any_other_write_error_is_told_with_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    told = Told()
    recorder = Recorder(tmp_path / "a.mcap", attachments(), told)
    recorder.attach(ListRing([plausible_records(10)]))
    Disk(monkeypatch, room=0, number=errno.EIO)
    recorder.step()
    assert told.codes[-1] == "log_failed"
    assert os.strerror(errno.EIO) in told.notices[-1][1]


def test_a_largest_file_size_leads_to_a_further_file_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    records = plausible_records(90)
    recorder = Recorder(tmp_path / "a.mcap", attachments())
    ring = ListRing([records[:30]])
    recorder.attach(ring)
    recorder.step()
    disk = Disk(monkeypatch, room=10, number=errno.EFBIG)
    ring.items.append(records[30:60])
    recorder.step()
    disk.room = 1 << 30
    ring.items.append(records[60:])
    recorder.step()
    recorder.finish()
    assert read_log(tmp_path / "a.mcap").records["tick"].tolist() == list(range(1, 31))
    assert read_log(tmp_path / "a-2.mcap").records["tick"].tolist() == list(range(61, 91))


def test_lost_records_are_told_and_a_snapshot_after_the_gap_is_taken(tmp_path: Path):
    records = plausible_records(100)
    told = Told()
    recorder = Recorder(tmp_path / "a.mcap", attachments(), told)
    ring = ListRing([records[:40]], (0, b"first"))
    recorder.attach(ring)
    recorder.step()
    ring.items += [20, records[60:80]]
    recorder.step()  # the ring's snapshot is older than the gap: not taken
    ring.kept = (80, b"after")
    ring.items.append(records[80:])
    recorder.step()
    assert not recorder.finish()
    assert told.codes == ["log_started", "records_lost"]
    assert told.notices[1][2] == {"lost": 20, "tick_after": 61, "lost_total": 20}
    log = read_log(tmp_path / "a.mcap")
    assert log.gaps() == [(40, 61)]
    assert [(snapshot.tick, snapshot.data) for snapshot in log.snapshots] == [(0, b"first"), (80, b"after")]
    assert "records_lost" in [event["code"] for event in log.events]


def test_a_recorder_that_starts_late_waits_for_a_snapshot_that_fits(tmp_path: Path):
    records = plausible_records(100)
    recorder = Recorder(tmp_path / "a.mcap", attachments())
    ring = ListRing([records[30:60]], (20, b"older than the first record"))
    recorder.attach(ring)
    recorder.step()
    assert read_log(tmp_path / "a.mcap").snapshots == []
    ring.kept = (60, b"good")
    ring.items.append(records[60:])
    recorder.step()
    assert [snapshot.tick for snapshot in read_log(tmp_path / "a.mcap").snapshots] == [60]


def test_a_place_that_cannot_be_written_is_an_error_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(OSError):
        Recorder(tmp_path / "absent" / "a.mcap", attachments())
    Disk(monkeypatch, room=100)
    with pytest.raises(OSError):
        Recorder(tmp_path / "a.mcap", attachments())
    assert list(tmp_path.iterdir()) == []  # no empty file stays behind
    with pytest.raises(FileNotFoundError, match=r"config\.json"):
        collect_attachments(tmp_path)


def test_a_recorder_that_reads_late_keeps_the_snapshot_from_which_all_can_be_executed(tmp_path: Path):
    """The servo ticks as soon as the recorder is attached, and has saved its state again before the first read."""
    recorder = Recorder(tmp_path / "a.mcap", attachments())
    ring = ListRing([], (0, b"start"))
    recorder.attach(ring)
    ring.kept = (60, b"later")
    ring.items.append(plausible_records(80))
    recorder.step()
    recorder.finish()
    log = read_log(tmp_path / "a.mcap")
    assert [(snapshot.tick, snapshot.data) for snapshot in log.snapshots] == [(0, b"start")]
