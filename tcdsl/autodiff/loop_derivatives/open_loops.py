"""Loops that data end, backwards: how often they run is not known before the call, so no tape has room for all rounds.

The loop counts its rounds. It then runs once more, and stores its state now and then, in as many places as there are:
in each round, if there are enough, else in every second, third, ... one (the *stride*). Backwards, the values of a
round are computed again from the last state stored before it. The number of places depends on the sizes of what the
loop carries; a thousand rounds are backwards at the price of two forwards.
"""

from __future__ import annotations

from dataclasses import replace

from tcdsl.autodiff.loop_derivatives.round_derivatives import RoundDerivative
from tcdsl.autodiff.statement_derivatives.derivative import Derivative
from tcdsl.ir.build import apply, index, integer, plain_read, product_of
from tcdsl.ir.domain import Domain
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Boundary, Constant, Expr, Read, SizeValue
from tcdsl.ir.fresh_names import cell_names, names_of
from tcdsl.ir.program import Access, AxisExtent, Keep, Neutral, Program, Repeat, Size, Statement, Tensor
from tcdsl.polyhedra.boxes import box
from tcdsl.polyhedra.writes import read_cell
from tcdsl.rewrite.inlining import append_program
from tcdsl.rewrite.round_numbers import empty_statement

__all__ = ["OpenBackwardBody"]

# Places for states, at most, and numbers in all of them, unless that leaves too few.
_MOST_PLACES = 1024
_MOST_NUMBERS = 2**25
_FEWEST_PLACES = 32


class OpenBackwardBody:
    """The ``body`` of the loop backwards, its ``count``, and the tensors ``given`` to its inputs by name, seeds apart.

    ``loop`` is the loop forwards, which counts its rounds.
    """

    #: What the loop backwards carries beside derivatives.
    more: tuple[str, ...] = ()

    def __init__(self, work: Derivative, repeat: Repeat, adjoint: RoundDerivative) -> None:
        self._work = work
        self._repeat = repeat
        body = repeat.body
        self._names = names_of(body)
        for program in (adjoint.values, adjoint.linear):
            self._names.take(tensor.name for tensor in (*program.inputs, *program.tensors))
        self._outer = dict(zip((each.name for each in body.inputs[1:]), repeat.inputs, strict=True))
        self._carried = [tensor for tensor in body.inputs if tensor.name in dict(body.updates)]
        rounds = work.declare("rounds", "int64", ())
        self.loop = self._counting(rounds)
        self.count: Expr = plain_read(rounds, (), "int64")
        places = self._places()
        stride = work.declare("stride", "int64", ())
        more = apply("sub", apply("add", self.count, places), integer(1))
        work.append(_scalar(stride, apply("max", apply("floor_div", more, places), integer(1))))
        # In the bodies.
        self._rounds = Tensor(self._names.fresh("rounds"), "int64", ())
        self._stride = Tensor(self._names.fresh("stride"), "int64", ())
        size = places if isinstance(places, Constant) else SizeValue(self._names.fresh("places"))
        self._tapes = {
            tensor.name: Tensor(self._names.fresh(f"{tensor.name}_tape"), tensor.dtype, (size, *tensor.shape))
            for tensor in self._carried
        }
        self._sizes = body.sizes
        if isinstance(size, SizeValue):
            first = next(iter(self._tapes.values()))
            self._sizes = (*body.sizes, Size(size.name, AxisExtent(first.name, 0)))
        tapes = self._stored(stride, places)
        self.given = {**self._outer, self._rounds.name: rounds, self._stride.name: stride, **tapes}
        self.body = self._backward(adjoint)

    def _counting(self, rounds: str) -> Repeat:
        repeat, body = self._repeat, self._repeat.body
        passed, new = self._names.fresh("passed"), self._names.fresh("passed")
        none = self._work.declare("passed", "int64", ())
        self._work.append(_scalar(none, integer(0)))
        counting = replace(
            body,
            inputs=(*body.inputs, Tensor(passed, "int64", ())),
            tensors=(*body.tensors, Tensor(new, "int64", ())),
            statements=(*body.statements, _scalar(new, apply("add", plain_read(passed, (), "int64"), integer(1)))),
            updates=(*body.updates, (passed, new)),
        )
        return replace(repeat, results=(*repeat.results, rounds), body=counting, inputs=(*repeat.inputs, none))

    def _places(self) -> Expr:
        """How many states are stored: an extent around the loop."""
        if self._repeat.checkpoints:
            return integer(self._repeat.checkpoints)
        numbers: Expr = integer(0)
        for tensor in self._carried:
            numbers = apply("add", numbers, product_of(self._work.extents(self._outer[tensor.name])))
        fitting = apply("floor_div", integer(_MOST_NUMBERS), apply("max", numbers, integer(1)))
        places = apply("max", apply("min", fitting, integer(_MOST_PLACES)), integer(_FEWEST_PLACES))
        return places if isinstance(places, Constant) else self._work.opaque_size(places)

    def _stored(self, stride: str, places: Expr) -> dict[str, str]:
        """Append the loop that runs once more and stores states; its tapes, by the names in a body."""
        work, body = self._work, self._repeat.body
        number = plain_read(body.inputs[0].name, (), "int64")
        every = plain_read(self._stride.name, (), "int64")
        due = apply("eq", apply("mod", number, every), integer(0))
        stores: list[Statement] = []
        made: list[Tensor] = []
        updates: list[tuple[str, str]] = []
        first: list[str] = []
        last: dict[str, str] = {}
        for tensor in self._carried:
            tape = self._tapes[tensor.name]
            new = replace(tape, name=self._names.fresh(tape.name))
            cells = cell_names(len(tensor.shape), (size.name for size in self._sizes))
            value = read_cell(tensor, cells, compute_dtype(tensor.dtype))
            target = Access(new.name, (apply("floor_div", number, every), *map(index, cells)))
            points = Domain.from_set(box(cells, tensor.shape))
            stores.append(Statement(target, "assign", Keep(tape.name), value, points, due, "clamp", unique=True))
            made.append(new)
            updates.append((tape.name, new.name))
            shape = (places, *work.extents(self._outer[tensor.name]))
            first.append(work.declare(tape.name, tape.dtype, shape))
            work.append(empty_statement(first[-1], tape.dtype, work.cell_variables(len(shape))))
            last[tape.name] = work.declare(tape.name, tape.dtype, shape)
        storing = replace(
            body,
            inputs=(*body.inputs, self._stride, *self._tapes.values()),
            sizes=self._sizes,
            tensors=(*body.tensors, *made),
            statements=(*body.statements, *stores),
            outputs=(),
            updates=(*body.updates, *updates),
        )
        results = [
            work.declare(result, work.tensor(result).dtype, work.extents(result)) for result in self._repeat.results
        ]
        inputs = (*self._repeat.inputs, stride, *first)
        work.repeats.append(Repeat((*results, *last.values()), self.count, storing, inputs, self._repeat.span))
        return last

    def _backward(self, adjoint: RoundDerivative) -> Program:
        body, linear = self._repeat.body, adjoint.linear
        counter = body.inputs[0]
        seeds = [linear.tensor(seed) for seed in adjoint.seeds.values()]
        empty = Program(
            f"{body.name}_adjoint",
            (*body.inputs, self._rounds, self._stride, *self._tapes.values(), *seeds),
            self._sizes,
            (),
            (),
            (),
            assertions=body.assertions,
        )
        host = Derivative(empty, ())
        last = apply("sub", plain_read(self._rounds.name, (), "int64"), integer(1))
        number = host.scalar("number", apply("sub", last, plain_read(counter.name, (), "int64")))
        state = {**{each.name: each for each in body.inputs}, **self._state(host, number), counter.name: number}
        made = append_program(host, adjoint.values, [state[each.name] for each in adjoint.values.inputs])
        values = dict(zip(adjoint.values.outputs, made, strict=True))
        known = {**{seed.name: seed for seed in seeds}, **values, **state}
        found = append_program(host, linear, [known[each.name] for each in linear.inputs])
        results = dict(zip(linear.outputs, (tensor.name for tensor in found), strict=True))
        return host.as_body([(seed, results[adjoint.results[name]]) for name, seed in adjoint.seeds.items()])

    def _state(self, host: Derivative, number: Tensor) -> dict[str, Tensor]:
        """What the loop carries at the start of round ``number``: from the last state stored before, by a loop."""
        body = self._repeat.body
        counter = body.inputs[0]
        reached, stride = plain_read(number.name, (), "int64"), plain_read(self._stride.name, (), "int64")
        place = host.scalar("place", apply("floor_div", reached, stride))
        passed = host.scalar("passed", apply("mod", reached, stride))
        offset = host.scalar("offset", apply("sub", reached, plain_read(passed.name, (), "int64")))
        begun: dict[str, Tensor] = {}
        for tensor in self._carried:
            tape, dtype = self._tapes[tensor.name], compute_dtype(tensor.dtype)
            name = host.declare(f"{tensor.name}_begun", tensor.dtype, tensor.shape)
            cells = host.cell_variables(len(tensor.shape))
            indices: tuple[Expr, ...] = (plain_read(place.name, (), "int64"), *map(index, cells))
            boundaries = (Boundary.CLAMP, *(Boundary.SKIP for _ in cells))
            value = Read(tape.name, indices, boundaries, dtype)
            points = Domain.from_set(box(cells, tensor.shape))
            host.append(Statement(Access(name, tuple(map(index, cells))), "assign", Neutral(), value, points))
            begun[tensor.name] = host.tensor(name)
        # The body asks for the number of the round of the whole loop.
        own = Tensor(self._names.fresh(counter.name), "int64", ())
        shift = Tensor(self._names.fresh("offset"), "int64", ())
        shifted = apply("add", plain_read(own.name, (), "int64"), plain_read(shift.name, (), "int64"))
        again = replace(
            body,
            inputs=(own, *body.inputs[1:], shift),
            tensors=(counter, *body.tensors),
            statements=(_scalar(counter.name, shifted), *body.statements),
            outputs=(),
        )
        results = [host.declare(name, host.tensor(name).dtype, host.extents(name)) for name, _ in body.updates]
        inputs = [begun[each.name].name if each.name in begun else each.name for each in body.inputs[1:]]
        count = plain_read(passed.name, (), "int64")
        host.repeats.append(Repeat(tuple(results), count, again, (*inputs, offset.name), self._repeat.span))
        return {name: host.tensor(result) for (name, _), result in zip(body.updates, results, strict=True)}


def _scalar(name: str, value: Expr) -> Statement:
    return Statement(Access(name, ()), "assign", Neutral(), value, Domain.from_set(box((), ())))
