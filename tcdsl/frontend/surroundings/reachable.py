"""Everything that staging can have read from around a function: what its names, and all code behind them, lead to.

::

    Surroundings(function, definition, own).read(receiver, configuration)     # of a decorated function
    called_readings(configuration, given=function)                            # of a plain one

From the names of a function (`tcdsl.frontend.surroundings.named_values`) paths lead to values. A container leads to
what it holds, a function to what it names, an object to the methods of its class, and to those of its attributes whose
names occur in any code that has been reached. So too much may be compared, and nothing is missed but what no name leads
to. Nothing is run. Functions of Python's library and of installed packages are not looked into: of their objects all
attributes count, and objects in these. What C code keeps to itself, as iterators do, is read once, of which the user is
warned.
"""

from __future__ import annotations

import ast
import builtins
import functools
import importlib.util
import logging
import math
import operator
import os
import sys
import weakref
from abc import ABCMeta
from collections.abc import Callable, Iterable, Mapping
from enum import EnumMeta
from types import (
    BuiltinFunctionType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    ModuleType,
)
from typing import Any

from tcdsl.errors import ConfigurationError
from tcdsl.frontend.surroundings.ambient import AMBIENT, Ambient
from tcdsl.frontend.surroundings.class_relations import Registered, Subclasses, names_asked_by_kind
from tcdsl.frontend.surroundings.code_names import (
    BY_MODULE,
    COMPARING,
    ENVIRONMENT,
    EVERY,
    KINDS,
    TEXT,
    asked_by,
    identifiers,
    marked_by,
)
from tcdsl.frontend.surroundings.containers import Item, base_of, is_array, is_container, parts_of
from tcdsl.frontend.surroundings.impure_calls import warn_once
from tcdsl.frontend.surroundings.named_values import (
    Path,
    chains,
    is_installed,
    is_of_numba,
    named_paths,
    spelled,
    users_function,
)
from tcdsl.frontend.surroundings.origins import (
    SPECIAL_METHODS,
    calls_methods,
    function_of,
    is_for_effects,
    is_generated,
    is_users,
    is_users_module,
    keeps_state,
    may_be_read,
)
from tcdsl.frontend.surroundings.plain_values import PLAIN, same_plain
from tcdsl.frontend.surroundings.readings import (
    MISSING,
    AbsentNames,
    Inside,
    Instance,
    PresentNames,
    Reading,
    attribute,
    snapshot,
)
from tcdsl.indices import ImportedLetter
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
    foreign: dict[int, Any] = {}
    while True:
        reached = _Reached(names, foreign)
        begin(reached)
        reached.follow()
        found = reached.names - names
        if not found:
            return tuple(reached.readings.values())
        # All attributes are followed at last, when it is known which objects are named.
        names |= found - {EVERY} or found


#: The methods that run where an object is made, a class is made of it, or a text; all others with underscores may run.
_IN_MAKING = frozenset(("__init__", "__new__", "__post_init__"))
_IN_TEXTS = frozenset(("__repr__", "__str__"))
_NEVER = frozenset(("__del__",))
#: Generated methods of dataclasses read all fields, where they run.
_GENERATED = {
    **dict.fromkeys(("__eq__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__"), COMPARING),
    "__repr__": TEXT,
}
#: Of objects of other packages so many are looked into, and so long containers in them.
_MOST_OBJECTS = 200
_LONGEST = 1000
_MOST_CELLS = 1_000_000
_OF_ARRAYS = frozenset(("shape", "size", "ndim", "dtype", "itemsize", "nbytes"))
_STOP = object()


class _Reached:
    """What is reached, where attributes with these names are followed; ``names`` are those that were met.

    ``foreign`` are objects of other packages that names lead to, by id.
    """

    def __init__(self, followed: frozenset[str], foreign: dict[int, Any]) -> None:
        self._followed = followed
        self.names: set[str] = set()
        self.readings: dict[tuple[Any, ...], Reading] = {}
        # By id, and kept alive.
        self._known: dict[int, Any] = {}
        self._classes: set[tuple[type, bool]] = set()
        self._waiting: list[tuple[Any, Path, Any, tuple[int, ...]]] = []
        self._span: Span | None = None
        self._foreign = foreign
        self._cells = 0

    def path(self, steps: Path, root: Any) -> None:
        """What a path leads to, as far as its steps only look up what is there."""
        value = Reading(steps[:1], root).current()
        if self._asked(value, steps[:1]) is ImportedLetter:
            return
        if value is MISSING and type(vars(builtins).get(str(steps[0]), len)) not in _OF_BUILTINS:
            root, value = vars(builtins), vars(builtins)[str(steps[0])]
        taken, found = 1, value
        for number, step in enumerate(steps[1:], 2):
            value = _following(value, step)
            if value is _STOP:
                break
            if not isinstance(value, ModuleType) or is_users_module(value):
                taken, found = number, value
        self._add(steps[:taken], root, found)

    def given(self, configuration: Mapping[str, Any]) -> None:
        """What values that are given lead to, by the names of parameters."""
        for name, value in configuration.items():
            if issubclass(self._asked(value, (name,)), functools.partial):
                self.bound(value)
            if is_container(value):
                self._keep(Reading((name,), Instance(value), snapshot(value)))
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
        if kind in PLAIN or value is MISSING or self._asked(value, names) is ImportedLetter:
            return
        if is_array(value):
            self._array(value, names, root)
        elif kind in _OF_BUILTINS and vars(builtins).get(str(attribute(value, "__name__"))) is value:
            # Under whatever name: it does what code that names it does.
            name = str(attribute(value, "__name__"))
            self.names |= {name, *marked_by((name,))}
            self.names |= {EVERY} if value in (getattr, hasattr) else set()
        elif is_container(value):
            if id(value) not in around:
                self._container(value, names, root, (*around, id(value)))
        elif isinstance(value, ModuleType):
            self._module(value)
            self._list(value, names[-1])
        elif not self._is_known(value):
            if isinstance(value, FunctionType):
                if not is_installed(value.__code__.co_filename):
                    self.function(value)
                else:
                    self._installed_function(value, names)
            elif isinstance(value, type):
                self._class(value, is_made=True)
            elif not kind.__module__.startswith("tcdsl.") and not is_of_numba(value):
                self._instance(value, names, root)

    def _asked(self, value: Any, names: Path) -> type:
        # The class that a value says it has; all else that asks for it comes later.
        try:
            return value.__class__  # type: ignore[no-any-return]
        except Exception as error:
            what = f"`{spelled(names)}` is a {type(value).__name__}"
            fact = f"{what}, whose `__getattribute__` raises {type(error).__name__} for `__class__`"
            hint = "it should hand on such names: `return object.__getattribute__(self, name)`"
            raise ConfigurationError.at(fact, self._span, hint) from error

    def _array(self, value: Any, names: Path, root: Any) -> None:
        if isinstance(root, Inside) and not self._is_small(value):
            self._warn_of_state(value, names)
        elif len(names) > 1 or not isinstance(root, Instance):
            self._keep(Reading(names, root, value))
        if is_users(type(value)) and not self._is_known(value):
            self._instance(value, names, root)

    def _is_small(self, array: Any) -> bool:
        # So that the cells of all such arrays can be compared at each call.
        shape = attribute(array, "shape")
        self._cells += math.prod(shape) if isinstance(shape, tuple) else 1
        return self._cells <= _MOST_CELLS

    def _is_known(self, value: Any) -> bool:
        if id(value) in self._known:
            return True
        self._known[id(value)] = value
        return False

    def _container(self, value: Any, names: Path, root: Any, around: tuple[int, ...]) -> None:
        parts = parts_of(value)
        of = Inside if isinstance(root, Inside) else Instance
        for item in parts.structure:
            if type(item) not in PLAIN:
                self._waiting.append((item, ("key",), of(item), around))
        for position, item in enumerate(parts.items):
            if type(item) in PLAIN:
                continue
            if position < len(parts.steps):
                self._waiting.append((item, (*names, parts.steps[position]), root, around))
            else:
                holder = names[:-1] if isinstance(value, BuiltinFunctionType) and len(names) > 1 else names
                self._waiting.append((item, (spelled(holder),), of(item), around))
        if is_users(type(value)):
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
        found, imported = asked_by(code)
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
        if found & BY_MODULE:
            self._module(sys.modules.get(function.__module__))
            for text in found & sys.modules.keys():
                self._imported(text, 0, function.__globals__)
        if found & ENVIRONMENT:
            self._add(("environ", "_data"), Instance(os.environ), vars(os.environ)["_data"])
        for asking, state in AMBIENT.items():
            if asking in found:
                self._keep(Reading((asking,), Instance(state), Ambient(state)))
        for each in self._present(vars(function)):
            self._add((name, each), Instance(function), vars(function)[each])
        self._described(function, name)
        if paths is None:
            self._keep(Reading((name,), Instance(function), AbsentNames(self._followed - vars(function).keys())))
            self._list(function, name)

    def _installed_function(self, function: FunctionType, names: Path) -> None:
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
        if loaded is MISSING or is_users_module(loaded):
            self._add((title,), sys.modules, loaded)

    def _module(self, module: ModuleType | None) -> None:
        if module is not None and is_users_module(module) and not self._is_known(module):
            for name in (*self._present(vars(module)), "__getattr__"):
                if name in vars(module):
                    self._add((name,), vars(module), vars(module)[name])

    # -- objects ---------------------------------------------------------------------------------------------

    def _instance(self, value: Any, names: Path, root: Any) -> None:
        kind = type(value)
        is_own = is_users(kind)
        if not is_own and isinstance(attribute(value, "__wrapped__"), FunctionType):
            self.visit(value.__wrapped__, names, Instance(value))  # of `functools.lru_cache`
        if kind in _NAMING:
            self.names |= {part for text in identifiers(value.__reduce__()[1]) for part in text.split(".")}
        label = next((step for step in names[::-1] if isinstance(step, str)), "object")
        held = attribute(value, "__dict__")
        if isinstance(held, dict):
            for name in self._present(held) if is_own else [each for each in held if each in self._followed]:
                if not _is_data_descriptor(_of_class(kind, name)):
                    self._add((label, name), Instance(value), held[name])
            self._keep(Reading((label,), Instance(value), AbsentNames(self._followed - held.keys())))
            self._list(value, label)
            if not is_own:
                self._others_in(held, value, names, label)
        self._described(value, label)
        if keeps_state(value) and not isinstance(root, Inside):
            self._warn_of_state(value, names)
        if is_own:
            self._keep(Reading((label, "__class__"), Instance(value), kind))
        self._class(kind)

    def _others_in(self, held: dict[str, Any], value: Any, names: Path, label: str) -> None:
        # Of what no code of the user's knows, all may be what its methods read.
        if EVERY not in self._followed:
            self._foreign[id(value)] = value
        is_named = id(value) in self._foreign and not is_for_effects(value)
        for name, inside in held.items():
            if name.startswith("__tcdsl_") or not may_be_read(inside):
                continue
            if (
                type(inside) not in PLAIN
                and not isinstance(inside, FunctionType | logging.Logger)
                and not is_array(inside)
            ):
                is_long = is_container(inside) and len(parts_of(inside).items) > _LONGEST
                if is_named and (is_long or len(self._foreign) > _MOST_OBJECTS):
                    self._warn_of_state(value, names)
                elif is_named:
                    self._add((label, name), Inside(value), inside)
            else:
                self._add((label, name), Inside(value), inside)

    def _described(self, value: Any, label: str) -> None:
        # What descriptors of C code give: slots, the name of a class, the arguments of an exception.
        kind = type(value)
        every = EVERY in self._followed and is_users(kind)
        for name, descriptor in [each for base in kind.__mro__ for each in vars(base).items()]:
            if (name in self._followed or (every and not _is_special(name))) and name not in _MADE_ANEW:
                is_slot = isinstance(descriptor, MemberDescriptorType)
                found = attribute(value, name)
                if is_array(value) and is_array(found):
                    continue  # `x.T` of an array of a class of one's own is a new one each time, which has a `T` again
                if is_slot or (
                    isinstance(descriptor, GetSetDescriptorType) and _is_lasting(found, attribute(value, name))
                ):
                    self._add((label, name), Instance(value), found)

    def _class(self, kind: type, is_made: bool = False) -> None:
        if isinstance(kind, EnumMeta) and is_users(kind):
            self.names.add("_value_")
            for name in kind.__members__:
                self.visit(kind[name], (name,), Instance(kind[name]))
        if is_made:
            self._relations(kind)
        if is_users(type(kind)):
            self._class(type(kind))
        # A base of another package may call any method.
        is_called = any(map(calls_methods, kind.__mro__))
        for each in filter(is_users, kind.__mro__):
            if (each, is_made) in self._classes:
                continue
            self._classes.add((each, is_made))
            self._keep(Reading((each.__name__, "__mro__"), Instance(each), snapshot(each.__mro__)))
            self._described(each, each.__name__)
            if "__match_args__" in self._followed:
                self.names.update(vars(each).get("__match_args__", ()))
            for name, value in list(vars(each).items()):
                function = function_of(value)
                if self._is_read(name, function, is_made) or (is_called and function is not None):
                    if function is not None and is_generated(name, function, each):
                        self._generated(name, function, each)
                        continue
                    # As it stands there: asked of the class, some attributes are made anew each time.
                    self._add((name,), _dictionary(each), value)
                    if function is not None and not self._is_known(function):
                        self.function(function)
            absent = frozenset((self._followed | SPECIAL_METHODS) - vars(each).keys())
            self._keep(Reading((each.__name__,), Instance(each), AbsentNames(absent)))
            self._list(each, each.__name__)

    def _list(self, value: Any, label: str | Item) -> None:
        # All names of attributes, if code may list them, or ask for one that only it knows.
        if EVERY in self._followed and (is_users_module(value) or not isinstance(value, ModuleType)):
            self._keep(Reading((label,), Instance(value), PresentNames(value)))

    def _relations(self, kind: type) -> None:
        if "__subclasses__" in self._followed:
            self._keep(Reading((kind.__name__,), Instance(kind), Subclasses(kind)))
        if isinstance(kind, ABCMeta) and self._followed & KINDS:
            self.names |= names_asked_by_kind(kind)
            self._keep(Reading((kind.__name__,), Instance(kind), Registered(kind)))

    def _is_read(self, name: str, function: FunctionType | None, is_made: bool) -> bool:
        # Of a class. A method with underscores may run where no code names it.
        if not _is_special(name):
            return self._wants(name)
        if function is None:
            return name in self._followed
        if name in _IN_MAKING:
            return is_made
        return TEXT in self._followed if name in _IN_TEXTS else name not in _NEVER

    def _generated(self, name: str, function: FunctionType, kind: type) -> None:
        # What dataclasses and named tuples generate reads all fields, where it runs.
        is_hashed = "__hash__" in vars(kind) and not getattr(attribute(kind, "__dataclass_params__"), "frozen", True)
        if name in _IN_MAKING:
            self._keep(Reading((name,), _dictionary(kind), function))
            for each in function.__closure__ or ():
                self.visit(Reading((name,), each).current(), (name,), each)  # the factories
            for kept in ("__defaults__", "__kwdefaults__"):
                self._add((name, kept), Instance(function), getattr(function, kept))
        elif _GENERATED.get(name) in self._followed or (name in ("__hash__", "__eq__") and is_hashed):
            self._keep(Reading((name,), _dictionary(kind), function))
            self.function(function)

    def _wants(self, name: str) -> bool:
        return name in self._followed or EVERY in self._followed

    def _present(self, held: dict[str, Any]) -> list[str]:
        return [
            name for name in held if isinstance(name, str) and not name.startswith("__tcdsl_") and self._wants(name)
        ]

    def _warn_of_state(self, value: Any, names: Path) -> None:
        # Of what is named. Nobody knows whether the code asks for all the rest.
        if self._span is not None and EVERY not in self._followed:
            text = spelled(names)
            fact = f"`{text}` is a {type(value).__name__}, whose state is read once, when the function is staged"
            warn_once(text, fact, self._span, "keep what it gives in a list or an array, or pass it as an argument")


#: What names attributes in its own state.
_NAMING = (operator.attrgetter, operator.methodcaller)
#: What each access makes anew, or what every object has.
_MADE_ANEW = frozenset(("__dict__", "__weakref__", "__class__", "__globals__", "__closure__", "__code__"))


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
        found = attribute(value, step)
        return found if is_users_module(value) or _is_setting(value, found) else _STOP
    if isinstance(value, type):
        found = _of_class(value, step)
        return _STOP if found is MISSING or function_of(found) is not None else attribute(value, step)
    held = attribute(value, "__dict__")
    found = _of_class(kind, step)
    if isinstance(held, dict | MappingProxyType) and step in held and not _is_data_descriptor(found):
        return held[step]
    if isinstance(found, MemberDescriptorType):
        return attribute(value, step)
    if found is MISSING and not is_users(kind) and not hasattr(kind, "__getattr__"):
        return MISSING
    if is_users(kind) and (found is MISSING or hasattr(found, "__get__")):
        return _STOP
    one, other = attribute(value, step), attribute(value, step)
    return one if _is_lasting(one, other) else _STOP


def _is_setting(module: ModuleType, value: Any) -> bool:
    # What an installed module holds and may change, such as `sys.argv`; not its functions, or the constants of `math`.
    if isinstance(value, ModuleType | ABCMeta):
        return True
    return module.__name__ not in _OF_CONSTANTS and (type(value) in PLAIN or is_container(value))


_OF_CONSTANTS = frozenset(("cmath", "math", "numpy", "tcdsl"))
_OF_BUILTINS = (BuiltinFunctionType, type)


def _is_lasting(one: Any, other: Any) -> bool:
    # Of what two accesses give: whether a third one gives the same.
    return one is other or same_plain(one, other) or (is_array(one) and is_array(other))


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


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")
