"""Statements in an order in which memory is overwritten after its last reading.

``x_2[t] = v  from x`` takes over the memory of ``x`` only if nothing reads ``x`` later. Readers that do not depend on
``x_2`` come first then.
"""

from __future__ import annotations

from dataclasses import replace

from tcdsl.ir.program import Keep, Program, tensors_read

__all__ = ["overwriting_late"]


def overwriting_late(program: Program) -> Program:
    """``program`` with statements that start from an earlier version moved behind its other readers."""
    statements = program.statements
    position = {statement.target.tensor: k for k, statement in enumerate(statements)}
    read = [tensors_read(statement) for statement in statements]
    before = [{position[name] for name in names if name in position} for names in read]
    for k, statement in enumerate(statements):
        if not isinstance(statement.start, Keep):
            continue
        earlier = statement.start.tensor
        for other in range(k + 1, len(statements)):
            start = statements[other].start
            continued = isinstance(start, Keep) and start.tensor == earlier
            if earlier in read[other] and not continued and not _leads(before, k, other):
                before[k].add(other)
    order = _order(before)
    return replace(program, statements=tuple(statements[k] for k in order)) if order != sorted(order) else program


def _leads(before: list[set[int]], first: int, last: int) -> bool:
    # Whether the statement ``first`` must come before ``last``.
    waiting, seen = [last], set[int]()
    while waiting:
        current = waiting.pop()
        if current == first:
            return True
        if current not in seen:
            seen.add(current)
            waiting.extend(before[current])
    return False


def _order(before: list[set[int]]) -> list[int]:
    # Each after those that must come before it, otherwise as they stand.
    order: list[int] = []
    done: set[int] = set()

    def add(k: int) -> None:
        if k not in done:
            done.add(k)
            for other in sorted(before[k]):
                add(other)
            order.append(k)

    for k in range(len(before)):
        add(k)
    return order
