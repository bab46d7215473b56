"""tcdsl: tensor programs in index notation, compiled to machine code, with generated gradients.

::

    from tcdsl import op
    import tcdsl as tc

    @op
    def matmul(A, B):
        C[i, j] += A[i, k] * B[k, j]
        return C

    C = matmul(A, B)                                       # NumPy in, NumPy out
    dA, dB = tc.grad(lambda A, B: matmul(A, B).sum(), argnums=(0, 1))(A, B)

Everything beyond the decorators is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcdsl.config import config
from tcdsl.errors import (
    ConfigurationError,
    DataIndexError,
    DifferentiationError,
    DslSyntaxError,
    DtypeError,
    NanError,
    ShapeError,
    TcdslError,
)

if TYPE_CHECKING:
    from tcdsl import train
    from tcdsl.frontend.declarations import output
    from tcdsl.runtime.checking import check_grads
    from tcdsl.runtime.einsum import einsum
    from tcdsl.runtime.gradients import grad, value_and_grad
    from tcdsl.runtime.jacobians import hessian, jacobian
    from tcdsl.runtime.primitive import primitive
    from tcdsl.runtime.pullbacks import linearize, vjp
    from tcdsl.runtime.pushforwards import hvp, jvp
    from tcdsl.syntax import literal
    from tcdsl.tensors.constraints import constraints_only
    from tcdsl.tensors.decorators import TensorFunction, cd, op
    from tcdsl.tensors.indices import StaticIndex, static_index
    from tcdsl.tensors.initialization import seed
    from tcdsl.tensors.layers import Layer
    from tcdsl.tensors.literals import batch, number, tensor
    from tcdsl.tensors.parameters import param
    from tcdsl.tensors.routines import Routine
    from tcdsl.tensors.routines import compile_code as compile  # noqa: A004  # tc.compile
    from tcdsl.tensors.tensor import Tensor
    from tcdsl.train.files import load, save

__all__ = [
    "ConfigurationError",
    "DataIndexError",
    "DifferentiationError",
    "DslSyntaxError",
    "DtypeError",
    "Layer",
    "NanError",
    "Routine",
    "ShapeError",
    "StaticIndex",
    "TcdslError",
    "Tensor",
    "TensorFunction",
    "batch",
    "cd",
    "check_grads",
    "compile",
    "config",
    "constraints_only",
    "einsum",
    "grad",
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "linearize",
    "literal",
    "load",
    "number",
    "op",
    "output",
    "param",
    "primitive",
    "save",
    "seed",
    "static_index",
    "tensor",
    "train",
    "value_and_grad",
    "vjp",
]

__version__ = "0.1.0"

_LAZY = {
    "Layer": "tcdsl.tensors.layers",
    "Routine": "tcdsl.tensors.routines",
    "StaticIndex": "tcdsl.tensors.indices",
    "Tensor": "tcdsl.tensors.tensor",
    "TensorFunction": "tcdsl.tensors.decorators",
    "batch": "tcdsl.tensors.literals",
    "cd": "tcdsl.tensors.decorators",
    "check_grads": "tcdsl.runtime.checking",
    "compile": "tcdsl.tensors.routines:compile_code",
    "constraints_only": "tcdsl.tensors.constraints",
    "einsum": "tcdsl.runtime.einsum",
    "grad": "tcdsl.runtime.gradients",
    "hessian": "tcdsl.runtime.jacobians",
    "hvp": "tcdsl.runtime.pushforwards",
    "jacobian": "tcdsl.runtime.jacobians",
    "jvp": "tcdsl.runtime.pushforwards",
    "linearize": "tcdsl.runtime.pullbacks",
    "load": "tcdsl.train.files",
    "literal": "tcdsl.syntax",
    "load_ipython_extension": "tcdsl.syntax.notebook",
    "number": "tcdsl.tensors.literals",
    "op": "tcdsl.tensors.decorators",
    "output": "tcdsl.frontend.declarations",
    "param": "tcdsl.tensors.parameters",
    "primitive": "tcdsl.runtime.primitive",
    "save": "tcdsl.train.files",
    "seed": "tcdsl.tensors.initialization",
    "static_index": "tcdsl.tensors.indices",
    "tensor": "tcdsl.tensors.literals",
    "unload_ipython_extension": "tcdsl.syntax.notebook",
    "value_and_grad": "tcdsl.runtime.gradients",
    "vjp": "tcdsl.runtime.pullbacks",
}

_LAZY_MODULES = ("train",)


def __getattr__(name: str) -> Any:
    if name not in _LAZY and name not in _LAZY_MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    if name in _LAZY_MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    module, _, own_name = _LAZY[name].partition(":")
    value = getattr(importlib.import_module(module), own_name or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
