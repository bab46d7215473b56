"""Differentiation: programs in, programs out.

``adjoint(matmul, ["A"])`` pulls a derivative of the outputs back to the inputs, ``gradient`` does for a loss of one
element, ``tangent`` pushes directions forward. The results are programs like any other: they print, run and can be
differentiated again.
"""

from __future__ import annotations

from tcdsl.autodiff.modes import adjoint, gradient, tangent

__all__ = ["adjoint", "gradient", "tangent"]
