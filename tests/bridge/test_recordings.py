"""Recorded motions: what was written comes back, what is damaged is told, and placements put it where they say."""

import json
import math
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcap.writer import Writer
from rosbags.rosbag1 import Writer as Writer1
from rosbags.rosbag2 import StoragePlugin
from rosbags.rosbag2 import Writer as Writer2
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from bridge.recordings import Placement, Recording, RecordingError, fit, fit_to_box, read_recording

VIRTUOSE = Path(__file__).resolve().parents[3] / "shared" / "data" / "virtuose"
EXACT = {"rtol": 0, "atol": 1e-15}


def motion(count: int = 50) -> list[tuple[int, tuple[float, ...], tuple[float, ...]]]:
    """A screw motion, 1 ms apart."""
    rows = []
    for i in range(count):
        half = 0.02 * i
        rows.append(
            (
                1_000_000_000 + i * 1_000_000,
                (0.1 * math.cos(half), 0.1 * math.sin(half), 0.001 * i),
                (0.0, 0.0, math.sin(half), math.cos(half)),
            )
        )
    return rows


def check(recording: Recording, rows, **tolerance) -> None:
    np.testing.assert_array_equal(recording.times_ns, [row[0] for row in rows])
    np.testing.assert_allclose(recording.positions, [row[1] for row in rows], **(tolerance or EXACT))
    np.testing.assert_allclose(recording.orientations, [row[2] for row in rows], **(tolerance or EXACT))


# -- bags --------------------------------------------------------------------------------------------------------------

VIRTUOSE_DEFINITION = """Header header

# pose of the wrist
geometry_msgs/Transform virtuose_physical_pose
"""


def ros1_store():
    store = get_typestore(Stores.ROS1_NOETIC)
    store.register(get_types_from_msg(VIRTUOSE_DEFINITION, "virtuose/msg/out_virtuose_physical_pose"))
    return store


def make_message(store, kind: str, row, stamp_ns: int, ros1: bool):
    types = store.types
    p, q = row[1], row[2]
    time = types["builtin_interfaces/msg/Time"](stamp_ns // 10**9, stamp_ns % 10**9)
    header = types["std_msgs/msg/Header"](*((0, time, "w") if ros1 else (time, "w")))
    quaternion = types["geometry_msgs/msg/Quaternion"](*q)
    pose = types["geometry_msgs/msg/Pose"](types["geometry_msgs/msg/Point"](*p), quaternion)
    transform = types["geometry_msgs/msg/Transform"](types["geometry_msgs/msg/Vector3"](*p), quaternion)
    return {
        "geometry_msgs/msg/Pose": lambda: pose,
        "geometry_msgs/msg/PoseStamped": lambda: types["geometry_msgs/msg/PoseStamped"](header, pose),
        "geometry_msgs/msg/Transform": lambda: transform,
        "geometry_msgs/msg/TransformStamped": lambda: types["geometry_msgs/msg/TransformStamped"](
            header, "t", transform
        ),
        "virtuose/msg/out_virtuose_physical_pose": lambda: types["virtuose/msg/out_virtuose_physical_pose"](
            header, transform
        ),
    }[kind]()


ROS_KINDS = [
    "geometry_msgs/msg/Pose",
    "geometry_msgs/msg/PoseStamped",
    "geometry_msgs/msg/Transform",
    "geometry_msgs/msg/TransformStamped",
    "virtuose/msg/out_virtuose_physical_pose",
]


def write_ros1(path: Path, topics: dict[str, str], rows, *, stamped: bool = True) -> None:
    store = ros1_store()
    with Writer1(path) as writer:
        for topic, kind in topics.items():
            connection = writer.add_connection(topic, kind, typestore=store)
            for row in rows:
                message = make_message(store, kind, row, row[0] if stamped else 0, True)
                writer.write(connection, row[0] if not stamped else row[0] + 500, store.serialize_ros1(message, kind))


def write_ros2(path: Path, topics: dict[str, str], rows, plugin) -> None:
    store = get_typestore(Stores.ROS2_HUMBLE)
    with Writer2(path, version=9, storage_plugin=plugin) as writer:
        for topic, kind in topics.items():
            connection = writer.add_connection(topic, kind, typestore=store)
            for row in rows:
                message = make_message(store, kind, row, row[0], False)
                writer.write(connection, row[0], store.serialize_cdr(message, kind))


@pytest.mark.parametrize("kind", ROS_KINDS)
def test_ros1_bags_with_any_pose_message_come_back(tmp_path, kind):
    """Header stamps where there are some (here 500 ns before the time of recording), else the times of recording."""
    write_ros1(tmp_path / "a.bag", {"/pose": kind}, motion())
    recording = read_recording(tmp_path / "a.bag")
    rows = motion()
    if kind in ("geometry_msgs/msg/Pose", "geometry_msgs/msg/Transform"):
        rows = [(row[0] + 500, *row[1:]) for row in rows]
    check(recording, rows)
    assert recording.channel == "/pose" and recording.repairs == ()


def test_unset_header_stamps_give_way_to_the_times_of_recording(tmp_path):
    write_ros1(tmp_path / "a.bag", {"/pose": ROS_KINDS[-1]}, motion(), stamped=False)
    check(read_recording(tmp_path / "a.bag"), motion())


@pytest.mark.parametrize("plugin", [StoragePlugin.SQLITE3, StoragePlugin.MCAP])
def test_ros2_bags_come_back(tmp_path, plugin):
    write_ros2(tmp_path / "bag", {"/pose": "geometry_msgs/msg/PoseStamped"}, motion(), plugin)
    check(read_recording(tmp_path / "bag"), motion())
    if plugin is StoragePlugin.MCAP:
        check(read_recording(next((tmp_path / "bag").glob("*.mcap"))), motion())


def test_the_topic_with_poses_is_found_among_others_and_asked_for_among_several(tmp_path):
    store = ros1_store()
    path = tmp_path / "a.bag"
    with Writer1(path) as writer:
        text = writer.add_connection("/text", "std_msgs/msg/String", typestore=store)
        poses = [writer.add_connection(name, ROS_KINDS[0], typestore=store) for name in ("/one", "/two")]
        for row in motion():
            writer.write(
                text, row[0], store.serialize_ros1(store.types["std_msgs/msg/String"]("x"), "std_msgs/msg/String")
            )
            for connection in poses:
                message = make_message(store, ROS_KINDS[0], row, 0, True)
                writer.write(connection, row[0], store.serialize_ros1(message, ROS_KINDS[0]))
    with pytest.raises(RecordingError, match=r"a\.bag: several topics hold poses, choose one of `/one`, `/two`"):
        read_recording(path)
    assert read_recording(path, topic="/two").channel == "/two"
    with pytest.raises(RecordingError, match="`/text` holds no poses"):
        read_recording(path, topic="/text")
    with pytest.raises(RecordingError, match="no topic `/three`"):
        read_recording(path, topic="/three")


def test_a_bag_without_poses_says_what_it_found(tmp_path):
    store = ros1_store()
    with Writer1(tmp_path / "a.bag") as writer:
        text = writer.add_connection("/text", "std_msgs/msg/String", typestore=store)
        writer.write(text, 1, store.serialize_ros1(store.types["std_msgs/msg/String"]("x"), "std_msgs/msg/String"))
    with pytest.raises(RecordingError, match=r"no topic holds poses \(found: `/text`\)"):
        read_recording(tmp_path / "a.bag")


def test_damaged_bags_are_told_at_any_cut(tmp_path):
    path = tmp_path / "a.bag"
    write_ros1(path, {"/pose": ROS_KINDS[-1]}, motion())
    whole = path.read_bytes()
    cut = tmp_path / "cut.bag"
    rng = random.Random(3)
    for length in [0, 1, 13, len(whole) - 1, *(rng.randrange(len(whole)) for _ in range(40))]:
        cut.write_bytes(whole[:length])
        with pytest.raises(RecordingError, match=r"cut\.bag: not a whole, readable recording: .+"):
            read_recording(cut)
    cut.write_bytes(random.Random(4).randbytes(5000))
    with pytest.raises(RecordingError, match=r"cut\.bag: not a whole, readable recording"):
        read_recording(cut)


def test_damaged_ros2_bags_are_told(tmp_path):
    write_ros2(tmp_path / "bag", {"/pose": "geometry_msgs/msg/PoseStamped"}, motion(), StoragePlugin.SQLITE3)
    storage = next((tmp_path / "bag").glob("*.db3"))
    storage.write_bytes(storage.read_bytes()[:5000])
    with pytest.raises(RecordingError, match="bag: not a whole, readable recording"):
        read_recording(tmp_path / "bag")
    (tmp_path / "bag" / "metadata.yaml").write_text("{")
    with pytest.raises(RecordingError, match="bag: not a whole, readable recording"):
        read_recording(tmp_path / "bag")
    (tmp_path / "bag" / "metadata.yaml").unlink()
    with pytest.raises(RecordingError, match=r"without metadata\.yaml"):
        read_recording(tmp_path / "bag")


# -- MCAP --------------------------------------------------------------------------------------------------------------


def write_mcap(path: Path, schema: str, topic: str, messages, **options) -> None:
    with path.open("wb") as stream:
        writer = Writer(stream, **options)
        writer.start()
        schema_id = writer.register_schema(schema, "jsonschema", b"{}")
        channel = writer.register_channel(topic, "json", schema_id)
        for time_ns, fields in messages:
            writer.add_message(channel, time_ns, json.dumps(fields).encode(), time_ns)
        writer.finish()


def foxglove(row):
    names = ("x", "y", "z", "w")
    return {
        "timestamp": {"sec": row[0] // 10**9, "nsec": row[0] % 10**9},
        "frame_id": "w",
        "pose": {
            "position": dict(zip(names, row[1], strict=False)),
            "orientation": dict(zip(names, row[2], strict=True)),
        },
    }


def test_foxglove_poses_come_back(tmp_path):
    write_mcap(tmp_path / "a.mcap", "foxglove.PoseInFrame", "/pose", [(row[0] + 9, foxglove(row)) for row in motion()])
    check(read_recording(tmp_path / "a.mcap"), motion())


def test_a_hapticd_log_gives_its_fresh_inputs(tmp_path):
    """The records of a log, written by the log's own channels; a tick without a new sample adds nothing."""
    from bridge.log.channels import CHANNELS
    from haptics.tables import RECORD

    rows = motion()
    records = np.zeros(2 * len(rows), RECORD)
    for i, record in enumerate(records):
        sample = record["input"]["sample"]
        sample["t_sample"], sample["position"], sample["orientation"] = rows[i // 2]
        record["input"]["fresh"] = i % 2 == 0
    channel = CHANNELS[0]
    messages = [(i, json.loads(text)) for i, text in enumerate(channel.encode(records))]
    write_mcap(tmp_path / "a.mcap", channel.schema_name, channel.topic, messages)
    recording = read_recording(tmp_path / "a.mcap")
    assert recording.channel == "/input"
    check(recording, rows)


def test_a_cut_mcap_is_read_up_to_there_and_says_so(tmp_path):
    messages = [(row[0], foxglove(row)) for row in motion(2000)]
    path, cut = tmp_path / "a.mcap", tmp_path / "cut.mcap"
    write_mcap(path, "foxglove.PoseInFrame", "/pose", messages, chunk_size=4096)
    whole = path.read_bytes()
    lengths = []
    rng = random.Random(5)
    for length in sorted([0, 5, 100, *(rng.randrange(len(whole)) for _ in range(25))]):
        cut.write_bytes(whole[:length])
        try:
            recording = read_recording(cut)
        except RecordingError as error:
            assert "cut.mcap" in str(error)
            lengths.append(0)
            continue
        lengths.append(len(recording))
        check(recording, motion(2000)[: len(recording)])
        if len(recording) < 2000:
            assert any("ends early" in repair for repair in recording.repairs)
    assert lengths == sorted(lengths), "a longer part never holds fewer samples"
    assert lengths[-1] > 1500


def test_mcap_of_other_things_is_told(tmp_path):
    write_mcap(tmp_path / "a.mcap", "something.Else", "/else", [(1, {"a": 1})])
    with pytest.raises(RecordingError, match=r"no topic holds poses \(found: `/else`\)"):
        read_recording(tmp_path / "a.mcap")
    write_mcap(tmp_path / "b.mcap", "foxglove.PoseInFrame", "/pose", [(1, {"pose": {"position": 5}})])
    with pytest.raises(RecordingError, match=r"on `/pose` is not a `foxglove\.PoseInFrame`"):
        read_recording(tmp_path / "b.mcap")
    (tmp_path / "c.mcap").write_bytes(random.Random(6).randbytes(3000))
    with pytest.raises(RecordingError, match=r"c\.mcap: not a whole, readable recording"):
        read_recording(tmp_path / "c.mcap")


# -- CSV and repairs ---------------------------------------------------------------------------------------------------


def csv_file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "a.csv"
    path.write_text(text)
    return path


def test_csv_comes_back_in_any_column_order_with_comments(tmp_path):
    lines = ["# made by hand", "qx, qy, qz, qw, z, y, x, Time_NS, note"]
    lines += [f"{q[0]!r},{q[1]!r},{q[2]!r},{q[3]!r},{p[2]!r},{p[1]!r},{p[0]!r},{t},a" for t, p, q in motion()]
    check(read_recording(csv_file(tmp_path, "\n".join(lines))), motion())


def test_csv_without_orientation_and_in_seconds(tmp_path):
    recording = read_recording(csv_file(tmp_path, "time_s,x,y,z\n0,0,0,0\n0.001,1,2,3\n"))
    assert recording.times_ns.tolist() == [0, 1_000_000]
    assert recording.orientations.tolist() == [[0, 0, 0, 1]] * 2


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "empty; the first line names the columns"),
        ("# only a comment\n", "empty"),
        ("x,y,z\n1,2,3\n", r"needed are time_s \(or time_ns\), x, y, z"),
        ("time_s,time_ns,x,y,z\n", "needed are"),
        ("time_s,x,y\n", "column z is missing"),
        ("time_s,x,y,z,qx\n", "column qy, qz, qw is missing"),
        ("time_s,x,x,y,z\n", "a column stands twice"),
        ("time_s,x,y,z\n0,0,0\n", "line 2: 3 cells, the header has 4"),
        ("time_s,x,y,z\n0,0,0,zero\n", "line 2: could not convert string to float: 'zero'"),
        ("time_s,x,y,z\nnan,0,0,0\n", "line 2: time_s is 'nan'"),
        ("time_ns,x,y,z\n0.5,0,0,0\n", "line 2: invalid literal for int"),
        ("time_s,x,y,z\n0,0,0,0\n", r"`rows` has 1 usable of 1 samples; a motion needs at least 2"),
    ],
)
def test_bad_csv_is_told_with_line_and_column(tmp_path, text, sentence):
    with pytest.raises(RecordingError, match=sentence) as caught:
        read_recording(csv_file(tmp_path, text))
    assert "a.csv" in str(caught.value)


def test_binary_garbage_as_csv_is_told(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"\xff\xfe\x00\x80" * 100)
    with pytest.raises(RecordingError, match="not a text file"):
        read_recording(path)


def test_repairs_are_made_and_told(tmp_path):
    rows = ["time_ns,x,y,z,qx,qy,qz,qw"]
    rows += ["1,1,0,0,0,0,0,1", "2,2,0,0,0,0,0,-1", "2,9,0,0,0,0,0,1", "4,4,0,0,0,0,0,2", "3,3,0,0,0,0,0,1"]
    rows += ["5,nan,0,0,0,0,0,1", "6,6,0,0,0,0,0,0", "7,7,inf,0,0,0,0,1", "8,8,0,0,0,0,-0.6,-0.8"]
    recording = read_recording(csv_file(tmp_path, "\n".join(rows)))
    assert recording.times_ns.tolist() == [1, 2, 3, 4, 8]
    assert recording.positions[:, 0].tolist() == [1, 2, 3, 4, 8]
    np.testing.assert_allclose(np.linalg.norm(recording.orientations, axis=1), 1, rtol=0, atol=1e-15)
    assert (np.sum(recording.orientations[1:] * recording.orientations[:-1], axis=1) > 0).all()
    told = " | ".join(recording.repairs)
    for part in ("2 of 9 samples dropped: a number is NaN", "1 of 7 samples dropped: the quaternion", "sorted by time"):
        assert part in told
    assert "1 of 6 samples dropped: the same time" in told and "1 quaternions were not of unit length" in told


def test_unknown_files_are_told(tmp_path):
    with pytest.raises(RecordingError, match=r"none\.bag: no such file"):
        read_recording(tmp_path / "none.bag")
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(RecordingError, match=r"the suffix `\.txt` is not known; a recording is one of ROS 1 bags"):
        read_recording(tmp_path / "a.txt")


# -- interpolation and placement ---------------------------------------------------------------------------------------


def recorded(positions, orientations=None) -> Recording:
    positions = np.asarray(positions, dtype=float)
    if orientations is None:
        orientations = np.tile((0.0, 0.0, 0.0, 1.0), (len(positions), 1))
    return Recording("test", "rows", np.arange(len(positions)) * 1_000_000, positions, orientations)


def test_between_samples_poses_are_interpolated_and_beyond_them_held():
    recording = recorded([(0, 0, 0), (1, 2, 4), (1, 2, 4)])
    np.testing.assert_allclose(recording.at(0.0005)[0], (0.5, 1, 2), rtol=0, atol=1e-15)
    np.testing.assert_allclose(recording.at(-1)[0], (0, 0, 0), rtol=0, atol=1e-15)
    np.testing.assert_allclose(recording.at(9)[0], (1, 2, 4), rtol=0, atol=1e-15)


unit = st.floats(-1, 1, allow_subnormal=False)
normals = st.tuples(unit, unit, unit).filter(lambda n: sum(x * x for x in n) > 1e-2)
clouds = st.lists(st.tuples(unit, unit, unit), min_size=4, max_size=20).filter(
    lambda points: (np.linalg.svd(np.asarray(points) - np.mean(points, axis=0))[1] > 1e-3).all()
)


@given(clouds, normals, st.booleans(), st.floats(0.0, 0.1), st.floats(0.01, 1.0))
def test_a_fitted_motion_lies_over_its_point_at_its_depth_within_its_extent(points, normal, flat, depth, extent):
    recording = recorded(points)
    point = np.array((0.3, -0.2, 0.5))
    placed = fit(recording, point, normal=normal, press_depth=depth, extent=extent, flat=flat).apply(recording)
    up = np.asarray(normal) / np.linalg.norm(normal)
    relative = placed.positions - point
    heights = relative @ up
    assert abs(heights.min() + depth) < 1e-12
    # across the surface: in its own two directions the motion is centred, and one of them is filled
    first = np.array((1.0, 0, 0)) if abs(up[0]) < 0.9 else np.array((0, 1.0, 0))
    first -= (first @ up) * up
    first /= np.linalg.norm(first)
    spread = relative @ np.stack((first, np.cross(up, first))).T
    np.testing.assert_allclose(spread.max(axis=0) + spread.min(axis=0), 0, atol=1e-9)
    assert abs(np.ptp(spread, axis=0).max() - extent) < 1e-9


def test_flat_lays_the_thinnest_direction_along_the_normal():
    rng = np.random.default_rng(1)
    recording = recorded(rng.normal(size=(500, 3)) * (0.001, 0.2, 0.1))
    placed = fit(recording, (0, 0, 0), flat=True).apply(recording)
    spread = np.ptp(placed.positions, axis=0)
    assert spread[2] < 0.02 < 0.2 < spread[:2].min()


def test_a_motion_over_a_box_stays_over_it():
    recording = recorded(np.random.default_rng(2).normal(size=(100, 3)))
    placed = fit_to_box(recording, (0, 0, 0), (2, 1, 0.3), press_depth=0.02, fill=0.5).apply(recording)
    assert (placed.positions[:, :2] >= (0.5 - 1e-9, 0.25 - 1e-9)).all()
    assert (placed.positions[:, :2] <= (1.5 + 1e-9, 0.75 + 1e-9)).all()
    assert abs(placed.positions[:, 2].min() - 0.28) < 1e-12


def test_a_placement_moves_positions_orientations_and_times():
    half = math.sqrt(0.5)
    recording = recorded([(1, 0, 0), (0, 1, 0)])
    placed = Placement(2.0, (0.0, 0.0, half, half), (0.0, 0.0, 1.0), speed=2.0).apply(recording)
    np.testing.assert_allclose(placed.positions, [(0, 2, 1), (-2, 0, 1)], atol=1e-15)
    np.testing.assert_allclose(placed.orientations, [(0, 0, half, half)] * 2, atol=1e-15)
    assert placed.times_ns.tolist() == [0, 500_000]


def test_bad_placements_are_told():
    for changes in ({"scale": 0.0}, {"scale": math.nan}, {"speed": -1.0}, {"rotation": (0.0, 0.0, 0.0, 2.0)}):
        with pytest.raises(ValueError, match="of a placement is"):
            Placement(**changes)
    with pytest.raises(ValueError, match="normal"):
        fit(recorded([(0, 0, 0), (1, 1, 1)]), (0, 0, 0), normal=(0, 0, 0))
    with pytest.raises(ValueError, match="cannot be scaled"):
        fit(recorded([(0, 0, 0), (0, 0, 1)]), (0, 0, 0), extent=0.1)
    with pytest.raises(ValueError, match="upper corner"):
        fit_to_box(recorded([(0, 0, 0), (1, 1, 1)]), (0, 0, 0), (1, -1, 1))


# -- the real ones -----------------------------------------------------------------------------------------------------


@pytest.mark.data
@pytest.mark.skipif(not VIRTUOSE.is_dir(), reason="needs the Virtuose recordings in ../shared/data/virtuose")
@pytest.mark.parametrize(
    ("name", "count"), [("downward", 10025), ("forward", 11784), ("left", 8228), ("upward_absolute", 11044)]
)
def test_the_virtuose_recordings_are_read_whole(name, count):
    """Counts and rates are those of the files' own index; the hand moves at some 0.1 to 0.7 m/s, as their notes say."""
    recording = read_recording(VIRTUOSE / f"{name}.bag")
    assert len(recording) == count and recording.channel == "/out_virtuose_physical_pose"
    assert (np.diff(recording.times_ns) > 0).all()
    assert abs(np.median(np.diff(recording.times_ns)) - 1e6) < 2e4
    assert 0.1 < recording.peak_speed < 0.7
    np.testing.assert_allclose(np.linalg.norm(recording.orientations, axis=1), 1, rtol=0, atol=1e-15)
