"""Language models of invented names: the table of pairs, and the one that sees more than one letter."""

from __future__ import annotations

import numpy as np


def test_names_are_those_that_the_script_invents(example, tmp_path):
    names = example("invent_names")
    made = names.main(count=2000, output=tmp_path / "names.txt")
    assert names.OUTPUT.read_text() == (tmp_path / "names.txt").read_text()
    assert len(set(made)) == 2000
    assert all(map(names.follows_the_rules, made))
    assert not any(map(names.follows_the_rules, ["velano", "br", "tarkot"]))


def test_counted_and_trained_pairs_agree_and_more_letters_say_more(example):
    names, pairs, words = example("invent_names"), example("bigram"), example("mlp_language_model")

    table = pairs.main(steps=200, count=200)
    np.testing.assert_allclose(table["counted"].sum(axis=1), 1.0)
    np.testing.assert_allclose(table["trained"], table["counted"], atol=5e-3)
    counted, trained = table["losses"]
    assert counted < trained < counted + 5e-3  # counting gives the best table there is
    lines = names.OUTPUT.read_text().split()
    letter = table["alphabet"].index
    assert table["counted"][letter("e"), letter("l")] == sum(n.count("el") for n in lines) / sum(
        n.count("e") for n in lines
    )

    model = words.main(epochs=2, count=200)
    assert model["losses"][-1] < counted - 0.2
    followed = [np.mean([names.follows_the_rules(name) for name in found["samples"]]) for found in (table, model)]
    assert followed[0] < 0.6
    assert followed[1] > 0.9
