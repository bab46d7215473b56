"""The benchmarks' own parts: references against finite differences, fair timing, and the whole on small cases."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from benchmarks import numpy_peer
from benchmarks.cases import CASES, Case
from benchmarks.measure import WrongResultError, measure, peers_at_hand
from benchmarks.timing import alternate

ROOT = Path(__file__).parent.parent.parent
SMALL = {
    "matmul": ((5, 6), (6, 7)),
    "matmul gradient": ((5, 6), (6, 7), (5, 7)),
    "softmax": ((5, 6),),
    "softmax gradient": ((5, 6), (5, 6)),
    "stencil": ((7, 9),),
    "stencil gradient": ((7, 9), (5, 7)),
    "quick gelu": ((9,),),
    "quick gelu gradient": ((9,), (9,)),
    "mish": ((9,),),
    "mish gradient": ((9,), (9,)),
    "log-sum-exp": ((5, 6),),
    "log-sum-exp gradient": ((5, 6), (5,)),
    "Black-Scholes": ((9,), (9,), (9,)),
    "Black-Scholes gradient": ((9,), (9,), (9,), (9,)),
    "n-body": ((3, 5),),
    "n-body gradient": ((3, 33), (3, 33)),  # of a few bodies most forces cancel
}


GRADIENTS = {name: name.lower().replace(" ", "_").replace("-", "_") for name in SMALL if f"{name} gradient" in SMALL}


def small(case: Case) -> Case:
    return dataclasses.replace(case, shapes=SMALL[case.computation], blocks=min(case.blocks, 5))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_all_contenders_agree(case: Case, dtype: str) -> None:
    measurement = measure(small(case), dtype, peers_at_hand(["torch", "jax", "numexpr"]), seconds=0.01, threads=1)
    assert {"tcdsl", "numpy"} <= set(measurement.timings)
    assert measurement.errors["numpy"] == 0
    assert measurement.ratio("numpy") > 0
    assert (measurement.limit is None) == (case.limit == "operations" and case.blocks == 1)


def test_a_wrong_result_is_never_timed() -> None:
    case = small(CASES[0])
    wrong = dataclasses.replace(case, function=lambda A, B: A @ B + 1e-3)
    with pytest.raises(WrongResultError, match="tcdsl differs"):
        measure(wrong, "float64", {}, seconds=0.01, threads=1)
    transposed = dataclasses.replace(case, function=lambda A, B: (A @ B).T)
    with pytest.raises(WrongResultError, match="inf"):
        measure(transposed, "float64", {}, seconds=0.01, threads=1)


@pytest.mark.parametrize("name", [*GRADIENTS])
def test_numpy_gradients_against_finite_differences(name: str) -> None:
    generator = np.random.default_rng(0)
    stem = GRADIENTS[name]
    function, gradient = getattr(numpy_peer, stem), getattr(numpy_peer, f"{stem}_gradient")
    inputs = [generator.standard_normal(shape) for shape in SMALL[name]]
    weights = generator.standard_normal(function(*inputs).shape)
    directions = [generator.standard_normal(array.shape) for array in inputs]
    step = 1e-6
    above = function(*(a + step * d for a, d in zip(inputs, directions, strict=True)))
    below = function(*(a - step * d for a, d in zip(inputs, directions, strict=True)))
    slope = np.sum(weights * (above - below)) / (2 * step)
    gradients = gradient(*inputs, weights)
    gradients = gradients if isinstance(gradients, tuple) else (gradients,)
    ours = sum(np.sum(g * d) for g, d in zip(gradients, directions, strict=True))
    assert ours == pytest.approx(slope, rel=1e-6)


def test_timing_tells_slow_from_fast_and_alternates() -> None:
    order = []

    def slow() -> None:
        order.append("slow")
        time.sleep(0.004)

    def fast() -> None:
        order.append("fast")
        time.sleep(0.002)

    timings = alternate({"slow": slow, "fast": fast}, seconds=0.04)
    assert timings["slow"].median > 1.5 * timings["fast"].median
    assert all(timing.minimum <= timing.median for timing in timings.values())
    rounds = len(timings["slow"].samples)
    assert order[-2 * rounds :].index("fast") < rounds


def test_limits_are_stated_and_names_unique() -> None:
    assert len({case.name for case in CASES}) == len(CASES)
    for case in CASES:
        assert case.limit in ("operations", "bytes")
        assert case.operations > 0
        assert case.moved > 0


def test_the_command_prints_a_table_and_writes_json(tmp_path: Path) -> None:
    target = tmp_path / "results.json"
    command = [
        sys.executable,
        "-m",
        "benchmarks",
        "--only",
        "matmul 512",
        "--dtypes",
        "float32",
        "--peers",
        "--seconds",
        "0.1",
    ]
    result = subprocess.run(
        [*command, "--json", str(target)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        env=_environment(tmp_path),
    )
    assert "/ tcdsl" in result.stdout
    assert "GFLOP/s" in result.stdout
    written = json.loads(target.read_text())
    assert written["machine"]["versions"]["numpy"] == np.__version__
    (case,) = written["cases"]
    assert case["case"] == "matmul 512x512"
    assert case["operations"] == 2 * 512**3
    assert set(case["contenders"]) == {"tcdsl", "numpy"}
    assert case["contenders"]["tcdsl"]["minimum"] > 0


def _environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "TCDSL_CACHE_DIR": str(folder / "cache"), "COLUMNS": "200"}
