"""The elementwise computations in numexpr, which compiles expressions of whole arrays for vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numexpr

__all__ = ["FUNCTIONS", "convert"]


def convert(array: Any) -> Any:
    return array


def _expression(text: str, *names: str) -> Callable[..., Any]:
    # Constants of Python would make float32 float64.
    def run(*arguments: Any) -> Any:
        constants = {name: arguments[0].dtype.type(value) for name, value in {"one": 1, "slope": 1.702}.items()}
        return numexpr.evaluate(text, {**constants, **dict(zip(names, arguments, strict=True))})

    return run


FUNCTIONS = {
    "quick gelu": _expression("X / (one + exp(-slope * X))", "X"),
    "mish": _expression("X * tanh(log1p(exp(X)))", "X"),
    "quick gelu gradient": _expression(
        "W / (one + exp(-slope * X)) * (one + slope * X * (one - one / (one + exp(-slope * X))))", "X", "W"
    ),
}
