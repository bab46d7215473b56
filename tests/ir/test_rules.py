"""The rows of derivatives: read as expressions, and compared with differences of the primitives themselves."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tcdsl.errors import DslSyntaxError
from tcdsl.ir.expressions import Constant, Expr, Read
from tcdsl.ir.interpreter.point_values import PointValues
from tcdsl.ir.primitives import PRIMITIVES
from tcdsl.ir.text.expression_printer import format_expr
from tcdsl.ir.text.rule_parser import parse_rule

NAMES = ("a", "b", "c")


def scalar(name: str, dtype: str = "float64") -> Read:
    return Read(name, (), (), dtype)


A32, G32 = scalar("a", "float32"), scalar("g", "float32")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("g", "g"),
        ("-g", "-g"),
        ("0", "float32(0.0)"),
        ("-1", "float32(-1.0)"),
        ("2 * g * a", "2.0 * g * a"),
        ("g * (1 - a * a)", "g * (1.0 - a * a)"),
        ("1 * g", "g"),
        ("g / 1", "g"),
        ("-(-g)", "g"),
        ("g if a > 0 else 0", "g if a > 0.0 else 0.0"),
        ("0 if a > 0 and not a == 1 else g", "0.0 if a > 0.0 and not a == 1.0 else g"),
        ("relu_gate(a, g)", "relu_gate(a, g)"),
        ("g * a ** 2", "g * a ** 2.0"),
        ("g * sin(pi / 6)", f"g * {math.sin(math.pi / 6)!r}"),
        ("g / sqrt(2 * pi)", f"g / {math.sqrt(2 * math.pi)!r}"),
        ("2 * pi * a", f"{2 * math.pi!r} * a"),
        ("inf * a", "inf * a"),
        ("max(a, -inf)", "max(a, -inf)"),
        ("let(z := a * a, z * z)", "let(z := a * a, z * z)"),
    ],
)
def test_rules_are_expressions(text: str, expected: str) -> None:
    rule = parse_rule(text, {"a": A32, "g": G32})
    assert rule.dtype == "float32"
    assert format_expr(rule) == expected


def test_names_stand_for_whole_expressions() -> None:
    y = parse_rule("exp(a)", {"a": A32})
    assert format_expr(parse_rule("g * y", {"g": G32, "y": y})) == "g * exp(a)"


def test_a_number_alone_takes_the_type_of_the_derivative() -> None:
    assert parse_rule("0", {"a": scalar("a", "bool"), "g": G32}) == Constant(0.0, "float32")
    assert parse_rule("1", {"a": scalar("a", "int8")}) == Constant(1, "int8")
    assert parse_rule("2", {}) == Constant(2, "int64")


def test_a_condition_chooses_by_a_bool_argument() -> None:
    rule = parse_rule("g if a else 0", {"a": scalar("a", "bool"), "g": G32})
    assert format_expr(rule) == "g if a else 0.0"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("g * q", "q is neither a name of the rule nor a number"),
        ("g * q(a)", "q is not a primitive"),
        ("g +", "this is not an expression"),
        ("a[0]", "neither a name of the rule"),
        ("g and a", r"and_ \(logical\) does not take float32, float32"),
    ],
)
def test_faults_in_rules(text: str, message: str) -> None:
    with pytest.raises(DslSyntaxError, match=message):
        parse_rule(text, {"a": A32, "g": G32})


ROWS = [
    (name, k)
    for name, row in PRIMITIVES.items()
    # stop_gradient has the derivative 0 by definition, not by differences.
    if row.derivatives is not None and row.kind in ("real", "number", "any") and name != "stop_gradient"
    for k in range(row.arity)
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("name", "position"), ROWS)
def test_every_row_is_the_derivative(name: str, position: int, dtype: str) -> None:
    row = PRIMITIVES[name]
    assert row.derivatives is not None
    assert len(row.derivatives) == row.arity
    bindings: dict[str, Expr] = {key: scalar(key, dtype) for key in (*NAMES[: row.arity], "y", "g")}
    rule = parse_rule(row.derivatives[position], bindings)
    assert rule.dtype == dtype
    rng = np.random.default_rng(0)
    step = 1e-6
    for point in rng.uniform(*row.interval, size=(8, row.arity)):
        y = row.evaluate(*map(np.float64, point))
        values = {**dict(zip(NAMES, point, strict=False)), "y": y, "g": 1.5}
        arrays = {key: np.array(value, "float64") for key, value in values.items()}
        analytic = PointValues({}, 1, {}, arrays.__getitem__).single(rule)
        shift = np.eye(row.arity)[position] * step
        high = row.evaluate(*map(np.float64, point + shift))
        low = row.evaluate(*map(np.float64, point - shift))
        numeric = 1.5 * (float(high) - float(low)) / (2 * step)
        assert math.isfinite(numeric)
        assert float(analytic) == pytest.approx(numeric, rel=2e-5, abs=2e-6), point
