"""How kernels get tables: named tuples of arrays that are handed over as one address each.

Numba hands a tuple over by its parts, and an array by seven numbers and more: a call with the model and the state has
six hundred arguments. To write, read and optimise those calls is most of what there is to compile, and a kernel that is
called must fetch them from the stack anyway. A class with the decorator `by_reference` is written down once, where
Python calls a kernel, and kernels give each other its address. What they find there does not change as long as any of
them runs: attributes can be read, and nothing else can be done with such a tuple.
"""

import hashlib
from typing import Any, TypeVar

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import impl_ret_borrowed
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_getattr_generic,
    models,
    register_model,
    typeof_impl,
    unbox,
)

Class = TypeVar("Class", bound=type)
_Template: Any = AttributeTemplate


class Reference(types.Type):
    """Address of a named tuple of arrays, and of other references."""

    def __init__(self, dtype: types.NamedTuple):
        self.dtype = dtype
        of = dtype.instance_class
        content = hashlib.sha256(",".join((*dtype.fields, *map(str, dtype.types))).encode()).hexdigest()[:16]
        super().__init__(name=f"Reference({of.__module__}.{of.__qualname__}, {content})")

    def field(self, name: str) -> types.Type | None:
        """Type of a field; None for what is none."""
        return self.dtype.types[self.dtype.fields.index(name)] if name in self.dtype.fields else None


def by_reference(made: Class) -> Class:
    """Decorator of a class of named tuples that kernels get by reference."""

    @typeof_impl.register(made)
    def _typeof(value: Any, context: Any) -> Reference | None:
        parts = [typeof_impl(part, context) for part in value]
        return None if None in parts else Reference(types.NamedTuple(parts, made))

    return made


register_model(Reference)(models.PointerModel)


@infer_getattr
class _Attributes(_Template):
    key = Reference

    def generic_resolve(self, value: Any, name: Any) -> Any:
        return value.field(name)


@lower_getattr_generic(Reference)
def _read(context: Any, builder: ir.IRBuilder, kind: Reference, value: ir.Value, name: str) -> ir.Value:
    """Read a field: its numbers one by one, so that the compiler sees of each that nothing changes it."""
    place = cgutils.gep_inbounds(builder, value, 0, kind.dtype.fields.index(name))
    field = kind.field(name)
    read = context.data_model_manager[field].from_data(builder, _load(builder, place))
    return impl_ret_borrowed(context, builder, field, read)


def _load(builder: ir.IRBuilder, place: ir.Value) -> ir.Value:
    """Load a value whose parts are numbers and addresses."""
    kind = place.type.pointee
    if not isinstance(kind, ir.Aggregate):
        loaded = builder.load(place)
        loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
        return loaded
    whole = ir.Constant(kind, ir.Undefined)
    for number in range(len(kind)):
        whole = builder.insert_value(whole, _load(builder, cgutils.gep_inbounds(builder, place, 0, number)), number)
    return whole


@unbox(Reference)
def _write_down(kind: Reference, value: ir.Value, context: Any) -> NativeValue:
    """Write a tuple that comes from Python down for as long as the call takes.

    Reads that nothing precedes may be put before this: the address goes through a statement that nothing is known of.
    """
    builder = context.builder
    parts = context.unbox(kind.dtype, value)
    model = context.context.data_model_manager[kind.dtype]
    written = model.as_data(builder, parts.value)
    place = cgutils.alloca_once(builder, written.type)
    builder.store(written, place)
    hidden = ir.InlineAsm(ir.FunctionType(place.type, [place.type]), "", "=r,0,~{memory}", side_effect=True)

    def clean_up() -> None:
        if parts.cleanup is not None:
            parts.cleanup()
        if context.context.enable_nrt:
            context.context.nrt.decref(builder, kind.dtype, parts.value)

    return NativeValue(builder.call(hidden, [place]), is_error=parts.is_error, cleanup=clean_up)
