"""Programs of many steps: what all steps contribute to is summed along the way, few arrays at a time."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tcdsl.autodiff.modes import gradient, tangent
from tcdsl.autodiff.statement_derivatives import recomputation
from tcdsl.rewrite import loop_trimming
from tests.language.running_programs import program


@op
def relaxed(x, c, *, steps):
    for _ in range(steps):
        y = output(x.shape[0])
        y[i] = x[i] + c * (get(x[i - 1], 0.0) - x[i])
        x = y
    return x


@op
def loss(x, c, *, steps):
    y = relaxed(x, c, steps=steps)
    total[()] += y[i] ** 2
    return total


def program_of(steps):
    x = np.linspace(0, 1, 9)
    slope = tc.grad(loss, argnums=(0, 1))
    return slope, x, slope.explain("ir", x, 0.1, steps=steps)


def test_no_statement_reads_all_steps():
    _, _, text = program_of(24)
    sums = [line for line in text.splitlines() if line.startswith("d_c")]
    assert 3 <= len(sums) <= 12
    for line in sums:
        assert len(set(re.findall(r"\b(d_\w+|y\w*|x)\[", line))) <= 9  # eight, and the target


def test_sums_are_taken_along_the_way():
    slope, _, text = program_of(24)
    lines = text.splitlines()
    sums = [k for k, line in enumerate(lines) if line.startswith("d_c")]
    steps = [k for k, line in enumerate(lines) if re.match(r"d_(y|x)\w*\[", line)]
    assert sum(k < steps[-1] for k in sums) >= len(sums) - 2
    # So the derivatives by the states share memory: it holds the states and few arrays more.
    size, count = 50_000, 24
    memory = slope.explain("loops", np.zeros(size), 0.1, steps=count).splitlines()[-1]
    temporaries = int(re.search(r"(\d+) of temporaries", memory)[1])
    assert temporaries < 8 * size * (count + 8)


def test_gradients_of_many_steps():
    slope, x, _ = program_of(24)
    d_x, d_c = slope(x, 0.1, steps=24)
    matrix = np.eye(9) + 0.1 * (np.eye(9, k=-1) - np.eye(9))
    power = np.linalg.matrix_power(matrix, 24)
    np.testing.assert_allclose(d_x, 2 * power.T @ power @ x, rtol=1e-12)
    change = np.eye(9, k=-1) - np.eye(9)
    by_c = sum(
        np.linalg.matrix_power(matrix, k) @ change @ np.linalg.matrix_power(matrix, 23 - k) @ x for k in range(24)
    )
    np.testing.assert_allclose(d_c, 2 * (power @ x) @ by_c, rtol=1e-12)


@op
def folded(x, *, steps):
    t = x[i]
    for _ in range(steps):
        t = max(t, 1 - t) * 1.5 - 0.6
    total[()] += t * x[i]
    return total


@op
def branched(x, *, steps):
    t = x[i]
    for _ in range(steps):
        t = where(t > 0.5, t * t, 1.1 - t)
    total[()] += t * x[i]
    return total


def derivatives(chain: Any, x: np.ndarray, steps: int) -> np.ndarray:
    """By the chain rule, step by step: differences are useless, because these chains are chaotic."""
    t, d = x, np.ones_like(x)
    for _ in range(steps):
        if chain is folded:
            t, d = np.maximum(t, 1 - t) * 1.5 - 0.6, np.where(t > 1 - t, d, -d) * 1.5
        else:
            t, d = np.where(t > 0.5, t * t, 1.1 - t), np.where(t > 0.5, 2 * t * d, -d)
    return t + d * x


@pytest.mark.parametrize("chain", [folded, branched], ids=lambda chain: chain.__name__)
def test_branches_on_what_branches_have_computed_grow_with_their_number(chain: Any) -> None:
    # Each step needs the one before in some of its branches only: it is computed once, and not in each of them.
    x = np.linspace(0.1, 0.9, 7) + 0.013
    slope = tc.grad(chain)
    lengths = [len(slope.explain("loops", x, steps=steps)) for steps in (4, 8, 16)]
    assert lengths[2] < 2.5 * lengths[1] < 6 * lengths[0]
    np.testing.assert_allclose(slope(x, steps=16), derivatives(chain, x, 16), rtol=1e-9)


@op
def chosen(x, *, steps):
    t = x[i]
    for _ in range(steps):
        t = where(t > 0, where(t > 1, sin(t) * x[i + 1], exp(-t)), cos(t))
    total[()] += t * t
    return total


def test_second_derivatives_of_choices_on_what_choices_have_computed_grow_with_their_number():
    # Conditions mention what choices have computed: written out, each level would be several times the one before.
    x = np.array([0.3, -0.7, 1.4, 2.1, -1.2, 0.9])
    pushed = [
        len(str(tangent(gradient(chosen.program(x, steps=steps), ["x"]), ["x"]).statements)) for steps in (2, 3, 5)
    ]
    assert pushed[1] < 3 * pushed[0]
    assert pushed[2] < 4 * pushed[1]
    step = 1e-6
    more, less = (tc.grad(chosen)(x + e * x[::-1], steps=3) for e in (step, -step))
    found = tc.hvp(lambda x: chosen(x, steps=3), x, x[::-1].copy())
    np.testing.assert_allclose(found, (more - less) / (2 * step), rtol=1e-6, atol=1e-7)


def test_code_of_choices_that_several_choices_need_grows_with_their_number():
    # What several lazy places need is computed before them: copied into each, it would double with every level.
    @op
    def turned(x, *, steps):
        d = tc.grad(chosen)(x, steps=steps)
        return sum(d[i] * x[i])

    x = np.array([0.3, -0.7, 1.4, 2.1, -1.2, 0.9])
    lengths = [len(tc.grad(turned).explain("loops", x, steps=steps)) for steps in (2, 3)]
    assert lengths[1] < 2 * lengths[0]
    step = 1e-6
    more, less = (turned(x + step * x[::-1], steps=3), turned(x - step * x[::-1], steps=3))
    np.testing.assert_allclose(tc.grad(turned)(x, steps=3) @ x[::-1], (more - less) / (2 * step), rtol=1e-6)


def test_gradients_of_branches_in_branches_ask_the_same_of_a_loop_once(monkeypatch: pytest.MonkeyPatch) -> None:
    # At each depth what all loops inside need is asked: what has been told of a body at one depth serves the others.
    depth = 40
    lines = [f"{' ' * k}if x[0] > {k}.0:" for k in range(depth)]
    deep = program("\n".join([*lines, *(f"{' ' * k}return x[0] * {k}.5" for k in range(depth, -1, -1))]), "x")
    asked: list[Any] = []
    once = loop_trimming._trimmed
    monkeypatch.setattr(loop_trimming, "_trimmed", lambda *given: asked.append(given) or once(*given))
    gradient(deep.program(np.ones(1)), ["x"])
    assert len(asked) < depth**2


def test_gradients_of_long_stencils_ask_for_each_way_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    for length in (50, 100):
        terms = " + ".join(f"{k}.5 * x[i + {k}]" for k in range(length))
        stencil = program(f"y[i] = {terms}\nreturn y.sum()", "x").program(np.ones(300))
        ways: list[int] = []
        told = recomputation._Above.leading_to

        def counted(above: Any, leaf: str, told: Any = told, ways: list[int] = ways) -> Any:
            way = told(above, leaf)
            ways.append(len(way))
            return way

        with monkeypatch.context() as changed:
            changed.setattr(recomputation._Above, "leading_to", counted)
            gradient(stencil, ["x"])
        counts.append(sum(ways))
    assert 0 < counts[1] <= 2 * counts[0]
