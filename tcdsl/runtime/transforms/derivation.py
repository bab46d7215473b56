"""What is derived from functions, and where functions keep their derivatives.

The function itself keeps its derivatives: equal derivatives of one function are one object::

    for x in data:
        loss, slope = tc.value_and_grad(f)(x)      # staged once

What is kept ends with the function: derivatives belong to it and know it, and nothing else holds them.
"""

from __future__ import annotations

import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from types import MethodType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar
from weakref import ref

import numpy as np

from tcdsl.errors import ConfigurationError, DifferentiationError
from tcdsl.runtime.calling.arguments import Signature
from tcdsl.runtime.function import DecoratedFunction

if TYPE_CHECKING:
    from tcdsl.runtime.calling.entries import Traced

__all__ = ["Argnums", "Derivation", "chosen_positions", "kept", "name_of", "require_values", "signature_of"]

Argnums = int | tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Derivation(ABC):
    """What is to be derived from a function, by its arguments ``argnums``.

    ``title`` is the word for it in the names of programs: ``grad``.
    """

    argnums: Argnums

    title: ClassVar[str]
    #: Whether it needs what loops have computed, after they have run.
    tapes: ClassVar[bool] = False
    #: So many first axes of what it is by are not seen by the function.
    axes: ClassVar[int] = 0

    def positions(self, function: str, count: int) -> tuple[int, ...]:
        """The arguments to differentiate by, of the ``count`` positional ones that ``function`` has."""
        return chosen_positions(self.argnums, function, count)

    @abstractmethod
    def derive(self, traced: Traced, wrt: Sequence[str], function: str) -> Traced:
        """The derivative of a traced function by the inputs ``wrt`` of its program."""


def name_of(function: Any) -> str:
    """What a function is called in messages."""
    if isinstance(function, functools.partial):
        return name_of(function.func)
    return str(getattr(function, "__name__", type(function).__name__))


def signature_of(function: Any) -> Signature:
    """How a function takes its arguments."""
    known = getattr(function, "signature", None)
    if isinstance(known, Signature):
        return known
    if isinstance(function, np.ufunc):
        return Signature(lambda *x: None, name_of(function))  # the parameters that it says it has are not all arrays
    if isinstance(function, functools.partial):
        return Signature(_without_bound_arrays(function), name_of(function))
    return Signature(function, name_of(function))


def _without_bound_arrays(function: functools.partial[Any]) -> inspect.Signature:
    # `partial(f, w=a)` of `f(x, w)`: Python calls w keyword-only from there on, but what is bound is no configuration.
    # A partial function of one that has attributes, as those that have derivatives, keeps it as it is.
    known, keywords = inspect.signature(function), set[str]()
    inner: Any = function
    while isinstance(inner, functools.partial):
        keywords.update(inner.keywords)
        inner = inner.func
    taken = inspect.signature(inner).parameters
    bound = {name for name in keywords if name in taken and taken[name].kind is not inspect.Parameter.KEYWORD_ONLY}
    return known.replace(parameters=[each for each in known.parameters.values() if each.name not in bound])


def require_values(derivative: str, function: Any) -> None:
    """Raise unless ``function`` computes values, which have derivatives."""
    if not callable(function):
        raise ConfigurationError.at(
            f"tc.{derivative} takes a function, not an object of type {type(function).__name__}",
            hint=f"write tc.{derivative}(f, ...) with an @op or a Python function of ops",
        )
    if isinstance(function, DecoratedFunction) and function.in_place:
        raise DifferentiationError.at(
            f"`{function.__name__}` is a @cd function: it changes memory and has no gradient",
            hint="write an @op that returns the new values",
        )


def chosen_positions(argnums: int | Sequence[int], function: str, count: int) -> tuple[int, ...]:
    """``argnums`` counted from 0. `DifferentiationError` for an argument that there is not, or that is named twice."""
    found: list[int] = []
    for position in (argnums,) if isinstance(argnums, int) else argnums:
        if not -count <= position < count:
            raise DifferentiationError.at(
                f"argnums names argument {position}, but {function}() has {count} positional arguments",
                hint=f"count from 0 to {count - 1}" if count else "give it an argument to differentiate by",
            )
        if position % count in found:
            raise DifferentiationError.at(
                f"argnums names argument {position % count} of {function}() twice",
                hint="name each argument once",
                notes=(f"argnums={argnums}",),
            )
        found.append(position % count)
    return tuple(found)


_NAME = "__tcdsl_derivatives__"

T = TypeVar("T")


def kept(function: Any, key: Hashable, make: Callable[[], T]) -> T:
    """``make()``, or what it gave before for this ``function`` and an equal ``key``.

    Objects that cannot be referenced weakly or have no attributes, as NumPy's functions, keep nothing.
    """
    # Methods are made anew whenever they are asked for: their instance keeps what belongs to them.
    owner = function.__self__ if isinstance(function, MethodType) else function
    try:
        attributes = vars(owner)
        found = attributes.get(_NAME)
        if not isinstance(found, _Derivatives) or found.owner() is not owner:
            found = attributes[_NAME] = _Derivatives(owner)
    except TypeError:
        return make()
    place = (function.__func__, key) if isinstance(function, MethodType) else (None, key)
    made: T | None = found.get(place)
    return found.setdefault(place, make()) if made is None else made


class _Derivatives(dict[tuple[Any, Hashable], Any]):
    """What is kept. To copies of ``owner``, and to what took over its attributes, it means nothing."""

    def __init__(self, owner: Any) -> None:
        super().__init__()
        self.owner: Callable[[], Any] = ref(owner)

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, ()
