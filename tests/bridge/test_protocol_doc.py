"""docs/protocol.md is what the code does: up to date, complete, and its bytes decode by its own tables."""

import re
import struct

import msgpack
import numpy as np
import pytest

from bridge import control, protocol_doc, schema, wire
from bridge.wire import PEER_STRUCT, RENDER_STRUCT, SAMPLE_STRUCT
from haptics.states import EngagementState, Reason
from haptics.tables import PEER, SAMPLE

TEXT = protocol_doc.DOCUMENT.read_text(encoding="utf-8")


def test_the_document_is_up_to_date(capsys):
    assert protocol_doc.main(["--check"]) == 0


def test_the_check_notices_a_change(tmp_path, monkeypatch, capsys):
    changed = tmp_path / "protocol.md"
    changed.write_text(TEXT.replace("0xc1", "0xc2"))
    monkeypatch.setattr(protocol_doc, "DOCUMENT", changed)
    assert protocol_doc.main(["--check"]) == 1
    assert "out of date" in capsys.readouterr().err
    assert protocol_doc.main([]) == 0
    assert changed.read_text() == TEXT


def rows_after(heading: str) -> list[list[str]]:
    """Cells of the first table after a heading of the document."""
    part = TEXT[TEXT.index(heading) :]
    lines = part[part.index("\n|") + 1 :].split("\n")
    end = next(i for i, line in enumerate(lines) if not line.startswith("|"))
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:end]]


def parse_struct(heading: str, message: bytes) -> dict:
    """Decodes a struct by the document's table alone."""
    codes = {"uint8": "B", "uint32": "I", "uint64": "Q", "int64": "q", "float64": "d"}
    values = {}
    for name, offset, size, kind, *_ in rows_after(heading):
        base, _, count = kind.partition(" x ")
        form = f"<{count or 1}{codes[base]}"
        assert struct.calcsize(form) == int(size)
        found = struct.unpack_from(form, message, int(offset))
        values[name.strip("`")] = found if count else found[0]
    return values


def hex_block(after: str) -> bytes:
    block = TEXT[TEXT.index(after) :].split("```\n")[1]
    return bytes.fromhex("".join(line[6:].replace(" ", "") for line in block.strip("\n").split("\n")))


def test_the_bytes_of_the_example_sample_decode_by_the_table_and_by_the_daemon():
    message = hex_block("The sample session 81985529216486895")
    wanted = protocol_doc.EXAMPLE_SAMPLE
    found = parse_struct("### Sample, client to daemon", message)
    assert len(message) == SAMPLE_STRUCT.itemsize
    for name in ("session", "seq", "t_sample", "position", "orientation", "deadman"):
        assert found[name] == wanted[name], name
    assert struct.unpack_from("<BBBBI", message) == (0xC1, schema.PROTOCOL_VERSION, schema.KIND_SAMPLE, 0, 4)
    record, other = np.zeros(1, SAMPLE), np.zeros(1, SAMPLE)
    assert wire.decode_sample(message, record) == 0
    as_map = hex_block("The same as msgpack")
    assert msgpack.unpackb(as_map)["deadman"] == 1
    assert wire.decode_sample(as_map, other) == 0
    assert other.tobytes() == record.tobytes()


def test_the_bytes_of_the_example_peer_message_decode_by_the_table_and_by_the_daemon():
    message = hex_block("A peer message of the same session")
    found = parse_struct("### Peer message, either way", message)
    assert len(message) == PEER_STRUCT.itemsize
    assert struct.unpack_from("<BBBBI", message) == (0xC1, schema.PROTOCOL_VERSION, schema.KIND_PEER, 0, 0)
    peers = np.zeros(1, PEER)
    assert wire.decode_peer(message, peers) == 0
    for field in schema.PEER_FIELDS:
        value = peers[field.name][0]
        assert found[field.name] == (tuple(value.tolist()) if field.count > 1 else value), field.name
    assert found["wrench"] == (0.0, 0.0, -1.5, 0.0, 0.0, 0.0) and found["t_held"] == 500_000
    assert (found["method"], found["active"], found["impedance"]) == (1, 4, (8.0, 0.0078125))


def test_the_bytes_of_the_example_render_decode_by_the_table():
    message = hex_block("A render that answers it")
    found = parse_struct("### Render, daemon to client", message)
    assert len(message) == RENDER_STRUCT.itemsize
    render = wire.decode_render(message)
    for field in schema.RENDER_FIELDS:
        assert found[field.name] == getattr(render, field.name), field.name
    assert (found["tick"], found["wrench"][2], found["state"]) == (1234, 1.5, EngagementState.ACTIVE)


def test_operations_and_their_keys_are_those_of_the_control_server():
    assert tuple(op for op, *_ in protocol_doc.OPERATIONS) == schema.CONTROL_OPERATIONS
    for op, _, fields, _ in protocol_doc.OPERATIONS:
        documented = {name: required for name, _, required in fields}
        assert documented == {name: required for name, (_, required) in control._KEYS[op].items()}, op


def test_every_error_code_that_control_uses_is_documented():
    import inspect

    used = set(re.findall(r'(?:Refusal|WireError)\(\s*"(\w+)"', inspect.getsource(control) + inspect.getsource(wire)))
    used |= set(control.REASON_CODES.values()) | {"timeout"}
    assert used <= set(schema.CONTROL_ERRORS)
    for code in schema.CONTROL_ERRORS:
        assert f"| `{code}` |" in TEXT


@pytest.mark.parametrize("kind", [EngagementState, Reason])
def test_every_code_has_a_meaning(kind):
    for member in kind:
        assert re.search(rf"\| {member.value} \| `{member.name}` \| \w", TEXT), member
    for name, value in vars(schema.Reject).items():
        if not name.startswith("_"):
            assert re.search(rf"\| {value} \| `{name}` \| [\w`]", TEXT), name


def test_the_hello_reply_is_that_of_the_control_server():
    """Keys are compared with the source of the reply, so that one that is added there must be explained here."""
    import inspect

    body = inspect.getsource(control.Control._hello)
    keys = re.findall(r'^            "(\w+)":', body, re.MULTILINE)
    assert keys and sorted(keys) == sorted(name for name, _, _ in protocol_doc.HELLO_REPLY)
