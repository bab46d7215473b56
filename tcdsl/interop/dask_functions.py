"""Functions for Dask: ``layer = tc.interop.dask(f)`` runs ``f`` on chunked arrays, block by block.

What is staged for the whole arrays, which is run nowhere, is cut by the chunks of the inputs (`tcdsl.blocks`), and
becomes a graph (`dask_graphs.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import dask
import dask.array
import numpy as np

from tcdsl.blocks.plans import BlockPlan
from tcdsl.blocks.regions import TYPICAL, expressions_of_box, input_relations, shape_of
from tcdsl.errors import ConfigurationError, DtypeError, ShapeError
from tcdsl.frontend.staging.given_arrays import given_array, labels_of
from tcdsl.interop.array_functions import ArrayFunction, taken_apart
from tcdsl.interop.dask_graphs import computed, grid_of
from tcdsl.ir.expressions import Constant, Expr
from tcdsl.ir.program import Program, without_rules
from tcdsl.ir.stages import in_order
from tcdsl.ir.text.expression_printer import format_expr
from tcdsl.runtime.calling.entries import Entry
from tcdsl.runtime.calling.structure import Structure
from tcdsl.runtime.displays.tables import Table
from tcdsl.simplification.simplify import simplify
from tcdsl.tracebacks import user_facing

__all__ = ["DaskFunction", "lazy_results", "stand_in"]


class DaskFunction:
    """``layer = tc.interop.dask(f)``: ``f`` for arrays of Dask; see `tcdsl.interop.dask`."""

    __name__: str

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function, updated=())
        self.function = function

    @user_facing
    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """The results as arrays of Dask, nested as ``f`` returns them."""
        leaves, structure = lazy_results(*self._taken_apart(arguments, keywords))
        return structure.build(leaves)

    @user_facing
    def regions(self, *arguments: Any, **keywords: Any) -> Table:
        """Which cells of each input a block of each result is made of: ``print(layer.regions(x))``.

        The block of a result is ``y[a0:a1, b0:b1]``; ``:`` is a whole axis. Nothing is computed.
        """
        staged = _Staged(*self._taken_apart(arguments, keywords))
        rows = [row for name in dict.fromkeys(staged.program.outputs) for row in _rows(staged, name)]
        notes = (f"for blocks of {TYPICAL} cells and more along each axis",)
        return Table(f"regions of {self.__name__}", ("block", "reads"), rows, notes, frozenset((0, 1)))

    def _taken_apart(self, arguments: Sequence[Any], keywords: dict[str, Any]) -> tuple[ArrayFunction, list[Any]]:
        form, operands = taken_apart(self.__name__, arguments, keywords, _is_array)
        return ArrayFunction.of(self.function, form), operands

    def __reduce__(self) -> tuple[Any, ...]:
        return DaskFunction, (self.function,)

    def __repr__(self) -> str:
        return f"<{self.function!r} for Dask>"


def lazy_results(function: ArrayFunction, operands: Sequence[Any]) -> tuple[list[dask.array.Array], Structure]:
    """The results of a function of arrays of Dask, of NumPy and of numbers, and the structure around them."""
    staged = _Staged(function, operands)
    arrays = computed(staged.plan(), staged.given)
    return [arrays[name] for name in staged.program.outputs], staged.entry.structure


class _Staged:
    """What is staged for a call, and the arrays that are the inputs of its program."""

    def __init__(self, function: ArrayFunction, operands: Sequence[Any]) -> None:
        names = function.operand_names()
        stand_ins = [stand_in(function.name, name, each) for name, each in zip(names, operands, strict=True)]
        self.entry, inputs, places = function.entry(stand_ins)
        self.program = _straight(function.name, self.entry)
        self.given: dict[str, dask.array.Array] = {}
        for tensor, array, place in zip(self.entry.executable.program.inputs, inputs, places, strict=True):
            operand = array if place is None else operands[place]
            if not isinstance(operand, dask.array.Array):
                operand = dask.array.from_array(array, chunks=-1)
            if operand.dtype != tensor.dtype:
                fact = f"{function.name}(): `{tensor.name}` has the element type {operand.dtype.str}"
                raise DtypeError.at(fact, hint=f'convert it: `.astype("{tensor.dtype}")`')
            self.given[tensor.name] = operand
        self.sizes = dict(self.entry.executable.sizes(inputs))

    def plan(self) -> BlockPlan:
        """How the program is cut."""
        return BlockPlan(self.program, self.sizes, {name: grid_of(array) for name, array in self.given.items()})


def _is_array(value: Any) -> bool:
    if isinstance(value, type):
        return False
    return dask.is_dask_collection(value) or hasattr(value, "__array__") or hasattr(value, "__dlpack__")


def stand_in(function: str, name: str, operand: Any) -> np.ndarray:
    """An array of the type and shape of one of Dask, whose cells are nothing; others are themselves."""
    if not isinstance(operand, dask.array.Array):
        if dask.is_dask_collection(operand) or labels_of(operand) is not None:
            fact = f"{function}(): `{name}` is a {type(operand).__name__}, and no array of Dask"
            instead = f"`{name}.data`, `{name}.to_dask_array(lengths=True)` or `dask.array.from_delayed({name}, ...)`"
            raise DtypeError.at(fact, hint=f"pass an array that has its cells, by {instead}, as the case may be")
        given = given_array(operand, name, f"{function}(): ")
        return np.asarray(operand) if given is None else given
    if any(np.isnan(extent) for extent in operand.shape):
        fact = f"{function}(): the chunks of `{name}` have unknown sizes"
        raise ShapeError.at(fact, hint=f"compute them first: `{name}.compute_chunk_sizes()`")
    if type(operand._meta) is not np.ndarray:
        kind = type(operand._meta)
        fact = f"{function}(): the chunks of `{name}` are of the type {kind.__module__}.{kind.__qualname__}"
        raise DtypeError.at(fact, hint=f"convert them to arrays of NumPy: `{name}.map_blocks(np.asarray)`")
    return np.broadcast_to(np.zeros((), operand.dtype), operand.shape)


def _straight(name: str, entry: Entry) -> Program:
    # The program, if blocks can be made of it.
    program = entry.executable.program
    if entry.draws:
        fact = f"{name}() draws random numbers, which depend on the order of its calls"
        raise ConfigurationError.at(fact, hint="pass random arrays as arguments: `dask.array.random`")
    if program.updates:
        changed = ", ".join(f"`{each}`" for each, _ in program.updates)
        fact = f"{name}() changes {changed} in place, and arrays of Dask do not change"
        raise ConfigurationError.at(fact, hint="return a new array instead")
    if program.repeats:
        repeat = program.repeats[0]
        kind = "calls a function of Python" if repeat.host else "has a loop or a branch that runs"
        fact = f"{name}() {kind}, which cannot be cut into blocks"
        hint = "write it in index notation, or use `dask.array.map_blocks(f, ...)` where blocks do not depend on others"
        raise ConfigurationError.at(fact, repeat.span, hint)
    if len(program.outputs) > entry.structure.leaves:
        fact = f"{name}() checks conditions on its cells, which no block knows for all of them"
        raise ConfigurationError.at(fact, hint="check them outside of the function")
    return in_order(simplify(without_rules(program)))


def _rows(staged: _Staged, output: str) -> list[tuple[str, str]]:
    program, sizes = staged.program, staged.sizes
    whole = shape_of(program.tensor(output), sizes)
    rank = len(whole)
    letters = [(f"{name}0", f"{name}1") for name in ("abcdefgh"[:rank] if rank <= 8 else map(str, range(rank)))]
    block = _place(_label(program, output), [f"{low}:{high}" for low, high in letters])
    rows = []
    for name, relation in input_relations(program, sizes, output).items():
        shape = shape_of(program.tensor(name), sizes)
        ends = expressions_of_box(relation, whole, letters)
        axes = [_span(low, high, extent) for (low, high), extent in zip(ends, shape, strict=True)]
        rows.append((block, _place(_label(program, name), axes)))
    return sorted(rows, key=lambda row: row[1])


def _label(program: Program, name: str) -> str:
    return program.tensor(name).label or name


def _place(name: str, axes: Sequence[str]) -> str:
    return f"{name}[{', '.join(axes) or '()'}]"


def _span(low: Expr, high: Expr, extent: int) -> str:
    if isinstance(low, Constant) and isinstance(high, Constant) and (low.value, high.value) == (0, extent):
        return ":"
    return f"{format_expr(low)}:{format_expr(high)}"
