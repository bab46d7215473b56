"""A statement is refused exactly at the sizes where a point reads what another one writes and nothing has written.

One function is called with arrays of many lengths; elsewhere it must read everything as it was before the statement.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from tcdsl.errors import ShapeError
from tests.differential.loading import loaded

#: The text of a statement on `s`; which cells it writes among those of length `n`; what cell `i` reads, if anything.
Form = tuple[str, Callable[[int, int], bool], Callable[[int, int], tuple[int, ...]]]


def nothing(i: int, n: int) -> tuple[int, ...]:
    return ()


WRITING: tuple[Form, ...] = (
    ("s[i] = x[i], i == 1", lambda i, n: i == 1, nothing),
    ("s[i] = x[i], i < 2", lambda i, n: i < 2, nothing),
    ("s[2*i] = x[2*i]", lambda i, n: i % 2 == 0, nothing),
    ("s[i] = x[i], i >= 2", lambda i, n: i >= 2, nothing),
    ("s[:3] = x[:3]", lambda i, n: i < 3, nothing),
    ("s[-1:] = x[-1:]", lambda i, n: i == n - 1, nothing),
    ("s[...] = 0.0 * x", lambda i, n: True, nothing),
)
READING: tuple[Form, ...] = (
    ("s[t] = s[t - 1] + x[t], t >= 1", lambda i, n: i >= 1, lambda i, n: (i - 1,)),
    ("s[t] = s[t - 2] + x[t], t >= 3", lambda i, n: i >= 3, lambda i, n: (i - 2,)),
    ("s[t] = s[t - 1] + s[t - 2] + x[t], t >= 2", lambda i, n: i >= 2, lambda i, n: (i - 1, i - 2)),
    ("s[i] = s[i + 1] + x[i]", lambda i, n: i + 1 < n, lambda i, n: (i + 1,)),
    ("s[i] = s[i - 2] + x[i], i % 2 == 1", lambda i, n: i % 2 == 1 and i >= 2, lambda i, n: (i - 2,)),
    ("s[i] = s[N - 1 - i] + x[i], i >= 1", lambda i, n: i >= 1, lambda i, n: (n - 1 - i,)),
    ("s[1:] = s[:-1] + x[1:]", lambda i, n: i >= 1, lambda i, n: (i - 1,)),
    ("s[:] = s[::-1] + x", lambda i, n: True, lambda i, n: (n - 1 - i,)),
    ("s[:-2] = s[2:] + x[:-2]", lambda i, n: i < n - 2, lambda i, n: (i + 2,)),
)


def run(program: list[Form], x: np.ndarray) -> np.ndarray | None:
    """What the statements make of `x`; None where one of them recurs."""
    n = len(x)
    s, written = np.zeros(n), np.zeros(n, bool)
    for text, writes, reads in program:
        cells = [i for i in range(n) if writes(i, n)]
        if any(not written[read] and read in cells for i in cells for read in reads(i, n) if read != i):
            return None
        before = s.copy()
        for i in cells:
            s[i] = before[[*reads(i, n)]].sum() + (x[i] if "0.0" not in text else 0.0)
        written[cells] = True
    return s


@pytest.mark.parametrize("first", [0, 25])
def test_a_recurrence_is_an_error_where_it_is_one(first: int) -> None:
    outcomes = set()
    for seed in range(first, first + 25):
        pick = random.Random(seed)
        program = [pick.choice(WRITING) for _ in range(pick.randint(1, 2))]
        program += [pick.choice(READING) for _ in range(pick.randint(1, 2))]
        lines = ["N = x.shape[0]", "s: real[N]", *(text for text, _, _ in program), "return s"]
        f = loaded("def f(x):\n" + "".join(f"    {line}\n" for line in lines))
        for n in pick.sample(range(2, 8), 6):
            x = np.arange(1.0, n + 1) ** 2
            wanted = run(program, x)
            outcomes.add(wanted is None)
            if wanted is None:
                with pytest.raises(ShapeError, match="nothing has written before"):
                    f.interpret(x)
            else:
                np.testing.assert_array_equal(f.interpret(x), wanted, err_msg=f"{n} cells, {lines}")
    assert outcomes == {True, False}
