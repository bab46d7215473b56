"""What tensors, layers, code and routines of other libraries have and these have not, and what to write instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tcdsl.errors import MissingAttributeError
from tcdsl.tensors.graphs.location import user_location

__all__ = ["missing_attribute"]

_STEP = "`step = tc.compile(tc.train.grad_update(loss))` runs both passes at each `step.run()`"
_CLEARED = f"gradients are those of one run, so there is nothing to clear; {_STEP}"
_BACKWARDS = f"write code for it; {_STEP}"
_OF_ALL: Mapping[str, str] = {
    "backprop": _BACKWARDS,
    "backward": _BACKWARDS,
    "zero_grads": _CLEARED,
    "zero_grad": _CLEARED,
    "train": "what differs in training is configuration, `layer(x, training=True)`; `tc.train` has the updates",
    "eval": "what differs in training is configuration, `layer(x, training=False)`",
    "to": "tensors are in the machine's memory; `dtype=` says a type",
    "cuda": "programs run on the machine's processor",
}
_BY_KIND: Mapping[str, Mapping[str, str]] = {
    "a tensor": {
        "forward": f"ask for its value, `loss.value`; {_STEP}",
        "numpy": "`t.value` is its array",
        "ravel": "`t.value.ravel()` are its cells as an array",
        "flatten": "`t.value.ravel()` are its cells as an array",
        "reshape": "write a statement, as in `y[i*M + j] = x[i, j]`; `t.value.reshape(...)` is an array",
        "detach": "`stop_gradient(t)` has no gradient, and `t.value` is its array",
    },
    "a layer": {
        "forward": "call it: `layer(x)`",
        "state_dict": "`layer.parameters` are its tensors by label; `tc.train.save(path, layer)` writes them",
        "load_state_dict": "`tc.train.load(path, layer)` reads what `tc.train.save` has written",
        "weight": 'a parameter has the name that its string says: `layer["w"]`',
        "bias": 'a parameter has the name that its string says: `layer["b"]`',
    },
    "a decorated function": {
        "forward": "call it: `f(x)`",
        "backward": "`tc.grad(f)` and `tc.vjp(f, x)` are its derivatives",
        "backprop": "`tc.grad(f)` and `tc.vjp(f, x)` are its derivatives",
        "grad": "`tc.grad(f)` is its gradient",
        "run": "call it: `f(x)`",
    },
    "code": {
        "forward": "`step = tc.compile(code)` makes a function of it, and `step.run()` runs it",
        "run": "`step = tc.compile(code)` makes a function of it, and `step.run()` runs it",
        "step": "`step = tc.compile(code)` makes a function of it, and `step.run()` runs it",
    },
    "a routine": {
        "forward": "`step.run()` runs all that its code says",
        "backward": "`step.run()` runs all that its code says",
        "backprop": "`step.run()` runs all that its code says",
        "step": "write `step.run()`",
        "parameters": "layers have parameters: `layer.parameters`; `step.state` is what its code keeps",
    },
}


def missing_attribute(kind: str, name: str, owner: Any) -> AttributeError:
    """The error where ``owner``, which is ``kind``, has no attribute of that name."""
    if name.startswith("_"):  # protocols ask for these, and expect no more than that
        return AttributeError(f"{kind} has no attribute `{name}`", name=name, obj=owner)
    hint = _BY_KIND[kind].get(name) or _OF_ALL.get(name, "")
    made = MissingAttributeError.at(f"{kind} has no attribute `{name}`", user_location(), hint)
    assert isinstance(made, AttributeError)
    made.name, made.obj = name, owner
    return made
