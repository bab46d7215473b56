"""Reads in branches need be in range only where the branch is taken: the point stays."""

from __future__ import annotations

import numpy as np
import pytest

from tcdsl.errors import ShapeError
from tests.ranges.brute_force import agree, arrays_of, compute, sizes_of
from tests.ranges.programs import Shapes


def test_a_branch_not_taken_keeps_its_point():
    shapes = Shapes({"x": 1})
    shapes.add("y[i] = x[i - 1] if i > 0 else 7.0", extents=["x_0"])
    agree(shapes, lambda x_0: (x_0,), lambda i, x_0: 0 <= i < x_0)
    np.testing.assert_array_equal(compute(shapes, [np.array([1.0, 2.0, 3.0])]), [7, 1, 2])


def test_branches_bound_a_fresh_target_together():
    shapes = Shapes({"x": 1})
    shapes.add("y[i] = x[i - 1] if i > 0 else x[i]")
    agree(
        shapes,
        lambda x_0: (x_0 + 1 if x_0 else 0,),
        lambda i, x_0: (0 <= i - 1 < x_0) if i > 0 else (0 <= i < x_0),
        range(5),
    )


def test_a_branch_that_leaves_an_end_open_waits_for_other_accesses():
    shapes = Shapes({"x": 1})
    shapes.add("y[i] = (x[i - 1] if i > 0 else 7.0) + x[i]")
    agree(shapes, lambda x_0: (x_0,), lambda i, x_0: 0 <= i < x_0)


def test_a_read_behind_a_bracket_bounds_what_nothing_else_bounds():
    shapes = Shapes({"x": 1})
    shapes.add("y[i] = x[i] if i < 2 else 0.0")
    agree(shapes, lambda x_0: (x_0,), lambda i, x_0: 0 <= i < x_0)
    np.testing.assert_array_equal(compute(shapes, [np.array([1.0, 2.0, 3.0])]), [1, 2, 0])
    shapes = Shapes({"x": 1})
    shapes.add("y[i] = x[i - 1] if i > 0 else 7.0")
    agree(shapes, lambda x_0: (x_0 + 1 if x_0 else 0,), lambda i, x_0: 1 <= i < x_0 + 1)


def test_concatenation():
    shapes = Shapes({"A": 1, "B": 1})
    shapes.add("C[i] = A[i] if i < A_0 else B[i - A_0], i < A_0 + B_0")
    for sizes in sizes_of(shapes):
        A, B = arrays_of(shapes, sizes)
        np.testing.assert_array_equal(compute(shapes, [A, B]), np.concatenate([A, B]))


def test_and_or_guard_their_right_side():
    shapes = Shapes({"x": 1})
    shapes.add("y[i] = 1.0 if i > 0 and x[i - 1] > 0.0 else 0.0", extents=["x_0"])
    agree(shapes, lambda x_0: (x_0,), lambda i, x_0: 0 <= i < x_0)
    shapes = Shapes({"x": 1})
    shapes.add("y[i] = 1.0 if i == 0 or x[i - 1] > 0.0 else 0.0", extents=["x_0 + 3"])
    agree(shapes, lambda x_0: (x_0 + 3,), lambda i, x_0: 0 <= i < x_0 + 3 and (i == 0 or 0 <= i - 1 < x_0))


def test_a_guard_on_data_becomes_a_test():
    shapes = Shapes({"c": 1, "x": 1})
    shapes.add("y[i] = x[i - 1] if c[i] > 0.0 else 9.0", extents=["c_0"])
    (statement,) = shapes.program().statements
    assert statement.condition is not None
    agree(shapes, lambda c_0, x_0: (c_0,), lambda i, c_0, x_0: 0 <= i < c_0)
    c, x = np.array([1.0, 1.0, -1.0, 1.0, -1.0]), np.array([4.0, 5.0])
    # Points 0 and 3 read x out of range and are left out; 2 and 4 do not read.
    np.testing.assert_array_equal(compute(shapes, [c, x]), [0, 4, 9, 0, 9])


def test_a_guard_on_data_needs_no_test_where_the_read_is_in_range_anyway():
    shapes = Shapes({"c": 1, "x": 1})
    shapes.add("y[i] = x[i] if c[i] > 0.0 else 9.0")
    (statement,) = shapes.program().statements
    assert statement.condition is None
    agree(shapes, lambda c_0, x_0: (c_0,) if c_0 == x_0 else None, lambda i, c_0, x_0: 0 <= i < c_0)


def test_reads_in_both_branches_bound_what_nothing_else_bounds():
    shapes = Shapes({"A": 1, "B": 1, "D": 1})
    shapes.add("T[()] += A[j - 1] if D[i] > 0.0 else B[j]", extents=[])
    # All other points read A or B out of range, whatever D holds.
    agree(
        shapes,
        lambda **sizes: (),
        lambda i, j, A_0, B_0, D_0: 0 <= i < D_0 and (1 <= j <= A_0 or 0 <= j < B_0),
        (0, 1, 3),
    )
    A, B, D = np.array([1.0, 2.0]), np.array([10.0, 20.0, 40.0, 80.0]), np.array([1.0, -1.0, -1.0])
    assert compute(shapes, [A, B, D]) == 3 + 2 * 150


def test_nested_branches_bound_together():
    shapes = Shapes({"A": 1, "D": 1})
    shapes.add("T[()] += A[j] if D[i] > 0.0 else (A[j - 3] if D[i] < 0.0 and j > 4 else A[j + 2])", extents=[])
    agree(
        shapes,
        lambda **sizes: (),
        lambda i, j, A_0, D_0: 0 <= i < D_0 and (0 <= j < A_0 or (j > 4 and 3 <= j < A_0 + 3) or -2 <= j < A_0 - 2),
    )
    A, D = np.arange(1.0, 8), np.array([1.0, -1.0, 0.0])
    below = A[[0, 1, 2, 3, 4, 5, 6]].sum() + A[[2, 3, 4, 5, 6]].sum()
    assert compute(shapes, [A, D]) == A.sum() + below + A.sum()


def test_reads_in_one_branch_bound_nothing():
    for value in ("A[j] if D[i] > 0.0 else 0.0", "A[j] if D[i] > 0.0 or D[i] < -1.0 else D[i]"):
        shapes = Shapes({"A": 1, "D": 1})
        with pytest.raises(ShapeError, match="nothing bounds the index `j` from below and above"):
            shapes.add(f"T[()] += {value}", extents=[])
    shapes = Shapes({"A": 1, "D": 1})
    with pytest.raises(ShapeError, match="nothing bounds the index `j` from above"):
        shapes.add("T[()] += A[j] if D[i] > 0.0 else D[i], j >= 0", extents=[])


def test_conditions_on_data_decide_for_branches_with_the_same_condition():
    shapes = Shapes({"A": 1, "D": 1})
    shapes.add("T[()] += A[j] if D[i] > 0.0 else 0.0, D[i] > 0.0", extents=[])
    agree(shapes, lambda **sizes: (), lambda i, j, A_0, D_0: 0 <= i < D_0 and 0 <= j < A_0)
    assert compute(shapes, [np.array([1.0, 2.0]), np.array([1.0, -1.0, 1.0])]) == 6


def test_conditions_of_the_statement_need_not_guard():
    shapes = Shapes({"x": 1})
    shapes.add("y[i] += x[i - 1], i > 0", extents=["x_0 + 2"])
    agree(shapes, lambda x_0: (x_0 + 2,), lambda i, x_0: 0 < i <= x_0)


def test_local_definitions_are_reached_where_they_are_used():
    shapes = Shapes({"x": 1})
    shapes.add("y[i] = z * z if i > 0 else 7.0", extents=["x_0 + 1"], local={"z": "x[i - 1]"})
    agree(shapes, lambda x_0: (x_0 + 1,), lambda i, x_0: 0 <= i < x_0 + 1)
    shapes = Shapes({"x": 1})
    shapes.add("y[i] = z if i > 3 else (z if i > 1 else 7.0)", extents=["x_0 + 4"], local={"z": "x[i - 2]"})
    agree(shapes, lambda x_0: (x_0 + 4,), lambda i, x_0: 0 <= i < x_0 + 4 and (i <= 1 or i - 2 < x_0))
    shapes = Shapes({"x": 1})
    shapes.add("y[i] = 0.0 * z if i > 0 else 7.0 + z", extents=["x_0 + 1"], local={"z": "x[i - 1]"})
    agree(shapes, lambda x_0: (x_0 + 1,), lambda i, x_0: 1 <= i < x_0 + 1)


def test_long_chains_of_local_definitions_stay_quick():
    shapes = Shapes({"x": 1})
    local = {"z0": "x[i]"} | {f"z{k}": f"z{k - 1} + z{k - 1}" for k in range(1, 60)}
    shapes.add("y[i] = z59", local=local)
    agree(shapes, lambda x_0: (x_0,), lambda i, x_0: 0 <= i < x_0)


def test_fill_values_are_guarded_by_the_index_they_replace():
    shapes = Shapes({"x": 1, "f": 1})
    shapes.add("y[i] = get(x[i - 1], f[i])", extents=["x_0 + 1"])
    # f is read at i = 0 only, so a longer target than f is no problem there.
    agree(
        shapes,
        lambda x_0, f_0: (x_0 + 1,),
        lambda i, x_0, f_0: 0 <= i < x_0 + 1 and (i > 0 or f_0 > 0),
        (0, 1, 3),
    )
