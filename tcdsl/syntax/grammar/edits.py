"""Texts made of another: each character knows where in the original it comes from."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tcdsl.syntax.grammar.tokens import Lines

__all__ = ["Construct", "Edited", "Parts", "Range", "TextPiece", "added", "edited", "rendered"]


@dataclass(frozen=True, slots=True)
class TextPiece:
    """New text, which stands for the characters from ``begin`` to ``end`` of the original; ``exact`` if it is those."""

    text: str
    begin: int
    end: int
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Range:
    """Characters of the original, with what is to be replaced among them replaced."""

    begin: int
    end: int


Parts = tuple[TextPiece | Range, ...]


@dataclass(frozen=True, slots=True)
class Construct:
    """``parts`` instead of the characters from ``begin`` to ``end``. Constructs nest: a part may be a `Range`.

    Of two with the same place the outer one is the one of lesser ``depth``.
    """

    begin: int
    end: int
    parts: Parts
    depth: int = 0


def added(text: str, begin: int, end: int | None = None) -> TextPiece:
    """New text that stands for a range of the original."""
    return TextPiece(text, begin, begin if end is None else end)


def edited(lines: Lines, edits: Iterable[TextPiece]) -> Edited:
    """Each piece in the place of the characters that it stands for; empty places are inserted into, in order."""
    pieces: list[TextPiece] = []
    done = 0
    for piece in sorted(edits, key=lambda piece: (piece.begin, piece.end > piece.begin)):
        pieces += (_original(lines, done, piece.begin), piece)
        done = piece.end
    return Edited(lines, [*pieces, _original(lines, done, len(lines.text))])


def rendered(lines: Lines, constructs: Iterable[Construct]) -> Edited:
    """The text with all constructs in it."""
    ordered = sorted(constructs, key=lambda found: (found.begin, -found.end, found.depth))
    return Edited(lines, list(_rendered(lines, ordered, 0, len(lines.text))))


def _rendered(lines: Lines, ordered: Sequence[Construct], begin: int, end: int) -> Iterable[TextPiece]:
    # The constructs in a range, each with those inside it: they follow it, because the outermost comes first.
    inside = [found for found in ordered if begin <= found.begin and found.end <= end]
    done, k = begin, 0
    while k < len(inside):
        outer = inside[k]
        within = k + 1
        while within < len(inside) and inside[within].end <= outer.end:
            within += 1
        yield _original(lines, done, outer.begin)
        for part in outer.parts:
            if isinstance(part, TextPiece):
                yield part
            else:
                yield from _rendered(lines, inside[k + 1 : within], part.begin, part.end)
        done, k = outer.end, within
    yield _original(lines, done, end)


def _original(lines: Lines, begin: int, end: int) -> TextPiece:
    return TextPiece(lines.text[begin:end], begin, end, exact=True)


class Edited:
    """``Edited(lines, pieces).text`` is the new text; ``place`` takes a syntax tree of it back to the original."""

    def __init__(self, original: Lines, pieces: Iterable[TextPiece]) -> None:
        self.original = original
        self._pieces = [piece for piece in pieces if piece.text] or [TextPiece("", 0, 0)]
        self._starts: list[int] = []
        length = 0
        for piece in self._pieces:
            self._starts.append(length)
            length += len(piece.text)
        self.text = "".join(piece.text for piece in self._pieces)
        self.lines = Lines(self.text)

    def _piece(self, offset: int) -> tuple[TextPiece, int]:
        k = max(0, bisect_right(self._starts, offset) - 1)
        return self._pieces[k], offset - self._starts[k]

    def begin_of(self, node: ast.AST) -> int:
        """The offset in the original where what ``node`` stands for begins."""
        return self._begin(self.lines.offset_of_bytes(node.lineno, node.col_offset))  # type: ignore[attr-defined]

    def end_of(self, node: ast.AST) -> int:
        """The offset in the original where what ``node`` stands for ends."""
        line, column = node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]
        return self._end(self.lines.offset_of_bytes(line, column))

    def _begin(self, offset: int) -> int:
        piece, inside = self._piece(offset)
        return piece.begin + (inside if piece.exact else 0)

    def _end(self, offset: int) -> int:
        piece, inside = self._piece(max(0, offset - 1))
        return piece.begin + inside + 1 if piece.exact else piece.end

    def begin_of_place(self, line: int, column: int) -> int:
        """The offset in the original of a place in the new text, lines from 1, columns in characters from 0."""
        return self._begin(self.lines.offset(line, column))

    def place(self, tree: ast.AST) -> None:
        """Give the nodes of ``tree``, parsed from the new text, their positions in the original, as `ast` counts them.

        A node that begins with new text begins where its parts do: ``eq(a, b)`` for ``a <> b`` begins at ``a``.
        """
        for child in ast.iter_child_nodes(tree):
            self.place(child)
        if not hasattr(tree, "lineno"):
            return
        node: ast.expr = tree  # type: ignore[assignment]
        offset = self.lines.offset_of_bytes(node.lineno, node.col_offset)
        begin, end = self._begin(offset), self.end_of(node)
        node.lineno, node.col_offset = self.original.place_in_bytes(begin)
        if not self._piece(offset)[0].exact:
            starts = [(c.lineno, c.col_offset) for c in ast.iter_child_nodes(tree) if isinstance(c, _PLACED)]
            node.lineno, node.col_offset = min([*starts, (node.lineno, node.col_offset)])
        node.end_lineno, node.end_col_offset = self.original.place_in_bytes(max(begin, end))


_PLACED = (ast.expr, ast.stmt, ast.keyword)
