"""What fuzzing has found in files, each kind pinned: refused as documented, before anything large is made for it."""

import io
import json
import math
import struct
import zipfile

import numpy as np
import pytest
import zstandard
from log_samples import ListRing, attachments, plausible_records, write_log
from mcap.writer import Writer

from bridge.config import ConfigError, load_config, parse_config
from bridge.log.channels import LOG_VERSION, PROFILE
from bridge.log.chunks import MAX_CHUNK
from bridge.log.reader import LogError, read_log
from bridge.log.recorder import Recorder
from bridge.model_file import ModelFileError, load_arrays, read_npy, save_arrays
from bridge.recordings import RecordingError, read_recording
from bridge.scripts import read_script
from haptics.cards import CARD_DIRECTORY, CardError, card_from_dict, load_card
from haptics.tables import RECORD_VERSION
from haptics.toml_text import MAX_BYTES, MAX_NESTING, parse_toml

# -- texts -------------------------------------------------------------------------------------------------------------

HARD = {
    "digits": b"9" * 5000,
    "65 bits": str(1 << 63).encode(),
    "deep": b"[" * (MAX_NESTING + 1) + b"]" * (MAX_NESTING + 1),
    "deeper": b"[" * 5000,
}


@pytest.mark.parametrize("hard", HARD)
def test_toml_that_readers_trip_over_is_refused_by_each_of_them(tmp_path, hard):
    value = HARD[hard]
    config = b'[[scene.body]]\nname = "a"\nprimitive = "box"\nsize = [1, 1, 1]\n[tool]\ntip_radius = ' + value + b"\n"
    card = (CARD_DIRECTORY / "touch.toml").read_bytes() + b"\nforce_max = " + value + b"\n"
    script = b"[[step]]\nto = [0.0, 0.0, 0.1]\nseconds = " + value + b"\n"
    for text, read, error in (
        (config, load_config, ConfigError),
        (card.replace(b"force_max = 3", b"# ", 1), load_card, CardError),
        (script, read_script, RecordingError),
    ):
        (tmp_path / "hard.toml").write_bytes(text)
        with pytest.raises(error, match=r"hard\.toml"):
            read(tmp_path / "hard.toml")


def test_toml_has_bounds():
    assert parse_toml(b"a = 9223372036854775807\nb = -9223372036854775808") == {"a": (1 << 63) - 1, "b": -(1 << 63)}
    with pytest.raises(ValueError, match="at most 1000000 are read"):
        parse_toml(b" " * (MAX_BYTES + 1))
    with pytest.raises(ValueError, match="line 2"):
        parse_toml(b"a = 1\n\xff")
    with pytest.raises(ConfigError, match="at most"):
        parse_config("#" * (MAX_BYTES + 1))


def test_a_card_of_numbers_that_no_float_holds_is_refused():
    card = dict(vars(load_card("touch")))
    for number in (10**400, math.inf, math.nan):
        with pytest.raises(CardError, match="will not do"):
            card_from_dict({**{k: v for k, v in card.items() if v is not None}, "force_max": number})


# -- recordings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "cell"),
    [("time_ns", "9" * 30), ("time_ns", str((1 << 63) - 1)), ("time_ns", "9" * 5000), ("x", "a" * 200_000)],
)
def test_csv_cells_without_measure_are_told(tmp_path, column, cell):
    rows = [{"time_ns": "1", "x": "0", "y": "0", "z": "0"}, {"time_ns": "2", "x": "0", "y": "0", "z": "0"}]
    rows[1][column] = cell
    (tmp_path / "a.csv").write_text("time_ns,x,y,z\n" + "".join(",".join(row.values()) + "\n" for row in rows))
    with pytest.raises(RecordingError, match=r"a\.csv"):
        read_recording(tmp_path / "a.csv")


def poses(value) -> bytes:
    file = io.BytesIO()
    writer = Writer(file)
    writer.start()
    channel = writer.register_channel("/p", "json", writer.register_schema("foxglove.PoseInFrame", "jsonschema", b"{}"))
    for number in range(3):
        position = {"x": 0.0, "y": 0.0, "z": 0.0 if number else value}
        pose = {"position": position, "orientation": {"x": 0, "y": 0, "z": 0, "w": 1}}
        text = json.dumps({"timestamp": {"sec": number, "nsec": 1}, "pose": pose})
        writer.add_message(channel, number, text.encode(), number)
    writer.finish()
    return file.getvalue()


@pytest.mark.parametrize("value", ["a", [1], {}, [None] * 3])
def test_poses_that_are_none_are_told(tmp_path, value):
    (tmp_path / "a.mcap").write_bytes(poses(value))
    with pytest.raises(RecordingError, match=r"a\.mcap: `/p` holds a time or pose that is none"):
        read_recording(tmp_path / "a.mcap")


def test_quaternions_beyond_all_measure_are_dropped(tmp_path):
    rows = ["1,0,0,0,0,0,0,1", "2,0,0,0,0,0,0,1e308", "3,0,0,0,0,0,0,1"]
    (tmp_path / "a.csv").write_text("time_ns,x,y,z,qx,qy,qz,qw\n" + "\n".join(rows) + "\n")
    found = read_recording(tmp_path / "a.csv")
    assert len(found) == 2 and "beyond all measure" in found.repairs[0]


# -- chunks, tables, attachments ---------------------------------------------------------------------------------------


def with_chunk(whole: bytes, claimed: int, data: bytes) -> bytes:
    """An MCAP file with one more chunk at its end."""
    at = whole.rindex(b"\x0f\x04\0\0\0\0\0\0\0")
    head = struct.pack("<QQQII", 0, 1, claimed, 0, 4) + b"zstd" + struct.pack("<Q", len(data))
    return whole[:at] + struct.pack("<BQ", 6, len(head) + len(data)) + head + data + whole[at:]


@pytest.mark.parametrize("claimed", [1 << 40, MAX_CHUNK + 1, 100, 0])
def test_a_chunk_that_lies_about_its_size_is_damage(tmp_path, claimed):
    records = plausible_records(8)
    whole = write_log(tmp_path / "a.mcap", records).read_bytes()
    (tmp_path / "b.mcap").write_bytes(with_chunk(whole, claimed, zstandard.compress(bytes(1 << 20))))
    log = read_log(tmp_path / "b.mcap")
    assert log.records.tobytes() == records.tobytes()
    assert log.truncated and "a chunk cannot be unpacked" in log.explanation
    (tmp_path / "c.mcap").write_bytes(with_chunk(poses(0.0), claimed, zstandard.compress(bytes(1 << 20))))
    recording = read_recording(tmp_path / "c.mcap")
    assert len(recording) == 3 and any("ends early or is damaged" in text for text in recording.repairs)


def table(shape: str, data: bytes = bytes(8)) -> bytes:
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + data


def test_a_table_fills_its_bytes_exactly():
    assert read_npy(table("(1,)")).tolist() == [0.0]
    assert read_npy(table("()")).shape == () and read_npy(table("(0, 5)", b"")).shape == (0, 5)
    array = read_npy(table("(1,)"))
    array[0] = 1.0
    for shape in ("(999999999999,)", "(2,)", "(0,)", "(-1,)", "(-1, -1)", "(1.0,)", "(True, 'a')", "(", "[1]"):
        with pytest.raises(ValueError, match="not a numpy table"):
            read_npy(table(shape))
    for data in (b"", b"\x93NUMPY", b"PK\x03\x04" + bytes(99), table("(1,)")[:-1], table("(1,)") + b"\0"):
        with pytest.raises(ValueError, match="not a numpy table"):
            read_npy(data)


def test_files_of_tables_are_neither_compressed_nor_larger_than_they_are(tmp_path):
    types = {"a": np.dtype("<f8")}
    save_arrays(tmp_path / "good", {"a": np.arange(3.0)})
    assert load_arrays(tmp_path / "good", types)["a"].tolist() == [0.0, 1.0, 2.0]
    for data, packing, said in (
        (table("(1,)"), zipfile.ZIP_DEFLATED, "is compressed"),
        (table("(999999999999,)"), zipfile.ZIP_STORED, "does not fit"),
    ):
        with zipfile.ZipFile(tmp_path / "bad", "w", packing) as archive:
            archive.writestr("a.npy", data)
        with pytest.raises(ModelFileError, match=said):
            load_arrays(tmp_path / "bad", types)


def test_attachments_that_lie_are_told(tmp_path):
    spoilt = {"config.json": b"[" * 100_000, "settings.npy": table("(999999999999,)"), "budget.npy": b"PK\x03\x04"}
    recorder = Recorder(tmp_path / "a.mcap", {**attachments(), **spoilt})
    recorder.attach(ListRing([]))
    assert recorder.finish()
    log = read_log(tmp_path / "a.mcap")
    for name in ("config", "settings", "budget"):
        with pytest.raises(LogError, match=name):
            getattr(log, name)


def test_a_log_of_more_bodies_than_can_be_is_refused(tmp_path):
    with open(tmp_path / "a.mcap", "wb") as file:
        writer = Writer(file)
        writer.start(profile=PROFILE)
        writer.add_metadata(PROFILE, {"log_version": str(LOG_VERSION), "record_version": str(RECORD_VERSION)})
        writer.add_metadata("bodies", {"ids": "0,999999999999", "every": "1"})
        writer.finish()
    with pytest.raises(LogError, match="which bodies move"):
        read_log(tmp_path / "a.mcap")
