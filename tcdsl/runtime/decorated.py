"""Tracing a decorated function: at the top of a call, or as part of another function that is being staged."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import FunctionType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tcdsl.errors import Diagnostic, DslSyntaxError, ShapeError
from tcdsl.frontend.running_loops.run_time_checks import passed
from tcdsl.frontend.staging.declarations import Unwritten
from tcdsl.frontend.staging.session import Session, session_of
from tcdsl.frontend.surroundings.reachable import Surroundings
from tcdsl.frontend.surroundings.readings import MISSING, Reading
from tcdsl.frontend.symbols.graph_tensors import GraphTensor
from tcdsl.frontend.symbols.known_integers import known
from tcdsl.frontend.symbols.symbols import PendingArray, SymbolicArray, SymbolicTensor, View
from tcdsl.ir.program import Program
from tcdsl.runtime.calling.arguments import Signature
from tcdsl.runtime.calling.entries import Traced
from tcdsl.runtime.calling.results import returned_if_passed
from tcdsl.runtime.calls.staged import StagedFunction

if TYPE_CHECKING:
    from tcdsl.frontend.source.function_source import FunctionSource
    from tcdsl.runtime.calls.table import CallTable
    from tcdsl.runtime.rules.custom_rules import Rule, RuleRecording
    from tcdsl.span import Span

__all__ = ["Body", "Decorated", "DecoratedStaging", "returns_nothing", "run_inline"]


class Body(Protocol):
    """What a decorated function does; of a function of Python's it is a `tcdsl.frontend.python.template.Template`.

    ``parameters`` are the names of its parameters, ``source`` is the text that staging runs, ``surroundings`` are what
    it reads beside its arguments.
    """

    parameters: tuple[str, ...]
    source: str
    surroundings: Surroundings

    @property
    def size_names(self) -> Mapping[str, Sequence[str | None]]:
        """What it calls the extents of its parameters."""

    def run(self, instance: Any, /, *arguments: Any, **keywords: Any) -> Any:
        """Run on symbolic arguments, as a method of ``instance`` unless that is None."""


class Decorated(Protocol):
    """A decorated function, as `tcdsl.runtime.function.DecoratedFunction` is one."""

    __name__: str
    function: FunctionType
    in_place: bool
    oob: str
    signature: Signature
    rules: dict[str, Any]
    calls: CallTable

    def scope_of_inner_call(self, configuration: Mapping[str, Any]) -> AbstractContextManager[None]:
        """Where the declarations of this function go while it runs as part of another one."""

    def rule(self, mode: str) -> Rule:
        """The derivative rule of ``mode``."""

    @property
    def template(self) -> Body:
        """What runs while it is staged."""

    @property
    def source(self) -> FunctionSource:
        """The definition that the user wrote."""

    @property
    def receiver(self) -> Any:
        """The object whose method this is, if it is one."""

    @property
    def span(self) -> Span:
        """The line of the definition."""


class DecoratedStaging(StagedFunction):
    """The staged programs of one decorated function."""

    def __init__(self, owner: Decorated) -> None:
        super().__init__(owner.calls)
        self._owner = owner
        self.oob = owner.oob

    @property
    def title(self) -> str:
        """The name for programs and messages."""
        return self._owner.function.__name__

    @property
    def span(self) -> Span:
        """The line of the definition."""
        return self._owner.span

    def size_names(self, label: str) -> Sequence[str | None]:
        """What the function calls the extents of the parameter ``label``."""
        return self._owner.template.size_names.get(label, ())

    def trace(self, session: Session, positional: list[Any], configuration: dict[str, Any]) -> Traced:
        """Run the function symbolically."""
        owner = self._owner
        given = {}
        if owner.in_place:
            for value in positional:
                if isinstance(value, SymbolicTensor):
                    value.memory = True
                    given[value.name] = value
        names = [getattr(value, "label", f"x{k}") for k, value in enumerate(positional)]
        with session.uses.runs.following():
            session.read(owner.template.surroundings.read(owner.receiver, configuration), owner.function.__code__)
            recording = _recording(session, owner, names, positional, configuration)
            if recording is not None:
                positional = recording.values
            result = owner.template.run(owner.receiver, *positional, **configuration)
            if result is None and not owner.in_place:
                session.faults.append(returns_nothing(owner))
            if recording is not None:
                result = recording.complete(result)
        outputs, structure = returned_if_passed(session, result, self.title)
        changed = {name: memory for name, memory in given.items() if memory.name != name}
        held = passed(session, [memory.held() for memory in changed.values()])
        updates = [(name, memory.name) for name, memory in zip(changed, held, strict=True)]
        program = session.builder.program(outputs, updates)
        # What a fault has left out may be what changes something.
        if owner.in_place and result is None and not updates and not session.faults:
            _require_changes(owner, positional, configuration)
            if session.checked is None and program.statements:
                raise _changes_nothing(owner, program).error()
        traced = Traced(program, structure, tuple(session.readings)).checking(session.checked)
        return traced.checking_unused_indices().without_needless_checks()


def returns_nothing(function: Decorated) -> Diagnostic:
    """The fault of an operation without a result."""
    return Diagnostic(
        DslSyntaxError,
        f"`{function.__name__}` returns nothing, and an operation gives its results by `return`",
        function.span,
        hint="end it with `return y`, or decorate it with @cd if it changes its arguments",
    )


def _changes_nothing(function: Decorated, program: Program) -> Diagnostic:
    # A target that is no parameter is a tensor of the function's own, whatever is called so around it.
    last = program.statements[-1]
    tensor = program.tensor(last.target.tensor)
    target = tensor.label or tensor.name
    return Diagnostic(
        DslSyntaxError,
        f"`{function.__name__}` changes none of its arguments and returns nothing: `{target}` is a tensor of its own",
        last.span,
        hint=f"pass `{target}` as an argument, or return what the function computes",
    )


def _require_changes(function: Decorated, values: Sequence[Any], configuration: Mapping[str, Any]) -> None:
    # Of code that has changed no memory: that it assigns to no parameter which is a number here.
    definition = function.source.definition
    names = [each.arg for each in (*definition.args.posonlyargs, *definition.args.args)]
    given = zip(names[function.receiver is not None :], values, strict=False)
    numbers = {name for name, value in given if not isinstance(value, SymbolicArray)} | configuration.keys()
    for node in ast.walk(definition):
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id in numbers:
            name = node.target.id
            fact = f"`{function.__name__}` changes `{name}`, which is a number of Python's here, and nothing else"
            hint = (
                f"pass an array, `np.array({name})`, whose memory can be changed, or return the new number from an @op"
            )
            raise Diagnostic(DslSyntaxError, fact, function.span, hint=hint).error()


def run_inline(
    function: Decorated, arguments: tuple[Any, ...], keywords: dict[str, Any], declared: bool = False
) -> Any:
    """Run a decorated function inside the function that is being staged; its statements join that program.

    ``declared`` says that the caller knows where the function's parameters are kept.
    """
    session = session_of("a decorated function")
    positional, configuration = function.signature.split(arguments, keywords)
    values: list[Any] = []
    for name, value in positional:
        if isinstance(value, PendingArray) and not (function.in_place and isinstance(value, View) and value.memory):
            value = value.materialize(name)
        elif isinstance(value, np.ndarray):
            value = session.capture(value, name)
        value = known(value)
        in_graph = isinstance(value, GraphTensor) and session.context.states is None
        if function.in_place and (in_graph or (isinstance(value, SymbolicTensor) and not value.memory)):
            raise session.fault(
                DslSyntaxError,
                f"`{function.__name__}` is a @cd function, which stores into `{name}`, but here that is a value",
                "call @cd functions from @cd functions, or outside",
            )
        if function.in_place and session.context.states is not None and isinstance(value, Unwritten):
            fact = f"`{value.name}` has no shape yet, and `{function.__name__}` is given it as `{name}`"
            hint = f"say how it starts, `{value.name} = output(init=np.zeros_like(p))`, or write it before this call"
            raise session.fault(ShapeError, fact, hint)
        if isinstance(value, SymbolicTensor) and not function.in_place:
            value = SymbolicTensor(value.builder, value.name, value.element_type, value.extents, value.label)
        values.append(value)
    session.read(function.template.surroundings.read(function.receiver, configuration), function.function.__code__)
    recording = _recording(session, function, [name for name, _ in positional], values, configuration)
    if recording is not None:
        values = recording.values
    declarations: AbstractContextManager[None] = nullcontext()
    if session.context.graph is not None and not function.in_place and not declared:
        declarations = function.scope_of_inner_call(configuration)
    states = session.context.states
    if states is not None:
        named = [(name, value) for (name, _), value in zip(positional, values, strict=True)]
        states = states.inner(function, named, configuration)
    with session.within(oob=function.oob, states=states):
        with declarations:
            made = len(session.builder.recording.tensors)
            result = function.template.run(function.receiver, *values, **configuration)
        if result is None and not function.in_place:
            raise returns_nothing(function).error()
        if result is None and session.context.graph is None and made == len(session.builder.recording.tensors):
            _require_changes(function, values, configuration)
        return result if recording is None else recording.complete(result)


def _recording(
    session: Session, function: Decorated, names: list[str], values: list[Any], configuration: dict[str, Any]
) -> RuleRecording | None:
    # Which derivative rules there are is part of what staging has read, whether there are any or not.
    for mode in ("pullback", "pushforward"):
        session.readings.append(Reading((mode,), function.rules, function.rules.get(mode, MISSING)))
    # Where the function runs for shapes alone, nothing is differentiated.
    if not function.rules or session.context.traces(function.rules) or session.shapes is not None:
        return None
    from tcdsl.runtime.rules.custom_rules import RuleRecording

    return RuleRecording(session, function, list(zip(names, values, strict=True)), configuration)
