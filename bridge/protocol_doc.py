"""Prints ``docs/protocol.md``: the tables from the schema and the code that uses them, the text from its
template.

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
TEMPLATE = Path(__file__).resolve().parent / "protocol_template.md"
"""Its text, with a name in braces for each table, number and example; braces of its own are doubled."""

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
    return TEMPLATE.read_text(encoding="utf-8").format(
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
