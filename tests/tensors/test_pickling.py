"""Derivatives, layers, computed tensors and code can be pickled and copied, and work in other processes."""

from __future__ import annotations

import copy
import gc
import io
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import tcdsl as tc

ROOT = Path(__file__).parents[2]


@tc.op
def cubes(x):
    total[()] += x[i] ** 3
    return total


def twice(x: Any) -> Any:
    return 2 * cubes(x)


slope = tc.grad(twice)


@tc.op
def dense(x, *, label, units):
    return relu("w" @ x + "b"[units])


@tc.op
def scaled(a, b):
    c[i] = a[i] * b[i] + 1
    return c


@tc.cd
def momentum(p, *, learning_rate):
    velocity = 0.5 * velocity + p.grad
    p -= learning_rate * velocity


class Model:
    def __init__(self, factor: float) -> None:
        self.factor = factor

    @tc.op
    def loss(self, x):
        total[()] += self.factor * x[i]
        return total


def drawn(generator: np.random.Generator, sizes: tuple[int, ...]) -> np.ndarray:
    return generator.normal(size=sizes)


X = np.array([1.0, 2.0, 3.0])


def leaves() -> tuple[tc.Tensor, tc.Tensor]:
    return tc.param("w", init=[1.0, 2.0, 3.0]), tc.tensor(X * 10, label="x")


def made() -> dict[str, tuple[Any, Callable[[Any], Any]]]:
    """What is pickled, and what it computes."""
    w, x = leaves()
    layer = dense(label="hidden", units=2)
    layer(tc.tensor(np.ones(4)))
    ones = np.ones(4)
    return {
        "gradient": (slope, lambda f: f(X)),
        "value and gradient": (tc.value_and_grad(twice), lambda f: f(X)[1]),
        "gradient of a gradient": (tc.jacobian(slope), lambda f: f(X)),
        "hessian": (tc.hessian(cubes), lambda f: f(X)),
        "gradient of a method": (tc.grad(Model(3.0).loss), lambda f: f(X)),
        "pullback": (tc.vjp(cubes, X)[1], lambda f: f(2.0)[0]),
        "linearization": (tc.linearize(cubes, X)[1], lambda f: f(X)),
        "parameter": (w, lambda t: t.value),
        "drawn parameter": (tc.param("drawn", o=2, i=3, init=drawn), lambda t: t.value),
        "uniform parameter": (tc.param("uniform", o=2, i=3), lambda t: t.value),
        "computed": ((w * x).sum(), lambda t: t.value),
        "statement": (scaled(w, x), lambda t: t.value),
        "view": (tc.einsum("i;j=>ij", w, x)[1:, 0], lambda t: t.value),
        "functions": (np.exp(w / 10).astype("float32") @ x, lambda t: t.value),
        "layer": (layer, lambda f: f(tc.tensor(ones)).value),
        "layer on arrays": (layer, lambda f: f(ones)),
        "code": (tc.train.grad_update((w * x).sum()), lambda code: tc.compile(code).run()),
        "static index": (tc.static_index("batch_n", 5), lambda t: (t.extent, t.value)),
    }


def copied(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("duplicate", [copied, copy.deepcopy, copy.copy])
def test_copies_compute_the_same(duplicate: Callable[[Any], Any]) -> None:
    for name, (value, compute) in made().items():
        before = duplicate(value)
        assert type(before) is type(value)
        expected = compute(value)
        # Also where it has been compiled.
        for each in (before, duplicate(value)):
            assert_array_equal(np.asarray(compute(each), object), np.asarray(expected, object), err_msg=name)


def test_what_is_pickled_together_stays_together() -> None:
    w, x = leaves()
    product = w * x
    total, largest = product.sum(), product.max()
    state = copied({"w": w, "total": total, "product": product, "largest": largest})
    assert state["total"].operands[0] is state["product"]
    assert state["largest"].operands[0] is state["product"]
    assert state["product"].operands[0] is state["w"]
    state["w"].value = np.zeros(3)
    assert (state["total"].value, total.value) == (0, 140)


def test_values_are_computed_anew_where_data_changes_after_loading() -> None:
    # Moments count from the start of each process.
    w, x = leaves()
    total = (w * x).sum()
    assert total.value == 140
    loaded = copied(total)
    assert loaded.value == 140
    loaded.operands[0].operands[0].value = np.ones(3)
    assert loaded.value == 60


def test_deep_graphs() -> None:
    w, _ = leaves()
    deep = w
    for k in range(500):
        deep = deep + float(k)
    for duplicate in (copied, copy.deepcopy):
        node = duplicate(deep)
        for k in reversed(range(500)):
            node, number = node.arguments
            assert number == k
        assert_array_equal(node.value, X)


def test_gradients_and_the_state_of_code_are_kept() -> None:
    w, x = leaves()
    loss = (w * x).sum()
    step = tc.compile(tc.train.grad_update(loss), momentum(w, learning_rate=0.1))
    step.run(learning_rate=0.01)
    other, parameter = copied((step, w))
    assert_array_equal(parameter.grad, x.value)
    for each in (step, other):
        each.run()
    assert_allclose(parameter.value, w.value)
    assert_allclose(w.value, X - 0.01 * (1 + 1.5) * 10 * X)
    assert list(other.state) == ["velocity.w"]


def test_a_copied_routine_has_memory_of_its_own() -> None:
    w, x = leaves()
    step = tc.compile(tc.train.grad_update((w * x).sum()), momentum(w, learning_rate=0.1))
    step.run()
    before = np.array(w.value)
    other = copy.deepcopy(step)
    other.run()
    assert_array_equal(w.value, before)
    (parameter,) = (buffer.owner for buffer in other.linked.written if buffer.label == "w")
    del step, w, x
    gc.collect()
    other.run()
    assert_allclose(parameter.value, X - 0.1 * (1 + 1.5 + 1.75) * 10 * X)


def test_methods_of_copied_objects_are_their_own() -> None:
    model = Model(3.0)
    assert model.loss(X) == 18
    other = copied(model)
    other.factor = 5.0
    assert (model.loss(X), other.loss(X)) == (18, 30)
    assert not pickle.loads(pickle.dumps(model.__dict__["__tcdsl_bound__"]))


def test_lambdas_are_named_in_the_fault() -> None:
    with pytest.raises((pickle.PicklingError, AttributeError), match="<lambda>"):
        pickle.dumps(tc.grad(lambda x: cubes(x) + 1))


def test_shapes_that_are_not_known_are_not_guessed() -> None:
    with pytest.raises(tc.ShapeError):
        pickle.dumps(tc.param("open"))


def test_another_process_computes_the_same(tmp_path: Path) -> None:
    things = {name: value for name, (value, _) in made().items()}
    (tmp_path / "things").write_bytes(pickle.dumps(things))
    script = (
        "import pickle, sys, tests.tensors.test_pickling as here\n"
        "things = pickle.load(open(sys.argv[1], 'rb'))\n"
        "compute = {name: compute for name, (_, compute) in here.made().items()}\n"
        "names = ('gradient', 'pullback', 'computed', 'drawn parameter', 'layer')\n"
        "pickle.dump({name: compute[name](things[name]) for name in names}, open(sys.argv[2], 'wb'))\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "things"), str(tmp_path / "results")]
    subprocess.run(command, check=True, cwd=ROOT, timeout=120)
    results = pickle.loads((tmp_path / "results").read_bytes())
    for name, (_, compute) in made().items():
        if name in results and name not in ("drawn parameter", "layer"):
            assert_allclose(results[name], compute(things[name]), err_msg=name)
    assert_array_equal(results["drawn parameter"], things["drawn parameter"].value)
    assert_array_equal(results["layer"], things["layer"](np.ones(4)))


def test_functions_without_a_name_by_value() -> None:
    cloudpickle = pytest.importorskip("cloudpickle")
    factor = 3.0

    @tc.op
    def local(x):
        total[()] += factor * x[i] ** 2
        return total

    with pytest.raises(pickle.PicklingError, match="or use cloudpickle"):
        pickle.dumps(local)
    for value in (local, tc.grad(local), tc.grad(lambda x: local(x) * 2)):
        file = io.BytesIO()
        cloudpickle.dump(value, file)
        assert_array_equal(pickle.loads(file.getvalue())(X), value(X))
    assert pickle.loads(cloudpickle.dumps(cubes)) is cubes


MAIN = """\
import numpy as np, tcdsl as tc, cloudpickle, sys
from tcdsl import op
def bent(v):
    return v * SCALE if v > 1 else v
SCALE = 3.0
@op
def inner(x):
    y[i] = bent(x[i])
    return y
class Model:
    def __init__(self, w):
        self.w = w
    @op
    def run(self, x):
        return x * self.w
    @property
    @op
    def total(self):
        t[()] += self.w[i]
        return t
@op
def outer(x, *, n=1):
    t[()] += sum(inner(x)[i] * n for i in range(x.shape[0]))
    return t
@op
def faulty(x):
    y[i] = x[j]
    return y
def make(k):
    @op
    def f(x):
        y[i] = bent(x[i]) * k
        return y
    return f
cloudpickle.dump((outer, tc.grad(outer), Model(np.ones(3)), faulty, make), open(sys.argv[1], "wb"))
"""


def test_operations_of_a_script_by_value_in_another_process(tmp_path: Path) -> None:
    pytest.importorskip("cloudpickle")
    script = tmp_path / "script.py"
    script.write_text(MAIN)
    subprocess.run([sys.executable, script, tmp_path / "things"], check=True, cwd=ROOT, timeout=120)
    for text in (MAIN, None, MAIN.replace("SCALE = 3.0", "SCALE = 4.0\n")):
        # The file is there, is gone, and has changed.
        script.unlink(missing_ok=True)
        if text is not None:
            script.write_text(text)
        outer, slope, model, faulty, make = pickle.loads((tmp_path / "things").read_bytes())
        x = np.arange(4.0)
        assert outer(x, n=2) == 32
        assert slope(x).tolist() == [1, 1, 3, 3]
        assert (model.run(x[:3]).tolist(), model.total) == ([0, 1, 2], 3)
        assert "y[i] = bent(x[i])" in str(outer.function.__globals__["inner"].explain("source"))
        with pytest.raises(tc.DslSyntaxError) as caught:
            faulty(x)
        assert "    y[i] = x[j]\n" in str(caught.value)
        assert "script.py" in str(caught.value)
        if text == MAIN:
            assert make(2.0)(x).tolist() == [0, 2, 12, 18]
        else:
            with pytest.raises(tc.DslSyntaxError, match="came by value, without its text: put that into a module"):
                make(2.0)
        again = pickle.loads(_by_value(outer))
        assert again(x) == 16


def _by_value(value: object) -> bytes:
    import cloudpickle

    return cloudpickle.dumps(value)


def test_joblib_takes_operations_of_main(tmp_path: Path) -> None:
    pytest.importorskip("joblib")
    script = tmp_path / "script.py"
    script.write_text(
        MAIN.partition("cloudpickle.dump")[0].replace(", cloudpickle, sys", "")
        + "from joblib import Parallel, delayed\n"
        "calls = [outer, tc.grad(outer), Model(np.ones(3)).run, lambda x: outer(x), lambda x: make(2.0)(x)]\n"
        "print(Parallel(n_jobs=2)(delayed(each)(np.arange(3.0)) for each in calls))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, script], check=True, cwd=tmp_path, timeout=120, capture_output=True, text=True, env=environment
    )
    assert (
        done.stdout
        == "[np.float64(7.0), array([1., 1., 3.]), array([0., 1., 2.]), np.float64(7.0), array([ 0.,  2., 12.])]\n"
    )
