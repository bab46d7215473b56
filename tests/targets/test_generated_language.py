"""The text of a generated module means what its machine code does: Python runs it on the same frames."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tcdsl.errors import TcdslError
from tcdsl.ir.build import apply, constant
from tcdsl.ir.dtypes import DTYPES, compute_dtype
from tcdsl.ir.expressions import Apply, Cast
from tcdsl.ir.sizes.size_binding import bind_sizes
from tcdsl.ir.text.parser import parse_program
from tcdsl.lowering.loopir.loops import Kernel, Store
from tcdsl.lowering.lower import lower
from tcdsl.targets.cpu.compiled import CompiledKernel, load_kernel
from tcdsl.targets.cpu.emission.module_emission import emitted_nests
from tcdsl.targets.cpu.layout.kernel_code import kernel_code
from tcdsl.targets.cpu.machine.machine_code import CompiledModule
from tcdsl.targets.cpu.machine.object_code import LoadedObject, object_code
from tcdsl.targets.cpu.machine.processor import vector_machine
from tcdsl.targets.cpu.printing.module import printed_module
from tcdsl.targets.protocol.target import Build
from tests.lowering.cases import CASES
from tests.targets import tiled_kernels
from tests.targets.kernels import I, N, loop, make, read

NEST = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
RNG = np.random.default_rng(6)


def both(kernel: Kernel, options: Build, contiguous: bool = True) -> tuple[CompiledKernel, CompiledKernel]:
    """The kernel as machine code, and as the functions of its text."""
    build = replace(options, contiguous=(contiguous,) * len(kernel.program.inputs))
    printed = printed_module(kernel, build.contiguous, checked=build.checked)
    code = kernel_code(kernel, build.contiguous, checked=build.checked)
    functions: dict[str, Any] = {}
    exec(printed.text, functions)
    callbacks = [NEST(functions[name]) for name in printed.functions]
    numbers = [ctypes.cast(callback, ctypes.c_void_p).value for callback in callbacks]
    fast = load_kernel(kernel, code, build)
    slow = CompiledModule([number or 0 for number in numbers], callbacks, from_disk=False)
    return fast, CompiledKernel(kernel, code, slow, build)


def outcome(kernel: CompiledKernel, arrays: list[np.ndarray], sizes: dict[str, int]) -> list[np.ndarray] | str:
    given = [array.copy() for array in arrays]
    try:
        return [*kernel.run(given, sizes, threads=1), *given]
    except TcdslError as error:
        return str(error)


def agree(kernels: tuple[CompiledKernel, ...], arrays: list[np.ndarray], sizes: dict[str, int]) -> None:
    fast, slow = (outcome(kernel, arrays, sizes) for kernel in kernels)
    if isinstance(fast, str) or isinstance(slow, str):
        assert fast == slow
        return
    for mine, its in zip(fast, slow, strict=True):
        assert mine.dtype == its.dtype
        tolerance = {2: 2e-3, 4: 1e-5, 8: 1e-12}[mine.dtype.itemsize] if mine.dtype.kind == "f" else 0
        np.testing.assert_allclose(mine, its, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", CASES)
def test_programs(name: str, options: Build) -> None:
    case = CASES[name]
    program = parse_program(case.text)
    kernels = both(lower(program), options)
    for sizes in case.sizes[:3]:
        arrays = [np.asarray(array) for array in case.inputs(*sizes)]
        agree(kernels, arrays, bind_sizes(program, [array.shape for array in arrays]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_steps_in_lanes(dtype: str, options: Build) -> None:
    program = parse_program(
        f"program p\ninput a: {dtype}[M, K]\ninput b: {dtype}[K_1, N]\nassert K == K_1\n"
        f"tensor c: {dtype}[M, N]\ntensor d: {dtype}[N]\n"
        "c[i, j] -= -b[k, j] * a[i, k]  for [i, j, k]: 0 <= i < M and 0 <= j < N and 0 <= k < K\n"
        "d[j] += (b[k, j] - a[0, k]) * 0.5  for [j, k]: 0 <= j < N and 0 <= k < K and M > 0\nreturn c, d\n"
    )
    kernels = both(lower(program, machine=vector_machine()), options)
    for m, k, n in ((5, 3, 77), (4, 66, 7), (13, 5, 33), (1, 1, 64), (3, 0, 2)):
        shapes = (m, k), (k, n)
        arrays = [RNG.integers(-8, 9, shape).astype(dtype) / 4 for shape in shapes]
        agree(kernels, arrays, bind_sizes(program, shapes))


@pytest.mark.parametrize("dtype", DTYPES)
def test_operators_of_every_type(dtype: str, options: Build) -> None:
    computed = compute_dtype(dtype)
    x = read("X", I, dtype=computed)
    one = constant(1, computed)
    values = {"b": apply("snd", x, one)}
    if dtype != "bool":
        values |= {
            "a": apply("max", x, one),
            "c": apply("sub", apply("mul", x, x), apply("neg", x)),
            "d": apply("pow", x, x),
        }
        values |= {
            "e": apply("floor_div", x, one),
            "f": apply("mod", one, x),
            "g": apply("pow", x, constant(3, computed)),
        }
    if computed.startswith("float"):
        values |= {"h": apply("gelu", x), "i": apply("div", one, x), "j": apply("softplus", apply("neg", x))}
    body = loop("i", N, *(Store(name, (I,), value) for name, value in values.items()))
    kernel = make({"X": (dtype, (N,))}, dict.fromkeys(values, (dtype, (N,))), [body])
    agree(both(kernel, options), [np.arange(5).astype(dtype)], {"N": 5})


def test_constants_of_every_kind(options: Build) -> None:
    values = [constant(value, "float64") for value in (np.inf, -np.inf, np.nan, 1e30, -0.0, 3.7)]
    body = [Store(f"y{k}", (), Cast(value, "float32")) for k, value in enumerate(values)]
    body += [Store(f"z{k}", (), constant(value, "uint64")) for k, value in enumerate((0, 2**63, 2**64 - 1))]
    outputs = {node.buffer: ("float32" if node.buffer[0] == "y" else "uint64", ()) for node in body}
    agree(both(make({}, outputs, body), options), [], {})


@pytest.mark.parametrize(
    ("value", "dtype"), [(np.inf, "int32"), (-np.inf, "int64"), (np.nan, "uint8"), (1e30, "int64"), (np.nan, "bool")]
)
def test_conversions_of_what_does_not_fit(value: float, dtype: str) -> None:
    # What they give is the processor's affair.
    kernel = make({}, {"y": (dtype, ())}, [Store("y", (), Cast(constant(value, "float64"), dtype))])
    ((name, code),) = emitted_nests(kernel, (), {0: "n"})
    assert LoadedObject([object_code(code)], [name]).addresses[name]


@pytest.mark.parametrize("checked", [False, True])
def test_local_buffers_and_procedures(checked: bool, options: Build) -> None:
    options = replace(options, checked=checked)
    A, B = RNG.normal(size=(5, 7)).astype(np.float32), RNG.normal(size=(7, 6)).astype(np.float32)
    agree(both(tiled_kernels.transpose(), options), [A], {"N": 5, "M": 7})
    agree(both(tiled_kernels.matmul(), options), [A, B], {"N": 5, "P": 7, "M": 6})
    if checked:
        agree(both(tiled_kernels.matmul(over=1), options), [A, B], {"N": 5, "P": 7, "M": 6})


def test_nothing_is_promoted() -> None:
    mixed = Apply("add", (constant(1.0, "float32"), Cast(constant(1, "int64"), "float64")), "float32")
    kernel = make({}, {"y": ("float32", ())}, [Store("y", (), mixed)])
    with pytest.raises(TypeError, match="operands of types float32 and float64"):
        list(emitted_nests(kernel, (), {0: "n"}))
