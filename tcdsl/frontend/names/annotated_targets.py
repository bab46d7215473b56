"""Targets that an annotation declares: ``O: real[N, X]``."""

from __future__ import annotations

import ast

from tcdsl.frontend.names.function_scope import FunctionScope
from tcdsl.frontend.staging.declarations import DeclaredTarget, Dimensions, declared_dtype, extent_expression
from tcdsl.frontend.staging.environment import UNBOUND
from tcdsl.frontend.symbols.symbols import SymbolicSize
from tcdsl.ir.expressions import Expr

__all__ = ["declared_target"]


def declared_target(scope: FunctionScope, target: Dimensions, found: dict[str, object]) -> DeclaredTarget:
    """The target that an annotation declares; sizes that it leaves open are added to ``found``."""
    span = scope.span(target.node)
    dtype = "real" if target.kind == "real" else declared_dtype(target.kind, span)
    builder = scope.session.builder
    for extent in target.extents:
        # A name without a value is an extent that the statements leave open; from here on it is that size.
        if isinstance(extent, ast.Name) and extent.id not in found and scope.value_of(extent.id) is UNBOUND:
            found[extent.id] = SymbolicSize(builder, builder.open_size(extent.id))

    def extent_of(extent: ast.expr) -> Expr:
        opened = found.get(extent.id) if isinstance(extent, ast.Name) else None
        return opened.expr if isinstance(opened, SymbolicSize) else extent_expression(scope, extent)

    return DeclaredTarget(tuple(map(extent_of, target.extents)), dtype, span)
