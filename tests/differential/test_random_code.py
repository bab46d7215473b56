"""Random code with loops in the literal spelling, with logics and index lists: NumPy says what it leaves in memory.

``TCDSL_TEST_PROGRAMS=1000 pytest tests/differential/test_random_code.py -m long`` tries that many more.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import literal
from tests.differential.loading import loaded
from tests.long_variants import seeds

BY_HAND = int(os.environ.get("TCDSL_TEST_PROGRAMS", "300"))

# Statements on vectors c and d and matrices A and B, and what they are in NumPy. {x} is a vector, {y} the other one,
# {m} a matrix; {v} and {w} are the same value in both spellings, {t} the number of a round.
STATEMENTS = (
    ("{x} =: {v}", "{x}[:] = {w}"),
    ("{x} =+ {v}", "{x}[:] = {x} + {w}"),
    ("{x} =- {v}", "{x}[:] = {x} - {w}"),
    ("{x} =@^ {v}", "{x}[:] = np.maximum({x}, {w})"),
    ("{x} =:^^ {v}", "{x}[:] = {w}"),
    ('{x} =+ {m} * {y} ~logic:"ij;j=>i"', "{x}[:] = {x} + {m} @ {y}"),
    ('{x} =:+ {m} * {y} ~logic:"ij;j=>i"', "{x}[:] = {m} @ {y}"),
    ('A =:- B ~logic:"ij=>ji"', "A[:] = -B.T"),
    ('B =+ c * d ~logic:"i;j=>ij"', "B[:] = B + np.outer(c, d)"),
    ("{x}[i] =+ {m}[i, j] * {y}[j]", "{x}[:] = {x} + {m} @ {y}"),
    ("A[i, j] =- B[i, k] * B[k, j], j <= i", "A[:] = A - np.tril(B @ B)"),
    ("{x}[{t} % 3] =+ {m}[{t} % 3, 1] * !.0.5", "{x}[{t} % 3] += {m}[{t} % 3, 1] * 0.5"),
    ("{m}[{t} % 3] =: {y}", "{m}[{t} % 3] = {y}"),
)
VALUES = (
    ("({m} *+ 'ij;j=>i' {x})", "({m} @ {x})"),
    ("(!.0.5 *. {x})", "(0.5 * {x})"),
    ("({x} - {y} *. {x})", "({x} - {y} * {x})"),
    ("relu({x})", "np.maximum({x}, 0)"),
    ("{x}", "{x}"),
)
BLOCKS = (
    "for {t} in range(n):",
    "for {t} in range(len(c)):",
    "for {t} in range(n, -1, -1):",
    "if c[0] > d[1]:",
    "if A[0, 1] < 0.3 and n > 1:",
    "while {t} < n and c[0] < 1:",
)


@dataclass
class Writer:
    """Writes code with memory ``c, d, A, B`` and an integer ``n``, in both spellings."""

    pick: random.Random
    lines: list[str] = field(default_factory=list)
    of_numpy: list[str] = field(default_factory=list)
    numbers: list[str] = field(default_factory=list)

    def put(self, indent: str, text: str, plain: str) -> None:
        self.lines.append(indent + text)
        self.of_numpy.append(indent + plain)

    def statement(self, indent: str) -> None:
        x, y = self.pick.choice(("cd", "dc"))
        names = {"x": x, "y": y, "m": self.pick.choice("AB")}
        value, plain = self.pick.choice(VALUES)
        names |= {"v": value.format(**names), "w": plain.format(**names), "t": self.pick.choice([*self.numbers, "n"])}
        text, plain = self.pick.choice(STATEMENTS)
        self.put(indent, text.format(**names), plain.format(**names))

    def block(self, indent: str, depth: int) -> None:
        number, head = f"t{len(self.lines)}", self.pick.choice(BLOCKS)
        if head.startswith("while"):
            self.put(indent, f"{number} = 0", f"{number} = 0")
        self.put(indent, *[head.format(t=number)] * 2)
        inside = indent + "    "
        if "{t}" in head:
            self.numbers.append(number)
        for _ in range(self.pick.randint(1, 3)):
            if depth and self.pick.random() < 0.4:
                self.block(inside, depth - 1)
            else:
                self.statement(inside)
        for name in "cdAB":  # so that nothing grows without bounds
            self.put(inside, f"{name} =: tanh({name})", f"{name}[:] = np.tanh({name})")
        if head.startswith("while"):
            self.put(inside, f"{number} = {number} + 1", f"{number} = {number} + 1")
        if "{t}" in head:
            self.numbers.remove(number)


def leaves_what_numpy_does(seed: int) -> None:
    writer = Writer(random.Random(seed))
    writer.statement("    ")
    writer.block("    ", 2)
    writer.statement("    ")
    head = "def f(c, d, A, B, n):\n"
    source = head + "\n".join(writer.lines) + "\n"
    code = loaded(literal.desugar(f"@cd\n{source}").partition("\n")[2], decorator="cd")
    generator, n = np.random.default_rng(seed), seed % 4
    given = [0.5 * generator.standard_normal(shape) for shape in ((3,), (3,), (3, 3), (3, 3))]
    wanted, compiled = ([each.copy() for each in given] for _ in range(2))
    namespace = {"np": np}
    exec(head + "\n".join(writer.of_numpy), namespace)
    namespace["f"](*wanted, n)
    code(*compiled, n)
    interpreted = dict(zip(code.program(*given, n).updates, code.interpret(*given, n), strict=True))
    assert len(interpreted) > 0
    for found, each in zip(compiled, wanted, strict=True):
        np.testing.assert_allclose(found, each, rtol=1e-9, atol=1e-12, err_msg=source)
    for (name, _), found in interpreted.items():
        np.testing.assert_allclose(found, wanted["cdAB".index(name)], rtol=1e-9, atol=1e-12, err_msg=source)
    if seed % 3 == 0:
        tensors = [tc.tensor(each) for each in given]
        tc.compile(code(*tensors, n)).run()
        for tensor, each in zip(tensors, wanted, strict=True):
            np.testing.assert_allclose(np.asarray(tensor), each, rtol=1e-9, atol=1e-12, err_msg=source)


@pytest.mark.parametrize("seed", seeds(4, 8))
def test_code_leaves_what_numpy_does(seed: int) -> None:
    leaves_what_numpy_does(seed)


@pytest.mark.long
@pytest.mark.parametrize("batch", range(10))
def test_much_code_leaves_what_numpy_does(batch: int) -> None:
    for seed in range(8 + batch, 8 + BY_HAND, 10):
        leaves_what_numpy_does(seed)
