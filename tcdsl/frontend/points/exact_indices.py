"""Indices that are computed from data, as integers of any size.

``x[2 * b[i] + 1]`` asks for the cell of that number, whatever the type of ``b`` can hold: an index never wraps around.
Values do, as NumPy's: ``y[i] = 2 * b[i]`` is computed in the type of ``b``. So the arithmetic that makes an index, in
the brackets, in a local definition or in a helper function, gets the type ``integer`` and reads its cells as they are.
Only a conversion that is written, ``int8(2 * b[i])``, wraps around there too.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field

import numpy as np

from tcdsl.errors import DslSyntaxError
from tcdsl.frontend.points.definitions import FACTOR, GENERATED, Definition
from tcdsl.frontend.staging.run_time_integers import RunTimeIntegers
from tcdsl.frontend.symbols.values import Conversion, Value
from tcdsl.ir.build import apply, cast, constant, integer, truth
from tcdsl.ir.dtypes import INTEGER, is_boolean, is_integer
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
    children,
    is_affine_index,
    locals_read,
)
from tcdsl.ir.primitives import PRIMITIVES

__all__ = ["exact_index", "is_whole"]

_ARITHMETIC = frozenset(("add", "sub", "mul", "neg", "abs", "square", "floor_div", "mod", "max", "min"))
_SUMS = frozenset(("add", "sub", "neg"))
_BITS = frozenset(("bit_and", "bit_or", "bit_xor", "shift_right"))
# Shifts to the left by more leave every axis in any case.
_LARGEST_SHIFT = 64


def is_whole(expr: Expr, definitions: Mapping[str, Definition]) -> bool:
    """Whether ``expr`` is an integer, also where its type as a value is float64: what uint64 and int64 make there."""
    match expr:
        case Local(name=name) if name in definitions and not is_integer(expr.dtype):
            definition = definitions[name]
            return is_whole(definition.value.expr, definition.mentions)
        case Cast(operand=operand) if not isinstance(expr, Conversion) and expr.dtype == "float64":
            return is_whole(operand, definitions)
        case Apply(primitive=primitive, arguments=arguments, dtype="float64") if primitive in _ARITHMETIC:
            return all(is_whole(argument, definitions) for argument in arguments)
        case Apply(primitive="where", arguments=(_, *branches), dtype="float64"):
            return all(is_whole(branch, definitions) for branch in branches)
        case Constant(value=value, dtype="float64"):
            return float(value).is_integer()
    return is_integer(expr.dtype)


def exact_index(
    expr: Expr, definitions: MutableMapping[str, Definition], integers: RunTimeIntegers, specializes: bool = True
) -> Expr:
    """The index that the value ``expr`` stands for: an int64 expression if that holds it, else one of type ``integer``.

    Local definitions, which ``definitions`` gives by name, get a second one where index arithmetic needs them. What
    ``integers`` and index variables make is affine: a program that ``specializes`` serves their values alone where it
    would not be.
    """
    return _Exact(definitions, integers, specializes).index(expr)


@dataclass(slots=True)
class _Exact:
    """``bound`` says what the names of `Let`s around stand for, ``found`` what is known of definitions."""

    definitions: MutableMapping[str, Definition]
    integers: RunTimeIntegers
    specializes: bool
    bound: Mapping[str, Expr] = field(default_factory=dict)
    found: dict[str, tuple[Expr, Definition | None]] = field(default_factory=dict)

    def index(self, expr: Expr) -> Expr:
        match expr:
            case Constant(value=value):
                return constant(int(value), "int64", expr.span)
            case _ if is_affine_index(expr):
                return expr
            case Read() | Cast(operand=Read(dtype="bool")) if (size := self.size(expr)) is not None:
                return size
            case Conversion(operand=operand, dtype=dtype) if is_integer(operand.dtype) and is_integer(dtype):
                return self.converted(operand, dtype)
            case Cast(operand=operand) if not isinstance(expr, Conversion) and is_whole(operand, self.definitions):
                return self.index(operand)
            case Cast(operand=operand) if is_boolean(operand.dtype):
                return cast(self.condition(operand), "int64")
            case Local(name=name) if name in self.bound:
                return self.bound[name]
            case Local(name=name) if name in self.definitions:
                return self.defined(expr)
            case Let():
                return self.let(expr)
            case Apply(primitive=primitive, arguments=arguments) if is_whole(expr, self.definitions):
                return self.computed(expr, primitive, arguments)
        return _as_index(expr)

    def computed(self, expr: Expr, primitive: str, arguments: tuple[Expr, ...]) -> Expr:
        first, last = arguments[0], arguments[-1]
        if primitive not in _SUMS:
            numbers = self.numbers(expr)
            size = self.integers.size(expr) if numbers else None
            if size is not None:
                return size
            self.specialize(numbers or frozenset())
        if primitive in _ARITHMETIC or primitive in _BITS:
            return self.applied(primitive, *arguments)
        match primitive:
            case "id":
                return self.index(first)
            case "fma":
                return self.applied("add", apply("mul", first, arguments[1]), last)
            case "bit_not":
                return self.applied("sub", constant(-1, "int64"), first)
            case "relu":
                return self.applied("max", first, constant(0, "int64"))
            case "sat01" | "sign":
                least = self.applied("max", first, constant(-1 if primitive == "sign" else 0, "int64"))
                return Apply("min", (least, constant(1, INTEGER)), INTEGER)
            case "shift_left" if isinstance(last, Constant) and 0 <= last.value <= _LARGEST_SHIFT:
                return self.applied("mul", first, constant(2 ** int(last.value), INTEGER))
            case "shift_left":
                count = apply("min", self.integer(last), constant(_LARGEST_SHIFT, INTEGER))
                return Apply(primitive, (self.integer(first), count), INTEGER)
            case "where":
                chosen, other = map(self.integer, arguments[1:])
                return apply("where", self.condition(first), chosen, other, span=expr.span)
            case "pow":
                return apply("pow", *(cast(argument, "int64") for argument in arguments), span=expr.span)
        return _as_index(expr)

    def converted(self, operand: Expr, dtype: str) -> Expr:
        # What is written wraps around in the type that is written. All integers that are not out of range of the
        # largest axis keep their number in an int64.
        found = self.integer(operand)
        ends = np.iinfo(dtype)
        kept = isinstance(found, Cast) and np.can_cast(found.operand.dtype, dtype)
        if kept or dtype == "int64" or (is_affine_index(operand) and ends.bits >= 32):
            return self.index(operand)
        low = constant(int(ends.min), INTEGER)
        above = Apply("sub", (found, low), INTEGER)
        return Apply("add", (Apply("mod", (above, constant(2**ends.bits, INTEGER)), INTEGER), low), INTEGER)

    def applied(self, primitive: str, *arguments: Expr) -> Expr:
        divisor = arguments[-1]
        if primitive in ("floor_div", "mod") and isinstance(divisor, Constant) and divisor.value == 0:
            fact, hint = f"an index that is `{PRIMITIVES[primitive].operator}` by 0", "divide by a number that is not 0"
            if not self.integers.builder.may_not_run:
                raise DslSyntaxError.at(fact, divisor.span, hint)
            self.integers.builder.require(truth(False), f"{fact}\n{hint}", divisor.span)
            arguments = *arguments[:-1], integer(1)
        parts = tuple(map(self.index, arguments))
        if PRIMITIVES[primitive].index and all(map(is_affine_index, parts)):
            return apply(primitive, *parts)
        # Not simplified: the range of `p[i] + q[j] * 0` comes from q too.
        return Apply(primitive, tuple(map(_as_integer, parts)), INTEGER)

    def size(self, expr: Expr) -> Expr | None:
        """A run-time integer as a size, if it is one and can be that."""
        read = expr.operand if isinstance(expr, Cast) else expr
        numbers = self.numbers(read)
        if not numbers:
            return None
        size = self.integers.size(read)
        if size is None:
            self.specialize(numbers)
        return size

    def specialize(self, numbers: frozenset[str]) -> None:
        if self.specializes:
            self.integers.specialize(numbers)

    def numbers(self, expr: Expr) -> frozenset[str] | None:
        """The run-time integers of which ``expr`` is made, beside index variables, sizes and constants alone; ``None``
        if there is anything else in it.
        """
        found: set[str] = set()
        waiting = [(expr, self.definitions)]
        while waiting:
            node, definitions = waiting.pop()
            if isinstance(node, Local) and node.name in definitions:
                waiting.append((definitions[node.name].value.expr, dict(definitions[node.name].mentions)))
            elif isinstance(node, Read) and node.tensor in self.integers:
                found.add(node.tensor)
            elif isinstance(node, Apply | Cast | Constant | IndexValue | SizeValue):
                waiting.extend((part, definitions) for part in children(node))
            else:
                return None
        return frozenset(found)

    def integer(self, expr: Expr) -> Expr:
        return _as_integer(self.index(expr))

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
        inner = _Exact(mentions, self.integers, self.specializes, found=self.found)
        value = definition.value.expr
        truth = is_boolean(value.dtype)
        found = inner.condition(value) if truth else inner.index(value)
        if not truth and is_affine_index(found):
            return found, None
        if found == (value if truth else _as_index(value)) or isinstance(found, Cast):
            # A cell, or another value that is not arithmetic: the index and the value are the same number.
            return expr if truth else _as_index(expr), None
        if isinstance(found, Local):
            return found, mentions.get(found.name)
        name, *marks, serial = expr.name.split(GENERATED)
        local = Local(GENERATED.join((name.removesuffix(FACTOR), *marks, "index", serial)), found.dtype, expr.span)
        return local, Definition.of(Value(found, None, "bool" if truth else "int64"), mentions)

    def let(self, expr: Let) -> Expr:
        name = f"{expr.name}_index"
        value = self.integer(expr.value)
        bound = {**self.bound, expr.name: Local(name, INTEGER)}
        body = _Exact(self.definitions, self.integers, self.specializes, bound, self.found).index(expr.body)
        body = Let(name, value, body, expr.span)
        return Let(expr.name, expr.value, body, expr.span) if expr.name in locals_read(body) else body

    def condition(self, expr: Expr) -> Expr:
        # Comparisons of integers, exact as well.
        match expr:
            case Apply(primitive="and_" | "or_" | "not_" as primitive, arguments=arguments):
                return apply(primitive, *map(self.condition, arguments), span=expr.span)
            case Apply(primitive=primitive, arguments=arguments) if PRIMITIVES[primitive].kind == "compare":
                if is_boolean(arguments[0].dtype):
                    return apply(primitive, *map(self.condition, arguments), span=expr.span)
                whole = all(is_whole(argument, self.definitions) for argument in arguments)
                if whole and not is_affine_index(expr):
                    return apply(primitive, *map(self.integer, arguments), span=expr.span)
            case Local(name=name) if name in self.definitions:
                return self.defined(expr)
        return expr


def _as_integer(index: Expr) -> Expr:
    if isinstance(index, Constant):
        return constant(int(index.value), INTEGER, index.span)
    if isinstance(index, Cast) and is_integer(index.operand.dtype):
        index = index.operand  # a cell of a narrower type
    return cast(index, INTEGER)


def _as_index(expr: Expr) -> Expr:
    return cast(expr, INTEGER if expr.dtype == "uint64" else "int64")
