"""A program with loops as stages: straight code, a loop, straight code, a loop, ...

A statement stands in the first stage in which all that it reads is there. What holds for straight code alone is done
stage by stage: `stage_programs` gives each as a program of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tcdsl.ir.expressions import reads
from tcdsl.ir.program import Program, Repeat, Statement, tensors_read, with_statements

__all__ = ["Stage", "needed_by", "stage_programs", "stages"]


@dataclass(frozen=True, slots=True)
class Stage:
    """Statements, and the loop after them; the last stage has none."""

    statements: tuple[Statement, ...]
    repeat: Repeat | None


def needed_by(repeat: Repeat) -> set[str]:
    """The tensors that a loop reads."""
    return {*repeat.inputs, *(read.tensor for read in reads(repeat.count))}


def stages(program: Program) -> Iterator[Stage]:
    """The stages of ``program``, in order. ``ValueError`` if a loop or a statement reads what is never there."""
    known = {tensor.name for tensor in program.inputs}
    waiting = list(program.statements)
    for repeat in (*program.repeats, None):
        ready: list[Statement] = []
        later: list[Statement] = []
        for statement in waiting:
            if tensors_read(statement) <= known:
                known.add(statement.target.tensor)
                ready.append(statement)
            else:
                later.append(statement)
        yield Stage(tuple(ready), repeat)
        waiting = later
        if repeat is None:
            if waiting:
                raise ValueError(f"nothing makes what {waiting[0].target.tensor} is made of")
        elif not needed_by(repeat) <= known:
            raise ValueError(f"nothing makes what the loop of {', '.join(repeat.results)} reads")
        else:
            known.update(repeat.results)


def stage_programs(program: Program) -> Iterator[tuple[Program, Repeat | None]]:
    """Each stage as a program of straight code, with the loop after it.

    Its inputs are those of ``program``, and behind them the tensors of earlier stages that it reads or passes on. Its
    outputs are the tensors that later stages and loops need; those of the last stage, and its updates, are the
    program's.
    """
    found = list(stages(program))
    needs = [
        {name for statement in stage.statements for name in tensors_read(statement)}.union(
            {*program.outputs, *(new for _, new in program.updates)}
            if stage.repeat is None
            else needed_by(stage.repeat)
        )
        for stage in found
    ]
    made: dict[str, None] = {}
    for k, stage in enumerate(found):
        targets = [statement.target.tensor for statement in stage.statements]
        later = set().union(*needs[k + 1 :], needed_by(stage.repeat) if stage.repeat is not None else set())
        given = [program.tensor(name) for name in made if name in needs[k]]
        last = stage.repeat is None
        straight = replace(
            with_statements(replace(program, repeats=(), rules=()), stage.statements),
            inputs=(*program.inputs, *given),
            outputs=program.outputs if last else tuple(name for name in targets if name in later),
            updates=program.updates if last else (),
        )
        yield straight, stage.repeat
        made.update(dict.fromkeys(targets))
        if stage.repeat is not None:
            made.update(dict.fromkeys(stage.repeat.results))
