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
from tcdsl.tensors.graphs.location import fault, user_location

if TYPE_CHECKING:
    from tcdsl.tensors.graphs.tensor import Tensor

__all__ = ["KINDS", "NodeArray", "TensorMemory", "tick"]

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


class NodeArray(np.ndarray):
    """An array that is a tensor's memory: what ``t.value`` and ``t.grad`` give. Arithmetic on it gives plain arrays.

    It cannot be written to through this object, so that computed values never go stale unnoticed: assign
    ``t.value = array`` instead. ``t.grad.merge = array`` hands over what another device has sent.
    """

    _buffer: TensorMemory | None = None

    def __repr__(self) -> str:
        return repr(self.view(np.ndarray))

    def __dlpack__(self, *, copy: bool | None = None, **options: Any) -> Any:
        # Receivers such as PyTorch write to what is read-only, so others get a copy, unless they refuse one.
        array = self.view(np.ndarray)
        return (array if copy is False else array.copy()).__dlpack__(**options)

    @property
    def merge(self) -> NodeArray:
        """What arrived from another device."""
        return self._merge_buffer().array_of_user()

    @merge.setter
    def merge(self, array: Any) -> None:
        self._merge_buffer().assign(array)

    def _merge_buffer(self) -> TensorMemory:
        buffer = self._buffer
        if buffer is None or buffer.kind.endswith(".merge"):
            raise AttributeError("only the value and the gradient of a tensor have a copy from another device")
        return buffer.owner.buffer(f"{buffer.kind}.merge")


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
        array = self._read(given)
        if type(given) is int and np.dtype(self.owner.element_type).kind in "iu":
            array = self._weak(given)
        shape = self.owner.sizes
        if array.shape != shape and array.ndim:
            raise fault(
                ShapeError,
                f"{KINDS[self.kind]} of `{self.owner.name}`: an array of shape {list(array.shape)} for {list(shape)}",
                "a tensor keeps its shape; make a new one with tc.tensor(...)",
                notes=(f"`{self.owner.name}` is {self.owner.rows}",),
            )
        weak = isinstance(given, int) and np.dtype(self.owner.element_type).kind != "b"
        if not weak and not np.can_cast(array.dtype, self.owner.element_type, "same_kind"):
            raise fault(
                DtypeError,
                f"{KINDS[self.kind]} of `{self.owner.name}`: {array.dtype} cannot be stored as "
                f"{self.owner.element_type}",
                f"convert it: `.astype({self.owner.element_type!r})`",
            )
        self.allocated()[...] = array
        self.clock = tick()

    def _read(self, given: Any) -> np.ndarray:
        # Arrays of NumPy may be of any type that can be stored.
        found = None
        if isinstance(given, np.ndarray):
            require_plain(given, "array", f"{KINDS[self.kind]} of `{self.owner.name}`: ", user_location())
        elif not isinstance(given, np.generic):
            found = given_array(given, "array", f"{KINDS[self.kind]} of `{self.owner.name}`: ", user_location())
        return np.asarray(given) if found is None else found

    def _weak(self, number: int) -> np.ndarray:
        # An integer of Python's has the type of what it is stored in.
        try:
            return np.asarray(number, self.owner.element_type)
        except OverflowError:
            raise fault(
                DtypeError,
                f"{KINDS[self.kind]} of `{self.owner.name}`: {number} does not fit in {self.owner.element_type}",
            ) from None

    def array_of_user(self) -> NodeArray:
        """A view for the user, read-only. `ConfigurationError` if nothing has been written."""
        if self.clock == 0 or self.array is None:
            raise self.unwritten()
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
