"""What the recorder is told of a statement: one object for each, made once, when the function is rewritten.

::

    C[i, j] += A[i, k] * B[k, j]      TensorStatement(node, "C")
    z = x[i] * x[i]                   Definition(node, "z")
    p -= learning_rate * g            Augmentation("p", ast.Sub)
    O: real[N, X]                     Dimensions(node, "O", "real", (N, X))
    A.bind_dims(N, K)                 Dimensions(node, "A", "any", (N, K))
    for t in range(T):                LoopStatement(("t",), names)

The rewritten function holds them in one closure variable (`Rewritten.statements`) and passes them to the recorder: with
one for each, Python's compiler would take time that is quadratic in their number.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tcdsl.frontend.names.annotated_targets import Dimensions

__all__ = ["Augmentation", "FunctionEntry", "RecordedDefinition", "Rewritten", "TensorStatement"]


@dataclass(frozen=True, slots=True)
class TensorStatement:
    """``T[...] op= value`` or ``assign(T[...], ...)``, which writes what ``name`` holds.

    ``memory`` is the text of what stands there instead of a name: ``p.grad``, for which ``name`` is made up.
    """

    node: ast.stmt
    name: str
    memory: str = ""


@dataclass(frozen=True, slots=True)
class RecordedDefinition:
    """``name = value`` where the value may be a scalar at each point.

    ``letters`` are those of the value that index targets of tensor statements later; ``bases`` has for each of the
    others what they index.
    """

    node: ast.Assign
    name: str
    letters: frozenset[str] = frozenset()
    bases: Mapping[str, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Augmentation:
    """``name op= value``, where ``operator`` is the type of the operator."""

    name: str
    operator: type[ast.operator]


@dataclass(frozen=True, slots=True)
class FunctionEntry:
    """The beginning of a function: ``fresh`` are the names that it may read before it has bound them."""

    fresh: tuple[str, ...]
    parameters: tuple[Dimensions, ...]
    projected: bool


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The rewritten definition, and the objects for its statements.

    ``own_names`` are all names that it binds, ``targets`` those that nothing else than tensor statements binds.
    """

    definition: ast.FunctionDef
    statements: Sequence[object]
    own_names: frozenset[str]
    targets: frozenset[str]
