"""What a graph has: its inputs, outputs and variables, and what a call of it costs, as a table."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

from tcdsl.frontend.skriptnd.bodies import GraphForm
from tcdsl.frontend.skriptnd.text.syntax import Operator
from tcdsl.frontend.skriptnd.values import Pack, ScalarValue, TensorValue

__all__ = ["Row", "as_html", "rows_of"]

#: What it is, its name, type, and shape.
Row = tuple[str, str, str, str]


def rows_of(operator: Operator, form: GraphForm) -> list[Row]:
    """The rows of a graph's table."""
    found = [*_tensors("input", operator.inputs, form.inputs), *_tensors("output", operator.outputs, form.outputs)]
    variables = ((each.label, each.type, each.shape) for each in form.variables.values())
    found.extend(("variable", label, kind, _shape(shape)) for label, kind, shape in variables)
    return found


def _tensors(kind: str, declared: Sequence[Any], values: Sequence[Any]) -> Iterable[Row]:
    for each, value in zip(declared, values, strict=True):
        for k, tensor in enumerate(value if isinstance(value, Pack) else (value,)):
            assert isinstance(tensor, TensorValue)
            name = f"{each.name}[{k}]" if isinstance(value, Pack) else each.name
            yield kind, name, tensor.type, _shape(tensor.shape)


def _shape(shape: Iterable[Any]) -> str:
    # A size that a call chooses is shown by its name.
    from tcdsl.ir.text.expression_printer import format_expr

    parts = (format_expr(each.expr) if isinstance(each, ScalarValue) else str(each) for each in shape)
    return f"[{', '.join(parts)}]"


def as_html(title: str, rows: Iterable[Row]) -> str:
    """The table for notebooks."""
    lines = (f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    head = "".join(f"<th>{name}</th>" for name in ("", "name", "type", "shape"))
    return f"<table><caption>{html.escape(title)}</caption><tr>{head}</tr>{''.join(lines)}</table>"
