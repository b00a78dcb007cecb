"""Shared by all tests; its presence also lets them import what stands beside it (`daemons`).

Properties are tested on the same examples in every run, so that a run says something about the change at hand.
`HYPOTHESIS_PROFILE=explore pytest ...` looks for new ones.
"""

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

import bridge  # noqa: F401  first of all: it chooses where compiled kernels are kept

settings.register_profile("same", derandomize=True, database=None)
settings.register_profile("explore")
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


@pytest.fixture
def short_base(monkeypatch):
    """A private base for runtime directories, short because the paths of local sockets must be."""
    base = Path(tempfile.mkdtemp(prefix="hd-", dir="/tmp"))
    monkeypatch.setenv("HAPTICD_RUNTIME_DIR", str(base))
    yield base
    shutil.rmtree(base, ignore_errors=True)
