"""From text to `Source`: definitions and statements; what cannot be read is an error that shows the place.

What is nested more deeply, or longer, than any program is refused: nothing after this has to expect it.
"""

from __future__ import annotations

from tcdsl.errors import DslSyntaxError
from tcdsl.frontend.comprehensions.text.element_types import ELEMENT_TYPES
from tcdsl.frontend.comprehensions.text.expressions import ReadWords, read_expression, read_name, read_number
from tcdsl.frontend.comprehensions.text.syntax import (
    Annotation,
    Definition,
    DefinitionCall,
    ElementType,
    Exists,
    LocalDefinition,
    Name,
    Number,
    Parameter,
    Range,
    Result,
    Source,
    Statement,
    Target,
)
from tcdsl.frontend.comprehensions.text.words import KEYWORDS, OPERATIONS
from tcdsl.frontend.words.cursor import Words
from tcdsl.span import COMPREHENSIONS, Span, named_text

__all__ = ["parse"]

MOST_CHARACTERS = 200_000


def parse(text: object) -> Source:
    """The definitions in ``text``. `DslSyntaxError` shows what cannot be read."""
    if not isinstance(text, str):
        fact = f"a source is a text, not a {type(text).__name__}"
        raise DslSyntaxError.at(fact, hint='write `define("def f(float(N) A) -> (B) { B(i) = A(i) }")`')
    filename = named_text(text, COMPREHENSIONS)
    if len(text) > MOST_CHARACTERS:
        fact = f"the source has {len(text)} characters, and {MOST_CHARACTERS} are the most"
        raise DslSyntaxError.at(fact, Span(filename, 1, 0, 1, 1), "define its parts one by one")
    words = ReadWords(text, filename)
    definitions = []
    while words.next.kind != "end":
        definitions.append(_definition(words))
    if not definitions:
        hint = "write a definition, `def f(float(N) A) -> (B) { B(i) = A(i) }`"
        raise DslSyntaxError.at("the source defines nothing", Span(filename, 1, 0, 1, 1), hint)
    return Source(tuple(definitions), text, filename)


def _definition(words: ReadWords) -> Definition:
    # `def f(parameters) -> (results) { statements }`
    first = words.expect("def")
    name = read_name(words, "a definition")
    words.expect("(")
    parameters = words.several(_parameter, ")")
    words.expect("->")
    words.expect("(")
    results = words.separated(_result)
    if not words.accept(")"):
        raise words.unexpected("expected `)` or `,`")
    words.expect("{")
    statements = []
    while not words.accept("}"):
        statements.append(_statement(words))
    return Definition(name, parameters, results, tuple(statements), words.since(first))


def _parameter(words: Words) -> Parameter:
    first = words.next
    given = _element_type(words)
    return Parameter(given, read_name(words, "a parameter"), words.since(first))


def _element_type(words: Words) -> ElementType:
    # `float(N, 3)`
    first = words.next
    if first.text not in ELEMENT_TYPES:
        raise words.unexpected("expected a type")
    words.take()
    sizes = words.several(_size, ")") if words.accept("(") else ()
    return ElementType(ELEMENT_TYPES[first.text], sizes, words.since(first))


def _size(words: Words) -> Name | Number:
    return read_number(words) if words.next.kind == "integer" else read_name(words, "a size")


def _result(words: Words) -> Result:
    # `C` or `float(N) C`
    first = words.next
    given = _element_type(words) if first.text in ELEMENT_TYPES else None
    return Result(given, read_name(words, "a result"), words.since(first))


def _statement(words: ReadWords) -> Statement | DefinitionCall:
    # `C(i) +=! value <=> annotation where clauses`, or `a, b = f(x, y)`
    first = words.next
    if first.kind != "name":
        raise words.unexpected("expected a statement, or `}`")
    name = read_name(words)
    if words.accept(","):
        targets = (name, *words.separated(read_name))
        words.expect("=")
        function = read_name(words, "a definition")
        words.expect("(")
        return DefinitionCall(targets, function, words.several(read_name, ")"), words.since(first))
    indices = words.several(_index, ")") if words.is_next("(") and words.take() else None
    target = Target(name, indices or (), indices is None, words.since(first))
    if words.next.text not in OPERATIONS:
        raise words.unexpected("expected `=`, `+=`, `+=!` or the like")
    operation = words.take().text
    value = read_expression(words)
    begin, annotation = words.next, None
    if words.accept("<=>"):
        called = read_name(words, "an annotation")
        words.expect("(")
        arguments = words.several(lambda _: read_expression(words), ")")
        annotation = Annotation(called, arguments, words.since(begin))
    clauses = words.separated(lambda _: _clause(words)) if words.accept("where") else ()
    return Statement(target, operation, value, annotation, clauses, words.since(first))


def _index(words: Words) -> Name:
    hint = "a target has names of indices alone: gather, `C(i) = A(p(i))`, or use the index notation of `@op`"
    if words.next.text[:1] in tuple("-+*/%.(0123456789"):
        raise words.unexpected(hint)
    found = read_name(words, "an index")
    if words.next.text[:1] in tuple("-+*/%.("):
        raise words.unexpected(hint)
    return found


def _clause(words: ReadWords) -> Range | LocalDefinition | Exists:
    # `i in a:b`, `t = a` or `exists a`
    first = words.next
    if words.accept("exists"):
        return Exists(read_expression(words), words.since(first))
    if first.kind != "name" or first.text in KEYWORDS:
        raise words.unexpected("expected `exists` or a name")
    name = read_name(words, "an index")
    if words.accept("="):
        return LocalDefinition(name, read_expression(words), words.since(first))
    if not words.accept("in"):
        raise words.unexpected("expected `=` or `in`")
    low = read_expression(words)
    words.expect(":", "behind the beginning of a range")
    return Range(name, low, read_expression(words), words.since(first))
