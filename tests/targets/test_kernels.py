"""Kernels against NumPy: layouts, types, accumulators, locals, branches, updates."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tcdsl.ir.accumulators import ACCUMULATORS, neutral_element
from tcdsl.ir.build import apply, cast, constant, integer, size
from tcdsl.ir.dtypes import DTYPES, compute_dtype
from tcdsl.ir.expressions import IndexValue, Local
from tcdsl.ir.primitives import PRIMITIVES
from tcdsl.lowering.loopir.loops import Accumulate, Branch, Define, Kernel, Node, Store, Update
from tcdsl.targets.cpu.emission.module_emission import emitted_nests
from tcdsl.targets.cpu.machine.object_code import optimized
from tcdsl.targets.protocol.target import Build
from tests.targets.compiling import compile_kernel
from tests.targets.kernels import I, K, N, elementwise, loop, make, matmul, read

RNG = np.random.default_rng(7)


def sizes_of(kernel: Kernel, arrays: list[np.ndarray]) -> dict[str, int]:
    positions = {tensor.name: k for k, tensor in enumerate(kernel.program.inputs)}
    return {s.name: arrays[positions[s.source.tensor]].shape[s.source.axis] for s in kernel.program.sizes}


def run(kernel: Kernel, arrays: list[np.ndarray], options: Build, **arguments: object) -> list[np.ndarray]:
    layout = tuple(array.flags.c_contiguous for array in arrays)
    compiled = compile_kernel(kernel, contiguous=layout, options=options)
    return compiled.run(arrays, sizes_of(kernel, arrays), **arguments)


def sample(dtype: str, *shape: int) -> np.ndarray:
    if dtype == "bool":
        return RNG.random(shape) < 0.5
    if dtype.startswith("float"):
        return RNG.normal(size=shape).astype(dtype)
    ends = np.iinfo(dtype)
    return RNG.integers(ends.min, ends.max, shape, dtype=dtype, endpoint=True)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_matmul(dtype: str, options: Build) -> None:
    A, B = sample(dtype, 17, 33), sample(dtype, 33, 9)
    (C,) = run(matmul(dtype), [A, B], options)
    assert C.dtype == dtype
    np.testing.assert_allclose(C, A @ B, rtol=1e-4, atol=1e-5)


def strided_variants(dtype: str) -> list[list[np.ndarray]]:
    frozen = sample(dtype, 5, 4)
    frozen.flags.writeable = False
    return [
        [sample(dtype, 4, 5).T, sample(dtype, 4, 6)],
        [sample(dtype, 10, 8)[::2, ::-2], sample(dtype, 6, 4).T],
        [frozen, sample(dtype, 4, 12)[:, ::2]],
        [sample(dtype, 5, 4)[::-1], sample(dtype, 4, 6)[:, ::-1]],
        [np.broadcast_to(sample(dtype, 1, 4), (5, 4)), sample(dtype, 4, 6)],
        [sample(dtype, 5, 4), np.broadcast_to(sample(dtype, 4, 1), (4, 6))],
        [np.asfortranarray(sample(dtype, 5, 4)), sample(dtype, 4, 6)],
    ]


@pytest.mark.parametrize("variant", range(7))
def test_strides(variant: int, options: Build) -> None:
    A, B = strided_variants("float32")[variant]
    (C,) = run(matmul(), [A, B], options)
    np.testing.assert_allclose(C, A @ B, rtol=1e-4, atol=1e-5)


def test_arrays_given_in_another_layout_than_compiled_for_are_copied(options: Build) -> None:
    A, B = sample("float32", 4, 5).T, sample("float32", 4, 6)[:, ::-1]
    compiled = compile_kernel(matmul(), contiguous=(True, True), options=options)
    (C,) = compiled.run([A, B], {"N": 5, "P": 4, "M": 6})
    np.testing.assert_allclose(C, A @ B, rtol=1e-4, atol=1e-5)


def test_subclasses_of_arrays(options: Build, tmp_path: Path) -> None:
    A = np.memmap(tmp_path / "A", np.float32, "w+", shape=(5, 4))
    A[...] = sample("float32", 5, 4)
    B = sample("float32", 4, 6).view(type("Named", (np.ndarray,), {}))
    (C,) = run(matmul(), [A, B], options)
    assert type(C) is np.ndarray
    np.testing.assert_allclose(C, np.asarray(A) @ np.asarray(B), rtol=1e-4, atol=1e-5)


def test_misaligned_arrays_are_copied(options: Build) -> None:
    odd = np.zeros(4 * 20 + 1, np.uint8)[1:].view(np.float32).reshape(5, 4)
    odd[...] = sample("float32", 5, 4)
    records = np.zeros((4, 6), [("skip", "u1"), ("value", "f4")])
    records["value"] = sample("float32", 4, 6)
    compiled = compile_kernel(matmul(), contiguous=(True, False), options=options)
    (C,) = compiled.run([odd, records["value"]], {"N": 5, "P": 4, "M": 6})
    np.testing.assert_allclose(C, odd @ records["value"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0), (1, 1, 1)])
def test_empty_and_unit_extents(shape: tuple[int, int, int], options: Build) -> None:
    n, p, m = shape
    A, B = sample("float32", n, p), sample("float32", p, m)
    (C,) = run(matmul(), [A, B], options)
    np.testing.assert_allclose(C, A @ B, rtol=1e-5)
    assert C.shape == (n, m)


def test_one_kernel_serves_all_sizes(options: Build) -> None:
    compiled = compile_kernel(matmul(), contiguous=(True, True), options=options)
    for n in range(1, 80):
        A, B = sample("float32", n, 3), sample("float32", 3, 2)
        (C,) = compiled.run([A, B], {"N": n, "P": 3, "M": 2})
        np.testing.assert_allclose(C, A @ B, rtol=1e-4, atol=1e-5)


def test_float16_is_stored_rounded_and_computed_in_float32(options: Build) -> None:
    A, B = sample("float16", 7, 40), sample("float16", 40, 5)
    (C,) = run(matmul("float16"), [A, B], options)
    assert C.dtype == np.float16
    cell = np.zeros((7, 5), np.float16)
    for k in range(40):
        step = A[:, k, None].astype(np.float32) * B[k].astype(np.float32)
        cell = (cell.astype(np.float32) + step).astype(np.float16)
    np.testing.assert_allclose(C.astype(np.float32), cell.astype(np.float32), rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("dtype", DTYPES)
def test_copy_of_every_dtype(dtype: str, options: Build) -> None:
    value = read("X", I, dtype=compute_dtype(dtype))
    X = sample(dtype, 20)[::-2]
    (Y,) = run(elementwise(value, dtype, {"X": dtype}), [X], options)
    assert Y.dtype == X.dtype
    np.testing.assert_array_equal(Y, X)


def test_reductions_into_locals_and_rank_0(options: Build) -> None:
    body = [
        Define("total", constant(0, "float64")),
        Define("largest", constant(-np.inf, "float64")),
        loop(
            "i",
            N,
            Accumulate("total", "add", read("X", I, dtype="float64")),
            Accumulate("largest", "max", read("X", I, dtype="float64")),
        ),
        Store("S", (), Local("total", "float64")),
        Store("L", (), Local("largest", "float64")),
    ]
    kernel = make({"X": ("float64", (N,))}, {"S": ("float64", ()), "L": ("float64", ())}, body)
    X = sample("float64", 1000)
    S, L = run(kernel, [X], options)
    np.testing.assert_allclose(S, X.sum(), rtol=1e-12)
    assert X.max() == L
    X[500] = np.nan
    S, L = run(kernel, [X], options)
    assert np.isnan(S)
    assert np.isnan(L)
    S, L = run(kernel, [X[:0]], options)
    assert (0, -np.inf) == (S, L)


KINDS = ["bool", "int8", "int64", "uint16", "uint64", "float16", "float32", "float64"]
ACCUMULATED = [
    (row.name, dtype)
    for row in ACCUMULATORS.values()
    for dtype in KINDS
    if (row.primitive in ("and_", "or_")) == (dtype == "bool")
    and not (row.primitive == "div" and not dtype.startswith("float"))
]


def test_accumulators(options: Build) -> None:
    # Every accumulator on every kind of type, on cells and on locals: one kernel, a nest per type.
    inputs, outputs = {}, {}
    bodies: dict[str, list[Node]] = {dtype: [] for dtype in KINDS}
    for dtype in KINDS:
        inputs[f"X_{dtype}"] = (dtype, (N,))
    for name, dtype in ACCUMULATED:
        kind = compute_dtype(dtype)
        X, Y, Z = f"X_{dtype}", f"Y_{name}_{dtype}", f"Z_{name}_{dtype}"
        outputs[Y] = outputs[Z] = (dtype, ())
        start = constant(neutral_element(name, dtype), kind)
        value = read(X, I, dtype=kind)
        steps = (Update(Y, (), name, value), Accumulate(f"{name}_{dtype}", name, value))
        bodies[dtype] += [Store(Y, (), start), Define(f"{name}_{dtype}", start), loop("i", N, *steps)]
        bodies[dtype].append(Store(Z, (), Local(f"{name}_{dtype}", kind)))
    kernel = make(inputs, outputs, *bodies.values(), name="accumulators")
    X = {dtype: sample(dtype, 6) for dtype in KINDS}
    results = dict(zip(outputs, run(kernel, list(X.values()), options), strict=True))
    for name, dtype in ACCUMULATED:
        kind = np.dtype(compute_dtype(dtype)).type
        with np.errstate(all="ignore"):
            cell = local = kind(neutral_element(name, dtype))
            for x in X[dtype].astype(kind):
                evaluate = PRIMITIVES[ACCUMULATORS[name].primitive].evaluate
                local = kind(evaluate(local, x))
                cell = kind(np.dtype(dtype).type(kind(evaluate(cell, x))))
        relative = 4e-3 if dtype == "float16" else 1e-5
        # Terms that cancel leave their rounding behind.
        absolute = relative * float(np.abs(X[dtype]).max()) if dtype.startswith("float") else 0.0
        for result, wanted in ((f"Y_{name}_{dtype}", cell), (f"Z_{name}_{dtype}", local)):
            found = results[result].astype(kind)
            np.testing.assert_allclose(found, wanted, rtol=relative, atol=absolute, err_msg=f"{name} {dtype}")


def test_branches_steps_and_computed_bounds(options: Build) -> None:
    # Y[i] = X[i] * 2 for even i, else the sum of X[0 .. i - 1].
    half = apply("floor_div", I, integer(2))
    inner = loop("k", I, Update("Y", (I,), "add", read("X", K)))
    even = apply("eq", apply("mod", I, integer(2)), integer(0))
    body = loop(
        "i",
        N,
        Branch(
            even,
            (Store("Y", (I,), apply("mul", read("X", I), constant(2, "float32"))),),
            (Store("Y", (I,), constant(0, "float32")), inner),
        ),
    )
    other = loop("i", N, Store("Z", (half,), read("X", I)), start=integer(1), step=2, parallel=True)
    kernel = make(
        {"X": ("float32", (N,))},
        {"Y": ("float32", (N,)), "Z": ("float32", (N,))},
        [loop("k", N, Store("Z", (K,), constant(0, "float32")))],
        [body],
        [other],
    )
    X = sample("float32", 11)
    Y, Z = run(kernel, [X], options)
    expected = np.array([2 * X[n] if n % 2 == 0 else X[:n].sum() for n in range(11)], np.float32)
    np.testing.assert_allclose(Y, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(Z, np.concatenate([X[1::2], np.zeros(6, np.float32)]))


def test_what_a_branch_guards_is_not_read(options: Build) -> None:
    # X[-1] would be read at i = 0, three times over, were lazy evaluation lost.
    before = read("X", apply("sub", I, integer(1)), dtype="float64")
    inside = apply("gt", I, integer(0))
    chosen = apply("where", inside, apply("mul", before, before), constant(7, "float64"))
    again = apply("add", chosen, apply("where", inside, before, constant(0, "float64")))
    positive = apply("and_", inside, apply("gt", before, constant(0, "float64")))
    value = apply("where", positive, again, constant(-1, "float64"))
    kernel = elementwise(value, "float64", {"X": "float64"})
    X = np.array([1.0, -2.0, 3.0, 4.0])
    checked = Build((), checked=True, cache_dir=options.cache_dir)
    for chosen_options in (options, checked):
        (Y,) = run(kernel, [X], chosen_options)
        np.testing.assert_array_equal(Y, [-1.0, 2.0, -1.0, 12.0])


def test_names_that_clash(options: Build) -> None:
    # A loop variable, a size, a buffer and a local of one name, which is also a function or a keyword.
    for name in ("exp", "lambda", "frame", "A.grad", "range", "x y", "2nd"):
        variable, extent = IndexValue(name), size(name)
        value = apply("exp", apply("add", read(name, variable), Local(name, "float32")))
        body = [Define(name, constant(1, "float32")), loop(name, extent, Store("Y", (variable,), value))]
        kernel = make({name: ("float32", (extent,))}, {"Y": ("float32", (extent,))}, body, name=name)
        X = sample("float32", 4)
        (Y,) = run(kernel, [X], options)
        np.testing.assert_allclose(Y, np.exp(X + 1), rtol=1e-6)


def test_updates_in_place_and_at_the_end(options: Build) -> None:
    # p is changed where it lies, q from a temporary after the nests; r and s trade places.
    one = constant(1, "float32")
    body = loop("i", N, Update("p", (I,), "subtract", read("q", I)), Store("t", (I,), apply("add", read("q", I), one)))
    shapes = dict.fromkeys("pqrs", ("float32", (N,)))
    kernel = make(
        shapes,
        {},
        [body],
        temporaries={"t": ("float32", (N,))},
        updated=["p"],
        updates=[("q", "t"), ("r", "s"), ("s", "r")],
        results=(),
    )
    p, q, r, s = (sample("float32", 5) for _ in range(4))
    before = [x.copy() for x in (p, q, r, s)]
    assert run(kernel, [p, q, r, s], options) == []
    for array, expected in zip((p, q, r, s), (before[0] - before[1], before[1] + 1, before[3], before[2]), strict=True):
        np.testing.assert_allclose(array, expected, rtol=1e-6)
    p.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        run(kernel, [p, q, r, s], options)


def test_an_updated_array_that_overlaps_an_input(options: Build) -> None:
    # p[i] -= q[i] with q = p shifted: as if the nests had seen q before any write.
    body = loop("i", N, Update("p", (I,), "subtract", read("q", I)))
    kernel = make(dict.fromkeys("pq", ("float32", (N,))), {}, [body], updated=["p"], results=())
    memory = np.arange(1, 12, dtype=np.float32) ** 2
    p, q = memory[1:], memory[:-1]
    expected = p - q
    run(kernel, [p, q], options)
    np.testing.assert_array_equal(p, expected)
    same = np.arange(4, dtype=np.float32)
    run(kernel, [same, same], options)
    np.testing.assert_array_equal(same, np.zeros(4))


def test_outputs_given(options: Build) -> None:
    A, B = sample("float32", 5, 5), sample("float32", 5, 5)
    compiled = compile_kernel(matmul(), contiguous=(True, True), options=options)
    sizes = {"N": 5, "P": 5, "M": 5}
    expected = A @ B
    fresh, strided = np.empty((5, 5), np.float32), np.empty((10, 5), np.float32)[::2]
    for out in (fresh, strided, A):
        (result,) = compiled.run([A, B], sizes, outputs=[out])
        assert result is out
        np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-6)
    with pytest.raises(ValueError, match=r"float64\(5, 5\), not float32\(5, 5\)"):
        compiled.run([A, B], sizes, outputs=[np.empty((5, 5))])


def test_outputs_that_are_inputs_temporaries_or_twice_the_same(options: Build) -> None:
    body = loop("i", N, Store("t", (I,), read("X", I)), Store("Y", (I,), apply("neg", read("X", I))))
    shape = ("float32", (N,))
    kernel = make({"X": shape}, {"Y": shape}, [body], temporaries={"t": shape}, results=["Y", "X", "t", "Y"])
    X = sample("float32", 6)
    results = run(kernel, [X], options)
    for result, expected in zip(results, (-X, X, X, -X), strict=True):
        np.testing.assert_array_equal(result, expected)
    for k, result in enumerate(results):
        result += 1
        assert not any(np.shares_memory(result, other) for other in (*results[:k], *results[k + 1 :], X))
    np.testing.assert_array_equal(run(kernel, [X], options)[2], X)


def test_wrong_arrays_are_refused(options: Build) -> None:
    compiled = compile_kernel(matmul(), contiguous=(True, True), options=options)
    A = np.zeros((3, 4), np.float32)
    sizes = {"N": 3, "P": 4, "M": 2}
    for B in (np.zeros((4, 3), np.float32), np.zeros((4, 2)), np.zeros((4, 2), ">f4"), np.zeros(8, np.float32), None):
        with pytest.raises(ValueError, match="not float32"):
            compiled.run([A, B], sizes)
    with pytest.raises(ValueError, match="takes 3 arrays, not 2"):
        compiled.run([A], sizes)


def test_large_temporaries_are_not_kept(options: Build) -> None:
    body = [loop("i", N, Store("t", (I,), apply("mul", read("X", I, dtype="float64"), constant(2, "float64"))))]
    copy = [loop("i", N, Store("Y", (I,), read("t", I, dtype="float64")))]
    shape = ("float64", (N,))
    kernel = make({"X": shape}, {"Y": shape}, body, copy, temporaries={"t": shape})
    for n in (10, 300_000, 10):
        X = sample("float64", n)
        np.testing.assert_array_equal(run(kernel, [X], options)[0], 2 * X)


def test_arithmetic_stays_in_float32(tmp_path: Path) -> None:
    # Nothing here may become a double, but for what is reduced and taken to a power in one.
    wider = {"pow", "sin", "cos", "tan"}
    x = read("X", I)
    value = x
    for name, row in PRIMITIVES.items():
        if row.kind in ("real", "number") and not row.index and name not in wider:
            value = apply("add", value, apply(name, *[x] * row.arity))
    value = apply("add", value, apply("pow", x, constant(3, "float32")))
    value = apply("add", value, cast(I, "float32"))
    kernel = elementwise(value, "float32", {"X": "float32"})
    compiled = compile_kernel(kernel, contiguous=(True,), options=Build((), cache_dir=tmp_path))
    ((_, nest),) = emitted_nests(compiled.kernel, (True,), {0: "nest"})
    text = str(optimized(nest))
    assert "float" in text
    assert "double" not in text


def test_inner_loops_are_vectorized_without_tests_for_overlap(tmp_path: Path) -> None:
    compiled = compile_kernel(matmul(), contiguous=(True, True), options=Build((), cache_dir=tmp_path))
    ((_, nest),) = emitted_nests(compiled.kernel, (True, True), {0: "nest"})
    text = str(optimized(nest))
    assert "x float>" in text
    assert "memcheck" not in text
