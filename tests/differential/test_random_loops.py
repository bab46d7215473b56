"""Random functions with loops and branches: what Python computes of NumPy's arrays, ours compute and differentiate."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl.ir.text.parser import parse_program
from tcdsl.ir.text.printer import format_program
from tcdsl.ir.verifier.verifier import verify
from tests.differential.loading import loaded
from tests.differential.random_loops import random_function
from tests.long_variants import seeds

BY_HAND = int(os.environ.get("TCDSL_TEST_PROGRAMS", "1000"))


def arguments(seed: int) -> tuple[Any, ...]:
    generator = np.random.default_rng(seed)
    x, y = generator.standard_normal((2, 4))
    s, r = generator.standard_normal(2)
    return x, y, np.array(s), np.array(r), int(generator.integers(0, 5))


def refused_by_python(function: Any, given: tuple[Any, ...]) -> bool:
    # A check that Python decides is made with the program, also in rounds and arms that a call never comes to.
    try:
        function.program(*given)
    except (AssertionError, ValueError) as error:
        return "refused" in str(error)
    return False


def follows_python(seed: int, compiled: bool) -> None:
    source = random_function(seed)
    function, given = loaded(source), arguments(seed)
    x, y, s, r, n = given
    if refused_by_python(function, given):
        return
    try:
        wanted = function.function(x, y, np.float64(s), np.float64(r), n)
    except (AssertionError, ValueError):
        # What sizes decide is checked before what data decides.
        for run in (function.interpret, function) if compiled else (function.interpret,):
            with pytest.raises((AssertionError, ValueError), match="refused"):
                run(*given)
        return
    program = function.program(*given)
    verify(program)
    assert parse_program(format_program(program)) == program
    for found in (function.interpret(*given), function(*given)) if compiled else (function.interpret(*given),):
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12, err_msg=source)


def has_derivatives(seed: int) -> None:
    source = random_function(seed, smooth=True)
    function, (*given, n) = loaded(source), arguments(seed)

    def loss(x: Any, y: Any, s: Any, r: Any) -> Any:
        a, b, c, d, _ = function(x, y, s, r, n)
        return (a * np.arange(1.0, 5)).sum() + (b * b).sum() + c * 2 + d * d

    try:
        tc.check_grads(loss, tuple(given))
    except Exception as error:
        raise AssertionError(f"{error}\n\n{source}") from error


@pytest.mark.parametrize("seed", seeds(14, 24))
def test_functions_with_loops_follow_python(seed: int) -> None:
    follows_python(seed, compiled=seed % 4 == 0)


@pytest.mark.parametrize("seed", seeds(3, 6))
def test_functions_with_loops_have_derivatives(seed: int) -> None:
    has_derivatives(seed)


@pytest.mark.long
def test_many_functions_with_loops() -> None:
    for seed in range(100, 100 + BY_HAND):
        follows_python(seed, compiled=seed % 4 == 0)
        if seed % 4 == 1:
            has_derivatives(seed)
