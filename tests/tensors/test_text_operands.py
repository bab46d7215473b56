"""Strings that declare parameters: what a tensor can do, they can."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from types import ModuleType

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import tcdsl as tc
from tcdsl import op
from tests.tensors.interpreting import value

# `W` is the string in one op, and the parameter in another.
EXPRESSIONS = [
    *(f"W {operator} x" for operator in ("+", "-", "*", "/", "//", "%", "**", "<", "<=", ">", ">=")),
    *(f"x {operator} W" for operator in ("+", "-", "*", "/", "//", "%", "<", "<=", ">", ">=")),
    *("W > 0", "0 < W", "W <= 0.5", "0.1 >= W", "W // 0.3 + x", "-W", "+W", "abs(W)", "round(W)"),
    *("W.T[:, None] + x", "W.sum()", "W.mean(axis=0)", "W.max(keepdims=True)", "W.copy()", "W.astype(float32)"),
    *("W.shape[0] + x", "W.ndim + x", "W[0]", "W[1:].sum()", "W[:, None] * x", "divmod(W, x)[0]", "divmod(x, W)[1]"),
    *("where(W > 0, W, 0)", "where(0 < W, x, W)", "max(W, x)", "relu(W)", "np.exp(W)", "np.sum(W)", "sum(W)"),
    *("prod(W)", "mean(W)", "np.max(W, axis=0)", "len(W) * x", "float32(W)", "doubled(W)", "doubled(t=W)"),
    *("W if x.shape[0] == 3 else x", "einsum('i;i=>', W, x)", "[W, x][0]"),
]
# What is Python's stays Python's, and what only text can do.
TEXTS = [
    *('len("abc"[1])', '"abc"[1].upper() == "B"', '("abc"[0] + "d") == "ad"', 'str("abc"[1]) == "b"', '"w".count("w")'),
    *('("w" == mode) + 1', 'max("abc") == "c"', 'ord("w"[0]) == 119', 'float("3")', 'int("3"[0])', '"%s" % 3 == "3"'),
]


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder, name = tmp_path_factory.mktemp("texts"), "ops_of_texts"
    lines = ["import numpy as np", "from tcdsl import op", "", "def doubled(t):", "    return t.sum() * 2", ""]
    for k, expression in enumerate(EXPRESSIONS):
        text, named = expression.replace("W", '"w"[3]'), expression.replace("W", "w")
        lines += ["@op", f"def text{k}(x):", f"    return x + ({text})", ""]
        lines += ["@op", f"def named{k}(x):", '    w = param("w", o=3)', f"    return x + ({named})", ""]
    for k, text in enumerate(TEXTS):
        lines += ["@op", f"def python{k}(x, *, mode):", f"    return ({text}) * x", ""]
    (folder / f"{name}.py").write_text("\n".join(lines), encoding="utf-8")
    sys.path.insert(0, str(folder))
    yield importlib.import_module(name)
    sys.path.remove(str(folder))
    sys.modules.pop(name)


def sample() -> tc.Tensor:
    return tc.tensor(np.array([0.5, -1.0, 2.0]))


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_a_string_does_what_its_parameter_does(module: ModuleType, expression: str) -> None:
    k = EXPRESSIONS.index(expression)
    found = []
    for kind in ("text", "named"):
        tc.seed(3)
        made = getattr(module, f"{kind}{k}")(sample())
        found.append((str(made.rows), str(made.dtype), value(made)))
    assert found[0][:2] == found[1][:2]
    assert_array_equal(found[0][2], found[1][2])


@pytest.mark.parametrize("text", TEXTS)
def test_text_stays_text(module: ModuleType, text: str) -> None:
    function = getattr(module, f"python{TEXTS.index(text)}")
    expected = eval(text, {"mode": "w"})  # noqa: S307
    for x in (np.arange(3.0), sample()):
        made = function(x, mode="w")
        assert_array_equal(value(made) if isinstance(made, tc.Tensor) else made, expected * np.asarray(x))


def test_statements_know_the_parameters_that_strings_have_declared() -> None:
    @op
    def scaled(x):
        z = x + "w"[3]
        y[i] = z[i] * w[i]
        return y

    made = scaled(sample())
    w = scaled.parameters["w"].value
    assert_array_equal(value(made), (sample().value + w) * w)

    @op
    def wrong(x):
        y[i] = x[i] * "w"[i]
        return y

    @op
    def early(x):
        y[i] = x[i] * u[i]
        return y + "u"[3]

    @op
    def sized(x):
        y[i] = x[i] * "w"[3][i]
        return y

    for f, fact in (
        (wrong, '"w" declares a parameter, whose cells are read under a name'),
        (sized, '"w" declares a parameter, whose cells are read under a name'),
        (early, '`u` is read with an index before the place where "u" is declared'),
    ):
        with pytest.raises(tc.DslSyntaxError, match=fact + r'(\n.*)*declare it before.*: `([uw]) = "\2"\[n\]`'):
            f(sample())


def test_two_strings_declare_where_python_has_no_such_operator() -> None:
    @op
    def composed(x):
        return "a"[2] @ "b"[4] @ x + ("c" - "d") * "e"[2]

    x = sample()
    made = composed(x)
    assert made.shape[-1] == 2
    a, b, c, d, e = (composed.parameters[name].value for name in "abcde")
    assert_array_equal(value(made), a @ b @ x.value + (c - d) * e)


@pytest.mark.parametrize("start", [1.0, -1.0])
def test_branches_on_what_is_computed_from_parameters(start: float) -> None:
    @op
    def chosen(x, *, start):
        w = param("w", o=3, init=start)
        if w.sum() > 0:
            x = x + w
        return x if any(w > 0) else x * w

    layer = chosen(start=start)
    x = sample()
    assert_array_equal(layer(x).value, x.value + 1 if start > 0 else -x.value)

    @op
    def of_cells(x):
        return "w"[3] if "w" > 0 else x

    with pytest.raises(tc.ShapeError, match=r"a condition of rank 1(.|\n)*reduce it"):
        of_cells(x).value
