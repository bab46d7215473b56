"""Range inference of equal statements, once: those of equal layers read tensors of other names, and are else the same.

::

    y[n, d] = x[n, d] - mean(x[n, c])        what is inferred for this statement of one layer
    y[n, d] = h[n, d] - mean(h[n, c])        is, with h for x, what is inferred for that of the next one

What inference asks of the program is noted, and asked again. Where it speaks of sizes, or of cells that may be
unwritten, nothing is shared: what it finds out then belongs to the one program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from tcdsl.ir.expressions import Expr, Read, Reduction, transform
from tcdsl.ir.program import Fill, Keep, Size, Statement, Tensor
from tcdsl.polyhedra.program_scope import ProgramScope
from tcdsl.polyhedra.size_facts import SizeFacts
from tcdsl.ranges.range_inference import resolve
from tcdsl.ranges.sketches.sketch import Resolved, Sketch
from tcdsl.recent import Recent
from tcdsl.rewrite.renaming import statement_with_tensors_renamed
from tcdsl.rewrite.statement_kinds import kind_of_statement
from tcdsl.span import Span

__all__ = ["resolve_equal"]


class _NotedScope:
    """A program, and what has been asked of it."""

    def __init__(self, scope: ProgramScope) -> None:
        self._scope = scope
        self.tensors: dict[str, Tensor] = {}
        self.nothing: dict[tuple[str, str], None] = {}
        self.names: list[tuple[str, str]] = []
        self.shared = True

    def tensor(self, name: str) -> Tensor:
        self.tensors[name] = self._scope.tensor(name)
        return self.tensors[name]

    def fresh_name(self, hint: str) -> str:
        found = self._scope.fresh_name(hint)
        self.names.append((hint, found))
        return found

    def opaque_size(self, expr: Expr) -> Expr:
        self.shared = False
        return self._scope.opaque_size(expr)

    def size(self, name: str) -> Size:
        self.shared = False
        return self._scope.size(name)

    def number(self, name: str) -> Expr | None:
        found = self._scope.number(name)
        self.nothing["number", name] = None
        self.shared &= found is None
        return found

    def writer(self, name: str) -> Statement | None:
        found = self._scope.writer(name)
        self.nothing["writer", name] = None
        self.shared &= found is None
        return found

    def all_written(self, name: str) -> None:
        self.shared = False
        self._scope.all_written(name)

    @property
    def may_not_run(self) -> bool:
        return self._scope.may_not_run

    @property
    def undecided_rounds(self) -> tuple[frozenset[str], tuple[Expr, ...]]:
        self.shared = False
        return self._scope.undecided_rounds

    def known(self) -> SizeFacts:
        return self._scope.known()


@dataclass(frozen=True, slots=True)
class _Inferred:
    """What was inferred for a sketch: its places in the source, the tensors that it reads, and what was asked.

    By places of tensors, those that were ``declared`` as here, and those of which nothing was said as a number or
    writer.
    """

    spans: tuple[object, ...]
    read: tuple[str, ...]
    declared: tuple[tuple[int, Tensor], ...]
    nothing: tuple[tuple[str, int], ...]
    names: tuple[tuple[str, str], ...]
    resolved: Resolved

    def holds(self, read: Sequence[str], spans: tuple[object, ...], scope: ProgramScope) -> bool:
        """Whether another sketch stands at the same places, and the answers are the same for it."""
        if self.spans != spans or any(scope.fresh_name(hint) != name for hint, name in self.names):
            return False
        declared = ((scope.tensor(read[place]), before) for place, before in self.declared)
        if any((one.dtype, one.shape, one.ends) != (other.dtype, other.shape, other.ends) for one, other in declared):
            return False
        ask: dict[str, Callable[[str], object]] = {"number": scope.number, "writer": scope.writer}
        return all(ask[what](read[place]) is None for what, place in self.nothing)

    def with_read(self, read: Sequence[str]) -> Resolved:
        """What was inferred, for a sketch that reads other tensors."""
        names = {old: new for old, new in zip(self.read, read, strict=True) if old != new}
        statements = tuple([statement_with_tensors_renamed(each, names) for each in self.resolved.statements])
        return replace(self.resolved, statements=statements) if names else self.resolved


_KNOWN: Recent[object, _Inferred] = Recent(512)


def resolve_equal(sketch: Sketch, scope: ProgramScope) -> Resolved:
    """What `resolve` gives for a statement of a program without sizes, or has given for an equal one."""
    if sketch.previous or isinstance(sketch.start, Keep):
        return resolve(sketch, scope)
    read: dict[str, str] = {}
    spans: list[object] = [sketch.span, sketch.target.span]
    key = _without_names(sketch, read, spans), scope.may_not_run
    if sketch.target.tensor in read:
        return resolve(sketch, scope)
    tensors, places = tuple(read), tuple(spans)
    known = _KNOWN.get(key)
    if known is not None and known.holds(tensors, places, scope):
        return known.with_read(tensors)
    noted = _NotedScope(scope)
    resolved = resolve(sketch, noted)
    asked = {*noted.tensors, *(name for _, name in noted.nothing)}
    if noted.shared and not resolved.assertions and read.keys() >= asked:
        declared = tuple((tensors.index(name), each) for name, each in noted.tensors.items())
        nothing = tuple((what, tensors.index(name)) for what, name in noted.nothing)
        for each in resolved.statements:
            kind_of_statement(each)  # those of equal sketches have it too
        _KNOWN[key] = _Inferred(places, tensors, declared, nothing, tuple(noted.names), resolved)
    return resolved


def _without_names(sketch: Sketch, read: dict[str, str], spans: list[object]) -> Sketch:
    # Numbers for the names of the tensors that are read, in the order in which they are met; all places are noted.
    def rule(node: Expr) -> Expr:
        spans.extend(_places(node))
        if not isinstance(node, Read):
            return node
        return replace(node, tensor=read.setdefault(node.tensor, f"#{len(read)}"))

    def parts(exprs: Sequence[Expr]) -> tuple[Expr, ...]:
        return tuple([transform(expr, rule) for expr in exprs])

    start = sketch.start
    return replace(
        sketch,
        target=replace(sketch.target, indices=parts(sketch.target.indices)),
        extents=tuple([None if extent is None else transform(extent, rule) for extent in sketch.extents]),
        start=Fill(transform(start.value, rule)) if isinstance(start, Fill) else start,
        value=transform(sketch.value, rule),
        ranges=tuple([replace(r, low=transform(r.low, rule), high=transform(r.high, rule)) for r in sketch.ranges]),
        conditions=parts(sketch.conditions),
        filters=parts(sketch.filters),
        restarts=None if sketch.restarts is None else parts(sketch.restarts),
    )


def _places(node: Expr) -> Iterator[Span | bool | None]:
    # What is not compared where nodes are.
    yield getattr(node, "span", None)
    if isinstance(node, Reduction):
        yield node.alone
        yield from (each.span for each in node.ranges)
