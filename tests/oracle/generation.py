"""Random tensor programs: source text and arrays, for hypothesis to draw and shrink.

Most programs are meant to be right: indices get extents in which they fit. Some are not, and the oracle says with what
error they must fail.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.oracle.functions import expected

__all__ = ["Case", "Draft", "case_elsewhere", "case_of_seed", "cases", "write_case"]

FLOATS = ("float64", "float32")
INTEGERS = ("int64", "int32", "int8", "uint8", "int16")
LETTERS = "ijkl"


@dataclass(frozen=True)
class Case:
    """A function named ``f`` and its arguments, in order."""

    source: str
    arrays: dict[str, np.ndarray]

    def __str__(self) -> str:
        lines = [self.source.rstrip()]
        for name, array in self.arrays.items():
            layout = "" if array.flags.c_contiguous and array.flags.writeable else f", strides {array.strides}"
            lines.append(f"{name}: {array.dtype}{list(array.shape)}{layout} = {array.tolist()}")
        return "\n".join(lines)

    __repr__ = __str__

    @property
    def floating(self) -> bool:
        """Whether every argument can have a gradient."""
        return all(array.dtype.kind == "f" for array in self.arrays.values())


@dataclass
class Draft:
    """A program while it is written.

    ``pick(low, high)`` makes every choice. ``extents`` are those of the statement's index variables, as far as known.
    """

    pick: Callable[[int, int], int]
    dtypes: tuple[str, ...]
    random: np.random.Generator
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    made: dict[str, np.ndarray] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    extents: dict[str, int] = field(default_factory=dict)
    targets: int = 0
    sizes: int = 0
    local: int = 0

    def choose(self, *options: Any) -> Any:
        """One of ``options``; hypothesis shrinks towards the first."""
        return options[self.pick(0, len(options) - 1)]

    def chance(self, percent: int) -> bool:
        """True in about ``percent`` of a hundred cases."""
        return self.pick(0, 99) >= 100 - percent

    def number(self, low: int, high: int) -> int:
        return self.pick(low, high)

    def extent(self, name: str) -> int:
        """The extent of an index variable, chosen at its first use."""
        if name not in self.extents:
            self.extents[name] = self.choose(3, 2, 4, 1, 3, 5, 2, 0)
        return self.extents[name]

    def data(self, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
        """Small values that floats hold exactly, so that sums in any order are equal or nearly so."""
        kind = np.dtype(dtype).kind
        if kind == "f":
            return (self.random.integers(-8, 9, shape) / 4).astype(dtype)
        if kind == "b":
            return self.random.integers(0, 2, shape).astype(bool)
        return self.random.integers(0 if kind == "u" else -3, 4, shape).astype(dtype)

    def array(self, dtype: str, shape: tuple[int, ...]) -> str:
        """A new argument."""
        name = "ABDEGHKMPQ"[len(self.arrays)] if len(self.arrays) < 10 else f"X{len(self.arrays)}"
        self.arrays[name] = np.asarray(self.data(dtype, shape))
        return name

    def dtype(self) -> str:
        return self.dtypes[0] if self.chance(85) else self.choose(*self.dtypes)

    def source(self, returned: list[str]) -> str:
        body = [*self.lines, "return " + ", ".join(returned)]
        return "\n".join([f"def f({', '.join(self.arrays)}):", *("    " + line for line in body)]) + "\n"

    def size(self, extent: int) -> str:
        """A name for ``extent``, if an argument has such an axis; else the number."""
        axes = [(name, axis) for name, array in self.arrays.items() for axis in range(array.ndim)]
        fit = [(name, axis) for name, axis in axes if self.arrays[name].shape[axis] == extent]
        if not fit:
            return str(extent)
        tensor, axis = self.choose(*fit)
        self.sizes += 1
        name = f"N{self.sizes}"
        self.lines.append(f"{name} = {tensor}.shape[{axis}]")
        return name

    # Indices

    def index(self, name: str, others: list[str]) -> tuple[str, int]:
        """An index expression that mentions ``name``, and the extent that it needs."""
        draw_form = self.number(0, 21)
        extent = self.extent(name)
        top = max(extent - 1, 0)
        if draw_form < 11 or not extent:
            return name, extent
        if draw_form < 13:
            shift = self.number(1, 2)
            return f"{name} + {shift}", extent + shift
        if draw_form == 13:
            return f"{name} - 1", max(extent - 1, 0)
        if draw_form == 14:
            step, shift = self.number(2, 3), self.number(0, 1)
            return f"{step}*{name}" + (f" + {shift}" if shift else ""), step * top + shift + 1
        if draw_form == 15:
            return f"{top} - {name}" if self.chance(50) else f"{self.size(extent)} - 1 - {name}", extent
        if draw_form == 16:
            divisor = self.number(2, 3)
            return f"{name} // {divisor}", top // divisor + 1
        if draw_form == 17:
            divisor = self.number(2, 3)
            return f"{name} % {divisor}", min(extent, divisor)
        other = self.choose(*others) if others else name
        if other == name:
            return name, extent
        if draw_form > 19:
            if not self.extent(other):
                return name, extent
            return f"{name}*{self.size(self.extent(other))} + {other}", extent * self.extent(other)
        step = self.number(1, 2)
        far = max(self.extent(other) - 1, 0)
        if self.chance(25):
            return f"{name} - {other} + {far}", top + far + 1
        return f"{name if step == 1 else f'{step}*{name}'} + {other}", step * top + far + 1

    def axis(self, name: str, others: list[str]) -> tuple[str, int]:
        """The same, or a boundary, a literal or a data index."""
        form = self.number(0, 29)
        extent = self.extent(name)
        if form < 24 or not extent:
            index, needed = self.index(name, others)
            if form == 23:
                return index, max(0, needed + self.number(-2, 2))
            return index, needed
        if form < 27:
            boundary = self.choose("clamp", "wrap", "reflect", "symmetric")
            return f"{boundary}({name} + {self.number(-3, 3)})".replace("+ -", "- "), self.number(1, 4)
        if form == 27:
            return self.choose("0", "-1", "1"), self.number(2, 3)
        rows = self.number(1, 4)
        ids = self.array(self.choose("int64", "int32"), (extent,))
        low, high = (-1, rows + 1) if self.chance(15) else (0, rows)
        self.arrays[ids] = self.random.integers(low, high, extent).astype(self.arrays[ids].dtype)
        return f"{ids}[{name}]", rows

    # Reads and values

    def read(self, names: list[str], others: list[str]) -> str:
        """A read that mentions each of ``names``: of a tensor made before if one fits, else of a new argument."""
        if self.made and self.chance(60):
            name = self.choose(*self.made)
            shape = self.made[name].shape
            if len(shape) == len(names):
                return self._known(name, shape, names)
        indices, shape = [], []
        for name in names:
            index, extent = self.axis(name, others)
            indices.append(index)
            shape.append(extent)
        tensor = self.array(self.dtype(), tuple(shape))
        return self._cell(tensor, indices)

    def _known(self, tensor: str, shape: tuple[int, ...], names: list[str]) -> str:
        indices = []
        for name, extent in zip(names, shape, strict=True):
            if self.extents.setdefault(name, extent) == extent:
                indices.append(name)
            else:
                indices.append(f"clamp({name})" if extent else name)
        return self._cell(tensor, indices)

    def _cell(self, tensor: str, indices: list[str]) -> str:
        if not indices:
            return tensor if self.chance(50) else f"{tensor}[()]"
        text = f"{tensor}[{', '.join(indices)}]"
        plain = not any(mark in text for mark in ("clamp", "wrap", "reflect", "symmetric"))
        if plain and any(mark in text for mark in ("+", "-")) and self.chance(20):
            return f"get({text}, {self.choose('0', '2')})"
        return text

    def condition(self, names: list[str]) -> str:
        """A condition on index variables, or on data."""
        name = self.choose(*names)
        other = self.choose(*names)
        form = self.number(0, 9)
        if form < 3 and other != name:
            return f"{name} {self.choose('<=', '<', '!=', '>=')} {other}"
        if form < 5 and other != name:
            return f"({name} + {other}) % 2 == 0"
        if form == 5:
            return f"{name} % 2 == {self.number(0, 1)}"
        if form == 6:
            return f"1 <= {name} < {self.number(2, 5)}"
        if form == 7:
            return f"{name} {self.choose('>', '>=', '!=')} 1"
        if form == 8:
            flags = self.array(self.choose("bool", "int64"), (self.extent(name),))
            return f"{flags}[{name}]" if self.arrays[flags].dtype == bool else f"{flags}[{name}] > 0"
        return f"{name} < {self.number(1, 5) if self.chance(60) else self.size(self.extent(name))}"


def write_case(pick: Callable[[int, int], int], statements: int, dtypes: tuple[str, ...] | None = None) -> Case:
    """A program of up to ``statements`` statements; ``dtypes`` are its arguments' types, the first one most often."""
    from tests.oracle.statements import write_statement

    if dtypes is None:
        every = (*FLOATS, *FLOATS, *INTEGERS)
        dtypes = (every[pick(0, len(every) - 1)], every[pick(0, len(every) - 1)])
    draft = Draft(pick, dtypes, np.random.default_rng(pick(0, 999)))
    for _ in range(pick(1, statements)):
        before = list(draft.lines), dict(draft.arrays)
        draft.local = 0
        draft.extents = {}
        target = write_statement(draft)
        outcome = expected(draft.source([target]), draft.arrays)
        if draft.chance(85) and "nothing bounds" in str(outcome.fault):
            missing = str(outcome.fault).removeprefix("nothing bounds ").split(":")[0].split(", ")
            draft.lines[-1] += "".join(f", {name} < {draft.extent(name)}" for name in missing if name in LETTERS)
            outcome = expected(draft.source([target]), draft.arrays)
        if statements == 1 or (not outcome.arrays and not draft.made):
            return Case(draft.source([target]), draft.arrays)
        if not outcome.arrays:
            draft.lines, draft.arrays = before
            break
        draft.made[target] = outcome.arrays[0]
    outputs = list(draft.made)
    return Case(draft.source(outputs[-1:] if draft.chance(50) else outputs), draft.arrays)


def case_elsewhere(seed: int) -> Case:
    """Two statements on one tensor, of which the second one reaches other cells."""
    from tests.oracle.statements import write_elsewhere

    pick = random.Random(seed).randint
    every = (*FLOATS, *FLOATS, *INTEGERS)
    draft = Draft(pick, (every[pick(0, len(every) - 1)],), np.random.default_rng(seed))
    target = write_elsewhere(draft)
    return Case(draft.source([target]), draft.arrays)


def case_conditioned(seed: int) -> Case:
    """One statement under conditions on other variables than those of its target."""
    from tests.oracle.statements import write_conditioned

    pick = random.Random(seed).randint
    every = (*FLOATS, *FLOATS, *INTEGERS)
    draft = Draft(pick, (every[pick(0, len(every) - 1)],), np.random.default_rng(seed))
    target = write_conditioned(draft)
    return Case(draft.source([target]), draft.arrays)


@st.composite
def cases(draw: Any, statements: int = 1, dtypes: tuple[str, ...] | None = None) -> Case:
    """`write_case` with hypothesis making the choices, so that failures shrink."""
    return write_case(lambda low, high: draw(st.integers(low, high)), statements, dtypes)


def case_of_seed(seed: int, statements: int = 1, dtypes: tuple[str, ...] | None = None) -> Case:
    """`write_case` with choices from a seed: more different programs in the same time."""
    return write_case(random.Random(seed).randint, statements, dtypes)
