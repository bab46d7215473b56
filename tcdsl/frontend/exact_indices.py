"""Indices that are computed from data, as integers of any size.

``x[2 * b[i] + 1]`` asks for the cell of that number, whatever the type of ``b`` can hold: an index never wraps around.
Values do, as NumPy's: ``y[i] = 2 * b[i]`` is computed in the type of ``b``. So the arithmetic that makes an index, in
the brackets, in a local definition or in a helper function, gets the type ``integer`` and reads its cells as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, MutableMapping
from dataclasses import dataclass, field

import numpy as np

from tcdsl.errors import Diagnostic, DslSyntaxError
from tcdsl.frontend.definitions import FACTOR, GENERATED, Definition
from tcdsl.frontend.values import Value
from tcdsl.ir.build import apply, cast, constant
from tcdsl.ir.dtypes import INTEGER, is_integer
from tcdsl.ir.expressions import (
    Apply,
    Cast,
    Constant,
    Expr,
    IndexValue,
    Let,
    Local,
    Read,
    SizeValue,
    is_affine_index,
    locals_read,
)
from tcdsl.ir.primitives import PRIMITIVES

__all__ = ["exact_index"]

_ARITHMETIC = frozenset(("add", "sub", "mul", "neg", "abs", "square", "floor_div", "mod", "max", "min"))
# Shifts to the left by more are left to the type's own bits.
_LARGEST_SHIFT = 64


def exact_index(expr: Expr, definitions: MutableMapping[str, Definition], numbers: Collection[str] = ()) -> Expr:
    """The index that the value ``expr`` stands for: an int64 expression if that holds it, else one of type ``integer``.

    Local definitions, which ``definitions`` gives by name, get a second one where index arithmetic needs them.
    ``numbers`` are the inputs that are Python's integers: what meets data takes its type as a value, not in an index.
    """
    return _Exact(definitions, numbers).index(expr)


@dataclass(slots=True)
class _Exact:
    """``bound`` says what the names of `Let`s around stand for, ``found`` what is known of definitions."""

    definitions: MutableMapping[str, Definition]
    numbers: Collection[str]
    bound: Mapping[str, Expr] = field(default_factory=dict)
    found: dict[str, tuple[Expr, Definition | None]] = field(default_factory=dict)

    def index(self, expr: Expr) -> Expr:
        if is_affine_index(expr):
            return expr
        match expr:
            case Cast(operand=operand, dtype=dtype) if self.keeps(operand, dtype):
                return self.index(operand)
            case Local(name=name) if name in self.bound:
                return self.bound[name]
            case Local(name=name) if name in self.definitions:
                return self.defined(expr)
            case Let():
                return self.let(expr)
            case Apply(primitive="id", arguments=(operand,)):
                return self.index(operand)
            case Apply(primitive="fma", arguments=(one, other, rest)):
                return self.applied("add", apply("mul", one, other), rest)
            case Apply(primitive="shift_left", arguments=(operand, Constant(value=count))):
                if 0 <= count <= _LARGEST_SHIFT:
                    return self.applied("mul", operand, constant(2 ** int(count), INTEGER))
            case Apply(primitive=primitive, arguments=arguments) if primitive in _ARITHMETIC:
                return self.applied(primitive, *arguments)
            case Apply(primitive="where", arguments=(condition, *branches)):
                return apply("where", self.condition(condition), *map(self.integer, branches), span=expr.span)
        return cast(expr, INTEGER if expr.dtype == "uint64" else "int64")

    def keeps(self, operand: Expr, target: str) -> bool:
        # Whether a conversion between integer types keeps the number, or would for numbers that the type can hold:
        # those of uint64 that int64 cannot, and what has no type of its own beside narrower data, are kept here.
        source = operand.dtype
        if not (is_integer(source) and is_integer(target)):
            return False
        if INTEGER in (source, target) or (source, target) == ("uint64", "int64"):
            return True
        return self.is_number(operand) or np.can_cast(source, target)

    def is_number(self, expr: Expr, names: frozenset[str] = frozenset()) -> bool:
        # Made of index variables, sizes and Python's integers alone, and the local names of such.
        match expr:
            case Constant() | SizeValue() | IndexValue():
                return expr.dtype == "int64"
            case Read(tensor=tensor):
                return tensor in self.numbers
            case Local(name=name):
                return name in names or (name in self.definitions and self.definitions[name].value.weak == "int")
            case Let(name=name, value=value, body=body):
                return self.is_number(value, names) and self.is_number(body, names | {name})
            case Apply(primitive="where", arguments=(_, *branches)):
                return all(self.is_number(branch, names) for branch in branches)
            case Apply(arguments=arguments, dtype="int64"):
                return all(self.is_number(argument, names) for argument in arguments)
        return False

    def applied(self, primitive: str, *arguments: Expr) -> Expr:
        divisor = arguments[-1]
        if primitive in ("floor_div", "mod") and isinstance(divisor, Constant) and divisor.value == 0:
            fact = f"an index that is `{PRIMITIVES[primitive].operator}` by 0"
            raise Diagnostic(DslSyntaxError, fact, divisor.span, hint="divide by a number that is not 0").error()
        # Not simplified: the range of `p[i] + q[j] * 0` comes from q too.
        return Apply(primitive, tuple(map(self.integer, arguments)), INTEGER)

    def integer(self, expr: Expr) -> Expr:
        found = self.index(expr)
        if isinstance(found, Cast) and is_integer(found.operand.dtype):
            found = found.operand  # a cell of a narrower type
        return cast(found, INTEGER)

    def defined(self, expr: Local) -> Expr:
        # Each definition is looked at once, however often others mention it.
        if expr.name not in self.found:
            self.found[expr.name] = self.twin(expr, self.definitions[expr.name])
        index, definition = self.found[expr.name]
        if definition is not None and isinstance(index, Local):
            self.definitions[index.name] = definition
        return index

    def twin(self, expr: Local, definition: Definition) -> tuple[Expr, Definition | None]:
        """The index that a local definition is, and the definition of that, if it needs one of its own."""
        mentions = dict(definition.mentions)
        found = _Exact(mentions, self.numbers, found=self.found).index(definition.value.expr)
        if is_affine_index(found):
            return found, None
        if found.dtype != INTEGER or isinstance(found, Cast):
            # A cell, or another value that is not arithmetic: the index and the value are the same number.
            return cast(expr, INTEGER if expr.dtype == "uint64" else "int64"), None
        if isinstance(found, Local):
            return found, mentions.get(found.name)
        name, *marks, serial = expr.name.split(GENERATED)
        local = Local(GENERATED.join((name.removesuffix(FACTOR), *marks, "index", serial)), INTEGER, expr.span)
        return local, Definition.of(Value(found, None, "int64"), mentions)

    def let(self, expr: Let) -> Expr:
        name = f"{expr.name}_index"
        value = self.integer(expr.value)
        bound = {**self.bound, expr.name: Local(name, INTEGER)}
        body = _Exact(self.definitions, self.numbers, bound, self.found).index(expr.body)
        body = Let(name, value, body, expr.span)
        return Let(expr.name, expr.value, body, expr.span) if expr.name in locals_read(body) else body

    def condition(self, expr: Expr) -> Expr:
        # Comparisons of integers, exact as well.
        match expr:
            case Apply(primitive="and_" | "or_" | "not_" as primitive, arguments=arguments):
                return apply(primitive, *map(self.condition, arguments), span=expr.span)
            case Apply(primitive=primitive, arguments=arguments) if PRIMITIVES[primitive].kind == "compare":
                if is_integer(arguments[0].dtype) and not is_affine_index(expr):
                    return apply(primitive, *map(self.integer, arguments), span=expr.span)
        return expr
