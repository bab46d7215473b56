"""The list of passes: each may be left out, and nothing but the work changes."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tcdsl.autodiff import adjoint
from tcdsl.config import settings
from tcdsl.errors import ConfigurationError
from tcdsl.ir.interpreter.interpreter import interpret
from tcdsl.ir.program import Program
from tcdsl.ir.text.parser import parse_program
from tcdsl.lowering.loopir.machine import Machine
from tcdsl.lowering.lower import lower
from tcdsl.lowering.pass_log import PassLog
from tcdsl.lowering.pipeline import NEST_PASSES, PASSES
from tcdsl.pass_names import OF_ROUNDS, OPTIONAL, chosen_passes
from tests.golden_texts import Golden
from tests.long_variants import every
from tests.lowering import (
    test_contraction_tiles,
    test_data_ranges,
    test_end_checks,
    test_phases,
    test_row_blocks,
    test_row_buffers,
    test_stencil_chains,
    test_summing,
    test_sweeps,
)
from tests.lowering.cases import CASES, real
from tests.lowering.loop_interpreter import execute
from tests.lowering.test_lowering import agree
from tests.lowering.test_plausible_faults import staged
from tests.lowering.test_specialized import TRANSPOSED, UNIT_AXES, special

WASTEFUL = """program wasteful
input x: float64[N]
tensor a: float64[N]
tensor b: float64[N]
tensor unused: float64[N]
tensor y: float64[N]
a[i] = x[i] * (2.0 + 3.0)  for [i]: 0 <= i < N
b[i] = a[i]  for [i]: 0 <= i < N
unused[i] = x[i]  for [i]: 0 <= i < N
y[i] = exp(a[i]) + exp(a[i]) * b[N - 1 - i]  for [i]: 0 <= i < N
return y
"""
DIAGONAL = """program diagonal_matrix
input x: float64[N]
tensor A: float64[N, N]
tensor y: float64[N]
A[i, j] = x[i] if i == j else 0.0  for [i, j]: 0 <= i < N and 0 <= j < N
y[i] += A[i, j] * x[j]  for [i, j]: 0 <= i < N and 0 <= j < N
return y
"""
OUTER = """program outer_product_of_columns
input x: float64[N, M]
tensor y: float64[N, N]
y[i, j] = x[i, 1] * x[j, 1]  for [i, j]: 0 <= i < N and 0 <= j < N and M > 1
return y
"""
RUNNING = """program running_totals_of_columns
input x: float64[N, M]
tensor y: float64[N, M]
y[i, j] += x[k, j]  for [i, j, k]: i < N and 0 <= j < M and 0 <= k <= i
return y
"""
RECTIFIED = """program product_of_what_is_rectified
input a: float64[N, K]
input b: float64[K_1, M]
assert K == K_1
tensor y: float64[N, M]
y[i, j] += relu(a[i, k]) * b[k, j]  for [i, j, k]: 0 <= i < N and 0 <= j < M and 0 <= k < K
return y
"""
RNG = np.random.default_rng(7)


@dataclass(frozen=True)
class Sample:
    """A program and its inputs."""

    program: Program
    arrays: list[np.ndarray]


def samples() -> dict[str, Sample]:
    found = {name: Sample(parse_program(case.text), case.inputs(*case.sizes[-1])) for name, case in CASES.items()}
    found["running_totals"] = Sample(parse_program(RUNNING), [RNG.normal(size=(5, 9))])
    found["rectified"] = Sample(parse_program(RECTIFIED), [RNG.normal(size=shape) for shape in ((5, 4), (4, 3))])
    x = RNG.normal(size=9)
    found["wasteful"] = Sample(parse_program(WASTEFUL), [x])
    found["outer_product_of_columns"] = Sample(parse_program(OUTER), [x.reshape(3, 3)])
    found["diagonal_matrix"] = Sample(parse_program(DIAGONAL), [x])
    pooled = adjoint(test_phases.primal("plane"), ["x"], keep_outputs=False)
    found["strided_adjoint"] = Sample(pooled, [*test_phases.arrays("plane", 9, 8), RNG.normal(size=(4, 3))])
    images = RNG.normal(size=(2, 9, 7))
    maxima = adjoint(test_phases.pooled.program(images), ["I"], keep_outputs=False)
    found["pooling_adjoint"] = Sample(
        maxima, [images, *(RNG.normal(size=y.shape) for y in test_phases.pooled.interpret(images))]
    )
    stencil = test_summing.gradient_of("padded")
    found["stencil_adjoint"] = Sample(stencil, [RNG.normal(size=(6, 5)) for _ in stencil.inputs])
    ranges = test_data_ranges.sparse_arrays(9)
    found["data_ranges"] = Sample(staged(test_data_ranges.sparse, *ranges), ranges)
    for name, function in (
        ("rows", test_row_buffers.rows),
        ("cells", test_sweeps.cells),
        ("stencils", test_stencil_chains.twice),
    ):
        found[name] = Sample(staged(function, images[0]), [images[0]])
    rows = test_row_blocks.three(30, 17, 2)
    found["attention"] = Sample(staged(test_row_blocks.of_matrices, *rows), rows)
    sums = [RNG.normal(size=200), np.arange(200) // 60, 4]
    found["segments"] = Sample(staged(test_end_checks.segments, *sums), [*sums[:2], np.array(4)])
    batch = [RNG.normal(size=shape) for shape in ((7, 3, 4), (3, 5, 4))]
    found["batch"] = Sample(staged(test_contraction_tiles.batched_along, *batch), batch)
    windows = test_end_checks.arrays(4, 3)
    found["windows"] = Sample(staged(test_end_checks.windows, *windows), windows)
    for name, text, shapes in (
        ("transposed", TRANSPOSED, [(50, 16), (16, 16)]),
        ("unit_axes", UNIT_AXES, [(40, 16), (1, 16), (40, 1)]),
    ):
        arrays = [real(*shape) for shape in shapes]
        found[name] = Sample(special(text, *arrays), arrays)
    return found


SAMPLES = samples()
MASKS = Machine(masks=True)


@functools.cache
def effective(name: str) -> frozenset[str]:
    """The optional passes that change something in a program."""
    log = PassLog()
    lower(SAMPLES[name].program, watch=log, machine=MASKS)
    return frozenset(done for done, changes in log.changes.items() if changes) & OPTIONAL


@pytest.mark.parametrize("name", every(2, SAMPLES))
def test_programs_run_without_any_one_pass(name: str) -> None:
    program, arrays = SAMPLES[name].program, SAMPLES[name].arrays
    expected = interpret(program, arrays)
    for left_out in sorted(effective(name)):
        found = execute(lower(program, optimize=f"-{left_out}", machine=MASKS), arrays)
        for mine, its in zip(found.outputs, expected.outputs, strict=True):
            agree(mine, its)
        for tensor, array in zip(program.inputs, arrays, strict=True):
            agree(found.inputs[tensor.name], expected.updates.get(tensor.name, np.asarray(array)))


def test_every_optional_pass_changes_some_program() -> None:
    assert not OPTIONAL - OF_ROUNDS - frozenset().union(*map(effective, SAMPLES))


def test_the_log_says_what_each_pass_does(golden: Golden) -> None:
    program = parse_program(CASES["softmax"].text)
    golden("lowering/passes", PassLog.of(program).text())
    without = PassLog.of(program, "-merging -forwarding").text()
    assert "merging            statements share outer loops: left out" in without
    assert "forwarding         what was just stored is used from a scalar: left out" in without


def test_passes_are_chosen_by_name() -> None:
    names = [each.name for each in (*PASSES, *NEST_PASSES)]
    assert len(set(names)) == len(names)
    assert set(names) >= OPTIONAL - OF_ROUNDS
    assert chosen_passes(True) == OPTIONAL
    assert chosen_passes(False) == frozenset()
    assert chosen_passes("-fusion, -merging") == OPTIONAL - {"fusion", "merging"}
    assert chosen_passes("fusion") == {"fusion"}


@pytest.mark.parametrize(
    ("optimize", "message"),
    [
        ("-fussion", "optimize='-fussion': there is no pass 'fussion' that programs can do without; write True,"),
        ("-memory", "optimize='-memory': there is no pass 'memory' that programs can do without; write True,"),
        ("fusion -merging", "optimize='fusion -merging' names passes to run and passes to leave out: give one kind"),
    ],
)  # fmt: skip
def test_names_of_passes_are_checked(optimize: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        tc.config(optimize=optimize)
    assert str(caught.value).startswith(message)
    assert settings().optimize is True


@op
def normalized(x):
    t[i] = x[i] * 2.0
    s[()] += t[i] * t[i]
    y[i] = t[i] / sqrt(s[()])
    return y


def test_settings_leave_passes_out() -> None:
    x = np.arange(1.0, 4.0)
    everything = str(normalized.explain("passes", x))
    assert "fusion " in everything
    assert "left out" not in everything
    with tc.config(optimize="-fusion,-merging"):
        assert settings().optimize == "-fusion -merging"
        text = str(normalized.explain("passes", x))
        assert text.count("left out") == 2
        assert normalized.explain("loops", x).count("nest_") > 1
        np.testing.assert_allclose(normalized(x), x / np.sqrt(14))
    np.testing.assert_allclose(normalized(x), x / np.sqrt(14))


def test_every_output_is_a_tensor_of_its_own() -> None:
    text = (
        "program p\ninput x: float64[N]\ntensor y: float64[N]\ny[i] = x[i] + 1.0  for [i]: 0 <= i < N\nreturn y, x, y"
    )
    kernel = lower(parse_program(text))
    assert len(set(kernel.outputs)) == 3
    assert {buffer.name for buffer in kernel.buffers if buffer.kind == "output"} == set(kernel.outputs)
