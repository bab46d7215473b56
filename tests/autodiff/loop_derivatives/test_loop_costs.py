"""What programs with loops cost: what they cost unrolled; and their derivatives, at most four times that."""

from __future__ import annotations

import numpy as np
import pytest

from tcdsl.autodiff.cost import count_operations
from tests.autodiff.cost.measuring import Derivatives
from tests.autodiff.programs import floating_inputs
from tests.ir.loop_programs import DERIVED, LOOPS
from tests.rewrite.unrolling import unrolled


@pytest.mark.parametrize("name", DERIVED)
def test_loops_cost_what_they_cost_unrolled(name: str) -> None:
    case = LOOPS[name]
    for size in (0, 1, 4):
        arrays = case.of(size)
        assert count_operations(case.program, arrays) == count_operations(unrolled(case.program, arrays), arrays)


# Where data end a loop, it runs once more to store its states.
@pytest.mark.parametrize("name", [name for name in DERIVED if name not in ("until", "counted")])
def test_derivatives_of_loops_cost_four_times_at_most(name: str) -> None:
    case = LOOPS[name]
    derivatives = Derivatives(case.program, floating_inputs(case.program))
    for size in (1, 4, 8):
        derivatives.measured(case.of(size)).check_with_interface()


def test_counting_a_loop_looks_at_no_values() -> None:
    arrays = [np.broadcast_to(0.0, shape) for shape in ((1000,), (1000, 1000), (3, 1000))]
    assert count_operations(LOOPS["recurrent"].program, arrays).calls
