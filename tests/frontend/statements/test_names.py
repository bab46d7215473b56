"""What names mean: the rules of section "Names", one test per clause."""

from __future__ import annotations

import ast
import math

import numpy as np
import pytest

from tcdsl.errors import DslSyntaxError
from tcdsl.frontend.names.language_functions import LANGUAGE_FUNCTIONS
from tcdsl.frontend.names.name_resolution import (
    GlobalNumber,
    IndexName,
    index_meaning,
    index_names,
    value_meaning,
)
from tcdsl.frontend.staging.target_states import UNBOUND
from tests.frontend.statements.small_function import SmallFunction, run, sketch

X = np.arange(6.0)


def surroundings(**layers: dict[str, object]) -> SmallFunction:
    return SmallFunction("", {}, known=layers.get("own"), enclosing=layers.get("outer"), module=layers.get("module"))


def test_a_bound_name_in_a_subscript_is_its_value() -> None:
    np.testing.assert_array_equal(run("O[i] = x[k] * x[i]", x=X, known={"k": 2}), 2 * X)


def test_one_letter_is_an_index_variable_whatever_surrounds_the_function() -> None:
    np.testing.assert_array_equal(run("O[i] = x[i]", x=X, enclosing={"i": 3}, module={"i": 4}), X)
    assert index_meaning("i", surroundings(outer={"i": 3}, module={"i": 4})) == IndexName("i")
    assert index_meaning("α", surroundings(module={"α": 4})) == IndexName("α")


def test_longer_names_are_looked_up_in_enclosing_functions() -> None:
    np.testing.assert_array_equal(run("O[i] = x[i + shift], i < 4", x=X, enclosing={"shift": 2}), X[2:])


def test_longer_names_are_index_variables_elsewhere() -> None:
    np.testing.assert_array_equal(run("O[row] = x[row]", x=X), X)
    # A function or an array of that name in the module does not matter.
    np.testing.assert_array_equal(run("O[row] = x[row]", x=X, module={"row": np.zeros(3), "col": len}), X)


def test_a_number_of_the_module_is_an_error_that_says_to_pass_it() -> None:
    with pytest.raises(DslSyntaxError, match="`shift` is a number of the module") as caught:
        run("O[i] = x[i + shift]", x=X, module={"shift": 2})
    assert "pass it as a parameter (`*, shift`)" in str(caught.value)
    assert index_meaning("shift", surroundings(module={"shift": np.float32(2)})) == GlobalNumber(np.float32(2))


def test_upper_case_names_are_ordinary_python() -> None:
    np.testing.assert_array_equal(run("O[i] = x[i + K], i < 4", x=X, module={"K": 2}), X[2:])
    with pytest.raises(DslSyntaxError, match="`K` is not defined"):
        run("O[i] = x[i + K]", x=X)


def test_in_values_the_index_variables_of_the_statement_come_first() -> None:
    np.testing.assert_array_equal(run("O[i] = x[i] * i", x=X, module={"i": 100}), X * np.arange(6))
    # s is in no subscript: it is the module's.
    np.testing.assert_array_equal(run("O[i] = x[i] * s", x=X, module={"s": 100}), X * 100)
    np.testing.assert_array_equal(run("O[i] = x[i] * i", x=X, known={"i": 2})[2], 2 * X[2])


def test_conditions_and_generators_follow_the_rule_for_subscripts() -> None:
    np.testing.assert_array_equal(run("O[i] = x[i], i < m", x=X, known={"m": 4}), X[:4])
    with pytest.raises(DslSyntaxError, match="the condition mentions `m`"):
        run("O[i] = x[i], i < m", x=X, module={"m": 4})
    with pytest.raises(DslSyntaxError, match="`count` is a number of the module"):
        run("O[()] = sum(x[j] for j in range(count))", x=X, module={"count": 4})


def test_called_subscripted_and_dotted_names_follow_the_rule_for_values() -> None:
    class Config:
        offset = 2

    names = {"ids": np.array([5, 4, 3]), "config": Config, "half": lambda n: n // 2}
    np.testing.assert_array_equal(run("O[i] = x[ids[i]]", x=X, module=names), [5, 4, 3])
    np.testing.assert_array_equal(run("O[i] = x[i + config.offset], i < 4", x=X, module=names), X[2:])
    np.testing.assert_array_equal(run("O[i] = x[half(i)], i < 4", x=X, module=names), [0, 0, 1, 1])


def test_user_functions_win_over_primitives() -> None:
    np.testing.assert_array_equal(run("O[i] = relu(x[i])", x=X, module={"relu": lambda v: v + 1}), X + 1)
    np.testing.assert_array_equal(run("O[i] = relu(x[i])", x=-X), 0 * X)
    assert value_meaning("relu", surroundings()) is LANGUAGE_FUNCTIONS["relu"]
    assert value_meaning("exp", surroundings(module={"exp": math.exp})) is math.exp
    assert value_meaning("sum", surroundings()) is sum
    assert value_meaning("pi", surroundings()) == math.pi
    assert value_meaning("nonsense", surroundings()) is UNBOUND


def test_generator_variables_hide_everything_else() -> None:
    np.testing.assert_array_equal(run("O[()] = sum(x[j] for j in range(3))", x=X, known={"j": 5}), 3)
    np.testing.assert_array_equal(run("O[j] = x[j] + sum(x[j] for j in range(3))", x=X), X + 3)


def test_the_scope_of_an_index_variable_is_its_statement() -> None:
    np.testing.assert_array_equal(run("A[i] = x[i], i < 2\nO[i] = x[i] + A[0]", x=X), X)


def test_order_of_first_occurrence() -> None:
    node = ast.parse("T[b, a] += f(x[c, a]) * sum(y[e] for d in range(3)), q < 2").body[0]
    assert isinstance(node, ast.AugAssign)
    assert isinstance(node.value, ast.Tuple)
    target = node.target.slice.elts
    found = index_names(target, node.value.elts[0], node.value.elts[1:], surroundings())
    assert found == ("b", "a", "c", "e", "q")
    assert sketch("O[b, a] += A[a, k] * A[b, k]", A=np.ones((3, 3))).variables == ("b", "a", "k")


def test_a_fresh_target_is_not_read_from_the_surroundings() -> None:
    with pytest.raises(DslSyntaxError, match="`O` is read by the statement that creates it"):
        run("O[i] += O[i] * x[i]", x=X, module={"O": np.ones(6)}, enclosing={"O": np.ones(6)})


def test_undefined_names_are_reported_together_and_once() -> None:
    with pytest.raises(DslSyntaxError) as caught:
        run("O[i] = first * x[i] + second(x[i]) + first, third > 2", x=X)
    facts = [fault.fact for fault in caught.value.diagnostics]
    assert facts == ["`first` is not defined", "`second` is not defined"]
    columns = [(fault.span.column, fault.span.end_column) for fault in caught.value.diagnostics if fault.span]
    assert columns == [(7, 12), (22, 28)]
