"""Simplified and factored values are the values: random expressions with signs, constants, divisors and brackets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tcdsl.ir.expressions import Expr
from tcdsl.ir.interpreter.interpreter import interpret
from tcdsl.ir.program import Program
from tcdsl.simplification.expressions.factoring import factored
from tcdsl.simplification.expressions.tape import shared
from tests.autodiff.programs import program

CONSTANTS = ("0.0", "1.0", "-1.0", "2.0", "-2.0", "0.5", "-0.25", "3.0", "-0.7", "4.0", "1e+308", "inf")
READS = ("a[i]", "b[i]", "c[i]")
INPUTS = "a: float64[N]; b: float64[N]; c: float64[N]"


def expression(rng: np.random.Generator, depth: int) -> str:
    def part() -> str:
        return expression(rng, depth - 1)

    if depth == 0 or rng.random() < 0.1:
        return str(rng.choice(CONSTANTS)) if rng.random() < 0.45 else str(rng.choice(READS))
    kind = rng.random()
    if kind < 0.15:
        return f"-({part()})"
    if kind < 0.7:
        return f"({part()} {rng.choice(['*', '*', '/', '/', '+', '-'])} {part()})"
    if kind < 0.8:
        return f"where({rng.choice(READS)} > 0.0, {part()}, {rng.choice(['0.0', part()])})"
    if kind < 0.85:
        return f"fma({part()}, {part()}, {part()})"
    if kind < 0.9:
        return f"({part()}) ** {rng.choice(['0.0', '1.0', '2.0', '-1.0'])}"
    if kind < 0.93:
        return f"max({rng.choice(READS)}, {part()})"
    return f"{rng.choice(['square', 'abs', 'recip', 'id'])}({part()})"


def evaluated(made: Program, rewritten: Callable[[Expr], Expr]) -> np.ndarray:
    statements = tuple(replace(each, value=rewritten(each.value)) for each in made.statements)
    arrays = [np.array([0.7, -1.3, 2.0]), np.array([1.9, 0.3, -0.6]), np.array([-0.8, 1.1, 0.4])]
    return interpret(replace(made, statements=statements), arrays).outputs[0]


@pytest.mark.parametrize("batch", range(4))
def test_random_expressions(batch: int) -> None:
    for seed in range(120 * batch, 120 * batch + 120):
        text = expression(np.random.default_rng(seed), 2 + seed % 4)
        made = program(INPUTS, "y: float64[N]", f"y[i] = {text} for [i]: 0 <= i < N")
        wanted = evaluated(made, lambda value: value)
        found = evaluated(made, shared)
        # The sign of a zero may change, and with it that of an infinity.
        np.testing.assert_array_equal(np.isfinite(found), np.isfinite(wanted), err_msg=text)
        np.testing.assert_allclose(found[np.isfinite(wanted)], wanted[np.isfinite(wanted)], rtol=1e-12, err_msg=text)
        # Factoring may overflow elsewhere, and adds in another order.
        if np.isfinite(wanted).all() and "e+308" not in text:
            np.testing.assert_allclose(evaluated(made, factored), wanted, rtol=1e-9, atol=1e-12, err_msg=text)


@pytest.mark.parametrize(
    "text", ["2.0 * a[i] / (-2.0 * b[i])", "-4.0 * a[i] / (2.0 * b[i])", "a[i] * 2.0 / (b[i] * -8.0)"]
)
def test_constants_cancel_with_their_signs(text: str) -> None:
    made = program(INPUTS, "y: float64[N]", f"y[i] = {text} for [i]: 0 <= i < N")
    np.testing.assert_array_equal(evaluated(made, shared), evaluated(made, lambda value: value))
