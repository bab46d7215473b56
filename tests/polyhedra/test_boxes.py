"""Boxes: all cells of a tensor, whatever the expression of its extents."""

from __future__ import annotations

from functools import reduce

import islpy as isl
import pytest

from tcdsl.ir.build import apply, integer, size
from tcdsl.ir.expressions import Expr
from tcdsl.polyhedra.affine import NotAffine, function_of, universe
from tcdsl.polyhedra.boxes import box, ends_of, sides_of


def count(points: isl.Set, sizes: dict[str, int]) -> int:
    for name, value in sizes.items():
        position = points.find_dim_by_name(isl.dim_type.param, name)
        points = points.fix_val(isl.dim_type.param, position, isl.Val(value))
    return int(str(points.count_val()))


def test_an_extent_may_have_any_number_of_cases() -> None:
    names = [f"N{k}" for k in range(7)]
    # Each of them counts if it is positive.
    parts: list[Expr] = [apply("max", size(name), integer(0)) for name in names]
    extent = reduce(lambda total, part: apply("add", total, part), parts)
    with pytest.raises(NotAffine):
        function_of(extent, universe(("z",), ()))
    points = box(("z",), (extent,))
    assert count(points, {name: k - 2 for k, name in enumerate(names)}) == 1 + 2 + 3 + 4


def test_sides_of_a_union_have_no_cases_for_what_conditions_leave_out() -> None:
    # A window that ends where the array does, at an offset that halves what is missing, and channels in two cases.
    points = isl.Set(
        "[N, F, C, Q, R] -> { [i, j, c] : 0 <= i < N and 0 <= j < F and 0 <= c < C and (Q > 0 or (Q = 0 and c < R))"
        " and 0 <= 2i + j - floor((2*floor(N/2) + F - N)/2) < N }"
    )
    assert points.n_basic_set() == 2
    sides = sides_of(("i", "j", "c"), points, set())
    assert [ends_of(sides[name]) for name in ("i", "j")] == [(integer(0), size("N")), (integer(0), size("F"))]
