"""Statements of one kind: what is known of one holds for all that differ in names, and places stay those of each."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import tcdsl as tc
from tcdsl import op
from tcdsl.ir.nodes import replace
from tcdsl.ir.program import Statement, map_statement
from tcdsl.rewrite.kept_spans import once_per_kind
from tcdsl.rewrite.renaming import statement_with_tensors_renamed
from tcdsl.rewrite.statement_kinds import KindWriter, content, kind_of_statement, places_of


@op
def scaled(x, w):
    y[i, j] = x[i, j] * w[j] + 0.0
    return y


@op
def scaled_elsewhere(x, w):
    y[i, j] = x[i, j] * w[j] + 0.0
    return y


@op
def shifted(x, w):
    y[i, j] = x[i, j] * w[j] + -0.0
    return y


def statement_of(function: Any) -> Statement:
    return function.program(np.ones((2, 3)), np.ones(3)).statements[-1]


def test_a_renamed_statement_has_the_kind_of_its_original() -> None:
    first = statement_of(scaled)
    kind, names = kind_of_statement(first)
    renamed = statement_with_tensors_renamed(first, {"x": "h", "w": "v", "y": "g"})
    assert kind_of_statement(renamed) == kind_of_statement(replace(renamed))
    assert kind_of_statement(renamed)[0] == kind
    assert [name for what, name in kind_of_statement(renamed)[1] if what == "buffer"] == ["g", "h", "v"]
    assert names != kind_of_statement(renamed)[1]


def test_two_tensors_that_become_one_are_another_kind() -> None:
    first = statement_of(scaled)
    kind_of_statement(first)
    same = statement_with_tensors_renamed(first, {"w": "x"})
    assert kind_of_statement(same) == kind_of_statement(replace(same))
    assert kind_of_statement(same)[0] != kind_of_statement(first)[0]


def test_signs_of_zeros_are_part_of_a_kind() -> None:
    assert kind_of_statement(statement_of(scaled))[0] != kind_of_statement(statement_of(shifted))[0]


def test_content_leaves_out_names_and_nothing_else() -> None:
    program = scaled.program(np.ones((2, 3)), np.ones(3))
    (made,) = program.tensors
    first = program.statements[0]
    other = statement_with_tensors_renamed(first, {"y": "g"})
    assert content(first, made) == content(other, replace(made, name="g"))
    assert content(first, made) != content(statement_with_tensors_renamed(first, {"x": "h"}), made)
    assert content(first, made) != content(statement_of(shifted), made)


def test_what_is_made_of_a_kind_has_the_names_and_places_of_each_statement() -> None:
    calls: list[Statement] = []

    @once_per_kind
    def doubled(statement: Statement) -> Statement:
        calls.append(statement)
        return replace(statement, accumulate="add")

    first = statement_of(scaled)
    renamed = statement_with_tensors_renamed(first, {"x": "a", "w": "b", "y": "c"})  # a < b as w < x is not
    again = statement_with_tensors_renamed(first, {"x": "x2", "w": "w2", "y": "y2"})
    assert doubled(first) == replace(first, accumulate="add")
    assert doubled(again) == replace(again, accumulate="add")
    assert len(calls) == 1
    assert doubled(renamed) == replace(renamed, accumulate="add")
    assert len(calls) == 2  # another order of names
    elsewhere = statement_of(scaled_elsewhere)
    assert elsewhere == first
    assert places_of(elsewhere) != places_of(first)
    assert places_of(doubled(elsewhere)) == places_of(elsewhere)
    assert len(calls) == 3


def test_a_statement_of_which_nothing_is_to_be_made_comes_back_itself() -> None:
    kept = once_per_kind(lambda statement: map_statement(statement, lambda expr: expr))
    first, elsewhere = statement_of(scaled), statement_of(scaled_elsewhere)
    assert kept(first) is first
    assert kept(elsewhere) is elsewhere


def test_kinds_that_are_written_part_by_part() -> None:
    def written(statement: Statement, *scalars: str) -> tuple[Any, Any]:
        writer = KindWriter()
        writer.statement(statement)
        writer.scalars(scalars)
        writer.word("plain")
        return writer.written()

    first = statement_of(scaled)
    other = statement_with_tensors_renamed(first, {"x": "h"})
    i, j = first.domain.variables
    assert written(first, i)[0] == written(other, i)[0]
    assert written(first, i)[0] != written(first, j)[0]
    assert written(first, i)[1] != written(other, i)[1]


@op
def residual(x, *, label):
    return x + "w_2"[x.shape[-1]] @ relu("w_1"[8] @ x + "b_1"[8]) + "b_2"[x.shape[-1]]


def _calls_for(layers: int) -> int:
    x = tc.tensor(np.ones((4, 8)), batch=1, label="x")
    made = x
    for k in range(layers):
        made = residual(label=f"layer_{k}")(made)
    count = 0

    def counted(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    loss = (made**2).mean()
    sys.setprofile(counted)
    try:
        tc.compile(tc.train.grad_update(loss), tc.train.adam_update(loss, learning_rate=0.01)).run()
    finally:
        sys.setprofile(None)
    return count


def test_a_further_equal_layer_is_renamed(own_cache: None) -> None:
    _calls_for(3)
    # Linking, differentiating and lowering it took 160,000 before statements knew their kinds, and 105,000 with them.
    assert (_calls_for(7) - _calls_for(4)) / 3 < 130_000
