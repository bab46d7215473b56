"""`TensorDim`: a name for an extent, which ``bind_dims`` binds.

::

    N, K = TensorDims(2)
    A.bind_dims(N, K)        N and K are the extents of A from here on
    B.bind_dims(K, N)        those of B must agree
    O = TensorOutput(N // 2, K + 1)

Under a decorator an extent is a size of the program, so that one program serves all shapes; on tensors outside it is an
integer.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from tcdsl.errors import DslSyntaxError, ShapeError
from tcdsl.frontend.staging.faults import valued
from tcdsl.frontend.staging.session import current_session
from tcdsl.frontend.symbols.operators import ArithmeticOperators, BoundLater
from tcdsl.frontend.symbols.symbols import SymbolicArray, SymbolicNumber, SymbolicSize
from tcdsl.frontend.symbols.values import int64_constant
from tcdsl.frontend.tile.user_lines import fault, location, names_held
from tcdsl.ir.expressions import Expr
from tcdsl.tracebacks import user_facing

__all__ = ["TensorDim", "TensorDims", "bind_dims", "extent_expression", "how_many", "kind_of", "known_size"]

_ON_INTEGERS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "add": operator.add,
        "sub": operator.sub,
        "mul": operator.mul,
        "div": operator.truediv,
        "floor_div": operator.floordiv,
        "mod": operator.mod,
        "pow": operator.pow,
        "neg": operator.neg,
        "abs": abs,
        "max": max,
        "min": min,
        "lt": operator.lt,
        "le": operator.le,
        "gt": operator.gt,
        "ge": operator.ge,
        "eq": operator.eq,
        "ne": operator.ne,
    }
)


class TensorDim(BoundLater, SymbolicSize):
    """``N = TensorDim()``: a size that `bind_dims` binds. What is computed with it is computed with the size."""

    __slots__ = ("_size",)

    def __init__(self) -> None:
        self._size: Any = None

    @property
    def is_bound(self) -> bool:
        """Whether ``bind_dims`` has bound it, to an integer or in the program under construction."""
        if isinstance(self._size, SymbolicSize):
            session = current_session()
            return session is not None and self._size.builder is session.builder
        return self._size is not None

    def bind(self, size: Any) -> None:
        """From here on it is ``size``, an integer or a size of the program."""
        self._size = size

    def bound(self) -> Any:
        """The size. `DslSyntaxError` before it is bound."""
        if not self.is_bound:
            name = names_held(TensorDim).get(id(self), "a TensorDim")
            raise fault(
                DslSyntaxError,
                f"`{name}` is used before it is bound to a size",
                "bind it to an extent of a tensor first: `A.bind_dims(N, K)`",
            )
        return self._size

    @property
    def expr(self) -> Expr:  # type: ignore[override]
        """The size as an expression."""
        return extent_expression(self.bound())

    @property
    def builder(self) -> Any:  # type: ignore[override]
        """The program under construction."""
        session = current_session()
        if session is not None:
            return session.builder
        return getattr(self._size, "builder", None)

    def _combined(self, primitive: str, *operands: object) -> Any:
        given = [each.bound() if isinstance(each, BoundLater) else each for each in operands]
        host = next((each for each in given if isinstance(each, ArithmeticOperators)), None)
        if host is not None:
            return host._combined(primitive, *given)
        if primitive in _ON_INTEGERS and all(isinstance(each, int | float) for each in given):
            try:
                return _ON_INTEGERS[primitive](*given)
            except ZeroDivisionError:
                raise fault(ShapeError, "a size is divided by 0", "divide sizes by what is never 0") from None
        return NotImplemented

    def __index__(self) -> int:
        return operator.index(self.bound())

    __int__ = __index__

    def __float__(self) -> float:
        return float(self.bound())

    def __bool__(self) -> bool:
        return bool(self.bound())

    def __repr__(self) -> str:
        return "<TensorDim, not bound>" if self._size is None else f"<TensorDim {self._size!r}>"


@user_facing
def TensorDims(count: int) -> list[TensorDim]:  # noqa: N802  # Tile's name
    """``N, M, K = TensorDims(3)``."""
    return [TensorDim() for _ in range(how_many(count, "TensorDims"))]


def how_many(count: object, called: str) -> int:
    """``TensorDims(3)``: the number, which is 0 or more. `DslSyntaxError` for what is none."""
    known = known_size(count)
    if not isinstance(known, int) or known < 0:
        given = str(known) if isinstance(known, int) else kind_of(count)
        raise fault(DslSyntaxError, f"{called} of {given}", f"say how many: `{called}(3)`")
    return known


def kind_of(value: object) -> str:
    """What to call a value that is no size, ``a float``."""
    name = value.weak_kind if isinstance(value, SymbolicNumber) else type(value).__name__
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def known_size(value: Any) -> Any:
    """A size as operators take it: what a `TensorDim` is bound to, and numbers of the call as integers.

    ``None`` for what is no size. A number that the call gives becomes a constant of the program, which is then staged
    for its value.
    """
    if isinstance(value, BoundLater):
        value = value.bound()
    if isinstance(value, SymbolicSize):
        return value
    if isinstance(value, SymbolicNumber):
        return None if value.weak_kind == "float" else int(value)
    if isinstance(value, bool) or not hasattr(value, "__index__") or isinstance(value, ArithmeticOperators):
        return None
    try:
        return operator.index(value)
    except TypeError:  # an array that is no integer
        return None


def extent_expression(value: Any) -> Expr:
    """What `known_size` gives, as an expression."""
    return value.expr if isinstance(value, SymbolicSize) else int64_constant(value, location())


def bind_dims(array: Any, sizes: Sequence[Any]) -> None:
    """``array.bind_dims(*sizes)``: binds those that are `TensorDim`s without a size; all others must agree.

    `ShapeError` for another number of sizes than axes, and where a size differs.
    """
    lens = getattr(array, "lens", None)
    extents = array.shape if lens is None else lens.shown(array.shape)
    if len(sizes) != len(extents):
        are = "1 size is" if len(sizes) == 1 else f"{len(sizes)} sizes are"
        raise fault(
            ShapeError,
            f"`{_label(array)}` has rank {len(extents)}, but {are} given for it",
            "give one size per axis",
        )
    for axis, (size, extent) in enumerate(zip(sizes, extents, strict=True)):
        if isinstance(size, TensorDim) and not size.is_bound:
            size.bind(extent)
            continue
        known = known_size(size)
        if known is None:
            raise fault(DslSyntaxError, f"{kind_of(size)} as a size", "bind `TensorDim`s, or write integers and sizes")
        _require_equal(array, axis, size, known, extent)


def _require_equal(array: Any, axis: int, size: object, known: Any, extent: Any) -> None:
    name = names_held(TensorDim).get(id(size))
    wanted = "" if name is None else f", to which `{name}` is bound"
    expected, found = extent_expression(known), extent_expression(extent)
    fact = f"axis {axis} of `{_label(array)}` has the extent {valued(found)}, not {valued(expected)}{wanted}"
    session = current_session()
    if session is not None:
        session.builder.require_equal(expected, found, fact, location())
    elif known != extent:
        raise fault(ShapeError, fact)


def _label(array: Any) -> str:
    known = names_held(SymbolicArray if isinstance(array, SymbolicArray) else type(array)).get(id(array))
    return str(known or getattr(array, "label", "the tensor"))
