"""``tc.einsum``: contractions, reductions and rearrangements by a spec, with any accumulator and primitive."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

from tcdsl.errors import Diagnostic, TcdslError, raise_diagnostics
from tcdsl.frontend.logics.logic_staging import check_spec, checked_accumulator, checked_primitive, record_einsum
from tcdsl.frontend.logics.logic_staging import einsum as einsum_of_symbols
from tcdsl.frontend.staging.session import current_session
from tcdsl.frontend.symbols.graph_tensors import algebra_of
from tcdsl.runtime.calls.staged import StagedOperation
from tcdsl.tracebacks import user_facing

__all__ = ["einsum"]

_REMEMBERED = 1024


@user_facing
def einsum(spec: str, /, *operands: Any, accumulate: str = "add", combine: Any = None) -> Any:
    """One to three operands, related by a spec in generalized einsum notation.

    ::

        tc.einsum("ij;jk=>ik", A, B)                                     # float64[N, K], float64[K, M] -> float64[N, M]
        tc.einsum("...i => i", x)                                        # sums over all axes but the last
        tc.einsum("2*o + k; k => o", x, w)                               # a convolution with stride 2
        tc.einsum("ij;jk=>ik", A, B, accumulate="max", combine="add")    # in the tropical semiring
        tc.einsum("i;i;i=>i", c, a, b, combine="where")

    ``combine`` is the primitive that is applied to the operands, by default their product; ``accumulate`` says how the
    values for one cell of the result combine. Both are names of the language, or functions that it knows
    (``combine=np.maximum``). Arrays run at once; in decorated functions and on tensors it becomes part of the
    program. It can be differentiated like any statement.

    `DslSyntaxError` and `ShapeError` show the place in the spec.
    """
    if current_session() is not None or algebra_of(operands) is not None:
        return einsum_of_symbols(spec, *operands, accumulate=accumulate, combine=combine)
    check_spec(spec)
    staging = _staging(spec, checked_accumulator(accumulate), checked_primitive(combine, len(operands)), len(operands))
    try:
        return staging.run(staging.signature, operands, {})
    except TcdslError as error:
        # There is no source to point at, so the spec is shown.
        raise_diagnostics([_with_spec(each, spec) for each in error.diagnostics])
        raise


def _with_spec(fault: Diagnostic, spec: str) -> Diagnostic:
    shown = fault.span is not None or spec in fault.notes or spec in fault.fact
    return fault if shown else replace(fault, notes=(*fault.notes, f'in einsum("{spec}", ...)'))


@lru_cache(maxsize=_REMEMBERED)
def _staging(spec: str, accumulate: str, primitive: str, count: int) -> StagedOperation:
    return StagedOperation(
        "einsum", "abc"[:count], lambda _, operands: record_einsum(spec, tuple(operands), accumulate, primitive)
    )
