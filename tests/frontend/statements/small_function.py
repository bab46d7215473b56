"""A decorated function's surroundings in miniature: statements are evaluated one by one and interpreted.

Nothing of the runtime takes part: names come from dictionaries, ranges from range inference, results from the reference
interpreter.
"""

from __future__ import annotations

import ast
import builtins
import copy
import linecache
import textwrap
from collections.abc import Mapping
from types import FunctionType
from typing import Any

import numpy as np

from tcdsl.errors import TcdslError
from tcdsl.frontend.staging.builder import ProgramBuilder
from tcdsl.frontend.staging.target_states import UNBOUND, Declared, Existing, Fresh
from tcdsl.frontend.statements.tensor_statements import (
    evaluate_local,
    evaluate_statement,
    is_local_definition,
    sketch_statement,
)
from tcdsl.frontend.symbolic_operators import WholeArrays
from tcdsl.frontend.symbols.symbols import SymbolicSize, SymbolicTensor
from tcdsl.ir.build import integer
from tcdsl.ir.interpreter.interpreter import interpret
from tcdsl.ir.program import Program
from tcdsl.ranges.sketches.sketch import Sketch
from tcdsl.span import Span

_FILENAME = "<small function>"


class SmallFunction:
    """The environment of statements over some arrays."""

    def __init__(
        self,
        source: str,
        arrays: Mapping[str, Any],
        *,
        known: Mapping[str, object] | None = None,
        enclosing: Mapping[str, object] | None = None,
        module: Mapping[str, object] | None = None,
        oob: str = "check",
        filename: str = _FILENAME,
    ) -> None:
        self.source = textwrap.dedent(source)
        self.filename = filename
        linecache.cache[filename] = (len(self.source), None, self.source.splitlines(True), filename)
        self.oob = oob
        self.builder = ProgramBuilder("small", WholeArrays())
        self.arrays = {name: np.asarray(array) for name, array in arrays.items()}
        self.names: dict[str, object] = {
            name: self.builder.input(name, str(array.dtype), array.ndim) for name, array in self.arrays.items()
        }
        self.names.update(known or {})
        self.outer = dict(enclosing or {})
        self.globals = dict(module or {})
        self.declared: dict[str, Declared] = {}

    @property
    def letters(self) -> frozenset[str]:
        return frozenset()

    def within(self, function: FunctionType, held: Mapping[str, object], filename: str) -> SmallFunction:
        inner = copy.copy(self)
        inner.names = dict(held)
        inner.globals, inner.outer, inner.filename = function.__globals__, {}, filename
        return inner

    def own(self, name: str) -> object:
        return self.names.get(name, UNBOUND)

    def is_unwritten(self, name: str) -> bool:
        return name in self.declared and name not in self.names

    def enclosing(self, name: str) -> object:
        return self.outer.get(name, UNBOUND)

    def module(self, name: str) -> object:
        return self.globals.get(name, UNBOUND)

    def builtin(self, name: str) -> object:
        return getattr(builtins, name, UNBOUND)

    def span(self, node: ast.AST) -> Span | None:
        if not hasattr(node, "lineno"):
            return None
        return Span(self.filename, node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)

    def tensor_of(self, value: object, name: str, span: Span | None) -> SymbolicTensor | None:
        if isinstance(value, SymbolicTensor):
            return value
        if isinstance(value, np.ndarray):
            self.arrays[name] = value
            return self.builder.input(name, str(value.dtype), value.ndim)
        return None

    def declare(self, name: str, extents: tuple[Any, ...], dtype: str | None = None) -> None:
        shape = tuple(extent.expr if isinstance(extent, SymbolicSize) else integer(extent) for extent in extents)
        self.declared[name] = Declared(shape, dtype, name)

    def state(self, name: str) -> Fresh | Declared | Existing:
        held = self.names.get(name)
        if isinstance(held, SymbolicTensor):
            return Existing(held)
        return self.declared.get(name, Fresh(name))

    def execute(self) -> None:
        faults: list[TcdslError] = []
        for node in ast.parse(self.source).body:
            try:
                self._statement(node)
            except TcdslError as error:
                faults.append(error)
        if faults:
            raise faults[0]

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.AnnAssign(
                target=ast.Name(id=name), annotation=ast.Subscript(value=ast.Name(id=kind), slice=index)
            ):
                nodes = index.elts if isinstance(index, ast.Tuple) else [index]
                extents = tuple(self._python(extent) for extent in nodes)
                self.declare(name, extents, None if kind == "any" else kind)
            case ast.Assign(targets=[ast.Name(id=name)]) if is_local_definition(node, self):
                self.names[name] = evaluate_local(node, self, self.builder)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self.names[name] = self._python(value)
            case _:
                name = _target(node)
                self.names[name] = evaluate_statement(node, self.state(name), self, self.builder)

    def _python(self, node: ast.expr) -> Any:
        code = compile(ast.Expression(node), self.filename, "eval")
        return eval(code, dict(self.globals), dict(self.names))  # noqa: S307

    def program(self, *outputs: str) -> Program:
        return self.builder.program([self.names[name].name for name in outputs])


def _target(node: ast.stmt) -> str:
    if isinstance(node, ast.Expr):
        target = node.value.args[0]
    else:
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    return target.value.id


def run(source: str, result: str = "O", **given: Any) -> np.ndarray:
    """What ``result`` holds after the statements of ``source``; keywords other than options are arrays."""
    options = {key: given.pop(key) for key in ("known", "enclosing", "module", "oob") if key in given}
    function = SmallFunction(source, given, **options)
    function.execute()
    return interpret(function.program(result), list(function.arrays.values())).outputs[0]


def sketch(source: str, **given: Any) -> Sketch:
    """The sketch of the last statement of ``source``; those before it are recorded."""
    options = {key: given.pop(key) for key in ("known", "enclosing", "module", "oob") if key in given}
    function = SmallFunction(source, given, **options)
    *before, last = ast.parse(function.source).body
    for node in before:
        function._statement(node)
    return sketch_statement(last, function.state(_target(last)), function, function.builder)
