"""Whatever text is read, only errors of the package come out, and soon: mutated operators, and texts of their words."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from random import Random

import pytest

import tcdsl as tc
from tcdsl.errors import TcdslError
from tcdsl.library.texts import MODULES, library_text
from tests.skriptnd.graphs import operator_graph
from tests.skriptnd.test_graphs import FLOW, LABELS, NET, PACKS
from tests.skriptnd.test_library import BINARY, UNARY

WORD = re.compile(r"\w+|[<>=!]=|&&|\|\||\?\?|\.\.\.?|:=|<\?=?|>\?=?|[-+*]=|->|<-|\s+|.", re.DOTALL)
_MORE = """{ } ; [ ] . .. @ $ é 1e400 99999999999999999999 # if then else for do unroll while yield is in ? % // ' " i j
    0 -1 @using @assert @lower optional static dynamic T() inf int(inf) [0:99999] ..(99999) ..(-1) ** \\ ~ | |i| a.b"""


@cache
def texts() -> list[list[str]]:
    """The texts that are mutated, word by word: graphs, and operators of the library with a call of each."""
    found = [NET, PACKS, FLOW, LABELS]
    calls = [(call, [array], "real") for call, (array, _) in UNARY.items()]
    calls += [(call, arrays, kind) for call, (arrays, kind, _) in BINARY.items()]
    operators = {
        f"{module}.{operator.split()[1]}": operator
        for module in MODULES
        for operator in re.split(r"(?m)^(?=operator )", library_text(module))[1:]
    }
    for call, arrays, kind in calls:
        module, _, rest = call.partition(".")
        name = re.match(r"\w+", rest)
        operator = operators.get(f"{module}.{name[0]}" if name is not None else "")
        if operator is not None and "@lower" in operator:
            graph = str(operator_graph(call, arrays, [kind])).replace(f"{module}.", "")
            found.append(f"{operator}\n{graph.partition(chr(10))[2]}")  # without the import
    return [WORD.findall(text) for text in found]


@cache
def words() -> list[str]:
    return [*sorted({word for text in texts() for word in text}), *_MORE.split(), "\n"]


def mutated(seed: int) -> str:
    """A text with a few of its words exchanged, lost, moved or repeated."""
    random = Random(seed)
    found = list(random.choice(texts()))
    for _ in range(random.randint(1, 4)):
        place, other = random.randrange(len(found) + 1), random.randrange(len(found) + 1)
        match random.randrange(9):
            case 0:
                found[place : place + 1] = [random.choice(words())]
            case 1:
                del found[place : place + 1]
            case 2:
                found.insert(place, random.choice(words()))
            case 3:
                found[place:place] = found[place : place + random.randint(1, 20)]
            case 4:
                found[place : place + 1], found[other : other + 1] = found[other : other + 1], found[place : place + 1]
            case 5:
                del found[place : place + random.randint(1, 10)]
            case _:  # such a text can mostly be read, and is wrong further on
                alike = [each for each in found if _kind(each) == _kind("".join(found[place : place + 1]))]
                found[place : place + 1] = [random.choice(alike)] if alike else []
    return "".join(found)


def _kind(word: str) -> tuple[bool, ...]:
    return word.isidentifier(), word.isdigit(), word.isspace()


def test_texts_that_are_mutated_are_right() -> None:
    for words in texts():
        tc.skriptnd.parse("".join(words))


@pytest.mark.parametrize("part", range(4))
def test_mutated_texts_are_read_or_refused(part: int) -> None:
    for seed in range(500 * part, 500 * (part + 1)):
        text = mutated(seed)
        begin = time.process_time()
        with suppress(TcdslError):
            tc.skriptnd.parse(text)
        assert time.process_time() - begin < 2, text


def _nested(depth: int) -> str:
    calls = [f"f{k - 1}" if k else "math.exp" for k in range(depth)]
    operators = (
        f"operator f{k} {{ {IO} @compose {{ a = {each}(x); b = {each}(a); y = {each}(b); }} }}"
        for k, each in enumerate(calls)
    )
    return f"import math; {' '.join(operators)} graph g {{ {IO} @compose {{ y = f{depth - 1}(x); }} }}"


def _operator(blocks: str) -> str:
    call = f"graph g {{ {IO} @compose {{ y = f(x); }} }}"
    return f"operator f {{ {IO} {blocks} @lower {{ y[i,] = x[i,], i < 2; }} }} {call}"


IO = "@input { x: real[2]; } @output { y: real[2]; }"
DOUBLED = "a{0} = '{{a{1}}}{{a{1}}}';"
LONG = {
    "operations": (_nested(29), "the graph has more than 100000 operations"),
    "packs": (
        _operator(f"@using {{ a = [0:10000]; {' '.join(f'b{k} = a + a;' for k in range(500))} }}"),
        "more than 500000 items of packs are computed",
    ),
    "texts": (
        _operator(f"@using {{ a0 = 'ten letters'; {' '.join(DOUBLED.format(k + 1, k) for k in range(60))} }}"),
        "a text of 180224 characters",
    ),
    "conditions": (
        f"graph g {{ {IO} @compose {{ y = if true then x{' elif true then x' * 100} else x; }} }}",
        "an `if` of more than 100 conditions",
    ),
    "symbols": (
        _operator(
            f"@using {{ {' '.join(f'a{k} = {k};' for k in range(1500))} }}"
            f"@assert {{ {' '.join(f'a1499 >= {k};' for k in range(1500))}\n a1499 >= 1500; }}"
        ),
        "`a1499 >= 1500` does not hold",
    ),
    "words": (
        _operator(f"@using {{ {' '.join(f'a{k}={chr(43).join(str(k % 10) * 999)};' for k in range(490))} }}"),
        "the text has 980080 words, and 500000 are the most",
    ),
    "axes": (
        f"graph g {{ @input {{ x: real[{'1,' * 20_000}1]; }} }}",
        "a shape of 20001 entries, and 500 are the most",
    ),
    "brackets": (f"graph g {{ {IO} @compose {{ y = {'[(' * 49}{' a' * 30_000}", "unexpected `a`"),
}


@pytest.mark.parametrize("kind", LONG)
def test_what_is_long_or_deep_is_refused_soon(kind: str) -> None:
    text, message = LONG[kind]
    begin = time.process_time()
    with pytest.raises(TcdslError) as caught:
        tc.skriptnd.parse(text)
    assert message in str(caught.value)
    assert time.process_time() - begin < 2


def test_texts_of_words_are_read_or_refused() -> None:
    random, graph = Random(0), "graph g { @input { x: real[2,3]; } @output { y: real; } @compose { y = ...; } }"
    for _ in range(300):
        line = " ".join(random.choices(words(), k=random.randint(1, 30)))
        with suppress(TcdslError):
            tc.skriptnd.parse(graph.replace("...", line))
        with suppress(TcdslError):
            tc.skriptnd.parse(line)


def test_imports_are_bounded(tmp_path: Path) -> None:
    for k in range(1002):
        (tmp_path / f"m{k}.sknd").write_text(f"import m{k + 1};" if k < 1001 else "")
    with pytest.raises(TcdslError, match="more than 1000 modules are imported"):
        tc.skriptnd.parse(f"import m0; {_operator('')}", tmp_path)
    assert tc.skriptnd.parse(f"import m2; {_operator('')}", tmp_path).graphs
