"""Points counted from the bounds of loops against points that an instrumented kernel counts while it runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tcdsl import cd
from tcdsl.autodiff import adjoint
from tcdsl.ir.build import integer
from tcdsl.ir.program import Program
from tcdsl.ir.sizes.size_binding import bind_sizes, evaluate_size
from tcdsl.lowering.loopir.loops import Accumulate, Branch, Buffer, Kernel, Loop, Nest, Node, Store, Update
from tcdsl.lowering.loopir.point_counts import executed_points
from tcdsl.lowering.lower import lower
from tests.long_variants import every
from tests.lowering.loop_interpreter import execute
from tests.programs.table import PROGRAMS, CharacteristicProgram, arguments_of

TALLY = Update("tally", (), "add", integer(1))


def instrumented(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """The same nodes, with one more update after each store and accumulation."""
    out: list[Node] = []
    for node in nodes:
        match node:
            case Loop():
                out.append(replace(node, body=instrumented(node.body)))
            case Branch():
                out.append(replace(node, body=instrumented(node.body), otherwise=instrumented(node.otherwise)))
            case Store() | Update() | Accumulate():
                out += [node, TALLY]
            case _:
                out.append(node)
    return tuple(out)


def points_run(kernel: Kernel, arrays: list[np.ndarray]) -> int:
    """What a counter inside the kernel shows after running it."""
    buffer = Buffer("tally", "int64", (), "output", ())
    clear = Nest("clear", "", (Store("tally", (), integer(0)),), integer(1))
    kernel = kernel.with_nests(replace(nest, code=instrumented(nest.body)) for nest in kernel.nests)
    buffers, outputs = (*kernel.buffers, buffer), (*kernel.outputs, "tally")
    kernel = replace(kernel, body=(clear, *kernel.body), buffers=buffers, outputs=outputs)
    return int(execute(kernel, arrays).outputs[-1])


def agree(program: Program, arrays: list[np.ndarray]) -> None:
    sizes = bind_sizes(program, [array.shape for array in arrays])
    for optimize in (True, False):
        kernel = lower(program, optimize=optimize)
        assert executed_points(kernel, kernel_sizes(kernel, arrays)) == points_run(kernel, arrays), sizes


def kernel_sizes(kernel: Kernel, arrays: list[np.ndarray]) -> dict[str, int]:
    return bind_sizes(kernel.program, [array.shape for array in arrays])


# Reductions that look for a maximum test data: their points count as executed, whatever the test says.
ON_DATA = {"argmax_rows"}


@pytest.mark.parametrize("program", every(2, (p for p in PROGRAMS.values() if p.name not in ON_DATA)), ids=str)
def test_points_of_characteristic_programs(program: CharacteristicProgram) -> None:
    for call in program.calls:
        arrays = arguments_of(program, call, "float64")
        agree(program.function.program(*arrays, **program.options), arrays)


@pytest.mark.parametrize("name", ["matmul", "padded_convolution", "strided_convolution_2d", "blur_reflect", "diagonal"])
def test_points_of_adjoints(name: str) -> None:
    program = PROGRAMS[name]
    for call in program.calls[:2]:
        arrays = arguments_of(program, call, "float64")
        staged = program.function.program(*arrays, **program.options)
        derivative = adjoint(staged, [tensor.name for tensor in staged.inputs])
        sizes = bind_sizes(staged, [array.shape for array in arrays])
        (output,) = (staged.tensor(output) for output in staged.outputs)
        seed = np.ones(tuple(evaluate_size(extent, sizes) for extent in output.shape))
        agree(derivative, [*arrays, seed])


def test_zeros_count() -> None:
    # Cells that a sum begins with and cells that nothing writes are stored as well.
    program = PROGRAMS["matmul"].function.program(np.ones((2, 2)), np.ones((2, 2)))
    sizes = bind_sizes(program, [(3, 4), (4, 5)])
    assert executed_points(lower(program), sizes) == 15 + 60
    program = PROGRAMS["skipping"].function.program(np.ones((2, 2)))
    assert executed_points(lower(program), bind_sizes(program, [(6, 4)])) >= 6 + 3 * 4


@cd
def upper_rows(A: real[N, M], x: real[M]):
    A[i, j] += x[j], i < 2


def test_cells_that_memory_holds_are_left_alone() -> None:
    program = upper_rows.program(np.ones((50, 4)), np.ones(4))
    assert "parallel for i in 0 .. min(2, N):" in upper_rows.explain("loops", np.ones((50, 4)), np.ones(4))
    for rows in (50, 2, 1, 0):
        A, x = np.ones((rows, 4)), np.arange(4.0)
        agree(program, [A, x])
        kernel = lower(program)
        assert executed_points(kernel, kernel_sizes(kernel, [A, x])) == 4 * min(rows, 2)
        upper_rows(A, x)
        np.testing.assert_array_equal(A[:, 3], [4, 4, *[1] * 48][:rows])
