"""What the machine code of a kernel is known by, and what a run needs to know of it.

Nests that differ in names alone share one function: a loop of a hundred steps compiles as fast as one of three.
Unrolled loops and repeated layers make such nests, and different programs do. So a function says nothing about where
its sizes and buffers lie in the frame: it takes the words from a list of its own for each nest, its *places*, whose
address the driver leaves in the frame before the nest runs::

    def nest_v_2(begin, end, frame):
        N = size(frame, 0)                               # in the word places[0]
        v = buffer(frame, 1, 'float64[::1]')             # from the word places[1] on
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

from tcdsl.ir.dtypes import numpy_dtype
from tcdsl.ir.expressions import Apply, Cast, Constant, Read, SizeValue, walk
from tcdsl.ir.program import Program
from tcdsl.lowering.loopir.kinds import kind_of_nest, names_in, nodes_alike
from tcdsl.lowering.loopir.loops import (
    Branch,
    Check,
    Kernel,
    LocalBuffer,
    Loop,
    Nest,
    Node,
    Procedure,
    ProcedureCall,
    Store,
    Update,
)
from tcdsl.lowering.loopir.traversal import own_expressions, walk_nodes
from tcdsl.rewrite.statement_kinds import Kind, Named, kind_of
from tcdsl.targets.cpu.layout.frame import MAX_POSITIONS, layout_of

__all__ = [
    "LARGEST_LOCAL_BYTES",
    "CheckSite",
    "KernelCode",
    "check_sites",
    "index_variables_of",
    "kernel_code",
    "local_names",
    "may_have_nothing_to_do",
    "nest_kinds",
    "parallel_loop",
    "shown_loops",
    "strided_buffers",
    "words_of",
]

LARGEST_LOCAL_BYTES = 1 << 18
"""So much fits on the stacks of all threads."""


@dataclass(frozen=True, slots=True)
class CheckSite:
    """A `Check` of the kernel with the loop variables around it that an error shows, outermost first."""

    check: Check
    variables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KernelCode:
    """The key and the places of each nest in order, and the checks, which the kernel numbers.

    Functions with the same key become the same machine code, whatever kernel they are of. ``locals`` are the local
    buffers of checked code, by the number in which their slots lie behind the frame's words.
    """

    keys: tuple[str, ...]
    places: tuple[tuple[int, ...], ...]
    checks: tuple[CheckSite, ...]
    locals: tuple[str, ...] = ()


def kernel_code(kernel: Kernel, contiguous: Sequence[bool], *, checked: bool) -> KernelCode:
    """What is known of the machine code of ``kernel``, for inputs that are ``contiguous`` or not."""
    _require_sound(kernel)
    layout = layout_of(kernel)
    words = {"size": layout.sizes, "buffer": layout.buffers}
    places = tuple(tuple(words[what][name] for what, name in words_of(nest, checked=checked)) for nest in kernel.nests)
    checks = tuple(site for sites in _all_sites(kernel) for site in sites)
    keys: dict[Kind, str] = {}
    made = []
    for kind in nest_kinds(kernel, contiguous, checked=checked):
        if kind not in keys:
            keys[kind] = hashlib.sha256(repr(kind).encode()).hexdigest()
        made.append(keys[kind])
    return KernelCode(tuple(made), places, checks, local_names(kernel) if checked else ())


def nest_kinds(kernel: Kernel, contiguous: Sequence[bool], *, checked: bool) -> Iterator[Kind]:
    """What the machine code of each nest depends on, beside the generator and the processor."""
    layout, strided = layout_of(kernel), strided_buffers(kernel, contiguous)
    buffers = {buffer.name: buffer for buffer in kernel.buffers}
    procedures = {each.name: each for each in kernel.procedures}
    locals_of = local_names(kernel)
    number = 0

    def memory(name: str) -> object:
        if name not in buffers:
            return ("local", locals_of.index(name) + layout.words) if checked else None
        where = layout.buffers[name] if checked else 0
        return buffers[name].dtype, len(buffers[name].shape), name in strided, where

    for nest, sites in zip(kernel.nests, _all_sites(kernel), strict=True):
        kind, names = kind_of_nest(nest)
        own = [memory(name) for what, name in names if what == "buffer"]
        called = [_procedure_kind(procedures[name]) for name in _called(nodes_alike(nest))]
        # A check has a number of its own, and shows loops that are known by their names.
        numbered = (number, tuple(site.variables for site in sites)) if sites else ()
        number += len(sites)
        yield (kind, tuple(own), tuple(called), numbered, parallel_loop(nodes_alike(nest)) is not None, checked)


def _procedure_kind(procedure: Procedure) -> Kind:
    kind, names = kind_of(procedure.body)
    order = {name: place for place, name in enumerate(names)}
    given = tuple(
        (each.dtype, tuple(kind_of(each.shape)), order.get(("buffer", each.name))) for each in procedure.parameters
    )
    return procedure.name, kind, given


def _called(nodes: Iterable[Node]) -> Iterator[str]:
    yield from dict.fromkeys(node.procedure for node in walk_nodes(nodes) if isinstance(node, ProcedureCall))


def strided_buffers(kernel: Kernel, contiguous: Sequence[bool]) -> frozenset[str]:
    """The buffers whose arrays need not be contiguous."""
    inputs = [tensor.name for tensor in kernel.program.inputs]
    strided = {tensor for tensor, unit in zip(inputs, contiguous, strict=True) if not unit}
    given = (buffer for buffer in kernel.buffers if buffer.kind in ("input", "update"))
    return frozenset(buffer.name for buffer in given if not strided.isdisjoint(buffer.tensors))


def words_of(nest: Nest, *, checked: bool) -> tuple[Named, ...]:
    """The sizes and buffers that ``nest`` finds at its places; checked code finds buffers in words that it knows."""
    return tuple([named for named in names_in(nest, _words_in) if not checked or named[0] == "size"])


def _words_in(nodes: tuple[Node, ...]) -> Iterator[Named]:
    sizes: dict[str, None] = {}
    buffers: dict[str, None] = {}
    own = set()
    split = parallel_loop(nodes)
    for node in walk_nodes(nodes):
        parts = list(own_expressions(node))
        if node is split:
            # Its bounds are the function's arguments, which count iterations where it has steps.
            parts = [] if node.step == 1 else [node.start]
        for part in (each for expr in parts for each in walk(expr)):
            if isinstance(part, SizeValue):
                sizes[part.name] = None
            elif isinstance(part, Read):
                buffers[part.tensor] = None
        match node:
            case Store(buffer=buffer) | Update(buffer=buffer):
                buffers[buffer] = None
            case ProcedureCall():
                buffers.update((view.buffer, None) for view in node.views)
            case LocalBuffer(name=name):
                own.add(name)
            case _:
                pass
    yield from (("size", size) for size in sizes)
    yield from (("buffer", buffer) for buffer in buffers if buffer not in own)


def parallel_loop(nodes: tuple[Node, ...]) -> Loop | None:
    """The loop of a body that may be split among threads: its only node, with bounds that sizes alone decide."""
    if len(nodes) != 1 or not isinstance(nodes[0], Loop) or nodes[0].kind != "parallel":
        return None
    loop = nodes[0]
    bounds = [node for bound in (loop.start, loop.stop) for node in walk(bound)]
    return loop if all(isinstance(node, Apply | Cast | Constant | SizeValue) for node in bounds) else None


def may_have_nothing_to_do(nest: Nest) -> bool:
    """Whether a condition decides that ``nest`` runs, which calls of some sizes then have no use for."""
    nodes = nodes_alike(nest)
    loop = parallel_loop(nodes)
    if loop is None:
        return len(nodes) == 1 and isinstance(nodes[0], Branch) and not nodes[0].otherwise
    return nest.bounds is None and any(isinstance(e, Apply) and e.primitive == "where" for e in walk(loop.stop))


def check_sites(nodes: Iterable[Node], shown: frozenset[str], around: tuple[Loop, ...] = ()) -> Iterator[CheckSite]:
    """The checks in ``nodes``, in order."""
    for node in nodes:
        match node:
            case Check():
                loops = shown_loops(around, shown)
                yield CheckSite(node, tuple(loop.rounds or loop.variable for loop in loops))
            case Loop():
                yield from check_sites(node.body, shown, (*around, node))
            case Branch():
                yield from check_sites(node.body, shown, around)
                yield from check_sites(node.otherwise, shown, around)
            case _:
                pass


def shown_loops(loops: Sequence[Loop], shown: frozenset[str]) -> list[Loop]:
    """Those of the ``loops`` around a check that an error shows: users know the index variables of their statements,
    which are ``shown``, not the loops over blocks around them.
    """
    return [loop for loop in loops if loop.rounds or loop.variable in shown or not shown][:MAX_POSITIONS]


def index_variables_of(program: Program) -> Iterator[str]:
    """The index variables of all statements, those in loops included."""
    for statement in program.statements:
        yield from statement.domain.variables
    for repeat in program.repeats:
        yield from index_variables_of(repeat.body)


def local_names(kernel: Kernel) -> tuple[str, ...]:
    """The local buffers of ``kernel``; loops that are written out repeat them."""
    found = [each for procedure in kernel.procedures for each in _locals_in(procedure.body)]
    found += (each for nest in kernel.nests for each in names_in(nest, _locals_in))
    return tuple(dict.fromkeys(name for _, name in found))


def _locals_in(nodes: tuple[Node, ...]) -> Iterator[Named]:
    return (("buffer", node.name) for node in walk_nodes(nodes) if isinstance(node, LocalBuffer))


def _kinds_of_bodies(kernel: Kernel) -> dict[int, tuple[Node, ...]]:
    # One body of each kind of nests, by its id.
    return {id(nodes): nodes for nodes in map(nodes_alike, kernel.nests)}


def _all_sites(kernel: Kernel) -> Iterator[list[CheckSite]]:
    shown = frozenset(index_variables_of(kernel.program))
    bodies = _kinds_of_bodies(kernel).items()
    checked = {number for number, nodes in bodies if any(isinstance(node, Check) for node in walk_nodes(nodes))}
    for nest in kernel.nests:
        yield list(check_sites(nest.body, shown)) if id(nodes_alike(nest)) in checked else []


def _require_sound(kernel: Kernel) -> None:
    for procedure in kernel.procedures:
        if any(isinstance(node, Check) for node in walk_nodes(procedure.body)):
            raise TypeError(f"the procedure {procedure.name} holds a check, which only nests may")
    for node in walk_nodes(node for nodes in _kinds_of_bodies(kernel).values() for node in nodes):
        if isinstance(node, LocalBuffer):
            size, most = numpy_dtype(node.dtype).itemsize * prod(node.bounds), LARGEST_LOCAL_BYTES
            if size > most:
                raise ValueError(f"{node.name} takes {size} bytes, more than the {most} of a local buffer")
