"""Training: gradient updates, optimizers, schedules of learning rates, loops, and files of parameters.

::

    step = tc.compile(tc.train.grad_update(loss), tc.train.adam_update(loss, learning_rate=1e-3))
    for _ in range(100):
        step.run()
    tc.save("model.npz", loss)

Everything that a step does, forward pass, backward pass and update, is one program and one compiled function.
"""

from __future__ import annotations

import sys
from typing import Any

from tcdsl.frontend.names.absent_attributes import missing_attribute
from tcdsl.train.epochs import epochs
from tcdsl.train.gradients import clip_gradients, grad_update, parameters
from tcdsl.train.optimizers import adam, adamw, clip_norm, clip_value, lion, rmsprop, sgd
from tcdsl.train.schedules import advance, constant, cosine, exponential, linear, stepwise
from tcdsl.train.updates import adam_update, adamw_update, lion_update, rmsprop_update, sgd_update, update

__all__ = [
    "adam",
    "adam_update",
    "adamw",
    "adamw_update",
    "advance",
    "clip_gradients",
    "clip_norm",
    "clip_value",
    "constant",
    "cosine",
    "epochs",
    "exponential",
    "grad_update",
    "linear",
    "lion",
    "lion_update",
    "parameters",
    "rmsprop",
    "rmsprop_update",
    "sgd",
    "sgd_update",
    "stepwise",
    "update",
]


def __getattr__(name: str) -> Any:
    raise missing_attribute("module tcdsl.train", name, sys.modules[__name__])
