"""The program of a whole step."""

from __future__ import annotations

import numpy as np

import tcdsl as tc
from tests.golden_texts import Golden


def step(dtype: str) -> tc.Routine:
    batch_n = tc.static_index("batch_n", 4)
    x = tc.tensor(np.zeros((4, 5, 3), dtype), batch=2, label="x")[batch_n]
    w = tc.param("w", o=2, i=3, init=1.0)
    loss = ((w @ x) ** 2).mean()
    return tc.compile(
        tc.train.grad_update(loss),
        tc.train.clip_gradients(loss, norm=1.0),
        tc.train.adamw_update(loss, learning_rate=0.1),
    )


def test_program(golden: Golden) -> None:
    golden("training/adamw_program", str(step("float32")))
