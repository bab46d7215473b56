"""Loops that carry and are given no more than is needed, with simplified bodies.

A loop none of whose results is needed goes; so does what a body carries for nothing, and what it is given and does not
read. What a round leaves as it is, is not carried: ``a`` after the loop is ``a`` before it. A copy that is made for a
loop alone is not made: a loop changes none of the tensors that it is given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Constant
from tcdsl.ir.fresh_names import cell_names
from tcdsl.ir.program import Program, Repeat, Statement, with_statements
from tcdsl.ir.stages import tensors_needed
from tcdsl.polyhedra.boxes import over_box
from tcdsl.polyhedra.writes import read_cell
from tcdsl.rewrite.loop_trimming import trimmed
from tcdsl.rewrite.renaming import with_tensors_renamed
from tcdsl.rewrite.unified_sizes import with_equal_sizes
from tcdsl.simplification.redundant_tensors import copied

__all__ = ["with_smaller_loops"]


def with_smaller_loops(program: Program, simplify: Callable[[Program], Program]) -> Program:
    """``program`` with its loops made smaller, and their bodies by ``simplify``."""
    program = _given_originals(program)
    needed = tensors_needed(program, (*program.outputs, *(new for _, new in program.updates)))
    repeats: list[Repeat] = []
    copies: dict[str, str] = {}
    seen: dict[object, tuple[str, ...]] = {}
    for repeat in program.repeats:
        if repeat.host and needed.intersection(repeat.results):
            repeats.append(repeat)
        elif needed.intersection(repeat.results):
            smaller = _carrying_originals(_given_once(repeat))
            kept, unchanged = _without_unchanged(trimmed(replace(smaller, body=simplify(smaller.body)), needed))
            kept = repeat if kept == repeat else kept
            # What a loop was given may be such a copy itself.
            copies.update((name, copies.get(source, source)) for name, source in unchanged)
            same = seen.setdefault((kept.ends, kept.body, kept.inputs), kept.results)
            if same != kept.results and not program.ruled.keys() & {*same, *kept.results}:
                copies.update(zip(kept.results, same, strict=True))
            elif kept.results:
                repeats.append(kept)
    # A statement that nothing needs may read what a loop made that is gone.
    statements = [statement for statement in program.statements if statement.target.tensor in needed]
    for name, source in reversed(copies.items()):
        makers = (place for place, statement in enumerate(statements, 1) if statement.target.tensor == source)
        statements.insert(next(makers, 0), _copy(program, source, name))
    return with_statements(replace(program, repeats=tuple(repeats)), statements)


def _given_originals(program: Program) -> Program:
    names: dict[str, str] = {}
    for statement in program.statements:
        original = copied(program, statement)
        if original is not None and statement.target.tensor not in program.ruled:
            names[statement.target.tensor] = names.get(original, original)
    return replace(program, repeats=tuple(repeat.with_tensors(names) for repeat in program.repeats))


def _given_once(repeat: Repeat) -> Repeat:
    """The loop given each tensor once, where no round changes what it is given."""
    carried = {name for name, _ in repeat.body.updates}
    names: dict[str, str] = {}
    first: dict[object, str] = {}
    for inner, name in zip(repeat.body.inputs[1:], repeat.inputs, strict=True):
        if inner.name not in carried:
            other = first.setdefault((name, inner.shape), inner.name)
            if other != inner.name:
                names[inner.name] = other
    if not names:
        return repeat
    body = with_tensors_renamed(repeat.body, names)
    kept = [place for place, inner in enumerate(repeat.body.inputs) if inner.name not in names]
    body = replace(body, inputs=tuple(repeat.body.inputs[place] for place in kept))
    return replace(repeat, body=body, inputs=tuple(repeat.inputs[place - 1] for place in kept[1:]))


def _carrying_originals(repeat: Repeat) -> Repeat:
    """The loop without copies of what its body is given that are only carried: memory changes places instead."""
    body, known = repeat.body, with_equal_sizes(repeat.body)
    given = {tensor.name for tensor in body.inputs} - set(body.ruled)
    originals: dict[str, str] = {}
    for statement in known.statements:
        original = copied(known, statement)
        if original is not None and original in given:
            originals[statement.target.tensor] = original
    # Who else reads the copy goes on doing so.
    updates = tuple((name, originals.get(new, new)) for name, new in body.updates)
    return repeat if updates == body.updates else replace(repeat, body=replace(body, updates=updates))


def _without_unchanged(repeat: Repeat) -> tuple[Repeat, list[tuple[str, str]]]:
    """The loop without the results that no round changes; these, and the tensors that they are."""
    body = repeat.body
    made = {statement.target.tensor: statement for statement in body.statements}
    never = isinstance(repeat.count, Constant) and repeat.count.value <= 0
    kept: list[tuple[str, tuple[str, str]]] = []
    unchanged: list[tuple[str, str]] = []
    for result, update, (name, new, given) in zip(repeat.results, body.updates, repeat.carried, strict=True):
        same = new == name or (new in made and copied(body, made[new]) == name)
        if never or (same and name not in body.outputs):
            unchanged.append((result, given))
        else:
            kept.append((result, update))
    if not unchanged:
        return repeat, []
    body = replace(body, updates=tuple(update for _, update in kept))
    return replace(repeat, results=tuple(result for result, _ in kept), body=body), unchanged


def _copy(program: Program, source: str, name: str) -> Statement:
    tensor = program.tensor(name)
    cells = cell_names(len(tensor.shape), (size.name for size in program.sizes))
    return over_box(name, cells, tensor.shape, read_cell(program.tensor(source), cells, compute_dtype(tensor.dtype)))
