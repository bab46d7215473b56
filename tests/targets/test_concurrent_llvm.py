"""LLVM in several threads: the same object code, what fails is said, and llvmlite's own functions as the other way."""

from __future__ import annotations

import pytest

from tcdsl.targets.cpu.machine import concurrent_llvm
from tcdsl.targets.cpu.machine.concurrent_llvm import concurrently
from tcdsl.targets.cpu.machine.object_code import object_code

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
