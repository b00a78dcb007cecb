"""The shared ring: what a reader gets is whole, in order, and complete or known to be incomplete."""

import errno
import multiprocessing
import os
import time

import numpy as np
import pytest

from bridge import ring as ring_module
from bridge.ring import (
    DEFAULT_SLOTS,
    ENDED,
    HEADER,
    LEAST_SLOTS,
    MAX_READERS,
    READER,
    READERS_AT,
    SLOTS_BYTES,
    TICKING,
    NoSpace,
    RingError,
    RingReader,
    RingWriter,
    create_shared_file,
    remove_shared_file,
    slots_for,
)
from haptics.tables import RECORD, record_type


def numbered(tick: int) -> np.ndarray:
    """A record whose every byte follows from its tick."""
    record = np.zeros(1, RECORD)
    record.view(np.uint8)[:] = tick % 251
    record["tick"] = tick
    return record


def test_header_and_reader_rows_fit_in_their_page():
    assert HEADER.itemsize <= READERS_AT
    assert READERS_AT + MAX_READERS * READER.itemsize <= ring_module.HEADER_BYTES


def test_records_come_in_order_and_once(tmp_path):
    writer = RingWriter(tmp_path / "ring", 16)
    reader = RingReader(tmp_path / "ring")
    assert len(reader.read()[0]) == 0
    assert reader.newest() is None
    for tick in range(1, 11):
        writer.write(numbered(tick))
    first, lost = reader.read(4)
    rest, lost_later = reader.read()
    assert (lost, lost_later) == (0, 0)
    assert [*first["tick"], *rest["tick"]] == list(range(1, 11))
    assert rest[-1].tobytes() == numbered(10)[0].tobytes()
    assert reader.newest()["tick"] == 10
    assert len(reader.read()[0]) == 0


@pytest.mark.parametrize("written", [17, 31, 32, 100])
def test_overrun_reader_is_told_exactly_how_many_are_lost(tmp_path, written):
    writer = RingWriter(tmp_path / "ring", 16)
    reader = RingReader(tmp_path / "ring")
    for tick in range(1, written + 1):
        writer.write(numbered(tick))
    records, lost = reader.read(1000)
    assert lost == written - 16
    assert records["tick"].tolist() == list(range(written - 15, written + 1))
    assert reader.lost == lost


def test_record_under_way_is_not_handed_out(tmp_path):
    """A slot whose sequence word is odd counts as lost, however whole it looks."""
    writer = RingWriter(tmp_path / "ring", 8)
    reader = RingReader(tmp_path / "ring")
    for tick in range(1, 9):
        writer.write(numbered(tick))
    writer._sequences[0] = 2 * 8 + 1  # the writer has begun record 8, over record 0
    records, lost = reader.read()
    assert lost == 1
    assert records["tick"].tolist() == list(range(2, 9))


def test_two_readers_do_not_disturb_each_other_and_are_seen(tmp_path):
    writer = RingWriter(tmp_path / "ring", 8)
    one, other = RingReader(tmp_path / "ring"), RingReader(tmp_path / "ring")
    for tick in range(1, 6):
        writer.write(numbered(tick))
    one.read(2)
    assert other.read()[0]["tick"].tolist() == [1, 2, 3, 4, 5]
    assert sorted(row["position"] for row in writer.readers()) == [2, 5]
    assert all(row["pid"] == os.getpid() for row in writer.readers())
    one.close()
    assert [row["position"] for row in writer.readers()] == [5]


def test_more_readers_than_rows_still_read(tmp_path):
    writer = RingWriter(tmp_path / "ring", 8)
    readers = [RingReader(tmp_path / "ring") for _ in range(MAX_READERS + 2)]
    writer.write(numbered(1))
    assert all(reader.read()[0]["tick"].tolist() == [1] for reader in readers)
    assert len(writer.readers()) == MAX_READERS


def test_seek_goes_to_the_record_of_a_tick(tmp_path):
    writer = RingWriter(tmp_path / "ring", 16)
    for tick in range(101, 121):
        writer.write(numbered(tick))
    reader = RingReader(tmp_path / "ring")
    reader.seek(115)
    assert reader.read()[0]["tick"].tolist() == list(range(115, 121))
    reader.seek(1)
    assert reader.read()[0]["tick"].tolist() == list(range(105, 121))
    reader.seek_newest()
    assert len(reader.read()[0]) == 0


def test_reader_cannot_write_records(tmp_path):
    RingWriter(tmp_path / "ring", 8)
    reader = RingReader(tmp_path / "ring")
    with pytest.raises(ValueError, match="read-only"):
        reader._records["tick"] = 1


def test_a_second_writer_goes_on_where_the_first_stopped(tmp_path):
    RingWriter(tmp_path / "ring", 8).write(numbered(1))
    writer = RingWriter.attach(tmp_path / "ring")
    writer.write(numbered(2))
    assert RingReader(tmp_path / "ring").read()[0]["tick"].tolist() == [1, 2]
    assert writer.last()["tick"] == 2


@pytest.mark.parametrize("bodies", [1, 20])
def test_states_of_bodies_stand_behind_each_record(tmp_path, bodies):
    """What knows nothing of them finds every field of RECORD where it is without them."""
    kind = record_type(bodies)
    assert kind is record_type(bodies) and record_type(0) is RECORD
    assert [kind.fields[name] for name in RECORD.names] == [RECORD.fields[name] for name in RECORD.names]
    writer = RingWriter(tmp_path / "ring", 8, bodies=bodies)
    reader = RingReader(tmp_path / "ring")
    assert writer.record_type == reader.record_type == RingWriter.attach(tmp_path / "ring").record_type == kind
    record = np.zeros(1, kind)
    random = np.random.default_rng(1)
    written = []
    for tick in range(1, 12):
        record.view(np.uint8)[:] = random.integers(0, 256, kind.itemsize)
        record["tick"] = tick
        writer.write(record)
        written.append(record.copy())
    assert writer.last().tobytes() == reader.newest().tobytes() == written[-1].tobytes()
    records, lost = reader.read()
    assert lost + len(records) == 11 and records.dtype == kind
    assert records.tobytes() == np.concatenate(written[lost:]).tobytes()
    with pytest.raises(ValueError, match=f"one record of this ring \\({kind.itemsize} bytes\\)"):
        writer.write(numbered(1))


def test_many_bodies_get_fewer_slots_of_the_same_memory():
    assert slots_for(0) == slots_for(100) == DEFAULT_SLOTS
    for bodies in (300, 1000, 2000):
        assert LEAST_SLOTS <= slots_for(bodies) < DEFAULT_SLOTS
        assert slots_for(bodies) * record_type(bodies).itemsize <= SLOTS_BYTES
    assert slots_for(10**5) == LEAST_SLOTS


def test_snapshot_is_the_newest_one_whole(tmp_path):
    writer = RingWriter(tmp_path / "ring", 8, snapshot_capacity=1000)
    reader = RingReader(tmp_path / "ring")
    assert reader.snapshot() is None
    for tick in (0, 1000, 2000):
        writer.put_snapshot(tick, bytes([tick // 1000]) * (tick // 10 + 1))
        found, data = reader.snapshot()
        assert found == tick
        assert data.tobytes() == bytes([tick // 1000]) * (tick // 10 + 1)
    with pytest.raises(ValueError, match="room for 1000"):
        writer.put_snapshot(1, bytes(1001))


def test_other_files_are_refused_with_a_sentence(tmp_path):
    (tmp_path / "ring").write_bytes(bytes(8192))
    with pytest.raises(RingError, match="is not a ring"):
        RingReader(tmp_path / "ring")
    with pytest.raises(RingError, match="cannot open"):
        RingReader(tmp_path / "absent")
    writer = RingWriter(tmp_path / "other", 8)
    writer._bytes[HEADER.fields["itemsize"][1]] ^= 1
    with pytest.raises(RingError, match="holds records of version"):
        RingReader(tmp_path / "other")


def test_no_room_is_said_at_creation(tmp_path, monkeypatch):
    """Disk full is an error of the start, never a SIGBUS in a tick."""

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(NoSpace, match=r"no room for \d+\.\d MB of shared memory .*No space left"):
        RingWriter(tmp_path / "ring", 64, memory_name=f"hapticd-test-{os.getpid()}")
    assert not os.path.lexists(tmp_path / "ring")


@pytest.mark.skipif(ring_module.shared_memory_directory() is None, reason="no /dev/shm here")
def test_shared_file_lives_in_memory_and_leaves_nothing(tmp_path):
    name = f"hapticd-test-{os.getpid()}"
    create_shared_file(tmp_path / "file", 4096, name)
    target = ring_module.shared_memory_directory() / name
    assert target.stat().st_size == 4096
    assert target.stat().st_mode & 0o777 == 0o600
    assert target.stat().st_blocks * 512 >= 4096, "the room is set aside, not promised"
    create_shared_file(tmp_path / "file", 8192, name)
    assert target.stat().st_size == 8192
    remove_shared_file(tmp_path / "file")
    assert not target.exists()
    assert not os.path.lexists(tmp_path / "file")


def test_writer_alive_follows_the_writer(tmp_path):
    writer = RingWriter(tmp_path / "ring", 8)
    reader = RingReader(tmp_path / "ring")
    assert not reader.writer_alive()
    writer.claim()
    writer.header.ready = TICKING
    assert reader.writer_alive()
    writer.header.ready = ENDED
    assert not reader.writer_alive()


def _write_without_pause(path: str, seconds: float) -> None:
    writer = RingWriter.attach(path)
    words = np.zeros(1, RECORD)
    flat = words.view(np.uint64)
    until = time.monotonic() + seconds
    tick = 0
    while time.monotonic() < until:
        for _ in range(50):
            tick += 1
            flat[:] = tick
            writer.write(words)
            if tick % 7 == 0:
                writer.put_snapshot(tick, flat)
    writer.header.ready = ENDED


@pytest.mark.slow
def test_no_torn_reads_under_a_writer_that_laps_the_reader(tmp_path):
    """Every word of a record carries its tick: a torn copy would hold two different ones."""
    path = tmp_path / "ring"
    owner = RingWriter(path, 8)
    process = multiprocessing.get_context("spawn").Process(target=_write_without_pause, args=(str(path), 2.0))
    process.start()
    reader = RingReader(path)
    read = lost = snapshots = 0
    last = 0
    while process.is_alive():
        records, gone = reader.read(8)
        lost += gone
        if len(records):
            words = records.view(np.uint64).reshape(len(records), -1)
            ticks = words[:, 0].astype(np.int64)
            assert (words == words[:, :1]).all(), "a torn record was handed out"
            assert ticks.tolist() == list(range(last + gone + 1, last + gone + 1 + len(records)))
            read += len(records)
        last += gone + len(records)
        found = reader.snapshot()
        if found is not None:
            assert (found[1].view(np.uint64) == found[0]).all(), "a torn snapshot was handed out"
            snapshots += 1
    process.join()
    assert process.exitcode == 0
    records, gone = reader.read(8)
    assert last + gone + len(records) == owner.header.head, "read and lost add up to what was written"
    assert read > 100
    assert lost > 0, "the writer never lapped the reader: nothing was tested"
    assert snapshots > 10
