"""Tensors that hold more than everything that they are made of, and than all that the program takes and gives.

``D[i, j] = x[i] - y[j]`` is larger than ``x`` and ``y`` together, and if neither an input nor an output is as large, it
would decide how much memory a call needs. Computing such a value again wherever it is read takes a few operations on
cells that are at hand; reading it takes as long, and the memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from tcdsl.ir.expressions import Constant, Expr, IndexValue, Read, reads, size_names
from tcdsl.ir.program import Program, Statement, Tensor, statement_reads
from tcdsl.polyhedra.spaces import arranged

__all__ = ["outgrows", "read_where_written"]

# Reads of a value that is computed again at each of them.
_MOST_READS = 8


def outgrows(statement: Statement, program: Program, tensors: Mapping[str, Tensor]) -> bool:
    """Whether the target is larger than each tensor that the value reads and than each input and output.

    Extents are compared by name: ``[N, M]`` is larger than ``[N]`` and ``[M]``, and than ``[N, 3]``.
    """
    shape = tensors[statement.target.tensor].shape
    others = {read.tensor for read in reads(statement.value)}
    others.update(tensor.name for tensor in program.inputs)
    others.update(program.outputs)
    return all(_extents(shape) - _extents(tensors[name].shape) for name in others)


def _extents(shape: Sequence[Expr]) -> Counter[frozenset[str]]:
    # Of `N - K + 1` it matters that it grows with N.
    return Counter(size_names(extent) for extent in shape if not isinstance(extent, Constant))


def read_where_written(writer: Statement, readers: Sequence[Statement]) -> bool:
    """Whether few reads, each at a cell of its own at every point, find only cells that ``writer`` has written.

    The writer's indices are its variables.
    """
    name = writer.target.tensor
    axes = [axis.name for axis in writer.target.indices if isinstance(axis, IndexValue)]
    count = 0
    for reader in readers:
        for read in {read for read in statement_reads(reader) if read.tensor == name}:
            count += 1
            if count > _MOST_READS or not _finds_values(writer, axes, reader, read):
                return False
    return True


def _finds_values(writer: Statement, axes: Sequence[str], reader: Statement, read: Read) -> bool:
    variables = [axis.name for axis in read.indices if isinstance(axis, IndexValue)]
    if len(variables) != len(read.indices) or set(variables) != set(reader.domain.variables):
        return False
    if len(set(variables)) != len(variables):
        return False
    return bool(arranged(reader.domain.set, variables).is_subset(arranged(writer.domain.set, axes)))
