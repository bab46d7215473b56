"""A program that is given no more than it reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from tcdsl.ir.expressions import SizeValue, size_names
from tcdsl.ir.program import AxisExtent, Program, Size, sizes_used
from tcdsl.ir.sizes.known_sizes import equal_sizes

__all__ = ["with_needed_inputs"]


def with_needed_inputs(program: Program, read: Sequence[str]) -> Program:
    """``program`` with the inputs ``read``, and those others that alone have an extent that it mentions."""
    inputs = {tensor.name: tensor for tensor in program.inputs}
    kept = {name: inputs[name] for name in read}
    where = {
        extent.name: AxisExtent(tensor.name, axis)
        for tensor in reversed(kept.values())
        for axis, extent in reversed(list(enumerate(tensor.shape)))
        if isinstance(extent, SizeValue)
    }
    # An extent that assertions make equal to one that is there asks for no other input.
    equal = equal_sizes(program.sizes, program.assertions)
    there = {equal.get(name, name): axis for name, axis in where.items()}
    definitions = {size.name: size for size in program.sizes}
    needed: dict[str, Size] = {}
    counts = (size_names(end) for repeat in program.repeats for end in repeat.ends)
    pending = sorted(sizes_used(program.statements, (*program.tensors, *kept.values())).union(*counts))
    while pending:
        name = pending.pop()
        size = definitions[name]
        if name in needed:
            continue
        match size.source:
            case AxisExtent() if name in where or equal.get(name, name) in there:
                size = Size(name, where.get(name) or there[equal.get(name, name)])
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
        assertions=tuple(each for each in program.assertions if _sizes_of(each.condition) <= needed.keys()),
    )


# Bodies in bodies have the same assertions.
_sizes_of = lru_cache(maxsize=4096)(size_names)
