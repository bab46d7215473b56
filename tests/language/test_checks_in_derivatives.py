"""Derivatives of every order make the checks of what they are derived from, zero or not, and none of them twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tcdsl.errors import RAISED, RaisedError
from tcdsl.ir.program import Program
from tcdsl.simplification.simplify import simplify
from tests.long_variants import every

ONES = np.ones(4)


@op
def total(x: real[N]):
    s = 0.0
    for t in range(N):
        assert x[t] > 0, "below"
        s = s + x[t]
    return s


@op
def powers(x: real[N]):
    s = 1.0
    for t in range(N):
        assert x[t] > 0, "below"
        s = s + x[t] * x[t] * s
    return s


@op
def large(x: real[N]):
    if x[0] < 0:
        raise ValueError("below")
    return x.sum()


@op
def unused(x):
    total(x)
    return x.sum()


@op
def slope(x):
    return tc.grad(total)(x).sum()


@op
def slope_in_rounds(x: real[N]):
    s = 0.0
    for t in range(N):
        s = s + x[t]
        if t > 1:
            s = s + tc.grad(total)(x)[t]
    return s


@op
def curvature(x):
    return tc.hessian(total)(x).sum() + x.sum()


@op
def pulled(x):
    return tc.vjp(total, x)[1](1.0)[0].sum()


@op
def pushed(x):
    return tc.linearize(total, x)[1](x)


def _gradient_of_gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    return tc.grad(lambda x: tc.grad(f)(x).sum())


TRANSFORMS: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "values": lambda f: f,
    "grad": tc.grad,
    "value and grad": tc.value_and_grad,
    "grad of grad": _gradient_of_gradient,
    "third": lambda f: tc.grad(lambda x: _gradient_of_gradient(f)(x).sum()),
    "hvp": lambda f: lambda x: tc.hvp(f, (x,), (x,)),
    "hessian": tc.hessian,
    "jacobian of hessian": lambda f: tc.jacobian(tc.hessian(f)),
    "columns": lambda f: tc.jacobian(f, mode="forward"),
    "rows": lambda f: tc.jacobian(f, mode="reverse"),
    "aux": lambda f: tc.grad(lambda x: (x.sum(), f(x)), has_aux=True),
    "aux of rows": lambda f: tc.jacobian(lambda x: (2 * x, f(x)), has_aux=True),
    "jvp": lambda f: lambda x: tc.jvp(f, (x,), (x,)),
    "jvp of jvp": lambda f: lambda x: tc.jvp(lambda z: tc.jvp(f, (z,), (ONES,))[1], (x,), (x,)),
    "tangent of tangent": lambda f: lambda x: tc.jvp(lambda z: tc.jvp(f, (z,), (ONES,))[1], (x,), (x,))[1],
    "vjp": lambda f: lambda x: tc.vjp(f, x)[1](1.0),
    "linearize": lambda f: lambda x: tc.linearize(f, x)[1](x),
    "vjp of grad": lambda f: lambda x: tc.vjp(tc.grad(f), x)[1](x),
}
TOTALS = [total, powers, large, unused, slope, slope_in_rounds, curvature]


def transformed(functions: Sequence[Any], thoroughly: Sequence[Any]) -> Any:
    """Every function under every transform: by default these ones, and the others under one of each kind."""
    few = ("values", "grad", "grad of grad", "columns", "jvp")
    rows = [
        pytest.param(
            function,
            transform,
            id=f"{function.__name__}-{transform}",
            marks=() if function in thoroughly or transform in few else pytest.mark.long,
        )
        for function in functions
        for transform in TRANSFORMS
    ]
    return pytest.mark.parametrize(("function", "transform"), every(2, rows))


@transformed(TOTALS, [total])
def test_all_transforms_of_all_orders_check(function: Any, transform: str) -> None:
    derivative = TRANSFORMS[transform](function)
    for _ in range(3):
        derivative(ONES)
        with pytest.raises(RaisedError, match="below"):
            derivative(-ONES)


@pytest.mark.parametrize("transform", ["values", "grad", "jvp", "columns"])
@pytest.mark.parametrize("function", [pulled, pushed], ids=lambda each: each.__name__)
def test_linear_functions_inside_check(function: Any, transform: str) -> None:
    derivative = TRANSFORMS[transform](function)
    derivative(ONES)
    with pytest.raises(RaisedError, match="below"):
        derivative(-ONES)


@pytest.mark.parametrize("transform", ["grad", "grad of grad", "hessian", "hvp", "columns", "jvp of jvp"])
@pytest.mark.parametrize("function", [total, large, slope], ids=lambda each: each.__name__)
def test_derivatives_on_tensors_check(function: Any, transform: str) -> None:
    derivative = TRANSFORMS[transform](function)
    derivative(tc.tensor(ONES))
    with pytest.raises(RaisedError, match="below"):
        derivative(tc.tensor(-ONES))


def _checks(program: Program) -> int:
    own = sum(tensor.label.startswith(RAISED) for tensor in program.tensors)
    return own + sum(_checks(repeat.body) for repeat in program.repeats)


@pytest.mark.parametrize("transform", ["grad", "value and grad", "hessian", "columns", "rows"])
@pytest.mark.parametrize("function", [total, powers, large], ids=lambda each: each.__name__)
def test_nothing_is_checked_twice(function: Any, transform: str) -> None:
    derivative: Any = TRANSFORMS[transform](function)
    call = derivative.signature.call((ONES,), {})
    program = derivative.staging.entry(call)[0].executable.program
    assert _checks(program) == 1
    vanishes = transform == "hessian" and function is not powers
    results = 2 if transform == "value and grad" else 1
    assert len(program.outputs) == results + vanishes  # whether it holds is a result only where no other one needs it


@pytest.mark.parametrize("function", [slope, pulled, pushed], ids=lambda each: each.__name__)
def test_a_derivative_inside_checks_once(function: Any) -> None:
    call = function.signature.call((ONES,), {})
    assert _checks(simplify(function.staging.entry(call)[0].executable.program)) == 1


@op
def constant(x: real[N]):
    for t in range(N):
        assert x[t] > 0, "below"
    return 2.0


@cd
def examine(x: real[N]):
    for t in range(N):
        assert x[t] > 0, "below"


@op
def ruled(x):
    return x.sum()


@ruled.defvjp
def _(x, _, d):
    assert x[0] > 0, "below"
    return d * x


@pytest.mark.parametrize(
    ("function", "expected"),
    [(constant, 2.0), (examine, None), (tc.grad(ruled), ONES)],
    ids=["constant", "code", "rule"],
)
def test_what_computes_nothing_else_checks_and_so_do_rules(function: Any, expected: Any) -> None:
    found = function(ONES)
    assert found is None if expected is None else np.array_equal(found, expected)
    with pytest.raises(RaisedError, match="below"):
        function(-ONES)


@op
def chosen(x: real[N], p: int64[M]):
    return sum(x[p[i]])


@op
def beside_chosen(x: real[N], p: int64[M]):
    return x.sum() + sum(FIXED[p[i]])


@op
def chosen_in_rounds(x: real[N], p: int64[M]):
    s = 0.0
    for t in range(M):
        if p[t] > 0:
            for k in range(2):
                s = s + x[p[t]] * k
    return s


@op
def beside_chosen_in_rounds(x: real[N], p: int64[M]):
    s = x.sum()
    for t in range(M):
        k = p[t] - 1
        s = s + (FIXED[k + 1] if k > 0 else 0.0)
    return s


@op
def scattered(x: real[M], p: int64[M]):
    q: real[4]
    q[p[i]] += x[i]
    return q.sum()


@op
def twice_chosen(x: real[N], p: int64[M]):
    return chosen(x, NEAR) + beside_chosen(x, p)


@op
def slope_of_chosen(x: real[N], p: int64[M]):
    return tc.grad(beside_chosen)(x, p).sum() + x.sum()


FIXED = np.arange(4.0)
NEAR, FAR = np.array([0, 3, 2, 1]), np.array([0, 3, 4, 1])
CHOOSING = [
    chosen,
    beside_chosen,
    chosen_in_rounds,
    beside_chosen_in_rounds,
    scattered,
    twice_chosen,
    slope_of_chosen,
]


@transformed(CHOOSING, [chosen_in_rounds])
def test_all_transforms_check_indices(function: Any, transform: str) -> None:
    # An array around the function is read at every call, so that one program is staged for both.
    places = NEAR.copy()
    derivative = TRANSFORMS[transform](lambda x: function(x, places))
    for _ in range(2):
        places[:] = NEAR
        derivative(ONES)
        places[:] = FAR
        with pytest.raises(tc.DataIndexError, match=r"out of range for axis 0 of `\w+`"):
            derivative(ONES)


def test_an_index_that_is_in_range_where_it_is_read_alone_is_no_fault() -> None:
    slope = tc.grad(beside_chosen_in_rounds)
    np.testing.assert_array_equal(slope(ONES, np.array([-7, 1, 3, 0])), ONES)  # such an index is not read
    message = str(refused(slope, ONES, np.array([0, 9])))
    assert "index 9 is out of range for axis 0 of `FIXED`, which has extent 4" in message
    assert "at t = 1" in message


def refused(function: Any, *arguments: Any) -> Exception:
    with pytest.raises(tc.DataIndexError) as caught:
        function(*arguments)
    return caught.value


@pytest.mark.parametrize(
    ("function", "checks"), [(chosen, 0), (chosen_in_rounds, 0), (scattered, 0), (beside_chosen, 1), (twice_chosen, 1)]
)
def test_indices_are_checked_apart_where_nothing_else_checks_them(function: Any, checks: int) -> None:
    derivative: Any = tc.grad(function)
    call = derivative.signature.call((ONES, NEAR), {})
    assert _checks(derivative.staging.entry(call)[0].executable.program) == checks


def test_messages_name_the_lines_of_their_own_function() -> None:
    @op
    def one(x, p):
        y[i] = x[p[i]]  # one
        return y

    @op
    def other(x, p):
        y[i] = x[p[i]]  # other
        return y

    def pulled_back(f):
        return op(_pulled_through)(ONES, FAR, f=f)

    for function in (one, other):
        assert f"# {function.__name__}" in str(refused(pulled_back, function))


def _pulled_through(x, p, *, f):
    return tc.grad(lambda z: (f(z, p) ** 2).sum())(x)
