"""Arguments of definitions: types and ranks are those that are declared, and Python's numbers take them."""

from __future__ import annotations

from tcdsl.errors import DtypeError, ShapeError
from tcdsl.frontend.comprehensions.checked import TensorType
from tcdsl.frontend.staging.session import Session
from tcdsl.frontend.symbols.symbols import SymbolicNumber, SymbolicTensor
from tcdsl.ir.build import cast
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.program import Access, Neutral
from tcdsl.ranges.sketches.sketch import Sketch
from tcdsl.span import Span

__all__ = ["input_tensor"]

_KINDS = ["bool", "int", "float"]


def input_tensor(
    session: Session, given: object, wanted: TensorType, name: str, owner: str, span: Span | None
) -> SymbolicTensor:
    """An argument of a definition as a tensor of its type. `DtypeError` and `ShapeError` where it has another one."""
    if isinstance(given, SymbolicNumber) and wanted.rank == 0:
        return _of_number(session, given, wanted, name, owner, span)
    if not isinstance(given, SymbolicTensor):
        fact = f"`{name}` of `{owner}` is a {type(given).__name__}, not a tensor of {wanted}"
        raise DtypeError.at(fact, span, "give it an array")
    if given.rank != wanted.rank:
        fact = f"`{name}` of `{owner}` has rank {wanted.rank}, and is given an array of rank {given.rank}"
        raise ShapeError.at(fact, span, "ranks of arguments are those of the parameters")
    if given.element_type != wanted.dtype:
        fact = f"`{name}` of `{owner}` is {wanted.dtype}, and is given {given.element_type}"
        raise DtypeError.at(fact, span, f"convert it: `{name}.astype(np.{wanted.dtype})`")
    return given


def _of_number(
    session: Session, given: SymbolicNumber, wanted: TensorType, name: str, owner: str, span: Span | None
) -> SymbolicTensor:
    limit = "bool" if wanted.dtype == "bool" else "float" if wanted.dtype.startswith("float") else "int"
    if _KINDS.index(given.weak_kind) > _KINDS.index(limit):
        fact = f"`{name}` of `{owner}` is {wanted.dtype}, and is given a Python {given.weak_kind}"
        raise DtypeError.at(fact, span, f"convert it: `np.{wanted.dtype}(x)`")
    sketch = Sketch(
        target=Access(session.builder.fresh_name(name), (), span),
        dtype=wanted.dtype,
        extents=(),
        mode="declared",
        accumulate="assign",
        start=Neutral(),
        value=cast(given.expr, compute_dtype(wanted.dtype)),
        variables=(),
        label=name,
        span=span,
    )
    return session.builder.record(sketch, name)
