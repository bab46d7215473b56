"""The operation counter against operations counted one by one, and by hand."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

from tcdsl.autodiff import adjoint, tangent
from tcdsl.autodiff.cost import count_operations
from tcdsl.ir.program import Program
from tcdsl.ir.sizes.size_binding import bind_sizes, evaluate_size
from tests.autodiff.cost.point_by_point import counted
from tests.autodiff.programs import floating_inputs
from tests.autodiff.random_programs import random_case
from tests.long_variants import every, seeds
from tests.programs.table import PROGRAMS, CharacteristicProgram, arguments_of


def derivatives_with_arguments(
    made: Program, arrays: list[np.ndarray], wrt: list[str]
) -> list[tuple[Program, list[np.ndarray]]]:
    """The tangent and the adjoint, and arrays for each."""
    sizes = bind_sizes(made, [array.shape for array in arrays])
    outputs = [made.tensor(name) for name in made.outputs]
    seeds = [
        np.ones(tuple(evaluate_size(extent, sizes) for extent in output.shape), output.dtype)
        for output in outputs
        if output.dtype.startswith("float")
    ]
    directions = [array for array, tensor in zip(arrays, made.inputs, strict=True) if tensor.name in wrt]
    return [(tangent(made, wrt), [*arrays, *directions]), (adjoint(made, wrt), [*arrays, *seeds])]


def agree(made: Program, arrays: list[np.ndarray], wrt: list[str]) -> None:
    for each, inputs in ((made, arrays), *derivatives_with_arguments(made, arrays, wrt)):
        assert count_operations(each, inputs) == counted(each, inputs)


@pytest.mark.parametrize("characteristic", every(2, PROGRAMS.values()), ids=str)
def test_characteristic_programs(characteristic: CharacteristicProgram) -> None:
    # One by one takes its time: of convolutions the small shapes only.
    for call in (call for call in characteristic.calls if sum(map(prod, call)) < 300):
        arrays = arguments_of(characteristic, call, "float64")
        made = characteristic.function.program(*arrays, **characteristic.options)
        if characteristic.smooth:
            agree(made, arrays, floating_inputs(made))
        else:
            assert count_operations(made, arrays) == counted(made, arrays)


@pytest.mark.parametrize("batch", seeds(2, 4))
def test_random_programs(batch: int) -> None:
    for seed in range(10 * batch, 10 * batch + 10):
        case = random_case(seed)
        agree(case.program, case.inputs, case.wrt)


@pytest.mark.long
@pytest.mark.parametrize("batch", range(20))
def test_more_random_programs(batch: int) -> None:
    for seed in range(1000 + 20 * batch, 1020 + 20 * batch):
        case = random_case(seed)
        agree(case.program, case.inputs, case.wrt)
