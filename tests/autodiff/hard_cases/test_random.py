"""Random programs: the compositions of both modes agree with each other, and with differences where these exist.

``TCDSL_TEST_PROGRAMS=3000 pytest tests/autodiff/hard_cases/test_random.py -m long`` tries that many more of each kind.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
import pytest

from tcdsl.errors import DifferentiationError
from tcdsl.ir.program import Program
from tcdsl.ir.text.printer import format_program
from tcdsl.ir.verifier.verifier import VerificationError, verify
from tcdsl.runtime.transforms.checking import DerivativeMismatchError
from tests.autodiff.hard_cases.compositions import Point, compositions, derivatives, inner
from tests.autodiff.hard_cases.random_programs import wild_case
from tests.autodiff.tangent_checks import check_program_tangent
from tests.differential.loading import loaded
from tests.differential.smooth_cases import differentiable
from tests.long_variants import few, seeds
from tests.range_checks import verify_deeply

PROGRAMS_BY_HAND = int(os.environ.get("TCDSL_TEST_PROGRAMS", "200"))


def near(one: object, other: object, scale: float, what: str, program: Program) -> None:
    if not np.allclose(one, other, rtol=1e-7, atol=1e-8 * scale):
        raise AssertionError(f"{what}: {one} instead of {other}\n\n{format_program(program)}")


def is_shown_in_range(program: Program) -> bool:
    """Whether the verifier can tell that all accesses are in range: not where sizes have cases of their own."""
    try:
        verify_deeply(program)
    except VerificationError:
        return False
    return True


def agree(program: Program, arguments: Sequence[np.ndarray]) -> None:
    """All compositions of the two modes give one Hessian, and both modes one Jacobian."""
    with np.errstate(all="ignore"):
        point = Point.of(program, arguments)
        programs = compositions(program, point.wrt)
        found = derivatives(point, programs)
    left, right = inner(found.forward, point.dy), inner(found.reverse, point.v)
    near(left, right, max(1.0, abs(left)), "dot product", program)
    for one, other in zip(found.pushed, found.forward, strict=True):
        near(one, other, max(1.0, float(np.abs(other).max(initial=0))), "reverse over reverse, by dy", program)
    first, *others = found.products.values()
    scale = max([1.0, *(float(np.abs(part).max(initial=0)) for part in first)])
    for name, product in zip([*found.products][1:], others, strict=True):
        for one, other in zip(product, first, strict=True):
            near(one, other, scale, name, program)
    near(found.curvature, inner(first, point.u), 3 * scale, "forward over forward", program)
    deep = is_shown_in_range(program)
    for derived in programs.values():
        (verify_deeply if deep else verify)(derived)


def wild_programs_agree(seed: int) -> bool:
    case = wild_case(seed)
    try:
        agree(case.program, case.inputs)
    except DifferentiationError as error:
        # What is overwritten cannot be told where data decide: the message says so.
        if "points that depend on data share a cell" not in str(error):
            raise
        return False
    return True


def written_programs_agree(seed: int) -> bool:
    case = differentiable(seed)
    if case is None or not any(array.dtype.kind == "f" for array in case.arrays.values()):
        return False
    arrays = list(case.arrays.values())
    program = loaded(case.source).program(*arrays)
    agree(program, arrays)
    with np.errstate(all="ignore"):
        differences_agree(program, arrays)
    return True


def differences_agree(program: Program, arrays: list[np.ndarray]) -> None:
    names = [t.name for t, array in zip(program.inputs, arrays, strict=True) if array.dtype.kind == "f"]
    try:
        check_program_tangent(program, arrays, names)
    except DerivativeMismatchError:
        # Two values may lie so close together that the differences step over a kink: not at a second place, too.
        rng = np.random.default_rng(5)
        moved = [array + rng.uniform(0.01, 0.1, array.shape) if array.dtype.kind == "f" else array for array in arrays]
        check_program_tangent(program, moved, names)


@pytest.mark.parametrize("batch", seeds(2, 4))
def test_random_programs(batch: int) -> None:
    assert sum(wild_programs_agree(seed) for seed in range(8 * batch, 8 * batch + 8)) > 4


@pytest.mark.parametrize("batch", few(range(4), {"2", "3"}))
def test_random_functions(batch: int) -> None:
    assert sum(written_programs_agree(seed) for seed in range(50_000 + 15 * batch, 50_000 + 15 * batch + 15)) > 2


@pytest.mark.long
@pytest.mark.parametrize("batch", range(10))
def test_more_random_programs(batch: int) -> None:
    for seed in range(1000 + batch, 1000 + PROGRAMS_BY_HAND, 10):
        wild_programs_agree(seed)


@pytest.mark.long
@pytest.mark.parametrize("batch", range(10))
def test_more_random_functions(batch: int) -> None:
    for seed in range(60_000 + batch, 60_000 + PROGRAMS_BY_HAND, 10):
        written_programs_agree(seed)
