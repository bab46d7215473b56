"""Instructions, written in order into the text of blocks.

::

    builder = Builder(function.append_block(), flags="contract ", moving=True)
    total = builder.fadd(x, y)
    builder.ret(total)

What depends on operands alone is written once, and known as long as it is written above: `Builder.enter` and
`Builder.leave` say which blocks lie within which. With ``moving`` it is written in front of the loops in which it does
not change. So LLVM reads little, and finds little to clean up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tcdsl.targets.cpu.instructions.modules import BasicBlock, Function, Module, Phi
from tcdsl.targets.cpu.instructions.values import (
    POINTER,
    ConstantOperand,
    DoubleType,
    FloatType,
    FunctionType,
    IntType,
    Operand,
    Type,
    VectorType,
    VoidType,
)

__all__ = ["Builder"]

_TRUTH = IntType(1)
_ORDERS = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}
_SIGNED = {symbol: order if order in ("eq", "ne") else f"s{order}" for symbol, order in _ORDERS.items()}
_UNSIGNED = {symbol: order if order in ("eq", "ne") else f"u{order}" for symbol, order in _ORDERS.items()}


class Builder:
    """Writes at the end of ``block``. ``flags`` are those of floating-point operations that are given none."""

    __slots__ = ("_known", "_loops", "_moving", "_open", "_written", "block", "flags", "function", "module")

    def __init__(self, block: BasicBlock, flags: str = "", *, moving: bool = False) -> None:
        self.block = block
        self.function: Function = block.function
        self.module: Module = block.function.module
        self.flags = flags
        self._moving = moving
        #: By the text of an instruction, its value; which of them are known to the end of each scope.
        self._known: dict[str, Operand] = {}
        self._written: list[list[str]] = [[]]
        #: The block in which each scope goes on, and whether the scope is a loop.
        self._open = [block]
        self._loops = [False]

    # -- places

    def append_block(self) -> BasicBlock:
        """A new block of the function."""
        return self.function.append_block()

    def enter(self, block: BasicBlock, *, loop: bool = False) -> None:
        """Go on in ``block``, which is only reached from here on; what does not change in a ``loop`` stays before."""
        self.block = block
        self._open.append(block)
        self._written.append([])
        self._loops.append(loop)

    def leave(self, block: BasicBlock) -> None:
        """Go on in ``block``, behind what was entered: what has been computed since is not known there."""
        self._open.pop()
        self._loops.pop()
        for text in self._written.pop():
            self._known.pop(text, None)
        self.block = self._open[-1] = block

    def go_on(self, block: BasicBlock) -> None:
        """Go on in ``block``, which is only reached through the one at hand."""
        self.block = self._open[-1] = block

    def position_at_end(self, block: BasicBlock) -> None:
        """Go on in ``block``, knowing nothing."""
        self.block = self._open[-1] = block
        self._known.clear()

    @contextmanager
    def seldom(self, condition: Operand) -> Iterator[None]:
        """What is written inside runs where ``condition`` holds, which is unlikely."""
        inside, after = self.append_block(), self.append_block()
        self.cbranch(condition, inside, after, weights=(1, 99))
        self.enter(inside)
        yield
        if not self.block.end:
            self.branch(after)
        self.leave(after)

    # -- computations

    def _computed(self, kind: Type, text: str, depth: int) -> Operand:
        found = self._known.get(text)
        if found is not None:
            return found
        here = len(self._open) - 1
        if depth < here:
            loops = self._loops
            position = depth + 1
            while position <= here and not (self._moving and loops[position]):
                position += 1
            here = position - 1
        function = self.function
        function.count += 1
        value = Operand(kind, f"%v{function.count}", here)
        self._open[here].lines.append(f"{value.text} = {text}")
        self._known[text] = value
        self._written[here].append(text)
        return value

    def _binary(self, operation: str, a: Operand, b: Operand) -> Operand:
        depth = max(b.depth, a.depth)
        made = self._computed(a.type, f"{operation} {a.type.text} {a.text}, {b.text}", depth)
        if operation in ("add", "add nsw"):
            made.terms = (*a.terms, *b.terms)
        return made

    def add(self, a: Operand, b: Operand, *, steady: bool = False) -> Operand:
        """Sum; ``steady`` numbers do not overflow."""
        if b.text == "0":
            return a
        if a.text == "0":
            return b
        return self._binary("add nsw" if steady else "add", a, b)

    def sub(self, a: Operand, b: Operand, *, steady: bool = False) -> Operand:
        """Difference."""
        return a if b.text == "0" else self._binary("sub nsw" if steady else "sub", a, b)

    def mul(self, a: Operand, b: Operand, *, steady: bool = False) -> Operand:
        """Product."""
        if b.text == "1":
            return a
        if a.text == "1":
            return b
        return self._binary("mul nsw" if steady else "mul", a, b)

    def whole(self, operation: str, a: Operand, b: Operand) -> Operand:
        """``whole("sdiv", a, b)``: an operation of LLVM on whole numbers."""
        return self._binary(operation, a, b)

    def floating(self, operation: str, a: Operand, b: Operand, flags: str | None = None) -> Operand:
        """``floating("fadd", a, b)``."""
        return self._binary(f"{operation} {self.flags if flags is None else flags}", a, b)

    def not_(self, a: Operand) -> Operand:
        """All bits changed."""
        whole = a.type.element if isinstance(a.type, VectorType) else a.type
        ones = ConstantOperand(whole, 1 if whole == _TRUTH else -1)
        if isinstance(a.type, VectorType):
            ones = ConstantOperand(a.type, [ones] * a.type.count)
        return self._computed(a.type, f"xor {a.type.text} {a.text}, {ones.text}", a.depth)

    def _compare(self, operation: str, a: Operand, b: Operand) -> Operand:
        depth = max(b.depth, a.depth)
        kind: Type = VectorType(_TRUTH, a.type.count) if isinstance(a.type, VectorType) else _TRUTH
        return self._computed(kind, f"{operation} {a.type.text} {a.text}, {b.text}", depth)

    def compare_signed(self, symbol: str, a: Operand, b: Operand) -> Operand:
        """``compare_signed("<", a, b)``."""
        return self._compare(f"icmp {_SIGNED[symbol]}", a, b)

    def compare_unsigned(self, symbol: str, a: Operand, b: Operand) -> Operand:
        """``compare_unsigned("<", a, b)``."""
        return self._compare(f"icmp {_UNSIGNED[symbol]}", a, b)

    def compare_floating(self, symbol: str, a: Operand, b: Operand, flags: str | None = None) -> Operand:
        """``compare_floating("<", a, b)``: beside NaN only ``!=`` holds."""
        order = "u" if symbol == "!=" else "o"
        return self._compare(f"fcmp {self.flags if flags is None else flags}{order}{_ORDERS[symbol]}", a, b)

    def select(self, condition: Operand, yes: Operand, no: Operand) -> Operand:
        """``yes`` if ``condition`` else ``no``."""
        text = f"select {condition.type.text} {condition.text}, {yes.type.text} {yes.text}, {no.type.text} {no.text}"
        return self._computed(yes.type, text, max(condition.depth, yes.depth, no.depth))

    def opaque(self, a: Operand) -> Operand:
        """The same number, of which LLVM knows no other formula."""
        return self._computed(a.type, f"freeze {a.type.text} {a.text}", a.depth)

    def cast(self, operation: str, a: Operand, kind: Type) -> Operand:
        """``cast("sext", a, IntType(64))``; nothing where the type is that already."""
        if a.type.text == kind.text:
            return a
        return self._computed(kind, f"{operation} {a.type.text} {a.text} to {kind.text}", a.depth)

    def element(self, kind: Type, pointer: Operand, *indices: Operand, inbounds: bool = True) -> Operand:
        """The address of an element of memory that holds ``kind``."""
        if len(indices) == 1 and indices[0].text == "0":
            return pointer
        listed = ", ".join(f"{each.type.text} {each.text}" for each in indices)
        text = f"getelementptr {'inbounds ' if inbounds else ''}{kind.text}, ptr {pointer.text}, {listed}"
        return self._computed(POINTER, text, max(pointer.depth, *(each.depth for each in indices)))

    def insert_lane(self, vector: Operand, lane: Operand, position: Operand) -> Operand:
        """``vector`` with another number in a lane."""
        operands = f"{vector.type.text} {vector.text}, {lane.type.text} {lane.text}"
        text = f"insertelement {operands}, {position.type.text} {position.text}"
        return self._computed(vector.type, text, max(vector.depth, lane.depth, position.depth))

    def in_all_lanes(self, value: Operand, count: int) -> Operand:
        """A vector of so many lanes, each of which is ``value``."""
        kind = VectorType(value.type, count)
        if isinstance(value, ConstantOperand):
            return ConstantOperand(kind, [value] * count)
        nothing = Operand(kind, "poison")
        first = self.insert_lane(nothing, value, ConstantOperand(IntType(32), 0))
        lanes = f"<{count} x i32> zeroinitializer"
        text = f"shufflevector {kind.text} {first.text}, {kind.text} {nothing.text}, {lanes}"
        return self._computed(kind, text, value.depth)

    def shuffled(self, first: Operand, second: Operand, lanes: Sequence[int]) -> Operand:
        """A vector of these lanes of ``first``, counted from 0, and of ``second``, counted on behind it."""
        assert isinstance(first.type, VectorType)
        listed = ", ".join(f"i32 {lane}" for lane in lanes)
        operands = f"{first.type.text} {first.text}, {first.type.text} {second.text}"
        text = f"shufflevector {operands}, <{len(lanes)} x i32> <{listed}>"
        return self._computed(VectorType(first.type.element, len(lanes)), text, max(first.depth, second.depth))

    def fenced(self, vector: Operand) -> Operand:
        """The same vector of floating numbers; what it was made of is nothing to those who use it.

        Shuffles of shuffles are what LLVM for x86 looks for better ones for, in half of the time that they take.
        """
        kind = vector.type
        function = self.module.intrinsic("llvm.arithmetic.fence", [kind], FunctionType(kind, [kind]))
        return self._computed(kind, f"call {kind.text} {function.text}({kind.text} {vector.text})", vector.depth)

    def lane(self, vector: Operand, position: Operand) -> Operand:
        """The number in a lane."""
        assert isinstance(vector.type, VectorType)
        text = f"extractelement {vector.type.text} {vector.text}, {position.type.text} {position.text}"
        return self._computed(vector.type.element, text, max(vector.depth, position.depth))

    # -- memory

    def _here(self, kind: Type, text: str) -> Operand:
        value = Operand(kind, self.function.number(), len(self._open) - 1)
        self.block.lines.append(f"{value.text} = {text}")
        return value

    def place(self, kind: Type, alignment: int = 0, first: Operand | None = None) -> Operand:
        """Memory of the function for a ``kind``, which holds the constant ``first`` to begin with."""
        value = Operand(POINTER, self.function.number())
        aligned = f", align {alignment}" if alignment else ""
        begun = "" if first is None else f"\nstore {kind.text} {first.text}, ptr {value.text}"
        self.function.places.append(f"{value.text} = alloca {kind.text}{aligned}{begun}")
        return value

    def load(self, kind: Type, pointer: Operand, note: str = "") -> Operand:
        """What memory holds, with notes that begin with a comma."""
        return self._here(kind, f"load {kind.text}, ptr {pointer.text}{note}")

    def load_lasting(self, kind: Type, pointer: Operand) -> Operand:
        """What memory holds that nobody writes meanwhile."""
        return self._computed(kind, f"load {kind.text}, ptr {pointer.text}", pointer.depth)

    def load_unchanged(self, kind: Type, pointer: Operand, note: str = "") -> Operand:
        """What memory holds that the loop at hand does not write: it is read in front of it."""
        # No further: there need be no such memory where the loop has no rounds.
        here = len(self._open) - 1
        while self._loops[here]:
            here -= 1
        return self._computed(kind, f"load {kind.text}, ptr {pointer.text}{note}", max(pointer.depth, here))

    def store(self, value: Operand, pointer: Operand, note: str = "") -> None:
        """Let memory hold ``value``."""
        self.block.lines.append(f"store {value.type.text} {value.text}, ptr {pointer.text}{note}")

    def load_masked(self, kind: VectorType, pointer: Operand, mask: Operand, alignment: int, note: str = "") -> Operand:
        """The lanes of memory where ``mask`` holds, zeros elsewhere."""
        types = [POINTER, IntType(32), mask.type, kind]
        function = self.module.intrinsic("llvm.masked.load", [kind, POINTER], FunctionType(kind, types))
        operands = f"ptr {pointer.text}, i32 {alignment}, {mask.type.text} {mask.text}, {kind.text} zeroinitializer"
        return self._here(kind, f"call {kind.text} {function.text}({operands}){note}")

    def store_masked(self, value: Operand, pointer: Operand, mask: Operand, alignment: int, note: str = "") -> None:
        """Let memory hold the lanes of ``value`` where ``mask`` holds."""
        kind = value.type
        types = [kind, POINTER, IntType(32), mask.type]
        function = self.module.intrinsic("llvm.masked.store", [kind, POINTER], FunctionType(VoidType(), types))
        operands = f"{kind.text} {value.text}, ptr {pointer.text}, i32 {alignment}, {mask.type.text} {mask.text}"
        self.block.lines.append(f"call void {function.text}({operands}){note}")

    def load_shared(self, kind: Type, pointer: Operand, alignment: int) -> Operand:
        """What memory holds that other threads write."""
        return self._here(kind, f"load atomic {kind.text}, ptr {pointer.text} monotonic, align {alignment}")

    def add_shared(self, pointer: Operand, value: Operand) -> Operand:
        """Add to memory that other threads add to; what it held before."""
        return self._here(value.type, f"atomicrmw add ptr {pointer.text}, {value.type.text} {value.text} monotonic")

    # -- calls and branches

    def call_apart(self, function: Operand, arguments: Sequence[Operand], kind: FunctionType) -> Operand:
        """The result of the function of that ``kind`` at an address, which touches no memory that the code here can
        reach, or none that it has to know of.
        """
        listed = ", ".join(f"{each.type.text} {each.text}" for each in arguments)
        text = f"call {kind.result.text} {function.text}({listed}) nounwind memory(inaccessiblemem: readwrite)"
        return self._here(kind.result, text)

    def call(self, function: Operand, arguments: Sequence[Operand], kind: FunctionType | None = None) -> Operand:
        """The result of ``function``, an address being of a function of the ``kind``; something if it gives none."""
        if kind is None:
            assert isinstance(function, Function)
            kind = function.kind
        result = kind.result
        number = result.element if isinstance(result, VectorType) else result
        flags = self.flags if isinstance(number, FloatType | DoubleType) else ""
        listed = ", ".join(f"{each.type.text} {each.text}" for each in arguments)
        text = f"call {flags}{result.text} {function.text}({listed})"
        if function.text.startswith('@"llvm.') and arguments:
            return self._computed(result, text, max(each.depth for each in arguments))
        if isinstance(result, VoidType):
            self.block.lines.append(text)
            return Operand(result, "")
        return self._here(result, text)

    def reduced(self, function: Function, arguments: Sequence[Operand], flags: str) -> Operand:
        """The lanes of a vector as one number, by one of LLVM's functions for that."""
        listed = ", ".join(f"{each.type.text} {each.text}" for each in arguments)
        result = function.kind.result
        return self._here(result, f"call {flags}{result.text} {function.text}({listed})")

    def phi(self, kind: Type) -> Phi:
        """A value that depends on where the block is entered from."""
        made = Phi(kind, self.function.number(), len(self._open) - 1)
        self.block.phis.append(made)
        return made

    def branch(self, block: BasicBlock, note: str = "") -> None:
        """Go on in ``block``."""
        self.block.end = f"br label %{block.name}{note}"

    def cbranch(
        self,
        condition: Operand,
        yes: BasicBlock,
        no: BasicBlock,
        note: str = "",
        weights: tuple[int, int] | None = None,
    ) -> None:
        """Go on in ``yes`` if ``condition`` else in ``no``; the weights say how often."""
        if weights is not None:
            counted = ", ".join(f"i32 {each}" for each in weights)
            note += f', !prof {self.module.note(f"""!{{!"branch_weights", {counted}}}""")}'
        self.block.end = f"br i1 {condition.text}, label %{yes.name}, label %{no.name}{note}"

    def ret(self, value: Operand) -> None:
        """Give ``value`` back."""
        self.block.end = f"ret {value.type.text} {value.text}"

    def ret_void(self) -> None:
        """Go back."""
        self.block.end = "ret void"

    def unreachable(self) -> None:
        """Nothing comes here."""
        self.block.end = "unreachable"
