from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tcdsl.errors import DataIndexError, DtypeError, ShapeError
from tcdsl.ir.build import result_dtype
from tcdsl.ir.interpreter import point_values
from tcdsl.ir.interpreter.interpreter import Interpretation, interpret
from tcdsl.ir.interpreter.point_values import InternalRangeError
from tcdsl.ir.primitives import PRIMITIVES
from tcdsl.ir.text.parser import parse_program
from tcdsl.ir.text.printer import format_program
from tcdsl.ir.verifier.verifier import verify


def run(text: str, *arrays: object) -> Interpretation:
    program = parse_program("program test\n" + text)
    verify(program)
    return interpret(program, arrays)


def run_one(text: str, *arrays: object) -> np.ndarray:
    (output,) = run(text, *arrays).outputs
    return output


def floats(*values: float) -> np.ndarray:
    return np.array(values, "float32")


def same(actual: np.ndarray, expected: object, dtype: str) -> None:
    assert actual.dtype == dtype
    np.testing.assert_array_equal(actual, np.asarray(expected, dtype))


MATMUL = """
input A: float32[N, K]
input B: float32[B_0, M]
assert K == B_0, "A has {K} columns, B has {B_0} rows"
tensor C: float32[N, M]
C[i, j] += A[i, k] * B[k, j]  for [i, j, k]: 0 <= i < N and 0 <= j < M and 0 <= k < K
return C
"""


@pytest.mark.parametrize("shape", [(2, 3, 4), (1, 1, 1), (0, 3, 4), (2, 0, 4), (2, 3, 0)])
def test_matmul(shape: tuple[int, int, int]) -> None:
    rows, inner, columns = shape
    A = np.arange(rows * inner, dtype="float32").reshape(rows, inner)
    B = np.arange(inner * columns, dtype="float32").reshape(inner, columns)
    same(run_one(MATMUL, A, B), A @ B, "float32")


def test_intermediate_sums_are_float64() -> None:
    text = """
    input x: float32[N]
    tensor s: float32
    tensor y: float32
    s[()] += x[i]  for [i]: 0 <= i < N
    y[()] = s - 16777216.0  for []
    return y
    """.replace("\n    ", "\n")
    same(run_one(text, floats(16777216, 1)), 1, "float32")


def test_float16_is_read_as_float32_and_rounded_in_the_output() -> None:
    text = """
input x: float16[N]
tensor y: float16[N]
tensor z: float32[N]
y[i] = x[i] / 3.0    for [i]: 0 <= i < N
z[i] = y[i] * 3.0    for [i]: 0 <= i < N
return y, z
"""
    y, z = run(text, np.array([1, 2], "float16")).outputs
    same(y, [1 / 3, 2 / 3], "float16")
    same(z, [1, 2], "float32")


def test_a_constant_is_the_number_of_its_type() -> None:
    text = """
input x: float32[N]
tensor y: bool[N]
y[i] = x[i] == 0.1  for [i]: 0 <= i < N
return y
"""
    same(run_one(text, floats(0.1, 0.5)), [True, False], "bool")


ACCUMULATE = """
input x: {dtype}[N]
tensor y: {dtype}
y[()] {symbol} x[i]  for [i]: 0 <= i < N
return y
"""


@pytest.mark.parametrize(
    ("symbol", "dtype", "values", "expected"),
    [
        ("+=", "float32", [1, 2, 4], 7),
        ("+=", "int8", [100, 100], -56),
        ("+=", "uint8", [200, 100], 44),
        ("-=", "float64", [1, 2, 4], -7),
        ("-=", "uint16", [1], 65535),
        ("*=", "float32", [3, 5], 15),
        ("*=", "int16", [300, 300], 24464),
        ("/=", "float64", [2, 4], 0.125),
        ("**=", "float64", [3, 2], 1),
        ("**=", "int64", [3, 2], 1),
        (">>=", "float32", [1, 5, 3], 5),
        (">>=", "float32", [1, np.nan, 3], np.nan),
        (">>=", "float64", [], -np.inf),
        (">>=", "int8", [], -128),
        (">>=", "uint8", [], 0),
        ("<<=", "float32", [1, np.nan, -3], np.nan),
        ("<<=", "float32", [1, 5, -3], -3),
        ("<<=", "int32", [], 2**31 - 1),
        ("<<=", "uint64", [], 2**64 - 1),
        ("<<=", "uint64", [2**63 + 1, 2**63 + 3], 2**63 + 1),
        ("|=", "bool", [False, True], True),
        ("|=", "bool", [], False),
        ("&=", "bool", [False, True], False),
        ("&=", "bool", [], True),
        ("?/=", "float32", [3, -2, 5], 0),
        ("?/=", "float32", [3, 7, 5], 5),
        ("?/=", "float64", [], 1),
        ("?^=", "float64", [0.25, 0.75], 0.75),
        ("?^=", "float64", [2, 0.75], 0),
        ("?^=", "float64", [], 0.5),
        ("=", "float64", [], 0),
        ("=", "bool", [], False),
    ],
)
def test_accumulators(symbol: str, dtype: str, values: list[float], expected: float) -> None:
    same(run_one(ACCUMULATE.format(dtype=dtype, symbol=symbol), np.array(values, dtype)), expected, dtype)


def test_ordered_accumulators_take_row_major_order() -> None:
    text = """
input x: float64[N, M]
tensor y: float64[N]
y[i] **= x[i, j]  from fill(2.0)  for [i, j]: 0 <= i < N and 0 <= j < M
return y
"""
    same(run_one(text, np.array([[3.0, 2.0], [2.0, 0.5]])), [(2.0**3) ** 2, (2.0**2) ** 0.5], "float64")


STARTS = """
input x: int32[N]
input s: int32
tensor a: int32[5]
tensor b: int32[5]
tensor c: int32[5]
a[i] = x[i]        for [i]: 0 <= i < N and i <= 1
b[i + 1] += x[i]   from a  for [i]: 0 <= i < N and i <= 3
c[i] -= x[i]       from fill(s * 2)  for [i]: 0 <= i < N and i <= 4
return a, b, c
"""


def test_starts() -> None:
    a, b, c = run(STARTS, np.array([1, 2, 3], "int32"), np.array(10, "int32")).outputs
    same(a, [1, 2, 0, 0, 0], "int32")
    same(b, [1, 3, 2, 3, 0], "int32")
    same(c, [19, 18, 17, 20, 20], "int32")


def test_updates_are_new_arrays() -> None:
    text = """
input p: float32[N]
input g: float32[N]
tensor p_2: float32[N]
p_2[i] -= 0.5 * g[i]  from p  for [i]: 0 <= i < N
update p = p_2
return p_2, p
"""
    p, g = floats(1, 2), floats(2, 4)
    result = run(text, p, g)
    same(result.updates["p"], [0, 0], "float32")
    same(result.outputs[0], [0, 0], "float32")
    same(result.outputs[1], [1, 2], "float32")
    same(p, [1, 2], "float32")
    result.outputs[1][:] = 9
    result.updates["p"][:] = 9
    same(p, [1, 2], "float32")
    same(result.outputs[0], [0, 0], "float32")


def test_conditions_are_tested_first() -> None:
    text = """
input x: float32[N]
input mask: bool[M]
input ids: int64[P]
tensor y: float32[5]
y[i] += x[ids[i]]  for [i]: 0 <= i < P and i < M  if mask[i]
return y
"""
    mask = np.array([True, False, True])
    same(run_one(text, floats(1, 2), mask, np.array([1, 99, 0])), [2, 0, 1, 0, 0], "float32")


# Boundaries: the value read is the position itself.
@pytest.mark.parametrize(
    ("boundary", "extent", "expected"),
    [
        ("clamp", 3, [0, 0, 0, 0, 0, 1, 2, 2, 2, 2, 2]),
        ("wrap", 3, [2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0]),
        ("reflect", 3, [0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2]),
        ("symmetric", 3, [2, 2, 1, 0, 0, 1, 2, 2, 1, 0, 0]),
        ("clamp", 1, [0] * 11),
        ("wrap", 1, [0] * 11),
        ("reflect", 1, [0] * 11),
        ("symmetric", 1, [0] * 11),
        ("reflect", 2, [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0]),
        ("symmetric", 2, [0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1]),
    ],
)
def test_boundaries(boundary: str, extent: int, expected: list[int]) -> None:
    text = f"""
input x: int64[N]
tensor y: int64[11]
y[i] = x[{boundary}(i - 4)]  for [i]: 0 <= i <= 10
return y
"""
    same(run_one(text, np.arange(extent)), expected, "int64")


@pytest.mark.parametrize(
    ("boundary", "mode"), [("clamp", "edge"), ("wrap", "wrap"), ("reflect", "reflect"), ("symmetric", "symmetric")]
)
@pytest.mark.parametrize("extent", [1, 2, 3, 5])
def test_boundaries_agree_with_numpys_padding(boundary: str, mode: str, extent: int) -> None:
    text = f"""
input x: float32[N]
tensor y: float32[N + 14]
y[i] = x[{boundary}(i - 7)]  for [i]: 0 <= i < N + 14
return y
"""
    x = np.arange(extent, dtype="float32") + 1
    same(run_one(text, x), np.pad(x, 7, mode=mode), "float32")  # type: ignore[call-overload]


def test_fills_are_evaluated_only_where_needed() -> None:
    text = """
input x: float32[N]
input ids: int64[M]
tensor y: float32[M]
y[i] = get(x[ids[i]], x[ids[i] + 10])  for [i]: 0 <= i < M
return y
"""
    same(run_one(text, floats(1, 2), np.array([0, -10, 1, -9])), [1, 1, 2, 2], "float32")


def test_boundaries_mix_per_axis() -> None:
    text = """
input x: int32[N, M]
tensor y: int32[4, 4]
y[i, j] = get(x[clamp(i - 1), j - 1], -1)  for [i, j]: 0 <= i <= 3 and 0 <= j <= 3
return y
"""
    expected = [[-1, 1, 2, -1], [-1, 1, 2, -1], [-1, 3, 4, -1], [-1, 3, 4, -1]]
    same(run_one(text, np.array([[1, 2], [3, 4]], "int32")), expected, "int32")


@pytest.mark.parametrize("boundary", ["clamp", "wrap", "reflect", "symmetric"])
def test_an_empty_axis_has_no_cell_to_move_to(boundary: str) -> None:
    text = f"""
input x: float32[N]
tensor y: float32[1]
y[i] = x[{boundary}(i)]  for [i]: i = 0
return y
"""
    with pytest.raises(DataIndexError, match="index 0 is out of range for axis 0 of `x`, which has extent 0"):
        run(text, floats())


LAZY = """
input x: float32[N]
input ids: int64[N_2]
assert N == N_2, "extents {N} and {N_2} differ"
tensor y: float32[N]
tensor b: bool[N]
tensor c: bool[N]
y[i] = x[ids[i]] if ids[i] >= 0 else 7.0         for [i]: 0 <= i < N
b[i] = ids[i] >= 0 and x[ids[i]] > 1.5           for [i]: 0 <= i < N
c[i] = ids[i] < 0 or x[ids[i]] > 1.5             for [i]: 0 <= i < N
return y, b, c
"""


def test_branches_not_taken_are_not_evaluated() -> None:
    y, b, c = run(LAZY, floats(1, 2, 3), np.array([-5, 1, 0])).outputs
    same(y, [7, 2, 1], "float32")
    same(b, [False, True, False], "bool")
    same(c, [True, True, False], "bool")


def test_a_local_is_computed_when_needed_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[float] = []
    row = PRIMITIVES["exp"]

    def counted(value: float) -> float:
        calls.append(float(value))
        return float(np.exp(value))

    point_values._vectorized.cache_clear()
    monkeypatch.setattr(point_values, "PRIMITIVES", {**PRIMITIVES, "exp": replace(row, evaluate=counted)})
    text = """
input x: float64[N]
tensor y: float64[N]
y[i] = let(z := exp(x[i]), z + z * z if x[i] > 0.0 else 1.0)  for [i]: 0 <= i < N
return y
"""
    e = math.exp(2.0)
    same(run_one(text, np.array([-1.0, 2.0, -3.0])), [1, e + e * e, 1], "float64")
    assert calls == [2.0]
    point_values._vectorized.cache_clear()
    point_values._vectorized.cache_clear()


def test_locals_nest_and_hide() -> None:
    text = """
input x: int64[N]
tensor y: int64[N]
y[i] = let(z := x[i], w := z + 1, let(z := z * 10, z + w) + z)  for [i]: 0 <= i < N
return y
"""
    same(run_one(text, np.array([1, 2])), [10 + 2 + 1, 20 + 3 + 2], "int64")


GATHER = """
input table: float32[V, D] as "embedding"
input ids: int64[N]
tensor e: float32[N, D]
e[i, d] = table[ids[i], d]  for [i, d]: 0 <= i < N and 0 <= d < D
return e
"""


def test_gather() -> None:
    table = np.arange(6, dtype="float32").reshape(3, 2)
    same(run_one(GATHER, table, np.array([2, 0, 2])), table[[2, 0, 2]], "float32")


HINT = (
    "write clamp(...) around the index for the nearest cell, or get(..., default) to read a default there; "
    'or decorate with oob="skip" or oob="clamp"'
)


@pytest.mark.parametrize("value", [-1, 3, 2**62])
def test_a_data_index_out_of_range_names_everything(value: int) -> None:
    with pytest.raises(DataIndexError) as caught:
        run(GATHER, np.zeros((3, 2), "float32"), np.array([0, value]))
    assert isinstance(caught.value, IndexError)
    assert str(caught.value).split("\n") == [
        f"index {value} is out of range for axis 0 of `embedding`, which has extent 3",
        "    at i = 1, d = 0",
        HINT,
    ]


SCATTER = """
input bins: int64[N]
tensor h: int64[3] as "histogram"
h[bins[i]] += 1  for [i]: 0 <= i < N  {options}
return h
"""


def test_scatter() -> None:
    same(run_one(SCATTER.format(options=""), np.array([0, 2, 2, 0, 2])), [2, 0, 3], "int64")
    outside = np.array([0, -1, 3, 7, 2])
    same(run_one(SCATTER.format(options="with oob skip"), outside), [1, 0, 1], "int64")
    same(run_one(SCATTER.format(options="with oob clamp"), outside), [2, 0, 3], "int64")
    with pytest.raises(
        DataIndexError, match="index -1 is out of range for axis 0 of `histogram`, which has extent 3\n    at i = 1"
    ):
        run(SCATTER.format(options=""), outside)


def test_skipped_points_do_not_evaluate_their_value() -> None:
    text = """
input bins: int64[N]
input x: int64[M]
tensor h: int64[3]
h[bins[i]] += x[bins[i] * 2]  for [i]: 0 <= i < N  with oob skip
return h
"""
    same(run_one(text, np.array([1, 5]), np.array([1, 2, 4])), [0, 4, 0], "int64")


def test_unique_is_checked() -> None:
    text = """
input order: int64[N]
input x: float32[M]
tensor y: float32[N] as "sorted"
y[order[i]] = x[i]  for [i]: 0 <= i < N and i < M  with unique
return y
"""
    same(run_one(text, np.array([2, 0, 1]), floats(1, 2, 3)), [2, 3, 1], "float32")
    with pytest.raises(ShapeError) as caught:
        run(text, np.array([2, 0, 2]), floats(1, 2, 3))
    assert "sorted[2] is written twice" in str(caught.value)
    assert "first at i = 0, again at i = 2" in str(caught.value)


@pytest.mark.parametrize(
    "statement",
    ["y[i] = x[i + 1]  for [i]: 0 <= i < N", "y[i + 1] = x[i]  for [i]: 0 <= i < N"],
)
def test_a_broken_promise_of_the_domain_is_found(statement: str) -> None:
    text = f"\ninput x: float32[N]\ntensor y: float32[N]\n{statement}\nreturn y\n"
    with pytest.raises(InternalRangeError, match="although its domain says that it is in range\n    at i = 1"):
        run(text, floats(1, 2))


def test_a_statement_reads_earlier_versions_only() -> None:
    text = """
input x: int64[N]
tensor x_2: int64[N] as "x"
x_2[i] += x[i - 1]  from x  for [i]: 1 <= i < N
return x_2
"""
    same(run_one(text, np.array([1, 2, 3])), [1, 3, 5], "int64")


@pytest.mark.parametrize(
    ("value", "dtype", "operand", "expected"),
    [
        ("x[i] + 1", "int8", [127], [-128]),
        ("-x[i]", "uint8", [1, 0], [255, 0]),
        ("abs(x[i])", "int8", [-128, -3], [-128, 3]),
        ("x[i] * x[i]", "uint8", [16, 3], [0, 9]),
        ("x[i] // 0", "int32", [5, -5, 0], [0, 0, 0]),
        ("x[i] % 0", "int32", [5], [0]),
        ("x[i] // 2", "int64", [-3, 3], [-2, 1]),
        ("x[i] % 3", "int64", [-1, 4], [2, 1]),
        ("x[i] ** 2", "int16", [300, 3], [24464, 9]),
        ("x[i] << 1", "uint8", [200], [144]),
        ("x[i] >> 1", "int8", [-3, 5], [-2, 2]),
        ("~x[i]", "uint8", [1], [254]),
        ("~x[i]", "bool", [True, False], [False, True]),
        ("x[i] & True", "bool", [True, False], [True, False]),
        ("x[i] ^ 5", "int64", [3], [6]),
        ("x[i] / 0.0", "float32", [1, -1, 0], [np.inf, -np.inf, np.nan]),
        ("x[i] // 0.0", "float64", [1], [np.inf]),
        ("log(x[i])", "float64", [0, -1, 1], [-np.inf, np.nan, 0]),
        ("max(x[i], 1.0)", "float64", [np.nan, 0, 2], [np.nan, 1, 2]),
        ("min(1.0, x[i])", "float64", [np.nan, 0, 2], [np.nan, 0, 1]),
        ("x[i] * (1.0 if x[i] > 0.0 else nan)", "float64", [2, -2], [2, np.nan]),
        ("fst(x[i], 2) + snd(1, x[i])", "int8", [3], [6]),
        ("sign(x[i])", "float64", [-3, 0, 2], [-1, 0, 1]),
        ("relu(x[i]) + sat01(x[i])", "int32", [-3, 5], [0, 6]),
        ("fma(x[i], 2, 1)", "uint8", [128], [1]),
    ],
)
def test_values_follow_numpy(value: str, dtype: str, operand: list[float], expected: list[float]) -> None:
    text = f"\ninput x: {dtype}[N]\ntensor y: {dtype}[N]\ny[i] = {value}  for [i]: 0 <= i < N\nreturn y\n"
    same(run_one(text, np.array(operand, dtype)), expected, dtype)


@pytest.mark.parametrize(
    ("source", "target", "values", "expected"),
    [
        ("float64", "int32", [2.7, -2.7], [2, -2]),
        ("int64", "uint8", [257, -1], [1, 255]),
        ("int64", "float64", [2**53 + 1], [2**53]),
        ("uint64", "float64", [2**64 - 1], [2.0**64]),
        ("float32", "bool", [0, -0.0, 0.5, np.nan], [False, False, True, True]),
        ("bool", "int8", [True, False], [1, 0]),
        ("bool", "float32", [True, False], [1, 0]),
        ("float64", "float32", [1e-3], [np.float32(1e-3)]),
    ],
)
def test_casts(source: str, target: str, values: list[float], expected: list[float]) -> None:
    text = f"\ninput x: {source}[N]\ntensor y: {target}[N]\ny[i] = {target}(x[i])  for [i]: 0 <= i < N\nreturn y\n"
    same(run_one(text, np.array(values, source)), expected, target)


def _fitting() -> list[tuple[str, str]]:
    cases = []
    for name, row in PRIMITIVES.items():
        for dtype in ("bool", "int8", "uint64", "float64"):
            try:
                result_dtype(name, ("bool", dtype, dtype) if row.kind == "select" else (dtype,) * row.arity)
            except TypeError:
                continue
            cases.append((name, dtype))
    return cases


@pytest.mark.parametrize(("name", "dtype"), _fitting())
def test_every_primitive_gives_its_type(name: str, dtype: str) -> None:
    row = PRIMITIVES[name]
    operands = ["i >= 0", "x[i]", "y[i]"] if row.kind == "select" else ["x[i]", "y[i]", "x[i]"]
    result = "bool" if row.kind in ("compare", "logical") else dtype
    text = f"""
input x: {dtype}[N]
input y: {dtype}[N_2]
tensor z: {result}[N]
z[i] = {name}({", ".join(operands[: row.arity])})  for [i]: 0 <= i < N and i < N_2
return z
"""
    low, high = row.interval
    x = np.linspace(low, high, 5).astype(dtype) if dtype == "float64" else np.array([0, 1, 1, 0, 1], dtype)
    y = x[::-1].copy()
    arguments = [x, y, x][: row.arity]
    with np.errstate(all="ignore"):
        if name == "where":
            expected = x
        else:
            expected = np.array([row.evaluate(*values) for values in zip(*arguments, strict=True)])
    actual = run_one(text, x, y)
    assert actual.dtype == result
    np.testing.assert_allclose(actual, np.asarray(expected, result), rtol=1e-15)


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("sigmoid", lambda a: 1 / (1 + math.exp(-a))),
        ("softplus", lambda a: math.log1p(math.exp(a))),
        ("silu", lambda a: a / (1 + math.exp(-a))),
        ("gelu", lambda a: a * 0.5 * math.erfc(-a / math.sqrt(2))),
        ("erf", math.erf),
        ("recip", lambda a: 1 / a),
        ("recip_sqrt", lambda a: 1 / math.sqrt(a)),
        ("exp2", lambda a: 2**a),
        ("square", lambda a: a * a),
        ("sat01", lambda a: min(max(a, 0.0), 1.0)),
        ("relu", lambda a: max(a, 0.0)),
    ],
)
def test_primitives_that_numpy_lacks(name: str, function: Callable[[float], float]) -> None:
    low, high = PRIMITIVES[name].interval
    x = np.linspace(low, high, 9) + 0.01
    text = f"\ninput x: float64[N]\ntensor y: float64[N]\ny[i] = {name}(x[i])  for [i]: 0 <= i < N\nreturn y\n"
    np.testing.assert_allclose(run_one(text, x), [function(float(a)) for a in x], rtol=1e-14)


def test_gates() -> None:
    text = """
input a: float64[N]
tensor r: float64[N]
tensor s: float64[N]
r[i] = relu_gate(a[i], 5.0)   for [i]: 0 <= i < N
s[i] = sat01_gate(a[i], 5.0)  for [i]: 0 <= i < N
return r, s
"""
    r, s = run(text, np.array([-1, 0, 0.5, 1, 2])).outputs
    same(r, [0, 0, 5, 5, 5], "float64")
    same(s, [0, 0, 5, 0, 0], "float64")


def test_index_variables_and_sizes_are_numbers() -> None:
    text = """
input x: float32[N, M]
size P = N * M
tensor y: int64[P]
y[i] = i * N + P  for [i]: 0 <= i < P
return y
"""
    same(run_one(text, np.zeros((2, 3), "float32")), [6, 8, 10, 12, 14, 16], "int64")


@pytest.mark.parametrize(
    ("dtype", "array"),
    [("int64", floats(1)), ("bool", np.array([1])), ("uint8", np.array([1])), ("float32", np.array([1j]))],
)
def test_arrays_of_another_kind_are_refused(dtype: str, array: np.ndarray) -> None:
    with pytest.raises(DtypeError, match=f"x is declared as {dtype}, but the array given is {array.dtype}"):
        run(f"\ninput x: {dtype}[N]\nreturn x\n", array)


def test_floating_inputs_keep_their_own_precision() -> None:
    text = "\ninput x: float32\ntensor y: float64\ny[()] = float64(x)  for []\nreturn y\n"
    assert float(run_one(text, np.float64(0.1))) == 0.1
    assert float(run_one(text, np.float32(0.1))) == float(np.float32(0.1))


def test_long_chains_of_operators() -> None:
    terms = 450
    chain = " + ".join(["x[i] * 2.0"] * terms)
    text = f"\ninput x: float64[N]\ntensor y: float64[N]\ny[i] = {chain} - 1.0  for [i]: 0 <= i < N\nreturn y\n"
    same(run_one(text, np.array([1.0, 2.0])), [2 * terms - 1, 4 * terms - 1], "float64")
    program = parse_program("program test\n" + text)
    printed = format_program(program)
    assert chain in printed
    assert format_program(parse_program(printed)) == printed
