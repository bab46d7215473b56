"""Adjoints of stencils in one pass: which statements are added up, what the loops look like, and what they compute."""

from __future__ import annotations

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tcdsl.autodiff import adjoint
from tcdsl.ir.expressions import Apply, walk
from tcdsl.ir.interpreter.interpreter import interpret
from tcdsl.ir.program import Program
from tcdsl.ir.text.parser import parse_program
from tcdsl.lowering.loopir.loops import Branch, Kernel, Loop, Store, Update
from tcdsl.lowering.loopir.traversal import expressions, walk_nodes
from tcdsl.lowering.lower import lower
from tests.lowering.loop_interpreter import execute

RNG = np.random.default_rng(5)


def parse(text: str) -> Program:
    return parse_program(f"program p\n{text}")


STENCILS = {
    "valid": "y[i, j] = x[i, j + 1] + 2.0 * x[i + 2, j + 1] - x[i + 1, j] * 3.0"
    " + x[i + 1, j + 2] + 5.0 * x[i + 1, j + 1]  for [i, j]: 0 <= i < N - 2 and 0 <= j < M - 2",
    "padded": "y[i, j] = get(x[i - 1, j], 0.0) + 2.0 * get(x[i + 1, j], 0.0) - get(x[i, j - 1], 0.0) * 3.0"
    " + get(x[i, j + 1], 0.0) + 5.0 * x[i, j]  for [i, j]: 0 <= i < N and 0 <= j < M",
    "reflected": "y[i, j] = x[reflect(i - 1), j] + 2.0 * x[reflect(i + 1), j] - x[i, reflect(j - 1)] * 3.0"
    " + x[i, reflect(j + 1)] + 5.0 * x[i, j]  for [i, j]: 0 <= i < N and 0 <= j < M",
    "clamped": "y[i, j] = x[clamp(i - 1), j] + 2.0 * x[clamp(i + 1), j] - x[i, clamp(j - 2)] * 3.0"
    " + x[i, clamp(j + 1)] + 5.0 * x[i, j]  for [i, j]: 0 <= i < N and 0 <= j < M",
    "mirrored": "y[i, j] = x[N - 1 - i, j] + 2.0 * get(x[N - i, j], 0.0) + x[N - 1 - i, M - 1 - j]"
    "  for [i, j]: 0 <= i < N and 0 <= j < M",
}
SHAPES = [(9, 8), (3, 3), (2, 5), (1, 1), (4, 1), (3, 2)]


def stencil(name: str) -> Program:
    shape = "max(N - 2, 0), max(M - 2, 0)" if name == "valid" else "N, M"
    return parse(f"input x: float64[N, M]\ntensor y: float64[{shape}]\n{STENCILS[name]}\nreturn y\n")


def gradient_of(name: str) -> Program:
    return adjoint(stencil(name), ["x"], keep_outputs=False)


def innermost(made: Kernel) -> list[Loop]:
    loops = [node for nest in made.nests for node in walk_nodes(nest.body) if isinstance(node, Loop)]
    return [loop for loop in loops if not any(isinstance(inner, Loop) for inner in walk_nodes(loop.body))]


def asks(loop: Loop) -> bool:
    parts = (part for expr in expressions(loop.body) for part in walk(expr))
    return any(isinstance(node, Branch) for node in walk_nodes(loop.body)) or any(
        isinstance(part, Apply) and part.primitive == "where" for part in parts
    )


@pytest.mark.parametrize("name", STENCILS)
def test_the_adjoint_of_a_stencil_is_one_pass(name: str) -> None:
    made = lower(gradient_of(name))
    nest, *borders = made.nests
    (loop,) = nest.body
    assert isinstance(loop, Loop)
    assert loop.kind == "parallel"
    # Only two cells that are read from one place need a loop of their own, behind.
    assert len(borders) == (name == "clamped")
    assert not any(
        isinstance(node, Loop) and node.kind == "parallel" for border in borders for node in walk_nodes(border.body)
    )
    clean = next(each for each in innermost(made) if not asks(each))
    assert len(clean.body) == 1, "one store, all terms in a register"
    assert isinstance(clean.body[0], Store)
    assert not any(isinstance(node, Update) for node in walk_nodes(nest.body))
    n, m = 30, 20
    x, g = RNG.normal(size=(n, m)), RNG.normal(size=(n - 2, m - 2) if name == "valid" else (n, m))
    done = execute(made, [x, g])
    assert done.writes[made.outputs[0]] == n * m + n * len(borders), "each cell is written once"


@pytest.mark.parametrize("name", STENCILS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_adjoints_of_stencils(name: str, shape: tuple[int, int]) -> None:
    primal, derived = stencil(name), gradient_of(name)
    n, m = shape
    x, g = RNG.normal(size=(n, m)), RNG.normal(size=(max(n - 2, 0), max(m - 2, 0)) if name == "valid" else (n, m))
    expected = interpret(derived, [x, g]).outputs[0]
    for optimize in (True, False):
        found = execute(lower(derived, optimize=optimize), [x, g]).outputs[0]
        np.testing.assert_allclose(found, expected, atol=1e-12)
    # <g | A x> = <A^T g | x>, with another evaluation of both sides.
    y = execute(lower(primal), [x]).outputs[0]
    np.testing.assert_allclose(np.vdot(g, y), np.vdot(expected, x), atol=1e-10)


def chain(*lines: str, start: str = "") -> Kernel:
    text = ["input x: float64[N]", "input g: float64[N]"]
    text += [f"tensor t{k}: float64[N]" for k in range(len(lines))]
    for k, line in enumerate(lines):
        target, _, points = line.partition("  ")
        before = f"from t{k - 1}  " if k else start
        text.append(f"t{k}{target}  {before}{points}")
    return lower(parse("\n".join([*text, f"return t{len(lines) - 1}", ""])))


def test_terms_that_share_few_cells_stay_apart() -> None:
    # Their sum would visit every cell with a test: a half and a half.
    made = chain("[2 * i] += g[i]  for [i]: 0 <= 2 * i < N", "[2 * i + 1] += x[i]  for [i]: 0 <= 2 * i < N - 1")
    assert len(made.nests) > 1
    half = chain("[i] += g[i]  for [i]: 0 <= i < N and 2 * i < N", "[i] += x[i]  for [i]: 0 <= i < N and 2 * i >= N")
    assert all(not asks(loop) for loop in innermost(half))
    x, g = RNG.normal(size=7), RNG.normal(size=7)
    np.testing.assert_array_equal(execute(half, [x, g]).outputs[0], [*g[:4], *x[4:]])


def test_single_cells_join_the_border() -> None:
    made = chain(
        "[i] += g[i]  for [i]: 0 <= i < N",
        "[0] += x[1]  for []: N > 1",
        "[N - 1] -= x[0]  for []: N > 0",
        "[i - 1] += 2.0 * g[i]  for [i]: 1 <= i < N",
    )
    assert len(made.nests) == 1
    assert [asks(loop) for loop in innermost(made)] == [True, False]
    for n in (0, 1, 2, 3, 9):
        x, g = RNG.normal(size=n), RNG.normal(size=n)
        expected = g.copy()
        expected[:-1] += 2 * g[1:]
        if n > 1:
            expected[0] += x[1]
        if n > 0:
            expected[-1] -= x[0]
        np.testing.assert_allclose(execute(made, [x, g]).outputs[0], expected, atol=1e-14)


def test_terms_added_to_an_earlier_tensor_keep_its_cells() -> None:
    made = chain("[i] += g[i]  for [i]: 1 <= i < N", "[i] -= 3.0 * x[i - 1]  for [i]: 2 <= i < N", start="from x  ")
    assert sum(isinstance(node, Store) for nest in made.nests for node in walk_nodes(nest.body)) <= 4
    for n in (0, 1, 2, 3, 9):
        x, g = RNG.normal(size=n), RNG.normal(size=n)
        expected = x.copy()
        expected[1:] += g[1:]
        expected[2:] -= 3 * x[1:-1]
        np.testing.assert_allclose(execute(made, [x, g]).outputs[0], expected, atol=1e-14)


@pytest.mark.parametrize("accumulate", [">>=", "<<=", "*="])
def test_other_accumulators_over_the_same_cells(accumulate: str) -> None:
    made = chain(f"[i] {accumulate} g[i]  for [i]: 0 <= i < N", f"[i] {accumulate} x[i + 1]  for [i]: 0 <= i < N - 1")
    assert len(made.nests) == 1
    combine = {">>=": np.maximum, "<<=": np.minimum, "*=": np.multiply}[accumulate]
    for n in (0, 1, 2, 9):
        x, g = RNG.normal(size=n), RNG.normal(size=n)
        expected = g.copy()
        expected[:-1] = combine(g[:-1], x[1:])
        np.testing.assert_array_equal(execute(made, [x, g]).outputs[0], expected)


def test_different_accumulators_keep_their_order() -> None:
    made = chain(
        "[i] += g[i]  for [i]: 0 <= i < N", "[i] >>= x[i]  for [i]: 0 <= i < N", "[i] += x[i]  for [i]: 0 <= i < N"
    )
    x, g = RNG.normal(size=5), RNG.normal(size=5)
    np.testing.assert_array_equal(execute(made, [x, g]).outputs[0], np.maximum(g, x) + x)


def test_a_version_that_is_read_is_not_added_up() -> None:
    text = """
input x: float64[N]
tensor a: float64[N]
tensor b: float64[N]
tensor c: float64[N]
a[i] += x[i]  for [i]: 0 <= i < N
b[i] += x[N - 1 - i]  from a  for [i]: 0 <= i < N
c[i] = a[i] * b[i]  for [i]: 0 <= i < N
return c
"""
    x = RNG.normal(size=6)
    np.testing.assert_allclose(execute(lower(parse(text)), [x]).outputs[0], x * (x + x[::-1]))


@op
def five_points(X, W):
    Y[i, j] = X[i, j + 1] + X[i + 2, j + 1] + X[i + 1, j] + X[i + 1, j + 2] - 4.0 * X[i + 1, j + 1]
    total[()] += Y[i, j] * W[i, j]
    return total


def test_compiled_gradient_has_the_same_bits_for_any_number_of_threads() -> None:
    # A million points: enough for the nest to be split.
    X, W = RNG.normal(size=(1100, 1003)), RNG.normal(size=(1098, 1001))
    results = []
    for threads in (1, 2, 3):
        with tc.config(threads=threads):
            results.append(tc.grad(five_points)(X, W))
    expected = np.zeros_like(X)
    for (a, b), scale in {(0, 1): 1, (2, 1): 1, (1, 0): 1, (1, 2): 1, (1, 1): -4}.items():
        expected[a : a + 1098, b : b + 1001] += scale * W
    np.testing.assert_allclose(results[0], expected, atol=1e-12)
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])


def test_of_many_places_each_is_compared_with_few(monkeypatch: pytest.MonkeyPatch) -> None:
    from tcdsl.lowering.program_passes import summing

    asked = []
    common = summing._common
    monkeypatch.setattr(summing, "_common", lambda *sets: asked.append(1) or common(*sets))
    places = " + ".join(f"{k}.5 * x[i + {20 * k}]" for k in range(40))  # So far apart that no two are added up.
    text = f"input x: float64[N]\ntensor y: float64[N - 780]\ny[i] = {places}  for [i]: 0 <= i < N - 780\nreturn y\n"
    lower(adjoint(parse(text), ["x"], keep_outputs=False))
    assert 8 * 20 < len(asked) <= 8 * 40
