"""Gradients of random programs: the dot-product identity, and compiled pullbacks against interpreted ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tcdsl as tc
from tcdsl.ir.program import Program
from tests.autodiff.program_gradients import check_program_gradient
from tests.differential.agreement import agree, shown
from tests.differential.loading import loaded
from tests.differential.smooth_cases import differentiable
from tests.long_variants import seeds
from tests.oracle.generation import Case


def adjoint_is_transposed(case: Case) -> None:
    arrays = list(case.arrays.values())
    program = loaded(case.source).program(*arrays)
    names = [t.name for t, array in zip(program.inputs, arrays, strict=True) if array.dtype.kind == "f"]
    if names:
        with shown(case), np.errstate(all="ignore"):
            check_program_gradient(program, arrays, names)


def compiled_pullback_as_interpreted(case: Case) -> None:
    function = loaded(case.source)
    arrays = list(case.arrays.values())
    with shown(case), np.errstate(all="ignore"):
        value, pullback = tc.vjp(function, *arrays)
        outputs = value if isinstance(value, tuple) else (value,)
        random = np.random.default_rng(1)
        seeds = tuple(random.uniform(-1, 1, array.shape) for array in outputs)
        found = pullback(seeds if isinstance(value, tuple) else seeds[0])
        program = function.program(*arrays)
        # What is only checked is an output of the program that the function does not return.
        program = replace(program, outputs=program.outputs[: len(outputs)])
        names = [t.name for t, array in zip(program.inputs, arrays, strict=True) if array.dtype.kind == "f"]
        wanted = interpreted_pullback(program, names, arrays, seeds)
    agree(case, wanted, [array for array in found if array is not None], 200, "compiled pullback against interpreted")


def interpreted_pullback(
    program: Program, names: list[str], arrays: list[np.ndarray], seeds: tuple[np.ndarray, ...]
) -> list[np.ndarray]:
    from tcdsl.autodiff import adjoint
    from tcdsl.ir.interpreter.interpreter import interpret

    derivative = adjoint(program, names, keep_outputs=False)
    floating = [seed for seed, name in zip(seeds, program.outputs, strict=True) if program.tensor(name).dtype[0] == "f"]
    return interpret(derivative, [*arrays, *floating]).outputs


@pytest.mark.parametrize("batch", seeds(3, 30))
def test_adjoints_pass_the_dot_product_identity_and_compiled_pullbacks_agree(batch: int) -> None:
    checked = 0
    for seed in range(20_000 + 35 * batch, 20_000 + 35 * batch + 35):
        case = differentiable(seed)
        if case is None:
            continue
        adjoint_is_transposed(case)
        checked += 1
        # One in each batch, where the machine code of a pullback takes longer than all the rest.
        if seed % 35 < 1 and all(array.dtype.kind == "f" for array in case.arrays.values()):
            compiled_pullback_as_interpreted(case)
    assert checked > 14
