"""Solved statements visit the same cells with the same values, each cell by one value of its target variables."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter

import numpy as np
import pytest

from tcdsl.ir.build import apply, index, integer, size
from tcdsl.ir.expressions import Boundary, Constant, Expr, IndexValue, Read, SizeValue, children
from tcdsl.ir.primitives import PRIMITIVES
from tcdsl.ir.program import Access, Keep, Neutral, Statement
from tcdsl.polyhedra.linear import linear_form, normalized
from tcdsl.polyhedra.scatter_to_gather import solve, target_variables
from tests.ir.notation import parse_domain

i, j, k = index("i"), index("j"), index("k")


def read(tensor: str, *indices: Expr) -> Read:
    return Read(tensor, indices, (Boundary.SKIP,) * len(indices), "float64")


def statement(target: tuple[Expr, ...], domain: str, value: Expr, accumulate: str = "add") -> Statement:
    return Statement(Access("T", target), accumulate, Neutral(), value, parse_domain(domain))


def evaluate(expr: Expr, names: dict[str, int]) -> object:
    match expr:
        case Constant(value=value):
            return value
        case SizeValue(name=name) | IndexValue(name=name):
            return names[name]
        case Read(tensor=tensor, indices=indices):
            return (tensor, *(evaluate(part, names) for part in indices))
        case _:
            parts = [evaluate(part, names) for part in children(expr)]
            if any(isinstance(part, tuple) for part in parts):
                return (expr.primitive, *parts)
            return int(PRIMITIVES[expr.primitive].evaluate(*(np.int64(part) for part in parts)))


def visits(part: Statement, sizes: dict[str, int]) -> Counter[tuple[object, object]]:
    found: Counter[tuple[object, object]] = Counter()
    for point in part.domain.points(sizes):
        names = {**sizes, **dict(zip(part.domain.variables, point, strict=True))}
        cell = tuple(evaluate(axis, names) for axis in part.target.indices)
        found[cell, evaluate(part.value, names)] += 1
    return found


def cells_of_variables(part: Statement, sizes: dict[str, int]) -> dict[object, set[object]]:
    # For every cell, the values of the target variables that write it.
    writers: dict[object, set[object]] = {}
    for point in part.domain.points(sizes):
        names = {**sizes, **dict(zip(part.domain.variables, point, strict=True))}
        cell = tuple(evaluate(axis, names) for axis in part.target.indices)
        writers.setdefault(cell, set()).add(tuple(names[name] for name in target_variables(part)))
    return writers


def add(*parts: Expr) -> Expr:
    result = parts[0]
    for part in parts[1:]:
        result = apply("add", result, part)
    return result


def times(scale: int, expr: Expr) -> Expr:
    return apply("mul", integer(scale), expr)


def clamped(expr: Expr, extent: Expr) -> Expr:
    return apply("min", apply("max", expr, integer(0)), apply("sub", extent, integer(1)))


PRODUCT = apply("mul", read("A", i), read("B", k))
IK = "[N, K] -> { [i, k] : 0 <= i < N and 0 <= k < K }"
IJK = "[N, K] -> { [i, j, k] : 0 <= i < N and 0 <= j < N and 0 <= k < K }"

CASES = {
    "full correlation": ((add(i, k),), IK, PRODUCT, [(index("z"),)]),
    "strided": ((add(times(2, i), k),), IK, PRODUCT, [(index("z"),)]),
    "dilated": ((add(i, times(3, k)),), IK, PRODUCT, [(index("z"),)]),
    "strided and dilated": ((add(times(2, i), times(3, k)),), IK, PRODUCT, [(index("z"),)]),
    "flipped": ((add(size("N"), apply("neg", i), k),), IK, PRODUCT, [(index("z"),)]),
    "coarse": ((apply("floor_div", i, integer(2)), k), IK, PRODUCT, [(index("z"), k)]),
    "phase": ((apply("mod", i, integer(3)),), IK, PRODUCT, [(index("z"),)]),
    "plain first": ((i, add(i, j, k)), IJK, read("A", i, j, k), [(i, index("z"))]),
    "two sums": ((add(i, j), add(j, k)), IJK, read("A", i, j, k), [(index("z"), index("z1"))]),
    "triangle": (
        (add(i, k),),
        "[N, K] -> { [i, k] : 0 <= i < N and 0 <= k < K and k <= i }",
        PRODUCT,
        [(index("z"),)],
    ),
    "clamped": ((clamped(add(i, integer(-1)), size("N")),), "[N] -> { [i] : 0 <= i < N }", read("A", i), None),
    "clamped window": ((clamped(add(i, k, integer(-1)), size("N")),), IK, PRODUCT, None),
    "two clamped axes": (
        (clamped(add(i, integer(-1)), size("N")), clamped(add(j, integer(1)), size("N"))),
        "[N] -> { [i, j] : 0 <= i < N and 0 <= j < N }",
        read("A", i, j),
        None,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_solved_statements_visit_the_same_points(name: str) -> None:
    target, domain, value, expected = CASES[name]
    original = statement(target, domain, value)
    names = (f"T_{number}" for number in itertools.count(1))
    parts = solve(original, lambda hint: next(names))
    if expected is not None:
        assert [part.target.indices for part in parts] == expected
    assert parts[-1].target.tensor == "T"
    assert isinstance(parts[0].start, Neutral)
    for before, part in itertools.pairwise(parts):
        assert part.start == Keep(before.target.tensor)
    for extent, window in itertools.product((0, 1, 2, 3, 7), (0, 1, 2, 3)):
        sizes = {"N": extent, "K": window}
        found: Counter[tuple[object, object]] = Counter()
        for part in parts:
            found += visits(part, sizes)
            assert all(len(writers) == 1 for writers in cells_of_variables(part, sizes).values())
        assert found == visits(original, sizes)


@pytest.mark.parametrize(
    ("target", "domain", "variables"),
    [
        ((times(2, i),), "[N] -> { [i] : 0 <= i < N }", ("i",)),
        ((i, i), "[N] -> { [i] : 0 <= i < N }", ("i",)),
        ((add(times(2, i), k),), "[N] -> { [i, k] : 0 <= i < N and 0 <= k < 2 }", ("i", "k")),
        ((add(i, j), apply("sub", i, j)), "[N] -> { [i, j] : 0 <= i < N and 0 <= j < N }", ("i", "j")),
        ((i, j), IJK, ("i", "j")),
        ((), IJK, ()),
        ((integer(0),), IJK, ()),
    ],
)
def test_targets_that_determine_their_variables_stay(
    target: tuple[Expr, ...], domain: str, variables: tuple[str, ...]
) -> None:
    original = statement(target, domain, read("A", i))
    assert solve(original, lambda hint: hint) == (original,)
    assert target_variables(original) == variables


P, Q = size("P"), size("Q")
DIGITS = "[N, P, Q] -> {{ [i, j, k] : 0 <= i < N and 0 <= j < {} and 0 <= k < {} }}"


@pytest.mark.parametrize(
    ("target", "domain", "variables"),
    [
        (add(apply("mul", i, P), j), DIGITS.format("P", "Q"), ("i", "j")),
        (add(j, apply("mul", P, i)), DIGITS.format("P", "Q"), ("i", "j")),
        (add(apply("mul", add(apply("mul", i, P), j), Q), k), DIGITS.format("P", "Q"), ("i", "j", "k")),
        (apply("sub", apply("mul", i, P), add(j, integer(1))), DIGITS.format("P", "Q"), ()),
        (add(apply("mul", i, P), j), DIGITS.format("P + 1", "Q"), ()),
        (add(apply("mul", i, P), apply("mul", j, Q)), DIGITS.format("P", "Q"), ()),
        (add(apply("mul", add(i, j), P), k), DIGITS.format("P", "P"), ("k",)),
    ],
)
def test_digits_determine_their_variables(target: Expr, domain: str, variables: tuple[str, ...]) -> None:
    part = statement((target,), domain, read("A", i))
    assert target_variables(part) == variables
    writers = cells_of_variables(part, {"N": 3, "P": 2, "Q": 4})
    assert all(len(values) == 1 for values in writers.values())


def test_stores_and_ordered_accumulators_stay() -> None:
    for accumulate in ("assign", "divide", "power", "relu_gate"):
        original = statement((add(i, k),), IK, PRODUCT, accumulate)
        assert solve(original, lambda hint: hint) == (original,)


def test_unit_coefficients_leave_no_division() -> None:
    (part,) = solve(statement((add(times(2, i), k),), IK, PRODUCT), str)
    assert part.value == apply("mul", read("A", i), read("B", apply("sub", index("z"), times(2, i))))
    assert part.domain.variables == ("z", "i")


def test_windows_of_constant_extent_stay_loops() -> None:
    window = "[N] -> { [k, i] : 0 <= i < N and 0 <= k < 3 }"
    (part,) = solve(statement((add(i, k),), window, PRODUCT), str)
    assert part.domain.variables == ("z", "k")


def test_data_axes_stay_and_the_others_are_solved() -> None:
    data = Read("ids", (j,), (Boundary.SKIP,), "int64")
    (part,) = solve(statement((data, add(i, k)), IJK, PRODUCT), str)
    assert part.target.indices == (data, index("z"))
    assert target_variables(part) == ("z",)


def test_names_of_sizes_are_not_taken() -> None:
    domain = "[z, K] -> { [i, k] : 0 <= i < z and 0 <= k < K }"
    (part,) = solve(statement((add(i, k),), domain, PRODUCT), str)
    assert part.target.indices == (index("z1"),)


def test_linear_forms_collect_terms() -> None:
    expr = add(times(2, apply("sub", index("z"), k)), k, k, integer(3), apply("neg", i))
    assert linear_form(expr) == ({index("z"): 2, i: -1}, 3)
    assert normalized(expr) == add(apply("sub", times(2, index("z")), i), integer(3))
    assert normalized(apply("sub", i, i)) == integer(0)


def test_sums_have_any_number_of_parts() -> None:
    total: Expr = i
    for _ in range(5000):
        total = apply("add", total, i)
    assert linear_form(total) == ({i: 5001}, 0)


def test_equal_layers_are_solved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def layer(tensor: str) -> Statement:
        return statement((apply("add", i, k),), "[N] -> { [i, k]: 0 <= i < N and 0 <= k < 77 }", read(tensor, i, k))

    first = solve(layer("a"), str)
    monkeypatch.setattr("tcdsl.polyhedra.scatter_to_gather._Equation", None)  # Nothing is asked again.
    [second] = solve(layer("b"), str)
    assert second.domain == first[0].domain
    assert second.target == first[0].target
    assert second.value == dataclasses.replace(first[0].value, tensor="b")
