"""How many operations the derivative of one value takes at each point, before it is written.

A statement's derivative by each tensor that it reads is a statement of its own, which computes again what it needs of
the value, and of the way from the result to that read. That is a fixed number of operations per point, found here from
the steps of the value. `tcdsl.autodiff.statement_derivatives.intermediates` stores what would be computed too often.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from tcdsl.autodiff.cost.operations import operations_of, weight
from tcdsl.autodiff.statement_derivatives.scalar import carriers
from tcdsl.ir.build import constant
from tcdsl.ir.expressions import Apply, Constant, Expr, Local, Read, walk
from tcdsl.ir.primitives import PRIMITIVES
from tcdsl.ir.text.rule_parser import parse_rule
from tcdsl.simplification.expressions.tape import Tape, shared

__all__ = ["ValueSteps"]


@dataclass(frozen=True, slots=True)
class _Share:
    """What an argument's row of derivatives takes: its operations, and the steps whose values it mentions."""

    source: str
    argument: str
    work: float
    needs: tuple[str, ...]


class _Above:
    """What leads from a step up to the root, by ``shares``, those of a step before those of the steps that it uses.

    A share that takes nothing, and is the only one to lead on from its argument, as in a sum of many terms, is passed
    over: it is neither work nor an addition.
    """

    def __init__(self, shares: Iterable[_Share]) -> None:
        self._using: dict[str, list[_Share]] = {}
        for share in shares:
            self._using.setdefault(share.argument, []).append(share)
        self._next: dict[str, str] = {}
        # Every share of a step comes after those that lead on from it.
        for name, using in self._using.items():
            only = using[0]
            passed = len(using) == 1 and not only.work and not only.needs
            self._next[name] = self._next.get(only.source, only.source) if passed else name

    def leading_to(self, leaf: str) -> list[_Share]:
        """The shares on the way from the root to a leaf."""
        way: list[_Share] = []
        reached: set[str] = set()
        pending = [leaf]
        while pending:
            name = pending.pop()
            name = self._next.get(name, name)
            if name not in reached:
                reached.add(name)
                using = self._using.get(name, ())
                way += using
                pending.extend(share.source for share in using)
        return way


class ValueSteps:
    """The steps of a value on ``tape``, for asking what derivatives would take if some of them were stored.

    ``summed`` says whether the statement adds values up; otherwise its target holds the value itself.
    """

    def __init__(self, tape: Tape, root: Expr, active: Callable[[str], bool], summed: bool) -> None:
        self._summed = summed
        self.tape = tape
        self.root = root.name if isinstance(root, Local) else ""
        self.active = carriers(tape, root, active)
        self._work = {name: _work(tape.definition(Local(name, ""))) for name in tape.steps([root])}
        self._places = {name: place for place, name in enumerate(self.active)}
        self._shares = {name: _shares(tape, name, self._places.keys()) for name in self.active}

    @property
    def work(self) -> float:
        """The operations of the statement."""
        return sum(self._work.values()) + self._summed

    @property
    def candidates(self) -> list[str]:
        """The steps that may be stored: all that take work, but the root."""
        return [name for name, work in self._work.items() if work and name != self.root]

    def adjoint_work(self, stored: Iterable[str]) -> float:
        """The operations of all adjoint contributions: the additions that join those to one tensor included."""
        cut = frozenset(stored)
        # The first contribution to what is stored is no addition, nor is the target's own.
        total = float(self._summed - 1 - len(cut))
        for root in (self.root, *cut):
            below = self._between(root, cut)
            above = _Above([share for name in below for share in self._shares_below(name, root, cut)])
            for leaf in (name for name in below if self._ends(name, root, cut)):
                way = above.leading_to(leaf)
                joined = len(way) - len({share.argument for share in way})
                total += 1 + joined + self._work_of(way, cut)
        return total

    def tangent_work(self, stored: Iterable[str]) -> float:
        """The operations of the tangents of the value and of what is stored."""
        cut = frozenset(stored)
        total = float(self._summed)
        for root in (self.root, *cut):
            below = self._between(root, cut)
            way = [share for name in below for share in self._shares_below(name, root, cut)]
            joined = len(way) - len({share.source for share in way})
            total += joined + self._work_of(way, cut)
        return total

    def _ends(self, name: str, root: str, cut: frozenset[str]) -> bool:
        return name != root and (name in cut or isinstance(self.tape.definition(Local(name, "")), Read))

    def _shares_below(self, name: str, root: str, cut: frozenset[str]) -> Sequence[_Share]:
        return () if name in cut and name != root else self._shares.get(name, ())

    def _between(self, root: str, cut: frozenset[str]) -> list[str]:
        # The active steps under a root, down to reads and to what is stored, each before those that it uses.
        found: set[str] = set()
        pending = [root] if root in self._places else []
        while pending:
            name = pending.pop()
            if name not in found:
                found.add(name)
                pending.extend(share.argument for share in self._shares_below(name, root, cut))
        return sorted(found, key=self._places.__getitem__, reverse=True)

    def _work_of(self, way: Sequence[_Share], cut: frozenset[str]) -> float:
        """What the shares take, with the values of the steps that they mention computed again."""
        again: set[str] = set()
        pending = [name for share in way for name in share.needs]
        while pending:
            name = pending.pop()
            if name in again or name in cut or (not self._summed and name == self.root):
                continue
            again.add(name)
            pending.extend(_mentioned(self.tape.definition(Local(name, ""))))
        return sum(share.work for share in way) + sum(self._work[name] for name in again)


def _work(step: Expr) -> float:
    return sum(weight(operation) for operation in operations_of(step)) if isinstance(step, Apply) else 0.0


def _mentioned(step: Expr) -> list[str]:
    return [node.name for node in walk(step) if isinstance(node, Local)]


def _shares(tape: Tape, name: str, carrying: Collection[str]) -> list[_Share]:
    step = tape.definition(Local(name, ""))
    if not isinstance(step, Apply):
        return [_Share(name, other, 0.0, ()) for other in _mentioned(step) if other in carrying]
    constants = tuple(argument if isinstance(argument, Constant) else None for argument in step.arguments)
    names = {"y": name} | {
        letter: leaf.name for letter, leaf in zip("abc", step.arguments, strict=False) if isinstance(leaf, Local)
    }
    found = []
    for position, argument in enumerate(step.arguments):
        if isinstance(argument, Local) and argument.name in carrying:
            row = _row(step.primitive, position, constants)
            if row is not None:
                work, letters = row
                found.append(_Share(name, argument.name, work, tuple(names[each] for each in letters if each in names)))
    return found


@lru_cache(maxsize=1024)
def _row(primitive: str, position: int, constants: tuple[Constant | None, ...]) -> tuple[float, frozenset[str]] | None:
    # The operations of a row of derivatives, and the letters that it mentions. None where the derivative is zero.
    row = PRIMITIVES[primitive]
    text = row.derivatives[position] if row.derivatives is not None else "0"
    if text == "0":
        return None
    if primitive == "where":
        return 0.0, frozenset("a")
    leaves: dict[str, Expr] = {letter: Local(letter, "float64") for letter in ("a", "b", "c", "g", "y")}
    for letter, known in zip("abc", constants, strict=False):
        if known is not None:
            leaves[letter] = constant(known.value, "float64")
    nodes = list(walk(shared(parse_rule(text, leaves))))
    work = sum(weight(operation) for node in nodes if isinstance(node, Apply) for operation in operations_of(node))
    return work, frozenset(node.name for node in nodes if isinstance(node, Local) and node.name != "g")
