"""Sources and calls that are refused: the message, and the place that it shows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import DslSyntaxError, DtypeError, ShapeError, TcdslError

IO = "def f(float(N) A) -> (O) {{ {} }}"


def reals(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


# The source, the class of the error, what the message says, and the text that the caret shows.
SYNTAX = [
    ("", DslSyntaxError, "the source defines nothing", None),
    ("  # nothing\n", DslSyntaxError, "the source defines nothing", None),
    ("def", DslSyntaxError, "the source ends too early\n", None),
    ("def f(float(N) A) -> (O) { O(i) = A(i)", DslSyntaxError, "the source ends too early", None),
    ("f(float(N) A) -> (O) { }", DslSyntaxError, "unexpected `f`", "f"),
    ("def f(float(N) A,) -> (O) { O(i) = A(i) }", DslSyntaxError, "a comma before `)`", ")"),
    ("def f(A) -> (O) { O(i) = A(i) }", DslSyntaxError, "unexpected `A`", "A"),
    ("def f(float(N) A) -> O { O(i) = A(i) }", DslSyntaxError, "unexpected `O`", "O"),
    ("def f(float(N) A) -> () { }", DslSyntaxError, "unexpected `)`", ")"),
    ("def f(float(N + 1) A) -> (O) { O(i) = A(i) }", DslSyntaxError, "unexpected `+`", "+"),
    ("def f(float(N) in) -> (O) { O(i) = 1 }", DslSyntaxError, "`in` is a word of the language", "in"),
    ("def f(float(N) float) -> (O) { O(i) = 1 }", DslSyntaxError, "`float` is a word of the language", "float"),
    ("def 2f(float(N) A) -> (O) { O(i) = A(i) }", DslSyntaxError, "`2f` is neither a number nor a name", "2f"),
    (IO.format("O(i) = 2A(i)"), DslSyntaxError, "`2A` is neither a number nor a name", "2A"),
    (IO.format("O(i) = A(i);"), DslSyntaxError, "statements end where the next one begins", ";"),
    (IO.format("O(i) = A[i]"), DslSyntaxError, "indices stand in round brackets", "["),
    (IO.format("O(i) -= A(i)"), DslSyntaxError, "write `+=` and negate", "-="),
    (IO.format("O(i) = A(i) ** 2"), DslSyntaxError, "write `pow(x, 2)`", "**"),
    (IO.format("O(i) = A(i) & A(i)"), DslSyntaxError, "`&&` combines truth values", "&"),
    (IO.format("O(i) = A(i) // 2"), DslSyntaxError, "comments begin with `#`", "//"),
    (IO.format("O(i) = Ä(i)"), DslSyntaxError, "the character `Ä` is not ASCII", "Ä"),
    *(
        (IO.format(text), DslSyntaxError, f"the character `{shown}` is not ASCII", found)
        for text, shown, found in (
            ("O(i) = A(i) * \u0663", "\u0663", "\u0663"),
            ("O(i) = A(i) * 1\u0663", "\u0663", "\u0663"),
            ("O(i) = A(i) * 1.\u0663", "\u0663", "\u0663"),
            ("O(i) =\u00a0A(i)", r"\xa0", "\u00a0"),
        )
    ),
    (IO.format("O(i) = A(i) * 1e\uff11"), DslSyntaxError, "`1e\uff11` is neither a number nor a name", "1e\uff11"),
    (IO.format("O(i) = A(i) where i in 0:A.\u0660"), DslSyntaxError, "`\u0660` is not ASCII", "\u0660"),
    (IO.format("O(i) = A(i) where i in 0:A.N"), DslSyntaxError, "unexpected `.`", "."),
    ("deff(float(N) A) -> (O) { O(i) = A(i) }", DslSyntaxError, "unexpected `deff`", "deff"),
    (IO.format("O(i) = A(i) 2"), DslSyntaxError, "expected a statement, or `}`", "2"),
    ("def f(float(\u0663) A) -> (O) { O(i) = A(i) }", DslSyntaxError, "the character `\u0663` is not ASCII", "\u0663"),
    (IO.format('O(i) = "text"'), DslSyntaxError, "there are no strings", '"'),
    (IO.format("O(i + 1) = A(i)"), DslSyntaxError, "unexpected `+`", "+"),
    (IO.format("O(i) = A(i) where"), DslSyntaxError, "unexpected `}`", "}"),
    (IO.format("O(i) = A(i) where i in 0"), DslSyntaxError, "unexpected `}`", "}"),
    (IO.format("O(i) = A(i) where i in 0:N,"), DslSyntaxError, "a comma before `}`", "}"),
    (IO.format("O(i) = A(i,)"), DslSyntaxError, "a comma before `)`", ")"),
    (IO.format("O(i) = 007 + A(i)"), DslSyntaxError, "the number `007` begins with 0", "007"),
    (IO.format("O(i) = 3000000000 + A(i)"), DtypeError, "3000000000 does not fit in int32", "3000000000"),
    (IO.format("O(i) = 1e39 + A(i)"), DtypeError, "1e39 does not fit in float32", "1e39"),
    (IO.format("O(i) = " + "(" * 10_000 + "A(i)" + ")" * 10_000), DslSyntaxError, "nested more than 100 times", "("),
    (IO.format("O(i) = " + "-" * 10_000 + "A(i)"), DslSyntaxError, "nested more than 400 times", None),
    (IO.format("O(i) = A(i)" + " + A(i)" * 20_000), DslSyntaxError, "nested more than 400 times", None),
    (IO.format("O(i) = A(i) " * 30_000), DslSyntaxError, "characters, and 200000 are the most", None),
    (IO.format("O(i) = A(i) " * 2_000), DslSyntaxError, "has 2000 statements, and 1000 are the most", None),
]

NAMES = [
    ("def f(float(N) A) -> (O) { O(i) = A(i) } def f(float(N) A) -> (O) { O(i) = A(i) }", "`f` is defined twice", "f"),
    ("def exp(float(N) A) -> (O) { O(i) = A(i) }", "`exp` is a built-in function", "exp"),
    ("def f(float(N) tanh) -> (O) { O(i) = 1 where i in 0:N }", "`tanh` is a built-in function", "tanh"),
    ("def f(float(A) A) -> (O) { O(i) = A(i) }", "`A` is a size and a tensor", "A"),
    ("def f(float(N) A, float(N) A) -> (O) { O(i) = A(i) }", "`A` is declared twice", "A"),
    ("def f(float(N) A) -> (A) { A(i) = 1 }", "`A` is declared twice", "A"),
    ("def f(float(N) A) -> (O, O) { O(i) = A(i) }", "`O` is declared twice", "O"),
    ("def f(float(N) A) -> (O, P) { O(i) = A(i) }", "no statement writes the result `P`", "P"),
    (IO.format("A(i) = 1.0"), "`A` is an input, which nothing writes", "A"),
    (IO.format("T(i) = A(i) O(i) = T(i)"), "`T` is no result of `f`", "T"),
    (IO.format("O(i, i) = A(i)"), "the index `i` stands twice on the target", "i"),
    (IO.format("O(N) = A(0)"), "`N` is a size, and a target has index variables alone", "N"),
    (IO.format("O(i) = O(i) + A(i)"), "`O` is read before any statement has written it", "O"),
    (IO.format("O(i) = O.0 + A(i)"), "`O` is read before any statement has written it", "O"),
    (IO.format("O(i) = foo(A(i))"), "`foo` is neither a tensor nor a built-in function", "foo"),
    (IO.format("O(i) = expp(A(i))"), "did you mean `exp`?", "expp"),
    (IO.format("O(i) = N(i) + A(i)"), "`N` is a size, and has no indices", "N"),
    (IO.format("O(i) = t(i) where t = A(i)"), "`t` is a local definition, a scalar at each point", "t"),
    (IO.format("O(i) = t where t = A(i), t = 2 * A(i)"), "`t` is defined twice in this statement", "t"),
    (IO.format("O(i) = t where t = u, u = A(i)"), "`u` is used before its definition", "u"),
    (IO.format("O(i) = t where t = t + A(i)"), "`t` is used before its definition", "t"),
    (IO.format("O(i) = A(i) where N = 3"), "`N` is a size already", "N"),
    (IO.format("O(i) = A(i) where A = 3"), "`A` is a tensor already", "A"),
    (IO.format("O(i) = A(i) where i in 0:N, i in 1:N"), "`i` has two ranges", "i in 1:N"),
    (IO.format("O(i) = A(i) where j in 0:N"), "`j` is no index of the statement", "j"),
    (IO.format("O(i) = A(i) where N in 0:3"), "the range of `N`, which is a size", "N"),
    (IO.format("O(i) = A(i) where A in 0:3"), "the range of `A`, which is a tensor", "A"),
    (IO.format("O(i) +=! A(k) where i in 0:k"), "the index `k` in the bound of a range", "k"),
    (IO.format("O(i) = A(i) where i in 0:int32(A(0))"), "a bound of a range that is no size", "int32(A(0))"),
    (IO.format("O(i) = A(i) where i in 0:A(0)"), "`A(...)` in the bound of a range", "A(0)"),
    (IO.format("O(i) = A(i) where i in 0:1.5"), "a bound of a range that is no size", "1.5"),
    (IO.format("O(i) = A(i) where i in 0:(N < 3 < 4 ? N : 1)"), "a truth value in the bound of a range", "N < 3 < 4"),
    (IO.format("O(i) = A(i) where i in 0:N + (N < 3)"), "a truth value in the bound of a range", "N + (N < 3"),
    (IO.format("O(i) = A(i) where i in 0:N < 3"), "a bound of a range that is a truth value", "N < 3"),
    ("def f(int32 n, float(N) A) -> (O) { O(i) = A(i) where i in 0:n }", "the tensor `n` in the bound of a range", "n"),
    (IO.format("O(i) = A(k)"), "the index `k` of the value is not on the target", "k"),
    (IO.format("O() = A(i) * A(k)"), "the indices `i`, `k` of the value are not on the target", "i"),
    (IO.format("O(i) = f(A)"), "`f` is a definition, whose call is a statement of its own", "f(A)"),
    (IO.format("O = f(A)"), "the definition calls itself: `f` calls `f`", "O = f(A)"),
    ("def f(float(N) A) -> (O) { O = g(A) } def g(float(N) A) -> (O) { O = f(A) }", "`f` calls `g` calls `f`", None),
    (IO.format("P = g(A) O(i) = A(i)") + "def g(float(N) A) -> (B) { B(i) = A(i) }", "`P` is no result of `f`", "P"),
    (IO.format("O = g(A, A)") + "def g(float(N) A) -> (B) { B(i) = A(i) }", "takes 1 arguments, not 2", "O = g(A, A)"),
    (IO.format("O = g(A)") + "def g(float(N) A) -> (B, C) { B(i) = A(i) C(i) = A(i) }", "has 2 results, not 1", None),
    (IO.format("O = g(N)") + "def g(float(N) A) -> (B) { B(i) = A(i) }", "`N` is no tensor that has been written", "N"),
    (
        IO.format("O = g(A(0))") + "def g(float A) -> (B) { B = A }",
        "an argument of a definition that is no tensor",
        None,
    ),
    (IO.format("O += g(A)") + "def g(float(N) A) -> (B) { B(i) = A(i) }", "a statement of its own", "O += g(A)"),
    (IO.format("a, b = h(A) O(i) = A(i)"), "`h` is no definition of this source", "h"),
]

TYPES = [
    (IO.format("O(i) = A"), ShapeError, "`A` has rank 1 and stands without indices", "A"),
    (IO.format("O(i, j) = A(i, j)"), ShapeError, "`A` has rank 1 and is given 2 indices", "A(i, j)"),
    (IO.format("O(i) = A() where i in 0:N"), ShapeError, "`A` has rank 1 and is given 0 indices", "A()"),
    (IO.format("O(i) = A.1 + A(i)"), ShapeError, "`A` has rank 1, and no axis 1", "A.1"),
    (IO.format("O(i) = A(i) O(i, j) = A(i) * A(j)"), ShapeError, "`O` has rank 1, and is written with rank 2", "O"),
    (IO.format("O(i) = A(A(i))"), DtypeError, "an index of type float32", "A(i)"),
    (IO.format("O(i) = A(i < 2) where i in 0:N"), DtypeError, "an index of type bool", "i < 2"),
    (IO.format("O(i) = A(i) ? 1 : 2"), DtypeError, "the condition of `?` takes bool, not float32", "A(i)"),
    (IO.format("O(i) = !A(i)"), DtypeError, "`!` takes bool, not float32", "A(i)"),
    (IO.format("O(i) = A(i) > 0 && A(i)"), DtypeError, "`&&` takes bool, not float32", "A(i)"),
    (IO.format("O(i) = A(i) % 2"), DtypeError, "`%` takes integers, not float32", "A(i) % 2"),
    (IO.format("O(i) = min(A(i))"), DslSyntaxError, "`min` takes 2 arguments, not 1", "min(A(i))"),
    (IO.format("O(i) = exp(A(i), 2)"), DslSyntaxError, "`exp` takes 1 argument, not 2", "exp(A(i), 2)"),
    ("def f(float(N) A) -> (int32 O) { O() +=! A(i) }", DtypeError, "declared as int32, and is given float32", "O"),
    ("def f(double(N) A) -> (float O) { O() +=! A(i) }", DtypeError, "takes a cast: `float(...)`", "O"),
    ("def f(float(N) A) -> (float(N, N) O) { O(i) = A(i) }", ShapeError, "rank 2, and written with rank 1", "O"),
    ("def f(float(N) A) -> (float(M) O) { O(i) = A(i) }", ShapeError, "the size `M` of a result", "M"),
    (f"def f(float({', '.join(['N'] * 40)}) A) -> (O) {{ O = 1 }}", ShapeError, "40 axes, and 32 are the most", None),
]

RANGES = [
    (IO.format("O(i) = 1.0"), "the range of the index `i` cannot be inferred", "state a range: `where i in 0:N`"),
    (IO.format("O(i, j) = A(i + j)"), "the ranges of the indices `i`, `j` cannot be inferred", "leaves i and j open"),
    (
        "def f(float(N, N, N) A) -> (O) { O(i, j) = A(i + j, i + j, i + j) }",
        "cannot be inferred",
        "leaves i and j open",
    ),
    (IO.format("O(i) = A(i * i)"), "the range of the index `i` cannot be inferred", "where i in 0:N"),
    (IO.format("O(i) = A(i % 3)"), "the range of the index `i` cannot be inferred", "where i in 0:N"),
    (IO.format("O(i) = A(i + 1)"), "the index `i` of O would begin at -1, below 0", "O(i)"),
    (IO.format("O(i) = A(i) where i in -1:N"), "the index `i` of O would begin at -1, below 0", ""),
    (IO.format("O(i) = A(i) where i in 3:3"), "the range of `i` is empty: 3:3", "i in 3:3"),
    (IO.format("O(i) = A(i) where i in 5:2"), "the range of `i` is empty: 5:2", "i in 5:2"),
    (IO.format("O(i) = A(i) where i in N:N - 1"), "the range of `i` is empty", "i in N:N - 1"),
    (IO.format("O(i) = A(i + 1) where i in 0:N"), "`i + 1` on axis 0 of A is out of range", "values 1:N + 1"),
    (IO.format("O(i) = A(i - 1) where i in 0:N"), "`i - 1` on axis 0 of A is out of range", "values -1:N - 1"),
    (IO.format("O(i) = A(i / 0) where i in 0:N"), "an index is divided by 0", "i / 0"),
    ("def f(float(3) A) -> (O) { O(i) = A(i) where i in 0:4 }", "`i` on axis 0 of A is out of range", ""),
]


def refused(source: Any, kind: type[TcdslError], message: str, shown: str | None) -> None:
    with pytest.raises(kind) as caught:
        tc.comprehensions.define(source)
    text = str(caught.value)
    assert message in text
    (diagnostic, *_) = caught.value.diagnostics
    assert diagnostic.span is not None
    assert ":1" in text or ":2" in text
    if shown is not None:
        caret = next(line for line in text.split("\n") if set(line.strip()) == {"^"})
        line = text.split("\n")[text.split("\n").index(caret) - 1]
        assert line[caret.index("^") : caret.rindex("^") + 1] == shown


@pytest.mark.parametrize(("source", "kind", "message", "shown"), SYNTAX, ids=range(len(SYNTAX)))
def test_syntax(source: str, kind: type[TcdslError], message: str, shown: str | None) -> None:
    refused(source, kind, message, shown)


@pytest.mark.parametrize("source", ["", "  ", "\n\n", "\t\n # nothing"])
def test_a_source_of_nothing_has_a_place(source: str) -> None:
    with pytest.raises(DslSyntaxError, match=r"^<tc [0-9a-f]+>:1:1: the source defines nothing\n +\n    \^\nwrite"):
        tc.comprehensions.define(source)


@pytest.mark.parametrize(("source", "message", "shown"), NAMES, ids=range(len(NAMES)))
def test_names(source: str, message: str, shown: str | None) -> None:
    refused(source, DslSyntaxError, message, shown)


@pytest.mark.parametrize(("source", "kind", "message", "shown"), TYPES, ids=range(len(TYPES)))
def test_types(source: str, kind: type[TcdslError], message: str, shown: str | None) -> None:
    refused(source, kind, message, shown)


@pytest.mark.parametrize(("source", "message", "also"), RANGES, ids=range(len(RANGES)))
def test_ranges(source: str, message: str, also: str) -> None:
    with pytest.raises(TcdslError) as caught:
        tc.comprehensions.define(source)
    assert message in str(caught.value)
    assert also in str(caught.value)


@pytest.mark.parametrize("source", [None, 3, b"def", ["def"], {}], ids=str)
def test_what_is_no_text(source: Any) -> None:
    with pytest.raises(DslSyntaxError, match="a source is a text"):
        tc.comprehensions.define(source)


@pytest.mark.parametrize("target", ["O(p(i))", "O(i, p(j))", "O(i + 1)", "O(2 * i)", "O(3)", "O(j,\n  p(i))"])
def test_targets_have_names_alone(target: str) -> None:
    with pytest.raises(DslSyntaxError, match="a target has names of indices alone: gather") as caught:
        tc.comprehensions.define(IO.format(f"{target} += A(i)"))
    assert "unexpected" in str(caught.value)


@pytest.mark.parametrize(
    "source", [IO.format("O, P = g(A(i))"), "def f(float(N(M)) A) -> (O) { O(i) = A(i) }", "def f(2) {}"]
)
def test_other_lists_are_no_targets(source: str) -> None:
    with pytest.raises(DslSyntaxError, match="unexpected") as caught:
        tc.comprehensions.define(source)
    assert "target" not in str(caught.value)


def test_all_faults_are_shown_together() -> None:
    with pytest.raises(DslSyntaxError) as caught:
        tc.comprehensions.define(
            "def f(float(N) A) -> (O) { O(i) = B(i) O(N) = foo(A(i)) }\ndef exp() -> (O) { O = 1 }"
        )
    assert len(caught.value.diagnostics) == 5


def test_errors_can_be_sent_to_other_processes() -> None:
    import pickle

    with pytest.raises(DslSyntaxError) as caught:
        tc.comprehensions.define("def f(")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (type(copy), str(copy)) == (DslSyntaxError, str(caught.value))


CALLS = [
    (IO.format("O(i) = i > 0 ? A(i + 1) : 0 where i in 0:N"), (reals(3),), ShapeError, "`i + 1` on axis 0 of A is out"),
    ("def f(float(N) A, float(N) B) -> (C) { C(i) = A(i) + B(i) }", (reals(3), reals(4)), ShapeError, "`N` is 3"),
    ("def f(float(3) A) -> (C) { C(i) = A(i) }", (reals(4),), ShapeError, "has the extent 4, and `3` is 3"),
    (
        "def f(float(N) A) -> (C) { C(i) = A(i) }",
        (reals(4, 1),),
        ShapeError,
        "has rank 1, and is given an array of rank 2",
    ),
    (
        "def f(float(N) A) -> (C) { C(i) = A(i) }",
        (np.ones(4),),
        DtypeError,
        "`A` of `f` is float32, and is given float64",
    ),
    ("def f(float(N) A) -> (C) { C(i) = A(i) }", (np.ones(4, int),), DtypeError, "is float32, and is given int64"),
    ("def f(int32(N) A) -> (C) { C(i) = A(i) }", (np.ones(4, np.int16),), DtypeError, "is int32, and is given int16"),
    ("def f(int32 a) -> (C) { C = a }", (1.5,), DtypeError, "is int32, and is given a Python float"),
    ("def f(float(N) A) -> (C) { C(i) = A(i) }", (), TcdslError, "missing a required argument: 'A'"),
    (
        "def f(float(H) I, float(K) W) -> (O) { O(h) +=! I(h + k) * W(k) }",
        (reals(3), reals(5)),
        ShapeError,
        "a negative number",
    ),
    (
        "def f(float(H) I, float(K) W) -> (O) { O(h) +=! I(h + k) * W(k) }",
        (reals(4), reals(5)),
        ShapeError,
        "the range of `h` is empty",
    ),
    (
        "def f(float(N) A, float(M) B) -> (C) { C(i) = A(i) where i in 0:M }",
        (reals(3), reals(4)),
        ShapeError,
        "`i` on axis 0 of A is out of range: it takes the values 0:M, and the extent is N, with M = 4, N = 3",
    ),
    (
        "def f(float(N) A, float(M) B) -> (C) { C(i) = i > 2 ? A(i - 1) : B(i) where i in 0:M }",
        (reals(3), reals(5)),
        ShapeError,
        "`i - 1` on axis 0 of A is out of range",
    ),
    ("def f(float(N) A, int32(M) p) -> (C) { C(i) = A(p(i)) }", (reals(3), np.full(2, 3, np.int32)), IndexError, "3"),
    (
        "def f(float(N) A, int32(M) p) -> (C) { C(i) = p(i) > 0 ? A(i + 1) : 0 where i in 0:M }",
        (reals(3), np.ones(3, np.int32)),
        IndexError,
        "A",
    ),
    ("def f(float(N, M) A) -> (float(N) O) { O(i) +=! A(k, i) }", (reals(3, 4),), ShapeError, "`N` is 3"),
]


@pytest.mark.parametrize(("source", "arguments", "kind", "message"), CALLS, ids=range(len(CALLS)))
def test_calls(source: str, arguments: tuple[Any, ...], kind: type[Exception], message: str) -> None:
    f = tc.comprehensions.define(source).f
    with pytest.raises(kind) as caught:
        f(*arguments)
    assert isinstance(caught.value, TcdslError)
    assert message in str(caught.value)


DIVIDED = "def f(float(N) A, float(M) B, int32(M) p) -> (C) {{ C(i) = {} where i in 0:M }}"


@pytest.mark.parametrize(
    ("value", "extent"),
    [
        ("B(i % N)", 0),
        ("B(i / N)", 0),
        ("B(p(i) % N)", 0),
        ("B(i % (N * N))", 0),
        ("B(i / (N - 2))", 2),
        ("B(B.0 - 1 - i % N)", 0),
        ("i > 1 ? B(i % N) : 7.0", 0),
    ],
)
def test_an_index_that_is_divided_by_0(value: str, extent: int) -> None:
    source = DIVIDED.format(value)
    f = tc.comprehensions.define(source).f
    p = np.zeros(3, np.int32)
    with pytest.raises(ShapeError, match=r"an index on axis 0 of B is divided by `N.*`, which is 0, with N") as caught:
        f(reals(extent), reals(3), p)
    caret = str(caught.value).split("\n")[2]
    shown = source[caret.index("^") - 4 : caret.rindex("^") - 3]
    assert shown in value
    assert "%" in shown or "/" in shown
    with pytest.raises(ShapeError, match="divided by"):
        f.shapes((extent,), (3,), (3,))


def test_an_index_that_is_divided_by_0_at_no_point() -> None:
    def f(value: str) -> Any:
        return tc.comprehensions.define(DIVIDED.format(value)).f

    p, none = np.zeros(3, np.int32), np.zeros(0, np.int32)
    assert f("B(i % N)")(reals(0), reals(0), none).shape == (0,)
    np.testing.assert_array_equal(f("N > 0 ? B(i % N) : 7.0")(reals(0), reals(3), p), [7, 7, 7])
    np.testing.assert_array_equal(f("i > 3 ? B(i % N) : 7.0")(reals(0), reals(3), p), [7, 7, 7])
    B = np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(f("B(i % N)")(reals(2), B, p), [0, 1, 0])
    np.testing.assert_array_equal(f("B(i / N)")(reals(2), B, p), [0, 0, 1])
    np.testing.assert_array_equal(f("i % N")(reals(0), B, p), [0, 0, 0])


def test_a_guarded_read_is_tested_where_it_is_made() -> None:
    source = "def f(float(N) A, int32(M) p) -> (C) { C(i) = p(i) > 0 ? A(i + 1) : 0 where i in 0:M }"
    f = tc.comprehensions.define(source).f
    np.testing.assert_array_equal(f(reals(3), np.array([1, 1, 0], np.int32)), [1, 1, 0])


def test_empty_arrays_are_no_fault() -> None:
    defs = tc.comprehensions.define(
        "def f(float(N, K) A, float(K, M) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }"
        "def g(float(N) A, float(M) B) -> (C) { C(i) = A(i) + B(i) where i in 0:N / 2 }"
    )
    np.testing.assert_array_equal(defs.f(reals(2, 0), reals(0, 3)), np.zeros((2, 3)))
    assert defs.f(reals(0, 2), reals(2, 3)).shape == (0, 3)
    assert defs.g(reals(0), reals(0)).shape == (0,)
