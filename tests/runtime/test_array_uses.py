"""Arrays around a function: which ones are read at every call, and for which ones Python's reads stage anew."""

from __future__ import annotations

import functools
import importlib
import io
import operator
import pdb  # noqa: T100
import sys
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tcdsl.frontend.surroundings import code_runs

W = np.ones(3)
TABLE = np.ones((3, 3))
R = [np.ones(3), np.ones(3)]
NAMED = {"a": np.ones(3), "b": np.ones(3)}
DEEP = {"layers": [(np.ones(3), np.ones(3))]}


class Layer:
    """An object with arrays, one of them under two names."""

    def __init__(self) -> None:
        self.w, self.b = np.ones((3, 3)), np.ones(3)
        self.also = self.b

    def __call__(self, x: Any) -> Any:
        if self.b is not None:
            x = x + self.b
        return np.maximum(self.w @ x, 0)


class Other:
    """Another class whose attribute has the same name."""

    def __init__(self) -> None:
        self.w = np.ones(3)

    def __call__(self, x: Any) -> Any:
        return x * self.w


class Box:
    """What holds an array for a while."""

    def __init__(self, held: Any) -> None:
        self.held = held

    def mean(self) -> Any:
        return self.held.mean()


LAYERS = [Layer(), Layer(), Other()]
LAYER = LAYERS[0]
NUMBER = 1


def scaled(x: Any, w: Any, b: Any) -> Any:
    return x * w + b


def through(x: Any) -> Any:
    for layer in LAYERS:
        x = layer(x)
    return x


def deeper(x: Any, parameters: Any) -> Any:
    for w, b in parameters["layers"]:
        x = x * w + b
    return x


def unpacked(x: Any) -> Any:
    a, b = R
    return x * a + b


def in_rounds_by_number(x: Any) -> Any:
    for k in range(len(R)):
        x = x * R[k]
    return x


def by_another_name(x: Any) -> Any:
    first, w, b = R[0], W, LAYER.b
    return x * first + w * x + b * x


def with_the_rest(x: Any) -> Any:
    first, *rest = R
    return x * first + rest[0]


def in_rounds(x: Any) -> Any:
    for k, (w, b) in enumerate(zip(R, R[::-1], strict=True)):
        x = x * w + k * (x * b)
    for named in NAMED.values():
        x = x * named
    return x


def by_choice(x: Any) -> Any:
    w = R[0] if NUMBER else R[1]
    return x * w * R[NUMBER]


WHOLE: dict[str, Callable[[Any], Any]] = {
    "unpacked": unpacked,
    "in rounds by number": in_rounds_by_number,
    "by another name": by_another_name,
    "with the rest": with_the_rest,
    "in rounds": in_rounds,
    "by choice": by_choice,
    "two names": lambda x: x * LAYER.b + LAYER.also,
    "keys": lambda x: x * NAMED["a"] + NAMED["b"] + x * R[-1],
    "layers": through,
    "arguments": lambda x: scaled(x, R[0], b=R[1]) + scaled(x, *R) + scaled(x, w=W, b=W),
    "parameters": lambda x: deeper(x, DEEP),
    "function": lambda x: np.dot(R[0], x) * x,
    "views": lambda x: x @ TABLE.T + x * TABLE[1] + W[::-1] * x,
    "sums": lambda x: sum(x * w for w in R),
}


def _fill(number: float) -> None:
    every = [W, TABLE, *R, *NAMED.values(), *DEEP["layers"][0], *(a for each in LAYERS for a in vars(each).values())]
    for k, array in enumerate(every):
        if isinstance(array, np.ndarray):
            array[...] = number + k + np.arange(array.size).reshape(array.shape) / 8


@pytest.mark.parametrize("name", WHOLE)
def test_cells_that_only_the_program_reads_stage_nothing(name: str) -> None:
    plain = WHOLE[name]

    @op
    def helped(x: Any) -> Any:
        return plain(x)

    direct = None if plain.__name__ == "<lambda>" else op(plain)
    x = np.arange(1.0, 4.0)
    for number in (1.0, 2.0, -1.0):
        _fill(number)
        for f in (helped, direct):
            if f is not None:
                np.testing.assert_allclose(f.interpret(x), plain(x))
    assert helped.cache_info().misses == 1
    assert direct is None or direct.cache_info().misses == 1


def test_views_follow_an_array_that_replaces_another(monkeypatch: pytest.MonkeyPatch) -> None:
    @op
    def f(x: Any) -> Any:
        return TABLE[::2, ::-1] @ x

    x = np.arange(1.0, 4.0)
    for table in (np.ones((3, 3)), np.arange(9.0).reshape(3, 3), np.arange(12.0).reshape(4, 3)):
        monkeypatch.setitem(globals(), "TABLE", table)
        for _ in range(2):
            np.testing.assert_array_equal(f(x), table[::2, ::-1] @ x)
            np.testing.assert_array_equal(tc.grad(lambda x: f(x).sum())(x), table[::2, ::-1].sum(axis=0))
            table += 1
    assert f.cache_info().misses == 2


def mean_of_first(*arrays: Any) -> Any:
    return arrays[0].mean()


def by_arguments(x: Any, *arrays: Any) -> Any:
    return x * arrays[0] + arrays[0].mean()


def by_keywords(x: Any, **arrays: Any) -> Any:
    return x * arrays["a"] + arrays["a"].mean()


def sums_of(arrays: Any) -> Iterator[Any]:
    for each in arrays:
        yield each, each.sum()


def generated(x: Any) -> Any:
    for w, s in sums_of(R):
        x = x * w * s
    return x


def in_a_closure(x: Any, w: Any) -> Any:
    def inner() -> Any:
        return w.mean()

    return x * w * inner()


def by_default(x: Any, w: Any = W) -> Any:
    return x * w + w.mean()


def hidden(w: Any) -> float:
    return float(w[0])


def one_beside_another(x: Any, w: Any) -> Any:
    return x * w + hidden(w)


def renamed(x: Any, w: Any) -> Any:
    other, w = w, 0
    return x * other + other.max()


def appended(x: Any) -> Any:
    ws = []
    ws.append(R[0])
    return x * ws[0] + ws[0].max()


def boxed(x: Any) -> Any:
    box = Box(W)
    return x * box.held + box.mean()


def paired(x: Any) -> Any:
    for w, b in zip(R, R, strict=True):
        x = x * w + b.max()
    return x


def viewed(x: Any) -> Any:
    w = W[:]
    return x * w + w.max()


def unpacked_cells(x: Any) -> Any:
    a, _, _ = W
    return x * W + a


def last(x: Any, ws: Any) -> Any:
    return x * ws[-1] + ws[-1].sum()


def deep(x: Any, parameters: Any) -> Any:
    for w, b in parameters["layers"]:
        x = x * w + b * w.max()
    return x


def in_some_rounds(x: Any) -> Any:
    for v in (x, np.arange(3.0)):
        x = x + v * W
    return x


def while_it_goes(x: Any) -> Any:
    v, rounds = x, 0
    while rounds < 2:
        x, v, rounds = x + v * R[0], np.arange(3.0), rounds + 1
    return x


def while_tested(x: Any) -> Any:
    v, kept = x, []
    while len(kept) < 2 and (kept.append(v * W) or True):
        v = np.arange(3.0)
    return kept[0] + x * kept[1]


def recursive(x: Any, depth: int) -> Any:
    return x * W if depth == 0 else recursive(x, depth - 1) + recursive(np.arange(3.0), depth - 1).max()


def by_default_twice(x: Any, w: Any = W) -> Any:
    return x * w


def in_turn(x: Any) -> Any:
    # Generators wait in the middle of an expression.
    def given(v: Any) -> Iterator[Any]:
        yield 0
        yield v * W

    one, other = given(x), given(np.arange(3.0))
    next(one), next(other)
    return next(one) + x * next(other)


def beside(x: Any, v: Any, w: Any) -> Any:
    return x * v + w.mean()


PARTIAL = functools.partial(mean_of_first, W)
READ: dict[str, Callable[[Any], Any]] = {
    "arguments": lambda x: by_arguments(x, *R),
    "arguments of another": lambda x: x * R[0] + mean_of_first(*R),
    "keywords": lambda x: by_keywords(x, **NAMED),
    "partial": lambda x: x * W + functools.partial(mean_of_first, W)(),
    "partial around": lambda x: x * W + PARTIAL(),
    "getattr": lambda x: x * LAYER.b + getattr(LAYER, "b").mean(),  # noqa: B009
    "built text": lambda x: x * LAYER.b + getattr(LAYER, "".join("b")).mean(),
    "vars": lambda x: x * LAYER.b + vars(LAYER)["b"].mean(),
    "globals": lambda x: x * W + globals()["W"].mean(),
    "module": lambda x: x * W + sys.modules[__name__].W.mean(),
    "imported module": lambda x: x * W + importlib.import_module(__name__).W.mean(),
    "attrgetter": lambda x: x * LAYER.b + operator.attrgetter("b")(LAYER).mean(),
    "itemgetter": lambda x: x * R[0] + operator.itemgetter(0)(R).mean(),
    "methodcaller": lambda x: x * R[0] + operator.methodcaller("mean")(R[0]),
    "reduce": lambda x: functools.reduce(lambda h, w: h * w + w.mean(), R, x),
    "generator": generated,
    "closure": lambda x: in_a_closure(x, W),
    "default": by_default,
    "helper": lambda x: one_beside_another(x, W),
    "renamed": lambda x: renamed(x, W),
    "appended": appended,
    "boxed": boxed,
    "paired": paired,
    "viewed": viewed,
    "cells unpacked": unpacked_cells,
    "last": lambda x: last(x, R),
    "deep": lambda x: deep(x, DEEP),
    "text": lambda x: x * W * len(f"{W[0]}"),
    "membership": lambda x: x * W * (2 if 1.0 in W else 3),
    "mapped": lambda x: x * R[0] + sum(map(np.max, R)),
    "starred": lambda x: x * R[0] + max(*R[0]),
    "named in passing": lambda x: x * (w := W) + w.max(),
    # A place that captures an array in one round, and in another Python computes there alone.
    "in some rounds": in_some_rounds,
    "while it goes": while_it_goes,
    "while tested": while_tested,
    "recursive": lambda x: recursive(x, 1),
    "default twice": lambda x: by_default_twice(x) + x * by_default_twice(2.0),
    "list of some": lambda x: sum((v * W for v in (np.arange(3.0), x)), start=x),
    "mapped to some": lambda x: x * list(map(functools.partial(np.subtract, W), (x, np.arange(3.0))))[1],
    "multiplied by some": lambda x: x + sum(times(W) for times in (x.__mul__, np.arange(3.0).__mul__)),
    "greatest of some": lambda x: x + sum([np.maximum(v, W) for v in (x, np.arange(3.0))]),
    "product with some": lambda x: x + sum([v @ TABLE for v in (x, np.arange(3.0))]),
    "in turn": in_turn,
    "beside another": lambda x: x * W + beside(x, R[0], W),
    "one after another": lambda x: (
        x * W + functools.reduce(lambda a, w: a * w if a is x else a + w.max(), [x, R[0], W])
    ),
}


@pytest.mark.parametrize("name", READ)
def test_cells_that_python_reads_stage_anew(name: str) -> None:
    plain = READ[name]

    @op
    def helped(x: Any) -> Any:
        return plain(x)

    x = np.arange(1.0, 4.0)
    for number in (1.0, 2.0, -1.0):
        _fill(number)
        np.testing.assert_allclose(helped.interpret(x), plain(x))


def test_where_tracing_ends_all_arrays_are_compared() -> None:
    @op
    def f(x: Any) -> Any:
        y = x
        for k, v in enumerate((x, np.arange(3.0))):
            y = y + v * W
            if k == 0:
                sys.settrace(None)
        return y

    x = np.arange(1.0, 4.0)
    for number in (1.0, 2.0):
        _fill(number)
        np.testing.assert_allclose(f.interpret(x), x + (x + np.arange(3.0)) * W)


def test_a_debugger_stops_behind_the_breakpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    def stops(x: Any) -> Any:
        y = x * W
        breakpoint()  # noqa: T100
        return y * 2

    @op
    def f(x: Any) -> Any:
        return stops(x) + 1

    shown = io.StringIO()
    debugger = pdb.Pdb(stdin=io.StringIO("n\nc\n" * 2), stdout=shown, nosigint=True, readrc=False)
    monkeypatch.setattr(sys, "breakpointhook", lambda: debugger.set_trace(sys._getframe(1)))
    x = np.arange(1.0, 4.0)
    tracer = sys.gettrace()
    try:
        for number in (1.0, 2.0):
            _fill(number)
            np.testing.assert_allclose(f.interpret(x), x * W * 2 + 1)
    finally:
        sys.settrace(tracer)
    lines = [line for line in shown.getvalue().splitlines() if line.startswith("-> ")]
    # Behind the breakpoint in each call; from Python 3.13 on it stops at the breakpoint first.
    assert lines in (["-> return y * 2"] * 4, ["-> breakpoint()  # noqa: T100", "-> return y * 2"] * 2)
    assert "opcode" not in shown.getvalue()


def test_code_of_the_user_alone_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    followed: set[str] = set()

    class Followed(code_runs._Code):
        def __init__(self, code: CodeType) -> None:
            if code.co_names != ("_tuple_new",):  # named tuples, whoever made them
                followed.add(code.co_filename)
            super().__init__(code)

    monkeypatch.setattr(code_runs, "_Code", Followed)

    @op
    def f(x: Any) -> Any:
        y[i] = tanh(x[i]) * W[i]
        return (y * W).sum()

    x = np.arange(3.0)
    tc.grad(f).program(x)
    f.program(x)
    assert followed == {__file__}
