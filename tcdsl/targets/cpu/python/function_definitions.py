"""Definitions of functions as syntax trees, for all versions of Python."""

from __future__ import annotations

import ast
from collections.abc import Sequence

__all__ = ["function_definition"]


def function_definition(
    identifier: str, parameters: Sequence[str], body: Sequence[ast.stmt], decorator: ast.expr
) -> ast.FunctionDef:
    """``@decorator`` above ``def identifier(parameters): body``."""
    arguments = ast.arguments([], [ast.arg(each) for each in parameters], None, [], [], None, [])
    function = ast.FunctionDef(identifier, arguments, list(body), [decorator], lineno=0)
    if hasattr(function, "type_params"):
        function.type_params = []
    return function
