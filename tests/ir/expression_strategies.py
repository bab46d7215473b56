"""Random typed expressions over a fixed scope, for tests of the printer and the parser."""

from __future__ import annotations

import math

from hypothesis import strategies as st

from tcdsl.ir.build import result_dtype
from tcdsl.ir.dtypes import DTYPES, is_boolean, is_floating
from tcdsl.ir.expressions import Apply, Boundary, Cast, Constant, Expr, IndexValue, Let, Local, Read, SizeValue
from tcdsl.ir.primitives import PRIMITIVES
from tcdsl.ir.program import Tensor

__all__ = ["SIZES", "TENSORS", "VARIABLES", "expressions"]

SIZES = ("N", "M")
VARIABLES = ("i", "j")
TENSORS = {
    tensor.name: tensor
    for tensor in (
        *(Tensor(f"t_{dtype}", dtype, (SizeValue("N"), SizeValue("M"))) for dtype in DTYPES),
        *(Tensor(f"s_{dtype}", dtype, ()) for dtype in DTYPES),
        Tensor("i", "float32", ()),  # hidden by the index variable
        Tensor("z", "float64", ()),  # hidden by a local definition
    )
}
# Arithmetic knows no float16.
VALUE_DTYPES = tuple(dtype for dtype in DTYPES if dtype != "float16")


def constants(dtype: str) -> st.SearchStrategy[Expr]:
    if is_boolean(dtype):
        return st.booleans().map(lambda value: Constant(value, dtype))
    if is_floating(dtype):
        special = st.sampled_from([0.0, -0.0, 1.0, -2.0, 0.1, 1e30, 5e-324, math.inf, -math.inf, math.nan])
        return (special | st.floats(allow_nan=False)).map(lambda value: Constant(value, dtype))
    bits = int(dtype.lstrip("uint"))
    low, high = (0, 2**bits - 1) if dtype.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return (st.sampled_from([low, high, 0, 1]) | st.integers(low, high)).map(lambda value: Constant(value, dtype))


@st.composite
def reads(draw: st.DrawFn, dtype: str, depth: int, bound: tuple[tuple[str, str], ...]) -> Expr:
    stored = "float16" if dtype == "float32" and draw(st.booleans()) else dtype
    if draw(st.booleans()):
        hidden = {"float32": "i", "float64": "z"}.get(stored)
        return Read(hidden if hidden and draw(st.booleans()) else f"s_{stored}", (), (), dtype)
    indices = tuple(draw(expressions("int64", depth - 1, bound)) for _ in range(2))
    boundaries = tuple(draw(st.sampled_from(Boundary)) for _ in range(2))
    fill = draw(expressions(dtype, depth - 1, bound)) if Boundary.FILL in boundaries else None
    return Read(f"t_{stored}", indices, boundaries, dtype, fill)


@st.composite
def applications(draw: st.DrawFn, dtype: str, depth: int, bound: tuple[tuple[str, str], ...]) -> Expr:
    fitting = []
    for name, row in PRIMITIVES.items():
        for operand in VALUE_DTYPES:
            given = ("bool", operand, operand) if row.kind == "select" else (operand,) * row.arity
            try:
                if result_dtype(name, given) == dtype:
                    fitting.append((name, given))
            except TypeError:
                continue
    name, given = draw(st.sampled_from(fitting))
    return Apply(name, tuple(draw(expressions(kind, depth - 1, bound)) for kind in given), dtype)


@st.composite
def definitions(draw: st.DrawFn, dtype: str, depth: int, bound: tuple[tuple[str, str], ...]) -> Expr:
    name, kind = draw(st.sampled_from(["z", "w"])), draw(st.sampled_from(VALUE_DTYPES))
    value = draw(expressions(kind, depth - 1, bound))
    return Let(name, value, draw(expressions(dtype, depth - 1, (*bound, (name, kind)))))


@st.composite
def expressions(
    draw: st.DrawFn, dtype: str | None = None, depth: int = 4, bound: tuple[tuple[str, str], ...] = ()
) -> Expr:
    """A well-typed expression of ``dtype``, or of any type; ``bound`` are the locals in scope with their types."""
    dtype = dtype or draw(st.sampled_from(VALUE_DTYPES))
    leaves: list[st.SearchStrategy[Expr]] = [
        constants(dtype),
        st.just(Read(f"s_{dtype}", (), (), dtype)),
    ]
    if dtype == "int64":
        leaves.append(st.sampled_from([IndexValue("i"), IndexValue("j"), SizeValue("N"), SizeValue("M")]))
    visible = dict(bound)
    leaves += [st.just(Local(name, kind)) for name, kind in visible.items() if kind == dtype]
    if depth == 0:
        return draw(st.one_of(leaves))
    casts = st.sampled_from(VALUE_DTYPES).flatmap(lambda source: expressions(source, depth - 1, bound))
    return draw(
        st.one_of(
            *leaves,
            applications(dtype, depth, bound),
            applications(dtype, depth, bound),
            reads(dtype, depth, bound),
            definitions(dtype, depth, bound),
            casts.map(lambda operand: Cast(operand, dtype)),
        )
    )
