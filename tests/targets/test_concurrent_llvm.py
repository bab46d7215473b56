"""LLVM in several threads: the same object code, what fails is said, and llvmlite's own functions as the other way."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tcdsl.locks import COMPILING_AHEAD
from tcdsl.targets.cache.store import ProgramStore
from tcdsl.targets.cpu.machine import concurrent_llvm, machine_code
from tcdsl.targets.cpu.machine.concurrent_llvm import concurrently
from tcdsl.targets.cpu.machine.machine_code import python_function
from tcdsl.targets.cpu.machine.object_code import emission, object_code

LOOP = """
define void @f{0}(ptr %p, i64 %n) {{
start:
  br label %loop
loop:
  %i = phi i64 [ 0, %start ], [ %j, %loop ]
  %q = getelementptr float, ptr %p, i64 %i
  %v = load float, ptr %q
  %w = fadd float %v, {0}.0
  store float %w, ptr %q
  %j = add nsw i64 %i, 1
  %more = icmp slt i64 %j, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}}
"""
LOOPS = [LOOP.format(k) for k in range(40)]


def test_threads_make_the_same_object_code() -> None:
    alone = list(concurrently(object_code, LOOPS, 1))
    assert list(concurrently(object_code, iter(LOOPS), 4)) == alone
    assert len(set(alone)) == len(LOOPS)


def test_where_llvmlite_has_changed_its_own_functions_are_called(monkeypatch: pytest.MonkeyPatch) -> None:
    unlocked = object_code(LOOPS[3])
    monkeypatch.setattr(concurrent_llvm, "_unlocked", lambda name: None)
    assert object_code(LOOPS[3]) == unlocked


@pytest.mark.parametrize("threads", [1, 3])
def test_the_first_fault_is_raised(threads: int) -> None:
    with pytest.raises(RuntimeError, match="parsing error"):
        list(concurrently(object_code, [*LOOPS[:3], "define junk", *LOOPS], threads))


def test_programs_compile_while_the_interpreter_ends(tmp_path: Path) -> None:
    program = tmp_path / "late.py"
    program.write_text(
        "import atexit\n"
        "import numpy as np\n"
        "import tcdsl as tc\n"
        "from tcdsl import op\n"
        "@op\n"
        "def two(x):\n"
        "    y[i] = exp(x[i])\n"
        "    z[j, k] = y[j] * x[k]\n"
        "    total[()] += z[j, k]\n"
        "    return total\n"
        f"tc.config(cache_dir={str(tmp_path)!r}, optimize=False)\n"
        "atexit.register(lambda: print(two(np.zeros(3)) == 0))\n"
    )
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True"], done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_processes_fork_while_a_thread_calls_for_the_first_time(tmp_path: Path) -> None:
    program = tmp_path / "forking.py"
    program.write_text(f"""
import os, threading, time
import numpy as np
import tcdsl as tc
from tcdsl import op

@op
def product(x):
    c[i, j] += x[i, k] * x[j, k]
    return c

tc.config(cache_dir={str(tmp_path)!r})
x = np.ones((3, 4))
thread = threading.Thread(target=lambda: product(x))
thread.start()
children = []
for _ in range(3):
    time.sleep(0.1)
    child = os.fork()
    if child == 0:
        os._exit(0 if (product(x) == 4).all() else 1)
    children.append(child)
thread.join()
print([os.waitpid(child, 0)[1] for child in children])
""")
    # Python warns of forks beside threads.
    command = [sys.executable, "-W", "ignore", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    assert done.stdout.split() == ["[0,", "0,", "0]"], done.stderr


def test_a_driver_that_was_begun_is_not_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def noted(text: str, *options: object, **named: object) -> bytes:
        made.append(threading.current_thread().name)
        return object_code(text, 2)

    monkeypatch.setattr(machine_code, "object_code", noted)
    place, text = ProgramStore(tmp_path), "def seven() -> int:\n    return SEVEN\n"
    for _ in range(2):
        machine_code.begin_driver(place, text, {"SEVEN": 7})
    driver = machine_code.compiled_driver(place, text, {"SEVEN": 7})
    assert made == ["tcdsl driver"]
    assert python_function(driver, "seven")() == 7
    machine_code.begin_driver(place, text, {"SEVEN": 7})
    assert COMPILING_AHEAD.acquire(blocking=False)
    COMPILING_AHEAD.release()


def test_machine_code_that_is_made_otherwise_waits() -> None:
    order: list[str] = []

    def lasting() -> None:
        with emission(quick=False):
            order.append("lasting")

    with emission(quick=True), emission(quick=True):
        thread = threading.Thread(target=lasting)
        thread.start()
        thread.join(0.05)
        order.append("quick")
    thread.join()
    assert order == ["quick", "lasting"]
