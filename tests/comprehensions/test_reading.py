"""Random programs mean what an independent reading of the language says, for random sizes."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tcdsl as tc
from tcdsl.errors import TcdslError
from tests.comprehensions.reading import RefusedError, results

SIZES = "NMK"
INDICES = (*["{0}"] * 6, "{0} + 1", "{0} - 1", "2 * {0}", "{0} + {1}", "{0} - {1}", "2 * {0} + {1}", "N - 1 - {0}")
ODD = ("{0} / 2", "{0} % 2", "1", "N - 1", "M - 1 + {0}", "3 * {0} - 2 * {1}")
BOUNDS = ("N", "M", "K", "N - 1", "M + 1", "2", "3", "N / 2", "min(N, M)")


def access(random: Random, variables: str, tensors: dict[str, int]) -> str:
    name = random.choice(list(tensors))
    forms = INDICES if random.random() < 0.93 else ODD
    indices = (random.choice(forms).format(*random.sample(variables, 2)) for _ in range(tensors[name]))
    return f"{name}({', '.join(indices)})"


def value(random: Random, variables: str, tensors: dict[str, int], depth: int = 0) -> str:
    kind = random.random()
    if depth > 1 or kind < 0.5:
        return access(random, variables, tensors)
    parts = [value(random, variables, tensors, depth + 1) for _ in range(2)]
    if kind < 0.85:
        return f"({parts[0]} {random.choice('+-*')} {parts[1]})"
    first, second = random.sample(variables, 2)
    test = random.choice((f"{first} < {second}", f"{first} >= 1", f"{first} < N - 1"))
    return f"({test} ? {parts[0]} : {parts[1]})"


def program(random: Random) -> str:
    ranks = {"A": 1, "B": 1, "C": 2}
    statements = []
    for _ in range(random.randint(1, 3)):
        target = random.choice([name for name in ("O", "P") if name not in ranks] * 2 + [n for n in "OP" if n in ranks])
        rank = ranks.get(target, random.choice((0, 1, 1, 1, 2)))
        indices = random.sample("ijk", rank)
        written = value(random, "ijk", ranks)
        used = [name for name in "ijk" if name in written.replace("min", "")]
        operator = random.choice(("+=!", "+=!", "max=!", "=", "*=!", "min=!"))
        if target in ranks and random.random() < 0.5:
            operator = random.choice(("+=", "max="))
        elif set(used) <= set(indices):
            operator = random.choice(("=", operator))
        stated = [name for name in "ijk" if name in {*used, *indices} and random.random() < 0.2]
        clauses = [f"{name} in {random.choice(('0', '0', '1'))}:{random.choice(BOUNDS)}" for name in stated]
        where = f" where {', '.join(clauses)}" if clauses else ""
        statements.append(f"{target}({', '.join(indices)}) {operator} {written}{where}")
        ranks[target] = rank
    outputs = ", ".join(name for name in "OP" if name in ranks)
    inputs = "double(N) A, double(M) B, double(N, K) C"
    return f"def f({inputs}) -> ({outputs}) {{ {' '.join(statements)} }}"


def sizes_of(random: Random) -> dict[str, int]:
    return {name: random.randint(2, 8) for name in SIZES}


def check(seed: int) -> bool:
    """Compare both; whether the program has a meaning."""
    random = Random(seed)
    text, sizes = program(random), sizes_of(random)
    rng = np.random.default_rng(seed)
    N, M, K = (sizes[name] for name in SIZES)
    arrays = dict(zip("ABC", map(rng.standard_normal, (N, M, (N, K))), strict=True))
    expected: dict[str, np.ndarray] | None = None
    try:
        expected = results(text, arrays, sizes)
        reason = ""
    except RefusedError as refused:
        reason = str(refused)
    found: Any = None
    error = ""
    try:
        found = tc.comprehensions.define(text).f.interpret(*arrays.values())
    except TcdslError as fault:
        error = str(fault)
    assert (expected is None) == (found is None), f"{text}\n{sizes}\n{reason}\n{error}"
    if expected is None:
        return False
    found = found if isinstance(found, tuple) else (found,)
    for one, other in zip(found, expected.values(), strict=True):
        assert np.shape(one) == other.shape, f"{text}\n{sizes}"
        np.testing.assert_allclose(one, other, 1e-9, 1e-9, err_msg=f"{text}\n{sizes}")
    return True


@settings(max_examples=80)
@given(st.integers(0, 2**40))
@pytest.mark.filterwarnings("ignore:.*without initialization")
def test_random_programs(seed: int) -> None:
    check(seed)


def test_many_of_them_have_a_meaning() -> None:
    assert sum(map(check, range(40))) > 3
