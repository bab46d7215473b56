"""The driver as machine code and as the Python that it is made of, on the same calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tcdsl.targets.cpu.call import driver
from tcdsl.targets.cpu.compiled import CompiledKernel
from tcdsl.targets.cpu.layout.call_block import BIND_ONLY, NOT_AS_PLANNED, OVERLAPPING
from tcdsl.targets.protocol.target import Build
from tests.targets.compiling import compile_kernel
from tests.targets.kernels import matmul


@pytest.fixture(scope="module")
def compiled(options: Build) -> CompiledKernel:
    return compile_kernel(matmul(), contiguous=(False, False), options=options)


def _calls() -> Iterator[tuple[str, list[Any], np.ndarray, int]]:
    table = np.zeros((4, 12), np.float32)
    A, B, C = table[:, 0:3], np.ones((3, 2), np.float32), np.empty((4, 2), np.float32)
    yield "plain", [A, B], C, 0
    yield "reversed", [A[::-1, ::-1], B], C, 0
    yield "beside each other", [table[0, :3][None].repeat(4, 0), B], table[3, :8].reshape(4, 2), 0
    yield "over each other", [table[:3].reshape(-1)[:12].reshape(4, 3), B], table[0, 4:].reshape(4, 2), OVERLAPPING
    yield "between each other", [A, B], table[0, 3:11].reshape(4, 2), 0
    yield "in the columns of a table", [A, B], table[:, 4:6], NOT_AS_PLANNED
    yield "no array", [A, [1.0]], C, NOT_AS_PLANNED
    yield "another type", [A.astype(np.float64), B], C, NOT_AS_PLANNED
    yield "another shape", [A, B.T], C, NOT_AS_PLANNED
    yield "another rank", [A, B[0]], C, NOT_AS_PLANNED
    yield "misaligned", [A, np.frombuffer(bytes(25), np.uint8)[1:].view(np.float32).reshape(3, 2)], C, NOT_AS_PLANNED
    yield "cells written twice", [A, B], np.lib.stride_tricks.as_strided(C, (4, 2), (4, 4)), NOT_AS_PLANNED
    frozen = C.copy()
    frozen.flags.writeable = False
    yield "read-only", [A, B], frozen, NOT_AS_PLANNED
    # Strides whose products do not fit: the arrays are never touched.
    wild = np.lib.stride_tricks.as_strided(C, (4, 2), (2**62, 4))
    yield "strides beyond memory", [A, B], wild, NOT_AS_PLANNED


@pytest.mark.parametrize(("name", "inputs", "made", "expected"), [pytest.param(*c, id=c[0]) for c in _calls()])
def test_machine_code_and_python_see_the_same(
    compiled: CompiledKernel, name: str, inputs: list[Any], made: np.ndarray, expected: int
) -> None:
    plan = compiled.plan({"N": 4, "P": 3, "M": 2})
    frame = compiled._frame(plan)
    given, results = tuple(inputs), (made,)
    words = []
    for run in (compiled._drivers.run, driver.run):
        frame.words[:] = 0
        frame.take(plan)
        assert run(plan.address, frame.address, given, results, BIND_ONLY) == expected
        words.append(frame.words.copy())
    np.testing.assert_array_equal(*words)


@pytest.mark.parametrize("execute", ["execute", "execute_parallel"])
def test_nests_run_from_both(compiled: CompiledKernel, execute: str) -> None:
    A, B = np.arange(12, dtype=np.float32).reshape(4, 3), np.arange(6, dtype=np.float32).reshape(3, 2)
    drivers = compiled._drivers
    plan = compiled.plan({"N": 4, "P": 3, "M": 2})
    arguments = (plan.table_address, len(compiled.kernel.nests))
    runs: list[Callable[[int], int]] = [lambda frame: driver.execute(*arguments, frame)]
    if execute == "execute_parallel":
        # As if its work were worth two threads.
        table = np.frombuffer(bytearray(plan.block[plan.table :].tobytes()), np.int64)
        table[1:4] = 0, 4, 3
        first = int(table.__array_interface__["data"][0])
        runs = [
            lambda frame: drivers.execute_parallel(first, 1, frame, 2),
            lambda frame: driver.execute_parallel(first, 1, frame, 2, 0, drivers._share),
        ]
    for run in (lambda frame: drivers.execute(*arguments, frame), *runs):
        C = np.full((4, 2), np.nan, np.float32)
        call = compiled._begun([A, B], {"N": 4, "P": 3, "M": 2}, [C])
        assert compiled._entered(call) == 0
        assert run(call.frame.address) == (1 if execute == "execute_parallel" else arguments[1])
        np.testing.assert_array_equal(C, A @ B)


def test_the_functions_count_their_arguments(compiled: CompiledKernel) -> None:
    with pytest.raises(SystemError):
        compiled._drivers.execute(0, 0)  # type: ignore[call-arg]
