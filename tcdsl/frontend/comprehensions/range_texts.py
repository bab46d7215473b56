"""The ranges that were inferred, as text."""

from __future__ import annotations

from tcdsl.frontend.comprehensions.recording import ComprehensionRecording
from tcdsl.frontend.comprehensions.text.printing import format_statement
from tcdsl.ir.expressions import Expr
from tcdsl.ir.text.expression_printer import format_expr

__all__ = ["format_ranges"]


def format_ranges(recording: ComprehensionRecording) -> str:
    """Each statement of a definition with the range of each of its indices, and what it has made."""
    lines: list[str] = []
    for checked, ranges, tensor in recording.ranges:
        lines.append(format_statement(checked.statement))
        for each in ranges:
            notes = [*(["stated"] if each.stated else []), *(["reduced"] if each.reduced else [])]
            note = f"  ({', '.join(notes)})" if notes else ""
            lines.append(f"    {each.variable} in {_size(each.low)}:{_size(each.end)}{note}")
        shape = ", ".join(map(_size, tensor.extents))
        lines.append(f"    {tensor.label}: {tensor.element_type}[{shape}]")
    return "\n".join(lines)


def _size(extent: Expr) -> str:
    return format_expr(extent).replace("//", "/")
