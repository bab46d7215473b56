"""Parameters: what a call takes, what it gives back, and what it refuses."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op

X = np.arange(6.0).reshape(2, 3)


@op
def doubled(x):
    return 2 * x


@op
def rows(x, *, names=("a",)):
    y[i] = sum(x[i, k])
    return y


@cd
def increment(p, g):
    p += g


class OnlyArray:
    """Readable through ``__array__`` alone."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.array


class OnlyDLPack:
    """Readable through ``__dlpack__`` alone."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


class Elsewhere(OnlyDLPack):
    """What lives on another device."""

    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("not on the CPU")

    def __dlpack_device__(self) -> Any:
        return (2, 0)


# -- arrays --------------------------------------------------------------------------------------------------


def test_numpy_goes_in_and_numpy_comes_out() -> None:
    found = doubled(X)
    assert type(found) is np.ndarray
    np.testing.assert_array_equal(found, 2 * X)

    @op
    def total(x):
        t[()] += x[i, j]
        return t

    # As for NumPy's own reductions, a result of rank 0 is a scalar.
    assert type(total(X)) is np.float64


@pytest.mark.parametrize(
    "layout",
    [
        np.asfortranarray,
        lambda x: np.repeat(x, 2, axis=1)[:, ::2],
        lambda x: np.ascontiguousarray(x[::-1, ::-1])[::-1, ::-1],
        lambda x: np.broadcast_to(x[:1], x.shape),
        lambda x: np.frombuffer(b"\0" + x.tobytes(), dtype=np.uint8)[1:].view(np.float64).reshape(x.shape),
        lambda x: np.array(np.ma.masked_array(x)),
        lambda x: x[:0],
    ],
    ids=["Fortran", "strided", "backwards", "broadcast", "misaligned", "copied", "empty"],
)
def test_arrays_of_any_layout_are_read(layout: Any) -> None:
    x = layout(X)
    x.flags.writeable = False
    np.testing.assert_array_equal(rows(x), x.sum(axis=1))


def test_subclasses_of_arrays_give_plain_arrays() -> None:
    class Named(np.ndarray):
        pass

    found = doubled(X.view(Named))
    assert type(found) is np.ndarray


def test_numpy_scalars_and_arrays_of_rank_0_are_tensors_of_rank_0() -> None:
    @op
    def f(x, s):
        y[i] = x[i] * s[()] + s
        return y

    for scalar in (np.float32(3), np.array(3, np.float32), np.int8(3), np.bool_(True)):
        found = f(np.ones(2, np.float32), scalar)
        wanted = np.ones(2, np.float32) * scalar + scalar
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


def test_arrays_of_other_libraries_are_read_through_dlpack_or_array() -> None:
    for wrap in (OnlyArray, OnlyDLPack):
        found = doubled(wrap(X))
        assert type(found) is np.ndarray
        np.testing.assert_array_equal(found, 2 * X)


def test_tensors_of_torch_and_jax_are_read() -> None:
    torch = pytest.importorskip("torch")
    np.testing.assert_array_equal(doubled(torch.arange(3.0)), [0, 2, 4])
    np.testing.assert_array_equal(doubled(torch.arange(6.0).reshape(2, 3).T), [[0, 6], [2, 8], [4, 10]])
    jax = pytest.importorskip("jax")
    np.testing.assert_array_equal(doubled(jax.numpy.arange(3.0)), [0, 2, 4])


def test_arrays_on_other_devices_are_errors() -> None:
    with pytest.raises(tc.DtypeError, match=r"`x` lies on the device CUDA:0\npass a copy in the computer's own memory"):
        doubled(Elsewhere(X))


def test_arrays_of_other_libraries_are_for_reading_only() -> None:
    p = OnlyDLPack(np.zeros(3))
    with pytest.raises(tc.DtypeError, match=r"increment\(\) writes to `p`, which is a OnlyDLPack") as caught:
        increment(p, np.ones(3))
    assert "pass a NumPy array, whose memory can be written" in str(caught.value)
    increment(np.zeros(3), OnlyDLPack(np.ones(3)))
    assert p.array.tolist() == [0, 0, 0]


@pytest.mark.parametrize("scalar", [1.0, 1, True, np.float64(1)])
def test_numbers_cannot_be_written(scalar: Any) -> None:
    @cd
    def cells(p, g):
        p[i] = g[i]

    @cd
    def whole(p, g):
        p = g

    for function in (increment, cells, whole):
        with pytest.raises(tc.TcdslError):
            function(scalar, np.ones(3))
    if not isinstance(scalar, np.generic):
        with pytest.raises(tc.DtypeError, match="`p` is a number, but an array is stored into it"):
            increment(scalar, np.ones(3))


def test_numbers_of_in_place_code_are_ordinary_python() -> None:
    @cd
    def f(p, rate):
        rate = rate / 2
        rate *= 3
        p += rate

    p = np.zeros(2)
    f(p, 1.0)
    assert p.tolist() == [1.5, 1.5]


def test_lists_are_errors_that_say_what_to_write() -> None:
    with pytest.raises(tc.DtypeError, match=r"wrap it with `np\.asarray"):
        doubled([1.0, 2.0])
    with pytest.raises(tc.DtypeError, match="configuration is passed by keyword"):
        doubled("text")


# -- positional and keyword-only -----------------------------------------------------------------------------


def test_positional_parameters_are_tensors_by_position_or_name_with_defaults() -> None:
    @op
    def f(a, /, b, c=3.0):
        return a - b * c

    np.testing.assert_array_equal(f.interpret(X, X), X - X * 3)
    np.testing.assert_array_equal(f.interpret(X, b=2 * X), X - 6 * X)
    np.testing.assert_array_equal(f.interpret(X, c=X, b=X), X - X * X)


def test_variable_numbers_of_tensors_are_taken() -> None:
    @op
    def f(*parts, **settings):
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total * settings.get("factor", 1)

    np.testing.assert_array_equal(f.interpret(X, X, X), 3 * X)
    np.testing.assert_array_equal(f.interpret(X, factor=5), 5 * X)


def test_configuration_must_be_hashable() -> None:
    for value, kind in (([1], "list"), ({"a": 1}, "dict"), ({1}, "set"), (bytearray(b"a"), "bytearray")):
        with pytest.raises(tc.ConfigurationError, match=f"`names` is configuration, but a {kind} cannot be hashed"):
            rows(X, names=value)
    with pytest.raises(tc.ConfigurationError, match="arrays are positional arguments: move it in front of the `\\*`"):
        rows(X, names=np.ones(2))


def test_wrong_numbers_of_arguments_are_type_errors_as_pythons_own() -> None:
    for attempt in (doubled, lambda: doubled(X, X), lambda: doubled(X, mode=1), lambda: rows(X, ("a",))):
        with pytest.raises(TypeError) as caught:
            attempt()
        assert isinstance(caught.value, tc.TcdslError)


# -- written arguments ---------------------------------------------------------------------------------------


def test_written_arguments_must_be_writable() -> None:
    p = np.zeros(3)
    p.flags.writeable = False
    with pytest.raises(tc.ShapeError, match="writes to `p`, but the array is read-only") as caught:
        increment(p, np.ones(3))
    assert "pass a copy" in str(caught.value)
    increment(np.zeros(3), p)


def test_written_arguments_must_not_overlap_others() -> None:
    p = np.zeros(4)
    for first, second in ((p, p), (p[1:], p[:3]), (p[::-1], p)):
        with pytest.raises(tc.ShapeError, match="writes to `p`, which shares memory with `g`"):
            increment(first, second)
    increment(p[::2], p[1::2] + 1)
    increment(p[:2], p[2:])
    assert p.tolist() == [2, 0, 1, 0]


def test_written_arguments_must_not_overlap_arrays_of_the_surroundings() -> None:
    bias = np.ones(3)

    @cd
    def f(p):
        p += bias

    with pytest.raises(tc.ShapeError, match="shares memory with `bias`"):
        f(bias)
    p = np.zeros(3)
    f(p)
    assert p.tolist() == [1, 1, 1]


# -- output buffers ------------------------------------------------------------------------------------------


def test_out_gives_a_call_its_output_buffers() -> None:
    @op
    def f(x):
        y[i] = 2 * x[i]
        s[()] += x[i]
        return y, s

    y, s = np.full(3, 9.0), np.full((), 9.0)
    found = f(np.arange(3.0), out=(y, s))
    assert found[0] is y
    assert found[1] is s
    assert y.tolist() == [0, 2, 4]
    assert s == 3
    single = np.empty_like(X)
    assert doubled(X, out=single) is single
    np.testing.assert_array_equal(single, 2 * X)


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (np.ones((2, 4)), r"is float64\[2, 3\], but out is float64\[2, 4\]"),
        (np.ones((2, 3), np.float32), r"but out is float32\[2, 3\]"),
        ([[1.0]], "but out is list"),
        ((np.ones((2, 3)), np.ones(2)), "out has 2 arrays for 1 outputs"),
        (np.ones((3, 2)).T, "out must be writable and row-major"),
        (X, "out shares memory with another array"),
    ],
)
def test_output_buffers_must_fit(out: Any, message: str) -> None:
    with pytest.raises(tc.TcdslError, match=message):
        doubled(X, out=out)


def test_output_buffers_must_be_writable_and_apart() -> None:
    @op
    def f(x):
        y[i] = 2 * x[i]
        z[i] = 3 * x[i]
        return y, z

    x, memory = np.arange(3.0), np.zeros(5)
    f(x, out=(memory[:3], np.empty(3)))
    same = np.zeros(3)
    for out in ((memory[:3], memory[2:]), (memory[:3], memory[:3]), (same, same)):
        with pytest.raises(tc.ShapeError, match="out shares memory with another array"):
            f(x, out=out)
    frozen = np.zeros(3)
    frozen.flags.writeable = False
    with pytest.raises(tc.ShapeError, match="out must be writable and row-major"):
        f(x, out=(memory[:3], frozen))
    assert memory.tolist() == [0, 2, 4, 0, 0]


# -- settings ------------------------------------------------------------------------------------------------


def test_settings_hold_inside_their_block() -> None:
    from tcdsl.config import settings

    with tc.config(threads=1, check="bounds,nan,ir", optimize=False, debug=False) as inside:
        assert inside.threads == 1
        assert inside.check == {"bounds", "nan", "ir"}
        np.testing.assert_array_equal(doubled(X), 2 * X)
    assert settings().check == frozenset()


def test_check_nan_names_the_output_and_the_position() -> None:
    @op
    def logarithm(x):
        y[i] = log(x[i])
        return y

    x = np.array([1.0, -1.0, 2.0])
    assert np.isnan(logarithm(x)[1])
    with tc.config(check="nan"), pytest.raises(tc.TcdslError, match=r"`y` holds NaN at \(1,\)"):
        logarithm(x)


def test_cache_dir_is_where_compiled_programs_live(tmp_path: Any) -> None:
    @op
    def f(x):
        y[i] = 5 * x[i] - 3
        return y

    with tc.config(cache_dir=str(tmp_path)):
        f(np.ones(2))
    assert list(tmp_path.rglob("*.kernel"))


def test_explain_and_interpret_show_what_a_function_does() -> None:
    for stage in ("source", "ir", "passes", "loops", "python", "grad"):
        assert str(doubled.explain(stage, X))
    assert "return 2 * x" in doubled.explain("source")
    assert "for" in str(doubled.explain("python", X))
    np.testing.assert_array_equal(doubled.interpret(X), 2 * X)


def test_the_signature_and_the_docstring_are_those_of_the_function() -> None:
    @op
    def documented(x, *, mode="a"):
        """Say what it does."""
        return x

    assert documented.__doc__ == "Say what it does."
    assert list(inspect.signature(documented).parameters) == ["x", "mode"]


@pytest.mark.usefixtures("own_cache")
def test_positional_parameters_with_defaults_may_be_left_out() -> None:
    @op
    def scaled(x, factor=None, shift=None, power=1.0):
        y = x * 2 if factor is None else x * factor
        return y * power if shift is None else y * power + shift

    x = np.array([1.0, 2.0])
    np.testing.assert_array_equal(scaled(x), [2.0, 4.0])
    np.testing.assert_array_equal(scaled(x, 3.0), [3.0, 6.0])
    np.testing.assert_array_equal(scaled(x, np.array([0.0, 1.0]), 5.0), [5.0, 7.0])
    np.testing.assert_array_equal(scaled(x), [2.0, 4.0])
    np.testing.assert_array_equal(scaled.interpret(x), [2.0, 4.0])
    np.testing.assert_array_equal(tc.grad(lambda x: scaled(x).sum())(x), [2.0, 2.0])
    assert scaled.cache_info().programs == 3
    for found in (
        scaled(x, None, x),
        scaled(x=x, shift=x),
        scaled(x, shift=x, power=1.0),
        scaled.interpret(x, shift=x),
    ):
        np.testing.assert_array_equal(found, [3.0, 6.0])
    np.testing.assert_array_equal(scaled(x=x, power=3.0), [6.0, 12.0])
    assert scaled.cache_info().programs == 4
    with pytest.raises(tc.DtypeError, match="`x` is a NoneType, but positional arguments are arrays"):
        scaled(None, x)


def test_derivatives_beside_parameters_that_are_left_out() -> None:
    x, y = np.array([1.0, 2.0]), np.array([3.0, 5.0])

    def loss(x, y=None, z=y, k=2.0):
        return (x * z * k).sum() if y is None else (x * y).sum()

    np.testing.assert_array_equal(tc.grad(loss)(x=x), [6.0, 10.0])
    np.testing.assert_array_equal(tc.grad(loss)(x, k=1.0), y)
    np.testing.assert_array_equal(tc.grad(loss, argnums=2)(x), [2.0, 4.0])
    np.testing.assert_array_equal(tc.jacobian(loss, argnums=-1)(x, z=x), 5.0)
    value, pullback = tc.vjp(loss, x, None, y)
    assert value == 26.0
    assert pullback(1.0)[1] is None
    assert tc.jvp(loss, (x, None, y), (x, None, y)) == (26.0, 52.0)
    tc.check_grads(loss, (x, None, y), order=2)
    with pytest.raises(tc.DifferentiationError, match="argument 1 of loss\\(\\) is None, and there is nothing to"):
        tc.grad(loss, argnums=1)(x)


@cd
def moved(x, by=None, rate=2.0):
    x += rate if by is None else by * rate


def test_code_with_parameters_that_are_left_out() -> None:
    x = np.zeros(2)
    moved(x=x)
    moved(x, rate=3.0)
    moved(rate=1.0, x=x, by=np.array([0.0, 1.0]))
    np.testing.assert_array_equal(x, [5.0, 6.0])


def test_an_array_that_is_a_default_is_as_fast_as_a_given_one() -> None:
    y = np.array([3.0, 5.0])

    @op
    def added(x, y=y, k=1.0):
        return x + y * k

    assert added(y).tolist() == added(x=y).tolist() == added(y, k=1.0).tolist() == [6.0, 10.0]
    assert added.signature.placed((y,), {})[0] == (y, y)
    assert added.calls.run((y, y), {}) is not None


@op
def named_out(x, *, out):
    return x * out


@op
def with_out(x, out=None):
    return x if out is None else x + out


def test_a_parameter_named_out_wins_over_the_buffers_of_a_call() -> None:
    x = np.array([1.0, 2.0])
    np.testing.assert_array_equal(named_out(x, out=3.0), 3 * x)
    np.testing.assert_array_equal(tc.grad(lambda x: named_out(x, out=3.0).sum())(x), [3.0, 3.0])
    np.testing.assert_array_equal(tc.tensor(x).value * 2, named_out(tc.tensor(x), out=2).value)
    np.testing.assert_array_equal(with_out(x, out=x), 2 * x)
    np.testing.assert_array_equal(with_out(x, out=None), x)
    assert "x[" in str(named_out.explain("ir", x, out=2.0))
    buffer = np.zeros((2, 3))
    assert doubled(X, out=buffer) is buffer
    np.testing.assert_array_equal(buffer, 2 * X)


@op
def summed(x):
    total = output(())
    total[()] += x[i]
    largest = output((2,))
    largest[i] >>= x[i]
    return total, largest


def test_output_takes_a_shape() -> None:
    total, largest = summed.interpret(np.array([1.0, 5.0, 2.0]))
    assert (total, largest.tolist()) == (8.0, [1.0, 5.0])


LONG = "n" * 1500
LONG_NAMES = f"""
from tcdsl import op

@op
def f_{LONG}({LONG}, {LONG}b, *, {LONG}c=2.0):
    {LONG}d[{LONG}i] = {LONG}[{LONG}i] * {LONG}b[{LONG}i] * {LONG}c
    {LONG}e[{LONG}i] = {LONG}d[{LONG}i] + {LONG}d[0]
    return {LONG}d, {LONG}e
"""


def test_names_may_be_as_long_as_python_has_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "long_names.py").write_text(LONG_NAMES, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    function = getattr(importlib.import_module("long_names"), f"f_{LONG}")
    x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    for found, expected in zip(function(x, y), (x * y * 2, x * y * 2 + 6), strict=True):
        np.testing.assert_array_equal(found, expected)
