"""What objects, classes and other packages say may change: the next call sees it."""

from __future__ import annotations

import abc
import builtins
import collections
import configparser
import copy
import dataclasses
import decimal
import enum
import functools
import io
import logging
import numbers
import os
import sys
import typing
import weakref
from collections.abc import Callable
from pathlib import Path
from string import Formatter
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tcdsl.runtime.calling.staleness import Staleness

Case = tuple[Callable[[], Any], Callable[[], Any]]


class Spoken:
    """Says its number, in texts alone."""

    def __init__(self, number: float) -> None:
        self.number = number

    def __str__(self) -> str:
        return str(self.number)

    def __repr__(self) -> str:
        return f"Spoken({self.number})"


@dataclasses.dataclass(unsafe_hash=True)
class Hashed:
    """May change, and is a key of dictionaries."""

    value: int = 2


class Plugin(abc.ABC):
    """A class for others to be registered with."""

    @abc.abstractmethod
    def run(self) -> None: ...


class Stored(Formatter):
    """A method of Python's library calls one of its methods."""

    word = "2.0"

    def get_value(self, key: Any, args: Any, kwargs: Any) -> Any:
        return self.word


class Empty:
    """A class without anything."""


def _on(make: Callable[[], Any], read: Callable[[Any], Any], change: Callable[[Any], Any]) -> Callable[[], Case]:
    def made() -> Case:
        value = make()
        return lambda: read(value), lambda: change(value)

    return made


def _said(read: Callable[[Any], str]) -> Callable[[], Case]:
    return _on(lambda: Spoken(2.0), lambda s: float(read(s)), lambda s: setattr(s, "number", 5.0))


def _class_with(**held: Any) -> type:
    return type("Made", (), held)


def _new() -> Any:
    return _class_with()()


def _settings() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read_dict({"model": {"rate": "2.0"}})
    return parser


@dataclasses.dataclass
class Fields:
    """Fields with defaults."""

    rate: float = 2.0


@dataclasses.dataclass(kw_only=True)
class Named:
    """Fields by keyword."""

    rate: float = 2.0


def _is_plugin(value: Any) -> float:
    match value:
        case Plugin():
            return 5.0
    return 2.0


@typing.runtime_checkable
class Flying(typing.Protocol):
    """What has a wing."""

    wing: int


class Level(enum.Enum):
    """Members with values."""

    LOW = 2.0


Tuple = collections.namedtuple("Tuple", "rate", defaults=(2.0,))


def _made_by(number: float) -> Callable[[], None]:
    def method(self: Any, rate: float = number) -> None:
        self.rate = rate

    return method


def _first_of(error: Exception) -> Any:
    return error.args[0]


def _layered() -> Any:
    # An object of another package, with objects in it.
    kind = type("Layers", (), {"__module__": "numpy"})
    layers, inner = kind(), kind()
    layers._parts = {"inner": inner, "all": [layers]}
    inner.rate = 2.0
    return layers


CASES: dict[str, Callable[[], Case]] = {
    "text by str": _said(str),
    "text by repr": _said(lambda s: repr([s])[8:-2]),
    "text in a text": _said(lambda s: f"{s}"),
    "text by percent": _said(lambda s: "%s" % s),  # noqa: UP031
    "text by map": _said(lambda s: "".join(map(str, [s]))),
    "text of a dataclass": _on(
        lambda: Fields(2.0), lambda p: float(repr(p).split("=")[1][:-1]), lambda p: setattr(p, "rate", 5.0)
    ),
    "hash of a dataclass": _on(Hashed, lambda h: float(hash(h) % 97), lambda h: setattr(h, "value", 3)),
    "key of a dictionary": _on(Hashed, lambda h: {Hashed(2): 2.0, Hashed(3): 5.0}[h], lambda h: setattr(h, "value", 3)),
    "section of settings": _on(
        _settings, lambda s: float(s["model"]["rate"]), lambda s: s["model"].__setitem__("rate", "5.0")
    ),
    "settings by method": _on(
        _settings, lambda s: s.getfloat("model", "rate"), lambda s: s.set("model", "rate", "5.0")
    ),
    "level of a logger": _on(
        lambda: logging.getLogger("tcdsl.objects.child"),
        lambda c: float(c.getEffectiveLevel()),
        lambda c: c.parent.setLevel(c.getEffectiveLevel() + 1),
    ),
    "weak set": _on(
        lambda: (kept := [Spoken(2.0)], weakref.WeakSet(kept)),
        lambda s: sum(each.number for each in s[1]),
        lambda s: (s[0].append(Spoken(5.0)), s[1].add(s[0][-1])),
    ),
    "object of another package": _on(
        _layered, lambda p: p._parts["inner"].__dict__["rate"], lambda p: setattr(p._parts["inner"], "rate", 5.0)
    ),
    "registered class": _on(
        _new,
        lambda o: 5.0 if isinstance(o, Plugin) else 2.0,
        lambda o: Plugin.register(type(o)),
    ),
    "registered class of a match": _on(_new, _is_plugin, lambda o: Plugin.register(type(o))),
    "registered number": _on(
        _new,
        lambda o: 5.0 if isinstance(o, numbers.Number) else 2.0,
        lambda o: numbers.Number.register(type(o)),
    ),
    "protocol": _on(Empty, lambda o: 5.0 if isinstance(o, Flying) else 2.0, lambda o: setattr(o, "wing", 1)),
    "method that makes a class callable": _on(
        _new,
        lambda o: 5.0 if callable(o) else 2.0,
        lambda o: setattr(type(o), "__call__", lambda self: 1),
    ),
    "method that gives a class a truth": _on(
        _new,
        lambda o: 5.0 if o else 2.0,
        lambda o: setattr(type(o), "__bool__", lambda self: False),
    ),
    "subclasses": _on(
        lambda: [type("Kind", (), {})],
        lambda k: 1.0 + len(k[0].__subclasses__()),
        lambda k: k.append(type("Other", (k[0],), {})),
    ),
    "default of a generated method": _on(
        lambda: Fields, lambda k: k().rate, lambda k: setattr(k.__init__, "__defaults__", (k().rate + 1,))
    ),
    "default by keyword of a generated method": _on(
        lambda: Named, lambda k: k().rate, lambda k: k.__init__.__kwdefaults__.update(rate=k().rate + 1)
    ),
    "generated method that is replaced": _on(
        lambda: Fields, lambda k: k().rate, lambda k: setattr(k, "__init__", _made_by(k().rate + 1))
    ),
    "default of a named tuple": _on(
        lambda: Tuple, lambda k: k().rate, lambda k: setattr(k.__new__, "__defaults__", (k().rate + 1,))
    ),
    "value of a member": _on(lambda: Level.LOW, lambda m: m.value, lambda m: setattr(m, "_value_", m.value + 1)),
    "name of a class": _on(_class_with, lambda k: float(len(k.__name__)), lambda k: setattr(k, "__name__", "another")),
    "text of a function": _on(
        lambda: _made_by(1.0), lambda f: float(len(f.__doc__ or "")), lambda f: setattr(f, "__doc__", "text")
    ),
    "attribute with underscores": _on(
        _class_with(__rate__=2.0), lambda o: o.__rate__, lambda o: setattr(type(o), "__rate__", 5.0)
    ),
    "hook of another package": _on(Stored, lambda s: float(s.format("{x}")), lambda s: setattr(s, "word", "5.0")),
    "copy by a method": _on(
        _class_with(__reduce__=lambda self: (float, (self.rate,)), rate=2.0),
        copy.copy,
        lambda o: setattr(o, "rate", 5.0),
    ),
    "arguments of a program": lambda: (lambda: float(len(sys.argv)), lambda: sys.argv.append("more")),
    "name beside the built-in ones": lambda: (
        lambda: number_of_all_modules,  # type: ignore[name-defined]
        lambda: setattr(builtins, "number_of_all_modules", 5.0),
    ),
    "digits of decimals": lambda: (
        lambda: float(decimal.Decimal(1) / 3),
        lambda: setattr(decimal.getcontext(), "prec", 5),
    ),
    "folder": lambda: (lambda: float(len(os.getcwd())), lambda: os.chdir("/")),
    "arguments of an exception": _on(lambda: ValueError(2.0), _first_of, lambda e: setattr(e, "args", (5.0,))),
    "cached function": _on(
        lambda: functools.lru_cache(lambda: CACHED[0]),
        lambda f: f(),
        lambda f: (f.cache_clear(), CACHED.insert(0, 5.0)),
    ),
}
CACHED = [2.0]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("error")
def test_the_next_call_sees_a_change(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(builtins, "number_of_all_modules", 2.0, raising=False)
    monkeypatch.setattr(sys, "argv", ["program"])
    monkeypatch.chdir(tmp_path)
    read, change = CASES[name]()

    @op
    def f(x: Any) -> Any:
        return x * read()

    x = np.array([1.0, 2.0])
    with decimal.localcontext():
        before = read()
        np.testing.assert_array_equal(f.interpret(x), x * before)
        np.testing.assert_array_equal(f.interpret(x), x * before)
        assert f.cache_info().misses == 1
        repeated = Staleness(f.staging.last_entry().readings)
        assert all(repeated.unchanged() for _ in range(3))
        change()
        assert read() != before
        assert not repeated.unchanged()
        np.testing.assert_array_equal(f.interpret(x), x * read())


def test_tables_of_xarray() -> None:
    xarray = pytest.importorskip("xarray")
    table = xarray.Dataset({"a": ("t", [2.0])}, attrs={"k": 1.0})

    @op
    def f(x: Any) -> Any:
        return x * float(table["a"][0]) * table.attrs["k"]

    x = np.ones(1)
    assert f.interpret(x) == 2.0
    table["a"][0] = 5.0
    assert f.interpret(x) == 5.0
    table.attrs["k"] = 3.0
    assert f.interpret(x) == 15.0


def test_configuration_whose_comparison_gives_no_truth() -> None:
    class Held:
        def __init__(self, rate: float) -> None:
            self.rate = np.full(2, rate)

        def __eq__(self, other: object) -> Any:
            return self.rate == other.rate  # type: ignore[attr-defined]

        def __hash__(self) -> int:
            return 1

    class Raising(Held):
        def __eq__(self, other: object) -> Any:
            raise RuntimeError("not to be compared")

        __hash__ = Held.__hash__

    @op
    def f(x: Any, *, c: Any) -> Any:
        return x * float((c[0] if isinstance(c, tuple) else c).rate[0])

    x = np.ones(1)
    for make in (Held, Raising, lambda rate: (Held(rate),), lambda rate: (Raising(rate),)):
        assert [float(f.interpret(x, c=make(rate))[0]) for rate in (2.0, 5.0, 2.0)] == [2.0, 5.0, 2.0]
        assert [float(f(x, c=make(rate))[0]) for rate in (2.0, 5.0, 2.0)] == [2.0, 5.0, 2.0]


def test_configuration_that_is_a_container_may_change() -> None:
    class Rates(list):  # type: ignore[type-arg]
        __hash__ = object.__hash__  # type: ignore[assignment]

    @op
    def f(x: Any, *, c: Any) -> Any:
        return x * c[0]

    rates = Rates([2.0])
    assert f.interpret(np.ones(1), c=rates) == 2.0
    rates[0] = 5.0
    assert f.interpret(np.ones(1), c=rates) == 5.0


def test_objects_that_cannot_be_asked_for_their_class_or_hash() -> None:
    class Closed:
        def __getattribute__(self, name: str) -> Any:
            if name.startswith("__"):
                raise RuntimeError(name)
            return 2.0

    class Unhashed:
        def __hash__(self) -> int:
            raise RuntimeError("no hash")

    closed = Closed()

    @op
    def f(x: Any) -> Any:
        return x * closed.rate

    @op
    def g(x: Any, *, c: Any) -> Any:
        return x * c.rate

    x = np.ones(1)
    for call in (lambda: f(x), lambda: tc.grad(lambda x: f(x).sum())(x)):
        with pytest.raises(
            tc.ConfigurationError, match="`closed` is a Closed, whose `__getattribute__` raises Runtime"
        ):
            call()
    with pytest.raises(tc.ConfigurationError, match=r"`c` is a Closed, whose .*\n(.*\n)*it should hand on such names"):
        g(x, c=closed)
    with pytest.raises(
        tc.ConfigurationError, match="a Unhashed cannot be hashed\nits `__hash__` raises RuntimeError: no"
    ):
        g(x, c=Unhashed())


@pytest.mark.filterwarnings("error")
def test_arrays_of_a_class_of_ones_own_have_cells_that_are_seen() -> None:
    class Metres(np.ndarray):
        pass

    lengths = np.ones(2).view(Metres)

    @op
    def f(x: Any) -> Any:
        return x * float(lengths.sum())

    for value in (1.0, 3.0):
        lengths[:] = value
        assert f.interpret(np.ones(1)) == 2 * value


class Feet(np.ndarray):
    pass


WIDTHS = np.ones(2).view(Feet)


@pytest.mark.filterwarnings("error")
def test_code_that_may_read_everything_reads_arrays_of_a_class_of_ones_own_once() -> None:
    @op
    def f(x: Any) -> Any:
        return x * float(globals()["WIDTHS"].sum())

    assert f.interpret(np.ones(1)) == 2


def _inner_rate(layers: Any) -> Any:
    return layers._parts["inner"].rate


def test_what_is_too_much_of_another_package_is_named_in_a_warning() -> None:
    layers = _layered()
    layers._tables = {"large": np.broadcast_to(np.zeros(()), (2000, 1000))}
    long = _layered()
    long._numbers = [0.0] * 2000

    @op
    def f(x: Any) -> Any:
        return x * _inner_rate(layers)

    @op
    def g(x: Any) -> Any:
        return x * _inner_rate(long)

    with pytest.warns(RuntimeWarning, match=r"`\w+\._tables\['large'\]` is a ndarray, whose state is read once"):
        f.interpret(np.ones(1))
    with pytest.warns(RuntimeWarning, match="`long` is a Layers, whose state is read once"):
        g.interpret(np.ones(1))


def test_state_of_c_code_is_named_in_a_warning() -> None:
    text = io.StringIO("2.0")
    holder = Spoken(2.0)
    holder.text = text  # type: ignore[attr-defined]

    @op
    def f(x: Any) -> Any:
        return x * float(text.getvalue())

    @op
    def g(x: Any) -> Any:
        return x * float(holder.text.getvalue())

    with pytest.warns(RuntimeWarning, match="`text` is a StringIO, whose state is read once"):
        f.interpret(np.ones(1))
    with pytest.warns(RuntimeWarning, match=r"`(holder|Spoken)\.text` is a StringIO, whose state is read once"):
        g.interpret(np.ones(1))


def test_names_that_come_and_go_in_classes_and_objects() -> None:
    class Base:
        rate = 2.0

    class Kind(Base):
        pass

    value: Any = Kind()
    value.other = 1
    setattr(value, "class", 1.0)
    changes: list[tuple[Callable[[], None], float]] = [
        (lambda: (delattr(value, "other"), setattr(value, "rate", 5.0))[1], 5.0),
        (lambda: (delattr(value, "rate"), setattr(value, "other", 1))[1], 2.0),
        (lambda: (setattr(Kind, "more", 1), delattr(Kind, "more"), setattr(Kind, "rate", 3.0))[2], 3.0),
        (lambda: delattr(Kind, "rate"), 2.0),
        (lambda: (delattr(Base, "rate"), setattr(Base, "rate", 7.0))[1], 7.0),
        (lambda: setattr(value, "class", 2.0), 14.0),
    ]

    def product() -> Any:
        return value.rate * getattr(value, "class")

    x = np.ones(1)
    for change, after in changes:

        @op
        def f(x: Any) -> Any:
            return x * product()

        f.interpret(x)
        repeated = Staleness(f.staging.last_entry().readings)
        assert all(repeated.unchanged() for _ in range(3))
        change()
        assert not repeated.unchanged()
        assert f.interpret(x) == after
