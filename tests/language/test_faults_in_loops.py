"""What loops and branches that run refuse: the fact, and what to write instead."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tcdsl import op
from tcdsl.errors import DslSyntaxError, DtypeError, ShapeError
from tests.language.running_programs import program

GENERATOR = np.random.default_rng(7)
X, A = GENERATOR.random(6), GENERATOR.random((5, 5))


FAULTS: list[tuple[str, Any, type[Exception], str, str]] = [
    (
        "for t in tc.loop(N, checkpoint_evry=3):\n    x = x + t\nreturn x",
        2,
        DslSyntaxError,
        "`tc.loop` has no option `checkpoint_evry`",
        "`checkpoint_every` or `checkpoints`",
    ),
    (
        "for t in range(N):\n    h = x[t]\nreturn h",
        3,
        DslSyntaxError,
        "`h` is first bound in a round",
        "bind `h` before",
    ),
    (
        "for t in range(N):\n    x = x + t\nreturn x + t",
        3,
        DslSyntaxError,
        "`t` counts the rounds",
        "take another letter",
    ),
    (
        "ys = []\nfor t in range(N):\n    ys.append(x[t])\nreturn ys[0]",
        3,
        DslSyntaxError,
        "`ys` holds a list, which changes in a loop that runs",
        "collect results by `ys[t, ...] = h`",
    ),
    ("s = 0.0\nfor t in range(N):\n    s = s + x[t + 1]\nreturn s", 0, ShapeError, "out of range", "t + 1"),
    ("s = 0.0\nfor t in range(n):\n    s = s + x[t]\nreturn s", 8, ShapeError, "out of range", "extent N = 6"),
    ("for t in range(N):\n    x = x[1:]\nreturn x", 2, ShapeError, "`x` changes its shape in a loop that runs", "name"),
    (
        "for t in range(N):\n    x = float32(x)\nreturn x",
        2,
        DtypeError,
        "`x` is float64[N] before a loop",
        "float32[N]",
    ),
    ("s = 0\nfor t in range(N):\n    s = s + x\nreturn s", 2, ShapeError, "`s` is a number (int) before a loop", ""),
    (
        "for t in range(N):\n    with tc.config():\n        break\n    x = x + 1\nreturn x",
        2,
        DslSyntaxError,
        "`break` in a loop that runs",
        "it may stand in the loop, and in its branches, but in no other block",
    ),
    (
        "for k in [1, 2]:\n    if x[0] > 0:\n        break\n    x = x + k\nreturn x",
        2,
        DslSyntaxError,
        "data says whether this loop, which is unrolled, is left",
        "pass what it goes over as an array",
    ),
    (
        "for t in range(N):\n    if x[t] > 0:\n        for j in range(N):\n            x[j] = 1.0\n    x[j] += 1\nreturn x",
        2,
        DslSyntaxError,
        "`j` is bound in one arm of a branch that runs",
        "an index variable takes another letter",
    ),
    *(
        (
            f"for t in range({count}):\n    q[j] += x[t] * x[j]\nreturn x",
            2,
            DslSyntaxError,
            "`q` is added up in a loop that runs, but is not there before it",
            "`q = output()`",
        )
        for count in ("N", "n")
    ),
    (
        "for t in range(N):\n    with tc.config():\n        return x\nreturn x",
        2,
        DslSyntaxError,
        "`return` in a loop that runs",
        "in no other block",
    ),
    ("for t in range(N):\n    x = x + 1\nelse:\n    x = 0 * x\nreturn x", 2, DslSyntaxError, "`else` of a loop", ""),
    ("for t in range(x):\n    x = x + 1\nreturn x", 2, DtypeError, "where `range` needs an integer", ""),
    ("for t in range(n):\n    x = x + 1\nreturn x", 2.5, DtypeError, "a float where `range` needs an integer", ""),
    ("for t in range(1.5 * n):\n    x = x + 1\nreturn x", 2, (DtypeError, TypeError), "integer", ""),
    ("if x > 0:\n    x = x + 1\nreturn x", 2, ShapeError, "a condition of rank 1", "all(...)"),
    ("if sum(x[i]) > 0:\n    h = x + 1\nreturn h", 2, DslSyntaxError, "in one arm of a branch", "or in both arms"),
    (
        "while N > 2:\n    n = n + 1\nreturn n",
        2,
        DslSyntaxError,
        "a loop whose condition no round changes would never end",
        "change what the condition reads",
    ),
    ("w = {}\nfor t in range(N):\n    w = [x]\nreturn x", 2, DslSyntaxError, "`w` holds a dict, then a list", "once"),
    ("for a in x.sum():\n    x = x + a\nreturn x", 2, ShapeError, "a tensor of rank 0, which has no parts", ""),
]


@pytest.mark.parametrize(("body", "n", "kind", "fact", "hint"), FAULTS, ids=[each[3] + each[0][:20] for each in FAULTS])
def test_faults(body: str, n: Any, kind: type[Exception], fact: str, hint: str) -> None:
    with pytest.raises(kind, match=re.escape(fact)) as caught:
        program(body).interpret(X, n)
    assert hint in str(caught.value)


TABLES = tuple(np.ones((2,) * rank) for rank in range(2, 7))


@op
def of_tables(x):
    for table in TABLES:
        y[i] = x[i] * table[i]
        z[i] = x[i, i]
    return y


def test_faults_of_rounds_that_differ_in_numbers_are_shown_once() -> None:
    with pytest.raises(ShapeError, match="2 faults") as caught:
        of_tables(np.ones(2))
    text = str(caught.value)
    assert text.count("`TABLES_0` has rank 2 and is given 1 index") == text.count("is given 2 indices") == 1
    assert "and 4 more of this kind here" in text
    assert len(caught.value.diagnostics) == 2
