"""How kernels are compiled: the decorators of everything that runs within a tick.

Kernels keep what they see in tables that live longer than they do, and allocate nothing. Numba would count references
to each table on each of its ways through each kernel all the same, by atomic operations that take half of a tick;
without its run time it does not, and refuses what allocates. Modules that build tables, off-line, use numba's own njit.
"""

from typing import Any

import numba

_njit: Any = numba.njit
_OFFLINE: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}
_OPTIONS: dict[str, Any] = {**_OFFLINE, "_nrt": False}
_PRIVATE: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}

kernel = _njit(**_OPTIONS)
"""Decorator of a kernel."""

inlined = _njit(**_OPTIONS, inline="always")
"""Decorator of a kernel that is compiled as a part of the one that calls it."""

inner = _njit(**_OPTIONS, **_PRIVATE)
"""Decorator of a kernel that only other kernels call: without the wrappers by which Python and C would call it. Of a
function that takes the model and the state, a hundred tables, those are most of what there is to compile."""

builder = _njit(**_OFFLINE, **_PRIVATE)
"""As `inner`, of what builds tables and may allocate."""
