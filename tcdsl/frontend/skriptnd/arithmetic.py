"""Operators and functions of single values: of Python's where all are known, else expressions of the program.

Integer division goes down where sizes are computed, and towards zero on what only a call knows, as in the language's
own implementation; a rest of reals is that of C.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

from tcdsl.errors import DslSyntaxError, DtypeError, ShapeError
from tcdsl.frontend.skriptnd.values import (
    CONCRETE,
    MEMBERS,
    GuardedIndex,
    ScalarValue,
    TensorValue,
    Unknown,
    article,
    bound_of,
    is_size,
    most_of,
    shown,
    type_of,
)
from tcdsl.frontend.symbols.values import applied
from tcdsl.frontend.words.c_arithmetic import ceiling_division, fmod, integer_division, integer_rest, round_away
from tcdsl.frontend.words.shared_parts import shared
from tcdsl.ir.build import apply, cast, constant, integer
from tcdsl.ir.dtypes import INTEGER
from tcdsl.ir.expressions import (
    Apply,
    Cast,
    Constant,
    Expr,
    IndexValue,
    Let,
    Local,
    Read,
    is_affine_index,
    map_children,
    size_names,
    substitute,
    walk,
)
from tcdsl.ir.sizes.size_binding import evaluate_size
from tcdsl.span import Span

__all__ = ["COMPARISONS", "FUNCTIONS", "LOGICAL", "Arithmetic", "StandIns"]

COMPARISONS = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}
MOST_COMPUTED, _LONG = 500_000, 100
LOGICAL = ("&&", "||", "^", "=>")
_ACCUMULATED = {"&=": ("bool",), "|=": ("bool",)} | dict.fromkeys(("+=", "*=", "<?=", ">?="), MEMBERS["num"])
_PRIMITIVES = {"+": "add", "-": "sub", "*": "mul", "<?": "min", ">?": "max"}


def _away(value: float) -> float:
    # Halves go away from zero.
    return math.copysign(math.floor(abs(value) + 0.5), value) if math.isfinite(value) else value


_PLAIN = (
    *("sqrt", "exp", "log", "log2", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh"),
    *("asinh", "acosh", "atanh", "erf", "floor", "ceil"),
)
#: Functions of reals: what Python computes, and the primitive.
FUNCTIONS: Mapping[str, tuple[Callable[[float], float], str]] = {
    **{name: (getattr(math, name), name) for name in _PLAIN},
    "round": (_away, ""),
    "frac": (lambda value: value - math.floor(value), ""),
    "abs": (abs, "abs"),
    "sign": (lambda value: type(value)((value > 0) - (value < 0)), "sign"),
}
_OF_INTEGERS = ("abs", "sign")


@dataclass(slots=True)
class StandIns:
    """What decides about sizes while a graph is composed: ``sizes`` are the largest that there may be, by name.

    ``guesses`` counts the answers, which only a call knows. That of a call does not guess (`bodies.py`).
    """

    sizes: dict[str, int] = field(default_factory=dict)
    guesses: int = 0

    def decide(self, operator: str, left: Expr, right: Expr) -> bool:
        """How two sizes compare at most."""
        return bool(_COMPARE[operator](self.value(left), self.value(right)))

    def value(self, size: Expr) -> int:
        """What a size is at most."""
        self.guesses += 1
        return evaluate_size(size, self.sizes)


@dataclass(slots=True)
class Arithmetic:
    """``Arithmetic("float32", "int32", decisions)``: the types of reals and integers, and what knows sizes."""

    real: str
    integer: str
    decisions: StandIns
    #: The names of sizes that are numbers of rounds: each round has its own.
    rounds: set[str] = field(default_factory=set)
    #: Whether extents that only data says are compared as data, not as what they are at most.
    compares_data: bool = False
    #: How many items of long packs were computed.
    _items: int = 0
    #: What type parameters are, by name, where an operator is looked at that nothing calls.
    bases: Mapping[str, str] = field(default_factory=dict)
    _divided: ClassVar[Mapping[str, Callable[[Expr, Expr], Expr]]] = {
        "/": integer_division,
        "\\": ceiling_division,
        "%": integer_rest,
    }

    def dtype(self, kind: str) -> str:
        """The element type of ``kind``."""
        return {"real": self.real, "int": self.integer}.get(kind, kind)

    def data(self, value: Any, span: Span | None = None) -> Expr:
        """A value as an expression of the type that arrays of its kind have."""
        if isinstance(value, ScalarValue):
            return cast(value.expr, self.integer, span) if value.exact else value.expr
        if isinstance(value, str):
            raise DtypeError.at("a text in a formula", span, "texts are compared while a graph is composed")
        self.require_fitting((value,), span)
        return constant(value, self.dtype(type_of(value)), span)

    def require_fitting(self, values: Iterable[Any], span: Span | None) -> None:
        """Raise if an integer is none of those that the arrays of the call have."""
        for value in values:
            if type(value) is int and not -self._end <= value < self._end:
                hint = "integers are int64 where an array of the call is"
                raise DtypeError.at(f"{value} does not fit in {self.integer}", span, hint)

    @property
    def _end(self) -> int:
        return 1 << (31 if self.integer == "int32" else 63)

    def index(self, value: Any, span: Span | None = None) -> Expr:
        """An integer as the index of a cell: what is affine is exact, what is not is data."""
        if isinstance(value, int):
            return integer(value)
        expr: Expr = value.expr
        if value.exact and is_affine_index(expr):
            return expr
        return cast(expr, INTEGER, span) if expr.dtype != INTEGER else expr

    def is_size(self, value: Any) -> bool:
        """Whether ``value`` is an integer that a call knows, and no point of a formula or number of a round."""
        return is_size(value) and not (
            isinstance(value, ScalarValue) and self.rounds.intersection(size_names(value.expr))
        )

    def size(self, value: Any) -> Expr:
        """A size as an expression; of one that only data says, the most that it may be."""
        value = most_of(value)
        return integer(value) if isinstance(value, int) else value.expr

    def size_of_call(self, value: Any) -> Expr:
        """A size as an expression; of one that data says, the cell that holds it."""
        return value.expr if isinstance(value, ScalarValue) else self.size(value)

    def exact(self, size: Expr) -> Any:
        """An expression of sizes as a value: an int, if it is a number."""
        return int(size.value) if isinstance(size, Constant) else ScalarValue(size, "int", True)

    def count_items(self, number: int, span: Span | None) -> None:
        """Count the items of a pack that is computed; there is an end to those of long ones."""
        if number > _LONG:
            self._items += number
            if self._items > MOST_COMPUTED:
                raise ShapeError.at(f"more than {MOST_COMPUTED} items of packs are computed", span)

    def refutes(self, operator: str, left: Any, right: Any, span: Span | None) -> bool:
        """Whether ``left operator right`` is false in every call."""
        guesses = self.decisions.guesses
        return not self.binary(operator, left, right, span) and guesses == self.decisions.guesses

    def unary(self, operator: str, value: Any, span: Span | None) -> Any:
        """``-a``, ``+a``, ``!a``."""
        kind = type_of(value)
        if operator == "!":
            self._require(kind, ("bool",), operator, span, value)
            return self._not(value)
        self._require(kind, ("int", "real"), operator, span, value)
        if operator == "+" or isinstance(value, Unknown):
            return value
        if not isinstance(value, ScalarValue):
            return -value
        return ScalarValue(applied("neg", (value.expr,), span), kind, value.exact)

    def _not(self, value: Any) -> Any:
        if isinstance(value, ScalarValue):
            return ScalarValue(apply("not_", value.expr), "bool")
        return Unknown("bool", False) if isinstance(value, Unknown) else not value

    def binary(self, operator: str, left: Any, right: Any, span: Span | None) -> Any:
        """``a + b`` of two values of one type."""
        if type(left) is type(right) and type(left) in (int, float) and operator not in LOGICAL:
            return _COMPARE[operator](left, right) if operator in COMPARISONS else _known(operator, left, right, span)
        kind, unknown = self._common(operator, left, right, span)
        if operator in COMPARISONS:
            if operator not in ("==", "!=") and kind == "bool":
                raise DtypeError.at(f"`{operator}` does not compare values of type {kind}", span)
            return Unknown("bool", False) if unknown else self._compared(operator, left, right, span)
        if operator in LOGICAL:
            self._require(kind, ("bool",), operator, span, left)
            return Unknown("bool", False) if unknown else self._logical(operator, left, right)
        self._require(kind, ("int", "real"), operator, span, left)
        if unknown:
            return Unknown(kind, False)
        if not isinstance(left, ScalarValue) and not isinstance(right, ScalarValue):
            return _known(operator, left, right, span)
        if kind == "int" and self._are_exact(left, right):
            return self._exact(operator, left, right, span)
        found = self._on_data(operator, left, right, kind, span)
        if self.is_size(left) and self.is_size(right) and kind == "int":
            # What is subtracted may be 0, and a rest is below the divisor.
            first, second = most_of(left), most_of(right)
            if operator == "-" and not isinstance(right, int):
                return replace(found, bound=first)
            return replace(found, bound=second if operator == "%" else self.binary(operator, first, second, span))
        return found

    def _common(self, operator: str, left: Any, right: Any, span: Span | None) -> tuple[str, bool]:
        # The type of both, and whether one is not known more closely.
        kind, other = type_of(left), type_of(right)
        unknown = isinstance(left, Unknown) or isinstance(right, Unknown)
        if unknown:  # what is open fits
            kind, other = kind or other, other or kind
        data = isinstance(left, ScalarValue) and isinstance(right, ScalarValue)
        if kind != other and not (data and operator in COMPARISONS):
            hint = "`real(x)` and `int(x)` convert" if {kind, other} <= {"int", "real", "bool"} else ""
            if {kind, other} == {"int", "real"} and not isinstance(left, ScalarValue) | isinstance(right, ScalarValue):
                hint = "a real has a point: `1.0`"
            raise DtypeError.at(f"`{operator}` of {article(kind)} and {article(other)}", span, hint)
        return kind, unknown

    def _require(
        self, kind: str, wanted: tuple[str, ...], what: str, span: Span | None, value: Any, hint: str = ""
    ) -> None:
        # What is open fits; a type parameter does if all types do that it may be.
        if kind in self.bases:
            members = MEMBERS[self.bases[kind]]
            fits, hint = {*members} <= {*wanted}, f"`{kind}` may be {', '.join(members)}"
        else:
            fits = kind in wanted or (kind not in CONCRETE and isinstance(value, Unknown))
        if not fits:
            raise DtypeError.at(f"`{what}` takes {' or '.join(wanted)}, not {kind or 'null'}", span, hint)

    def require_accumulated(self, operator: str, value: Any, span: Span | None) -> None:
        """Raise if values of the type of ``value`` are not accumulated by ``+=`` and the like."""
        if operator in _ACCUMULATED:
            self._require(type_of(value), _ACCUMULATED[operator], operator, span, value)

    def _are_exact(self, *values: Any) -> bool:
        return all(not isinstance(each, ScalarValue) or each.exact for each in values)

    def _compared(self, operator: str, left: Any, right: Any, span: Span | None) -> Any:
        if not isinstance(left, ScalarValue) and not isinstance(right, ScalarValue):
            return _COMPARE[operator](left, right)
        if self.is_size(left) and self.is_size(right):
            if bound_of(left) is None and bound_of(right) is None:
                return self.decisions.decide(operator, self.size(left), self.size(right))
            # Only the call tells; the same expression is the same number.
            if self.size_of_call(left) == self.size_of_call(right):
                return operator in ("==", "<=", ">=")
            if not self.compares_data:
                self.decisions.guesses += 1
                return self._compared(operator, most_of(left), most_of(right), span)
        exact = type_of(left) == "int" and self._are_exact(left, right)
        pair = (self.size(left), self.size(right)) if exact else (self.data(left, span), self.data(right, span))
        if type_of(left) != type_of(right):  # cells of several types are compared as the widest of them
            widest = max(type_of(left), type_of(right), key=("bool", "int", "real").index)
            pair = (cast(pair[0], self.dtype(widest), span), cast(pair[1], self.dtype(widest), span))
        return ScalarValue(applied(COMPARISONS[operator], pair, span), "bool")

    def _logical(self, operator: str, left: Any, right: Any) -> Any:
        if not isinstance(left, ScalarValue) and not isinstance(right, ScalarValue):
            return _LOGIC[operator](left, right)
        for known, other in ((left, right), (right, left)):
            if isinstance(known, bool):  # it decides where it can
                pairs = (((known, each) if known is left else (each, known)) for each in (False, True))
                of_false, of_true = (_LOGIC[operator](*pair) for pair in pairs)
                return of_true if of_true == of_false else other if of_true else self._not(other)
        if operator == "=>":
            left, operator = self._not(left), "||"
        primitive = {"&&": "and_", "||": "or_", "^": "ne"}[operator]
        return ScalarValue(apply(primitive, left.expr, right.expr), "bool")

    def _exact(self, operator: str, left: Any, right: Any, span: Span | None) -> Any:
        a, b = self.size(left), self.size(right)
        if operator in _PRIMITIVES:
            return self.exact(applied(_PRIMITIVES[operator], (a, b), span))
        if operator in ("/", "\\", "%"):
            if b == integer(0):
                raise DslSyntaxError.at(f"`{operator}` by 0", span)
            if operator == "\\" and isinstance(b, Constant) and b.value > 0:
                a = applied("add", (a, integer(int(b.value) - 1)), span)
            elif operator == "\\":
                return self.unary("-", self._exact("/", self.unary("-", left, span), right, span), span)
            return self.exact(applied("mod" if operator == "%" else "floor_div", (a, b), span))
        if isinstance(right, int) and 0 <= right < 64:
            power: Any = 1
            for _ in range(right):
                power = self.binary("*", power, left, span)
            return power
        return self._on_data(operator, left, right, "int", span)

    def _on_data(self, operator: str, left: Any, right: Any, kind: str, span: Span | None) -> ScalarValue:
        a, b = self.data(left, span), self.data(right, span)
        if operator in _PRIMITIVES:
            return ScalarValue(applied(_PRIMITIVES[operator], (a, b), span), kind)
        if operator == "**":
            return ScalarValue(applied("pow", (a, b), span), kind)
        if kind == "real":
            if operator == "%":
                return ScalarValue(fmod(a, b), kind)
            quotient = applied("div", (a, b), span)
            return ScalarValue(quotient if operator == "/" else applied("ceil", (quotient,), span), kind)
        return ScalarValue(shared(a, lambda a: shared(b, partial(self._divided[operator], a))), kind)

    def called(self, name: str, value: Any, span: Span | None) -> Any:
        """A built-in function."""
        kind = type_of(value)
        wanted = ("int", "real") if name in _OF_INTEGERS else ("real",)
        self._require(kind, wanted, name, span, value, f"write `{name}(real(x))`" if kind == "int" else "")
        if isinstance(value, Unknown):
            return Unknown(kind or ("real" if len(wanted) == 1 else ""), False)
        if not isinstance(value, ScalarValue):
            try:
                found = FUNCTIONS[name][0](value)
            except (ValueError, OverflowError):
                raise DslSyntaxError.at(f"`{name}({shown(value)})` has no value", span) from None
            return float(found) if kind == "real" else int(found)
        operand = value.expr
        if FUNCTIONS[name][1]:
            made = applied(FUNCTIONS[name][1], (operand,), span)
            return ScalarValue(made, kind, value.exact and is_affine_index(operand))
        if name == "frac":
            return ScalarValue(shared(operand, lambda a: apply("sub", a, apply("floor", a))), kind)
        return ScalarValue(shared(operand, round_away), kind)

    def converted(self, kind: str, value: Any, span: Span | None) -> Any:
        """``real(a)``, ``int(a)``, ``bool(a)``."""
        given = type_of(value)
        if kind == given:
            return value
        if kind not in CONCRETE or isinstance(value, Unknown):
            if given == "str":
                raise DtypeError.at(f"a str does not become {article(kind)}", span)
            return Unknown(kind, False)
        if given not in ("int", "real", "bool") or kind not in ("int", "real", "bool"):
            raise DtypeError.at(f"{article(given)} does not become {article(kind)}", span)
        if isinstance(value, TensorValue):
            hint = "what is known before the call is made of attributes and constants"
            raise DtypeError.at(f"only the call knows the number that `{value.name}` holds", span, hint)
        if not isinstance(value, ScalarValue):
            if kind == "int" and math.isnan(value):
                raise DtypeError.at("NaN does not become an int", span)
            if kind == "int" and math.isinf(value):  # an end of the type that integers have
                return (self._end - 1) if value > 0 else -self._end
            return {"int": int, "real": float, "bool": bool}[kind](value)
        operand = self.data(value)
        names, points = size_names(operand), any(isinstance(part, IndexValue | Read) for part in walk(operand))
        if (kind, given) == ("int", "real") and names and not points and not self.rounds.intersection(names):
            # As in `int(1.5 * real(n))`, which may be an extent: the call says the number.
            return self.decisions.value(Cast(_without_locals(operand), INTEGER))
        if kind == "bool":
            return ScalarValue(applied("ne", (operand, constant(0, operand.dtype)), span), "bool")
        return ScalarValue(cast(operand, self.dtype(kind), span), kind)

    def selected(self, condition: bool | ScalarValue, chosen: Any, other: Any, span: Span | None) -> Any:
        """``c ? a : b`` of single values, also where only a call knows the condition."""
        if isinstance(condition, bool):
            return chosen if condition else other
        if isinstance(chosen, GuardedIndex) or isinstance(other, GuardedIndex):
            raise DslSyntaxError.at("a guarded index in a choice by data", span, "guard the whole index")
        kind = type_of(chosen)
        if kind != type_of(other):
            raise DtypeError.at(f"`?:` of {article(kind)} and {article(type_of(other))}", span, "both have one type")
        exact = kind == "int" and self._are_exact(chosen, other)
        pair = [self.size(each) if exact else self.data(each, span) for each in (chosen, other)]
        return ScalarValue(Apply("where", (condition.expr, *pair), pair[0].dtype, span), kind, exact)


def _without_locals(value: Expr) -> Expr:
    if isinstance(value, Let):
        return _without_locals(substitute(value.body, {Local(value.name, value.value.dtype): value.value}))
    return map_children(value, _without_locals)


_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    text: getattr(operator, name) for text, name in COMPARISONS.items()
}
_LOGIC: Mapping[str, Callable[[bool, bool], bool]] = {
    "&&": operator.and_,
    "||": operator.or_,
    "^": operator.ne,
    "=>": operator.le,
}


def _known(operator: str, left: Any, right: Any, span: Span | None) -> Any:
    with suppress(ZeroDivisionError, OverflowError, ValueError):
        found = _NUMBER[operator](left, right)
        if not isinstance(found, int) or -(2**63) <= found < 2**63:
            return found
    raise DslSyntaxError.at(f"`{shown(left)} {operator} {shown(right)}` has no value", span)


def _quotient(left: Any, right: Any) -> Any:
    if isinstance(left, int):
        return left // right
    if right != 0.0:
        return left / right
    if left == 0.0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left * math.copysign(1.0, right))


def _power(left: Any, right: Any) -> Any:
    if isinstance(left, float):
        return math.pow(left, right)
    if right < 0 or (abs(left) > 1 and right > 63):
        raise ValueError
    return left**right


_NUMBER: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _quotient,
    "\\": lambda left, right: -(-left // right) if isinstance(left, int) else float(math.ceil(left / right)),
    "%": lambda left, right: left % right if isinstance(left, int) else math.fmod(left, right),
    "**": _power,
    "<?": min,
    ">?": max,
}
