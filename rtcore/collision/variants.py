"""The query from the roots with other box and elementary tests in it, to compare methods; not for the daemon.

A kernel calls its parts directly, and numba keeps compiled kernels by the place of their source. So a variant is the
same source with other functions under the same names, compiled anew in each process (some ten seconds).
"""

from types import FunctionType, ModuleType
from typing import Any

from numba import njit

from rtcore.collision import first_contact, leaf
from rtcore.collision.elementary import advance
from rtcore.collision.overlap_modes import boxes_meet_by


def first_contact_by(elementary: ModuleType = advance) -> Any:
    """Make a `first_contact` kernel that obeys QUERY.overlap and takes its elementary tests from a module.

    elementary: a module with a first_approach of the common form, see
    rtcore.collision.elementary. Which motions it can do is for the caller to see to.
    """
    test = rebuilt(leaf._test, first_approach=elementary.first_approach)
    leaf_pair = rebuilt(leaf.leaf_pair, _test=test)
    offer = rebuilt(first_contact._offer, meet=rebuilt(_meet_by))
    return rebuilt(first_contact.first_contact, leaf_pair=leaf_pair, _offer=offer)


def _meet_by(
    first: Any, second: Any, relative: Any, placement: Any, query: Any, counters: Any
) -> tuple[bool, float, float]:
    return boxes_meet_by(first, second, relative, placement, query.separation, query, counters)


def rebuilt(kernel: Any, **functions: Any) -> Any:
    """A kernel, or a plain function, compiled with other functions for some of the names that it uses."""
    python = getattr(kernel, "py_func", kernel)
    return njit(nogil=True, error_model="numpy")(
        FunctionType(python.__code__, {**python.__globals__, **functions}, python.__name__)
    )
