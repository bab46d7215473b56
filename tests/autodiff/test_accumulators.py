"""Adjoints of every accumulator, from every start, where cells are written once and where they are written often."""

from __future__ import annotations

import numpy as np
import pytest

from tcdsl.autodiff import adjoint
from tcdsl.errors import DifferentiationError
from tcdsl.ir.expressions import Constant
from tcdsl.ir.text.parser import parse_program
from tests.autodiff.programs import check, program, pulled_back, text_of_adjoint

RNG = np.random.default_rng(1)
STARTS = ["", "from w", "from fill(v[()] * v[()])"]
ACCUMULATORS = ["=", "+=", "-=", "*=", "/=", "**=", ">>=", "<<=", "?/=", "?^="]
W = np.array([0.7, 0.4, 0.9])


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("accumulate", ACCUMULATORS)
def test_elementwise(accumulate: str, start: str) -> None:
    body = f"y[i] {accumulate} sin(x[i]) + 0.1 {start} for [i]: 0 <= i < N - 1"
    made = program("x: float64[N]; w: float64[N]; v: float64", "y: float64[N]", body)
    check(made, RNG.random(3), W, 0.7)
    check(made, [0.3], [0.5], 0.6, order=1)


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("accumulate", ACCUMULATORS[1:])
def test_reductions(accumulate: str, start: str) -> None:
    body = f"y[i] {accumulate} sin(x[i, k]) + 0.1 {start} for [i, k]: 0 <= i < N and 0 <= k < M"
    made = program("x: float64[N, M]; w: float64[N]; v: float64", "y: float64[N]", body)
    check(made, RNG.random((3, 4)), W, 0.7)
    check(made, RNG.random((3, 1)), W, 0.7, order=1)
    check(made, RNG.random((3, 0)), W, 0.7, order=1)


def test_the_last_of_several_assignments_wins() -> None:
    body = "y[i // 2] = x[i] * x[i] from w for [i]: 0 <= i < N"
    made = program("x: float64[N]; w: float64[N]", "y: float64[N]", body)
    from tests.autodiff.program_gradients import check_program_gradient

    check_program_gradient(made, [RNG.random(5), RNG.random(5)], ["x", "w"], order=2)


def test_assignments_that_data_may_collide_have_no_derivative() -> None:
    body = "y[ids[i]] = x[i] for [i]: 0 <= i < N"
    made = program("x: float64[N]; ids: int64[N]", "y: float64[N]", body)
    with pytest.raises(DifferentiationError, match="`assign` has no derivative"):
        pulled_back(made, [[1.0], [0]], [[1.0]], ["x"])
    unique = program(
        "x: float64[N]; ids: int64[N]; w: float64[N]",
        "y: float64[N]",
        body.replace(" for", " from w for") + " with unique",
    )
    from tests.autodiff.program_gradients import check_program_gradient

    check_program_gradient(unique, [RNG.random(3), np.array([2, 0, 1]), RNG.random(3)], ["x", "w"])


@pytest.mark.parametrize("factors", [[2.0, 0.0, 3.0], [0.0, 0.0, 3.0], [1.0, 2.0, 3.0], [0.0, 0.0, 0.0], [0.0], []])
def test_products_with_zeros(factors: list[float]) -> None:
    made = program("x: float64[N]", "y: float64", "y[()] *= x[i] for [i]: 0 <= i < N")
    (dx,) = pulled_back(made, [factors], [1.0], ["x"])
    np.testing.assert_array_equal(dx, [np.prod(np.delete(factors, k)) for k in range(len(factors))])
    check(made, factors)
    body = "y[i] *= x[k] * x[k] from w for [i, k]: 0 <= i < N and 0 <= k <= i"
    kept = program("x: float64[N]; w: float64[N]", "y: float64[N]", body)
    check(kept, RNG.random(len(factors)), factors)
    check(kept, factors, factors, order=1)


def test_ties_share() -> None:
    made = program("x: float64[N]; w: float64", "y: float64", "y[()] >>= x[i] from w for [i]: 0 <= i < N")
    dx, dw = pulled_back(made, [[3.0, 1.0, 3.0], 3.0], [6.0], ["x", "w"])
    np.testing.assert_array_equal(dx, [2, 0, 2])
    assert dw == 2
    dx, dw = pulled_back(made, [[3.0, 1.0, 3.0], 0.0], [6.0], ["x", "w"])
    np.testing.assert_array_equal(dx, [3, 0, 3])
    assert dw == 0


def test_pooling_with_overlapping_windows() -> None:
    window = "0 <= i < N // 2 and 0 <= j < M // 2 and 0 <= k < 3 and 0 <= l < 3 and 2*i + k < N and 2*j + l < M"
    body = f"y[i, j] >>= x[2*i + k, 2*j + l] for [i, j, k, l]: {window}"
    made = program("x: float64[N, M]", "y: float64[N // 2, M // 2]", body)
    check(made, RNG.random((5, 4)))


VERSIONS = """\
y[i] = x[i] * x[i]  for [i]: 0 <= i < N
y_2[i] += exp(y[i])  from y  for [i]: 1 <= i < N
y_3[i] = sin(y_2[i + 1])  from y_2  for [i]: 0 <= i < N - 2
y_4[i] *= y_3[0] + y[i]  from y_3  for [i]: 0 <= i < N
y_5[0] += y_4[i]  from y_4  for [i]: 0 <= i < N"""


def test_versions_pass_derivatives_on() -> None:
    names = ("y", "y_2", "y_3", "y_4", "y_5")
    made = program("x: float64[N]", "; ".join(f"{name}: float64[N]" for name in names), VERSIONS, "y_5, y_2")
    check(made, RNG.random(5))


def test_overwritten_cells_get_nothing() -> None:
    body = "y[i] = 2.0 * x[i] for [i]: 0 <= i < N\ny_2[i] = 7.0 from y for [i]: 0 <= i < N - 1"
    made = program("x: float64[N]", "y: float64[N]; y_2: float64[N]", body, "y_2")
    (dx,) = pulled_back(made, [np.ones(3)], [[1.0, 10.0, 100.0]], ["x"])
    np.testing.assert_array_equal(dx, [0, 0, 200])


def test_assignments_that_data_select() -> None:
    body = "y[i] = x[i] * x[i] from w for [i]: 0 <= i < N if m[i] > 0"
    made = program("x: float64[N]; w: float64[N]; m: int64[N]", "y: float64[N]", body)
    check(made, RNG.random(3), RNG.random(3), [1, 0, 1])
    filled = program(
        "x: float64[N]; w: float64; m: int64[N]", "y: float64[N]", body.replace("from w", "from fill(exp(w[()]))")
    )
    check(filled, RNG.random(3), 0.5, [1, 0, 1])


def test_gates_by_hand() -> None:
    made = program("x: float64[N]; w: float64", "y: float64", "y[()] ?/= x[i] from w for [i]: 0 <= i < N")
    dx, dw = pulled_back(made, [[1.0, 2.0, 3.0], 1.0], [5.0], ["x", "w"])
    np.testing.assert_array_equal(dx, [0, 0, 5])
    assert dw == 0
    dx, _ = pulled_back(made, [[1.0, -2.0, 3.0], 1.0], [5.0], ["x", "w"])
    np.testing.assert_array_equal(dx, [0, 0, 0])
    dx, dw = pulled_back(made, [[], 1.0], [5.0], ["x", "w"])
    assert dw == 5


def test_values_of_a_union_of_domains_are_stored_in_one_simple_box() -> None:
    # Its exact extents have a case for every order of five sizes: an isl question that takes a minute.
    parts = (
        "(3 <= k <= D) or (i < A and j < B and 0 < k <= D and k < C - 2*j) or (i < A and j < B and k <= 2 and k < C)"
    )
    body = (
        "y[i, j] >>= max(exp(d[k - 1]) if k > 2 else 2.0, exp(e[k, i]) * e[k, i] + a[()])"
        f" for [i, j, k]: 0 <= i <= 1 and i < F and 0 <= j <= 2 and 0 <= k < E and ({parts})"
    )
    sizes = "n: float64[A, B]; m: float64[C]"
    made = program(f"d: float64[D]; e: float64[E, F]; a: float64; {sizes}", "y: float64[2, 3]", body)
    text = text_of_adjoint(made, ["d", "e", "a"])
    [stored] = [line for line in text.splitlines() if line.startswith("tensor y_values:")]
    # Along j terms join: its values are the same in all cells.
    assert stored.endswith(", E]")
    check(made, RNG.random(3), RNG.random((4, 2)), 0.5, RNG.random((2, 3)), RNG.random(5), order=1)


@pytest.mark.parametrize(("cell", "ending"), [("at[i]", " with unique"), ("2 * i", "")])
def test_what_an_assignment_overwrites_has_no_derivative(cell: str, ending: str) -> None:
    text = f"""program overwriting
input x: float64[N]
input b: float64[2 * N]
input at: int64[N]
tensor y: float64[2 * N]
tensor z: float64[2 * N]
y[j] = b[j] * b[j]  for [j]: 0 <= j < 2 * N
z[{cell}] = x[i]  from y  for [i]: 0 <= i < N{ending}
return z
"""
    pulled = adjoint(parse_program(text), ["x", "b"], keep_outputs=False)
    (cleared,) = [each for each in pulled.statements if isinstance(each.value, Constant) and each.value.value == 0]
    assert (cleared.accumulate, cleared.unique) == ("assign", bool(ending))
