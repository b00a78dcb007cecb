"""Prints ``docs/protocol.md``: the tables from the schema and the code that uses them, the rest from the text here.

python -m bridge.protocol_doc            write docs/protocol.md
python -m bridge.protocol_doc --check    exit 1 when the file is not what would be written
"""

import argparse
import ast
import inspect
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType

import numpy as np

import haptics.link_codes
import haptics.states
from bridge import link_relay, peer_socket, schema, wire
from bridge.config import Coupling, Link, Rates, Safety
from bridge.control import MAX_SESSIONS
from bridge.publisher import DEGRADED_WORDS, STATE_FIELDS
from haptics.cards import LEAST_STIFFNESS
from haptics.link_codes import LAWS, METHODS, LinkReason, LinkState
from haptics.link_settings import KEEP_ALIVE_MS
from haptics.settings import WORKSPACE_MARGIN
from haptics.states import TRANSITIONS, EngagementState, Reason
from haptics.tables import PEER, RECORD

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "protocol.md"

OPERATIONS: tuple[tuple[str, str, tuple[tuple[str, str, bool], ...], str], ...] = (
    (
        "hello",
        "anyone",
        (
            ("client", "text of printable characters, a name for people", True),
            ("versions", "list of integers, the protocol versions that the client speaks", True),
            (
                "roles",
                "list of `owner` and `observer`; only an `owner` may take the lease",
                True,
            ),
            ("t_client", "integer ns, the client's monotonic clock", False),
        ),
        "gives out a session; see [Hello](#hello)",
    ),
    ("describe", "anyone", (("session", "integer", False),), "scene, card, limits, the whole configuration, versions"),
    (
        "status",
        "anyone",
        (("session", "integer", False),),
        "`tick`, `state`, `state_name`, `reason_name`, `owner` (client's name or nil), `newest` (a message of the "
        "state socket), `counters`, `readers`, `processes`",
    ),
    ("lease", "session", (("session", "integer", True),), "takes the device; the owner's own `lease` renews it"),
    (
        "renew",
        "owner",
        (("session", "integer", True),),
        "keeps the lease without samples; every accepted sample does so too",
    ),
    ("release", "owner", (("session", "integer", True),), "ramps forces down, then gives the device back"),
    (
        "hand_over",
        "owner",
        (("session", "integer", True), ("to", "text, the name that the other client gave in `hello`", True)),
        "gives the device to another session; see [Handing over](#handing-over)",
    ),
    (
        "arm",
        "owner",
        (("session", "integer", True), ("reanchor", "boolean, false by default", False)),
        "asks for forces. The device must be within the engage distance of the tool, or `reanchor` true: then the map "
        "between device and scene is moved so that the device is where the tool is",
    ),
    ("disarm", "owner", (("session", "integer", True),), "ramps forces down; the lease stays"),
    (
        "clutch",
        "owner",
        (("session", "integer", True), ("pressed", "boolean", True)),
        "pressed: forces ramp down, the tool stays where it is while the device moves; released: re-anchors and, if "
        "forces were on before, engages again",
    ),
    (
        "set",
        "owner",
        (
            ("session", "integer", True),
            ("stiffness", f"number >= {LEAST_STIFFNESS:g}, N/m at the device; together with `damping`", False),
            ("damping", "number >= 0, N·s/m at the device; together with `stiffness`", False),
            ("scale", "number > 0, scene metres per device metre; alone; only while idle or clutched", False),
        ),
        "changes gains (capped by the device card; an input device has none) or scale until the lease ends; while "
        "forces are on gains go there by a ramp, over the whole range in the time of the ramp up",
    ),
    (
        "vibrate",
        "owner",
        (
            ("session", "integer", True),
            ("amplitude", "number > 0, N; capped at 0.3 of the device's largest force", True),
            ("frequency", "number > 0, Hz; capped at a quarter of the tick rate", True),
            ("duration", "number > 0, at most 5, s", True),
            ("decay", "number >= 0, s in which it falls to 1/e; 0, the default, for none", False),
            ("direction", "3 numbers, device frame, z by default", False),
        ),
        "a burst of vibration beside all other forces, within the same limits; only while forces are on, and not in "
        "place of a stronger one",
    ),
    (
        "pose_body",
        "owner, or any session while there is none",
        (
            ("session", "integer", True),
            ("body", "text, its name", True),
            ("position", "3 numbers, mesh to scene, m", True),
            ("orientation", "4 numbers [x, y, z, w], identity by default", False),
        ),
        "puts a body that is `held` to a new pose; only in IDLE, and never onto the tool",
    ),
    ("stop", "anyone", (("session", "integer", False),), "forces off by the fault ramp, then FAULT until `reset`"),
    ("reset", "owner, or anyone while there is none", (("session", "integer", True),), "leaves FAULT for IDLE"),
    ("shutdown", "anyone", (("session", "integer", False),), "ramps forces down, then ends the daemon"),
)
"""(operation, who, ((field, form, required), ...), what it does and what its reply adds)."""

HELLO_REPLY = (
    ("session", "", "integer, 1 .. 2^63 - 1: goes into every later request and every sample; keep it to yourself"),
    ("version", "", "the protocol version that is spoken from now on"),
    ("name", "", "of the daemon"),
    ("tick_ns", "ns", "tick period"),
    ("clocking", "", "`free` or `triggered`"),
    (
        "endpoints",
        "",
        "map of addresses: `device`, `control`, `state`, `events`, and `peer` where a link waits for its other end",
    ),
    (
        "limits",
        "SI",
        "in force: `force_max`, `torque_max`, `stiffness_max`, `damping_max`, `force_slew`, `torque_slew` (per tick), "
        "`speed_max`, `stiffness`, `damping`, `engage_distance`; `force_max` 0 for an input device",
    ),
    ("card", "", "the device card"),
    (
        "scene",
        "",
        "`name`, `bodies` (list of `name`, `motion`, `triangles`: 0 for a ball or capsule), `tip_radius` (0 for a tool "
        "mesh), `tool` (`kind`: "
        "`sphere` or `mesh`; `triangles`; `reach`: how far its surface goes from the tip centre, m), `start` (tip "
        "centre, scene, m), `start_orientation` (tool -> scene)",
    ),
    ("lease_ms", "ms", "a lease without accepted samples and without `renew` lives so long"),
    ("hold_after_ms", "ms", "see [Time and age](#time-and-age)"),
    ("stale_after_ms", "ms", "see [Time and age](#time-and-age)"),
    ("t_received", "ns", "arrival of the request, the daemon's monotonic clock"),
    ("t_sent", "ns", "departure of the reply, the same clock"),
)

EVENT_FIELDS = (
    ("source", "`servo` for state changes; else the process that speaks: `supervisor`, `recorder`, `publisher`"),
    ("seq", "counts up by one per source; a gap shows what was lost"),
    ("tick", "number of the tick"),
    ("t", "ns, the daemon's monotonic clock"),
    (
        "code",
        "`state_changed`, or a short word: `heartbeat`, `records_lost`, `recorder_restarted`, `disk_full`, "
        "`handshakes_refused`, `handed_over` (with the clients' names, `giver` and `taker`), `link_up`, `link_lost`, "
        "`link_mismatch` (with `state_name` and `reason_name`), `link_waits`, `peer_refused` ...",
    ),
    ("text", "one sentence"),
    ("from, from_name", "`state_changed` only: state before"),
    ("to, to_name", "`state_changed` only: state after"),
    ("reason, reason_name", "`state_changed` only: why"),
    ("last", "`heartbeat` only: map of source to its newest `seq`, so that the loss of a last event shows too"),
    ("ticking", "`heartbeat` only: whether the servo ticks"),
)


def member_docs(module: ModuleType, class_name: str) -> dict[str, str]:
    """The string under each member of a class, by member name, on one line; empty where there is none."""
    tree = ast.parse(inspect.getsource(module))
    body = next(node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == class_name)
    docs: dict[str, str] = {}
    last = None
    for node in body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            last = node.targets[0].id
            docs[last] = ""
        elif last and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            docs[last] = " ".join(str(node.value.value).split()).replace("``", "`")
            last = None
        else:
            last = None
    return docs


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines)


_KINDS = {"u1": "uint8", "u2": "uint16", "u4": "uint32", "u8": "uint64", "i8": "int64", "f8": "float64"}


def field_table(fields: Sequence[schema.Field], dtype: np.dtype) -> str:
    """Table of a 1 kHz message: key, place and form in the struct, unit, meaning."""
    rows = []
    for field in fields:
        place = dtype.fields[field.name]  # type: ignore[index]
        kind = _KINDS[field.kind] + (f" x {field.count}" if field.count > 1 else "")
        need = f"optional, bit {wire.PRESENT_BITS[field.name].bit_length() - 1}" if field.optional else "required"
        rows.append((f"`{field.name}`", place[1], place[0].itemsize, kind, need, field.unit, field.doc))
    return table(("key", "byte offset", "bytes", "type", "presence", "unit", "meaning"), rows)


def code_table(module: ModuleType, class_name: str, codes: Iterable[tuple[str, int]]) -> str:
    """Table of numbered codes with the explanations that stand in the source, else those given here."""
    docs = member_docs(module, class_name)
    rows = [(number, f"`{name}`", _sentence(docs.get(name) or _TEXTS[class_name][name])) for name, number in codes]
    return table(("code", "name", "meaning"), rows)


def _sentence(text: str) -> str:
    """As a table cell: without a capital at the beginning of a common word and without a full stop at the end."""
    text = text.removesuffix(".")
    return text if text[:2].isupper() else text[:1].lower() + text[1:]


_TEXTS: dict[str, dict[str, str]] = {
    "EngagementState": {},
    "Reason": {
        "NONE": "nothing has changed yet",
        "DEADMAN_RELEASED": "the hand let go of the device",
        "RAMP_DONE": "the gains are at their goal",
        "CLUTCH": "the clutch was pressed or released",
        "LEASE_RELEASED": "the owner gave the device back",
        "LEASE_EXPIRED": "the owner sent neither samples nor `renew` for too long",
        "SHUTDOWN": "the daemon ends",
        "RESET": "the owner left FAULT",
        "HANDED_OVER": "the owner gave the lease to another session",
        "SUPERVISOR_LOST": "the daemon's supervisor died or hangs",
    },
    "Reject": {
        "NONE": "accepted",
        "TOO_LONG": f"longer than {schema.MAX_MESSAGE_BYTES} bytes",
        "VERSION": "`v` is not a version that the daemon speaks",
        "KIND": "`kind` is not that of a sample, or of a peer message",
        "MISSING_FIELD": "a required field is absent",
        "WRONG_TYPE": "a field has another type or another number of items (true and false are no numbers)",
        "NOT_FINITE": "a number is NaN or infinite",
        "NOT_UNIT": f"the norm of `orientation` differs from 1 by more than {schema.QUATERNION_TOLERANCE:g}",
        "NOT_OWNER": "`session` does not hold the lease",
        "SEQUENCE": "`seq` did not increase",
        "OUT_OF_RANGE": "a number is outside the range that is given above",
    },
}


def reject_table() -> str:
    """Table of the reject codes."""
    codes = [(name, number) for name, number in vars(schema.Reject).items() if not name.startswith("_")]
    return code_table(schema, "Reject", codes)


def operations_table() -> str:
    """Table of the control operations."""
    rows = []
    for op, who, fields, text in OPERATIONS:
        form = "<br>".join(f"`{name}`{'' if required else ' (optional)'}: {kind}" for name, kind, required in fields)
        rows.append((f"`{op}`", who, form, text))
    return table(("op", "who", "fields", "what it does"), rows)


def hex_dump(message: bytes) -> str:
    """Sixteen bytes to a line, with offsets."""
    lines = []
    for at in range(0, len(message), 16):
        lines.append(f"{at:4d}  {message[at : at + 16].hex(' ')}")
    return "\n".join(lines)


EXAMPLE_SAMPLE = {
    "session": 81985529216486895,
    "seq": 7,
    "t_sample": 1_000_000_000,
    "position": (0.1, -0.2, 0.25),
    "orientation": (0.0, 0.0, 0.6, 0.8),
    "deadman": True,
}


EXAMPLE_PEER_TIMES = {"session": 81985529216486895, "t_sent": 2_000_000_000, "t_echo": 1_000_000_000, "t_held": 500_000}


def example_peer() -> bytes:
    """A peer message with known content, by the daemon's own encoder."""
    peers = np.zeros(1, PEER)
    peers["seq"] = 7
    peers["position"], peers["orientation"] = (0.1, -0.2, 0.25), (0.0, 0.0, 0.6, 0.8)
    peers["twist"][0, 0] = 0.5
    peers["wrench"][0, 2] = -1.5
    peers["impedance"] = (8.0, 0.0078125)
    peers["wave_energy"] = 0.25
    peers["scale"], peers["share"], peers["align_speed"] = 2.0, 0.5, 0.0625
    peers["begun"], peers["offset_position"], peers["offset_orientation"] = 2, (0.0, 0.5, 0.0), (0.0, 0.0, 0.0, 1.0)
    peers["method"], peers["active"] = METHODS["waves"], 4
    peers["law"], peers["mirror"] = LAWS["four-channel"], 1
    return wire.encode_peer(peers, **EXAMPLE_PEER_TIMES)


def example_render(as_struct: bool) -> bytes:
    """A render with known content, by the daemon's own encoder."""
    records = np.zeros(1, RECORD)
    output = records[0]["output"]
    records["tick"] = 1234
    records["timing"]["t_received"] = 2_000_000_000
    output["seq"] = 7
    output["wrench"][2] = 1.5
    output["render_position"] = (0.1, -0.2, 0.25390625)
    output["render_orientation"] = (0.0, 0.0, 0.6, 0.8)
    output["stiffness"][:3] = 384.0
    output["damping"][:3] = 1.0
    output["valid_for_ns"] = 10_000_000
    output["report"]["smallest_gap"] = 0.0001
    output["state"] = EngagementState.ACTIVE
    output["reason"] = Reason.RAMP_DONE
    output["planes"][0] = (0.0, 0.0, 1.0, 0.25390625)
    output["plane_count"] = 1
    return wire.encode_render(records, 2_000_050_000, as_struct)


def _timing_table() -> str:
    coupling, safety, rates = Coupling(), Safety(), Rates()
    rows = [
        ("tick period", f"{1000 / rates.tick_hz:g} ms", "rates.tick_hz"),
        ("a sample is late (HOLD) when older than", f"{safety.hold_after_ms:g} ms", "safety.hold_after_ms"),
        ("a sample is stale (forces go off) when older than", f"{safety.stale_after_ms:g} ms", "safety.stale_after_ms"),
        ("ramp up after arming", f"{coupling.ramp_up_ms:g} ms", "coupling.ramp_up_ms"),
        (
            "ramp down when asked: disarm, release, clutch, deadman, shutdown",
            f"{coupling.ramp_down_ms:g} ms",
            "coupling.ramp_down_ms",
        ),
        (
            "ramp down when forced: stale, jump, stop, lost lease",
            f"{coupling.ramp_fault_ms:g} ms, 20 ms at most",
            "coupling.ramp_fault_ms",
        ),
        (
            "so: from the last sample of a lost client to zero wrench",
            f"{safety.stale_after_ms + coupling.ramp_fault_ms:g} ms and two ticks at most",
            "",
        ),
        ("lease without samples or `renew`", f"{safety.lease_ms:g} ms", "safety.lease_ms"),
        ("an impedance may be used for", f"{coupling.valid_for_ms:g} ms after `t_sent`", "coupling.valid_for_ms"),
        (
            "farthest device from the tool at which forces start",
            f"{safety.engage_distance * 1e3:g} mm, in the scene and at the device",
            "safety.engage_distance",
        ),
        (
            "jump: farther between two samples than `speed_max` times the elapsed time, plus",
            f"{safety.jump_margin * 1e3:g} mm at the device",
            "safety.jump_margin",
        ),
    ]
    rows = [(what, value, f"`{key}`" if key else "") for what, value, key in rows]
    return table(("what", "by default", "configuration key"), rows)


def render_document() -> str:
    """The whole text of ``docs/protocol.md``."""
    sample = wire.encode_sample(**EXAMPLE_SAMPLE)  # type: ignore[arg-type]
    sample_map = wire.encode_sample(**EXAMPLE_SAMPLE, as_struct=False)  # type: ignore[arg-type]
    render = example_render(True)
    return _TEMPLATE.format(
        version=schema.PROTOCOL_VERSION,
        mark=f"0x{schema.STRUCT_MARK:02x}",
        max_bytes=schema.MAX_MESSAGE_BYTES,
        max_items=schema.MAX_ITEMS,
        max_nesting=schema.MAX_NESTING,
        max_text=schema.MAX_TEXT,
        reply_bytes=schema.REPLY_MAX_BYTES,
        header=table(
            ("offset", "bytes", "name", "value"),
            (
                (0, 1, "mark", f"0x{schema.STRUCT_MARK:02x}: the one byte that msgpack never begins with"),
                (1, 1, "version", schema.PROTOCOL_VERSION),
                (
                    2,
                    1,
                    "kind",
                    f"{schema.KIND_SAMPLE} sample, {schema.KIND_RENDER} render, {schema.KIND_PEER} peer message, "
                    f"{schema.KIND_PEER_HELLO} peer hello",
                ),
                (3, 1, "flags", "0 in this version; anything else is refused"),
                (4, 4, "present", "uint32: bit of each optional field that is there; all other bits 0"),
            ),
        ),
        sample_kind=schema.KIND_SAMPLE,
        render_kind=schema.KIND_RENDER,
        sample_bytes=wire.SAMPLE_STRUCT.itemsize,
        render_bytes=wire.RENDER_STRUCT.itemsize,
        sample_table=field_table(schema.SAMPLE_FIELDS, wire.SAMPLE_STRUCT),
        render_table=field_table(schema.RENDER_FIELDS, wire.RENDER_STRUCT),
        max_coordinate=f"{schema.MAX_COORDINATE:g}",
        max_rate=f"{schema.MAX_RATE:g}",
        max_time_bits=schema.MAX_TIME.bit_length() - 1,
        tolerance=f"{schema.QUATERNION_TOLERANCE:g}",
        peer_kind=schema.KIND_PEER,
        hello_kind=schema.KIND_PEER_HELLO,
        peer_bytes=wire.PEER_STRUCT.itemsize,
        peer_table=field_table(schema.PEER_FIELDS, wire.PEER_STRUCT),
        peer_ranges=table(
            ("field", "largest magnitude"),
            (
                ("`position`", f"{schema.MAX_COORDINATE:g} m"),
                ("`twist`", f"{schema.MAX_RATE:g} m/s, rad/s"),
                ("`wrench`", f"{schema.MAX_WRENCH:g} N, N·m"),
                ("`wave`, `wave_energy`, `energy`", f"{schema.MAX_CARRIED:g}; the energies are not negative"),
                ("`impedance`", f"{schema.MAX_IMPEDANCE:g}, not negative"),
                ("`scale`, `share`", f"{schema.MAX_SCALE:g} and 1, not negative"),
                ("`offset_position`", f"{schema.MAX_OFFSET:g} m"),
                ("`align_speed`", f"{schema.MAX_RATE:g} m/s, not negative"),
                ("`t_sent`, `t_echo`, `t_held`", f"0 to 2^{schema.MAX_TIME.bit_length() - 1} - 1"),
            ),
        ),
        max_active=schema.MAX_ACTIVE,
        max_law=schema.MAX_LAW,
        max_mirror=schema.MAX_MIRROR,
        peer_messages=peer_socket.MAX_MESSAGES,
        peer_largest=peer_socket.LARGEST_MESSAGE,
        greet_ms=link_relay.GREET_NS // 1_000_000,
        keep_alive=f"{KEEP_ALIVE_MS:g}",
        link_stale=f"{Link().stale_after_ms:g}",
        link_states=code_table(haptics.link_codes, "LinkState", ((s.name, s.value) for s in LinkState)),
        link_reasons=code_table(haptics.link_codes, "LinkReason", ((r.name, r.value) for r in LinkReason)),
        example_peer=hex_dump(example_peer()),
        reject_table=reject_table(),
        operations=operations_table(),
        hello_reply=table(("key", "unit", "meaning"), ((f"`{k}`", u, t) for k, u, t in HELLO_REPLY)),
        errors=table(("code", "meaning"), ((f"`{code}`", text) for code, text in schema.CONTROL_ERRORS.items())),
        states=code_table(haptics.states, "EngagementState", ((s.name, s.value) for s in EngagementState)),
        reasons=code_table(haptics.states, "Reason", ((r.name, r.value) for r in Reason)),
        transitions=table(
            ("from", "to", "when"),
            ((f"`{start.name}`", f"`{end.name}`", text) for (start, end), text in TRANSITIONS.items()),
        ),
        sessions=MAX_SESSIONS,
        margin=f"{WORKSPACE_MARGIN * 1e3:g}",
        degraded=table(("bit", "what was cut short"), ((bit, f"`{word}`") for bit, word in DEGRADED_WORDS)),
        timing=_timing_table(),
        state_fields=table(("key", "unit", "meaning"), ((f"`{k}`", u, t) for k, u, t in STATE_FIELDS)),
        event_fields=table(("key", "meaning"), ((f"`{k}`", t) for k, t in EVENT_FIELDS)),
        example_sample=hex_dump(sample),
        example_sample_map=hex_dump(sample_map),
        example_render=hex_dump(render),
    )


_TEMPLATE = """<!-- Made by `python -m bridge.protocol_doc`: edit that module or bridge/schema.py instead. -->
# Wire protocol, version {version}

A client in any language that has ZeroMQ and msgpack can be written from this page alone. Requests, replies and the 1
kHz messages below are all there is. SI units, right-handed frames, quaternions `[x, y, z, w]`, times in ns. What is
unknown is absent, never 0; NaN and infinities are refused.

## Sockets

| socket | the daemon's | the client's | carries |
|---|---|---|---|
| device | ROUTER | DEALER, one per client | samples in, renders out |
| control | ROUTER | DEALER, or REQ | requests and replies with an id |
| state | PUB | SUB, subscribed to everything | tick records, decimated |
| events | PUB | SUB, subscribed to everything | state changes with reasons and notices, numbered, never decimated |
| peer | ROUTER | DEALER: the other end of a link, or a relay | peer messages both ways; only with a [link](#links) |

Every message is one frame (a REQ socket's empty delimiter is understood on the control socket); more frames are
refused as malformed, and a peer that sends more than 64 KiB, or a subscription of 4 KiB, is disconnected. The daemon
listens on `ipc://` by default, on loopback `tcp://` when configured so, and on any other address only with keys: then
each of these sockets is a CURVE server, and a client sets the daemon's public key and a key pair of its own, which
the daemon must have on its list. Who is refused gets no answer. [access.md](access.md) tells more.

**Finding a daemon.** Each daemon has a directory `BASE/NAME`, where NAME is `default` unless chosen with `--name` and
BASE is `$HAPTICD_RUNTIME_DIR`, else `$XDG_RUNTIME_DIR/hapticd`, else `/tmp/hapticd-UID`. Its file `endpoints.json` is
a map with the addresses `device`, `control`, `state`, `events`, and `server_key` when keys are needed; the same
directory then holds a pair for programs of its user, `local.key_secret`. The control address is enough: the reply to
`hello` has the others; there, the host 0.0.0.0 or [::] stands for the one at which control was reached.

**Caps**, checked before decoding: {max_bytes} bytes a message, {max_items} entries a map or array, {max_nesting}
levels of nesting, {max_text} bytes a text. What the daemon itself sends on control, state and events may be larger,
up to {reply_bytes} bytes. Map keys are texts, each stands once, and nothing follows the map. Binary and extension
types are not used.

## The two 1 kHz messages

Both exist in two encodings with the same fields. A render comes in the encoding of the owner's last sample.

* **msgpack**: a map with the keys below and `v` ({version}) and `kind` ({sample_kind} sample, {render_kind} render).
  Integers may have any width; where a float64 is wanted an integer or a float32 will do. Arrays have exactly the
  number of items given. Order of keys does not matter. Keys that are not in the table are refused.
* **fixed struct**: little-endian, packed, no padding, of exactly the length given. It begins with this header:

{header}

### Sample, client to daemon: kind {sample_kind}, {sample_bytes} bytes as a struct

{sample_table}

An absent `valid` means 1, an absent `deadman` or `buttons` 0. In a struct, the bytes of a field that is not present
do not matter. `deadman` and `valid` are the integers 0 or 1, not booleans.

Ranges: `session` from 1 to 2^63 - 1, `seq` from 1 to 2^64 - 1, `t_sample` from 0 to 2^{max_time_bits} - 1,
coordinates of `position` within {max_coordinate} m, of `twist` within {max_rate}. `orientation` is accepted when its
norm is within {tolerance} of 1, and then normalised.

A sample that is refused changes nothing, gets no answer, and is counted; `status` and the state socket tell the
counts:

{reject_table}

### Render, daemon to client: kind {render_kind}, {render_bytes} bytes as a struct

{render_table}

Bits of `degraded`:

{degraded}

**Using a render.** A plain client applies `wrench` until the next render and nothing else. An adapter that closes the
loop at its own rate may instead close the spring itself, with its own newest position `x` and velocity `v` of the
coupling point, for no longer than `valid_for` after `t_sent`:

    y = proxy_position                                                  where `pinned` is 1
    y = nearest place to x + slack with dot(n_k, y) >= c_k for the planes          otherwise
    d = y - x
    damping = B * dot(proxy_velocity - v, d / |d|), held within plus or minus K * |d|
    force  = (K * |d| + damping) * d / |d| + feed_forward            (the first part is zero for d = 0)

K and B are the first three entries of `stiffness` and `damping` (they are equal); on a soft surface K is that of
coupling and surface in series. `planes` is n_1, c_1, n_2, c_2 and so on, n three numbers, of which the first
`plane_count` planes count: what the nearest surfaces leave to the tool. So an adapter that is faster than the daemon,
or whose renders take long, feels no drag where the tool would slide, and a wall where it is; `proxy_position` is always
in front of all planes. Who wants less takes y = `proxy_position` everywhere: the spring then pulls to where the tool
was in the tick. The nearest place is the goal itself, or the nearest place that is in front of all planes among those
of one plane, of the line of two, or the point of three (`bridge/adapters/spring.py` has it in 80 lines). The adapter
has to keep `force_max`, and `force_slew` from one render to the next: the daemon's own limits act on `wrench`. After
`valid_for` it ramps to zero by itself.

## Frames

A sample is in the *device frame*. The daemon places it in the scene:

    x_scene = p + R * (scale * x_device) + anchor            q_scene = q_anchor * q_workspace * q_device

with `p`, `R` and `scale` from its configuration (`workspace`; `describe` tells them). The anchor is zero when a lease
begins; re-anchoring and the clutch change it. Everything in a render is in the device frame again, positions and
velocities divided by `scale`, so with the coupling at the device K stays K: a spring of K at the device is one of K /
scale in the scene. A pose maps tool coordinates to the frame; the coupling point is the tool's origin, twist and
wrench are `[linear, angular]` about it. Messages of the state socket are in the scene frame unless they say
otherwise, and their positions are of the centre of the tool's tip.

The device card says how many degrees of freedom count (`sensed`) and are rendered (`actuated`). With `sensed` 3 the
`orientation` of a sample is checked but not used, and the tool keeps its own; with 5 what counts is where the card's
`axis` points, and the tool does not roll about it. With `actuated` 5 the torque about that axis is zero, with 3 all
torque, with 0 wrench, stiffness, damping and feed-forward. [devices.md](devices.md) tells more.

## Control

A request is a msgpack map `{{"v": {version}, "id": n, "op": "...", ...}}` with an integer `id` that the reply
repeats. The reply is `{{"v": {version}, "id": n, "ok": true, ...}}` or `{{"v": {version}, "id": n, "ok": false,
"error": {{"code": "...", "text": "one sentence"}}}}`. The reply to a message that could not be read has the `id` 0.
Unknown keys are refused. Requests of one client may overlap; replies come as they are decided.

{operations}

*session*: any session from `hello`. *owner*: the session that holds the lease. The reply to everything from `lease`
to `shutdown` comes after the tick that took the command, with `tick`, `state` and `state_name` right after it;
refusals too. A command that no tick takes within 0.5 s is refused with `timeout`.

### Hello

{hello_reply}

Clock offset: with `t_0` when the request left and `t_1` when the reply came, both on the client's clock, the daemon's
clock is ahead by `((t_received - t_0) + (t_sent - t_1)) / 2`, to within half of `(t_1 - t_0) - (t_sent -
t_received)`.

The daemon remembers {sessions} sessions. When there are more, one makes room: an observer before others, of those the
one whose last command is longest ago, but never the owner's, and none whose command or hand-over is under way. Its
requests are then refused with `bad_session`; say `hello` again.

### Error codes

{errors}

## Engagement

```
             arm                    good sample near the tool          gain 1
    IDLE ----------> ARMED -------------------------------> ENGAGING --------> ACTIVE <------> HOLD
     ^  ^              ^                                        |                 |   late, fresh |
     |  |              |     deadman let go                     |                 |               |
     |  |              '-------------------- RELEASING <--------+-----------------+---------------'
     |  '------------------------------------ (gain 0) |          disarm, release, clutch, stale, jump, stop ...
     |                                                 |
     '------------------- FAULT <----------------------'  jump, stop, not finite
            reset
```

{states}

The wrench is zero outside ENGAGING, ACTIVE, HOLD and RELEASING. These are all changes of state that there are:

{transitions}

Each is an event, with the reason:

{reasons}

* The owner is one session. It takes the lease (`lease`), keeps it by sending samples, and loses it by `release` or by
  silence. Anyone may `stop`.
* Before forces are on, the tool follows the device through the scene but never through a surface, so it can be left
  behind. A device that is farther from the tool than the engage distance is not engaged: `arm` refuses it with
  `too_far`, unless it is to be re-anchored. Nothing ever jumps.
* A sample whose pose lies farther from the last one than the device can move is a jump: the impedance freezes at the
  last good pose, forces ramp down, FAULT.
* With a deadman required by the configuration, forces need `deadman` 1 in the newest sample; letting go ramps down to
  ARMED.
* The watchdog runs from ARMED on: an armed client that sends nothing goes back to IDLE.
* A device may say that it is outside of the box that its handle cannot leave (`workspace_size` of its card, or
  `limits` of the configuration, and {margin} mm more). Such a sample moves nothing and does not count as good, so
  forces go off by the stale horizon, reason `OUTSIDE_WORKSPACE`, and `arm` is refused until the device is back.
* With `drift` in the configuration the anchor moves while the tool is free, by at most that share of the device's own
  way and never while it rests, is clutched or touches anything: see [devices.md](devices.md).

### Handing over

The owner names the client that is to have the device, by the name that it gave in `hello`: a session number is known
to its own client alone. Of several such sessions it is the one that asked for the role of owner and was heard from
last. In IDLE and FAULT the lease changes hands in one tick, in ARMED after disarming. While forces are on:

1. They ramp down for the old owner, who goes on sending samples; `stop` and `disarm` lead where they always do.
2. When they are off, the new owner has the lease, with the configured gains and scale, in state ARMED. Its first good
   sample is anchored to where the tool is, wherever that device may be, so neither tool nor force make a step.
3. With that sample, and the deadman where it is required, forces ramp up from zero. Until then samples of the new
   owner are refused with `NOT_OWNER`, as anybody's; whoever sends none within the stale horizon has the lease, but is
   disarmed. The first render says that it has begun.

The notice `handed_over` names both clients; in a log the command holds both sessions. While a ramp down is under way
already, `hand_over` is refused with `wrong_state`.

### Time and age

{timing}

The age of a sample at a tick is the larger of the time since its arrival and of `now - t_sample` beyond the smallest
such difference in this lease. So time that samples spend in queues counts, while clocks of client and daemon need not
agree, and may drift apart by 200 ppm. Send samples that were measured just now, and never replay `t_sample`.

* older than `hold_after_ms`: HOLD. The spring stays, damping and feed-forward fade out until the stale horizon. A
  fresh sample ends it.
* older than `stale_after_ms`: RELEASING by the fault ramp, then IDLE, reason `SAMPLE_STALE`; `SAMPLE_REJECTED` when
  messages came meanwhile but were refused; `SAMPLE_INVALID` when they were marked not valid; `OUTSIDE_WORKSPACE`.

## Two clockings

* **free**: the daemon ticks on its own clock. Each tick reads at most 8 waiting messages, uses the newest good one,
  and sends one render to the owner, also when no new sample came. Read all renders that wait and use the newest. A
  client that does not read loses renders, and nothing else happens.
* **triggered**: each accepted sample runs exactly one tick and gets its render, in order. A command that comes
  between runs a tick of its own, without a render. Time stands still between samples; but when none comes for
  `lease_ms` while somebody owns the device, ticks run at the tick rate with the true age until forces are off and the
  lease has ended.

Use the first for people, the second for devices that own the clock, for tests and for repeating an experiment
exactly.

## State and events

A message of the state socket is a map with `v` and:

{state_fields}

A message of the events socket is a map with `v` and:

{event_fields}

## Links

Two daemons, or a daemon and a robot, are joined by a link: each tick of an end takes the newest message of the other
and says one of its own. A daemon with a table `[link]` has a peer socket, unless it has `connect` there: then it
connects a DEALER to the other end's. So two daemons need nobody between them. `hapticd link A B` is a relay between
two that both wait, with a network's delays and losses.

### Peer message, either way: kind {peer_kind}, {peer_bytes} bytes, a struct only

{peer_table}

Axes are those of the sender's scene, lengths its device's metres, so what is told is what the hand does; the receiver
has the reflection and the scale, and no end must know the other's workspace map.

Ranges, besides norms and finite numbers: `session` from 1 to 2^63 - 1, `seq` from 1 to 2^64 - 1, `method` a known one,
`active` 0 to {max_active}, `law` 0 to {max_law}, `mirror` 0 to {max_mirror}, and

{peer_ranges}

* **Whom an end hears.** Before each tick it reads at most {peer_messages} messages and keeps the newest, by `seq`
  within a `session`. Older ones are refused with `SEQUENCE`. Another session counts when the present one has been
  silent for `stale_after_ms` ({link_stale} ms by default), and is refused with `SECOND_PEER` before. An end that gets
  its own session is linked to itself: `OWN_MESSAGE`. Longer than {peer_largest} bytes: disconnected. Refused messages
  change nothing and are counted apart from those of the device (`rejected` in `link` of the state socket).
* **Whom an end tells.** A ROUTER answers whoever sent the newest message that counts. Who has nothing to say yet, such
  as a relay, sends a *hello*, kind {hello_kind}: the header of 8 bytes and nothing else. It makes an end that has
  nobody, or has heard nothing for the stale time, send to that place. A relay says hello every {greet_ms} ms to an end
  from which nothing comes.
* **Sending never waits.** Where the other end does not take a message it is dropped, counted (`dropped`), and leaves a
  gap in `seq`, which the other end counts as lost.
* **Few messages.** With a dead-band an end says nothing while nothing changes, but every {keep_alive} ms.
* **Way there and back.** `now - t_echo - t_held` at the arrival of a message, on one clock: clocks need not agree. An
  end must echo the `t_sent` of the newest message that counts for it, and say how long it has had it.
* **Nothing is lost by losing messages.** Waves and energies are told as totals, so that the next message makes good
  for those that did not come. They begin at zero with the session, and the energies never fall.
* **What does not fit does not come up.** The method is the same at both ends, and so is the mirror; with waves the
  impedances fit; the scales multiply to 1; a leader belongs to a follower, and any other law to itself; shares are zero
  or add up to 1. Else both ends wait with `MISMATCH`.
* **One end decides.** What counts as being together is chosen by the end with the larger `session`, when it comes up:
  `offset_position` and `offset_orientation`, which it adds to the other's place. The other one comes up when it hears
  `active` 4, and takes the same offset, seen from there, from each message: -s M o, and the inverse of the reflected
  turn. When `begun` changes it lets its force go, and comes up anew. The larger `align_speed` of the two, in the same
  metres, shortens the offset.
* **What an end does not send is safe.** `active` other than 1 or 4, or silence for the stale time, lets the link's
  force ramp down. An end that let go because the two were too far apart says 2 until it lets go of its forces, or hears
  0.

In the `link` of the state socket:

{link_states}

and why it is not up:

{link_reasons}

## Versions

`v` is {version}. A daemon refuses every other number, as `VERSION` on the device socket and with the error `version`
on control; `hello` lists what the client speaks and tells what was chosen. Within a version, fields of samples and
renders, their places and codes do not change; new keys may come up in replies, states and events, new codes at the
end of a table. A client must ignore keys and survive codes that it does not know.

## A client, step by step

1. DEALER to the control address; send `hello`; keep `session`, connect a DEALER to `endpoints.device`.
2. `lease`. From its reply on, send samples, `seq` from 1 on.
3. `arm`, with `reanchor` true unless the device is known to be near the tool. Go on sending samples at the tick rate.
4. Read renders, apply `wrench`. `state` says when forces are on.
5. `disarm`, go on until `state` is IDLE; `release`.

### Bytes

The sample session 81985529216486895 (0x0123456789abcdef), seq 7, t_sample 1 s, position (0.1, -0.2, 0.25),
orientation (0, 0, 0.6, 0.8), deadman 1, as a struct. `present` is 4: only `deadman`, bit 2.

```
{example_sample}
```

The same as msgpack (doubles are 0xcb, big-endian as all of msgpack):

```
{example_sample_map}
```

A render that answers it, as a struct: tick 1234, 1.5 N along z, the tool 3.90625 mm above the device, K 384 N/m,
ACTIVE (3) by RAMP_DONE (10), one plane under the tool that faces z.

```
{example_render}
```

A peer message of the same session: seq 7, t_sent 2 s, t_echo 1 s, held for 0.5 ms, the pose above, 0.5 m/s along x,
-1.5 N along z, no wave, its energy 0.25 J, impedances 8 N·s/m and 0.0078125 N·m·s/rad, waves (1), active.

```
{example_peer}
```
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line of the module; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bridge.protocol_doc", description="Write docs/protocol.md.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 when the file is out of date")
    check = parser.parse_args(arguments).check
    text = render_document()
    if not check:
        DOCUMENT.write_text(text, encoding="utf-8")
        return 0
    if DOCUMENT.exists() and DOCUMENT.read_text(encoding="utf-8") == text:
        return 0
    print(f"{DOCUMENT} is out of date; run python -m bridge.protocol_doc", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
