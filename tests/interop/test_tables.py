"""`tc.interop.pandas` and `tc.interop.polars`: columns in, columns out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op

pd = pytest.importorskip("pandas")


@op
def added(x, y):
    return x + y


@op
def applied(a, v):
    y[i] += a[i, k] * v[k]
    return y


@op
def centered(x):
    return x - x.mean(axis=0)


@op
def means(x):
    return x.mean(axis=0)


@op
def products(a):
    g[i, j] += a[k, i] * a[k, j]
    return g


@op
def weighted(x, y):
    s[()] += x[i] * y[i] ** 2
    return s


@op
def difference(x):
    y[t] = x[t + 1] - x[t]
    return y


@op
def by_each_other(x, y):
    z[i, j, k] = x[i, j] * y[k]
    return z


@op
def turned(x):
    return x.T


A = pd.Series([1.0, 2.0, 3.0], list("abc"), name="one")
B = pd.Series([10.0, 20.0, 30.0], list("bcd"), name="other")
TABLE = pd.DataFrame({"p": [1.0, 2.0], "q": [3, 4]}, index=["mon", "tue"])


def of_pandas(function: Any, *arguments: Any) -> Any:
    return tc.interop.pandas(function)(*arguments)


def test_columns_of_pandas_are_aligned_by_index() -> None:
    pd.testing.assert_series_equal(of_pandas(added, A, B), A + B)
    pd.testing.assert_series_equal(of_pandas(added, A, 1), A + 1)
    pd.testing.assert_series_equal(of_pandas(added, A, np.ones(3)), A + 1)
    pd.testing.assert_series_equal(of_pandas(difference, A), pd.Series([1.0, 1.0], name="one"))
    pd.testing.assert_series_equal(of_pandas(added, A, A[::-1]), A + A)
    with pytest.raises(tc.ShapeError, match="labels of `x` and `y` differ, and some occur twice"):
        of_pandas(added, A, pd.Series([1.0, 2.0], ["a", "a"]))
    empty = A[:0]
    pd.testing.assert_series_equal(of_pandas(added, empty, empty), empty + empty)


def test_tables_of_pandas() -> None:
    pd.testing.assert_frame_equal(of_pandas(centered, TABLE), TABLE - TABLE.mean())
    pd.testing.assert_frame_equal(of_pandas(turned, TABLE), TABLE.T.astype(float))
    pd.testing.assert_frame_equal(of_pandas(added, TABLE, TABLE[["q"]]), TABLE + TABLE[["q"]], check_dtype=False)
    pd.testing.assert_series_equal(of_pandas(means, TABLE), TABLE.mean())
    pd.testing.assert_frame_equal(of_pandas(products, TABLE), TABLE.T @ TABLE)
    weights = pd.Series([1.0, 10.0], ["q", "p"])
    pd.testing.assert_series_equal(of_pandas(applied, TABLE, weights), TABLE @ weights)
    with pytest.raises(tc.ShapeError, match=r"a sum goes over labels of `a` and `v`, which are not the same"):
        of_pandas(applied, TABLE, pd.Series([1.0, 10.0], ["q", "r"]))
    with pytest.raises(tc.DtypeError, match=r"a result has 3 axes, whose labels pandas cannot keep\n.*interop.xarray"):
        of_pandas(by_each_other, TABLE, A)
    groups = TABLE.groupby(["k", "k"])
    pd.testing.assert_frame_equal(groups.transform(tc.interop.pandas(centered)), TABLE - TABLE.mean())


def test_types_of_pandas_and_missing_cells() -> None:
    whole = pd.DataFrame({"a": pd.Series([1, 2], dtype="Int64"), "b": pd.Series([1.0, 2.0], dtype="Float32")})
    pd.testing.assert_frame_equal(of_pandas(centered, whole), (whole - whole.mean()).astype("float64"))
    assert of_pandas(added, whole["a"], 1).tolist() == [2, 3]
    whole.loc[0, "a"] = None
    for given in (whole, whole["a"]):
        with pytest.raises(tc.DtypeError, match=r"`x` has missing cells, which would be lost\n.*fillna"):
            of_pandas(centered, given)


def test_gradients_of_pandas() -> None:
    x, y = of_pandas(tc.grad(weighted, argnums=(0, 1)), A, B.set_axis(list("cba")))
    pd.testing.assert_series_equal(x, pd.Series([900.0, 400.0, 100.0], A.index, name="one"))
    pd.testing.assert_series_equal(y, pd.Series([60.0, 80.0, 60.0], list("cba"), name="other"))
    with pytest.raises(tc.ShapeError, match="a sum goes over labels of `x` and `y`"):
        of_pandas(tc.grad(weighted), A, B)
    slopes = of_pandas(tc.grad(lambda x: (x * x).sum()), TABLE.astype(float))
    pd.testing.assert_frame_equal(slopes, 2 * TABLE.astype(float))


def test_polars() -> None:
    pl = pytest.importorskip("polars")
    from polars.testing import assert_frame_equal, assert_series_equal

    def of_polars(function: Any, *arguments: Any) -> Any:
        return tc.interop.polars(function)(*arguments)

    table, column = pl.DataFrame({"p": [1.0, 2.0], "q": [3, 4]}), pl.Series("s", [1.0, 2.0])
    assert_series_equal(of_polars(added, column, column.alias("t")), column + column)
    assert_frame_equal(of_polars(centered, table), table.select(pl.all() - pl.all().mean()))
    assert_frame_equal(of_polars(means, table), table.mean())
    assert of_polars(products, table).columns == ["p", "q"]
    assert_series_equal(of_polars(applied, table, np.ones(2)), pl.Series("", [4.0, 6.0]))
    assert_frame_equal(
        table.select(pl.map_batches(["p", "q"], lambda each: tc.interop.polars(added)(*each))),
        table.select(pl.col("p") + pl.col("q")),
    )
    assert_series_equal(of_polars(tc.grad(weighted), column, column), (column**2))
    floats = table.cast(pl.Float64)
    assert_frame_equal(of_polars(tc.grad(lambda x: (x * x).sum()), floats), floats.select(pl.all() * 2))
    for given, message in (
        (table.lazy(), r"`x` is a LazyFrame, whose cells are not known yet\npass `x.collect\(\)`"),
        (pl.col("p"), r"`x` is a Expr.*\nwrite `x.map_batches\(g\)`"),
        (pl.DataFrame({"s": ["a"]}), r"the column 's' of `x` has the type String"),
        (pl.DataFrame({"s": [1, None]}), r"`x` has nulls, which would be lost\n.*fill_null"),
    ):
        with pytest.raises(tc.DtypeError, match=message):
            of_polars(centered, given)
    with pytest.raises(tc.ShapeError, match=r"the columns \['p', 'q'\] of `x` and \['q', 'p'\] of `y`\n.*y.select"):
        of_polars(added, table, table.select("q", "p"))
    with pytest.raises(tc.DtypeError, match="`x` and `y` have different labels"):
        added(table, table.select("q", "p"))
    with pytest.raises(tc.DtypeError, match="names of columns belong to an axis of a result that has no columns"):
        of_polars(turned, table)
    with pytest.raises(tc.DtypeError, match="`y` is a Series, whose labels polars does not know"):
        of_polars(added, column, A[:2])


@pytest.mark.parametrize("name", ["pandas", "polars", "xarray"])
def test_missing_packages_have_a_line_to_install_them(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, name, None)
    with pytest.raises(tc.ConfigurationError, match=rf"needs {name}, which is not installed\n.*`pip install {name}`"):
        getattr(tc.interop, name)(added)
