"""Programs with sparse parts: their gradients cost what they do themselves, up to a constant, however large they are.

The other way of computing them, by way of mostly zeros, would cost N times as much. Operations and points are counted;
`python -m benchmarks.sparse` measures times.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from benchmarks.sparse import programs
from tcdsl.autodiff import adjoint, gradient, tangent
from tcdsl.autodiff.cost import count_operations
from tcdsl.ir.program import Program
from tcdsl.ir.sizes.size_binding import bind_sizes
from tcdsl.lowering.loop_passes.liveness import peak_bytes
from tcdsl.lowering.loopir.loops import Kernel
from tcdsl.lowering.loopir.point_counts import executed_points
from tcdsl.lowering.lower import lower
from tcdsl.simplification import without_sparse_tensors

ROOT = Path(__file__).parent.parent.parent
SIZES = (100, 1_000, 10_000)


def vector(size: int) -> np.ndarray:
    return np.random.default_rng(size).uniform(0.5, 1.5, size)


@dataclass(frozen=True, eq=False)
class Row:
    """A program, its arguments for a size, and how many points its gradient may execute for each element."""

    function: Any
    arguments: Callable[[int], tuple[Any, ...]]
    points: int
    argnums: int = 0
    configuration: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.function.__name__}-{self.argnums}"


@cache
def with_gradient(row: Row) -> tuple[tuple[Program, Kernel], ...]:
    """The program and its gradient, each with its loops; they serve every size."""
    program = row.function.program(*row.arguments(SIZES[0]), **row.configuration)
    derived = gradient(program, [program.inputs[row.argnums].name], keep_outputs=False)
    return tuple((made, lower(without_sparse_tensors(made))) for made in (program, derived))


def signals(size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return vector(size), vector(5), vector(size + 1)[:-1]


def batches(size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return vector(3 * size).reshape(3, size), vector(5), vector(3 * size).reshape(3, size) + 1


TABLE = (
    Row(programs.traces, lambda n: (vector(n),), 1, configuration={"count": 10}),
    Row(programs.row_times_column, lambda n: (vector(n),), 1),
    Row(programs.trace_of_identity, lambda n: (np.asarray(2.0), vector(n)), 1),
    Row(programs.all_cells_but_one, lambda n: (vector(n),), 2),
    Row(programs.deconvolution, signals, 14),
    Row(programs.deconvolution, signals, 14, argnums=1),
    Row(programs.batched_deconvolution, batches, 42),
    Row(programs.batched_deconvolution, batches, 42, argnums=1),
)


@pytest.mark.parametrize("row", TABLE, ids=str)
@pytest.mark.parametrize("size", SIZES)
def test_operations_points_and_bytes(row: Row, size: int) -> None:
    arguments = row.arguments(size)
    cost, derived_cost = (count_operations(made, arguments).plain for made, _ in with_gradient(row))
    elements = sum(np.size(argument) for argument in arguments) + 1
    assert derived_cost <= 4 * (cost + elements)
    for _, kernel in with_gradient(row):
        sizes = bind_sizes(kernel.program, [np.shape(argument) for argument in arguments])
        assert executed_points(kernel, sizes) <= row.points * size + 200
        memory = peak_bytes(kernel, sizes)
        assert memory.outputs + memory.temporaries <= 8 * 3 * elements + 1024


def test_no_additions_where_cells_are_chosen() -> None:
    program = programs.chosen_cells.program(vector(6), count=4)
    derived = adjoint(program, ["x"], keep_outputs=False)
    counted = count_operations(derived, [vector(9), np.asarray(3.0)])
    assert counted.plain == 0
    np.testing.assert_array_equal(tc.grad(programs.chosen_cells)(vector(6), count=4), [1, 0, 1, 1, 1, 0])
    derived = adjoint(programs.all_cells_but_one.program(vector(6)), ["x"], keep_outputs=False)
    assert count_operations(derived, [vector(9), np.asarray(3.0)]).plain == 0
    np.testing.assert_array_equal(tc.grad(programs.all_cells_but_one)(vector(5)), [1, 0, 1, 1, 1])


def test_one_multiplication_for_dead_copies() -> None:
    program = programs.dead_copies.program(np.asarray(1.0), count=50)
    counted = count_operations(adjoint(program, ["x"], keep_outputs=False), [np.asarray(1.0), np.asarray(3.0)])
    assert (counted.multiplications, counted.plain) == (1, 1)


def test_the_gradient_of_a_row_times_a_column() -> None:
    np.testing.assert_array_equal(tc.grad(programs.row_times_column)(np.array([3.0, 4.0, 5.0])), [6, 0, 0])


def test_a_convolution_by_hand() -> None:
    x, c = np.arange(1.0, 7.0), np.array([1.0, 2.0, 3.0])
    found, pullback = tc.vjp(programs.convolution, x, c)
    np.testing.assert_array_equal(found, [1, 4, 10, 16, 22, 28])
    dx, dc = pullback(np.arange(1.0, 7.0))
    np.testing.assert_array_equal(dx, [14, 20, 26, 32, 17, 6])
    np.testing.assert_array_equal(dc, [91, 70, 50])


@pytest.mark.filterwarnings("ignore:(.|\n)*a loop of 299 rounds is unrolled")
@pytest.mark.parametrize("count", [10, 100, pytest.param(300, marks=pytest.mark.long)])
def test_products_through_names_take_linear_work(count: int) -> None:
    program = programs.product_of_cells.program(vector(count), count=count)
    for derived in (gradient(program, ["x"]), tangent(gradient(program, ["x"], keep_outputs=False), ["x"])):
        inputs = [vector(count) for _ in derived.inputs]
        assert count_operations(derived, inputs).plain <= 12 * count
        assert len(derived.statements) <= 6 * count
    if count > 30:
        return  # the same numbers, but a long compilation
    x = np.random.default_rng(count).uniform(0.9, 1.1, count)
    wanted = np.prod(x) / x
    np.testing.assert_allclose(tc.grad(programs.product_of_cells)(x, count=count), wanted, rtol=1e-12)


def calls_of(function: Callable[[], Any]) -> int:
    """How many Python functions are called: a clock that stands still while others work."""
    count = 0

    def profile(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    gc.disable()
    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


LONG = ("chosen_cells", "product_of_cells", "traces", "dead_copies")


def calls_for(name: str, count: int) -> int:
    """The calls from staging to loops, for a function that Python unrolls ``count`` times, and its derivatives."""
    function = getattr(programs, name)
    x = np.asarray(1.0) if name == "dead_copies" else vector(500)

    def run(count: int) -> None:
        program = function.program(x, count=count)
        derived = gradient(program, ["x"], keep_outputs=False)
        tangent(derived, ["x"], keep_outputs=False)
        lower(derived)

    run(4)
    return calls_of(lambda: run(count))


# One process imports all that is needed, and forks for each count: what others leave in caches would make it smaller.
COUNTING = """
import json, os
from tests.simplification.test_sparse_growth import LONG, calls_for

for name in LONG:
    for count in (30, 90):
        if os.fork() == 0:
            print(json.dumps([name, count, calls_for(name, count)]), flush=True)
            os._exit(0)
        os.wait()
"""


@pytest.fixture(scope="module")
def counted_calls() -> dict[tuple[str, int], int]:
    done = subprocess.run([sys.executable, "-c", COUNTING], capture_output=True, text=True, check=True, cwd=ROOT)
    return {(name, count): calls for name, count, calls in map(json.loads, done.stdout.splitlines())}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("name", LONG)
def test_long_programs_are_differentiated_in_linear_time(name: str, counted_calls: dict[tuple[str, int], int]) -> None:
    """Unrolled by Python: 90 statements take three times as long as 30, from staging to loops."""
    assert counted_calls[name, 90] < 1.35 * 3 * counted_calls[name, 30]
