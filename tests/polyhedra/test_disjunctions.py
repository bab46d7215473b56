"""Conditions on several convex pieces: sets while they are few, tests beyond, and never a question without end."""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import islpy as isl
import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tcdsl.autodiff import adjoint
from tcdsl.ir.build import apply, index, integer
from tcdsl.ir.expressions import index_variables
from tcdsl.ir.interpreter.interpreter import interpret
from tcdsl.ir.program import Program
from tcdsl.lowering.loopir.traversal import walk_nodes
from tcdsl.lowering.lower import lower
from tcdsl.lowering.pipeline import QUICK
from tcdsl.pass_names import Enabled
from tcdsl.polyhedra import limits
from tcdsl.polyhedra.affine import NotAffine, condition_set, universe
from tcdsl.polyhedra.disjunctions import convex_pieces, narrowed
from tests.long_variants import seeds
from tests.lowering.loop_interpreter import execute

X = np.random.default_rng(4).normal(size=(5, 4, 5))


@op
def around_five(x):
    t[()] += x[i, j, k], i != j, j != k, k != i, i + j != k, i != 2 * k
    return t


@op
def as_factors(x):
    t[i] += x[i, j, k] * (i != j) * (j != k) * (k != i) * (i + j != k) * (i != 2 * k)
    return t


@op
def in_a_reduction(x):
    N, M, K = x.shape
    y: real[N, M]
    y[i, j] = max(x[i, j, k] for k in range(K) if i != j if j != k if k != i if i + j != k if i != 2 * k if k != 3)
    return y


@op
def into_a_declared_target(x):
    N, M, _ = x.shape
    y: real[2 * N, M + 1]
    y[2 * i + 1, j + 1] += (
        x[i, j, k] * x[i - 1, j, k],
        not (i < 2 and j < 2),
        i < 3 or k < 3,
        i % 3 != 1,
        i != k,
        j != k,
    )
    return y


@op
def on_faces(x):
    N, M, K = x.shape
    y[i, j, k] = x[i, j, k], i == 0 or i == N - 1 or j == 0 or j == M - 1 or k == 0 or k == K - 1
    return y


def points(*holds: Callable[[int, int, int], bool]) -> Iterator[tuple[int, int, int]]:
    return (p for p in itertools.product(range(5), range(4), range(5)) if all(each(*p) for each in holds))


def five(i: int, j: int, k: int) -> bool:
    return i != j and j != k and k != i and i + j != k and i != 2 * k


def expected(name: str) -> np.ndarray:
    match name:
        case "around_five":
            return np.array(sum(X[p] for p in points(five)))
        case "as_factors":
            return np.array([sum(X[p] for p in points(five) if p[0] == i) for i in range(5)])
        case "in_a_reduction":
            found = np.full((5, 4), -np.inf)
            for p in points(five, lambda i, j, k: k != 3):
                found[p[:2]] = max(found[p[:2]], X[p])
            return found
        case "into_a_declared_target":
            summed = np.zeros((10, 5))
            for i, j, k in points(lambda i, j, k: i > 0 and not (i < 2 and j < 2) and (i < 3 or k < 3)):
                if i % 3 != 1 and i != k and j != k:
                    summed[2 * i + 1, j + 1] += X[i, j, k] * X[i - 1, j, k]
            return summed
        case _:
            kept = X.copy()
            kept[1:-1, 1:-1, 1:-1] = 0
            return kept


def most_pieces(program: Program) -> int:
    return max(statement.domain.set.n_basic_set() for statement in program.statements)


@pytest.mark.parametrize(
    "function", [around_five, as_factors, in_a_reduction, into_a_declared_target, on_faces], ids=lambda f: f.__name__
)
def test_many_disjunctions(function: Any) -> None:
    program = function.program(X)
    assert most_pieces(program) <= 8
    want = expected(function.__name__)
    np.testing.assert_allclose(interpret(program, [X]).outputs[0], want)
    for optimize in (True, False):
        kernel = lower(program, optimize=optimize)
        np.testing.assert_allclose(execute(kernel, [X]).outputs[0], want)
        assert sum(1 for nest in kernel.nests for _ in walk_nodes(nest.body)) < 200
    # The adjoint is linear in its seed: <d_y, y'(x) x> for linear functions, and one derivative for the product.
    pulled = adjoint(program, ["x"], keep_outputs=False)
    assert most_pieces(pulled) <= 12
    seed = np.random.default_rng(1).normal(size=want.shape)
    got = execute(lower(pulled), [X, seed]).outputs[0]
    factor = 2 if function is into_a_declared_target else 1
    finite = np.where(np.isfinite(want), want, 0)
    np.testing.assert_allclose((got * X).sum(), factor * (seed * finite).sum())


def test_many_disjunctions_compiled() -> None:
    np.testing.assert_allclose(around_five(X), expected("around_five"))
    mask = np.array([[[five(i, j, k) for k in range(5)] for j in range(4)] for i in range(5)])
    np.testing.assert_array_equal(tc.grad(around_five)(X), mask)


def test_tests_keep_what_pieces_have_in_common() -> None:
    # Twelve alternatives are tested, but only between the first and the last.
    i = index("i")
    either = apply("eq", i, integer(3))
    for value in range(5, 27, 2):
        either = apply("or_", either, apply("eq", i, integer(value)))
    line = universe(["i"], [])
    found, tests = narrowed(line, [either], lambda condition: condition_set(condition, line))
    assert tests == [either]
    assert found.is_equal(isl.Set("{ [i] : 3 <= i <= 25 }"))


def test_pieces_are_counted_as_conditions_stand() -> None:
    i, j = index("i"), index("j")
    ne, eq, lt = apply("ne", i, j), apply("eq", i, j), apply("lt", i, j)
    assert [convex_pieces(each) for each in (ne, eq, lt)] == [2, 1, 1]
    assert convex_pieces(apply("not_", apply("and_", eq, lt))) == 3
    assert convex_pieces(apply("and_", ne, apply("or_", ne, lt))) == 6
    assert convex_pieces(apply("lt", apply("min", i, apply("max", i, j)), j)) == 4
    many = ne
    for _ in range(6):
        many = apply("and_", many, ne)
    with pytest.raises(NotAffine):
        condition_set(many, universe(["i", "j"], []))


ATOMS = (
    "{a} != {b}", "{a} != {c}", "{a} < {c}", "{a} + {b} != {c}", "abs({a} - {b}) != {n}", "{a} % 3 != {n}",
    "{a} == {b}", "{a} // 2 != {b}", "min({a}, {b}) != {n}", "{a} - {b} < {n}", "{a} > {n}",
)  # fmt: skip


def random_condition(random: Random, depth: int) -> str:
    if depth and random.random() < 0.6:
        kind = random.choice(("({} or {})", "({} or {})", "({} and {})", "(not {})"))
        return kind.format(*(random_condition(random, depth - 1) for _ in range(kind.count("{}"))))
    a, b, c = random.sample("ijk", 3)
    return "(" + random.choice(ATOMS).format(a=a, b=b, c=c, n=random.randrange(3)) + ")"


def made(path: Path, random: Random, count: int) -> tuple[ModuleType, list[list[str]]]:
    conditions = [[random_condition(random, 3) for _ in range(random.randint(3, 9))] for _ in range(count)]
    text = ["from tcdsl import op"]
    for number, each in enumerate(conditions):
        target = random.choice(("t[()]", "t[i]", "t[i, j, k]", "t[j]"))
        text += ["@op", f"def f{number}(x):", f"    {target} += x[i, j, k], {', '.join(each)}", "    return t"]
        text += [f"def holds{number}(i, j, k):", f"    return {' and '.join(each)}"]
    path.write_text("\n".join(text))
    spec = importlib.util.spec_from_file_location("random_conditions", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, conditions


@pytest.mark.parametrize("seed", seeds(1, 12))
def test_random_conditions(tmp_path: Path, seed: int) -> None:
    module, conditions = made(tmp_path / "random_conditions.py", Random(seed), 12)
    for number, each in enumerate(conditions):
        program = getattr(module, f"f{number}").program(X)
        assert most_pieces(program) <= 8
        target = program.statements[-1].target.indices
        holds = getattr(module, f"holds{number}")
        masked = np.zeros_like(X)
        for p in points(holds):
            masked[p] = X[p]
        names = {name for axis in target for name in index_variables(axis)}
        want = masked.sum(axis=tuple(axis for axis, name in enumerate("ijk") if name not in names))
        np.testing.assert_allclose(interpret(program, [X]).outputs[0], want, err_msg=str(each))
        np.testing.assert_allclose(execute(lower(program), [X]).outputs[0], want, err_msg=str(each))
        seed_of = np.ones_like(want)
        got = execute(lower(adjoint(program, ["x"], keep_outputs=False)), [X, seed_of]).outputs[0]
        np.testing.assert_allclose(got, masked != 0, err_msg=str(each))


# Limits.


def pieces_of(count: int) -> isl.Set:
    names = [f"i{k}" for k in range(count)]
    box = isl.Set(f"[n] -> {{ [{', '.join(names)}] : {' and '.join(f'0 <= {name} < n' for name in names)} }}")
    for one, other in itertools.combinations(names, 2):
        space = f"[n] -> {{ [{', '.join(names)}] : "
        box = box.intersect(isl.Set(f"{space} {one} < {other} or {one} > {other} }}"))
    return box


def test_questions_without_end_are_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_MOST_OPERATIONS", 100_000)
    with pytest.raises(limits.TooMuchWork), limits.limited():
        pieces_of(5).complement()
    # Afterwards isl answers as before.
    assert isl.Set("{ [i] : 0 < i < 1 }").is_empty()
    assert isl.DEFAULT_CONTEXT.get_max_operations() == 0


def test_lowering_beyond_limits_is_simpler(monkeypatch: pytest.MonkeyPatch) -> None:
    program = around_five.program(X)
    lowered = lower.__globals__["_lowered"]
    seen: list[bool] = []

    def slow(program: Program, enabled: Enabled, *others: Any, **named: Any) -> Any:
        seen.append(enabled <= QUICK)
        if not enabled <= QUICK:
            pieces_of(6).complement()
        return lowered(program, enabled, *others, **named)

    monkeypatch.setattr(limits, "_MOST_OPERATIONS", 100_000)
    monkeypatch.setitem(lower.__globals__, "_lowered", slow)
    np.testing.assert_allclose(execute(lower(program), [X]).outputs[0], expected("around_five"))
    assert seen == [False, True]


def test_statements_beyond_limits_are_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "_MOST_OPERATIONS", 20)

    @op
    def f(x):
        t[()] += x[i, j, k], i != j, j != k
        return t

    with pytest.raises(tc.ShapeError, match="this statement is too complicated to find its ranges") as caught:
        f(X)
    assert "t[()] += x[i, j, k], i != j, j != k" in str(caught.value)
    assert "write it as several statements" in str(caught.value)
