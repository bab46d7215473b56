"""The outermost primitive of a value and its operands, which a logic connects.

::

    c["@"] = sum(relu(a) * b)        reduction sum, primitive mul, operands relu(a) and b

The rewriting of a decorated function (`tcdsl.frontend.python.rewriting`) emits a value's parts as thunks, beside the
value as a whole; `LogicOperand` is what staging makes of them. Which function a call means is known only then.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tcdsl.frontend.source.rewritten_functions import thunk
from tcdsl.frontend.source.syntax_trees import copied
from tcdsl.frontend.symbols.operators import ArithmeticOperators
from tcdsl.frontend.symbols.recognition import recognize
from tcdsl.ir.primitives import PRIMITIVES
from tcdsl.ir.python_operators import PYTHON_OPERATORS

__all__ = ["Applied", "LogicOperand", "term_thunk"]


@dataclass(frozen=True, slots=True)
class Applied:
    """A primitive and its operands; ``names`` are those that occur in each operand."""

    primitive: str
    operands: tuple[Any, ...]
    names: tuple[frozenset[str], ...]


class LogicOperand:
    """A value whose parts have not been computed: all of it, or its outermost primitive's operands.

    ``kind`` is a primitive, or ``call``, ``choice`` or ``whole``. ``parts`` are the thunks of the operands (of a call,
    the function's first) and ``inner`` the terms of those that may be asked for their own parts.
    """

    def __init__(self, emitted: tuple[Any, ...]) -> None:
        self._kind, self._whole, self._parts, names, self._inner = emitted
        self._names = tuple(frozenset(each.split()) for each in names)

    def reduction(self) -> tuple[str, LogicOperand] | None:
        """``sum`` and the value that is summed, if this is a call of a reduction with one argument."""
        if self._kind != "call" or not self._inner:
            return None
        name = recognize(self._parts[0]())
        return None if name is None else (name, LogicOperand(self._inner[0]))

    def applied(self) -> Applied:
        """The outermost primitive; ``id`` of the whole value if it has none."""
        match self._kind:
            case "whole":
                return self._identity()
            case "call":
                return self._called()
            case "choice":
                test = self._parts[0]()
                if not isinstance(test, ArithmeticOperators) and not getattr(test, "shape", ()):
                    # Configuration decides; the other branch is not computed.
                    return LogicOperand(self._inner[0 if test else 1]).applied()
                operands = (test, *(part() for part in self._parts[1:]))
                return Applied("where", operands, self._names)
            case primitive:
                return Applied(primitive, tuple(part() for part in self._parts), self._names)

    def _identity(self) -> Applied:
        return Applied("id", (self._whole(),), (frozenset().union(*self._names),))

    def _called(self) -> Applied:
        name = recognize(self._parts[0]())
        row = PRIMITIVES.get(name or "")
        operands = self._parts[1:]
        if row is None or row.arity != len(operands):
            return self._identity()
        return Applied(row.name, tuple(part() for part in operands), self._names)


def term_thunk(value: ast.expr, visit: Callable[[ast.expr], ast.expr]) -> ast.expr:
    """The expression ``lambda: (...)`` that a `LogicOperand` takes; ``visit`` rewrites parts."""
    return ast.fix_missing_locations(ast.copy_location(thunk(_term(value, visit)), value))


def _term(value: ast.expr, visit: Callable[[ast.expr], ast.expr]) -> ast.Tuple:
    kind, operands, inner = _taken_apart(value)

    def part(node: ast.expr) -> ast.expr:
        return ast.copy_location(thunk(visit(copied(node))), node)

    def names(node: ast.expr) -> ast.expr:
        return ast.Constant(" ".join(sorted({name.id for name in ast.walk(node) if isinstance(name, ast.Name)})))

    named = operands[1:] if kind == "call" else operands
    parts: list[ast.expr] = [
        ast.Constant(kind),
        part(value),
        ast.Tuple([part(each) for each in operands], ast.Load()),
        ast.Tuple([names(each) for each in named or [value]], ast.Load()),
        ast.Tuple([_term(each, visit) for each in inner], ast.Load()),
    ]
    return ast.copy_location(ast.Tuple(parts, ast.Load()), value)


def _taken_apart(value: ast.expr) -> tuple[str, list[ast.expr], list[ast.expr]]:
    """The kind of a term, its operands, and those of them that may be taken apart further."""
    match value:
        case ast.BinOp(left=left, op=kind, right=right) if type(kind) in PYTHON_OPERATORS:
            return PYTHON_OPERATORS[type(kind)], [left, right], []
        case ast.UnaryOp(op=sign, operand=operand):
            return PYTHON_OPERATORS.get(type(sign), "id"), [operand], []
        case ast.Compare(left=left, ops=[comparison], comparators=[right]) if type(comparison) in PYTHON_OPERATORS:
            return PYTHON_OPERATORS[type(comparison)], [left, right], []
        case ast.BoolOp(op=kind, values=[*first, last]):
            left = first[0] if len(first) == 1 else ast.copy_location(ast.BoolOp(kind, first), value)
            return ("and_" if isinstance(kind, ast.And) else "or_"), [left, last], []
        case ast.IfExp(test=test, body=body, orelse=other):
            return "choice", [test, body, other], [body, other]
        case ast.Call(func=function, args=arguments, keywords=[]) if not _starred(arguments):
            inner = [] if len(arguments) != 1 or isinstance(arguments[0], ast.GeneratorExp) else arguments
            return "call", [function, *arguments], inner
    return "whole", [], []


def _starred(arguments: list[ast.expr]) -> bool:
    return any(isinstance(argument, ast.Starred) for argument in arguments)
