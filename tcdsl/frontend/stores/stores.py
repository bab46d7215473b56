"""What a statement stores: the element type of its target, its start, and the value in that type.

A new target has the type of the value, 64-bit for sums and products of bool and small integers; a target that exists
keeps its type, and NumPy's same-kind rule says which values it takes.

Whole numbers of Python are weak: a new target that only they have been written to is int64 so far, and takes the type
of the first floating value (`tcdsl.frontend.symbols.weak_targets`).
"""

from __future__ import annotations

from dataclasses import dataclass

from tcdsl.errors import Diagnostic, DtypeError
from tcdsl.frontend.staging.target_states import Declared, Existing, Fresh, TargetState
from tcdsl.frontend.symbols.values import Value, as_truth, store_value, stored_dtype, sum_dtype
from tcdsl.frontend.symbols.weak_targets import Retyping
from tcdsl.ir.build import cast, constant, truth
from tcdsl.ir.dtypes import compute_dtype, is_boolean, is_floating
from tcdsl.ir.expressions import Expr
from tcdsl.ir.program import Fill, Keep, Neutral, Start
from tcdsl.span import Span

__all__ = ["TargetStore", "store"]


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
        return _into_bool(accumulate, start, value, span)
    if accumulate == "divide" and not is_floating(dtype):
        raise Diagnostic(
            DtypeError,
            f"`/=` gives floating numbers, which a tensor of {dtype} cannot hold",
            span,
            hint="make the target a floating tensor, or write `//` in the value",
        ).error()
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


def _into_bool(accumulate: str, start: Start, value: Value, span: Span | None) -> TargetStore:
    if accumulate not in _ON_TRUTH:
        raise Diagnostic(
            DtypeError,
            "a tensor of bool cannot hold the result, which is a number",
            span,
            hint="use a numeric target, or accumulate with `|=` or `&=`",
        ).error()
    expr = truth(bool(value.number)) if value.weak == "bool" and value.number is not None else None
    return TargetStore(_ON_TRUTH[accumulate], "bool", start, expr or store_value(value, "bool", span))
