"""What rewriting tells the recorder of a loop or a branch."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from tcdsl.frontend.arrays.unpacking import Parts

__all__ = ["LoopStatement"]


@dataclass(frozen=True, slots=True, eq=False)
class LoopStatement:
    """``for numbers in ...``, whose body may bind ``names``, or a branch, whose ``arms`` may; ``while`` ``asks``.

    ``breaks`` says that a round may be left by ``break``, ``leaves`` are other statements that leave one early, and
    ``otherwise`` says that the loop has an ``else``. What rounds add up in a name is to be there before: ``adds`` are
    the names that a ``+=`` of the body, or the like, writes first. ``changes`` are names of containers of Python's, and
    where a method or ``del`` changes them, ``deletes`` names that ``del`` unbinds. What a round binds is unpacked into
    ``parts``: one name, or as many as a tuple of such has. ``stores`` are the statements that bind names first, and
    ``lent`` the names that the body gives to functions, which may change what they hold. ``renewed`` are targets that
    a round, or an arm in it, writes first, by a plain ``=``.
    """

    numbers: tuple[str, ...]
    names: tuple[str, ...]
    leaves: tuple[ast.stmt, ...] = ()
    otherwise: bool = False
    arms: bool = False
    breaks: bool = False
    asks: bool = False
    adds: Mapping[str, ast.stmt] = field(default_factory=dict)
    changes: Mapping[str, ast.expr] = field(default_factory=dict)
    deletes: Mapping[str, ast.expr] = field(default_factory=dict)
    parts: Parts = None
    stores: Mapping[str, ast.stmt] = field(default_factory=dict)
    lent: Mapping[str, ast.expr] = field(default_factory=dict)
    renewed: frozenset[str] = frozenset()
