"""What compiled code may do that Python cannot say: call machine code at an address, read and write words of memory."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

__all__ = ["call_nest", "load_int", "load_word", "next_number", "store_word"]

_WORD = ir.IntType(64)


@intrinsic
def call_nest(typing_context: Any, address: Any, begin: Any, end: Any, frame: Any) -> Any:
    """Call the nest at ``address``."""

    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [_WORD] * 3)
        builder.call(builder.inttoptr(values[0], kind.as_pointer()), values[1:])
        return context.get_dummy_value()

    return types.void(*[types.int64] * 4), emit


def _memory(width: int) -> Any:
    @intrinsic
    def load(typing_context: Any, address: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            kind = ir.IntType(width)
            return builder.sext(builder.load(builder.inttoptr(values[0], kind.as_pointer())), _WORD)

        return types.int64(types.int64), emit

    return load


load_word = _memory(64)
load_int = _memory(32)


@intrinsic
def store_word(typing_context: Any, address: Any, value: Any) -> Any:
    """Write a word of memory."""

    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        builder.store(values[1], builder.inttoptr(values[0], _WORD.as_pointer()))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), emit


@intrinsic
def next_number(typing_context: Any, address: Any) -> Any:
    """The word at ``address``, which goes up by one: every thread gets another number."""

    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        counter = builder.inttoptr(values[0], _WORD.as_pointer())
        return builder.atomic_rmw("add", counter, ir.Constant(_WORD, 1), "monotonic")

    return types.int64(types.int64), emit
