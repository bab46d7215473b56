"""Reverse-mode derivatives of functions of arrays: `grad`, `value_and_grad`, `vjp`, with JAX's signatures.

A function is an `@op`, or any Python function (lambdas included) that calls ops and does whole-array arithmetic. It is
staged as a whole; the derivative is a program like any other, so it prints, compiles, and has derivatives itself.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tcdsl.errors import Diagnostic, DifferentiationError, DtypeError, ShapeError
from tcdsl.ir.dtypes import is_floating
from tcdsl.runtime.arguments import Call, Signature, tensor_argument
from tcdsl.runtime.function import TensorFunction
from tcdsl.tracebacks import hide_library_frames, user_facing

__all__ = ["DerivedFunction", "grad", "value_and_grad", "vjp"]


class DerivedFunction:
    """The gradient of a function: called like the function itself, on arrays or inside a decorated function."""

    def __init__(
        self, function: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool, with_value: bool
    ) -> None:
        from tcdsl.runtime.tracing import GradientStaging

        _require_values(function)
        functools.update_wrapper(self, function, updated=())
        self.function = function
        self.argnums = argnums
        self.has_aux = has_aux
        self.with_value = with_value
        if isinstance(function, TensorFunction | DerivedFunction):
            self.signature: Signature = function.signature
        else:
            self.signature = Signature(function, _name_of(function))
        self._staging = GradientStaging(self)

    @property
    def positions(self) -> tuple[int, ...]:
        """The positional arguments to differentiate by."""
        return (self.argnums,) if isinstance(self.argnums, int) else tuple(self.argnums)

    @property
    def staging(self) -> Any:
        """The staged programs."""
        return self._staging

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """The gradient, or the value and the gradient, arranged as JAX does."""
        from tcdsl.frontend.session import current_session

        try:
            if current_session() is not None:
                return self._staging.inline(arguments, keywords)
            return self._staging.run(self.signature, arguments, keywords)
        except Exception as error:
            hide_library_frames(error)
            raise

    @user_facing
    def interpret(self, *arguments: Any, **keywords: Any) -> Any:
        """Run the reference interpreter on the derivative's program."""
        from tcdsl.ir.interpreter import interpret

        entry, arrays = self._staging.entry(self.signature.call(arguments, keywords))
        results = interpret(entry.executable.program, arrays).outputs
        return entry.structure.build([array if array.ndim else array[()] for array in results])

    @user_facing
    def explain(self, stage: str = "ir", *arguments: Any, **keywords: Any) -> Any:
        """One stage of the derivative as text; see `TensorFunction.explain`."""
        from tcdsl.runtime.explanation import explain

        call = self.signature.call(arguments, keywords) if arguments or keywords else None
        return explain(self, self._staging, stage, call)

    @user_facing
    def program(self, *arguments: Any, **keywords: Any) -> Any:
        """The derivative's program for these arguments."""
        return self._staging.program_of(self.signature.call(arguments, keywords))

    def cache_info(self) -> Any:
        """How many programs were staged and kernels compiled, and how many calls they served."""
        return self._staging.cache_info()

    def __repr__(self) -> str:
        kind = "value and gradient" if self.with_value else "gradient"
        return f"<{kind} of {_name_of(self.function)} by {self.argnums}>"


def _require_values(function: Callable[..., Any]) -> None:
    if isinstance(function, TensorFunction) and function.in_place:
        raise Diagnostic(
            DifferentiationError,
            f"`{function.__name__}` is a @cd function: it changes memory and has no gradient",
            hint="write an @op that returns the new values",
        ).error()


def _name_of(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


@user_facing
def grad(fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> DerivedFunction:
    """``grad(loss)(w, x)``: the gradient of a loss of one element by the arguments ``argnums``.

    With ``has_aux``, ``fun`` returns ``(loss, aux)`` and the result is ``(gradient, aux)``. The gradient has the
    argument's type and shape. `DifferentiationError` for integer and bool arguments, `ShapeError` for a loss of several
    elements.
    """
    return DerivedFunction(fun, argnums, has_aux, with_value=False)


@user_facing
def value_and_grad(fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> DerivedFunction:
    """``loss, dw = value_and_grad(loss)(w, x)``: the value and the gradient, computed by one program."""
    return DerivedFunction(fun, argnums, has_aux, with_value=True)


@user_facing
def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """``outputs, pullback = vjp(f, x, y)``; ``pullback(d_outputs)`` is one adjoint per argument.

    ``d_outputs`` has the structure of the outputs. Integer and bool arguments get ``None``. With ``has_aux``, ``fun``
    returns ``(outputs, aux)`` and so does the first part of the result: ``outputs, pullback, aux``. The pullback keeps
    a copy of the arguments.
    """
    from tcdsl.runtime.tracing import PullbackStaging

    _require_values(fun)
    staging = (
        _pullbacks(fun, has_aux) if isinstance(fun, TensorFunction | DerivedFunction) else PullbackStaging(fun, has_aux)
    )
    call = _copied(staging.signature.call(primals, {}))
    entry, arrays = staging.primal.entry(call)
    results = [array if array.ndim else array[()] for array in entry.executable.run(arrays)]
    value = entry.structure.build(results)
    outputs, aux = value if has_aux else (value, None)

    @user_facing
    def pullback(cotangents: Any) -> tuple[Any, ...]:
        return _pull(staging, call, entry.structure, results, cotangents, has_aux)

    return (outputs, pullback, aux) if has_aux else (outputs, pullback)


def _copied(call: Call) -> Call:
    # The pullback belongs to the values that the arguments have now, whatever is stored into them before it is called.
    copies = (replace(argument, array=argument.array.copy(order="K")) for argument in call.arguments)
    return replace(call, arguments=tuple(copies))


@functools.lru_cache(maxsize=256)
def _pullbacks(fun: Callable[..., Any], has_aux: bool) -> Any:
    # One per function, so that its programs are staged and compiled once.
    from tcdsl.runtime.tracing import PullbackStaging

    return PullbackStaging(fun, has_aux)


def _pull(
    staging: Any, call: Any, structure: Any, results: Sequence[Any], cotangents: Any, has_aux: bool
) -> tuple[Any, ...]:
    from tcdsl.runtime.structure import flatten

    expected = structure.parts[0] if has_aux else structure
    leaves, given = flatten(cotangents, lambda v: not isinstance(v, tuple | list | dict))
    if given != expected:
        raise Diagnostic(
            ShapeError,
            "the cotangents do not have the structure of the outputs",
            hint="pass one array per output, nested alike",
        ).error()
    seeds = []
    for leaf, result in zip(leaves, results, strict=False):
        if not is_floating(str(result.dtype)):
            continue
        array = tensor_argument("pullback", "cotangent", 0, leaf).array
        if array.shape != np.shape(result):
            raise Diagnostic(
                ShapeError,
                f"a cotangent has shape {list(array.shape)}, but its output has shape {list(np.shape(result))}",
                hint="a cotangent has the shape of its output",
            ).error()
        if not np.can_cast(array.dtype, result.dtype, "same_kind"):
            raise Diagnostic(DtypeError, f"a cotangent is {array.dtype}, but its output is {result.dtype}").error()
        seeds.append(np.asarray(array, result.dtype))
    entry, arrays = staging.entry(call)
    adjoints = iter(entry.executable.run([*arrays, *seeds]))
    floating = [is_floating(argument.dtype) for argument in call.arguments if isinstance(argument.place, int)]
    return tuple(_scalar(next(adjoints)) if real else None for real in floating)


def _scalar(array: np.ndarray) -> Any:
    return array if array.ndim else array[()]
