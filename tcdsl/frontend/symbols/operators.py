"""Python's operators on symbolic objects; the `Algebra` of the program under construction decides what they mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from tcdsl.errors import DslSyntaxError, DtypeError, TcdslError
from tcdsl.frontend.symbols.recognition import name_of_ufunc, recognize
from tcdsl.frontend.symbols.written_cells import WrittenCells
from tcdsl.rows.ranks import RowRanks

__all__ = [
    "Algebra",
    "ArithmeticOperators",
    "BoundLater",
    "CellOperators",
    "IndexSymbol",
    "MemoryOperators",
    "OperatorHost",
    "PrimitiveOperators",
    "StatementSymbol",
    "both_sides",
    "itself",
]


class StatementSymbol:
    """What stands only in statements, whose operators are its own."""

    __slots__ = ()


class IndexSymbol(StatementSymbol):
    """What makes an index an access to cells of a statement, ``array[symbol]``."""

    __slots__ = ()


class BoundLater:
    """A name for a size, which is bound later: operators take what it is bound to by then."""

    __slots__ = ()

    def bound(self) -> Any:
        """The size, an integer or a symbol. An error before it is bound."""
        raise NotImplementedError


class Algebra(Protocol):
    """What arithmetic on symbolic objects does; in decorated functions that is `tcdsl.frontend.symbolic_operators`."""

    def combine(self, primitive: str, *operands: object) -> Any:
        """A primitive on operands, some of them symbolic."""

    def matrix_product(self, left: object, right: object) -> Any:
        """``left @ right``."""

    def fault(self, kind: type[TcdslError], fact: str, hint: str) -> TcdslError:
        """The error of an operator that has no meaning, at the place that is being executed."""

    def function(self, function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """Any other function of NumPy, such as ``np.sum``, of symbolic arrays."""

    def ufunc(self, ufunc: Any, method: str, inputs: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """A ufunc of NumPy that is no primitive, or a method of one; ``NotImplemented`` if it has no meaning."""

    def view(self, array: Any, key: object) -> Any:
        """``array[key]``."""

    def store(self, array: Any, key: object, value: object) -> None:
        """``array[key] = value``, where Python itself stores."""

    def updated(self, array: Any, primitive: str, operand: object) -> Any:
        """``array += operand`` and the like, where Python itself does it: what the name holds then."""

    def transposed(self, array: Any) -> Any:
        """``array.T``."""

    def regrouped(self, array: Any, batch: int, input: int) -> Any:
        """The same cells, with leading axes as batch and trailing ones as input axes."""

    def stacked(self, parts: Sequence[Any], row: str) -> Any:
        """The parts along a new axis that leads the axes of ``row``."""

    def cast(self, operand: Any, dtype: str) -> Any:
        """``operand`` converted to ``dtype``."""

    def reduced(self, accumulate: str, array: Any, axis: Any, keepdims: bool) -> Any:
        """A reduction over axes."""

    def logical(
        self, name: str, logic: str, operands: Sequence[Any], record: Callable[[Any, Sequence[Any]], Any]
    ) -> Any:
        """What ``record`` makes, in a session, of operands whose axes meet as ``logic`` says."""

    def operation(self, name: str, operands: Sequence[Any], record: Callable[[Any, Sequence[Any]], Any]) -> Any:
        """What ``record`` makes, in a session, of operands whose shapes are known."""

    def einsum(self, spec: str, operands: tuple[object, ...], accumulate: str, primitive: str) -> Any:
        """``einsum(spec, *operands)``; ``accumulate`` and ``primitive`` are names of the tables."""

    def literal(self, value: Any) -> Any:
        """The array that a literal stands for: lists are output axes, tuples input axes, batches batch axes."""

    def recorded(self, array: Any, label: str) -> Any:
        """The tensor that holds the cells of pending arithmetic."""

    def bind_dims(self, array: Any, sizes: Sequence[Any]) -> None:
        """``array.bind_dims(*sizes)``: names the extents of an array, or compares them with sizes."""

    def cells(self, array: Any, key: Any) -> Any:
        """``array[key]`` with an `IndexSymbol` in it."""

    def concrete(self, value: Any, kind: type) -> Any:
        """``bool(value)``, ``int(value)``, ``float(value)`` or ``np.asarray(value)``: what is asked for as ``kind``."""

    def length(self, value: Any) -> int:
        """``len(value)``."""

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

    def stores(self, memory: Any) -> None:
        """Something is about to be stored into memory: a tensor that is to stand for another version."""

    def copies(self, memory: Any) -> None:
        """Memory has been made that holds what other memory holds."""


def _unary(primitive: str) -> Any:
    return lambda self: self._combined(primitive, self)


def _binary(primitive: str) -> Any:
    return lambda self, other: self._combined(primitive, self, other)


def both_sides(primitive: str) -> tuple[Any, Any]:
    """The operator, and what Python calls where the left operand does not know it."""
    return _binary(primitive), lambda self, other: self._combined(primitive, other, self)


def itself(value: Any, _: object) -> Any:
    """A copy of what nobody changes."""
    return value


class PrimitiveOperators:
    """Mixin: Python's operators on numbers as primitives of the language, ``a + b``, ``-a``, ``a < b``."""

    __slots__ = ()
    __hash__ = object.__hash__

    def _combined(self, primitive: str, *operands: object) -> Any:
        # The primitive on operands, one of which this is.
        raise NotImplementedError

    __add__, __radd__ = both_sides("add")
    __sub__, __rsub__ = both_sides("sub")
    __mul__, __rmul__ = both_sides("mul")
    __truediv__, __rtruediv__ = both_sides("div")
    __floordiv__, __rfloordiv__ = both_sides("floor_div")
    __mod__, __rmod__ = both_sides("mod")
    __and__, __rand__ = both_sides("bit_and")
    __or__, __ror__ = both_sides("bit_or")
    __xor__, __rxor__ = both_sides("bit_xor")
    __lshift__, __rlshift__ = both_sides("shift_left")
    __rshift__, __rrshift__ = both_sides("shift_right")
    __neg__, __abs__, __invert__ = _unary("neg"), _unary("abs"), _unary("bit_not")
    __eq__, __ne__ = _binary("eq"), _binary("ne")
    __lt__, __le__, __gt__, __ge__ = _binary("lt"), _binary("le"), _binary("gt"), _binary("ge")

    def __pos__(self) -> Any:
        if getattr(self, "_element_type", None) == "bool":  # of a tensor whose type is open nobody asks
            raise self._fault("`+` of a truth value, which NumPy does not have", "write `a`, or `int64(a)` to count")
        return self

    def __pow__(self, other: object, modulus: object = None) -> Any:
        return self._power(self, other, modulus)

    def __rpow__(self, other: object, modulus: object = None) -> Any:
        return self._power(other, self, modulus)

    def _power(self, base: object, exponent: object, modulus: object) -> Any:
        if modulus is not None:
            raise self._fault("`pow` with three arguments", "write `a**b % m`")
        return self._combined("pow", base, exponent)

    # -- what a value that the call knows has not

    def _fault(self, fact: str, hint: str) -> TcdslError:
        # What is wrong where Python asks for something that only a number or an array of its own has.
        raise NotImplementedError

    def __format__(self, spec: str) -> str:
        if spec:
            fact = f"{spec!r} formats a number, and this one is not known while the function is staged"
            raise self._fault(
                fact, "format what the call gives; a keyword-only argument that Python asks for is a number"
            )
        return repr(self)

    def __round__(self, digits: object = None) -> Any:
        if digits is not None:
            raise self._fault("`round` to a number of digits", "write `round(x * 100) / 100`")
        return self._combined("round", self)

    def __floor__(self) -> Any:
        return self._combined("floor", self)

    def __ceil__(self) -> Any:
        return self._combined("ceil", self)

    def __trunc__(self) -> Any:
        raise self._fault("`trunc` of a value of the program", "write `where(x < 0, ceil(x), floor(x))`, or `int64(x)`")

    def __complex__(self) -> complex:
        raise self._fault("a complex number", "compute with two real ones, `re` and `im`")

    def __contains__(self, value: object) -> Any:
        raise self._fault("`in` of a number", "compare: `a == b`")

    def __setitem__(self, key: object, value: object) -> None:
        raise self._fault("a number has no cells to store into", "make an array: `s = output(n)`, and then `s[i] = e`")

    def __delitem__(self, key: object) -> None:
        raise self._fault("`del` of a part of a tensor", "give what is left a name: `x = x[1:]`")

    def __divmod__(self, other: object) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: object) -> Any:
        # Text on the left has a `%` of its own.
        return self._combined("floor_div", other, self), self._combined("mod", other, self)


class ArithmeticOperators(PrimitiveOperators):
    """Mixin: ``a + b``, ``-a``, ``a < b``, ``a[1:]``, ``np.exp(a)`` on symbolic sizes, numbers and arrays.

    ``builder`` is the program under construction, whose ``algebra`` decides.
    """

    __slots__ = ()
    __array_priority__ = 1000.0

    builder: OperatorHost

    def _combined(self, primitive: str, *operands: object) -> Any:
        # The primitive on operands, one of which this is.
        if any(isinstance(operand, BoundLater | StatementSymbol) for operand in operands):
            if any(isinstance(operand, StatementSymbol) for operand in operands):
                return NotImplemented
            operands = tuple(each.bound() if isinstance(each, BoundLater) else each for each in operands)
        return self.builder.algebra.combine(primitive, *operands)

    def __matmul__(self, other: object) -> Any:
        return self.builder.algebra.matrix_product(self, other)

    def __rmatmul__(self, other: object) -> Any:
        return self.builder.algebra.matrix_product(other, self)

    def __bool__(self) -> bool:
        return bool(self.builder.algebra.concrete(self, bool))

    def __int__(self) -> int:
        return int(self.builder.algebra.concrete(self, int))

    __index__ = __int__

    def __float__(self) -> float:
        return float(self.builder.algebra.concrete(self, float))

    def __len__(self) -> int:
        return int(self.builder.algebra.length(self))

    def __iter__(self) -> Any:
        return self.builder.algebra.iterate(self)

    def _fault(self, fact: str, hint: str) -> TcdslError:
        return self.builder.algebra.fault(DslSyntaxError, fact, hint)

    def __getitem__(self, key: object) -> Any:
        for each in key if isinstance(key, tuple | list) else (key,):
            if isinstance(each, IndexSymbol):
                return self.builder.algebra.cells(self, key)
        return self.builder.algebra.view(self, key)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: object) -> Any:
        algebra, primitive = self.builder.algebra, recognize(ufunc)
        if method == "__call__" and not keywords:
            if ufunc is np.matmul:
                return algebra.matrix_product(*inputs)
            if primitive is not None:
                return algebra.combine(primitive, *inputs)
        if method == "outer" and not keywords and primitive is not None and len(inputs) == 2:
            left, right = (
                np.asarray(each) if isinstance(each, int | float | list | tuple) else each for each in inputs
            )
            apart = left[(..., *[None] * np.ndim(right))] if np.ndim(left) else left
            return algebra.combine(primitive, apart, right)
        known = algebra.ufunc(ufunc, method, inputs, keywords)
        if known is not NotImplemented:
            return known
        called = name_of_ufunc(ufunc) if method == "__call__" else f"{name_of_ufunc(ufunc)}.{method}"
        hint = "write it in index notation, or with the primitives of the language reference"
        if "out" in keywords:
            hint = "assign what it gives: in @cd functions `a[...] = a + b` stores into `a`"
            raise algebra.fault(DtypeError, f"{called} with `out`, which stores into an array", hint)
        raise algebra.fault(DtypeError, f"{called} is not a primitive of tcdsl", hint)

    def __array_function__(
        self, function: Any, _: object, arguments: Sequence[Any], keywords: Mapping[str, Any]
    ) -> Any:
        return self.builder.algebra.function(function, arguments, keywords)


def _updating(primitive: str) -> Any:
    return lambda self, other: self.builder.algebra.updated(self, primitive, other)


class CellOperators(ArithmeticOperators):
    """Mixin: what has cells, and not one number.

    ``a[key] = value`` and ``a += value`` are how plain Python spells stores in a helper. In decorated functions
    themselves such statements never get here: `tcdsl.frontend.python.recorder` records them.
    """

    __slots__ = ()

    def __contains__(self, value: object) -> bool:
        return bool((self == value).any())

    def __setitem__(self, key: object, value: object) -> None:
        self.builder.algebra.store(self, key, value)

    __iadd__, __isub__, __imul__ = _updating("add"), _updating("sub"), _updating("mul")
    __itruediv__, __ifloordiv__ = _updating("div"), _updating("floor_div")
    __imod__, __ipow__, __imatmul__ = _updating("mod"), _updating("pow"), _updating("matmul")
    __iand__, __ior__, __ixor__ = _updating("bit_and"), _updating("bit_or"), _updating("bit_xor")
    __ilshift__, __irshift__ = _updating("shift_left"), _updating("shift_right")


class MemoryOperators(CellOperators):
    """Mixin: what may be memory, which stores change; of values they make another value."""

    __slots__ = ()

    def __deepcopy__(self, _: object) -> Any:
        return self.builder.algebra.combine("id", self)
