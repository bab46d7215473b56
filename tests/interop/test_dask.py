"""Functions for Dask: `tc.interop.dask`."""

import os
import pickle
import signal

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tcdsl.errors import ConfigurationError, DtypeError, ShapeError

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

RANDOM = np.random.default_rng(29)


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="sync"):
        yield


@op
def product(A, B):
    C[i, j] += A[i, k] * B[k, j]
    return C


@op
def smooth(x):
    a[i, j] = x[clamp(i - 1), j] + x[clamp(i + 1), j] - 2 * x[i, j]
    y[i, j] = a[i, clamp(j - 2)] * j + get(a[i + 1, j + 1], 7.0) * i + a[i, j]
    return y


@op
def strided(x, w):
    y[i] += w[k] * x[clamp(2 * i + k - 1)], i < x.shape[0] // 2
    return y


@op
def periodic(x):
    y[i] = x[wrap(i - 1)] + x[reflect(i + 1)] * 2 + x[symmetric(i - 3)], i < x.shape[0]
    return y


@op
def histogram(b, w):
    h = np.ones(8)
    h[b[i]] += w[i]
    return h


@op
def normalized(s):
    top[i] >>= s[i, j]
    e[i, j] = exp(s[i, j] - top[i])
    y[i, j] = e[i, j] / sum(e[i, l])
    return y, max(s[p, q])


@op
def statistics(x):
    return x.mean(axis=0), x.sum(), x.argmax(), x.min(), x.prod()


@op
def distances(x):
    d[i, j] += (x[i, k] - x[j, k]) ** 2
    return d


@op
def backwards(x):
    y[i] = x[x.shape[0] - 1 - i] - x[i]
    return y


@op
def spread(x):
    y[2 * i + k] += x[i] * (k + 1), k < 3
    return y


@op
def flat(x):
    M = x.shape[1]
    y[i * M + j] = x[i, j]
    return y


@op
def running(x):
    c[i] += x[k], k <= i and i < x.shape[0]
    return c


@op
def gathered(t, n):
    y[i, j] = t[n[i], j]
    return y


@op
def attention(q, k, v):
    s[i, j] += q[i, d] * k[j, d]
    top[i] >>= s[i, j]
    e[i, j] = exp(s[i, j] - top[i])
    y[i, d] = sum(e[i, j] * v[j, d]) / sum(e[i, j])
    return y


@op
def loss(x, w):
    e[()] += (x[i, k] * w[k] - 1.0) ** 2
    return e


@op
def everything(x):
    return sum(x[i, j] * (1 + i) for i in range(x.shape[0]) for j in range(x.shape[1]))


@op
def life(x):
    n[i, j] += x[wrap(i + a - 1), wrap(j + b - 1)], a < 3 and b < 3 and i < x.shape[0] and j < x.shape[1]
    return n - x


@op
def convolved(x, w):
    y[n, o, i, j] += x[n, c, 2 * i + a, j + b] * w[o, c, a, b]
    return y


@op
def extremes(x):
    high[j] >>= x[i, j]
    low[j] <<= x[i, j]
    some[j] |= x[i, j] > 0.9
    all[j] &= x[i, j] > 0.1
    product[j] *= x[i, j]
    rest = np.full(x.shape[1], 9.0)
    rest[j] -= x[i, j]
    return high, low, some, all, product, rest


@op
def permuted(x, places):
    y = np.ones(x.shape[0])
    y[places[i]] += x[i]
    return y


@op
def turned(y, x):
    N = y.shape[0]
    y[(i + 2) % N] >>= x[i, j], i < N
    return y


def aliveness(x):
    return (life(x) ** 2).sum()


def convolution(x, w):
    return (convolved(x, w) ** 2).sum()


def smoothness(x):
    return (smooth(x) ** 2).sum()


def stridedness(x, w):
    return (strided(x, w) ** 2).sum()


def flat_tuple(value):
    return sum(map(flat_tuple, value), ()) if isinstance(value, tuple) else (value,)


def agrees(f, *arguments, chunks, rtol=1e-12):
    """The results, if they are those of ``f`` on the whole arrays."""
    given = [a if c is None else da.from_array(a, chunks=c) for a, c in zip(arguments, chunks, strict=True)]
    found, expected = tc.interop.dask(f)(*given), f(*arguments)
    leaves, wanted = flat_tuple(found), flat_tuple(expected)
    for lazy, array, whole in zip(leaves, dask.compute(*leaves), wanted, strict=True):
        np.testing.assert_allclose(array, whole, rtol=rtol, atol=1e-12)
        assert lazy.shape == np.shape(whole) == np.shape(array)
        assert lazy.dtype == np.asarray(whole).dtype == np.asarray(array).dtype
    return leaves


X = RANDOM.random((20, 25))
CASES = {
    "product": (product, (X, RANDOM.random((25, 30))), ((8, 10), (10, 16))),
    "smooth": (smooth, (X,), ((8, 10),)),
    "strided": (strided, (X[:, 0], X[0, :3]), (6, None)),
    "periodic": (periodic, (X[:, 0],), (7,)),
    "histogram": (histogram, (RANDOM.integers(0, 8, 30), X[0].repeat(2)[:30]), (8, 7)),
    "normalized": (normalized, (X,), ((8, 10),)),
    "statistics": (statistics, (X,), ((8, 10),)),
    "distances": (distances, (X[:, :4],), ((8, 3),)),
    "backwards": (backwards, (X[:, 0],), (7,)),
    "spread": (spread, (X[:, 0],), (7,)),
    "flat": (flat, (X,), ((8, 25),)),
    "running": (running, (X[:, 0],), (7,)),
    "gathered": (gathered, (X, RANDOM.integers(0, 20, 15)), ((20, 10), 4)),
    "attention": (attention, (X[:, :3], X[:16, 3:6], X[:16, 6:9]), ((8, 3), (5, 3), (5, 3))),
    "extremes": (extremes, (X,), ((8, 10),)),
    "life": (life, (X,), ((8, 10),)),
    "aliveness": (tc.grad(aliveness), (X,), ((8, 10),)),
    "convolution": (
        tc.grad(convolution, argnums=(0, 1)),
        (RANDOM.random((2, 3, 9, 10)), RANDOM.random((4, 3, 3, 3))),
        ((1, 2, 4, 3), (2, 2, 2, 2)),
    ),
    # Chunks of any size, also of one cell and of none.
    "unequal": (smooth, (X,), (((1, 9, 0, 2, 8), (20, 0, 5)),)),
    "unequal sums": (product, (X, X.T), (((12, 0, 8), (3, 0, 21, 1)), ((1, 1, 23), (5, 15)))),
    "unequal gradient": (tc.grad(smoothness), (X,), (((1, 9, 0, 2, 8), (20, 5)),)),
    "single": (periodic, (X[:6, 0],), (1,)),
    # Cells that data choose, and that isl knows where sizes are numbers.
    "permuted": (permuted, (X[:, 0], RANDOM.permutation(20)), (6, 6)),
    "turned": (turned, (X[0, :20], X), (7, (8, 10))),
    "loss": (tc.value_and_grad(loss, argnums=(0, 1)), (X, X[0]), ((8, 10), 10)),
    "smoothness": (tc.grad(smoothness), (X,), ((8, 10),)),
    "stridedness": (tc.grad(stridedness, argnums=(0, 1)), (X[:, 0], X[0, :3]), (6, None)),
}


@pytest.mark.parametrize("name", CASES)
def test_chunks_give_what_the_whole_gives(name):
    f, arguments, chunks = CASES[name]
    agrees(f, *arguments, chunks=chunks)


def test_results_have_the_chunks_of_the_largest_argument():
    assert agrees(smooth, X, chunks=((8, 10),))[0].chunks == ((8, 8, 4), (10, 10, 5))
    assert agrees(backwards, X[:, 0], chunks=(7,))[0].chunks == ((7, 7, 6),)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int8", "int64", "uint16", "bool"])
def test_types(dtype):
    x = (X * 3).astype(dtype)
    agrees(everything, x, chunks=((8, 10),), rtol=1e-3)
    agrees(flat, x, chunks=((7, 7),))


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (1, 1), (1, 7)])
def test_empty_and_single_cells(shape):
    x = np.ones(shape)
    agrees(everything, x, chunks=((3, 3),))
    agrees(product, x, np.ones((shape[1], 4)), chunks=((3, 3), (3, 3)))


def test_what_is_not_a_number_stays():
    x = X.copy()
    x[3, 4], x[9, 9], x[15, 20] = np.nan, np.inf, -0.0
    agrees(normalized, x, chunks=((8, 10),))
    agrees(everything, x, chunks=((8, 10),))
    agrees(smooth, x[::-1, ::-2], chunks=((8, 5),))


def test_numbers_and_arrays_of_numpy():
    @op
    def scaled(x, w, a, n):
        y[i, j] = x[i, j] * w[j] * a + n
        return y

    found = tc.interop.dask(scaled)(da.from_array(X, chunks=(8, 10)), X[0], 2.5, n=3)
    np.testing.assert_allclose(found, scaled(X, X[0], 2.5, n=3))


def test_results_do_not_depend_on_threads():
    x = RANDOM.random(1000).astype("float32")
    lazy = tc.interop.dask(statistics)(da.from_array(x.reshape(100, 10), chunks=(7, 3)))
    with dask.config.set(scheduler="threads", num_workers=3):
        first = dask.compute(*lazy)
    for one, other in zip(first, dask.compute(*lazy), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_halo_is_all_that_is_read_of_neighbours():
    [y] = agrees(smooth, X, chunks=((8, 10),))
    task = next(y.dask[key] for key in y.dask if key[0] == y.name and key[1:] == (1, 1))
    shapes = [shape for shape, _ in task.args[2]]
    # One row above, two below; three columns to the left, two to the right, as far as there are any.
    assert shapes == [(11, 13)]


def test_regions():
    x = da.ones((1000, 500), chunks=100)
    assert str(tc.interop.dask(product).regions(x, da.ones((500, 60)))) == (
        "regions of product\n\n"
        "block            reads\n"
        "C[a0:a1, b0:b1]  A[a0:a1, :]\n"
        "C[a0:a1, b0:b1]  B[:, b0:b1]\n\n"
        "for blocks of 8 cells and more along each axis"
    )
    rows = tc.interop.dask(strided).regions(x[:, 0], np.ones(3)).rows
    assert [row[1] for row in rows] == ["w[:]", "x[max(0, 2 * a0 - 1):2 * a1]"]
    assert tc.interop.dask(running).regions(x[:, 0]).rows == [("c[a0:a1]", "x[0:a1]")]
    assert tc.interop.dask(smooth).regions(x).rows == [
        ("y[a0:a1, b0:b1]", "x[max(0, a0 - 1):min(1000, a1 + 2), max(0, b0 - 2):min(500, b1 + 1)]")
    ]


def test_data_that_choose_cells_of_several_chunks_are_refused():
    layer = tc.interop.dask(gathered)
    with pytest.raises(ShapeError) as fault:
        layer(da.from_array(X, chunks=(8, 10)), np.arange(5))
    assert "the index of axis 0 of `t` is data, so each block may read any cell of it, but it has 3 chunks" in str(
        fault.value
    )
    assert "y[i, j] = t[n[i], j]" in str(fault.value)
    assert "make it one chunk: `.rechunk({0: -1})`" in str(fault.value)


def test_values_in_order_are_refused():
    @op
    def powers(x):
        y[j] **= x[i, j]
        return y

    with pytest.raises(ShapeError, match=r"the index `i` runs over the chunks of axis 0 of `x`, but `\*\*=` takes its"):
        tc.interop.dask(powers)(da.from_array(X, chunks=(8, 10)))
    agrees(powers, X, chunks=((20, 10),))


def test_loops_are_refused():
    @op
    def rounds(x, n: int):
        for _ in range(n):
            x = x + 0.5 * x * x
        return x

    with pytest.raises(ConfigurationError, match="has a loop or a branch that runs, which cannot be cut into blocks"):
        tc.interop.dask(rounds)(da.from_array(X, chunks=(8, 10)), 200)


def test_arrays_that_are_refused():
    layer = tc.interop.dask(backwards)
    with pytest.raises(DtypeError, match=r"`x` is a Delayed\w*, and no array of Dask(.|\n)*from_delayed"):
        layer(dask.delayed(X))
    with pytest.raises(DtypeError, match="is a masked array, whose mask would be lost"):
        layer(np.ma.masked_greater(X[:, 0], 0.5))
    unknown = da.from_array(X[:, 0], chunks=7)
    with pytest.raises(ShapeError, match=r"the chunks of `x` have unknown sizes(.|\n)*compute_chunk_sizes"):
        layer(unknown[unknown > 0.5])
    with pytest.raises(DtypeError, match=r"the chunks of `x` are of the type numpy.ma(.|\n)*map_blocks"):
        layer(da.ma.masked_greater(unknown, 0.5))
    with pytest.raises(DtypeError, match="complex128"):
        layer(da.from_array(X[:, 0] * 1j, chunks=7))
    with pytest.raises(ShapeError, match="has the extent"):
        tc.interop.dask(product)(da.from_array(X, chunks=7), da.from_array(X, chunks=7))


def test_errors_in_chunks_point_at_the_source():
    found = tc.interop.dask(histogram)(da.from_array(np.array([1, 2, 9, 3]), chunks=2), np.ones(4))
    with pytest.raises(tc.errors.DataIndexError, match=r"h\[b\[i\]\] \+= w\[i\]"):
        found.compute()


def test_functions_and_arrays_travel():
    layer = pickle.loads(pickle.dumps(tc.interop.dask(product)))
    A, B = da.from_array(X, chunks=8), da.from_array(X.T, chunks=8)
    lazy = pickle.loads(pickle.dumps(layer(A, B)))
    np.testing.assert_allclose(lazy.compute(), X @ X.T)
    assert layer(A, B).name == layer(A, B).name
    assert "for Dask" in repr(layer)


def test_processes():
    A = da.from_array(X, chunks=(10, 13))
    with dask.config.set(scheduler="processes", num_workers=2):
        np.testing.assert_allclose(tc.interop.dask(product)(A, X.T).compute(), X @ X.T)


def test_a_worker_that_is_killed_loses_nothing(tmp_path):
    distributed = pytest.importorskip("distributed")
    dead = tmp_path / "dead"

    def deadly(block):
        # The process that is first to come here dies.
        if block.any() and not dead.exists():
            dead.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return block

    gradient = tc.value_and_grad(loss, argnums=(0, 1))
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with cluster, distributed.Client(cluster):
        blocks = da.from_array(X, chunks=(5, 20)).map_blocks(deadly, dtype=float)
        value, (d_x, d_w) = dask.compute(tc.interop.dask(gradient)(blocks, X[0]), scheduler=None)[0]
    assert dead.exists()
    expected, (e_x, e_w) = gradient(X, X[0])
    np.testing.assert_allclose(value, expected)
    np.testing.assert_allclose(d_x, e_x)
    np.testing.assert_allclose(d_w, e_w)
