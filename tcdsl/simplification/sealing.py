"""Programs with derivative rules, made safe to simplify: what a rule stands for is neither looked into nor merged.

While a program is simplified, whatever reads an output of a rule reads an input of the same shape instead, and the
tensors that the rule names are outputs, so that they stay under their names. Otherwise ``exp`` with a rule of its own
and another ``exp`` of the same cells would become one tensor (so `copies` and `reuse` never refer to an output of a
rule either), and what is rounded by a function with a straight-through rule would be read past that function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tcdsl.ir.fresh_names import names_of
from tcdsl.ir.program import Program
from tcdsl.ir.stages import tensors_needed
from tcdsl.rewrite.renaming import statement_with_tensors_renamed, with_tensors_renamed

__all__ = ["simplified_around_rules"]


def simplified_around_rules(program: Program, simplify: Callable[[Program], Program]) -> Program:
    """``program`` by ``simplify``, the statements with derivative rules and the rest apart; idle rules go."""
    while (used := _with_used_rules(program)).rules:
        result = _unsealed(simplify(_sealed(used)), used)
        if result.rules == used.rules and len(_with_used_rules(result).rules) == len(result.rules):
            return result
        program = result
    return simplify(used)


def _with_used_rules(program: Program) -> Program:
    """``program`` without the rules of tensors that nothing needs."""
    needed = tensors_needed(program, (*program.outputs, *(new for _, new in program.updates)))
    return replace(program, rules=tuple(rule for rule in program.rules if needed.intersection(rule.outputs)))


def _named(program: Program) -> list[str]:
    # The tensors that rules name, inputs apart: those stay anyway.
    inputs = {tensor.name for tensor in program.inputs}
    return [name for name in dict.fromkeys(n for rule in program.rules for n in rule.named) if name not in inputs]


def _sealed(program: Program) -> Program:
    names = names_of(program)
    aliases = {output: names.fresh(f"{output}_sealed") for rule in program.rules for output in rule.outputs}
    statements = []
    for statement in program.statements:
        own = statement.target.tensor
        statements.append(statement_with_tensors_renamed(statement, {**aliases, own: own}))
    repeats = (repeat.with_tensors({**aliases, **{own: own for own in repeat.results}}) for repeat in program.repeats)
    return replace(
        program,
        inputs=(*program.inputs, *(replace(program.tensor(name), name=alias) for name, alias in aliases.items())),
        statements=tuple(statements),
        outputs=(*program.outputs, *_named(program)),
        repeats=tuple(repeats),
    )


def _unsealed(result: Program, original: Program) -> Program:
    aliases = [tensor.name for tensor in result.inputs[len(original.inputs) :]]
    outputs = dict.fromkeys(output for rule in original.rules for output in rule.outputs)
    inputs = result.inputs[: len(original.inputs)]
    opened = replace(result, inputs=inputs, outputs=result.outputs[: len(original.outputs)])
    return with_tensors_renamed(opened, dict(zip(aliases, outputs, strict=True)))
