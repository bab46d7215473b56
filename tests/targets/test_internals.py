"""What is not documented still holds here, and what happens where it does not."""

from __future__ import annotations

import numpy as np
import pytest

import tcdsl.targets.cpu.compiled as compiled_module
import tcdsl.targets.cpu.machine.internals as internals
from tcdsl.targets.protocol.target import Build
from tests.targets.compiling import compile_kernel
from tests.targets.kernels import matmul


def test_arrays_are_laid_out_as_expected() -> None:
    assert internals.array_header() == object.__basicsize__


def test_bytes_follow_their_header() -> None:
    assert internals.bytes_header() == bytes.__basicsize__ - 1


def test_another_layout_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    internals.array_header.cache_clear()
    monkeypatch.setattr(internals, "_fields", lambda array, header: (0,))
    assert internals.array_header() is None
    internals.array_header.cache_clear()


def test_binding_without_reading_array_objects(options: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_module, "array_header", lambda: None)
    compiled = compile_kernel(matmul(), contiguous=(False, True), options=options)
    A = np.linspace(0, 1, 18, dtype=np.float32).reshape(6, 3)[:, ::-1]
    B = np.linspace(-1, 1, 6, dtype=np.float32).reshape(3, 2)
    for _ in range(2):
        (C,) = compiled.run([A, B], {"N": 6, "P": 3, "M": 2})
        np.testing.assert_allclose(C, A @ B, rtol=1e-5)
    with pytest.raises(ValueError, match="not float32"):
        compiled.run([A.astype(np.float64), B], {"N": 6, "P": 3, "M": 2})
