"""The built-in functions: values against those of NumPy, `math` and mpmath, and derivatives."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

import tcdsl as tc
from tcdsl.frontend.comprehensions.builtins import BUILTINS

UNIT = np.linspace(-0.95, 0.95, 13)
REAL = np.array([-7.3, -4.0, -2.5, -1.5, -1.0, -0.5, -0.3, 0.3, 0.5, 1.0, 1.5, 2.0, 2.5, 9.75])
POSITIVE = np.array([0.02, 0.3, 0.5, 1.0, 1.7, 3.0, 7.9, 8.1, 20.0])
SHARE = np.array([1e-12, 0.01, 0.2, 0.5, 0.6, 0.97])


def by_mpmath(formula: Callable[[Any], Any]) -> Callable[[np.ndarray], np.ndarray]:
    def values(x: np.ndarray) -> np.ndarray:
        with mpmath.workdps(30):
            return np.array([float(formula(mpmath.mpf(float(each)))) for each in x])

    return values


def normcdfinv(p: Any) -> Any:
    return mpmath.sqrt(2) * mpmath.erfinv(2 * p - 1)


Unary = tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]
UNARY: dict[str, Unary] = {
    **{name: (UNIT, getattr(np, f"arc{name[1:]}")) for name in ("acos", "asin", "atanh")},
    **{name: (REAL, getattr(np, f"arc{name[1:]}")) for name in ("asinh", "atan")},
    **{name: (REAL, getattr(np, name)) for name in ("cbrt", "ceil", "cos", "cosh", "exp", "exp2", "expm1", "fabs")},
    **{name: (REAL, getattr(np, name)) for name in ("floor", "sin", "sinh", "tan", "tanh", "trunc")},
    **{name: (POSITIVE, getattr(np, name)) for name in ("log", "log10", "log1p", "log2", "sqrt")},
    "acosh": (1 + POSITIVE, np.arccosh),
    "cospi": (REAL, by_mpmath(mpmath.cospi)),
    "sinpi": (REAL, by_mpmath(mpmath.sinpi)),
    "cyl_bessel_i0": (REAL, by_mpmath(lambda x: mpmath.besseli(0, x))),
    "cyl_bessel_i1": (REAL, by_mpmath(lambda x: mpmath.besseli(1, x))),
    "erf": (REAL, by_mpmath(mpmath.erf)),
    "erfc": (REAL, by_mpmath(mpmath.erfc)),
    "erfcinv": (2 * SHARE, by_mpmath(lambda p: mpmath.erfinv(1 - p))),
    "erfcx": (REAL, by_mpmath(lambda x: mpmath.exp(x * x) * mpmath.erfc(x))),
    "erfinv": (UNIT, by_mpmath(mpmath.erfinv)),
    "exp10": (REAL, lambda x: 10.0**x),
    "j0": (4 * REAL, by_mpmath(lambda x: mpmath.besselj(0, x))),
    "j1": (4 * REAL, by_mpmath(lambda x: mpmath.besselj(1, x))),
    "lgamma": (REAL[2:] + 0.1, by_mpmath(lambda x: mpmath.log(abs(mpmath.gamma(x))))),
    "logb": (REAL, lambda x: np.frexp(x)[1] - 1.0),
    "normcdf": (REAL, by_mpmath(mpmath.ncdf)),
    "normcdfinv": (SHARE, by_mpmath(normcdfinv)),
    "rcbrt": (REAL, lambda x: 1 / np.cbrt(x)),
    "round": (REAL, lambda x: np.sign(x) * np.floor(np.abs(x) + 0.5)),
    "rsqrt": (POSITIVE, lambda x: 1 / np.sqrt(x)),
    "tgamma": (REAL + 0.1, by_mpmath(mpmath.gamma)),
    "y0": (POSITIVE, by_mpmath(lambda x: mpmath.bessely(0, x))),
    "y1": (POSITIVE, by_mpmath(lambda x: mpmath.bessely(1, x))),
}
# The second operands, and the others, are the first one shifted.
MANY: dict[str, Callable[..., np.ndarray]] = {
    "atan2": np.arctan2,
    "copysign": np.copysign,
    "fdim": lambda a, b: np.maximum(a - b, 0),
    "fdivide": np.divide,
    "fma": lambda a, b, c: a * b + c,
    "fmax": np.fmax,
    "fmin": np.fmin,
    "fmod": np.fmod,
    "hypot": np.hypot,
    "max": np.maximum,
    "min": np.minimum,
    "nextafter": np.nextafter,
    "norm3d": lambda *given: np.linalg.norm(given, axis=0),
    "norm4d": lambda *given: np.linalg.norm(given, axis=0),
    "pow": lambda a, b: np.abs(a) ** b,
    "remainder": np.vectorize(math.remainder),
    "rhypot": lambda a, b: 1 / np.hypot(a, b),
    "rnorm3d": lambda *given: 1 / np.linalg.norm(given, axis=0),
    "rnorm4d": lambda *given: 1 / np.linalg.norm(given, axis=0),
}
OPERANDS = [REAL, np.roll(REAL, 3) + 0.1, np.roll(REAL, 5) - 0.2, np.roll(REAL, 6) * 0.7]


def test_all_are_here() -> None:
    listed = """acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh cospi cyl_bessel_i0 cyl_bessel_i1
        erf erfc erfcinv erfcx erfinv exp exp10 exp2 expm1 fabs fdim fdivide floor fma fmax fmin fmod hypot j0 j1 lgamma
        log log10 log1p log2 logb max min nextafter norm3d norm4d normcdf normcdfinv pow rcbrt remainder rhypot rnorm3d
        rnorm4d round rsqrt sin sinh sinpi sqrt tan tanh tgamma trunc y0 y1"""
    assert set(BUILTINS) == set(listed.split()) == UNARY.keys() | MANY.keys()


def unary_source(dtype: str) -> str:
    names = sorted(UNARY)
    parameters = ", ".join(f"{dtype}(N_{name}) of_{name}" for name in names)
    statements = " ".join(f"is_{name}(i) = {name}(of_{name}(i))" for name in names)
    return f"def f({parameters}) -> ({', '.join(f'is_{name}' for name in names)}) {{ {statements} }}"


def many_source(dtype: str) -> str:
    statements = []
    for name in sorted(MANY):
        operands = ["fabs(a(i))" if name == "pow" else "a(i)", "b(i)", "c(i)", "d(i)"][: BUILTINS[name].arity]
        statements.append(f"is_{name}(i) = {name}({', '.join(operands)})")
    parameters = ", ".join(f"{dtype}(N) {name}" for name in "abcd")
    return f"def f({parameters}) -> ({', '.join(f'is_{name}' for name in sorted(MANY))}) {{ {' '.join(statements)} }}"


def check_values(dtype: str, tolerance: float, run: Callable[..., Any]) -> None:
    given = [UNARY[name][0].astype(dtype) for name in sorted(UNARY)]
    with np.errstate(all="ignore"):
        found = run(tc.comprehensions.define(unary_source(dtype)).f, *given)
    for name, x, y in zip(sorted(UNARY), given, found, strict=True):
        np.testing.assert_allclose(y, UNARY[name][1](x.astype(float)), tolerance, tolerance / 10, err_msg=name)
    operands = [x.astype(dtype) for x in OPERANDS]
    found = run(tc.comprehensions.define(many_source(dtype)).f, *operands)
    for name, y in zip(sorted(MANY), found, strict=True):
        known = [x if name == "nextafter" else x.astype(float) for x in operands[: BUILTINS[name].arity]]
        np.testing.assert_allclose(y, MANY[name](*known), tolerance, tolerance / 10, err_msg=name)


def test_values() -> None:
    check_values("float64", 5e-14, lambda f, *given: f.interpret(*given))


@pytest.mark.long
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 5e-14), ("float32", 4e-6)])
def test_values_of_compiled_code(dtype: str, tolerance: float) -> None:
    check_values(dtype, tolerance, lambda f, *given: f(*given))


ROUGH = ("nextafter", "round", "floor", "ceil", "trunc", "logb")


# Away from poles, where differences say nothing, and from jumps.
SMOOTH = {
    "tgamma": np.array([0.4, 0.6, 1.3, 4.2, -1.5]),
    "lgamma": np.array([0.4, 0.6, 1.3, 4.2, -1.5]),
    "y0": np.array([0.7, 5.0, 9.0]),
    "y1": np.array([0.7, 5.0, 9.0]),
    "erfcx": np.array([-1.0, 0.0, 0.5, 7.0]),
    "tan": np.array([-1.0, 0.3]),
    "erfcinv": np.array([0.1, 0.8, 1.0, 1.9]),
    "normcdfinv": np.array([0.02, 0.3, 0.5, 0.9]),
    "log": 1 + POSITIVE,
}
BY_DOMAIN = {id(POSITIVE): POSITIVE[3:], id(REAL): np.array([-2.2, -0.7, 0.3, 1.6]), id(UNIT): UNIT[3:-3]}


def check_derivatives(names: list[str]) -> None:
    statements = " ".join(f"is_{name}(i) = {name}(of_{name}(i))" for name in names)
    parameters = ", ".join(f"double(N_{name}) of_{name}" for name in names)
    source = f"def f({parameters}) -> ({', '.join(f'is_{name}' for name in names)}) {{ {statements} }}"
    arguments = [SMOOTH.get(name, BY_DOMAIN.get(id(UNARY[name][0]), UNARY[name][0])) for name in names]
    tc.check_grads(tc.comprehensions.define(source).f, arguments)


def test_derivatives() -> None:
    check_derivatives(["cbrt", "erfc", "lgamma", "sinpi"])


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in sorted(UNARY) if name not in ROUGH])
def test_each_derivative(name: str) -> None:
    check_derivatives([name])


@pytest.mark.long
def test_derivatives_of_second_order() -> None:
    source = """def f(double(N) x, double(N) p) -> (a, b, c, d) {
        a(i) = erfinv(x(i))  b(i) = normcdfinv(p(i))  c(i) = hypot(x(i), p(i))  d(i) = erfc(x(i))
    }"""
    x, p = np.array([-0.7, -0.1, 0.3, 0.8]), np.array([0.1, 0.4, 0.6, 0.95])
    tc.check_grads(tc.comprehensions.define(source).f, (x, p), order=2, rtol=1e-5)


def test_derivatives_of_several_operands() -> None:
    smooth = ["atan2", "fdim", "fdivide", "fma", "fmax", "hypot", "norm3d", "rhypot"]
    operands = ["a(i)", "b(i)", "c(i)", "d(i)"]
    calls = [f"is_{name}(i) = {name}({', '.join(operands[: BUILTINS[name].arity])})" for name in smooth]
    results = ", ".join(f"is_{name}" for name in smooth)
    source = f"def f(double(N) a, double(N) b, double(N) c, double(N) d) -> ({results}) {{ {' '.join(calls)} }}"
    tc.check_grads(tc.comprehensions.define(source).f, OPERANDS)


def test_names_for_float_are_known() -> None:
    f = tc.comprehensions.define("def f(float(N) expf, float(N) b) -> (c) { c(i) = fmaxf(expf(i), 0) + sqrtf(b(i)) }").f
    a, b = np.array([-1, 2], np.float32), np.array([4, 9], np.float32)
    np.testing.assert_array_equal(f.interpret(a, b), [2, 5])


def test_nested_functions_do_not_grow() -> None:
    value = "x"
    for _ in range(40):
        value = f"fmax(hypot({value}, 1.0), 2.0)"
    f = tc.comprehensions.define(f"def f(float x) -> (y) {{ y = {value} }}").f
    np.testing.assert_allclose(f.interpret(np.float32(1)), math.sqrt(43), rtol=1e-6)
