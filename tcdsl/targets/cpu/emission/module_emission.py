"""The text of a generated module as LLVM modules, a function ``void (int64 begin, int64 end, int64 frame)`` a nest.

Each nest is a module of its own, so that long programs can be interrupted between them. Procedures become functions of
what their buffers are, one for each combination that is called: a procedure so knows that its buffers lie apart, and
LLVM may put it where it is called.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tcdsl.targets.cpu.emission.emitted_functions import scalar
from tcdsl.targets.cpu.emission.function_emission import FunctionEmission
from tcdsl.targets.cpu.emission.nest_notes import PLAIN, READY, VectorForm
from tcdsl.targets.cpu.emission.plain_nests import is_plain
from tcdsl.targets.cpu.instructions import ir
from tcdsl.targets.cpu.intrinsics.frame_memory import WORD, BufferKind, BufferValue
from tcdsl.targets.cpu.intrinsics.llvm_scalars import Scalar, llvm_type

__all__ = ["emitted_nests"]


def emitted_nests(
    text: str, symbols: Mapping[str, str] | None = None, form: VectorForm | None = None
) -> Iterator[tuple[str, str]]:
    """The symbols of the nests of the generated module ``text``, which are their names, with LLVM's text for each.

    With ``symbols`` only those nests, under these symbols. With the ``form`` of a processor's vectors loops use them;
    LLVM need not look for any in a nest that says `READY`.
    """
    definitions = _definitions(text)
    procedures = {each.name: each for each in definitions if _decorator(each) == "procedure"}
    for definition in definitions:
        if _decorator(definition) == "nest" and (symbols is None or definition.name in symbols):
            symbol = definition.name if symbols is None else symbols[definition.name]
            emission = _NestEmission(symbol, procedures, form)
            emission.nest(definition)
            text = str(emission.module)
            if form is not None and not emission.has_plain_loops:
                text += f"{READY}\n"
            elif is_plain(definition):
                text += f"{PLAIN}\n"
            yield symbol, text


def _definitions(text: str) -> list[ast.FunctionDef]:
    try:
        return [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    except (SyntaxError, MemoryError):
        # Python's parser has limits of its own: blocks within blocks, for one.
        raise RecursionError from None


def _decorator(definition: ast.FunctionDef) -> str:
    call = definition.decorator_list[0]
    assert isinstance(call, ast.Call)
    assert isinstance(call.func, ast.Name)
    return call.func.id


def _liberties(definition: ast.FunctionDef) -> tuple[str, ...]:
    call = definition.decorator_list[0]
    assert isinstance(call, ast.Call)
    found: tuple[str, ...] = ast.literal_eval(call.keywords[0].value)
    return found


class _NestEmission:
    def __init__(self, name: str, procedures: Mapping[str, ast.FunctionDef], form: VectorForm | None) -> None:
        self.module = ir.Module(name)
        self.has_plain_loops = False
        self._form = form
        self._procedures = procedures
        self._made: dict[tuple[object, ...], ir.Function] = {}

    def nest(self, definition: ast.FunctionDef) -> None:
        function = ir.Function(self.module, ir.FunctionType(ir.VoidType(), [WORD] * 3), self.module.name)
        names = zip(("begin", "end", "frame"), function.args, strict=True)
        self._function(definition, function, {name: (value, "int64") for name, value in names})

    def _function(self, definition: ast.FunctionDef, function: ir.Function, names: dict[str, Any]) -> None:
        function.attributes.append("nounwind")
        flags = "".join(f"{flag} " for flag in _liberties(definition))
        emission = FunctionEmission(function, names, self._call, flags=flags, form=self._form)
        emission.body(definition.body)
        self.has_plain_loops = self.has_plain_loops or emission.has_plain_loops

    def _call(self, builder: ir.Builder, name: str, arguments: list[Any]) -> None:
        given = [each if isinstance(each, BufferValue) else scalar(builder, each) for each in arguments]
        kinds = tuple(each.kind if isinstance(each, BufferValue) else each.dtype for each in given)
        self.has_plain_loops = True
        function = self._made.get((name, *kinds))
        if function is None:
            function = self._made[name, *kinds] = self._procedure(self._procedures[name], kinds)
        builder.call(function, [part for each in given for part in _parts(each)])

    def _procedure(self, definition: ast.FunctionDef, kinds: Sequence[BufferKind | str]) -> ir.Function:
        types: list[ir.Type] = []
        counts = []
        for kind in kinds:
            held = _types(kind)
            counts.append(len(held))
            types += held
        name = self.module.fresh(f"procedure {definition.name}")
        function = ir.Function(self.module, ir.FunctionType(ir.VoidType(), types), name)
        function.linkage = "internal"
        values = iter(function.args)
        names: dict[str, Any] = {}
        for parameter, kind, count in zip(definition.args.args, kinds, counts, strict=True):
            parts = [next(values) for _ in range(count)]
            if isinstance(kind, BufferKind):
                names[parameter.arg] = BufferValue.of_parts(kind, parts)
            else:
                names[parameter.arg] = parts[0], kind
        self._function(definition, function, names)
        return function


def _parts(value: BufferValue | Scalar) -> tuple[ir.Operand, ...]:
    return value.parts if isinstance(value, BufferValue) else (value.value,)


def _types(kind: BufferKind | str) -> list[ir.Type]:
    if isinstance(kind, str):
        return [llvm_type(kind)]
    words = kind.ndim + (1 + kind.ndim if kind.checked else 0)
    return [ir.POINTER, *[WORD] * words]
