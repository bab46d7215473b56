"""Python's operators on symbolic objects; what each means is decided in `tcdsl.frontend.arithmetic`."""

from __future__ import annotations

from typing import Any

__all__ = ["ArithmeticOperators"]


def _combine(primitive: str, *operands: object) -> Any:
    from tcdsl.frontend.arithmetic import combine
    from tcdsl.frontend.points import PointValue

    if any(isinstance(operand, PointValue) for operand in operands):
        return NotImplemented  # the scalar at a point knows what to do with its reflected operator

    return combine(primitive, *operands)


class ArithmeticOperators:
    """Mixin: ``a + b``, ``-a``, ``a < b``, ``a[1:]``, ``np.exp(a)`` on symbolic sizes, numbers and arrays."""

    __slots__ = ()
    __array_priority__ = 1000.0
    __hash__ = object.__hash__

    def __add__(self, other: object) -> Any:
        return _combine("add", self, other)

    def __radd__(self, other: object) -> Any:
        return _combine("add", other, self)

    def __sub__(self, other: object) -> Any:
        return _combine("sub", self, other)

    def __rsub__(self, other: object) -> Any:
        return _combine("sub", other, self)

    def __mul__(self, other: object) -> Any:
        return _combine("mul", self, other)

    def __rmul__(self, other: object) -> Any:
        return _combine("mul", other, self)

    def __truediv__(self, other: object) -> Any:
        return _combine("div", self, other)

    def __rtruediv__(self, other: object) -> Any:
        return _combine("div", other, self)

    def __floordiv__(self, other: object) -> Any:
        return _combine("floor_div", self, other)

    def __rfloordiv__(self, other: object) -> Any:
        return _combine("floor_div", other, self)

    def __mod__(self, other: object) -> Any:
        return _combine("mod", self, other)

    def __rmod__(self, other: object) -> Any:
        return _combine("mod", other, self)

    def __pow__(self, other: object) -> Any:
        return _combine("pow", self, other)

    def __rpow__(self, other: object) -> Any:
        return _combine("pow", other, self)

    def __and__(self, other: object) -> Any:
        return _combine("bit_and", self, other)

    def __rand__(self, other: object) -> Any:
        return _combine("bit_and", other, self)

    def __or__(self, other: object) -> Any:
        return _combine("bit_or", self, other)

    def __ror__(self, other: object) -> Any:
        return _combine("bit_or", other, self)

    def __xor__(self, other: object) -> Any:
        return _combine("bit_xor", self, other)

    def __rxor__(self, other: object) -> Any:
        return _combine("bit_xor", other, self)

    def __lshift__(self, other: object) -> Any:
        return _combine("shift_left", self, other)

    def __rlshift__(self, other: object) -> Any:
        return _combine("shift_left", other, self)

    def __rshift__(self, other: object) -> Any:
        return _combine("shift_right", self, other)

    def __rrshift__(self, other: object) -> Any:
        return _combine("shift_right", other, self)

    def __neg__(self) -> Any:
        return _combine("neg", self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return _combine("abs", self)

    def __invert__(self) -> Any:
        return _combine("bit_not", self)

    def __eq__(self, other: object) -> Any:
        return _combine("eq", self, other)

    def __ne__(self, other: object) -> Any:
        return _combine("ne", self, other)

    def __lt__(self, other: object) -> Any:
        return _combine("lt", self, other)

    def __le__(self, other: object) -> Any:
        return _combine("le", self, other)

    def __gt__(self, other: object) -> Any:
        return _combine("gt", self, other)

    def __ge__(self, other: object) -> Any:
        return _combine("ge", self, other)

    def __matmul__(self, other: object) -> Any:
        from tcdsl.frontend.contraction import matrix_product

        return matrix_product(self, other)

    def __rmatmul__(self, other: object) -> Any:
        from tcdsl.frontend.contraction import matrix_product

        return matrix_product(other, self)

    def __bool__(self) -> bool:
        from tcdsl.frontend.concrete import truth_of

        return truth_of(self)

    def __index__(self) -> int:
        from tcdsl.frontend.concrete import integer_of

        return integer_of(self)

    __int__ = __index__

    def __float__(self) -> float:
        from tcdsl.frontend.concrete import number_of

        return number_of(self)

    def __len__(self) -> int:
        from tcdsl.frontend.concrete import length_of

        return length_of(self)

    def __iter__(self) -> Any:
        from tcdsl.frontend.concrete import iterate

        return iterate(self)

    def __getitem__(self, key: object) -> Any:
        from tcdsl.frontend.views import view

        return view(self, key)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: object, **kwargs: object) -> Any:
        from tcdsl.frontend.arithmetic import combine_ufunc

        return combine_ufunc(ufunc, method, inputs, kwargs)
