"""The verifier: every rule that a program keeps, checked.

::

    verify(program)                # names, ranks, types, order

It runs before programs are compiled when ``TCDSL_CHECK=ir``, and in tests, which ask isl for more
(`tests/range_checks.py`). What it finds is a fault of tcdsl, not of the user.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from tcdsl.errors import Diagnostic, TcdslError, raise_diagnostics
from tcdsl.ir.accumulators import ACCUMULATORS
from tcdsl.ir.build import result_dtype
from tcdsl.ir.dtypes import DTYPES, INTEGER, compute_dtype, is_boolean, is_floating
from tcdsl.ir.expressions import (
    Apply,
    Boundary,
    Cast,
    Constant,
    Expr,
    IndexValue,
    Let,
    Local,
    Read,
    Reduction,
    SizeValue,
    children,
    index_variables,
    is_affine_index,
    substitute,
    walk,
)
from tcdsl.ir.primitives import PRIMITIVES
from tcdsl.ir.program import AxisExtent, DerivativeRule, Fill, Keep, Program, Repeat, Statement, Tensor
from tcdsl.ir.sizes.known_sizes import equal_sizes
from tcdsl.ir.stages import Stage, stages
from tcdsl.ir.text.domain_text import domain_parameters, is_domain_name
from tcdsl.ir.text.expression_printer import NUMBER_NAMES
from tcdsl.ir.text.printer import format_expr, format_statement, format_tensor
from tcdsl.span import Span

__all__ = ["VerificationError", "verify"]


class VerificationError(TcdslError):
    """A program breaks a rule of the intermediate representation."""


def verify(program: Program) -> None:
    """Raise `VerificationError`, with all faults, unless ``program`` keeps the rules of the representation."""
    checks = _Checks(program)
    checks.program_rules()
    raise_diagnostics(checks.faults)


def _about(what: str, expr: Expr) -> str:
    return f"{what} {format_expr(expr)}"


def _computed(tensors: Iterable[Tensor]) -> list[tuple[str, int]]:
    # The types in which derivatives by the floating ones are computed, and their ranks.
    return [(compute_dtype(t.dtype), len(t.shape)) for t in tensors if is_floating(t.dtype)]


class _Checks:
    """Goes through a program in order and collects faults."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.faults: list[Diagnostic] = []
        self.declared = {tensor.name: tensor for tensor in program.tensors}
        self.made: dict[str, Tensor] = {}
        self.sizes: set[str] = set()
        self.same_sizes: dict[Expr, Expr] = {}
        self.variables: frozenset[str] = frozenset()
        # Whether integers are of any size here: in indices, in sizes, and in what is asked of these.
        self.exact = False
        # What is being checked, for messages: only made where there is a fault.
        self.place: Callable[[], str] | None = None
        self.span: Span | None = None

    def fault(self, fact: str, span: Span | None = None) -> None:
        notes = () if self.place is None else (f"in {self.place()}",)
        self.faults.append(Diagnostic(VerificationError, fact, span or self.span, notes))

    # Programs.

    def program_rules(self) -> None:
        program = self.program
        self._names("tensor", [tensor.name for tensor in (*program.inputs, *program.tensors)])
        self._names("size", [size.name for size in program.sizes])
        self._size_rules()
        for tensor in (*program.inputs, *program.tensors):
            self._declaration(tensor)
        for assertion in program.assertions:
            self.span = assertion.span
            self._size_expr(assertion.condition, "bool", partial(_about, "assertion", assertion.condition))
        if not self.faults:
            equal = equal_sizes(program.sizes, program.assertions)
            self.same_sizes = {SizeValue(name): SizeValue(same) for name, same in equal.items()}
        self.made = {tensor.name: tensor for tensor in program.inputs}
        for stage in self._stages():
            for statement in stage.statements:
                self._statement(statement)
            if stage.repeat is not None:
                self._repeat(stage.repeat)
        self.place, self.span = None, None
        self._result_rules()
        for rule in self.program.rules:
            self._derivative_rule(rule)

    def _stages(self) -> Iterable[Stage]:
        # Straight code in the order in which it is written, so that what reads too early is told of.
        if not self.program.repeats:
            return [Stage(self.program.statements, None)]
        try:
            return list(stages(self.program))
        except ValueError as error:
            self.fault(str(error))
            return []

    def _names(self, kind: str, names: Iterable[str]) -> None:
        seen: set[str] = set()
        for name in names:
            if not name.isidentifier() or keyword.iskeyword(name):
                self.fault(f"the {kind} name {name!r} is not an identifier")
            if kind != "tensor" and name in NUMBER_NAMES:
                self.fault(f"the {kind} name {name} is a number")
            elif kind != "tensor" and not is_domain_name(name):
                reason = "is a word of isl's notation" if name.isascii() else "has letters that isl does not read"
                self.fault(f"the {kind} name {name} {reason}")
            if name in seen:
                self.fault(f"there are two {kind}s named {name}")
            seen.add(name)

    def _size_rules(self) -> None:
        ranks = {tensor.name: len(tensor.shape) for tensor in self.program.inputs}
        for size in self.program.sizes:
            if not isinstance(size.source, AxisExtent):
                self._size_expr(size.source, "int64", partial(_about, "size", SizeValue(size.name)))
            elif size.source.tensor not in ranks:
                self.fault(f"the size {size.name} is an extent of {size.source.tensor}, which is no input")
            elif not 0 <= size.source.axis < ranks[size.source.tensor]:
                axis = f"axis {size.source.axis} of {size.source.tensor}"
                self.fault(f"the size {size.name} is {axis}, which does not exist")
            self.sizes.add(size.name)

    def _declaration(self, tensor: Tensor) -> None:
        self.span = tensor.span
        if tensor.dtype not in DTYPES or type(tensor.dtype) is not str:
            self.fault(f"{tensor.name} has the unknown type {tensor.dtype}")
        for extent in tensor.shape:
            self._size_expr(extent, "int64", lambda: f"the shape of {format_tensor(tensor)}")

    def _size_expr(self, expr: Expr, dtype: str, place: Callable[[], str]) -> None:
        self.place, self.variables = place, frozenset()
        for node in walk(expr):
            if isinstance(node, Read | IndexValue | Local | Let):
                self.fault(f"{format_expr(node)} is not made of sizes and constants")
                break
        else:
            self._exactly(expr, {})
            self._expect(expr, dtype, "it")
        self.place = None

    def _result_rules(self) -> None:
        program = self.program
        for tensor in program.tensors:
            if tensor.name not in self.made:
                self.fault(f"no statement makes {tensor.name}")
        for name in program.outputs:
            if name not in self.made:
                self.fault(f"the output {name} does not exist")
        inputs = {tensor.name: tensor for tensor in program.inputs}
        updated: set[str] = set()
        for name, new in program.updates:
            if name not in inputs:
                self.fault(f"{name} is updated, but is no input")
            elif new not in self.made:
                self.fault(f"{name} is updated with {new}, which does not exist")
            else:
                self._same_kind(f"{name} is updated with {new}", inputs[name], self.made[new])
            if name in updated:
                self.fault(f"{name} is updated twice")
            updated.add(name)

    def _derivative_rule(self, rule: DerivativeRule) -> None:
        about = f"the {rule.mode} of {', '.join(rule.outputs)}"
        if rule.mode not in ("pullback", "pushforward", "adjoint"):
            self.fault(f"there is no rule of mode {rule.mode!r}")
        known = [self.made.get(name) for name in rule.named]
        if None in known:
            self.fault(f"{about} names a tensor that does not exist")
            return
        tensors = [tensor for tensor in known if tensor is not None]
        arguments = [self.made[name] for name in rule.arguments]
        outputs = [self.made[name] for name in rule.outputs]
        seeds, results = (outputs, arguments) if rule.mode == "pullback" else (arguments, outputs)
        if rule.mode == "adjoint":
            given = len(tensors) - len(outputs) - len(rule.program.outputs)
            seeds, results, tensors = [], tensors[given : given + len(rule.program.outputs)], tensors[:given]
        expected = [(t.dtype, len(t.shape)) for t in tensors] + _computed(seeds)
        found = [(t.dtype, len(t.shape)) for t in rule.program.inputs]
        if found != expected:
            self.fault(f"{about} has a program of the inputs {found}, not {expected}")
        verify(rule.program)
        made = [rule.program.tensor(name) for name in rule.program.outputs]
        if [(t.dtype, len(t.shape)) for t in made] != _computed(results):
            self.fault(f"{about} has a program of the outputs {made}, not {_computed(results)}")

    def _repeat(self, repeat: Repeat) -> None:
        body, results = repeat.body, ", ".join(repeat.results)
        self.span, self.place, self.variables = repeat.span, lambda: f"the loop of {results}", frozenset()
        verify(body)
        for end in repeat.ends:
            self._exactly(end, {})
            self._expect(end, "int64", "the number of rounds")
        if len(body.inputs) != 1 + len(repeat.inputs) or len(body.updates) != len(repeat.results):
            self.fault(f"{len(repeat.inputs)} inputs and {len(repeat.results)} results do not fit the body")
            return
        if (body.inputs[0].dtype, len(body.inputs[0].shape)) not in (("bool", 1), ("int64", 0)):
            self.fault(f"{format_tensor(body.inputs[0])} does not hold the number of the round")
        if body.outputs and (len(body.outputs) > 1 or body.outputs[0] not in dict(body.updates)):
            self.fault("the only output of a body is the updated input that says whether a round runs")
        for inner, name in zip(body.inputs[1:], repeat.inputs, strict=True):
            outer = self.made[name]
            if (inner.dtype, len(inner.shape)) != (outer.dtype, len(outer.shape)):
                self.fault(f"{format_tensor(inner)} of the body is given {format_tensor(outer)}")
        for name, (_, _, given) in zip(repeat.results, repeat.carried, strict=True):
            if name in self.made:
                self.fault(f"{name} is made a second time")
            elif name not in self.declared:
                self.fault(f"the result {name} is not declared")
            else:
                self._same_kind(f"it makes {name} of {given}", self.made[given], self.declared[name])
                self.made[name] = self.declared[name]

    def _same_kind(self, fact: str, one: Tensor, other: Tensor) -> None:
        if one.dtype != other.dtype or self._shape(one) != self._shape(other):
            self.fault(f"{fact}, but {format_tensor(one)} and {format_tensor(other)} differ")

    def _shape(self, tensor: Tensor) -> tuple[Expr, ...]:
        # One name for all sizes that the assertions make equal: an input's axes have names of their own.
        return tuple(substitute(extent, self.same_sizes) for extent in tensor.shape)

    # Statements.

    def _statement(self, statement: Statement) -> None:
        name = statement.target.tensor
        declared = self.declared
        self.span = statement.span
        dtype = compute_dtype(declared[name].dtype) if name in declared else ""
        self.place = lambda: format_statement(statement, dtype, self.sizes)
        self._domain(statement)
        self.variables = frozenset(statement.domain.variables)
        if name in self.made:
            self.fault(f"{name} is made a second time")
        elif name not in declared:
            self.fault(f"the target {name} is not declared")
        if statement.condition is not None:
            self._expr(statement.condition, {})
            self._expect(statement.condition, "bool", "the condition")
        for index in statement.target.indices:
            self._exactly(index, {})
            self._expect_index(index, "an index of the target")
        self._expr(statement.value, {})
        if name in declared:
            self._target(statement, declared[name])
            self.made[name] = declared[name]

    def _domain(self, statement: Statement) -> None:
        variables = statement.domain.variables
        self._names("index variable", variables)
        for name in variables:
            if name in self.sizes:
                self.fault(f"{name} is an index variable and a size")
        for name in domain_parameters(statement.domain.text):
            if name not in self.sizes:
                self.fault(f"the domain names the size {name}, which does not exist")

    def _target(self, statement: Statement, tensor: Tensor) -> None:
        dtype = compute_dtype(tensor.dtype)
        indices = statement.target.indices
        if len(indices) != len(tensor.shape):
            self.fault(f"{tensor.name} has {len(tensor.shape)} axes, but {len(indices)} indices")
        self._expect(statement.value, dtype, "the value")
        if statement.accumulate not in ACCUMULATORS:
            self.fault(f"there is no accumulator {statement.accumulate}")
        else:
            primitive = ACCUMULATORS[statement.accumulate].primitive
            try:
                result_dtype(primitive, (dtype, dtype))
            except TypeError:
                self.fault(f"{statement.accumulate} does not accumulate {dtype}")
        if statement.oob not in ("check", "skip", "clamp"):
            self.fault(f"there is no treatment {statement.oob!r} of indices out of range")
        if statement.accumulate == "assign" and not statement.unique and not all(map(is_affine_index, indices)):
            # Points that other indices tell apart write different cells.
            apart = frozenset().union(*map(index_variables, filter(is_affine_index, indices)))
            if not apart.issuperset(statement.domain.variables):
                self.fault("a plain store through data indices does not ask for unique cells")
        match statement.start:
            case Keep(tensor=earlier) if earlier not in self.made:
                self.fault(f"it starts from {earlier}, which does not exist yet")
            case Keep(tensor=earlier):
                self._same_kind(f"it starts from {earlier}", self.made[earlier], tensor)
            case Fill(value=value):
                self._fill(value, dtype)

    def _fill(self, value: Expr, dtype: str) -> None:
        self.variables = frozenset()
        self._expr(value, {})
        self._expect(value, dtype, "the start")
        if any(isinstance(node, Read) and node.indices for node in walk(value)):
            self.fault("the start reads more than rank-0 tensors")

    # Expressions.

    def _expect(self, expr: Expr, dtype: str, what: str) -> None:
        if expr.dtype != dtype:
            self.fault(f"{what} has type {expr.dtype}, not {dtype}: {format_expr(expr)}", expr.span)

    def _expect_index(self, index: Expr, what: str) -> None:
        if index.dtype != INTEGER:
            self._expect(index, "int64", what)

    def _expr(self, expr: Expr, bound: Mapping[str, str]) -> None:
        if type(expr.dtype) is not str:
            self.fault(f"the type {expr.dtype!r} is no plain string", expr.span)
        match expr:
            case Let(name=name, value=value, body=body):
                if name in self.variables or name in self.sizes or name in NUMBER_NAMES:
                    self.fault(f"the local {name} has the name of an index variable, a size or a number", expr.span)
                self._expr(value, bound)
                self._expr(body, {**bound, name: value.dtype})
                return
            case Constant():
                self._constant(expr)
            case SizeValue(name=name) if name not in self.sizes:
                self.fault(f"the size {name} does not exist here", expr.span)
            case IndexValue(name=name) if name not in self.variables:
                self.fault(f"the index variable {name} is not bound by the domain", expr.span)
            case Local(name=name, dtype=dtype) if bound.get(name) != dtype:
                has = bound.get(name)
                fact = f"has type {has}, not {dtype}" if has else "is not bound by a let around it"
                self.fault(f"the local {name} {fact}", expr.span)
            case Read():
                self._read(expr)
            case Apply(primitive=primitive, arguments=arguments, dtype=dtype):
                self._applied(expr, primitive, arguments, dtype)
            case Reduction():
                self.fault("a reduction is no part of a program", expr.span)
                return
            case Cast(dtype=dtype) if dtype not in DTYPES and dtype != INTEGER:
                self.fault(f"a cast to the unknown type {dtype}", expr.span)
        for index in expr.indices if isinstance(expr, Read) else ():
            self._exactly(index, bound)
        for part in children(replace(expr, indices=()) if isinstance(expr, Read) else expr):
            self._expr(part, bound)

    def _exactly(self, expr: Expr, bound: Mapping[str, str]) -> None:
        outer, self.exact = self.exact, True
        self._expr(expr, bound)
        self.exact = outer

    def _constant(self, expr: Constant) -> None:
        kind: type = bool if is_boolean(expr.dtype) else float if is_floating(expr.dtype) else int
        if expr.dtype == INTEGER and type(expr.value) is int:
            return
        if expr.dtype not in DTYPES or type(expr.value) is not kind:
            self.fault(f"{expr.value!r} is not a constant of type {expr.dtype}", expr.span)
        elif kind is int and not self.exact and not np.iinfo(expr.dtype).min <= expr.value <= np.iinfo(expr.dtype).max:
            self.fault(f"{expr.value} is out of the range of {expr.dtype}", expr.span)

    def _applied(self, expr: Expr, primitive: str, arguments: tuple[Expr, ...], dtype: str) -> None:
        if primitive not in PRIMITIVES:
            self.fault(f"there is no primitive {primitive}", expr.span)
            return
        try:
            found = result_dtype(primitive, [argument.dtype for argument in arguments])
        except TypeError as error:
            self.fault(str(error), expr.span)
            return
        if found != dtype:
            self.fault(f"{primitive} gives {found} here, not {dtype}", expr.span)

    def _read(self, expr: Read) -> None:
        if expr.tensor not in self.made:
            self.fault(f"{expr.tensor} is read, but does not exist yet", expr.span)
            return
        tensor = self.made[expr.tensor]
        rank = len(tensor.shape)
        if len(expr.indices) != rank or len(expr.boundaries) != rank:
            fact = (
                f"{expr.tensor} has {rank} axes, but {len(expr.indices)} indices and {len(expr.boundaries)} boundaries"
            )
            self.fault(fact, expr.span)
        if expr.dtype != compute_dtype(tensor.dtype):
            self.fault(f"{expr.tensor} is {tensor.dtype}, but is read as {expr.dtype}", expr.span)
        for index in expr.indices:
            self._expect_index(index, f"an index of {expr.tensor}")
        if (expr.fill is not None) != (Boundary.FILL in expr.boundaries):
            self.fault(f"the read of {expr.tensor} has a fill value without a filled axis, or the reverse", expr.span)
        if expr.fill is not None:
            self._expect(expr.fill, expr.dtype, f"the fill value of {expr.tensor}")
