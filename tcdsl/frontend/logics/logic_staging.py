"""Statements whose indices a logic gives: ``c["@"] += a * b``, ``einsum("ij;jk=>ik", a, b)``, the nodes of graphs.

`stage_logic` is the one way to record such a statement. The logic and the operands' rows give index variables
(`tcdsl.rows`), their extents decide who stretches (`tcdsl.frontend.logics.projections`), and what comes of it is a
`Sketch` like that of any other statement, for range inference to finish.

``einsum(spec, *operands)`` while a function is staged is one such statement, whose indices the spec gives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from types import MappingProxyType
from typing import Any

from tcdsl.errors import DslSyntaxError, TcdslError
from tcdsl.frontend.arrays.arithmetic import element_of, staged_operand
from tcdsl.frontend.arrays.row_alignment import axis_variable, cell_at, rows_of
from tcdsl.frontend.logics.projections import Projections, project, spec_diagnostic
from tcdsl.frontend.staging.declared_parameters import declared_parameter
from tcdsl.frontend.staging.session import Session, current_session, session_of
from tcdsl.frontend.staging.target_states import Declared, Existing, Fresh, TargetState
from tcdsl.frontend.stores.stores import record_sketch, sketch_of, store
from tcdsl.frontend.symbols.graph_tensors import algebra_of
from tcdsl.frontend.symbols.recognition import REDUCTIONS, recognize
from tcdsl.frontend.symbols.scalar_primitives import apply_primitive
from tcdsl.frontend.symbols.symbols import PendingArray, SymbolicTensor
from tcdsl.frontend.symbols.values import Value
from tcdsl.ir.accumulators import ACCUMULATORS
from tcdsl.ir.build import apply, integer
from tcdsl.ir.expressions import Expr, IndexValue, Read, index_variables, walk
from tcdsl.ir.primitives import PRIMITIVES
from tcdsl.ir.program import Access
from tcdsl.rows.logic import COMPOSE, aligned
from tcdsl.rows.ranks import RowRanks
from tcdsl.rows.spec import SpecError, SpecShapeError
from tcdsl.span import Span
from tcdsl.tracebacks import user_facing

__all__ = [
    "PRODUCT",
    "check_spec",
    "checked_accumulator",
    "checked_primitive",
    "einsum",
    "projections_of",
    "record_einsum",
    "stage_logic",
]

_UNCOMPOSED: Mapping[str, tuple[str, str]] = MappingProxyType(
    {"div": ("/", "`a * (1 / b)`, or a spec, "), "pow": ("**", "a spec, ")}
)

PRODUCT = "product"
"""In the place of a primitive: the operands' product, or the one operand itself."""


def stage_logic(
    session: Session,
    logic: str | Projections,
    primitive: str,
    operands: Sequence[object],
    accumulate: str,
    *,
    reset: bool = False,
    target: TargetState | None = None,
    label: str = "t",
    span: Span | None = None,
) -> SymbolicTensor:
    """Record ``target[logic] <accumulate>= primitive(*operands)`` and return the new version of the target.

    ``logic`` is ``"."``, ``"@"``, ``"T"`` or a spec, or index lists that are known already. ``primitive`` is a name of
    the table of that many arguments, or `PRODUCT`. ``operands`` are whatever takes part in whole-array arithmetic:
    tensors, pending arithmetic, numbers, sizes, arrays of the surroundings. ``accumulate`` is a name of the table of
    accumulators; ``reset`` lets a target that exists start anew. Without ``target`` a new tensor called ``label`` is
    made, whose ``rows`` are those that the logic gives. ``span`` is the place in the user's source, by default the
    expression being executed.

    `DslSyntaxError` for a malformed spec, `ShapeError` where ranks and extents do not fit, `DtypeError` for types.
    """
    span = span or session.location()
    if logic == COMPOSE and primitive in _UNCOMPOSED:
        operator, instead = _UNCOMPOSED[primitive]
        fact = f'`{operator}` with the logic "@", which adds up products over the axes that meet'
        raise DslSyntaxError.at(
            fact, span, f'write {instead}`c["ij;jk=>ik"] += a {operator} b`, if terms are what it is to add up'
        )
    state = Fresh(label) if target is None else target
    graph = session.context.graph
    if graph is not None and isinstance(logic, str):
        operands = [declared_parameter(each, span) if isinstance(each, str) else each for each in operands]
        graph.relate(logic, operands, state)
    parts = [_Operand.of(operand, session) for operand in operands]
    lists = logic if isinstance(logic, Projections) else _projected(session, logic, parts, state, span)
    values = [part.at(indices, lists.variables) for part, indices in zip(parts, lists.operands, strict=True)]
    if primitive == PRODUCT or (primitive == "id" and len(values) == 1):
        value = reduce(lambda left, right: apply_primitive("mul", (left, right), span), values)
    else:
        value = apply_primitive(primitive, values, span)
    stored = store(state, accumulate, reset, value, span)
    access = Access(session.builder.fresh_name(state.label), lists.target, span)
    sketch = sketch_of(
        state, stored, access, stored.value, lists.variables, ranges=lists.ranges, resets=reset, span=span
    )
    made = record_sketch(sketch, state, session.builder)
    made.rows = lists.rows
    return made


def projections_of(session: Session, logic: str, operands: Sequence[object], target: TargetState) -> Projections:
    """The projections of ``logic`` for these operands, and for ``target`` if it has its extents."""
    parts = [_Operand.of(operand, session) for operand in operands]
    return _projected(session, logic, parts, target, session.location())


@dataclass(frozen=True, slots=True)
class _Operand:
    session: Session
    given: object
    value: Value
    extents: tuple[Expr, ...]
    rows: RowRanks

    @staticmethod
    def of(given: object, session: Session) -> _Operand:
        given = staged_operand(given, session)
        if isinstance(given, PendingArray) and not _is_pointwise(given, session):
            given = given.materialize()
        value, extents = element_of(given, session)
        return _Operand(session, given, value, extents, rows_of(given, extents))

    def at(self, indices: Sequence[Expr], variables: Sequence[str]) -> Value:
        """The cell at ``indices``. Arithmetic is computed at each point if no two points share a cell, else stored."""
        value = self.value
        if isinstance(self.given, PendingArray):
            used = frozenset().union(*map(index_variables, indices))
            if not used.issuperset(variables) and any(isinstance(node, Read) for node in walk(value.expr)):
                value, _ = element_of(self.given.materialize(), self.session)
        return value.mapped(lambda expr: cell_at(expr, indices))


def _is_pointwise(array: PendingArray, session: Session) -> bool:
    """Whether each cell is computed from the same cell of other arrays of the same extents, and from single cells."""
    rank = len(array.extents)
    extents = {axis_variable(rank - 1 - k): extent for k, extent in enumerate(array.extents)}
    equal = {assertion.condition for assertion in session.builder.assertions}
    seen: set[str] = set()

    def same(left: Expr | None, right: Expr) -> bool:
        # Extents that broadcasting has found equal are known to be.
        pairs = () if left is None else ((left, right), (right, left))
        return left == right or not equal.isdisjoint(apply("eq", *pair) for pair in pairs)

    for node in walk(array.element.expr):
        if isinstance(node, Read):
            shape = session.builder.tensor(node.tensor).shape
            for axis, extent in zip(node.indices, shape, strict=True):
                if isinstance(axis, IndexValue) and same(extents.get(axis.name), extent):
                    seen.add(axis.name)
                elif index_variables(axis):
                    return False
    return seen == extents.keys()


def _projected(
    session: Session, logic: str, parts: Sequence[_Operand], state: TargetState, span: Span | None
) -> Projections:
    ranks = tuple(part.rows for part in parts)
    extents = state.extents
    try:
        alignment = aligned(logic, ranks, None if extents is None else _rows(state, logic, ranks))
    except SpecError as error:
        raise spec_diagnostic(error, span).error() from None
    return project(session, alignment, [part.extents for part in parts], extents, span)


def _rows(state: TargetState, logic: str, ranks: tuple[RowRanks, ...]) -> RowRanks:
    if isinstance(state, Existing):
        return state.tensor.rows
    extents = state.extents or ()
    try:
        # A target that is declared by its extents has the rows of the result, if their number is right.
        rows = aligned(logic, ranks).rows
    except SpecShapeError:
        rows = RowRanks()
    return rows if rows.total == len(extents) else RowRanks(output=len(extents))


_ACCUMULATORS: Mapping[str, str] = MappingProxyType(
    {
        **{row.name: row.name for row in ACCUMULATORS.values()},
        **{row.literal: row.name for row in ACCUMULATORS.values() if row.literal},
        **{name: meaning for name, meaning in REDUCTIONS.items() if meaning in ACCUMULATORS},
    }
)
_LARGEST_COUNT = 3


@user_facing
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
    return DslSyntaxError.at(fact, None if session is None else session.location(), hint)
