"""Recorded motions: ROS 1 and ROS 2 bags, MCAP files (ROS 2, Foxglove poses, hapticd's own logs) and CSV tables.

CSV: a header line, then one row per sample. Columns, in any order: ``time_s`` or ``time_ns``; ``x y z`` (m); optionally
``qx qy qz qw``. Lines that begin with ``#`` are skipped.
"""

import csv
import io
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from bridge.scene.frames import shortest_turn

_POSE_TYPES = {
    "geometry_msgs/msg/Pose": ("position", "orientation"),
    "geometry_msgs/msg/Transform": ("translation", "rotation"),
}
_CSV_POSITION = ("x", "y", "z")
_CSV_ORIENTATION = ("qx", "qy", "qz", "qw")
_KINDS = "ROS 1 bags (.bag), ROS 2 bags (a directory with metadata.yaml, .db3, .mcap), MCAP (.mcap) and CSV (.csv)"
_MAX_CSV_BYTES = 1 << 30
_LATEST_NS = 1 << 62
"""Differences of times must not overflow."""

Row = tuple[int, Sequence[float], Sequence[float]]
"""(time ns, position, orientation xyzw)"""


class RecordingError(ValueError):
    """A recording that cannot be used; the sentence names the file, what was found and what would be right."""


@dataclass(frozen=True)
class Recording:
    """A motion: poses over time, in the frame and metres of whoever recorded it."""

    path: str
    channel: str
    """Topic or ``rows``."""
    times_ns: np.ndarray
    """(n,) int64, strictly increasing."""
    positions: np.ndarray
    """(n, 3) m."""
    orientations: np.ndarray
    """(n, 4) xyzw, unit, each on the same hemisphere as the one before."""
    repairs: tuple[str, ...] = ()
    """What had to be put right, one sentence each."""

    def __len__(self) -> int:
        return len(self.times_ns)

    @property
    def duration_s(self) -> float:
        """From the first to the last sample, s."""
        return float(self.times_ns[-1] - self.times_ns[0]) * 1e-9

    @property
    def peak_speed(self) -> float:
        """Fastest motion over any 10 ms, m/s (single steps show the device's own sampling, not the hand)."""
        t = (self.times_ns - self.times_ns[0]) * 1e-9
        grid = np.arange(0.0, max(self.duration_s, 0.02), 0.01)
        points = np.stack([np.interp(grid, t, self.positions[:, axis]) for axis in range(3)], axis=1)
        return float(np.linalg.norm(np.diff(points, axis=0), axis=1).max() / 0.01)

    def at(self, time_s: float) -> tuple[np.ndarray, np.ndarray]:
        """Pose at a time after the first sample, s: (position (3,), orientation (4,)), held beyond the ends.

        Positions are interpolated linearly, orientations by normalised linear interpolation: between samples 1 ms
        apart the difference to slerp is far below the sensor's noise.
        """
        time_ns = self.times_ns[0] + time_s * 1e9
        after = int(np.searchsorted(self.times_ns, time_ns, side="right"))
        if after <= 0:
            return self.positions[0].copy(), self.orientations[0].copy()
        if after >= len(self):
            return self.positions[-1].copy(), self.orientations[-1].copy()
        before = after - 1
        part = (time_ns - self.times_ns[before]) / (self.times_ns[after] - self.times_ns[before])
        position = self.positions[before] + part * (self.positions[after] - self.positions[before])
        orientation = self.orientations[before] + part * (self.orientations[after] - self.orientations[before])
        return position, orientation / np.linalg.norm(orientation)


# ---------------------------------------------------------------------------------------------------------------------
# Placement
# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Placement:
    """How a recording is laid into the device frame: ``x = offset + R (scale * x_recorded)``, times over ``speed``."""

    scale: float = 1.0
    rotation: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 1.0)
    """xyzw."""
    offset: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """m."""
    speed: float = 1.0

    def __post_init__(self) -> None:
        if not (self.scale > 0 and math.isfinite(self.scale)):
            raise ValueError(f"the scale of a placement is a positive number, not {self.scale}")
        if not (self.speed > 0 and math.isfinite(self.speed)):
            raise ValueError(f"the speed of a placement is a positive number, not {self.speed}")
        if abs(math.sqrt(sum(x * x for x in self.rotation)) - 1) > 1e-3:
            raise ValueError(f"the rotation of a placement is a unit quaternion [x, y, z, w], not {self.rotation}")

    def apply(self, recording: Recording) -> Recording:
        """The recording in the device frame."""
        turn = Rotation.from_quat(self.rotation)
        start = recording.times_ns[0]
        times = np.rint((recording.times_ns - start) / self.speed).astype(np.int64)
        keep = np.concatenate(([True], np.diff(times) > 0))
        positions = turn.apply(recording.positions * self.scale) + np.asarray(self.offset)
        orientations = _continuous((turn * Rotation.from_quat(recording.orientations)).as_quat())
        return replace(recording, times_ns=times[keep], positions=positions[keep], orientations=orientations[keep])


def fit(
    recording: Recording,
    point: Sequence[float] | np.ndarray,
    *,
    normal: Sequence[float] | np.ndarray = (0.0, 0.0, 1.0),
    press_depth: float = 0.01,
    extent: float | tuple[float, float] | None = None,
    flat: bool = False,
    speed: float = 1.0,
) -> Placement:
    """Placement that centres a recording over ``point`` of a surface (3,) with outward ``normal`` and presses into it.

    Across the surface, the middle of the motion lies over the point; along the normal, its deepest sample lies
    ``press_depth`` (m) below it. ``extent`` (m, one number or one for each of the surface's two directions) is what
    the motion must fit in: it is scaled down or up to that, uniformly; None keeps its size. ``flat`` turns the motion
    so that the direction in which it varies least lies along the normal: a movement through the air becomes one over
    the surface. Raises ValueError for a zero normal or a motion without extent that should be scaled.
    """
    up = np.asarray(normal, dtype=float)
    length = np.linalg.norm(up)
    if not length > 0:
        raise ValueError("the normal of a surface must not be zero")
    up = up / length
    turn = Rotation.identity()
    if flat:
        centred = recording.positions - recording.positions.mean(axis=0)
        thin = np.linalg.svd(centred, full_matrices=False)[2][-1]
        turn = shortest_turn(thin if thin @ up >= 0 else -thin, up)
    # the surface's own directions: for an upward normal, x and y
    first = np.array((1.0, 0.0, 0.0)) if abs(up[0]) < 0.9 else np.array((0.0, 1.0, 0.0))
    first -= (first @ up) * up
    first /= np.linalg.norm(first)
    across = np.stack((first, np.cross(up, first)))
    turned = turn.apply(recording.positions)
    spread = turned @ across.T
    scale = 1.0
    if extent is not None:
        sizes = np.broadcast_to(np.asarray(extent, dtype=float), (2,))
        spans = np.ptp(spread, axis=0)
        if not (sizes > 0).all():
            raise ValueError(f"the extent to fit a motion in is positive, not {extent}")
        if not (spans > 0).any():
            raise ValueError(
                f"{recording.path}: the motion does not move across the surface, so it cannot be scaled to fit"
            )
        scale = float(np.min(sizes[spans > 0] / spans[spans > 0]))
    middle = (spread.max(axis=0) + spread.min(axis=0)) / 2
    lowest = (turned @ up).min()
    anchor = middle @ across + lowest * up
    offset = np.asarray(point, dtype=float) - press_depth * up - scale * anchor
    return Placement(scale, tuple(turn.as_quat().tolist()), tuple(offset.tolist()), speed)


def fit_to_box(
    recording: Recording,
    lower: Sequence[float] | np.ndarray,
    upper: Sequence[float] | np.ndarray,
    *,
    press_depth: float = 0.01,
    fill: float = 0.8,
    flat: bool = False,
    speed: float = 1.0,
) -> Placement:
    """Placement over the top (+z) of a box with corners ``lower`` and ``upper`` (3,), m, filling ``fill`` of it."""
    low, high = np.asarray(lower, dtype=float), np.asarray(upper, dtype=float)
    if not (high > low).all():
        raise ValueError(f"a box has its upper corner above its lower one, not {list(lower)} and {list(upper)}")
    point = ((low[0] + high[0]) / 2, (low[1] + high[1]) / 2, high[2])
    width = tuple(float(x) for x in fill * (high - low)[:2])
    return fit(recording, point, press_depth=press_depth, extent=(width[0], width[1]), flat=flat, speed=speed)


def _continuous(orientations: np.ndarray) -> np.ndarray:
    """Each quaternion on the hemisphere of the one before."""
    flips = np.sum(orientations[1:] * orientations[:-1], axis=1) < 0
    signs = np.concatenate(([1.0], np.where(flips, -1.0, 1.0))).cumprod()
    return orientations * signs[:, None]


# ---------------------------------------------------------------------------------------------------------------------
# Reading
# ---------------------------------------------------------------------------------------------------------------------


def read_recording(path: str | Path, *, topic: str | None = None) -> Recording:
    """Reads a recorded motion from any of the supported files.

    ``topic`` chooses among several channels with poses; without it there must be exactly one (of hapticd's own logs:
    ``/input``). Times are the messages' header stamps when these are set, else the times of recording. Raises
    RecordingError.
    """
    path = Path(path)
    if not path.exists():
        raise RecordingError(f"{path}: no such file; a recording is one of {_KINDS}")
    suffix = path.suffix.lower()
    if path.is_dir() or suffix in (".bag", ".db3"):
        return _read_bag(path, topic)
    if suffix == ".mcap":
        return _read_mcap(path, topic)
    if suffix == ".csv":
        return _read_csv(path, topic)
    raise RecordingError(f"{path}: the suffix `{suffix}` is not known; a recording is one of {_KINDS}")


def _assemble(path: Path, channel: str, rows: Iterable[Row], notes: Sequence[str] = ()) -> Recording:
    """Puts times and quaternions right, and says what was done."""
    collected = list(rows)
    try:
        times = np.array([row[0] for row in collected], dtype=np.int64)
        positions = np.array([row[1] for row in collected], dtype=float).reshape(-1, 3)
        orientations = np.array([row[2] for row in collected], dtype=float).reshape(-1, 4)
    except (ValueError, TypeError, OverflowError) as error:
        text = f"{path}: `{channel}` holds a time or pose that is none, or out of range: {error!s:.150}"
        raise RecordingError(text) from None
    if len(times) and not (times.min() > -_LATEST_NS and times.max() < _LATEST_NS):
        raise RecordingError(f"{path}: `{channel}` holds a time out of range; times are ns within 290 years of 0")
    repairs = list(notes)

    def keep(good: np.ndarray, reason: str) -> None:
        nonlocal times, positions, orientations
        bad = int((~good).sum())
        if bad:
            repairs.append(f"{bad} of {len(good)} samples dropped: {reason}")
            times, positions, orientations = times[good], positions[good], orientations[good]

    keep(np.isfinite(positions).all(axis=1) & np.isfinite(orientations).all(axis=1), "a number is NaN or infinite")
    keep((np.abs(orientations) < 1e100).all(axis=1), "a quaternion is beyond all measure")
    norms = np.linalg.norm(orientations, axis=1)
    keep(norms > 0.5, "the quaternion is (nearly) zero")
    if (np.diff(times) < 0).any():
        repairs.append(f"{int((np.diff(times) < 0).sum())} steps back in time: sorted by time")
        order = np.argsort(times, kind="stable")
        times, positions, orientations = times[order], positions[order], orientations[order]
    keep(np.concatenate((np.ones(min(len(times), 1), bool), np.diff(times) > 0)), "the same time as the one before")
    if len(times) < 2:
        found = f"{len(times)} usable of {len(collected)} samples"
        detail = f" ({'; '.join(repairs)})" if repairs else ""
        raise RecordingError(f"{path}: `{channel}` has {found}{detail}; a motion needs at least 2")
    norms = np.linalg.norm(orientations, axis=1)
    off = int((np.abs(norms - 1) > 1e-3).sum())
    if off:
        repairs.append(f"{off} quaternions were not of unit length: normalised")
    orientations = _continuous(orientations / norms[:, None])
    return Recording(str(path), channel, times, positions, orientations, tuple(repairs))


def _choose(path: Path, topic: str | None, candidates: Sequence[str], others: Sequence[str]) -> str:
    """The channel to read, or a RecordingError that lists what there is."""
    if topic is not None:
        if topic in candidates:
            return topic
        if topic in others:
            raise RecordingError(f"{path}: topic `{topic}` holds no poses; those that do: {_listed(candidates)}")
        raise RecordingError(f"{path}: there is no topic `{topic}`; topics with poses: {_listed(candidates)}")
    if not candidates:
        raise RecordingError(
            f"{path}: no topic holds poses (found: {_listed(others)}); needed is a geometry_msgs Pose or Transform, "
            "alone or inside a message"
        )
    if len(candidates) > 1:
        raise RecordingError(f"{path}: several topics hold poses, choose one of {_listed(candidates)}")
    return candidates[0]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names)[:20]) or "none"


# -- ROS ---------------------------------------------------------------------------------------------------------------


class _PoseFinder:
    """Where in a ROS message the pose and the header stamp stand, by the definitions that came with the file."""

    def __init__(self, fields: Callable[[str], Any]) -> None:
        self._fields = fields

    def path(self, message_type: str, depth: int = 3) -> tuple[str, ...] | None:
        """Names of fields that lead to the first Pose or Transform in a message type; None when it has none."""
        if message_type in _POSE_TYPES:
            return ()
        if depth == 0:
            return None
        for name, (node, detail) in self._fields(message_type):
            if node == 2:  # a nested message, not an array of them
                below = self.path(detail, depth - 1)
                if below is not None:
                    return (name, *below)
        return None

    @staticmethod
    def row(message: Any, path: tuple[str, ...], recorded_ns: int) -> Row:
        """(time, position, orientation): the time is the header stamp, 0 when there is none."""
        stamp = getattr(getattr(message, "header", None), "stamp", None)
        time_ns = stamp.sec * 1_000_000_000 + stamp.nanosec if stamp is not None else 0
        for name in path:
            message = getattr(message, name)
        position = getattr(message, "position", None)
        if position is None:
            position, q = message.translation, message.rotation
        else:
            q = message.orientation
        return time_ns, (position.x, position.y, position.z), (q.x, q.y, q.z, q.w)


def _stamped(rows: list[Row], recorded: list[int]) -> tuple[list[Row], list[str]]:
    """Header stamps when every message has one, else the times of recording."""
    if rows and all(row[0] != 0 for row in rows):
        return rows, []
    notes = ["header stamps are not set: times of recording used"] if any(row[0] != 0 for row in rows) else []
    return [(at, row[1], row[2]) for at, row in zip(recorded, rows, strict=True)], notes


def _read_bag(path: Path, topic: str | None) -> Recording:
    from rosbags.highlevel import AnyReader
    from rosbags.typesys import Stores, get_typestore

    if path.is_dir() and not (path / "metadata.yaml").exists():
        raise RecordingError(f"{path}: a directory without metadata.yaml is no ROS 2 bag")
    try:
        with AnyReader([path], default_typestore=get_typestore(Stores.ROS2_HUMBLE)) as reader:
            finder = _PoseFinder(lambda name: reader.typestore.fielddefs[name][1])
            paths = {c.topic: finder.path(c.msgtype) for c in reader.connections}
            chosen = _choose(path, topic, [name for name, found in paths.items() if found is not None], list(paths))
            found = paths[chosen]
            assert found is not None
            rows, recorded = [], []
            for connection, time_ns, raw in reader.messages([c for c in reader.connections if c.topic == chosen]):
                rows.append(finder.row(reader.deserialize(raw, connection.msgtype), found, time_ns))
                recorded.append(time_ns)
    except RecordingError:
        raise
    except Exception as error:  # the reader shows damage as whatever its parsing ran into
        raise RecordingError(_damaged(path, error)) from None
    rows, notes = _stamped(rows, recorded)
    return _assemble(path, chosen, rows, notes)


def _damaged(path: Path, error: Exception) -> str:
    what = " ".join(str(error).split())[:200] or type(error).__name__
    if path.is_file() and path.stat().st_size == 0:
        what = "the file is empty"
    repair = {
        ".bag": "if it was cut off while recording, `rosbag reindex` may save it",
        ".mcap": "if it was cut off while recording, `mcap recover` may save it",
    }.get(path.suffix.lower(), "record it again or restore it from a copy")
    return f"{path}: not a whole, readable recording: {what}; {repair}"


# -- MCAP --------------------------------------------------------------------------------------------------------------


def _read_mcap(path: Path, topic: str | None) -> Recording:
    from bridge.log.chunks import messages_of

    # Read from the front, without the index, so a file that was cut off is read up to there.
    readers: dict[int, tuple[str, Callable[[Any], Row | None] | None]] = {}
    rows: dict[str, list[Row]] = {}
    recorded: dict[str, list[int]] = {}
    topics: set[str] = set()
    hapticd_log = False
    notes = []
    with path.open("rb") as stream:
        try:
            for schema, channel, message in messages_of(stream, path.stat().st_size):
                if channel.id not in readers:
                    decode = _mcap_decoder(path, schema, channel)
                    readers[channel.id] = (channel.topic, decode)
                    topics.add(channel.topic)
                    hapticd_log |= schema is not None and schema.name == "hapticd.Input"
                name, decode = readers[channel.id]
                if decode is None:
                    continue
                try:
                    row = decode(message)
                except Exception as error:  # of the JSON, CDR or ROS 1 decoder
                    form = schema.name if schema is not None else "pose"
                    text = f"{path}: message {message.sequence} on `{name}` is not a `{form}`: {error!r:.150}"
                    raise RecordingError(text) from None
                rows.setdefault(name, [])
                recorded.setdefault(name, [])
                if row is not None:
                    rows[name].append(row)
                    recorded[name].append(message.log_time)
        except RecordingError:
            raise
        except Exception as error:  # damage shows as whatever record parsing or decompression runs into
            if not any(rows.values()):
                raise RecordingError(_damaged(path, error)) from None
            notes.append(f"the file ends early or is damaged ({type(error).__name__}): read up to there")
    if topic is None and hapticd_log:
        topic = "/input"
    chosen = _choose(path, topic, list(rows), list(topics))
    stamped, more = _stamped(rows[chosen], recorded[chosen])
    return _assemble(path, chosen, stamped, [*notes, *more])


def _mcap_decoder(path: Path, schema: Any, channel: Any) -> Callable[[Any], Row | None] | None:
    """Function from a message to a row (None: nothing new in it), or None when the channel holds no poses."""
    if schema is None:
        return None
    encoding = channel.message_encoding
    if encoding == "json" and schema.name == "hapticd.Input":
        return _input_row
    if encoding == "json" and schema.name == "foxglove.PoseInFrame":
        return _foxglove_row
    if (encoding, schema.encoding) not in (("cdr", "ros2msg"), ("ros1", "ros1msg")):
        return None
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    store = get_typestore(Stores.EMPTY)
    name = schema.name if schema.name.count("/") == 2 else schema.name.replace("/", "/msg/", 1)
    try:
        store.register(get_types_from_msg(schema.data.decode(), name))
    except Exception as error:
        raise RecordingError(f"{path}: the definition of `{schema.name}` cannot be read: {error}") from None
    finder = _PoseFinder(lambda name: store.fielddefs[name][1])
    found = finder.path(name)
    if found is None:
        return None
    deserialize = store.deserialize_cdr if encoding == "cdr" else store.deserialize_ros1

    def decode(message: Any) -> Row:
        return finder.row(deserialize(message.data, name), found, message.log_time)

    return decode


def _input_row(message: Any) -> Row | None:
    import orjson

    fields = orjson.loads(message.data)
    if not fields["fresh"]:
        return None
    sample = fields["sample"]
    return int(sample["t_sample"]), sample["position"], sample["orientation"]


def _foxglove_row(message: Any) -> Row:
    import orjson

    fields = orjson.loads(message.data)
    stamp, pose = fields.get("timestamp", {}), fields["pose"]
    p, q = pose["position"], pose["orientation"]
    time_ns = int(stamp.get("sec", 0)) * 1_000_000_000 + int(stamp.get("nsec", 0))
    return time_ns, (p["x"], p["y"], p["z"]), (q["x"], q["y"], q["z"], q["w"])


# -- CSV ---------------------------------------------------------------------------------------------------------------


def _read_csv(path: Path, topic: str | None) -> Recording:
    if topic is not None:
        raise RecordingError(f"{path}: a CSV file has no topics, so `{topic}` cannot be chosen")
    if path.stat().st_size > _MAX_CSV_BYTES:
        raise RecordingError(f"{path}: more than {_MAX_CSV_BYTES >> 20} MiB; convert it to MCAP")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise RecordingError(f"{path}: not a text file (byte {error.start} is not UTF-8); CSV is needed") from None
    return _assemble(path, "rows", _csv_rows(path, text))


def _csv_rows(path: Path, text: str) -> Iterator[Row]:
    numbered = ((n, line) for n, line in enumerate(text.splitlines(), 1) if line.strip() and not line.startswith("#"))
    header: list[str] | None = None
    for number, line in numbered:
        try:
            cells = [cell.strip() for cell in next(csv.reader(io.StringIO(line)))]
        except (csv.Error, StopIteration) as error:
            raise RecordingError(f"{path}, line {number}: not a line of CSV: {error}") from None
        if header is None:
            header = [cell.lower() for cell in cells]
            _check_header(path, header)
            continue
        if len(cells) != len(header):
            raise RecordingError(f"{path}, line {number}: {len(cells)} cells, the header has {len(header)}")
        row = dict(zip(header, cells, strict=True))
        try:
            time_ns = int(row["time_ns"]) if "time_ns" in row else _seconds(row["time_s"])
            position = [float(row[name]) for name in _CSV_POSITION]
            orientation = [float(row[name]) for name in _CSV_ORIENTATION] if "qw" in row else [0.0, 0.0, 0.0, 1.0]
        except ValueError as error:
            raise RecordingError(f"{path}, line {number}: {error}") from None
        yield time_ns, position, orientation
    if header is None:
        raise RecordingError(f"{path}: empty; the first line names the columns, for example time_s,x,y,z,qx,qy,qz,qw")


def _seconds(text: str) -> int:
    seconds = float(text)
    if not math.isfinite(seconds) or abs(seconds) > 9e9:
        raise ValueError(f"time_s is {text!r}, a time in seconds is needed")
    return round(seconds * 1e9)


def _check_header(path: Path, header: list[str]) -> None:
    wanted = "time_s (or time_ns), x, y, z and optionally qx, qy, qz, qw"
    if len(set(header)) != len(header):
        raise RecordingError(f"{path}: a column stands twice in {', '.join(header)}")
    if ("time_s" in header) == ("time_ns" in header):
        raise RecordingError(f"{path}: columns are {', '.join(header)}; needed are {wanted}")
    missing = [name for name in _CSV_POSITION if name not in header]
    some = [name for name in _CSV_ORIENTATION if name in header]
    if some and len(some) < 4:
        missing += [name for name in _CSV_ORIENTATION if name not in header]
    if missing:
        raise RecordingError(f"{path}: column {', '.join(missing)} is missing; needed are {wanted}")
