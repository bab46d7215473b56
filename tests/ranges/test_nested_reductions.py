"""Reductions inside values: temporaries, their ranges and extents, and points that drop out."""

from __future__ import annotations

import numpy as np
import pytest

from tcdsl.errors import DataIndexError, ShapeError
from tcdsl.ir.text.printer import format_program
from tests.ranges.brute_force import arrays_of, compute, sizes_of
from tests.ranges.programs import Shapes


def same(shapes, expected, extents=(0, 1, 2, 5)):
    """The last tensor equals ``expected(*arrays)`` for all sizes; where that is None the call is a `ShapeError`."""
    for number, sizes in enumerate(sizes_of(shapes, extents)):
        arrays = arrays_of(shapes, sizes, seed=number)
        with np.errstate(all="ignore"):
            right = expected(*arrays)
        if right is None:
            with pytest.raises(ShapeError):
                compute(shapes, arrays)
            continue
        np.testing.assert_allclose(compute(shapes, arrays), np.asarray(right), err_msg=str(sizes))


def test_a_normalization_is_two_statements():
    shapes = Shapes({"E": 2})
    shapes.add("Y[i, j] = E[i, j] / sum(E[i, l], l)")
    assert [statement.target.tensor for statement in shapes.program().statements] == ["Y_sum", "Y"]
    same(shapes, lambda E: E / E.sum(axis=1, keepdims=True))
    text = format_program(shapes.program())
    assert "Y_sum[i] += E[i, l]" in text
    assert "for [i, l]: 0 <= i < E_0 and 0 <= l < E_1" in text


def test_a_pooling_window():
    shapes = Shapes({"I": 1})
    shapes.add("O[i] = max(I[2*i + j] for j in range(2))")
    same(shapes, lambda I: [max(I[2 * i], I[2 * i + 1]) for i in range(len(I) // 2)], range(7))


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
def test_every_accumulator(name):
    shapes = Shapes({"A": 2})
    shapes.add(f"O[i] = 2.0 * {name}(A[i, k], k)")
    start = {"sum": 0, "prod": 1, "max": -np.inf, "min": np.inf}[name]
    same(shapes, lambda A: 2.0 * getattr(np, name)(A, axis=1, initial=start))


def test_any_and_all():
    shapes = Shapes({"A": 2})
    shapes.add("O[i] = 1.0 if any(A[i, k] > 0.5, k) and all(A[i, k] > -1.0, k) else 0.0")
    same(shapes, lambda A: ((A > 0.5).any(axis=1) & (A > -1).all(axis=1)).astype(float))


def test_reductions_side_by_side_do_not_share_a_variable():
    shapes = Shapes({"w": 1, "x": 2})
    shapes.add("O[i] = sum(w[k] * x[i, k], k) / sum(w[k], k)")
    same(shapes, lambda w, x: x @ w / w.sum() if len(w) == x.shape[1] else None)


def test_reductions_of_different_ranges_side_by_side():
    shapes = Shapes({"x": 1, "z": 1})
    shapes.add("O[()] = sum(x[k], k) - sum(z[k], k)")
    assert not shapes.assertions
    same(shapes, lambda x, z: x.sum() - z.sum())


def test_equal_reductions_are_computed_once():
    shapes = Shapes({"x": 1})
    shapes.add("O[i] = (x[i] - sum(x[k], k)) * sum(x[k], k)")
    assert len(shapes.program().statements) == 2
    same(shapes, lambda x: (x - x.sum()) * x.sum())


def test_reductions_nest():
    shapes = Shapes({"A": 3})
    shapes.add("O[i] = max(sum(A[i, j, k], k) * A[i, j, 0], j)")

    def expected(A):
        if A.shape[2] == 0:
            # There is no A[i, j, 0], which counts where it would be read.
            return None if A.shape[0] and A.shape[1] else np.full(A.shape[0], -np.inf)
        return (A.sum(axis=2) * A[:, :, 0]).max(axis=1, initial=-np.inf)

    same(shapes, expected)


def test_a_reduction_that_needs_nothing_of_the_one_around_it_is_computed_outside():
    shapes = Shapes({"A": 2, "v": 1})
    shapes.add("O[i] = sum(A[i, j] * sum(v[k], k), j)")
    first, second, _ = shapes.program().statements
    assert first.domain.variables == ("k",)
    assert second.domain.variables == ("i", "j")
    same(shapes, lambda A, v: (A * v.sum()).sum(axis=1))


def test_the_same_name_in_a_reduction_and_the_one_around_it():
    shapes = Shapes({"A": 1})
    shapes.add("O[()] = sum(A[k] * sum(A[k], k), k)")
    same(shapes, lambda A: A.sum() ** 2)


# -- ranges --------------------------------------------------------------------------------------------------------


def test_a_point_out_of_range_drops_out_of_its_reduction_only():
    shapes = Shapes({"x": 1})
    shapes.add("O[i] = x[i] + sum(x[i + k] for k in range(-1, 2))", extents=["x_0"])
    same(
        shapes,
        lambda x: [x[i] + sum(x[i + k] for k in (-1, 0, 1) if 0 <= i + k < len(x)) for i in range(len(x))],
    )


def test_outer_variables_take_ranges_from_accesses_inside_reductions():
    shapes = Shapes({"x": 1})
    shapes.add("O[i] = sum(x[i + k] for k in range(3))")
    same(shapes, lambda x: [x[i : i + 3].sum() for i in range(len(x) - 2)] if len(x) >= 2 else None, range(7))


def test_triangular_generators():
    shapes = Shapes({"A": 2})
    shapes.add("O[i] = sum(A[i, k] for k in range(i))", extents=["A_0"])
    same(shapes, lambda A: [A[i, :i].sum() for i in range(len(A))])
    shapes = Shapes({"A": 2})
    shapes.add("O[i] = sum(A[i, k] for k in range(i + 1))")
    same(shapes, lambda A: [A[i, : i + 1].sum() for i in range(len(A))])


def test_generators_of_several_variables_with_conditions():
    shapes = Shapes({"A": 2, "N": 1})
    shapes.add("O[i] = sum(A[j, k] for j in range(N_0) for k in range(j, N_0) if k - j < i), i < 4")
    same(
        shapes,
        lambda A, N: [
            sum(
                A[j, k]
                for j in range(len(N))
                for k in range(j, len(N))
                if k - j < i and j < A.shape[0] and k < A.shape[1]
            )
            for i in range(4)
        ],
        (0, 1, 3),
    )


def test_generators_from_negative_values_with_a_high_end_in_a_condition():
    shapes = Shapes({"x": 1})
    shapes.add("O[i] = sum(x[i + k] for k in range(-2, 3) if k < 1), i < 5")
    same(
        shapes,
        lambda x: [sum(x[i + k] for k in (-2, -1, 0) if 0 <= i + k < len(x)) for i in range(5)],
    )


def test_generator_variables_that_no_access_uses():
    shapes = Shapes({"x": 1})
    shapes.add("O[i] = x[i] * sum(1.0 * k for k in range(4))")
    same(shapes, lambda x: 6 * x)


def test_temporaries_count_from_the_first_value_of_an_outer_variable():
    shapes = Shapes({"x": 1})
    shapes.add("O[i + 2] = 1.0 + sum(x[i + k + 2] for k in range(2))", extents=["x_0"])
    program = shapes.program()
    assert "O_sum[i + 2]" in format_program(program)
    same(shapes, lambda x: [1 + x[i : i + 2].sum() for i in range(len(x))])
    shapes = Shapes({"x": 1, "N": 1})
    shapes.add("O[i] = 1.0 + sum(x[k] for k in range(i)), i >= N_0", extents=["x_0"])
    same(shapes, lambda x, N: [1 + x[:i].sum() if i >= len(N) else 0 for i in range(len(x))])


def test_an_outer_variable_in_a_strided_target():
    shapes = Shapes({"x": 2})
    shapes.add("O[2*i] = sum(x[i, k], k)", extents=["5"])

    def expected(x):
        out = np.zeros(5)
        for i in range(min(3, len(x))):
            out[2 * i] = x[i].sum()
        return out

    same(shapes, expected)


def test_an_unbounded_reduction_variable_is_an_error():
    with pytest.raises(ShapeError, match="nothing bounds the index `k`"):
        Shapes({"x": 1}).add("O[i] = x[i] * sum(1.0 * k, k)", extents=["x_0"])
    with pytest.raises(ShapeError, match="`k` cannot be inferred"):
        Shapes({"x": 1}).add("O[i] = x[i] * sum(1.0 * k, k)")


# -- guards --------------------------------------------------------------------------------------------------------


def test_a_reduction_behind_an_affine_guard():
    shapes = Shapes({"A": 2})
    shapes.add("O[i] = sum(A[i - 1, k], k) if i > 0 else 7.0", extents=["A_0"])
    same(shapes, lambda A: [A[i - 1].sum() if i else 7.0 for i in range(len(A))])
    assert "i > 0" in format_program(shapes.program()) or "0 < i" in format_program(shapes.program())


def test_a_reduction_that_may_fail_is_computed_only_where_it_is_needed():
    shapes = Shapes({"ids": 2, "table": 1, "valid": 1}, {"ids": "int64"})
    shapes.add("O[i] = sum(table[ids[i, k]], k) if valid[i] > 0.0 else 0.5")
    ids, table = np.array([[0, 1], [9, 9]]), np.array([3.0, 4.0])
    np.testing.assert_array_equal(compute(shapes, [ids, table, np.array([1.0, -1.0])]), [7, 0.5])
    with pytest.raises(DataIndexError):
        compute(shapes, [ids, table, np.array([1.0, 1.0])])


def test_conditions_of_the_statement_guard_what_may_fail():
    shapes = Shapes({"ids": 2, "table": 1, "valid": 1}, {"ids": "int64"})
    shapes.add("O[i] = sum(table[ids[i, k]], k), valid[i] > 0.0")
    ids, table = np.array([[0, 1], [9, 9]]), np.array([3.0, 4.0])
    np.testing.assert_array_equal(compute(shapes, [ids, table, np.array([1.0, -1.0])]), [7, 0])


def test_a_guard_that_contains_a_reduction():
    shapes = Shapes({"A": 2, "x": 1})
    shapes.add("O[i] = x[i - 1] if sum(A[i, k], k) > 0.0 else 9.0", extents=["A_0"])

    def expected(A, x):
        out = np.zeros(len(A))
        for i in range(len(A)):
            if A[i].sum() <= 0:
                out[i] = 9
            elif 0 <= i - 1 < len(x):
                out[i] = x[i - 1]
        return out

    same(shapes, expected)


def test_local_definitions_around_reductions():
    shapes = Shapes({"A": 2, "x": 1})
    shapes.add("O[i] = z * z + sum(A[i, k] * z, k)", local={"z": "x[i] + 1.0"})
    same(
        shapes,
        lambda A, x: (x + 1) ** 2 + A.sum(axis=1) * (x + 1) if len(A) == len(x) else None,
    )
    shapes = Shapes({"A": 2, "x": 1})
    shapes.add("O[i] = t * t + sum(x[k] * t, k)", local={"t": "sum(A[i, k], k)"})
    assert len(shapes.program().statements) == 3
    same(shapes, lambda A, x: A.sum(axis=1) ** 2 + x.sum() * A.sum(axis=1))


# -- means and positions -------------------------------------------------------------------------------------------


def test_the_mean_over_a_whole_axis_divides_by_its_extent():
    shapes = Shapes({"A": 3})
    shapes.add("O[i] = mean(A[i, j, k], j, k)")
    assert [statement.target.tensor for statement in shapes.program().statements] == ["O_mean", "O"]
    same(shapes, lambda A: A.reshape(len(A), A.shape[1] * A.shape[2]).sum(axis=1) / (A.shape[1] * A.shape[2]))


def test_the_mean_counts_the_points_that_are_left():
    shapes = Shapes({"x": 1})
    shapes.add("O[i] = mean(x[i + k] for k in range(-1, 2))", extents=["x_0"])
    assert len(shapes.program().statements) == 3
    same(shapes, lambda x: [x[max(i - 1, 0) : i + 2].mean() for i in range(len(x))])


def test_the_mean_with_conditions():
    shapes = Shapes({"A": 2})
    shapes.add("O[i] = mean((A[i, k] for k in range(A_1) if A[i, k] > 0.0)) + 1.0")

    def expected(A):
        return [row[row > 0].sum() / np.float64(np.sum(row > 0)) + 1 for row in A]

    same(shapes, expected)
    shapes = Shapes({"A": 2})
    shapes.add("O[i] = mean(A[i, k] for k in range(A_1) if k % 2 == 0)")
    same(shapes, lambda A: [row[::2].sum() / np.float64(len(row[::2])) for row in A])


def test_the_mean_over_a_window_divides_by_its_length():
    shapes = Shapes({"x": 1, "K": 1})
    shapes.add("O[i] = mean(x[i + k] for k in range(K_0))")
    assert len(shapes.program().statements) == 2
    same(
        shapes,
        lambda x, K: [x[i : i + len(K)].mean() for i in range(len(x) - len(K) + 1)] if len(x) + 1 >= len(K) else None,
        (1, 2, 5),
    )


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_positions(name):
    shapes = Shapes({"A": 2})
    shapes.add(f"O[i] = {name}(A[i, k], k)")
    same(shapes, lambda A: getattr(A, name)(axis=1), (1, 2, 5))


def test_the_first_of_equal_values_wins_and_nan_above_all():
    shapes = Shapes({"A": 2})
    shapes.add("O[i] = argmax(A[i, k], k) * 10 + argmin(A[i, k], k)")
    A = np.array([[1.0, 3, 3, 1], [2, np.nan, 5, np.nan], [-np.inf] * 4, [np.inf, 0, np.inf, 0]])
    np.testing.assert_array_equal(compute(shapes, [A]), A.argmax(axis=1) * 10 + A.argmin(axis=1))


def test_positions_in_integers_and_truth_values():
    shapes = Shapes({"A": 2, "B": 2}, {"A": "int8", "B": "bool"})
    shapes.add("O[i] = argmax(A[i, k], k) * 10 + argmax(B[i, k], k)")
    A, B = np.array([[1, 5, 5], [-3, -2, -2]], np.int8), np.array([[False, True, True], [False, False, False]])
    np.testing.assert_array_equal(compute(shapes, [A, B]), A.argmax(axis=1) * 10 + B.argmax(axis=1))


def test_guards_reach_reductions_inside_reductions():
    shapes = Shapes({"ids": 3, "table": 1, "valid": 1}, {"ids": "int64"})
    shapes.add("O[i] = sum(sum(table[ids[i, k, l]], l) * 2.0, k) if valid[i] > 0.0 else 0.5")
    ids, table = np.array([[[0, 1]], [[9, 9]]]), np.array([3.0, 4.0])
    np.testing.assert_array_equal(compute(shapes, [ids, table, np.array([1.0, -1.0])]), [14, 0.5])


def test_a_reduction_behind_different_guards_is_computed_where_one_of_them_holds():
    shapes = Shapes({"ids": 2, "table": 1, "valid": 1}, {"ids": "int64"})
    part = "sum(table[ids[i, k]], k)"
    shapes.add(f"O[i] = {part} if valid[i] > 0.0 else (2.0 * {part} if valid[i] < -1.0 else 0.5)")
    assert len(shapes.program().statements) == 2
    ids, table = np.array([[0, 1], [1, 1], [9, 9]]), np.array([3.0, 4.0])
    np.testing.assert_array_equal(compute(shapes, [ids, table, np.array([1.0, -2.0, -1.0])]), [7, 16, 0.5])


def test_what_may_fail_is_not_computed_for_no_point_at_all():
    shapes = Shapes({"x": 1, "ids": 1, "table": 1}, {"ids": "int64"})
    shapes.add("O[i] = x[i] + sum(table[ids[k]], k)")
    assert compute(shapes, [np.zeros(0), np.array([9]), np.zeros(1)]).shape == (0,)
    with pytest.raises(DataIndexError):
        compute(shapes, [np.zeros(1), np.array([9]), np.zeros(1)])


def test_the_mean_behind_a_guard_divides_by_the_extent():
    shapes = Shapes({"A": 2})
    shapes.add("O[i] = mean(A[i, k], k) if i > 0 else 7.0", extents=["A_0"])
    assert len(shapes.program().statements) == 2
    same(shapes, lambda A: [row.sum() / np.float64(len(row)) if i else 7.0 for i, row in enumerate(A)])
