"""What annotations and `bind_dims` say of extents: they name sizes and declare targets, ``O: real[N, X]``."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from tcdsl.errors import DslSyntaxError, DtypeError, ShapeError
from tcdsl.frontend.names.function_scope import FunctionScope
from tcdsl.frontend.staging.declarations import DeclaredTarget, given_extent
from tcdsl.frontend.staging.target_states import UNBOUND
from tcdsl.frontend.symbols.operators import BoundLater
from tcdsl.frontend.symbols.symbols import SymbolicArray, SymbolicSize
from tcdsl.ir.dtypes import DTYPES
from tcdsl.ir.expressions import Expr
from tcdsl.span import Span

__all__ = ["Dimensions", "bind_dimensions", "binds_objects", "declared_target"]


@dataclass(frozen=True, slots=True)
class Dimensions:
    """What names the extents of ``name``, of elements of ``kind``: the annotation of a parameter or a target, or a call
    of ``bind_dims``.
    """

    node: ast.AST
    name: str
    kind: str
    extents: tuple[ast.expr, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The plain names among the extents."""
        return tuple(dict.fromkeys(extent.id for extent in self.extents if isinstance(extent, ast.Name)))


def _declared_dtype(kind: str, span: Span | None) -> str | None:
    """The type that an annotation names; ``None`` for ``real`` (the floating type written) and ``any``."""
    if kind in ("real", "any"):
        return None
    if kind in DTYPES:
        return kind
    raise DtypeError.at(f"`{kind}` is not an element type", span, f"write real, or one of {', '.join(DTYPES)}")


def declared_target(scope: FunctionScope, target: Dimensions, found: dict[str, object]) -> DeclaredTarget:
    """The target that an annotation declares; sizes that it leaves open are added to ``found``."""
    span = scope.span(target.node)
    dtype = "real" if target.kind == "real" else _declared_dtype(target.kind, span)
    builder = scope.session.builder
    for extent in target.extents:
        # A name without a value is an extent that the statements leave open; from here on it is that size.
        if isinstance(extent, ast.Name) and extent.id not in found and scope.value_of(extent.id) is UNBOUND:
            found[extent.id] = SymbolicSize(builder, builder.open_size(extent.id))

    def extent_of(extent: ast.expr) -> Expr:
        opened = found.get(extent.id) if isinstance(extent, ast.Name) else None
        return opened.expr if isinstance(opened, SymbolicSize) else _extent_expression(scope, extent)

    return DeclaredTarget(tuple(map(extent_of, target.extents)), dtype, span)


def _extent_expression(scope: FunctionScope, node: ast.expr) -> Expr:
    """The extent that an annotation's ``N`` or ``N + 1`` stands for; every name in it must be bound."""
    for name in (n.id for n in ast.walk(node) if isinstance(n, ast.Name)):
        if scope.value_of(name) is UNBOUND:
            raise DslSyntaxError.at(
                f"the size `{name}` has no value here",
                scope.span(node),
                f"bind it first (`{name} = A.shape[0]`), or leave the extents to be inferred: `O = output()`",
            )
    return given_extent(scope.python_value(node), scope.span(node))


def binds_objects(scope: FunctionScope, given: Dimensions) -> bool:
    """Whether a call of ``bind_dims`` is given sizes that are objects, which the method itself binds."""
    return any(isinstance(_size_object(scope, extent), BoundLater) for extent in given.extents)


def _size_object(scope: FunctionScope, extent: ast.expr) -> object:
    # What stands for a size: a name, or what a list or an object holds, `X[0]`, `*X`, `self.N`.
    if isinstance(extent, ast.Name):
        return scope.holds(extent.id)
    unbound = any(scope.value_of(part.id) is UNBOUND for part in ast.walk(extent) if isinstance(part, ast.Name))
    if unbound or not isinstance(extent, ast.Starred | ast.Subscript | ast.Attribute):
        return None
    if not isinstance(extent, ast.Starred):
        return scope.python_value(extent)
    several = scope.python_value(extent.value)
    return next(iter(several), None) if isinstance(several, tuple | list) else None


def bind_dimensions(scope: FunctionScope, array: SymbolicArray, given: Dimensions, found: dict[str, object]) -> None:
    """Bind the names among the extents ``given`` for ``array``, into ``found``; what has a value must agree.

    `ShapeError` for a rank other than the number of extents, `DtypeError` for another element type.
    """
    label, kind, extents = given.name, given.kind, given.extents
    span = scope.span(extents[0]) if extents else None
    if len(extents) != array.rank:
        raise ShapeError.at(
            f"`{label}` has rank {array.rank}, but {len(extents)} sizes are given for it",
            span,
            "give one size per axis",
        )
    dtype = _declared_dtype(kind, span)
    if dtype is not None and dtype != array.dtype:
        raise DtypeError.at(f"`{label}` is {array.dtype}, not {dtype}", span, f"pass an array of {dtype}")
    if kind == "real" and not array.dtype.startswith("float"):
        raise DtypeError.at(f"`{label}` is {array.dtype}, not a floating type", span, "pass a floating array")
    for axis, (node, extent) in enumerate(zip(extents, array.extents, strict=True)):
        known: object = UNBOUND
        if isinstance(node, ast.Name):
            known = found.get(node.id, UNBOUND)
            known = scope.own(node.id) if known is UNBOUND else known
            if known is UNBOUND:
                found[node.id] = SymbolicSize(scope.session.builder, extent)
                continue
        expected = _extent_expression(scope, node) if known is UNBOUND else given_extent(known, scope.span(node))
        written = ast.unparse(node)
        scope.session.builder.require_equal(
            expected,
            extent,
            f"axis {axis} of `{label}` does not have the extent `{written}` that is bound already",
            scope.span(node),
        )
