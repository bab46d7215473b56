"""Derivative rules at the level of programs: who applies them, in which mode, and what simplification leaves alone."""

from __future__ import annotations

import numpy as np
import pytest

from tcdsl.autodiff import adjoint, gradient, tangent
from tcdsl.errors import DifferentiationError
from tcdsl.ir.interpreter.interpreter import interpret
from tcdsl.ir.text.parser import parse_program
from tcdsl.ir.text.printer import format_program
from tcdsl.simplification import simplify
from tests.range_checks import verify_deeply

X = np.array([0.5, -1.0, 2.0])
SEED = np.array([1.0, 10.0, 100.0])

# y = 2 x with a rule that says 5, so that who was asked can be told from the numbers; z = y + x.
PULLBACK = """program twice
input x: float64[N]
tensor y: float64[N]
tensor z: float64[N]

y[i] = 2.0 * x[i]  for [i]: 0 <= i < N
z[i] = y[i] + x[i]  for [i]: 0 <= i < N

return z

pullback y by x
| program twice_pullback
| input x: float64[x_0]
| input y: float64[y_0]
| input d_y: float64[d_y_0]
| assert x_0 == y_0
| assert x_0 == d_y_0
| tensor d_x: float64[x_0]
|
| d_x[i] = 5.0 * d_y[i]  for [i]: 0 <= i < x_0
|
| return d_x
"""

PUSHFORWARD = """program cube
input x: float64[N]
tensor y: float64[N]

y[i] = x[i] * x[i] * x[i]  for [i]: 0 <= i < N

return y

pushforward y by x
| program cube_pushforward
| input x: float64[x_0]
| input y: float64[y_0]
| input t_x: float64[t_x_0]
| assert x_0 == y_0
| assert x_0 == t_x_0
| tensor t_y: float64[x_0]
|
| t_y[i] = 3.0 * x[i] * x[i] * t_x[i]  for [i]: 0 <= i < x_0
|
| return t_y
"""


def outputs(program, *arrays):
    verify_deeply(program)
    assert parse_program(format_program(program)) == program
    return interpret(program, arrays).outputs


def test_text_parses_back():
    for text in (PULLBACK, PUSHFORWARD):
        program = parse_program(text)
        verify_deeply(program)
        assert format_program(program).split() == text.split()


def test_a_rule_for_either_mode_serves_both():
    program = parse_program(PULLBACK)
    np.testing.assert_array_equal(outputs(adjoint(program, ["x"]), X, SEED)[1], 6 * SEED)
    np.testing.assert_array_equal(outputs(tangent(program, ["x"]), X, SEED)[1], 6 * SEED)
    program = parse_program(PUSHFORWARD)
    np.testing.assert_allclose(outputs(adjoint(program, ["x"]), X, SEED)[1], 3 * X**2 * SEED)
    np.testing.assert_allclose(outputs(tangent(program, ["x"]), X, SEED)[1], 3 * X**2 * SEED)


def test_second_derivatives_apply_the_rule_again():
    first = adjoint(parse_program(PUSHFORWARD), ["x"], keep_outputs=False)
    np.testing.assert_allclose(
        outputs(tangent(first, ["x"], keep_outputs=False), X, SEED, SEED)[0], 6 * X * SEED * SEED
    )
    np.testing.assert_allclose(
        outputs(adjoint(first, ["x"], keep_outputs=False), X, SEED, SEED)[0], 6 * X * SEED * SEED
    )
    # The rule says that y = 2 x has the derivative 5, also where y itself is differentiated once more.
    squared = PULLBACK.replace("y[i] + x[i]", "y[i] * y[i]")
    first = adjoint(parse_program(squared), ["x"], keep_outputs=False)
    np.testing.assert_allclose(outputs(first, X, SEED)[0], 5 * 2 * 2 * X * SEED)
    np.testing.assert_allclose(
        outputs(tangent(first, ["x"], keep_outputs=False), X, SEED, SEED)[0], 5 * 2 * 5 * SEED**2
    )


def test_simplification_keeps_what_a_rule_stands_for():
    # w computes what y computes, without the rule.
    text = PULLBACK.replace("tensor z:", "tensor w: float64[N]\ntensor z:").replace(
        "z[i] = y[i] + x[i]", "z[i] = y[i] + w[i]"
    )
    text = text.replace("\nz[i] =", "\nw[i] = 2.0 * x[i]  for [i]: 0 <= i < N\nz[i] =")
    program = simplify(parse_program(text))
    np.testing.assert_array_equal(outputs(adjoint(program, ["x"]), X, SEED)[1], 7 * SEED)


def test_simplification_drops_rules_of_dead_tensors():
    program = parse_program(PULLBACK.replace("z[i] = y[i] + x[i]", "z[i] = x[i]"))
    made = simplify(program)
    assert not made.rules
    assert [tensor.name for tensor in made.tensors] == ["z"]


def test_constants_have_no_derivative():
    text = PULLBACK.replace("input x: float64[N]\n", "input x: float64[N]\ninput s: float64\n", 1)
    text = text.replace("pullback y by x", "pullback y by x with s").replace(
        "| input x:", "| input s: float64\n| input x:"
    )
    program = parse_program(text)
    np.testing.assert_array_equal(outputs(adjoint(program, ["x"]), X, np.float64(3), SEED)[1], 6 * SEED)
    with pytest.raises(DifferentiationError, match="the pullback of y gives no derivative by s, which is no argument"):
        adjoint(program, ["s"])


def test_a_rule_that_is_not_linear_has_no_transpose():
    program = parse_program(PULLBACK.replace("5.0 * d_y[i]", "d_y[i] * d_y[i]"))
    np.testing.assert_array_equal(outputs(adjoint(program, ["x"]), X, SEED)[1], SEED**2 + SEED)
    with pytest.raises(DifferentiationError, match="not linear in its cotangents"):
        tangent(program, ["x"])


def test_the_rule_of_the_function_around_holds():
    outer = PULLBACK.split("\npullback")[1].replace("5.0", "7.0")
    program = parse_program(PULLBACK + "\npullback" + outer)
    np.testing.assert_array_equal(outputs(adjoint(program, ["x"]), X, SEED)[1], 8 * SEED)


def test_gradients_of_losses_use_rules():
    text = PULLBACK.replace("tensor z: float64[N]", "tensor z: float64").replace("z[i] = y[i] + x[i]", "z[()] += y[i]")
    np.testing.assert_array_equal(outputs(gradient(parse_program(text), ["x"]), X)[1], [5.0, 5.0, 5.0])


# y = 2 x and z = 3 x, with a rule for both that says 50 and 70, and one of the function around them that says 5 for y.
TWO_OUTPUTS = """program pair
input x: float64[N]
tensor y: float64[N]
tensor z: float64[N]
tensor s: float64[N]

y[i] = 2.0 * x[i]  for [i]: 0 <= i < N
z[i] = 3.0 * x[i]  for [i]: 0 <= i < N
s[i] = y[i] + z[i]  for [i]: 0 <= i < N

return s

pullback y, z by x
| program pair_pullback
| input x: float64[x_0]
| input y: float64[y_0]
| input z: float64[z_0]
| input d_y: float64[d_y_0]
| input d_z: float64[d_z_0]
| assert x_0 == y_0
| assert x_0 == z_0
| assert x_0 == d_y_0
| assert x_0 == d_z_0
| tensor d_x: float64[x_0]
|
| d_x[i] = 50.0 * d_y[i] + 70.0 * d_z[i]  for [i]: 0 <= i < x_0
|
| return d_x
"""


def test_an_output_belongs_to_the_rule_around_and_the_others_to_their_own():
    np.testing.assert_array_equal(outputs(adjoint(parse_program(TWO_OUTPUTS), ["x"]), X, SEED)[1], 120 * SEED)
    program = parse_program(TWO_OUTPUTS + "\npullback" + PULLBACK.split("\npullback")[1])
    np.testing.assert_array_equal(outputs(adjoint(program, ["x"]), X, SEED)[1], 75 * SEED)
    np.testing.assert_array_equal(outputs(tangent(program, ["x"]), X, SEED)[1], 75 * SEED)


def test_a_value_with_a_rule_is_not_read_in_place_of_the_same_value_elsewhere():
    text = PULLBACK.replace("z[i] = y[i] + x[i]", "z[i] = 2.0 * x[i]").replace("return z", "return y, z")
    program = simplify(parse_program(text))
    np.testing.assert_array_equal(outputs(adjoint(program, ["x"], outputs=["z"]), X, SEED)[2], 2 * SEED)
