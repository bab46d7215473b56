"""What Python asks of a value by its special methods works, or is an error that says what to write."""

from __future__ import annotations

import contextlib
import copy
import math
import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op

Method = Callable[[Any], Any]

BINARY = [
    *("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "and_", "xor", "or_"),
    *("lt", "le", "gt", "ge", "eq", "ne", "iadd", "isub", "imul", "imatmul", "itruediv", "ifloordiv", "imod", "ipow"),
    *("ilshift", "irshift", "iand", "ixor", "ior"),
]
OTHERS: dict[str, Any] = {"2": 2, "0.5": 0.5, "text": "a", "None": None, "object": object(), "list": [1.0], "dict": {}}


def _applied(function: Callable[[Any, Any], Any], other: Any, reflected: bool) -> Method:
    return lambda value: function(other, value) if reflected else function(value, other)


def _with_itself(function: Callable[[Any, Any], Any]) -> Method:
    return lambda value: function(value, value)


METHODS: dict[str, Method] = {
    **{f"{name} with itself": _with_itself(getattr(operator, name)) for name in BINARY},
    **{f"{name} {what}": _applied(getattr(operator, name), OTHERS[what], False) for name in BINARY for what in OTHERS},
    **{
        f"{what} {name}": _applied(getattr(operator, name), OTHERS[what], True)
        for name in BINARY
        for what in OTHERS
        if name[0] != "i"
    },
    **{name: getattr(operator, name) for name in ("neg", "pos", "abs", "invert", "not_", "truth", "index")},
    **{each.__name__: each for each in (repr, str, hash, int, float, complex, bool, round, len, iter, reversed, list)},
    **{each.__name__: each for each in (math.trunc, math.floor, math.ceil, copy.copy, copy.deepcopy)},
    "divmod": lambda v: divmod(v, 2),
    "divmod from the right": lambda v: divmod(2, v),
    "pow with three arguments": lambda v: pow(v, 2, 3),
    "round to digits": lambda v: round(v, 2),
    "format": lambda v: f"{v}",
    "format with digits": lambda v: f"{v:.3f}",
    "in": lambda v: 1.0 in v,
    "key 0": lambda v: v[0],
    "key slice": lambda v: v[0:1],
    "key None": lambda v: v[None],
    "key text": lambda v: v["a"],
    "key 1.5": lambda v: v[1.5],
    "key itself": lambda v: v[v],
    "key list": lambda v: v[[0, 0]],
    "store": lambda v: operator.setitem(v, 0, 1.0),
    "delete": lambda v: operator.delitem(v, 0),
    "astype": lambda v: v.astype(v) if hasattr(v, "astype") else None,
    "key ()": lambda v: v[()],
    "range": range,
    "position of a list": lambda v: [1, 2, 3, 4][v],
    "sorted": sorted,
    "any": any,
}
A = np.arange(3.0)


def everything(value: Any, bare: dict[str, BaseException]) -> float:
    """Call all special methods of ``value``; what ends in an error that is not tcdsl's goes to ``bare``."""
    if isinstance(value, bool | int | float):
        return 1.0  # staging has made it a number of Python's
    for name, method in METHODS.items():
        try:
            method(value)
        except tc.TcdslError:
            pass
        except Exception as error:
            bare[name] = error
        except BaseException:
            pass  # staging begins again
    return 1.0


KINDS: dict[str, Callable[[Callable[[Any], float]], Any]] = {}


def kind(function: Callable[[Callable[[Any], float]], Any]) -> Callable[[Callable[[Any], float]], Any]:
    KINDS[function.__name__] = function
    return function


@kind
def arrays(use):
    @op
    def f(x):
        use(x)
        return x

    for array in (A, np.arange(3), A > 1, np.ones((2, 3)), np.array(2.0)):
        f.program(array)


@kind
def arithmetic(use):
    @op
    def f(x):
        use(x * 2)
        use(x > 1)
        return x

    f.program(A)


@kind
def numbers_and_sizes(use):
    @op
    def f(x, s, n, *, rate, steps):
        use(x.shape[0])
        use(x.shape[0] * 2 + 1)
        use(s)
        use(n)
        use(rate * s)
        use(steps + x.shape[0])
        return x * s

    f.program(A, 2.0, 3, rate=0.5, steps=20)


@kind
def local_definitions(use):
    @op
    def f(x):
        z = x[i] * 2
        use(z)
        s = sum(x[i])
        use(s)
        y[i] = z * s
        return y

    f.program(A)
    f(tc.tensor(A))


@kind
def points(use):
    @op
    def f(x):
        y[i] = use(x[i]) + use(i) + use(x[i] > 1)
        return y

    f.program(A)


@kind
def rounds(use):
    @op
    def f(x):
        s = 0.0
        for t in range(x.shape[0]):
            use(t)
            s = s + x[t]
            use(s)
        while s < 10:
            s = s + 1
            use(s)
        return s

    f.program(A)


@kind
def memory(use):
    @cd
    def f(x):
        v = x[1:]
        use(v)
        use(x)
        x += 1

    f.program(A.copy())
    f(tc.tensor(A))


@kind
def targets_without_cells(use):
    @op
    def f(x):
        d: real[3]
        use(d)
        d[i] = x[i]
        y = output(3)
        use(y)
        y[i] = x[i]
        return d, y

    f.program(A)


@kind
def tensors(use):
    for each in (tc.tensor(A), tc.tensor(2.5), tc.tensor(3), tc.param("w", o=3), tc.param("w"), tc.tensor(A) + 1):
        use(each)
    use(tc.static_index("n", 3))


@kind
def tensors_in_ops(use):
    @op
    def f(x):
        use(x)
        use(x * 2)
        use(param("w", o=3))
        return x

    f(tc.tensor(A))
    f(tc.param("w"))


@kind
def differentiated(use):
    tc.grad(lambda x: (use(x), x.sum())[1])(A)


@pytest.mark.parametrize("name", KINDS)
def test_special_methods(name: str) -> None:
    bare: dict[str, BaseException] = {}
    # Faults of statements are kept until the end.
    with warnings.catch_warnings(), contextlib.suppress(tc.TcdslError):
        warnings.simplefilter("ignore")
        KINDS[name](lambda value: everything(value, bare))
    assert not bare, "\n".join(f"{method}: {error!r}" for method, error in bare.items())


def test_rounding_works_where_python_rounds() -> None:
    def helper(x):
        return round(x) + math.floor(x) * 10 + math.ceil(x) * 100

    @op
    def f(x):
        y[i] = helper(x[i])
        return y, helper(x), round(x)

    x = np.array([1.25, -1.75])
    expected = np.round(x) + np.floor(x) * 10 + np.ceil(x) * 100
    for found, wanted in zip(f.interpret(x), (expected, expected, np.round(x)), strict=True):
        assert found.tolist() == wanted.tolist()
    t = tc.tensor(2.5)
    assert (math.floor(t), math.ceil(t), math.trunc(t), complex(t)) == (2, 3, 2, 2.5)


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda x: f"{x:.3f}", r"'\.3f' formats a number(.|\n)*format what the call gives"),
        (lambda x: pow(x, 2, 3), r"three arguments(.|\n)*a\*\*b % m"),
        (math.trunc, r"`trunc` of a value of the program(.|\n)*int64\(x\)"),
        (lambda x: round(x, 2), r"round\(x \* 100\) / 100"),
        (lambda x: x.astype(x), "is no element type of the language"),
        (lambda x: x.shape[0][0], "has no cells, and takes no index"),
    ],
)
def test_errors_say_what_to_write(write: Method, message: str) -> None:
    @op
    def f(x):
        return write(x) + x

    with pytest.raises(tc.TcdslError, match=message):
        f(A)


def test_faults_of_calls_points_and_tensors() -> None:
    @op
    def called(x):
        return x(1)

    @op
    def at_a_point(x):
        y[i] = x[i] + helper(x[i])
        return y

    def helper(cell):
        return cell + "a"

    with pytest.raises(tc.DslSyntaxError, match=r"is no function(.|\n)*`z\[1\]` for a cell"):
        called(A)
    with pytest.raises(tc.DtypeError, match="a str does not take part in arithmetic at a point"):
        at_a_point(A)
    with pytest.raises(tc.DslSyntaxError, match=r"has 3 cells, and Python asks for one number(.|\n)*t\.sum\(\)"):
        float(tc.tensor(A))
    with pytest.raises(tc.DtypeError, match=r"holds 2\.5, which is no integer"):
        range(tc.tensor(2.5))
