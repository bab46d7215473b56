"""Whatever a program was staged with may change: the next call sees it."""

from __future__ import annotations

import array
import collections
import contextvars
import dataclasses
import functools
import math
import operator
import sys
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tcdsl.runtime.calling.staleness import Staleness


class Layer:
    """Something with numbers."""

    def __init__(self, rate: Any) -> None:
        self.rate = rate


class Slotted:
    """The same without a dictionary."""

    __slots__ = ("rate",)

    def __init__(self, rate: Any) -> None:
        self.rate = rate


class Net:
    """Layers by attribute, in a list, and by name."""

    shared = 2.0

    def __init__(self) -> None:
        self.first = Layer(2.0)
        self.layers = [Layer(2.0), Layer(3.0)]
        self.scale = {"a": 2.0}
        self.weights = [2.0, 3.0]

    def __getitem__(self, key: Any) -> Any:
        return self.weights[key]

    def __len__(self) -> int:
        return len(self.weights)

    def __contains__(self, key: Any) -> bool:
        return key in self.scale

    def __iter__(self) -> Iterator[Any]:
        return iter(self.weights)

    def __call__(self, x: Any) -> Any:
        return x * self.first.rate

    @property
    def total(self) -> Any:
        return sum(self.weights)

    @functools.cached_property
    def kept(self) -> Any:
        return self.scale["a"]

    @classmethod
    def of_class(cls) -> Any:
        return cls.shared

    @op
    def by_attribute(self, x: Any) -> Any:
        return x * self.first.rate

    @op
    def by_rounds(self, x: Any) -> Any:
        for layer in self.layers:
            x = x * layer.rate
        return x


class Numbers(list):  # type: ignore[type-arg]
    """A list of one's own."""


class Named(dict):  # type: ignore[type-arg]
    """A dictionary of one's own."""


def _setting(holder: Any, name: str, value: Any) -> Callable[[], None]:
    return lambda: setattr(holder, name, value)


def _items(holder: Any, key: Any, value: Any) -> Callable[[], None]:
    return lambda: holder.__setitem__(key, value)


Case = tuple[Callable[[Any], Any], Callable[[], Any], Callable[[], Any]]


def _case(read: Callable[[], Any], change: Callable[[], Any]) -> Case:
    @op
    def f(x: Any) -> Any:
        return x * read()

    return f, change, read


def _on_net(read: Callable[[Net], Any], change: Callable[[Net], Any]) -> Case:
    net = Net()
    return _case(lambda: read(net), lambda: change(net))


def _on(value: Any, read: Callable[[Any], Any], change: Callable[[Any], Any]) -> Case:
    return _case(lambda: read(value), lambda: change(value))


def _replaced_layers(net: Net) -> None:
    net.layers[0] = Layer(7.0)


CASES: dict[str, Callable[[], Case]] = {
    "attribute of an attribute": lambda: _on_net(lambda n: n.first.rate, lambda n: setattr(n, "first", Layer(5.0))),
    "attribute in place": lambda: _on_net(lambda n: n.first.rate, lambda n: setattr(n.first, "rate", 5.0)),
    "item that is another object": lambda: _on_net(lambda n: n.layers[0].rate, _replaced_layers),
    "rounds over objects": lambda: _on_net(lambda n: sum(each.rate for each in n.layers), _replaced_layers),
    "append": lambda: _on_net(lambda n: math.prod(n.weights), lambda n: n.weights.append(4.0)),
    "another list": lambda: _on_net(lambda n: math.prod(n.weights), lambda n: setattr(n, "weights", [1.5])),
    "dictionary": lambda: _on_net(lambda n: n.scale["a"], lambda n: n.scale.update(a=8.0)),
    "own item": lambda: _on_net(lambda n: n[0], lambda n: n.weights.__setitem__(0, 9.0)),
    "own length": lambda: _on_net(len, lambda n: n.weights.append(0.0)),
    "own membership": lambda: _on_net(lambda n: 3.0 if "b" in n else 2.0, lambda n: n.scale.update(b=0.0)),
    "own iteration": lambda: _on_net(max, lambda n: n.weights.append(10.0)),
    "own call": lambda: _on_net(lambda n: n(1.0), lambda n: setattr(n.first, "rate", 9.0)),
    "property": lambda: _on_net(lambda n: n.total, lambda n: n.weights.append(5.0)),
    "class method": lambda: _on_net(lambda n: n.of_class(), lambda n: setattr(type(n), "shared", type(n).shared + 1)),
    "shadowed class attribute": lambda: _on_net(lambda n: n.shared, lambda n: setattr(n, "shared", 77.0)),
    "attribute by text": lambda: _on_net(lambda n: getattr(n, "bias", 1.0), lambda n: setattr(n, "bias", 3.0)),
    "attribute by built text": lambda: _on_net(
        lambda n: getattr(n.first, "ra" + "te"), lambda n: setattr(n.first, "rate", 3.0)
    ),
    "attribute that was not there": lambda: _on_net(
        lambda n: 3.0 if hasattr(n, "bias") else 2.0, lambda n: setattr(n, "bias", 3.0)
    ),
    "attributes as a dictionary": lambda: _on_net(
        lambda n: vars(n.first)["rate"], lambda n: setattr(n.first, "rate", 3.0)
    ),
    "attribute getter": lambda: _on_net(operator.attrgetter("first.rate"), lambda n: setattr(n.first, "rate", 3.0)),
    "dictionary of attributes replaced": lambda: _on_net(
        lambda n: n.first.rate, lambda n: setattr(n.first, "__dict__", {"rate": 4.0})
    ),
    "slots": lambda: _on(Slotted(2.0), lambda s: s.rate, lambda s: setattr(s, "rate", 3.0)),
    "deque": lambda: _on(collections.deque([1.0, 2.0]), lambda d: d[0], lambda d: d.appendleft(7.0)),
    "defaultdict": lambda: _on(
        collections.defaultdict(float, a=2.0), lambda d: d["a"], lambda d: d.__setitem__("a", 3.0)
    ),
    "ordered": lambda: _on(
        collections.OrderedDict(a=1.0, b=2.0), lambda d: next(iter(d.values())), lambda d: d.move_to_end("a")
    ),
    "counter": lambda: _on(collections.Counter("aab"), lambda c: c["a"], lambda c: c.update("a")),
    "chain of maps": lambda: _on(collections.ChainMap({"a": 1.0}), lambda c: c["a"], lambda c: c.update(a=3.0)),
    "list of one's own": lambda: _on(Numbers([1.0, 2.0]), lambda v: v[1], lambda v: v.__setitem__(1, 5.0)),
    "dictionary of one's own": lambda: _on(Named(a=1.0), lambda v: v["a"], lambda v: v.update(a=5.0)),
    "set": lambda: _on({1.0, 2.0}, sum, lambda s: s.add(5.0)),
    "nested": lambda: _on(
        {"a": [{"b": (1.0, [2.0])}]}, lambda v: v["a"][0]["b"][1][0], lambda v: v["a"].insert(0, {"b": (0.0, [4.0])})
    ),
    "view of keys": lambda: _on({1.0: 0, 2.0: 0}, lambda d: max(d.keys()), lambda d: d.update({9.0: 0})),
    "bytes": lambda: _on(bytearray(b"\1\2"), lambda v: v[0], lambda v: v.__setitem__(0, 7)),
    "array of Python's": lambda: _on(array.array("d", [1.0]), lambda v: v[0], lambda v: v.__setitem__(0, 7.0)),
    "array of objects": lambda: _on(
        np.array([Layer(1.0), None]), lambda v: v[0].rate, lambda v: v.__setitem__(0, Layer(7.0))
    ),
    "array of numbers in a list": lambda: _on([np.ones(3)], lambda v: v[0].sum(), lambda v: v[0].fill(2.0)),
    "array that replaces one in a list": lambda: _on(
        [np.ones(3)], lambda v: float(v[0][1]), lambda v: v.__setitem__(0, np.full(3, 5.0))
    ),
    "namespace": lambda: _on(types.SimpleNamespace(a=1.0), lambda v: v.a, lambda v: setattr(v, "a", 2.0)),
    "partial function": lambda: _on(
        functools.partial(max, *[1.0]), lambda v: v.args[0], lambda v: v.__setstate__((max, (3.0,), {}, {}))
    ),
    "default of a function": lambda: _on(
        [lambda values=[2.0]: values[0]], lambda v: v[0](), lambda v: v[0].__defaults__[0].__setitem__(0, 3.0)
    ),
    "attribute of a function": lambda: _on(
        Net.__iter__, lambda f: getattr(f, "k", 1.0), lambda f: setattr(f, "k", 2.0)
    ),
    "type of a number": lambda: _on(
        [1], lambda v: 5.0 if type(v[0]) is float else 2.0, lambda v: v.__setitem__(0, 1.0)
    ),
    "sign of zero": lambda: _on([0.0], lambda v: math.copysign(1.0, v[0]), lambda v: v.__setitem__(0, -0.0)),
    "truth of a number": lambda: _on([1], lambda v: 5.0 if v[0] is True else 2.0, lambda v: v.__setitem__(0, True)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("error")
def test_the_next_call_sees_a_change(name: str) -> None:
    f, change, read = CASES[name]()
    x = np.array([1.0, 2.0])
    gradient = tc.grad(lambda x: f(x).sum())
    before = read()
    for _ in range(3):
        np.testing.assert_array_equal(f(x), x * before)
    np.testing.assert_array_equal(gradient(x), np.full(2, before))
    staged = f.cache_info().misses  # type: ignore[attr-defined]
    change()
    after = read()
    assert after != before
    for _ in range(3):
        np.testing.assert_array_equal(f(x), x * after)
    np.testing.assert_array_equal(gradient(x), np.full(2, after))
    assert f.cache_info().misses == staged + 1  # type: ignore[attr-defined]


def test_methods_see_changes_of_their_object() -> None:
    net, x = Net(), np.ones(1)
    assert (net.by_attribute(x), net.by_rounds(x)) == (2.0, 6.0)
    net.first, net.layers[0] = Layer(5.0), Layer(7.0)
    assert (net.by_attribute(x), net.by_rounds(x)) == (5.0, 21.0)
    net.layers.append(Layer(2.0))
    assert net.by_rounds(x) == 42.0


def test_configuration_that_changes_or_is_equal_and_not_the_same() -> None:
    @dataclasses.dataclass(frozen=True)
    class Config:
        value: Any

    @op
    def kind(x: Any, *, c: Any) -> Any:
        number = c.value if isinstance(c, Config) else c[0]
        return x * (3.0 if type(number) is float else 5.0 if type(number) is bool else 7.0) * math.copysign(1, number)

    x = np.ones(1)
    for make in (Config, lambda v: (v,), lambda v: (v, (v,)), lambda v: frozenset((v,)) and (v,)):
        given = [(1, 7), (1.0, 3), (True, 5), (0.0, 3), (-0.0, -3), (1, 7), (-0.0, -3)]
        assert [float(kind(x, c=make(number))[0]) for number, _ in given] == [value for _, value in given]
    programs = kind.cache_info().programs
    for _ in range(3):
        kind(x, c=(float("nan"),)), kind(x, c=(1.0,)), kind(x, c=Config(1.0))
    assert kind.cache_info().programs == programs + 1

    @op
    def rated(x: Any, *, net: Any) -> Any:
        return x * net.layers[0].rate

    net = Net()
    assert rated(x, net=net) == 2.0
    net.layers[0].rate = 4.0
    assert rated(x, net=net) == 4.0


def test_modules_that_are_imported_in_the_function(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("module_of_settings")
    module.k = 2.0  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "module_of_settings", module)

    @op
    def whole(x: Any) -> Any:
        import module_of_settings  # type: ignore[import-not-found]

        return x * module_of_settings.k

    @op
    def named(x: Any) -> Any:
        from module_of_settings import k as factor

        return x * factor

    x = np.ones(1)
    for value in (2.0, 5.0, 3.0):
        monkeypatch.setattr(module, "k", value)
        assert whole(x) == named(x) == value


def test_columns_of_tables() -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})

    @op
    def scaled(x: Any) -> Any:
        return x * table["a"].to_numpy() * table.b.sum()

    x = np.ones(2)
    np.testing.assert_array_equal(scaled(x), [7.0, 14.0])
    table["a"] = [5.0, 6.0]
    np.testing.assert_array_equal(scaled(x), [35.0, 42.0])
    table.loc[0, "b"] = 6.0
    np.testing.assert_array_equal(scaled(x), [50.0, 60.0])


def test_what_the_function_does_not_read_may_change() -> None:
    net = Net()

    @op
    def f(x: Any) -> Any:
        return x * net.first.rate

    x = np.ones(1)
    f(x)
    net.weights.append(3.0)
    net.layers.clear()
    net.other = 5  # type: ignore[attr-defined]
    assert f(x) == 2.0
    assert f.cache_info().misses == 1


def test_new_lists_of_new_arrays_stage_nothing() -> None:
    net = Net()

    @op
    def f(x: Any) -> Any:
        for weight in net.weights:
            x = x * weight
        return x

    x = np.ones(2)
    for step in range(4):
        net.weights = [np.full(2, 1.0 + step), np.full(2, 2.0)]
        np.testing.assert_array_equal(f(x), np.full(2, 2.0 + 2 * step))
    assert f.cache_info().misses == 1


VARIABLE: contextvars.ContextVar[float] = contextvars.ContextVar("variable", default=2.0)


@pytest.mark.parametrize("kind", ["gradient", "partial", "variable", "namespace", "bytes", "table", "class method"])
def test_repeated_calls_compare_nothing_anew(kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    net, held = Net(), {"namespace": types.SimpleNamespace(k=2.0), "bytes": bytearray(b"\2")}
    if kind == "table":
        held["table"] = pytest.importorskip("pandas").DataFrame({"a": [2.0]})
    reads: dict[str, Callable[[], Any]] = {
        "gradient": lambda: 2.0,
        "partial": lambda: 2.0,
        "variable": lambda: VARIABLE.get() * 1.0,
        "namespace": lambda: held["namespace"].k,
        "bytes": lambda: held["bytes"][0],
        "table": lambda: float(held["table"]["a"].sum()),
        "class method": lambda: net.of_class() / net.of_class() * 2.0,
    }
    read = reads[kind]

    @op
    def f(x: Any, factor: Any = 1.0) -> Any:
        t[()] += square(x[i]) * factor * read()
        return t

    x = np.ones(2)
    partial = functools.partial(f, factor=1.0)
    called: Callable[[Any], Any] = {"gradient": tc.grad(f), "partial": tc.grad(partial)}.get(kind, f)
    with tc.config(cache_dir=tmp_path):  # nothing comes from disk, where what was read is known otherwise
        first = called(x)
        called(x)
        compared: list[Staleness] = []
        monkeypatch.setattr(Staleness, "_compared", lambda staleness: compared.append(staleness) or True)
        for _ in range(3):
            np.testing.assert_array_equal(called(x), first)
    assert not compared


def test_what_a_partial_function_holds_may_change() -> None:
    values = [2.0]

    def scaled(x: Any, given: Any) -> Any:
        return (x * given[0]).sum()

    gradient = tc.grad(functools.partial(scaled, given=values))
    np.testing.assert_array_equal(gradient(np.ones(2)), [2.0, 2.0])
    values[0] = 3.0
    np.testing.assert_array_equal(gradient(np.ones(2)), [3.0, 3.0])


def test_state_that_only_c_code_knows_is_named_in_a_warning() -> None:
    numbers = iter([2.0, 3.0])

    @op
    def f(x: Any) -> Any:
        return x * next(numbers)

    with pytest.warns(RuntimeWarning, match="`numbers` is a list_iterator, whose state is read once"):
        assert f(np.ones(1)) == 2.0
    assert f(np.ones(1)) == 2.0


def test_functions_that_numpy_has_made_are_named_in_a_warning() -> None:
    scale = [2.0]
    made = np.frompyfunc(lambda value: value * scale[0], 1, 1)

    @op
    def f(x):
        return x * float(made(3.0))

    with pytest.warns(RuntimeWarning, match="`made` is a ufunc, whose state is read once"):
        assert f(np.ones(1))[0] == 6


def test_cells_that_helpers_read_of_what_they_are_given() -> None:
    def both(x: Any, weights: Any) -> Any:
        return x * weights[0] + weights[0].max()

    def mean(values: Any) -> Any:
        return values.mean()

    weights = [np.array([1.0, 2.0, 3.0])]
    table = np.array([1.0, 2.0, 3.0])

    @op
    def through_a_list(x: Any) -> Any:
        return both(x, weights)

    @op
    def in_a_statement(x: Any) -> Any:
        y[i] = x[i] * table[i] + mean(table)
        return y

    x = np.ones(3)
    for value in (1.0, 5.0, 7.0):
        weights[0][1], table[1] = value, value
        np.testing.assert_array_equal(through_a_list(x), weights[0] + weights[0].max())
        np.testing.assert_array_equal(in_a_statement(x), table + table.mean())


def test_containers_and_configuration_that_hold_themselves() -> None:
    cycle: list[Any] = [2.0]
    cycle.append(cycle)

    @op
    def f(x: Any) -> Any:
        return x * cycle[0]

    @op
    def whole(x: Any) -> Any:
        return x * max(each for each in cycle if each is not cycle)

    x = np.ones(1)
    assert f(x) == whole(x) == 2.0
    cycle[0] = 3.0
    assert f(x) == whole(x) == 3.0


def test_attributes_of_classes_that_are_made_anew_by_each_access() -> None:
    class Model:
        @functools.partialmethod
        def bound(self) -> Any:
            return 2.0

        @functools.singledispatchmethod
        def chosen(self, kind: Any) -> Any:
            return 3.0

    model = Model()

    @op
    def f(x: Any) -> Any:
        return x * model.bound() * model.chosen(1)

    assert f(np.ones(1)) == 6.0
    assert f(np.ones(1)) == 6.0
    assert f.cache_info().misses == 1


def test_configuration_of_slots() -> None:
    class Slot:
        __slots__ = "rate"  # noqa: PLC0205

        def __init__(self, rate: float) -> None:
            self.rate = rate

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Slot)

        def __hash__(self) -> int:
            return 1

    @op
    def f(x: Any, *, c: Slot) -> Any:
        return x * c.rate

    assert [float(f(np.ones(1), c=Slot(rate))[0]) for rate in (2.0, 3.0, 2.0)] == [2.0, 3.0, 2.0]


def test_few_programs_are_kept_that_differ_in_surroundings_alone() -> None:
    settings = {"factor": 0.0}

    @op
    def f(x: Any, *, mode: str) -> Any:
        return x * settings["factor"] if mode == "times" else x + settings["factor"]

    gradient = tc.grad(lambda x: (x * settings["factor"]).sum())
    x = np.ones(2)
    f.interpret(x, mode="plus")

    def change() -> None:
        for number in range(20):
            settings["factor"] = float(number)
            np.testing.assert_array_equal(f.interpret(x, mode="times"), x * number)
            settings["factor"] = 0.0
            np.testing.assert_array_equal(f.interpret(x, mode="times"), 0 * x)

    with pytest.warns(RuntimeWarning) as warned:
        change()
    assert len(warned) == 1
    fact = "`f` is staged again whenever `settings['factor']` has changed, 16 times by now"
    assert fact in str(warned[0].message)
    assert "pass what changes as an argument" in str(warned[0].message)
    # What is used stays: that of 0.0, and the one of other configuration.
    assert f.cache_info().programs == 17
    assert f.cache_info().misses == 21
    settings["factor"] = 19.0
    np.testing.assert_array_equal(gradient(x), np.full(2, 19.0))


def test_a_repeated_call_looks_at_the_item_and_not_at_all_of_a_list() -> None:
    many = [2.0] * 1_000_000
    named = dict.fromkeys(range(100000), 3.0)
    objects = np.array([types.SimpleNamespace(k=2.0)] * 3000, dtype=object)

    def first() -> Any:
        return many[0] * named[7]

    @op
    def few(x: Any) -> Any:
        return x * first()

    @op
    def each(x: Any) -> Any:
        return x * sum(one.k for one in objects)

    def seconds(f: Any) -> float:
        begin = time.process_time()
        for _ in range(50):
            f(x)
        return (time.process_time() - begin) / 50

    x = np.ones(2)
    np.testing.assert_array_equal(few(x), 6 * x)
    np.testing.assert_array_equal(each(x), 6000 * x)
    assert seconds(few) < 0.001  # all of the list takes ten times as long
    assert seconds(each) < 0.01
    many[0] = 3.0
    np.testing.assert_array_equal(few(x), 9 * x)
    named[7] = 1.0
    np.testing.assert_array_equal(few(x), 3 * x)
    del many[:]
    with pytest.raises(IndexError):
        few(x)
    many.append(5.0)
    np.testing.assert_array_equal(few(x), 5 * x)
    objects[2999] = types.SimpleNamespace(k=3.0)
    np.testing.assert_array_equal(each(x), 6001 * x)
