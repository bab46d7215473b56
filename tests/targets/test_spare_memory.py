"""Memory of large temporaries, which waits for the next call."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tcdsl.targets.cpu.call import spare_memory
from tcdsl.targets.cpu.call.spare_memory import array_of, block_of, spare

LARGE = 1 << 22


def address(block: np.ndarray) -> int:
    return int(block.__array_interface__["data"][0])


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> deque[np.ndarray]:
    blocks: deque[np.ndarray] = deque()
    monkeypatch.setattr(spare_memory, "_waiting", blocks)
    return blocks


@pytest.mark.skipif(spare_memory._FREE is None, reason="the system takes no pages back")
def test_large_blocks_wait_for_the_next_call(waiting: deque[np.ndarray]) -> None:
    block = block_of(2 * LARGE)
    block[:] = 7
    spare(block)
    assert len(waiting) == 1
    # Too small, much too large, and one that fits.
    for size in (2 * LARGE + 1, LARGE // 2, LARGE):
        found = block_of(size)
        assert found.size >= size
        assert (address(found) == address(block)) == (size == LARGE)
        found[:] = 1
    assert not waiting


def test_smaller_blocks_are_used_again_when_nothing_refers_to_them(
    waiting: deque[np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    recent: deque[tuple[np.ndarray, int]] = deque()
    monkeypatch.setattr(spare_memory, "_recent", recent)
    # What is smaller still belongs to the C library.
    assert address(block_of(1)) % 64 == 0
    assert not recent
    size = LARGE // 4
    first = block_of(size)
    place = address(first)
    assert place % 64 == 0
    part = first[1:]
    del first
    assert address(block_of(size)) != place
    del part
    assert place in [address(block_of(size)) for _ in range(2)]
    spare(block_of(size))
    assert not waiting
    kept = [array_of((size // 4,), np.dtype("float32")) for _ in range(40)]
    assert len({address(each) for each in kept}) == 40
    assert len(recent) <= 32
    assert sum(memory.size for memory, _start in recent) <= 1 << 24


@op
def three(x):
    a[i, j] = x[i, j] + 1
    b[i, j] = x[i, j] * 2
    c[i, j] = x[i, j] * x[i, j]
    return a, b, c


FAULTS = """
import resource
import numpy as np
import tcdsl as tc
from tests.targets.test_spare_memory import three
x = np.ones((400, 400), np.float64)
for _ in range(5):
    three(x)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    three(x)
print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) // 20)
"""


def test_repeated_calls_touch_no_fresh_pages() -> None:
    # In a process of its own: in one that has freed much already, the C library keeps more.
    path = os.pathsep.join([str(Path(tc.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    found = subprocess.run(
        [sys.executable, "-c", FAULTS],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(found.stdout) < 10


def test_only_the_last_blocks_wait(waiting: deque[np.ndarray], monkeypatch: pytest.MonkeyPatch) -> None:
    for block in [block_of(LARGE) for _ in range(12)]:
        spare(block)
    assert len(waiting) <= 8
    monkeypatch.setattr(spare_memory, "_MOST_BYTES", 3 * LARGE)
    spare(block_of(LARGE))
    assert len(waiting) <= 3


@pytest.mark.skipif(spare_memory._FREE is None, reason="the system takes no pages back")
def test_the_memory_of_a_result_waits_when_nothing_refers_to_it(waiting: deque[np.ndarray]) -> None:
    @op
    def doubled(x):
        y[i, j] = 2 * x[i, j]
        return y

    x = np.ones((3 * LARGE // 8, 2), np.float32)
    first = doubled(x)
    row = first[1:].T[0]
    place = address(first)
    assert place % 64 == 0
    del first
    assert not waiting
    again = doubled(x)
    assert address(again) != place
    assert row.sum() == 2 * row.size
    del row
    assert len(waiting) == 1
    assert address(doubled(x)) == place
    small = array_of((2, 3), np.dtype("float32"))
    assert small.base is None


@op
def powers(x: real[N], y: real[N], steps):
    for _t in range(steps):
        y = sin(y) * x
    return sum(y[i] * y[i])


def test_calls_in_several_threads_do_not_meet_in_one_block() -> None:
    # The tape has 8 MB.
    gradient = tc.grad(powers)
    arrays = [np.full((2, 20_000), 0.5 + 0.1 * k) for k in range(4)]
    expected = [gradient(*each, 50) for each in arrays]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda k: gradient(*arrays[k % 4], 50), range(16)))
    for k, each in enumerate(found):
        np.testing.assert_array_equal(each, expected[k % 4])
    for extent in (0, 1, 2):
        few = [each[:, :extent] for each in arrays]
        np.testing.assert_array_equal(gradient(*few[0], 50), expected[0][:extent])
