"""A function of many operands at once: ``vectorized(f, (0,))(X, y)`` gives ``f(x, y)`` for each ``x`` along the first
axis of ``X``, in one program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from tcdsl.frontend.staging.session import session_of
from tcdsl.frontend.staging.subprograms import symbolic
from tcdsl.ir.build import size
from tcdsl.ir.fresh_names import names_of
from tcdsl.ir.program import AxisExtent, Size
from tcdsl.rewrite.batching import batched, ends_depend_on, one_by_one, with_all
from tcdsl.runtime.calling.entries import Traced
from tcdsl.runtime.transforms.derivation import Derivation
from tcdsl.runtime.transforms.derivations import kept_staging, put

__all__ = ["vectorized"]


@dataclass(frozen=True, slots=True)
class Batching(Derivation):
    """The function for each place along the first axis of its arguments ``argnums``."""

    title: ClassVar[str] = "batched"
    axes: ClassVar[int] = 1

    def derive(self, traced: Traced, wrt: Sequence[str], function: str) -> Traced:
        """The program for all places, whose checks have passed where they have in all of them."""
        program = traced.program
        if ends_depend_on(program, wrt):
            program = one_by_one(program, wrt)
        else:
            batch = Size(names_of(program).fresh("batch"), AxisExtent(wrt[0], 0))
            sized = replace(program, sizes=(*program.sizes, batch))
            program = batched(sized, wrt, (size(batch.name),), program.outputs, trailing=False)
        if traced.checked:
            program = with_all(program, traced.structure.leaves)
        return replace(traced, program=program)


def vectorized(function: Callable[..., Any], positions: tuple[int, ...]) -> Callable[..., Any]:
    """``function``, to be called while another one is staged, with batches for the arguments at ``positions``.

    All results are batches.
    """

    def run(*arguments: Any) -> Any:
        session = session_of("a batch")
        part, traced, _ = kept_staging(function, Batching(positions)).inline(session, arguments, {})
        made = put(session, part, traced)
        return traced.structure.build(symbolic(session.builder, made[: traced.structure.leaves]))

    return run
