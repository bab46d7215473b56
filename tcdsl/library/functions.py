"""Operators as functions: arrays in, new arrays out, differentiable."""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Sequence
from functools import cache
from typing import Any

from tcdsl.errors import ConfigurationError
from tcdsl.frontend.skriptnd.bodies import ArrayBody, OperatorBody
from tcdsl.frontend.skriptnd.forms import attribute_value, open_extents, trimmed
from tcdsl.frontend.skriptnd.text.syntax import Declaration, Operator
from tcdsl.frontend.source.function_source import FunctionSource
from tcdsl.library.texts import find_in_library, library_module
from tcdsl.locks import computed_once
from tcdsl.runtime.calls.content import Contents
from tcdsl.tensors.functions.decorators import TensorFunction
from tcdsl.tracebacks import missing_name, user_facing

__all__ = ["BodyFunction", "LibraryFunction", "LibraryModule", "library_functions"]


class BodyFunction(TensorFunction):
    """A graph or an operator with attributes, as a function of its inputs, and of variables, one by one."""

    def __init__(self, body: ArrayBody, content: tuple[Any, ...]) -> None:
        super().__init__(body.function, False)
        self._body = body
        self._content = content

    @property
    def template(self) -> ArrayBody:
        """What runs while the function is staged."""
        return self._body

    @computed_once
    def source(self) -> FunctionSource:
        """The place of its text."""
        return self._body.definition

    def add_content(self, contents: Contents) -> None:
        """Add all that staging depends on."""
        contents.put("skriptnd", *self._content)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self

    def _with_receiver(self, arguments: tuple[Any, ...]) -> tuple[BodyFunction, tuple[Any, ...]]:
        return self, arguments


class LibraryFunction:
    """An operator of the library: ``nn.conv(x, w, stride=2)``. ``print(nn.conv.text)`` shows it."""

    def __init__(self, module: str, operator: Operator) -> None:
        self._module, self._operator = module, operator
        self._functions: dict[Any, BodyFunction] = {}
        self.__name__ = self.__qualname__ = operator.name
        self.__doc__ = _documentation(module, operator)
        self.__signature__ = _signature(operator)

    @property
    def text(self) -> str:
        """The operator in SkriptND."""
        import linecache

        span = self._operator.span
        assert span is not None
        return "".join(linecache.getlines(span.filename)[span.line - 1 : span.end_line])

    @user_facing
    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """Compute the operator."""
        operator, declared = self._operator, self._operator.inputs
        if len(inputs) > len(declared):
            fact = f"`{self.__name__}` takes {len(declared)} inputs, and is given {len(inputs)}"
            raise ConfigurationError.at(fact, hint="attributes are given by name")
        given = dict(zip((each.name for each in declared), inputs, strict=False))
        attributes: dict[str, Any] = {}
        types: dict[str, str] = {}
        for name, value in named.items():
            plain = name.removesuffix("_") if keyword.iskeyword(name.removesuffix("_")) else name
            if any(plain == each.name for each in declared) and plain not in given:
                given[plain] = value
            elif any(plain == each.name for each in operator.attributes):
                attributes[plain] = attribute_value(value, next(a for a in operator.attributes if a.name == plain))
            elif any(plain == each.name for each in operator.generics):
                if not isinstance(value, str):
                    fact = f"the type `{name}` is a {type(value).__name__}"
                    raise ConfigurationError.at(fact, hint=f"give its name: `{name}='real'`")
                types[plain] = value
            else:
                raise ConfigurationError.at(
                    f"`{self.__name__}` has no input or attribute `{name}`", hint=self.__doc__ or ""
                )
        values = [given.get(each.name) for each in declared]
        lengths = {e.name: len(v) for e, v in zip(declared, values, strict=True) if isinstance(v, list | tuple)}
        left_out = tuple(each.name for each, value in zip(declared, values, strict=True) if value is None)
        key = (*(tuple(sorted(each.items())) for each in (attributes, types, lengths)), left_out)
        function = self._functions.get(_exact(key))
        if function is None:
            body = OperatorBody(operator, find_in_library, self._module, types, attributes, lengths, left_out)
            content = (self._module, operator.name, repr(key))
            function = self._functions[_exact(key)] = BodyFunction(body, content)
        flat = [part for value in values for part in _parts(value)]
        found = function(*flat)
        return _structured(operator.outputs, trimmed(found, open_extents(operator)))

    def __reduce__(self) -> tuple[Any, ...]:
        return library_function, (self._module, self.__name__)

    def __repr__(self) -> str:
        return f"<operator {self._module}.{self.__name__}>"


def _parts(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else () if value is None else (value,)


def _exact(key: Any) -> Any:
    # 1, 1.0 and True are attributes of several types.
    return tuple(map(_exact, key)) if isinstance(key, tuple) else (type(key), key)


def _structured(outputs: Sequence[Declaration], found: Any) -> Any:
    # One result at most is a pack, of all that the others are not.
    flat = list(found) if isinstance(found, tuple) else [found]
    results: list[Any] = []
    for k, each in enumerate(outputs):
        count = len(flat) - (len(outputs) - 1 - k)
        results.append(flat.pop(0) if each.type.pack is None else [flat.pop(0) for _ in range(count)])
    return results[0] if len(results) == 1 else tuple(results)


def _signature(operator: Operator) -> inspect.Signature:
    parameters = [
        inspect.Parameter(
            f"{each.name}_" if keyword.iskeyword(each.name) else each.name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=None if each.type.optional or each.default is not None else inspect.Parameter.empty,
        )
        for each in operator.inputs
    ]
    needed = inspect.Parameter.empty
    for each in operator.attributes:
        name = f"{each.name}_" if keyword.iskeyword(each.name) else each.name
        default = needed if each.default is None and not each.type.optional else None
        parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default))
    parameters.sort(key=lambda each: (each.kind, each.kind == 1 and each.default is not needed))
    return inspect.Signature(parameters)


def _documentation(module: str, operator: Operator) -> str:
    def lines(kind: str, declared: Sequence[Declaration]) -> list[str]:
        return [f"    {kind} {each.span.text if each.span is not None else each.name}" for each in declared]

    inputs = ", ".join(each.name for each in operator.inputs)
    groups = {"input": operator.inputs, "attribute": operator.attributes, "output": operator.outputs}
    rows = [row for kind, declared in groups.items() for row in lines(kind, declared)]
    head = f"``{module}.{operator.name}({inputs})`` of SkriptND's library::"
    return "\n".join([head, "", *rows, "", "Attributes are given by name."])


class LibraryModule:
    """A module of the library: its operators are attributes, each made when it is used."""

    def __init__(self, name: str) -> None:
        operators = [each for each in library_module(name) if not each.startswith("_")]
        self.__name = name
        self.__names = {f"{each}_" if keyword.iskeyword(each) else each: each for each in operators}
        self.__doc__ = f"The operators of the module {name}: {', '.join(self.__names)}."

    def __getattr__(self, name: str) -> LibraryFunction:
        if name.startswith("_LibraryModule__"):
            raise AttributeError(name)  # while it is being made
        if name not in self.__names:
            raise missing_name(f"the module {self.__name} of the library", name, self, self.__names)
        return library_function(self.__name, self.__names[name])

    def __dir__(self) -> list[str]:
        return [*self.__names]

    def __reduce__(self) -> tuple[Any, ...]:
        return library_functions, (self.__name,)

    def __repr__(self) -> str:
        return f"<library module {self.__name}>"


@cache
def library_functions(name: str) -> LibraryModule:
    """The functions of a module."""
    return LibraryModule(name)


@cache
def library_function(module: str, name: str) -> LibraryFunction:
    """The function of an operator."""
    return LibraryFunction(module, library_module(module)[name])
