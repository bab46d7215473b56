"""What computes a node of a graph: how it is staged, what it says about shapes, and what staging it has recorded.

What tensors ask of the files that are built on them (operators, values, shapes that staging finds, pickling) they ask
of `ENGINE`. A tensor offers all of this, and all of this is written in terms of tensors. So the files that do it stand
above `Tensor`; `tcdsl.tensors` says where they are when it is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # What runs from disk alone loads none of these.
    from tcdsl.frontend.staging.session import Session
    from tcdsl.ir.expressions import Expr
    from tcdsl.ir.program import Program
    from tcdsl.rows.inference import Origin, Shape
    from tcdsl.span import Span

__all__ = ["ENGINE", "Operation", "Recorded"]


@dataclass(frozen=True, slots=True, eq=False)
class Recorded:
    """What staging has recorded for a node: a program of which it is the ``output``, with the memory of its inputs.

    Nodes that statements of one op compute share the program, which is put once where they are needed. ``takes_name``
    says that the output is called as the node is called by then. ``brackets`` are those of the product that the node
    is, in terms of the inputs. ``is_provisional`` says that it is right in type alone: the result may turn out larger.
    """

    program: Program
    inputs: tuple[Any, ...]
    output: str
    takes_name: bool = False
    brackets: tuple[Expr, ...] = ()
    is_provisional: bool = False

    @property
    def element_type(self) -> str:
        """The element type of the output."""
        return self.program.tensor(self.output).dtype


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """``stage`` records the operation in a session, on staged operands and numbers, and gives the staged result.

    ``constrain`` relates the shapes of the operands to that of the result, which it returns. An operation without it
    needs operands of known shape; its result's shape is found by staging it. What an op's statements compute is
    recorded already, and has no ``stage``; where the op waits for shapes, ``call`` has it recorded for all its results.
    """

    name: str
    stage: Callable[[Session, Sequence[Any]], Any] | None
    constrain: Callable[[Sequence[Shape], Origin], Shape] | None = None
    #: As ``stage``, for a result of these sizes: where the operands do not say how large it is, inference does.
    stage_sized: Callable[[Session, Sequence[Any], Sequence[int]], Any] | None = None
    call: Callable[[], None] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        # Shapes are known where it is pickled, so that what it says about them has been said.
        return Operation, (self.name, self.stage)


class _Engine:
    #: What operators and functions of the language do on tensors.
    operators: Callable[[], Any]
    #: Brings the values of tensors up to date.
    evaluate: Callable[[Sequence[Any]], None]
    #: The shape of an operation's result, and what computes it.
    staged: Callable[[Operation, Sequence[Any], Span | None], tuple[Shape, Recorded]]
    #: What was recorded when the operation of a tensor was staged.
    settled: Callable[[Any], Recorded]
    #: What ``tensor.__reduce__()`` gives, and what ``tensor.__setstate__(state)`` does.
    reduced: Callable[[Any], tuple[Any, ...]]
    restore_memory: Callable[[Any, tuple[Any, ...]], None]


ENGINE = _Engine()
