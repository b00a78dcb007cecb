"""The channels of the log: one table from RECORD to JSON messages and back, and the JSON Schema of each.

``/input``, ``/tick``, ``/contacts`` and ``/render`` together hold every field of RECORD exactly once, padding excluded,
so that reading gives back the same bits. ``/bodies`` holds the states of bodies that move: of all of them where writing
begins, then of those that changed. ``docs/log.md`` describes the same for readers in any language.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson

from haptics.link_codes import METHODS, LinkReason, LinkState
from haptics.states import CommandKind, CommandResult, EngagementState, Reason
from haptics.tables import BODY_SAMPLE, RECORD

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

NON_FINITE = "non_finite"
"""Key of the list that holds the bits of NaN and infinities, which JSON cannot."""


class ChannelError(ValueError):
    """A message does not have the form that its channel prescribes."""


def _choices(kind: type) -> str:
    return ", ".join(f"{item.value} {item.name}" for item in kind)  # type: ignore[attr-defined]


_EXACT = "up to 64 bits: read it with a parser that keeps integers exact"

_METHODS = ", ".join(f"{number} {name}" for name, number in METHODS.items())

_PEER: dict[str, tuple[str, str]] = {
    "session": ("", "of the sender's start; decimal text, because it uses up to 64 bits"),
    "seq": ("", f"counts what was sent, from 1; {_EXACT}"),
    "t_sent": ("ns", f"when it left, sender's monotonic clock; {_EXACT}"),
    "t_echo": ("ns", f"t_sent of the newest message that the sender had got, 0 for none; {_EXACT}"),
    "t_held": ("ns", f"how long the sender had had it; {_EXACT}"),
    "position": ("m", "of the sender's hand: its image, scene axes, device metres"),
    "orientation": ("", "of the same, quaternion [x, y, z, w]"),
    "twist": ("m/s, rad/s", "of the same, [linear, angular], scene axes, device metres"),
    "wrench": ("N, N·m", "what the sender's surroundings do to its hand, scene axes"),
    "wave": ("sqrt(W) s", "integral of the wave that it sends, scene axes"),
    "wave_energy": ("J", "what that wave has carried since the session began"),
    "energy": ("J", "what the sender's tank has handed over since the session began"),
    "impedance": ("N·s/m, N·m·s/rad", "of its waves"),
    "method": ("", _METHODS),
    "active": ("", "1: the sender is engaged, and its hand is felt"),
}

_LINK: dict[str, tuple[str, str]] = {
    **{f"input.peer.message.{name}": said for name, said in _PEER.items()},
    "input.peer.age_ns": ("ns", "since that message arrived; meaningless while there is none"),
    "input.peer.way_ns": ("ns", "way there and back, as that message tells; 0: not known"),
    "input.peer.received": ("", f"messages of the other end in total; {_EXACT}"),
    "input.peer.lost": ("", f"lost in total, by the gaps in their numbers; {_EXACT}"),
    "input.peer.fresh": ("", "1: a new message of the other end arrived for this tick"),
    "output.link.wrench": ("N, N·m", "part of coupling_wrench that the link makes, device frame"),
    **{f"output.link.message.{name}": said for name, said in _PEER.items()},
    "output.link.energy": ("J", "handed to the hand by the link"),
    "output.link.credit": ("J", "left in its tank, or of its waves"),
    "output.link.distance": ("m", "between the own hand and the other as it counts, at the device"),
    "output.link.shared": ("", "share of the other hand in where the tool is wanted, ramp included"),
    "output.link.gain": ("", "ramp, 0..1"),
    "output.link.state": ("", _choices(LinkState)),
    "output.link.reason": ("", "why the link is not up: " + _choices(LinkReason)),
    "output.link.send": ("", "1: the message is to go out"),
    "timing.peer_rejected": ("", "messages on the peer socket that were refused, in total"),
    "timing.peer_reject_code": ("", "why the last of them was refused (table of codes in the protocol)"),
    "timing.peer_dropped": ("", "messages for the other end that could not be sent, in total"),
}
for _name in ("session", "t_sent", "t_echo", "t_held"):
    _LINK[f"output.link.message.{_name}"] = (_PEER[_name][0], "filled in when the message goes out; 0 in a log")
_LINK["output.link.message.session"] = ("", "filled in when the message goes out; decimal text, 0 in a log")

_IN_ROWS = {"output.report.path": "position", "output.planes": "plane"}
"""What a row of a table of numbers is called."""

DESCRIPTIONS: dict[str, tuple[str, str]] = {
    **_LINK,
    "tick": ("", f"number of the tick; {_EXACT}"),
    "input.sample.session": ("", "session that sent the sample; decimal text, because it uses up to 64 bits"),
    "input.sample.seq": ("", f"number of the sample within its session; {_EXACT}"),
    "input.sample.t_sample": ("ns", f"when the pose was measured, client's monotonic clock; {_EXACT}"),
    "input.sample.position": ("m", "device pose, device frame"),
    "input.sample.orientation": ("", "device pose, quaternion [x, y, z, w], device frame"),
    "input.sample.twist": ("m/s, rad/s", "[linear, angular], device frame; zero when has_twist is 0"),
    "input.sample.buttons": ("", "bit mask, bit 0 is the main button"),
    "input.sample.has_twist": ("", "1: the client sent a twist"),
    "input.sample.deadman": ("", "1: the hand is known to be on the device"),
    "input.sample.valid": ("", "0: the device says that this pose must not be used"),
    "input.command.id": ("", f"number of the command, 0 for none; {_EXACT}"),
    "input.command.session": ("", "session that asked; decimal text, because it uses up to 64 bits"),
    "input.command.values": ("", "arguments, meaning by kind"),
    "input.command.kind": ("", _choices(CommandKind)),
    "input.age_ns": ("ns", "age of the sample at this tick; meaningless while has_sample is 0"),
    "input.rejected": ("", "messages refused since the last tick"),
    "input.reject_code": ("", "why the last of them was refused (table of codes in the protocol)"),
    "input.fresh": ("", "1: a new sample arrived for this tick"),
    "input.has_sample": ("", "1: the owner has sent at least one sample since its lease began"),
    "input.supervisor_lost": ("", "1: the supervisor is gone"),
    "budget.units": ("", "node visits and triangle tests allowed in this tick"),
    "budget.passes": ("", "straight passes of the tip allowed"),
    "budget.sweeps": ("", "contact-solver sweeps allowed per pass, and per island of bodies"),
    "budget.visits": ("", "contacts that the solver may visit, all sweeps of all islands together; 0: any number"),
    "output.device_position": ("m", "image of the device, scene"),
    "output.device_orientation": ("", "image of the device, quaternion [x, y, z, w], scene"),
    "output.device_velocity": ("m/s", "of the device image, scene"),
    "output.velocity_delay_s": ("s", "delay of the velocity estimator; 0 when the client sent the twist"),
    "output.proxy_position": ("m", "centre of the tool tip, scene"),
    "output.proxy_orientation": ("", "of the tool, quaternion [x, y, z, w], scene"),
    "output.wrench": ("N, N·m", "[force, torque] that a plain client applies, device frame, about the coupling point"),
    "output.coupling_wrench": ("N, N·m", "before ramp, slew limit and saturation, device frame"),
    "output.render_position": ("m", "impedance: proxy pose at the coupling point, device frame"),
    "output.render_orientation": ("", "impedance: proxy pose, quaternion [x, y, z, w], device frame"),
    "output.render_twist": ("m/s, rad/s", "impedance: proxy twist [linear, angular], device frame"),
    "output.stiffness": ("N/m, N·m/rad", "impedance: diagonal, device frame, ramp included"),
    "output.damping": ("N·s/m, N·m·s/rad", "impedance: diagonal, device frame, ramp included"),
    "output.feed_forward": ("N, N·m", "impedance: added to the spring"),
    "output.effects": ("N, N·m", "part of coupling_wrench that surfaces, regions, soft fixtures and bursts make"),
    "output.energy": ("J", "energy handed to the hand; positive: the port has produced"),
    "output.gain": ("", "ramp, 0..1"),
    "output.owner": ("", "session that holds the lease, 0 for none; decimal text, because it uses up to 64 bits"),
    "output.event_seq": ("", "number of the last event; one happened in this tick when event_from != event_to"),
    "output.command_id": ("", "command taken in this tick, 0 for none"),
    "output.valid_for_ns": ("ns", "use the impedance no longer than this"),
    "output.seq": ("", f"number of the sample that this tick used; {_EXACT}"),
    "output.state": ("", _choices(EngagementState)),
    "output.reason": ("", "of the last transition: " + _choices(Reason)),
    "output.event_from": ("", "state before the event of this tick (numbers as in state)"),
    "output.event_to": ("", "state after it"),
    "output.command_result": ("", _choices(CommandResult)),
    "output.command_reason": ("", "why the command was refused (numbers as in reason)"),
    "output.limited": (
        "",
        "bits: 1 saturated, 2 slew-limited, 4 not finite, 8 not sent to the device (not engaged), 16 passivity damps, "
        "32 slow samples lower the stiffness",
    ),
    "output.stopped": ("", "1: shutdown was asked for and forces are off"),
    "output.energy_linear": ("J", "the part of force in energy"),
    "output.energy_angular": ("J", "the part of torque in energy"),
    "output.passivity_wrench": ("N, N·m", "what the passivity controller adds, before ramp and limits, device frame"),
    "output.passivity_damping": ("N·s/m, N·m·s/rad", "the controller's damping, linear and angular, ramp included"),
    "output.owed_linear": ("J", "what holding the force between samples has produced and is not yet taken back"),
    "output.owed_angular": ("J", "the same of the torque"),
    "output.dissipated_linear": ("J", "what the controller has taken back since the lease began"),
    "output.dissipated_angular": ("J", "the same by torque"),
    "output.rate_share": ("", "of the stiffness that is felt, for the rate of the samples; 1 at the tick's"),
    "output.sample_period_s": ("s", "of the samples that were used; 0 while there are too few"),
    "output.goal_position": ("m", "where the mechanics were asked to bring the tip centre: the image, or a fixture's"),
    "output.goal_orientation": ("", "of that goal, quaternion [x, y, z, w], scene"),
    "output.slack": ("m", "impedance: part of the stretch that no plane holds, device frame"),
    "output.planes": ("m", "impedance: of contacts, [n, c] each: a tool at y is held to n . y >= c; device frame"),
    "output.plane_count": ("", "impedance: planes that are there"),
    "output.pinned": ("", "impedance: 1 where the tool is taken to stand until the next tick"),
    "output.report.smallest_gap": (
        "m",
        "smallest distance from tip or tool mesh to a surface among the contacts; -1 without contacts",
    ),
    "output.report.fraction": ("", "part of the last wanted pass that was executed, 0..1"),
    "output.report.residual": ("m", "worst violation left by the contact solve"),
    "output.report.body_fraction": ("", "least part of its motion that a body which moves executed, 0..1"),
    "output.report.body_gap": ("m", "smallest distance of bodies among their contacts with each other; -1 without any"),
    "output.report.body_residual": ("", "worst violation left by the contact solve of an island, natural-map residual"),
    "output.report.energy": ("J", "of the free bodies: kinetic and potential, the latter 0 at the scene's origin"),
    "output.report.bodies_digest": (
        "",
        "of poses and velocities of all bodies that move, after the tick; decimal text, because it uses 64 bits",
    ),
    "output.report.body_contacts": ("", "contacts of bodies with each other"),
    "output.report.asleep": ("", "contacts of bodies at rest that were not solved again, of body_contacts"),
    "output.report.islands": (
        "",
        "groups of bodies that contacts join, less those that were not solved again",
    ),
    "output.report.stopped": ("", "bodies that were stopped before the end of their motion"),
    "output.report.path": ("m", "way points of the tip centre in this tick, scene, the start included"),
    "output.report.path_count": ("", "way points"),
    "output.report.contact_count": ("", "contacts"),
    "output.report.units_used": ("", "node visits and triangle tests spent"),
    "output.report.passes_used": ("", "straight passes made"),
    "output.report.sweeps_used": ("", "contact-solver sweeps made"),
    "output.report.degraded": (
        "",
        "bits: 1 sweep cut, 2 passes ran out, 4 contacts may be missing, 8 solver above its tolerance",
    ),
    "output.report.contacts": ("", "contacts of this tick, nearest first"),
    "output.report.contacts.point": ("m", "nearest point of the body, scene"),
    "output.report.contacts.normal": ("", "unit, from the body to the tip centre or the tool mesh, scene"),
    "output.report.contacts.displacement": ("m", "what the contact pushes the tip away from its goal, scene"),
    "output.report.contacts.gap": ("m", "distance from the tip sphere or the tool mesh to the body"),
    "output.report.contacts.body_id": ("", "body, in the order of assembly.json"),
    "output.report.contacts.face_id": ("", "face of the imported mesh"),
    "output.report.contacts.feature": ("", "0..2 vertex, 3..5 edge (feature-3 to feature-2), 6 face interior"),
    "output.report.contacts.sliding": ("", "1: the contact slips in this tick"),
    "output.report.contacts.tool_face_id": ("", "of a tool mesh, else 0: face of the imported mesh"),
    "output.report.contacts.tool_feature": ("", "as feature, on the tool's face"),
    "output.report.contacts.age": ("", "of a tool mesh, else 0: ticks for which this pair of features has been listed"),
    "timing.planned_ns": ("ns", "when the tick was due, monotonic clock of the machine"),
    "timing.started_ns": ("ns", "when it started, monotonic"),
    "timing.computed_ns": ("ns", "after the kernels, monotonic"),
    "timing.sent_ns": ("ns", "after the reply, monotonic"),
    "timing.t_received": ("ns", "arrival of the sample, monotonic"),
    "timing.missed": ("", "periods skipped before this tick because the last one was late"),
    "timing.dropped_renders": ("", "renders dropped in total: the client did not read"),
    "timing.rejected_total": ("", "messages refused in total"),
    "bodies": ("", "states after the tick of bodies that move: of those whose state is not the one logged last"),
    "bodies.body_id": ("", "body, in the order of assembly.json"),
    "bodies.position": ("m", "of the mesh's origin, scene"),
    "bodies.orientation": ("", "of the mesh, quaternion [x, y, z, w], scene"),
    "bodies.linear": ("m/s", "velocity of the centre of mass (a kinematic body: of the mesh's origin), scene"),
    "bodies.angular": ("rad/s", "angular velocity, scene"),
    "timing.governed_total": ("", "ticks so far with less than the configured budget, to keep the period"),
}
"""Unit and meaning of every field by its path in RECORD."""

_AS_TEXT = {
    "input.sample.session",
    "input.command.session",
    "input.peer.message.session",
    "output.link.message.session",
    "output.owner",
    "output.report.bodies_digest",
}
"""Any 64 bits: a reader whose numbers are doubles would confuse two of them."""

Label = Callable[[int], tuple[int, str]]
"""Row of the array in hand -> (record it belongs to, path in that record's message)."""


class _Batch:
    """What an encoding pass finds besides the values: NaN and infinities, by record."""

    def __init__(self) -> None:
        self.non_finite: dict[int, list[dict[str, str]]] = {}

    def note(self, record: int, field: str, value: float) -> None:
        bits = int(np.float64(value).view(np.uint64))
        self.non_finite.setdefault(record, []).append({"field": field, "bits": f"0x{bits:016x}"})


class _Node:
    """One key of a message: how it is written, read and described."""

    def __init__(self, key: str, field: str, path: str):
        self.key = key
        self.field = field
        self.path = path

    def encode(self, parent: np.ndarray, label: Label, batch: _Batch) -> list[Any]:
        raise NotImplementedError

    def decode(self, values: list[Any], parent: np.ndarray) -> None:
        raise NotImplementedError

    def schema(self) -> dict[str, Any]:
        raise NotImplementedError

    def describe(self, schema: dict[str, Any]) -> dict[str, Any]:
        unit, text = DESCRIPTIONS.get(self.path, ("", ""))
        if unit:
            schema["description"] = f"[{unit}] {text}"
        elif text:
            schema["description"] = text
        return schema


class _Number(_Node):
    """A number or a flat list of numbers."""

    def __init__(self, key: str, field: str, path: str, base: np.dtype, shape: tuple[int, ...]):
        super().__init__(key, field, path)
        self.base = base
        self.shape = shape
        self.real = base.kind == "f"
        self.text = path in _AS_TEXT

    def encode(self, parent: np.ndarray, label: Label, batch: _Batch) -> list[Any]:
        values = parent[self.field] if self.field else parent
        if self.text:
            return [str(value) for value in values.tolist()]
        if self.real:
            finite = np.isfinite(values)
            if not finite.all():
                for where in np.argwhere(~finite):
                    record, prefix = label(int(where[0]))
                    index = "".join(f"[{i}]" for i in where[1:])
                    batch.note(record, f"{prefix}{self.key}{index}", values[tuple(where)])
                values = np.where(finite, values, 0.0)
        return values.tolist()

    def decode(self, values: list[Any], parent: np.ndarray) -> None:
        if self.text:
            if not all(type(value) is str and value.isascii() and value.isdigit() for value in values):
                raise ChannelError(f"{self.key} is not a whole number written as text")
            values = [int(value) for value in values]
        try:
            if self.real:
                array = np.array(values)
                good = array.dtype.kind in "fiu"
            else:
                good = set(map(type, values)) <= {int}
                array = np.array(values, dtype=self.base) if good else np.empty(0)
        except (ValueError, OverflowError, TypeError):
            good = False
        if not good or array.shape != (len(values), *self.shape):
            raise ChannelError(f"{self.key} is not {self._expectation()}")
        if self.field:
            parent[self.field] = array
        else:
            parent[...] = array

    def _expectation(self) -> str:
        one = "a finite number" if self.real else f"a whole number that fits {self.base.name}"
        return f"a list of {self.shape[0]} numbers" if self.shape else one

    def schema(self) -> dict[str, Any]:
        if self.text:
            item: dict[str, Any] = {"type": "string", "pattern": "^[0-9]{1,20}$"}
        elif self.real:
            item = {"type": "number"}
        else:
            limits = np.iinfo(self.base)
            item = {"type": "integer", "minimum": int(limits.min), "maximum": int(limits.max)}
        if self.shape:
            item = {"type": "array", "items": item, "minItems": self.shape[0], "maxItems": self.shape[0]}
        return self.describe(item)


class _Group(_Node):
    """A nested object."""

    def __init__(self, key: str, field: str, path: str, children: Sequence[_Node]):
        super().__init__(key, field, path)
        self.children = tuple(children)
        self.names = tuple(child.key for child in self.children)

    def encode(self, parent: np.ndarray, label: Label, batch: _Batch) -> list[Any]:
        inner = parent[self.field] if self.field else parent

        def nested(row: int) -> tuple[int, str]:
            record, prefix = label(row)
            return record, f"{prefix}{self.key}."

        columns = [child.encode(inner, nested, batch) for child in self.children]
        return [dict(zip(self.names, row, strict=True)) for row in zip(*columns, strict=True)]

    def decode(self, values: list[Any], parent: np.ndarray) -> None:
        inner = parent[self.field] if self.field else parent
        for child in self.children:
            child.decode(_pick(values, child.key), inner)

    def schema(self) -> dict[str, Any]:
        return self.describe(_object({child.key: child.schema() for child in self.children}))


class _Rows(_Node):
    """A list of objects, of a table with a fixed number of rows of which the first ones are used."""

    def __init__(self, key: str, field: str, path: str, count: str, capacity: int, row: _Row):
        super().__init__(key, field, path)
        self.count = count
        self.capacity = capacity
        self.row = row

    def encode(self, parent: np.ndarray, label: Label, batch: _Batch) -> list[Any]:
        table = np.ascontiguousarray(parent[self.field])
        records = len(table)
        counts = np.clip(parent[self.count].astype(np.int64), 0, self.capacity)
        # Rows after the count are zero by contract. Should that ever be broken, the log keeps them, to show what was.
        raw = table.reshape(records, -1).view(np.uint8).reshape(records, self.capacity, -1)
        filled: np.ndarray = (raw != 0).any(axis=2)
        last = self.capacity - np.argmax(filled[:, ::-1], axis=1)
        counts = np.maximum(counts, np.where(filled.any(axis=1), last, 0))
        used = np.arange(self.capacity) < counts[:, None]
        owners, rows = np.nonzero(used)

        def nested(row: int) -> tuple[int, str]:
            record, prefix = label(int(owners[row]))
            return record, f"{prefix}{self.key}[{rows[row]}]."

        objects = self.row.encode_rows(table[used], nested, batch)
        ends = np.cumsum(counts).tolist()
        return [objects[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]

    def decode(self, values: list[Any], parent: np.ndarray) -> None:
        if not all(type(value) is list and len(value) <= self.capacity for value in values):
            raise ChannelError(f"{self.key} is not a list of at most {self.capacity} objects")
        counts = np.array([len(value) for value in values], dtype=np.int64)
        used = np.arange(self.capacity) < counts[:, None]
        flat = [row for value in values for row in value]
        table = parent[self.field]
        rows = np.zeros(len(flat), dtype=table.dtype) if table.dtype.names else np.zeros((len(flat), table.shape[-1]))
        if flat:
            self.row.decode_rows(flat, rows)
        table[used] = rows

    def schema(self) -> dict[str, Any]:
        return self.describe({"type": "array", "items": self.row.schema(), "maxItems": self.capacity})


class _Row(_Group):
    """One row of a table."""

    def encode_rows(self, rows: np.ndarray, label: Label, batch: _Batch) -> list[Any]:
        columns = [child.encode(rows, label, batch) for child in self.children]
        return [dict(zip(self.names, row, strict=True)) for row in zip(*columns, strict=True)]

    def decode_rows(self, values: list[Any], rows: np.ndarray) -> None:
        for child in self.children:
            child.decode(_pick(values, child.key), rows)


def _pick(values: list[Any], key: str) -> list[Any]:
    try:
        return [value[key] for value in values]
    except (KeyError, TypeError, IndexError):
        raise ChannelError(f"{key} is missing") from None


def _object(properties: dict[str, Any], optional: Sequence[str] = ()) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": [key for key in properties if key not in optional],
    }


def _nodes(dtype: np.dtype, path: str, skip: Sequence[str] = ()) -> list[_Node]:
    assert dtype.fields is not None and dtype.names is not None
    return [
        _node(name, dtype.fields[name][0], f"{path}.{name}" if path else name)
        for name in dtype.names
        if name != "padding" and name not in skip
    ]


def _node(name: str, dtype: np.dtype, path: str) -> _Node:
    if dtype.names is not None:
        return _Group(name, name, path, _nodes(dtype, path))
    base, shape = dtype.subdtype or (dtype, ())
    if base.names is not None:
        return _Rows(
            name, name, path, f"{name.removesuffix('s')}_count", shape[0], _Row("", "", "", _nodes(base, path))
        )
    if len(shape) == 2:
        # A list of lists would be shorter, but viewers that build columns from a schema cannot take one.
        row = _Row("", "", "", [_Number(_IN_ROWS[path], "", "", base, shape[1:])])
        return _Rows(name, name, path, f"{name.removesuffix('s')}_count", shape[0], row)
    return _Number(name, name, path, base, shape)


@dataclass(frozen=True)
class Channel:
    """One channel of the log that holds a part of RECORD."""

    topic: str
    schema_name: str
    description: str
    parts: tuple[tuple[str, tuple[_Node, ...]], ...]
    """(path of the parent in RECORD, its keys in the message)"""

    def encode(self, records: np.ndarray) -> list[bytes]:
        """Return one JSON message per record; ``records`` (n,) RECORD."""
        batch = _Batch()
        names: list[str] = ["tick"]
        columns: list[list[Any]] = [records["tick"].tolist()]
        for path, nodes in self.parts:
            parent = _parent(records, path)
            for node in nodes:
                names.append(node.key)
                columns.append(node.encode(parent, lambda row: (row, ""), batch))
        messages = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        for record, found in batch.non_finite.items():
            messages[record][NON_FINITE] = found
        return [orjson.dumps(message) for message in messages]

    def decode(self, messages: Sequence[dict[str, Any]], records: np.ndarray) -> None:
        """Fill this channel's part of ``records`` (n,) RECORD, zeroed, from as many parsed messages.

        Raises ChannelError naming the key that is missing or of the wrong form.
        """
        for message in messages:
            for item in message.get(NON_FINITE, ()):
                _restore(message, item)
        records["tick"] = ticks_of(messages)
        for path, nodes in self.parts:
            parent = _parent(records, path)
            for node in nodes:
                node.decode(_pick(list(messages), node.key), parent)

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema (draft 2020-12) of this channel's messages."""
        tick = _Number("tick", "tick", "tick", RECORD["tick"], ())
        properties: dict[str, Any] = {"tick": tick.schema()}
        for _, nodes in self.parts:
            properties |= {node.key: node.schema() for node in nodes}
        properties[NON_FINITE] = _non_finite_schema()
        return _titled(self.schema_name, self.description, _object(properties, optional=(NON_FINITE,)))

    def record_paths(self) -> list[str]:
        """Return the paths in RECORD of the numbers that this channel holds (rows without their numbers)."""

        def walk(node: _Node) -> list[str]:
            if isinstance(node, _Group):
                return [path for child in node.children for path in walk(child)]
            if isinstance(node, _Rows):
                below = [path for child in node.row.children for path in walk(child)]
                return [path or node.path for path in below]
            return [node.path]

        return [path for _, nodes in self.parts for node in nodes for path in walk(node)]


def _parent(records: np.ndarray, path: str) -> np.ndarray:
    for name in path.split(".") if path else ():
        records = records[name]
    return records


def _restore(message: dict[str, Any], item: Any) -> None:
    """Put one non-finite number back in its place in a parsed message."""
    try:
        tokens: list[str | int] = [
            int(token) if token.isdigit() else token for token in re.findall(r"[^.\[\]]+", item["field"])
        ]
        target: Any = message
        for token in tokens[:-1]:
            target = target[token]
        target[tokens[-1]] = struct.unpack("<d", int(item["bits"], 16).to_bytes(8, "little"))[0]
    except (KeyError, IndexError, TypeError, ValueError, OverflowError):
        raise ChannelError(f"an entry of {NON_FINITE} names no field of the message: {item!r}") from None


def ticks_of(messages: Sequence[Any]) -> list[int]:
    """Return the tick numbers of parsed messages; raises ChannelError when one has none."""
    ticks = [message.get("tick") if isinstance(message, dict) else None for message in messages]
    if not all(type(tick) is int and 0 <= tick < 2**64 for tick in ticks):
        raise ChannelError("tick is missing or not a whole number")
    return ticks  # type: ignore[return-value]


def _titled(name: str, description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": name,
        "description": description,
        **schema,
    }


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

    def subset(dtype: np.dtype, path: str, keep: Callable[[str], bool]) -> tuple[_Node, ...]:
        assert dtype.names is not None
        return tuple(_nodes(dtype, path, [name for name in dtype.names if not keep(name)]))

    scalars = subset(report, "output.report", lambda name: name not in contact)
    return (
        Channel(
            "/input",
            "hapticd.Input",
            "All that entered the tick from outside: the device sample as received, the command, the budget of work",
            (
                ("input", tuple(_nodes(RECORD["input"], "input"))),
                ("", (_Group("budget", "budget", "budget", _nodes(RECORD["budget"], "budget")),)),
            ),
        ),
        Channel(
            "/tick",
            "hapticd.Tick",
            "What the tick decided and measured, besides contacts and render",
            (
                ("output", subset(output, "output", lambda name: name not in (*render, "report"))),
                ("output", (_Group("report", "report", "output.report", scalars),)),
                ("", (_Group("timing", "timing", "timing", _nodes(RECORD["timing"], "timing")),)),
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

LOGGED_BODY = np.dtype([("body_id", "i4"), *((name, BODY_SAMPLE[name]) for name in BODY_SAMPLE.names or ())])
"""A body's state with its id."""

_BODY = _Row("", "", "", _nodes(LOGGED_BODY, "bodies"))
_BODY_WORDS = BODY_SAMPLE.itemsize // 8


def encode_bodies(ticks: np.ndarray, states: np.ndarray, body_ids: Sequence[int]) -> list[bytes]:
    """Return one JSON message of ``/bodies`` per tick: the first with all bodies, the others with what changed.

    ticks: (m,); states: (m, n) BODY_SAMPLE, contiguous; body_ids: (n,). A body has changed when any bit of its state
    is another than in the row before.
    """
    words = states.reshape(-1).view(np.uint64).reshape(len(ticks), len(body_ids), _BODY_WORDS)
    changed = np.ones(words.shape[:2], bool)
    changed[1:] = (words[1:] != words[:-1]).any(axis=2)
    owners, which = np.nonzero(changed)
    rows = np.zeros(len(owners), LOGGED_BODY)
    rows["body_id"] = np.asarray(body_ids)[which]
    chosen = states[changed]
    for name in BODY_SAMPLE.names or ():
        rows[name] = chosen[name]
    counts = changed.sum(axis=1)
    starts = np.cumsum(counts) - counts
    batch = _Batch()

    def label(row: int) -> tuple[int, str]:
        return int(owners[row]), f"bodies[{row - int(starts[owners[row]])}]."

    objects = _BODY.encode_rows(rows, label, batch)
    messages: list[dict[str, Any]] = []
    for tick, start, count in zip(ticks.tolist(), starts.tolist(), counts.tolist(), strict=True):
        messages.append({"tick": tick, "bodies": objects[start : start + count]})
    for row, found in batch.non_finite.items():
        messages[row][NON_FINITE] = found
    return [orjson.dumps(message) for message in messages]


def decode_bodies(messages: Sequence[dict[str, Any]]) -> tuple[np.ndarray, np.ndarray]:
    """Return (counts (m,) of bodies in each of m parsed messages of ``/bodies``, all of them as LOGGED_BODY).

    Raises ChannelError naming the key that is missing or of the wrong form.
    """
    for message in messages:
        for item in message.get(NON_FINITE, ()):
            _restore(message, item)
    lists = _pick(list(messages), "bodies")
    if not all(type(bodies) is list for bodies in lists):
        raise ChannelError("bodies is not a list")
    flat = [body for bodies in lists for body in bodies]
    rows = np.zeros(len(flat), LOGGED_BODY)
    if flat:
        _BODY.decode_rows(flat, rows)
    return np.array([len(bodies) for bodies in lists], np.int64), rows


def _bodies_schema() -> dict[str, Any]:
    unit_and_text = _Node("bodies", "", "bodies").describe({"type": "array", "items": _BODY.schema()})
    properties = {"tick": _Number("tick", "tick", "tick", RECORD["tick"], ()).schema(), "bodies": unit_and_text}
    properties[NON_FINITE] = _non_finite_schema()
    return _titled(
        "hapticd.Bodies",
        "Bodies that move: states that are not the ones logged last; all of them in the first message of a chunk",
        _object(properties, optional=(NON_FINITE,)),
    )


def _non_finite_schema() -> dict[str, Any]:
    bits = _object({"field": {"type": "string"}, "bits": {"type": "string", "pattern": "^0x[0-9a-f]{16}$"}})
    return {
        "type": "array",
        "items": bits,
        "description": "absent when every number is finite; otherwise the fields that are NaN or infinite (they "
        "stand as 0 in their place), each with its 64 bits",
    }


BODIES_SCHEMA = _bodies_schema()


def _pose_schema(name: str, text: str, wrap: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    def numbers(*names: str) -> dict[str, Any]:
        return _object({name: {"type": "number"} for name in names})

    time = _object(
        {
            "sec": {"type": "integer", "minimum": 0},
            "nsec": {"type": "integer", "minimum": 0, "maximum": 999_999_999},
        }
    )
    pose = _object({"position": numbers("x", "y", "z"), "orientation": numbers("x", "y", "z", "w")})
    pose["title"] = "foxglove.Pose"
    return _titled(
        name, text, _object({"timestamp": {"title": "time", **time}, "frame_id": {"type": "string"}, **wrap(pose)})
    )


POSE_SCHEMA = _pose_schema("foxglove.PoseInFrame", "A pose at a time in a named frame", lambda pose: {"pose": pose})
"""The schema that viewers know by the name foxglove.PoseInFrame."""

POSES_SCHEMA = _pose_schema(
    "foxglove.PosesInFrame",
    "Poses at a time in a named frame",
    lambda pose: {"poses": {"type": "array", "items": pose}},
)
"""The one that they know by the name foxglove.PosesInFrame."""

EVENT_SCHEMA = _titled(
    "hapticd.Event",
    "A change of the engagement state, or a notice of a process, as on the events socket; numbered per source",
    _object(
        {
            "v": {"type": "integer", "description": "protocol version"},
            "source": {"type": "string", "description": "servo for state changes; else the process that tells"},
            "seq": {"type": "integer", "minimum": 0, "description": "number within the source"},
            "tick": {"type": "integer", "minimum": 0, "description": "newest tick when it happened"},
            "t": {"type": "integer", "description": "[ns] when, monotonic clock of the machine"},
            "code": {"type": "string", "description": "short word, such as state_changed, records_lost, disk_full"},
            "text": {"type": "string", "description": "one sentence"},
            "from": {"type": "integer", "description": "state_changed: " + _choices(EngagementState)},
            "from_name": {"type": "string"},
            "to": {"type": "integer", "description": "state_changed: state after it"},
            "to_name": {"type": "string"},
            "reason": {"type": "integer", "description": "state_changed: " + _choices(Reason)},
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
