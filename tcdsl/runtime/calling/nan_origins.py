"""Where a NaN begins: the statement that made it, in which rounds of loops, and what it had read.

From the tensor that holds NaN the way goes back along operands that hold it too. A loop is run again with fewer
rounds, until the first round is known behind which its result holds NaN; the body of that round is a program like any
other, run on what the round was given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import islpy as isl
import numpy as np

from tcdsl.errors import TcdslError
from tcdsl.ir.build import apply, plain_read
from tcdsl.ir.domain import Domain
from tcdsl.ir.dtypes import is_floating, numpy_dtype
from tcdsl.ir.expressions import Apply, Expr, IndexValue, reads
from tcdsl.ir.fresh_names import names_of
from tcdsl.ir.interpreter.point_values import PointValues
from tcdsl.ir.program import Program, Repeat, Statement, Tensor, tensors_read
from tcdsl.ir.sizes.size_binding import evaluate_size, plan_of
from tcdsl.ir.stages import stages
from tcdsl.ir.text.printer import format_expr
from tcdsl.rewrite.renaming import expression_with_tensors_renamed

__all__ = ["NanOrigin", "Run", "holds_nan", "operands_at", "origin_of"]

#: Runs a program on its inputs.
Run = Callable[[Program, Sequence[np.ndarray]], Sequence[np.ndarray]]
_Values = Mapping[str, np.ndarray]

# Tensors that are larger, and larger than all that goes in, are not looked at: some are never stored.
_ALWAYS_STORED = 1 << 28
_MOST_ROUNDS = 1 << 62
# Cells of operands in which a message looks for those that it shows, and how many it shows.
_MOST_POINTS = 1 << 24
_MOST_SHOWN = 4


@dataclass(frozen=True, slots=True)
class NanOrigin:
    """The statement of ``program`` that has made a NaN, and all values there.

    ``source`` is the operand that it has NaN from, if it has. ``rounds`` are the names and numbers of the rounds around
    it, outermost first.
    """

    program: Program
    values: _Values
    statement: Statement
    source: str | None
    rounds: tuple[tuple[str, int], ...] = ()


def holds_nan(array: np.ndarray) -> bool:
    """Whether an array holds NaN."""
    return is_floating(str(array.dtype)) and bool(np.isnan(array).any())


def origin_of(
    program: Program, arrays: Sequence[np.ndarray], name: str, run: Run
) -> tuple[NanOrigin | None, str | None]:
    """Where the NaN begins that the tensor ``name`` of ``program`` holds, on ``arrays`` as its inputs.

    The statement furthest back, if there is one, and the input that it has NaN from, if it has.
    """
    sizes = plan_of(program).bind([array.shape for array in arrays])
    stored = _stored(program, arrays, name, sizes)
    values = dict(zip((tensor.name for tensor in program.inputs), arrays, strict=True))
    if stored:
        values.update(zip(stored, run(replace(program, outputs=stored, updates=()), arrays), strict=True))
    makers: dict[str, Statement | Repeat] = {}
    for stage in stages(program):
        makers.update((statement.target.tensor, statement) for statement in stage.statements)
        if stage.repeat is not None:
            makers.update(dict.fromkeys(stage.repeat.results, stage.repeat))
    order = {each: place for place, each in enumerate(makers)}
    found: NanOrigin | None = None
    source: str | None = name
    while source is not None and source in makers:
        maker = makers[source]
        if isinstance(maker, Repeat):
            inside, source = _inside(program, arrays, values, maker, source, run)
            found = inside or found
        else:
            read = [each for each in tensors_read(maker) if each in values and holds_nan(values[each])]
            source = min(read, key=lambda each: order.get(each, -1), default=None)
            found = NanOrigin(program, values, maker, source)
    return found, source


def _inside(
    program: Program, arrays: Sequence[np.ndarray], values: _Values, loop: Repeat, result: str, run: Run
) -> tuple[NanOrigin | None, str | None]:
    # The statement in a round of the loop, and the tensor outside that it has NaN from.
    body = loop.body
    results = dict(zip((name for name, _ in body.updates), loop.results, strict=True))
    carried = {name: (new, given) for name, new, given in loop.carried}
    outer = dict(zip((each.name for each in body.inputs[1:]), loop.inputs, strict=True))
    inner = next(name for name, made in results.items() if made == result)
    found: NanOrigin | None = None
    number: int | None = None
    while True:
        new, given = carried[inner]
        if holds_nan(values[given]):
            return found, given
        number = _first_round(program, arrays, loop, results[inner], run, number)
        held = dict(zip(results, _after_rounds(program, arrays, loop, loop.results, run, number), strict=True))
        own = np.broadcast_to(np.zeros((), bool), (number,)) if body.inputs[0].shape else np.array(number)
        of_round = [held[each] if each in held else values[name] for each, name in outer.items()]
        inside, source = origin_of(body, [own, *of_round], new, run)
        if inside is not None:
            found = replace(inside, rounds=((loop.number, number), *inside.rounds))
        if source is None or source not in carried:
            return found, None if source is None else outer[source]
        inner = source


def _first_round(
    program: Program, arrays: Sequence[np.ndarray], loop: Repeat, result: str, run: Run, before: int | None
) -> int:
    # The first round behind which the result holds NaN: NaN stays NaN. With ``before`` it holds NaN in that round.
    def is_bad(rounds: int) -> bool:
        return holds_nan(_after_rounds(program, arrays, loop, (result,), run, rounds)[0])

    most = before or 1
    while before is None and most < _MOST_ROUNDS and not is_bad(most):
        most *= 2
    least = most // 2 if before is None else 0
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if is_bad(middle) else (middle, most)
    return most - 1


def _after_rounds(
    program: Program, arrays: Sequence[np.ndarray], loop: Repeat, wanted: Sequence[str], run: Run, rounds: int
) -> Sequence[np.ndarray]:
    # The results of the loop after that many rounds: a number of the call, so that this is compiled once.
    limit = Tensor(names_of(program).fresh("rounds"), "int64", ())
    count = _limited(loop.count, plain_read(limit.name, (), "int64"))
    repeats = tuple(replace(loop, count=count) if each is loop else each for each in program.repeats)
    fewer = replace(
        program, inputs=(*program.inputs, limit), repeats=repeats, outputs=tuple(dict.fromkeys(wanted)), updates=()
    )
    found = dict(zip(fewer.outputs, run(fewer, [*arrays, np.array(rounds)]), strict=True))
    return [found[name] for name in wanted]


def _limited(count: Expr, limit: Expr) -> Expr:
    # What sizes alone say of the number of rounds stays where it is looked for (`Repeat.most`).
    if isinstance(count, Apply) and count.primitive == "min" and any(reads(count)):
        sizes, data = sorted(count.arguments, key=lambda each: any(reads(each)))
        return replace(count, arguments=(sizes, _limited(data, limit)))
    return apply("min", count, limit)


def _stored(program: Program, arrays: Sequence[np.ndarray], wanted: str, sizes: Mapping[str, int]) -> tuple[str, ...]:
    # The tensors to look at, and those that loops are given: no others that are larger than what is stored anyway.
    most = max(_ALWAYS_STORED, *(array.nbytes for array in arrays), 0)
    given = {name for repeat in program.repeats for name in (*repeat.inputs, *repeat.results)}
    names: list[str] = []
    for tensor in program.tensors:
        cells = [max(0, int(evaluate_size(extent, sizes))) for extent in tensor.shape]
        small = np.prod(cells, dtype=float) * numpy_dtype(tensor.dtype).itemsize <= most
        if small or tensor.name in given or tensor.name == wanted:
            names.append(tensor.name)
    return tuple(names)


def operands_at(origin: NanOrigin) -> tuple[dict[str, int], tuple[str, ...]]:
    """The point of a reduction that makes NaN of the first cell that holds it, and a note of what is read there."""
    statement, program = origin.statement, origin.program
    operands = list(dict.fromkeys(reads(statement.value)))
    if sum(origin.values[each.tensor].size for each in operands if each.tensor in origin.values) > _MOST_POINTS:
        return {}, ()
    position = np.argwhere(np.isnan(origin.values[statement.target.tensor]))[0]
    places = dict(zip(statement.target.indices, map(int, position), strict=True))
    fixed = {index.name: place for index, place in places.items() if isinstance(index, IndexValue)}
    sizes = plan_of(program).bind([origin.values[tensor.name].shape for tensor in program.inputs])
    points = _with_fixed(statement.domain, fixed).cells(sizes)
    coordinates = {name: points[:, axis] for axis, name in enumerate(statement.domain.variables)}
    evaluated = PointValues(coordinates, len(points), sizes, origin.values.__getitem__)
    try:
        at = np.arange(len(points))
        for index, place in places.items():
            at = at[evaluated.of(index, at, {}) == place]
        at = at[np.isnan(evaluated.of(statement.value, at, {}).astype(float))][:1]
    except (TcdslError, KeyError):
        return {}, ()  # of what is not stored nothing is known
    if not len(at):
        return {}, ()
    labels = {tensor.name: tensor.label or tensor.name for tensor in (*program.inputs, *program.tensors)}
    found: list[str] = []
    for read in operands:
        try:
            number = evaluated.of(read, at, {})[0]
        except TcdslError:
            continue  # in an arm that is not taken
        text = read.span.text if read.span is not None else ""
        if not re.fullmatch(r"\w+(\[.*\])?", text):
            text = format_expr(expression_with_tensors_renamed(read, labels)).removesuffix("[()]")
        found.append(f"`{text}` is {number:.6g}" if is_floating(read.dtype) else f"`{text}` is {number}")
    free = {name: int(values[at[0]]) for name, values in coordinates.items() if name not in fixed}
    return free, (f"where {', '.join(dict.fromkeys(found[:_MOST_SHOWN]))}",) if found else ()


def _with_fixed(domain: Domain, fixed: Mapping[str, int]) -> Domain:
    points = domain.set
    for axis, name in enumerate(domain.variables):
        if name in fixed:
            points = points.fix_val(isl.dim_type.set, axis, isl.Val(fixed[name]))
    return Domain.from_set(points)
