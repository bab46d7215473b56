"""Random specs over arrays with rows mean what a loop over all points says."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import tcdsl as tc
from tcdsl.frontend.logics.logic_staging import PRODUCT, stage_logic
from tcdsl.frontend.staging.session import session_of
from tcdsl.frontend.staging.target_states import Existing
from tcdsl.rows.ranks import RowRanks
from tests.rows.random_specs import Case, cases
from tests.rows.staged import rowed, run

CHECKS = settings(max_examples=70, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


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


@CHECKS
@given(cases(2), st.data())
def test_onto_a_target_that_exists(case: Case, data: st.DataObject) -> None:
    expected = case.expected(lambda a, b: a * b)
    rows = RowRanks(*(len(case.result[row]) for row in ("batch", "output", "input")))
    axes = [*case.result["batch"], *case.result["output"], *case.result["input"]]
    # Axes with a position may be longer; along `_` every cell is written, and axes of row variables stretch.
    shape, source = [], []
    for axis, extent in zip(axes, expected.shape, strict=True):
        kind = axis[0]
        longer = data.draw(st.integers(0, 1)) if kind == "position" else 0
        spread = data.draw(st.integers(1, 3)) if kind == "any" or (kind == "row" and extent == 1) else extent
        if kind == "row" and axes.count(axis) > 1:
            spread = extent
        shape.append(spread + longer)
        source.append(spread)
    cells = np.zeros(shape)
    cells[tuple(map(slice, source))] = np.broadcast_to(expected, source)
    given = [rowed(each.array, each.batch, each.input) for each in case.operands]
    start = np.arange(float(cells.size)).reshape(shape)

    def onto(target: Any, *operands: Any) -> Any:
        session = session_of("a test")
        return stage_logic(session, case.text, PRODUCT, operands, "add", target=Existing(target))

    (made,) = run(onto, rowed(start, rows.batch, rows.input), *given, interpreted=True)
    np.testing.assert_array_equal(made.array, start + cells)
    assert made.rows == rows
