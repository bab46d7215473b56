"""The program of a whole step, and what the reference interpreter makes of it."""

from __future__ import annotations

import numpy as np
import pytest

import tcdsl as tc
from tcdsl.ir.interpreter.interpreter import interpret
from tests.golden_texts import Golden
from tests.train.regression import Regression


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


@pytest.mark.parametrize("rule", ["sgd", "adam", "adamw", "rmsprop", "lion"])
def test_the_interpreter_agrees(rule: str) -> None:
    problem = Regression("float64")
    count = tc.tensor(2, label="count")
    routine = tc.compile(
        tc.train.grad_update(problem.loss),
        tc.train.clip_gradients(problem.loss, norm=0.5, value=0.3),
        getattr(tc.train, f"{rule}_update")(problem.loss, learning_rate=tc.train.cosine(0.1, 10, warmup=3)(count)),
        tc.train.advance(count),
    )
    for _ in range(3):
        done = interpret(routine.program, [array.copy() for array in routine._arrays()])
        routine.run()
        expected = dict(zip(routine.linked.outputs, done.outputs, strict=True))
        inputs = {
            tensor.name: buffer for tensor, buffer in zip(routine.program.inputs, routine.linked.inputs, strict=True)
        }
        expected.update((inputs[name], array) for name, array in done.updates.items())
        assert {problem.w.buffer("value"), problem.b.buffer("grad"), count.buffer("value")} <= set(expected)
        for buffer, array in expected.items():
            np.testing.assert_allclose(buffer.allocated(), array, atol=1e-12, err_msg=repr(buffer))
