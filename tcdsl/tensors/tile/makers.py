"""`Tensor`, `TensorOutput` and `index`: what belongs to a program under construction, or else to a graph."""

from __future__ import annotations

from functools import partial
from typing import Any

from tcdsl.frontend.staging.session import current_session
from tcdsl.frontend.symbols.graph_tensors import GraphTensor
from tcdsl.frontend.symbols.symbols import SymbolicArray
from tcdsl.frontend.tile.functions import axis_of, checked_dims, record_index
from tcdsl.frontend.tile.outputs import StagedOutput, sizes_of_output
from tcdsl.tensors.graphs.graph_operators import apply_operation
from tcdsl.tensors.graphs.literals import tensor
from tcdsl.tensors.graphs.node_operations import Operation
from tcdsl.tensors.tile.graph_outputs import GraphOutput
from tcdsl.tracebacks import user_facing

__all__ = ["Tensor", "TensorOutput", "index"]


class _Tensors(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, SymbolicArray | GraphTensor)


class Tensor(metaclass=_Tensors):
    """``Tensor(array)``: a tensor outside of decorated functions. ``np.asarray(tensor)`` computes its value.

    It is a `tcdsl.Tensor`, as `tcdsl.tensor` makes them; ``grad=True`` gives it a gradient. What functions compute with
    it are tensors too, which are computed when they are asked for.
    """

    def __new__(cls, value: Any, name: str = "", grad: bool = False) -> Any:
        """A tensor that holds ``value``, an array, a number or nested lists."""
        return tensor(value, label=name, grad=grad)


@user_facing
def TensorOutput(*sizes: Any, lens: Any = None) -> Any:  # noqa: N802  # Tile's name
    """``O = TensorOutput(N, M // 2)``: a tensor that the next statement on it writes; ``TensorOutput()`` has rank 0.

    Cells that the statement does not write are 0. With a `TensorLens` sizes and indices are written in its target's
    order.
    """
    known = sizes_of_output(sizes)
    if lens is not None:
        known = lens.stored(known)
    session = current_session()
    return GraphOutput(known, lens) if session is None else StagedOutput(session, known, lens)


@user_facing
def index(dims: Any, axis: Any = 0) -> Any:
    """``index((N, M), 1)``: a tensor of integers of these sizes that holds the positions along ``axis``."""
    sizes = checked_dims(dims)
    record = partial(record_index, sizes, axis_of(axis, len(sizes), "index"))
    session = current_session()
    return apply_operation(Operation("index", record), []) if session is None else record(session, ())
