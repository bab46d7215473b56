"""Reverse mode through loops: against the dot-product identity, and against the same loops unrolled."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tcdsl import op
from tcdsl.autodiff import adjoint, gradient
from tcdsl.autodiff.loop_derivatives import open_loops
from tcdsl.ir.interpreter.interpreter import interpret
from tcdsl.ir.program import AxisExtent, Program
from tcdsl.ir.sizes.size_binding import evaluate_size
from tcdsl.ir.text.parser import parse_program
from tcdsl.ir.text.printer import format_program
from tcdsl.simplification import simplify
from tests.autodiff.kept_derivatives import kept_adjoint, kept_tangent
from tests.autodiff.program_gradients import check_program_gradient
from tests.autodiff.programs import floating_inputs
from tests.ir.loop_programs import DERIVED, LOOPS, SMOOTH
from tests.long_variants import every, in_turn
from tests.range_checks import verify_deeply
from tests.rewrite.unrolling import unrolled

SIZES = (0, 1, 2, 4)


def agree(one: Program, other: Program, arrays: Sequence[np.ndarray]) -> None:
    """Two programs give the same outputs; inputs that are missing, seeds, are random."""
    rng = np.random.default_rng(0)
    given = [*arrays, *(rng.normal(size=shape) for shape in shapes_of(one, arrays)[len(arrays) :])]
    for found, expected in zip(interpret(one, given).outputs, interpret(other, given).outputs, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def shapes_of(program: Program, arrays: Sequence[np.ndarray]) -> list[tuple[int, ...]]:
    """The shapes of the inputs of a program, of which the first ones are given."""
    places = {tensor.name: place for place, tensor in enumerate(program.inputs)}
    sizes: dict[str, int] = {}
    for size in program.sizes:
        if not isinstance(size.source, AxisExtent):
            sizes[size.name] = evaluate_size(size.source, sizes)
        elif places[size.source.tensor] < len(arrays):
            sizes[size.name] = arrays[places[size.source.tensor]].shape[size.source.axis]
    return [tuple(evaluate_size(extent, sizes) for extent in tensor.shape) for tensor in program.inputs]


@pytest.mark.parametrize("name", SMOOTH)
def test_adjoints_keep_the_dot_product_identity(name: str) -> None:
    case = LOOPS[name]
    for size in SIZES:
        check_program_gradient(case.program, case.of(size), floating_inputs(case.program))


@pytest.mark.parametrize("name", every(2, DERIVED))
def test_adjoints_are_those_of_the_unrolled_program(name: str) -> None:
    case, wrt = LOOPS[name], floating_inputs(LOOPS[name].program)
    derivative = adjoint(case.program, wrt)
    for size in SIZES:
        agree(derivative, adjoint(unrolled(case.program, case.of(size)), wrt), case.of(size))


@pytest.mark.parametrize("name", DERIVED)
def test_adjoints_are_programs_like_any_other(name: str) -> None:
    derivative = adjoint(LOOPS[name].program, floating_inputs(LOOPS[name].program))
    verify_deeply(derivative)
    assert simplify(derivative) == derivative
    assert parse_program(format_program(derivative)) == derivative


@pytest.mark.parametrize(
    ("name", "order"),
    in_turn(DERIVED, ["reverse over reverse", "forward over reverse", "reverse over forward"]),
)
def test_second_derivatives_are_those_of_the_unrolled_program(name: str, order: str) -> None:
    case = LOOPS[name]
    arrays = case.of(3)
    outer, inner = (kept_adjoint if mode == "reverse" else kept_tangent for mode in order.split(" over "))
    twice = []
    for program in (case.program, unrolled(case.program, arrays)):
        first = inner(program, tuple(floating_inputs(program)))
        twice.append(outer(first, tuple(floating_inputs(first))))
    verify_deeply(twice[0])
    agree(*twice, arrays)


@op
def from_two_on(x: real[N], p):
    q: real[N]
    for t in range(N):
        for _u in range(2, N):
            if t > 1:
                return p
            q[t] += p
    return p + sum(q[i] * q[i])


def test_less_than_no_rounds_are_none_in_second_derivatives() -> None:
    program = from_two_on.program(np.ones(3), np.array(0.8))
    twice = adjoint(gradient(program, ["p"], keep_outputs=False), ["p"], keep_outputs=False)
    for size in range(4):
        [found] = interpret(twice, [np.ones(size), np.array(0.8), np.array(1.0)]).outputs
        assert found == 0


def tapes(program: Program) -> list[str]:
    return [name for repeat in program.repeats for name in repeat.results if "tape" in name]


@pytest.mark.parametrize("name", ["heat", "recurrent", "cholesky", "substitution"])
def test_what_a_loop_leaves_behind_is_not_kept_besides(name: str) -> None:
    program = LOOPS[name].program
    derivative = adjoint(program, floating_inputs(program), keep_outputs=False)
    assert not tapes(derivative)
    # Heat is linear: not even its states are computed.
    assert len(derivative.repeats) == (1 if name == "heat" else 2)


def test_scalars_are_kept_on_a_tape_of_one_cell_per_round() -> None:
    derivative = gradient(LOOPS["product"].program, ["x"], keep_outputs=False)
    [tape] = tapes(derivative)
    assert f"\ntensor {tape}: float64[N]\n" in format_program(derivative)
    backward = derivative.repeats[-1].body
    # No round touches more than a cell of what is as long as there are rounds.
    assert all(not statement.domain.variables for statement in backward.statements)


@pytest.mark.parametrize("name", ["until", "counted"])
@pytest.mark.parametrize("places", [1, 2, 3])
def test_states_of_loops_that_data_end_are_computed_again(
    name: str, places: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_loops, "_MOST_PLACES", places)
    monkeypatch.setattr(open_loops, "_FEWEST_PLACES", 1)
    case, wrt = LOOPS[name], floating_inputs(LOOPS[name].program)
    derivative = adjoint(case.program, wrt)
    for size in SIZES:
        agree(derivative, adjoint(unrolled(case.program, case.of(size)), wrt), case.of(size))
