"""`f.profile(...)`: nests beside the user's lines, and statements that cost more than their results need."""

from __future__ import annotations

import inspect
import re
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tcdsl.runtime.profiles.limits import MachineLimits


@op
def scores(A: Any, B: Any) -> Any:
    C[i, j] += A[i, k] * B[k, j]
    s[i] = max(C[i, j])
    return C, s


@cd
def diffuse(u: Any, *, steps: int) -> None:
    for _ in tc.loop(steps):
        u[i] = 0.5 * u[i] + 0.25 * (u[i - 1] + u[i + 1]), 1 <= i < u.shape[0] - 1


def line_of(function: Any, text: str) -> int:
    lines, first = inspect.getsourcelines(function.function)
    return first + next(k for k, line in enumerate(lines) if text in line)


def test_nests_stand_beside_the_lines_that_they_make() -> None:
    shown = scores.profile(np.ones((90, 70)), np.ones((70, 80)))
    [product] = [each for each in shown.nests if each.operations >= 2 * 90 * 70 * 80]
    assert product.lines[0].line == line_of(scores, "C[i, j] +=")
    assert {span.line for each in shown.nests for span in each.lines} >= {line_of(scores, "max(")}
    # Its panels are some columns wider.
    assert product.bytes == pytest.approx(8 * (90 * 70 + 70 * 80 + 90 * 80), rel=0.1)
    assert product.bound == "operations"
    assert 0 < product.seconds <= shown.seconds
    text = str(shown)
    assert text.startswith("profile of scores: ")
    assert "s[i] = max(C[i, j])" in text
    assert "Gop/s in float64" in text
    assert not shown.warnings
    assert shown._repr_html_().count("<svg") == 1


def test_profiles_change_no_argument_and_count_rounds() -> None:
    u = np.linspace(0, 1, 1000) ** 2
    before = u.copy()
    shown = diffuse.profile(u, steps=7)
    np.testing.assert_array_equal(u, before)
    [nest] = [each for each in shown.nests if each.lines]
    assert nest.runs == 7
    assert nest.lines[0].line == line_of(diffuse, "u[i] =")
    assert nest.operations == pytest.approx(7 * 4 * 998, rel=0.1)
    diffuse(u, steps=7)
    assert not np.array_equal(u, before)


def test_gradients_and_training_steps_have_profiles() -> None:
    loss = tc.grad(lambda A, B: scores(A, B)[0].sum(), argnums=(0, 1))
    assert loss.profile(np.ones((9, 7)), np.ones((7, 8))).nests
    w = tc.param("w", o=3, init=0.5)
    x = tc.tensor(np.ones((4, 2), np.float32), batch=1)
    step = tc.compile(tc.train.grad_update(error := (w @ x).sum()), tc.train.sgd_update(error, learning_rate=0.1))
    step.run()
    before = np.array(w.value)
    assert step.profile().nests
    np.testing.assert_array_equal(w.value, before)


@pytest.mark.parametrize("shape", [0, 1])
def test_small_sizes(shape: int) -> None:
    shown = scores.profile(np.ones((shape, shape)), np.ones((shape, shape)))
    assert "profile of scores" in str(shown)
    assert shown._repr_html_()


def test_strided_and_misaligned_arguments() -> None:
    odd = np.frombuffer(bytes(8 * 25 + 1), np.uint8)[1:].view(np.float64).reshape(5, 5)
    assert scores.profile(np.ones((5, 10))[::-1, ::-2], odd).nests


@op
def window(x: Any) -> Any:
    t[i] += x[i + j], j < 100
    return t


@op
def counts(ids: Any) -> Any:
    h = output(50)
    h[k] += 1 if ids[j] == k else 0
    return h


@op
def alike(x: Any) -> Any:
    y = output(50)
    y[i] += x[j]
    return y


@op
def filtered(x: Any, w: Any) -> Any:
    y[i] += x[i + j] * w[j]
    return y


@op
def totals(x: Any) -> Any:
    y[i] += x[j], j <= i, i < x.shape[0]
    return y


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (
            window,
            r"takes 100 terms for each of 2,901 cells, but neighbours along `i` share all but one .*: write running",
        ),
        (counts, r"takes 3,000 terms for each of 50 cells, but `ids\[j\]` says .*: write `h\[ids\[j\]\] \+= "),
        (alike, r"takes 3,000 terms for each of 50 cells, but no term depends on `i`: write a sum without `i` first"),
        (filtered, None),
        (totals, None),
    ],
)
def test_sums_that_cost_more_than_their_results_need(function: Any, told: str | None) -> None:
    x = np.ones(3000) if function is not counts else np.arange(3000) % 50
    shown = function.profile(x, np.ones(100)) if function is filtered else function.profile(x)
    if told is None:
        assert not shown.warnings
    else:
        assert len(shown.warnings) == 1
        assert re.search(told, shown.warnings[0]), shown.warnings[0]
        assert shown.warnings[0] in str(shown)


def test_limits_rise_to_what_a_nest_was_seen_to_do() -> None:
    limits = MachineLimits(1, ((4, 2e9), (8, 1e9)), ((1 << 17, 4e9), (1 << 22, 3e9), (1 << 26, 1e9)))
    assert limits.raised(1e6, 1e5, 8, 1.0) == limits
    raised = limits.raised(3e9, 1e6, 8, 1.0)
    assert raised.operations == ((4, 2e9), (8, 3e9))
    assert raised.bytes == limits.bytes
    assert limits.raised(0, 5e6, 8, 1e-3).bytes == ((1 << 17, 4e9), (1 << 22, 3e9), (1 << 26, 5e9))
    shown = scores.profile(np.ones((200, 200)), np.ones((200, 200)))
    assert all(each.share_of_limit <= 1.001 for each in shown.nests if each.seconds / each.runs > 1e-5)
