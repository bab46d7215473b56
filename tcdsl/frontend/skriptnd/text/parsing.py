"""From text to `TextModule`."""

from __future__ import annotations

from typing import Any

from tcdsl.errors import DslSyntaxError
from tcdsl.frontend.skriptnd.text.compositions import read_assignment, read_quantization
from tcdsl.frontend.skriptnd.text.declarations import (
    read_assertion,
    read_declaration,
    read_formula,
    read_generic,
    read_using,
)
from tcdsl.frontend.skriptnd.text.syntax import Identifier, Operator, TextModule
from tcdsl.frontend.skriptnd.text.words import SKRIPTND_WORDS
from tcdsl.frontend.words.cursor import Words
from tcdsl.frontend.words.languages import Word

__all__ = ["MOST_CHARACTERS", "parse_module"]

MOST_CHARACTERS = 1_000_000

# Block: the operator's field, and how a line of it is read.
_BLOCKS: dict[str, tuple[str, Any]] = {
    "@dtype": ("generics", read_generic),
    "@attrib": ("attributes", lambda words: read_declaration(words, "an attribute")),
    "@input": ("inputs", lambda words: read_declaration(words, "an input")),
    "@output": ("outputs", lambda words: read_declaration(words, "an output")),
    "@constant": ("constants", lambda words: read_declaration(words, "a constant")),
    "@variable": ("variables", lambda words: read_declaration(words, "a variable")),
    "@using": ("usings", read_using),
    "@assert": ("assertions", read_assertion),
    "@lower": ("formulas", read_formula),
    "@compose": ("composition", read_assignment),
    "@update": ("updates", read_assignment),
    "@quantize": ("quantizations", read_quantization),
}


def parse_module(text: str, filename: str, line: int = 1) -> TextModule:
    """The imports, operators and graphs of a text that begins at a line. `DslSyntaxError` shows what cannot be read."""
    words = Words(text, filename, SKRIPTND_WORDS, line)
    imports: list[Identifier] = []
    operators: list[Operator] = []
    while words.next.kind != "end":
        if words.is_next("import") and operators:
            raise words.unexpected("imports stand before all operators")
        if words.accept("import"):
            imports.extend(words.separated(_imported))
            words.accept(";")  # which the document leaves out
        elif words.is_next("public", "operator", "graph"):
            operators.append(_operator(words))
        else:
            raise words.unexpected("expected `import`, `operator` or `graph`")
    names: set[str] = set()
    for each in operators:
        if each.name in names:
            raise DslSyntaxError.at(f"there are two operators `{each.name}`", each.name_span)
        names.add(each.name)
    return TextModule(tuple(imports), tuple(operators), text, filename)


def _imported(words: Words) -> Identifier:
    first = words.next
    name = words.name("a module").text
    while words.accept("."):
        name += f".{words.name('a module').text}"
    return Identifier(name, span=words.since(first))


def _operator(words: Words) -> Operator:
    first = words.next
    public = words.accept("public") is not None
    graph = words.accept("graph") is not None
    if not graph:
        words.expect("operator")
    place = words.next
    name = words.name("a graph" if graph else "an operator")
    words.expect("{")
    blocks: dict[str, tuple[Any, ...]] = {}
    places: dict[str, Word] = {}
    while not words.accept("}"):
        token = words.next
        if token.kind != "block":
            raise words.unexpected("expected a block, `@input { ... }`, or `}`")
        if token.text not in _BLOCKS:
            raise words.unknown("block", token, list(_BLOCKS))
        words.take()
        field, read = _BLOCKS[token.text]
        if field in blocks:
            raise DslSyntaxError.at(f"the block `{token.text}` stands twice", words.span(token), "join the two")
        words.expect("{")
        lines = []
        while not words.accept("}"):
            lines.append(read(words))
        blocks[field], places[token.text] = tuple(lines), token
    given: dict[str, Any] = dict(blocks)
    made = Operator(name.text, graph, public, span=words.since(first), name_span=words.span(place), **given)
    _check_form(made, places, words)
    return made


def _check_form(operator: Operator, places: dict[str, Word], words: Words) -> None:
    kind = "graph" if operator.graph else "operator"
    if "outputs" not in {_BLOCKS[each][0] for each in places} or not operator.outputs:
        raise DslSyntaxError.at(f"the {kind} `{operator.name}` has no `@output`", operator.name_span)
    if "@lower" in places and "@compose" in places:
        span = words.span(places["@compose"])
        raise DslSyntaxError.at(f"`{operator.name}` has both `@lower` and `@compose`", span, "keep one of them")
    if operator.graph and operator.composition is None:
        raise DslSyntaxError.at(f"the graph `{operator.name}` has no `@compose`", operator.name_span)
    for each in operator.variables:
        if each.default is not None:
            fact = f"the variable `{each.name}` has a value"
            raise DslSyntaxError.at(fact, each.span, "values of variables come from files, or from `graph.variables`")
    if operator.formulas is not None and len(operator.outputs) > 1:
        fact = f"`{operator.name}` has formulas for {len(operator.outputs)} outputs"
        hint = "a formula has one output: compose an operator of each"
        raise DslSyntaxError.at(fact, operator.outputs[1].span, hint)
    for each in operator.attributes:
        if each.type.optional and each.default is not None:
            hint = "leave out one of the two: null is what is not given"
            raise DslSyntaxError.at(f"the optional attribute `{each.name}` has a default", each.span, hint)
    for each in operator.constants:
        if each.default is None:
            raise DslSyntaxError.at(f"the constant `{each.name}` has no value", each.span, "write `= ...` behind it")
