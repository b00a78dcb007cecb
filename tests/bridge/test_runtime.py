"""The runtime directory: private, found by name, one daemon per name, never an address on the network."""

import json
import multiprocessing
import os
import stat

import pytest

from bridge.config import Sockets
from bridge.runtime import (
    AddressRefused,
    AlreadyRunning,
    RuntimeDirectory,
    RuntimeDirectoryError,
    base_directory,
    check_address,
    write_json,
)


def test_base_is_the_variable_then_the_session_then_tmp(monkeypatch, tmp_path):
    monkeypatch.setenv("HAPTICD_RUNTIME_DIR", str(tmp_path / "chosen"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert base_directory() == tmp_path / "chosen"
    monkeypatch.delenv("HAPTICD_RUNTIME_DIR")
    assert base_directory() == tmp_path / "hapticd"
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "absent"))
    assert str(base_directory()) == f"/tmp/hapticd-{os.getuid()}"


@pytest.mark.parametrize("name", ["", "..", "a/b", "a b", ".hidden", "x" * 49, "ä"])
def test_names_that_could_leave_the_base_are_refused(name):
    with pytest.raises(RuntimeDirectoryError, match="is not usable"):
        RuntimeDirectory(name)


def test_directory_is_private(tmp_path):
    runtime = RuntimeDirectory("one", tmp_path / "base").create()
    assert stat.S_IMODE(runtime.path.stat().st_mode) == 0o700
    runtime.path.chmod(0o777)
    with pytest.raises(RuntimeDirectoryError, match="written by other users"):
        runtime.create()


@pytest.mark.parametrize(("mode", "good"), [(0o777, False), (0o770, False), (0o1777, True), (0o755, True)])
def test_the_base_is_one_that_others_cannot_write_or_has_the_sticky_bit(tmp_path, mode, good):
    base = tmp_path / "base"
    base.mkdir()
    base.chmod(mode)
    if good:
        assert RuntimeDirectory("default", base).create().path.is_dir()
    else:
        with pytest.raises(RuntimeDirectoryError, match="written by other users"):
            RuntimeDirectory("default", base).create()
        assert not list(base.iterdir()), "nothing is made there"


def test_what_another_user_wrote_is_not_believed(tmp_path, monkeypatch):
    runtime = RuntimeDirectory("default", tmp_path).create()
    with runtime.lock():
        runtime.write_endpoints(runtime.endpoints())
        assert runtime.read_endpoints()
        monkeypatch.setattr(os, "getuid", lambda: 12345)
        with pytest.raises(RuntimeDirectoryError, match="belongs to another user"):
            runtime.read_endpoints()


def test_a_file_in_the_way_is_named(tmp_path):
    (tmp_path / "one").write_text("")
    with pytest.raises(RuntimeDirectoryError, match="one"):
        RuntimeDirectory("one", tmp_path).create()


def _hold(path: str, held, release) -> None:
    with RuntimeDirectory.at(path).lock():
        held.set()
        release.wait(20)


def test_second_daemon_is_told_who_runs(tmp_path):
    runtime = RuntimeDirectory("one", tmp_path).create()
    assert runtime.holder() is None
    context = multiprocessing.get_context("spawn")
    held, release = context.Event(), context.Event()
    process = context.Process(target=_hold, args=(str(runtime.path), held, release))
    process.start()
    assert held.wait(20)
    assert runtime.holder() == process.pid
    with pytest.raises(AlreadyRunning, match=f"already running .pid {process.pid}"):
        runtime.lock()
    # The kernel gives the lock back however the holder ends.
    process.kill()
    process.join()
    assert not runtime.is_running()
    with runtime.lock():
        assert runtime.holder() == os.getpid()
    assert not runtime.is_running()


def test_endpoints_are_found_from_the_name_while_a_daemon_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("HAPTICD_RUNTIME_DIR", str(tmp_path))
    runtime = RuntimeDirectory("one").create()
    with pytest.raises(RuntimeDirectoryError, match="no daemon named 'one' is running"):
        runtime.read_endpoints()
    with runtime.lock():
        with pytest.raises(RuntimeDirectoryError, match="still starting"):
            runtime.read_endpoints()
        runtime.write_endpoints(runtime.endpoints(Sockets()))
        assert RuntimeDirectory("one").read_endpoints() == runtime.endpoints(Sockets())
        assert [found.name for found in RuntimeDirectory.all()] == ["one"]
    # Left over by a daemon that was killed: its addresses must not be believed.
    with pytest.raises(RuntimeDirectoryError, match="no daemon named"):
        runtime.read_endpoints()


def test_tcp_takes_four_ports_of_loopback(tmp_path):
    runtime = RuntimeDirectory("one", tmp_path)
    found = runtime.endpoints({"transport": "tcp", "host": "127.0.0.1", "port": 6000})
    assert found == {
        "device": "tcp://127.0.0.1:6000",
        "control": "tcp://127.0.0.1:6001",
        "state": "tcp://127.0.0.1:6002",
        "events": "tcp://127.0.0.1:6003",
    }
    assert runtime.endpoints({"transport": "tcp", "host": "::1", "port": 6000})["device"] == "tcp://[::1]:6000"


@pytest.mark.parametrize(
    "address",
    [
        "tcp://0.0.0.0:5550",
        "tcp://*:5550",
        "tcp://192.168.1.2:5550",
        "tcp://[::]:5550",
        "tcp://example.org:1",
        "udp://x",
    ],
)
def test_addresses_on_a_network_are_refused(address):
    with pytest.raises(AddressRefused, match="refused to bind"):
        check_address(address)


@pytest.mark.parametrize("address", ["ipc:///tmp/x", "tcp://127.0.0.1:1", "tcp://127.8.0.1:1", "tcp://[::1]:1"])
def test_loopback_and_ipc_pass(address):
    assert check_address(address) == address


def test_a_socket_path_that_the_system_cannot_hold_is_refused_early(tmp_path):
    with pytest.raises(RuntimeDirectoryError, match="set HAPTICD_RUNTIME_DIR to a shorter"):
        RuntimeDirectory("one", tmp_path / ("d" * 100)).endpoints()


def test_json_is_replaced_in_one_step(tmp_path):
    path = tmp_path / "file.json"
    write_json(path, {"a": 1})
    write_json(path, {"a": 2})
    assert json.loads(path.read_text()) == {"a": 2}
    assert os.listdir(tmp_path) == ["file.json"]
