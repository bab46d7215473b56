"""Programs written out by hand, and what every derivative of one must satisfy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from tcdsl.autodiff import adjoint
from tcdsl.errors import ShapeError
from tcdsl.ir.interpreter.interpreter import interpret
from tcdsl.ir.program import Program
from tcdsl.ir.sizes.size_binding import bind_sizes
from tcdsl.ir.text.parser import parse_program
from tcdsl.ir.text.printer import format_program
from tcdsl.simplification import simplify
from tests.autodiff.cost.measuring import Derivatives
from tests.autodiff.program_gradients import check_program_gradient
from tests.autodiff.tangent_checks import check_program_tangent
from tests.range_checks import verify_deeply

__all__ = ["check", "floating_inputs", "program", "pulled_back", "text_of_adjoint", "values"]


def program(inputs: str, tensors: str, body: str, output: str = "y") -> Program:
    """``program("x: float64[N]", "y: float64", "y[()] += x[i] for [i]: 0 <= i < N")``; ``;`` separates declarations."""
    lines = ["program p", *(f"input {part.strip()}" for part in inputs.split(";"))]
    lines += [f"tensor {part.strip()}" for part in tensors.split(";")]
    text = "\n".join(lines) + f"\n\n{body}\n\nreturn {output}\n"
    return parse_program(text)


def floating_inputs(made: Program) -> list[str]:
    return [tensor.name for tensor in made.inputs if tensor.dtype.startswith("float")]


def check(made: Program, *inputs: object, wrt: Sequence[str] | None = None, order: int = 2) -> None:
    """The dot-product identity, to the given order; each derivative is a valid program, parses back, and costs at most
    four times what the program costs.
    """
    arrays = [np.asarray(array) for array in inputs]
    names = floating_inputs(made) if wrt is None else list(wrt)
    derivatives = verified_derivatives(made, tuple(names))
    for factor in (1, 2, 3):
        larger = [np.resize(array, tuple(factor * extent for extent in array.shape)) for array in arrays]
        if fits(made, larger):
            derivatives.measured(larger).check_with_interface()
    check_program_gradient(made, arrays, names, order=order)
    check_program_tangent(made, arrays, names)


# Many programs are checked at several arguments.
@lru_cache(maxsize=4)
def verified_derivatives(made: Program, wrt: tuple[str, ...]) -> Derivatives:
    """The derivatives, once they are known to be programs like any other."""
    derivatives = Derivatives(made, wrt)
    verify_deeply(made)
    for result in (derivatives.adjoint, derivatives.tangent):
        verify_deeply(result)
        assert parse_program(format_program(result)) == result
        assert simplify(result) == result
    return derivatives


def fits(made: Program, arrays: Sequence[np.ndarray]) -> bool:
    """Whether a program takes arrays of these shapes."""
    try:
        bind_sizes(made, [array.shape for array in arrays])
    except ShapeError:
        return False
    return True


def values(made: Program, *inputs: object) -> list[np.ndarray]:
    return interpret(made, [np.asarray(array) for array in inputs]).outputs


def pulled_back(
    made: Program, inputs: Sequence[object], seeds: Sequence[object], wrt: Sequence[str]
) -> list[np.ndarray]:
    return values(adjoint(made, wrt, keep_outputs=False), *inputs, *seeds)


def text_of_adjoint(made: Program, wrt: Sequence[str]) -> str:
    return format_program(adjoint(made, wrt, keep_outputs=False))
