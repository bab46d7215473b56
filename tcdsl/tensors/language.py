"""Functions of the language that make tensors of graphs: decorated functions know them without an import."""

from __future__ import annotations

import importlib
from typing import Any

from tcdsl.frontend.names.functions import LANGUAGE_FUNCTIONS, register_functions

__all__ = ["LANGUAGE_FUNCTIONS", "LaterFunction"]


class LaterFunction:
    """A function of a module that is loaded when it is first called."""

    def __init__(self, name: str, module: str) -> None:
        self.__name__ = name
        self._module = module

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """The function itself."""
        return getattr(importlib.import_module(self._module), self.__name__)(*arguments, **keywords)

    def __repr__(self) -> str:
        return f"<function {self.__name__}>"


_FUNCTIONS = {
    "batch": "tcdsl.tensors.graphs.literals",
    "constraints_only": "tcdsl.tensors.graphs.constraints",
    "number": "tcdsl.tensors.graphs.literals",
    "param": "tcdsl.tensors.functions.parameters",
    "tensor": "tcdsl.tensors.graphs.literals",
}

register_functions({name: LaterFunction(name, module) for name, module in _FUNCTIONS.items()})
