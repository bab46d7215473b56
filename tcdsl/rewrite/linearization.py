"""A derivative in two parts: one that computes values once, and a linear one that may be applied many times.

::

    y[i] = tanh(x[i])                                   first: y
    t_y[i] = t_x[i] * (1 - y[i] * y[i])                 linear: t_y, from y, which the first part returns, and t_x

What depends on no tangent (in reverse mode: on no cotangent) is in the first part. The linear part reads the inputs of
the function and the tensors of the first part that it needs; nothing that it reads is computed again, but for the
values inside a loop that computes values and tangents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tcdsl.ir.fresh_names import names_of
from tcdsl.ir.program import Program, Repeat, Tensor, tensors_read
from tcdsl.ir.stages import needed_by, stages
from tcdsl.rewrite.loop_trimming import trimmed
from tcdsl.rewrite.needed_inputs import with_needed_inputs
from tcdsl.rewrite.unified_sizes import with_equal_sizes

__all__ = ["dependents", "linearized"]


def dependents(program: Program, names: Sequence[str]) -> set[str]:
    """The tensors that depend on the inputs ``names``, these included."""
    found = set(names)
    rules = program.ruled

    def ruled(name: str) -> bool:
        return name in rules and bool(found.intersection(rules[name].named))

    for stage in stages(program):
        for statement in stage.statements:
            name = statement.target.tensor
            if found & tensors_read(statement) or ruled(name):
                found.add(name)
        if stage.repeat is not None:
            found |= _dependent_results(stage.repeat, found)
            found.update(filter(ruled, stage.repeat.results))
    return found


def _dependent_results(repeat: Repeat, names: set[str]) -> set[str]:
    body = repeat.body
    if names & (needed_by(repeat) - {*repeat.inputs}):
        return set(repeat.results)
    found = {inner.name for inner, name in zip(body.inputs[1:], repeat.inputs, strict=True) if name in names}
    while True:
        reached = dependents(body, sorted(found))
        more = {name for name, new in body.updates if new in reached} - found
        if not more:
            break
        found |= more
    if found.intersection(body.outputs):
        return set(repeat.results)
    return {result for result, (name, _) in zip(repeat.results, body.updates, strict=True) if name in found}


def linearized(derivative: Program, seeds: Sequence[str], values: int) -> tuple[Program, Program]:
    """``derivative``, which is linear in its inputs ``seeds``, as a program of values and a linear program.

    The first takes the inputs other than the seeds and returns the first ``values`` outputs, and then *residuals*: the
    tensors that the linear program reads. The linear program returns the other outputs. Its inputs keep their names:
    those of the first program that it reads, or whose extents it needs where no other input has them; the residuals,
    which may be among the first ``values`` outputs; and the seeds.
    """
    linear = dependents(derivative, seeds)
    results = derivative.outputs[values:]
    constant = [
        statement.target.tensor
        for statement in derivative.statements
        # Zeros and the like are made again rather than stored; so are results that depend on no seed.
        if statement.target.tensor in results or not tensors_read(statement)
    ]
    inputs = {tensor.name for tensor in derivative.inputs}
    wanted = _needed(derivative, results, linear.union(constant))
    made = (wanted & linear.union(constant)) - inputs
    order = [statement.target.tensor for statement in derivative.statements]
    order += [name for repeat in derivative.repeats for name in repeat.results]
    residuals = [name for name in order if name in wanted - made - inputs]
    outputs = tuple(dict.fromkeys((*derivative.outputs[:values], *residuals)))
    taken = [tensor for tensor in derivative.inputs if tensor.name not in seeds]
    first = _part(derivative, _needed(derivative, outputs, set(order)) - inputs, taken, outputs)
    given = [derivative.tensor(name) for name in (*residuals, *seeds)]
    second = _part(derivative, made, [*taken, *given], results)
    second = replace(second, name=f"{derivative.name}_linear", updates=())
    read = [tensor.name for tensor in taken if tensor.name in wanted] + [tensor.name for tensor in given]
    return first, with_needed_inputs(with_equal_sizes(second), read)


def _needed(program: Program, names: Sequence[str], computed: set[str]) -> set[str]:
    """``names`` and all that is read to compute those of them, and of that, which are in ``computed``."""
    read = {statement.target.tensor: set(tensors_read(statement)) for statement in program.statements}
    for repeat in program.repeats:
        read.update({name: needed_by(trimmed(repeat, [name])) for name in repeat.results})
    rules = program.ruled
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            if name in computed and name in read:
                waiting.extend(read[name])
                waiting.extend(rules[name].named if name in rules else ())
    return found


def _part(program: Program, made: set[str], inputs: Sequence[Tensor], outputs: Sequence[str]) -> Program:
    """The statements and loops that make ``made``, with the rules that say how to differentiate these."""
    repeats = [trimmed(repeat, made) for repeat in program.repeats if made.intersection(repeat.results)]
    # What a loop carries besides, because what is wanted of it needs that.
    names = names_of(program)
    besides = {name: names.fresh(name) for repeat in repeats for name in repeat.results if name not in made}
    return replace(
        program,
        inputs=tuple(inputs),
        tensors=(
            *(tensor for tensor in program.tensors if tensor.name in made),
            *(replace(program.tensor(name), name=fresh) for name, fresh in besides.items()),
        ),
        statements=tuple(statement for statement in program.statements if statement.target.tensor in made),
        outputs=tuple(outputs),
        rules=tuple(rule for rule in program.rules if made.issuperset(rule.outputs)),
        repeats=tuple(
            replace(repeat, results=tuple(besides.get(name, name) for name in repeat.results)) for repeat in repeats
        ),
    )
