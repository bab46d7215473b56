"""In which order the variables of a sum of products are best summed over, by the points that the sums visit.

For ``y[i, l] += A[i, j] * B[j, k] * C[k, l]`` there are ``({j},)`` with ``I*J*K + I*K*L`` points and ``({k},)`` with
``J*K*L + I*J*L``: each set of variables is summed over alone, with the factors that mention it, and the statement sums
over the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tcdsl.ir.build import apply, integer, product_of
from tcdsl.ir.expressions import Constant, Expr

__all__ = ["Order", "Scans", "best_orders"]

Order = tuple[frozenset[str], ...]
"""The variables of each sum that is taken before the last one."""

Scans = Callable[[frozenset[str], frozenset[str], frozenset[str]], str | None]
"""``scans(variables, cells, used)``: along which cell a sum over these variables goes on from the cell before.

``used`` are the variables that the terms mention.
"""

# What a size that is not known is taken for where it is asked whether several sums pay at all.
_LARGE = 64
# They do if one sum visits so many points for each of theirs; a cell that is stored and read counts as points, too.
_GAIN, _CELL = 1.5, 2
# Orders that a call is asked about: all of six matrices. And variables that are summed over.
_MOST_ORDERS, _MOST_VARIABLES = 42, 8

# How often each product of extents is taken.
_Points = Counter[tuple[Expr, ...]]


@dataclass(frozen=True, slots=True)
class _State:
    """What is left after some sums: the variables of each factor, and of each condition on several variables."""

    order: Order
    factors: tuple[frozenset[str], ...]
    links: tuple[frozenset[str], ...]
    points: _Points
    total: _Points


@dataclass(frozen=True, slots=True)
class _Search:
    """What is the same in all states: the variables of the target, extents of all variables, scans."""

    kept: frozenset[str]
    extents: Mapping[str, Expr]
    scans: Scans

    def state(
        self,
        order: Order,
        factors: tuple[frozenset[str], ...],
        links: tuple[frozenset[str], ...],
        points: _Points,
    ) -> _State:
        """A state, with the points of all sums, the last one included."""
        left = frozenset(self.extents).difference(*order)
        last = self.visited(left, left & self.kept, factors, links)
        return _State(order, factors, links, points, points + last)

    def visited(
        self,
        variables: frozenset[str],
        cells: frozenset[str],
        factors: Iterable[frozenset[str]],
        links: Iterable[frozenset[str]],
    ) -> _Points:
        """The points of one sum."""
        along = self.scans(variables, cells, frozenset[str]().union(*factors)) if any(links) else None
        return _box(variables - {along}, self.extents)

    def left(self, state: _State) -> frozenset[str]:
        """The variables that have not been summed over."""
        return frozenset(self.extents).difference(*state.order)

    def after(self, state: _State, variable: str) -> _State | None:
        """The state after one more sum, if anything is left for others."""
        group = [each for each in state.factors if variable in each]
        others = tuple(each for each in state.factors if variable not in each)
        linked = [each for each in state.links if variable in each]
        unlinked = tuple(each for each in state.links if variable not in each)
        if not group or not (others or unlinked):
            return None
        scope = frozenset[str]().union(*group, *linked)
        summed = scope - self.kept.union(*others, *unlinked)
        cells = scope - summed
        points = state.points + self.visited(scope, cells, group, linked)
        for monomial, count in _box(cells, self.extents).items():
            points[monomial] += _CELL * count
        return self.state((*state.order, summed), (*others, cells), unlinked, points)


def best_orders(
    factors: Sequence[frozenset[str]],
    links: Sequence[frozenset[str]],
    kept: frozenset[str],
    extents: Mapping[str, Expr],
    scans: Scans,
) -> list[tuple[Order, Expr]]:
    """Orders that visit fewer points than one sum, and their points; none of them is worse than another for all sizes.

    ``factors`` are their variables, ``links`` those of conditions on several, ``kept`` those of the target. ``extents``
    has all variables of the statement, ``scans`` says which sums take each term once. The first order is the best one
    where all sizes are equal.
    """
    summed = [name for name in extents if name not in kept]
    if len(factors) + len(links) < 2 or not summed or len(summed) > _MOST_VARIABLES:
        return []
    search = _Search(kept, extents, scans)
    first = search.state((), tuple(factors), tuple(links), Counter())
    most = _value(first.total) / _GAIN
    level, found = [first], list[_State]()
    while level:
        following: dict[frozenset[str], list[_State]] = {}
        for state in level:
            for name in summed:
                after = search.after(state, name) if name in search.left(state) else None
                if after is not None:
                    following.setdefault(search.left(after), []).append(after)
        level = [state for states in following.values() for state in _unbeaten(states)]
        found += [state for state in level if _value(state.total) <= most]
    return [(state.order, _expression(state.total)) for state in _unbeaten(found)]


def _expression(points: Mapping[tuple[Expr, ...], int]) -> Expr:
    """A number of points as an expression of sizes."""
    total: Expr = integer(0)
    for extents, count in points.items():
        total = apply("add", total, product_of((integer(count), *extents)))
    return total


def _box(variables: Iterable[str], extents: Mapping[str, Expr]) -> _Points:
    count, sizes = 1, list[Expr]()
    for name in variables:
        extent = extents[name]
        if isinstance(extent, Constant):
            count *= int(extent.value)
        else:
            sizes.append(extent)
    return Counter({tuple(sorted(sizes, key=repr)): count})


def _value(points: _Points) -> float:
    return float(sum(count * _LARGE ** len(extents) for extents, count in points.items()))


def _unbeaten(states: Iterable[_State]) -> list[_State]:
    # The best first, of equal ones the one that was met first.
    kept: list[_State] = []
    for state in sorted(states, key=lambda each: _value(each.total)):
        if not any(_never_more(other.total, state.total) for other in kept):
            kept.append(state)
    return kept[:_MOST_ORDERS]


def _never_more(points: _Points, others: _Points) -> bool:
    """Whether ``points`` are at most ``others`` for all extents: each product has one there that it divides."""
    free = dict(others)
    for extents, count in sorted(points.items(), key=lambda each: -len(each[0])):
        for larger in sorted(free, key=len):
            if not Counter(extents) - Counter(larger):
                taken = min(count, free[larger])
                free[larger] -= taken
                count -= taken
        if count:
            return False
    return True
