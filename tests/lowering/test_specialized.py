"""Programs for one set of sizes: the same results, and loops that are made for small constant extents."""

from __future__ import annotations

import numpy as np
import pytest

from tcdsl.errors import ShapeError
from tcdsl.ir.build import integer
from tcdsl.ir.interpreter.interpreter import interpret
from tcdsl.ir.program import Program
from tcdsl.ir.sizes.size_binding import bind_sizes
from tcdsl.ir.text.parser import parse_program
from tcdsl.ir.text.printer import format_program
from tcdsl.lowering.loopir.loop_printer import format_kernel
from tcdsl.lowering.loopir.loops import Accumulate, Kernel, Loop
from tcdsl.lowering.loopir.traversal import walk_nodes
from tcdsl.lowering.lower import lower
from tcdsl.simplification import specialized
from tests.golden_texts import Golden
from tests.long_variants import every
from tests.lowering.cases import CASES, real, whole
from tests.lowering.loop_interpreter import execute
from tests.lowering.test_lowering import agree
from tests.range_checks import verify_deeply

PRODUCT = """program p
input h: float32[N, K]
input d: float32[h_0, J]
assert N == h_0
tensor g: float32[K, J]
g[k, j] += h[i, k] * d[i, j]  for [i, k, j]: 0 <= i < N and 0 <= k < K and 0 <= j < J
return g
"""
KEPT = PRODUCT.replace("tensor g", "input w: float32[K, J]\ntensor g").replace("d[i, j]  for", "d[i, j]  from w  for")
TWICE = """program p
input x: float32[M, N, J]
tensor y: float32[J]
y[j] >>= x[m, n, j]  for [m, n, j]: 0 <= m < M and 0 <= n < N and 0 <= j < J
return y
"""
NARROW = """program p
input x: int8[N, J]
tensor y: int8[J]
y[j] -= x[n, j]  for [n, j]: 0 <= n < N and 0 <= j < J
return y
"""
SHIFTED = """program p
input x: float64[N, J]
tensor y: float64[J]
y[j] += x[n, j]  for [n, j]: 2 <= n < N and 0 <= j < J
return y
"""
TRIANGLE = """program p
input x: float64[N, J]
tensor y: float64[J]
y[j] += x[n, j]  for [n, j]: j <= n < N and 0 <= j < J
return y
"""
TRANSPOSED = """program p
input d: float32[N, J]
input w: float32[K, w_1]
assert J == w_1
tensor h: float32[N, K]
h[i, k] += d[i, j] * w[k, j]  for [i, k, j]: 0 <= i < N and 0 <= k < K and 0 <= j < J
return h
"""

SHORT_ROWS = """program p
input d: float32[N, J]
input x: float32[x_0, K]
assert N == x_0
tensor g: float32[J, K]
g[j, k] += d[i, j] * x[i, k]  for [j, k, i]: 0 <= j < J and 0 <= k < K and 1 <= i < N
return g
"""
UNIT_AXES = """program p
input h: float32[N, K]
input w: float32[1, K]
input y: float32[N, 1]
tensor s: float32[N, 1]
tensor m: float32[N, 1]
tensor t: float32[1, 1]
tensor g: float32[1, K]
s[i, 0] += w[0, k] * h[i, k]  for [i, k]: 0 <= i < N and 0 <= k < K
m[i, 0] = relu(1.0 - y[i, 0] * s[i, 0])  for [i]: 0 <= i < N
t[0, 0] += m[i, 0]  for [i]: 0 <= i < N
g[0, k] += m[i, 0] * h[i, k]  for [i, k]: 0 <= i < N and 0 <= k < K
return t, g
"""


def special(text: str, *arrays: np.ndarray) -> Program:
    program = parse_program(text)
    verify_deeply(program)
    made = specialized(program, bind_sizes(program, [array.shape for array in arrays]))
    verify_deeply(made)
    return made


def check(text: str, *arrays: np.ndarray) -> Kernel:
    made = lower(special(text, *arrays))
    verify_deeply(made.program)
    found, expected = execute(made, arrays), interpret(parse_program(text), arrays)
    for mine, its in zip(found.outputs, expected.outputs, strict=True):
        agree(mine, its)
    return made


def loops(made: Kernel) -> list[Loop]:
    return [node for nest in made.nests for node in walk_nodes(nest.body) if isinstance(node, Loop)]


def steps(made: Kernel) -> list[int]:
    return [loop.step for loop in loops(made)]


@pytest.mark.parametrize("name", every(2, CASES))
def test_every_case_computes_the_same_for_its_sizes(name: str) -> None:
    case = CASES[name]
    for sizes in case.sizes:
        arrays = case.inputs(*sizes)
        made = special(case.text, *arrays)
        assert made.sizes == ()
        assert parse_program(format_program(made)) == made
        expected = interpret(parse_program(case.text), arrays)
        found = execute(lower(made), arrays)
        for mine, its in zip(found.outputs, expected.outputs, strict=True):
            agree(mine, its)
        for target, value in expected.updates.items():
            agree(found.inputs[target], value)


def test_extents_are_checked_at_the_call() -> None:
    made = special(PRODUCT, real(20, 3), real(20, 5))
    with pytest.raises(ShapeError, match="20"):
        bind_sizes(made, [(21, 3), (20, 5)])


def test_small_programs_run_as_one_serial_nest() -> None:
    made = check(CASES["softmax"].text, real(5, 6))
    assert len(made.nests) == 1
    assert not any(loop.kind == "parallel" for loop in loops(made))


def test_large_programs_keep_their_parallel_loops() -> None:
    made = lower(special(CASES["matmul"].text, np.empty((200, 200)), np.empty((200, 200))))
    assert any(loop.kind == "parallel" for loop in loops(made))


@pytest.mark.parametrize("text", [PRODUCT, KEPT])
@pytest.mark.parametrize(("rows", "terms"), [(20, 10), (36, 12), (37, 16), (53, 16), (40, 10), (100, 10)])
def test_long_sums_into_short_rows_go_in_chunks(text: str, rows: int, terms: int) -> None:
    arrays = [real(rows, 7), real(rows, 18), *([real(7, 18, seed=3)] if text == KEPT else [])]
    if rows > 32:
        assert terms in steps(check(text, *arrays))
    else:
        check(text, *arrays)


@pytest.mark.parametrize(
    ("text", "array"),
    [(TWICE, real(6, 40, 17)), (NARROW, whole(100, 50, 20, dtype="int8")), (SHIFTED, real(60, 20, dtype="float64"))],
)
def test_other_reductions(text: str, array: np.ndarray) -> None:
    check(text, array)


def test_what_is_no_box_is_visited_as_before() -> None:
    assert set(steps(check(TRIANGLE, real(40, 20, dtype="float64")))) == {1}


@pytest.mark.parametrize(("n", "k", "j", "copied"), [(50, 16, 16, 1), (50, 9, 33, 1), (3, 16, 16, 0), (50, 4, 16, 0)])
def test_small_factors_are_transposed_where_that_pays(n: int, k: int, j: int, copied: int) -> None:
    made = check(TRANSPOSED, real(n, j), real(k, j, seed=1))
    assert sum(buffer.kind == "temporary" for buffer in made.buffers) == copied


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("+=", "-="),
        ("+=", ">>="),
        ("d[i, j] * w[k, j]", "d[i, j] * w[k, j] * exp(w[k, j])"),
        ("d[i, j] * w[k, j]", "min(d[i, j], w[k, j]) - d[i, j]"),
        ("0 <= j < J", "1 <= j < J"),
        ("0 <= k < K", "2 <= k < K"),
    ],
)
def test_whatever_is_summed_is_transposed(old: str, new: str) -> None:
    made = check(TRANSPOSED.replace(old, new), real(50, 16), real(16, 16, seed=1))
    assert [buffer.name for buffer in made.buffers if buffer.kind == "temporary"] == ["w_rows"]


@pytest.mark.parametrize(("n", "j", "k", "copied"), [(50, 16, 2, 1), (50, 33, 5, 1), (50, 5, 2, 0), (50, 16, 16, 0)])
def test_targets_with_short_rows_are_transposed_last(n: int, j: int, k: int, copied: int) -> None:
    made = check(SHORT_ROWS, real(n, j), real(n, k, seed=1))
    assert sum(buffer.kind == "temporary" for buffer in made.buffers) == copied


@pytest.mark.parametrize("rows", [0, 1, 40])
def test_axes_of_one_cell_are_like_no_axes(rows: int) -> None:
    made = check(UNIT_AXES, real(rows, 16), real(1, 16, seed=1), real(rows, 1, seed=2))
    if rows:
        # No start value is stored for a cell that one sum makes, and there are no loops of one step.
        assert not any(loop.start == integer(0) and loop.stop == integer(1) for loop in loops(made))
        assert "start of" not in format_kernel(made)


def test_text_of_a_specialized_kernel(golden: Golden) -> None:
    arrays = real(100, 16), real(16, 16, seed=1)
    golden("lowering/specialized_product", format_kernel(lower(special(TRANSPOSED, *arrays))))
    golden(
        "lowering/specialized_gradient", format_kernel(lower(special(KEPT, real(100, 7), real(100, 16), real(7, 16))))
    )


def test_long_expressions_are_written_out() -> None:
    # LLVM would not unroll them, and would then vectorize along the sum.
    value = " + ".join(f"h[i, k] * d[i, j] * {n}.0" for n in range(1, 5))
    made = check(PRODUCT.replace("h[i, k] * d[i, j]", value), real(100, 7), real(100, 18))
    sums = [node for nest in made.nests for node in walk_nodes(nest.body) if isinstance(node, Accumulate)]
    assert len(sums) == 10


def test_chunks_keep_the_order_of_the_terms() -> None:
    # Each cell's terms are added one after another, so that specialized programs round as others do.
    arrays = [np.random.default_rng(0).standard_normal(shape).astype("float32") for shape in ((100, 7), (100, 18))]
    (plain,) = execute(lower(parse_program(PRODUCT)), arrays).outputs
    (mine,) = execute(lower(special(PRODUCT, *arrays)), arrays).outputs
    np.testing.assert_array_equal(mine, plain)
