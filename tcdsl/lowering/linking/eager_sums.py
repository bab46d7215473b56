"""Sums over the rounds before, added as soon as there is a term: along memory, where they would go across it.

::

    for j in 0 .. n:                          for j in 0 .. n:
        s = b[j]                                  x[j] = b[j]
        for k in 0 .. j:                      for k in 0 .. n:
            s -= x[k] * A[k, j]    becomes        x[k] = x[k] / A[k, k]
        x[j] = s / A[j, j]                        cell = x[k]
                                                  for j in k + 1 .. n:
                                                      x[j] -= cell * A[k, j]

Each cell gets the same terms in the same order. So is a row of a triangular factor, or what is solved with its
transpose. All other cells that the loop reads are provably not those that it writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tcdsl.ir.build import apply, index, integer, plain_read
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Expr, Local, Read, reads, substitute, transform
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.lowering.loopir.integer_facts import IntegerFacts, places
from tcdsl.lowering.loopir.loops import Accumulate, Buffer, Define, Loop, Nest, Node, Store, Update
from tcdsl.lowering.loopir.traversal import changed_names, scalars_of, uses_of, with_bodies
from tcdsl.polyhedra.linear import linear_form

__all__ = ["with_eager_sums"]


def with_eager_sums(nests: Iterable[Nest], buffers: Iterable[Buffer], facts: IntegerFacts) -> list[Nest]:
    """``nests`` of a kernel with rounds, with such loops. ``facts`` are what is known of sizes."""
    nests, known = list(nests), {buffer.name: buffer for buffer in buffers}
    names = FreshNames({*known, *(name for nest in nests for name in changed_names(nest.body))})
    return [replace(nest, code=_Nest(nest, known, names).block(nest.body, facts.copy())) for nest in nests]


class _Nest:
    def __init__(self, nest: Nest, buffers: Mapping[str, Buffer], names: FreshNames) -> None:
        self._used = uses_of(nest.body)
        self._buffers = buffers
        self._names = names

    def block(self, nodes: Sequence[Node], facts: IntegerFacts) -> tuple[Node, ...]:
        out: list[Node] = []
        for node, inside in places(nodes, facts):
            found = _Sums.of(node, self._buffers) if isinstance(node, Loop) else None
            if found is not None and self._is_own(found) and found.may_be_eager(inside[0].copy()):
                out += found.loops(self._names)
            else:
                bodies = iter([each.copy() for each in inside])
                out.append(with_bodies(node, lambda body, bodies=bodies: self.block(body, next(bodies))))  # type: ignore[misc]
        return tuple(out)

    def _is_own(self, found: _Sums) -> bool:
        # Whether nobody asks behind the loop for what it has left in scalars.
        inside = uses_of((found.loop,))
        made = changed_names((found.loop,)) - {found.target.tensor}
        return all(self._used[name] == inside[name] for name in made)


@dataclass(frozen=True, slots=True)
class _Sums:
    """A loop whose rounds define scalars, ``total`` at last, and add up an inner loop, before they store into the
    cell ``target``; ``given`` is what that begins with, and ``value`` what it stores.
    """

    loop: Loop
    scalars: tuple[Define, ...]
    total: Local
    given: Expr
    inner: Loop
    term: Accumulate | Define
    target: Read
    value: Expr

    @staticmethod
    def of(loop: Loop, buffers: Mapping[str, Buffer]) -> _Sums | None:
        match loop:
            case Loop(step=1, condition=None, kind="serial", body=(*before, Loop() as inner, Store() as store)):
                pass
            case _:
                return None
        match inner:
            case Loop(step=1, condition=None, kind="serial", body=((Accumulate() | Define()) as term,)):
                pass
            case _:
                return None
        scalars = tuple(node for node in before if isinstance(node, Define))
        named = {node.name: node for node in scalars}
        buffer = buffers.get(store.buffer)
        if len(named) < len(before) or term.name not in named or buffer is None:
            return None
        dtype, total = buffer.dtype, named[term.name].value.dtype
        if not dtype == total == compute_dtype(dtype) == store.value.dtype:
            return None
        others = tuple(node for node in scalars if node.name != term.name)
        given = named[term.name].value
        target = plain_read(store.buffer, store.indices, dtype)
        return _Sums(loop, others, Local(term.name, dtype), given, inner, term, target, store.value)

    def may_be_eager(self, facts: IntegerFacts) -> bool:
        """Whether that changes nothing, and makes the inner loop one along memory; ``facts`` hold in a round."""
        own, inner = index(self.loop.variable), index(self.inner.variable)
        *rows, last = self.target.indices
        held = {node.name for node in self.scalars} | {self.total.name}
        parts = (self.given, self.value, self.term.value, *self.target.indices, self.loop.stop)
        if any(not held.isdisjoint(scalars_of(part) - {self.total.name}) for part in parts):
            return False
        adds = isinstance(self.term, Accumulate) and self.total.name in scalars_of(self.term.value)
        if adds or self.total.name in scalars_of(self.given) or any(map(_reads, (*rows, last, self.loop.stop))):
            return False
        if linear_form(last)[0].get(own) != 1 or any(own.name in scalars_of(axis) for axis in rows):
            return False
        for each in self.scalars:
            facts.passes(each)
        ends = facts.difference(self.inner.start, self.loop.start), facts.difference(self.inner.stop, own)
        before = self._at(inner)
        along = [read for read in reads(self.term.value) if read != before]
        if (
            any(ends)
            or before not in set(reads(self.term.value))
            or not all(_goes_along(each, own, inner) for each in along)
        ):
            return False
        return bool(along) and self._is_apart(facts, before)

    def _is_apart(self, facts: IntegerFacts, before: Read) -> bool:
        # Whether no round writes what others read, but for the cell of the round itself.
        inside = facts.copy()
        inside.enter(self.inner)
        any_round = replace(self.loop, variable=f"{self.loop.variable}.any")
        written = self._at(index(any_round.variable))
        for known, expr, own in (
            (inside, self.term.value, before),
            (facts, self.value, None),
            (facts, self.given, self.target),
        ):
            known.enter(any_round)
            for read in reads(expr):
                if read.tensor == self.target.tensor and read != own:
                    axes = zip(read.indices, written.indices, strict=True)
                    if not known.excludes([known.difference(axis, at) for axis, at in axes]):
                        return False
        return True

    def _at(self, place: Expr) -> Read:
        # The cell of another round.
        indices = tuple(substitute(axis, {index(self.loop.variable): place}) for axis in self.target.indices)
        return replace(self.target, indices=indices)

    def loops(self, names: FreshNames) -> Iterator[Node]:
        """The loops that do the same."""
        loop, inner, target = self.loop, self.inner, self.target
        own = index(loop.variable)
        if self.given != target:
            yield replace(loop, body=(Store(target.tensor, target.indices, self.given),))
        later, cell = index(names.fresh(inner.variable)), Local(names.fresh("cell"), target.dtype)
        before, last = self._at(index(inner.variable)), self._at(later)
        term = transform(self.term.value, lambda part: cell if part == before else part)
        term = substitute(term, {own: later, index(inner.variable): own})
        update: Node
        if isinstance(self.term, Accumulate):
            update = Update(last.tensor, last.indices, self.term.accumulate, term)
        else:
            update = Store(last.tensor, last.indices, substitute(term, {self.total: last}))
        start = apply("add", own, integer(1))
        body = (
            Define(self.total.name, target),
            Define(cell.name, self.value),
            Store(target.tensor, target.indices, cell),
            replace(inner, variable=later.name, start=start, stop=loop.stop, body=(update,)),
        )
        yield replace(loop, body=body)


def _reads(expr: Expr) -> bool:
    return any(True for _ in reads(expr))


def _goes_along(read: Read, own: Expr, inner: Expr) -> bool:
    # Whether its cells lie beside those of the next round, and not beside those of the next term.
    if not read.indices:
        return True
    *rows, last = (linear_form(axis)[0] for axis in read.indices)
    return last.get(own) == 1 and inner not in last and not any(own in axis for axis in rows)
