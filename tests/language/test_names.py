"""What names mean in statements: bound names, index variables, enclosing functions, the module, the language."""

from __future__ import annotations

import linecache
import math
import types
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tests.language.outcomes import assert_gives, refusal

x = np.array([1.0, 2.0, 3.0, 4.0])
i = 3  # left over in a notebook
shift = 1
scale = 10.0
K = 2
count = 3
settings = types.SimpleNamespace(offset=2, nested={"step": 1})
table = np.array([3, 1, 0, 2])


def half(n):
    return n // 2


def softplus(v):
    return v + 1000


def test_a_name_that_the_function_has_bound_is_that_value() -> None:
    @op
    def f(x, *, k: int):
        y[i] = x[i] * x[k]
        m = 2
        z[i] = x[i], i < m
        w[i] = sum(x[i] * x[j] for j in range(m))
        return y, z, w

    assert_gives(f, x, k=1, wanted=(2 * x, [1, 2], 3 * x))


def test_a_name_that_the_function_binds_later_is_not_bound_yet() -> None:
    @op
    def f(x):
        y[k] = x[k]
        k = 2
        z[i] = x[i] * x[k]
        return y, z

    assert_gives(f, x, wanted=(x, 3 * x))


def test_a_loop_variable_of_the_function_is_bound_after_the_loop_too() -> None:
    @op
    def f(x):
        total = 0
        for k in range(3):
            total += k
        y[i] = x[i] * x[k] * total
        return y

    assert_gives(f, x, wanted=9 * x)


def test_a_one_letter_lower_case_name_is_an_index_variable_whatever_surrounds_the_function() -> None:
    j = 5
    for k in range(2):

        @op
        def f(x):
            y[i] = x[i]
            t[()] += x[j] * x[k]
            z[i] = x[i] + sum(x[k] for k in range(i))
            return y, t, z

        assert_gives(f, x, wanted=(x, 100.0, x.cumsum()))
    assert (i, j, k) == (3, 5, 1)


def test_a_longer_lower_case_name_is_looked_up_in_enclosing_functions() -> None:
    offset = 1
    row = "text"

    @op
    def f(x):
        y[i] = x[i + offset], i >= 0
        z[i] = x[i], i > offset
        return y, z

    assert_gives(f, x, wanted=(x[1:], [0, 0, 3, 4]))
    offset = 2
    assert_gives(f, x, wanted=(x[2:], [0, 0, 0, 4]))
    assert row == "text"


def test_a_longer_lower_case_name_is_an_index_variable_elsewhere() -> None:
    @op
    def f(x):
        y[row] = x[row] * row
        t[()] += x[row]
        u[half] = x[half]
        return y, t, u

    # `half` is a function of the module, which is no number.
    assert_gives(f, x, wanted=(x * np.arange(4), 10.0, x))


def test_a_number_of_the_module_is_an_error_that_says_to_pass_it_as_a_parameter() -> None:
    @op
    def access(x):
        y[i] = x[i + shift]
        return y

    @op
    def target(x):
        y[shift] = x[shift]
        return y

    @op
    def condition(x):
        y[i] = x[i], i < count
        return y

    @op
    def generator(x):
        y[()] = sum(x[j] for j in range(count))
        return y

    for function, name in ((access, "shift"), (target, "shift"), (condition, "count"), (generator, "count")):
        message = refusal(tc.DslSyntaxError, function, x)
        assert f"`{name}` is a number of the module, which an index does not see" in message
        assert f"pass it as a parameter (`*, {name}`)" in message


def test_names_that_start_upper_case_are_ordinary_python() -> None:
    Own = 1

    @op
    def f(x):
        y[i] = x[i + K] * K, i >= 0
        z[i] = x[i + Own], i >= 0
        return y, z

    @op
    def undefined(x):
        y[i] = x[i + Missing]
        return y

    assert_gives(f, x, wanted=(2 * x[2:], x[1:]))
    assert "`Missing` is not defined" in refusal(tc.DslSyntaxError, undefined, x)


def test_in_values_the_index_variables_of_the_statement_come_first() -> None:
    n = 7.0

    @op
    def f(x):
        y[i] = x[i] * i
        z[i] = x[i] * n
        w[n] = x[n] * n
        v[i] = x[i] * scale
        return y, z, w, v

    assert_gives(f, x, wanted=(x * np.arange(4), 7 * x, x * np.arange(4), 10 * x))


def test_in_values_enclosing_functions_come_before_the_module_and_that_before_builtins() -> None:
    scale = 2.0
    count = 4

    def abs(v):
        return v + 500

    def half(n):
        return n * 0.25

    def softplus(v):
        return v + 3

    @op
    def f(x):
        y[i] = x[i] * scale
        z[i] = half(x[i]) + abs(x[i])
        w[i] = x[count * i]
        v = scale * half(x) * count + softplus(x)
        return y, z, w, v

    assert_gives(f, x, wanted=(2 * x, 1.25 * x + 500, x[:1], 3 * x + 3))


def test_functions_of_the_user_win_over_primitives() -> None:
    def relu(v):
        return v * 2

    @op
    def f(x):
        y[i] = relu(x[i])
        z[i] = softplus(x[i])
        w[i] = half(x[i] * 4)
        return y, z, w

    assert_gives(f, x, wanted=(2 * x, x + 1000, 2 * x))


def test_functions_of_math_and_numpy_and_builtins_are_recognized_as_the_primitives() -> None:
    @op
    def f(x):
        a[i] = math.exp(x[i]) + np.exp(x[i]) + exp(x[i])
        b[i] = abs(-x[i]) + np.maximum(x[i], 2.5) + max(x[i], 2.5) + round(x[i])
        c[i] = math.pi + np.pi + pi + math.sqrt(x[i]) + np.tanh(x[i])
        d[i] = pow(x[i], 2) + np.float32(x[i]) + float(x[i]) + np.where(x[i] > 2, 1.0, 0.0)
        return a, b, c, d

    wanted = (
        3 * np.exp(x),
        2 * x + 2 * np.maximum(x, 2.5),
        3 * np.pi + np.sqrt(x) + np.tanh(x),
        x**2 + 2 * x + (x > 2),
    )
    assert_gives(f, x, wanted=wanted)


def test_a_name_that_is_called_subscripted_or_dotted_follows_the_rule_for_values_in_a_subscript_too() -> None:
    @op
    def f(x):
        y[i] = x[table[i]]
        z[i] = x[i + settings.offset], i >= 0
        w[i] = x[half(i)], i < 8
        v[i] = x[i + settings.nested["step"]], i >= 0
        return y, z, w, v

    assert_gives(f, x, wanted=(x[table], x[2:], np.repeat(x, 2), x[1:]))


def test_the_scope_of_an_index_variable_is_its_statement() -> None:
    @op
    def f(x, A):
        y[k] = x[k]
        t[()] += A[k, l]
        z[l, k] = A[l, k] * y[0]
        return y, t, z

    A = np.arange(6.0).reshape(2, 3)
    assert_gives(f, x, A, wanted=(x, 15.0, A))

    @op
    def after(x):
        y[k] = x[k]
        return y * k

    message = refusal(tc.DslSyntaxError, after, x)
    assert "`k` is not defined; an index variable has a meaning only in a tensor statement" in message


def test_the_variable_of_a_generator_hides_what_the_function_has_bound() -> None:
    @op
    def f(x, *, j: int):
        y[i] = x[i] * sum(x[j] for j in range(2)) + j
        return y

    assert_gives(f, x, j=2, wanted=3 * x + 2)


def test_imported_index_letters_are_index_variables() -> None:
    from tcdsl import output
    from tcdsl.indices import i, j, k

    @op
    def f(A, x):
        C = output()
        D = output(2)
        C[i, j] += A[i, k] * A[j, k]
        D[i] = x[i]
        return C, D

    A = np.arange(6.0).reshape(2, 3)
    assert_gives(f, A, x, wanted=(A @ A.T, x[:2]))


def test_a_target_is_not_read_from_around_the_function() -> None:
    @op
    def f(v):
        x[i] += x[i] * v[i]
        return x

    message = refusal(tc.DslSyntaxError, f, np.ones(4))
    assert "`x` is read by the statement that creates it" in message


def test_a_name_that_the_function_writes_later_is_not_read_from_around_it() -> None:
    @op
    def cells(v):
        y[i] = v[i] * x[i]
        x[i] = v[i]
        return y

    @op
    def whole(v):
        y = v * x
        x[i] = v[i]
        return y

    @op
    def size(v):
        y[i] = v[i], i < K
        v.bind_dims(K)
        return y

    @op
    def never(v, *, write: bool):
        if write:
            x[i] = v[i]
        return x

    for function in (cells, whole):
        assert "`x` is read before anything is written to it" in refusal(tc.DslSyntaxError, function, np.ones(4))
    assert "`K` is read before anything is written to it" in refusal(tc.DslSyntaxError, size, np.ones(4))
    assert_gives(never, np.ones(4), write=True, wanted=np.ones(4))
    with pytest.raises(tc.DslSyntaxError, match="`x` is read before anything is written to it"):
        never(np.ones(4), write=False)


def test_a_name_that_is_not_defined_is_reported_at_its_place() -> None:
    @op
    def f(x):
        y[i] = x[i] * factor
        return y

    message = refusal(tc.DslSyntaxError, f, x)
    assert "`factor` is not defined" in message
    lines = message.splitlines()
    assert lines[1].index("factor") == lines[2].index("^")


@pytest.mark.parametrize("value", [2, 2.5])
def test_a_parameter_may_be_an_index_letter(value) -> None:
    @op
    def f(x, *, k):
        y[i] = x[i] * k
        return y

    assert_gives(f, x, k=value, wanted=value * x)


def test_a_dict_or_a_list_is_ordinary_python() -> None:
    seen = {}
    items = [0, 0]

    @op
    def f(x, *, key):
        seen[key] = x + 1
        items[1] += 5
        own = {}
        own["a"] = seen[key]
        y[i] = own["a"][i] * items[1]
        return y

    f.interpret(x, key="one")
    items[1] = 0
    assert_gives(f, x, key="two", wanted=(x + 1) * 5)
    assert set(seen) == {"one", "two"}


def test_a_list_left_over_around_the_function_is_no_target_of_an_index_list() -> None:
    y = [1, 2, 3]
    z = {}

    @op
    def f(x):
        y[p] += x[p]
        z[p, q] = x[p] * x[q]
        return y, z

    assert_gives(f, x, wanted=(x, np.outer(x, x)))
    assert (y, z) == ([1, 2, 3], {})


ALPHABETS = """\
from tcdsl import op

@op
def f(α, größe: "real[höhe]"):
    höhe = größe.shape[0]
    β[ä, a] = α[ä] * größe[a]
    γ: real[höhe, 2]
    γ[ж, é] += max(β[ä, ж] + a for ä in range(3) for a in range(höhe)) * α[é]
    return β, γ, höhe * α

@op
def refused(ö, A):
    y[ä] = ö[ä] * A[ä, ä]
    return y
"""


def defined(text: str, name: str) -> dict[str, Any]:
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    namespace: dict[str, Any] = {}
    exec(compile(text, name, "exec"), namespace)
    return namespace


def test_names_in_any_alphabet() -> None:
    namespace = defined(ALPHABETS, "<names in other alphabets>")
    f = namespace["f"]
    v, w = np.array([1.0, 2.0, -1.0]), np.array([3.0, 4.0])
    product = np.outer(v, w)
    assert_gives(f, v, w, wanted=(product, (product.max(0) + 1)[:, None] * v[:2], 2 * v))
    np.testing.assert_array_equal(tc.grad(lambda v: f(v, w)[0].sum())(v), [7.0, 7.0, 7.0])
    assert "axis 0 of ö, which has the extent 2" in refusal(tc.ShapeError, namespace["refused"], w, np.zeros((3, 3)))


@pytest.mark.parametrize("name", ["floor", "exists", "floord", "ceild", "rat", "MAX", "Infinity", "Exists"])
def test_words_of_other_notations_are_names_like_others(name: str) -> None:
    size, index = name, name.lower()
    text = (
        "from tcdsl import op\n@op\ndef f(x):\n"
        f"    {size}, = x.shape\n    y = output({size})\n    y[{index}_2] = x[{index}_2] * {size}\n    return y\n"
        f"@op\ndef g(x):\n    y[()] = sum(x[{index}])\n    z[{index}] = x[{index}]\n    return y, z\n"
    )
    namespace = defined(text, f"<words {name}>")
    x = np.array([1.0, 2.0, 5.0])
    assert_gives(namespace["f"], x, wanted=3 * x)
    assert_gives(namespace["g"], x, wanted=(8.0, x))
