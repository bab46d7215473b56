"""Statements that write memory which they read: nothing is copied that sets can keep apart or in order."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd
from tcdsl.ir.interpreter.interpreter import interpret
from tcdsl.ir.sizes.size_binding import bind_sizes, evaluate_size
from tcdsl.lowering.loopir.loops import Kernel
from tcdsl.lowering.lower import lower
from tests.long_variants import seeds
from tests.lowering.loop_interpreter import execute


@cd
def row_to_row(a):
    a[0, j] = a[1, j]


@cd
def column_to_column(a):
    a[i, 0] += a[i, 1] * a[i, 3]


@cd
def block(a):
    a[i, j] = a[i + 3, j + 3], i < 3, j < 3


@cd
def down(a):
    a[i + 1, j] = a[i, j]


@cd
def left(a):
    a[i, j] = a[i, j + 1]


@cd
def diagonally(a):
    a[i + 1, j] = a[i, j + 1] + a[i, j]


@cd
def from_upper_triangle(a):
    a[i, j] = a[j, i], i > j


@cd
def elimination(a):
    a[i, j] -= a[i, 0] * a[0, j] / a[0, 0], i > 0, j > 0


@cd
def even_from_odd(a):
    a[2 * i, j] = a[2 * i + 1, j]


@cd
def twice_as_far(a):
    a[2 * i, j] = a[i, j], i > 0


@cd
def sums_of_rows_into_one(a):
    a[0, j] += a[i, j] * a[i, 2], i > 0, j < 2


@cd
def by_an_offset(a, b):
    (K,) = b.shape
    a[i + K, j] = a[i, j]


@cd
def mirrored_start(a):
    N, _ = a.shape
    a[i, j] = a[N - 1 - i, j], i < 2


@cd
def neighbours(a):
    a[i, j] = a[i - 1, j] + a[i + 1, j]


@cd
def transposed(a):
    a[i, j] = a[j, i] + a[i, j]


@cd
def around(a):
    a[i, 2] = a[wrap(i + 1), 2]


@cd
def weighed_by_itself(a):
    a[i, 0] += a[i, 0] * a[i, k], k > 1


@cd
def shortest_ways(a):
    a[i, j] <<= a[i, 1] + a[1, j]


@cd
def row_and_all_cells(a):
    a[i, j] += a[1, j] * a[j, i]


# Cells that may be saved of 6 times 6.
SAVED = {
    row_to_row: 0, column_to_column: 0, block: 0, down: 0, left: 0, diagonally: 0, from_upper_triangle: 0,
    elimination: 0, even_from_odd: 0, twice_as_far: 0, sums_of_rows_into_one: 0, by_an_offset: 0,
    mirrored_start: 12, neighbours: 24, transposed: 36, around: 6, weighed_by_itself: 6,
    shortest_ways: 12, row_and_all_cells: 36,
}  # fmt: skip


def temporary_cells(kernel: Kernel, arrays: list[np.ndarray]) -> int:
    sizes = bind_sizes(kernel.program, [array.shape for array in arrays])
    made = [buffer for buffer in kernel.buffers if buffer.kind not in ("input", "update")]
    return sum(int(np.prod([evaluate_size(extent, sizes) for extent in buffer.shape])) for buffer in made)


def shuffled(seed: int) -> Any:
    def order(steps: range) -> list[int]:
        found = list(steps)
        Random(seed).shuffle(found)
        return found

    return order


@pytest.mark.parametrize("function", SAVED, ids=lambda function: function.__name__)
def test_only_what_may_be_overwritten_is_saved(function: Any) -> None:
    random = np.random.default_rng(3)
    large = {row_to_row, sums_of_rows_into_one, column_to_column, elimination, around, shortest_ways, row_and_all_cells}
    for n in (6, 0, 1, 2, 5):
        a = random.normal(size=(n, n)) + 3
        arrays = [a, np.ones(2)] if function is by_an_offset else [a]
        if function in large and 0 < n < 6:
            continue
        program = function.program(*arrays)
        kernel = lower(program)
        want = interpret(program, arrays).updates["a"]
        for seed in range(3):
            done = execute(kernel, arrays, shuffled(seed))
            np.testing.assert_allclose(done.inputs["a"], want)
        if n == 6:
            assert temporary_cells(kernel, arrays) == SAVED[function]


FORMS = ("{a}", "{a}", "{a} + 1", "{a} - 1", "{a} + 2", "N - 1 - {a}", "2 * {a}", "2 * {a} + 1")
CONDITIONS = ("i < 3", "i >= 2", "i % 2 == 0", "i != 2", "s[i, 1] > 0", "x[i] > 0")
CONDITIONS_ON_PAIRS = (*CONDITIONS, "i < j", "i != j", "i + j < N", "j >= 1", "s[j, i] > 0", "i <= j + 1")


class Statement:
    """A random statement on a row ``x`` or a square ``s``, as text and as loops over a copy of what it reads."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.square = random.random() < 0.6
        self.variables = random.choice(("ij", "ij", "j")) if self.square else "i"
        target = "x" if not self.square else "s"
        self.cells = [self.own()]
        reads = [self.read() for _ in range(random.randint(1, 3))]
        self.assign = random.choice(("=", "=", "+=", "*="))
        known = CONDITIONS_ON_PAIRS if self.variables == "ij" else () if self.variables == "j" else CONDITIONS
        self.conditions = random.sample(known, min(len(known), random.choice((0, 0, 1, 2))))
        self.value = " + ".join(f"{random.randint(1, 3)} * {text}" for text in reads)
        self.target = f"{target}[{self.cells[0]}]"

    def index(self, name: str) -> str:
        return self.random.choice(FORMS).format(a=name)

    def own(self) -> str:
        if not self.square:
            return self.index("i")
        if self.variables == "j":
            return self.random.choice(("0, {}", "{}, 2", "3, {}")).format(self.index("j"))
        return ", ".join(map(self.index, self.random.choice(("ij", "ij", "ji"))))

    def read(self) -> str:
        if self.square and self.random.random() < 0.85:
            names = ("j", "j") if self.variables == "j" else self.random.choice(("ij", "ij", "ji", "ii"))
            cell = ", ".join(self.random.choice((self.index(name), self.index(name), "1")) for name in names)
            text = f"s[{cell}]"
        else:
            cell = self.index(self.variables[0])
            text = f"x[{cell}]"
        self.cells.append(cell)
        return text

    @property
    def text(self) -> str:
        return ", ".join((f"{self.target} {self.assign} {self.value}", *self.conditions))

    def loops(self) -> list[str]:
        indices = [index for cell in self.cells for index in cell.split(", ")]
        ranges = [f"0 <= {index} < N" for index in indices]
        explicit = ["0 <= i" for condition in self.conditions if condition == "i < 3"]
        for condition in self.conditions:
            if "[" in condition:
                ranges += [f"0 <= {name} < N" for name in condition.split("[")[1].split("]")[0].split(", ")]
        old = {"x[": "x_old[", "s[": "s_old["}
        tests = " and ".join((*ranges, *explicit, *self.conditions))
        value = self.value
        for name, saved in old.items():
            tests, value = tests.replace(name, saved), value.replace(name, saved)
        return [
            "    x_old, s_old = x.copy(), s.copy()",
            *(f"{'    ' * (1 + k)}for {name} in range(-9, 16):" for k, name in enumerate(self.variables)),
            f"{'    ' * (1 + len(self.variables))}if {tests}:",
            f"{'    ' * (2 + len(self.variables))}{self.target} {self.assign} {value}",
        ]


def written(path: Path, random: Random, count: int) -> ModuleType:
    lines = ["from tcdsl import cd", "texts = []"]
    for number in range(count):
        statements = [Statement(random) for _ in range(random.randint(1, 3))]
        lines += ["@cd", f"def f{number}(x, s):", "    (N,) = x.shape"]
        lines += [f"    {statement.text}" for statement in statements]
        lines += [f"def loops{number}(x, s):", "    (N,) = x.shape"]
        lines += [line for statement in statements for line in statement.loops()]
        lines += [f"texts.append({[statement.text for statement in statements]!r})"]
    path.write_text("\n".join(lines))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("seed", seeds(1, 20))
def test_random_programs_that_write_what_they_read(tmp_path: Path, seed: int) -> None:
    count = 30
    module = written(tmp_path / "random_in_place.py", Random(seed), count)
    random = np.random.default_rng(seed)
    compared = 0
    for number in range(count):
        x, s = random.normal(size=6), random.normal(size=(6, 6))
        try:
            program = getattr(module, f"f{number}").program(x, s)
        except tc.TcdslError:
            continue  # two points that write one cell, or a statement without points
        wanted_x, wanted_s = x.copy(), s.copy()
        getattr(module, f"loops{number}")(wanted_x, wanted_s)
        kernel = lower(program)
        for done in (execute(kernel, [x, s], shuffled(1)), execute(kernel, [x, s], shuffled(2))):
            np.testing.assert_allclose(done.inputs["x"], wanted_x, err_msg=str(module.texts[number]))
            np.testing.assert_allclose(done.inputs["s"], wanted_s, err_msg=str(module.texts[number]))
        compared += 1
    assert compared > count / 2


@cd
def several_moves(a, x):
    N, _ = a.shape
    (M,) = x.shape
    a[0, j] = a[1, j]
    a[i, j + 1] = a[i, j], i > 0
    a[i, j] += a[j, i], i < j
    a[i, j] = a[i - 1, j] + a[i + 1, j]
    a[i, 0] = a[N - 1 - i, 0]
    x[i + 1] = x[i]
    x[i] = x[M - 1 - i], i < 5


def moved(a: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    a, x = a.copy(), x.copy()
    a[0] = a[1]
    a[1:, 1:] = a[1:, :-1].copy()
    upper = np.triu(np.ones(a.shape, bool), 1)
    a[upper] += a.T.copy()[upper]
    a[1:-1] = a[:-2] + a[2:]
    a[:, 0] = a[::-1, 0].copy()
    x[1:] = x[:-1].copy()
    x[:5] = x[::-1][:5].copy()
    return a, x


def test_compiled_for_any_number_of_threads() -> None:
    random = np.random.default_rng(1)
    for n, m in ((700, 100_000), (3, 7), (2, 2)):
        a, x = random.normal(size=(n, n)), random.normal(size=m)
        if m < 5:
            x = random.normal(size=5)
        want_a, want_x = moved(a, x)
        for threads in (1, 2):
            got_a, got_x = a.copy(), x.copy()
            with tc.config(threads=threads):
                several_moves(got_a, got_x)
            np.testing.assert_array_equal(got_a, want_a)
            np.testing.assert_array_equal(got_x, want_x)
