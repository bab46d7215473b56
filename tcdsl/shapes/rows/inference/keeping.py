"""Constraints that outlive the shapes they were stated for."""

from __future__ import annotations

from collections.abc import Sequence

from tcdsl.shapes.rows.inference.origin import Origin
from tcdsl.shapes.rows.inference.scope import Scope
from tcdsl.shapes.rows.inference.shape import Shape
from tcdsl.shapes.rows.inference.transaction import Transaction

__all__ = ["keep"]


def keep(shapes: Sequence[Shape], origin: Origin) -> None:
    """Let what ``shapes`` say of parameters last as long as the parameters, even if the shapes themselves are dropped.

    A parameter does not keep alive the results it was used for, so what an expression says of it that has no
    consequences yet is gone with the expression's result. That is right for results that were dropped, and wrong for an
    expression that is written for its constraints alone.
    """
    with Transaction(origin) as transaction:
        for constraint in Scope(shapes).constraints:
            transaction.hold(constraint)
