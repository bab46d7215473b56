"""Local buffers and calls of procedures: printed, interpreted, counted, rewritten."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tcdsl.ir.build import apply, constant, index, integer
from tcdsl.ir.expressions import Cast, Local
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.lowering.loop_passes.forwarding import forwarded, without_unread
from tcdsl.lowering.loop_passes.hoisting import hoisted
from tcdsl.lowering.loop_passes.index_widths import procedure_with_index_widths, with_index_widths
from tcdsl.lowering.loop_passes.liveness import lifetimes, peak_bytes
from tcdsl.lowering.loopir.loop_printer import format_kernel
from tcdsl.lowering.loopir.loops import (
    Buffer,
    BufferView,
    Define,
    Kernel,
    LocalBuffer,
    Loop,
    Node,
    Procedure,
    ProcedureCall,
    Store,
)
from tcdsl.lowering.loopir.point_counts import executed_points
from tcdsl.lowering.loopir.traversal import buffers_read, buffers_written, renamed, walk_nodes
from tests.golden_texts import Golden
from tests.lowering.loop_interpreter import execute
from tests.targets import tiled_kernels
from tests.targets.kernels import I, J, M, N, P, loop, make, read

RNG = np.random.default_rng(1)
A, B = RNG.normal(size=(5, 7)).astype(np.float32), RNG.normal(size=(7, 6)).astype(np.float32)


def shuffled(steps: list[int]) -> list[int]:
    return list(RNG.permutation(list(steps)))


def test_what_they_print(golden: Golden) -> None:
    golden("loops/tiled_transpose", format_kernel(tiled_kernels.transpose()))
    golden("loops/called_product", format_kernel(tiled_kernels.matmul()))


@pytest.mark.parametrize("shape", [(9, 17), (4, 8), (1, 1), (0, 3), (3, 0)])
def test_a_local_tile(shape: tuple[int, int]) -> None:
    X = RNG.normal(size=shape).astype(np.float32)
    (found,) = execute(tiled_kernels.transpose(), [X], shuffled).outputs
    np.testing.assert_array_equal(found, X.T)


@pytest.mark.parametrize("block", [1, 3, 7, 9])
def test_a_procedure(block: int) -> None:
    done = execute(tiled_kernels.matmul(block), [A, B], shuffled)
    np.testing.assert_allclose(done.outputs[0], A @ B, rtol=1e-5)
    assert done.writes["row"] == 5 * 6 * (1 + 7)


def test_local_buffers_start_undefined() -> None:
    # Each run of the node makes one: nothing of an earlier iteration is left.
    keep = Store("t", (integer(0),), read("x", I))
    body = loop("i", N, LocalBuffer("t", "float32", (integer(1),), (1,)), Store("y", (I,), read("t", integer(0))), keep)
    kernel = make({"x": ("float32", (N,))}, {"y": ("float32", (N,))}, [body])
    assert np.isnan(execute(kernel, [np.ones(3)]).outputs[0]).all()


def faulty(call: ProcedureCall) -> Kernel:
    made = tiled_kernels.matmul()
    local = LocalBuffer("row", "float32", (M,), (64,))
    return made.with_nests([replace(made.nests[0], code=(local, call))])


ROW, ALL = BufferView("row", (integer(0),), (M,)), BufferView("B", (integer(0), integer(0)), (P, M))
FAULTS = {
    "a view beyond the end": (BufferView("A", (integer(0), integer(1)), (None, P)), ALL, ROW),
    "a view before the start": (BufferView("A", (integer(-1), integer(0)), (None, P)), ALL, ROW),
    "extents that do not fit": (BufferView("A", (integer(0), integer(0)), (None, integer(2))), ALL, ROW),
    "a view that shares cells with one that is written": (
        BufferView("row", (integer(0),), (M,)),
        BufferView("B", (integer(0), integer(0)), (M, M)),
        ROW,
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_calls_that_are_wrong(name: str) -> None:
    a, b, c = FAULTS[name]
    with pytest.raises(IndexError):
        execute(faulty(ProcedureCall("row_product", (a, b), (c,))), [A, B])


def test_extents_beyond_their_bounds_are_wrong() -> None:
    local = LocalBuffer("t", "float32", (N,), (4,))
    kernel = make({"x": ("float32", (N,))}, {"y": ("float32", (N,))}, [local])
    execute(kernel, [np.ones(4)])
    with pytest.raises(IndexError, match="more than"):
        execute(kernel, [np.ones(5)])


def test_points_of_called_bodies_count() -> None:
    assert executed_points(tiled_kernels.matmul(3), {"N": 5, "P": 7, "M": 6}) == 5 * (6 + 7 * 6 + 6)
    assert executed_points(tiled_kernels.transpose(), {"N": 9, "M": 17}) == 2 * 9 * 17


def test_local_buffers_are_no_memory_of_the_call() -> None:
    kernel = tiled_kernels.matmul()
    assert lifetimes(kernel).keys() == {"A", "B", "C"}
    use = peak_bytes(kernel, {"N": 5, "P": 7, "M": 6})
    assert (use.temporaries, use.outputs) == (0, 4 * 30)


def test_what_is_read_and_written() -> None:
    body = tiled_kernels.matmul().nests[0].body
    assert set(buffers_read(body)) == {"A", "B", "row"}
    assert set(buffers_written(body)) == {"C", "row"}


def test_variables_are_renamed_in_views_and_extents() -> None:
    (outer,) = tiled_kernels.transpose().nests[0].body
    assert isinstance(outer, Loop)
    text = str(renamed(outer.body, {index("i0"): index("first")}))
    assert "'i0'" not in text
    (row,) = tiled_kernels.matmul().nests[0].body
    (call,) = [
        node for node in walk_nodes(renamed((row,), {index("k0"): integer(2)})) if isinstance(node, ProcedureCall)
    ]
    assert call.reads[0].starts == (index("i"), integer(2))


def test_memory_that_only_calls_read_stays() -> None:
    made = tiled_kernels.matmul()
    shapes = {"x": ("float32", (P,)), "B": ("float32", (P, M))}
    views = (BufferView("t", (integer(0),), (P,)), BufferView("B", (integer(0), integer(0)), (P, M)))
    call = ProcedureCall("row_product", views, (BufferView("y", (integer(0),), (M,)),))
    body = [loop("i", P, Store("t", (I,), read("x", I))), loop("j", M, Store("y", (J,), constant(0, "float32"))), call]
    kernel = make(shapes, {"y": ("float32", (M,))}, body, temporaries={"t": ("float32", (P,))})
    kernel = replace(kernel, procedures=made.procedures)
    nests, buffers = without_unread(kernel.nests, kernel.buffers, kernel.outputs)
    assert (nests, buffers) == (kernel.nests, kernel.buffers)
    np.testing.assert_allclose(execute(kernel, [A[0], B]).outputs[0], A[0] @ B, rtol=1e-5)


def test_passes_know_what_calls_change() -> None:
    # The scalar and the cell are those from before the call of the procedure.
    t = read("t", integer(0))
    exp = apply("exp", t)
    change = ProcedureCall("negate", (), (BufferView("t", (integer(0),), (integer(1),)),))
    body = [
        LocalBuffer("t", "float32", (integer(1),), (1,)),
        Store("t", (integer(0),), read("x", I)),
        Store("y", (I,), exp),
        change,
        Store("y", (I,), apply("add", read("y", I), exp)),
    ]
    names = FreshNames(["t", "x", "y", "i", "N"])
    types = {"x": "float32", "y": "float32"}
    rewritten = forwarded((loop("i", N, *body),), types, names)
    found = execute(negating(rewritten), [np.array([1.0, 2.0])]).outputs[0]
    np.testing.assert_allclose(found, np.exp([1.0, 2.0]) + np.exp([-1.0, -2.0]), rtol=1e-6)


def test_half_precision_is_rounded_in_local_buffers() -> None:
    local = LocalBuffer("t", "float16", (integer(1),), (1,))
    store, use = Store("t", (integer(0),), read("x", I)), Store("y", (I,), read("t", integer(0)))
    (rewritten,) = forwarded((loop("i", N, local, store, use),), {"x": "float32", "y": "float32"}, FreshNames())
    kernel = make({"x": ("float32", (N,))}, {"y": ("float32", (N,))}, [rewritten])
    x = np.array([1.0001], np.float32)
    assert execute(kernel, [x]).outputs[0] == x.astype(np.float16)


def test_what_calls_change_is_not_hoisted() -> None:
    change = ProcedureCall("negate", (), (BufferView("y", (integer(0),), (N,)),))
    body = loop("j", M, Define("t", read("y", integer(0))), change, Store("z", (J,), Local("t", "float32")))
    assert hoisted((body,), FreshNames(())) == (body,)


def negating(nodes: tuple[Node, ...]) -> Kernel:
    made = make({"x": ("float32", (N,))}, {"y": ("float32", (N,))}, nodes)
    body = loop("j", M, Store("c", (J,), apply("neg", read("c", J))))
    procedure = Procedure("negate", (Buffer("c", "float32", (M,), "update", ()),), (body,))
    return replace(made, procedures=(procedure,))


def test_index_widths_of_extents_views_and_procedures() -> None:
    kernel = tiled_kernels.matmul()
    (nest,), limit = with_index_widths(kernel.nests, kernel.program)
    assert (nest, limit) == (kernel.nests[0], kernel.limit)
    # With sizes as large as an int64, the sum of two is not one.
    wide = LocalBuffer("t", "float32", (apply("min", apply("add", N, N), integer(4)),), (4,))
    (found,), _ = with_index_widths([replace(kernel.nests[0], code=(wide,))], kernel.program, 2**63 - 1)
    (local,) = found.body
    assert isinstance(local, LocalBuffer)
    assert any(isinstance(part, Cast) for part in (local.shape[0],))
    procedure = tiled_kernels.row_product()
    assert procedure_with_index_widths(procedure, kernel.program) == procedure
