"""`vjp` and `linearize`: a function's values at a point, and its derivative there as a linear function."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tcdsl.autodiff import adjoint, tangent
from tcdsl.errors import ConfigurationError, DifferentiationError
from tcdsl.frontend.names.absent_attributes import missing_attribute
from tcdsl.frontend.staging.builder import ProgramBuilder
from tcdsl.frontend.staging.session import Session, current_session
from tcdsl.frontend.staging.subprograms import symbolic
from tcdsl.frontend.symbols.symbols import SymbolicTensor
from tcdsl.ir.build import integer
from tcdsl.ir.dtypes import is_floating
from tcdsl.ir.program import Program, Tensor
from tcdsl.rewrite.inlining import append_program
from tcdsl.rewrite.linearization import linearized
from tcdsl.runtime.calling.entries import Traced
from tcdsl.runtime.calling.execution import Executable
from tcdsl.runtime.calling.structure import LEAF, NOTHING, Structure
from tcdsl.runtime.explanation import Explanation
from tcdsl.runtime.rules.directions import Direction, matched
from tcdsl.runtime.transforms.derivation import Derivation, name_of, require_values
from tcdsl.runtime.transforms.derivations import DerivativeStaging, floating_outputs, kept_staging, put, value_and_aux
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
    tapes = True
    transform = staticmethod(adjoint)


class _Side(NamedTuple):
    """The arguments of a function or its outputs: how they are built, and their types.

    ``floating`` are those that have derivatives.
    """

    structure: Structure
    dtypes: Sequence[str]
    floating: Sequence[Any]


class _Part(NamedTuple):
    """The linear part of a derivative, and what it is given: arrays, or tensors of ``builder``'s program."""

    linear: Executable
    given: Sequence[np.ndarray | Tensor]
    builder: ProgramBuilder | None


class LinearFunction:
    """A derivative at a point. It may be called as often as you like, and computes none of the function's values again.

    ``part`` has the inputs of its program but for the last ones, the seeds, which belong to what is ``taken``. It gives
    what belongs to the floating ones of ``made``.
    """

    def __init__(self, name: str, taken: _Side, made: _Side, part: _Part) -> None:
        self._name = name
        self._taken, self._dtypes = taken.structure, tuple(taken.dtypes)
        self._made = made.structure.with_leaves(LEAF if is_floating(dtype) else NOTHING for dtype in made.dtypes)
        self._executable, self._given, self._builder = part.linear, tuple(part.given), part.builder
        self._shapes: list[Sequence[Any]] = [
            each.extents if isinstance(each, SymbolicTensor) else each.shape for each in taken.floating
        ]
        self._rows = [each.rows for each in made.floating if isinstance(each, SymbolicTensor)]

    def __getattr__(self, name: str) -> Any:
        raise missing_attribute("a linear function", name, self)

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

    def _applied(self, directions: Sequence[tuple[Direction, Any]]) -> Any:
        session = current_session()
        if self._builder is not None and (session is None or session.builder is not self._builder):
            raise DifferentiationError.at(
                "a linear function was made inside a decorated function, and is called outside of it",
                hint="call it in the function that called tc.vjp or tc.linearize, and return what it gives",
            )
        if session is not None:
            return self._made.build(self._inline(session, directions))
        seeds = [
            direction.array(value, shape) for (direction, value), shape in zip(directions, self._shapes, strict=True)
        ]
        arrays: Sequence[Any] = self._given  # no tensors of a program, which would have a builder
        return self._made.build(
            [array if array.ndim else array[()] for array in self._executable.run([*arrays, *seeds])]
        )

    def _inline(self, session: Session, directions: Sequence[tuple[Direction, Any]]) -> list[Any]:
        builder = session.builder
        inputs = [
            array if isinstance(array, Tensor) else builder.tensor(session.capture(array).name) for array in self._given
        ]
        for (direction, value), shape in zip(directions, self._shapes, strict=True):
            extents = [integer(extent) if isinstance(extent, int) else extent for extent in shape]
            inputs.append(direction.tensor(session, value, extents))
        return symbolic(builder, append_program(builder, self._executable.program, inputs), self._rows)

    def __repr__(self) -> str:
        kind = re.sub(r"\B(?=[A-Z])", " ", type(self).__name__).lower()
        return f"<{kind} of {self._name} at a point>"


class Pullback(LinearFunction):
    """``pullback(cotangents)``: one adjoint per argument, ``None`` for integers and bools."""

    @user_facing
    def __call__(self, cotangents: Any) -> tuple[Any, ...]:
        """The adjoints of the arguments; ``cotangents`` has the structure of the outputs."""
        given = matched(self._taken, cotangents, "cotangent", "outputs")
        places = zip(self._taken.paths(), self._dtypes, given, strict=True)
        directions = [
            (Direction.cotangent(self._name, place, dtype), value)
            for place, dtype, value in places
            if is_floating(dtype)
        ]
        adjoints: tuple[Any, ...] = self._applied(directions)
        return adjoints


class TangentMap(LinearFunction):
    """``f_jvp(*tangents)``: the tangents of the outputs, in their structure, ``None`` for integers and bools."""

    @user_facing
    def __call__(self, *tangents: Any) -> Any:
        """The tangents of the outputs along one tangent for each argument."""
        if len(tangents) != len(self._dtypes):
            raise ConfigurationError.at(
                f"the linearization of {self._name}() takes {len(self._dtypes)} tangents, one per argument, "
                f"not {len(tangents)}",
                hint="pass None for integer and bool arguments",
            )
        directions = []
        for position, (dtype, value) in enumerate(zip(self._dtypes, tangents, strict=True)):
            direction = Direction.tangent("linearize", self._name, position, dtype)
            if is_floating(dtype):
                directions.append((direction, value))
            else:
                direction.nothing(value)
        return self._applied(directions)


def _linear_function(
    fun: Callable[..., Any], primals: Sequence[Any], kind: type[Linearization], has_aux: bool
) -> tuple[Any, ...]:
    """The outputs of ``fun``, the derivative of that kind there and, with ``has_aux``, what comes beside them."""
    require_values(kind.title, fun)
    dtypes = [argument_dtype(fun, k, primal) for k, primal in enumerate(primals)]
    by = tuple(k for k, dtype in enumerate(dtypes) if is_floating(dtype))
    staging = kept_staging(fun, kind(by, has_aux))
    session = current_session()
    if session is not None:
        whole, results, moved, part = _recorded(session, staging, primals)
    else:
        whole, results, moved, part = _computed(staging, primals, by)
    structure = whole.parts[0] if has_aux else whole
    leaves = results[: structure.leaves]
    types = [str(leaf.dtype) for leaf in leaves]
    outputs = _Side(structure, types, [leaf for leaf, dtype in zip(leaves, types, strict=True) if is_floating(dtype)])
    arguments = _Side(Structure("tuple", (LEAF,) * len(dtypes)), dtypes, moved)
    built = whole.build(results)
    value, *aux = built if has_aux else (built,)
    if kind is ReverseLinearization:
        return value, Pullback(name_of(fun), outputs, arguments, part), *aux
    return value, TangentMap(name_of(fun), arguments, outputs, part), *aux


def _computed(
    staging: DerivativeStaging, primals: Sequence[Any], by: Sequence[int]
) -> tuple[Structure, Sequence[Any], Sequence[Any], _Part]:
    # The structure of all results and these, the floating arguments, and the linear part.
    call = staging.signature.call(primals, {})
    entry, arrays = staging.entry(call)
    results = entry.computed(arrays)
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
    values = [array if array.ndim else array[()] for array in results[:count]]
    moved = [call.at(k).array for k in by]
    return entry.structure, values, moved, _Part(linear.executable, given, None)


def _recorded(
    session: Session, staging: DerivativeStaging, primals: Sequence[Any]
) -> tuple[Structure, Sequence[Any], Sequence[Any], _Part]:
    part, traced, arguments = staging.inline(session, primals, {})
    assert traced.linear is not None
    made = put(session, part, traced)
    held = {**part.given, **dict(zip(traced.program.outputs, made, strict=True))}
    values = symbolic(session.builder, made[: traced.structure.leaves], part.output_rows)
    given = [held[tensor.name] for tensor in traced.linear.inputs if tensor.name in held]
    moved = [tensor for tensor in arguments if tensor is not None]
    return traced.structure, values, moved, _Part(Executable(traced.linear), given, session.builder)


@user_facing
def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """``outputs, pullback = vjp(f, x, y)``; ``pullback(d_outputs)`` is one adjoint per argument.

    ``d_outputs`` has the structure of the outputs. Integer and bool arguments get ``None``. With ``has_aux``, ``fun``
    returns ``(outputs, aux)`` and the result is ``outputs, pullback, aux``. The pullback computes no value again: it
    keeps the intermediate values that it needs, and copies of the arguments that it reads. Only rounds of loops that
    keep few states (``tc.config(tape_memory=...)``, ``tc.loop(n, checkpoints=...)``) are computed again.
    """
    return _linear_function(fun, primals, ReverseLinearization, has_aux)


@user_facing
def linearize(fun: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """``outputs, f_jvp = linearize(f, x, y)``; ``f_jvp(dx, dy)`` is the derivative of the outputs along ``(dx, dy)``.

    Like `jvp` at a fixed point, for many directions: ``f_jvp`` computes no value again. It keeps the intermediate
    values that it needs, and copies of the arguments that it reads. Integer and bool arguments take ``None``, and such
    outputs give it. With ``has_aux``, ``fun`` returns ``(outputs, aux)`` and the result is ``outputs, f_jvp, aux``.
    """
    return _linear_function(fun, primals, Linearization, has_aux)
