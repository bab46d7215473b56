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
    ShapeError,
    TcdslError,
)

if TYPE_CHECKING:
    from tcdsl.frontend.declarations import output
    from tcdsl.runtime.checking import check_grads
    from tcdsl.runtime.einsum import einsum
    from tcdsl.runtime.function import TensorFunction, cd, op
    from tcdsl.runtime.gradients import grad, value_and_grad
    from tcdsl.runtime.jacobians import hessian, jacobian
    from tcdsl.runtime.pullbacks import linearize, vjp
    from tcdsl.runtime.pushforwards import hvp, jvp

__all__ = [
    "ConfigurationError",
    "DataIndexError",
    "DifferentiationError",
    "DslSyntaxError",
    "DtypeError",
    "ShapeError",
    "TcdslError",
    "TensorFunction",
    "cd",
    "check_grads",
    "config",
    "einsum",
    "grad",
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "linearize",
    "op",
    "output",
    "value_and_grad",
    "vjp",
]

__version__ = "0.1.0"

_LAZY = {
    "TensorFunction": "tcdsl.runtime.function",
    "cd": "tcdsl.runtime.function",
    "check_grads": "tcdsl.runtime.checking",
    "einsum": "tcdsl.runtime.einsum",
    "grad": "tcdsl.runtime.gradients",
    "hessian": "tcdsl.runtime.jacobians",
    "hvp": "tcdsl.runtime.pushforwards",
    "jacobian": "tcdsl.runtime.jacobians",
    "jvp": "tcdsl.runtime.pushforwards",
    "linearize": "tcdsl.runtime.pullbacks",
    "op": "tcdsl.runtime.function",
    "output": "tcdsl.frontend.declarations",
    "value_and_grad": "tcdsl.runtime.gradients",
    "vjp": "tcdsl.runtime.pullbacks",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(_LAZY[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
