"""Loop orders: which loops of a statement run outside, in parallel, and which one runs innermost.

The innermost loop is the one that moves along memory in most accesses. If it reduces, a scalar accumulates; if it runs
along the target, a row of the target accumulates in place (``i, k, j`` for a matrix product)::

    s[i] += A[i, k]            for i (parallel): acc = 0; for k: acc += A[i, k]; s[i] = acc
    C[i, j] += A[i, k]*B[k, j] for i (parallel): for j: C[i, j] = 0; for k: for j: C[i, j] += A[i, k] * B[k, j]

Loops over variables that the written cell determines (`tcdsl.polyhedra.scatter_to_gather.target_variables`) are
outermost and parallel. Ordered accumulators keep the others in row-major order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod

import islpy as isl

from tcdsl.ir.accumulators import ACCUMULATORS
from tcdsl.ir.build import index, integer
from tcdsl.ir.domain import Domain
from tcdsl.ir.expressions import Constant, Expr, IndexValue, index_variables, is_affine_index
from tcdsl.ir.nodes import replace
from tcdsl.ir.program import Access, Statement, Tensor, statement_reads
from tcdsl.ir.text.declined import Declined
from tcdsl.lowering.loopir.boundary_reads import Declarations, interior
from tcdsl.lowering.loopir.contraction import SumOfProducts
from tcdsl.lowering.loopir.kinds import EqualStatements, Renaming
from tcdsl.polyhedra.affine import NotAffine
from tcdsl.polyhedra.boxes import box
from tcdsl.polyhedra.linear import linear_form
from tcdsl.polyhedra.scatter_to_gather import target_variables
from tcdsl.polyhedra.spaces import constant_range
from tcdsl.simplification.data_ranges import data_ranged

__all__ = ["FixedOrder", "LoopOrder", "constant_count", "constant_length", "covers", "is_short", "plan"]

# Loops shorter than this are not worth to be innermost; nor shorter than a vector, where all are short.
_SHORT, _VECTOR = 16, 8
# Points of a reduction that is written out.
_WINDOW = 32


@dataclass(frozen=True, slots=True)
class FixedOrder:
    """Loops, outermost first, in which a statement reads every cell before it writes it
    (`tcdsl.lowering.program_passes.in_place`).

    Those of ``descending`` variables count down. With ``parallel`` the outermost one may run in any order.
    """

    variables: tuple[str, ...]
    descending: frozenset[str]
    parallel: bool


@dataclass(frozen=True, slots=True)
class LoopOrder:
    """The loop order of a statement.

    ``cells`` are the variables that the written cell determines. A ``plain`` target has one of them as each of its
    indices, so the loops over it may visit all cells. ``outer`` are cells whose loops run outside, in parallel;
    ``inner`` are the others, in order. With ``scalar`` all inner variables are reductions and a scalar accumulates.
    ``single`` says that no cell is written twice, ``full`` that moreover every cell is written, whatever the data. A
    ``window`` is a reduction over few points, a constant number of them: its loops run inside that along the row.

    In one phase of a stepping target (`tcdsl.lowering.program_passes.phases`) an index may be ``2*q + 1``, and
    ``extents`` says how many cells q counts; ``whole``, with the first phase of a row, is the plan of the row in all
    its phases, for cells near its ends. With a ``fixed`` order the loops are those, whatever ``outer`` and ``inner``
    say. A ``scan`` goes along the cell that is not among ``outer`` (`tcdsl.simplification.scans`). A ``contraction``
    is made in tiles. What passes over plans could not do has ``declined``.
    """

    statement: Statement
    tensor: Tensor
    cells: tuple[str, ...]
    plain: bool
    outer: tuple[str, ...]
    inner: tuple[str, ...]
    scalar: bool
    single: bool
    full: bool
    window: bool = False
    extents: Mapping[str, Expr] = field(default_factory=dict)
    whole: LoopOrder | None = None
    fixed: FixedOrder | None = None
    scan: bool = False
    contraction: SumOfProducts | None = None
    declined: tuple[Declined, ...] = ()

    @property
    def row(self) -> str | None:
        """The innermost variable, if it runs along the target."""
        return self.inner[-1] if self.inner and self.inner[-1] in self.cells else None

    @property
    def row_of_data(self) -> bool:
        """Whether data of the variables around it say where the row begins and ends."""
        return self.row is not None and data_ranged(self.statement.condition, self.row)

    @property
    def innermost(self) -> str | None:
        """The variable along the target whose loop is inside those over its other cells, if there is one."""
        return self.outer[-1] if self.full and self.outer else self.row

    @property
    def around(self) -> tuple[str, ...]:
        """The cells whose loops are outside that."""
        return self.outer[:-1] if self.full else self.outer

    def extent(self, variable: str) -> Expr:
        """The extent of the axis that ``variable`` is the index of, in a plain target."""
        if variable in self.extents:
            return self.extents[variable]
        return self.tensor.shape[self.statement.target.indices.index(IndexValue(variable))]

    def spans(self, variables: Iterable[str]) -> list[tuple[str, Expr, Expr]]:
        """The variables, each with the ends of a loop over all cells along it."""
        return [(name, integer(0), self.extent(name)) for name in variables]


def plan(
    statement: Statement, tensors: Declarations, context: isl.Set, extents: Mapping[str, Expr] | None = None
) -> LoopOrder:
    """The loop order of ``statement`` in a program with ``tensors``; ``context`` is what is known of the sizes.

    ``extents`` are those of the variables of a phase.
    """
    return _plan(statement, tensors, context, extents) if extents else _PLANS.of(statement, tensors, context)


def _plan(
    statement: Statement, tensors: Declarations, context: isl.Set, extents: Mapping[str, Expr] | None = None
) -> LoopOrder:
    tensor = tensors[statement.target.tensor]
    extents = {} if extents is None else extents
    indices = tuple(_cell_variable(axis, extents) for axis in statement.target.indices)
    cells = target_variables(statement)
    plain = all(isinstance(axis, IndexValue) for axis in indices) and len(set(indices)) == len(indices)
    if plain:
        cells = tuple(axis.name for axis in indices if isinstance(axis, IndexValue))
    known = all(is_affine_index(axis) for axis in indices)
    if known and statement.accumulate == "assign" and not statement.unique:
        # The language checks that a plain store writes each cell once.
        mentioned = frozenset().union(*map(index_variables, indices))
        cells = cells if plain else tuple(name for name in statement.domain.variables if name in mentioned)
    determined = known and frozenset().union(*map(index_variables, indices)) <= set(cells)
    reduced = [name for name in statement.domain.variables if name not in cells]
    single = determined and not reduced
    full = plain and single and statement.condition is None and covers(statement, tensor, context, extents)
    # With a border, isl makes the loops along the row.
    full = full and interior((statement.value,), statement.domain.set, cells, tensors) is None
    ranked = _ranked(statement)
    best = ranked[0] if ranked else None
    if full:
        last = (best,) if best is not None and best in cells else ()
        outer = tuple(name for name in cells if name not in last) + last
        return LoopOrder(statement, tensor, cells, plain, outer, (), True, True, True, False, extents)
    ordered = ACCUMULATORS[statement.accumulate].ordered or statement.accumulate == "assign" or statement.unique
    if not ordered:
        reduced = [name for name in reversed(ranked) if name in reduced]
    scalar = determined and (not cells or best not in cells)
    if tensor.dtype == "float16" and determined and not single:
        # Half-precision cells would round every partial sum.
        scalar = True
    window = plain and determined and best in cells and _is_window(statement, reduced)
    scalar = scalar and not window
    row = () if scalar or best is None or best not in cells else (best,)
    outer = tuple(name for name in cells if name not in row)
    return LoopOrder(statement, tensor, cells, plain, outer, (*reduced, *row), scalar, single, False, window, extents)


def _of_another(found: LoopOrder, statement: Statement, tensors: Declarations, names: Renaming) -> LoopOrder:
    return replace(found, statement=statement, tensor=tensors[statement.target.tensor])


_PLANS = EqualStatements(_plan, _of_another)


def _is_window(statement: Statement, reduced: Sequence[str]) -> bool:
    points = 1
    for name in reduced:
        length = constant_length(statement, name)
        if length is None:
            return False
        points *= length
    return bool(reduced) and 0 < points <= _WINDOW


def _cell_variable(axis: Expr, extents: Mapping[str, Expr]) -> Expr:
    # The variable that counts the cells along an axis, or the index itself.
    found = [name for name in index_variables(axis) if name in extents]
    return index(found[0]) if found else axis


def covers(statement: Statement, tensor: Tensor, context: isl.Set, extents: Mapping[str, Expr] | None = None) -> bool:
    """Whether a statement whose target's indices are its variables has a point for every cell of ``tensor``.

    In a phase, with ``extents`` of its variables, for every cell of that phase.
    """
    extents = {} if extents is None else extents
    points = statement.domain.set.align_params(context.get_space())
    variables = (_cell_variable(axis, extents) for axis in statement.target.indices)
    whole = {
        axis.name: extents.get(axis.name, extent)
        for axis, extent in zip(variables, tensor.shape, strict=True)
        if isinstance(axis, IndexValue)
    }
    try:
        cells = box(tuple(whole), tuple(whole.values()), points).intersect_params(context)
    except NotAffine:
        return False
    return bool(cells.is_subset(points))


def _ranked(statement: Statement) -> list[str]:
    """The variables, best innermost loop first."""
    reads = (Access(read.tensor, read.indices) for read in statement_reads(statement))
    accesses = [statement.target, *dict.fromkeys(reads)]
    target = frozenset().union(*map(index_variables, statement.target.indices))
    last = statement.target.indices[-1] if statement.target.indices else None
    order = statement.domain.variables
    lengths = [constant_length(statement, name) for name in order]
    least = _SHORT if None in lengths else _VECTOR

    def rank(name: str) -> tuple[bool, float, bool, bool, int]:
        # A range that data of other variables give is inside of their loops. Large tensors count more.
        score: float = sum(len(access.indices) * _stride(name, access.indices) for access in accesses)
        if is_short(statement, name, least):
            score -= sum(len(access.indices) for access in accesses) + 1
        along = last is not None and name in index_variables(last)
        return (not data_ranged(statement.condition, name), -score, name not in target, not along, -order.index(name))

    return sorted(order, key=rank)


def _stride(name: str, indices: tuple[Expr, ...]) -> float:
    # 1 where the variable steps through neighbouring cells, 0 where it stays, -1 where it jumps.
    used = [axis for axis in indices if name in index_variables(axis)]
    if not used:
        return 0
    terms, _ = linear_form(indices[-1])
    alone = all(name not in index_variables(atom) for atom in terms if atom != index(name))
    if used == [indices[-1]] and alone and abs(terms.get(index(name), 0)) == 1:
        return 1
    return -1


def is_short(statement: Statement, name: str, least: int = _SHORT) -> bool:
    """Whether the loop's length is a constant smaller than ``least``, whatever the sizes."""
    length = constant_length(statement, name)
    return length is not None and length < least


def constant_length(statement: Statement, name: str) -> int | None:
    """The distance between the smallest and the largest value of a variable, and 1; None if it depends on sizes."""
    return _constant_length(statement.domain, name)


@lru_cache(maxsize=4096)
def _constant_length(domain: Domain, name: str) -> int | None:
    # Whoever plans a statement asks for each order of its loops.
    values = constant_range(domain.set, name)
    return None if values is None else len(values)


def constant_count(shape: Iterable[Expr]) -> int | None:
    """The number of cells of a tensor; None if it depends on sizes."""
    extents = [extent.value if isinstance(extent, Constant) else None for extent in shape]
    return None if None in extents else prod(int(extent) for extent in extents if extent is not None)
