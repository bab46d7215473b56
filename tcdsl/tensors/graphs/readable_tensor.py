"""What Python and NumPy ask of a tensor: numbers, texts, arrays, and what other libraries' tensors have."""

from __future__ import annotations

import math
import sys
from types import FrameType
from typing import Any

import numpy as np

from tcdsl.errors import DslSyntaxError, DtypeError, ShapeError
from tcdsl.frontend.names.absent_attributes import missing_attribute
from tcdsl.frontend.staging.run_time_integers import RunsOnTensors
from tcdsl.frontend.staging.session import current_session
from tcdsl.frontend.symbols.graph_tensors import GraphTensor
from tcdsl.frontend.symbols.symbols import METHODS
from tcdsl.span import Span
from tcdsl.targets.protocol.target import HOST
from tcdsl.tensors.graphs.location import fault
from tcdsl.tracebacks import user_facing

__all__ = ["ReadableTensor"]


class ReadableTensor(GraphTensor):
    """A tensor as Python reads it: ``float(t)``, ``f"{t:.3f}"``, ``np.asarray(t)``. All ask for its ``value``."""

    __slots__ = ()

    #: The value as an array; what stands for it while a function is staged.
    value: Any

    @property
    def label(self) -> str:
        """What it is called in messages."""
        raise NotImplementedError

    @property
    def size(self) -> int:
        """The number of cells."""
        raise NotImplementedError

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

    def _cells(self) -> np.ndarray:
        array: np.ndarray = self.value
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
        if current_session() is None:
            _require_equal_shapes(self)
        array = np.asarray(self.value) if copy is False else np.array(self.value, dtype=dtype)
        if dtype is not None and array.dtype != dtype:
            raise ValueError(f"the cells of `{self.label}` are {array.dtype}: as {np.dtype(dtype)} they are a copy")
        return array.view(np.ndarray)

    def __dlpack__(self, **options: Any) -> Any:
        # A staged value says that its cells are not known.
        return self.value.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return HOST.device

    def __getattr__(self, name: str) -> Any:
        session = current_session()
        if name in METHODS and session is not None and session.may_be_whole:
            raise RunsOnTensors  # as arrays of the program they have NumPy's methods
        raise missing_attribute("a tensor", name, self)


def _require_equal_shapes(tensor: ReadableTensor) -> None:
    # `np.sum(tensors)` of a plain list asks each tensor for its cells, and has no words for those of unequal shapes.
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("tcdsl."):
        frame = frame.f_back
    called, given = "", [tensor]
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("numpy."):
        called = frame.f_code.co_name
        lists = [each for each in frame.f_locals.values() if type(each) in (list, tuple)]
        given = next((each for each in lists if any(item is tensor for item in each)), given)
        frame = frame.f_back
    held = [each for each in given if isinstance(each, ReadableTensor)]
    if frame is not None and len({each.value.shape for each in held}) > 1:
        name = f"np.{called}" if hasattr(np, called) else f"np.linalg.{called}"
        raise ShapeError.at(
            f"`{name}` takes a list for an array, and the tensors in this one have different shapes",
            Span.executed(frame, frame.f_lasti),
            f"write `{name}(np.concatenate([t.value.ravel() for t in tensors]))`, or combine what it gives for each",
            notes=tuple(f"{each.label} has the shape {each.value.shape}" for each in held),
        )
