"""`f.cost(...)` and `f.explain("cost", ...)`."""

from __future__ import annotations

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op


@op
def product(A, B):
    C[i, j] += A[i, k] * B[k, j]
    return C


@op
def row_softmax(x):
    e[n, c] = exp(x[n, c] - max(x[n, k]))
    y[n, c] = e[n, c] / sum(e[n, k])
    return y


@op
def square_sum(x):
    total[()] += x[i] * x[i]
    return total


@op
def counted(ids):
    H = output(4)
    H[ids[i]] += 1
    return H


@op
def strided(x):
    total[()] += x[3 * i]
    return total


@cd
def descend(p, g, *, rate):
    p -= rate * g


def zeros(*shape: int) -> np.ndarray:
    """An array that takes no memory."""
    return np.broadcast_to(0.0, shape)


def test_a_matrix_product() -> None:
    n, k, m = 30, 20, 10
    cost = product.cost(zeros(n, k), zeros(k, m))
    assert cost.primal.operations.additions == n * m * (k - 1)
    assert cost.primal.operations.multiplications == n * m * k
    assert cost.primal.operations.divisions == 0
    assert cost.primal.operations.calls == ()
    assert (cost.inputs, cost.outputs) == (n * k + k * m, n * m)
    assert cost.primal.allocated == 8 * n * m
    assert cost.primal.peak == 8 * (n * m + n * k + k * m)
    # Zeros are stored, then products are added.
    assert cost.primal.points == n * m + n * m * k
    assert cost.adjoint is not None
    assert cost.adjoint.operations.multiplications == 3 * n * m * k
    assert cost.tangent is not None
    assert cost.tangent.operations.multiplications == 3 * n * m * k
    assert cost.within_bounds


def test_sizes_matter_and_memory_does_not() -> None:
    # Points are counted by formulas: to visit them would take years.
    cost = product.cost(zeros(100_000, 50_000), zeros(50_000, 200_000))
    assert cost.primal.operations.multiplications == 10**15
    assert cost.within_bounds


def test_conditions_on_data_are_evaluated() -> None:
    different = row_softmax.cost(np.array([[1.0, 2.0, 3.0]]))
    tied = row_softmax.cost(np.array([[3.0, 3.0, 3.0]]))
    assert different.adjoint is not None
    assert tied.adjoint is not None
    # A derivative that three values share is divided among them.
    assert tied.adjoint.operations.divisions == different.adjoint.operations.divisions + 3
    assert tied.within_bounds


def test_the_table() -> None:
    text = str(product.cost(zeros(3, 4), zeros(4, 5)))
    assert text.startswith("cost of product for ")
    lines = {line.split("  ")[0]: line.split()[-3:] for line in text.splitlines()}
    assert lines["additions"][0] == "45"
    assert lines["multiplications"] == ["60", "180", "180"]
    assert lines["operations"][0] == "105"
    assert "adjoint <= 4 x (primal + inputs + outputs): " in text
    assert text.endswith("holds")
    assert product.explain("cost", zeros(3, 4), zeros(4, 5)) == text
    assert "<td>additions</td><td class=right>45</td>" in product.cost(zeros(3, 4), zeros(4, 5))._repr_html_()


def test_calls_are_listed_by_name() -> None:
    lines = str(row_softmax.cost(np.ones((2, 3)))).splitlines()
    [exponentials] = [line for line in lines if line.startswith("calls of exp")]
    assert exponentials.split()[3] == "6"


def test_functions_without_derivatives() -> None:
    cost = counted.cost(np.array([1, 3, 1]))
    assert (cost.tangent, cost.adjoint) == (None, None)
    assert cost.primal.operations.plain == 0
    assert cost.primal.points >= 3
    assert cost.within_bounds
    assert "no derivatives" in str(cost)
    p = np.ones(5)
    cost = descend.cost(p, np.ones(5), rate=0.1)
    assert cost.primal.operations.plain == 10
    assert cost.adjoint is None
    np.testing.assert_array_equal(p, 1)


def test_derivatives_have_a_cost_too() -> None:
    gradient = tc.grad(square_sum)
    cost = gradient.cost(np.ones(100))
    assert cost.primal.operations.multiplications <= 200
    assert cost.tangent is not None
    assert cost.within_bounds
    assert gradient.explain("cost", np.ones(100)) == str(cost)


def test_zeros_show_in_points_and_not_in_operations() -> None:
    cost = strided.cost(np.ones(3000))
    assert cost.adjoint is not None
    assert cost.adjoint.operations.plain == cost.primal.operations.plain == 999
    # The gradient has 3000 cells.
    assert 3000 <= cost.adjoint.points - cost.primal.points <= 4100


def test_a_cost_needs_sizes() -> None:
    product(np.ones((2, 2)), np.ones((2, 2)))
    with pytest.raises(tc.ConfigurationError, match=r'give explain\(\) sample arguments.*product.explain\("cost", x\)'):
        product.explain("cost")


def test_wrong_arguments_fail_as_in_a_call() -> None:
    with pytest.raises(tc.ShapeError, match="extent 4"):
        product.cost(zeros(3, 4), zeros(5, 6))
    with pytest.raises(IndexError, match="index 7 is out of range"):
        counted.cost(np.array([7]))
