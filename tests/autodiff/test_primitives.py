"""Every row of the table of primitives: its derivatives against differences, and against JAX where that has it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tcdsl.autodiff import adjoint, gradient, tangent
from tcdsl.autodiff.statement_derivatives import scalar
from tcdsl.errors import DifferentiationError
from tcdsl.ir.primitives import PRIMITIVES, Primitive
from tcdsl.ir.program import Program
from tests.autodiff.programs import check, program, pulled_back, text_of_adjoint
from tests.jax_functions import compiled

NAMES = "abc"
DIFFERENTIABLE = [
    row
    for row in PRIMITIVES.values()
    if row.kind in ("real", "number", "any") and row.name not in ("floor_div", "stop_gradient")
]
IN_JAX = {
    "exp": "exp",
    "exp2": "exp2",
    "expm1": "expm1",
    "log": "log",
    "log2": "log2",
    "log1p": "log1p",
    "sin": "sin",
    "cos": "cos",
    "tan": "tan",
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "sinh": "sinh",
    "cosh": "cosh",
    "tanh": "tanh",
    "asinh": "arcsinh",
    "acosh": "arccosh",
    "atanh": "arctanh",
    "sqrt": "sqrt",
    "abs": "abs",
    "square": "square",
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "div": "divide",
    "pow": "power",
    "mod": "mod",
    "atan2": "arctan2",
    "max": "maximum",
    "min": "minimum",
}


def elementwise(row: Primitive) -> Program:
    inputs = "; ".join(f"{name}: float64[N]" for name in NAMES[: row.arity])
    arguments = ", ".join(f"{name}[i]" for name in NAMES[: row.arity])
    return program(inputs, "y: float64[N]", f"y[i] = {row.name}({arguments}) for [i]: 0 <= i < N")


def samples(row: Primitive) -> list[np.ndarray]:
    # Evenly spaced with an irrational offset, so that no two arguments are equal and no kink is met.
    if row.name == "mod":
        # It jumps where the quotient is whole.
        return [np.array([-1.1, 0.3, 2.0, 4.9, -0.4]), np.array([1.7, 1.3, 1.5, 1.9, -1.6])]
    low, high = row.interval
    points = np.linspace(low, high, 7)[1:-1] * 0.97 + (high - low) * 0.0123
    return [np.roll(points, shift) for shift in range(row.arity)]


@pytest.mark.parametrize("row", DIFFERENTIABLE, ids=lambda row: row.name)
def test_derivatives(row: Primitive) -> None:
    check(elementwise(row), *samples(row))


@pytest.mark.parametrize("row", DIFFERENTIABLE, ids=lambda row: row.name)
def test_derivatives_inside_a_sum(row: Primitive) -> None:
    made = elementwise(row)
    inputs = "; ".join(f"{tensor.name}: float64[N]" for tensor in made.inputs)
    inner = "{0}[i]" if row.name == "mod" else "sin({0}[i]) + {0}[i]"
    arguments = ", ".join(inner.format(name) for name in NAMES[: row.arity])
    body = f"y[()] += {row.name}({arguments}) * 3.0 for [i]: 0 <= i < N"
    narrower = [0.5 * argument if row.interval[0] >= 0 else 0.3 * argument for argument in samples(row)]
    if row.name in ("acosh", "mod"):
        narrower = samples(row)
    check(program(inputs, "y: float64", body), *narrower)


@pytest.mark.parametrize("name", IN_JAX)
def test_against_jax(name: str) -> None:
    jax = pytest.importorskip("jax")
    row = PRIMITIVES[name]
    inputs = samples(row)
    seed = np.linspace(0.5, 1.5, len(inputs[0]))
    with jax.enable_x64(True):
        pull = compiled(lambda seed, *at: jax.vjp(getattr(jax.numpy, IN_JAX[name]), *at)[1](seed))
        expected = [np.asarray(array) for array in pull(seed, *inputs)]
    found = pulled_back(elementwise(row), inputs, [seed], NAMES[: row.arity])
    for own, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(own, theirs, rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "argument", "slope"),
    [
        ("abs", 0.0, 0.0),
        ("relu", 0.0, 0.0),
        ("sat01", 0.0, 0.0),
        ("sat01", 1.0, 0.0),
        ("relu", 2.0, 1.0),
        ("sat01", 0.5, 1.0),
    ],
)
def test_kinks(name: str, argument: float, slope: float) -> None:
    (da,) = pulled_back(elementwise(PRIMITIVES[name]), [[argument]], [[1.0]], ["a"])
    np.testing.assert_array_equal(da, [slope])


@pytest.mark.parametrize("name", ["max", "min"])
def test_two_arguments_that_tie_share(name: str) -> None:
    da, db = pulled_back(elementwise(PRIMITIVES[name]), [[2.0], [2.0]], [[3.0]], ["a", "b"])
    assert (da, db) == (1.5, 1.5)


def test_powers_with_constant_exponents() -> None:
    made = program(
        "a: float64[N]", "y: float64[N]", "y[i] = a[i] ** 3.0 + a[i] ** 2.0 + a[i] ** 0.0 for [i]: 0 <= i < N"
    )
    check(made, [1.5, -0.7])
    assert "log" not in text_of_adjoint(made, ["a"])
    (da,) = pulled_back(made, [[0.0]], [[1.0]], ["a"])
    assert da == 0


@pytest.mark.parametrize("name", ["sign", "floor", "ceil", "round", "stop_gradient"])
def test_derivatives_that_are_zero_leave_no_arithmetic(name: str) -> None:
    assert "d_a[z0] = 0.0  for" in text_of_adjoint(elementwise(PRIMITIVES[name]), ["a"])


def test_stop_gradient() -> None:
    made = program("a: float64", "y: float64", "y[()] = a[()] * stop_gradient(a[()]) for []:")
    (da,) = pulled_back(made, [3.0], [2.0], ["a"])
    assert da == 6


def test_values_are_read_from_the_result() -> None:
    for name in ("tanh", "sigmoid", "exp"):
        assert text_of_adjoint(elementwise(PRIMITIVES[name]), ["a"]).count(f"{name}(") == 1


@pytest.mark.parametrize("derivative", [adjoint, gradient, tangent])
def test_a_missing_rule_names_the_primitive_and_the_argument(
    monkeypatch: pytest.MonkeyPatch, derivative: Callable[[Program, list[str]], Program]
) -> None:
    ruleless = {**PRIMITIVES, "atan2": replace(PRIMITIVES["atan2"], derivatives=None)}
    monkeypatch.setattr(scalar, "PRIMITIVES", MappingProxyType(ruleless))
    hint = "@f.defvjp gives an op that uses it a rule of its own"
    made = elementwise(PRIMITIVES["atan2"])
    for name, place in (("a", 1), ("b", 2)):
        with pytest.raises(DifferentiationError, match=f"atan2 has no derivative by its argument {place}\\n.*{hint}"):
            derivative(made, [name])
    # What does not depend on the argument needs no rule.
    stopped = "y[i] = atan2(stop_gradient(a[i]), 2.0) * b[i] for [i]: 0 <= i < N"
    derivative(program("a: float64[N]; b: float64[N]", "y: float64[N]", stopped), ["a", "b"])


def test_a_missing_rule_is_shown_where_it_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    @op
    def loss(x):
        t[()] += x[i] * erf(x[i])
        return t

    monkeypatch.setattr(
        scalar, "PRIMITIVES", MappingProxyType({**PRIMITIVES, "erf": replace(PRIMITIVES["erf"], derivatives=None)})
    )
    shown = "erf has no derivative by its argument 1\n    t[()] += x[i] * erf(x[i])\n                    ^^^^^^^^^\n"
    with pytest.raises(DifferentiationError, match=re.escape(shown)):
        tc.grad(loss)(np.ones(3))
