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

import sys
from typing import TYPE_CHECKING, Any

from tcdsl.config import config
from tcdsl.errors import (
    ConfigurationError,
    DataIndexError,
    DifferentiationError,
    DslSyntaxError,
    DtypeError,
    MissingAttributeError,
    NanError,
    OutOfMemoryError,
    ShapeError,
    TcdslError,
)
from tcdsl.installation import require_platform

if TYPE_CHECKING:
    from tcdsl import comprehensions, interop, library, skriptnd, tile, train
    from tcdsl.frontend.running_loops.round_counts import loop
    from tcdsl.frontend.staging.declarations import output
    from tcdsl.runtime.einsum import einsum
    from tcdsl.runtime.primitive import primitive
    from tcdsl.runtime.transforms.checking import check_grads
    from tcdsl.runtime.transforms.gradients import grad, value_and_grad
    from tcdsl.runtime.transforms.jacobians import hessian, jacobian
    from tcdsl.runtime.transforms.pullbacks import linearize, vjp
    from tcdsl.runtime.transforms.pushforwards import hvp, jvp
    from tcdsl.syntax import literal
    from tcdsl.tensors.functions.decorators import TensorFunction, cd, op
    from tcdsl.tensors.functions.layers import Layer
    from tcdsl.tensors.functions.parameters import param
    from tcdsl.tensors.graph_linking.static_indices import StaticIndex, static_index
    from tcdsl.tensors.graphs.initialization import seed
    from tcdsl.tensors.graphs.literals import batch, number, tensor
    from tcdsl.tensors.graphs.shape_constraints import constraints_only
    from tcdsl.tensors.graphs.tensor import Tensor
    from tcdsl.tensors.routines import Routine
    from tcdsl.tensors.routines import compile_code as compile  # noqa: A004  # tc.compile
    from tcdsl.train.files import load, save

__all__ = [
    "ConfigurationError",
    "DataIndexError",
    "DifferentiationError",
    "DslSyntaxError",
    "DtypeError",
    "Layer",
    "MissingAttributeError",
    "NanError",
    "OutOfMemoryError",
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
    "comprehensions",
    "config",
    "constraints_only",
    "einsum",
    "grad",
    "hessian",
    "hvp",
    "interop",
    "jacobian",
    "jvp",
    "library",
    "linearize",
    "literal",
    "load",
    "loop",
    "number",
    "op",
    "output",
    "param",
    "primitive",
    "save",
    "seed",
    "skriptnd",
    "static_index",
    "tensor",
    "tile",
    "train",
    "value_and_grad",
    "vjp",
]

__version__ = "0.2.0"

require_platform()

_LAZY = {
    "Layer": "tcdsl.tensors.functions.layers",
    "Routine": "tcdsl.tensors.routines",
    "StaticIndex": "tcdsl.tensors.graph_linking.static_indices",
    "Tensor": "tcdsl.tensors.graphs.tensor",
    "TensorFunction": "tcdsl.tensors.functions.decorators",
    "batch": "tcdsl.tensors.graphs.literals",
    "cd": "tcdsl.tensors.functions.decorators",
    "check_grads": "tcdsl.runtime.transforms.checking",
    "compile": "tcdsl.tensors.routines:compile_code",
    "constraints_only": "tcdsl.tensors.graphs.shape_constraints",
    "einsum": "tcdsl.runtime.einsum",
    "grad": "tcdsl.runtime.transforms.gradients",
    "hessian": "tcdsl.runtime.transforms.jacobians",
    "hvp": "tcdsl.runtime.transforms.pushforwards",
    "jacobian": "tcdsl.runtime.transforms.jacobians",
    "jvp": "tcdsl.runtime.transforms.pushforwards",
    "linearize": "tcdsl.runtime.transforms.pullbacks",
    "load": "tcdsl.train.files",
    "literal": "tcdsl.syntax",
    "load_ipython_extension": "tcdsl.syntax.notebook",
    "number": "tcdsl.tensors.graphs.literals",
    "op": "tcdsl.tensors.functions.decorators",
    "loop": "tcdsl.frontend.running_loops.round_counts",
    "output": "tcdsl.frontend.staging.declarations",
    "param": "tcdsl.tensors.functions.parameters",
    "primitive": "tcdsl.runtime.primitive",
    "save": "tcdsl.train.files",
    "seed": "tcdsl.tensors.graphs.initialization",
    "static_index": "tcdsl.tensors.graph_linking.static_indices",
    "tensor": "tcdsl.tensors.graphs.literals",
    "unload_ipython_extension": "tcdsl.syntax.notebook",
    "value_and_grad": "tcdsl.runtime.transforms.gradients",
    "vjp": "tcdsl.runtime.transforms.pullbacks",
}

_LAZY_MODULES = ("comprehensions", "interop", "library", "skriptnd", "tile", "train")


def __getattr__(name: str) -> Any:
    if name not in _LAZY and name not in _LAZY_MODULES:
        from tcdsl.frontend.names.absent_attributes import missing_attribute

        raise missing_attribute("module tcdsl", name, sys.modules[__name__])
    import importlib

    if name in _LAZY_MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    module, _, own_name = _LAZY[name].partition(":")
    value = getattr(importlib.import_module(module), own_name or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
