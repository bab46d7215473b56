"""Loop nests: what lowering makes of a program and code generation prints.

Scalar expressions are those of `tcdsl.ir.expressions`: here an `IndexValue` is a loop variable, a `Local` is a scalar
that `Define` made, and a `Read` names a *buffer*, is in range, and has only ``SKIP`` boundaries. Everything else
(boundaries, checks, starts, snapshots) has become loops, branches and stores.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from tcdsl.ir.expressions import Expr
from tcdsl.ir.nodes import Hashed, node_class
from tcdsl.ir.program import Program
from tcdsl.ir.text.declined import Declined
from tcdsl.span import Span

__all__ = [
    "Accumulate",
    "Branch",
    "Buffer",
    "BufferView",
    "Check",
    "Define",
    "EqualNodes",
    "Kernel",
    "LocalBuffer",
    "Loop",
    "LoopKind",
    "Nest",
    "Node",
    "Procedure",
    "ProcedureCall",
    "RepeatedNests",
    "Rounds",
    "Step",
    "Store",
    "Update",
    "loops_over",
    "nests_of",
    "spans_of",
    "with_step",
]


LoopKind = Literal["serial", "parallel", "vector"]
"""Which orders the iterations of a loop may run in: see `Loop`."""


@node_class
@dataclass(frozen=True, slots=True)
class Buffer(Hashed):
    """Memory for one or more tensors of a program whose cells may share it.

    ``kind`` is ``input`` (read only), ``update`` (an input's memory, written), ``output`` or ``temporary`` (allocated
    for the call, row-major). ``dtype`` is the stored type.
    """

    name: str
    dtype: str
    shape: tuple[Expr, ...]
    kind: str
    tensors: tuple[str, ...]


@node_class
@dataclass(frozen=True, slots=True)
class Loop(Hashed):
    """``for variable in range(start, stop, step)``.

    ``kind``: the iterations of a ``serial`` loop run in order. Those of a ``parallel`` one may run in any order and on
    any thread. Those of a ``vector`` one, of which there is a known number at most, may run at once, in lanes: its
    scalars are its own, and its body holds sums and loops whose bounds are the same in all lanes.

    ``rounds`` says that it is a loop of the program, and what users call its variable. It may run for long, so that an
    interrupt ends it. With a ``condition`` it ends before the first iteration where that does not hold.

    A ``seldom`` loop takes little of a nest's time: short code for it is better than fast code.
    """

    variable: str
    start: Expr
    stop: Expr
    step: int
    body: tuple[Node, ...]
    kind: LoopKind = "serial"
    rounds: str = ""
    condition: Expr | None = None
    seldom: bool = False


@dataclass(frozen=True, slots=True)
class Branch:
    """``if condition: body else: otherwise``."""

    condition: Expr
    body: tuple[Node, ...]
    otherwise: tuple[Node, ...] = ()


@node_class
@dataclass(frozen=True, slots=True)
class Define(Hashed):
    """``name = value``: a scalar local, of the value's type; defined again, it is overwritten.

    ``index`` says that it is a position or a bound of loops, so that it is exact and does not wrap around as values do.
    """

    name: str
    value: Expr
    index: bool = False


@node_class
@dataclass(frozen=True, slots=True)
class Accumulate(Hashed):
    """``name <accumulate>= value`` on a scalar local."""

    name: str
    accumulate: str
    value: Expr


@node_class
@dataclass(frozen=True, slots=True)
class Store(Hashed):
    """``buffer[indices] = value``, converted to the buffer's type."""

    buffer: str
    indices: tuple[Expr, ...]
    value: Expr


@node_class
@dataclass(frozen=True, slots=True)
class Update(Hashed):
    """``buffer[indices] <accumulate>= value``."""

    buffer: str
    indices: tuple[Expr, ...]
    accumulate: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Check:
    """Stop the program unless ``condition`` holds, with the error of `tcdsl.ir.interpreter.index_faults` for ``value``:
    a data index out of range, or what the user raises; cells written twice where ``axis`` is `UNIQUE_AXIS`.

    ``tensor`` is the user's name of the tensor indexed, ``axis`` the axis, ``extent`` its extent.
    """

    condition: Expr
    tensor: str
    axis: int
    value: Expr
    extent: Expr
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class LocalBuffer:
    """``local name: dtype[shape]``: a small array that each run of this node has for itself, undefined at first.

    What follows in the same block reads and writes it by its name, which is its own in the kernel. ``bounds`` are
    constants that the extents never exceed, so that its memory is known when code is generated.
    """

    name: str
    dtype: str
    shape: tuple[Expr, ...]
    bounds: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BufferView:
    """``A[i : i + 6, k]``: a box of a buffer as an array: ``BufferView("A", (i, k), (6, None))``.

    Along each axis it begins at a start and has an extent; an axis whose extent is ``None`` is none of the view's.
    """

    buffer: str
    starts: tuple[Expr, ...]
    extents: tuple[Expr | None, ...]


@dataclass(frozen=True, slots=True)
class ProcedureCall:
    """``procedure(reads) -> writes``: run a procedure of the kernel on views.

    A view that is written, which may be read too, shares no cell with another view of the call.
    """

    procedure: str
    reads: tuple[BufferView, ...]
    writes: tuple[BufferView, ...]

    @property
    def views(self) -> tuple[BufferView, ...]:
        """All views, in the order of the procedure's parameters."""
        return (*self.reads, *self.writes)


Node = Loop | Branch | Define | Accumulate | Store | Update | Check | LocalBuffer | ProcedureCall


@dataclass(frozen=True, slots=True)
class Procedure:
    """A named kernel that nests call on views: its body is a nest over its parameters, and knows nothing else.

    ``parameters`` are of the kinds ``input`` and ``update``, in this order. Where the shape of one is a bare size, the
    view says what it is. The body holds no checks, because errors show where the loops of a nest stand.

    One of ``host`` code has no body: the function that its first parameter names (`tcdsl.ir.interpreter.host_code`) is
    called on those between, and the last is 0 after it, or 1 if it has raised.
    """

    name: str
    parameters: tuple[Buffer, ...]
    body: tuple[Node, ...]
    host: bool = False


@node_class
@dataclass(frozen=True, slots=True)
class Step(Hashed):
    """``Step("order", "i k j")``: a primitive, and what it does with the loops of a nest; one line of a schedule."""

    primitive: str
    what: str

    def __str__(self) -> str:
        return f"{self.primitive:8} {self.what}"


class EqualNodes(ABC):
    """The nodes of a nest that are those of an equal one under other names, written out where they are asked for."""

    __slots__ = ()

    @property
    @abstractmethod
    def nodes(self) -> tuple[Node, ...]:
        """The nodes under their own names."""


@node_class
@dataclass(frozen=True, slots=True)
class Nest(Hashed):
    """A body that runs as one unit: one generated function.

    ``title`` is the index notation of the statements it serves. If the outermost node is a parallel `Loop`, it may be
    split among threads; ``work`` estimates the number of points from the sizes, so that tiny nests stay serial. Where
    they depend on the number of a round, the nest before has stored the begin and the end of that loop and the work in
    the cells 1 to 3 of the int64 buffer ``bounds``, and ``work`` is the most of any round. ``schedule`` says how the
    loops were made, ``declined``, if somebody asks, what could not be done. ``code`` is the body, or says of which
    other one it is made. ``spans`` are the places of its statements in the user's source, as far as they are known.
    """

    name: str
    title: str
    code: tuple[Node, ...] | EqualNodes
    work: Expr
    bounds: str | None = None
    schedule: tuple[Step, ...] = ()
    declined: tuple[Declined, ...] = ()
    spans: tuple[Span, ...] = field(default=(), compare=False, repr=False)

    @property
    def body(self) -> tuple[Node, ...]:
        """The nodes that run."""
        return self.code if isinstance(self.code, tuple) else self.code.nodes


def spans_of(nests: Iterable[Nest]) -> tuple[Span, ...]:
    """The places of the statements of several nests that become one."""
    return tuple(dict.fromkeys(span for nest in nests for span in nest.spans))


def with_step(before: Sequence[Nest], after: Sequence[Nest], step: Step) -> list[Nest]:
    """The nests ``after`` a pass, with ``step`` in the schedules of those that are not as ``before`` it."""
    return [
        replace(nest, schedule=(*nest.schedule, step)) if nest.code is not old.code and nest.body != old.body else nest
        for old, nest in zip(before, after, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class Rounds:
    """``for number in 0 .. count``: nests that run again and again, and loops inside, in order: the ``body``.

    ``number`` is a size of these nests, called ``label`` by users. ``count`` is what its expression gives when the loop
    begins: of the call's sizes, or else kept in the int64 buffer ``counted``, of rank 0, by the nest before. It is at
    most ``most``, if anything bounds it. The first number is 0, or what ``begin``, an int64 buffer of rank 0, holds. A
    round runs only if the buffer ``condition``, a bool of rank 0, holds true. The buffer ``counter``, an int64 of rank
    0, holds the number too. After each round the buffers of each of ``swaps`` have each other's memory, one after the
    other. Where nests do not show it, the rounds may still be known to be ``unordered``, each with cells of its own.
    """

    number: str
    label: str
    count: Expr
    most: Expr | None
    body: tuple[Nest | Rounds, ...]
    counted: str | None = None
    condition: str | None = None
    counter: str | None = None
    swaps: tuple[tuple[str, str], ...] = ()
    begin: str | None = None
    unordered: bool = False

    @property
    def held(self) -> tuple[str, ...]:
        """The buffers that live as long as the loop: those that it needs beside its nests."""
        single = (name for name in (self.counted, self.condition, self.counter, self.begin) if name is not None)
        return (*single, *(name for pair in self.swaps for name in pair))


@dataclass(frozen=True, slots=True)
class RepeatedNests:
    """A loop of rounds, and the numbers of its first nest and of the one behind its last."""

    rounds: Rounds
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class Kernel:
    """A lowered program: its memory, and its nests, in order, with the loops whose rounds run nests again.

    ``outputs`` gives the buffer of each output, ``updates`` pairs an input's buffer with the buffer whose cells are
    copied into it after the last nest (none where the nests wrote the input's memory themselves). It is made for sizes
    of at most ``limit``, from ``-limit`` on; others take a kernel of their own. ``procedures`` are what nests call.
    ``size_values`` are sizes of the nests that the program has not, and what they are. ``by_rows`` are the inputs whose
    strides decide about its nests (`tcdsl.lowering.lower.lower`).
    """

    program: Program
    buffers: tuple[Buffer, ...]
    body: tuple[Nest | Rounds, ...]
    outputs: tuple[str, ...]
    updates: tuple[tuple[str, str], ...]
    limit: int
    procedures: tuple[Procedure, ...] = ()
    size_values: tuple[tuple[str, Expr], ...] = ()
    by_rows: frozenset[str] = frozenset()

    @property
    def nests(self) -> tuple[Nest, ...]:
        """All nests, those of rounds too: a nest's number is its place among them."""
        return tuple(nests_of(self.body))

    @property
    def repeated(self) -> tuple[RepeatedNests, ...]:
        """Every loop of rounds, outer ones before those inside."""
        return tuple(_repeated(self.body, 0))

    def with_nests(self, nests: Iterable[Nest]) -> Kernel:
        """The kernel with another one in the place of each of its nests."""
        others = iter(nests)
        body = _with_nests(self.body, others)
        assert next(others, None) is None, "there are more nests than places"
        return replace(self, body=body)


def nests_of(body: Iterable[Nest | Rounds]) -> Iterator[Nest]:
    """The nests of ``body``, those of its loops too, in order."""
    for each in body:
        if isinstance(each, Rounds):
            yield from nests_of(each.body)
        else:
            yield each


def _with_nests(body: Iterable[Nest | Rounds], nests: Iterator[Nest]) -> tuple[Nest | Rounds, ...]:
    # The next ones of ``nests`` in the place of its own.
    return tuple(
        replace(each, body=_with_nests(each.body, nests)) if isinstance(each, Rounds) else next(nests) for each in body
    )


def _repeated(body: Iterable[Nest | Rounds], first: int) -> Iterator[RepeatedNests]:
    for each in body:
        if isinstance(each, Rounds):
            end = first + sum(1 for _ in nests_of(each.body))
            yield RepeatedNests(each, first, end)
            yield from _repeated(each.body, first)
            first = end
        else:
            first += 1


def loops_over(
    cells: Iterable[tuple[str, Expr, Expr]], body: tuple[Node, ...], *, seldom: bool = False
) -> tuple[Node, ...]:
    """``body`` inside of a serial loop for each variable, with its start and its stop, the first one outermost."""
    for variable, start, stop in reversed(tuple(cells)):
        body = (Loop(variable, start, stop, 1, body, seldom=seldom),)
    return body
