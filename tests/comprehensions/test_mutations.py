"""Whatever text is defined, only errors of the package come out: mutated programs, and texts made of its words."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tcdsl as tc
from tcdsl.errors import TcdslError
from tcdsl.frontend.comprehensions.checking import checked_source
from tcdsl.frontend.comprehensions.text.parsing import parse
from tcdsl.frontend.comprehensions.text.printing import format_source
from tests.comprehensions.programs import PROGRAMS

TOKEN = re.compile(r"\w+|[<>=!]=|&&|\|\||[-+*]=!?|->|<=>|\s+|.", re.DOTALL)
SOURCES = [TOKEN.findall(program.source) for program in PROGRAMS]
_MORE = """{ } ; [ ] . .1 @ $ \\ é ∑ 1e400 99999999999 0x # where in exists def A.7 half byte 0:0 -1 min=! max=
    ! ? % // ' i j N O"""
WORDS = [*sorted({token for source in SOURCES for token in source}), *_MORE.split(), "\0", "\n"]
WORD = st.sampled_from(WORDS)


def mutated(seed: int) -> str:
    """A program with a few of its words exchanged, lost, moved or repeated."""
    random = Random(seed)
    tokens = list(random.choice(SOURCES))
    for _ in range(random.randint(1, 4)):
        place, other = random.randrange(len(tokens) + 1), random.randrange(len(tokens) + 1)
        match random.randrange(6):
            case 0:
                tokens[place : place + 1] = [random.choice(WORDS)]
            case 1:
                del tokens[place : place + 1]
            case 2:
                tokens.insert(place, random.choice(WORDS))
            case 3:
                tokens[place:place] = tokens[place : place + random.randint(1, 20)]
            case 4:
                tokens[place : place + 1], tokens[other : other + 1] = (
                    tokens[other : other + 1],
                    tokens[place : place + 1],
                )
            case _:
                del tokens[place : place + random.randint(1, 10)]
    return "".join(tokens)


SEEDS = st.integers(0, 2**40)
RELAXED = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


@settings(max_examples=180, suppress_health_check=RELAXED)
@given(SEEDS)
def test_mutated_programs_are_checked(seed: int) -> None:
    for text in map(mutated, range(seed, seed + 10)):
        with suppress(TcdslError):
            source = parse(text)
            assert parse(format_source(source)) == source, text
            checked_source(source)


@settings(max_examples=120, suppress_health_check=RELAXED)
@given(st.lists(WORD, max_size=40).map(" ".join) | st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(TcdslError):
        checked_source(parse(f"def f(float(N) A) -> (O) {{ O(i) = {text} }}"))


@settings(max_examples=90, suppress_health_check=RELAXED)
@given(SEEDS)
@pytest.mark.filterwarnings("ignore:.*without initialization")
def test_ranges_of_mutated_programs_are_inferred(seed: int) -> None:
    with suppress(TcdslError):
        tc.comprehensions.define(mutated(seed))


@settings(max_examples=50, suppress_health_check=RELAXED)
@given(SEEDS, st.integers(0, 3))
@pytest.mark.filterwarnings("ignore:.*without initialization")
def test_what_is_defined_runs_or_is_refused(seed: int, extent: int) -> None:
    with suppress(TcdslError), np.errstate(all="ignore"):
        defs = tc.comprehensions.define(mutated(seed))
        for name in defs:
            checked = defs[name].template.checked
            types = [checked.tensors[each.name.name] for each in checked.definition.parameters]
            defs[name].interpret(*(np.ones((extent,) * each.rank, each.dtype) for each in types))


@pytest.mark.parametrize(
    "text",
    [
        "def f(float(N) A) -> (O) { O(i) = t9 where t0 = A(i), "
        + ", ".join(f"t{k + 1} = t{k} + t{k}" for k in range(9))
        + " }",
        "def f(float(N) A) -> (O) { O(i) = t39 where t0 = A(i), "
        + ", ".join(f"t{k + 1} = t{k} + t{k}" for k in range(39))
        + " }",
        "".join(f"def f{k}(float(N) A) -> (O, B) {{ B, O = f{k + 1}(A) B, O = f{k + 1}(A) }}\n" for k in range(30))
        + "def f30(float(N) A) -> (O, B) { O(i) = A(i) B(i) = A(i) }",
        "def f(float(N) A) -> (O) { O(i) = " + " ? ".join(["A(i)"] * 3000) + " }",
        "def f(float(N) A) -> (O) { O(i) = A(i) where " + ", ".join(f"i{k} in 0:N" for k in range(3000)) + " }",
        "def f(float(N) A) -> (O) { O(" + ", ".join(f"i{k}" for k in range(3000)) + ") = A(i0) }",
        "def f(" + ", ".join(f"float(N{k}) A{k}" for k in range(3000)) + ") -> (O) { O(i) = A0(i) }",
        "def f(float(N) A) -> (" + ", ".join(f"O{k}" for k in range(3000)) + ") { O0(i) = A(i) }",
        "def f(float(N) A) -> (O) { O(i) = A(" + "2 * " * 300 + "i) where i in 0:N }",
        "{" * 50_000,
        ")" * 50_000,
        "def " * 40_000,
        "def f(float(N) A) -> (O) { O(i) = " + "A(" * 90 + "i" + ")" * 90 + " }",
    ],
    ids=range(13),
)
def test_what_would_take_long_is_refused_soon(text: str) -> None:
    begin = time.process_time()
    with suppress(TcdslError):
        tc.comprehensions.define(text)
    assert time.process_time() - begin < 10
