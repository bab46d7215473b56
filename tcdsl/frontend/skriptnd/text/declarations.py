"""Types, attributes, tensors, helper symbols, assertions and formulas: the lines of an operator's blocks."""

from __future__ import annotations

from dataclasses import replace

from tcdsl.errors import DslSyntaxError, TcdslError
from tcdsl.frontend.skriptnd.text import syntax
from tcdsl.frontend.skriptnd.text.expressions import read_expression, read_indices, read_inner, read_text
from tcdsl.frontend.skriptnd.text.words import NO_TYPES, TYPE_NAMES
from tcdsl.frontend.words.cursor import Words
from tcdsl.span import Span

__all__ = ["read_assertion", "read_bounds", "read_declaration", "read_formula", "read_generic"]
__all__ += ["read_identifier", "read_pack_length", "read_target", "read_type", "read_type_name", "read_using"]

MOST_ENTRIES = 500  # of a shape
#: The operators of formulas, and what the document's spelling of some is.
ACCUMULATORS = ("=", "+=", "*=", "&=", "|=", "<?=", ">?=", ":=")
_SAME = {"<=": "<?=", ">=": ">?="}


def read_type(words: Words) -> syntax.TypeNode:
    """``optional real^(r)[m, n]..(k)``."""
    first = words.next
    given: dict[str, Span] = {}
    while words.is_next("optional", "dynamic"):
        token = words.take()
        if token.text in given:
            raise DslSyntaxError.at(f"`{token.text}` stands twice", words.span(token))
        given[token.text] = Span(words.filename, token.line, token.column, words.next.line, words.next.column)
    name = read_type_name(words, "expected a type: `int`, `real`, `bool`, `str`, or a name of `@dtype`")
    rank = None
    if words.accept("^"):
        words.expect("(", "behind `^`")
        rank = read_inner(words)
    shape = words.several(_extent, "]") if words.accept("[") else None
    if shape is not None and len(shape) > MOST_ENTRIES:
        raise DslSyntaxError.at(f"a shape of {len(shape)} entries, and {MOST_ENTRIES} are the most", words.since(first))
    pack = read_pack_length(words)
    word = given.get("optional")
    return syntax.TypeNode(name, word is not None, rank, shape, pack, word, span=words.since(first))


def read_type_name(words: Words, expectation: str = "expected a type") -> str:
    """``real``, or a name of `@dtype`."""
    if words.next.kind != "name" or words.next.text in NO_TYPES:
        raise words.unexpected(expectation)
    return words.take().text


def _extent(words: Words) -> syntax.Extent:
    first = words.next
    spread = words.accept("..") is not None
    words.accept("static")  # what is known is found without it
    value = None if words.accept("~") else read_expression(words)
    bound = read_expression(words) if words.accept("|") else None
    return syntax.Extent(value, bound, read_pack_length(words), spread, span=words.since(first))


def read_pack_length(words: Words) -> syntax.PackLength | None:
    """``..``, ``..(k)`` or ``..(k|5)``, if that comes next."""
    dots = words.accept("..")
    if dots is None:
        return None
    length = bound = None
    if words.accept("("):
        while words.accept("dynamic", "static"):
            pass
        length = None if words.accept("~") else read_expression(words)
        bound = read_expression(words) if words.accept("|") else None
        words.expect(")")
    return syntax.PackLength(length, bound, span=words.since(dots))


def read_generic(words: Words) -> syntax.Generic:
    """``T: num = real``."""
    name = words.name("a type")
    words.expect(":")
    base = _kind(words)
    default = _kind(words) if words.accept("=") else None
    words.expect(";")
    return syntax.Generic(name.text, base, default, span=words.since(name))


def _kind(words: Words) -> str:
    token = words.take()
    if token.text not in TYPE_NAMES:
        raise words.unknown("type", token, list(TYPE_NAMES))
    return token.text


def read_declaration(words: Words, of: str) -> syntax.Declaration:
    """``x: real[n] = 0.0, i < n;``, the declaration of ``of``."""
    name = words.name(of)
    words.expect(":", f"behind the name of {of}")
    given = read_type(words)
    default = read_expression(words) if words.accept("=") else None
    bounds = () if default is None else read_bounds(words)
    span = words.since(name)
    words.expect(";")
    return syntax.Declaration(name.text, given, default, bounds, span=span)


def read_bounds(words: Words) -> tuple[syntax.Named, ...]:
    """``, i < m, j < n``."""
    if not words.accept(","):
        return ()
    return words.separated(lambda words: read_named(words, "an index", "<", "behind an index"))


def read_using(words: Words) -> syntax.Using:
    """``c..(n) = e;``, ``[a, b..] = e;`` or ``[(a, b)..] = e;``."""
    first = words.next
    target = read_target(words, "a helper symbol")
    words.expect("=")
    value = read_expression(words)
    words.expect(";")
    return syntax.Using(target, value, span=words.since(first))


def read_target(words: Words, of: str = "a result") -> syntax.Target:
    """``a``, ``~``, ``a..(n)``, ``a: real[n]``, ``[a, b..]``, and in a list ``(a, b)..``."""
    first = words.next
    if words.accept("~"):
        return syntax.Target(span=words.since(first))
    if words.accept("["):
        items = words.several(lambda words: _part(words, of), "]")
        return syntax.Target(items=items, span=words.since(first))
    name = words.name(of)
    given = read_type(words) if words.accept(":") else None
    pack = read_pack_length(words) if given is None else given.pack
    given = given and replace(given, pack=None)
    return syntax.Target(name.text, pack, type=given, span=words.since(first))


def _part(words: Words, of: str) -> syntax.Target:
    # A part of a list; there are no lists in lists.
    first = words.next
    if not words.accept("("):
        return read_target(words, of)
    items = words.several(lambda words: syntax.Target(words.name(of).text), ")")
    if not items or not words.is_next(".."):
        raise words.unexpected("expected `..` behind names in parentheses")
    return syntax.Target(None, read_pack_length(words), items, span=words.since(first))


def read_identifier(words: Words, of: str) -> syntax.Identifier:
    """A name that the user gives."""
    name = words.name(of)
    return syntax.Identifier(name.text, span=words.span(name))


def read_assertion(words: Words) -> syntax.Assertion:
    """``condition: 'message', label: value;``."""
    first = words.next
    condition = read_expression(words)
    message: syntax.TextValue | None = None
    shown: tuple[tuple[str, syntax.Expression], ...] = ()
    if words.accept(":"):
        message = read_text(words)
        shown = words.separated(_shown) if words.accept(",") else ()
    words.expect(";")
    return syntax.Assertion(condition, message, shown, span=words.since(first))


def _shown(words: Words) -> tuple[str, syntax.Expression]:
    # Without a label the value is called what it is written as.
    first = words.next
    label = ""
    if words.ahead(1).text == ":" and words.ahead(1).kind == "operator" and first.kind in ("text", "name"):
        label = first.text[1:-1] if first.kind == "text" else first.text
        words.take()
        words.take()
    value = read_expression(words)
    return label or value.written, value


def read_formula(words: Words) -> syntax.Formula:
    """``[unroll..(k -> n)] [with z = e:] C[i] += value, i < m | condition;``."""
    first = words.next
    unrolled = _unrolled(words) if words.accept("unroll") else None
    found: list[syntax.Named] = []
    if words.accept("with"):
        found.extend(words.separated(read_named))
        words.expect(":", "behind the values that have names")
    else:
        while words.next.kind == "name" and words.ahead(1).text == "=" and words.ahead(1).kind == "operator":
            found.append(read_named(words))
            words.expect(",")
            if words.next.kind == "name" and words.ahead(1).text == "<":  # the range of an index
                raise _without_indices(found[-1].name, found[-1].span)
    target = _target(words)
    token = words.take()
    operator = _SAME.get(token.text, token.text)
    if token.text in ("-", "/") and words.is_next("="):
        instead = "`+=` and negate the value" if token.text == "-" else "`*=` and the inverse of the value"
        raise DslSyntaxError.at(f"`{token.text}=` does not accumulate", words.span(token), f"write {instead}")
    if operator not in ACCUMULATORS:
        raise words.unknown("accumulator", token, list(ACCUMULATORS))
    value = read_expression(words)
    bounds = read_bounds(words)
    condition = read_expression(words) if words.accept("|") else None
    span = words.since(first)
    words.expect(";")
    return syntax.Formula(target, operator, value, tuple(found), bounds, condition, unrolled, span=span)


def _unrolled(words: Words) -> syntax.Named:
    words.expect("..", "behind `unroll`")
    words.expect("(")
    found = read_named(words, "an index", "->")
    words.expect(")")
    return found


def read_named(words: Words, of: str = "a value", sign: str = "=", where: str = "") -> syntax.Named:
    """``z = e``; ``i < n`` with the sign ``<``."""
    name = words.name(of)
    words.expect(sign, where)
    return syntax.Named(name.text, read_expression(words), span=words.since(name))


def _target(words: Words) -> syntax.Access:
    # Only the part in front of the operator, which may be one that compares.
    first = words.next
    name = read_identifier(words, "an output")
    found = read_indices(words, name)
    if isinstance(found, syntax.Access):
        return found
    if isinstance(found, syntax.Identifier):
        raise _without_indices(name.name, words.since(first))
    hint = f"write `{found.written[:-1]},]` for a cell of rank 1"
    raise DslSyntaxError.at("one index is an item of a pack", found.span, hint)


def _without_indices(name: str, span: Span | None) -> TcdslError:
    hint = f"write `{name}[i, j]`, or `{name}[]`"
    return DslSyntaxError.at(f"`{name}` stands without indices", span, hint)
