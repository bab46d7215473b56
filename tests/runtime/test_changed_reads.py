"""Reads that no name spells out, of what C code holds, dataclasses generate, and classes say: a change is seen."""

from __future__ import annotations

import contextvars
import ctypes
import dataclasses
import enum
import functools
import logging
import operator
import os
import pickle
import sys
import types
import weakref
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tcdsl.frontend.surroundings.code_names import EVERY, asked_by

FACTORY = [2.0]
NUMBER = 2.0
REACH = getattr


@dataclasses.dataclass(order=True)
class Pair:
    """What dataclasses generate reads all fields."""

    a: float
    b: float = 2.0
    made: list[float] = dataclasses.field(default_factory=lambda: [FACTORY[0]])


class Meta(type):
    """A class of classes."""

    number = 2.0

    def __len__(cls) -> int:
        return int(cls.number)

    def __getattr__(cls, name: str) -> Any:
        return cls.number


class Made(metaclass=Meta):
    """A class whose class says what it is."""


class One:
    """A class with a number."""

    number = 2.0

    def method(self) -> float:
        return 2.0


class Two:
    """A class with another."""

    number = 5.0

    def method(self) -> float:
        return 5.0


class Mapping(dict):  # type: ignore[type-arg]
    """Items as attributes, and `KeyError` for what is not there."""

    __getattr__ = dict.__getitem__


class Table:
    """Attributes that are kept elsewhere."""

    held: ClassVar[weakref.WeakKeyDictionary[Any, Any]] = weakref.WeakKeyDictionary()

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self.held[instance]

    def __set__(self, instance: Any, value: Any) -> None:
        self.held[instance] = value


class Holder:
    """An object with a slot, a descriptor, a computed attribute and methods of several kinds."""

    __slots__ = ("__dict__", "__weakref__", "slot")
    kept = Table()

    def __init__(self) -> None:
        self.slot, self.kept, self.items = 2.0, 2.0, [2.0]

    @functools.cached_property
    def computed(self) -> Any:
        return self.items[0]

    def times(self, a: float, b: float) -> Any:
        return a * b * self.items[0]

    once = functools.partialmethod(times, 1.0)

    @functools.singledispatchmethod
    def of(self, a: object) -> Any:
        return 0.0

    @of.register
    def _of_float(self, a: float) -> Any:
        return self.items[0]


class Letter(enum.Enum):
    """Members with attributes."""

    A = 1
    B = 2


class Point(ctypes.Structure):
    """Memory of C."""

    _fields_ = (("number", ctypes.c_double),)


Case = tuple[Callable[[], Any], Callable[[], Any]]


def _pairs(read: Callable[[Pair, Pair], Any]) -> Callable[[], Case]:
    def made() -> Case:
        one, two = Pair(1.0), Pair(1.0)
        return lambda: read(one, two), lambda: setattr(two, "b", 0.5)

    return made


def _items(held: Callable[[list[float]], Any], read: Callable[[Any], Any]) -> Callable[[], Case]:
    # What is made of a list beforehand, such as a bound method.
    def made() -> Case:
        items = [2.0]
        value = held(items)
        return lambda: read(value), lambda: items.insert(0, 5.0)

    return made


def _on(make: Callable[[], Any], read: Callable[[Any], Any], change: Callable[[Any], Any]) -> Callable[[], Case]:
    def made() -> Case:
        value = make()
        return lambda: read(value), lambda: change(value)

    return made


def _by_position(pair: Pair) -> Any:
    match pair:
        case Pair(_, b):
            return b
    return 0.0


def _by_class(value: Any) -> Any:
    match value:
        case One():
            return 2.0
    return 5.0


def _computed_anew(holder: Holder) -> None:
    holder.items[0] = 5.0
    del holder.computed


def _module_with(text: str) -> types.ModuleType:
    module = types.ModuleType("made_for_a_test")
    exec(text, module.__dict__)
    return module


def _dispatch(items: list[float]) -> Any:
    @functools.singledispatch
    def by_type(a: object) -> Any:
        return 0.0

    by_type.register(float, lambda a: items[0])
    return by_type


def _derived() -> Any:
    return type("Derived", (One,), {})()


def _masked() -> Any:
    return np.ma.array([1.0, 2.0, 3.0], mask=[0, 1, 0])


def _environment() -> dict[str, str]:
    os.environ["TCDSL_TEST_NUMBER"] = "2.0"
    return {}


def _variable() -> contextvars.ContextVar[float]:
    return contextvars.ContextVar("number", default=2.0)


def _text_of_slot() -> str:
    return "to ls"[::-1].replace(" ", "")


CASES: dict[str, Callable[[], Case]] = {
    "equality of a dataclass": _pairs(lambda p, q: 2.0 if p == q else 3.0),
    "membership of a dataclass": _pairs(lambda p, q: 2.0 if q in [p, p] else 3.0),
    "order of a dataclass": _pairs(lambda p, q: min([p, q]).b),
    "match by position": _pairs(lambda p, q: _by_position(q)),
    "factory of a field": _on(lambda: FACTORY, lambda f: Pair(1.0).made[0], lambda f: f.__setitem__(0, 5.0)),
    "match of a class": _on(One, _by_class, lambda o: setattr(o, "__class__", Two)),
    "isinstance": _on(One, lambda o: 2.0 if isinstance(o, One) else 3.0, lambda o: setattr(o, "__class__", Two)),
    "method of another class": _on(One, lambda o: o.method(), lambda o: setattr(o, "__class__", Two)),
    "another base": _on(_derived, lambda o: o.method(), lambda o: setattr(type(o), "__bases__", (Two,))),
    "class of classes": _on(lambda: Meta, lambda m: len(Made) * Made.any, lambda m: setattr(m, "number", 3.0)),
    "bound method of a list": _items(lambda items: items.index, lambda index: index(2.0)),
    "bound length": _items(lambda items: items.__len__, lambda length: length()),
    "bound item": _items(lambda items: {"at": items.__getitem__}, lambda held: held["at"](0)),
    "bound method of an array": _on(lambda: np.ones(2), lambda w: BOUND(w)(), lambda w: w.fill(3.0)),
    "vectorized": _items(lambda items: np.vectorize(lambda a: a * items[0]), lambda f: float(f(1.0))),
    "dispatched by type": _items(_dispatch, lambda f: f(1.0)),
    "dispatched method": _on(Holder, lambda h: h.of(1.0), lambda h: h.items.__setitem__(0, 5.0)),
    "partial method": _on(Holder, lambda h: h.once(1.0), lambda h: h.items.__setitem__(0, 5.0)),
    "descriptor": _on(Holder, lambda h: h.kept, lambda h: setattr(h, "kept", 5.0)),
    "slot by a built text": _on(Holder, lambda h: REACH(h, _text_of_slot()), lambda h: setattr(h, "slot", 5.0)),
    "computed while staging": _on(Holder, lambda h: h.computed, _computed_anew),
    "context variable": _on(_variable, lambda v: v.get(), lambda v: v.set(5.0)),
    "members": _on(
        lambda: setattr(Letter.B, "n", 2.0),
        lambda _: Letter.B.n + len(list(Letter)),
        lambda _: setattr(Letter.B, "n", 5.0),
    ),
    "structure of C": _on(lambda: Point(2.0), lambda p: p.number, lambda p: setattr(p, "number", 5.0)),
    "attribute of a module": _on(
        lambda: _module_with("T = [2.0]\ndef __getattr__(name): return T[0]"),
        lambda m: m.anything,
        lambda m: m.T.__setitem__(0, 5.0),
    ),
    "globals": _on(
        lambda: globals().update(NUMBER=2.0), lambda _: globals()["NUMBER"], lambda _: globals().update(NUMBER=5.0)
    ),
    "modules": _on(
        lambda: globals().update(NUMBER=2.0),
        lambda _: sys.modules[__name__].NUMBER,
        lambda _: globals().update(NUMBER=5.0),
    ),
    "environment": _on(
        _environment,
        lambda _: float(os.environ["TCDSL_TEST_NUMBER"]),
        lambda _: os.environ.update(TCDSL_TEST_NUMBER="5.0"),
    ),
    "items as attributes": _on(lambda: Mapping(k=2.0), lambda m: m.k, lambda m: m.__setitem__("k", 5.0)),
    "mask": _on(_masked, lambda m: float(m.sum()), lambda m: setattr(m, "mask", [1, 1, 0])),
    "attributes that are listed": _on(
        One, lambda o: 2.0 + sum(held for name, held in vars(o).items()), lambda o: setattr(o, "added", 5.0)
    ),
    "order of attributes": _on(
        lambda: types.SimpleNamespace(held=Pair(1.0)),
        lambda n: 2.0 + list(n.held.__dict__).index("a"),
        lambda n: [n.held.__dict__.update(a=n.held.__dict__.pop("a"))],
    ),
    "members of a class": _on(
        lambda: type("Listed", (One,), {}), lambda kind: len(dir(kind)) * 1.0, lambda kind: setattr(kind, "added", 5.0)
    ),
    "names in a module": _on(
        lambda: _module_with("T = 2.0"), lambda m: len(vars(m)) * 1.0, lambda m: setattr(m, "added", 5.0)
    ),
    "state for pickle": _on(One, lambda o: len(pickle.dumps(o)) * 1.0, lambda o: setattr(o, "added", 5.0)),
    "attribute by a name that is found": _on(
        One, lambda o: sum(getattr(o, name, 2.0) for name in NAMES), lambda o: setattr(o, NAMES[0], 5.0)
    ),
    "attribute by a text that is made": _on(
        One, lambda o: getattr(o, f"held_{NAMES[0]}", 2.0), lambda o: setattr(o, f"held_{NAMES[0]}", 5.0)
    ),
    "attribute in a format": _on(
        lambda: [setattr(one := One(), "tag", 2.0), one][1],
        lambda o: float("{0.tag}".format(o)),  # noqa: UP030, UP032
        lambda o: setattr(o, "tag", 5.0),
    ),
    "attribute without getattr": _on(
        Holder, lambda h: object.__getattribute__(h, _text_of_slot()), lambda h: setattr(h, "slot", 5.0)
    ),
    "method without a file": _on(
        lambda: _module_with(
            "class Layer:\n    held = [2.0]\n    def __call__(self): return self.held[0]\nlayer = Layer()"
        ),
        lambda m: m.layer(),
        lambda m: m.layer.held.__setitem__(0, 5.0),
    ),
    "method of a dataclass without a file": _on(
        lambda: _module_with(
            "import dataclasses\n__name__ = '__main__'\n@dataclasses.dataclass\nclass Layer:\n    held: float\n"
            "    def __post_init__(self): self.more = T[0]\n    def __call__(self): return self.held + self.more\n"
            "T = [1.0]\nlayer = Layer(1.0)"
        ),
        lambda m: m.layer() + m.Layer(0.0)(),
        lambda m: (setattr(m.layer, "held", 3.0), m.T.__setitem__(0, 5.0)),
    ),
    "kept getter": _on(Holder, lambda h: -GETTER(h), lambda h: setattr(h, "slot", 5.0)),
}
NAMES = ["one or other"]
BOUND = operator.attrgetter("sum")
GETTER = operator.attrgetter("slot")


@pytest.mark.parametrize("name", CASES)
def test_the_next_call_sees_a_change(name: str) -> None:
    read, change = CASES[name]()

    @op
    def f(x: Any) -> Any:
        return x * read()

    gradient = tc.grad(lambda x: (x * read()).sum())
    x = np.arange(1.0, 4.0)
    before = read()
    for _ in range(2):
        np.testing.assert_allclose(f.interpret(x), x * before)
    gradient(x)
    change()
    after = read()
    assert after != before
    np.testing.assert_allclose(f.interpret(x), x * after)
    np.testing.assert_allclose(gradient(x), np.full(3, after))
    # What has not changed stages nothing.
    misses = f.cache_info().misses
    f.interpret(x)
    assert f.cache_info().misses == misses


def test_names_that_code_computes() -> None:
    known = [
        lambda o: getattr(o, "k", o["z"] + 1),
        lambda o: getattr(getattr(o.x["a"].f(1, 2), "a"), "b"),  # noqa: B009
        lambda o: hasattr(o, "k") and o(o, 2, 3),
    ]
    computed = [
        lambda o: getattr(o["x"], o.name),
        lambda o: getattr(o, "k" + o.name, 1.0),
        lambda o: getattr(o, "k" if o else "j"),
        lambda o: getattr(o, "k%d" % o.number),  # noqa: UP031
        lambda o: map(getattr, o, ["k"]),
        lambda o: getattr(*o),
    ]
    assert [EVERY in asked_by(each.__code__)[0] for each in known] == [False] * len(known)
    assert [EVERY in asked_by(each.__code__)[0] for each in computed] == [True] * len(computed)


def test_labels_of_series() -> None:
    pandas = pytest.importorskip("pandas")
    series = pandas.Series([1.0, 2.0], index=["a", "b"], name="s")

    @op
    def f(x: Any) -> Any:
        return x * (2.0 if "a" in series else 3.0) * (1.0 if series.name == "s" else 2.0)

    np.testing.assert_array_equal(f.interpret(np.ones(1)), [2.0])
    series.index = ["c", "d"]
    np.testing.assert_array_equal(f.interpret(np.ones(1)), [3.0])
    series.name = "t"
    np.testing.assert_array_equal(f.interpret(np.ones(1)), [6.0])


def test_configuration_that_computes_attributes() -> None:
    class Configuration:
        def __init__(self, number: float) -> None:
            self.number = np.full(2, number)

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Configuration) and bool((self.number == other.number).all())

        def __hash__(self) -> int:
            return 1

        @functools.cached_property
        def total(self) -> Any:
            return self.number.sum()

    @op
    def f(x: Any, *, configuration: Any) -> Any:
        return x * configuration.total

    for number in (1.0, 2.0, 1.0):
        np.testing.assert_array_equal(f.interpret(np.ones(1), configuration=Configuration(number)), [2 * number])
    assert f.cache_info().misses == 2


def test_what_objects_of_libraries_keep_for_themselves_stages_nothing() -> None:
    logger = logging.getLogger("tcdsl.test")
    logger.disabled = True

    @op
    def f(x: Any) -> Any:
        logger.debug("staged")
        return x * 2

    f.interpret(np.ones(1))
    logger.isEnabledFor(logging.INFO)
    logger.disabled = False
    logger.info("what it has found out is kept in a dictionary")
    logger.disabled = True
    f.interpret(np.ones(1))
    assert f.cache_info().misses == 1
