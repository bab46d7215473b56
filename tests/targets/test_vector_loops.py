"""Loops that are written as vectors: which may be, and that their steps compute what they do one by one."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tcdsl.lowering.loopir.loops import Kernel, Loop
from tcdsl.lowering.loopir.machine import Machine
from tcdsl.targets.cpu.emission.interface import READY
from tcdsl.targets.cpu.emission.module_emission import emitted_nests
from tcdsl.targets.cpu.layout.frame import PLACES_WORD, layout_of
from tcdsl.targets.cpu.layout.kernel_code import kernel_code
from tcdsl.targets.cpu.machine.object_code import LoadedObject, object_code
from tcdsl.targets.cpu.printing.module import printed_module
from tests.targets.nest_text import nest_kernel

FORMS = {
    "wide": Machine(64, masks=True),
    "masks": Machine(32, masks=True),
    "AVX2": Machine(32, masks=False),
    "narrow": Machine(16, masks=False),
}
ROWS = 3

ARITHMETIC = """
for j in range(n):
    a = x[i, j] * y[0, j] + {t}(0.5)
    z[i, j] = maximum(a / (square(y[i, j]) + {t}(1.0)), -x[i, 0])
"""
IN_PLACE = """
for j in range(n):
    z[i, j] = x[i, j]
for j in range(1, n - 1):
    z[i, j] += y[i, j + 1] * y[i, 0]
"""
FUNCTIONS = """
for j in range(n):
    z[i, j] = exp(x[i, j]) * sin(y[i, j]) + power(absolute(x[i, j]), y[i, j])
"""
NUMBERS = """
for j in range(n):
    z[i, j] = {t}(j) * x[i, j] if j % 2 == 0 else {t}(i)
"""
PLACES = """
for j in range(n):
    a = x[i, j]
    z[i, j] = {t}(j + i) * a if j > n - 5 or j < 2 else {t}(i)
"""
GUARDED = """
for j in range(n):
    z[i, j] = x[i, j - 1] if j > 0 else y[0, n - 1]
"""
GUARDED_ALSO = """
for j in range(n):
    z[i, j] = {t}(1.0) if j > 0 and x[i, j - 1] > {t}(0.0) else y[i, j]
"""
SAME_FOR_ALL = """
for j in range(n):
    z[i, j] = exp(x[i, j]) if y[0, 0] > {t}(0.0) else y[i, j]
"""
BRANCHES = """
for j in range(n):
    z[i, j] = {t}(0.0)
total = {t}(0.0)
count = 0
for j in range(n):
    if x[i, j] > y[i, j]:
        z[i, j] = x[i, j]
        count += 1
    else:
        total += y[i, j]
if n > 0:
    z[i, 0] = total + {t}(count)
"""
SUMS = """
total = {t}(0.25)
top = -{t}(inf)
least = {t}(3.0)
product = {t}(1.0)
for j in range(n):
    total += x[i, j] * y[i, j]
    top = maximum(top, x[i, j])
    least = minimum(least, y[i, j])
    product *= {t}(1.0) + x[i, j] * {t}(0.125)
for j in range(1, n):
    total -= x[i, j] * y[i, 0]
for j in range(n):
    z[i, j] = total + top * least + product
"""
WHOLE = """
count = 0
top = 7
for j in range(n):
    count += int64(x[i, j]) & int64(y[i, j])
    top = maximum(top, int64(x[i, j]))
for j in range(n):
    z[i, j] = {t}(left_shift(int64(x[i, j]), int64(3)) ^ count) + {t}(top - j)
"""
FIRST = """
place = n
for j in range(n):
    if x[i, j] > {t}(1.5) or x[i, j] == y[i, 0]:
        place = minimum(place, j)
if n > 0:
    z[i, n - 1] = {t}(place)
"""
ROWS_APART = """
for j in range(n):
    z[i, j] = x[i, j]
for k in range(1, 2):
    for j in range(n):
        z[0, j] += z[i, j]
"""

RUNNING = """
total = {t}(0.25)
top = -{t}(inf)
least = {t}(1.0)
product = {t}(1.0)
some = False
all = True
count = 0
for j in range(1, n):
    total += x[i, j]
    top = maximum(top, x[i, j])
    least = minimum(least, y[i, j])
    product *= {t}(1.0) + x[i, j] * {t}(0.125)
    some |= x[i, j] > {t}(1.5)
    all &= y[i, j] < {t}(1.5)
    count -= int64(j + i)
    z[i, j] = (total + top if some else total - top) * (least if all else product) + {t}(count)
for j in range(n):
    z[i, j] += total + top + least + product + {t}(count)
"""
BACKWARDS = """
least = {t}(9.0)
for j in range(n):
    least = minimum(least, x[i, n - 1 - j])
    z[i, n - j - 1] = least * y[i, j] + y[i, n - (j + 1)]
for j in range(1, n):
    z[i, j] += x[i, n - j]
"""
RUNNING_WHERE = """
total = {t}(0.0)
for j in range(n):
    total += x[i, j]
    if x[i, j] > y[i, j]:
        z[i, j] = total
"""
WINDOWS = """
for j in range(n - 2):
    total = {t}(0.5)
    top = -{t}(9.0)
    for r in range(2):
        for s in range(minimum(n, 3)):
            total += x[r, j + s] * y[0, s]
            top = maximum(top, x[r, j + s])
    z[i, j] = total + top * x[i, 0]
"""
WINDOWS_WITHIN = """
for j in range(n):
    total = {t}(0.5)
    for s in range(4):
        if 1 - s <= j and j < n + 1 - s:
            for r in range(2):
                total -= x[r, j + s - 1] * y[r, 0]
    z[i, j] = total
"""

VECTORS = [ARITHMETIC, IN_PLACE, FUNCTIONS, PLACES, SUMS, WHOLE, RUNNING, BACKWARDS, WINDOWS]
MASKED = [GUARDED, GUARDED_ALSO, SAME_FOR_ALL, BRANCHES, FIRST, RUNNING_WHERE, WINDOWS_WITHIN]

BEFORE = """
for j in range(1, n):
    z[i, j] = z[i, j - 1] + x[i, j]
"""
ONE_CELL = """
for j in range(n):
    z[i, 0] += x[i, j]
"""
USED_BEFORE = """
total = {t}(0.0)
for j in range(n):
    z[i, j] = total
    total += x[i, j]
"""
RUNNING_FOR_SOME = """
total = {t}(0.0)
for j in range(n):
    if x[i, j] > y[i, j]:
        total += x[i, j]
    z[i, j] = total
"""
THERE_AND_BACK = """
for j in range(n):
    z[i, n - 1 - j] = z[i, j]
"""
ACROSS = """
for j in range(n):
    z[i, j] = x[j, i]
"""
DATA = """
for j in range(n):
    z[i, j] = x[i, int64(y[i, j])]
"""
FIRST_CELL = """
for j in range(n):
    z[i, j] = z[i, 0] + x[i, j]
"""
LOOPS_THAT_DIFFER = """
for j in range(n):
    total = {t}(0.0)
    for s in range(j):
        total += x[s, i]
    z[i, j] = total
"""
OTHERS = [NUMBERS, LOOPS_THAT_DIFFER, BEFORE, ONE_CELL, USED_BEFORE, RUNNING_FOR_SOME, THERE_AND_BACK, DATA, FIRST_CELL]


def kernel_of(body: str, dtype: str, result: str) -> Kernel:
    """The nest that runs ``body`` for each row."""
    lines = "\n".join(f"    {line}" for line in body.replace("{t}", dtype).strip().splitlines())
    kernel = nest_kernel(
        f"for i in range(m):\n{lines}", {"x": f"{dtype}[m, n]", "y": f"{dtype}[m, n]", "z": f"{result}[m, n]"}
    )
    (nest,) = kernel.nests
    (rows,) = nest.body
    assert isinstance(rows, Loop)
    return kernel.with_nests([replace(nest, code=(replace(rows, kind="parallel"),))])


def code_of(kernel: Kernel, form: Machine | None) -> str:
    """LLVM's text for its nest."""
    ((_, text),) = emitted_nests(kernel, (True, True), {0: "nest"}, form)
    return text


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("bodies", "masked"), [([*VECTORS, ACROSS], False), (MASKED, True), (OTHERS, None)])
def test_which_loops_are_vectors(bodies: list[str], masked: bool | None, form: str) -> None:
    for body in bodies:
        ready = READY in code_of(kernel_of(body, "float32", "float32"), FORMS[form])
        assert ready == (masked is not None and (FORMS[form].masks or not masked)), body


def called(function: Any, kernel: Kernel, arrays: list[np.ndarray]) -> np.ndarray:
    """What ``function`` of a frame writes into the last array."""
    x, y, z = (array.copy() for array in arrays)
    layout = layout_of(kernel)
    frame = np.zeros(layout.words, np.int64)
    (places,) = (np.array(words) for words in kernel_code(kernel, (True, True), checked=False).places)
    frame[PLACES_WORD] = places.ctypes.data
    frame[layout.sizes["n"]] = x.shape[1]
    for name, array in (("x", x), ("y", y), ("z", z)):
        word = layout.buffers[name]
        frame[word : word + 5] = array.ctypes.data, x.shape[1], 1, *x.shape
    function(0, ROWS, frame.ctypes.data)
    return z


@pytest.mark.parametrize(
    ("types", "form"),
    [
        *(pytest.param("float32", form, marks=() if form in ("masks", "wide") else pytest.mark.long) for form in FORMS),
        *((types, "wide") for types in ("float64", "float32 float64", "int16 int64", "float16")),
        ("int32", "AVX2"),
    ],
)
def test_steps_at_once(types: str, form: str) -> None:
    dtype, result = types.split(maxsplit=1)[0], types.rsplit(maxsplit=1)[-1]
    whole = dtype.startswith("int")
    for body in (ARITHMETIC, IN_PLACE, WHOLE) if whole else (*VECTORS, *MASKED, ROWS_APART):
        if whole:
            body = body.replace(" / ", " + ").replace("0.5", "5").replace("1.0", "1")
        if dtype == "float16":
            body = body.replace("{t}", "float32")
        if dtype != result and "z[i, j] +=" in body:
            continue
        text = body.replace("z[i, j] = ", f"z[i, j] = {result.replace('float16', 'float32')}(")
        text = "\n".join(f"{line})" if "z[i, j] = " in line else line for line in text.splitlines())
        kernel = kernel_of(text, dtype, result)
        functions: dict[str, Any] = {}
        printed = printed_module(kernel, (True, True))
        exec(printed.text, functions)
        code = code_of(kernel, FORMS[form])
        loaded = LoadedObject([object_code(code, 2)], ["nest"])
        fast = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 3)(loaded.addresses["nest"])
        for n in (0, 1, 17, 77, 301):
            rng = np.random.default_rng(n)
            arrays = [(rng.normal(size=(ROWS, n)) * (9 if whole else 1)).astype(dtype) for _ in range(2)]
            arrays.append(np.zeros((ROWS, n), result))
            with np.errstate(all="ignore"):
                expected = called(functions[printed.functions[0]], kernel, arrays)
            tolerance = 2e-3 if dtype == "float16" else 1e-4 if "float32" in types else 1e-12
            np.testing.assert_allclose(
                called(fast, kernel, arrays), expected, rtol=tolerance, atol=tolerance, err_msg=body
            )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_running_extremes_keep_signs_of_zeros_and_nan(dtype: str, form: str) -> None:
    for largest, sign in (("maximum", 1.0), ("minimum", -1.0)):
        body = f"top = {{t}}({-sign} * inf)\nfor j in range(n):\n    top = {largest}(top, x[i, j])\n    z[i, j] = top"
        kernel = kernel_of(body, dtype, dtype)
        loaded = LoadedObject([object_code(code_of(kernel, FORMS[form]), 2)], ["nest"])
        fast = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 3)(loaded.addresses["nest"])
        x = np.full((ROWS, 40), -np.inf, dtype)
        x[0, 3:7] = -1e-310, -0.0, 0.0, -0.0
        x[1, 19], x[2, 20], x[2, 2] = np.nan, -np.nan, np.inf
        x *= np.asarray(sign, dtype)
        found = called(fast, kernel, [x, x, np.zeros_like(x)]) * np.asarray(sign, dtype)
        zeros = np.signbit(found[0])
        assert zeros[:5].all()
        assert not zeros[5:].any()
        assert not np.isnan(found[1, :19]).any()
        assert np.isnan(found[1, 19:]).all()
        assert (found[2, 2:20] == np.inf).all()
        assert np.isnan(found[2, 20:]).all()
