"""Loops that run, in the representation: printed, parsed, verified, interpreted, taken apart into stages."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from tcdsl.errors import DslSyntaxError
from tcdsl.ir.interpreter.interpreter import interpret
from tcdsl.ir.stages import stage_programs, stages
from tcdsl.ir.text.parser import parse_program
from tcdsl.ir.text.printer import format_program
from tcdsl.ir.verifier.verifier import VerificationError, verify

HEAT = """\
program heat
input u: float64[N]
input carrier: bool[steps, none]
tensor twice: float64[N]
tensor u_2: float64[N]
tensor total: float64

twice[i] = 2.0 * u[i]  for [i]: 0 <= i < N

repeat u_2 = steps times with twice
| program heat_loop
| input round: bool[t]
| input u: float64[N]
| tensor u_2: float64[N]
|
| u_2[i] += 0.1 * (u[i - 1] - 2.0 * u[i] + u[i + 1])  from u  for [i]: 0 < i <= -2 + N
|
| update u = u_2

total[()] += u_2[i]  for [i]: 0 <= i < N

return u_2, total
"""

# Newton's method for a square root: a loop with a condition, whose round is data.
NEWTON = """\
program newton
input a: float64
tensor x: float64
tensor running: bool
tensor x_2: float64
tensor running_2: bool

x[()] = a                        for []:
running[()] = x * x - a > 1e-12  for []:

repeat x_2, running_2 = 1000 times with x, running, a
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


def heat(u: np.ndarray, steps: int) -> np.ndarray:
    u = 2 * u
    for _ in range(steps):
        u[1:-1] += 0.1 * (u[:-2] - 2 * u[1:-1] + u[2:])
    return u


@pytest.mark.parametrize("text", [HEAT, NEWTON])
def test_loops_are_printed_as_they_are_read(text: str) -> None:
    program = parse_program(text)
    verify(program)
    assert format_program(program) == text
    assert parse_program(format_program(program)) == program


@pytest.mark.parametrize("steps", [0, 1, 5])
def test_loops_are_interpreted(steps: int) -> None:
    u = np.linspace(0, 1, 7) ** 2
    found, total = interpret(parse_program(HEAT), [u, np.empty((steps, 0), bool)]).outputs
    np.testing.assert_allclose(found, heat(u, steps), rtol=1e-14)
    np.testing.assert_allclose(total, heat(u, steps).sum(), rtol=1e-14)


def test_a_condition_ends_a_loop() -> None:
    np.testing.assert_allclose(interpret(parse_program(NEWTON), [np.array(2.0)]).outputs[0], 2**0.5, rtol=1e-12)


def test_stages_are_straight_programs() -> None:
    program = parse_program(HEAT)
    assert [[s.target.tensor for s in stage.statements] for stage in stages(program)] == [["twice"], ["total"]]
    first, last = (straight for straight, _ in stage_programs(program))
    verify(first)
    verify(last)
    assert first.outputs == ("twice",)
    assert [each.name for each in last.inputs] == ["u", "carrier", "u_2"]
    assert last.outputs == ("u_2", "total")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("steps times with twice", "steps times with nothing", "nothing makes what the loop of u_2 reads"),
        ("with twice", "with twice, twice", "2 inputs and 1 results do not fit the body"),
        ("input round: bool[t]", "input round: float64[t]", "round: float64[t] does not hold the number of the round"),
        ("tensor u_2: float64[N]\ntensor", "tensor u_2: float32[N]\ntensor", "it makes u_2 of twice, but"),
    ],
)
def test_faulty_loops_are_told_of(old: str, new: str, message: str) -> None:
    assert old in HEAT
    with pytest.raises(VerificationError, match=re.escape(message)):
        verify(parse_program(HEAT.replace(old, new)))


def test_faults_in_a_body_have_their_line() -> None:
    with pytest.raises(DslSyntaxError, match=r"<text>:16: there is no tensor named v"):
        parse_program(HEAT.replace("0.1 * (u[i - 1]", "0.1 * (v[i - 1]"))


def test_a_program_without_the_loop_that_makes_its_tensors_is_faulty() -> None:
    with pytest.raises(VerificationError):
        verify(replace(parse_program(HEAT), repeats=()))
