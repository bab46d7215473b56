"""Random specs over arrays with rows mean what a loop over all points says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import tcdsl as tc
from tests.rows.random_specs import Case, cases
from tests.rows.staged import rowed, run

CHECKS = settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


def found(case: Case, combine: str | None) -> np.ndarray:
    given = [rowed(each.array, each.batch, each.input) for each in case.operands]
    (made,) = run(lambda *operands: tc.einsum(case.text, *operands, combine=combine), *given, interpreted=True)
    assert made.rows.batch == len(case.result["batch"])
    assert made.rows.input == len(case.result["input"])
    return made.array


@CHECKS
@given(cases(1))
def test_of_one_operand(case: Case) -> None:
    np.testing.assert_array_equal(found(case, None), case.expected(lambda a: a))


@CHECKS
@given(cases(2))
def test_of_two_operands(case: Case) -> None:
    np.testing.assert_array_equal(found(case, "sub"), case.expected(lambda a, b: a - b))


@pytest.mark.long
@settings(max_examples=1000, suppress_health_check=list(HealthCheck))
@given(cases(3))
def test_of_three_operands(case: Case) -> None:
    np.testing.assert_array_equal(found(case, "fma"), case.expected(lambda a, b, c: a * b + c))
