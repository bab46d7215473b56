"""Random indices from data at the ends of all integer types, against Python.

``python -m tests.language.index_sweep 7 50`` compares 50 programs of the seed 7.
A process of its own, so that an access to memory that is not there is seen as what it is.
"""

from __future__ import annotations

import linecache
import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import tcdsl as tc
from tcdsl import cd, op
from tests.language.test_exact_indices import BOUNDARIES, TYPES, ends, moved

Index = Callable[[int, int, int], int]
_SCALES = (1, 2, 3, -1, -2, 7, 2**31, 2**32, 2**62, -(2**62), 2**63 - 1, -(2**63))
_OFFSETS = (0, 1, -1, 2, 3, 10, 2**31, 2**62, 2**63 - 1, -(2**63))
_TEXTS = (
    "b[i]",
    "{a} * b[i] + {d}",
    "{a} * b[i] - {e} * c[i]",
    "b[i] * c[i] + {a} * i",
    "({a} * b[i] + {d}) // 3",
    "({a} * b[i] + {d}) % 7",
    "b[i] * b[i] * c[i]",
    "max(b[i] + {d}, {a} * c[i])",
    "abs({a} * b[i]) - 2",
    "{a} * b[i] - {a} * c[i] + i",
    "(b[i] + {d} if b[i] + {d} < 3 else 1)",
    "b[i] ** 3 + {d}",
)
_READS = {
    "read": "@op\ndef f(x, b, c):\n{k}    y[i] = x[{p}]\n    return y\n",
    "get": "@op\ndef f(x, b, c):\n{k}    y[i] = get(x[{p}], -1.0)\n    return y\n",
    **{name: f"@op\ndef f(x, b, c):\n{{k}}    y[i] = x[{name}({{p}})]\n    return y\n" for name in BOUNDARIES},
    "scatter": "@cd\ndef f(x, b, c):\n{k}    x[{p}] += 1.0, i < b.shape[0]\n",
    "skip": "@cd(oob='skip')\ndef f(x, b, c):\n{k}    x[{p}] += 1.0, i < b.shape[0]\n",
    "gradient": "@op\ndef f(x, b, c):\n{k}    y[()] += get(x[{p}], 3.0) ** 2 + 0 * i\n    return y\n",
}


def _function(text: str, number: int) -> Any:
    path = f"<sweep {number}>"
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    names: dict[str, Any] = {"op": op, "cd": cd}
    exec(compile(text, path, "exec"), names)
    return names["f"]


def _wanted(kind: str, x: np.ndarray, indices: list[int]) -> list[float]:
    extent, result = len(x), x.copy()
    inside = [0 <= index < extent for index in indices]
    if kind in ("scatter", "skip"):
        for index, within in zip(indices, inside, strict=True):
            if within:
                result[index] += 1
        return result.tolist()
    if kind == "gradient":
        return [2 * x[k] * indices.count(k) for k in range(extent)]
    if kind in BOUNDARIES:
        return [x[moved(index, extent, kind)] for index in indices]
    return [x[index] if within else -1.0 for index, within in zip(indices, inside, strict=True)]


def _outcome(function: Any, x: np.ndarray, b: np.ndarray, c: np.ndarray) -> Any:
    # What the function gives, or makes of x; the message if it refuses.
    try:
        with tc.config(check="bounds"):
            found = function(x, b, c)
    except (tc.DataIndexError, tc.DtypeError) as error:
        return str(error)
    return x if found is None else found


def sweep(seed: int, rounds: int) -> None:
    """Compare ``rounds`` random programs, each on two types; ``AssertionError`` shows the first that differs."""
    draw = random.Random(seed)
    for number in range(rounds):
        values = {"a": draw.choice(_SCALES), "d": draw.choice(_OFFSETS), "e": draw.choice(_SCALES)}
        text = draw.choice(_TEXTS).format(**values)
        kind, named = draw.choice(list(_READS)), draw.random() < 0.3
        source = _READS[kind].format(p="k" if named else text, k=f"    k = {text}\n" if named else "")
        function = _function(source, number)
        index: Index = eval(f"lambda b, c, i: {text.replace('[i]', '')}")  # noqa: S307 - made here
        for dtype in draw.sample(TYPES, 2):
            x = np.arange(1.0, draw.choice((1, 2, 5, 8)) + 1)
            b, c = (np.array(draw.choices([*ends(dtype), 0, 1, 2, 3], k=4), dtype) for _ in range(2))
            indices = [index(int(b[i]), int(c[i]), i) for i in range(4)]
            shown = f"{source}{dtype} {b.tolist()} {c.tolist()} of {len(x)}: {indices}"
            outside = [value for value in indices if not 0 <= value < len(x)]
            found = _outcome(tc.grad(function) if kind == "gradient" else function, x.copy(), b, c)
            if isinstance(found, str) and "does not fit" in found:
                assert named, shown  # a value of the type of b
            elif outside and kind in ("read", "scatter"):
                assert f"index {outside[0]} is out of range" in str(found), shown
            else:
                assert np.asarray(found).tolist() == _wanted(kind, x, indices), shown


if __name__ == "__main__":
    sweep(int(sys.argv[1]), int(sys.argv[2]))
