"""Programs as formulas in TeX."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcdsl import cd, op
from tcdsl.runtime.displays.formulas import formula_of_name, formulas


@op
def product(A: real[N, K], B: real[K, M]) -> Any:
    C[i, j] += A[i, k] * B[k, j]
    return C


@op
def choice(x: real[N], alpha: Any) -> Any:
    y[i] = sqrt(x[i] ** 2 + 1e-5) if x[i] > 0 and i < 3 else abs(x[clamp(i - 1)]) / (alpha + 1)
    return y


@op
def extremes(x: real[N]) -> Any:
    top[()] >>= x[i], x[i] < 9
    w = x[i] - top
    y[i] = w * w / -w
    return y


@op
def histogram(p: int64[N], x: real[N], *, size: int) -> Any:
    count: real[size]
    count[p[i]] += x[i]
    return count


@op
def heat(u: real[N], n: Any) -> Any:
    for t in range(n):  # noqa: B007  # it is what the formula shows
        u[i] += 0.1 * (u[i - 1] - 2 * u[i] + u[i + 1])
    return u


@cd
def descend(p: real[N], g: Any) -> None:
    p -= 0.5 * g


X = np.ones(5)
CASES = [
    (
        product,
        (np.ones((2, 3)), np.ones((3, 4))),
        r"""
C_{i, j} = \sum_{0 \le k < \mathrm{K}} A_{i, k} \, B_{k, j}  |  0 \le i < \mathrm{N},\; 0 \le j < \mathrm{M}
""",
    ),
    (
        choice,
        (X, 2.0),
        r"""
y_{i} = \begin{cases} \sqrt{x_{i}^{2} + 10^{-5}} & \text{if } x_{i} > 0 \wedge i < 3 \\
\frac{\left| x_{\operatorname{clamp}(i - 1)} \right|}{\alpha + 1} & \text{otherwise}
\end{cases}  |  0 \le i < \mathrm{N}
""",
    ),
    (
        extremes,
        (X,),
        r"""
\mathit{top} = \max_{\substack{0 \le i < \mathrm{N} \\ x_{i} < 9}} x_{i}  |
y_{i} = \frac{w \, w}{-w}  |  0 \le i < \mathrm{N},\; w = x_{i} - \mathit{top}
""",
    ),
    (
        heat,
        (X, 3),
        r"""
\text{for } t = 0, \dots, \mathrm{n} - 1:  |
\quad u^{(3)}_{i} = u^{(2)}_{i} + 0.1 \, \left( u^{(2)}_{i - 1} - 2 \, u^{(2)}_{i} + u^{(2)}_{i + 1}
\right)  |  0 < i \le -2 + \mathrm{N}
\quad u^{(2)} \leftarrow u^{(3)}  |
u^{(4)} = u^{(2)}  |  \text{after } t
""",
    ),
    (descend, (X.copy(), X), r"p^{(2)}_{i} = p_{i} - 0.5 \, g_{i}  |  0 \le i < \mathrm{N}"),
]


@pytest.mark.parametrize(("function", "arguments", "wanted"), CASES, ids=lambda each: getattr(each, "__name__", ""))
def test_statements(function: Any, arguments: tuple[Any, ...], wanted: str) -> None:
    found = " ".join(f"{text} | {where}" for text, where in formulas(function.program(*arguments)))
    assert found.split() == wanted.split()


def test_cells_that_several_points_may_add_to() -> None:
    [(text, where)] = formulas(histogram.program(np.array([0, 1]), np.ones(2), size=3))
    assert (text, where) == (r"\mathit{count}_{p_{i}} \mathrel{+}= x_{i}", r"0 \le i < \mathrm{N}")


def test_names() -> None:
    names = {"x": "x", "x_2": "x^{(2)}", "alpha": r"\alpha", "top": r"\mathit{top}", "d_top": r"\mathit{d\_top}"}
    assert {name: formula_of_name(name) for name in names} == names
