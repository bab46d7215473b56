"""Layers, and whose parameters a call declares: an op's own, or those of the layer that its configuration makes.

::

    @op
    def mlp_layer(x, *, label, hid_dim):
        return relu("w" @ x + "b"[hid_dim])

    layer = mlp_layer(label="L1", hid_dim=16)       # configuration only: a layer
    h = layer(x)                                    # its parameters w.L1 and b.L1 are the same at every call
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from tcdsl.errors import ConfigurationError
from tcdsl.frontend.names.absent_attributes import instead_of_attribute, missing_attribute
from tcdsl.frontend.staging.declared_parameters import current_parameters
from tcdsl.frontend.staging.session import current_session
from tcdsl.runtime.decorated import run_inline
from tcdsl.runtime.function import DecoratedFunction
from tcdsl.tensors.functions.parameters import Declaration, Parameters
from tcdsl.tensors.functions.tensor_calls import call_op, code_of
from tcdsl.tensors.graphs.location import fault
from tcdsl.tensors.graphs.tensor import Tensor
from tcdsl.tracebacks import user_facing, user_location

if TYPE_CHECKING:
    from tcdsl.runtime.displays.tables import Table

__all__ = ["Layer", "call_outside", "configured", "parameters_of", "scope_of_inner_call"]


def _labels(configuration: Mapping[str, Any]) -> tuple[str, ...]:
    """The label that a configuration gives to parameters: its ``label``, or that of its ``config``."""
    given = configuration.get("label", getattr(configuration.get("config"), "label", ()))
    return (given,) if isinstance(given, str) else tuple(map(str, given or ()))


def _describe(function: DecoratedFunction, configuration: Mapping[str, Any]) -> str:
    """``mlp_layer(hid_dim=16)``."""
    return f"{function.__name__}({', '.join(f'{name}={value!r}' for name, value in configuration.items())})"


class ParametersByLabel(dict[str, Tensor]):
    """``layer.parameters``: a dict, which is called where users know a method of that name."""

    @user_facing
    def __call__(self, *_: Any, **_options: Any) -> Any:
        hint = instead_of_attribute("a layer", "parameters")
        raise fault(ConfigurationError, "`parameters` is a dict, and no method", hint)


class Layer:
    """A configured op: call it with tensors or arrays. ``layer["w"]`` is its parameter of that name."""

    @user_facing
    def __init__(self, function: DecoratedFunction, configuration: Mapping[str, Any]) -> None:
        if not isinstance(function, DecoratedFunction) or not isinstance(configuration, Mapping):
            hint = "call an op with its configuration alone: `layer = mlp_layer(hid_dim=16)`"
            raise fault(ConfigurationError, f"no layer can be made of {function!r}", hint)
        self.function = function
        self.configuration = dict(configuration)
        self.description = _describe(function, configuration)
        self.scope = Parameters(function.__name__, function.source, _labels(configuration))
        self.__name__ = function.__name__

    @user_facing
    def __call__(self, *arguments: Any) -> Any:
        """The op on these arguments, with this layer's configuration and parameters."""
        if current_session() is not None:
            # Inside a decorated function its statements join that program.
            with self.scope.call():
                return run_inline(self.function, arguments, self.configuration, declared=True)
        return call_op(self.function, *self.function.signature.split(arguments, self.configuration), self.scope)

    @property
    def parameters(self) -> ParametersByLabel:
        """Its parameters by label, with those of the layers inside; the first call declares them."""
        return ParametersByLabel(self.scope.by_label())

    def __getitem__(self, name: str) -> Tensor:
        found = self.scope.find(name)
        found = self.parameters.get(name) if found is None else found
        if found is None:
            known = ", ".join(self.parameters) or "none yet: a layer's first call declares them"
            raise KeyError(f"{self.description} has no parameter {name!r}; it has {known}")
        return found

    def __getattr__(self, name: str) -> Any:
        raise missing_attribute("a layer", name, self)

    #: A layer has parameters by name, and is no sequence of them.
    __iter__ = None

    def __reduce__(self) -> tuple[Any, ...]:
        return Layer, (self.function, self.configuration), self.scope.declared

    def __setstate__(self, declared: Any) -> None:
        self.scope.declared = declared

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if name not in ("description", "scope")]

    def table(self) -> Table:
        """Its parameters: label, shape and type."""
        from tcdsl.tensors.graphs.tensor_displays import table_of

        found = self.parameters.values()
        cells = sum(each.size for each in found if each.rows.is_known)
        notes = (f"{cells:,} numbers",) if found else ("no parameters yet: its first call declares them",)
        return table_of(f"layer {self.description}", (("param", each) for each in found), notes)

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def __rich__(self) -> Any:
        return self.table().__rich__()

    def __repr__(self) -> str:
        return f"<layer {self.description}>"


def parameters_of(function: DecoratedFunction) -> Parameters:
    """The parameters of an op without configuration."""
    found = function.__dict__.get("_parameters")
    if found is None:
        found = function.__dict__["_parameters"] = Parameters(function.__name__, function.source)
    return found


def configured(function: DecoratedFunction, keywords: Mapping[str, Any]) -> Layer:
    """``mlp_layer(hid_dim=16)``: the layer of that configuration. `ConfigurationError` if some of it is missing."""
    function.signature.split([None] * function.signature.required_positional, keywords)
    outer = current_parameters()
    # Inside another op it is made once, like a layer that is called there.
    return _inner_layer(outer, function, keywords) if isinstance(outer, Parameters) else Layer(function, keywords)


def _inner_layer(outer: Parameters, function: DecoratedFunction, configuration: Mapping[str, Any]) -> Layer:
    description = _describe(function, configuration)
    made: Layer = outer.layer(function, lambda: Layer(function, configuration), description, user_location())
    return made


def call_outside(function: DecoratedFunction, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """A decorated function on tensors, or an op that declares parameters on arrays, outside of any other function.

    Code comes from a `@cd` function. An op gives tensors for tensors and arrays for arrays; one without arguments gives
    a tensor, or, with configuration, a layer, which is called without arguments: it is a factory like any other.
    """
    positional, configuration = function.signature.split(arguments, keywords)
    if function.in_place:
        return code_of(function, positional, configuration)
    if configuration and not positional:
        return configured(function, configuration)
    scope = _Unconfigured(function, configuration) if configuration else parameters_of(function)
    return call_op(function, positional, configuration, scope)


class _Unconfigured(Parameters):
    # An op that is called with its configuration and its arguments at once: nobody keeps parameters for it.

    def __init__(self, function: DecoratedFunction, configuration: Mapping[str, Any]) -> None:
        super().__init__(function.__name__, function.source)
        self._describe = _describe(function, configuration)

    def made(self, name: str, said: Declaration, span: Any) -> Tensor:
        raise ConfigurationError.at(
            f'{self.owner}() declares the parameter "{name}", which would be made anew at every call',
            span,
            f"configure it once, and call what that gives: `layer = {self._describe}`, then `layer(x)`",
        )


def scope_of_inner_call(function: DecoratedFunction, configuration: Mapping[str, Any]) -> AbstractContextManager[None]:
    """Where the declarations of ``function`` go that is called inside another op that runs on tensors."""
    outer = current_parameters()
    if not isinstance(outer, Parameters):
        return nullcontext()
    scope = _inner_layer(outer, function, configuration).scope if configuration else parameters_of(function)
    return scope.call()
