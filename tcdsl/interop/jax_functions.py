"""Functions for JAX: ``layer = tc.interop.jax(f)`` is called inside ``jit``, ``grad``, ``jvp`` and ``vmap``.

There is one primitive, ``tcdsl_call``, whose parameter is an `ArrayFunction`. What JAX derives from it is that
primitive with another function: so there are derivatives and batches of every order.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from tcdsl.errors import DtypeError
from tcdsl.frontend.staging.given_arrays import given_array
from tcdsl.interop.array_functions import ArrayFunction, ResultTypes, taken_apart
from tcdsl.interop.ffi_handler import HANDLER, NUMBER
from tcdsl.runtime.calling.structure import Structure

__all__ = ["JaxFunction"]


class JaxFunction:
    """``layer = tc.interop.jax(f)``: ``f`` for arrays of JAX; see `tcdsl.interop.jax`."""

    __name__: str

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function, updated=())
        self.function = function
        self._structures: dict[Any, Structure] = {}

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """The results as arrays of JAX, nested as ``f`` returns them."""
        form, operands = taken_apart(self.__name__, arguments, keywords, _is_array, numbers=(float,))
        function = ArrayFunction.of(self.function, form)
        given = [_array(function, k, each) for k, each in enumerate(operands)]
        results = _CALL.bind(*given, function=function)
        key = (function.key, *[(each.dtype, each.ndim) for each in given])
        structure = self._structures.get(key)
        if structure is None:
            types = _result_types(function, [jax.typeof(each) for each in given])
            structure = self._structures[key] = types.structure
        return structure.build(results)

    def __reduce__(self) -> tuple[Any, ...]:
        return JaxFunction, (self.function,)

    def __repr__(self) -> str:
        return f"<{self.function!r} for JAX>"


def _is_array(value: Any) -> bool:
    return isinstance(value, jax.Array | np.ndarray | np.generic)


def _array(function: ArrayFunction, place: int, value: Any) -> Any:
    if not _is_array(value):
        return np.asarray(value, np.float64)
    if not isinstance(value, jax.Array):
        given_array(value, function.operand_names()[place], f"{function.name}(): ")
    elif jax.numpy.issubdtype(value.dtype, jax.dtypes.extended):
        name = function.operand_names()[place]
        fact = f"{function.name}(): `{name}` has the element type {value.dtype}, which tcdsl does not handle"
        raise DtypeError.at(fact, hint=f"pass the numbers that it is made of, `jax.random.key_data({name})`")
    return value


_CALL = Primitive("tcdsl_call")
_CALL.multiple_results = True


def _result_types(function: ArrayFunction, avals: Sequence[Any]) -> ResultTypes:
    return function.result_types([np.broadcast_to(np.zeros((), each.dtype), each.shape) for each in avals])


@_CALL.def_abstract_eval
def _abstract(*avals: Any, function: ArrayFunction) -> list[Any]:
    types = _result_types(function, avals)
    shapes = types.shapes([each.shape for each in avals])
    return [jax.core.ShapedArray(shape, np.dtype(kind)) for kind, shape in zip(types.dtypes, shapes, strict=True)]


@functools.lru_cache(maxsize=1024)
def _jitted(function: ArrayFunction) -> Any:
    return jax.jit(lambda *operands: _CALL.bind(*operands, function=function))


@_CALL.def_impl
def _run(*operands: Any, function: ArrayFunction) -> Any:
    return _jitted(function)(*operands)


def _pushed(primals: Sequence[Any], tangents: Sequence[Any], *, function: ArrayFunction) -> Any:
    results = _CALL.bind(*primals, function=function)
    by = tuple([k for k, each in enumerate(tangents) if type(each) is not ad.Zero])
    of = tuple([k for k, each in enumerate(results) if np.issubdtype(each.dtype, np.floating)])
    made = iter(_CALL.bind(*primals, *[tangents[k] for k in by], function=function.pushforward(by, of)))
    return results, [
        next(made) if k in of else ad.Zero(jax.typeof(each).to_tangent_aval()) for k, each in enumerate(results)
    ]


def _transposed(cotangents: Sequence[Any], *operands: Any, function: ArrayFunction) -> Any:
    linear = tuple([k for k, each in enumerate(operands) if ad.is_undefined_primal(each)])
    given = [ad.instantiate_zeros(each) for each in cotangents]
    adjoints = iter(_CALL.bind(*operands[: function.fixed], *given, function=function.transposed(linear)))
    return [next(adjoints) if k in linear else None for k in range(len(operands))]


def _batched(operands: Sequence[Any], axes: Sequence[Any], *, function: ArrayFunction) -> Any:
    by = tuple([k for k, axis in enumerate(axes) if axis is not None])
    moved = [jax.numpy.moveaxis(each, axes[k], 0) if k in by else each for k, each in enumerate(operands)]
    results = _CALL.bind(*moved, function=function.batched(by))
    return results, (0,) * len(results)


def _lowered(context: Any, *operands: Any, function: ArrayFunction) -> Any:
    return jax.ffi.ffi_lowering("tcdsl_call")(context, *operands, **{NUMBER: np.int64(function.number)})


jax.ffi.register_ffi_target("tcdsl_call", jax.ffi.pycapsule(HANDLER), platform="cpu")
ad.primitive_jvps[_CALL] = _pushed
ad.primitive_transposes[_CALL] = _transposed
batching.primitive_batchers[_CALL] = _batched
mlir.register_lowering(_CALL, _lowered, platform="cpu")
