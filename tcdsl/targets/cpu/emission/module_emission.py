"""The text of a generated module as LLVM modules, a function ``void (int64 begin, int64 end, int64 frame)`` a nest.

Each nest is a module of its own, so that long programs can be interrupted between them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

from llvmlite import ir

from tcdsl.targets.cpu.emission.function_emission import FunctionEmission
from tcdsl.targets.cpu.intrinsics.arithmetic import Scalar
from tcdsl.targets.cpu.intrinsics.frame_memory import WORD

__all__ = ["emitted_nests"]

_LIBERAL = frozenset(("fadd", "fsub", "fmul", "fdiv", "frem", "fcmp"))


def emitted_nests(text: str) -> Iterator[tuple[str, str]]:
    """The names of the nests of the generated module ``text``, which are their symbols, with LLVM's text for each."""
    for definition in _definitions(text):
        module = ir.Module(definition.name)
        function = ir.Function(module, ir.FunctionType(ir.VoidType(), [WORD] * 3), definition.name)
        function.attributes.add("nounwind")
        names = zip(("begin", "end", "frame"), function.args, strict=True)
        emission = FunctionEmission(function, {name: Scalar(None, value, "int64") for name, value in names}, _unknown)
        emission.body(definition.body)
        _set_flags(function, _liberties(definition))
        yield definition.name, str(module)


def _unknown(builder: ir.IRBuilder, name: str, arguments: list[Any]) -> None:
    raise TypeError(f"not a function of generated code: {name}")


def _definitions(text: str) -> list[ast.FunctionDef]:
    try:
        return [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    except (SyntaxError, MemoryError):
        # Python's parser has limits of its own: blocks within blocks, for one.
        raise RecursionError from None


def _liberties(definition: ast.FunctionDef) -> tuple[str, ...]:
    call = definition.decorator_list[0]
    assert isinstance(call, ast.Call)
    found: tuple[str, ...] = ast.literal_eval(call.keywords[0].value)
    return found


def _set_flags(function: ir.Function, flags: Sequence[str]) -> None:
    # The liberties of the module for floating-point operations that have no flags of their own, and for calls.
    for block in function.blocks:
        for instruction in block.instructions:
            if instruction.opname in _LIBERAL and not instruction.flags:
                instruction.flags = list(flags)
            elif instruction.opname == "call" and isinstance(instruction.type, ir.FloatType | ir.DoubleType):
                instruction.fastmath.update(flags)
