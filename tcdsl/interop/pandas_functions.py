"""Functions for pandas: ``g = tc.interop.pandas(f)`` takes and gives Series and DataFrames, aligned by their labels."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from tcdsl.interop.labelled_arrays import LabelledFunction, OperandAxes, OperandAxis, ResultLabels

__all__ = ["PandasFunction"]


class PandasFunction(LabelledFunction):
    """``g = tc.interop.pandas(f)``: ``f`` for Series and DataFrames; see `tcdsl.interop.pandas`."""

    library = "pandas"

    def is_labelled(self, value: Any) -> bool:
        """Whether it is a Series or a DataFrame."""
        return isinstance(value, pd.Series | pd.DataFrame)

    def cells(self, value: Any, name: str) -> Any:
        """The cells, of types of pandas's own as those of NumPy."""
        kinds = list(value.dtypes) if isinstance(value, pd.DataFrame) else []
        if not any(hasattr(kind, "numpy_dtype") for kind in kinds):
            return value
        # Missing cells stay what they are, and are refused.
        own = [getattr(kind, "numpy_dtype", kind) for kind in kinds]
        return value if value.isna().any(axis=None) else value.to_numpy(dtype=np.result_type(*own))

    def aligned(self, operands: Sequence[Any], axes: OperandAxes, names: Sequence[str]) -> list[Any]:
        """The operands, joined as pandas does: by an outer join, but for sums, whose labels must be the same."""
        found = list(operands)
        # A gradient is that of a sum.
        in_results = {
            each
            for result in axes.results
            for axis in result
            for each in (*axis.kept, *axis.own, *axis.near)
            if not axes.gradients
        }
        for group in axes.tied:
            labels = [found[each.operand].axes[each.axis] for each in group]
            if all(each.equals(labels[0]) for each in labels):
                continue
            called = " and ".join(dict.fromkeys(f"`{names[each.operand]}`" for each in group))
            if any(not each.is_unique for each in labels):
                fact = f"labels of {called} differ, and some occur twice"
                raise self.fault(fact, "align them before, or pass cells by their positions: `x.to_numpy()`")
            joined = functools.reduce(lambda one, other: one.join(other, how="outer"), labels)
            if in_results.isdisjoint(group):
                if any(len(each) != len(joined) for each in labels):
                    fact = f"a sum goes over labels of {called}, which are not the same"
                    raise self.fault(fact, "choose those that both have: `x, y = x.align(y, join='inner')`")
                joined = labels[0]
            for each in group:
                found[each.operand] = found[each.operand].reindex(joined, axis=each.axis)
        return found

    def labelled(self, array: np.ndarray, axes: Sequence[ResultLabels], operands: Sequence[Any]) -> Any:
        """A number, a Series or a DataFrame, with the labels of the axes that it comes from."""
        labels = [self._labels(axis.kept, extent, operands) for axis, extent in zip(axes, array.shape, strict=True)]
        if array.ndim == 0:
            return array[()]
        if array.ndim == 1:
            names = list(dict.fromkeys(each.name for each in operands if isinstance(each, pd.Series)))
            return pd.Series(array, labels[0], name=names[0] if len(names) == 1 else None, copy=False)
        if array.ndim == 2:
            return pd.DataFrame(array, labels[0], labels[1], copy=False)
        if all(each is None for each in labels):
            return array
        raise self.refused(
            f"a result has {array.ndim} axes, whose labels pandas cannot keep",
            "use tc.interop.xarray, or pass cells by their positions: `x.to_numpy()`",
        )

    def _labels(self, places: Sequence[OperandAxis], extent: int, operands: Sequence[Any]) -> Any:
        for each in places:
            operand = operands[each.operand]
            if self.is_labelled(operand) and extent <= operand.shape[each.axis]:
                return operand.axes[each.axis][:extent]
        return None

    def gradient(self, array: np.ndarray, operand: Any, aligned: Any) -> Any:
        """The gradient by ``operand``: cells that the join left out have had no effect."""
        if isinstance(operand, pd.Series):
            found = pd.Series(array, aligned.index, name=operand.name, copy=False)
            return found if aligned is operand else found.reindex(operand.index, fill_value=0)
        frame = pd.DataFrame(array, aligned.index, aligned.columns, copy=False)
        if aligned is operand:
            return frame
        return frame.reindex(operand.index, fill_value=0).reindex(columns=operand.columns, fill_value=0)
