"""Tangents and cotangents as users give them: checked against what they belong to, and brought to its type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tcdsl.errors import DtypeError, ShapeError
from tcdsl.frontend.arrays.arithmetic import element_of, record_elementwise
from tcdsl.frontend.staging.faults import valued
from tcdsl.frontend.staging.session import Session
from tcdsl.frontend.symbols.symbols import PendingArray, SymbolicArray, SymbolicNumber, SymbolicSize, SymbolicTensor
from tcdsl.ir.build import cast
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Expr
from tcdsl.ir.program import Tensor
from tcdsl.runtime.calling.arguments import tensor_argument
from tcdsl.runtime.calling.structure import Structure
from tcdsl.span import Span

__all__ = ["Direction", "matched"]


@dataclass(frozen=True, slots=True)
class Direction:
    """What a tangent or a cotangent (``kind``) must be: ``owner`` is what it belongs to, as in ``the output ['y']``.

    ``function`` is what it is given to.
    """

    kind: str
    owner: str
    dtype: str
    function: str = ""

    @staticmethod
    def tangent(derivative: str, function: str, position: int, dtype: str) -> Direction:
        """The tangent of an argument of ``function``."""
        return Direction("tangent", f"argument {position} of {function}()", dtype, f"tc.{derivative}")

    @staticmethod
    def cotangent(function: str, place: str, dtype: str) -> Direction:
        """The cotangent of the output of ``function`` at ``place``."""
        return Direction("cotangent", f"the output {place}".rstrip(), dtype, f"the pullback of {function}")

    def array(self, value: Any, shape: Sequence[int]) -> np.ndarray:
        """The array that ``value`` is, for an owner of this shape; `ShapeError` or `DtypeError` if it does not fit."""
        if value is None:
            raise self.missing()
        array = tensor_argument(self.function, f"{self.kind} of {self.owner}", 0, value).array
        if array.shape != tuple(shape):
            raise self._wrong_shape(list(array.shape), list(shape))
        self._check_type(str(array.dtype))
        return np.asarray(array, self.dtype)

    def tensor(self, session: Session, value: Any, extents: Sequence[Expr]) -> Tensor:
        """The tensor that ``value`` is in the function being staged; extents that are not known must agree."""
        if value is None:
            raise self.missing()
        if isinstance(value, PendingArray):
            value = value.materialize(self.kind)
        elif not _is_symbolic(value) and not isinstance(value, bool | int | float):
            value = session.capture(
                tensor_argument(self.function, f"{self.kind} of {self.owner}", 0, value).array, self.kind
            )
        element, own = element_of(value, session)
        if len(own) != len(extents):
            raise self._wrong_shape(_extents_text(own), _extents_text(extents), session.location())
        for axis, (left, right) in enumerate(zip(own, extents, strict=True)):
            found, wanted = valued(left), valued(right)
            message = f"{self._a_kind} has another shape than {self.owner}: axis {axis} has {found}, not {wanted}"
            message += f"\n{self._a_kind} has the shape of {self.owner}"
            session.builder.require_equal(left, right, message, session.location())
        if element.weak is None:
            self._check_type(element.logical, session.location())
        if not isinstance(value, SymbolicTensor) or value.dtype != self.dtype:
            converted = element.with_expr(cast(element.expr, compute_dtype(self.dtype)))
            converted = type(element)(converted.expr, None, self.dtype)
            value = record_elementwise(session, converted, tuple(own), self.kind)
        return session.builder.tensor(value.name)

    def nothing(self, value: Any) -> None:
        """Check what is given for an integer or bool owner: nothing, zeros, or JAX's ``float0`` arrays."""
        if value is None or isinstance(value, SymbolicArray | SymbolicNumber):
            zero = value is None
        else:
            if isinstance(value, np.ndarray) and value.dtype.kind == "V":
                return
            zero = not tensor_argument(self.function, f"{self.kind} of {self.owner}", 0, value).array.any()
        if not zero:
            raise DtypeError.at(
                f"{self.owner} is {self.dtype}: integer and bool tensors have no {self.kind}",
                hint=f"pass None, or zeros, as its {self.kind}",
            )

    def missing(self) -> Exception:
        """The error for ``None`` where a direction is needed."""
        return DtypeError.at(
            f"{self._a_kind} is None, but {self.owner} is {self.dtype}",
            hint="pass an array of its shape; zeros leave it out",
        )

    @property
    def _a_kind(self) -> str:
        return f"an {self.kind}" if self.kind[0] in "aeiou" else f"a {self.kind}"

    def _wrong_shape(self, found: object, wanted: object, place: Span | None = None) -> Exception:
        return ShapeError.at(
            f"{self._a_kind} has shape {found}, but {self.owner} has shape {wanted}",
            place,
            f"{self._a_kind} has the shape of {self.owner}",
        )

    def _check_type(self, dtype: str, place: Span | None = None) -> None:
        if not np.can_cast(dtype, self.dtype, "same_kind"):
            raise DtypeError.at(
                f"{self._a_kind} is {dtype}, but {self.owner} is {self.dtype}",
                place,
                f"convert it: `.astype('{self.dtype}')`",
            )


def _is_symbolic(value: object) -> bool:
    """Whether ``value`` belongs to a function that is being staged."""
    return isinstance(value, SymbolicArray | SymbolicNumber | SymbolicSize)


def _extents_text(extents: Sequence[Expr]) -> str:
    from tcdsl.ir.text.printer import format_expr

    return "[" + ", ".join(map(format_expr, extents)) + "]"


def matched(structure: Structure, value: Any, kind: str, owners: str) -> list[Any]:
    """What ``value`` holds in the places of the arrays of ``structure``; `ShapeError` if it is built otherwise."""
    found = structure.match(value)
    if isinstance(found, str):
        raise ShapeError.at(
            f"the {kind}s do not have the structure of the {owners}",
            hint=f"pass one array per {owners.removesuffix('s')}, nested alike",
            notes=(f"the {owners}: {structure}", f"they differ at: {found}"),
        )
    return found
