"""The servo process: ``python -m bridge.servo RUNTIME_DIR``. It does nothing but tick.

Before the first tick it loads the assembly, the kernels and everything else it will ever need, and asks the operating
system for a core of its own; then it runs the loop of `bridge.servo_loop` until it is told to end.

To its parent it speaks in JSON lines on stdout, before and after ticking only: ``{"event": "progress" | "warm" |
"ticking" | "ended", ...}``.
"""

import json
import os
import signal
import sys
import time
from typing import Any

import zmq

from bridge import realtime
from bridge.access import ask_judge, bind, load_link_keys, stored_keys
from bridge.exit_codes import ExitCode
from bridge.keys import KeyPair
from bridge.mailbox import CommandReader
from bridge.peer_socket import open_peer
from bridge.ring import ENDED, TICKING, WARM, RingError, RingWriter
from bridge.runtime import RuntimeDirectory, RuntimeDirectoryError, read_assembly
from bridge.servo_loop import Servo

LARGEST_MESSAGE = 1 << 16
"""Bytes; a peer that sends more is disconnected by ZeroMQ, one that sends less but too much is counted."""

QUEUED_MESSAGES = 64
QUEUED_RENDERS = 16

PARENT_DIED = signal.SIGUSR1
"""What the kernel sends when the supervisor has ended. While it ticks, the servo learns it sooner by the lifeline."""


class CompileCounter:
    """Counts kernels that numba compiles from now on."""

    def __init__(self) -> None:
        from numba.core import event

        self.count = 0
        counter = self

        class _Listener(event.Listener):
            def on_start(self, event: Any) -> None:
                counter.count += 1

            def on_end(self, event: Any) -> None:
                pass

        event.register("numba:compile", _Listener())


def count_kernels() -> int:
    """Compiled signatures of all kernels in the project's modules: it must not grow while ticking."""
    total = 0
    seen = set()
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] not in ("rtcore", "haptics", "bridge"):
            continue
        for value in list(vars(module).values()):
            overloads = getattr(value, "overloads", None)
            if overloads is not None and id(value) not in seen and hasattr(value, "py_func"):
                seen.add(id(value))
                total += len(overloads)
    return total


def say(event: str, **data: Any) -> None:
    """One JSON line to the parent; a parent that is gone is noticed elsewhere."""
    try:
        sys.stdout.write(json.dumps({"event": event, **data}) + "\n")
        sys.stdout.flush()
    except (OSError, ValueError):
        pass


def open_socket(endpoint: str, keys: KeyPair | None = None, judge: str = "") -> zmq.Socket:
    """The device socket, listening on ``endpoint``. Raises zmq.ZMQError, RuntimeDirectoryError.

    keys: guard it, asking at the address ``judge`` who gets in.
    """
    context = zmq.Context(io_threads=1)
    if keys is not None:
        ask_judge(context, judge)
    socket = context.socket(zmq.ROUTER)
    socket.set(zmq.LINGER, 50)
    socket.set(zmq.ROUTER_MANDATORY, 1)
    socket.set(zmq.RCVHWM, QUEUED_MESSAGES)
    socket.set(zmq.SNDHWM, QUEUED_RENDERS)
    socket.set(zmq.MAXMSGSIZE, LARGEST_MESSAGE)
    bind(socket, endpoint, keys, "device")
    return socket


def _wait_for_go(servo: Servo) -> bool:
    """Wait until the supervisor says that the readers are attached; False when asked to end instead."""
    header = servo.header
    if header.supervisor_pid == 0:
        return True
    while not header.go:
        header.heartbeat_ns = time.monotonic_ns()
        if servo.stop_asked or header.stop_request or os.getppid() != servo.parent:
            return False
        time.sleep(0.002)
    return True


def main(runtime_dir: str) -> int:
    """Run the servo of the daemon whose files are in `runtime_dir`; returns the exit code."""
    runtime = RuntimeDirectory.at(runtime_dir)
    began = time.monotonic()
    asked = [False]
    # Asked to end while still starting: nothing has moved yet, the flag is looked at before the first tick.
    for number in (signal.SIGTERM, PARENT_DIED):
        signal.signal(number, lambda *_: asked.__setitem__(0, True))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    statements = [realtime.die_with_parent(PARENT_DIED)]
    try:
        ring = RingWriter.attach(runtime.ring_path)
        commands = CommandReader(runtime.mailbox_path)
        stored = read_assembly(runtime)
        keys = stored_keys(runtime, stored.config)
        link = stored.config.get("link")
        endpoints = runtime.endpoints(stored.config["sockets"], keys is not None, link)
        endpoint = endpoints["device"]
        link_keys = load_link_keys(link, stored.config.get("access"), stored.base_directory)
    except (RingError, RuntimeDirectoryError, OSError, ValueError, KeyError) as error:
        print(f"servo: {error}", file=sys.stderr)
        return ExitCode.SERVO_START
    if ring.header.supervisor_pid not in (0, os.getppid()):
        return ExitCode.SERVO_START
    ring.claim()

    from bridge import wire
    from haptics.warm_up import warm_up

    warm_up(lambda stage, done, total: say("progress", stage=stage, done=done, total=total))
    wire.warm_up()

    use_real_time = os.environ.get("HAPTICD_REALTIME", "on") != "off"
    if use_real_time:
        # Before the socket: the thread that moves its bytes inherits the scheduler, and must stay free of our core.
        statements.append(realtime.request_fifo())
    try:
        socket = open_socket(endpoint, keys, runtime.judge_endpoint())
    except (zmq.ZMQError, RuntimeDirectoryError) as error:
        print(f"servo: cannot listen on {endpoint}: {error}", file=sys.stderr)
        return ExitCode.ADDRESS_IN_USE
    peer_socket = None
    if link is not None:
        listening, connect = endpoints.get("peer", ""), link["connect"]
        try:
            peer_socket = open_peer(socket.context, listening, keys, connect=connect, connect_keys=link_keys)
        except (zmq.ZMQError, RuntimeDirectoryError) as error:
            what = f"cannot connect the link to {connect}" if connect else f"cannot listen on {listening}"
            print(f"servo: {what}: {error}", file=sys.stderr)
            return ExitCode.SERVO_START if connect else ExitCode.ADDRESS_IN_USE
    if use_real_time and (statements[-1].granted or "HAPTICD_CORE" in os.environ):
        statements.append(realtime.request_core(realtime.preferred_core()))
    else:
        # Without priority a thread that is tied to one core waits whenever somebody else computes there.
        statements.append(realtime.Statement("core", False, "not pinned to a core, because SCHED_FIFO is not in force"))
    servo = Servo(stored, ring, commands, socket, peer_socket)
    statements.append(realtime.set_timer_slack())
    servo.rehearse()
    servo.put_snapshot()
    statements.append(realtime.lock_memory())
    statements.append(realtime.quiet_collector())

    signal.signal(signal.SIGTERM, lambda *_: setattr(servo, "stop_asked", True))
    signal.signal(PARENT_DIED, lambda *_: setattr(servo, "parent_died", True))
    servo.stop_asked = asked[0]
    say("warm", seconds=time.monotonic() - began, statements=[vars(statement) for statement in statements])
    ring.header.ready = WARM
    code = ExitCode.OK
    if _wait_for_go(servo):
        counter = CompileCounter()
        kernels = count_kernels()
        say("ticking", triggered=servo.triggered)
        ring.header.ready = TICKING
        code = servo.run()
        ring.header.compiles = max(counter.count, count_kernels() - kernels)
    header = ring.header
    summary = {
        name: getattr(header, name) for name in ("missed", "rejected", "dropped", "tick_ns_max", "lateness_ns_max")
    }
    summary["compiles"] = header.compiles
    header.ready = ENDED
    say("ended", code=int(code), ticks=ring.count, **summary)
    socket.close()
    if peer_socket is not None:
        peer_socket.close()
    return code


if __name__ == "__main__":
    if len(sys.argv) != 2:
        print("usage: python -m bridge.servo RUNTIME_DIR", file=sys.stderr)
        sys.exit(ExitCode.USAGE)
    sys.exit(main(sys.argv[1]))
