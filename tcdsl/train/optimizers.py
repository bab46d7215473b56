"""Optimizers: one `@cd` function each, to read, call and copy.

::

    code = adam(w, learning_rate=1e-3)                 # on a tensor: its gradient, and buffers that the code keeps
    adam(w, g, m, v, step, learning_rate=1e-3)         # on arrays: all of them are changed in place

``p`` is the parameter and ``g`` its gradient; the buffers that follow start at zero and have the shape of ``p``, but
for ``step``, the number of steps done, an integer of rank 0. On a `Tensor` the gradient is ``p.grad``, and a buffer
that is not given is state: `output` introduces a name which is read before it is written. On arrays, give all of them.

Numbers that Python does not branch on can be set at each run of a routine: ``step.run(learning_rate=0.01)``. A
momentum of zero keeps no buffer, so a momentum is decided when the code is made.
"""

from __future__ import annotations

from typing import Any

from tcdsl.frontend.staging.declarations import output
from tcdsl.primitives import max, min, sign, sqrt, square  # noqa: A004  # the language's
from tcdsl.tensors.functions.decorators import cd

__all__ = ["adam", "adamw", "clip_norm", "clip_value", "lion", "rmsprop", "sgd"]


@cd
def sgd(
    p: Any,
    g: Any = None,
    velocity: Any = None,
    *,
    learning_rate: float,
    momentum: float = 0.0,
    weight_decay: float = 0.0,
    nesterov: bool = False,
) -> None:
    """Stochastic gradient descent: ``sgd(w, learning_rate=0.1, momentum=0.9)``.

    The step is the gradient plus ``weight_decay * p``; with a momentum, the velocity, which accumulates these; with
    ``nesterov``, the gradient and where the velocity leads from there (Sutskever et al., 2013).
    """
    delta = (p.grad if g is None else g) + weight_decay * p
    if momentum > 0.0:
        velocity = output() if velocity is None else velocity
        velocity = momentum * velocity + delta
        delta = delta + momentum * velocity if nesterov else velocity
    p -= learning_rate * delta


@cd
def adam(
    p: Any,
    g: Any = None,
    m: Any = None,
    v: Any = None,
    step: Any = None,
    *,
    learning_rate: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    weight_decay: float = 0.0,
) -> None:
    """Adam: ``adam(w, learning_rate=1e-3)`` (Kingma and Ba, 2015, algorithm 1).

    ``m`` and ``v`` are running means of the gradient and of its square; dividing by ``1 - beta**step`` makes up for
    their start at zero. ``weight_decay * p`` is added to the gradient.
    """
    m = output() if m is None else m
    v = output() if v is None else v
    step = output() if step is None else step
    step = step + 1
    rate = (learning_rate / (1 - beta1**step)).astype(p.dtype)
    root = sqrt(1 - beta2**step).astype(p.dtype)
    delta = (p.grad if g is None else g) + weight_decay * p
    m = beta1 * m + (1 - beta1) * delta
    v = beta2 * v + (1 - beta2) * square(delta)
    p -= rate * m / (sqrt(v) / root + epsilon)


@cd
def adamw(
    p: Any,
    g: Any = None,
    m: Any = None,
    v: Any = None,
    step: Any = None,
    *,
    learning_rate: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    weight_decay: float = 0.01,
) -> None:
    """Adam with a weight decay that its running means do not see: ``adamw(w, learning_rate=1e-3)``.

    The parameter shrinks by ``learning_rate * weight_decay`` of itself (Loshchilov and Hutter, 2019, algorithm 2).
    """
    p -= learning_rate * weight_decay * p
    adam(p, g, m, v, step, learning_rate=learning_rate, beta1=beta1, beta2=beta2, epsilon=epsilon)


@cd
def rmsprop(
    p: Any,
    g: Any = None,
    v: Any = None,
    velocity: Any = None,
    *,
    learning_rate: float,
    decay: float = 0.99,
    epsilon: float = 1e-8,
    momentum: float = 0.0,
    weight_decay: float = 0.0,
) -> None:
    """RMSProp: ``rmsprop(w, learning_rate=1e-2)`` (Hinton, 2012, lecture 6e).

    The gradient is divided by the root of ``v``, the running mean of its square; ``epsilon`` is added to the root.
    """
    v = output() if v is None else v
    delta = (p.grad if g is None else g) + weight_decay * p
    v = decay * v + (1 - decay) * square(delta)
    delta = delta / (sqrt(v) + epsilon)
    if momentum > 0.0:
        velocity = output() if velocity is None else velocity
        velocity = momentum * velocity + delta
        delta = velocity
    p -= learning_rate * delta


@cd
def lion(
    p: Any,
    g: Any = None,
    m: Any = None,
    *,
    learning_rate: float,
    beta1: float = 0.9,
    beta2: float = 0.99,
    weight_decay: float = 0.0,
) -> None:
    """Lion: ``lion(w, learning_rate=1e-4)`` (Chen et al., 2023, algorithm 2): every cell moves by the learning rate.

    The direction is the sign of a mean of momentum and gradient; the weight decay is that of `adamw`.
    """
    m = output() if m is None else m
    delta = p.grad if g is None else g
    p -= learning_rate * (sign(beta1 * m + (1 - beta1) * delta) + weight_decay * p)
    m = beta2 * m + (1 - beta2) * delta


@cd
def clip_value(*parameters: Any, limit: float) -> None:
    """Bring every cell of the gradients between ``-limit`` and ``limit``: ``clip_value(w, b, limit=1.0)``.

    On arrays the arguments are the gradients themselves.
    """
    for g in [getattr(p, "grad", p) for p in parameters]:
        g[...] = min(max(g, -limit), limit)


@cd
def clip_norm(*parameters: Any, limit: float) -> None:
    """Scale the gradients by one factor so that the norm of all their cells together is at most ``limit``.

    ``clip_norm(w, b, limit=1.0)``; on arrays the arguments are the gradients themselves (Pascanu et al., 2013).
    """
    gradients = [getattr(p, "grad", p) for p in parameters]
    total = 0.0
    for g in gradients:
        total = total + square(g).sum()
    scale = min(1.0, limit / (sqrt(total) + 1e-6))
    for g in gradients:
        g *= scale
