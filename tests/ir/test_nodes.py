"""Nodes with other parts, and what is kept with statements."""

from __future__ import annotations

import dataclasses
import pickle

import pytest

from tcdsl.ir.build import apply, constant
from tcdsl.ir.expressions import Read
from tcdsl.ir.nodes import replace
from tcdsl.ir.program import (
    Access,
    Fill,
    Neutral,
    Statement,
    map_statement,
    reads_beside_value,
    statement_reads,
    tensors_read,
)
from tcdsl.polyhedra.boxes import over_box


def read(name: str) -> Read:
    return Read(name, (), (), "float64")


STATEMENT = dataclasses.replace(
    over_box("y", (), (), apply("add", read("a"), read("b"))),
    condition=apply("lt", read("c"), constant(0.5, "float64")),
    start=Fill(read("d")),
)


def test_replace_is_that_of_dataclasses() -> None:
    for parts in ({}, {"label": "mine"}, {"value": read("z"), "start": Neutral()}):
        assert replace(STATEMENT, **parts) == dataclasses.replace(STATEMENT, **parts)
    with pytest.raises(TypeError, match="Access is not made of extent"):
        replace(Access("x", ()), extent=3)


def test_statements_that_nothing_changes_stay_what_they_are() -> None:
    assert map_statement(STATEMENT, lambda expr: expr) is STATEMENT
    for name, changed in (("a", "value"), ("c", "condition"), ("d", "start")):
        made = map_statement(STATEMENT, lambda expr, name=name: read("z") if read(name) in read_in(expr) else expr)
        assert {
            each.name for each in dataclasses.fields(made) if getattr(made, each.name) != getattr(STATEMENT, each.name)
        } == {changed}
        assert "z" in tensors_read(made)


def read_in(expr: object) -> list[Read]:
    statement = dataclasses.replace(over_box("y", (), (), expr))  # type: ignore[arg-type]
    return list(statement_reads(statement))


def test_what_is_kept_of_a_statement_is_in_no_copy() -> None:
    assert [each.tensor for each in statement_reads(STATEMENT)] == ["a", "b", "c", "d"]
    assert [each.tensor for each in reads_beside_value(STATEMENT)] == ["c", "d"]
    other: Statement = dataclasses.replace(STATEMENT, value=read("e"))
    assert tensors_read(other) == {"c", "d", "e"}
    asked = pickle.dumps(STATEMENT)
    assert asked == pickle.dumps(dataclasses.replace(STATEMENT))
    assert statement_reads(pickle.loads(asked)) == statement_reads(STATEMENT)
