"""Programs from text to machine code, against the interpreter: contiguous and strided, checked and unchecked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tcdsl.ir.interpreter.interpreter import interpret
from tcdsl.ir.sizes.size_binding import bind_sizes
from tcdsl.ir.text.parser import parse_program
from tcdsl.lowering.lower import lower
from tcdsl.targets.protocol.target import Build
from tests.lowering.cases import CASES
from tests.targets.compiling import compile_kernel


def agree(found: np.ndarray, expected: np.ndarray) -> None:
    assert found.dtype == expected.dtype
    if expected.dtype.kind == "f":
        tolerance = {2: 2e-3, 4: 1e-5, 8: 1e-12}[expected.dtype.itemsize]
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    else:
        np.testing.assert_array_equal(found, expected)


def spread(array: np.ndarray) -> np.ndarray:
    """The same values with other strides, the last one negative."""
    if array.ndim == 0:
        return array
    wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
    view = wide[..., ::-2]
    view[...] = array
    return view


def check(name: str, contiguous: bool, options: Build) -> None:
    case = CASES[name]
    program = parse_program(case.text)
    layout = tuple(contiguous or not tensor.shape for tensor in program.inputs)
    compiled = compile_kernel(lower(program), contiguous=layout, options=options)
    for sizes in case.sizes:
        arrays = [np.asarray(array) for array in case.inputs(*sizes)]
        expected = interpret(program, arrays)
        given = [array.copy() if contiguous else spread(array) for array in arrays]
        results = compiled.run(given, bind_sizes(program, [array.shape for array in arrays]))
        assert len(results) == len(expected.outputs)
        for mine, its in zip(results, expected.outputs, strict=True):
            agree(mine, its)
        for tensor, array, before in zip(program.inputs, given, arrays, strict=True):
            agree(array, expected.updates.get(tensor.name, before))


@pytest.mark.parametrize("name", CASES)
def test_compiled_programs_agree_with_the_interpreter(name: str, options: Build) -> None:
    check(name, contiguous=True, options=options)


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_strided_inputs_with_every_access_checked(name: str, cache_dir: Path) -> None:
    check(name, contiguous=False, options=Build((), checked=True, cache_dir=cache_dir))


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a"), ("a", "b", "a"), ("b", "x")])
def test_results_come_in_the_order_of_the_outputs(order: tuple[str, ...], options: Build) -> None:
    text = """program results
input x: float64[N]
tensor a: float64[N]
tensor b: float64[N]
a[i] = x[i] + 1.0  for [i]: 0 <= i < N
b[i] = a[i] * 2.0  for [i]: 0 <= i < N
"""
    compiled = compile_kernel(
        lower(parse_program(text + f"return {', '.join(order)}")), contiguous=(True,), options=options
    )
    x = np.array([1.0, 2.0, 5.0])
    expected = {"x": [1.0, 2.0, 5.0], "a": [2.0, 3.0, 6.0], "b": [4.0, 6.0, 12.0]}
    results = compiled.run([x], {"N": 3})
    assert [result.tolist() for result in results] == [expected[name] for name in order]
    bound = compiled.bind([x], {"N": 3})
    bound()
    assert [result.tolist() for result in bound.outputs] == [expected[name] for name in order]
