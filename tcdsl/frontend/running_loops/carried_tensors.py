"""What carried names hold before a loop and after a round, as tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol, TypeGuard

import numpy as np

from tcdsl.errors import ShapeError
from tcdsl.frontend.arrays.arithmetic import element_of, record_elementwise
from tcdsl.frontend.running_loops.carried import Carried, Kind, is_declared, is_read, maybe_unwritten, shown
from tcdsl.frontend.running_loops.loop_statement import LoopStatement
from tcdsl.frontend.staging.builder import ProgramBuilder
from tcdsl.frontend.staging.declarations import DeclaredInRound, DeclaredTarget, Unwritten, real_type
from tcdsl.frontend.staging.session import Session
from tcdsl.frontend.symbols.graph_tensors import GraphTensor
from tcdsl.frontend.symbols.recordings import Recording
from tcdsl.frontend.symbols.symbols import PendingArray, SymbolicNumber, SymbolicTensor
from tcdsl.frontend.symbols.values import Value, cast_value
from tcdsl.ir.build import constant
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Expr, Read, SizeValue, size_names
from tcdsl.ir.program import AxisExtent, Tensor
from tcdsl.ir.text.expression_printer import format_expr
from tcdsl.polyhedra.affine import NotAffine
from tcdsl.ranges.round_conditions import largest_over_rounds, sizes_of_round
from tcdsl.span import Span

__all__ = [
    "DeclaredTypes",
    "declared_result",
    "given_tensor",
    "held_result",
    "initial_tensor",
    "kind_for_all_rounds",
    "number_of",
    "stand_in",
    "tensor_after",
]


class Round(Protocol):
    """What is known of the loop, or of the arm, of a round."""

    @property
    def statement(self) -> LoopStatement: ...

    @property
    def span(self) -> Span | None: ...

    def specialize(self) -> None:
        """Stage anew with the numbers that it depends on, if these are numbers alone."""


def declared_in_round(
    builder: ProgramBuilder, name: str, target: DeclaredTarget, dtype: str | None = None
) -> DeclaredInRound:
    """A target that is declared before a loop, for a round that may read what earlier ones have written.

    ``dtype`` is its type, if its first statement has been seen.
    """
    assert target.extents is not None
    held = builder.placeholder(name, dtype or _least_type(target), target.extents)
    return DeclaredInRound(held, target, dtype is None and target.dtype is None)


class DeclaredTypes:
    """The types of targets that are declared before a loop, where a round may read them before it writes them.

    ``around`` are those that stand for such targets in the round around; ``types`` are those found in earlier passes.
    """

    def __init__(self, builder: ProgramBuilder, held: Mapping[str, Any]) -> None:
        self._real = real_type(builder.inputs)
        self.around = {name: each for name, each in held.items() if isinstance(each, DeclaredInRound)}
        self.types: dict[str, str] = {}

    def stand_in(self, builder: ProgramBuilder, name: str, target: DeclaredTarget) -> DeclaredInRound:
        """What a round reads of ``target``."""
        if name in self.around and name not in self.types:
            return self.around[name]
        return declared_in_round(builder, name, target, self.types.get(name))

    def unread(self, recording: Recording, name: str, given: Any) -> bool:
        """Whether the round has not read what is ``given`` for a name, or that is another round's."""
        return name in self.around or not (isinstance(given, SymbolicTensor) and is_read(recording, given.name))

    def corrected(
        self, recording: Recording, name: str, target: DeclaredTarget, given: DeclaredInRound | None, found: str
    ) -> bool:
        """Whether the round has read ``target`` as of another type than is ``found`` of its first statement."""
        if given is None or not is_read(recording, given.name):
            return False
        if found != given.element_type:
            self.types[name] = found
            return True
        if target.dtype in (None, "real") and name not in self.types and found == _least_type(target):
            # Nothing but itself and numbers of Python's.
            self.types[name] = "int64" if target.dtype is None else self._real
            return True
        return False


def _least_type(target: DeclaredTarget) -> str:
    # Until its first statement is seen its cells are of the type that meets any other without a trace.
    return "int8" if target.dtype is None else "float16" if target.dtype == "real" else target.dtype


def stand_in(builder: ProgramBuilder, carried: Carried) -> Any:
    """What stands for something carried in a round: a tensor, or a number of Python's."""
    kind, before = carried.kind, carried.before
    _enlarge(builder, carried)
    made = builder.placeholder(carried.label, kind.dtype, kind.extents)
    made.rows = kind.rows
    made.memory = kind.memory
    carried.placeholder = made.name
    made.declared = is_declared(before)
    if isinstance(before, SymbolicTensor):
        made.sized = before.sized
        if before.element_type == kind.dtype:
            builder.written.stands_for(made.name, before.name)
    return maybe_unwritten(before, number_of(carried, made))


def number_of(carried: Carried, held: SymbolicTensor) -> Any:
    """What is ``held`` for something carried: the tensor, or a number of Python's."""
    kind = carried.kind
    if kind.weak is None:
        return held
    return SymbolicNumber(held.builder, Read(held.name, (), (), compute_dtype(kind.dtype)), kind.weak, frozenset())


def declared_result(builder: ProgramBuilder, carried: Carried, span: Span | None) -> Tensor:
    """The tensor that holds what is carried after the loop."""
    name = builder.fresh_name(carried.label)
    label = "" if name == carried.label else carried.label
    made = Tensor(name, carried.kind.dtype, carried.kind.extents, label, span)
    builder.declare(made)
    return made


def held_result(builder: ProgramBuilder, carried: Carried, tensor: Tensor) -> SymbolicTensor:
    """What staging has of that tensor."""
    kind = carried.kind
    made = SymbolicTensor(builder, tensor.name, tensor.dtype, tensor.shape, carried.label, kind.memory)
    made.rows = kind.rows
    if carried.weak:
        builder.written.typed_by_numbers(made.name)
    before = carried.before
    made.declared, made.sized = (
        is_declared(before),
        before.sized if isinstance(before, SymbolicTensor) else carried.sized,
    )
    return made


def initial_tensor(session: Session, carried: Carried) -> SymbolicTensor:
    """What a name holds before the loop; what is only declared, or has no value yet, is filled."""
    before, kind = carried.before, carried.kind
    if isinstance(before, SymbolicTensor) and before.element_type != kind.dtype:
        retyped: SymbolicTensor = before.astype(kind.dtype).materialize(carried.label)
        return retyped
    if isinstance(before, SymbolicTensor):
        return before.held() if before.memory else before
    _enlarge(session.builder, carried)
    if isinstance(before, DeclaredTarget | Unwritten):
        value = Value(constant(carried.start or 0, compute_dtype(kind.dtype)), None, kind.dtype)
        made = record_elementwise(session, value, kind.extents, carried.label)
        session.builder.recording.starts[made.name] = carried.start or 0
        return made
    return given_tensor(session, carried, before)


def kind_for_all_rounds(
    session: Session, label: str, target: DeclaredTarget, found: Kind, counter: Tensor
) -> tuple[Kind, Mapping[str, Expr]]:
    """What is carried for a declared target that a round has made, and what all rounds need open sizes to be."""
    builder = session.builder
    extents, needed = list(found.extents), dict[str, Expr]()
    number = next(iter(size_names(counter.shape[0])), "") if counter.shape else ""
    changing = sizes_of_round(number, {name: builder.size(name) for name in builder.size_names()})

    def over_rounds(extent: Expr) -> Expr:
        named = size_names(extent)
        if not named & changing:
            return extent
        left_out = changing.union(filter(builder.is_open, builder.size_names())) - (named - changing)
        try:
            return largest_over_rounds(extent, builder.known().about(changing | named), left_out)
        except NotAffine:
            raise ShapeError.at(
                f"it cannot be told for all rounds at once how large `{label}` has to be: {format_expr(extent)}",
                target.span,
                f"declare an extent into which all rounds fit, as in `{label}: real[N + 1]`",
            ) from None

    for k, extent in enumerate(extents):
        if _is_open(extent, builder):
            source = builder.size(extent.name).source
            if not isinstance(source, AxisExtent):
                needed[extent.name] = over_rounds(source)
        else:
            extents[k] = over_rounds(extent)
    return replace(found, extents=tuple(extents), memory=False), needed


def _enlarge(builder: ProgramBuilder, carried: Carried) -> None:
    for name, extent in carried.needed.items():
        if size_names(extent) <= {*builder.size_names()}:  # else this pass is to find them again
            builder.enlarge(name, extent, carried.label, carried.before.span)


def _is_open(extent: Expr, builder: ProgramBuilder) -> TypeGuard[SizeValue]:
    return isinstance(extent, SizeValue) and builder.is_open(extent.name)


def given_tensor(session: Session, carried: Carried, given: Any) -> SymbolicTensor:
    """An array, or a number as a tensor of rank 0: the one that it is, if it is one."""
    if isinstance(given, PendingArray):
        return given.materialize(carried.label)
    if isinstance(given, np.ndarray | GraphTensor):
        return session.capture(given, carried.label)
    if isinstance(given, SymbolicTensor):
        return given
    element, extents = element_of(given, session)
    if isinstance(element.expr, Read) and not element.expr.indices:
        found = session.builder.tensor(element.expr.tensor)
        if found.dtype == carried.kind.dtype:
            return SymbolicTensor(session.builder, found.name, found.dtype, (), carried.label)
    return record_elementwise(session, cast_value(element, carried.kind.dtype), extents, carried.label)


def tensor_after(session: Session, carried: Carried, given: Any, staged: Round) -> SymbolicTensor:
    """What a name holds after a round, with the extents that it had before: the call compares what staging cannot."""
    kind, value = carried.kind, given_tensor(session, carried, given)
    weak, before = session.builder.written.is_weak, carried.before
    carried.weak = isinstance(before, SymbolicTensor) and weak(before.name) and weak(value.name)
    if value.extents == kind.extents:
        return value
    pairs = [(old, new) for old, new in zip(kind.extents, value.extents, strict=True) if old != new]
    if not all(session.are_same(old, new) for old, new in pairs):
        staged.specialize()
    where = "an arm of a branch" if staged.statement.arms else "a loop"
    for old, new in pairs:
        fact = f"`{carried.label}` changes its shape in {where} that runs: from an extent of"
        fact = f"{fact} {shown(old)} to {shown(new)}\ngive what has another shape another name"
        session.builder.require_equal(old, new, fact, staged.span)
    same = SymbolicTensor(session.builder, value.name, value.element_type, kind.extents, carried.label)
    return record_elementwise(session, element_of(same, session)[0], kind.extents, carried.label)
