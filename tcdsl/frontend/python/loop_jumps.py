"""Bodies of loops without jumps: what comes after a branch that ends in ``break`` or ``continue`` is its other arm.

::

    for t in range(n):                 for t in range(n):
        x = step(x)                        left = False
        if done(x):                        x = step(x)
            break                          if done(x):
        y = x                                  left = True
                                           else:
                                               y = x
                                           if RECORDER.leaves(STATEMENT, left):
                                               break

So the loop may be one that runs: another round is one that was not left.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tcdsl.frontend.python.jumps import JumpRemoval, assigned, jumps_in

__all__ = ["breaks", "without_jumps"]

_JUMPS = (ast.Break, ast.Continue)


def breaks(body: Sequence[ast.stmt]) -> bool:
    """Whether the rounds of a loop may be left by ``break``, as far as `without_jumps` sees."""
    return bool(jumps_in(body, (ast.Break,)))


def without_jumps(body: Sequence[ast.stmt], left: str) -> list[ast.stmt]:
    """``body`` with assignments to ``left`` in place of ``break``."""
    if not jumps_in(body, _JUMPS):
        return list(body)
    made = _LoopJumps(_JUMPS, left).without_jumps(body)
    return [assigned(left, ast.Constant(False), body[0]), *made] if breaks(body) else made


class _LoopJumps(JumpRemoval):
    def __init__(self, kinds: tuple[type[ast.stmt], ...], left: str) -> None:
        super().__init__(kinds, f"{left}_jumped")
        self._left = left

    def replaced(self, jump: ast.stmt) -> list[ast.stmt]:
        if isinstance(jump, ast.Break):
            return [assigned(self._left, ast.Constant(True), jump)]
        return [ast.copy_location(ast.Pass(), jump)]  # a line that is executed, for who counts these
