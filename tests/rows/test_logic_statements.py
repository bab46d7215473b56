"""Assignments in logic notation, in `@op` and `@cd`."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tcdsl.errors import ShapeError
from tcdsl.rows.ranks import RowRanks
from tests.rows.staged import rowed, run
from tests.rows.test_einsum import product, reference

rng = np.random.default_rng(0)
A, B, X = rng.uniform(0.5, 1.5, (3, 4)), rng.uniform(0.5, 1.5, (4, 5)), rng.uniform(0.5, 1.5, 4)


class TestForms:
    def test_accumulate_onto_a_fresh_target(self) -> None:
        @op
        def f(a, b):
            c["@"] += a * b
            return c

        np.testing.assert_allclose(f(A, B), A @ B)

    def test_accumulate_onto_a_target_that_exists(self) -> None:
        @op
        def f(a, b):
            c["@"] += a * b
            c["@"] += a * b
            c["ij;jk=>ik"] -= 0.5 * a * b
            return c

        np.testing.assert_allclose(f(A, B), 1.5 * A @ B)

    def test_the_reset_form_starts_anew(self) -> None:
        @op
        def f(a, b):
            c["@"] = sum(a * b)
            c["@"] = sum(a * b)
            c["ij=>i0"] = max(a)
            return c

        np.testing.assert_allclose(f(A, B), np.pad(A.max(1)[:, None], ((0, 0), (0, 4)), constant_values=-np.inf))

    def test_every_reset_form(self) -> None:
        @op
        def f(a):
            s["ij=>i"] = sum(a)
            p["ij=>i"] = prod(a)
            u["ij=>i"] = max(a)
            v["ij=>i"] = min(a)
            x["ij;=>i"] = any(a > 1.2)
            y["ij;=>i"] = all(a > 0.6)
            return s, p, u, v, x, y

        for found, numpy in zip(f(A), (np.sum, np.prod, np.max, np.min), strict=False):
            np.testing.assert_allclose(found, numpy(A, axis=1))
        assert f(A)[4].tolist() == (A > 1.2).any(1).tolist()
        assert f(A)[5].tolist() == (A > 0.6).all(1).tolist()

    def test_a_plain_store_keeps_the_cells_that_it_does_not_write(self) -> None:
        @cd
        def f(c, x):
            c["i=>i1"] = x

        c = np.zeros((4, 3))
        f(c, X)
        np.testing.assert_array_equal(c, np.stack([np.zeros(4), X, np.zeros(4)], 1))

    def test_the_right_hand_side_is_read_before_the_store(self) -> None:
        @cd
        def f(c):
            c["ij=>ji"] = c

        c = np.arange(9.0).reshape(3, 3)
        f(c)
        assert c.tolist() == np.arange(9).reshape(3, 3).T.tolist()

    def test_in_place(self) -> None:
        @cd
        def f(c, a, b):
            c["@"] += a * b
            t["T"] = c
            c["ij=>ji"] = t
            c["."] -= 1.0

        c = np.ones((3, 5))
        f(c, A, B)
        np.testing.assert_allclose(c, A @ B)

    def test_the_logic_may_be_configuration(self) -> None:
        settings = SimpleNamespace(spec="ij=>j")
        row = "ij"

        @op
        def f(a, *, spec):
            c[spec] += a
            d[settings.spec] += a
            e[f"{row}=>i"] += a
            assign(g, "=:+", a, logic=spec)
            return c, d, e, g

        c, d, e, g = f(A, spec="ij=>")
        np.testing.assert_allclose(c, A.sum())
        np.testing.assert_allclose(d, A.sum(0))
        np.testing.assert_allclose(e, A.sum(1))
        np.testing.assert_allclose(g, A.sum())
        np.testing.assert_allclose(f(A, spec="ij=>i")[0], A.sum(1))

    def test_a_dict_with_string_keys_stays_a_dict(self) -> None:
        @op
        def f(x):
            parts = {}
            parts["@"] = x
            parts["T"] = parts["@"] * 2
            parts["T"] += 1
            return parts["@"] + parts["T"]

        np.testing.assert_allclose(f(X), 3 * X + 1)

    def test_sub_expressions_are_ordinary_arithmetic(self) -> None:
        @op
        def f(a, b, x):
            c["@"] = sum((a * x) * relu(b - 1))
            d["ij;j=>i"] = sum((a - a.mean()) * (2 * x + 1)[::-1])
            return c, d

        c, d = f(A, B, X)
        np.testing.assert_allclose(c, (A * X) @ np.maximum(B - 1, 0))
        np.testing.assert_allclose(d, (A - A.mean()) @ (2 * X + 1)[::-1])

    def test_configuration_chooses_the_value(self) -> None:
        @op
        def f(a, b, *, tropical):
            c["@"] >>= a + b if tropical else a * b
            return c

        np.testing.assert_allclose(f(A, B, tropical=True), (A[:, :, None] + B).max(1))
        np.testing.assert_allclose(f(A, B, tropical=False), (A[:, :, None] * B).max(1))

    def test_a_declared_target(self) -> None:
        @op
        def f(x):
            (n,) = x.shape
            t = output(2 * n)
            t["i => 2*i"] = x
            t["i => 2*i + 1"] = -x
            u = output(3)
            u["i=>i"] += x
            v: real[2, n]
            v["."] += x
            return t, u, v

        t, u, v = f(X)
        np.testing.assert_allclose(t, np.stack([X, -X], 1).ravel())
        np.testing.assert_allclose(u, X[:3])
        np.testing.assert_allclose(v, [X, X])

    def test_gradients(self) -> None:
        @op
        def f(a, b, x):
            c["@"] = sum(a * b)
            c["ij;j=>i0"] += exp(a) / x
            d["T"] = -c
            e["...i;i=>..."] = prod(a + x)
            return d, e

        tc.check_grads(f, (A, B, X))

    def test_program_text(self, golden: Callable[[str, str], None]) -> None:
        @op
        def f(a, b, x):
            c["@"] = sum(relu(a) * b)
            c["...j => j0"] += c
            y["ij;ij;j=>i"] >>= where(a > x, a, x)
            return c, y

        golden("ir/logic", str(f.explain("ir", A, B[:, :4], X)))


class TestAccumulators:
    """Every operator of the language, onto a fresh target and onto one that exists."""

    def test_python_spelling(self) -> None:
        @op
        def f(a, b):
            add["ij;jk=>ik"] += a * b
            subtract["ij;jk=>ik"] -= a * b
            multiply["ij;jk=>ik"] *= a * b
            divide["ij;jk=>ik"] /= a * b
            power["ij;jk=>ik"] **= a * b
            greatest["ij;jk=>ik"] >>= a * b
            least["ij;jk=>ik"] <<= a * b
            return add, subtract, multiply, divide, power, greatest, least

        names = ("add", "subtract", "multiply", "divide", "power", "max", "min")
        for name, found in zip(names, f(A, B), strict=True):
            np.testing.assert_allclose(found, reference(["ij", "jk"], "ik", [A, B], product, name), err_msg=name)

    def test_every_operator_of_assign_starts_anew_with_a_colon(self) -> None:
        @cd
        def f(add, subtract, multiply, divide, power, greatest, least, either, both, gate, clamped, a, b):
            assign(add, "=:+", a * b, logic="@")
            assign(subtract, "=:-", a * b, logic="@")
            assign(multiply, "=:*", a * b, logic="@")
            assign(divide, "=:/", a * b, logic="@")
            assign(power, "=:**", a * b, logic="@")
            assign(greatest, "=:@^", a * b, logic="@")
            assign(least, "=:^^", a * b, logic="@")
            assign(either, "=:||", a * b, logic="@")
            assign(both, "=:&&", a * b, logic="@")
            assign(gate, "=:?/", a * b, logic="@")
            assign(clamped, "=:?^", a * b, logic="@")

        names = ("add", "subtract", "multiply", "divide", "power", "max", "min", "or", "and", "relu_gate", "sat01_gate")
        targets = [np.full((3, 5), 7.0) for _ in names]
        a, b = np.where(A > 1, A, 0), B - 1
        f(*targets, a, b)
        for name, found in zip(names, targets, strict=True):
            np.testing.assert_allclose(found, reference(["ij", "jk"], "ik", [a, b], product, name), err_msg=name)

    def test_every_operator_of_assign_accumulates_without_a_colon(self) -> None:
        @cd
        def f(add, subtract, multiply, divide, power, greatest, least, either, both, gate, clamped, a):
            assign(add, "=+", a)
            assign(subtract, "=-", a)
            assign(multiply, "=*", a, logic=".")
            assign(divide["."], "=/", a)
            assign(power, "=**", a)
            assign(greatest, "=@^", a)
            assign(least, "=^^", a)
            assign(either, "=||", a)
            assign(both, "=&&", a)
            assign(gate, "=?/", a)
            assign(clamped, "=?^", a)

        held, a = np.array([0.3, 0.0, 2.0, -1.0, 0.5]), np.array([1.5, 2.0, 0.0, 3.0, 0.25])
        targets = [held.copy() for _ in range(11)]
        with np.errstate(all="ignore"):
            f(*targets, a)
            expected = [
                held + a, held - a, held * a, held / a, held**a, np.maximum(held, a), np.minimum(held, a),
                ((held != 0) | (a != 0)), ((held != 0) & (a != 0)), np.where(held > 0, a, 0),
                np.where((held > 0) & (held < 1), a, 0),
            ]  # fmt: skip
        for found, wanted in zip(targets, expected, strict=True):
            np.testing.assert_allclose(found, wanted)

    def test_assign_alone_stores(self) -> None:
        @cd
        def f(c, a):
            assign(c, "=:", a, logic="T")

        c = np.zeros((4, 3))
        f(c, A)
        np.testing.assert_array_equal(c, A.T)

    def test_logical_operators(self) -> None:
        @op
        def f(a):
            c["ij;=>i"] |= a > 1.4
            d["ij;=>j"] &= a > 0.6
            return c, d

        c, d = f(A)
        assert c.tolist() == (A > 1.4).any(1).tolist()
        assert d.tolist() == (A > 0.6).all(0).tolist()


class TestPrimitives:
    """The logic connects the operands of the outermost primitive, whichever it is and however it is written."""

    def test_operators(self) -> None:
        @op
        def f(a, b):
            c0["ij;jk=>ijk"] = a + b
            c1["ij;jk=>ijk"] = a - b
            c2["ij;jk=>ijk"] = a * b
            c3["ij;jk=>ijk"] = a / b
            c4["ij;jk=>ijk"] = a**b
            c5["ij;jk=>ijk"] = a % b
            c6["ij;jk=>ijk"] = a // b
            c7["ij;jk=>ijk"] = a < b
            c8["ij;jk=>ijk"] = a <= b
            c9["ij;jk=>ijk"] = a > b
            d0["ij;jk=>ijk"] = a >= b
            d1["ij;jk=>ijk"] = a == b
            d2["ij;jk=>ijk"] = a != b
            d3["ij;jk=>ijk"] = a and b
            d4["ij;jk=>ijk"] = a or b
            d5["ij=>ji"] = -a
            d6["ij=>ji"] = not a
            d7["ij=>ji"] = +a
            return c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, d0, d1, d2, d3, d4, d5, d6, d7

        a, b = np.round(A * 2), np.round(B * 2)
        left, right = a[:, :, None], b[None]
        expected = [
            left + right, left - right, left * right, left / right, left**right, left % right, left // right,
            left < right, left <= right, left > right, left >= right, left == right, left != right,
            (left != 0) & (right != 0), (left != 0) | (right != 0), -a.T, a.T == 0, a.T,
        ]  # fmt: skip
        for found, wanted in zip(f(a, b), expected, strict=True):
            np.testing.assert_allclose(found, wanted)

    def test_functions(self) -> None:
        @op
        def f(a, b):
            c0["ij;jk=>ijk"] = max(a, b)
            c1["ij;jk=>ijk"] = np.minimum(a, b)
            c2["ij;jk=>ijk"] = relu_gate(a - 1, b)
            c3["ij;jk=>ijk"] = fst(a, b)
            c4["ij;jk=>ijk"] = snd(a, b)
            c5["ij=>ji"] = relu(a - 1)
            c6["ij=>ji"] = np.exp(a)
            c7["ij=>ji"] = sat01(a)
            c8["ij;jk;j=>ik"] = sum(fma(a, b, a[0]))
            c9["ij;jk;j=>ijk"] = where(a > 1, b, a[0])
            return c0, c1, c2, c3, c4, c5, c6, c7, c8, c9

        left, right = A[:, :, None], B[None]
        full = np.broadcast_to
        expected = [
            np.maximum(left, right), np.minimum(left, right), np.where(left > 1, right, 0), full(left, (3, 4, 5)),
            full(right, (3, 4, 5)), np.maximum(A - 1, 0).T, np.exp(A).T, np.clip(A, 0, 1).T,
            A @ B + A[0].sum(), np.where(left > 1, right, A[0][:, None]),
        ]  # fmt: skip
        for found, wanted in zip(f(A, B), expected, strict=True):
            np.testing.assert_allclose(found, wanted)

    def test_a_bare_tensor_a_call_and_a_number(self) -> None:
        @op
        def twice(x):
            return 2 * x

        @op
        def f(a):
            c["T"] = a
            d["T"] = twice(a)
            e["=>"] = 3.0
            g["T"] = a @ a.T
            return c, d, e, g

        c, d, e, g = f(A)
        np.testing.assert_allclose(c, A.T)
        np.testing.assert_allclose(d, 2 * A.T)
        assert e == 3
        np.testing.assert_allclose(g, A @ A.T)


class TestRows:
    W, V = rng.uniform(size=(4, 3)), rng.uniform(size=(2, 3))

    def test_compose(self) -> None:
        @op
        def f(w, x):
            y["@"] = sum(w * x)
            return y

        (found,) = run(f, rowed(self.W, input=1), rowed(self.V, batch=1))
        np.testing.assert_allclose(found.array, self.V @ self.W.T)
        assert found.rows == RowRanks(batch=1, output=1)

    def test_compose_and_accumulate(self) -> None:
        @op
        def f(w, x, b):
            y["@"] = sum(fma(w, x, b))
            return y

        (found,) = run(f, rowed(self.W, input=1), rowed(self.V, batch=1), rng.uniform(size=4) * 0 + 1)
        np.testing.assert_allclose(found.array, self.V @ self.W.T + 3)

    @pytest.mark.parametrize("shape", [(), (2,), (3, 2), (5, 3, 2)])
    def test_compose_arrays_without_rows_and_add(self, shape: tuple[int, ...]) -> None:
        A, B = rng.uniform(size=(3, 4)), rng.uniform(size=(5, 4, 2))
        c = rng.uniform(size=shape)

        @op
        def f(a, b, c):
            y["@"] = sum(fma(a, b, c))
            return y

        (found,) = run(f, A, B, c)
        # Each of the terms of the sum adds it.
        np.testing.assert_allclose(found.array, A @ B + 4 * c)

    def test_a_store_of_fma_adds_once(self) -> None:
        A, B, c = rng.uniform(size=(3, 4)), rng.uniform(size=(4, 2)), rng.uniform(size=2)

        @op
        def f(a, b, c):
            y["@"] = fma(a, b, c)
            return y

        (found,) = run(f, A, B, c)
        np.testing.assert_allclose(found.array, A @ B + c)
        (found,) = run(f, rowed(self.W, input=1), rowed(self.V, batch=1), rng.uniform(size=4) * 0 + 1)
        np.testing.assert_allclose(found.array, self.V @ self.W.T + 1)
        assert found.rows == RowRanks(batch=1, output=1)

    @pytest.mark.parametrize(("combine", "written"), [("div", "/"), ("pow", r"\*\*")])
    def test_quotients_and_powers_do_not_compose(self, combine: str, written: str) -> None:
        @op
        def f(a, b):
            if combine == "div":
                y["@"] = sum(a / b)
            else:
                y["@"] += a**b
            return y

        message = f'`{written}` with the logic "@", which adds up products'
        for call in (lambda: f(self.W, self.V.T), lambda: tc.einsum("@", self.W, self.V.T, combine=combine)):
            with pytest.raises(tc.DslSyntaxError, match=message):
                call()

    def test_what_is_added_has_no_more_axes_than_the_product(self) -> None:
        @op
        def f(a, b, c):
            y["@"] = sum(fma(a, b, c))
            return y

        with pytest.raises(ShapeError, match="the third operand has rank 3, and the product has rank 2"):
            run(f, rng.uniform(size=(3, 4)), rng.uniform(size=(4, 2)), rng.uniform(size=(1, 3, 2)))

    def test_transpose(self) -> None:
        @op
        def f(w):
            y["T"] = w
            return y

        (found,) = run(f, rowed(rng.uniform(size=(2, 4, 3)), input=2))
        assert found.rows == RowRanks(output=2, input=1)
        assert found.array.shape == (4, 3, 2)

    def test_pointwise_onto_a_target_with_rows(self) -> None:
        @cd
        def f(y, b):
            y["."] += b
            y["...|...->... => ...|..."] = b

        y = rowed(np.zeros((2, 3)), batch=1)
        run(f, y, np.array([1.0, 2.0, 3.0]), memory=True)
        assert y.array.tolist() == [[1, 2, 3], [1, 2, 3]]


def raised(function: Callable[..., Any], *arguments: Any) -> str:
    with pytest.raises(tc.TcdslError) as caught:
        function(*arguments)
    return str(caught.value)


def marked(message: str) -> str:
    """What the caret stands under."""
    lines = message.splitlines()
    place = next(k for k, line in enumerate(lines) if line.strip() and not line.strip("^ "))
    start, stop = lines[place].index("^"), lines[place].rindex("^") + 1
    return lines[place - 1][start:stop]


class TestFaults:
    def test_a_plain_store_that_would_sum(self) -> None:
        @op
        def f(a, b):
            c["@"] = a * b
            return c

        assert "`=` writes each cell once, but `j` is not on the target c" in raised(f, A, B)

    def test_malformed_specs_show_the_place(self) -> None:
        @op
        def f(a, b):
            c["ij;jk=ik"] += a * b
            return c

        message = raised(f, A, B)
        assert "an axis is expected here, not `=`" in message
        assert marked(message) == "="

    def test_ranks_that_do_not_fit_show_the_operand(self) -> None:
        @op
        def f(a, b):
            c["ij;jkl=>ik"] += a * b
            return c

        message = raised(f, A, B)
        assert "the spec has 3 output axes here, but the operand has only 2" in message
        assert marked(message) == "jkl"

    def test_extents_that_differ_show_the_axis(self) -> None:
        @op
        def f(a, b):
            c["ij;jk=>ik"] += a * b
            return c

        message = raised(f, A, A)
        assert "the index `j` runs over axis 1 of a, which has the extent 4, and over axis 0 of b" in message
        assert marked(message) == "j"

    def test_a_target_of_another_rank(self) -> None:
        @cd
        def f(c, a):
            c["ij=>i"] += a

        message = raised(f, np.zeros((3, 1)), A)
        assert "the result has 1 output axis here, but the target has 2" in message
        assert marked(message) == "i"

    def test_a_target_does_not_stretch(self) -> None:
        @cd
        def f(c, a):
            c["... => ..."] += a

        assert "the value does not broadcast to the target" in raised(f, np.zeros((1, 4)), A)

    def test_operands_and_primitive_differ_in_number(self) -> None:
        @op
        def f(a, b):
            c["ij=>i"] += a * b
            return c

        assert "the spec has 1 operand, but 2 are given" in raised(f, A, B)

    def test_conditions_belong_to_index_lists(self) -> None:
        @op
        def f(a):
            assign(c, "=:+", a, a > 0, logic="ij=>i")
            return c

        assert "a statement in logic notation has a value and nothing else" in raised(f, A)

    def test_a_string_among_indices(self) -> None:
        @op
        def f(a):
            c["ij=>i", i] += a[i, j]
            return c

        assert "a string among indices" in raised(f, A)

    def test_an_index_list_and_a_logic(self) -> None:
        @op
        def f(a):
            assign(c[i], "=:+", a, logic="ij=>i")
            return c

        message = raised(f, A)
        assert "an index list and a logic at once" in message
        assert marked(message) == "c[i]"

    def test_a_logic_that_is_none(self) -> None:
        @op
        def f(a):
            assign(c, "=:+", a, logic=3)
            return c

        assert "`logic=` is a int" in raised(f, A)

    def test_all_faults_are_reported_together(self) -> None:
        @op
        def f(a):
            c["ij>i"] += a
            d["ijk=>i"] += a
            return c, d

        assert raised(f, A).startswith("2 faults")

    def test_a_spec_from_elsewhere_is_shown(self) -> None:
        @op
        def f(a, *, spec):
            c[spec] += a
            return c

        message = raised(lambda a: f(a, spec="ij=>i%"), A)
        assert "    ij=>i%\n         ^" in message
