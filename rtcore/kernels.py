"""How kernels that only other kernels call are compiled."""

from typing import Any

from numba import njit

_OPTIONS: dict[str, Any] = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}

inner = njit(**_OPTIONS)
"""Decorator: as that of other kernels, without the wrappers by which Python and C would call them. Of a function that
takes the model and the state, a hundred tables, those are most of what there is to compile."""
