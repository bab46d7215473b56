"""What a source in the language of Tensor Comprehensions says, as values that compare equal wherever they stand.

::

    def matmul(float(N, K) A, float(K, M) B) -> (C) {
        C(i, j) +=! A(i, k) * B(k, j)
    }
"""

from __future__ import annotations

from dataclasses import field

from tcdsl.frontend.words.nodes import TextNode
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
]

_PLACE = field(default=None, compare=False, repr=False)


class Number(TextNode):
    """A literal: a float32 if ``is_float``, else an int32."""

    value: int | float
    is_float: bool
    span: Span | None = _PLACE


class Name(TextNode):
    """An identifier that stands alone: an index variable, a size, a local definition, a tensor of rank 0."""

    name: str
    span: Span | None = _PLACE


class Extent(TextNode):
    """``A.1``: the extent of a tensor along an axis."""

    tensor: Name
    axis: int
    span: Span | None = _PLACE


class Call(TextNode):
    """``A(i, j + 1)`` or ``exp(x)``: a cell of a tensor, or a built-in function."""

    name: Name
    arguments: tuple[Expression, ...]
    span: Span | None = _PLACE


class Convert(TextNode):
    """``float(x)``: a value as another element type."""

    dtype: str
    operand: Expression
    span: Span | None = _PLACE


class Unary(TextNode):
    """``-x`` and ``!x``."""

    operator: str
    operand: Expression
    span: Span | None = _PLACE


class Binary(TextNode):
    """``a + b`` and the like, comparisons, ``&&`` and ``||``."""

    operator: str
    left: Expression
    right: Expression
    span: Span | None = _PLACE


class Choice(TextNode):
    """``c ? a : b``."""

    condition: Expression
    chosen: Expression
    other: Expression
    span: Span | None = _PLACE


Expression = Number | Name | Extent | Call | Convert | Unary | Binary | Choice


class Range(TextNode):
    """``i in a:b`` behind ``where``."""

    variable: Name
    low: Expression
    high: Expression
    span: Span | None = _PLACE


class LocalDefinition(TextNode):
    """``t = a`` behind ``where``."""

    name: Name
    value: Expression
    span: Span | None = _PLACE


class Exists(TextNode):
    """``exists a`` behind ``where``: the accesses of ``a`` take part in range inference."""

    value: Expression
    span: Span | None = _PLACE


class Annotation(TextNode):
    """``<=> name(a, b)``: documentation."""

    name: Name
    arguments: tuple[Expression, ...]
    span: Span | None = _PLACE


class Target(TextNode):
    """What a statement writes; ``bare`` is a rank 0 without brackets."""

    name: Name
    indices: tuple[Name, ...]
    bare: bool = field(default=False, compare=False)
    span: Span | None = _PLACE


class Statement(TextNode):
    """``C(i, j) +=! A(i, k) * B(k, j) where k in 0:K``; ``operator`` is as written."""

    target: Target
    operator: str
    value: Expression
    annotation: Annotation | None
    clauses: tuple[Range | LocalDefinition | Exists, ...]
    span: Span | None = _PLACE


class DefinitionCall(TextNode):
    """``a, b = f(x, y)``: a call of a definition. With one target the parser gives a `Statement`, which looks alike."""

    targets: tuple[Name, ...]
    function: Name
    arguments: tuple[Name, ...]
    span: Span | None = _PLACE


class ElementType(TextNode):
    """``float(N, 3)``: a type of elements with the sizes of its axes, names or numbers; ``sizes`` may be left out in
    results.
    """

    dtype: str
    sizes: tuple[Name | Number, ...]
    span: Span | None = _PLACE


class Parameter(TextNode):
    """``float(N) A``."""

    type: ElementType
    name: Name
    span: Span | None = _PLACE


class Result(TextNode):
    """``O`` or ``float(N) O``."""

    type: ElementType | None
    name: Name
    span: Span | None = _PLACE


class Definition(TextNode):
    """``def f(...) -> (...) { ... }``."""

    name: Name
    parameters: tuple[Parameter, ...]
    results: tuple[Result, ...]
    statements: tuple[Statement | DefinitionCall, ...]
    span: Span | None = _PLACE


class Source(TextNode):
    """All definitions of a text, which ``filename`` stands for in messages."""

    definitions: tuple[Definition, ...]
    text: str = field(default="", compare=False, repr=False)
    filename: str = field(default="", compare=False, repr=False)
