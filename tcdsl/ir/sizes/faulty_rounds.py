"""In which round of a loop something failed: how it is said, and which round it is where sizes alone decide.

What bodies ask of sizes is asked for all rounds at once, at the call (`tcdsl.ir.sizes.loop_sizes`). Where it does not
hold, a round that asks for too much is looked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from tcdsl.ir.expressions import Expr, size_names
from tcdsl.ir.program import BRANCH, OF_ROUND, SEGMENT_OF, AxisExtent, Program, Repeat
from tcdsl.ir.sizes.size_code import SizeCode
from tcdsl.span import Span

__all__ = ["at_position", "at_positions", "first_faulty_round", "rounds_of_segment"]

# Rounds that are looked at in all, those of loops in loops too.
_MOST_ROUNDS = 1000
# More than run: no size is made of the number of such a round, which is one of `while`.
_UNCOUNTED = 2**61


class _TooManyError(Exception):
    """More rounds than that would have to be looked at."""


def at_positions(positions: Iterable[tuple[str, int]]) -> tuple[str, ...]:
    """The note that says at which point, and in which rounds of loops, something failed."""
    found: list[str] = []
    ahead = 0
    for name, position in positions:
        length = rounds_of_segment(name)
        if length:
            ahead = length * position
        elif name != BRANCH:
            found.append(at_position(name, ahead + position))
            ahead = 0
    return (f"at {', '.join(found)}",) if found else ()


def rounds_of_segment(name: str) -> int:
    """How many rounds a segment has, if ``name`` counts segments; else 0."""
    found = re.match(rf"{SEGMENT_OF}(\d+)", name)
    return 0 if found is None else int(found[1])


def at_position(name: str, position: int) -> str:
    """``t = 3``; of a loop that counts otherwise than from 0 by 1, whose number is called ``t_round``, which round."""
    head = name.removesuffix(OF_ROUND)
    return f"{name} = {position}" if head == name else f"round {position} of `{head}`, from 0"


def first_faulty_round(program: Program, sizes: Mapping[str, int], span: Span | None) -> tuple[tuple[str, int], ...]:
    """The names and numbers of the rounds in which what is asked at ``span`` does not hold; none if it is not found.

    It is the first such round, where all that follow it are such ones too. Loops that make derivatives may count from
    the last: they are not looked at. Nor is it looked for longer than a message is worth.
    """
    if span is None:
        return ()
    try:
        return _first(program, sizes, span, iter(range(_MOST_ROUNDS)))
    except _TooManyError:
        return ()


def _first(program: Program, sizes: Mapping[str, int], span: Span, looks: Iterator[int]) -> tuple[tuple[str, int], ...]:
    for repeat in program.repeats:
        derives = any(name.startswith("d_") for name in repeat.results)
        if _asks(repeat.body, span) and not repeat.read_by_ends and not derives:
            found = _in_loop(program, repeat, sizes, span, looks)
            if found:
                return found
    return ()


def _in_loop(
    program: Program, repeat: Repeat, sizes: Mapping[str, int], span: Span, looks: Iterator[int]
) -> tuple[tuple[str, int], ...]:
    begin, end = (_value(each, sizes) for each in repeat.ends)
    if begin is None or end is None or begin >= end:
        return ()

    changing = _changing(repeat)
    conditions = [each.condition for each in repeat.body.assertions if each.span == span]

    def faulty(number: int) -> tuple[tuple[str, int], ...]:
        if next(looks, None) is None:
            raise _TooManyError
        inside = _sizes(program, repeat, sizes, number)
        within = _first(repeat.body, inside, span, looks)
        asked = [each for each in conditions if size_names(each) & changing]
        if within or any(_value(each, inside) == 0 for each in asked):
            return ((repeat.number, number), *within)
        return ()

    least, most = begin, end - 1
    if most - least >= _UNCOUNTED:
        return faulty(least)
    if faulty(least) or not faulty(most):
        return next(filter(None, map(faulty, range(begin, end))), ())
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if faulty(middle) else (middle, most)
    return faulty(most)


def _changing(repeat: Repeat) -> frozenset[str]:
    # The number of the round, and the sizes that are made of it.
    found: set[str] = set()
    for size in repeat.body.sizes:
        own = size.source == AxisExtent(repeat.body.inputs[0].name, 0)
        if own or (not isinstance(size.source, AxisExtent) and size_names(size.source) & found):
            found.add(size.name)
    return frozenset(found)


def _asks(body: Program, span: Span) -> bool:
    return any(each.span == span for each in body.assertions) or any(_asks(each.body, span) for each in body.repeats)


def _sizes(program: Program, repeat: Repeat, sizes: Mapping[str, int], number: int) -> dict[str, int]:
    given = dict(zip((each.name for each in repeat.body.inputs[1:]), repeat.inputs, strict=True))
    found: dict[str, int] = {}
    for size in repeat.body.sizes:
        if not isinstance(size.source, AxisExtent):
            value = _value(size.source, found)
        elif size.source.tensor in given:
            value = _value(program.tensor(given[size.source.tensor]).shape[size.source.axis], sizes)
        else:
            value = number
        if value is not None:
            found[size.name] = value
    return found


def _value(expr: Expr, sizes: Mapping[str, int]) -> int | None:
    names = sorted(size_names(expr))
    if not sizes.keys() >= set(names):
        return None
    code = SizeCode(names)
    try:
        return int(code.function(code.value(expr))(*(sizes[name] for name in names)))
    except ZeroDivisionError:
        return None
