"""Sums of products in tiles: any variables on either side, sizes around the edges of tiles, zeros around factors."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op, output
from tcdsl.ir.sizes.size_binding import bind_sizes, evaluate_size
from tcdsl.lowering.loopir.loop_printer import format_kernel
from tcdsl.lowering.loopir.loops import Kernel, Loop
from tcdsl.lowering.loopir.machine import Machine
from tcdsl.lowering.loopir.tiles import most_steps
from tcdsl.lowering.loopir.traversal import walk_nodes
from tcdsl.lowering.lower import lower
from tests.long_variants import in_turn
from tests.lowering.loop_interpreter import execute
from tests.lowering.test_plausible_faults import staged

RNG = np.random.default_rng(12)
MACHINES = (Machine(), Machine(32, 16), Machine(64, 32, masks=True))

# Rows, terms and columns around the edges of tiles, panels and blocks.
PRODUCTS = ((12, 4, 16), (13, 1, 17), (97, 300, 33), (18, 0, 20), (11, 5, 40), (0, 2, 16), (49, 257, 80))

Arrays = list[np.ndarray]


@op
def product(A, B):
    C[i, j] += A[i, k] * B[k, j]
    return C


@op
def of_columns(A, B):
    C[j, i] -= A[k, i] * B[j, k]
    return C


@op
def batched(A, B):
    C[i, b, j] += A[b, i, k] * B[b, k, j]
    return C


@op
def batched_along(A, B):
    C[i, j, b] += A[i, k, b] * B[k, j, b]
    return C


@op
def side_by_side_of_many_axes(A, B):
    C[i, j, c, l, a, b] -= A[i, k, c, a, b] * B[l, k, j, a, b]
    return C


@op
def differences_side_by_side(X, Y):
    D[i, j, b] += (X[i, k, b] - Y[j, k, b]) ** 2
    return D


@op
def of_many_axes(A, B):
    C[i, a, j, b] += A[i, k, a, l] * B[l, j, b, k]
    return C


@op
def convolution(I, K):
    O[n, c, x, y] += I[n, d, 2 * x + r, y + 2 * s] * K[c, d, r, s]
    return O


@op
def padded(I, K):
    O = output(I.shape[0], K.shape[0], I.shape[2], I.shape[3])
    O[n, c, x, y] += I[n, d, x + r - 1, y + s - 1] * K[c, d, r, s]
    return O


@op
def filled(I, K):
    O[n, x, c] += get(I[n, x + r - 2, d], 1.0) * K[r, d, c], n < I.shape[0], x < I.shape[1]
    return O


@op
def weighted(A, B, w):
    C[i, j] -= w[k] * A[i, k] * B[j, k]
    return C


@op
def centred(X, m):
    C[a, b] += (X[i, a] - m[a]) * (-X[i, b] + 2.0 * m[b])
    return C


@op
def differences(X, Y):
    D[i, j] += (X[i, k] - Y[j, k]) ** 2
    return D


@op
def distances(X, Y):
    D[j, i] -= abs(X[i, k] - Y[j, k])
    return D


@op
def of_differences(X, Y, G):
    D[i, k] -= 2.0 * (X[i, k] - Y[j, k]) * G[i, j]
    return D


@op
def of_far_ones(X, Y, G, s):
    D[k, b, j] += (square(X[b, i, k] - Y[j, k]) + s[j]) * G[b, i, j]
    return D


def wanted_of_far_ones(X: np.ndarray, Y: np.ndarray, G: np.ndarray, s: np.ndarray) -> np.ndarray:
    terms = (X[:, :, None] - Y) ** 2 + s[:, None]
    return np.einsum("bijk,bij->kbj", terms, G)


def wanted_convolution(I: np.ndarray, K: np.ndarray) -> np.ndarray:
    windows = np.lib.stride_tricks.sliding_window_view(I, (K.shape[2], 2 * K.shape[3] - 1), (2, 3))
    return np.einsum("ndxyrs,cdrs->ncxy", windows[:, :, ::2, :, :, ::2], K)


def wanted_padded(I: np.ndarray, K: np.ndarray) -> np.ndarray:
    # Term by term, so that no term is added that the statement leaves out.
    out = np.zeros((I.shape[0], K.shape[0], *I.shape[2:]), I.dtype)
    for x, y, r, s in np.ndindex(*I.shape[2:], *K.shape[2:]):
        if 0 <= x + r - 1 < I.shape[2] and 0 <= y + s - 1 < I.shape[3]:
            with np.errstate(invalid="ignore"):
                for d in range(I.shape[1]):
                    out[:, :, x, y] += I[:, d, x + r - 1, y + s - 1, None] * K[None, :, d, r, s]
    return out


def wanted_filled(I: np.ndarray, K: np.ndarray) -> np.ndarray:
    whole = np.pad(I, ((0, 0), (2, K.shape[0]), (0, 0)), constant_values=1)
    windows = np.lib.stride_tricks.sliding_window_view(whole, K.shape[0], 1)[:, : I.shape[1]]
    return np.einsum("nxdr,rdc->nxc", windows, K)


def real(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape)


CASES: dict[str, tuple[Any, Callable[..., np.ndarray], list[Arrays]]] = {
    "product": (
        product,
        lambda A, B: A @ B,
        [
            [real(m, k), real(k, n)]
            for m, k, n in PRODUCTS
        ],
    ),
    "of columns": (of_columns, lambda A, B: -(A.T @ B.T).T, [[real(9, 14), real(19, 9)], [real(2, 30), real(3, 2)]]),
    "batched": (batched, lambda A, B: (A @ B).transpose(1, 0, 2), [[real(3, 14, 5), real(3, 5, 17)]]),
    "batched along": (
        batched_along,
        lambda A, B: np.einsum("ikb,kjb->ijb", A, B),
        [
            [real(m, k, b)[::-1], real(k, n, b)]
            for m, k, n, b in ((13, 3, 17, 5), (55, 2, 1, 1), (6, 0, 9, 3), (7, 2, 9, 0))
        ],
    ),
    "side by side": (
        batched_along,
        lambda A, B: np.einsum("ikb,kjb->ijb", A, B),
        [
            [real(m, k, b), real(k, n, b)]
            for m, k, n, b in ((7, 2, 5, 8), (6, 3, 4, 6), (4, 0, 2, 8), (13, 65, 66, 15), (50, 130, 5, 7))
        ],
    ),
    "side by side of many axes": (
        side_by_side_of_many_axes,
        lambda A, B: -np.einsum("ikcab,lkjab->ijclab", A, B),
        [
            [real(m, k, c, a, b), real(l, k, n, a, b)]
            for m, k, n, a, b, c, l in ((3, 2, 3, 2, 8, 2, 1), (5, 70, 2, 1, 8, 1, 2), (2, 9, 1, 1, 7, 3, 3))
        ],
    ),
    "differences side by side": (
        differences_side_by_side,
        lambda X, Y: ((X[:, None] - Y) ** 2).sum(2),
        [[real(m, k, b), real(n, k, b)] for m, k, n, b in ((7, 3, 4, 7), (9, 66, 5, 8), (12, 1, 8, 16))],
    ),
    "of many axes": (
        of_many_axes,
        lambda A, B: np.einsum("ikal,ljbk->iajb", A, B),
        [[real(3, 2, 5, 4), real(4, 2, 17, 2)], [real(13, 3, 1, 1), real(1, 16, 3, 3)]],
    ),
    "weighted": (
        weighted,
        lambda A, B, w: -(A * w) @ B.T,
        [[real(m, k), real(n, k), real(k)] for m, k, n in PRODUCTS],
    ),
    "differences": (
        differences,
        lambda X, Y: ((X[:, None] - Y) ** 2).sum(-1),
        [[real(m, k), real(n, k)] for m, k, n in (*PRODUCTS, (5, 3, 1), (48, 2, 64), (1, 4, 1))],
    ),
    "distances": (
        distances,
        lambda X, Y: -abs(X[:, None] - Y).sum(-1).T,
        [[real(m, k), real(n, k)] for m, k, n in PRODUCTS[:4]],
    ),
    "of differences": (
        of_differences,
        lambda X, Y, G: -2 * ((X[:, None] - Y) * G[:, :, None]).sum(1),
        [[real(m, n), real(k, n), real(m, k)] for m, k, n in (*PRODUCTS, (5, 3, 1), (48, 2, 64), (1, 4, 1))],
    ),
    "of far ones": (
        of_far_ones,
        wanted_of_far_ones,
        [[real(2, k, n), real(m, n), real(2, k, m), real(m)] for m, k, n in PRODUCTS[:5]],
    ),
    "centred": (
        centred,
        lambda X, m: (X - m).T @ (2 * m - X),
        [[real(4, n), real(n)] for n in (1, 5, 15, 16, 17, 65)],
    ),
    "convolution": (convolution, wanted_convolution, [[real(2, 3, 9, 7), real(16, 3, 3, 2)]]),
    "padded": (
        padded,
        wanted_padded,
        [
            [real(2, 3, 4, 5), real(17, 3, 3, 3)],
            [real(1, 1, 3, 4), real(16, 1, 5, 2)],
            [real(2, 2, 2, 2), real(3, 2, 3, 3)],
        ],
    ),
    "filled": (filled, wanted_filled, [[real(2, 7, 3), real(5, 3, 16)]]),
}  # fmt: skip


def lanes(kernel: Kernel) -> list[Loop]:
    nodes = (node for nest in kernel.nests for node in walk_nodes(nest.body))
    return [node for node in nodes if isinstance(node, Loop) and node.kind == "vector"]


@pytest.mark.parametrize("name", CASES)
def test_any_variables_of_any_length(name: str) -> None:
    function, wanted, given = CASES[name]
    for arrays in given:
        np.testing.assert_allclose(function(*arrays), wanted(*arrays), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("name", "machine"), in_turn(CASES, MACHINES))
def test_loops_for_any_machine(name: str, machine: Machine) -> None:
    function, wanted, given = CASES[name]
    for arrays in given:
        if sum(array.size for array in arrays) < 700:
            kernel = lower(staged(function, *arrays), machine=machine)
            assert lanes(kernel)
            np.testing.assert_allclose(execute(kernel, arrays).outputs[0], wanted(*arrays), rtol=1e-10, atol=1e-12)


def test_tiles_are_as_wide_as_the_machine() -> None:
    arrays = [real(12, 4), real(4, 16)]
    for machine, counts in ((Machine(), [4, 2]), (Machine(32, 16), [8, 4]), (Machine(64, 32), [32, 16, 8])):
        loops = lanes(lower(staged(product, *arrays), machine=machine))
        assert [most_steps(loop.start, loop.stop) for loop in loops] == counts


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_what_is_left_out_is_no_term(value: float) -> None:
    # A zero beside an image, times an infinite weight, is not a number.
    I, K = real(2, 3, 4, 5), real(17, 3, 3, 3)
    K[4, 1, 0, 0] = K[16, 2, 1, 2] = value
    np.testing.assert_allclose(padded(I, K), wanted_padded(I, K), rtol=1e-10, atol=1e-12)
    kernel = lower(staged(padded, I, K), machine=MACHINES[0])
    np.testing.assert_allclose(execute(kernel, [I, K]).outputs[0], wanted_padded(I, K), rtol=1e-10, atol=1e-12)
    I[0, 0, 0, 0] = value
    np.testing.assert_allclose(padded(I, real(17, 3, 3, 3)).shape, (2, 17, 4, 5))
    assert np.isfinite(padded(I, np.ones((17, 3, 3, 3)))[1]).all()


@pytest.mark.parametrize("name", ["convolution", "padded", "filled", "batched"])
def test_gradients_are_tiles_too(name: str) -> None:
    function, _, (arrays, *_) = CASES[name]
    weights = real(*function(*arrays).shape)
    _, pullback = tc.vjp(function, *arrays)
    found = pullback(weights)
    with tc.config(optimize="-panels -padding"):
        _, pullback = tc.vjp(function, *arrays)
        for mine, its in zip(found, pullback(weights), strict=True):
            np.testing.assert_allclose(mine, its, rtol=1e-10, atol=1e-12)


@op
def strided(I, K):
    O[n, c, x, y] += I[n, d, 3 * x + r, 2 * y + s] * K[c, d, r, s]
    return O


@pytest.mark.parametrize("window", [(1, 1), (3, 2), (4, 5), (2, 1)])
def test_gradients_of_strides_go_in_phases(window: tuple[int, int]) -> None:
    # Some cells have no terms: those behind the last window, and those between narrow ones.
    for shape in ((2, 3, 8, 10), (1, 2, 11, 7)):
        I, K = real(*shape), real(5, shape[1], *window)
        G = real(*strided(I, K).shape)
        _, pullback = tc.vjp(strided, I, K)
        expected = np.zeros(shape)
        for x, y, r, s in np.ndindex(*G.shape[2:], *window):
            expected[:, :, 3 * x + r, 2 * y + s] += G[:, :, x, y] @ K[:, :, r, s]
        np.testing.assert_allclose(pullback(G)[0], expected, rtol=1e-10, atol=1e-12)
        if window == (3, 2):
            kernel = lower(pullback.program, machine=MACHINES[0])
            assert "phase" in format_kernel(kernel)
            np.testing.assert_allclose(execute(kernel, [I, K, G]).outputs[0], expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("terms", "length", "tiled"), [(3, 16, False), (3, 15, True), (4, 40, True), (1, 40, False)])
def test_few_products_of_long_rows_are_no_tiles(terms: int, length: int, tiled: bool) -> None:
    @op
    def along_rows(G, B):
        D[a, b, e] += G[b, f] * B[a, f, e]
        return D

    @op
    def across_rows(G, B):
        D[a, e, b] += G[b, f] * B[a, f, e]
        return D

    G, B = real(8, terms), real(9, terms, length)
    for function, order, whole in ((along_rows, "abe", tiled), (across_rows, "aeb", True)):
        kernel = lower(staged(function, G, B), machine=MACHINES[1])
        np.testing.assert_allclose(function(G, B), np.einsum(f"bf,afe->{order}", G, B), rtol=1e-10, atol=1e-12)
        assert packs(kernel, G, B) == whole


def packs(kernel: Kernel, *arrays: np.ndarray) -> bool:
    """Whether there are panels for arrays of these shapes."""
    sizes = bind_sizes(kernel.program, [array.shape for array in arrays])
    packed = next(buffer for buffer in kernel.buffers if buffer.name.startswith("panels"))
    return prod(evaluate_size(extent, sizes) for extent in packed.shape) > 0


def test_neighbours_along_the_target_are_stored_one_after_the_other() -> None:
    program = staged(batched_along, real(9, 3, 5), real(3, 8, 5))
    kernel = lower(program, optimize="-side_by_side", machine=MACHINES[2])
    assert " = block % ((A_2 + 15) // 16)\n" in format_kernel(kernel)


@pytest.mark.parametrize(("channels", "length", "tiled"), [(4, 16, False), (5, 16, True), (4, 15, True)])
def test_windows_of_few_channels_are_no_tiles_where_lanes_have_masks(channels: int, length: int, tiled: bool) -> None:
    @op
    def valid(I, K):
        O[n, c, x, y] += I[n, d, x + r, y + s] * K[c, d, r, s]
        return O

    @op
    def adjoint(G, K):
        D[n, c, x, y] += G[n, d, x - r + 2, y - s + 1] * K[d, c, r, s]
        return D

    @op
    def strided(I, K):
        O[n, c, x, y] += I[n, d, x + r, 2 * y + s] * K[c, d, r, s]
        return O

    I, K = real(2, 9, 4, length + 1), real(channels, 9, 3, 2)
    I[0, 1, 2, 3], I[1, 0, 0, 0] = np.nan, np.inf
    program = staged(valid, I, K)
    kernels = [lower(program, machine=machine) for machine in MACHINES[1:]]
    assert [packs(kernel, I, K) for kernel in kernels] == [True, tiled]
    assert packs(lower(program, machine=MACHINES[2], optimize="-windows"), I, K)
    expected = valid.interpret(I, K)
    for kernel in kernels:
        np.testing.assert_allclose(execute(kernel, [I, K]).outputs[0], expected, rtol=1e-10, atol=1e-12)
    assert packs(lower(staged(strided, wide := real(2, 9, 4, 2 * length), K), machine=MACHINES[2]), wide, K)
    other = real(9, channels, 3, 2)
    assert packs(lower(staged(adjoint, I, other), machine=MACHINES[2]), I, other) == tiled


def test_integers_wrap_around() -> None:
    A, B = (RNG.integers(-(2**62), 2**62, shape) for shape in ((13, 70), (70, 33)))
    np.testing.assert_array_equal(product(A, B), A @ B)
    G = RNG.integers(-(2**62), 2**62, (70, 33))

    @op
    def of_integers(A, B, G):
        D[i, k] += 3 * (A[i, k] - B[k, j]) * G[k, j]
        return D

    np.testing.assert_array_equal(of_integers(A, B, G), (3 * (A[:, :, None] - B) * G).sum(-1))


def test_what_is_own_to_a_cell_stays_what_it_is() -> None:
    # A difference of 0 beside a weight that is nearly too large, and values that are no numbers, in one cell each.
    X, Y, G = (np.array(RNG.integers(-9, 9, shape), np.float32) for shape in ((13, 20), (70, 20), (13, 70)))
    X[2, 3], X[3, 4], G[6] = np.inf, np.nan, 0
    X[7], Y[8:, 6], G[7, 8] = Y[8], -np.inf, np.float32(3e38)
    with np.errstate(invalid="ignore"):
        wanted = -2 * ((X[:, None] - Y) * G[:, :, None]).sum(1)
    np.testing.assert_array_equal(of_differences(X, Y, G), wanted)
    assert "own: " in str(of_differences.explain("loops", X, Y, G))


@pytest.mark.parametrize("shape", [(1, 40, 200), (4, 40, 200), (5, 40, 200), (200, 40, 1), (200, 40, 2), (6, 700, 9)])
def test_few_rows_and_few_columns(shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    A, B = real(m, k), real(k, n)
    wanted = A @ B
    for left in (A, A.T.copy().T, np.repeat(A, 2, axis=1)[:, ::2], A[::-1].copy()[::-1]):
        np.testing.assert_allclose(product(left, B), wanted, rtol=1e-10, atol=1e-11)
        np.testing.assert_allclose(product(left, B.T.copy().T), wanted, rtol=1e-10, atol=1e-11)
    A[-1, 3] = np.inf
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(product(A, B), A @ B, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64])
def test_factors_of_few_rows_are_read_where_they_lie(kind: type) -> None:
    # Lanes end with the factor, whatever lies behind its last cell.
    for m, k, n in [(4, 3, 1), (6, 5, 15), (7, 300, 16), (13, 2, 17), (47, 9, 63), (48, 2, 65), (49, 2, 130)]:
        A, wide = (RNG.integers(-9, 9, shape).astype(kind) for shape in ((m, k), (2 * k, n + 7)))
        for B in (
            wide[:k, :n].copy(),
            wide[:k, :n],
            wide[::2, 3 : n + 3],
            wide[:k, n::-1][:, :n],
            wide[:k, :n].copy("F"),
        ):
            np.testing.assert_array_equal(product(A, B), A @ B)
    arrays = [A, B]
    kernel = lower(staged(product, *arrays), machine=MACHINES[2])
    assert "B[k1, first + lane]" in format_kernel(kernel)
    assert kernel.by_rows == {"B"}
    assert lower(staged(product, *arrays), machine=MACHINES[2], strided=frozenset("A")) == kernel
    strided = lower(staged(product, *arrays), machine=MACHINES[2], strided=frozenset("B"))
    assert format_kernel(strided) == format_kernel(
        lower(staged(product, *arrays), machine=MACHINES[2], optimize="-unpacked")
    )


def test_cells_without_terms_hold_what_they_start_from() -> None:
    @op
    def part(A, B):
        C = output(A.shape[0] + 5, 40)
        C[i, j] += A[i, k] * B[k, j], j < 30
        return C

    A, B = real(40, 7), real(7, 50)
    expected = np.pad((A @ B)[:, :30], ((0, 5), (0, 10)))
    np.testing.assert_allclose(part(A, B), expected, rtol=1e-12)
    np.testing.assert_array_equal(part(A[:, :0], B[:0]), np.zeros((45, 40)))


def test_threads_change_no_bit() -> None:
    A, B = (RNG.normal(size=shape).astype(np.float32) for shape in ((200, 700), (700, 150)))
    one, several = (run() for run in (lambda: with_threads(1, A, B), lambda: with_threads(2, A, B)))
    np.testing.assert_array_equal(one, several)
    np.testing.assert_allclose(one, A.astype(float) @ B.astype(float), rtol=1e-4, atol=1e-3)


def with_threads(count: int, A: np.ndarray, B: np.ndarray) -> np.ndarray:
    with tc.config(threads=count):
        return np.asarray(product(A, B))


def test_sums_go_on_from_what_is_there() -> None:
    @tc.cd
    def add(C, A, B):
        C[i, j] += A[i, k] * B[k, j]

    A, B = real(30, 9), real(9, 20)
    C = real(30, 20)
    expected = C + A @ B
    add(C, A, B)
    np.testing.assert_allclose(C, expected, rtol=1e-12)


@pytest.mark.parametrize("value", [1.0, np.inf])
def test_sizes_that_are_known(value: float) -> None:
    @op
    def known(I: real[2, 3, 6, 7], K: real[17, 3, 3, 3]):
        O = output(2, 17, 6, 7)
        O[n, g * 17 + c, x, y] += I[n, d, x + r - 1, y + s - 1] * K[c, d, r, s], g < 1
        return O

    I, K = RNG.normal(size=(2, 3, 6, 7)), RNG.normal(size=(17, 3, 3, 3))
    K[3, 1, 0, 2] = value
    np.testing.assert_allclose(known(I, K), wanted_padded(I, K), rtol=1e-10, atol=1e-12)
    assert "panels_O" in str(known.explain("loops"))


def test_few_channels_are_known_to_be_few_without_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    @op
    def small(I, K):
        O = output(1, 3, 1, 3)
        O[n, c, x, y] += I[n, d, x + r, y + s] * K[c, d, r, s]
        return O

    monkeypatch.setattr("tcdsl.lowering.loopir.contraction.points_of", None)
    assert "panels_O" not in str(small.explain("loops", real(1, 3, 3, 5), real(3, 3, 3, 3)))
