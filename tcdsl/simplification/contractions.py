"""Sums of products, a few factors at a time: of three matrices with ``n**3`` operations where one sum takes ``n**4``.

::

    y[i, l] += A[i, j] * B[j, k] * C[k, l]      y_sum[i, k] += A[i, j] * B[j, k]
                                                y[i, l] += y_sum[i, k] * C[k, l]

A factor that does not mention a variable comes out of the sum over it. The rounding changes, integers are exact, modulo
their range, and a factor that is inf meets a sum, where its terms would have been NaN together if their signs differ.

`tcdsl.simplification.contraction_orders` says which orders are worth it; which of these is best depends on the sizes of
a call, and a `Chooser` says it. Conditions on several variables go with the sum over one of them, and isl shows that
the points of the sum and of what is left are together those of the statement. Where no term of a sum passes them, what
is left does not take that cell: its other factors may be NaN or divide by 0 there.

Products over several variables are taken over one after the other likewise, as those over the corners of an image.
Maxima are only where no derivative is taken any more, ``last``: how those that tie share one depends on all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import islpy as isl

from tcdsl.ir.build import all_of, apply, conjuncts, constant, index, plain_read
from tcdsl.ir.domain import Domain
from tcdsl.ir.dtypes import is_boolean, is_floating
from tcdsl.ir.expressions import (
    Apply,
    Expr,
    IndexValue,
    Let,
    SizeValue,
    index_variables,
    locals_read,
    size_names,
    substitute,
    walk,
)
from tcdsl.ir.fresh_names import FreshNames, names_of
from tcdsl.ir.program import Access, AxisExtent, Neutral, Program, Repeat, Statement, Tensor
from tcdsl.ir.sizes.size_binding import evaluate_size
from tcdsl.polyhedra.affine import NotAffine
from tcdsl.polyhedra.boxes import bounds
from tcdsl.polyhedra.limits import TooMuchWork, limited
from tcdsl.polyhedra.spaces import arranged, dimension_names
from tcdsl.simplification.contraction_orders import Order, best_orders
from tcdsl.simplification.scans import growing
from tcdsl.simplification.statement_points import as_store

__all__ = ["Chooser", "chosen", "contracted", "first_choice", "least_at"]

_SUMS = frozenset(("add", "subtract"))
_EXTREMES = frozenset(("max", "min", "and", "or"))

Chooser = Callable[[Sequence[Expr]], int]
"""Says which of these numbers of points, expressions of the program's sizes, is the least."""


def first_choice(points: Sequence[Expr]) -> int:
    """The choice where nothing is known of the sizes: what is best if all of them are equal."""
    return 0


def chosen(orders: Sequence[int]) -> Chooser:
    """Makes the choices that another chooser has made for the same program."""
    left = iter(orders)
    return lambda points: next(left, 0)


def least_at(sizes: Mapping[str, int]) -> Chooser:
    """Says what is the least at these sizes, if they are all that matter."""

    def choose(points: Sequence[Expr]) -> int:
        if not all(size_names(each) <= sizes.keys() for each in points):
            return first_choice(points)
        numbers = [evaluate_size(each, sizes) for each in points]
        return numbers.index(min(numbers))

    return choose


def contracted(program: Program, choose: Chooser = first_choice, *, last: bool = False) -> Program:
    """``program`` with sums of products in parts, in the orders that ``choose`` finds best.

    ``choose`` is asked the same of equal programs. What has been contracted stays as it is. ``last``: loops come next.
    """
    try:
        with limited():
            return _contracted(program, choose, None, last)
    except TooMuchWork:
        return program


def _contracted(program: Program, choose: Chooser, outer: Mapping[Expr, Expr] | None, last: bool) -> Program:
    # ``outer`` has sizes of a body in those of the program around all loops: no call says which others a round has.
    names: FreshNames | None = None
    tensors, statements = list(program.tensors), list[Statement]()
    for statement in program.statements:
        sums = _Product.of(statement, last)
        order = () if sums is None else _order(sums, choose, outer)
        if sums is not None and order:
            names = names or names_of(program)
            made, statement = sums.in_parts(order, names)
            tensors.extend(tensor for tensor, _ in made)
            statements.extend(each for _, each in made)
        statements.append(statement)
    repeats = tuple(_in_rounds(repeat, program, choose, outer, last) for repeat in program.repeats)
    if names is None and repeats == program.repeats:
        return program
    return replace(program, tensors=tuple(tensors), statements=tuple(statements), repeats=repeats)


def _in_rounds(
    repeat: Repeat, program: Program, choose: Chooser, outer: Mapping[Expr, Expr] | None, last: bool
) -> Repeat:
    given = dict(zip((each.name for each in repeat.body.inputs[1:]), repeat.inputs, strict=True))
    known: dict[Expr, Expr] = {}
    for size in repeat.body.sizes:
        if isinstance(size.source, AxisExtent) and size.source.tensor in given:
            extent = program.tensor(given[size.source.tensor]).shape[size.source.axis]
            if outer is None or _in_sizes(extent, outer):
                known[SizeValue(size.name)] = substitute(extent, dict(outer or {}))
    body = _contracted(repeat.body, choose, known, last)
    return repeat if body is repeat.body else replace(repeat, body=body)


def _in_sizes(expr: Expr, known: Mapping[Expr, Expr]) -> bool:
    return all(SizeValue(name) in known for name in size_names(expr))


def _order(sums: _Product, choose: Chooser, outer: Mapping[Expr, Expr] | None) -> Order:
    found = sums.orders()
    if not found:
        return ()
    if sums.statement.accumulate in _EXTREMES:
        return found[0][0]  # nobody is asked again, when loops are made
    points = [each for _, each in found]
    if not any(map(size_names, points)):
        return found[least_at({})(points)][0]
    if len(found) == 1 or (outer is not None and not all(_in_sizes(each, outer) for each in points)):
        return found[0][0]
    return found[choose([substitute(each, dict(outer or {})) for each in points])][0]


@dataclass(frozen=True, slots=True)
class _Factor:
    """A factor of a product, or a divisor, and the variables that it mentions."""

    value: Expr
    variables: frozenset[str]
    divides: bool = False


@dataclass(slots=True)
class _Product:
    """A statement that adds up products, taken apart, or one that accumulates something else over several variables."""

    statement: Statement
    points: isl.Set
    factors: list[_Factor]
    conditions: list[_Factor]
    negative: bool

    @staticmethod
    def of(statement: Statement, last: bool) -> _Product | None:
        """``statement`` taken apart, if it sums products over variables, or accumulates values otherwise."""
        kinds = _SUMS | {"multiply", *(_EXTREMES if last else ())}
        if statement.accumulate not in kinds or statement.unique:
            return None
        value, lets = statement.value, list[Let]()
        while isinstance(value, Let):
            lets.append(value)
            value = value.body
        summed = set(statement.domain.variables) - _written(statement)
        whole = statement.accumulate not in _SUMS
        truth = is_boolean(value.dtype) and statement.accumulate not in _EXTREMES
        if not summed or truth or not ((not whole and _is_product(value)) or len(summed) > 1):
            return None

        def factor(expr: Expr, divides: bool = False) -> _Factor:
            for let in reversed(lets):
                if let.name in locals_read(expr):
                    expr = replace(let, body=expr)
            return _Factor(expr, index_variables(expr), divides)

        # Nothing comes out of a product: a factor is in it as often as there are points.
        found, negative = ([(value, False)], False) if whole else _flat(value)
        conditions = [] if statement.condition is None else conjuncts(statement.condition)
        return _Product(
            statement,
            statement.domain.set,
            [factor(*each) for each in found],
            [_Factor(each, index_variables(each)) for each in conditions],
            negative,
        )

    def orders(self) -> list[tuple[Order, Expr]]:
        """The orders that are worth it."""
        variables, written = self.statement.domain.variables, _written(self.statement)
        factors = [each.variables for each in self.factors if each.variables]
        if set(variables) - written <= frozenset(variables).intersection(*factors) and written <= set().union(*factors):
            return []  # a product of two matrices, a convolution: nothing comes out of any sum, and no cell goes on
        links = _links(self.points)
        if links is None:
            return []
        try:
            _, extents = bounds(self.points, len(variables))
        except NotAffine:
            return []
        return best_orders(
            factors,
            [*links, *(each.variables for each in self.conditions)],
            written,
            dict(zip(variables, extents, strict=True)),
            self._along,
        )

    def _along(self, variables: frozenset[str], cells: frozenset[str], used: frozenset[str]) -> str | None:
        # The cell along which such a sum is a scan.
        every = self.statement.domain.variables
        points = arranged(self.points, [name for name in every if name in variables])
        for name in every:
            if name in cells - used and not any(name in each.variables for each in self.conditions):
                inside = arranged(arranged(points, (name,)), dimension_names(points))
                if growing(points, name, cells, inside):
                    return name
        return None

    def in_parts(self, order: Order, names: FreshNames) -> tuple[list[tuple[Tensor, Statement]], Statement]:
        """The sums of ``order``, and the statement of what they leave."""
        made: list[tuple[Tensor, Statement]] = []
        for summed in order:
            part = self._part(summed, names)
            if part is None:
                break
            made.extend(part)
        return made, self._rest() if made else self.statement

    def _part(self, summed: frozenset[str], names: FreshNames) -> list[tuple[Tensor, Statement]] | None:
        """One sum, whose cells become a factor, and whether it has terms, where conditions say it.

        ``None`` if its points are not apart from the others.
        """
        group = [each for each in self.factors if each.variables & summed]
        tests = [each for each in self.conditions if each.variables & summed]
        every = dimension_names(self.points)
        linked = [each for each in _links(self.points) or () if each & summed]
        scope = frozenset[str]().union(*linked, *(each.variables for each in (*group, *tests)))
        # Row-major as in what is read.
        cells = [name for name in _in_order(group, every, linked) if name in scope - summed]
        inner = [name for name in every if name in summed]
        points = arranged(self.points, [*cells, *inner])
        rest = arranged(self.points, [name for name in every if name not in summed])
        if not arranged(points, every).intersect(arranged(rest, every)).is_equal(self.points):
            return None
        try:
            lows, extents = bounds(arranged(points, cells), len(cells))
        except NotAffine:
            return None
        statement = self.statement
        # What is asked first still is.
        tests = [each for each in self.conditions if each.variables <= scope]
        target = names.fresh(f"{statement.target.tensor}_sum")
        cell = tuple(apply("sub", index(name), low) for name, low in zip(cells, lows, strict=True))
        value = _multiplied(group)
        made = Statement(
            Access(target, cell, statement.target.span),
            "add" if statement.accumulate in _SUMS else statement.accumulate,
            Neutral(),
            value,
            Domain.from_set(points),
            all_of(each.value for each in tests) if tests else None,
            span=statement.span,
        )
        place = self.factors.index(group[0])
        read = _Factor(plain_read(target, cell, value.dtype, value.span), frozenset(cells))
        before = [each for each in self.factors[:place] if each not in group]
        after = [each for each in self.factors[place:] if each not in group]
        self.factors = [*before, read, *after]
        self.conditions = [each for each in self.conditions if not each.variables & summed]
        self.points = rest
        found = [(Tensor(target, value.dtype, tuple(extents)), as_store(made))]
        if tests and is_floating(value.dtype) and statement.accumulate in _SUMS:
            flag = names.fresh(f"{statement.target.tensor}_any")
            met = replace(made, target=replace(made.target, tensor=flag), accumulate="or", value=constant(True, "bool"))
            found.append((Tensor(flag, "bool", tuple(extents)), as_store(met)))
            self.conditions.insert(0, _Factor(plain_read(flag, cell, "bool", value.span), frozenset(cells)))
        return found

    def _rest(self) -> Statement:
        value = _multiplied(self.factors)
        return as_store(
            replace(
                self.statement,
                value=apply("neg", value) if self.negative else value,
                domain=Domain.from_set(self.points),
                condition=all_of(each.value for each in self.conditions) if self.conditions else None,
            )
        )


def _in_order(factors: Iterable[_Factor], every: Sequence[str], linked: Sequence[frozenset[str]]) -> Iterable[str]:
    # Variables as the factors mention them, each with those that say how far it goes, then the others.
    met = [node.name for each in factors for node in walk(each.value) if isinstance(node, IndexValue)]
    met = [other for name in met for other in (name, *(end for end in every if _are_linked(name, end, linked)))]
    return dict.fromkeys((*met, *every))


def _are_linked(name: str, other: str, linked: Iterable[frozenset[str]]) -> bool:
    return any({name, other} <= each for each in linked)


def _written(statement: Statement) -> frozenset[str]:
    return frozenset[str]().union(*map(index_variables, statement.target.indices))


def _is_product(expr: Expr) -> bool:
    if not isinstance(expr, Apply):
        return False
    if expr.primitive == "neg":
        return _is_product(expr.arguments[0])
    return expr.primitive == "mul" or (expr.primitive == "div" and is_floating(expr.dtype))


def _flat(expr: Expr) -> tuple[list[tuple[Expr, bool]], bool]:
    """The factors of a product in order, each with whether it is a divisor, and whether all of it is negative."""
    match expr:
        case Apply(primitive="mul", arguments=(first, second)):
            (left, one), (right, other) = _flat(first), _flat(second)
            return [*left, *right], one != other
        case Apply(primitive="div", arguments=(first, second)) if is_floating(expr.dtype):
            found, negative = _flat(first)
            return [*found, (second, True)], negative
        case Apply(primitive="neg", arguments=(operand,)):
            found, negative = _flat(operand)
            return found, not negative
    return [(expr, False)], False


def _multiplied(factors: Iterable[_Factor]) -> Expr:
    value: Expr | None = None
    for each in factors:
        if value is None:
            value = apply("div", constant(1, each.value.dtype), each.value) if each.divides else each.value
        else:
            value = apply("div" if each.divides else "mul", value, each.value)
    assert value is not None
    return value


def _links(points: isl.Set) -> list[frozenset[str]] | None:
    """The variables of each constraint on several; None if the points are no single polyhedron."""
    if points.n_basic_set() != 1:
        return None
    names = dimension_names(points)
    [basic] = points.get_basic_sets()
    if basic.dim(isl.dim_type.div):
        return None
    found: dict[frozenset[str], None] = {}
    for constraint in basic.get_constraints():
        involved = [name for k, name in enumerate(names) if constraint.involves_dims(isl.dim_type.set, k, 1)]
        if len(involved) > 1:
            found[frozenset(involved)] = None
    return list(found)
