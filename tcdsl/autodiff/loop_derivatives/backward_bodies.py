"""The body of a loop backwards, and the loop forwards that leaves behind what it reads."""

from __future__ import annotations

from dataclasses import replace

from tcdsl.autodiff.loop_derivatives.compact_updates import writes_few_cells
from tcdsl.autodiff.loop_derivatives.fewer_tapes import reads_no_more, with_next_state, with_own_values
from tcdsl.autodiff.loop_derivatives.gathered_reads import with_gathered_reads
from tcdsl.autodiff.loop_derivatives.held_cells import cells_needed, still_held, versions
from tcdsl.autodiff.loop_derivatives.reversed_rounds import (
    backwards,
    extents_around,
    in_body,
    largest_extent,
    number_of,
)
from tcdsl.autodiff.loop_derivatives.round_derivatives import RoundDerivative
from tcdsl.autodiff.loop_derivatives.tapes import RestoredState, changes_of_cells, taped_tensor
from tcdsl.autodiff.statement_derivatives.derivative import Derivative
from tcdsl.ir.build import apply, integer
from tcdsl.ir.expressions import Expr, SizeValue, size_names, substitute
from tcdsl.ir.fresh_names import names_of
from tcdsl.ir.program import Assertion, AxisExtent, Program, Repeat, Size, Tensor
from tcdsl.ir.sizes.known_sizes import never_negative, never_negative_in
from tcdsl.ir.stages import at_most_one, tensors_needed
from tcdsl.rewrite.needed_inputs import with_needed_inputs
from tcdsl.rewrite.replaced_sizes import with_size_replaced
from tcdsl.rewrite.round_numbers import empty_statement, with_own_counter

__all__ = ["BackwardBody"]


class BackwardBody:
    """The ``body`` of the loop backwards, the tensors ``given`` to its inputs by name, seeds apart, and the ``loop``.

    ``work`` is the program around; it gets the tensors that tapes are at first. ``every`` says that all rounds run.
    """

    #: What the loop backwards carries beside derivatives.
    more: tuple[str, ...] = ()

    def __init__(self, work: Derivative, repeat: Repeat, adjoint: RoundDerivative, every: bool) -> None:
        self._work = work
        self._repeat = repeat
        self._values, self._linear = adjoint.values, adjoint.linear
        body = repeat.body
        self._updates = dict(body.updates)
        self._made = dict(zip(dict.fromkeys(self._updates.values()), self._values.outputs, strict=False))
        self._outer = dict(zip((each.name for each in body.inputs[1:]), repeat.inputs, strict=True))
        self._results = dict(zip(self._updates, repeat.results, strict=True))
        self._number = number_of(body)
        self._around = extents_around(body, {name: work.extents(outer) for name, outer in self._outer.items()})
        self._names = names_of(self._values)
        self._names.take(tensor.name for tensor in (*self._linear.inputs, *self._linear.tensors))
        self._names.take(name for each in self._linear.statements for name in each.domain.variables)
        self._rounds = self._names.free("rounds")
        self._inside = self._count_inside()
        if isinstance(self._inside, SizeValue) and self._count_around() == repeat.count:
            # The body knows the number under another name.
            self._rounds = self._inside.name
        self._names.take([self._rounds])
        #: Tensors that the loop carries besides: in the body, what they become, at first, and after the last round.
        self._tapes: list[tuple[Tensor, str, str, str]] = []
        self.given: dict[str, str] = {}
        #: Inputs of the loop backwards that it changes back, and what they are then.
        self._restored: dict[str, str] = {}
        self._every = every
        counter = body.inputs[0]
        self._seeds = adjoint.seeds.values()
        others = {counter.name, *self._seeds}
        for tensor in self._linear.inputs:
            if tensor.name not in others and self._is_to_be_kept(tensor.name):
                self._gather(tensor)
        if not at_most_one(repeat):
            self._share_tapes(every)
        for tensor in self._linear.inputs:
            if tensor.name not in others and tensor.name not in self.given:
                self._provide(tensor)
        self.count = repeat.count
        self.loop = self._forward_loop()
        self.body = self._backward_body(counter, adjoint)

    def _provide(self, tensor: Tensor) -> None:
        name = tensor.name
        carried = name in self._updates
        if name in self._outer and (not carried or not _is_read(self._linear, name)):
            # Of what is not read only the shape matters, which no round changes.
            self.given[name] = self._outer[name]
        elif at_most_one(self._repeat):
            self.given[name] = self._outer[name] if carried else self._kept(tensor)
        else:
            held = self._held_by(name)
            if held is not None:
                self.given[name] = self._results[held]
            elif not (carried and self._restore(tensor)):
                self._tape(tensor)

    def _share_tapes(self, every: bool) -> None:
        unchanged = self._outer.keys() - self._updates.keys()
        kept = {each.name for each in self._linear.inputs if self._is_to_be_kept(each.name)}
        needed = (*self._made.values(), *self._repeat.body.outputs)
        self._values, linear = with_own_values(self._values, self._linear, needed, unchanged, kept)
        if linear is not self._linear:
            self._linear = self._with_extents(replace(linear, sizes=self._sizes()))
        for name, new in self._updates.items() if every else ():
            inputs = {each.name: each for each in self._linear.inputs}
            before, after = inputs.get(name), inputs.get(self._made[new])
            if before is None or after is None or after.name in self._outer or before.shape != after.shape:
                continue
            if not all(map(self._is_to_be_kept, (name, after.name))) or any(taped_tensor(self._linear, before).places):
                continue
            if reads_no_more(self._linear, self._linear, after.name, name):
                assert self._number is not None
                last = replace(before, name=self._names.fresh(f"{name}_last"))
                tape = self._tape(before)
                self._linear = with_next_state(self._linear, after, tape, last, SizeValue(self._number), self._names)
                self.given[last.name] = self._results[name]

    def _is_to_be_kept(self, name: str) -> bool:
        if not _is_read(self._linear, name):
            return False
        if at_most_one(self._repeat):
            return name not in self._outer
        return (name not in self._outer or name in self._updates) and self._held_by(name) is None

    def _gather(self, tensor: Tensor) -> None:
        if not tensor.shape:
            return  # It is one cell.
        few = self._is_written_in_few_cells(tensor.name)
        once = at_most_one(self._repeat)
        found = with_gathered_reads(self._values, self._linear, tensor, self._names.fresh, self._updates, few, once)
        if found is None:
            return
        self._values, linear = found
        read = tensors_needed(linear, linear.outputs) | {*self._seeds, self._repeat.body.inputs[0].name}
        inputs = tuple(each for each in linear.inputs if each.name in read)
        self._linear = self._with_extents(replace(linear, inputs=inputs, sizes=self._sizes()))

    def _is_written_in_few_cells(self, name: str) -> bool:
        for carried, new in self._updates.items():
            found = versions(self._values, carried, self._made[new])
            if name in found:
                return all(writes_few_cells(each, self._values, self._updates) for each in found[carried])
        return False

    def _held_by(self, name: str) -> str | None:
        # The carried tensor whose last version still holds the cells of `name` that each round reads.
        cells = cells_needed(self._linear, name)
        for carried, new in self._updates.items():
            found = versions(self._values, carried, self._made[new])
            if self._number is not None and name in found:
                changes, every = found[name], found[carried]
                if still_held(self._values, cells, changes, every, self._number):
                    return carried
        return None

    # The number of rounds.

    def _count_inside(self) -> Expr:
        """The number of rounds in the sizes of the body; they may have to be given by ``rounds``."""
        sizes = {size.name for size in self._linear.sizes}
        around = {inner: outer for inner, outer in self._around.items() if size_names(inner) <= sizes}
        found = in_body(self._repeat.count, around)
        return SizeValue(self._rounds) if found is None else found

    def _count_around(self) -> Expr:
        # As an extent.
        count = self._repeat.count
        if never_negative(count, never_negative_in(self._work.program)):
            return count
        return apply("max", count, integer(0))

    # Tapes.

    def _kept(self, tensor: Tensor) -> str:
        # There is one round at most, of number 0.
        shape = tuple(largest_extent(each, self._values, self._number, integer(1)) for each in tensor.shape)
        inner = Tensor(self._names.fresh(f"{tensor.name}_kept"), tensor.dtype, shape)
        return self._carry(inner, tensor.name, shape)

    def _tape(self, tensor: Tensor) -> Tensor:
        assert self._number is not None
        number, rounds = SizeValue(self._number), SizeValue(self._rounds)
        taped = taped_tensor(self._linear, tensor)
        shape = (rounds, *map(self._largest, taped.shape))
        tape = Tensor(self._names.fresh(f"{tensor.name}_tape"), tensor.dtype, shape)
        new = self._names.fresh(tape.name)
        store = taped.store(self._values, tape.name, new, number)
        self._values = replace(
            self._values,
            tensors=(*self._values.tensors, replace(tape, name=new)),
            statements=(*self._values.statements, store),
        )
        linear = taped.read_by(self._linear, tape.name, number)
        sizes = self._sizes_with_rounds(AxisExtent(tape.name, 0))
        self._linear = self._with_extents(replace(linear, inputs=(tape, *linear.inputs), sizes=sizes))
        self.given[tape.name] = self._carry(tape, new, shape)
        return tape

    def _restore(self, tensor: Tensor) -> bool:
        """Have the loop backwards take back what each round has changed; False if that takes no less than a tape."""
        changes = changes_of_cells(self._values, tensor.name, self._made[self._updates[tensor.name]])
        if not (self._every and self._number is not None and changes and taped_tensor(self._linear, tensor).shape):
            return False
        rounds = SizeValue(self._rounds)
        made = RestoredState.of(
            self._values, self._linear, tensor, changes, (SizeValue(self._number), rounds), self._names.fresh
        )
        self._values = made.values
        self._linear = self._with_extents(
            replace(made.linear, sizes=self._sizes_with_rounds(AxisExtent(made.tapes[0].name, 0)))
        )
        for tape, stored in zip(made.tapes, made.stored, strict=True):
            self.given[tape.name] = self._carry(tape, stored, (rounds,))
        last = self._work.tensor(self._results[tensor.name])
        self.given[made.after.name] = last.name
        self._restored[made.after.name] = tensor.name
        self.more += (self._work.declare(made.after.name, last.dtype, last.shape),)
        return True

    def _sizes_with_rounds(self, source: AxisExtent) -> tuple[Size, ...]:
        sizes = self._sizes()
        known = any(size.name == self._rounds for size in sizes)
        return sizes if known else (Size(self._rounds, source), *sizes)

    def _sizes(self) -> tuple[Size, ...]:
        # What computes values once more may have loops inside, with sizes of their own.
        known = {size.name for size in self._values.sizes}
        return (*self._values.sizes, *(size for size in self._linear.sizes if size.name not in known))

    def _with_extents(self, linear: Program) -> Program:
        # A tensor that is no input any more may have been the one whose extents the sizes were.
        present = {each.name for each in linear.inputs}
        others = (each for each in self._values.inputs if each.name not in present)
        linear = with_needed_inputs(replace(linear, inputs=(*linear.inputs, *others)), [*present])
        for each in linear.inputs:
            if each.name not in present and each.name in self._outer:
                self.given[each.name] = self._outer[each.name]
        return linear

    def _largest(self, extent: Expr) -> Expr:
        return largest_extent(extent, self._values, self._number, SizeValue(self._rounds))

    def _carry(self, tape: Tensor, new: str, shape: tuple[Expr, ...]) -> str:
        """Have the loop carry ``tape``, which becomes ``new``; the tensor that it is after the last round."""
        around = {**self._around, SizeValue(self._rounds): self._count_around()}
        for size in self._values.sizes:
            if not isinstance(size.source, AxisExtent) and all(
                SizeValue(name) in around for name in size_names(size.source)
            ):
                around[SizeValue(size.name)] = self._work.opaque_size(substitute(size.source, around))
        outer = tuple(substitute(extent, around) for extent in shape)
        first = _nothing(self._work, tape.name, tape.dtype, outer)
        last = self._work.declare(tape.name, tape.dtype, outer)
        self._tapes.append((tape, new, first, last))
        return last

    # The loops.

    def _forward_loop(self) -> Repeat:
        repeat, values = self._repeat, self._values
        inner = [tape for tape, _, _, _ in self._tapes]
        body = replace(
            values,
            name=repeat.body.name,
            inputs=(*values.inputs, *inner),
            outputs=repeat.body.outputs,
            updates=(
                *((name, self._made[new]) for name, new in self._updates.items()),
                *((tape.name, new) for tape, new, _, _ in self._tapes),
            ),
        )
        return replace(
            repeat,
            results=(*repeat.results, *(last for _, _, _, last in self._tapes)),
            body=self._knowing_rounds(body, inner),
            inputs=(*repeat.inputs, *(first for _, _, first, _ in self._tapes)),
        )

    def _backward_body(self, counter: Tensor, adjoint: RoundDerivative) -> Program:
        linear = with_own_counter(self._linear, counter, self._names.fresh)
        taped = [tape for tape, _, _, _ in self._tapes if tape.name in self.given]
        if self._number is not None and not at_most_one(self._repeat) and _mentions(linear, self._number):
            if not taped and SizeValue(self._rounds) == self._inside:
                # Nothing else tells the body how many rounds there are.
                carrier = Tensor(self._names.fresh("carrier"), "bool", (SizeValue(self._rounds), integer(0)))
                taped.append(carrier)
                linear = replace(linear, inputs=(carrier, *linear.inputs))
                outer = (self._count_around(), integer(0))
                self.given[carrier.name] = _nothing(self._work, carrier.name, "bool", outer)
            reversed_ = backwards(self._inside, SizeValue(self._number))
            linear = with_size_replaced(linear, self._number, reversed_)
        sizes = linear.sizes
        if self._number is not None and all(size.name != self._number for size in sizes):
            sizes = (Size(self._number, AxisExtent(counter.name, 0)), *sizes)
        others = tuple(each for each in linear.inputs if each.name != counter.name)
        body = replace(
            linear,
            name=f"{self._repeat.body.name}_adjoint",
            inputs=(counter, *others),
            sizes=sizes,
            outputs=(),
            updates=(
                *((seed, adjoint.results[name]) for name, seed in adjoint.seeds.items()),
                *self._restored.items(),
            ),
        )
        return self._knowing_rounds(body, taped)

    def _knowing_rounds(self, body: Program, tapes: list[Tensor]) -> Program:
        """``body`` with the number of rounds as a size: the first extent of its tapes."""
        first = next((tape for tape in tapes if tape.shape[:1] == (SizeValue(self._rounds),)), None)
        if first is None or self._number is None:
            return body
        below = Assertion(apply("lt", SizeValue(self._number), SizeValue(self._rounds)))
        assertions = list(body.assertions)
        if below not in assertions:
            assertions.append(below)
        sizes = body.sizes
        if all(size.name != self._rounds for size in sizes):
            sizes = (Size(self._rounds, AxisExtent(first.name, 0)), *sizes)
        if SizeValue(self._rounds) != self._inside and all(
            name in {size.name for size in body.sizes} for name in size_names(self._inside)
        ):
            # It is asked for the whole loop, also if that has no rounds.
            every = apply("max", self._inside, integer(0))
            inside = self._inside if never_negative(self._inside, never_negative_in(body)) else every
            assertions.append(Assertion(apply("eq", SizeValue(self._rounds), inside)))
        # What is made of the number of the round is now made of the number of rounds, which comes first.
        ordered = sorted(sizes, key=lambda each: not isinstance(each.source, AxisExtent))
        return replace(body, sizes=tuple(ordered), assertions=tuple(assertions))


def _is_read(program: Program, name: str) -> bool:
    return name in tensors_needed(program, program.outputs)


def _mentions(program: Program, size: str) -> bool:
    replaced = with_size_replaced(program, size, integer(0))
    return replaced != program


def _nothing(work: Derivative, hint: str, dtype: str, shape: tuple[Expr, ...]) -> str:
    """A tensor whose cells nobody reads before they are written."""
    name = work.declare(hint, dtype, shape)
    work.append(empty_statement(name, dtype, work.cell_variables(len(shape))))
    return name
