"""A part of the program under construction: what one function records, as a program of its own.

This is how a derivative is taken inside a function that is being staged. The function that is differentiated runs in
the same session, so it may use whatever its surroundings hold, symbolic arrays and sizes included. Its statements make
a recording of their own (`tcdsl.frontend.staging.builder.ProgramBuilder.nested`), and all that they read from around it
is lifted: it becomes inputs of the part's program. The derivative of that program is inlined.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tcdsl.frontend.staging.builder import ProgramBuilder
from tcdsl.frontend.symbols.graph_tensors import GraphTensor
from tcdsl.frontend.symbols.known_integers import number_kind
from tcdsl.frontend.symbols.recordings import Recording
from tcdsl.frontend.symbols.symbols import SymbolicArray, SymbolicNumber, SymbolicSize, SymbolicTensor
from tcdsl.ir.expressions import Read, SizeValue, size_names
from tcdsl.ir.program import AxisExtent, Program, Size, Statement, Tensor, sizes_used, tensors_read
from tcdsl.ir.stages import in_order, needed_by
from tcdsl.rewrite.inlining import append_program
from tcdsl.rewrite.renaming import with_tensors_renamed
from tcdsl.rows.ranks import RowRanks

__all__ = ["Part", "like", "symbolic"]


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


def like(tensor: SymbolicTensor, given: Any) -> Any:
    """``tensor``, which stands for ``given``: a number stays a number, which takes the type of what it meets."""
    if isinstance(given, SymbolicArray | GraphTensor | np.ndarray | np.generic):
        return tensor
    weak = "int" if isinstance(given, SymbolicSize) else getattr(given, "weak_kind", None) or number_kind(given)
    return SymbolicNumber(tensor.builder, Read(tensor.name, (), (), tensor.element_type), weak, frozenset())


class Part:
    """What is recorded in a block.

    ::

        part = Part(builder)
        with part.recording():
            x = part.argument(tensor)       # stands for `tensor`; what does not depend on x is a constant
            ...                             # record statements that read x
        program, names = part.program("f", outputs)
        results = part.put(transformed(program))
    """

    def __init__(self, builder: ProgramBuilder) -> None:
        self._builder = builder
        self._arguments: dict[str, Tensor] = {}
        self.given: dict[str, Tensor] = {}
        #: The rows of the outputs of the program.
        self.output_rows: tuple[RowRanks | None, ...] = ()

    @contextmanager
    def recording(self) -> Iterator[None]:
        """The block whose statements are the part."""
        with self._builder.nested() as self._recording:
            yield
        self._builder.retire(_labels(self._recording.placeholders))

    @property
    def recorded(self) -> Recording:
        """What the block has recorded."""
        return self._recording

    def argument(self, tensor: SymbolicTensor, axes: int = 0) -> SymbolicTensor:
        """A placeholder for ``tensor``, distinct from it, so that one can differentiate by it.

        It stands for one of the tensors along the first ``axes``, whose program is to be made one for all of them.
        """
        made = self._builder.placeholder(tensor.label, tensor.element_type, tensor.extents[axes:])
        if not axes:
            made.rows = tensor.rows
        self._arguments[made.name] = self._builder.tensor(tensor.name)
        return made

    def stands_for(self, placeholder: str, tensor: Tensor) -> None:
        """Say what a placeholder that was made in the block stands for."""
        self._arguments[placeholder] = tensor

    def program(self, name: str, outputs: Sequence[str]) -> tuple[Program, dict[str, str]]:
        """What was recorded, as a program of its own, and the names of its inputs for the placeholders.

        Its other inputs are what it reads, and what defines its sizes; ``given`` maps all of them to what they stand
        for.
        """
        self.output_rows = tuple(map(self._builder.rows, outputs))
        recording = self._recording
        statements, tensors, placeholders = recording.statements, recording.tensors, recording.placeholders
        made = {tensor.name for tensor in tensors}
        placeholding = {tensor.name for tensor in placeholders}
        read = [
            each
            for each in dict.fromkeys((*_names_read(recording), *outputs))
            if each not in made and each not in placeholding
        ]
        inputs = [self._builder.tensor(each) for each in read]
        sizes, carriers = self._sizes(statements, [*tensors, *placeholders, *inputs])
        inputs.extend(tensor for tensor in carriers if tensor.name not in read)
        own = {size.name for size in sizes}
        program = Program(
            name=name,
            inputs=(*inputs, *placeholders),
            sizes=sizes,
            tensors=tuple(tensors),
            statements=tuple(statements),
            outputs=tuple(outputs),
            assertions=tuple(each for each, names in self._builder.sizes_of_assertions.items() if names <= own),
            rules=tuple(recording.rules),
            repeats=tuple(recording.repeats),
        )
        self.given = {tensor.name: self._arguments.get(tensor.name, tensor) for tensor in program.inputs}
        return self._with_plain_names(in_order(program), {*read, *made})

    def put(self, program: Program, more: Mapping[str, Tensor] | None = None) -> list[Tensor]:
        """Inline ``program``, made from the part's; the tensors of its outputs.

        Its inputs are among those of the part's program, or in ``more``.
        """
        given = {**self.given, **(more or {})}
        results = append_program(self._builder, program, [given[tensor.name] for tensor in program.inputs])
        self._builder.retire(_labels(self._recording.tensors))
        return results

    def _with_plain_names(self, program: Program, taken: set[str]) -> tuple[Program, dict[str, str]]:
        # A placeholder for `x` is called x, where nothing else is: derivatives take their names from it.
        names = {name: name for name in self._arguments}
        swaps: dict[str, str] = {}
        for name in self._arguments:
            label = program.tensor(name).label or name
            if label not in taken and label not in swaps and label not in names:
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
        pending.update(name for repeat in self._recording.repeats for end in repeat.ends for name in size_names(end))
        placeholders = {tensor.name for tensor in self._recording.placeholders}
        carriers: dict[str, Tensor] = {}
        conditions = builder.sizes_of_assertions.values()
        while pending:
            found |= pending
            fresh = pending
            pending = {name for names in conditions if names & fresh for name in names}
            for name in fresh:
                source = builder.size(name).source
                if name in self._recording.open_sizes:
                    continue
                if not isinstance(source, AxisExtent):
                    pending |= size_names(source)
                elif source.tensor not in carriers and source.tensor not in placeholders:
                    carrier = carriers[source.tensor] = builder.tensor(source.tensor)
                    pending |= {e.name for e in carrier.shape if isinstance(e, SizeValue)}
            pending -= found
        sizes: list[Size] = []
        for size in builder.sizes(found, self._recording.open_sizes):
            if size.name in self._recording.open_sizes:
                # It may become larger yet: for the part it is the extent of an array.
                carrier = Tensor(builder.fresh_name(f"extent_{size.name}"), "bool", (SizeValue(size.name),))
                carriers[carrier.name] = carrier
                size = Size(size.name, AxisExtent(carrier.name, 0))
            sizes.append(size)
        order = {tensor.name: position for position, tensor in enumerate(builder.inputs)}
        return tuple(sizes), sorted(carriers.values(), key=lambda tensor: order.get(tensor.name, len(order)))


def _labels(tensors: Sequence[Tensor]) -> dict[str, str]:
    return {tensor.name: tensor.label or tensor.name for tensor in tensors}


def _names_read(recording: Recording) -> list[str]:
    found: dict[str, None] = {}
    for statement in recording.statements:
        found.update(dict.fromkeys(sorted(tensors_read(statement))))
    for rule in recording.rules:
        found.update(dict.fromkeys(rule.named))
    for repeat in recording.repeats:
        found.update(dict.fromkeys(sorted(needed_by(repeat))))
    return list(found)
