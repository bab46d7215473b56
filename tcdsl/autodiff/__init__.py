"""Differentiation: programs in, programs out."""

from __future__ import annotations

from tcdsl.autodiff.adjoint import adjoint, gradient
from tcdsl.autodiff.simplify import simplify

__all__ = ["adjoint", "gradient", "simplify"]
