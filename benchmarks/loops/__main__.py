"""The command line of ``python -m benchmarks.loops``: time for each contender, which take turns in one process.

Memory is what the most that a process of its own held is above what it held before the first call, compilation
included. A contender without a row was not written, or cannot be: Numba has no gradients.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

__all__ = ["CASES", "contenders", "main"]

_GENERATOR = np.random.default_rng(3)


def _matrix(n: int) -> np.ndarray:
    a = _GENERATOR.standard_normal((n, n))
    return a @ a.T / n + np.eye(n)


def _grid(n: int) -> tuple[np.ndarray, np.ndarray]:
    x, y = np.meshgrid(np.linspace(-2, 1, n), np.linspace(-1, 1, n))
    return x, y


def _markov(states: int, symbols: int, length: int) -> tuple[np.ndarray, ...]:
    rows = [_GENERATOR.random(shape) for shape in ((states,), (states, states), (states, symbols))]
    observed = _GENERATOR.integers(0, symbols, length)
    return (*(row / row.sum(-1, keepdims=True) for row in rows), observed)


def _network(length: int, batch: int, size: int) -> tuple[np.ndarray, ...]:
    matrices = [_GENERATOR.standard_normal((size, 4 * size)) / size**0.5 for _ in range(2)]
    return *matrices, _GENERATOR.standard_normal((length, batch, size)), np.zeros((batch, size))


def _walk(length: int) -> tuple[np.ndarray, ...]:
    return np.array([-2.0, -1.0]), _GENERATOR.standard_normal(length), np.array([[1.0, 0.1], [0.0, 1.0]]), np.eye(2)


def _waves(n: int, steps: int) -> tuple[Any, ...]:
    return np.full((n, n), 0.2), np.zeros((n, n)), _GENERATOR.random((n, n)), steps


def _texts(length: int) -> tuple[np.ndarray, ...]:
    return tuple(_GENERATOR.integers(0, 4, (2, length)))


def _state() -> tuple[np.float64, ...]:
    return np.float64(1), np.float64(1), np.float64(1)


# The computation, its arguments by scale (1 is what is reported), and whether it changes the first of them.
CASES: dict[str, tuple[Callable[[int], tuple[Any, ...]], bool]] = {
    "wave": (lambda s: (np.zeros((512 // s, 512 // s)), _GENERATOR.random((512 // s, 512 // s)), 0.2, 100 // s), False),
    "lorenz": (lambda s: (*_state(), 1_000_000 // s**4, 1e-5), False),
    "lorenz_gradient": (lambda s: (*_state(), 100_000 // s**3, 1e-4), False),
    "cholesky": (lambda s: (_matrix(500 // s),), True),
    "floyd_warshall": (lambda s: (_GENERATOR.random((300 // s, 300 // s)),), False),
    "forward_algorithm": (lambda s: _markov(32, 16, 10_000 // s**2), False),
    "wave_gradient": (lambda s: _waves(512 // s, 100 // s), False),
    "wave_gradient_checkpointed": (lambda s: _waves(512 // s, 100 // s), False),
    "lstm_gradient": (lambda s: _network(64 // s, 32 // s, 128 // s), False),
    "viterbi": (lambda s: _markov(32, 16, 10_000 // s**2), False),
    "conjugate_gradient": (lambda s: (_matrix(1000 // s), _GENERATOR.random(1000 // s), 1e-16), False),
    "kalman_gradient": (lambda s: _walk(10_000 // s**2), False),
    "insertion_sort": (lambda s: (_GENERATOR.random(5000 // s),), False),
    "edit_distance": (lambda s: _texts(1000 // s), False),
    "gauss_seidel": (lambda s: (*_GENERATOR.random((2, 300 // s, 300 // s)), 10), False),
    "mandelbrot": (lambda s: (*_grid(512 // s), 100), False),
}


def contenders(name: str, modules: dict[str, ModuleType]) -> dict[str, Callable[..., Any]]:
    """Who has written the computation ``name``."""
    return {peer: getattr(module, name) for peer, module in modules.items() if hasattr(module, name)}


def run(function: Callable[..., Any], arguments: tuple[Any, ...], changes: bool) -> tuple[Any, float]:
    """The result, and the seconds that it took."""
    given = (arguments[0].copy(), *arguments[1:]) if changes else arguments
    begin = time.perf_counter()
    result = function(*given)
    found = np.tril(given[0]) if changes else np.asarray(result)
    return found, time.perf_counter() - begin


PEERS = {"tcdsl": "programs", "Numba by hand": "by_hand", "JAX": "jax_peer", "PyTorch": "torch_peer"}
_SHORT = {"Numba by hand": "numba", "JAX": "jax", "PyTorch": "torch"}


def _modules(names: dict[str, str]) -> dict[str, ModuleType]:
    found: dict[str, ModuleType] = {}
    for peer, name in names.items():
        try:
            found[peer] = import_module(f"benchmarks.loops.{name}")
        except ImportError:
            continue
    return found


def memory_of(name: str, peer: str, scale: int) -> float:
    """The memory of one call, in MB, by a process of its own."""
    command = [sys.executable, "-m", "benchmarks.loops", "--memory-of", peer, "--only", name, "--scale", str(scale)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def _held(name: str, peer: str, scale: int) -> float:
    make, changes = CASES[name]
    [module] = _modules({peer: PEERS[peer]}).values()
    given = make(scale)
    Path("/proc/self/clear_refs").write_text("5")  # the most begins anew
    before = _most_held()
    run(getattr(module, name), given, changes)
    return (_most_held() - before) / 1000


def _most_held() -> int:
    # In kB. What `resource` says of a process begins with what its parent held.
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; the exit status is 1 if contenders disagree."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.loops", description=__doc__)
    parser.add_argument("--only", default="", metavar="TEXT", help="run the computations whose name contains TEXT")
    parser.add_argument("--samples", type=int, default=7, help="samples of each contender")
    parser.add_argument("--scale", type=int, default=1, help="divide the sizes by so much")
    parser.add_argument("--peers", nargs="*", choices=("numba", "jax", "torch"), default=("numba", "jax", "torch"))
    parser.add_argument("--memory-of", metavar="PEER", help="print the memory of one call of this contender alone")
    options = parser.parse_args(arguments)
    if options.memory_of is not None:
        sys.stdout.write(f"{_held(options.only, options.memory_of, options.scale)}\n")
        return 0

    from rich.console import Console
    from rich.table import Table

    modules = _modules({peer: name for peer, name in PEERS.items() if _SHORT.get(peer, "") in ("", *options.peers)})
    table = Table("computation", "contender", "first call, s", "median, ms", "others over ours", "memory, MB")
    for name, (make, changes) in CASES.items():
        if options.only not in name:
            continue
        given = make(options.scale)
        peers = contenders(name, modules)
        firsts = {peer: run(function, given, changes) for peer, function in peers.items()}
        wanted = firsts["tcdsl"][0]
        for peer, (found, _) in firsts.items():
            if not np.allclose(found, wanted, rtol=1e-6):
                Console().print(f"[red]{name}: {peer} disagrees[/]")
                return 1
        samples: dict[str, list[float]] = {peer: [] for peer in peers}
        for _ in range(options.samples):
            for peer, function in peers.items():
                samples[peer].append(run(function, given, changes)[1])
        medians = {peer: float(np.median(times)) for peer, times in samples.items()}
        for peer, median in medians.items():
            row = f"{firsts[peer][1]:.2f}", f"{1e3 * median:.3f}", f"{median / medians['tcdsl']:.2f}"
            row = *row, f"{memory_of(name, peer, options.scale):.0f}"
            table.add_row(name if peer == "tcdsl" else "", peer, *row)
    Console().print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
