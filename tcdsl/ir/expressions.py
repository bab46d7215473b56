"""The scalar expressions of a statement: eight kinds of node, all immutable, all typed, and one more in sketches.

Every expression has a ``dtype`` and a ``span``. Types are explicit: the operands of an arithmetic primitive have one
type, and whoever builds an expression inserts the casts (`tcdsl.frontend` applies NumPy's promotion). Spans take no
part in equality, so a program that was printed and parsed again equals the original.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from operator import is_
from typing import Any, ClassVar

from tcdsl.ir.nodes import Hashed, node_class
from tcdsl.ir.primitives import LAZY, PRIMITIVES
from tcdsl.span import Span

__all__ = [
    "Apply",
    "Boundary",
    "Cast",
    "Constant",
    "ExplicitRange",
    "Expr",
    "IndexValue",
    "Let",
    "Local",
    "Read",
    "Reduction",
    "SizeValue",
    "certain_children",
    "children",
    "height",
    "index_variables",
    "is_affine_index",
    "is_plain_read",
    "locals_read",
    "map_children",
    "reads",
    "rebuild",
    "size_names",
    "substitute",
    "transform",
    "walk",
]


class Boundary(Enum):
    """What a read does, along one axis, where its index is out of range.

    ``SKIP`` promises that it is not: range inference has put the condition into the statement's domain or condition,
    or the read stands in a branch that is not taken there. ``CHECK`` is for data indices: the program raises
    ``IndexError``. ``FILL`` gives the read's fill value. The others move the index into range
    (``language.md`` boundaries): ``CLAMP`` to the nearest end, ``WRAP`` with period N, ``REFLECT`` with period 2(N-1),
    ``SYMMETRIC`` with period 2N.
    """

    SKIP = "skip"
    CHECK = "check"
    FILL = "fill"
    CLAMP = "clamp"
    WRAP = "wrap"
    REFLECT = "reflect"
    SYMMETRIC = "symmetric"

    # Members are equal to themselves alone, and reads are hashed all the time.
    __hash__ = object.__hash__


@node_class
@dataclass(frozen=True, slots=True)
class Constant(Hashed):
    """A literal number or truth value of type ``dtype``.

    Two constants are equal if they stand for the same number: 0.0 and -0.0 differ, NaN equals NaN.
    """

    value: bool | int | float
    dtype: str
    span: Span | None = field(default=None, compare=False, repr=False)

    def _key(self) -> tuple[object, ...]:
        # Python's == takes -0.0 for 0.0, so programs that compute differently would share a cache entry.
        if not isinstance(self.value, float):
            return self.dtype, self.value
        if math.isnan(self.value):
            return self.dtype, "nan"
        return self.dtype, self.value, math.copysign(1.0, self.value)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Constant) and self._key() == other._key())

    def __hash__(self) -> int:
        return hash(self._key())


@node_class
@dataclass(frozen=True, slots=True)
class SizeValue(Hashed):
    """A size of the program, by name; an int64."""

    name: str
    span: Span | None = field(default=None, compare=False, repr=False)
    dtype: ClassVar[str] = "int64"


@node_class
@dataclass(frozen=True, slots=True)
class IndexValue(Hashed):
    """The value of one of the statement's index variables; an int64."""

    name: str
    span: Span | None = field(default=None, compare=False, repr=False)
    dtype: ClassVar[str] = "int64"


@node_class
@dataclass(frozen=True, slots=True)
class Local(Hashed):
    """The value that an enclosing `Let` gives to ``name``."""

    name: str
    dtype: str
    span: Span | None = field(default=None, compare=False, repr=False)


class Compound(Hashed):
    """Has parts. Holds the reads in them, once they are known; they are no field."""

    __slots__ = ("_reads",)
    _reads: tuple[Read, ...]


@node_class
@dataclass(frozen=True, slots=True)
class Read(Compound):
    """One cell of a tensor: ``A[i, k]``.

    ``indices`` are integers, one per axis: int64 expressions of index variables and sizes, which are exact; int64
    values, such as a cell; or arithmetic on data, of type ``integer``. ``boundaries`` says per axis what happens out of
    range. ``fill`` has the read's own type and is evaluated only where a ``FILL`` axis is out of range. ``dtype`` is
    the type of the tensor; a float16 tensor is read as float32.
    """

    tensor: str
    indices: tuple[Expr, ...]
    boundaries: tuple[Boundary, ...]
    dtype: str
    fill: Expr | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


@node_class
@dataclass(frozen=True, slots=True)
class Apply(Compound):
    """A primitive of the table `tcdsl.ir.primitives.PRIMITIVES` applied to arguments.

    ``where(c, a, b)``, ``and_`` and ``or_`` evaluate lazily, from left to right: what stands in a branch that is not
    taken is not evaluated.
    """

    primitive: str
    arguments: tuple[Expr, ...]
    dtype: str
    span: Span | None = field(default=None, compare=False, repr=False)


@node_class
@dataclass(frozen=True, slots=True)
class Cast(Compound):
    """``operand`` converted to ``dtype`` as ``ndarray.astype`` does."""

    operand: Expr
    dtype: str
    span: Span | None = field(default=None, compare=False, repr=False)


@node_class
@dataclass(frozen=True, slots=True)
class Let(Compound):
    """``body`` with ``Local(name)`` standing for ``value``, which is computed at most once per point, when needed."""

    name: str
    value: Expr
    body: Expr
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def dtype(self) -> str:
        """The type of the value."""
        return self.body.dtype


@dataclass(frozen=True, slots=True)
class ExplicitRange:
    """A generator's range: ``low <= variable < high``, both expressions of sizes and of outer generator variables.

    A logic gives such ranges too, those of axes: these must fit (``stated`` is false), where a generator's skips.
    """

    variable: str
    low: Expr
    high: Expr
    stated: bool = True
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Reduction:
    """A reduction inside a value: ``sum(E[i, l])``, with the variables it binds. It stands in sketches only
    (`tcdsl.ranges.sketches.sketch`): range inference makes statements of their own of reductions.

    ``accumulate`` is ``add multiply max min or and``, or ``mean``, ``argmax``, ``argmin`` (int64; the position among
    all points, in the order of the ranges, if there are several variables).
    ``conditions`` are a generator's ``if``s, and those behind a plain ``=`` whose whole value this is. A
    point whose reads are out of range drops out of this reduction only. ``filters`` are conditions that came from
    brackets (``sum(x[k] * (k < 3))``): tested like ``conditions``, after them, but never an explicit range. ``dtype``
    is the result's, in which ``value`` is computed (for ``argmax`` and ``argmin`` ``value`` keeps its own). ``alone``
    says of one whose ``variables`` are still open that it binds all of its own rather than none.
    """

    accumulate: str
    variables: tuple[str, ...]
    ranges: tuple[ExplicitRange, ...]
    conditions: tuple[Expr, ...]
    value: Expr
    dtype: str
    filters: tuple[Expr, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)
    alone: bool = field(default=False, compare=False)

    def with_parts(self, parts: tuple[Expr, ...]) -> Reduction:
        """The same for other sub-expressions, in the order of `children`."""
        given = tuple(replace(r, low=parts[2 * k], high=parts[2 * k + 1]) for k, r in enumerate(self.ranges))
        rest, count = parts[2 * len(given) :], len(self.conditions)
        return replace(self, ranges=given, conditions=rest[:count], filters=rest[count:-1], value=rest[-1])


Expr = Constant | SizeValue | IndexValue | Local | Read | Apply | Cast | Let | Reduction

_KEEP_READS: Any = Compound.__dict__["_reads"].__set__
LEAVES = frozenset({Constant, SizeValue, IndexValue, Local})


def children(expr: Expr) -> tuple[Expr, ...]:
    """The direct sub-expressions of ``expr``, in evaluation order."""
    # The frequent kinds first: everything that reads expressions asks this of each node.
    if type(expr) is Apply:
        return expr.arguments
    if type(expr) in LEAVES:
        return ()
    match expr:
        case Read(indices=indices, fill=fill):
            return indices if fill is None else (*indices, fill)
        case Cast(operand=operand):
            return (operand,)
        case Let(value=value, body=body):
            return (value, body)
        case Reduction(ranges=ranges, conditions=conditions, filters=filters, value=value):
            return (*(end for each in ranges for end in (each.low, each.high)), *conditions, *filters, value)
        case _:
            return ()


def certain_children(expr: Expr) -> tuple[Expr, ...]:
    """The direct sub-expressions that are evaluated wherever ``expr`` is: not branches, and not what fills a read."""
    match expr:
        case Apply(primitive=primitive, arguments=arguments) if primitive in LAZY:
            return arguments[:1]
        case Read(indices=indices):
            return indices
        case _:
            return children(expr)


def rebuild(expr: Expr, parts: tuple[Expr, ...]) -> Expr:
    """``expr`` with its direct sub-expressions replaced by ``parts`` (same number, same order)."""
    # Written out, because `replace` takes three times as long.
    match expr:
        case Apply(primitive=primitive, dtype=dtype, span=span):
            return Apply(primitive, parts, dtype, span)
        case Read(tensor=tensor, indices=indices, boundaries=boundaries, dtype=dtype, span=span):
            fill = None if expr.fill is None else parts[-1]
            return Read(tensor, parts[: len(indices)], boundaries, dtype, fill, span)
        case Cast(dtype=dtype, span=span):
            return Cast(parts[0], dtype, span)
        case Let(name=name, span=span):
            return Let(name, parts[0], parts[1], span)
        case Reduction():
            return expr.with_parts(parts)
        case _:
            return expr


def map_children(expr: Expr, rule: Callable[[Expr], Expr]) -> Expr:
    """``expr`` with ``rule`` applied to its direct sub-expressions; ``expr`` itself if it returns each as it is."""
    parts = children(expr)
    return _with_parts(expr, parts, [rule(part) for part in parts]) if parts else expr


def _with_parts(expr: Expr, parts: tuple[Expr, ...], new: list[Expr]) -> Expr:
    return expr if all(map(is_, parts, new)) else rebuild(expr, tuple(new))


def transform(expr: Expr, rule: Callable[[Expr], Expr]) -> Expr:
    """Apply ``rule`` to every node, innermost first; ``rule`` returns its argument to leave a node as it is."""
    # Without functions inside, here and below: one that calls itself is garbage that only Python's collector finds.
    parts = children(expr)
    return rule(_with_parts(expr, parts, [transform(part, rule) for part in parts]) if parts else expr)


def walk(expr: Expr) -> Iterator[Expr]:
    """Every node of ``expr``, outermost first."""
    stack = [expr]
    while stack:
        part = stack.pop()
        yield part
        if type(part) not in LEAVES:
            stack.extend(children(part)[::-1])


def _parts(expr: Expr, kind: type) -> list[Any]:
    # The nodes of one kind, as `walk` meets them; written out, because nothing is asked more often.
    found: list[Any] = []
    stack = [expr]
    while stack:
        part = stack.pop()
        if type(part) is kind:
            found.append(part)
        if type(part) is Apply:
            stack.extend(part.arguments[::-1])
        elif type(part) not in LEAVES:
            stack.extend(children(part)[::-1])
    return found


def height(expr: Expr, most: int, parts: Callable[[Expr], tuple[Expr, ...]] = children) -> int:
    """How deeply ``expr`` is nested, not counted beyond ``most``."""
    level, found = [expr], 0
    while level and found < most:
        level = [part for node in level for part in parts(node)]
        found += 1
    return found


def reads(expr: Expr) -> Iterator[Read]:
    """Every `Read` in ``expr``, nested ones included."""
    if not isinstance(expr, Compound):
        return iter(() if type(expr) in LEAVES else _parts(expr, Read))
    try:
        return iter(expr._reads)
    except AttributeError:
        found = tuple(_parts(expr, Read))
        _KEEP_READS(expr, found)
        return iter(found)


def index_variables(expr: Expr) -> frozenset[str]:
    """The names of the index variables in ``expr``."""
    if type(expr) in LEAVES:
        return frozenset((expr.name,)) if type(expr) is IndexValue else frozenset()
    return frozenset([part.name for part in _parts(expr, IndexValue)])


def size_names(expr: Expr) -> frozenset[str]:
    """The names of the sizes in ``expr``."""
    return frozenset([part.name for part in _parts(expr, SizeValue)])


def locals_read(expr: Expr) -> frozenset[str]:
    """The names that ``expr`` reads from `Let`s around it."""
    match expr:
        case Local(name=name):
            return frozenset((name,))
        case Let(name=name, value=value, body=body):
            return locals_read(value) | (locals_read(body) - {name})
        case _:
            return frozenset().union(*map(locals_read, children(expr)))


def substitute(expr: Expr, replacements: dict[Expr, Expr]) -> Expr:
    """Replace leaves: ``substitute(e, {IndexValue("i"): IndexValue("z")})``. Keys are leaves, values any expression."""
    # Only leaves are looked up: hashing a tree takes time in proportion to its size.
    return _substituted(expr, replacements, {type(leaf) for leaf in replacements}) if replacements else expr


def _substituted(expr: Expr, replacements: dict[Expr, Expr], kinds: set[type]) -> Expr:
    if type(expr) not in LEAVES:
        parts = children(expr)
        expr = _with_parts(expr, parts, [_substituted(part, replacements, kinds) for part in parts])
    return replacements.get(expr, expr) if type(expr) in kinds else expr


def is_affine_index(expr: Expr) -> bool:
    """Whether ``expr`` depends on index variables and sizes only, so that the domain can speak of it.

    Such an index may still hold products of an index variable and a size; see `tcdsl.ranges`.
    """
    if type(expr) in LEAVES:
        return type(expr) is not Local
    for node in walk(expr):
        if isinstance(node, Apply):
            if not PRIMITIVES[node.primitive].index:
                return False
        elif not isinstance(node, Constant | SizeValue | IndexValue):
            return False
    return True


def is_plain_read(read: Read) -> bool:
    """Whether sets can speak of the cell that ``read`` finds, which is in range: no boundaries and no data indices."""
    return all(boundary is Boundary.SKIP for boundary in read.boundaries) and all(map(is_affine_index, read.indices))
