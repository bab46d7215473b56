"""Scatters with affine targets, solved for their cells: ``dX[i + k] += dO[i] * K[k]`` as a gather over ``z = i + k``.

The equation z = f(v) between a cell and the points that write it is solved for the index variables that it determines::

    dX[i + k] += dO[i] * K[k]        becomes    dX[z] += dO[z - k] * K[k]           exact bounds on k for each z
    dI[2*x + k] += dO[x] * K[k]      becomes    dI[z] += dO[x] * K[z - 2*x]         no modulo: x has bounds, k is solved
    T[min(max(i - 1, 0), N - 1)]     becomes    one statement per piece of the target
    T[i // 2] += x[i]                becomes    T[z] += x[i] over 2*z <= i <= 2*z + 1

Afterwards every cell is written by one value of the `target_variables`, so that their loops are parallel without
atomics. A target that determines its variables already stays: ``O[2*i]``, diagonals ``A[i, i]``, ``O[2*i + k]`` with k
< 2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import islpy as isl

from tcdsl.ir.accumulators import ACCUMULATORS
from tcdsl.ir.build import index
from tcdsl.ir.domain import Domain
from tcdsl.ir.expressions import Apply, Expr, index_variables, is_affine_index, substitute
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.ir.program import Access, Keep, Statement, map_statement, statement_sizes
from tcdsl.polyhedra.affine import NotAffine, equated, expression_of, function_of, with_variable
from tcdsl.polyhedra.linear import linear_expression, linear_form, normalized, solved_for
from tcdsl.polyhedra.spaces import arranged, constant_range, dimension_names, twice

__all__ = ["solve", "target_variables"]

# A piecewise target with more pieces than this stays a scatter: each piece becomes a statement.
_MOST_PIECES = 12


def solve(statement: Statement, fresh: Callable[[str], str]) -> tuple[Statement, ...]:
    """The same cells from statements whose target maps determine the variables that they mention.

    A statement that needs no change comes back alone and as it is: plain stores and ordered accumulators always, and
    targets with data indices as far as these go. A piecewise target gives a chain of statements, the last one making
    the original tensor; ``fresh(hint)`` names the tensors between (of the target's shape and type).
    """
    if statement.accumulate == "assign" or ACCUMULATORS[statement.accumulate].ordered:
        return (statement,)
    if target_variables(statement) == _mentioned(statement):
        return (statement,)
    pieces = _pieces(statement)
    if len(pieces) <= 1:
        return (_solved(statement),)
    chain: list[Statement] = []
    start = statement.start
    for number, (points, indices) in enumerate(pieces):
        name = statement.target.tensor if number == len(pieces) - 1 else fresh(statement.target.tensor)
        part = replace(
            statement,
            target=Access(name, indices, statement.target.span),
            start=start,
            domain=Domain.from_set(points),
        )
        chain.append(_solved(part))
        start = Keep(name)
    return tuple(chain)


def target_variables(statement: Statement) -> tuple[str, ...]:
    """The index variables whose values the written cell determines, in the domain's order.

    Points that differ in one of them write different cells, so the loops over them may run in parallel: ``("i", "j")``
    for ``C[i, j] += A[i, k] * B[k, j]``, none for ``T[i + k]``. Sound for any sizes; data indices determine nothing.
    """
    return _target_variables(statement.domain, statement.target.indices)


@lru_cache(maxsize=4096)
def _target_variables(domain: Domain, indices: tuple[Expr, ...]) -> tuple[str, ...]:
    state = _Equation(domain.set, list(indices), [], {})
    state.fix_determined()
    return tuple(name for name in domain.variables if name in state.fixed)


def _mentioned(statement: Statement) -> tuple[str, ...]:
    # The variables of the affine axes of the target.
    names = frozenset().union(*(index_variables(axis) for axis in statement.target.indices if is_affine_index(axis)))
    return tuple(name for name in statement.domain.variables if name in names)


def _pieces(statement: Statement) -> list[tuple[isl.Set, tuple[Expr, ...]]]:
    # The domain cut so that every affine axis of the target is one quasi-affine function on each part.
    whole = statement.domain.set
    parts: list[tuple[isl.Set, tuple[Expr, ...]]] = [(whole, ())]
    for axis in statement.target.indices:
        try:
            if not is_affine_index(axis):
                raise NotAffine(axis)
            function = function_of(axis, whole)
        except NotAffine:
            parts = [(points, (*indices, axis)) for points, indices in parts]
            continue
        grown: list[tuple[isl.Set, tuple[Expr, ...]]] = []
        for points, indices in parts:
            pieces = function.intersect_domain(points).coalesce().get_pieces()
            for piece, aff in pieces:
                expr = axis if len(pieces) == 1 else expression_of(isl.PwAff.from_aff(aff))
                grown.append((piece, (*indices, expr)))
        parts = grown
        if len(parts) > _MOST_PIECES:
            return []
    return parts


@dataclass(slots=True)
class _Equation:
    """z = f(v) while it is being solved: the points, the target's indices, and what the cell determines so far."""

    points: isl.Set
    indices: list[Expr]
    fixed: list[str]
    replacements: dict[Expr, Expr]

    def loose(self, axis: Expr) -> list[str]:
        """The variables of a target index that the cell does not determine yet."""
        return [name for name in dimension_names(self.points) if name in index_variables(axis) - set(self.fixed)]

    def digits(self, axis: Expr) -> list[Expr]:
        """What an index is made of and determines: ``i`` and ``p`` for ``i*P + p`` where 0 <= p < P; else itself."""
        terms, constant = linear_form(axis)
        products = {atom: factors for atom in terms if (factors := _product_with_size(atom)) is not None}
        strides = {stride for _, stride in products.values()}
        if len(strides) != 1:
            return [axis]
        [stride] = strides
        low = linear_expression({atom: scale for atom, scale in terms.items() if atom not in products}, constant)
        try:
            value, extent = function_of(low, self.points), function_of(stride, self.points)
        except NotAffine:
            return [axis]
        if not self.points.is_subset(value.nonneg_set().intersect(value.lt_set(extent))):
            return [axis]
        high = linear_expression({products[atom][0]: scale for atom, scale in terms.items() if atom in products}, 0)
        return [*self.digits(normalized(high)), low]

    def fix_determined(self) -> None:
        """Mark the variables that the target's affine indices determine as they stand."""
        axes = [digit for axis in self.indices if is_affine_index(axis) for digit in self.digits(axis)]
        for axis in axes:
            terms, _ = linear_form(axis)
            names = self.loose(axis)
            if len(names) == 1 and _linear_in(names[0], terms):
                self.fixed.append(names[0])
        open_axes = [axis for axis in axes if self.loose(axis)]
        groups = [[axis] for axis in open_axes] + ([open_axes] if len(open_axes) > 1 else [])
        progress = True
        while progress:
            progress = False
            for group in groups:
                names = list(dict.fromkeys(name for axis in group for name in self.loose(axis)))
                if names and self._determines(group, names):
                    self.fixed.extend(names)
                    progress = True

    def _determines(self, axes: list[Expr], names: list[str]) -> bool:
        # No two points with the same fixed variables and the same indices may differ in one of the names.
        own = dimension_names(self.points)
        pairs, others = twice(self.points)
        renamed: dict[Expr, Expr] = {index(name): index(other) for name, other in zip(own, others, strict=True)}
        try:
            for axis in axes:
                pairs = equated(pairs, axis, substitute(axis, renamed))
        except NotAffine:
            return False
        for name in self.fixed:
            pairs = equated(pairs, index(name), renamed[index(name)])
        same = pairs
        for name in names:
            same = equated(same, index(name), renamed[index(name)])
        return bool(pairs.is_subset(same))

    def replace_one(self, names_taken: set[str]) -> bool:
        """Give the open axis with the fewest loose variables a variable of its own; False if none is left."""
        candidates = [axis for axis in self.indices if is_affine_index(axis) and self.loose(axis)]
        for axis in sorted(candidates, key=lambda axis: len(self.loose(axis))):
            fresh = FreshNames(names_taken, short=True).fresh("z")
            try:
                self._replace(axis, fresh)
            except NotAffine:
                continue
            return True
        return False

    def _replace(self, axis: Expr, fresh: str) -> None:
        points = with_variable(self.points, fresh, axis)
        pivot = self._pivot(axis)
        self.indices = [index(fresh) if other == axis else other for other in self.indices]
        if pivot is not None:
            terms, constant = linear_form(axis)
            value = solved_for(index(pivot), terms, constant, index(fresh))
            step: dict[Expr, Expr] = {index(pivot): value}
            self.indices = [normalized(substitute(other, step)) for other in self.indices]
            self.replacements = {name: normalized(substitute(expr, step)) for name, expr in self.replacements.items()}
            self.replacements[index(pivot)] = value
            points = arranged(points, tuple(name for name in dimension_names(points) if name != pivot))
        self.points = points
        self.fixed.append(fresh)

    def _pivot(self, axis: Expr) -> str | None:
        # A loose variable with coefficient 1 or -1: solving for it leaves no division. One of constant extent stays if
        # another can go, so that small windows remain loops of known length; then the first one goes, because target
        # variables come first in a domain and reductions last.
        terms, _ = linear_form(axis)
        names = [name for name in self.loose(axis) if abs(terms.get(index(name), 0)) == 1 and _linear_in(name, terms)]
        return min(
            names, key=lambda name: (constant_range(self.points, name) is not None, names.index(name)), default=None
        )


def _solved(statement: Statement) -> Statement:
    indices = statement.target.indices
    # Reads have places in the source, which those of equal statements have not.
    solved = _solution if all(map(is_affine_index, indices)) else _solution.__wrapped__
    solution = solved(statement.domain, indices, frozenset(statement_sizes(statement)))
    if solution is None:
        return statement
    domain, indices, replacements = solution
    return replace(
        map_statement(statement, lambda expr: _rewritten(expr, replacements)),
        target=Access(statement.target.tensor, indices, statement.target.span),
        domain=domain,
    )


@lru_cache(maxsize=4096)
def _solution(
    domain: Domain, indices: tuple[Expr, ...], sizes: frozenset[str]
) -> tuple[Domain, tuple[Expr, ...], Mapping[Expr, Expr]] | None:
    # Equal layers ask the same. The points of the cells, the target's indices, and what variables are in these.
    state = _Equation(domain.set, list(map(normalized, indices)), [], {})
    state.fix_determined()
    if not any(is_affine_index(axis) and state.loose(axis) for axis in state.indices):
        return None
    while state.replace_one({*domain.variables, *sizes, *state.fixed}):
        state.fix_determined()
    left = [name for name in dimension_names(state.points) if name not in state.fixed]
    order = [name for axis in state.indices for name in sorted(index_variables(axis)) if name in state.fixed]
    variables = tuple(dict.fromkeys([*order, *state.fixed, *left]))
    return Domain.from_set(arranged(state.points, variables)), tuple(state.indices), state.replacements


def _product_with_size(atom: Expr) -> tuple[Expr, Expr] | None:
    # An expression of index variables and the size that multiplies it.
    if isinstance(atom, Apply) and atom.primitive == "mul":
        for other, size in (atom.arguments, atom.arguments[::-1]):
            if index_variables(other) and not index_variables(size):
                return other, size
    return None


def _rewritten(expr: Expr, replacements: Mapping[Expr, Expr]) -> Expr:
    return normalized(substitute(expr, dict(replacements))) if replacements else expr


def _linear_in(name: str, terms: Mapping[Expr, int]) -> bool:
    # Whether the variable has a coefficient and stands in no other term.
    return index(name) in terms and all(atom == index(name) or name not in index_variables(atom) for atom in terms)
