"""NumPy's functions of whole arrays: each against NumPy, in value and type, over types and sizes, and its gradient."""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tcdsl.frontend.numpy_functions.table import FUNCTIONS
from tests.language.numpy_coverage import table, written
from tests.long_variants import every

PAGE = Path(tc.__file__).parent.parent / "docs" / "numpy.md"

# Of a vector `v`, a matrix `x` and a cube `t` of the same type, and whole numbers `k`.
WORDS = """
np.reshape(x, (3, -1)) | x.reshape(-1, 1) | np.ravel(t) | x.flatten() | np.expand_dims(v, (0, 2))
np.squeeze(x[:1], 0) | np.moveaxis(t, 0, -1) | np.swapaxes(t, 0, 2) | np.transpose(t, (2, 0, 1)) | x.transpose()
t.transpose(1, 0, 2) | np.flip(t, (0, -1)) | np.fliplr(x) | np.flipud(x) | np.rot90(x) | np.rot90(t, 2, (1, 2))
np.rot90(x, -1) | np.roll(x, 2) | np.roll(t, (1, -2), (0, 2)) | np.tile(v, 3) | np.tile(x, (2, 1, 2))
np.repeat(x, 2) | np.repeat(x, 3, axis=1) | np.broadcast_to(v, (2, *v.shape)) | np.pad(x, 1)
np.pad(v, (2, 1), constant_values=3) | np.pad(x, ((1, 0), (0, 2))) | np.atleast_1d(v[0]) | np.atleast_2d(v)
np.atleast_3d(x) | np.concatenate((x, x), 1) | np.stack((v, v), -1) | np.hstack((v, v)) | np.vstack((v, v))
np.dstack((v, v)) | np.column_stack((v, x[0, 0] * v)) | np.append(v, v) | np.append(x, x, 1) | np.split(x, 3, 1)[1]
np.array_split(v, 3)[2] | np.split(v, (1, 2))[1] | np.meshgrid(v, v[:2])[0] | np.meshgrid(v, v, indexing='ij')[1]
np.triu(x) | np.tril(t, -1) | np.diagonal(t, 1, 0, 2) | np.diag(v, -1) | np.diag(x, 1) | np.trace(t)
np.take(x, k, 1) | np.take(v, k) | np.take_along_axis(x, np.abs(x[:, :1]).astype(np.int64) % 3, 1) | np.cumsum(v)
np.cumsum(x) | np.cumprod(x, axis=1) | x.cumsum(0) | np.maximum.accumulate(v) | np.add.accumulate(x, 1)
np.multiply.accumulate(x) | np.minimum.accumulate(x, axis=-1) | np.add.reduce(x) | np.maximum.reduce(v)
np.multiply.reduce(x, axis=1) | np.subtract.outer(v, k) | np.hypot.outer(v, v) | np.sum(x, dtype=np.float32)
np.sum(x, where=x > 1) | np.prod(x, axis=1) | np.mean(x, where=x > 0) | np.var(x, ddof=1) | np.std(t, (0, 2))
np.ptp(x, 1) | np.count_nonzero(x, axis=1) | np.average(x, 0) | np.average(x, 1, weights=np.arange(3.0))
np.nansum(x) | np.nanprod(x, 0) | np.nanmax(v) | np.nanmin(x, 1) | np.nanmean(x, 0) | np.nanvar(x)
np.nanstd(x, 0, ddof=1) | np.cov(x.T) | np.cov(v) | np.corrcoef(x.T) | np.linalg.norm(x) | np.linalg.norm(v, 1)
np.linalg.norm(v, np.inf) | np.linalg.norm(v, 3) | np.linalg.norm(x, 1) | np.linalg.norm(x, -np.inf) | np.trapezoid(x)
np.trapezoid(x, v[:3], axis=1) | np.diff(x, 2) | np.diff(t, axis=0) | np.ediff1d(v) | np.gradient(v)
np.gradient(x, axis=1) | np.dot(x, x.T) | np.dot(v, 2) | np.outer(v, k) | np.inner(x, x) | np.vdot(x, x)
np.tensordot(t, t, ((0, 2), (0, 2))) | np.tensordot(x, x.T, 1) | np.einsum('ij,kj->ik', x, x) | np.einsum('ij->j', x)
np.einsum('ij,jk,kl', x, x.T, x) | np.einsum('ii', x[:, :2]) | np.kron(x, x[:1]) | np.cross(x, x[0]) | np.vecdot(x, x)
np.convolve(v, k) | np.convolve(v, v[:2], 'same') | np.correlate(v, v[:2]) | np.convolve(v, k, 'valid')
np.linalg.matrix_power(x[:, :2], 5) | np.linalg.multi_dot((x, x.T, x)) | np.isnan(x) | np.isinf(x) | np.isfinite(x)
np.signbit(v) | np.trunc(x) | np.fix(x) | np.fmax(v, v[0]) | np.fmin(v, v[0]) | np.hypot(v, v[0]) | np.logaddexp(v, v)
np.logaddexp2(v, 1) | np.cbrt(x) | np.heaviside(v, 0.5) | np.copysign(v, -1.0) | np.fmod(v, 2) | np.degrees(v)
np.radians(v) | np.log10(np.abs(v) + 1) | np.logical_xor(v, v > 1) | np.isclose(v, v[0]) | np.allclose(v, v)
np.array_equal(v, v) | np.nan_to_num(x) | np.sinc(v) | np.select([v > 1, v > 0], [v, -v], 7) | np.clip(x, 0, 2)
x.clip(1) | np.real(v) | np.imag(v) | np.conj(v * 1) | np.angle(v) | np.divmod(v, 2)[1] | np.modf(v)[0]
np.positive(v) | np.float_power(v, 2) | np.ldexp(v, 1) | x[[0, -1]] | x[:, [2, 0]]
np.block([[x, x], [x[:1], x[:1]]]) | np.block([v, v]) | np.insert(v, 1, 7) | np.insert(x, 0, v[:1], 1)
np.delete(v, 0) | np.delete(x, -1, axis=1) | np.polyval(v, x) | np.vander(v, 3) | np.vander(v, increasing=True)
np.cumulative_sum(x, axis=1) | np.cumulative_prod(v, include_initial=True) | np.matrix_transpose(t)
np.unstack(np.stack((v, v)))[1] | np.broadcast_arrays(x, x[:1])[1] | np.linalg.vector_norm(t, axis=1)
np.linalg.matrix_norm(t, keepdims=True) | np.linalg.outer(v, v) | np.linalg.cross(x, x)
np.linalg.diagonal(t, offset=1) | np.linalg.trace(t) | np.linalg.matmul(x, x.T) | np.linalg.vecdot(x, x)
np.linalg.tensordot(x, x.T, axes=1) | np.linalg.matrix_transpose(x) | np.sort(x) | np.sort(t, 0) | np.sort(x, None)
np.argsort(x, stable=True) | np.argsort(t, axis=0, kind='stable') | np.searchsorted(np.sort(v), x)
np.searchsorted(np.sort(v), v, 'right') | np.searchsorted(v, v[0], sorter=np.argsort(v)) | np.digitize(x, np.sort(v))
np.digitize(v, np.arange(3.0), right=True) | np.interp(x, np.arange(3.0), np.arange(3.0) ** 2)
np.interp(v, np.sort(v), v, left=-1.0, right=7.0) | np.median(x) | np.median(t, 1, keepdims=True) | np.median(x, -1)
np.quantile(v, 0.3) | np.quantile(t.astype(np.float64), [0.2, 0.9], 2) | np.percentile(x, 50, axis=1, keepdims=True)
np.bincount(k, minlength=4) | np.bincount(k, v[: k.shape[0]], 3) | np.histogram(x, 3)[0]
np.histogram(x, 4, (0, 2))[0] | np.histogram(x, 3)[1] | np.histogram(v, np.arange(-2.0, 3.0), weights=v)[0]
np.histogram(x, 3, (-2, 2), density=True)[0] | np.linalg.cholesky(SPD) | np.linalg.det(SQUARE)
np.linalg.slogdet(SQUARE)[1] | np.linalg.solve(SQUARE, v) | np.linalg.inv(SQUARE) | np.linalg.solve(SQUARE, SQUARE)
np.linalg.qr(x)[0] | np.linalg.qr(x.T)[1] | np.linalg.qr(x, 'complete')[1] | np.linalg.qr(t, 'r')
(np.repeat(x, 0), np.tile(v, (2, 0)), np.diagonal(x, 7), np.trace(x, -7), x[:, []], np.take(x, [-1], 1))
(np.cumsum(x, dtype=np.int8), np.prod(v, dtype=np.int8), np.mean(v + 7, dtype=int), np.max(v, initial=np.float64(-1)))
(np.append(v, [1, 2]), np.outer(2.5, v), np.average(x, 1, weights=[1, 2, 3]), np.hypot(x, [1, 2, 3]), np.append(v, 1))
(np.less.outer([1, 2], v), np.maximum.outer(2, v), np.hypot.outer([1, 2], v), np.column_stack((v, v)))
(np.meshgrid(x, [1, 2])[0], np.hstack((v.max(initial=0), 2)), np.vstack((1, np.all(v))), np.all(v).reshape(()))
(np.diag(v, np.int64(1)), np.repeat(v, np.int64(2)), np.tile(v, np.array([2, 1])), np.gradient(SIGNS), np.rint(v))
(np.fabs(v), np.fmod(SIGNS, np.int8(3)), np.ldexp(v, 2000), np.signbit(np.fmod(-v * 0.0, 2)), np.modf(v * -0.0)[0])
(np.linalg.det(SQUARE * 0), np.linalg.slogdet(SQUARE * 0)[1], np.linalg.matrix_power(np.stack((x, x))[:, :, :2], 0))
"""
WORDS = WORDS.replace("SIGNS", "np.where(v > 0, 100, -128).astype(np.int8)")
WORDS = WORDS.replace("SPD", "(v[:, None] * v + np.diag(v * 0 + 1))")
WORDS = WORDS.replace("SQUARE", "(v[:, None] * v + np.diag(v[1:] * 0 + 2, 1) + np.diag(v[1:] * 0 + 1, -1))")
EACH = [word.strip() for line in WORDS.strip().splitlines() for word in line.split(" | ")]
# Types, and how many cells the vectors have.
CASES = [("float64", 4), ("float64", 1), ("float64", 0), ("float32", 4), ("int8", 4)]
MORE = [*itertools.product(("float32", "int8", "int64", "bool"), (4, 1, 0)), ("float16", 4)]


def function_of(word: str) -> Callable[..., Any]:
    return eval(f"lambda v, x, t, k: {word}", {"np": np})  # noqa: S307


def arguments(kind: str, cells: int) -> list[np.ndarray]:
    generator = np.random.default_rng(cells)
    shapes = ((cells,), (min(cells, 2), 3), (2, cells, 3))
    drawn = [(3 * generator.normal(size=shape)).astype(kind) for shape in shapes]
    return [*drawn, np.arange(min(cells, 3), dtype=np.int64)]


# Functions with floating results give float64 for small integers, and products and their sums are 64-bit.
WIDER = {"bool": "int64", "int8": "int64", "float16": "float64"}


def assert_as_numpy(function: Callable[..., Any], called: Callable[..., Any], given: list[np.ndarray]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            wanted = function(*given)
            wide = function(*(each.astype(WIDER.get(str(each.dtype), each.dtype)) for each in given))
        except Exception:
            with suppress(tc.TcdslError):
                called(*given)
            return
        found = called(*given)
    parts = (each if isinstance(each, tuple) else (each,) for each in (found, wanted, wide))
    for one, other, wider in zip(*(tuple(map(np.asarray, each)) for each in parts), strict=True):
        if one.dtype != other.dtype:
            assert str(one.dtype) == WIDER.get(str(other.dtype))
            other = wider
        assert one.shape == other.shape
        digits = 1e-11 if one.dtype == np.float64 else 4e-3 if one.dtype == np.float16 else 4e-5
        np.testing.assert_allclose(one, other, rtol=digits, atol=digits)


def compare(word: str, cases: list[tuple[str, int]]) -> None:
    function = function_of(word)

    @op
    def called(v, x, t, k):
        return function(v, x, t, k)

    for kind, cells in cases:
        if cells == 0 and word.startswith(("np.median", "np.histogram(x, 3)[1]", "np.bincount(k, v")):
            continue  # an error here
        assert_as_numpy(function, called.interpret, arguments(kind, cells))


@pytest.mark.parametrize("word", EACH)
def test_words_are_numpys(word: str) -> None:
    compare(word, CASES)


@pytest.mark.long
@pytest.mark.parametrize("word", EACH)
def test_words_are_numpys_in_more_types(word: str) -> None:
    compare(word, MORE)


# Those whose results change with their arguments, and have slopes where these are drawn.
NO_SLOPES = re.compile(
    r"is(nan|inf|finite|close)|allclose|array_equal|signbit|trunc|fix|logical|count_nonzero|select|argm|sort|unique"
    r"|histogram|bincount|searchsorted|digitize|heaviside|angle|modf|imag|where=|float32"
)
SMOOTH = [word for word in EACH if not NO_SLOPES.search(word) and word[0] != "("]


@pytest.mark.parametrize("first", every(3, range(0, len(SMOOTH), 12)))
def test_gradients_of_words(first: int) -> None:
    functions = [function_of(word) for word in SMOOTH[first : first + 12]]
    v, x, t, k = arguments("float64", 4)

    @op
    def called(v, x, t):
        return tuple(function(v, x, t, k) for function in functions)

    for found, function in zip(called(v, x, t), functions, strict=True):
        np.testing.assert_allclose(found, function(v, x, t, k), rtol=1e-12, atol=1e-12)
    tc.check_grads(called, (v, x, t))


def test_functions_of_one_number_at_points() -> None:
    x = np.array([-1.5, 0.5, np.nan, np.inf])

    @op
    def f(x):
        a[i] = np.clip(x[i], 0, 1) + np.minimum(x[i], 0)
        b[i] = np.nan_to_num(x[i])
        c[i] = np.positive(x[i]) + np.conj(x[i])
        return a, b, c

    for one, other in zip(f.interpret(x), (np.clip(x, 0, 1) + np.minimum(x, 0), np.nan_to_num(x), x + x), strict=True):
        np.testing.assert_array_equal(one, other)

    @op
    def table(x):
        y[i] = np.interp(x[i], [0.0, 1.0], [1.0, 3.0])
        return y

    # A function of whole arrays is called for each point.
    np.testing.assert_array_equal(table.interpret(x), np.interp(x, [0.0, 1.0], [1.0, 3.0]))


def test_gradients_of_factors() -> None:
    @op
    def factors(a):
        return np.linalg.qr(a)[1], np.linalg.solve(a[:4], a[4, :4])

    tc.check_grads(factors, (np.random.default_rng(0).normal(size=(6, 4)),))


def test_the_page_lists_what_there_is(pytestconfig: pytest.Config) -> None:
    text = PAGE.read_text("utf-8")
    before, _, rest = text.partition("<!-- generated -->\n")
    wanted = f"{before}<!-- generated -->\n{table()}\n<!-- end -->{rest.partition('<!-- end -->')[2]}"
    if pytestconfig.getoption("--update-golden"):
        PAGE.write_text(wanted, "utf-8")
    assert wanted == PAGE.read_text("utf-8"), "run `pytest --update-golden`"


def test_all_functions_of_the_table_are_compared() -> None:
    called = {name for word in EACH for name in re.findall(r"np((?:\.[a-z]\w*)+)", word)}
    missing = {each for each in map(written, FUNCTIONS) if each.removeprefix("np") not in called}
    assert not missing


def test_words_of_tensors_in_decorated_functions_and_lists_as_their_indices() -> None:
    def words(x: Any) -> Any:
        return (
            np.sort(np.moveaxis(x, 0, 1)) + np.cumsum(x, 1).reshape(3, 2) * np.stack((x, x))[1].T + np.add.reduce(x, 1)
        )

    x = np.array([[3.0, 1.0, 2.0], [-1.0, 0.5, 4.0]])
    given = tc.tensor(x)
    np.testing.assert_allclose(op(words)(given).value, words(x))
    keys: list[Any] = [[1, 0], [-1], [], (slice(None), [0, -1]), (..., [2, 2], None), (0, [1, -3]), [[0, 1], [1, 0]]]
    for key in keys:
        np.testing.assert_array_equal(given[key].value, x[key])
