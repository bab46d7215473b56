"""The short way of a repeated call is taken only where it gives what the long way gives."""

from __future__ import annotations

from enum import StrEnum
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op

x = np.arange(6.0)
scale = 2.0
weights = [1.0, 2.0]
settings = SimpleNamespace(factor=2.0)


class Mode(StrEnum):
    """Equal to its text, and of another type."""

    DOUBLE = "double"


@op
def scaled(x):
    return scale * x


@op
def weighted(x):
    return x * weights[1]


@op
def strided(x, step):
    y[i] = x[step * i]
    return y


@op
def every(x, *, step):
    y[i] = x[step * i]
    return y


@op
def chosen(x, *, mode="double"):
    return x * 2 if mode == "double" else x * 3


@op
def raised(x, power=2.0, *, factor=0.5):
    return factor * x**power


@op
def exact(x, *, mode):
    return x * 2 if isinstance(mode, Mode) else x * 3


@op
def added(a, b):
    return a + b


@op
def times(x, factor):
    return x * factor


@op
def attributed(x):
    return x * settings.factor


def calls(f: Any, *given: tuple[tuple[Any, ...], dict[str, Any], Any]) -> None:
    """Each call twice, in turn, gives what is expected."""
    for arguments, keywords, expected in (*given, *given):
        for _ in range(2):
            found = f(*arguments, **keywords)
            assert found.dtype == np.asarray(expected).dtype
            np.testing.assert_array_equal(found, expected)


def test_a_repeated_call_takes_the_short_way() -> None:
    added(x, x)
    assert added.staging.repeated is not None
    assert added.staging.repeated.arrays((x, x), {}) is not None


def test_integers_that_are_constants_of_the_program() -> None:
    calls(strided, ((x, 2), {}, x[::2]), ((x, 3), {}, x[::3]))
    calls(every, ((x,), {"step": 2}, x[::2]), ((x,), {"step": 3}, x[::3]))


def test_keywords_that_are_left_out() -> None:
    calls(chosen, ((x,), {}, 2 * x), ((x,), {"mode": "triple"}, 3 * x), ((x,), {"mode": "double"}, 2 * x))
    calls(raised, ((x,), {}, 0.5 * x**2), ((x, 3.0), {}, 0.5 * x**3), ((x,), {"factor": 2.0}, 2 * x**2))


def test_configuration_that_is_equal_and_of_another_type() -> None:
    calls(exact, ((x,), {"mode": Mode.DOUBLE}, 2 * x), ((x,), {"mode": "double"}, 3 * x))


def test_other_types_and_ranks() -> None:
    single, whole, table = x.astype(np.float32), np.arange(6), x.reshape(2, 3)
    calls(added, ((x, x), {}, 2 * x), ((single, single), {}, 2 * single), ((table, table), {}, 2 * table))
    calls(times, ((whole, 2), {}, 2 * whole), ((whole, 2.0), {}, 2.0 * whole), ((whole, True), {}, whole))


def test_extents_that_broadcast() -> None:
    one = x[:1] + 1
    calls(added, ((x, x), {}, 2 * x), ((x, one), {}, x + 1), ((one, x), {}, x + 1), ((one, one), {}, 2 * one))


def test_memory_of_another_layout() -> None:
    first, second = np.arange(12.0).reshape(3, 4)[:, 1:3].T
    calls(added, ((x, x), {}, 2 * x), ((x[::-1], x), {}, np.full(6, 5.0)), ((first, second), {}, [3.0, 11.0, 19.0]))


def test_surroundings_that_change(monkeypatch: pytest.MonkeyPatch) -> None:
    factor = 2.0

    @op
    def closed(x):
        return factor * x

    for value in (2.0, 3.0, 2.0):
        factor = value
        monkeypatch.setitem(globals(), "scale", value)
        weights[1] = value
        monkeypatch.setattr(settings, "factor", value)
        for f in (closed, scaled, weighted, attributed):
            calls(f, ((x,), {}, value * x))


def test_wrong_calls_after_right_ones() -> None:
    calls(added, ((x, x), {}, 2 * x))
    for arguments, keywords in (((x,), {}), ((x, x, x), {}), ((x, x), {"c": 1})):
        with pytest.raises(tc.ConfigurationError):
            added(*arguments, **keywords)
    with pytest.raises(tc.ShapeError):
        added(x, x[:4])
    with pytest.raises(tc.DtypeError):
        added(x, x.astype(complex))
    calls(added, ((x, x), {}, 2 * x))
