"""The arguments of a call: arrays and numbers for the program, configuration for the key."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence, ValuesView
from dataclasses import dataclass
from typing import Any

import numpy as np

from tcdsl.errors import ConfigurationError, DtypeError
from tcdsl.frontend.staging.given_arrays import element_type, given_array, instead_of
from tcdsl.frontend.surroundings.plain_values import exact

__all__ = ["Argument", "Call", "Signature", "hashable", "is_graph_tensor", "tensor_argument"]

_NUMBER_DTYPES = {bool: "bool", int: "int64", float: "float64"}


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of the program: ``array`` as NumPy sees it; ``weak`` is ``float``, ``int`` or ``bool`` for Python
    numbers.

    ``place`` says where the staged function takes it: a position, or a keyword.
    """

    label: str
    place: int | str
    array: np.ndarray
    dtype: str
    weak: str | None
    given: Any

    @property
    def is_integer(self) -> bool:
        """Whether it was given as a number, Python's or NumPy's, that can be a term of an index."""
        return isinstance(self.given, int | np.integer | np.bool_) and int(self.given) < 2**63


@dataclass(frozen=True, slots=True)
class Call:
    """A call, taken apart. ``key`` is what a staged program depends on: types, ranks and configuration."""

    arguments: tuple[Argument, ...]
    configuration: Mapping[str, Any]
    positions: int
    key: tuple[Any, ...]

    def at(self, place: int | str) -> Argument:
        """The argument that the staged function takes at ``place``."""
        return next(each for each in self.arguments if each.place == place)


class Signature:
    """How a decorated function takes its arguments: positional ones are tensors, keyword-only ones configuration."""

    def __init__(self, function: Callable[..., Any] | inspect.Signature, name: str) -> None:
        self.name = name
        try:
            known = function if isinstance(function, inspect.Signature) else inspect.signature(function)
        except (TypeError, ValueError):
            known = None
        self._signature: inspect.Signature | None = known
        kinds = () if self._signature is None else self._signature.parameters.values()
        #: Whether a parameter is called ``out``, which is then no buffer of a call.
        self.declares_out = any(p.name == "out" for p in kinds)
        self.keyword_only = frozenset(p.name for p in kinds if p.kind is p.KEYWORD_ONLY)
        self._keywords = next((p.name for p in kinds if p.kind is p.VAR_KEYWORD), None)
        self._simple = self._signature is not None and all(
            p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) for p in kinds
        )
        # By position, the names that calls may use, and the defaults; None for a parameter that has a position only.
        self._named = [
            (p.name if p.kind is p.POSITIONAL_OR_KEYWORD else None, p.default)
            for p in kinds
            if p.kind < p.VAR_POSITIONAL
        ]
        self._names = tuple(p.name for p in kinds if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD))
        self._required = frozenset(p.name for p in kinds if p.kind < p.VAR_POSITIONAL and p.default is p.empty)
        #: So many may be given by position.
        self.most_positional = len(self._named)
        #: Whether calls without keywords may leave out an array.
        self.has_arrays = any(isinstance(default, np.ndarray) for _, default in self._named)

    def placed(self, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The same call with what is given by name in its place, and arrays that are defaults, behind the others."""
        found: list[Any] = []
        rest, known = keywords, 0
        for name, default in self._named[len(arguments) :]:
            if name in keywords:
                rest = {each: value for each, value in rest.items() if each != name}
                found.append(keywords[name])
                known = len(found)
            elif default is not inspect.Parameter.empty:
                found.append(default)
                known = len(found) if isinstance(default, np.ndarray) else known
            else:
                break
        return (*arguments, *found[:known]), rest

    @staticmethod
    def of_operands(operands: Iterable[str], name: str) -> Signature:
        """That of an operation: ``operands`` by position alone."""
        kind = inspect.Parameter.POSITIONAL_ONLY
        return Signature(inspect.Signature([inspect.Parameter(operand, kind) for operand in operands]), name)

    @property
    def shown(self) -> str:
        """The parameters, in parentheses, as the definition has them."""
        return "(...)" if self._signature is None else str(self._signature)

    @property
    def required_positional(self) -> int:
        """How many positional arguments have no default."""
        return len(self._required)

    @property
    def takes_any_keyword(self) -> bool:
        """Whether there is a ``**keywords`` parameter."""
        return self._keywords is not None

    @property
    def positional_count(self) -> int | None:
        """How many positional arguments there are; None if that is open."""
        kinds = () if self._signature is None else self._signature.parameters.values()
        if self._signature is None or any(p.kind is p.VAR_POSITIONAL for p in kinds):
            return None
        return len(self._names)

    def split(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[list[tuple[str, Any]], dict[str, Any]]:
        """The positional arguments with their names, defaults filled in, and the configuration.

        `ConfigurationError`, which is a ``TypeError`` as Python's own, for arguments that do not fit.
        """
        if self._simple and len(args) == len(self._names) and kwargs.keys() == self.keyword_only:
            return list(zip(self._names, args, strict=True)), dict(kwargs)
        if self._signature is None:
            return [(f"x{k}", value) for k, value in enumerate(args)], dict(kwargs)
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            hint = f"it is `{self.name}{self._signature}`: what follows the `*` is passed by keyword"
            if not self.keyword_only:
                hint = f"it is `{self.name}{self._signature}`"
            raise ConfigurationError.at(f"{self.name}(): {error}", hint=hint) from None
        bound.apply_defaults()
        positional: list[tuple[str, Any]] = []
        configuration: dict[str, Any] = {}
        for name, value in bound.arguments.items():
            kind = self._signature.parameters[name].kind
            if kind is inspect.Parameter.VAR_POSITIONAL:
                positional.extend((f"{name}_{k}", item) for k, item in enumerate(value))
            elif kind is inspect.Parameter.VAR_KEYWORD:
                configuration.update(value)
            elif kind is inspect.Parameter.KEYWORD_ONLY:
                configuration[name] = value
            else:
                positional.append((name, value))
        return positional, configuration

    def call(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Call:
        """Take a call with concrete arguments apart; `DtypeError` and `ConfigurationError` say which one is wrong."""
        positional, given = self.split(args, kwargs)
        # `def sgd(p, g, velocity=None, rate=0.1)`: an array that may be left out is None while staging.
        arguments = [
            tensor_argument(self.name, name, position, value)
            for position, (name, value) in enumerate(positional)
            if not (value is None and name not in self._required)
        ]
        configuration: dict[str, Any] = {}
        for name, value in given.items():
            # A float, or an int that staging may not need, is a run-time number: a learning rate schedule compiles
            # once.
            if type(value) in (int, float) or issubclass(type(value), np.floating):
                arguments.append(_number(name, name, value))
            else:
                configuration[name] = hashable(self.name, name, value)
        key = (
            tuple((a.place, a.dtype, a.array.ndim, a.weak, a.is_integer) for a in arguments),
            tuple((name, exact(value)) for name, value in sorted(configuration.items())),
        )
        return Call(tuple(arguments), configuration, len(positional), key)


def hashable(function: str, name: str, value: Any) -> Any:
    """``value`` as configuration; `ConfigurationError` if it cannot be hashed."""
    kind = type(value).__name__
    fact = f"{function}(): the keyword argument `{name}` is configuration, but a {kind} cannot be hashed"
    try:
        hash(value)
    except TypeError:
        if hasattr(value, "__array__"):
            hint = "arrays are positional arguments: move it in front of the `*`"
        else:
            hint = "use a hashable value (a tuple for a list, a frozen dataclass for a dict)"
        raise ConfigurationError.at(fact, hint=hint) from None
    except Exception as error:  # of the user's own `__hash__`
        hint = f"its `__hash__` raises {type(error).__name__}: {error}"
        raise ConfigurationError.at(fact, hint=hint) from error
    return value


def _number(name: str, place: int | str, value: Any) -> Argument:
    kind = bool if isinstance(value, bool) else int if isinstance(value, int) else float
    dtype = _NUMBER_DTYPES[kind]
    if kind is int and not -(2**63) <= value < 2**63:
        if not 0 < value < 2**64:
            raise DtypeError.at(f"`{name}` = {value} does not fit into 64 bits", hint="use a float")
        dtype = "uint64"
    return Argument(name, place, np.asarray(value, dtype), dtype, kind.__name__, value)


def tensor_argument(function: str, name: str, position: int, value: Any) -> Argument:
    """A positional argument as an array or a weak number.

    NumPy arrays and scalars are taken as they are, Python numbers are weak, and what has ``__dlpack__`` (on the CPU) or
    ``__array__`` is read without a copy where it allows that.
    """
    if isinstance(value, bool | int | float) and not isinstance(value, np.generic):
        return _number(name, position, value)
    context = f"{function}(): "
    found = value if type(value) is np.ndarray else _of_graph(value, name, context)
    array = given_array(found, name, context)
    if array is None:
        kind = type(value).__name__
        hint = instead_of(value, name) or "configuration is passed by keyword, after a `*`"
        parts = value.values() if isinstance(value, dict) else value
        if isinstance(parts, list | tuple | ValuesView) and any(map(is_graph_tensor, parts)):
            hint = (
                f"call it for each of them, `[{function}(each) for each in {name}]`; "
                "`tc.train.update(params, code)` does it for code"
            )
        fact = f"{context}`{name}` is a {kind}, but positional arguments are arrays and numbers"
        raise DtypeError.at(fact, hint=hint)
    return Argument(name, position, array, element_type(array), None, value)


def is_graph_tensor(value: Any) -> bool:
    """Whether ``value`` is a tensor of a graph."""
    return type(value) is not np.ndarray and isinstance(value, _class("graph_tensors", "GraphTensor"))


def _of_graph(value: Any, name: str, context: str) -> Any:
    # The value of a tensor of a graph; anything else as it is.
    if is_graph_tensor(value):
        return np.asarray(value)
    if isinstance(value, _class("operators", "ArithmeticOperators")):
        raise DtypeError.at(f"{context}`{name}` is a symbolic value outside of its function")
    return value


def _class(module: str, name: str) -> Any:
    # Nothing is of a class whose module has not been imported. To import it here would not be safe: see `COMPILING`.
    return getattr(sys.modules.get(f"{_SYMBOLS}{module}"), name, ())


_SYMBOLS = "tcdsl.frontend.symbols."
