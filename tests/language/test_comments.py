"""``comment(...)`` in decorated functions shows in programs, loops and generated code."""

from __future__ import annotations

import numpy as np

from tcdsl import cd, op
from tcdsl.ir.text.parser import parse_program
from tcdsl.ir.text.printer import format_program


@cd
def step(p, g, *, rate):
    comment("the step of", p)
    p -= rate * g
    q = p * 2
    p += q


def test_comments_stand_above_the_statement_that_follows() -> None:
    p = np.ones(3)
    step(p, p.copy(), rate=0.5)
    first, second = str(step.explain("ir")).split("\n\n")[1].splitlines()[:2]
    assert first.endswith('as "the step of p"')
    assert "as" not in second.split("for")[1]
    assert "# the step of p\n# p_2[i] -= rate * g[i]" in str(step.explain("loops"))
    assert "the step of p\n    p_2[i] -= rate * g[i]" in str(step.explain("python"))


def test_a_program_with_comments_parses_back() -> None:
    program = step.program(np.ones(3), np.ones(3), rate=0.5)
    assert parse_program(format_program(program)) == program


def test_strings_numbers_and_tensors_are_joined_by_spaces() -> None:
    @op
    def f(x, *, layer):
        comment("layer", layer, 3, "of\n", x, x.shape[0])
        comment("in two parts")
        y[i] = x[i]
        z[i] = y[i] + x[i]
        return z, y

    f(np.ones(2), layer=3)
    text = str(f.explain("ir"))
    assert 'as "layer layer 3 of x x_0; in two parts"' in text
    assert text.count(' as "') == 1


def test_a_comment_stays_with_a_value_that_moves() -> None:
    @op
    def f(x):
        comment("twice")
        y = 2 * x
        comment("and one")
        return y + 1

    f(np.ones(2))
    assert "# twice; and one\n" in str(f.explain("loops"))


def test_a_comment_with_quotes_compiles() -> None:
    @op
    def f(x):
        comment('says """ and \\ and {braces}')
        y[i] = 2 * x[i]
        return y

    assert f(np.ones(2)).tolist() == [2, 2]
    assert "braces" in str(f.explain("python"))
