"""Statements without jumps: what comes after a branch that ends in a jump is its other arm.

::

    if done(x):                        if done(x):
        break                              left = True
    y = x                              else:
                                           y = x

So the branch may be one that runs. After a branch of which an arm may jump and may go on, a flag says whether one has::

    if a(x):                           if a(x):
        if b(x):                           if b(x):
            continue                           jumped = True
        x = step(x)                        else:
    y = x                                      x = step(x)
                                       if not jumped:
                                           y = x
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Sequence

__all__ = ["JumpRemoval", "assigned", "jumps_in"]


def assigned(name: str, value: ast.expr, at: ast.stmt) -> ast.stmt:
    """``name = value`` at the place of a statement."""
    made = ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], value), at)
    return ast.fix_missing_locations(made)


def jumps_in(body: Sequence[ast.stmt], kinds: tuple[type[ast.stmt], ...]) -> list[ast.stmt]:
    """The jumps of a body: not those in loops inside it, nor in what is not run in order."""
    found: list[ast.stmt] = []
    for statement in body:
        if isinstance(statement, kinds):
            found.append(statement)
        elif isinstance(statement, ast.If):
            found += jumps_in(statement.body, kinds) + jumps_in(statement.orelse, kinds)
    return found


class JumpRemoval(ABC):
    """``removal.straight(body)`` has no statements of ``kinds``; ``flag`` is a name that says whether one was met."""

    def __init__(self, kinds: tuple[type[ast.stmt], ...], flag: str) -> None:
        self.kinds = kinds
        self.flag = flag
        #: Whether a statement asks for the flag.
        self.flagged = False

    def without_jumps(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """``body`` without jumps."""
        made = self.straight(body)
        if self.flagged:
            made = [assigned(self.flag, ast.Constant(False), body[0]), *self.straight(body)]
        return made

    @abstractmethod
    def replaced(self, jump: ast.stmt) -> list[ast.stmt]:
        """What stands for a jump."""

    def ending(self) -> list[ast.stmt]:
        """What is done at the end of a body that has not jumped."""
        return []

    def straight(self, body: Sequence[ast.stmt], whole: bool = True) -> list[ast.stmt]:
        """A body without jumps; after what is not a ``whole`` body something may come."""
        made: list[ast.stmt] = []
        for k, statement in enumerate(body):
            if isinstance(statement, self.kinds):
                jumped = [assigned(self.flag, ast.Constant(True), statement)] if self.flagged else []
                left = [*made, *self.replaced(statement), *jumped]
                return left or [ast.copy_location(ast.Pass(), statement)]
            if not isinstance(statement, ast.If) or not jumps_in([statement], self.kinds):
                made.append(statement)
                continue
            rest = body[k + 1 :]
            taken, otherwise = self._ends(statement.body), self._ends(statement.orelse)
            flagged = not (taken or otherwise) and (whole or bool(rest))
            # What comes after it belongs to the arms that go on.
            arms = [
                self.straight(arm if ends or flagged else [*arm, *rest], whole and not flagged)
                for arm, ends in ((statement.body, taken), (statement.orelse, otherwise))
            ]
            made.append(ast.copy_location(ast.If(statement.test, *arms), statement))
            if flagged:
                self.flagged = True
                others = self.straight(rest, whole)
                if others:
                    going = ast.UnaryOp(ast.Not(), ast.Name(self.flag, ast.Load()))
                    made.append(ast.fix_missing_locations(ast.copy_location(ast.If(going, others, []), others[0])))
            return made
        if whole and not (body and isinstance(body[-1], ast.Raise)):
            made += self.ending()
        return made

    def _ends(self, body: Sequence[ast.stmt]) -> bool:
        match body[-1] if body else None:
            case ast.Break() | ast.Continue() | ast.Return() | ast.Raise():
                return True
            case ast.If(body=taken, orelse=otherwise):
                return self._ends(taken) and self._ends(otherwise)
        return False
