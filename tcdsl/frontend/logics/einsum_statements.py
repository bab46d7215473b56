"""``einsum(spec, *operands)`` while a function is staged: one statement whose indices the spec gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from tcdsl.errors import Diagnostic, DslSyntaxError, TcdslError
from tcdsl.frontend.logics.logic import PRODUCT, stage_logic
from tcdsl.frontend.staging.session import current_session, session_of
from tcdsl.frontend.staging.target_states import Declared
from tcdsl.frontend.symbols.graphs import algebra_of
from tcdsl.frontend.symbols.recognition import REDUCTIONS, recognize
from tcdsl.ir.accumulators import ACCUMULATORS
from tcdsl.ir.build import integer
from tcdsl.ir.primitives import PRIMITIVES

__all__ = ["check_spec", "checked_accumulator", "checked_primitive", "einsum", "record_einsum"]

_ACCUMULATORS: Mapping[str, str] = MappingProxyType(
    {
        **{row.name: row.name for row in ACCUMULATORS.values()},
        **{row.literal: row.name for row in ACCUMULATORS.values() if row.literal},
        **{name: meaning for name, meaning in REDUCTIONS.items() if meaning in ACCUMULATORS},
    }
)
_LARGEST_COUNT = 3


def einsum(spec: str, /, *operands: Any, accumulate: str = "add", combine: Any = None) -> Any:
    """The tensor that ``spec`` makes of the operands; see `tcdsl.runtime.einsum.einsum`."""
    accumulator, primitive = checked_accumulator(accumulate), checked_primitive(combine, len(operands))
    check_spec(spec)
    algebra = algebra_of(operands)
    if algebra is None:
        algebra = session_of("einsum").builder.algebra
    return algebra.einsum(spec, operands, accumulator, primitive)


def record_einsum(
    spec: str, operands: tuple[object, ...], accumulate: str, primitive: str, sizes: Sequence[int] | None = None
) -> Any:
    """The tensor of the program under construction that ``einsum`` gives, of these sizes if they are given."""
    target = None if sizes is None else Declared(tuple(map(integer, sizes)), None, "t")
    return stage_logic(session_of("einsum"), spec, primitive, operands, accumulate, reset=True, target=target)


def checked_accumulator(accumulate: object) -> str:
    """The accumulator's name in the table: for ``"add"``, ``"sum"`` and ``"+"`` it is ``"add"``. `DslSyntaxError`."""
    found = _ACCUMULATORS.get(accumulate) if isinstance(accumulate, str) else None
    if found is None:
        names = ", ".join(f'"{name}"' for name in ACCUMULATORS)
        raise _fault(f"accumulate={accumulate!r} is no accumulator", f"write one of {names}")
    return found


def checked_primitive(combine: object, count: int) -> str:
    """The primitive that combines ``count`` operands; by default their product. `DslSyntaxError`."""
    if not 1 <= count <= _LARGEST_COUNT:
        raise _fault(f"einsum takes one to three operands, not {count}", "contract in two steps")
    if combine is None:
        return PRODUCT
    name = combine if isinstance(combine, str) else recognize(combine)
    if name is None or name not in PRIMITIVES:
        raise _fault(f"combine={combine!r} is no primitive", 'write the name of one, as in combine="add"')
    arity = PRIMITIVES[name].arity
    if arity != count:
        given = f"{count} operand{'s' * (count != 1)}"
        raise _fault(f"`{name}` takes {arity} argument{'s' * (arity != 1)}, and einsum is given {given}")
    return name


def check_spec(spec: object) -> None:
    """`DslSyntaxError` for what is no string."""
    if not isinstance(spec, str):
        raise _fault(f"the spec is a {type(spec).__name__}", 'it comes first: `einsum("ij;jk=>ik", a, b)`')


def _fault(fact: str, hint: str = "") -> TcdslError:
    session = current_session()
    return Diagnostic(DslSyntaxError, fact, None if session is None else session.location(), hint=hint).error()
