"""Local buffers and calls of procedures as machine code, against the loop interpreter."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tcdsl.errors import TcdslError
from tcdsl.ir.build import apply, constant, integer
from tcdsl.lowering.loopir.loops import (
    Buffer,
    BufferView,
    Check,
    Kernel,
    LocalBuffer,
    Node,
    Procedure,
    ProcedureCall,
    Store,
)
from tcdsl.lowering.loopir.tiles import unrolled
from tcdsl.targets.cpu.compiled import CompiledKernel
from tcdsl.targets.protocol.target import Build
from tests.lowering.loop_interpreter import execute
from tests.targets import tiled_kernels
from tests.targets.compiling import compile_kernel
from tests.targets.kernels import I, J, K, M, N, P, loop, make, read

RNG = np.random.default_rng(2)


def compiled(kernel: Kernel, cache_dir: Path, *, checked: bool, contiguous: bool = True) -> CompiledKernel:
    options = Build((), checked=checked, cache_dir=cache_dir)
    return compile_kernel(kernel, contiguous=(contiguous,) * len(kernel.program.inputs), options=options)


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("dtype", ["bool", "float16", "uint64"])
def test_a_local_tile(dtype: str, checked: bool, cache_dir: Path) -> None:
    made = compiled(tiled_kernels.transpose(dtype), cache_dir, checked=checked)
    for shape in ((9, 17), (4, 8), (1, 1), (0, 3), (40, 40)):
        X = RNG.integers(0, 2, shape) if dtype == "bool" else 100 * RNG.random(shape)
        X = X.astype(dtype)
        (found,) = made.run([X], {"N": shape[0], "M": shape[1]})
        np.testing.assert_array_equal(found, X.T)


@pytest.mark.parametrize(("contiguous", "checked"), [(True, False), (False, True)])
def test_a_procedure(contiguous: bool, checked: bool, cache_dir: Path) -> None:
    kernel = tiled_kernels.matmul()
    made = compiled(kernel, cache_dir, checked=checked, contiguous=contiguous)
    for n, p, m in ((5, 7, 6), (1, 1, 1), (3, 0, 2), (200, 10, 33)):
        A, B = RNG.normal(size=(n, p)).astype(np.float32), RNG.normal(size=(p, m)).astype(np.float32)
        given = [A, B] if contiguous else [A[:, ::-1].copy()[:, ::-1], np.repeat(B, 2, axis=1)[:, ::2]]
        (found,) = made.run(given, {"N": n, "P": p, "M": m}, threads=2)
        # The interpreter takes seconds for the large one, on several threads.
        wanted = execute(kernel, [A, B]).outputs[0] if n < 100 else A @ B
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5)


def test_the_text_of_a_module(cache_dir: Path) -> None:
    text = compiled(tiled_kernels.matmul(), cache_dir, checked=False).source
    assert "@procedure(fastmath=('contract', 'reassoc'))\ndef row_product(a, B, c, P, M):" in text
    assert "row = local_buffer(" in text
    assert "view(row, (0,), (M,))" in text
    plain = compiled(
        make({}, {"y": ("float32", ())}, [Store("y", (), constant(1, "float32"))]), cache_dir, checked=False
    )
    assert "procedure" not in plain.source


def test_procedures_come_from_disk_with_their_nests(tmp_path: Path) -> None:
    kernel = tiled_kernels.matmul(2)
    assert not compiled(kernel, tmp_path, checked=False).from_disk
    again = compiled(kernel, tmp_path, checked=False)
    assert again.from_disk
    A, B = RNG.normal(size=(4, 5)).astype(np.float32), RNG.normal(size=(5, 3)).astype(np.float32)
    np.testing.assert_allclose(again.run([A, B], {"N": 4, "P": 5, "M": 3})[0], A @ B, rtol=1e-5)


def test_what_a_call_writes_is_seen_after_it_and_before_it(cache_dir: Path) -> None:
    # Stores and loads around the call are of the same memory, and stay in order.
    parameter = Buffer("c", "float32", (P,), "update", ())
    twice = Store("c", (K,), apply("add", read("c", K), read("c", K)))
    double = Procedure("double", (parameter,), (loop("k", P, twice),))
    cell = (BufferView("y", (I,), (integer(1),)),)
    body = loop(
        "i",
        N,
        Store("y", (I,), read("x", I)),
        ProcedureCall("double", (), cell),
        Store("y", (I,), apply("add", read("y", I), constant(1, "float32"))),
        ProcedureCall("double", (), cell),
    )
    kernel = replace(make({"x": ("float32", (N,))}, {"y": ("float32", (N,))}, [body]), procedures=(double,))
    x = RNG.normal(size=50).astype(np.float32)
    (found,) = compiled(kernel, cache_dir, checked=False).run([x], {"N": 50})
    np.testing.assert_allclose(found, (2 * x + 1) * 2, rtol=1e-6)
    np.testing.assert_allclose(execute(kernel, [x]).outputs[0], found, rtol=1e-6)


def test_procedures_call_procedures_and_have_local_buffers(cache_dir: Path) -> None:
    # ``inner`` of rank 0: y[()] += s[()]; ``outer`` sums a row in a local buffer of one cell.
    inner = Procedure(
        "inner",
        (Buffer("s", "float64", (), "input", ()), Buffer("y", "float64", (), "update", ())),
        (Store("y", (), apply("add", read("y", dtype="float64"), read("s", dtype="float64"))),),
    )
    add = Store("t", (integer(0),), apply("add", read("t", integer(0), dtype="float64"), read("x", J, dtype="float64")))
    outer = Procedure(
        "outer",
        (Buffer("x", "float64", (M,), "input", ()), Buffer("y", "float64", (), "update", ())),
        (
            LocalBuffer("t", "float64", (integer(1),), (1,)),
            Store("t", (integer(0),), constant(0, "float64")),
            loop("j", M, add),
            ProcedureCall("inner", (BufferView("t", (integer(0),), (None,)),), (BufferView("y", (), ()),)),
        ),
    )
    zero = Store("y", (I,), constant(0, "float64"))
    call = ProcedureCall("outer", (BufferView("x", (I, integer(0)), (None, M)),), (BufferView("y", (I,), (None,)),))
    kernel = make({"x": ("float64", (N, M))}, {"y": ("float64", (N,))}, [loop("i", N, zero, call, call)])
    kernel = replace(kernel, procedures=(inner, outer))
    X = RNG.normal(size=(4, 9))
    np.testing.assert_allclose(execute(kernel, [X]).outputs[0], 2 * X.sum(1))
    for checked in (False, True):
        (found,) = compiled(kernel, cache_dir, checked=checked).run([X], {"N": 4, "M": 9})
        np.testing.assert_allclose(found, 2 * X.sum(1))


def test_equal_nests_share_their_function(cache_dir: Path) -> None:
    def nest(source: str, target: str, local: str) -> list[Node]:
        declared = LocalBuffer(local, "float32", (integer(1),), (1,))
        fill, copy = Store(local, (integer(0),), read(source, I)), Store(target, (I,), read(local, integer(0)))
        return [loop("i", N, declared, fill, copy)]

    shapes = {"x": ("float32", (N,))}
    results = {"y": ("float32", (N,)), "z": ("float32", (N,))}
    kernel = make(shapes, results, nest("x", "y", "t"), nest("x", "z", "u"))
    made = compiled(kernel, cache_dir, checked=False)
    assert made.source.count("def ") == 1
    x = np.arange(3, dtype=np.float32)
    assert [list(each) for each in made.run([x], {"N": 3})] == [list(x), list(x)]


@pytest.mark.parametrize("checked", [False, True])
def test_loops_with_local_buffers_are_written_out(checked: bool, cache_dir: Path) -> None:
    declared = LocalBuffer("t", "float32", (integer(2),), (2,))
    fill, copy = Store("t", (integer(1),), read("x", J)), Store("y", (J,), read("t", integer(1)))
    nodes = unrolled((loop("j", integer(3), declared, fill, copy),))
    assert sum(isinstance(node, LocalBuffer) for node in nodes) == 3
    kernel = make({"x": ("float32", (N,))}, {"y": ("float32", (N,))}, nodes)
    x = np.arange(3, dtype=np.float32)
    (found,) = compiled(kernel, cache_dir, checked=checked).run([x], {"N": 3})
    np.testing.assert_array_equal(found, x)
    np.testing.assert_array_equal(execute(kernel, [x]).outputs[0], x)


def test_checked_code_names_what_is_out_of_range(cache_dir: Path) -> None:
    beyond = tiled_kernels.transpose(last=apply("add", J, integer(1)))
    X = np.zeros((4, 8), np.float32)
    with pytest.raises(TcdslError, match="read or wrote tile at 8 along axis 1, whose extent is 8"):
        compiled(beyond, cache_dir, checked=True).run([X], {"N": 4, "M": 8})
    A, B = np.zeros((2, 7), np.float32), np.zeros((7, 6), np.float32)
    with pytest.raises(TcdslError, match=r"read or wrote [AB] at 7 along axis [01], whose extent is 7"):
        compiled(tiled_kernels.matmul(over=1), cache_dir, checked=True).run([A, B], {"N": 2, "P": 7, "M": 6})


def test_local_buffers_have_a_largest_size(cache_dir: Path) -> None:
    local = LocalBuffer("t", "float64", (integer(1),), (1 << 16,))
    kernel = make({"x": ("float32", (N,))}, {"y": ("float32", (N,))}, [local])
    with pytest.raises(ValueError, match="t takes 524288 bytes"):
        compiled(kernel, cache_dir, checked=False)


def test_procedures_hold_no_checks(cache_dir: Path) -> None:
    check = Check(apply("gt", P, integer(0)), "a", 0, P, P)
    procedure = replace(tiled_kernels.row_product(), body=(check,))
    with pytest.raises(TypeError, match="row_product holds a check"):
        compiled(replace(tiled_kernels.matmul(), procedures=(procedure,)), cache_dir, checked=False)
