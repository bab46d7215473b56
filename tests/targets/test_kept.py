"""Kernels kept on disk serve later processes, and nothing but the program that they were made of."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tcdsl.ir.program import Program
from tcdsl.ir.text.parser import parse_program
from tcdsl.large_stack import on_large_stack
from tcdsl.lowering.loopir.loops import Kernel
from tcdsl.lowering.lower import lower
from tcdsl.span import Span
from tcdsl.targets.cache.store import clear_cache, store
from tcdsl.targets.cpu.target import CpuTarget
from tcdsl.targets.loading import load_program
from tcdsl.targets.protocol.loaded_kernel import LoadedKernel
from tcdsl.targets.protocol.target import Build

TEXT = """program {name}
input x: float64[N]
tensor y: float64[N]
y[i] = x[i] * {factor}  for [i]: 0 <= i < N
return y
"""
GATHER = """program gather
input x: float64[N]
input at: int64[M]
tensor y: float64[M]
y[i] = x[at[i]]  for [i]: 0 <= i < M
return y
"""
PROCESS = """
import sys
import numpy as np
import tcdsl as tc
from tcdsl.lowering import lower as lowering

@tc.op
def f(x):
    y[i] = x[i] * 3.0
    return y

made = []
original = lowering.lower
lowering.lower = lambda program, **options: made.append(program) or original(program, **options)
assert f(np.arange(3.0)).tolist() == [0.0, 3.0, 6.0]
print(len(made), f.cache_info().from_disk)
"""


class Lowering:
    """Counts how often a program is lowered."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.count = 0

    def __call__(self) -> Kernel:
        self.count += 1
        return on_large_stack(partial(lower, self.program))


def compiled(text: str, cache_dir: Path, choices: tuple[Any, ...] = (), **build: Any) -> tuple[LoadedKernel, int]:
    program = parse_program(text)
    lowering = Lowering(program)
    given = Build(**{"contiguous": (True,) * len(program.inputs), "cache_dir": cache_dir, **build})
    return load_program(CpuTarget(), program, lowering, given, choices), lowering.count


def doubled(kernel: LoadedKernel) -> list[float]:
    (y,) = kernel.run([np.arange(3.0)], {"N": 3})
    return list(y.tolist())


def test_the_second_time_nothing_is_lowered(cache_dir: Path) -> None:
    text = TEXT.format(name="second", factor="2.0")
    first, lowered = compiled(text, cache_dir)
    again, lowered_again = compiled(text, cache_dir)
    assert (lowered, lowered_again) == (1, 0)
    assert doubled(first) == doubled(again) == [0.0, 2.0, 4.0]
    assert again.source == first.source
    assert again.kernel == first.kernel


@pytest.mark.parametrize(
    ("factor", "choices"),
    [
        ("4.0", {}),
        ("2.0", {"contiguous": (False,)}),
        ("2.0", {"checked": True}),
        ("2.0", {"choices": ("unoptimized",)}),
    ],
)
def test_what_differs_is_lowered(factor: str, choices: dict[str, Any], tmp_path: Path) -> None:
    compiled(TEXT.format(name="other", factor="2.0"), tmp_path)
    _, lowered = compiled(TEXT.format(name="other", factor=factor), tmp_path, **choices)
    assert lowered == 1


def test_positions_in_the_source_count(cache_dir: Path) -> None:
    # Errors of kernels show them.
    program = parse_program(GATHER)
    for line in (3, 4):
        statement = replace(program.statements[0], span=Span("user.py", line, 0, line, 5))
        moved = replace(program, statements=(statement,))
        lowering = Lowering(moved)
        load_program(CpuTarget(), moved, lowering, Build((True, True), cache_dir=cache_dir))
        assert lowering.count == 1


def test_errors_are_the_same_from_disk(cache_dir: Path) -> None:
    messages = []
    for _ in range(2):
        kernel, _ = compiled(GATHER, cache_dir)
        with pytest.raises(IndexError) as fault:
            kernel.run([np.zeros(2), np.array([0, 5])], {"N": 2, "M": 2})
        messages.append(str(fault.value))
    assert messages[0] == messages[1]
    assert "index 5 is out of range" in messages[0]


DAMAGES = (lambda data: data[:-7], lambda data: data[:40] + b"?" + data[41:], lambda data: b"")


@pytest.mark.filterwarnings("ignore:compiled programs cannot be kept")
@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_files_are_made_again(damage: Any, cache_dir: Path) -> None:
    text = TEXT.format(name="damaged", factor="2.0")
    compiled(text, cache_dir)
    (path,) = (cache_dir / "modules").glob("damaged_*.kernel")
    path.write_bytes(damage(path.read_bytes()))
    assert store(cache_dir).value(path.name) is None
    kernel, lowered = compiled(text, cache_dir)
    assert lowered == 1
    assert doubled(kernel) == [0.0, 2.0, 4.0]
    assert store(cache_dir).value(path.name) is not None


def test_deep_expressions_are_compiled_each_time(cache_dir: Path) -> None:
    factor = " * ".join(["1.0"] * 399 + ["2.0"])
    for _ in range(2):
        kernel, lowered = compiled(TEXT.format(name="deep", factor=factor), cache_dir)
        assert lowered == 1
        assert doubled(kernel) == [0.0, 2.0, 4.0]


def test_another_process_finds_what_the_first_one_made(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(PROCESS)
    environment = {**os.environ, "TCDSL_CACHE_DIR": str(tmp_path / "cache")}
    printed = []
    for seed in ("1", "2"):
        command = [sys.executable, str(script)]
        environment["PYTHONHASHSEED"] = seed
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        printed.append(done.stdout.split())
    assert printed == [["1", "0"], ["0", "1"]]
    assert clear_cache(tmp_path / "cache") > 0
    assert not list((tmp_path / "cache").rglob("*.kernel"))
