"""How a client without the right keys sees that it is kept out."""

import zmq

HANDSHAKE_FAILED = (
    zmq.Event.HANDSHAKE_FAILED_AUTH
    | zmq.Event.HANDSHAKE_FAILED_NO_DETAIL
    | zmq.Event.HANDSHAKE_FAILED_PROTOCOL
    | zmq.Event.DISCONNECTED
)
"""What ZeroMQ tells a monitor of its socket then."""
