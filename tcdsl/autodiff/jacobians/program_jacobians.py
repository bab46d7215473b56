"""The Jacobian of a program: its tangent or its adjoint, for all unit directions at once.

Forward mode gives an input's columns, one for each of its cells, reverse mode an output's rows. Either is one program,
`batched` over these cells, whose seed is the identity: ``t_x[i, b] = 1`` where ``i = b``. Reads of the seed are
composed with that statement (`tcdsl.simplification.sparsity.sparse_reads`), so a derivative that is sparse stays
sparse, and a product with the identity is no product at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tcdsl.autodiff.jacobians.sparse_linear import with_sparse_seed
from tcdsl.autodiff.modes import adjoint, tangent
from tcdsl.autodiff.statement_derivatives.derivative import Derivative, check_inputs, chosen_outputs, kept_outputs
from tcdsl.errors import DifferentiationError
from tcdsl.ir.build import cast, constant, index
from tcdsl.ir.domain import Domain
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.fresh_names import cell_names, names_of
from tcdsl.ir.program import Access, Neutral, Program, Statement, Tensor
from tcdsl.polyhedra.boxes import box, over_box
from tcdsl.polyhedra.limits import refused_beyond_limits
from tcdsl.polyhedra.writes import read_cell
from tcdsl.rewrite.batching import batched
from tcdsl.rewrite.inlining import append_program
from tcdsl.rewrite.linearization import dependents
from tcdsl.rewrite.renaming import with_tensors_renamed
from tcdsl.rewrite.unified_sizes import with_equal_sizes, with_own_sizes
from tcdsl.simplification.simplify import simplify

__all__ = ["jacobian"]


@refused_beyond_limits(DifferentiationError, "this derivative")
def jacobian(
    program: Program,
    wrt: Sequence[str],
    outputs: Sequence[str] | None = None,
    mode: str | None = None,
    keep_outputs: bool | Sequence[str] = True,
) -> Program:
    """The program of all derivatives of ``outputs``, all floating ones by default, by the inputs ``wrt``.

    ``jacobian(matmul, ["A"])`` takes ``A: [N, K]`` and ``B: [K, M]`` and returns ``C`` and ``C_by_A: [N, M, N, K]``.

    Its outputs are the program's (of which ``keep_outputs`` may name some, or be false), followed by one block for each
    output and input, all blocks of the first output first; a block has the shape of the output, then that of the input,
    and the type of the output. ``mode`` is ``forward``, ``reverse``, or ``None``: reverse by the inputs whose rank is
    higher than that of all outputs, forward by the others. Raises `DifferentiationError` as `adjoint` does.
    """
    chosen = chosen_outputs(program, outputs)
    check_inputs(program, wrt)
    original, program = program, with_equal_sizes(program)
    highest = max((len(program.tensor(name).shape) for name in chosen), default=0)
    rows = [name for name in wrt if mode == "reverse" or (mode is None and len(program.tensor(name).shape) > highest)]
    work = Derivative(program, ())
    blocks: dict[tuple[str, str], str] = {}
    kept: list[str] = []
    values_of = kept_outputs(program, keep_outputs)
    for name in wrt:
        if name not in rows:
            keep = () if kept else values_of
            values, columns = _appended(work, _columns(program, name, chosen, keep), len(chosen))
            kept = kept or values
            blocks.update({(output, name): column for output, column in zip(chosen, columns, strict=True)})
    for output in chosen if rows else ():
        keep = () if kept else values_of
        values, found = _appended(work, _rows(program, rows, output, keep), len(rows))
        kept = kept or values
        blocks.update({(output, name): row for name, row in zip(rows, found, strict=True)})
    results = [blocks[output, name] for output in chosen for name in wrt]
    result = Program(
        name=f"{program.name}_jacobian",
        inputs=program.inputs,
        sizes=tuple(work.sizes),
        tensors=(*program.tensors, *work.made),
        statements=(*program.statements, *work.statements),
        outputs=(*(kept or values_of), *results),
        assertions=tuple(work.assertions),
        rules=tuple(work.rules),
        repeats=tuple(work.repeats),
    )
    wanted = [*values_of, *(f"{output}_by_{n}" for output in chosen for n in wrt)]
    result = _with_result_names(simplify(result), wanted)
    return with_own_sizes(result, original)


def _appended(work: Derivative, part: Program, count: int) -> tuple[list[str], list[str]]:
    """The outputs of ``part``, appended to the program: values, and the last ``count`` of them, which are blocks."""
    # What several parts have in common, the values of the program itself, is made once: `simplify` sees to it.
    inputs = [work.tensor(tensor.name) for tensor in part.inputs]
    made = [tensor.name for tensor in append_program(work, part, inputs)]
    return made[: len(made) - count], made[len(made) - count :]


def _columns(program: Program, name: str, outputs: Sequence[str], keep_outputs: Sequence[str]) -> Program:
    """The derivatives of ``outputs`` by the input ``name``, as the tangents along all unit directions."""
    derivative = tangent(program, [name], outputs=outputs, keep_outputs=keep_outputs)
    return _with_unit_seeds(derivative, derivative.outputs[-len(outputs) :], trailing=True)


def _rows(program: Program, names: Sequence[str], output: str, keep_outputs: Sequence[str]) -> Program:
    """The derivatives of ``output`` by the inputs ``names``, as the adjoints of all unit cotangents."""
    derivative = adjoint(program, names, outputs=[output], keep_outputs=keep_outputs)
    seeded = _with_unit_seeds(derivative, derivative.outputs[-len(names) :], trailing=False)
    return _of_type(seeded, len(names), program.tensor(output).dtype)


def _with_unit_seeds(derivative: Program, outputs: Sequence[str], trailing: bool) -> Program:
    """``derivative`` for all unit values of its last input; ``outputs`` have an axis for each axis of the input."""
    seed = derivative.inputs[-1]
    result = batched(derivative, [seed.name], seed.shape, outputs, trailing=trailing)
    seed, extents = result.inputs[-1], seed.shape
    cells = cell_names(len(extents), (size.name for size in result.sizes))
    target = Access(seed.name, tuple(map(index, (*cells, *cells))))
    one = constant(1, compute_dtype(seed.dtype))
    ones = Statement(target, "assign", Neutral(), one, Domain.from_set(box(cells, extents)))
    dependent = dependents(result, [seed.name])
    if result.repeats or any(dependent.intersection(rule.outputs) for rule in result.rules):
        # What a derivative rule stands for is not looked into, nor are loops, so the seed is an array like any other.
        inputs = result.inputs[:-1]
        return replace(result, inputs=inputs, tensors=(seed, *result.tensors), statements=(ones, *result.statements))
    return with_sparse_seed(result, seed, [ones])


def _of_type(program: Program, count: int, dtype: str) -> Program:
    """``program`` with its last ``count`` outputs of type ``dtype``."""
    names = names_of(program)
    for name in program.outputs[-count:]:
        tensor = program.tensor(name)
        if tensor.dtype == dtype:
            continue
        made = Tensor(names.fresh(name), dtype, tensor.shape)
        cells = tuple(names.fresh(f"z{k}") for k in range(len(tensor.shape)))
        value = cast(read_cell(tensor, cells, compute_dtype(tensor.dtype)), compute_dtype(dtype))
        converted = over_box(made.name, cells, tensor.shape, value)
        program = replace(
            program,
            tensors=(*program.tensors, made),
            statements=(*program.statements, converted),
            outputs=tuple(made.name if output == name else output for output in program.outputs),
        )
    return program


def _with_result_names(program: Program, wanted: Sequence[str]) -> Program:
    results = program.outputs[len(program.outputs) - len(wanted) :]
    taken = {tensor.name for tensor in (*program.inputs, *program.tensors)}
    names = {old: new for old, new in zip(results, wanted, strict=True) if new not in taken and old != new}
    return with_tensors_renamed(program, names) if names else program
