from __future__ import annotations

import pickle

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
