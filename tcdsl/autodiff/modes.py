"""Both modes: the adjoint, the gradient and the tangent of a program.

Where the user gives a derivative, a `DerivativeRule` stands for the statements between its arguments and outputs.

Both modes go through a program in an order where the outputs of a rule stand behind its arguments (`stages_by_rules`),
and apply the rule when they reach the first of its outputs: in reverse, everything that reads an output has been
transposed by then, and nothing that makes an argument; going forward, the tangents of the arguments are known. A rule
for one mode serves the other one too: a pullback is linear in the cotangents and a pushforward in the tangents, so the
adjoint of one, by them, is the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial, reduce

from tcdsl.autodiff.loop_derivatives.adjoints import pull_through
from tcdsl.autodiff.loop_derivatives.tangents import push_through
from tcdsl.autodiff.statement_derivatives.derivative import Derivative, check_inputs, chosen_outputs
from tcdsl.autodiff.statement_derivatives.forward import Forward
from tcdsl.autodiff.statement_derivatives.reverse import Reverse, transpose
from tcdsl.errors import DifferentiationError
from tcdsl.ir.build import apply, constant, integer
from tcdsl.ir.dtypes import compute_dtype, is_floating
from tcdsl.ir.expressions import SizeValue
from tcdsl.ir.program import Assertion, DerivativeRule, Program, Tensor
from tcdsl.ir.stages import stages_by_rules
from tcdsl.ir.text.printer import format_expr
from tcdsl.polyhedra.boxes import over_box
from tcdsl.polyhedra.limits import refused_beyond_limits
from tcdsl.rewrite.inlining import append_program
from tcdsl.rewrite.linearization import dependents
from tcdsl.rewrite.loop_cells import with_parts_carried
from tcdsl.rewrite.loop_sums import with_sums_continued
from tcdsl.rewrite.renaming import with_tensors_renamed
from tcdsl.rewrite.unified_sizes import with_equal_sizes, with_own_sizes

__all__ = ["adjoint", "gradient", "tangent"]


# -- reverse mode ------------------------------------------------------------------------------------------------------


@refused_beyond_limits(DifferentiationError, "this derivative")
def adjoint(
    program: Program,
    wrt: Sequence[str],
    outputs: Sequence[str] | None = None,
    keep_outputs: bool | Sequence[str] = True,
) -> Program:
    """The program that pulls derivatives of ``outputs`` back to the inputs ``wrt`` (a vector-Jacobian product).

    ``adjoint(matmul, ["A", "B"])`` takes ``A: [N, K]``, ``B: [K, M]`` and the seed ``d_C: [N, M]`` and returns ``C``,
    ``d_A`` and ``d_B``.

    Its inputs are the program's, followed by a seed ``d_<output>`` for each differentiated output (all floating ones
    by default), of that output's type and shape. Its outputs are the program's (of which ``keep_outputs`` may name
    some, or be false), followed by one adjoint ``d_<input>`` per name in ``wrt``, of that input's type and shape. A
    name that is taken gets a number; the order is as given. Raises `DifferentiationError` for integer and bool tensors
    and for missing rules.
    """
    chosen = chosen_outputs(program, outputs)
    check_inputs(program, wrt)
    original, program = program, with_parts_carried(with_equal_sizes(program))
    work = Reverse(program, wrt)
    seeds = []
    for output in chosen:
        seeds.append(work.given(f"d_{output}", program.tensor(output)))
        _seed(work, output, seeds[-1])
    return with_own_sizes(_finished(work, wrt, "adjoint", seeds, keep_outputs), original)


@refused_beyond_limits(DifferentiationError, "this derivative")
def gradient(program: Program, wrt: Sequence[str], keep_outputs: bool | Sequence[str] = True) -> Program:
    """The program that computes a loss of one element and its gradient.

    ``gradient(loss, ["w"])`` takes the inputs of ``loss`` and returns its outputs and ``d_w``. The first output is the
    loss: floating, of rank 0 or with extents of 1, which an assertion checks at the call.
    """
    check_inputs(program, wrt)
    [output] = chosen_outputs(program, program.outputs[:1])
    original, program = program, with_parts_carried(with_equal_sizes(program))
    work = Reverse(program, wrt)
    declared = program.tensor(output)
    if declared.shape:
        work.assertions.append(_one_element(declared))
    if output in work.active:
        one = constant(1, compute_dtype(declared.dtype))
        cells = work.cell_variables(len(declared.shape))
        work.contributions.add(output, over_box(output, cells, declared.shape, one, "add"))
    return with_own_sizes(_finished(work, wrt, "gradient", (), keep_outputs), original)


def _one_element(loss: Tensor) -> Assertion:
    condition = reduce(partial(apply, "and_"), [apply("eq", extent, integer(1)) for extent in loss.shape])
    shape = ", ".join(f"{{{e.name}}}" if isinstance(e, SizeValue) else format_expr(e) for e in loss.shape)
    message = (
        f"only a loss of one element has a gradient, but `{loss.label or loss.name}` has shape [{shape}]"
        "\nreduce it to one number, or use tc.vjp with a cotangent, or tc.jacobian"
    )
    return Assertion(condition, message)


def _seed(work: Reverse, output: str, seed: Tensor) -> None:
    if output not in work.active:
        return
    if seed.dtype == compute_dtype(seed.dtype):
        work.contributions.add_whole(output, seed.name)
        return
    work.contributions.add(output, work.added(seed, output))


def _transpose_all(work: Reverse) -> None:
    """Transpose all statements and loops, last first."""
    for stage in reversed(list(stages_by_rules(work.program))):
        if stage.repeat is not None:
            for name in reversed(stage.repeat.results):
                if name in work.rule_at:
                    _pull_rule(work, work.rule_at[name])
            pull_through(work, stage.repeat, _transpose_all)
        for statement in reversed(stage.statements):
            name = statement.target.tensor
            if name in work.rule_at:
                _pull_rule(work, work.rule_at[name])
            elif name in work.active and name not in work.ruled:
                adjoint_name = work.contributions.total(name, f"d_{name}")
                if adjoint_name is not None:
                    transpose(work, statement, adjoint_name)


def _pull_back(work: Reverse, wrt: Sequence[str]) -> list[str]:
    """Transpose the program, and make one tensor per name in ``wrt``."""
    _transpose_all(work)
    found: list[str] = []
    totals = {name: work.contributions.total(name, f"d_{name}") for name in dict.fromkeys(wrt)}
    taken = {tensor.name for tensor in work.declared.values()} - {tensor.name for tensor in work.made}
    for name in wrt:
        total = totals[name]
        if total is None or total in taken or total in found or work.tensor(total).dtype != work.tensor(name).dtype:
            total = work.result(f"d_{name}", work.tensor(name), total)
        found.append(total)
    return found


def _pull_rule(work: Reverse, rule: DerivativeRule) -> None:
    """Pull the derivatives by a rule's outputs back to its arguments."""
    outputs = _floating(work, rule.outputs)
    # An output that another rule covers has its derivative pulled back by that one.
    totals = [work.contributions.total(name, f"d_{name}") if work.ruled[name] is rule else None for name in outputs]
    if all(total is None for total in totals):
        return
    found = _applied(work, rule, "pullback", totals)
    for name, made in zip(_floating(work, rule.arguments), found, strict=True):
        if name in work.active:
            work.contributions.add_whole(name, made)


def _finished(
    work: Reverse, wrt: Sequence[str], suffix: str, seeds: Sequence[Tensor], keep_outputs: bool | Sequence[str]
) -> Program:
    result = with_sums_continued(work.finished(suffix, seeds, _pull_back(work, wrt), keep_outputs))
    return _with_result_names(result, wrt, {tensor.name for tensor in work.made})


def _with_result_names(program: Program, wrt: Sequence[str], made: set[str]) -> Program:
    # d_x is the last of d_x, d_x_2, d_x_3: the names change places. Names that the program had before stay.
    swaps: dict[str, str] = {}
    others = {tensor.name for tensor in (*program.inputs, *program.tensors)} - made
    for name, result in zip(wrt, program.outputs[len(program.outputs) - len(wrt) :], strict=True):
        preferred = f"d_{name}"
        if result != preferred and preferred not in others and result in made and preferred not in swaps:
            swaps[result] = preferred
            swaps[preferred] = result
    return with_tensors_renamed(program, swaps) if swaps else program


# -- forward mode ------------------------------------------------------------------------------------------------------


@refused_beyond_limits(DifferentiationError, "this derivative")
def tangent(
    program: Program,
    wrt: Sequence[str],
    outputs: Sequence[str] | None = None,
    keep_outputs: bool | Sequence[str] = True,
) -> Program:
    """The program that pushes directions of the inputs ``wrt`` forward (a Jacobian-vector product).

    ``tangent(matmul, ["A"])`` takes ``A``, ``B`` and the direction ``t_A: [N, K]`` and returns ``C`` and
    ``t_C: [N, M]``.

    Its inputs are the program's, followed by one direction ``t_<input>`` per name in ``wrt``; its outputs are the
    program's (of which ``keep_outputs`` may name some, or be false), followed by ``t_<output>`` for each of
    ``outputs``, all floating ones by default. A name that is taken gets a number. Raises `DifferentiationError` as
    `adjoint` does.
    """
    chosen = chosen_outputs(program, outputs)
    check_inputs(program, wrt)
    original, program = program, with_equal_sizes(program)
    work = Forward(program, wrt)
    directions = []
    for name in wrt:
        directions.append(work.given(f"t_{name}", program.tensor(name)))
        work.tangents[name] = directions[-1].name
    for stage in stages_by_rules(work.program):
        for statement in stage.statements:
            name = statement.target.tensor
            if name in work.rule_at:
                _push_rule(work, work.rule_at[name])
            elif name in work.active and name not in work.ruled:
                work.add_tangent(statement)
        if stage.repeat is not None:
            for name in stage.repeat.results:
                if name in work.rule_at:
                    _push_rule(work, work.rule_at[name])
            push_through(work, stage.repeat, work.tangents, tangent)
    found: list[str] = []
    for name in chosen:
        own = work.tangents.get(name)
        taken = own in found or own in {direction.name for direction in directions}
        if own is None or taken or work.tensor(own).dtype != work.tensor(name).dtype:
            own = work.result(f"t_{name}", work.tensor(name), own)
        found.append(own)
    made = with_sums_continued(work.finished("tangent", directions, found, keep_outputs))
    return with_own_sizes(made, original)


def _push_rule(work: Forward, rule: DerivativeRule) -> None:
    """The tangents of a rule's outputs."""
    tangents = [work.tangents.get(name) for name in _floating(work, rule.arguments)]
    if all(tangent is None for tangent in tangents):
        return
    found = _applied(work, rule, "pushforward", tangents)
    for name, made in zip(_floating(work, rule.outputs), found, strict=True):
        # An output that another rule covers has its tangent from that one.
        if work.ruled[name] is rule:
            work.tangents[name] = made


# -- rules -------------------------------------------------------------------------------------------------------------


def _floating(work: Derivative, names: Sequence[str]) -> list[str]:
    """The names of floating tensors."""
    return [name for name in names if is_floating(work.tensor(name).dtype)]


def _applied(work: Derivative, rule: DerivativeRule, mode: str, seeds: Sequence[str | None]) -> list[str]:
    """Append the rule's program in ``mode``; the adjoints of its floating arguments, or the tangents of its outputs.

    ``seeds`` are the cotangents of its floating outputs, or the tangents of its arguments; ``None`` is one of zeros.
    """
    if rule.mode == "adjoint":
        return _differentiated_adjoint(work, rule, mode, seeds)
    rule = _of_mode(work, rule, mode)
    _check_constants(work, rule)
    given = [work.tensor(name) for name in rule.named]
    of_mode = _floating(work, rule.outputs if mode == "pullback" else rule.arguments)
    values = [
        work.tensor(_zeros(work, work.tensor(name)) if seed is None else seed)
        for name, seed in zip(of_mode, seeds, strict=True)
    ]
    program = rule.program
    if rule.mode != mode:
        own = program.inputs[len(given) :]
        program = adjoint(program, [seed.name for seed in own], keep_outputs=False)
        _check_linear(work, rule, program, [seed.name for seed in own])
        # The transposed program keeps the seeds of the original as inputs that it does not read.
        others = rule.arguments if rule.mode == "pushforward" else rule.outputs
        given += [work.tensor(name) for name in _floating(work, others)]
    return [tensor.name for tensor in append_program(work, program, [*given, *values])]


def _of_mode(work: Derivative, rule: DerivativeRule, mode: str) -> DerivativeRule:
    """The function's rule of that ``mode``, if it has one."""
    rules = work.program.rules
    other = rules[rules.index(rule) - 1] if rule.beside else rule
    return other if (other.mode, other.outputs) == (mode, rule.outputs) else rule


def _differentiated_adjoint(
    work: Derivative, rule: DerivativeRule, mode: str, seeds: Sequence[str | None]
) -> list[str]:
    """What `applied` gives for outputs that are the adjoint of a program.

    Along ``t_x``, the adjoint by ``x`` for a cotangent ``w`` changes by the gradient of ``sum(w * t_y)``, where ``t_y``
    is the tangent of the program; and the derivative by ``w`` is ``t_y``. So no order looks into the adjoint itself.
    """
    program = rule.program
    returned = len(program.outputs)
    values, weights = rule.arguments[:-returned], rule.arguments[-returned:]
    own = [each.name for each in program.inputs[-len(values) :]]
    moving = [(name, seed) for name, seed in zip(own, seeds, strict=False) if seed is not None]
    pushed = tangent(program, [name for name, _ in moving]) if moving else program
    moved = pushed.outputs[returned:]
    given = [*rule.extents, *rule.constants, *values, *(seed for _, seed in moving)]
    if mode == "pullback":
        # The derivatives by the arguments that are not moved count too.
        found = adjoint(pushed, own, moved, keep_outputs=moved)
        made = append_program(work, found, [work.tensor(name) for name in (*given, *weights)])
        return [tensor.name for tensor in (*made[returned:], *made[:returned])]
    turned = [pair for pair in zip(pushed.outputs, seeds[len(values) :], strict=False) if pair[1] is not None]
    found = adjoint(pushed, own[: len(rule.outputs)], [*(name for name, _ in turned), *moved], keep_outputs=False)
    given += [seed for _, seed in turned if seed is not None]
    made = append_program(work, found, [work.tensor(name) for name in (*given, *(weights if moved else ()))])
    return [tensor.name for tensor in made]


def _zeros(work: Derivative, like: Tensor) -> str:
    return work.result(f"zero_{like.name}", replace(like, dtype=compute_dtype(like.dtype)), None)


def _check_constants(work: Derivative, rule: DerivativeRule) -> None:
    for name in rule.constants:
        if work.wants(name):
            raise DifferentiationError.at(
                f"the {rule.mode} of {_labels(work, rule.outputs)} gives no derivative by {_labels(work, [name])}, "
                "which is no argument of it",
                rule.span,
                "make it a positional argument of the function and of its rule, or wrap it in stop_gradient",
            )


def _check_linear(work: Derivative, rule: DerivativeRule, transposed: Program, seeds: Sequence[str]) -> None:
    if dependents(transposed, seeds).intersection(transposed.outputs):
        kind = "tangents" if rule.mode == "pushforward" else "cotangents"
        raise DifferentiationError.at(
            f"the {rule.mode} of {_labels(work, rule.outputs)} is not linear in its {kind}, so it has no transpose",
            rule.span,
            f"write a rule that is linear in the {kind}, or give the other one too (defvjp for reverse mode, "
            "defjvp for forward mode)",
        )


def _labels(work: Derivative, names: Sequence[str]) -> str:
    return ", ".join(work.tensor(name).label or name for name in names)
