"""The shapes of specs: a table, with operands known before, and found afterwards."""

from __future__ import annotations

import pytest

from tcdsl.rows.inference import (
    Origin,
    Shape,
    close,
    compose,
    einsum,
    known,
    parameter,
    pointwise,
)
from tests.rows.stated_shapes import equal, unknown

HERE = Origin()


def shape(text: str) -> Shape:
    """``shape("100 | 2 -> 3, 4")``: what `str` of a shape prints, read back."""
    batch, _, rest = text.rpartition("|")
    inputs, _, outputs = rest.rpartition("->")
    rows = [
        [int(size) for size in row.replace("()", "").split(",") if size.strip()] for row in (batch, inputs, outputs)
    ]
    return known(rows[2], rows[1], rows[0])


TABLE = [
    # permutations, diagonals
    ("b|i->o => o|b->i", ["2 | 3 -> 4"], "4 | 2 -> 3"),
    ("ab|cd->ef => cf|ae->db", ["2, 3 | 4, 5 -> 6, 7"], "4, 7 | 2, 6 -> 5, 3"),
    ("ij=>ji", ["3, 4"], "4, 3"),
    ("ii => i", ["3, 3"], "3"),
    ("i=>ii", ["5"], "5, 5"),
    ("ij=>iji", ["3, 4"], "3, 4, 3"),
    # products
    ("b|h->o; b|i->h => b|i->o", ["2 | 4 -> 5", "2 | 3 -> 4"], "2 | 3 -> 5"),
    ("b|i->h; b|h->o => i->o", ["2 | 3 -> 4", "2 | 4 -> 5"], "3 -> 5"),
    ("ij;jk;km=>im", ["2, 3", "3, 4", "4, 5"], "2, 5"),
    ("...i;i=>...", ["2, 3, 4", "4"], "2, 3"),
    # row variables
    ("...|...->...o => o", ["2 | 3 -> 5, 4"], "4"),
    ("i->...o => ...io", ["2 -> 3, 4"], "3, 2, 4"),
    ("...|i->...; ...|...->i => ...|i", ["3 | 4 -> 2", "3 | 1 -> 4"], "3 | 4"),
    ("...|...->... => 0", ["2 | 3 -> 4"], "1"),
    ("...|... => 0", ["2 | 4"], "1"),
    ("... => 0", ["4"], "1"),
    ("...|...->... => ...->...", ["2 | 3 -> 4"], "3 -> 4"),
    ("2...|...->... => ...|...->...", ["5, 6 | 3 -> 4"], "6 | 3 -> 4"),
    ("...|... => ...|...2", ["6 | 4"], "6 | 4, 3"),
    ("ijk => kji", ["9, 2, 3, 4"], "4, 3, 2"),
    ("ijk => ki", ["2, 3, 4"], "4, 2"),
    ("..v..|ijk => ..v..kji", ["7, 8 | 2, 3, 4"], "7, 8, 4, 3, 2"),
    ("2..v..|... => ..v..", ["5, 6, 7 | 4"], "6, 7"),
    ("..v..|..w..->... => ..w..|..v..->...", ["2 | 3 -> 4"], "3 | 2 -> 4"),
    ("...;... => ...", ["3, 1", "2, 1, 4"], "2, 3, 4"),
    ("..v..;..v..|..v.. => ..v..", ["3", "2, 1 | 1"], "2, 3"),
    ("a...b;a...b => b...a", ["2, 5, 3", "2, 3"], "3, 5, 2"),
    # rows and axes that are left out
    ("i => i", ["2 | 3 -> 4, 5"], "5"),
    ("_i => i", ["4, 5"], "5"),
    ("i => _i", ["5"], "1, 5"),
    # positions
    ("i->j => i0j", ["2 -> 3"], "2, 1, 3"),
    ("...|i->1; ...|j...->i => ...|ij", ["3 | 4 -> 2", "3 | 2, 3 -> 4"], "3 | 4, 2"),
    ("i=>i3", ["2"], "2, 4"),
    # affine axes
    ("o+k; k => o", ["5", "2"], "4"),
    ("...|2*h+a, 2*w+b, ..c..; a, b => ...|h, w, ..c..", ["4, 4, 1", "2, 2"], "2, 2, 1"),
    ("...|2*h+a, 2*w+b, ..c..; a, b => ...|h, w, ..c..", ["9 | 7, 7, 2", "3, 3"], "9 | 3, 3, 2"),
    ("o+2*k; k => o", ["9", "3"], "5"),
    ("o+1 => o", ["5"], "4"),
    ("3-i => i", ["9"], "4"),
    ("..., i => ..., 2*i", ["3"], "5"),
    ("..., i => ..., 2*i+1", ["3"], "6"),
    ("o; k => o+k", ["4", "2"], "5"),
    ("o; k => 2*o+k", ["4", "2"], "8"),
    # sizes 0 and 1
    ("ij;jk=>ik", ["2, 0", "0, 3"], "2, 3"),
    ("...;... => ...", ["0", "1"], "0"),
    ("o+k; k => o", ["1", "2"], "0"),
    ("i => 2*i", ["0"], "0"),
    ("=>", ["()"], "()"),
]


@pytest.mark.parametrize(("spec", "operands", "result"), TABLE, ids=[f"{row[0]}-{k}" for k, row in enumerate(TABLE)])
def test_known_operands(spec: str, operands: list[str], result: str) -> None:
    found = einsum(spec, [shape(text) for text in operands], HERE)
    close([found], HERE)
    assert str(found) == result


@pytest.mark.parametrize(("spec", "operands", "result"), TABLE, ids=[f"{row[0]}-{k}" for k, row in enumerate(TABLE)])
def test_operands_found_afterwards(spec: str, operands: list[str], result: str) -> None:
    open_shapes = [unknown() for _ in operands]
    found = einsum(spec, open_shapes, HERE)
    for open_shape, text in reversed(list(zip(open_shapes, operands, strict=True))):
        equal(open_shape, shape(text), HERE)
    close([found], HERE)
    assert str(found) == result


def test_a_window_of_a_convolution_is_found_from_its_result() -> None:
    k = parameter("k")
    y = einsum("...|o+k, c; k, c, d => ...|o, d", [known((9, 3), batch=(5,)), k], HERE)
    equal(y, known((7, 4), batch=(5,)), HERE)
    assert str(k.output) == "..., 3, 3, 4"
    close([k], HERE)
    assert k.sizes == (3, 3, 4)


def test_the_axis_that_is_read_is_as_small_as_its_indices_allow() -> None:
    p = parameter("p")
    close([p, einsum("2*o+k; o; k => o", [p, known((3,)), known((2,))], HERE)], HERE)
    assert str(p) == "6"


def test_attention() -> None:
    x = known((8,), batch=(4, 10), name="x")
    queries, keys, values = (parameter(name, (2, 5)) for name in ("wq", "wk", "wv"))
    joined = parameter("wo")
    q, k, v = (compose(weight, x, HERE) for weight in (queries, keys, values))
    scores = einsum("...s|hd; ...t|hd => ...|hst", [q, k], HERE)
    assert str(scores) == "4 | 2, 10, 10"
    mixed = einsum("...|hst; ...t|hd => ...s|hd", [scores, v], HERE)
    y = pointwise([compose(joined, mixed, HERE), x], HERE)
    close([queries, joined, y], HERE)
    assert [str(each) for each in (queries, joined, y)] == ["8 -> 2, 5", "2, 5 -> 8", "4, 10 | 8"]


def test_two_convolutions_with_parameters_between_them_are_determined() -> None:
    # Which axes meet in the second one depends on how many axes the parameters that are added have.
    x, window = known((10, 3), name="x"), known((2,))
    first = einsum("2*o+k, ..c..; k => o, ..c..", [pointwise([x, parameter("b")], HERE), window], HERE)
    hidden = pointwise([first, parameter("c")], HERE)
    last = einsum("o+k, c; k, c -> d => o, d", [hidden, parameter("w", (4,), (2, 3))], HERE)
    close([last], HERE)
    assert [str(each) for each in (last, first)] == ["4, 4", "5, 3"]


def test_an_axis_to_the_left_of_unknown_ones_is_found_from_its_operand() -> None:
    rows = [einsum("i... => ...i", [pointwise([known((10, 3)), parameter("b")], HERE)], HERE)]
    rows.append(einsum("o+k, c; k, => o, c", [rows[0], known((2,))], HERE))
    close([rows[1]], HERE)
    assert str(rows[1]) == "2, 10"
