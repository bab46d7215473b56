"""What `define` gives: the object of definitions, and functions that are used as any other."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcdsl as tc

SOURCE = """
def matmul(float(N, K) A, float(K, M) B) -> (C) {
    C(i, j) +=! A(i, k) * B(k, j)
}
def norm(float(N) x) -> (n) { n() +=! x(i) * x(i)   n = sqrt(n) }
def ends(float(N, M) A) -> (lo, hi) { lo(i) min=! A(i, j)   hi(i) max=! A(i, j) }
"""
A = np.arange(6, dtype=np.float32).reshape(2, 3)
B = np.ones((3, 4), np.float32)


@pytest.fixture(scope="module")
def defs() -> Any:
    return tc.comprehensions.define(SOURCE)


def test_definitions_are_found_by_name(defs: Any) -> None:
    assert defs.matmul is defs["matmul"]
    assert list(defs) == ["matmul", "norm", "ends"]
    assert len(defs) == 3
    assert "norm" in defs
    assert "nothing" not in defs
    assert [name for name in dir(defs) if not name.startswith("_")] == ["ends", "matmul", "norm"]
    with pytest.raises(AttributeError, match=r"(?s)the source has no attribute `nothing`.*it has ends, matmul, norm"):
        _ = defs.nothing
    with pytest.raises(KeyError, match="there is no definition 'nothing'"):
        _ = defs["nothing"]
    assert repr(defs) == "<tc definitions: matmul, norm, ends>"
    assert repr(defs.ends) == "<tc ends(float(N, M) A) -> (lo, hi)>"


def test_any_name_may_be_that_of_a_definition() -> None:
    names = ("source", "functions", "keys", "items", "shapes", "explain", "define", "_functions")
    text = " ".join(f"def {name}(float a) -> (b) {{ b = {k} * a }}" for k, name in enumerate(names))
    defs = tc.comprehensions.define(text)
    assert [float(getattr(defs, name)(np.float32(1))) for name in names] == list(range(len(names)))


def test_text_shows_the_program(defs: Any) -> None:
    assert str(defs.matmul) == SOURCE.strip().partition("\ndef")[0] + "\n"
    assert str(defs).count("def ") == 3
    assert defs.matmul.explain("source") == str(defs.matmul)


def test_results(defs: Any) -> None:
    assert isinstance(defs.matmul(A, B), np.ndarray)
    assert isinstance(defs.ends(A), tuple)
    assert np.shape(defs.norm(B[0])) == ()
    np.testing.assert_allclose(defs.matmul(B=B, A=A), A @ B)
    assert defs.matmul(np.asfortranarray(A), B[:, ::2]).shape == (2, 2)


def test_shapes_without_running(defs: Any) -> None:
    assert defs.matmul.shapes((1000, 2000), (2000, 3000)) == (1000, 3000)
    assert defs.matmul.shapes(A, (3, 7)) == (2, 7)
    assert defs.ends.shapes(A) == ((2,), (2,))
    assert defs.norm.shapes([5]) == ()
    with pytest.raises(tc.ShapeError, match="axis 0 of `B` has the extent 4, and `K` is 3"):
        defs.matmul.shapes(A, (4, 7))
    with pytest.raises(tc.ShapeError, match="has rank 2, and is given an array of rank 1"):
        defs.matmul.shapes((3,), (3, 4))
    for extent in (-1, 1.5, None, True):
        with pytest.raises(tc.ShapeError, match=rf"the shape of `B` has the extent {extent}(.|\n)*not negative"):
            defs.matmul.shapes(A, (3, extent))


def test_explanations(defs: Any) -> None:
    assert defs.matmul.explain("ranges") == (
        "C(i, j) +=! A(i, k) * B(k, j)\n    i in 0:N\n    j in 0:M\n    k in 0:K  (reduced)\n    C: float32[N, M]"
    )
    with pytest.raises(tc.ConfigurationError, match=r"there is no stage 'range'; the stages are source, .*, ranges"):
        defs.matmul.explain("range")
    assert "0 <= i < N and 0 <= j < M and 0 <= k < K" in defs.matmul.explain("ir", A, B)
    for stage in ("loops", "python", "grad", "passes", "cost"):
        assert defs.matmul.explain(stage, A, B)
    assert defs.matmul.cost(A, B)
    unused = tc.comprehensions.define("def f(float(2, N) A, float s) -> (B) { B(i) = s * A(1, i) }").f
    assert "B[i] = s * A[1, i]  for [i]: 0 <= i < N" in unused.explain()
    stated = tc.comprehensions.define("def f(float(N) A) -> (B) { B(i) = A(i / 2) where i in 1:N }").f
    assert "i in 1:N  (stated)\n    B: float32[N]" in stated.explain("ranges")


def test_buffers(defs: Any) -> None:
    C = np.full((2, 4), 7, np.float32)
    assert defs.matmul(A, B, out=C) is C
    np.testing.assert_allclose(C, A @ B)
    lo, hi = np.zeros(2, np.float32), np.zeros(2, np.float32)
    defs.ends(A, out=(lo, hi))
    np.testing.assert_allclose((lo, hi), (A.min(1), A.max(1)))
    with pytest.raises(tc.ShapeError, match="but out is"):
        defs.matmul(A, B, out=np.zeros((2, 3), np.float32))


@pytest.mark.filterwarnings("ignore:.*without initialization")
def test_accumulation_continues_a_buffer() -> None:
    source = """def f(float(N, M) A) -> (s, p, top, t) {
        s(i) += A(i, j)   p(i) *= A(i, j)   top(i) max= A(i, j)   t(i) = 2 * s(i)
    }"""
    f = tc.comprehensions.define(source).f
    given = A + 1
    plain = [given.sum(1), given.prod(1), given.max(1), 2 * given.sum(1)]
    for found, expected in zip(f(given), plain, strict=True):
        np.testing.assert_allclose(found, expected)
    out = tuple(np.full(2, 5, np.float32) for _ in range(4))
    f(given, out=out)
    held = [5 + given.sum(1), 5 * given.prod(1), np.maximum(5, given.max(1)), 2 * (5 + given.sum(1))]
    for found, expected in zip(out, held, strict=True):
        np.testing.assert_allclose(found, expected)
    with pytest.raises(tc.ShapeError, match="axis 0 of out for `s` has the extent 3, not 2"):
        f(given, out=(np.zeros(3, np.float32), *out[1:]))
    with pytest.raises(tc.DtypeError, match="is float32, and is given float64"):
        f(given, out=(np.zeros(2), *out[1:]))
    with pytest.raises(tc.ConfigurationError, match="out has 1 arrays for 4 results"):
        f(given, out=out[0])


def test_accumulation_without_initialization_is_a_warning() -> None:
    source = "def g(float(N) A) -> (s) {\n    s() += A(i)\n}"
    with pytest.warns(UserWarning, match=r"a reduction without initialization(.|\n)*s\(\) \+= A\(i\)\n +\^"):
        tc.comprehensions.define(source)


def test_derivatives(defs: Any) -> None:
    def loss(A: Any, B: Any) -> Any:
        return (defs.matmul(A, B) ** 2).sum()

    value, (dA, dB) = tc.value_and_grad(loss, argnums=(0, 1))(A, B)
    C = A @ B
    np.testing.assert_allclose(value, (C**2).sum(), rtol=1e-6)
    np.testing.assert_allclose(dA, 2 * C @ B.T, rtol=1e-6)
    np.testing.assert_allclose(dB, 2 * A.T @ C, rtol=1e-6)
    x = B[0]
    np.testing.assert_allclose(tc.grad(defs.norm)(x), x / 2)
    _, pullback = tc.vjp(defs.ends, A)
    np.testing.assert_allclose(pullback((np.ones(2, np.float32), np.zeros(2, np.float32)))[0], [[1, 0, 0], [1, 0, 0]])
    np.testing.assert_allclose(tc.jvp(defs.norm, (x,), (x,))[1], 2)
    np.testing.assert_allclose(tc.hessian(defs.norm)(x), np.eye(4) / 2 - np.outer(x, x) / 8, atol=1e-6)
    tc.check_grads(defs.matmul, (A, B), order=2, modes=("fwd", "rev"))


def test_integers_have_no_gradient() -> None:
    source = "def f(float(N, D) table, int32(M) ids) -> (s) { s() +=! table(ids(m), d) }"
    f = tc.comprehensions.define(source).f
    ids = np.array([1, 1, 0], np.int32)
    np.testing.assert_allclose(tc.grad(f)(A, ids), [[1, 1, 1], [2, 2, 2]])
    with pytest.raises(tc.DifferentiationError):
        tc.grad(f, argnums=1)(A, ids)


def test_calls_in_other_functions(defs: Any) -> None:
    @tc.op
    def twice(A, B):
        C = defs.matmul(A, B)
        D[i, j] = 2 * C[i, j]
        return D

    np.testing.assert_allclose(twice(A, B), 2 * A @ B)
    with pytest.raises(tc.DtypeError, match="`A` of `matmul` is float32, and is given float64"):
        twice(A.astype(float), B)


def test_tensors_of_graphs(defs: Any) -> None:
    w = tc.tensor(A)
    y = defs.matmul(w, tc.tensor(B))
    np.testing.assert_allclose(np.asarray(y), A @ B)
    np.testing.assert_allclose(np.asarray(y + y), 2 * A @ B)
    p = tc.param("p", init=A)
    loss = (defs.matmul(p, B) ** 2).sum()
    tc.compile(tc.train.grad_update(loss)).run()
    np.testing.assert_allclose(p.grad, 2 * (A @ B) @ B.T, rtol=1e-6)


def test_python_numbers() -> None:
    f = tc.comprehensions.define("def f(float a, int32 n, double d) -> (b, m, e) { b = a * n  m = n + 1  e = d / 4 }").f
    b, m, e = f(2.5, 4, 1)
    assert (b, m, e) == (10, 5, 0.25)
    assert (b.dtype, m.dtype, e.dtype) == (np.float32, np.int32, np.float64)
    assert f.cache_info().programs == 1
    f(3.5, 7, 2)
    assert f.cache_info().programs == 1


def test_python_numbers_while_something_is_traced() -> None:
    source = "def f(float(N) A, float s, int32 k, bool b) -> (t) { t +=! b ? A(i) * s + k : 0 }"
    f = tc.comprehensions.define(source).f
    x = np.ones(3, np.float32)

    @tc.op
    def twice(A):
        return f(A, 2.0, True, True) * 2

    np.testing.assert_allclose(f(x, 2.0, 1, True), 9)
    np.testing.assert_allclose(tc.grad(lambda A: f(A, 2.0, 1, True))(x), [2, 2, 2])
    np.testing.assert_allclose(tc.grad(lambda A: f(A, s=2, k=1, b=True))(x), [2, 2, 2])
    np.testing.assert_allclose(np.asarray(f(tc.tensor(x), 2, 1, True)), 9)
    np.testing.assert_allclose(np.asarray(f(tc.tensor(x), 2, 1, False)), 0)
    np.testing.assert_allclose(twice(x), 18)
    for given in (x, tc.tensor(x)):
        with pytest.raises(tc.DtypeError, match="`k` of `f` is int32, and is given a Python float"):
            f(given, 2.0, 1.5, True)
        with pytest.raises(tc.DtypeError, match="1099511627776") as caught:
            f(given, 2.0, 2**40, True)
        text = str(caught.value)
        assert text.split("\n")[2].count("^") == len("int32 k")
        assert text.split("\n")[2].index("^") - 4 == source.index("int32 k")
    with pytest.raises(tc.DtypeError, match="`k` of `f` is None, not a tensor of int32 of rank 0"):
        f(tc.tensor(x), 2.0, None, True)
    with pytest.raises(tc.DtypeError, match="`A` of `f` is a Python float, not a tensor of float32 of rank 1"):
        f(1.0, 2.0, 1, True)


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
def test_a_whole_number_takes_a_wide_unsigned_type(dtype: Any) -> None:
    B = np.array([np.iinfo(dtype).max - 5, 7], dtype)
    values = {
        "B(i) / 2": B // dtype(2),
        "B(i) % 7": B % dtype(7),
        "2 * B(i)": dtype(2) * B,
        "k + B(i) where k = 3": B + dtype(3),
        "min(B(i), 9)": np.minimum(B, dtype(9)),
        "max(9, B(i))": np.maximum(B, dtype(9)),
        "B(i) > 7 ? B(i) : 0": np.array([B[0], 0], dtype),
        "B(i) > 7": B > 7,
        "7 == B(i)": B == 7,
        "B(i) * 1.0": B.astype(np.float32),
    }
    for value, expected in values.items():
        f = tc.comprehensions.define(f"def f(uint{8 * B.itemsize}(N) B) -> (C) {{ C(i) = {value} }}").f
        np.testing.assert_array_equal(f(B), expected, value)
        assert f(B).dtype == expected.dtype
        np.testing.assert_array_equal(f.interpret(B), expected, value)


def test_whole_numbers_beside_other_types_are_int32() -> None:
    source = (
        "def f(uint8(N) b, uint32(N) u, int64(N) w) -> (x, y, z) { x(i) = b(i) * 2  y(i) = u(i) * -1  z(i) = w(i) + 1 }"
    )
    given = (np.full(1, 200, dtype) for dtype in (np.uint8, np.uint32, np.int64))
    x, y, z = tc.comprehensions.define(source).f(*given)
    assert (x[0], y[0], z[0]) == (400, -200, 201)
    assert (x.dtype, y.dtype, z.dtype) == (np.int32, np.int32, np.int64)


def test_a_statement_reads_what_was_there_before_it() -> None:
    source = "def f(float(N) A) -> (S) { S(i) = A(i)  S(i) += S(i - 1) where i in 1:N }"
    np.testing.assert_allclose(tc.comprehensions.define(source).f(A[1]), [3, 7, 9])


def test_pickles_and_copies(defs: Any) -> None:
    again = pickle.loads(pickle.dumps(defs))
    assert again == defs
    np.testing.assert_allclose(pickle.loads(pickle.dumps(defs.matmul))(A, B), A @ B)
    assert copy.deepcopy(defs) is defs
    assert copy.copy(defs.matmul) is defs.matmul


def test_functions_are_no_methods(defs: Any) -> None:
    class Model:
        product = defs.matmul

    np.testing.assert_allclose(Model().product(A, B), A @ B)


def test_threads() -> None:
    def run(k: int) -> float:
        defs = tc.comprehensions.define(f"def f(float(N) x) -> (y) {{ y(i) = {k % 3} * x(i) }}")
        return float(defs.f(np.ones(2, np.float32))[1])

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(run, range(12))) == [k % 3 for k in range(12)]


def test_later_processes_find_compiled_code(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np\nimport tcdsl as tc\n"
        "assert not {'islpy'} & set(__import__('sys').modules)\n"
        "f = tc.comprehensions.define('def f(float(N) x) -> (y) { y(i) = 3 * x(i) }').f\n"
        "assert f(np.ones(2, np.float32))[0] == 3\nprint(f.cache_info().from_disk)\n"
    )
    environment = {**os.environ, "TCDSL_CACHE_DIR": str(tmp_path / "cache")}
    runs = [
        subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, env=environment)
        for _ in range(2)
    ]
    assert [run.stdout.strip() for run in runs] == ["0", "1"]
