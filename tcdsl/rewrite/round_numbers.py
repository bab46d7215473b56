"""The number of a round as loops inside are given it: by a tensor of its own, where a body counts otherwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import islpy as isl

from tcdsl.ir.build import constant, index
from tcdsl.ir.domain import Domain
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.fresh_names import cell_names
from tcdsl.ir.program import Access, Program, Statement, Tensor, Unset
from tcdsl.polyhedra.spaces import named

__all__ = ["empty_statement", "with_own_counter"]


def with_own_counter(program: Program, counter: Tensor, fresh: Callable[[str], str]) -> Program:
    """``program``, a body, whose loops and rules are given a tensor shaped as ``counter`` instead of that input."""
    given = (*(repeat.inputs for repeat in program.repeats), *(rule.named for rule in program.rules))
    if not any(counter.name in each for each in given):
        return program
    number = replace(counter, name=fresh(counter.name))
    cells = cell_names(len(number.shape), (size.name for size in program.sizes))
    statement = empty_statement(number.name, number.dtype, cells)
    renamed = {counter.name: number.name}
    return replace(
        program,
        tensors=(number, *program.tensors),
        statements=(statement, *program.statements),
        rules=tuple(rule.with_tensors(renamed) for rule in program.rules),
        repeats=tuple(repeat.with_tensors(renamed) for repeat in program.repeats),
    )


def empty_statement(name: str, dtype: str, cells: Sequence[str]) -> Statement:
    """The statement that makes a tensor whose cells nobody reads before they are written."""
    points = named(isl.Set.empty(isl.Space.set_alloc(isl.DEFAULT_CONTEXT, 0, len(cells))), cells)
    value = constant(0, compute_dtype(dtype))
    return Statement(Access(name, tuple(map(index, cells))), "assign", Unset(), value, Domain.from_set(points))
