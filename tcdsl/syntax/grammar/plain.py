"""What plain Python literal text becomes, once Python's parser has found the operands of its operators."""

from __future__ import annotations

import ast
from bisect import bisect_left
from itertools import pairwise

from tcdsl.syntax.grammar.assignments import Operands, assigned, constrained
from tcdsl.syntax.grammar.edits import Construct, Edited, Parts, Range, TextPiece, added
from tcdsl.syntax.grammar.literal_operators import Infix
from tcdsl.syntax.grammar.marks import CARRIER_NAME, Composition, Juxtaposition, Marks

__all__ = ["plain_constructs"]


def plain_constructs(tree: ast.Module, carrier: Edited, marks: Marks) -> list[Construct]:
    """The constructs of literal text, given the syntax tree of its carrier; faults go to ``marks``."""
    simple = [Construct(piece.begin, piece.end, (piece,)) for piece in marks.simple]
    found = _Plain(Operands(carrier, marks))
    found.visit(tree, 0)
    return [*simple, *found.constructs]


class _Plain:
    def __init__(self, operands: Operands) -> None:
        self.operands = operands
        self.marks = operands.marks
        self.constructs: list[Construct] = []
        self.infix = sorted(self.marks.infix)
        self.compositions = sorted(self.marks.compositions)
        self.assignments = sorted(self.marks.assignments)
        # Whether the function around has projections, which say how the operands of its assignments meet.
        self.slots = False

    def visit(self, node: ast.AST, depth: int) -> None:
        """Add the constructs of ``node`` and of what is in it."""
        parts: Parts | None = None
        outside = self.slots
        match node:
            case ast.FunctionDef(args=arguments):
                self.slots = any(each.arg == "projections" for each in (*arguments.args, *arguments.kwonlyargs))
            case ast.BinOp(left=left, right=right):
                parts = self._binary(node, left, right)
            case ast.BoolOp(values=values):
                parts = self._chain(node, values)
            case ast.Compare(left=left, comparators=others):
                parts = self._comparison(node, [left, *others])
            case ast.Call(func=ast.Name(id=name)) if name == CARRIER_NAME:
                parts = self._call(node)
            case ast.List() if self.operands.begin(node) in self.marks.batches:
                parts = self._batch(node)
            case ast.Assign():
                parts = self._assignment(node)
        if parts is not None:
            begin, end = self.operands.begin(node), self.operands.end(node)
            self.constructs.append(Construct(begin, end, parts, depth))
        for child in ast.iter_child_nodes(node):
            self.visit(child, depth + 1)
        self.slots = outside

    def _between(self, places: list[int], left: ast.AST, right: ast.AST) -> int | None:
        # The operator between two operands: nothing but it, parentheses and layout is there.
        begin, end = self.operands.end(left), self.operands.begin(right)
        k = bisect_left(places, begin)
        return places[k] if k < len(places) and places[k] < max(end, begin + 1) else None

    # -- operators

    def _binary(self, node: ast.BinOp, left: ast.expr, right: ast.expr) -> Parts | None:
        place = self._between(self.compositions, left, right)
        if place is not None:
            return self._composed(node, self.marks.compositions[place])
        place = self._between(self.infix, left, right)
        if place is None:
            return None
        row = self.marks.infix[place]
        self._mixture(node, left, row, place)
        first, second = self._sides(node, left, right, place, place + len(row.literal))
        name = TextPiece(row.plain, place, place + len(row.literal))
        if row.form == "function":
            return (name, added("(", place), *first, *second, added(")", self.operands.end(node)))
        bare = self.operands.primary(node, left, place, self._becomes_call(left))
        return (*bare, added("[", place), *second[1:], added("]", self.operands.end(node)))

    def _becomes_call(self, node: ast.expr) -> bool:
        if not isinstance(node, ast.BinOp):
            return False
        places = (*self.infix, *self.compositions)
        return self._between(sorted(places), node.left, node.right) is not None

    def _sides(self, node: ast.expr, left: ast.expr, right: ast.expr, begin: int, end: int) -> tuple[Parts, Parts]:
        # The operands on both sides of the text from `begin` to `end`, the second one after a comma.
        operands = self.operands
        first = operands.argument(left, operands.begin(node), begin)
        return first, self.operands.following(right, end, operands.end(node))

    def _mixture(self, node: ast.BinOp, left: ast.expr, row: Infix, place: int) -> None:
        # Maximum and minimum side by side without parentheses: which of them comes first is a matter of taste.
        if row.carrier != "|" or not isinstance(left, ast.BinOp) or not isinstance(left.op, ast.BitOr):
            return
        other = self._between(self.infix, left.left, left.right)
        name = "|" if other is None else self.marks.infix[other].literal
        same = other is not None and self.marks.infix[other].plain == row.plain
        if not same and self.operands.begin(node) == self.operands.begin(left):
            self.marks.fault(
                place,
                place + len(row.literal),
                f"`{name}` and `{row.literal}` bind equally, so it is not clear which comes first",
                f"write parentheses, as in `(a {name} b) {row.literal} c`",
            )

    def _chain(self, node: ast.BoolOp, values: list[ast.expr]) -> Parts | None:
        # `a || b or c`: from the left, in pairs.
        operands = self.operands
        places = [self._between(self.infix, left, right) for left, right in pairwise(values)]
        if not any(place is not None for place in places):
            return None
        begin = operands.begin(node)
        ends = [
            *(operands.end(value) if place is None else place for value, place in zip(values, places, strict=False))
        ]
        ends.append(operands.end(node))
        parts: Parts = ()
        for k, value in enumerate(values):
            place = places[k - 1] if k else None
            if k == 0:
                parts = operands.argument(value, begin, ends[0]) if places[0] is not None else (Range(begin, ends[0]),)
            elif place is None:
                parts = (*parts, operands.trimmed(ends[k - 1], ends[k]))
            else:
                row = self.marks.infix[place]
                second = operands.following(value, place + len(row.literal), ends[k])
                name = TextPiece(row.plain, place, place + len(row.literal))
                parts = (name, added("(", place), *parts, *second, added(")", ends[k]))
        return parts

    def _comparison(self, node: ast.Compare, values: list[ast.expr]) -> Parts | None:
        for left, right in pairwise(values):
            place = self._between(self.infix, left, right)
            if place is None:
                continue
            row = self.marks.infix[place]
            if len(values) > 2:
                end = place + len(row.literal)
                self.marks.fault(place, end, f"`{row.literal}` in a chain of comparisons", "write parentheses")
                return None
            first, second = self._sides(node, left, right, place, place + len(row.literal))
            name = TextPiece(row.plain, place, place + len(row.literal))
            return (name, added("(", place), *first, *second, added(")", self.operands.end(node)))
        return None

    def _composed(self, node: ast.BinOp, mark: Composition) -> Parts | None:
        operands = self.operands
        left, spec = node.left, node.right
        if mark.literal != "++" and isinstance(node.left, ast.BinOp):
            left, spec = node.left.left, node.left.right
        if (operands.begin(spec), operands.end(spec)) != (mark.spec, mark.spec_end):
            fact = f"`{mark.literal}` takes the spec string alone"
            hint = f'write parentheses, as in `(x {mark.literal} "...") * y`'
            self.marks.fault(mark.begin, mark.spec_end, fact, hint)
            return None
        first = operands.argument(left, operands.begin(node), mark.begin)
        between = operands.layout(mark.end, mark.spec)
        name = TextPiece("einsum", mark.begin, mark.end)
        text = operands.copied(mark.spec, mark.spec_end)
        start: Parts = (name, added("(", mark.begin), text, added(", ", mark.spec_end), *first, *between)
        if mark.literal == "++":
            return (*start, added(")", operands.end(node)))
        second = operands.following(node.right, mark.spec_end, operands.end(node))
        return (*start, *second, added(")", operands.end(node)))

    # -- what the carrier writes as calls

    def _call(self, node: ast.Call) -> Parts | None:
        operands, begin, end = self.operands, self.operands.begin(node), self.operands.end(node)
        if begin in self.marks.comments:
            after = self.marks.comments[begin]
            return (TextPiece("comment", begin, after), Range(after, end))
        if begin in self.marks.numbers:
            after = self.marks.numbers[begin]
            value = operands.argument(node.args[0], after, end)
            return (TextPiece("number", begin, after), added("(", after), *value, added(")", end))
        if begin in self.marks.juxtaposed and len(node.args) == 2:
            return self._juxtaposed(node, begin, self.marks.juxtaposed[begin])
        return None

    def _juxtaposed(self, node: ast.Call, begin: int, mark: Juxtaposition) -> Parts:
        operands, value = self.operands, node.args[1]
        string, end = Range(begin, mark.end), mark.value_end
        between = operands.layout(mark.end, mark.value)
        if mark.is_label:
            label = operands.copied(begin, mark.end)
            name = TextPiece("number", begin, mark.end)
            return (name, added("(", begin), Range(mark.value, end), added(", label=", begin), label, added(")", end))
        if _is_fraction(value) or isinstance(value, ast.List) or _is_batch(value, operands):
            option = "init"
        elif isinstance(value, ast.Tuple):
            option = "o"
        else:
            size = operands.argument(value, mark.value, end)
            return (string, added("[", mark.value), *between, *size, added("]", end))
        name = TextPiece("param", begin, mark.end)
        comma = added(f", {option}=", mark.value)
        return (name, added("(", begin), string, *between, comma, Range(mark.value, end), added(")", end))

    def _batch(self, node: ast.List) -> Parts:
        begin, end = self.operands.begin(node), self.operands.end(node)
        inner = self.marks.batches[begin]
        name = TextPiece("batch", begin, begin + 2)
        return (
            name,
            added("(", begin),
            added("[", begin),
            Range(begin + 2, inner),
            added("]", inner, end),
            added(")", end),
        )

    # -- statements

    def _assignment(self, node: ast.Assign) -> Parts | None:
        begin = self.operands.begin(node)
        if begin in self.marks.wildcards:
            return constrained(node, self.operands)
        place = self._between(self.assignments, node.targets[-1], node.value)
        if place is None:
            return None
        return assigned(node, self.marks.assignments[place], self.operands, self.slots)


def _is_fraction(value: ast.expr) -> bool:
    # `0.5` and `(-0.5)`, which are no sizes.
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub | ast.UAdd):
        value = value.operand
    return isinstance(value, ast.Constant) and isinstance(value.value, float | complex)


def _is_batch(value: ast.expr, operands: Operands) -> bool:
    return isinstance(value, ast.List) and operands.begin(value) in operands.marks.batches
