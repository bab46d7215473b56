"""Expressions of statements as scalar code: boundaries, checks and local definitions become nodes before the value.

What stands behind ``where``, ``and_`` or ``or_`` is evaluated only where it is needed. As long as it needs no nodes,
it stays an expression, which code generation prints as Python's lazy operators; otherwise it becomes a branch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

import islpy as isl

from tcdsl.ir.boundaries import moved_index
from tcdsl.ir.build import all_of, apply, cast, constant, in_range, integer, plain_read
from tcdsl.ir.dtypes import INTEGER
from tcdsl.ir.expressions import (
    Apply,
    Boundary,
    Constant,
    Expr,
    IndexValue,
    Let,
    Local,
    Read,
    SizeValue,
    certain_children,
    children,
    is_affine_index,
    map_children,
    rebuild,
    walk,
)
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.ir.primitives import LAZY
from tcdsl.ir.program import Tensor
from tcdsl.lowering.loopir.boundary_reads import Declarations
from tcdsl.lowering.loopir.loops import Branch, Check, Define, Node
from tcdsl.polyhedra.affine import holds
from tcdsl.polyhedra.linear import normalized
from tcdsl.span import Span

__all__ = ["Scalars"]

_SMALL = 16  # So many nodes are copied into the places that use them.


class _Locals:
    """Which locals expressions use; asked once of each one, because they are nested. By ids, which are kept alive."""

    def __init__(self) -> None:
        self._used: dict[int, tuple[Expr, Mapping[str, int]]] = {}
        self._needed: dict[int, tuple[Expr, frozenset[str]]] = {}

    def used(self, expr: Expr) -> Mapping[str, int]:
        """How often each local stands in ``expr``: 1, or 2 for more. Names of locals are unique in a statement."""
        if id(expr) not in self._used:
            self._used[id(expr)] = expr, self._counted(expr)
        return self._used[id(expr)][1]

    def _counted(self, expr: Expr) -> Mapping[str, int]:
        if isinstance(expr, Local):
            return {expr.name: 1}
        found: Mapping[str, int] = {}
        for part in map(self.used, children(expr)):
            if found and part:
                both = {**found, **part}
                both.update((name, 2) for name in found.keys() & part.keys())
                found = both
            else:
                found = found or part
        return found

    def needed(self, expr: Expr) -> frozenset[str]:
        """The locals that are evaluated wherever ``expr`` is."""
        if id(expr) not in self._needed:
            self._needed[id(expr)] = expr, self._certain(expr)
        return self._needed[id(expr)][1]

    def _certain(self, expr: Expr) -> frozenset[str]:
        # A Let evaluates its value only if the body needs it.
        match expr:
            case Local(name=name):
                return frozenset((name,))
            case Let(value=value, body=body):
                needed = self.needed(body)
                return needed | self.needed(value) if expr.name in needed else needed
        found = frozenset[str]().union(*map(self.needed, certain_children(expr)))
        if isinstance(expr, Apply) and expr.primitive == "where":
            found |= frozenset.intersection(*map(self.needed, expr.arguments[1:]))
        return found

    def bound(self, expr: Expr, name: str, value: Expr) -> Expr:
        """``expr`` with ``value`` for a local. Names of locals are unique, so nothing is captured."""
        if name not in self.used(expr):
            return expr
        if isinstance(expr, Local):
            return value
        if isinstance(expr, Let) and expr.name == name:
            return replace(expr, value=self.bound(expr.value, name, value))
        return map_children(expr, lambda part: self.bound(part, name, value))


@dataclass(slots=True)
class Scalars:
    """Writes the scalar code of one point.

    ``values`` says what index variables are that have no loop, ``buffers`` which memory holds a tensor's cells.
    ``points`` are the points at which the code runs: extents that they prove to be positive need no test.
    """

    tensors: Declarations
    buffers: Mapping[str, str]
    names: FreshNames
    points: isl.Set
    values: Mapping[Expr, Expr] = field(default_factory=dict)
    _defined: dict[Expr, Expr] = field(default_factory=dict)
    _locals: _Locals = field(default_factory=_Locals)

    def value(self, expr: Expr, out: list[Node]) -> Expr:
        """What computes ``expr``; nodes that must run before are appended to ``out``."""
        match expr:
            case Constant() | SizeValue():
                return expr
            case IndexValue():
                return self.values.get(expr, expr)
            case Local():
                return self._defined[expr]
            case Let():
                return self._let(expr, out)
            case Read():
                return self._read(expr, out)
            case Apply(primitive=primitive) if primitive in LAZY:
                return self._lazy(expr, out)
            case _:
                return map_children(expr, lambda part: self.value(part, out))

    def position(self, expr: Expr, out: list[Node]) -> Expr:
        """An index: like `value`, with like terms collected."""
        return normalized(self.value(expr, out))

    def kept(self, expr: Expr, hint: str, out: list[Node]) -> Expr:
        """``expr``, already scalar code, under a name, so that it is computed once; as it is if that costs nothing."""
        if isinstance(expr, Constant | SizeValue | IndexValue | Local):
            return expr
        name = self.names.fresh(hint)
        out.append(Define(name, expr))
        return Local(name, expr.dtype)

    def checked(self, position: Expr, tensor: Tensor, axis: int, span: Span | None, out: list[Node]) -> Expr:
        """The data index ``position`` behind a check that it is in range."""
        extent = tensor.shape[axis]
        position = self.kept(position, "p", out)
        key = Apply("checked", (position, extent), "int64")
        if key not in self._defined:
            out.append(_check(in_range(position, extent), tensor, axis, position, extent, span))
            self._defined[key] = position
        return position

    def branch(self, condition: Expr, out: list[Node], body: Callable[[Scalars, list[Node]], None]) -> None:
        """Nodes that run only where ``condition``, already scalar code, holds."""
        inner: list[Node] = []
        body(self._inside(), inner)
        if inner:
            out.append(Branch(condition, tuple(inner)))

    def _inside(self) -> Scalars:
        # What a branch defines is not defined behind it.
        return replace(self, _defined=dict(self._defined))

    def _let(self, expr: Let, out: list[Node]) -> Expr:
        if (
            isinstance(expr.value, Constant | SizeValue | IndexValue | Local)
            or self._locals.used(expr.body).get(expr.name, 0) <= 1
        ):
            # Substituted as an expression of the statement, so that a lazy place keeps it lazy.
            return self.value(self._locals.bound(expr.body, expr.name, expr.value), out)
        if expr.name in self._locals.needed(expr.body):
            self._define(expr, out)
            return self.value(expr.body, out)
        bindings, body = _lazy_bindings(expr, self._locals)
        before = self._computed_before(bindings, children(body))
        for binding in bindings:
            if binding.name in before:
                self._define(binding, out)
        return self.value(_sunk([each for each in bindings if each.name not in before], body, self._locals), out)

    def _define(self, let: Let, out: list[Node]) -> None:
        # Names of locals are unique in a statement, so nothing is hidden.
        self._defined[Local(let.name, let.value.dtype)] = self.kept(self.value(let.value, out), let.name, out)

    def _computed_before(self, bindings: Sequence[Let], parts: Sequence[Expr]) -> set[str]:
        """Which of ``bindings`` are computed although not all points need them: those that would be copied into parts.

        Copies of copies would make code that grows as a power of the number of choices behind each other.
        """
        uses = {each.name: set(self._locals.used(each.value)) for each in bindings}
        places = dict.fromkeys(uses, 0)
        for needed in (set(self._locals.used(part)) for part in parts):
            for binding in reversed(bindings):
                if binding.name in needed:
                    places[binding.name] += 1
                    needed |= uses[binding.name]
        possible: set[str] = set()
        for binding in bindings:
            if uses[binding.name] & places.keys() <= possible and self._never_fails(binding.value):
                possible.add(binding.name)
        wanted: set[str] = set()
        for binding in reversed(bindings):
            name = binding.name
            if name in wanted or (name in possible and places[name] > 1 and not _is_small(binding.value)):
                wanted |= {name} | (uses[name] & places.keys())
        return wanted

    def _never_fails(self, expr: Expr) -> bool:
        # Whether it may be computed where nothing needs it: all that it reads is in range at all points.
        return all(self._is_in_range(node) for node in walk(expr) if isinstance(node, Read))

    def _is_in_range(self, read: Read) -> bool:
        extents = self.tensors[read.tensor].shape
        return all(
            boundary is Boundary.SKIP and is_affine_index(index) and holds(in_range(index, extent), self.points)
            for index, boundary, extent in zip(read.indices, read.boundaries, extents, strict=True)
        )

    def _lazy(self, expr: Apply, out: list[Node]) -> Expr:
        first, *rest = expr.arguments
        condition = self.value(first, out)
        if isinstance(condition, Constant):
            chosen = apply(expr.primitive, condition, *rest)
            return chosen if isinstance(chosen, Constant) else self.value(chosen, out)
        parts: list[Expr] = []
        bodies: list[list[Node]] = []
        for part in rest:
            bodies.append([])
            parts.append(self._inside().value(part, bodies[-1]))
        if not any(bodies):
            return rebuild(expr, (condition, *parts))
        if expr.primitive == "and_":
            parts, bodies = [*parts, constant(False, "bool")], [*bodies, []]
        elif expr.primitive == "or_":
            parts, bodies = [constant(True, "bool"), *parts], [[], *bodies]
        return self._chosen(condition, bodies, parts, out)

    def _chosen(
        self, condition: Expr, bodies: Sequence[Sequence[Node]], parts: Sequence[Expr], out: list[Node]
    ) -> Local:
        # The first or the second part, each behind nodes of its own.
        local = Local(self.names.fresh("t"), parts[0].dtype)
        yes, no = ((*body, Define(local.name, part)) for body, part in zip(bodies, parts, strict=True))
        out.append(Branch(condition, yes, no))
        return local

    def _read(self, read: Read, out: list[Node]) -> Expr:
        return self._axes(read, 0, (), (), out)

    def _axes(
        self, read: Read, axis: int, done: tuple[Expr, ...], questions: tuple[Expr, ...], out: list[Node]
    ) -> Expr:
        # Axis by axis, as in the interpreter: the first one that is out of range and fills or fails decides. Conditions
        # for a fill collect in questions until something has to be computed behind them.
        if axis == len(read.indices):
            cell = plain_read(self.buffers[read.tensor], done, read.dtype, read.span)
            return self._filled(read, questions, lambda _scalars, _inner: cell, out)
        boundary = read.boundaries[axis]
        if questions and not (boundary is Boundary.FILL or self._simple(read, axis)):
            rest = lambda scalars, inner: scalars._axes(read, axis, done, (), inner)  # noqa: E731
            return self._filled(read, questions, rest, out)
        tensor = self.tensors[read.tensor]
        extent = tensor.shape[axis]
        position = self.position(read.indices[axis], out)
        match boundary:
            case Boundary.SKIP:
                pass
            case Boundary.CHECK:
                position = self.checked(position, tensor, axis, read.span, out)
            case Boundary.FILL:
                position = position if is_affine_index(read.indices[axis]) else self.kept(position, "p", out)
                questions = (*questions, in_range(position, extent))
            case _:
                if not self._positive(extent):
                    out.append(_check(apply("gt", extent, integer(0)), tensor, axis, position, extent, read.span))
                if not is_affine_index(position):
                    position = cast(self.kept(position, "p", out), INTEGER)
                position = moved_index(position, extent, boundary)
        return self._axes(read, axis + 1, (*done, position), questions, out)

    def _simple(self, read: Read, axis: int) -> bool:
        # Whether the axis needs no nodes and cannot fail, so that it may be computed before the fill is decided.
        if not is_affine_index(read.indices[axis]) or read.boundaries[axis] is Boundary.CHECK:
            return False
        return read.boundaries[axis] is Boundary.SKIP or self._positive(self.tensors[read.tensor].shape[axis])

    def _filled(
        self,
        read: Read,
        questions: tuple[Expr, ...],
        inside: Callable[[Scalars, list[Node]], Expr],
        out: list[Node],
    ) -> Expr:
        if not questions:
            return inside(self, out)
        if read.fill is None:
            raise TypeError(f"the read of {read.tensor} has no fill value")
        condition = all_of(questions)
        yes: list[Node] = []
        chosen = inside(self._inside(), yes)
        no: list[Node] = []
        fill = self._inside().value(read.fill, no)
        if not yes and not no:
            return apply("where", condition, chosen, fill)
        return self._chosen(condition, (yes, no), (chosen, fill), out)

    def _positive(self, extent: Expr) -> bool:
        return holds(apply("gt", extent, integer(0)), self.points)


def _check(condition: Expr, tensor: Tensor, axis: int, value: Expr, extent: Expr, span: Span | None) -> Check:
    return Check(condition, tensor.label or tensor.name, axis, value, extent, span)


def _is_small(expr: Expr) -> bool:
    # Whether copies of it are as good as a name. One that uses other locals is not: copies of those come with it.
    nodes = list(islice(walk(expr), _SMALL + 1))
    return len(nodes) <= _SMALL and not any(isinstance(node, Local) for node in nodes)


def _lazy_bindings(expr: Let, known: _Locals) -> tuple[list[Let], Expr]:
    """The locals that are defined one inside the other and that only lazy places use, and what they are defined for."""
    bindings = [expr]
    body = expr.body
    while isinstance(body, Let) and body.name not in known.needed(body.body):
        bindings.append(body)
        body = body.body
    return bindings, body


def _sunk(bindings: Sequence[Let], body: Expr, known: _Locals) -> Expr:
    """``body`` with locals defined in the parts that use them, together: none is copied into another's value."""

    def wrap(part: Expr) -> Expr:
        for binding in reversed(bindings):
            if binding.name in known.used(part):
                part = replace(binding, body=part)
        return part

    return rebuild(body, tuple(wrap(part) for part in children(body))) if bindings else body
