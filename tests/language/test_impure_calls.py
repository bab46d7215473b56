"""Random numbers and clocks that a function asks for while it is staged: one warning for each place in the source."""

from __future__ import annotations

import datetime as dt
import os
import random
import time
import uuid
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op

X = np.ones(3)
GENERATOR = np.random.default_rng(1)
LEGACY = np.random.RandomState(2)


def drawn(x):
    return x + GENERATOR.normal()


class Noisy:
    def __init__(self) -> None:
        self.generator = random.Random(3)

    @op
    def added(self, x):
        y[i] = x[i] + self.generator.random()
        return y


@op
def normal(x):
    return x + np.random.normal(size=3)  # noqa: NPY002


@op
def inside_a_statement(x):
    y[i] = x[i] * LEGACY.rand()
    return y


@op
def by_a_helper(x):
    return drawn(x)


@op
def in_a_generator(x):
    return x + sum(random.gauss(0, 1) for _ in range(3))


@op
def configured(x, *, generator):
    return x + generator.normal()


@op
def by_states(x):
    return x * len(random.getstate()) * len(LEGACY.get_state()) * len(GENERATOR.bit_generator.state)


@op
def unseeded(x):
    return x + np.random.default_rng().normal()


@op
def clock(x):
    return x * time.perf_counter()


@op
def today(x):
    return x * dt.datetime.now().year * dt.date.today().day


@op
def identity(x):
    return x * uuid.uuid4().version + len(os.urandom(2))


@cd
def jitter(p):
    p[i] -= random.random()


def plain(x):
    return (x * random.random()).sum()


@op
def layer(x, *, label, units):
    return "w" @ x + np.random.rand(units)  # noqa: NPY002


CASES: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "numpy": (lambda: normal.program(X), ["np.random.normal"]),
    "statement": (lambda: inside_a_statement.program(X), ["LEGACY.rand"]),
    "helper": (lambda: by_a_helper.program(X), ["GENERATOR.normal"]),
    "generator expression": (lambda: in_a_generator.program(X), ["random.gauss"]),
    "configuration": (
        lambda: configured.program(X, generator=np.random.default_rng(4)),
        ["generator.normal"],
    ),
    "states": (
        lambda: by_states.program(X),
        ["GENERATOR.bit_generator.state", "LEGACY.get_state", "random.getstate"],
    ),
    "unseeded": (lambda: unseeded.program(X), ["np.random.default_rng"]),
    "clock": (lambda: clock.program(X), ["time.perf_counter"]),
    "dates": (lambda: today.program(X), ["dt.date.today", "dt.datetime.now"]),
    "system": (lambda: identity.program(X), ["os.urandom", "uuid.uuid4"]),
    "code": (lambda: jitter.program(X), ["random.random"]),
    "method": (lambda: Noisy().added.program(X), ["self.generator.random"]),
    "derivative": (lambda: tc.grad(plain).program(X), ["random.random"]),
    "layer": (lambda: layer(label="a", units=3)(tc.tensor(X)), ["np.random.rand"]),
}


def warned(action: Callable[[], Any]) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        action()
    return list(caught)


@pytest.mark.parametrize("name", CASES)
def test_each_place_is_named_once(name: str) -> None:
    action, calls = CASES[name]
    found = warned(action)
    assert sorted(str(each.message).split("`")[1] for each in found) == calls
    for each in found:
        assert each.filename == __file__
        fact, source, caret, hint = str(each.message).splitlines()
        call = fact.split("`")[1]
        assert "what it gives is the same at every call from then on" in fact
        assert source[caret.index("^") :].startswith(call)
        assert caret.count("^") == len(call)
        assert hint == "call it outside of the function, and pass what it gives as an argument"
    assert warned(action) == []


def test_another_program_of_the_function_is_no_news() -> None:
    warned(lambda: normal.program(X))
    assert warned(lambda: normal.program(np.ones((2, 3)))) == []


@op
def pure(x):
    seeded = np.random.default_rng(5).normal(size=3) + random.Random(6).random()
    return np.sqrt(x) + np.linspace(0, 1, 3) + seeded


@op
def never(x, *, noise):
    return x + np.random.rand() if noise else x  # noqa: NPY002


@op
def started(x):
    w = tc.param("w", o=3, init=lambda generator, sizes: GENERATOR.normal(size=sizes))
    return w * x + "b"


def test_what_is_pure_or_not_run_is_not_warned_of() -> None:
    def parameters() -> None:
        tc.seed(1)
        _ = started(tc.tensor(X)).value

    for action in (lambda: pure.program(X), lambda: never.program(X, noise=False), parameters):
        assert warned(action) == []
    tc.seed(0)
