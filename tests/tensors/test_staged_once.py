"""Operations of graphs are staged once: what shapes and types asked for is what values, gradients and routines run."""

from __future__ import annotations

import pickle
from collections import Counter
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import tcdsl as tc
from tcdsl import op
from tcdsl.tensors.graph_staging import fragments
from tcdsl.tensors.graphs.node_operations import Operation
from tests.tensors.interpreting import run, value

X = np.array([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]])


@pytest.fixture
def stagings(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often operations were staged, by name."""
    counts: Counter[str] = Counter()
    original = fragments.staged

    def counted(operation: Operation, *arguments: Any) -> Any:
        counts[operation.name] += 1
        return original(operation, *arguments)

    monkeypatch.setattr(fragments, "staged", counted)
    return counts


@op
def layer(x, *, size, label):
    return tanh("w" @ x + "b"[size])


def test_a_network_is_staged_once_for_shapes_values_gradients_and_updates(stagings: Counter[str]) -> None:
    x = tc.tensor(X, batch=1, label="x")
    made = layer(size=2, label="second")(layer(size=4, label="first")(x))
    loss = (made * made).mean()
    assert float(value(loss)) > 0
    update = tc.train.grad_update(loss) + tc.train.sgd_update(loss, learning_rate=0.1)
    before = loss.item()
    run(update)
    run(update)
    assert value(loss) < before
    assert stagings == Counter({"@": 2, "add": 2, "tanh": 2, "mul": 1, "mean": 1})


def test_a_result_that_may_grow_is_staged_again_where_its_type_is_asked_before_its_size(
    stagings: Counter[str],
) -> None:
    early, late = (tc.einsum("i => i0", tc.tensor(X[0])) for _ in range(2))
    assert early.dtype == np.float64
    for each in (early, late):
        with tc.constraints_only():
            tc.einsum("i2 => i", each)
        assert_allclose(value(each), np.stack([X[0], 0 * X[0], 0 * X[0]], axis=1))
    assert stagings["einsum"] == 3


def test_brackets_guard_through_nodes_where_a_product_has_got_its_value_in_another_way() -> None:
    mask, x = tc.tensor([True, False, True]), tc.tensor(X[0], grad=True)
    product = mask * x
    quotient = product / tc.tensor([2.0, 0.0, 4.0])
    loss = quotient.sum()
    run(tc.train.grad_update(loss, wrt=[product]))
    assert_allclose(product.grad, [0.5, np.inf, 0.25])
    assert_allclose(x.grad, [0.5, 0.0, 0.25])
    kept = pickle.loads(pickle.dumps(quotient))
    assert_allclose(value(kept), [0.5, 0.0, 0.75])


def test_brackets_are_those_that_a_product_was_computed_with() -> None:
    mask = tc.tensor([True, False])

    @tc.cd
    def negate(m):
        m[i] = not m[i]

    product = mask * tc.tensor([3.0, 5.0])
    quotient = product / tc.tensor([2.0, 0.0])
    run(tc.compile(product, negate(mask), quotient).code)
    assert mask.value.tolist() == [False, True]
    assert_allclose(quotient.value, [1.5, 0.0])


def test_statements_of_an_op_are_one_program_after_pickling() -> None:
    @op
    def pair(x):
        y[n, i] = 2 * x[n, i]
        z[n, i] = y[n, i] + 1
        return y, z

    y, z = pickle.loads(pickle.dumps(pair(tc.tensor(X))))
    program = tc.compile(y, z).program
    assert len(program.statements) == 2
    assert_allclose(value(z), 2 * X + 1)
