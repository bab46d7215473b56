"""Reverse mode through a loop: the adjoint of a loop is the same loop backwards.

::

    repeat y_3 = N times with y, x           repeat y_3, y_tape_3 = N times with y, x, y_tape
    | y_2 = y * x[t]                         | y_2 = y * x[t];  y_tape_2[t] = y  from y_tape
    | update y = y_2                         | update y = y_2;  update y_tape = y_tape_2

                                             repeat d_y_4, d_x_3 = N times with x, y_tape_3, d_y_3, d_x
                                             | d_y_2 = d_y * x[N - 1 - t]
                                             | d_x_2[N - 1 - t] += d_y * y_tape[N - 1 - t]  from d_x
                                             | update d_y = d_y_2;  update d_x = d_x_2

What the adjoint of a round needs of the values of the round it has, in this order, as what the loop is given and does
not change, as what the loop leaves behind (`held_cells`), or on a tape (`tapes`) that the loop now writes. A loop that
computes states again (`binomial_checkpoints`) gets a rule of its own derivative (`loop_rules`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tcdsl.autodiff.loop_derivatives.backward_bodies import BackwardBody
from tcdsl.autodiff.loop_derivatives.binomial_checkpoints import BinomialBackwardBody
from tcdsl.autodiff.loop_derivatives.guarded_rounds import ended_again, with_all_rounds, with_guarded_rounds
from tcdsl.autodiff.loop_derivatives.loop_rules import loop_rule, without_derivative
from tcdsl.autodiff.loop_derivatives.open_loops import OpenBackwardBody
from tcdsl.autodiff.loop_derivatives.reversed_rounds import count_of_sizes, number_of
from tcdsl.autodiff.loop_derivatives.round_derivatives import RoundDerivative, reached_inputs, round_derivative
from tcdsl.autodiff.statement_derivatives.activity import active_inputs
from tcdsl.autodiff.statement_derivatives.reverse import Reverse
from tcdsl.ir.build import apply, cast, integer, plain_read
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Expr
from tcdsl.ir.program import Repeat
from tcdsl.ir.stages import at_most_one
from tcdsl.polyhedra.boxes import over_box

__all__ = ["pull_through"]


def pull_through(work: Reverse, repeat: Repeat, transpose_all: Callable[[Reverse], None]) -> None:
    """Pull the derivatives by the results of ``repeat`` back to what it is given.

    ``work`` gets a loop for that, and ``repeat`` writes the tapes that it reads.
    """
    original = repeat
    ends = None if repeat.begin == integer(0) else repeat.ends
    if ends is not None:
        held = [work.declare(hint, "int64", ()) for hint in ("begin", "count")]
        for name, end in zip(held, ends, strict=True):
            work.append(over_box(name, (), (), end))
        every = with_all_rounds(repeat, *held)
        work.repeats[work.repeats.index(repeat)] = every
        repeat = every
    condition = repeat.condition if number_of(repeat.body) is not None else None
    if condition is not None:
        guarded = with_guarded_rounds(repeat)
        work.repeats[work.repeats.index(repeat)] = guarded
        repeat = guarded
    body = repeat.body
    active = active_inputs(repeat, work.active)
    totals: dict[str, str] = {}
    for result, (name, _) in zip(repeat.results, body.updates, strict=True):
        if name in active and result not in work.ruled:
            total = work.contributions.total(result, f"d_{result}")
            if total is not None:
                totals[name] = total
    if not totals:
        return
    if repeat.host:
        raise without_derivative(repeat, "vjp")
    adjoint = round_derivative(body, reached_inputs(body, active, totals), transpose_all, repeat.checkpointed)
    backward = _backward(work, repeat, adjoint, every=ends is None and condition is None)
    forward, begin, end = _ends(work, backward, condition, ends)
    work.repeats[work.repeats.index(repeat)] = forward
    outer = dict(zip((each.name for each in body.inputs[1:]), repeat.inputs, strict=True))
    carried = {name for name, _ in body.updates}
    initial: dict[str, str] = {}
    for name, seed in adjoint.seeds.items():
        # What later code has added up by what the loop is given: each round adds to that.
        total = totals.get(name) if name in carried else work.contributions.total(outer[name], f"d_{outer[name]}")
        initial[seed] = _zeros(work, outer[name]) if total is None else total
    results: dict[str, str] = {}
    for name, seed in adjoint.seeds.items():
        declared = work.tensor(initial[seed])
        results[name] = work.declare(f"d_{outer[name]}", declared.dtype, declared.shape)
    inputs = tuple(initial.get(each.name) or backward.given[each.name] for each in backward.body.inputs[1:])
    made = (*results.values(), *backward.more)
    work.repeats.append(Repeat(made, end, backward.body, inputs, repeat.span, begin=begin))
    if isinstance(backward, BinomialBackwardBody):
        work.rules += loop_rule(work, original, {name: initial[seed] for name, seed in adjoint.seeds.items()}, results)
    for name, result in results.items():
        if work.wants(outer[name]):
            work.contributions.add_whole(outer[name], result)


def _backward(
    work: Reverse, repeat: Repeat, adjoint: RoundDerivative, every: bool
) -> BackwardBody | BinomialBackwardBody:
    if at_most_one(repeat) or (count_of_sizes(repeat) and not repeat.checkpoints):
        return BackwardBody(work, repeat, adjoint, every)
    kind = BinomialBackwardBody if count_of_sizes(repeat) else OpenBackwardBody
    return kind(work, repeat, adjoint)


def _ends(
    work: Reverse,
    backward: BackwardBody | BinomialBackwardBody,
    condition: str | None,
    ends: tuple[Expr, Expr] | None,
) -> tuple[Repeat, Expr, Expr]:
    """The loop forwards, and where the loop backwards begins and ends: neither goes over rounds that did not run.

    The loop forwards had the ``ends``, unless it begins at 0, and ended where ``condition`` said.
    """
    forward, count = backward.loop, backward.count
    if isinstance(backward, OpenBackwardBody) or (condition is None and ends is None):
        return forward, integer(0), count
    most = cast(count, "int64")
    begin, last = (integer(0), most) if ends is None else ends
    if condition is not None:
        forward, rounds = ended_again(work, forward, condition)
        last = apply("add", begin, plain_read(rounds, (), "int64"))
    if ends is None:
        return forward, apply("sub", most, last), count
    first = integer(0) if last == count else apply("max", apply("sub", most, last), integer(0))
    forward = replace(forward, begin=ends[0], count=ends[1])
    return forward, first, apply("min", apply("sub", most, begin), count)


def _zeros(work: Reverse, name: str) -> str:
    declared = work.tensor(name)
    return work.result(f"d_{name}", replace(declared, dtype=compute_dtype(declared.dtype)), None)
