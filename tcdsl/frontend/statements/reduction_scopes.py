"""Which reduction binds which index variable.

::

    O[i] = sum(w[k] * x[i, k]) / sum(w[k])        two reductions side by side, each with a k of its own
    t[()] += log(sum(exp(x[i, k]))), m[i] > 0     i is the statement's, k the sum's

A variable that is not on the target belongs to the first level, from the outside in, at which it occurs outside of any
further reduction, in the value or in a condition of that level; where it occurs only in several reductions side by
side, each has its own. Which level the conditions behind a value belong to is in
`tcdsl.frontend.statements.condition_variables`. Generators bind what their ``for`` says and are otherwise transparent.
Reductions that bind the same name are renamed apart.

Where an expression is evaluated, data indices are in range, and divisors are not 0. With ``oob="skip"`` points whose
data indices are out of range are left out: the in-range conditions of the data indices that a point evaluates become
conditions of the statement or of the reduction around them. Reads behind a condition count only where it holds.

Data divided by 0 is 0, as in NumPy's arithmetic of integers. An index variable or a size divided by 0 is no number: a
size that divides them is checked at the call, as the literal 0 is while staging.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tcdsl.errors import Diagnostic, DslSyntaxError, TcdslError
from tcdsl.frontend.points.definitions import GENERATED, Definition, all_definitions, outside_names
from tcdsl.frontend.points.let_placement import named_lets, share, without_brackets
from tcdsl.frontend.statements.accesses import is_data
from tcdsl.frontend.statements.condition_variables import Open, as_generator, listed, placed_conditions, readable
from tcdsl.frontend.symbols.values import Conversion, require_fitting
from tcdsl.ir.build import all_of, apply, range_tests, truth
from tcdsl.ir.build import cast as converted
from tcdsl.ir.expressions import (
    Apply,
    Boundary,
    Constant,
    ExplicitRange,
    Expr,
    IndexValue,
    Let,
    Read,
    Reduction,
    children,
    locals_read,
    rebuild,
)
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.span import Span

__all__ = ["BoundStatement", "ReductionScopes"]

_SUMS = ("add", "subtract")


@dataclass(frozen=True, slots=True)
class BoundStatement:
    """The same with every variable bound: the parts of a `Sketch`."""

    indices: tuple[Expr, ...]
    value: Expr
    variables: tuple[str, ...]
    ranges: tuple[ExplicitRange, ...]
    conditions: tuple[Expr, ...]
    filters: tuple[Expr, ...]


class ReductionScopes:
    """Binds the variables of one statement. ``faults`` collects what is wrong.

    ``definitions`` are the local definitions that the statement mentions, ``sizes`` the names of the program's sizes,
    from which index variables must differ, ``extents`` the shapes of the tensors it reads, for ``oob="skip"``
    (``None`` otherwise).
    """

    def __init__(
        self,
        definitions: Mapping[str, Definition],
        sizes: Iterable[str],
        extents: Callable[[str], Sequence[Expr]] | None,
    ) -> None:
        self.faults: list[Diagnostic] = []
        self._known = all_definitions(definitions)
        self._definitions = {name: definition.value for name, definition in self._known.items()}
        self._taken = FreshNames(sizes)
        self._extents = extents
        self._on_target: dict[str, None] = {}
        self._asked: tuple[Expr, ...] = ()
        self._bound: dict[tuple[Reduction, tuple[str, ...]], Reduction] = {}

    def bind(self, statement: Open) -> BoundStatement:
        """The parts of the sketch of ``statement``."""
        self._on_target, self._asked = self.occurrences(statement.indices), statement.conditions
        statement = placed_conditions(statement, self._known, self.faults.append)
        loops = statement.loops
        here = self.occurrences((*statement.indices, statement.value))
        here = dict.fromkeys((*here, *loops.variables, *self.occurrences(statement.conditions)))
        names = {name: self._taken.fresh(readable(name)) for name in here}
        indices = tuple(self._finished(index, names) for index in statement.indices)
        conditions = (*loops.conditions, *statement.conditions)
        level = self._level(statement.accumulate, statement.value, names, loops.ranges, conditions)
        value, ranges, conditions, filters = level
        bound = BoundStatement(indices, value, tuple(names.values()), ranges, conditions, filters)
        return self._readable_lets(bound)

    def _readable_lets(self, bound: BoundStatement) -> BoundStatement:
        groups = (bound.indices, (bound.value,), bound.conditions, bound.filters)
        named = iter(named_lets([expr for group in groups for expr in group], self._taken.copy()))
        indices, (value,), conditions, filters = (tuple(next(named) for _ in group) for group in groups)
        return replace(bound, indices=indices, value=value, conditions=conditions, filters=filters)

    def _level(
        self,
        accumulate: str,
        value: Expr,
        names: Mapping[str, str],
        ranges: Sequence[ExplicitRange],
        conditions: Sequence[Expr],
    ) -> tuple[Expr, tuple[ExplicitRange, ...], tuple[Expr, ...], tuple[Expr, ...]]:
        """The value, the ranges, the conditions and the filters of a statement or a reduction, in its own names."""
        filters: tuple[Expr, ...] = ()
        if accumulate in _SUMS:
            filters, value = without_brackets(value, self._definitions.get)
        value = self._finished(value, names, filters)
        tests = tuple(self._finished(condition, names) for condition in conditions)
        filters = tuple(self._finished(condition, names) for condition in filters)
        extents = self._extents
        if extents is not None:
            # Data indices that skip: what is tested first guards what is evaluated later.
            tests = tuple(apply("and_", in_range(c, extents), c, span=c.span) for c in tests)
            filters = tuple(apply("and_", in_range(c, extents), c, span=c.span) for c in filters)
            guard = in_range(value, extents)
            if not isinstance(guard, Constant):
                filters = (*filters, guard)
        return value, tuple(_renamed_range(stated, names) for stated in ranges), tests, filters

    def occurrences(self, expressions: Iterable[Expr]) -> dict[str, None]:
        """The index variables that occur outside of reductions without a generator, in order."""
        return dict.fromkeys(name for expr in expressions for name in outside_names(expr, self._known))

    # -- levels ----------------------------------------------------------------------------------------------

    def _finished(self, expr: Expr, names: Mapping[str, str], known: Sequence[Expr] = ()) -> Expr:
        """``expr`` in the names of its level, with the local definitions that it mentions computed in it.

        ``known`` are conditions under which it is evaluated.
        """
        return self._rewritten(share(expr, self._definitions.get, known), names)

    def _rewritten(self, expr: Expr, names: Mapping[str, str]) -> Expr:
        match expr:
            case IndexValue(name=name):
                new = names.get(name, name)
                return expr if new == name else IndexValue(new, expr.span)
            case Reduction():
                return self._reduction(expr, names)
            case Conversion(operand=operand, dtype=dtype):
                return converted(self._rewritten(operand, names), dtype, expr.span)
            case Constant():
                self._check_constant(expr)
                return expr
            case _:
                parts = children(expr)
                return rebuild(expr, tuple(self._rewritten(part, names) for part in parts)) if parts else expr

    def _reduction(self, expr: Reduction, outer: Mapping[str, str]) -> Reduction:
        inside = tuple(self.occurrences((expr.value, *expr.conditions)))
        own = expr.variables or tuple(name for name in inside if name not in outer)
        if expr.alone and not own:
            # All but those of the generators around it.
            own = tuple(name for name in inside if GENERATED not in name)
        if not own:
            self._fault_nothing_bound(expr)
            return expr
        if expr.accumulate in ("argmax", "argmin") and len(own) > 1 and not expr.variables:
            self._fault_many_positions(expr, own)
            return expr
        used = sorted(outer[name] for name in self._free(expr) if name in outer)
        key = (expr, tuple(used))
        if key not in self._bound:
            self._bound[key] = self._bind_reduction(expr, own, outer)
        return self._bound[key]

    def _free(self, expr: Reduction) -> dict[str, None]:
        parts = [end for stated in expr.ranges for end in (stated.low, stated.high)]
        return self.occurrences((*parts, *expr.conditions, expr.value))

    def _bind_reduction(self, expr: Reduction, own: tuple[str, ...], outer: Mapping[str, str]) -> Reduction:
        names = {**outer, **{name: self._taken.fresh(readable(name)) for name in own}}
        value, ranges, tests, filters = self._level(expr.accumulate, expr.value, names, expr.ranges, expr.conditions)
        variables = tuple(names[name] for name in own)
        return Reduction(expr.accumulate, variables, ranges, tests, value, expr.dtype, filters, expr.span)

    # -- faults ----------------------------------------------------------------------------------------------

    def _fault(self, fact: str, span: Span | None, hint: str) -> None:
        self.faults.append(Diagnostic(DslSyntaxError, fact, span, hint=hint))

    def _check_constant(self, expr: Constant) -> None:
        try:
            require_fitting(expr)
        except TcdslError as error:
            self.faults.extend(each for each in error.diagnostics if each not in self.faults)

    def _fault_nothing_bound(self, expr: Reduction) -> None:
        names = tuple(self.occurrences((expr.value,)))
        fact = "the reduction binds no index variable"
        hint = "reduce over an index that occurs in it only, or write `... for k in range(n)`"
        if names:
            belong = "belong" if len(names) > 1 else "belongs"
            fact += f": {listed(names)} {belong} to the statement or to a reduction around it"
        asked = {name for name in self.occurrences(self._asked) if name in names and name not in self._on_target}
        if asked:
            over = [name for name in names if name in asked]
            conditions = [each for each in self._asked if not asked.isdisjoint(self.occurrences((each,)))]
            hint = f"a condition makes {listed(over)} an index of what is around it; write "
            hint += f"{as_generator(expr, over, conditions)} for conditions of this reduction alone"
        self._fault(fact, expr.span, hint)

    def _fault_many_positions(self, expr: Reduction, own: Sequence[str]) -> None:
        self._fault(
            f"`{expr.accumulate}` over the indices {', '.join(own)}: a position has one",
            expr.span,
            "put all but one of them on the target, or say in which order the position counts, as in "
            f"`{expr.accumulate}(... {' '.join(f'for {name} in range(n)' for name in own)})`",
        )


def _renamed_range(stated: ExplicitRange, names: Mapping[str, str]) -> ExplicitRange:
    def renamed(expr: Expr) -> Expr:
        if isinstance(expr, IndexValue):
            return IndexValue(names.get(expr.name, expr.name), expr.span)
        parts = children(expr)
        return rebuild(expr, tuple(map(renamed, parts))) if parts else expr

    return replace(stated, variable=names[stated.variable], low=renamed(stated.low), high=renamed(stated.high))


def in_range(expr: Expr, extents: Callable[[str], Sequence[Expr]]) -> Expr:
    """The condition under which the skipping data indices of ``expr`` are in range; constant true if there are none.

    ``extents(tensor)`` gives the shape of a tensor.
    """
    match expr:
        case Read():
            return _read(expr, extents)
        case Apply(primitive="where", arguments=(condition, taken, other)):
            branches = apply("where", condition, in_range(taken, extents), in_range(other, extents))
            return apply("and_", in_range(condition, extents), branches)
        case Apply(primitive="and_" | "or_" as primitive, arguments=(left, right)):
            behind = in_range(right, extents)
            if isinstance(behind, Constant):
                return in_range(left, extents)
            skipped = apply("not_", left) if primitive == "and_" else left
            return apply("and_", in_range(left, extents), apply("or_", skipped, behind))
        case Let(name=name, value=value, body=body):
            inner = in_range(body, extents)
            if name in locals_read(inner):
                inner = Let(name, value, inner, expr.span)
            return apply("and_", in_range(value, extents), inner)
        case Reduction():
            return truth(True)  # its reads decide which points it takes in
        case _:
            return all_of(in_range(part, extents) for part in children(expr))


def _read(read: Read, extents: Callable[[str], Sequence[Expr]]) -> Expr:
    conditions: list[Expr] = []
    for index, boundary, extent in zip(read.indices, read.boundaries, extents(read.tensor), strict=True):
        conditions.append(in_range(index, extents))
        if boundary is Boundary.SKIP and is_data(index):
            conditions.extend(range_tests(index, extent))
    return all_of(conditions)
