"""The memory of tensors: a value, a gradient, and for each of them the copy that arrives from another device.

A clock counts the changes of memory. A computed value is current as long as none of the memory that it depends on has
changed since it was computed.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from tcdsl.config import settings
from tcdsl.errors import ConfigurationError, DtypeError, ShapeError
from tcdsl.frontend.staging.given_arrays import given_array, require_plain
from tcdsl.targets.registry import target_named
from tcdsl.tensors.graphs.location import asked_attribute, fault, user_location
from tcdsl.tracebacks import user_facing

if TYPE_CHECKING:
    from tcdsl.tensors.graphs.tensor import Tensor

__all__ = ["KINDS", "NodeArray", "TensorMemory", "shown_memory", "tick"]

#: What memory a tensor may have, and what it is called in messages.
KINDS = {
    "value": "value",
    "grad": "gradient",
    "value.merge": "copy from another device",
    "grad.merge": "copy of the gradient from another device",
}

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

    def _shown(self, kind: str) -> NodeArray:
        return self._other(kind).array_of_user()

    def _store(self, kind: str, array: Any) -> None:
        self._other(kind).assign(array)

    def _other(self, kind: str) -> TensorMemory:
        buffer = self._buffer
        if buffer is None or buffer.kind.endswith(".merge"):
            raise AttributeError("only the value and the gradient of a tensor have a copy from another device")
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
        return f"{KINDS[self.kind]} of `{self.owner.name}`"

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
        return f"<{KINDS[self.kind]} of {self.owner.name}>"


def _of(owner: Tensor, kind: str) -> TensorMemory:
    return owner.buffer(kind)
