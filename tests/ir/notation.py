"""Expressions and domains, from text."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import islpy as isl

from tcdsl.ir.domain import Domain
from tcdsl.ir.expressions import Expr
from tcdsl.ir.program import Tensor
from tcdsl.ir.text.expression_parser import ExpressionParser

__all__ = ["parse_domain", "parse_expr"]


def parse_expr(
    text: str,
    tensors: Mapping[str, Tensor],
    sizes: Collection[str] = (),
    variables: Collection[str] = (),
    dtype: str | None = None,
) -> Expr:
    return ExpressionParser(text, tensors, sizes, variables).parse(text, dtype)


def parse_domain(text: str) -> Domain:
    return Domain.from_set(isl.Set(text))
