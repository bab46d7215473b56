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

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count

import islpy as isl

from tcdsl.ir.dtypes import INTEGER, is_integer
from tcdsl.ir.expressions import Apply, Cast, Constant, Expr, IndexValue, Local, Read, SizeValue
from tcdsl.ir.primitives import PRIMITIVES
from tcdsl.lowering.loopir.intervals import Interval, interval_of_dtype
from tcdsl.lowering.loopir.loops import Accumulate, Branch, Check, Define, Loop, Node, Store
from tcdsl.lowering.loopir.traversal import buffers_written, changed_names
from tcdsl.polyhedra.limits import TooMuchWork, limited
from tcdsl.recent import Recent

__all__ = ["IMPOSSIBLE", "IntegerFacts", "Sum", "added", "places"]

Sum = Mapping[str, int]
"""A sum of multiples of unknowns; the multiple of ``""`` is the constant."""

IMPOSSIBLE: Sum = {"": -1}
"""What is at least 0 nowhere."""

_INT64 = interval_of_dtype("int64")
_SET = isl.dim_type.set
_MOST_EXAMPLES = 16


class IntegerFacts:
    """What names hold, and the sums that are known to be at least 0."""

    def __init__(self, sizes: Mapping[str, Interval]) -> None:
        self._numbers = count()
        # Of unknowns, which all copies share.
        self._ends: dict[str, Interval] = {}
        self._divisors = {1: None}
        # Of unknowns that are the largest of some sums.
        self._maxima: dict[str, tuple[Sum, ...]] = {}
        # Values of some of them that isl has found: where they fit, a question needs no other answer.
        self._examples: deque[Mapping[str, int]] = deque(maxlen=_MOST_EXAMPLES)
        self._sizes = {name: self.unknown(ends) for name, ends in sizes.items()}
        self._held: dict[str, Sum] = {}
        self._known: list[Sum] = []
        # Of truth values what follows where they hold, and where they do not.
        self._truths: dict[str, tuple[list[Sum], list[Sum]]] = {}

    def copy(self) -> IntegerFacts:
        """The same facts, to which others can be added."""
        made = object.__new__(IntegerFacts)
        made._numbers, made._ends, made._sizes = self._numbers, self._ends, self._sizes
        made._divisors, made._maxima, made._examples = self._divisors, self._maxima, self._examples
        made._held, made._known, made._truths = dict(self._held), list(self._known), dict(self._truths)
        return made

    # -- what names hold

    def unknown(self, ends: Interval = _INT64) -> Sum:
        """A new unknown, of which no more is known than its ``ends``."""
        name = f"x{next(self._numbers)}"
        self._ends[name] = ends
        return {name: 1}

    def mark(self) -> int:
        """A moment, for `is_before`."""
        return next(self._numbers)

    def is_before(self, unknown: str, mark: int) -> bool:
        """Whether ``unknown`` was made before ``mark``; the constant always was."""
        return not unknown or int(unknown[1:]) < mark

    def forget(self, names: Iterable[str]) -> None:
        """Each of ``names`` may hold anything from here on."""
        for name in names:
            self._held.pop(name, None)
            self._truths.pop(name, None)

    def held(self, name: str) -> Sum | None:
        """What the integer ``name`` holds, if it has been set."""
        return self._held.get(name)

    def hold(self, name: str, found: Sum) -> None:
        """The integer ``name`` holds ``found``."""
        self._held[name] = found

    def follows(self, name: str) -> tuple[list[Sum], list[Sum]]:
        """Sums that are at least 0 where the truth value ``name`` holds, and where it does not."""
        return self._truths.get(name, ([], []))

    def hold_truth(self, name: str, holds: list[Sum], fails: list[Sum]) -> None:
        """The truth value ``name`` is set; `follows` says what these are."""
        self._truths[name] = holds, fails

    def passes(self, node: Node) -> None:
        """``node``, which has no nodes inside, has run."""
        match node:
            case Define(name=name, value=value) if is_integer(value.dtype):
                self._held[name] = self.sum_of(value)
            case Define(name=name, value=value) if value.dtype == "bool":
                self._truths[name] = self.consequences(value), self.consequences(value, False)
            case Define(name=name) | Accumulate(name=name):
                self.forget((name,))
            case Check(condition=condition):
                self.learn(condition)
            case Store(buffer=buffer, indices=(), value=value) if value.dtype == "int64":
                self._held[buffer] = self.sum_of(value)
            case Store(buffer=buffer):
                self.forget((buffer,))
            case _:
                self.forget(buffers_written((node,)))

    def enter(self, loop: Loop) -> None:
        """Go inside of ``loop``, whose other rounds may have changed what it changes: that has to be forgotten."""
        start, stop = self.sum_of(loop.start), self.sum_of(loop.stop)
        held = self._held[loop.variable] = self.unknown()
        if loop.step > 0:
            self._known += [added(held, start, -1), added(added(self._stop(stop, start), held, -1), {"": -1})]

    def _stop(self, stop: Sum, start: Sum) -> Sum:
        # Where a loop from ``start`` runs at all, it runs to those of several ends that are behind that.
        match list(stop.items()):
            case [(name, 1)] if name in self._maxima:
                behind = [each for each in self._maxima[name] if not self.implies(added(start, each, -1))]
                return behind[0] if len(behind) == 1 else stop
        return stop

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
            case Read(tensor=tensor, indices=()) if expr.dtype == "int64" and tensor in self._held:
                return self._held[tensor]
            case Cast(operand=operand) if exact or (expr.dtype == "int64" and is_integer(operand.dtype)):
                found = self.sum_of(operand)
                if exact or self.is_within_int64(found):
                    return found
            case Apply(primitive="add" | "sub" | "mul" | "neg") if exact or expr.dtype == "int64":
                made = self._arithmetic(expr)
                if made is not None and (exact or self.is_within_int64(made)):
                    return made
            case Apply(primitive="min" | "max" as primitive, arguments=arguments) if exact or expr.dtype == "int64":
                less, parts = primitive == "min", [self.sum_of(part) for part in arguments]
                choice = min if less else max
                least, most = (choice(self._end(part, side) for part in parts) for side in (0, 1))
                found = self.unknown(Interval(least, most))
                self._known += [added(part if less else found, found if less else part, -1) for part in parts]
                if not less:
                    self._maxima[next(iter(found))] = tuple(parts)
                return found
            case Apply(arguments=(operand, Constant())) if (exact or expr.dtype == "int64") and (
                divisor := _divisor(expr)
            ):
                quotient, whole = self.unknown(_ends_of_type(expr)), self.sum_of(operand)
                rest = added(whole, quotient, -divisor)
                self._divisors[divisor] = None
                self._known += [rest, added({"": divisor - 1}, rest, -1)]
                return quotient
        return self.unknown(_ends_of_type(expr))

    def _arithmetic(self, expr: Apply) -> Sum | None:
        parts = [self.sum_of(part) for part in expr.arguments]
        first, last = parts[0], parts[-1]
        match expr.primitive:
            case "add":
                return added(first, last)
            case "sub":
                return added(first, last, -1)
            case "neg":
                return added({}, first, -1)
        for one, other in ((first, last), (last, first)):
            if set(one) <= {""}:
                return added({}, other, one.get("", 0))
        return None

    def is_within_int64(self, found: Sum) -> bool:
        """Whether an int64 is sure to hold ``found``."""
        return self.implies(added(found, {"": -_INT64.low})) and self.implies(added({"": _INT64.high}, found, -1))

    # -- what is known

    def learn(self, condition: Expr, holds: bool = True) -> None:
        """``condition`` holds, or does not."""
        self.assume(self.consequences(condition, holds))

    def assume(self, sums: Iterable[Sum]) -> None:
        """Each of ``sums`` is at least 0."""
        self._known += [each for each in sums if each not in self._known]

    def proves(self, condition: Expr) -> bool:
        """Whether ``condition``, made of comparisons of integers, is sure to hold."""
        match condition:
            case Constant(value=value):
                return bool(value)
            case Apply(primitive="and_", arguments=arguments):
                return all(map(self.proves, arguments))
            case Apply(primitive="ge" | "gt" | "le" | "lt", arguments=(left, _)) if is_integer(left.dtype):
                found = self.consequences(condition)
                return bool(found) and all(map(self.implies, found))
        return False

    def consequences(self, condition: Expr, holds: bool = True) -> list[Sum]:
        """Sums that are at least 0 if ``condition`` holds, or if it does not."""
        match condition:
            case Constant(value=value):
                return [] if bool(value) == holds else [IMPOSSIBLE]
            case Local(name=name):
                return self.follows(name)[0 if holds else 1]
            case Apply(primitive="not_", arguments=(operand,)):
                return self.consequences(operand, not holds)
            case Apply(primitive="and_" | "or_" as primitive, arguments=arguments) if holds == (primitive == "and_"):
                return [each for part in arguments for each in self.consequences(part, holds)]
            case Apply(primitive=primitive, arguments=(left, right)) if PRIMITIVES[primitive].kind == "compare":
                if not all(is_integer(part.dtype) for part in (left, right)):
                    return []
                more = added(self.sum_of(left), self.sum_of(right), -1)
                return _compared(primitive if holds else _OPPOSITES[primitive], more)
        return []

    def difference(self, left: Expr, right: Expr) -> Sum:
        """``left - right``."""
        return added(self.sum_of(left), self.sum_of(right), -1)

    def implies(self, found: Sum) -> bool:
        """Whether ``found`` is at least 0."""
        fails = [added({"": -1}, found, -1)]
        if self._has_example(fails):
            return False
        # Of an integer: 2 * found >= -1 is found >= 0.
        if any(self._is_clear(added({"": scale - 1}, found, scale)) for scale in self._divisors):
            return True
        return self._are_contradictory(fails)

    def _is_clear(self, found: Sum, terms: int = 2) -> bool:
        # Whether it is a sum of a few that are known and of something that is never negative: most are, and isl takes
        # longer.
        if self._least(found) >= 0:
            return True
        name = next((name for name, factor in found.items() if name and self._least({name: factor}) < 0), None)
        if name is None or not terms:
            return False
        for each in self._known:
            if name in each:
                times, rest = divmod(found[name], each[name])
                if not rest and times > 0 and self._is_clear(added(found, each, -times), terms - 1):
                    return True
        return False

    def _least(self, found: Sum) -> int:
        return self._end(found, 0)

    def _end(self, found: Sum, side: int) -> int:
        # The least and the largest value, as far as the unknowns alone say it.
        return found.get("", 0) + sum(
            factor * self._ends[name][side if factor > 0 else 1 - side] for name, factor in found.items() if name
        )

    def excludes(self, zeros: Sequence[Sum]) -> bool:
        """Whether not all of ``zeros`` are 0."""
        if any(set(zero) == {""} for zero in zeros):
            return True
        return self._are_contradictory([side for zero in zeros for side in (zero, added({}, zero, -1))])

    def _has_example(self, sums: Sequence[Sum]) -> bool:
        # Whether values are at hand for which what is known holds, and ``sums`` are at least 0 too.
        for example in self._examples:
            if all(_fits(each, example) for each in sums):
                used = self._close_to(sums)
                return any(all(_fits(each, other) for each in used) for other in self._examples)
        return False

    def _close_to(self, sums: Sequence[Sum]) -> list[Sum]:
        # They, and of what is known that which has to do with them.
        names = {name for each in sums for name in each if name}
        left, used = list(self._known), list(sums)
        while True:
            near = [each for each in left if not names.isdisjoint(each)]
            if not near:
                return used
            used += near
            left = [each for each in left if names.isdisjoint(each)]
            names.update(name for each in near for name in each if name)

    def _are_contradictory(self, sums: Sequence[Sum]) -> bool:
        used = self._close_to(sums)
        # Numbered anew: the same is asked of nests that are alike, and in each pass over the rounds of a loop.
        unknowns = dict.fromkeys(name for each in used for name in each if name)
        columns = {name: number for number, name in enumerate([*unknowns, ""])}
        for name in unknowns:
            used += [{name: 1, "": -self._ends[name].low}, {name: -1, "": self._ends[name].high}]
        empty, values = _points(tuple(dict.fromkeys(_row(each, columns) for each in used)), len(columns))
        if values:
            self._examples.appendleft(dict(zip(unknowns, values, strict=True)))
        return empty


def _fits(each: Sum, example: Mapping[str, int]) -> bool:
    total = 0
    for name, factor in each.items():
        value = example.get(name) if name else 1
        if value is None:
            return False
        total += factor * value
    return total >= 0


_ANSWERS: Recent[tuple[str, ...], tuple[bool, tuple[int, ...]]] = Recent(4096)


def _points(rows: tuple[str, ...], width: int) -> tuple[bool, tuple[int, ...]]:
    # Whether the set is empty, and one of its points. isl reads a matrix ten times as fast as formulas.
    found = _ANSWERS.get(rows)
    if found is None:
        try:
            with limited():
                point = isl.BasicSet("\n".join((f"{len(rows)} {width + 1}", *rows))).sample_point()
                values = () if point.is_void() else (point.get_coordinate_val(_SET, n) for n in range(width - 1))
                found = point.is_void(), tuple(value.to_python() for value in values)
        except TooMuchWork:
            found = False, ()
        _ANSWERS[rows] = found
    return found


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
    less = added({}, more, -1)
    match primitive:
        case "ge":
            return [more]
        case "gt":
            return [added(more, {"": -1})]
        case "le":
            return [less]
        case "lt":
            return [added(less, {"": -1})]
        case "eq":
            return [more, less]
    return []


def added(first: Sum, other: Sum, scale: int = 1) -> Sum:
    """``first + scale * other``."""
    found = dict(first)
    for name, factor in other.items():
        found[name] = found.get(name, 0) + scale * factor
    return {name: factor for name, factor in found.items() if factor}


def _row(each: Sum, columns: Mapping[str, int]) -> str:
    # In a matrix: 1 for an inequality, and a factor for each column.
    factors = [0] * len(columns)
    for name, factor in each.items():
        factors[columns[name]] = factor
    return f"1 {' '.join(map(str, factors))}"


def _divisor(expr: Apply) -> int:
    # By what it divides, a positive number; 0 for other arithmetic with a constant.
    match expr:
        case Apply(primitive="floor_div", arguments=(_, Constant(value=number))):
            return max(0, int(number))
        case Apply(primitive="shift_right", arguments=(_, Constant(value=number))) if 0 <= number < 63:
            return 1 << int(number)
    return 0


def _ends_of_type(expr: Expr) -> Interval:
    # A position that is exact may be anything, until it is checked.
    return interval_of_dtype(expr.dtype) if expr.dtype != INTEGER else Interval(-(2**512), 2**512)
