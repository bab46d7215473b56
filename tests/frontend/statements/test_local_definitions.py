"""Local definitions, and the user's own functions on scalars at a point."""

from __future__ import annotations

import ast

import numpy as np
import pytest

from tcdsl.errors import DslSyntaxError, DtypeError, ShapeError, TcdslError
from tcdsl.frontend.statements.local_definitions import is_local_definition
from tcdsl.ir.expressions import Apply, Let, Read, Reduction, walk
from tests.frontend.statements.small_function import SmallFunction, run, sketch

RANDOM = np.random.default_rng(8)
X = RANDOM.normal(size=5)
E = RANDOM.normal(size=(3, 5))


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("z = x[i] * x[i]\nO[i] = z + exp(z)", X**2 + np.exp(X**2)),
        ("z = exp(x[i])\nw = z * z + z\nO[i] = w * w - z", (np.exp(2 * X) + np.exp(X)) ** 2 - np.exp(X)),
        ("z = exp(E[i, k])\nO[i] = sum(z) * 2.0", 2 * np.exp(E).sum(1)),
        ("z = exp(E[i, k])\nO[i] = sum(z)", np.exp(E).sum(1)),
        ("z = exp(E[i, k])\nO[i] += z / (1 + z)", (np.exp(E) / (1 + np.exp(E))).sum(1)),
        ("z = sum(E[i, l])\nO[i, j] = E[i, j] / z - z", E / E.sum(1)[:, None] - E.sum(1)[:, None]),
        ("z = max(E[i, l])\nw = exp(E[i, j] - z)\nO[i, j] = w / sum(exp(E[i, m] - z))", None),
        ("z = x[i]\nO[()] = sum(z * i for i in range(3))", X[1] + 2 * X[2]),
        ("z = exp(x[i])\nO[()] = sum(z * z for i in [1, 3])", np.exp(2 * X[[1, 3]]).sum()),
        ("z = x[i]\nz = z * x[i]\nO[i] = z + z", 2 * X**2),
        ("z = ids[i]\nO[i] = x[z] * z", X[[2, 0, 4]] * [2, 0, 4]),
        ("z = ids[i] + 1\nO[i] = x[z - 1] + x[z - 1] * z", X[[2, 0, 4]] * [4, 2, 6]),
        ("z = x[i] > 0\nO[i] = x[i] * z", X * (X > 0)),
        ("z = x[i] * (x[i] > 0)\nO[()] += z", X[X > 0].sum()),
        ("z = x[i - 1]\nO[i] = z * z if i > 0 else 7.0, i < 6", np.r_[7.0, X**2]),
        ("z = x[i] ** 3\nO[i] = z * z + x[i] ** 3", X**6 + X**3),
    ],
)
def test_local_definitions(source: str, wanted: np.ndarray | None) -> None:
    if wanted is None:
        wanted = np.exp(E - E.max(1)[:, None])
        wanted /= wanted.sum(1)[:, None]
    np.testing.assert_allclose(run(source, x=X, E=E, ids=np.array([2, 0, 4])), wanted)


def count(source: str, primitive: str) -> int:
    nodes = walk(sketch(source, x=X, E=E).value)
    return sum(isinstance(node, Apply) and node.primitive == primitive for node in nodes)


def test_a_definition_is_computed_once_per_point() -> None:
    assert count("z = exp(x[i])\nO[i] = z * z + z", "exp") == 1
    assert count("z = exp(x[i])\nw = sin(z) * z\nO[i] = w * w + z", "exp") == 1
    # A single use needs no Let, nor does a cell.
    assert not any(isinstance(n, Let) for n in walk(sketch("z = exp(x[i])\nO[i] = 2 * z", x=X).value))
    assert not any(isinstance(n, Let) for n in walk(sketch("z = x[i]\nO[i] = z * z", x=X).value))


def test_a_definition_used_in_two_branches_is_computed_in_each() -> None:
    found = sketch("z = exp(x[i])\nO[i] = z * z if i > 2 else (z + z if i > 1 else 0.0), i < 5", x=X)
    assert isinstance(found.value, Apply)
    assert found.value.primitive == "where"
    assert sum(isinstance(node, Let) for node in walk(found.value)) == 2
    names = [node.name for node in walk(found.value) if isinstance(node, Let)]
    assert len(set(names)) == 2


def test_a_reduction_computes_what_it_needs_itself() -> None:
    found = sketch("z = exp(x[i])\nO[i] = z * z + sum(E[i, k] * z + z), i < 3", x=X, E=E)
    (reduction,) = (node for node in walk(found.value) if isinstance(node, Reduction))
    assert any(isinstance(node, Let) for node in walk(reduction.value))


def test_what_is_a_local_definition() -> None:
    function = SmallFunction("", {"x": X}, known={"n": 2, "table": {"a": 1}, "rows": [X, X]})
    for source, wanted in {
        "z = x[i]": True,
        "z = f(x[i + n]) * 2": True,
        "z = x[n]": False,
        "z = x[0]": False,
        "z = table[key]": False,
        "z = rows[row]": False,
        "z = x.shape[0]": False,
        "z = x * 2": False,
        "z = [x[k] for k in range(3)]": False,
        "z = sum(x[k] for k in range(3))": True,
        "z = x[i], 2": False,
        "z[i] = x[i]": False,
        "z = rows[n][i]": True,
    }.items():
        assert is_local_definition(ast.parse(source).body[0], function) is wanted, source


def test_a_definition_reads_what_its_names_held_when_it_was_written() -> None:
    source = "y[i] = x[i]\nz = y[i] * 2\ny[i] += 1\nO[i] = z + y[i]"
    np.testing.assert_allclose(run(source, x=X), 3 * X + 1)


# -- functions of the user ------------------------------------------------------------------------------------------


def smooth(value: object, rate: object = 0.5) -> object:
    return np.tanh(value) * rate + 1 / (1 + abs(value)) - value**3  # type: ignore[operator, call-overload]


def test_functions_on_scalars_at_a_point() -> None:
    wanted = np.tanh(X) * 0.5 + 1 / (1 + abs(X)) - X**3
    given = {"smooth": smooth}
    np.testing.assert_allclose(run("O[i] = smooth(x[i])", x=X, module=given), wanted)
    np.testing.assert_allclose(run("O[i] = smooth(value=x[i], rate=2)", x=X, module=given), wanted + 1.5 * np.tanh(X))
    np.testing.assert_allclose(run("z = x[i]\nO[i] = smooth(z) + z", x=X, module=given), wanted + X)


def mixed(a: object, n: object) -> object:
    shifted = 3 - (2 * a + 1) / 4.0 + (a > 0) * a - -a  # type: ignore[operator]
    return shifted + (n % 3) * (n // 2) + (n & 1 | n << 1 ^ 1) + (n == 2)  # type: ignore[operator]


def test_operators_of_scalars_at_a_point() -> None:
    n = np.arange(5)
    found = run("O[i] = mixed(x[i], n[i])", x=X, n=n, module={"mixed": mixed})
    np.testing.assert_allclose(found, np.asarray(mixed(X, n), float))


def test_what_python_cannot_know_is_an_error_at_the_call() -> None:
    def branching(value: object) -> object:
        if value > 0:  # type: ignore[operator]
            return value
        return -value  # type: ignore[operator]

    given = {"branching": branching, "root": lambda v: complex(v), "first": lambda v: v[0]}  # noqa: PLW0108
    with pytest.raises(DslSyntaxError, match="Python branches on a value") as caught:
        run("O[i] = branching(x[i])", x=X, module=given)
    assert "    if value > 0:  # type: ignore[operator]\n       ^^^^^^^^^" in str(caught.value)
    with pytest.raises(DtypeError, match="Python asks for the number"):
        run("O[i] = root(x[i])", x=X, module=given)
    with pytest.raises(ShapeError, match="no axes to index"):
        run("O[i] = first(x[i])", x=X, module=given)
    with pytest.raises(TcdslError, match="nextafter is not a primitive"):
        run("O[i] = f(x[i])", x=X, module={"f": lambda v: np.nextafter(v, 1)})


def test_exceptions_of_the_user_are_the_users() -> None:
    def failing(value: object) -> object:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        run("O[i] = failing(x[i])", x=X, module={"failing": failing})
    assert isinstance(sketch("O[i] = same(x[i])", x=X, module={"same": lambda v: v}).value, Read)
