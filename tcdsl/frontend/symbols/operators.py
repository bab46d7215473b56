"""Python's operators on symbolic objects; the `Algebra` of the program under construction decides what they mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from tcdsl.frontend.symbols.written_cells import WrittenCells
from tcdsl.rows.ranks import RowRanks

__all__ = ["Algebra", "ArithmeticOperators", "OperatorHost"]


class Algebra(Protocol):
    """What arithmetic on symbolic objects does; in decorated functions that is `tcdsl.frontend.symbolic_operators`."""

    def combine(self, primitive: str, *operands: object) -> Any:
        """A primitive on operands, some of them symbolic."""

    def matrix_product(self, left: object, right: object) -> Any:
        """``left @ right``."""

    def ufunc(self, ufunc: Any, method: str, inputs: Sequence[object], keywords: Mapping[str, object]) -> Any:
        """A universal function of NumPy, such as ``np.exp``, of symbolic arrays."""

    def function(self, function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """Any other function of NumPy, such as ``np.sum``, of symbolic arrays."""

    def view(self, array: Any, key: object) -> Any:
        """``array[key]``."""

    def store(self, array: Any, key: object, value: object) -> None:
        """``array[key] = value``, where Python itself stores."""

    def transposed(self, array: Any) -> Any:
        """``array.T``."""

    def cast(self, operand: Any, dtype: str) -> Any:
        """``operand`` converted to ``dtype``."""

    def reduced(self, accumulate: str, array: Any, axis: Any, keepdims: bool) -> Any:
        """A reduction over axes."""

    def logical(
        self, name: str, logic: str, operands: Sequence[Any], record: Callable[[Any, Sequence[Any]], Any]
    ) -> Any:
        """What ``record`` makes, in a session, of operands whose axes meet as ``logic`` says."""

    def einsum(self, spec: str, operands: tuple[object, ...], accumulate: str, primitive: str) -> Any:
        """``einsum(spec, *operands)``; ``accumulate`` and ``primitive`` are names of the tables."""

    def literal(self, value: Any) -> Any:
        """The array that a literal stands for: lists are output axes, tuples input axes, batches batch axes."""

    def recorded(self, array: Any, label: str) -> Any:
        """The tensor that holds the cells of pending arithmetic."""

    def truth(self, value: Any) -> bool:
        """``bool(value)``."""

    def integer(self, value: Any) -> int:
        """``int(value)``."""

    def number(self, value: Any) -> float:
        """``float(value)``."""

    def length(self, value: Any) -> int:
        """``len(value)``."""

    def array(self, value: Any) -> Any:
        """``np.asarray(value)``."""

    def iterate(self, value: Any) -> Iterator[Any]:
        """``iter(value)``."""


class OperatorHost(Protocol):
    """The program under construction, as far as operators are concerned."""

    algebra: Algebra
    written: WrittenCells

    def knows(self, name: str) -> bool:
        """Whether it has a tensor of that name."""

    def rows(self, name: str) -> RowRanks | None:
        """The rows of a tensor, if it is known to have others than output axes."""

    def set_rows(self, name: str, rows: RowRanks) -> None:
        """Say which axes of a tensor are batch and input axes."""


class ArithmeticOperators:
    """Mixin: ``a + b``, ``-a``, ``a < b``, ``a[1:]``, ``np.exp(a)`` on symbolic sizes, numbers and arrays.

    ``builder`` is the program under construction, whose ``algebra`` decides.
    """

    __slots__ = ()
    __array_priority__ = 1000.0
    __hash__ = object.__hash__

    builder: OperatorHost

    def __add__(self, other: object) -> Any:
        return self.builder.algebra.combine("add", self, other)

    def __radd__(self, other: object) -> Any:
        return self.builder.algebra.combine("add", other, self)

    def __sub__(self, other: object) -> Any:
        return self.builder.algebra.combine("sub", self, other)

    def __rsub__(self, other: object) -> Any:
        return self.builder.algebra.combine("sub", other, self)

    def __mul__(self, other: object) -> Any:
        return self.builder.algebra.combine("mul", self, other)

    def __rmul__(self, other: object) -> Any:
        return self.builder.algebra.combine("mul", other, self)

    def __truediv__(self, other: object) -> Any:
        return self.builder.algebra.combine("div", self, other)

    def __rtruediv__(self, other: object) -> Any:
        return self.builder.algebra.combine("div", other, self)

    def __floordiv__(self, other: object) -> Any:
        return self.builder.algebra.combine("floor_div", self, other)

    def __rfloordiv__(self, other: object) -> Any:
        return self.builder.algebra.combine("floor_div", other, self)

    def __mod__(self, other: object) -> Any:
        return self.builder.algebra.combine("mod", self, other)

    def __rmod__(self, other: object) -> Any:
        return self.builder.algebra.combine("mod", other, self)

    def __pow__(self, other: object) -> Any:
        return self.builder.algebra.combine("pow", self, other)

    def __rpow__(self, other: object) -> Any:
        return self.builder.algebra.combine("pow", other, self)

    def __and__(self, other: object) -> Any:
        return self.builder.algebra.combine("bit_and", self, other)

    def __rand__(self, other: object) -> Any:
        return self.builder.algebra.combine("bit_and", other, self)

    def __or__(self, other: object) -> Any:
        return self.builder.algebra.combine("bit_or", self, other)

    def __ror__(self, other: object) -> Any:
        return self.builder.algebra.combine("bit_or", other, self)

    def __xor__(self, other: object) -> Any:
        return self.builder.algebra.combine("bit_xor", self, other)

    def __rxor__(self, other: object) -> Any:
        return self.builder.algebra.combine("bit_xor", other, self)

    def __lshift__(self, other: object) -> Any:
        return self.builder.algebra.combine("shift_left", self, other)

    def __rlshift__(self, other: object) -> Any:
        return self.builder.algebra.combine("shift_left", other, self)

    def __rshift__(self, other: object) -> Any:
        return self.builder.algebra.combine("shift_right", self, other)

    def __rrshift__(self, other: object) -> Any:
        return self.builder.algebra.combine("shift_right", other, self)

    def __neg__(self) -> Any:
        return self.builder.algebra.combine("neg", self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self.builder.algebra.combine("abs", self)

    def __invert__(self) -> Any:
        return self.builder.algebra.combine("bit_not", self)

    def __eq__(self, other: object) -> Any:
        return self.builder.algebra.combine("eq", self, other)

    def __ne__(self, other: object) -> Any:
        return self.builder.algebra.combine("ne", self, other)

    def __lt__(self, other: object) -> Any:
        return self.builder.algebra.combine("lt", self, other)

    def __le__(self, other: object) -> Any:
        return self.builder.algebra.combine("le", self, other)

    def __gt__(self, other: object) -> Any:
        return self.builder.algebra.combine("gt", self, other)

    def __ge__(self, other: object) -> Any:
        return self.builder.algebra.combine("ge", self, other)

    def __matmul__(self, other: object) -> Any:
        return self.builder.algebra.matrix_product(self, other)

    def __rmatmul__(self, other: object) -> Any:
        return self.builder.algebra.matrix_product(other, self)

    def __bool__(self) -> bool:
        return bool(self.builder.algebra.truth(self))

    def __index__(self) -> int:
        return int(self.builder.algebra.integer(self))

    __int__ = __index__

    def __float__(self) -> float:
        return float(self.builder.algebra.number(self))

    def __len__(self) -> int:
        return int(self.builder.algebra.length(self))

    def __iter__(self) -> Any:
        return self.builder.algebra.iterate(self)

    def __getitem__(self, key: object) -> Any:
        return self.builder.algebra.view(self, key)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: object, **keywords: object) -> Any:
        return self.builder.algebra.ufunc(ufunc, method, inputs, keywords)

    def __array_function__(
        self, function: Any, _: object, arguments: Sequence[Any], keywords: Mapping[str, Any]
    ) -> Any:
        return self.builder.algebra.function(function, arguments, keywords)
