"""Tables that kernels get by reference: what they read is what is there, and it does not matter how they got it."""

import sys
from typing import NamedTuple

import numba
import numpy as np
import pytest
from numba.core.errors import TypingError
from numba.core.runtime import _nrt_python as _nrt
from numba.core.runtime import rtsys

from rtcore import kernels
from rtcore.by_reference import Reference, by_reference
from rtcore.model import Model
from rtcore.state import Pairs, State
from rtcore.warm_up import empty_tables

OPTIONS = {**kernels._OPTIONS, "cache": False}


class Plain(NamedTuple):
    values: np.ndarray
    table: np.ndarray


@by_reference
class Inner(NamedTuple):
    values: np.ndarray
    table: np.ndarray


@by_reference
class Outer(NamedTuple):
    numbers: np.ndarray
    inner: Inner
    plain: Plain


def tables() -> tuple[np.ndarray, np.ndarray]:
    return np.arange(5.0), np.arange(12, dtype=np.int32).reshape(3, 4)


def work(outer):
    """Reads that nothing precedes, writes, and reads after them, of all ranks; a call that hands a part on."""
    total = 0.0
    for i in range(len(outer.inner.values)):
        outer.inner.values[i] += outer.numbers[i % len(outer.numbers)]
        total += outer.inner.values[i] * outer.plain.table[i % 3, i % 4] + outer.inner.table.shape[1]
        outer.plain.values[i] = total
    return total


@pytest.mark.parametrize("counting", [False, True])
def test_a_kernel_sees_and_changes_what_python_does(counting):
    compiled = numba.njit(**{**OPTIONS, "_nrt": counting})(work)
    made = [Outer(np.array([3.0, -1.0]), Inner(*tables()), Plain(*tables())) for _ in range(2)]
    assert compiled(made[0]) == work(made[1])
    for one, other in zip((made[0].inner, made[0].plain), (made[1].inner, made[1].plain), strict=True):
        np.testing.assert_array_equal(one.values, other.values)
        np.testing.assert_array_equal(one.table, other.table)


def test_who_counts_references_counts_right():
    """Each array has as many at the end as before: one too few would free it under the feet of whoever holds it."""
    counted = numba.njit(work)
    compiled = numba.njit(lambda outer: outer.inner.values[1] + outer.plain.values[2] + counted(outer))
    made = Outer(np.array([3.0, -1.0]), Inner(*tables()), Plain(*tables()))
    arrays = (made.numbers, *made.inner, *made.plain)
    _nrt.memsys_enable_stats()
    before, stats = [sys.getrefcount(array) for array in arrays], rtsys.get_allocation_stats()
    for _ in range(100):
        compiled(made)
    after = rtsys.get_allocation_stats()
    _nrt.memsys_disable_stats()
    assert [sys.getrefcount(array) for array in arrays] == before
    assert after.mi_alloc - stats.mi_alloc == after.mi_free - stats.mi_free


def test_each_call_gets_its_own_tables():
    compiled = numba.njit(**OPTIONS)(lambda inner: inner.values[0])
    assert [compiled(Inner(np.full(2, x), tables()[1])) for x in (1.0, 2.0, 1.0)] == [1.0, 2.0, 1.0]
    assert len(compiled.signatures) == 1


def test_a_part_of_the_whole_is_of_the_same_type_as_one_from_python():
    model, state = empty_tables()
    assert isinstance(numba.typeof(model), Reference)
    kind = numba.typeof(state)
    assert kind.field("pairs") == numba.typeof(state.pairs)
    assert kind.field("problem") == numba.typeof(state.problem)
    assert kind.field("poses") == numba.typeof(state.poses)
    assert kind.field("absent") is None


def test_types_tell_classes_and_contents_apart():
    values, table = tables()
    kinds = {numba.typeof(x) for x in (Inner(values, table), Inner(table, values), Inner(table, table))}
    assert len(kinds) == 3 and numba.typeof(Inner(*tables())) in kinds
    values.flags.writeable = False
    assert numba.typeof(Inner(values, table)) not in kinds


def test_what_is_no_table_is_refused():
    compiled = numba.njit(**OPTIONS)(lambda inner: inner.absent)
    with pytest.raises(TypingError):
        compiled(Inner(*tables()))
    with pytest.raises(TypingError):
        compiled(Inner(tables()[0], object()))


@pytest.mark.parametrize("made", [Model, State, Pairs])
def test_a_call_hands_over_addresses(made):
    """A kernel's own arguments are as many as it is written with: no array goes by its parts."""
    model, state = empty_tables()
    table = {Model: model, State: state, Pairs: state.pairs}[made]
    compiled = numba.njit(**OPTIONS)(lambda table: 1.0)
    compiled(table)
    code = next(iter(compiled.inspect_llvm().values()))
    signature = next(line for line in code.splitlines() if line.startswith("define") and "cpython" not in line)
    assert signature.count("%arg.") == 1
