"""Sizes and element types to import, for annotations that static checkers read.

::

    from tcdsl.sizes import N, K, real

    @op
    def scaled(A: real[N, K]) -> real[N, K]:
        return A / N

Decorated functions know both without an import; an annotation without quotes needs it, because Python evaluates that
when the function is defined. Checkers take ``real[N, K]`` for any array or tensor.
"""

from __future__ import annotations

import string
from typing import TYPE_CHECKING, Any

from tcdsl.frontend.names.language_functions import LANGUAGE_FUNCTIONS, ElementKind
from tcdsl.indices import ImportedLetter

__all__ = ["real"]
__all__ += ["float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
__all__ += list(string.ascii_uppercase)


if TYPE_CHECKING:
    from typing_extensions import TypeAliasType, TypeVarTuple

    Extents = TypeVarTuple("Extents")

    # To checkers a letter is a class, because it stands in annotations, and one with all operators, because a function
    # computes with it; an annotation is Any, because a checker must accept arrays and tensors of all libraries.
    class _AnyOperators(type, Any):  # type: ignore[misc]
        def __eq__(cls, other: object) -> Any: ...
        def __hash__(cls) -> int: ...

    class _Size(metaclass=_AnyOperators): ...

    real = TypeAliasType("real", Any, type_params=(Extents,))
    float16 = TypeAliasType("float16", Any, type_params=(Extents,))
    float32 = TypeAliasType("float32", Any, type_params=(Extents,))
    float64 = TypeAliasType("float64", Any, type_params=(Extents,))
    int8 = TypeAliasType("int8", Any, type_params=(Extents,))
    int16 = TypeAliasType("int16", Any, type_params=(Extents,))
    int32 = TypeAliasType("int32", Any, type_params=(Extents,))
    int64 = TypeAliasType("int64", Any, type_params=(Extents,))
    uint8 = TypeAliasType("uint8", Any, type_params=(Extents,))
    uint16 = TypeAliasType("uint16", Any, type_params=(Extents,))
    uint32 = TypeAliasType("uint32", Any, type_params=(Extents,))
    uint64 = TypeAliasType("uint64", Any, type_params=(Extents,))
    A = _Size
    B = _Size
    C = _Size
    D = _Size
    E = _Size
    F = _Size
    G = _Size
    H = _Size
    I = _Size
    J = _Size
    K = _Size
    L = _Size
    M = _Size
    N = _Size
    O = _Size
    P = _Size
    Q = _Size
    R = _Size
    S = _Size
    T = _Size
    U = _Size
    V = _Size
    W = _Size
    X = _Size
    Y = _Size
    Z = _Size
else:
    real = ElementKind("real")
    globals().update((name, each) for name, each in LANGUAGE_FUNCTIONS.items() if isinstance(each, ElementKind))
    globals().update((letter, ImportedLetter(letter)) for letter in string.ascii_uppercase)
