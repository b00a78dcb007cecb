"""What comes from files: keys, configurations, cards, scripts, recordings, models, logs and their attachments."""

import io
import json
import random
import struct
import zipfile
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import lz4.frame
import numpy as np
import zstandard

from bridge import keys
from bridge.config import Config, ConfigError, load_config, parse_config
from bridge.log.channels import CHANNELS, LOG_VERSION, PROFILE
from bridge.log.reader import Log, LogError, read_log
from bridge.model_file import ModelFileError, load_model, save_model
from bridge.recordings import Recording, RecordingError, read_recording
from bridge.scripts import read_script
from haptics.cards import CARD_DIRECTORY, CardError, load_card
from haptics.snapshot import HEADER, pack_snapshot, unpack_snapshot
from haptics.tables import RECORD, RECORD_VERSION
from tools.fuzz.mutations import Made, noise, one_of, scatter, shorten, spoil_text
from tools.fuzz.target import Target
from tools.fuzz.wire_targets import scratch

CONFIGS = Path(__file__).resolve().parents[2] / "configs"

HARD_WORDS = (
    *(b"nan", b"inf", b"-inf", b"1e999", b"-1", b"0", b"9" * 400, b"9" * 5000, b"1e-400", b"true", b'""', b'"a"'),
    *(b"[]", b"{}", b"[" * 50, b"[" * 2000, b"{a=" * 700, b"[[]]", b"1979-05-27T07:32:00Z", b"\xff\xfe", b"\0"),
    *(
        "\u2028".encode(),
        b"'''",
        b'"',
        b"0x" + b"f" * 40,
        b"[nan, nan, nan]",
        b"[1e999, 0, 0]",
        b"[" + b"9" * 400 + b"]",
    ),
)
"""What readers of texts stumble over."""


def from_file(name: str, read: Callable[[Path], Any]) -> Callable[[bytes], Any]:
    """A reader of files as a reader of bytes."""

    def reader(message: bytes) -> Any:
        path = scratch(name)
        path.write_bytes(message)
        return read(path)

    return reader


def _texts(*files: Path) -> Callable[[random.Random], Made]:
    """Spoilt texts of some files."""
    texts = [file.read_bytes() for file in files]
    return one_of(
        lambda rng: (spoil_text(rng, rng.choice(texts), HARD_WORDS), False),
        lambda rng: (spoil_text(rng, rng.choice(texts), HARD_WORDS), False),
        lambda rng: scatter(rng, texts),
        noise,
    )


def _finite(value: Any) -> bool:
    """Are all numbers in a structure of plain values finite?"""
    if isinstance(value, dict):
        return all(map(_finite, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_finite, value))
    return not isinstance(value, float) or bool(np.isfinite(value))


# -- keys --------------------------------------------------------------------------------------------------------------

_PAIR = keys.KeyPair(b"Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID", b"D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs")
_CERTIFICATE = f'# remark\nmetadata\ncurve\n    public-key = "{_PAIR.public.decode()}"\n'.encode()
_SECRET = _CERTIFICATE + f'    secret-key = "{_PAIR.secret.decode()}"\n'.encode()
_ALLOWED = f"# remark\nalice {_PAIR.public.decode()}\nbob {_PAIR.secret.decode()}\n".encode()


def _read_keys(message: bytes) -> list[bytes]:
    text = keys.parse_text(message, "file")
    if "=" in text and "-key" in text:
        return list(keys.parse_certificate(text, "file").values())
    return list(keys.parse_allowed(text, "file").values())


def _unsound_keys(found: list[bytes]) -> str:
    return "" if all(len(keys.check_key(key)) == keys.KEY_CHARACTERS for key in found) else "no key"


# -- recordings --------------------------------------------------------------------------------------------------------


def _csv() -> bytes:
    rows = [f"{i * 0.01:.3f},{0.1 * i:.4f},0.0,{0.2 - i * 0.001:.4f},0,0,0.6,0.8" for i in range(12)]
    return ("# a motion\ntime_s,x,y,z,qx,qy,qz,qw\n" + "\n".join(rows) + "\n").encode()


def _csv_with_cells(rng: random.Random) -> Made:
    lines = _csv().split(b"\n")
    at = rng.randrange(1, len(lines) - 1)
    cells = lines[at].split(b",")
    cells[rng.randrange(len(cells))] = rng.choice((*HARD_WORDS, b"a" * 200_000, b'"', b"1_0", "\u0663".encode()))
    lines[at] = b",".join(cells)
    if rng.random() < 0.3:
        lines[1] = lines[1].replace(b"time_s", b"time_ns")
    return b"\n".join(lines), False


def _unsound_recording(recording: Recording) -> str:
    if len(recording.times_ns) < 2 or (np.diff(recording.times_ns) <= 0).any():
        return "times do not rise"
    if not (np.isfinite(recording.positions).all() and np.isfinite(recording.orientations).all()):
        return "not finite"
    norms = np.linalg.norm(recording.orientations, axis=1)
    return "" if np.abs(norms - 1.0).max() < 1e-9 else "no unit quaternions"


def _mcap(messages: list[bytes], schema: str, topic: str, **options: Any) -> bytes:
    from mcap.writer import Writer

    file = io.BytesIO()
    writer = Writer(file, **options)
    writer.start()
    channel = writer.register_channel(topic, "json", writer.register_schema(schema, "jsonschema", b"{}"))
    for number, message in enumerate(messages):
        writer.add_message(channel, number * 1000, message, number * 1000)
    writer.finish()
    return file.getvalue()


def _pose(number: int) -> dict[str, Any]:
    return {
        "timestamp": {"sec": 5, "nsec": number * 1000},
        "pose": {
            "position": {"x": 0.1, "y": 0.0, "z": 0.001 * number},
            "orientation": {"x": 0, "y": 0, "z": 0, "w": 1},
        },
    }


ODD_VALUES = (None, True, "a", [], {}, 1e308, -1, 1 << 70, 10**400, [None] * 3, {"x": 1})


def spoil_value(rng: random.Random, value: Any) -> Any:
    """One entry somewhere in a structure of plain values replaced by an odd one, or left out."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        if rng.random() < 0.1:
            return {name: item for name, item in value.items() if name != key}
        return {**value, key: spoil_value(rng, value[key])}
    if isinstance(value, list) and value and rng.random() < 0.9:
        at = rng.randrange(len(value))
        return [*value[:at], spoil_value(rng, value[at]), *value[at + 1 :]]
    return rng.choice(ODD_VALUES)


def spoil_json(rng: random.Random, value: Any) -> bytes:
    """JSON of a structure with an odd value in it, or with some bytes changed."""
    way = rng.randrange(4)
    if way == 0:
        return scatter(rng, (json.dumps(value).encode(),))[0]
    if way == 1:
        return rng.choice((b"[" * 3000, b'{"a":' * 3000, b"NaN", b"", b"\xff", b"1" * 5000, b"null"))
    return json.dumps(spoil_value(rng, value)).encode()


def _chunk(rng: random.Random, content: bytes) -> bytes:
    """A chunk record that claims, or unpacks to, far more than its content."""
    large = content + bytes(300_000_000 if rng.random() < 0.02 else 1 << 16)
    name, packed = rng.choice(
        (
            (b"zstd", lambda: zstandard.compress(large)),
            (b"lz4", lambda: lz4.frame.compress(large)),
            (b"", lambda: content),
            (b"zip", lambda: content),
        )
    )
    data = packed()
    claimed = rng.choice((len(large), len(content), 1 << 27, 1 << 40, (1 << 64) - 1, 0, 7))
    head = struct.pack("<QQQII", 0, 1, claimed, 0, len(name)) + name + struct.pack("<Q", len(data))
    return struct.pack("<BQ", 6, len(head) + len(data)) + head + data


def _before_data_end(whole: bytes, chunk: bytes) -> bytes:
    at = whole.rindex(b"\x0f\x04\0\0\0\0\0\0\0")
    return whole[:at] + chunk + whole[at:]


def _mcap_with_a_bomb(rng: random.Random) -> Made:
    return _before_data_end(_good_mcap(), _chunk(rng, b"\x04\x10")), False


def _mcap_of_odd_poses(rng: random.Random) -> Made:
    messages = [json.dumps(_pose(number)).encode() for number in range(6)]
    messages[rng.randrange(6)] = spoil_json(rng, _pose(3))
    return _mcap(messages, "foxglove.PoseInFrame", "/pose"), False


@cache
def _good_mcap() -> bytes:
    return _mcap([json.dumps(_pose(n)).encode() for n in range(40)], "foxglove.PoseInFrame", "/pose", chunk_size=700)


@cache
def _good_bag() -> bytes:
    from rosbags.rosbag1 import Writer
    from rosbags.typesys import Stores, get_typestore

    path = scratch("good.bag")
    store = get_typestore(Stores.ROS1_NOETIC)
    types = store.types
    kind = "geometry_msgs/msg/Pose"
    with Writer(path) as writer:
        connection = writer.add_connection("/pose", kind, typestore=store)
        for number in range(20):
            point = types["geometry_msgs/msg/Point"](0.1, 0.0, 0.001 * number)
            pose = types[kind](point, types["geometry_msgs/msg/Quaternion"](0.0, 0.0, 0.6, 0.8))
            writer.write(connection, 1000 * (number + 1), store.serialize_ros1(pose, kind))
    return path.read_bytes()


# -- models, snapshots, logs -------------------------------------------------------------------------------------------

SCENE = """
[[scene.body]]
name = "block"
primitive = "box"
size = [0.1, 0.1, 0.1]
pose = { position = [0.0, 0.0, -0.06] }
[tool]
primitive = "box"
size = [0.02, 0.02, 0.02]
start = [0.0, 0.0, 0.1]
"""


@cache
def _assembly() -> Any:
    from bridge.assemble import assemble

    return assemble(parse_config(SCENE), CONFIGS)


@cache
def _model_bytes() -> bytes:
    file = io.BytesIO()
    save_model(file, _assembly().model)
    return file.getvalue()


def _model_that_lies(rng: random.Random) -> Made:
    """An archive that holds together, around a table whose header was changed or that is packed as a bomb would be."""
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(_model_bytes())) as good, zipfile.ZipFile(target, "w") as spoilt:
        names = good.namelist()
        chosen = rng.choice(names)
        way = rng.randrange(4)
        for name in names:
            data = good.read(name)
            if name == chosen and way == 0:
                continue
            if name == chosen and way == 1:
                shape = rng.choice(
                    (b"(999999999999,)", b"(-1,)", b"(1, 2, 3)", b"(3,)", b"(10**9,)", b"(True,)", b"()")
                )
                start = data.index(b"'shape': ")
                end = data.index(b")", start) + 1
                data = data[:start] + (b"'shape': " + shape).ljust(end - start) + data[end:]
            elif name == chosen and way == 2:
                data = scatter(rng, (data,))[0]
            elif name == chosen:
                spoilt.writestr(name, data + bytes(1 << 22), zipfile.ZIP_DEFLATED)
                continue
            spoilt.writestr(name, data)
    return target.getvalue(), way == 0


@cache
def _snapshot() -> bytes:
    from haptics.touch import make_touch
    from rtcore.state import make_state

    found = _assembly()
    state = make_state(found.model, found.start, found.start_orientation)
    return pack_snapshot(state, make_touch(found.settings)).tobytes()


def _snapshot_that_holds_together(rng: random.Random) -> Made:
    """A snapshot with changed content under a checksum that is right."""
    message = bytearray(_snapshot())
    for _ in range(rng.choice((1, 2, 5))):
        at = rng.randrange(HEADER.itemsize, len(message) - 8)
        message[at : at + 4] = rng.choice((b"\xff\xff\xff\xff", b"\0\0\0\0", b"\xff\xff\xff\x7f", rng.randbytes(4)))
    if rng.random() < 0.2:
        message = message[: rng.randrange(HEADER.itemsize, len(message))]
    offsets = {name: HEADER.fields[name][1] for name in ("size", "checksum")}  # type: ignore[index]
    struct.pack_into("<I", message, offsets["size"], len(message))
    struct.pack_into("<I", message, offsets["checksum"], zlib.crc32(message[HEADER.itemsize :]))
    return bytes(message), False


@cache
def _records() -> np.ndarray:
    records = np.zeros(24, RECORD)
    records["tick"] = np.arange(1, 25)
    records["timing"]["started_ns"] = np.arange(24) * 1_000_000 + 5_000_000_000
    records["input"]["sample"]["orientation"][:, 3] = 1.0
    records["output"]["wrench"][:, 2] = np.arange(24) * 0.125
    records["output"]["report"]["path_count"] = 1
    return records


@cache
def _good_log() -> bytes:
    from bridge.log.recorder import Recorder

    class Ring:
        """Gives out the records in three parts."""

        def __init__(self) -> None:
            self.parts = [_records()[i : i + 8] for i in (0, 8, 16)]

        def read(self, limit: int) -> tuple[np.ndarray, int]:
            return (self.parts.pop(0) if self.parts else np.zeros(0, RECORD)), 0

        def snapshot(self) -> tuple[int, bytes] | None:
            return 1, _snapshot()

    path = scratch("good.mcap")
    attached = {"config.json": b'{"scene": {"name": "a"}}', "model.npz": _model_bytes()}
    settings = io.BytesIO()
    np.save(settings, _assembly().settings.view(np.uint8), allow_pickle=False)
    recorder = Recorder(path, {**attached, "settings.npy": settings.getvalue()})
    ring = Ring()
    recorder.attach(ring)  # type: ignore[arg-type]
    while ring.parts:
        recorder.step()
    if not recorder.finish():
        raise RuntimeError("the log could not be written")
    return path.read_bytes()


def _log_of_odd_messages(rng: random.Random) -> Made:
    """A whole log in which a message, the metadata or an attachment is odd."""
    from mcap.writer import CompressionType, Writer

    file = io.BytesIO()
    writer = Writer(file, compression=rng.choice((CompressionType.NONE, CompressionType.ZSTD, CompressionType.LZ4)))
    writer.start(profile=PROFILE)
    metadata = {"log_version": str(LOG_VERSION), "record_version": str(RECORD_VERSION), "wall_offset_ns": "5"}
    if rng.random() < 0.1:
        metadata[rng.choice(list(metadata))] = rng.choice(("", "x", "-1", "9" * 5000))
    writer.add_metadata(PROFILE, metadata)
    if rng.random() < 0.1:
        ids = rng.choice(("0", "1,0", "", "-1", "999999999999", "99999", "a", "0,0", "9" * 5000))
        writer.add_metadata("bodies", {"ids": ids, "every": rng.choice(("1", "0", "x", "9" * 5000))})
    for name in ("config.json", "settings.npy"):
        writer.add_attachment(0, 0, name, "application/octet-stream", noise(rng)[0])
    chosen = rng.randrange(2 * len(CHANNELS))
    for number, channel in enumerate(CHANNELS):
        channel_id = writer.register_channel(channel.topic, "json", 0)
        for row in range(2):
            text = channel.encode(_records()[row : row + 1])[0]
            if chosen == 2 * number + row:
                text = spoil_json(rng, json.loads(text))
            writer.add_message(channel_id, row, text, row)
    writer.finish()
    return file.getvalue(), False


@cache
def _empty_log() -> bytes:
    from mcap.writer import Writer

    file = io.BytesIO()
    writer = Writer(file)
    writer.start(profile=PROFILE)
    writer.add_metadata(PROFILE, {"log_version": str(LOG_VERSION), "record_version": str(RECORD_VERSION)})
    writer.finish()
    return file.getvalue()


def _log_with_a_bomb(rng: random.Random) -> Made:
    return _before_data_end(_empty_log(), _chunk(rng, b"\x04\x10")), False


def _read_log(path: Path) -> Log:
    log = read_log(path)
    for name in log.attachment_names():
        for part in ("config", "settings", "snapshots", "model"):
            if name.startswith(part):
                try:
                    getattr(log, part)
                except LogError:
                    continue
    return log


def _unsound_log(log: Log) -> str:
    good = _records()
    found = log.records
    if len(found) > len(good):
        return "more ticks than were recorded"
    known = found["tick"].astype(np.int64) - 1
    return "" if (known >= 0).all() else "ticks that cannot be"


def _unsound_copy(log: Log) -> str:
    """Of a log whose bytes were changed: checksums must have kept other numbers out."""
    found = log.records
    good = _records()[: len(found)]
    return "" if len(found) <= len(_records()) and found.tobytes() == good.tobytes() else "other numbers than recorded"


TARGETS = (
    Target(
        "keys_file",
        20,
        one_of(
            lambda rng: scatter(rng, (_CERTIFICATE, _SECRET, _ALLOWED)),
            lambda rng: (spoil_text(rng, rng.choice((_SECRET, _ALLOWED)), HARD_WORDS), False),
            noise,
        ),
        _read_keys,
        (keys.KeysError,),
        _unsound_keys,
    ),
    Target(
        "config",
        6,
        _texts(CONFIGS / "demo.toml", CONFIGS / "peg.toml", CONFIGS / "marbles.toml"),
        from_file("spoilt.toml", load_config),
        (ConfigError,),
        lambda config: "" if isinstance(config, Config) and _finite(config.model_dump()) else "not finite",
    ),
    Target(
        "card",
        6,
        _texts(CARD_DIRECTORY / "touch.toml", CARD_DIRECTORY / "delta3.toml"),
        from_file("touch.toml", load_card),
        (CardError,),
        lambda card: "" if _finite(vars(card)) else "not finite",
    ),
    Target(
        "script",
        6,
        _texts(CONFIGS / "scripts" / "bolt.toml", CONFIGS / "scripts" / "peg.toml"),
        from_file("script.toml", read_script),
        (RecordingError,),
        lambda script: "" if all(0 < step.seconds < 1e5 for step in script.steps) else "steps without end",
    ),
    Target(
        "recording_csv",
        8,
        one_of(_csv_with_cells, lambda rng: scatter(rng, (_csv(),)), noise),
        from_file("spoilt.csv", read_recording),
        (RecordingError,),
        _unsound_recording,
    ),
    Target(
        "recording_mcap",
        2.5,
        one_of(
            _mcap_of_odd_poses,
            _mcap_with_a_bomb,
            lambda rng: scatter(rng, (_good_mcap(),)),
            lambda rng: (shorten(rng, _good_mcap())[0], False),
        ),
        from_file("spoilt.mcap", read_recording),
        (RecordingError,),
        _unsound_recording,
    ),
    Target(
        "recording_bag",
        1,
        one_of(lambda rng: scatter(rng, (_good_bag(),)), lambda rng: (shorten(rng, _good_bag())[0], False)),
        from_file("spoilt.bag", read_recording),
        (RecordingError,),
        _unsound_recording,
    ),
    Target(
        "model",
        3,
        one_of(_model_that_lies, lambda rng: scatter(rng, (_model_bytes(),)), lambda rng: shorten(rng, _model_bytes())),
        lambda message: load_model(io.BytesIO(message)),
        (ModelFileError,),
        lambda model: "",
    ),
    Target(
        "snapshot",
        8,
        one_of(
            _snapshot_that_holds_together,
            lambda rng: scatter(rng, (_snapshot(),)),
            lambda rng: shorten(rng, _snapshot()),
            noise,
        ),
        lambda message: unpack_snapshot(message, _assembly().model),
        (ValueError,),
        lambda parts: "",
    ),
    Target(
        "log_content",
        2,
        one_of(_log_of_odd_messages, _log_of_odd_messages, _log_with_a_bomb),
        from_file("odd.mcap", _read_log),
        (LogError,),
        _unsound_log,
    ),
    Target(
        "log_bytes",
        2,
        one_of(lambda rng: scatter(rng, (_good_log(),)), lambda rng: (shorten(rng, _good_log())[0], False)),
        from_file("spoilt-log.mcap", _read_log),
        (LogError,),
        _unsound_copy,
    ),
)
