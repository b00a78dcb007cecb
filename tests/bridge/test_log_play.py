"""Playback: every record once and in order, at the speed asked for, from where asked for."""

from __future__ import annotations

import io
import itertools
import threading
from pathlib import Path

import msgpack
import numpy as np
import pytest
import zmq
from log_samples import plausible_records, random_records, write_log

from bridge.log import play as playing
from bridge.log.play import Player, print_columns, publish
from bridge.log.reader import LogError
from bridge.publisher import state_message
from bridge.runtime import AddressRefused


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_log(tmp_path_factory.mktemp("play") / "a.mcap", plausible_records(600))


class Clock:
    """Stands for the time module: only sleeping takes time."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock by which the player plays."""
    clock = Clock()
    monkeypatch.setattr(playing, "time", clock)
    return clock


def play(player: Player) -> tuple[list[int], list[int], float]:
    ticks: list[int] = []
    frames: list[int] = []

    def show(records: np.ndarray) -> None:
        ticks.extend(records["tick"].tolist())
        frames.append(len(records))

    before = playing.time.monotonic()
    player.play(show)
    return ticks, frames, playing.time.monotonic() - before


def test_every_record_comes_once_in_real_time(path: Path):
    ticks, frames, took = play(Player(path))
    assert ticks == list(range(1, 601))
    assert took > 0.59  # a busy machine may be late, never early
    assert 2 <= len(frames) <= 60 * took + 2  # 60 a second, fewer when late
    assert Player(path).duration_s == pytest.approx(0.599, abs=0.01)


@pytest.mark.parametrize(("speed", "end_s", "seconds"), [(1.0, None, 0.6), (4.0, None, 0.15), (0.5, 0.2, 0.4)])
def test_speed(path: Path, clock: Clock, speed: float, end_s: float | None, seconds: float):
    ticks, frames, took = play(Player(path, speed=speed, end_s=end_s))
    assert ticks[0] == 1
    assert len(ticks) == pytest.approx(600 if end_s is None else 200, abs=1)
    assert took == pytest.approx(seconds, abs=2 / 60)
    assert len(frames) == pytest.approx(60 * seconds + 1, abs=1)


def test_start_and_end(path: Path):
    ticks, _, _ = play(Player(path, start_s=0.3, end_s=0.35, speed=10))
    assert ticks == list(range(ticks[0], ticks[-1] + 1))
    assert (ticks[0], ticks[-1]) == (pytest.approx(301, abs=1), pytest.approx(351, abs=1))


def test_seek_back_and_forth_while_playing(path: Path):
    player = Player(path, speed=50)
    ticks: list[int] = []
    seeks = [0.5, 0.1]

    def show(records: np.ndarray) -> None:
        ticks.extend(records["tick"].tolist())
        if seeks:
            player.seek(seeks.pop(0))

    player.play(show)
    jumps = [(a, b) for a, b in itertools.pairwise(ticks) if b != a + 1]
    assert [b for _, b in jumps] == [pytest.approx(501, abs=1), pytest.approx(101, abs=1)]
    assert ticks[-1] == 600


def test_pause_and_stop(path: Path, clock: Clock):
    player = Player(path, speed=0.0)
    ticks: list[int] = []
    player.play(lambda records: ticks.extend(records["tick"].tolist()), lambda: clock.now > 1000.1)
    assert ticks == [1]
    assert player.position_s == 0.0


def test_a_slow_callback_makes_fewer_frames_and_not_a_slower_playback(path: Path, clock: Clock):
    frames = []

    def slow(records: np.ndarray) -> None:
        frames.append(len(records))
        clock.sleep(0.1)

    Player(path).play(slow)
    assert clock.now - 1000.0 < 0.6 + 0.1 + 1 / 60  # every frame at its pace would take 3.6 s
    assert len(frames) in (7, 8)
    assert sum(frames) == 600


def test_columns_as_text(path: Path):
    text = io.StringIO()
    print_columns(Player(path, speed=100), ["output.wrench[2]", "output.device_position"], text.write)
    lines = text.getvalue().splitlines()
    names = ["tick", "output.wrench[2]", *(f"output.device_position[{i}]" for i in range(3))]
    assert lines[0].split("\t") == names
    table = np.array([[float(item) for item in line.split("\t")] for line in lines[1:]])
    records = plausible_records(600)
    assert (table[:, 0] == records["tick"]).all()
    assert (table[:, 1] == records["output"]["wrench"][:, 2]).all()
    assert (table[:, 2:] == records["output"]["device_position"]).all()


def test_wrong_arguments_are_refused(tmp_path: Path, path: Path):
    for wrong in ({"speed": -1.0}, {"speed": float("nan")}, {"rate_hz": 0.0}):
        with pytest.raises(ValueError):
            Player(path, **wrong)
    for column in ("output.force", "output.report", "output.wrench[9]"):
        with pytest.raises(LogError):
            print_columns(Player(path), [column], str)
    with pytest.raises(LogError, match="no ticks"):
        Player(write_log(tmp_path / "empty.mcap", random_records(0, 0)))


def test_a_log_can_be_followed_like_a_daemon(tmp_path: Path, path: Path):
    """The messages are those of the state socket, and only loopback addresses are bound."""
    context = zmq.Context()
    socket = context.socket(zmq.SUB)
    socket.subscribe(b"")
    endpoint = f"ipc://{tmp_path}/state"
    socket.connect(endpoint)
    ticks: list[int] = []
    ended = threading.Event()
    records = plausible_records(600)
    # So slow that most of it is still to come when the subscription arrives.
    player = threading.Thread(target=publish, args=(Player(path, speed=0.1), endpoint, ended.is_set))
    player.start()
    try:
        while len(ticks) < 15 and socket.poll(20_000):
            message = msgpack.unpackb(socket.recv())
            assert message == msgpack.unpackb(msgpack.packb(state_message(records[message["tick"] - 1])))
            ticks.append(message["tick"])
    finally:
        ended.set()
        player.join()
        context.destroy(linger=0)
    assert len(ticks) == 15
    assert ticks == sorted(set(ticks))
    with pytest.raises(AddressRefused):
        publish(Player(path), "tcp://0.0.0.0:5999")
