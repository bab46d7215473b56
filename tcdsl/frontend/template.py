"""A decorated function ready for staging: its rewritten code with the closure, globals and defaults of the original."""

from __future__ import annotations

import ast
import copy
from types import CellType, CodeType, FunctionType, TracebackType
from typing import Any

import numpy as np

from tcdsl.errors import Diagnostic, DslSyntaxError
from tcdsl.frontend.annotations import keep_tensor_annotations
from tcdsl.frontend.bindings import parameters_of
from tcdsl.frontend.impure_calls import warning_of_impure_calls
from tcdsl.frontend.operators import ArithmeticOperators
from tcdsl.frontend.recorder import Recorder
from tcdsl.frontend.rewriting import RECORDER, rewrite
from tcdsl.frontend.size_names import parameter_size_names
from tcdsl.frontend.source import Source
from tcdsl.frontend.surroundings import Surroundings
from tcdsl.frontend.symbols import SymbolicArray
from tcdsl.ir.span import Span

__all__ = ["Template"]


class Template:
    """``Template(f, read_source(f), in_place=False).run(A, B)`` runs the rewritten function in the current session."""

    def __init__(self, function: FunctionType, source: Source, in_place: bool) -> None:
        text = copy.deepcopy(source.definition)
        self.filename = source.filename
        self.source = source.text
        keep_tensor_annotations(source.definition, function, source.filename)
        self.size_names = parameter_size_names(source.definition)
        self.parameters = tuple(each.arg for each in parameters_of(source.definition))
        rewritten = rewrite(source, in_place)
        recorder = Recorder(function, rewritten, source.filename, in_place)
        self.surroundings = Surroundings(function, text, rewritten.own_names)
        self._function = function
        self._run = _with_closure(function, rewritten.definition, recorder, source.filename)

    def run(self, *arguments: Any, **keywords: Any) -> Any:
        """Run the function on symbolic arguments; its statements go to the current session."""
        receiver = arguments[0] if arguments and not _is_data(arguments[0]) else None
        try:
            with warning_of_impure_calls(self._function, receiver, keywords, self._function.__name__):
                return self._run(*arguments, **keywords)
        except NameError as error:
            fault = self._index_letter(error)
            if fault is None:
                raise
            raise fault.error() from None
        except AttributeError as error:
            if not isinstance(error.obj, SymbolicArray):
                raise
            raise self._missing_attribute(error).error() from None

    def _missing_attribute(self, error: AttributeError) -> Diagnostic:
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        # Positions of winners have to be written as statements.
        others = ("argmax", "argmin", "builder", "rank")
        names = sorted({"dtype", *(name for name in dir(SymbolicArray) if name[0] != "_" and name not in others)})
        known = ", ".join(f"`{name}`" for name in names)
        return Diagnostic(
            DslSyntaxError,
            f"an array has no `{error.name}` while the function is staged",
            None if trace is None else _span_of(trace),
            (f"it has {known}",),
            "write a statement, such as `y[i*M + j] = x[i, j]` for a reshape",
        )

    def _index_letter(self, error: NameError) -> Diagnostic | None:
        # Python met an index variable: `a[i] = b[i] = x[i]`, `self.w[i] += x[i]`, `return y * k`.
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        name = error.name or ""
        if trace is None or trace.tb_frame.f_code.co_filename != self.filename or len(name) != 1 or not name.islower():
            return None
        span = _span_of(trace)
        fact = f"`{name}` is not defined; an index variable has a meaning only in a tensor statement"
        hint = f"write `T[{name}] = ...` with a name for `T`, one at a time; all indices share one bracket, `T[i, j]`"
        code = trace.tb_frame.f_code
        if code is not self._run.__code__ and not code.co_name.startswith("<"):
            fact = f"`{name}` is not defined; `{code.co_name}` is an ordinary function without tensor statements"
            hint = f"decorate `{code.co_name}` with @op"
        return Diagnostic(DslSyntaxError, fact, span, hint=hint)


def _is_data(value: object) -> bool:
    # What is no instance whose method the function is.
    return isinstance(value, ArithmeticOperators | np.ndarray | np.generic | int | float | None)


def _span_of(trace: TracebackType) -> Span:
    code = trace.tb_frame.f_code
    line, end_line, column, end_column = list(code.co_positions())[trace.tb_lasti // 2]
    first = line or trace.tb_lineno
    return Span(code.co_filename, first, column or 0, end_line or trace.tb_lineno, end_column or 0)


def _with_closure(
    function: FunctionType, definition: ast.FunctionDef, recorder: Recorder, filename: str
) -> FunctionType:
    # The rewritten definition is compiled inside a function that has the closure's names as parameters, so that Python
    # makes them free variables; then the original cells are attached, and one for the recorder.
    names = (*function.__code__.co_freevars, RECORDER)
    empty = ast.arguments(
        posonlyargs=[],
        args=[ast.arg(name, None, None) for name in names],
        vararg=None,
        kwonlyargs=[],
        kw_defaults=[],
        kwarg=None,
        defaults=[],
    )
    # Inside the factory the definition must not bind the function's own name, which its body may mean.
    definition.name = "rewritten"
    factory = ast.FunctionDef(
        name="factory", args=empty, body=[definition], decorator_list=[], returns=None, type_comment=None
    )
    ast.copy_location(factory, definition)
    module = ast.fix_missing_locations(ast.Module([factory], []))
    outer = _code_named("factory", compile(module, filename, "exec"))
    code = _code_named(definition.name, outer).replace(co_name=function.__name__, co_qualname=function.__qualname__)
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells[RECORDER] = CellType(recorder)
    closure = tuple(cells[name] for name in code.co_freevars)
    rewritten = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, closure)
    rewritten.__kwdefaults__ = function.__kwdefaults__
    rewritten.__qualname__ = function.__qualname__
    return rewritten


def _code_named(name: str, code: CodeType) -> CodeType:
    return next(c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == name)
