"""How many bits index arithmetic takes: 64 where that suffices, else as many as the largest value needs.

No index wraps around, so none that is out of range can touch memory. What an index is made of is known: the type of the
data in it, its constants, the bounds of the loops around it, and that no size is larger than the kernel's limit, which
is checked once per call. From that follows how large each part of it can be, and where all parts fit into an int64,
which is nearly everywhere, the code is what it would be anyhow. Elsewhere it is computed in a wider type: `x[2 * b[i]]`
with b of int64 as ``2 * int128(b[i])``. This is the only place that decides it.

Three kinds of expressions are exact: those of type ``integer``; what index variables and sizes make, where an axis is
indexed with it or two of them are compared; and bounds of loops. Everything else is a value, and wraps around as
NumPy's do. An index that is known to be in range may be computed modulo 2**64 where only sums and products lead to it.
So may one that is checked, if no number that is out of range is congruent to one in range: ``j - 1`` for a j of int64.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

from tcdsl.errors import Diagnostic, ShapeError
from tcdsl.ir.build import cast, in_range
from tcdsl.ir.dtypes import INTEGER, is_integer
from tcdsl.ir.expressions import (
    Apply,
    Cast,
    Constant,
    Expr,
    IndexValue,
    Local,
    Read,
    SizeValue,
    is_affine_index,
    map_children,
    rebuild,
    walk,
)
from tcdsl.ir.nodes import replace
from tcdsl.ir.primitives import PRIMITIVES
from tcdsl.ir.program import AxisExtent, Program
from tcdsl.lowering.loopir.intervals import Interval, interval_of, interval_of_dtype
from tcdsl.lowering.loopir.kinds import EqualNests
from tcdsl.lowering.loopir.loops import Accumulate, Check, Define, Loop, Nest, Node, Procedure
from tcdsl.lowering.loopir.traversal import blocks, rewritten, sizes_of, walk_nodes, with_expressions

__all__ = ["LARGEST_SIZE", "procedure_with_index_widths", "size_intervals", "with_index_widths"]

LARGEST_SIZE = 2**63 - 1
"""No size is larger: it would not fit into an int64."""

# The limits that a kernel may ask of its sizes, in bits: the first with which indices need to be no wider than with the
# last, so that only products of sizes lower it.
_LIMITS = (48, 40, 31, 24, 20, 15)
_INT64 = interval_of_dtype("int64")
_NARROW = 64
_RING = frozenset(("add", "sub", "mul", "neg"))
# Checks report values of up to this many bits.
_WIDEST = 448
# No array has more cells than there are addresses.
_CELLS = 2**57


def procedure_with_index_widths(procedure: Procedure, program: Program) -> Procedure:
    """``procedure`` with a type for all index arithmetic. Its sizes are extents of views, so nothing limits them more
    than memory does.
    """
    widths = _Widths(program, _CELLS)
    widths.sizes = dict.fromkeys(sizes_of(procedure), Interval(0, _CELLS))
    return replace(procedure, body=widths.body(procedure.body))


def size_intervals(program: Program, largest: int | None = None) -> dict[str, Interval]:
    """What the sizes of a kernel for ``program`` can be: up to ``largest``, or up to the limit that it will have."""
    most = 2 ** _LIMITS[0] if largest is None else largest
    return {size.name: Interval(0 if isinstance(size.source, AxisExtent) else -most, most) for size in program.sizes}


RoundBounds = tuple[tuple[str, Expr | None], ...]
"""Of each loop of rounds the name of the number, which is a size, and how many rounds there are at most, if known."""


def with_index_widths(
    nests: Sequence[Nest], program: Program, largest: int | None = None, rounds: RoundBounds = ()
) -> tuple[list[Nest], int]:
    """``nests`` with a type for all index arithmetic, and the limit for their sizes: ``largest``, if given."""
    equal = EqualNests.of(nests, {})
    made, limit = _with_widths(equal.firsts, program, largest, rounds)
    return equal.spread(made), limit


def _with_widths(
    nests: Sequence[Nest], program: Program, largest: int | None, rounds: RoundBounds
) -> tuple[list[Nest], int]:
    if largest is not None:
        widths = _Widths(program, largest, rounds)
        return [widths.nest(nest) for nest in nests], largest
    limits = [_Widths(program, 2**bits, rounds) for bits in _LIMITS]
    written: list[Nest] = []
    wide: dict[int, list[Expr]] = {}
    for position, nest in enumerate(nests):
        limits[0].chosen = {}
        written.append(limits[0].nest(nest))
        parts = [expr for expr, width in limits[0].chosen.items() if width > _NARROW]
        if parts:
            wide[position] = parts
    # With smaller sizes nothing is wider, so that only what is wide is asked again.
    number = 0
    for position, parts in wide.items():
        number = _last_that_helps(limits, number, nests[position], parts)
    if number:
        for position in wide:
            written[position] = limits[number].nest(nests[position])
    return written, limits[number].largest


def _last_that_helps(limits: Sequence[_Widths], first: int, nest: Nest, parts: Sequence[Expr]) -> int:
    # The first limit from there on with which the parts are no wider than with the last one.
    least = limits[-1].widths_of(nest, parts)
    return bisect_left(limits[:-1], True, first, key=lambda each: each.widths_of(nest, parts) == least)


@dataclass(slots=True)
class _Widths:
    """Rewrites nests for sizes of at most ``largest``. ``chosen`` are the widths of exact expressions."""

    program: Program
    largest: int
    rounds: RoundBounds = ()
    chosen: dict[Expr, int] = field(default_factory=dict)
    sizes: dict[str, Interval] = field(default_factory=dict)
    variables: dict[str, Interval] = field(default_factory=dict)
    locals: dict[str, Interval] = field(default_factory=dict)
    indices: set[str] = field(default_factory=set)
    # Positions that are checked, what they are, and what of that is exact.
    checked: dict[str, Expr] = field(default_factory=dict)
    # Names that were used before all was known of them: scalars that a loop carries on, and what is defined again.
    early: set[str] = field(default_factory=set)
    # What was found for the parts of expressions: of those of sizes alone, and of others, until more is known of names.
    # Numbers of blocks are large expressions in which the same parts come back many times.
    lasting: dict[Expr, tuple[Interval, Interval]] = field(default_factory=dict)
    measured: dict[Expr, tuple[Interval, Interval]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.sizes.update(size_intervals(self.program, self.largest))
        for name, most in self.rounds:
            last = _INT64.high if most is None else min(self.interval(most).high, _INT64.high)
            self.sizes[name] = Interval(0, max(last - 1, 0))
            self.lasting.clear()

    def nest(self, nest: Nest) -> Nest:
        return replace(nest, code=self.body(nest.body))

    def widths_of(self, nest: Nest, parts: Sequence[Expr]) -> list[int]:
        """The bits that exact expressions of ``nest`` need."""
        self._find_locals(nest.body)
        self._find_checked(nest.body)
        return [self.needed(part) for part in parts]

    def body(self, nodes: Sequence[Node]) -> tuple[Node, ...]:
        self._find_locals(nodes)
        self._find_checked(nodes)
        return rewritten(nodes, lambda node: (self.node(node),))

    # What scalars and loop variables can be.

    def _find_locals(self, nodes: Sequence[Node]) -> None:
        # A scalar that is defined in several places holds what any of them gives it. Definitions come before uses, but
        # for scalars that a loop carries on, which may be anything.
        self.locals.clear()
        self.variables.clear()
        self.measured.clear()
        self.indices = {node.name for node in walk_nodes(nodes) if isinstance(node, Define) and node.index}
        integers = [
            node
            for node in walk_nodes(nodes)
            if isinstance(node, Define | Accumulate | Loop) and (isinstance(node, Loop) or is_integer(node.value.dtype))
        ]
        known = {node.variable if isinstance(node, Loop) else node.name for node in integers}
        first = True
        # What goes on growing is anything, and what is made of it follows.
        for _ in integers:
            for _ in range(3):
                before = dict(self.locals)
                self.early.clear()
                for node in integers:
                    self._hold_what_it_gives(node)
                if self.locals == before or (first and known.isdisjoint(self.early)):
                    return
                first = False
            scalars = [node for node in integers if isinstance(node, Define) and node.value.dtype != INTEGER]
            for node in scalars:
                if self.locals[node.name] != before[node.name]:
                    self._hold(self.locals, node.name, interval_of_dtype(node.value.dtype))

    def _hold_what_it_gives(self, node: Define | Accumulate | Loop) -> None:
        match node:
            case Loop():
                self._enter(node)
            case Accumulate(name=name, value=value):
                self._hold(self.locals, name, interval_of_dtype(value.dtype))
            case Define(name=name, value=value):
                given = self._measured(value)[0].within(_INT64) if node.index else self.interval(value)
                self._hold(self.locals, name, self.locals.get(name, given).union(given))

    def _hold(self, held: dict[str, Interval], name: str, values: Interval) -> None:
        if held.get(name) != values:
            if name in held:
                self.early.add(name)
            held[name] = values
            self.measured.clear()

    def _enter(self, loop: Loop) -> None:
        start, stop = self.interval(loop.start), self.interval(loop.stop)
        held = Interval(start.low, max(start.low, stop.high - 1)).within(_INT64)
        self._hold(self.variables, loop.variable, held.union(self.variables.get(loop.variable, held)))

    def _find_checked(self, nodes: Sequence[Node]) -> None:
        # The positions that may be computed modulo 2**64. Behind the checks they are in range.
        self.checked = {}
        defined = Counter(node.name for node in walk_nodes(nodes) if isinstance(node, Define))
        for block in blocks(nodes):
            for node, following in pairwise(block):
                match node, following:
                    case Define(name=name, value=value), Check(condition=condition, extent=extent) if (
                        value.dtype == INTEGER
                        and defined[name] == 1
                        and condition == in_range(Local(name, INTEGER), extent)
                        and self._is_told_apart(value, self.interval(extent))
                    ):
                        self.checked[name] = value
        for name in self.checked:
            self.locals[name] = Interval(0, _INT64.high)
        self.measured.clear()

    def _is_told_apart(self, expr: Expr, extent: Interval) -> bool:
        # Whether no value out of range is congruent to one in range.
        held = self.interval(expr)
        if held.bits <= _NARROW or held.high >= 2**64 or held.low < extent.high - 2**64:
            return False
        return all(part.primitive in _RING for part in walk(expr) if isinstance(part, Apply) and part.dtype == INTEGER)

    def interval(self, expr: Expr) -> Interval:
        """What ``expr`` can be, as a value of its type."""
        if expr.dtype == INTEGER and not isinstance(expr, Local):
            return self._measured(expr)[0]
        match expr:
            case Constant(value=value):
                found = Interval(int(value), int(value))
            case SizeValue(name=name):
                return self.sizes[name]
            case IndexValue(name=name):
                return self.variables.get(name, _INT64)
            case Local(name=name, dtype=dtype):
                if name in self.locals:
                    return self.locals[name]
                self.early.add(name)
                return interval_of_dtype(dtype)
            case Cast(operand=operand, dtype=dtype) if is_integer(operand.dtype):
                found = self.interval(operand)
            case Apply(primitive=primitive, arguments=arguments) if _is_index_arithmetic(expr):
                whole, around = self._measured(expr)
                if _INT64.low <= around.low and around.high <= _INT64.high:
                    return whole  # no part of it wraps around
                found = interval_of(primitive, list(map(self.interval, arguments)))
            case _:
                return interval_of_dtype(expr.dtype)
        every = interval_of_dtype(expr.dtype)
        return found if every.low <= found.low and found.high <= every.high else every

    def node(self, node: Node) -> Node:
        match node:
            case Define(name=name) if name in self.checked:
                return Define(name, Cast(self.built(self.checked[name], "uint64"), "int64"))
            case Define(name=name, value=value) if value.dtype == INTEGER:
                return Define(name, self.typed(value, self.width(self.locals[name].bits)))
            case Define() if node.index:
                return replace(node, value=self.bound(node.value))
            case Check():
                exact = self.checked.get(node.value.name, node.value) if isinstance(node.value, Local) else node.value
                found = self.typed(exact) if exact.dtype == INTEGER else self.value(exact)
                if found.dtype.startswith("int") and int(found.dtype.removeprefix("int")) > _WIDEST:
                    fact = f"the index of axis {node.axis} of `{node.tensor}` may have more than {_WIDEST} bits"
                    raise Diagnostic(ShapeError, fact, node.span, hint="multiply fewer numbers").error()
                return replace(node, condition=self.value(node.condition), value=found, extent=self.value(node.extent))
            case _:
                return with_expressions(node, self.value, self.cell, self.bound)

    def bound(self, expr: Expr) -> Expr:
        """A bound of loops. One that int64 cannot hold is that of a loop that does not run, or does not end."""
        width = self.needed(expr)
        if width == 64:
            return self.value(expr)
        dtype = f"int{width}"
        low, high = (Constant(end, dtype) for end in _INT64)
        inside = Apply("max", (Apply("min", (self.built(expr, dtype), high), dtype), low), dtype)
        return Cast(inside, "int64")

    # Expressions.

    def value(self, expr: Expr) -> Expr:
        """A value, whose comparisons of indices are exact, as are the indices of what it reads."""
        match expr:
            case Read(indices=indices) if indices:
                return replace(expr, indices=tuple(map(self.cell, indices)))
            case Constant(value=value, dtype="int64"):
                return expr if _INT64.low <= value <= _INT64.high else replace(expr, value=_wrapped(int(value)))
            case Local(name=name, dtype=dtype) if dtype == INTEGER:
                return Local(name, self.width(self.locals[name].bits), expr.span)
            case Apply(arguments=arguments) if self._compares_indices(expr):
                dtype = f"int{max(map(self.needed, arguments))}"
                return rebuild(expr, tuple(self.built(part, dtype) for part in arguments))
            case Cast(operand=operand) if operand.dtype == INTEGER:
                return cast(self.typed(operand), expr.dtype)
            case _:
                return map_children(expr, self.value)

    def cell(self, index: Expr) -> Expr:
        """An index that is in range, as an int64."""
        if index.dtype == INTEGER:
            return cast(self.typed(index), "int64")
        match index:
            case Apply(primitive=primitive, arguments=arguments) if primitive in _RING and self._is_index(index):
                return rebuild(index, tuple(map(self.cell, arguments)))
            case Apply() if self._is_index(index):
                return cast(self.typed(index), "int64")
            case _:
                return self.value(index)

    def typed(self, expr: Expr, dtype: str = "int64") -> Expr:
        """An exact expression in the narrowest type that holds all of its parts, converted to ``dtype`` if that is
        wider, or if it holds the result.
        """
        made = self.built(expr, f"int{self.needed(expr)}")
        if made.dtype == dtype:
            return made
        narrower = dtype != "int64" or self.interval(expr).bits <= 64
        return Cast(made, dtype) if narrower else made

    def width(self, bits: int) -> str:
        return f"int{64 * -(-bits // 64)}"

    def needed(self, expr: Expr) -> int:
        """The bits that the parts of an exact expression need, a multiple of 64."""
        width = self.chosen[expr] = 64 * -(-self._measured(expr)[1].bits // 64)
        return width

    def _measured(self, expr: Expr) -> tuple[Interval, Interval]:
        # What it can be without wrapping around, and an interval around that and around all parts.
        match expr:
            case Apply(primitive=primitive, arguments=arguments) if _is_index_arithmetic(expr):
                memory = self.lasting if _is_of_sizes(expr) else self.measured
                known = memory.get(expr)
                if known is None:
                    parts, around = zip(*map(self._measured, arguments), strict=True)
                    found = interval_of(primitive, parts)
                    lows, highs = zip(found, *around, strict=True)
                    known = memory[expr] = found, Interval(min(lows), max(highs))
                return known
            case Cast(operand=operand, dtype=dtype) if dtype == INTEGER:
                if self._is_index(operand):
                    return self._measured(operand)
                found = self.interval(operand)
            case Constant(value=value):
                found = Interval(int(value), int(value))
            case _:
                found = self.interval(expr)
        return found, found

    def built(self, expr: Expr, dtype: str) -> Expr:
        """An exact expression computed in ``dtype``."""
        match expr:
            case Constant(value=value):
                return Constant(int(value) % 2**64 if dtype == "uint64" else int(value), dtype, expr.span)
            case Cast(operand=operand) if expr.dtype == INTEGER:
                return self.built(operand, dtype) if self._is_index(operand) else cast(self.value(operand), dtype)
            case Apply(primitive="where", arguments=(condition, *branches)) if _is_index_arithmetic(expr):
                chosen, other = (self.built(part, dtype) for part in branches)
                return Apply("where", (self.value(condition), chosen, other), dtype, expr.span)
            case Apply(arguments=arguments) if _is_index_arithmetic(expr):
                return Apply(expr.primitive, tuple(self.built(part, dtype) for part in arguments), dtype, expr.span)
            case _:
                return cast(self.value(expr), dtype)

    def _is_index(self, expr: Expr) -> bool:
        # Made of index variables, sizes, and the positions and bounds that lowering defines.
        match expr:
            case Local(name=name):
                return name in self.indices
            case Apply():
                return PRIMITIVES[expr.primitive].index and all(map(self._is_index, expr.arguments))
            case _:
                return is_affine_index(expr)

    def _compares_indices(self, expr: Apply) -> bool:
        if PRIMITIVES[expr.primitive].kind != "compare":
            return False
        dtypes = {argument.dtype for argument in expr.arguments}
        return INTEGER in dtypes or (dtypes == {"int64"} and all(map(self._is_index, expr.arguments)))


@lru_cache(maxsize=4096)
def _is_of_sizes(expr: Apply) -> bool:
    return all(isinstance(part, Apply | Constant | SizeValue) for part in walk(expr))


def _is_index_arithmetic(expr: Apply) -> bool:
    if expr.dtype == INTEGER:
        return True
    known = PRIMITIVES[expr.primitive].index or expr.primitive in ("where", "abs", "square", "id")
    return known and expr.dtype == "int64"


def _wrapped(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63
