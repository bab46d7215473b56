"""Statements whose ranges a text declares: there is nothing to infer of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tcdsl.ir.build import index, integer
from tcdsl.ir.expressions import Boundary, ExplicitRange, Expr, Read
from tcdsl.ir.program import Access, Keep, Neutral
from tcdsl.span import Span

if TYPE_CHECKING:
    # Texts are read without what stages and compiles.
    from tcdsl.frontend.staging.session import Session
    from tcdsl.frontend.symbols.symbols import SymbolicTensor

__all__ = ["cell_of", "cell_variables", "recorded_store"]


def recorded_store(
    session: Session,
    name: str,
    dtype: str,
    extents: Sequence[Expr],
    value: Expr,
    target: Sequence[Expr] | None = None,
    ranges: Sequence[ExplicitRange] | None = None,
    into: SymbolicTensor | None = None,
    accumulate: str = "assign",
    conditions: Sequence[Expr] = (),
    span: Span | None = None,
) -> SymbolicTensor:
    """Record one statement whose ranges are known, on a new tensor, or on the cells of the tensor ``into``.

    Without ``target`` it writes all cells, at the indices ``i0, i1, ...``.
    """
    from tcdsl.ranges.sketches.sketch import Sketch

    builder = session.builder
    variables = cell_variables(len(extents))
    if ranges is None:
        ranges = [ExplicitRange(each, integer(0), end) for each, end in zip(variables, extents, strict=True)]
    indices = tuple(map(index, variables)) if target is None else tuple(target)
    sketch = Sketch(
        target=Access(builder.fresh_name(name), indices, span),
        dtype=dtype,
        extents=tuple(extents),
        mode="declared",
        accumulate=accumulate,
        start=Neutral() if into is None else Keep(into.name),
        value=value,
        variables=tuple(each.variable for each in ranges),
        ranges=tuple(ranges),
        conditions=tuple(conditions),
        # Where data says which cells are written, no two are the same: equal ones are written in rounds of their own.
        unique=accumulate == "assign" and into is not None,
        label=name,
        previous="" if into is None else into.name,
        span=span,
    )
    made = builder.record(sketch, name)
    builder.all_written(made.name)
    return made


def cell_variables(rank: int) -> list[str]:
    """The index variables of a statement on all cells."""
    return [f"i{axis}" for axis in range(rank)]


def cell_of(tensor: SymbolicTensor | str, indices: Sequence[Expr], dtype: str) -> Read:
    """A cell that is in range."""
    name = tensor if isinstance(tensor, str) else tensor.name
    return Read(name, tuple(indices), (Boundary.SKIP,) * len(indices), dtype)
