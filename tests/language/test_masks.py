"""Masks, as in NumPy: `y[y < 0] = 0` gives one number to the cells where they are true, `y[m] = x[m]` those of x."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tests.language.outcomes import refusal
from tests.language.running_programs import check, program

Y, X, K = (np.array(each) for each in ([0.5, -1.0, 2.0, -0.25], [[1.0, -2.0], [-3.0, 4.0], [0.5, 0.0]], [0, 1, 2, 3]))

STORES = [
    ("y[y < 0] = 0", Y),
    ("y[(y > 0.1) & (y < 1.5)] *= y[0]", Y),
    ("m = y > 0.1\ny[~m] = m.sum()", Y),
    ("y[y == y.max()] //= 0.3", Y),
    ("for t in range(y.shape[0]):\n    y[y < 0.5 * t] += y[t]", Y),
    ("y[y < 0] = y[0] if y[1] > 0 else y[2]", Y),
    ("y[abs(y) > 1] /= 2.0", X),
    ("y[y[:, 0] > 0] = 7.5", X),
    ("y[y % 2 == 0] -= 3", K),
    ("w = y[1:]\nw[w > 0] = -2.0\ny[1:] = w", Y),
    ("y[y < 0] = -2 * y[y < 0]", Y),
    ("z = y[::-1] * 1\nm = (y < 0) | (z > 1)\ny[m] -= np.maximum(z[m], y[m] ** 2)", Y),
    ("m = y < 0\nw = y[m]\ny[0] = 100.0\ny[m] = w + 1", Y),
    ("y[0] = np.sum(y[y > 0])\ny[1] = y[y > 0].sum() / (y > 0).sum() - 1", Y),
    ("for t in range(y.shape[0]):\n    w = y[y > 0.2 * t]\n    y[t] = np.mean(w * w) + np.prod(w)", Y),
    ("y[(y > 0) & (y < 3)] = 1 + y[(y > 0) & (y < 3)]", X),
]


@pytest.mark.parametrize("decorator", ["op", "cd"])
@pytest.mark.parametrize(("body", "y"), STORES)
def test_cells_where_a_mask_is_true_take_one_number(body: str, y: Any, decorator: str) -> None:
    names = {"y": y.copy(), "abs": np.abs, "np": np}
    exec(body, names)
    check(program(f"{body}\nreturn y" if decorator == "op" else body, "y", decorator=decorator), (y,), names["y"])


def test_accumulators_keep_their_meaning_and_derivatives_go_through() -> None:
    check(program("k[k > 1] >>= 3\nreturn k", "k"), (K,), np.array([0, 1, 3, 3]))
    tc.check_grads(program("y[y < 0] *= y[0]\nreturn y * y", "y"), (Y,))
    tc.check_grads(program("m = y < 1\ny[m] = y[m] ** 2\nreturn y * y[y > 0].mean()", "y"), (Y,))


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("y[y < 0] = x", "a mask among the indices of a part of `y`"),
        ("y[y < 0, 0] = 1", "a mask among the indices of a part of `y`"),
        ("y[y < 0] = x[x < 0.5]", "a mask among the indices of a part of `y`"),
        ("y = y[y < 0]", "how many cells it leaves only the call knows"),
        ("y = y[y < 0] + y", "how many cells it leaves only the call knows"),
        ("y[0] = y[y > 0].max()", "how many cells it leaves only the call knows"),
        ("y = y[y > 0] @ y[y > 0]", "how many cells it leaves only the call knows"),
        ("y[0] = y[y > 0].shape[0]", "how many cells it leaves only the call knows"),
        ("y[0] = x[y > 0].sum()", "the mask has the extent y_0 = 4 for axis 0 of `x`, which has x_0 = 3"),
        ("y[x > 0] = 1", "the mask has the extent x_0 = 3 for axis 0 of `y`, which has y_0 = 4"),
    ],
)
def test_other_stores_by_masks_are_errors(statement: str, message: str) -> None:
    y, x = (X, X) if ", 0]" in statement else (Y, X[:, 0])
    assert message in refusal(tc.TcdslError, program(f"{statement}\nreturn y", "y, x"), y, x)
