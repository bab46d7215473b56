"""What a reader of a schedule would expect and does not find, and why: ``f.explain("schedule", *arguments)`` says it.

Rules and passes that do not fit return a `Declined`, and the plan or the draft that they were about keeps it. Nothing
is looked at again here. Most of it concerns nobody: a maximum of rows is no product. What was nearly so is shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tcdsl.ir.expressions import Cast, Constant, Expr, IndexValue, Read, index_variables, reads
from tcdsl.ir.text.declined import Declined
from tcdsl.lowering.loopir.factors import factors_of
from tcdsl.lowering.loopir.loops import Loop, Node
from tcdsl.lowering.loopir.traversal import walk_nodes
from tcdsl.lowering.program_passes.schedule import LoopOrder
from tcdsl.simplification.scans import is_linked

__all__ = ["ALWAYS_PANELS", "NO_SCAN", "NO_THREADS", "NO_TILES", "SHOWN", "nearest_misses"]

NO_TILES = "no register tiles"
NO_SCAN = "no single pass over all cells"
NO_THREADS = "not shared among threads"
SHOWN = frozenset(("nest_", "parts_", "rows_", "batch_"))
"""How nests are called that do the work of statements: others prepare it."""
ALWAYS_PANELS = "no tiles without panels"


def nearest_misses(
    plans: Sequence[LoopOrder], nodes: Sequence[Node], declined: Sequence[Declined], serial: str
) -> tuple[Declined, ...]:
    """What could nearly be done with ``plans``, and with their loops ``nodes``, and has ``declined``.

    ``serial`` is why threads do not share loops of the rule that made them, if they do not.
    """
    made = [*_of_plans(plans)]
    made += [each for each in declined if each.what != NO_THREADS]
    loops = [node for node in walk_nodes(nodes) if isinstance(node, Loop)]
    if loops and not any(loop.kind == "parallel" for loop in loops):
        threads = [each for each in declined if each.what == NO_THREADS]
        made += threads[:1] or ([Declined(serial, what=NO_THREADS)] if serial else [])
    return tuple(dict.fromkeys(made))


def _of_plans(plans: Sequence[LoopOrder]) -> Iterator[Declined]:
    for plan in plans:
        for each in plan.declined:
            if _EXPECTED.get(each.what, _always)(plan, each):
                yield each.of(f"{each.what} for {plan.statement.target.tensor}")


def _always(plan: LoopOrder, declined: Declined) -> bool:
    return True


def _is_like_a_product(plan: LoopOrder, declined: Declined) -> bool:
    # Sums that read each cell of one tensor once are as fast as memory; of products one may expect more.
    statement = plan.statement
    every = list(reads(statement.value))
    if len({read.indices for read in every}) < 2:
        return False
    variables = set(statement.domain.variables)
    if not any(variables <= index_variables(read) for read in every):
        return len(variables) >= 3
    factors = factors_of(statement.value)
    return len(factors) > 1 and all(map(_is_read, factors))


def _is_read(factor: Expr) -> bool:
    return isinstance(factor, Read | Constant) or (isinstance(factor, Cast) and isinstance(factor.operand, Read))


def _is_like_a_scan(plan: LoopOrder, declined: Declined) -> bool:
    # Whether conditions link a cell with its terms, which alone depend on nothing else of it.
    (variable,) = declined.about
    assert isinstance(variable, IndexValue)
    statement, cells, name = plan.statement, set(plan.cells), variable.name
    if plan.window or not is_linked(statement.domain.set, name, cells):
        return False
    return all(name not in used or used <= cells for used in map(index_variables, reads(statement.value)))


_EXPECTED = {NO_TILES: _is_like_a_product, NO_SCAN: _is_like_a_scan}
