from __future__ import annotations

import pytest

from tcdsl.ir.build import apply, cast, constant, index, integer, result_dtype, size, truth
from tcdsl.ir.expressions import Apply, Boundary, Cast, Constant, Expr, Read
from tcdsl.ir.program import Tensor as Declared
from tcdsl.ir.text.expression_printer import format_expr
from tests.ir.notation import parse_expr

SCOPE = {
    "x": Declared("x", "float32", ()),
    "n": Declared("n", "int32", ()),
    "p": Declared("p", "bool", ()),
    "q": Declared("q", "bool", ()),
}


def rebuilt(expr: Expr) -> Expr:
    """``expr`` through `apply`, innermost first."""
    if isinstance(expr, Apply):
        return apply(expr.primitive, *map(rebuilt, expr.arguments))
    if isinstance(expr, Cast):
        return cast(rebuilt(expr.operand), expr.dtype)
    return expr


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n + 0", "n"),
        ("0 + n", "n"),
        ("n - 0", "n"),
        ("n - n", "int32(0)"),
        ("n * 1", "n"),
        ("1 * n", "n"),
        ("n * 0", "int32(0)"),
        ("0 * n", "int32(0)"),
        ("n // 1", "n"),
        ("n % 1", "int32(0)"),
        ("--n", "n"),
        ("max(n, n)", "n"),
        ("min(n, n)", "n"),
        # floats: only what keeps NaN, inf and signed zeros
        ("x - 0.0", "x"),
        ("x * 1.0", "x"),
        ("1.0 * x", "x"),
        ("x / 1.0", "x"),
        ("max(x, x)", "x"),
        ("x + 0.0", "x + 0.0"),
        ("x - -0.0", "x - -0.0"),
        ("0.0 + x", "0.0 + x"),
        ("x - x", "x - x"),
        ("x * 0.0", "x * 0.0"),
        ("x // 1.0", "x // 1.0"),
        ("x % 1.0", "x % 1.0"),
        # logic
        ("not True", "False"),
        ("True and p", "p"),
        ("False and p", "False"),
        ("p and True", "p"),
        ("p and False", "p and False"),
        ("True or p", "True"),
        ("False or p", "p"),
        ("p or False", "p"),
        ("p or True", "p or True"),
        ("x if True else x + x", "x"),
        ("x if False else x + x", "x + x"),
        ("x if p else x", "x"),
        ("x if p else 0.0", "x if p else 0.0"),
        ("n if p and True else n + 0", "n"),
        # int64 constants
        ("2 + 3 * 4 - 20 // 3 % 4", "12"),
        ("-7 // 2", "-4"),
        ("max(2, 3) if 2 < 3 else min(2, 3)", "3"),
        ("7 // 0", "7 // 0"),
        ("7 % 0", "7 % 0"),
        ("9223372036854775807 + 1", "9223372036854775807 + 1"),
    ],
)
def test_simplifications(text: str, expected: str) -> None:
    assert format_expr(rebuilt(parse_expr(text, SCOPE))) == expected


@pytest.mark.parametrize(
    ("operand", "dtype", "expected"),
    [
        (constant(3, "int64"), "float32", constant(3.0, "float32")),
        (constant(3, "int64"), "int64", constant(3, "int64")),
        (constant(True, "bool"), "int8", constant(1, "int8")),
        (constant(0.5, "float64"), "float32", constant(0.5, "float32")),
        (constant(3.5, "float64"), "int64", Cast(constant(3.5, "float64"), "int64")),
        (size("N"), "int64", size("N")),
        (size("N"), "float32", Cast(size("N"), "float32")),
    ],
)
def test_casts(operand: Expr, dtype: str, expected: Expr) -> None:
    assert cast(operand, dtype) == expected


@pytest.mark.parametrize(
    ("primitive", "dtypes", "expected"),
    [
        ("exp", ("float32",), "float32"),
        ("add", ("uint8", "uint8"), "uint8"),
        ("lt", ("float64", "float64"), "bool"),
        ("eq", ("bool", "bool"), "bool"),
        ("and_", ("bool", "bool"), "bool"),
        ("bit_and", ("bool", "bool"), "bool"),
        ("where", ("bool", "int8", "int8"), "int8"),
        ("fst", ("bool", "bool"), "bool"),
    ],
)
def test_types_of_results(primitive: str, dtypes: tuple[str, ...], expected: str) -> None:
    assert result_dtype(primitive, dtypes) == expected


@pytest.mark.parametrize(
    ("primitive", "dtypes", "message"),
    [
        ("exp", ("int64",), r"exp \(real\) does not take int64"),
        ("exp", ("float64", "float64"), "exp takes 1 arguments, not 2"),
        ("add", ("bool", "bool"), r"add \(number\) does not take bool, bool"),
        ("add", ("int8", "int16"), r"add \(number\) does not take int8, int16"),
        ("shift_left", ("bool", "bool"), r"shift_left \(integer\)"),
        ("bit_or", ("float32", "float32"), r"bit_or \(bits\)"),
        ("not_", ("int64",), r"not_ \(logical\)"),
        ("where", ("int8", "int8", "int8"), "the first argument of where is int8, not bool"),
        ("where", ("bool", "int8", "int16"), r"where \(select\)"),
    ],
)
def test_types_that_do_not_fit(primitive: str, dtypes: tuple[str, ...], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        result_dtype(primitive, dtypes)


def test_leaves() -> None:
    assert integer(3) == Constant(3, "int64")
    assert truth(False) == Constant(False, "bool")
    assert index("i").dtype == size("N").dtype == "int64"
    assert type(constant(1, "float16").value) is float
    assert type(constant(1.0, "uint8").value) is int
    assert type(constant(1, "bool").value) is bool
    read = Read("x", (integer(0),), (Boundary.SKIP,), "float32")
    assert apply("mul", read, constant(1, "float32")) is read
