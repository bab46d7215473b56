"""Programs of all kinds: their results, that they print back, and their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tests.autodiff.program_gradients import check_interpreted_gradient
from tests.comprehensions.programs import PROGRAMS, Program

NAMED = pytest.mark.parametrize("program", PROGRAMS, ids=[program.name for program in PROGRAMS])


def as_tuple(found: Any) -> tuple[Any, ...]:
    return found if isinstance(found, tuple) else (found,)


@NAMED
def test_results(program: Program) -> None:
    arguments = program.arguments()
    defs = tc.comprehensions.define(program.source)
    found, expected = defs.f(*arguments), program.expected(*arguments)
    assert isinstance(found, tuple) == isinstance(expected, tuple)
    for one, other in zip(as_tuple(found), as_tuple(expected), strict=True):
        assert np.shape(one) == np.shape(other)
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-6)
    shapes = defs.f.shapes(*(np.shape(each) for each in arguments))
    assert (shapes if isinstance(expected, tuple) else (shapes,)) == tuple(map(np.shape, as_tuple(found)))


@NAMED
def test_the_interpreter_agrees(program: Program) -> None:
    arguments = program.arguments()
    f = tc.comprehensions.define(program.source).f
    with tc.config(check="ir"):
        interpreted = f.interpret(*arguments)
    for one, other in zip(as_tuple(interpreted), as_tuple(program.expected(*arguments)), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-6)


@NAMED
def test_they_print_back(program: Program) -> None:
    defs = tc.comprehensions.define(program.source)
    assert tc.comprehensions.define(str(defs)) == defs
    assert str(tc.comprehensions.define(str(defs))) == str(defs)


DIFFERENTIABLE = [program for program in PROGRAMS if program.differentiable]


@pytest.mark.parametrize("program", DIFFERENTIABLE, ids=lambda program: program.name)
def test_gradients(program: Program) -> None:
    check_interpreted_gradient(tc.comprehensions.define(program.source).f.in_double, program.arguments())


@pytest.mark.parametrize(
    "program",
    [pytest.param(p, id=p.name, marks=pytest.mark.long if k % 6 else ()) for k, p in enumerate(DIFFERENTIABLE)],
)
def test_gradients_in_machine_code(program: Program) -> None:
    tc.check_grads(tc.comprehensions.define(program.source).f, program.arguments())
