"""Machine code of nests that sizes leave without work is made when a call needs it."""

from __future__ import annotations

from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

from tcdsl.ir.program import Program
from tcdsl.ir.text.parser import parse_program
from tcdsl.lowering.lower import lower
from tcdsl.targets.cpu.launcher import kept_kernel
from tcdsl.targets.cpu.target import CpuTarget
from tcdsl.targets.loading import load_program
from tcdsl.targets.protocol.loaded_kernel import LoadedKernel, NestStopped
from tcdsl.targets.protocol.target import Build

RNG = np.random.default_rng(0)
PRODUCT = parse_program(
    """program product
input A: float32[N, K]
input B: float32[K, M]
tensor C: float32[N, M]
C[i, j] += A[i, k] * B[k, j]  for [i, j, k]: 0 <= i < N and 0 <= j < M and 0 <= k < K
return C
"""
)
BATCH_LAST = parse_program(
    """program products
input A: float32[N, K, L]
input B: float32[K, M, L]
tensor C: float32[N, M, L]
C[i, j, l] += A[i, k, l] * B[k, j, l]  for [i, j, l, k]: 0 <= i < N and 0 <= j < M and 0 <= l < L and 0 <= k < K
return C
"""
)
FEW, SOME, MANY = {"N": 2, "K": 5, "M": 3}, {"N": 20, "K": 5, "M": 33}, {"N": 70, "K": 5, "M": 33}


def loaded(folder: Path, program: Program = PRODUCT) -> LoadedKernel:
    target = CpuTarget()
    lowered = lower(program, machine=target.machine)
    return load_program(target, program, lambda: lowered, Build((True, True), cache_dir=folder))


def is_right(kernel: Any, sizes: dict[str, int]) -> bool:
    n, k, m = sizes.values()
    A, B = RNG.normal(size=(n, k)).astype(np.float32), RNG.normal(size=(k, m)).astype(np.float32)
    (C,) = kernel.run([A, B], sizes)
    return bool(np.allclose(C, A @ B, atol=1e-5))


def compiled(folder: Path) -> set[str]:
    return {each.name for each in folder.rglob("nest_*.code")}


def test_a_call_compiles_what_its_sizes_need(tmp_path: Path) -> None:
    kernel = loaded(tmp_path)
    assert kernel.from_disk
    assert not compiled(tmp_path)
    counts = []
    for sizes in (FEW, SOME, MANY, FEW, MANY):
        assert is_right(kernel, sizes)
        counts.append(len(compiled(tmp_path)))
    # Plain loops; tiles of few rows; panels, and tiles that read them.
    assert counts == [1, 2, 4, 4, 4]
    assert not kernel.from_disk
    again = loaded(tmp_path)
    assert all(is_right(again, sizes) for sizes in (FEW, SOME, MANY))
    assert again.from_disk


def test_panels_of_single_products_wait_where_some_are_made_at_once(tmp_path: Path) -> None:
    kernel = loaded(tmp_path, BATCH_LAST)
    counts = []
    for n in (32, 3, 32):
        A, B = (RNG.normal(size=(5, 5, n)).astype(np.float32) for _ in range(2))
        (C,) = kernel.run([A, B], {"N": 5, "K": 5, "L": n, "M": 5})
        assert np.allclose(C, np.einsum("ikl,kjl->ijl", A, B), atol=1e-5)
        counts.append(len(compiled(tmp_path)))
    assert counts == [2, 4, 4]


def test_calls_of_several_threads_compile_for_each_other(tmp_path: Path) -> None:
    kernel, found = loaded(tmp_path), []
    threads = [
        Thread(target=lambda sizes=sizes: found.append(is_right(kernel, sizes))) for sizes in (FEW, SOME, MANY) * 3
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == [True] * 9
    assert len(compiled(tmp_path)) == 4


def test_what_was_kept_without_a_nest_goes_the_long_way(tmp_path: Path) -> None:
    kernel: Any = loaded(tmp_path)
    assert is_right(kernel, FEW)
    kept = kept_kernel(kernel.kept(()), tmp_path)
    assert kept is not None
    assert kept.plan(FEW).made == ((2, 3),)
    with pytest.raises(NestStopped):
        kept.plan(MANY)
    assert is_right(kernel, MANY)
    assert kept.plan(MANY).made == ((70, 33),)
