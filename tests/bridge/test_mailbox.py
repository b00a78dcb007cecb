"""The command mailbox: every command arrives once, whole, in order; a stop overtakes."""

import multiprocessing
import os
import time

import numpy as np
import pytest

from bridge.mailbox import SLOTS, CommandReader, CommandWriter, MailboxFull, create_mailbox, find_orphans
from bridge.ring import RingError, remove_shared_file, shared_memory_directory
from haptics.states import CommandKind
from haptics.tables import COMMAND, RECORD


@pytest.fixture
def path(tmp_path):
    create_mailbox(tmp_path / "mailbox")
    return tmp_path / "mailbox"


def test_commands_arrive_in_order_with_ids_from_one(path):
    writer, reader = CommandWriter(path), CommandReader(path)
    into = np.zeros(1, COMMAND)
    assert not reader.take(into)
    ids = [writer.post(CommandKind.SET_GAINS, 7, [number, 0.5]) for number in range(5)]
    assert ids == [1, 2, 3, 4, 5]
    assert writer.waiting() == 5
    for number in range(5):
        assert reader.take(into)
        assert into["id"][0] == number + 1
        assert (into["session"][0], into["kind"][0]) == (7, CommandKind.SET_GAINS)
        assert into["values"][0].tolist() == [number, 0.5, 0, 0, 0, 0, 0, 0]
    assert not reader.take(into)


def test_take_fills_the_command_inside_a_record(path):
    writer, reader = CommandWriter(path), CommandReader(path)
    writer.post(CommandKind.ARM, 3, [1.0])
    record = np.zeros(1, RECORD)
    assert reader.take(record["input"]["command"])
    assert record["input"]["command"]["kind"][0] == CommandKind.ARM
    assert record["output"].tobytes() == np.zeros(1, RECORD)["output"].tobytes()


@pytest.mark.parametrize("kind", [CommandKind.STOP, CommandKind.SHUTDOWN])
def test_urgent_commands_overtake_and_find_room(path, kind):
    writer, reader = CommandWriter(path), CommandReader(path)
    for _ in range(SLOTS):
        writer.post(CommandKind.RENEW, 1)
    with pytest.raises(MailboxFull):
        writer.post(CommandKind.RENEW, 1)
    number = writer.post(kind)
    into = np.zeros(1, COMMAND)
    assert reader.take(into)
    assert (into["id"][0], into["kind"][0]) == (number, kind)
    assert reader.take(into)
    assert into["id"][0] == 1


def test_a_new_writer_goes_on_counting(path):
    CommandWriter(path).post(CommandKind.RENEW, 1)
    assert CommandWriter(path).post(CommandKind.RENEW, 1) == 2


def test_too_many_values_and_foreign_files_are_refused(path, tmp_path):
    with pytest.raises(ValueError, match="at most 8 values"):
        CommandWriter(path).post(CommandKind.POSE_BODY, 1, range(9))
    (tmp_path / "other").write_bytes(bytes(4096))
    with pytest.raises(RingError, match="is not a mailbox"):
        CommandReader(tmp_path / "other")


@pytest.mark.skipif(shared_memory_directory() is None, reason="no /dev/shm here")
def test_files_of_killed_daemons_are_found_and_those_of_living_ones_are_not(tmp_path):
    stem = f"hapticd-{os.getuid()}-test{os.getpid()}"
    alive, dead, young = (f"{stem}{number}-mailbox" for number in range(3))
    for name in (alive, dead, young):
        create_mailbox(tmp_path / name, name)
    memory = shared_memory_directory()
    writer = CommandWriter(tmp_path / alive)
    for name in (alive, dead):
        os.utime(memory / name, (0, 0))
    try:
        mine = [path.name for path in find_orphans() if path.name.startswith(stem)]
        assert mine == [dead]
        writer.close()
        mine = [path.name for path in find_orphans() if path.name.startswith(stem)]
        assert mine == [alive, dead]
    finally:
        for name in (alive, dead, young):
            remove_shared_file(tmp_path / name)


def _post_all(path: str, count: int) -> None:
    writer = CommandWriter(path)
    for number in range(count):
        while True:
            try:
                writer.post(CommandKind.SET_SCALE, number, [number] * 8)
                break
            except MailboxFull:
                time.sleep(0)


@pytest.mark.slow
def test_nothing_is_lost_or_torn_between_two_processes(path):
    count = 20_000
    process = multiprocessing.get_context("spawn").Process(target=_post_all, args=(str(path), count))
    process.start()
    reader = CommandReader(path)
    into = np.zeros(1, COMMAND)
    expected = 0
    deadline = time.monotonic() + 60
    while expected < count and time.monotonic() < deadline:
        if reader.take(into):
            assert into["id"][0] == expected + 1
            assert into["session"][0] == expected
            assert (into["values"][0] == expected).all()
            expected += 1
        else:
            time.sleep(0)
    process.join()
    assert expected == count
