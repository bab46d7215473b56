"""A derivative in two parts: one that computes values once, and a linear one that may be applied many times.

::

    y[i] = tanh(x[i])                                   first: y
    t_y[i] = t_x[i] * (1 - y[i] * y[i])                 linear: t_y, from y, which the first part returns, and t_x

What depends on no tangent (in reverse mode: on no cotangent) is in the first part. The linear part reads the inputs of
the function and the tensors of the first part that it needs; nothing that it reads is computed again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tcdsl.autodiff.simplify import without_dead_statements
from tcdsl.ir.expressions import SizeValue, size_names
from tcdsl.ir.program import AxisExtent, Program, Size, Statement, tensors_read
from tcdsl.shapes.equal_sizes import with_equal_sizes
from tcdsl.shapes.used_sizes import sizes_used

__all__ = ["dependents", "linearized"]


def dependents(program: Program, names: Sequence[str]) -> set[str]:
    """The tensors that depend on the inputs ``names``, these included."""
    found = set(names)
    for statement in program.statements:
        if tensors_read(statement) & found:
            found.add(statement.target.tensor)
    return found


def linearized(derivative: Program, seeds: Sequence[str], values: int) -> tuple[Program, Program]:
    """``derivative``, which is linear in its inputs ``seeds``, as a program of values and a linear program.

    The first takes the inputs other than the seeds and returns the first ``values`` outputs, and then *residuals*: the
    tensors that the linear program reads. The linear program returns the other outputs. Its inputs keep their names:
    those of the first program that it reads, or whose extents it needs where no other input has them; the residuals,
    which may be among the first ``values`` outputs; and the seeds.
    """
    linear = dependents(derivative, seeds)
    results = derivative.outputs[values:]
    second, residuals = _linear_part(derivative, linear, results)
    taken = [tensor for tensor in derivative.inputs if tensor.name not in seeds]
    first = without_dead_statements(
        replace(
            derivative,
            inputs=tuple(taken),
            statements=tuple(s for s in derivative.statements if s.target.tensor not in linear),
            outputs=tuple(dict.fromkeys((*derivative.outputs[:values], *residuals))),
            rules=(),
        )
    )
    read = {name for statement in second for name in tensors_read(statement)}
    own = [tensor for tensor in taken if tensor.name in read]
    given = [derivative.tensor(name) for name in (*residuals, *seeds)]
    made = {statement.target.tensor for statement in second}
    program = replace(
        derivative,
        name=f"{derivative.name}_linear",
        inputs=(*taken, *given),
        tensors=tuple(tensor for tensor in derivative.tensors if tensor.name in made),
        statements=tuple(second),
        outputs=results,
        updates=(),
        rules=(),
    )
    return first, _with_needed_inputs(with_equal_sizes(program), [tensor.name for tensor in (*own, *given)])


def _linear_part(
    derivative: Program, linear: set[str], results: Sequence[str]
) -> tuple[list[Statement], tuple[str, ...]]:
    """The statements of the linear program, and the tensors of the first one that they read."""
    inputs = {tensor.name for tensor in derivative.inputs}
    wanted = set(results)
    kept: list[Statement] = []
    for statement in reversed(derivative.statements):
        name = statement.target.tensor
        # Zeros and the like are made again rather than stored; so are results that depend on no seed.
        free = name in results or not tensors_read(statement)
        if name in wanted and (name in linear or free):
            kept.append(statement)
            wanted |= tensors_read(statement)
    kept.reverse()
    made = {statement.target.tensor for statement in kept}
    order = [statement.target.tensor for statement in derivative.statements]
    return kept, tuple(name for name in order if name in wanted - made - inputs)


def _with_needed_inputs(program: Program, read: Sequence[str]) -> Program:
    """``program`` with the inputs ``read``, and those others that alone have an extent that it mentions."""
    inputs = {tensor.name: tensor for tensor in program.inputs}
    kept = {name: inputs[name] for name in read}
    where = {
        extent.name: AxisExtent(tensor.name, axis)
        for tensor in reversed(kept.values())
        for axis, extent in enumerate(tensor.shape)
        if isinstance(extent, SizeValue)
    }
    definitions = {size.name: size for size in program.sizes}
    needed: dict[str, Size] = {}
    pending = sorted(sizes_used(program.statements, (*program.tensors, *kept.values())))
    while pending:
        name = pending.pop()
        size = definitions[name]
        if name in needed:
            continue
        match size.source:
            case AxisExtent() if name in where:
                size = Size(name, where[name])
            case AxisExtent(tensor=tensor):
                kept[tensor] = inputs[tensor]
                pending.extend(name for extent in inputs[tensor].shape for name in size_names(extent))
            case definition:
                pending.extend(size_names(definition))
        needed[name] = size
    return replace(
        program,
        inputs=tuple(tensor for tensor in program.inputs if tensor.name in kept),
        sizes=tuple(needed[size.name] for size in program.sizes if size.name in needed),
        assertions=tuple(each for each in program.assertions if size_names(each.condition) <= needed.keys()),
    )
