"""`Tensor`: a node of a lazily computed graph, and its memory.

::

    x = tc.tensor([[1.0, 2.0], [3.0, 4.0]], batch=1)    # 2 | -> 2: two vectors
    w = tc.param("w", o=3, init=0.5)                    # its input axes come from what it is applied to
    y = relu(w @ x)                                     # 2 | -> 3, nothing is computed yet
    y.value                                             # array of shape (2, 3)

A tensor has a label, a shape of three rows, an element type, memory for its value and, if it is differentiable, for its
gradient; one that is not a leaf also has the operation that computes it. Nothing runs until a value is asked for.

A clock counts the changes of memory. A computed value is current as long as none of the memory that it depends on has
changed since it was computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from keyword import iskeyword
from typing import TYPE_CHECKING, Any
from weakref import ReferenceType

import numpy as np

from tcdsl.config import settings
from tcdsl.errors import ConfigurationError, DifferentiationError, DtypeError, MissingAttributeError, ShapeError
from tcdsl.frontend.names.absent_attributes import missing_attribute
from tcdsl.frontend.staging.given_arrays import given_array, require_plain
from tcdsl.frontend.staging.run_time_integers import UnknownShapes
from tcdsl.frontend.staging.session import current_session
from tcdsl.frontend.symbols.known_integers import KnownInteger
from tcdsl.frontend.symbols.symbols import ElementType
from tcdsl.ir.dtypes import is_floating
from tcdsl.rows.inference import Origin, Shape, close
from tcdsl.rows.ranks import RowRanks
from tcdsl.span import Span
from tcdsl.targets.registry import target_named
from tcdsl.tensors.graphs.element_types import FloatingType, type_name
from tcdsl.tensors.graphs.location import asked_attribute, fault
from tcdsl.tensors.graphs.node_operations import ENGINE, Operation, Recorded
from tcdsl.tensors.graphs.readable_tensor import ReadableTensor
from tcdsl.tracebacks import user_facing, user_location

if TYPE_CHECKING:
    from tcdsl.tensors.graphs.initialization import InitialValue

__all__ = ["NodeArray", "Tensor", "TensorMemory", "close_shapes", "is_differentiable", "shown_memory", "tick"]

# -- memory ------------------------------------------------------------------------------------------------------------

#: What memory a tensor may have, and what it is called in messages.
_KINDS = {
    "value": "value",
    "grad": "gradient",
    "value.merge": "copy from another device",
    "grad.merge": "copy of the gradient from another device",
}

# The operations whose results share the cells of their argument, as NumPy's do, where they have one.
_VIEWS = frozenset(("view", "T"))
_LONGEST = 5  # How many labels a name in programs has at most.

# What the house asks of tensors, and users do not.
_INTERNAL = frozenset(
    (
        *("arguments", "bound", "buffer", "builder", "element_type", "evaluation", "floating", "graph", "initial"),
        *("is_leaf", "labelled", "labels", "location", "memory", "operands", "operation", "recorded", "row_ranks"),
        *("sources", "states"),
    )
)

_ticks = count(1)


def tick() -> int:
    """A moment later than all before."""
    return next(_ticks)


def shown_memory(kind: str, doc: str) -> Any:
    """A property of tensors that is memory of theirs: what is assigned to it is stored."""

    @user_facing
    def shown(owner: Any) -> Any:
        return owner._shown(kind)

    @user_facing
    def stored(owner: Any, given: Any) -> None:
        owner._store(kind, given)

    return property(shown, stored, doc=doc)


class NodeArray(np.ndarray):
    """An array that is a tensor's memory: what ``t.value`` and ``t.grad`` give. Arithmetic on it gives plain arrays.

    It cannot be written to through this object, so that computed values never go stale unnoticed: assign
    ``t.value = array`` instead. ``t.grad.merge = array`` hands over what another device has sent.
    """

    _buffer: TensorMemory | None = None

    def __repr__(self) -> str:
        return repr(self.view(np.ndarray))

    @property
    def ranks(self) -> tuple[int, int, int] | None:
        """How many batch, output and input axes the tensor has, unless this is only made of what that holds."""
        if self._buffer is None:
            return None
        ranks = self._buffer.owner.row_ranks
        return ranks.batch, ranks.output, ranks.input

    def __dlpack__(self, *, copy: bool | None = None, **options: Any) -> Any:
        # Receivers such as PyTorch write to what is read-only, so others get a copy, unless they refuse one.
        array = self.view(np.ndarray)
        return (array if copy is False else array.copy()).__dlpack__(**options)

    merge = shown_memory("merge", "What arrived from another device.")

    def __getattr__(self, name: str) -> Any:
        raise missing_attribute("the memory of a tensor", name, self)

    def _shown(self, kind: str) -> NodeArray:
        return self._other(kind).array_of_user()

    def _store(self, kind: str, array: Any) -> None:
        self._other(kind).assign(array)

    def _other(self, kind: str) -> TensorMemory:
        buffer = self._buffer
        if buffer is None or buffer.kind.endswith(".merge"):
            fact = "only the value and the gradient of a tensor have a copy from another device"
            raise fault(MissingAttributeError, fact, "write `p.value.merge` or `p.grad.merge` of a tensor `p`")
        return buffer.owner.buffer(f"{buffer.kind}.{kind}")


class TensorMemory:
    """One piece of a tensor's memory. ``clock`` is when it was last written, 0 for never."""

    __slots__ = ("__weakref__", "array", "clock", "kind", "owner")

    def __init__(self, owner: Tensor, kind: str) -> None:
        self.owner = owner
        self.kind = kind
        self.array: np.ndarray | None = None
        self.clock = 0

    @property
    def label(self) -> str:
        """What the memory is called in programs."""
        name = self.owner.name
        return name if self.kind == "value" else f"{name}_{self.kind.replace('.', '_')}"

    @property
    def described(self) -> str:
        """What the memory is called in messages."""
        return f"{_KINDS[self.kind]} of `{self.owner.name}`"

    def drawn(self) -> None:
        """Take another first value: a key of random numbers."""
        initial = self.owner.initial
        assert initial is not None
        self.allocated()[...] = initial.array((), 0, self.owner.element_type)
        self.clock = tick()

    def allocated(self, initial: Callable[[], np.ndarray] | None = None) -> np.ndarray:
        """The array, made if there is none: with ``initial`` values, else zeros."""
        if self.array is None:
            target = target_named(settings().target)
            array = target.allocate(self.owner.sizes, self.owner.element_type)
            if initial is not None:
                array[...] = initial()
            self.array = array
        return self.array

    def assign(self, given: Any) -> None:
        """Copy ``given`` into the memory; `ShapeError` and `DtypeError` unless it fits."""
        shape, context = self.owner.sizes, f"{self.described}: "
        if type(given) is int and np.dtype(self.owner.element_type).kind in "iu":
            array = self._weak(given)
        elif isinstance(given, np.ndarray):
            # Arrays of NumPy may be of any type that can be stored.
            require_plain(given, "array", context, user_location())
            array = np.asarray(given)
        else:
            found = None if isinstance(given, np.generic) else given_array(given, "array", context, user_location())
            array = np.asarray(given) if found is None else found
        if array.shape != shape and array.ndim:
            raise fault(
                ShapeError,
                f"{self.described}: an array of shape {list(array.shape)} for {list(shape)}",
                "a tensor keeps its shape; make a new one with tc.tensor(...)",
                notes=(f"`{self.owner.name}` is {self.owner.rows}",),
            )
        weak = isinstance(given, int) and np.dtype(self.owner.element_type).kind != "b"
        if not weak and not np.can_cast(array.dtype, self.owner.element_type, "same_kind"):
            raise fault(
                DtypeError,
                f"{self.described}: {array.dtype} cannot be stored as {self.owner.element_type}",
                f"convert it: `.astype({self.owner.element_type!r})`",
            )
        self.allocated()[...] = array
        self.clock = tick()

    def _weak(self, number: int) -> np.ndarray:
        # An integer of Python's has the type of what it is stored in.
        try:
            return np.asarray(number, self.owner.element_type)
        except OverflowError:
            fact = f"{self.described}: {number} does not fit in {self.owner.element_type}"
            raise fault(DtypeError, fact) from None

    def array_of_user(self) -> NodeArray:
        """A view for the user, read-only. `ConfigurationError` if nothing has been written."""
        if self.clock == 0 or self.array is None:
            if self.kind.endswith(".merge") or asked_attribute() != "merge":
                raise self.unwritten()
            # What arrives from another device may be there before.
            view = np.empty(0).view(NodeArray)
            view._buffer = self
            return view
        view = self.array.view(NodeArray)
        view.flags.writeable = False
        view._buffer = self
        return view

    def unwritten(self) -> Exception:
        """The error of reading what nothing has written."""
        name = self.owner.name
        if self.kind == "grad":
            fact = f"no gradient of `{name}` has been computed"
            hint = f"run `tc.compile(tc.train.grad_update(loss))` first, with a loss that depends on `{name}`"
        elif self.kind == "value":
            fact, hint = f"`{name}` is read before it has a value", f"assign one first: `{name}.value = array`"
        else:
            source = self.kind.partition(".")[0]
            fact = f"nothing has arrived for `{name}.{self.kind}`"
            hint = f"hand over what another device has sent: `{name}.{source}.merge = array`"
        return fault(ConfigurationError, fact, hint)

    def __reduce__(self) -> tuple[Any, ...]:
        return _of, (self.owner, self.kind)

    def __repr__(self) -> str:
        return f"<{_KINDS[self.kind]} of {self.owner.name}>"


# -- tensors -----------------------------------------------------------------------------------------------------------


class Tensor(ReadableTensor):
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
        # Results of a hundred equal layers have a hundred equal labels each.
        labels = self.labels if len(self.labels) <= _LONGEST else (*self.labels[: _LONGEST - 1], self.labels[-1])
        text = "_".join(labels) if labels else "t"
        made = "".join(letter if letter.isalnum() else "_" for letter in text).strip("_")
        return made if made.isidentifier() and not iskeyword(made) else f"t_{made}".strip("_")

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes in the order batch, output, input. Closes the shape; `ShapeError` if nothing determines an axis."""
        close_shapes([self])
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
        if not isinstance(kind, str) or kind not in _KINDS:
            raise fault(ConfigurationError, f"{kind!r} as a kind of memory", f"write one of {', '.join(_KINDS)}")
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

    def __repr__(self) -> str:
        kind = "param" if self.parameter else "tensor"
        dtype = "" if self._element_type is None else f" {self._element_type}"
        operation = "" if self.operation is None else f" = {self.operation.name}"
        memory = self._buffers.get("value")
        if memory is not None and memory.clock and memory.array is not None and memory.array.size == 1:
            operation += f" = {memory.array.item():.6g}"
        return f"<{kind} {self.label}: {self.rows}{dtype}{operation}>"

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if name not in _INTERNAL]

    def _repr_html_(self) -> str:
        from tcdsl.tensors.graphs.tensor_displays import axes_of, graph_of

        return f"{axes_of(self)._repr_html_()}{graph_of(self)}"

    def __rich__(self) -> Any:
        from tcdsl.tensors.graphs.tensor_displays import axes_of

        return axes_of(self).__rich__()

    def astype(self, dtype: Any) -> Any:
        """The tensor converted to ``dtype``."""
        return self.builder.algebra.cast(self, type_name(dtype))


def close_shapes(tensors: Sequence[Tensor]) -> None:
    """The shapes are asked. Where an op is staged as a whole, it says first what it says about those not known yet."""
    unknown = [each.rows for each in tensors if not each.rows.is_known]
    if not unknown:
        return
    session = current_session()
    if session is not None and session.context.graph is not None and session.context.graph.whole:
        raise UnknownShapes
    close(unknown, Origin(user_location(), operands=tuple(each.label for each in tensors)))


def is_differentiable(element_type: str | None, operands: Sequence[Tensor]) -> bool:
    """Whether a tensor of that type, computed from ``operands``, has a gradient."""
    return (element_type is None or is_floating(element_type)) and any(each.differentiable for each in operands)


def _of(owner: Tensor, kind: str) -> TensorMemory:
    return owner.buffer(kind)
