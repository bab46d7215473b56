"""Random specs over rows, and what they mean, point by point: nothing of the package is used."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import hypothesis.strategies as st
import numpy as np

__all__ = ["Case", "cases"]

Axis = tuple[str, Any]
"""``("name", "i")``, ``("position", 2)``, ``("any", None)`` for ``_`` and axes that the spec leaves out, and
``("row", ("v", 0))`` for the axis of the row variable v that is the first from the right.
"""

ROWS = ("batch", "input", "output")


@dataclass(frozen=True)
class Operand:
    """The rows as written, the axes that they stand for in the order batch, output, input, and the cells."""

    text: str
    axes: tuple[Axis, ...]
    batch: int
    input: int
    array: np.ndarray


@dataclass(frozen=True)
class Case:
    """A spec, its operands, and the axes of the result by row."""

    operands: tuple[Operand, ...]
    result: dict[str, list[Axis]]
    result_text: str

    @property
    def text(self) -> str:
        """The spec."""
        return f"{'; '.join(each.text for each in self.operands)} => {self.result_text}"

    def expected(self, combine: Callable[..., Any]) -> np.ndarray:
        """Sums over all points, in the order batch, output, input."""
        result = [*self.result["batch"], *self.result["output"], *self.result["input"]]
        labelled, labels = [], itertools.count()
        for operand in self.operands:
            found = []
            for axis, extent in zip(operand.axes, operand.array.shape, strict=True):
                found.append((("anonymous", next(labels)) if axis[0] == "any" else axis, extent))
            labelled.append(found)
        extents: dict[Axis, int] = {}
        for axis, extent in (pair for found in labelled for pair in found):
            if axis[0] == "row":
                extents[axis] = extent if extents.get(axis, 1) == 1 else extents[axis]
            elif axis[0] != "position":
                extents[axis] = extent
        shape = [axis[1] + 1 if axis[0] == "position" else 1 if axis[0] == "any" else extents[axis] for axis in result]
        made = np.zeros(shape)
        for point in itertools.product(*(range(extent) for extent in extents.values())):
            at = dict(zip(extents, point, strict=True))

            def place(axis: Axis, extent: int, at: dict[Axis, int] = at) -> int:
                if axis[0] == "position":
                    return int(axis[1])
                return 0 if axis[0] == "any" or (axis[0] == "row" and extent == 1) else at[axis]

            cells = [
                operand.array[tuple(place(axis, extent) for axis, extent in found)]
                for operand, found in zip(self.operands, labelled, strict=True)
            ]
            made[tuple(place(axis, extent) for axis, extent in zip(result, shape, strict=True))] += combine(*cells)
        return made


NAMES = "ijk"


@st.composite
def cases(draw: st.DrawFn, count: int) -> Case:
    """A spec of ``count`` operands and cells for them."""
    sizes = {("name", name): draw(st.integers(0, 3)) for name in NAMES}
    sizes |= {("row", (variable, k)): draw(st.integers(0, 3)) for variable in (*ROWS, "v") for k in range(2)}
    numbers = np.random.default_rng(draw(st.integers(0, 99)))
    operands = tuple(draw(written_operands(sizes, numbers)) for _ in range(count))
    known = [axis for operand in operands for axis in operand.axes if axis[0] == "name"]
    lengths: dict[str, int] = {}
    for axis in (axis for operand in operands for axis in operand.axes if axis[0] == "row"):
        lengths[axis[1][0]] = max(lengths.get(axis[1][0], 0), axis[1][1] + 1)
    rows: dict[str, list[Axis]] = {}
    texts: dict[str, str] = {}
    for row in ROWS:
        named = draw(st.lists(st.sampled_from(known), max_size=2)) if known else []
        if draw(st.integers(0, 3)) == 0:
            named.append(draw(st.sampled_from([("position", 0), ("position", 2), ("any", None)])))
        variable = draw(st.sampled_from([None, row, "v"]))
        middle = [("row", (variable, k)) for k in reversed(range(lengths.get(variable, 0)))] if variable else []
        before = draw(st.integers(0, len(named))) if variable else 0
        rows[row] = [*named[:before], *middle, *named[before:]]
        texts[row] = written(named[:before], variable, named[before:], row)
    text = texts["output"]
    if rows["input"] or draw(st.booleans()):
        text = f"{texts['input']} -> {text}"
    if rows["batch"] or draw(st.booleans()):
        text = f"{texts['batch']} | {text}"
    # What is not written has no axes, whatever its row variable would cover.
    kept = {"output", *(["input"] if "->" in text else []), *(["batch"] if "|" in text else [])}
    return Case(operands, {row: rows[row] if row in kept else [] for row in ROWS}, text)


@st.composite
def written_operands(draw: st.DrawFn, sizes: dict[Axis, int], numbers: np.random.Generator) -> Operand:
    rows: dict[str, list[Axis]] = {}
    text = ""
    first = draw(st.integers(0, 2))
    for k, row in enumerate(ROWS):
        extra: list[Axis] = [("any", None)] * draw(st.integers(0, 1))
        if k < first:
            rows[row] = extra  # left out
            continue
        named: list[Axis] = [draw(axes) for _ in range(draw(st.integers(0, 2)))]
        variable = draw(st.sampled_from([None, None, row, "v"]))
        before = draw(st.integers(0, len(named))) if variable else 0
        middle: list[Axis] = []
        if variable:
            middle = [("row", (variable, place)) for place in reversed(range(draw(st.integers(0, 2))))]
        else:
            middle = extra
        rows[row] = [*named[:before], *middle, *named[before:]]
        text += written(named[:before], variable, named[before:], row) + {"batch": " | ", "input": " -> "}.get(row, "")
    stored = (*rows["batch"], *rows["output"], *rows["input"])
    shape = []
    for axis in stored:
        if axis[0] == "row":
            shape.append(draw(st.sampled_from([1, sizes[axis]])))
        elif axis[0] == "position":
            shape.append(axis[1] + 1 + draw(st.integers(0, 1)))
        else:
            shape.append(sizes.get(axis, 2))
    cells = numbers.integers(-4, 5, shape).astype(float)
    return Operand(text, stored, len(rows["batch"]), len(rows["input"]), cells)


axes: st.SearchStrategy[Axis] = st.one_of(
    st.sampled_from([("name", name) for name in NAMES]),
    st.sampled_from([("position", 0), ("position", 1), ("any", None)]),
)


def written(before: Sequence[Axis], variable: str | None, after: Sequence[Axis], row: str) -> str:
    def text(axis: Axis) -> str:
        return "_" if axis[0] == "any" else str(axis[1])

    middle = [] if variable is None else ["..." if variable == row else f"..{variable}.."]
    return " ".join([*map(text, before), *middle, *map(text, after)])
