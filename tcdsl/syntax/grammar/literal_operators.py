"""The operators of the literal spelling: one row each, with the plain Python that it stands for.

Adding one is adding a row. The tables in ``docs/literal.md`` show them, and a test compares.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

__all__ = ["ASSIGNMENTS", "COMPOSITIONS", "INFIX", "LABELS", "AssignmentOperator", "Infix"]

Form = Literal["operator", "function", "subscript"]


@dataclass(frozen=True, slots=True)
class Infix:
    """``a <literal> b``, which is ``plain(a, b)``, ``a plain b`` or ``a[b]``.

    ``carrier`` is the Python operator in whose place it is parsed, which gives it its precedence and lets it group to
    the left (power: to the right).
    """

    literal: str
    form: Form
    plain: str
    carrier: str


INFIX: Mapping[str, Infix] = MappingProxyType(
    {
        row.literal: row
        for row in (
            Infix("**.", "operator", "**", "**"),
            Infix("*.", "operator", "*", "*"),
            Infix("/.", "operator", "/", "/"),
            Infix("+.", "operator", "+", "+"),
            Infix("-.", "operator", "-", "-"),
            Infix("-@>", "function", "fst", "-"),
            Infix("-/>", "function", "snd", "-"),
            Infix("-?/", "function", "relu_gate", "-"),
            Infix("-?^", "function", "sat01_gate", "-"),
            # Weaker than all other arithmetic, stronger than comparisons.
            Infix("@^", "function", "max", "|"),
            Infix("^^", "function", "min", "|"),
            Infix("@-", "function", "min", "|"),
            Infix("@|", "subscript", "", "|"),
            Infix("<>", "function", "eq", "=="),
            Infix("&&", "function", "and_", "and"),
            Infix("||", "function", "or_", "or"),
        )
    }
)

# Operators that a spec string follows: the carrier operator in whose place they are parsed.
COMPOSITIONS: Mapping[str, str] = MappingProxyType({"++": "+", "+*": "+", "*+": "*"})


@dataclass(frozen=True, slots=True)
class AssignmentOperator:
    """``c <literal> e``: the augmented operator ``plain``, the reduction ``plain`` over a fresh start, or ``assign``.

    ``is_python`` says that Python reads the same characters as an assignment of ``+e``, ``-e`` or ``*e``, so that only
    a space before them makes them this operator. ``same_as`` is what `assign` calls it.
    """

    literal: str
    form: Literal["store", "augmented", "reduction", "assign"]
    plain: str = ""
    is_python: bool = False
    same_as: str = ""


ASSIGNMENTS: Mapping[str, AssignmentOperator] = MappingProxyType(
    {
        row.literal: row
        for row in (
            AssignmentOperator("=:", "store", "="),
            AssignmentOperator("=+", "augmented", "+=", is_python=True),
            AssignmentOperator("=-", "augmented", "-=", is_python=True),
            AssignmentOperator("=*", "augmented", "*=", is_python=True),
            AssignmentOperator("=/", "augmented", "/="),
            AssignmentOperator("=**", "augmented", "**="),
            AssignmentOperator("=@^", "augmented", ">>="),
            AssignmentOperator("=^^", "augmented", "<<="),
            AssignmentOperator("=@-", "augmented", "<<=", same_as="=^^"),
            AssignmentOperator("=||", "augmented", "|="),
            AssignmentOperator("=&&", "augmented", "&="),
            AssignmentOperator("=?/", "assign"),
            AssignmentOperator("=?^", "assign"),
            AssignmentOperator("=:+", "reduction", "sum"),
            AssignmentOperator("=:*", "reduction", "prod"),
            AssignmentOperator("=:@^", "reduction", "max"),
            AssignmentOperator("=:^^", "reduction", "min"),
            AssignmentOperator("=:@-", "reduction", "min", same_as="=:^^"),
            AssignmentOperator("=:||", "reduction", "any"),
            AssignmentOperator("=:&&", "reduction", "all"),
            AssignmentOperator("=:-", "assign"),
            AssignmentOperator("=:/", "assign"),
            AssignmentOperator("=:**", "assign"),
            AssignmentOperator("=:?/", "assign"),
            AssignmentOperator("=:?^", "assign"),
        )
    }
)

LABELS = ("logic", "projections")
