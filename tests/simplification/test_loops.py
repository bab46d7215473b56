"""Programs with loops through what makes programs shorter, other, or part of others: they compute the same."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np
import pytest

from tcdsl.ir.interpreter.interpreter import interpret
from tcdsl.ir.program import Program
from tcdsl.ir.sizes.size_binding import bind_sizes
from tcdsl.ir.text.parser import parse_program
from tcdsl.ir.text.printer import format_program
from tcdsl.rewrite.unified_sizes import with_equal_sizes
from tcdsl.simplification import simplify, specialized
from tcdsl.simplification.simplify import without_dead_statements
from tests.ir.loop_programs import DERIVED, LOOPS
from tests.range_checks import verify_deeply
from tests.rewrite.unrolling import unrolled

Change = Callable[[Program, list[np.ndarray]], Program]

CHANGES: dict[str, Change] = {
    "simplified": lambda program, arrays: simplify(program),
    "specialized": lambda program, arrays: specialized(program, bind_sizes(program, [a.shape for a in arrays])),
    "unrolled": unrolled,
    "simplified in part": lambda program, arrays: without_dead_statements(program),
    "of equal sizes": lambda program, arrays: with_equal_sizes(program, inputs=False),
    "stored": lambda program, arrays: pickle.loads(pickle.dumps(program)),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", DERIVED)
def test_programs_with_loops_stay_the_same(name: str, change: str) -> None:
    case = LOOPS[name]
    for size in (0, 1, 3):
        arrays = case.of(size)
        changed = CHANGES[change](case.program, arrays)
        verify_deeply(changed)
        expected, found = interpret(case.program, arrays).outputs, interpret(changed, arrays).outputs
        for one, other in zip(expected, found, strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-13)


@pytest.mark.parametrize("name", DERIVED)
def test_simplifying_twice_changes_nothing_more(name: str) -> None:
    once = simplify(LOOPS[name].program)
    assert simplify(once) == once
    assert parse_program(format_program(once)) == once


SUPERFLUOUS = """\
program superfluous
input x: float64[N]
input y: float64
input carrier: bool[steps]
tensor x_copy: float64[N]
tensor y_3: float64
tensor kept_3: float64[N]
tensor idle_3: float64
tensor nothing: float64

x_copy[i] = x[i]  for [i]: 0 <= i < N

repeat y_3, kept_3, idle_3 = steps times with y, x_copy, y, carrier, x
| program superfluous_loop
| input round: bool[t]
| input y: float64
| input kept: float64[N]
| input idle: float64
| input carrier: bool[steps]
| input unread: float64[N]
| assert N >= 1
| tensor y_2: float64
| tensor kept_2: float64[N]
| tensor idle_2: float64
| tensor dead: float64
|
| y_2[()] = y * kept[0] * 1.0 for []:
| kept_2[i] = kept[i]  for [i]: 0 <= i < N
| idle_2[()] = idle * 2.0 + y for []:
| dead[()] = idle_2 * 2.0 for []:
|
| update y = y_2
| update kept = kept_2
| update idle = idle_2

repeat nothing = steps times with y_3
| program idle_loop
| input round: bool[t]
| input y: float64
| tensor y_2: float64
|
| y_2[()] = y * y for []:
|
| update y = y_2

return y_3
"""

# What nothing needs is neither carried nor given, the copy is not made, the second loop goes.
NEEDED = """\
program superfluous
input x: float64[N]
input y: float64
input carrier: bool[steps]
tensor y_3: float64

repeat y_3 = steps times with y, x
| program superfluous_loop
| input round: bool[t]
| input y: float64
| input kept: float64[N]
| assert N >= 1
| tensor y_2: float64
|
| y_2[()] = y * kept[0]  for []:
|
| update y = y_2

return y_3
"""


def test_loops_carry_and_are_given_what_is_needed() -> None:
    assert format_program(simplify(parse_program(SUPERFLUOUS))) == NEEDED


def test_what_no_round_changes_is_what_it_was() -> None:
    program = parse_program(NEEDED.replace("update y = y_2", "update y = y").replace("return y_3", "return y_3, y"))
    simplified = simplify(program)
    assert not simplified.repeats
    assert [statement.target.tensor for statement in simplified.statements] == ["y_3"]


def test_rules_of_derivatives_keep_what_they_name() -> None:
    text = NEEDED.replace("return y_3\n", "return total\n").replace(
        "tensor y_3: float64\n", "tensor y_3: float64\ntensor twice: float64\ntensor total: float64\n"
    )
    text = text.replace(
        "return total", "twice[()] = y_3 + y_3  for []:\ntotal[()] = twice + 1.0  for []:\n\nreturn total"
    )
    text += """
pullback twice by y
| program rule
| input y: float64
| input twice: float64
| input d_twice: float64
| tensor d_y: float64
|
| d_y[()] = 3.0 * d_twice  for []:
|
| return d_y
"""
    program = parse_program(text)
    verify_deeply(program)
    simplified = simplify(program)
    verify_deeply(simplified)
    assert simplified == simplify(simplified)
    assert simplified.rules == program.rules
    assert [statement.target.tensor for statement in simplified.statements] == ["twice", "total"]
    [repeat] = simplified.repeats
    assert repeat.results == ("y_3",)
