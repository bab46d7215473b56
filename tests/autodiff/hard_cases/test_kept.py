"""Equal derivatives of one function are one object, and functions of one code share what is staged."""

from __future__ import annotations

import copy
import functools
import gc
import pickle
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tcdsl.runtime.transforms.derivations import DerivativeStaging

w, x = np.arange(1.0, 5.0), np.arange(4.0)


@op
def loss(w, x):
    s[()] = sum(w[i] * w[i] * x[i])
    return s


def plain(w):
    return loss(w, x)


class Model:
    """Its methods are made anew whenever they are asked for."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def loss(self, w: Any) -> Any:
        return self.factor * loss(w, x)


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[str]]:
    """The derivatives that were staged in the test, for which no earlier run has left any."""
    titles: list[str] = []
    trace = DerivativeStaging.trace

    def watched(self: DerivativeStaging, *arguments: Any) -> Any:
        titles.append(self.title)
        return trace(self, *arguments)

    monkeypatch.setattr(DerivativeStaging, "trace", watched)
    with tc.config(cache_dir=tmp_path):
        yield titles


def test_equal_derivatives_are_one_object() -> None:
    for derive in (tc.grad, tc.value_and_grad, tc.jacobian, tc.hessian):
        for function in (loss, plain, tc.grad(loss), functools.partial(loss, x=x), Model(2.0).loss):
            assert derive(function) is derive(function)
    assert tc.grad(loss, (0, 1)) is tc.grad(loss, [0, 1])
    assert tc.grad(tc.grad(plain)) is tc.grad(tc.grad(plain))
    different = [tc.grad(loss), tc.grad(loss, 1), tc.grad(loss, has_aux=True), tc.value_and_grad(loss), tc.grad(plain)]
    assert len({id(each) for each in different}) == len(different)
    model = Model(2.0)
    assert tc.grad(model.loss) is tc.grad(model.loss)
    assert tc.grad(model.loss) is not tc.grad(Model(2.0).loss)
    assert repr(tc.grad(loss, [1])) == "<gradient by (1,) of loss>"


def test_what_takes_over_attributes_of_a_function_has_derivatives_of_its_own() -> None:
    def doubled(w: Any) -> Any:
        return 2 * plain(w)

    np.testing.assert_array_equal(tc.grad(plain)(w), 2 * w * x)
    functools.update_wrapper(doubled, plain)
    np.testing.assert_array_equal(tc.grad(doubled)(w), 4 * w * x)
    model = Model(2.0)
    np.testing.assert_array_equal(tc.grad(model.loss)(w), 4 * w * x)
    for other in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        other.factor = 3.0
        np.testing.assert_array_equal(tc.grad(other.loss)(w), 6 * w * x)
    model.factor = 1.0
    np.testing.assert_array_equal(tc.grad(model.loss)(w), 2 * w * x)
    np.testing.assert_array_equal(tc.grad(np.sin)(0.0), 1.0)


def test_derivatives_in_a_loop_are_staged_once(traced: list[str]) -> None:
    @op
    def cube(w):
        s[()] = sum(w[i] ** 3)
        return s

    for k in range(3):
        np.testing.assert_allclose(tc.grad(cube)(w + k), 3 * (w + k) ** 2)
        np.testing.assert_allclose(tc.grad(tc.grad(lambda v: cube(v * w)))(2.0 + k), 6 * (2.0 + k) * (w**3).sum())
        np.testing.assert_allclose(tc.hvp(cube, w, x), 6 * w * x)
        np.testing.assert_allclose(tc.vjp(cube, w)[1](2.0)[0], 6 * w**2)
    assert len(traced) == len(set(traced)) == 4


def test_a_lambda_over_containers_of_numbers_is_staged_once(traced: list[str]) -> None:
    settings = {"factor": 2.0}

    def slope(k: float) -> Any:
        powers, y = [1.0, 3.0], x * k
        return tc.grad(lambda w: loss(w, y) * powers[1] * settings["factor"])(w)

    for k in (1.0, 2.0, 3.0):
        np.testing.assert_allclose(slope(k), 12 * k * w * x)
    assert len(traced) == 1
    settings["factor"] = 4.0
    np.testing.assert_allclose(slope(1.0), 24 * w * x)
    assert len(traced) == 2


@pytest.mark.parametrize("transform", ["grad", "jvp", "vjp", "hvp", "linearize"])
def test_a_lambda_is_known_by_its_code_and_what_it_reads(transform: str, traced: list[str]) -> None:
    def slope(w: np.ndarray, x: np.ndarray, factor: float) -> Any:
        def model(w: Any) -> Any:
            return loss(w, x)

        of = lambda w: factor * model(w)  # noqa: E731
        match transform:
            case "grad":
                return tc.grad(of)(w)
            case "jvp":
                return tc.jvp(of, (w,), (np.ones_like(w),))[1]
            case "vjp":
                return tc.vjp(of, w)[1](1.0)[0]
            case "hvp":
                return tc.hvp(of, w, np.ones_like(w))
            case _:
                return tc.linearize(of, w)[1](np.ones_like(w))

    def expected(w: np.ndarray, x: np.ndarray, factor: float) -> Any:
        gradient = 2 * factor * w * x
        if transform == "hvp":
            return 2 * factor * x
        return gradient if transform in ("grad", "vjp") else gradient.sum()

    for given in ((w, x), (w + 1, x * 2), (w[:3], x[1:]), (w, x)):
        np.testing.assert_allclose(slope(*given, 2.0), expected(*given, 2.0))
    assert len(traced) == 1
    np.testing.assert_allclose(slope(w, x, 3.0), expected(w, x, 3.0))
    single = w.astype(np.float32), x.astype(np.float32)
    np.testing.assert_allclose(slope(*single, 3.0), expected(*single, 3.0))
    count = len(traced)
    for factor in (2.0, 3.0):
        np.testing.assert_allclose(slope(w, x, factor), expected(w, x, factor))
    assert len(traced) == count


def test_what_a_closure_holds_is_read_at_the_call() -> None:
    def late(factor: float, later: float) -> Any:
        slope = tc.grad(lambda w: factor * loss(w, x))
        factor = later
        return slope(w)

    for later in (2.0, 2.0, 3.0, 5.0):
        np.testing.assert_allclose(late(2.0, later), 2 * later * w * x)

    def chosen(helper: Any) -> Any:
        return tc.grad(lambda w: helper(w) + 0.0)(w)

    for factor in (1.0, 2.0, 1.0):
        np.testing.assert_allclose(chosen(lambda w: plain(w) * 1.0), 2 * w * x)
        np.testing.assert_allclose(chosen(lambda w, by=factor: by * plain(w)), 2 * factor * w * x)
        np.testing.assert_allclose(chosen(lambda w: factor * plain(w)), 2 * factor * w * x)  # noqa: B023


def test_nothing_is_kept_longer_than_its_function() -> None:
    def one() -> list[weakref.ref[Any]]:
        data = x + 1.0
        model = Model(2.0)
        function = lambda w: model.factor * loss(w, data)  # noqa: E731
        tc.grad(function)(w)
        tc.grad(tc.grad(function, has_aux=False))
        tc.vjp(function, w)
        tc.grad(model.loss)(w)
        return [weakref.ref(each) for each in (data, model, function, tc.grad(function))]

    held = one()
    gc.collect()
    assert [each() for each in held] == [None] * 4
