"""Random functions with loops of all kinds, one behind another and inside another: `source(7)` is the text of one."""

from __future__ import annotations

import random

_HEADS = (
    "for _ in range(3):",
    "for _ in range(q):",
    "for _ in tc.loop(q, checkpoints=2):",
    "for _ in tc.loop(q, checkpoint_every=2):",
    "for r in x:",
    "for {n}, r in enumerate(y):",
    "for {n} in range(q - 1, -1, -1):",
    "for {n} in tc.loop(1, q):",
    "for {n} in range(p[0], q):",
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
    "m[p[i]] += 0.2 * v[i] * {w}",
    "v[i] = y[p[i]] * m[i]",
    "A[k, j] = sin(A[1 - k, j]) * v[j]",
    "A[i, j] *= 1 + 0.1 * y[i] * v[j]",
    "m[i] += 0.1 * A[j, i] * v[j] * {w}",
    "m[0] <<= {v} * {w}",
    "t = ({v} * {w} if k == 0 else sin({v}))",
    "v = where(v > {w}, v * v, y)",
    "v[i] += 0.2 * get(m[i - 1], 0.3) * y[i]",
    "k = 1 - k",
    "s = turned(s, {w})",
)
_JUMPS = ("break", "continue", "return m[0] * s + v[1]")
_TESTS = ("k == 1", "s > 1000", "m[0] < -1000", "x[0] > 0.5")
_HELPER = """@tc.op
def turned(a, b):
    for _ in tc.loop(3, checkpoints=1):
        a = sin(a) * b + 0.1 * a
    return a
"""
_BETWEEN = ("v = y * 1", "v = v * s", "v = v + y * t", "y = y * v", "t = s * s", "s = v[0] * 2", "s = s + m[0]")


def source(seed: int) -> str:
    """The text of an ``@op`` ``f(x, y, q, p)`` that returns a number; ``p`` are positions of ``x``."""
    choose = random.Random(seed)
    lines = ["m = np.zeros(2)", "v = y * y", "s = 0.3", "t = y[1]", "k = 0", "A[i, j] = y[i] * x[j] + 0.3"]
    for k in range(choose.randint(2, 3)):
        lines += [choose.choice(_BETWEEN)] if choose.random() < 0.7 else []
        lines += _loop(choose, f"n{k}", deep=choose.random() < 0.3)
    result = choose.choice(("m[0]", "m[0] + s", "s * t", "m[1] + v[0]", "sum(A[i, j] * v[j])"))
    body = "".join(f"    {line}\n" for line in (*lines, f"return {result} + v[1] * x[1]"))
    return f"import numpy as np\nimport tcdsl as tc\n\n{_HELPER}\n@tc.op\ndef f(x, y, q, p):\n{body}"


def _loop(choose: random.Random, count: str, *, deep: bool) -> list[str]:
    head = choose.choice(_HEADS).format(n=count, s=choose.choice(("s", "t")))
    body = [f"{count} += 1"] if head.startswith("while") else []
    if not head.startswith("if") and choose.random() < 0.35:
        body += [f"if {choose.choice(_TESTS)}:", f"    {choose.choice(_JUMPS)}"]
    for _ in range(choose.randint(1, 3)):
        v, w = (choose.choice(("v[0]", "v[1]", "y[0]", "x[0]", "s")) for _ in "vw")
        body.append(choose.choice(_ROUNDS).format(v=v, w=w))
    if deep:
        body += _loop(choose, f"{count}_inside", deep=False)
    if head.startswith("if") and choose.random() < 0.5:
        body += ["else:", "    t = 0.5 * t * s"]
        return [head, *(f"    {line}" for line in body[:-2]), *body[-2:]]
    return [*([f"{count} = 0"] if head.startswith("while") else []), head, *(f"    {line}" for line in body)]
