from __future__ import annotations

import itertools
import pickle
import random
import time
from typing import Any

import islpy as isl
import pytest

from tcdsl.ir.domain import Domain
from tests.ir.notation import parse_domain


def test_equal_sets_have_equal_text() -> None:
    one = parse_domain("[M, N] -> { [i, j] : 0 <= i < N and 0 <= j < M and M > 0 and i >= 0 }")
    other = parse_domain("[unused, N, M] -> { [i, j] : i >= 0 and i <= N - 1 and j >= 0 and M >= j + 1 }")
    assert one == other
    assert hash(one) == hash(other)
    assert one.text == "[M, N] -> { [i, j] : 0 <= i < N and 0 <= j < M }"
    assert one.variables == ("i", "j")
    assert one.parameters == ("M", "N")
    assert pickle.loads(pickle.dumps(one)) == one


def test_the_name_of_the_tuple_is_dropped() -> None:
    assert parse_domain("[N] -> { S[i] : 0 <= i < N }") == parse_domain("[N] -> { [i] : 0 <= i < N }")


def test_sets_come_back() -> None:
    points = isl.Set("[N] -> { [i] : 0 <= i < N and i mod 2 = 0 }")
    assert Domain.from_set(points).set.is_equal(points)


@pytest.mark.parametrize(("text", "empty"), [("[N] -> { [i] : i < 0 and i > N and N > 0 }", True), ("{ [] }", False)])
def test_emptiness(text: str, empty: bool) -> None:
    assert parse_domain(text).is_empty() is empty


@pytest.mark.parametrize(
    ("text", "sizes", "expected"),
    [
        ("{ [] }", {}, [()]),
        ("[N] -> { [] : N >= 2 }", {"N": 2}, [()]),
        ("[N] -> { [] : N >= 2 }", {"N": 1}, []),
        ("[N] -> { [i, j] : 0 <= j <= i < N }", {"N": 3, "M": 7}, [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (2, 2)]),
        ("[N] -> { [i] : -2 <= i < N and i mod 2 = 0 }", {"N": 3}, [(-2,), (0,), (2,)]),
        ("[N] -> { [i] : 0 <= i < N or i = 9 }", {"N": 2}, [(0,), (1,), (9,)]),
        ("[N] -> { [i] : 0 <= i < N }", {"N": 0}, []),
        ("[N, M] -> { [i] : N <= i <= M }", {"N": 10**12, "M": 10**12 + 1}, [(10**12,), (10**12 + 1,)]),
    ],
)
def test_points_come_in_row_major_order(text: str, sizes: dict[str, int], expected: list[tuple[int, ...]]) -> None:
    assert list(parse_domain(text).points(sizes)) == expected


def test_random_points_are_those_of_the_definition() -> None:
    domain = parse_domain("[N] -> { [i, j] : 0 <= i < N and 0 <= j and 2 * j < N - i and (i + j) mod 3 = 1 }")
    for size in range(9):
        expected = [(i, j) for i in range(size) for j in range(size) if 2 * j < size - i and (i + j) % 3 == 1]
        assert list(domain.points({"N": size})) == expected


def test_slanted_sets_are_scanned_axis_by_axis() -> None:
    draw = random.Random(4)

    def condition() -> str:
        a, b, c, d = (draw.randint(-3, 3) for _ in range(4))
        return f"({a}*i + {b}*j + {c}*k + {d}) {draw.choice(('>= 0', '<= N', '== N', '% 3 == 0'))}"

    for _ in range(60):
        ways = [" and ".join(condition() for _ in range(draw.randint(1, 3))) for _ in range(draw.randint(1, 2))]
        inside = " or ".join(f"({way})" for way in ways).replace("%", "mod").replace("==", "=")
        domain = parse_domain(f"[N] -> {{ [i, j, k] : -2 <= i < N and 0 <= j < 4 and j <= k <= N and ({inside}) }}")
        names: dict[str, Any] = {}
        exec(f"def chosen(i, j, k, N):\n    return {' or '.join(ways)}", names)
        for size in (0, 1, 5):
            box = itertools.product(range(-2, size), range(4), range(size + 1))
            wanted = [(i, j, k) for i, j, k in box if j <= k and names["chosen"](i, j, k, size)]
            assert list(domain.points({"N": size})) == wanted, domain.text


def test_many_points_take_no_call_each() -> None:
    domain = parse_domain("[N] -> { [i, j, k] : 0 <= i < N and i <= j < N and 0 <= k < 20 }")
    begin = time.process_time()
    assert len(domain.cells({"N": 300})) == 20 * 300 * 301 // 2  # named one by one, these take ten seconds
    assert time.process_time() - begin < 2
