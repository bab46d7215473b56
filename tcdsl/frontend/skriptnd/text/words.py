"""The words of SkriptND."""

from __future__ import annotations

import re

from tcdsl.frontend.words.languages import Language

__all__ = ["KEYWORDS", "NO_TYPES", "SKRIPTND_WORDS", "TYPE_NAMES"]

TYPE_NAMES = ("type", "arith", "num", "int", "real", "bool", "str")
KEYWORDS = frozenset(
    (
        *("import", "operator", "graph", "public", "optional", "static", "dynamic", "true", "false", "inf", "pi"),
        *("is", "in", "if", "then", "elif", "else", "with", "for", "while", "do", "unroll", "yield"),
        *TYPE_NAMES,
        "_",
    )
)
"""Names that nothing can have."""
NO_TYPES = KEYWORDS.difference(TYPE_NAMES)

# The longest first.
_OPERATORS = (
    *("...", "<?=", ">?="),
    *("..", ":=", "==", "!=", "<=", ">=", "=>", "->", "<-", "<>", "<<", ">>", "<?", ">?", "&&", "||", "??", "**"),
    *("+=", "*=", "&=", "|="),
    *("+", "-", "*", "/", "\\", "%", "<", ">", "=", "!", "?", "|", "^", "~", ":", ";", ",", ".", "(", ")", "[", "]"),
    *("{", "}", "`", "&"),
)
_WORDS = re.compile(
    r"(?P<blank>[ \t\r\n\f]+|\#[^\n]*)"
    r"|(?P<real>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|[0-9]+\.(?![.A-Za-z_0-9]))"
    r"|(?P<integer>[0-9]+)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<block>@[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<text>\"(?:[^\"\\\n]|\\[^\n])*\"|'(?:[^'\\\n]|\\[^\n])*')"
    r"|(?P<operator>" + "|".join(map(re.escape, _OPERATORS)) + r")"
)
SKRIPTND_WORDS = Language(
    words=_WORDS,
    keywords=KEYWORDS,
    instead={
        "&": "`&&` combines truth values",
        "`": "functions may be written without backticks, `exp(x)`",
        "=": "`==` compares",
    },
    text="text",
    smaller="put operators into modules of their own",
    characters="names are made of a-z, A-Z, 0-9 and _; other characters stand in texts and comments alone",
    nested=("parts", "name some of them in `@using`, or in `@compose`"),
    quotes="\"'",
    same={"<<": "<?", ">>": ">?"},  # the spellings of the document for the shipped ones
)
