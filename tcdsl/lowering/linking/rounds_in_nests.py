"""A loop whose rounds are a handful of scalars as one nest: the rounds are a loop of the machine code.

Where a round runs nests of many points, the driver runs them round by round, on threads where that pays. Between nests
of a few operations it would take longer than they do.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

from tcdsl.ir.build import apply, index, integer, plain_read
from tcdsl.ir.expressions import Cast, Constant, Expr, Local, SizeValue, substitute
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.lowering.loopir.independent_rounds import independent
from tcdsl.lowering.loopir.loops import (
    Accumulate,
    Branch,
    Check,
    Define,
    Loop,
    LoopKind,
    Nest,
    Node,
    Rounds,
    Step,
    Store,
    Update,
    spans_of,
)
from tcdsl.lowering.loopir.traversal import map_expressions, serial, walk_nodes

__all__ = ["in_one_nest"]

_MOST_NODES = 256
_SOME = 64  # Rounds, where nothing says how many.


def in_one_nest(rounds: Rounds, own: Set[str], names: FreshNames, *, with_rows: bool) -> Nest | None:
    """The loop ``rounds`` as one nest; ``None`` if a round is more than a few scalars.

    ``own`` are the buffers that a round makes anew, and that nothing needs after it. ``with_rows``: a round may make
    rows too, in which no interrupt is looked for.
    """
    nests = [each for each in rounds.body if isinstance(each, Nest)]
    if len(nests) < len(rounds.body) or not _are_small([node for nest in nests for node in nest.body], with_rows):
        return None
    nodes = _nodes(rounds, nests, own, names, with_rows)
    if nodes is None:
        return None
    title = "\n".join(dict.fromkeys(line for nest in nests for line in nest.title.splitlines()))
    work: Expr = integer(1)
    for nest in nests:
        work = apply("add", work, nest.work)
    inside = dict.fromkeys(step for nest in nests for step in nest.schedule)
    schedule = (*inside, Step("fuse", f"all rounds of {rounds.label}"))
    work = apply("mul", _usual_rounds(rounds), work)
    return Nest(names.fresh(f"rounds_of_{rounds.label}"), title, nodes, work, schedule=schedule, spans=spans_of(nests))


def _nodes(
    rounds: Rounds, nests: Sequence[Nest], own: Set[str], names: FreshNames, with_rows: bool
) -> tuple[Node, ...] | None:
    nodes = [node for nest in nests for node in nest.body]
    if rounds.swaps:
        return None
    taken = _branch(rounds.count)
    if taken is not None:
        number: Expr = integer(0)
    else:
        number = index(rounds.number)
    step: dict[Expr, Expr] = {SizeValue(rounds.number): number}
    body = map_expressions(nodes, lambda expr: substitute(expr, step))
    if rounds.counter is not None:
        body = (Store(rounds.counter, (), number), *body)
    holds = None if rounds.condition is None else plain_read(rounds.condition, (), "bool")
    if taken is not None:
        return (Branch(taken if holds is None else apply("and_", taken, holds), body),)
    ahead: tuple[Node, ...] = ()
    start: Expr = integer(0)
    stop = rounds.count
    if rounds.begin is not None:
        name = names.fresh(f"begin_of_{rounds.number}")
        ahead = (Define(name, plain_read(rounds.begin, (), "int64"), index=True),)
        start = Local(name, "int64")
    if rounds.counted is not None:
        name = names.fresh(f"end_of_{rounds.number}")
        ahead = (*ahead, Define(name, plain_read(rounds.counted, (), "int64"), index=True))
        stop = Local(name, "int64")
    parallel = not ahead and holds is None and independent(body, rounds.number, own, known=rounds.unordered)
    if not parallel and any(_is_on_threads(node, with_rows) for node in body):
        return None  # Its rounds run one after the other, and each of them on threads.
    kind: LoopKind = "parallel" if parallel else "serial"
    return (*ahead, Loop(rounds.number, start, stop, 1, serial(body), kind, rounds.label, holds))


def _is_on_threads(node: Node, with_rows: bool) -> bool:
    # Of rows that are made anew in a loop in a loop no single one takes long enough.
    if not isinstance(node, Loop) or node.kind != "parallel":
        return False
    return not with_rows or any(isinstance(inner, Loop) for inner in walk_nodes(node.body))


def _usual_rounds(rounds: Rounds) -> Expr:
    # How many to expect: one of a branch.
    if _branch(rounds.count) is not None:
        return integer(1)
    count = rounds.count if rounds.counted is None else rounds.most
    unknown = count is None or (rounds.condition is not None and isinstance(count, Constant))
    return integer(_SOME) if count is None or unknown else count


def _are_small(nodes: Sequence[Node], with_rows: bool) -> bool:
    return len(list(walk_nodes(nodes))) <= _MOST_NODES and _are_scalars(nodes, with_rows)


def _are_scalars(nodes: Sequence[Node], with_rows: bool) -> bool:
    for node in nodes:
        match node:
            case Loop(rounds=label, body=body):
                # In rounds there may be rows; in blocks of a row there are.
                if not (label or with_rows) or not _are_scalars(body, bool(label) or node.step > 1):
                    return False
            case Branch(body=body, otherwise=otherwise):
                if not _are_scalars((*body, *otherwise), with_rows):
                    return False
            case Accumulate() | Check() | Define() | Store() | Update():
                pass
            case _:
                return False
    return True


def _branch(count: Expr) -> Expr | None:
    # The condition of a branch, which is a loop of as many rounds as that is true.
    return count.operand if isinstance(count, Cast) and count.operand.dtype == "bool" else None
