"""Derivatives of functions: each is a function, a rule from programs to programs, and the structure of its results.

At the top a derivative is staged like a decorated function (`tcdsl.runtime.calls.staged`). Inside a function that is
being staged, the function is recorded as a program of its own, whose derivative is inlined
(`tcdsl.frontend.staging.subprograms`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from types import FunctionType, MethodType
from typing import Any
from weakref import WeakMethod, ref

import numpy as np

from tcdsl.errors import DifferentiationError, TcdslError
from tcdsl.frontend.running_loops.run_time_checks import both_passed
from tcdsl.frontend.staging.active_session import DeclarationMet
from tcdsl.frontend.staging.session import Session, StagingStopped
from tcdsl.frontend.staging.subprograms import Part, like, symbolic
from tcdsl.frontend.surroundings.impure_calls import warning_of_impure_calls
from tcdsl.frontend.surroundings.named_values import users_function
from tcdsl.frontend.surroundings.reachable import called_readings
from tcdsl.frontend.symbols.symbols import PendingArray, SymbolicNumber, SymbolicTensor
from tcdsl.ir.dtypes import is_floating
from tcdsl.ir.expressions import Read
from tcdsl.ir.program import Program, Tensor
from tcdsl.runtime.calling.arguments import Call
from tcdsl.runtime.calling.entries import Entry, Traced
from tcdsl.runtime.calling.results import as_tensor, returned_if_passed
from tcdsl.runtime.calling.structure import Structure
from tcdsl.runtime.calls.staged import StagedFunction
from tcdsl.runtime.function import DecoratedFunction
from tcdsl.runtime.same_code import entries_for, keep_entry
from tcdsl.runtime.transforms.derivation import Derivation, kept, name_of, signature_of
from tcdsl.simplification.contractions import contracted

__all__ = [
    "DerivationValues",
    "DerivativeStaging",
    "fault_of_values",
    "floating_outputs",
    "kept_staging",
    "put",
    "value_and_aux",
]


@dataclass(frozen=True, slots=True)
class DerivationValues(Derivation):
    """The function itself: the derivation that changes nothing."""

    title = "values"

    def derive(self, traced: Traced, wrt: Sequence[str], function: str) -> Traced:
        """What was traced."""
        return traced


def _identifier(function: Any) -> str:
    name = name_of(function)
    return name if name.isidentifier() else "function"


def value_and_aux(traced: Traced, has_aux: bool, function: str, value: str) -> tuple[Structure, Structure | None]:
    """The structures of what is differentiated and, with ``has_aux``, of what is returned beside it."""
    if not has_aux:
        return traced.structure, None
    if traced.structure.kind != "tuple" or len(traced.structure.parts) != 2:
        raise DifferentiationError.at(
            f"with has_aux, {function}() must return a pair ({value}, aux)",
            hint=f"write `return {value}, aux`, or leave has_aux out",
            notes=(f"it returns {traced.structure}",),
        )
    return traced.structure.parts[0], traced.structure.parts[1]


def floating_outputs(traced: Traced, value: Structure) -> list[bool]:
    """For each array of ``value``, the first ones that the program returns, whether it has a derivative."""
    outputs = traced.program.outputs[: value.leaves]
    return [is_floating(traced.program.tensor(name).dtype) for name in outputs]


class DerivativeStaging(StagedFunction):
    """The staged programs of a derivative."""

    def __init__(self, function: Callable[..., Any], derivation: Derivation) -> None:
        super().__init__()
        self._function: Callable[[], Any] = _reference(function)
        self.derivation = derivation
        self.signature = signature_of(function)
        self.oob = getattr(function, "oob", "check")
        self._name = _identifier(function)

    @property
    def function(self) -> Callable[..., Any]:
        """The function that is differentiated; whoever calls its derivative holds it."""
        function: Callable[..., Any] = self._function()
        return function

    @property
    def title(self) -> str:
        """The name for programs and messages."""
        return f"{self.derivation.title}_{self._name}"

    def size_names(self, label: str) -> Sequence[str | None]:
        """What the function calls the extents of the parameter ``label``."""
        staging = getattr(self.function, "staging", None)
        return staging.size_names(label) if isinstance(staging, StagedFunction) else ()

    def staged_elsewhere(self, call: Call) -> Iterable[Entry]:
        """What was staged for functions of the same code."""
        function, derivations = _peeled(self)
        return entries_for(function, (derivations, call.key))

    def keep_elsewhere(self, call: Call, entry: Entry) -> None:
        """Keep an entry for functions of the same code."""
        function, derivations = _peeled(self)
        keep_entry(function, (derivations, call.key), entry)

    def trace(self, session: Session, positional: list[Any], configuration: dict[str, Any]) -> Traced:
        """Run the function symbolically, and derive."""
        positions = self.derivation.positions(self._name, len(positional))
        wrt = [self._input_name(positional[position], position) for position in positions]
        with session.uses.runs.following():
            outputs, structure = self._record(session, positional, configuration)
        program = session.builder.program(outputs)
        traced = Traced(program, structure, tuple(session.readings)).checking(session.checked)
        return self._derived(session, traced, wrt, inside=False).without_needless_checks()

    def inline(
        self, session: Session, arguments: Sequence[Any], keywords: Mapping[str, Any]
    ) -> tuple[Part, Traced, list[SymbolicTensor | None]]:
        """Run the function as part of the one that is being staged, and derive from what it has recorded.

        The derivative is to be inlined (`put`). The arguments that it is by come back as tensors.
        """
        positional, configuration = self.signature.split(arguments, keywords)
        positions = self.derivation.positions(self._name, len(positional))
        values = [
            as_tensor(session, value, label) if k in positions else value
            for k, (label, value) in enumerate((label, _as_value(session, value, label)) for label, value in positional)
        ]
        given = [value if k in positions else None for k, value in enumerate(values)]
        part = Part(session.builder)
        stand_ins: dict[int, str] = {}
        with session.checking_anew():
            with part.recording():
                for k in positions:
                    made = part.argument(values[k], self.derivation.axes)
                    stand_ins[k] = made.name
                    values[k] = like(made, positional[k][1])
                outputs, structure = self._record(session, values, configuration)
            program, names = part.program(self.title, outputs)
            traced = Traced(program, structure).checking(session.checked)
        wrt = [names[stand_ins[k]] for k in positions]
        return part, self._derived(session, traced, wrt, inside=True), given

    def _derived(self, session: Session, traced: Traced, wrt: Sequence[str], *, inside: bool) -> Traced:
        # The derivative, which checks the indices that the function checks. Inside a function values beside it may be
        # of no use.
        from tcdsl.simplification.index_checks import lost_index_checks, with_index_checks
        from tcdsl.simplification.simplify import without_dead_statements

        traced = traced.checking_unused_indices()
        derived = self._within_memory(session, traced, wrt)
        made = derived.program
        if inside:
            made = replace(made, outputs=tuple(name for name in made.outputs if name not in traced.program.outputs))
        linear = () if derived.linear is None else (derived.linear,)
        lost = lost_index_checks((made, *linear), traced.program)
        if not lost:
            return derived
        program, passed = with_index_checks(without_dead_statements(traced.program), lost, traced.checks)
        outputs = (*program.outputs[: traced.structure.leaves], passed)
        traced = replace(traced, program=replace(program, outputs=outputs), checked=True)
        return self._within_memory(session, traced, wrt)

    def _within_memory(self, session: Session, traced: Traced, wrt: Sequence[str]) -> Traced:
        def derive(program: Program) -> Traced:
            return self.derivation.derive(replace(traced, program=program), wrt, self._name)

        # Derivatives of parts are sums in parts that share what they have in common.
        program = contracted(traced.program, session.least)
        if not (self.derivation.tapes and program.repeats):
            return derive(program)
        from tcdsl.runtime.transforms.checkpointed_loops import derived_within_memory, with_checkpoints

        if session.context.graph is not None and not program.sizes:
            return derived_within_memory(program, derive)
        # What fits into a call is known when that has been staged.
        session.tapes = True
        return derive(with_checkpoints(program, session.checkpoints))

    def _record(
        self, session: Session, positional: Sequence[Any], configuration: Mapping[str, Any]
    ) -> tuple[list[str], Structure]:
        function = self.function
        if isinstance(function, FunctionType):
            session.filenames.add(function.__code__.co_filename)
        session.read(called_readings(configuration, given=function))
        try:
            with self._watch(function, configuration):
                result = function(*positional, **configuration)
        except DeclarationMet:
            raise DifferentiationError.at(
                f"{self._name}() declares parameters, and derivatives by arrays do not know those",
                hint="call it with tensors (tc.tensor(x)), and use tc.train.grad_update(loss)",
            ) from None
        if session.faults:
            raise StagingStopped
        return returned_if_passed(session, result, self._name)

    def _watch(self, function: Any, configuration: Mapping[str, Any]) -> AbstractContextManager[None]:
        plain, receiver = users_function(function)
        if plain is None or isinstance(function, DecoratedFunction | StagedFunction):
            return nullcontext()
        return warning_of_impure_calls(plain, receiver, configuration, self._name)

    def _input_name(self, value: Any, position: int) -> str:
        if isinstance(value, SymbolicTensor):
            return value.name
        if isinstance(value, SymbolicNumber) and isinstance(value.expr, Read):
            return value.expr.tensor
        if value is None:
            raise DifferentiationError.at(
                f"argument {position} of {self._name}() is None, and there is nothing to differentiate by",
                hint="give it an array, or leave its position out of `argnums`",
            )
        raise DifferentiationError.at(
            f"argument {position} of {self._name}() is the constant {value!r}, because Python asks for its value",
            hint="branch on it in a statement (`a if x > 0 else b`), or do not differentiate by it",
        )


def put(session: Session, part: Part, traced: Traced, more: Mapping[str, Tensor] | None = None) -> list[Tensor]:
    """Inline a derivative of ``part``: the tensors of its outputs. Its checks become those of what is being staged."""
    made = part.put(traced.program, more)
    names = dict(zip(traced.program.outputs, made, strict=True))
    for name in traced.checks:
        [checked] = symbolic(session.builder, [names[name]])
        session.checked = both_passed(session, checked)
    return made


def kept_staging(function: Callable[..., Any], derivation: Derivation) -> DerivativeStaging:
    """The staged programs of a derivative of ``function``: the same ones as long as the function lives."""
    return kept(function, derivation, lambda: DerivativeStaging(function, derivation))


def fault_of_values(
    function: Callable[..., Any], arguments: Sequence[Any], keywords: Mapping[str, Any], error: TcdslError
) -> TcdslError:
    """``error``, which a derivative of ``function`` has met in its arguments, as the function itself meets it.

    A derivative may meet it first on the way back: in tensors of its own, in rounds that it counts from the last.
    """
    while isinstance(getattr(function, "staging", None), DerivativeStaging):
        function = function.function  # type: ignore[attr-defined]
    staging = kept_staging(function, DerivationValues(()))
    try:
        staging.run(staging.signature, tuple(arguments), keywords)
    except type(error) as found:
        return found
    except Exception:
        return error
    return error


def _peeled(staging: DerivativeStaging) -> tuple[Any, tuple[Derivation, ...]]:
    # The function under derivatives of derivatives, and all that is derived.
    derivations = [staging.derivation]
    function: Any = staging.function
    while isinstance(inner := getattr(function, "staging", None), DerivativeStaging):
        derivations.append(inner.derivation)
        function = function.function
    return function, tuple(derivations)


def _reference(function: Callable[..., Any]) -> Callable[[], Any]:
    # Weak, so that keeping the programs does not keep the function and what it closes over.
    if isinstance(function, MethodType):
        return WeakMethod(function)
    try:
        return ref(function)
    except TypeError:
        return lambda: function


def _as_value(session: Session, value: Any, label: str) -> Any:
    # What the function receives for an argument that it is not differentiated by: memory as what it holds now.
    if isinstance(value, SymbolicTensor):
        return value.held()
    return as_tensor(session, value, label) if isinstance(value, PendingArray | np.ndarray) else value
