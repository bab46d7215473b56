"""Loops that data end, backwards: how often they run is not known before the call, so no tape has room for all rounds.

The loop forwards counts its rounds. Backwards, some of its states are kept at a time (`binomial_checkpoints`), in as
many places as the sizes of what the loop carries leave room for: with 1,024 places a thousand rounds are computed once
more, half a million twice, and a hundred million three times.
"""

from __future__ import annotations

from dataclasses import replace

from tcdsl.autodiff.loop_derivatives.binomial_checkpoints import BinomialBackwardBody
from tcdsl.autodiff.loop_derivatives.round_derivatives import RoundDerivative
from tcdsl.autodiff.statement_derivatives.derivative import Derivative
from tcdsl.ir.build import apply, integer, plain_read, product_of
from tcdsl.ir.expressions import Expr
from tcdsl.ir.program import Assertion, Repeat, Size, Tensor
from tcdsl.polyhedra.boxes import over_box
from tcdsl.rewrite.inlining import append_program

__all__ = ["OpenBackwardBody"]

# Places for states, at most, and numbers in all of them, unless that leaves too few.
_MOST_PLACES = 1024
_MOST_NUMBERS = 2**25
_FEWEST_PLACES = 32
# Where a loop asks for more: with these a million rounds are computed once more, and 500 thousand million twice.
_MOST_ASKED = 2**20


class OpenBackwardBody(BinomialBackwardBody):
    """The ``body`` of the loop backwards, its ``count``, and the tensors ``given`` to its inputs by name, seeds apart.

    ``loop`` is the loop forwards, which counts its rounds.
    """

    def _prepare(self, outer: dict[str, str]) -> None:
        work, body = self._work, self._repeat.body
        rounds = work.declare("rounds", "int64", ())
        self.loop = self._counting(rounds)
        self.count = plain_read(rounds, (), "int64")
        total = Tensor(self._names.fresh("rounds"), "int64", ())
        self._told = (total,)
        self.given[total.name] = rounds
        self._all = plain_read(total.name, (), "int64")
        self._sizes, self._assertions = body.sizes, body.assertions
        self._make_room(self._number_of_places(outer))

    def _counting(self, rounds: str) -> Repeat:
        repeat, body = self._repeat, self._repeat.body
        passed, new = self._names.fresh("passed"), self._names.fresh("passed")
        none = self._work.declare("passed", "int64", ())
        self._work.append(over_box(none, (), (), integer(0)))
        counting = replace(
            body,
            inputs=(*body.inputs, Tensor(passed, "int64", ())),
            tensors=(*body.tensors, Tensor(new, "int64", ())),
            statements=(
                *body.statements,
                over_box(new, (), (), apply("add", plain_read(passed, (), "int64"), integer(1))),
            ),
            updates=(*body.updates, (passed, new)),
        )
        return replace(repeat, results=(*repeat.results, rounds), body=counting, inputs=(*repeat.inputs, none))

    def _number_of_places(self, outer: dict[str, str]) -> Expr:
        # An extent around the loop.
        if self._repeat.checkpoints:
            return integer(min(self._repeat.checkpoints, _MOST_ASKED))
        numbers: Expr = integer(0)
        for tensor in self._carried:
            numbers = apply("add", numbers, product_of(self._work.extents(outer[tensor.name])))
        fitting = apply("floor_div", integer(_MOST_NUMBERS), apply("max", numbers, integer(1)))
        return apply("max", apply("min", fitting, integer(_MOST_PLACES)), integer(_FEWEST_PLACES))

    def _header(self) -> tuple[tuple[Size, ...], tuple[Assertion, ...]]:
        return self._sizes, self._assertions

    def _last(self) -> Expr:
        number = plain_read(self._repeat.body.inputs[0].name, (), "int64")
        return apply("sub", apply("sub", self._all, integer(1)), number)

    def _rounds_between(
        self, first: Tensor, reached: Tensor, results: tuple[str, ...], inputs: tuple[str, ...]
    ) -> Repeat:
        # They count from 0, which any loop may; the body asks for the number of the round of the whole loop.
        body = self._repeat.body
        counter = body.inputs[0]
        own = Tensor(self._names.fresh(counter.name), "int64", ())
        shift = Tensor(self._names.fresh("offset"), "int64", ())
        begin, shifted = plain_read(first.name, (), "int64"), plain_read(shift.name, (), "int64")
        again = replace(
            body,
            inputs=(own, *body.inputs[1:], shift),
            tensors=(counter, *body.tensors),
            statements=(
                over_box(counter.name, (), (), apply("add", plain_read(own.name, (), "int64"), shifted)),
                *body.statements,
            ),
            outputs=(),
        )
        count = apply("sub", plain_read(reached.name, (), "int64"), begin)
        return Repeat(results, count, again, (*inputs, first.name), self._repeat.span)

    def _pulled_back(
        self, host: Derivative, adjoint: RoundDerivative, tensors: dict[str, Tensor], last: Tensor
    ) -> dict[str, str]:
        tensors = {**tensors, self._repeat.body.inputs[0].name: last}
        values, linear = adjoint.values, adjoint.linear
        made = append_program(host, values, [tensors[each.name] for each in values.inputs])
        tensors = {**dict(zip(values.outputs, made, strict=True)), **tensors}
        found = append_program(host, linear, [tensors[each.name] for each in linear.inputs])
        return dict(zip(linear.outputs, (tensor.name for tensor in found), strict=True))
