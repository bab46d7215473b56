"""What messages call sizes whose names are made up: as the user has written them.

::

    offset_n            n               the integer n of the call, as a size: the extent of an input of that name
    minus_n             -n              the same where it is below 0
    N_times_M           N * M           a size for what domains cannot hold
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from tcdsl.errors import Diagnostic, TcdslError
from tcdsl.ir.build import apply, integer
from tcdsl.ir.expressions import Apply, Constant, Expr, SizeValue, size_names, substitute, transform
from tcdsl.ir.program import Assertion, AxisExtent, Program, Size
from tcdsl.ir.text.expression_printer import format_expr

__all__ = [
    "NEGATIVE",
    "POSITIVE",
    "assertions_in_words",
    "error_in_words",
    "in_words",
    "made_up_name",
    "spoken_in",
    "spoken_sizes",
]

POSITIVE, NEGATIVE = "offset_", "minus_"
"""How the inputs are called whose extents are integers of the call, or the integers above 0 for those below it."""

_OPERATION_NAMES = {"mul": "times", "floor_div": "over", "mod": "mod", "add": "plus", "sub": "minus"}
_SIGNS = {"- -": "+ ", "+ -": "- ", "--": ""}
_FACTOR_BEFORE, _FACTOR_BEHIND = re.compile(r"(?:\*|//|%) \Z"), re.compile(r" (?:\*|//|%)")


# What is longer tells nobody anything, and grows with each size that is made of the last one.
_LONGEST_NAME = 120
_LONG = "long_size"


def made_up_name(expr: Expr) -> str:
    """A name for an expression of sizes: ``N_times_M``; the same one for all that are long."""
    name = _words(expr)
    if len(name) > _LONGEST_NAME:
        return _LONG
    return name if name.isidentifier() else f"size_{name}"


def _words(expr: Expr) -> str:
    match expr:
        case Constant(value=value):
            return str(value).replace("-", "minus")
        case SizeValue(name=name):
            return name
        case Apply(primitive=primitive, arguments=arguments):
            word = _OPERATION_NAMES.get(primitive, primitive)
            parts = [_words(argument) for argument in arguments]
            return f"_{word}_".join(parts) if len(parts) > 1 else f"{word}_{parts[0]}"
        case _:
            return "size_" + "_".join(sorted(size_names(expr)))


def _without_guards(expr: Expr) -> Expr:
    """Quotients and remainders as they are written: in rounds ``N // M`` is ``N // max(M, 1)``."""

    def rule(node: Expr) -> Expr:
        match node:
            case Apply(primitive="floor_div" | "mod", arguments=(left, Apply(primitive=guard, arguments=parts))):
                if guard == "max" and parts[1:] == (integer(1),):
                    return replace(node, arguments=(left, parts[0]))
                return replace(node, arguments=(left, parts[-1])) if guard == "where" else node
            case Apply(primitive="neg", arguments=(Apply(primitive="neg", arguments=(operand,)),)):
                return operand
        return node

    return transform(expr, rule)


def spoken_sizes(sizes: Iterable[Size], label: Callable[[str], str]) -> dict[str, str]:
    """The texts of ``sizes`` by their made-up names; ``label`` says what the user calls an input."""
    found: dict[Expr, Expr] = {}
    for size in sizes:
        match size.source:
            case AxisExtent(tensor=tensor, axis=0) if tensor == size.name:
                name = label(tensor) or tensor
                said = SizeValue(name.removeprefix(POSITIVE).removeprefix(NEGATIVE))
                if said.name != name:
                    found[SizeValue(size.name)] = said if name.startswith(POSITIVE) else apply("neg", said)
            case AxisExtent():
                pass
            case source:
                written = _without_guards(source)
                name = made_up_name(written)
                if isinstance(written, Apply) and size.name.startswith(name) and name != _LONG:
                    found[SizeValue(size.name)] = _without_guards(substitute(written, found))
    return {name.name: format_expr(said) for name, said in found.items() if isinstance(name, SizeValue)}


def spoken_in(program: Program) -> dict[str, str]:
    """The same for the sizes of a program."""
    labels = {tensor.name: tensor.label for tensor in program.inputs}
    return spoken_sizes(program.sizes, labels.__getitem__)


def assertions_in_words(assertions: Iterable[Assertion], spoken: Mapping[str, str]) -> tuple[Assertion, ...]:
    """``assertions`` with messages in what is ``spoken`` for names."""
    return tuple(replace(each, message=in_words(each.message, spoken)) for each in assertions)


def in_words(text: str, spoken: Mapping[str, str]) -> str:
    """``text`` with what is ``spoken`` for names; ``{N}``, which stands for the value of a size, stays."""
    if not any(name in text for name in spoken):
        return text
    longest_first = sorted(spoken, key=len, reverse=True)
    for sums in longest_first:
        if not sums.isidentifier():  # `-minus_n + t_round`, which is t
            text = re.sub(rf"(?<![\w{{.]){re.escape(sums)}(?![\w}}])", spoken[sums], text)
    names = "|".join(each for each in longest_first if each.isidentifier())

    def words(found: re.Match[str]) -> str:
        sign, said = found[1] or "", spoken[found[2]]
        factor = _FACTOR_BEFORE.search(text, 0, found.start()) or _FACTOR_BEHIND.match(text, found.end())
        if said[:1] == "-" and said[1:].isidentifier() and not factor:
            return _SIGNS.get(f"{sign}-", f"{sign}-") + said[1:]
        sums = " + " in said or " - " in said
        plain = said.isidentifier() or not (factor or sign == "-" or (sums and sign))
        return f"{sign}{said}" if plain else f"{sign}({said})"

    return re.sub(rf"((?<!\w)[-+] ?)?(?<![\w{{.])({names})(?![\w}}])", words, text)


def error_in_words(error: TcdslError, spoken: Mapping[str, str]) -> None:
    """Have an error that is about to be raised, or raised again, say so."""
    if not any(name in error.message for name in spoken):
        return
    error.diagnostics = tuple(_in_words(each, spoken) for each in error.diagnostics)
    faults = [each.render() for each in error.diagnostics]
    if len(faults) > 1:
        faults = ["\n\n".join([f"{len(faults)} faults", *faults])]
    error.message = faults[0] if faults else in_words(error.message, spoken)
    error.args = (error.message,)


def _in_words(fault: Diagnostic, spoken: Mapping[str, str]) -> Diagnostic:
    notes = tuple(in_words(note, spoken) for note in fault.notes)
    return replace(fault, fact=in_words(fault.fact, spoken), notes=notes, hint=in_words(fault.hint, spoken))
