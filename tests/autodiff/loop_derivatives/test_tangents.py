"""Forward mode through loops: against differences of values, and against the same loops unrolled."""

from __future__ import annotations

import numpy as np
import pytest

from tcdsl.autodiff import tangent
from tcdsl.ir.interpreter.interpreter import interpret
from tcdsl.ir.text.parser import parse_program
from tcdsl.ir.text.printer import format_program
from tcdsl.simplification import simplify
from tests.autodiff.programs import floating_inputs
from tests.autodiff.tangent_checks import check_program_tangent
from tests.ir.loop_programs import DERIVED, LOOPS, SMOOTH
from tests.range_checks import verify_deeply
from tests.rewrite.unrolling import unrolled


@pytest.mark.parametrize("name", SMOOTH)
def test_tangents_are_differences_of_values(name: str) -> None:
    case = LOOPS[name]
    for size in (0, 1, 2, 4):
        check_program_tangent(case.program, case.of(size), floating_inputs(case.program))


@pytest.mark.parametrize("name", DERIVED)
def test_tangents_are_loops_like_any_other(name: str) -> None:
    derivative = tangent(LOOPS[name].program, floating_inputs(LOOPS[name].program))
    verify_deeply(derivative)
    assert len(derivative.repeats) == len(LOOPS[name].program.repeats)
    assert simplify(derivative) == derivative
    assert parse_program(format_program(derivative)) == derivative


@pytest.mark.parametrize("name", DERIVED)
def test_second_tangents_are_those_of_the_unrolled_program(name: str) -> None:
    case = LOOPS[name]
    arrays, program = case.of(3), case.program
    straight = unrolled(program, arrays)
    rng = np.random.default_rng(0)
    twice = []
    for each in (program, straight):
        first = tangent(each, floating_inputs(program), keep_outputs=False)
        twice.append(tangent(first, floating_inputs(first), keep_outputs=False))
    given = [*arrays, *(rng.normal(size=np.shape(array)) for array in arrays if array.dtype == float)]
    given += [rng.normal(size=np.shape(array)) for array in given if array.dtype == float]
    for one, other in zip(*(interpret(each, given).outputs for each in twice), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10)


def test_a_tangent_arrives_after_as_many_rounds_as_it_takes() -> None:
    derivative = tangent(LOOPS["delay"].program, ["x"], keep_outputs=False)
    [repeat] = derivative.repeats
    assert [name for name, _ in repeat.body.updates if name.startswith("t_")] == ["t_a", "t_b", "t_c"]


def test_a_condition_ends_tangents_too() -> None:
    text = """\
program newton
input a: float64
tensor running: bool
tensor x_2: float64
tensor running_2: bool

running[()] = a * a - a > 1e-12  for []:

repeat x_2, running_2 = 1000 times with a, running, a
| program newton_loop
| input round: int64
| input x: float64
| input running: bool
| input a: float64
| tensor x_2: float64
| tensor running_2: bool
|
| x_2[()] = 0.5 * (x + a / x)            for []:
| running_2[()] = x_2 * x_2 - a > 1e-12  for []:
|
| update x = x_2
| update running = running_2
| return running

return x_2
"""
    derivative = tangent(parse_program(text), ["a"])
    verify_deeply(derivative)
    root, pushed = interpret(derivative, [np.array(3.0), np.array(1.0)]).outputs
    np.testing.assert_allclose([root, pushed], [3**0.5, 0.5 / 3**0.5], rtol=1e-9)
