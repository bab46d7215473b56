"""A loop in segments: a loop over stretches of its rounds, of which reverse mode keeps the beginnings alone.

::

    repeat u_2 = N times with u              repeat u_2 = (N + 9) // 10 times checkpointed with u
    | u_2 = f(u, t)                          | repeat u_2 = min(10, N - 10 * s) times with u
                                             | | u_2 = f(u, 10 * s + t)

Backwards, the rounds of a segment are computed again from its beginning: memory for N / L states and the values of L
rounds instead of those of N rounds, for one more evaluation of each round.

Source: Griewank and Walther, "Evaluating Derivatives" (2008), section 12 (checkpointing in two levels).
"""

from __future__ import annotations

from dataclasses import replace

from tcdsl.ir.build import apply, integer
from tcdsl.ir.expressions import Expr, SizeValue, size_names
from tcdsl.ir.fresh_names import FreshNames, names_of
from tcdsl.ir.program import SEGMENT_OF, Assertion, AxisExtent, Program, Repeat, Size, Tensor
from tcdsl.rewrite.replaced_sizes import with_size_replaced
from tcdsl.rewrite.round_numbers import with_own_counter

__all__ = ["depending_on", "in_segments"]


def in_segments(repeat: Repeat, length: int) -> Repeat:
    """``repeat``, whose count is made of sizes of its body, as a loop over segments of ``length`` rounds."""
    body, counter = repeat.body, repeat.body.inputs[0]
    names = names_of(body)
    [number] = [size.name for size in body.sizes if size.source == AxisExtent(counter.name, 0)]
    segment = names.fresh(f"{SEGMENT_OF}{length}")
    outer = Tensor(names.fresh("segments"), "bool", (SizeValue(segment),))
    begin = apply("mul", integer(length), SizeValue(segment))
    changing = depending_on(body, number)
    kept = tuple(size for size in body.sizes if size.name not in changing)
    assertions = tuple(each for each in body.assertions if not size_names(each.condition) & changing)
    below = Assertion(apply("lt", begin, repeat.count))
    own = Size(segment, AxisExtent(outer.name, 0))
    results = [replace(body.tensor(name), name=names.fresh(name)) for name, _ in body.updates]
    inner = Repeat(
        tuple(result.name for result in results),
        apply("min", integer(length), apply("sub", repeat.count, begin)),
        _in_segment(body, number, own, outer, begin, names),
        (*(tensor.name for tensor in body.inputs[1:]), outer.name),
        repeat.span,
    )
    around = Program(
        f"{body.name}_segments",
        (outer, *body.inputs[1:]),
        (own, *kept),
        tuple(results),
        (),
        (),
        tuple((name, result.name) for (name, _), result in zip(body.updates, results, strict=True)),
        (*assertions, below),
        (),
        (inner,),
    )
    count = apply("floor_div", apply("add", repeat.count, integer(length - 1)), integer(length))
    return replace(repeat, count=count, body=around, checkpointed=True)


def depending_on(body: Program, number: str) -> frozenset[str]:
    """The sizes of a body that change from round to round: ``number`` and what is defined by it."""
    found = {number}
    for size in body.sizes:
        if not isinstance(size.source, AxisExtent) and size_names(size.source) & found:
            found.add(size.name)
    return frozenset(found)


def _in_segment(body: Program, number: str, own: Size, outer: Tensor, begin: Expr, names: FreshNames) -> Program:
    body = with_own_counter(body, body.inputs[0], names.fresh)
    value = apply("add", begin, SizeValue(number))
    moved = with_size_replaced(body, number, value)
    sizes = [size for size in moved.sizes if size.name != number]
    first = Size(number, AxisExtent(body.inputs[0].name, 0))
    return replace(
        moved,
        inputs=(body.inputs[0], *moved.inputs[1:], outer),
        sizes=(first, own, *sizes),
    )
