"""Graphs as they are shown: as texts with the attributes that they were given, and as tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tcdsl.frontend.skriptnd.forms import GraphForm
from tcdsl.frontend.skriptnd.text.syntax import Declaration, Operator, TextModule
from tcdsl.frontend.skriptnd.values import Pack, TensorValue, shown
from tcdsl.span import Span

__all__ = ["Row", "configured_text", "rows_of", "text_at", "text_of_graph"]


def configured_text(text: TextModule, graph: Operator, attributes: Mapping[str, Any]) -> str:
    """The text of a module in which ``attributes`` are the defaults of a graph's attributes."""
    return _changed(text.text, _defaults(graph, attributes))


def text_of_graph(text: TextModule, graph: Operator, attributes: Mapping[str, Any], called: Sequence[Operator]) -> str:
    """The same without the other graphs; those that are called stand behind it."""
    others = ((each.span, "") for each in text.operators if each.graph and each is not graph)
    own = _changed(text.text, [*others, *_defaults(graph, attributes)]).strip()
    return "\n".join([own, *(text_at(text.text, each.span) for each in called), ""])


def text_at(text: str, span: Span | None) -> str:
    """What stands in a place."""
    if span is None:
        return text
    lines = text.split("\n")[span.line - 1 : span.end_line]
    lines[-1] = lines[-1][: span.end_column]
    return "\n".join(lines)[span.column :]


def _defaults(graph: Operator, attributes: Mapping[str, Any]) -> Iterable[tuple[Span | None, str]]:
    # What stands behind the type of an attribute. Null is what is not given: with a value none is optional.
    for each in graph.attributes:
        value, before = attributes.get(each.name), each.type.span
        if value is not None and before is not None:
            yield each.type.word, ""
            after = before if each.default is None else each.default.span or before
            place = Span(before.filename, before.end_line, before.end_column, after.end_line, after.end_column)
            yield place, f" = {_literal(value, each)}"


def _changed(text: str, changes: Iterable[tuple[Span | None, str]]) -> str:
    # From the last to the first, so that places stay what they are.
    lines = text.split("\n")
    known = [(span, new) for span, new in changes if span is not None]
    for span, new in sorted(known, key=lambda each: (each[0].line, each[0].column), reverse=True):
        first, last = lines[span.line - 1], lines[span.end_line - 1]
        lines[span.line - 1 : span.end_line] = [first[: span.column] + new + last[span.end_column :]]
    return "\n".join(lines)


_ESCAPED = str.maketrans({"\n": "\\n", "\t": "\\t", **{each: f"\\{each}" for each in "\\'{"}})


def _literal(value: Any, declaration: Declaration) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return f"'{value.translate(_ESCAPED)}'"
        case list() | tuple():
            return f"[{', '.join(_literal(each, declaration) for each in value)}]"
    number = value.item() if hasattr(value, "item") else value
    if declaration.type.name != "real":
        return str(number)
    if math.isnan(number):
        return "0.0 / 0.0"
    return repr(float(number))


#: What it is, its name, type, and shape.
Row = tuple[str, str, str, str]


def rows_of(operator: Operator, form: GraphForm) -> list[Row]:
    """The rows of a graph's table."""
    found = [*_tensors("input", operator.inputs, form.inputs), *_tensors("output", operator.outputs, form.outputs)]
    found.extend(("variable", each.label, each.type, _shape(each.shape)) for each in form.variables.values())
    return found


def _tensors(kind: str, declared: Sequence[Any], values: Sequence[Any]) -> Iterable[Row]:
    for each, value in zip(declared, values, strict=True):
        for k, tensor in enumerate(value if isinstance(value, Pack) else (value,)):
            assert isinstance(tensor, TensorValue)
            name = f"{each.name}[{k}]" if isinstance(value, Pack) else each.name
            yield kind, name, tensor.type, _shape(tensor.shape)


def _shape(shape: Iterable[Any]) -> str:
    return f"[{', '.join(map(shown, shape))}]"
