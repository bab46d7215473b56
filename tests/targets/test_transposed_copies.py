"""Copies from rows to columns, in squares of vectors of any width, and what is left over at both ends."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tcdsl.lowering.loopir.loops import Kernel, Loop
from tcdsl.targets.cpu.emission.interface import TRANSPOSING
from tcdsl.targets.cpu.emission.module_emission import emitted_nests
from tcdsl.targets.cpu.emission.transposed_copies import emitted_transposition
from tcdsl.targets.cpu.layout.frame import PLACES_WORD, layout_of
from tcdsl.targets.cpu.layout.kernel_code import kernel_code
from tcdsl.targets.cpu.machine.object_code import LoadedObject, object_code
from tests.targets.nest_text import nest_kernel
from tests.targets.test_vector_loops import FORMS

COPIES = ("z[j - 2, i + 1] = x[i, j]", "z[j, i] = x[39 - i, 1 + j]")
OTHERS = (
    "z[i, j] = x[i, j]",
    "z[j, j] = x[i, j]",
    "z[j, i] = x[i, j - i]",
    "z[j, 2 * i] = x[i, j]",
    "z[j, i] = x[i % 3, j]",
    "x[j, i] = x[i, j]",
)


def kernel_of(body: str, dtype: str) -> Kernel:
    text = f"for i in range(m):\n    for j in range(2, n):\n        {body}"
    kernel = nest_kernel(text, {"x": f"{dtype}[m, n]", "z": f"{dtype}[m, n]"})
    (nest,) = kernel.nests
    (rows,) = nest.body
    assert isinstance(rows, Loop)
    return kernel.with_nests([replace(nest, code=(replace(rows, kind="parallel"),))])


def text_of(kernel: Kernel, form: str) -> str:
    ((_, text),) = emitted_nests(kernel, (True,), {0: "nest"}, FORMS[form])
    return text


def run(function: Any, kernel: Kernel, x: np.ndarray, z: np.ndarray, begin: int, end: int, stop: int) -> None:
    layout = layout_of(kernel)
    frame = np.zeros(layout.words, np.int64)
    (places,) = (np.array(words) for words in kernel_code(kernel, (True,), checked=False).places)
    frame[PLACES_WORD] = places.ctypes.data
    frame[layout.sizes["n"]] = stop
    for name, array in (("x", x), ("z", z)):
        word = layout.buffers[name]
        frame[word : word + 5] = array.ctypes.data, array.shape[1], 1, *array.shape
    function(begin, end, frame.ctypes.data)


@pytest.mark.parametrize(("dtype", "form"), [*(("float32", form) for form in FORMS), ("int64", "wide")])
def test_copies(dtype: str, form: str) -> None:
    for body in COPIES:
        kernel = kernel_of(body, dtype)
        text = text_of(kernel, form)
        assert TRANSPOSING in text
        symbol = f"{TRANSPOSING}{np.dtype(dtype).itemsize}"
        shared = object_code(emitted_transposition(symbol, FORMS[form]), 1)
        loaded = LoadedObject([object_code(text, 2), shared], ["nest"])
        function = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 3)(loaded.addresses["nest"])
        x = np.arange(40 * 45).reshape(40, 45).astype(dtype)
        for begin, end, stop in ((0, 40, 44), (3, 35, 34), (1, 17, 18), (5, 20, 19), (7, 8, 40), (4, 4, 9), (2, 30, 2)):
            found, wanted = np.zeros((45, 42), dtype), np.zeros((45, 42), dtype)
            for i in range(begin, end):
                for j in range(2, stop):
                    exec(body, {"i": i, "j": j, "x": x, "z": wanted})
            run(function, kernel, x, found, begin, end, stop)
            np.testing.assert_array_equal(found, wanted)


def test_other_loops_are_left_alone() -> None:
    for body in (*OTHERS, "x[j, i] = x[i, j]"):
        assert TRANSPOSING not in text_of(kernel_of(body, "float32"), "wide")
