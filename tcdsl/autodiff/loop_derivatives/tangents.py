"""Forward mode through a loop: one loop for values and tangents.

::

    repeat y_3 = N times with y, x                 repeat y_3, t_y_3 = N times with y, x, t_y, t_x
    | y_2 = y * x[t]                               | y_2 = y * x[t]
    |                                              | t_y_2 = t_y * x[t] + y * t_x[t]
    | update y = y_2                               | update y = y_2
                                                   | update t_y = t_y_2

Which carried tensors have a tangent is found over all rounds: in ``c = b; b = a; a = x[t]`` it takes three until ``c``
depends on ``x``. One whose tangent is zero at first, or becomes zero, has a tangent of zeros there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tcdsl.autodiff.loop_derivatives.compact_updates import with_compact_updates
from tcdsl.autodiff.loop_derivatives.loop_rules import without_derivative
from tcdsl.autodiff.statement_derivatives.activity import active_inputs, active_tensors
from tcdsl.autodiff.statement_derivatives.derivative import Derivative
from tcdsl.ir.program import Program, Repeat, tensors_read

__all__ = ["push_through"]

#: The tangent of a program by the inputs named, for the outputs named, behind all outputs.
Tangent = Callable[[Program, Sequence[str], Sequence[str]], Program]


def push_through(work: Derivative, repeat: Repeat, tangents: dict[str, str], tangent: Tangent) -> None:
    """Make ``repeat`` compute the tangents of its results too, and note them in ``tangents``.

    Results with a derivative rule have theirs from that.
    """
    body = repeat.body
    active = active_inputs(repeat, work.active)
    moving = [
        (result, name, new) for result, (name, new) in zip(repeat.results, body.updates, strict=True) if name in active
    ]
    if work.ruled and not _has_readers(work.program, {result for result, _, _ in moving if result not in work.ruled}):
        return
    if repeat.host and moving:
        raise without_derivative(repeat, "jvp")
    step = replace(body, outputs=tuple(dict.fromkeys(new for _, new in body.updates)), updates=())
    wrt = [each.name for each in body.inputs[1:] if each.name in active]
    # What becomes another input as it is has that input's tangent.
    changes = list(dict.fromkeys(new for _, _, new in moving if new not in wrt))
    pushed = tangent(with_compact_updates(step, active_tensors(step, wrt), dict(body.updates)), wrt, changes)
    made = dict(zip(step.outputs, pushed.outputs, strict=False))
    directions = dict(zip(wrt, (each.name for each in pushed.inputs[len(body.inputs) :]), strict=True))
    moved = {**directions, **dict(zip(changes, pushed.outputs[len(step.outputs) :], strict=True))}
    given = dict(zip((each.name for each in body.inputs[1:]), repeat.inputs, strict=True))
    results = []
    for result, _, _ in moving:
        declared = work.tensor(result)
        results.append(work.declare(f"t_{result}", declared.dtype, declared.shape))
    joint = replace(
        repeat,
        results=(*repeat.results, *results),
        body=replace(
            pushed,
            outputs=body.outputs,
            updates=(
                *((name, made[new]) for name, new in body.updates),
                *((directions[name], moved[new]) for _, name, new in moving),
            ),
        ),
        inputs=(*repeat.inputs, *(_known(work, given[name], tangents) for name in wrt)),
    )
    work.repeats[work.repeats.index(repeat)] = joint
    for (result, _, _), made_tangent in zip(moving, results, strict=True):
        if result not in work.ruled:
            tangents[result] = made_tangent


def _known(work: Derivative, name: str, tangents: dict[str, str]) -> str:
    found = tangents.get(name)
    return work.result(f"t_{name}", work.tensor(name), None) if found is None else found


def _has_readers(program: Program, results: set[str]) -> bool:
    # Whether anything reads one of the results of a loop, or returns it.
    read = {*program.outputs, *(new for _, new in program.updates)}
    read.update(*(tensors_read(statement) for statement in program.statements))
    read.update(*(repeat.inputs for repeat in program.repeats))
    return not results.isdisjoint(read)
