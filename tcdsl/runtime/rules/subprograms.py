"""A part of the program under construction: what one function records, taken out, and put back as another program.

This is how a derivative is taken inside a function that is being staged. The function that is differentiated runs in
the same session, so it may use whatever its surroundings hold, symbolic arrays and sizes included. What it has recorded
becomes a program of its own, with everything that it reads as inputs; the derivative of that program takes its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tcdsl.frontend.staging.builder import Mark, ProgramBuilder
from tcdsl.frontend.symbols.symbols import SymbolicTensor
from tcdsl.ir.expressions import SizeValue, size_names
from tcdsl.ir.program import AxisExtent, DerivativeRule, Program, Size, Statement, Tensor, tensors_read
from tcdsl.rewrite.inlining import append_program
from tcdsl.rewrite.renaming import with_tensors_renamed
from tcdsl.rewrite.used_sizes import sizes_used
from tcdsl.rows.ranks import RowRanks

__all__ = ["Part", "symbolic"]


def symbolic(
    builder: ProgramBuilder, tensors: Sequence[Tensor], rows: Sequence[RowRanks | None] = ()
) -> list[SymbolicTensor]:
    """Tensors of the program under construction as the values that its functions compute with.

    ``rows`` are those of the first of them, where they have others than output axes.
    """
    values = [SymbolicTensor(builder, each.name, each.dtype, each.shape, each.label) for each in tensors]
    for value, known in zip(values, rows, strict=False):
        if known is not None:
            value.rows = known
    return values


class Part:
    """What is recorded after this object is made.

    ::

        part = Part(builder)
        x = part.argument(tensor)           # stands for `tensor`; what does not depend on x is a constant
        ...                                 # record statements that read x
        program = part.take(outputs)        # they are taken out again
        results = part.put(transformed(program))
    """

    def __init__(self, builder: ProgramBuilder) -> None:
        self._builder = builder
        self._mark = builder.mark()
        self._arguments: dict[str, Tensor] = {}
        self.given: dict[str, Tensor] = {}
        #: The rows of the outputs of the program that was taken out.
        self.output_rows: tuple[RowRanks | None, ...] = ()

    @property
    def mark(self) -> Mark:
        """Where the part begins."""
        return self._mark

    def argument(self, tensor: SymbolicTensor) -> SymbolicTensor:
        """A placeholder for ``tensor``, distinct from it, so that one can differentiate by it."""
        made = self._builder.placeholder(tensor.label, tensor.element_type, tensor.extents)
        made.rows = tensor.rows
        self._arguments[made.name] = self._builder.tensor(tensor.name)
        return made

    def take(self, name: str, outputs: Sequence[str]) -> tuple[Program, dict[str, str]]:
        """What was recorded, as a program of its own, and the names of its inputs for the placeholders.

        Its other inputs are what it reads, and what defines its sizes; ``given`` maps all of them to what they stand
        for.
        """
        placeholders = [self._builder.tensor(each) for each in self._arguments]
        self.output_rows = tuple(map(self._builder.rows, outputs))
        statements, tensors, rules = self._builder.withdraw(self._mark, list(self._arguments))
        self._builder.retire({tensor.name: tensor.label or tensor.name for tensor in placeholders})
        self._labels = {tensor.name: tensor.label or tensor.name for tensor in tensors}
        made = {tensor.name for tensor in tensors}
        read = [name for name in _names_read(statements, rules) if name not in made and name not in self._arguments]
        inputs = [self._builder.tensor(name) for name in read]
        sizes, carriers = self._sizes(statements, [*tensors, *placeholders, *inputs])
        inputs.extend(tensor for tensor in carriers if tensor.name not in read)
        assertions = self._builder.assertions
        program = Program(
            name=name,
            inputs=(*inputs, *placeholders),
            sizes=sizes,
            tensors=tensors,
            statements=statements,
            outputs=tuple(outputs),
            assertions=tuple(each for each in assertions if size_names(each.condition) <= {s.name for s in sizes}),
            rules=rules,
        )
        self.given = {tensor.name: self._arguments.get(tensor.name, tensor) for tensor in program.inputs}
        return self._with_plain_names(program, {*read, *made})

    def put(self, program: Program, more: Mapping[str, Tensor] | None = None) -> list[Tensor]:
        """Put ``program`` in the place of what was taken out; the tensors of its outputs.

        Its inputs are among those of the program that was taken out, or in ``more``.
        """
        given = {**self.given, **(more or {})}
        results = append_program(self._builder, program, [given[tensor.name] for tensor in program.inputs])
        self._builder.retire(self._labels)
        return results

    def _with_plain_names(self, program: Program, taken: set[str]) -> tuple[Program, dict[str, str]]:
        # A placeholder for `x` is called x, where nothing else is: derivatives take their names from it.
        names = {name: name for name in self._arguments}
        swaps: dict[str, str] = {}
        for name in self._arguments:
            label = program.tensor(name).label or name
            if label != name and label not in taken and label not in swaps:
                names[name] = label
                swaps.update({name: label, label: name})
        if swaps:
            program = with_tensors_renamed(program, swaps)
            self.given = {swaps.get(name, name): tensor for name, tensor in self.given.items()}
        return program, names

    def _sizes(
        self, statements: Sequence[Statement], tensors: Sequence[Tensor]
    ) -> tuple[tuple[Size, ...], list[Tensor]]:
        """The sizes that a program of these statements needs, and inputs that define them."""
        builder = self._builder
        found: set[str] = set()
        pending = sizes_used(statements, tensors)
        inputs = {tensor.name: tensor for tensor in builder.inputs}
        carriers: dict[str, Tensor] = {}
        conditions = [size_names(assertion.condition) for assertion in builder.assertions]
        while pending:
            found |= pending
            fresh = pending
            pending = {name for names in conditions if names & fresh for name in names}
            for name in fresh:
                source = builder.size(name).source
                if name in self._mark.open_sizes:
                    continue
                if not isinstance(source, AxisExtent):
                    pending |= size_names(source)
                elif source.tensor not in carriers:
                    carriers[source.tensor] = inputs[source.tensor]
                    pending |= {e.name for e in inputs[source.tensor].shape if isinstance(e, SizeValue)}
            pending -= found
        sizes: list[Size] = []
        for size in builder.sizes(found, self._mark.open_sizes):
            if size.name in self._mark.open_sizes:
                # It may become larger yet: for the part it is the extent of an array.
                carrier = Tensor(builder.fresh_name(f"extent_{size.name}"), "bool", (SizeValue(size.name),))
                carriers[carrier.name] = carrier
                size = Size(size.name, AxisExtent(carrier.name, 0))
            sizes.append(size)
        order = {tensor.name: position for position, tensor in enumerate(builder.inputs)}
        return tuple(sizes), sorted(carriers.values(), key=lambda tensor: order.get(tensor.name, len(order)))


def _names_read(statements: Sequence[Statement], rules: Sequence[DerivativeRule]) -> list[str]:
    found: dict[str, None] = {}
    for statement in statements:
        found.update(dict.fromkeys(sorted(tensors_read(statement))))
    for rule in rules:
        found.update(dict.fromkeys(rule.named))
    return list(found)
