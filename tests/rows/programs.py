"""Programs of the rows-and-einsum language: what each computes, and the same by NumPy.

``PROGRAMS["transpose"]`` is a pair of functions without arguments. What our language says better with index notation is
said so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tcdsl as tc
from tcdsl import cd, op

__all__ = ["PROGRAMS"]

PROGRAMS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {}


def arange(*shape: int) -> np.ndarray:
    return np.arange(float(np.prod(shape))).reshape(shape)


def by_numpy(expected: Callable[[], Any]) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    def enter(program: Callable[[], Any]) -> Callable[[], Any]:
        PROGRAMS[program.__name__] = program, expected
        return program

    return enter


def stored(array: np.ndarray, rows: str) -> np.ndarray:
    """An array whose axes are written in the order batch, input, output, in the order of storage."""
    order = [k for row in "boi" for k, axis in enumerate(rows) if axis == row]
    return array.transpose(order)


def tensor(array: np.ndarray, batch: int = 0, input: int = 0) -> tc.Tensor:
    return tc.tensor(array, batch=batch, input=input)


# -- permutations and contractions of rows ---------------------------------------------------------------------


@by_numpy(lambda: np.einsum("boi->obi", arange(2, 4, 3)).transpose(0, 2, 1))
def perm_bio() -> Any:
    return tc.einsum("b|i->o => o|b->i", tensor(arange(2, 4, 3), batch=1, input=1))


@by_numpy(lambda: np.einsum("abefcd->cfdbae", arange(2, 3, 6, 7, 4, 5)))
def perm6() -> Any:
    return tc.einsum("ab|cd->ef => cf|ae->db", tensor(arange(2, 3, 6, 7, 4, 5), batch=2, input=2))


@by_numpy(lambda: arange(2, 5, 4) @ arange(2, 4, 3))
def batch_matmul() -> Any:
    a, b = tensor(arange(2, 4, 3), batch=1, input=1), tensor(arange(2, 5, 4), batch=1, input=1)
    return tc.einsum("b|h->o; b|i->h => b|i->o", b, a)


@by_numpy(lambda: (arange(2, 5, 4) @ arange(2, 4, 3)).sum(0))
def contract_batch_h() -> Any:
    a, b = tensor(arange(2, 4, 3), batch=1, input=1), tensor(arange(2, 5, 4), batch=1, input=1)
    return tc.einsum("b|i->h; b|h->o => i->o", a, b)


@by_numpy(lambda: arange(3, 4).sum(0))
def ellipsis_reduce() -> Any:
    return tc.einsum("...|...->...o => o", tensor(arange(3, 4)))


@by_numpy(lambda: arange(3, 4, 2).transpose(0, 2, 1))
def bcast_shift() -> Any:
    return tc.einsum("i->...o => ...io", tensor(arange(3, 4, 2), input=1))


@by_numpy(lambda: np.einsum("boi,bix->bi", arange(3, 2, 4), arange(3, 4, 1)))
def ellipsis_out_reduce() -> Any:
    a, b = tensor(arange(3, 2, 4), batch=1, input=1), tensor(arange(3, 4, 1), batch=1, input=1)
    return tc.einsum("...|i->...; ...|...->i => ...|i", a, b)


@by_numpy(lambda: [arange(3, 2).sum()])
def sum_all() -> Any:
    return tc.einsum("...|...->... => 0", tensor(arange(3, 2), input=1))


@by_numpy(lambda: arange(3, 2).T[:, None])
def insert_fixed_axis() -> Any:
    return tc.einsum("i->j => i0j", tensor(arange(3, 2), input=1))


@by_numpy(lambda: np.stack(np.meshgrid(np.arange(4.0), np.arange(5.0), np.arange(6.0), indexing="ij"), -1))
def positions_outer_sum() -> Any:
    i, j, k = (tc.einsum(spec, arange(size)) for spec, size in (("i=>i0", 4), ("j=>j1", 5), ("k=>k2", 6)))
    # Cells beyond the last position are not there yet: each has as many coordinates as its position needs.
    i, j = (np.pad(np.asarray(each), ((0, 0), (0, 3 - each.shape[1]))) for each in (i, j))
    both = tc.einsum("il;jl=>ijl", i, j, combine="add")
    return tc.einsum("ijl;kl=>ijkl", both, k, combine="add")


@by_numpy(lambda: np.einsum("bi,bijr->bij", arange(3, 2, 4)[:, 1], arange(3, 4, 2, 3)))
def dots_beg() -> Any:
    a, b = tensor(arange(3, 2, 4), batch=1, input=1), tensor(arange(3, 4, 2, 3), batch=1, input=2)
    return tc.einsum("...|i->1; ...|j...->i => ...|ij", a, b)


# -- puzzles -----------------------------------------------------------------------------------------------------


@by_numpy(lambda: np.ones(4))
def puzzle_ones() -> Any:
    return tensor(arange(4)) * 0.0 + 1


@by_numpy(lambda: [6.0])
def puzzle_sum() -> Any:
    return tc.einsum("i => 0", arange(4))


@by_numpy(lambda: arange(3, 3).diagonal())
def puzzle_diag() -> Any:
    return tc.einsum("ii => i", arange(3, 3))


@op
def bucketize(v, bounds):
    return einsum("ij => i", not_(einsum("i=>i0", v) < einsum("j=>0j", bounds)))


@by_numpy(lambda: np.searchsorted([1, 3, 5], [0.5, 2.5, 5.0], side="right"))
def puzzle_bucketize() -> Any:
    return bucketize(np.array([0.5, 2.5, 5.0]), np.array([1.0, 3.0, 5.0]))


@by_numpy(lambda: np.eye(3))
def puzzle_eye() -> Any:
    return tc.einsum("i;j=>ij", arange(3), arange(3), combine="eq", accumulate="or")


@by_numpy(lambda: np.triu(np.ones((3, 3))))
def puzzle_triu() -> Any:
    return tc.einsum("i;j=>ij", arange(3), arange(3), combine="le", accumulate="or")


@op
def difference(a):
    d[o] = a[o + 1] - a[o]
    return d


@by_numpy(lambda: np.diff([0, 1, 3, 6, 10]))
def puzzle_diff() -> Any:
    return difference(np.array([0.0, 1, 3, 6, 10]))


@op
def sequence_mask(v, lengths, positions):
    return where(einsum("j=>0j", positions) < einsum("i=>i0", lengths), v, 0)


@by_numpy(lambda: np.where(np.arange(3) < np.array([[2], [1]]), arange(2, 3), 0))
def puzzle_seqmask() -> Any:
    return sequence_mask(arange(2, 3), np.array([2.0, 1.0]), arange(3))


@op
def flatten(a):
    m = a.shape[1]
    flat[i * m + j] = a[i, j]
    return flat


@by_numpy(lambda: np.arange(10.0, 70.0, 10.0))
def puzzle_flatten() -> Any:
    return flatten(np.array([[10.0, 20, 30], [40, 50, 60]]))


# -- expressions and their gradients -------------------------------------------------------------------------------


@op
def micrograd(a, b):
    c = a + b
    d = a * b + b**3
    c = c + c + 1
    c = c + 1 + c + -a
    d = d + d * 2 + relu(b + a)
    d = d + 3 * d + relu(b - a)
    e = c - d
    f = e**2
    g = f / 2.0
    return g + 10.0 / f


def micrograd_by_hand(a: float, b: float) -> float:
    c = a + b
    d = a * b + b**3
    c = c + c + 1
    c = c + 1 + c - a
    d = d + d * 2 + max(b + a, 0)
    d = d + 3 * d + max(b - a, 0)
    f = (c - d) ** 2
    return f / 2 + 10 / f


def slope(function: Callable[..., float], at: tuple[float, ...], k: int, step: float = 1e-4) -> float:
    low, high = list(at), list(at)
    low[k] -= step
    high[k] += step
    return (function(*high) - function(*low)) / (2 * step)


@by_numpy(lambda: [micrograd_by_hand(-4, 2), *(slope(micrograd_by_hand, (-4, 2), k) for k in range(2))])
def micrograd_demo() -> Any:
    value, (da, db) = tc.value_and_grad(micrograd, argnums=(0, 1))(np.float64(-4.0), np.float64(2.0))
    return [value, da, db]


@op
def polynomial(x):
    return 3 * x**2 - 4 * x + 5


@op
def polynomials(x):
    total[()] += polynomial(x)[i]
    return total


@by_numpy(lambda: [3 * 25 - 20 + 5, 6 * 5 - 4])
def poly_fx() -> Any:
    return list(tc.value_and_grad(polynomial)(np.float64(5.0)))


@by_numpy(lambda: {
    "ys_int": [3 * x * x - 4 * x + 5 for x in range(-5, 5)], "ys100_min": 3.67, "dys100_min": -34.0,
    "dys100_max": 25.4, "ys100_max": 100.0,
})  # fmt: skip
def poly_grid() -> Any:
    x = np.arange(100) / 10 - 5
    y, dy = polynomial(x), tc.grad(polynomials)(x)
    return {
        "ys_int": polynomial(np.arange(-5.0, 5.0)).tolist(),
        "ys100_min": y.min(),
        "dys100_min": dy.min(),
        "dys100_max": dy.max(),
        "ys100_max": y.max(),
    }


@op
def simple_loss(a, b, c, f):
    d = a * b + c
    return d * f


@cd
def descend(a, b, c, f, da, db, dc, df):
    a -= 0.1 * da
    b -= 0.1 * db
    c -= 0.1 * dc
    f -= 0.1 * df


def simple_pass(a: float, b: float, c: float, f: float) -> dict[str, float]:
    e = a * b
    d = e + c
    return {"l": d * f, "d": d, "e": e, "ga": b * f, "gb": a * f, "gc": f, "gf": d, "gd": f, "ge": f}


def simple_by_hand() -> Any:
    second = simple_pass(1.4, -2.6, 10.2, -2.4)
    return {
        "pass1": simple_pass(2, -3, 10, -2),
        "after_sgd": {"a": 1.4, "b": -2.6, "c": 10.2, "f": -2.4},
        "pass2": {key: second[key] for key in ("l", "d", "e", "ga", "gb", "gc", "gf")},
    }


@by_numpy(simple_by_hand)
def simple_gradients() -> Any:
    values = [np.array(each) for each in (2.0, -3.0, 10.0, -2.0)]

    def passed() -> dict[str, float]:
        loss, (da, db, dc, df) = tc.value_and_grad(simple_loss, argnums=(0, 1, 2, 3))(*values)
        e = float(values[0] * values[1])
        return {"l": loss, "d": df, "e": e, "ga": da, "gb": db, "gc": dc, "gf": df, "gd": dc, "ge": dc}

    first = passed()
    gradients = [np.array(first[name]) for name in ("ga", "gb", "gc", "gf")]
    descend(*values, *gradients)
    after = dict(zip("abcf", map(float, values), strict=True))
    second = passed()
    return {
        "pass1": first,
        "after_sgd": after,
        "pass2": {key: second[key] for key in ("l", "d", "e", "ga", "gb", "gc", "gf")},
    }


@op
def neuron(w, x, b):
    return w @ x + b


@by_numpy(lambda: {"v": 0.7, "wx": -6.0, "gw": [2, 0], "gx": [-3, 1], "gb": 1})
def two_d_neuron() -> Any:
    w, x, b = tc.tensor([(-3.0, 1.0)]), tc.tensor([2.0, 0.0]), tc.tensor([6.7])
    arrays = np.array([[-3.0, 1.0]]), np.array([2.0, 0.0]), np.array([6.7])
    dw, dx, db = tc.grad(neuron, argnums=(0, 1, 2))(*arrays)
    return {
        "v": np.asarray(neuron(w, x, b))[0],
        "wx": np.asarray(w @ x)[0],
        "gw": dw[0],
        "gx": dx,
        "gb": db[0],
    }


@by_numpy(lambda: [14.0])
def hello_pointwise() -> Any:
    return 2 * tc.param("hey", o=1, init=7.0)


@op
def hello(x, y):
    return param("hey", init=7.0) @ x + y


@by_numpy(lambda: [39.0, 40.0, 41.0])
def hello_matmul_2x3() -> Any:
    return hello(tc.tensor([2.0, 3.0]), tc.tensor([4.0, 5.0, 6.0]))


@by_numpy(lambda: np.arange(1.0, 5) * np.arange(2.0, 6))
def hello_pointwise_batch() -> Any:
    return tc.tensor(tc.batch([1.0, 2.0, 3.0, 4.0])) * tc.tensor(tc.batch([2.0, 3.0, 4.0, 5.0]))


# -- affine axes, positions, diagonals -------------------------------------------------------------------------


def windows(x: np.ndarray, size: int) -> np.ndarray:
    """Windows of stride 2 along the first two axes."""
    found = np.lib.stride_tricks.sliding_window_view(x, (size, size), (0, 1))
    return found[::2, ::2]


@by_numpy(lambda: (windows(arange(4, 4, 1), 2) + arange(2, 2)).max((3, 4)))
def tropical_fwd() -> Any:
    spec = "...|2*oh + wh, 2*ow + ww, ..c..; wh, ww => ...|oh, ow, ..c.."
    return tc.einsum(spec, arange(4, 4, 1), arange(2, 2), accumulate="max", combine="add")


@op
def max_pool(x, *, size):
    y[h, w, c] = max(x[2 * h + i, 2 * w + j, c] for i in range(size) for j in range(size))
    return y


@by_numpy(lambda: windows(arange(7, 7, 2), 3).max((3, 4)))
def maxpool_s2_w3() -> Any:
    return max_pool(arange(7, 7, 2), size=3)


@by_numpy(lambda: windows(arange(4, 4, 3), 2).max((3, 4)))
def maxpool_s2_w2_c3() -> Any:
    return max_pool(arange(4, 4, 3), size=2)


@by_numpy(lambda: np.diag(arange(5)))
def diag_scatter() -> Any:
    return tc.einsum("i=>ii", arange(5))


@by_numpy(lambda: np.pad(arange(4)[:, None], ((0, 0), (0, 2))))
def fixed_scatter() -> Any:
    made = output_of_three(arange(4))
    np.testing.assert_array_equal(tc.einsum("i2=>i", made), 0)
    return made


@op
def output_of_three(x):
    (n,) = x.shape
    y = output(n, 3)
    y["i=>i0"] = x
    return y


@by_numpy(lambda: arange(3, 4).T)
def transpose() -> Any:
    return tc.einsum("ij=>ji", arange(3, 4))


@by_numpy(lambda: np.diag(arange(5)) + 1)
def diag_plus1() -> Any:
    return tensor(tc.einsum("i=>ii", arange(5))) + 1


@by_numpy(lambda: np.einsum("ij,ik->ijk", arange(3, 4), np.eye(3)) + 1)
def partial_diag_plus1() -> Any:
    return tc.einsum("ij=>iji", tensor(arange(3, 4))) + 1


@op
def interleaved(t1, t2):
    (n,) = t1.shape
    t = output(2 * n)
    t["... | ... -> ..., i => ... | ... -> ..., 2*i"] = sum(t1)
    t["... | ... -> ..., i => ... | ... -> ..., 2*i + 1"] += t2
    return t


@by_numpy(lambda: [1, 4, 2, 5, 3, 6])
def interleave() -> Any:
    return interleaved(np.array([1.0, 2, 3]), np.array([4.0, 5, 6]))


@by_numpy(lambda: np.array([[1.0, 2], [3, 4]]) @ [[0, 1], [1, 0]] @ np.eye(2))
def einsum3_chain() -> Any:
    a, b = np.array([[1.0, 2], [3, 4]]), np.array([[0.0, 1], [1, 0]])
    return tc.einsum("ij;jk;km=>im", a, b, np.eye(2))


@by_numpy(lambda: [12.0, 43.0])
def where_reduce() -> Any:
    mask, a, b = np.eye(2), np.array([[10.0, 20], [30, 40]]), np.array([[1.0, 2], [3, 4]])
    da, db = tc.grad(lambda a, b: tc.einsum("ij;ij;ij=>", mask, a, b, combine="where"), argnums=(0, 1))(a, b)
    np.testing.assert_array_equal(da, np.eye(2))
    np.testing.assert_array_equal(db, 1 - np.eye(2))
    return tc.einsum("ij;ij;ij=>i", mask, a, b, combine="where")


@by_numpy(lambda: [10.0, 2.0, 30.0, 4.0])
def where_point() -> Any:
    mask, a, b = np.array([1.0, 0, 1, 0]), np.array([10.0, 20, 30, 40]), np.array([1.0, 2, 3, 4])
    da, db = tc.grad(lambda a, b: tc.einsum("i;i;i=>", mask, a, b, combine="where"), argnums=(0, 1))(a, b)
    np.testing.assert_array_equal(da, mask)
    np.testing.assert_array_equal(db, 1 - mask)
    return tc.einsum("i;i;i=>i", mask, a, b, combine="where")


# -- code ----------------------------------------------------------------------------------------------------------


@op
def composed(a, b):
    c["@"] = sum(a * b)
    return c


@by_numpy(lambda: np.array([[1.0, 2, 3], [4, 5, 6]]) @ [1, 0, 1])
def cd_compose_logic() -> Any:
    return composed(tensor(np.array([[1.0, 2, 3], [4, 5, 6]]), input=1), tc.tensor([1.0, 0, 1]))


@cd
def fused(out, a, x, b):
    assign(out, "=:", fma(a, x, b), logic=".")


@by_numpy(lambda: np.arange(1.0, 5) * np.arange(10.0, 50, 10) + 0.5)
def cd_fma_pointwise() -> Any:
    out = np.zeros(4)
    fused(out, np.arange(1.0, 5), np.arange(10.0, 50, 10), np.full(4, 0.5))
    return out


@op
def composed_and_accumulated(p, q, r):
    out["@"] = sum(fma(p, q, r))
    return out


@by_numpy(lambda: [16.0])
def cd_fma_compose() -> Any:
    return composed_and_accumulated(tc.tensor([(3.0,)]), tc.tensor([2.0]), tc.tensor([10.0]))


@op
def rotary(x, positions, frequencies):
    """Pairs of cells turned by angles that grow with the position."""
    angle[p, k] = positions[p] * frequencies[k]
    (n,) = frequencies.shape
    y: real[positions.shape[0], 2 * n]
    y[p, 2 * k] = x[p, 2 * k] * cos(angle[p, k]) - x[p, 2 * k + 1] * sin(angle[p, k])
    y[p, 2 * k + 1] = x[p, 2 * k] * sin(angle[p, k]) + x[p, 2 * k + 1] * cos(angle[p, k])
    return y


def rotated_by_hand() -> np.ndarray:
    pairs = np.array([5.0, 7.0]) + 1j * np.array([6.0, 8.0])
    turned = pairs * np.exp(1j * np.array([1.0, 0.01]))
    return np.stack([turned.real, turned.imag], 1).ravel()


@by_numpy(rotated_by_hand)
def rope_pos1() -> Any:
    return rotary(np.array([[5.0, 6, 7, 8]]), np.array([1.0]), 10000.0 ** (-np.arange(0, 4, 2) / 4))[0]


@op
def concatenated(a, b):
    n, m = a.shape[0], b.shape[0]
    c: real[n + m]
    c[i] = a[i]
    c[n + j] = b[j]
    return np.sin(c)


@by_numpy(lambda: {
    "out": np.sin(range(1, 6)), "loss": np.sin(range(1, 6)).sum(), "g1": np.cos([1, 2, 3]), "g2": np.cos([4, 5]),
})  # fmt: skip
def concat_sin_grad() -> Any:
    a, b = np.array([1.0, 2, 3]), np.array([4.0, 5])
    loss, (g1, g2) = tc.value_and_grad(lambda a, b: concatenated(a, b).sum(), argnums=(0, 1))(a, b)
    return {"out": concatenated(a, b), "loss": loss, "g1": g1, "g2": g2}


@op
def affine_stores(x, y):
    unit["i, j => 2*i + j"] = x
    triangular["i, j => i, i + j"] = y
    return unit, triangular


@by_numpy(lambda: {"unit": np.arange(10.0, 16), "triangular": [[0, 1, 0, 0], [0, 2, 3, 0], [0, 0, 4, 5]]})
def affine_scatter_lowering() -> Any:
    unit, triangular = affine_stores(arange(3, 2) + 10, arange(3, 2))
    return {"unit": unit, "triangular": triangular}
