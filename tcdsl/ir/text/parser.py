"""Text to programs: the inverse of `tcdsl.ir.text.printer`, whose docstring shows the notation.

A line that starts with a blank continues the one before; empty lines and lines that start with ``#`` are left out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from tcdsl.errors import TcdslError
from tcdsl.ir.accumulators import ACCUMULATORS
from tcdsl.ir.build import constant
from tcdsl.ir.domain import Domain
from tcdsl.ir.dtypes import DTYPES, compute_dtype
from tcdsl.ir.expressions import Expr, SizeValue
from tcdsl.ir.program import (
    Access,
    Assertion,
    AxisExtent,
    DerivativeRule,
    Fill,
    Keep,
    Neutral,
    Program,
    Repeat,
    Size,
    Start,
    Statement,
    Tensor,
    Unset,
)
from tcdsl.ir.text.domain_text import domain_text, domain_variables
from tcdsl.ir.text.expression_parser import ExpressionParser, syntax_fault

__all__ = ["parse_program"]

_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|[^\W\d]\w*|.', re.DOTALL)
_MODES = ("pullback", "pushforward", "adjoint")
_KEYWORDS = ("program", "input", "size", "assert", "tensor", "repeat", "update", "return", *_MODES)
_SYMBOLS: Mapping[str, str] = {row.symbol: name for name, row in ACCUMULATORS.items()}


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of the text, and where it starts."""

    text: str
    line: int
    column: int

    def cut(self, start: int, stop: int | None = None) -> _Piece:
        """The part from ``start`` to ``stop``, without the blanks around it."""
        part = self.text[start:stop]
        start += len(part) - len(part.lstrip())
        before = self.text[:start]
        rows = before.count("\n")
        column = len(before) - before.rfind("\n") - 1 if rows else self.column + start
        return _Piece(part.strip(), self.line + rows, column)

    def tokens(self) -> Iterator[tuple[int, str]]:
        """The tokens outside of brackets, with their positions; opening brackets included."""
        depth = 0
        for found in _TOKEN.finditer(self.text):
            token = found[0]
            if token in ")]}":
                depth -= 1
            if depth == 0:
                yield found.start(), token
            if token in ("(", "[", "{"):
                depth += 1

    def split(self, separator: str) -> list[_Piece]:
        """The parts between separators outside of brackets; none if there is only blank space."""
        places = [start for start, token in self.tokens() if token == separator]
        starts = [0, *(place + 1 for place in places)]
        return [self.cut(a, b) for a, b in zip(starts, [*places, None], strict=True)] if self.text.strip() else []


@dataclass
class _Draft:
    """The program as far as it has been read."""

    text: str
    explicit: frozenset[str]
    name: str | None = None
    inputs: list[Tensor] = field(default_factory=list)
    sizes: dict[str, Size] = field(default_factory=dict)
    tensors: list[Tensor] = field(default_factory=list)
    declared: dict[str, Tensor] = field(default_factory=dict)
    statements: list[Statement] = field(default_factory=list)
    outputs: tuple[str, ...] = ()
    updates: list[tuple[str, str]] = field(default_factory=list)
    assertions: list[Assertion] = field(default_factory=list)
    rules: list[DerivativeRule] = field(default_factory=list)
    repeats: list[Repeat] = field(default_factory=list)

    def fault(self, piece: _Piece, fact: str, hint: str = "") -> TcdslError:
        width = len(piece.text.split("\n")[0])
        return syntax_fault(fact, self.text, piece.line, piece.column, width, hint)

    def expr(self, piece: _Piece, dtype: str, variables: tuple[str, ...] = ()) -> Expr:
        parser = ExpressionParser(self.text, self.declared, self.sizes, variables)
        return parser.parse(piece.text, dtype, piece.line, piece.column)


def parse_program(text: str) -> Program:
    """The program that ``text`` describes; ``parse_program(format_program(p)) == p``.

    Types and names are checked as far as the notation needs them; `tcdsl.ir.verifier.verifier.verify` checks the rest.
    Raises `DslSyntaxError` with the line and a caret.
    """
    explicit = frozenset(re.findall(r"^size[ \t]+(\w+)", text, re.MULTILINE))
    draft = _Draft(text, explicit)
    for piece in _logical_lines(text):
        keyword = re.match(r"\w+", piece.text)
        rest = piece.text[keyword.end() :] if keyword else ""
        if keyword and keyword[0] in _KEYWORDS and (not rest or rest[0].isspace()):
            _LINES[keyword[0]](draft, piece.cut(keyword.end()))
        else:
            _read_statement(draft, piece)
    if draft.name is None:
        raise syntax_fault("a program starts with the line: program NAME", text, 1, 0)
    return Program(
        draft.name,
        tuple(draft.inputs),
        tuple(draft.sizes.values()),
        tuple(draft.tensors),
        tuple(draft.statements),
        draft.outputs,
        tuple(draft.updates),
        tuple(draft.assertions),
        tuple(draft.rules),
        tuple(draft.repeats),
    )


def _logical_lines(text: str) -> Iterator[_Piece]:
    start, lines = 0, list[str]()
    for number, line in enumerate(text.split("\n"), 1):
        comment = line.lstrip().startswith("#")
        if line.strip() and not comment and not ((line[0].isspace() or line[0] == "|") and lines):
            if lines:
                yield _Piece("\n".join(lines), start, 0)
            start, lines = number, [line]
        elif lines:
            lines.append("" if comment else line)
    if lines:
        yield _Piece("\n".join(lines), start, 0)


def _string(draft: _Draft, piece: _Piece) -> str:
    try:
        value = ast.literal_eval(piece.text)
    except (SyntaxError, ValueError):
        value = None
    if not isinstance(value, str):
        raise draft.fault(piece, "a text in quotes is expected here")
    return value


def _identifier(draft: _Draft, piece: _Piece) -> str:
    if not piece.text.isidentifier():
        raise draft.fault(piece, f"a name is expected here, not {piece.text!r}")
    return piece.text


def _read_name(draft: _Draft, piece: _Piece) -> None:
    if not piece.text:
        raise draft.fault(piece, "the program has no name")
    draft.name = _string(draft, piece) if piece.text[0] in "\"'" else piece.text


def _tensor(draft: _Draft, piece: _Piece, defines_sizes: bool) -> None:
    name, label, declaration = piece, "", None
    for start, token in piece.tokens():
        if token == ":" and declaration is None:
            name, declaration = piece.cut(0, start), piece.cut(start + 1)
        elif token == "as" and declaration is not None:
            label = _string(draft, piece.cut(start + 2))
            declaration = piece.cut(piece.text.index(":") + 1, start)
            break
    if declaration is None:
        raise draft.fault(piece, "a tensor is declared as NAME: DTYPE[EXTENT, ...]")
    found = re.fullmatch(r"(\w+)\s*(?:\[(.*)\])?", declaration.text, re.DOTALL)
    if found is None or found[1] not in DTYPES:
        raise draft.fault(declaration, f"{declaration.text!r} is not a type and a shape", f"types: {', '.join(DTYPES)}")
    shape = []
    extents = declaration.cut(found.start(2), found.end(2)).split(",") if found[2] else []
    for axis, extent in enumerate(extents):
        size = extent.text
        if defines_sizes and size.isidentifier() and size not in draft.sizes and size not in draft.explicit:
            draft.sizes[size] = Size(size, AxisExtent(name.text, axis))
        named = size in draft.sizes or size in draft.explicit
        shape.append(SizeValue(size) if named else draft.expr(extent, "int64"))
    tensor = Tensor(_identifier(draft, name), found[1], tuple(shape), label)
    draft.declared[tensor.name] = tensor
    (draft.inputs if defines_sizes else draft.tensors).append(tensor)


def _read_size(draft: _Draft, piece: _Piece) -> None:
    name, equals, _ = piece.text.partition("=")
    if not equals:
        raise draft.fault(piece, "a size is defined as NAME = EXPRESSION or NAME = TENSOR.shape[AXIS]")
    name = _identifier(draft, piece.cut(0, len(name)))
    value = piece.cut(piece.text.index("=") + 1)
    axis = re.fullmatch(r"(\w+)\.shape\[(\d+)\]", value.text)
    source = AxisExtent(axis[1], int(axis[2])) if axis else draft.expr(value, "int64")
    draft.sizes[name] = Size(name, source)


def _read_assertion(draft: _Draft, piece: _Piece) -> None:
    parts = piece.split(",")
    if len(parts) > 2:
        raise draft.fault(piece, 'an assertion is written assert CONDITION or assert CONDITION, "message"')
    message = _string(draft, parts[1]) if len(parts) == 2 else ""
    draft.assertions.append(Assertion(draft.expr(parts[0], "bool"), message))


def _read_update(draft: _Draft, piece: _Piece) -> None:
    parts = piece.split("=")
    if len(parts) != 2:
        raise draft.fault(piece, "an update is written update INPUT = TENSOR")
    draft.updates.append((_identifier(draft, parts[0]), _identifier(draft, parts[1])))


def _read_return(draft: _Draft, piece: _Piece) -> None:
    draft.outputs = tuple(_identifier(draft, part) for part in piece.split(","))


def _read_rule(draft: _Draft, piece: _Piece, mode: str) -> None:
    head, *body = piece.text.split("\n")
    found = re.fullmatch(
        r"([\w\s,]+?)\s+by\s+([\w\s,]+?)(?:\s+with\s+([\w\s,]+?))?(?:\s+like\s+([\w\s,]+))?",
        head.removesuffix(" beside"),
    )
    if found is None or not all(line.startswith("|") for line in body if line.strip()):
        raise draft.fault(
            piece, f"a rule is written {mode} OUTPUT, ... by ARGUMENT, ... and lines of its program after |"
        )
    outputs, arguments, constants, extents = (tuple(re.findall(r"\w+", part or "")) for part in found.groups())
    beside = head.endswith(" beside")
    program = _inner_program(piece, body)
    draft.rules.append(DerivativeRule(mode, outputs, arguments, constants, extents, program, beside=beside))


def _read_repeat(draft: _Draft, piece: _Piece) -> None:
    head, *body = piece.text.split("\n")
    found = re.fullmatch(
        r"([\w\s,]+?)\s*=(?:(.*)\.\.)?(.*)\btimes(\s+checkpointed(\s+\d+)?)?(\s+on host)?(?:\s+with\s+([\w\s,]+))?",
        head,
    )
    if found is None or not all(line.startswith("|") for line in body if line.strip()):
        raise draft.fault(
            piece, "a loop is written repeat RESULT, ... = COUNT times with TENSOR, ... and lines of its body after |"
        )
    results, inputs = (tuple(re.findall(r"\w+", part or "")) for part in (found[1], found[7]))
    begin, count = (
        constant(0, "int64") if found[k] is None else draft.expr(piece.cut(found.start(k), found.end(k)), "int64")
        for k in (2, 3)
    )
    repeat = Repeat(results, count, _inner_program(piece, body), inputs, begin=begin, host=found[6] is not None)
    draft.repeats.append(replace(repeat, checkpointed=found[4] is not None, checkpoints=int(found[5] or 0)))


def _inner_program(piece: _Piece, lines: list[str]) -> Program:
    # Blank lines in place of those before it, so that a fault in the inner program has its line.
    return parse_program("\n" * piece.line + "\n".join(line[1:].removeprefix(" ") for line in lines))


_LINES: Mapping[str, Callable[[_Draft, _Piece], None]] = {
    **{mode: partial(_read_rule, mode=mode) for mode in _MODES},
    "program": _read_name,
    "input": lambda draft, piece: _tensor(draft, piece, defines_sizes=True),
    "tensor": lambda draft, piece: _tensor(draft, piece, defines_sizes=False),
    "size": _read_size,
    "repeat": _read_repeat,
    "assert": _read_assertion,
    "update": _read_update,
    "return": _read_return,
}


def _clauses(draft: _Draft, piece: _Piece) -> dict[str, _Piece]:
    # The parts of a statement by the keyword before them; "" is the statement proper. The keywords are Python's, so
    # they are no names. `if` is one only after `for`, and once, because expressions contain conditionals.
    starts = {"": (0, 0)}
    for start, token in piece.tokens():
        if token in ("from", "for", "with", "as") or (token == "if" and "for" in starts and "if" not in starts):
            if token in starts:
                raise draft.fault(piece.cut(start, start + len(token)), f"a second clause with {token}")
            starts[token] = (start, start + len(token))
    stops = [start for start, _ in starts.values()][1:]
    return {key: piece.cut(begin, stop) for (key, (_, begin)), stop in zip(starts.items(), [*stops, None], strict=True)}


def _read_statement(draft: _Draft, piece: _Piece) -> None:
    clauses = _clauses(draft, piece)
    whole = clauses[""]
    found = re.match(r"(\w+)\s*\[", whole.text)
    places = [start for start, token in whole.tokens() if token == "["]
    close = _closing(whole, places[0]) if found and places else None
    if found is None or close is None:
        raise draft.fault(whole, "a statement is written TENSOR[INDEX, ...] += VALUE  for [VARIABLE, ...]: CONSTRAINTS")
    if found[1] not in draft.declared:
        raise draft.fault(whole.cut(0, found.end(1)), f"there is no tensor named {found[1]}")
    if "for" not in clauses:
        raise draft.fault(whole, "the statement has no domain", "add  for [VARIABLE, ...]: CONSTRAINTS")
    operator = whole.cut(close + 1)
    symbol = max((symbol for symbol in _SYMBOLS if operator.text.startswith(symbol)), key=len, default=None)
    if symbol is None:
        raise draft.fault(operator, f"an accumulator is expected here, one of {' '.join(_SYMBOLS)}")
    domain = _domain(draft, clauses["for"])
    variables = domain.variables
    dtype = compute_dtype(draft.declared[found[1]].dtype)
    inside = whole.cut(found.end(), close)
    indices = () if inside.text == "()" else tuple(draft.expr(part, "int64", variables) for part in inside.split(","))
    options = _options(draft, clauses["with"]) if "with" in clauses else {}
    draft.statements.append(
        Statement(
            Access(found[1], indices),
            _SYMBOLS[symbol],
            _start(draft, clauses["from"], dtype) if "from" in clauses else Neutral(),
            draft.expr(operator.cut(len(symbol)), dtype, variables),
            domain,
            draft.expr(clauses["if"], "bool", variables) if "if" in clauses else None,
            oob=options.get("oob", "check"),
            unique="unique" in options,
            label=_string(draft, clauses["as"]) if "as" in clauses else "",
        )
    )


def _closing(piece: _Piece, opening: int) -> int | None:
    return next((start for start, token in piece.tokens() if token == "]" and start > opening), None)


def _start(draft: _Draft, piece: _Piece, dtype: str) -> Start:
    if re.fullmatch(r"unset\s*\(\s*\)", piece.text):
        return Unset()
    filled = re.fullmatch(r"fill\s*\((.*)\)", piece.text, re.DOTALL)
    if filled:
        return Fill(draft.expr(piece.cut(filled.start(1), filled.end(1)), dtype))
    return Keep(_identifier(draft, piece))


def _options(draft: _Draft, piece: _Piece) -> dict[str, str]:
    options = {}
    for part in piece.split(","):
        found = re.fullmatch(r"unique|oob\s+(check|skip|clamp)", part.text)
        if found is None:
            raise draft.fault(part, "the options are: unique, oob check, oob skip, oob clamp")
        options[part.text.split()[0]] = found[1] or ""
    return options


def _domain(draft: _Draft, piece: _Piece) -> Domain:
    body = re.sub(r"\s*\n\s*", " ", piece.text)
    full = re.fullmatch(r"\(([^()]*)\)\s+in\s+(.*)", body)
    if full:
        names = tuple(part.strip() for part in full[1].split(",")) if full[1].strip() else ()
        return Domain(names, full[2])
    variables = domain_variables(body)
    if variables is None:
        raise draft.fault(piece, "a domain is written [VARIABLE, ...]: CONSTRAINTS")
    return Domain(variables, domain_text(body, draft.sizes))
