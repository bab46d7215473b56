"""What tensors ask of the files that are built on them: operators, values, shapes that staging finds, pickling.

A tensor offers all of this, and all of this is written in terms of tensors. So the files that do it stand above
`Tensor`, which asks for them here; `tcdsl.tensors` says where they are when it is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tcdsl.rows.inference import Shape
    from tcdsl.span import Span
    from tcdsl.tensors.graphs.node_operations import Operation, Recorded

__all__ = ["ENGINE"]


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
