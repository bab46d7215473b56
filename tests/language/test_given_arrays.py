"""What users give as arrays: what would lose something is refused, wherever it comes in, with what to write instead."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op

GIVEN: Any = None
X = np.ones(3)


@op
def doubled(x):
    y[i] = 2 * x[i]
    return y


@op
def weighted(x):
    y[i] = x[i] * GIVEN[i]
    return y


@op
def whole(x):
    return x * GIVEN


@op
def total(x):
    t[()] += x[i]
    return t


@cd
def increase(p, g):
    p[i] += g[i]


@op
def indexed(x, at):
    y[i] = x[at[i]]
    return y


def around(function: Any, given: Any) -> Any:
    global GIVEN
    GIVEN = given
    return function(X)


def assigned(given: Any) -> None:
    tensor = tc.tensor(X)
    tensor.value = given


PLACES: dict[str, Callable[[Any], Any]] = {
    "argument": doubled,
    "written argument": lambda given: increase(given, X),
    "global": lambda given: around(weighted, given),
    "global in whole arrays": lambda given: around(whole, given),
    "einsum": partial(tc.einsum, "i=>"),
    "gradient": tc.grad(total),
    "cotangent": tc.vjp(doubled, X)[1],
    "tangent": lambda given: tc.jvp(doubled, (X,), (given,)),
    "tangent of integers": lambda given: tc.jvp(indexed, (X, np.arange(3)), (X, given)),
    "tensor": tc.tensor,
    "part of a literal": lambda given: tc.tensor([given, given]),
    "operand": lambda given: tc.tensor(X) * given,
    "initial value": lambda given: tc.param("w", init=given),
    "value": assigned,
}


class Metres(np.ndarray):
    def __mul__(self, other: Any) -> Any:
        raise AssertionError("this is what would be lost")


REFUSED: dict[str, tuple[Any, str, str]] = {
    "masked": (
        np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0]),
        "is a masked array, whose mask would be lost",
        r"`\w+\.filled\(0\)`, and the mask as an array of its own, `np\.ma\.getmaskarray\(\w+\)`",
    ),
    "matrix": (
        X.reshape(1, 3).view(np.matrix),
        "is a numpy.matrix, an array which multiplies as matrices do",
        r"`np\.asarray\(\w+\)`",
    ),
    "of units": (X.view(Metres), "an array with arithmetic of its own, which would be lost", r"`np\.asarray\(\w+\)`"),
    "complex": (X * 1j, "the element type complex128", r"`\w+\.real` and `\w+\.imag`"),
    "object": (np.array([1.0, 2.0, None]), "the element type object", r"`\w+\.astype\('float64'\)`"),
    "structured": (np.zeros(3, [("a", float)]), r"the element type \[\('a', '<f8'\)\]", r"such as `\w+\['a'\]`"),
    "times": (np.zeros(3, "M8[s]"), "the element type datetime64", r"/ np\.timedelta64\(1, 's'\)`"),
    "words": (np.array(["a", "b", "c"]), "the element type <U1", r"`np\.unique\(\w+, return_inverse=True\)\[1\]`"),
    "byte order": (X.astype(X.dtype.newbyteorder()), "not in this machine's byte order", r"\.astype\('float64'\)`"),
}
# A float0 array of JAX is structured; values and literals are converted as NumPy does.
TAKEN = {
    ("structured", "tangent of integers"),
    ("byte order", "value"),
    ("of units", "operand"),
    ("words", "part of a literal"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_would_lose_something_is_refused(kind: str) -> None:
    given, fact, hint = REFUSED[kind]
    for name, place in PLACES.items():
        if (kind, name) in TAKEN:
            continue
        with pytest.raises(tc.DtypeError) as caught:
            place(given)
        message = str(caught.value)
        if name != "value" or kind in ("masked", "matrix", "of units"):
            assert re.search(fact, message), (name, message)
            assert re.search(hint, message), (name, message)


def test_out_is_no_masked_array() -> None:
    with pytest.raises(tc.DtypeError, match="`out` is a masked array, whose mask would be lost"):
        doubled(X, out=np.ma.zeros(3))


@pytest.mark.parametrize(
    ("make", "fact", "hint"),
    [
        (lambda torch: torch.ones(3, requires_grad=True), "a tensor of PyTorch that requires gradients", ".detach()`"),
        (lambda torch: torch.nn.Parameter(torch.ones(3)), "a tensor of PyTorch that requires gradients", ".detach()`"),
        (lambda torch: torch.ones(3, device="meta"), "lies on the device meta", ".cpu()`"),
        (lambda torch: torch.ones(3, dtype=torch.bfloat16), "has the element type bfloat16", ".float()`"),
        (lambda torch: torch.tensor([1j, 2j, 3j]).conj().imag, "with its negative bit set", ".resolve_neg()`"),
        (lambda torch: torch.tensor([1j, 2j, 3j]).conj(), "complex and its conjugate bit set", "resolve_neg()`"),
    ],
)
def test_tensors_of_torch(make: Any, fact: str, hint: str) -> None:
    given = make(pytest.importorskip("torch"))
    for place in PLACES.values():
        with pytest.raises(tc.DtypeError) as caught:
            place(given)
        assert fact in str(caught.value)
        assert hint in str(caught.value)


def test_tensors_of_torch_around_a_function() -> None:
    torch = pytest.importorskip("torch")
    given = torch.tensor([1.0, 2.0, 3.0])
    for function in (weighted, whole):
        np.testing.assert_array_equal(around(function, given), [1, 2, 3])
        given[0] = 5.0
        np.testing.assert_array_equal(function(X), [5, 2, 3])
        given[0] = 1.0


def test_tracers_of_jax() -> None:
    jax = pytest.importorskip("jax")
    for transform in (jax.jit, jax.grad, jax.vmap):
        for place in (doubled, tc.tensor, lambda x: tc.einsum("...=>", x)):
            with pytest.raises(tc.DtypeError, match="is traced by JAX, so its cells are not known") as caught:
                transform(lambda x, place=place: place(x).sum())(jax.numpy.ones(3))
            assert "outside of jax.jit, jax.grad and jax.vmap, or through jax.pure_callback" in str(caught.value)


def test_an_array_of_rank_0_around_a_function_is_read_at_every_call() -> None:
    factor = np.array(2.0)

    @op
    def scaled(x):
        y[i] = x[i] * factor
        return y

    assert scaled(X).tolist() == [2, 2, 2]
    factor[...] = 5
    assert scaled(X).tolist() == [5, 5, 5]


def test_numbers_of_other_types() -> None:
    for number in (np.complex64(1j), np.longdouble(2), np.datetime64(3, "s"), np.timedelta64(3, "s")):
        for place in (doubled, lambda given: tc.tensor(X) * given, lambda given: tc.param("w", o=2, init=given)):
            with pytest.raises(tc.DtypeError, match="which tcdsl does not handle"):
                place(number)


def test_an_array_that_changes_between_calls_has_its_name_in_messages() -> None:
    for function in (weighted, whole):
        np.testing.assert_array_equal(around(function, X), X)
        for run in (function, function.interpret):
            with pytest.raises(tc.DtypeError) as caught:
                around(run, X.astype(">f8"))
            message = str(caught.value)
            assert "`GIVEN` has the element type >f8 (not in this machine's byte order)" in message
            assert "GIVEN" in message.splitlines()[1]
            assert message.endswith("convert it: `GIVEN.astype('float64')`")
        np.testing.assert_array_equal(around(function, 2 * X), 2 * X)


def test_an_array_without_a_name_is_shown_where_it_is_used() -> None:
    @op
    def transposed(x):
        return x * GIVEN.copy().T

    with pytest.raises(
        tc.DtypeError, match=r"this array has the element type >f8(.|\n)*return x \* GIVEN.copy\(\).T\n *\^"
    ):
        around(transposed, X.astype(">f8"))


@op
def added(x, y):
    return x + y


@op
def applied(A, v):
    y[i] = sum(A[i, k] * v[k])
    return y


def test_series_with_different_indices_are_refused() -> None:
    pandas = pytest.importorskip("pandas")
    series = pandas.Series(np.arange(4.0))
    np.testing.assert_array_equal(added(series, series * 2), np.arange(4) * 3)
    np.testing.assert_array_equal(added(series[1:], X), [2, 3, 4])
    later, earlier = series[1:], series[:-1]
    refused: list[Callable[[], Any]] = [
        lambda: added(later, earlier),
        lambda: added(earlier, y=later),
        lambda: added.interpret(later, earlier),
        lambda: tc.grad(lambda x, y: added(x, y).sum())(later, earlier),
        lambda: tc.einsum("i;i=>", later, earlier),
        lambda: around(lambda _: whole(later), earlier),
        lambda: around(lambda _: weighted(later), earlier),
        lambda: increase(X.copy(), earlier) or added(later.to_frame(), earlier.to_frame()),
    ]
    for call in refused:
        with pytest.raises(tc.DtypeError, match=r"have different labels for their cells, which would be lost\n"):
            call()
    np.testing.assert_array_equal(added(later.to_numpy(), earlier), [1, 3, 5])
    with pytest.raises(tc.DtypeError, match=r"`x` and `GIVEN` have .*\n.*as in `x, GIVEN = x.align\(GIVEN\)`, or pass"):
        around(lambda _: whole(later), earlier)


def test_tensors_made_of_series_keep_their_labels() -> None:
    pandas = pytest.importorskip("pandas")
    one, other = pandas.Series([1.0, 2.0], ["a", "b"]), pandas.Series([10.0, 20.0], ["b", "a"])
    t = tc.tensor(one, label="t")
    np.testing.assert_array_equal((t + tc.tensor(one * 10)).value, [11, 22])
    np.testing.assert_array_equal((t + other.to_numpy()).value, [11, 22])
    np.testing.assert_array_equal((t + pandas.Series([1.0, 2.0, 3.0])[:1].to_numpy()).value, [2, 3])
    u = tc.tensor(other, label="u")
    for make in (lambda: t + u, lambda: u * t, lambda: t + other, lambda: added(t, u), lambda: added(t, other)):
        with pytest.raises(tc.DtypeError, match=r"have different labels for their cells, which would be lost\n"):
            make().value
    with pytest.raises(tc.DtypeError, match=r"`p` and `u` have different labels|`u` and `p` have different labels"):
        tc.compile(increase(tc.param("p", init=one), u))()
    xarray = pytest.importorskip("xarray")
    grid = xarray.DataArray([[1.0, 2.0], [3.0, 4.0]], dims=("t", "z"))
    with pytest.raises(tc.DtypeError, match=r"has the dimensions \('t', 'z'\)"):
        (tc.tensor(grid) + tc.tensor(grid.T)).value  # computes it


@op
def by_each_other(x, y):
    z[i, j] = x[i] * y[j]
    return z


def test_labels_count_along_axes_that_one_index_goes_over() -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame([[1.0, 10.0], [2.0, 20.0]], index=["mon", "tue"], columns=["a", "b"])
    np.testing.assert_array_equal(applied(table, pandas.Series([1.0, 2.0], ["a", "b"])), [21, 42])
    days, letters = table["a"], pandas.Series([1.0, 2.0], ["b", "a"])
    np.testing.assert_array_equal(by_each_other(days, letters), [[1, 2], [2, 4]])
    for other in (letters, pandas.Series([1.0, 2.0])):
        with pytest.raises(tc.DtypeError, match=r"`A` and `v` have different labels.*\n.*: `v.to_numpy\(\)`"):
            applied(table, other)


def test_dimensions_and_coordinates_of_xarray() -> None:
    xarray = pytest.importorskip("xarray")
    grid = xarray.DataArray([[1.0, 2.0], [3.0, 4.0]], dims=("t", "z"), coords={"t": [10, 20]})
    np.testing.assert_array_equal(added(grid, grid), 2 * grid.values)
    np.testing.assert_array_equal(applied(grid, xarray.DataArray([1.0, 0.0], dims="z")), [1, 3])
    with pytest.raises(
        tc.DtypeError, match=r"`x` has the dimensions \('t', 'z'\), and `y` \('z', 't'\)\n.*y.transpose"
    ):
        added(grid, grid.T)
    with pytest.raises(tc.DtypeError, match=r"different coordinates along 't'\n.*xr.align\(x, y\)"):
        added(grid, grid.assign_coords(t=[20, 30]))
    t, u = grid[:, 0], xarray.DataArray([1.0, 2.0], dims="u")
    np.testing.assert_array_equal(by_each_other(t, u), [[1, 2], [3, 6]])
    refused: list[Callable[[], Any]] = [
        lambda: added(t, u),
        lambda: added(t, u.variable),
        lambda: added.interpret(t, u),
        lambda: applied(grid, u),
        lambda: tc.grad(lambda x, y: (x + y).sum())(t, u),
        lambda: (tc.tensor(t) + tc.tensor(u)).value,
    ]
    for call in refused:
        with pytest.raises(
            tc.DtypeError, match=r"index goes over '[tz]' and 'u'(.|\n)*rename\({'u': .*tc.interop.xarray"
        ):
            call()


def test_units_and_missing_cells_are_not_dropped() -> None:
    pandas, xarray, polars, pint = map(pytest.importorskip, ("pandas", "xarray", "polars", "pint"))
    meters = pint.UnitRegistry().Quantity(X, "m")
    missing = pandas.Series([1, None], dtype="Int64")
    refused = {
        r"has the unit meter, which would be lost\n.*`x.magnitude`": [meters],
        r"has the unit meter.*\n.*`x.copy\(data=x.data.magnitude\)`": [xarray.DataArray(meters)],
        r"has missing cells.*\n.*`x.fillna\(0\)`.*`x.isna\(\)`": [missing, missing.to_frame()],
        r"has nulls.*\n.*`x.fill_null\(0\)`.*`x.is_null\(\)`": [
            polars.Series([1.0, None]),
            polars.DataFrame({"a": [1], "b": [None]}),
        ],
    }
    for message, values in refused.items():
        for value in values:
            with pytest.raises(tc.DtypeError, match=message):
                doubled(value)
    np.testing.assert_array_equal(doubled(missing[:1]), [2])


def test_objects_of_python_that_are_no_arrays() -> None:
    instead = {
        "`np.asarray(x)`": (range(3), memoryview(X), array("d", [1.0]), [1.0], (1.0,)),
        "`float(x)`": (Fraction(1, 2), Decimal(1)),
        "`x.real` and `x.imag`": (1j,),
        "`np.asarray(list(x))`": (iter([1.0]), {1.0}, frozenset([1.0]), {1: 2.0}.values(), {1: 2.0}.keys()),
        "`np.frombuffer(x, np.uint8)`": (b"abc", bytearray(b"abc")),
        "configuration is passed by keyword": ("abc", None, {1: 2}, print),
    }
    for hint, values in instead.items():
        for value in values:
            with pytest.raises(tc.DtypeError, match=re.escape(hint)):
                doubled(value)

    @op
    def shifted(x, *, by):
        y[i] = x[i] + by
        return y

    for hint, values in (("`float(x)`", (Fraction(1, 2),)), ("`np.asarray(x)`", (range(3),))):
        for value in values:
            with pytest.raises(tc.DtypeError, match=re.escape(hint)):
                shifted(X, by=value)
    for place in (lambda: around(whole, range(3)), lambda: tc.tensor(X) + range(3)):
        with pytest.raises(tc.DtypeError, match=r"a range does not take part .*(\n.*)*`np\.asarray\(x\)`"):
            place()


def test_units_are_refused() -> None:
    quantity = pytest.importorskip("pint").UnitRegistry().Quantity(X, "meter")
    with pytest.raises(tc.DtypeError, match=r"`x` has the unit meter, which would be lost") as caught:
        doubled(quantity)
    assert "`x.magnitude`" in str(caught.value)
