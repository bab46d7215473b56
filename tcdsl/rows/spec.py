"""Specs: generalized einsum notation, taken apart.

::

    parse_spec("b|i->o; b|h->i => b|h->o")

The grammar, with spaces allowed anywhere between the symbols::

    spec   = shape (";" shape)* "=>" shape
    shape  = [row "|"] [row "->"] row                   batch | input -> output
    row    = axis* [variable axis*]
    variable = "..." | ".." name ".."                   "..." is named by the row that it stands in
    axis   = "_" | ["-"] term (("+" | "-") term)*
    term   = number | name | number "*" name | name "*" number

If there is a comma anywhere in a spec, names have any length and commas stand between the axes of a row. Otherwise each
letter is a name of its own, and a run of digits is one number. An axis that is a number is a position.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

__all__ = [
    "ROWS",
    "AxisSpec",
    "RowSpec",
    "ShapeSpec",
    "Spec",
    "SpecError",
    "SpecShapeError",
    "SpecSyntaxError",
    "parse_spec",
]

ROWS = ("batch", "input", "output")
"""The rows, in the order in which a spec writes them. (Tensors are stored in the order batch, output, input.)"""

_TOKEN = re.compile(r"\s*(=>|->|\.\.\.|\.\.(?P<variable>[^\W\d]\w*)\.\.|\d+|[^\W\d]\w*|\Z|.)", re.DOTALL)
_LARGEST = 2**31
_FORM = "write `operand; operand => result`, as in `ij;jk=>ik`"
_SHAPE = "a shape is `batch | input -> output`"
_AXIS = "an axis is a name, `_`, a position, or an affine form such as `2*o + k`"


class SpecError(ValueError):
    """A fault of a spec: what is wrong with ``text[start:stop]``.

    ``fact`` says what is wrong and ``hint`` what to write instead; both are ready for a `Diagnostic`.
    """

    def __init__(self, fact: str, text: str, start: int, stop: int, hint: str = "") -> None:
        super().__init__(fact, text, start, stop, hint)
        self.fact = fact
        self.text = text
        self.start = start
        self.stop = max(stop, start + 1)
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.fact}\n    {self.text}\n    {' ' * self.start}{'^' * (self.stop - self.start)}"


class SpecSyntaxError(SpecError):
    """The text is no spec."""


class SpecShapeError(SpecError):
    """The spec does not fit the shapes of what it relates."""


@dataclass(frozen=True, slots=True)
class AxisSpec:
    """``offset`` plus ``coefficient * name`` for each of ``terms``: a name, a position, or an affine form.

    ``placeholder`` is ``_``: some axis, which the spec says nothing about. ``stretches`` marks an axis of a row
    variable of known length (`tcdsl.rows.alignment`), which is read at 0 if its extent is 1 and others have more.
    ``place`` is the range in the text.
    """

    terms: tuple[tuple[int, str], ...] = ()
    offset: int = 0
    placeholder: bool = False
    stretches: bool = False
    place: tuple[int, int] = field(default=(0, 0), compare=False)

    @property
    def name(self) -> str | None:
        """The name, if the axis is nothing but a name."""
        return self.terms[0][1] if len(self.terms) == 1 and self.terms[0][0] == 1 and not self.offset else None

    @property
    def position(self) -> int | None:
        """The position, if the axis is fixed."""
        return None if self.terms or self.placeholder else self.offset


@dataclass(frozen=True, slots=True)
class RowSpec:
    """``leading`` axes, a row variable, ``trailing`` axes; without ``variable`` all axes are trailing."""

    leading: tuple[AxisSpec, ...] = ()
    variable: str | None = None
    trailing: tuple[AxisSpec, ...] = ()
    place: tuple[int, int] = field(default=(0, 0), compare=False)

    @property
    def axes(self) -> tuple[AxisSpec, ...]:
        """The axes that are written out."""
        return (*self.leading, *self.trailing)


@dataclass(frozen=True, slots=True)
class ShapeSpec:
    """The rows of one operand or of the result; ``None`` for a row that is left out."""

    batch: RowSpec | None
    input: RowSpec | None
    output: RowSpec
    place: tuple[int, int] = field(default=(0, 0), compare=False)

    @property
    def rows(self) -> tuple[RowSpec | None, RowSpec | None, RowSpec]:
        """In the order of `ROWS`."""
        return self.batch, self.input, self.output


@dataclass(frozen=True, slots=True)
class Spec:
    """A parsed spec; ``text`` is what the user wrote."""

    operands: tuple[ShapeSpec, ...]
    result: ShapeSpec
    text: str = field(compare=False)


def parse_spec(text: str) -> Spec:
    """The spec that ``text`` describes. `SpecSyntaxError` with the place of what is wrong."""
    return _Parser(text).spec()


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    start: int
    stop: int
    variable: str | None = None

    @property
    def is_number(self) -> bool:
        return self.text.isdecimal()

    @property
    def is_name(self) -> bool:
        return self.text != "_" and self.text[:1].isidentifier()

    @property
    def row_variable(self) -> str | None:
        return "..." if self.text == "..." else self.variable

    @property
    def ends_row(self) -> bool:
        return self.text in ("|", "->", ";", "=>", "")


def _tokens(text: str, long_names: bool) -> Iterator[_Token]:
    """The symbols of ``text``; the last one is empty."""
    position = 0
    while found := _TOKEN.match(text, position):
        position = found.end()
        start, stop = found.span(1)
        if not found[1][:1].isidentifier() or long_names:
            yield _Token(found[1], start, stop, found["variable"])
        else:
            for part in re.finditer(r"\d+|.", found[1]):
                yield _Token(part[0], start + part.start(), start + part.end())
        if not found[1]:
            return


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._commas = "," in text
        self._tokens = list(_tokens(text, self._commas))
        self._next = 0

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        token = self._token
        # The last token, which is empty, is never passed: whatever asks for more finds the end again.
        self._next = min(self._next + 1, len(self._tokens) - 1)
        return token

    def _accept(self, text: str) -> bool:
        if self._token.text != text:
            return False
        self._take()
        return True

    def _fault(self, fact: str, token: _Token, hint: str = "") -> SpecSyntaxError:
        return SpecSyntaxError(fact, self._text, token.start, token.stop, hint)

    def spec(self) -> Spec:
        operands = [self._shape()]
        while self._accept(";"):
            operands.append(self._shape())
        if not self._accept("=>"):
            raise self._fault("the spec has no `=>`", self._token, _FORM)
        result = self._shape()
        if self._token.text:
            raise self._fault("there is one result", self._token, _FORM)
        return Spec(tuple(operands), result, self._text)

    def _shape(self) -> ShapeSpec:
        start = self._token.start
        batch = inputs = None
        row = self._row()
        if self._accept("|"):
            batch, row = row, self._row()
        if self._accept("->"):
            inputs, row = row, self._row()
        if self._token.text == "|":
            fact = "the batch row comes first" if batch is None else "there is one batch row"
            raise self._fault(fact, self._token, _SHAPE)
        if self._token.text == "->":
            raise self._fault("there is one input row", self._token, _SHAPE)
        place = (start, self._previous_stop(start))
        return ShapeSpec(
            None if batch is None else _named(batch, "batch"),
            None if inputs is None else _named(inputs, "input"),
            _named(row, "output"),
            place,
        )

    def _row(self) -> RowSpec:
        start = self._token.start
        leading: list[AxisSpec] = []
        trailing: list[AxisSpec] = []
        variable: str | None = None
        while not self._token.ends_row:
            token = self._token
            if token.row_variable is None:
                trailing.append(self._axis())
            elif variable is None:
                variable = self._take().row_variable
                leading, trailing = trailing, []
            else:
                raise self._fault("a row has one row variable", token, "write the other axes out")
            if not self._commas or self._accept(",") or self._token.ends_row:
                continue
            if token.row_variable is None and self._token.row_variable is None:
                fact = f"a comma is missing before `{self._token.text}`"
                raise self._fault(fact, self._token, "a spec with a comma has commas between all axes")
        return RowSpec(tuple(leading), variable, tuple(trailing), (start, self._previous_stop(start)))

    def _axis(self) -> AxisSpec:
        first = self._token
        if self._accept("_"):
            if self._token.text in ("+", "-", "*"):
                raise self._fault("`_` stands alone", first, _AXIS)
            return AxisSpec(placeholder=True, place=(first.start, first.stop))
        terms: dict[str, int] = {}
        offset = 0
        sign = -1 if self._accept("-") else 1
        while True:
            coefficient, name = self._term()
            if name is None:
                offset += sign * coefficient
            else:
                terms[name] = terms.get(name, 0) + sign * coefficient
            if self._token.text not in ("+", "-"):
                break
            sign = 1 if self._take().text == "+" else -1
        place = (first.start, self._previous_stop(first.start))
        for name, coefficient in terms.items():
            if coefficient == 0:
                raise SpecSyntaxError(
                    f"the axis does not depend on `{name}`", self._text, *place, f"leave `{name}` out"
                )
        if not terms and offset < 0:
            raise SpecSyntaxError("positions count from 0", self._text, *place, _AXIS)
        return AxisSpec(tuple((coefficient, name) for name, coefficient in terms.items()), offset, place=place)

    def _term(self) -> tuple[int, str | None]:
        token = self._take()
        if token.is_number:
            return (self._number(token), self._name()) if self._accept("*") else (self._number(token), None)
        if not token.is_name:
            what = f"an axis is expected here, not `{token.text}`" if token.text else "an axis is missing here"
            raise self._fault(what, token, _AXIS)
        if not self._accept("*"):
            return 1, token.text
        factor = self._take()
        if not factor.is_number:
            raise self._fault("a coefficient is an integer", factor, f"write `2*{token.text}`")
        return self._number(factor), token.text

    def _number(self, token: _Token) -> int:
        # Lengths first: int() refuses thousands of digits.
        if len(token.text) > len(str(_LARGEST)) or int(token.text) >= _LARGEST:
            raise self._fault("the number is too large", token, f"numbers in specs are less than {_LARGEST}")
        return int(token.text)

    def _name(self) -> str:
        token = self._take()
        if not token.is_name:
            raise self._fault("a name is missing after `*`", token, "write `2*o + k`")
        return token.text

    def _previous_stop(self, start: int) -> int:
        """Where the last symbol taken ends; ``start`` if none was taken since."""
        return max(start, self._tokens[self._next - 1].stop) if self._next else start


def _named(row: RowSpec, name: str) -> RowSpec:
    """``...`` has the name of the row that it stands in."""
    return RowSpec(row.leading, name, row.trailing, row.place) if row.variable == "..." else row
