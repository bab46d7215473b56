"""Subscripts: affine and data indices, boundaries, fills, positions from the end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcdsl.errors import DataIndexError, DslSyntaxError, DtypeError, ShapeError, TcdslError
from tcdsl.ir.expressions import Boundary, Read, reads
from tests.frontend.statements.small_function import run, sketch

RANDOM = np.random.default_rng(7)
X = RANDOM.normal(size=5)
A = RANDOM.normal(size=(4, 6))
IDS = np.array([3, 0, 3, 1])


def read_of(source: str, tensor: str, **arrays: Any) -> Read:
    (found,) = (read for read in reads(sketch(source, **arrays).value) if read.tensor == tensor)
    return found


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("O[i] = x[i] * x[-1]", X * X[-1]),
        ("O[i] = A[i, -2]", A[:, -2]),
        ("O[j] = A[1, j]", A[1]),
        ("O[i] = A[i, clamp(i)]", A[range(4), range(4)]),
        ("O[i] = x[4 - i]", X[::-1]),
        ("O[i] = x[2*i]", X[::2]),
        ("O[i] = A[i // 2, i % 3], i < 6", A[np.arange(6) // 2, np.arange(6) % 3]),
        ("O[i] = x[i + N // 2 - 1], i < 3", X[1:4]),
        ("O[i*P + p] = A[i, p]", A.ravel()),
        ("O[i] = x[min(i, 2)], i < 5", X[[0, 1, 2, 2, 2]]),
        ("O[i, j] = x[i * j], i < 2, j < 5", X[np.arange(2)[:, None] * np.arange(5)]),
        ("O[i] = x[i * i % N], i < 7", X[np.arange(7) ** 2 % 5]),
        ("O[i] = x[ids[i]]", X[IDS]),
        ("O[i] = x[ids[i] + 1 - i % 2]", X[IDS + 1 - np.arange(4) % 2]),
        ("O[i] = x[ids[ids[i]]]", X[IDS[IDS]]),
        ("O[i, d] = A[ids[i], d]", A[IDS]),
        ("O[i] = x[tiny[i] * 100 - 298]", X[[2, 2]]),
        ("O[i] = x[clamp(i - 2)], i < 8", X[np.clip(np.arange(8) - 2, 0, 4)]),
        ("O[i] = x[wrap(i - 2)], i < 8", X[(np.arange(8) - 2) % 5]),
        ("O[i] = x[reflect(i - 2)], i < 8", X[[2, 1, 0, 1, 2, 3, 4, 3]]),
        ("O[i] = x[symmetric(i - 2)], i < 8", X[[1, 0, 0, 1, 2, 3, 4, 4]]),
        ("O[i, j] = A[clamp(i - 1), wrap(j - 1)], i < 4, j < 6", A[[0, 0, 1, 2]][:, [5, 0, 1, 2, 3, 4]]),
        ("O[i] = x[clamp(ids[i] * 3)]", X[[4, 0, 4, 3]]),
        ("O[i] = get(x[i - 1], 0.5), i < 7", np.r_[0.5, X, 0.5]),
        ("O[i] = get(x[ids[i] * 3], 0)", [0, X[0], 0, X[3]]),
        ("O[i] = get(x[i - 1], x[i]), i < 5", np.r_[X[0], X[:-1]]),
        ("O[i] = get(A[clamp(i - 1), i + 3], 9.0), i < 4", [A[0, 3], A[0, 4], A[1, 5], 9.0]),
    ],
)
def test_reads(source: str, wanted: np.ndarray) -> None:
    tiny = np.array([3, 3], np.uint8)
    named = f"N = x.shape[0]\nP = A.shape[1]\n{source}"
    np.testing.assert_allclose(run(named, x=X, A=A, ids=IDS, tiny=tiny), wanted)


def test_affine_indices_skip_and_data_is_checked() -> None:
    assert read_of("O[i] = x[2*i + 1]", "x", x=X).boundaries == (Boundary.SKIP,)
    assert read_of("O[i] = x[i // 2]", "x", x=X).boundaries == (Boundary.SKIP,)
    for index in ("ids[i]", "i * i", "i % -3", "min(i, 2)", "i // (1 - 2)"):
        assert read_of(f"O[i] = x[{index}], i < 4", "x", x=X, ids=IDS).boundaries == (Boundary.CHECK,)


def test_data_indices_out_of_range() -> None:
    bad = np.array([0, 7, 1, -1])
    with pytest.raises(DataIndexError):
        run("O[i] = x[bad[i]]", x=X, bad=bad)
    np.testing.assert_allclose(run("O[i] = x[bad[i]]", x=X, bad=bad, oob="skip"), [X[0], 0, X[1], 0])
    np.testing.assert_allclose(run("O[i] = x[bad[i]]", x=X, bad=bad, oob="clamp"), X[[0, 4, 1, 0]])


def test_skipped_data_indices_leave_out_points() -> None:
    bad = np.array([0, 7, 1, -1])
    far = np.array([0, 9, 2])
    kept = {"x": X, "bad": bad, "far": far, "oob": "skip"}
    # In a reduction the point drops out of that reduction only.
    np.testing.assert_allclose(run("O[i] = 1 + sum(x[bad[k]] * far[i])", **kept), 1 + (X[0] + X[1]) * far)
    # Nested: bad[far[i]] is out of range at i = 1.
    np.testing.assert_allclose(run("O[i] = x[bad[far[i]]]", **kept), [X[0], 0, X[1]])
    # Behind a branch that is not taken nothing has to be in range.
    np.testing.assert_allclose(run("O[i] = x[bad[i]] if i != 1 else 5.0", **kept), [X[0], 5, X[1], 0])
    np.testing.assert_array_equal(run("O[i] = i == 1 or x[bad[i]] < 99", **kept), [True, True, True, False])
    np.testing.assert_array_equal(run("O[()] += bad[i] + 1, x[bad[i]] < 99", **kept), 3)
    # A local definition that is used twice is tested as often as it is computed.
    e = np.exp(X)
    found = run("z = exp(x[bad[i]])\nO[i] = z * z + z", **kept)
    np.testing.assert_allclose(found, [e[0] * e[0] + e[0], 0, e[1] * e[1] + e[1], 0])
    held = "H: float64[5]\nH[bad[i]] += get(x[i], 0)"
    np.testing.assert_allclose(run(held, "H", **kept), [X[0], X[2], 0, 0, 0])
    with pytest.raises(DataIndexError):
        run(held, "H", x=X, bad=bad)


def test_assign_chooses_for_its_target() -> None:
    bad = np.array([0, 7, 1, -1])
    source = 'H: float64[5]\nassign(H[bad[i]], "=+", x[i], oob="clamp")'
    np.testing.assert_allclose(run(source, "H", x=X[:4], bad=bad), [X[0] + X[3], X[2], 0, 0, X[1]])


def test_scatters() -> None:
    source = "H: float64[4]\nH[ids[i]] += x[i]"
    np.testing.assert_allclose(run(source, "H", x=X[:4], ids=IDS), np.bincount(IDS, X[:4], 4))
    unique = 'H: float64[4]\nassign(H[p[i]], "=:", x[i], unique=True)'
    np.testing.assert_allclose(run(unique, "H", x=X[:4], p=np.array([2, 0, 3, 1])), X[[1, 3, 0, 2]])
    with pytest.raises(TcdslError):
        run(unique, "H", x=X[:4], p=IDS)


def test_fixed_positions_of_targets() -> None:
    source = "T: float64[3]\nT[-1] = 5.0\nT[0] += 2.0\nO[i] = T[i]"
    np.testing.assert_array_equal(run(source, x=X), [2, 0, 5])
    with pytest.raises(ShapeError, match="counts from the end of an axis whose extent is not known"):
        run("O[-1] = x[i]", x=X)


def test_python_containers_are_ordinary_python() -> None:
    layers = [np.ones(5), np.arange(5.0)]
    given = {"layers": layers, "table": {"key": 2}, "name": "key", "n": 1}
    np.testing.assert_allclose(
        run("O[i] = layers[n][i] * table[name] + layers[0][i]", x=X, known=given), 2 * layers[1] + 1
    )
    with pytest.raises(DslSyntaxError, match="an index variable cannot index a Python list"):
        run("O[i] = x[i] * layers[i]", x=X, known=given)


def test_arrays_of_the_surroundings_are_inputs() -> None:
    from tests.frontend.statements.small_function import SmallFunction

    function = SmallFunction("O[i] = x[i] * table[i]", {"x": X}, module={"table": 2 * X})
    function.execute()
    assert [tensor.name for tensor in function.program("O").inputs] == ["x", "table"]


@pytest.mark.parametrize(
    ("source", "kind", "message"),
    [
        ("O[i] = A[i]", ShapeError, "`A` has rank 2 and is given 1 index"),
        ("O[i] = x[i, 0]", ShapeError, "`x` has rank 1 and is given 2 indices"),
        ("O[i] = x[i][0]", ShapeError, "a scalar at a point has no axes"),
        ("O[i] = A[i, 0] + x", ShapeError, "`x` has rank 1 and stands here without an index"),
        ("O[i] = A[i, 0] * (x > 0)", ShapeError, "an array of rank 1 stands here without an index"),
        ("x[i, j] = A[i, j]", ShapeError, "`x` has rank 1 and is given 2 indices"),
        ("O[i] = x[i / 2]", DtypeError, "an index of type float64"),
        ("O[i] = x[x[i]]", DtypeError, "an index of type float64"),
        ("O[i] = x[1.5]", DtypeError, "an index of type float64"),
        ("O[i] = x[i > 2]", DtypeError, "an index of type bool"),
        ("O[i] = A[i, :]", DslSyntaxError, "`:` as an index"),
        ("O[i] = A[i, ...]", DslSyntaxError, "`...` as an index"),
        ("O[i, None] = x[i]", DslSyntaxError, "`None` as an index"),
        ("O[i] = clamp(x[i])", DslSyntaxError, "`clamp` stands around an index"),
        ("O[clamp(i)] = x[i]", ShapeError, r"`clamp\(i\)` moves into an axis whose extent is not known"),
        ("O[i] = x[clamp(i, 2)]", DslSyntaxError, "`clamp` takes one index"),
        ("O[i] = get(x[i])", DslSyntaxError, "`get` takes a cell and a fill value"),
        ("O[i] = get(ids[i - 1], 0.5)", DtypeError, "cannot hold float numbers"),
        ("O[i] = x.missing[i]", DslSyntaxError, "no attribute 'missing'"),
    ],
)
def test_faults(source: str, kind: type[TcdslError], message: str) -> None:
    with pytest.raises(kind, match=message):
        run(source, x=X, A=A, ids=IDS)
