"""Numba's functions of scalars in ops: elementwise operations, which machine code calls by address, without Python.

::

    @numba.njit
    def steep(a, b): return a * abs(a) + b

    cells = tc.interop.numba(steep, derivative=lambda a, b: (2 * abs(a), 1.0))       # y[i] = cells(x[i], w[i])

A host function (`tcdsl.interop.host_functions`) whose code goes from cell to cell: the function, or its derivative
times cotangents or tangents, is a loop that Numba compiles. What raises there is run once more by Python, which tells.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import cache, lru_cache, partial, reduce
from typing import Any

import numba
import numpy as np
from numba.core import types
from numba.core.ccallback import CFunc
from numba.core.dispatcher import Dispatcher
from numba.core.types.containers import BaseTuple
from numba.np.numpy_support import as_dtype, from_dtype
from numba.np.ufunc.dufunc import DUFunc

from tcdsl.errors import DtypeError, ShapeError
from tcdsl.interop.host_functions import HostFunction
from tcdsl.ir.dtypes import numpy_dtype
from tcdsl.ir.interpreter.host_code import ENTER, Types

__all__ = ["is_of_numba", "of_scalars"]


def is_of_numba(function: Any) -> bool:
    """Whether it is a function that Numba compiles."""
    return isinstance(function, Dispatcher | DUFunc | CFunc)


def of_scalars(function: Any, derivative: Callable[..., Any] | None) -> HostFunction:
    """The elementwise operation of ``function``, with its partial derivatives, if they are given."""
    value = _compiled(function)
    # What `@vectorize` makes divides by zero as NumPy does, other functions as Python.
    ufunc = function if isinstance(function, DUFunc) else np.vectorize(value)
    partials = None if derivative is None else _compiled(derivative)
    rules = [None if partials is None else _Cells(kind, value, ufunc, partials) for kind in ("pullback", "pushforward")]
    return HostFunction(_Cells("value", value, ufunc, partials), partial(_result, value), *rules)


def _compiled(function: Any) -> Any:
    if isinstance(function, Dispatcher):
        return function
    plain = getattr(getattr(function, "_dispatcher", function), "py_func", None)
    model = "numpy" if isinstance(function, DUFunc) else "python"
    return numba.njit(plain or getattr(function, "_pyfunc", function), error_model=model)


def _result(function: Any, *arrays: Any) -> Any:
    # Which axes stretch, arithmetic of arrays knows; of what it records here, no program makes anything.
    plain = all(isinstance(each, np.ndarray | np.generic) for each in arrays)
    shape = np.broadcast_shapes(*map(np.shape, arrays)) if plain else reduce(operator.add, arrays).shape
    dtypes = [str(getattr(each, "element_type", each.dtype)) for each in arrays]
    if "float16" in dtypes:
        fact = f"argument {dtypes.index('float16')} of `{function.__name__}` is float16, which Numba does not handle"
        raise DtypeError.at(fact, hint="convert it: `float32(x)`")
    kinds = tuple([from_dtype(np.dtype(each)) for each in dtypes])
    returned = _returned(function, kinds)
    if not isinstance(returned, types.Boolean | types.Integer | types.Float):
        fact = f"`{function.__name__}` returns {returned} for {', '.join(dtypes)}, which is no number"
        raise DtypeError.at(fact, hint="functions of Numba in ops take numbers, and return one")
    return tuple(shape), str(as_dtype(returned))


def _returned(function: Any, kinds: tuple[Any, ...]) -> Any:
    function.compile(kinds)
    return function.overloads[kinds].signature.return_type


class _Cells:
    """The function cell by cell; of the kind ``pullback`` or ``pushforward`` its partials times what is given."""

    def __init__(self, kind: str, value: Any, ufunc: Any, partials: Any) -> None:
        self.__name__, self.__doc__ = value.__name__, value.__doc__
        self._kind, self._ufunc, self._called = kind, ufunc, value if kind == "value" else partials

    def __call__(self, *given: Any) -> Any:
        """What Python computes: the result, the adjoints of the inputs, or the tangent."""
        if self._kind == "value":
            shape = np.broadcast_shapes(*map(np.shape, given))
            with np.errstate(all="ignore"):  # as machine code
                return np.zeros(shape, _result(self._called, *given)[1]) if 0 in shape else self._ufunc(*given)
        if self._kind == "pullback":
            *inputs, cotangent = given
            slopes = self._slopes(inputs)
            return tuple([_summed(slope * cotangent, np.shape(x)) for slope, x in zip(slopes, inputs, strict=True)])
        inputs, tangents = list(given[: len(given) // 2]), given[len(given) // 2 :]
        moved = [s * t for s, t in zip(self._slopes(inputs), tangents, strict=True) if t is not None]
        return np.broadcast_to(sum(moved), np.broadcast_shapes(*map(np.shape, inputs)))

    def _slopes(self, inputs: Sequence[Any]) -> list[np.ndarray]:
        cells = [self._called(*each) for each in zip(*[a.flat for a in np.broadcast_arrays(*inputs)], strict=True)]
        rows = [each if isinstance(each, tuple) else (each,) for each in cells]
        shape = np.broadcast_shapes(*map(np.shape, inputs))
        return [np.array([row[k] for row in rows], np.float64).reshape(shape) for k in range(len(inputs))]

    def native(self, given: Types, made: Types, seeds: Sequence[bool] = (), floating: Sequence[bool] = ()) -> Any:
        """The machine code for arrays of these types and ranks; it has an ``address``.

        ``seeds`` says which tangents are given, ``floating`` which adjoints are asked for.
        """
        used = {"value": (), "pullback": floating, "pushforward": seeds}[self._kind]
        inputs = given if self._kind == "value" else given[: len(used)]
        if self._kind != "value":
            returned = _returned(self._called, tuple([from_dtype(numpy_dtype(dtype)) for dtype, _ in inputs]))
            count = len(returned) if isinstance(returned, BaseTuple) else 1
            if count != len(inputs):
                raise ShapeError.at(
                    f"the derivative of `{self.__name__}` returns {count} numbers for {len(inputs)} inputs",
                    hint="return a tuple with one partial derivative for each input",
                )
            slope = "p[{}]" if isinstance(returned, BaseTuple) else "p"
        return _kernel(self._kind, self._called, given, made, tuple(used), "" if self._kind == "value" else slope)


def _summed(value: Any, shape: tuple[int, ...]) -> Any:
    value = np.asarray(value)
    value = value.sum(axis=tuple(range(value.ndim - len(shape))))
    axes = tuple(k for k, extent in enumerate(shape) if extent == 1 and value.shape[k] != 1)
    return value.sum(axis=axes, keepdims=True)


# -- machine code


@lru_cache(maxsize=256)
def _kernel(kind: str, function: Any, given: Types, made: Types, used: tuple[bool, ...], slope: str) -> Any:
    names: dict[str, Any] = {"f": function, "word": _loader("int64"), "enter": ENTER, "numba": numba}
    arrays = [*given, *made]
    for k, (dtype, _) in enumerate(arrays):
        names.update({f"load{k}": _loader(dtype), f"store{k}": _storer(dtype), f"type{k}": numpy_dtype(dtype).type})
    lines = _cells(kind, arrays, len(made), used, slope)
    exec("\n".join(lines), names)  # noqa: S102  # what is printed below
    names["cells"] = numba.njit(names["cells"])
    exec(_KERNEL, names)  # noqa: S102
    return numba.cfunc(types.int64(types.int64, types.int64))(names["kernel"])


_KERNEL = """
def kernel(number, words):
    failed = True
    try:
        failed = cells(words)
    except Exception:
        failed = True
    return enter(number, words) if failed else 0
"""


def _cells(kind: str, arrays: Sequence[tuple[str, int]], made: int, used: tuple[bool, ...], slope: str) -> list[str]:
    # The loop over the cells of the result, or of its cotangent; it returns whether shapes do not fit.
    first = len(arrays) - made
    whole = first - 1 if kind == "pullback" else first
    lines = ["def cells(words):"]
    place = 0
    for k, (_, rank) in enumerate(arrays):
        lines.append(f"    a{k} = word(words + {8 * place})")
        for axis in range(rank):
            lines.append(f"    e{k}_{axis} = word(words + {8 * (place + 1 + axis)})")
            lines.append(f"    s{k}_{axis} = word(words + {8 * (place + 1 + rank + axis)})")
        place += 1 + 2 * rank
    top = arrays[whole][1]
    for k, (_, rank) in enumerate(arrays):
        for axis in range(rank if k != whole else 0):
            lines.append(f"    if e{k}_{axis} == 1: s{k}_{axis} = 0")
            lines.append(f"    elif e{k}_{axis} != e{whole}_{axis + top - rank}: return True")
    if kind == "pullback":
        for k in range(first, len(arrays)):
            lines += _loop(k, arrays[k][1], [f"store{k}({_at(k, arrays, arrays[k][1])}, type{k}(0))"])
    lines += _loop(whole, top, _step(kind, arrays, first, used, slope, top))
    return [*lines, "    return False"]


def _step(
    kind: str, arrays: Sequence[tuple[str, int]], first: int, used: tuple[bool, ...], slope: str, top: int
) -> list[str]:
    def load(k: int) -> str:
        return f"load{k}({_at(k, arrays, top)})"

    inputs = first if kind == "value" else len(used)
    call = f"f({', '.join([load(k) for k in range(inputs)])})"
    if kind == "value":
        return [f"store{first}({_at(first, arrays, top)}, type{first}({call}))"]
    steps = [f"p = {call}"]
    if kind == "pullback":
        places = iter(range(first, len(arrays)))
        for k, is_ in enumerate(used):
            if is_:
                m = next(places)
                total = f"{load(m)} + {slope.format(k)} * {load(first - 1)}"
                steps.append(f"store{m}({_at(m, arrays, top)}, type{m}({total}))")
        return steps
    places = iter(range(inputs, first))
    terms = [f"{slope.format(k)} * {load(next(places))}" for k, is_ in enumerate(used) if is_]
    return [*steps, f"store{first}({_at(first, arrays, top)}, type{first}({' + '.join(terms)}))"]


def _loop(k: int, rank: int, body: Sequence[str]) -> list[str]:
    heads = [f"{'    ' * (axis + 1)}for i{axis} in range(e{k}_{axis}):" for axis in range(rank)]
    return [*heads, *[f"{'    ' * (rank + 1)}{line}" for line in body]]


def _at(k: int, arrays: Sequence[tuple[str, int]], top: int) -> str:
    # The address of the cell of an array whose last axes are those of the loops.
    dtype, rank = arrays[k]
    steps = [f"i{axis + top - rank} * s{k}_{axis}" for axis in range(rank)]
    return f"a{k} + {numpy_dtype(dtype).itemsize} * ({' + '.join(steps)})" if steps else f"a{k}"


@cache
def _loader(dtype: str) -> Any:
    kind = from_dtype(numpy_dtype(dtype))

    @numba.extending.intrinsic
    def load(_context: Any, address: Any) -> Any:
        def emitted(context: Any, builder: Any, _: Any, given: Any) -> Any:
            return context.unpack_value(builder, kind, _pointer(context, builder, kind, given[0]))

        return kind(types.int64), emitted

    return load


@cache
def _storer(dtype: str) -> Any:
    kind = from_dtype(numpy_dtype(dtype))

    @numba.extending.intrinsic
    def store(_context: Any, address: Any, value: Any) -> Any:
        def emitted(context: Any, builder: Any, _: Any, given: Any) -> Any:
            context.pack_value(builder, kind, given[1], _pointer(context, builder, kind, given[0]))
            return context.get_dummy_value()

        return types.void(types.int64, kind), emitted

    return store


def _pointer(context: Any, builder: Any, kind: Any, address: Any) -> Any:
    return builder.inttoptr(address, context.get_data_type(kind).as_pointer())
