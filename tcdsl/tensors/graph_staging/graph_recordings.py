"""Graphs in programs: what a session records when tensors take part in it.

`InputRecording` makes an input of the program of every piece of memory that is touched;
`tcdsl.tensors.graph_linking.graph_linker` records what computes it instead. Inputs have constant extents: a graph's
tensors keep their sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from tcdsl.errors import DslSyntaxError, ShapeError
from tcdsl.frontend.arrays.array_stores import store_elementwise
from tcdsl.frontend.staging.given_arrays import labels_of
from tcdsl.frontend.staging.run_time_integers import ShapesFound
from tcdsl.frontend.staging.session import Session
from tcdsl.frontend.staging.target_states import Existing, TargetState
from tcdsl.frontend.surroundings.draws import KEY_TYPE
from tcdsl.frontend.symbolic_operators import WholeArrays
from tcdsl.frontend.symbols.graph_tensors import GraphTensor
from tcdsl.frontend.symbols.operators import Algebra
from tcdsl.frontend.symbols.symbols import SymbolicArray, SymbolicTensor
from tcdsl.ir.expressions import Constant, Expr
from tcdsl.rows.inference import Origin, Shape, equate, known, pointwise, scalar
from tcdsl.rows.inference.variables.row import Row
from tcdsl.rows.logic import COMPOSE, TRANSPOSE
from tcdsl.rows.ranks import RowRanks
from tcdsl.span import Span
from tcdsl.tensors.graphs.element_types import FloatingType
from tcdsl.tensors.graphs.graph_operators import shape_rule
from tcdsl.tensors.graphs.initialization import Drawn, Given
from tcdsl.tensors.graphs.location import fault
from tcdsl.tensors.graphs.node_operations import ENGINE
from tcdsl.tensors.graphs.tensor import Tensor, TensorMemory, close_shapes, shown_memory
from tcdsl.tracebacks import user_location

__all__ = ["InputRecording", "StagedTensor", "ancestors", "known_shape", "recording_session"]


def ancestors(tensors: Sequence[Tensor], known: Callable[[Tensor], bool] = lambda _: False) -> list[Tensor]:
    """``tensors`` and all that they are computed from, operands first. What is ``known`` ends the search."""
    done: dict[int, Tensor] = {}
    pending: list[tuple[Tensor, bool]] = [(each, False) for each in reversed(tensors)]
    while pending:
        tensor, expanded = pending.pop()
        if id(tensor) in done or known(tensor):
            continue
        if expanded:
            done[id(tensor)] = tensor
        else:
            if tensor.recorded is None and tensor.operation is not None and tensor.operation.call is not None:
                ENGINE.settled(tensor)  # what a call reads is known when it has been made
            pending.append((tensor, True))
            pending.extend((each, False) for each in reversed(tensor.operands))
    return list(done.values())


class InputRecording:
    """Every piece of memory that the session touches is an input of its program.

    ``memory`` says that statements may store into it, as in `@cd`.
    """

    def __init__(self, session: Session, memory: bool = False) -> None:
        self.session = session
        self.memory = memory
        self.whole = False
        #: The tensors of unknown shape, where code runs for what it says of them.
        self.sought: list[Tensor] = []
        self.buffers: dict[TensorMemory, StagedTensor] = {}
        #: The leaves for arrays of the surroundings, by the array's id, and the arrays.
        self._held: dict[int, tuple[Any, Tensor]] = {}
        #: The names of their inputs.
        self.names: dict[TensorMemory, str] = {}
        #: What has been stored into memory, in order: tensors of the program, or of a round of its loops.
        self.versions: dict[TensorMemory, list[str]] = {}
        #: The floating type of the tensors that take part, which those without a type take.
        self.floating: FloatingType | None = None
        self._key: Tensor | None = None

    def lift(self, tensor: GraphTensor, label: str) -> StagedTensor:
        """The input for the value of ``tensor``."""
        assert isinstance(tensor, Tensor)
        self.meet([tensor])
        return self.lift_buffer(tensor.buffer("value"))

    def relate(self, logic: str, operands: Sequence[object], target: TargetState) -> None:
        """Find the shapes of parameters among ``operands`` by what ``logic`` says of them, and by their ``target``."""
        unknown = [each for each in operands if isinstance(each, Tensor) and not each.rows.is_known]
        if not unknown:
            return
        shapes = [self._shape(each) for each in operands]
        rule = shape_rule(logic, shapes)
        if rule is not None and len(operands) == {COMPOSE: 2, TRANSPOSE: 1}.get(logic, len(operands)):
            related = [rule(shapes, Origin(user_location(), tuple(getattr(each, "label", "") for each in operands)))]
            if target.extents is not None:
                # It may be larger than what is stored into it, which stretches or leaves cells as they are.
                rows = target.tensor.rows if isinstance(target, Existing) else RowRanks(output=len(target.extents))
                with suppress(ShapeError, KeyError):
                    there = _known(target.extents, rows, self.session)
                    related.append(pointwise([*related, there], Origin(user_location())))
        close_shapes(unknown)
        self._look()

    def axis_sizes(self, tensor: GraphTensor, rank: int) -> Sequence[int | None]:
        """The sizes of ``tensor`` as far as they are known, where a statement says that it has so many axes."""
        sizes: list[int | None] = []
        for row, count in zip(_stored(tensor), _counts(tensor, rank), strict=False):
            sizes += [axis.root.size for axis in row.axes] if row.closed else [None] * count
        return sizes

    def axes_are(self, tensor: GraphTensor, sizes: Sequence[int | None]) -> None:
        """Find sizes of ``tensor`` by those that a statement in index notation says of its axes."""
        assert isinstance(tensor, Tensor)
        counts = _counts(tensor, len(sizes))
        if not counts:
            return  # it has other axes, which the statement is told
        batch, output = counts[0], counts[0] + counts[1]
        said = known(sizes[batch:output], sizes[output:], sizes[:batch])
        equate(tensor.rows, said, Origin(user_location(), (tensor.name, "what index variables say of it")))
        self._look()

    def _look(self) -> None:
        if self.sought and all(each.rows.is_known for each in self.sought):
            raise ShapesFound

    def _shape(self, operand: object) -> Shape:
        if isinstance(operand, Tensor):
            return operand.rows
        return known_shape(operand, self.session) if isinstance(operand, SymbolicArray) else scalar()

    def hold(self, value: Any, array: np.ndarray, label: str) -> SymbolicTensor:
        """An array of the surroundings, as it is now: a leaf of the graph, which code does not write."""
        if id(value) not in self._held:
            initial = Given(array.copy(), labels_of(value))
            leaf = Tensor((label,), known(array.shape, name=label), str(array.dtype), initial=initial)
            self._held[id(value)] = value, leaf
        _, leaf = self._held[id(value)]
        held = self.lift(leaf, label)
        held.memory = False
        return held

    def key(self) -> SymbolicTensor:
        """The key of random numbers: a leaf, which every run of a routine draws anew."""
        if self._key is None:
            self._key = Tensor(("key",), known((), name="key"), KEY_TYPE, initial=Drawn())
        return self.lift(self._key, "key")

    def meet(self, tensors: Sequence[Tensor]) -> None:
        """These tensors take part."""
        self.floating = FloatingType.meeting([self.floating, *(each.floating for each in tensors)])

    def lift_buffer(self, buffer: TensorMemory) -> StagedTensor:
        """The input for a piece of memory."""
        found = self.buffers.get(buffer)
        # What a function that was differentiated has recorded is known in its own recording alone.
        if found is None:
            found = self.buffers[buffer] = self._made(buffer)
        return found

    def _made(self, buffer: TensorMemory) -> StagedTensor:
        owner = buffer.owner
        sizes = owner.sizes
        made = self.session.builder.fixed_input(buffer.label, owner.element_type, sizes)
        self.names[buffer] = made.name
        return StagedTensor(self, buffer, made.name, self.memory and not buffer.kind.endswith(".merge"))


@contextmanager
def recording_session(
    name: str,
    algebra: Algebra | None = None,
    memory: bool = False,
    location: Callable[[], Span | None] = user_location,
) -> Iterator[tuple[Session, InputRecording]]:
    """A staging run in which tensors of graphs become inputs. ``algebra`` says what operators do, if not NumPy's.

    ``location`` is where the user is, outside of decorated functions.
    """
    session = Session(name, WholeArrays() if algebra is None else algebra)
    recording = InputRecording(session, memory)
    with session.active(), session.within(graph=recording, outer_location=location):
        yield session, recording


def _stored(tensor: GraphTensor) -> tuple[Row, Row, Row]:
    rows: Shape = tensor.rows
    return rows.batch, rows.output, rows.input


def _counts(tensor: GraphTensor, rank: int) -> Sequence[int]:
    # How many axes the rows have, in the order of storage, if there are so many in all; none if there are not.
    counts = [len(row.axes) if row.closed else None for row in _stored(tensor)]
    if counts[1] is None and counts[2] is None:
        counts[2] = 0  # an array, as far as a statement can say
    left = rank - sum(count for count in counts if count is not None)
    found = [left if count is None else count for count in counts]
    return found if sum(found) == rank and min(found) >= 0 else ()


def known_shape(array: SymbolicArray, session: Session) -> Shape:
    """The shape of a staged array, whose extents are numbers for this call."""
    return _known(array.extents, array.rows, session)


def _known(extents: Sequence[Expr], ranks: RowRanks, session: Session) -> Shape:
    sizes = [int(extent.value) if isinstance(extent, Constant) else session.evaluate(extent) for extent in extents]
    output, inputs = ranks.batch, ranks.batch + ranks.output
    return known(sizes[output:inputs], sizes[inputs:], sizes[:output])


class StagedTensor(SymbolicTensor):
    """``p`` inside ``@cd def sgd(p, ...)``: ``p`` and ``p.value`` are its value, ``p.grad`` its gradient.

    In `@cd` these are memory: ``p.grad = 0.0`` stores. The copies that arrive from other devices, ``p.merge`` and
    ``p.grad.merge``, can only be read.
    """

    __slots__ = ("_recording", "buffer")

    def __init__(self, recording: InputRecording, buffer: TensorMemory, name: str, memory: bool) -> None:
        declared = recording.session.builder.tensor(name)
        super().__init__(recording.session.builder, name, declared.dtype, declared.shape, buffer.label, memory)
        self.rows = buffer.owner.row_ranks
        self._recording = recording
        self.buffer = buffer

    def _shown(self, kind: str) -> StagedTensor:
        if kind == "value":
            return self
        return self._recording.lift_buffer(self.buffer.owner.buffer(self._named(kind)))

    def _named(self, kind: str) -> str:
        # Of a gradient the copy is one of the gradient.
        return f"{self.buffer.kind}.merge" if kind == "merge" else kind

    def become(self, version: SymbolicTensor) -> SymbolicTensor:
        """Store: from here on this memory holds the cells of ``version``."""
        self._recording.versions.setdefault(self.buffer, []).append(version.name)
        return super().become(version)

    def _store(self, kind: str, given: Any) -> None:
        memory = self._shown(kind)
        if given is memory:
            return
        if not memory.memory:
            hint = "only code changes memory: use @cd"
            if kind == "merge":
                hint = "a copy that arrives from another device can only be read"
            raise fault(
                DslSyntaxError, f"`{self.buffer.owner.name}.{self._named(kind)}` cannot be stored into here", hint
            )
        memory.become(store_elementwise(memory.held(), "assign", given))

    value = shown_memory("value", "The value itself.")
    grad = shown_memory("grad", "The gradient.")
    merge = shown_memory("merge", "The copy of this memory that arrives from another device.")
