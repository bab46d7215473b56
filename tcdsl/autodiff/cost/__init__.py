"""What a program costs: the scalar operations that it executes, counted on its representation.

``count_operations(program, arrays)`` is exact. `tcdsl.autodiff.cost.operations` says what counts and how much.
"""

from __future__ import annotations

from tcdsl.autodiff.cost.operations import OperationCount, weight
from tcdsl.autodiff.cost.statement_cost import count_operations

__all__ = ["OperationCount", "count_operations", "weight"]
