"""What the frontend knows of lazily computed tensors: their part in arithmetic, and how they get into a program.

`tcdsl.tensors` builds the graphs. A `GraphTensor` outside of a decorated function makes a new node when an operator is
applied to it. Inside one it becomes an input of the program that is being staged: the session's `GraphRecording` says
which.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from tcdsl.frontend.symbols.operators import Algebra
from tcdsl.frontend.symbols.symbols import ArrayMethods, SymbolicArray, SymbolicNumber, SymbolicSize
from tcdsl.span import Span

__all__ = ["GraphRecording", "GraphShapes", "GraphTensor", "KeptTensors", "PendingState", "algebra_of"]


class GraphTensor(ArrayMethods):
    """A tensor whose value is computed when it is asked for. ``builder.algebra`` makes new nodes of its graph."""

    __slots__ = ()

    #: The shape as three rows, which inference may still be finding out.
    rows: Any

    @property
    def base(self) -> Any:
        """What this is a view of, if it is one."""
        return None

    def bound(self, name: str) -> None:
        """An assignment in a decorated function has bound the tensor to ``name``."""


class PendingState(int):
    """Stands for state whose shape is not known yet: a number that any index of it gives."""

    def __getitem__(self, key: object) -> int:
        return 1


class KeptTensors(Protocol):
    """The tensors that code keeps from run to run: names that a `@cd` function reads before it writes them."""

    def inner(
        self, function: Any, positional: Sequence[tuple[str, Any]], configuration: Mapping[str, Any]
    ) -> KeptTensors:
        """The state of another function that the code calls."""

    def known(self, name: str) -> Any:
        """The tensor of the program for ``name``, if it is known to be state."""

    def begun(self, name: str, init: Any) -> Any:
        """The same for a name that is state, if it is read before it is written, and starts from ``init``."""

    def label(self, name: str) -> str:
        """What a tensor that code declares is called in programs."""

    def read(self, name: str) -> PendingState:
        """``name`` is read before anything is written to it, so it is state."""

    def created(self, name: str, value: Any) -> None:
        """``name`` is written for the first time."""

    def waits(self, name: str, value: Any) -> bool:
        """Whether nothing is stored for ``name`` yet, because a later statement tells its shape."""

    def indexed(self, memory: object) -> None:
        """A statement with an index list is about to store into ``memory``."""

    def stored(self, memory: object, value: Any) -> None:
        """``value`` is about to be stored into all of ``memory``."""


class GraphRecording(Protocol):
    """How the tensors of graphs get into the program that a session records."""

    #: Whether an op is staged as a whole: before shapes are closed it is to say what it says about them.
    whole: bool

    def lift(self, tensor: GraphTensor, label: str) -> Any:
        """The tensor of the program that stands for ``tensor``."""

    def relate(self, logic: str, operands: Sequence[object], target: Any) -> None:
        """A statement is about to say, by ``logic``, what the shapes of ``operands`` have to do with one another."""

    def axis_sizes(self, tensor: GraphTensor, rank: int) -> Sequence[int | None]:
        """The sizes of ``tensor`` as far as they are known, where a statement says that it has so many axes."""

    def axes_are(self, tensor: GraphTensor, sizes: Sequence[int | None]) -> None:
        """A statement says of ``tensor``, of which not all sizes are known, how long its axes are, or of some."""

    def hold(self, value: Any, array: Any, label: str) -> Any:
        """The tensor of the program for an array of the surroundings, ``value``, whose cells are in ``array``."""

    def key(self) -> Any:
        """The tensor of the program for a key of random numbers."""


class GraphShapes(Protocol):
    """What a function says about the shapes of tensors of graphs, where it is staged for that alone."""

    def meets(self, tensor: GraphTensor) -> None:
        """The shape of ``tensor`` is to be known in the end."""

    def same(self, before: Any, after: Any, label: str, span: Span | None) -> bool:
        """What is called ``label`` has one shape before a round, or an arm of a branch, and ``after`` it.

        False if it is no tensor of a graph, so that staging compares shapes.
        """

    def truth(self) -> Any:
        """Stands for the truth value of a tensor: nobody asks which."""


def algebra_of(operands: Iterable[object]) -> Algebra | None:
    """What arithmetic on these operands does: recorded where one belongs to the program under construction."""
    found: Algebra | None = None
    for operand in operands:
        if isinstance(operand, SymbolicArray | SymbolicNumber | SymbolicSize):
            return operand.builder.algebra
        if isinstance(operand, GraphTensor):
            found = operand.builder.algebra
    return found
