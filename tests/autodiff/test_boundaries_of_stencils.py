"""Gradients of stencils that read across boundaries on several axes: as many statements as there are reads."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tcdsl.autodiff import adjoint
from tcdsl.ir.interpreter.interpreter import interpret
from tcdsl.ir.program import Program
from tcdsl.ir.text.parser import parse_program
from tcdsl.ir.text.printer import format_program
from tcdsl.lowering.lower import lower
from tests.lowering.loop_interpreter import execute

AXES = {"reflect": ("reflect",) * 3, "wrap": ("wrap",) * 3, "several": ("clamp", "symmetric", "reflect")}


def stencil(modes: tuple[str, ...]) -> Program:
    reads = []
    for number, shifts in enumerate(product((-1, 0, 1), repeat=3)):
        axes = []
        for name, shift, mode in zip("ijk", shifts, modes, strict=True):
            shifted = f"{name} {'-' if shift < 0 else '+'} {abs(shift)}"
            axes.append(f"{mode}({shifted})" if shift else name)
        reads.append(f"{number + 1}.0 * x[{', '.join(axes)}]")
    return parse_program(
        f"""
program stencil
input x: float64[N, M, K]
tensor y: float64[N, M, K]
y[i, j, k] = {" + ".join(reads)}  for [i, j, k]: 0 <= i < N and 0 <= j < M and 0 <= k < K
return y
"""
    )


@pytest.mark.parametrize("modes", AXES.values(), ids=AXES)
def test_a_stencil_of_27_points(modes: tuple[str, ...]) -> None:
    program = stencil(modes)
    pulled = adjoint(program, ["x"], keep_outputs=False)
    assert len(pulled.statements) <= 4 * 27
    kernel = lower(pulled)
    random = np.random.default_rng(0)
    for shape in ((4, 3, 5), (1, 2, 3), (2, 1, 1), (0, 2, 2)):
        x, seed = random.normal(size=shape), random.normal(size=shape)
        forward = interpret(program, [x]).outputs[0]
        for got in (execute(kernel, [x, seed]).outputs[0], interpret(pulled, [x, seed]).outputs[0]):
            np.testing.assert_allclose((got * x).sum(), (seed * forward).sum(), atol=1e-9)


@pytest.mark.parametrize("mode", ["reflect", "symmetric", "wrap", "clamp"])
def test_near_a_boundary_no_position_is_computed_while_running(mode: str) -> None:
    text = f"""program near
input x: float64[N]
tensor y: float64[N]
y[i] = x[{mode}(i + 1)] - 2.0 * x[{mode}(i - 1)]  for [i]: 0 <= i < N
return y
"""
    pulled = adjoint(parse_program(text), ["x"], keep_outputs=False)
    assert "%" not in format_program(pulled)
    assert 4 <= len(pulled.statements) <= 5
