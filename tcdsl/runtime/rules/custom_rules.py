"""Derivative rules that users register: recorded beside the statements of a function that is to be differentiated.

::

    @op
    def clipped(x, *, bound):
        return x

    @clipped.defvjp
    def clipped_pullback(x, y, d_y, *, bound):
        return min(max(d_y, -bound), bound)

A rule is written in the language itself and becomes a program (`tcdsl.ir.program.DerivativeRule`) over placeholders for
the arguments, the results and the seeds.

`RuleCall` says what a rule receives, and checks what it returns against what it is for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import FunctionType
from typing import Any, Protocol

import numpy as np

from tcdsl.errors import DifferentiationError
from tcdsl.frontend.arrays.arithmetic import element_of, record_elementwise
from tcdsl.frontend.running_loops.run_time_checks import passed
from tcdsl.frontend.staging.session import Session
from tcdsl.frontend.staging.subprograms import Part, like
from tcdsl.frontend.symbols.symbols import SymbolicNumber, SymbolicTensor
from tcdsl.ir.dtypes import compute_dtype, is_floating
from tcdsl.ir.expressions import reads
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.ir.program import DerivativeRule, Program, Tensor, tensors_read
from tcdsl.runtime.calling.arguments import Signature
from tcdsl.runtime.calling.results import copied, filled, returned
from tcdsl.runtime.calling.structure import Structure
from tcdsl.runtime.rules.directions import Direction
from tcdsl.span import Span

__all__ = ["PULLBACK", "Rule", "RuleRecording", "Ruled"]

PULLBACK, PUSHFORWARD = "pullback", "pushforward"
_RESULTS = {PULLBACK: "adjoint", PUSHFORWARD: "tangent"}


class Rule(Protocol):
    """A function that gives a derivative, as `tcdsl.runtime.function.DecoratedFunction` is one."""

    __name__: str
    signature: Signature

    def inline(self, *arguments: Any, **keywords: Any) -> Any:
        """Run as part of the function that is being staged."""

    @property
    def span(self) -> Span:
        """Where it is defined."""


class RuleCall:
    """One call of the rule for ``mode`` of a function called ``function``."""

    def __init__(self, session: Session, rule: Rule, mode: str, function: str) -> None:
        self._session = session
        self._rule = rule
        self._mode = mode
        self._function = function

    def __call__(
        self,
        values: Sequence[Any],
        results: Sequence[Any],
        structure: Structure,
        seeds: Sequence[Any],
        configuration: Mapping[str, Any],
    ) -> list[Any]:
        """What the rule returns: for a pullback one adjoint per argument, else one tangent per result."""
        last = [structure.build(seeds)] if self._mode == PULLBACK else list(seeds)
        arguments = [*values, structure.build(results), *last]
        names = self._rule.signature.keyword_only
        taken = self._rule.signature.takes_any_keyword
        given = {name: value for name, value in configuration.items() if name in names or taken}
        expected = self._rule.signature.positional_count
        if expected is not None and expected != len(arguments):
            raise self._fault(
                f"takes {expected} positional arguments, but is called with {len(arguments)}: {self._parts()}",
                "the keyword-only arguments of the function are passed to those rules that name them",
            )
        found = self._rule.inline(*arguments, **given)
        return self._per_argument(found, len(values)) if self._mode == PULLBACK else self._per_result(found, structure)

    def _per_argument(self, found: Any, count: int) -> list[Any]:
        if count == 1 and not (isinstance(found, tuple | list) and len(found) == 1):
            found = (found,)
        if not isinstance(found, tuple | list) or len(found) != count:
            what = f"{len(found)} values" if isinstance(found, tuple | list) else "one value"
            raise self._fault(
                f"returns {what}, but `{self._function}` has {count} positional arguments",
                "return a tuple with one adjoint per argument, None for those without a derivative",
            )
        return list(found)

    def _per_result(self, found: Any, structure: Structure) -> list[Any]:
        matched = structure.match(found)
        if isinstance(matched, str):
            raise self._fault(
                f"returns tangents that are not built like the results of `{self._function}`, which are {structure}",
                "return one tangent per result, nested alike, None for those without a derivative",
            )
        return matched

    def result(self, value: Any, tensor: SymbolicTensor) -> SymbolicTensor:
        """The tensor of the derivative by ``tensor`` that the rule has returned as ``value``; ``None`` is zeros."""
        session = self._session
        dtype = compute_dtype(tensor.element_type)
        label = f"{'d' if self._mode == PULLBACK else 't'}_{tensor.label}"
        if value is None:
            return filled(session, 0, dtype, tensor.extents, label)
        owner = f"`{tensor.label}`, the {'argument' if self._mode == PULLBACK else 'result'}"
        direction = Direction(_RESULTS[self._mode], f"{owner} of `{self._function}`", dtype)
        made = direction.tensor(session, value, tensor.extents)
        if made.shape != tensor.extents or made not in session.builder.recording.tensors:
            # Of the very shape of what it belongs to, and a tensor of its own.
            given = SymbolicTensor(session.builder, made.name, made.dtype, tensor.extents, label)
            return record_elementwise(session, element_of(given, session)[0], tensor.extents, label)
        return SymbolicTensor(session.builder, made.name, made.dtype, made.shape, made.label)

    def _parts(self) -> str:
        last = "the cotangents of the result" if self._mode == PULLBACK else "one tangent per argument"
        return f"the arguments of `{self._function}`, its result, and {last}"

    def _fault(self, fact: str, hint: str) -> Exception:
        return DifferentiationError.at(
            f"the {self._mode} rule `{self._rule.__name__}` of `{self._function}` {fact}", self._rule.span, hint
        )


Tensors = Sequence[SymbolicTensor | None]


class Ruled(Protocol):
    """A function that may have derivative rules; ``rules`` has them by mode."""

    __name__: str
    function: FunctionType
    rules: dict[str, Any]

    def rule(self, mode: str) -> Rule:
        """The rule of ``mode``, for the same instance if the function is a method."""


class RuleRecording:
    """A call of a function with derivative rules, made before the function runs and completed by its result."""

    def __init__(
        self, session: Session, function: Ruled, values: Sequence[tuple[str, Any]], configuration: Mapping[str, Any]
    ) -> None:
        self._session = session
        self._builder = session.builder
        self._function = function
        self._values = [value for _, value in values]
        self._configuration = configuration
        # Numbers become tensors before the function runs, so that what it makes comes after its arguments.
        self._arguments: Tensors = [_as_argument(session, value, name) for name, value in values]
        #: What the function is to be called with.
        self.values = self._values
        if function.function.__closure__:
            # It may read what is around it: its arguments are told from that by being copies.
            self._arguments = [None if each is None else copied(session, each, each.label) for each in self._arguments]
            self.values = [
                tensor if tensor is not None and isinstance(value, SymbolicTensor) else value
                for tensor, value in zip(self._arguments, self._values, strict=True)
            ]
        self._begin = len(self._builder.recording.statements)

    def complete(self, result: Any) -> Any:
        """Record the rules for ``result``, what the function has returned; the same in tensors of its own."""
        names, structure = returned(self._session, result, self._function.__name__, self._begin)
        made = [self._builder.tensor(name) for name in names]
        outputs = [SymbolicTensor(self._builder, t.name, t.dtype, t.shape, t.label) for t in made]
        surroundings = self._surroundings()
        differentiable = all(
            any(tensor is not None for tensor in _floating(tensors)) for tensors in (self._arguments, outputs)
        )
        modes = [mode for mode in (PULLBACK, PUSHFORWARD) if mode in self._function.rules and differentiable]
        for k, mode in enumerate(modes):
            rule = self._traced(mode, outputs, structure, surroundings)
            self._builder.add_rule(replace(rule, beside=k > 0))
        return structure.build(outputs)

    def _surroundings(self) -> list[Tensor]:
        """The numbers that the function has read besides its arguments, such as configuration."""
        known = {each.tensor for each in self._session.captured}
        statements = self._builder.recording.statements[self._begin :]
        known.update(statement.target.tensor for statement in statements)
        known.update(tensor.name for tensor in self._arguments if tensor is not None)
        # A number is read from where it came from, also where the rule has a tensor for it.
        known.update(name for value in self._values for name in _numbers_read(value))
        found: dict[str, Tensor] = {}
        for statement in statements:
            for name in sorted(tensors_read(statement) - known):
                tensor = self._builder.tensor(name)
                if tensor.shape:
                    raise DifferentiationError.at(
                        f"`{self._function.__name__}` has a derivative rule, but reads `{tensor.label or name}`, which "
                        "is no argument of it",
                        statement.span,
                        "pass it as an argument, to the function and to its rule",
                    )
                found[name] = tensor
        return list(found.values())

    def _traced(
        self, mode: str, outputs: Sequence[SymbolicTensor], structure: Structure, surroundings: Sequence[Tensor]
    ) -> DerivativeRule:
        rule = self._function.rule(mode)
        part = Part(self._builder)
        with part.recording(), self._session.checking_anew():
            arguments = [None if tensor is None else part.argument(tensor) for tensor in self._arguments]
            results = [part.argument(output) for output in outputs]
            seeded, wanted = _floating(self._arguments), _floating(outputs)
            if mode == PULLBACK:
                seeded, wanted = wanted, seeded
            seeds = [None if tensor is None else part.argument(_seed(tensor, mode)) for tensor in seeded]
            values = [
                value if tensor is None else like(tensor, value)
                for tensor, value in zip(arguments, self._values, strict=True)
            ]
            call = RuleCall(self._session, rule, mode, self._function.__name__)
            traced = self._session.context.tracing_rules
            with self._session.within(tracing_rules=(*traced, self._function.rules)):
                found = call(values, results, structure, seeds, self._configuration)
            made = zip(found, wanted, strict=True)
            derivatives = [call.result(value, tensor) for value, tensor in made if tensor is not None]
            names = [each.name for each in passed(self._session, derivatives)]
        program, inner = part.program(rule.__name__, names)
        stand_ins = [inner[tensor.name] for tensor in (*arguments, *results, *seeds) if tensor is not None]
        named = [tensor.name for tensor in self._arguments if tensor is not None]
        return _arranged(
            DerivativeRule(mode, tuple(t.name for t in outputs), tuple(named), (), (), program, rule.span),
            part.given,
            stand_ins,
            surroundings,
        )


def _arranged(
    rule: DerivativeRule, given: Mapping[str, Tensor], stand_ins: Sequence[str], surroundings: Sequence[Tensor]
) -> DerivativeRule:
    """``rule`` with its program's inputs in order, and what they stand for named."""
    program = rule.program
    read = {name for statement in program.statements for name in tensors_read(statement)}
    read.update(name for inner in program.rules for name in inner.named if name not in inner.extents)
    others = [tensor for tensor in program.inputs if tensor.name not in stand_ins]
    constants = [tensor for tensor in others if tensor.name in read]
    extents = [tensor for tensor in others if tensor.name not in read]
    known = {given[tensor.name].name for tensor in constants}
    more = [tensor for tensor in surroundings if tensor.name not in known]
    inputs = [*extents, *constants, *_unread(program, more), *(program.tensor(name) for name in stand_ins)]
    return replace(
        rule,
        constants=tuple(given[tensor.name].name for tensor in constants) + tuple(tensor.name for tensor in more),
        extents=tuple(given[tensor.name].name for tensor in extents),
        program=replace(program, inputs=tuple(inputs)),
    )


def _unread(program: Program, tensors: Sequence[Tensor]) -> list[Tensor]:
    # Inputs for numbers that the function reads and its rule does not, under names that are free.
    names = FreshNames(tensor.name for tensor in (*program.inputs, *program.tensors))
    return [replace(tensor, name=names.fresh(tensor.name)) for tensor in tensors]


def _floating(tensors: Tensors) -> list[SymbolicTensor | None]:
    return [tensor if tensor is not None and is_floating(tensor.element_type) else None for tensor in tensors]


def _seed(tensor: SymbolicTensor, mode: str) -> SymbolicTensor:
    # What a seed for ``tensor`` looks like; it is only ever stood in for.
    label = f"{'d' if mode == PULLBACK else 't'}_{tensor.label}"
    return SymbolicTensor(tensor.builder, tensor.name, compute_dtype(tensor.element_type), tensor.extents, label)


def _numbers_read(value: Any) -> list[str]:
    return [read.tensor for read in reads(value.expr)] if isinstance(value, SymbolicNumber) else []


def _as_argument(session: Session, value: Any, label: str) -> SymbolicTensor | None:
    # Python numbers, sizes and other objects are passed to rules as they are.
    if isinstance(value, SymbolicTensor):
        return value
    if isinstance(value, SymbolicNumber | np.generic):
        return copied(session, value, label)
    return None
