"""What printed modules import to be compiled by Numba: the names of `tcdsl.targets.cpu.printing.language`.

A module that imports them from here is one of Numba functions, on the same frames. Numba has no types for float16 and
integers of more than 64 bits, and nothing here tests accesses.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import int64, prange, types
from numba.core import cgutils, imputils, ir_utils
from numba.extending import intrinsic, lower_builtin, models, overload, register_model
from numba.np.arrayobj import load_item, make_array, populate_array, store_item

from tcdsl.ir.dtypes import DTYPES
from tcdsl.ir.primitives import PRIMITIVES
from tcdsl.targets.cpu.layout import frame as layout
from tcdsl.targets.cpu.printing.language import local_buffer, power

__all__ = ["buffer", "fail", "lanes", "local_buffer", "nest", "power", "prange", "rounds", "seldom", "size"]

_ROUNDS = 1 << 20  # After so many rounds of all its loops, some milliseconds, a function looks for interrupts.
_OPTIONS, _WORD = {"error_model": "numpy"}, ir.IntType(64)
_compiled = numba.njit(**_OPTIONS)
lanes = _compiled(lambda start, n, stop=None: range(start, start + n if stop is None else min(start + n, stop)))
seldom = _compiled(lambda steps: steps)


def nest(*, fastmath: Sequence[str]) -> Any:
    """A function of the module: its loop over ``prange``, if it has one, runs on several threads.

    Where Numba may use one thread alone, it is a plain loop: that takes half as long to compile.
    """
    options, several = {"fastmath": set(fastmath), **_OPTIONS}, numba.config.NUMBA_NUM_THREADS > 1
    return lambda function: numba.njit(parallel=several and "prange" in function.__code__.co_names, **options)(function)


@intrinsic
def _words(typing: Any, address: Any) -> Any:
    kind = types.CPointer(int64)
    return kind(int64), lambda context, builder, _, given: builder.inttoptr(given[0], context.get_value_type(kind))


@intrinsic
def _as(typing: Any, value: Any, model: Any) -> Any:
    # ``value`` in the type of ``model``.
    return model(value, model), lambda context, builder, _, given: context.cast(builder, given[0], value, model)


def _words_at(builder: Any, frame: Any, place: Any) -> Any:
    # Those that begin where the nest's place says.
    def word(address: Any, number: Any) -> Any:
        return builder.gep(builder.inttoptr(address, _WORD.as_pointer()), [number])

    places = builder.load(word(frame, ir.Constant(_WORD, layout.PLACES_WORD)))
    return word(frame, builder.load(word(places, place)))


@intrinsic
def size(typing: Any, frame: Any, place: Any) -> Any:
    """The size in the word of the frame that the nest's place ``place`` names."""
    return int64(int64, int64), lambda context, builder, _, given: builder.load(_words_at(builder, *given))


@_compiled
def fail(frame: int, check: int, value: int, extent: int, positions: tuple[int, ...]) -> None:
    """Write into the frame that a check failed, for which value and extent, and where the loops stood."""
    words = _words(frame)
    words[layout.STATUS_WORD], words[layout.CHECK_WORD], words[layout.EXTENT_WORD] = layout.CHECK_FAILED, check, extent
    for k in range(layout.VALUE_WORDS):
        words[layout.VALUE_WORD + k] = value >> (63 if k else 0)
    for k in range(len(positions)):
        words[layout.POSITION_WORD + k] = (*positions, 0)[k]


def _parts(description: str) -> tuple[list[str], str]:
    dtype, _, axes = description.rstrip("]").partition("[")
    return [axis for axis in axes.split(", ") if axis], dtype


class _Buffer(types.Array):
    # Without negative indices: Numba's own arrays count them from the end, and loops that may do so are no vectors.
    pass


register_model(_Buffer)(models.ArrayModel)


def _access(store: bool) -> Any:
    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        kind, index = signature.args[:2]
        positions = cgutils.unpack_tuple(builder, given[1]) if isinstance(index, types.BaseTuple) else [given[1]]
        array = make_array(kind)(context, builder, given[0])
        cell = cgutils.get_item_pointer(context, builder, kind, array, positions, wraparound=False)
        return store_item(context, builder, kind, given[2], cell) if store else load_item(context, builder, kind, cell)

    return code


for _index in (types.Integer, types.BaseTuple):
    lower_builtin(operator.getitem, _Buffer, _index)(_access(store=False))
    lower_builtin(operator.setitem, _Buffer, _index, types.Any)(_access(store=True))


# Functions that Numba compiles take a tenth of a second for each array of each nest; code in place takes nothing.
@intrinsic(prefer_literal=True)
def buffer(typing: Any, frame: Any, place: Any, description: Any) -> Any:
    """The array whose address, strides and extents are in the words from a nest's place on; of rank 0 a pointer."""
    axes, dtype = _parts(description.literal_value)
    rank, cell = len(axes), numba.from_dtype(np.dtype(dtype))
    kind = _Buffer(cell, rank, "C" if axes[-1] == "::1" else "A") if rank else types.CPointer(cell)

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        held, words = context.get_data_type(cell), _words_at(builder, *given[:2])
        address, *numbers = [builder.load(cgutils.gep(builder, words, k)) for k in range(1 + 2 * rank)]
        data, width = builder.inttoptr(address, held.as_pointer()), ir.Constant(_WORD, context.get_abi_sizeof(held))
        if not rank:
            return data
        parts = numbers[rank:], [builder.mul(stride, width) for stride in numbers[:rank]]
        made = make_array(kind)(context, builder)
        packed = [cgutils.pack_array(builder, part, _WORD) for part in parts]
        populate_array(made, data, *packed, itemsize=width, meminfo=None)
        return made._getvalue()

    return kind(int64, int64, description), code


def _empty(bounds: Sequence[str], dtype: str) -> Any:
    shape, kind = tuple(map(int, bounds)), np.dtype(dtype).type
    return lambda slot, description: np.empty(shape, kind)


def _is_number(cell: Any, index: Any) -> bool:
    return isinstance(cell, types.CPointer) and index == types.Tuple(())


# It must know that others see the arrays of buffers, or it drops what is written to them.
ir_utils.alias_func_extensions["buffer", __name__] = lambda name, given, aliases, seen: seen.add(name)
overload(local_buffer, prefer_literal=True)(lambda slot, description: _empty(*_parts(description.literal_value)))
overload(operator.getitem)(lambda cell, index: (lambda cell, index: cell[0]) if _is_number(cell, index) else None)
overload(operator.setitem)(
    lambda cell, index, value: (
        (lambda cell, index, value: operator.setitem(cell, 0, value)) if _is_number(cell, index) else None
    )
)


class _Rounds(types.SimpleIteratorType):
    def __init__(self) -> None:
        super().__init__("rounds", int64)


register_model(_Rounds)(models.OpaqueModel)
lower_builtin("getiter", _Rounds)(lambda context, builder, signature, given: given[0])


@intrinsic
def rounds(typing: Any, frame: Any, steps: Any) -> Any:
    """The rounds of a loop that looks for interrupts now and then, and makes the function return where there is one."""

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        bounds, state = context.make_helper(builder, steps, given[1]), cgutils.alloca_once(builder, _WORD, 3)
        for k, word in enumerate((given[0], bounds.start, bounds.stop)):
            builder.store(word, cgutils.gep(builder, state, k))
        return builder.bitcast(state, cgutils.voidptr_t)

    return _Rounds()(int64, steps), code


@lower_builtin("iternext", _Rounds)
@imputils.iternext_impl(imputils.RefType.UNTRACKED)
def _next_round(context: Any, builder: Any, signature: Any, given: Any, result: Any) -> None:
    known = vars(builder.function)  # The loops of a function count their rounds together.
    if "tcdsl_rounds" not in known:
        known["tcdsl_rounds"] = cgutils.alloca_once(builder, _WORD)
    state = builder.bitcast(given[0], _WORD.as_pointer())
    frame, position, stop = [builder.load(cgutils.gep(builder, state, k)) for k in range(3)]
    done = cgutils.increment_index(builder, builder.load(known["tcdsl_rounds"]))
    builder.store(done, known["tcdsl_rounds"])
    frame_word = builder.gep(builder.inttoptr(frame, state.type), [ir.Constant(_WORD, layout.INTERRUPT_WORD)])
    due = cgutils.is_null(builder, builder.and_(done, ir.Constant(_WORD, _ROUNDS - 1)))
    with cgutils.if_unlikely(builder, builder.and_(due, cgutils.is_not_null(builder, builder.load(frame_word)))):
        look = builder.inttoptr(builder.load(frame_word), ir.FunctionType(_WORD, [_WORD]).as_pointer())
        with cgutils.if_unlikely(builder, cgutils.is_not_null(builder, builder.call(look, [frame]))):
            context.call_conv.return_native_none(builder)
    result.set_valid(builder.icmp_signed("<", position, stop))
    result.yield_(position)
    builder.store(cgutils.increment_index(builder, position), cgutils.gep(builder, state, 1))


def _extreme(name: str, order: str) -> Any:
    # NaN if either is, and of two zeros the positive one, or the negative one.
    @intrinsic
    def chosen(typing: Any, a: Any, b: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            if isinstance(a, types.Integer):
                compared = (builder.icmp_signed if a.signed else builder.icmp_unsigned)(order, *given)
                return builder.select(compared, *given)
            kind = ir.FunctionType(given[0].type, [given[0].type] * 2)
            return builder.call(builder.module.declare_intrinsic(f"llvm.{name}", [given[0].type], kind), given)

        return a(a, a), code

    return chosen


maximum, minimum = _extreme("maximum", ">"), _extreme("minimum", "<")


def _whole_power(a, b):  # type: ignore[no-untyped-def]  # Numba compares the parameters of both
    result, base, left = _as(1, a), a, b
    while left > 0:
        result, base, left = _as(result * base, a) if left & 1 else result, _as(base * base, a), left >> 1
    return result if b >= 0 or a == 1 else _as(a if b & 1 else 1, a) if a == -1 else _as(0, a)


overload(power, jit_options=_OPTIONS)(
    lambda a, b: _whole_power if isinstance(a, types.Integer) else lambda a, b: _as(a**b, a)
)

# Other functions of the table of primitives mean what they evaluate, but for a few that Numba takes otherwise.
_OWN: dict[str, Any] = {
    "relu": lambda a: _as(0, a) if a <= 0 else a,
    "sat01": lambda a: _as(0, a) if a <= 0 else _as(1, a) if a >= 1 else a,
    "sign": lambda a: _as(1, a) if a > 0 else _as(-1, a) if a < 0 else a + _as(0, a),
    "silu": lambda a: a / (_as(1, a) + math.exp(-a)),
    "relu_gate": lambda a, b: b if a > 0 else _as(0, b),
    "sat01_gate": lambda a, b: b if a > 0 and a < 1 else _as(0, b),
    # The processor traps on the least integer divided by -1, and takes a number of shifts modulo that of bits.
    "floor_div": lambda a, b: a // b if b != -1 else _as(-a, a) // _as(1, a),
    "mod": lambda a, b: a % b if b != -1 else _as(-(_as(-a, a) % _as(1, a)), a),
    "left_shift": lambda a, b: _as(a << b, a) if b >= 0 and b < 64 else _as(0, a),
    "right_shift": lambda a, b: _as(a >> b, a) if b >= 0 and b < 64 else _as(-1 if a < 0 else 0, a),
}


def _function(given: Any, arity: int) -> Any:
    function = given if isinstance(given, np.ufunc) else _compiled(given)
    return _compiled((lambda a: _as(function(a), a)) if arity == 1 else (lambda a, b: _as(function(a, b), a)))


for _row in PRIMITIVES.values():
    _name = _row.code.partition("(")[0]
    if _name.isidentifier() and _name not in globals():
        globals()[_name] = _function(_OWN.get(_name, _row.evaluate), _row.arity)
globals().update({name: getattr(types, name) for name in DTYPES if name not in ("bool", "float16")}, bool_=bool)
