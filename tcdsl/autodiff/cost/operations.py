"""What counts as an operation, and how much.

Source: Bernstein, Mara, Li, Maclaurin, Ragan-Kelley, "Differentiating a Tensor Language" (2020), section 4.3, which
counts additions, multiplications and calls of functions on scalars. It counts the derivative of a function as one call
too; here derivatives are written out, so that a function weighs a third of what its derivative takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from tcdsl.ir.dtypes import is_floating
from tcdsl.ir.expressions import Apply, Constant, Expr, Local, walk
from tcdsl.ir.primitives import PRIMITIVES
from tcdsl.ir.text.rule_parser import parse_rule

__all__ = ["OperationCount", "operations_of", "weight"]

_FREE = frozenset(("id", "neg", "fst", "snd", "stop_gradient", "where", "and_", "or_", "not_"))
_OWN: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "add": ("add",),
        "sub": ("add",),
        "mul": ("mul",),
        "square": ("mul",),
        "fma": ("mul", "add"),
        "div": ("div",),
        "recip": ("div",),
    }
)


@dataclass(frozen=True, slots=True)
class OperationCount:
    """How many operations on numbers a program executes: ``OperationCount(additions=9, multiplications=10, ...)``.

    ``calls`` gives the number of calls by function, sorted by name.
    """

    additions: int
    multiplications: int
    divisions: int
    calls: tuple[tuple[str, int], ...]

    @staticmethod
    def of(counts: Mapping[str, int]) -> OperationCount:
        """From the number of times that each operation of `operations_of` is executed."""
        functions = sorted(name for name, count in counts.items() if count and name not in ("add", "mul", "div"))
        calls = tuple((name, counts[name]) for name in functions)
        return OperationCount(counts.get("add", 0), counts.get("mul", 0), counts.get("div", 0), calls)

    @property
    def plain(self) -> int:
        """All operations, each as one."""
        return self.additions + self.multiplications + self.divisions + sum(count for _, count in self.calls)

    @property
    def weighted(self) -> float:
        """All operations, each by its `weight`: what the bounds on derivatives speak of."""
        weighed = sum(count * weight(name) for name, count in self.calls)
        return self.additions + self.multiplications + self.divisions * weight("div") + weighed


def operations_of(expr: Apply) -> tuple[str, ...]:
    """The operations that applying a primitive to its arguments takes: ``("mul", "add")`` for fma.

    Only results of floating types count: arithmetic on integers is arithmetic on indices. Comparisons and logic make
    predicates, and ``where`` chooses: they are free, as are conversions and changes of sign. A constant integral
    power as many multiplications as repeated squaring needs (and a division if it is negative). Every
    other function is a call.
    """
    if not is_floating(expr.dtype) or expr.primitive in _FREE:
        return ()
    own = _OWN.get(expr.primitive)
    if own is not None:
        return own
    if expr.primitive == "pow" and isinstance(expr.arguments[1], Constant):
        exponent = expr.arguments[1].value
        if exponent == int(exponent):
            whole = abs(int(exponent))
            squarings = max(0, whole.bit_length() - 1 + whole.bit_count() - 1)
            return ("mul",) * squarings + ("div",) * (exponent < 0)
    return (expr.primitive,)


def weight(operation: str) -> float:
    """What one operation counts: ``weight("add")`` is 1, ``weight("gelu")`` about 4.

    A third of the operations in its rows of derivatives, at least 1: those rows, evaluated once each with what occurs
    twice shared, and the additions that join the shares of several arguments. Calls in the rows have weights
    themselves. So the derivative of a call never costs more than three times the call.
    """
    return _weights()[operation]


@lru_cache(maxsize=1)
def _weights() -> Mapping[str, float]:
    # Rows mention other functions, and in circles (sin and cos): the least solution is approached from below.
    rows = {name: _derivative_operations(name) for name, row in PRIMITIVES.items() if row.derivatives is not None}
    found = dict.fromkeys(PRIMITIVES, 1.0)
    while True:
        new = {name: max(1.0, sum(found[each] for each in row) / 3) for name, row in rows.items()}
        if all(abs(new[name] - found[name]) < 1e-12 for name in rows):
            return MappingProxyType(found)
        found |= new


def _derivative_operations(name: str) -> list[str]:
    row = PRIMITIVES[name]
    assert row.derivatives is not None
    names = ("a", "b", "c")[: row.arity]
    leaves: dict[str, Expr] = {each: Local(each, "float64") for each in (*names, "g", "y")}
    if row.kind == "select":
        leaves["a"] = Local("a", "bool")
    steps: dict[Apply, None] = {}
    joined = 0
    for text in row.derivatives:
        if text == "0":
            continue
        joined += 1
        for node in walk(parse_rule(text, leaves)):
            if isinstance(node, Apply):
                steps[node] = None
    operations = [operation for node in steps for operation in operations_of(node)]
    return operations + ["add"] * (joined - 1)
