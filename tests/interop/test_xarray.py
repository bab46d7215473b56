"""`tc.interop.xarray`: dimensions and coordinates, as a user of xarray meets them."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op

xr = pytest.importorskip("xarray")


@op
def added(x, y):
    return x + y


@op
def standardized(x):
    return (x - x.mean(axis=0)) / x.std(axis=0)


@op
def difference(x):
    y[t, i, j] = x[t + 1, i, j] - x[t, i, j]
    return y


@op
def zonal(x, w):
    y[t, i] = sum(x[t, i, j] * w[j])
    return y


@op
def gram(a):
    g[i, j] += a[i, k] * a[j, k]
    return g


@op
def windows(x):
    y[i, k] = x[i + k], k < 3
    return y


@op
def weighted(x, y):
    s[()] += x[i] * y[i] ** 2
    return s


@op
def turned(x):
    return x.T


@op
def chained(p, a):
    q[j] += p[i] * a[i, j]
    r[k] += q[j] * a[j, k]
    return r


@op
def both(x):
    return x.sum(axis=0), {"max": x.max(axis=1)}


ADDED, STANDARDIZED, DIFFERENCE, ZONAL, GRAM, WEIGHTED, BOTH = map(
    tc.interop.xarray, (added, standardized, difference, zonal, gram, weighted, both)
)


def weather() -> Any:
    """Two years of monthly temperatures."""
    random = np.random.default_rng(0)
    return xr.DataArray(
        random.normal(size=(24, 3, 4)),
        dims=("time", "lat", "lon"),
        coords={
            "time": np.arange("2020-01", "2022-01", dtype="datetime64[M]").astype("datetime64[ns]"),
            "lat": [10.0, 20.0, 30.0],
            "lon": [0.0, 1.0, 2.0, 3.0],
            "area": (("lat", "lon"), random.normal(size=(3, 4))),
            "season": ("time", ["cold", "warm"] * 12),
            "height": 2.0,
        },
        name="t",
        attrs={"units": "K"},
    )


T = weather()
A = xr.DataArray([1.0, 2.0, 3.0], dims="k", coords={"k": [1, 2, 3]}, name="a")
B = xr.DataArray([10.0, 20.0, 30.0], dims="k", coords={"k": [2, 3, 4]}, name="b")


def test_what_is_read_at_its_own_place_keeps_its_coordinates() -> None:
    xr.testing.assert_allclose(STANDARDIZED(T), (T - T.mean("time")) / T.std("time"))
    xr.testing.assert_identical(ADDED(T, 1.0), T + 1.0)
    xr.testing.assert_identical(ADDED(T, np.ones(4)), T + np.ones(4))
    xr.testing.assert_identical(tc.interop.xarray(turned)(T[0]).transpose(*T.dims[1:]), T[0])
    assert ADDED(T, T.rename("u")).name is None
    xr.testing.assert_identical(ADDED(T.variable, 1.0), xr.DataArray(T.variable) + 1.0)


def test_shifted_and_reduced_axes_lose_them() -> None:
    expected = T.diff("time").drop_vars(["time", "season"])
    xr.testing.assert_identical(DIFFERENCE(T), expected)
    changes = tc.interop.xarray(lambda x, y: difference(x) + y)(T, T[0])  # whose time is a coordinate of one cell
    assert (changes.dims, "time" in changes.coords) == (T.dims, False)
    windowed = tc.interop.xarray(windows)(T[:, 0, 0])
    assert windowed.dims == ("i", "k")
    assert set(windowed.coords) == {"lat", "lon", "area", "height"}
    summed, largest = BOTH(T[0])
    assert (summed.dims, largest["max"].dims) == (("lon",), ("lat",))
    assert set(summed.coords) == {"lon", "time", "season", "height"}


def test_axes_of_one_name_get_the_letters_and_keep_coordinates() -> None:
    found = GRAM(T[:2, 0])
    assert found.dims == ("i", "j")
    for dim in found.dims:
        np.testing.assert_array_equal(found[dim], T.time[:2])


def test_arguments_are_ordered_and_joined_by_name() -> None:
    xr.testing.assert_identical(ADDED(T[0], T[0].T), T[0] + T[0])
    weights = xr.DataArray([1.0, 2.0, 3.0], dims="lon", coords={"lon": [1.0, 2.0, 3.0]})
    xr.testing.assert_allclose(ZONAL(T, weights), (T * weights).sum("lon").drop_attrs().assign_attrs(T.attrs))
    one = T[0].isel(lat=[1])  # is not stretched
    xr.testing.assert_identical(ADDED(T[0], one), T[0] + one)
    xr.testing.assert_identical(ADDED(one, one), one + one)
    assert WEIGHTED(A, B) == 2 * 10.0**2 + 3 * 20.0**2
    for join in ("outer", "left", "right"):
        with xr.set_options(arithmetic_join=join):
            xr.testing.assert_identical(ADDED(A, B), A + B)
    with xr.set_options(arithmetic_join="exact"), pytest.raises(tc.ShapeError, match=r"`x`, `y` cannot be joined"):
        ADDED(A, B)
    with pytest.raises(tc.ShapeError, match=r"`x`, `y` cannot be joined along 'k'(.|\n)*align them before"):
        ADDED(A.drop_vars("k"), B.drop_vars("k")[:2])


@op
def step(a: real[n, n], p: real[n]):
    q[j] += a[i, j] * p[i]
    return q


@op
def back(a: real[n, n], p: real[n]):
    q[i] += a[i, j] * p[j]
    return q


def test_axes_of_a_square_array_have_names_of_their_own() -> None:
    chances = xr.DataArray([[0.5, 0.5], [1.0, 0.0]], dims=("old", "new"), coords={"new": ["a", "b"]})
    old, new = xr.DataArray([1.0, 3.0], dims="old"), xr.DataArray([1.0, 3.0], dims="new", coords={"new": ["a", "b"]})
    xr.testing.assert_identical(tc.interop.xarray(step)(chances, old), (chances * old).sum("old"))
    xr.testing.assert_identical(tc.interop.xarray(back)(chances, new), (chances * new).sum("new"))
    np.testing.assert_array_equal(step(chances, old), [3.5, 0.5])
    np.testing.assert_array_equal(back(chances, new), [2, 1])
    with pytest.raises(tc.DtypeError, match="one index goes over 'old' and 'u'"):
        step(chances, old.rename(old="u"))
    with pytest.raises(tc.ShapeError, match="one index goes over 'u' of `p` and over 'old' of `a`"):
        tc.interop.xarray(step)(chances, old.rename(old="u"))


def test_dimensions_that_do_not_fit_are_refused() -> None:
    with pytest.raises(
        tc.ShapeError, match=r"index goes over 'u' of `y` and over 'k' of `x`\n.*y.rename\({'u': 'k'}\)"
    ):
        ADDED(A, B.rename(k="u"))
    with pytest.raises(tc.ShapeError, match=r"'lat' of `y` and over 'lon' of `x`\n.*`y.broadcast_like\(x\)`"):
        ADDED(T, T[0, :, 0])
    square = xr.DataArray(np.eye(2), dims=("old", "new"))
    with pytest.raises(tc.ShapeError, match=r"one index goes over 'new' of `a` and over 'old' of `a`|'old'"):
        tc.interop.xarray(chained)(
            xr.DataArray([1.0, 0.0], dims="old"), square.assign_coords(old=["a", "b"], new=["b", "a"])
        )


def test_gradients_have_the_dimensions_and_coordinates_of_their_arguments() -> None:
    slopes = tc.interop.xarray(tc.grad(weighted, argnums=(0, 1)))(A, B)
    xr.testing.assert_identical(slopes[0], xr.DataArray([0.0, 100.0, 400.0], A.coords, A.dims))
    xr.testing.assert_identical(slopes[1], xr.DataArray([40.0, 120.0, 0.0], B.coords, B.dims))
    value, slope = tc.interop.xarray(tc.value_and_grad(lambda x: (difference(x) ** 2).sum()))(T)
    assert (value.dims, slope.dims) == ((), T.dims)
    assert slope.indexes["time"].equals(T.indexes["time"])
    slope = tc.interop.xarray(tc.grad(lambda y, x: (added(x, y) ** 2).sum()))(T[0].T, T[0])
    xr.testing.assert_allclose(slope, (4 * T[0].T).drop_attrs())
    inside = tc.interop.xarray(lambda x: 2 * tc.grad(lambda x: (x**3).sum())(x))(A)
    xr.testing.assert_allclose(inside, 6 * A**2)


def test_datasets_are_taken_variable_by_variable() -> None:
    table = xr.Dataset({"t": T, "u": 2 * T})
    xr.testing.assert_allclose(STANDARDIZED(table), xr.Dataset({name: STANDARDIZED(table[name]) for name in table}))
    xr.testing.assert_equal(ADDED(table, T), table + T)
    sums, _ = tc.interop.xarray(lambda x: (x.sum(axis=0), x))(table)
    xr.testing.assert_allclose(sums, table.sum("time"))
    with pytest.raises(tc.ShapeError, match="the Datasets have the variables"):
        ADDED(table, table[["t"]])


def test_groups_and_resampled_means() -> None:
    months = T.groupby("time.month")
    xr.testing.assert_allclose(months.map(STANDARDIZED), months.map(lambda x: (x - x.mean("time")) / x.std("time")))
    assert DIFFERENCE(T.resample(time="YS").mean()).shape == (1, 3, 4)
    stacked = T.stack(place=("lat", "lon"))
    xr.testing.assert_allclose(STANDARDIZED(stacked), (stacked - stacked.mean("time")) / stacked.std("time"))


def test_chunked_arrays_stay_chunked() -> None:
    pytest.importorskip("dask")
    chunked = T.chunk(lat=1, time=2)
    found = STANDARDIZED(chunked)
    assert found.chunksizes == chunked.chunksizes
    xr.testing.assert_allclose(found.compute(), STANDARDIZED(T))
    # Joined by their labels, with an array that is not chunked.
    later = T.isel(time=slice(1, None))
    xr.testing.assert_allclose(ADDED(chunked, later).compute(), ADDED(T, later))
    sums = tc.interop.xarray(lambda x: (x.sum(axis=0), 2 * x))(xr.Dataset({"t": chunked}))[0]
    assert sums.chunks
    xr.testing.assert_allclose(sums.t.compute(), T.sum("time"))
    slope = tc.interop.xarray(tc.grad(lambda x, y: ((x - y) ** 2).sum()))(chunked, later)
    assert slope.chunks is not None
    xr.testing.assert_allclose(slope.compute(), tc.interop.xarray(tc.grad(lambda x, y: ((x - y) ** 2).sum()))(T, later))


def test_chunked_arrays_go_through_apply_ufunc() -> None:
    pytest.importorskip("dask")
    chunked = T.chunk(lat=1)

    @op
    def along_last(x):
        m[i, j] += x[i, j, t]
        y[i, j, t] = x[i, j, t] - m[i, j] / x.shape[2]
        return y

    core: dict[str, Any] = {"input_core_dims": [["time"]], "output_core_dims": [["time"]]}
    for options in ({}, {"output_dtypes": [float]}):
        found = xr.apply_ufunc(along_last, chunked, dask="parallelized", **core, **options)
        assert found.chunks is not None
        xr.testing.assert_allclose(found.transpose(*T.dims), T - T.mean("time"))


def test_units_and_labels_of_others_are_refused() -> None:
    pint = pytest.importorskip("pint")
    kelvin = T.copy(data=T.data * pint.UnitRegistry().kelvin)
    with pytest.raises(tc.DtypeError, match=r"`x` has the unit kelvin.*\n.*`x.magnitude`"):
        STANDARDIZED(kelvin)
    pandas = pytest.importorskip("pandas")
    with pytest.raises(tc.DtypeError, match="`y` is a Series, whose labels xarray does not know"):
        ADDED(A, pandas.Series([1.0, 2.0, 3.0]))
    outside = xr.DataArray(np.ones(3), dims="k")
    with pytest.raises(tc.DtypeError, match="`outside` is read from around the function, and its labels"):
        tc.interop.xarray(lambda x: x + outside)(A)


def test_plain_arrays_and_copies_of_the_function() -> None:
    np.testing.assert_array_equal(ADDED(np.ones(3), 1), [2, 2, 2])
    again = pickle.loads(pickle.dumps(ADDED))
    xr.testing.assert_identical(again(A, 1.0), A + 1.0)
    assert repr(ADDED) == "<<op added> for xarray>"
    assert tc.interop.xarray(added) is ADDED
    empty = T[:0]
    xr.testing.assert_identical(ADDED(empty, empty), empty + empty)
    xr.testing.assert_identical(ADDED(T.astype("float32")[::-2], np.float32(1)), T.astype("float32")[::-2] + 1)
