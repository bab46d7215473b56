"""Expressions, and the blocks of operators, construct by construct."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl.errors import TcdslError
from tcdsl.frontend.skriptnd.arithmetic import Arithmetic, StandIns
from tcdsl.frontend.skriptnd.composition import ComposedBlock
from tcdsl.frontend.skriptnd.evaluation import ExpressionEvaluator, Scope
from tcdsl.frontend.skriptnd.text.expressions import read_expression
from tcdsl.frontend.skriptnd.text.words import SKRIPTND_WORDS
from tcdsl.frontend.skriptnd.values import Pack
from tcdsl.frontend.words.cursor import Words
from tests.skriptnd.graphs import graph_of, reals

NAMES = {
    "a": 7,
    "r": 2.5,
    "t": True,
    "s": "text",
    "p": Pack.of((1, 2, 3)),
    "q": Pack.of((4, 5, 6)),
    "m": Pack.of((True, False, True)),
    "e": Pack.of(()),
    "x": None,
}

# An expression, and its value; a list is a pack, None is null.
VALUES: list[tuple[str, Any]] = [
    ("1 + 2 * 3 - 4", 3),
    ("2 ** 3 ** 2", 64),
    ("-2 ** 2", 4),
    ("7 / 2", 3),
    ("-7 / 2", -4),
    ("7 \\ 2", 4),
    ("-7 % 3", 2),
    ("7.0 / 2.0", 3.5),
    ("7.5 % 2.0", 1.5),
    ("1.0 / 0.0", math.inf),
    ("a <? 3 + 1", 4),
    ("a >? 3", 7),
    ("a << 3", 3),
    ("a >> 30", 30),
    ("a > 3 && r < 1.0 || t", True),
    ("false => t", True),
    ("true ^ t", False),
    ("!t", False),
    ("s == 'text'", True),
    ("'a' < 'b'", True),
    ("p + q", [5, 7, 9]),
    ("p * 2", [2, 4, 6]),
    ("-p", [-1, -2, -3]),
    ("p + ..", 6),
    ("p * ..", 6),
    ("p + .. + 42", 48),
    ("(p + q) * ..", 315),
    ("p + ...", [1, 3, 6]),
    ("p * ...", [1, 2, 6]),
    ("p <? ..", 1),
    ("p >? ...", [1, 2, 3]),
    ("m && ..", False),
    ("m || ...", [True, True, True]),
    ("p < ..", True),
    ("q != ..", True),
    ("[1, 2, 1] != ..", False),
    ("[2, 2] == ..", True),
    ("[2, 2] := ..", 2),
    ("p := ..", None),
    ("[a ..(0)] := ..", 7),
    ("e + ..", 0),
    ("e * ..", 1),
    ("e <? ..", None),
    ("e && ..", True),
    ("[1, 2 ..(3), p.., 5:9:2]", [1, 2, 2, 2, 1, 2, 3, 5, 7]),
    ("[a ..(t), a ..(!t)]", [7]),
    ("[3:0:-1]", [3, 2, 1]),
    ("[(p, q)..]", [1, 4, 2, 5, 3, 6]),
    ("p[0]", 1),
    ("p[-1]", 3),
    ("p[1:]", [2, 3]),
    ("p[::-1]", [3, 2, 1]),
    ("p[:-1:2]", [1]),
    ("p[[2, 0]]", [3, 1]),
    ("p[m]", [1, 3]),
    ("s[0]", "t"),
    ("s[1:3]", "ex"),
    ("p[0] <- 9", [9, 2, 3]),
    ("p[[0, 2]] <- [8, 9]", [8, 2, 9]),
    ("p[1:] <- 0", [1, 0, 0]),
    ("p[m] <- q[m]", [4, 2, 6]),
    ("t ? 1 : 2", 1),
    ("a > 10 ? 1", None),
    ("m ? p : q", [1, 5, 3]),
    ("m ? 0 : p", [0, 2, 0]),
    ("x ?? 5", 5),
    ("a ?? 5", 7),
    ("x + 1", None),
    ("[1, x]", None),
    ("x ?? t ? 3 : 4", 3),
    ("?x", False),
    ("?a", True),
    ("?x && x > 2 ? x : 0", 0),
    ("p is 2", [False, True, False]),
    ("2 in p", True),
    ("q in [4, 6]", [True, False, True]),
    ("real(a) * r", 17.5),
    ("int(r)", 2),
    ("int(-2.7)", -2),
    ("bool(0)", False),
    ("real()", 0.0),
    ("str()", ""),
    ("sqrt(16.0)", 4.0),
    ("`sqrt`(16.0)", 4.0),
    ("round(-2.5)", -3.0),
    ("frac(2.75)", 0.75),
    ("abs(-a)", 7),
    ("sign(-r)", -1.0),
    ("pi", math.pi),
    ("'a = {a + 1}, {p}, \\{{t}\\}' ' and more'", "a = 8, [1,2,3], {true} and more"),
    ("1e-3", 0.001),
    ("a == 7 ? 'seven' : 'other'", "seven"),
]


def value_of(text: str) -> Any:
    words = Words(text, "test.sknd", SKRIPTND_WORDS)
    node = read_expression(words)
    assert words.next.kind == "end", words.next
    return ExpressionEvaluator(Arithmetic("float32", "int32", StandIns()), Scope(dict(NAMES))).value(node)


@pytest.mark.parametrize(("text", "wanted"), VALUES, ids=[text for text, _ in VALUES])
def test_expressions(text: str, wanted: Any) -> None:
    found = value_of(text)
    assert (list(found) if isinstance(found, Pack) else found) == wanted
    assert type(found) is type(wanted) or isinstance(found, Pack)


@pytest.mark.parametrize(
    "text",
    [
        *("p + [1, 2]", "a + r", "1 / 0", "2 ** -1", "p[3]", "p[9:0:0]", "s + 's'", "sqrt(-1.0)", "t + t", "a && t"),
        *("[0:20000]", "m ? [1, 2] : q", "p[[5]] <- 1", "p - .. ", "x[0", "a ? 1 : 2", "9223372036854775807 + 1"),
        *("s[r]", "{a}"),
    ],
)
def test_expressions_without_a_value(text: str) -> None:
    with pytest.raises(TcdslError):
        value_of(text)


def run(blocks: str, call: str, *arrays: Any, kind: str = "real") -> Any:
    """The result of an operator with these blocks, called so."""
    names = [f"x{k}" for k in range(len(arrays))]
    kinds = {"f": "real", "i": "int", "b": "bool"}
    inputs = " ".join(
        f"{n}: {kinds[x.dtype.kind]}[{','.join(map(str, x.shape))}];" for n, x in zip(names, arrays, strict=True)
    )
    around = f"graph g {{ @input {{ {inputs} }} @output {{ y: {kind}; }} @compose {{ y = {call}; }} }}"
    return graph_of(f"operator f {{ {blocks} }}\n{around}")(*arrays)


ONE = "@input { x: real[n]; } @output { y: real[n]; }"


def test_locals_conditions_and_both_spellings() -> None:
    x = reals(4)
    for locals_ in (
        "z = x[i,] * x[i,], y[i,] = z + z * `sin`(x[i,]), i < n;",
        "with z = x[i,] * x[i,]: y[i,] = z + z * sin(x[i,]), i < n;",
    ):
        np.testing.assert_allclose(run(f"{ONE} @lower {{ {locals_} }}", "f(x0)", x), x**2 * (1 + np.sin(x)), rtol=1e-5)
    found = run(f"{ONE} @lower {{ y[i,] = x[i,], i < n | x[i,] > 1.0; }}", "f(x0)", x)
    np.testing.assert_array_equal(found, np.where(x > 1, x, 0))
    for largest in ("y[i,] >= x[j,]", "y[i,] >?= x[j,]"):
        assert run(f"{ONE} @lower {{ {largest}, i < n, j < n; }}", "f(x0)", x).tolist() == [x.max()] * 4
    assert run(f"{ONE} @lower {{ y[i,] = x[i,] << 1.0, i < n; }}", "f(x0)", x).tolist() == np.minimum(x, 1).tolist()


def test_guards_and_remaps() -> None:
    x = np.float32([1, 2, 3, 4])
    mean = run(
        "@attrib { w: int; } " + ONE + " @lower { y[i,] += x[|i + j - w/2|] / real(w), i < n, j < w; }", "f{w=3}(x0)", x
    )
    np.testing.assert_allclose(mean, [1, 2, 3, 7 / 3], rtol=1e-6)
    wide = "@attrib { k: int; } @input { x: real[n]; } @output { y: real[n + 2 * k]; } "
    for remap, mode in (
        ("0 : n - 1", "edge"),
        ("-(i - k) : 2 * (n - 1) - (i - k)", "reflect"),
        ("k - i - 1 : 2 * n - 1 - (i - k)", "symmetric"),
    ):
        found = run(wide + f"@lower {{ y[i,] = x[|i - k <> {remap}|], i < n + 2 * k; }}", "f{k=2}(x0)", x)
        assert found.tolist() == np.pad(x, 2, mode=mode).tolist(), mode
    odd = run(wide + "@lower { y[i,] = x[|i - k <> 1 : 2|], i < n + 2 * k; }", "f{k=1}(x0)", x)
    assert odd.tolist() == [2, 1, 2, 3, 4, 3]
    scattered = run(wide + "@lower { y[|2 * i|,] += x[i,], i < n; }", "f{k=1}(x0)", x)
    assert scattered.tolist() == [1, 0, 2, 0, 3, 0]


def test_integers_divide_towards_zero_at_run_time() -> None:
    blocks = "@input { x: int[n]; } @output { y: int[n]; } @lower { y[i,] = VALUE, i < n; }"
    x = np.int32([-7, -6, 7, 8])
    for value, wanted in (("x[i,] / 2", [-3, -3, 3, 4]), ("x[i,] % 4", [-3, -2, 3, 0]), ("x[i,] \\ 2", [-3, -3, 4, 4])):
        assert run(blocks.replace("VALUE", value), "f(x0)", x, kind="int").tolist() == wanted


def test_identity_of_an_index_is_that_of_each_point() -> None:
    graph = graph_of("""operator f { @input { x: real[n]; } @output { y: real[n]; }
        @lower { y[i,] = i is 0 ? 1.0 : x[i,], i < n; } }
    graph g { @input { x: real[3]; } @output { y: real[3]; } @compose { y = f(x); } }""")
    assert list(graph(np.float32([4, 5, 6]))) == [1, 5, 6]


def test_accumulators_begin_at_their_neutral_elements() -> None:
    x = np.float32([2, 3])
    for operator, wanted in (("+=", 0), ("*=", 1), ("<?=", math.inf), (">?=", -math.inf)):
        assert run(f"{ONE} @lower {{ y[0,] {operator} x[i,], i < n; }}", "f(x0)", x)[1] == wanted
    blocks = "@input { x: int[n]; } @output { y: int[2]; } @lower { y[0,] <?= x[i,], i < n; }"
    assert run(blocks, "f(x0)", np.int32([5, 4]), kind="int").tolist() == [4, 2**31 - 1]
    start = "@input { x: real[n]; z: optional real[]; } @output { y: real[]; } "
    start += "@lower { y[] = z[] ?? 10.0; y[] += x[i,], i < n; }"
    assert run(start, "f(x0)", x) == 15.0
    assert run(start, "f(x0, 1.0)", x) == 6.0


def test_ordered_updates() -> None:
    x = np.float32([3, 1, 4, 1, 5, 9, 2, 6])
    largest = "@input { x: real[n]; } @output { y: int[]; } @lower { y[] = 0; y[] := i, i < n | x[i,] > x[y[],]; }"
    assert run(largest, "f(x0)", x, kind="int") == 5
    # The last one wins, as in a loop.
    last = "@input { x: real[n]; } @output { y: real[]; } @lower { y[] = 0.0; y[] := x[i,], i < n | x[i,] < 5.0; }"
    assert run(last, "f(x0)", x) == 2.0
    # A condition on the indices protects what is read.
    sums = f"{ONE} @lower {{ y[i,] = x[i,], i < n; y[i,] := y[i-1,] + x[i,], i < n | i > 0; }}"
    np.testing.assert_allclose(run(sums, "f(x0)", x), np.cumsum(x))
    with pytest.raises(tc.ShapeError, match="its indices are from -1 to 6"):
        run(sums.replace("| i > 0", "| i >= 0"), "f(x0)", x)


def test_packs_in_formulas() -> None:
    x, y = reals(3), reals(3, seed=1)
    blocks = "@input { xs: real[n]..(k); z: real[n]; } @output { ys: real[n]..(k); } @lower { FORMULA }"
    text = "graph g { @input { a: real[3]; b: real[3]; } @output { u: real[3]; v: real[3]; } "
    text += "@compose { [u, v] = f([a, b], a); } }"
    for formula in (
        "ys[k_][i,] = xs[k_][i,] + z[i,], k_ < k, i < n;",
        "ys[i,] = xs[i,] + z[i,], i < n;",
        "unroll..(j -> k) ys[j][i,] = xs[j][i,] + z[i,], i < n;",
    ):
        found = graph_of(f"operator f {{ {blocks.replace('FORMULA', formula)} }} {text}")(x, y)
        np.testing.assert_allclose(found, [x + x, y + x])


def test_deferred_attributes_and_affine_shapes() -> None:
    blocks = """
        @attrib { r: int = 2; a: int..(d) = 1; b: int = 2 * d + r; c: optional int; }
        @input { x: real[s..(d), 2 * m + 1]; }
        @using { [first, rest..] = [a.., b]; [(u, v)..] = [1, 2, 3, 4]; w..(2) = u + v; }
        @assert { rest[-1] == b: "no"; c > 3: "c is {c}", c; u == [1, 3] && v == [2, 4]; }
        @output { y: real[m + 0 * w[0]]; }
        @lower { y[i,] = real(b), i < m; }
    """
    x = reals(2, 3, 7)
    assert run(blocks, "f(x0)", x).tolist() == [6.0] * 3
    assert run(blocks, "f{r=1, c=4}(x0)", x).tolist() == [5.0] * 3
    with pytest.raises(TcdslError, match="f: c is 1"):
        run(blocks, "f{c=1}(x0)", x)
    with pytest.raises(TcdslError, match="of the form 2 \\* m \\+ 1"):
        run(blocks, "f(x0)", reals(2, 4))


def test_constants_of_formulas() -> None:
    blocks = """
        @attrib { n: int; }
        @constant { eye: real[n,n] = i == j ? 1.0 : 0.0, i < n, j < n; }
        @output { y: real[n,n]; }
        @lower { y[i,j] = eye[i,j], i < n, j < n; }
    """
    assert run(blocks, "f{n=3}()").tolist() == np.eye(3).tolist()


def test_extents_without_a_name_are_at_most_their_bound() -> None:
    text = """import layout;
        operator head { @input { x: real[n,m]; } @output { y: real[~|n,m]; }
            @compose { y = layout.slice{axes=[0], begin=[0], end=[n \\ 2]}(x); } }
        graph g { @input { x: real[EXTENT,3]; } @output { y: real[~|WIDE,3]; } @compose { y = head(x); } }"""
    x = reals(5, 3)
    for extent, wide in (("5", "5"), ("n|9", "n")):
        graph = graph_of(text.replace("EXTENT", extent).replace("WIDE", wide))
        np.testing.assert_array_equal(graph(x), x[:3])
    with pytest.raises(tc.ShapeError, match=r"the output `y` has the shape \[2,3\], and what is assigned has \[3,3\]"):
        graph_of(text.replace("EXTENT", "5").replace("WIDE", "2"))


def test_numbers_fill_what_a_result_is_declared_as() -> None:
    text = """import math; graph g { @input { x: real[2|8]; } @output { y: real[2|8]; }
        @compose { z: real[x.shape..] = 2.0; y = math.add(x, z); } }"""
    graph = graph_of(text.replace("2|8", "n|8", 1).replace("2|8", "n"))
    assert graph(np.float32([1, 2, 3])).tolist() == [3, 4, 5]


def test_generics() -> None:
    blocks = "@dtype { T: num; S: type = int; } @input { x: T[n]; } @output { y: T[n]; } "
    blocks += "@lower { y[i,] = x[i,] * T(2), i < n; }"
    assert run(blocks, "f(x0)", np.int32([1, 2]), kind="int").tolist() == [2, 4]
    assert run(blocks, "f<real>(x0)", np.float32([1, 2])).tolist() == [2, 4]
    with pytest.raises(TcdslError, match="`T` is num, which bool is not"):
        run(blocks, "f(x0)", np.array([True]), kind="bool")


STEP = """
import math, layout;
operator step { @input { s: real[n]; x: real[n]; } @output { t: real[n]; y: real[n]; }
    @compose { t = math.add(s, x); y = math.mul(s, x); } }
"""


def stepped(s: np.ndarray, xs: list[np.ndarray], rounds: int) -> tuple[np.ndarray, list[np.ndarray]]:
    given = [np.zeros_like(s) for _ in xs]
    for k in range(rounds):
        given[k] = s * xs[k]
        s = s + xs[k]
    return s, given


@pytest.mark.parametrize("rounds", [0, 2, 4])
def test_packs_of_loops_that_data_end_are_zero_behind_the_last_round(rounds: int) -> None:
    graph = graph_of(f"""{STEP}
        graph g {{ @input {{ s0: real[3]; xs: real[3]..(4); n: int[]; }}
            @output {{ s: real[3]; ys: real[3]..(4); z: real[4,3]; }}
            @compose {{
                s, ys = with s1 = s0 for x : xs do..(n) {{ t, y = step(s1, x); yield t, y; }};
                z = layout.stack{{axis=0}}(ys);
            }} }}""")
    s, xs, n = reals(3), [reals(3, seed=k) for k in range(4)], np.int32(rounds)
    wanted, given = stepped(s, xs, rounds)
    found = graph(s, xs, n)
    np.testing.assert_allclose(found[0], wanted, rtol=1e-6)
    np.testing.assert_allclose(found[1], given, rtol=1e-6)
    np.testing.assert_allclose(found[2], given, rtol=1e-6)
    wide = [each.astype(np.float64) for each in (s, xs[0], xs[1])]
    tc.check_grads(lambda s, x, z: graph(s, [x, z, *xs[2:]], n)[2].sum(), tuple(wide))
    # A condition ends the loop, too; more rounds than tensors are an error.
    ended = graph_of(f"""{STEP}
        operator below {{ @input {{ s: real[n]; }} @output {{ y: bool[]; }}
            @lower {{ y[] &= s[i,] < 3.5, i < n; }} }}
        graph g {{ @input {{ s0: real[3]; x: real[3]; }} @output {{ s: real[3]; ys: real[3]..(5); }}
            @compose {{ s, ys = with s1 = s0 while below(s1) do..(5)
                {{ t, y = step(s1, x); yield t, y; }}; }} }}""")
    # The sums are 1, 2, 3, 4: the fourth round finds 4.
    found = ended(np.ones(3, np.float32), np.ones(3, np.float32))[1]
    assert [each[0] for each in found] == [1, 2, 3, 0, 0]
    with pytest.raises(tc.DataIndexError, match=r"the number of rounds is not between 0 and 4, the length of what"):
        graph(s, xs, np.int32(5))


ENDED = """
import math, layout;
graph g {
    @input { xs: real[2]..(4); n: int[]; }
    @output {
        ys: real[2]..(~|4); zs: real[2]..(4); z: real[~|4,2]; c: real[~];
        p: real[2]; m: real[2]; k: int; s: real[2];
    }
    @compose {
        ys = for x : xs do..(n) math.add(x, 1.0);
        zs..(4) = for x : xs do..(n) math.add(x, 1.0);
        z = layout.stack{axis=0}(ys);
        c = layout.concat{axis=0}(ys);
        p = math.prod_n(ys);
        m = math.min_n(ys);
        k = ys.size;
        s = with a: real[2] = 0.0 for y : ys do { b = math.add(a, y); yield b; };
    }
}
"""


def test_packs_of_loops_that_data_end_are_cut_where_no_length_is_declared() -> None:
    graph = graph_of(ENDED)
    xs = [reals(2, seed=k) for k in range(4)]
    for rounds in (1, 3, 4):
        given = np.stack(xs[:rounds]) + 1
        found = graph(xs, np.int32(rounds))
        assert [len(found[0]), len(found[1])] == [rounds, 4]
        wanted = (given, given.ravel(), given.prod(0), given.min(0), rounds, given.sum(0))
        for ours, theirs in zip(found[2:], wanted, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    with pytest.raises(tc.ShapeError, match="a pack without tensors"):
        graph(xs, np.int32(0))
    wide = [each.astype(np.float64) for each in xs[:2]]
    n = np.int32(2)
    tc.check_grads(lambda x, y: sum(each.sum() for each in graph([x, y, *xs[2:]], n)[2:5]), tuple(wide))
    # A condition ends the loop; a state is changed behind it.
    ended = graph_of("""import math; graph g {
        @input { x: real[]; } @output { s: real[]; ys: real[]..; } @variable { calls: int[]; }
        @compose { s, ys = with t = x while { c = math.lt(t, 3.0); yield c; } do..(9)
            { u = math.add(t, 1.0); yield u, u; }; }
        @update { calls = math.add(calls, 1); } }""")
    assert ended(np.float32(0.5)) == (3.5, [1.5, 2.5, 3.5])
    assert ended(np.float32(5)) == (5, [])
    assert ended.variables["calls"] == 2


COUNT = """import math, layout;
graph g { @input { x: real[3]; k: int[]; } @output { y: real[3]; }
    @compose { y = with s = x do..(i -> ROUNDS) BODY; } }"""


@pytest.mark.parametrize("rounds", ["3", "k"])
@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("math.add(s, real(2 * i + 1))", 9),
        ("{ a = if i % 2 == 0 then math.add(s, 10.0) else math.iden(s); yield a; }", 20),
        ("{ a = with t = s do..(j -> i + 1) math.add(t, real(i * j)); yield a; }", 7),
    ],
)
def test_arithmetic_with_the_number_of_a_round(rounds: str, body: str, wanted: int) -> None:
    x = reals(3)
    found = graph_of(COUNT.replace("ROUNDS", rounds).replace("BODY", body))(x, np.int32(3))
    np.testing.assert_allclose(found, x + wanted, rtol=1e-6)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("{ a = layout.slice{axes=[0], begin=[i], end=[3]}(x); yield a; }", "`begin` depends on data, or on the"),
        ("{ xs..(3) = layout.unstack{axis=0}(x); a = math.add(s, xs[i]); yield a; }", "data chooses a tensor of"),
    ],
)
def test_numbers_of_rounds_that_only_a_call_knows_are_no_configuration(body: str, message: str) -> None:
    with pytest.raises(tc.DtypeError) as caught:
        graph_of(COUNT.replace("ROUNDS", "k").replace("BODY", body))
    assert message in str(caught.value)


def test_items_of_packs_that_data_or_an_index_chooses_are_checked() -> None:
    blocks = "@attrib { w: real..(k); } @input { s: int[n]; x: real[n]; } @output { y: real[n]; } @lower { FORMULA }"
    x = reals(3)
    cells = ", ".join(f"{k}.0 * x[i,]" for k in range(9))
    values = {"w[s[i,]]": 7, "w[i]": 1, "i < k ? w[i] : 0.0": 0, "[x[i,], 7.0][s[i,]]": 7, f"[{cells}][s[i,]]": x[2]}
    for value, last in values.items():
        text = blocks.replace("FORMULA", f"y[i,] = {value}, i < n;")
        items = "[1.0, 7.0]" if "?" in value or "s" in value else "[1.0, 7.0, 1.0]"
        assert run(text, f"f{{w={items}}}(x0, x1)", np.int32([0, 1, 1]), x)[2] == last
    with pytest.raises(tc.ShapeError, match="axis 0 of `w` has the extent 2, and its indices are from 0 to 2"):
        run(blocks.replace("FORMULA", "y[i,] = w[i], i < n;"), "f{w=[1.0, 7.0]}(x0, x1)", np.int32([0, 1, 1]), x)
    for value in ("w[s[i,]]", "[x[i,], 7.0][s[i,]]"):
        text = blocks.replace("FORMULA", f"y[i,] = {value}, i < n;")
        with pytest.raises(tc.DataIndexError, match="index 2 is out of range for axis 0 of"):
            run(text, "f{w=[1.0, 7.0]}(x0, x1)", np.int32([0, 1, 2]), x)
    loop = "@attrib { w: real..; } @input { x: real[n]; k: int[]; } @output { y: real[n]; }"
    loop += " @compose { y = with s = x do..(i -> k) math.mul(s, w[i]); }"
    graph = graph_of(f"""import math; operator f {{ {loop} }} graph g {{ @input {{ x: real[3]; k: int[]; }}
        @output {{ y: real[3]; }} @compose {{ y = f{{w=[2.0, 3.0]}}(x, k); }} }}""")
    np.testing.assert_allclose(graph(x, np.int32(2)), 6 * x)
    with pytest.raises(tc.DataIndexError, match="index 2 is out of range for axis 0 of `w`"):
        graph(x, np.int32(3))
    # What is scanned has so many tensors, and a loop has no more rounds.
    loop = "with s: real[3] = 0.0 for v : xs do..(ROUNDS) math.add(s, v)"
    graph = graph_of(f"""import math; graph g {{ @input {{ xs: real[3]..(2); x: real[n|9]; k: int[]; }}
        @output {{ y: real[3]; z: real[3]; }}
        @compose {{ y = {loop.replace("ROUNDS", "n")}; z = {loop.replace("ROUNDS", "k")}; }} }}""")
    assert graph([x, x], reals(2), np.int32(0))[1].tolist() == [0, 0, 0]
    for sizes, rounds in ((3, 0), (1, 3), (1, -1)):
        with pytest.raises(tc.TcdslError, match="the number of rounds is not between 0 and 2, the length of what"):
            graph([x, x], reals(sizes), np.int32(rounds))


def test_loops_that_give_no_packs_have_any_number_of_rounds() -> None:
    text = """import math; graph g { @input { x: real[n|9]; } @output { y: real[n]; }
        @compose { y = with s = x do..(ROUNDS) math.add(s, 1.0); } }"""
    assert graph_of(text.replace("ROUNDS", "30000"))(np.float32([1, 2])).tolist() == [30001, 30002]
    graph = graph_of(text.replace("ROUNDS", "2 * n"))
    for size in (2, 5):
        assert graph(np.zeros(size, np.float32)).tolist() == [2 * size] * size


def test_the_call_says_how_long_a_pack_is() -> None:
    graph = graph_of(f"""{STEP}
        graph g {{ @input {{ x: real[m|9]; }} @output {{ s: real[m]; ys: real[m]..(m); }}
            @compose {{ s, ys = with s1 = x do..(m) {{ t, y = step(s1, x); yield t, y; }}; }} }}""")
    for size in (2, 5):
        x = reals(size)
        wanted, given = stepped(x, [x] * size, size)
        found = graph(x)
        np.testing.assert_allclose(found[0], wanted, rtol=1e-6)
        np.testing.assert_allclose(found[1], given, rtol=1e-6)
    with pytest.raises(tc.DslSyntaxError, match="a loop that may have any number of rounds gives a pack"):
        graph_of(f"""{STEP}
            graph g {{ @input {{ x: real[3]; n: int[]; }} @output {{ s: real[3]; ys: real[3]..(5); }}
                @compose {{ s, ys = with s1 = x do..(n) {{ t, y = step(s1, x); yield t, y; }}; }} }}""")


def test_an_elif_is_staged_as_an_if_is(monkeypatch: pytest.MonkeyPatch) -> None:
    staged = []
    compose = ComposedBlock._invocation

    def counted(block: ComposedBlock, node: Any, own: str) -> Any:
        staged.extend([node] * (block.composition.session is not None))
        return compose(block, node, own)

    monkeypatch.setattr(ComposedBlock, "_invocation", counted)
    tests = " ".join(f"t{k} = math.gt(s, {k}.0);" for k in range(7))
    arms = " el".join(f"if t{k} then math.mul(x, {k}.0)" for k in range(7))
    graph = graph_of(f"""import math; graph g {{ @input {{ x: real[3]; s: real[]; }} @output {{ y: real[3]; }}
        @compose {{ {tests} y = {arms} else x; }} }}""")
    assert graph.shapes((3,), ()) == (3,)
    assert len(staged) < 60  # 381 where each staged the next one twice


def test_lists_are_taken_apart() -> None:
    graph = graph_of("""import layout; graph g { @input { x: real[7]; }
        @output { a: real[]; c: real[]..(2); d: real[]..(2); e: real[]..(2); }
        @compose { [a, (c, d)..(2), e..(2)] = layout.unstack{axis=0}(x); } }""")
    a, c, d, e = graph(np.arange(7, dtype=np.float32))
    assert (a, c, d, e) == (0, [1, 3], [2, 4], [5, 6])
    for targets, fact in {
        "[a, (c, d)..(3), e..(2)]": "a pack of 7 is taken apart into 9",
        "[a, ()..(2), e..(2)]": "expected `..` behind names in parentheses",
        "[a, (c, d)..]": "the pack `(c, d)` has no length",
    }.items():
        text = f"import layout; graph g {{ @input {{ x: real[7]; }} @output {{ a: real[]; }} @compose {{ {targets} = "
        with pytest.raises(TcdslError, match=re.escape(fact)):
            graph_of(text + "layout.unstack{axis=0}(x); } }")


CUT = """import layout, math, nn;
operator pair { @input { x: int[2]; } @output { y: int[2]; } @lower { y[i,] = x[i,] * 10, i < 2; } }
operator same { @input { x: int[n]; y: int[n]; } @output { z: int[n]; } @lower { z[i,] = x[i,] + y[i,], i < n; } }
operator even { @input { x: int[2 * n]; } @output { z: int[n]; } @lower { z[i,] = x[2 * i,], i < n; } }
operator odd { @input { x: int[n]; } @output { z: int[n]; } @lower { z[i,] = x[i,], i < n; }
    @assert { n % 2 == 1 && n > 0: "no odd number"; } }
operator both { @input { x: int[a]; y: int[b]; } @output { z: int[k|5]; y2: int[k|5]; } @compose { z = x; y2 = y; } }
graph g { @input { x: real[5]; v: real[5]; c: bool[]; } @output { y: TYPE; }
    @compose {
        a = layout.nonzero(x); p = layout.squeeze{axes=[0]}(a);
        b = layout.nonzero(v); q = layout.squeeze{axes=[0]}(b);
        BODY
    } }"""


@pytest.mark.parametrize(
    ("body", "kind", "right", "wrong", "message"),
    [
        ("y = p;", "int[~|3]", 3, 4, "the output `y` has an extent that is larger than 3, which is declared"),
        ("y = p;", "int[3]", 2, 4, "the output `y` has an extent that is larger than 3, which is declared"),
        ("z: int[~|3] = p; y = z;", "int[~|5]", 3, 4, "`z` has an extent that is larger than 3, which is declared"),
        ("y = pair(p);", "int[2]", 2, 3, "pair: the input `x`, `output` of shape"),
        ("y = same(p, q);", "int[~|5]", 2, 3, "same: the input `y`, `output` of shape"),
        ("y = math.add(p, q);", "int[~|5]", 2, 3, "math.add: shapes that do not broadcast"),
        ("y = even(p);", "int[~|5]", 4, 5, "`2 * n` is of the form 2 * n"),
        ("y = odd(p);", "int[~|5]", 3, 0, "odd: no odd number"),
        (
            "y, ~ = both(p, q);",
            "int[~|5]",
            2,
            3,
            "the output `y2` has an extent that is not the one, which is declared",
        ),
    ],
)
def test_extents_that_only_data_says_are_checked(body, kind, right, wrong, message):
    graph = graph_of(CUT.replace("BODY", body).replace("TYPE", kind))
    v, c = np.float32([0, 1, 0, 1, 0]), np.array(True)
    places = np.arange(5) >= 5 - right
    length = 3 if kind == "int[3]" else 2 if "even" in body else right
    assert graph(places.astype(np.float32), v, c).shape == (length,)
    with pytest.raises(tc.ShapeError, match=re.escape(message)):
        graph(np.float32(np.arange(5) < wrong), v, c)


def test_arms_have_extents_that_only_data_says() -> None:
    arms = "if c then layout.nonzero(x) else layout.nonzero(v)"
    other = "if c then a else { t = layout.tensor{shape=[1,5], value=3}(); yield t; }"
    x, v = np.float32([0, 2, 4, 0, 8]), np.float32([0, 0, 0, 1, 0])
    for body, less in ((arms, [3]), (other, [3] * 5)):
        graph = graph_of(
            CUT.replace("BODY", f"w = {body}; y = layout.squeeze{{axes=[0]}}(w);").replace("TYPE", "int[~|5]")
        )
        assert graph(x, v, np.array(True)).tolist() == [1, 2, 4]
        assert graph(x, v, np.array(False)).tolist() == less
    body = f"w = {arms}; r = layout.squeeze{{axes=[0]}}(w); y = layout.gather{{axis=0}}(x, r);"
    graph = graph_of(CUT.replace("BODY", body).replace("TYPE", "real[~|5]"))
    assert tc.grad(lambda x: (graph(x, v, np.array(True)) ** 2).sum())(x).tolist() == [0, 4, 8, 0, 16]
    with pytest.raises(tc.DslSyntaxError, match="the rounds of a loop give tensors whose extents only data says"):
        graph_of("""import layout; graph g { @input { xs: real[3]..(4); n: int[]; } @output { y: int[1,3]; }
            @compose { ys = for x : xs do..(n) layout.nonzero(x); y = ys[0]; } }""")
