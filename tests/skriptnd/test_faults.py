"""Texts and calls that are refused: the error, what it says, and the place that it shows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import ConfigurationError, DslSyntaxError, DtypeError, ShapeError, TcdslError
from tests.golden_texts import Golden
from tests.skriptnd.graphs import graph_of, reals

# Texts with an open place, `...`: the blocks of an operator that no graph calls, its formulas, attributes and helper
# symbols, and what a graph composes.
AROUND = "graph g { @input { x: real[2,3]; } @output { y: real[2,3]; } @compose { y = x; } }"
OPERATOR = f"operator f {{ ... }}\n{AROUND}"
IO = "@input { x: real[n]; } @output { y: real[n]; } @lower { y[i,] = x[i,], i < n; }"
LOWER = "@input { x: real[n,m]; k: int[n]; } @output { y: real[n,m]; } @lower { ... }"
ATTRIBUTES = f"@attrib {{ a: int; p: int..(k); ... }} {IO}"
USING = f"@attrib {{ a: int; p: int..(k); r: real; s: str; }} @using {{ u = ...; }} {IO}"
GRAPH = "import math, layout, nn;\n" + AROUND.replace("y = x;", "...")


def operator(text: str) -> str:
    return OPERATOR.replace("...", text, 1)


def lower(text: str) -> str:
    return operator(LOWER.replace("...", text, 1))


def attributes(text: str) -> str:
    return operator(ATTRIBUTES.replace("...", text, 1))


def using(text: str) -> str:
    return operator(USING.replace("...", text, 1))


def graph(text: str) -> str:
    return GRAPH.replace("...", text, 1)


TEXTS = [
    "",
    "# nothing\n",
    "operator f { @output { y: real[]; } @lower { y[] = 1.0; } }",
    "graph",
    "graph g { @output { y: real[2]; }",
    "graph g { @input { x: real[2]; } @compose { y = x; } }",
    "graph g { @input { x: real[2]; } @output { y: real[2]; } }",
    "graph g { @inputs { x: real[2]; } }",
    "graph g { @input { x: real[2]; } @input { z: real[2]; } }",
    "graph g { input { x: real[2]; } }",
    "graph real { @output { y: real[]; } @compose { y = 1.0; } }",
    "graph g { @input { if: real[2]; } }",
    "graph g { @input { x real[2]; } }",
    "graph g { @input { x: float[2]; } @output { y: real[2]; } @compose { y = x; } }",
    "graph g { @input { x: real[2] } }",
    "graph g { @input { x: real[2; } }",
    "graph g { @input { x: optional optional real[2]; } }",
    "graph g { @input { x: real[2]; x: real[2]; } @output { y: real[2]; } @compose { y = x; } }",
    "graph g { @input { x: real[n]; } @output { y: real[n]; } @compose { y = x; } }",
    "graph g { @input { 2x: real[2]; } }",
    "graph g { @input { x: real[2]; } @output { y: real[2]; } @compose { y = 'a; } }",
    "graph g { @input { x: réal[2]; } }",
    "graph g { @input { x: real[2]; } @output { y: real[2]; } @compose { y = x; } } import math;",
    "import maths;\ngraph g { @output { y: real[]; } @compose { y = 1.0; } }",
    "graph g { @output { y: real[]; } @compose { y = 1.0; } } graph g { @output { y: real[]; } @compose { y = 1.0; } }",
    "graph g { @attrib { n: int; } @input { x: real[n]; } @output { y: real[n]; } @compose { y = x; } }",
    "graph g { @attrib { n: int[2]; } @input { x: real[2]; } @output { y: real[2]; } @compose { y = x; } }",
    "graph g { @input { x: real[2]; } @output { y: real[2]; } @variable { w: real[2] = 1.0; } @compose { y = x; } }",
    "graph g { @input { x: real[2]; } @output { y: real[2]; } @constant { w: real[2]; } @compose { y = x; } }",
    "graph g { @input { x: real[2]; } @output { y: real[2]; } @constant { w: real[2] = 1; } @compose { y = x; } }",
    "graph g { @input { x: real[2]; } @output { y: real[2]; } @constant { w: real[2] = [1.0]; } @compose { y = x; } }",
    graph("y = relu(x);"),
    graph("y = nn.rely(x);"),
    graph("y = linalg.matmul(x, x);"),
    graph("y = nn.relu(nn.relu(x));"),
    graph("y = nn.relu{alpah=0.5}(x);"),
    graph("y = nn.relu{alpha=1}(x);"),
    graph("y = nn.relu{alpha=0.5, alpha=0.5}(x);"),
    graph("y = nn.relu(x, x);"),
    graph("y = math.add(x);"),
    graph("y = math.add(x, 1);"),
    graph("y = math.add(x, z);"),
    graph("y = math.argmax(x);"),
    graph("y = math.not(x);"),
    graph("y = layout.cast(x);"),
    graph("y = layout.cast<float>(x);"),
    graph("y = layout._blocks_in{block_size=[1], ncx=true, n=1}(x);"),
    graph("z = nn.relu(x);"),
    graph("z = nn.relu(x); z = nn.relu(z); y = z;"),
    graph("x = nn.relu(x); y = x;"),
    graph("y = nn.relu(z); z = nn.relu(x);"),
    graph("a, b = nn.relu(x); y = a;"),
    graph("y = layout.split{axis=0, count=2}(x);"),
    graph("[a, b, c] = layout.split{axis=0, count=2}(x); y = x;"),
    graph("a.. = layout.split{axis=0, count=2}(x); y = x;"),
    graph("y = math.transpose(x);"),
    graph("y = layout.transpose(x);"),
    graph("y = x + x;"),
    graph("y = if true then x;"),
    graph("y = if 1 then x else x;"),
    graph("y = if x then x else x;"),
    graph("b = math.lt(x, 0.0); y = if b then x else x;"),
    graph("y = with z = x do nn.relu(z);"),
    graph("y = with z = x unroll..(i -> 3) math.add(z, i);"),
    graph("y = with z = x do..(-1) nn.relu(z);"),
    graph("y = with z = x do..(2) layout.transpose(z);"),
    graph("y = { z = nn.relu(x); };"),
    graph("y = { yield x; z = x; };"),
    graph("y = math.sum_reduce{axes=[2]}(x);"),
    graph("y = nn.softmax{axes=[1, 1]}(x);"),
    lower("y[i,j] = x[i,j], i < n;"),
    lower("y[i,j] = x[i,j], i < n, j < m, j < m;"),
    lower("y[i,j] = x[i,j], i < n, m < m;"),
    lower("y[i,j] = x[i,j] + 1, i < n, j < m;"),
    lower("y[i,j] = x[i,j] + i, i < n, j < m;"),
    lower("y[i,j] = k[i,], i < n, j < m;"),
    lower("y[i,j] = k[i], i < n, j < m;"),
    lower("y[i] = 0.0, i < n;"),
    lower("y = x;"),
    lower("z[i,j] = x[i,j], i < n, j < m;"),
    lower("y[i,j] = x[x[i,j],j], i < n, j < m;"),
    lower("y[i,j] -= x[i,j], i < n, j < m;"),
    lower("y[i,j] &&= x[i,j], i < n, j < m;"),
    lower("y[i,j] := x[i,j], i < n, j < m;"),
    lower("y[i,j] = 0.0, i < n, j < m; y[i,j] = 1.0, i < n, j < m;"),
    lower("y[i,j] = x[i,j], i < n, j < m | i;"),
    lower("y[i,j] = sinus(x[i,j]), i < n, j < m;"),
    lower("y[i,j] = exp(i), i < n, j < m;"),
    operator("@input { x: real[s..,t..]; } @output { y: real[s..]; } @lower { y[i..] = 0.0, i < s; }"),
    operator("@input { x: real[n]; } @output { y: real[m]; } @lower { y[i,] = x[i,], i < n; }"),
    operator("@input { x: real[n]; } @output { y: real[n]; } @lower { y[i,] = x[i,], i < n; } @compose { y = x; }"),
    operator("@dtype { T: number; } @output { y: real[]; } @lower { y[] = 1.0; }"),
    attributes("b: int = 1.0;"),
    attributes("b: num = 1;"),
    attributes("b: int = c;"),
    attributes("b: int..(k) = 'abc';"),
    using("a + r"),
    using("a && true"),
    using("!a"),
    using("p + s"),
    using("a + .."),
    using("p - .."),
    using("p ** ..."),
    using("[1, 2.0]"),
    using("[1, p]"),
    using("sqrt(a)"),
    using("real(s)"),
    using("a ? 1 : 2"),
    using("a > 0 ? 1 : 2.0"),
    using("p[r]"),
    using("q"),
    using("(a"),
    using("a @ a"),
    using("999999999999999999999"),
    using("x[0,]"),
    using("1 / 0"),
    using("[1, 2] + [1, 2, 3]"),
    using("[a, s..]"),
    operator("@input { x: real[n]; } @output { y: real[n]; } @compose { a, b = x; y = a; }"),
    operator("@input { x: real[]; } @output { y: real[]; } @compose { y = with s = x do..(2) { k = 1; yield k; }; }"),
    operator("@input { x: real[n]; } @output { y: real[n]; } @compose { y = if true then x else { yield z; }; }"),
    operator("@attrib { a: optional int = 3; } " + IO),
    operator("@input { x: real[]; } @output { y: real[]; z: real[]; } @lower { y[] = x[]; z[] = x[]; }"),
    graph("y = with s = x for v : [x, x] do..(3) math.add(s, v);"),
    lower("y[i,j] = x[i,j] > 0.0 ? 0.0, i < n, j < m;").replace(" k: int[n];", "").replace("y = x;", "y = f(x);"),
]

TEXTS.append(
    """import layer;
operator two { @input { x: real[b,static c]; } @output { y: real[b,c]; z: real[b,c]; }
    @compose { y = layer.linear{channels=c}(x); z = y; } }
graph g { @input { x: real[2,3]; } @output { y: real[2,3]; } @compose { a, b = two(x); c, d = two(a); y = c; } }"""
)
TEXTS += [
    operator("@input { _: real[n]; } @output { y: real[n]; } @compose { y = _; }"),
    operator("@input { x: real[n]; } @output { y: int[n]; } @compose { y = x; }"),
    operator("@input { x: real[n]; } @output { y: real[n]; } @compose { z: int[n] = x; y = x; }"),
    operator(
        "@input { x: real[n]; } @output { y: real[n]; } @compose { y = with s: int[n] = x do..(2) { yield s; }; }"
    ),
    operator(
        "@input { x: real[n]; k: int[]; } @output { y: real[n]; } @compose { y = with s = x unroll..(k) { yield s; }; }"
    ),
    operator(
        "@input { x: real[n]; } @output { y: real[n]; } @variable { w: int[n]; } @compose { y = x; } @update { w = x; }"
    ),
    operator("@input { x: bool[n]; } @output { y: bool[n]; } @lower { y[i,] += x[i,], i < n; }"),
    operator("@dtype { T: type; } @input { x: T[n]; } @output { y: T[n]; } @lower { y[i,] = x[i,] + x[i,], i < n; }"),
    operator(
        "@dtype { T: num; } @input { x: T[n]; } @output { y: bool[n]; } @lower { y[i,] &= x[i,] && true, i < n; }"
    ),
    operator(f"{IO} @using {{ a = b; b = 1; }}"),
    operator(
        "@input { x: real[n]; } @output { y: real[n]; } @compose { y = h(x); } }"
        "operator h { @input { x: real[n]; } @output { y: real[n]; } @compose { y = f(x); }"
    ),
    lower("y = x[i,j], i < n, j < m;"),
    graph("y = nn.relu(1);"),
    lower("y[i,j] = x[|k|,j], i < n, j < m;"),
    lower("y[i,j] = x, i < n, j < m;"),
    lower("y[i,j] = x[i,j], i < k, j < m;"),
    lower("y[i,j] = k in [1] ? x[i,j] : 0.0, i < n, j < m;"),
    lower("y[i,j] = k ? x[i,j] : 0.0, i < n, j < m;"),
    graph("z: real[3,2] = x; y = x;"),
    graph("y = with z: real[2,2] = x do..(2) nn.relu(z);"),
    "graph g { @input { x: optional real[2]; } @output { y: real[2]; } @compose { z = x; y = z ?? 1.0; } }",
]


def test_texts_that_are_refused(golden: Golden) -> None:
    lines = []
    for text in TEXTS:
        with pytest.raises(TcdslError) as caught:
            tc.skriptnd.parse(text)
        assert caught.value.diagnostics[0].span is not None, text
        shown = "\n".join(f"    {line}" for line in str(caught.value).split("\n"))
        lines.append(f"{type(caught.value).__name__}\n{shown}")
    golden("skriptnd/faults", "\n\n".join(lines) + "\n")


NET = """
graph net {
    @input { x: real[n|4, 3]; }
    @output { y: real[n, 3]; }
    @variable { w: real[3]; }
    @compose { y = scaled(x, w); }
}
operator scaled {
    @input { x: real[n,m]; w: real[m]; }
    @output { y: real[n,m]; }
    @lower { y[i,j] = x[i,j] * w[j,], i < n, j < m; }
}
"""

CALLS: list[tuple[Any, type[TcdslError], str]] = [
    (lambda net: net(), ConfigurationError, "`net` lacks x"),
    (lambda net: net(None), ConfigurationError, "`net` lacks x"),
    (lambda net: net(reals(2, 3), reals(2, 3)), ConfigurationError, "`net` takes 1 inputs, and is given 2"),
    (lambda net: net(z=reals(2, 3)), ConfigurationError, "`net` has no input `z`"),
    (lambda net: net(reals(2, 3), x=reals(2, 3)), ConfigurationError, "`net` is given `x` twice"),
    (lambda net: net(reals(2, 4)), ShapeError, "axis 1 of the input `x` of `net` has the extent 4, not 3"),
    (lambda net: net(reals(5, 3)), ShapeError, "axis 0 of the input `x` of `net` has the extent 5, and 4 is the most"),
    (lambda net: net(reals(3)), ShapeError, "has rank 2, and is given an array of rank 1"),
    (lambda net: net([reals(2, 3)]), ConfigurationError, "`x` of `net` is one array, and is given a list"),
    (lambda net: net(np.ones((2, 3), np.int64)), DtypeError, "`x` is real, and is given an array of int64"),
    (lambda net: net(reals(2, 3), variables={}), ConfigurationError, "`variables` lacks w"),
    (lambda net: net(reals(2, 3), variables={"w": reals(3), "v": 1}), ConfigurationError, "no variable 'v'"),
    (lambda net: net(reals(2, 3), variables={"w": reals(4)}), ShapeError, "has shape (3,), and its array (4,)"),
    (lambda net: net.variables["v"], ConfigurationError, "the graph has no variable 'v'; its variables are w"),
    (lambda net: net(reals(2, 3), variables=3), ConfigurationError, "`variables` is a int"),
    (lambda net: net.variables.update(w=[[1], 2]), ShapeError, "the variable `w` is given what is no array"),
    (lambda net: net.variables.update(w=reals(2)), ShapeError, "the variable `w` has shape (3,)"),
    (lambda net: net.variables.update(w=np.ones(3, int)), DtypeError, "is real, and is given an array of int64"),
    (lambda net: net.configured(n=2), ConfigurationError, "the graph `net` has no attribute `n`"),
    (lambda _: tc.skriptnd.parse(NET).graphs["nets"], ConfigurationError, "no graph 'nets'; the text has net"),
    (lambda _: tc.skriptnd.parse(3), DslSyntaxError, "a text in SkriptND is a str, not a int"),  # type: ignore[arg-type]
    (lambda _: tc.skriptnd.load("/nowhere/x.sknd"), ConfigurationError, "cannot be read"),
]


@pytest.mark.parametrize(("call", "kind", "message"), CALLS)
def test_calls_that_are_refused(call: Any, kind: type[TcdslError], message: str) -> None:
    net = graph_of(NET)
    with pytest.raises(kind) as caught:
        call(net)
    assert message in str(caught.value)


def test_indices_out_of_range_are_found_before_anything_runs() -> None:
    text = "operator f {{ @input {{ x: real[n]; }} @output {{ y: real[n]; }} @lower {{ y[i,] = x[{},], i < n; }} }}"
    graph = "graph g { @input { x: real[4]; } @output { y: real[4]; } @compose { y = f(x); } }"
    with pytest.raises(ShapeError, match=r"axis 0 of `x` has the extent 4, and its indices are from 1 to 4"):
        graph_of(text.format("i + 1") + graph)(reals(4))
    assert graph_of(text.format("|i + 1|") + graph)(reals(4))[3] == 0.0
    beside = (
        text.replace("real[n]", "real[n,n]", 1).format("i + 1, x[i,i] > 0.0 ? int(x[i,i]) : 0").replace("0,]", "0]")
    )
    with pytest.raises(ShapeError, match=r"axis 0 of `x` has the extent 4, and its indices are from 1 to 4"):
        graph_of(beside + graph.replace("real[4]", "real[4,4]", 1))(reals(4, 4))


@pytest.mark.parametrize("index", ["(2 - n) * i", "i * (2 - n)", "(1 - i) * (n - 5)"])
def test_factors_that_only_a_call_knows_may_be_negative(index: str) -> None:
    text = (
        f"operator f {{ @input {{ x: real[n]; }} @output {{ y: real[2]; }} @lower {{ y[i,] = x[{index},], i < 2; }} }}"
    )
    graph = graph_of(text + "graph g { @input { x: real[n|8]; } @output { y: real[2]; } @compose { y = f(x); } }")
    with pytest.raises(ShapeError, match="out of range: axis 0 of `x`"):
        graph(reals(4))


def test_recursion_and_depth_are_errors() -> None:
    loop = "operator f { @input { x: real[n]; } @output { y: real[n]; } @compose { y = f(x); } }"
    with pytest.raises(DslSyntaxError, match="the operator `f` calls itself"):
        graph_of(loop + "graph g { @input { x: real[2]; } @output { y: real[2]; } @compose { y = f(x); } }")
    deep = "(" * 200 + "1" + ")" * 200
    with pytest.raises(DslSyntaxError, match="nested more than 100 times"):
        tc.skriptnd.parse(using(deep))
    with pytest.raises(DslSyntaxError, match="more than 2000 operators"):
        tc.skriptnd.parse(using(" + ".join(["a"] * 5000)))
    with pytest.raises(DslSyntaxError, match="1000000 are the most"):
        tc.skriptnd.parse("#" * 1_000_001)
