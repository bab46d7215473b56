"""A statement of Tile as a sketch: ``O[i, j] += A[i, k] * B[k, j]``.

All points count at which every index is an integer in range and every constraint holds (`Sketch` of mode ``valid``).
What cells hold that have no such point is in `unwritten_cells`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tcdsl.errors import DslSyntaxError, DtypeError
from tcdsl.frontend.arrays.arithmetic import staged_operand
from tcdsl.frontend.staging.session import Session, materialized
from tcdsl.frontend.staging.target_states import Declared
from tcdsl.frontend.stores.stores import store
from tcdsl.frontend.symbols.scalar_primitives import apply_primitive
from tcdsl.frontend.symbols.symbols import SymbolicTensor, number_value
from tcdsl.frontend.symbols.values import Value
from tcdsl.frontend.tile.cells import Cells, Combined, IndexedTensor, Number
from tcdsl.frontend.tile.index_expressions import Constraint, TensorIndex, given_name
from tcdsl.frontend.tile.sizes import kind_of
from tcdsl.frontend.tile.unwritten_cells import record_with_unwritten_cells
from tcdsl.frontend.tile.user_lines import fault, location, names_held
from tcdsl.ir.build import in_range
from tcdsl.ir.expressions import Expr, index_variables
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.ir.program import Access
from tcdsl.ranges.sketches.sketch import Sketch, renamed_free
from tcdsl.span import Span

__all__ = ["Contraction", "record_contraction"]

_LETTERS = "ijklmnopqrstuvwxyz"
#: Accumulators whose neutral element is what cells hold that nothing writes.
_STARTS_AT_ZERO = frozenset(("add", "assign", "or"))


@dataclass(frozen=True, slots=True)
class _Cell:
    # A cell of an operand, by its place among them.
    operand: int
    indices: tuple[Expr, ...]
    span: Span | None


@dataclass(frozen=True, slots=True)
class _Number:
    value: Any
    span: Span | None


@dataclass(frozen=True, slots=True)
class _Combination:
    primitive: str
    parts: tuple[_Term, ...]
    span: Span | None


_Term = _Cell | _Number | _Combination


@dataclass(slots=True)
class Contraction:
    """A statement, the tensors that it reads, and what has been said of it since.

    ``operands`` are the tensors, without those of the default, which is the last of them if ``has_default``.
    """

    accumulate: str
    target: tuple[Expr, ...]
    value: _Term
    operands: list[Any]
    conditions: list[Expr]
    span: Span | None
    has_default: bool = False
    default_span: Span | None = None
    names: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def of(accumulate: str, target: IndexedTensor, value: Cells) -> Contraction:
        """The statement ``target <accumulate>= value``."""
        operands: list[Any] = []
        divisions: list[Expr] = []
        _take_divisions(target, divisions)
        term = _term(value, operands, divisions)
        return Contraction(
            accumulate,
            tuple(each.expr for each in target.indices),
            term,
            operands,
            divisions,
            location(),
            names=_user_names(),
        )

    def add_constraint(self, constraint: object) -> None:
        """A condition more. `DslSyntaxError` for indices that nothing else bounds."""
        if not isinstance(constraint, Constraint):
            raise fault(
                DslSyntaxError,
                f"{kind_of(constraint)} as a constraint",
                "write a constraint on an index expression: `O.add_constraint(j < 2)`",
            )
        used = frozenset().union(*map(index_variables, (*self.target, *_indices(self.value))))
        names = {**self.names, **_user_names()}
        for symbol in sorted(index_variables(constraint.holds) - used):
            raise fault(
                DslSyntaxError,
                f"the index `{names.get(symbol) or given_name(symbol) or 'i'}` occurs only in a constraint",
                "an index of a constraint stands in the statement too, in the target or in what is read",
            )
        self.names = names
        self.conditions.extend((constraint.holds, *constraint.divisions))

    def use_default(self, default: Any) -> None:
        """Cells that the statement does not write are those of ``default``."""
        if self.has_default:
            raise fault(DslSyntaxError, "an output with two defaults", "call `use_default` once")
        if not hasattr(default, "__array__") or isinstance(default, np.generic | Cells):
            raise fault(
                DslSyntaxError,
                f"{kind_of(default)} as a default",
                "`use_default` takes a tensor of the output's shape",
            )
        self.operands.append(default)
        self.has_default = True
        self.default_span = location()


def _take_divisions(cells: IndexedTensor, divisions: list[Expr]) -> None:
    for each in cells.indices:
        divisions.extend(each.divisions)


def _user_names() -> dict[str, str]:
    # What the user calls indices, by their symbols.
    return names_held(TensorIndex, lambda each: each.symbol)


def _term(value: Cells, operands: list[Any], divisions: list[Expr]) -> _Term:
    match value:
        case IndexedTensor():
            _take_divisions(value, divisions)
            place = next((k for k, each in enumerate(operands) if each is value.tensor), len(operands))
            if place == len(operands):
                operands.append(value.tensor)
            return _Cell(place, tuple(each.expr for each in value.indices), value.span)
        case Combined():
            parts = tuple(_term(part, operands, divisions) for part in value.parts)
            return _Combination(value.primitive, parts, value.span)
        case Number():
            return _Number(value.value, value.span)
    raise TypeError(f"{value!r} is no value of a statement")


def _parts(term: _Term) -> Iterator[_Term]:
    # A value and all that it is made of, from left to right.
    waiting = [term]
    while waiting:
        part = waiting.pop()
        yield part
        if isinstance(part, _Combination):
            waiting.extend(reversed(part.parts))


def _indices(term: _Term) -> Iterator[Expr]:
    for part in _parts(term):
        if isinstance(part, _Cell):
            yield from part.indices


def record_contraction(
    session: Session, contraction: Contraction, operands: Sequence[Any], extents: Sequence[Expr], label: str
) -> SymbolicTensor:
    """Record ``contraction`` on staged ``operands`` into a new tensor of these extents."""
    staged = [_staged(session, each, label) for each in operands]
    names = _readable(contraction, session)
    default = staged.pop() if contraction.has_default else None
    value = _value(contraction.value, staged, names)
    span, builder = contraction.span, session.builder
    filters = [renamed_free(each, names) for each in contraction.conditions]
    filters.extend(_chosen_reads(contraction.value, staged, names))
    state = Declared(tuple(extents), None, label)
    stored = store(state, contraction.accumulate, False, value, span)
    if default is not None:
        _require_type_of_default(default.element_type, stored.dtype, contraction.default_span, label)
    starts_at_zero = stored.accumulate in _STARTS_AT_ZERO
    sketch = Sketch(
        Access(
            builder.fresh_name(label),
            tuple(renamed_free(each, names) for each in contraction.target),
            span,
        ),
        stored.dtype,
        tuple(extents),
        "valid",
        stored.accumulate,
        stored.start,
        stored.value,
        tuple(names.values()),
        filters=tuple(filters),
        oob="skip",
        label=label,
        span=span,
    )
    if starts_at_zero and default is None:
        return builder.record(sketch, label)
    return record_with_unwritten_cells(session, sketch, default)


def _require_type_of_default(given: str, wanted: str, span: Span | None, label: str) -> None:
    # Cells of both stand in one tensor, so that the default's values have to be values of the statement's type.
    if not np.can_cast(given, wanted):
        raise DtypeError.at(
            f"the default of `{label}` is {given}, whose values are not all {wanted}, the type of its statement",
            span,
            f'convert one of them: `use_default(cast(P, "{wanted}"))`, or cast what the statement reads',
        )


def _staged(session: Session, operand: Any, label: str) -> SymbolicTensor:
    given = staged_operand(operand, session)
    if isinstance(given, np.ndarray):
        given = session.capture(given)
    made: SymbolicTensor = materialized(given, f"{label}_operand")
    return made


def _readable(contraction: Contraction, session: Session) -> dict[str, str]:
    # Names of index variables in the program: the user's, or letters.
    everything = (*contraction.target, *_indices(contraction.value), *contraction.conditions)
    symbols = dict.fromkeys(name for each in everything for name in sorted(index_variables(each), key=_age))
    taken = FreshNames(session.builder.size_names())
    free = iter(letter for letter in _LETTERS if letter not in contraction.names.values())
    found: dict[str, str] = {}
    for symbol in symbols:
        wanted = contraction.names.get(symbol) or given_name(symbol) or next(free, "i")
        found[symbol] = taken.fresh(wanted)
    return found


def _age(symbol: str) -> int:
    return int(symbol.rpartition("__")[2])


def _value(term: _Term, operands: Sequence[Any], names: Mapping[str, str]) -> Value:
    # The value at a point.
    match term:
        case _Cell():
            indices = tuple(renamed_free(each, names) for each in term.indices)
            value: Value = operands[term.operand].cell(indices, term.span)
            return value
        case _Number():
            number = number_value(term.value, term.span)
            assert number is not None
            return number
    values = [_value(part, operands, names) for part in term.parts]
    if term.primitive == "cond":
        equal = apply_primitive("eq", values[:2], term.span)
        return apply_primitive("where", (equal, values[2], Value.of(0)), term.span)
    return apply_primitive(term.primitive, values, term.span)


def _chosen_reads(term: _Term, operands: Sequence[Any], names: Mapping[str, str]) -> Iterator[Expr]:
    # That all reads are in range, where a part of the value is not read at some points: truth values as factors
    # choose, and so does `cond`. What is not chosen has to be in range all the same.
    parts = list(_parts(term))
    cells = [part for part in parts if isinstance(part, _Cell)]
    chooses = any(isinstance(part, _Combination) and part.primitive in ("cond", "eq") for part in parts)
    if len(parts) > 1 and (chooses or any(operands[cell.operand].element_type == "bool" for cell in cells)):
        for cell in cells:
            for at, extent in zip(cell.indices, operands[cell.operand].extents, strict=True):
                yield in_range(renamed_free(at, names), extent)
