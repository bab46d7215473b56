"""einsum on arrays: against loops written out, for all accumulators, ranks, and extents of 0 and 1."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import tcdsl as tc
from tcdsl import op
from tcdsl.ir.accumulators import ACCUMULATORS, neutral_element
from tcdsl.ir.primitives import PRIMITIVES
from tcdsl.ir.text.parser import parse_program
from tcdsl.ir.text.printer import format_program

rng = np.random.default_rng(0)


def reference(
    names: Sequence[str], result: str, arrays: Sequence[np.ndarray], combine: Callable[..., Any], accumulate: str
) -> np.ndarray:
    """The einsum of plain letters, point by point in row-major order: the result's letters first."""
    sizes = {
        letter: size for text, a in zip(names, arrays, strict=True) for letter, size in zip(text, a.shape, strict=True)
    }
    order = [*dict.fromkeys(result), *(letter for letter in dict.fromkeys("".join(names)) if letter not in result)]
    neutral = neutral_element(accumulate, "float64")
    found = np.full([sizes[letter] for letter in result], neutral)
    with np.errstate(all="ignore"):
        for point in itertools.product(*(range(sizes[letter]) for letter in order)):
            at = dict(zip(order, point, strict=True))
            cells = [a[tuple(at[letter] for letter in text)] for text, a in zip(names, arrays, strict=True)]
            place = tuple(at[letter] for letter in result)
            found[place] = PRIMITIVES[ACCUMULATORS[accumulate].primitive].evaluate(found[place], combine(*cells))
    return found


def product(*cells: Any) -> Any:
    result = cells[0]
    for cell in cells[1:]:
        result = result * cell
    return result


@st.composite
def contractions(draw: st.DrawFn) -> tuple[list[str], str, list[np.ndarray]]:
    sizes = {letter: draw(st.integers(0, 3)) for letter in "ijk"}
    names = draw(st.lists(st.text("ijk", max_size=3), min_size=1, max_size=3))
    used = sorted(set("".join(names)))
    result = "".join(draw(st.lists(st.sampled_from(used), max_size=3))) if used else ""
    values = np.random.default_rng(draw(st.integers(0, 99)))
    return names, result, [values.uniform(0.5, 2, [sizes[letter] for letter in text]) for text in names]


@given(contractions())
@settings(max_examples=30)
def test_any_product_summed_over_any_axes(case: tuple[list[str], str, list[np.ndarray]]) -> None:
    names, result, arrays = case
    found = tc.einsum(";".join(names) + "=>" + result, *arrays)
    np.testing.assert_allclose(found, reference(names, result, arrays, product, "add"))
    if len(set(result)) == len(result):
        np.testing.assert_allclose(found, np.einsum(",".join(names) + "->" + result, *arrays))


@pytest.mark.parametrize("accumulate", [name for name in ACCUMULATORS if name not in ("assign", "or", "and")])
def test_every_accumulator(accumulate: str) -> None:
    a, b = rng.uniform(0.5, 1.5, (2, 3)), rng.uniform(0.5, 1.5, (3, 2))
    found = tc.einsum("ij;jk=>ik", a, b, accumulate=accumulate)
    np.testing.assert_allclose(found, reference(["ij", "jk"], "ik", [a, b], product, accumulate))


@pytest.mark.parametrize(("accumulate", "numpy"), [("or", np.any), ("and", np.all)])
def test_logical_accumulators(accumulate: str, numpy: Callable[..., Any]) -> None:
    a = rng.integers(0, 2, (5, 2))
    assert tc.einsum("ij=>i", a, accumulate=accumulate).tolist() == numpy(a, axis=1).tolist()


def test_accumulators_by_operator_and_by_reduction() -> None:
    a = rng.uniform(size=(3, 4))
    np.testing.assert_allclose(tc.einsum("ij=>i", a, accumulate="@^"), a.max(1))
    np.testing.assert_allclose(tc.einsum("ij=>i", a, accumulate="prod"), a.prod(1))


ELEMENTWISE = [name for name, row in PRIMITIVES.items() if row.kind in ("real", "number", "any", "compare", "select")]


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_every_primitive(name: str) -> None:
    row = PRIMITIVES[name]
    low, high = row.interval
    shapes = [(2, 3), (3, 2), (2,)][: row.arity]
    names = ["ij", "jk", "i"][: row.arity]
    arrays = [rng.uniform(low, high, shape) for shape in shapes]
    if row.kind == "select":
        arrays[0] = arrays[0] > 0
    result = "ij" if row.arity == 1 else "ijk"
    expected = reference(names, result, arrays, row.evaluate, "add")
    np.testing.assert_allclose(tc.einsum(";".join(names) + "=>" + result, *arrays, combine=name), expected)


def test_primitives_by_function() -> None:
    a, b = rng.uniform(size=(3, 4)), rng.uniform(size=(4, 2))
    expected = np.minimum(a[:, :, None], b[None]).max(1)
    np.testing.assert_allclose(tc.einsum("ij;jk=>ik", a, b, accumulate="max", combine=np.minimum), expected)


def test_small_integers_sum_in_64_bits() -> None:
    found = tc.einsum("i=>", np.full(300, 100, np.int8))
    assert found == 30_000
    assert found.dtype == np.int64


def test_a_result_is_an_array_of_its_own_and_a_rank_0_result_is_a_number() -> None:
    a = rng.uniform(size=3)
    found = tc.einsum("i=>i", a)
    found[0] = 7
    assert a[0] != 7
    assert isinstance(tc.einsum("i=>", a), np.float64)


class TestFixedPositions:
    def test_of_an_operand_are_read_there(self) -> None:
        a = rng.uniform(size=(3, 4))
        np.testing.assert_array_equal(tc.einsum("i2=>i", a), a[:, 2])

    def test_of_the_result_leave_the_other_cells_neutral(self) -> None:
        assert tc.einsum("i=>1i", np.array([5.0, 6.0])).tolist() == [[0, 0], [5, 6]]
        assert tc.einsum("i=>i1", np.array([5.0, 6.0]), accumulate="multiply").tolist() == [[1, 5], [1, 6]]

    def test_need_an_axis_that_is_longer(self) -> None:
        with pytest.raises(tc.ShapeError, match=r"fixes the position 2 of an axis whose extent is a_1 = 2"):
            tc.einsum("i2=>i", np.ones((3, 2)))


class TestAffineAxes:
    def test_of_an_operand_reach_as_far_as_they_fit(self) -> None:
        signal, kernel = np.arange(5.0), np.array([1.0, 10.0])
        assert tc.einsum("o+k;k=>o", signal, kernel).tolist() == [10, 21, 32, 43]
        assert tc.einsum("2*o+k;k=>o", signal, kernel).tolist() == [10, 32]

    def test_of_the_result_leave_cells_out(self) -> None:
        assert tc.einsum("i=>2*i+1", np.array([5.0, 6.0])).tolist() == [0, 5, 0, 6]

    def test_of_the_result_meet(self) -> None:
        a = rng.uniform(size=4), rng.uniform(size=3)
        np.testing.assert_allclose(tc.einsum("i;j=>i+j", *a), np.convolve(*a))

    @pytest.mark.parametrize("length", range(5))
    def test_valid_convolution_of_any_length(self, length: int) -> None:
        signal, kernel = rng.uniform(size=5), rng.uniform(size=length + 1)
        np.testing.assert_allclose(tc.einsum("o+k;k=>o", signal, kernel), np.correlate(signal, kernel, "valid"))

    def test_reversal(self) -> None:
        assert tc.einsum("3-i;i=>i", np.arange(4.0), np.ones(4)).tolist() == [3, 2, 1, 0]


class TestRowVariables:
    def test_broadcast(self) -> None:
        a, b = rng.uniform(size=(3, 1, 2)), rng.uniform(size=(4, 2))
        np.testing.assert_allclose(tc.einsum("...;...=>...", a, b), a * b)
        np.testing.assert_allclose(tc.einsum("...;...=>", a, b), (a * b).sum())

    @pytest.mark.parametrize(("left", "right"), [((2, 1), (3,)), ((1,), (0,)), ((0,), (1,)), ((), (2, 2))])
    def test_stretch_from_either_side(self, left: tuple[int, ...], right: tuple[int, ...]) -> None:
        a, b = rng.uniform(size=left), rng.uniform(size=right)
        np.testing.assert_allclose(tc.einsum("..v..;..v..=>..v..", a, b), a * b)
        np.testing.assert_allclose(tc.einsum(".", b, a), a * b)

    def test_one_program_serves_all_shapes_that_stretch_alike(self) -> None:
        a = np.ones((2, 3))
        assert tc.einsum("...;...=>...", a, a).tolist() == [[1] * 3] * 2
        assert tc.einsum("...;...=>...", np.ones((4, 1)), np.ones((4, 5))).shape == (4, 5)
        assert tc.einsum("...;...=>...", np.ones((1, 1)), np.ones((1, 1))).shape == (1, 1)

    def test_with_named_axes_around(self) -> None:
        a = rng.uniform(size=(2, 3, 4, 5))
        np.testing.assert_allclose(tc.einsum("i...j=>j...i", a), np.einsum("i...j->j...i", a))
        np.testing.assert_allclose(tc.einsum("..v..i=>i..v..", a), np.moveaxis(a, -1, 0))

    def test_that_do_not_fit(self) -> None:
        with pytest.raises(tc.ShapeError, match="do not broadcast: extents a_0 = 2 and b_0 = 3"):
            tc.einsum("...;...=>...", np.ones(2), np.ones(3))

    def test_named_axes_do_not_stretch(self) -> None:
        with pytest.raises(tc.ShapeError, match="`i` runs over axis 0 of a, which has the extent 1"):
            tc.einsum("i;i=>i", np.ones(1), np.ones(3))


class TestBuiltInLogics:
    @pytest.mark.parametrize("left", [(3,), (2, 3), (4, 2, 3), (1, 2, 3)])
    @pytest.mark.parametrize("right", [(3,), (3, 5), (4, 3, 5)])
    def test_compose_on_plain_arrays_is_the_matrix_product(self, left: tuple[int, ...], right: tuple[int, ...]) -> None:
        a, b = rng.uniform(size=left), rng.uniform(size=right)
        np.testing.assert_allclose(tc.einsum("@", a, b), a @ b)

    def test_transpose_on_plain_arrays_reverses_the_axes(self) -> None:
        for shape in ((), (2,), (2, 3), (2, 3, 4)):
            a = rng.uniform(size=shape)
            np.testing.assert_array_equal(tc.einsum("T", a), a.T)

    def test_pointwise(self) -> None:
        a, b = rng.uniform(size=(2, 1, 3)), rng.uniform(size=(4, 1))
        np.testing.assert_allclose(tc.einsum(".", a, b, combine="sub"), a - b)


class TestPlaceholders:
    def test_of_an_operand_is_summed(self) -> None:
        a = rng.uniform(size=(2, 3, 4))
        np.testing.assert_allclose(tc.einsum("i_k=>ik", a), a.sum(1))
        np.testing.assert_allclose(tc.einsum("_=>", a), a.sum())

    def test_of_the_result_is_an_axis_of_one(self) -> None:
        a = rng.uniform(size=3)
        assert tc.einsum("i=>_i", a).tolist() == [a.tolist()]


def test_axes_that_the_spec_leaves_out_are_summed() -> None:
    a = rng.uniform(size=(2, 3, 4, 5))
    np.testing.assert_allclose(tc.einsum("ijk => kji", a), np.einsum("aijk->kji", a))
    np.testing.assert_allclose(tc.einsum("i => i", a), a.sum((0, 1, 2)))


@pytest.mark.parametrize(
    "names",
    [
        *("in, lambda", "range, frame", "a_0, a_1", "and, or", "größe, _x", "None, True", "np, numba", "int, inf"),
        *("A, B", "max, min", "e, E", "axis_0, axis_1", "pi, relu", "if, else", "id, exp"),
    ],
)
def test_names_mean_nothing_else(names: str) -> None:
    a = rng.uniform(size=(2, 3))
    left, right = names.split(", ")

    @op
    def f(x, *, spec):
        return einsum(spec, x)

    spec = f"{left}, {right} => {right}, {left}"
    np.testing.assert_array_equal(f(a, spec=spec), a.T)
    program = f.program(a, spec=spec)
    assert parse_program(format_program(program)) == program


class TestInsideFunctions:
    def test_is_part_of_the_program(self) -> None:
        @op
        def f(a, b):
            c = einsum("ij;jk=>ik", a, b)
            y[i] += c[i, k] * einsum("kj=>j", b)[k]
            return y, relu(einsum("ij=>", a) - 1)

        a, b = rng.uniform(size=(2, 3)), rng.uniform(size=(3, 4))
        y, total = f(a, b)
        np.testing.assert_allclose(y, a @ b @ b.sum(0))
        np.testing.assert_allclose(total, max(a.sum() - 1, 0))

    def test_takes_pending_arithmetic_numbers_and_surrounding_arrays(self) -> None:
        mask = rng.integers(0, 2, (3, 4)).astype(bool)

        @op
        def f(x, *, rate):
            return (
                einsum("ij;ij=>i", (x + 1.0)[1:], mask),
                einsum("...;...=>...", rate, x.T),
                einsum("ij=>j", x[:, ::-1]),
            )

        x = rng.uniform(size=(4, 4))
        one, two, three = f(x, rate=0.5)
        np.testing.assert_allclose(one, ((x + 1)[1:] * mask).sum(1))
        np.testing.assert_allclose(two, 0.5 * x.T)
        np.testing.assert_allclose(three, x.sum(0)[::-1])

    def test_arithmetic_is_computed_once_per_cell(self) -> None:
        @op
        def f(a, b):
            return einsum("ij;jk=>ik", exp(a), b), einsum("ij=>i", exp(a))

        # The contraction reads exp(a) once per column of b, so it is stored; the sum of rows computes it on the way.
        assert len(f.program(np.ones((2, 3)), np.ones((3, 4))).statements) == 3

    def test_gradients(self) -> None:
        @op
        def f(a, b, c):
            return (
                einsum("ij;jk;k=>i", a, b, c),
                einsum("2*o + k; k => o", c, b[0]),
                einsum("ij;jk=>ik", a, b, accumulate="max", combine="add"),
                einsum("i => ii", c, accumulate="multiply"),
                einsum("ij;...=>...j1", a, c),
            )

        # Sums whose maximum is not a tie, not even nearly.
        a, b = np.array([[0.1, 0.9, 0.4], [0.8, 0.3, 0.2]]), np.array([[0.5, 0.1], [0.2, 0.7], [0.9, 0.3]])
        tc.check_grads(f, (a, b, np.array([0.7, 0.4])))

    def test_derivatives_at_top_level(self) -> None:
        a, b = rng.uniform(size=(2, 3)), rng.uniform(size=(3, 4))
        slope = tc.grad(lambda a, b: tc.einsum("ij;jk=>", a, b))(a, b)
        np.testing.assert_allclose(slope, np.broadcast_to(b.sum(1), (2, 3)))

    def test_program_text(self, golden: Callable[[str, str], None]) -> None:
        @op
        def f(a, b):
            c = einsum("2*o + k; k...c => o...c", a, b)
            return einsum("ij;j=>i1", c, c[0])

        f(np.ones(9), np.ones((3, 2)))
        golden("ir/einsum", str(f.explain("ir")))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda a: tc.einsum("ij=>i", a, accumulate="average"), "accumulate='average' is no accumulator"),
        (lambda a: tc.einsum("ij=>i", a, combine="mul"), "`mul` takes 2 arguments, and einsum is given 1 operand"),
        (lambda a: tc.einsum("ij=>i", a, combine=len), "is no primitive"),
        (lambda a: tc.einsum(a, "ij=>i"), "the spec is a ndarray"),
        (lambda a: tc.einsum("ij=>i"), "one to three operands, not 0"),
        (lambda a: tc.einsum("a;b;c;d=>", a, a, a, a), "one to three operands, not 4"),
        (lambda a: tc.einsum("ij;jk=>i", a), "the spec has 2 operands, but 1 are given\n    ij;jk=>i\n    ^^"),
        (lambda a: tc.einsum("ijk=>i", a), "has 3 output axes here, but the operand has only 2\n    ijk=>i\n    ^^^"),
        (lambda a: tc.einsum("i=>ij", a), "`j` stands in the result only"),
        (lambda a: tc.einsum("ij=>i", a, accumulate="assign"), "`=` writes each cell once"),
        (lambda a: tc.einsum("i+j=>i", a[0]), "the ranges of the indices `i`, `j` cannot be inferred"),
        (lambda a: tc.einsum("@", a), 'the logic "@" has two operands, not 1'),
        (lambda a: tc.einsum("T", a, a), 'the logic "T" has one operand, not 2'),
        (lambda a: tc.einsum("@", a, np.float64(2.0)), "`@` takes arrays of rank 1 or more"),
        (lambda a: tc.einsum("i|j=>i", a), "1 batch axis here, but the operand has none"),
    ],
)
def test_faults(call: Callable[[np.ndarray], Any], message: str) -> None:
    with pytest.raises(tc.TcdslError) as caught:
        call(np.ones((2, 3)))
    assert message in str(caught.value)


def test_outside_of_functions_the_spec_is_shown() -> None:
    with pytest.raises(tc.ShapeError) as caught:
        tc.einsum("ij;jk=>ik", np.ones((2, 3)), np.ones((2, 3)))
    assert 'in einsum("ij;jk=>ik", ...)' in str(caught.value)
    with pytest.raises(tc.ShapeError) as caught:
        tc.einsum("i;j=>ik", np.ones(2), np.ones(3))
    assert str(caught.value).count("i;j=>ik") == 1


def test_the_caret_stands_inside_the_spec() -> None:
    @op
    def f(a, b):
        return einsum("ij;j%k=>ik", a, b)

    with pytest.raises(tc.DslSyntaxError) as caught:
        f(np.ones((2, 3)), np.ones((3, 4)))
    _, source, caret, hint = str(caught.value).splitlines()
    assert source[caret.index("^")] == "%"
    assert caret.count("^") == 1
    assert hint.startswith("an axis is a name")
