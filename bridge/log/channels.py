"""The channels of the log: which there are, what each holds of RECORD, and how events and poses look.

``/input``, ``/tick``, ``/contacts`` and ``/render`` together hold every field of RECORD exactly once, padding excluded,
so that reading gives back the same bits. ``/bodies`` holds the states of bodies that move: of all of them where writing
begins, then of those that changed. ``docs/log.md`` describes the same for readers in any language.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import orjson

from bridge.log.codec import Channel, Group, Node, nodes_of, object_schema, titled
from bridge.log.descriptions import choices
from haptics.states import EngagementState, Reason
from haptics.tables import RECORD

LOG_VERSION = 1
"""Of the channel layout; a reader refuses any other."""

PROFILE = "hapticd"
"""MCAP header profile, and the name of the metadata record that holds the versions."""

EVENTS_TOPIC = "/events"
DEVICE_POSE_TOPIC = "/device_pose"
PROXY_POSE_TOPIC = "/proxy_pose"
BODIES_TOPIC = "/bodies"
BODY_POSES_TOPIC = "/body_poses"
BODIES_METADATA = "bodies"
"""Metadata record of a log with bodies that move: ``ids`` (comma between), ``every`` (ticks per state written)."""
SCENE_FRAME = "scene"


def _make_channels() -> tuple[Channel, ...]:
    output, report = RECORD["output"], RECORD["output"]["report"]
    render = (
        "wrench",
        "render_position",
        "render_orientation",
        "render_twist",
        "stiffness",
        "damping",
        "feed_forward",
        "valid_for_ns",
        "slack",
        "planes",
        "plane_count",
        "pinned",
    )
    contact = ("path", "path_count", "contacts", "contact_count")

    def subset(dtype: np.dtype, path: str, keep: Callable[[str], bool]) -> tuple[Node, ...]:
        assert dtype.names is not None
        return tuple(nodes_of(dtype, path, [name for name in dtype.names if not keep(name)]))

    scalars = subset(report, "output.report", lambda name: name not in contact)
    return (
        Channel(
            "/input",
            "hapticd.Input",
            "All that entered the tick from outside: the device sample as received, the command, the budget of work",
            (
                ("input", tuple(nodes_of(RECORD["input"], "input"))),
                ("", (Group("budget", "budget", "budget", nodes_of(RECORD["budget"], "budget")),)),
            ),
        ),
        Channel(
            "/tick",
            "hapticd.Tick",
            "What the tick decided and measured, besides contacts and render",
            (
                ("output", subset(output, "output", lambda name: name not in (*render, "report"))),
                ("output", (Group("report", "report", "output.report", scalars),)),
                ("", (Group("timing", "timing", "timing", nodes_of(RECORD["timing"], "timing")),)),
            ),
        ),
        Channel(
            "/contacts",
            "hapticd.Contacts",
            "Contacts of the tick and the way of the tool tip within it",
            (("output.report", subset(report, "output.report", lambda name: name in contact)),),
        ),
        Channel(
            "/render",
            "hapticd.Render",
            "What went to the device: wrench, and the local impedance behind it, all in the device frame",
            (("output", subset(output, "output", lambda name: name in render)),),
        ),
    )


CHANNELS = _make_channels()
"""The four channels that hold RECORD, in the order in which a tick's messages are written."""


def _pose_schema(name: str, text: str, wrap: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    def numbers(*names: str) -> dict[str, Any]:
        return object_schema({name: {"type": "number"} for name in names})

    time = object_schema(
        {
            "sec": {"type": "integer", "minimum": 0},
            "nsec": {"type": "integer", "minimum": 0, "maximum": 999_999_999},
        }
    )
    pose = object_schema({"position": numbers("x", "y", "z"), "orientation": numbers("x", "y", "z", "w")})
    pose["title"] = "foxglove.Pose"
    return titled(
        name,
        text,
        object_schema({"timestamp": {"title": "time", **time}, "frame_id": {"type": "string"}, **wrap(pose)}),
    )


POSE_SCHEMA = _pose_schema("foxglove.PoseInFrame", "A pose at a time in a named frame", lambda pose: {"pose": pose})
"""The schema that viewers know by the name foxglove.PoseInFrame."""

POSES_SCHEMA = _pose_schema(
    "foxglove.PosesInFrame",
    "Poses at a time in a named frame",
    lambda pose: {"poses": {"type": "array", "items": pose}},
)
"""The one that they know by the name foxglove.PosesInFrame."""

EVENT_SCHEMA = titled(
    "hapticd.Event",
    "A change of the engagement state, or a notice of a process, as on the events socket; numbered per source",
    object_schema(
        {
            "v": {"type": "integer", "description": "protocol version"},
            "source": {"type": "string", "description": "servo for state changes; else the process that tells"},
            "seq": {"type": "integer", "minimum": 0, "description": "number within the source"},
            "tick": {"type": "integer", "minimum": 0, "description": "newest tick when it happened"},
            "t": {"type": "integer", "description": "[ns] when, monotonic clock of the machine"},
            "code": {"type": "string", "description": "short word, such as state_changed, records_lost, disk_full"},
            "text": {"type": "string", "description": "one sentence"},
            "from": {"type": "integer", "description": "state_changed: " + choices(EngagementState)},
            "from_name": {"type": "string"},
            "to": {"type": "integer", "description": "state_changed: state after it"},
            "to_name": {"type": "string"},
            "reason": {"type": "integer", "description": "state_changed: " + choices(Reason)},
            "reason_name": {"type": "string"},
        },
        optional=("from", "from_name", "to", "to_name", "reason", "reason_name"),
    ),
)
"""Notices carry further keys by code, as on the events socket."""


def encode_poses(records: np.ndarray, which: str, wall_offset_ns: int) -> list[bytes | None]:
    """Return foxglove.PoseInFrame messages of ``device`` or ``proxy`` (scene frame), one per record.

    ``wall_offset_ns`` is added to the monotonic start of the tick to get wall-clock time. None stands where there is no
    pose to draw: numbers that are not finite, or a device that has not sent a sample yet.
    """
    positions = records["output"][f"{which}_position"]
    orientations = records["output"][f"{which}_orientation"]
    times = message_times_ns(records, wall_offset_ns).tolist()
    drawn = np.isfinite(positions).all(axis=1) & np.isfinite(orientations).all(axis=1)
    if which == "device":
        drawn &= records["input"]["has_sample"] != 0
    return [
        orjson.dumps({**_in_scene(time), "pose": _pose(p, q)}) if good else None
        for good, time, p, q in zip(drawn.tolist(), times, positions.tolist(), orientations.tolist(), strict=True)
    ]


def encode_body_poses(states: np.ndarray, time_ns: int) -> bytes | None:
    """Return foxglove.PosesInFrame of (n,) BODY_SAMPLE at a time of the wall clock; None where one is not finite."""
    positions, orientations = states["position"], states["orientation"]
    if not (np.isfinite(positions).all() and np.isfinite(orientations).all()):
        return None
    poses = [_pose(p, q) for p, q in zip(positions.tolist(), orientations.tolist(), strict=True)]
    return orjson.dumps({**_in_scene(time_ns), "poses": poses})


def _in_scene(time_ns: int) -> dict[str, Any]:
    timestamp = {"sec": time_ns // 1_000_000_000, "nsec": time_ns % 1_000_000_000}
    return {"timestamp": timestamp, "frame_id": SCENE_FRAME}


def _pose(p: list[float], q: list[float]) -> dict[str, Any]:
    return {
        "position": {"x": p[0], "y": p[1], "z": p[2]},
        "orientation": {"x": q[0], "y": q[1], "z": q[2], "w": q[3]},
    }


def message_times_ns(records: np.ndarray, wall_offset_ns: int) -> np.ndarray:
    """Return (n,) log time of each record's messages: the start of its tick on the wall clock, ns since 1970."""
    return np.maximum(records["timing"]["started_ns"] + wall_offset_ns, 0)
