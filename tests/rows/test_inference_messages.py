"""What shape inference says where shapes do not fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tcdsl.errors import DslSyntaxError, ShapeError, TcdslError
from tcdsl.rows.inference import (
    Origin,
    close,
    compose,
    einsum,
    known,
    number,
    parameter,
    pointwise,
)
from tcdsl.span import Span
from tests.rows.stated_shapes import equal, unknown

SOURCE = """\
y = w @ x + b
z = einsum("2*o+k; k => o", x, k)
q = y - t
"""
HERE = Origin()


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int, str], Span]:
    """Where a stretch of a line of the source is."""
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text(SOURCE)

    def find(line: int, text: str) -> Span:
        column = SOURCE.splitlines()[line - 1].index(text)
        return Span("model.py", line, column, line, column + len(text))

    return find


def told(change: Callable[[], object], kind: type[TcdslError] = ShapeError) -> str:
    with pytest.raises(kind) as raised:
        change()
    return str(raised.value)


def test_labels(at: Callable[[int, str], Span]) -> None:
    x, t = known((("channel", 3),), name="y"), known((("class", 3),), name="t")
    assert told(lambda: pointwise([x, t], Origin(at(3, "y - t")))) == (
        "model.py:3: one axis has two labels: 'channel' from output axis 1 from the right of `y`, "
        "and 'class' from output axis 1 from the right of `t`\n"
        "    q = y - t\n"
        "        ^^^^^\n"
        "    y: channel=3\n"
        "    t: class=3\n"
        "give both axes the same label, or one of them none"
    )


def test_labels_travel() -> None:
    x, t = known((("in", 3),), name="x"), known((("class", 4),), name="t")
    w = parameter("w")
    y = pointwise([compose(w, x, HERE), t], HERE)
    close([w, y], HERE)
    assert str(w) == "in=3 -> class=4"
    assert [axis.root.label for axis in y.output.axes] == ["class"]
    wrong = told(lambda: compose(known((("hidden", 5),), (("channel", 3),), name="v"), x, HERE))
    assert wrong.startswith(
        "one axis has two labels: 'channel' from input axis 1 from the right of `v`, "
        "and 'in' from output axis 1 from the right of `x`\n"
    )
    # One use of data says nothing of others.
    plain = known((4,), name="plain")
    pointwise([plain, t], HERE)
    (axis,) = pointwise([plain, known((("other", 4),))], HERE).output.axes
    assert axis.root.label == "other"


def test_rows_that_are_composed() -> None:
    w = known((2,), (3,), name="w")
    assert told(lambda: compose(w, known((4,), name="x"), HERE)) == (
        "the sizes of axes differ: input axis 1 from the right of `w` is 3, "
        "and output axis 1 from the right of `x` is 4\n"
        "    w: 3 -> 2\n"
        "    x: 4"
    )
    assert told(lambda: compose(w, known((3, 4), name="x"), HERE)) == (
        "`w` has 1 input axis, and `x` has 2 output axes\n"
        "    w: 3 -> 2\n"
        "    x: 3, 4\n"
        "all axes of a plain array are output axes; `tensor(x, batch=1)` says how many leading ones count the samples "
        "of a batch"
    )
    assert told(lambda: compose(w, known((3, 4), batch=(5,), name="x"), HERE)).endswith("    x: 5 | 3, 4")
    assert told(lambda: compose(known((2, 3), name="w"), known((3,), name="x"), HERE)) == (
        "`w` has no input axes, and `x` has 1 output axis\n"
        "    w: 2, 3\n"
        "    x: 3\n"
        "`@` sums over the input axes of what is on its left; `tensor(x, input=1)` says how many trailing axes of an "
        "array are input axes"
    )


def test_the_operands_sizes_are_traced_to_where_they_come_from(at: Callable[[int, str], Span]) -> None:
    w, b, x = parameter("w"), parameter("b", (16,)), known((2,), batch=(100,), name="x")
    y = replace(pointwise([compose(w, x, HERE), b], HERE), name="y")
    assert told(lambda: pointwise([y, known((17,), name="t")], Origin(at(3, "y - t")))) == (
        "model.py:3: axes of sizes 16 and 17 do not broadcast to one: "
        "output axis 1 from the right of `b` is 16, and output axis 1 from the right of `t` is 17\n"
        "    q = y - t\n"
        "        ^^^^^\n"
        "    y: 100 | ... -> ..., 16\n"
        "    t: 17"
    )


def test_the_earlier_operation_that_cannot_hold_is_named(at: Callable[[int, str], Span]) -> None:
    w = parameter("w")
    earlier = Origin(at(1, "w @ x + b"))
    y = pointwise([compose(w, known((3,)), earlier), known((16,), name="b")], earlier)
    old = known((5,), (3,), name="old")
    assert told(lambda: equal(w, old, Origin(at(3, "y - t")))) == (
        "model.py:3: axes of sizes 16 and 5 do not broadcast to one: "
        "output axis 1 from the right of `b` is 16, and output axis 1 from the right of `old` is 5\n"
        "    q = y - t\n"
        "        ^^^^^\n"
        "    w: 3 -> ...\n"
        "    old: 3 -> 5\n"
        "    as model.py:1 needs"
    )
    assert str(y) == "..., 16"


def test_carets_point_into_the_spec_in_the_message() -> None:
    a, b = known((2, 3), name="a"), known((4,), name="b")
    assert told(lambda: einsum("ij;j=>i", [a, b], HERE)) == (
        "the sizes of axes differ: output axis 1 from the right of `a` is 3, "
        "and output axis 1 from the right of `b` is 4\n"
        "    ij;j=>i\n"
        "       ^\n"
        "    a: 2, 3\n"
        "    b: 4"
    )
    assert told(lambda: einsum("ij;j=>i", [a], HERE)).startswith(
        "the spec has 2 operands, and 1 are given\n    ij;j=>i\n       ^\n"
    )
    assert told(lambda: einsum("ijk=>k", [a], HERE)).startswith(
        "`a` has 2 output axes, and the spec has at least 3 output axes\n    ijk=>k\n    ^^^\n"
    )
    assert told(lambda: einsum("b|...=>...", [a], HERE)).startswith(
        "`a` has no batch axes, and the spec has at least 1 batch axis\n    b|...=>...\n    ^\n"
    )
    assert told(lambda: einsum("i5=>i", [a], HERE)).startswith(
        "position 5 in `i5=>i` needs an axis of size 6 or more, but output axis 1 from the right of `a` is 3\n"
        "    i5=>i\n"
        "     ^\n"
    )
    assert told(lambda: einsum("i=>ij", [b], HERE)) == (
        "nothing determines the size of `j`, which the result alone has\n"
        "    i=>ij\n"
        "        ^\n"
        "    b: 4\n"
        "name `j` in an operand, or write to a target that has this axis"
    )
    assert told(lambda: einsum("ij", [a], HERE), DslSyntaxError).startswith("the spec has no `=>`\n    ij\n      ^")


def test_affine_axes() -> None:
    x, k, b = known((9,), name="x"), known((2,), name="k"), known((2,), name="b")
    assert told(lambda: einsum("2*o+k; k; o => o", [x, k, b], HERE)).startswith(
        "`2*o+k` leaves 5 of the 9 positions of output axis 1 from the right of `x` unread, with sizes o = 2, k = 2\n"
        "    2*o+k; k; o => o\n"
        "    ^^^^^\n"
        "    o is 2: output axis 1 from the right of `b`\n"
        "    k is 2: output axis 1 from the right of `k`\n"
    )
    assert told(lambda: einsum("i=>1-i", [known((4,))], HERE)) == (
        "`1-i` is -2 where the indices are largest, with sizes i = 4\n"
        "    i=>1-i\n"
        "       ^^^\n"
        "    operand 1: 4\n"
        "add 2 to the index"
    )
    assert told(lambda: close([einsum("o+k=>o", [x], HERE)], HERE)) == (
        "nothing determines the sizes of the indices of `o+k` in `o+k=>o`\n"
        "use the name in another operand, or give its size"
    )


def test_rows_that_would_contain_themselves() -> None:
    u = unknown("u")
    longer = einsum("...=>...0", [u], HERE)
    assert told(lambda: equal(u, longer, HERE)).startswith("a row cannot equal itself with more axes\n")
    around = pointwise([longer, parameter("p")], HERE)
    assert told(lambda: equal(u, around, HERE)) == (
        "no shape satisfies this: a row would need more than 64 axes\n"
        "    u: ... | ... -> ...\n"
        "    operand 2: ... -> ..., ?\n"
        "a row is made to contain itself and more axes: look at what it is stored to or compared with"
    )


def test_parameters_that_nothing_determines(at: Callable[[int, str], Span]) -> None:
    w, x = parameter("w", origin=Origin(at(1, "w"))), known((2,), name="x")
    y = compose(w, x, HERE)
    assert told(lambda: close([y], Origin(at(3, "y")))) == (
        "model.py:1: `w` has output axes that nothing determines\n"
        "    y = w @ x + b\n"
        "        ^\n"
        'write "w"[n], or param("w", o=n)'
    )
    u, v = parameter("u"), parameter("v")
    r = pointwise([compose(u, v, HERE), number()], HERE)
    assert told(lambda: close([u, v, r], HERE)).startswith(
        "`u` has input axes that nothing determines, which are the output axes of `v` too\n"
    )
    p = parameter("p")
    assert told(lambda: close([p, einsum("...ij=>...i", [p], HERE)], HERE)) == (
        '`p` has output axes that nothing determines\n    p: ..., ?, ?\nwrite "p"[n], or param("p", o=n)'
    )
    q = parameter("q")
    assert told(lambda: close([einsum("ij=>i", [q], HERE)], HERE)) == (
        'nothing determines the size of output axis 2 from the right of `q`\nwrite "q"[n], or param("q", o=n)'
    )


def test_sizes_of_data() -> None:
    assert told(lambda: known((3, -1), name="x")) == (
        "the size of an axis is not negative, but output axis 1 from the right of `x` is given as -1"
    )
    assert told(lambda: known((1,) * 65, name="x")) == (
        "the output row of `x` has 65 axes, and the most that there can be is 64"
    )
    w = parameter("w", (2,))
    with pytest.raises(ValueError, match=r"the axes of the row \.\.\. are not all known"):
        assert w.sizes
