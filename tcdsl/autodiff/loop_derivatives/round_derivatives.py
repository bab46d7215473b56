"""The adjoint of one round of a loop, in two parts: the values that it needs, and what is linear in derivatives.

Its derivatives by the tensors that the loop carries are passed from round to round. Those by what the loop is given and
does not change are added up: they come in as what later rounds have added up, and each round adds to their cells.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from tcdsl.autodiff.loop_derivatives.compact_updates import with_compact_updates
from tcdsl.autodiff.statement_derivatives.activity import active_tensors
from tcdsl.autodiff.statement_derivatives.reverse import Reverse
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.program import Program, Tensor
from tcdsl.rewrite.linearization import linearized
from tcdsl.rewrite.unified_sizes import with_equal_sizes, with_own_sizes
from tcdsl.simplification.simplify import simplify

__all__ = ["RoundDerivative", "reached_inputs", "round_derivative"]


@dataclass(frozen=True, slots=True)
class RoundDerivative:
    """``values`` returns what the body's updates become, and residuals, which ``linear`` takes beside inputs.

    ``linear`` takes a derivative under the name ``seeds[x]``, and returns another one as ``results[x]``, for each input
    ``x`` of the body by which one is wanted.
    """

    values: Program
    linear: Program
    seeds: dict[str, str]
    results: dict[str, str]


def reached_inputs(body: Program, active: Collection[str], seeded: Collection[str]) -> list[str]:
    """The inputs of a body, among the ``active`` ones, that have a share in the ``seeded`` ones of a later round."""
    depends = {name: active_tensors(body, [name]) for name in active}
    found = set(seeded)
    while True:
        changed = {new for name, new in body.updates if name in found}
        more = {name for name in active if name not in found and depends[name] & changed}
        if not more:
            return [tensor.name for tensor in body.inputs if tensor.name in found]
        found |= more


def round_derivative(
    body: Program, wanted: Sequence[str], transpose_all: Callable[[Reverse], None], again: bool = False
) -> RoundDerivative:
    """The adjoint of ``body`` by its inputs ``wanted``, given the derivatives by those of them that it updates.

    With ``again`` its linear part computes the values that it needs once more, of the inputs of the round.
    """
    step = replace(body, outputs=tuple(dict.fromkeys(new for _, new in body.updates)), updates=())
    compact = with_compact_updates(with_equal_sizes(step), active_tensors(step, wanted), dict(body.updates))
    work = Reverse(compact, wanted)
    updates = dict(body.updates)
    seeds: dict[str, Tensor] = {}
    for name in wanted:
        declared = work.tensor(name)
        seeds[name] = work.given(f"d_{name}", replace(declared, dtype=compute_dtype(declared.dtype)))
        changed = updates.get(name, name)
        if changed in work.active:
            work.contributions.add_whole(changed, seeds[name].name)
    transpose_all(work)
    results: dict[str, str] = {}
    for name in wanted:
        total = work.contributions.total(name, f"d_{name}")
        results[name] = work.result(f"d_{name}", seeds[name], None) if total is None else total
    derivative = work.finished("adjoint", list(seeds.values()), list(results.values()), keep_outputs=True)
    made = derivative.outputs[len(step.outputs) :]
    if again:
        values, linear = step, simplify(replace(with_own_sizes(derivative, step), outputs=made))
    else:
        values, linear = linearized(
            with_own_sizes(derivative, step), [seed.name for seed in seeds.values()], len(step.outputs)
        )
    return RoundDerivative(
        values,
        linear,
        {name: seed.name for name, seed in seeds.items()},
        dict(zip(results, made, strict=True)),
    )
