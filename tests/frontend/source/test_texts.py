"""Functions that stand in no file: `op(source=...)`, and the text of `python -c`."""

from __future__ import annotations

import inspect
import linecache
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op

FACTOR = 3.0

product = op(
    source="""
    def product(A: real[N, K], B, *, power=1):
        C[i, j] += A[i, k] * B[k, j] * FACTOR
        return C**power
    """
)

PROGRAM = """
import numpy as np
from tcdsl import op
@op
def doubled(x):
    y[i] = x[i] * 2
    return y
print(doubled(np.ones(2)))
"""


def test_text_defines_a_function_of_the_calling_module() -> None:
    a = np.arange(6.0).reshape(2, 3)
    np.testing.assert_allclose(product(a, a.T), a @ a.T * 3)
    np.testing.assert_allclose(product(a, a.T, power=2), (a @ a.T * 3) ** 2)
    tc.check_grads(lambda x: product(x, a.T).sum(), (a,))
    assert repr(product) == "<op product>"
    assert "input A: float64[N, K]" in str(product.explain("ir", a, a.T))
    assert pickle.loads(pickle.dumps(product)) is product


def test_text_defines_code() -> None:
    p = np.ones(3)
    cd(source="def step(p, g, *, rate):\n    p -= rate * g")(p, np.ones(3), rate=0.25)
    np.testing.assert_array_equal(p, 0.75)


def test_texts_of_one_name_stay_apart() -> None:
    text = "def f(x):\n    y[i] = {} * x[i]\n    return y"
    once, twice, again = (op(source=text.format(factor)) for factor in (1, 2, 1))
    assert [f(np.ones(1))[0] for f in (once, twice, again)] == [1, 2, 1]


def test_faults_are_found_in_the_text() -> None:
    with pytest.raises(tc.ShapeError, match=r"<source of wrong>:2: `x` has rank 1(.|\n)*y\[i\] = x\[i, j\]"):
        op(source="def wrong(x):\n    y[i] = x[i, j]\n    return y")(np.ones(3))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (5, "a int as source"),
        ("", "not one function without decorators\ngive one `def`"),
        ("x = 1", "not one function without decorators"),
        ("@op\ndef f(x): return x", "not one function without decorators"),
        ("def f(x):\n    return x[i] +", r"line 2 of the source is no Python: (.|\n)*return x\[i\] \+"),
    ],
)
def test_texts_that_define_nothing(source: Any, message: str) -> None:
    with pytest.raises(tc.TcdslError, match=message):
        op(source=source)


def test_a_function_and_its_text_at_once() -> None:
    with pytest.raises(tc.ConfigurationError, match="the source alone defines the function"):
        op(lambda x: x, source="def f(x): return x")  # type: ignore[call-overload]


@pytest.mark.parametrize("options", [("-c", PROGRAM), ("-Wignore", "-Bc" + PROGRAM)])
def test_the_text_of_a_command_is_found(options: tuple[str, ...]) -> None:
    done = subprocess.run([sys.executable, *options, "argument"], capture_output=True, text=True, check=True)
    assert done.stdout == "[2. 2.]\n"


def test_where_python_keeps_no_source_the_message_says_what_works(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable], input=PROGRAM, capture_output=True, text=True, check=False)
    assert "<stdin>:4: the source of `doubled` is not available" in done.stderr
    assert '`doubled = op(source="""def doubled(...): ...""")`' in done.stderr


def test_text_is_found_where_names_are_looked_for_among_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # As in an application of PyInstaller.
    monkeypatch.setattr(inspect, "getsourcefile", lambda thing: str(tmp_path / inspect.getfile(thing)))
    thrice = op(source="def thrice(x):\n    y[i] = 3 * x[i]\n    return y")
    assert thrice(np.ones(1))[0] == 3


def test_code_of_exec_shows_no_line_of_another_text(monkeypatch: pytest.MonkeyPatch) -> None:
    # Python 3.13 keeps the text of `python -c` under the name that code of exec has.
    monkeypatch.setitem(linecache.cache, "<string>", (7, None, ["another\n"], "<string>"))
    with pytest.raises(tc.DslSyntaxError) as fault:
        exec("@op\ndef f(x):\n    return x", {"op": op})
    assert "another" not in str(fault.value)
    assert str(fault.value).startswith("<string>:1: the source of `f` is not available")
