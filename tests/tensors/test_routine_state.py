"""What code keeps from run to run: momenta and the like, by label, to look at, save and set."""

from __future__ import annotations

import linecache
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import tcdsl as tc
from tcdsl import cd, output
from tcdsl.tensors.graph_linking.code import Code, GradientUpdate


@cd
def momentum(p, *, learning_rate, beta):
    velocity = beta * velocity + p.grad
    p -= learning_rate * velocity


def trained() -> tuple[tc.Tensor, tc.Tensor, tc.Routine]:
    w, b = tc.param("w", init=[1.0, 2.0]), tc.param("b", init=[0.5, 0.5])
    loss = (w * w + 3 * b).sum()
    code = Code([GradientUpdate(loss, (w, b))])
    return w, b, tc.compile(code, [momentum(p, learning_rate=0.1, beta=0.9) for p in (w, b)])


def test_state_is_what_the_code_of_the_routine_keeps() -> None:
    w, _, step = trained()
    assert list(step.state) == ["velocity.w", "velocity.b"]
    assert step.state["velocity.w"].shape == (2,)
    assert_allclose(step.state["velocity.w"].value, [0.0, 0.0])
    step.run()
    assert_allclose(step.state["velocity.w"].value, [2.0, 4.0])
    assert_allclose(step.state["velocity.b"].value, [3.0, 3.0])
    assert tc.compile(Code([GradientUpdate((w * w).sum(), (w,))])).state == {}


def test_state_set_to_zero_starts_anew() -> None:
    w, b, step = trained()

    def three_steps() -> np.ndarray:
        w.value, b.value = [1.0, 2.0], [0.5, 0.5]
        for each in step.state.values():
            each.value = 0
        for _ in range(3):
            step.run()
        return np.array(w.value)

    first = three_steps()
    assert_allclose(three_steps(), first, rtol=0)
    w.value, b.value = [1.0, 2.0], [0.5, 0.5]
    for _ in range(3):
        step.run()
    assert not np.allclose(w.value, first)


def test_equal_labels_get_a_number() -> None:
    w, other = tc.param("w", init=[1.0]), tc.param("w", init=[1.0])
    code = Code([GradientUpdate((w * other).sum(), (w, other))])
    step = tc.compile(code, [momentum(p, learning_rate=0.1, beta=0.9) for p in (w, other)])
    assert list(step.state) == ["velocity.w", "velocity.w_2"]


@cd
def changed(p):
    change = p - last  # the one that reads it is of no use
    last = p * 2.0


def test_state_that_is_only_written_stands_there_too() -> None:
    step = tc.compile(changed(tc.tensor([1.0, 2.0], label="p")))
    assert [each.name for each in step.program.inputs] == ["p"]
    step.run()
    assert_allclose(step.state["last.p"].value, [2.0, 4.0])


@cd
def summed(p, *, logic):
    total[logic] += p * 1.0
    assign(largest, "=@^", p, logic=".")


@cd
def summed_without_logic(p):
    total += p * 1.0


def test_accumulating_by_a_logic_onto_a_name_that_nothing_has_written_is_state() -> None:
    x = tc.tensor(np.array([[1.0, -2.0], [3.0, 4.0]]), label="x")
    step = tc.compile(summed(x, logic="ij; => ji"), summed_without_logic(x))
    for _ in range(3):
        step.run()
    assert_allclose(step.state["total.x"].value, 3 * np.array([[1.0, 3.0], [-2.0, 4.0]]))
    assert_allclose(step.state["largest.x"].value, [[1.0, 0.0], [3.0, 4.0]])
    assert_allclose(step.state["total.x_2"].value, 3 * x.value)
    with pytest.raises(tc.DslSyntaxError, match="`total` is read before anything is written to it"):
        summed(np.ones((2, 2)), logic="ij; => ji")


@cd
def from_number(p):
    v = output(init=1.5)
    v = 0.5 * v + p.grad
    p -= 0.1 * v


@cd
def from_array(p):
    v = output(init=[3.0, 4.0])
    v *= 0.5
    v += p.grad
    p -= 0.1 * v


@cd
def from_tensor(p):
    v = output(init=p)
    p -= 0.1 * v * p.grad
    v[i] = 0.5 * v[i] + 0.5 * p[i]


@cd
def from_filled(p):
    v = output(init=np.full_like(p, 0.25))
    v[i] += p.grad[i] ** 2
    p -= 0.1 * p.grad / np.sqrt(v)


@cd
def from_whole_numbers(p):
    v = output(init=0.5)
    v += 1
    n = output(init=2)
    n += 1
    p -= p.grad / (v * n)


@cd
def of_rows(p):
    v = output(init=np.zeros_like(p))
    p -= 0.1 * v + np.ones_like(p)
    v += p


@cd
def from_others(p):
    from_number(p)
    from_tensor(p)


def by_numpy(rule: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]], start: object) -> np.ndarray:
    # Two steps down p * p.
    p, v = np.array([1.0, 2.0]), np.asarray(start)
    for _ in range(2):
        p, v = rule(p, v)
    return p


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("code", "start", "rule"),
    [
        (from_number, 1.5, lambda p, v: (p - 0.1 * (v / 2 + 2 * p), v / 2 + 2 * p)),
        (from_array, [3.0, 4.0], lambda p, v: (p - 0.1 * (v / 2 + 2 * p), v / 2 + 2 * p)),
        (from_tensor, [1.0, 2.0], lambda p, v: (p - 0.2 * v * p, (v + p - 0.2 * v * p) / 2)),
        (from_filled, 0.25, lambda p, v: (p - 0.2 * p / np.sqrt(v + 4 * p * p), v + 4 * p * p)),
    ],
)
def test_state_starts_from_what_code_says(code: Any, start: object, rule: Any, dtype: str) -> None:
    p = tc.param("p", init=[1.0, 2.0], dtype=dtype)
    step = tc.compile(tc.train.grad_update((p * p).sum()), code(p))
    assert_allclose(step.state["v.p"].value, np.broadcast_to(start, 2))
    assert str(step.state["v.p"].dtype) == dtype
    again, other = pickle.loads(pickle.dumps((p, step)))
    for routine in (step, other):
        routine.run()
        routine.run()
    for each in (p, again):
        assert_allclose(each.value, by_numpy(rule, start), rtol=1e-6)


def test_starts_of_numbers_and_of_functions_that_code_calls() -> None:
    p = tc.param("p", init=[1.0, 2.0])
    step = tc.compile(tc.train.grad_update((p * p).sum()), from_whole_numbers(p), from_others(p))
    assert {name: each.value.tolist() for name, each in step.state.items()} == {
        "v.p": 0.5, "n.p": 2, "v.p_2": [1.5, 1.5], "v.p_3": [1.0, 2.0]
    }  # fmt: skip
    step.run()
    assert (step.state["v.p"].value.item(), step.state["n.p"].value.item()) == (1.5, 3)
    w = tc.param("w", o=2, i=3, init=4.0)
    step = tc.compile(of_rows(w))
    step.run()
    step.run()
    assert step.state["v.w"].row_ranks == w.row_ranks
    assert_allclose(w.value, np.full((2, 3), 1.7))


def test_a_tensor_is_copied_when_state_is_first_used() -> None:
    p = tc.param("p", init=[1.0, 2.0])
    code = from_tensor(p)
    p.value = [5.0, 6.0]
    assert_allclose(tc.compile(code).state["v.p"].value, [5.0, 6.0])


@cd
def from_gradient(p):
    v, n = output(init=p.grad), output(init=np.ones_like(p))
    v = 0.5 * v + p.grad
    n += 1
    p -= 0.1 * v * n


def test_state_starts_from_what_the_first_run_computes() -> None:
    p = tc.param("p", init=[1.0, 2.0])
    step = tc.compile(tc.train.grad_update((p * p).sum()), from_gradient(p))
    step.run()
    again, other = pickle.loads(pickle.dumps((p, step)))
    wanted, v, n = np.array([1.0, 2.0]), np.array([2.0, 4.0]), 1.0
    for _ in range(3):
        v, n = 0.5 * v + 2 * wanted, n + 1
        wanted = wanted - 0.1 * v * n
    for routine, each in ((step, p), (other, again)):
        routine.run()
        routine.run()
        assert_allclose(each.value, wanted)
    step.state["v_begun.p"].value = False  # starts anew
    gradient = 2 * p.value
    step.run()
    assert_allclose(step.state["v.p"].value, 1.5 * gradient)


# The second statement of state that has been multiplied by a number; both make `v = 0.9 * v + p.grad`.
SECOND = {
    "an index list": "v[i] += p.grad[i]",
    "a condition": "v[i] += p.grad[i], p.grad[i] > 0",
    "a logic": 'v["."] += p.grad',
    "a slice": "v[:] += p.grad",
    "an ellipsis": "v[...] = v + p.grad",
    "a number before it": "n = output(init=2)\n    n += 1\n    v *= n\n    v /= n\n    v += p.grad",
}


@pytest.mark.parametrize("start", [0.0, 2.0])
@pytest.mark.parametrize("second", SECOND.values(), ids=SECOND)
def test_the_statement_that_tells_the_shape_of_state(second: str, start: float) -> None:
    begin = f"    v = output(init={start})\n" if start else ""
    code = compiled(f"@cd\ndef f(p):\n{begin}    v *= 0.9\n    {second}\n", "f")
    p = tc.param("p", init=[1.0, 2.0])
    step = tc.compile(tc.train.grad_update((p * p).sum()), code(p))
    assert_allclose(step.state["v.p"].value, np.full(2, start))
    step.run()
    step.run()
    assert_allclose(step.state["v.p"].value, (0.9 * start + 2 * p.value) * 0.9 + 2 * p.value)


def test_in_the_literal_spelling_too() -> None:
    text = "@cd\ndef f(p):\n    v = output(init=p.grad)\n    w =* 0.5\n    v =- p\n    w[i] =+ v[i]\n"
    code = compiled(tc.literal.desugar(text), "f")
    p = tc.param("p", init=[1.0, 2.0])
    step = tc.compile(tc.train.grad_update((p * p).sum()), code(p))
    step.run()
    step.run()
    assert_allclose(step.state["v.p"].value, [0.0, 0.0])
    assert_allclose(step.state["w.p"].value, [0.5, 1.0])


def compiled(source: str, name: str) -> Any:
    filename = f"<state {abs(hash(source))}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    names: dict[str, Any] = {"cd": cd, "np": np, "output": output}
    exec(compile(source, filename, "exec"), names)
    return names[name]


def test_starts_that_are_none() -> None:
    @cd
    def from_text(p):
        v = output(init="zeros")
        v += p

    @cd
    def of_extents(p):
        v = output(2, init=1.0)
        v += p

    @cd
    def from_three(p):
        v = output(init=[1.0, 2.0, 3.0])
        v += p

    p = tc.param("p", init=[1.0, 2.0])
    with pytest.raises(tc.ConfigurationError, match=r"`v` starts from 'zeros'(.|\n)*`np.full_like\(p, 0.1\)`"):
        from_text(p)
    with pytest.raises(tc.DslSyntaxError, match=r"state has those of what is stored into it"):
        of_extents(p)
    with pytest.raises(tc.ShapeError, match=r"has the shape \[2\], and starts from an array of the shape \[3\]"):
        from_three(p)
    with pytest.raises(tc.DslSyntaxError, match=r"on arrays make it a parameter, and pass the buffer"):
        from_number(np.ones(2))


@cd
def decayed(v, g):
    v *= 0.9
    v += g


def test_state_whose_shape_a_function_would_have_to_tell_says_how_it_starts() -> None:
    @cd
    def open_state(p, *, learning_rate):
        v = output()
        decayed(v, p.grad)
        p -= learning_rate * v

    @cd
    def begun(p, *, learning_rate):
        v = output(init=np.zeros_like(p))
        decayed(v, p.grad)
        p -= learning_rate * v

    w = tc.param("w", init=[1.0, 2.0])
    with pytest.raises(tc.ShapeError, match="`v` has no shape yet, and `decayed` is given it as `v`") as caught:
        open_state(w, learning_rate=0.1)
    assert "v = output(init=np.zeros_like(p))" in str(caught.value)
    step = tc.compile(tc.train.grad_update((w * w).sum()), begun(w, learning_rate=0.1))
    step.run()
    step.run()
    assert_allclose(w.value, [0.46, 0.92])
    assert_allclose(step.state["v.w"].value, [3.4, 6.8])
