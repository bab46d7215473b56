"""A layer of a network, and another one that shares its product."""

from __future__ import annotations

from typing import Any

from tcdsl import op
from tcdsl.indices import d, k, n
from tcdsl.primitives import relu, tanh

__all__ = ["another", "layer"]


@op
def layer(x: Any, w: Any, b: Any) -> Any:
    h[n, k] += w[k, d] * x[n, d]  # noqa: F821
    return relu(h + b)  # noqa: F821


@op
def another(x: Any, w: Any, b: Any) -> Any:
    h[n, k] += w[k, d] * x[n, d]  # noqa: F821
    return tanh(h + b)  # noqa: F821
