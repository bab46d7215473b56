"""Which tensors depend differentiably on given inputs; for loops, over all of their rounds."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tcdsl.autodiff.statement_derivatives.scalar import carries
from tcdsl.ir.dtypes import is_floating
from tcdsl.ir.program import DerivativeRule, Fill, Keep, Program, Repeat, Statement
from tcdsl.ir.stages import stages
from tcdsl.recent import Recent

__all__ = ["active_inputs", "active_tensors"]

# Loops in loops are asked the same at each depth, and in each of their rounds. By the id of the body, which is kept
# alive.
_KNOWN: Recent[tuple[int, frozenset[str]], tuple[Program, frozenset[str]]] = Recent(1000)


def active_tensors(program: Program, wrt: Sequence[str]) -> frozenset[str]:
    """The tensors that depend differentiably on the inputs ``wrt``, these included."""
    active = set(wrt)
    rules = program.ruled
    for stage in stages(program):
        for statement in stage.statements:
            name = statement.target.tensor
            if not is_floating(program.tensor(name).dtype):
                continue
            if _applies(rules[name], active) if name in rules else _passes_on(statement, active):
                active.add(name)
        if stage.repeat is not None:
            carried = active_inputs(stage.repeat, active)
            for result, (name, _, _) in zip(stage.repeat.results, stage.repeat.carried, strict=True):
                if not is_floating(program.tensor(result).dtype):
                    continue
                if _applies(rules[result], active) if result in rules else name in carried:
                    active.add(result)
    return frozenset(active)


def active_inputs(repeat: Repeat, active: Collection[str]) -> frozenset[str]:
    """The inputs of a loop's body that, in some round, depend on the ``active`` tensors around the loop."""
    given = zip(repeat.body.inputs[1:], repeat.inputs, strict=True)
    found = frozenset(inner.name for inner, name in given if name in active and is_floating(inner.dtype))
    key = id(repeat.body), found
    known = _KNOWN.get(key)
    if known is None:
        known = _KNOWN[key] = repeat.body, _reached(repeat.body, found)
    return known[1]


def _reached(body: Program, given: frozenset[str]) -> frozenset[str]:
    found = set(given)
    carried = {name: new for name, new in body.updates if is_floating(body.tensor(name).dtype)}
    while True:
        reached = active_tensors(body, sorted(found))
        more = {name for name, new in carried.items() if new in reached} - found
        if not more:
            return frozenset(found)
        found |= more


def _applies(rule: DerivativeRule, active: Collection[str]) -> bool:
    return any(name in active for name in (*rule.arguments, *rule.constants))


def _passes_on(statement: Statement, active: Collection[str]) -> bool:
    kept = isinstance(statement.start, Keep) and statement.start.tensor in active
    filled = isinstance(statement.start, Fill) and carries(statement.start.value, active.__contains__)
    return kept or filled or carries(statement.value, active.__contains__)
