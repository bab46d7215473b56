"""Bodies in bodies are staged a few times each: what staging found of one holds when it is staged again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.language.running_programs import check, program


def in_else(depth: int) -> str:
    """Branches that loop, each in the ``else`` of the one before."""
    lines, places = ["s, k, y = 0, 0, x * 0.5"], ""
    for level in range(depth):
        lines += [f"{places}if x[{level}] > 0:", f"{places}    while k < n:", f"{places}        k = k + 1"]
        lines += [f"{places}        s = s + x[{level}]", f"{places}        y[{level}] = s", f"{places}else:"]
        places += "    "
    return "\n".join([*lines, f"{places}s, k = k + 0.5, 1", "return y, s, k"])


def in_rounds(depth: int) -> str:
    """Loops in loops, each of them with a branch."""
    lines = ["s, c = 0, x[0] * 1.0"]
    for level in range(depth):
        lines += [f"{'    ' * level}for t{level} in range(n):", f"{'    ' * level}    if c > {level}:"]
        lines += [f"{'    ' * level}        s = s + t{level}"]
    return "\n".join([*lines, f"{'    ' * depth}c = c * 0.5", "return c + s"])


def one_of(depth: int) -> str:
    """``if`` with many ``elif``s that return."""
    arms = [f"{'el' * (level > 0)}if x[{level}] > 0:\n    return x * {level}, {level}" for level in range(depth)]
    return "\n".join([*arms, "return x, 0.5"])


def choices(depth: int) -> str:
    """Conditional expressions in conditional expressions."""
    made = "-1"
    for level in reversed(range(depth)):
        made = f"x[{level}] * 2 if x[{level}] > 0 else ({made})"
    return f"return {made}"


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """How often bodies are staged."""
    from tcdsl.frontend.running_loops.running_loop import RunningLoop

    found: Counter[str] = Counter()
    begin = RunningLoop._begin

    def counted(loop: Any) -> Any:
        found["passes"] += 1
        return begin(loop)

    monkeypatch.setattr(RunningLoop, "_begin", counted)
    return found


@pytest.mark.parametrize("nested", [in_else, in_rounds, one_of, choices], ids=lambda each: each.__name__)
def test_each_level_adds_few_passes(nested: Any, passes: Counter[str]) -> None:
    x, counts = -np.ones(9), []
    for depth in range(1, 7):
        passes.clear()
        function = program(nested(depth))
        function.staging.entry(function.signature.call((x, 2), {}))
        counts.append(passes["passes"])
    added = np.diff(counts)
    assert max(np.diff(added)) < counts[0] + 6  # not three times as many with each level


@pytest.mark.parametrize("taken", range(4))
def test_branches_in_branches_carry_what_each_of_them_changes(taken: int) -> None:
    x = np.where(np.arange(4) == taken, 0.25, -1.0)
    y, s, k = x * 0.5, 0.5, 1
    if taken < 3:
        s, k = 0.75, 3
        y[taken] = s
    check(program(in_else(3)), (x, 3), (y, s, k))


def test_an_inner_body_follows_a_type_that_the_outer_one_changes() -> None:
    body = """\
s, r = 0, 0
for t in range(n):
    if x[0] > 0:
        for q in range(n):
            r = r + s
    s = s + 0.5
return s, r"""
    check(program(body), (np.ones(3), 3), (1.5, 4.5))


def test_an_inner_body_stores_into_memory_that_each_round_makes() -> None:
    body = """\
s = 0.0
for t in range(n):
    y = x * t
    if t > 0:
        for q in range(n):
            if x[0] > 0:
                y[0] = y[0] + 1
    s = s + y[0]
return s"""
    check(program(body), (np.full(3, 2.0), 3), 12.0)


def test_a_choice_in_a_round_that_an_arm_stages_for_what_it_binds() -> None:
    body = """\
if x[0] > 5:
    return x * 1
for t in range(n):
    if t == 1:
        continue
    x = x + (x * t if x[1] > 0 else x)
return x"""
    check(program(body), (np.array([1.0, 0.5]), 3), np.array([3.0, 1.5]))
