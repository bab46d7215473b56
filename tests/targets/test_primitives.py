"""Every row of the table of primitives against its ``evaluate``, on every type, special values included."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest

from tcdsl import op
from tcdsl.ir.build import apply, cast, constant, integer
from tcdsl.ir.dtypes import DTYPES
from tcdsl.ir.expressions import Expr
from tcdsl.ir.primitives import PRIMITIVES, Primitive
from tcdsl.lowering.loopir.loops import Store
from tcdsl.targets.protocol.target import Build
from tests.targets.compiling import compile_kernel
from tests.targets.kernels import I, N, loop, make, read

KINDS = {
    "float": ("real", "number", "any", "compare", "select"),
    "integer": ("number", "any", "compare", "select", "bits", "integer"),
    "bool": ("any", "compare", "select", "bits", "logical"),
}


def rows_for(dtype: str) -> list[Primitive]:
    group = "float" if dtype.startswith("float") else "bool" if dtype == "bool" else "integer"
    return [row for row in PRIMITIVES.values() if row.kind in KINDS[group]]


def columns(dtype: str, arity: int) -> list[np.ndarray]:
    """Arguments: every combination of special values, then a dense sample."""
    if dtype == "bool":
        special = dense = np.array([False, True])
    elif dtype.startswith("float"):
        ends = np.finfo(dtype)
        values = [0.0, 1.0, 0.5, 2.0, 3.0, 30.0, 90.0, 1e4, ends.tiny, ends.smallest_subnormal, ends.max, np.inf]
        special = np.array([*values, *(-v for v in values), np.nan], dtype)
        dense = np.concatenate([np.linspace(-4, 4, 800), np.geomspace(1e-6, 80, 200)]).astype(dtype)
    else:
        ends = np.iinfo(dtype)
        low = [value for value in (-3, -2, -1, ends.min, ends.min + 1) if value >= ends.min]
        special = np.array([0, 1, 2, 3, 7, 8, 31, 63, 64 if ends.max > 64 else 5, ends.max, ends.max - 1, *low], dtype)
        dense = np.arange(-60, 60).astype(dtype)
    third = special[:: max(1, len(special) // 5)] if arity == 3 else special
    grid = np.array(list(itertools.product(*[third] * arity)), dtype).reshape(-1, arity).T
    rng = np.random.default_rng(3)
    return [np.concatenate([grid[k], rng.permutation(dense) if k else dense]) for k in range(arity)]


def computed(dtype: str, rows: list[Primitive], options: Build) -> dict[str, np.ndarray]:
    """Each primitive on its columns: one kernel, one nest per kind, one row of the output per primitive."""
    inputs, outputs, bodies, arrays = {}, {}, {}, []
    for arity in (1, 2, 3):
        given = columns(dtype, arity)
        for k, column in enumerate(given):
            inputs[f"a{arity}{k}"] = (dtype, (N,))
            arrays.append(column)
    length = max(map(len, arrays))
    arrays = [np.resize(array, length) for array in arrays]
    for row in rows:
        first = (
            apply("ne", read(f"a{row.arity}0", I, dtype=dtype), constant(0, dtype)) if row.kind == "select" else None
        )
        arguments: list[Expr] = [read(f"a{row.arity}{k}", I, dtype=dtype) for k in range(row.arity)]
        if first is not None:
            arguments[0] = first
        value = apply(row.name, *arguments)
        outputs[row.name] = (value.dtype, (N,))
        bodies.setdefault(row.kind, []).append(Store(row.name, (I,), value))
    kernel = make(inputs, outputs, *([loop("i", N, *body)] for body in bodies.values()), name=f"primitives_{dtype}")
    compiled = compile_kernel(kernel, contiguous=(True,) * len(arrays), options=options)
    return dict(zip(outputs, compiled.run(arrays, {"N": length}), strict=True))


def reference(row: Primitive, dtype: str, arguments: list[np.ndarray]) -> list[Any]:
    """``evaluate`` on scalars: floats in float64, so that what is compared is the rounding of compiled code alone."""
    kind = np.float64 if dtype.startswith("float") else np.dtype(dtype).type
    results = []
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for point in zip(*arguments, strict=True):
            scalars = [kind(value) for value in point]
            if row.kind == "select":
                scalars[0] = np.bool_(point[0] != 0)
            results.append(row.evaluate(*scalars))
    return results


# Where float64 says more than the type can: the difference of nearly equal numbers, arguments reduced by pi, x ** y.
ULPS = {
    "gelu": 64,
    "tan": 8,
    "sinh": 8,
    "cosh": 8,
    "pow": 16,
    "silu": 8,
    "sigmoid": 8,
    "softplus": 8,
    "exp": 4,
    "fma": 4,
}
EXACT = {
    "id", "neg", "abs", "relu", "sat01", "sign", "floor", "ceil", "round", "sqrt", "fst", "snd", "add", "sub", "mul",
    "relu_gate", "sat01_gate", "max", "min", "where",
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floats(dtype: str, options: Build) -> None:
    rows = rows_for(dtype)
    results = computed(dtype, rows, options)
    for row in rows:
        arguments = columns(dtype, row.arity)
        expected = reference(row, dtype, arguments)
        found = results[row.name][: len(expected)]
        if row.kind == "compare":
            np.testing.assert_array_equal(found, np.array(expected, bool), err_msg=row.name)
            continue
        with np.errstate(all="ignore"):
            wanted = np.array(expected, np.float64).astype(dtype)
        compare(row.name, dtype, arguments, found, wanted)


def power(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    # (-inf) ** 0.5 is inf in C and in Python; NumPy takes the square root, depending on how it is called.
    return np.where(np.isneginf(a) & (b == 0.5), np.inf, np.power(a, b))


def compare(name: str, dtype: str, arguments: list[np.ndarray], found: np.ndarray, wanted: np.ndarray) -> None:
    assert found.dtype == dtype
    if name in ("floor_div", "mod"):
        # NumPy in the type itself: the exact remainder of huge numbers has no relation to that in float64.
        function = np.floor_divide if name == "floor_div" else np.remainder
        with np.errstate(all="ignore"):
            wanted = function(*arguments)
    if name == "pow":
        with np.errstate(all="ignore"):
            wanted = power(*(argument.astype(np.float64) for argument in arguments)).astype(dtype)
    ends = np.finfo(dtype)
    ulps = 0 if name in EXACT or name in ("floor_div", "mod") else ULPS.get(name, 3)
    special = ~np.isfinite(wanted) | ~np.isfinite(found)
    # Within rounding of the largest number, either side of infinity will do.
    huge = (np.abs(wanted) >= 0.999 * ends.max) & (np.abs(found) >= 0.999 * ends.max)
    edge = special & huge & (np.signbit(wanted) == np.signbit(found))
    np.testing.assert_array_equal(found[special & ~edge], wanted[special & ~edge], err_msg=name)
    finite = ~special
    with np.errstate(all="ignore"):
        difference = np.abs(found[finite] - wanted[finite])
        allowed = ulps * ends.eps * np.abs(wanted[finite]) + (0 if ulps == 0 else 200 * ends.tiny)
        if name == "gelu":
            allowed += 4 * ends.eps * np.abs(arguments[0][finite])  # the reference itself cancels for negative x
        if name == "fma":
            allowed += 4 * ends.eps * np.abs(arguments[0] * arguments[1])[finite]
    worst = np.argmax(difference - allowed) if difference.size else 0
    at = [argument[finite][worst] for argument in arguments] if difference.size else []
    assert np.all(difference <= allowed), (name, at, found[finite][worst], wanted[finite][worst])


@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if not dtype.startswith("float")])
def test_integers_and_bool(dtype: str, options: Build) -> None:
    rows = rows_for(dtype)
    results = computed(dtype, rows, options)
    for row in rows:
        arguments = columns(dtype, row.arity)
        expected = reference(row, dtype, arguments)
        wanted = np.array([np.asarray(value).astype(results[row.name].dtype) for value in expected])
        np.testing.assert_array_equal(results[row.name][: len(wanted)], wanted, err_msg=f"{row.name} {dtype}")


def test_every_row_is_tested() -> None:
    tested = {row.name for dtype in DTYPES for row in rows_for(dtype)}
    assert tested == set(PRIMITIVES)


def test_constant_exponents_multiply(options: Build) -> None:
    exponents = [-3, -2, -1, 0, 1, 2, 3, 5, 8, 31, 0.5, 100]
    body = [
        Store("Y", (integer(k), I), apply("pow", read("X", I, dtype="float64"), constant(e, "float64")))
        for k, e in enumerate(exponents)
    ]
    kernel = make({"X": ("float64", (N,))}, {"Y": ("float64", (integer(len(exponents)), N))}, [loop("i", N, *body)])
    compiled = compile_kernel(kernel, contiguous=(True,), options=options)
    X = np.array([0.0, 1.0, -1.5, 2.0, np.inf, -np.inf, np.nan, 1e-200, 1e200])
    (Y,) = compiled.run([X], {"N": len(X)})
    for exponent, row in zip(exponents, Y, strict=True):
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(row, power(X, np.full_like(X, exponent)), rtol=1e-13, err_msg=str(exponent))
    assert "power(X[i], 5)" in compiled.source
    assert "power(X[i], 0.5)" in compiled.source


def test_what_cancels_keeps_nan_and_inf(options: Build) -> None:
    x = read("X", I, dtype="float64")
    two, three = constant(2, "float64"), constant(3, "float64")
    double = apply("add", x, x)
    formulas = [
        apply("sub", apply("mul", two, x), double),
        apply("sub", apply("add", x, two), x),
        apply("sub", apply("mul", three, x), apply("add", double, x)),
        apply("add", apply("sub", two, x), apply("sub", x, two)),
    ]
    body = [Store("Y", (integer(k), I), formula) for k, formula in enumerate(formulas)]
    kernel = make({"X": ("float64", (N,))}, {"Y": ("float64", (integer(len(formulas)), N))}, [loop("i", N, *body)])
    X = np.array([0.0, 1.0, -1.5, 1e300, np.inf, -np.inf, np.nan])
    (Y,) = compile_kernel(kernel, contiguous=(True,), options=options).run([X], {"N": len(X)})
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(Y, [2 * X - (X + X), (X + 2) - X, 3 * X - (X + X + X), (2 - X) + (X - 2)])


def test_integer_constants_at_the_ends(options: Build) -> None:
    cells, body = [], []
    for dtype in DTYPES:
        if dtype.startswith(("int", "uint")):
            for value in (np.iinfo(dtype).min, np.iinfo(dtype).max):
                bits = cast(cast(constant(int(value), dtype), "int64"), "int64")
                body.append(Store("Y", (integer(len(cells)),), bits))
                cells.append(int(np.array(value, dtype).astype(np.int64)))
    kernel = make({}, {"Y": ("int64", (integer(len(cells)),))}, body)
    (Y,) = compile_kernel(kernel, contiguous=(), options=options).run([], {})
    assert Y.tolist() == cells


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_extremes_of_what_the_round_before_has_made(dtype: str) -> None:
    @op
    def extremes(x, y, z):
        largest = np.zeros_like(x)
        least = np.zeros_like(x)
        positive = np.zeros_like(x)
        most = np.zeros_like(x)
        fewest = np.zeros_like(x)
        sums = np.zeros_like(x)
        before = y[0]
        for t in range(len(x)):
            largest[t] = max(x[t], before)
            least[t] = min(x[t], before)
            positive[t] = max(before, 0.0)
            most[t] = max(before + z, x[t])
            fewest[t] = min(before + z, x[t], -1.0)
            sums[t] = abs(x[t]) + min(max(x[t], y[t]), before)
            before = y[t]
        return largest, least, positive, most, fewest, sums

    x, y = columns(dtype, 2)
    y[-1], z = y[0], np.array(-0.0, dtype)
    assert "max(x[t], z_2 + before" in extremes.explain("loops", x, y, z)
    for found, wanted in zip(extremes(x, y, z), extremes.interpret(x, y, z), strict=True):
        np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(np.signbit(found)[wanted == 0], np.signbit(wanted)[wanted == 0])
