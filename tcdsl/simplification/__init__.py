"""Simplification: programs made shorter that compute the same; see the README beside this file for the rules.

``simplify`` applies all of them, after a derivative has been written and before the next one is;
``without_sparse_tensors`` those that keep thin tensors out of memory, before any program becomes loops.
``specialized`` puts constants for sizes.
"""

from __future__ import annotations

from tcdsl.simplification.simplify import simplify, without_sparse_tensors
from tcdsl.simplification.specialization import specialized

__all__ = ["simplify", "specialized", "without_sparse_tensors"]
