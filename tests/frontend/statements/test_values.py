"""Promotion, casts and primitives on scalars, against NumPy 2."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tcdsl.errors import DslSyntaxError, DtypeError
from tcdsl.frontend.symbols.recognition import recognize
from tcdsl.frontend.symbols.scalar_primitives import apply_primitive, call_function
from tcdsl.frontend.symbols.values import Value, require_fitting, store_value, stored_dtype, sum_dtype
from tcdsl.ir.dtypes import DTYPES, compute_dtype
from tcdsl.ir.expressions import Constant, Let, Read, children, walk
from tcdsl.ir.interpreter.point_values import PointValues
from tests.frontend.statements.small_function import run

NUMBERS = [dtype for dtype in DTYPES if dtype != "bool"]


def cell(dtype: str, name: str = "t") -> Value:
    return Value(Read(name, (), (), compute_dtype(dtype)), None, dtype)


def result(primitive: str, *dtypes: str) -> str:
    return apply_primitive(primitive, [cell(dtype, f"t{k}") for k, dtype in enumerate(dtypes)]).logical


def well_typed(value: Value) -> None:
    assert value.expr.dtype == compute_dtype(value.logical)


@pytest.mark.parametrize(("left", "right"), list(itertools.product(NUMBERS, NUMBERS)))
def test_arithmetic_promotes_like_numpy(left: str, right: str) -> None:
    wanted = str((np.ones(1, left) + np.ones(1, right)).dtype)
    for primitive in ("add", "sub", "mul", "max", "min"):
        value = apply_primitive(primitive, [cell(left), cell(right)])
        assert value.logical == wanted
        well_typed(value)
    assert result("lt", left, right) == "bool"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("number", [True, 2, 2.5])
def test_python_numbers_are_weak(dtype: str, number: Any) -> None:
    if dtype == "bool" and isinstance(number, bool):
        return
    wanted = str((np.ones(1, dtype) + number).dtype)
    value = apply_primitive("add", [cell(dtype), Value.of(number)])
    assert value.logical == wanted
    well_typed(value)


@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_scalars_have_their_type(dtype: str) -> None:
    wanted = str((np.ones(1, "float32") * np.float64(2)).dtype)
    assert apply_primitive("mul", [cell("float32"), Value.of(np.float64(2))]).logical == wanted
    value = Value.of(np.ones(1, dtype)[0])
    assert (value.weak, value.logical) == (None, dtype)


def test_sums_of_bools_are_bools_and_bool_takes_the_other_type() -> None:
    assert result("add", "bool", "bool") == "bool"
    assert result("abs", "bool") == result("floor", "bool") == "bool"
    assert result("add", "bool", "int8") == "int8"
    assert result("mul", "bool", "float32") == "float32"
    assert result("mul", "uint8", "bool") == "uint8"
    assert result("mul", "bool", "bool") == "bool"


def test_division_and_functions_of_integers_are_float64() -> None:
    for dtype in ("int8", "uint64", "bool"):
        assert result("div", dtype, dtype) == "float64"
        assert result("exp", dtype) == "float64"
        assert result("sqrt", dtype) == "float64"
    assert result("div", "int8", "float32") == "float32"
    assert result("exp", "float16") == "float16"
    assert result("floor", "int16") == "int16"


def test_float16_is_computed_as_float32() -> None:
    value = apply_primitive("mul", [cell("float16"), cell("float16")])
    assert (value.logical, value.expr.dtype) == ("float16", "float32")
    assert result("mul", "float16", "float32") == "float32"
    assert result("mul", "float16", "int16") == "float32"


def test_python_integers_must_fit() -> None:
    # Where they are values; an index of data and numbers is an integer of any size.
    made = apply_primitive("add", [cell("int8"), Value.of(300)])
    with pytest.raises(DtypeError, match="300 does not fit in int8"):
        require_fitting(children(made.expr)[1])
    with pytest.raises(DtypeError, match="-1 does not fit in uint8"):
        store_value(Value.of(-1), "uint8")
    require_fitting(children(apply_primitive("mul", [cell("int8"), Value.of(-128)]).expr)[1])
    assert result("lt", "uint8", "int64") == "bool"


@pytest.mark.parametrize("primitive", ["lt", "le", "gt", "ge", "eq", "ne"])
@pytest.mark.parametrize("number", [-1, 0, 7, 300, 2**63, 2**70, -(2**70)])
@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint64", "int64"])
def test_comparisons_with_any_integer_are_exact(primitive: str, number: int, dtype: str) -> None:
    ends = np.iinfo(dtype)
    for held in (ends.min, 7, ends.max):
        for swapped in (False, True):
            pair = [Value.of(np.array(held, dtype)[()]), Value.of(number)]
            value = apply_primitive(primitive, pair[::-1] if swapped else pair)
            sides = (number, int(held)) if swapped else (int(held), number)
            assert evaluated(value) == getattr(operator, primitive)(*sides)


@pytest.mark.parametrize("primitive", ["lt", "le", "gt", "ge", "eq", "ne"])
def test_signed_and_unsigned_compare_as_numbers(primitive: str) -> None:
    for signed, unsigned in itertools.product((-1, 0, 5, 2**62), (0, 5, 2**63, 2**64 - 1)):
        for swapped in (False, True):
            pair = [Value.of(np.int64(signed)), Value.of(np.uint64(unsigned))]
            sides = [signed, unsigned]
            value = apply_primitive(primitive, pair[::-1] if swapped else pair)
            assert evaluated(value) == getattr(operator, primitive)(*(sides[::-1] if swapped else sides))


def evaluated(value: Value) -> Any:
    return PointValues({}, 1, {}, {}.__getitem__).single(value.expr)


@pytest.mark.parametrize("exponent", range(-9, 18))
def test_integral_powers_multiply_repeatedly(exponent: int) -> None:
    x = np.array([1.5, -2.0, 0.25])
    np.testing.assert_allclose(run(f"O[i] = x[i] ** {exponent}", x=x), x**exponent, rtol=1e-14)
    value = apply_primitive("pow", [cell("float64"), Value.of(exponent)])
    assert not any(getattr(node, "primitive", "") == "pow" for node in walk(value.expr))
    # The base is computed once.
    assert sum(isinstance(node, Read) for node in walk(value.expr)) == 1


def test_integer_powers() -> None:
    n = np.array([3, -2, 7], np.int32)
    found = run("O[i] = n[i] ** 5", n=n)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, n**5)
    with pytest.raises(DtypeError, match="negative integer powers"):
        run("O[i] = n[i] ** -1", n=n)
    np.testing.assert_allclose(run("O[i] = n[i] ** -1.0", n=n), n**-1.0)
    np.testing.assert_allclose(run("O[i] = x[i] ** 0.5", x=np.array([4.0, 2.0])), [2.0, 2**0.5])


N, I = np.array([3, 1, 2]), np.arange(3)
NEGATED = {
    "2 ** -n[i]": ("2.0 ** -n[i]", 2.0**-N),
    "n[i] ** -i": ("float64(n[i]) ** -i", N ** -(I * 1.0)),
    "n[i] ** -(2 * n[i])": ("float64(n[i]) ** -(2 * n[i])", N ** (-2.0 * N)),
    "2 ** (n[i] * -2)": ("2.0 ** (n[i] * -2)", 2.0 ** (-2 * N)),
    "n[i] ** int8(-i)": ("float64(n[i]) ** int8(-i)", N ** -(I * 1.0)),
}


@pytest.mark.parametrize("power", NEGATED)
def test_integer_powers_whose_exponent_is_negated_are_refused(power: str) -> None:
    with pytest.raises(
        DtypeError, match=r"no negative integer powers(.|\n)*make the base a float: `(2\.0|float64\(x\)) "
    ):
        run(f"O[i] = {power}", n=N)
    written, expected = NEGATED[power]
    np.testing.assert_allclose(run(f"O[i] = {written} + 0.0 * n[i]", n=N), expected)


def test_negations_may_stand_in_exponents() -> None:
    np.testing.assert_array_equal(run("O[i] = 2 ** (5 - n[i])", n=N), 2 ** (5 - N))
    np.testing.assert_array_equal(run("O[i] = 2 ** (-n[i] % 4)", n=N), 2 ** (-N % 4))
    np.testing.assert_array_equal(run("O[i] = 2 ** (-n[i] * -1)", n=N), 2**N)
    np.testing.assert_array_equal(run("O[i] = 2 ** abs(-n[i])", n=N), 2**N)


def test_powers_of_powers_have_lets_of_their_own() -> None:
    value = apply_primitive("pow", [apply_primitive("pow", [cell("float64"), Value.of(3)]), Value.of(5)])
    names = [node.name for node in walk(value.expr) if isinstance(node, Let)]
    assert len(names) == len(set(names)) == 2


def test_an_access_is_never_simplified_away() -> None:
    # The range of i comes from n, whatever n is multiplied with.
    n = np.array([3, 4])
    np.testing.assert_array_equal(run("O[i] = n[i] * 0", n=n), [0, 0])
    np.testing.assert_array_equal(run("O[i] = n[i] - n[i]", n=n), [0, 0])
    np.testing.assert_array_equal(run("O[i] = n[i] ** 0", n=n), [1, 1])
    np.testing.assert_array_equal(run("O[i] = n[i] % 1", n=n), [0, 0])
    np.testing.assert_array_equal(run("O[i] = False * n[i] + n[i] * 0", n=n), [0, 0])


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("O[i] = a[i] // 3", lambda a, f, b: a // 3),
        ("O[i] = a[i] % 3", lambda a, f, b: a % 3),
        ("O[i] = f[i] // 0.75", lambda a, f, b: f // 0.75),
        ("O[i] = f[i] % 0.75", lambda a, f, b: f % 0.75),
        ("O[i] = a[i] & 6", lambda a, f, b: a & 6),
        ("O[i] = a[i] | 6", lambda a, f, b: a | 6),
        ("O[i] = a[i] ^ 6", lambda a, f, b: a ^ 6),
        ("O[i] = ~a[i]", lambda a, f, b: ~a),
        ("O[i] = a[i] << 2", lambda a, f, b: a << 2),
        ("O[i] = a[i] >> 1", lambda a, f, b: a >> 1),
        ("O[i] = b[i] & (f[i] > 0)", lambda a, f, b: b & (f > 0)),
        ("O[i] = b[i] | (f[i] > 0)", lambda a, f, b: b | (f > 0)),
        ("O[i] = b[i] ^ (f[i] > 0)", lambda a, f, b: b ^ (f > 0)),
        ("O[i] = ~b[i]", lambda a, f, b: ~b),
        ("O[i] = not a[i]", lambda a, f, b: a == 0),
        ("O[i] = a[i] and f[i] > 0", lambda a, f, b: (a != 0) & (f > 0)),
        ("O[i] = 0 <= a[i] < 5", lambda a, f, b: (a >= 0) & (a < 5)),
        ("O[i] = where(b[i], a[i], f[i])", lambda a, f, b: np.where(b, a, f)),
        ("O[i] = a[i] if b[i] else 2 * f[i]", lambda a, f, b: np.where(b, a, 2 * f)),
        ("O[i] = max(a[i], f[i], 1)", lambda a, f, b: np.maximum(np.maximum(a, f), 1)),
        ("O[i] = min(b[i], f[i] > 0)", lambda a, f, b: b & (f > 0)),
        ("O[i] = int(f[i])", lambda a, f, b: f.astype(np.int64)),
        ("O[i] = float(a[i])", lambda a, f, b: a.astype(np.float64)),
        ("O[i] = bool(a[i])", lambda a, f, b: a != 0),
        ("O[i] = float32(f[i]) + a[i]", lambda a, f, b: f.astype(np.float32) + a),
        ("O[i] = i * f[i] + f.shape[0]", lambda a, f, b: np.arange(5) * f + 5),
        ("O[i] = f[i] * 2 * pi", lambda a, f, b: f * 2 * np.pi),
        ("O[i] = min(f[i], inf)", lambda a, f, b: f),
        ("O[i] = a[i] / 2", lambda a, f, b: a / 2),
        ("O[i] = +f[i] - -f[i]", lambda a, f, b: 2 * f),
        ("O[i] = fma(f[i], a[i], 1)", lambda a, f, b: f * a + 1),
        ("O[i] = pow(f[i], 2)", lambda a, f, b: f * f),
        ("O[i] = abs(a[i])", lambda a, f, b: abs(a)),
        ("O[i] = relu_gate(a[i], f[i])", lambda a, f, b: np.where(a > 0, f, 0)),
    ],
)
def test_operators_and_functions(source: str, wanted: Callable[..., np.ndarray]) -> None:
    a = np.array([-7, 0, 3, 5, 12])
    f = np.array([-1.5, 0.0, 2.25, -0.5, 4.0])
    b = np.array([True, False, True, True, False])
    expected = wanted(a, f, b)
    found = run(source, a=a, f=f, b=b)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected)


def test_functions_are_recognized_wherever_they_come_from() -> None:
    import math

    names = {"np": np, "math": math, "squash": np.tanh}
    x = np.array([0.5, 1.5])
    source = "O[i] = math.exp(x[i]) + np.sqrt(x[i]) + squash(x[i]) + np.maximum(x[i], 1) + math.log(x[i], 2)"
    wanted = np.exp(x) + np.sqrt(x) + np.tanh(x) + np.maximum(x, 1) + np.log2(x)
    np.testing.assert_allclose(run(source, x=x, module=names), wanted)
    assert recognize(np.float32) == "float32"
    assert recognize(len) is None


def test_functions_of_configuration_stay_weak() -> None:
    # np.sqrt(2) is a float64 for NumPy; here it is the primitive, and as weak as 2.
    x = np.ones(2, np.float32)
    assert run("O[i] = x[i] * np.sqrt(2)", x=x, module={"np": np}).dtype == np.float32
    assert run("O[i] = x[i] * np.float64(2)", x=x, module={"np": np}).dtype == np.float64
    assert run("O[i] = x[i] * (2 * pi)", x=x).dtype == np.float32


def test_constants_are_folded_as_python_does() -> None:
    value = apply_primitive("mul", [Value.of(2), Value.of(3.5)])
    assert value.number == 7.0
    assert apply_primitive("floor_div", [Value.of(-7), Value.of(2)]).number == -4
    # Python has no answer to 1 / 0; the program gives NumPy's.
    assert apply_primitive("div", [Value.of(1), Value.of(0)]).number is None


@pytest.mark.parametrize("target", NUMBERS)
@pytest.mark.parametrize("source", DTYPES)
def test_stores_follow_the_same_kind_rule(source: str, target: str) -> None:
    value = cell(source)
    if np.can_cast(source, target, "same_kind"):
        assert store_value(value, target).dtype == compute_dtype(target)
    else:
        with pytest.raises(DtypeError, match=f"a tensor of {target} cannot hold {source} values"):
            store_value(value, target)


def test_weak_numbers_are_stored_where_their_kind_fits() -> None:
    assert store_value(Value.of(3), "uint8") == Constant(3, "uint8")
    assert store_value(Value.of(3), "float32") == Constant(3.0, "float32")
    with pytest.raises(DtypeError, match="cannot hold float numbers"):
        store_value(Value.of(2.5), "int32")
    with pytest.raises(DtypeError, match="does not fit"):
        store_value(Value.of(300), "uint8")
    with pytest.raises(DtypeError, match="cannot hold int numbers"):
        store_value(Value.of(2), "bool")


def test_types_of_new_tensors() -> None:
    assert stored_dtype(Value.of(True)) == "bool"
    assert stored_dtype(Value.of(1)) == "int64"
    assert stored_dtype(Value.of(1.5)) == "float64"
    assert sum_dtype(cell("int8")) == "int64"
    assert sum_dtype(cell("uint16")) == "uint64"
    assert sum_dtype(cell("bool")) == "int64"
    assert sum_dtype(cell("float16")) == "float16"


def test_wrong_numbers_of_arguments_and_kinds() -> None:
    with pytest.raises(DslSyntaxError, match="`exp` takes 1 argument, not 2"):
        call_function("exp", [cell("float32"), cell("float32")])
    with pytest.raises(DtypeError, match="takes integers or truth values"):
        apply_primitive("bit_and", [cell("float32"), cell("float32")])
    with pytest.raises(DtypeError, match="complex128"):
        Value.of(np.complex128(1))
