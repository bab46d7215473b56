"""Which values are stored and which are computed where they are read; a derivative's values follow the same rule.

A producer, which stores every cell of its tensor once, whatever the data, and cannot fail, moves into its readers

- if one statement reads it, each cell once: nothing is repeated;
- or if its value is at most two cheap operations on one tensor as large as its own, and at most four statements read it
  (sums of products only if it is no operation at all): each read then costs two operations more, which is less than
  reading memory;
- or if its value is at most six cheap operations, and one statement reads it, at two cells beside each other, as the
  difference of a flux does;
- or if its tensor would be larger than what it reads, and than every input and output, and few reads go over its cells:
  ``D[i, j] = x[i] - y[j]`` would decide how much memory a call takes, and reading it would take as long as computing it
  again; unless the value is a call of a function, or as much, and all that reads it reduces its rows: such statements
  share loops, and the tensor is memory for a few rows.

Everything else is computed once and stored. What is stored costs memory only if it is read in another nest: statements
that go over the same cells share loops (`tcdsl.lowering.program_passes.merging`), values that are read where they were
stored stay in scalars (`forwarding`), the calls that they repeat are made once (`calls`), and memory that is needed no
longer is used again (`liveness`). So fusion at most triples the operations of a program, and a derivative holds the
values of those statements only that are read at other cells than they were written, or by reductions across rows.

An expression that a reader needs several times becomes a local definition, so long chains stay long and do not become
trees.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import islpy as isl

from tcdsl.ir.expressions import (
    Apply,
    Boundary,
    Cast,
    Constant,
    Expr,
    IndexValue,
    Let,
    Local,
    Read,
    SizeValue,
    children,
    is_affine_index,
    map_children,
    reads,
    size_names,
    substitute,
    transform,
    walk,
)
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.ir.nodes import replace
from tcdsl.ir.program import Fill, Keep, Program, Statement, Tensor, statement_reads, tensors_read, with_statements
from tcdsl.lowering.loopir.boundary_reads import Declarations
from tcdsl.lowering.program_passes.schedule import covers, plan
from tcdsl.lowering.program_passes.touched_tensors import evaluated, never_moves, readers
from tcdsl.polyhedra.linear import linear_form, normalized
from tcdsl.polyhedra.spaces import arranged

__all__ = ["fresh_locals", "fuse", "work"]

# Nodes of a statement's expressions beyond which nothing more moves in: compile time grows faster than the code.
_LARGEST = 160
# Operations that may be done twice, by one reader.
_CHEAP = 6
# How far apart the two cells may be: what both are made of is near.
_BESIDE = 2
# Operations that may be repeated by each of a few readers.
_TRIVIAL = 2
_FEW = 4
# Reads of a large tensor whose value is computed again at each of them.
_MOST_READS = 8
# Other statements between a value and the last one that reduces its rows: merging looks no further back.
_NEAR = 8
_WEIGHTS = {
    **dict.fromkeys(
        ("add", "sub", "mul", "neg", "max", "min", "where", "abs", "square", "relu", "id", "fst", "snd"), 1
    ),
    **dict.fromkeys(("lt", "le", "gt", "ge", "eq", "ne", "not_", "and_", "or_", "relu_gate", "sat01_gate", "fma"), 1),
}
_HEAVY = 10


@dataclass(frozen=True, slots=True)
class _Producer:
    """A statement that may move: its variables in the order of the axes, and its value."""

    position: int
    statement: Statement
    variables: tuple[str, ...]

    @property
    def value(self) -> Expr:
        return self.statement.value


@dataclass(frozen=True, slots=True)
class _Surroundings:
    """What is asked of a whole program.

    By tensor, the statements that read it and those that start from it; the extents of inputs and outputs.
    """

    readers: Mapping[str, list[int]]
    updates: Mapping[str, list[int]]
    extents: Sequence[Counter[frozenset[str]]]
    # Whether statements with these points and cells have one for each cell of such a shape: equal layers ask the same.
    covering: dict[object, bool] = field(default_factory=dict)

    def covers(self, statement: Statement, tensor: Tensor, context: isl.Set) -> bool:
        """Whether a statement has a point for each cell of ``tensor``."""
        key = statement.domain, statement.target.indices, tensor.shape
        found = self.covering.get(key)
        if found is None:
            found = self.covering[key] = covers(statement, tensor, context)
        return found

    @staticmethod
    def of(program: Program, tensors: Declarations) -> _Surroundings:
        updates: dict[str, list[int]] = {}
        for position, statement in enumerate(program.statements):
            if isinstance(statement.start, Keep):
                updates.setdefault(statement.start.tensor, []).append(position)
        shapes = dict.fromkeys(
            tensors[name].shape for name in (*(each.name for each in program.inputs), *program.outputs)
        )
        return _Surroundings(readers(program.statements), updates, [_extents(shape) for shape in shapes])


def fuse(program: Program, context: isl.Set, names: FreshNames) -> Program:
    """``program`` with elementwise producers moved into their readers; ``context`` is what is known of the sizes."""
    tensors = {tensor.name: tensor for tensor in (*program.inputs, *program.tensors)}
    fixed = {*program.outputs, *(name for _, name in program.updates)}
    surroundings = _Surroundings.of(program, tensors)
    producers: dict[str, _Producer] = {}
    statements: list[Statement] = []
    for position, statement in enumerate(program.statements):
        statement = _with_producers(statement, producers, names)
        statements.append(statement)
        name = statement.target.tensor
        if name in fixed or not _elementwise(statement, tensors):
            continue
        variables = tuple(axis.name for axis in statement.target.indices if isinstance(axis, IndexValue))
        producer = _Producer(position, statement, variables)
        if _moves(producer, surroundings, program, tensors, context):
            producers[name] = producer
    return with_statements(program, (each for each in statements if each.target.tensor not in producers))


def _elementwise(statement: Statement, tensors: Declarations) -> bool:
    indices = statement.target.indices
    tensor = tensors[statement.target.tensor]
    if statement.accumulate != "assign" or statement.condition is not None or statement.unique:
        return False
    if tensor.dtype == "float16" or len(set(indices)) != len(indices):
        # Half-precision cells round what is stored in them.
        return False
    if not all(isinstance(axis, IndexValue) for axis in indices) or len(statement.domain.variables) != len(indices):
        return False
    return never_moves(statement.value)


def _moves(
    producer: _Producer, surroundings: _Surroundings, program: Program, tensors: Declarations, context: isl.Set
) -> bool:
    """Whether the producer's value may stand in all of its readers instead."""
    name = producer.statement.target.tensor
    positions = surroundings.readers.get(name, [])
    if not positions:
        return False
    size = _size(producer.value)
    for position in positions:
        reader = program.statements[position]
        if not _readable(reader, name) or _overwritten(producer, position, surroundings):
            return False
        if size + _size_of(reader) > _LARGEST:
            return False
    found = [program.statements[position] for position in positions]
    if _outgrows(producer.statement, surroundings, tensors) and _read_where_written(producer, found):
        return not _made_by_rows(producer, surroundings, program, tensors, context)
    if not surroundings.covers(producer.statement, tensors[name], context):
        return False
    if len(positions) == 1 and _once(found[0], name):
        return True
    if len(positions) == 1 and _worth_doubling(producer, found[0]):
        return True
    if len(positions) > _FEW:
        return False
    return all(_worth_repeating(producer, reader, tensors) for reader in found)


def _outgrows(statement: Statement, surroundings: _Surroundings, tensors: Declarations) -> bool:
    """Whether the target is larger than each tensor that the value reads and than each input and output.

    Extents are compared by name: ``[N, M]`` is larger than ``[N]`` and ``[M]``, and than ``[N, 3]``.
    """
    own = _extents(tensors[statement.target.tensor].shape)
    read = (tensors[name].shape for name in {read.tensor for read in reads(statement.value)})
    return all(own - each for each in (*surroundings.extents, *map(_extents, read)))


def _extents(shape: Iterable[Expr]) -> Counter[frozenset[str]]:
    # Of `N - K + 1` it matters that it grows with N.
    return Counter(size_names(extent) for extent in shape if not isinstance(extent, Constant))


def _read_where_written(producer: _Producer, readers: Sequence[Statement]) -> bool:
    """Whether few reads, each at a cell of its own at every point, find only cells that the producer has written."""
    name, written = producer.statement.target.tensor, arranged(producer.statement.domain.set, producer.variables)
    count = 0
    for reader in readers:
        for read in {read for read in statement_reads(reader) if read.tensor == name}:
            count += 1
            cell = _own_cell(reader, read.indices)
            if count > _MOST_READS or cell is None or len(set(cell)) != len(cell):
                return False
            if not arranged(reader.domain.set, cell).is_subset(written):
                return False
    return True


def _own_cell(reader: Statement, indices: tuple[Expr, ...]) -> tuple[str, ...] | None:
    # The variables that are the indices of a cell, if these are all of the reader's: each point has its own.
    variables = tuple(axis.name for axis in indices if isinstance(axis, IndexValue))
    return variables if len(variables) == len(indices) and set(variables) == set(reader.domain.variables) else None


def _made_by_rows(
    producer: _Producer, surroundings: _Surroundings, program: Program, tensors: Declarations, context: isl.Set
) -> bool:
    """Whether the value takes work, and several statements that will share its outer loops reduce its rows.

    None may need what another one has found: then the rows would have to wait in memory for the last.
    """
    statement = producer.statement
    outer = producer.variables[:-1]
    if work(producer.value) < _HEAVY or not outer or plan(statement, tensors, context).outer != producer.variables:
        return False
    chain, reductions = _readers_of_rows(statement.target.tensor, surroundings, program, tensors)
    if not 1 < len(reductions) <= _MOST_READS:
        return False
    last = max(reductions)
    if last - producer.position - len(chain) - len(reductions) > _NEAR:
        return False
    found: set[str] = set()
    for position in range(min(reductions), last + 1):
        reader = program.statements[position]
        needs = not found.isdisjoint(tensors_read(reader))
        if needs and position in reductions:
            return False
        if needs or position in reductions:
            found.add(reader.target.tensor)
    orders = (plan(program.statements[position], tensors, context) for position in reductions)
    return all(order.plain and order.scalar and order.outer == order.cells for order in orders)


def _readers_of_rows(
    name: str, surroundings: _Surroundings, program: Program, tensors: Declarations
) -> tuple[set[str], set[int]]:
    """The tensors that have a cell for each of the tensor's, made of it, and the statements that reduce rows of these.

    No statements, if something reads other cells.
    """
    shape = tensors[name].shape
    chain, waiting, reductions = {name}, [name], set[int]()
    while waiting:
        tensor = waiting.pop()
        for position in surroundings.readers.get(tensor, ()):
            reader = program.statements[position]
            target, extents = reader.target, tensors[reader.target.tensor].shape
            cells = {read.indices for read in statement_reads(reader) if read.tensor == tensor}
            cell = cells.pop() if len(cells) == 1 else ()
            if reader.unique or isinstance(reader.start, Keep) or _own_cell(reader, cell) is None:
                return chain, set()
            if target.indices == cell[:-1] and extents == shape[:-1]:
                reductions.add(position)
            elif target.indices != cell or extents != shape:
                return chain, set()
            elif target.tensor not in chain:
                chain.add(target.tensor)
                waiting.append(target.tensor)
    return chain, reductions


def _readable(reader: Statement, name: str) -> bool:
    # Whether every read of the tensor stands in the value or the condition, and is in range without tests.
    if isinstance(reader.start, Keep) and reader.start.tensor == name:
        return False
    places: list[Expr] = list(reader.target.indices)
    if isinstance(reader.start, Fill):
        places.append(reader.start.value)
    if any(read.tensor == name for expr in places for read in reads(expr)):
        return False
    return all(
        boundary is Boundary.SKIP
        for read in statement_reads(reader)
        if read.tensor == name
        for boundary in read.boundaries
    )


def _overwritten(producer: _Producer, reader: int, surroundings: _Surroundings) -> bool:
    # Whether a version that the producer reads is updated before the reader: reading it later would force a copy.
    return any(
        producer.position < position <= reader
        for name in tensors_read(producer.statement)
        for position in surroundings.updates.get(name, ())
    )


def _once(reader: Statement, name: str) -> bool:
    """Whether the reader evaluates each cell of the tensor at most once."""
    found = [{read.indices for read in reads(expr) if read.tensor == name} for expr in evaluated(reader)]
    if sum(map(len, found)) != 1:
        return False
    (indices,) = set().union(*found)
    return _own_cell(reader, indices) is not None


def _worth_repeating(producer: _Producer, reader: Statement, tensors: Declarations) -> bool:
    # Next to no work, and no more memory to read than the tensor itself would be.
    rank = len(producer.variables)
    wide = {read.indices for read in reads(producer.value) if len(tensors[read.tensor].shape) >= max(rank, 1)}
    if len(wide) > 1 or any(read.fill is not None for read in reads(producer.value)):
        return False
    own = work(producer.value)
    name = producer.statement.target.tensor
    at_own_cells = all(_own_cell(reader, read.indices) for read in statement_reads(reader) if read.tensor == name)
    if len(reader.domain.variables) > max(len(reader.target.indices), 2) and not at_own_cells:
        # Contractions stay what they are.
        return own == 0
    return own <= _TRIVIAL


def _worth_doubling(producer: _Producer, reader: Statement) -> bool:
    # Computed for two cells beside each other: less than to store it and to read it back.
    name = producer.statement.target.tensor
    cells = {read.indices for read in statement_reads(reader) if read.tensor == name}
    variables = reader.domain.variables
    if len(cells) != 2 or not len(variables) == len(reader.target.indices) == len(producer.variables):
        return False
    if work(producer.value) > _CHEAP or any(read.fill is not None for read in reads(producer.value)):
        return False
    return all(map(_beside, *cells))


def _beside(one: Expr, other: Expr) -> bool:
    if not (is_affine_index(one) and is_affine_index(other)):
        return False
    (terms, place), (others, another) = linear_form(one), linear_form(other)
    return terms == others and abs(place - another) <= _BESIDE


def work(expr: Expr) -> int:
    """The operations of an expression; what calls a function counts as ten."""
    own = 0
    match expr:
        case Apply(primitive=primitive):
            own = _WEIGHTS.get(primitive, _HEAVY)
        case Cast():
            own = 1
        case Read(indices=indices):
            # Positions cost nothing, unless they are data.
            return sum(_HEAVY for axis in indices if any(isinstance(node, Read) for node in walk(axis)))
        case _:
            pass
    return own + sum(work(part) for part in children(expr))


def _size(expr: Expr) -> int:
    # Positions, and what is asked of them, are cheap to compile.
    match expr:
        case Read(fill=fill):
            return 1 + (0 if fill is None else _size(fill))
        case Apply(primitive="where", arguments=(condition, *parts)) if is_affine_index(condition):
            return 1 + sum(map(_size, parts))
        case _:
            return 1 + sum(map(_size, children(expr)))


@lru_cache(maxsize=4096)
def _size_of(statement: Statement) -> int:
    return sum(map(_size, evaluated(statement)))


def _with_producers(statement: Statement, producers: dict[str, _Producer], names: FreshNames) -> Statement:
    read = tensors_read(statement)
    moved = sorted((producers[name] for name in read if name in producers), key=lambda producer: producer.position)
    if not moved:
        return statement
    condition = statement.condition
    # What the user says about a statement stays with its value.
    said = dict.fromkeys(each.label for each in (*(producer.statement for producer in moved), statement) if each.label)
    return replace(
        statement,
        label="; ".join(said),
        value=_with_values(statement.value, producers, names),
        condition=None if condition is None else _with_values(condition, producers, names),
    )


def _with_values(expr: Expr, producers: dict[str, _Producer], names: FreshNames) -> Expr:
    """``expr`` with the values of producers for the reads of them; a value that is needed twice gets a name."""
    found: dict[tuple[str, tuple[Expr, ...]], int] = {}
    for read in reads(expr):
        if read.tensor in producers:
            key = (read.tensor, read.indices)
            found[key] = found.get(key, 0) + 1
    definitions: list[Let] = []
    values: dict[tuple[str, tuple[Expr, ...]], Expr] = {}
    for (name, indices), count in found.items():
        if any(isinstance(node, Read | Local) for axis in indices for node in walk(axis)):
            # Positions that are data may themselves hold reads that move: substituted below, one by one.
            continue
        value = _value_at(producers[name], indices, names)
        if count > 1 and not isinstance(value, Constant | SizeValue | IndexValue | Read):
            local = Local(names.fresh(f"{name}_value"), value.dtype)
            definitions.append(Let(local.name, value, local))
            value = local
        values[name, indices] = value

    def rule(node: Expr) -> Expr:
        if not isinstance(node, Read) or node.tensor not in producers:
            return node
        known = values.get((node.tensor, node.indices))
        return _value_at(producers[node.tensor], node.indices, names) if known is None else known

    result = transform(expr, rule)
    for definition in reversed(definitions):
        result = replace(definition, body=result)
    return result


def _value_at(producer: _Producer, indices: Iterable[Expr], names: FreshNames) -> Expr:
    """The producer's value at a cell, its local definitions under new names."""
    values: dict[Expr, Expr] = {IndexValue(name): axis for name, axis in zip(producer.variables, indices, strict=True)}
    return normalized(substitute(fresh_locals(producer.value, {}, names), values))


def fresh_locals(expr: Expr, renamed: dict[str, str], names: FreshNames) -> Expr:
    """``expr`` with new names for its local definitions; ``renamed`` are those of the definitions around it."""
    match expr:
        case Local(name=name):
            return replace(expr, name=renamed.get(name, name))
        case Let(name=name, value=value, body=body):
            fresh = names.fresh(name)
            return replace(
                expr,
                name=fresh,
                value=fresh_locals(value, renamed, names),
                body=fresh_locals(body, {**renamed, name: fresh}, names),
            )
        case _:
            return map_children(expr, lambda part: fresh_locals(part, renamed, names))
