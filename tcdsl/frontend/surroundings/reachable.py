"""Everything that staging can have read from around a function: what its names, and all code behind them, lead to.

::

    Surroundings(function, definition, own).read(receiver, configuration)     # of a decorated function
    called_readings(configuration, given=function)                            # of a plain one

From the names of a function (`tcdsl.frontend.surroundings.named_values`) paths lead to values. A container leads to
what it holds, a function to what it names, an object to the methods of its class, and to those of its attributes whose
names occur in any code that has been reached. So too much may be compared, and nothing is missed but what no name leads
to. Nothing is run. Functions of Python's library and of installed packages are not looked into. What C code keeps to
itself, as iterators do, is read once, of which the user is warned.
"""

from __future__ import annotations

import ast
import dis
import functools
import importlib.util
import operator
import os
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import EnumMeta
from types import BuiltinFunctionType, CodeType, FunctionType, MappingProxyType, MemberDescriptorType, ModuleType
from typing import Any

import numpy as np

from tcdsl.frontend.surroundings.containers import Item, base_of, is_array, is_container, parts_of
from tcdsl.frontend.surroundings.impure_calls import warn_once
from tcdsl.frontend.surroundings.named_values import Path, chains, is_installed, named_paths, spelled, users_function
from tcdsl.frontend.surroundings.plain_values import PLAIN, same_plain
from tcdsl.frontend.surroundings.readings import MISSING, AbsentNames, Instance, Reading, attribute, snapshot
from tcdsl.indices import IndexLetter
from tcdsl.span import Span

__all__ = ["Surroundings", "called_readings"]


class Surroundings:
    """The globals, closure values and attributes that a decorated function names: `read` them at staging, ask later."""

    def __init__(self, function: FunctionType, definition: ast.FunctionDef, own: frozenset[str]) -> None:
        self._function = function
        parameters = [*definition.args.posonlyargs, *definition.args.args]
        receiver = parameters[0].arg if parameters else ""
        every = named_paths(definition)
        self._outer = tuple(path for path in every if path[0] not in own)
        self._attributes = tuple(path for path in every if path[0] == receiver)

    def read(self, receiver: Any, configuration: Mapping[str, Any]) -> tuple[Reading, ...]:
        """The readings as of now, those of all that is reached included, from ``configuration`` too.

        ``receiver`` is the instance whose method the function is.
        """

        def begin(reached: _Reached) -> None:
            reached.function(self._function, self._outer)
            if receiver is not None:
                for path in self._attributes:
                    reached.path(path, Instance(receiver))
            reached.given(configuration)

        return _readings(begin)


def called_readings(configuration: Mapping[str, Any], given: Any = None) -> tuple[Reading, ...]:
    """What ``configuration``, and the functions in it, lead to.

    The function ``given`` is looked into wherever it comes from, but for objects of this package: what these run says
    itself what it reads.
    """

    def begin(reached: _Reached) -> None:
        reached.given(configuration)
        function, receiver = users_function(given)
        if function is not None and not type(receiver).__module__.startswith("tcdsl."):
            reached.function(function)
        if isinstance(given, functools.partial):
            reached.bound(given)
        if receiver is not None:
            reached.visit(receiver, ("self",), Instance(receiver))
        elif function is None and given is not None:
            reached.visit(given, ("function",), Instance(given))

    return _readings(begin)


def _readings(begin: Callable[[_Reached], None]) -> tuple[Reading, ...]:
    names: frozenset[str] = frozenset()
    while True:
        reached = _Reached(names)
        begin(reached)
        reached.follow()
        if reached.names <= names:
            return tuple(reached.readings.values())
        names = names | reached.names


#: Functions by which code reaches attributes that it does not name.
_BY_ANY_NAME = frozenset(("vars", "dir", "eval", "exec", "attrgetter", "asdict", "astuple", "fields", "__dict__"))
_BY_A_NAME = frozenset(("getattr", "hasattr"))
_REACHING = (getattr, hasattr, vars, dir, eval, exec)
#: Functions by which code reaches the names of a module.
_BY_MODULE = frozenset(("globals", "modules", "import_module", "__import__"))
_ENVIRONMENT = frozenset(("environ", "environb", "getenv"))
#: What stands for all code that compares objects, which runs what their classes say of that, or takes them apart.
_COMPARING = "=="
_BY_COMPARING = frozenset(("index", "count", "remove", "sorted", "sort", "min", "max", "eq", "ne", "lt", "le", "gt"))
_GENERATED = frozenset(("__eq__", "__lt__", "__le__", "__gt__", "__ge__"))
_EVERY = "*"
_IN_MAKING = frozenset(("__init__", "__new__", "__post_init__"))
# Of objects that are there already, nothing runs these.
_NEVER = frozenset(
    ("__del__", "__repr__", "__str__", "__reduce__", "__reduce_ex__", "__setattr__", "__init_subclass__")
)
_OF_ARRAYS = frozenset(("shape", "size", "ndim", "dtype", "itemsize", "nbytes"))
_STOP = object()


class _Reached:
    """What is reached, where attributes with these names are followed; ``names`` are those that were met."""

    def __init__(self, followed: frozenset[str]) -> None:
        self._followed = followed
        self.names: set[str] = set()
        self.readings: dict[tuple[Any, ...], Reading] = {}
        # By id, and kept alive.
        self._known: dict[int, Any] = {}
        self._classes: set[tuple[type, bool]] = set()
        self._waiting: list[tuple[Any, Path, Any, tuple[int, ...]]] = []
        self._span: Span | None = None

    def path(self, steps: Path, root: Any) -> None:
        """What a path leads to, as far as its steps only look up what is there."""
        value = Reading(steps[:1], root).current()
        if isinstance(value, IndexLetter):
            return
        taken = 1
        for step in steps[1:]:
            following = _following(value, step)
            if following is _STOP:
                break
            value = following
            taken += 1
        self._add(steps[:taken], root, value)

    def given(self, configuration: Mapping[str, Any]) -> None:
        """What values that are given lead to, by the names of parameters."""
        for name, value in configuration.items():
            if isinstance(value, functools.partial):
                self.bound(value)
            self.visit(value, (name,), Instance(value))

    def bound(self, function: functools.partial[Any]) -> None:
        """What a partial function holds."""
        for name in ("args", "keywords"):
            self._add(("function", name), Instance(function), getattr(function, name))

    def visit(self, value: Any, names: Path, root: Any) -> None:
        """What a value leads to, which ``names`` have led to."""
        self._waiting.append((value, names, root, ()))

    def follow(self) -> None:
        """Go on until nothing waits."""
        while self._waiting:
            self._visit(*self._waiting.pop())

    def _add(self, names: Path, root: Any, value: Any) -> None:
        if self._keep(Reading(names, root, snapshot(value))):
            self.visit(value, names, root)

    def _keep(self, reading: Reading) -> bool:
        return self.readings.setdefault(reading.key, reading) is reading

    def _visit(self, value: Any, names: Path, root: Any, around: tuple[int, ...]) -> None:
        kind = type(value)
        if kind in PLAIN or value is MISSING or isinstance(value, IndexLetter):
            return
        if is_array(value):
            if len(names) > 1 or not isinstance(root, Instance):
                self._keep(Reading(names, root, value))
            if _is_users(kind) and not self._is_known(value):
                self._instance(value, names)
        elif any(value is each for each in _REACHING):
            self.names.add(_EVERY)
        elif is_container(value):
            if id(value) not in around:
                self._container(value, names, root, (*around, id(value)))
        elif isinstance(value, ModuleType):
            self._module(value)
        elif not self._is_known(value):
            if isinstance(value, FunctionType):
                if not is_installed(value.__code__.co_filename):
                    self.function(value)
                else:
                    self._installed_function(value, names, root)
            elif isinstance(value, type):
                self._class(value, is_made=True)
            elif not kind.__module__.startswith("tcdsl."):
                self._instance(value, names)

    def _is_known(self, value: Any) -> bool:
        if id(value) in self._known:
            return True
        self._known[id(value)] = value
        return False

    def _container(self, value: Any, names: Path, root: Any, around: tuple[int, ...]) -> None:
        parts = parts_of(value)
        for item in parts.structure:
            if type(item) not in PLAIN:
                self._waiting.append((item, ("key",), Instance(item), around))
        for position, item in enumerate(parts.items):
            if type(item) in PLAIN:
                continue
            if position < len(parts.steps):
                self._waiting.append((item, (*names, parts.steps[position]), root, around))
            else:
                self._waiting.append((item, ("item",), Instance(item), around))
        if _is_users(type(value)):
            self._class(type(value))

    # -- code ------------------------------------------------------------------------------------------------

    def function(self, function: FunctionType, paths: Iterable[Path] | None = None) -> None:
        """What a function leads to. What it names around itself are its ``paths``, if these are known already."""
        self._known[id(function)] = function
        code = function.__code__
        name = function.__name__
        self._span = Span(code.co_filename, code.co_firstlineno, 0, code.co_firstlineno, 0)
        if paths is None:
            # A module that is loaded anew may give the same function other code.
            self._add((name, "__code__"), Instance(function), code)
        for kept in ("__defaults__", "__kwdefaults__"):
            if getattr(function, kept):
                self._add((name, kept), Instance(function), getattr(function, kept))
        found, imported = _names_of(code)
        self.names |= found
        for module, level in imported:
            self._imported(module, level, function.__globals__)
        cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        found_paths = paths
        if found_paths is None:
            found_paths = dict.fromkeys(
                chain.names for chain in chains(code) if not chain.local or chain.names[0] in cells
            )
        for path in found_paths:
            self.path(path, cells.get(str(path[0]), function.__globals__))
        if found & _BY_MODULE:
            self._module(sys.modules.get(function.__module__))
        if found & _ENVIRONMENT:
            self._add(("environ", "_data"), Instance(os.environ), vars(os.environ)["_data"])
        for each in self._present(vars(function)):
            self._add((name, each), Instance(function), vars(function)[each])
        if paths is None:
            self._keep(Reading((name,), Instance(function), AbsentNames(self._followed - vars(function).keys())))

    def _installed_function(self, function: FunctionType, names: Path, root: Any) -> None:
        # Such as one that a decorator has made, of which the user's functions are in it.
        for each in (vars(function).get("__wrapped__"), *(cell.cell_contents for cell in function.__closure__ or ())):
            if isinstance(each, FunctionType):
                self.visit(each, names, Instance(each))
        registry = vars(function).get("registry")  # of `functools.singledispatch`
        if registry is not None:
            self._add((function.__name__, "registry"), Instance(function), registry)

    def _imported(self, module: str, level: int, namespace: dict[str, Any]) -> None:
        try:
            title = importlib.util.resolve_name("." * level + module, namespace.get("__package__"))
        except ImportError:
            return
        loaded = sys.modules.get(title, MISSING)
        if loaded is MISSING or _is_users_module(loaded):
            self._add((title,), sys.modules, loaded)

    def _module(self, module: ModuleType | None) -> None:
        if module is not None and _is_users_module(module) and not self._is_known(module):
            for name in (*self._present(vars(module)), "__getattr__"):
                if name in vars(module):
                    self._add((name,), vars(module), vars(module)[name])

    # -- objects ---------------------------------------------------------------------------------------------

    def _instance(self, value: Any, names: Path) -> None:
        kind = type(value)
        if not _is_users(kind) and isinstance(attribute(value, "__wrapped__"), FunctionType):
            self.visit(value.__wrapped__, names, Instance(value))  # of `functools.lru_cache`
        if kind in _NAMING:
            self.names |= {part for text in _texts(value.__reduce__()[1]) for part in text.split(".")}
        label = next((step for step in names[::-1] if isinstance(step, str)), "object")
        held = attribute(value, "__dict__")
        if isinstance(held, dict):
            for name in self._present(held, others=not _is_users(kind)):
                if not _is_data_descriptor(_of_class(kind, name)):
                    self._add((label, name), Instance(value), held[name])
            self._keep(Reading((label,), Instance(value), AbsentNames(self._followed - held.keys())))
        if (not isinstance(held, dict) or kind is np.ufunc) and not _is_users(kind) and kind is not BuiltinFunctionType:
            self._warn(value, names)
        members = [each for base in kind.__mro__ for each in vars(base).items()]
        slots = {name for name, each in members if isinstance(each, MemberDescriptorType)}
        for name in slots if _EVERY in self._followed else slots & self._followed:
            self._add((label, name), Instance(value), attribute(value, name))
        if _is_users(kind):
            self._keep(Reading((label, "__class__"), Instance(value), kind))
        self._class(kind)

    def _class(self, kind: type, is_made: bool = False) -> None:
        if isinstance(kind, EnumMeta) and _is_users(kind):
            for name in kind.__members__:
                self.visit(kind[name], (name,), Instance(kind[name]))
        if _is_users(type(kind)):
            self._class(type(kind))
        for each in filter(_is_users, kind.__mro__):
            if (each, is_made) in self._classes:
                continue
            self._classes.add((each, is_made))
            self._keep(Reading((each.__name__, "__mro__"), Instance(each), snapshot(each.__mro__)))
            if "__match_args__" in self._followed:
                self.names.update(vars(each).get("__match_args__", ()))
            for name, value in list(vars(each).items()):
                special = name.startswith("__") and name.endswith("__")
                wanted = name not in _NEVER and (is_made or name not in _IN_MAKING) if special else self._wants(name)
                function = _function_of(value)
                if wanted and (function is not None or not special):
                    if function is not None and function.__code__.co_filename == "<string>":
                        self._generated(name, function)
                        continue
                    # As it stands there: asked of the class, some attributes are made anew each time.
                    self._add((name,), _dictionary(each), value)
                    if function is not None and not self._is_known(function):
                        self.function(function)
            absent = frozenset(self._followed - vars(each).keys())
            self._keep(Reading((each.__name__,), Instance(each), AbsentNames(absent)))

    def _generated(self, name: str, function: FunctionType) -> None:
        # What dataclasses generate reads all fields, where it runs.
        if name == "__init__":
            for each in function.__closure__ or ():
                self.visit(Reading((name,), each).current(), (name,), each)  # the factories
        elif name in _GENERATED and _COMPARING in self._followed:
            self.function(function)

    def _wants(self, name: str) -> bool:
        return name in self._followed or _EVERY in self._followed

    def _present(self, held: dict[str, Any], others: bool = False) -> list[str]:
        # Of what no code of the user's knows, numbers and arrays may be what its methods read.
        names = [name for name in held if isinstance(name, str) and not name.startswith("__tcdsl_")]
        return [name for name in names if self._wants(name) or (others and _may_be_read(held[name]))]

    def _warn(self, value: Any, names: Path) -> None:
        kind = type(value)
        is_made = isinstance(value, np.ufunc) and set(value.types) == {f"{'O' * value.nin}->{'O' * value.nout}"}
        if not (hasattr(kind, "__next__") or hasattr(kind, "__setitem__") or is_made) or self._span is None:
            return
        text = spelled(names)
        fact = f"`{text}` is a {kind.__name__}, whose state is read once, when the function is staged"
        warn_once(text, fact, self._span, "keep what it gives in a list or an array, or pass it as an argument")


#: What names attributes in its own state.
_NAMING = (operator.attrgetter, operator.methodcaller)


def _may_be_read(value: Any) -> bool:
    return type(value) in PLAIN or is_array(value) or isinstance(value, FunctionType)


def _following(value: Any, step: str | Item) -> Any:
    # What a step leads to where it looks up what is there; `_STOP` where it runs code, or makes something anew.
    kind = type(value)
    if isinstance(step, Item):
        base = base_of(kind)
        plain = base in (dict, list, tuple) and getattr(kind, "__getitem__", None) is base.__getitem__
        return step.of(value, _STOP) if plain else _STOP
    if value is MISSING or kind in PLAIN or is_container(value) or kind.__module__.startswith("tcdsl."):
        return _STOP
    if is_array(value):
        return attribute(value, step) if step in _OF_ARRAYS else _STOP
    if isinstance(value, ModuleType):
        return attribute(value, step) if _is_users_module(value) else _STOP
    if isinstance(value, type):
        found = _of_class(value, step)
        return _STOP if found is MISSING or _function_of(found) is not None else attribute(value, step)
    held = attribute(value, "__dict__")
    found = _of_class(kind, step)
    if isinstance(held, dict | MappingProxyType) and step in held and not _is_data_descriptor(found):
        return held[step]
    if isinstance(found, MemberDescriptorType):
        return attribute(value, step)
    if found is MISSING and not _is_users(kind) and not hasattr(kind, "__getattr__"):
        return MISSING
    if _is_users(kind) and (found is MISSING or hasattr(found, "__get__")):
        return _STOP
    one, other = attribute(value, step), attribute(value, step)
    return one if one is other or same_plain(one, other) or (is_array(one) and is_array(other)) else _STOP


_DICTIONARIES: weakref.WeakKeyDictionary[type, MappingProxyType[str, Any]] = weakref.WeakKeyDictionary()


def _dictionary(kind: type) -> MappingProxyType[str, Any]:
    try:
        return _DICTIONARIES.setdefault(kind, vars(kind))
    except TypeError:  # of a class of classes that cannot be hashed
        return vars(kind)


def _of_class(kind: type, name: str) -> Any:
    return next((vars(each)[name] for each in kind.__mro__ if name in vars(each)), MISSING)


def _is_data_descriptor(found: Any) -> bool:
    return found is not MISSING and (hasattr(type(found), "__set__") or isinstance(found, property))


def _function_of(value: Any) -> FunctionType | None:
    # The function of the user's that an attribute of a class runs.
    for inner in ("fget", "func", "__func__", "__wrapped__"):
        if not isinstance(value, FunctionType | type) and inner in dir(type(value)):
            value = attribute(value, inner)
    if isinstance(value, FunctionType) and not is_installed(value.__code__.co_filename):
        return value
    return None


def _is_users(kind: type) -> bool:
    module = sys.modules.get(kind.__module__)
    return kind.__module__ == "__main__" or (module is None or _is_users_module(module))


def _is_users_module(module: Any) -> bool:
    if not isinstance(module, ModuleType):
        return False
    if module.__name__ == "__main__":
        return True
    if module.__name__.partition(".")[0] in sys.stdlib_module_names | {"numpy", "tcdsl"}:
        return False
    file = vars(module).get("__file__")
    return file is None or not is_installed(file)


@functools.lru_cache(maxsize=1024)
def _names_of(code: CodeType) -> tuple[frozenset[str], tuple[tuple[str, int], ...]]:
    # The names by which code may reach attributes, also as texts, and the modules that it imports.
    names = {*code.co_names}
    imported: list[tuple[str, int]] = []
    asked = False
    numbers: list[Any] = [0, 0]
    for instruction in dis.get_instructions(code):
        kind = instruction.opname
        if kind.startswith("LOAD_") and instruction.argval in _BY_A_NAME:
            asked = True
        elif kind == "LOAD_CONST":
            numbers = [numbers[-1], instruction.argval]
            asked = asked and not isinstance(instruction.argval, str)
        elif kind in ("COMPARE_OP", "CONTAINS_OP"):
            names.add(_COMPARING)
        elif kind == "MATCH_CLASS":
            names |= {"__match_args__", _COMPARING}
        elif kind == "IMPORT_NAME":
            imported.append((str(instruction.argval), numbers[0] if type(numbers[0]) is int else 0))
        elif kind.startswith("CALL") and asked:
            names.add(_EVERY)
    if names & _BY_ANY_NAME:
        names.add(_EVERY)
    if names & _BY_COMPARING:
        names.add(_COMPARING)
    for constant in _texts(code.co_consts):
        names.add(constant)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            found, modules = _names_of(inner)
            names |= found
            imported.extend(modules)
    return frozenset(names), tuple(imported)


def _texts(constants: Iterable[Any]) -> Iterator[str]:
    for constant in constants:
        if isinstance(constant, str) and constant.isidentifier():
            yield constant
        elif isinstance(constant, tuple):
            yield from _texts(constant)
