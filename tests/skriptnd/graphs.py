"""Graphs of one operator, and shortcuts for tests."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import tcdsl as tc
from tcdsl.skriptnd.graphs import ModelGraph

__all__ = ["graph_of", "operator_graph", "reals"]

_KINDS = {"f": "real", "i": "int", "b": "bool"}


def reals(*shape: int, seed: int = 0) -> np.ndarray:
    """Random numbers between 0.1 and 2."""
    return np.random.default_rng(seed).uniform(0.1, 2.0, shape).astype(np.float32)


def graph_of(text: str) -> ModelGraph:
    """The first graph of a text."""
    return next(iter(tc.skriptnd.parse(text).graphs.values()))


def _declared(name: str, array: Any) -> str:
    if isinstance(array, list):
        shapes = {each.shape for each in array}
        axes = [",".join(map(str, shape)) for shape in shapes]
        return f"{name}: {_KINDS[array[0].dtype.kind]}[{axes[0]}]..({len(array)});"
    return f"{name}: {_KINDS[array.dtype.kind]}[{','.join(map(str, array.shape))}];"


def operator_graph(call: str, arrays: Sequence[Any], results: Sequence[str], dynamic: bool = False) -> ModelGraph:
    """The graph ``y0, y1 = call(x0, x1)`` for arrays; ``results`` are the types of the outputs.

    With ``dynamic`` the extents of inputs are known at the call alone.
    """
    names = [f"x{k}" for k in range(len(arrays))]
    inputs = " ".join(_declared(*pair) for pair in zip(names, arrays, strict=True))
    if dynamic:
        inputs = re.sub(r"\[([^\]]*)\]", lambda match: f"[{re.sub(r'[0-9]+', r'~|99', match[1])}]", inputs)
    outputs = " ".join(f"y{k}: {kind};" for k, kind in enumerate(results))
    targets = ", ".join(f"y{k}{kind.partition(']')[2] if '..' in kind else ''}" for k, kind in enumerate(results))
    module = call.partition(".")[0]
    given = call if "(" in call else f"{call}({', '.join(names)})"
    blocks = f"@input {{ {inputs} }} @output {{ {outputs} }} @compose {{ {targets} = {given}; }}"
    return graph_of(f"import {module};\ngraph one {{ {blocks} }}")


def values(graph: ModelGraph, arrays: Sequence[Any], variables: Mapping[str, Any] | None = None) -> list[Any]:
    """The results of a graph as a list."""
    found = graph(*arrays, variables=variables)
    return list(found) if isinstance(found, tuple) else [found]
