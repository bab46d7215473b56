"""The list of benchmarks: one row says what runs, on what, and what bounds its speed. To add a case, add a row.

``operations`` counts floating-point operations (an ``exp`` as one), ``moved`` the array elements that must be read or
written at least once: inputs and outputs, no temporaries. Where the first axis of all inputs can be cut into ``blocks``
of the same work, each of which fits in a cache, the time of one of them tells what the arithmetic alone takes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tcdsl as tc
from benchmarks import numpy_peer, programs

__all__ = ["CASES", "Case"]


@dataclass(frozen=True, slots=True)
class Case:
    """One computation: ``function`` is tcdsl's, ``numpy`` the reference; other peers look it up by ``computation``."""

    computation: str
    shapes: tuple[tuple[int, ...], ...]
    function: Callable[..., Any]
    numpy: Callable[..., Any]
    operations: int
    moved: int
    limit: str
    blocks: int = 1

    @property
    def name(self) -> str:
        """Unique: the computation and the first input's extents."""
        return f"{self.computation} {self.extents}"

    @property
    def extents(self) -> str:
        """The first input's shape."""
        return "x".join(map(str, self.shapes[0]))


M = 512  # matrix product
R, C = 4096, 1000  # softmax
S = 2048  # stencil
E = 2**20  # elementwise functions
B = 1024  # bodies
INNER = (S - 2, S - 2)

CASES = (
    Case(
        "matmul",
        ((M, M), (M, M)),
        programs.matmul,
        numpy_peer.matmul,
        operations=2 * M**3,
        moved=3 * M**2,
        limit="operations",
    ),
    Case(
        "matmul gradient",
        ((M, M), (M, M), (M, M)),
        tc.grad(programs.weighted_matmul, argnums=(0, 1)),
        numpy_peer.matmul_gradient,
        operations=4 * M**3,
        moved=5 * M**2,
        limit="operations",
    ),
    Case(
        "softmax",
        ((R, C),),
        programs.softmax,
        numpy_peer.softmax,
        operations=5 * R * C,
        moved=2 * R * C,
        limit="bytes",
        blocks=256,
    ),
    Case(
        "softmax gradient",
        ((R, C), (R, C)),
        tc.grad(programs.weighted_softmax),
        numpy_peer.softmax_gradient,
        operations=9 * R * C,
        moved=3 * R * C,
        limit="bytes",
        blocks=256,
    ),
    Case(
        "stencil",
        ((S, S),),
        programs.stencil,
        numpy_peer.stencil,
        operations=5 * (S - 2) ** 2,
        moved=S**2 + (S - 2) ** 2,
        limit="bytes",
    ),
    Case(
        "stencil gradient",
        ((S, S), INNER),
        tc.grad(programs.weighted_stencil),
        numpy_peer.stencil_gradient,
        operations=5 * (S - 2) ** 2,
        moved=S**2 + (S - 2) ** 2,
        limit="bytes",
    ),
    Case(
        "quick gelu",
        ((E,),),
        programs.quick_gelu,
        numpy_peer.quick_gelu,
        operations=4 * E,
        moved=2 * E,
        limit="bytes",
        blocks=32,
    ),
    Case(
        "quick gelu gradient",
        ((E,), (E,)),
        tc.grad(programs.weighted_quick_gelu),
        numpy_peer.quick_gelu_gradient,
        operations=9 * E,
        moved=3 * E,
        limit="bytes",
        blocks=32,
    ),
    Case(
        "mish",
        ((E,),),
        programs.mish,
        numpy_peer.mish,
        operations=5 * E,
        moved=2 * E,
        limit="operations",
        blocks=32,
    ),
    Case(
        "mish gradient",
        ((E,), (E,)),
        tc.grad(programs.weighted_mish),
        numpy_peer.mish_gradient,
        operations=12 * E,
        moved=3 * E,
        limit="operations",
        blocks=32,
    ),
    Case(
        "log-sum-exp",
        ((R, C),),
        programs.log_sum_exp,
        numpy_peer.log_sum_exp,
        operations=4 * R * C,
        moved=R * C + R,
        limit="bytes",
        blocks=256,
    ),
    Case(
        "log-sum-exp gradient",
        ((R, C), (R,)),
        tc.grad(programs.weighted_log_sum_exp),
        numpy_peer.log_sum_exp_gradient,
        operations=7 * R * C,
        moved=2 * R * C + R,
        limit="bytes",
        blocks=256,
    ),
    Case(
        "Black-Scholes",
        ((E,), (E,), (E,)),
        programs.black_scholes,
        numpy_peer.black_scholes,
        operations=30 * E,
        moved=4 * E,
        limit="operations",
        blocks=32,
    ),
    Case(
        "Black-Scholes gradient",
        ((E,), (E,), (E,), (E,)),
        tc.grad(programs.weighted_black_scholes, argnums=(0, 1, 2)),
        numpy_peer.black_scholes_gradient,
        operations=60 * E,
        moved=7 * E,
        limit="operations",
        blocks=64,
    ),
    Case(
        "n-body",
        ((3, B),),
        programs.n_body,
        numpy_peer.n_body,
        operations=18 * B**2,
        moved=6 * B,
        limit="operations",
    ),
    Case(
        "n-body gradient",
        ((3, B), (3, B)),
        tc.grad(programs.weighted_n_body),
        numpy_peer.n_body_gradient,
        operations=40 * B**2,
        moved=9 * B,
        limit="operations",
    ),
)
