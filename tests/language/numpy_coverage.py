"""What of NumPy there is in decorated functions, as the page `docs/numpy.md` lists it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tcdsl.frontend.arrays.filled_arrays import fills_array
from tcdsl.frontend.numpy_functions.table import FUNCTIONS, PRODUCT_UFUNCS
from tcdsl.frontend.symbolic_operators import JOINING
from tcdsl.frontend.symbols.pointwise_functions import UFUNCS
from tcdsl.frontend.symbols.recognition import recognize
from tcdsl.frontend.symbols.symbols import METHODS, ArrayMethods

__all__ = ["of_the_standard", "table", "written"]

# The standard's functions for arrays, 2024.12, by NumPy's names; complex numbers apart.
_NAMES = """
    arange asarray empty empty_like eye full full_like linspace meshgrid ones ones_like tril triu zeros zeros_like
    astype can_cast finfo iinfo isdtype result_type
    abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_invert bitwise_or
    bitwise_right_shift bitwise_xor ceil clip copysign cos cosh divide equal exp expm1 floor floor_divide greater
    greater_equal hypot isfinite isinf isnan less less_equal log log1p log2 log10 logaddexp logical_and logical_not
    logical_or logical_xor maximum minimum multiply negative nextafter not_equal positive pow reciprocal remainder round
    sign signbit sin sinh square sqrt subtract tan tanh trunc
    take take_along_axis matmul matrix_transpose tensordot vecdot
    broadcast_arrays broadcast_to concat expand_dims flip moveaxis permute_dims repeat reshape roll squeeze stack tile
    unstack argmax argmin count_nonzero nonzero searchsorted where unique_all unique_counts unique_inverse unique_values
    argsort sort cumulative_prod cumulative_sum max mean min prod std sum var all any diff
    linalg.cholesky linalg.cross linalg.det linalg.diagonal linalg.eigh linalg.eigvalsh linalg.inv linalg.matmul
    linalg.matrix_norm linalg.matrix_power linalg.matrix_rank linalg.matrix_transpose linalg.outer linalg.pinv linalg.qr
    linalg.slogdet linalg.solve linalg.svd linalg.svdvals linalg.tensordot linalg.trace linalg.vecdot linalg.vector_norm
    fft.fft fft.ifft fft.rfft fft.irfft fft.fftn fft.ifftn fft.fftfreq fft.fftshift fft.ifftshift
"""
STANDARD = _NAMES.split()
# What only says something of types, which Python computes.
OF_PYTHON = ("asarray", "astype", "can_cast", "finfo", "iinfo", "isdtype", "result_type")
# Of these no row says that it has them not.
NOWHERE = {"out", "subok", "order", "casting", "optimize", "mean", "like", "device", "args", "kwargs"}


def _named(name: str) -> Any:
    module, _, last = name.rpartition(".")
    return getattr(getattr(np, module) if module else np, last)


def is_there(function: Any) -> bool:
    """Whether a function of NumPy has a meaning in decorated functions."""
    rows = (*FUNCTIONS, *UFUNCS, *PRODUCT_UFUNCS, *JOINING, np.where, np.shape, np.size, np.ndim, np.copy, np.matmul)
    return recognize(function) is not None or fills_array(function) or any(function is each for each in rows)


def of_the_standard() -> tuple[list[str], list[str]]:
    """The functions of the array API standard that there are, and the others."""
    there = [name for name in STANDARD if name in OF_PYTHON or is_there(_named(name))]
    return there, [name for name in STANDARD if name not in there]


def written(function: Any) -> str:
    """``np.linalg.norm``."""
    module = str(function.__module__ or "numpy").removeprefix("numpy").removesuffix("._linalg")
    return f"np{module}.{function.__name__}"


def _parameters(function: Callable[..., Any]) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name not in NOWHERE]


def _lines() -> Iterator[str]:
    yield "| function | without | differs |"
    yield "|---|---|---|"
    for function, row in sorted(FUNCTIONS.items(), key=lambda each: written(each[0])):
        taken = _parameters(row)
        left = [f"`{name}`" for name in _parameters(function) if name not in taken and "options" not in taken]
        said = (inspect.getdoc(row) or "") if inspect.isfunction(row) else ""
        if left or said:
            yield f"| `{written(function)}` | {', '.join(left)} | {said.partition(chr(10))[0]} |"


def _listed(names: Iterator[str] | list[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(set(names)))


def table() -> str:
    """The generated part of the page."""
    elementwise = [name for name in dir(np) if isinstance(getattr(np, name), np.ufunc) and is_there(getattr(np, name))]
    others = [written(each).removeprefix("np.") for each in FUNCTIONS]
    others += [name for name in dir(np) if name not in elementwise and _is_other(getattr(np, name))]
    methods = [name for name in {*METHODS, *dir(ArrayMethods)} if name[0] != "_" and hasattr(np.ndarray, name)]
    there, missing = of_the_standard()
    return "\n".join(
        [
            f"Of whole arrays: {_listed(others)}.",
            "",
            f"Elementwise functions, also of cells in statements: {_listed(elementwise)}.",
            "",
            f"Methods of arrays: {_listed(methods)}.",
            "",
            "Of these some have not all parameters, or differ:",
            "",
            *_lines(),
            "",
            f"Of the {len(STANDARD)} functions of the array API standard 2024.12 that need no complex numbers,",
            f"{len(there)} are there. Missing: {_listed(missing)}.",
        ]
    )


def _is_other(function: Any) -> bool:
    known = callable(function) and not isinstance(function, type | np.ufunc) and function not in FUNCTIONS
    return known and is_there(function)
