"""The operands of literal operators: where they are in the text, and how they stand as arguments of calls."""

from __future__ import annotations

import ast

from tcdsl.syntax.grammar.edits import Edited, Piece, Range, added
from tcdsl.syntax.grammar.marks import Marks

__all__ = ["Operands"]

Parts = tuple[Piece | Range, ...]

_PRIMARIES = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.List, ast.Tuple)


class Operands:
    """Places of the nodes of a carrier's syntax tree in the literal text."""

    def __init__(self, carrier: Edited, marks: Marks) -> None:
        self.carrier = carrier
        self.marks = marks
        self.lines = marks.lines

    def begin(self, node: ast.AST) -> int:
        """Where ``node`` begins in the literal text."""
        return self.carrier.begin_of(node)

    def end(self, node: ast.AST) -> int:
        """Where ``node`` ends in the literal text."""
        return self.carrier.end_of(node)

    def copied(self, begin: int, end: int) -> Piece:
        """Text of the original at another place."""
        return Piece(self.lines.text[begin:end], begin, end, exact=True)

    def layout(self, begin: int, end: int) -> Parts:
        """What is between two parts, if lines break there: comments are kept, and lines keep their numbers."""
        return (self.copied(begin, end),) if self._breaks(begin, end) else ()

    def trimmed(self, begin: int, end: int) -> Range:
        """A range without the spaces at its end, unless they are a line's indentation."""
        text = self.lines.text[begin:end].rstrip(" \t")
        return Range(begin, end if text.endswith("\n") else begin + len(text))

    def argument(self, node: ast.expr, begin: int, end: int) -> Parts:
        """``node`` as an argument of a call. From ``begin`` to ``end`` there is nothing else but its parentheses.

        The parentheses go, as the call has its own, unless lines break inside them.
        """
        first, last = self.begin(node), self.end(node)
        if self._breaks(begin, first) or self._breaks(last, end) or isinstance(node, ast.Yield | ast.YieldFrom):
            return (self.trimmed(begin, end),)
        return (Range(first, last),)

    def following(self, node: ast.expr, begin: int, end: int) -> Parts:
        """``node`` as an argument of a call after others."""
        broken = self._breaks(begin, self.begin(node))
        return (added("," if broken else ", ", begin, begin), *self.argument(node, begin, end))

    def primary(self, node: ast.expr, left: ast.expr, end: int, is_call: bool) -> Parts:
        """The left operand of ``node``, which ends before ``end``, as what a subscript may follow.

        ``is_call`` says that it becomes a call or subscript itself.
        """
        begin = self.begin(node)
        region = self.trimmed(begin, end)
        if begin < self.begin(left) or is_call or isinstance(left, _PRIMARIES):
            return (region,)
        return (added("(", begin), region, added(")", region.end))

    def _breaks(self, begin: int, end: int) -> bool:
        return "\n" in self.lines.text[begin:end]
