"""`TensorOutput`s: arrays whose only statement is what operators on their cells say, and what constraints add.

::

    O = TensorOutput(N // 2)
    O[i] >= I[2 * i + j]
    O.add_constraint(j < 2)

The statement is recorded when the cells are asked for, because constraints come after it. `StagedOutput` is one in a
program under construction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tcdsl.errors import DslSyntaxError, ShapeError
from tcdsl.frontend.arrays.row_alignment import axis_variable
from tcdsl.frontend.staging.session import Session, session_of
from tcdsl.frontend.symbols.symbols import OpenArray, SymbolicTensor
from tcdsl.frontend.symbols.values import Value
from tcdsl.frontend.tile.cells import IndexedTensor, access, as_cells
from tcdsl.frontend.tile.contractions import Contraction, record_contraction
from tcdsl.frontend.tile.sizes import extent_expression, kind_of, known_size
from tcdsl.frontend.tile.user_lines import fault, location, names_held
from tcdsl.ir.expressions import IndexValue
from tcdsl.rows.ranks import RowRanks
from tcdsl.span import Span
from tcdsl.tracebacks import user_facing

__all__ = ["OutputStatements", "StagedOutput", "Written", "sizes_of_output"]


class Written:
    """What `O[n] += I[m, n]` has Python store into ``O[n]``: the statement is known already."""

    __slots__ = ("output",)

    def __init__(self, output: OutputStatements) -> None:
        self.output = output


class OutputStatements:
    """Mixin: the statement of an output. ``contraction`` is it, once it has been written."""

    __slots__ = ()

    contraction: Contraction | None
    lens: Any
    made_at: Span | None

    def is_used(self) -> bool:
        """Whether the cells have been asked for, so that nothing more can be said."""
        raise NotImplementedError

    def called(self) -> str:
        """What the user calls it."""
        raise NotImplementedError

    def _is_part_of(self, default: Any) -> bool:
        # Whether a default that is not computed yet is made from the output.
        return False

    def complete(self, contraction: Contraction) -> None:
        """``contraction`` is the statement; again, when a default has been given to it."""
        raise NotImplementedError

    def __getitem__(self, key: Any) -> Any:
        if self.contraction is None:
            return access(self, key)
        return super().__getitem__(key)  # type: ignore[misc]

    @user_facing
    def __setitem__(self, key: Any, value: Any) -> None:
        if not isinstance(value, Written):
            if self.contraction is not None:
                raise self._second()
            self.contract("assign", access(self, key), value)

    def contract(self, accumulate: str, target: IndexedTensor, value: object) -> Written:
        """``O[n] += value`` and its kin. `DslSyntaxError` for a second statement, and for one that reads its target."""
        if self.contraction is not None:
            raise self._second()
        made = Contraction.of(accumulate, target, as_cells(value))
        if any(each is self for each in made.operands):
            raise fault(
                DslSyntaxError,
                f"`{self.called()}` is read by its own statement",
                "a statement reads tensors that are complete: read the tensor that it continues",
            )
        self.complete(made)
        return Written(self)

    @user_facing
    def add_constraint(self, constraint: Any) -> Any:
        """``O.add_constraint(j < 2)``: points count only where 0 <= j < 2."""
        self._open("add_constraint").add_constraint(constraint)
        return self

    @user_facing
    def add_constraints(self, constraints: Iterable[Any]) -> Any:
        """``O.add_constraints([i < 2, j < 2])``."""
        for each in constraints:
            self.add_constraint(each)
        return self

    @user_facing
    def use_default(self, default: Any) -> Any:
        """``O.use_default(P)``: cells that the statement does not write are those of ``P``, of the same shape."""
        contraction = self._open("use_default")
        if default is self or self._is_part_of(default):
            raise fault(
                DslSyntaxError,
                f"`{self.called()}` is its own default",
                "a default is a tensor that is complete: cells that a statement does not write are 0 without one",
            )
        contraction.use_default(default)
        self.complete(contraction)
        return self

    def _open(self, method: str) -> Contraction:
        if self.contraction is None:
            raise fault(
                DslSyntaxError,
                f"`{method}` of `{self.called()}`, which has no statement yet",
                "write the statement first: `O[i] += I[i + j]`",
            )
        if self.is_used():
            raise fault(
                DslSyntaxError,
                f"`{method}` of `{self.called()}`, whose cells have been used already",
                "say all that belongs to a statement before its result is used",
            )
        return self.contraction

    def _second(self) -> Exception:
        return fault(
            DslSyntaxError,
            f"a second statement on `{self.called()}`",
            "make a TensorOutput for each statement; `use_default` gives one the cells of another",
        )

    def _unwritten(self) -> Exception:
        return DslSyntaxError.at(
            f"`{self.called()}` is used, but no statement writes to it",
            self.made_at,
            "write its statement first: `O[n] += I[m, n]`",
        )


class StagedOutput(OutputStatements, OpenArray):
    """A `TensorOutput` of the program under construction."""

    __slots__ = ("_label", "contraction", "lens", "made_at")

    def __init__(self, session: Session, sizes: Sequence[Any], lens: Any = None) -> None:
        self.builder = session.builder
        self.extents = tuple(map(extent_expression, sizes))
        self.rows = RowRanks(output=len(self.extents))
        self.base = self.replaced = None
        self.uses = 0
        self.contraction = None
        self.lens = lens
        self.made_at = location()
        self._label = ""
        self._made: SymbolicTensor | None = None

    def bound(self, name: str) -> None:
        """An assignment in a decorated function has bound the array to ``name``."""
        self._label = self._label or name

    @property
    def label(self) -> str:
        """What the user calls it."""
        return self._label

    def called(self) -> str:
        """What the user calls it."""
        return self._label or names_held(StagedOutput).get(id(self), "the output")

    def is_used(self) -> bool:
        """Whether the statement has been recorded."""
        return self._made is not None

    def complete(self, contraction: Contraction) -> None:
        """``contraction`` is the statement."""
        self.contraction = contraction
        self._label = self._label or names_held(StagedOutput).get(id(self), "")

    @property
    def element_type(self) -> str:
        """The element type, which the statement gives."""
        return self.materialize().element_type

    @property
    def element(self) -> Value:
        """The value of a cell."""
        indices = [IndexValue(axis_variable(k)) for k in reversed(range(self.rank))]
        return self.materialize().cell(indices)

    def shared(self) -> SymbolicTensor:
        """What stands for the array in arithmetic."""
        return self.materialize()

    def materialize(self, label: str = "output") -> SymbolicTensor:
        """The tensor of the program; the statement is recorded at the first call."""
        if self.contraction is None:
            raise self._unwritten()
        if self._made is None or not self.builder.knows(self._made.name):
            session = session_of("a TensorOutput")
            contraction = self.contraction
            made = record_contraction(session, contraction, contraction.operands, self.extents, self._label or label)
            self._made = made
        return self._made

    def __repr__(self) -> str:
        return f"<output {self.called()}>"


def sizes_of_output(sizes: Sequence[Any]) -> tuple[Any, ...]:
    """What a `TensorOutput` is made with: integers or sizes of the program. `DslSyntaxError`; `ShapeError`."""
    found = []
    given = tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], tuple | list) else tuple(sizes)
    for size in given:
        known = known_size(size)
        if known is None:
            raise fault(
                DslSyntaxError,
                f"{kind_of(size)} as a size of a TensorOutput",
                "sizes are integers, `TensorDim`s, and what is computed from them: `N // 2` for half of N",
            )
        if isinstance(known, int) and known < 0:
            raise fault(ShapeError, f"a TensorOutput with the size {known}", "sizes are 0 or more")
        found.append(known)
    return tuple(found)
