"""What names mean inside a decorated function: its own, those of enclosing functions, of the module, and the
language's.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from tcdsl.errors import DslSyntaxError
from tcdsl.frontend.names.array_calls import call_function
from tcdsl.frontend.names.held_names import HeldNames
from tcdsl.frontend.names.language_functions import LANGUAGE_FUNCTIONS
from tcdsl.frontend.source.assigned_names import binder_of
from tcdsl.frontend.source.function_source import readable_source, span_of
from tcdsl.frontend.source.syntax_trees import copied
from tcdsl.frontend.staging.declarations import DeclaredTarget, OfARound, Unwritten, output
from tcdsl.frontend.staging.declared_parameters import current_parameters
from tcdsl.frontend.staging.session import Poison, Session, StagingStopped
from tcdsl.frontend.staging.target_states import UNBOUND
from tcdsl.frontend.symbols.operators import IndexSymbol
from tcdsl.frontend.symbols.recognition import CONSTANTS
from tcdsl.frontend.symbols.symbols import PendingArray, SymbolicTensor
from tcdsl.indices import ImportedLetter
from tcdsl.recent import Recent
from tcdsl.span import Span

__all__ = ["FunctionScope"]

_CALL = "__tcdsl_call__"

_BINDERS: Recent[tuple[CodeType, str, int], tuple[Span | None]] = Recent(1000)


class _Calls(ast.NodeTransformer):
    # `max(N, M)` of sizes is a size, as everywhere in a decorated function.
    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        return ast.copy_location(ast.Call(ast.Name(_CALL, ast.Load()), [node.func, *node.args], node.keywords), node)


@lru_cache(maxsize=512)
def _compiled(node: ast.expr, filename: str) -> tuple[CodeType, frozenset[str]]:
    # The code of an ordinary expression, which a loop evaluates in each of its rounds, and the names in it.
    names = frozenset([each.id for each in ast.walk(node) if isinstance(each, ast.Name)])
    body = ast.fix_missing_locations(ast.Expression(_Calls().visit(copied(node))))
    return compile(body, filename, "eval"), names


def _call(function: Any, *arguments: Any, **keywords: Any) -> Any:
    return call_function(function, arguments, keywords)


def bound_at(function: FunctionType, filename: str, name: str, line: int) -> Span | None:
    """Where a function has bound a size or the like to ``name`` in front of a line."""
    key = (function.__code__, name, line)
    found = _BINDERS.get(key)
    if found is None:
        source = readable_source(function)
        binder = None if source is None else binder_of(source.definition, name, line)
        # The number of a round is meant as an index.
        found = _BINDERS[key] = (None if binder is None or isinstance(binder, ast.For) else span_of(binder, filename),)
    return found[0]


class FunctionScope:
    """What names mean where a statement of a decorated function stands.

    ``own`` are the function's own names, and ``held`` has what they hold now; closures and globals are those of the
    original function. ``letters`` are index variables outside of subscripts too.
    """

    def __init__(
        self,
        session: Session,
        function: FunctionType,
        own: Collection[str],
        held: Mapping[str, object] | HeldNames,
        filename: str,
    ) -> None:
        self.letters: frozenset[str] = frozenset()
        self.session = session
        self._function = function
        self._own = own
        self._held = held
        self._filename = filename

    @property
    def oob(self) -> str:
        """What the decorator says about data indices that are out of range."""
        return self.session.context.oob

    def holds(self, name: str) -> object:
        """What the function's own ``name`` holds, as it is; ``UNBOUND`` if nothing."""
        if name in self._own:
            return self._held.get(name, UNBOUND)
        parameters = current_parameters()
        declared = None if parameters is None else parameters.find(name)
        return UNBOUND if declared is None else declared

    def own(self, name: str) -> object:
        """The value that the function has bound to ``name``; declared and unwritten targets have none."""
        value = self.holds(name)
        if isinstance(value, Poison):
            raise StagingStopped
        if isinstance(value, OfARound):
            raise value.fault(letter=len(name) == 1 and name.islower())
        return UNBOUND if isinstance(value, Unwritten | DeclaredTarget | ImportedLetter | IndexSymbol) else value

    def may_be_tensor(self, name: str) -> bool:
        """Whether what ``name`` holds now, or will hold, could be a tensor: it is no container of Python's."""
        return not isinstance(self.value_of(name), Sequence | Mapping)

    def is_unwritten(self, name: str) -> bool:
        """Whether ``name`` is one that the function binds, but has not bound yet."""
        return isinstance(self.holds(name), Unwritten | DeclaredTarget)

    def enclosing(self, name: str) -> object:
        """The value of ``name`` in the enclosing functions."""
        value = self._closed_over(name)
        return UNBOUND if isinstance(value, ImportedLetter | IndexSymbol) else value

    def is_index_letter(self, name: str) -> bool:
        """Whether ``name`` is imported from `tcdsl.indices`."""
        held = self._closed_over(name)
        if held is UNBOUND:
            held = self._function.__globals__.get(name)
        return isinstance(held, ImportedLetter) and held.name.islower()

    def is_index_symbol(self, name: str) -> bool:
        """Whether ``name`` is an object that indexes by Python's operators, `tcdsl.tile.TensorIndex`."""
        held = self.holds(name)
        if held is UNBOUND:
            held = self._closed_over(name)
        if held is UNBOUND:
            held = self._function.__globals__.get(name)
        return isinstance(held, IndexSymbol)

    def _closed_over(self, name: str) -> object:
        code, closure = self._function.__code__, self._function.__closure__ or ()
        if name not in code.co_freevars:
            return UNBOUND
        try:
            return closure[code.co_freevars.index(name)].cell_contents
        except ValueError:
            return UNBOUND

    def module(self, name: str) -> object:
        """The module's global ``name``."""
        value = self._function.__globals__.get(name, UNBOUND)
        return UNBOUND if isinstance(value, ImportedLetter | IndexSymbol) else value

    def builtin(self, name: str) -> object:
        """Python's builtin ``name``."""
        return getattr(builtins, name, UNBOUND)

    def value_of(self, name: str) -> object:
        """The value of ``name`` by Python's scoping; ``UNBOUND`` if there is none."""
        if self.is_unwritten(name):
            return UNBOUND
        for look in (self.own, self.enclosing, self.module, self.builtin):
            value = look(name)
            if value is not UNBOUND:
                return value
        return UNBOUND

    def has_text(self, text: str) -> bool:
        """Whether the function has a string that is this text, as one that declares a parameter."""
        return text in self._function.__code__.co_consts

    def language(self, name: str) -> object:
        """The value of ``name``, which the language knows, where the function's surroundings do not define it."""
        value = self.value_of(name)
        if value is not UNBOUND:
            return value
        if name in CONSTANTS:
            return CONSTANTS[name]
        if name == "output":
            return output
        if name not in LANGUAGE_FUNCTIONS:
            raise NameError(f"name {name!r} is not defined")
        return LANGUAGE_FUNCTIONS[name]

    def tensor_of(self, value: object, name: str, span: Span | None) -> SymbolicTensor | None:
        """The tensor that ``value`` is: symbolic ones as they are, arrays as inputs of the program, else ``None``."""
        if isinstance(value, PendingArray):
            return value.materialize(name)
        if isinstance(value, SymbolicTensor):
            return value
        if isinstance(value, np.generic) or not hasattr(value, "__array__") or not hasattr(value, "shape"):
            return None
        return self.session.capture(value, name)

    def within(self, function: FunctionType, held: Mapping[str, object], filename: str) -> FunctionScope:
        """What names mean in a function that a statement calls; ``held`` has what its own names hold."""
        return FunctionScope(self.session, function, held, held, filename)

    def span(self, node: ast.AST) -> Span | None:
        """The place of a node in the user's file."""
        return span_of(node, self._filename)

    def bound_at(self, name: str, line: int) -> Span | None:
        """Where the function has bound a size or the like to ``name`` in front of a line."""
        return bound_at(self._function, self._filename, name, line)

    def python_value(self, node: ast.expr) -> Any:
        """The value of an ordinary Python expression of the function."""
        code, names = _compiled(node, self._filename)
        known: dict[str, object] = {}
        for name in names:
            value = self.holds(name)
            value = self.value_of(name) if value is UNBOUND else value
            if value is not UNBOUND:
                known[name] = value
                self.session.uses.note_read(value)
        try:
            # The user's own expression, in the user's own names: what Python does with it anyway.
            return eval(code, {"__builtins__": builtins.__dict__, _CALL: _call}, known)  # noqa: S307
        except NameError as error:
            raise DslSyntaxError.at(str(error), self.span(node), "define it first") from None
