"""A decorated function's surroundings in miniature: statements are evaluated one by one and interpreted.

Nothing of the runtime takes part: names come from dictionaries, results from the reference interpreter.
"""

from __future__ import annotations

import ast
import linecache
import textwrap
from collections.abc import Mapping
from dataclasses import replace
from types import FunctionType
from typing import Any

import numpy as np

from tcdsl.errors import TcdslError
from tcdsl.frontend.names.function_scope import FunctionScope
from tcdsl.frontend.staging.declarations import DeclaredTarget
from tcdsl.frontend.staging.session import Session
from tcdsl.frontend.staging.target_states import UNBOUND, Existing, Fresh, TargetState
from tcdsl.frontend.statements.local_definitions import evaluate_local, is_local_definition
from tcdsl.frontend.statements.tensor_statements import (
    evaluate_statement,
    sketch_statement,
)
from tcdsl.frontend.symbolic_operators import WholeArrays
from tcdsl.frontend.symbols.symbols import SymbolicSize, SymbolicTensor
from tcdsl.ir.build import integer
from tcdsl.ir.interpreter.interpreter import interpret
from tcdsl.ir.program import Program
from tcdsl.ranges.sketches.sketch import Sketch

_FILENAME = "<small function>"


class SmallFunction(FunctionScope):
    """What names mean in statements over some arrays."""

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
        linecache.cache[filename] = (len(self.source), None, self.source.splitlines(True), filename)
        session = Session("small", WholeArrays())
        session.context = replace(session.context, oob=oob)
        self.builder = session.builder
        self.arrays = {name: np.asarray(array) for name, array in arrays.items()}
        self.names: dict[str, object] = {
            name: self.builder.input(name, str(array.dtype), array.ndim) for name, array in self.arrays.items()
        }
        self.names.update(known or {})
        self.outer = dict(enclosing or {})
        self.globals = dict(module or {})
        function = FunctionType(compile("", filename, "exec"), self.globals)
        super().__init__(session, function, self.names, self.names, filename)

    def _closed_over(self, name: str) -> object:
        return self.outer.get(name, UNBOUND)

    def declare(self, name: str, extents: tuple[Any, ...], dtype: str | None = None) -> None:
        shape = tuple(extent.expr if isinstance(extent, SymbolicSize) else integer(extent) for extent in extents)
        self.names[name] = DeclaredTarget(shape, dtype)

    def state(self, name: str) -> TargetState:
        held = self.names.get(name)
        if isinstance(held, SymbolicTensor):
            return Existing(held)
        return held.state(name) if isinstance(held, DeclaredTarget) else Fresh(name)

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
                self.names[name] = evaluate_local(node, self)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self.names[name] = self._python(value)
            case _:
                name = _target(node)
                self.names[name] = evaluate_statement(node, self.state(name), self)

    def _python(self, node: ast.expr) -> Any:
        code = compile(ast.Expression(node), self._filename, "eval")
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
    with function.session.active():
        function.execute()
    captured = [each.value for each in function.session.captured]
    return interpret(function.program(result), [*function.arrays.values(), *captured]).outputs[0]


def sketch(source: str, **given: Any) -> Sketch:
    """The sketch of the last statement of ``source``; those before it are recorded."""
    options = {key: given.pop(key) for key in ("known", "enclosing", "module", "oob") if key in given}
    function = SmallFunction(source, given, **options)
    *before, last = ast.parse(function.source).body
    with function.session.active():
        for node in before:
            function._statement(node)
        return sketch_statement(last, function.state(_target(last)), function)
