"""The user's functions where tensor statements call them on scalars at a point: they mean their text.

::

    def masked(a, j): return a[j] if j > 0 else 0.0        y[i] = masked(x, i)

Python itself runs them, so that they may do whatever Python does while staging. What it cannot compute with scalars at
a point is read as text in a tensor statement is: subscripts, calls, ``a if c else b``, ``and``, ``or``, ``not`` and
comparisons. Such expressions become calls of `_Points`, which the rewritten function holds as a closure variable.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import CodeType, FrameType, FunctionType
from typing import Any

from tcdsl.errors import DslSyntaxError
from tcdsl.frontend.names.function_scope import FunctionScope
from tcdsl.frontend.names.language_functions import is_language_name
from tcdsl.frontend.names.sizes_of_letters import relate_axes
from tcdsl.frontend.points.point_scalars import BareReduction, PointValue, as_points
from tcdsl.frontend.source.assigned_names import bindings_of, parameters_of
from tcdsl.frontend.source.function_source import FunctionSource, readable_source
from tcdsl.frontend.source.rewritten_functions import compiled_definition, thunk, with_closure
from tcdsl.frontend.staging.faults import Faulty
from tcdsl.frontend.staging.session import StagingStopped
from tcdsl.frontend.staging.target_states import UNBOUND
from tcdsl.frontend.statements.evaluator import Evaluator
from tcdsl.frontend.surroundings.named_values import is_installed, users_function
from tcdsl.frontend.symbols.symbols import SymbolicNumber, SymbolicSize
from tcdsl.recent import Recent

__all__ = ["at_points", "text_of_operation"]

_POINTS = "__tcdsl_points__"
_SCALARS = (PointValue, BareReduction)
_SYMBOLIC = (*_SCALARS, SymbolicNumber, SymbolicSize)
_READ = ast.IfExp | ast.BoolOp | ast.Compare | ast.Subscript | ast.Call
# What tensor statements have no meaning for is Python's.
_PYTHON = (
    ast.Lambda,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.Dict,
    ast.Set,
    ast.JoinedStr,
    ast.NamedExpr,
    ast.Await,
    ast.Yield,
    ast.YieldFrom,
    ast.Slice,
)
_FRAME_CALLS = frozenset(("super", "locals", "globals", "vars", "dir", "eval", "exec"))


def at_points(function: Any, evaluation: Evaluator) -> Any:
    """``function`` as a statement that is evaluated calls it; itself if it is no function whose text is known."""
    plain, receiver = users_function(function)
    if plain is None or is_installed(plain.__code__.co_filename):
        return function
    known = _TEXTS.get(plain.__code__)
    if known is None:
        known = _TEXTS[plain.__code__] = _Text.of(plain)
    if known.code is None:
        return function
    made = with_closure(plain, known.code, {_POINTS: _Points(plain, known, evaluation)})
    return made if receiver is None else made.__get__(receiver)


def text_of_operation(operation: Any) -> Any:
    """The function of Python's that an operation has been made of, if it is nothing but values; else None.

    Then it means its text at a point, as any function does: it has no statements, loops and branches, nor letters and
    sizes of its own, and no derivative rule.
    """
    function, receiver = users_function(getattr(operation, "__wrapped__", None))
    source = getattr(operation, "source", None)
    if function is None or not isinstance(source, FunctionSource) or operation.in_place or operation.rules:
        return None
    definition = source.definition
    nodes = [node for statement in definition.body for node in ast.walk(statement)]
    own = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    own |= {each.arg for each in parameters_of(definition)} | set(function.__code__.co_freevars)
    known = own | function.__globals__.keys() | vars(builtins).keys()
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    indices = [part for node in nodes if isinstance(node, ast.Subscript) for part in ast.walk(node.slice)]
    if not own.issuperset(part.id for part in indices if isinstance(part, ast.Name)):
        return None
    if any(each.annotation for each in parameters_of(definition)) or not all(map(_gives_values, definition.body)):
        return None
    if not all(name in known or is_language_name(name) for name in names):
        return None
    return function if receiver is None else function.__get__(receiver)


def _gives_values(statement: ast.stmt) -> bool:
    match statement:
        case ast.Assign(targets=targets):
            parts = [each for target in targets for each in ast.walk(target) if isinstance(each, ast.expr)]
            return all(isinstance(each, ast.Name | ast.Tuple) for each in parts)
        case ast.Return() | ast.Expr(ast.Constant()):
            return True
    return False


@dataclass(frozen=True, slots=True)
class _Text:
    """The rewritten code of a function, and the expressions in it that are read as text; no code where none is.

    ``nodes`` has with each of them the names in it that are the function's own.
    """

    code: CodeType | None
    nodes: tuple[tuple[ast.expr, frozenset[str]], ...] = ()
    filename: str = ""

    @staticmethod
    def of(function: FunctionType) -> _Text:
        source = readable_source(function)
        if source is None:
            return _Text(None)
        definition = source.definition
        own = bindings_of(definition.body).bound | {each.arg for each in parameters_of(definition)}
        rewriter = _PointRewriter(own)
        definition.body = [rewriter.visit(statement) for statement in definition.body]
        definition.decorator_list = []
        code = compiled_definition(function, definition, (_POINTS,), source.filename) if rewriter.nodes else None
        return _Text(code, tuple(rewriter.nodes), source.filename)


_TEXTS: Recent[CodeType, _Text] = Recent(1000)


class _PointRewriter(ast.NodeTransformer):
    def __init__(self, own: set[str]) -> None:
        self.own = own
        self.nodes: list[tuple[ast.expr, frozenset[str]]] = []

    def _read(self, node: ast.expr, method: str = "value") -> ast.expr:
        if isinstance(node, ast.Lambda | ast.JoinedStr):
            return node  # a lambda is read where it is called
        if isinstance(node, ast.Starred) or any(map(_is_python, ast.walk(node))):
            return self._parts(node)
        if not _is_text(node):
            return node
        names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
        self.nodes.append((node, frozenset(names & self.own)))
        function = ast.Attribute(ast.Name(_POINTS, ast.Load()), method, ast.Load())
        call = ast.Call(function, [ast.Constant(len(self.nodes) - 1), thunk(node)], [])
        return ast.fix_missing_locations(ast.copy_location(call, node))

    def _parts(self, node: ast.expr) -> ast.expr:
        # What tensor statements have no meaning for is Python's; the expressions in it are read for themselves.
        inner = [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.comprehension | ast.keyword)]
        loops = [part for part in inner if isinstance(part, ast.comprehension)]
        self.own |= {part.id for loop in loops for part in ast.walk(loop.target) if isinstance(part, ast.Name)}
        for holder in (node, *inner):
            for name, value in ast.iter_fields(holder):
                if isinstance(value, ast.expr) and name not in ("slice", "target"):
                    setattr(holder, name, self._read(value))
                elif isinstance(value, list):
                    value[:] = [self._read(each) if isinstance(each, ast.expr) else each for each in value]
        return node

    def visit(self, node: ast.AST) -> Any:
        """Read the values and tests of statements; inner functions and classes are read where they are called."""
        match node:
            case ast.FunctionDef() | ast.ClassDef():
                return node
            case ast.Assign() | ast.AugAssign() | ast.AnnAssign() | ast.Return() | ast.Expr():
                node.value = None if node.value is None else self._read(node.value)
                return node
            case ast.Assert() | ast.If() | ast.While():
                node.test = self._read(node.test, "decided")
        return node if isinstance(node, ast.expr) else self.generic_visit(node)


def _is_python(node: ast.AST) -> bool:
    starred = isinstance(node, ast.Tuple | ast.List) and any(isinstance(each, ast.Starred) for each in node.elts)
    return starred or isinstance(node, _PYTHON)


def _is_text(node: ast.expr) -> bool:
    parts = list(ast.walk(node))
    loops = [clause.iter for part in parts if isinstance(part, ast.GeneratorExp) for clause in part.generators]
    calls = [
        part.func.id for part in (*parts, *loops) if isinstance(part, ast.Call) and isinstance(part.func, ast.Name)
    ]
    ranges = all(
        isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id == "range" for each in loops
    )
    inverted = any(isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not) for part in parts)
    read = inverted or any(isinstance(part, _READ) for part in parts)
    return read and ranges and _FRAME_CALLS.isdisjoint(calls)


class _Points:
    """What a rewritten function calls for its expressions."""

    def __init__(self, function: FunctionType, text: _Text, evaluation: Evaluator) -> None:
        self._function = function
        self._text = text
        self._evaluation = evaluation

    def value(self, number: int, ordinary: Callable[[], Any]) -> Any:
        """An expression: what its text is at a point where it computes with scalars there, else Python's value."""
        return self._value(number, self._held(number, sys._getframe(1)), ordinary)

    def _held(self, number: int, frame: FrameType) -> dict[str, object]:
        # What the names hold that have been bound; of the others it is said that they are the function's own.
        return {name: frame.f_locals.get(name, UNBOUND) for name in self._text.nodes[number][1]}

    def _value(self, number: int, held: Mapping[str, object], ordinary: Callable[[], Any]) -> Any:
        if not _is_any_of(_SYMBOLIC, held):
            try:
                return ordinary()
            except NameError as error:
                # `log(2)`, of the language.
                if not is_language_name(error.name or ""):
                    raise
        node, _ = self._text.nodes[number]
        scope = self._scope(held)
        relate_axes((node,), scope)
        evaluation = self._evaluation.within(scope, node)
        given = evaluation.evaluate(node)
        evaluation.finish()
        if isinstance(given, Faulty):
            raise StagingStopped
        return as_points(given, evaluation.definitions, evaluation.span(node))

    def _scope(self, held: Mapping[str, object]) -> FunctionScope:
        return self._evaluation.environment.within(self._function, held, self._text.filename)

    def decided(self, number: int, ordinary: Callable[[], Any]) -> Any:
        """The test of a branch, which staging must know."""
        # Run-time numbers alone become constants of the program where Python branches.
        held = self._held(number, sys._getframe(1))
        given = self._value(number, held, ordinary) if _is_any_of(_SCALARS, held) else ordinary()
        if isinstance(given, PointValue):
            span = self._scope(held).span(self._text.nodes[number][0])
            fact = "Python branches on a value that is different at every point"
            raise DslSyntaxError.at(fact, span, "write `a if condition else b` for a value")
        return given


def _is_any_of(kinds: tuple[type, ...], held: Mapping[str, object]) -> bool:
    parts = (part for given in held.values() for part in (given if isinstance(given, tuple | list) else (given,)))
    return any(isinstance(part, kinds) for part in parts)
