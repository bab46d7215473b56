"""Types and values of LLVM's instructions, each known by its text."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

__all__ = [
    "POINTER",
    "ArrayType",
    "ConstantOperand",
    "DoubleType",
    "FloatType",
    "FunctionType",
    "HalfType",
    "IntType",
    "Operand",
    "Type",
    "VectorType",
    "VoidType",
]


class Type:
    """A type: ``str(IntType(64))`` is ``i64``. Two with the same text are equal."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Type) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    @property
    def mangled(self) -> str:
        """The type in the names of LLVM's own functions."""
        return self.text

    def constant(self, number: Any) -> str:
        """``number`` as a constant of the type."""
        raise TypeError(f"{self.text} has no constants")


class IntType(Type):
    """Whole numbers of ``width`` bits."""

    __slots__ = ("width",)

    def __init__(self, width: int) -> None:
        super().__init__(f"i{width}")
        self.width = width

    def constant(self, number: Any) -> str:
        """Its digits."""
        return ("true" if number else "false") if self.width == 1 else str(int(number))


class _Floating(Type):
    __slots__ = ()

    def constant(self, number: Any) -> str:
        """The bits of the double that is the number."""
        return f"0x{struct.unpack('>Q', struct.pack('>d', number))[0]:016X}"


class HalfType(_Floating):
    """Half precision: for conversions."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("half")

    def constant(self, number: Any) -> str:
        """The bits of the number."""
        return f"0xH{struct.unpack('>H', struct.pack('>e', number))[0]:04X}"

    @property
    def mangled(self) -> str:
        """The type in the names of LLVM's own functions."""
        return "f16"


class FloatType(_Floating):
    """Single precision."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("float")

    @property
    def mangled(self) -> str:
        """The type in the names of LLVM's own functions."""
        return "f32"


class DoubleType(_Floating):
    """Double precision."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("double")

    @property
    def mangled(self) -> str:
        """The type in the names of LLVM's own functions."""
        return "f64"


class VoidType(Type):
    """What functions without a result give."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("void")


class _PointerType(Type):
    __slots__ = ()

    def constant(self, number: Any) -> str:
        """Only the pointer to nothing."""
        return "null"

    @property
    def mangled(self) -> str:
        """The type in the names of LLVM's own functions."""
        return "p0"


POINTER = _PointerType("ptr")
"""Addresses, whatever they point to."""


class _Several(Type):
    __slots__ = ("count", "element")

    def __init__(self, text: str, element: Type, count: int) -> None:
        super().__init__(text)
        self.element = element
        self.count = count

    def _listed(self, numbers: Sequence[Any]) -> str:
        return ", ".join(
            f"{self.element.text} {each.text if isinstance(each, Operand) else self.element.constant(each)}"
            for each in numbers
        )


class VectorType(_Several):
    """``count`` lanes."""

    __slots__ = ()

    def __init__(self, element: Type, count: int) -> None:
        super().__init__(f"<{count} x {element.text}>", element, count)

    @property
    def mangled(self) -> str:
        """The type in the names of LLVM's own functions."""
        return f"v{self.count}{self.element.mangled}"

    def constant(self, number: Any) -> str:
        """A number for each lane."""
        if all(each is number[0] for each in number):
            return f"splat ({self._listed(number[:1])})"
        return f"<{self._listed(number)}>"


class ArrayType(_Several):
    """``count`` numbers in memory."""

    __slots__ = ()

    def __init__(self, element: Type, count: int) -> None:
        super().__init__(f"[{count} x {element.text}]", element, count)

    def constant(self, number: Any) -> str:
        """All of its numbers."""
        return f"[{self._listed(number)}]"


class FunctionType(Type):
    """What functions take and give."""

    __slots__ = ("parameters", "result")

    def __init__(self, result: Type, parameters: Sequence[Type]) -> None:
        super().__init__(f"{result.text} ({', '.join(each.text for each in parameters)})")
        self.result = result
        self.parameters = tuple(parameters)


class Operand:
    """Something of a ``type``, known by its ``text``; ``depth`` says how many scopes are around it.

    ``least`` is a bound of a whole number with a sign, where one is known: it is never less. ``terms`` are what it is
    the sum of.
    """

    __slots__ = ("depth", "least", "terms", "text", "type")

    def __init__(self, kind: Type, text: str, depth: int = 0) -> None:
        self.type = kind
        self.text = text
        self.depth = depth
        self.least: int | None = None
        self.terms: tuple[Operand, ...] = (self,)


class ConstantOperand(Operand):
    """``ConstantOperand(IntType(64), 3)``: lists for vectors and arrays, None for the pointer to nothing."""

    __slots__ = ("parts",)

    def __init__(self, kind: Type, number: Any) -> None:
        super().__init__(kind, kind.constant(number))
        if isinstance(kind, IntType):
            self.least = number if number < 1 << (kind.width - 1) else number - (1 << kind.width)
        #: What a list gives.
        self.parts = tuple(number) if isinstance(number, list) else ()
