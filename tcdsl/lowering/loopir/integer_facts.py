"""What is known of the integers of a nest at one place of it: linear inequalities, and questions to isl about them.

::

    facts = IntegerFacts({"N": Interval(0, 2**48)})
    facts.enter(loop)                        # for k in 0 .. j
    facts.excludes([facts.difference(k, j)])    # k == j: no

Names are what they hold: sums of multiples of *unknowns*, which never change. A name that is set anew holds another
sum, and what is known of the unknowns stays. Values of int64 wrap around: where that is not excluded, a sum is a new
unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count

import islpy as isl

from tcdsl.ir.dtypes import INTEGER, is_integer
from tcdsl.ir.expressions import Apply, Cast, Constant, Expr, IndexValue, Local, SizeValue
from tcdsl.ir.primitives import PRIMITIVES
from tcdsl.lowering.loopir.intervals import Interval, interval_of_dtype
from tcdsl.lowering.loopir.loops import Accumulate, Branch, Check, Define, Loop, Node
from tcdsl.lowering.loopir.traversal import changed_names
from tcdsl.polyhedra.limits import TooMuchWork, limited

__all__ = ["IntegerFacts", "Sum", "places"]

Sum = Mapping[str, int]
"""A sum of multiples of unknowns; the multiple of ``""`` is the constant."""

_INT64 = interval_of_dtype("int64")


class IntegerFacts:
    """What names hold, and the sums that are known to be at least 0."""

    def __init__(self, sizes: Mapping[str, Interval]) -> None:
        self._numbers = count()
        # Of unknowns, which all copies share.
        self._ends: dict[str, Interval] = {}
        self._sizes = {name: self.unknown(ends) for name, ends in sizes.items()}
        self._held: dict[str, Sum] = {}
        self._known: list[Sum] = []

    def copy(self) -> IntegerFacts:
        """The same facts, to which others can be added."""
        made = object.__new__(IntegerFacts)
        made._numbers, made._ends, made._sizes = self._numbers, self._ends, self._sizes
        made._held, made._known = dict(self._held), list(self._known)
        return made

    # -- what names hold

    def unknown(self, ends: Interval = _INT64) -> Sum:
        """A new unknown, of which no more is known than its ``ends``."""
        name = f"x{next(self._numbers)}"
        self._ends[name] = ends
        return {name: 1}

    def forget(self, names: Iterable[str]) -> None:
        """Each of ``names`` may hold anything from here on."""
        for name in names:
            self._held.pop(name, None)

    def passes(self, node: Node) -> None:
        """``node``, which has no nodes inside, has run."""
        match node:
            case Define(name=name, value=value) if is_integer(value.dtype):
                self._held[name] = self.sum_of(value)
            case Define(name=name) | Accumulate(name=name):
                self.forget((name,))
            case Check(condition=condition):
                self.learn(condition)
            case _:
                pass

    def enter(self, loop: Loop) -> None:
        """Go inside of ``loop``, whose other rounds may have changed what it changes: that has to be forgotten."""
        start, stop = self.sum_of(loop.start), self.sum_of(loop.stop)
        held = self._held[loop.variable] = self.unknown()
        if loop.step > 0:
            self._known += [_sum(held, start, -1), _sum(_sum(stop, held, -1), {"": -1})]

    def sum_of(self, expr: Expr) -> Sum:
        """What the integer ``expr`` is."""
        exact = expr.dtype == INTEGER
        match expr:
            case Constant(value=value):
                return {"": int(value)}
            case SizeValue(name=name):
                if name not in self._sizes:
                    self._sizes[name] = self.unknown()
                return self._sizes[name]
            case IndexValue(name=name) | Local(name=name):
                if name not in self._held:
                    self._held[name] = self.unknown(_ends_of_type(expr))
                return self._held[name]
            case Cast(operand=operand) if exact or (expr.dtype == "int64" and is_integer(operand.dtype)):
                found = self.sum_of(operand)
                if exact or self._is_within_int64(found):
                    return found
            case Apply(primitive="add" | "sub" | "mul" | "neg") if exact or expr.dtype == "int64":
                made = self._arithmetic(expr)
                if made is not None and (exact or self._is_within_int64(made)):
                    return made
        return self.unknown(_ends_of_type(expr))

    def _arithmetic(self, expr: Apply) -> Sum | None:
        parts = [self.sum_of(part) for part in expr.arguments]
        first, last = parts[0], parts[-1]
        match expr.primitive:
            case "add":
                return _sum(first, last)
            case "sub":
                return _sum(first, last, -1)
            case "neg":
                return _sum({}, first, -1)
        for one, other in ((first, last), (last, first)):
            if set(one) <= {""}:
                return _sum({}, other, one.get("", 0))
        return None

    def _is_within_int64(self, found: Sum) -> bool:
        low = high = found.get("", 0)
        for name, scale in found.items():
            if name:
                ends = [scale * end for end in self._ends[name]]
                low, high = low + min(ends), high + max(ends)
        if _INT64.low <= low and high <= _INT64.high:
            return True
        return self.implies(_sum(found, {"": -_INT64.low})) and self.implies(_sum({"": _INT64.high}, found, -1))

    # -- what is known

    def learn(self, condition: Expr, holds: bool = True) -> None:
        """``condition`` holds, or does not."""
        self._known += self.consequences(condition, holds)

    def consequences(self, condition: Expr, holds: bool = True) -> list[Sum]:
        """Sums that are at least 0 if ``condition`` holds, or if it does not."""
        match condition:
            case Apply(primitive="not_", arguments=(operand,)):
                return self.consequences(operand, not holds)
            case Apply(primitive="and_" | "or_" as primitive, arguments=arguments) if holds == (primitive == "and_"):
                return [each for part in arguments for each in self.consequences(part, holds)]
            case Apply(primitive=primitive, arguments=(left, right)) if PRIMITIVES[primitive].kind == "compare":
                if not all(is_integer(part.dtype) for part in (left, right)):
                    return []
                more = _sum(self.sum_of(left), self.sum_of(right), -1)
                return _compared(primitive if holds else _OPPOSITES[primitive], more)
        return []

    def difference(self, left: Expr, right: Expr) -> Sum:
        """``left - right``."""
        return _sum(self.sum_of(left), self.sum_of(right), -1)

    def implies(self, found: Sum) -> bool:
        """Whether ``found`` is at least 0."""
        return self._are_contradictory([_sum({"": -1}, found, -1)])

    def excludes(self, zeros: Sequence[Sum]) -> bool:
        """Whether not all of ``zeros`` are 0."""
        if any(set(zero) == {""} for zero in zeros):
            return True
        return self._are_contradictory([side for zero in zeros for side in (zero, _sum({}, zero, -1))])

    def _are_contradictory(self, sums: Sequence[Sum]) -> bool:
        # Beside what is known: of that what they have to do with.
        names = {name for each in sums for name in each if name}
        left, used = list(self._known), list(sums)
        while True:
            near = [each for each in left if not names.isdisjoint(each)]
            if not near:
                break
            used += near
            left = [each for each in left if names.isdisjoint(each)]
            names.update(name for each in near for name in each if name)
        for name in names:
            used += [{name: 1, "": -self._ends[name].low}, {name: -1, "": self._ends[name].high}]
        inequalities = " and ".join(dict.fromkeys(f"{_text(each)} >= 0" for each in used))
        try:
            with limited():
                return bool(isl.BasicSet(f"{{ [{', '.join(sorted(names))}] : {inequalities} }}").is_empty())
        except TooMuchWork:
            return False


def places(nodes: Iterable[Node], facts: IntegerFacts) -> Iterator[tuple[Node, tuple[IntegerFacts, ...]]]:
    """Each of ``nodes`` with what is known inside of its bodies, one after the other.

    Until the next one is asked for, ``facts`` are what is known before it.
    """
    for node in nodes:
        match node:
            case Loop():
                # The rounds before have run.
                facts.forget(changed_names((node,)))
                inside = facts.copy()
                inside.enter(node)
                if node.condition is not None:
                    inside.learn(node.condition)
                yield node, (inside,)
            case Branch(condition=condition):
                bodies = facts.copy(), facts.copy()
                bodies[0].learn(condition)
                bodies[1].learn(condition, False)
                yield node, bodies
                facts.forget(changed_names((node,)))
            case _:
                yield node, ()
                facts.passes(node)


_OPPOSITES = {"lt": "ge", "ge": "lt", "le": "gt", "gt": "le", "eq": "ne", "ne": "eq"}


def _compared(primitive: str, more: Sum) -> list[Sum]:
    less = _sum({}, more, -1)
    match primitive:
        case "ge":
            return [more]
        case "gt":
            return [_sum(more, {"": -1})]
        case "le":
            return [less]
        case "lt":
            return [_sum(less, {"": -1})]
        case "eq":
            return [more, less]
    return []


def _sum(first: Sum, other: Sum, scale: int = 1) -> Sum:
    found = dict(first)
    for name, factor in other.items():
        found[name] = found.get(name, 0) + scale * factor
    return {name: factor for name, factor in found.items() if factor}


def _text(each: Sum) -> str:
    return " + ".join(f"{factor}{name}" for name, factor in each.items()) or "0"


def _ends_of_type(expr: Expr) -> Interval:
    # A position that is exact may be anything, until it is checked.
    return interval_of_dtype(expr.dtype) if expr.dtype != INTEGER else Interval(-(2**512), 2**512)
