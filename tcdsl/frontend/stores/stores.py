"""What a statement stores: the element type of its target, its start, and the value in that type.

A new target has the type of the value, 64-bit for sums and products of bool and small integers; a target that exists
keeps its type, and NumPy's same-kind rule says which values it takes.

Whole numbers of Python are weak: a new target that only they have been written to is int64 so far, and takes the type
of the first floating value (`tcdsl.frontend.symbols.weak_targets`).

All ways to write a tensor statement make a sketch of the store (`sketch_of`) and record it (`record_sketch`). ``|=``
and ``&=`` onto numbers that exist already are three statements: a cell that is written becomes 0 or 1, the others
stay::

    T[i] |= x[i, k] > 0       found[i] |= x[i, k] > 0         (bool, starts false)
                              touched[i] |= true              (the same points)
                              T[i] = (T[i] != 0 or found[i]) where touched, else T[i]

Accumulators or and and combine truth values; a numeric cell would have to be converted before the first of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tcdsl.errors import DtypeError
from tcdsl.frontend.staging.builder import ProgramBuilder
from tcdsl.frontend.staging.target_states import Declared, Existing, Fresh, TargetState
from tcdsl.frontend.stores.partial_resets import CellValue, record_choice, record_partial_reset, record_touched
from tcdsl.frontend.symbols.symbols import SymbolicTensor
from tcdsl.frontend.symbols.values import Value, as_truth, store_value, stored_dtype, sum_dtype
from tcdsl.frontend.symbols.weak_targets import Retyping
from tcdsl.ir.build import apply, cast, constant, truth
from tcdsl.ir.dtypes import compute_dtype, is_boolean, is_floating
from tcdsl.ir.expressions import Apply, Expr, IndexValue, Read, walk
from tcdsl.ir.program import Access, Fill, Keep, Neutral, Start
from tcdsl.ranges.sketches.sketch import Sketch
from tcdsl.rows.ranks import RowRanks
from tcdsl.span import Span

__all__ = ["TargetStore", "record_sketch", "sketch_of", "store"]


@dataclass(frozen=True, slots=True)
class TargetStore:
    """How a value meets its target: ``accumulate`` may differ from the operator written (max of bools is or).

    ``weak`` says that only whole numbers of Python have given the target its type.
    """

    accumulate: str
    dtype: str
    start: Start
    value: Expr
    weak: bool = False


def store(state: TargetState, accumulate: str, reset: bool, value: Value, span: Span | None) -> TargetStore:
    """The store of ``value`` by ``accumulate`` into a target. `DtypeError` where types do not fit; `Retyping`."""
    kept = isinstance(state, Existing) and not reset
    start: Start = Keep(state.tensor.name) if isinstance(state, Existing) and kept else Neutral()
    dtype = _target_dtype(state, accumulate, value)
    if accumulate in ("or", "and"):
        return _logical(accumulate, dtype, start, as_truth(value, span), span)
    if is_boolean(dtype):
        return _into_bool(accumulate, reset, start, value, span)
    if accumulate == "divide" and not is_floating(dtype):
        raise DtypeError.at(
            f"`/=` gives floating numbers, which a tensor of {dtype} cannot hold",
            span,
            "make the target a floating tensor, or write `//` in the value",
        )
    weak = value.weak == "int" and _takes_types(state)
    return TargetStore(accumulate, dtype, start, store_value(value, dtype, span, _wider(state, value)), weak)


def _takes_types(state: TargetState) -> bool:
    match state:
        case Existing(tensor=tensor):
            return tensor.builder.written.is_weak(tensor.name)
        case Declared(dtype=dtype):
            return dtype is None
    return True


def _wider(state: TargetState, value: Value) -> str:
    if isinstance(state, Fresh) or (isinstance(state, Existing) and not (state.sized or state.declared)):
        return ""
    return f', or declare the target with a type, as in `{state.label} = output(N, dtype="{stored_dtype(value)}")`'


def _target_dtype(state: TargetState, accumulate: str, value: Value) -> str:
    given = stored_dtype(value)
    match state:
        case Existing(tensor=tensor):
            floating = given if is_floating(given) else "float64"
            if (is_floating(given) or accumulate == "divide") and tensor.builder.written.is_weak(tensor.name):
                raise Retyping(floating)
            return tensor.element_type
        case Declared(dtype="real", real=real) if value.weak is not None:
            return real
        case Declared(dtype="real"):
            return given if is_floating(given) else "float64"
        case Declared(dtype=dtype) if dtype is not None:
            return dtype
        case Fresh() | Declared():
            return _fresh_dtype(accumulate, given, value)


def _fresh_dtype(accumulate: str, given: str, value: Value) -> str:
    match accumulate:
        case "add" | "subtract" | "multiply":
            return sum_dtype(value)
        case "or" | "and":
            return "bool"
        case "divide" | "sat01_gate":
            return given if is_floating(given) else "float64"
        case "power" | "relu_gate":
            return "int64" if is_boolean(given) else given
        case _:
            return given


def _logical(accumulate: str, dtype: str, start: Start, value: Value, span: Span | None) -> TargetStore:
    if is_boolean(dtype):
        return TargetStore(accumulate, dtype, start, value.expr)
    if isinstance(start, Keep):
        # Numbers become truth values only where the statement writes: `tcdsl.frontend.stores.recording` sees to it.
        return TargetStore(accumulate, "bool", Neutral(), value.expr)
    # A numeric target that starts anew holds 0 and 1, of which max is or and min is and.
    compute = compute_dtype(dtype)
    start = Fill(constant(0 if accumulate == "or" else 1, compute))
    return TargetStore("max" if accumulate == "or" else "min", dtype, start, cast(value.expr, compute, span))


_ON_TRUTH = {"assign": "assign", "multiply": "and", "max": "or", "min": "and"}


def _into_bool(accumulate: str, reset: bool, start: Start, value: Value, span: Span | None) -> TargetStore:
    if is_boolean(value.logical) and not reset and accumulate in ("add", "subtract"):
        # As with the operators: `+` between truth values is the logical or, but what a sum makes counts.
        if accumulate == "subtract":
            hint = "write `a != b` for where they differ, or convert what is to count: `int64(a) - int64(b)`"
            raise DtypeError.at("`-=` between truth values, which NumPy does not subtract", span, hint)
        accumulate = "max"
    if accumulate not in _ON_TRUTH:
        raise DtypeError.at(
            "a tensor of bool cannot hold the result, which is a number",
            span,
            "use a numeric target, or accumulate with `|=` or `&=`",
        )
    expr = truth(bool(value.number)) if value.weak == "bool" and value.number is not None else None
    return TargetStore(_ON_TRUTH[accumulate], "bool", start, expr or store_value(value, "bool", span))


def sketch_of(
    state: TargetState, stored: TargetStore, target: Access, value: Expr, variables: Sequence[str], **parts: Any
) -> Sketch:
    """The sketch of a statement that stores ``value`` as ``stored`` says; ``parts`` are further fields of `Sketch`."""
    return Sketch(
        target,
        stored.dtype,
        (None,) * len(target.indices) if state.extents is None else state.extents,
        state.mode,
        stored.accumulate,
        stored.start,
        value,
        tuple(variables),
        label=state.label,
        previous=state.previous,
        weak=stored.weak,
        sized=state.sized,
        **parts,
    )


def record_sketch(sketch: Sketch, state: TargetState, builder: ProgramBuilder) -> SymbolicTensor:
    """Record ``sketch`` onto a target in ``state``, and return the new version of the target."""
    if not isinstance(state, Existing):
        made = builder.record(sketch, state.label)
        made.rows = _rows(sketch, builder.rows)
        return made
    if sketch.dtype != state.tensor.dtype:
        made = _record_truth(sketch, state.tensor, builder)
    elif sketch.restarts is not None:
        made = record_partial_reset(sketch, state.tensor, builder)
    else:
        made = builder.record(sketch, state.label)
    made.rows = state.tensor.rows
    return made


def _rows(sketch: Sketch, rows: Callable[[str], RowRanks | None]) -> RowRanks:
    # Of a new target: `y[n, o] += x[n, i] * w[o, i]` where x has a batch axis and an output axis has the batch axis n.
    # Leading axes that are indexed by a variable which runs over a batch axis of something read are batch axes,
    # trailing ones indexed by a variable of an input axis are input axes; the others are output axes.
    row_of: dict[str, str] = {}
    for node in walk(sketch.value):
        known = rows(node.tensor) if isinstance(node, Read) else None
        if isinstance(node, Read) and known is not None:
            for axis, row in zip(node.indices, known.tags, strict=True):
                if isinstance(axis, IndexValue) and row != "output":
                    row_of.setdefault(axis.name, row)
    indices = sketch.target.indices
    found = [row_of.get(axis.name, "output") if isinstance(axis, IndexValue) else "output" for axis in indices]
    batch = next((k for k, row in enumerate(found) if row != "batch"), len(found))
    inputs = next((k for k, row in enumerate(reversed(found[batch:])) if row != "input"), len(found) - batch)
    return RowRanks(batch, len(found) - batch - inputs, inputs)


def _record_truth(sketch: Sketch, target: SymbolicTensor, builder: ProgramBuilder) -> SymbolicTensor:
    # The sketch accumulates truth values anew in the shape of the target.
    found = builder.record(sketch, target.label)
    # `fst` keeps the accesses of the value, so that the points are the same.
    always = Apply("fst", (truth(True), sketch.value), "bool", sketch.span)
    touched = record_touched(sketch, target, always, builder)

    def combined(cell: CellValue) -> Expr:
        held = cell(target)
        before = apply("ne", held, constant(0, held.dtype), span=sketch.span)
        return apply("or_" if sketch.accumulate == "or" else "and_", before, cell(found), span=sketch.span)

    return record_choice(touched, target, combined, sketch, builder)
