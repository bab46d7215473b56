"""Chunked arrays of Dask: how work grows with workers beside the same in NumPy, memory, and a worker that is killed.

Each worker is a process with one thread, chunks have 32 MB. Inputs are computed before the clock runs.
"""

from __future__ import annotations

import argparse
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait

import tcdsl as tc
from tcdsl import op

__all__ = ["main"]

SIDE = 2000
BINS = 256


@op
def blur(x):
    y[i, j] = x[clamp(i - 1), j] + x[clamp(i + 1), j] + x[i, clamp(j - 1)] + x[i, clamp(j + 1)] - 4 * x[i, j]
    return y


@op
def product(A, B):
    C[i, j] += A[i, k] * B[k, j]
    return C


@op
def histogram(x):
    h = np.zeros(256, dtype="int64")
    h[int(x[i, j] * 256)] += 1
    return h


@op
def misfit(w, x, y):
    r[i] += x[i, k] * w[k]
    e[()] += (r[i] - y[i]) ** 2
    return e


def numpy_blur(x: da.Array) -> da.Array:
    def of_block(x: np.ndarray) -> np.ndarray:
        inner = x[1:-1, 1:-1]
        return x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] - 4 * inner

    return da.map_overlap(of_block, x, depth=1, boundary="nearest", trim=False, dtype=x.dtype)


def numpy_misfit(w: np.ndarray, x: da.Array, y: da.Array) -> da.Array:
    return 2 * (x.T @ (x @ w - y))


class Job(NamedTuple):
    """What is timed: its inputs for a number of workers, and both ways to write it."""

    inputs: Callable[[int], tuple[Any, ...]]
    ours: Callable[..., Any]
    numpy: Callable[..., Any]


def _rows(chunks: int) -> da.Array:
    return da.random.default_rng(1).random((SIDE * chunks, SIDE), chunks=SIDE)


JOBS = {
    "stencil": Job(lambda n: (_rows(8 * n),), tc.interop.dask(blur), numpy_blur),
    "product": Job(
        lambda n: (_rows(2 * n).rechunk((SIDE, SIDE)), _rows(1)), tc.interop.dask(product), lambda A, B: A @ B
    ),
    "histogram": Job(
        lambda n: (_rows(8 * n),), tc.interop.dask(histogram), lambda x: da.histogram(x, BINS, range=(0, 1))[0]
    ),
    "gradient": Job(
        lambda n: (np.linspace(0, 1, SIDE), x := _rows(8 * n), x[:, 0]), tc.interop.dask(tc.grad(misfit)), numpy_misfit
    ),
}


@contextmanager
def _workers(count: int) -> Iterator[Client]:
    options = {"n_workers": count, "threads_per_worker": 1, "dashboard_address": None, "memory_limit": 0}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        client.wait_for_workers(count)
        yield client


def _seconds(client: Client, result: Callable[[], Any]) -> np.ndarray:
    # On the clock, and of the processor by the busiest worker, which other programs on the machine do not delay.
    before = client.run(time.process_time)
    begin = time.perf_counter()
    wait(dask.persist(result()))
    clock = time.perf_counter() - begin
    after = client.run(time.process_time)
    return np.array([clock, max(after[each] - before[each] for each in before)])


def _times(job: Job, workers: int, times: int) -> np.ndarray:
    # Medians of ours and NumPy's, in turns, after a round that compiles.
    with _workers(workers) as client:
        inputs = dask.persist(*job.inputs(workers))
        wait(inputs)
        both = (job.ours, job.numpy)
        np.testing.assert_allclose(*dask.compute(*[each(*inputs).sum() for each in both]), rtol=1e-6)
        taken = [[_seconds(client, lambda way=way: way(*inputs)) for way in both] for _ in range(times)]
    return np.median(taken, axis=0)


def scaling(times: int, only: str) -> None:
    columns = ("ours, 1", "ours, 2", "NumPy, 1", "NumPy, 2", "ours", "NumPy", "ratio")
    print(f"{'job':<28}" + "".join(f"{each:>10}" for each in columns))
    for name, job in JOBS.items():
        if only not in name:
            continue
        one, two = (_times(job, count, times) for count in (1, 2))
        for k, clock in enumerate(("clock", "busiest worker")):
            (mine, others), (mine_two, others_two) = one[:, k], two[:, k]
            scaled = mine / mine_two, others / others_two
            seconds = "".join(f"{each:>9.3f}s" for each in (mine, mine_two, others, others_two))
            ratios = "".join(f"{each:>10.2f}" for each in (*scaled, scaled[0] / scaled[1]))
            print(f"{f'{name}, {clock}':<28}{seconds}{ratios}", flush=True)


def _resident(peak: bool) -> float:
    # MB of this process, now or at most since the last question.
    status = Path("/proc/self/status").read_text(encoding="ascii")
    [line] = [each for each in status.splitlines() if each.startswith("VmHWM" if peak else "VmRSS")]
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return int(line.split()[1]) / 1024


def memory() -> None:
    x = _rows(64)
    jobs = {
        "stencil": (tc.interop.dask(blur)(x), tc.interop.dask(blur)(x[: 2 * SIDE])),
        "gradient": tuple(
            tc.interop.dask(tc.grad(misfit))(np.ones(SIDE), rows, rows[:, 0]) for rows in (x, x[: 2 * SIDE])
        ),
    }
    for name, (job, small) in jobs.items():
        with _workers(2) as client:
            # All that is imported and compiled once.
            dask.compute(*[small.sum() for _ in range(4)])
            before = client.run(_resident, False)
            job.sum().compute()
            after = client.run(_resident, True)
            above = ", ".join(f"{after[each] - before[each]:.0f}" for each in before)
            print(f"{name}, {x.nbytes / 1e9:.1f} GB: MB of each worker above its start: {above}", flush=True)


def killed() -> None:
    x = _rows(24)
    w = np.linspace(0, 1, SIDE)
    job = tc.interop.dask(tc.grad(misfit))(w, x, x[:, 0])
    with _workers(2) as client:
        expected = job.compute()
        begin = time.perf_counter()
        job.compute()
        whole = time.perf_counter() - begin
        [future] = client.compute([job])
        time.sleep(whole / 2)
        victim = client.run(os.getpid)
        address = next(iter(victim))
        os.kill(victim[address], signal.SIGKILL)
        found = future.result()
        gone = address not in client.scheduler_info()["workers"]
    np.testing.assert_array_equal(found, expected)
    print(f"a worker killed after half of {whole:.1f} s: gone {gone}, the gradient is the same to the last bit")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chunked", description=__doc__)
    parser.add_argument("part", nargs="?", choices=("scaling", "memory", "killed"), help="what to run alone")
    parser.add_argument("--only", default="", metavar="TEXT", help="of scaling: jobs whose names contain TEXT")
    parser.add_argument("--times", type=int, default=5, help="how often each job runs")
    options = parser.parse_args()
    if options.part in (None, "scaling"):
        scaling(options.times, options.only)
    if options.part in (None, "memory"):
        memory()
    if options.part in (None, "killed"):
        killed()


if __name__ == "__main__":
    main()
