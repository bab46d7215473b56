"""What names hold in code: memory, views of it, and values."""

from __future__ import annotations

from typing import Any, TypeGuard

import numpy as np

from tcdsl.frontend.staging.session import Session, session_of
from tcdsl.frontend.symbols.graph_tensors import GraphTensor
from tcdsl.frontend.symbols.symbols import SymbolicArray, SymbolicNumber, SymbolicSize, SymbolicTensor, View

__all__ = ["held", "indexed", "is_tensor_memory", "of_its_own"]


def is_tensor_memory(current: object) -> TypeGuard[SymbolicTensor]:
    """Whether a name holds a tensor of its own, into which assignments store; a view is bound anew by another one."""
    return isinstance(current, SymbolicTensor) and current.memory


def held(value: Any) -> Any:
    """``value`` with the cells that its memory holds now."""
    if isinstance(value, SymbolicTensor | View) and value.memory:
        return value.held()
    if type(value) in (tuple, list):
        return type(value)(map(held, value))
    return value


def of_its_own(current: Any, name: str) -> Any:
    """What ``name`` holds; an array of the function's surroundings, which staging must not change, as a tensor.

    ``w = TABLE[1:]; w *= 2`` makes another array.
    """
    root = current
    while isinstance(root, np.ndarray) and isinstance(root.base, np.ndarray):
        root = root.base
    if not isinstance(root, np.ndarray):
        return current
    session = session_of("a tensor statement")
    return session.capture(current, name) if any(reading.seen is root for reading in session.readings) else current


def indexed(session: Session | None, value: Any, key: Any) -> Any:
    """``value[key]``; an array with a key that the program computes is an input of the program."""
    if session is None:
        return value[key]
    array = isinstance(value, np.ndarray) or (isinstance(value, GraphTensor) and session.context.graph is None)
    if array and any(map(_is_computed, key if isinstance(key, tuple) else (key,))):
        value = session.capture(value)
    return value[key]


def _is_computed(key: Any) -> bool:
    if isinstance(key, slice):
        return any(map(_is_computed, (key.start, key.stop, key.step)))
    return isinstance(key, SymbolicArray | SymbolicNumber | SymbolicSize)
