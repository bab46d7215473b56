"""Sizes that assertions fix are constants of the loops of programs with many sizes."""

from __future__ import annotations

import numpy as np
import pytest

from tcdsl.ir.text.parser import parse_program
from tcdsl.lowering.constant_sizes import constant_sizes, with_constants
from tcdsl.lowering.lower import lower
from tests.lowering.loop_interpreter import execute


def program(count: int) -> str:
    names = [f"w{k}" for k in range(count)]
    inputs = "\n".join(f"input {each}: float32[{each}_0, {each}_1]" for each in names)
    asserts = "\n".join(f"assert {each}_0 == 3\nassert {each}_1 == 4" for each in names)
    total = " + ".join(f"{each}[j, i]" for each in names)
    domain = f"0 <= i < {names[0]}_1 and 0 <= j < {names[0]}_0"
    return (
        f"program p\n{inputs}\n{asserts}\ntensor y: float32[4, 3]\n\ny[i, j] = {total} for [i, j]: {domain}\nreturn y\n"
    )


@pytest.mark.parametrize("count", [2, 13])
def test_many_sizes_that_are_known_are_constants(count: int) -> None:
    made = parse_program(program(count))
    kernel = lower(made)
    known = constant_sizes(made)
    assert len(known) == (26 if count == 13 else 0)
    statement = with_constants(made.statements[0], known)
    assert statement.domain.parameters == (() if known else ("w0_0", "w0_1"))
    arrays = [np.random.default_rng(k).random((3, 4), np.float32) for k in range(count)]
    assert np.allclose(execute(kernel, arrays).outputs[0], sum(arrays).T)
