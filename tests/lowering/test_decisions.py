"""What lowering decides: memory, shared loops, parallel loops, where checks run, and the text of kernels."""

from __future__ import annotations

import numpy as np
import pytest

from tcdsl.errors import DataIndexError, ShapeError
from tcdsl.ir.expressions import Apply, reads, walk
from tcdsl.ir.text.parser import parse_program
from tcdsl.lowering.loopir.loop_printer import format_kernel
from tcdsl.lowering.loopir.loops import Accumulate, Branch, Check, Kernel, Loop, Node, Store
from tcdsl.lowering.loopir.traversal import expressions, walk_nodes
from tcdsl.lowering.lower import lower
from tcdsl.lowering.pass_log import ScheduleLog
from tests.golden_texts import Golden
from tests.lowering.cases import CASES
from tests.lowering.loop_interpreter import execute


def kernel(text: str, **options: bool) -> Kernel:
    return lower(parse_program(f"program p\n{text}"), **options)


def kinds(made: Kernel) -> dict[str, str]:
    return {buffer.name: buffer.kind for buffer in made.buffers}


def innermost(nodes: tuple[Node, ...]) -> list[Loop]:
    return [
        node
        for node in walk_nodes(nodes)
        if isinstance(node, Loop) and not any(isinstance(inner, Loop) for inner in walk_nodes(node.body))
    ]


@pytest.mark.parametrize(
    "name",
    [
        "matmul",
        "softmax",
        "layer_norm",
        "padded_convolution",
        "blur_reflect",
        "stencil_with_fill",
        "deconvolution",
        "clamped_scatter",
        "scatter_add",
        "unique_store",
        "sgd",
        "vector_matrix",
        "lets_in_branches",
    ],
)
def test_text_of_kernels(name: str, golden: Golden) -> None:
    golden(f"lowering/{name}", format_kernel(lower(parse_program(CASES[name].text))))


def test_updates_happen_in_place() -> None:
    made = lower(parse_program(CASES["sgd"].text))
    assert kinds(made) == {"p": "update", "g": "input", "v": "update"}
    assert made.updates == ()
    assert len(made.nests) == 1


def test_updates_that_may_fail_are_computed_aside() -> None:
    text = """
input x: float32[N]
input ids: int64[M]
tensor x_2: float32[N]
x_2[ids[j]] += 1.0  from x  for [j]: 0 <= j < M
update x = x_2
"""
    made = kernel(text)
    assert kinds(made)["x"] == "input"
    assert made.updates == (("x", "x_2"),)
    x = np.zeros(3, np.float32)
    assert execute(made, [x, np.array([0, 2, 2])]).inputs["x"].tolist() == [1.0, 0.0, 2.0]
    with pytest.raises(DataIndexError, match=r"index 7 is out of range for axis 0 of x_2, which has 3 cells"):
        execute(made, [x, np.array([0, 7])])
    # With points out of range left out nothing can fail.
    assert kinds(kernel(text.replace("< M\n", "< M  with oob skip\n")))["x"] == "update"


def test_updates_that_read_other_cells_first_need_no_memory() -> None:
    made = lower(parse_program(CASES["snapshot_update"].text))
    assert kinds(made) == {"x": "update"}
    assert made.updates == ()


def test_outputs_have_memory_of_their_own() -> None:
    made = lower(parse_program(CASES["outputs_that_repeat"].text))
    assert len(set(made.outputs)) == 3
    assert all(kinds(made)[name] == "output" for name in made.outputs)


def test_an_updated_array_is_not_returned_itself() -> None:
    made = kernel(
        """
input x: float32[N]
tensor x_2: float32[N]
x_2[i] += 1.0  from x  for [i]: 0 <= i < N
update x = x_2
return x_2
"""
    )
    assert made.outputs == ("x_2",)
    assert made.updates == (("x", "x_2"),)


def test_rows_of_softmax_share_a_loop_and_need_no_temporary() -> None:
    made = lower(parse_program(CASES["softmax"].text))
    (nest,) = made.nests
    (loop,) = nest.body
    assert isinstance(loop, Loop)
    assert loop.kind == "parallel"
    assert sorted(kinds(made).values()) == ["input", "output"]


def test_statements_that_read_other_rows_do_not_share_loops() -> None:
    made = kernel(
        """
input x: float32[N, M]
tensor y: float32[N, M]
tensor z: float32[N, M]
y[i, j] = exp(x[i, j])  for [i, j]: 0 <= i < N and 0 <= j < M
z[i, j] = y[N - 1 - i, j] + y[i, j]  for [i, j]: 0 <= i < N and 0 <= j < M
return z
"""
    )
    assert len(made.nests) == 2


def test_elementwise_chains_become_one_store() -> None:
    made = kernel(
        """
input x: float32[N]
tensor a: float32[N]
tensor b: float32[N]
tensor c: float32[N]
a[i] = exp(x[i])  for [i]: 0 <= i < N
b[i] = a[i] * a[i] + x[i]  for [i]: 0 <= i < N
c[i] = sqrt(b[i])  for [i]: 0 <= i < N
return c
"""
    )
    assert kinds(made) == {"x": "input", "c": "output"}
    assert sum(isinstance(node, Store) for nest in made.nests for node in walk_nodes(nest.body)) == 1


def test_work_is_not_repeated() -> None:
    text = """
input x: float32[N]
input A: float32[M, N2]
assert N == N2, "columns"
tensor e: float32[N]
tensor y: float32[M]
e[i] = exp(x[i])  for [i]: 0 <= i < N
y[j] += A[j, i] * e[i]  for [j, i]: 0 <= i < N and 0 <= j < M
return y
"""
    assert "e" in kinds(kernel(text))
    # A copy costs nothing.
    assert "e" not in kinds(kernel(text.replace("exp(x[i])", "x[N - 1 - i]")))


@pytest.mark.parametrize("length", [3, 60, 300])
def test_long_scalar_chains_stay_long(length: int) -> None:
    lines = ["input a: float64", *(f"tensor t{k}: float64" for k in range(length))]
    for k in range(length):
        before = f"t{k - 1}" if k else "a"
        lines.append(f"t{k}[()] = 0.5 * {before} * {before} + {before}  for []")
    made = kernel("\n".join([*lines, f"return t{length - 1}", ""]))
    assert len(made.nests) == 1
    assert len(format_kernel(made)) < 300 * length + 300
    expected = 0.25
    for _ in range(length):
        expected = 0.5 * expected * expected + expected
    np.testing.assert_allclose(execute(made, [np.float64(0.25)]).outputs[0], expected)


def test_statements_that_nobody_reads_disappear() -> None:
    made = kernel(
        """
input x: float32[N]
tensor a: float32[N]
tensor b: float32[N]
tensor c: float32[N]
a[i] = exp(x[i])  for [i]: 0 <= i < N
b[i] = exp(x[i])  for [i]: 0 <= i < N
c[i] = sin(x[i])  for [i]: 0 <= i < N
return b
"""
    )
    assert kinds(made) == {"x": "input", "b": "output"}


def test_the_same_statement_runs_once() -> None:
    made = kernel(
        """
input x: float32[N, M]
tensor a: float32[N]
tensor b: float32[N]
tensor c: float32[N]
a[i] += x[i, j]  for [i, j]: 0 <= i < N and 0 <= j < M
b[i] += x[i, j]  for [i, j]: 0 <= i < N and 0 <= j < M
c[i] = a[i] / b[i]  for [i]: 0 <= i < N
return c
"""
    )
    sums = [node for nest in made.nests for node in walk_nodes(nest.body) if isinstance(node, Accumulate)]
    assert sum(any(reads(node.value)) for node in sums) == 1


@pytest.mark.parametrize("name", ["blur_reflect", "stencil_with_fill", "stencil_by_branches", "shift_wrap"])
def test_interiors_run_without_tests(name: str) -> None:
    made = lower(parse_program(CASES[name].text))
    loops = [loop for nest in made.nests for loop in innermost(nest.body)]
    assert any(not asks(loop) for loop in loops)


def asks(loop: Loop) -> bool:
    if any(isinstance(node, Branch) for node in walk_nodes(loop.body)):
        return True
    parts = (part for expr in expressions(loop.body) for part in walk(expr))
    return any(isinstance(part, Apply) and part.primitive in ("where", "mod", "min", "max") for part in parts)


def test_checks_run_once_per_row() -> None:
    made = lower(parse_program(CASES["gather"].text))
    for nest in made.nests:
        for loop in innermost(nest.body):
            assert not any(isinstance(node, Check) for node in walk_nodes(loop.body))


def test_checks_that_fail() -> None:
    gather = lower(parse_program(CASES["gather"].text))
    table = np.ones((4, 2), np.float32)
    for wrong in (4, -1):
        with pytest.raises(DataIndexError, match=rf"index {wrong} is out of range for axis 0 of table"):
            execute(gather, [table, np.array([0, wrong, 1])])
    # Without columns no cell is read.
    assert execute(gather, [np.ones((4, 0), np.float32), np.array([9])]).outputs[0].shape == (1, 0)
    unique = lower(parse_program(CASES["unique_store"].text))
    with pytest.raises(ShapeError, match="written twice"):
        execute(unique, [np.array([0, 0]), np.ones(2, np.float32)])


@pytest.mark.parametrize("name", CASES)
def test_parallel_loops_are_outermost(name: str) -> None:
    for optimize in (True, False):
        for nest in lower(parse_program(CASES[name].text), optimize=optimize).nests:
            parallel = [node for node in walk_nodes(nest.body) if isinstance(node, Loop) and node.kind == "parallel"]
            assert all(any(node is top for top in nest.body) for node in parallel)


def steps(text: str, optimize: bool | str = True) -> list[str]:
    log = ScheduleLog()
    shown = log.text(lower(parse_program(f"program p\n{text}"), optimize=optimize, watch=log))
    return [" ".join(line.split()) for line in shown.splitlines()]


def test_schedules_of_statements() -> None:
    product = """
input A: float64[N, K]
input B: float64[K, M]
tensor C: float64[N, M]
C[i, j] += A[i, k] * B[k, j]  for [i, j, k]: 0 <= i < N and 0 <= j < M and 0 <= k < K
return C
"""
    plain = steps(product, "-panels")
    assert plain[-3:] == ["order C: i k j", "sum C: in memory, along the row of j", "parallel i"]
    tiled = steps(product)
    assert "stage B[k, j] in panels of j" in tiled
    assert "tile tiles of i by j over k: sums stay in registers" in tiled
    assert sum(line.startswith("else where tiles do not pay") for line in tiled) == 1
    totals = steps("input x: float64[N]\ntensor t: float64[N]\nt[i] += x[j]  for [i, j]: 0 <= j <= i < N\nreturn t\n")
    assert "carry t: each cell goes on from the one before along i" in totals
    number = steps("input x: float64[N]\ntensor t: float64\nt[] += x[j]  for [j]: 0 <= j < N\nreturn t\n")
    assert number.count("partial blocks have results of their own, which are joined in order") == 2


def test_every_nest_says_how_it_was_made() -> None:
    for name, case in CASES.items():
        for nest in lower(parse_program(case.text)).nests:
            assert nest.schedule or nest.name.startswith(("start_", "marks_")), (name, nest.name)


@pytest.mark.parametrize(
    ("shape", "second", "reason"),
    [
        ("N, M", "y[i, j] = x[i, j] / s[i]  for [i, j]: 0 <= i < N and 0 <= j < M", None),
        ("N - 1", "y[i] = s[i] + s[i + 1]  for [i]: 0 <= i < N - 1", "the loops over i and i have other ends"),
        (
            "N",
            "y[i] = s[N - 1 - i]  for [i]: 0 <= i < N",
            "what one of them writes, the other one touches in other iterations too",
        ),
        (
            "N, N",
            "y[i, k] += x[i, j] * x[k, j]  for [i, k, j]: 0 <= i < N and 0 <= k < N and 0 <= j < M",
            "y is a contraction, and has loops of its own",
        ),
        ("N", "y[i] = z[i]  for [i]: 0 <= i < N", "they touch no memory in common"),
    ],
)
def test_why_neighbours_share_no_loops(shape: str, second: str, reason: str | None) -> None:
    text = f"""
input x: float64[N, M]
input z: float64[N]
tensor s: float64[N]
tensor y: float64[{shape}]
s[i] += x[i, j]  for [i, j]: 0 <= i < N and 0 <= j < M
{second}
return s, y
"""
    shown = steps(text, "-fusion")
    assert shown[shown.index("apart") + 1 :] == [f"s, y: {reason}"] if reason is not None else "apart" not in shown
