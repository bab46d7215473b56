"""What the shapes of a graph's inputs are made of: sizes of earlier inputs, attributes, helper symbols."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl.frontend.skriptnd.text import expressions
from tcdsl.frontend.skriptnd.text.words import SKRIPTND_WORDS
from tcdsl.frontend.words import cursor
from tcdsl.frontend.words.cursor import Words
from tcdsl.frontend.words.languages import tokens_of
from tests.skriptnd.graphs import graph_of, reals


def zeros(shape: Any) -> Any:
    """An array, or a list of arrays, of these shapes."""
    return [zeros(each) for each in shape] if isinstance(shape, list) else np.zeros(shape, np.float32)


#: The inputs of a graph, shapes that fit, and shapes that do not with what is said of them.
ROWS: list[tuple[str, tuple[Any, ...], tuple[Any, ...], str]] = [
    ("x: real[n|5]; y: real[n];", ((3,), (3,)), ((3,), (4,)), "axis 0 of the input `y` of `g` has the extent 4, not 3"),
    (
        "x: real[n|5]; y: real[n|3];",
        ((3,), (3,)),
        ((4,), (4,)),
        "the input `y` of `g` has the extent 4, and 3 is the most",
    ),
    ("x: real[n|5]; y: real[2 * n + 1, n];", ((3,), (7, 3)), ((3,), (6, 3)), "axis 0 of the input `y` of `g` has the"),
    ("x: real[s|9..(2)]; y: real[s..(2)];", ((3, 4), (3, 4)), ((3, 4), (4, 3)), "axis 0 of the input `y`"),
    (
        "x: real[s|[2,5]..(2)];",
        ((2, 5),),
        ((5, 2),),
        "axis 0 of the input `x` of `g` has the extent 5, and 2 is the most",
    ),
    (
        "x: real[~|9..(2)]; n: real[a];",
        ((3, 4), (2,)),
        ((3, 4), (1,)),
        "axis 0 of the input `n` of `g` has the extent 1, not 2",
    ),
    ("x: real[w, k];", ((4, 3),), ((4, 2),), "axis 1 of the input `x` of `g` has the extent 2, not 3"),
    ("xs: real[..n|5]..(2);", ([(3,), (2,)],), ([(3,), (6,)],), "the input `xs` of `g` has the extent 6, and 5 is the"),
    (
        "xs: real[..n|5]..(2); y: real[~|9];",
        ([(3,), (2,)], (1,)),
        ([(3,)], (1,)),
        "`xs` has 2 tensors, and 1 are given",
    ),
    (
        "xs: real[..n|5]..(m|3); ys: real[..n]..(m);",
        ([(3,), (2,)], [(3,), (2,)]),
        ([(3,)], [(2,)]),
        "axis 0 of the input `ys`",
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_shapes_of_inputs(row: tuple[str, tuple[Any, ...], tuple[Any, ...], str]) -> None:
    inputs, fitting, other, message = row
    graph = graph_of(f"""graph g {{
        @attrib {{ a: int = 2; p: real..(k) = [1.0, 2.0, 3.0]; }} @using {{ w = 2 * a; }}
        @input {{ {inputs} }} @output {{ z: bool[]; }} @compose {{ z = true; }}
    }}""")
    assert graph(*map(zeros, fitting))
    with pytest.raises(tc.ShapeError) as caught:
        graph(*map(zeros, other))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ("x: real[n];", "an extent of `x` has no bound"),
        ("x: real[n + 1]; y: real[n|3];", "an extent of a graph's input is a name, a number, or made of attributes"),
        ("x: real[n|2.0];", "a bound that is no int, or negative"),
        ("x: real[p];", "an extent of `x` is of type int, or negative"),
        ("x: real[s|[2,5]..(3)];", "an entry of the shape of `x` is 3 axes"),
    ],
)
def test_shapes_that_say_nothing(inputs: str, message: str) -> None:
    with pytest.raises(tc.TcdslError) as caught:
        graph_of(f"""graph g {{
            @attrib {{ p: int = -1; }} @input {{ {inputs} }} @output {{ z: bool[]; }} @compose {{ z = true; }}
        }}""")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("compose", "message"),
    [
        ("y = exp(x);", "`exp` of a tensor"),
        ("y = -x;", "`-` of a tensor"),
        ("y = real(x);", "`real` of a tensor"),
        ("y = with s = x while true do math.exp(s);", "a loop that does not end: its condition is always true"),
        ("y = f(x);", "`y` is read, and has no values yet"),
    ],
)
def test_compositions_that_mean_nothing(compose: str, message: str) -> None:
    lower = "y[i,] = y[i,] + x[i,], i < n;" if compose == "y = f(x);" else "y[i,] = x[i,], i < n;"
    with pytest.raises(tc.TcdslError) as caught:
        graph_of(f"""import math;
        operator f {{ @input {{ x: real[n]; }} @output {{ y: real[n]; }} @lower {{ {lower} }} }}
        graph g {{ @input {{ x: real[3]; }} @output {{ y: real[3]; }} @compose {{ {compose} }} }}""")
    assert message in str(caught.value)


def test_values_in_long_texts_are_read_from_their_own_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    scanned: list[int] = []

    def counted(text: str, *place: Any) -> Any:
        scanned.append(len(text))
        return tokens_of(text, *place)

    monkeypatch.setattr(cursor, "tokens_of", counted)
    text = f"'{'{n} ' * 500}{{n + }}'"
    with pytest.raises(tc.DslSyntaxError, match="the text ends too early"):
        expressions.read_expression(Words(text, "text", SKRIPTND_WORDS))
    assert sum(scanned) == len(text) + 500 + len("n + ")


def test_inputs_that_are_left_out_are_null_or_have_their_default() -> None:
    graph = graph_of("""import math;
        graph g { @input { x: real[3]; a: optional real[3]; b: real[3] = 2.0; c: optional real[3]..(2); }
            @output { y: real[3]; }
            @compose { d = a ?? 0.0; e = math.add(x, d); f = math.mul(e, b);
                y = if ?c then math.add(f, c[1]) else f; } }""")
    x, ones = reals(3), np.ones(3, np.float32)
    np.testing.assert_allclose(graph(x), 2 * x)
    np.testing.assert_allclose(graph(x, None, ones), x)
    np.testing.assert_allclose(graph(x, ones, c=[ones, x]), 2 * (x + 1) + x)
    assert graph.shapes((3,)) == (3,)
    np.testing.assert_allclose(tc.grad(lambda x: graph(x).sum())(x), [2, 2, 2])


def test_inputs_have_more_axes_than_there_are_letters() -> None:
    text = "graph g { @input { x: real[AXES]; } @output { y: real; } @compose { y = x; } }"
    graph = graph_of(text.replace("AXES", ",".join("1" * 30)))
    assert graph(np.ones((1,) * 30, np.float32)).shape == (1,) * 30


def test_extents_that_data_says_are_nothing_else_where_they_are_at_most_one() -> None:
    graph = graph_of("""import layout, math, nn; graph g { @input { x: real[n|9]; } @output { y: real[~]; s: real[~]; }
        @compose { p = math.gt(x, 0.0); i = layout.nonzero(p); j = layout.squeeze{axes=[0]}(i);
            s = layout.gather{axis=0}(x, j); y = nn.softmax{axes=[0]}(s); } }""")
    for x in ([0.5], [-0.5], [0.5, -1.0]):
        y, s = graph(np.float32(x))
        given = np.float32([each for each in x if each > 0])
        np.testing.assert_array_equal(s, given)
        np.testing.assert_array_equal(y, np.ones(len(given)))


def test_integers_fit_in_those_of_the_call() -> None:
    graph = graph_of("""import math; graph g { @input { x: int[2]; } @output { y: int[2]; z: int[2]; }
        @constant { c: int[2] = [3000000000, 1]; } @compose { y = math.add(x, 3000000000); z = math.add(x, c); } }""")
    y, z = graph(np.int64([1, 2]))
    assert (y.tolist(), z.tolist()) == ([3000000001, 3000000002], [3000000001, 3])
    with pytest.raises(tc.DtypeError, match="3000000000 does not fit in int32"):
        graph(np.int32([1, 2]))
