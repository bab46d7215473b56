"""Innermost loops whose steps may be made several at once, as the lanes of vectors.

::

    for j in range(n):
        y[i, j] = a[i] * x[i, j] + b[j]
        total += y[i, j]

Cells side by side are read and written at the place of the loop's variable along the last axis, forwards or backwards,
other cells are the same for all steps, and no step reads what another one writes, but for what names accumulate, which
may be used behind it in the same step. Tests choose among values, and say in which lanes something happens.

What such loops accumulate stays in lanes over all loops around in which nothing else knows it: where rows are short,
joining the lanes of each would take longer than adding it up. And where rows lie one behind the other in memory, which
strides tell when the code runs, loops along several axes are one loop (`flat_rows`). A loop that finds the first place
where something holds passes over what is before (`first_place`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import NoReturn

from tcdsl.ir.build import plain_read
from tcdsl.ir.dtypes import DTYPES, compute_dtype, is_floating, numpy_dtype
from tcdsl.ir.expressions import Apply, Cast, Constant, Expr, IndexValue, Local, Read, SizeValue, walk
from tcdsl.ir.primitives import LAZY
from tcdsl.ir.text.declined import Declined
from tcdsl.lowering.loopir.loops import Accumulate, Branch, Check, Define, LocalBuffer, Loop, Node, Store, Update
from tcdsl.lowering.loopir.traversal import own_expressions, walk_nodes
from tcdsl.targets.cpu.emission.primitive_code import ARITHMETIC, constant_exponent, primitive_code
from tcdsl.targets.cpu.emission.settled_names import Name, local_name
from tcdsl.targets.cpu.intrinsics.frame_memory import BufferKind

__all__ = ["Cell", "VectorLoop", "first_place", "flat_rows", "is_short", "part_of_row", "sums_across", "vector_loop"]

Cell = tuple[str, tuple[Expr, ...]]
"""A buffer, and where in it."""

# How sums are joined, by their accumulator.
_SUMS = {"add": "add", "subtract": "subtract", "multiply": "multiply", "max": "maximum", "min": "minimum"}
_TESTS = {"or": "or", "and": "and"}
_FEW = 32
"""So few steps, where their number is known, LLVM writes out one after the other, and does better then."""


@dataclass(frozen=True, slots=True)
class VectorLoop:
    """What is known of such a loop: how many bytes its widest cells take, what it accumulates, by which operation, and
    what of that its steps use, how much it computes, which cells all steps read or write, whatever tests say, those of
    which each step has the one before that of the last step, and whether it reads a row at several places. Steps that
    have loops accumulate in names of their ``own`` there.
    """

    cell: int
    sums: Mapping[Name, str]
    scans: frozenset[Name]
    work: int
    certain: frozenset[Cell]
    backwards: frozenset[Cell]
    shifted: bool
    own: frozenset[Name] = frozenset()


def vector_loop(
    loop: Loop,
    settled: Set[Name],
    kind_of: Callable[[str], BufferKind],
    adds: Callable[[Name], bool],
    *,
    masks: bool,
) -> VectorLoop | Declined:
    """What is known of ``loop``, if its steps may be lanes, or why not.

    The names that are ``settled`` have one value where they are used; ``kind_of`` says what buffers are, and ``adds``
    which names may accumulate in any order. Only with ``masks`` tests may keep cells from being read or written.
    """
    if loop.condition is not None:
        return Declined("each step says whether there is another one")
    if loop.step != 1:
        return Declined("its steps are {} apart", (loop.step,))
    if ("", loop.variable) not in settled:
        return Declined(_CARRIED, (loop.variable,))
    return _Steps(loop.variable, settled, kind_of, adds).of(loop.body, masks)


def sums_across(
    loop: Loop, known: Callable[[Loop], VectorLoop | Declined | None], adds: Callable[[Name], bool]
) -> dict[Name, list[VectorLoop]]:
    """The names that innermost loops in ``loop`` accumulate and nothing else in it knows, with these loops.

    ``known`` says what is known of a loop, and ``adds`` which names may accumulate in any order.
    """
    nodes = list(walk_nodes(loop.body))
    count = Counter(local_name(each.name, each.value.dtype) for each in nodes if isinstance(each, Accumulate))
    names = {name for name in count if adds(name)}
    if not names or any(isinstance(each, LocalBuffer) or (isinstance(each, Loop) and each.rounds) for each in nodes):
        return {}
    for node in nodes:
        for expr in own_expressions(node):
            names -= {local_name(part.name, part.dtype) for part in walk(expr) if isinstance(part, Local)}
        if isinstance(node, Define):
            names.discard(local_name(node.name, node.value.dtype))
    found: dict[Name, list[VectorLoop]] = {name: [] for name in names}
    for node in nodes:
        if names and isinstance(node, Loop) and not any(isinstance(each, Loop) for each in walk_nodes(node.body)):
            vectors = known(node)
            if vectors:
                for name in names.intersection(vectors.sums):
                    found[name].append(vectors)
    return {name: loops for name, loops in found.items() if len(loops) == count[name]}


def is_short(loop: Loop) -> bool:
    """Whether LLVM shall write out the steps of ``loop``, of which there are few."""
    match loop.start, loop.stop:
        case Constant(value=first), Constant(value=last):
            return bool(last - first < _FEW)
    return False


def first_place(loop: Loop) -> Expr | None:
    """The condition of which ``loop`` finds the first step where it holds, if it does nothing else."""
    match loop.body:
        case (Branch(condition=condition, body=(Accumulate(accumulate="min", value=value),), otherwise=()),):
            return condition if value == IndexValue(loop.variable) else None
    return None


def part_of_row(condition: Expr, variable: str) -> tuple[Expr, Expr] | None:
    """Between which ends ``variable`` is where ``condition`` holds, if it says nothing else."""
    here = IndexValue(variable)
    match condition:
        case Apply(
            primitive="and_",
            arguments=(Apply(primitive="le", arguments=(first, low)), Apply(primitive="lt", arguments=(high, stop))),
        ) if low == high == here:
            return first, stop
    return None


def flat_rows(loop: Loop, kind_of: Callable[[str], BufferKind]) -> tuple[list[Loop], set[Cell]] | None:
    """``loop`` and the loops in it, each the body of the one around, whose variables name the last axes of all cells
    that they read or write one by one; and these cells. None if there are others.
    """
    loops = [loop]
    while len(loops[-1].body) == 1 and isinstance(loops[-1].body[0], Loop):
        loops.append(loops[-1].body[0])
    *_, last = loops
    names = [each.variable for each in loops]
    if len(loops) == 1 or len(set(names)) < len(names) or any(isinstance(each, Loop) for each in walk_nodes(last.body)):
        return None
    if any(each.step != 1 or each.kind != "serial" or each.rounds or each.condition or each.seldom for each in loops):
        return None
    if len(loops) > 2 and not all(isinstance(each.start, Constant) and not each.start.value for each in loops[1:]):
        return None  # parts of rows
    bounds = [bound for each in loops[1:] for bound in (each.start, each.stop)]
    cells = _cells_along(last.body, [IndexValue(name) for name in names], bounds, kind_of)
    if not cells or not all(kind_of(buffer).contiguous and not kind_of(buffer).checked for buffer, _ in cells):
        return None
    return loops, cells


def _cells_along(
    body: Sequence[Node], along: list[IndexValue], bounds: Sequence[Expr], kind_of: Callable[[str], BufferKind]
) -> set[Cell] | None:
    # The cells at the place of ``along``, on their last axes; None if anything else names it, or may be among them.
    names = {each.name for each in along}
    cells: list[Cell] = []
    written: set[int] = set()
    named = sum([_count(bound, names) for bound in bounds])
    for node in walk_nodes(body):
        if not isinstance(node, Define | Accumulate | Store | Update | Branch):
            return None
        if isinstance(node, Store | Update):
            cells.append((node.buffer, node.indices))
            written.add(kind_of(node.buffer).slot)
        for expr in own_expressions(node):
            named += _count(expr, names)
            cells += [(part.tensor, part.indices) for part in walk(expr) if isinstance(part, Read)]
    varying = [cell for cell in cells if any(_count(index, names) for index in cell[1])]
    if any(list(indices[-len(along) :]) != along for _, indices in varying) or named != len(varying) * len(along):
        return None
    for slot in written:
        if len({indices for buffer, indices in cells if kind_of(buffer).slot == slot}) > 1:
            return None
    return set(varying)


def _count(expr: Expr, names: Set[str]) -> int:
    return sum([isinstance(part, IndexValue) and part.name in names for part in walk(expr)])


_CARRIED = "each step goes on with {} from the one before"
_INNER = "the loops in it are more than sums"
_WIDE = "{} is wider than a lane"


class _NoVectorsError(Exception):
    def __init__(self, declined: Declined) -> None:
        self.declined = declined


class _Steps:
    def __init__(
        self,
        variable: str,
        settled: Set[Name],
        kind_of: Callable[[str], BufferKind],
        adds: Callable[[Name], bool],
    ) -> None:
        self._variable = variable
        self._settled = settled
        self._kind_of = kind_of
        self._adds = adds
        self._cell = 0
        self._work = 0
        self._sums: dict[Name, str] = {}
        #: Those of them that steps use, and those that only some steps know.
        self._scans: set[Name] = set()
        self._hidden: set[Name] = set()
        #: What each step accumulates for itself, in loops of its own.
        self._own: set[Name] = set()
        #: The names that have another value in each step, and those that are used.
        self._names = {("", variable)}
        self._used: set[Name] = set()
        #: Where along the last axis each buffer is read and written, by its slot; and the buffers that are written.
        self._places: dict[int, set[Cell | None]] = {}
        self._written: set[int] = set()
        #: How many tests stand around; what is read and written whatever they say, and what is so because of them.
        self._tests = 0
        self._certain: set[Cell] = set()
        self._backwards: set[Cell] = set()
        self._uncertain: set[Cell | None] = set()

    def of(self, body: Sequence[Node], masks: bool) -> VectorLoop | Declined:
        try:
            if any(isinstance(node, Loop) for node in body):
                self._with_loops(body)
            else:
                for node in body:
                    self._node(node)
        except _NoVectorsError as error:
            return error.declined
        apart = next((slot for slot in self._written if len(self._places[slot]) > 1), None)
        if apart is not None:
            names = {cell[0] for cell in self._places[apart] if cell is not None}
            return Declined("a step may touch cells of {} that another one writes", (" and ".join(sorted(names)),))
        if not self._cell:
            return Declined("no cells lie side by side")
        if not (masks or self._uncertain <= self._certain):
            return Declined("tests leave cells out, which the processor has no masks for")
        if any(self._sums[name] in _TESTS for name in self._sums.keys() - self._scans):
            return Declined("it looks for the first step where a test holds")
        cells = frozenset(self._certain), frozenset(self._backwards)
        shifted = any(len(places - {None}) > 1 for places in self._places.values())
        own = frozenset(self._own)
        return VectorLoop(self._cell, self._sums, frozenset(self._scans), self._work, *cells, shifted, own)

    def _require(self, condition: bool, reason: str, *about: Expr | str) -> None:
        if not condition:
            self._decline(reason, *about)

    def _decline(self, reason: str, *about: Expr | str) -> NoReturn:
        raise _NoVectorsError(Declined(reason, about))

    def _node(self, node: Node) -> None:
        match node:
            case Define(value=value):
                name = local_name(node.name, value.dtype)
                self._require(name in self._settled, _CARRIED, node.name)
                self._value(value)
                self._names.add(name)
            case Accumulate(value=value):
                self._sum(local_name(node.name, value.dtype), node.accumulate, value)
            case Store(buffer=buffer, indices=indices, value=value):
                self._value(value)
                self._store(buffer, indices)
            case Update(buffer=buffer, indices=indices, value=value):
                self._value(value)
                self._work += node.accumulate not in ARITHMETIC
                self._store(buffer, indices)
            case Branch(condition=condition, body=body, otherwise=otherwise):
                self._value(condition)
                self._tests += 1
                for each in (*body, *otherwise):
                    self._node(each)
                self._tests -= 1
            case _:
                if isinstance(node, Check):
                    self._decline("each step checks where {} is, which data say", node.tensor)
                self._decline("it has more than sums and stores")

    def _with_loops(self, body: Sequence[Node]) -> None:
        # Each step defines what it accumulates, in loops that are the same for all steps, and stores it.
        for node in body:
            match node:
                case Define(value=value) if local_name(node.name, value.dtype) not in self._settled:
                    self._value(value)
                    self._own.add(local_name(node.name, value.dtype))
                    self._names.add(local_name(node.name, value.dtype))
                case Loop():
                    self._inner(node)
                case _:
                    self._require(isinstance(node, Define | Store), _INNER)
                    self._node(node)

    def _inner(self, loop: Loop) -> None:
        self._require(loop.kind == "serial" and not loop.rounds and loop.condition is None, _INNER)
        varies = self._varies(loop.start) or self._varies(loop.stop)
        name = loop.variable
        self._require(not varies, "the loop over {} in it has other ends in each step", name)
        self._require(("", name) in self._settled, _CARRIED, name)
        for node in loop.body:
            match node:
                case Loop():
                    self._inner(node)
                case Branch(condition=condition, body=body, otherwise=()):
                    ends = part_of_row(condition, self._variable)
                    self._require(ends is not None and not any(map(self._varies, ends or ())), _INNER)
                    self._tests += 1
                    self._inner(replace(loop, body=body))
                    self._tests -= 1
                case Accumulate(value=value):
                    own = local_name(node.name, value.dtype) in self._own
                    self._require(own and node.accumulate in _SUMS and value.dtype != "bool", _INNER)
                    self._value(value)
                case _:
                    self._require(isinstance(node, Define), _INNER)
                    self._node(node)

    def _sum(self, name: Name, accumulate: str, value: Expr) -> None:
        # In one node, before all that uses it.
        joins = _TESTS if name[0] == "bool" else _SUMS
        self._require(accumulate in joins and self._adds(name) and name not in self._sums, _CARRIED, name[1])
        self._value(value)
        self._require(name not in self._used, _CARRIED, name[1])
        self._sums[name] = joins[accumulate]
        if self._tests:
            self._hidden.add(name)
        self._names.add(name)
        self._cell = max(self._cell, numpy_dtype(compute_dtype(value.dtype)).itemsize)
        self._work += 1

    def _store(self, buffer: str, indices: tuple[Expr, ...]) -> None:
        self._require(self._read(buffer, indices), "all steps write one cell of {}", buffer)
        self._written.add(self._kind_of(buffer).slot)
        if self._tests:
            # What must not be stored is the affair of masks.
            self._uncertain.add(None)

    def _read(self, buffer: str, indices: tuple[Expr, ...]) -> bool:
        # Whether the steps read cells side by side; else all of them read one.
        kind = self._kind_of(buffer)
        self._require(not kind.checked, "every access is checked")
        for index in indices:
            for part in walk(index):
                if isinstance(part, Read):
                    if self._read(part.tensor, part.indices):
                        self._decline("data say where {} is in each step", plain_read(buffer, indices, kind.dtype))
                else:
                    self._uses(part)
        # Rows are apart or the same: where the last axes agree, no step meets another one.
        self._places.setdefault(kind.slot, set()).add((buffer, indices[-1:]))
        (self._uncertain if self._tests else self._certain).add((buffer, indices))
        varying = [index for index in indices if self._varies(index)]
        if not varying:
            # Beside rows it may be among their cells.
            self._places[kind.slot].add(None)
            return False
        step = self._step(indices[-1])
        if not kind.contiguous or len(varying) != 1 or varying[0] is not indices[-1] or step == 0:
            self._decline("steps do not find {} side by side", plain_read(buffer, indices, kind.dtype))
        if step < 0:
            self._backwards.add((buffer, indices))
        self._cell = max(self._cell, numpy_dtype(kind.dtype).itemsize)
        return True

    def _uses(self, expr: Expr) -> None:
        if isinstance(expr, Local):
            name = local_name(expr.name, expr.dtype)
            self._used.add(name)
            if name in self._sums:
                self._require(name not in self._hidden, _CARRIED, name[1])
                self._scans.add(name)

    def _varies(self, expr: Expr) -> bool:
        return any(
            ("", part.name) in self._names
            if isinstance(part, IndexValue)
            else isinstance(part, Local) and local_name(part.name, part.dtype) in self._names
            for part in walk(expr)
        )

    def _step(self, index: Expr) -> int:
        # By how much it is larger in each step; 0 if that is neither 1 nor -1.
        match index:
            case IndexValue(name=name):
                return int(name == self._variable)
            case Apply(primitive="add" | "sub" as primitive, arguments=(left, right)):
                if not self._varies(right):
                    return self._step(left)
                if not self._varies(left):
                    return self._step(right) if primitive == "add" else -self._step(right)
        return 0

    def _value(self, expr: Expr) -> None:
        match expr:
            case Constant() | SizeValue() | IndexValue():
                self._require(expr.dtype in DTYPES, _WIDE, expr)
            case Local():
                self._uses(expr)
            case Read(tensor=buffer, indices=indices):
                self._read(buffer, indices)
            case Cast(operand=operand, dtype=dtype):
                self._require(dtype in DTYPES, _WIDE, expr)
                self._work += 1
                self._value(operand)
            case Apply(primitive=primitive, arguments=(first, *others)) if primitive in LAZY:
                self._work += primitive == "where"
                self._value(first)
                self._tests += 1
                for part in others:
                    self._value(part)
                self._tests -= 1
            case Apply(primitive=primitive, arguments=arguments):
                code = primitive_code(primitive)
                # Exponents of whole numbers take loops of their own.
                steps = primitive != "pow" or is_floating(expr.dtype) or constant_exponent(expr) is not None
                self._require(code.steps and steps, "{} takes steps of its own", expr)
                self._work += code.work
                for argument in arguments:
                    self._value(argument)
            case _:
                self._decline(_WIDE, expr)
