"""What tensors, layers, functions and modules of other libraries have and these have not, and what to write instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tcdsl.tracebacks import missing_name

__all__ = ["instead_of_attribute", "missing_attribute"]

_STEP = "`step = tc.compile(tc.train.grad_update(loss))` runs both passes at each `step.run()`"
_NOTHING_TO_CLEAR = "gradients are those of one run, so there is nothing to clear"
_CLEARED = f"{_NOTHING_TO_CLEAR}; {_STEP}"
_IN_CODE = "`tc.train.grad_update(loss)` computes gradients, before the code that reads `p.grad`"
_BACKWARDS = f"write code for it; {_STEP}"
_PLACE = "programs run on the machine's processor and its memory: leave it out; `dtype=` says a type"
_PARAMETERS = "`layer.parameters`, without parentheses, are the tensors of a layer by label"
_READ = "`tc.train.load(path, layer)` reads what `tc.train.save` has written"
_UPDATES = (
    "updates are code: `step = tc.compile(tc.train.grad_update(loss), tc.train.adam_update(loss, learning_rate=0.01))` "
    "and `step.run()`"
)
_WANTED = "parameters have gradients, and so has `tc.tensor(array, grad=True)`"
_ASSIGNED = "assign outside, `p.value = array`; in a @cd function write `p *= 0.9` or `p[...] = 0.0`"
_SHAPED = "write `x.reshape(...)` or `x[None]` in an op, or a statement, as in `y[i*M + j] = x[i, j]`"
_OF_ALL: Mapping[str, str] = {
    "backprop": _BACKWARDS,
    "backward": _BACKWARDS,
    "zero_grads": _CLEARED,
    "zero_grad": _CLEARED,
    "train": "what differs in training is configuration, `layer(x, training=True)`; `tc.train` has the updates",
    "eval": "what differs in training is configuration, `layer(x, training=False)`",
    **dict.fromkeys(("to", "cpu", "cuda", "device"), _PLACE),
    **dict.fromkeys(("half", "float", "double", "int", "long", "type"), "write `astype`, as in `x.astype('float32')`"),
    **dict.fromkeys(("parameters", "named_parameters", "modules", "children"), _PARAMETERS),
    **dict.fromkeys(("weights", "trainable_weights", "trainable_variables", "get_weights"), _PARAMETERS),
    **dict.fromkeys(("state_dict", "save", "save_weights"), "`tc.train.save(path, layer)` writes parameters"),
    **dict.fromkeys(("load_state_dict", "load", "load_weights", "set_weights"), _READ),
    **dict.fromkeys(("step", "apply_gradients", "minimize"), _UPDATES),
    **dict.fromkeys(("fit", "compile", "optimize"), _UPDATES),
    **dict.fromkeys(("predict", "evaluate", "call"), "call it, and ask for `.value`: `layer(x).value`"),
    **dict.fromkeys(("requires_grad", "requires_grad_", "retain_grad"), _WANTED),
    **dict.fromkeys(("add_", "sub_", "mul_", "div_", "copy_", "fill_", "zero_", "assign", "assign_add"), _ASSIGNED),
    "numel": "`x.size` is the number of its cells",
    "dim": "`x.ndim` is the number of its axes",
    "contiguous": "arrays are given as they are",
    "clone": "write `x.copy()`",
}
_DERIVED: Mapping[str, str] = {
    "grad": "derivatives of derivatives are `tc.grad(tc.grad(f))`",
    "apply": "call it, as `tc.grad(f)(x)`",
    "jit": "every call is compiled",
    "compile": "every call is compiled",
    "lower": "every call is compiled",
}
_OF_ARRAYS = "write it in an op, where functions of the language need no import; NumPy's work there too, `np.{0}`"
_BY_KIND: Mapping[str, Mapping[str, str]] = {
    "the memory of a tensor": {
        "value": "it is the array itself: `p.grad` beside `p.value`",
        "merge": "only the value and the gradient of a tensor have one: `p.value.merge`, `p.grad.merge`",
        "grad": "it is an array; `p.grad` is the gradient of a tensor `p`",
        "data": "it is the array itself",
        "numpy": "it is a NumPy array, read-only; `.copy()` may be changed",
        "detach": "it is a NumPy array, which has no gradient",
        "zero_": _CLEARED,
        "fill_": "assign: `p.value = np.full(p.shape, 2.0)`",
        "copy_": "assign: `p.value = array`",
        "add_": "assign: `p.value = p.value + array`",
        "sub_": "assign: `p.value = p.value - array`",
        "mul_": "assign: `p.value = p.value * array`",
    },
    "a derivative": _DERIVED,
    "a linear function": {"apply": "call it, as `pullback(cotangents)`", "grad": "it is one: call it"},
    "module tcdsl.train": {
        "Adam": "write `tc.train.adam_update(loss, learning_rate=...)`, or `tc.train.adam` in code of your own",
        "AdamW": "write `tc.train.adamw_update(loss, learning_rate=...)`, or `tc.train.adamw` in code of your own",
        "SGD": "write `tc.train.sgd_update(loss, learning_rate=...)`, or `tc.train.sgd` in code of your own",
        "RMSprop": "write `tc.train.rmsprop_update(loss, learning_rate=...)`",
    },
    "module tcdsl.interop": {
        "numpy": "ops take NumPy's arrays as they are",
        "tensorflow": "ops read its tensors through `np.asarray(t)`; their gradients are not TensorFlow's",
    },
    "module tcdsl": {
        "nn": 'layers are ops with strings for parameters, `relu("w" @ x + "b"[n])`',
        "optim": "optimizers are in `tc.train`",
        "jit": "`tc.op` decorates a function, and every call of it is compiled",
        "function": "`tc.op` decorates a function, and every call of it is compiled",
        "vmap": "write the further index, `y[b, i] = ...`",
        "pmap": "programs run on all threads of the machine: `tc.config(threads=...)`",
        "no_grad": "nothing is recorded for gradients; `stop_gradient(x)` has none",
        "array": "`tc.tensor(array)` makes a tensor; ops take NumPy's arrays",
        "zeros": "`tc.tensor(np.zeros(shape))` makes a tensor; ops take NumPy's arrays",
        "ones": "`tc.tensor(np.ones(shape))` makes a tensor; ops take NumPy's arrays",
        "manual_seed": "write `tc.seed(n)`",
        "Module": 'layers are ops with strings for parameters, `relu("w" @ x + "b"[n])`',
        "while_loop": "write `while` in a decorated function",
        "scan": "write `for` in a decorated function",
        "cond": "write `if` in a decorated function",
        "jacrev": "write `tc.jacobian(f)`",
        "jacfwd": "write `tc.jacobian(f)`",
    }
    | {
        name: _OF_ARRAYS.format(name)
        for name in ("exp", "log", "sin", "cos", "tanh", "sqrt", "sum", "mean", "max", "min", "where", "dot", "matmul")
    }
    | dict.fromkeys(("relu", "sigmoid", "softplus", "gelu", "silu"), "write it in an op: it needs no import there"),
    "an array": {
        "zero_grad": _NOTHING_TO_CLEAR,
        "zero_grads": _NOTHING_TO_CLEAR,
        **dict.fromkeys(("backward", "backprop"), _IN_CODE),
        "forward": "call the function: `f(x)`",
        "fill": "write `a[...] = 0.0`",
        "detach": "write `stop_gradient(a)`",
        **dict.fromkeys(("item", "numpy", "data", "contiguous"), "use it as it is"),
        "permute": "write `x.transpose(...)`",
        **dict.fromkeys(("view", "unsqueeze", "expand"), _SHAPED),
    },
    "a tensor": {
        "forward": f"ask for its value, `loss.value`; {_STEP}",
        "numpy": "`t.value` is its array",
        "ravel": "`t.value.ravel()` are its cells as an array",
        "flatten": "`t.value.ravel()` are its cells as an array",
        "reshape": "write a statement, as in `y[i*M + j] = x[i, j]`; `t.value.reshape(...)` is an array",
        **dict.fromkeys(("view", "permute", "transpose", "squeeze", "unsqueeze", "expand"), _SHAPED),
        "data": "`t.value` is its array",
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

_INSTEAD: Mapping[str, str] = {
    "a tensor": "`t.value` is its array, which has all of NumPy's methods",
    "the memory of a tensor": "it has what NumPy's arrays have; assign `p.value = array` to change it",
    "a layer": "call it, `layer(x)`; it has `parameters`, `configuration` and `function`",
    "a decorated function": "call it, `f(x)`; it has `explain`, `cost`, `interpret`, `program` and `cache_info`",
    "a derivative": "call it, as `tc.grad(f)(x)`; it has `explain`, `cost`, `interpret`, `program` and `cache_info`",
    "a linear function": "call it; it has `program`, `explain` and `stored`",
    "code": "`tc.compile(code)` makes a routine of it; `code_1 + code_2` is both in turn",
    "a routine": "write `step.run()`; it has `state`, `program` and `explain`",
    "module tcdsl.train": "`dir(tc.train)` are its names",
    "module tcdsl.interop": "it has `torch` and `jax`",
    "module tcdsl": "what the language has needs no import in a decorated function; `dir(tc)` are its names",
}


def instead_of_attribute(kind: str, name: str) -> str:
    """What to write where ``kind`` has no attribute of that name; empty where nothing is known of it."""
    return _BY_KIND[kind].get(name) or _OF_ALL.get(name, "")


def missing_attribute(kind: str, name: str, owner: Any) -> AttributeError:
    """The error where ``owner``, which is ``kind``, has no attribute of that name."""
    said = instead_of_attribute(kind, name)
    return missing_name(kind, name, owner, () if said else None, said or _INSTEAD[kind])
