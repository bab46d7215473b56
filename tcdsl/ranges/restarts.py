"""The cells that the reset form starts anew on a target that holds cells: those that its index list can reach.

::

    R[j] = sum(A[i, j]), j > 0        those that the conditions on the target's variables admit,
    R[j + 1] = sum(A[i, j])           and the reads at these variables alone: R[0] and what A does not give stay

Reads and conditions with a reduced variable say what is summed, and nothing else: a cell with nothing to sum is
reached too.
"""

from __future__ import annotations

from dataclasses import replace

import islpy as isl

from tcdsl.errors import ShapeError
from tcdsl.ir.build import truth
from tcdsl.ir.expressions import Expr, IndexValue, Read, children, is_affine_index
from tcdsl.ir.program import Neutral, Statement
from tcdsl.polyhedra.boxes import box
from tcdsl.polyhedra.program_scope import ProgramScope
from tcdsl.polyhedra.spaces import dimension_names, named
from tcdsl.polyhedra.writes import affine_target, cell_map
from tcdsl.ranges.range_inference import resolve
from tcdsl.ranges.sketches.inference_state import Inference
from tcdsl.ranges.sketches.sketch import Sketch, free_variables
from tcdsl.ranges.sketches.sketch_accesses import AxisAccess, explicit_ranges, levels_of, root_level
from tcdsl.ranges.solving.extents import check_equal_extents
from tcdsl.ranges.solving.regions import in_range_test

__all__ = ["Restarts", "starts_all_anew"]


def starts_all_anew(sketch: Sketch) -> bool:
    """Whether a reset reaches every cell by its form, as ``C[i, j] = sum(A[i, k] * B[k, j])`` does.

    Of an existing target, a variable that always stands alone runs over the whole axis.
    """
    names = {axis.name for axis in sketch.target.indices if isinstance(axis, IndexValue)}
    if sketch.mode != "existing" or sketch.restarts or len(names) < len(sketch.target.indices):
        return False

    def stands_alone(expr: Expr) -> bool:
        if isinstance(expr, Read):
            mixed = (axis for axis in expr.indices if is_affine_index(axis) and not isinstance(axis, IndexValue))
            if any(free_variables(axis) & names for axis in mixed):
                return False
        return all(map(stands_alone, children(expr)))

    return all(map(stands_alone, (sketch.value, *sketch.conditions, *sketch.filters)))


class Restarts:
    """What the statement ``sketch``, a reset, says about the cells that it starts anew."""

    def __init__(self, sketch: Sketch, scope: ProgramScope) -> None:
        self._sketch = sketch
        self._scope = scope
        self._inference = Inference(sketch, scope)
        root = root_level(self._inference)
        self._reads = [access for access in root.accesses if not access.written]
        # Extents that must be equal, which the statement itself will require.
        everything = [access for level in levels_of(root) for access in level.accesses]
        check_equal_extents(self._inference, everything, explicit_ranges(root, self._inference.algebra))

    def conditions(self, variables: frozenset[str]) -> tuple[Expr, ...]:
        """That the reads at some of ``variables`` alone are in range."""
        found = (in_range_test(self._inference.algebra, access) for access in self._reads if _speaks(access, variables))
        return tuple(dict.fromkeys(found))

    def cells(self, clearing: Sketch, names: tuple[str, ...]) -> isl.Set | None:
        """The cells that the points of ``clearing`` reach, over ``names``; None where data decides.

        Where its own index list and conditions do not bound a variable, it is those that the statement reaches.
        """
        flags = replace(clearing, dtype="bool", accumulate="or", start=Neutral(), value=truth(True), previous="")
        try:
            found = resolve(flags, self._scope).statements
        except ShapeError:
            found = (replace(resolve(self._sketch, self._scope).statements[-1], condition=None),)
        reached = _reached(found[-1], names) if len(found) == 1 else None
        # A place without variables may be out of range where the statement has no points: `R[1] = sum(A[i]), i > N`.
        return None if reached is None else reached.intersect(self._whole(reached))

    def _whole(self, cells: isl.Set) -> isl.Set:
        return box(dimension_names(cells), self._scope.tensor(self._sketch.previous).shape)

    def every(self, cells: isl.Set) -> bool:
        """Whether ``cells`` are all of the target's."""
        return bool(self._whole(cells).intersect_params(self._inference.algebra.context).is_subset(cells))


def _speaks(access: AxisAccess, variables: frozenset[str]) -> bool:
    mentioned = free_variables(access.index)
    guards = frozenset[str]().union(*map(free_variables, access.guard))
    return bool(mentioned) and mentioned | guards <= variables


def _reached(statement: Statement, names: tuple[str, ...]) -> isl.Set | None:
    if statement.condition is not None or not affine_target(statement):
        return None
    return named(cell_map(statement.domain.set, statement.target.indices).range(), names)
