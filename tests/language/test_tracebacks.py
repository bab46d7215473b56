"""Tracebacks show the user's code only, unless ``TCDSL_FULL_TRACEBACK=1`` asks for the library's."""

from __future__ import annotations

import json
import math
import operator
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op

PACKAGE = str(Path(tc.__file__).parent)


def failing(x: Any) -> Any:
    raise LookupError("of the user")


@op
def unknown_name(x):
    y[i] = x[i] * Unknown
    return y


@op
def vector(x):
    y[i] = 2 * x[i]
    return y


@op
def lookup(table, ids):
    y[i] = table[ids[i]]
    return y


@op
def calling(x):
    return failing(x)


@op
def nested(x):
    return unknown_name(x)


@op
def twice_wrong(x):
    y[i] = x[i] * Unknown
    z = [1.0, 2.0][x.shape[0]]
    return y


@op
def total(x):
    t[()] += x[i]
    return t


@cd
def update(p, g):
    p -= g


def decorated() -> Any:
    return op(lambda x: x)


def caught_before() -> Any:
    try:
        failing(1)
    except LookupError:
        return unknown_name(np.ones(3))


def pulled() -> Any:
    _, pullback = tc.vjp(vector, np.ones(3))
    return pullback(np.ones(4))


CALLS: dict[str, Callable[[], Any]] = {
    "a fault of staging": lambda: unknown_name(np.ones(3)),
    "of an op called by an op": lambda: nested(np.ones(3)),
    "of the interpreter": lambda: unknown_name.interpret(np.ones(3)),
    "of explain": lambda: vector.explain("nothing", np.ones(3)),
    "of program": lambda: vector.program("text"),
    "of the arguments": lambda: vector([1, 2]),
    "of their number": lambda: vector(1, 2, 3),
    "of the rank": lambda: vector(np.ones((2, 2))),
    "of statements and of Python around them": lambda: twice_wrong(np.ones(3)),
    "of a data index": lambda: lookup(np.ones(3), np.array([5])),
    "of code in place": lambda: update(np.ones(3, int), np.ones(3)),
    "of read-only memory": lambda: update(np.broadcast_to(1.0, 3), np.ones(3)),
    "of out": lambda: vector(np.ones(3), out=np.ones(4)),
    "of decorating": decorated,
    "of an option of the decorator": lambda: op(oob="perhaps")(failing),
    "of grad": lambda: tc.grad(total)(np.arange(3)),
    "of grad of code in place": lambda: tc.grad(update),
    "of a lambda": lambda: tc.value_and_grad(lambda x: unknown_name(x).sum())(np.ones(3)),
    "of vjp": lambda: tc.vjp(unknown_name, np.ones(3)),
    "of a pullback": pulled,
    "of check_grads": lambda: tc.check_grads(unknown_name, (np.ones(3),)),
    "of settings": lambda: tc.config(threads=-1),
    "after an exception of the user": caught_before,
}


def files(error: BaseException) -> list[str]:
    """The files of all frames that Python would print, those of earlier exceptions included."""
    found: list[str] = []
    shown = traceback.TracebackException.from_exception(error)
    while shown is not None:
        found += [frame.filename for frame in shown.stack]
        shown = shown.__cause__ or (None if shown.__suppress_context__ else shown.__context__)
    return found


@pytest.mark.parametrize("name", CALLS)
def test_no_library_frames_are_in_the_traceback(name: str) -> None:
    with pytest.raises(tc.TcdslError) as caught:
        CALLS[name]()
    shown = files(caught.value)
    assert __file__ in shown
    assert [name for name in shown if name != __file__] == []


def test_exceptions_of_the_users_functions_show_the_users_frames_only() -> None:
    for call in (lambda: calling(np.ones(3)), lambda: tc.grad(lambda x: 2 * failing(x))(np.ones(3))):
        with pytest.raises(LookupError) as caught:
            call()
        assert set(files(caught.value)) == {__file__}
        assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "failing"


def test_an_exception_that_the_user_was_handling_stays_in_view() -> None:
    with pytest.raises(tc.DslSyntaxError) as caught:
        caught_before()
    assert isinstance(caught.value.__context__, LookupError)


def test_faults_of_the_library_itself_keep_their_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector.staging, "run_anew", "not callable")
    with pytest.raises(TypeError) as caught:
        vector(np.ones(3))
    assert any(name.startswith(PACKAGE) for name in files(caught.value))


def test_faults_that_the_library_makes_in_other_packages_keep_its_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tcdsl.runtime.calling.execution.Path", json.loads)
    with tc.config(cache_dir="not json"), pytest.raises(json.JSONDecodeError) as caught:
        total(np.ones(3))
    assert any(name.startswith(PACKAGE) for name in files(caught.value))


def test_several_faults_are_one_exception() -> None:
    with pytest.raises(tc.DslSyntaxError, match=r"^2 faults") as caught:
        twice_wrong(np.ones(3))
    assert caught.value.__context__ is None


@op
def used_fault(x, *, use):
    y[i] = x[i, i]
    return use(y)


_BOTH_WAYS = (operator.rshift, operator.lshift, operator.and_, operator.or_, operator.xor, divmod)
USES: list[Callable[[Any], Any]] = [
    *(lambda y, each=each: each(y, 1) for each in _BOTH_WAYS),
    *(lambda y, each=each: each(1, y) for each in _BOTH_WAYS),
    *(operator.invert, abs, round, math.trunc, math.floor, operator.neg, len),
    lambda y: format(y, ".3f"),
    lambda y: operator.setitem(y, 0, 1),
]


@pytest.mark.parametrize("use", USES)
def test_what_is_done_with_a_faulty_tensor_is_no_fault_of_its_own(use: Callable[[Any], Any]) -> None:
    with pytest.raises(tc.ShapeError, match="`x` has rank 1 and is given 2 indices"):
        used_fault(np.ones(3), use=use)


@pytest.mark.parametrize("kind", [np.float16, int, list, np.ndarray, type, ValueError])
def test_a_class_is_no_array(kind: type) -> None:
    with pytest.raises(tc.DtypeError, match="`x` is a type, but positional arguments are arrays and numbers"):
        total(kind)


@pytest.mark.parametrize("value", ["0", ""])
def test_the_full_traceback_may_be_switched_off(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCDSL_FULL_TRACEBACK", value)
    with pytest.raises(tc.DslSyntaxError) as caught:
        unknown_name(np.ones(3))
    assert set(files(caught.value)) == {__file__}


def test_the_full_traceback_is_shown_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TCDSL_FULL_TRACEBACK", "1")
    with pytest.raises(tc.DslSyntaxError) as caught:
        unknown_name(np.ones(3))
    assert any(name.startswith(PACKAGE) for name in files(caught.value))
