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
from tcdsl.lowering.lower import lower
from tests.ir.loop_programs import LOOPS

HEAT, NEWTON = LOOPS["heat"].text, LOOPS["newton"].text


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


KEEPING = """\
program keeping
input rounds: bool[n, zero]
input x: float64
tensor tape: float64[n]
tensor tape_4: float64[n]
tensor x_4: float64

tape[z0] = 0.0  from unset()  for [z0]: false

repeat tape_4, x_4 = n times with tape, x
| program keeping_loop
| input t_round: bool[t]
| input tape_2: float64[n]
| input x_2: float64
| assert t < n
| tensor tape_3: float64[n]
| tensor x_3: float64
|
| tape_3[t] = x_2  from tape_2  for []
| x_3[()] = 2.0 * x_2  for []
|
| update tape_2 = tape_3
| update x_2 = x_3

return tape_4
"""


def test_cells_that_are_unset_show_who_reads_them() -> None:
    program = parse_program(KEEPING)
    verify(program)
    assert parse_program(format_program(program)) == program
    [tape] = interpret(program, [np.empty((3, 0), bool), np.array(0.5)]).outputs
    np.testing.assert_array_equal(tape, [0.5, 1.0, 2.0])
    [tape] = interpret(replace(program, outputs=("tape",)), [np.empty((3, 0), bool), np.array(0.5)]).outputs
    assert np.isnan(tape).all()
    nests = lower(program).nests
    assert not any("0.0" in nest.title for nest in nests)
