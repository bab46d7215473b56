"""Functions for xarray: ``g = tc.interop.xarray(f)`` takes and gives DataArrays, and Datasets variable by variable."""

from __future__ import annotations

import functools
import operator
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray

from tcdsl.interop.array_functions import ArrayFunction
from tcdsl.interop.labelled_arrays import LabelledFunction, OperandAxes, OperandAxis, ResultLabels
from tcdsl.runtime.calling.structure import Structure

__all__ = ["XarrayFunction"]


class XarrayFunction(LabelledFunction):
    """``g = tc.interop.xarray(f)``: ``f`` for DataArrays; see `tcdsl.interop.xarray`."""

    library = "xarray"

    def is_labelled(self, value: Any) -> bool:
        """Whether it is a DataArray, a Dataset or a Variable."""
        return isinstance(value, xarray.DataArray | xarray.Dataset | xarray.Variable)

    def result(self, function: ArrayFunction, operands: Sequence[Any]) -> Any:
        """The result for DataArrays, or those for each variable of Datasets."""
        operands = [xarray.DataArray(each) if isinstance(each, xarray.Variable) else each for each in operands]
        datasets = [each for each in operands if isinstance(each, xarray.Dataset)]
        if not datasets:
            return super().result(function, operands)
        variables = [list(each.data_vars) for each in datasets]
        if any(set(each) != set(variables[0]) for each in variables):
            raise self.fault(
                f"the Datasets have the variables {', '.join(map(str, variables))}",
                "choose those that all have: `a[names], b[names]`",
            )
        made = {
            name: super(XarrayFunction, self).result(
                function, [each[name] if isinstance(each, xarray.Dataset) else each for each in operands]
            )
            for name in variables[0]
        }
        if all(isinstance(each, xarray.DataArray) for each in made.values()):
            return xarray.Dataset(made)
        if all(type(each) is tuple for each in made.values()):
            return tuple(
                [xarray.Dataset(dict(zip(made, each, strict=True))) for each in zip(*made.values(), strict=True)]
            )
        raise self.fault("results of Datasets are arrays or tuples of arrays", "call it variable by variable")

    def cells(self, value: Any, name: str) -> Any:
        """The array in a DataArray; one without cells for chunks of Dask."""
        if value.chunks is None:
            return value.data
        from tcdsl.interop.dask_functions import stand_in

        return stand_in(self.__name__, name, value.data)

    def computed(
        self, function: ArrayFunction, arrays: Sequence[np.ndarray], operands: Sequence[Any]
    ) -> tuple[list[Any], Structure]:
        """The results; of chunked arrays those are chunked too."""
        chunked = [isinstance(each, xarray.DataArray) and each.chunks is not None for each in operands]
        if not any(chunked):
            return super().computed(function, arrays, operands)
        from tcdsl.interop.dask_functions import lazy_results

        given = zip(arrays, operands, chunked, strict=True)
        return lazy_results(function, [each.data if lazy else array for array, each, lazy in given])

    def aligned(self, operands: Sequence[Any], axes: OperandAxes, names: Sequence[str]) -> list[Any]:
        """The operands, their dimensions in the order of the function's axes, joined as ``arithmetic_join`` says."""
        found = list(operands)
        # The names that an index may go over: of two axes of a square array either.
        dimensions: dict[tuple[OperandAxis, ...], list[Hashable]] = {}
        for k in sorted({each.operand for group in axes.tied for each in group}):
            mine = {group: [each.axis for each in group if each.operand == k] for group in axes.tied}
            wanted = {axis: dimensions[group] for group in dimensions for axis in mine[group]}
            found[k] = self._ordered(found, k, wanted, axes, names)
            for group, places in mine.items():
                if places:
                    dimensions.setdefault(group, [found[k].dims[axis] for axis in places])
        for group in axes.tied:
            self._join(found, group, names)
        return found

    def _ordered(
        self,
        found: Sequence[Any],
        k: int,
        wanted: Mapping[int, Sequence[Hashable]],
        axes: OperandAxes,
        names: Sequence[str],
    ) -> Any:
        array, dims = found[k], found[k].dims
        if all(dims[axis] in allowed for axis, allowed in wanted.items()):
            return array
        order = {axis: allowed[0] for axis, allowed in wanted.items()}
        if set(order.values()) <= set(dims) and len(set(order.values())) == len(order):
            rest = iter([name for name in dims if name not in order.values()])
            return array.transpose(*[order[axis] if axis in order else next(rest) for axis in range(len(dims))])
        axis, name = next((axis, order[axis]) for axis, allowed in wanted.items() if dims[axis] not in allowed)
        others = [each for group in axes.tied if OperandAxis(k, axis) in group for each in group if each.operand < k]
        met = names[others[0].operand]
        hint = f"give both one name, `{names[k]}.rename({{{dims[axis]!r}: {name!r}}})`"
        if dims[axis] in found[others[0].operand].dims:
            hint = f"put the dimensions of `{met}` in the order of the function's axes, `{met}.transpose(...)`, "
            hint += f"or give `{names[k]}` all of them: `{names[k]}.broadcast_like({met})`"
        raise self.fault(f"one index goes over {dims[axis]!r} of `{names[k]}` and over {name!r} of `{met}`", hint)

    def _join(self, arrays: list[Any], group: Sequence[OperandAxis], names: Sequence[str]) -> None:
        places = list(dict.fromkeys(each.operand for each in group))
        indexes = [arrays[each.operand].indexes.get(arrays[each.operand].dims[each.axis]) for each in group]
        if len(places) < len(group):
            # Two dimensions of one array: to join them is for the user.
            known = [each for each in indexes if each is not None]
            if any(not each.equals(known[0]) for each in known):
                whose = " and ".join(f"`{names[k]}`" for k in places)
                raise self.fault(
                    f"one index goes over dimensions of {whose} with different coordinates", "align them before"
                )
            return
        name = arrays[group[0].operand].dims[group[0].axis]
        if all(_same_labels(arrays[places[0]], arrays[k], name) for k in places[1:]):
            return
        options: Any = xarray.get_options
        join = options()["arithmetic_join"]
        others = {dim for k in places for dim in arrays[k].dims if dim != name}
        try:
            joined = xarray.align(*[arrays[k] for k in places], join=join, copy=False, exclude=others)
        except ValueError as fault:
            called = ", ".join(f"`{names[k]}`" for k in places)
            raise self.fault(
                f"{called} cannot be joined along {name!r}: {str(fault).partition(chr(10))[0]}",
                "align them before, or name another join: `xr.set_options(arithmetic_join=...)`",
            ) from None
        for k, array in zip(places, joined, strict=True):
            arrays[k] = array

    def labelled(self, array: np.ndarray, axes: Sequence[ResultLabels], operands: Sequence[Any]) -> Any:
        """A DataArray with the dimensions and coordinates of the axes that the result comes from."""
        dims = _dimensions(axes, operands)
        # Of each operand the dimensions that are kept, and the axes of the result with their coordinates.
        labelled = {k: each for k, each in enumerate(operands) if self.is_labelled(each)}
        kept: dict[int, dict[Hashable, list[int]]] = {k: {} for k in labelled}
        for place, axis in enumerate(axes):
            for each in axis.kept:
                source = labelled.get(each.operand)
                if source is not None and array.shape[place] <= source.shape[each.axis]:
                    kept[each.operand].setdefault(source.dims[each.axis], []).append(place)
        # Whoever is given twice has its coordinates once.
        found = {id(labelled[k]): _coordinates(labelled[k], places, dims, array.shape) for k, places in kept.items()}
        coordinates, *others = found.values()
        if others:
            try:
                merged = xarray.merge(
                    [coordinates.to_dataset(), *[each.to_dataset() for each in others]],
                    compat="minimal",
                    join="exact",
                    combine_attrs="drop_conflicts",
                )
            except ValueError as fault:
                fact = f"arguments give a result different coordinates: {str(fault).partition(chr(10))[0]}"
                raise self.fault(fact, "align them before") from None
            coordinates = merged.coords
        # Name and attributes: by the library's own rule for arithmetic.
        told = [xarray.DataArray(0.0, name=each.name, attrs=each.attrs) for each in labelled.values()]
        told_by = functools.reduce(operator.add, told) if len(told) > 1 else -told[0]
        return xarray.DataArray(array, coordinates, dims, told_by.name, told_by.attrs)

    def gradient(self, array: np.ndarray, operand: Any, aligned: Any) -> Any:
        """The gradient by ``operand``: cells that the join left out have had no effect."""
        found = xarray.DataArray(array, aligned.coords, aligned.dims)
        if found.sizes != operand.sizes or any(
            not found.indexes[k].equals(each) for k, each in operand.indexes.items()
        ):
            found = found.reindex_like(operand, fill_value=0)
        return found.transpose(*operand.dims)


def _dimensions(axes: Sequence[ResultLabels], operands: Sequence[Any]) -> list[Hashable]:
    """The names of a result's axes: those of the axes that they come from, as far as that is one each; else letters."""

    def names_of(places: Sequence[OperandAxis]) -> list[Hashable]:
        arrays = [(operands[k], axis) for k, axis in places if isinstance(operands[k], xarray.DataArray)]
        return list(dict.fromkeys(array.dims[axis] for array, axis in arrays))

    claims: list[tuple[int, Hashable] | None] = []
    for axis in axes:
        own, near = names_of((*axis.kept, *axis.own)), names_of(axis.near)
        found = own or near
        claims.append((0 if own else 1, found[0]) if len(found) == 1 else None)
    names: list[Any] = []
    for claim in claims:
        # A name goes to one axis, before others to one that is read at its own place.
        rivals = [each[0] for each in claims if claim and each and each[1] == claim[1]]
        names.append(claim[1] if claim and claim[0] == min(rivals) and rivals.count(claim[0]) == 1 else None)
    for place, axis in enumerate(axes):
        if names[place] is None:
            wanted = axis.letter or f"dim_{place}"
            while wanted in names:
                wanted += "_"
            names[place] = wanted
    return names


def _coordinates(
    array: Any, kept: Mapping[Hashable, list[int]], dims: Sequence[Hashable], shape: tuple[int, ...]
) -> Any:
    """The coordinates of ``array`` that go with the dimensions ``kept``, which have the names of the result's."""
    # An axis of the result that lost its labels may have the name of another coordinate.
    clashes = [name for name, each in array.coords.items() if name in dims and each.dims != (name,)]
    whole = len(kept) == array.ndim and all(
        len(places) == 1 and dims[places[0]] == dim and shape[places[0]] == array.sizes[dim]
        for dim, places in kept.items()
    )
    if whole and not clashes:
        return array.coords
    once = {dim: places[0] for dim, places in kept.items() if len(places) == 1}
    dropped = {*clashes, *[name for name, each in array.coords.items() if not set(each.dims) <= set(once)]}
    found = array.coords.to_dataset().drop_vars(dropped)
    found = found.isel({dim: slice(shape[place]) for dim, place in once.items() if dim in found.dims})
    found = found.rename({dim: dims[place] for dim, place in once.items() if dim in found.dims and dim != dims[place]})
    for dim, places in kept.items():
        if len(places) > 1 and dim in array.indexes:
            index = array.indexes[dim]
            found = found.assign_coords({dims[k]: (dims[k], np.asarray(index[: shape[k]])) for k in places})
    return found.coords


def _same_labels(array: Any, other: Any, dim: Hashable) -> bool:
    one, two = array.indexes.get(dim), other.indexes.get(dim)
    if one is None or two is None:
        return one is two and bool(array.sizes[dim] == other.sizes[dim])
    return bool(one.equals(two))
