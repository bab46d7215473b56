"""Arrays that users give, wherever they come from: as arguments, from around a function, as data of tensors.

What NumPy calls an array, or another library does, is read as it is. What would lose something by that is refused with
what to write instead: the mask of a masked array, the unit of a quantity, the gradients that PyTorch keeps, the labels
by which pandas and xarray align.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Set, ValuesView
from dataclasses import dataclass
from itertools import combinations
from numbers import Number
from typing import TYPE_CHECKING, Any

import numpy as np

from tcdsl.errors import DtypeError, TcdslError
from tcdsl.ir.dtypes import DTYPES
from tcdsl.span import Span

if TYPE_CHECKING:
    from tcdsl.ir.program import Program

__all__ = ["Labels", "element_type", "given_array", "instead_of", "labels_of", "require_aligned", "require_plain"]

# Native byte order only. Finding a name here is quicker than asking the dtype.
_NAMES: dict[np.dtype, str] = {np.dtype(name): name for name in DTYPES}
_INSTEAD = {
    "c": "pass its parts as two arrays, `{0}.real` and `{0}.imag`",
    "O": "convert it where all of its cells are numbers: `{0}.astype('float64')`",
    "M": "count time in a unit from a moment: `({0} - {0}.min()) / np.timedelta64(1, 's')`",
    "m": "count time in a unit: `{0} / np.timedelta64(1, 's')`",
    "S": "number the words: `np.unique({0}, return_inverse=True)[1]`",
    "U": "number the words: `np.unique({0}, return_inverse=True)[1]`",
    "T": "number the words: `np.unique({0}, return_inverse=True)[1]`",
}


def given_array(value: Any, label: str, context: str = "", span: Span | None = None) -> np.ndarray | None:
    """``value`` as an array of an element type of the language, or None if it is nothing like an array.

    It shares the memory of ``value`` where that is possible. ``label`` is what it is called, if it has a
    name, ``context`` what faults begin with, ``f(): ``. `DtypeError` for what would lose something, and for other
    element types.
    """
    if type(value) is np.ndarray:
        array = value
    elif isinstance(value, np.ndarray | np.generic):
        if isinstance(value, np.ndarray):
            require_plain(value, label, context, span)
        array = np.asarray(value)
    else:
        found = _of_another_library(value, label, context, span)
        if found is None:
            return None
        array = found
    if array.dtype not in _NAMES:
        raise _element_type_fault(array.dtype, label, context, span)
    return array


def element_type(array: np.ndarray) -> str:
    """The element type of what `given_array` gives, by name."""
    return _NAMES[array.dtype]


def require_plain(array: np.ndarray, label: str, context: str = "", span: Span | None = None) -> None:
    """Raise `DtypeError` for an array of a class with arithmetic of its own, which would be lost."""
    kind, code, called = type(array), _code(label), context + _called(label)
    if isinstance(array, np.ma.MaskedArray):
        raise _fault(
            f"{called} is a masked array, whose mask would be lost",
            span,
            f"pass its data, `{code}.filled(0)`, and the mask as an array of its own, `np.ma.getmaskarray({code})`",
        )
    if any(getattr(kind, name) is not getattr(np.ndarray, name) for name in ("__mul__", "__array_ufunc__")):
        meaning = "which multiplies as matrices do" if isinstance(array, np.matrix) else "with arithmetic of its own"
        raise _fault(
            f"{called} is a {kind.__module__}.{kind.__qualname__}, an array {meaning}, which would be lost",
            span,
            f"pass its cells alone: `np.asarray({code})`",
        )


def _element_type_fault(dtype: np.dtype, label: str, context: str, span: Span | None) -> TcdslError:
    code = _code(label)
    shown = str(dtype) if dtype.isnative else f"{dtype} (not in this machine's byte order)"
    if dtype.names:
        hint = f"pass its fields as arrays of their own, such as `{code}[{dtype.names[0]!r}]`"
    elif not dtype.isnative and dtype.newbyteorder("=") in _NAMES:
        hint = f"convert it: `{code}.astype({str(dtype.newbyteorder('='))!r})`"
    elif dtype.kind in _INSTEAD:
        hint = _INSTEAD[dtype.kind].format(code)
    else:
        hint = f"convert it with .astype to one of {', '.join(DTYPES)}"
    return _fault(context + f"{_called(label)} has the element type {shown}, which tcdsl does not handle", span, hint)


def _require_readable(value: Any, label: str, context: str, span: Span | None) -> None:
    if getattr(value, "is_neg", bool)():
        fact = f"{context}{_called(label)} is a tensor of PyTorch with its negative bit set, which would be lost"
        raise _fault(fact, span, f"pass `{_code(label)}.resolve_neg()`")
    device = _other_device(value)
    if device:
        fact = f"{context}{_called(label)} lies on the device {device}"
        raise _fault(fact, span, "pass a copy in the computer's own memory")


def _require_complete(value: Any, label: str, context: str, span: Span | None) -> None:
    """Raise `DtypeError` for cells that have a unit or are missing, which an array of NumPy cannot say."""
    code, called = _code(label), context + _called(label)
    holder: Any = getattr(value, "data", value) if labels_of(value) is not None else value
    unit = getattr(holder, "units", None) if hasattr(type(holder), "magnitude") else None
    if unit is not None:
        of_numbers = f"{code}.magnitude" if holder is value else f"{code}.copy(data={code}.data.magnitude)"
        fact = f"{called} has the unit {str(unit) or 'of a number'}, which would be lost"
        raise _fault(fact, span, f"pass its numbers in a unit of your choice: `{of_numbers}`")
    columns = [each for _, each in value.items()] if hasattr(value, "columns") and hasattr(value, "items") else [value]
    for each in columns:
        kind = getattr(each, "dtype", None)
        if hasattr(kind, "numpy_dtype") and hasattr(each, "isna") and bool(each.isna().any()):
            hint = f"fill them, `{code}.fillna(0)`, and pass where they are as an array of its own, `{code}.isna()`"
            raise _fault(f"{called} has missing cells, which would be lost", span, hint)
    count = getattr(value, "null_count", 0)
    nulls = count() if callable(count) else count
    if nulls if isinstance(nulls, int) else any(nulls.row(0)):
        hint = f"fill them, `{code}.fill_null(0)`, and pass where they are as an array of its own, `{code}.is_null()`"
        raise _fault(f"{called} has nulls, which would be lost", span, hint)


def _of_another_library(value: Any, label: str, context: str, span: Span | None) -> np.ndarray | None:
    if isinstance(value, type):
        return None
    _require_readable(value, label, context, span)
    _require_complete(value, label, context, span)
    reason: Exception | None = None
    for attribute, read in (("__dlpack__", np.from_dlpack), ("__array__", np.asarray)):
        if _defines(value, attribute):
            try:
                return read(value)
            except TcdslError:
                raise
            except Exception as fault:
                reason = reason or fault
    kind, code, called = type(value).__name__, _code(label), context + _called(label)
    if hasattr(value, "toarray") and hasattr(value, "nnz"):
        raise _fault(f"{called} is sparse ({kind})", span, f"pass all of its cells, `{code}.toarray()`")
    if reason is None:
        return None
    fact, hint = _unread(value, called, code, reason)
    raise _fault(fact, span, hint) from None


def _unread(value: Any, called: str, code: str, reason: Exception) -> tuple[str, str]:
    # Why it could not be read, as it says itself, and what to write instead.
    if any(each.__name__ == "Tracer" for each in type(value).__mro__):
        fact = f"{called} is traced by JAX, so its cells are not known"
        hint = "call it outside of jax.jit, jax.grad and jax.vmap, or through jax.pure_callback"
    elif getattr(value, "requires_grad", False):
        fact = f"{called} is a tensor of PyTorch that requires gradients, which would not be tracked"
        hint = f"pass `{code}.detach()`, and take gradients with tc.grad or tc.vjp"
    elif "cpu" not in str(getattr(value, "device", "cpu")).lower():
        fact = f"{called} lies on the device {value.device}"
        hint = f"pass a copy in the computer's own memory, such as `{code}.cpu()` or `jax.device_get({code})`"
    elif getattr(value, "is_conj", bool)():
        fact = f"{called} has the element type complex and its conjugate bit set, which tcdsl does not handle"
        hint = f"pass its parts as two arrays, `{code}.real` and `{code}.imag.resolve_neg()`"
    elif "strided" not in str(getattr(value, "layout", "strided")):
        fact = f"{called} has the layout {str(value.layout).rpartition('.')[2]}"
        hint = f"pass all of its cells, `{code}.to_dense()`"
    elif getattr(value, "is_quantized", False) is True:
        fact = f"{called} is quantized, with the element type {str(value.dtype).rpartition('.')[2]}"
        hint = f"pass `{code}.dequantize()`"
    elif (element := str(getattr(value, "dtype", "")).rpartition(".")[2]) and element not in DTYPES:
        fact = f"{called} has the element type {element}, which tcdsl does not handle"
        hint = f"convert it: `{code}.float()`" if hasattr(value, "float") else f'convert it: `{code}.astype("float32")`'
    else:
        fact = (
            f"{called} is a {type(value).__name__} that cannot be read as an array: {str(reason).partition(chr(10))[0]}"
        )
        hint = "convert it to an array of NumPy"
        if type(value).__module__.partition(".")[0] == "xarray":
            hint = "call `tc.interop.xarray(f)`, which takes it variable by variable"
    return fact, hint


def _defines(value: Any, attribute: str) -> bool:
    # What classes give for any name is nothing that they define; `dir` takes a hundred times as long.
    return any(attribute in vars(each) for each in type(value).__mro__)


# As DLPack numbers them, but for those whose memory the CPU reads: 1 is the CPU, 3 and 11 are its pinned memory.
_DEVICES = {
    2: "CUDA",
    4: "OpenCL",
    7: "Vulkan",
    8: "Metal",
    10: "ROCm",
    13: "CUDA (managed)",
    14: "oneAPI",
    15: "WebGPU",
}


def _other_device(value: Any) -> str:
    # By the protocol: what libraries say in words of their own is told where reading fails.
    if _defines(value, "device") or not hasattr(type(value), "__dlpack_device__"):
        return ""
    kind, number = value.__dlpack_device__()
    return "" if kind in (1, 3, 11) else f"{_DEVICES.get(int(kind), f'of kind {int(kind)}')}:{number}"


def instead_of(value: Any, label: str) -> str:
    """What to write instead of an object of Python's that is no array and no number, but can be made one; or ""."""
    code = _code(label)
    if isinstance(value, complex):
        return f"pass its parts as two numbers, `{code}.real` and `{code}.imag`"
    if isinstance(value, Number):
        return f"convert it: `float({code})`"
    if isinstance(value, bytes | bytearray):
        return f"write `np.frombuffer({code}, np.uint8)`"
    try:
        memoryview(value)
    except TypeError:
        if isinstance(value, list | tuple | range):
            return f"wrap it with `np.asarray({code})`"
        collected = isinstance(value, Iterator | Set | ValuesView)
        return f"collect what it gives: `np.asarray(list({code}))`" if collected else ""
    return f"wrap it with `np.asarray({code})`"


@dataclass(frozen=True, slots=True)
class Labels:
    """What an array of another library calls its cells: of each axis its name, if axes have names, and its labels.

    ``library`` is what the library is called.
    """

    library: str
    names: tuple[Any, ...] | None
    axes: tuple[Any, ...]


def labels_of(value: Any) -> Labels | None:
    """The labels of an object of pandas, xarray or polars, such as rows and columns; ``None`` if it has none."""
    pandas, xarray, polars = map(sys.modules.get, ("pandas", "xarray", "polars"))
    if pandas is not None and isinstance(value, pandas.Series | pandas.DataFrame):
        return Labels("pandas", None, tuple(value.axes))
    if xarray is not None and isinstance(value, xarray.DataArray | xarray.Variable):
        indexes = getattr(value, "indexes", {})
        return Labels("xarray", value.dims, tuple(indexes.get(name) for name in value.dims))
    if polars is not None and isinstance(value, polars.DataFrame):
        return Labels("polars", None, (None, value.columns))
    return value if isinstance(value, Labels) else None


def require_aligned(
    program: Program, given: Iterable[tuple[str, str, Any]], context: str = "", span: Span | None = None
) -> None:
    """Raise `DtypeError` where one index goes over axes whose labels say that other cells belong together.

    ``given`` are names of inputs of ``program``, what users call them, and values, or their `Labels`.
    """
    labelled = {name: (label, labels) for name, label, value in given if (labels := labels_of(value)) is not None}
    if len(labelled) < 2:
        return
    from tcdsl.rewrite.axis_origins import axis_origins  # few calls need isl

    for group in axis_origins(program).tied:
        axes = {name: sorted(axis for tensor, axis in group if tensor == name) for name in labelled}
        for one, other in combinations([name for name in labelled if axes[name]], 2):
            # Of two axes of a square one it is enough that one fits.
            faults = [
                _fault_of_labels(*labelled[one], axis, *labelled[other], other_axis, context, span)
                for axis in axes[one]
                for other_axis in axes[other]
            ]
            if all(fault is not None for fault in faults):
                raise next(fault for fault in faults if fault is not None)


def _fault_of_labels(
    name: str,
    one: Labels,
    axis: int,
    other_name: str,
    other: Labels,
    other_axis: int,
    context: str,
    span: Span | None,
) -> TcdslError | None:
    called, code, other_code = f"{context}{_called(name)}", _code(name), _code(other_name)
    if one.names is not None and other.names is not None and one.names[axis] != other.names[other_axis]:
        fact = f"{called} has the dimensions {one.names}, and {_called(other_name)} {other.names}"
        hint = f"put them in one order: `{other_code}.transpose(*{code}.dims)`"
        if set(one.names) != set(other.names):
            fact += f": one index goes over {one.names[axis]!r} and {other.names[other_axis]!r}"
            hint = f"give both one name: `{other_code}.rename({{{other.names[other_axis]!r}: {one.names[axis]!r}}})`"
        return _fault(fact, span, hint + ", or call `tc.interop.xarray(f)`, which goes by names")
    labels, met = one.axes[axis], other.axes[other_axis]
    if labels is None or met is None or len(labels) != len(met):
        return None  # of other lengths is a fault of its own
    if labels.equals(met) if hasattr(labels, "equals") and hasattr(met, "equals") else list(labels) == list(met):
        return None
    if one.names is not None and other.names is not None:
        fact = f"{called} and {_called(other_name)} have different coordinates along {one.names[axis]!r}"
        hint = f"align them: `{code}, {other_code} = xr.align({code}, {other_code})`, or call `tc.interop.xarray(f)`"
        return _fault(fact, span, hint + ", which does")
    hint = f"pass cells by their positions: `{other_code}.to_numpy()`"
    if len(one.axes) == len(other.axes):
        hint = f"align them, as in `{code}, {other_code} = {code}.align({other_code})`, or {hint}"
    if one.library == other.library == "polars":
        hint = f"choose the same columns: `{other_code}.select({code}.columns)`"
    elif one.library == other.library:
        hint += f"; `tc.interop.{one.library}(f)` aligns its arguments"
    fact = f"{called} and {_called(other_name)} have different labels for their cells, which would be lost"
    return _fault(fact, span, hint)


def _called(label: str) -> str:
    return f"`{label}`" if label else "this array"


def _code(label: str) -> str:
    # How it is written in what to write instead.
    return label if label.isidentifier() else "x"


def _fault(fact: str, span: Span | None, hint: str) -> TcdslError:
    return DtypeError.at(fact, span, hint)
