"""Codec of the wire: the 1 kHz messages of devices and links, and the maps of the control, state and events sockets.

Layout and keys come from the schema table (:mod:`bridge.schema`); ``docs/protocol.md`` prints the same table. Messages
from outside are judged here and nowhere else: a sample that breaks a rule gets a :class:`bridge.schema.Reject` code and
changes nothing, a control message that breaks one raises :class:`WireError`.
"""

from bridge.wire import peer, renders, samples
from bridge.wire.layout import HEADER_FIELDS, PEER_STRUCT, PRESENT_BITS, RENDER_STRUCT, SAMPLE_STRUCT, Vector, WireError
from bridge.wire.maps import pack_control, unpack_control, unpack_map
from bridge.wire.peer import PEER_HELLO, decode_peer, encode_peer
from bridge.wire.renders import Render, decode_render, encode_render
from bridge.wire.samples import OptionalFields, decode_sample, encode_sample, sample_is_struct

__all__ = [
    "HEADER_FIELDS",
    "PEER_HELLO",
    "PEER_STRUCT",
    "PRESENT_BITS",
    "RENDER_STRUCT",
    "SAMPLE_STRUCT",
    "OptionalFields",
    "Render",
    "Vector",
    "WireError",
    "decode_peer",
    "decode_render",
    "decode_sample",
    "encode_peer",
    "encode_render",
    "encode_sample",
    "pack_control",
    "sample_is_struct",
    "unpack_control",
    "unpack_map",
    "warm_up",
]


def warm_up() -> None:
    """Compiles (or loads from the cache) the kernels behind the messages that a servo reads and writes."""
    samples.warm_up()
    renders.warm_up()
    peer.warm_up()
