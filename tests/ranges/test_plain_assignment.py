"""Plain ``=`` writes each cell at most once."""

from __future__ import annotations

import itertools

import pytest

from tcdsl.errors import DslSyntaxError, ShapeError
from tests.ranges.brute_force import agree, bound, domain_points, sizes_of
from tests.ranges.programs import Shapes


def test_a_variable_that_the_target_lacks_names_the_accumulators():
    with pytest.raises(DslSyntaxError, match="`k` is not on the target O") as caught:
        Shapes({"A": 2}).add("O[i] = A[i, k]")
    for accumulator in ("`+=`", "`*=`", "`>>=`", "`<<=`"):
        assert accumulator in str(caught.value)
    with pytest.raises(DslSyntaxError, match="`j`, `k` are not on the target"):
        Shapes({"A": 3}).add("O[i] = A[i, j, k]")


@pytest.mark.parametrize(
    "text",
    [
        "O[i // 2] = A[i]",
        "O[i + j] = A[i] * B[j]",
        "O[i % 3] = A[0] * i, i < 7",
        "O[2*i + j] = A[i] * B[0], j < 3",
        "O[max(i, j)] = A[i] * B[j]",
        "O[i + j, i + j] = A[i] * B[j]",
    ],
)
def test_maps_that_are_never_one_to_one_are_errors_at_once(text):
    with pytest.raises(ShapeError, match="is the same for different points") as caught:
        Shapes({"A": 1, "B": 1}).add(text)
    assert "`+=`" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "O[i] = A[i]",
        "O[j, i] = A[i] * B[j]",
        "O[i, i] = A[i]",
        "O[i + j, j] = A[i] * B[j]",
        "O[i + j, i - j + B_0] = A[i] * B[j]",
        "O[2*i] = A[i]",
        "O[A_0 - 1 - i] = A[i]",
        "O[3*i + j] = A[i], j < 3",
        "O[i // 2, i % 2] = A[i]",
        "O[i // 2] = A[i], i % 2 == 0",
        "O[2*i + (j + 1) // 2] = A[i], j < 1",
    ],
)
def test_maps_that_are_always_one_to_one_need_nothing(text):
    shapes = Shapes({"A": 1, "B": 1})
    shapes.add(text)
    assert not shapes.assertions
    (statement,) = shapes.program().statements
    assert not statement.unique


@pytest.mark.parametrize(
    ("text", "cell", "extents"),
    [
        ("O[i % 4] = A[i]", lambda i, j: i % 4, range(8)),
        ("O[3*i + j] = A[i] * B[j]", lambda i, j: 3 * i + j, range(6)),
        ("O[min(i, 3)] = A[i]", lambda i, j: min(i, 3), range(8)),
        ("O[i - i // 2] = A[i]", lambda i, j: i - i // 2, range(5)),
        ("O[i + 2*j] = A[i] * B[j]", lambda i, j: i + 2 * j, range(5)),
    ],
)
def test_maps_that_depend_on_sizes_are_checked_at_the_call(text, cell, extents):
    shapes = Shapes({"A": 1, "B": 1})
    shapes.add(text)
    (statement,) = shapes.program().statements
    assert shapes.assertions
    for sizes in sizes_of(shapes, extents):
        box = itertools.product(range(sizes["A_0"]), range(sizes["B_0"]) if "B[j]" in text else range(1))
        cells = [cell(i, j) for i, j in box]
        if len(set(cells)) == len(cells):
            assert len(domain_points(statement, bound(shapes.program(), sizes))) == len(cells)
        else:
            with pytest.raises(ShapeError, match="writes each cell once"):
                bound(shapes.program(), sizes)


def test_maps_that_depend_on_data_need_a_promise():
    dtypes = {"ids": "int64"}
    ranks = {"O": 1, "A": 1, "ids": 1}
    with pytest.raises(ShapeError, match="depends on data") as caught:
        Shapes(ranks, dtypes).add("O[ids[i]] = A[i]", keep="O")
    assert "unique=True" in str(caught.value)
    shapes = Shapes(ranks, dtypes)
    shapes.add("O[ids[i]] = A[i]", keep="O", unique=True)
    (statement,) = shapes.program().statements
    assert statement.unique


@pytest.mark.parametrize("target", ["O[i, ids[i]]", "O[ids[i], i]"])
def test_data_beside_an_index_that_tells_points_apart_is_fine(target):
    shapes = Shapes({"O": 2, "A": 1, "ids": 1}, {"ids": "int64"})
    shapes.add(f"{target} = A[i]", keep="O")
    (statement,) = shapes.program().statements
    assert not statement.unique


def test_a_promise_that_needs_no_check_makes_none():
    shapes = Shapes({"A": 1})
    shapes.add("O[2*i] = A[i]", unique=True)
    assert not shapes.program().statements[0].unique
    shapes = Shapes({"A": 1})
    shapes.add("O[i // 2] = A[i]", unique=True)
    assert shapes.program().statements[0].unique


def test_filters_that_make_a_map_one_to_one_by_data_need_a_promise():
    with pytest.raises(ShapeError, match="depends on data"):
        Shapes({"A": 1}).add("O[i // 2] = A[i], A[i] > 0.0")


def test_a_store_on_a_declared_target():
    shapes = Shapes({"A": 1})
    shapes.add("O[i + 1] = A[i]", extents=["A_0 + 2"])
    agree(shapes, lambda A_0: (A_0 + 2,), lambda i, A_0: 0 <= i < A_0)


def test_points_are_those_of_the_sizes_that_pass():
    shapes = Shapes({"A": 2, "P": 1})
    shapes.add("C[i*P_0 + p] = A[i, p]")
    program = shapes.program()
    for sizes in sizes_of(shapes, (0, 1, 2, 3)):
        places = itertools.product(range(sizes["A_0"]), range(sizes["A_1"]))
        cells = [i * sizes["P_0"] + p for i, p in places]
        if len(set(cells)) == len(cells):
            every = bound(program, sizes)
            assert len(domain_points(program.statements[0], every)) == len(cells)
        else:
            with pytest.raises(ShapeError, match="meets cells again"):
                bound(program, sizes)


def test_lower_parts_that_are_too_long_by_one_meet_the_next():
    for part, fits in (("p < A_1", True), ("1 <= p, p <= A_1", True), ("p <= A_1", False)):
        shapes = Shapes({"A": 2, "O": 1})
        shapes.add(f"O[i*A_1 + p + 1] = A[i, 0] * 2, i < A_0, {part}", keep="O")
        program = shapes.program()
        for rows, columns in itertools.product((2, 3), (1, 2, 4)):
            sizes = {"A_0": rows, "A_1": columns, "O_0": rows * columns + 2}
            if fits:
                assert len(domain_points(program.statements[0], bound(program, sizes))) == rows * columns
            else:
                with pytest.raises(ShapeError, match="meets cells again"):
                    bound(program, sizes)


@pytest.mark.parametrize(
    "target", ["C[i*S_0 + p*D_0]", "C[(i + 2*p) % S_0]", "C[i // S_0, p]", "C[i + P[0], p % D_0]", "C[i*p]"]
)
def test_what_sets_cannot_say_of_sizes_is_looked_at_in_the_call(target):
    ranks = {"A": 2, "S": 1, "D": 1, "P": 1, "C": 2 if ", " in target else 1}
    shapes = Shapes(ranks, {"P": "int64"})
    shapes.add(f"{target} = A[i, p]", keep="C")
    assert shapes.program().statements[0].unique


@pytest.mark.parametrize("target", ["C[(i + 2) % S_0, i]", "C[i // S_0, i]"])
def test_what_other_indices_tell_apart_is_not(target):
    shapes = Shapes({"A": 1, "S": 1, "C": 2})
    shapes.add(f"{target} = A[i]", keep="C")
    assert not shapes.program().statements[0].unique
