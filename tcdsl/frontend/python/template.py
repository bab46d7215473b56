"""A decorated function ready for staging: its rewritten code with the closure, globals and defaults of the original."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from functools import partial
from types import FunctionType, TracebackType
from typing import Any

import numpy as np

from tcdsl.errors import Diagnostic, DslSyntaxError
from tcdsl.frontend.names.absent_attributes import instead_of_attribute
from tcdsl.frontend.names.function_scope import bound_at
from tcdsl.frontend.python.recorder import Recorder
from tcdsl.frontend.python.rewriting import RECORDER, rewrite
from tcdsl.frontend.source.annotations import keep_tensor_annotations, parameter_size_names
from tcdsl.frontend.source.assigned_names import binding_of, parameters_of
from tcdsl.frontend.source.function_source import FunctionSource
from tcdsl.frontend.source.rewritten_functions import STATEMENTS, compiled_definition, with_closure
from tcdsl.frontend.source.syntax_trees import copied
from tcdsl.frontend.staging.session import session_of
from tcdsl.frontend.surroundings.impure_calls import warning_of_impure_calls
from tcdsl.frontend.surroundings.reachable import Surroundings
from tcdsl.frontend.symbols.operators import ArithmeticOperators
from tcdsl.frontend.symbols.symbols import METHODS, SymbolicArray
from tcdsl.installation import FOLDER
from tcdsl.span import Span

__all__ = ["Template"]

# What Python says where an attribute of an array cannot be set.
_KIND = r"'(?:\w*Tensor|\w*Array|View|BareReduction)' object"
_OF_ARRAYS = re.compile(
    rf"{_KIND} has no attribute '(?P<name>\w+)'|property '(?P<property>\w+)' of {_KIND} has no setter"
)


class Template:
    """``Template(f, read_source(f), in_place=False).run(A, B)`` runs the rewritten function in the current session."""

    def __init__(self, function: FunctionType, source: FunctionSource, in_place: bool) -> None:
        text = source.definition
        # What the user wrote stays as it is.
        source = replace(source, definition=copied(text))
        self.filename = source.filename
        self.source = source.text
        keep_tensor_annotations(source.definition, function, source.filename)
        self.size_names = parameter_size_names(source.definition)
        self.parameters = tuple(each.arg for each in parameters_of(source.definition))
        rewritten = rewrite(source, in_place)
        recorder = Recorder(function, rewritten, source.filename, in_place)
        self.surroundings = Surroundings(function, text, rewritten.own_names)
        self._function, self._definition = function, text
        added = {RECORDER: recorder, STATEMENTS: rewritten.statements}
        code = compiled_definition(function, rewritten.definition, added, source.filename)
        self._run = with_closure(function, code, added)

    def run(self, instance: Any, /, *arguments: Any, **keywords: Any) -> Any:
        """Run the function on symbolic arguments, as a method of ``instance`` unless that is None.

        Its statements go to the current session.
        """
        session, code = session_of("a decorated function"), self._run.__code__
        session.filenames.add(self.filename)
        session.uses.definitions[code] = self._definition
        session.binders[code] = partial(bound_at, self._function, self.filename)
        if instance is not None:
            arguments = (instance, *arguments)
        receiver = arguments[0] if arguments and not _is_data(arguments[0]) else None
        impure = warning_of_impure_calls(self._function, receiver, keywords, self._function.__name__)
        try:
            with session.waiting_for(code), impure:
                return self._run(*arguments, **keywords)
        except NameError as error:
            fault = self._without_a_value(error)
            if fault is None:
                raise
            raise fault.error() from None
        except AttributeError as error:
            # Before Python 3.13 only the text says of which object an attribute could not be set.
            found, is_array = _OF_ARRAYS.search(str(error)), isinstance(error.obj, SymbolicArray)
            if found is not None and (not is_array or "setter" in str(error) or "setting" in str(error)):
                raise self._set_attribute(error, found["name"] or found["property"]).error() from None
            if not is_array:
                raise
            raise self._missing_attribute(error).error() from None

    def _set_attribute(self, error: AttributeError, name: str) -> Diagnostic:
        trace = _last_entry(error)
        return Diagnostic(
            DslSyntaxError,
            f"`{name}` of an array cannot be set while the function is staged",
            None if trace is None else Span.executed(trace.tb_frame, trace.tb_lasti),
            hint="bind a name to what is meant; a statement, as in `y[i*M + j] = x[i, j]`, gives another shape",
        )

    def _missing_attribute(self, error: AttributeError) -> Diagnostic:
        trace = _last_entry(error)
        # Positions of winners have to be written as statements; lenses are Tile's.
        others = ("argmax", "argmin", "builder", "rank", "use")
        offered = {"dtype", *METHODS, *(name for name in dir(SymbolicArray) if name[0] != "_")}
        names = sorted(offered.difference(others))
        known = ", ".join(f"`{name}`" for name in names)
        return Diagnostic(
            DslSyntaxError,
            f"an array has no `{error.name}` while the function is staged",
            None if trace is None else Span.executed(trace.tb_frame, trace.tb_lasti),
            (f"it has {known}",),
            instead_of_attribute("an array", error.name or "")
            or "write a statement, such as `y[i*M + j] = x[i, j]` for a reshape",
        )

    def _without_a_value(self, error: NameError) -> Diagnostic | None:
        trace = _last_entry(error)
        if trace is None or trace.tb_frame.f_code.co_filename != self.filename:
            return None
        code = trace.tb_frame.f_code
        own = code is self._run.__code__ or code.co_name.startswith("<")
        span = Span.executed(trace.tb_frame, trace.tb_lasti)
        if own and isinstance(error, UnboundLocalError):
            name = str(error).split("'")[1]
            if any(
                isinstance(each, ast.AugAssign) and each.lineno == trace.tb_lineno and name in binding_of(each)
                for each in ast.walk(self._definition)
            ):
                # `c += a` on a whole array that there is not.
                fact = f"`{name}` is read before anything is written to it"
                hint = (
                    f"write it first, `{name} = ...`; a statement with an index list, `{name}[i] += x[i]`, starts anew"
                )
                return Diagnostic(DslSyntaxError, fact, span, hint=hint)
            hint = f"bind `{name}` before the branch or the loop that may leave it out"
            for later in ast.walk(self._definition):
                if isinstance(later, ast.stmt) and later.lineno > trace.tb_lineno and name in binding_of(later):
                    hint = f"move what binds it, `{ast.unparse(later).splitlines()[0]}`, before this line"
                    break
            return Diagnostic(DslSyntaxError, f"nothing is bound to `{name}` here", span, hint=hint)
        name = error.name or ""
        if len(name) != 1 or not name.islower():
            return None
        # Python met an index variable: `a[i] = b[i] = x[i]`, `self.w[i] += x[i]`, `return y * k`.
        fact = f"`{name}` is not defined; an index variable has a meaning only in a tensor statement"
        hint = f"write `T[{name}] = ...` with a name for `T`, one at a time; all indices share one bracket, `T[i, j]`"
        if not own:
            fact = f"`{name}` is not defined; `{code.co_name}` is an ordinary function without tensor statements"
            hint = f"decorate `{code.co_name}` with @op"
        return Diagnostic(DslSyntaxError, fact, span, hint=hint)


def _is_data(value: object) -> bool:
    # What is no instance whose method the function is.
    return isinstance(value, ArithmeticOperators | np.ndarray | np.generic | int | float | None)


def _last_entry(error: BaseException) -> TracebackType | None:
    # Where it was raised, or where what has raised it was called.
    trace = found = error.__traceback__
    while trace is not None:
        found = found if trace.tb_frame.f_code.co_filename.startswith(FOLDER) else trace
        trace = trace.tb_next
    return found
