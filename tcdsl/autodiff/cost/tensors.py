"""The values of a program's tensors, computed when a condition or a data index asks for them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tcdsl.autodiff.cost.cardinality import coordinates
from tcdsl.ir.interpreter.point_values import Array
from tcdsl.ir.interpreter.tensor_values import TensorValues
from tcdsl.ir.program import Statement
from tcdsl.polyhedra.spaces import at_sizes

__all__ = ["CountedValues"]

_BLOCK = 1 << 19


class CountedValues(TensorValues):
    """`TensorValues` of large domains: their points some at a time."""

    def points(self, statement: Statement, *, ordered: bool) -> Iterator[Array]:
        """The points of a statement's domain, as isl's sets say them; in any order unless ``ordered``."""
        rows: Iterator[Array] = coordinates(at_sizes(statement.domain.set, self.sizes), _BLOCK)
        if not ordered:
            yield from rows
            return
        names = statement.domain.variables
        every = np.concatenate([np.zeros((0, len(names)), np.int64), *rows])
        yield every[np.lexsort(every.T[::-1])] if names else every
