"""Assignments of `@compose` and `@update`: invocations, blocks, branches and loops."""

from __future__ import annotations

from tcdsl.errors import DslSyntaxError
from tcdsl.frontend.skriptnd.text import syntax
from tcdsl.frontend.skriptnd.text.declarations import read_identifier, read_target, read_type, read_type_name
from tcdsl.frontend.skriptnd.text.expressions import read_expression
from tcdsl.frontend.skriptnd.text.words import KEYWORDS
from tcdsl.frontend.words.cursor import MOST_NESTED, Words

__all__ = ["read_assignment", "read_quantization"]

_LOOPS = ("with", "for", "while", "do", "unroll")


def read_assignment(words: Words) -> syntax.Assignment:
    """``a, [b, c..(k)] = operation;``."""
    first = words.next
    targets = words.separated(_target)
    words.expect("=", "behind the results")
    names = (name for target in targets for name in target.names)
    operation = _operation(words, next(names, "round"))
    span = words.since(first)
    words.expect(";")
    return syntax.Assignment(targets, operation, span=span)


def _target(words: Words) -> syntax.Target:
    found = read_target(words)
    for each in (found, *(found.items or ())):
        if each.pack is not None and each.pack.length is None:
            written = each.name or f"({', '.join(each.names)})"
            raise DslSyntaxError.at(f"the pack `{written}` has no length", each.span, f"write it: `{written}..(n)`")
    return found


def _operation(words: Words, result: str) -> syntax.Operation:
    with words:
        if words.is_next("if"):
            return _branch(words)
        return _loop(words, result) if words.is_next(*_LOOPS) else _callable(words)


def _callable(words: Words) -> syntax.Operation:
    # An invocation or a block, either with a label, or a value.
    label = ""
    if words.next.kind == "name" and words.ahead(1).text == ":" and words.next.text not in KEYWORDS:
        label = words.take().text
        words.take()
    if words.is_next("{"):
        return _block(words, label)
    if _is_invocation(words):
        return _invocation(words, label)
    if label:
        raise words.unexpected("expected an operator or a block behind a label")
    return read_expression(words)


def _is_invocation(words: Words) -> bool:
    if words.next.kind != "name" or words.next.text in KEYWORDS:
        return False
    ahead = 1
    while words.ahead(ahead).text == "." and words.ahead(ahead + 1).kind == "name":
        ahead += 2
    if words.ahead(ahead).text == "<":
        # `op<real>(x)`; `x < y` is a value.
        ahead += 1
        while words.ahead(ahead).kind == "name" and words.ahead(ahead + 1).text == ",":
            ahead += 2
        if words.ahead(ahead).kind != "name" or words.ahead(ahead + 1).text != ">":
            return False
        ahead += 2
    return words.ahead(ahead).text in ("(", "{") and words.ahead(ahead).kind == "operator"


def _qualified(words: Words, of: str) -> str:
    name = words.name(of).text
    while words.accept("."):
        # Names of operators and variables may be words of the language, as in `math.is`.
        token = words.take()
        if token.kind not in ("name", "integer"):
            raise words.unexpected(f"expected the name of {of}")
        name += f".{token.text}"
    return name


def _attributes(words: Words) -> tuple[syntax.Named, ...]:
    found = words.several(_attribute, "}")
    seen: set[str] = set()
    for each in found:
        if each.name in seen:
            raise DslSyntaxError.at(f"the attribute `{each.name}` is given twice", each.span)
        seen.add(each.name)
    return found


def _attribute(words: Words) -> syntax.Named:
    name = words.name("an attribute")
    if not words.accept("=", ":"):
        raise words.unexpected("expected `=`")
    return syntax.Named(name.text, read_expression(words), span=words.since(name))


def _invocation(
    words: Words, label: str, arguments: tuple[syntax.Expression | None, ...] | None = None
) -> syntax.Invocation:
    first = words.next
    name = _qualified(words, "an operator")
    place = words.since(first)
    types = words.several(read_type_name, ">") if words.accept("<") else ()
    attributes = _attributes(words) if words.accept("{") else ()
    if arguments is None:
        words.expect("(", "behind the operator")
        arguments = words.several(_argument, ")")
    return syntax.Invocation(name, label, types, attributes, arguments, span=words.since(first), name_span=place)


def _argument(words: Words) -> syntax.Expression | None:
    if words.accept("~"):
        return None
    value = read_expression(words)
    if words.next.text in (".", "(", "{"):
        raise words.unexpected("an argument is a value: give the result of an operator a name, and pass the name")
    return value


def _block(words: Words, label: str) -> syntax.Block:
    first = words.expect("{")
    assignments: list[syntax.Assignment] = []
    results: tuple[syntax.Expression, ...] | None = None
    while not words.accept("}"):
        if results is not None:
            raise words.unexpected("`yield` is the last statement of a block")
        if words.accept("yield"):
            results = words.separated(read_expression)
            words.expect(";")
        else:
            assignments.append(read_assignment(words))
    if results is None:
        raise DslSyntaxError.at("a block that yields nothing", words.since(first), "end it with `yield x;`")
    return syntax.Block(label, tuple(assignments), results, span=words.since(first))


def _branch(words: Words) -> syntax.Branch:
    first, arms = words.next, list[tuple[syntax.Operation, syntax.Operation]]()
    while words.accept("elif" if arms else "if"):
        condition = _callable(words)
        words.expect("then", "behind the condition")
        arms.append((condition, _callable(words)))
        if len(arms) > MOST_NESTED:
            hint = "choose between operators that choose"
            raise DslSyntaxError.at(f"an `if` of more than {MOST_NESTED} conditions", words.since(first), hint)
    if not words.accept("else"):
        raise words.unexpected("expected `else`: an `if` has a value in any case")
    return syntax.Branch(tuple(arms), _callable(words), span=words.since(first))


def _loop(words: Words, result: str) -> syntax.Loop:
    first = words.next
    carried = words.separated(_carried) if words.accept("with") else ()
    scanned = words.separated(_scanned) if words.accept("for") else ()
    tested_first = words.accept("while") is not None
    condition = _callable(words) if tested_first else None
    if not words.is_next("do", "unroll"):
        raise words.unexpected("expected `do` or `unroll`")
    unrolled = words.take().text == "unroll"
    index = count = None
    if words.accept(".."):
        words.expect("(")
        if words.ahead(1).text == "->":
            index = read_identifier(words, "the number of the round")
            words.take()
        if not words.accept(")"):
            count = read_expression(words)
            words.expect(")")
    body = _callable(words)
    if words.is_next("while") and condition is not None:
        raise words.unexpected("a loop has one condition")
    if words.accept("while"):
        condition = _callable(words)
    span = words.since(first)
    if condition is None and not scanned and count is None:
        hint = "give it a count, `do..(n)`, a pack, `for x : xs`, or a condition, `while c`"
        raise DslSyntaxError.at("a loop that does not end", span, hint)
    return syntax.Loop(result, carried, scanned, condition, tested_first, unrolled, index, count, body, span=span)


def _carried(words: Words) -> syntax.Declaration:
    name = words.name("what a loop carries")
    given = read_type(words) if words.accept(":") else syntax.TypeNode("", span=words.span(name))
    words.expect("=", "behind what a loop carries")
    return syntax.Declaration(name.text, given, read_expression(words), (), span=words.since(name))


def _scanned(words: Words) -> tuple[syntax.Identifier, syntax.Expression]:
    name = read_identifier(words, "an item of a pack")
    words.expect(":")
    return name, read_expression(words)


def read_quantization(words: Words) -> syntax.Quantization:
    """``conv1.filter: quant.min_max_linear_quantize{bits=8};``."""
    first = words.next
    tensor = _qualified(words, "a tensor")
    words.expect(":")
    call = _invocation(words, "", (syntax.Identifier(tensor, span=words.since(first)),))
    words.expect(";")
    return syntax.Quantization(tensor, call, span=words.since(first))
