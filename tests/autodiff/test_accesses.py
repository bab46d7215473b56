"""Adjoints of the forms of reading: affine, shifted, strided, repeated, behind boundaries and conditions, data."""

from __future__ import annotations

import numpy as np
import pytest

from tests.autodiff.programs import check, program, pulled_back, text_of_adjoint

RNG = np.random.default_rng(0)
CONVOLUTION = "y[i] += x[i - j] * c[j] for [i, j]: 0 <= i < N and 0 <= j < M and 0 <= i - j < N"


def convolution() -> object:
    return program("x: float64[N]; c: float64[M]", "y: float64[N]", CONVOLUTION)


def test_convolution_padded_on_the_left_by_hand() -> None:
    dx, dc = pulled_back(convolution(), [np.arange(1, 7.0), [1.0, 2.0, 3.0]], [np.arange(1, 7.0)], ["x", "c"])
    np.testing.assert_array_equal(dx, [14, 20, 26, 32, 17, 6])
    np.testing.assert_array_equal(dc, [91, 70, 50])


@pytest.mark.parametrize("n", range(4))
@pytest.mark.parametrize("m", range(4))
def test_tiny_extents(n: int, m: int) -> None:
    check(convolution(), RNG.random(n), RNG.random(m), order=1)


def test_the_adjoint_of_a_convolution_is_a_gather() -> None:
    text = text_of_adjoint(convolution(), ["x", "c"])
    assert "d_x[z] += d_y[z + j] * c[j]" in text
    assert "d_c[j] += d_y[i] * x[i - j]" in text


WINDOW = "i >= 0 and j >= 0 and 0 <= k <= 1 and 0 <= l <= 1 and i + k < N and j + l < M"
ACCESSES = {
    "transposed": ("A: float64[N, M]", "y: float64[M, N]", "y[j, i] = A[i, j] for [j, i]: 0 <= j < M and 0 <= i < N"),
    "trace": ("A: float64[N, N]", "y: float64", "y[()] += A[i, i] for [i]: 0 <= i < N"),
    "diagonal": ("A: float64[N, N]", "y: float64[N]", "y[i] = A[i, i] for [i]: 0 <= i < N"),
    "written diagonal": ("A: float64[N]", "y: float64[N, N]", "y[i, i] = A[i] for [i]: 0 <= i < N"),
    "strided": ("A: float64[N]", "y: float64[N // 2]", "y[i] = A[2*i + 1] for [i]: i >= 0 and 2*i + 1 < N"),
    "strided write": ("A: float64[N]", "y: float64[3 * N]", "y[3*i + 1] = A[i] for [i]: 0 <= i < N"),
    "dilated window": (
        "A: float64[N]; B: float64[3]",
        "y: float64[N]",
        "y[i] += A[i + 2*k - 2] * B[k] for [i, k]: 0 <= i < N and 0 <= k < 3 and 0 <= i + 2*k - 2 < N",
    ),
    "strided window": (
        "A: float64[N]; B: float64[M]",
        "y: float64[N // 2 + 1]",
        "y[i] += A[2*i + k] * B[k] for [i, k]: i >= 0 and 2*i <= N and 0 <= k < M and 2*i + k < N",
    ),
    "reversed": ("A: float64[N]", "y: float64[N]", "y[i] = A[N - 1 - i] for [i]: 0 <= i < N"),
    "floored": ("A: float64[N]", "y: float64[2 * N]", "y[i] = A[i // 2] for [i]: 0 <= i < 2*N"),
    "pooled": ("A: float64[N]", "y: float64[N]", "y[i // 3] += A[i] * A[i] for [i]: 0 <= i < N"),
    "shifted twice": ("A: float64[N]", "y: float64[N]", "y[i] = A[i] * A[i + 1] for [i]: 0 <= i < N - 1"),
    "powers": ("A: float64[N]", "y: float64[N]", "y[i] = A[i] * A[i] * A[i] + A[i] for [i]: 0 <= i < N"),
    "cumulative": ("A: float64[N]", "y: float64[N]", "y[i] += A[j] * A[i] for [i, j]: 0 <= i < N and 0 <= j <= i"),
    "outer difference": (
        "A: float64[N]; B: float64[M]",
        "y: float64[N, M]",
        "y[i, j] = square(A[i] - B[j]) for [i, j]: 0 <= i < N and 0 <= j < M",
    ),
    "broadcast": (
        "A: float64[N]; B: float64[K]",
        "y: float64[N]",
        "y[i] += A[i] + B[k] for [i, k]: 0 <= i < N and 0 <= k < K",
    ),
    "matrix product": (
        "A: float64[N, K]; B: float64[K, M]",
        "y: float64[N, M]",
        "y[i, j] += A[i, k] * B[k, j] for [i, j, k]: 0 <= i < N and 0 <= j < M and 0 <= k < K",
    ),
    "two-dimensional window": (
        "A: float64[N, M]; B: float64[2, 2]",
        "y: float64[N, M]",
        f"y[i, j] += A[i + k, j + l] * B[k, l] for [i, j, k, l]: {WINDOW}",
    ),
}
EXTENTS = {"N": 5, "M": 4, "K": 3}


def inputs_of(declarations: str, extents: dict[str, int]) -> list[np.ndarray]:
    shapes = [part.partition("[")[2].rstrip("] ") for part in declarations.split(";")]
    return [
        np.asarray(
            RNG.random([extents.get(e.strip()) or int(e) if e.strip() not in extents else 0 for e in s.split(",") if e])
        )
        for s in shapes
    ]


@pytest.mark.parametrize("name", ACCESSES)
def test_accesses(name: str) -> None:
    declarations, tensors, body = ACCESSES[name]
    made = program(declarations, tensors, body)
    check(made, *inputs_of(declarations, EXTENTS))
    for extents in (
        {"N": 0, "M": 0, "K": 0},
        {"N": 1, "M": 1, "K": 1},
        {"N": 2, "M": 3, "K": 0},
        {"N": 3, "M": 1, "K": 2},
    ):
        check(made, *inputs_of(declarations, extents), order=1)


def test_every_variable_of_a_sum_stays_in_the_adjoint() -> None:
    made = program(*ACCESSES["broadcast"])
    da, db = pulled_back(made, [np.zeros(2), np.zeros(3)], [[1.0, 10.0]], ["A", "B"])
    np.testing.assert_array_equal(da, [3, 30])
    np.testing.assert_array_equal(db, [11, 11, 11])


@pytest.mark.parametrize("boundary", ["clamp", "wrap", "reflect", "symmetric"])
@pytest.mark.parametrize("index", ["i - 1", "i + 1", "2*i + 1", "i - 7", "3 - i"])
def test_boundaries(boundary: str, index: str) -> None:
    made = program("x: float64[N]", "y: float64[N]", f"y[i] = square(x[{boundary}({index})]) for [i]: 0 <= i < N")
    for n in range(6):
        check(made, RNG.random(n), order=1)


def test_boundaries_on_two_axes_of_a_window() -> None:
    body = (
        "y[i, j] += x[reflect(i + k - 1), wrap(j + l - 1)] * w[k, l]"
        " for [i, j, k, l]: 0 <= i < N and 0 <= j < M and 0 <= k < 3 and 0 <= l < 3"
    )
    made = program("x: float64[N, M]; w: float64[3, 3]", "y: float64[N, M]", body)
    for shape in ((4, 3), (1, 2), (2, 1)):
        check(made, RNG.random(shape), RNG.random((3, 3)), order=1)


def test_clamp_by_hand() -> None:
    made = program("x: float64[N]", "y: float64[N]", "y[i] = x[clamp(i - 1)] for [i]: 0 <= i < N")
    (dx,) = pulled_back(made, [np.zeros(3)], [[1.0, 10.0, 100.0]], ["x"])
    np.testing.assert_array_equal(dx, [11, 100, 0])


def test_a_fill_receives_what_lies_outside() -> None:
    made = program("x: float64[N]; c: float64", "y: float64[N]", "y[i] = get(x[i - 2], c * c) for [i]: 0 <= i < N")
    check(made, RNG.random(5), 1.5)
    check(made, RNG.random(1), 1.5)
    dx, dc = pulled_back(made, [np.zeros(3), 3.0], [[1.0, 10.0, 100.0]], ["x", "c"])
    np.testing.assert_array_equal(dx, [100, 0, 0])
    assert dc == 66


def test_data_dependent_fill() -> None:
    made = program(
        "x: float64[N]; ids: int64[M]; c: float64", "y: float64[M]", "y[i] = get(x[ids[i]], c) for [i]: 0 <= i < M"
    )
    check(made, RNG.random(3), [0, 5, -1, 2, 0], 1.5)


@pytest.mark.parametrize("boundary", ["clamp", "wrap", "reflect", "symmetric"])
def test_data_indices_behind_boundaries(boundary: str) -> None:
    body = f"y[i] = square(x[{boundary}(ids[i])]) for [i]: 0 <= i < M"
    made = program("x: float64[N]; ids: int64[M]", "y: float64[M]", body)
    for n in range(1, 4):
        check(made, RNG.random(n), [0, 5, -1, 2, -7], order=1)


def test_gather_and_scatter() -> None:
    gather = program(
        "t: float64[N, D]; ids: int64[M]",
        "y: float64[M, D]",
        "y[i, d] = t[ids[i], d] * t[ids[i], d] for [i, d]: 0 <= i < M and 0 <= d < D",
    )
    check(gather, RNG.random((4, 2)), [1, 3, 1])
    scatter = program("x: float64[M]; ids: int64[M]", "y: float64[4]", "y[ids[i]] += exp(x[i]) for [i]: 0 <= i < M")
    check(scatter, RNG.random(3), [1, 3, 1])
    nested = program(
        "x: float64[N]; a: int64[M]; b: int64[M]", "y: float64[M]", "y[i] = sin(x[a[b[i]]]) for [i]: 0 <= i < M"
    )
    check(nested, RNG.random(3), [2, 0, 1, 1], [3, 3, 0, 1])


@pytest.mark.parametrize("accumulate", ["+=", "*=", ">>="])
@pytest.mark.parametrize("oob", ["skip", "clamp"])
def test_scatters_out_of_range(accumulate: str, oob: str) -> None:
    body = f"y[ids[i]] {accumulate} x[i] * x[i] from w for [i]: 0 <= i < M with oob {oob}"
    made = program("x: float64[M]; ids: int64[M]; w: float64[4]", "y: float64[4]", body)
    check(made, RNG.random(4) + 0.1, [1, 7, 1, -2], RNG.random(4))


def test_reads_behind_conditions_are_left_alone() -> None:
    made = program("x: float64[N]", "y: float64[N]", "y[i] = log(x[i - 1]) if i > 0 else 7.0 for [i]: 0 <= i < N")
    check(made, RNG.random(4) + 0.1)
    assert "d_x[i - 1] = d_y[i] / x[i - 1]" in text_of_adjoint(made, ["x"])
    (dx,) = pulled_back(made, [[0.5, 0.25, 0.0]], [[1.0, 1.0, 1.0]], ["x"])
    np.testing.assert_array_equal(dx, [2, 4, 0])


def test_no_nan_from_a_branch_not_taken() -> None:
    made = program("x: float64[N]", "y: float64[N]", "y[i] = sqrt(x[i]) if x[i] > 0.0 else 0.0 for [i]: 0 <= i < N")
    (dx,) = pulled_back(made, [[4.0, 0.0, -1.0]], [[1.0, 1.0, 1.0]], ["x"])
    np.testing.assert_array_equal(dx, [0.25, 0, 0])
    check(made, [4.0, -1.0, 2.0])


def test_data_guards_of_data_indices_become_conditions() -> None:
    body = "y[i] = log(x[ids[i]]) if ids[i] >= 0 else 7.0 for [i]: 0 <= i < M"
    made = program("x: float64[N]; ids: int64[M]", "y: float64[M]", body)
    check(made, RNG.random(4) + 0.1, [1, -1, 3, 1])


def test_one_read_under_two_guards() -> None:
    body = "y[i] = x[i - 1] if i > 2 else (2.0 * x[i - 1] if i > 0 and c[i] > 0.0 else 1.0) for [i]: 0 <= i < N"
    made = program("x: float64[N]; c: float64[N]", "y: float64[N]", body)
    check(made, RNG.random(6), [1.0, -1.0, 1.0, -1.0, 1.0, 1.0])


@pytest.mark.parametrize(("safe", "safer", "index"), [("p[i] >= 0", "p[i] >= 1", "p[i]"), ("i > 0", "i > 1", "i - 1")])
def test_a_guard_that_reads_what_different_guards_make_safe_is_asked_behind_them(
    safe: str, safer: str, index: str
) -> None:
    # t gets its derivative where m[i] > 0, the first guard and x[index] > 0 hold, and where m[i] <= 0, the second and
    # x[index] > 0 do: the last is common to both, and cannot be asked before.
    one, other = f"(t if x[{index}] > 0.0 else 0.0)", f"(t * t if x[{index}] > 0.0 else 0.0)"
    value = f"({one} if {safe} else 0.0) if m[i] > 0 else ({other} if {safer} else 0.0)"
    body = f"y[i] = let(t := x[i] * x[i], {value}) for [i]: 0 <= i < N"
    made = program("x: float64[N]; p: int64[N]; m: int64[N]", "y: float64[N]", body)
    check(made, [0.7, -0.4, 0.9, 1.2, 0.3], [1, -1, -1, 0, 2], [0, 1, 0, 1, 0])


def test_shared_values() -> None:
    body = "y[i] = let(t := sin(x[i]), u := t * t, u * exp(u) + t) for [i]: 0 <= i < N"
    check(program("x: float64[N]", "y: float64[N]", body), RNG.random(3))


def test_conditions_of_statements() -> None:
    body = "y[i] += exp(x[i]) * x[j] for [i, j]: 0 <= i < N and 0 <= j < N if m[j] > 0"
    made = program("x: float64[N]; m: int64[N]", "y: float64[N]", body)
    check(made, RNG.random(4), [1, 0, 1, -1])


def test_casts() -> None:
    body = "y[i] = float64(float32(x[i]) * float32(2.0)) + float64(int64(x[i])) for [i]: 0 <= i < N"
    check(program("x: float64[N]", "y: float64[N]", body), RNG.random(4) + 0.1)
    half = program("x: float16[N]", "y: float16[N]", "y[i] = x[i] * x[i] for [i]: 0 <= i < N")
    (dx,) = pulled_back(half, [np.array([1.5, 2.0], np.float16)], [np.array([1.0, 3.0], np.float16)], ["x"])
    assert dx.dtype == np.float16
    np.testing.assert_array_equal(dx, [3, 12])


def test_affine_parts_of_conditions_become_bounds() -> None:
    body = "y[i] <<= where(b[j], x[i + j], 0.0) for [i, j]: 0 <= i < N and 0 <= j < N if not b[j] or i + j < N"
    made = program("x: float64[N]; b: bool[N]", "y: float64[N]", body)
    text = text_of_adjoint(made, ["x"])
    assert "for [z, j]: z < N and 0 <= j <= z  if" in text
    assert "or" not in text[text.index("d_x[z] +=") :].replace("for", "")
    check(made, RNG.random(4), [True, False, True, False])
