"""A log is read up to where it is whole, whatever happened to the rest; what is none is refused in one sentence."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import orjson
import pytest
from log_samples import attachments, plausible_records, random_records, write_log
from mcap.writer import Writer

from bridge.log.channels import CHANNELS, PROFILE
from bridge.log.reader import Log, LogError, LogReader, read_log
from haptics.tables import RECORD_VERSION

CHUNK = 5


@pytest.fixture(scope="module")
def records() -> np.ndarray:
    return random_records(23, 4, special=True)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, records: np.ndarray) -> bytes:
    return write_log(tmp_path_factory.mktemp("log") / "whole.mcap", records, chunk=CHUNK).read_bytes()


def boundaries(data: bytes) -> list[tuple[int, int]]:
    """(offset, kind) of every top-level record of an MCAP file, and the place after the last."""
    found, position = [], 8
    while position < len(data) - 8:
        kind, length = struct.unpack_from("<BQ", data, position)
        found.append((position, kind))
        position += 9 + length
    return [*found, (position, 0)]


def test_a_log_reads_back_to_the_bit(tmp_path: Path, records: np.ndarray):
    log = read_log(write_log(tmp_path / "a.mcap", records))
    assert log.records.tobytes() == records.tobytes()
    assert not log.truncated
    assert log.explanation == ""
    assert log.config == {"scene": {"name": "test"}}
    assert log.settings.shape == log.budget.shape == (1,)
    assert [(snapshot.tick, snapshot.data) for snapshot in log.snapshots] == [(0, b"s")]
    assert log.gaps() == []


def test_pieces_are_the_whole(tmp_path: Path, records: np.ndarray):
    reader = LogReader(write_log(tmp_path / "a.mcap", records, chunk=4))
    pieces = list(reader.batches())
    assert len(pieces) == 6
    assert np.concatenate(pieces).tobytes() == records.tobytes()


def test_cut_at_any_record_boundary_or_elsewhere(tmp_path: Path, whole: bytes, records: np.ndarray):
    marks = boundaries(whole)
    chunk_ends = [marks[i + 1][0] for i, (_, kind) in enumerate(marks) if kind == 0x06]
    assert len(chunk_ends) == 5
    cuts = {mark + shift for mark, _ in marks for shift in (-1, 0, 1)}
    cuts |= {mark + shift for mark, kind in marks if kind == 0x06 for shift in (8, 9, 10, 60)}  # around the framing
    cuts |= set(np.random.default_rng(0).integers(0, len(whole), 80).tolist())
    path = tmp_path / "cut.mcap"
    read = 0
    for cut in sorted(cut for cut in cuts if 0 <= cut < len(whole)):
        path.write_bytes(whole[:cut])
        expected = min(sum(end <= cut for end in chunk_ends) * CHUNK, len(records))
        try:
            log = read_log(path)
        except LogError as error:
            assert cut < chunk_ends[0]
            assert "empty" in str(error) or f"ends at byte {cut}" in str(error)
            continue
        read += 1
        assert log.truncated
        assert f"ends at byte {cut}" in log.explanation
        assert log.records.tobytes() == records[:expected].tobytes()
        told = f"read up to tick {expected}" if expected else "no tick could be read"
        assert told in log.explanation
    assert read > 100


def test_a_flipped_byte_never_gives_other_numbers(tmp_path: Path, whole: bytes, records: np.ndarray):
    """Damage is told, or hits what is not read; ticks before it stay the same and no tick is invented."""
    generator = np.random.default_rng(1)
    path = tmp_path / "damaged.mcap"
    told = 0
    for position in generator.integers(0, len(whole), 200).tolist():
        data = bytearray(whole)
        data[position] ^= int(generator.integers(1, 256))
        path.write_bytes(data)
        try:
            log = read_log(path)
        except LogError:
            told += 1
            continue
        told += log.truncated
        assert log.records.tobytes() == records[: len(log.records)].tobytes()
        assert log.truncated or len(log.records) == len(records)
    assert told > 120


def test_a_flipped_byte_in_the_frame_of_a_record_never_hides_ticks(tmp_path: Path, whole: bytes, records: np.ndarray):
    """The frames have no checksum of their own: a chunk whose kind or length is wrong must not be stepped over."""
    path = tmp_path / "damaged.mcap"
    chunks = [offset for offset, kind in boundaries(whole) if kind == 0x06]
    assert len(chunks) == 5
    flips = [(chunks[2], flip) for flip in range(1, 256)]
    flips += [(chunk, 0x06 ^ kind) for chunk in chunks for kind in range(16) if kind != 0x06]
    flips += [(chunks[1] + 1 + byte, 1 << bit) for byte in range(8) for bit in range(8)]
    for position, flip in flips:
        data = bytearray(whole)
        data[position] ^= flip
        path.write_bytes(data)
        log = read_log(path)
        assert log.truncated, (position, flip)
        assert log.records.tobytes() == records[: len(log.records)].tobytes()


def test_a_chunk_that_claims_the_next_one_too_is_damage(tmp_path: Path, whole: bytes, records: np.ndarray):
    """A length that ends at the start of a later record keeps step with the file, and is still wrong."""
    marks = boundaries(whole)
    chunks = [offset for offset, kind in marks if kind == 0x06]
    data = bytearray(whole)
    struct.pack_into("<Q", data, chunks[1] + 1, chunks[3] - chunks[1] - 9)
    path = tmp_path / "damaged.mcap"
    path.write_bytes(data)
    log = read_log(path)
    assert log.truncated
    assert log.records.tobytes() == records[:CHUNK].tobytes()


def test_what_is_not_a_log_is_refused_in_one_sentence(tmp_path: Path):
    path = tmp_path / "x.mcap"
    cases = {b"": "empty", b"\x89MC": "before its header", b"garbage" * 100: "not an MCAP file"}
    cases[bytes(np.random.default_rng(0).integers(0, 256, 5000, dtype=np.uint8))] = "not an MCAP file"
    for data, sentence in cases.items():
        path.write_bytes(data)
        with pytest.raises(LogError, match=sentence) as caught:
            read_log(path)
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)
    with pytest.raises(LogError, match="no such file"):
        read_log(tmp_path / "absent.mcap")
    with pytest.raises(LogError, match="directory"):
        read_log(tmp_path)


def other_log(path: Path, profile: str, metadata: dict[str, str] | None) -> Path:
    with open(path, "wb") as file:
        writer = Writer(file)
        writer.start(profile=profile)
        if metadata is not None:
            writer.add_metadata(PROFILE, metadata)
        writer.finish()
    return path


def test_other_mcap_files_and_other_versions_are_refused(tmp_path: Path):
    good = {"log_version": "1", "record_version": str(RECORD_VERSION)}
    for name, profile, metadata, sentence in (
        ("a", "ros2", None, "profile is 'ros2'"),
        ("b", PROFILE, None, "no metadata"),
        ("c", PROFILE, {**good, "log_version": "7"}, "log version 7; this program reads version 1"),
        ("d", PROFILE, {**good, "record_version": str(RECORD_VERSION + 1)}, f"record version {RECORD_VERSION + 1}"),
        ("e", PROFILE, {"log_version": "1"}, "record version None"),
    ):
        with pytest.raises(LogError, match=sentence):
            read_log(other_log(tmp_path / f"{name}.mcap", profile, metadata))
    assert len(read_log(other_log(tmp_path / "f.mcap", PROFILE, good)).records) == 0


def test_missing_and_wrong_attachments_are_told_when_asked_for(tmp_path: Path):
    good = {"log_version": "1", "record_version": str(RECORD_VERSION)}
    log = read_log(other_log(tmp_path / "none.mcap", PROFILE, good))
    for name in ("config", "card", "assembly", "settings", "budget", "model", "machine"):
        with pytest.raises(LogError, match="missing"):
            getattr(log, name)
    log = read_log(write_log(tmp_path / "a.mcap", plausible_records(3)))
    with pytest.raises(LogError, match="not a model"):
        _ = log.model


def test_a_message_of_another_form_is_told_with_its_channel(tmp_path: Path):
    path = tmp_path / "odd.mcap"
    records = plausible_records(1)
    with open(path, "wb") as file:
        writer = Writer(file)
        writer.start(profile=PROFILE)
        writer.add_metadata(PROFILE, {"log_version": "1", "record_version": str(RECORD_VERSION)})
        for channel in CHANNELS:
            number = writer.register_channel(channel.topic, "json", 0)
            message = orjson.loads(channel.encode(records)[0])
            if channel.topic == "/render":
                message["wrench"] = [1.0, 2.0]
            writer.add_message(number, 1, orjson.dumps(message), 1)
        writer.finish()
    with pytest.raises(LogError, match=r"/render.*wrench is not a list of 6 numbers"):
        read_log(path)


def test_events_and_times(tmp_path: Path):
    records = plausible_records(300)
    log = read_log(write_log(tmp_path / "a.mcap", records))
    changes = [event for event in log.events if event["source"] == "servo"]
    assert [event["to"] for event in changes] == [1, 2, 3]
    assert "log_started" in [event["code"] for event in log.events]
    assert log.times_s[0] == 0.0
    assert log.times_s[-1] == pytest.approx(0.299, abs=1e-4)
    assert attachments().keys() <= set(log.attachment_names())


def test_a_reader_starts_late_when_asked(tmp_path: Path):
    records = plausible_records(300)
    path = write_log(tmp_path / "a.mcap", records, chunk=50)
    for reader in (LogReader(path), Log(path)):
        from_ns = int(records["timing"]["started_ns"][180]) + reader.wall_offset_ns
        late = np.concatenate(list(reader.batches(from_ns=from_ns)))
        assert late["tick"][-1] == 300
        assert 150 < late["tick"][0] <= 181
