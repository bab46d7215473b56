r"""Expressions, by the precedence of their operators.

From low to high, each to the left: ``?:`` and ``??``, which take all to their right, ``=>``, ``&& || ^``, comparisons
with ``is`` and ``in``, minimum and maximum, ``+ -``, ``* / \ %``, ``**``, and the operators of one operand. An operator
in front of ``..`` or ``...`` folds what stands to its left.
"""

from __future__ import annotations

import math

from tcdsl.errors import DslSyntaxError, DtypeError
from tcdsl.frontend.skriptnd.text import syntax
from tcdsl.frontend.skriptnd.text.words import KEYWORDS, NO_TYPES, SKRIPTND_WORDS, TYPE_NAMES
from tcdsl.frontend.words.cursor import Words
from tcdsl.frontend.words.languages import Word
from tcdsl.span import Span, across

__all__ = ["FOLDS", "MEMBERS", "list_item", "read_expression", "read_indices", "read_text"]

MEMBERS = ("shape", "rank", "size")
FOLDS = frozenset(("+", "*", "&&", "||", "<", "<=", ">", ">=", "==", "!=", "<?", ">?", ":="))
_CUMULATIVE = frozenset(("+", "*", "&&", "||", "<?", ">?"))
_PRECEDENCE = {
    "=>": 1,
    **dict.fromkeys(("&&", "||", "^"), 2),
    **dict.fromkeys(("<", ">", "<=", ">=", "==", "!=", ":=", "is", "in"), 3),
    **dict.fromkeys(("<?", ">?"), 4),
    **dict.fromkeys(("+", "-"), 5),
    **dict.fromkeys(("*", "/", "\\", "%"), 6),
    "**": 7,
}
_ENDS = frozenset((",", ")", ";", "]"))
_LARGEST = 2**63 - 1
_MOST_OPERATORS = 2_000


def read_expression(words: Words) -> syntax.Expression:
    """A whole expression."""
    token, behind = words.next, words.ahead(1)
    if token.kind == "name" and behind.text in _ENDS and token.text not in KEYWORDS:
        return syntax.Identifier(words.take().text, span=words.span(token))  # most are single names
    with words:
        value = _binary(words, _unary(words), 1)
        if words.accept("??"):
            default = read_expression(words)
            return syntax.Binary("??", value, default, span=across(value.span, default.span))
        if not words.accept("?"):
            return value
        chosen, other = read_expression(words), None
        if words.accept(":"):  # a choice takes a colon that it can have
            other = read_expression(words)
        return syntax.Select(value, chosen, other, span=across(value.span, (other or chosen).span))


def _binary(words: Words, left: syntax.Expression, least: int) -> syntax.Expression:
    for _ in range(_MOST_OPERATORS):
        operator = words.next.text if words.next.kind in ("operator", "name") else ""
        precedence = _PRECEDENCE.get(operator, 0)
        if precedence < least or (operator == ":=" and words.ahead(1).text != ".."):
            return left
        token = words.take()
        dots = words.accept("..", "...") if operator not in ("is", "in") else None
        if dots is not None:
            left = _folded(words, left, token, dots)
            continue
        with words:
            right = _binary(words, _unary(words), precedence + 1)
        left = syntax.Binary(operator, left, right, span=across(left.span, right.span))
    fact = f"an expression of more than {_MOST_OPERATORS} operators"
    raise DslSyntaxError.at(fact, left.span, "name parts of it in `@using`")


def _folded(words: Words, operand: syntax.Expression, token: Word, dots: Word) -> syntax.Expression:
    span = across(operand.span, words.span(dots))
    if token.text not in (_CUMULATIVE if dots.text == "..." else FOLDS):
        kind = "has no cumulative fold" if token.text in FOLDS else "does not fold"
        raise DslSyntaxError.at(f"`{token.text}` {kind}", span, f"what folds are {' '.join(sorted(FOLDS))}")
    return syntax.Fold(operand, token.text, dots.text == "...", span=span)


def _unary(words: Words) -> syntax.Expression:
    token = words.next
    if token.kind == "operator" and token.text in ("-", "+", "!", "?"):
        words.take()
        with words:
            operand = _unary(words)
        return syntax.Unary(token.text, operand, span=words.since(token))
    return _postfix(words, _atom(words))


def _atom(words: Words) -> syntax.Expression:
    token = words.next
    match token.kind:
        case "integer" | "real":
            words.take()
            real, span = float(token.text), words.span(token)
            if math.isinf(real) or (token.kind == "integer" and (real > 2e19 or int(token.text) > _LARGEST)):
                kind = "int64" if token.kind == "integer" else "float64"
                raise DtypeError.at(f"the number {token.text[:30]} does not fit in {kind}", span)
            return syntax.Literal(int(token.text) if token.kind == "integer" else real, span=span)
        case "text":
            return read_text(words)
        case "name":
            return _named(words)
    if token.text == "(":
        words.take()
        value = read_expression(words)
        if words.accept(","):
            return syntax.Zip((value, *words.several(read_expression, ")")), span=words.since(token))
        words.expect(")")
        return value
    if token.text == "[":
        words.take()
        items = words.several(list_item, "]")
        return syntax.ListNode(items, span=words.since(token))
    if token.text == "`":
        words.take()
        name = words.name("a function")
        words.expect("`")
        return _called(words, name)
    if token.text == "|":
        return _guard(words)
    raise words.unexpected("expected an expression")


def _named(words: Words) -> syntax.Expression:
    token = words.next
    span = words.span(token)
    if token.text in ("true", "false", "inf", "pi"):
        words.take()
        return syntax.Literal({"true": True, "false": False, "inf": math.inf, "pi": math.pi}[token.text], span=span)
    if token.text in NO_TYPES:
        raise words.unexpected("expected an expression")
    words.take()
    if words.is_next("(") or token.text in TYPE_NAMES:
        return _called(words, token)
    if words.is_next(".") and words.ahead(1).text in MEMBERS:
        words.take()
        return syntax.Member(token.text, words.take().text, span=words.since(token))
    return syntax.Identifier(token.text, span=span)


def _called(words: Words, name: Word) -> syntax.Expression:
    words.expect("(", f"behind `{name.text}`")
    if words.accept(")"):
        return syntax.Call(name.text, None, span=words.since(name))
    argument = read_expression(words)
    if not words.accept(")"):
        raise words.unexpected(f"`{name.text}` takes one argument" if words.is_next(",") else "expected `)`")
    return syntax.Call(name.text, argument, span=words.since(name))


def read_text(words: Words) -> syntax.TextValue:
    """One or several texts that stand one behind the other, with the values in them."""
    first = words.next
    if first.kind != "text":
        raise words.unexpected("expected a message, which is a text")
    pieces, values = [""], []
    while words.next.kind == "text":
        token = words.take()
        for piece, value in _pieces(words, token):
            pieces[-1] += piece
            if value is not None:
                values.append(value)
                pieces.append("")
    return syntax.TextValue(tuple(pieces), tuple(values), span=words.since(first))


def _pieces(words: Words, token: Word) -> list[tuple[str, syntax.Expression | None]]:
    found: list[tuple[str, syntax.Expression | None]] = []
    body, piece, at = token.text[1:-1], "", 0
    while at < len(body):
        character = body[at]
        if character == "\\" and at + 1 < len(body):
            piece += {"n": "\n", "t": "\t"}.get(body[at + 1], body[at + 1])
            at += 2
        elif character == "{":
            end = body.find("}", at)
            column = token.column + 1 + at
            if end < 0:
                span = Span(words.filename, token.line, column, token.line, column + 1)
                raise DslSyntaxError.at("a `{` that is not closed in a text", span, "write `\\{` for the character")
            # The value is read in its place.
            inner = Words(body[at + 1 : end], words.filename, SKRIPTND_WORDS, token.line, column + 1)
            value = read_expression(inner)
            if inner.next.kind != "end":
                raise inner.unexpected("expected `}`")
            found.append((piece, value))
            piece, at = "", end + 1
        else:
            piece += character
            at += 1
    found.append((piece, None))
    return found


def read_inner(words: Words) -> syntax.Expression:
    """An expression behind a parenthesis, up to the one that closes it."""
    value = read_expression(words)
    words.expect(")")
    return value


def read_indices(words: Words, value: syntax.Expression) -> syntax.Expression:
    """``value`` with what stands in brackets behind it."""
    while words.is_next("[") and not isinstance(value, syntax.Access):
        value = _indexed(words, value)
    return value


def _postfix(words: Words, value: syntax.Expression) -> syntax.Expression:
    value = read_indices(words, value)
    if words.is_next("<-") and isinstance(value, syntax.Subscript):
        words.take()
        with words:
            replacement = read_expression(words)
        return syntax.Substitute(value, replacement, span=across(value.span, replacement.span))
    return value


def _indexed(words: Words, value: syntax.Expression) -> syntax.Expression:
    # `a[i]` is an item of a pack, `a[b:e]` a part of it, `a[i,]`, `a[i, j]`, `a[i..]` and `a[]` are cells.
    bracket = words.take()
    first = value.span
    begin: syntax.Expression | None = None

    def span() -> Span | None:
        return across(first or words.span(bracket), words.since(bracket))

    if words.accept("]"):
        return _access(value, (), span())
    if not words.is_next(":") or words.ahead(1).text == ",":
        begin = _index(words)
        if words.accept("]"):
            if isinstance(begin, syntax.Expand | syntax.Guard):
                return _access(value, (begin,), span())
            return syntax.Subscript(value, begin, span=span())
        if words.accept(","):
            rest = () if words.accept("]") else words.several(_index, "]")
            return _access(value, (begin, *rest), span())
        if isinstance(begin, syntax.Expand | syntax.Guard | syntax.Whole) or not words.is_next(":"):
            raise words.unexpected("expected `]`, `,` or `:`")
    place = words.take()
    end = None if words.is_next(":", "]") else read_expression(words)
    step = read_expression(words) if words.accept(":") and not words.is_next("]") else None
    part = syntax.Range(begin, end, step, span=words.since(place))
    words.expect("]")
    return syntax.Subscript(value, part, span=span())


def _access(value: syntax.Expression, indices: tuple[syntax.Expression, ...], span: Span | None) -> syntax.Access:
    if isinstance(value, syntax.Identifier):
        return syntax.Access(value.name, None, indices, span=span)
    if isinstance(value, syntax.Subscript) and isinstance(value.value, syntax.Identifier):
        return syntax.Access(value.value.name, value.index, indices, span=span)
    raise DslSyntaxError.at(
        "indices of a cell stand behind the name of a tensor", span, "write `x[i, j]` or `xs[k][i, j]`"
    )


def _index(words: Words) -> syntax.Expression:
    # `i + 1`, `|i + 1|`, `|i <> 0 : n - 1|`, each with `..` if it is several, or `:`.
    token = words.next
    if token.text == ":" and words.ahead(1).text in ("]", ","):
        words.take()
        return syntax.Whole(span=words.span(token))
    return _expanded(words, read_expression(words))


def _guard(words: Words) -> syntax.Guard:
    token, value = words.take(), read_expression(words)
    below = above = None
    if words.accept("<>"):
        below = read_expression(words)
        words.expect(":", "between the index below the range and the one above it")
        above = read_expression(words)
    words.expect("|", "behind a guarded index")
    return syntax.Guard(value, below, above, span=words.since(token))


def _expanded(words: Words, value: syntax.Expression) -> syntax.Expression:
    dots = words.accept("..")
    if dots is None:
        return value
    count = read_inner(words) if words.accept("(") else None
    return syntax.Expand(value, count, span=across(value.span or words.span(dots), words.since(dots)))


def list_item(words: Words) -> syntax.Expression:
    """An item of a list: a value, ``a..``, ``a..(n)``, ``b:e:s`` or ``(a, b)..``."""
    token = words.next
    value = read_expression(words)
    if not words.accept(":"):
        return _expanded(words, value)
    end = read_expression(words)
    step = read_expression(words) if words.accept(":") else None
    return syntax.Range(value, end, step, span=words.since(token))
