"""Every hard case: both modes, all compositions of two, two element types; by hand, against peers and differences."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tcdsl.ir.program import Program
from tcdsl.ir.text.parser import parse_program
from tcdsl.ir.text.printer import format_program
from tcdsl.ir.verifier.verifier import verify
from tcdsl.simplification import simplify
from tests.autodiff.hard_cases.cases import HardCase
from tests.autodiff.hard_cases.compositions import (
    Found,
    Point,
    compositions,
    derivatives,
    inner,
    interpreted,
    program_of,
)
from tests.autodiff.hard_cases.peers import PEERS
from tests.autodiff.hard_cases.rows import ROWS
from tests.autodiff.kept_derivatives import kept_adjoint, kept_tangent
from tests.autodiff.program_gradients import check_program_gradient
from tests.autodiff.tangent_checks import check_program_tangent
from tests.range_checks import verify_deeply

# JAX compiles each operation for each shape, which takes a second a row: by default it judges where PyTorch cannot.
COMPARED = [
    pytest.param(row, peer, id=f"{row}-{peer}", marks=pytest.mark.long if len(row.peers) > 1 and peer == "jax" else ())
    for row in ROWS
    if row.oracle is not None
    for peer in row.peers
]
rows = pytest.mark.parametrize("row", ROWS, ids=str)


@cache
def point_of(row: HardCase, dtype: str) -> Point:
    arguments = row.typed(dtype)
    return Point.of(program_of(row.function, arguments), arguments)


@cache
def programs_of(row: HardCase) -> dict[str, Program]:
    point = point_of(row, "float64")
    return compositions(point.program, point.wrt)


@cache
def found(row: HardCase) -> Found:
    return derivatives(point_of(row, "float64"), programs_of(row))


def close(one: np.ndarray, other: np.ndarray, what: str, tolerance: float = 1e-9) -> None:
    scale = max(1.0, float(np.max(np.abs(other[np.isfinite(other)]), initial=0)))
    np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * scale, err_msg=what)


@rows
def test_compositions_agree(row: HardCase) -> None:
    point, result = point_of(row, "float64"), found(row)
    for part, argument in zip(result.reverse, point.v, strict=True):
        assert part.shape == argument.shape
        assert part.dtype == argument.dtype
    close(np.asarray(inner(result.forward, point.dy)), np.asarray(inner(result.reverse, point.v)), "dot product")
    for one, other in zip(result.pushed, result.forward, strict=True):
        close(one, other, "reverse over reverse, by dy")
    if not row.twice:
        return
    first, *others = result.products.values()
    for name, product in zip([*result.products][1:], others, strict=True):
        for one, other in zip(product, first, strict=True):
            close(one, other, name)
    close(np.asarray(result.curvature), np.asarray(inner(first, point.u)), "forward over forward")


@pytest.mark.parametrize("row", [row for row in ROWS if row.slopes is not None], ids=str)
def test_gradients_by_hand(row: HardCase) -> None:
    assert row.slopes is not None
    point = point_of(row, "float64")
    seeds = [np.ones_like(seed) for seed in point.dy]
    pulled = interpreted(programs_of(row)["reverse"], (*point.arguments, *seeds))
    for part, slope in zip(pulled, row.slopes, strict=True):
        np.testing.assert_allclose(part, np.asarray(slope, float), rtol=1e-12)


@pytest.mark.parametrize(("row", "peer"), COMPARED)
def test_derivatives_agree_with_peers(row: HardCase, peer: str) -> None:
    assert row.oracle is not None
    result = found(row)
    wanted = PEERS[peer](row.oracle, point_of(row, "float64"))
    pairs = [(result.reverse, wanted.reverse, "J^T dy"), (result.forward, wanted.forward, "J v")]
    if row.twice:
        pairs.append((result.products["forward over reverse"], wanted.product, "H v"))
    for parts, expected, what in pairs:
        for one, other in zip(parts, expected, strict=True):
            close(one, other, what)


@pytest.mark.parametrize("row", [row for row in ROWS if row.smooth], ids=str)
def test_derivatives_agree_with_differences(row: HardCase) -> None:
    point = point_of(row, "float64")
    check_program_gradient(point.program, point.arguments, point.wrt, order=2)
    check_program_tangent(point.program, point.arguments, point.wrt)


def single_precision(program: Program, wrt: tuple[str, ...]) -> tuple[Program, Program, Program]:
    reverse = kept_adjoint(program, wrt)
    return reverse, kept_tangent(program, wrt), kept_tangent(reverse, wrt)


@pytest.mark.long
@rows
def test_derivatives_of_single_precision(row: HardCase) -> None:
    point, double = point_of(row, "float32"), point_of(row, "float64")
    reverse, forward, twice = single_precision(point.program, point.wrt)
    calls = {"reverse": (reverse, point.dy), "forward": (forward, point.v)}
    if row.twice:
        calls["forward over reverse"] = (twice, (*point.dy, *point.v))
    for name, (program, given) in calls.items():
        values = interpreted(program, (*point.arguments, *given))
        wanted = interpreted(programs_of(row)[name], (*double.arguments, *(a.astype(float) for a in given)))
        for one, other, output in zip(values, wanted, program.outputs, strict=True):
            assert one.dtype == program.tensor(output).dtype
            close(one, other, name, 2e-6)
    for part, name in zip(reverse.outputs, point.wrt, strict=True):
        assert reverse.tensor(part).dtype == point.program.tensor(name).dtype


@pytest.mark.parametrize("row", {row.function: row for row in ROWS}.values(), ids=str)
def test_derivatives_are_programs(row: HardCase) -> None:
    for name, derived in programs_of(row).items():
        (verify if row.broadcast else verify_deeply)(derived)
        assert simplify(derived) == derived, name
        assert parse_program(format_program(derived)) == derived, name
