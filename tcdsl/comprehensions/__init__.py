"""Programs in the language of Tensor Comprehensions, as functions of arrays."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from tcdsl.tracebacks import missing_name, user_facing, warn_user

if TYPE_CHECKING:
    from tcdsl.comprehensions.definitions import Definitions

__all__ = ["define"]


@user_facing
def define(source: str) -> Definitions:
    """The functions that a source in the language of Tensor Comprehensions defines.

    ::

        defs = tc.comprehensions.define('''
            def matmul(float(N, K) A, float(K, M) B) -> (C) {
                C(i, j) +=! A(i, k) * B(k, j)
            }
        ''')
        C = defs.matmul(A, B)                    # float32[N, K], float32[K, M] -> float32[N, M]
        dA = tc.grad(lambda A: defs.matmul(A, B).sum())(A)

    ``defs.name`` and ``defs["name"]`` are functions like those of `tcdsl.op`. Faults of the source are `TcdslError`s
    that show their places in it; what depends on sizes is checked at each call.
    """
    from tcdsl.comprehensions.definitions import definitions_of, warnings_of

    definitions = definitions_of(source)
    for text in warnings_of(definitions):
        warn_user(text, UserWarning)
    return definitions


def __getattr__(name: str) -> Any:
    raise missing_name(f"module {__name__}", name, sys.modules[__name__], __all__)
