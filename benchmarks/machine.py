"""What a result depends on: the processor, the cores, the versions, the threading environment, and what else runs.

>>> multiply_add_peak("float32")        # operations a second of one core, with all operands in registers
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import os
import platform
import resource
import time
from collections.abc import Callable
from functools import cache
from math import prod
from pathlib import Path

import numpy as np

__all__ = [
    "ForeignTime",
    "copy_speed",
    "describe_machine",
    "multiply_add_peak",
    "multiply_adds",
    "text_of_chains",
]

PACKAGES = ("tcdsl", "numpy", "numba", "llvmlite", "islpy", "torch", "jax")
ENVIRONMENT = ("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "XLA_FLAGS")


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def describe_machine(threads: int) -> dict[str, object]:
    """A JSON-ready description; ``threads`` is what was asked for, 0 for all cores."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "threads": threads or os.cpu_count(),
        "versions": {package: version for package in PACKAGES if (version := _version(package)) is not None},
        "environment": {name: os.environ[name] for name in ENVIRONMENT if name in os.environ},
    }


class ForeignTime:
    """Processor time that other processes took meanwhile: ``ForeignTime().share()``, of all that there was.

    None where the system does not tell.
    """

    def __init__(self) -> None:
        self._begin = time.perf_counter(), _busy(), _own()

    def share(self) -> float | None:
        """From the beginning until now."""
        begin, busy, own = self._begin
        now = _busy()
        if busy is None or now is None:
            return None
        elapsed = (time.perf_counter() - begin) * (os.cpu_count() or 1)
        return max(0.0, (now - busy) - (_own() - own)) / max(elapsed, 1e-9)


def _busy() -> float | None:
    # Seconds in which the cores did something, for whomever.
    try:
        words = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()[1:]
    except OSError:
        return None
    user, nice, system, _idle, _wait, *others = map(int, words)
    return (user + nice + system + sum(others[:3])) / os.sysconf("SC_CLK_TCK")


def _own() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def copy_speed(threads: int) -> float:
    """Bytes a second that copying more than the caches hold reads and writes, on so many threads."""
    import tcdsl as tc
    from benchmarks.programs import copied

    source = np.ones(1 << 24, np.float32)
    target = np.zeros_like(source)
    with tc.config(threads=threads):
        return 2 * source.nbytes / _fastest(lambda: copied(source, out=target), 5)


def _sums(dtype: str) -> tuple[int, int]:
    # How many vector registers hold sums: less than there are by some for what they need; and the lanes of each.
    from tcdsl.targets.cpu.machine.processor import machine

    host = machine()
    return (24 if host.registers == 32 else 10), host.vector_bytes // np.dtype(dtype).itemsize


def text_of_chains(dtype: str) -> str:
    """A function of LLVM, ``peak(n, p)``, that adds products to sums in registers ``n`` times."""
    count, lanes = _sums(dtype)
    kind = f"<{lanes} x {'float' if dtype == 'float32' else 'double'}>"
    function = f"@llvm.fma.v{lanes}f{32 if dtype == 'float32' else 64}"
    sums = [f"%s{k} = phi {kind} [ zeroinitializer, %begin ], [ %t{k}, %loop ]" for k in range(count)]
    steps = [f"%t{k} = call {kind} {function}({kind} %s{k}, {kind} %x, {kind} %x)" for k in range(count)]
    stores = [
        f"%p{k} = getelementptr {kind}, ptr %p, i64 {k}\nstore {kind} %t{k}, ptr %p{k}, align 4" for k in range(count)
    ]
    lines = [
        f"declare {kind} {function}({kind}, {kind}, {kind})",
        "define void @peak(i64 %n, ptr %p) {\nbegin:",
        f"%x = load {kind}, ptr %p, align 4\nbr label %loop\nloop:",
        "%i = phi i64 [ 0, %begin ], [ %j, %loop ]",
        *sums,
        *steps,
        "%j = add i64 %i, 1\n%more = icmp slt i64 %j, %n\nbr i1 %more, label %loop, label %end\nend:",
        *stores,
        "ret void\n}\n",
    ]
    return "\n".join(lines)


@cache
def _loaded(dtype: str) -> object:
    from tcdsl.targets.cpu.machine.object_code import LoadedObject, object_code

    return LoadedObject([object_code(text_of_chains(dtype), 1)], ["peak"])


def multiply_adds(dtype: str, operations: int) -> Callable[[], object]:
    """A function that makes at least so many operations on one core, with all operands in registers."""
    address, memory = _loaded(dtype).addresses["peak"], np.zeros(4096, dtype)  # type: ignore[attr-defined]
    rounds = -(-operations // (2 * prod(_sums(dtype))))
    call = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p)(address)
    return lambda: call(rounds, memory.ctypes.data)


def multiply_add_peak(dtype: str) -> float:
    """Operations a second of one core, with all operands in registers."""
    operations = 100_000 * 2 * prod(_sums(dtype))
    return operations / _fastest(multiply_adds(dtype, operations), 10)


def _fastest(function: object, times: int) -> float:
    found = []
    for _ in range(times):
        begin = time.perf_counter()
        function()  # type: ignore[operator]
        found.append(time.perf_counter() - begin)
    return min(found)
