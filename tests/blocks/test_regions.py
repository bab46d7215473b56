"""Regions of reads: those that `tcdsl.blocks` asks isl for, against the cells that change a block, one by one."""

import itertools

import numpy as np
import pytest

from tcdsl import op
from tcdsl.blocks.block_programs import BlockProgram
from tcdsl.blocks.plans import BlockPlan
from tcdsl.blocks.regions import StatementRegions
from tcdsl.ir.interpreter.interpreter import interpret
from tcdsl.ir.sizes.size_binding import bind_sizes
from tcdsl.ir.verifier.verifier import verify


@op
def moving(x):
    y[i] = x[i - 1] + 2 * x[i + 2]
    return y


@op
def strided(x):
    y[i] = x[clamp(3 * i - 2)] + x[clamp(3 * i + 1)], i < (x.shape[0] + 2) // 3
    return y


@op
def padded(x):
    y[i] = get(x[2 * i - 3], 5.0) + 1, i < x.shape[0] // 2
    return y


@op
def flipped(x):
    y[i] = x[x.shape[0] - 1 - i]
    return y


@op
def spread(x):
    y[2 * i + k] += x[i] * (k + 1), k < 3
    return y


@op
def rows(x):
    y[i, j] = x[4 * i + j], j < 4 and i < x.shape[0] // 4
    return y


@op
def running(x):
    y[i] += x[k], k <= i and i < x.shape[0]
    return y


def hull_of_change(f, n, box):
    """The box of the cells of x that change cells of the result in ``box``, found by changing each."""
    before = f.interpret(np.ones(n))[tuple(itertools.starmap(slice, box))]
    found = []
    for cell in range(n):
        x = np.ones(n)
        x[cell] = 1000.0
        if np.any(f.interpret(x)[tuple(itertools.starmap(slice, box))] != before):
            found.append(cell)
    return ((found[0], found[-1] + 1),) if found else None


@pytest.mark.parametrize("f", [moving, strided, padded, flipped, spread, rows, running], ids=lambda f: f.__name__)
def test_regions_are_the_cells_that_change_a_block(f):
    n = 13
    program = f.program(np.ones(n))
    shape = f.interpret(np.ones(n)).shape
    sizes = bind_sizes(program, [(n,)])
    [statement] = program.statements
    regions = StatementRegions(statement, program, sizes)
    ends = [(0, 1, extent // 2, extent - 1, extent) for extent in shape]
    for box in itertools.product(*[[(a, b) for a in each for b in each if a < b] for each in ends]):
        found = regions.of(box) or ()
        boxes = [each for each in found if each is not None]
        hull = ((min(b[0][0] for b in boxes), max(b[0][1] for b in boxes)),) if boxes else None
        assert hull == hull_of_change(f, n, box), box


@op
def turned(x):
    y[i] = x[wrap(i - 2)] - 3 * x[reflect(i + 1)], i < x.shape[0]
    z[i] = y[symmetric(i - 4)] * i, i < x.shape[0]
    return z


def test_each_block_runs_the_same_program():
    x = np.random.default_rng(1).random(11)
    program = turned.program(x)
    plan = BlockPlan(program, bind_sizes(program, [x.shape]), {"x": ((0, 4, 8, 11),)})
    kept = {"x": x}
    for family in plan.families:
        blocks = BlockProgram.of(plan, family)
        verify(blocks.program)
        made = []
        for k, values in enumerate(blocks.values):
            # Beyond the ends, as NumPy pads.
            modes = {"wrap": "wrap", "reflect": "reflect", "symmetric": "symmetric"}
            given = []
            for view in family.views:
                [(low, high)], [end] = view.boxes[k], view.ends
                mode = {} if end is None else {"mode": modes[end.value]}
                given.append(np.pad(kept[view.tensor], 5, **mode)[low + 5 : high + 5])
            given += [np.empty((value, 0), bool) for value in values]
            made.append(interpret(blocks.program, given).outputs[0])
        kept[family.tensor] = np.concatenate(made)
    assert [family.tensor for family in plan.families] == ["y", "z"]
    np.testing.assert_array_equal(kept["z"], turned.interpret(x))
