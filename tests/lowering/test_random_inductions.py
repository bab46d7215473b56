"""Random loops that carry integers which are positions: compiled code ends or fails where the interpreter does."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tcdsl.errors import TcdslError
from tests.language.running_programs import program

VALUES = ["k", "j", "t", "N", "n", "p[0]", "1", "k + 1", "j - 1", "k // 2", "(k + j) // 2", "N - 1 - k", "N // 2"]
POSITIONS = ["k", "j", "k", "j", "k - 1", "j + 1", "(k + j) // 2", "k - 2 * (k // 2)"]


def condition(dice: random.Random) -> str:
    ends = ["j", "N", "n", "0", "N - 1", "k", "p[0]"]
    made = f"{dice.choice('kj')} {dice.choice(['<', '<=', '>', '>=', '!='])} {dice.choice(ends)}"
    match dice.randrange(9):
        case 0 | 1:
            return f"{made} and {condition(dice)}"
        case 2:
            return f"({made} or {condition(dice)})"
        case 3:
            return f"{made} and x[{dice.choice('kj')}] > 0.5"
    return made


def statements(dice: random.Random, indent: str, depth: int) -> Iterator[str]:
    yield f"{indent}s = s + x[{dice.choice(POSITIONS)}]"
    for _ in range(dice.randint(1, 2)):
        inner, name = indent + "    ", dice.choice("kj")
        match dice.randrange(8):
            case 0 if depth < 2:
                yield f"{indent}if {condition(dice)}:"
                yield from statements(dice, inner, depth + 1)
                yield f"{indent}else:"
                yield from statements(dice, inner, depth + 1)
            case 1 if not depth:
                yield f"{indent}w = 0"
                yield f"{indent}while w < 5 and {condition(dice)}:"
                yield from statements(dice, inner, 1)
                yield f"{inner}w = w + 1"
            case 2 | 3:
                yield f"{indent}{name} = {dice.choice(VALUES)}"
            case _:
                yield f"{indent}{name} = {name} {dice.choice(['+ 1', '- 1', '+ 1', '- 1', '+ 2', '+ p[t]'])}"


def loop(seed: int) -> str:
    dice = random.Random(seed)
    begin = f"k, j, t, s = {dice.choice(['0', '1', 'N', 'p[0]'])}, {dice.choice(['N - 1', 'N', '0', 'n'])}, 0, 0.0"
    lines = [begin, f"while t < N and {condition(dice)}:", *statements(dice, "    ", 0), "    t = t + 1"]
    if dice.random() < 0.4:
        lines.append("s = s + x[k]")
    return "\n".join([*lines, "return s + k + 10 * j"])


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return float(call())
    except TcdslError as error:
        return type(error)


def require_agreement(seed: int) -> None:
    function = program(loop(seed), "x: 'real[N]', p: 'int64[N]', n")
    for number in range(3):
        dice = np.random.default_rng([seed, number])
        size = int(dice.choice([1, 3, 6]))
        given = dice.random(size), dice.integers(-1, 3, size), int(dice.integers(0, 8))
        found = outcome(lambda given=given: function(*given))  # type: ignore[misc]
        wanted = outcome(lambda given=given: function.interpret(*given))  # type: ignore[misc]
        assert found == pytest.approx(wanted) if isinstance(wanted, float) else found is wanted, loop(seed)


@pytest.mark.parametrize("seed", range(10))
def test_compiled_loops_are_in_range_where_the_interpreter_is(seed: int) -> None:
    require_agreement(seed)


@pytest.mark.long
def test_many_compiled_loops_are_in_range_where_the_interpreter_is() -> None:
    for seed in range(10, 1000):
        require_agreement(seed)
