"""Every path by which a tensor passes a loop: derivatives are those of the same lines, run by Python on NumPy's arrays.

A tensor enters, and is used before, inside and after; it is carried, changed now and then, or changes places with
another; it decides which arm is taken, is a place to read from, or a history. References are differences of fourth
order, in long double.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from tcdsl.autodiff import gradient, tangent
from tcdsl.autodiff.jacobians.program_jacobians import jacobian
from tcdsl.ir.interpreter.interpreter import interpret
from tcdsl.ir.program import Program
from tests.differential.loading import loaded
from tests.long_variants import in_turn

TABLE = np.array([0.5, 1.5, -0.8])
PLACES = np.array([0, 2, 2, 1, 0, 0, 1])

# The lines of `f(x, y, s, r, n)`: arrays of three cells, two numbers, and the number of rounds.
PATHS = {
    "a loop of one round, and loops over its number inside": """
z = x
q = s
for t in tc.loop(1):
    for i in range(t):
        z = np.tanh(z * q + 0.1)
        q = q * 0.9 + 0.1 * z[i % 3]
    for _ in range(t + 2):
        z = np.sin(z * q + 0.2)
return z.sum() * q
""",
    "becomes another in rounds that read its cells": """
a, b = x, y
q = s
for t in range(n):
    for u in tc.loop(n, checkpoints=1):
        b[t % 3] *= a[PLACES[n]] + a[2]
        q = np.sin(b[PLACES[0]])
        b = a * 1.0
    a, b = b, a
return a.sum() + 2 * b.sum() + q * r
""",
    "loops of no round, one behind the other": """
q = s * 2
for _ in tc.loop(0):
    q = q * r
p = q
for _ in tc.loop(0):
    p = p * r
return p
""",
    "enters, used before, inside, after": """
a = np.tanh(x)
z = a * x
for t in range(n):
    z = z + np.sin(x) * z * s
return (z * x + a).sum() * s
""",
    "only inside": """
q = 0.0 * s
for t in range(n):
    q = q * r + np.sin(x[t % 3])
return q
""",
    "only before (dead inside)": """
z = x * y
for t in range(n):
    w = x * 2
    z = z + y
return z.sum() * x[0]
""",
    "product recurrence": """
q = s
for t in range(n):
    q = q * x[t % 3]
return q
""",
    "swap": """
a, b = x, y
for t in range(n):
    a, b = b, np.tanh(a * b)
return (a + 2 * b).sum()
""",
    "fibonacci": """
a, b = s, r
for t in range(n):
    a, b = b, a * b + s
return a * b
""",
    "delay line": """
a = s
b = r
c = s * r
for t in range(n):
    c = b * b
    b = a * a
    a = x[t % 3]
return c + b * a
""",
    "conditionally updated by number": """
z = x
for t in range(n):
    if t % 2 == 0:
        z = z * y
    else:
        z = z + s * x
return (z * z).sum()
""",
    "conditionally updated by data": """
z = x
q = s
for t in range(n):
    if q > 0.7:
        q = q * 0.6
        z = z * y
    else:
        q = q * 1.5 + 0.1 * r
return (z * z).sum() * q
""",
    "read in the condition and after": """
q = s
for t in range(n):
    if q * q < 2.0:
        q = q * (1.3 + 0.1 * r)
return q * q * r
""",
    "while": """
q = s
k = 0
while q < 4.0:
    q = q * (1.5 + x[k % 3] * x[k % 3])
    k = k + 1
return q * s + x.sum()
""",
    "break": """
q = s
for t in range(n):
    if q > 1.2:
        break
    q = q * (1.3 + x[t % 3] * x[t % 3])
return q * s
""",
    "continue": """
q = s
for t in range(n):
    if t == 1:
        continue
    q = q * x[t % 3] + r
return q * s
""",
    "return inside": """
q = s
for t in range(n):
    q = q * (1.3 + x[t % 3] * x[t % 3])
    if q > 1.5:
        return q * r
return q * s
""",
    "captured array": """
z = x
for t in range(n):
    z = z * TABLE[t % 3] + np.sin(z)
return (z * z).sum()
""",
    "sizes and number": """
z = x
for t in range(n):
    z = np.sin(z) * (t + 1) / (n + x.shape[0])
return (z * z).sum() * n
""",
    "int state": """
k = 0
q = s
for t in range(n):
    q = q * x[k] + r
    k = (k + 2) % 3
return q * x[k]
""",
    "bool state": """
on = True
q = s
for t in range(n):
    if on:
        q = q * q * x[t % 3]
    else:
        q = q + r
    on = not on
return q * q
""",
    "nested": """
z = x
for t in range(n):
    for u in range(t):
        z = np.sin(z * y[u % 3]) + s
    z = z * z
return z.sum()
""",
    "nested, inner starts anew": """
z = x
for t in range(n):
    w = y * s
    for u in range(2):
        w = w * z
    z = np.sin(w) + x
return z.sum()
""",
    "nested, tensor of outer used in inner only": """
q = s
for t in range(n):
    a = x[t % 3] * r
    for u in range(3):
        q = np.sin(q * a + y[u])
return q * q
""",
    "branch in nested, swapped": """
a, b = s, r
for t in range(n):
    for u in range(2):
        if (t + u) % 2 == 0:
            a, b = b, a * b
        else:
            b = b + x[t % 3]
return a * b
""",
    "history": """
h = output(n + 1)
h[0] = s
for t in tc.loop(n):
    h[t + 1] = np.tanh(h[t] * r + x[t % 3])
return (h * h).sum()
""",
    "history read two back, and the first row": """
h = output(n + 2)
h[0] = s
h[1] = r
for t in tc.loop(n):
    h[t + 2] = h[t] * h[t + 1] + h[0] * x[t % 3]
return h.sum() * h[n]
""",
    "history rows from a carried state": """
ys = output(n, 3)
z = x
for t in tc.loop(n):
    z = np.sin(z * y)
    ys[t] = z
return (ys * ys).sum() + z.sum()
""",
    "history before and after (view of round)": """
ys = output(n, 3)
for t in tc.loop(n):
    ys[t] = x * (t + 1)
q = s
for t in tc.loop(n):
    q = q * ys[t].sum() + ys[n - 1 - t][0]
return q
""",
    "data index update": """
c = output(3)
for t in range(n):
    c[PLACES[t]] += x[t % 3] * x[PLACES[t]]
return (c * c * y).sum()
""",
    "data index, overwritten in place": """
c = x * 1.0
for t in range(n):
    c[PLACES[t]] = c[PLACES[t]] * c[(PLACES[t] + 1) % 3] + s
return (c * y).sum()
""",
    "in place cells": """
c = x * y
for t in range(n):
    c[t % 3] = c[t % 3] * c[(t + 1) % 3]
    c[0] += s
return (c * c).sum()
""",
    "two loops, the first one's result in both": """
z = x
for t in range(n):
    z = z * y
w = z
for t in range(n):
    w = w * z + x
return (w * z).sum()
""",
    "carried and unchanged": """
a = x
b = y
for t in range(n):
    a = a * b
    b = b
return (a * b).sum()
""",
    "given twice": """
a = x
b = x
for t in range(n):
    a = a * y + x
    b = a * b
return (a * b * x).sum()
""",
    "sums over all rounds": """
q = 0.0 * s
for t in range(n):
    q = q + (x * np.sin(y * t)).sum()
    q = q + x[:2].sum() * q * 0.1
return q * q
""",
    "stop after one": """
z = x
for t in range(n):
    z = np.where(z > 0.9, z * y, z + s * x)
return (z * z).sum()
""",
    "maximum": """
q = s
for t in range(n):
    q = np.maximum(q, x[t % 3] * r)
return q * q
""",
    "checkpoints": """
z = x
for t in tc.loop(n, checkpoints=2):
    z = np.sin(z * y) + s
return (z * x).sum()
""",
    "checkpoint_every": """
z = x
for t in tc.loop(n, checkpoint_every=2):
    z = np.sin(z * y) + s * (t + 1)
return (z * x).sum()
""",
    "checkpoints and break": """
q = s
for t in tc.loop(n, checkpoints=2):
    if q > 1.6:
        break
    q = q * (1.1 + x[t % 3] * x[t % 3])
return q * s
""",
    "two outputs of one state, branch after": """
q = s
p = r
for t in range(n):
    p = p + q
    q = q * x[t % 3]
if n > 2:
    return p * q
return p + q
""",
}

_BEFORE = """\
import numpy as np
import tcdsl as tc
from tcdsl import output

TABLE = np.array([0.5, 1.5, -0.8])
PLACES = np.array([0, 2, 2, 1, 0, 0, 1])
"""


class _Loops:
    """What Python runs instead of `tc`."""

    @staticmethod
    def loop(n: int, **asked: int) -> range:
        return range(n)


def source_of(name: str) -> str:
    lines = "\n".join(f"    {line}" for line in PATHS[name].strip("\n").splitlines())
    return f"def f(x, y, s, r, n):\n{lines}\n"


Function = Callable[[np.ndarray, int], Any]


def by_hand(name: str) -> Function:
    """The function, of all arguments as one array of long doubles."""
    names = {"np": np, "tc": _Loops, "TABLE": TABLE.astype(np.longdouble), "PLACES": PLACES}
    names["output"] = lambda *shape: np.zeros(shape, np.longdouble)
    exec(source_of(name), names)
    function: Any = names["f"]
    return lambda v, n: function(v[:3].copy(), v[3:6].copy(), v[6], v[7], n)


def slopes(function: Function, v: np.ndarray, n: int) -> np.ndarray:
    """Its derivatives, by differences."""
    return np.array([along(lambda h, e=e: function(v + h * e, n), 1e-4) for e in np.eye(8, dtype=np.longdouble)])


def along(function: Callable[[Any], Any], step: float) -> Any:
    """The derivative at 0, by differences of fourth order."""
    h = np.longdouble(step)
    return (8 * (function(h) - function(-h)) - (function(2 * h) - function(-2 * h))) / (12 * h)


def arguments(v: np.ndarray, n: int) -> tuple[Any, ...]:
    x = v.astype(np.float64)
    return x[:3], x[3:6], x[6], x[7], n


@lru_cache(maxsize=2)
def derivatives(program: Program) -> tuple[Program, Program, Program, list[Program]]:
    """Values and tangents, the gradient, its tangent, and Jacobians in both modes."""
    wrt = ["x", "y", "s", "r"]
    slope = gradient(program, wrt, keep_outputs=False)
    blocks = [jacobian(program, wrt, mode=mode, keep_outputs=False) for mode in ("forward", "reverse")]
    return tangent(program, wrt), slope, tangent(slope, wrt, keep_outputs=False), blocks


@pytest.mark.parametrize(("name", "n"), in_turn(PATHS, [0, 1, 3]))
def test_derivatives_are_those_of_python(name: str, n: int) -> None:
    function, reference = loaded(source_of(name), _BEFORE), by_hand(name)
    generator = np.random.default_rng(len(name))
    v, d = generator.uniform(0.4, 1.1, 8), generator.normal(size=8)
    entry, arrays = function.staging.entry(function.signature.call(arguments(v, n), {}))
    pushed, slope, twice, blocks = derivatives(entry.executable.program)
    exact, way = v.astype(np.longdouble), d.astype(np.longdouble)
    moved = [np.asarray(each) for each in arguments(d, n)[:4]]
    first = slopes(reference, exact, n)
    second = along(lambda h: slopes(reference, exact + h * way, n), 3e-4)
    value, rate = interpret(pushed, [*arrays, *moved]).outputs
    within = 1e-7 * float(1 + abs(first).max() + abs(second).max())
    for found, wanted in (
        (value, reference(exact, n)),
        (rate, first @ way),
        (flat(interpret(slope, arrays).outputs), first),
        (flat(interpret(twice, [*arrays, *moved]).outputs), second),
        *((flat(interpret(block, arrays).outputs), first) for block in blocks),
    ):
        np.testing.assert_allclose(found, np.asarray(wanted, np.float64), rtol=0, atol=within)


def flat(arrays: Any) -> np.ndarray:
    """All numbers of some arrays."""
    return np.concatenate([np.ravel(each) for each in arrays])
