"""The peer message: bytes by its table, back to the bit, and a code for every rule that it breaks."""

import math
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge import schema
from bridge.schema import PEER_FIELDS, Reject
from bridge.wire import PEER_HELLO, PEER_STRUCT, decode_peer, encode_peer
from haptics.link_codes import METHODS
from haptics.tables import PEER

SESSION = 81985529216486895
FLOATS = [field for field in PEER_FIELDS if field.kind == "f8"]
LARGEST = {
    "position": schema.MAX_COORDINATE,
    "twist": schema.MAX_RATE,
    "wrench": schema.MAX_WRENCH,
    "wave": schema.MAX_CARRIED,
    "wave_energy": schema.MAX_CARRIED,
    "energy": schema.MAX_CARRIED,
    "impedance": schema.MAX_IMPEDANCE,
    "scale": schema.MAX_SCALE,
    "share": 1.0,
    "offset_position": schema.MAX_OFFSET,
    "align_speed": schema.MAX_RATE,
}


def peers(**fields) -> np.ndarray:
    """A (1,) PEER that tells something of everything."""
    row = np.zeros(1, PEER)
    row["seq"] = 7
    row["position"] = (0.1, -0.2, 0.3)
    row["orientation"] = (0.0, 0.0, 0.6, 0.8)
    row["twist"] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
    row["wrench"] = (1.0, -2.0, 3.0, -0.4, 0.5, -0.6)
    row["wave"] = (1e-3, -2e-3, 3e-3, 0.0, -0.0, 1e-9)
    row["wave_energy"], row["energy"] = 0.25, 0.125
    row["impedance"] = (10.0, 0.01)
    row["scale"], row["share"] = 2.0, 0.25
    row["begun"], row["align_speed"] = 3, 0.05
    row["offset_position"], row["offset_orientation"] = (-0.5, 0.25, 0.125), (0.0, 0.8, 0.0, 0.6)
    row["method"], row["active"], row["law"], row["mirror"] = 1, 1, 3, 2
    for name, value in fields.items():
        row[name] = value
    return row


def good(**fields) -> bytes:
    return encode_peer(peers(**fields), SESSION, 5_000, 4_000, 300)


def place(name: str, item: int = 0) -> int:
    kind, at = PEER_STRUCT.fields[name][:2]
    return at + item * kind.base.itemsize


def spoilt(form: str, name: str, value, item: int = 0) -> bytes:
    message = bytearray(good())
    struct.pack_into(form, message, place(name, item), value)
    return bytes(message)


def judged(message: bytes) -> int:
    """Code of a message; a refused one must leave the record as it was."""
    into = np.zeros(1, PEER)
    into.view(np.uint8)[:] = 0x5A
    before = into.tobytes()
    code = decode_peer(message, into)
    if code != Reject.NONE:
        assert into.tobytes() == before
    return code


def test_the_bytes_are_those_of_the_table():
    message = good()
    assert len(message) == PEER_STRUCT.itemsize == 372
    assert struct.unpack_from("<BBBBI", message) == (0xC1, schema.PROTOCOL_VERSION, schema.KIND_PEER, 0, 0)
    assert struct.unpack_from("<QQqqqQ", message, 8) == (SESSION, 7, 5_000, 4_000, 300, 3)
    assert struct.unpack_from("<39d", message, 56) == (
        *(0.1, -0.2, 0.3, 0.0, 0.0, 0.6, 0.8, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 1.0, -2.0, 3.0, -0.4, 0.5, -0.6),
        *(1e-3, -2e-3, 3e-3, 0.0, -0.0, 1e-9, 0.25, 0.125, 10.0, 0.01, 2.0, 0.25),
        *(-0.5, 0.25, 0.125, 0.0, 0.8, 0.0, 0.6, 0.05),
    )
    assert message[-4:] == b"\x01\x01\x03\x02"


def test_a_message_comes_back_with_the_times_and_the_session_it_was_stamped_with():
    back = np.zeros(1, PEER)
    assert decode_peer(good(), back) == Reject.NONE
    wanted = peers(session=SESSION, t_sent=5_000, t_echo=4_000, t_held=300)
    for name in PEER.names:
        assert back[name].tobytes() == wanted[name].tobytes(), name


def test_the_source_is_left_alone():
    source = peers()
    before = source.tobytes()
    encode_peer(source, SESSION, 1, 2, 3)
    assert source.tobytes() == before


def test_an_orientation_is_normalised():
    back = np.zeros(1, PEER)
    assert decode_peer(good(orientation=(0.0, 0.0, 0.6003, 0.8004)), back) == Reject.NONE
    assert abs(np.linalg.norm(back["orientation"]) - 1.0) < 1e-15
    assert judged(good(orientation=(0.0, 0.0, 0.6, 0.802))) == Reject.NOT_UNIT
    assert judged(good(orientation=(0.0, 0.0, 0.0, 0.0))) == Reject.NOT_UNIT
    assert decode_peer(good(offset_orientation=(0.0, 0.8004, 0.0, 0.6003)), back) == Reject.NONE
    assert abs(np.linalg.norm(back["offset_orientation"]) - 1.0) < 1e-15
    assert judged(good(offset_orientation=(0.0, 0.802, 0.0, 0.6))) == Reject.NOT_UNIT
    assert judged(good(offset_orientation=(0.0, 0.0, 0.0, 0.0))) == Reject.NOT_UNIT


@given(st.binary(min_size=PEER_STRUCT.itemsize - 8, max_size=PEER_STRUCT.itemsize - 8))
def test_whatever_is_accepted_is_within_its_ranges(noise):
    back = np.zeros(1, PEER)
    if decode_peer(good()[:8] + noise, back) == Reject.NONE:
        row = back[0]
        assert all(np.all(np.abs(row[name]) <= most) for name, most in LARGEST.items())


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("field", FLOATS, ids=lambda field: field.name)
def test_numbers_that_are_not_finite_are_refused(field, number):
    for item in range(field.count):
        assert judged(spoilt("<d", field.name, number, item)) == Reject.NOT_FINITE


@pytest.mark.parametrize("name", LARGEST)
def test_magnitudes_have_limits(name):
    field = next(field for field in FLOATS if field.name == name)
    for item in range(field.count):
        assert judged(spoilt("<d", name, LARGEST[name], item)) == Reject.NONE
        assert judged(spoilt("<d", name, np.nextafter(LARGEST[name], math.inf), item)) == Reject.OUT_OF_RANGE


@pytest.mark.parametrize("name", ["wave_energy", "energy", "impedance", "align_speed"])
def test_energies_impedances_and_speeds_are_not_negative(name):
    field = next(field for field in FLOATS if field.name == name)
    for item in range(field.count):
        assert judged(spoilt("<d", name, -1e-12, item)) == Reject.OUT_OF_RANGE
        assert judged(spoilt("<d", name, 0.0, item)) == Reject.NONE


@pytest.mark.parametrize(
    ("name", "form", "bad", "fine"),
    [
        ("session", "<Q", (0, 1 << 63), (1, (1 << 63) - 1)),
        ("seq", "<Q", (0,), (1, (1 << 64) - 1)),
        ("t_sent", "<q", (-1, 1 << 62), (0, (1 << 62) - 1)),
        ("t_echo", "<q", (-1, 1 << 62), (0,)),
        ("t_held", "<q", (-1, 1 << 62), (0,)),
        ("method", "<B", (3, 255), (0, 1, 2)),
        ("active", "<B", (5, 255), (0, 1, 2, 3, 4)),
        ("begun", "<Q", (), (0, (1 << 64) - 1)),
        ("law", "<B", (5, 255), (0, 1, 2, 3, 4)),
        ("mirror", "<B", (4, 255), (0, 1, 2, 3)),
    ],
)
def test_whole_numbers_have_ranges(name, form, bad, fine):
    assert [judged(spoilt(form, name, value)) for value in bad] == [Reject.OUT_OF_RANGE] * len(bad)
    assert [judged(spoilt(form, name, value)) for value in fine] == [Reject.NONE] * len(fine)


def test_the_form_is_exact():
    message = good()
    for length in range(len(message)):
        assert judged(message[:length]) == Reject.MALFORMED
    assert judged(message + b"\0") == Reject.TOO_LONG
    for at, code in ((0, Reject.MALFORMED), (1, Reject.VERSION), (2, Reject.KIND), (3, Reject.MALFORMED)):
        for value in set(range(256)) - {message[at]}:
            assert judged(message[:at] + bytes([value]) + message[at + 1 :]) == code
    for at in range(4, 8):
        assert judged(message[:at] + b"\x80" + message[at + 1 :]) == Reject.MALFORMED


def test_a_hello_is_a_header_and_no_peer_message():
    assert bytes([0xC1, schema.PROTOCOL_VERSION, schema.KIND_PEER_HELLO, 0, 0, 0, 0, 0]) == PEER_HELLO
    assert judged(PEER_HELLO) == Reject.KIND


def test_every_method_has_a_place_on_the_wire():
    assert max(METHODS.values()) == schema.MAX_METHOD
    for code in METHODS.values():
        assert judged(good(method=code)) == Reject.NONE
