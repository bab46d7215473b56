"""Literal assignments as plain ones: ``c =:+ a * b ~logic:"@"`` is ``c["@"] = sum(a * b)``.

`Operands` says where the operands of literal operators are in the text, and how they stand as arguments of calls.
"""

from __future__ import annotations

import ast
from bisect import bisect_left
from itertools import pairwise

from tcdsl.syntax.grammar.edits import Edited, Parts, Range, TextPiece, added
from tcdsl.syntax.grammar.literal_operators import AssignmentOperator
from tcdsl.syntax.grammar.marks import AssignmentMark, Label, Marks

__all__ = ["Operands", "assigned", "constrained"]


def constrained(node: ast.Assign, operands: Operands) -> Parts:
    """``_ = e`` is ``with constraints_only(): e``."""
    begin, end = operands.begin(node), operands.end(node)
    name = node.targets[0]
    text = operands.lines.text
    value = text.index("=", operands.end(name), end) + 1
    value += text[value:].startswith(":")
    value += len(text[value:end]) - len(text[value:end].lstrip(" \t"))
    opening = (added("with ", begin, operands.end(name)), added("constraints_only(): ", begin, operands.end(name)))
    return (*opening, Range(value, end))


def assigned(node: ast.Assign, mark: AssignmentMark, operands: Operands, slots: bool) -> Parts | None:
    """The plain statement for a literal assignment; ``slots`` says that it stands in code that has projections."""
    return _Assignment(node, mark, operands, slots).parts()


class _Assignment:
    def __init__(self, node: ast.Assign, mark: AssignmentMark, operands: Operands, slots: bool) -> None:
        self.node = node
        self.slots = slots
        self.mark = mark
        self.operands = operands
        self.target = node.targets[0]
        self.logic: Label | None = None
        self.projections: Label | None = None
        for label in mark.labels:
            setattr(self, label.name, label)
        text = operands.lines.text[mark.statement : mark.begin]
        # Behind the target's parentheses, before a line is continued.
        self.target_end = mark.statement + len(text.rstrip(" \t\r\n\\"))
        self.value_end = mark.labels[0].before if mark.labels else mark.statement_end

    def parts(self) -> Parts | None:
        if not self._is_sound():
            return None
        mark, row = self.mark, self.mark.row
        declared = mark.declared
        if declared is None or not mark.extents:
            return self._statement(row)
        # `{ c; o = [3] } =: e`
        annotation = added(f"{declared.text}: real[{mark.extents}]; ", declared.begin, declared.end)
        return (annotation, *self._statement(row))

    def _statement(self, row: AssignmentOperator) -> Parts:
        if self.projections is not None or row.form == "assign":
            return self._call()
        if row.form != "reduction":
            return self._plain(row.plain, Range(self.mark.end, self.value_end))
        # `c["@"] = sum(a * b)`. Without a logic the call starts all cells anew, whatever says which cells meet.
        return self._reduction(row.plain) if self.logic is not None or self._default() else self._call()

    def _default(self) -> str:
        # The logic of an assignment that names none, if it is not the plain form's.
        value = self._values()[0]
        if self.projections is not None or self.logic is not None or isinstance(self.target, ast.Subscript):
            return ""
        if (
            isinstance(value, ast.Call)
            and isinstance(value.func, ast.Name)
            and value.func.id == "fma"
            and not self.slots
        ):
            return '"@"'
        return '"."' if self.mark.extents else ""

    def _is_sound(self) -> bool:
        marks, mark = self.operands.marks, self.mark
        target = self.operands.begin(self.target), self.operands.end(self.target)
        if len(self.node.targets) > 1:
            fact = f"`{mark.row.literal}` has one target"
            marks.fault(mark.begin, mark.end, fact, "write one statement for each target")
            return False
        if not isinstance(self.target, ast.Name | ast.Subscript | ast.Attribute):
            hint = f"write `c {mark.row.literal} ...`, `C[i, j] {mark.row.literal} ...` or a name in quotes"
            marks.fault(*target, f"this is no target of `{mark.row.literal}`", hint)
            return False
        if self.logic is not None and isinstance(self.target, ast.Subscript):
            fact = "a target with an index list takes no `~logic:`"
            marks.fault(self.logic.begin, self.logic.end, fact, "the index list says which cells meet; leave one out")
            return False
        for first, second in pairwise(mark.labels):
            if first.name == second.name:
                marks.fault(second.begin, second.end, f"`~{first.name}` twice", "leave one out")
                return False
        return True

    # -- parts

    def _target(self) -> Parts:
        declared = self.mark.declared
        if declared is not None:
            return (TextPiece(declared.text, declared.begin, declared.end),)
        return (Range(self.mark.statement, self.target_end),)

    def _subscript(self) -> Parts:
        # The logic string as the target's subscript.
        if self.logic is None:
            default = self._default()
            return (added(f"[{default}]", self.target_end),) if default else ()
        text = self.operands.copied(self.logic.value, self.logic.end)
        return (added("[", self.target_end), text, added("]", self.target_end))

    def _plain(self, operator: str, value: Range) -> Parts:
        mark = self.mark
        return (
            *self._target(),
            *self._subscript(),
            *self._between(),
            TextPiece(operator, mark.begin, mark.end),
            *self._spaced(value),
        )

    def _between(self) -> Parts:
        # What is between target and operator; lines that were broken before and in the label are broken there.
        mark = self.mark
        between = self.operands.layout(self.target_end, mark.begin)
        breaks = sum(self._breaks(label) for label in mark.labels)
        return (*between, added(" \\\n" * breaks + " " * (not between), mark.begin))

    def _breaks(self, label: Label) -> int:
        return self.operands.lines.text.count("\n", label.before, label.value)

    def _spaced(self, value: Range) -> Parts:
        # A space behind the operator, as in front of it.
        if self.operands.lines.text[value.begin : value.begin + 1].isspace():
            return (value,)
        return (added(" ", value.begin), value)

    def _values(self) -> list[ast.expr]:
        # The value, and the conditions after it.
        value = self.node.value
        elements: list[ast.expr] = [value]
        if isinstance(value, ast.Tuple) and (self.mark.labels or not self._is_enclosed(value)):
            elements = value.elts[: len(value.elts) - len(self.mark.labels)]
        return elements

    def _is_enclosed(self, value: ast.Tuple) -> bool:
        # Whether the tuple has parentheses of its own.
        begin, end = self.operands.begin(value), self.operands.end(value)
        return self.operands.marks.closing.get(begin) == end

    def _reduction(self, function: str) -> Parts:
        # `c["@"] = sum(a * b)`
        mark, operands = self.mark, self.operands
        values = self._values()
        end = self.value_end if len(values) == 1 else self._comma(values[0])
        value = operands.argument(values[0], mark.end, end)
        name = TextPiece(function, mark.begin, mark.end)
        opening: Parts = (*self._between(), added("= ", mark.begin, mark.end), name, added("(", mark.begin))
        rest = Range(end, self.value_end)
        return (*self._target(), *self._subscript(), *opening, *value, added(")", end), rest)

    def _comma(self, value: ast.expr) -> int:
        # Where the comma after the value is: behind its parentheses.
        commas = self.operands.marks.commas
        return commas[bisect_left(commas, self.operands.end(value))]

    def _call(self) -> Parts:
        # `assign(c, "=:-", e, logic="@")`
        mark, operands = self.mark, self.operands
        literal = added(f'"{mark.row.same_as or mark.row.literal}"', mark.begin, mark.end)
        between = operands.layout(self.target_end, mark.begin)
        parts: Parts = (
            TextPiece("assign", mark.begin, mark.end),
            added("(", mark.statement),
            *self._target(),
            *between,
        )
        text = operands.lines.text[mark.end : self.value_end]
        value = Range(mark.end + len(text) - len(text.lstrip(" \t")), self.value_end)
        parts = (*parts, added(", ", mark.begin), literal, added(", ", mark.end), value)
        for label in mark.labels:
            option = added("\n" * self._breaks(label) + f", {label.name}=", label.begin)
            parts = (*parts, option, Range(label.value, label.end))
        default = self._default()
        logic = f", logic={default}" if default == '"@"' else ""
        return (*parts, added(f"{logic})", mark.statement_end))


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

    def copied(self, begin: int, end: int) -> TextPiece:
        """Text of the original at another place."""
        return TextPiece(self.lines.text[begin:end], begin, end, exact=True)

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
