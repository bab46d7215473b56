"""What a target must be suffices: the one of docs/extending.md, which interprets programs, runs what the CPU runs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tcdsl as tc
from tcdsl.config import settings
from tcdsl.targets import registry
from tcdsl.targets.cpu.target import CpuTarget
from tcdsl.targets.protocol.target import MemorySpace
from tests.documents import examples

PAGE = Path(__file__).parents[2] / "docs" / "extending.md"
RNG = np.random.default_rng(3)


@pytest.fixture(autouse=True)
def interpreter() -> None:
    """The page's target, registered under the name "interpreter"."""
    (definition,) = [each.code for each in examples(PAGE.read_text()) if "class Interpreter:" in each.code]
    exec(compile(definition, str(PAGE), "exec"), {})


@tc.op
def product(A, B):
    C[i, j] += A[i, k] * B[k, j]
    return C


@tc.op
def softmax(x):
    m[i] >>= x[i, j]
    e[i, j] = exp(x[i, j] - m[i])
    s[i] += e[i, j]
    p[i, j] = e[i, j] / s[i]
    return p


@tc.cd
def descend(w, g, rate):
    w[i] -= rate * g[i]


@tc.op
def rows(table, at):
    y[i, j] = table[at[i], j]
    return y


@tc.op
def energy(A, x):
    y[i] += A[i, j] * x[j]
    e[()] += tanh(y[i]) * y[i]
    return e


def agree(run: Callable[[], object]) -> None:
    expected = run()
    with tc.config(target="interpreter"):
        found = run()
    for mine, its in zip(np.atleast_1d(found), np.atleast_1d(expected), strict=True):
        np.testing.assert_allclose(mine, its, rtol=1e-6, atol=1e-6)


def test_programs_give_what_they_give_on_the_cpu() -> None:
    A, B = RNG.normal(size=(3, 4)), RNG.normal(size=(4, 2))
    agree(lambda: product(A, B))
    agree(lambda: product(A.T.copy().T, B))
    agree(lambda: softmax(A))
    agree(lambda: [product(A, B) for _ in range(3)])


def test_gradients_do_too() -> None:
    A, x = RNG.normal(size=(3, 4)), RNG.normal(size=4)
    agree(lambda: tc.grad(energy, argnums=1)(A, x))
    agree(lambda: tc.grad(energy)(A, x))


def test_updates_in_place_and_errors() -> None:
    def descended() -> np.ndarray:
        w = np.ones(3)
        descend(w, np.arange(3.0), 0.5)
        return w

    agree(descended)
    table = np.arange(6.0).reshape(3, 2)
    with tc.config(target="interpreter"):
        with pytest.raises(tc.DataIndexError):
            rows(table, np.array([0, 3]))
        with pytest.raises(tc.ShapeError, match="read-only"):
            descend(np.broadcast_to(np.ones(3), 3), np.arange(3.0), 0.5)


def test_graphs_and_routines() -> None:
    def trained() -> np.ndarray:
        w = tc.param("w", o=2, i=3, init=1.0)
        x = tc.tensor(np.arange(3.0), label="x")
        loss = ((w @ x - 1.0) ** 2).mean()
        step = tc.compile(tc.train.grad_update(loss), tc.train.sgd_update(loss, learning_rate=0.1))
        for _ in range(3):
            step.run()
        return np.asarray(w.value)

    agree(trained)


def test_the_module_is_what_the_target_generates() -> None:
    A = np.ones((2, 2))
    with tc.config(target="interpreter"):
        text = str(product.explain("python", A, A))
    assert text.startswith("kernel product\n")
    assert "@nest" in str(product.explain("python", A, A))


def test_targets_have_names() -> None:
    with pytest.raises(tc.TcdslError, match=r"there is no target 'gpu'; the targets are cpu, interpreter, numba"):
        tc.config(target="gpu")
    assert settings().target == "cpu"


def test_a_target_knows_the_memory_of_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    class Elsewhere(CpuTarget):
        spaces = (MemorySpace("elsewhere", (2, 0)),)

    monkeypatch.setattr(registry, "_MAKERS", {"elsewhere": Elsewhere})
    monkeypatch.setattr(registry, "_MADE", {})
    monkeypatch.setattr(sys.modules["tcdsl.config"], "TARGET_NAMES", {"elsewhere"})
    with pytest.raises(tc.TcdslError, match="knows no memory space 'host'"):
        registry.target_named("elsewhere")


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (5, 7)])
@pytest.mark.parametrize("dtype", ["bool", "float16", "float32", "int64"])
def test_the_cpu_allocates_zeros_on_cache_lines(shape: tuple[int, ...], dtype: str) -> None:
    array = CpuTarget().allocate(shape, dtype)
    assert (array.shape, str(array.dtype)) == (shape, dtype)
    assert array.flags.c_contiguous
    assert array.flags.writeable
    assert not array.any()
    assert array.__array_interface__["data"][0] % 64 == 0 or not array.size
