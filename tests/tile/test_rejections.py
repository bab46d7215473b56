"""What is no program: each with what its message says, on arrays under `op` and on tensors outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op, tile
from tcdsl.tile import *

M = np.arange(6.0).reshape(2, 3)
V = np.arange(3.0)


def rank_of_output(I):
    X, Y = TensorDims(2)
    x, y = TensorIndexes(2)
    I.bind_dims(X, Y)
    Sum = TensorOutput()
    Sum[y] += I[x, y]
    return Sum / X


def unbound_size(I):
    X = TensorDim()
    x = TensorIndex()
    O = TensorOutput(X)
    O[x] += I[x, 0]
    return O


def unbound_size_in_an_index(I):
    X = TensorDim()
    x = TensorIndex()
    O = TensorOutput(3)
    O[x] += I[0, x + X]
    return O


def unbound_size_in_arithmetic(I):
    X = TensorDim()
    return I / X


def no_statement(I):
    O = TensorOutput(3)
    return O


def used_without_a_statement(I):
    O = TensorOutput(3)
    return (O + 1).sum()


def default_of_another_size(I):
    i = TensorIndex()
    O = TensorOutput(2)
    O[i] += I[i, 0]
    O.use_default(I[0])
    return O


def default_of_another_rank(I):
    i = TensorIndex()
    O = TensorOutput(5)
    O[i] += I[i, 0]
    O.use_default(I)
    return O


def two_defaults(I):
    i = TensorIndex()
    O = TensorOutput(3)
    O[i] += I[i, 0]
    O.use_default(I[0])
    O.use_default(I[1])
    return O


def product_of_indices(I):
    i, j = TensorIndexes(2)
    O = TensorOutput(3)
    O[i] += I[i * j, j]
    return O


def float_in_an_index(I):
    i, j = TensorIndexes(2)
    O = TensorOutput(3)
    O[i] += I[i + 0.5, j]
    return O


def float_as_an_index(I):
    j = TensorIndex()
    O = TensorOutput(3)
    O[j] += I[1.0, j]
    return O


def true_division(I):
    i, j = TensorIndexes(2)
    O = TensorOutput(3)
    O[i] += I[i / 2, j]
    return O


def division_by_zero(I):
    i = TensorIndex()
    O = TensorOutput(3)
    O[i] += I[i // 0, 0]
    return O


def remainder(I):
    i = TensorIndex()
    O = TensorOutput(3)
    O[i] += I[i % 2, 0]
    return O


def float_as_a_size(I):
    i, j = TensorIndexes(2)
    N, K = TensorDims(2)
    I.bind_dims(N, K)
    O = TensorOutput(K / 2)
    O[i] += I[i, j]
    return O


def negative_size(I):
    i = TensorIndex()
    N, K = TensorDims(2)
    I.bind_dims(N, K)
    O = TensorOutput(N - K)
    O[i] += I[i, 0]
    return O


def no_square(I):
    K = TensorDim()
    I.bind_dims(K, K)
    return I


def another_size(I):
    I.bind_dims(2, 4)
    return I


def too_few_sizes(I):
    K = TensorDim()
    I.bind_dims(K)
    return I


def text_as_a_size(I):
    N = TensorDim()
    I.bind_dims(N, "K")
    return I


def too_few_indices(I):
    i = TensorIndex()
    O = TensorOutput(3)
    O[i] += I[i]
    return O


def nothing_bounds(I):
    i, j, k = TensorIndexes(3)
    O = TensorOutput(3)
    O[i] += I[i, j - k]
    return O


def only_in_a_constraint(I):
    i, j, k = TensorIndexes(3)
    O = TensorOutput(3)
    O[i] += I[j, 0]
    O.add_constraint(k < 3)
    return O


def two_statements(I):
    i, j = TensorIndexes(2)
    O = TensorOutput(3)
    O[j] += I[i, j]
    O[j] += I[i, j]
    return O


def index_in_a_bound(I):
    i, j = TensorIndexes(2)
    O = TensorOutput(3)
    O[j] += I[i, j]
    O.add_constraint(i < j)
    return O


def at_most(I):
    i, j = TensorIndexes(2)
    O = TensorOutput(3)
    O[j] += I[i, j]
    O.add_constraint(i <= 1)
    return O


def both_bounds(I):
    i, j = TensorIndexes(2)
    O = TensorOutput(3)
    O[j] += I[i, j]
    O.add_constraint(0 <= i < 1)
    return O


def truth_of_a_constraint(I):
    i, j = TensorIndexes(2)
    O = TensorOutput(3)
    O[j] += I[i, j]
    O.add_constraint(i < 1 and j < 2)
    return O


def no_constraint(I):
    i, j = TensorIndexes(2)
    O = TensorOutput(3)
    O[j] += I[i, j]
    O.add_constraint(True)
    return O


def early_constraint(I):
    i, j = TensorIndexes(2)
    O = TensorOutput(3)
    O.add_constraint(j < 2)
    O[j] += I[i, j]
    return O


def late_constraint(I):
    i, j = TensorIndexes(2)
    O = TensorOutput(3)
    O[j] += I[i, j]
    P = O + 1
    P.dtype  # asks for what the statement gives
    O.add_constraint(j < 2)
    return P


def no_indices(I):
    j = TensorIndex()
    O = TensorOutput(3)
    O[j] += I
    return O


def difference_of_cells(I):
    i, j = TensorIndexes(2)
    O = TensorOutput(3)
    O[j] += I[i, j] - I[i, j]
    return O


def function_of_cells(I):
    i, j = TensorIndexes(2)
    O = TensorOutput(3)
    O[j] += exp(I[i, j])
    return O


def index_as_a_value(I):
    i, j = TensorIndexes(2)
    O = TensorOutput(3)
    O[j] += I[i, j] * j
    return O


def its_own_cells(I):
    i, j = TensorIndexes(2)
    O = TensorOutput(3)
    O[j] += O[i]
    return O


def no_output(I):
    i, j = TensorIndexes(2)
    I[i, j] >= I[i, j]
    return I


def slice_beside_an_index(I):
    j = TensorIndex()
    O = TensorOutput(3)
    O[j] += I[:, j]
    return O


def tensor_as_an_index(I):
    j = TensorIndex()
    O = TensorOutput(3)
    O[j] += I[I, j]
    return O


def text_as_an_index(I):
    j = TensorIndex()
    O = TensorOutput(3)
    O[j] += I["a", j]
    return O


def no_such_aggregation(I):
    i, j = TensorIndexes(2)
    O = TensorOutput(3)
    O[j] -= I[i, j]
    return O


def written_twice(I):
    i, j = TensorIndexes(2)
    O = TensorOutput(2)
    O[i] = I[i, j]
    return O


def reshaped_to_more(I):
    return reshape(I, (4, 2))


def no_broadcast(I):
    return I + index((4,), 0)


def no_element_type(I):
    return cast(I, "float8")


def no_axis(I):
    return argsort(I, axis=2)


def no_direction(I):
    return argsort(I, direction="ascending")


def axes_of_a_lens(I):
    return I.use(TensorLens("AB", "AC"))


def rank_of_a_lens(I):
    return I.use(TensorLens("ABC", "ACB"))


def gathered_by_floats(I):
    return gather(I, I)


def scattered_from_another_rank(I):
    return scatter(I, np.array([0, 1]), np.ones(2))


def own_default(I):
    i = TensorIndex()
    O = TensorOutput(3)
    O[i] += I[i, 0]
    O.use_default(O)
    return O


def cells_as_a_default(I):
    i = TensorIndex()
    O = TensorOutput(3)
    O[i] += I[i, 0]
    O.use_default(I[i, 0])
    return O


def cells_as_an_array(I):
    i = TensorIndex()
    return np.asarray(I[i, 0])


def indices_without_a_number(I):
    return TensorIndexes("x")


def fewer_sizes_than_none(I):
    return TensorDims(-1)


CASES: tuple[tuple[Callable[..., Any], type[Exception], str], ...] = (
    (rank_of_output, tc.ShapeError, "1 index on `Sum`, which TensorOutput() has made of rank 0"),
    (unbound_size, tc.DslSyntaxError, "`X` is used before it is bound to a size"),
    (unbound_size_in_an_index, tc.DslSyntaxError, "`X` is used before it is bound to a size"),
    (unbound_size_in_arithmetic, tc.DslSyntaxError, "`X` is used before it is bound to a size"),
    (no_statement, tc.DslSyntaxError, "is used, but no statement writes to it"),
    (used_without_a_statement, tc.DslSyntaxError, "is used, but no statement writes to it"),
    (default_of_another_size, tc.ShapeError, "on axis 0, not 2"),
    (default_of_another_rank, tc.ShapeError, "the default of `O` has rank 2, not 1"),
    (two_defaults, tc.DslSyntaxError, "an output with two defaults"),
    (product_of_indices, tc.DslSyntaxError, "the product of two indices"),
    (float_in_an_index, tc.DtypeError, "a float as an index"),
    (float_as_an_index, tc.DtypeError, "a float as an index"),
    (true_division, tc.DslSyntaxError, "`/` of an index"),
    (division_by_zero, tc.DslSyntaxError, "an index is divided by 0"),
    (remainder, tc.DslSyntaxError, "`%` of an index"),
    (float_as_a_size, tc.DslSyntaxError, "a float as a size of a TensorOutput"),
    (negative_size, tc.ShapeError, ""),
    (no_square, tc.ShapeError, "to which `K` is bound"),
    (another_size, tc.ShapeError, "axis 1 of `I`"),
    (too_few_sizes, tc.ShapeError, "`I` has rank 2, but 1 size"),
    (text_as_a_size, tc.DslSyntaxError, "a str as a size"),
    (too_few_indices, tc.ShapeError, "which has rank 2"),
    (nothing_bounds, tc.ShapeError, "add a constraint: `O.add_constraint(j < n)`"),
    (only_in_a_constraint, tc.DslSyntaxError, "the index `k` occurs only in a constraint"),
    (two_statements, tc.DslSyntaxError, "a second statement on `O`"),
    (index_in_a_bound, tc.DslSyntaxError, "put all indices on the left: `i - k < N`"),
    (at_most, tc.DslSyntaxError, "a constraint is written with `<`, not with `<=`"),
    (both_bounds, tc.DslSyntaxError, "`i < n` means 0 <= i < n"),
    (truth_of_a_constraint, tc.DslSyntaxError, "a constraint has no truth value"),
    (no_constraint, tc.DslSyntaxError, "a bool as a constraint"),
    (early_constraint, tc.DslSyntaxError, "`add_constraint` of `O`, which has no statement yet"),
    (late_constraint, tc.DslSyntaxError, "`add_constraint` of `O`, whose cells have been used already"),
    (no_indices, tc.DslSyntaxError, "stands in a statement without indices"),
    (difference_of_cells, tc.DslSyntaxError, "`-` of cells in a statement"),
    (function_of_cells, tc.DslSyntaxError, "`exp` of cells in a statement"),
    (index_as_a_value, tc.DslSyntaxError, "`index(dims, axis)` is the tensor"),
    (its_own_cells, tc.DslSyntaxError, "`O` is read by its own statement"),
    (no_output, tc.DslSyntaxError, "`>=` writes to a tensor that is no TensorOutput"),
    (slice_beside_an_index, tc.DslSyntaxError, "a slice beside an index"),
    (tensor_as_an_index, tc.DslSyntaxError, "positions that are data go to `gather(x, y)`"),
    (text_as_an_index, tc.DslSyntaxError, "a str as an index"),
    (no_such_aggregation, tc.DslSyntaxError, "`+=` (sum), `*=` (product), `>=` (max), `<=` (min) or `=`"),
    (own_default, tc.DslSyntaxError, "`O` is its own default"),
    (cells_as_a_default, tc.DslSyntaxError, "as a default"),
    (cells_as_an_array, tc.DslSyntaxError, "cells of a statement as an array"),
    (indices_without_a_number, tc.DslSyntaxError, "TensorIndexes of a str"),
    (fewer_sizes_than_none, tc.DslSyntaxError, "TensorDims of -1"),
    (written_twice, tc.ShapeError, "`=` writes each cell once, but O[i] is the same for different points"),
    (reshaped_to_more, tc.ShapeError, "reshape of"),
    (no_broadcast, tc.ShapeError, "broadcast"),
    (no_element_type, tc.DtypeError, "'float8' is no element type"),
    (no_axis, tc.ShapeError, "argsort along axis 2 of a tensor of rank 2"),
    (no_direction, tc.DslSyntaxError, "write SortDirection.ASC or SortDirection.DESC"),
    (axes_of_a_lens, tc.DslSyntaxError, "both name the same axes"),
    (rank_of_a_lens, tc.ShapeError, "a lens for 'ABC' on a tensor of rank 2"),
    (gathered_by_floats, tc.DtypeError, "an index array of type float64"),
    (scattered_from_another_rank, tc.ShapeError, "scatter of a tensor of rank 1, where rank 2 is wanted"),
)
NAMES = [function.__name__ for function, *_ in CASES]


def assert_rejected(case: tuple[Callable[..., Any], type[Exception], str], call: Callable[[], object]) -> None:
    function, kind, said = case
    with pytest.raises(kind) as caught:
        call()
    message = str(caught.value)
    assert said in message
    # At a line of the program itself.
    first, last = function.__code__.co_firstlineno, max(line or 0 for *_, line in function.__code__.co_lines())
    lines = {span.line for each in caught.value.diagnostics if (span := each.span) is not None}
    assert lines
    assert all(first < line <= last for line in lines), message


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_rejected_on_arrays(case: tuple[Callable[..., Any], type[Exception], str]) -> None:
    assert_rejected(case, lambda: op(case[0])(M))


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_rejected_on_tensors(case: tuple[Callable[..., Any], type[Exception], str]) -> None:
    assert_rejected(case, lambda: np.asarray(case[0](tile.Tensor(M))))


def test_arrays_have_no_dimensions_to_bind() -> None:
    with pytest.raises(AttributeError, match="bind_dims"):
        no_square(M)


def divided_by_a_size(I):
    N, M = TensorDims(2)
    i = TensorIndex()
    I.bind_dims(N, M)
    O = TensorOutput(3)
    O[i] += I[i // N, 0]
    return O


def test_an_index_divided_by_a_size_of_the_program() -> None:
    assert_rejected(
        (divided_by_a_size, tc.DslSyntaxError, "an index is divided by a size"), lambda: op(divided_by_a_size)(M)
    )


def size_divided_by_zero(I):
    N, M = TensorDims(2)
    i = TensorIndex()
    I.bind_dims(N, M)
    O = TensorOutput(M // (N - 2))
    O[i] += I[0, i]
    return O


def test_a_size_divided_by_zero() -> None:
    assert_rejected(
        (size_divided_by_zero, tc.ShapeError, "a size is divided by 0"), lambda: size_divided_by_zero(tile.Tensor(M))
    )
    with pytest.raises(tc.ShapeError, match="divides by zero"):
        op(size_divided_by_zero)(M)


def test_a_default_made_from_its_output() -> None:
    i = TensorIndex()
    O = TensorOutput(3)
    O[i] += tile.Tensor(V)[i]
    with pytest.raises(tc.DslSyntaxError, match="`O` is its own default"):
        O.use_default(O + 1)


def test_lists_of_indices_are_continued() -> None:
    i = TensorIndexes(2)
    O = TensorOutput(2, 1)
    first = [0]
    O[i[:-1] + first] += tile.Tensor(M)[i]
    np.testing.assert_array_equal(np.asarray(O), M.sum(axis=1, keepdims=True))
