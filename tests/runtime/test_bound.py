"""Programs bound to arrays run on them again and again, and do what calls do."""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tcdsl.errors import DataIndexError, ShapeError
from tcdsl.runtime.calling.execution import BoundProgram


@cd
def descend(w, g, *, rate):
    w -= rate * g
    return w * 2.0


@cd
def rotated(a, b):
    kept = tc.output(3)
    kept[i] = a[i]
    a[i] = b[i]
    b[i] = kept[i]


@cd
def moved(p, at, x):
    p[i] += x[at[i]]


@op
def copies(x):
    y = x * 2.0
    return y, x, y


@op
def product(A, B):
    C[i, j] += A[i, k] * B[k, j]
    return C


@op
def taken(x, at):
    y = tc.output()
    y[i] = x[at[i]]
    return y


@op
def root(x):
    return sqrt(x)


def bound(function: Any, *arguments: Any, outputs: Any = None, **keywords: Any) -> BoundProgram:
    call = function.signature.call(arguments, keywords)
    entry, arrays = function.staging.entry(call)
    return entry.executable.bind(arrays, outputs)


def test_runs_change_arrays_in_place_and_overwrite_outputs():
    w, g = np.array([1.0, 2.0]), np.array([0.5, -1.0])
    step = bound(descend, w, g, rate=0.5)
    assert w.tolist() == [1.0, 2.0]
    step()
    (doubled,) = step.outputs
    assert w.tolist() == [0.75, 2.5]
    assert doubled.tolist() == [1.5, 5.0]
    step()
    assert w.tolist() == [0.5, 3.0]
    assert step.outputs[0] is doubled
    assert doubled.tolist() == [1.0, 6.0]


def test_numbers_are_arrays_that_may_change():
    w, g = np.array([1.0, 2.0]), np.array([1.0, 1.0])
    step = bound(descend, w, g, rate=0.5)
    step.arrays[2][()] = 0.0
    step()
    assert w.tolist() == [1.0, 2.0]


def test_given_outputs_receive_results():
    A, B = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    out = np.full((2, 4), 7.0)
    run = bound(product, A, B, outputs=[out])
    assert run.outputs[0] is out
    run()
    np.testing.assert_array_equal(out, A @ B)


def test_one_result_may_be_an_input_or_another_result():
    x = np.array([1.0, 2.0])
    run = bound(copies, x)
    run()
    doubled, same, again = run.outputs
    assert (doubled.tolist(), same.tolist(), again.tolist()) == ([2.0, 4.0], [1.0, 2.0], [2.0, 4.0])
    assert len({array.__array_interface__["data"][0] for array in (x, *run.outputs)}) == 4
    x[0] = 5.0
    run()
    assert run.outputs[1].tolist() == [5.0, 2.0]


def test_arrays_that_exchange_cells():
    a, b = np.arange(3.0), np.arange(3.0) + 10
    run = bound(rotated, a, b)
    run()
    assert (a.tolist(), b.tolist()) == ([10.0, 11.0, 12.0], [0.0, 1.0, 2.0])
    run()
    assert (a.tolist(), b.tolist()) == ([0.0, 1.0, 2.0], [10.0, 11.0, 12.0])


@pytest.mark.parametrize("rows", [2, 3, 0])
def test_replaced_by_an_array_of_another_layout_and_shape(rows):
    A, B = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    run = bound(product, A, B)
    before = run.outputs[0]
    other = np.arange(18.0).reshape(3, 6)[:, ::2].T[:, :rows].T
    run.replace(0, other)
    run()
    np.testing.assert_array_equal(run.outputs[0], other @ B)
    assert (run.outputs[0] is before) == (rows == 2)


def test_a_refused_replacement_changes_nothing():
    A, B = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    run = bound(product, A, B)
    with pytest.raises(ShapeError, match="axis 0 of B, which has the extent 4"):
        run.replace(1, np.zeros((4, 4)))
    assert run.arrays[1] is B
    run()
    np.testing.assert_array_equal(run.outputs[0], A @ B)


def test_shared_memory_is_refused():
    memory = np.arange(4.0)
    with pytest.raises(ShapeError, match="writes to `w`, which shares memory with `g`"):
        bound(descend, memory[:2], memory[1:3], rate=0.5)
    # Arrays that interleave share no cell.
    bound(descend, memory[::2], memory[1::2], rate=0.5)()
    assert memory.tolist() == [-0.5, 1.0, 0.5, 3.0]


def test_read_only_and_misaligned_arrays_are_refused():
    w = np.zeros(2)
    w.flags.writeable = False
    with pytest.raises(ShapeError, match="read-only"):
        bound(descend, w, np.zeros(2), rate=0.5)
    crooked = np.zeros(17, np.uint8)[1:].view(np.float64)
    with pytest.raises(ShapeError, match="misaligned") as fault:
        bound(root, crooked)
    assert "bind arrays of their own" in str(fault.value)


def test_a_failed_run_changes_no_input_and_the_next_one_runs():
    p, at, x = np.zeros(3), np.array([0, 1, 5]), np.array([1.0, 2.0])
    run = bound(moved, p, at, x)
    for _ in range(2):
        with pytest.raises(DataIndexError, match="index 5 is out of range"):
            run()
        assert p.tolist() == [0.0, 0.0, 0.0]
    at[2] = 0
    run()
    assert p.tolist() == [1.0, 2.0, 1.0]


def test_a_failed_run_leaves_given_outputs_as_they_were():
    x, at, out = np.array([1.0, 2.0]), np.array([0, 7]), np.array([-1.0, -1.0])
    run = bound(taken, x, at, outputs=[out])
    with pytest.raises(DataIndexError):
        run()
    assert out.tolist() == [-1.0, -1.0]
    at[1] = 1
    run()
    assert out.tolist() == [1.0, 2.0]


def test_large_programs_run_on_threads():
    x = np.arange(1 << 21, dtype=np.float32)
    run = bound(root, x)
    for _ in range(2):
        run()
        np.testing.assert_allclose(run.outputs[0], np.sqrt(x), rtol=1e-6)


def test_a_thread_that_fails_stops_the_run_only():
    x, at = np.array([1.0, 2.0]), np.zeros(1 << 21, np.int64)
    run = bound(taken, x, at)
    at[-1] = at[-9] = 7
    for _ in range(2):
        with pytest.raises(DataIndexError, match="index 7 is out of range") as fault:
            run()
        assert f"i = {len(at) - 9}" in str(fault.value)
    at[-1] = at[-9] = 1
    run()
    assert run.outputs[0][-9:].tolist() == [2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0]


def test_nan_is_found_where_it_is_asked_for():
    x = np.array([4.0, -1.0])
    with tc.config(check="nan"):
        run = bound(root, x)
    with pytest.raises(Exception, match="holds NaN at"), np.errstate(all="ignore"):
        run()


def test_nothing_is_allocated():
    w, g = np.ones(100), np.ones(100)
    step = bound(descend, w, g, rate=0.5)
    step()
    before = sys.getallocatedblocks()
    for _ in range(1000):
        step()
    assert sys.getallocatedblocks() - before < 100


def test_threads_take_turns():
    w, g = np.zeros(1000), np.ones(1000)
    step = bound(descend, w, g, rate=1.0)
    workers = [threading.Thread(target=lambda: [step() for _ in range(200)]) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert w.tolist() == [-800.0] * 1000
