"""Shared by all tests; its presence also lets them import what stands beside it (`daemons`)."""

import shutil
import tempfile
from pathlib import Path

import pytest

import bridge  # noqa: F401  first of all: it chooses where compiled kernels are kept


@pytest.fixture
def short_base(monkeypatch):
    """A private base for runtime directories, short because the paths of local sockets must be."""
    base = Path(tempfile.mkdtemp(prefix="hd-", dir="/tmp"))
    monkeypatch.setenv("HAPTICD_RUNTIME_DIR", str(base))
    yield base
    shutil.rmtree(base, ignore_errors=True)
