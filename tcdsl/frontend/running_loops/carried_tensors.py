"""What carried names hold before a loop and after a round, as tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tcdsl.frontend.arrays.arithmetic import element_of, record_elementwise
from tcdsl.frontend.running_loops.carried import Carried
from tcdsl.frontend.staging.declarations import DeclaredTarget, Unwritten
from tcdsl.frontend.staging.session import Session
from tcdsl.frontend.symbols.symbols import PendingArray, SymbolicTensor
from tcdsl.frontend.symbols.values import Value, cast_value
from tcdsl.ir.build import constant
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Read

__all__ = ["given_tensor", "initial_tensor"]


def initial_tensor(session: Session, carried: Carried) -> SymbolicTensor:
    """What a name holds before the loop; what is only declared, or has no value yet, is filled."""
    before, kind = carried.before, carried.kind
    if isinstance(before, SymbolicTensor):
        return before.held() if before.memory else before
    if isinstance(before, DeclaredTarget | Unwritten):
        value = Value(constant(carried.start or 0, compute_dtype(kind.dtype)), None, kind.dtype)
        made = record_elementwise(session, value, kind.extents, carried.label)
        session.builder.recording.starts[made.name] = carried.start or 0
        return made
    return given_tensor(session, carried, before)


def given_tensor(session: Session, carried: Carried, given: Any) -> SymbolicTensor:
    """An array, or a number as a tensor of rank 0: the one that it is, if it is one."""
    if isinstance(given, PendingArray):
        return given.materialize(carried.label)
    if isinstance(given, np.ndarray):
        return session.capture(given, carried.label)
    if isinstance(given, SymbolicTensor):
        return given
    element, extents = element_of(given, session)
    if isinstance(element.expr, Read) and not element.expr.indices:
        found = session.builder.tensor(element.expr.tensor)
        if found.dtype == carried.kind.dtype:
            return SymbolicTensor(session.builder, found.name, found.dtype, (), carried.label)
    return record_elementwise(session, cast_value(element, carried.kind.dtype), extents, carried.label)
