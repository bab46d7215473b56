"""What is known by its name: functions and types that do nothing but compute, or stage."""

from __future__ import annotations

__all__ = ["BUILTINS", "OF_NUMPY", "PURE_MODULES", "STAGING"]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


PURE_MODULES = frozenset(("math", "cmath", "itertools"))
BUILTINS = _words(
    """
    ArithmeticError AssertionError AttributeError Exception IndexError KeyError LookupError NotImplementedError
    OverflowError RuntimeError StopIteration TypeError ValueError ZeroDivisionError abs all any bool bytes
    callable chr complex dict divmod enumerate filter float frozenset int isinstance issubclass len list map max
    min ord pow range repr reversed round set slice sorted str sum tuple type zip
    """
)
OF_NUMPY = _words(
    """
    all allclose any arange argmax argmin argsort array asarray atleast_1d atleast_2d broadcast_shapes
    broadcast_to clip concatenate count_nonzero cross cumprod cumsum diag diagonal dot dtype einsum expand_dims
    eye finfo flip full full_like hstack identity iinfo inner isscalar issubdtype kron linspace matmul max mean
    median meshgrid min moveaxis ndarray ndim ones ones_like outer prod ravel real repeat reshape result_type roll
    round shape size sort split squeeze stack std sum swapaxes take tensordot tile trace transpose tril triu var
    vstack where zeros zeros_like
    """
)
STAGING = _words(
    """
    ConfigurationError DataIndexError DifferentiationError DslSyntaxError DtypeError NanError OutOfMemoryError
    ShapeError TcdslError cd einsum grad hessian hvp jacobian jvp linearize op output value_and_grad vjp
    """
)
