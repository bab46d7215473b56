from __future__ import annotations

import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tcdsl.errors import DslSyntaxError
from tcdsl.ir.build import integer, truth
from tcdsl.ir.expressions import Apply, Boundary, Cast, Constant, Expr, IndexValue, Let, Local, Read, SizeValue
from tcdsl.ir.program import Tensor
from tcdsl.ir.text.expression_printer import ExpressionPrinter, format_expr
from tests.ir.expression_strategies import SIZES, TENSORS, VARIABLES, expressions
from tests.ir.notation import parse_expr

SCOPE = {
    "x": Tensor("x", "float32", (SizeValue("N"),)),
    "y": Tensor("y", "float64", (SizeValue("N"), SizeValue("M"))),
    "ids": Tensor("ids", "int64", (SizeValue("N"),)),
    "mask": Tensor("mask", "bool", (SizeValue("N"),)),
    "bytes_in": Tensor("bytes_in", "uint8", (SizeValue("N"),)),
    "half": Tensor("half", "float16", (SizeValue("N"),)),
    "m": Tensor("m", "float32", ()),
}


def read(text: str, dtype: str | None = None) -> Expr:
    return parse_expr(text, SCOPE, ("N", "M"), ("i", "j"), dtype)


def written(expr: Expr, dtype: str | None = None) -> str:
    text = format_expr(expr, dtype)
    again = read(text, dtype)
    assert again == expr
    assert repr(again) == repr(expr)  # tells 0.0 from -0.0
    return text


# What is written is what is read: the texts on which printer and parser agree, character by character.
@pytest.mark.parametrize(
    "text",
    [
        "x[i]",
        "x[i + 1] * 2.0",
        "y[i, j] + 1.0",
        "m",
        "half[i] + x[i]",
        "exp(x[i] - m)",
        "x[i] - (x[i] - m)",
        "x[i] - x[i] - m",
        "x[i] / (x[i] / m)",
        "(x[i] + m) * m",
        "x[i] ** 2.0 ** m",
        "(x[i] ** 2.0) ** m",
        "(-x[i]) ** 2.0",
        "-x[i] ** 2.0",
        "(-2.0) ** x[i]",
        "2.0 ** -x[i]",
        "x[i] * -2.0",
        "--x[i]",
        "-inf + x[i]",
        "neg(inf) + x[i]",
        "nan * x[i]",
        "max(x[i], 0.0)",
        "fma(x[i], 2.0, m)",
        "relu_gate(x[i], 1.0)",
        "1.0 if mask[i] else x[i]",
        "x[i] if i < N else m if mask[i] else 0.0",
        "(x[i] if mask[i] else m) + 1.0",
        "m if (mask[i] if i < 3 else True) else 0.0",
        "mask[i] and mask[j] and i < j",
        "mask[i] and (mask[j] and i < j)",
        "mask[i] or mask[j] and not mask[i]",
        "(mask[i] or mask[j]) and not i < j",
        "(i < j) == mask[i]",
        "not i == j",
        "mask[i] & mask[j] | (i < j) ^ True",
        "~bytes_in[i] << 3 & 7",
        "(bytes_in[i] | 1) + 2",
        "i // 2 % 3 - j",
        "N - 2 * i",
        "float32(i) / 2.0",
        "float32(float64(2.0)) + x[i]",
        "int64(x[i] * 0.5)",
        "bool(bytes_in[i])",
        "float64(x[i]) + y[i, j] + 0.1",
        "float32(1.5) < 2.0",
        "float64(m) + 2.0",
        "uint8(3) + 4 < 5",
        "3 < 4",
        "3.0 < 4.0",
        "x[clamp(i - 1)]",
        "y[wrap(i + 1), reflect(j - 1)]",
        "y[symmetric(i), j]",
        "x[ids[i]]",
        "x[skip(ids[i])]",
        "x[check(i)]",
        "get(x[i - 1], 0.0)",
        "get(x[ids[i]], inf)",
        "get(y[skip(i), j - 1], 0.5) + 1.0",
        "get(y[clamp(i), j], float64(m)) * 2.0",
        "let(z := x[i] * x[i], z + z)",
        "let(z := x[i], w := z * m, w - z) * 2.0",
        "let(z := 3, x[z])",
        "let(z := let(w := m, w + w), z)",
        "let(z := m, let(z := z + 1.0, z) + z)",
        "let(z := x[i], 0.0) + 1.0 < m",
    ],
)
def test_notation(text: str) -> None:
    assert written(read(text)) == text


@pytest.mark.parametrize(
    ("text", "dtype", "expected"),
    [
        ("2", "float32", Constant(2.0, "float32")),
        ("2", None, Constant(2, "int64")),
        ("2.0", None, Constant(2.0, "float64")),
        ("-0.0", "float32", Constant(-0.0, "float32")),
        ("18446744073709551615", "uint64", Constant(2**64 - 1, "uint64")),
        ("-128", "int8", Constant(-128, "int8")),
        ("True", "bool", Constant(True, "bool")),
        ("inf", "float16", Constant(math.inf, "float16")),
        ("uint8(7)", "float32", Constant(7, "uint8")),
        ("+m", None, Read("m", (), (), "float32")),
        ("1 + 2.5", None, Apply("add", (Constant(1.0, "float64"), Constant(2.5, "float64")), "float64")),
        ("1 if i < 2.0 else 2", None, None),
        ("sqrt(2)", None, Apply("sqrt", (Constant(2.0, "float64"),), "float64")),
        ("1 / 2", "float32", Apply("div", (Constant(1.0, "float32"), Constant(2.0, "float32")), "float32")),
    ],
)
def test_numbers_take_the_type_of_their_place(text: str, dtype: str | None, expected: Expr | None) -> None:
    if expected is None:
        with pytest.raises(DslSyntaxError, match=r"2\.0 is not a number of type int64"):
            read(text, dtype)
    else:
        assert repr(read(text, dtype)) == repr(expected)


def test_a_chain_of_comparisons_is_a_conjunction() -> None:
    i, size = IndexValue("i"), SizeValue("N")
    low = Apply("le", (integer(0), i), "bool")
    high = Apply("lt", (i, size), "bool")
    assert read("0 <= i < N") == Apply("and_", (low, high), "bool")


@pytest.mark.parametrize(
    ("expr", "dtype", "text"),
    [
        (Constant(2.0, "float32"), None, "float32(2.0)"),
        (Constant(2.0, "float32"), "float32", "2.0"),
        (Constant(3, "int8"), "int64", "int8(3)"),
        (Apply("neg", (Constant(2.0, "float32"),), "float32"), "float32", "neg(2.0)"),
        (Apply("neg", (Constant(2.0, "float32"),), "float32"), None, "neg(float32(2.0))"),
        (
            Apply("add", (Constant(2.0, "float32"), Constant(3.0, "float32")), "float32"),
            None,
            "float32(2.0) + 3.0",
        ),
        (Cast(Constant(2, "int64"), "float32"), "float32", "float32(int64(2))"),
        (Cast(Constant(-2.5, "float64"), "int8"), None, "int8(float64(-2.5))"),
        (Let("z", Constant(2.0, "float32"), Local("z", "float32")), None, "let(z := float32(2.0), z)"),
        (Let("m", Read("m", (), (), "float32"), Local("m", "float32")), None, "let(m := m[()], m)"),
        (Read("x", (integer(0),), (Boundary.SKIP,), "float32"), None, "x[0]"),
        (truth(True), None, "True"),
    ],
)
def test_types_that_nothing_shows_are_marked(expr: Expr, dtype: str | None, text: str) -> None:
    assert written(expr, dtype) == text


def test_a_tensor_hidden_by_an_index_variable_is_read_with_brackets() -> None:
    scope = {"i": Tensor("i", "float32", ())}
    expr = Apply("mul", (Cast(IndexValue("i"), "float32"), Read("i", (), (), "float32")), "float32")
    text = format_expr(expr)
    assert text == "float32(i) * i[()]"
    assert parse_expr(text, scope, (), ("i",)) == expr


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(expressions(), st.booleans())
def test_every_expression_reads_back(expr: Expr, typed: bool) -> None:
    dtype = expr.dtype if typed else None
    text = ExpressionPrinter((*SIZES, *VARIABLES)).text(expr, dtype)
    assert repr(parse_expr(text, TENSORS, SIZES, VARIABLES, dtype)) == repr(expr)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x[i", "this is not an expression"),
        ("", "an expression is missing"),
        ("q + m", "the name q is not defined"),
        ("x + m", r"x has 1 axes and no index\n.*\n.*\nwrite x\[\.\.\.\]"),
        ("x[i, j]", "x has 1 axes, not 2"),
        ("q[i]", "there is no tensor named q"),
        ("x[m]", "an index is an int64, not a float32"),
        ("x[i] + y[i, j]", r"add \(number\) does not take float32, float64"),
        ("x[i] and mask[i]", r"and_ \(logical\) does not take float32, bool"),
        ("bytes_in[i] + 300", "300 is not a number of type uint8"),
        ("bytes_in[i] + 1.5", "1.5 is not a number of type uint8"),
        ("frobnicate(m)", "frobnicate is not a primitive"),
        ("exp(m, m)", "exp takes 1 arguments, not 2"),
        ("float32(m, m)", "a cast takes one argument"),
        ("get(m + 1)", "get takes a read and a value"),
        ("let(z, m)", "written name := value"),
        ("let(z := m)", "let takes definitions and a value"),
        ("m if x[i] else m", "the first argument of where is float32, not bool"),
        ("[m]", "this notation is not part of the language"),
        ("i in N", "this comparison is not part of the language"),
        ("'text'", "this notation is not part of the language"),
        ("m @ m", "this notation is not part of the language"),
        ("(m)(m)", "m is not a primitive"),
        ("m.size", "this notation is not part of the language"),
        ("exp(a=m)", "this notation is not part of the language"),
    ],
)
def test_faults_are_explained(text: str, message: str) -> None:
    with pytest.raises(DslSyntaxError, match=message):
        read(text)


def test_a_fault_points_at_its_place() -> None:
    with pytest.raises(DslSyntaxError) as caught:
        read("m * (1.0 +\n  exp(q))")
    assert str(caught.value).split("\n") == [
        "<text>:2: the name q is not defined",
        "      exp(q))",
        "          ^",
    ]


def test_a_fault_points_at_characters_not_bytes() -> None:
    with pytest.raises(DslSyntaxError) as caught:
        parse_expr("größe + maß * größe", {"größe": Tensor("größe", "float32", ())})
    assert str(caught.value).split("\n") == [
        "<text>:1: the name maß is not defined",
        "    größe + maß * größe",
        "            ^^^",
    ]
