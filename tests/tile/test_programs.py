"""Programs as their authors write them: on arrays under `op`, on tensors outside, and their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op, tile
from tests.autodiff.program_gradients import check_interpreted_gradient
from tests.long_variants import every
from tests.tile.idioms import IDIOMS
from tests.tile.more_idioms import MORE_IDIOMS
from tests.tile.reference_programs import PROGRAMS, Program

ALL = (*PROGRAMS, *IDIOMS, *MORE_IDIOMS)
# But for results that are integers, and a long program whose statements are those of others.
DIFFERENTIATED = [each for each in ALL if each.name not in ("arg_max", "one_hot", "winograd")]
DECORATED = {program.name: op(program.function) for program in ALL}


def as_tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def assert_right(program: Program, found: Any) -> None:
    expected = as_tuple(program.reference(*program.arguments))
    for one, other in zip(as_tuple(found), expected, strict=True):
        np.testing.assert_allclose(np.asarray(one), other, atol=1e-12)


@pytest.mark.parametrize("program", every(2, ALL), ids=lambda each: each.name)
def test_programs_on_arrays(program: Program) -> None:
    with tc.config(check="ir"):
        assert_right(program, DECORATED[program.name](*program.arguments))


@pytest.mark.parametrize("program", DIFFERENTIATED, ids=lambda each: each.name)
def test_gradients(program: Program) -> None:
    check_interpreted_gradient(program.of_arrays(DECORATED[program.name]), program.arrays)


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(each, id=each.name, marks=pytest.mark.long if k % 6 else ())
        for k, each in enumerate(DIFFERENTIATED)
    ],
)
def test_gradients_in_machine_code(program: Program) -> None:
    tc.check_grads(program.of_arrays(DECORATED[program.name]), program.arrays)


@pytest.mark.parametrize(
    "program",
    [pytest.param(each, id=each.name, marks=pytest.mark.long if k % 2 else ()) for k, each in enumerate(ALL)],
)
def test_programs_on_tensors(program: Program) -> None:
    given = [tile.Tensor(each) if isinstance(each, np.ndarray) else each for each in program.arguments]
    made = program.function(*given)
    assert all(isinstance(each, tile.Tensor) for each in as_tuple(made))
    assert_right(program, made)
