"""Programs rewritten: other names, one name for equal sizes, inlined bodies, no more inputs and results than needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tcdsl.ir.interpreter.interpreter import interpret
from tcdsl.ir.program import Program
from tcdsl.ir.stages import tensors_needed
from tcdsl.ir.verifier.verifier import verify
from tcdsl.rewrite.loop_trimming import trimmed
from tcdsl.rewrite.needed_inputs import with_needed_inputs
from tcdsl.rewrite.renaming import with_tensors_renamed
from tcdsl.rewrite.unified_sizes import with_equal_sizes
from tests.ir.loop_programs import LOOPS
from tests.rewrite.unrolling import unrolled


def agree(program: Program, other: Program, arrays: list[np.ndarray]) -> None:
    verify(other)
    wanted, found = (interpret(each, arrays) for each in (program, other))
    results = [(*each.outputs, *each.updates.values()) for each in (wanted, found)]
    for one, two in zip(*results, strict=True):
        np.testing.assert_allclose(two, one, rtol=1e-5, atol=1e-8)


def names_turned(program: Program) -> Program:
    names = [tensor.name for tensor in (*program.inputs, *program.tensors)]
    return with_tensors_renamed(program, dict(zip(names, reversed(names), strict=True)))


@pytest.mark.parametrize("rewrite", [names_turned, with_equal_sizes])
@pytest.mark.parametrize("name", LOOPS)
def test_rewritten_programs_compute_the_same(name: str, rewrite: Callable[[Program], Program]) -> None:
    program = LOOPS[name].program
    for count in (0, 3):
        agree(program, rewrite(program), LOOPS[name].of(count))


# Data of a round that say how often a loop inside runs are known in that round alone.
@pytest.mark.parametrize("name", [name for name in LOOPS if name != "branches"])
def test_bodies_inlined_as_often_as_they_run_compute_the_same(name: str) -> None:
    program = LOOPS[name].program
    for count in (0, 1, 3):
        arrays = LOOPS[name].of(count)
        agree(program, unrolled(program, arrays), arrays)


@pytest.mark.parametrize("name", LOOPS)
def test_loops_for_some_of_their_results_compute_these(name: str) -> None:
    program = LOOPS[name].program
    for result in program.repeats[0].results:
        wanted = replace(program, outputs=(result,), updates=())
        needed = tensors_needed(wanted, wanted.outputs)
        repeats = tuple(trimmed(each, needed) for each in wanted.repeats if needed.intersection(each.results))
        made = {name for each in repeats for name in each.results}
        given = {name for each in wanted.repeats for name in each.results} - made
        kept = tuple(
            each for each in wanted.statements if each.target.tensor in needed and each.target.tensor not in given
        )
        made |= {each.target.tensor for each in kept}
        tensors = tuple(each for each in wanted.tensors if each.name in made)
        agree(wanted, replace(wanted, repeats=repeats, statements=kept, tensors=tensors), LOOPS[name].of(3))


def test_inputs_that_nobody_reads_stay_where_they_alone_have_an_extent() -> None:
    program = LOOPS["heat"].program
    assert [each.name for each in with_needed_inputs(program, ["u"]).inputs] == ["u", "carrier"]
    program = LOOPS["cholesky"].program
    assert [each.name for each in with_needed_inputs(program, ["A"]).inputs] == ["A"]
