"""Kernels compute what the interpreter computes, whatever the sizes and the order of parallel iterations."""

from __future__ import annotations

import functools
import random
from collections.abc import Iterable, Sequence

import numpy as np
import pytest

from tcdsl.ir.interpreter.interpreter import interpret
from tcdsl.ir.text.parser import parse_program
from tcdsl.lowering.loopir.loops import Kernel
from tcdsl.lowering.lower import lower
from tests.lowering.cases import CASES
from tests.lowering.loop_interpreter import execute
from tests.range_checks import verify_deeply


@functools.cache
def kernel(name: str, optimize: bool) -> Kernel:
    program = parse_program(CASES[name].text)
    verify_deeply(program)
    made = lower(program, optimize=optimize)
    verify_deeply(made.program)
    return made


def shuffled(steps: Sequence[int]) -> Iterable[int]:
    return random.Random(len(steps)).sample(steps, len(steps))


def agree(found: np.ndarray, expected: np.ndarray) -> None:
    assert found.dtype == expected.dtype
    if expected.dtype.kind == "f":
        tolerance = {2: 2e-3, 4: 1e-5, 8: 1e-12}[expected.dtype.itemsize]
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    else:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("optimize", [True, False], ids=["optimized", "plain"])
@pytest.mark.parametrize("name", CASES)
def test_kernels_agree_with_the_interpreter(name: str, optimize: bool) -> None:
    case = CASES[name]
    program = parse_program(case.text)
    lowered = kernel(name, optimize)
    for sizes in case.sizes:
        arrays = case.inputs(*sizes)
        expected = interpret(program, arrays)
        for order in (None, shuffled):
            found = execute(lowered, arrays, order)
            assert len(found.outputs) == len(expected.outputs)
            for mine, its in zip(found.outputs, expected.outputs, strict=True):
                agree(mine, its)
            for tensor, array in zip(program.inputs, arrays, strict=True):
                agree(found.inputs[tensor.name], expected.updates.get(tensor.name, np.asarray(array)))
