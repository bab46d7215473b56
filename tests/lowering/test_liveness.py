"""The memory of a call: temporaries that are not needed together share it, and the report is what is allocated."""

from __future__ import annotations

import math
import tracemalloc
from itertools import combinations

import numpy as np
import pytest

from tcdsl import op
from tcdsl.ir.sizes.size_binding import bind_sizes, evaluate_size
from tcdsl.ir.text.parser import parse_program
from tcdsl.lowering.loop_passes.liveness import lifetimes, peak_bytes
from tcdsl.lowering.loopir.loops import Buffer, Kernel
from tcdsl.lowering.lower import lower
from tcdsl.targets.cpu.call import spare_memory
from tcdsl.targets.protocol.target import Build
from tests.lowering.cases import CASES
from tests.lowering.placement import place_temporaries
from tests.targets.compiling import compile_kernel


def chain(length: int, *, nested: bool = False) -> Kernel:
    """Steps that mirror the one before, so that each needs all of its cells; ``nested`` ends with the sum of all."""
    lines = ["program chain", "input x: float64[N]", *(f"tensor t{k}: float64[N]" for k in range(length))]
    for k in range(length):
        before = f"t{k - 1}" if k else "x"
        lines.append(f"t{k}[i] = tanh({before}[N - 1 - i])  for [i]: 0 <= i < N")
    if nested:
        total = " + ".join(f"t{k}[N - 1 - i]" for k in range(length))
        lines += ["tensor y: float64[N]", f"y[i] = {total}  for [i]: 0 <= i < N"]
    return lower(parse_program("\n".join([*lines, f"return {'y' if nested else f't{length - 1}'}", ""])))


def test_temporaries_share_memory_when_they_are_not_needed_together() -> None:
    use = peak_bytes(chain(30), {"N": 1000})
    # Each step needs the one before: two live at once, whatever the length.
    assert use.temporaries == 2 * 8000
    assert use.unshared == 29 * 8000
    assert (use.inputs, use.outputs, use.peak) == (8000, 8000, 32000)
    assert peak_bytes(chain(3, nested=True), {"N": 1000}).temporaries == 3 * 8000


@pytest.mark.parametrize("name", CASES)
def test_living_temporaries_never_overlap(name: str) -> None:
    case = CASES[name]
    made = lower(parse_program(case.text))
    lives = lifetimes(made)
    for extents in case.sizes:
        sizes = bind_sizes(made.program, [np.shape(each) for each in case.inputs(*extents)])
        offsets, size = place_temporaries(made, sizes)
        temporaries = [buffer for buffer in made.buffers if buffer.kind == "temporary"]
        assert set(offsets) == {buffer.name for buffer in temporaries}
        ends = {each.name: offsets[each.name] + bytes_of(each, sizes) for each in temporaries}
        assert all(end <= size for end in ends.values())
        for one, other in combinations(ends, 2):
            if lives[one][0] <= lives[other][1] and lives[other][0] <= lives[one][1]:
                assert ends[one] <= offsets[other] or ends[other] <= offsets[one]


def bytes_of(buffer: Buffer, sizes: dict[str, int]) -> int:
    return math.prod(max(0, evaluate_size(extent, sizes)) for extent in buffer.shape) * np.dtype(buffer.dtype).itemsize


def test_results_with_shared_memory() -> None:
    x = np.random.default_rng(0).uniform(-1, 0, 5000)
    made = chain(9, nested=True)
    compiled = compile_kernel(made, contiguous=(True,), options=Build(()))
    for n in (5000, 1, 0, 3):
        np.testing.assert_allclose(compiled.run([x[:n]], {"N": n})[0], reference(x[:n]), rtol=1e-12)


def reference(x: np.ndarray) -> np.ndarray:
    total = np.zeros_like(x)
    for _ in range(9):
        x = np.tanh(x[::-1])
        total += x[::-1]
    return total


@pytest.mark.parametrize("length", [1, 2, 12])
def test_the_report_is_what_a_call_allocates(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spare_memory, "_SMALL", spare_memory._LARGE)  # no memory waits for the next call
    made = chain(length)
    compiled = compile_kernel(made, contiguous=(True,), options=Build(()))
    x = np.ones(1 << 17)
    compiled.run([x], {"N": x.size})
    use = peak_bytes(made, {"N": x.size})
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    result = compiled.run([x], {"N": x.size})
    after, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert abs(peak - before - (use.outputs + use.temporaries)) < 20_000
    assert after - before < use.outputs + 20_000, "temporaries do not outlive the call"
    assert use.inputs == x.nbytes
    assert result[0].nbytes == use.outputs


@op
def mirrored_twice(x):
    N = x.shape[0]
    a[i] = exp(x[N - 1 - i])
    b[i] = exp(a[N - 1 - i])
    return b


def test_explanations_of_a_call_end_with_its_memory() -> None:
    x = np.ones(1000, np.float32)
    text = mirrored_twice.explain("loops", x)
    assert text.endswith("memory: 4000 bytes of inputs, 4000 of outputs, 4032 of temporaries; peak 12032\n")
    np.testing.assert_allclose(mirrored_twice(x), np.exp(np.exp(x)), rtol=1e-6)
    assert "memory:" not in mirrored_twice.explain("loops")
