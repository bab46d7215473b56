"""Object code in memory: wherever the system has room for it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tcdsl.targets.cpu.emission.interface import READY, TILED
from tcdsl.targets.cpu.machine.object_code import emission, optimized

# Holes of a few pages here and there, eight gigabytes taken between them: code and its constants come to lie far apart.
FRAGMENTED = """
import mmap
from tcdsl.targets.cpu.machine.object_code import LoadedObject, object_code

CODE = '''
@numbers = private constant [3000 x double] [{}]
define double @f(i64 %k) {{
    %place = getelementptr [3000 x double], [3000 x double]* @numbers, i64 0, i64 %k
    %number = load double, double* %place
    ret double %number
}}
'''
code = object_code(CODE.format(", ".join(f"double {k}.0" for k in range(3000))))
LoadedObject([code], ["f"])
flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
kinds = (mmap.PROT_READ | mmap.PROT_WRITE, mmap.PROT_READ)
pages = [mmap.mmap(-1, 4096 * (1 + k % 4), flags=flags, prot=kinds[k % 2]) for k in range(4000)]
between = mmap.mmap(-1, 8 << 30, flags=flags, prot=mmap.PROT_READ)
for page in pages[::2]:
    page.close()
kept = [LoadedObject([code], ["f"]) for _ in range(300)]
import ctypes
function = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int64)
assert [function(each.addresses["f"])(2999) for each in kept] == [2999.0] * 300
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="lays out memory as Linux does")
def test_code_may_lie_far_from_its_constants() -> None:
    done = subprocess.run([sys.executable, "-c", FRAGMENTED], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-1000:]


@pytest.mark.parametrize("long", [False, True])
def test_short_nests_are_optimized_where_long_ones_are_only_cleaned_up(long):
    body = ["entry:", "  br label %head", "head:", "  %i = phi i64 [0, %entry], [%next, %head]"]
    body += ["  %next = add i64 %i, 1", "  %more = icmp ult i64 %next, 4", "  br i1 %more, label %head, label %end"]
    text = "\n".join(["define i64 @counted() {", *body, "end:", "  ret i64 %next", "}", READY, ""])
    made = str(optimized(text + f"; {'x' * 100_000}\n" * long, 2))
    # The loop is gone where LLVM has gone through it.
    assert ("phi" in made) == long
    assert "phi" in str(optimized(text, 1))


def test_tiles_have_the_instructions_that_they_need():
    body = ["  %a = add i64 %x, 1", "  %b = add i64 %a, 2", "  ret i64 %b", "}", READY, ""]
    text = "\n".join(["define i64 @next(i64 %x) {", *body])
    assert [str(optimized(each, 1)).count("= add") for each in (text, text + TILED + "\n")] == [1, 2]


STRIDED = """
define void @column(ptr noalias %y, ptr noalias %x, i64 %stride, i64 %count) {
entry:
  br label %head
head:
  %i = phi i64 [0, %entry], [%next, %head]
  %cell = mul nsw i64 %i, %stride
  %from = getelementptr inbounds double, ptr %x, i64 %cell
  %number = load double, ptr %from
  %a = fmul double %number, %number
  %b = fdiv double %number, %a
  %c = call double @llvm.sqrt.f64(double %b)
  %to = getelementptr inbounds double, ptr %y, i64 %i
  store double %c, ptr %to
  %next = add nsw i64 %i, 1
  %more = icmp slt i64 %next, %count
  br i1 %more, label %head, label %end
end:
  ret void
}
declare double @llvm.sqrt.f64(double)
"""


def test_columns_are_read_by_vectors_whatever_their_stride():
    with emission(quick=True):
        made = str(optimized(STRIDED, 2))
    assert " x double> @llvm.sqrt" in made
    # There is no second loop for other strides than 1.
    assert "%stride, 1" not in made
