"""Gradients of the characteristic programs against JAX, PyTorch and finite differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tests.jax_functions import compiled
from tests.programs.table import LARGE, PROGRAMS, CharacteristicProgram, arguments_of
from tests.programs.torch_references import torch_references

SMOOTH = [program for program in PROGRAMS.values() if program.smooth]
programs = pytest.mark.parametrize("program", SMOOTH, ids=str)


def pulled_back(program: CharacteristicProgram, arguments: list[np.ndarray]) -> tuple[np.ndarray, list[Any]]:
    """A cotangent and what the program's pullback makes of it, for every argument that has a gradient."""
    options = program.options
    function: Callable[..., Any] = program.function
    if options:
        function = lambda *arrays: program.function(*arrays, **options)  # noqa: E731
    value, pullback = tc.vjp(function, *arguments)
    cotangent = np.random.default_rng(7).uniform(-1, 1, value.shape).astype(value.dtype)
    gradients = pullback(cotangent)
    assert len(gradients) == len(arguments)
    for argument, gradient in zip(arguments, gradients, strict=True):
        if argument.dtype.kind == "f":
            assert gradient.shape == argument.shape
            assert gradient.dtype == argument.dtype
        else:
            assert gradient is None
    return cotangent, [gradient for gradient in gradients if gradient is not None]


def compare(found: list[Any], wanted: list[Any], dtype: str = "float64") -> None:
    tolerance = {"rtol": 1e-10, "atol": 1e-11} if dtype == "float64" else {"rtol": 2e-4, "atol": 2e-5}
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, np.asarray(other), **tolerance)


def agree_with_jax(program: CharacteristicProgram, arguments: list[np.ndarray]) -> None:
    jax = pytest.importorskip("jax")
    cotangent, found = pulled_back(program, arguments)
    places = [place for place, argument in enumerate(arguments) if argument.dtype.kind == "f"]

    def smooth(*values: Any) -> Any:
        filled: list[Any] = list(arguments)
        for place, value in zip(places, values, strict=True):
            filled[place] = value
        return program.reference(jax.numpy, *filled, **program.options)

    def pulled(cotangent: Any, *values: Any) -> Any:
        return jax.vjp(smooth, *values)[1](cotangent)

    with jax.enable_x64(True):
        compare(found, compiled(pulled)(cotangent, *(arguments[place] for place in places)))


@pytest.mark.long
@programs
def test_gradients_of_all_shapes_agree_with_jax(program: CharacteristicProgram) -> None:
    # JAX compiles for each shape, so that only the large one below is not long. PyTorch judges all shapes.
    for call in program.calls:
        if not any(0 in shape for shape in call):
            agree_with_jax(program, arguments_of(program, call, "float64"))


@programs
def test_large_gradients_agree_with_jax(program: CharacteristicProgram) -> None:
    agree_with_jax(program, arguments_of(program, LARGE[program.name], "float64"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@programs
def test_gradients_agree_with_torch(program: CharacteristicProgram, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    references = torch_references()
    if program.name not in references:
        pytest.skip("no operator of PyTorch's own")
    arguments = arguments_of(program, program.calls[0], dtype)
    cotangent, found = pulled_back(program, arguments)
    tensors = [torch.tensor(array, requires_grad=array.dtype.kind == "f") for array in arguments]
    value = references[program.name](*tensors)
    smooth = [tensor for tensor in tensors if tensor.requires_grad]
    wanted = torch.autograd.grad(value, smooth, torch.tensor(cotangent), allow_unused=True)
    compare(found, [np.zeros(t.shape) if g is None else g.numpy() for t, g in zip(smooth, wanted, strict=True)], dtype)


@programs
def test_check_grads(program: CharacteristicProgram) -> None:
    arguments = arguments_of(program, program.calls[0], "float64")
    function: Callable[..., Any] = program.function
    if program.options:
        function = lambda *arrays: program.function(*arrays, **program.options)  # noqa: E731
    tc.check_grads(function, tuple(arguments), order=1)


@programs
def test_gradients_of_empty_arguments_are_empty_or_zero(program: CharacteristicProgram) -> None:
    for call in program.calls:
        if any(0 in shape for shape in call):
            _, gradients = pulled_back(program, arguments_of(program, call, "float64"))
            assert all(np.isfinite(gradient).all() for gradient in gradients)
