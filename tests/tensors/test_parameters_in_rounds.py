"""Parameters that rounds declare, where a size or a number says how many rounds there are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tcdsl.errors import DslSyntaxError, ShapeError
from tests.language.running_programs import program

GENERATOR = np.random.default_rng(47)
X, H = GENERATOR.random((5, 3)), GENERATOR.random(4)
W, U = GENERATOR.random((4, 4)), GENERATOR.random((4, 3))


@op
def rnn(x: real[T, D], h, W, U):
    for t in range(T):
        h = tanh(W @ h + U @ x[t])
    return h


@pytest.mark.parametrize("count", ["xs.shape[0]", "len(xs)", "T"])
def test_rounds_over_a_size_declare_parameters_as_rounds_over_parts_do(count: str) -> None:
    body = f"T, D = xs.shape\nfor t in range({count}):\n    h = tanh('W' @ h + 'U' @ xs[t])\nreturn h"
    by_part = "for x in xs:\n    h = tanh('W' @ h + 'U' @ x)\nreturn h"
    for function in (program(body, "xs, h"), program(by_part, "xs, h")):
        made = function(tc.tensor(X), tc.tensor(H))
        for name, value in (("W", W), ("U", U)):
            function.parameters[name].value = value
        np.testing.assert_allclose(np.asarray(made), rnn(X, H, W, U))


def test_conditions_declare_parameters_for_all_rounds() -> None:
    function = program("while sum(abs('A'[4] @ x)) > 0.1:\n    x = x / 2\nreturn x", "x")
    made, x = function(tc.tensor(X[0])), X[0]
    function.parameters["A"].value = U
    while abs(U @ x).sum() > 0.1:
        x = x / 2
    np.testing.assert_allclose(np.asarray(made), x)
    open_rows = program("while sum('A' @ x) > 0.1:\n    x = x / 2\nreturn x", "x")
    with pytest.raises(ShapeError, match=r'(?s)`A` has output axes that nothing determines.*write "A"\[n\]'):
        np.asarray(open_rows(tc.tensor(X[0])))


def test_rounds_that_leave_parameters_open_say_which() -> None:
    function = program("s = 0.0\nfor t in range(len(xs)):\n    s = s + sum('W' @ xs[t])\nreturn s", "xs")
    with pytest.raises(ShapeError, match="`W` has output axes that nothing determines"):
        np.asarray(function(tc.tensor(X)))


def test_loops_of_python_that_could_run_say_how() -> None:
    text = (
        "d = 1.0\nz = 0 * x\nwhile d > 1e-3:\n    y = tanh('W' @ z + x)\n    d = max(abs(y - z))\n    z = y\nreturn z"
    )
    with pytest.raises(DslSyntaxError, match=r"(?s)from its first round on.*`d = 1 \+ 0 \* sum\(x\)`"):
        program(text, "x")(tc.tensor(X[0]))
    made = program(text.replace("d = 1.0", "d = 1.0 + 0 * sum(x)"), "x")(tc.tensor(X[0]))
    assert np.asarray(made).shape == X[0].shape
    of_range = program("for t in range(3):\n    x = tanh('W' @ x)\nreturn x", "x")
    with pytest.raises(DslSyntaxError, match=r"for t in tc.loop\(...\)"):
        of_range(tc.tensor(X[0]))


def test_branches_and_loops_on_parameters_of_one_cell() -> None:
    function = program("y = x\nwhile y * y - x > 1e-12:\n    y = 0.5 * (y + x / y)\nreturn y if y > 0 else x", "x")
    for given in (tc.param("a", o=(), init=2.0), tc.param("a", o=(), i=(), init=2.0), tc.tensor(2.0)):
        np.testing.assert_allclose(np.asarray(function(given)), 2**0.5)


BOTH_ARMS = """
if h[0] > limit:
    q, r = 'W' @ h, (h, 2.0)
else:
    q, r = 2 * h, ('V' @ h, 3.0)
p = 'V' @ h if h[0] > limit else h
return q * r[0] * r[1] + p"""

CHOSEN_PARTS = """
for t in range(n):
    h = 'W' @ h if h[0] > limit else h * h
return h"""

ROUNDS_BY_ROUNDS = """
for t in range(n):
    k = 0
    while k < t:
        k = k + 1
        h = 'V' @ h
    for u in range(t):
        h = h + 0.1 * u
    h = tanh(0.1 * t * ('c'[4] * h)) + 'W' @ h
return h"""


@pytest.mark.parametrize("body", [BOTH_ARMS, CHOSEN_PARTS, ROUNDS_BY_ROUNDS])
@pytest.mark.parametrize("limit", [0.0, 2.0])
def test_arms_and_rounds_on_rounds_declare_parameters(body: str, limit: float) -> None:
    function = program(body.strip(), "h, n, limit")
    made = function(tc.tensor(H), 3, limit)
    values = {name: GENERATOR.random(p.value.shape) for name, p in function.parameters.items()}
    for name, value in values.items():
        function.parameters[name].value = value
    for name in values:
        body = body.replace(f"'{name}'[4]", name).replace(f"'{name}'", name)
    plain: dict[str, Any] = dict(values, tanh=np.tanh)
    exec("def f(h, n, limit):" + body.replace("\n", "\n    "), plain)
    np.testing.assert_allclose(np.asarray(made), plain["f"](H, 3, limit), rtol=1e-12)


# What is carried says the shapes of the parameters that only rounds, arms and conditions name.
CARRIED = {
    "arms": (
        "h = param('h')\nfor r in x:\n    h = tanh('W' @ h) if r[0] > 0.5 else tanh('V'[4] @ r)\nreturn h",
        "h W V",
    ),
    "blocks": (
        "h = param('h')\nfor r in x:\n    if r[0] > 0.5: h = tanh('W' @ h)\n    else: h = tanh('V'[4] @ r)\nreturn h",
        "h W V",
    ),
    "known start": (
        "h = 'V'[4] @ x[0]\nfor r in x:\n    if r[0] > 0.5:\n        h = tanh('W' @ h)\nreturn h",
        "V W",
    ),
    "maps": ("M = param('M', o=2)\nfor r in x:\n    M = M @ 'A'\nreturn M @ x[0]", "M A"),
    "later": ("h = param('h')\nfor r in x:\n    h = tanh('W' @ h + 'b')\nreturn h + np.zeros(4)", "h W b"),
    "condition": ("h = param('h')\nwhile sum(h * h) < 9:\n    h = h + 1 + abs('U'[4] @ x[0])\nreturn h", "h U"),
    "largest": ("h = param('h')\nwhile h.max() < 9:\n    h = h + 1 + abs('U'[4] @ x[0])\nreturn h", "h U"),
    "swapped": ("a, b = param('a'), param('b')\nfor r in x:\n    a, b = b, a + 'U'[4] @ r\nreturn a + b", "a b U"),
}
SHAPES = {"h": (4,), "W": (4, 4), "V": (4, 3), "U": (4, 3), "b": (4,), "a": (4,), "M": (2, 3), "A": (3, 3)}


@pytest.mark.parametrize("name", CARRIED)
def test_what_is_carried_says_shapes_of_parameters(name: str) -> None:
    body, parameters = CARRIED[name]
    function = program(body, "x")
    made = function(tc.tensor(X))
    assert made.shape == ((2,) if name == "maps" else (4,))
    assert {each: function.parameters[each].shape for each in parameters.split()} == {
        each: SHAPES[each] for each in parameters.split()
    }


def test_values_with_shapes_that_arms_have_said() -> None:
    function = program(CARRIED["blocks"][0], "x")
    made = function(tc.tensor(X))
    p = {name: np.asarray(each.value) for name, each in function.parameters.items()}
    h = p["h"]
    for r in X:
        h = np.tanh(p["W"] @ h) if r[0] > 0.5 else np.tanh(p["V"] @ r)
    np.testing.assert_allclose(np.asarray(made), h, rtol=1e-12)


@pytest.mark.parametrize(
    ("start", "kind", "message"),
    [
        (
            "'h'",
            DslSyntaxError,
            "(?s)`h` is the text 'h' before a round, and a tensor after it.*`h = param\\(\"h\"\\)`",
        ),
        ("0.0", ShapeError, "(?s)`h` before a round has no output axes.*bind `h` before to what it is to be"),
    ],
)
def test_starts_that_are_no_such_tensor_say_what_to_write(start: str, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        program(f"h = {start}\nfor r in x:\n    h = tanh(h + 'U'[4] @ r)\nreturn h", "x")(tc.tensor(X))


@op
def wave(a, c):
    return np.sin(a * c)


@wave.defvjp
def wave_pullback(a, c, b, d_b):
    slope = np.cos(a * c) * d_b
    return slope * c, (slope * a).sum()


@op
def waves(x, c):
    h = x[0]
    for t in tc.loop(2):
        for u in range(x.shape[0]):
            h = wave("W"[3] @ x[u] + t * h, c)
            x[-1] = tanh(wave(h, c))
    return (h * h).sum()


def test_rules_stand_behind_parameters_in_rounds() -> None:
    c = tc.param("c", o=(), init=0.3)
    loss = waves(tc.tensor(X[:, :3]), c)
    weights = waves.parameters["W"]
    weights.value = W[:3, :3]
    tc.compile(tc.train.grad_update(loss)).run()

    @op
    def plain(W, x, c):
        h = x[0]
        for t in tc.loop(2):
            for u in range(x.shape[0]):
                h = np.sin((W @ x[u] + t * h) * c)
                x[-1] = tanh(np.sin(h * c))
        return (h * h).sum()

    for found, wanted in zip((weights.grad, c.grad), tc.grad(plain, (0, 2))(W[:3, :3], X, np.array(0.3)), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-10)
