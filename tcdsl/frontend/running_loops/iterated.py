"""What a loop goes over: ranges, first axes of tensors, and what `zip`, `enumerate` and `reversed` make of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from tcdsl.errors import DslSyntaxError, ShapeError
from tcdsl.frontend.names.array_calls import as_python_does, call_function
from tcdsl.frontend.points.point_scalars import PointValue
from tcdsl.frontend.running_loops.conditions import is_data
from tcdsl.frontend.running_loops.round_counts import (
    MANY_ROUNDS,
    Iterated,
    RoundCount,
    loop,
    rounds_of,
    unrolled,
    with_checkpoints,
)
from tcdsl.frontend.running_loops.run_time_checks import record_check
from tcdsl.frontend.staging.declarations import Unwritten
from tcdsl.frontend.staging.run_time_integers import RunsOnTensors
from tcdsl.frontend.staging.session import Session
from tcdsl.frontend.symbols.graph_tensors import GraphTensor
from tcdsl.frontend.symbols.known_integers import KnownInteger
from tcdsl.frontend.symbols.symbols import SymbolicArray, SymbolicNumber, SymbolicSize
from tcdsl.ir.build import apply, integer
from tcdsl.ir.expressions import Expr, size_names

__all__ = ["bounds_of", "counts", "looked_at", "python_rounds", "rounds_over", "runs_in_program"]

# ``range`` of a size is no call of Python's.
_LOOKED_AT = (range, loop, zip, enumerate, reversed, list, tuple)
_SYMBOLIC = (SymbolicArray, SymbolicNumber, SymbolicSize)
_OF_ONE = (reversed, list, tuple)


def looked_at(function: Any, arguments: Sequence[Any], options: Mapping[str, Any]) -> Iterated | None:
    """``function(*arguments)`` that a loop goes over, if the loop looks at it before it is called."""
    if function is np.arange and not options and any(isinstance(each, _SYMBOLIC) for each in arguments):
        function = range
    return Iterated(function, arguments, options) if any(function is each for each in _LOOKED_AT) else None


def counts(iterable: Any) -> bool:
    """Whether it is a range, ``tc.loop``, or one of these from its end."""
    if not isinstance(iterable, Iterated):
        return False
    return iterable.counts or (iterable.function in _OF_ONE and all(map(counts, iterable.arguments)))


def bounds_of(iterable: Any) -> list[Any]:
    """What says how long the ranges in ``iterable`` are; what says it of others is no number."""
    if not isinstance(iterable, Iterated):
        return [iterable]
    if iterable.counts:
        return list(iterable.arguments)
    return [bound for each in iterable.arguments for bound in bounds_of(each)]


def runs_in_program(session: Session, loop: object, iterable: Iterated) -> bool:
    """Whether a ``loop`` over integers runs."""
    bounds = bounds_of(iterable)
    given = any(isinstance(each, KnownInteger) for each in bounds) or _are_many(bounds)
    empty = iterable.counts and not range(*iterable.arguments)
    return session.loops.runs(loop, given and not session.context.at_points, empty)


def _are_many(bounds: Sequence[Any]) -> bool:
    # Whether statements for each round would be a long program.
    made = all(map(_is_integer, bounds)) and (len(bounds) in (1, 2) or (len(bounds) == 3 and bounds[2] != 0))
    return made and len(range(*bounds)) > MANY_ROUNDS


def rounds_over(
    session: Session, iterable: Any, runs: Callable[[], bool] = lambda: False
) -> RoundCount | Iterable[Any] | None:
    """The rounds of a loop over ``iterable``; ``None`` if that is Python's, unless it is a range that ``runs``.

    Beside a list of Python's the loop is Python's: over the list and as many parts of the tensors.
    """
    if isinstance(iterable, SymbolicArray):
        if iterable.rank == 0:
            fact = "a loop over a tensor of rank 0, which has no parts"
            raise session.fault(ShapeError, fact, "loop over `range(n)`")
        return _counting(iterable.extents[0], lambda number: iterable[number])
    if not isinstance(iterable, Iterated):
        return None
    if iterable.counts:
        return _counted(session, iterable, runs)
    alone = runs if iterable.function in _OF_ONE else lambda: False
    parts = [rounds_over(session, each, alone) for each in iterable.arguments]
    if not any(isinstance(each, RoundCount) for each in parts):
        found = [
            python_value(session, each) if part is None else part
            for part, each in zip(parts, iterable.arguments, strict=True)
        ]
        found_any = any(part is not None for part in parts)
        return iterable.function(*found, **iterable.options) if found_any else None
    first = parts[0]
    if iterable.function in (list, tuple) and isinstance(first, RoundCount):
        return first
    if iterable.function is reversed and isinstance(first, RoundCount):
        return first.backwards()
    if any(isinstance(each, RoundCount) and not each.sized for each in parts):
        fact = f"`{iterable.function.__name__}` of a range whose length is data"
        raise session.fault(DslSyntaxError, fact, "loop over the range alone, and index with its number")
    if iterable.function is enumerate and isinstance(first, RoundCount):
        start = iterable.arguments[1] if len(parts) > 1 else iterable.options.get("start", 0)
        return RoundCount(
            integer(0), integer(1), first.count, True, lambda number: (number + start, first.at(session, number))
        )
    return _together(session, iterable, parts)


def _counted(session: Session, iterable: Iterated, runs: Callable[[], bool]) -> RoundCount | None:
    if any(isinstance(each, PointValue) for each in iterable.arguments):
        session.needs_one_point()
    if any(isinstance(each, Unwritten | GraphTensor) or _is_open(session, each) for each in iterable.arguments):
        if session.may_be_whole:
            raise RunsOnTensors
        raise session.fault(
            DslSyntaxError,
            "a loop over a size, or over data, of a graph of tensors",
            "call the function on arrays, where such loops run; in graphs give the number of rounds as an integer",
        )
    unknown = iterable.options.keys() - {"checkpoint_every", "checkpoints"}
    if iterable.function is loop and unknown:
        hint = "it takes the arguments of `range`, and `checkpoint_every` or `checkpoints`"
        raise session.fault(DslSyntaxError, f"`tc.loop` has no option `{min(unknown)}`", hint)
    always = iterable.function is loop or (all(map(_is_integer, iterable.arguments)) and runs())
    found = rounds_of(session, iterable.arguments, always)
    for condition, kind, message in () if found is None else found.checks:
        holds = SymbolicNumber(session.builder, condition, "bool", frozenset())
        record_check(session, holds, kind, message, False)
    return (
        with_checkpoints(session, found, **iterable.options)
        if found is not None and iterable.function is loop
        else found
    )


def _is_integer(bound: Any) -> bool:
    return hasattr(type(bound), "__index__") and not is_data(bound)


def _is_open(session: Session, bound: Any) -> bool:
    # Sizes that annotations name are not those of tensors of graphs, unless the function is staged as a whole.
    return (
        session.may_be_whole
        and isinstance(bound, SymbolicSize)
        and any(map(session.builder.is_open, size_names(bound.expr)))
    )


def _together(session: Session, iterable: Iterated, parts: Sequence[Any]) -> RoundCount | Iterator[Any]:
    # `zip`: it ends with the shortest, as Python's, which is a list if there is one.
    running = [each for each in parts if isinstance(each, RoundCount)]
    others = [
        list(python_value(session, each) if part is None else part)
        for part, each in zip(parts, iterable.arguments, strict=True)
        if not isinstance(part, RoundCount)
    ]
    if not others:
        lengths = list(dict.fromkeys(each.count for each in running))
        if iterable.options.get("strict"):
            for length in lengths[1:]:
                message = "a loop goes over tensors of different lengths at once\nloop over parts of the same length"
                session.builder.require_equal(lengths[0], length, message, session.location())
            lengths = lengths[:1]
        shortest = reduce(lambda one, other: apply("min", one, other), lengths)
        return _counting(shortest, lambda number: tuple(each.at(session, number) for each in running))
    count = min(map(len, others))
    strict = bool(iterable.options.get("strict"))
    tensor = "tensor of another length\nmake them equally long" if strict else "shorter tensor\ncut the list"
    message = f"a loop goes over a list of {count} and a {tensor}"
    for each in running:
        fits = apply("eq" if strict else "ge", each.count, integer(count))
        session.builder.require(fits, message, session.location())
    rest = iter(others)
    return zip(
        *(
            [each.at(session, k) for k in range(count)] if isinstance(each, RoundCount) else next(rest)
            for each in parts
        ),
        strict=False,
    )


def _counting(count: Expr, element: Callable[[Any], Any]) -> RoundCount:
    return RoundCount(integer(0), integer(1), count, True, element)


def python_value(session: Session, iterable: Any) -> Any:
    """What Python iterates over."""
    if not isinstance(iterable, Iterated):
        return iterable
    if iterable.counts:
        return as_python_does(range, *iterable.arguments)
    arguments = [python_value(session, each) for each in iterable.arguments]
    return call_function(iterable.function, arguments, iterable.options)


def python_rounds(session: Session, iterable: Any) -> Iterator[Any]:
    """The rounds of a loop of Python's."""
    value = python_value(session, iterable)
    if isinstance(iterable, Iterated) and iterable.function is reversed:
        inner = python_value(session, iterable.arguments[0])
        value = inner[::-1] if isinstance(inner, range) else value
    return unrolled(session, value) if isinstance(value, range) else iter(value)
