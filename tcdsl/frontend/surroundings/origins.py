"""Whose a class, a module or an object is: the user's own, another package's, or C code's."""

from __future__ import annotations

import logging
import sys
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType, ModuleType, WrapperDescriptorType
from typing import Any

import numpy as np

from tcdsl.frontend.surroundings.containers import is_array, is_container
from tcdsl.frontend.surroundings.named_values import is_installed
from tcdsl.frontend.surroundings.plain_values import PLAIN
from tcdsl.frontend.surroundings.readings import attribute

__all__ = [
    "SPECIAL_METHODS",
    "calls_methods",
    "function_of",
    "is_for_effects",
    "is_generated",
    "is_users",
    "is_users_module",
    "keeps_state",
    "may_be_read",
]

#: Objects of Python's library that stand in a web of others, and for effects.
_FOR_EFFECTS = frozenset(
    ("asyncio", "concurrent", "io", "logging", "multiprocessing", "socket", "subprocess", "threading")
)
#: By these methods of C code the state of an object changes.
_CHANGING = (
    "__next__", "__setitem__", "add", "append", "clear_flags", "execute", "feed", "push", "put", "seek",
    "send", "set", "update", "write", "writerow",
)  # fmt: skip
_OF_C = (MethodDescriptorType, WrapperDescriptorType)
#: Methods that run where no code names them, if a class has them.
SPECIAL_METHODS = frozenset(
    name for kind in (int, float, list, dict, str) for name, each in vars(kind).items() if isinstance(each, _OF_C)
) | {"__bool__", "__call__", "__enter__", "__getattr__", "__getattribute__", "__missing__", "__index__", "__array__"}


def may_be_read(value: Any) -> bool:
    """Whether methods of another package may read this of their object."""
    kind = type(value)
    if kind in PLAIN or is_array(value) or isinstance(value, FunctionType) or is_container(value):
        return True
    is_object = not isinstance(value, type | ModuleType) and isinstance(attribute(value, "__dict__"), dict)
    return isinstance(value, logging.Logger) or (is_object and not is_for_effects(value))


def is_for_effects(value: Any) -> bool:
    """Whether an object of Python's library stands in a web of others, and for effects."""
    return type(value).__module__.partition(".")[0] in _FOR_EFFECTS


def is_generated(name: str, function: FunctionType, kind: type) -> bool:
    """Whether a dataclass or a named tuple has generated a method; what the user wrote may have no file either."""
    if function.__code__.co_filename != "<string>":
        return False
    options = vars(kind).get("__dataclass_params__")
    if options is None:
        return name == "__new__" and "_fields" in vars(kind)
    return name in _OF_DATACLASSES or (name == "__init__" and bool(options.init))


_OF_DATACLASSES = frozenset(
    ("__eq__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__", "__repr__", "__setattr__", "__delattr__")
)


def keeps_state(value: Any) -> bool:
    """Whether an object has state in C code, where nobody sees it."""
    kind = type(value)
    if isinstance(value, np.ufunc):
        return set(value.types) == {f"{'O' * value.nin}->{'O' * value.nout}"}  # of `np.frompyfunc`
    methods = [vars(base).get(name) for base in kind.__mro__ for name in _CHANGING]
    is_seen = is_array(value) or isinstance(value, BuiltinFunctionType | np.generic)
    return not is_seen and any(isinstance(each, _OF_C) for each in methods)


def is_users(kind: type) -> bool:
    """Whether a class is the user's own."""
    module = sys.modules.get(kind.__module__)
    return kind.__module__ == "__main__" or (module is None or is_users_module(module))


def function_of(value: Any) -> FunctionType | None:
    """The function of the user's that an attribute of a class runs."""
    if isinstance(value, FunctionType) and is_installed(value.__code__.co_filename):
        value = vars(value).get("__wrapped__")  # as dataclasses have it
    for inner in ("fget", "func", "__func__", "__wrapped__"):
        if not isinstance(value, FunctionType | type) and inner in dir(type(value)):
            value = attribute(value, inner)
    if isinstance(value, FunctionType) and not is_installed(value.__code__.co_filename):
        return value
    return None


def calls_methods(kind: type) -> bool:
    """Whether a class of another package may call any method of its subclasses."""
    return not is_users(kind) and kind.__module__ not in _CALLING_NONE and any(map(_is_method, vars(kind).values()))


def _is_method(value: Any) -> bool:
    return isinstance(value, FunctionType)


_CALLING_NONE = frozenset(("abc", "builtins", "collections.abc", "enum", "typing"))


def is_users_module(module: Any) -> bool:
    """Whether a module is the user's own."""
    if not isinstance(module, ModuleType):
        return False
    if module.__name__ == "__main__":
        return True
    if module.__name__.partition(".")[0] in sys.stdlib_module_names | {"numpy", "tcdsl"}:
        return False
    file = vars(module).get("__file__")
    return file is None or not is_installed(file)
