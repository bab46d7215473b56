"""The programs of the document that the literal spelling comes from: each runs, and as its plain form does."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from numpy.testing import assert_allclose

import tcdsl as tc
from tcdsl import literal

HEAD = "import numpy as np\nimport tcdsl as tc\nfrom tcdsl import cd, op\n"


@pytest.fixture(params=["literal", "plain"])
def load(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], ModuleType]]:
    """Imports a literal text as it is, or in its plain form."""
    monkeypatch.syspath_prepend(str(tmp_path))
    names: list[str] = []

    def module(text: str) -> ModuleType:
        name = f"reference_{request.param}_{len(names)}"
        names.append(name)
        text = HEAD + text
        if request.param == "literal":
            literal.install(name)
            assert literal.desugar(text) != text
        else:
            text = literal.desugar(text)
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        importlib.invalidate_caches()
        return importlib.import_module(name)

    yield module
    for name in names:
        literal.uninstall(name)
        sys.modules.pop(name, None)


Load = Callable[[str], ModuleType]

A, B = np.arange(6.0).reshape(2, 3) - 2, np.arange(12.0).reshape(3, 4) / 5
X, Y = np.array([-1.0, 0.5, 2.0, 0.0]), np.array([3.0, -4.0, 2.0, 0.0])


def test_tensor_multiplication(load: Load) -> None:
    module = load('@cd\ndef f(c, a, b):\n    c =:+ a * b ~logic:"@"\n')
    c = np.full((2, 4), 7.0)
    module.f(c, A, B)
    assert_allclose(c, A @ B)


def test_two_ways_of_updating_a_parameter(load: Load) -> None:
    module = load(
        "@cd\ndef labelled(p, g, *, learning_rate):\n"
        '    p =+ learning_rate * g ~logic:"."\n'
        "@cd\ndef plain(p, g, *, learning_rate):\n"
        "    p =+ learning_rate *. g\n"
    )
    for update in (module.labelled, module.plain):
        p = X.copy()
        update(p, Y, learning_rate=0.5)
        assert_allclose(p, X + 0.5 * Y)


ASSIGNMENTS = {
    "=:": lambda c, v: v,
    "=+": lambda c, v: c + v,
    "=-": lambda c, v: c - v,
    "=*": lambda c, v: c * v,
    "=/": lambda c, v: c / v,
    "=**": lambda c, v: c**v,
    "=@^": np.maximum,
    "=^^": np.minimum,
    "=?/": lambda c, v: np.where(c > 0, v, 0),
    "=?^": lambda c, v: np.where((c > 0) & (c < 1), v, 0),
    "=:+": lambda c, v: v,
    "=:*": lambda c, v: v,
    "=:-": lambda c, v: -v,
    "=:/": lambda c, v: 1 / v,
    "=:**": lambda c, v: np.ones_like(v),
    "=:@^": lambda c, v: v,
    "=:^^": lambda c, v: v,
    "=:?/": lambda c, v: v,
    "=:?^": lambda c, v: v,
}


@pytest.mark.parametrize("operator", ASSIGNMENTS)
def test_assignment_operators_with_logic(load: Load, operator: str) -> None:
    module = load(f'@cd\ndef f(c, a):\n    c {operator} a ~logic:"."\n')
    start, value = np.array([0.5, 2.0, 0.25]), np.array([1.5, 0.5, 2.0])
    c = start.copy()
    module.f(c, value)
    assert_allclose(c, ASSIGNMENTS[operator](start, value))


RESETS = {"=:+": 1, "=:-": -1, "=:@^": 1, "=:*": 1, "=:^^": 1}


def test_assignments_in_slots_follow_the_projections(load: Load) -> None:
    # `v` is a sum over the second operand's axis, which a pointwise logic could not say.
    updates = "".join(f"@cd\ndef f{k}(v, v1, *, projections):\n    v {op} v1\n" for k, op in enumerate(RESETS))
    module = load(updates)
    for k, (operator, sign) in enumerate(RESETS.items()):
        reduce = {"*": np.prod, "@": np.max, "^": np.min}.get(operator[2], np.sum)
        code = getattr(module, f"f{k}")
        total = tc.primitive(f"p{k}", code, logic="ij => i")
        assert_allclose(total(A), sign * reduce(A, axis=1))


def test_memory_of_tensors_is_a_target_of_every_operator(load: Load) -> None:
    module = load("@cd\ndef f(p):\n    p.grad =:+ p\n    p.grad =- 3 * p\n    p.value =:- p.grad\n")
    p = tc.param("p", init=[1.0, 2.0])
    tc.compile(module.f(p)).run()
    assert_allclose(p.grad, [-2.0, -4.0])
    assert_allclose(p.value, [2.0, 4.0])


def test_logical_assignments(load: Load) -> None:
    for operator, expected in {"=||": np.logical_or, "=&&": np.logical_and}.items():
        module = load(
            f'@cd\ndef f(c, a):\n    c {operator} a ~logic:"."\n@cd\ndef g(c, a):\n    c =:{operator[1:]} a\n'
        )
        start, value = np.array([True, True, False, False]), np.array([True, False, True, False])
        c, d = start.copy(), start.copy()
        module.f(c, value)
        module.g(d, value)
        assert_allclose(c, expected(start, value))
        assert_allclose(d, value)


def test_array_literals_are_operands(load: Load) -> None:
    module = load(
        "@cd\ndef f(c, d):\n    c =: [1; 2; 3]\n"
        '    d =:+ [(1, 2, 3); (4, 5, 6)] * c ~logic:"@"\n'
        "@op\ndef g(x):\n    return [x; x] * 2, [x; -x] @^ [0; 1], [| 1; 2 |] + 0 * x, [1; 2] + 1 -?/ x, "
        'x *+ "i; i => " [3; 4]\n'
    )
    c, d, x = np.zeros(3), np.zeros(2), np.array([1.0, 2.0])
    module.f(c, d)
    assert_allclose(c, [1, 2, 3])
    assert_allclose(d, [14, 32])
    expected = (np.stack([x, x]) * 2, [[1, 2], [0, 1]], [[1, 1], [2, 2]], x, 11)
    for found, wanted in zip(module.g.interpret(x), expected, strict=True):
        assert_allclose(found, wanted)


def test_infix_operators(load: Load) -> None:
    module = load(
        "@op\ndef f(a, b):\n"
        "    return (a -@> b, a -/> b, a +. b, a -. b, a *. b, a /. (b +. !.10), a **. !.2, a -?/ b, a -?^ b, a <> b,\n"
        "            (a > 0) || (b > 0), (a > 0) && (b > 0), a @^ b, a ^^ b, a @- b)\n"
    )
    found = module.f(X, Y)
    gate, between = X > 0, (X > 0) & (X < 1)
    expected = (
        *(X, Y, X + Y, X - Y, X * Y, X / (Y + 10), X**2, np.where(gate, Y, 0), np.where(between, Y, 0), X == Y),
        *(gate | (Y > 0), gate & (Y > 0), np.maximum(X, Y), np.minimum(X, Y), np.minimum(X, Y)),
    )
    for got, wanted in zip(found, expected, strict=True):
        assert_allclose(got, wanted)


def test_einsum_operators(load: Load) -> None:
    module = load(
        "@op\ndef f(a, b):\n"
        '    return a *+ "ij;jk=>ik" b, a +* "ij;jk=>ki" b, a ++ "ij => ji", (a ++ "...|... => 0") /. !..2\n'
    )
    product, turned, transposed, total = module.f(A, B)
    assert_allclose(product, A @ B)
    assert_allclose(turned, (A @ B).T)
    assert_allclose(transposed, A.T)
    assert_allclose(total, [A.sum() / 2])


def test_index_lists(load: Load) -> None:
    module = load(
        "@cd\ndef f(c, a, b):\n    c[i, j] =:+ a[i, k] *. b[k, j], i < 1\n    c[i, j] =@^ a[i, 2] -?/ c[i, j] *. 2\n"
        "@cd\ndef g(c, a):\n    c[j] =:@^ a[i, j]\n    c[j] =:+ c[j]\n"
    )
    c, d = np.full((2, 4), 7.0), np.zeros(3)
    module.f(c, A, B)
    expected = np.zeros((2, 4))
    expected[0] = A[0] @ B
    assert_allclose(c, np.maximum(expected, np.where(A[:, 2:] > 0, 2 * expected, 0)))
    module.g(d, A)
    assert_allclose(d, A.max(axis=0))


SGD = """\
@cd
def sgd_one(p, *, learning_rate, momentum=0.0, weight_decay=0.0, nesterov=False):
    ~~("SGD" "step of" p)
    "sgd_delta" =: p.grad + (!.weight_decay *. p)
    if momentum > 0.0:
        "sgd_momentum" =: (!.momentum *. sgd_momentum) + sgd_delta
        if nesterov: sgd_delta =+ !.momentum *. sgd_momentum
        else: sgd_delta =: sgd_momentum
    p =- learning_rate *. sgd_delta
"""


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("nesterov", [False, True])
def test_sgd_one(load: Load, momentum: float, nesterov: bool) -> None:
    sgd_one = load(SGD).sgd_one
    w, x = tc.param("w", init=[1.0, 2.0]), tc.tensor(np.array([3.0, 4.0]))
    loss = (w * x * w).sum()
    update = sgd_one(w, learning_rate=0.01, momentum=momentum, weight_decay=0.1, nesterov=nesterov)
    step = tc.compile(tc.train.grad_update(loss), update)
    expected, velocity = np.array([1.0, 2.0]), np.zeros(2)
    for _ in range(3):
        step.run()
        delta = 2 * expected * x.value + 0.1 * expected
        if momentum:
            velocity = momentum * velocity + delta
            delta = delta + momentum * velocity if nesterov else velocity
        expected = expected - 0.01 * delta
        assert_allclose(w.value, expected, rtol=1e-12)
    labels = {"sgd_delta.w", "sgd_momentum.w"} if momentum else {"sgd_delta.w"}
    assert labels >= {state.label for states in w.states.values() for state in states.values()}


LAYERS = """\
@op
def mlp_layer(x, *, config):
    return relu("w" @ x + "b" config.hid_dim)

@op
def three_layer_perceptron(x, *, config):
    hidden = mlp_layer(mlp_layer(x, config=config.first), config=config.second)
    return mlp_layer(hidden, config=config.third)
"""


class Config:
    """Configuration of a layer."""

    def __init__(self, label: str, hid_dim: int) -> None:
        self.label = label
        self.hid_dim = hid_dim


def test_mlp_layer(load: Load) -> None:
    layer = load(LAYERS).mlp_layer(config=Config("L1", 8))
    x = tc.tensor(np.ones((5, 2)), batch=1, label="x")
    y = layer(x)
    assert y.shape == (5, 8)
    assert_allclose(y.value, np.maximum(0, np.ones((5, 2)) @ layer["w"].value.T + layer["b"].value))
    assert "mlp_layer" in repr(y)


def test_three_layer_perceptron(load: Load) -> None:
    class Sizes:
        first, second, third = Config("L1", 8), Config("L2", 4), Config("L3", 1)

    network = load(LAYERS).three_layer_perceptron(config=Sizes())
    x = tc.tensor(np.ones((5, 2)), batch=1)
    found = {name: parameter.shape for name, parameter in network.parameters.items()} if network(x).shape else {}
    assert network(x).shape == (5, 1)
    assert sorted(found.values()) == [(1,), (1, 4), (4,), (4, 8), (8,), (8, 2)]
    assert network(x).value.tolist() == network(x).value.tolist(), "the layers are made once"


def test_micrograd(load: Load) -> None:
    module = load('@op\ndef f():\n    c = "a" [ -4 ] + "b" [ 2 ]\n    return c * a *. b\n')
    assert module.f().item() == 16.0
    assert (module.f.parameters["a"].item(), module.f.parameters["b"].item()) == (-4.0, 2.0)


def test_labels_of_numbers(load: Load) -> None:
    module = load("@op\ndef f():\n    y = (\"hey\" * 'q' 2.0) + 'q' 1.0\n    return y\n")
    hey = module.f()
    assert_allclose(hey.value, 2 * module.f.parameters["hey"].value + 1)


def test_literals_of_three_kinds(load: Load) -> None:
    module = load(
        "@op\ndef f(x):\n    return tc.tensor([ (1, 2, 3); (4, 5, 6) ]) @ x, tc.tensor([| [1; 2]; [3; 4] |]) + x[0]\n"
    )
    x = tc.tensor(np.array([1.0, 10.0, 100.0]))
    turned, stacked = module.f(x)
    assert_allclose(turned.value, [321, 654])
    assert_allclose(stacked.value, [[2, 3], [4, 5]])


def test_an_open_extent_of_a_kernel(load: Load) -> None:
    module = load("@op\ndef f(x):\n    return { kernel; o = [2]; i = (3, ?) } @ x\n")
    x = np.arange(12.0).reshape(3, 4)
    made = module.f(tc.tensor(x))
    kernel = module.f.parameters["kernel"].value
    assert kernel.shape == (2, 3, 4)
    assert_allclose(made.value, np.einsum("oij,ij->o", kernel, x))


def test_targets_that_declare_their_extents(load: Load) -> None:
    module = load(
        "@cd\ndef f(c, a, b, d):\n"
        '    { r; o = [2; 4] } =:+ a * b ~logic:"@"\n'
        "    { s; o = [2; 4] } =: d\n"
        "    c =: fma(a, b, d)\n    c =@- r + 2 * s\n"
    )
    c, d = np.zeros((2, 4)), np.array([1.0, -1.0, 2.0, 0.5])
    module.f(c, A, B, d)
    assert_allclose(c, np.minimum(A @ B + d, A @ B + 2 * d))


def test_wildcard_bindings(load: Load) -> None:
    module = load('@op\ndef f(x):\n    y = "w" @ x\n    _ = y + tc.tensor(np.ones(7))\n    return y\n')
    y = module.f(tc.tensor(np.ones(3)))
    assert y.shape == (7,)


POINTPOW = """\
@cd
def power(v, v1, v2, *, projections):
    v =: v1 ** v2 ~projections

@cd
def power_gradient(g, g1, v1, v2, *, projections):
    g1 =+ v2 *. v1 **. (v2 -. 1.) * g

pointpow = tc.primitive("pointpow", power, power_gradient)
"""


def test_pointpow(load: Load) -> None:
    pointpow = load(POINTPOW).pointpow
    x = np.array([1.0, 2.0, 3.0])
    assert_allclose(pointpow(x, 3.0), x**3)
    assert_allclose(tc.grad(lambda x: pointpow(x, 3.0).sum())(x), 3 * x**2)


def test_slices_of_batches(load: Load) -> None:
    module = load("@op\ndef f(data, *, n):\n    return data @| n\n")
    assert_allclose(module.f(A, n=1), A[1])


def test_nodes_of_a_tensor(load: Load) -> None:
    module = load('@cd\ndef f(p):\n    p.grad =* p.value ~logic:"."\n    p =+ p.grad\n')
    w = tc.param("w", init=[1.0, 2.0])
    w.grad = [10.0, 20.0]
    tc.compile(module.f(w)).run()
    assert_allclose(w.grad, [10, 40])
    assert_allclose(w.value, [11, 42])
