"""Layers: ops that are configured once and own their parameters.

::

    @op
    def mlp_layer(x, *, label, hid_dim):
        return relu("w" @ x + "b"[hid_dim])

    layer = mlp_layer(label="L1", hid_dim=16)       # configuration only: a layer
    h = layer(x)                                    # its parameters w.L1 and b.L1 are the same at every call
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tcdsl.tensors.functions.parameters import Parameters
from tcdsl.tensors.graphs.tensor import Tensor
from tcdsl.tracebacks import user_facing

if TYPE_CHECKING:
    from tcdsl.runtime.function import DecoratedFunction

__all__ = ["Layer", "configuration_labels", "describe"]


def configuration_labels(configuration: Mapping[str, Any]) -> tuple[str, ...]:
    """The label that a configuration gives to parameters: its ``label``, or that of its ``config``."""
    given = configuration.get("label", getattr(configuration.get("config"), "label", ()))
    return (given,) if isinstance(given, str) else tuple(map(str, given or ()))


def describe(function: DecoratedFunction, configuration: Mapping[str, Any]) -> str:
    """``mlp_layer(hid_dim=16)``."""
    return f"{function.__name__}({', '.join(f'{name}={value!r}' for name, value in configuration.items())})"


class Layer:
    """A configured op: call it with tensors or arrays. ``layer["w"]`` is its parameter of that name."""

    def __init__(self, function: DecoratedFunction, configuration: Mapping[str, Any]) -> None:
        self.function = function
        self.configuration = dict(configuration)
        self.description = describe(function, configuration)
        self.scope = Parameters(function.__name__, function.source, configuration_labels(configuration))
        self.__name__ = function.__name__

    @user_facing
    def __call__(self, *arguments: Any) -> Any:
        """The op on these arguments, with this layer's configuration and parameters."""
        from tcdsl.tensors.functions.tensor_calls import call_layer

        return call_layer(self, arguments)

    @property
    def parameters(self) -> dict[str, Tensor]:
        """Its parameters by label, with those of the layers inside; the first call declares them."""
        return dict(self.scope.by_label())

    def __getitem__(self, name: str) -> Tensor:
        found = self.scope.find(name)
        found = self.parameters.get(name) if found is None else found
        if found is None:
            known = ", ".join(self.parameters) or "none yet: a layer's first call declares them"
            raise KeyError(f"{self.description} has no parameter {name!r}; it has {known}")
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return Layer, (self.function, self.configuration), self.scope.declared

    def __setstate__(self, declared: Any) -> None:
        self.scope.declared = declared

    def __repr__(self) -> str:
        return f"<layer {self.description}>"
