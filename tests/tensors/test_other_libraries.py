"""Tensors as arrays of NumPy, PyTorch and JAX: copies, unless the caller refuses one; then read-only memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import tcdsl as tc

X = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


@pytest.fixture(params=["parameter", "computed", "transposed", "scalar", "value"])
def tensor(request: pytest.FixtureRequest) -> Any:
    w = tc.param("w", init=X)
    return {"parameter": w, "computed": w + 0.0, "transposed": w.T, "scalar": w.sum(), "value": w.value}[request.param]


def expected(tensor: Any) -> np.ndarray:
    return X.T if tensor.shape == (3, 2) else np.array(21.0) if tensor.shape == () else X


def test_numpy(tensor: Any) -> None:
    for array in (np.array(tensor), np.from_dlpack(tensor), np.asarray(tensor, dtype="float32")):
        assert_array_equal(array, expected(tensor))
        assert array.flags.writeable
        array[...] = 0
    assert np.asarray(tensor, dtype="float32").dtype == np.float32
    assert_array_equal(np.asarray(tensor), expected(tensor))


@pytest.mark.parametrize("read", [np.asarray, np.from_dlpack])
def test_memory_of_numpy_is_read_only(tensor: Any, read: Any) -> None:
    array = read(tensor, copy=False)
    memory = tensor if isinstance(tensor, np.ndarray) else tensor.value
    assert np.shares_memory(array, memory)
    assert not array.flags.writeable
    with pytest.raises(ValueError, match="copy"):
        np.asarray(tensor, dtype="float32", copy=False)


def test_torch(tensor: Any) -> None:
    torch = pytest.importorskip("torch")
    reads = [torch.from_dlpack]
    if not isinstance(tensor, np.ndarray):  # of which PyTorch knows that it is read-only, and warns
        reads += [torch.tensor, torch.asarray, torch.as_tensor]
    for read in reads:
        made = read(tensor)
        assert_array_equal(made.numpy(), expected(tensor))
        made.zero_()
    assert_array_equal(np.asarray(tensor), expected(tensor))


def test_jax(tensor: Any) -> None:
    numpy = pytest.importorskip("jax.numpy")
    assert_array_equal(numpy.asarray(tensor), expected(tensor))


def test_values_that_are_not_known_while_staging() -> None:
    torch = pytest.importorskip("torch")

    @tc.op
    def converted(x):
        return torch.as_tensor(x)

    for x in (X, tc.param("w", init=X)):
        with pytest.raises(tc.DslSyntaxError, match="cells of an array are not known while the function is staged"):
            converted(x)
