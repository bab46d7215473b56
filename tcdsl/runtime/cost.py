"""`f.cost(...)`: what a call costs, and what its derivatives cost in comparison.

The operations are counted on the program (`tcdsl.autodiff.cost`), the points and the bytes on the loops that are run
(`tcdsl.lowering`). Nothing is compiled or executed, except what conditions on data need to be known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from tcdsl.autodiff import adjoint, tangent
from tcdsl.autodiff.cost import OperationCount, count_operations
from tcdsl.autodiff.loop_derivatives.reversed_rounds import number_of
from tcdsl.errors import DifferentiationError
from tcdsl.ir.dtypes import is_floating
from tcdsl.ir.program import Program
from tcdsl.ir.sizes.size_binding import bind_sizes, evaluate_size
from tcdsl.ir.stages import at_most_one
from tcdsl.lowering.loop_passes.liveness import peak_bytes
from tcdsl.lowering.loopir.point_counts import executed_points
from tcdsl.lowering.lower import lower
from tcdsl.runtime.displays.tables import Table, Tabular
from tcdsl.simplification import without_sparse_tensors
from tcdsl.simplification.contractions import contracted, least_at
from tcdsl.tracebacks import NamesTold

__all__ = ["Cost", "ProgramCost", "cost_of"]

FACTOR = 4
"""A derivative may cost so many times what the function costs: "Differentiating a Tensor Language", theorems 6.1 and
6.55."""


@dataclass(frozen=True, slots=True)
class ProgramCost(NamesTold):
    """What one call of one program costs.

    ``operations`` are those of the program, ``points`` the values that its loops store or accumulate, zeros included.
    ``allocated`` are the bytes of outputs and temporaries, ``peak`` those and the inputs.
    """

    operations: OperationCount
    points: int
    allocated: int
    peak: int


@dataclass(frozen=True, slots=True, repr=False)
class Cost(Tabular, NamesTold):
    """What a call of ``name`` and its derivatives cost; print it for a table.

    ``primal`` is the function itself, ``tangent`` pushes a direction forward and ``adjoint`` pulls a derivative back,
    each together with the function's own results; ``None`` for functions without derivatives. ``inputs`` and
    ``outputs`` are numbers of elements, ``sizes`` the sizes by name. ``again`` are the weighted operations of the
    adjoint, at most, that are rounds of loops computed again because few of their states are kept.
    """

    name: str
    sizes: Mapping[str, int]
    inputs: int
    outputs: int
    primal: ProgramCost
    tangent: ProgramCost | None
    adjoint: ProgramCost | None
    again: float = 0.0

    @property
    def tangent_bound(self) -> float:
        """The most weighted operations that the tangent may take: 4 x primal."""
        return FACTOR * self.primal.operations.weighted

    @property
    def adjoint_bound(self) -> float:
        """The most weighted operations that the adjoint may take: 4 x (primal + inputs + outputs) + again."""
        return FACTOR * (self.primal.operations.weighted + self.inputs + self.outputs) + self.again

    @property
    def within_bounds(self) -> bool:
        """Whether both derivatives keep to their bounds."""
        pairs = ((self.tangent, self.tangent_bound), (self.adjoint, self.adjoint_bound))
        # Weights are thirds.
        return all(cost is None or cost.operations.weighted <= bound * (1 + 1e-9) for cost, bound in pairs)

    def table(self) -> Table:
        """A column for the function and for each derivative."""
        columns = {"primal": self.primal, "tangent": self.tangent, "adjoint": self.adjoint}
        return _report(self, {name: cost for name, cost in columns.items() if cost is not None})


def cost_of(program: Program, arrays: Sequence[np.ndarray], wrt: Sequence[str] | None = None) -> Cost:
    """The cost of ``program`` for these arrays, and of its derivatives by ``wrt`` (all floating inputs by default).

    Values of the arrays matter only where conditions or indices are data. Programs that change memory, take or give no
    floating numbers, or meet a primitive without a rule have no derivatives here.
    """
    sizes = bind_sizes(program, [array.shape for array in arrays])
    program = contracted(program, least_at(sizes))
    shapes = [tuple(evaluate_size(extent, sizes) for extent in program.tensor(n).shape) for n in program.outputs]
    found: list[ProgramCost | None] = [_measured(program, arrays)]
    if wrt is None:
        wrt = [tensor.name for tensor in program.inputs if is_floating(tensor.dtype)]
    floating = [is_floating(program.tensor(name).dtype) for name in program.outputs]
    if program.updates or not wrt or not any(floating):
        found += [None, None]
    else:
        directions = [array for array, tensor in zip(arrays, program.inputs, strict=True) if tensor.name in wrt]
        seeds = [
            np.broadcast_to(np.ones((), program.tensor(name).dtype), shape)
            for name, shape, real in zip(program.outputs, shapes, floating, strict=True)
            if real
        ]
        found.append(_derivative(lambda: tangent(program, wrt), [*arrays, *directions]))
        found.append(_derivative(lambda: adjoint(program, wrt), [*arrays, *seeds]))
    primal, forward, reverse = found
    assert primal is not None
    again = 0.0
    if reverse is not None:
        again = (_REPEATED ** _open_depth(program) - 1) * primal.operations.weighted
        kept = _with_all_states(program)
        if kept != program:
            again += reverse.operations.weighted - count_operations(adjoint(kept, wrt), [*arrays, *seeds]).weighted
    named = {size.name: sizes[size.name] for size in program.sizes}
    return Cost(
        program.name,
        named,
        sum(array.size for array in arrays),
        sum(map(prod, shapes)),
        primal,
        forward,
        reverse,
        again,
    )


# A loop that data end runs backwards as a loop that counts, one that stores states, one from each state on, and one
# for the values of its rounds.
_REPEATED = 4


def _open_depth(program: Program) -> int:
    """How many loops that data end there are, one in the other, at most."""
    depths = [
        _open_depth(each.body) + (number_of(each.body) is None and not at_most_one(each)) for each in program.repeats
    ]
    return max(depths, default=0)


def _with_all_states(program: Program) -> Program:
    """``program`` with loops whose derivatives keep all states."""
    repeats = tuple(
        replace(each, body=_with_all_states(each.body), checkpointed=False, checkpoints=0) for each in program.repeats
    )
    return replace(program, repeats=repeats)


def _derivative(make: Callable[[], Program], arrays: Sequence[np.ndarray]) -> ProgramCost | None:
    try:
        program = make()
    except DifferentiationError:
        return None
    return _measured(program, arrays)


def _measured(program: Program, arrays: Sequence[np.ndarray]) -> ProgramCost:
    program = contracted(program, least_at(bind_sizes(program, [array.shape for array in arrays])))
    # Tiles are as wide as some machine's vectors, and do what these points do.
    kernel = lower(without_sparse_tensors(program), optimize="-padding -panels")
    sizes = bind_sizes(kernel.program, [array.shape for array in arrays])
    memory = peak_bytes(kernel, sizes)
    allocated = memory.outputs + memory.temporaries
    return ProgramCost(count_operations(program, arrays), executed_points(kernel, sizes), allocated, memory.peak)


# -- the table -------------------------------------------------------------------------------------------------------


def _report(cost: Cost, columns: Mapping[str, ProgramCost]) -> Table:
    sizes = ", ".join(f"{name} = {value}" for name, value in cost.sizes.items())
    head = f"cost of {cost.name}" + (f" for {sizes}" if sizes else "")
    costs = list(columns.values())
    rows = [(name, *(str(value(each)) for each in costs)) for name, value in _ROWS]
    calls = sorted({name for each in costs for name, _ in each.operations.calls})
    position = [name for name, *_ in rows].index("operations")
    rows[position:position] = [
        (f"calls of {name}", *(str(dict(each.operations.calls).get(name, 0)) for each in costs)) for name in calls
    ]
    interface = cost.inputs + cost.outputs
    ratios = (_ratio(_weighted(each), _weighted(cost.primal)) for each in costs)
    rows.append(("operations, weighted, / primal", *ratios))
    ratios = (_ratio(each.points, _weighted(each) + interface) for each in costs)
    rows.append(("points / (operations + elements)", *ratios))
    notes = [f"inputs and outputs: {cost.inputs} + {cost.outputs} elements"]
    if cost.tangent is not None:
        notes.append(_bound("tangent", "4 x primal", _weighted(cost.tangent), cost.tangent_bound))
    if cost.adjoint is not None:
        name = "4 x (primal + inputs + outputs)" + (" + rounds again" if cost.again else "")
        notes.append(_bound("adjoint", name, _weighted(cost.adjoint), cost.adjoint_bound))
    if cost.tangent is None and cost.adjoint is None:
        notes.append("no derivatives")
    return Table(head, ("", *columns), rows, tuple(notes))


def _weighted(cost: ProgramCost) -> float:
    return cost.operations.weighted


_ROWS: tuple[tuple[str, Callable[[ProgramCost], object]], ...] = (
    ("additions", lambda cost: cost.operations.additions),
    ("multiplications", lambda cost: cost.operations.multiplications),
    ("divisions", lambda cost: cost.operations.divisions),
    ("operations", lambda cost: cost.operations.plain),
    ("operations, weighted", lambda cost: _number(cost.operations.weighted)),
    ("points executed", lambda cost: cost.points),
    ("bytes allocated", lambda cost: cost.allocated),
    ("peak bytes", lambda cost: cost.peak),
)


def _number(value: float) -> str:
    return str(round(value)) if abs(value - round(value)) < 1e-6 else f"{value:.1f}"


def _ratio(value: float, whole: float) -> str:
    return f"{value / whole:.2f}" if whole else ("-" if value else "0.00")


def _bound(name: str, formula: str, value: float, bound: float) -> str:
    holds = value <= bound * (1 + 1e-9)
    verdict = "holds" if holds else "does not hold"
    return f"{name} <= {formula}: {_number(value)} <= {_number(bound)} {verdict}"
