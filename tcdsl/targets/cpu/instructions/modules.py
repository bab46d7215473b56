"""Modules of LLVM as text: functions, their blocks, global variables, notes on instructions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tcdsl.targets.cpu.instructions.values import POINTER, ConstantOperand, FunctionType, Operand, Type

__all__ = ["BasicBlock", "Function", "GlobalVariable", "Module", "Phi"]


class Module:
    """``str(module)`` is the text of all that is in it; ``symbols`` has what is known by a name.

    ``avx512`` says that the processor has it, with instructions for single steps of formulas.
    """

    def __init__(self, name: str, *, avx512: bool = False) -> None:
        self.name = name
        self.avx512 = avx512
        self.symbols: dict[str, Any] = {}
        self._notes: dict[str, str] = {}

    def note(self, text: str) -> str:
        """Metadata, written once: ``note('!{i64 0}')`` gives ``!0``."""
        known = self._notes.get(text)
        if known is None:
            known = self._notes[text] = f"!{len(self._notes)}"
        return known

    def own_note(self, *parts: str) -> str:
        """Metadata that is equal to none but itself, as loops want it."""
        number = f"!{len(self._notes)}"
        text = f"distinct !{{{', '.join((number, *parts))}}}"
        self._notes[text] = number
        return number

    def intrinsic(self, name: str, overloads: Sequence[Type], kind: FunctionType) -> Function:
        """One of LLVM's own functions: ``llvm.sqrt`` for float is ``llvm.sqrt.f32``."""
        symbol = ".".join((name, *(each.mangled for each in overloads)))
        found: Function | None = self.symbols.get(symbol)
        return found if found is not None else Function(self, kind, symbol)

    def fresh(self, name: str) -> str:
        """A symbol that is not there yet."""
        number = 0
        symbol = name
        while symbol in self.symbols:
            number += 1
            symbol = f"{name}.{number}"
        return symbol

    def __str__(self) -> str:
        lines: list[str] = []
        for symbol in list(self.symbols.values()):
            symbol.write(lines)
        lines.extend(f"{number} = {text}" for text, number in self._notes.items())
        return "\n".join(lines) + "\n"


class GlobalVariable(Operand):
    """Memory of a module, set by the module itself: ``initializer`` is its text."""

    __slots__ = ("initializer", "name", "place", "properties")

    def __init__(
        self, module: Module, name: str, properties: str, initializer: ConstantOperand, place: str = ""
    ) -> None:
        super().__init__(POINTER, f'@"{name}"')
        self.name = name
        self.properties = properties
        self.place = place
        self.initializer = initializer
        module.symbols[name] = self

    def write(self, lines: list[str]) -> None:
        """Add its lines."""
        lines.append(f"{self.text} = {self.properties} {self.initializer.type} {self.initializer.text}{self.place}")


class Function(Operand):
    """A function of a module: declared, and defined if it has blocks."""

    __slots__ = ("alignment", "args", "attributes", "blocks", "count", "kind", "linkage", "module", "name", "places")

    def __init__(self, module: Module, kind: FunctionType, name: str) -> None:
        super().__init__(POINTER, f'@"{name}"')
        self.module = module
        self.kind = kind
        self.name = name
        self.linkage = ""
        self.attributes: list[str] = []
        #: Of its stack, in bytes, or 0.
        self.alignment = 0
        self.args = tuple(Operand(each, f"%a{k}") for k, each in enumerate(kind.parameters))
        self.blocks: list[BasicBlock] = []
        #: The memory of its own, which the first block begins with.
        self.places: list[str] = []
        self.count = 0
        module.symbols[name] = self

    def append_block(self) -> BasicBlock:
        """A new block at the end."""
        block = BasicBlock(self, f"b{len(self.blocks)}")
        self.blocks.append(block)
        return block

    def number(self) -> str:
        """A new name for a value."""
        self.count += 1
        return f"%v{self.count}"

    def write(self, lines: list[str]) -> None:
        """Add its lines."""
        attributes = [*self.attributes, *([f"alignstack({self.alignment})"] if self.alignment else [])]
        ending = "".join(f" {each}" for each in attributes)
        result = self.kind.result.text
        if not self.blocks:
            parameters = ", ".join(each.type.text for each in self.args)
            lines.append(f"declare {result} {self.text}({parameters}){ending}")
            return
        parameters = ", ".join(f"{each.type.text} {each.text}" for each in self.args)
        linkage = f"{self.linkage} " if self.linkage else ""
        lines.append(f"define {linkage}{result} {self.text}({parameters}){ending} {{")
        for position, block in enumerate(self.blocks):
            lines.append(f"{block.name}:")
            if position == 0:
                # The last one first, as LLVM takes them apart: so registers have the order of the names.
                lines.extend(reversed(self.places))
            lines.extend(phi.line for phi in block.phis)
            lines.extend(block.lines)
            lines.append(block.end)
        lines.append("}")


class BasicBlock:
    """Instructions in order; ``end`` is the one that leaves it."""

    __slots__ = ("end", "function", "lines", "name", "phis")

    def __init__(self, function: Function, name: str) -> None:
        self.function = function
        self.name = name
        self.phis: list[Phi] = []
        self.lines: list[str] = []
        self.end = ""

    @property
    def is_terminated(self) -> bool:
        """Whether something leaves it."""
        return bool(self.end)


class Phi(Operand):
    """A value that depends on where the block is entered from."""

    __slots__ = ("incoming",)

    def __init__(self, kind: Type, text: str, depth: int) -> None:
        super().__init__(kind, text, depth)
        self.incoming: list[tuple[Operand, BasicBlock]] = []

    def add_incoming(self, value: Operand, block: BasicBlock) -> None:
        """It is ``value`` where the block is entered from ``block``."""
        self.incoming.append((value, block))

    @property
    def line(self) -> str:
        """The instruction."""
        pairs = ", ".join(f"[{value.text}, %{block.name}]" for value, block in self.incoming)
        return f"{self.text} = phi {self.type.text} {pairs}"
