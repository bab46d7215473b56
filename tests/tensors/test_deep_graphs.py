"""Graphs deeper than Python's stack, and that what is done with them grows with their size, not faster."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl.frontend.staging.session import Session
from tcdsl.frontend.symbolic_operators import WholeArrays
from tests.tensors.interpreting import value


def chain(length: int) -> tc.Tensor:
    made = tc.tensor([1.0, 2.0])
    for _ in range(length):
        made = made + 0.5
    return made


def test_types_and_values_of_deep_graphs() -> None:
    length = sys.getrecursionlimit() + 100
    made = chain(length)
    assert made.element_type == "float64"
    assert made.shape == (2,)
    np.testing.assert_allclose(value(made), np.array([1.0, 2.0]) + 0.5 * length)


def test_what_is_used_twice_is_looked_at_once() -> None:
    made = tc.tensor([1.0, 3.0])
    for _ in range(60):
        made = made + made
    assert value(made).tolist() == [2.0**60, 3 * 2.0**60]
    assert tc.compile(made).explain("ir").count(" + ") == 60


def test_names_of_versions_are_found_at_once() -> None:
    class Counting(dict[str, object]):
        asked = 0

        def __contains__(self, name: object) -> bool:
            Counting.asked += 1
            return super().__contains__(name)

    builder = Session("names", WholeArrays()).builder
    builder._declared = Counting(builder._declared)  # type: ignore[assignment]
    names = [builder.fixed_input("w", "float64", (2,)).name for _ in range(200)]
    assert names == ["w", *(f"w_{k}" for k in range(2, 201))]
    assert Counting.asked <= 3 * 200


@pytest.mark.parametrize("taken", [["w_2"], ["w", "w_3"]])
def test_names_given_by_hand_are_left_out(taken: list[str]) -> None:
    builder = Session("names", WholeArrays()).builder
    for name in taken:
        builder.fixed_input(name, "float64", ())
    made = [builder.fixed_input("w", "float64", ()).name for _ in range(3)]
    assert len({*taken, *made}) == len(taken) + 3


def test_fusion_asks_once_what_a_statement_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    from tcdsl.lowering.program_passes import fusion

    asked: list[int] = []
    original = fusion.tensors_read

    def counting(statement: Any) -> frozenset[str]:
        asked[-1] += 1
        return original(statement)

    monkeypatch.setattr(fusion, "tensors_read", counting)
    for length in (20, 40):
        asked.append(0)
        tc.compile(chain(length)).explain("loops")
    assert 0 < asked[1] < 2.5 * asked[0]
