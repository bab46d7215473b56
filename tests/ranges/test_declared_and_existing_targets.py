"""Rule 3: every integer point whose accesses are all in range and whose conditions hold."""

from __future__ import annotations

import numpy as np
import pytest

from tcdsl.errors import ShapeError
from tests.ranges.brute_force import agree, arrays_of, compute, sizes_of
from tests.ranges.programs import Shapes


def test_a_convolution_on_a_larger_target_is_padded():
    shapes = Shapes({"I": 1, "K": 1})
    shapes.add("O[x] += I[x + k - K_0 // 2] * K[k]", extents=["I_0 + 1"])
    agree(
        shapes,
        lambda I_0, K_0: (I_0 + 1,),
        lambda k, x, I_0, K_0: 0 <= x <= I_0 and 0 <= k < K_0 and 0 <= x + k - K_0 // 2 < I_0,
        (0, 1, 2, 3, 5),
    )


def test_on_a_smaller_target_it_is_truncated():
    shapes = Shapes({"I": 1, "K": 1})
    shapes.add("O[x] += I[x + k] * K[k]", extents=["2"])
    agree(
        shapes,
        lambda I_0, K_0: (2,),
        lambda k, x, I_0, K_0: 0 <= x < 2 and 0 <= k < K_0 and 0 <= x + k < I_0,
        (0, 1, 2, 3, 5),
    )


def test_strided_targets_write_every_second_cell():
    shapes = Shapes({"I": 2})
    shapes.add("O[2*i] += I[2*i, j]", extents=["5"])
    agree(
        shapes,
        lambda I_0, I_1: (5,),
        lambda i, j, I_0, I_1: 0 <= 2 * i < min(5, I_0) and 0 <= j < I_1,
        (0, 1, 2, 3, 7),
    )


def test_declared_extents_take_no_part_in_rule_1():
    shapes = Shapes({"A": 1})
    shapes.add("O[i] = A[i]", extents=["A_0 + 2"])
    assert not shapes.assertions
    agree(shapes, lambda A_0: (A_0 + 2,), lambda i, A_0: 0 <= i < A_0)


def test_existing_targets_take_part_in_rule_1():
    shapes = Shapes({"Y": 1, "A": 1})
    shapes.add("Y[i] += A[i]", keep="Y")
    agree(
        shapes,
        lambda Y_0, A_0: (Y_0,) if Y_0 == A_0 else None,
        lambda i, Y_0, A_0: 0 <= i < Y_0,
    )
    assert "axis 0 of Y_2" in shapes.assertions[0].message or "axis 0 of Y" in shapes.assertions[0].message


def test_existing_targets_keep_what_no_point_writes():
    shapes = Shapes({"Y": 1, "A": 1})
    shapes.add("Y[2*i + 1] = A[i]", keep="Y")
    for sizes in sizes_of(shapes):
        Y, A = arrays_of(shapes, sizes)
        expected = Y.copy()
        for i in range(-5, 9):
            if 0 <= 2 * i + 1 < len(Y) and 0 <= i < len(A):
                expected[2 * i + 1] = A[i]
        np.testing.assert_array_equal(compute(shapes, [Y, A]), expected)


def test_a_running_sum():
    shapes = Shapes({"I": 1})
    shapes.add("O[i] += I[k], k <= i", extents=["I_0"])
    for sizes in sizes_of(shapes):
        (values,) = arrays_of(shapes, sizes)
        np.testing.assert_allclose(compute(shapes, [values]), np.cumsum(values))


def test_explicit_ranges_hold_here_too():
    shapes = Shapes({"A": 1})
    shapes.add("O[i + 2] += A[i + 1], i < 3", extents=["A_0"])
    agree(
        shapes,
        lambda A_0: (A_0,),
        lambda i, A_0: 0 <= i < 3 and 0 <= i + 2 < A_0 and 0 <= i + 1 < A_0,
        range(8),
    )


def test_without_an_explicit_range_negative_values_count():
    shapes = Shapes({"A": 1})
    shapes.add("O[i + 2] += A[i + 3]", extents=["A_0"])
    agree(shapes, lambda A_0: (A_0,), lambda i, A_0: 0 <= i + 2 < A_0 and 0 <= i + 3 < A_0, range(6))


@pytest.mark.parametrize(("text", "names"), [("O[i] += A[()] * j", "`j`"), ("O[min(i, 3)] += A[()]", "`i`")])
def test_unbounded_variables_are_an_error(text, names):
    with pytest.raises(ShapeError, match=f"nothing bounds the index {names}") as caught:
        Shapes({"A": 0}).add(text, extents=["4"])
    assert "write a range" in str(caught.value)


def test_variables_that_only_bound_each_other_are_unbounded():
    with pytest.raises(ShapeError, match="2 faults"):
        Shapes({"A": 1}).add("s[()] += A[j*5 + k]", extents=[])


def test_negative_declared_extents_fail_at_the_call():
    shapes = Shapes({"A": 1})
    shapes.add("O[i] = A[i]", extents=["A_0 - 2"])
    agree(shapes, lambda A_0: (A_0 - 2,) if A_0 >= 2 else None, lambda i, A_0: 0 <= i < A_0 - 2, range(5))
    with pytest.raises(ShapeError, match="negative extent -1"):
        Shapes({"A": 1}).add("O[i] = A[i]", extents=["2 - 3"])


def test_scatters_by_data_keep_their_index():
    shapes = Shapes({"H": 1, "bins": 1, "w": 1}, {"bins": "int64"})
    shapes.add("H[bins[i]] += w[i]", keep="H")
    agree(
        shapes,
        lambda H_0, bins_0, w_0: (H_0,) if bins_0 == w_0 else None,
        lambda i, H_0, bins_0, w_0: 0 <= i < w_0,
    )


def test_data_indices_that_skip_become_tests():
    shapes = Shapes({"T": 1, "ids": 1}, {"ids": "int64"})
    sketch = shapes.sketch("O[i] = T[ids[i]]", oob="skip")
    from dataclasses import replace

    from tcdsl.ir.expressions import Boundary

    read = replace(sketch.value, boundaries=(Boundary.SKIP,))
    shapes.resolve(replace(sketch, value=read))
    result = compute(shapes, [np.array([5.0, 6.0]), np.array([1, 7, -1, 0])])
    np.testing.assert_array_equal(result, [6, 0, 0, 5])
