"""Shape inference, by hand: networks, broadcasting, specs."""

from __future__ import annotations

import pytest

from tcdsl.errors import DslSyntaxError, ShapeError
from tcdsl.rows.inference import (
    Origin,
    Shape,
    close,
    compose,
    einsum,
    known,
    number,
    parameter,
    pointwise,
    scalar,
    transpose,
)
from tests.rows.stated_shapes import equal, unknown

HERE = Origin()


def add(*operands: Shape) -> Shape:
    return pointwise(operands, HERE)


def at(left: Shape, right: Shape) -> Shape:
    return compose(left, right, HERE)


def closed(*shapes: Shape) -> list[str]:
    close(shapes, HERE)
    return [str(shape) for shape in shapes]


def test_layer() -> None:
    x = known((2,), batch=(100,), name="x")
    w, b = parameter("w"), parameter("b", (16,))
    y = add(at(w, x), b)
    assert str(w) == "2 -> ..."
    assert closed(w, b, y) == ["2 -> 16", "16", "100 | 16"]
    assert y.sizes == (100, 16)
    assert w.sizes == (16, 2)


def test_three_layers() -> None:
    h = known((2,), batch=(100,), name="x")
    shapes = []
    for layer, size in enumerate((16, 16, 1)):
        w, b = parameter(f"w{layer}"), parameter(f"b{layer}", (size,))
        h = pointwise([add(at(w, h), b)], HERE)
        shapes += [w, b, h]
    target = known((1,), batch=(100,), name="target")
    loss = einsum("...|...->... => 0", [add(h, target)], HERE)
    assert closed(*shapes, loss) == [
        "2 -> 16", "16", "100 | 16", "16 -> 16", "16", "100 | 16", "16 -> 1", "1", "100 | 1", "1",
    ]  # fmt: skip


def test_only_the_given_shapes_and_what_they_depend_on_must_be_determined() -> None:
    x = known((2,))
    w, unfinished = parameter("w", (3,)), parameter("u")
    y = at(w, x)
    at(unfinished, y)
    assert closed(w, y) == ["2 -> 3", "3"]
    assert str(unfinished) == "3 -> ..."


def test_sizes_of_data_are_known_at_once() -> None:
    assert str(add(known((3, 1)), known((4,)))) == "3, 4"
    assert str(at(known((5,), (3,)), known((3,), (2,), (100,)))) == "100 | 2 -> 5"
    assert str(transpose(known((5,), (3,), (2,)), HERE)) == "2 | 5 -> 3"


def test_consoles_show_shapes_as_they_are_written() -> None:
    shape = known((("q", 1),), input=(2, 3))
    assert (repr(shape), repr(shape.input), repr(shape.batch)) == ("<Shape 2, 3 -> q=1>", "<Row 2, 3>", "<Row ()>")


def test_numbers_determine_only_what_nothing_else_does() -> None:
    x = known((2,), batch=(100,))
    w, b, a = parameter("w"), parameter("b", (16,)), parameter("a")
    assert closed(w, add(add(number(), at(w, x)), b)) == ["2 -> 16", "100 | 16"]
    assert closed(a, add(number(), a)) == ["1", "1"]
    # Numbers of Python add no axes to what has none.
    assert [str(add(known(()), each)) for each in (number(), scalar())] == ["1", "()"]
    v, d, c = parameter("v"), parameter("d", (16,)), parameter("c")
    assert closed(v, add(add(scalar(), at(v, x)), d)) == ["2 -> 16", "100 | 16"]
    assert closed(c, add(add(scalar(), c), scalar())) == ["1", "1"]
    assert closed(add(scalar(), scalar())) == ["()"]
    z = parameter("z")
    assert closed(z, add(add(z, scalar()), known((3, 4)))) == ["3, 4", "3, 4"]


def test_a_bias_of_size_1_determines() -> None:
    w, b = parameter("w"), parameter("b", (1,))
    y = add(at(w, known((2,))), b)
    z = add(y, known((16,)))
    assert closed(w, y, z) == ["2 -> 1", "1", "16"]


def test_parameters_take_what_is_above_them() -> None:
    a = parameter("a")
    y = add(a, known((3, 4), batch=(5,)))
    assert closed(a, y) == ["3, 4", "5 | 3, 4"]


def test_the_result_of_composition_is_an_operand_like_any_other() -> None:
    u, w = parameter("u", (3,)), parameter("w")
    with pytest.raises(ShapeError) as raised:
        close([u, w, at(u, at(w, known((2,))))], HERE)
    assert str(raised.value) == (
        "`w` has output axes that nothing determines, which are the input axes of `u` too\n"
        "    u: ... -> 3\n"
        "    w: 2 -> ...\n"
        'write "w"[n], or param("w", o=n)'
    )
    assert str(w) == "2 -> ..."


def test_valid_convolution() -> None:
    assert str(einsum("o+k; k=>o", [known((5,)), known((2,))], HERE)) == "4"
    assert str(einsum("2*o+k; k=>o", [known((7,)), known((2,))], HERE)) == "3"
    w = parameter("w")
    assert closed(w, einsum("o+k; k; o => 0", [known((5,)), w, known((4,))], HERE)) == ["2", "1"]


def test_axes_of_positions_grow_with_their_uses() -> None:
    r = einsum("i=>i0", [known((4,))], HERE)
    einsum("i2=>i", [r], HERE)
    assert closed(r) == ["4, 3"]


def test_equations() -> None:
    q = parameter("q")
    equal(q, known((5, 4), (3,)), HERE)
    assert str(q) == "3 -> 5, 4"


def test_what_follows_follows_at_once() -> None:
    u, v = unknown("u"), unknown("v")
    vector = einsum("i=>i", [u], HERE)
    # Nothing but the vector can make the result larger than 1.
    equal(add(vector, known((1,))), known((5,)), HERE)
    assert str(vector) == "5"
    # Nothing but the matrix can make the result have two axes.
    matrix = add(v, known((3,)))
    equal(matrix, known((2, 3)), HERE)
    assert str(v.output) == "2, ?"


def test_defaults() -> None:
    # Parameters with output axes need no input axes, results need nothing.
    assert closed(parameter("b", (3,)), parameter("c", (3,)), unknown("u")) == ["3", "3", "()"]
    assert closed(einsum("i=>i", [unknown()], HERE)) == ["1"]
    # What a position needs, and nothing more.
    p = parameter("p")
    einsum("3=>", [p], HERE)
    assert closed(p) == ["4"]
    # An axis that a position needs to be there is 1 beside one without cells.
    p = parameter("p")
    einsum("0=>", [p], HERE)
    assert closed(p, add(p, known((0,)))) == ["1", "0"]
    # Windows of 2 and of 3 fit: the larger one.
    assert closed(einsum("2*o+k; o => k", [known((7,)), known((3,))], HERE)) == ["3"]
    # Both would be 2 by what they are added to, which does not fit together.
    a, b = parameter("a"), parameter("b")
    held = [einsum("o+k; o; k =>", [known((1,)), a, b], HERE), add(a, known((2,))), add(b, known((2,)))]
    assert closed(a, b, *held) == ["1", "1", "()", "2", "2"]
    # A result that a position made as large as it is does not stretch further.
    assert closed(add(einsum("i=>0", [known((5,))], HERE), parameter("q")), add(known((4,)))) == ["1", "4"]


def test_faults_of_specs() -> None:
    with pytest.raises(DslSyntaxError, match="the spec has no `=>`"):
        einsum("ij", [known((2, 3))], HERE)
    with pytest.raises(ShapeError) as raised:
        einsum("ij;jk=>ik", [known((2, 3), name="a"), known((4, 5), name="b")], HERE)
    assert str(raised.value) == (
        "the sizes of axes differ: output axis 1 from the right of `a` is 3, "
        "and output axis 2 from the right of `b` is 4\n"
        "    ij;jk=>ik\n"
        "       ^\n"
        "    a: 2, 3\n"
        "    b: 4, 5"
    )
