"""The language's own functions as objects: what a decorated function gets for a name such as ``relu`` that nobody
defined.
"""

from __future__ import annotations

import builtins
import importlib
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np

from tcdsl.errors import DslSyntaxError, DtypeError, TcdslError, suggestion
from tcdsl.frontend.symbols.known_integers import KnownInteger
from tcdsl.frontend.symbols.recognition import BOUNDARIES, CONSTANTS, REDUCTIONS
from tcdsl.ir.dtypes import DTYPES
from tcdsl.ir.primitives import PRIMITIVES

__all__ = [
    "LANGUAGE_FUNCTIONS",
    "CastFunction",
    "ElementKind",
    "LaterFunction",
    "PrimitiveFunction",
    "is_language_name",
    "register_functions",
    "undefined_name_hint",
]


def _is_symbolic(argument: object) -> bool:
    # Imported here, so that `from tcdsl import relu` does not load the Integer Set Library.
    from tcdsl.frontend.points.point_scalars import PointValue
    from tcdsl.frontend.symbols.operators import ArithmeticOperators

    return isinstance(argument, ArithmeticOperators | PointValue)


_WEAK = (bool, int, float, KnownInteger)


class _Named:
    # ``__tcdsl_name__`` is what the language calls it.
    kind = ""

    def __init__(self, name: str) -> None:
        self.__tcdsl_name__ = self.__name__ = name
        self.__doc__ = f"The {self.kind} `{name}` of the language{', elementwise' * (self.kind == 'primitive')}."

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Apply it to arrays and numbers: on symbolic ones it builds programs, on concrete ones it computes."""
        if any(map(_is_symbolic, arguments)):
            from tcdsl.frontend.names.array_calls import call_function

            return call_function(self, arguments, keywords)
        try:
            return self._computed(*arguments, **keywords)
        except TcdslError:
            raise
        except (TypeError, ValueError) as error:
            raise DtypeError(f"`{self.__tcdsl_name__}`: {error}") from None

    def _computed(self, *arguments: Any, **keywords: Any) -> Any:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<{self.kind} {self.__tcdsl_name__}>"


class PrimitiveFunction(_Named):
    """One primitive, by name: ``PrimitiveFunction("relu")``. ``__tcdsl_name__`` is the name of its row."""

    kind = "primitive"

    def _computed(self, *arguments: Any) -> Any:
        row = PRIMITIVES[self.__tcdsl_name__]
        if len(arguments) != row.arity:
            raise _wrong_number(row.name, row.arity, arguments)
        made = np.vectorize(row.evaluate)(*arguments)[()]
        # What is computed from Python's numbers is as weak as they are: `sqrt(8) * x` has the type of `x`.
        return made.item() if all(type(argument) in _WEAK for argument in arguments) else made


class ElementKind:
    """A type of elements, ``real`` or another one, which annotations give extents: ``real[N, K]``."""

    #: What indexes it is extents, and it has no items.
    __iter__ = None

    def __init__(self, name: str) -> None:
        self.__tcdsl_name__ = self.__name__ = name

    def __getitem__(self, extents: Any) -> Any:
        shown = ", ".join(map(str, extents)) if isinstance(extents, tuple) else extents
        return Annotated[Any, f"{self.__name__}[{shown}]"]

    def __repr__(self) -> str:
        return self.__name__


class CastFunction(_Named, ElementKind):
    """``float32(x)`` as a function of the language."""

    kind = "cast"

    def _computed(self, *arguments: Any) -> Any:
        if len(arguments) != 1:
            raise _wrong_number(self.__tcdsl_name__, 1, arguments)
        return np.asarray(arguments[0]).astype(self.__tcdsl_name__)[()]


class ReductionFunction(_Named):
    """``mean(x)`` and ``mean(x, axis=0)`` as functions of whole arrays; in statements, ``mean(x[i, k])``."""

    kind = "reduction"

    def _computed(self, *arrays: Any, **keywords: Any) -> Any:
        if len(arrays) != 1:
            raise _wrong_number(self.__tcdsl_name__, 1, arrays)
        return getattr(np, self.__tcdsl_name__)(*arrays, **keywords)


def _misused(fact: str, hint: str = "") -> TcdslError:
    from tcdsl.frontend.staging.session import current_session

    session = current_session()
    return DslSyntaxError.at(fact, None if session is None else session.location(), hint)


def _wrong_number(name: str, arity: int, arguments: Sequence[Any]) -> TcdslError:
    return _misused(f"`{name}` takes {arity} argument{'s' * (arity != 1)}, not {len(arguments)}")


_IN_STATEMENTS = {"get": "`y[i] = get(x[i - 1], 0.0)`", "assign": '`assign(y[i], "=:+", x[i])`'}


def _only_in_statements(name: str) -> Any:
    def function(*_: Any, **__: Any) -> Any:
        fact = f"`{name}` has a meaning only inside a tensor statement of an @op or @cd function"
        raise _misused(fact, f"as in {_IN_STATEMENTS.get(name, f'`y[i] = x[{name}(i - 1)]`')}")

    function.__name__ = name
    function.__tcdsl_name__ = name  # type: ignore[attr-defined]
    function.__doc__ = f"`{name}` as it is written in tensor statements; see the language reference."
    return function


class LaterFunction:
    """A function of a module that is loaded when it is first called."""

    def __init__(self, name: str, module: str) -> None:
        self.__name__ = name
        self._module = module

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """The function itself."""
        return getattr(importlib.import_module(self._module), self.__name__)(*arguments, **keywords)

    def __repr__(self) -> str:
        return f"<function {self.__name__}>"


def comment(*parts: Any) -> None:
    """``comment("space", p)``: a comment on the statements after it, in what is printed and generated.

    Tensors are called by their labels, numbers that are known only at the call by their names.
    """
    from tcdsl.frontend.staging.session import session_of
    from tcdsl.ir.text.printer import format_expr

    words = [format_expr(part.expr) if hasattr(part, "expr") else str(getattr(part, "label", part)) for part in parts]
    session_of("comment").builder.comment(" ".join(" ".join(words).split()))


LANGUAGE_FUNCTIONS: dict[str, Any] = {
    **{name: PrimitiveFunction(name) for name in PRIMITIVES},
    **{name: ReductionFunction(name) for name in REDUCTIONS if not hasattr(builtins, name)},
    **{name: CastFunction(name) for name in DTYPES if name != "bool"},
    "comment": comment,
    "copy": PrimitiveFunction("id"),
    "einsum": LaterFunction("einsum", "tcdsl.frontend.logics.logic_staging"),
    **{name: _only_in_statements(name) for name in (*BOUNDARIES, "get", "assign")},
}

# These are found as Python's builtins, or as the user's.
_FOUND_BY_PYTHON = frozenset(("abs", "max", "min", "round", "pow"))


def register_functions(functions: Mapping[str, Any]) -> None:
    """Make ``functions`` known to decorated functions by name."""
    LANGUAGE_FUNCTIONS.update(functions)


def is_language_name(name: str) -> bool:
    """Whether a decorated function may say ``name`` without importing it."""
    return name not in _FOUND_BY_PYTHON and (name in LANGUAGE_FUNCTIONS or name in CONSTANTS or name == "output")


def undefined_name_hint(name: str) -> str:
    """What to write instead of ``name``, which has no meaning where it stands: ``gelo`` is close to `gelu`."""
    known = {each for each in (*LANGUAGE_FUNCTIONS, *CONSTANTS, "output") if is_language_name(each)}
    close = suggestion(name, known, least=0.75) if len(name) > 2 else ""
    if close:
        return close
    if len(name) > 1:
        return "define it in the function or around it, or pass it as a parameter"
    if name.isupper():
        return f"bind a size first, `{name} = A.shape[0]`; an index variable has a lower-case letter, `{name.lower()}`"
    return f"pass it as a parameter; an index variable of that name must stand in a subscript, as in `A[{name}]`"
