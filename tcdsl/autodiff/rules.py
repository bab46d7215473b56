"""Derivatives that the user gives: a `DerivativeRule` stands for the statements between its arguments and outputs.

Both modes apply a rule when they reach the first of its outputs: in reverse, everything that reads an output has been
transposed by then, and going forward the tangents of the arguments are known. A rule for one mode serves the other one
too: a pullback is linear in the cotangents and a pushforward in the tangents, so the adjoint of one, by them, is the
other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tcdsl.autodiff.statement_derivatives.derivative import Derivative
from tcdsl.errors import Diagnostic, DifferentiationError
from tcdsl.ir.dtypes import compute_dtype, is_floating
from tcdsl.ir.program import DerivativeRule, Program, Tensor, tensors_read
from tcdsl.rewrite.inlining import append_program

__all__ = ["Transpose", "applied", "floating"]

#: The adjoint of a program by the inputs named.
Transpose = Callable[[Program, Sequence[str]], Program]


def floating(work: Derivative, names: Sequence[str]) -> list[str]:
    """The names of floating tensors."""
    return [name for name in names if is_floating(work.tensor(name).dtype)]


def applied(
    work: Derivative, rule: DerivativeRule, mode: str, seeds: Sequence[str | None], transpose: Transpose
) -> list[str]:
    """Append the rule's program in ``mode``; the adjoints of its floating arguments, or the tangents of its outputs.

    ``seeds`` are the cotangents of its floating outputs, or the tangents of its arguments; ``None`` is one of zeros.
    """
    _check_constants(work, rule)
    given = [work.tensor(name) for name in rule.named]
    of_mode = floating(work, rule.outputs if mode == "pullback" else rule.arguments)
    values = [
        work.tensor(_zeros(work, work.tensor(name)) if seed is None else seed)
        for name, seed in zip(of_mode, seeds, strict=True)
    ]
    program = rule.program
    if rule.mode != mode:
        own = program.inputs[len(given) :]
        program = transpose(program, [seed.name for seed in own])
        _check_linear(work, rule, program, [seed.name for seed in own])
        # The transposed program keeps the seeds of the original as inputs that it does not read.
        others = rule.arguments if rule.mode == "pushforward" else rule.outputs
        given += [work.tensor(name) for name in floating(work, others)]
    return [tensor.name for tensor in append_program(work, program, [*given, *values])]


def _zeros(work: Derivative, like: Tensor) -> str:
    return work.result(f"zero_{like.name}", replace(like, dtype=compute_dtype(like.dtype)), None)


def _check_constants(work: Derivative, rule: DerivativeRule) -> None:
    for name in rule.constants:
        if work.wants(name):
            raise Diagnostic(
                DifferentiationError,
                f"the {rule.mode} of {_labels(work, rule.outputs)} gives no derivative by {_labels(work, [name])}, "
                "which is no argument of it",
                rule.span,
                hint="make it a positional argument of the function and of its rule, or wrap it in stop_gradient",
            ).error()


def _check_linear(work: Derivative, rule: DerivativeRule, transposed: Program, seeds: Sequence[str]) -> None:
    if any(tensors_read(statement) & set(seeds) for statement in transposed.statements):
        kind = "tangents" if rule.mode == "pushforward" else "cotangents"
        raise Diagnostic(
            DifferentiationError,
            f"the {rule.mode} of {_labels(work, rule.outputs)} is not linear in its {kind}, so it has no transpose",
            rule.span,
            hint=f"write a rule that is linear in the {kind}, or give the other one too (defvjp for reverse mode, "
            "defjvp for forward mode)",
        ).error()


def _labels(work: Derivative, names: Sequence[str]) -> str:
    return ", ".join(work.tensor(name).label or name for name in names)
