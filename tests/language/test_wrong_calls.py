"""Whatever functions of arrays are given, they stage or end in a `TcdslError`: all keywords, types and ranks."""

from __future__ import annotations

import itertools
import operator
import random
import re
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcdsl
from tcdsl.errors import TcdslError
from tests.language.running_programs import program

PACKAGE = Path(tcdsl.__file__).parent


def words(text: str) -> list[str]:
    """The words of a text."""
    return text.split()


FUNCTIONS = words("""
    abs absolute add all amax amin any arange arccos arcsin arctan arctan2 argmax argmin array_equal
    ceil clip concatenate copy cos cosh cumsum diag divide dot einsum equal exp exp2 expand_dims
    expm1 eye floor floor_divide fmax fmin full full_like greater hypot isfinite isinf isnan less
    linspace log log10 log1p log2 logical_and logical_not logical_or matmul max maximum mean min
    minimum mod moveaxis multiply negative ones ones_like outer power prod ravel reciprocal repeat
    reshape roll round sign sin sinh size sort sqrt square squeeze stack std subtract sum swapaxes
    take tan tanh tile trace transpose tril triu true_divide trunc var vdot where zeros zeros_like
    bitwise_and bitwise_or bitwise_xor invert left_shift right_shift
""")
METHODS = words("all any astype copy max mean min prod sum reshape argmax bind_dims")
OPERATORS = [
    *(getattr(operator, name) for name in words("neg pos abs invert not_ truth index")),
    *(
        getattr(operator, name)
        for name in words("add sub mul truediv floordiv mod pow matmul and_ or_ xor lshift rshift")
    ),
    *(getattr(operator, name) for name in words("lt le eq ne gt ge getitem contains")),
]
VALUES: dict[str, Callable[[Any], Any]] = {
    "nothing": lambda x: None,
    "text": lambda x: "no",
    "list": lambda x: [1, "a"],
    "float": lambda x: 1.5,
    "negative": lambda x: -7,
    "huge": lambda x: 2**70,
    "size": lambda x: x.shape[0] if x.shape else 3,
    "tensor": lambda x: x,
    "class": lambda x: dict,
    "true": lambda x: True,
}
KEYWORDS = ("unknown", "axis", "keepdims", "dtype", "out", "initial", "where", "axes", "shape", "decimals", "ord")
TYPES = [
    *words("bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 complex64 complex128"),
    *("object", "U3", "S2", "datetime64[s]", "timedelta64[D]", "i4,f8"),
]


def calls() -> Iterator[tuple[str, Callable[[Any], Any]]]:
    """Each call by its name, of one array."""
    for name in FUNCTIONS:
        function = getattr(np, name)
        yield f"np.{name}(x)", lambda x, f=function: f(x)
        for kind, value in VALUES.items():
            yield f"np.{name}(x, {kind})", lambda x, f=function, v=value: f(x, v(x))
            for key in KEYWORDS:
                yield f"np.{name}(x, {key}={kind})", lambda x, f=function, v=value, k=key: f(x, **{k: v(x)})
    for name in METHODS:
        yield f"x.{name}()", lambda x, n=name: getattr(x, n)()
        for kind, value in VALUES.items():
            yield f"x.{name}({kind})", lambda x, n=name, v=value: getattr(x, n)(v(x))
            for key in KEYWORDS:
                yield f"x.{name}({key}={kind})", lambda x, n=name, v=value, k=key: getattr(x, n)(**{k: v(x)})
    for function in OPERATORS:
        yield f"{function.__name__}(x)", lambda x, f=function: f(x)
        for kind, value in VALUES.items():
            yield f"{function.__name__}(x, {kind})", lambda x, f=function, v=value: f(x, v(x))
            yield f"{function.__name__}({kind}, x)", lambda x, f=function, v=value: f(v(x), x)


CALLS = dict(calls())


TRANSFORMS = words("grad value_and_grad vjp jvp hvp jacobian hessian linearize check_grads")


def derivative_calls(name: str, value: Any) -> Iterator[Callable[[], Any]]:
    """Derivatives of a function with ``value`` in each place where something else belongs."""
    transform, x = getattr(tcdsl, name), np.ones(3)
    yield lambda: transform(value)(x)
    yield lambda: transform(value, (x,))
    yield lambda: transform(total, argnums=value)(x)
    yield lambda: transform(total)(value)
    yield lambda: transform(total)(x, value)
    yield lambda: transform(total, value)
    yield lambda: transform(total, (x,), value)
    yield lambda: transform(total, (x,), (value,))
    yield lambda: transform(total, value, value)
    yield lambda: transform(total, (x,), unknown=value)


@tcdsl.op
def total(x):
    t[()] += x[i] * x[i]
    return t


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TRANSFORMS)
def test_derivatives_called_wrongly_are_faults(name: str) -> None:
    found = []
    for kind, value in (*((each, make(np.ones(3))) for each, make in VALUES.items()), ("matrix", np.ones((2, 2)))):
        if kind in ("size", "class"):  # a class is a function, too
            continue
        for k, call in enumerate(derivative_calls(name, value)):
            try:
                call()
            except TcdslError:
                continue
            except Exception as error:
                found.append(f"{name}, call {k} with {kind}: {type(error).__name__}: {error}")
    assert not found


def staged(call: Callable[[Any], Any], x: Any, fault: bool) -> None:
    """Stage the call, in a function that has a fault before it or has none."""

    @tcdsl.op
    def called(x):
        return call(x) * 1.0

    @tcdsl.op
    def called_after_a_fault(x):
        z[i] = x[i, i, i, i, i]
        return call(z) * 1.0

    (called_after_a_fault if fault else called).program(x)


def wrong(cases: list[tuple[str, bool, Any]]) -> list[str]:
    """The cases that end otherwise, but for what NumPy itself refuses with a ValueError where the user calls it."""
    found = []
    for name, fault, x in cases:
        try:
            staged(CALLS[name], x, fault)
        except TcdslError:
            continue
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            if not isinstance(error, ValueError) or Path(place.filename).is_relative_to(PACKAGE):
                found.append(f"{name} of {x.dtype}[{x.ndim}], {fault}: {type(error).__name__}: {error}")
    return found


def all_cases() -> list[tuple[str, bool, Any]]:
    """All calls, of arrays of all types and ranks, without and after a fault."""
    arrays = [np.zeros((3,) * rank, kind) for kind in TYPES for rank in (0, 1, 2)]
    return [(*pair, x) for pair in itertools.product(CALLS, (False, True)) for x in arrays]


MISUSED = {
    "np.roll(x, foo=1)": r"roll\(\) got an unexpected keyword argument 'foo'",
    "np.sum() + x": r"sum\(\) missing 1 required positional argument: 'a'",
    "x.sum(1, 2, 3)": r"sum\(\) takes from 1 to 3 positional arguments but 4 were given",
    "len(x, x)": r"len\(\) takes exactly one argument \(2 given\)",
    "helped(x)": r"unsupported operand type\(s\) for \+: 'int' and 'str'",
    "int32(x, x)": "`int32` takes 1 argument, not 2",
    "int32()": "`int32` takes 1 argument, not 0",
    "exp()": "`exp` takes 1 argument, not 0",
    "clamp(x)": "`clamp` has a meaning only inside a tensor statement",
}


@pytest.mark.parametrize("call", MISUSED)
def test_a_function_that_python_finds_called_wrongly_is_told_at_the_users_line(call: str) -> None:
    f = program(f"return {call}", "x", before="def helped(x):\n    return 1 + 'a'\n\n")
    for run in (f, f.interpret, tcdsl.grad(f)):
        with pytest.raises(tcdsl.TcdslError, match=MISUSED[call]) as caught:
            run(np.ones(3))
        assert re.search(r"<loop \d+>:\d+: ", str(caught.value))


def test_what_the_user_raises_stays_what_it_is() -> None:
    f = program("if n > 2:\n    raise TypeError('n is large')\nreturn x * n", "x, *, n")
    with pytest.raises(TypeError, match=r"^n is large$") as caught:
        f(np.ones(3), n=3)
    assert type(caught.value) is TypeError


KNOWN = (
    "x.astype(dtype=tensor)",
    "np.ones_like(x, tensor)",
    "getitem(size, x)",
    "np.dot(x, nothing)",
    "np.outer(x, nothing)",
)


@pytest.mark.filterwarnings("ignore")
def test_a_sample_of_calls_stages_or_is_a_fault() -> None:
    assert not wrong(random.Random(5).sample(all_cases(), 500))
    assert not wrong([(name, False, np.zeros((3,) * rank)) for name in KNOWN for rank in (1, 2)])


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_calls_stage_or_are_faults() -> None:
    assert not wrong(random.Random(11).sample(all_cases(), 100_000))
