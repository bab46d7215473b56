"""What a code can ask of objects, read off its instructions: names of attributes, and what runs methods unseen.

::

    asked, modules = asked_by(function.__code__)

Beside the names of attributes, also those written as texts, there are marks for what names nothing: `EVERY` attribute,
and the methods that `COMPARING` objects runs, or making a `TEXT` of one.
"""

from __future__ import annotations

import dis
import functools
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from types import CodeType
from typing import Any

__all__ = [
    "BELOW",
    "BY_MODULE",
    "COMPARING",
    "ENVIRONMENT",
    "EVERY",
    "KINDS",
    "TEXT",
    "asked_by",
    "identifiers",
    "marked_by",
]

#: Marks, which are no identifiers.
COMPARING, EVERY, TEXT = "==", "*", "str()"
#: Names of functions by which code reaches the names of a module, and the environment.
BY_MODULE = frozenset(("globals", "modules", "import_module", "__import__"))
ENVIRONMENT = frozenset(("environ", "environb", "getenv", "expandvars", "expanduser"))
#: What asks for the kind of an object, and for the classes below a class.
KINDS = frozenset(("isinstance", "issubclass", "__instancecheck__", "__subclasscheck__"))
BELOW = KINDS | {"__subclasses__"}

_BY_A_NAME = frozenset(("getattr", "hasattr"))
_BY_ANY_NAME = frozenset(
    ("vars", "dir", "eval", "exec", "attrgetter", "asdict", "astuple", "fields", "__dict__", "getmembers", "dumps")
) | {"__getstate__", "__reduce__", "__reduce_ex__", "__getattribute__", "getattr_static"}
_MARKED_BY_NAMES = (
    (EVERY, _BY_ANY_NAME),
    ("__call__", frozenset(("callable",))),
    ("__annotations__", frozenset(("get_annotations", "get_type_hints", "signature"))),
    (
        COMPARING,
        frozenset(("index", "count", "remove", "sorted", "sort", "min", "max", "eq", "ne", "lt", "le", "gt", "hash")),
    ),
    (
        TEXT,
        frozenset(
            ("str", "repr", "ascii", "format", "format_map", "substitute", "safe_substitute", "dumps", "pformat", "mod")
        ),
    ),
)
_MARKED_BY_INSTRUCTIONS = {
    "COMPARE_OP": (COMPARING,),
    "CONTAINS_OP": (COMPARING,),
    "MATCH_CLASS": (COMPARING, "__match_args__", "isinstance"),
    "FORMAT_VALUE": (TEXT,),  # until Python 3.12
    "CONVERT_VALUE": (TEXT,),
    "FORMAT_SIMPLE": (TEXT,),
    "FORMAT_WITH_SPEC": (TEXT,),
}


@functools.lru_cache(maxsize=1024)
def asked_by(code: CodeType) -> tuple[frozenset[str], tuple[tuple[str, int], ...]]:
    """The names by which code may reach attributes, with marks, and the modules that it imports with their levels."""
    names = {*code.co_names}
    imported: list[tuple[str, int]] = []
    numbers: list[Any] = [0, 0]
    instructions = list(dis.get_instructions(code))
    for place, instruction in enumerate(instructions):
        kind = instruction.opname
        names.update(_MARKED_BY_INSTRUCTIONS.get(kind, ()))
        if kind.startswith("LOAD_") and instruction.argval in _BY_A_NAME:
            if not _is_given_a_constant(instructions[place + 1 :]):
                names.add(EVERY)
        elif kind == "LOAD_CONST":
            numbers = [numbers[-1], instruction.argval]
        elif kind == "BINARY_OP" and instruction.argrepr in ("%", "%="):
            names.add(TEXT)
        elif kind == "IMPORT_NAME":
            imported.append((str(instruction.argval), numbers[0] if type(numbers[0]) is int else 0))
    names.update(marked_by(names))
    names.update(identifiers(code.co_consts))
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            found, modules = asked_by(inner)
            names |= found
            imported.extend(modules)
    return frozenset(names), tuple(imported)


def _is_given_a_constant(instructions: Sequence[dis.Instruction]) -> bool:
    # Whether the second argument of a function that has just been loaded is a text in the code. `depth` is how far the
    # stack has grown since: by that its call is known, and what has made the argument.
    depth = first = 0
    made: dis.Instruction | None = None
    before = ""
    for number, instruction in enumerate(instructions):
        kind, count = instruction.opname, instruction.arg or 0
        is_call = kind == "PRECALL" or (kind == "CALL" and before != "PRECALL")  # two steps until Python 3.12
        before = kind
        if is_call and depth == first + count:
            return made is not None and made.opname == "LOAD_CONST" and isinstance(made.argval, str)
        if instruction.opcode in dis.hasjrel or instruction.opcode in dis.hasjabs:
            return False
        depth += dis.stack_effect(instruction.opcode, instruction.arg)
        if kind == "PUSH_NULL" and number == 0:
            first = depth
        if depth < first:
            return False
        made = instruction if depth == first + 2 else made
    return False


def marked_by(names: Collection[str]) -> Iterator[str]:
    """The marks of functions with these names."""
    return (mark for mark, by in _MARKED_BY_NAMES if not by.isdisjoint(names))


def identifiers(constants: Iterable[Any]) -> Iterator[str]:
    """The texts among constants that may be names of attributes."""
    for constant in constants:
        if isinstance(constant, str) and constant.isidentifier():
            yield constant
        elif isinstance(constant, str) and "{" in constant:
            yield from _ATTRIBUTE_IN_A_FORMAT.findall(constant)
        elif isinstance(constant, tuple):
            yield from identifiers(constant)


# `"{0.width}"`
_ATTRIBUTE_IN_A_FORMAT = re.compile(r"\.([^\W\d]\w*)")
