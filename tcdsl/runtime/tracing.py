"""Tracing derivatives: stage the function, transform its program, and run or inline the result."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, Protocol

import numpy as np

from tcdsl.autodiff import adjoint, gradient
from tcdsl.errors import Diagnostic, DifferentiationError
from tcdsl.frontend.algebra import WholeArrays
from tcdsl.frontend.arithmetic import element_of, record_elementwise
from tcdsl.frontend.session import BroadcastGuard, Session, session_of
from tcdsl.frontend.surroundings import Surroundings
from tcdsl.frontend.symbols import PendingArray, SymbolicArray, SymbolicNumber, SymbolicTensor
from tcdsl.ir.dtypes import is_floating
from tcdsl.ir.expressions import Expr, Read, SizeValue, substitute
from tcdsl.ir.program import Program
from tcdsl.runtime.arguments import Signature
from tcdsl.runtime.decorated import returned
from tcdsl.runtime.entries import Traced
from tcdsl.runtime.function import TensorFunction
from tcdsl.runtime.inlining import inline_program
from tcdsl.runtime.staged import StagedFunction
from tcdsl.runtime.structure import Structure

__all__ = ["Derivative", "GradientStaging", "PullbackStaging", "trace_function"]


class Derivative(Protocol):
    """What `tcdsl.runtime.gradients.DerivedFunction` says about the derivative that is wanted."""

    function: Callable[..., Any]
    argnums: int | Sequence[int]
    has_aux: bool
    with_value: bool
    signature: Signature

    @property
    def positions(self) -> tuple[int, ...]:
        """The positional arguments to differentiate by."""


def trace_function(
    function: Callable[..., Any], session: Session, positional: list[Any], configuration: dict[str, Any]
) -> Traced:
    """Trace an op, a derivative or a plain Python function of ops."""
    if isinstance(function, TensorFunction):
        return function.trace_inline(session, positional, configuration)
    code = getattr(function, "__code__", None)
    if code is not None:
        session.filenames.add(code.co_filename)
    session.readings.extend(_surroundings(function))
    outputs, structure = returned(
        session, function(*positional, **configuration), getattr(function, "__name__", "result")
    )
    return Traced(session.builder.program(outputs), structure, tuple(session.readings))


def _surroundings(function: Any) -> tuple[Any, ...]:
    # A plain function's names are those of its code object; its own are local variables already.
    if not isinstance(function, FunctionType):
        return ()
    names = [
        ast.Expr(ast.Name(name, ast.Load())) for name in (*function.__code__.co_freevars, *function.__code__.co_names)
    ]
    definition = ast.FunctionDef("f", ast.arguments([], [], None, [], [], None, []), list(names) or [ast.Pass()], [])
    return Surroundings(function, definition, frozenset()).read()


def _input_names(program: Program, positions: Sequence[int], count: int, function: str) -> list[str]:
    # Positional arguments are the first inputs of the program, in order.
    names = []
    for position in positions:
        if not -count <= position < count:
            raise Diagnostic(
                DifferentiationError,
                f"argnums names argument {position}, but {function}() has {count} positional arguments",
                hint=f"count from 0 to {count - 1}",
            ).error()
        names.append(program.inputs[position % count].name)
    return names


class GradientStaging(StagedFunction):
    """The staged programs of a `Derivative`."""

    def __init__(self, owner: Derivative) -> None:
        super().__init__()
        self._owner = owner
        self.oob = getattr(owner.function, "oob", "check")

    @property
    def title(self) -> str:
        """The name for programs and messages."""
        return f"grad_{_identifier(self._owner.function)}"

    def size_names(self, label: str) -> Sequence[str | None]:
        """What the function calls the extents of the parameter ``label``."""
        return _size_names(self._owner.function, label)

    def trace(self, session: Session, positional: list[Any], configuration: dict[str, Any]) -> Traced:
        """Run the function symbolically."""
        owner = self._owner
        traced = trace_function(owner.function, session, positional, configuration)
        program = traced.program
        loss_structure = traced.structure
        if owner.has_aux:
            if traced.structure.kind != "tuple" or len(traced.structure.parts) != 2:
                raise Diagnostic(
                    DifferentiationError, f"with has_aux, {self.title[5:]}() must return a pair (loss, aux)"
                ).error()
            loss_structure = traced.structure.parts[0]
        if loss_structure.kind != "leaf":
            raise Diagnostic(
                DifferentiationError,
                f"{self.title[5:]}() returns {_described(loss_structure)}, not a loss of one element",
                hint="return one number, `(loss, aux)` with has_aux=True, or use tc.vjp with a cotangent per output",
            ).error()
        names = _input_names(program, owner.positions, len(positional), self.title[5:])
        derived = gradient(program, names, keep_outputs=owner.with_value or owner.has_aux)
        structure = _arranged(owner, traced.structure)
        if not owner.with_value and owner.has_aux:
            derived = _without_first_output(derived)
        return Traced(derived, structure, traced.readings)

    def inline(self, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """The derivative as part of the function that is being staged."""
        outer = session_of("a derivative")
        positional, configuration = self._owner.signature.split(arguments, keywords)
        inner = Session(self.title, WholeArrays())
        inner.oob = outer.oob
        given: list[SymbolicTensor] = []
        symbols: list[Any] = []
        for label, value in positional:
            tensor = _as_tensor(outer, value, label)
            given.append(tensor)
            symbols.append(_mirrored(outer, inner, tensor, value, label))
        with inner.active():
            traced = self.trace(inner, symbols, configuration)
        outer.readings.extend(inner.readings)
        given.extend(outer.capture(c.value, c.tensor) for c in inner.captured)
        _lift_guards(outer, inner, traced.program, given)
        return traced.structure.build(inline_program(outer, traced.program, given))


class PullbackStaging(StagedFunction):
    """The adjoint programs of a function, for `vjp`; ``primal`` has the programs of its values."""

    def __init__(self, function: Callable[..., Any], has_aux: bool) -> None:
        super().__init__()
        self._function = function
        self._has_aux = has_aux
        self.signature: Signature = getattr(function, "signature", None) or Signature(function, _identifier(function))
        self.oob = getattr(function, "oob", "check")
        self.primal = _PrimalStaging(function)

    @property
    def title(self) -> str:
        """The name for programs and messages."""
        return f"vjp_{_identifier(self._function)}"

    def size_names(self, label: str) -> Sequence[str | None]:
        """What the function calls the extents of the parameter ``label``."""
        return _size_names(self._function, label)

    def trace(self, session: Session, positional: list[Any], configuration: dict[str, Any]) -> Traced:
        """Run the function symbolically."""
        traced = trace_function(self._function, session, positional, configuration)
        program = traced.program
        count = len(positional)
        wrt = [tensor.name for tensor in program.inputs[:count] if is_floating(tensor.dtype)]
        outputs = program.outputs
        if self._has_aux:
            outputs = outputs[: _leaves(traced.structure.parts[0])]
        chosen = [name for name in outputs if is_floating(program.tensor(name).dtype)]
        derived = adjoint(program, wrt, outputs=chosen, keep_outputs=False)
        return Traced(derived, Structure("tuple", (Structure("leaf"),) * len(wrt)), traced.readings)


class _PrimalStaging(StagedFunction):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self._function = function
        self.oob = getattr(function, "oob", "check")

    @property
    def title(self) -> str:
        """The name for programs and messages."""
        return _identifier(self._function)

    def size_names(self, label: str) -> Sequence[str | None]:
        """What the function calls the extents of the parameter ``label``."""
        return _size_names(self._function, label)

    def trace(self, session: Session, positional: list[Any], configuration: dict[str, Any]) -> Traced:
        """Run the function symbolically."""
        return trace_function(self._function, session, positional, configuration)


def _identifier(function: Any) -> str:
    name = str(getattr(function, "__name__", "function"))
    return name if name.isidentifier() else "function"


def _size_names(function: Any, label: str) -> Sequence[str | None]:
    return function.staging.size_names(label) if hasattr(function, "staging") else ()


def _described(structure: Structure) -> str:
    return "no array" if structure.kind == "constant" else f"a {structure.kind} of {len(structure.parts)}"


def _leaves(structure: Structure) -> int:
    return 1 if structure.kind == "leaf" else sum(map(_leaves, structure.parts))


def _arranged(owner: Derivative, structure: Structure) -> Structure:
    # The structure of what the derivative's program returns: values first, then the adjoints.
    leaf = Structure("leaf")
    gradients = leaf if isinstance(owner.argnums, int) else Structure("tuple", (leaf,) * len(owner.positions))
    if owner.with_value:
        return Structure("tuple", (structure, gradients))
    if owner.has_aux:
        return _Swapped("tuple", (structure.parts[1], gradients))
    return gradients


class _Swapped(Structure):
    """``(gradient, aux)``, of which the program returns ``aux`` first."""

    def build(self, leaves: Sequence[Any]) -> Any:
        aux, gradients = super().build(leaves)
        return gradients, aux


def _without_first_output(program: Program) -> Program:
    from dataclasses import replace

    return replace(program, outputs=program.outputs[1:])


def _as_tensor(outer: Session, value: Any, label: str) -> SymbolicTensor:
    if isinstance(value, np.ndarray):
        return outer.capture(value, label)
    if isinstance(value, SymbolicTensor):
        return value.value()
    if isinstance(value, PendingArray):
        return value.materialize(label)
    element, extents = element_of(value, outer)
    return record_elementwise(outer.builder, element, extents, label)


def _mirrored(outer: Session, inner: Session, tensor: SymbolicTensor, value: Any, label: str) -> Any:
    # The inner program's input for an argument of the outer one, with the sizes of this call where they are known.
    made = inner.builder.input(label, tensor.dtype, tensor.rank)
    for own, extent in zip(made.extents, tensor.extents, strict=True):
        try:
            inner.extents[own.name] = outer.evaluate(extent)  # type: ignore[union-attr]
        except KeyError:
            continue
    if isinstance(value, SymbolicArray | np.ndarray):
        return made
    weak = value.weak_kind if isinstance(value, SymbolicNumber) else type(value).__name__
    parameters = value.parameters if isinstance(value, SymbolicNumber) else frozenset()
    return SymbolicNumber(inner.builder, Read(made.name, (), (), made.dtype), weak, parameters)


def _lift_guards(outer: Session, inner: Session, program: Program, given: Sequence[SymbolicTensor]) -> None:
    mapping: dict[Expr, Expr] = {}
    for tensor, outside in zip(program.inputs, given, strict=True):
        mapping.update(
            {
                SizeValue(e.name): o
                for e, o in zip(tensor.shape, outside.extents, strict=True)
                if isinstance(e, SizeValue)
            }
        )
    for guard in inner.guards:
        lifted = BroadcastGuard(substitute(guard.left, mapping), substitute(guard.right, mapping), guard.relation)
        if lifted not in outer.guards:
            outer.guards.append(lifted)
