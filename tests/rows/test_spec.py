"""Specs are taken apart into rows of axes, and what is no spec is said to be none, at its place."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import example, given

from tcdsl.rows.spec import AxisSpec, RowSpec, ShapeSpec, Spec, SpecSyntaxError, parse_spec


def axis(name: str) -> AxisSpec:
    return AxisSpec(((1, name),))


def row(*names: str) -> RowSpec:
    return RowSpec((), None, tuple(axis(name) for name in names))


def output(*names: str) -> ShapeSpec:
    return ShapeSpec(None, None, row(*names))


class TestModes:
    def test_each_letter_is_an_axis(self) -> None:
        assert parse_spec("ij;jk=>ik") == Spec((output("i", "j"), output("j", "k")), output("i", "k"), "")

    def test_names_have_any_length_if_there_is_a_comma(self) -> None:
        spec = parse_spec("time, channel => channel, time")
        assert spec == Spec((output("time", "channel"),), output("channel", "time"), "")

    def test_one_comma_makes_all_names_long(self) -> None:
        assert parse_spec("a, b; width => width") == Spec((output("a", "b"), output("width")), output("width"), "")

    def test_a_trailing_comma_makes_a_single_name_long(self) -> None:
        assert parse_spec("width, => width") == Spec((output("width"),), output("width"), "")

    def test_underscores_are_placeholders_among_letters_and_parts_of_long_names(self) -> None:
        assert parse_spec("_i => i").operands[0].output.axes == (AxisSpec(placeholder=True), axis("i"))
        assert parse_spec("_, hid_dim => hid_dim").operands[0].output.axes == (
            AxisSpec(placeholder=True),
            axis("hid_dim"),
        )

    def test_spaces_and_lines_do_not_matter(self) -> None:
        assert parse_spec(" i\nj ;jk =>  ik\n") == parse_spec("ij;jk=>ik")
        assert parse_spec("2 * o + k; k => o") == parse_spec("2*o+k;k=>o")


class TestRows:
    def test_batch_input_and_output(self) -> None:
        shape = parse_spec("b|i->o => o|b->i")
        assert shape.operands == (ShapeSpec(row("b"), row("i"), row("o")),)
        assert shape.result == ShapeSpec(row("o"), row("b"), row("i"))

    def test_rows_are_left_out_from_the_left(self) -> None:
        assert parse_spec("i->o => o").operands == (ShapeSpec(None, row("i"), row("o")),)
        assert parse_spec("b|o => o").operands == (ShapeSpec(row("b"), None, row("o")),)

    def test_a_row_may_be_empty(self) -> None:
        assert parse_spec("b|-> => ").operands == (ShapeSpec(row("b"), row(), row()),)
        assert parse_spec("=>") == Spec((output(),), output(), "")

    def test_an_ellipsis_is_named_by_its_row(self) -> None:
        shape = parse_spec("...|...->... => ").operands[0]
        assert [each.variable for each in shape.rows if each is not None] == ["batch", "input", "output"]
        assert shape == parse_spec("..batch..|..input..->..output.. => ").operands[0]

    def test_axes_stand_on_both_sides_of_a_row_variable(self) -> None:
        assert parse_spec("ab..v..c => ").operands[0].output == RowSpec((axis("a"), axis("b")), "v", (axis("c"),))

    def test_commas_beside_row_variables_may_be_left_out(self) -> None:
        expected = RowSpec((axis("a"),), "output", (axis("b"),))
        for text in ("a, ..., b", "a ... b,", "a, ... b", "a ..., b"):
            assert parse_spec(f"{text} => a, b").operands[0].output == expected


class TestAxes:
    def test_digits_are_one_position(self) -> None:
        assert [each.position for each in parse_spec("12i3 => i").operands[0].output.axes] == [12, None, 3]

    def test_names(self) -> None:
        assert [each.name for each in parse_spec("i2_θ => i").operands[0].output.axes] == [
            "i",
            None,
            None,
            "θ",
        ]

    @pytest.mark.parametrize(
        ("text", "terms", "offset"),
        [
            ("2*o+k", ((2, "o"), (1, "k")), 0),
            ("o*2+k", ((2, "o"), (1, "k")), 0),
            ("3-i", ((-1, "i"),), 3),
            ("-i+3", ((-1, "i"),), 3),
            ("i+i", ((2, "i"),), 0),
            ("i-1+4", ((1, "i"),), 3),
            ("1+2", (), 3),
        ],
    )
    def test_affine_axes(self, text: str, terms: tuple[tuple[int, str], ...], offset: int) -> None:
        assert parse_spec(f"{text} => ").operands[0].output.axes == (AxisSpec(terms, offset),)


@pytest.mark.parametrize(
    ("text", "fact", "marked"),
    [
        ("ij", "the spec has no `=>`", ""),
        ("", "the spec has no `=>`", ""),
        ("ij=>i=>j", "there is one result", "=>"),
        ("i=>i;j", "there is one result", ";"),
        ("i|j|k=>", "there is one batch row", "|"),
        ("i->j|k=>", "the batch row comes first", "|"),
        ("i->j->k=>", "there is one input row", "->"),
        ("...i... =>", "a row has one row variable", "..."),
        ("a b, c => c", "a comma is missing before `b`", "b"),
        ("a,,b => a", "an axis is expected here, not `,`", ","),
        ("a% => a", "an axis is expected here, not `%`", "%"),
        ("..v.i => i", "an axis is expected here, not `.`", "."),
        ("i+ => i", "an axis is expected here, not `=>`", "=>"),
        ("i=>i+", "an axis is missing here", ""),
        ("2* => i", "a name is missing after `*`", "=>"),
        ("i*j => i", "a coefficient is an integer", "j"),
        ("1-3 => ", "positions count from 0", "1-3"),
        ("a;i-i => ", "the axis does not depend on `i`", "i-i"),
        ("0*i => i", "the axis does not depend on `i`", "0*i"),
        ("_+1 => ", "`_` stands alone", "_"),
        ("i+_ => i", "an axis is expected here, not `_`", "_"),
        ("i => 2147483648", "the number is too large", "2147483648"),
        ("i => " + "9" * 5000, "the number is too large", "9" * 5000),
    ],
)
def test_faults_have_a_place(text: str, fact: str, marked: str) -> None:
    with pytest.raises(SpecSyntaxError) as caught:
        parse_spec(text)
    assert caught.value.fact == fact
    assert text[caught.value.start : caught.value.stop] == marked
    assert str(caught.value).splitlines()[2].strip() == "^" * max(1, len(marked))


def test_places_are_those_of_the_text() -> None:
    text = "ab | 2*o + k -> ..v..c ; k => o"
    shape = parse_spec(text).operands[0]
    assert shape.batch is not None
    assert shape.input is not None
    assert text[slice(*shape.place)] == "ab | 2*o + k -> ..v..c"
    assert text[slice(*shape.batch.place)] == "ab"
    assert text[slice(*shape.input.axes[0].place)] == "2*o + k"
    assert text[slice(*shape.output.axes[0].place)] == "c"


@given(st.text("ijk_02*+-.|;=>, v\n²é", max_size=30) | st.text(max_size=10))
@example("..")
@example("=>" * 40)
def test_any_text_is_a_spec_or_has_a_fault_with_a_place(text: str) -> None:
    fault = None
    try:
        spec = parse_spec(text)
    except SpecSyntaxError as error:
        fault = error
    if fault is None:
        assert spec.operands
    else:
        assert fault.fact
        assert 0 <= fault.start < fault.stop <= len(text) + 1


NUMBERS = st.integers(0, 99)
NAMES = st.sampled_from(["i", "j", "k", "o"])
LONG_NAMES = st.sampled_from(["batch", "hid_dim", "o", "x1"])


@st.composite
def written_axes(draw: st.DrawFn, names: st.SearchStrategy[str]) -> tuple[str, AxisSpec]:
    kind = draw(st.sampled_from(["name", "placeholder", "position", "affine"]))
    if kind == "name":
        return (name := draw(names)), axis(name)
    if kind == "placeholder":
        return "_", AxisSpec(placeholder=True)
    if kind == "position":
        return str(number := draw(NUMBERS)), AxisSpec((), number)
    first, second = draw(st.lists(names, min_size=2, max_size=2, unique=True))
    coefficient, offset = draw(st.integers(1, 9)), draw(st.integers(-9, 9))
    sign = "-" if offset < 0 else "+"
    return f"{coefficient}*{first} - {second} {sign} {abs(offset)}", AxisSpec(
        ((coefficient, first), (-1, second)), offset
    )


@st.composite
def written_rows(draw: st.DrawFn, names: st.SearchStrategy[str], separator: str) -> tuple[str, RowSpec]:
    # A space between the axes keeps two positions apart.
    def axes() -> list[tuple[str, AxisSpec]]:
        return draw(st.lists(written_axes(names), max_size=3))

    leading, trailing = axes(), axes()
    variable = draw(st.sampled_from([None, "v", "context"]))
    if variable is None:
        leading = []
    texts = [text for text, _ in leading] + ([f"..{variable}.."] if variable else []) + [text for text, _ in trailing]
    spec = RowSpec(tuple(each for _, each in leading), variable, tuple(each for _, each in trailing))
    return separator.join(texts), spec


@st.composite
def written_shapes(draw: st.DrawFn, names: st.SearchStrategy[str], separator: str) -> tuple[str, ShapeSpec]:
    rows = written_rows(names, separator)
    text, out = draw(rows)
    batch = inputs = None
    if draw(st.booleans()):
        before, inputs = draw(rows)
        text = f"{before}->{text}"
    if draw(st.booleans()):
        before, batch = draw(rows)
        text = f"{before}|{text}"
    return text, ShapeSpec(batch, inputs, out)


@pytest.mark.parametrize(("names", "separator"), [(NAMES, " "), (LONG_NAMES, ", ")], ids=["letters", "long names"])
def test_what_is_written_is_what_is_read(names: st.SearchStrategy[str], separator: str) -> None:
    @given(st.lists(written_shapes(names, separator), min_size=2, max_size=4))
    def check(shapes: list[tuple[str, ShapeSpec]]) -> None:
        texts = [text for text, _ in shapes]
        text = ";".join(texts[:-1]) + "=>" + texts[-1]
        if separator == ", " and "," not in text:
            text += ","
            if texts[-1] == "" or texts[-1][-1] in "|>":
                return
        specs = [spec for _, spec in shapes]
        assert parse_spec(text) == Spec(tuple(specs[:-1]), specs[-1], "")

    check()
