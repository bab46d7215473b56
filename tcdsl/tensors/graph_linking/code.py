"""Code: what `@cd` functions give for tensors, to be linked into routines.

::

    code = tc.train.grad_update(loss) + sgd(p, learning_rate=0.1)
    step = tc.compile(code)
    step.run()
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcdsl.errors import ConfigurationError
from tcdsl.frontend.names.absent_attributes import missing_attribute
from tcdsl.ir.program import Program
from tcdsl.tensors.graph_linking.late_reads import LateRead
from tcdsl.tensors.graphs.location import fault
from tcdsl.tensors.graphs.settings import Setting
from tcdsl.tensors.graphs.tensor import Tensor, TensorMemory

if TYPE_CHECKING:
    from tcdsl.tensors.graph_linking.graph_linker import Linker

__all__ = ["Assignments", "Code", "GradientUpdate", "Wanted", "sequence"]


@dataclass(frozen=True, slots=True, eq=False)
class Assignments:
    """What one call of a `@cd` function recorded: ``program`` reads ``inputs``, its outputs go to ``outputs``.

    ``late`` are those of the inputs that have to be computed between its statements, in the order of their readers.
    ``labels`` are what users call tensors of a program that was recorded for other memory.
    """

    name: str
    program: Program
    inputs: tuple[TensorMemory | Setting, ...]
    outputs: tuple[TensorMemory, ...]
    late: tuple[LateRead, ...] = ()
    labels: Mapping[str, str] | None = None

    def link(self, linker: Linker) -> None:
        """Append the statements."""
        linker.append(self.program, self.inputs, self.outputs, self.late, self.labels)


@dataclass(frozen=True, slots=True, eq=False)
class GradientUpdate:
    """Compute ``loss`` and its gradients by ``wrt``."""

    loss: Tensor
    wrt: tuple[Tensor, ...]

    @property
    def name(self) -> str:
        """What the routine is called."""
        return f"grad_update_{self.loss.name}"

    def link(self, linker: Linker) -> None:
        """Append forward and backward pass."""
        linker.append_gradient(self.loss, self.wrt)


@dataclass(frozen=True, slots=True, eq=False)
class Wanted:
    """Compute ``tensor`` here, and leave its value in its memory."""

    tensor: Tensor

    @property
    def name(self) -> str:
        """What the routine is called."""
        return self.tensor.name

    def link(self, linker: Linker) -> None:
        """Append what computes it, unless that has been computed."""
        if not self.tensor.is_leaf:
            linker.want(self.tensor.buffer("value"))


class Code:
    """Assignments in sequence, not yet compiled. ``a + b`` is ``a`` followed by ``b``; ``print`` shows the program."""

    def __init__(self, items: Sequence[Assignments | GradientUpdate | Wanted]) -> None:
        self.items = tuple(items)

    def __getattr__(self, name: str) -> Any:
        raise missing_attribute("code", name, self)

    @property
    def name(self) -> str:
        """What a routine of it is called."""
        names = dict.fromkeys(item.name for item in self.items)
        return "_".join(names) or "nothing"

    @property
    def settings(self) -> dict[str, Setting]:
        """The numbers that a run may set, by name."""
        found: dict[str, Setting] = {}
        for item in self.items:
            if isinstance(item, Assignments):
                found.update({each.name: each for each in item.inputs if isinstance(each, Setting)})
        return found

    def program(self) -> Program:
        """The program that it links to."""
        from tcdsl.tensors.graph_linking.graph_linker import linking

        with linking(self.name) as linker:
            self.link(linker)
            return linker.finished().program

    def link(self, linker: Linker) -> None:
        """Append all of it."""
        for item in self.items:
            item.link(linker)

    def __add__(self, other: Any) -> Code:
        return sequence([self, other])

    def __radd__(self, other: Any) -> Code:
        # `sum(codes)` begins with 0.
        return self if isinstance(other, int) and other == 0 else sequence([other, self])

    def __iter__(self) -> Iterator[Code]:
        return (Code((item,)) for item in self.items)

    def __str__(self) -> str:
        from tcdsl.ir.text.printer import format_program

        return format_program(self.program())

    def __repr__(self) -> str:
        return f"<code {self.name}: {len(self.items)} part{'s' * (len(self.items) != 1)}>"


def sequence(parts: Any) -> Code:
    """``parts`` one after the other: code, tensors whose values are wanted, or lists of these, nested as they come."""
    items: list[Assignments | GradientUpdate | Wanted] = []
    pending = [parts]
    while pending:
        part = pending.pop()
        if isinstance(part, Code):
            items.extend(part.items)
        elif isinstance(part, Tensor):
            items.append(Wanted(part))
        elif isinstance(part, list | tuple):
            pending.extend(reversed(part))
        else:
            raise fault(
                ConfigurationError,
                f"a {type(part).__name__} is no code",
                "code is what @cd functions give for tensors, and tc.train.grad_update(loss)",
            )
    return Code(items)
