"""One program in several spellings: written inline, with local definitions, and with helper functions.

Random expressions are cut into pieces, which become local definitions or functions of the test's module; the printed
program must be the same text each time.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tests.differential.loading import loaded

# Cells that are infinite or NaN where the brackets below are false, and reads out of range there.
LEAVES = (
    "x[k]",
    "w[k]",
    "v[i]",
    "x[k - 1]",
    "m[k]",
    "(k <= i)",
    "(k > 0)",
    "(w[k] < 9.0)",
    "(not m[i])",
    "2.0",
    "3",
    "k",
    "get(w[k - 1], 0.5)",
    "x[clamp(k + 1)]",
    "(x[k - 1] if k > 0 else w[k])",
    "(m[k] and x[k] < 1.0)",
    "(m[k] or k < i)",
    "sum(x[j] * (j < 2))",
    "max(x[j] for j in range(3))",
    "float32(x[k])",
)
OPERATORS = ("*", "*", "*", "*", "+", "-", "/", "/", "//", "%")


@dataclass(frozen=True)
class Node:
    """An operation: ``{0} * {1}``, ``-{0}``, ``exp({0})`` on parts; or a leaf."""

    text: str
    parts: tuple[Node, ...] = ()


def expression(rng: random.Random, depth: int) -> Node:
    if depth == 0 or rng.random() < 0.15:
        return Node(rng.choice(LEAVES))
    kind = rng.random()
    if kind < 0.1:
        return Node("-{0}", (expression(rng, depth - 1),))
    if kind < 0.15:
        return Node("abs({0})", (expression(rng, depth - 1),))
    return Node(f"({{0}} {rng.choice(OPERATORS)} {{1}})", (expression(rng, depth - 1), expression(rng, depth - 1)))


class Writer:
    """Writes an expression: pieces of it as ``locals`` before the statement, and as ``helpers`` outside.

    With ``whole`` all of it stands in one more function, which is given the tensors and the indices.
    """

    def __init__(self, rng: random.Random, locals: float, helpers: float, whole: bool = False) -> None:
        self.rng, self.locals, self.helpers, self.whole = rng, locals, helpers, whole
        self.lines: list[str] = []
        self.functions: list[str] = []
        self.names = itertools.count()

    def write(self, node: Node) -> str:
        if node.parts and self.rng.random() < self.helpers:
            return self._call(node)
        text = node.text.format(*map(self.write, node.parts))
        # What has no index variables (`3`) is Python's own, which a name keeps as it is.
        if self.rng.random() < self.locals:
            name = f"z{next(self.names)}"
            self.lines.append(f"{name} = {text}")
            return name
        return text

    def _call(self, node: Node) -> str:
        # The operation and some of those below it, on parameters.
        arguments: list[str] = []
        body = self._body(node, arguments, 2)
        name = f"helper{next(self.names)}"
        parameters = ", ".join(f"p{k}" for k in range(len(arguments)))
        self.functions.append(f"def {name}({parameters}):\n    made = {body}\n    return made\n")
        return f"{name}({', '.join(arguments)})"

    def _body(self, node: Node, arguments: list[str], depth: int) -> str:
        if not node.parts or depth == 0:
            arguments.append(self.write(node))
            return f"p{len(arguments) - 1}"
        return node.text.format(*[self._body(part, arguments, depth - 1) for part in node.parts])

    def program(self, node: Node, target: str) -> Any:
        value = self.write(node)
        if self.whole:
            self.functions.append(f"def whole(x, w, v, m, k, i):\n    return {value}\n")
            value = "whole(x, w, v, m, k, i)"
        lines = ["O: real[x.shape[0]]", *self.lines, target.format(value), "return O"]
        body = "".join(f"    {line}\n" for line in lines)
        return loaded(f"def f(x, w, v, m):\n{body}", "".join(self.functions))


TARGETS = ("O[i] += {}", "O[i] -= {}", "O[i] = sum({})", "O[i] = 1.0 - sum({})", "O[i] >>= {}", "O[i] *= {}")
X = np.array([0.5, -1.5, 2.0, 0.25])
W = np.array([2.0, np.inf, 3.0, np.nan])
V = np.array([1.0, -1.0, 0.5, np.inf])
M = np.array([True, False, True, False])


def outcome(program: Any) -> Any:
    """The printed program and the value, or the facts of its faults."""
    try:
        with np.errstate(all="ignore"):
            return program.explain("ir", X, W, V, M), program.interpret(X, W, V, M)
    except tc.TcdslError as error:
        return sorted(diagnostic.fact for diagnostic in error.diagnostics)


def assert_same(seed: int) -> bool:
    """Compare the spellings of one expression; whether it is a right program."""
    rng = random.Random(seed)
    node, target = expression(rng, 4), rng.choice(TARGETS)
    # Every use of k stands for the same index, so that no reduction is left without one.
    node = Node("({0} * {1})", (Node("x[k]"), node))
    inline = Writer(rng, 0.0, 0.0)
    wanted = outcome(inline.program(node, target))
    for local_share, helper_share, whole in ((0.4, 0.0, False), (0.0, 0.4, False), (0.3, 0.3, False), (0.0, 0.3, True)):
        writer = Writer(rng, local_share, helper_share, whole)
        found = outcome(writer.program(node, target))
        shown = "\n".join((inline.write(node), target, *writer.lines, *writer.functions))
        if not isinstance(wanted, tuple):
            assert not isinstance(found, tuple), shown
            continue
        assert isinstance(found, tuple), f"{shown}\n{found}"
        assert found[0] == wanted[0], shown
        np.testing.assert_array_equal(found[1], wanted[1], shown)
    return isinstance(wanted, tuple)


def test_local_definitions_and_helpers_are_the_text_that_they_stand_for() -> None:
    assert sum(map(assert_same, range(20))) > 9


@pytest.mark.long
def test_local_definitions_and_helpers_are_the_text_that_they_stand_for_in_many_programs() -> None:
    assert sum(map(assert_same, range(36, 1500))) > 700
