"""How the loop backwards is differentiated in turn, where it computes states again: by what it is, not by how it runs.

It applies the transposed derivative of the loop forwards. A rule of mode ``adjoint`` says so, and has that loop for its
program; from that derivatives of the next order are made, in place of those of the stack of states.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tcdsl.autodiff.statement_derivatives.derivative import Derivative
from tcdsl.errors import DifferentiationError, TcdslError
from tcdsl.ir.dtypes import compute_dtype, is_floating
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.ir.program import DerivativeRule, Program, Repeat, Tensor
from tcdsl.polyhedra.boxes import over_box
from tcdsl.polyhedra.writes import read_cell
from tcdsl.rewrite.needed_inputs import with_needed_inputs

__all__ = ["loop_rule", "without_derivative"]


def loop_rule(
    work: Derivative, repeat: Repeat, seeds: Mapping[str, str], results: Mapping[str, str]
) -> tuple[DerivativeRule, ...]:
    """That the tensors ``results`` are the adjoint of ``repeat`` for the cotangents ``seeds``, by inputs of its body.

    Nothing is said where numbers of half precision are carried, whose cotangents have another type.
    """
    slots = dict(zip((each.name for each in repeat.body.inputs[1:]), repeat.inputs, strict=True))
    floating = [name for name, outer in slots.items() if is_floating(work.tensor(outer).dtype)]
    if any(work.tensor(slots[name]).dtype != compute_dtype(work.tensor(slots[name]).dtype) for name in floating):
        return ()
    wanted = (*seeds, *(name for name in floating if name not in seeds))
    constants = {name: outer for name, outer in slots.items() if name not in wanted}
    names = FreshNames((*work.declared, *(size.name for size in work.sizes)))
    own = {name: replace(work.tensor(outer), name=names.fresh(name), label="") for name, outer in slots.items()}
    read = sorted(repeat.read_by_ends)
    program = _of_loop(work, repeat, own, read, tuple(seeds), names)
    inputs = {each.name: each for each in program.inputs}
    given = [inputs.pop(name) for name in read]
    given += [inputs.pop(own[name].name) for name in (*constants, *wanted)]
    rule = DerivativeRule(
        "adjoint",
        tuple(results[name] for name in seeds),
        (*(slots[name] for name in wanted), *seeds.values()),
        (*read, *constants.values()),
        tuple(inputs),
        replace(program, inputs=(*inputs.values(), *given)),
        repeat.span,
    )
    return (rule,)


def _of_loop(
    work: Derivative,
    repeat: Repeat,
    own: Mapping[str, Tensor],
    read: Sequence[str],
    seeded: Sequence[str],
    names: FreshNames,
) -> Program:
    """``repeat`` of its ``own`` inputs, as a program of what it leaves of the ``seeded`` inputs of its body."""
    left = dict(zip((name for name, _ in repeat.body.updates), repeat.results, strict=True))
    statements, made = [], {}
    for name in sorted(seeded, key=left.__contains__):
        # What no round changes is left as it was.
        source = work.tensor(left[name]) if name in left else own[name]
        result = made[name] = replace(source, name=names.fresh(source.name), label="")
        cells = work.cell_variables(len(source.shape))
        statements.append(over_box(result.name, cells, source.shape, read_cell(source, cells, source.dtype)))
    needed = [*read, *(each.name for each in own.values())]
    inputs = {each.name: each for each in (*work.program.inputs, *map(work.tensor, read), *own.values())}
    whole = Program(
        repeat.body.name,
        tuple(inputs.values()),
        tuple(work.sizes),
        (*map(work.tensor, repeat.results), *made.values()),
        tuple(statements),
        tuple(made[name].name for name in seeded),
        assertions=tuple(work.assertions),
        repeats=(replace(repeat, inputs=tuple(each.name for each in own.values())),),
    )
    return with_needed_inputs(whole, needed)


def without_derivative(repeat: Repeat, rule: str) -> TcdslError:
    """The error where host code is differentiated that has no ``rule``."""
    name = repeat.body.name.removesuffix("_call")
    fact = f"the host function `{name}` has no derivative"
    hint = f"give one: `tc.interop.host(..., {rule}=...)`, or for Numba's `tc.interop.numba(f, derivative=...)`"
    if name.endswith(("_vjp", "_jvp")):
        fact = f"`{name}`, which Python computes, would be differentiated or transposed"
        other = "jvp" if name.endswith("_vjp") else "vjp"
        hint = f"give `{other}` too; for second derivatives pass a host function with `{rule}=...` as `{name[-3:]}`"
    return DifferentiationError.at(fact, repeat.span, hint)
