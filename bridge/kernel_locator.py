"""Tells numba where the kernels of a module are kept (see :mod:`bridge.kernel_cache`); numba imports it by name."""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

from numba.core.caching import UserProvidedCacheLocator

from bridge.kernel_cache import ROOT, module_hash


class KernelLocator(UserProvidedCacheLocator):
    """A directory for each module, named by the hash of all that its kernels are made from."""

    def __init__(self, py_func: Callable, py_file: str):
        super().__init__(py_func, py_file)
        path = Path(py_file).resolve()
        self._hash = None
        if path.is_relative_to(ROOT):
            self._hash = module_hash(path)
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            self._cache_path = os.path.join(os.path.dirname(self._cache_path), f"{name}-{self._hash}")

    def get_source_stamp(self) -> object:
        """What numba compares before it takes a kernel: the hash says more than the time of a file."""
        return self._hash or super().get_source_stamp()

    def ensure_cache_path(self) -> None:
        """Make the directory, and mark it as used."""
        super().ensure_cache_path()
        with contextlib.suppress(OSError):
            os.utime(self._cache_path)
