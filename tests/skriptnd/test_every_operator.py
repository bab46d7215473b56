"""Every operator of the library has its values compared, and its gradient checked, at odd sizes and several ranks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl.library.texts import MODULES, library_module
from tests.skriptnd.graphs import operator_graph, reals, values
from tests.skriptnd.test_library import BINARY, UNARY, Reference, X, Y, close, cubic, sampled, signed, truths, whole

MORE: dict[str, tuple[list[Any], str, Reference]] = {
    "math.gt": ([X, Y], "bool", np.greater),
    "math.le": ([whole(2, 3), whole(3, seed=9)], "bool", np.less_equal),
    "math.min_n": ([[X, Y, X * Y]], "real", lambda xs: np.min(xs, 0)),
    "math.prod_n": ([[whole(3, 7), whole(3, 7, seed=8)]], "int", lambda xs: np.prod(xs, 0)),
    "math.any_reduce{axes=[1]}": ([truths(3, 5)], "bool", lambda x: x.any(1, keepdims=True)),
    "math.all_reduce{axes=[-1], squeeze=true}": ([truths(7, 2)], "bool", lambda x: x.all(1)),
    "math.all_n": ([[truths(5), truths(5, seed=9)]], "bool", lambda xs: np.all(xs, 0)),
    "math.argmin_nd{axes=[0, 1]}": (
        [X],
        "int",
        lambda x: np.stack([np.unravel_index(x[:, :, k].argmin(), (2, 3)) for k in range(5)])[None, None],
    ),
    "math.argmax_n": ([[X, Y]], "int", lambda xs: np.argmax(xs, 0)),
    "image.nearest_resize{axes=[1], size=[3]}": ([signed(2, 7)], "real", lambda x: x[:, [1, 3, 5]]),
    "image.cubic_resize{axes=[1], size=[9]}": (
        [signed(2, 7)],
        "real",
        lambda x: sampled(x, 9, "SYMMETRIC", cubic(-0.75)),
    ),
}

IMAGE, FILTER = signed(2, 4, 5, 7), signed(6, 4, 3, 3, seed=5)
CELLS = [signed(2, 3), signed(2, 3, seed=2), signed(2, 5, seed=3)]
GATES = [signed(12, 5, seed=4), signed(12, 3, seed=5), signed(12, seed=6)]
REGIONS = [np.float32([[0, 1, 4, 3], [2, 2, 6, 4]]), np.int32([1, 0])]
GRID = signed(2, 3, 5, 2, seed=9) * 0.9
# Gradients of operators whose values are compared in tests of their own. Rows of the tables above have theirs as well.
GRADIENTS: dict[str, list[Any]] = {
    "math.moments{axes=[1]}": [X],
    "math.round": [X * 3],
    "math.prod_n": [[X, Y, X * Y]],
    "layout.split{axis=1, sizes=[1, 2]}": [X],
    "layout.unstack{axis=2}": [X],
    "layout.scatter{axis=0}": [signed(4, 3), np.int32([[1, 0, 2], [1, 2, 2]]), signed(2, 3, seed=6)],
    "layout.scatter_nd": [signed(4, 3), np.int32([[2], [0], [2]]), signed(3, 3, seed=7)],
    "nn.conv{padding=[1, 0, 2, 1], stride=2, groups=2}": [IMAGE, signed(6, 2, 3, 3, seed=5), signed(6)],
    "nn.deconv{padding=1, stride=2}": [signed(2, 6, 3, 4), FILTER],
    **{f"nn.{kind}_pool{{size=3, stride=2, axes=[2, 3]}}": [IMAGE] for kind in ("max", "sum", "avg", "rms")},
    "nn.lp_pool{size=3, axes=[2, 3], p=3.0}": [IMAGE],
    "nn.lstm_step": [*CELLS, *GATES],
    "nn.lstm_loop": [signed(3, 2, 5), *GATES, *CELLS[:2]],
    "nn.lstm": [signed(3, 2, 5), *GATES, *CELLS[:2]],
    "image.nearest_downsample{axes=[1, 2], factor=[2, 3]}": [signed(3, 4, 9)],
    "image.nearest_upsample{axes=[1], factor=[3]}": [signed(3, 5)],
    "image.area_downsample{axes=[0, 2], factor=[3, 2]}": [signed(3, 5, 4)],
    "image.linear_upsample{axes=[1, 2], factor=[2, 3]}": [signed(2, 3, 5)],
    "image.linear_resize{axes=[1, 2], size=[7, 3]}": [signed(2, 3, 5)],
    "image.resize{axes=[1], size=[7], mode='CUBIC'}": [signed(2, 5)],
    "image.rescale{axes=[1], factor=[1.5], mode='LINEAR'}": [signed(2, 5)],
    "image.max_roi_pool{output_size=[2, 3]}": [IMAGE, *REGIONS],
    "image.avg_roi_pool{output_size=[2, 3]}": [IMAGE, *REGIONS],
    **{
        f"image.grid_sample{{mode='{mode}', padding='{padding}'}}": [IMAGE, GRID]
        for mode, padding in (("LINEAR", "ZEROS"), ("CUBIC", "REFLECT"))
    },
    "layer.linear{channels=3}": [signed(2, 5)],
    "layer.conv{channels=3, size=3}": [IMAGE],
    "layer.deconv{channels=3, size=3}": [IMAGE],
    "layer.batch_norm": [IMAGE],
    "algo.top_k{k=2, axis=1}": [X],
    "misc.mesh_grid": [[signed(3), signed(3, seed=2)]],
}
#: Their results are no reals, or follow no input smoothly; what rounds is in test_quantization.py.
WITHOUT = {
    *(f"math.{each}" for each in ("not", "lt", "gt", "le", "ge", "eq", "ne", "and", "or", "xor")),
    *(f"math.{kind}_{what}" for kind in ("any", "all") for what in ("reduce", "n")),
    *(f"math.arg{kind}{what}" for kind in ("min", "max") for what in ("", "_nd", "_n")),
    *(f"layout.{each}" for each in ("tensor", "range", "shape", "nonzero", "cast")),
    *("algo.nonmax_suppress", "rand.uniform", "rand.normal", "rand.bernoulli"),
    *("quant.zero_point_linear_quantize", "quant.min_max_linear_quantize"),
}
OUTPUTS = {"layout.split": ["real..(2)"], "layout.unstack": ["real..(5)"], "misc.mesh_grid": ["real..(2)"]}
OUTPUTS |= {"math.moments": ["real"] * 2, "nn.lstm_step": ["real"] * 2, "algo.top_k": ["real", "int"]}
OUTPUTS |= dict.fromkeys(("nn.lstm", "nn.lstm_loop"), ["real"] * 3)


def named(call: str) -> str:
    found = re.match(r"\w+\.\w+", call)
    assert found is not None
    return found[0]


def rows() -> Iterator[tuple[str, list[Any]]]:
    """A call and its inputs for each operator that has a gradient."""
    tables: list[tuple[str, list[Any]]] = [(call, [array]) for call, (array, _) in UNARY.items()]
    for table in (BINARY, MORE):
        tables.extend((call, arrays) for call, (arrays, kind, _) in table.items() if kind == "real")
    known = {named(call) for call in GRADIENTS}
    yield from GRADIENTS.items()
    for call, arrays in tables:
        if named(call) not in known | WITHOUT:
            known.add(named(call))
            yield call, arrays


def operators() -> set[str]:
    return {f"{module}.{name}" for module in MODULES for name in library_module(module) if name[0] != "_"}


@pytest.mark.parametrize("call", MORE)
def test_more_operators(call: str) -> None:
    arrays, kind, reference = MORE[call]
    (found,) = values(operator_graph(call, arrays, [kind]), arrays)
    close(found, reference(*arrays))


def test_every_operator_has_a_row() -> None:
    texts = "".join(each.read_text(encoding="utf-8") for each in Path(__file__).parent.glob("test_*.py"))
    assert not {each for each in operators() if not re.search(rf"\b{each}\b", texts)}
    assert {named(call) for call, _ in rows()} == operators() - WITHOUT


def check(call: str, arrays: list[Any]) -> None:
    graph = operator_graph(call, arrays, OUTPUTS.get(named(call), ["real"]))
    for label, zeros in graph.variables.items():
        graph.variables[label] = reals(*zeros.shape)
    given = [each for array in arrays for each in (array if isinstance(array, list) else [array])]

    def flat(*parts: Any) -> Any:
        rest = iter(parts)
        packed = [[next(rest) for _ in each] if isinstance(each, list) else next(rest) for each in arrays]
        return graph(*packed)

    tc.check_grads(flat, given)


ROWS = dict(rows())


@pytest.mark.long
@pytest.mark.parametrize("call", ROWS)
def test_gradients_of_every_operator(call: str) -> None:
    check(call, ROWS[call])


@pytest.mark.parametrize(
    "call",
    ["image.grid_sample{mode='CUBIC', padding='REFLECT'}", "nn.lstm_loop", "nn.lp_pool{size=3, axes=[2, 3], p=3.0}"],
)
def test_gradients_of_some(call: str) -> None:
    check(call, ROWS[call])
