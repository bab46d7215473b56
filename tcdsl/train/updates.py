"""Optimizers on all parameters of a loss.

::

    tc.train.adam_update(loss, learning_rate=1e-3)           # adam(p, learning_rate=1e-3) for each parameter p
    tc.train.update([w, b], my_rule, learning_rate=0.1)      # any @cd function, on these parameters alone
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tcdsl.errors import ConfigurationError
from tcdsl.tensors.graphs.location import fault
from tcdsl.tensors.linking.code import Code, sequence
from tcdsl.tracebacks import user_facing
from tcdsl.train.gradients import fixed_number, number, trained_parameters
from tcdsl.train.optimizers import adam, adamw, lion, rmsprop, sgd

__all__ = ["adam_update", "adamw_update", "lion_update", "rmsprop_update", "sgd_update", "update"]


@user_facing
def update(loss: Any, rule: Callable[..., Any], **configuration: Any) -> Code:
    """Code that calls ``rule(p, **configuration)`` for every parameter ``p`` of ``loss``.

    ::

        @cd
        def sign_descent(p, *, learning_rate):
            p -= learning_rate * sign(p.grad)

        step = tc.compile(tc.train.grad_update(loss), tc.train.update(loss, sign_descent, learning_rate=0.01))

    ``loss`` may also be a layer, or a list of parameters and layers: what is not in it stays as it is. Raises
    `DifferentiationError` if there are no parameters, `ConfigurationError` if the rule gives no code.
    """
    made = [rule(parameter, **configuration) for parameter in trained_parameters(loss)]
    if not all(isinstance(code, Code) for code in made):
        raise fault(ConfigurationError, f"`{getattr(rule, '__name__', rule)}` gives no code", "decorate it with @cd")
    return sequence(made)


def _with_numbers(loss: Any, rule: Callable[..., Any], nesterov: bool | None = None, **given: Any) -> Code:
    # Rules branch on the momentum, so it is decided here.
    numbers = {name: (fixed_number if name == "momentum" else number)(name, value) for name, value in given.items()}
    return update(loss, rule, **numbers, **({} if nesterov is None else {"nesterov": bool(nesterov)}))


@user_facing
def sgd_update(
    loss: Any, *, learning_rate: Any, momentum: float = 0.0, weight_decay: Any = 0.0, nesterov: bool = False
) -> Code:
    """`sgd` on every parameter of ``loss``: ``tc.train.sgd_update(loss, learning_rate=0.1, momentum=0.9)``.

    Numbers may be floats, which runs can set by name, and tensors of one cell; ``momentum`` is decided here.
    """
    return _with_numbers(
        loss, sgd, learning_rate=learning_rate, momentum=momentum, weight_decay=weight_decay, nesterov=nesterov
    )


@user_facing
def adam_update(
    loss: Any,
    *,
    learning_rate: Any,
    beta1: Any = 0.9,
    beta2: Any = 0.999,
    epsilon: Any = 1e-8,
    weight_decay: Any = 0.0,
) -> Code:
    """`adam` on every parameter of ``loss``: ``tc.train.adam_update(loss, learning_rate=1e-3)``."""
    return _with_numbers(
        loss, adam, learning_rate=learning_rate, beta1=beta1, beta2=beta2, epsilon=epsilon, weight_decay=weight_decay
    )


@user_facing
def adamw_update(
    loss: Any,
    *,
    learning_rate: Any,
    beta1: Any = 0.9,
    beta2: Any = 0.999,
    epsilon: Any = 1e-8,
    weight_decay: Any = 0.01,
) -> Code:
    """`adamw` on every parameter of ``loss``: ``tc.train.adamw_update(loss, learning_rate=1e-3, weight_decay=0.1)``."""
    return _with_numbers(
        loss, adamw, learning_rate=learning_rate, beta1=beta1, beta2=beta2, epsilon=epsilon, weight_decay=weight_decay
    )


@user_facing
def rmsprop_update(
    loss: Any,
    *,
    learning_rate: Any,
    decay: Any = 0.99,
    epsilon: Any = 1e-8,
    momentum: float = 0.0,
    weight_decay: Any = 0.0,
) -> Code:
    """`rmsprop` on every parameter of ``loss``: ``tc.train.rmsprop_update(loss, learning_rate=1e-2)``."""
    return _with_numbers(
        loss,
        rmsprop,
        learning_rate=learning_rate,
        decay=decay,
        epsilon=epsilon,
        momentum=momentum,
        weight_decay=weight_decay,
    )


@user_facing
def lion_update(loss: Any, *, learning_rate: Any, beta1: Any = 0.9, beta2: Any = 0.99, weight_decay: Any = 0.0) -> Code:
    """`lion` on every parameter of ``loss``: ``tc.train.lion_update(loss, learning_rate=1e-4, weight_decay=0.1)``."""
    return _with_numbers(loss, lion, learning_rate=learning_rate, beta1=beta1, beta2=beta2, weight_decay=weight_decay)
