"""The expression of micrograd's README, in both spellings."""

from __future__ import annotations

import pytest

import tcdsl as tc

VALUE, GRADIENTS = 24.70408163265306, (138.83381924198252, 645.5772594752186)


def test_value_gradients_and_size(example):
    micrograd = example("micrograd")
    found = micrograd.main(height=30)
    assert found["value"] == pytest.approx(VALUE, rel=1e-15)
    assert found["gradients"] == pytest.approx(GRADIENTS, rel=1e-14)
    # The README's text has 25 operations; derivatives and two gradients add six statements.
    assert found["statements"] <= 36
    # Four operations a turn, and their derivatives; one that is written out where it is used doubles with every turn.
    assert found["tower"] == 2 * micrograd.statements(micrograd.tower(height=15)())


def test_compiled_code_grows_with_the_height(example):
    micrograd = example("micrograd")
    steps = [tc.compile(tc.train.grad_update(micrograd.tower(height=height)())) for height in (4, 8)]
    low, high = (str(step.explain("loops")).count("tanh(") for step in steps)
    assert high == 2 * low > 0


def test_literal_spelling(example):
    tc.literal.install("micrograd_literal")
    try:
        found = example("micrograd_literal").main()
    finally:
        tc.literal.uninstall("micrograd_literal")
    assert found["value"] == pytest.approx(VALUE, rel=1e-15)
    assert found["gradients"] == pytest.approx(GRADIENTS, rel=1e-14)
