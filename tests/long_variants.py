"""Rows of tests that run by hand alone: ``pytest -m long`` runs what stands here beside the few."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import pytest

__all__ = ["every", "few", "in_turn", "seeds"]


def few(rows: Iterable[Any], names: Collection[str]) -> list[Any]:
    """``few(CASES, {"matmul", "softmax"})``: all rows, of which those with other names are long."""
    found = list(rows)
    unknown = set(names) - set(map(str, found))
    assert not unknown, unknown
    return [row if str(row) in names else pytest.param(row, marks=pytest.mark.long) for row in found]


def every(step: int, rows: Iterable[Any]) -> list[Any]:
    """``every(3, ROWS)``: all rows, of which one in three is not long; rows that are long anyway are not counted."""
    found, k = [], 0
    for row in rows:
        given = row if isinstance(row, type(pytest.param())) else pytest.param(row)
        long = any(mark.name == "long" for mark in given.marks)
        found.append(row if long or k % step == 0 else pytest.param(*given.values, marks=pytest.mark.long, id=given.id))
        k += not long
    return found


def seeds(few: int, many: int) -> list[Any]:
    """``seeds(3, 30)``: the numbers from 0 to 29, of which those from 3 are long."""
    return [seed if seed < few else pytest.param(seed, marks=pytest.mark.long) for seed in range(many)]


def in_turn(rows: Iterable[Any], ways: Sequence[Any]) -> list[Any]:
    """All pairs of a row and a way: each row in one way, in the next way for the next row; the other pairs are long."""
    return [
        pytest.param(row, way, marks=() if (k - j) % len(ways) == 0 else pytest.mark.long)
        for k, row in enumerate(rows)
        for j, way in enumerate(ways)
    ]
