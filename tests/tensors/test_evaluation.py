"""Values that are asked for again: computed anew where data has changed, by the program of the first time."""

from __future__ import annotations

import numpy as np

import tcdsl as tc
from tcdsl.tensors.graphs.node_operations import Operation


def test_a_value_is_staged_once_and_computed_where_data_has_changed():
    staged = []

    def doubled(session, arguments):
        staged.append(session)
        from tcdsl.frontend.symbolic_operators import WholeArrays

        return WholeArrays().combine("mul", 2.0, arguments[0])

    from tcdsl.tensors.graphs.graph_operators import apply_operation

    x = tc.tensor(np.array([1.0, 2.0]), label="x")
    y = apply_operation(Operation("doubled", doubled), [x])
    assert y.value.tolist() == [2.0, 4.0]
    x.value = np.array([3.0, 4.0])
    assert y.value.tolist() == [6.0, 8.0]
    x.value = np.array([5.0, 6.0])
    assert y.value.tolist() == [10.0, 12.0]
    assert len(staged) == 1


def test_a_view_of_the_value_is_the_memory():
    x = tc.tensor(np.array([1.0]))
    y = x + 1
    kept = y.value
    x.value = np.array([2.0])
    assert kept.tolist() == [2.0]
    assert y.value.tolist() == kept.tolist() == [3.0]
