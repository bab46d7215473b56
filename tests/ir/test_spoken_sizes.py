from __future__ import annotations

import pytest

from tcdsl.ir.sizes.spoken_sizes import in_words, spoken_in
from tcdsl.ir.text.parser import parse_program

SPOKEN = spoken_in(
    parse_program("""
program rounds
input x: float32[N]
input offset_n: bool[offset_n, offset_n_1]
input offset_k_2: bool[k_2, k_2_1] as "offset_k"
input minus_m: bool[minus_m, minus_m_1]
input minus_q: float32[A, B]
size N_over_offset_n = N // max(offset_n, 1)
size N_mod_neg_minus_m = N % where(-minus_m == 0, 1, -minus_m)
size N_over_offset_n_times_minus_m = N_over_offset_n * minus_m
size X = N * N
""")
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the index offset_n + 1: offset_n = {offset_n}", "the index n + 1: n = {offset_n}"),
        ("i - minus_m, i + minus_m, -minus_m", "i + m, i - m, m"),
        ("minus_m = {minus_m}", "-m = {minus_m}"),
        ("2 * minus_m - offset_n", "2 * (-m) - n"),
        ("N_over_offset_n - 1", "N // n - 1"),
        ("2 * N_over_offset_n, -N_over_offset_n, i - N_over_offset_n", "2 * (N // n), -(N // n), i - N // n"),
        ("N_mod_neg_minus_m", "N % m"),
        ("x.minus_m, minus_my, X, minus_q", "x.minus_m, minus_my, X, minus_q"),
    ],
)
def test_made_up_names_are_said_as_they_were_written(text: str, expected: str) -> None:
    assert in_words(text, SPOKEN) == expected


def test_names_of_users_are_not_made_up() -> None:
    assert SPOKEN.keys() == {
        "offset_n",
        "minus_m",
        "N_over_offset_n",
        "N_mod_neg_minus_m",
        "N_over_offset_n_times_minus_m",
    }


def test_numbers_of_rounds_are_said_first() -> None:
    spoken = {**SPOKEN, "-minus_m + t_round": "t", "t_round": "t - m"}
    assert in_words("the index -minus_m + t_round + 1, t_round", spoken) == "the index t + 1, t - m"
