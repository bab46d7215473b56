"""A process that is forked while other threads stage, compile or run can do all of that itself."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tcdsl import locks

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

SCRIPT = """
import multiprocessing, os, threading, time
import numpy as np
import tcdsl as tc
import tcdsl.locks

tcdsl.locks._PATIENCE = 1000.0  # No fork may need it.

@tc.op
def heavy(x, *, steps):
    t[i] = x[i]
    for n in range(steps):
        t = t * 1.5 + exp(t) * sin(t + n) / (1 + square(t))
    return t

@tc.op
def light(x):
    y[i] = x[i] * 2.0 + 1
    return y

def child(queue):
    x = np.arange(3.0)
    w = tc.param("w", init=x)
    queue.put((light(x).tolist(), tc.grad(lambda x: (light(x) ** 2).sum())(x).tolist(), (w * w).value.tolist()))

def compile_on():
    for steps in range(6, 1000):
        heavy(np.ones(4), steps=steps)
        compiled.append(steps)

compiled = []
threading.Thread(target=compile_on, daemon=True).start()
while not compiled:
    time.sleep(0.01)
context = multiprocessing.get_context("fork")
for wait in (0.05, 0.2):
    time.sleep(wait)
    queue = context.Queue()
    process = context.Process(target=child, args=(queue,))
    process.start()
    assert queue.get(timeout=60) == ([1, 3, 5], [4, 12, 20], [0, 1, 4])
    process.join(60)
    assert process.exitcode == 0
before = len(compiled)
while len(compiled) == before:
    time.sleep(0.01)
print("done")
os._exit(0)
"""


def test_a_fork_while_another_thread_compiles(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    command = [sys.executable, "-W", "ignore", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "done\n", done.stderr[-2000:]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:os.fork:RuntimeWarning")
def test_locks_that_are_never_released_are_open_in_a_forked_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "_PATIENCE", 0.05)
    held, ended = threading.Event(), threading.Event()
    own = locks.lock_of_this_process()

    def hold() -> None:
        with locks.COMPILING, own:
            held.set()
            ended.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(60)
    child = os.fork()
    if child == 0:
        os._exit(0 if locks.COMPILING.acquire(timeout=5) and own.acquire(timeout=5) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert not locks.COMPILING.acquire(blocking=False)
    assert own.locked()
    ended.set()
    thread.join()
    assert locks.COMPILING.acquire(timeout=5)
    locks.COMPILING.release()


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:os.fork:RuntimeWarning")
def test_the_thread_that_compiles_may_fork_itself() -> None:
    with locks.COMPILING:
        child = os.fork()
        if child == 0:
            locks.COMPILING.release()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
