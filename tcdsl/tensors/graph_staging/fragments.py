"""What nodes of graphs compute, recorded once: programs that linking puts where the nodes are needed.

An operation is staged when the shape or the type of its result is asked, or else when it is linked; what that has
recorded is kept by the node. Statements of an op in index notation are recorded by its call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tcdsl.errors import Diagnostic, ShapeError
from tcdsl.frontend.running_loops.run_time_checks import passed
from tcdsl.frontend.symbols.symbols import PendingArray, SymbolicArray, SymbolicTensor
from tcdsl.ir.expressions import reads
from tcdsl.ir.program import Program, tensors_read
from tcdsl.ir.stages import needed_by
from tcdsl.rewrite.renaming import expression_with_tensors_renamed
from tcdsl.rows.inference import Shape, pointwise
from tcdsl.simplification.simplify import without_dead_statements
from tcdsl.span import Span
from tcdsl.tensors.graph_staging.graph_recordings import InputRecording, known_shape, recording_session
from tcdsl.tensors.graphs.graph_operators import rows_to_tell, samples_to_tell
from tcdsl.tensors.graphs.location import located
from tcdsl.tensors.graphs.node_operations import Operation, Recorded
from tcdsl.tensors.graphs.tensor import Tensor, TensorMemory, close_shapes, is_differentiable
from tcdsl.tracebacks import warn_user

__all__ = ["exported", "recorded", "settled", "staged", "without_unread_inputs"]


def recorded(tensor: Tensor) -> Recorded:
    """What computes ``tensor``, an operation's result. Closes its shape."""
    sizes, made = tensor.sizes, settled(tensor)
    if made.is_provisional:
        assert tensor.operation is not None
        _, made = staged(tensor.operation, tensor.arguments, tensor.location, sizes)
        tensor.recorded = made
    return made


def settled(tensor: Tensor) -> Recorded:
    """What was recorded when ``tensor`` was staged, for its type or to be linked: each operation once.

    But for those whose result inference may still find larger than the operands say: where their type is asked before
    their size is known, they are staged again when it is.
    """
    # Operands first, by a list of what is to do: graphs are deeper than Python's stack.
    pending = [tensor]
    while tensor.recorded is None:
        node = pending[-1]
        missing = [each for each in node.operands if not each.is_leaf and each.recorded is None]
        pending.extend(missing)
        if missing:
            continue
        if node.recorded is None:
            assert node.operation is not None
            if node.operation.call is not None:
                node.operation.call()
            else:
                sizes = node.sizes if node.rows.is_known else None
                _, node.recorded = staged(node.operation, node.arguments, node.location, sizes)
        pending.pop()
    return tensor.recorded


def staged(
    operation: Operation, arguments: Sequence[Any], location: Span | None, sizes: Sequence[int] | None = None
) -> tuple[Shape, Recorded]:
    """``operation`` staged on ``arguments``: the shape of the result, and what computes it.

    ``sizes`` are those of the result, where it may be larger than the operands say. Faults are shown at ``location``.
    """
    assert operation.stage is not None
    operands = [argument for argument in arguments if isinstance(argument, Tensor)]
    close_shapes(operands)
    with located(location), recording_session(operation.name, location=lambda: None) as (session, recording):
        given = [_operand(recording, each) if isinstance(each, Tensor) else each for each in arguments]
        if operation.stage_sized is None or sizes is None:
            made = operation.stage(session, given)
        else:
            made = operation.stage_sized(session, given, sizes)
        shape = known_shape(made, session)
        if operation.constrain is pointwise and len(operands) == len(arguments) == 2:
            _warn_of_all_pairs(operands, shape, location)
        product = made.element.product if isinstance(made, PendingArray) else None
        named = made.materialize(operation.name) if isinstance(made, PendingArray) else made
        return shape, Recorded(
            *_with_inputs(recording, session.builder.program((named.name,))),
            named.name,
            takes_name=named is not made,
            # `(t > 0) * a / t` is one expression, although each of its operations is a node.
            brackets=() if product is None else product.brackets,
            is_provisional=operation.stage_sized is not None and sizes is None,
        )


def _warn_of_all_pairs(operands: Sequence[Tensor], shape: Shape, location: Span | None) -> None:
    # `net(x) - labels`, where the first axis of one counts samples, and that of the other does not say so; or
    # `p - copy(p.value)`, where the last axis of one is an input.
    for rows, array in (operands, reversed(operands)):
        told, axes = rows_to_tell(rows, array), "axes are"
        written = f"array, {told}"
        if not told and (count := samples_to_tell(rows, array)):
            told, written, axes = "batch", f"array[..., None], batch={count}", "cells count as"
        if told and np.prod(shape.sizes) > rows.size:
            fact = f"`{rows.label}` is {rows.rows}, and `{array.label}` {array.rows}: together they are all pairs"
            hint = f"write `tc.tensor({written})` if its {axes} those of `{rows.label}`"
            warn_user(Diagnostic(ShapeError, fact, location, hint=hint).render())


def _operand(recording: InputRecording, tensor: Tensor) -> SymbolicTensor:
    # The brackets of a product guard what it is divided by in the next node too.
    made = recording.lift(tensor, tensor.name)
    kept = tensor.recorded
    if kept is not None and kept.brackets:
        behind = dict(zip((each.name for each in kept.program.inputs), kept.inputs, strict=True))
        read = {node.tensor for bracket in kept.brackets for node in reads(bracket)}
        names = {name: recording.lift_buffer(behind[name]).name for name in sorted(read)}
        made.brackets = tuple(expression_with_tensors_renamed(each, names) for each in kept.brackets)
    return made


def _with_inputs(recording: InputRecording, program: Program) -> tuple[Program, tuple[TensorMemory, ...]]:
    behind = {name: buffer for buffer, name in recording.names.items()}
    program, inputs = without_unread_inputs(program, [behind[tensor.name] for tensor in program.inputs])
    return program, tuple(inputs)


def without_unread_inputs(program: Program, buffers: Sequence[Any]) -> tuple[Program, list[Any]]:
    """``program`` without the inputs that nothing reads, and the entries of ``buffers`` for those that stay."""
    read = frozenset().union(*map(tensors_read, program.statements), *map(needed_by, program.repeats))
    read |= {*program.outputs, *(name for update in program.updates for name in update)}
    kept = [k for k, tensor in enumerate(program.inputs) if tensor.name in read]
    return replace(program, inputs=tuple(program.inputs[k] for k in kept)), [buffers[k] for k in kept]


def exported(recording: InputRecording, arrays: Sequence[SymbolicArray]) -> list[Tensor]:
    """Staged arrays as tensors of the graph: nodes of what the session has recorded for them."""
    session = recording.session
    staged = [each.materialize("t") if isinstance(each, PendingArray) else each for each in arrays]
    inputs = {name: buffer for buffer, name in recording.names.items()}
    if session.checked is not None:
        staged = [*passed(session, [each for each in staged if isinstance(each, SymbolicTensor)])]
    made = [each for each in staged if isinstance(each, SymbolicTensor) and each.name not in inputs]
    if made:
        names = tuple(dict.fromkeys(each.name for each in made))
        program, memory = _with_inputs(recording, without_dead_statements(session.builder.program(names)))
        arguments = [each.owner if each.kind == "value" else each for each in memory]
        operands = [argument for argument in arguments if isinstance(argument, Tensor)]
    results = []
    for each in staged:
        assert isinstance(each, SymbolicTensor)
        if each.name in inputs:
            results.append(inputs[each.name].owner)
            continue
        dtype = str(each.dtype)
        results.append(
            Tensor(
                (each.label,),
                known_shape(each, session),
                dtype,
                Operation(each.label, None),
                arguments,
                differentiable=is_differentiable(dtype, operands),
                recorded=Recorded(program, memory, each.name),
            )
        )
    return results
