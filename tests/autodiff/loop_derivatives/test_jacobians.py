"""Jacobians of programs with loops: those of the same loops unrolled."""

from __future__ import annotations

import numpy as np
import pytest

from tcdsl.autodiff.jacobians.program_jacobians import jacobian
from tcdsl.ir.interpreter.interpreter import interpret
from tests.autodiff.programs import floating_inputs
from tests.ir.loop_programs import DERIVED, LOOPS
from tests.long_variants import in_turn
from tests.range_checks import verify_deeply
from tests.rewrite.unrolling import unrolled


@pytest.mark.parametrize(("name", "mode"), in_turn(DERIVED, ["forward", "reverse"]))
def test_jacobians_are_those_of_the_unrolled_program(name: str, mode: str) -> None:
    case = LOOPS[name]
    arrays, wrt = case.of(2), floating_inputs(case.program)
    found = jacobian(case.program, wrt, mode=mode)
    verify_deeply(found)
    expected = jacobian(unrolled(case.program, arrays), wrt, mode=mode)
    for one, other in zip(interpret(found, arrays).outputs, interpret(expected, arrays).outputs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
