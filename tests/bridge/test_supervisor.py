"""The supervisor's parts: names of files, addresses in use, exit codes."""

import socket

import pytest

from bridge import supervisor
from bridge.exit_codes import ExitCode
from bridge.supervisor import check_ports_free, log_part


def test_restarted_recorder_gets_a_new_file(tmp_path):
    assert log_part(tmp_path / "run.mcap", 0) == tmp_path / "run.mcap"
    assert log_part(tmp_path / "run.mcap", 2) == tmp_path / "run.restart2.mcap"


def test_port_of_another_program_is_named():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(OSError, match=rf"the state socket cannot use 127.0.0.1:{port}.*another `port`"):
            check_ports_free({"device": "ipc:///tmp/x", "state": f"tcp://127.0.0.1:{port}"})
    check_ports_free({"state": f"tcp://127.0.0.1:{port}"})


def test_exit_codes_are_distinct_and_documented():
    source = supervisor.Path(supervisor.__file__).with_name("exit_codes.py").read_text()
    assert len({int(code) for code in ExitCode}) == len(list(ExitCode))
    assert source.count('"""') >= 2 * (len(list(ExitCode)) + 1)
