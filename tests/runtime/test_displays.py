"""What notebooks show of functions and explanations."""

from __future__ import annotations

from typing import Any

import numpy as np

from tcdsl import cd, op


@op
def weighted(x: Any, *, below: float = 2.0) -> Any:
    y[i] = x[i] * 2 if x[i] < below else 0
    return y


@cd
def doubled(p: Any) -> None:
    p *= 2


def test_a_function_that_was_not_called_shows_its_source() -> None:
    shown = weighted._repr_html_()
    assert "<b>op weighted</b>(x" in shown
    assert "y[i] = x[i] * <span" in shown
    assert "&lt; below" in shown


def test_functions_show_formulas_for_each_kind_of_call() -> None:
    for dtype in ("float32", "float64"):
        weighted(np.ones(3, dtype))
    doubled(np.ones((2, 2)))
    shown = weighted._repr_html_()
    assert shown.count("<details") == 2
    assert "x: float64[x_0], below: float64 → y: float64[x_0]" in shown
    assert r"y_{i} &amp;= \begin{cases}" in shown.replace(" &= ", " &amp;= ")
    assert "<" not in shown.split(r"\begin{aligned}")[1].split(r"\end{aligned}")[0]
    assert "p: float64[p_0, p_1], changes p" in doubled._repr_html_()


def test_listings_fold_and_are_escaped() -> None:
    shown = weighted.explain("ir", np.ones(3))._repr_html_()
    assert "<summary>" in shown
    assert "x[i] &lt; below" in shown
    assert shown.count("<details") == shown.count("</details>")
