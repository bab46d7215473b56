"""Whatever users hold says what it is, and tab completion shows what they use."""

from __future__ import annotations

import inspect
import io
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import tcdsl as tc
from tcdsl import cd, op


@op
def doubled(x: Any) -> Any:
    y[i] = x[i] * 2
    return y


@cd
def lowered(p: Any, *, by: float) -> None:
    p -= by


@op
def dense(x: Any, *, width: int) -> Any:
    return "w" @ x + "b"[width]


def total(x: Any) -> Any:
    return doubled(x).sum()


TITLES = {"torch": "PyTorch", "jax": "JAX", "xarray": "xarray", "pandas": "pandas", "polars": "polars"}
LIBRARIES = {name: title for name, title in TITLES.items() if find_spec(name) is not None}


def held() -> dict[str, Any]:
    """What users hold, by what its representation has to say."""
    x = np.ones(3)
    doubled(x)
    layer = dense(width=4)
    error = layer(tc.tensor(np.ones((6, 3), np.float32), batch=1)).sum()
    code = tc.train.grad_update(error)
    return {
        "op doubled": doubled,
        "cd lowered": lowered,
        "gradient by 0 of total": tc.grad(total),
        "Jacobian by 0 of doubled": tc.jacobian(doubled),
        "Hessian by 0 of total": tc.hessian(total),
        "pullback of doubled": tc.vjp(doubled, x)[1],
        "tangent map of doubled": tc.linearize(doubled, x)[1],
        "cost of doubled for x_0 = 3": doubled.cost(x),
        "hits=": doubled.cache_info(),
        "profile of doubled": doubled.profile(x),
        "program doubled": doubled.explain("ir", x),
        "<program doubled: x -> y; 1 statement>": doubled.program(x),
        "<statement y[i] = x[i] * 2.0  for [i]: 0 <= i < x_0>": doubled.program(x).statements[0],
        "<op doubled> for Numba": tc.interop.numba(doubled),
        "host function sin": tc.interop.host(np.sin, shape=np.shape),
        "layer dense(width=4)": layer,
        "tensor sum: () float32": error,
        "value of sum": error.memory["value"] if error.value is not None else None,
        "param w: 3 -> 4": layer["w"],
        "Shape 3 -> 4": layer["w"].rows,
        "code grad_update_sum": code,
        "routine grad_update_sum": tc.compile(code),
        "config: ": tc.config,
        "primitive ": tc.tile.exp,
        "tensor n: () int64": tc.static_index("n", 3),
        **{f"<op doubled> for {title}": getattr(tc.interop, name)(doubled) for name, title in LIBRARIES.items()},
    }


def test_objects_say_what_they_are() -> None:
    for text, each in held().items():
        assert text in repr(each)
        assert " at 0x" not in repr(each)
        assert len(repr(each).splitlines()) < 30


def test_programs_print_as_index_notation() -> None:
    printed = str(doubled.program(np.ones(3)))
    assert "y[i] = x[i] * 2.0  for [i]: 0 <= i < x_0" in printed
    assert printed == doubled.explain("ir", np.ones(3)).rstrip()


def test_classes_of_results_have_representations_of_their_own() -> None:
    public = [getattr(tc, name) for name in tc.__all__]
    kinds = {each for each in public if inspect.isclass(each)} | {type(each) for each in public if callable(each)}
    plain = {each for each in kinds if each.__repr__ is object.__repr__}
    assert not plain


def test_completion_shows_what_users_use() -> None:
    shown = held()
    function = [name for name in dir(doubled) if not name.startswith("_")]
    used = ["cache_clear", "cache_info", "cost", "defjvp", "defvjp", "explain", "interpret", "parameters", "profile"]
    assert sorted(function) == sorted([*used, "program"])
    assert set(dir(shown["gradient by 0 of total"])) >= {"cost", "explain", "profile", "__call__"}
    tensor = dir(shown["tensor sum: () float32"])
    assert {"value", "grad", "shape", "sum", "label", "T"} <= set(tensor)
    assert not {"buffer", "recorded", "builder", "row_ranks"} & set(tensor)
    assert "scope" not in dir(shown["layer dense(width=4)"])
    assert "linked" not in dir(shown["routine grad_update_sum"])


@pytest.mark.parametrize("terminal", [True, False])
def test_terminals_show_tables(terminal: bool) -> None:
    x = np.ones(3)
    for each, told in ((doubled.cost(x), "multiplications"), (doubled.cache_info(), "kernels"), (doubled, "y[i] =")):
        stream = io.StringIO()
        console = Console(
            file=stream, force_terminal=terminal, width=100, color_system="truecolor" if terminal else None
        )
        console.print(each)
        assert ("\x1b[" in stream.getvalue()) == terminal
        assert told in stream.getvalue() or terminal
    stream = io.StringIO()
    doubled.cost(x).table().print(Console(file=stream, force_terminal=terminal, width=30))
    assert ("points / (operations + elements)" in stream.getvalue()) != terminal, (
        "lines stay whole where no terminal is"
    )


def test_tensors_show_their_axes() -> None:
    x = tc.tensor(np.ones((6, 3), np.float32), batch=1)
    open_one = tc.param("w", o=4)
    assert "<td>output</td><td></td><td class=right>4</td>" in open_one._repr_html_()
    assert "<td>input</td><td>...</td><td class=right>?</td>" in open_one._repr_html_()
    made = open_one @ x
    shown = made._repr_html_()
    assert "<td>batch</td><td></td><td class=right>6</td>" in shown
    assert shown.count("<rect") == 3
    assert "<svg" not in x._repr_html_()
    assert tc.tensor(1.0)._repr_html_()
    wide = x
    for _ in range(60):
        wide = wide + x
    assert wide._repr_html_().count("<rect") == 40
