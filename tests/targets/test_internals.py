"""What is not documented still holds here, and what happens where it does not."""

from __future__ import annotations

import logging
from typing import Any

import numba
import numpy as np
import pytest

import tcdsl.targets.cpu.compiled as compiled_module
import tcdsl.targets.cpu.machine.internals as internals
from tcdsl.targets.protocol.target import Build
from tests.targets.compiling import compile_kernel
from tests.targets.kernels import matmul


def test_arrays_are_laid_out_as_expected() -> None:
    assert internals.array_header() == object.__basicsize__


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


def test_settings_are_set_and_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    from numba import config

    monkeypatch.setattr(config, "DISABLE_JIT", 1)
    with internals.own_settings():
        assert config.DISABLE_JIT == 0
    assert config.DISABLE_JIT == 1
    monkeypatch.delattr(config, "SLP_VECTORIZE")
    with internals.own_settings():
        assert not hasattr(config, "SLP_VECTORIZE")


def test_without_numbas_protocol_functions_are_compiled_and_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    from numba import types

    class Fixed:
        # A dispatcher that lets nobody set its cache.
        __slots__ = ("made",)

        def __init__(self, made: Any) -> None:
            self.made = made

        def __getattr__(self, name: str) -> Any:
            return getattr(object.__getattribute__(self, "made"), name)

        def __call__(self, n: int) -> int:
            return int(self.made(n))

    known = numba.njit
    monkeypatch.setattr(numba, "njit", lambda **options: lambda function: Fixed(known(**options)(function)))
    code = internals.MachineCode()
    made = internals.compiled_function(lambda n: n + 1, types.int64(types.int64), {}, code)
    assert made(2) == 3
    assert code.made == {}


@pytest.mark.parametrize(("configured", "level"), [(False, logging.WARNING), (True, logging.DEBUG)])
def test_numbas_log_is_for_those_who_have_configured_it(
    monkeypatch: pytest.MonkeyPatch, configured: bool, level: int
) -> None:
    logger = logging.getLogger("numba")
    monkeypatch.setattr(logger, "handlers", [logging.NullHandler()] if configured else [])
    monkeypatch.setattr(logging.getLogger(), "level", logging.DEBUG)
    logger.setLevel(logging.NOTSET)
    with internals.own_settings():
        assert logging.getLogger("numba.core.ssa").getEffectiveLevel() == level
    assert logger.level == logging.NOTSET
