"""Tracing a decorated function: at the top of a call, or as part of another function that is being staged."""

from __future__ import annotations

from collections.abc import Sequence
from types import FunctionType
from typing import Any, Protocol

import numpy as np

from tcdsl.errors import Diagnostic, DslSyntaxError
from tcdsl.frontend.arithmetic import element_of, record_elementwise
from tcdsl.frontend.builder import Mark
from tcdsl.frontend.declarations import DeclaredTarget, Unwritten
from tcdsl.frontend.points import PointValue
from tcdsl.frontend.session import Session, session_of
from tcdsl.frontend.symbols import PendingArray, SymbolicArray, SymbolicNumber, SymbolicSize, SymbolicTensor
from tcdsl.frontend.template import Template
from tcdsl.runtime.arguments import Signature
from tcdsl.runtime.entries import Traced
from tcdsl.runtime.staged import StagedFunction
from tcdsl.runtime.structure import Structure, flatten

__all__ = ["Decorated", "DecoratedStaging", "returned", "run_inline"]


class Decorated(Protocol):
    """A decorated function, as `tcdsl.runtime.function.TensorFunction` is one."""

    __name__: str
    function: FunctionType
    in_place: bool
    oob: str
    signature: Signature

    @property
    def template(self) -> Template:
        """The rewritten function."""

    @property
    def receiver(self) -> Any:
        """The object whose method this is, if it is one."""


class DecoratedStaging(StagedFunction):
    """The staged programs of one decorated function."""

    def __init__(self, owner: Decorated) -> None:
        super().__init__()
        self._owner = owner
        self.oob = owner.oob

    @property
    def title(self) -> str:
        """The name for programs and messages."""
        return self._owner.function.__name__

    def size_names(self, label: str) -> Sequence[str | None]:
        """What the function calls the extents of the parameter ``label``."""
        return self._owner.template.size_names.get(label, ())

    def trace(self, session: Session, positional: list[Any], configuration: dict[str, Any]) -> Traced:
        """Run the function symbolically."""
        owner = self._owner
        session.filenames.add(owner.template.filename)
        given = {}
        if owner.in_place:
            for value in positional:
                if isinstance(value, SymbolicTensor):
                    value.memory = True
                    given[value.name] = value
        receiver = () if owner.receiver is None else (owner.receiver,)
        session.readings.extend(owner.template.surroundings.read(owner.receiver))
        result = owner.template.run(*receiver, *positional, **configuration)
        if result is None and not owner.in_place:
            fact = f"`{self.title}` returns nothing, and an operation gives its results by `return`"
            hint = "end it with `return y`, or decorate it with @cd if it changes its arguments"
            session.faults.append(Diagnostic(DslSyntaxError, fact, hint=hint))
        outputs, structure = returned(session, result, self.title)
        updates = [(name, memory.name) for name, memory in given.items() if memory.name != name]
        return Traced(session.builder.program(outputs, updates), structure, tuple(session.readings))


def returned(session: Session, result: Any, name: str, mark: Mark | None = None) -> tuple[list[str], Structure]:
    """The names of the returned tensors, each one a tensor of its own, and the structure around them.

    With ``mark`` what was made before it counts as given to the function, like its inputs.
    """
    kinds = SymbolicArray | SymbolicNumber | SymbolicSize | np.ndarray | Unwritten | DeclaredTarget | PointValue
    leaves, structure = flatten(result, lambda v: isinstance(v, kinds))
    names: list[str] = []
    made = session.builder.made_since(mark or Mark(0, 0, frozenset()))
    for leaf in leaves:
        if isinstance(leaf, PendingArray):
            leaf = leaf.materialize(name)
        if isinstance(leaf, PointValue):
            raise Diagnostic(
                DslSyntaxError,
                "a local definition is a scalar at each point, not an array",
                leaf.span,
                hint="store it first: `y[i] = z`",
            ).error()
        if not isinstance(leaf, SymbolicTensor) or leaf.name not in made or leaf.name in names:
            # A returned input, number, or second copy of an output is an array of its own.
            element, extents = element_of(leaf, session)
            leaf = record_elementwise(session.builder, element, extents, getattr(leaf, "label", name))
        names.append(leaf.name)
    return names, structure


def run_inline(function: Decorated, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """Run a decorated function inside the function that is being staged; its statements join that program."""
    session = session_of("a decorated function")
    owner = function.template
    session.filenames.add(owner.filename)
    positional, configuration = function.signature.split(arguments, keywords)
    values: list[Any] = []
    for name, value in positional:
        if isinstance(value, PendingArray):
            value = value.materialize(name)
        elif isinstance(value, np.ndarray):
            value = session.capture(value, name)
        if isinstance(value, SymbolicTensor):
            if function.in_place and not value.memory:
                raise session.fault(
                    DslSyntaxError,
                    f"`{function.__name__}` is a @cd function, which stores into `{name}`, but here that is a value",
                    "call @cd functions from @cd functions, or outside",
                )
            if not function.in_place:
                value = SymbolicTensor(value.builder, value.name, value.dtype, value.extents, value.label)
        values.append(value)
    receiver = () if function.receiver is None else (function.receiver,)
    session.readings.extend(owner.surroundings.read(function.receiver))
    outer, session.oob = session.oob, function.oob
    try:
        return owner.run(*receiver, *values, **configuration)
    finally:
        session.oob = outer
