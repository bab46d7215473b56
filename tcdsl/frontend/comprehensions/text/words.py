"""The words of Tensor Comprehensions; newlines separate nothing."""

from __future__ import annotations

import re

from tcdsl.frontend.comprehensions.text.element_types import ELEMENT_TYPES
from tcdsl.frontend.words.languages import Language

__all__ = ["COMPREHENSION_WORDS", "KEYWORDS", "OPERATIONS"]

KEYWORDS = frozenset(("def", "where", "in", "exists", *ELEMENT_TYPES))
"""Names that nothing can have."""

OPERATIONS = frozenset(("=", *(f"{each}={end}" for each in ("+", "*", "min", "max") for end in ("", "!"))))
"""What a statement does with its target."""

# The longest first; with those of other languages, so that messages show all of them.
_OPERATORS = (
    *("<=>", "->", "&&", "||", "==", "!=", "<=", ">=", "**", "-=", "/=", "//", "/*"),
    *("(", ")", "{", "}", ",", ":", "?", "=", "<", ">", "+", "-", "*", "/", "%", "!", ".", ";", "[", "]", "&", "|"),
)
_EXPONENT = "[eE][+-]?[0-9]+"

COMPREHENSION_WORDS = Language(
    words=re.compile(
        r"(?P<blank>[ \t\r\n\f]+|\#[^\n]*)"
        rf"|(?P<real>(?:(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:{_EXPONENT})?|[0-9]+{_EXPONENT})[fF]?(?![A-Za-z0-9_]))"
        r"|(?P<integer>0[xX][0-9a-fA-F]+|[0-9]+)"
        r"|(?P<operation>(?:\+|\*|min|max)=!?(?!=))"
        r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
        r"|(?P<operator>" + "|".join(map(re.escape, _OPERATORS)) + r")"
    ),
    keywords=KEYWORDS,
    instead={
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
    },
    text="source",
    smaller="define its parts one by one",
    characters="numbers are made of 0-9 and ., names of a-z, A-Z, 0-9 and _",
    nested=("brackets", "write parts of the value as statements or behind `where`"),
)
