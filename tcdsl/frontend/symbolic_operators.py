"""The algebra of decorated functions: what operators and methods of symbolic objects do.

NumPy asks here too, where plain Python functions call its functions: ``np.sum(x)``, ``np.where(c, a, b)``. In decorated
functions the rewriting recognizes them before NumPy does; a function of ops that `tcdsl.grad` stages, and helpers, run
as they stand. They mean the same on tensors of graphs.

Where Python asks a symbolic object for a concrete value, a number becomes a constant of the program, and the rest are
errors.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np

from tcdsl.errors import DslSyntaxError, DtypeError, ShapeError, TcdslError
from tcdsl.frontend.arrays import arithmetic, array_stores, stacking, views
from tcdsl.frontend.arrays.array_literals import leaves_of
from tcdsl.frontend.arrays.filled_arrays import filled_array
from tcdsl.frontend.logics import contraction
from tcdsl.frontend.logics.logic_staging import record_einsum
from tcdsl.frontend.points.point_scalars import PointValue
from tcdsl.frontend.source.rewritten_functions import RECORDER
from tcdsl.frontend.staging.run_time_integers import RunsOnTensors, Specialize
from tcdsl.frontend.staging.session import current_session, session_of
from tcdsl.frontend.surroundings.named_values import is_installed
from tcdsl.frontend.symbols.graph_tensors import GraphTensor
from tcdsl.frontend.symbols.operators import Algebra
from tcdsl.frontend.symbols.recognition import REDUCTIONS, recognize
from tcdsl.frontend.symbols.symbols import (
    PendingArray,
    SymbolicArray,
    SymbolicNumber,
    SymbolicSize,
    SymbolicTensor,
    reduced,
)
from tcdsl.frontend.tile.cells import access
from tcdsl.frontend.tile.constant_cells import cell_or_view
from tcdsl.frontend.tile.sizes import bind_dims
from tcdsl.installation import FOLDER

__all__ = ["JOINING", "WholeArrays", "numpy_function"]

_INSTEAD = "one program serves every shape; {}, or pass {} as a keyword-only argument"
_OF_INTEGERS = "use an index variable or a generator inside a statement instead of a Python loop"
_REFUSED: Mapping[type, tuple[str, str]] = {
    bool: ("as a branch", _INSTEAD.format("write a condition in a statement (`O[i] = a if c else b`)", "the choice")),
    int: ("as an integer", _INSTEAD.format(_OF_INTEGERS, "the number")),
    float: ("as a float", "use it in tensor arithmetic as it is"),
    np.ndarray: ("as a NumPy array", "use it in tensor arithmetic as it is"),
}


def _concrete(value: Any, kind: type) -> NoReturn:
    """``bool(value)`` and the like: of a run-time number, by staging again; else an error."""
    _refuse(value, *_REFUSED[kind])


def _refuse(value: Any, wanted: str, hint: str) -> NoReturn:
    session = session_of(f"{wanted} of a symbolic value")
    if isinstance(value, SymbolicNumber) and value.parameters:
        raise Specialize(value.parameters)
    kind = "the cells of an array are" if isinstance(value, SymbolicArray) else "a size is"
    fact = f"{kind} not known while the function is staged, so Python cannot use it {wanted}"
    counting = next((each for each in session.running if each.number is not None and each.number is value), None)
    plain = _plain_function()
    if counting is not None:
        [name] = counting.statement.numbers
        fact = f"`{name}` counts the rounds of a loop that runs, so Python cannot use it {wanted}"
        hint = "the body is staged once, for all rounds: give the number of rounds as a keyword-only argument, "
        hint += "and the loop is unrolled"
    if plain:
        hint = f"`{plain}` is a plain function: decorate it with `@op`, so that its loops and branches can run"
    raise session.fault(DslSyntaxError, fact, hint, (f"value: {value!r}",))


def _plain_function() -> str:
    # The function that asks, if it is not a decorated one, in which branches and loops are the program's.
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(FOLDER):
        frame = frame.f_back
    code = frame.f_code
    rewritten = any(name.startswith(RECORDER) for name in (*code.co_freevars, *code.co_cellvars, *code.co_names))
    return "" if rewritten or code.co_name.startswith("<") or is_installed(code.co_filename) else code.co_name


def _length(value: Any) -> int:
    """``len(value)``: only of arrays whose first extent is a constant."""
    if isinstance(value, SymbolicArray) and value.rank:
        extent = value.shape[0]
        if isinstance(extent, int):
            return extent
    _refuse(value, "as a length", "write `x.shape[0]`, which gives the size as a symbol")


def _iterate(value: Any) -> Iterator[Any]:
    """``for row in value``: only over arrays whose first extent is a constant."""
    if isinstance(value, SymbolicArray) and value.rank and isinstance(value.shape[0], int):
        return (value[k] for k in range(value.shape[0]))
    if isinstance(value, SymbolicSize | SymbolicNumber):
        fact = f"{value!r} is a number, and has no cells to go over"
        raise session_of("a loop").fault(DtypeError, fact, "write `for k in range(n)`")
    _refuse(value, "in a loop", "use an index variable in a statement: `O[i] = ... x[i] ...`")


class WholeArrays:
    """Whole-array arithmetic as NumPy's, recorded in the current session: a
    `tcdsl.frontend.symbols.operators.Algebra`, which says what each function is for.
    """

    matrix_product = staticmethod(contraction.matrix_product)
    view = staticmethod(partial(cell_or_view, views.view))
    store = staticmethod(array_stores.store_item)
    transposed = staticmethod(views.transposed)
    cast = staticmethod(arithmetic.cast_any)
    regrouped = staticmethod(stacking.regrouped)
    bind_dims = staticmethod(bind_dims)
    cells = staticmethod(access)
    stacked = staticmethod(stacking.stack)
    literal = staticmethod(stacking.staged_literal)
    einsum = staticmethod(record_einsum)
    reduced = staticmethod(contraction.reduce_array)
    length = staticmethod(_length)
    iterate = staticmethod(_iterate)
    concrete = staticmethod(_concrete)

    def combine(self, primitive: str, *operands: object) -> Any:
        """A primitive on operands, some of them symbolic."""
        if any(isinstance(operand, PointValue) for operand in operands):
            return NotImplemented  # the scalar at a point knows what to do with its reflected operator
        return arithmetic.combine(primitive, *operands)

    def updated(self, array: Any, primitive: str, operand: object) -> Any:
        """``array += operand``: memory is stored into; of a value another one is made, and nobody may read it again."""
        if primitive != "matmul":
            made = self.combine(primitive, array, operand)
            return made if made is NotImplemented else array_stores.update(array, made)
        made = self.matrix_product(array, operand)
        if made.ndim != array.ndim:
            fact = f"`@=` would give an array of rank {made.ndim} for one of rank {array.ndim}"
            raise self.fault(ShapeError, fact, "give the product another name: `c = a @ b`")
        return array_stores.update(array, made)

    def fault(self, kind: type[TcdslError], fact: str, hint: str) -> TcdslError:
        """The error of an operator that has no meaning here."""
        return session_of("a NumPy function of a tensor").fault(kind, fact, hint)

    def function(self, function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """Any other function of NumPy, such as ``np.sum``; `DslSyntaxError` if it has no meaning here."""
        if function in JOINING and keywords.keys() <= {"axis"} and len(arguments) <= 2:
            return _joined(function, *arguments, **keywords)
        for known in (filled_array(function, arguments, keywords), numpy_function(self, function, arguments, keywords)):
            if known is not NotImplemented:
                return known
        given = f" with {', '.join(keywords)}" if keywords else ""
        raise self.fault(
            DslSyntaxError,
            f"{_written(function)}{given} has no meaning for tensors while a function is staged",
            "write it in index notation, or with the operators, primitives and reductions of the language",
        )

    def ufunc(self, ufunc: Any, method: str, inputs: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """A ufunc of NumPy that is no primitive, or a method of one; ``NotImplemented`` if it has no meaning."""
        from tcdsl.frontend.numpy_functions.table import of_ufunc

        return of_ufunc(ufunc, method, inputs, keywords)

    def logical(
        self, name: str, logic: str, operands: Sequence[Any], record: Callable[[Any, Sequence[Any]], Any]
    ) -> Any:
        """What ``record`` makes of operands whose axes meet as ``logic`` says."""
        return record(session_of(name), operands)

    def operation(self, name: str, operands: Sequence[Any], record: Callable[[Any, Sequence[Any]], Any]) -> Any:
        """What ``record`` makes of operands whose shapes are known."""
        return record(session_of(name), operands)

    def recorded(self, array: PendingArray, label: str) -> SymbolicTensor:
        """The tensor that holds the cells of pending arithmetic."""
        return arithmetic.record_elementwise(session_of("tensor arithmetic"), array.element, array.extents, label)


def _written(function: Callable[..., Any]) -> str:
    # ``np.linalg.solve``.
    module = str(getattr(function, "__module__", None) or "numpy").removeprefix("numpy")
    return f"np{module}.{function.__name__}"


JOINING = (np.concatenate, np.hstack, np.vstack, np.stack)


def _joined(function: Callable[..., Any], parts: Sequence[Any], axis: int = 0) -> Any:
    if function is np.stack:
        return stacking.layered(parts, axis)
    if function in (np.vstack, np.hstack):
        parts = [part if isinstance(part, list | tuple) or np.ndim(part) else [part] for part in parts]
    if function is np.vstack:
        parts = [_as_row(part) for part in parts]
    elif function is np.hstack:
        axis = min(1, max(getattr(part, "ndim", 1) for part in parts) - 1)
    return stacking.joined(parts, axis)


def _as_row(part: Any) -> Any:
    if isinstance(part, list | tuple):
        return part if isinstance(part[0], list | tuple) else [part]
    return part[None] if part.ndim == 1 else part


_POINTWISE = {np.copy: "id", np.round: "round"}


def numpy_function(
    algebra: Algebra, function: Callable[..., Any], arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> Any:
    """``function(*arguments, **keywords)`` by the operators of ``algebra``; ``NotImplemented`` if they have it not."""
    options = _options(function, arguments, keywords)
    array, name = options.get("a"), recognize(function)
    if function is np.where and len(options) == 3:
        return algebra.combine("where", *options.values())
    row = _row(function, arguments, keywords)
    if row is not NotImplemented:
        return row
    if not isinstance(array, SymbolicArray | GraphTensor):
        return NotImplemented
    if name is not None and name in REDUCTIONS:
        return reduced(algebra, name, array, **{option: given for option, given in options.items() if option != "a"})
    if len(options) == 1 and function in _POINTWISE:
        return algebra.combine(_POINTWISE[function], array)
    if len(options) == 1 and function is np.transpose:
        return algebra.transposed(array)
    if len(options) == 1 and function in (np.shape, np.ndim, np.size):
        return getattr(array, function.__name__)
    return NotImplemented


# On tensors of graphs these are nodes too; of others NumPy computes arrays.
_NODES = (np.var, np.std, np.flip, np.linalg.norm, np.clip, np.diff, np.dot, np.outer)


def _row(function: Callable[..., Any], arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    given = [*arguments, *keywords.values()]
    inside = [each for one in given if isinstance(one, tuple | list) for each in leaves_of(one)]
    if any(isinstance(each, GraphTensor) for each in (*given, *inside)):
        if function not in _NODES or any(isinstance(each, GraphTensor) for each in inside):
            session = current_session()
            if session is not None and session.may_be_whole and (function in JOINING or _has_row(function)):
                raise RunsOnTensors  # as arrays of the program
            return NotImplemented
    elif not any(isinstance(each, SymbolicArray) for each in (*given, *inside)):
        return NotImplemented
    from tcdsl.frontend.numpy_functions.table import called

    return called(function, arguments, keywords)


def _has_row(function: Callable[..., Any]) -> bool:
    from tcdsl.frontend.numpy_functions.table import FUNCTIONS

    return function in FUNCTIONS


def _options(function: Callable[..., Any], arguments: Sequence[Any], keywords: Mapping[str, Any]) -> dict[str, Any]:
    # By parameter, without those that NumPy's own wrappers pass although nobody gave them.
    try:
        bound = inspect.signature(function).bind(*arguments, **keywords).arguments
    except (TypeError, ValueError):
        bound = {**{f"argument {k}": value for k, value in enumerate(arguments)}, **keywords}
    return {name: value for name, value in bound.items() if value is not None and value is not np._NoValue}
