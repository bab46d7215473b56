"""Code that defines primitives: functions with a parameter ``projections``, which speak of the operation's operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd
from tcdsl.frontend.arrays.arithmetic import record_elementwise
from tcdsl.frontend.logics.logic_staging import projections_of
from tcdsl.frontend.logics.slots import run_projected
from tcdsl.frontend.staging.session import session_of
from tcdsl.frontend.staging.target_states import Existing
from tcdsl.frontend.symbols.symbols import SymbolicTensor
from tcdsl.frontend.symbols.values import Value
from tests.rows.staged import Rowed, run

rng = np.random.default_rng(0)


def zeros(like: SymbolicTensor, label: str) -> SymbolicTensor:
    made = record_elementwise(session_of("a test"), Value.of(0.0), like.extents, label)
    made.memory = True
    made.rows = like.rows
    return made


def forward(code: Any, logic: str, result: Callable[..., Any]) -> Callable[..., Any]:
    """The value that ``code`` stores into ``v``, which has the shape of ``result(*operands)``."""

    def function(*operands: SymbolicTensor) -> Any:
        session = session_of("a test")
        value = zeros(result(*operands).materialize("v"), "v")
        slots = {"v": value, "t": value}
        for k, operand in enumerate(operands, 1):
            slots.update({f"v{k}": operand, f"t{k}": operand})
        run_projected(code.template, slots, projections_of(session, logic, operands, Existing(value)))
        return value

    return function


def backward(code: Any, logic: str, count: int) -> Callable[..., Any]:
    """The adjoints of the operands that ``code`` adds to, for the gradient of the result, the last argument."""

    def function(*arguments: SymbolicTensor) -> Any:
        session = session_of("a test")
        *operands, g = arguments
        slots: dict[str, Any] = {"g": g, "v": g}
        for k, operand in enumerate(operands, 1):
            slots.update({f"v{k}": operand, f"t{k}": operand, f"g{k}": zeros(operand, f"g{k}")})
        run_projected(code.template, slots, projections_of(session, logic, operands, Existing(g)))
        return tuple(slots[f"g{k}"] for k in range(1, count + 1))

    return function


def evaluated(function: Callable[..., Any], arrays: Sequence[Any]) -> list[np.ndarray]:
    return [each.array for each in run(function, *arrays)]


def pointpow(p: float) -> tuple[Any, Any]:
    """The reference's pointwise power, exponent and all."""

    @cd
    def op_asn(v, t1, t2, *, projections):
        v = v1**v2

    @cd
    def grad_asn(g, t1, t2, *, projections):
        if p == 2.0:
            g1 += p * t1 * g
        elif p == 1.0:
            g1 += g
        else:
            g1 += p * t1 ** (p - 1) * g

    return op_asn, grad_asn


class TestPointpow:
    @pytest.mark.parametrize("p", [1.0, 2.0, 3.5])
    def test_value_and_gradient(self, p: float) -> None:
        op_asn, grad_asn = pointpow(p)
        x, g = rng.uniform(0.5, 2, (2, 3)), rng.uniform(size=(2, 3))
        (value,) = evaluated(forward(op_asn, ".", lambda a, b: a + b), [x, np.full(1, p)])
        np.testing.assert_allclose(value, x**p)
        (adjoint,) = evaluated(backward(grad_asn, ".", 1), [x, np.full(1, p), g])
        np.testing.assert_allclose(adjoint, p * x ** (p - 1) * g)


@cd
def product_code(v, *, projections):
    v = sum(v1 * v2)


@cd
def product_gradient(g, *, projections):
    g1 += g * t2
    g2 += t1 * g


class TestProjections:
    def test_of_a_contraction(self) -> None:
        a, b, g = rng.uniform(size=(2, 3)), rng.uniform(size=(3, 4)), rng.uniform(size=(2, 4))
        (value,) = evaluated(forward(product_code, "@", lambda a, b: (a @ b) + 0), [a, b])
        np.testing.assert_allclose(value, a @ b)
        da, db = evaluated(backward(product_gradient, "@", 2), [a, b, g])
        np.testing.assert_allclose(da, g @ b.T)
        np.testing.assert_allclose(db, a.T @ g)

    def test_of_rows(self) -> None:
        w, x, g = rng.uniform(size=(2, 3)), rng.uniform(size=(5, 3)), rng.uniform(size=(5, 2))
        given = [Rowed(w, input=1), Rowed(x, batch=1), Rowed(g, batch=1)]
        dw, dx = evaluated(backward(product_gradient, "@", 2), given)
        np.testing.assert_allclose(dw, g.T @ x)
        np.testing.assert_allclose(dx, g @ w)

    def test_of_a_strided_convolution(self) -> None:
        x, k, g = rng.uniform(size=7), rng.uniform(size=3), rng.uniform(size=3)
        dx, dk = evaluated(backward(product_gradient, "2*o + k; k => o", 2), [x, k, g])
        expected = np.zeros(7)
        for o in range(3):
            expected[2 * o : 2 * o + 3] += g[o] * k
        np.testing.assert_allclose(dx, expected)
        np.testing.assert_allclose(dk, [(g * x[j : j + 5 : 2]).sum() for j in range(3)])

    def test_stretched_axes_sum_in_the_gradient(self) -> None:
        a, b, g = rng.uniform(size=(2, 3)), rng.uniform(size=(1, 3)), rng.uniform(size=(2, 3))
        da, db = evaluated(backward(product_gradient, ".", 2), [a, b, g])
        np.testing.assert_allclose(da, g * b)
        np.testing.assert_allclose(db, (g * a).sum(0, keepdims=True))

    def test_sum_and_its_gradient(self) -> None:
        @cd
        def code(v, *, projections):
            v += v1

        @cd
        def gradient(g, *, projections):
            g1 += g

        x = rng.uniform(size=(2, 3))
        (value,) = evaluated(forward(code, "...|... => 0", lambda a: a.sum(keepdims=True)[0]), [x])
        np.testing.assert_allclose(value, [x.sum()])
        (adjoint,) = evaluated(backward(gradient, "...|... => 0", 1), [x, np.array([3.0])])
        np.testing.assert_allclose(adjoint, np.full((2, 3), 3.0))

    def test_conditional_operands_and_other_logics(self) -> None:
        @cd
        def code(v, t1, t2, *, projections):
            assign(v, "=:@^", v1 + v2, projections=projections)
            v["ij=>ij"] += t1
            if projections is not None:
                v *= 2.0

        a, b = rng.uniform(size=(2, 3)), rng.uniform(size=(2, 3))
        (value,) = evaluated(forward(code, "ij;ij=>ij", lambda a, b: a + b), [a, b])
        np.testing.assert_allclose(value, 2 * (2 * a + b))

    def test_names_that_are_no_slots_are_ordinary(self) -> None:
        @cd
        def code(v, *, projections):
            factor = 3.0
            scaled = factor * v1
            v["."] = scaled + factor

        x = rng.uniform(size=3)
        (value,) = evaluated(forward(code, ".", lambda a: a + 0), [x])
        np.testing.assert_allclose(value, 3 * x + 3)


class TestFaults:
    def raised(self, code: Any, logic: str = ".") -> str:
        with pytest.raises(tc.TcdslError) as caught:
            evaluated(forward(code, logic, lambda a, b: a + b), [np.ones(3), np.ones(3)])
        return str(caught.value)

    def test_an_operand_whose_tensors_are_in_different_slots(self) -> None:
        @cd
        def code(v, *, projections):
            v = relu(v1 + v2) * v1

        assert "the tensors in operand 1 of `mul` are in different slots" in self.raised(code, "i;j=>j")

    def test_an_operand_without_a_slot(self) -> None:
        other = np.ones(3)

        @cd
        def code(v, *, projections):
            v = v1 * other

        assert "operand 2 of `mul` has no slot" in self.raised(code)

    def test_a_slot_that_the_operation_lacks(self) -> None:
        @cd
        def code(v, *, projections):
            v = v1 * v3

        assert "`v3` is read before anything is written to it" in self.raised(code)

    def test_an_operand_of_another_rank(self) -> None:
        @cd
        def code(v, *, projections):
            v = v1.sum(0, keepdims=True)[None] * v1

        assert "operand 1 of `mul` has rank 2, but the operation's tensor in its slot has rank 1" in self.raised(code)
