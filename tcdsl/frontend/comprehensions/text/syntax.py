"""What a source in the language of Tensor Comprehensions says, as values that compare equal wherever they stand.

::

    def matmul(float(N, K) A, float(K, M) B) -> (C) {
        C(i, j) +=! A(i, k) * B(k, j)
    }
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tcdsl.span import Span

__all__ = [
    "Annotation",
    "Binary",
    "Call",
    "Choice",
    "Convert",
    "Definition",
    "DefinitionCall",
    "ElementType",
    "Exists",
    "Expression",
    "Extent",
    "LocalDefinition",
    "Name",
    "Number",
    "Parameter",
    "Range",
    "Result",
    "Source",
    "Statement",
    "Target",
    "Unary",
    "parts_of",
    "walk",
]

_PLACE = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Number:
    """A literal: a float32 if ``is_float``, else an int32."""

    value: int | float
    is_float: bool
    span: Span | None = _PLACE


@dataclass(frozen=True, slots=True)
class Name:
    """An identifier that stands alone: an index variable, a size, a local definition, a tensor of rank 0."""

    name: str
    span: Span | None = _PLACE


@dataclass(frozen=True, slots=True)
class Extent:
    """``A.1``: the extent of a tensor along an axis."""

    tensor: Name
    axis: int
    span: Span | None = _PLACE


@dataclass(frozen=True, slots=True)
class Call:
    """``A(i, j + 1)`` or ``exp(x)``: a cell of a tensor, or a built-in function."""

    name: Name
    arguments: tuple[Expression, ...]
    span: Span | None = _PLACE


@dataclass(frozen=True, slots=True)
class Convert:
    """``float(x)``: a value as another element type."""

    dtype: str
    operand: Expression
    span: Span | None = _PLACE


@dataclass(frozen=True, slots=True)
class Unary:
    """``-x`` and ``!x``."""

    operator: str
    operand: Expression
    span: Span | None = _PLACE


@dataclass(frozen=True, slots=True)
class Binary:
    """``a + b`` and the like, comparisons, ``&&`` and ``||``."""

    operator: str
    left: Expression
    right: Expression
    span: Span | None = _PLACE


@dataclass(frozen=True, slots=True)
class Choice:
    """``c ? a : b``."""

    condition: Expression
    chosen: Expression
    other: Expression
    span: Span | None = _PLACE


Expression = Number | Name | Extent | Call | Convert | Unary | Binary | Choice


@dataclass(frozen=True, slots=True)
class Range:
    """``i in a:b`` behind ``where``."""

    variable: Name
    low: Expression
    high: Expression
    span: Span | None = _PLACE


@dataclass(frozen=True, slots=True)
class LocalDefinition:
    """``t = a`` behind ``where``."""

    name: Name
    value: Expression
    span: Span | None = _PLACE


@dataclass(frozen=True, slots=True)
class Exists:
    """``exists a`` behind ``where``: the accesses of ``a`` take part in range inference."""

    value: Expression
    span: Span | None = _PLACE


@dataclass(frozen=True, slots=True)
class Annotation:
    """``<=> name(a, b)``: documentation."""

    name: Name
    arguments: tuple[Expression, ...]
    span: Span | None = _PLACE


@dataclass(frozen=True, slots=True)
class Target:
    """What a statement writes; ``bare`` is a rank 0 without brackets."""

    name: Name
    indices: tuple[Name, ...]
    bare: bool = field(default=False, compare=False)
    span: Span | None = _PLACE


@dataclass(frozen=True, slots=True)
class Statement:
    """``C(i, j) +=! A(i, k) * B(k, j) where k in 0:K``; ``operator`` is as written."""

    target: Target
    operator: str
    value: Expression
    annotation: Annotation | None
    clauses: tuple[Range | LocalDefinition | Exists, ...]
    span: Span | None = _PLACE


@dataclass(frozen=True, slots=True)
class DefinitionCall:
    """``a, b = f(x, y)``: a call of a definition. With one target the parser gives a `Statement`, which looks alike."""

    targets: tuple[Name, ...]
    function: Name
    arguments: tuple[Name, ...]
    span: Span | None = _PLACE


@dataclass(frozen=True, slots=True)
class ElementType:
    """``float(N, 3)``: a type of elements with the sizes of its axes, names or numbers; ``sizes`` may be left out in
    results.
    """

    dtype: str
    sizes: tuple[Name | Number, ...]
    span: Span | None = _PLACE


@dataclass(frozen=True, slots=True)
class Parameter:
    """``float(N) A``."""

    type: ElementType
    name: Name
    span: Span | None = _PLACE


@dataclass(frozen=True, slots=True)
class Result:
    """``O`` or ``float(N) O``."""

    type: ElementType | None
    name: Name
    span: Span | None = _PLACE


@dataclass(frozen=True, slots=True)
class Definition:
    """``def f(...) -> (...) { ... }``."""

    name: Name
    parameters: tuple[Parameter, ...]
    results: tuple[Result, ...]
    statements: tuple[Statement | DefinitionCall, ...]
    span: Span | None = _PLACE


@dataclass(frozen=True, slots=True)
class Source:
    """All definitions of a text, which ``filename`` stands for in messages."""

    definitions: tuple[Definition, ...]
    text: str = field(default="", compare=False, repr=False)
    filename: str = field(default="", compare=False, repr=False)


def parts_of(expression: Expression) -> tuple[Expression, ...]:
    """The direct parts of an expression; a name that is called or measured is none of them."""
    match expression:
        case Call(arguments=arguments):
            return arguments
        case Convert(operand=operand) | Unary(operand=operand):
            return (operand,)
        case Binary(left=left, right=right):
            return (left, right)
        case Choice(condition=condition, chosen=chosen, other=other):
            return (condition, chosen, other)
    return ()


def walk(expression: Expression) -> Iterator[Expression]:
    """All parts of an expression, outermost first, from left to right."""
    waiting = [expression]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(parts_of(node)))
