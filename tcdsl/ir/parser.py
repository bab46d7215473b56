"""Text to programs."""

from __future__ import annotations

from tcdsl.ir.expression_parser import parse_expr, parse_rule

__all__ = ["parse_expr", "parse_rule"]
