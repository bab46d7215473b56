"""The algebra of decorated functions: what operators and methods of symbolic objects do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tcdsl.frontend.arrays import arithmetic, array_stores, views
from tcdsl.frontend.arrays.stacking import staged_literal
from tcdsl.frontend.logics import contraction
from tcdsl.frontend.logics.einsum_statements import record_einsum
from tcdsl.frontend.numpy_of_arrays import numpy_function
from tcdsl.frontend.points.point_scalars import PointValue
from tcdsl.frontend.staging import concrete
from tcdsl.frontend.staging.session import session_of
from tcdsl.frontend.symbols.symbols import PendingArray, SymbolicArray, SymbolicTensor

__all__ = ["WholeArrays"]


class WholeArrays:
    """Whole-array arithmetic as NumPy's, recorded in the current session. A
    `tcdsl.frontend.symbols.operators.Algebra`.
    """

    def combine(self, primitive: str, *operands: object) -> Any:
        """A primitive on operands, some of them symbolic."""
        if any(isinstance(operand, PointValue) for operand in operands):
            return NotImplemented  # the scalar at a point knows what to do with its reflected operator
        return arithmetic.combine(primitive, *operands)

    def matrix_product(self, left: object, right: object) -> Any:
        """``left @ right``."""
        return contraction.matrix_product(left, right)

    def ufunc(self, ufunc: Any, method: str, inputs: Sequence[object], keywords: Mapping[str, object]) -> Any:
        """A universal function of NumPy, such as ``np.exp``, of symbolic arrays."""
        if ufunc is np.matmul and method == "__call__" and not keywords:
            return contraction.matrix_product(*inputs)
        return arithmetic.combine_ufunc(ufunc, method, inputs, keywords)

    def function(self, function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """Any other function of NumPy, such as ``np.sum``, of symbolic arrays."""
        return numpy_function(function, arguments, keywords)

    def view(self, array: Any, key: object) -> Any:
        """``array[key]``."""
        return views.view(array, key)

    def store(self, array: SymbolicArray, key: object, value: object) -> None:
        """``array[key] = value``, where Python itself stores."""
        array_stores.store_item(array, key, value)

    def transposed(self, array: SymbolicArray) -> PendingArray:
        """``array.T``."""
        return views.transposed(array)

    def cast(self, operand: Any, dtype: str) -> Any:
        """``operand`` converted to ``dtype``."""
        return arithmetic.cast_any(operand, dtype)

    def reduced(self, accumulate: str, array: SymbolicArray, axis: Any, keepdims: bool) -> Any:
        """A reduction over axes."""
        return contraction.reduce_array(accumulate, array, axis, keepdims)

    def logical(
        self, name: str, logic: str, operands: Sequence[Any], record: Callable[[Any, Sequence[Any]], Any]
    ) -> Any:
        """What ``record`` makes of operands whose axes meet as ``logic`` says."""
        return record(session_of(name), operands)

    def einsum(self, spec: str, operands: tuple[object, ...], accumulate: str, primitive: str) -> Any:
        """``einsum(spec, *operands)``."""
        return record_einsum(spec, operands, accumulate, primitive)

    def literal(self, value: Any) -> SymbolicArray:
        """The array that a literal stands for."""
        return staged_literal(session_of("an array literal"), value)

    def recorded(self, array: PendingArray, label: str) -> SymbolicTensor:
        """The tensor that holds the cells of pending arithmetic."""
        return arithmetic.record_elementwise(array.builder, array.element, array.extents, label)

    def truth(self, value: Any) -> bool:
        """``bool(value)``."""
        return concrete.truth_of(value)

    def integer(self, value: Any) -> int:
        """``int(value)``."""
        return concrete.integer_of(value)

    def number(self, value: Any) -> float:
        """``float(value)``."""
        return concrete.number_of(value)

    def length(self, value: Any) -> int:
        """``len(value)``."""
        return concrete.length_of(value)

    def array(self, value: Any) -> Any:
        """``np.asarray(value)``."""
        return concrete.array_of(value)

    def iterate(self, value: Any) -> Iterator[Any]:
        """``iter(value)``."""
        return concrete.iterate(value)
