"""Optimizers on all parameters of a loss.

::

    tc.train.adam_update(loss, learning_rate=1e-3)           # adam(p, learning_rate=1e-3) for each parameter p
    tc.train.update([w, b], my_rule, learning_rate=0.1)      # any @cd function, on these parameters alone
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature, signature
from typing import Any

from tcdsl.errors import ConfigurationError
from tcdsl.tensors.graph_linking.code import Code, sequence
from tcdsl.tensors.graphs.location import fault
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


def _on_all(rule: Callable[..., Any]) -> Callable[..., Code]:
    # The rule on every parameter, with its numbers and their defaults.
    numbers = [each for each in signature(rule).parameters.values() if each.kind is Parameter.KEYWORD_ONLY]
    taken = Signature([Parameter("loss", Parameter.POSITIONAL_OR_KEYWORD), *numbers])

    def update_all(*arguments: Any, **numbers: Any) -> Code:
        try:
            bound = taken.bind(*arguments, **numbers)
        except TypeError as error:
            takes = ", ".join(taken.parameters)
            raise fault(ConfigurationError, str(error), f"`{rule.__name__}_update` takes {takes}") from None
        # Runs may set the numbers that are not given here too.
        bound.apply_defaults()
        loss = bound.arguments.pop("loss")
        return update(loss, rule, **{name: _decided(name, value) for name, value in bound.arguments.items()})

    name = rule.__name__
    update_all.__name__ = update_all.__qualname__ = f"{name}_update"
    update_all.__doc__ = f"""`{name}` on every parameter: ``tc.train.{name}_update(loss, learning_rate=1e-3)``.

    Numbers may be floats, which runs can set by name, and tensors of one cell; a momentum is decided here.
    """
    update_all.__signature__ = taken  # type: ignore[attr-defined]
    return user_facing(update_all)


def _decided(name: str, value: Any) -> Any:
    # Rules branch on these two.
    if name == "nesterov":
        return bool(value)
    return fixed_number(name, value) if name == "momentum" else number(name, value)


sgd_update, adam_update, adamw_update = _on_all(sgd), _on_all(adam), _on_all(adamw)
rmsprop_update, lion_update = _on_all(rmsprop), _on_all(lion)
