"""Targets: accumulators, starts, element types, the forms of a statement."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tcdsl.errors import DslSyntaxError, DtypeError, ShapeError, TcdslError
from tcdsl.ir.dtypes import DTYPES
from tcdsl.ir.program import Fill, Keep, Neutral
from tests.frontend.statements.small_function import run, sketch

X = np.array([[3.0, 1.0, 2.0], [0.5, 2.0, 4.0]])
Y = np.array([10.0, 20.0])


@pytest.mark.parametrize(
    ("operator", "literal", "combine", "start"),
    [
        ("+=", "+", np.add, 0),
        ("-=", "-", np.subtract, 0),
        ("*=", "*", np.multiply, 1),
        ("/=", "/", np.divide, 1),
        ("**=", "**", np.power, 1),
        (">>=", "@^", np.maximum, -np.inf),
        ("<<=", "^^", np.minimum, np.inf),
        ("?/", "?/", lambda a, b: np.where(a > 0, b, 0), 1),
        ("?^", "?^", lambda a, b: np.where((a > 0) & (a < 1), b, 0), 0.5),
    ],
)
def test_accumulators(operator: str, literal: str, combine: Callable[..., np.ndarray], start: float) -> None:
    def folded(held: np.ndarray) -> np.ndarray:
        for column in X.T:
            held = combine(held, column)
        return held

    fresh = folded(np.full(2, float(start)))
    kept = folded(Y)
    onto, anew = f'assign(T[i], "={literal}", x[i, k])', f'assign(T[i], "=:{literal}", x[i, k])'
    spelled = [onto] if operator.startswith("?") else [onto, f"T[i] {operator} x[i, k]"]
    for source in (*spelled, anew):
        np.testing.assert_allclose(run(source, "T", x=X), fresh)
    for source in spelled:
        np.testing.assert_allclose(run(source, "T", x=X, T=Y), kept)
    np.testing.assert_allclose(run(anew, "T", x=X, T=Y), fresh)


@pytest.mark.parametrize(("operator", "literal", "fold"), [("|=", "||", np.any), ("&=", "&&", np.all)])
def test_truth_accumulators(operator: str, literal: str, fold: Callable[..., np.ndarray]) -> None:
    wanted = fold(X > 1.5, axis=1)
    for source in (f"T[i] {operator} x[i, k] > 1.5", f'assign(T[i], "=:{literal}", x[i, k] > 1.5)'):
        found = run(source, "T", x=X)
        assert found.dtype == bool
        np.testing.assert_array_equal(found, wanted)
    # Numbers are true unless they are 0.
    np.testing.assert_array_equal(run(f"T[i] {operator} x[i, k] * (k > 0), k < 3", "T", x=X), fold(X * [0, 1, 1], 1))
    # A declared floating target holds 0 and 1.
    found = run(f"T: real[2]\nT[i] {operator} x[i, k] > 1.5", "T", x=X)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, wanted)


def test_truth_onto_numbers_that_exist() -> None:
    held = np.array([2.5, 0.0, 7.0, 0.0, np.nan])
    x = np.array([[0, 0], [0, 1], [1, 1], [0, 0], [0, 0]])
    found = run("T[i] |= x[i, k] > 0, i < 2", "T", x=x, T=held)
    np.testing.assert_array_equal(found, [1, 1, 7, 0, np.nan])
    found = run("T[i] &= x[i, k] > 0, i < 3", "T", x=x, T=held)
    np.testing.assert_array_equal(found, [0, 0, 1, 0, np.nan])
    assert run("T[i] |= x[i, k] > 0", "T", x=x, T=np.zeros(5, np.int8)).dtype == np.int8


def test_starts() -> None:
    assert sketch("T[i] += x[i, k]", x=X).start == Neutral()
    assert sketch("T[i] += x[i, k]", x=X, T=Y).start == Keep("T")
    assert sketch("T[i] = x[i, 0]", x=X, T=Y).start == Keep("T")
    assert sketch("T[i] = sum(x[i, k])", x=X, T=Y).start == Neutral()
    assert sketch('assign(T[i], "=:", x[i, 0])', x=X, T=Y).start == Keep("T")
    assert isinstance(sketch("T: real[2]\nT[i] |= x[i, k] > 0", x=X).start, Fill)
    modes = [sketch(s, x=X, T=Y).mode for s in ("U[i] += x[i, k]", "T[i] += x[i, k]", "U: real[2]\nU[i] = x[i, 0]")]
    assert modes == ["fresh", "existing", "declared"]


def test_cells_that_are_not_written() -> None:
    np.testing.assert_array_equal(run("T[i] = x[i, 0], i < 1", "T", x=X, T=Y), [3, 20])
    np.testing.assert_array_equal(run("T[i] = sum(x[i, k]), i < 1", "T", x=X, T=Y), [6, 20])
    np.testing.assert_array_equal(run("T[i] = max(x[i, k]), i < 1", "T", x=X, T=Y), [3, 20])


def test_declared_targets_stay_declared() -> None:
    source = "T: real[4]\nT[i] += x[i, k]\nT[i + 2] += x[i, k]"
    np.testing.assert_array_equal(run(source, "T", x=X), [6, 6.5, 6, 6.5])
    assert run("T: real[4]\nT[i] = n[i]", "T", n=np.arange(4)).dtype == np.float64
    assert run("T: real[4]\nT[i] = f[i]", "T", f=np.ones(4, np.float32)).dtype == np.float32
    assert run("T: int32[4]\nT[i] = n[i]", "T", n=np.arange(4)).dtype == np.int32


def test_a_statement_reads_everything_as_it_was_before() -> None:
    x = np.arange(5.0)
    np.testing.assert_array_equal(run("x[i] = x[4 - i]", "x", x=x), x[::-1])
    np.testing.assert_array_equal(run("x[i] += x[i - 1]", "x", x=x), [0, 1, 3, 5, 7])


@pytest.mark.parametrize("dtype", DTYPES)
def test_types_of_fresh_targets(dtype: str) -> None:
    x = np.ones((2, 3), dtype)
    wide = np.sum(x, axis=1).dtype if dtype != "float16" else np.dtype("float16")
    for operator in ("+=", "-=", "*="):
        assert run(f"T[i] {operator} x[i, k]", "T", x=x).dtype == wide
    for source in ("T[i] >>= x[i, k]", "T[i] <<= x[i, k]", "T[i] = x[i, 0]", "T[i] = max(x[i, k])"):
        assert run(source, "T", x=x).dtype == x.dtype
    floating = x.dtype if dtype.startswith("float") else np.dtype("float64")
    assert run("T[i] /= x[i, k]", "T", x=x).dtype == floating
    assert run("T[i] = mean(x[i, k])", "T", x=x).dtype == floating
    assert run("T[i] |= x[i, k]", "T", x=x).dtype == bool
    assert run("T[()] = sum(x[i, k])", "T", x=x).dtype == wide


def test_weak_values_alone() -> None:
    assert run("T[i] = i, i < 3", "T").dtype == np.int64
    assert run("T[i] = i / 2, i < 3", "T").dtype == np.float64
    assert run("T[i] = i < 2, i < 3", "T").dtype == bool
    assert run("T[()] = True", "T").dtype == bool
    assert run("T[()] = 2.5", "T") == 2.5
    assert run("x[i] = i / 2", "x", x=np.zeros(3, np.float32)).dtype == np.float32


def test_bool_targets_that_exist() -> None:
    b = np.array([True, False])
    m = np.array([[True, True], [True, False]])
    np.testing.assert_array_equal(run("b[i] *= m[i, k]", "b", b=b, m=m), [True, False])
    np.testing.assert_array_equal(run("b[i] >>= m[i, k]", "b", b=b, m=m), [True, True])
    np.testing.assert_array_equal(run("b[i] <<= m[i, k]", "b", b=b, m=m), [True, False])
    np.testing.assert_array_equal(run("b[i] += m[i, k]", "b", b=b, m=m), [True, True])
    for counts in ("b[i] = sum(m[i, k])", "b[i] += 1", "b[i] /= m[i, k]", "b[i] += int8(m[i, 0])"):
        with pytest.raises(DtypeError, match="a tensor of bool cannot hold"):
            run(counts, "b", b=b, m=m)
    with pytest.raises(DtypeError, match="`-=` between truth values, which NumPy does not subtract"):
        run("b[i] -= m[i, k]", "b", b=b, m=m)


def test_rank_0_targets() -> None:
    np.testing.assert_array_equal(run("t[()] += x[i, k]\nO[i] = x[i, 0] / t", x=X), X[:, 0] / X.sum())
    np.testing.assert_array_equal(run("t[()] = sum(x[i, k])\nt[()] += 1", "t", x=X), X.sum() + 1)
    np.testing.assert_array_equal(run("s[()] = t + 1", "s", t=np.float64(3)), 4)


def test_a_reused_name_in_a_loop_is_explained() -> None:
    with pytest.raises(ShapeError) as caught:
        run("C[i, j] += x[i] * x[j]\nC[k] += x[k]", "C", x=np.ones(3))
    assert "`C` has rank 2 and is given 1 index" in str(caught.value)
    assert "`C` exists already: a new tensor needs another name" in str(caught.value)
    with pytest.raises(ShapeError) as caught:
        run("C[i] += w[i]\nC[i] += x[i]", "C", x=np.ones(3), w=np.ones(2))
    assert "`C` exists already and keeps its extents: for a tensor with others use another name" in str(caught.value)
    np.testing.assert_array_equal(
        run("C[i] += x[i]\nC[i] = sum(x[i] * w[k])", "C", x=np.ones(3), w=np.ones(2)), [2, 2, 2]
    )


@pytest.mark.parametrize(
    ("source", "kind", "message"),
    [
        ("n[i] += x[i, k]", DtypeError, "a tensor of int64 cannot hold float64 values"),
        ("n[i] = 2.5 + i", DtypeError, "a tensor of int64 cannot hold float numbers"),
        ("n[i] /= 2", DtypeError, "`/=` gives floating numbers"),
        ("u[i] += n[i]", DtypeError, "a tensor of uint8 cannot hold int64 values"),
        ("u[i] = 300", DtypeError, "300 does not fit in uint8"),
        ("T[i] //= x[i, k]", DslSyntaxError, "no accumulator has this operator"),
        ("T[i] @= x[i, k]", DslSyntaxError, "no accumulator has this operator"),
        ("T[i] = ()", DslSyntaxError, "a statement without a value"),
        ('T["...|...=>0"] += x[i, k]', DslSyntaxError, "a string among indices"),
        ('assign(T[i], "+", x[i, k])', DslSyntaxError, "not an operator of `assign`"),
        ('assign(T[i], "=:%", x[i, k])', DslSyntaxError, "`=:%` is no operator"),
        ('assign(T[i], "=", x[i, k])', DslSyntaxError, "`=` is no operator"),
        ('assign(T[i], "=:+")', DslSyntaxError, "takes a target, an operator and a value"),
        ('assign(T[i], "=:+", x[i, k], logic="@")', DslSyntaxError, "`assign` has no option `logic`"),
        ('assign(T[i], "=:+", x[i, k], speed=2)', DslSyntaxError, "has no option `speed`"),
        ('assign(T[i], "=:+", x[i, k], oob="no")', DslSyntaxError, "oob='no'"),
        ("T[i] = lambda: 0", DslSyntaxError, "Python's Lambda has no meaning"),
        ("T[i] = 'text'", DtypeError, "a str is not a number"),
        ("T[i] = x[i, 0] + 'text'", DtypeError, "a str is not a number"),
        ("T[i] = 1 / 0 + x[i, 0]", DslSyntaxError, "ZeroDivisionError"),
        ("T[i] = x[i, 0] @ x[i, 1]", DtypeError, "`@` multiplies whole arrays"),
        ("T[i] = x[i, 0] in x[i, 1]", DslSyntaxError, "`in` on a value"),
        ("T[i] = undefined(missing[i])", DslSyntaxError, "2 faults"),
    ],
)
def test_faults(source: str, kind: type[TcdslError], message: str) -> None:
    arrays = {"x": X, "n": np.arange(2), "u": np.zeros(2, np.uint8)}
    with pytest.raises(kind, match=message):
        run(source, source[0] if source[0] in "nu" else "T", **arrays)


def test_a_fault_shows_the_source_and_says_what_to_write() -> None:
    with pytest.raises(DtypeError) as caught:
        run("n[i] += 0.5 * n[i]", "n", n=np.arange(3))
    assert str(caught.value) == (
        "<small function>:1: a tensor of int64 cannot hold float64 values\n"
        "    n[i] += 0.5 * n[i]\n"
        "            ^^^^^^^^^^\n"
        "write `int64(...)` around the value to convert it"
    )
