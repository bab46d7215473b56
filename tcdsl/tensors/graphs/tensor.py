"""`Tensor`: a node of a lazily computed graph.

::

    x = tc.tensor([[1.0, 2.0], [3.0, 4.0]], batch=1)    # 2 | -> 2: two vectors
    w = tc.param("w", o=3, init=0.5)                    # its input axes come from what it is applied to
    y = relu(w @ x)                                     # 2 | -> 3, nothing is computed yet
    y.value                                             # array of shape (2, 3)

A tensor has a label, a shape of three rows, an element type, memory for its value and, if it is differentiable, for its
gradient; one that is not a leaf also has the operation that computes it. Nothing runs until a value is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from keyword import iskeyword
from typing import TYPE_CHECKING, Any
from weakref import ReferenceType

import numpy as np

from tcdsl.errors import ConfigurationError, DifferentiationError, DslSyntaxError, DtypeError
from tcdsl.frontend.staging.session import current_session
from tcdsl.frontend.symbols.graph_tensors import GraphTensor
from tcdsl.frontend.symbols.known_integers import KnownInteger
from tcdsl.frontend.symbols.symbols import ElementType
from tcdsl.ir.dtypes import is_floating
from tcdsl.rows.inference import Origin, Shape, close
from tcdsl.rows.ranks import RowRanks
from tcdsl.span import Span
from tcdsl.targets.protocol.memory_spaces import HOST
from tcdsl.tensors.graphs.absent_attributes import missing_attribute
from tcdsl.tensors.graphs.element_types import FloatingType, type_name
from tcdsl.tensors.graphs.location import fault, user_location
from tcdsl.tensors.graphs.node_operations import ENGINE, Operation, Recorded
from tcdsl.tensors.graphs.tensor_memory import KINDS, NodeArray, TensorMemory, shown_memory
from tcdsl.tracebacks import user_facing

if TYPE_CHECKING:
    from tcdsl.tensors.graphs.initialization import InitialValue

__all__ = ["Tensor"]

# The operations whose results share the cells of their argument, as NumPy's do, where they have one.
_VIEWS = frozenset(("view", "T"))


class Tensor(GraphTensor):
    """A node of a graph. Make leaves with `tensor`, `param` and `number`; operators and ops make the others.

    ``t.shape`` are its sizes in the order batch, output, input; ``t.rows`` is the shape as three rows. ``t.value`` and
    ``t.grad`` are arrays, computed when they are asked for; assigning to ``t.value`` changes the memory.
    """

    __slots__ = (
        "__weakref__",
        "_buffers",
        "_element_type",
        "_floating",
        "arguments",
        "differentiable",
        "evaluation",
        "graph",
        "initial",
        "labelled",
        "labels",
        "location",
        "operation",
        "parameter",
        "recorded",
        "rows",
        "sources",
        "states",
    )

    #: The shape as three rows, which inference may still be finding out.
    rows: Shape

    def __init__(
        self,
        labels: Sequence[str],
        rows: Shape,
        element_type: str | None,
        operation: Operation | None = None,
        arguments: Sequence[Any] = (),
        *,
        differentiable: bool = False,
        parameter: bool = False,
        initial: InitialValue | None = None,
        floating: FloatingType | None = None,
        location: Span | None = None,
        recorded: Recorded | None = None,
    ) -> None:
        self.labels = tuple(labels)
        #: Whether an op has given it its label.
        self.labelled = operation is None
        self.rows = rows
        self._element_type = element_type
        self._floating = FloatingType.of(element_type) if floating is None else floating
        #: What computes this tensor, from ``arguments``; a leaf has none.
        self.operation = operation
        self.arguments = tuple(arguments)
        #: Where the user made it, for faults of its operation that show when it is staged.
        self.location = location
        #: What staging has recorded for it, once it has been staged.
        self.recorded = recorded
        self.differentiable = differentiable
        self.parameter = parameter
        self.initial = initial
        self._buffers: dict[str, TensorMemory] = {}
        #: The memory that its value depends on, once that has been asked.
        self.sources: tuple[TensorMemory, ...] | None = None
        #: The tensors that code keeps for this one from run to run, such as momenta, by what they belong to.
        self.states: dict[Any, dict[str, Tensor]] = {}
        #: What computes the value, once it has been asked for.
        self.evaluation: Any = None
        #: What it is part of while it is pickled.
        self.graph: ReferenceType[Any] | None = None

    # -- what it is ----------------------------------------------------------------------------------------------

    @property
    def builder(self) -> Any:  # type: ignore[override]
        """What its operators do."""
        return ENGINE.operators()

    @property
    def operands(self) -> tuple[Tensor, ...]:
        """The tensors that it is computed from."""
        return tuple(argument for argument in self.arguments if isinstance(argument, Tensor))

    @property
    def base(self) -> Any:
        """What this is a view of, if it is one."""
        views = self.operation is not None and self.operation.name in _VIEWS and len(self.arguments) == 1
        return self.arguments[0] if views else None

    @property
    def is_leaf(self) -> bool:
        """Whether it holds data: a parameter, an input, a literal."""
        return self.operation is None

    @property
    def label(self) -> str:
        """The label in full, from the outermost name to the innermost."""
        return ".".join(self.labels)

    @property
    def name(self) -> str:
        """A name for it in programs."""
        text = "_".join(self.labels) if self.labels else "t"
        made = "".join(letter if letter.isalnum() else "_" for letter in text).strip("_")
        return made if made.isidentifier() and not iskeyword(made) else f"t_{made}".strip("_")

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes in the order batch, output, input. Closes the shape; `ShapeError` if nothing determines an axis."""
        if not self.rows.is_known:
            close([self.rows], Origin(user_location(), operands=(self.label,)))
        return self.rows.sizes

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes in the order batch, output, input."""
        return self.sizes if current_session() is None else tuple(map(KnownInteger, self.sizes))

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.sizes)

    rank = ndim

    @property
    def row_ranks(self) -> RowRanks:
        """The numbers of batch, output and input axes. Closes the shape."""
        self.sizes  # noqa: B018  # closes the shape
        rows = self.rows
        return RowRanks(len(rows.batch.sizes), len(rows.output.sizes), len(rows.input.sizes))

    @property
    def element_type(self) -> str:
        """The element type by name; parameters without one take that of the data that they meet."""
        if self._element_type is None:
            if self.operation is None:
                assert self._floating is not None
                self._element_type = self._floating.settled()
            else:
                self._element_type = ENGINE.settled(self).element_type
        return self._element_type

    @property
    def floating(self) -> FloatingType | None:
        """The floating type of its cells or of those that it is computed from, which may still be open."""
        return self._floating

    @property
    def dtype(self) -> ElementType:
        """The element type, comparable with NumPy's."""
        return ElementType(self.element_type)

    @property
    def size(self) -> int:
        """The number of cells."""
        return int(np.prod(self.sizes, dtype=np.int64))

    def bound(self, name: str) -> None:
        """An assignment in a decorated function names what it has computed."""
        if not self.labelled and self.operation is not None and self.labels == (self.operation.name,):
            self.labels = (name,)

    # -- memory --------------------------------------------------------------------------------------------------

    def buffer(self, kind: str) -> TensorMemory:
        """The memory of that kind: ``value``, ``grad``, ``value.merge``, ``grad.merge``."""
        if not isinstance(kind, str) or kind not in KINDS:
            raise fault(ConfigurationError, f"{kind!r} as a kind of memory", f"write one of {', '.join(KINDS)}")
        if kind.startswith("grad") and not self.differentiable:
            raise fault(
                DifferentiationError,
                f"`{self.label}` has no gradient: nothing that it is computed from is differentiable",
                "gradients belong to parameters and what is computed from them; tc.tensor(x, grad=True) makes a "
                "leaf with one",
            )
        if kind not in self._buffers:
            self._buffers[kind] = TensorMemory(self, kind)
        return self._buffers[kind]

    def _shown(self, kind: str) -> Any:
        # Inside a decorated function memory is part of the program that is being staged.
        session = current_session()
        if session is not None and session.context.graph is not None:
            return session.context.graph.lift_buffer(self.buffer(kind))  # type: ignore[attr-defined]
        if kind == "value":
            ENGINE.evaluate([self])
        return self.buffer(kind).array_of_user()

    def _store(self, kind: str, array: Any) -> None:
        if kind == "value" and not self.is_leaf:
            raise fault(
                DifferentiationError,
                f"`{self.label}` is computed, so its value cannot be assigned",
                "assign to the tensors that it is computed from, or make a leaf with tc.tensor(...)",
            )
        self.buffer(kind).assign(array)

    value = shown_memory("value", "The value, computed now if it is not current; a read-only view of the memory.")
    grad = shown_memory("grad", "The gradient that the last backward pass left; a read-only view of the memory.")
    merge = shown_memory(
        "value.merge",
        "The copy of the value that arrived from another device; ``t.merge = array`` hands it over.",
    )

    @property
    def memory(self) -> Mapping[str, TensorMemory]:
        """The memory that has been asked for, by kind."""
        return self._buffers

    def __reduce__(self) -> tuple[Any, ...]:
        return ENGINE.reduced(self)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        ENGINE.restore_memory(self, state)

    def __copy__(self) -> Tensor:
        return self  # a node of the same graph, with the same memory

    def item(self) -> Any:
        """The value of a tensor of one cell as a Python number."""
        cells = self._cells()
        if cells.size != 1:
            fact = f"`{self.label}` has {cells.size} cells, and Python asks for one number"
            raise fault(DslSyntaxError, fact, "reduce it, `t.sum()` or `t.all()`, choose a cell, or take `t.value`")
        return cells.item()

    def tolist(self) -> Any:
        """The value as a Python number, or as nested lists of these."""
        return self._cells().tolist()

    @user_facing
    def __format__(self, spec: str) -> str:
        if spec and self.size != 1:
            fact = f"`{self.label}` has {self.size} cells, and {spec!r} is the format of a number"
            raise fault(DslSyntaxError, fact, "format its cells one by one, or show `t.value`")
        return format(self.item(), spec) if spec else repr(self)

    def __round__(self, digits: Any = None) -> Any:
        return round(self.item(), digits)

    def __floor__(self) -> int:
        number: int = math.floor(self.item())
        return number

    def __ceil__(self) -> int:
        number: int = math.ceil(self.item())
        return number

    def __trunc__(self) -> int:
        number: int = math.trunc(self.item())
        return number

    def __complex__(self) -> complex:
        return complex(self.item())

    def __index__(self) -> int:
        number = self.item()
        if isinstance(number, float):
            raise fault(DtypeError, f"`{self.label}` holds {number!r}, which is no integer", "convert it: `int(t)`")
        return int(number)

    def __getattr__(self, name: str) -> Any:
        raise missing_attribute("a tensor", name, self)

    def _cells(self) -> NodeArray:
        array: NodeArray = self.value
        session = current_session()
        if session is not None and session.context.graph is not None:
            raise session.fault(
                DslSyntaxError,
                f"the value of `{self.label}` is not known while a function is staged",
                "use it in tensor arithmetic as it is, `where(c, a, b)` instead of a branch; sizes and choices are "
                "configuration",
            )
        return array

    @user_facing
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        # A copy, unless the caller refuses one: then the memory, read-only.
        array = np.asarray(self.value) if copy is False else np.array(self.value, dtype=dtype)
        if dtype is not None and array.dtype != dtype:
            raise ValueError(f"the cells of `{self.label}` are {array.dtype}: as {np.dtype(dtype)} they are a copy")
        return array.view(np.ndarray)

    def __dlpack__(self, **options: Any) -> Any:
        # A staged value says that its cells are not known.
        return self.value.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return HOST.device

    def __repr__(self) -> str:
        kind = "param" if self.parameter else "tensor"
        dtype = "" if self._element_type is None else f" {self._element_type}"
        operation = "" if self.operation is None else f" = {self.operation.name}"
        memory = self._buffers.get("value")
        if memory is not None and memory.clock and memory.array is not None and memory.array.size == 1:
            operation += f" = {memory.array.item():.6g}"
        return f"<{kind} {self.label}: {self.rows}{dtype}{operation}>"

    def astype(self, dtype: Any) -> Any:
        """The tensor converted to ``dtype``."""
        return self.builder.algebra.cast(self, type_name(dtype))


def is_differentiable(element_type: str | None, operands: Sequence[Tensor]) -> bool:
    """Whether a tensor of that type, computed from ``operands``, has a gradient."""
    return (element_type is None or is_floating(element_type)) and any(each.differentiable for each in operands)
