"""Random functions with loops of all kinds, one behind another and inside another: `source(7)` is the text of one."""

from __future__ import annotations

import random

_HEADS = (
    "for _ in range(3):",
    "for _ in range(q):",
    "for _ in tc.loop(q, checkpoints=2):",
    "for _ in tc.loop(q, checkpoint_every=2):",
    "for r in x:",
    "if x[0] < 100:",
    "if {s} < 1000:",
    "while {n} < q:",
    "while {n} < q and x[0] < 100:",
    "while {n} < q and {s} < 1000:",
    "while {n} < q and m[0] < 1000:",
)
_ROUNDS = (
    "m[0] += v[0] * v[1]",
    "m[1] += {v} * {w}",
    "m[0] += 0.1 * {v} * m[1]",
    "m[1] = 0.3 * {v} * m[0] + {w}",
    "s = s + 0.2 * {v} * {w}",
    "t = s + 0.1 * t * {v}",
    "s = sin(s) * {v}",
    "v = 0.5 * v * y + 0.1 * t",
    "y = y + 0.1 * s",
)
_BETWEEN = ("v = y * 1", "v = v * s", "v = v + y * t", "y = y * v", "t = s * s", "s = v[0] * 2", "s = s + m[0]")


def source(seed: int) -> str:
    """The text of an ``@op`` ``f(x, y, q)`` that returns a number."""
    choose = random.Random(seed)
    lines = ["m = np.zeros(2)", "v = y * y", "s = 0.3", "t = y[1]"]
    for k in range(choose.randint(2, 3)):
        lines += [choose.choice(_BETWEEN)] if choose.random() < 0.7 else []
        lines += _loop(choose, f"n{k}", deep=choose.random() < 0.3)
    result = choose.choice(("m[0]", "m[0] + s", "s * t", "m[1] + v[0]"))
    body = "".join(f"    {line}\n" for line in (*lines, f"return {result} + v[1] * x[1]"))
    return f"import numpy as np\nimport tcdsl as tc\n\n@tc.op\ndef f(x, y, q):\n{body}"


def _loop(choose: random.Random, count: str, *, deep: bool) -> list[str]:
    head = choose.choice(_HEADS).format(n=count, s=choose.choice(("s", "t")))
    body = [f"{count} += 1"] if head.startswith("while") else []
    for _ in range(choose.randint(1, 3)):
        v, w = (choose.choice(("v[0]", "v[1]", "y[0]", "x[0]", "s")) for _ in "vw")
        body.append(choose.choice(_ROUNDS).format(v=v, w=w))
    if deep:
        body += _loop(choose, f"{count}_inside", deep=False)
    return [*([f"{count} = 0"] if head.startswith("while") else []), head, *(f"    {line}" for line in body)]
