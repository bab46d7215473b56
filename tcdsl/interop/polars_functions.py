"""Functions for polars: ``g = tc.interop.polars(f)`` takes and gives Series and DataFrames with named columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from tcdsl.interop.labelled_arrays import LabelledFunction, OperandAxes, ResultLabels

__all__ = ["PolarsFunction"]


class PolarsFunction(LabelledFunction):
    """``g = tc.interop.polars(f)``: ``f`` for Series and DataFrames; see `tcdsl.interop.polars`."""

    library = "polars"

    def is_labelled(self, value: Any) -> bool:
        """Whether it is a Series or a DataFrame, or something that becomes one."""
        return isinstance(value, pl.Series | pl.DataFrame | pl.LazyFrame | pl.Expr)

    def cells(self, value: Any, name: str) -> Any:
        """The cells as an array."""
        if isinstance(value, pl.LazyFrame | pl.Expr):
            instead = "pass `x.collect()`"
            if isinstance(value, pl.Expr):
                instead = "write `x.map_batches(g)`, or `pl.map_batches(columns, lambda each: g(*each))` for several"
            raise self.refused(f"`{name}` is a {type(value).__name__}, whose cells are not known yet", instead)
        columns = value.get_columns() if isinstance(value, pl.DataFrame) else [value]
        for each in columns:
            if not (each.dtype.is_integer() or each.dtype.is_float() or each.dtype == pl.Boolean):
                whose = f"the column {each.name!r} of `{name}`" if value is not each else f"`{name}`"
                fact = f"{whose} has the type {each.dtype}, which tcdsl does not handle"
                raise self.refused(fact, "choose columns of numbers, or convert it: `x.cast(pl.Float64)`")
        return value

    def aligned(self, operands: Sequence[Any], axes: OperandAxes, names: Sequence[str]) -> list[Any]:
        """The operands themselves: rows have no labels, and columns that meet must be the same ones."""
        for group in axes.tied:
            columns = {
                names[each.operand]: operands[each.operand].columns
                for each in group
                if each.axis == 1 and isinstance(operands[each.operand], pl.DataFrame)
            }
            first = next(iter(columns), "")
            for name, each in columns.items():
                if each != columns[first]:
                    fact = f"one index goes over the columns {columns[first]} of `{first}` and {each} of `{name}`"
                    raise self.fault(fact, f"choose the same ones in one order: `{name}.select({first}.columns)`")
        return list(operands)

    def labelled(self, array: np.ndarray, axes: Sequence[ResultLabels], operands: Sequence[Any]) -> Any:
        """A number, a Series or a DataFrame with the columns that it comes from."""
        columns = [self._columns(axis, extent, operands) for axis, extent in zip(axes, array.shape, strict=True)]
        if array.ndim == 0:
            return array[()]
        if array.ndim == 1:
            if columns[0] is not None:
                return pl.DataFrame(array[np.newaxis], columns[0], orient="row")
            name = next((each.name for each in operands if isinstance(each, pl.Series)), "")
            return pl.Series(name, array)
        if array.ndim == 2 and columns[0] in (None, columns[1]):
            return pl.DataFrame(array, columns[1], orient="row")
        if all(each is None for each in columns):
            return array
        raise self.refused(
            "the names of columns belong to an axis of a result that has no columns",
            "return it with this axis as its second one, or pass cells: `x.to_numpy()`",
        )

    def _columns(self, axis: ResultLabels, extent: int, operands: Sequence[Any]) -> list[str] | None:
        for each in axis.kept:
            operand = operands[each.operand]
            if each.axis == 1 and isinstance(operand, pl.DataFrame) and extent <= operand.width:
                columns: list[str] = operand.columns[:extent]
                return columns
        return None

    def gradient(self, array: np.ndarray, operand: Any, aligned: Any) -> Any:
        """The gradient by ``operand``, with its name or its columns."""
        if isinstance(operand, pl.Series):
            return pl.Series(operand.name, array)
        return pl.DataFrame(array, operand.columns, orient="row")
