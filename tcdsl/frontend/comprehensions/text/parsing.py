"""From text to `Source`: lark reads it, and what it cannot read is an error that shows the place.

The parser makes nodes while it reads, so that its own stack is all that grows with the nesting of a text. What is
nested more deeply, or longer, than any program is refused: nothing after this has to expect it.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from tcdsl.errors import DslSyntaxError, TcdslError
from tcdsl.frontend.comprehensions.text.grammar import GRAMMAR, KEYWORDS
from tcdsl.frontend.comprehensions.text.syntax import Source
from tcdsl.span import COMPREHENSIONS, Span, named_text

if TYPE_CHECKING:
    from lark import Lark
    from lark.exceptions import UnexpectedInput

__all__ = ["parse"]

MOST_CHARACTERS = 200_000
MOST_BRACKETS = 100

_SHOWN = {
    "$END": "the end",
    "AND": "`&&`",
    "AXIS": "`.0`",
    "COLON": "`:`",
    "COMMA": "`,`",
    "COMPARISON": "a comparison",
    "DEF": "`def`",
    "EQUAL": "`=`",
    "EXISTS": "`exists`",
    "ID": "a name",
    "IN": "`in`",
    "INTEGER": "a number",
    "LBRACE": "`{`",
    "LPAR": "`(`",
    "MINUS": "`-`",
    "NOT": "`!`",
    "OPERATION": "`=`, `+=`, `+=!` or the like",
    "OR": "`||`",
    "OVER": "`/`",
    "PLUS": "`+`",
    "QMARK": "`?`",
    "RBRACE": "`}`",
    "REAL": "a number",
    "REST": "`%`",
    "RPAR": "`)`",
    "TIMES": "`*`",
    "TYPE": "a type",
    "WHERE": "`where`",
}
_MOST_SHOWN = 5
# What other languages write, and what is written here.
_INSTEAD = {
    ";": "statements end where the next one begins, without `;`",
    "[": "indices stand in round brackets: `A(i, k)`",
    "]": "indices stand in round brackets: `A(i, k)`",
    "&": "`&&` combines truth values",
    "|": "`||` combines truth values",
    "**": "write `pow(x, 2)`, or a product",
    "-=": "write `+=` and negate the value",
    "/=": "write `*=` and the inverse of the value",
    '"': "there are no strings",
    "'": "there are no strings",
    "//": "comments begin with `#`, and `/` divides integers to the floor",
    "/*": "comments begin with `#`",
    "->": "results stand in brackets: `-> (C)`",
}


def parse(text: object) -> Source:
    """The definitions in ``text``. `DslSyntaxError` shows what cannot be read."""
    if not isinstance(text, str):
        fact = f"a source is a text, not a {type(text).__name__}"
        raise DslSyntaxError.at(fact, hint='write `define("def f(float(N) A) -> (B) { B(i) = A(i) }")`')
    filename = named_text(text, COMPREHENSIONS)
    if len(text) > MOST_CHARACTERS:
        fact = f"the source has {len(text)} characters, and {MOST_CHARACTERS} are the most"
        raise DslSyntaxError.at(fact, Span(filename, 1, 0, 1, 1), "define its parts one by one")
    _check_brackets(text, filename)
    from lark.exceptions import UnexpectedInput

    from tcdsl.frontend.comprehensions.text.node_construction import READING, TreeReading

    parser = _parser()
    token = READING.set(TreeReading(filename))
    try:
        definitions: Any = parser.parse(text)
    except UnexpectedInput as error:
        raise _fault(error, text, filename) from None
    except TcdslError as error:
        raise error.with_traceback(None) from None  # which has lark's frames
    finally:
        READING.reset(token)
    if not definitions:
        raise DslSyntaxError.at(
            "the source defines nothing",
            Span(filename, 1, 0, 1, 1),
            "write a definition, `def f(float(N) A) -> (B) { B(i) = A(i) }`",
        )
    return Source(tuple(definitions), text, filename)


@cache
def _parser() -> Lark:
    from lark import Lark

    from tcdsl.frontend.comprehensions.text.node_construction import NodeConstruction

    # Types that are names are told apart by the lexer, which asks the parser what may come next.
    return Lark(
        GRAMMAR,
        parser="lalr",
        lexer="contextual",
        keep_all_tokens=True,
        maybe_placeholders=False,
        transformer=NodeConstruction(),
    )


def _check_brackets(text: str, filename: str) -> None:
    depth = 0
    for number, line in enumerate(text.split("\n"), 1):
        for column, character in enumerate(line.partition("#")[0]):
            depth += (character in "({") - (character in ")}")
            if depth > MOST_BRACKETS:
                fact = f"brackets are nested more than {MOST_BRACKETS} times"
                span = Span(filename, number, column, number, column + 1)
                raise DslSyntaxError.at(fact, span, "write parts of the value as statements or behind `where`")


def _fault(error: UnexpectedInput, text: str, filename: str) -> TcdslError:
    from lark.exceptions import UnexpectedCharacters, UnexpectedToken

    expected: set[str] = set()
    line, column, found = error.line, error.column, ""
    if isinstance(error, UnexpectedToken):
        expected, found = set(error.expected), str(error.token)
        if error.token.type == "$END":
            lines = text.rstrip().split("\n")
            line, column, found = len(lines), len(lines[-1]), ""
    elif isinstance(error, UnexpectedCharacters):
        expected = set(error.allowed or ())
        found = text.split("\n")[line - 1][column - 1]
    rest = text.split("\n")[line - 1][max(column - 1, 0) :]
    written = next((each for each in sorted(_INSTEAD, key=len, reverse=True) if rest.startswith(each)), "")
    span = Span(filename, line, max(column - 1, 0), line, max(column - 1, 0) + max(1, len(written or found)))
    if not found:
        return DslSyntaxError.at("the source ends too early", span, _expectation(expected))
    before = text.split("\n")[line - 1][: max(column - 1, 0)].rstrip()
    written = written or next((each for each in _INSTEAD if each == f"{before[-1:]}{found}"), "")
    if not found.isascii():
        shown = found if found.isprintable() else ascii(found)[1:-1]
        hint = "numbers are made of 0-9 and ., names of a-z, A-Z, 0-9 and _"
        return DslSyntaxError.at(f"the character `{shown}` is not ASCII", span, hint)
    if found in ")}" and before.endswith(","):
        return DslSyntaxError.at(f"a comma before `{found}`", span, "drop the comma")
    word = re.match(r"[0-9]\w+", rest)
    if word is not None and not re.fullmatch(r"[0-9]+", word[0]):
        span = replace(span, end_column=span.column + len(word[0]))
        return DslSyntaxError.at(
            f"`{word[0]}` is neither a number nor a name", span, "names begin with a letter or `_`"
        )
    hint = _INSTEAD.get(written) or _expectation(expected)
    listed = expected <= {"RPAR", "COMMA", "EQUAL", "ID"}
    if listed and re.match(r"[-+*/%.(0-9]", found) and _in_target(text, line, column):
        hint = "a target has names of indices alone: gather, `C(i) = A(p(i))`, or use the index notation of `@op`"
    return DslSyntaxError.at(f"unexpected `{found}`", span, hint)


def _in_target(text: str, line: int, column: int) -> bool:
    # Behind the bracket of `C(i, `; calls of definitions, parameters and types have such lists, too.
    lines = text.split("\n")
    before = "\n".join((*lines[max(line - 6, 0) : line - 1], lines[line - 1][: max(column - 1, 0)]))
    head = re.search(r"(\S*)\s*\b(\w+)\s*\((\s*\w+\s*,)*\s*\w*\s*$", before[-300:])
    return head is not None and head[1] != "def" and not head[1].endswith("=") and head[2] not in KEYWORDS


def _expectation(expected: set[str]) -> str:
    shown = sorted({_SHOWN.get(name, name) for name in expected})
    if not shown or len(shown) > _MOST_SHOWN:
        return ""
    return "expected " + (shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}")
