"""The functions of the driver's text, and the symbols that they become."""

from __future__ import annotations

import ast

__all__ = ["definitions", "driver_symbols", "python_symbol"]


def definitions(text: str) -> list[ast.FunctionDef]:
    """The functions of the driver's text."""
    return [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]


def driver_symbols(text: str) -> list[str]:
    """The symbols of `tcdsl.targets.cpu.emission.driver_emission.emitted_driver`."""
    public = [definition for definition in definitions(text) if not definition.name.startswith("_")]
    called = [python_symbol(each.name) for each in public if isinstance(each.returns, ast.Name)]
    return [*(each.name for each in public), *called]


def python_symbol(name: str) -> str:
    """The symbol of the function that Python calls."""
    return f"{name}.python"
