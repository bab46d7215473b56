"""Functions of arrays whose axes have labels: what `tc.interop.xarray`, `pandas` and `polars` have in common.

A call has three parts: the operands are aligned along the axes that one letter goes over; the function runs on arrays;
results get the labels of the axes that they come from. Which axes these are, the index accesses say
(`tcdsl.rewrite.axis_origins`).
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tcdsl.errors import DtypeError, ShapeError, TcdslError
from tcdsl.frontend.staging.given_arrays import given_array, labels_of
from tcdsl.frontend.staging.program_inputs import CapturedArray
from tcdsl.interop.array_functions import ArrayFunction, taken_apart
from tcdsl.rewrite.axis_origins import Way, axis_origins
from tcdsl.runtime.calling.structure import Structure
from tcdsl.runtime.transforms.gradients import DerivedFunction, Gradient
from tcdsl.tracebacks import user_facing

__all__ = ["LabelledFunction", "OperandAxes", "OperandAxis", "ResultLabels"]


class OperandAxis(NamedTuple):
    """An axis of an operand."""

    operand: int
    axis: int


class ResultLabels(NamedTuple):
    """Where an axis of a result may have its labels from.

    ``kept`` are axes that are read at the same place alone, so that their labels are those of the result; ``own`` are
    read there and elsewhere, ``near`` elsewhere alone. ``letter`` is that of the statement.
    """

    letter: str | None
    kept: tuple[OperandAxis, ...]
    own: tuple[OperandAxis, ...]
    near: tuple[OperandAxis, ...]


@dataclass(frozen=True, slots=True)
class OperandAxes:
    """What the accesses say of a call: of each result its axes, and the axes of operands that belong together.

    ``gradients`` has the results that are gradients, and the operands that they are by.
    """

    results: tuple[tuple[ResultLabels, ...], ...]
    tied: tuple[tuple[OperandAxis, ...], ...]
    gradients: dict[int, int]


class LabelledFunction(ABC):
    """A function for the objects of a library of labelled arrays."""

    __name__: str
    #: What the library is called.
    library: ClassVar[str]

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function, updated=())
        self.function = function

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.function,)

    def __repr__(self) -> str:
        return f"<{self.function!r} for {self.library}>"

    @user_facing
    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """The results with their labels, nested as ``f`` returns them."""
        if not any(map(self.is_labelled, (*arguments, *keywords.values()))):
            return self.function(*arguments, **keywords)
        form, operands = taken_apart(self.__name__, arguments, keywords, self._is_array)
        function = ArrayFunction.of(self.function, form)
        return self.result(function, operands)

    def result(self, function: ArrayFunction, operands: Sequence[Any]) -> Any:
        """The result for these operands."""
        names = function.operand_names()
        arrays = [self._array(*each).view() for each in zip(operands, names, strict=True)]
        axes = self._axes(function, operands, arrays)
        aligned = self.aligned(operands, axes, names)
        for k, each in enumerate(aligned):
            if each is not operands[k]:
                arrays[k] = self._array(each, names[k])
        leaves, structure = self.computed(function, arrays, aligned)
        made: list[Any] = []
        for k, array in enumerate(leaves):
            by = axes.gradients.get(k)
            if by is None:
                made.append(self.labelled(array, axes.results[k], aligned))
            elif self.is_labelled(operands[by]):
                made.append(self.gradient(array, operands[by], aligned[by]))
            else:
                made.append(array)
        return structure.build(made)

    def computed(
        self, function: ArrayFunction, arrays: Sequence[np.ndarray], operands: Sequence[Any]
    ) -> tuple[list[Any], Structure]:
        """The results for these operands, whose cells are ``arrays``, and the structure around them."""
        leaves, structure = function.results(arrays)
        return list(leaves), structure

    def _axes(self, function: ArrayFunction, operands: Sequence[Any], arrays: Sequence[np.ndarray]) -> OperandAxes:
        # An axis of one cell would be stretched over another one, whatever its label: it meets it as others do.
        labelled = [k for k, each in enumerate(operands) if self.is_labelled(each)]
        longer = [_without_single_cells(each) if k in labelled else each for k, each in enumerate(arrays)]
        try:
            axes = _operand_axes(self.function, function, longer)
        except ShapeError:
            axes = _operand_axes(self.function, function, arrays)  # the function wants one cell
        return OperandAxes(axes.results, _of_several(axes.tied, labelled), axes.gradients)

    def fault(self, fact: str, hint: str) -> TcdslError:
        """What is raised where labels do not fit."""
        return ShapeError.at(f"{self.__name__}(): {fact}", hint=hint)

    def refused(self, fact: str, hint: str) -> TcdslError:
        """What is raised for what would be lost."""
        return DtypeError.at(f"{self.__name__}(): {fact}", hint=hint)

    @abstractmethod
    def is_labelled(self, value: Any) -> bool:
        """Whether ``value`` is an object of the library's."""

    @abstractmethod
    def aligned(self, operands: Sequence[Any], axes: OperandAxes, names: Sequence[str]) -> list[Any]:
        """The operands with the same labels along each of ``axes.tied``, by the library's own rule."""

    @abstractmethod
    def labelled(self, array: np.ndarray, axes: Sequence[ResultLabels], operands: Sequence[Any]) -> Any:
        """A result as an object of the library's."""

    @abstractmethod
    def gradient(self, array: np.ndarray, operand: Any, aligned: Any) -> Any:
        """A gradient by ``operand``, which has its labels; ``aligned`` is what the function was given of it."""

    def cells(self, value: Any, name: str) -> Any:
        """What holds the cells of an object of the library's."""
        return value

    def _is_array(self, value: Any) -> bool:
        return self.is_labelled(value) or (
            not isinstance(value, type) and any(hasattr(value, name) for name in ("__array__", "__dlpack__"))
        )

    def _array(self, value: Any, name: str) -> np.ndarray:
        labelled = self.is_labelled(value)
        if not labelled and labels_of(value) is not None:
            raise self.refused(
                f"`{name}` is a {type(value).__name__}, whose labels {self.library} does not know",
                "pass objects of one library, or cells by their positions: `np.asarray(x)`",
            )
        found = given_array(self.cells(value, name) if labelled else value, name, f"{self.__name__}(): ")
        return np.asarray(value) if found is None else found


def _without_single_cells(array: np.ndarray) -> np.ndarray:
    if 1 not in array.shape:
        return array
    return np.broadcast_to(np.zeros((), array.dtype), [2 if extent == 1 else extent for extent in array.shape])


def _operand_axes(of: Callable[..., Any], function: ArrayFunction, arrays: Sequence[np.ndarray]) -> OperandAxes:
    entry, _, places = function.entry(arrays)
    for source in entry.inputs:
        if isinstance(source, CapturedArray) and labels_of(source.current()) is not None:
            fact = f"{function.name}(): `{entry.executable.program.tensor(source.tensor).label or source.tensor}`"
            hint = "pass it as an argument, or its cells: `x = x.to_numpy()`"
            raise DtypeError.at(f"{fact} is read from around the function, and its labels would be lost", hint=hint)
    program = entry.executable.program
    number = {each.name: place for each, place in zip(program.inputs, places, strict=False)}
    found = axis_origins(program)

    def operand_axes(axes: Any) -> tuple[OperandAxis, ...]:
        known = [(number.get(name), axis) for name, axis in axes]
        return tuple(sorted(OperandAxis(place, axis) for place, axis in known if place is not None))

    def by_way(axis: Any) -> ResultLabels:
        own, own_and_other, other = (
            operand_axes([each for each, way in axis.origins.items() if way == wanted])
            for wanted in (Way.OWN, Way.OWN | Way.OTHER, Way.OTHER)
        )
        return ResultLabels(axis.letter, own, own_and_other, other)

    results = tuple([tuple(map(by_way, axes)) for axes in found.results[: entry.structure.leaves]])
    return OperandAxes(results, tuple(map(operand_axes, found.tied)), _gradients(of, function, len(results)))


def _gradients(of: Callable[..., Any], function: ArrayFunction, results: int) -> dict[int, int]:
    # The results that are gradients, and by which operands.
    derivation = of.staging.derivation if isinstance(of, DerivedFunction) else None
    if not isinstance(derivation, Gradient):
        return {}
    operands = function.operand_positions()
    by = [operands[k] for k in derivation.positions(function.name, len(operands))]
    first = results - len(by) if derivation.with_value else 0
    return {first + k: place for k, place in enumerate(by) if place is not None}


def _of_several(
    groups: Sequence[tuple[OperandAxis, ...]], labelled: Sequence[int]
) -> tuple[tuple[OperandAxis, ...], ...]:
    # The axes of labelled operands that meet another one.
    found = [tuple([each for each in group if each.operand in labelled]) for group in groups]
    return tuple([group for group in found if len(group) > 1])
