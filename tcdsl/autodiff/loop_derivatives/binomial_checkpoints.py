"""Loops of which so many states are kept at a time, backwards: binomial checkpointing.

States lie on a stack, each with its round. Backwards, a round starts from the topmost state: the rounds up to it are
computed again, and states are kept on the way, as far apart as makes the least work of all that is still to come. With
``c`` places, ``(c + t)! / (c! t!)`` rounds are computed at most ``t`` times again.

Source: Griewank and Walther, "Algorithm 799: Revolve" (ACM TOMS 26, 2000), equations 1 to 4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial

from tcdsl.autodiff.loop_derivatives.reversed_rounds import backwards, extents_around, in_body, number_of
from tcdsl.autodiff.loop_derivatives.round_derivatives import RoundDerivative
from tcdsl.autodiff.statement_derivatives.derivative import Derivative
from tcdsl.ir.build import apply, cast, constant, in_range, index, integer, plain_read
from tcdsl.ir.domain import Domain
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Boundary, Constant, Expr, Read, SizeValue, size_names
from tcdsl.ir.fresh_names import names_of
from tcdsl.ir.program import (
    Access,
    Assertion,
    AxisExtent,
    Keep,
    Program,
    Repeat,
    Size,
    Statement,
    Tensor,
    Unset,
)
from tcdsl.ir.text.parser import parse_program
from tcdsl.polyhedra.affine import condition_set
from tcdsl.polyhedra.boxes import box, over_box
from tcdsl.polyhedra.writes import read_cell
from tcdsl.rewrite.inlining import append_program
from tcdsl.rewrite.loop_segments import depending_on
from tcdsl.rewrite.replaced_sizes import with_size_replaced
from tcdsl.rewrite.round_numbers import empty_statement, with_own_counter

__all__ = ["BinomialBackwardBody", "next_state"]

_ENDLESS = constant(1 << 62, "int64")

# Of ``length`` rounds with so many ``places``, the one of the state at the beginning included: ``reach`` is what these
# reach if no round is computed more than ``steps`` times.
_DISTANCE = """\
program distance
input length: int64
input places: int64
tensor steps_1: int64
tensor reach_1: int64
tensor going_1: bool
tensor steps_3: int64
tensor reach_3: int64
tensor going_3: bool
tensor shorter: int64
tensor fewer: int64
tensor distance: int64

steps_1[()] = 0  for []
reach_1[()] = 1  for []
going_1[()] = length > 1  for []

repeat steps_3, reach_3, going_3 = 4611686018427387904 times with length, places, steps_1, reach_1, going_1
| program distance_loop
| input round: int64
| input length: int64
| input places: int64
| input steps: int64
| input reach: int64
| input going: bool
| tensor steps_2: int64
| tensor reach_2: int64
| tensor going_2: bool
|
| steps_2[()] = steps + 1  for []
| reach_2[()] = reach * (places + steps_2) // steps_2  for []
| going_2[()] = reach_2 < length  for []
|
| update steps = steps_2
| update reach = reach_2
| update going = going_2
|
| return going

shorter[()] = reach_3 * steps_3 // (places + steps_3)  for []
fewer[()] = shorter * places // (places + steps_3 - 1)  for []
distance[()] = max(1, min(shorter, length - fewer)) if places > 1 else length - 1  for []

return distance
"""


@cache
def next_state() -> Program:
    """The program of ``length`` and ``places``: how many rounds to go from a state until the next one is kept."""
    return parse_program(_DISTANCE)


class BinomialBackwardBody:
    """The ``body`` of the loop backwards, its ``count``, and the tensors ``given`` to its inputs by name, seeds apart.

    ``loop`` is the loop forwards, as it was. The loop backwards carries ``more`` than the derivatives: the stack.
    """

    def __init__(self, work: Derivative, repeat: Repeat, adjoint: RoundDerivative) -> None:
        self._work = work
        self._repeat = repeat
        body = repeat.body
        self._names = names_of(body)
        for program in (adjoint.values, adjoint.linear):
            self._names.take(tensor.name for tensor in (*program.inputs, *program.tensors))
        outer = dict(zip((each.name for each in body.inputs[1:]), repeat.inputs, strict=True))
        self._carried = [tensor for tensor in body.inputs if tensor.name in dict(body.updates)]
        self.given = dict(outer)
        self._rounds = Tensor(self._names.fresh("kept_rounds"), "int64", ())
        self._top = Tensor(self._names.fresh("top"), "int64", ())
        self._prepare(outer)
        self._rounds = replace(self._rounds, shape=(self._places,))
        self._stacks = {tensor.name: self._own(f"{tensor.name}_kept", tensor.dtype, tensor) for tensor in self._carried}
        self.more = self._first_state(outer)
        self.body = self._backward(adjoint)

    def _prepare(self, outer: dict[str, str]) -> None:
        """Find out how many rounds and places there are, around the bodies and in them."""
        work, repeat, body = self._work, self._repeat, self._repeat.body
        self.loop, self.count = repeat, repeat.count
        number = number_of(body)
        assert number is not None
        self._number = number
        changing = depending_on(body, number)
        self._sizes = tuple(size for size in body.sizes if size.name not in changing)
        self._assertions = tuple(each for each in body.assertions if not _mentions(each, changing))
        # No more than there are rounds, of which the first has its place on the stack anyway.
        most = apply("max", repeat.count, integer(1))
        self._make_room(apply("min", integer(repeat.checkpoints), most))
        #: What the bodies are given to know the number of rounds.
        self._told: tuple[Tensor, ...] = ()
        known = in_body(repeat.count, extents_around(body, {name: work.extents(each) for name, each in outer.items()}))
        if known is None:
            # Nothing else tells the body how many rounds there are.
            known = SizeValue(self._names.fresh("rounds"))
            carrier = Tensor(self._names.fresh("carrier"), "bool", (known, integer(0)))
            self._told = (carrier,)
            self._sizes = (Size(known.name, AxisExtent(carrier.name, 0)), *self._sizes)
            extents = (work.opaque_size(apply("max", repeat.count, integer(0))), integer(0))
            self.given[carrier.name] = work.declare(carrier.name, "bool", extents)
            work.append(empty_statement(self.given[carrier.name], "bool", work.cell_variables(2)))
        self._all = known

    def _make_room(self, places: Expr) -> None:
        """Have so many ``places``, an expression of sizes around the loop, which the bodies find on the stack."""
        self._places: Expr = places
        self._places_around: Expr = places
        if not isinstance(places, Constant):
            self._places_around = self._work.opaque_size(places)
            self._places = SizeValue(self._names.fresh("places"))
            self._sizes = (*self._sizes, Size(self._places.name, AxisExtent(self._rounds.name, 0)))

    def _own(self, hint: str, dtype: str, like: Tensor) -> Tensor:
        return Tensor(self._names.fresh(hint), dtype, (self._places, *like.shape))

    def _first_state(self, outer: dict[str, str]) -> tuple[str, ...]:
        """Put the state before the first round on the stack; what stack, rounds and top are after the loop."""
        work = self._work
        around = [work.tensor(outer[tensor.name]) for tensor in self._carried]
        results = [
            self._begun(self._stacks[tensor.name], first.shape, partial(_cell, first))
            for tensor, first in zip(self._carried, around, strict=True)
        ]
        results.append(self._begun(self._rounds, (), lambda _: integer(0)))
        top = self.given[self._top.name] = work.declare(self._top.name, "int64", ())
        work.append(over_box(top, (), (), integer(0)))
        return (*results, work.declare(self._top.name, "int64", ()))

    def _begun(self, stack: Tensor, shape: tuple[Expr, ...], value: Callable[[Sequence[str]], Expr]) -> str:
        """Put a first ``value`` of this ``shape`` on ``stack``; the name of what the stack is after the loop."""
        work, whole = self._work, (self._places_around, *shape)
        name = self.given[stack.name] = work.declare(stack.name, stack.dtype, whole)
        cells = work.cell_variables(len(shape))
        points = box(cells, shape)
        points = points.intersect(condition_set(in_range(integer(0), self._places_around), points))
        target = Access(name, (integer(0), *map(index, cells)))
        # The other places hold nothing yet: memory that no round gets to is never taken from the system.
        work.append(Statement(target, "assign", Unset(), value(cells), Domain.from_set(points)))
        return work.declare(stack.name, stack.dtype, whole)

    def _backward(self, adjoint: RoundDerivative) -> Program:
        body = self._repeat.body
        seeds = [adjoint.linear.tensor(seed) for seed in adjoint.seeds.values()]
        sizes, assertions = self._header()
        empty = Program(
            f"{body.name}_adjoint",
            (*body.inputs, *self._told, *self._stacks.values(), self._rounds, self._top, *seeds),
            sizes,
            (),
            (),
            (),
            assertions=assertions,
        )
        host = Derivative(empty, ())
        last = host.scalar("last", self._last())
        state, kept = self._state(host, last)
        tensors = (
            {each.name: each for each in (*body.inputs, *self._told)} | state | {each.name: each for each in seeds}
        )
        results = self._pulled_back(host, adjoint, tensors, last)
        # The state of this round is not needed any more.
        top = _value(kept[self._top.name])
        here = apply("eq", _at(kept[self._rounds.name], top), _value(last))
        left = host.scalar("top", apply("max", apply("sub", top, cast(here, "int64")), integer(0)))
        updates = [(seed, results[adjoint.results[name]]) for name, seed in adjoint.seeds.items()]
        updates += [(name, tensor.name) for name, tensor in kept.items() if name != self._top.name]
        return host.as_body([*updates, (self._top.name, left.name)])

    def _header(self) -> tuple[tuple[Size, ...], tuple[Assertion, ...]]:
        """The sizes and assertions of the loop backwards."""
        own = Size(self._number, AxisExtent(self._repeat.body.inputs[0].name, 0))
        below = Assertion(apply("lt", SizeValue(self._number), self._all))
        return (own, *self._sizes), (below, *self._assertions)

    def _last(self) -> Expr:
        """The round whose turn it is."""
        return backwards(self._all, SizeValue(self._number))

    def _rounds_between(
        self, first: Tensor, reached: Tensor, results: tuple[str, ...], inputs: tuple[str, ...]
    ) -> Repeat:
        """The rounds up to ``reached`` once more: no further than the last of all, which bounds their number."""
        again = replace(self._repeat.body, outputs=())
        count = apply("min", _value(reached), self._all)
        return Repeat(results, count, again, inputs, self._repeat.span, begin=_value(first))

    def _pulled_back(
        self, host: Derivative, adjoint: RoundDerivative, tensors: dict[str, Tensor], last: Tensor
    ) -> dict[str, str]:
        """Append the adjoint of the round ``last``; its results, by the names that ``adjoint`` gives them."""
        linear = with_own_counter(adjoint.linear, self._repeat.body.inputs[0], self._names.fresh)
        linear = with_size_replaced(linear, self._number, self._last())
        found = append_program(host, linear, [tensors[each.name] for each in linear.inputs])
        return dict(zip(linear.outputs, (tensor.name for tensor in found), strict=True))

    def _state(self, host: Derivative, last: Tensor) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """The state before the round ``last``, by a loop from the topmost one; and the stack after that."""
        top = _value(self._top)
        first = host.scalar("first", _at(self._rounds, top))
        going = host.scalar("going", apply("lt", _value(first), _value(last)))
        begun: dict[str, str] = {}
        for tensor in self._carried:
            name = begun[tensor.name] = host.declare(f"{tensor.name}_begun", tensor.dtype, tensor.shape)
            cells = host.cell_variables(len(tensor.shape))
            host.append(over_box(name, cells, tensor.shape, _at(self._stacks[tensor.name], top, *map(index, cells))))
        onward = self._onward(first, last, going)
        given = {first.name: first.name, last.name: last.name, going.name: going.name, **begun}
        results: dict[str, Tensor] = {}
        for name, _ in onward.updates:
            declared = onward.tensor(name)
            results[name] = host.tensor(host.declare(name, declared.dtype, declared.shape))
        inputs = tuple(given.get(each.name, each.name) for each in onward.inputs[1:])
        names = tuple(each.name for each in results.values())
        host.repeats.append(Repeat(names, _ENDLESS, onward, inputs, self._repeat.span))
        stack = {name: results[name] for name in (*(each.name for each in self._stacks.values()), self._rounds.name)}
        state = {tensor.name: results[tensor.name] for tensor in self._carried}
        return state, {**stack, self._top.name: results[self._top.name]}

    def _onward(self, first: Tensor, last: Tensor, going: Tensor) -> Program:
        """The body of the loop that goes from state to state: as far as the next one that is to be kept."""
        body = self._repeat.body
        given = (*body.inputs[1:], *self._told, *self._stacks.values(), self._rounds, self._top, last, first, going)
        empty = Program(
            f"{body.name}_onward",
            (Tensor(self._names.fresh("step"), "int64", ()), *given),
            self._sizes,
            (),
            (),
            (),
            assertions=self._assertions,
        )
        host = Derivative(empty, ())
        top = _value(self._top)
        left = apply("sub", _value(last), _value(first))
        length = host.scalar("length", apply("add", left, integer(1)))
        places = host.scalar("places", apply("sub", self._places, top))
        [distance] = append_program(host, next_state(), [length, places])
        reached = host.scalar("reached", apply("add", _value(first), _value(distance)))
        results = [host.tensor(host.declare(each.name, each.dtype, each.shape)) for each in self._carried]
        by_name = {each.name: made for each, made in zip(self._carried, results, strict=True)}
        names = tuple(by_name[name].name for name, _ in body.updates)
        inputs = tuple(each.name for each in body.inputs[1:])
        host.repeats.append(self._rounds_between(first, reached, names, inputs))
        further = apply("lt", _value(reached), _value(last))
        due = host.scalar("due", apply("and_", further, apply("gt", _value(places), integer(1))))
        above = apply("add", top, cast(plain_read(due.name, (), "bool"), "int64"))
        updates = [(name, made.name) for name, made in by_name.items()]
        pushed = [*((self._stacks[name], made) for name, made in by_name.items()), (self._rounds, reached)]
        updates += [(stack.name, self._pushed(host, stack, made, above, due)) for stack, made in pushed]
        updates.append((self._top.name, host.scalar("top", above).name))
        updates.append((first.name, reached.name))
        updates.append((going.name, host.scalar("going", further).name))
        return host.as_body(updates, (going.name,))

    def _pushed(self, host: Derivative, stack: Tensor, value: Tensor, place: Expr, due: Tensor) -> str:
        """``stack[place] = value``, if that is due."""
        name = host.declare(stack.name, stack.dtype, stack.shape)
        cells = host.cell_variables(len(value.shape))
        read = read_cell(value, cells, compute_dtype(value.dtype))
        target = Access(name, (place, *map(index, cells)))
        points = Domain.from_set(box(cells, value.shape))
        condition = plain_read(due.name, (), "bool")
        host.append(Statement(target, "assign", Keep(stack.name), read, points, condition, "clamp", unique=True))
        return name


def _cell(tensor: Tensor, cells: Sequence[str]) -> Expr:
    return read_cell(tensor, cells, compute_dtype(tensor.dtype))


def _mentions(assertion: Assertion, sizes: frozenset[str]) -> bool:
    return bool(size_names(assertion.condition) & sizes)


def _value(tensor: Tensor) -> Expr:
    return plain_read(tensor.name, (), "int64")


def _at(tensor: Tensor, place: Expr, *cell: Expr) -> Expr:
    boundaries = (Boundary.CLAMP, *(Boundary.SKIP for _ in cell))
    return Read(tensor.name, (place, *cell), boundaries, compute_dtype(tensor.dtype))
