"""The algebra of decorated functions: what operators and methods of symbolic objects do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tcdsl.errors import DslSyntaxError, TcdslError
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
    """Whole-array arithmetic as NumPy's, recorded in the current session: a
    `tcdsl.frontend.symbols.operators.Algebra`, which says what each function is for.
    """

    matrix_product = staticmethod(contraction.matrix_product)
    view = staticmethod(views.view)
    store = staticmethod(array_stores.store_item)
    transposed = staticmethod(views.transposed)
    cast = staticmethod(arithmetic.cast_any)
    reduced = staticmethod(contraction.reduce_array)
    truth = staticmethod(concrete.truth_of)
    integer = staticmethod(concrete.integer_of)
    number = staticmethod(concrete.number_of)
    length = staticmethod(concrete.length_of)
    array = staticmethod(concrete.array_of)
    iterate = staticmethod(concrete.iterate)

    def combine(self, primitive: str, *operands: object) -> Any:
        """A primitive on operands, some of them symbolic."""
        if any(isinstance(operand, PointValue) for operand in operands):
            return NotImplemented  # the scalar at a point knows what to do with its reflected operator
        return arithmetic.combine(primitive, *operands)

    def fault(self, kind: type[TcdslError], fact: str, hint: str) -> TcdslError:
        """The error of an operator that has no meaning here."""
        return session_of("a NumPy function of a tensor").fault(kind, fact, hint)

    def function(self, function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """Any other function of NumPy, such as ``np.sum``; `DslSyntaxError` if it has no meaning here."""
        made = numpy_function(self, function, arguments, keywords)
        if made is not NotImplemented:
            return made
        given = f" with {', '.join(keywords)}" if keywords else ""
        raise self.fault(
            DslSyntaxError,
            f"np.{function.__name__}{given} has no meaning for tensors while a function is staged",
            "write it in index notation, or with the operators, primitives and reductions of the language",
        )

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
        return arithmetic.record_elementwise(session_of("tensor arithmetic"), array.element, array.extents, label)
