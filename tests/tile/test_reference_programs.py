"""The tutorial's programs as they stand there: on arrays under `op`, on tensors outside, and their gradients."""

from __future__ import annotations

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op, tile
from tests.tile.reference_programs import PROGRAMS, Program


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.name)
def test_programs_on_arrays(program: Program) -> None:
    with tc.config(check="ir"):
        found = op(program.function)(*program.arguments)
    np.testing.assert_allclose(found, program.reference(*program.arguments), atol=1e-12)


def test_programs_on_tensors() -> None:
    made = []
    for program in PROGRAMS:
        given = [tile.Tensor(each) if isinstance(each, np.ndarray) else each for each in program.arguments]
        made.append(program.function(*given))
    for program, tensor in zip(PROGRAMS, made, strict=True):
        assert isinstance(tensor, tile.Tensor)
        np.testing.assert_allclose(np.asarray(tensor), program.reference(*program.arguments), atol=1e-12)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.name)
def test_gradients(program: Program) -> None:
    tc.check_grads(program.of_arrays(op(program.function)), program.arrays)
