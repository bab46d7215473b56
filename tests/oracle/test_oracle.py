"""The oracle itself, against values worked out by hand or by NumPy for the examples of the language."""

from __future__ import annotations

import numpy as np
import pytest

from tests.oracle.functions import expected
from tests.oracle.outcome import DataIndexFaultError, DtypeFaultError, FaultError, Outcome, ShapeFaultError

X = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
A = np.arange(12.0).reshape(3, 4) ** 2
B = np.arange(20.0).reshape(4, 5) - 7


def outcome_of(body: str, arguments: dict[str, np.ndarray]) -> Outcome:
    lines = [f"def f({', '.join(arguments)}):", *(f"    {line}" for line in body.split("\n"))]
    return expected("\n".join(lines), arguments)


def value(body: str, **arguments: np.ndarray) -> np.ndarray:
    outcome = outcome_of(body, arguments)
    assert not outcome.unspecified, outcome.unspecified
    assert outcome.fault is None, outcome.fault
    (array,) = outcome.arrays
    return array


def fault(body: str, **arguments: np.ndarray) -> FaultError | None:
    return outcome_of(body, arguments).fault


def check(body: str, wanted: object, **arguments: np.ndarray) -> None:
    found = value(body, **arguments)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    assert found.shape == np.shape(wanted)


def test_products_and_sums() -> None:
    check("C[i, j] += A[i, k] * B[k, j]\nreturn C", A @ B, A=A, B=B)
    check("C[i, j] = sum(A[i, k] * B[k, j])\nreturn C", A @ B, A=A, B=B)
    check("t[()] += A[i, k]\nreturn t", A.sum(), A=A)
    check("d[i] = M[i, i]\nreturn d", np.diag(A[:, :3]), M=A[:, :3].copy())
    check("O[i] -= A[i, k]\nreturn O", -A.sum(1), A=A)
    check("O[i] *= A[i, k] + 1\nreturn O", (A + 1).prod(1), A=A)
    check("O[k] >>= A[i, k]\nreturn O", A.max(0), A=A)
    check("O[k] <<= A[i, k]\nreturn O", A.min(0), A=A)
    check("O[i] |= A[i, k] > 100\nreturn O", (A > 100).any(1), A=A)


def test_brackets_guard_quotients() -> None:
    x = np.array([0.0, 2.0, -4.0])
    check("y[i] = (x[i] != 0) * 3.0 / x[i]\nreturn y", [0.0, 1.5, -0.75], x=x)
    check("y[i] = -((x[i] > 0) * 1.0) / x[i] * 2 % x[i]\nreturn y", [0.0, 1.0, 0.0], x=x)
    check("y[i] = (x[i] > 0) // x[i]\nreturn y", [0.0, 0.0, 0.0], x=x)
    check("s[()] += (i != k) * 1.0 / (x[i] - x[k])**2\nreturn s", 2 * (1 / 4 + 1 / 16 + 1 / 36), x=x)
    assert np.isnan(value("y[i] = x[i] / ((x[i] > 0) * x[i])\nreturn y", x=x)[0])


def test_ranges_of_fresh_targets() -> None:
    check("O[x] += I[x + k] * K[k]\nreturn O", np.convolve(X, [3.0, 2, 1], "valid"), I=X, K=np.array([1.0, 2, 3]))
    check("O[i + k] += I[i] * K[k]\nreturn O", np.convolve(X, [1.0, 2, 3]), I=X, K=np.array([1.0, 2, 3]))
    check("O[i] += I[k], k <= i, i < 5\nreturn O", np.cumsum(X), I=X)
    check("O[i] = max(I[2*i + j] for j in range(2))\nreturn O", [2.0, 8.0], I=X)
    pool = "N, = I.shape\nO = output((N + 1) // 2)\nO[i] = max(I[2*i + j] for j in range(2))\nreturn O"
    check(pool, [2.0, 8, 16], I=X)
    check("O[i] = x[i], i < 7\nreturn O", [1.0, 2, 4, 8, 16, 0, 0], x=X)
    check("O[2*i] = x[i]\nreturn O", [1.0, 0, 2, 0, 4, 0, 8, 0, 16], x=X)
    check("O[i] = x[i // 2]\nreturn O", np.repeat(X, 2), x=X)
    check("O[i] >>= x[j] * K[i], i < j\nreturn O", [16.0, 32.0], x=X, K=np.array([1.0, 2.0]))
    check("O[i] = x[4 - i]\nreturn O", X[::-1], x=X)


def test_negative_indices_and_unbounded_variables() -> None:
    assert isinstance(fault("O[i] += x[i + 2]\nreturn O", x=X), ShapeFaultError)
    assert isinstance(fault("O[i - 1] = x[i]\nreturn O", x=X), ShapeFaultError)
    assert type(fault("O[i] += x[i + j]\nreturn O", x=X)) is FaultError
    assert type(fault("O[i] = A[i, k]\nreturn O", A=A)) is FaultError
    assert isinstance(fault("O[i] += x[i] * A[i, k]\nreturn O", A=A, x=X), ShapeFaultError)
    assert type(fault("O[i // 2] = x[i]\nreturn O", x=X)) is FaultError
    assert isinstance(fault("Y[i] += 0.5 * x[i]\nreturn Y", Y=np.arange(5), x=X), DtypeFaultError)


def test_rule_3_skips_and_pads() -> None:
    conv = "N, = x.shape\nf: real[N]\nf[i] += x[i - j] * c[j]\nreturn f"
    check(conv, [1.0, 4, 10, 16, 22, 28], x=np.arange(1.0, 7), c=np.array([1.0, 2, 3]))
    check("N, M = I.shape\nO = output(N)\nO[2*i] += I[2*i, j]\nreturn O", A.sum(1) * [1, 0, 1], I=A)
    check("O = output(7)\nO[i] = x[i]\nreturn O", [1.0, 2, 4, 8, 16, 0, 0], x=X)
    check("O = output(3)\nO[i] >>= x[i]\nreturn O", [1.0, 2, 4], x=X)
    check("O = output(6)\nO[i] >>= x[i]\nreturn O", [1.0, 2, 4, 8, 16, -np.inf], x=X)
    check("Y[i] += x[i + 1]\nreturn Y", X + np.array([2.0, 4, 8, 16, 0]), Y=X, x=X)
    check("Y[i] = Y[i + 1]\nreturn Y", [2.0, 4, 8, 16, 16], Y=X)
    check("Y[i] = sum(A[i, k])\nreturn Y", [*A.sum(1)], Y=np.ones(3), A=A)
    check("Y[i] = X[i + 1] - X[i]\nreturn Y", np.diff(X), Y=np.ones(4), X=X)
    check("Y[i] = sum(A[i, k]), i > 1\nreturn Y", [1, 1, A[2].sum()], Y=np.ones(3), A=A)
    check("Y[i] = sum(A[i, k]), i > 1, k > 5\nreturn Y", [1.0, 1, 0], Y=np.ones(3), A=A)
    check("Y[0] = sum(A[i, k])\nreturn Y", [A.sum(), 1, 1], Y=np.ones(3), A=A)
    check("Y[2*i] = sum(A[i, k])\nreturn Y", [A[0].sum(), 1, A[1].sum()], Y=np.ones(3), A=A)
    check("O = output(4)\nO[i] = x[i - 1] if i > 0 else 7.0\nreturn O", [7.0, 1, 2, 4], x=X)


def test_whole_numbers_leave_the_type_of_a_target_open() -> None:
    check("O = output(5)\nO[0] = 0\nO[i] = x[i], i > 0\nreturn O", X * (X > 1), x=X)
    check("O = output(6)\nO[0] >>= 3\nO[i] >>= x[i]\nreturn O", [3.0, 2, 4, 8, 16, -np.inf], x=X)
    assert isinstance(fault("O[i] = n[i]\nO[i] += x[i]\nreturn O", x=X, n=np.arange(5)), DtypeFaultError)


def test_targets_that_were_made_too_small() -> None:
    assert isinstance(fault("O[2*i] = x[i]\nO[2*i + 1] += x[i]\nreturn O", x=X), ShapeFaultError)
    assert isinstance(fault("O[i, 0] = x[i]\nO[i, 1] = x[i]\nreturn O", x=X), ShapeFaultError)
    check("O[i] = x[i]\nO[i] += x[i - 1]\nreturn O", X + np.append(0, X[:-1]), x=X)
    check("O[2*i] = x[i]\nO[2*i + 1] += x[i], i < 5\nreturn O", np.repeat(X, 2)[:-1], x=X)


def test_explicit_ranges_skip() -> None:
    check("O[i] = x[i] + y[i], i < 4\nreturn O", [2.0, 4, 8, 0], x=X, y=X[:3].copy())
    check("O[()] += x[k] * y[k], k <= 3\nreturn O", 21.0, x=X, y=X[:3].copy())
    assert isinstance(fault("O[i] = x[i] + y[i], i >= 1\nreturn O", x=X, y=X[:3].copy()), ShapeFaultError)


def test_recurrences() -> None:
    head = "N = x.shape[0]\ns = output(N)\ns[0] = x[0]\n"
    for body in (
        "s[t] = s[t - 1] + x[t]",
        "s[t] = x[t] - sum(s[k] for k in range(5) if k < t)",
        "s[t] = x[t] + s[t - 1] * (t > 1)",
        "s[t] = s[clamp(t - 1)] + x[t], x[t] > 50",
        "s[t] += get(s[t + 1], 0)",
    ):
        assert isinstance(fault(f"{head}{body}\nreturn s", x=X), ShapeFaultError), body
    check(f"{head}s[t] = s[t - 1] + x[t], t <= 1\nreturn s", [1.0, 3, 0, 0, 0], x=X)
    check(f"{head}s[i] = x[i]\ns[t] = s[t - 1] + x[t]\nreturn s", [1.0, 3, 6, 12, 24], x=X)
    check(f"{head}s[t] += s[t] + 1\nreturn s", [3.0, 1, 1, 1, 1], x=X)
    check(f"{head}s[t] = s[4 - t] + x[t], t >= 4\nreturn s", [1.0, 0, 0, 0, 17], x=X)
    check("x[t] = x[t - 1]\nreturn x", [1.0, 1, 2, 4, 8], x=X)


def test_boundaries() -> None:
    for name, wanted in {
        "clamp": [1.0, 1, 1, 2, 4],
        "wrap": [8.0, 16, 1, 2, 4],
        "reflect": [4.0, 2, 1, 2, 4],
        "symmetric": [2.0, 1, 1, 2, 4],
    }.items():
        check(f"O[i] = x[{name}(i - 2)], i < 5\nreturn O", wanted, x=X)
    check("O[i] = get(x[i - 2], -1.0), i < 5\nreturn O", [-1.0, -1, 1, 2, 4], x=X)
    check("O[i] = x[reflect(i - 2)], i < 3\nreturn O", [5.0, 5, 5], x=np.array([5.0]))


def test_brackets_and_conditions_differ_for_max() -> None:
    x = np.array([-3.0, -1.0, -2.0])
    check("O[i] >>= x[k] * (k <= i) + 0 * x[i]\nreturn O", [0.0, 0.0, -1.0], x=x)
    check("O[i] >>= x[k] + 0 * x[i], k <= i\nreturn O", [-3.0, -1, -1], x=x)
    check("O[i] = (x[i] > 0) * y[i]\nreturn O", [0.0, 2.0], x=np.array([-1.0, 1.0]), y=np.array([np.nan, 2.0]))


def test_reductions_inside_values() -> None:
    check("Y[i, j] = A[i, j] / sum(A[i, l])\nreturn Y", A / A.sum(1, keepdims=True), A=A)
    check("O[i] = sum(w[k] * A[i, k]) / sum(w[k])\nreturn O", A @ B[:, 1] / B[:, 1].sum(), A=A, w=B[:, 1])
    check("O[i] = mean(A[i, k])\nreturn O", A.mean(1), A=A)
    check("O[i] = argmax(A[i, k])\nreturn O", A.argmax(1), A=A)
    check("O[()] = 0 + argmax(A[i, k] % 5 for k in range(4) for i in range(3))\nreturn O", (A % 5).T.argmax(), A=A)
    check("O[i] = 1 + sum(A[i, k] for k in range(1, 3) if k > 1)\nreturn O", 1 + A[:, 2], A=A)
    check("O = output(3)\nO[i] = 1 + sum(x[2*i + j] for j in range(2))\nreturn O", [4.0, 13, 17], x=X)
    assert type(fault("O[i] = A[i, k] * sum(A[i, k])\nreturn O", A=A)) is FaultError


def test_conditions_on_variables_that_are_not_on_the_target() -> None:
    w = np.array([1.0, -1.0, 2.0])
    check("t[()] += 2 * max(A[i, k]), w[i] > 0\nreturn t", 2 * A[w > 0].max(1).sum(), A=A, w=w)
    check("t[()] >>= sum(A[i, k]), w[i] > 0\nreturn t", A[2].sum(), A=A, w=w)
    check("t[()] += 1, A[i, k] > 5\nreturn t", (A > 5).sum(), A=A)
    check("O[j] = mean(A[i, j]), w[i] > 0\nreturn O", A[w > 0].mean(0), A=A, w=w)
    check("O[j] = sum(A[i, j]), i > j\nreturn O", [A[1:, 0].sum(), A[2:, 1].sum(), 0, 0], A=A)
    check("O[j] = mean(A[i, j]), sum(A[i, k]) > 20\nreturn O", A[1:].mean(0), A=A)
    check("t = output(1)\nt[0] += 2 * max(A[i, k]), i > 0\nreturn t", [2 * A[1:].max(1).sum()], A=A)
    for body in ("O[i] = 2 * sum(A[i, k]), k < 2", "O[i] += 2 * sum(A[i, k]), k < 2", "O[i] = x[i], k < 2"):
        assert type(fault(f"{body}\nreturn O", A=A, x=X)) is FaultError
    assert type(fault("O[i] += sum(A[i, k] for k in range(2)), k < 1\nreturn O", A=A)) is FaultError
    assert type(fault("O[i] += x[i], k < i\nreturn O", x=X)) is FaultError


def test_data_indices() -> None:
    table, ids = B, np.array([3, 0, 3])
    check("E[i, d] = T[ids[i], d]\nreturn E", table[ids], T=table, ids=ids)
    check("H = output(4)\nH[b[i]] += w[i]\nreturn H", [2.0, 0, 0, 5], b=ids, w=np.array([1.0, 2, 4]))
    check("O[i] = get(x[n[i]], 0.5)\nreturn O", [0.5, 2.0], x=X, n=np.array([-1, 1]))
    assert isinstance(fault("O[i] = x[n[i]]\nreturn O", x=X, n=np.array([0, 5])), DataIndexFaultError)
    assert isinstance(fault("O[i] = x[n[i]]\nreturn O", x=X, n=np.array([0, -1])), DataIndexFaultError)
    check("O[i] = (m[i] > 0) * x[n[i]]\nreturn O", [1.0, 0.0], x=X, n=np.array([0, 5]), m=np.array([1, 0]))


def test_snapshot_and_local_definitions() -> None:
    check("z = x[i] * x[i]\nO[i] = z + 1 / z\nreturn O", X**2 + 1 / X**2, x=X)
    check("Y[i] += Y[k]\nreturn Y", X + X.sum(), Y=X)


@pytest.mark.parametrize(
    ("body", "dtype", "wanted"),
    [
        ("O[i] = x[i]", "int8", "int8"),
        ("O[()] += x[i]", "int8", "int64"),
        ("O[()] += x[i]", "bool", "int64"),
        ("O[()] *= x[i]", "uint8", "uint64"),
        ("O[()] >>= x[i]", "int16", "int16"),
        ("O[i] = 2 * x[i]", "int8", "int8"),
        ("O[i] = 0.5 * x[i]", "float32", "float32"),
        ("O[i] = 0.5 * x[i]", "int8", "float64"),
        ("O[i] = x[i] / 2", "int32", "float64"),
        ("O[i] = x[i] > 0", "float32", "bool"),
        ("O[i] = i * (x[i] > 0)", "float32", "int64"),
        ("O[i] = mean(x[i] + x[k])", "float32", "float32"),
        ("O[i] = sum(x[k] * (k <= i)) + 0 * x[i]", "int8", "int64"),
    ],
)
def test_element_types(body: str, dtype: str, wanted: str) -> None:
    assert value(body + "\nreturn O", x=np.ones(3, dtype)).dtype == wanted


def test_declared_as_real() -> None:
    check("y: real[2, 2]\ny[i, j] <<= n[i], j >= i\nreturn y", [[5, 5], [np.inf, 7]], n=np.array([5, 7], np.int8))


def test_zero_extents() -> None:
    check("C[i, j] += A[i, k] * B[k, j]\nreturn C", np.zeros((3, 2)), A=np.ones((3, 0)), B=np.ones((0, 2)))
    check("O[i] >>= A[i, k]\nreturn O", np.full(3, -np.inf), A=np.ones((3, 0)))
    check("O[i, k] = A[i, k]\nreturn O", np.ones((0, 3)), A=np.ones((0, 3)))
    check("O[2*i] = x[i]\nreturn O", np.zeros(0), x=np.zeros(0))


def test_indices_without_variables_skip_nothing() -> None:
    for body in ("y[i] = x[i] * x[5]\nreturn y", "y = output(2)\ny[-3] = 1.0\nreturn y", "x[5] += x[i]\nreturn x"):
        assert isinstance(fault(body, x=X), ShapeFaultError)
    check("y[i] = x[i] * x[4]\nreturn y", X * 16, x=X)
    check("y = output(2)\ny[-2] = 1.0\nreturn y", [1.0, 0.0], x=X)
    # Sizes and index variables leave it out, data does not.
    check("y[i] = x[i] * (x[5] if i > 4 else 2.0)\nreturn y", 2 * X, x=X)
    assert isinstance(fault("y[i] = x[i] * (x[5] if x[i] > 99 else 2.0)\nreturn y", x=X), ShapeFaultError)
    check("y = output(5)\ny[i] = x[i] * x[5], i > 4\nreturn y", np.zeros(5), x=X)
    check("y[i] = x[i] + sum(x[5] * x[k] for k in range(2) if k > 2)\nreturn y", X, x=X)
    assert isinstance(fault("y[i] = x[i] + sum(x[5] * x[k] for k in range(2))\nreturn y", x=X), ShapeFaultError)
    check("y[i] = x[i] + get(x[5], 3.0)\nreturn y", X + 3, x=X)
