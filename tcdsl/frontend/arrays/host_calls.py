"""Calls of Python's own functions in a function that is being staged, made when the program runs.

A call is a loop of one round (`tcdsl.ir.program.Repeat`) on ``host``. Its body says that each cell of a result may
depend on any cell of what is given: it reads these at places that are data.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from tcdsl.frontend.staging.session import Session
from tcdsl.frontend.symbols.symbols import SymbolicTensor
from tcdsl.ir.build import apply, cast, constant, integer
from tcdsl.ir.domain import Domain
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Boundary, Expr, IndexValue, Read, SizeValue
from tcdsl.ir.interpreter.host_code import HostCode
from tcdsl.ir.program import Access, AxisExtent, Program, Repeat, Size, Statement, Tensor, Unset
from tcdsl.polyhedra.boxes import box, over_box

__all__ = ["record_host_call"]


def record_host_call(
    session: Session, code: HostCode, given: Sequence[SymbolicTensor], shapes: Sequence[Sequence[Expr]], label: str
) -> list[SymbolicTensor]:
    """Record a call of ``code``; its results, which have ``shapes``."""
    builder, span = session.builder, session.location()
    cells: SymbolicTensor = session.capture(code.cells(), code.name)
    kinds = [(dtype, tuple(extents)) for (dtype, _), extents in zip(code.made, shapes, strict=True)]
    begun = [_begun(session, f"{label}_before", dtype, extents) for dtype, extents in kinds]
    results: list[Tensor] = []
    for place, (dtype, extents) in enumerate(kinds):
        called = label if len(kinds) == 1 else f"{label}_{place}"
        results.append(Tensor(builder.fresh_name(called), dtype, extents, called, span))
        builder.declare(results[-1])
    body = _body(f"{code.name}_call", [cells, *given], begun)
    inputs = (cells.name, *[each.name for each in given], *[each.name for each in begun])
    repeat = Repeat(tuple([each.name for each in results]), integer(1), body, inputs, span, host=True)
    builder.add_repeat(repeat, results)
    return [SymbolicTensor(builder, each.name, each.dtype, each.shape, each.label) for each in results]


def _begun(session: Session, label: str, dtype: str, extents: tuple[Expr, ...]) -> Tensor:
    # What the call writes all cells of: nothing is written before.
    made = Tensor(session.builder.fresh_name(label), dtype, extents, label, session.location())
    zero = constant(0, compute_dtype(dtype))
    if not extents:
        session.builder.add_statement(over_box(made.name, (), (), zero), made)
        return made
    variables = tuple([f"c{k}" for k in range(len(extents))])
    none = Domain.from_set(box(variables, (integer(0),) * len(extents)))
    target = Access(made.name, tuple(map(IndexValue, variables)))
    session.builder.add_statement(Statement(target, "assign", Unset(), zero, none), made)
    return made


def _body(name: str, given: Sequence[SymbolicTensor], begun: Sequence[Tensor]) -> Program:
    sizes = [Size("k", AxisExtent("round", 0))]

    def own(called: str, dtype: str, rank: int) -> Tensor:
        extents = [Size(f"n_{called}_{axis}", AxisExtent(called, axis)) for axis in range(rank)]
        sizes.extend(extents)
        return Tensor(called, dtype, tuple([SizeValue(each.name) for each in extents]))

    counter = Tensor("round", "bool", (SizeValue("k"),))
    inputs = [own(f"given_{k}", each.element_type, each.rank) for k, each in enumerate(given)]
    before = [own(f"result_{k}", each.dtype, len(each.shape)) for k, each in enumerate(begun)]
    after = [Tensor(f"{each.name}_made", each.dtype, each.shape) for each in before]
    number = Read(inputs[0].name, (integer(1),), (Boundary.FILL,), "int64", constant(0, "int64"))
    statements = []
    for made in after:
        variables = tuple([f"c{k}" for k in range(len(made.shape))])
        reads = [cast(_somewhere(each, number), compute_dtype(made.dtype)) for each in inputs]
        joined = "or_" if made.dtype == "bool" else "add"
        value = reduce(lambda left, right: apply(joined, left, right), reads)
        statements.append(over_box(made.name, variables, made.shape, value))
    updates = tuple([(old.name, new.name) for old, new in zip(before, after, strict=True)])
    everything = (counter, *inputs, *before)
    return Program(name, everything, tuple(sizes), tuple(after), tuple(statements), (), updates)


def _somewhere(tensor: Tensor, place: Expr) -> Expr:
    dtype = compute_dtype(tensor.dtype)
    count = len(tensor.shape)
    return Read(tensor.name, (place,) * count, (Boundary.FILL,) * count, dtype, constant(0, dtype) if count else None)
