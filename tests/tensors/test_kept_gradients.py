"""Gradients kept on disk serve later links, and nothing but the program and the tensors that they are of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import tcdsl as tc
import tcdsl.autodiff
from tests.tensors.interpreting import run


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The gradients that are derived, in a cache directory of this test's own."""
    derived: list[Any] = []
    original = tcdsl.autodiff.gradient
    monkeypatch.setattr(
        tcdsl.autodiff, "gradient", lambda program, wrt: derived.append(program) or original(program, wrt)
    )
    with tc.config(cache_dir=str(tmp_path)):
        yield derived


def loss_of(w: tc.Tensor, x: tc.Tensor, power: int = 2) -> tc.Tensor:
    return ((w * x) ** power).sum()


def tensors() -> tuple[tc.Tensor, tc.Tensor]:
    return tc.param("w", init=[1.0, 2.0]), tc.tensor(np.array([3.0, 4.0]), label="x", grad=True)


def test_a_gradient_is_derived_once(made: list[Any]) -> None:
    for _ in range(2):
        w, x = tensors()
        run(tc.train.grad_update(loss_of(w, x)))
        assert_allclose(w.grad, [18, 64])
        assert_allclose(x.grad, [6, 32])
    assert len(made) == 1


def test_other_programs_have_gradients_of_their_own(made: list[Any]) -> None:
    w, x = tensors()
    run(tc.train.grad_update(loss_of(w, x, 2)))
    run(tc.train.grad_update(loss_of(w, x, 3)))
    assert_allclose(w.grad, [81, 768])
    w, x = tc.param("w", init=[1.0, 2.0]), tc.tensor(np.array([3.0, 4.0]), label="x")
    run(tc.train.grad_update(loss_of(w, x, 2)))
    assert_allclose(w.grad, [18, 64])
    assert len(made) == 3


@pytest.mark.filterwarnings("ignore:compiled programs cannot be kept")
@pytest.mark.parametrize(
    "damage", [lambda data: data[:-3], lambda data: b"", lambda data: data[:40] + b"?" + data[41:]]
)
def test_damaged_files_are_made_again(made: list[Any], tmp_path: Path, damage: Any) -> None:
    for _ in range(2):
        w, x = tensors()
        run(tc.train.grad_update(loss_of(w, x)))
        (path,) = (tmp_path / "modules").glob("*.gradient")
        path.write_bytes(damage(path.read_bytes()))
    assert len(made) == 2
    assert_allclose(w.grad, [18, 64])


def test_clearing_the_cache_removes_them(made: list[Any], tmp_path: Path) -> None:
    from tcdsl.targets.cache.store import clear_cache

    w, x = tensors()
    run(tc.train.grad_update(loss_of(w, x)))
    clear_cache(tmp_path)
    assert not list((tmp_path / "modules").glob("*.gradient"))
