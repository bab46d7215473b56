"""Golden texts of derivatives, first and second: what one would write by hand, and the right numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tcdsl.autodiff import adjoint, gradient, tangent
from tcdsl.ir.program import Program
from tcdsl.ir.text.parser import parse_program
from tcdsl.ir.text.printer import format_program
from tcdsl.simplification import simplify
from tests.autodiff.paper_examples import EXAMPLES, LINEAR
from tests.autodiff.program_gradients import check_program_gradient
from tests.autodiff.programs import values
from tests.autodiff.tangent_checks import check_program_tangent
from tests.golden_texts import Golden
from tests.range_checks import verify_deeply

Shapes = tuple[tuple[int, ...], ...]


def arguments_of(shapes: Shapes, integers: Sequence[int] = ()) -> list[np.ndarray]:
    random = np.random.default_rng(7)
    return [
        np.asarray(random.integers(0, 4, shape) if k in integers else random.uniform(0.5, 1.5, shape))
        for k, shape in enumerate(shapes)
    ]


def staged(function: Any, shapes: Shapes) -> tuple[Program, list[np.ndarray]]:
    arguments = arguments_of(shapes, (1,) if function.__name__ == "embedding_loss" else ())
    return function.program(*arguments), arguments


def checked(program: Program) -> str:
    verify_deeply(program)
    assert simplify(program) == program
    assert parse_program(format_program(program)) == program
    return format_program(program)


@pytest.mark.parametrize(
    ("function", "shapes", "wrt"), [*EXAMPLES, *LINEAR], ids=lambda part: getattr(part, "__name__", "")
)
def test_first_derivatives(function: Any, shapes: Shapes, wrt: tuple[str, ...], golden: Golden) -> None:
    program, arguments = staged(function, shapes)
    forward, backward = (checked(mode(program, wrt, keep_outputs=False)) for mode in (tangent, adjoint))
    golden(f"paper/{function.__name__}", "\n".join((format_program(program), forward, backward)))
    check_program_tangent(program, arguments, wrt)
    check_program_gradient(program, arguments, wrt, order=1)


@pytest.mark.parametrize(("function", "shapes", "wrt"), EXAMPLES, ids=lambda part: getattr(part, "__name__", ""))
def test_second_derivatives(function: Any, shapes: Shapes, wrt: tuple[str, ...], golden: Golden) -> None:
    program, arguments = staged(function, shapes)
    first = gradient(program, wrt, keep_outputs=False)
    second = tangent(first, wrt, keep_outputs=False)
    golden(f"paper/{function.__name__}_second", "\n".join((checked(first), checked(second))))
    check_program_tangent(first, arguments, wrt)
    # The matrix is symmetric: <u, H v> is <v, H u>.
    names = [tensor.name for tensor in program.inputs]
    random = np.random.default_rng(8)
    u, v = ([random.normal(size=np.shape(arguments[names.index(name)])) for name in wrt] for _ in range(2))
    one, other = (values(second, *arguments, *direction) for direction in (u, v))
    left, right = (sum(np.sum(a * b) for a, b in zip(x, y, strict=True)) for x, y in ((one, v), (other, u)))
    np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-12)
