"""`@cd` functions on tensors: code, its state, its numbers, gradients and copies from other devices."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose

import tcdsl as tc
from tcdsl import cd
from tcdsl.tensors.graph_linking.code import Code, GradientUpdate
from tcdsl.tensors.graph_linking.graph_linker import leaves
from tests.tensors.interpreting import run, value


def grad_update(loss: tc.Tensor) -> Code:
    return Code([GradientUpdate(loss, tuple(leaves(loss)))])


@cd
def sgd_one(p, *, learning_rate, momentum=0.0, weight_decay=0.0, nesterov=False):
    sgd_delta = p.grad + weight_decay * p
    if momentum > 0.0:
        sgd_momentum = momentum * sgd_momentum + sgd_delta
        if nesterov:
            sgd_delta += momentum * sgd_momentum
        else:
            sgd_delta = sgd_momentum
    p -= learning_rate * sgd_delta


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("nesterov", [False, True])
def test_sgd_one(momentum: float, nesterov: bool) -> None:
    w, x = tc.param("w", init=[1.0, 2.0]), tc.tensor(np.array([3.0, 4.0]))
    loss = (w * x * w).sum()
    code = grad_update(loss) + sgd_one(w, learning_rate=0.01, momentum=momentum, weight_decay=0.1, nesterov=nesterov)
    expected, velocity = np.array([1.0, 2.0]), np.zeros(2)
    for rate in (0.01, 0.01, 0.05):
        run(code, learning_rate=rate)
        delta = 2 * expected * x.value + 0.1 * expected
        if momentum:
            velocity = momentum * velocity + delta
            delta = delta + momentum * velocity if nesterov else velocity
        expected = expected - rate * delta
        assert_allclose(w.value, expected, rtol=1e-13)


def test_state_belongs_to_function_configuration_and_tensor() -> None:
    @cd
    def count(p, *, name):
        steps = steps + 1.0
        p = p * 0.0 + steps

    a, b = tc.param("a", init=[0.0]), tc.param("b", init=[0.0, 0.0])
    run(count(a, name="x"))
    run(count(a, name="x"))
    run(count(b, name="x"))
    assert a.value.tolist() == [2]
    assert b.value.tolist() == [1, 1]
    run(count(a, name="y"))
    assert a.value.tolist() == [1]
    assert {state.label for states in a.states.values() for state in states.values()} == {"steps.a"}


def test_state_in_index_notation() -> None:
    @cd
    def momentum(p):
        p.value[i] -= m[i]
        m[i] = 0.5 * m[i] + p.grad[i]
        p.grad[i] *= 2

    w = tc.param("w", init=[1.0, 2.0])
    w.grad = [10.0, 20.0]
    code = momentum(w)
    run(code)
    assert_allclose(w.value, [1, 2])
    assert_allclose(w.grad, [20, 40])
    run(code)
    assert_allclose(w.value, [-9, -18])


def test_augmented_state() -> None:
    @cd
    def total(p):
        seen += p
        p = seen

    w = tc.param("w", init=[1.0])
    for expected in (1.0, 2.0, 4.0):
        run(total(w))
        assert w.value.tolist() == [expected]


def test_a_name_written_first_is_new_in_every_run() -> None:
    @cd
    def double(p):
        t = 2 * p
        t += 1
        p = t

    w = tc.param("w", init=[1.0])
    code = double(w)
    run(code)
    run(code)
    assert w.value.tolist() == [7]
    assert not w.states


def test_value_grad_and_merge() -> None:
    @cd
    def merge(p):
        p.grad += p.grad.merge
        p.value = p.value + p.merge

    w = tc.param("w", init=[1.0, 2.0])
    w.grad = [1.0, 1.0]
    with pytest.raises(tc.ConfigurationError, match=r"nothing has arrived for `w.grad.merge`"):
        run(merge(w))
    w.grad.merge = [3.0, 4.0]
    w.merge = np.array([10.0, 10.0])
    run(merge(w))
    assert_allclose(w.grad, [4, 5])
    assert_allclose(w.value, [11, 12])


def test_merge_is_read_only() -> None:
    @cd
    def wrong(p):
        p.merge = 0.0

    with pytest.raises(tc.DslSyntaxError, match="can only be read"):
        wrong(tc.param("w", init=[1.0]))


def test_forward_code_stands_before_the_assignment() -> None:
    a, b = tc.param("a", init=[2.0]), tc.tensor(np.array([5.0]), label="b")
    product = a * b

    @cd
    def store(p):
        p = product + 1

    code = store(a)
    assert next(s.target.tensor for s in code.program().statements) == "mul"
    run(code)
    assert a.value.tolist() == [11]
    run(code)
    assert a.value.tolist() == [56]


def test_what_code_writes_is_what_later_code_reads() -> None:
    @cd
    def scale(p):
        p *= 3

    @cd
    def shift(p):
        p += 1

    w = tc.param("w", init=[1.0])
    run(scale(w) + shift(w))
    assert w.value.tolist() == [4]
    run(sum([shift(w), scale(w)]))
    assert w.value.tolist() == [15]


def test_gradients_of_computed_tensors() -> None:
    x = tc.param("x", init=[3.0])
    y = x * x
    loss = (y * y).sum()
    run(Code([GradientUpdate(loss, (x, y))]))
    assert loss.value == 81
    assert_allclose(y.grad, [18])
    assert_allclose(x.grad, [108])


def test_gradient_of_several_cells_is_refused() -> None:
    w = tc.param("w", init=[1.0, 2.0])
    with pytest.raises(tc.DifferentiationError, match=r"the loss `mul` has 2 cells, not one(.|\n)*einsum"):
        grad_update(w * w).program()


def test_numbers_of_a_run_and_constants() -> None:
    @cd
    def decay(p, *, rate, steps):
        for _ in range(steps):
            p -= rate * p

    w = tc.param("w", init=[1.0])
    code = decay(w, rate=0.5, steps=2)
    assert list(code.settings) == ["rate"]
    run(code)
    assert w.value.tolist() == [0.25]
    run(code, rate=0.0)
    assert w.value.tolist() == [0.25]


def test_a_routine_runs_what_the_interpreter_runs() -> None:
    w, x = tc.param("w", o=3), tc.tensor(np.arange(8.0).reshape(4, 2), batch=1, label="x")
    loss = ((w @ x - 1) ** 2).mean()
    code = grad_update(loss) + sgd_one(w, learning_rate=0.01, momentum=0.9)
    start = np.array(w.value)
    step = tc.compile(code)
    step.run()
    step.run(learning_rate=0.02)
    compiled = np.array(w.value), np.array(loss.value)
    w.value = start
    for states in w.states.values():
        states["sgd_momentum"].value = 0.0
    run(code)
    run(code, learning_rate=0.02)
    assert_allclose(w.value, compiled[0], rtol=1e-12)
    assert_allclose(loss.value, compiled[1], rtol=1e-12)
    assert_allclose(value(loss), ((np.asarray(x) @ w.value.T - 1) ** 2).mean())


def test_unknown_numbers_change_nothing() -> None:
    w = tc.param("w", init=[1.0])
    w.grad = [1.0]
    step = tc.compile(sgd_one(w, learning_rate=0.1))
    with pytest.raises(tc.ConfigurationError, match=r"no number `rate`(.|\n)*learning_rate, weight_decay"):
        step.run(learning_rate=0.5, rate=1.0)
    step.run()
    assert_allclose(w.value, [0.9])


def test_code_prints_its_program() -> None:
    w = tc.param("w", init=[1.0])
    assert "w_2[i] -= learning_rate * sgd_delta_w[i]" in str(sgd_one(w, learning_rate=0.1))
    assert repr(sgd_one(w, learning_rate=0.1)) == "<code sgd_one: 1 part>"


def test_only_code_compiles() -> None:
    with pytest.raises(tc.ConfigurationError, match="a function is no code"):
        tc.compile(lambda: None)


def test_reading_a_tensor_without_a_value() -> None:
    w = tc.param("w", init=[1.0])
    with pytest.raises(tc.ConfigurationError, match=r"no gradient of `w` has been computed(.|\n)*grad_update"):
        w.grad
    with pytest.raises(tc.ConfigurationError, match="no gradient of `w`"):
        tc.compile(sgd_one(w, learning_rate=0.1)).run()
    assert w.value.tolist() == [1]


def test_data_has_no_gradient() -> None:
    x = tc.tensor(np.ones(2), label="x")
    with pytest.raises(tc.DifferentiationError, match="`x` has no gradient"):
        x.grad


def test_code_stores_into_leaves_alone() -> None:
    @cd
    def overwrite(p):
        p = 2.0

    w = tc.param("w", init=[1.0])
    with pytest.raises(tc.DslSyntaxError, match="stores into `mul`, which is computed from other tensors"):
        overwrite(w * 2)


def test_wanted_tensors_are_computed_at_their_place() -> None:
    @cd
    def shift(p):
        p += 10

    w = tc.param("w", init=[1.0])
    before, after = w * 2, w * 3
    step = tc.compile(before, shift(w), [after, w])
    assert repr(step.code) == "<code mul_shift_w: 4 parts>"
    run(step.code)
    assert before.buffer("value").array.tolist() == [2]
    assert (after.value.tolist(), w.value.tolist()) == ([33], [11])


@cd
def grown(w):
    w += 1.0


@cd
def stored(c, t):
    c = t


@cd
def added(c, t):
    c += t


@cd
def in_rounds(c, w, t):
    for _k in tc.loop(2):
        w += 1.0
        c += t


@cd
def in_a_branch(c, w, t):
    if w[0] > 0:
        w += 1.0
        c = t * w


#: Each step with what it does to the values of memory; `read` gives what a computed tensor has.
STEPS = {
    "w grows": (lambda m: grown(m["w"]), lambda v, read: v.update(w=v["w"] + 1)),
    "v grows": (lambda m: grown(m["v"]), lambda v, read: v.update(v=v["v"] + 1)),
    "c is t": (lambda m: stored(m["c"], m["t"]), lambda v, read: v.update(c=read("t"))),
    "d is u": (lambda m: stored(m["d"], m["u"]), lambda v, read: v.update(d=read("u"))),
    "w is t": (lambda m: stored(m["w"], m["t"]), lambda v, read: v.update(w=read("t"))),
    "v with u": (lambda m: added(m["v"], m["u"]), lambda v, read: v.update(v=v["v"] + read("u"))),
    "d is c": (lambda m: stored(m["d"], m["c"]), lambda v, read: v.update(d=v["c"])),
    "rounds": (
        lambda m: in_rounds(m["c"], m["w"], m["t"]),
        lambda v, read: v.update(c=v["c"] + 2 * read("t"), w=v["w"] + 2),
    ),
    "a branch": (
        lambda m: in_a_branch(m["d"], m["v"], m["u"]),
        lambda v, read: v.update(d=read("u") * (v["v"] + 1), v=v["v"] + 1),
    ),
}


def memory_of_steps():
    w, v = tc.param("w", init=[1.0, 2.0]), tc.tensor([0.5, 0.25], label="v")
    c, d = tc.tensor([0.0, 0.0], label="c"), tc.tensor([0.0, 0.0], label="d")
    t = w * w
    return {"w": w, "v": v, "c": c, "d": d, "t": t, "u": t + v}


@pytest.mark.parametrize("number", range(12))
def test_what_computes_a_tensor_runs_once_before_its_first_reader(number):
    rng = np.random.default_rng(number)
    names = [*STEPS][:2] * (number == 0) + list(rng.permutation([*STEPS]))[:6]

    @cd
    def whole(w, v, c, d, t, u):
        for name in names:
            STEPS[name][0]({"w": w, "v": v, "c": c, "d": d, "t": t, "u": u})

    values = {name: np.array(each) for name, each in (("w", [1, 2]), ("v", [0.5, 0.25]), ("c", [0]), ("d", [0]))}
    computed = {}

    def read(name):
        if "t" not in computed:
            computed["t"] = values["w"] * values["w"]
        if name == "u" and "u" not in computed:
            computed["u"] = computed["t"] + values["v"]
        return computed[name]

    for name in names:
        STEPS[name][1](values, read)
    for together in (True, False):
        memory = memory_of_steps()
        tc.compile(whole(**memory) if together else [STEPS[name][0](memory) for name in names]).run()
        for name, expected in values.items():
            np.testing.assert_allclose(memory[name].value, np.broadcast_to(expected, 2), err_msg=f"{names} {name}")


def test_order_in_one_code():
    @cd
    def both(w, t, c):
        w += 1.0
        c = t

    @cd
    def first_reader(w, t, c, d):
        d = t
        w += 1.0
        c = t

    @cd
    def of_a_cell(w, t, c):
        w[0] = 5.0
        c[i] = t[i] + 1

    for code, c in ((both, [4.0, 9.0]), (first_reader, [1.0, 4.0]), (of_a_cell, [26.0, 5.0])):
        memory = memory_of_steps()
        given = [memory[name] for name in ("w", "t", "c", "d")[: code.signature.required_positional]]
        tc.compile(code(*given)).run()
        assert memory["c"].value.tolist() == c
    again = pickle.loads(pickle.dumps([code(*given), memory["c"]]))
    tc.compile(again[0]).run()
    assert again[1].value.tolist() == [26.0, 5.0]


def test_tensors_by_name():
    @tc.op
    def scaled(x):
        return "w" * x

    w, t = tc.param("w", init=[1.0]), tc.tensor([2.0])
    tc.compile(added(t=t, c=w)).run()
    assert w.value.tolist() == [3.0]
    assert scaled(x=t).operands[0] is scaled.parameters["w"]


@cd
def merged_gradient(p):
    p.grad += p.grad.merge


def test_what_arrives_from_another_device_before_a_first_run():
    def made():
        p = tc.param("p", init=[1.0, 2.0])
        return p, tc.compile(tc.train.grad_update((p * p).sum()), merged_gradient(p))

    p, step = made()
    with pytest.raises(tc.ConfigurationError, match=r"nothing has arrived for `p.grad.merge`"):
        p.grad.merge
    p.grad.merge = [1.0, 1.0]
    p.grad.merge = p.grad.merge + 1
    step.run()
    assert (p.grad.tolist(), p.grad.merge.tolist()) == ([4.0, 6.0], [2.0, 2.0])
    p, step = made()
    with pytest.raises(tc.ConfigurationError, match=r"nothing has arrived for `p.grad.merge`"):
        step.run()
    for wrong in (lambda: p.grad, lambda: p.grad + 1, lambda: p.grad.shape, lambda: getattr(p, "grad")):  # noqa: B009
        with pytest.raises(tc.ConfigurationError, match="no gradient of `p` has been computed"):
            wrong()
    p.grad.merge = np.ones(2)
    step.run()
    assert p.grad.tolist() == [3.0, 5.0]


@cd
def scaled_then_added(p):
    v *= 0.5
    v += p.grad
    p -= v


@cd
def scaled_by_name(p):
    v = v * 0.5
    v += p.grad
    p -= v


@cd
def halved_then_added(p):
    v /= 2
    v -= -p.grad
    p -= v


@cd
def as_one(p):
    v = 0.5 * v + p.grad
    p -= v


@cd
def counted(p):
    count += 1
    p -= p.grad / count


def test_state_has_the_shape_of_the_first_array_that_is_stored():
    found = []
    for code in (scaled_then_added, scaled_by_name, halved_then_added, as_one):
        p = tc.param("p", init=[1.0, 2.0])
        step = tc.compile(tc.train.grad_update((p * p).sum()), code(p))
        for _ in range(3):
            step.run()
        found.append((p.value.tolist(), step.state["v.p"].value.tolist()))
    assert all(each == found[-1] for each in found)
    p = tc.param("p", init=[1.0, 2.0])
    step = tc.compile(tc.train.grad_update((p * p).sum()), counted(p))
    step.run()
    step.run()
    assert (step.state["count.p"].value.item(), p.value.tolist()) == (2, [0.0, 0.0])
