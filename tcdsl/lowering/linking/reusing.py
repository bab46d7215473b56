"""Which memory the tensors of a body are made in.

::

    w[i, j] = 2 * u[i, j] - v[i, j] + u[i - 1, j] + u[i + 1, j]        w in the memory of v, of which each
    update u = w                                                       cell is read where it is written
    update v = u                                                       u stays where it is
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from tcdsl.ir.expressions import Expr, SizeValue, substitute
from tcdsl.ir.program import Keep, Program, Statement, statement_reads, tensors_read
from tcdsl.ir.sizes.known_sizes import equal_sizes

__all__ = ["reused"]


def reused(
    program: Program, outputs: Iterable[str], later: set[str], is_free: Callable[[str, Iterable[str]], bool]
) -> list[tuple[str, str]]:
    """Pairs of an input and what its memory shall hold at the end of a stage of a body: the updates for its lowering.

    A tensor that starts from a version that nothing needs any more takes over its memory. What a body's input becomes
    lies where this did, if that is free, or where another one did of which it reads its own cells alone. ``is_free``
    says whether an input's memory may be written over while ``later`` tensors and others stay.
    """
    by_name = {statement.target.tensor: statement for statement in program.statements}
    needed = {*later, *(new for _, new in program.updates)}
    reads = set[str]().union(*map(tensors_read, program.statements))
    pairs: dict[str, str] = {}

    def take(base: str, new: str) -> None:
        if base not in pairs and new not in pairs.values() and is_free(base, needed | reads - {base}):
            pairs[base] = new

    for new in outputs:
        take(_base(new, by_name), new)
    for into, new in program.updates:
        if new in by_name:
            take(into, new)
            for base, _ in program.updates:
                if base != into and _alike(program, base, new) and _at_own_cells(base, new, by_name):
                    take(base, new)
    return list(pairs.items())


def _base(name: str, statements: Mapping[str, Statement]) -> str:
    # The tensor from whose cells it starts, on the way over versions of it.
    *_, last = _versions(name, statements)
    return last


def _versions(name: str, statements: Mapping[str, Statement]) -> Iterable[str]:
    yield name
    while name in statements:
        start = statements[name].start
        if not isinstance(start, Keep):
            break
        name = start.tensor
        yield name


def _at_own_cells(name: str, new: str, statements: Mapping[str, Statement]) -> bool:
    # Whether the tensor ``name`` is read for ``new`` and its earlier versions alone, at the cells that are written.
    versions = set(_versions(new, statements))
    for statement in statements.values():
        found = [read for read in statement_reads(statement) if read.tensor == name]
        if found and statement.target.tensor not in versions:
            return False
        if any(read.indices != statement.target.indices for read in found):
            return False
    return True


def _alike(program: Program, one: str, other: str) -> bool:
    # Whether two tensors have one type and one shape, and are no scalars, which registers hold.
    first, second = program.tensor(one), program.tensor(other)
    equal = equal_sizes(program.sizes, program.assertions)
    same: dict[Expr, Expr] = {SizeValue(name): SizeValue(chosen) for name, chosen in equal.items()}
    shapes = ([substitute(extent, same) for extent in tensor.shape] for tensor in (first, second))
    mine, its = shapes
    return bool(first.shape) and first.dtype == second.dtype and mine == its
