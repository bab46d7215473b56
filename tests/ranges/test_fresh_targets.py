"""Rule 2: ranges and extents where the statement creates its target without a declared shape."""

from __future__ import annotations

import pytest

from tcdsl.errors import ShapeError
from tests.ranges.brute_force import agree, largest_interval
from tests.ranges.programs import Shapes


def test_matmul():
    shapes = Shapes({"A": 2, "B": 2})
    shapes.add("C[i, j] += A[i, k] * B[k, j]")
    (statement,) = shapes.program().statements
    assert statement.domain.variables == ("i", "j", "k")
    assert statement.domain.text.endswith("0 <= i < A_0 and 0 <= j < B_1 and 0 <= k < A_1 }")
    agree(
        shapes,
        lambda A_0, A_1, B_0, B_1: (A_0, B_1) if A_1 == B_0 else None,
        lambda i, j, k, A_0, A_1, B_0, B_1: 0 <= i < A_0 and 0 <= j < B_1 and 0 <= k < A_1,
        (0, 1, 3),
    )


def _window(extent, length, stride=1, shift=0):
    # All n such that n*stride + k + shift is in range for all k; an empty window is continued from others.
    if length == 0:
        return range(-(shift // stride), (extent - shift) // stride + 1)
    return largest_interval(lambda n: all(0 <= stride * n + k + shift < extent for k in range(length)))


def test_a_window_slides_where_it_is_in_range_for_all_its_places():
    shapes = Shapes({"I": 1, "K": 1})
    shapes.add("O[n] += I[n + k] * K[k]")
    agree(
        shapes,
        lambda I_0, K_0: (len(_window(I_0, K_0)),) if K_0 <= I_0 + 1 else None,
        lambda k, n, I_0, K_0: n in _window(I_0, K_0) and 0 <= k < K_0,
        (0, 1, 2, 3, 6),
    )


def test_a_window_longer_than_its_input_names_index_and_access():
    shapes = Shapes({"I": 1, "K": 1})
    shapes.add("O[n] += I[n + k] * K[k]")
    (assertion,) = shapes.assertions
    assert "`n`" in assertion.message
    assert "`n + k` on axis 0 of I" in assertion.message
    assert "I_0 = {I_0}, K_0 = {K_0}" in assertion.message


def test_batched_convolution_has_valid_size():
    shapes = Shapes({"I": 3, "K": 3})
    shapes.add("O[n, x, c] += I[n, x + k, d] * K[k, d, c]")
    agree(
        shapes,
        lambda I_0, I_1, I_2, K_0, K_1, K_2: (I_0, I_1 - K_0 + 1, K_2) if I_2 == K_1 and I_1 - K_0 + 1 >= 0 else None,
        lambda c, d, k, n, x, I_0, I_1, I_2, K_0, K_1, K_2: (
            0 <= c < K_2 and 0 <= d < I_2 and 0 <= k < K_0 and 0 <= n < I_0 and 0 <= x <= I_1 - K_0
        ),
        (1, 2),
    )


def test_strides_round_down():
    shapes = Shapes({"I": 1})
    shapes.add("O[x] += I[3*x + k], k < 2")
    agree(
        shapes,
        lambda I_0: (len(_window(I_0, 2, 3)),),
        lambda k, x, I_0: x in _window(I_0, 2, 3) and 0 <= k < 2,
        range(1, 12),
    )


def test_negative_coefficients():
    shapes = Shapes({"I": 1, "J": 1})
    shapes.add("O[i] += I[J_0 - 1 - i] * J[i]")
    agree(
        shapes,
        lambda I_0, J_0: (J_0 if I_0 else 0,),
        lambda i, I_0, J_0: 0 <= i < J_0 and 0 <= J_0 - 1 - i < I_0,
    )


def test_several_accesses_meet():
    shapes = Shapes({"A": 1, "B": 1})
    shapes.add("O[i] = A[i + 1] - B[i]")
    agree(
        shapes,
        lambda A_0, B_0: (max(0, min(A_0 - 1, B_0)),),
        lambda i, A_0, B_0: 0 <= i < min(A_0 - 1, B_0),
    )


def test_the_variables_of_a_round_are_substituted_at_its_end():
    # i and k are solved together, from A and B; C[i + k] has two unsolved variables then, so it narrows nothing.
    shapes = Shapes({"A": 1, "B": 1, "C": 1})
    shapes.add("O[i] += A[i] * B[k] * C[i + k]")
    agree(
        shapes,
        lambda A_0, B_0, C_0: (A_0,),
        lambda i, k, A_0, B_0, C_0: 0 <= i < A_0 and 0 <= k < B_0 and 0 <= i + k < C_0,
    )


def test_rounds_build_on_each_other():
    shapes = Shapes({"A": 1, "B": 1, "C": 1})
    shapes.add("O[i] += A[k] * B[k + j] * C[j + i]")
    agree(
        shapes,
        lambda A_0, B_0, C_0: (
            (C_0 - (B_0 - A_0 + 1) + 1,) if B_0 - A_0 + 1 >= 0 and C_0 - (B_0 - A_0 + 1) + 1 >= 0 else None
        ),
        lambda i, j, k, A_0, B_0, C_0: 0 <= k < A_0 and 0 <= j <= B_0 - A_0 and 0 <= i <= C_0 - (B_0 - A_0 + 1),
        (1, 2, 3, 5),
    )


def test_a_variable_bounded_on_one_side_waits():
    # min(i, 3) gives an upper end only if A is short; B gives it in the same round, as the ends of all accesses meet.
    shapes = Shapes({"A": 1, "B": 1})
    shapes.add("O[i] = A[min(i, 3)] * B[i]")
    agree(
        shapes,
        lambda A_0, B_0: (B_0 if A_0 >= 4 else min(A_0, B_0),),
        lambda i, A_0, B_0: 0 <= i < B_0 and 0 <= min(i, 3) < A_0,
        (0, 1, 3, 4, 6),
    )


def test_floor_and_remainder():
    shapes = Shapes({"A": 1})
    shapes.add("O[i] = A[i // 2]")
    agree(shapes, lambda A_0: (2 * A_0,), lambda i, A_0: 0 <= i // 2 < A_0)
    shapes = Shapes({"A": 1, "B": 1})
    shapes.add("O[i] = A[i // 2 + i % 2] * B[i]")
    agree(
        shapes,
        lambda A_0, B_0: (len(largest_interval(lambda i: 0 <= i < B_0 and 0 <= i // 2 + i % 2 < A_0)),),
        lambda i, A_0, B_0: 0 <= i < B_0 and 0 <= i // 2 + i % 2 < A_0,
    )


def test_symbolic_sizes_in_indices():
    shapes = Shapes({"I": 1, "K": 1})
    shapes.add("O[x] += I[x + k - K_0 // 2] * K[k]")
    agree(
        shapes,
        lambda I_0, K_0: None if I_0 + 1 < K_0 else (I_0 - K_0 + 1 + K_0 // 2 if I_0 - K_0 + 1 > 0 else 0,),
        lambda k, x, I_0, K_0: 0 <= k < K_0 and x in _window(I_0, K_0, shift=-(K_0 // 2)),
        (0, 1, 2, 3, 6),
    )


def test_explicit_ranges_count_as_solved_from_the_start():
    # x is solved before k is, so k has to keep the access to I in range for all x.
    shapes = Shapes({"I": 1, "K": 1})
    shapes.add("O[x] += I[x + k] * K[k], x < 3")
    agree(
        shapes,
        lambda I_0, K_0: (3,) if I_0 >= 2 else None,
        lambda k, x, I_0, K_0: 0 <= x < 3 and 0 <= k < K_0 and k + 2 < I_0,
        (1, 2, 3, 4, 6),
    )


# -- extents -------------------------------------------------------------------------------------------------------


def test_extents_come_from_target_variables_alone():
    shapes = Shapes({"A": 2})
    shapes.add("O[i] += A[i, k]")
    agree(shapes, lambda A_0, A_1: (A_0,), lambda i, k, A_0, A_1: 0 <= i < A_0 and 0 <= k < A_1)


@pytest.mark.parametrize(
    ("index", "extent"),
    [
        ("i + 1", lambda n: n + 1 if n else 0),
        ("2*i", lambda n: max(0, 2 * n - 1)),
        ("A_0 - 1 - i", lambda n: n),
        ("2*A_0 - i", lambda n: 2 * n + 1 if n else 0),
        ("i // 2 * 2", lambda n: (n - 1) // 2 * 2 + 1 if n else 0),
        ("max(i - 2, 0)", lambda n: max(n - 3, 0) + 1 if n else 0),
        ("3 - min(i, 3)", lambda n: 4 if n else 0),
    ],
)
def test_an_extent_is_one_more_than_the_largest_index(index, extent):
    shapes = Shapes({"A": 1})
    shapes.add(f"O[{index}] += A[i]")
    agree(shapes, lambda A_0: (extent(A_0),), lambda i, A_0: 0 <= i < A_0, range(8))


def test_full_convolution_is_empty_if_one_of_its_factors_is():
    shapes = Shapes({"A": 1, "B": 1})
    shapes.add("O[i + j] += A[i] * B[j]")
    agree(
        shapes,
        lambda A_0, B_0: (A_0 + B_0 - 1 if A_0 and B_0 else 0,),
        lambda i, j, A_0, B_0: 0 <= i < A_0 and 0 <= j < B_0,
    )


def test_scalar_targets_and_constant_indices():
    shapes = Shapes({"A": 1})
    shapes.add("s[()] += A[i]")
    agree(shapes, lambda A_0: (), lambda i, A_0: 0 <= i < A_0)
    shapes = Shapes({"I": 1, "K": 1})
    shapes.add("s[()] += I[n + k] * K[k]")
    agree(
        shapes,
        lambda I_0, K_0: () if K_0 <= I_0 + 1 else None,
        lambda k, n, I_0, K_0: n in _window(I_0, K_0) and 0 <= k < K_0,
        (1, 2, 3, 6),
    )
    shapes = Shapes({"A": 1})
    shapes.add("O[2] += A[i]")
    agree(shapes, lambda A_0: (3,), lambda i, A_0: 0 <= i < A_0)


def test_an_input_without_cells_gives_no_cells():
    shapes = Shapes({"A": 1})
    shapes.add("O[i] = A[i + 2] - A[i]")
    agree(shapes, lambda A_0: (max(0, A_0 - 2),), lambda i, A_0: 0 <= i < A_0 - 2, range(5))


def test_a_negative_target_index_says_how_to_shift():
    with pytest.raises(ShapeError, match=r"`i - 1`.*below 0") as caught:
        Shapes({"A": 1}).add("O[i - 1] += A[i]")
    assert "shift the index: `i`" in str(caught.value)


def test_a_target_index_that_may_be_negative_is_checked_at_the_call():
    shapes = Shapes({"A": 1, "B": 1})
    shapes.add("O[i - B_0] += A[i]")
    agree(
        shapes,
        lambda A_0, B_0: (A_0,) if B_0 == 0 else ((0,) if A_0 == 0 else None),
        lambda i, A_0, B_0: 0 <= i < A_0,
    )


def test_an_index_that_starts_above_zero_leaves_cells_unwritten():
    shapes = Shapes({"A": 1})
    shapes.add("O[i] = A[i - 2]")
    agree(shapes, lambda A_0: (A_0 + 2 if A_0 else 0,), lambda i, A_0: 2 <= i < A_0 + 2, range(5))


# -- what cannot be inferred ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["O[i] += A[()] * i", "O[i + j] += A[()]", "O[i] += A[()] * j, i < 3", "O[i] = B[min(i, 3)]", "O[i] += B[i + j]"],
)
def test_no_progress_asks_for_a_range(text):
    with pytest.raises(ShapeError, match="cannot be inferred") as caught:
        Shapes({"A": 0, "B": 1}).add(text)
    assert "write a range" in str(caught.value)


def test_no_progress_shows_what_is_known():
    with pytest.raises(ShapeError) as caught:
        Shapes({"A": 1, "B": 1}).add("O[i] += A[k] * B[i + j + k]")
    message = str(caught.value)
    assert "`i`, `j`" in message
    assert "known: 0 <= k < A_0" in message
    assert "`i + j + k` on axis 0 of B leaves i and j open" in message


def test_data_on_a_fresh_target_needs_a_declared_shape():
    with pytest.raises(ShapeError, match="depends on data") as caught:
        Shapes({"A": 1, "ids": 1}, {"ids": "int64"}).add("O[ids[i]] += A[i]")
    assert "declare the extents" in str(caught.value)


def test_a_variable_in_conditions_only():
    # It ranges as others do.
    with pytest.raises(ShapeError, match="the range of the index `k` cannot be inferred"):
        Shapes({"A": 1}).add("O[i] += A[i], k < i")
    shapes = Shapes({"A": 1, "B": 1})
    shapes.add("O[i] += A[i], B[k] > 0.0, 1 <= l < 3")
    (statement,) = shapes.program().statements
    assert statement.domain.text.endswith("0 <= i < A_0 and 0 <= k < B_0 and 0 < l <= 2 }")


def test_faults_are_reported_together():
    with pytest.raises(ShapeError) as caught:
        Shapes({"A": 1, "B": 1}).add("O[i - 1, j - 1] = A[i] * B[j]")
    assert len(caught.value.diagnostics) == 2
    assert all(diagnostic.span is not None for diagnostic in caught.value.diagnostics)


# -- explicit ranges -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "values"),
    [
        ("i < 3", range(3)),
        ("i <= 3", range(4)),
        ("3 > i", range(3)),
        ("3 >= i", range(4)),
        ("i + 1 < 3", range(2)),
        ("1 <= i < 4", range(1, 4)),
        ("-2 <= i < 2", range(-2, 2)),
        ("i == 2", range(2, 3)),
        ("2 == i", range(2, 3)),
        ("i < 0", range(0)),
        ("i >= -2 and i < 2", range(-2, 2)),
    ],
)
def test_explicit_ranges_are_not_narrowed(condition, values):
    # B is an access to i that would say 0 <= i < B_0; points out of its range are skipped.
    shapes = Shapes({"B": 1})
    shapes.add(f"O[i + 2] += B[i], {condition}")
    agree(
        shapes,
        lambda B_0: (max(values) + 3 if values else 0,),
        lambda i, B_0: i in values and 0 <= i < B_0,
    )


def test_a_symbolic_range_with_negative_length_is_empty():
    shapes = Shapes({"B": 1, "N": 1})
    shapes.add("O[i] = B[i], i < N_0 - 2")
    agree(shapes, lambda B_0, N_0: (max(0, N_0 - 2),), lambda i, B_0, N_0: 0 <= i < min(B_0, N_0 - 2))


def test_several_ranges_of_one_variable_intersect():
    shapes = Shapes({"B": 1, "N": 1})
    shapes.add("O[i] = B[i], i < N_0, i < 4, i >= 1")
    agree(
        shapes,
        lambda B_0, N_0: (min(N_0, 4) if min(N_0, 4) > 1 else 0,),
        lambda i, B_0, N_0: 1 <= i < min(N_0, 4, B_0),
        (0, 1, 2, 3, 6),
    )


def test_one_stated_end_leaves_the_other_to_accesses():
    shapes = Shapes({"B": 1})
    shapes.add("O[i] = B[i], i >= 2")
    agree(shapes, lambda B_0: (B_0 if B_0 > 2 else 0,), lambda i, B_0: 2 <= i < B_0, range(6))


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("2*i < 5", lambda i: 2 * i < 5),
        ("i != 1", lambda i: i != 1),
        ("i % 2 == 0", lambda i: i % 2 == 0),
        ("not i < 2", lambda i: i >= 2),
        ("i < 1 or i > 2", lambda i: i < 1 or i > 2),
    ],
)
def test_other_conditions_only_filter(condition, holds):
    shapes = Shapes({"B": 1})
    shapes.add(f"O[i] = B[i], {condition}")
    agree(shapes, lambda B_0: (B_0,), lambda i, B_0: 0 <= i < B_0 and holds(i), range(6))
    with pytest.raises(ShapeError, match="cannot be inferred"):
        Shapes({"B": 0}).add(f"O[i] += B[()] * i, {condition}")


def test_conditions_between_variables_filter_and_imply_no_end():
    shapes = Shapes({"I": 1, "N": 1})
    shapes.add("O[i] += I[k], k <= i, i < N_0")
    agree(shapes, lambda I_0, N_0: (N_0,), lambda i, k, I_0, N_0: 0 <= i < N_0 and 0 <= k < I_0 and k <= i)
    with pytest.raises(ShapeError, match="`i` cannot be inferred"):
        Shapes({"I": 1}).add("O[i] += I[k], k <= i")


def test_conjunctions_split():
    shapes = Shapes({"I": 1})
    shapes.add("O[i] += I[k], k <= i and i < 4")
    agree(shapes, lambda I_0: (4,), lambda i, k, I_0: 0 <= i < 4 and 0 <= k < I_0 and k <= i)


def test_brackets_are_no_explicit_ranges():
    shapes = Shapes({"I": 1})
    shapes.add("O[i] += I[i]", filters=["i < 3"])
    agree(shapes, lambda I_0: (I_0,), lambda i, I_0: 0 <= i < min(I_0, 3))


def test_conditions_on_data_become_tests():
    shapes = Shapes({"I": 1, "M": 1})
    shapes.add("O[i] += I[i], M[i] > 0.0 and i % 2 == 0")
    (statement,) = shapes.program().statements
    assert statement.condition is not None
    agree(
        shapes,
        lambda I_0, M_0: (I_0,) if I_0 == M_0 else None,
        lambda i, I_0, M_0: 0 <= i < I_0 and i % 2 == 0,
    )


# -- rule 1 --------------------------------------------------------------------------------------------------------


def test_equal_extents_are_required_with_both_shown():
    shapes = Shapes({"A": 1, "B": 1})
    shapes.add("O[i] = A[i] + B[i]")
    (assertion,) = shapes.assertions
    for text in ("`i`", "axis 0 of A", "{A_0}", "axis 0 of B", "{B_0}"):
        assert text in assertion.message
    agree(shapes, lambda A_0, B_0: (A_0,) if A_0 == B_0 else None, lambda i, A_0, B_0: 0 <= i < A_0)


def test_equal_extents_on_the_axes_of_one_tensor():
    shapes = Shapes({"A": 2})
    shapes.add("O[i] = A[i, i]")
    agree(shapes, lambda A_0, A_1: (A_0,) if A_0 == A_1 else None, lambda i, A_0, A_1: 0 <= i < A_0)


def test_extents_known_to_be_equal_need_no_assertion():
    shapes = Shapes({"A": 1, "B": 1})
    shapes.add("C[i] = A[i] + B[i]")
    shapes.add("D[i] = A[i] + C[i]")
    shapes.add("E[i] = B[i] + D[i]")
    assert len(shapes.assertions) == 1


def test_extents_known_to_differ_are_an_error_at_once():
    shapes = Shapes({"A": 1})
    shapes.add("C[i] = 1.0 * i, i < 3")
    shapes.add("D[i] = 1.0 * i, i < 4")
    with pytest.raises(ShapeError, match="extent 3, and over axis 0 of D, which has the extent 4"):
        shapes.add("E[i] = C[i] + D[i]")
    shapes.add("F[i] = 1.0 * i, i < A_0 + 1")
    with pytest.raises(ShapeError, match=r"axis 0 of A, which has the extent A_0, .* the extent A_0 \+ 1"):
        shapes.add("E[i] = A[i] + F[i]")


def test_indices_with_an_offset_need_no_equal_extents():
    shapes = Shapes({"A": 1, "B": 1})
    shapes.add("O[i] = A[i] + B[i + 1]")
    assert not shapes.assertions


@pytest.mark.parametrize("boundary", ["clamp(i)", "wrap(i)", "reflect(i)", "symmetric(i)"])
def test_reads_with_boundaries_take_no_part(boundary):
    shapes = Shapes({"A": 1, "B": 1})
    shapes.add(f"O[i] = A[i] + B[{boundary}]")
    assert not shapes.assertions
    agree(shapes, lambda A_0, B_0: (A_0,), lambda i, A_0, B_0: 0 <= i < A_0)
    with pytest.raises(ShapeError, match="cannot be inferred"):
        Shapes({"B": 1}).add(f"O[i] = B[{boundary}]")


def test_fill_values_take_no_part_but_what_they_read_does():
    shapes = Shapes({"A": 1, "B": 1, "F": 1})
    shapes.add("O[i] = A[i] + get(B[i - 1], F[i])")
    agree(
        shapes,
        lambda A_0, B_0, F_0: (A_0,) if A_0 == F_0 else None,
        lambda i, A_0, B_0, F_0: 0 <= i < A_0,
    )


def test_affine_reads_inside_data_indices_take_part():
    shapes = Shapes({"T": 2, "ids": 1}, {"ids": "int64"})
    shapes.add("O[i, d] = T[ids[i], d]")
    agree(
        shapes,
        lambda T_0, T_1, ids_0: (ids_0, T_1),
        lambda d, i, T_0, T_1, ids_0: 0 <= i < ids_0 and 0 <= d < T_1,
    )


@pytest.mark.parametrize("name", ["mod", "exists", "rat", "row"])
def test_index_variables_may_be_called_anything(name):
    shapes = Shapes({"A": 2})
    shapes.add(f"O[{name}] += A[{name}, a] * sum(A[a, {name}], a), a < 2")
    agree(
        shapes,
        lambda A_0, A_1: (A_0,) if A_0 == A_1 else None,
        lambda a, v, A_0, A_1: 0 <= v < A_0 and 0 <= a < min(A_1, 2),
        (0, 1, 3),
    )


def test_reads_behind_brackets_bound_one_variable_at_a_time():
    # Only its bracketed read bounds i. That is no reason for j, which w bounds, to keep v in range everywhere.
    shapes = Shapes({"x": 1, "w": 1, "v": 1})
    shapes.add("y[i, j] = (x[i] if i < 3 else 0.0) + w[i + j] + (v[i + j] if i + j < 2 else 0.0)")
    agree(
        shapes,
        lambda x_0, w_0, v_0: (x_0, max(w_0 - x_0 + 1, 0)),
        lambda i, j, v_0, w_0, x_0: 0 <= i < x_0 and 0 <= j < w_0 - x_0 + 1,
        (2, 3, 5),
    )
