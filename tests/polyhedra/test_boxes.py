"""Boxes: all cells of a tensor, whatever the expression of its extents."""

from __future__ import annotations

from functools import reduce

import islpy as isl
import pytest

from tcdsl.ir.build import apply, integer, size
from tcdsl.ir.expressions import Expr
from tcdsl.polyhedra.affine import NotAffine, function_of, universe
from tcdsl.polyhedra.boxes import box


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
