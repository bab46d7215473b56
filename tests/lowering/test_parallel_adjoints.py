"""Adjoints run in parallel without atomics: loops over cells; additions are scattered only where indices are data."""

from __future__ import annotations

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tcdsl.autodiff import adjoint
from tcdsl.ir.dtypes import is_floating
from tcdsl.ir.expressions import Constant, index_variables, is_affine_index
from tcdsl.ir.program import Program
from tcdsl.lowering.loopir.loops import Branch, Kernel, LocalBuffer, Loop, Nest, Update
from tcdsl.lowering.loopir.traversal import walk_nodes
from tcdsl.lowering.lower import lower
from tests.long_variants import every
from tests.programs.table import PROGRAMS, CharacteristicProgram, arguments_of

RNG = np.random.default_rng(1)


@op
def grouped_convolution(I, K):
    O[n, g, c, x] += I[n, g, d, x + k] * K[g, c, d, k]
    return O


@op
def strided_dilated_convolution(I, K):
    O[n, c, x, y] += I[n, d, 2 * x + 3 * p, y + 2 * q] * K[c, d, p, q], p < 2, q < 3
    return O


@op
def depthwise_strided_convolution(I, K):
    O[n, c, x, y] += I[n, c, 2 * x + p, 2 * y + q] * K[c, p, q], p < 3, q < 3
    return O


@op
def mean_pool(I):
    O[n, x, y] = sum(I[n, 2 * x + p, 3 * y + q] for p in range(2) for q in range(3)) / 6
    return O


@op
def overlapping_max_pool(I):
    O[n, x] = max(I[n, 2 * x + p] for p in range(3))
    return O


@op
def zero_padded(I):
    N, M = I.shape
    O = output(N + 2, M + 4)
    O[x, y] = get(I[x - 1, y - 2], 0.0)
    return O


@op
def reflected(I):
    N, M = I.shape
    O = output(N + 2, M + 2)
    O[x, y] = I[reflect(x - 1), reflect(y - 1)]
    return O


@op
def wrapped(I):
    N, M = I.shape
    O = output(N, M)
    O[x, y] = I[wrap(x - 1), y] - I[x, wrap(y + 1)]
    return O


SHAPES = {
    grouped_convolution: ((2, 3, 4, 20), (3, 5, 4, 3)),
    strided_dilated_convolution: ((2, 3, 20, 21), (4, 3, 2, 3)),
    depthwise_strided_convolution: ((2, 3, 19, 18), (3, 3, 3)),
    mean_pool: ((2, 9, 13),),
    overlapping_max_pool: ((4, 22),),
    zero_padded: ((12, 13),),
    reflected: ((12, 13),),
    wrapped: ((12, 13),),
}


def staged(function, arrays, options) -> Program:
    return function.staging.entry(function.signature.call(arrays, options))[0].executable.program


def adjoint_of(program: Program) -> Kernel:
    wrt = [tensor.name for tensor in program.inputs if is_floating(tensor.dtype)]
    return lower(adjoint(program, wrt, keep_outputs=False))


def is_parallel(nest: Nest) -> bool:
    return any(isinstance(node, Loop) and node.kind == "parallel" for node in nest.body)


def works_at_the_border(nest: Nest) -> bool:
    """Whether the nest has one loop around another at most, over a side, and nothing else to do in parallel."""

    def depth(nodes) -> int:
        inner = [0]
        for node in nodes:
            match node:
                case Loop(body=body):
                    long = not (isinstance(node.start, Constant) and isinstance(node.stop, Constant))
                    inner.append(depth(body) + long)
                case Branch(body=body, otherwise=otherwise):
                    inner += [depth(body), depth(otherwise)]
                case _:
                    pass
        return max(inner)

    return depth(nest.body) <= 2


def check_plan(made: Kernel) -> None:
    for nest in made.nests:
        assert is_parallel(nest) or works_at_the_border(nest), nest.title


@pytest.mark.parametrize("program", every(2, (row for row in PROGRAMS.values() if row.smooth)), ids=str)
def test_nests_of_adjoints_of_characteristic_programs(program: CharacteristicProgram) -> None:
    arguments = arguments_of(program, program.calls[0], "float32")
    made = adjoint_of(staged(program.function, arguments, program.options))
    check_plan(made)
    scattered = [each for each in made.program.statements if not all(map(is_affine_index, each.target.indices))]
    # Only these read their inputs at positions that are data.
    assert bool(scattered) == (program.name == "gather_rows")


@pytest.mark.parametrize("function", SHAPES, ids=lambda f: f.__name__)
def test_nests_of_adjoints(function) -> None:
    arrays = [RNG.normal(size=shape) for shape in SHAPES[function]]
    made = adjoint_of(staged(function, arrays, {}))
    check_plan(made)
    assert all(is_affine_index(axis) for each in made.program.statements for axis in each.target.indices)


@op
def looked_up(table, ids, w):
    E[i, d] = table[ids[i], d]
    total[()] += E[i, d] * w[i, d]
    return total


def same_for_all_threads(function, *arguments) -> list[np.ndarray]:
    results = []
    for threads in (1, 2, 3):
        with tc.config(threads=threads):
            found = tc.grad(function)(*arguments)
        results.append(found if isinstance(found, tuple) else (found,))
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(one, two)
    return list(results[0])


@pytest.fixture
def many_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    # Small nests stay on one thread otherwise.
    monkeypatch.setattr("tcdsl.targets.cpu.call.launch_plans.SERIAL_WORK", 1)


@pytest.mark.usefixtures("many_threads")
def test_scattered_additions_have_the_same_bits_for_any_number_of_threads() -> None:
    table, ids, w = RNG.normal(size=(50, 33)), RNG.integers(0, 50, 4000), RNG.normal(size=(4000, 33))
    (found,) = same_for_all_threads(looked_up, table, ids, w)
    expected = np.zeros_like(table)
    np.add.at(expected, ids, w)
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.usefixtures("many_threads")
@pytest.mark.parametrize("function", SHAPES, ids=lambda f: f.__name__)
def test_gradients_have_the_same_bits_for_any_number_of_threads(function) -> None:
    arrays = [RNG.normal(size=shape) for shape in SHAPES[function]]

    def loss(*arguments):
        y = function(*arguments)
        return (y * y).sum()

    same_for_all_threads(loss, *arrays)


def test_no_adjoint_of_a_gather_accumulates_into_shared_cells() -> None:
    # In a parallel loop over cells, memory is updated at cells of the loop's own iteration only.
    for function, shapes in SHAPES.items():
        made = adjoint_of(staged(function, [RNG.normal(size=shape) for shape in shapes], {}))
        loops = [
            node for nest in made.nests for node in nest.body if isinstance(node, Loop) and node.kind == "parallel"
        ]
        assert loops
        for loop in loops:
            if loop.variable.startswith("block"):
                continue
            own = {node.name for node in walk_nodes(loop.body) if isinstance(node, LocalBuffer)}
            for update in (node for node in walk_nodes(loop.body) if isinstance(node, Update)):
                assert update.buffer in own or any(loop.variable in index_variables(axis) for axis in update.indices)
