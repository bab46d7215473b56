"""What all ways to make a sum of products share: where they run, their memory, factors, and stores of sums."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import islpy as isl

from tcdsl.ir.accumulators import ACCUMULATORS
from tcdsl.ir.build import apply, constant, index, integer, plain_read, product_of, truth
from tcdsl.ir.expressions import Constant, Expr, Local, Read, substitute, transform
from tcdsl.lowering.loopir.contraction import Side, SumOfProducts
from tcdsl.lowering.loopir.loops import Branch, Buffer, Loop, Node, Store, Update, loops_over
from tcdsl.lowering.loopir.point_code import update
from tcdsl.lowering.loopir.tiles import is_of_cells, within_limits
from tcdsl.lowering.loopir.traversal import serial
from tcdsl.lowering.nests.bodies import StatementLoops
from tcdsl.lowering.program_passes.schedule import LoopOrder
from tcdsl.polyhedra.linear import normalized

__all__ = ["ContractionLoops", "Values"]

Values = Mapping[Expr, Expr]
"""What variables are."""


class ContractionLoops:
    """The nests of one contraction, which run where it ``pays``.

    ``pays`` is a condition on sizes, and ``is_large`` says that it always holds: else other loops do the work
    `elsewhere`. Where they are ``guarded``, loops as `where_unsound` do it if a factor is not finite.
    """

    guarded = False

    def __init__(self, found: SumOfProducts, plan: LoopOrder, body: StatementLoops, pays: Expr) -> None:
        self._found = found
        self._plan = plan
        self._body = body
        self._names = body.setting.names
        self._dtype = plan.tensor.dtype
        self.pays = pays
        self._pays = None if isinstance(pays, Constant) else pays
        self.is_large = self._pays is None
        #: Whether cells hold what they start from, or get it with their sums.
        self._held = body.started or not found.full

    def nests(self) -> Iterator[tuple[str, tuple[Node, ...], Expr]]:
        """How each nest is called, its loops and its work: starts where few cells have sums, panels, tiles."""
        if self._held and not self._body.started:
            yield "start_", tuple(map(self._where_it_pays, self._body.start())), product_of(self._plan.tensor.shape)

    def elsewhere(self, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        """``nodes``, other loops, where they run."""
        assert self._pays is not None
        return (Branch(apply("not_", self._pays), nodes),)

    def where_unsound(self, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        """``nodes``, plain loops again, where these nests run and a factor is infinite or not a number."""
        raise NotImplementedError

    def short_loops(self) -> tuple[Node, ...]:
        """Plain loops for what hardly ever happens, in little code."""
        plan, body = self._plan, self._body
        order = (*plan.outer, *plan.inner)
        act = update(plan.statement, body.place)
        # isl takes long with what is known of sizes, which say little here.
        points = plan.statement.domain.set
        context = isl.Set.universe(points.get_space().params())
        if not plan.plain or order[0] not in plan.cells:
            return (*serial(body.start()), *body.visits(points, order, act, context, known=points))
        around, others = order[:1], [name for name in plan.cells if name != order[0]]
        starts = () if body.started else loops_over(plan.spans(others), tuple(body.start_of()))
        sums = body.visits(points, order[1:], act, context, around, known=points)
        (loop,) = loops_over(plan.spans(around), (*starts, *sums))
        assert isinstance(loop, Loop)
        return (replace(loop, kind="parallel"),)

    def _where_it_pays(self, node: Node) -> Node:
        return replace(node, stop=self._where_pays(node.stop)) if isinstance(node, Loop) else node

    def _where_pays(self, count: Expr) -> Expr:
        return count if self._pays is None else apply("where", self._pays, count, integer(0))

    def _buffer(self, title: str, shape: tuple[Expr, ...]) -> Buffer:
        made = Buffer(self._names.fresh(f"{title}_{self._plan.tensor.name}"), self._dtype, shape, "temporary", ())
        self._body.setting.extra.append(made)
        return made

    def _local(self, title: str) -> Local:
        return Local(self._names.fresh(title), "int64")

    def _value(self, factor: Expr, values: Values) -> Expr:
        def rule(part: Expr) -> Expr:
            if not isinstance(part, Read):
                return part
            return plain_read(self._body.setting.buffers[part.tensor], map(normalized, part.indices), part.dtype)

        return transform(substitute(factor, dict(values)), rule)

    def _counters(self, spans: Sequence[Side]) -> tuple[list[str], dict[Expr, Expr]]:
        # Variables that count from 0 on, and what the spans' own are then.
        counters = [self._names.fresh(span.variable) for span in spans]
        return counters, {index(span.variable): span.at(index(c)) for span, c in zip(spans, counters, strict=True)}

    def _over(self, counters: Sequence[str], spans: Sequence[Side], nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        return loops_over([(c, integer(0), span.length) for c, span in zip(counters, spans, strict=True)], nodes)

    def _added(self, values: Values, total: Expr) -> Update:
        # A sum of further terms, where cells hold that of the first ones.
        return Update(self._body.place.buffer, self._cell(values), self._plan.statement.accumulate, self._scaled(total))

    def _stored(self, values: Values, total: Expr) -> tuple[Node, ...]:
        # The sum of all terms, or of the first ones, in the cell where variables have the ``values``.
        accumulate = self._plan.statement.accumulate
        if self._held:
            add = self._added(values, total)
            limits = [each for each in self._found.limits if is_of_cells(each, self._found.summed)]
            within = within_limits(limits, values)
            return (add,) if within == truth(True) else (Branch(within, (add,)),)
        total = self._scaled(total)
        *before, start = self._body.start_of(self._cell(values))
        assert isinstance(start, Store)
        if accumulate == "add" and start.value == constant(0, self._dtype):
            return (*before, replace(start, value=total))  # Sums begin with that.
        value = apply(ACCUMULATORS[accumulate].primitive, start.value, total)
        return (*before, replace(start, value=value))

    def _cell(self, values: Values) -> tuple[Expr, ...]:
        return tuple(substitute(axis, dict(values)) for axis in self._found.statement.target.indices)

    def _scaled(self, total: Expr) -> Expr:
        scale = self._found.scale
        return total if scale == constant(1, self._dtype) else apply("mul", total, scale)
