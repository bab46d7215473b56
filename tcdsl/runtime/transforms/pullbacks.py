"""`vjp` and `linearize`: a function's values at a point, and its derivative there as a linear function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from tcdsl.autodiff import adjoint, tangent
from tcdsl.autodiff.jacobians.linearization import linearized
from tcdsl.errors import ConfigurationError, Diagnostic, DifferentiationError
from tcdsl.frontend.staging.builder import ProgramBuilder
from tcdsl.frontend.staging.session import Session, current_session
from tcdsl.frontend.symbols.symbols import SymbolicTensor
from tcdsl.ir.build import integer
from tcdsl.ir.dtypes import is_floating
from tcdsl.ir.program import Program, Tensor
from tcdsl.rewrite.inlining import append_program
from tcdsl.rows.ranks import RowRanks
from tcdsl.runtime.calling.entries import Traced
from tcdsl.runtime.calling.execution import Executable
from tcdsl.runtime.calling.structure import LEAF, NOTHING, Structure
from tcdsl.runtime.explanation import Explanation
from tcdsl.runtime.rules.directions import Direction, matched
from tcdsl.runtime.rules.subprograms import symbolic
from tcdsl.runtime.transforms.derivations import (
    Derivation,
    DerivativeStaging,
    floating_outputs,
    kept_staging,
    name_of,
    require_values,
    value_and_aux,
)
from tcdsl.runtime.transforms.pushforwards import argument_dtype
from tcdsl.tracebacks import user_facing

__all__ = ["LinearFunction", "Linearization", "Pullback", "TangentMap", "linearize", "vjp"]


@dataclass(frozen=True, slots=True)
class Linearization(Derivation):
    """Values, and the linear program that pushes forward."""

    title = "linearize"
    transform: ClassVar[Callable[..., Program]] = staticmethod(tangent)
    has_aux: bool

    def derive(self, traced: Traced, wrt: Sequence[str], function: str) -> Traced:
        """The program of values and of what the linear program, which comes with it, needs of them."""
        value, _ = value_and_aux(traced, self.has_aux, function, "outputs")
        floating = floating_outputs(traced, value)
        program = traced.program
        chosen = [name for name, real in zip(program.outputs, floating, strict=False) if real]
        derivative = self.transform(program, wrt, outputs=chosen, keep_outputs=True)
        seeds = [tensor.name for tensor in derivative.inputs[len(program.inputs) :]]
        first, linear = linearized(derivative, seeds, len(program.outputs))
        return replace(traced, program=first, linear=linear)


class ReverseLinearization(Linearization):
    """Values, and the linear program that pulls back."""

    __slots__ = ()
    title = "vjp"
    transform = staticmethod(adjoint)


class LinearFunction:
    """A derivative at a point. It may be called as often as you like, and computes none of the function's values again.

    ``given`` are the inputs of its program but for the last ones, the seeds, which belong to what ``shapes`` are the
    shapes of: arrays, or tensors of ``builder``'s program. ``rows`` are those of its results.
    """

    def __init__(
        self,
        executable: Executable,
        given: Sequence[np.ndarray | Tensor],
        shapes: Sequence[Sequence[Any]],
        builder: ProgramBuilder | None,
        rows: Sequence[RowRanks | None] = (),
    ) -> None:
        self._rows = tuple(rows)
        self._executable = executable
        self._given = tuple(given)
        self._shapes = tuple(shapes)
        self._builder = builder

    @property
    def stored(self) -> tuple[np.ndarray | Tensor, ...]:
        """The arrays that it keeps: arguments as they were, and values that were computed."""
        return tuple(array for array in self._given if isinstance(array, Tensor) or array.strides != (0,) * array.ndim)

    @property
    def program(self) -> Program:
        """The linear program. Its inputs are what is stored, and the seeds."""
        return self._executable.program

    def explain(self) -> Explanation:
        """The linear program as text."""
        from tcdsl.ir.text.printer import format_program

        return Explanation(format_program(self.program))

    def _applied(self, directions: Sequence[tuple[Direction, Any]]) -> list[Any]:
        session = current_session()
        if session is not None:
            return self._inline(session, directions)
        if self._builder is not None:
            raise _outside()
        seeds = [
            direction.array(value, shape) for (direction, value), shape in zip(directions, self._shapes, strict=True)
        ]
        arrays = [array for array in self._given if not isinstance(array, Tensor)]
        return [array if array.ndim else array[()] for array in self._executable.run([*arrays, *seeds])]

    def _inline(self, session: Session, directions: Sequence[tuple[Direction, Any]]) -> list[Any]:
        builder = session.builder
        if self._builder is not None and self._builder is not builder:
            raise _outside()
        inputs = [
            array if isinstance(array, Tensor) else builder.tensor(session.capture(array).name) for array in self._given
        ]
        for (direction, value), shape in zip(directions, self._shapes, strict=True):
            extents = [integer(extent) if isinstance(extent, int) else extent for extent in shape]
            inputs.append(direction.tensor(session, value, extents))
        return symbolic(builder, append_program(builder, self._executable.program, inputs), self._rows)


class Pullback(LinearFunction):
    """``pullback(cotangents)``: one adjoint per argument, ``None`` for integers and bools."""

    def __init__(self, name: str, outputs: Structure, dtypes: Sequence[str], by: Sequence[bool], *rest: Any) -> None:
        super().__init__(*rest)
        self._name = name
        self._outputs = outputs
        self._dtypes = tuple(dtypes)
        self._by = tuple(by)

    @user_facing
    def __call__(self, cotangents: Any) -> tuple[Any, ...]:
        """The adjoints of the arguments; ``cotangents`` has the structure of the outputs."""
        given = matched(self._outputs, cotangents, "cotangent", "outputs")
        directions = []
        for place, dtype, value in zip(self._outputs.paths(), self._dtypes, given, strict=True):
            direction = Direction.cotangent(self._name, place, dtype)
            if not is_floating(dtype):
                continue
            if value is None:
                raise direction.missing()
            directions.append((direction, value))
        adjoints = iter(self._applied(directions))
        return tuple(next(adjoints) if real else None for real in self._by)


class TangentMap(LinearFunction):
    """``f_jvp(*tangents)``: the tangents of the outputs, in their structure, ``None`` for integers and bools."""

    def __init__(self, name: str, structure: Structure, dtypes: Sequence[str], *rest: Any) -> None:
        super().__init__(*rest)
        self._name = name
        self._structure = structure
        self._dtypes = tuple(dtypes)

    @user_facing
    def __call__(self, *tangents: Any) -> Any:
        """The tangents of the outputs along one tangent for each argument."""
        if len(tangents) != len(self._dtypes):
            raise Diagnostic(
                ConfigurationError,
                f"the linearization of {self._name}() takes {len(self._dtypes)} tangents, one per argument, "
                f"not {len(tangents)}",
                hint="pass None for integer and bool arguments",
            ).error()
        directions = []
        for position, (dtype, value) in enumerate(zip(self._dtypes, tangents, strict=True)):
            direction = Direction.tangent("linearize", self._name, position, dtype)
            if not is_floating(dtype):
                direction.nothing(value)
                continue
            if value is None:
                raise direction.missing()
            directions.append((direction, value))
        return self._structure.build(self._applied(directions))


def _outside() -> Exception:
    return Diagnostic(
        DifferentiationError,
        "a linear function was made inside a decorated function, and is called outside of it",
        hint="call it in the function that called tc.vjp or tc.linearize, and return what it gives",
    ).error()


@dataclass(frozen=True, slots=True)
class _Values:
    """What the first part of a derivative gives: all results, and the linear part with what it is given."""

    structure: Structure
    results: Sequence[Any]
    linear: Executable
    given: Sequence[np.ndarray | Tensor]
    arguments: Sequence[Sequence[Any]]
    builder: ProgramBuilder | None
    argument_rows: Sequence[RowRanks | None] = ()


def _values(fun: Callable[..., Any], primals: Sequence[Any], kind: type[Linearization], has_aux: bool) -> _Values:
    dtypes = [argument_dtype(fun, k, primal) for k, primal in enumerate(primals)]
    by = tuple(k for k, dtype in enumerate(dtypes) if is_floating(dtype))
    staging = kept_staging(fun, kind(by, has_aux))
    session = current_session()
    return _recorded(session, staging, primals) if session is not None else _computed(staging, primals, by)


def _computed(staging: DerivativeStaging, primals: Sequence[Any], by: Sequence[int]) -> _Values:
    call = staging.signature.call(primals, {})
    entry, arrays = staging.entry(call)
    results = entry.executable.run(arrays)
    program = entry.executable.program
    held = dict(zip((tensor.name for tensor in program.inputs), arrays, strict=True))
    residuals = dict(zip(program.outputs, results, strict=True))
    linear = entry.linear
    assert linear is not None
    given: list[np.ndarray | Tensor] = []
    count = entry.structure.leaves
    returned = program.outputs[:count]
    for tensor in linear.executable.program.inputs:
        name = tensor.name
        if name in residuals:
            given.append(residuals[name].copy() if name in returned else residuals[name])
        elif name in held and name in linear.read:
            # The derivative belongs to the values that arguments and results have now.
            given.append(held[name].copy())
        elif name in held:
            # Of this one only the extents count.
            given.append(np.broadcast_to(np.zeros((), tensor.dtype), held[name].shape))
    return _Values(
        entry.structure,
        [array if array.ndim else array[()] for array in results[:count]],
        linear.executable,
        given,
        [call.arguments[k].array.shape for k in by],
        None,
    )


def _recorded(session: Session, staging: DerivativeStaging, primals: Sequence[Any]) -> _Values:
    part, traced, arguments = staging.inline(session, primals, {})
    assert traced.linear is not None
    made = part.put(traced.program)
    held = {**part.given, **dict(zip(traced.program.outputs, made, strict=True))}
    count = traced.structure.leaves
    return _Values(
        traced.structure,
        symbolic(session.builder, made[:count], part.output_rows),
        Executable(traced.linear),
        [held[tensor.name] for tensor in traced.linear.inputs if tensor.name in held],
        [tensor.extents for tensor in arguments if tensor is not None],
        session.builder,
        [tensor.rows for tensor in arguments if tensor is not None],
    )


def _parts(values: _Values, has_aux: bool) -> tuple[Structure, Any, Any]:
    """The structure of what is differentiated, its value, and the auxiliary results."""
    built = values.structure.build(values.results)
    return (values.structure.parts[0], *built) if has_aux else (values.structure, built, None)


@user_facing
def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """``outputs, pullback = vjp(f, x, y)``; ``pullback(d_outputs)`` is one adjoint per argument.

    ``d_outputs`` has the structure of the outputs. Integer and bool arguments get ``None``. With ``has_aux``, ``fun``
    returns ``(outputs, aux)`` and the result is ``outputs, pullback, aux``. The pullback computes no value again: it
    keeps the intermediate values that it needs, and copies of the arguments that it reads.
    """
    require_values("vjp", fun)
    values = _values(fun, primals, ReverseLinearization, has_aux)
    structure, outputs, aux = _parts(values, has_aux)
    leaves = values.results[: structure.leaves]
    dtypes = [str(leaf.dtype) for leaf in leaves]
    shapes = [_shape(leaf) for leaf, dtype in zip(leaves, dtypes, strict=True) if is_floating(dtype)]
    by = [is_floating(argument_dtype(fun, k, primal)) for k, primal in enumerate(primals)]
    given = values.linear, values.given, shapes, values.builder, values.argument_rows
    pullback = Pullback(name_of(fun), structure, dtypes, by, *given)
    return (outputs, pullback, aux) if has_aux else (outputs, pullback)


@user_facing
def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """``outputs, f_jvp = linearize(f, x, y)``; ``f_jvp(dx, dy)`` is the derivative of the outputs along ``(dx, dy)``.

    Like `jvp` at a fixed point, for many directions: ``f_jvp`` computes no value again. It keeps the intermediate
    values that it needs, and copies of the arguments that it reads. Integer and bool arguments take ``None``, and such
    outputs give it. With ``has_aux``, ``fun`` returns ``(outputs, aux)`` and the result is ``outputs, f_jvp, aux``.
    """
    require_values("linearize", fun)
    values = _values(fun, primals, Linearization, has_aux)
    structure, outputs, aux = _parts(values, has_aux)
    pushed = structure.with_leaves(
        LEAF if is_floating(str(leaf.dtype)) else NOTHING for leaf in values.results[: structure.leaves]
    )
    dtypes = [argument_dtype(fun, k, primal) for k, primal in enumerate(primals)]
    leaves = [leaf for leaf in values.results[: structure.leaves] if is_floating(str(leaf.dtype))]
    rows = [leaf.rows for leaf in leaves if isinstance(leaf, SymbolicTensor)]
    given = values.linear, values.given, values.arguments, values.builder, rows
    f_jvp = TangentMap(name_of(fun), pushed, dtypes, *given)
    return (outputs, f_jvp, aux) if has_aux else (outputs, f_jvp)


def _shape(leaf: Any) -> Sequence[Any]:
    return leaf.extents if isinstance(leaf, SymbolicTensor) else leaf.shape
