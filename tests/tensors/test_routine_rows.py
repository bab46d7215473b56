"""What a step has written keeps the rows of its memory for what is computed after it."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

import tcdsl as tc
from tcdsl import cd
from tcdsl.tensors.graph_linking.code import Code, GradientUpdate


@cd
def descend(p, *, learning_rate):
    p -= learning_rate * p.grad


def test_an_updated_parameter_composes_as_before() -> None:
    x = np.random.default_rng(0).normal(size=(5, 2, 3))
    w = tc.param("w", o=4)
    y = w @ tc.tensor(x, batch=1)
    loss = (y * y).sum()
    code = Code([GradientUpdate(loss, (w,))])
    # `y` is wanted after the update, so it is computed from the new `w`, whose input axes meet 2 and 3.
    step = tc.compile(code, descend(w, learning_rate=0.01), y)
    start = np.array(w.value)
    step.run()
    gradient = np.einsum("no,nij->oij", 2 * np.einsum("oij,nij->no", start, x), x)
    assert_allclose(w.value, start - 0.01 * gradient, rtol=1e-10)
    assert_allclose(y.value, np.einsum("oij,nij->no", w.value, x), rtol=1e-10)
