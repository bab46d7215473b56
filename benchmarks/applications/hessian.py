"""The Hessian of xᵀ A x in the time and memory that writing it down takes.

Differentiated twice, the sum of N² terms becomes A + Aᵀ, N² numbers of one addition each. Frameworks that get a Hessian
by pushing N unit vectors through the gradient multiply N x N matrices instead, or run the gradient N times.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import tcdsl as tc
from benchmarks.applications.presentation import BLUE, GREY, ORANGE, Outcome, Report, present
from benchmarks.timing import alternate
from tcdsl import op, output
from tcdsl.indices import i, j

__all__ = ["growth", "hessian_of_jax", "hessian_of_torch", "operations", "quadratic", "run"]

Array = np.ndarray[Any, np.dtype[Any]]


@op
def quadratic(x: Any, A: Any) -> Any:
    """(N,), (N, N) -> (): xᵀ A x."""
    total = output()
    total[()] += x[i] * A[i, j] * x[j]
    return total


def hessian_of_jax() -> Callable[[Array, Array], Any]:
    """The same by JAX, compiled: forward mode over reverse mode."""
    import jax

    jax.config.update("jax_enable_x64", True)
    derived = jax.jit(jax.hessian(lambda x, A: x @ A @ x))
    return lambda x, A: derived(x, A).block_until_ready()


def hessian_of_torch() -> Callable[[Array, Array], Any]:
    """The same by PyTorch: forward mode over reverse mode."""
    import torch

    derived = torch.func.hessian(lambda x, A: x @ A @ x)
    return lambda x, A: derived(torch.from_numpy(x), torch.from_numpy(A))


PEERS = {"jax": hessian_of_jax, "torch": hessian_of_torch}


def growth(seconds: dict[int, float]) -> float:
    """The exponent e of ``time = c N^e`` through the three largest sizes, which caches help least."""
    sizes = sorted(seconds)[-3:]
    return float(np.polyfit(np.log(sizes), np.log([seconds[size] for size in sizes]), 1)[0])


def operations(size: int) -> int:
    """How many operations the Hessian takes."""
    return int(tc.hessian(quadratic).cost(np.ones(size), np.ones((size, size))).primal.operations.weighted)


def run(quick: bool, report: Report) -> Outcome:
    """Time the Hessian for growing N, the contenders of a size taking turns; peers stop where they get slow."""
    sizes, most = ([100, 200, 400, 800], 400) if quick else ([100, 200, 400, 800, 1600, 3200, 6400], 1600)
    generator = np.random.default_rng(0)
    ours = tc.hessian(quadratic)
    peers = {name: make() for name, make in PEERS.items() if importlib.util.find_spec(name) is not None}
    seconds: dict[str, dict[int, float]] = {name: {} for name in ("tcdsl", "numpy A + A.T", *peers)}
    wrong = 0.0
    for done, size in enumerate(sizes):
        report(done / len(sizes), f"N = {size}")
        x, A = generator.standard_normal(size), generator.standard_normal((size, size))
        contenders = {"tcdsl": ours, "numpy A + A.T": lambda x, A: A + A.T}
        if size <= most:
            contenders.update(peers)
        for function in contenders.values():
            wrong = max(wrong, float(np.abs(np.asarray(function(x, A)) - A - A.T).max()))
        calls = {name: partial(function, x, A) for name, function in contenders.items()}
        for name, timing in alternate(calls, seconds=0.3).items():
            seconds[name][size] = timing.median

    def draw(figure: Any) -> None:
        panel = figure.subplots()
        colors = dict(zip(seconds, (BLUE, GREY, ORANGE, "#3a8a4d"), strict=False))
        for name, times in seconds.items():
            label = f"{name}: N^{growth(times):.1f}"
            panel.loglog(list(times), [1e3 * time for time in times.values()], "o-", color=colors[name], label=label)
        panel.set(title="Hessian of xᵀ A x", xlabel="N", ylabel="ms")
        panel.legend()

    outcome = Outcome("Hessians of xᵀ A x", draw, (7, 5))
    text = ours.explain("ir", x, A).splitlines()
    outcome.add("the program", next(line.split("  for")[0] for line in text if "] = " in line))
    for name, times in seconds.items():
        last = max(times)
        outcome.add(name, f"{1e3 * times[last]:.4g} ms for N = {last}, grows like N^{growth(times):.2f}")
    for name in peers:
        ratios = ", ".join(f"{time / seconds['tcdsl'][size]:.3g}" for size, time in seconds[name].items())
        outcome.add(f"{name} / tcdsl", f"{ratios} for N = {', '.join(map(str, seconds[name]))}")
    counts = ", ".join(f"{operations(size):,} for N = {size}" for size in (100, 200, 400))
    outcome.add("operations", counts)
    outcome.add("memory", ours.explain("loops", x, A).splitlines()[-1].removeprefix("memory: "))
    outcome.add("largest difference", f"{wrong:.0e} from A + Aᵀ")
    return outcome


if __name__ == "__main__":
    present(run, "hessian", __doc__)
