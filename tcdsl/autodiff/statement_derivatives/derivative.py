"""A program while its derivative is written: what is active, what is declared, what has been appended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tcdsl.autodiff.statement_derivatives.activity import active_tensors
from tcdsl.autodiff.statement_derivatives.candidates import with_candidates_stored
from tcdsl.autodiff.statement_derivatives.intermediates import Work, with_intermediates_stored
from tcdsl.autodiff.statement_derivatives.scalar import carries
from tcdsl.errors import Diagnostic, DifferentiationError, raise_diagnostics
from tcdsl.ir.build import constant
from tcdsl.ir.dtypes import compute_dtype, is_floating
from tcdsl.ir.expressions import Expr, SizeValue
from tcdsl.ir.fresh_names import cell_names, names_of
from tcdsl.ir.program import (
    Assertion,
    DerivativeRule,
    Program,
    Repeat,
    Size,
    Statement,
    Tensor,
    tensors_read,
)
from tcdsl.ir.stages import loops_in_order, stages_by_rules
from tcdsl.polyhedra.boxes import over_box
from tcdsl.polyhedra.size_facts import size_context
from tcdsl.polyhedra.writes import read_cell
from tcdsl.simplification.expressions.factoring import with_factored_values
from tcdsl.simplification.simplify import simplify
from tcdsl.span import Span

__all__ = ["Derivative", "check_inputs", "chosen_outputs", "kept_outputs"]


def chosen_outputs(program: Program, outputs: Sequence[str] | None) -> tuple[str, ...]:
    """The outputs to differentiate: ``outputs``, or all floating ones. `DifferentiationError` for others."""
    if outputs is None:
        return tuple(name for name in program.outputs if is_floating(program.tensor(name).dtype))
    _check(program, outputs, program.outputs, "output")
    return tuple(outputs)


def kept_outputs(program: Program, kept: bool | Sequence[str]) -> tuple[str, ...]:
    """The outputs that a derivative returns too: all, none, or those that are named."""
    if isinstance(kept, bool):
        return program.outputs if kept else ()
    return tuple(kept)


def check_inputs(program: Program, wrt: Sequence[str]) -> None:
    """Raise `DifferentiationError` for names that are no inputs, and for integer and bool ones."""
    _check(program, wrt, [tensor.name for tensor in program.inputs], "input")


def _check(program: Program, names: Sequence[str], known: Sequence[str], kind: str) -> None:
    faults = []
    for name in names:
        if name not in known:
            fact = f"{name} is not an {kind} of {program.name}"
            faults.append(Diagnostic(DifferentiationError, fact, notes=(f"the {kind}s are {', '.join(known)}",)))
        elif not is_floating(program.tensor(name).dtype):
            faults.append(_no_gradient(program.tensor(name)))
    raise_diagnostics(faults)


def _no_gradient(tensor: Tensor) -> Diagnostic:
    fact = f"{tensor.label or tensor.name} is {tensor.dtype}: integer and bool tensors have no gradient"
    hint = "leave it out of the arguments to differentiate by, or pass floating numbers"
    return Diagnostic(DifferentiationError, fact, tensor.span, hint=hint)


class Derivative:
    """A program under construction: what both modes share.

    ``work`` says what a derivative of this mode takes, where values that it would compute too often are to be stored.
    """

    def __init__(self, program: Program, wrt: Sequence[str], work: Work | None = None) -> None:
        active = active_tensors(program, wrt).difference(program.ruled)
        program = with_candidates_stored(program, active.__contains__)
        if work is not None:
            active = active_tensors(program, wrt).difference(program.ruled)
            program = with_intermediates_stored(program, active.__contains__, work)
        self.program = program
        self.names = names_of(program)
        self.context = size_context(program)
        self.active = active_tensors(program, wrt)
        self.declared: dict[str, Tensor] = {t.name: t for t in (*program.inputs, *program.tensors)}
        self.made: list[Tensor] = []
        self.statements: list[Statement] = []
        self.sizes = list(program.sizes)
        self.assertions = list(program.assertions)
        self.rules = list(program.rules)
        self.repeats = list(program.repeats)
        self.ruled = program.ruled
        #: The rule to apply on reaching what makes a tensor: the first that is made of the rule's outputs.
        self.rule_at: dict[str, DerivativeRule] = {}
        for stage in stages_by_rules(self.program) if self.ruled else ():
            results = stage.repeat.results if stage.repeat is not None else ()
            for name in (*(statement.target.tensor for statement in stage.statements), *results):
                rule = self.ruled.get(name)
                if rule is not None and rule not in self.rule_at.values():
                    self.rule_at[name] = rule

    def tensor(self, name: str) -> Tensor:
        """A declaration."""
        return self.declared[name]

    def extents(self, name: str) -> tuple[Expr, ...]:
        """The shape of a tensor."""
        return self.declared[name].shape

    def is_input(self, name: str) -> bool:
        """Whether a tensor is an input, whose derivative is a result."""
        return any(tensor.name == name for tensor in self.program.inputs)

    def wants(self, tensor: str) -> bool:
        """Whether a tensor depends on what the program is differentiated by."""
        return tensor in self.active

    def carries(self, expr: Expr) -> bool:
        """Whether an expression does."""
        return carries(expr, self.wants, anywhere=True)

    def declare(self, hint: str, dtype: str, shape: tuple[Expr, ...]) -> str:
        """A new tensor."""
        tensor = self.given(hint, Tensor("", dtype, shape))
        self.made.append(tensor)
        return tensor.name

    def result(self, hint: str, like: Tensor, source: str | None) -> str:
        """A new tensor of the type and shape of ``like``: a copy of ``source``, or zeros."""
        name = self.declare(hint, like.dtype, like.shape)
        cells, dtype = self.cell_variables(len(like.shape)), compute_dtype(like.dtype)
        value = constant(0, dtype) if source is None else read_cell(self.tensor(source), cells, dtype)
        self.append(over_box(name, cells, like.shape, value))
        return name

    def given(self, hint: str, like: Tensor) -> Tensor:
        """A new tensor of the type and shape of ``like`` that no statement makes."""
        tensor = Tensor(self.names.fresh(hint), like.dtype, like.shape)
        self.declared[tensor.name] = tensor
        return tensor

    def added(self, source: Tensor, target: str) -> Statement:
        """``target += source``, for all cells."""
        cells = self.cell_variables(len(source.shape))
        return over_box(target, cells, source.shape, read_cell(source, cells, compute_dtype(source.dtype)), "add")

    def finished(
        self, suffix: str, seeds: Sequence[Tensor], found: Sequence[str], keep_outputs: bool | Sequence[str]
    ) -> Program:
        """The derivative: it takes ``seeds`` too, and returns ``found``, behind the outputs that are kept."""
        program = self.program
        derivative = Program(
            name=f"{program.name}_{suffix}",
            inputs=(*program.inputs, *seeds),
            sizes=tuple(self.sizes),
            tensors=(*program.tensors, *self.made),
            statements=(*program.statements, *with_factored_values(self.statements)),
            outputs=(*kept_outputs(program, keep_outputs), *found),
            updates=program.updates if keep_outputs is True else (),
            assertions=tuple(self.assertions),
            rules=tuple(self.rules),
            repeats=tuple(self.repeats),
        )
        # A loop that computes tangents too stands where the program has it, and loops of rules behind all those.
        return simplify(replace(derivative, repeats=loops_in_order(derivative)))

    def as_body(self, updates: Sequence[tuple[str, str]], outputs: tuple[str, ...] = ()) -> Program:
        """What has been written, as the body of a loop."""
        return replace(
            self.program,
            sizes=tuple(self.sizes),
            tensors=tuple(self.made),
            statements=tuple(self.statements),
            outputs=outputs,
            updates=tuple(updates),
            assertions=tuple(self.assertions),
            rules=tuple(self.rules),
            repeats=tuple(self.repeats),
        )

    def scalar(self, hint: str, value: Expr) -> Tensor:
        """A new tensor of rank 0 that holds ``value``."""
        name = self.declare(hint, value.dtype, ())
        self.append(over_box(name, (), (), value))
        return self.tensor(name)

    def append(self, statement: Statement) -> None:
        """A statement that makes a declared tensor."""
        self.statements.append(statement)

    def place(self, statement: Statement) -> None:
        """A statement that makes a declared tensor, as early as what it reads is there.

        The sums over the steps of a long program are then taken on the way, and what they read need not be kept.
        """
        read = tensors_read(statement)
        position = len(self.statements)
        while position > 0 and self.statements[position - 1].target.tensor not in read:
            position -= 1
        self.statements.insert(position, statement)

    def cell_variables(self, rank: int) -> tuple[str, ...]:
        """Names of index variables for the cells of a tensor, none of them a size."""
        return cell_names(rank, (size.name for size in self.sizes))

    # As a `tcdsl.rewrite.inlining.Host`.

    def fresh_name(self, hint: str) -> str:
        """A name that is new."""
        return self.names.fresh(hint)

    def opaque_size(self, expr: Expr) -> Expr:
        """The size that stands for an expression of sizes."""
        if isinstance(expr, SizeValue):
            return expr
        for size in self.sizes:
            if size.source == expr:
                return SizeValue(size.name)
        name = self.names.fresh("size")
        self.sizes.append(Size(name, expr))
        return SizeValue(name)

    def require(self, condition: Expr, message: str, span: Span | None = None) -> None:
        """State what holds at every call."""
        assertion = Assertion(condition, message, span)
        if assertion not in self.assertions:
            self.assertions.append(assertion)

    def add_statement(self, statement: Statement, tensor: Tensor) -> None:
        """Add a statement and the declaration of what it makes."""
        self.declared[tensor.name] = tensor
        self.made.append(tensor)
        self.statements.append(statement)

    def add_repeat(self, repeat: Repeat, tensors: Sequence[Tensor]) -> None:
        """Add a loop and the declarations of what it makes."""
        self.declared.update((tensor.name, tensor) for tensor in tensors)
        self.made.extend(tensors)
        self.repeats.append(repeat)

    def add_rule(self, rule: DerivativeRule) -> None:
        """Say how tensors that have been made are to be differentiated."""
        self.rules.append(rule)
