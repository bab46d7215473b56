"""The generalized einsum notation, construct by construct of its description, and its examples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tests.rows.staged import rowed, run

rng = np.random.default_rng(0)
#: Two batch axes, two output axes and an input axis, in this order.
X = rng.uniform(0.5, 1.5, (2, 3, 4, 5, 6))


def einsum(spec: str, *operands: Any, **options: Any) -> Any:
    """``spec`` on operands, arrays among which have output axes only; the result, and its numbers of axes by row."""
    (made,) = run(lambda *given: tc.einsum(spec, *given, **options), *operands)
    return made.array, (made.rows.batch, made.rows.input, made.rows.output)


def x() -> Any:
    return rowed(X, batch=2, input=1)


class TestModes:
    def test_a_comma_anywhere_makes_identifiers_of_several_characters(self) -> None:
        found, _ = einsum("rows, columns => columns, rows", X[0, 0, :, :, 0])
        np.testing.assert_array_equal(found, X[0, 0, :, :, 0].T)

    def test_otherwise_each_character_is_an_axis(self) -> None:
        found, _ = einsum("rc => cr", X[0, 0, :, :, 0])
        np.testing.assert_array_equal(found, X[0, 0, :, :, 0].T)


class TestVariants:
    def test_unary(self) -> None:
        np.testing.assert_allclose(einsum("ij => j", X[0, 0, 0])[0], X[0, 0, 0].sum(0))

    def test_binary(self) -> None:
        found, _ = einsum("ij; j => i", X[0, 0, 0], X[0, 0, 0, 0])
        np.testing.assert_allclose(found, X[0, 0, 0] @ X[0, 0, 0, 0])

    def test_ternary(self) -> None:
        found, _ = einsum("ij; j; i => ", X[0, 0, 0], X[0, 0, 0, 0], X[0, 0, 0, :, 0])
        np.testing.assert_allclose(found, X[0, 0, 0, :, 0] @ X[0, 0, 0] @ X[0, 0, 0, 0])

    def test_of_an_assignment(self) -> None:
        @op
        def f(a, b):
            c["ij; j => i"] += a + b
            c["=> 0"] += 1.0
            return c

        expected = (X[0, 0, 0] + X[0, 0, 0, 0]).sum(1)
        expected[0] += 1
        np.testing.assert_allclose(f(X[0, 0, 0], X[0, 0, 0, 0]), expected)


class TestShapes:
    def test_just_the_output_row(self) -> None:
        found, rows = einsum("op => po", x())
        np.testing.assert_allclose(found, X.sum((0, 1, 4)).T)
        assert rows == (0, 0, 2)

    def test_the_input_row_to_the_left_of_the_arrow(self) -> None:
        found, rows = einsum("i -> op => op -> i", x())
        np.testing.assert_allclose(found, X.sum((0, 1)).transpose(2, 0, 1))
        assert rows == (0, 2, 1)

    def test_the_batch_row_to_the_left_of_the_bar(self) -> None:
        found, rows = einsum("ab | op => ba | op", x())
        np.testing.assert_allclose(found, X.sum(4).transpose(1, 0, 2, 3))
        assert rows == (2, 0, 2)


class TestRows:
    def test_a_sequence_of_axes_is_the_rightmost_ones_and_the_others_broadcast_untracked(self) -> None:
        found, _ = einsum("a | p => ap", x())
        np.testing.assert_allclose(found, X.sum((0, 2, 4)))

    def test_a_row_variable_followed_by_the_rightmost_axes(self) -> None:
        found, _ = einsum("... a | ... p => ... a | p ...", x())
        np.testing.assert_allclose(found, X.sum(4).transpose(0, 1, 3, 2))

    def test_leftmost_axes_a_row_variable_and_rightmost_axes(self) -> None:
        found, _ = einsum("a ... b => b ... a", X[0])
        np.testing.assert_array_equal(found, X[0].transpose(3, 1, 2, 0))


class TestRowVariables:
    def test_with_an_identifier(self) -> None:
        found, rows = einsum("..left.. | ..right.. => ..right.. | ..left..", x())
        np.testing.assert_allclose(found, X.sum(4).transpose(2, 3, 0, 1))
        assert rows == (2, 0, 2)

    def test_an_ellipsis_is_named_by_its_row(self) -> None:
        found, _ = einsum("... | ... -> ... => ..batch.. | ..input.. -> ..output..", x())
        np.testing.assert_array_equal(found, X)

    def test_broadcast(self) -> None:
        found, _ = einsum("... | ... -> ...; ... => ... | ... -> ...", x(), X[0, 0, :, :1, 0])
        np.testing.assert_allclose(found, X * X[0, 0, :, :1, 0][..., None])


class TestAxes:
    def test_an_identifier_is_an_axis_variable(self) -> None:
        np.testing.assert_allclose(einsum("ii => i", X[0, 0, :, :4, 0])[0], X[0, 0, :, :4, 0].diagonal())
        with pytest.raises(tc.ShapeError, match="the index `i` runs over"):
            einsum("ii => i", X[0, 0, 0])

    def test_an_underscore_aligns_other_axes_and_says_nothing_of_its_own(self) -> None:
        found, _ = einsum("o_ => o", X[0, 0, 0])
        np.testing.assert_allclose(found, X[0, 0, 0].sum(1))
        found, _ = einsum("o => o_", X[0, 0, 0, 0])
        np.testing.assert_array_equal(found, X[0, 0, 0, 0][:, None])
        found, _ = einsum("_o; _ => o", X[0, 0, 0], X[0, 0, :3, 0, 0])
        np.testing.assert_allclose(found, X[0, 0, 0].sum(0) * X[0, 0, :3, 0, 0].sum())

    def test_a_number_is_a_position_within_the_axis(self) -> None:
        found, _ = einsum("1a | 3 -> 2p => a -> p", x())
        np.testing.assert_allclose(found, X[1, :, 2, :, 3].T)
        np.testing.assert_allclose(einsum("2i => i", X[0, 0, :, :, 0])[0], X[0, 0, 2, :, 0])

    def test_an_axis_with_a_position_is_longer_than_that(self) -> None:
        with pytest.raises(tc.ShapeError, match="the spec fixes the position 4 of an axis whose extent is"):
            einsum("4i => i", X[0, 0, :, :, 0])


class TestExamples:
    """The examples of the description, in its order."""

    @pytest.mark.parametrize("spec", ["...|...->... => 0", "...|... => 0", "... => 0"])
    def test_reduce_all_axes_to_a_single_number(self, spec: str) -> None:
        found, rows = einsum(spec, x())
        np.testing.assert_allclose(found, [X.sum()])
        assert rows == (0, 0, 1)

    def test_fully_pointwise_unary(self) -> None:
        found, rows = einsum("...|...->... => ...|...->...", x(), combine="exp")
        np.testing.assert_allclose(found, np.exp(X))
        assert rows == (2, 1, 2)

    def test_fully_pointwise_binary(self) -> None:
        y = rng.uniform(size=(3, 5, 6))
        found, rows = einsum("...|...->... ; ...|...->... => ...|...->...", x(), rowed(y, batch=1, input=1))
        np.testing.assert_allclose(found, X * y[:, None])
        assert rows == (2, 1, 2)

    @pytest.mark.parametrize("spec", ["...|...->... => ...->...", "...->... => ...->..."])
    def test_reduce_the_batch_axes(self, spec: str) -> None:
        found, rows = einsum(spec, x())
        np.testing.assert_allclose(found, X.sum((0, 1)))
        assert rows == (0, 1, 2)

    def test_slice_the_leftmost_batch_axis(self) -> None:
        found, rows = einsum("1...|...->... => ...|...->...", x())
        np.testing.assert_array_equal(found, X[1])
        assert rows == (1, 1, 2)

    def test_expand_the_tensor_at_a_position_of_the_result(self) -> None:
        found, rows = einsum("...|... => ...|...2", x())
        assert rows == (2, 0, 3)
        np.testing.assert_allclose(found[..., 2], X.sum(4))
        np.testing.assert_array_equal(found[..., :2], 0)

    def test_expanded_cells_hold_the_neutral_element_of_the_accumulator(self) -> None:
        @cd
        def expand(lhs, rhs):
            assign(lhs, "=:*", rhs, logic="...|... => ...|...2")

        lhs = rowed(np.full((2, 3, 4), 7.0), batch=1)
        run(expand, lhs, rowed(X[:, :, 0, 0, 0], batch=1), memory=True)
        np.testing.assert_array_equal(lhs.array[..., 2], X[:, :, 0, 0, 0])
        np.testing.assert_array_equal(lhs.array[..., [0, 1, 3]], 1)

    def test_reverse_the_three_rightmost_output_axes_and_reduce_others(self) -> None:
        found, rows = einsum("ijk => kji", X)
        np.testing.assert_allclose(found, X.sum((0, 1)).transpose(2, 1, 0))
        assert rows == (0, 0, 3)
        found, _ = einsum("ijk => kji", rowed(X, batch=1, input=1))
        np.testing.assert_allclose(found, X.sum((0, 4)).transpose(2, 1, 0))

    def test_and_reduce_the_second_leftmost(self) -> None:
        np.testing.assert_allclose(einsum("ijk => ki", X)[0], X.sum((0, 1, 3)).T)

    def test_pair_the_batch_axes_with_the_leftmost_output_axes_of_the_result(self) -> None:
        found, rows = einsum("..v..|ijk => ..v..kji", rowed(X, batch=2))
        np.testing.assert_allclose(found, X.transpose(0, 1, 4, 3, 2))
        assert rows == (0, 0, 5)

    def test_slice_a_batch_axis_and_keep_the_others_as_output_axes(self) -> None:
        found, rows = einsum("1..v..|... => ..v..", x())
        np.testing.assert_allclose(found, X[1].sum((1, 2, 3)))
        assert rows == (0, 0, 1)
