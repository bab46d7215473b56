"""Programs of graphs carry the names that the user gave."""

from __future__ import annotations

import numpy as np

import tcdsl as tc
from tcdsl import op


@op
def layer(x):
    hidden = tanh("w" @ x + "b"[3])
    doubled = 2 * hidden
    return doubled + hidden


def test_names_in_an_op_are_names_in_the_program():
    x = tc.tensor(np.ones(2), label="x")
    program = tc.compile(layer(x)).program
    names = [each.name for each in program.tensors]
    assert [name for name in names if name in ("hidden", "doubled", "layer_x")] == ["hidden", "doubled", "layer_x"]
    assert [each.name for each in program.inputs] == ["w", "x", "b"]
    assert program.outputs == ("layer_x",)


def test_reductions_have_the_names_of_their_methods():
    x = tc.tensor(np.ones((2, 3)), label="x")
    assert [each.label for each in (x.sum(), x.prod(axis=0), x.max(), x.mean())] == ["sum", "prod", "max", "mean"]
