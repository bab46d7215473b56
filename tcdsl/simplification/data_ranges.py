"""Ranges that data give: ``k >= row[i] and k < row[i + 1]`` says between which ends the loop over k can run.

A sum over ``range(row[i], row[i + 1])`` then costs the length of that range, and not all that k can be.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tcdsl.ir.build import index
from tcdsl.ir.conjunctions import conjuncts
from tcdsl.ir.dtypes import INTEGER
from tcdsl.ir.expressions import Apply, Expr, index_variables

__all__ = ["DataEnd", "data_ends", "data_ranged"]

# How a comparison reads from the other side, and where its other side is an end: the first value or the one behind the
# last, and how far from it.
_TURNED = {"ge": "le", "gt": "lt", "le": "ge", "lt": "gt"}
_ENDS = {"ge": (True, 0), "gt": (True, 1), "le": (False, 1), "lt": (False, 0)}


@dataclass(frozen=True, slots=True)
class DataEnd:
    """Where a variable begins, if ``first``, or stops: at ``value + offset``, by ``condition``."""

    first: bool
    value: Expr
    offset: int
    condition: Expr


def data_ends(condition: Expr, variable: str) -> Iterator[DataEnd]:
    """The ends of ``variable`` that ``condition`` gives by data."""
    for each in conjuncts(condition):
        match each:
            case Apply(primitive="ge" | "gt" | "le" | "lt" as primitive, arguments=(one, other)):
                turned = other == index(variable)
                end = one if turned else other
                if index(variable) in (one, other) and _is_end(end, variable):
                    first, offset = _ENDS[_TURNED[primitive] if turned else primitive]
                    yield DataEnd(first, end, offset, each)
            case _:
                pass


def data_ranged(condition: Expr | None, variable: str) -> bool:
    """Whether data of other variables give both ends of ``variable``, so that its loop belongs inside of theirs."""
    if condition is None:
        return False
    ends = [end.first for end in data_ends(condition, variable) if index_variables(end.value)]
    return len(set(ends)) == 2


def _is_end(value: Expr, variable: str) -> bool:
    return value.dtype in ("int64", INTEGER) and variable not in index_variables(value)
