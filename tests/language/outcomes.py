"""What a decorated function does, compiled and interpreted: both must do the same.

::

    assert_gives(matmul, A, B, wanted=A @ B)
    assert "for axis 0" in refusal(tc.ShapeError, matmul, A, B)
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcdsl.ir.interpreter.point_values import InternalRangeError

__all__ = ["assert_gives", "changed", "outcome", "refusal"]


def outcome(f: Any, *arguments: Any, **configuration: Any) -> Any:
    """What an operation gives, after a check that the interpreter gives the same."""
    found = f(*arguments, **configuration)
    interpreted = f.interpret(*arguments, **configuration)
    if not isinstance(found, tuple):
        _assert_same(interpreted, found)
        return found
    assert len(found) == len(interpreted)
    for one, other in zip(interpreted, found, strict=True):
        _assert_same(one, other)
    return found


def _assert_same(interpreted: Any, found: Any) -> None:
    interpreted, found = np.asarray(interpreted), np.asarray(found)
    assert interpreted.dtype == found.dtype
    assert interpreted.shape == found.shape
    np.testing.assert_allclose(found, interpreted, rtol=1e-6 if found.dtype == np.float32 else 1e-12, atol=1e-12)


def assert_gives(f: Any, *arguments: Any, wanted: Any, dtype: Any = None, **configuration: Any) -> None:
    """The outcome of an operation is ``wanted``: shape and values, and ``dtype`` where it is given.

    A tuple of results is compared part by part.
    """
    found = outcome(f, *arguments, **configuration)
    parts = found if isinstance(found, tuple) else (found,)
    expected = wanted if isinstance(found, tuple) else (wanted,)
    assert len(parts) == len(expected)
    for number, (part, value) in enumerate(zip(parts, expected, strict=True)):
        value = np.asarray(value)
        assert np.shape(part) == value.shape, f"result {number}"
        np.testing.assert_allclose(part, value, rtol=1e-6, atol=1e-12, err_msg=f"result {number}")
        assert dtype is None or part.dtype == dtype


def changed(f: Any, *arguments: Any, written: tuple[int, ...] = (0,), **configuration: Any) -> list[np.ndarray]:
    """What code in place makes of its arguments ``written``; the interpreter must make the same of them."""
    interpreted = f.interpret(*arguments, **configuration)
    copies = [np.copy(argument) if isinstance(argument, np.ndarray) else argument for argument in arguments]
    assert f(*copies, **configuration) is None
    assert len(interpreted) == len(written)
    for one, position in zip(interpreted, written, strict=True):
        _assert_same(one, copies[position])
    return [copies[position] for position in written]


def refusal(kind: type[Exception], f: Any, *arguments: Any, **configuration: Any) -> str:
    """The message with which a call fails; the interpreter must fail with the same kind of error.

    What the interpreter finds out of range although the program takes it for granted is no refusal: a compiled call
    writes there.
    """
    with pytest.raises(kind) as interpreted:
        f.interpret(*arguments, **configuration)
    assert not isinstance(interpreted.value, InternalRangeError), interpreted.value
    with pytest.raises(kind) as caught:
        f(*arguments, **configuration)
    return str(caught.value)
