"""A default keeps its values: what the statement's type cannot hold has to be converted by the user."""

from __future__ import annotations

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op, tile
from tcdsl.tile import *


def spread(I, P):
    i = TensorIndex()
    T = TensorOutput(4)
    T[2 * i] = I[i]
    T.use_default(P)
    return T


def of_the_type_of_the_statement(I, P):
    return spread(I, cast(P, DType.FLOAT16))


@pytest.mark.parametrize(
    ("given", "default"),
    [
        ("int8", np.int32(300)),
        ("int8", 0.5),
        ("uint8", np.int8(-1)),
        ("float16", 1e6),
        ("bool", np.int8(7)),
    ],
)
def test_values_that_would_change(given: str, default: float) -> None:
    I, P = np.ones(2, given), np.full(4, default)
    with pytest.raises(tc.DtypeError, match=f"is {P.dtype}, whose values are not all {given}") as caught:
        op(spread)(I, P)
    assert "T.use_default(P)" in str(caught.value)
    assert f'cast(P, "{given}")' in str(caught.value)
    with pytest.raises(tc.DtypeError, match=f"is {P.dtype}, whose values are not all {given}") as caught:
        np.asarray(spread(tile.Tensor(I), tile.Tensor(P)))
    assert "T.use_default(P)" in str(caught.value)


@pytest.mark.parametrize(("given", "default"), [("float32", "float32"), ("float64", "int32"), ("int16", "uint8")])
def test_values_that_stay(given: str, default: str) -> None:
    I, P = np.ones(2, given), np.full(4, 7, default)
    found = op(spread)(I, P)
    assert found.dtype == given
    np.testing.assert_array_equal(found, [1, 7, 1, 7])


def test_converted_by_the_user() -> None:
    found = op(of_the_type_of_the_statement)(np.ones(2, "float16"), np.full(4, 0.5))
    np.testing.assert_array_equal(found, [1, 0.5, 1, 0.5])
    assert found.dtype == "float16"
