"""How many integer points satisfy a system of linear constraints, and which: plain arithmetic on vectors of numbers.

::

    System.of(2, [], [(1, 0, 0), (-1, 0, 9), (0, 1, 0), (1, -1, 0)]).count()      # 0 <= i <= 9, 0 <= j <= i: 55

Equations are solved first, by integer changes of variables, so that each point keeps its own. What is left falls into
groups of variables that share no constraint, whose counts multiply; a group of one variable is an interval. In a larger
group all variables but the one with the longest range are enumerated, vectorized, and the last one is an interval at
each of their points. So boxes cost nothing, and triangles, bands and windows cost one vector along their shorter side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import gcd, prod

import numpy as np

__all__ = ["IntegerRow", "System"]

# The coefficients of the variables, then the constant.
IntegerRow = tuple[int, ...]
_Array = np.ndarray[tuple[int, ...], np.dtype[np.int64]]

# Points enumerated at once.
_BLOCK = 1 << 20
# A variable with so few values is tried one by one where that makes the others independent.
_FEW = 64


@dataclass(frozen=True, slots=True)
class System:
    """The integer points x with ``row · (x, 1) >= 0`` for every row, and ``coordinates``, functions of x, to be told.

    ``variables`` is the number of x. Changes of variables keep the coordinates, which are those of the points asked
    about, in order.
    """

    variables: int
    rows: tuple[IntegerRow, ...]
    coordinates: tuple[IntegerRow, ...]

    @staticmethod
    def of(
        variables: int, equations: Sequence[IntegerRow], inequalities: Sequence[IntegerRow], shown: int | None = None
    ) -> System:
        """The system of these constraints; the first ``shown`` variables are the coordinates (all by default)."""
        count = variables if shown is None else shown
        coordinates = [tuple(int(k == j) for j in range(variables + 1)) for k in range(count)]
        return _solved(variables, list(equations), list(inequalities), coordinates)

    def count(self) -> int:
        """The number of points."""
        if self.variables == 0:
            return int(all(row[0] >= 0 for row in self.rows))
        return prod(_connected_count(rows, size) for rows, size in _components(self.rows, self.variables))

    def points(self, block: int = _BLOCK) -> Iterator[_Array]:
        """The coordinates of all points, about ``block`` rows of an array at a time, in no promised order."""
        if self.variables == 0:
            if self.count():
                yield np.array([[row[-1] for row in self.coordinates]], np.int64).reshape(1, len(self.coordinates))
            return
        matrix = np.array(list(self.coordinates), np.int64).reshape(len(self.coordinates), -1)
        for found in _enumerated(_levels(self.rows, self.variables), self.variables, block):
            yield found @ matrix[:, :-1].T + matrix[:, -1]


# -- equations -------------------------------------------------------------------------------------------------------


def _solved(
    variables: int, equations: list[IntegerRow], rows: list[IntegerRow], coordinates: list[IntegerRow]
) -> System:
    nothing = System(0, ((-1,),), tuple((0,) for _ in coordinates))
    while equations:
        equation = _reduced_equation(equations.pop())
        if equation is None:
            return nothing
        if not any(equation[:-1]):
            continue
        every = [*equations, *rows, *coordinates]
        position, equation, every = _with_unit(equation, every)
        sign = equation[position]
        # sign * x + rest = 0, so x = -sign * rest.
        every = [
            tuple(
                a - row[position] * sign * b
                for k, (a, b) in enumerate(zip(row, equation, strict=True))
                if k != position
            )
            for row in every
        ]
        variables -= 1
        equations, others = every[: len(equations)], every[len(equations) :]
        rows, coordinates = others[: len(rows)], others[len(rows) :]
    tightened = [_reduced_inequality(row) for row in rows]
    if any(not any(row[:-1]) and row[-1] < 0 for row in tightened):
        return nothing
    kept = dict.fromkeys(row for row in tightened if any(row[:-1]))
    return System(variables, tuple(kept), tuple(coordinates))


def _reduced_equation(row: IntegerRow) -> IntegerRow | None:
    # None where no integers satisfy it.
    divisor = gcd(*row[:-1])
    if divisor == 0:
        return row if row[-1] == 0 else None
    return None if row[-1] % divisor else tuple(a // divisor for a in row)


def _reduced_inequality(row: IntegerRow) -> IntegerRow:
    divisor = gcd(*row[:-1]) or 1
    return tuple(a // divisor for a in row)


def _with_unit(equation: IntegerRow, rows: list[IntegerRow]) -> tuple[int, IntegerRow, list[IntegerRow]]:
    """A variable that the equation has with the coefficient 1 or -1, after changes of variables that make one.

    With x = t - q y for t and integers q, t determines x and the other way round: no point is lost or counted twice.
    """
    while True:
        sizes = [(abs(a), k) for k, a in enumerate(equation[:-1]) if a]
        smallest, position = min(sizes)
        if smallest == 1:
            return position, equation, rows
        pivot = equation[position]
        steps = [0 if k == position else a // pivot for k, a in enumerate(equation[:-1])]
        equation, *rows = [
            (*(a - row[position] * step for a, step in zip(row[:-1], steps, strict=True)), row[-1])
            for row in (equation, *rows)
        ]


# -- groups ----------------------------------------------------------------------------------------------------------


def _components(rows: Sequence[IntegerRow], variables: int) -> list[tuple[list[IntegerRow], int]]:
    """The constraints of each group of variables, in the group's own variables."""
    group = list(range(variables))
    for row in rows:
        used = [k for k, a in enumerate(row[:-1]) if a]
        for one, other in pairwise(used):
            old, new = group[other], group[one]
            group = [new if each == old else each for each in group]
    found = []
    for name in dict.fromkeys(group):
        members = [k for k in range(variables) if group[k] == name]
        own = [(*(row[k] for k in members), row[-1]) for row in rows if any(row[k] for k in members)]
        found.append((own, len(members)))
    return found


def _connected_count(rows: list[IntegerRow], variables: int) -> int:
    ranges = [_range(rows, variables, k) for k in range(variables)]
    lengths = [max(0, high - low + 1) for low, high in ranges]
    if min(lengths) == 0 or variables == 1:
        return min(lengths)
    if variables > 2:
        few = lengths.index(min(lengths))
        if lengths[few] <= _FEW and len(_components([_without(row, few) for row in rows], variables - 1)) > 1:
            low, high = ranges[few]
            return sum(_fixed(rows, variables, few, value).count() for value in range(low, high + 1))
    order = sorted(range(variables), key=lambda k: lengths[k])
    arranged = [(*(row[k] for k in order), row[-1]) for row in rows]
    levels = _levels(arranged, variables)
    total = 0
    for outer in _enumerated(levels[:-1], variables - 1, _BLOCK):
        low_end, high_end = _interval(levels[-1], outer)
        total += int(np.maximum(high_end - low_end + 1, 0).sum())
    return total


def _without(row: IntegerRow, position: int) -> IntegerRow:
    return (*row[:position], *row[position + 1 :])


def _fixed(rows: list[IntegerRow], variables: int, position: int, value: int) -> System:
    changed = [(*_without(row, position)[:-1], row[-1] + row[position] * value) for row in rows]
    return _solved(variables - 1, [], changed, [])


# -- bounds ----------------------------------------------------------------------------------------------------------


def _range(rows: Sequence[IntegerRow], variables: int, position: int) -> tuple[int, int]:
    """The smallest and largest value that a variable may have, taking the other variables for rational."""
    for k in reversed(range(variables)):
        if k != position:
            rows = _eliminated(rows, k)
    if any(not row[position] and row[-1] < 0 for row in rows):
        return 1, 0
    own = [(row[position], row[-1]) for row in rows if row[position]]
    low, high = _interval(own, np.zeros((1, 0), np.int64))
    return int(low[0]), int(high[0])


def _levels(rows: Sequence[IntegerRow], variables: int) -> list[list[IntegerRow]]:
    """For each variable, the constraints that bound it when those before it are known (Fourier and Motzkin)."""
    levels: list[list[IntegerRow]] = []
    current = list(rows)
    for k in reversed(range(variables)):
        levels.append([(*row[: k + 1], row[-1]) for row in current if row[k]])
        current = _eliminated(current, k)
    if any(row[-1] < 0 for row in current):
        levels[-1] = [(1, -1), (-1, 0)]  # 1 <= x <= 0
    return levels[::-1]


def _eliminated(rows: Sequence[IntegerRow], position: int) -> list[IntegerRow]:
    below = [row for row in rows if row[position] > 0]
    above = [row for row in rows if row[position] < 0]
    found = dict.fromkeys(row for row in rows if not row[position])
    for one in below:
        for other in above:
            sum_of_both = (one[position] * b - other[position] * a for a, b in zip(one, other, strict=True))
            found[_reduced_inequality(tuple(sum_of_both))] = None
    # Of parallel constraints the tightest counts.
    tightest: dict[IntegerRow, int] = {}
    for row in found:
        tightest[row[:-1]] = min(row[-1], tightest.get(row[:-1], row[-1]))
    return [(*row, end) for row, end in tightest.items()]


def _interval(rows: Sequence[IntegerRow], outer: _Array) -> tuple[_Array, _Array]:
    """The ends of the interval of the last variable at each point of ``outer``, an array of a point per row."""
    low: _Array | None = None
    high: _Array | None = None
    for row in rows:
        *others, own, end = row
        rest = outer @ np.array(others, np.int64) + end if others else np.full(len(outer), end, np.int64)
        if own > 0:
            bound = -(rest // own)
            low = bound if low is None else np.maximum(low, bound)
        else:
            bound = rest // -own
            high = bound if high is None else np.minimum(high, bound)
    if low is None or high is None:
        raise ValueError("a set with infinitely many points")
    return low, high


def _enumerated(levels: Sequence[list[IntegerRow]], variables: int, block: int) -> Iterator[_Array]:
    """All points of the first ``variables`` variables, in row-major order, about ``block`` at a time."""
    pending = [np.zeros((1, 0), np.int64)]
    while pending:
        outer = pending.pop()
        depth = outer.shape[1]
        if depth == variables:
            yield outer
            continue
        low, high = _interval(levels[depth], outer)
        length = np.maximum(high - low + 1, 0)
        ends = np.cumsum(length)
        total = int(ends[-1]) if len(ends) else 0
        if total > block and len(outer) > 1:
            half = len(outer) // 2
            pending += [outer[half:], outer[:half]]
            continue
        pieces = []
        for begin in range(0, total, block):
            # The numbers of the new points; each belongs to the first outer point that ends behind it.
            number = np.arange(begin, min(begin + block, total))
            owner = np.searchsorted(ends, number, side="right")
            value = low[owner] + number - (ends[owner] - length[owner])
            pieces.append(np.column_stack((outer[owner], value)))
        pending += pieces[::-1]
