"""Tensors that hold the same as another tensor: copies, and statements that occur twice."""

from __future__ import annotations

from dataclasses import replace

from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Read
from tcdsl.ir.program import Keep, Neutral, Program, Statement, Tensor, with_statements
from tcdsl.polyhedra.boxes import is_over_box
from tcdsl.polyhedra.variables import positional
from tcdsl.rewrite.renaming import statement_with_tensors_renamed, with_tensors_renamed

__all__ = ["without_copies"]


def without_copies(program: Program) -> Program:
    """``program`` without statements that only copy a tensor or repeat an earlier statement.

    A copy that is an output stays where its original is an input, an output or an update too: results are arrays of
    their own. Otherwise the original takes the output's name.
    """
    fixed = {*program.outputs, *(new for _, new in program.updates)}
    inputs = {tensor.name for tensor in program.inputs}
    ruled = program.ruled
    names: dict[str, str] = {}
    promoted: dict[str, str] = {}
    seen: dict[object, str] = {}
    kept: list[Statement] = []
    for statement in program.statements:
        if names:
            statement = statement_with_tensors_renamed(statement, names)
        name = statement.target.tensor
        original = _copied(program, statement)
        if original is None and name not in ruled:
            original = seen.setdefault(_key(statement, program.tensor(name)), name)
        if original in (None, name):
            kept.append(statement)
        elif name not in fixed:
            names[name] = original
        elif original not in fixed and original not in inputs and original not in promoted:
            promoted[original] = name
            names[name] = original
        else:
            kept.append(statement)
    if len(kept) == len(program.statements):
        return program
    program = replace(
        with_statements(program, kept),
        outputs=tuple(names.get(name, name) for name in program.outputs),
        updates=tuple((old, names.get(new, new)) for old, new in program.updates),
    )
    return with_tensors_renamed(program, promoted) if promoted else program


def _key(statement: Statement, tensor: Tensor) -> object:
    common = positional(statement)
    return replace(common, target=replace(common.target, tensor=""), label=""), tensor.dtype, tensor.shape


def _copied(program: Program, statement: Statement) -> str | None:
    """The tensor that a statement copies whole."""
    tensor = program.tensor(statement.target.tensor)
    if isinstance(statement.start, Keep) and statement.domain.text.endswith(": false }"):
        return statement.start.tensor
    value = statement.value
    plain = statement.accumulate == "assign" or (statement.accumulate == "add" and isinstance(statement.start, Neutral))
    if not plain or not isinstance(value, Read) or value.fill is not None or value.indices != statement.target.indices:
        return None
    source = program.tensor(value.tensor)
    if source.shape != tensor.shape or source.dtype != tensor.dtype or source.dtype != compute_dtype(source.dtype):
        return None
    return source.name if is_over_box(statement, tensor.shape) else None
