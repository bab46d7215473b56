"""Conversions between all types as `astype` does them, and float16 with and without the processor's help."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from tcdsl.ir.build import constant, integer
from tcdsl.ir.dtypes import DTYPES, compute_dtype
from tcdsl.ir.expressions import Cast, IndexValue
from tcdsl.lowering.loopir.loops import Loop, Store
from tcdsl.targets.protocol.target import Build
from tests.targets.compiling import compile_kernel
from tests.targets.kernels import I, N, loop, make, read

CASTS = [dtype for dtype in DTYPES if dtype != "float16"]


def values(dtype: str) -> np.ndarray:
    if dtype == "bool":
        return np.array([False, True])
    if dtype.startswith("float"):
        ends = np.finfo(dtype)
        edges = [0.0, 0.4, 0.5, 0.99, 1.0, 1.5, 2.5, 100.7, 127.9, ends.tiny, ends.smallest_subnormal]
        return np.array([*edges, *(-edge for edge in edges)], dtype)
    ends = np.iinfo(dtype)
    return np.array([0, 1, 2, 100, ends.max, ends.max // 2 + 1, ends.min, ends.min // 2], dtype)


@pytest.mark.parametrize("source", DTYPES)
def test_every_type_to_every_type(source: str, options: Build) -> None:
    outputs = {f"Y_{target}": (target, (N,)) for target in DTYPES}
    body = [
        Store(f"Y_{target}", (I,), Cast(read("X", I, dtype=compute_dtype(source)), compute_dtype(target)))
        for target in DTYPES
    ]
    kernel = make({"X": (source, (N,))}, outputs, [loop("i", N, *body)])
    X = values(source)
    results = compile_kernel(kernel, contiguous=(True,), options=options).run([X], {"N": len(X)})
    for target, found in zip(DTYPES, results, strict=True):
        with np.errstate(all="ignore"):
            wanted = X.astype(compute_dtype(target)).astype(target)
        np.testing.assert_array_equal(found, wanted, err_msg=f"{source} to {target}")


def test_large_floats_to_unsigned(options: Build) -> None:
    X = np.array([0.0, 3.0e9, 4294967295.0, 2.0**63, 2.0**63 + 4096, 2.0**64 - 4096, 1.0e18])
    outputs = {"A": ("uint64", (N,)), "B": ("uint32", (N,))}
    x = read("X", I, dtype="float64")
    body = [Store("A", (I,), Cast(x, "uint64")), Store("B", (I,), Cast(x, "uint32"))]
    kernel = make({"X": ("float64", (N,))}, outputs, [loop("i", N, *body)])
    A, B = compile_kernel(kernel, contiguous=(True,), options=options).run([X], {"N": len(X)})
    np.testing.assert_array_equal(A, X.astype(np.uint64))
    np.testing.assert_array_equal(B[:3], X[:3].astype(np.uint32))


def test_every_float16(options: Build) -> None:
    # All 65536 of them out, each back, and what lies between them rounded as NumPy rounds.
    halves = np.arange(65536, dtype=np.uint16).view(np.float16)
    finite = halves[np.isfinite(halves)].astype(np.float64)
    rng = np.random.default_rng(1)
    doubles = np.concatenate(
        [finite, (finite[:-1] + finite[1:]) / 2, finite * (1 + 1e-12), rng.normal(size=9999) * 70000]
    )
    doubles = np.concatenate(
        [doubles, np.nextafter(doubles, np.inf), np.nextafter(doubles, -np.inf), [np.inf, -np.inf, np.nan]]
    )
    one = [loop("i", N, Store("A", (I,), read("H", I)), Store("B", (I,), read("H", I)))]
    x = read("D", IndexValue("j"), dtype="float64")
    two = [
        Loop(
            "j",
            integer(0),
            read_size("M"),
            1,
            (Store("C", (IndexValue("j"),), x), Store("E", (IndexValue("j"),), Cast(x, "float16"))),
        )
    ]
    kernel = make(
        {"H": ("float16", (N,)), "D": ("float64", (read_size("M"),))},
        {
            "A": ("float32", (N,)),
            "B": ("float16", (N,)),
            "C": ("float16", (read_size("M"),)),
            "E": ("float32", (read_size("M"),)),
        },
        one,
        two,
    )
    compiled = compile_kernel(kernel, contiguous=(True, True), options=options)
    A, B, C, E = compiled.run([halves, doubles], {"N": len(halves), "M": len(doubles)})
    np.testing.assert_array_equal(A, halves.astype(np.float32))
    np.testing.assert_array_equal(B, halves)
    with np.errstate(all="ignore"):
        rounded = doubles.astype(np.float16)
    np.testing.assert_array_equal(C, rounded)
    np.testing.assert_array_equal(E, rounded.astype(np.float32))


def read_size(name: str) -> Any:
    from tcdsl.ir.expressions import SizeValue

    return SizeValue(name)


def test_float16_without_instructions() -> None:
    # The same conversions in integer arithmetic, for processors without them.
    from tcdsl.targets.cpu.instructions import ir
    from tcdsl.targets.cpu.intrinsics.conversions import half_to_single, single_to_half
    from tcdsl.targets.cpu.intrinsics.llvm_scalars import Scalar, llvm_type
    from tcdsl.targets.cpu.machine.object_code import LoadedObject, object_code

    def function(convert: Any, source: str, result: str) -> Any:
        # void (source *from, result *to, int64 count)
        name, word = convert.__name__, ir.IntType(64)
        kind = ir.FunctionType(ir.VoidType(), [ir.POINTER, ir.POINTER, word])
        made = ir.Function(ir.Module(name), kind, name)
        given, to, count = made.args
        builder = ir.Builder(made.append_block())
        before, body, after = builder.block, builder.append_block(), builder.append_block()
        builder.branch(body)
        builder.position_at_end(body)
        position = builder.phi(word)
        x = builder.load(llvm_type(source), builder.element(llvm_type(source), given, position))
        converted = convert(Scalar(builder, x, source), software=True).value
        builder.store(converted, builder.element(llvm_type(result), to, position))
        following = builder.add(position, ir.ConstantOperand(word, 1))
        position.add_incoming(ir.ConstantOperand(word, 0), before)
        position.add_incoming(following, body)
        builder.cbranch(builder.compare_signed("<", following, count), body, after)
        builder.position_at_end(after)
        builder.ret_void()
        loaded = LoadedObject([object_code(str(made.module))], [name])
        run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(loaded.addresses[name])

        def call(array: np.ndarray) -> np.ndarray:
            results = np.empty(array.shape, result)
            run(array.ctypes.data, results.ctypes.data, array.size)
            assert loaded.addresses
            return results

        return call

    bits = np.arange(65536, dtype=np.uint16)
    singles = function(half_to_single, "uint16", "float32")(bits)
    np.testing.assert_array_equal(singles, bits.view(np.float16).astype(np.float32))
    finite = singles[np.isfinite(singles)]
    between = (finite[:-1] + finite[1:]) / 2
    sample = np.concatenate(
        [finite, between, np.nextafter(between, np.float32(np.inf)), np.nextafter(between, np.float32(-np.inf))]
    )
    sample = np.concatenate([sample, np.array([65519.9, 65520.0, 1e30, np.inf, -np.inf, np.nan, 1e-30], np.float32)])
    halves = function(single_to_half, "float32", "uint16")(sample).view(np.float16)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(halves, sample.astype(np.float16))
    assert constant(1, "float16").dtype == "float16"
