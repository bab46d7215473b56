"""Reductions inside values: what they bind, their types, generators."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tcdsl.errors import DslSyntaxError, ShapeError, TcdslError
from tcdsl.ir.expressions import Reduction, walk
from tcdsl.ranges.sketches.sketch import Sketch
from tests.frontend.statements.small_function import run, sketch

RANDOM = np.random.default_rng(5)
A = RANDOM.normal(size=(3, 4))
B = RANDOM.normal(size=(3, 4))
X = RANDOM.normal(size=8)
W = RANDOM.normal(size=4)


def reductions(found: Sketch) -> list[Reduction]:
    return [node for node in walk(found.value) if isinstance(node, Reduction)]


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("O[i] = A[i, 0] + sum(A[i, k])", A[:, 0] + A.sum(1)),
        ("O[i] = 1 * prod(A[i, k])", A.prod(1)),
        ("O[i] = 1 * max(A[i, k])", A.max(1)),
        ("O[i] = 1 * min(A[i, k])", A.min(1)),
        ("O[i] = 1 * mean(A[i, k])", A.mean(1)),
        ("O[i] = 1 * argmax(A[i, k])", A.argmax(1)),
        ("O[i] = 1 * argmin(A[i, k])", A.argmin(1)),
        ("O[i] = not any(A[i, k] > 1)", ~(A > 1).any(1)),
        ("O[i] = not all(A[i, k] > -1)", ~(A > -1).all(1)),
        ("O[i, j] = A[i, j] / sum(A[i, l])", A / A.sum(1, keepdims=True)),
        ("O[i] = sum(w[k] * A[i, k]) / sum(w[k])", A @ W / W.sum()),
        ("O[i] = sum(max(A[i, k] * B[j, k]) * A[j, 0])", ((A[:, None] * B).max(2) * A[:, 0]).sum(1)),
        ("O[i, j] = A[i, j] - max(A[i, l]) / sum(exp(A[k, j]))", A - A.max(1)[:, None] / np.exp(A).sum(0)),
        ("O[()] = max(sum(A[i, k] for k in range(4)) for i in range(3))", A.sum(1).max()),
        ("O[i] = max(x[2*i + j] for j in range(2))", X.reshape(4, 2).max(1)),
        ("O[i] = sum(x[i + a] * w[b] for a in range(2) for b in range(a, 4))", None),
        ("O[i] = sum(x[j] for j in range(8) if j <= i), i < 8", np.cumsum(X)),
        ("O[i] = sum(x[j] for j in range(i + 1)), i < 8", np.cumsum(X)),
        ("O[i] = A[i, argmax(A[i, k])]", A.max(1)),
        ("O[i] = A[i, 0] / sum(A)", A[:, 0] / A.sum()),
        ("O[i] = A[i, 0] - x[argmin(x)]", A[:, 0] - X.min()),
        ("O[i] = mean(w[k] for k in range(2)) * A[i, 0]", W[:2].mean() * A[:, 0]),
        ("O[i] = max([A[i, 0], A[i, 1], 0])", np.maximum(A[:, :2].max(1), 0)),
        ("O[i] = A[i, 0] + sum(A[i, k] * c for k, c in [(1, 2.0), (2, 3.0)])", A[:, :3] @ [1, 2.0, 3.0]),
        ("O[i] = sum(A[i, k] for k in [0, 2] if k > 0)", A[:, 2]),
        ("O[i] = sum(A[i, k] for k in range(4) if A[i, k] > 0)", np.where(A > 0, A, 0).sum(1)),
        ("O[i] = sum(A[i, j] * c for j in range(2) for c in (1, 10))", A[:, :2].sum(1) * 11),
    ],
)
def test_reductions(source: str, wanted: np.ndarray | None) -> None:
    if wanted is None:
        wanted = np.array([sum(X[i + a] * W[b] for a in range(2) for b in range(a, 4)) for i in range(7)])
    found = run(source, A=A, B=B, x=X, w=W)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted)


@pytest.mark.parametrize("function", [np.sum, np.prod, np.max, np.min, np.mean, np.argmax, np.any, np.all])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float32", "float64"])
def test_types_are_those_of_numpy(function: Callable[..., np.ndarray], dtype: str) -> None:
    x = np.array([[1, 0, 2], [0, 0, 1]]).astype(dtype)
    name = function.__name__
    wanted = function(x, axis=1)
    for source in (f"O[i] = {name}(x[i, k])", f"O[i] = id({name}(x[i, k]))"):
        found = run(source, x=x)
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted)


def test_siblings_are_renamed_apart_and_equal_ones_are_one() -> None:
    first, second = reductions(sketch("O[i] = sum(w[k] * A[i, k]) / sum(w[k])", A=A, w=W))
    assert {first.variables, second.variables} == {("k",), ("k_2",)}
    same, again = reductions(sketch("O[i] = sum(A[i, k]) + 2 * sum(A[i, k])", A=A))
    assert same == again
    same, again = reductions(sketch("O[i] = 0 + sum(A[i, k] for k in range(2)) + sum(A[i, k] for k in range(2))", A=A))
    assert same == again


def test_index_variables_differ_from_sizes() -> None:
    found = sketch("O[n] = x[n] + sum(w[k])", x=X, w=W)
    assert found.variables == ("n",)
    from tests.frontend.statements.small_function import SmallFunction

    function = SmallFunction("O[n] = x[n]", {})
    function.names["x"] = function.builder.input("x", "float64", 1, ("n",))
    function.execute()
    (statement,) = function.program("O").statements
    assert statement.domain.variables == ("n_2",)


def test_reset_forms_become_the_statement_itself() -> None:
    found = sketch("O[i] = sum(A[i, k] for k in range(2) if k > 0)", A=A)
    assert (found.accumulate, found.variables) == ("add", ("i", "k"))
    assert [stated.variable for stated in found.ranges] == ["k"]
    assert len(found.conditions) == 1
    assert not reductions(found)
    assert sketch("O[i] = any(A[i, k] > 0)", A=A).accumulate == "or"
    assert sketch("O[i] = max(A[i, 0], A[i, 1])", A=A).accumulate == "assign"
    assert sketch("O[i] = -sum(A[i, k])", A=A).accumulate == "assign"


def test_trailing_conditions_are_the_statements_and_filter_what_is_the_whole_value_of_a_store() -> None:
    wanted = np.array([A[1:, j].mean() for j in range(4)])
    np.testing.assert_allclose(run("O[j] = mean(A[l, j]), l > 0", A=A), wanted)
    found = sketch("O[j] = mean(A[l, j]), l > 0, j < 2", A=A)
    assert len(found.conditions) == 1
    assert [len(one.conditions) for one in reductions(found)] == [1]
    # In an accumulating statement the variable is the statement's.
    added = sketch("O[()] += max(A[i, l]) * max(B[i, l]), x[i] > 2", A=A, B=B, x=X)
    assert len(added.conditions) == 1
    assert added.variables == ("i",)
    assert [one.variables for one in reductions(added)] == [("l",), ("l_2",)]
    assert [len(one.conditions) for one in reductions(added)] == [0, 0]


def test_a_point_out_of_range_drops_out_of_its_reduction_only() -> None:
    wanted = [X[i] + X[max(0, i - 2) : i].sum() for i in range(8)]
    np.testing.assert_allclose(run("O[i] = x[i] + sum(x[i - k - 1] for k in range(2)), i < 8", x=X), wanted)


@pytest.mark.parametrize(
    ("source", "kind", "message"),
    [
        ("O[i] = 2 * sum(A[i, i])", DslSyntaxError, "binds no index variable: `i` belongs to the statement"),
        ("O[i, k] = A[i, k] / sum(A[i, k])", DslSyntaxError, "binds no index variable: `i`, `k` belong"),
        ("O[i] = sum(x[i])", DslSyntaxError, "binds no index variable"),
        ("O[()] = sum(max(A[i, k]) * max(B[i, k]))", DslSyntaxError, "binds no index variable"),
        ("O[i] = (x[j] for j in range(3))", DslSyntaxError, "a generator that no reduction takes"),
        ("O[i] = sum(A[i, k] * A[j, k] for k in range(4))", ShapeError, "`j` is neither on the target nor bound"),
        (
            "O[i] = sum(x[i + j] for j in range(4, 0, -1))",
            DslSyntaxError,
            "a range whose step is not a positive integer",
        ),
        ("O[i] = sum(x[i] for i in range(2.5))", TcdslError, "float"),
        ("O[i] = sum(x[i] for a, b in range(2))", DslSyntaxError, "a range gives one variable"),
        ("O[i] = x[i] + argmax(A[i, k] * B[j, k])", DslSyntaxError, "a position has one"),
        ("O[i] = argmax(A[i, k] for k in [0, 1])", DslSyntaxError, "over 2 Python objects"),
        ("O[i] = mean(A[i, k], 1)", DslSyntaxError, "`mean` takes one argument"),
        ("O[i] = sum(A[i, k], axis=1)", DslSyntaxError, "takes no keyword arguments"),
        ("O[i] = sum(w for w in x)", DslSyntaxError, "a generator over a tensor"),
        (
            "O[i] = sum(A[i, k]) / sum(B[i, l]), k < l",
            DslSyntaxError,
            "mentions `k`, `l`, which are not on the target of `=`",
        ),
    ],
)
def test_faults(source: str, kind: type[TcdslError], message: str) -> None:
    with pytest.raises(kind, match=message):
        run(source, A=A, B=B, x=X, w=W)
