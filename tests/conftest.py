"""Shared by all tests; its presence also lets them import what stands beside it (`daemons`).

Properties are tested on the same examples in every run, so that a run says something about the change at hand.
`HYPOTHESIS_PROFILE=explore pytest ...` looks for new ones.
"""

import gc
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

import bridge  # noqa: F401  first of all: it chooses where compiled kernels are kept

gc.set_threshold(100_000, 50, 100)
"""Compiling kernels makes many cycles; to look for those that nobody needs as often as usual takes a tenth of it."""

settings.register_profile("same", derandomize=True, database=None)
settings.register_profile("explore")
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

ALONE = {
    *("test_access", "test_adapter_registry"),
    *("test_children", "test_cli_processes", "test_client", "test_control", "test_demo", "test_doctor"),
    *("test_follow", "test_force_dimension", "test_hands", "test_inverse"),
    *(
        "test_lifeline",
        "test_link_relay",
        "test_log_play",
        "test_mailbox",
        "test_observer",
        "test_peer_socket",
        "test_presser",
        "test_publisher",
        "test_realtime",
        "test_ring",
        "test_runtime",
        "test_servo",
        "test_servo_link",
    ),
}
"""Files with processes or clocks of their own, like all of tests/system: they get the machine to themselves."""


TRIGGERED = {"test_device_degrees"}
"""Those of tests/system for whose daemons no time passes but by samples."""


def is_alone(path: Path) -> bool:
    """Whether the tests of a file are marked `alone`."""
    return path.stem in ALONE or (path.parent.name == "system" and path.stem not in TRIGGERED)


def pytest_ignore_collect(collection_path, config):
    """Who asks for one part of the tests by its mark need not import the files of the other part."""
    parts = {f"{part}{rest}": part == "alone" for part in ("alone", "not alone") for rest in ("", " and not long")}
    asked = parts.get(config.option.markexpr)
    if asked is not None and collection_path.name.startswith("test_") and is_alone(collection_path) != asked:
        return True
    return None


def pytest_collection_modifyitems(items):
    for item in items:
        if is_alone(item.path):
            item.add_marker(pytest.mark.alone)


@pytest.fixture
def short_base(monkeypatch):
    """A private base for runtime directories, short because the paths of local sockets must be."""
    base = Path(tempfile.mkdtemp(prefix="hd-", dir="/tmp"))
    monkeypatch.setenv("HAPTICD_RUNTIME_DIR", str(base))
    yield base
    shutil.rmtree(base, ignore_errors=True)
