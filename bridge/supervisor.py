"""The supervisor: one daemon from lock to clean end.

It writes what the others need into the runtime directory, starts servo, publisher, recorder and viewer as processes of
their own, serves the control socket, and starts again what died, except the servo: without it everything ends, with a
reason. Forces are always ramped down before anything is stopped.
"""

import contextlib
import json
import os
import signal
import socket as sockets
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import zmq

from bridge.access import Judge, load_access, load_link_keys
from bridge.children import Child, Helper, describe_status, python_module
from bridge.control import Control, Facts, listen
from bridge.ending import ending_signals
from bridge.exit_codes import ExitCode
from bridge.keys import LOCAL, KeysError, new_pair, write_pair
from bridge.link_watch import LinkWatch
from bridge.mailbox import CommandWriter, create_mailbox, find_orphans
from bridge.notices import Notifier
from bridge.ring import (
    ENDED,
    NoSpace,
    RingError,
    RingReader,
    RingWriter,
    remove_shared_file,
    slots_for,
)
from bridge.runtime import AlreadyRunning, RuntimeDirectory, RuntimeDirectoryError, versions, write_assembly
from haptics.snapshot import snapshot_size
from rtcore.model import moving_bodies

START_TIMEOUT_S = 300.0
"""Longest wait for the servo: an empty kernel cache takes a minute or two on a slow machine."""

HELPER_TIMEOUT_S = 20.0
"""Longest wait for publisher and recorder."""

RAMP_TIMEOUT_S = 3.0
"""From the request to end until the servo is sent SIGTERM, and again until it is killed."""

RECORDER_TIMEOUT_S = 15.0
HELPER_STOP_S = 2.0

REFUSALS_EVERY_S = 5.0
"""Between two notices about peers that were refused: one who keeps on knocking shall not fill the log."""

IDLE_POLL_MS = 20
BUSY_POLL_MS = 1

Progress = Callable[[str, int, int], None]


class _Failure(Exception):
    def __init__(self, code: ExitCode, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


def log_part(path: Path, number: int) -> Path:
    """File for the recorder's `number`-th restart (0: the first one): nothing that was written is written over."""
    return path if number == 0 else path.with_name(f"{path.stem}.restart{number}{path.suffix}")


def facts_of(assembly: Any, name: str, endpoints: Mapping[str, str]) -> Facts:
    """What clients are told about the daemon, from its assembly."""
    from bridge.assemble import KINDS  # long since there: it made the assembly

    settings = assembly.settings[0]
    config = assembly.config.model_dump(mode="json", by_alias=True)
    names = list(assembly.body_names)
    kinds = assembly.model.bodies["kind"].tolist()
    motions = {kind: word for word, kind in KINDS.items()}
    bodies = assembly.model.bodies
    counts = assembly.model.meshes["triangle_count"][bodies["mesh_id"]]
    rounded = (bodies["rounding"] > 0.0).tolist()
    triangles = [0 if round_ else count for round_, count in zip(rounded, counts.tolist(), strict=True)]
    limits = ("force_max", "torque_max", "stiffness_max", "damping_max", "force_slew", "torque_slew", "speed_max")
    return Facts(
        name=name,
        endpoints=dict(endpoints),
        clocking=config["rates"]["clocking"],
        tick_ns=round(float(settings["dt"]) * 1e9),
        lease_ms=config["safety"]["lease_ms"],
        hold_after_ms=config["safety"]["hold_after_ms"],
        stale_after_ms=config["safety"]["stale_after_ms"],
        limits={key: float(settings[key]) for key in (*limits, "stiffness", "damping", "engage_distance")},
        card=json.loads(json.dumps(asdict(replace(assembly.card, certified=())), default=str)),
        scene={
            "name": config["scene"]["name"],
            "bodies": [
                {"name": body, "motion": motions[kind], "triangles": count}
                for body, kind, count in zip(names, kinds, triangles, strict=True)
            ],
            "tip_radius": float(assembly.model.world["tip_radius"][0]),
            "tool": _tool_facts(assembly),
            "start": [float(value) for value in assembly.start],
            "start_orientation": [float(value) for value in assembly.start_orientation],
        },
        config=config,
        versions=versions(),
        body_names=tuple(names),
    )


def _tool_facts(assembly: Any) -> dict[str, Any]:
    """What the tool is: ``kind`` (sphere or mesh), ``triangles``, and ``reach``, m: its surface from the tip centre."""
    model = assembly.model
    mesh_id = int(model.world["tool_mesh_id"][0])
    if mesh_id < 0:
        return {"kind": "sphere", "triangles": 0, "reach": float(model.world["tip_radius"][0])}
    reach = float(assembly.settings["tool_reach"][0])
    return {"kind": "mesh", "triangles": int(model.meshes["triangle_count"][mesh_id]), "reach": reach}


def check_ports_free(endpoints: Mapping[str, str]) -> None:
    """Raise OSError naming the first TCP address of `endpoints` that another program listens on."""
    for name, endpoint in endpoints.items():
        if not endpoint.startswith("tcp://"):
            continue
        host, _, port = endpoint[len("tcp://") :].rpartition(":")
        host = host.strip("[]")
        family = sockets.AF_INET6 if ":" in host else sockets.AF_INET
        with sockets.socket(family, sockets.SOCK_STREAM) as probe:
            # As ZeroMQ does: a port whose last owner has just left may be taken over.
            probe.setsockopt(sockets.SOL_SOCKET, sockets.SO_REUSEADDR, 1)
            try:
                probe.bind((host, int(port)))
            except OSError as error:
                raise OSError(
                    error.errno,
                    f"the {name} socket cannot use {host}:{port}: {error.strerror}; set another `port` in [sockets]",
                ) from error


class Daemon:
    """Everything that one running daemon holds; see `run_daemon`."""

    def __init__(
        self,
        assembly: Any,
        runtime: RuntimeDirectory,
        log: Path | None,
        viewer: Sequence[str] | None,
        on_progress: Progress | None,
        on_message: Callable[[str], None],
    ) -> None:
        self.assembly = assembly
        self.runtime = runtime
        self.log = log
        self.viewer = viewer
        self.on_progress = on_progress
        self.on_message = on_message
        base = getattr(assembly, "base_directory", "") or "."
        self.access = load_access(assembly.config.access, base)
        load_link_keys(assembly.config.link, assembly.config.access, base)
        self.endpoints = runtime.endpoints(assembly.config.sockets, self.access is not None, assembly.config.link)
        self._keys = None if self.access is None else self.access.keys
        self.judge: Judge | None = None
        self.statements: list[dict[str, Any]] = []
        self.summary: dict[str, Any] = {}
        self.helpers: dict[str, Helper] = {}
        self.servo: Child | None = None
        self.ring: RingWriter | None = None
        self.reader: RingReader | None = None
        self.mailbox: CommandWriter | None = None
        self.notifier: Notifier | None = None
        self.control: Control | None = None
        self.link_watch: LinkWatch | None = None
        self._context = zmq.Context(io_threads=1)
        self._socket: zmq.Socket | None = None
        self._poller = zmq.Poller()
        self.end_asked = ""
        """Why the daemon was asked to end; empty while it was not."""
        self._untold = 0
        self._tell_again = 0.0

    # -- start -------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Files, shared memory, processes; returns when the servo ticks. Raises _Failure."""
        runtime = self.runtime
        try:
            check_ports_free(self.endpoints)
            self._open_judge()
            self._socket = listen(self._context, self.endpoints["control"], self._keys)
        except KeysError as error:
            raise _Failure(ExitCode.CONFIG, str(error)) from error
        except (OSError, zmq.ZMQError) as error:
            raise _Failure(ExitCode.ADDRESS_IN_USE, getattr(error, "strerror", None) or str(error)) from error
        try:
            for orphan in find_orphans():
                orphan.unlink(missing_ok=True)
            write_assembly(runtime, self.assembly)
            moving = len(moving_bodies(self.assembly.model.bodies))
            self.ring = RingWriter(
                runtime.ring_path,
                slots_for(moving),
                bodies=moving,
                snapshot_capacity=snapshot_size(self.assembly.model),
                memory_name=runtime.shared_name("ring"),
            )
            create_mailbox(runtime.mailbox_path, runtime.shared_name("mailbox"))
        except NoSpace as error:
            raise _Failure(ExitCode.NO_SPACE, str(error)) from error
        except OSError as error:
            raise _Failure(
                ExitCode.NO_SPACE, f"cannot write {error.filename or runtime.path}: {error.strerror}"
            ) from error
        self.ring.header.supervisor_pid = os.getpid()
        self.ring.lifeline.hold()
        self._beat()
        self.reader = RingReader(runtime.ring_path)
        self.mailbox = CommandWriter(runtime.mailbox_path)
        self.notifier = Notifier(runtime)
        self.control = Control(
            self._socket,
            facts_of(self.assembly, runtime.name, self.endpoints),
            self.mailbox,
            self.reader,
            self.processes,
            tell=self.tell,
        )
        if self.judge is not None:
            self.judge.watch(self._socket)
        link = self.assembly.config.link
        if link is not None:
            self.link_watch = LinkWatch(
                self.reader, self.assembly.settings["link"], self.tell, link.connect, link.server_key is not None
            )
        self.servo = Child("servo", python_module("bridge.servo", str(runtime.path)), runtime)
        self._add("publisher", lambda _: python_module("bridge.publisher", str(runtime.path)))
        if self.log is not None:
            log = self.log
            self._add(
                "recorder",
                lambda restarts: python_module("bridge.log.recorder", str(runtime.path), str(log_part(log, restarts))),
            )
        self._wait_for_servo()
        self._wait_for_helpers()
        self.ring.header.go = 1
        self._wait_until_ticking()
        if self.viewer is not None:
            viewer = list(self.viewer)
            self._add("viewer", lambda _: viewer, once_done=True)
        runtime.write_endpoints(self.endpoints, None if self._keys is None else self._keys.public.decode())
        self._poller.register(self._socket, zmq.POLLIN)
        if self.judge is not None:
            self._poller.register(self.judge.socket, zmq.POLLIN)
        self._poller.register(self.servo.descriptor, zmq.POLLIN)
        self.tell("supervisor_started", f"daemon {runtime.name!r} is up", pid=os.getpid())

    def _open_judge(self) -> None:
        """Keys for the programs of this user, and who decides on everybody's; nothing without an ``[access]``."""
        runtime = self.runtime
        for left in (runtime.local_keys_path, runtime.keys_link):
            left.unlink(missing_ok=True)
        if self.access is None:
            return
        local = new_pair()
        write_pair(runtime.local_keys_path, LOCAL, local)
        runtime.keys_link.write_text(str(self.access.keys_path))
        self.judge = Judge(self._context, runtime.judge_endpoint(), self.access.allow_path, local.public)

    def _admit(self) -> None:
        """Let the judge answer, and tell at times of those who were refused."""
        judge, control = self.judge, self.control
        if judge is None or control is None:
            return
        judge.step()
        new = judge.refused - (control.refused_handshakes or 0)
        self._untold += new
        control.refused_handshakes = judge.refused
        if self._untold and time.monotonic() >= self._tell_again:
            self._tell_again = time.monotonic() + REFUSALS_EVERY_S
            text = f"{self._untold} refused at the sockets; the last one: {judge.last_refusal}"
            self.tell("handshakes_refused", text, refused=self._untold, total=judge.refused)
            self._untold = 0

    def _add(self, name: str, command: Callable[[int], list[str]], once_done: bool = False) -> None:
        self.helpers[name] = Helper(name, command, self.runtime, once_done)

    def _beat(self) -> None:
        assert self.ring is not None
        self.ring.header.supervisor_heartbeat_ns = time.monotonic_ns()

    def _pause(self) -> None:
        self._beat()
        self._admit()
        if self.end_asked:
            raise _Failure(ExitCode.OK, self.end_asked)
        time.sleep(0.005)

    def _wait_for_servo(self) -> None:
        assert self.servo is not None
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            self.servo.read_messages()
            while self.servo.messages:
                message = self.servo.messages.popleft()
                if message.get("event") == "progress" and self.on_progress is not None:
                    self.on_progress(str(message["stage"]), int(message["done"]), int(message["total"]))
                elif message.get("event") == "warm":
                    self.statements = message["statements"]
                    return
            self._check_servo_start()
            if time.monotonic() > deadline:
                raise _Failure(ExitCode.SERVO_START, f"the servo was not ready after {START_TIMEOUT_S:g} s")
            self._pause()

    def _check_servo_start(self) -> None:
        assert self.servo is not None
        status = self.servo.poll()
        if status is not None:
            code = ExitCode.ADDRESS_IN_USE if status == ExitCode.ADDRESS_IN_USE else ExitCode.SERVO_START
            words = self.servo.last_words()
            text = f"the servo could not start ({describe_status(status)})"
            raise _Failure(code, f"{text}:\n{words}" if words else text)

    def _wait_for_helpers(self) -> None:
        """Wait until publisher and recorder read the ring: they note their pids in its header."""
        assert self.reader is not None
        deadline = time.monotonic() + HELPER_TIMEOUT_S
        waiting = dict(self.helpers)
        while waiting:
            reading = {row["pid"] for row in self.reader.readers()}
            for name, helper in list(waiting.items()):
                assert helper.child is not None
                status = helper.child.poll()
                if status is not None:
                    code = ExitCode.ADDRESS_IN_USE if status == ExitCode.ADDRESS_IN_USE else ExitCode.CHILD_START
                    words = helper.child.last_words()
                    raise _Failure(code, f"the {name} could not start ({describe_status(status)}):\n{words}")
                if helper.child.pid in reading:
                    del waiting[name]
            if waiting and time.monotonic() > deadline:
                names = " and ".join(waiting)
                raise _Failure(ExitCode.CHILD_START, f"{names} did not read the ring within {HELPER_TIMEOUT_S:g} s")
            self._pause()

    def _wait_until_ticking(self) -> None:
        assert self.servo is not None
        while not any(message.get("event") == "ticking" for message in self.servo.messages):
            self.servo.read_messages()
            self._check_servo_start()
            self._pause()
        self.servo.messages.clear()

    # -- while it runs -----------------------------------------------------------------------------------------------

    def tell(self, code: str, text: str, **data: Any) -> None:
        """A notice of the supervisor: to observers, and to whoever started it."""
        if self.notifier is not None:
            self.notifier.send("supervisor", code, text, **data)
        if code != "supervisor_started":
            self.on_message(text)

    def processes(self) -> dict[str, Any]:
        """Children by name: pid (None while it is down), restarts."""
        found: dict[str, Any] = {"servo": {"pid": self.servo.pid if self.servo else None, "restarts": 0}}
        for name, helper in self.helpers.items():
            found[name] = {"pid": helper.child.pid if helper.child else None, "restarts": helper.restarts}
        found["real_time"] = self.statements
        return found

    def serve(self, duration: float | None) -> ExitCode:
        """Serve until the end is asked for, comes by `duration` (s), or the servo ends by itself."""
        assert self.control is not None and self.servo is not None
        ends = None if duration is None else time.monotonic() + duration
        while True:
            self._poller.poll(BUSY_POLL_MS if self.control.waiting else IDLE_POLL_MS)
            self._beat()
            self._admit()
            self.control.step()
            if self.link_watch is not None:
                self.link_watch.step()
            self.servo.read_messages()
            status = self.servo.poll()
            if status is not None:
                return self._servo_ended(status)
            now = time.monotonic()
            for helper in self.helpers.values():
                helper.tend(now, self.tell)
            if self.end_asked or (ends is not None and now >= ends):
                return self._stop_servo()

    def _servo_ended(self, status: int) -> ExitCode:
        """The servo ended without the supervisor asking: by a shutdown request, or by misfortune."""
        assert self.servo is not None and self.control is not None
        # The answer to the request that ended it may still be in the ring.
        self.control.step()
        if status == ExitCode.OK:
            self.tell("servo_ended", "the servo ended as asked, forces are off")
            return ExitCode.OK
        code = ExitCode.SERVO_DIED
        with contextlib.suppress(ValueError):
            code = ExitCode(status)
        words = self.servo.last_words()
        text = f"the servo ended ({describe_status(status)}); everything else is stopped"
        self.tell("servo_died", text, status=status, stderr=words[-1000:])
        if words:
            self.on_message(words)
        return code

    def _stop_servo(self) -> ExitCode:
        """Ramp down, then end. Serves control meanwhile, so that clients get their answers."""
        assert self.servo is not None and self.ring is not None and self.control is not None
        self.tell("stopping", self.end_asked or "the asked-for duration is over")
        self.ring.header.stop_request = 1
        for number in (None, signal.SIGTERM):
            if number is not None:
                self.servo.send(number)
            deadline = time.monotonic() + RAMP_TIMEOUT_S
            while time.monotonic() < deadline:
                self._beat()
                self._admit()
                self.control.step()
                self.servo.read_messages()
                status = self.servo.poll()
                if status is not None:
                    return ExitCode.OK if status == ExitCode.OK else self._servo_ended(status)
                time.sleep(0.002)
        self.servo.send(signal.SIGKILL)
        self.servo.wait(5.0)
        self.tell("servo_stuck", "the servo did not end in time and was killed")
        return ExitCode.SERVO_STUCK

    # -- end ---------------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Stop what still runs, servo first, and remove what only a running daemon has."""
        for path in (self.runtime.endpoints_path, self.runtime.local_keys_path, self.runtime.keys_link):
            path.unlink(missing_ok=True)
        if self.servo is not None:
            if self.servo.poll() is None:
                self.servo.send(signal.SIGTERM)
                if not self.servo.wait(RAMP_TIMEOUT_S):
                    self.servo.send(signal.SIGKILL)
                    self.servo.wait(5.0)
            self.servo.read_messages()
            self.summary = next((m for m in reversed(self.servo.messages) if m.get("event") == "ended"), {})
            self.servo.close()
        if self.ring is not None:
            # Also when it was killed: readers see that nothing more comes, and finish.
            self.ring.header.ready = ENDED
        for name, seconds in (
            ("viewer", HELPER_STOP_S),
            ("recorder", RECORDER_TIMEOUT_S),
            ("publisher", HELPER_STOP_S),
        ):
            helper = self.helpers.get(name)
            if helper is not None and not helper.stop(seconds):
                self.on_message(f"the {name} did not end in {seconds:g} s and was killed")
        if self.notifier is not None:
            self.notifier.close()
        if self._socket is not None:
            self._socket.close()
        if self.judge is not None:
            self.judge.close()
        self._context.term()
        for part in (self.reader, self.mailbox, self.ring):
            if part is not None:
                part.close()
        remove_shared_file(self.runtime.ring_path)
        remove_shared_file(self.runtime.mailbox_path)
        for leftover in self.runtime.path.glob("*.sock"):
            with contextlib.suppress(OSError):
                leftover.unlink()


def _say_on_stderr(text: str) -> None:
    print(f"hapticd: {text}", file=sys.stderr, flush=True)


def run_daemon(
    assembly: Any,
    *,
    name: str = "default",
    duration: float | None = None,
    log: str | os.PathLike[str] | None = None,
    viewer: Sequence[str] | None = None,
    on_progress: Progress | None = None,
    on_ready: Callable[[dict[str, Any]], None] | None = None,
    on_end: Callable[[dict[str, Any]], None] | None = None,
    on_message: Callable[[str], None] = _say_on_stderr,
) -> ExitCode:
    """Run a daemon until it is asked to end, and return why it ended; never raises for what a user can cause.

    assembly: see `bridge.assemble.assemble`. duration: s. log: MCAP file to record into; it must not exist. viewer:
    command line of a viewer process. on_progress(stage, done, total): while kernels are compiled or loaded. on_ready:
    once the servo ticks, with name, endpoints, runtime directory, pid and what the operating system granted
    (`statements`: maps of name, granted, text). on_end: totals of the servo (ticks, missed, rejected, dropped,
    tick_ns_max, lateness_ns_max, compiles), empty when it died. on_message: one sentence each for whatever happens.

    Ends on SIGINT, SIGTERM and, unless it is ignored, SIGHUP (when called in the main thread), `hapticd stop`,
    `duration`, or the end of the servo.
    """
    try:
        runtime = RuntimeDirectory(name).create()
        lock = runtime.lock()
    except AlreadyRunning as error:
        on_message(str(error))
        return ExitCode.ALREADY_RUNNING
    except RuntimeDirectoryError as error:
        on_message(str(error))
        return ExitCode.FAILURE
    with lock:
        try:
            daemon = Daemon(
                assembly, runtime, None if log is None else Path(log).absolute(), viewer, on_progress, on_message
            )
        except RuntimeDirectoryError as error:
            on_message(str(error))
            return ExitCode.CONFIG
        for path in (runtime.numbering_path, *runtime.path.glob("*.log")):
            path.unlink(missing_ok=True)

        def ask(number: signal.Signals) -> None:
            daemon.end_asked = f"asked to end by {number.name}"

        with ending_signals(ask, again_ends=False):
            try:
                if daemon.log is not None and daemon.log.exists():
                    raise _Failure(ExitCode.INPUT, f"the log file {daemon.log} exists already; it is not written over")
                daemon.start()
                if on_ready is not None:
                    on_ready(
                        {
                            "name": name,
                            "endpoints": dict(daemon.endpoints),
                            "runtime_directory": str(runtime.path),
                            "pid": os.getpid(),
                            "statements": daemon.statements,
                            "log": None if daemon.log is None else str(daemon.log),
                        }
                    )
                code = daemon.serve(duration)
            except _Failure as failure:
                on_message(failure.text)
                code = failure.code
            except RingError as error:
                on_message(str(error))
                code = ExitCode.FAILURE
            finally:
                daemon.stop()
        if on_end is not None:
            on_end(daemon.summary)
        return code
