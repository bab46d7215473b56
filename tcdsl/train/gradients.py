"""The gradients of a loss: computed, and kept small."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tcdsl.errors import ConfigurationError, DifferentiationError
from tcdsl.tensors.functions.decorators import TensorFunction
from tcdsl.tensors.functions.layers import Layer
from tcdsl.tensors.graph_linking.code import Code, GradientUpdate
from tcdsl.tensors.graph_linking.graph_linker import leaves
from tcdsl.tensors.graph_staging.graph_recordings import ancestors
from tcdsl.tensors.graphs.location import fault
from tcdsl.tensors.graphs.tensor import Tensor
from tcdsl.tracebacks import user_facing
from tcdsl.train.optimizers import clip_norm, clip_value

__all__ = [
    "checked_loss",
    "clip_gradients",
    "fixed_number",
    "grad_update",
    "number",
    "parameters",
    "trained_parameters",
]


def checked_loss(loss: Any) -> Tensor:
    """``loss`` if it is a tensor of one cell that has a gradient; else an error that says what it is."""
    if not isinstance(loss, Tensor):
        raise fault(
            ConfigurationError,
            f"a {type(loss).__name__} as a loss",
            "a loss is a tensor of a graph, such as ((model(x) - y) ** 2).mean() with x = tc.tensor(...)",
        )
    if not loss.differentiable:
        raise fault(
            DifferentiationError,
            f"the loss `{loss.label}` depends on no parameter",
            'parameters come from tc.param(...), and from strings in an @op, such as `"w" @ x`',
            notes=(f"`{loss.label}` is {loss.rows} {loss.element_type}",),
        )
    if loss.size != 1:
        raise fault(
            DifferentiationError,
            f"the loss `{loss.label}` has {loss.size} cells, not one",
            "sum it up or take the mean: `loss.sum()`, `loss.mean()`",
            notes=(f"`{loss.label}` is {loss.rows}",),
        )
    return loss


@user_facing
def parameters(*sources: Any) -> list[Tensor]:
    """``tc.train.parameters(loss)``: the parameters that a tensor depends on, in the order in which it meets them.

    ``sources`` are tensors, layers, ops, and lists of these; each parameter is given once. `ConfigurationError` for
    anything else.
    """
    found: dict[int, Tensor] = {}
    pending = list(reversed(sources))
    while pending:
        source = pending.pop()
        if isinstance(source, Tensor):
            found.update((id(each), each) for each in ancestors([source]) if each.parameter)
        elif isinstance(source, Layer | TensorFunction):
            pending.extend(reversed(source.parameters.values()))
        elif isinstance(source, list | tuple):
            pending.extend(reversed(source))
        else:
            raise fault(
                ConfigurationError,
                f"a {type(source).__name__} has no parameters",
                "give a loss or another tensor, a layer, an op, or a list of these",
            )
    return list(found.values())


def trained_parameters(loss: Any) -> list[Tensor]:
    """The parameters of ``loss``; `DifferentiationError` if there are none."""
    found = parameters(loss)
    if not found:
        fact = f"`{loss.label}` depends on no parameter" if isinstance(loss, Tensor) else "there are no parameters here"
        raise fault(
            DifferentiationError,
            fact,
            'parameters come from tc.param(...), and from strings in an @op, such as `"w" @ x`; those of a layer '
            "are known after its first call",
        )
    return found


@user_facing
def grad_update(loss: Tensor, wrt: Iterable[Tensor] = ()) -> Code:
    """Code that computes ``loss`` and its gradients: forward pass, gradients to zero, the loss's to 1, backward pass.

    ::

        step = tc.compile(tc.train.grad_update(loss), tc.train.sgd_update(loss, learning_rate=0.1))
        step.run()
        loss.value, w.grad

    ``loss`` has one cell. All parameters, and the leaves made with ``grad=True``, that it depends on get their
    gradients; so do the tensors of ``wrt``, computed ones included. Raises `DifferentiationError` for a loss of another
    size or that depends on no parameter, and for a tensor of ``wrt`` that the loss does not depend on.
    """
    checked_loss(loss)
    needed = ancestors([loss])
    further = [wrt] if isinstance(wrt, Tensor) else list(wrt)
    for tensor in further:
        if not isinstance(tensor, Tensor) or not any(tensor is each for each in needed):
            name = tensor.label if isinstance(tensor, Tensor) else repr(tensor)
            raise fault(
                DifferentiationError,
                f"the loss `{loss.label}` does not depend on `{name}`",
                "`wrt` takes the tensors that the loss was computed from",
            )
        tensor.buffer("grad")
    unique = {id(tensor): tensor for tensor in (*leaves(loss), *further)}
    return Code([GradientUpdate(loss, tuple(unique.values()))])


@user_facing
def clip_gradients(loss: Any, *, norm: float | None = None, value: float | None = None) -> Code:
    """Code that keeps the gradients of all parameters of ``loss`` small, between `grad_update` and an optimizer.

    ::

        tc.compile(grad_update(loss), clip_gradients(loss, norm=1.0), adam_update(loss, learning_rate=1e-3))

    ``norm`` is the largest norm of all gradients together (`clip_norm`), ``value`` the largest magnitude of a cell
    (`clip_value`); with both, cells are cut first. `ConfigurationError` if there is neither.
    """
    trained = trained_parameters(loss)
    items: list[Code] = []
    if value is not None:
        items.append(clip_value(*trained, limit=number("value", value)))
    if norm is not None:
        items.append(clip_norm(*trained, limit=number("norm", norm)))
    if not items:
        raise fault(
            ConfigurationError,
            "clip_gradients() without a limit",
            "say what is limited: `norm=1.0` for all gradients together, `value=0.5` for each cell",
        )
    return Code([item for code in items for item in code.items])


def number(name: str, given: Any) -> float | Tensor:
    """``given`` as a float, or the tensor of one cell that it is; `ConfigurationError` for anything else."""
    if not isinstance(given, Tensor):
        return _float(name, given, f"a float, or a tensor of one cell; a schedule is called: `{name}=schedule(step)`")
    if given.size != 1:
        fact = f"`{name}` has {given.size} cells: `{given.label}` is {given.rows}"
        raise fault(ConfigurationError, fact, "give one number")
    return given


def fixed_number(name: str, given: Any) -> float:
    """``given`` as a float that decides what code is made, so that it is known now."""
    return _float(name, given, "a float: what code is made depends on it")


def _float(name: str, given: Any, wanted: str) -> float:
    scalar = isinstance(given, int | float | np.integer | np.floating)
    if isinstance(given, bool) or not (scalar or (type(given) is np.ndarray and given.ndim == 0)):
        raise fault(ConfigurationError, f"`{name}` is a number, not {given!r}", f"give {wanted}")
    return float(given)
